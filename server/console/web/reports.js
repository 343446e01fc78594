// Figures of ‘sluice bench’ and ‘sluice eval’, from files that are read here and
// sent nowhere.
import { count, facts, failure, field, fill, h, table } from "./dom.js";

const largest = 10_000_000; // bytes

export async function view() {
  const input = h("input", { type: "file", accept: ".json", multiple: true });
  const shown = h("div");
  input.addEventListener("change", async () => {
    try {
      fill(shown, report(await Promise.all([...input.files].map(read))));
    } catch (error) {
      fill(shown, failure(error));
    }
  });
  return [
    h("h1", {}, "Reports"),
    h("p", {}, "Every ‘sluice bench …’ and ‘sluice eval …’ writes its figures with --json FILE. Open one such file, or several to compare with the first."),
    field("Files", input, "They are read in this page, and sent nowhere."), shown,
  ];
}

async function read(file) {
  if (file.size > largest) throw new Error(`${file.name}: larger than 10 MB; is it a file of figures?`);
  const content = await file.text().then(JSON.parse).catch(() => null);
  if (typeof content?.figures !== "object") throw new Error(`${file.name}: not a file of figures, as --json writes them.`);
  return { name: file.name, ...content };
}

function report(files) {
  const names = [...new Set(files.flatMap((f) => Object.keys(f.figures)))].sort();
  const [first, ...others] = files;
  const rows = names.map((name) => [name, figure(first.figures[name]),
    ...others.flatMap((f) => [figure(f.figures[name]), ratio(f.figures[name], first.figures[name])])]);
  return [
    files.map((f) => [h("h2", {}, f.name), facts([["Command", f.command], ["Commit", f.commit], ["Machine", JSON.stringify(f.environment ?? {})]])]),
    table("Figures", ["Figure", first.name, ...others.flatMap((f) => [f.name, `to ${first.name}`])], rows),
  ];
}

const figure = (value) => typeof value === "number" ? Number.isInteger(value) ? count(value) : value.toPrecision(4) : "–";

const ratio = (value, base) => typeof value === "number" && base ? (value / base).toFixed(2) : "–";
