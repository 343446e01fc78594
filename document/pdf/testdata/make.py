"""Makes the PDFs of the tests: python3 make.py (reportlab 4). All text is made up."""

from reportlab.lib import pdfencrypt
from reportlab.lib.pagesizes import A4
from reportlab.lib.units import mm
from reportlab.pdfgen import canvas

WIDTH, HEIGHT = A4
WORDS = ("The river station measures the height of the water every hour and sends it to the office. "
         "When the height rises by more than a hand in one hour the office warns the towns below. "
         "Each town keeps a list of the houses that stand low and of the people who need help to leave. "
         "The list is read aloud twice a year so that nobody is forgotten when the water comes. ").split()


def new(name, **options):
    return canvas.Canvas(name, pagesize=A4, invariant=1, pageCompression=1, **options)


def wrapped(words, width, font, size, c):
    line = []
    for w in words:
        if line and c.stringWidth(" ".join(line + [w]), font, size) > width:
            yield " ".join(line)
            line = []
        line.append(w)
    if line:
        yield " ".join(line)


def paragraph(c, words, x, y, width, size=10, font="Helvetica", leading=1.3):
    c.setFont(font, size)
    for line in wrapped(words, width, font, size, c):
        c.drawString(x, y, line)
        y -= size * leading
    return y - size * 0.7


def around(c, page, watermark=False):
    c.setFont("Helvetica", 8)
    c.drawString(20 * mm, HEIGHT - 12 * mm, "River Office, yearly report")
    c.drawCentredString(WIDTH / 2, 10 * mm, f"Page {page} of 3")
    if watermark:
        c.saveState()
        c.translate(WIDTH / 2, HEIGHT / 2)
        c.rotate(45)
        c.setFillGray(0.85)
        c.setFont("Helvetica-Bold", 60)
        c.drawCentredString(0, 0, "DRAFT COPY")
        c.restoreState()


def columns():
    c = new("columns.pdf")
    for page in (1, 2, 3):
        around(c, page, watermark=True)
        c.setFont("Helvetica-Bold", 18)
        y = HEIGHT - 30 * mm
        c.drawString(20 * mm, y, f"Chapter {page} of the river")
        left, right = 20 * mm, 110 * mm
        for x, side in ((left, "left"), (right, "right")):
            at = y - 10 * mm
            c.setFont("Helvetica-Bold", 12)
            c.drawString(x, at, f"The {side} side")
            at -= 7 * mm
            for n in (1, 2):
                at = paragraph(c, f"{side.capitalize()} {n} begins.".split() + WORDS, x, at, 80 * mm)
        c.showPage()
    c.save()


def ruled(c, rows, x, y, widths, height=16, header=True):
    for i, row in enumerate(rows):
        c.setFont("Helvetica-Bold" if header and i == 0 else "Helvetica", 9)
        at = x
        for cell, width in zip(row, widths):
            c.rect(at, y - height, width, height)
            c.drawString(at + 3, y - height + 5, cell)
            at += width
        y -= height
    return y


def tables():
    c = new("tables.pdf")
    widths = [60 * mm, 40 * mm, 40 * mm]
    head = ["Station", "Height (cm)", "Date"]
    rows = [[f"Station {n}", str(100 + 7 * n), f"{n:02d} May"] for n in range(1, 13)]
    around(c, 1)
    y = paragraph(c, WORDS, 20 * mm, HEIGHT - 30 * mm, 170 * mm)
    c.setFont("Helvetica", 9)
    c.drawString(20 * mm, 60 * mm + 12 * 5, "Table 1: Heights of the water")
    ruled(c, [head] + rows[:6], 20 * mm, 60 * mm + 50, widths, height=18)
    c.showPage()
    around(c, 2)
    y = ruled(c, [head] + rows[6:], 20 * mm, HEIGHT - 25 * mm, widths, height=18)
    y = paragraph(c, "After the table the report goes on. Prices are set apart.".split(), 20 * mm, y - 30, 170 * mm)
    c.setFont("Helvetica", 10)
    for name, price, unit in [("Item", "Price", "Unit"), ("Boat", "120", "day"), ("Pump", "35", "day"), ("Sandbag", "2", "piece"), ("Lamp", "4", "night")]:
        c.drawString(20 * mm, y, name)
        c.drawString(80 * mm, y, price)
        c.drawString(120 * mm, y, unit)
        y -= 14
    c.showPage()
    c.save()


