"""Generates combining_classes.json and options.jsonl.gz from the reference library (tokenizers 0.23.3).

    python generate.py

combining_classes.json: [[first, last, class], ...], the code points which the
library's NFD treats as non-starters. Its tables are older than Python's, so
the set is probed; a class itself never changes once it is assigned.

options.jsonl.gz: random texts for what bert_uncased and wordpiece_cased do not
cover: the other options of BertNormalizer, added tokens that strip white space
or match normalised text, marks out of canonical order.
"""
import copy, gzip, json, random, unicodedata
from pathlib import Path
from tokenizers import Tokenizer, normalizers

HERE = Path(__file__).resolve().parent
SURROGATES = range(0xD800, 0xE000)
SYLLABLES = range(0xAC00, 0xD7A4)


def code_points():
    return (c for c in range(0x110000) if c not in SURROGATES and c not in SYLLABLES)


def moves(nfd, first, c):
    """Does NFD put c before the mark `first`?"""
    return nfd.normalize_str("a" + first + chr(c))[1] != first


def combining_classes():
    nfd = normalizers.NFD()
    # U+0345 has the highest class of all, 240: every other non-starter moves before it.
    found = [c for c in code_points() if unicodedata.normalize("NFD", chr(c)) == chr(c) and moves(nfd, "\u0345", c)] + [0x345]
    runs = []
    for c in sorted(found):
        k = unicodedata.combining(chr(c))
        assert k, hex(c)
        if runs and runs[-1][1] == c - 1 and runs[-1][2] == k: runs[-1][1] = c
        else: runs.append([c, c, k])
    assert all(moves(nfd, chr(d), c) == (k < l) for c, _, k in runs for d, _, l in runs)
    return runs


def byte_offset(text):
    at = [0]
    for c in text: at.append(at[-1] + len(c.encode()))
    return at


def texts(rnd, runs, n):
    marks = [chr(c) for first, last, _ in runs for c in range(first, last + 1)]
    kept = list("\u302e\u302f\u1b44\ua953\ua9c0\U0001d165\U0001d16d\u08d4\U0001e000\U00011446\U0001e94a")
    pools = [list("abcxyzABC"), list("the THE ing un able"), list(".,-!?[]<>#$"), list(" \t\n\r\u00a0\u2028\u0085\x0b\x0c\u3000"),
             list("\x00\x07\u200b\u00ad\ufffd\ue000"), list("éÉüñÅǻộİẞΣſǅ\u212a\u2126\u0344\u0f73\u0958\u1e9b"),
             list("한글각\u1100\u1161\u11a8"), list("中文\uf900豈\U0002b820\U0002f800"), marks, kept, kept + marks[:40],
             ["[MASK]", "[SEP]", "[mask]", "<UNK>", "<unk>", "héllo", "HELLO", "hello", "zqx", "zqxa", " zqx  ", "  [MASK]  ", "[SEP]\u0301"]]
    for _ in range(n):
        chosen = rnd.sample(pools, rnd.randint(2, 5))
        yield "".join(rnd.choice(rnd.choice(chosen)) for _ in range(rnd.randint(1, 30)))


def configurations():
    base = json.load(open(HERE / "wordpiece_cased/tokenizer.json"))
    for clean in (True, False):
        for ideographs in (True, False):
            for strip in (None, True, False):
                for lower in (True, False):
                    options = dict(clean_text=clean, handle_chinese_chars=ideographs, strip_accents=strip, lowercase=lower)
                    yield {"normalizer": options, "added_tokens": base["added_tokens"]}
    flags = dict(single_word=False, lstrip=False, rstrip=False, normalized=False, special=False)
    added = [dict(t, lstrip=t["content"] == "[MASK]", rstrip=t["content"] == "[SEP]") for t in base["added_tokens"]]
    added += [dict(flags, id=3000, content="<UNK>", normalized=True, special=True), dict(flags, id=3001, content="Héllo", normalized=True),
              dict(flags, id=3002, content="lo!", normalized=True), dict(flags, id=3003, content="zqx", rstrip=True), dict(flags, id=3004, content="zqxa", lstrip=True)]
    for lower in (True, False):
        yield {"normalizer": dict(clean_text=True, handle_chinese_chars=True, strip_accents=None, lowercase=lower), "added_tokens": added}


def options_rows(runs):
    rnd = random.Random(20261129)
    base = json.load(open(HERE / "wordpiece_cased/tokenizer.json"))
    for config in configurations():
        raw = copy.deepcopy(base)
        raw["normalizer"].update(config["normalizer"])
        raw["added_tokens"] = config["added_tokens"]
        tok = Tokenizer.from_str(json.dumps(raw))
        rows = []
        for text in texts(rnd, runs, 600 if len(config["added_tokens"]) > 5 else 120):
            tok.encode_special_tokens = rnd.random() < .3
            e, at = tok.encode(text), byte_offset(text)
            rows.append({"text": text, "parse_special": not tok.encode_special_tokens, "ids": e.ids,
                         "offsets": [[at[s], at[t]] for s, t in e.offsets], "word_ids": e.word_ids})
        yield {**config, "rows": rows}


def main():
    runs = combining_classes()
    (HERE / "combining_classes.json").write_text(json.dumps(runs, separators=(",", ":")).replace("],[", "],\n[") + "\n")
    data = "".join(json.dumps(r, separators=(",", ":")) + "\n" for r in options_rows(runs)).encode()
    with open(HERE / "options.jsonl.gz", "wb") as f, gzip.GzipFile(filename="", mode="wb", fileobj=f, mtime=0) as g:
        g.write(data)


main()
