"""Generates combining_classes.json, options.jsonl.gz, components.jsonl.gz and decode.jsonl.gz from the
reference library (tokenizers 0.23.3).

    python generate.py

combining_classes.json: [[first, last, class], ...], the code points which the
library's NFD treats as non-starters. Its tables are older than Python's, so
the set is probed; a class itself never changes once it is assigned.

options.jsonl.gz: random texts for what bert_uncased and wordpiece_cased do not
cover: the other options of BertNormalizer, added tokens that strip white space
or match normalised text, marks out of canonical order.

components.jsonl.gz: the same for the other tokenizers: {base, changes, rows}, where changes replace fields of
base's tokenizer.json ("model.x" is the field x of its model).

decode.jsonl.gz: {base, changes, rows: [{ids, text, skipped}]}, random ids and their texts, skipped without special tokens.
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


CL100K = json.load(open(HERE / "bpe_split/tokenizer.json"))["pre_tokenizer"]["pretokenizers"][0]
CHARSMAP = json.load(open(HERE / "unigram_precompiled/tokenizer.json"))["normalizer"]["precompiled_charsmap"]
PRECOMPILED = {"type": "Precompiled", "precompiled_charsmap": ""}  # "" stands for CHARSMAP, to save space
SPACES = {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": "ab"}


def chain(kind, *parts): return {"type": "Sequence", kind: list(parts)}
def byte_level(prefix, regex=True): return {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": True, "use_regex": regex}
def metaspace(scheme, split=True): return {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": scheme, "split": split}
def strip(left, right): return {"type": "Strip", "strip_left": left, "strip_right": right}


def with_added(base):
    """base's added tokens and some that strip white space or match normalised text."""
    flags = dict(single_word=False, lstrip=False, rstrip=False, normalized=False, special=False)
    more = [dict(flags, content="<pad>" if base.startswith("unigram") else "hello", lstrip=True, rstrip=True), dict(flags, content="zqx", rstrip=True),
            dict(flags, content="\u00c5b", normalized=True), dict(flags, content="<q>", normalized=True, special=True)]
    raw = json.load(open(HERE / base / "tokenizer.json"))
    last = max(max(t["id"] for t in raw["added_tokens"]), len(raw["model"]["vocab"]) - 1)
    known = {t["content"] for t in raw["added_tokens"]} | set(raw["model"]["vocab"] if isinstance(raw["model"]["vocab"], dict) else [v[0] for v in raw["model"]["vocab"]])
    return raw["added_tokens"] + [dict(t, id=last + 1 + i) for i, t in enumerate(t for t in more if t["content"] not in known)]


def components():
    roberta = json.load(open(HERE / "bpe_roberta/tokenizer.json"))["post_processor"]
    for normalizer in (None, {"type": "NFC"}, {"type": "NFKC"}, {"type": "Lowercase"}, strip(True, True), chain("normalizers", {"type": "NFKC"}, strip(True, False), {"type": "Lowercase"}, SPACES)):
        yield "bpe_roberta", {"normalizer": normalizer}
    yield "bpe_roberta", {"pre_tokenizer": byte_level(True), "post_processor": dict(roberta, add_prefix_space=True)}
    yield "bpe_roberta", {"pre_tokenizer": byte_level(True), "post_processor": dict(roberta, trim_offsets=False)}
    yield "bpe_roberta", {"pre_tokenizer": byte_level(True), "post_processor": byte_level(True), "normalizer": {"type": "NFKC"}}
    yield "bpe_roberta", {"pre_tokenizer": byte_level(False, False)}
    yield "bpe_roberta", {"pre_tokenizer": chain("pretokenizers", CL100K, byte_level(True, False)), "post_processor": dict(roberta, add_prefix_space=True)}
    yield "bpe_roberta", {"pre_tokenizer": chain("pretokenizers", {"type": "WhitespaceSplit"}, byte_level(True, False))}
    yield "bpe_split", {"post_processor": chain("processors", byte_level(False), json.load(open(HERE / "bpe_split/tokenizer.json"))["post_processor"])}
    yield "bpe_split", {"model.ignore_merges": True, "model.merges": json.load(open(HERE / "bpe_split/tokenizer.json"))["model"]["merges"][:200]}
    yield "bpe_modernbert", {"normalizer": None}
    for scheme in ("always", "first", "never"):
        for split in (True, False):
            yield "unigram_precompiled", {"pre_tokenizer": metaspace(scheme, split)}
    for normalizer in ({"type": "Prepend", "prepend": "\u2581x"}, {"type": "Replace", "pattern": {"String": "a"}, "content": ""}, {"type": "Replace", "pattern": {"String": "th"}, "content": "s\u0301t"},
                       chain("normalizers", PRECOMPILED, strip(False, True), SPACES), chain("normalizers", {"type": "NFC"}, PRECOMPILED, {"type": "Lowercase"}, {"type": "Prepend", "prepend": "  "})):
        yield "unigram_precompiled", {"normalizer": normalizer}
        yield "unigram_nfkc", {"normalizer": normalizer, "pre_tokenizer": {"type": "WhitespaceSplit"}}