def notes():
    c = new("notes.pdf")
    c.setFont("Helvetica-Bold", 16)
    c.drawString(20 * mm, HEIGHT - 25 * mm, "Notes and lists")
    y = HEIGHT - 35 * mm
    c.setFont("Helvetica", 10)
    c.drawString(20 * mm, y, "The gauge was moved in spring")
    x = 20 * mm + c.stringWidth("The gauge was moved in spring", "Helvetica", 10)
    c.setFont("Helvetica", 6)
    c.drawString(x, y + 4, "3")
    c.setFont("Helvetica", 10)
    c.drawString(x + 5, y, "and has been right since then.")
    y = paragraph(c, WORDS, 20 * mm, y - 25, 170 * mm)
    for marker, text in (("•", "boats that are ready"), ("•", "pumps that are not"), ("1.", "call the office"), ("2.", "warn the towns")):
        c.drawString(20 * mm, y, f"{marker} {text}")
        y -= 13
    c.setFillGray(0.5)
    c.rect(20 * mm, 90 * mm, 80 * mm, 40 * mm, fill=1)
    image(c)
    c.setFillGray(0)
    c.setFont("Helvetica", 9)
    c.drawString(20 * mm, 84 * mm, "Figure 1: The gauge at the bridge")
    c.setFont("Helvetica", 7)
    c.drawString(20 * mm, 25 * mm, "3 By the bridge, on the left bank.")
    c.showPage()
    c.save()


def image(c):
    from PIL import Image
    from reportlab.lib.utils import ImageReader
    c.drawImage(ImageReader(Image.new("L", (8, 8), 128)), 20 * mm, 90 * mm, 80 * mm, 40 * mm)


def encrypted():
    c = new("encrypted.pdf", encrypt=pdfencrypt.StandardEncryption("secret", canPrint=0))
    c.drawString(20 * mm, HEIGHT - 20 * mm, "Nobody reads this.")
    c.save()


def slides():
    c = canvas.Canvas("slides.pdf", pagesize=(HEIGHT, WIDTH), invariant=1, pageCompression=1)
    for n, title in enumerate(("Why the river rises", "What the towns do", "Who to call")):
        c.setFont("Helvetica-Bold", 30)
        c.drawString(20 * mm, WIDTH - 30 * mm, title)
        c.setFont("Helvetica", 18)
        for k in range(3):
            c.drawString(25 * mm, WIDTH - (55 + 12 * k) * mm, f"• point {k + 1} of slide {n + 1}")
        c.showPage()
    c.save()


def cells():
    """As typesetters draw: all lines of a cell, then the next one; what stands at one height in one string with steps in it,
    back where a word is wider than its column. The last column stands out of the rules, and the table goes on."""
    c = new("cells.pdf")
    lefts, end = [57, 100, 128, 200, 290], 350
    head = [["Town"], ["Code"], ["Who", "warns it"], ["Houses", "that stand", "low"], ["Address"]]
    rows = [
        [["Netherbridge"], ["NB7"], ["The mill and", "its keeper"], ["12 by the old", "weir"], ["mill@netherbridge.example"]],
        [["Upper", "Weir"], ["UW12"], ["The school"], ["none"], ["school@upperweir.example"]],
        [["Stone"], ["ST9"], [], ["7, all behind", "the dam of the", "year before"], ["town@stone.example"]],
        [["– Isle"], ["IS4"], ["The ferry,", "by horn"], ["3"], ["ferry@isle.example"]],
        [["Longmeadow"], ["LM33"], ["Riders from", "Stone"], ["40 on both", "banks"], ["riders@longmeadow.example"]],
        [["Ford"], ["FO2"], ["The inn"], ["1"], ["inn@ford.example"]],
    ]
    c.setFont("Helvetica", 10)
    c.drawString(57, HEIGHT - 80, "Whom the office calls when the water rises:")
    y = HEIGHT - 100
    for part in (rows[:3], rows[3:]):
        c.setFont("Helvetica", 10)
        c.rect(57, y, end - 57, 0.8, stroke=0, fill=1)
        y = drawn(c, [head], lefts, y)
        c.rect(57, y, end - 57, 0.4, stroke=0, fill=1)
        y = drawn(c, part, lefts, y)
        c.rect(57, y, end - 57, 0.8, stroke=0, fill=1)
        c.showPage()
        y = HEIGHT - 60
    c.save()


def drawn(c, rows, lefts, y, size=10, leading=12):
    pieces = []
    for row in rows:
        for x, lines in zip(lefts, row):
            pieces += [(x, y - leading * (n + 1), line) for n, line in enumerate(lines)]
        y -= leading * max(len(lines) for lines in row)
    at = 0
    while at < len(pieces):
        x, height, text = pieces[at]
        string, right = f"({text})", x + c.stringWidth(text, "Helvetica", size)
        at += 1
        while at < len(pieces) and pieces[at][1] == height:
            step, text = pieces[at][0], pieces[at][2]
            string += f" {(right - step) / size * 1000:.1f} ({text})"
            right, at = step + c.stringWidth(text, "Helvetica", size), at + 1
        c._code.append(f"BT /F1 {size} Tf 1 0 0 1 {x} {height} Tm [{string}] TJ ET".replace("–", "\\226"))
    return y - 5


for make in (columns, tables, notes, encrypted, slides, cells):
    make()