def changed(base, changes):
    raw = json.load(open(HERE / base / "tokenizer.json"))
    for field, value in changes.items():
        at = raw
        *path, last = field.split(".")
        for p in path: at = at[p]
        at[last] = value
    return Tokenizer.from_str(json.dumps(raw).replace('"precompiled_charsmap": ""', f'"precompiled_charsmap": "{CHARSMAP}"'))


def words_of(rnd):
    """Parts of texts for the regular expressions and the character map."""
    pools = [list("abcxyzABC"), ["the", "The", "ing", " un", "th", "'s", "'S", "'\u017f", "'re", "'VE", "'ll", "don't", "I'M "], list(".,-!?()<>#$"), list(" \t\n\r\u00a0\u2028\u0085\u3000"),
             ["  ", "   ", "\r\n", " \n ", "\n\n", "    "], list("0123456789") + ["12345", "\u0661\u0662", "\u00bd"], list("\x00\x01\x07\u200b\u200c\u200d\u00ad\ufffd\ue000\ufeff"),
             list("\u00e9\u00c9\u00fc\u00f1\u00c5\u01fb\u1ed9\u0130\u1e9e\u03a3\u017f\u01c5\u212a\u2126\u0344\u0f73\u0958\u1e9b"), list("\ud55c\uad6d\uae00\uac01\u1100\u1161\u11a8\uac00\uffa1\uffc2"),
             list("\u4e2d\u6587\uf900\u8c48\U0002f800"), list("\u0301\u0323\u0308\u0327\u0345\u302e\u3099\u309a\uff9e\u20dd\ufe0f\u09be\u0dcf\u093c"),
             list("\u304b\u30cf\uff76\uff8a\ufb01\ufb03\u2460\u2167\uff21\u00a8\u2026\u33a5\ufdfa\u1fc1\u2000\u2003\u00b4"), list("\U0001f600\U0001f468\u200d\U0001f1e9\U0001f1ea\u00a9\u00ae\U0001f3fd"),
             list("\u0928\u093f\u0915\u094d\u0937\u0e33\u0e01\u0600\u0605\u0b47\u0b3e\u0b57\u0cc6\u0cc2\u0cd5"), ["<mask>", "[MASK]", "<s>", "</s>", "[SEP]", "<unk>", "hello", "zqx", " zqx  ", "\u00c5b", "A\u030ab", "<S>", "  <mask>  "]]
    return rnd.sample(pools, rnd.randint(2, 6))


def random_text(rnd):
    chosen = words_of(rnd)
    return "".join(rnd.choice(rnd.choice(chosen)) for _ in range(rnd.randint(1, 30)))


def component_rows(n):
    rnd = random.Random(20261130)
    for base, changes in components():
        changes = {"added_tokens": with_added(base), **changes}
        tok, rows = changed(base, changes), []
        while len(rows) < n:
            text = random_text(rnd)
            e, at = tok.encode(text), byte_offset(text)
            rows.append({"text": text, "ids": e.ids, "offsets": [[at[s], at[t]] for s, t in e.offsets], "word_ids": e.word_ids})
        yield {"base": base, "changes": changes, "rows": rows}


def decode_rows(n):
    rnd = random.Random(20261201)
    cases = [(b, {}) for b in ("bert_uncased", "wordpiece_cased", "bpe_roberta", "bpe_modernbert", "unigram_precompiled", "unigram_nfkc")]
    cases += [("wordpiece_cased", {"decoder": {"type": "WordPiece", "prefix": "##", "cleanup": False}}), ("unigram_nfkc", {"decoder": metaspace("never")}),
              ("bpe_modernbert", {"added_tokens": with_added("bpe_modernbert"), "normalizer": {"type": "Lowercase"}})]
    for base, changes in cases:
        tok, rows = changed(base, changes), []
        vocab, wordlike = tok.get_vocab_size(), ["Don't do not", "it 's . , ? !", "a ' b n't 've 're 'm", "\u00e9\u4e2d\U0001f600"]
        for _ in range(n):
            ids = [rnd.randrange(vocab) for _ in range(rnd.randint(0, 12))] + tok.encode(rnd.choice(wordlike) + random_text(rnd)).ids
            if rnd.random() < .2: ids.insert(0, vocab + 5)
            if rnd.random() < .3: rnd.shuffle(ids)
            rows.append({"ids": ids, "text": tok.decode(ids, skip_special_tokens=False), "skipped": tok.decode(ids, skip_special_tokens=True)})
        yield {"base": base, "changes": changes, "rows": rows}


def write(name, rows):
    data = "".join(json.dumps(r, separators=(",", ":")) + "\n" for r in rows).encode()
    with open(HERE / name, "wb") as f, gzip.GzipFile(filename="", mode="wb", fileobj=f, mtime=0) as g:
        g.write(data)


def main():
    runs = combining_classes()
    (HERE / "combining_classes.json").write_text(json.dumps(runs, separators=(",", ":")).replace("],[", "],\n[") + "\n")
    write("options.jsonl.gz", options_rows(runs))
    write("components.jsonl.gz", component_rows(120))
    write("decode.jsonl.gz", decode_rows(60))


main()
