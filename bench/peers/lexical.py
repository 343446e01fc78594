"""Runs other text search engines for `sluice bench lexical --peers`.

    python lexical.py --passages FILE

FILE has a JSON line per passage: {"terms": "analysed terms, by spaces", "class": N, "filters": ["1", ...]}.
Prints one JSON line {"peers": [...], "versions": {...}, "build_cpu_seconds": S, "segments": N}, then answers
requests, a JSON line each: {"peer": NAME, "queries": [["term", ...], ...], "k": K, "filter": NAME or "",
"classes": [...], "results": BOOL} with {"seconds": [one per query], "cpu_seconds": ALL, "hits": [[passage, ...],
...]}, hits only if asked for. Queries are built beforehand: only the search is timed. An empty line ends it.

Peers: tantivy, filtered in two ways: "tantivy" by one term that exactly the allowed passages have, the cheapest
filter there can be, and "tantivy_set" by the set of the allowed classes.
"""

import argparse
import json
import sys
import tempfile
import time

import tantivy


def build(path, folder):
    """Indexes the passages into one segment."""
    schema = (
        tantivy.SchemaBuilder()
        .add_unsigned_field("id", stored=True)
        .add_text_field("terms", tokenizer_name="whitespace", index_option="freq")
        .add_unsigned_field("class", indexed=True, fast=True)
        .add_text_field("filter", tokenizer_name="raw", index_option="basic")
        .build()
    )
    index = tantivy.Index(schema, path=folder)
    writer = index.writer(heap_size=2_000_000_000, num_threads=1)
    with open(path) as lines:
        for i, line in enumerate(lines):
            passage = json.loads(line)
            document = tantivy.Document(id=i, terms=passage["terms"])
            document.add_unsigned("class", passage["class"])
            for name in passage["filters"]:
                document.add_text("filter", name)
            writer.add_document(document)
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    return schema, index.searcher()


def filtered(schema, query, request):
    if not request["filter"]:
        return query
    if request["peer"] == "tantivy_set":
        allowed = tantivy.Query.term_set_query(schema, "class", request["classes"])
    else:
        allowed = tantivy.Query.term_query(schema, "filter", request["filter"])
    allowed = tantivy.Query.const_score_query(allowed, 0.0)
    return tantivy.Query.boolean_query([(tantivy.Occur.Must, allowed), (tantivy.Occur.Must, query)])


def query_of(schema, terms):
    return tantivy.Query.boolean_query(
        [(tantivy.Occur.Should, tantivy.Query.term_query(schema, "terms", term)) for term in terms]
    )


def answer(schema, searcher, request):
    queries = [filtered(schema, query_of(schema, terms), request) for terms in request["queries"]]
    seconds, found, cpu = [], [], time.process_time()
    for query in queries:
        start = time.perf_counter()
        found.append(searcher.search(query, request["k"], count=False).hits)
        seconds.append(time.perf_counter() - start)
    cpu = time.process_time() - cpu
    result = {"seconds": seconds, "cpu_seconds": cpu}
    if request["results"]:
        result["hits"] = [[searcher.doc(at)["id"][0] for _, at in hits] for hits in found]
    return result


def say(value):
    print(json.dumps(value), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--passages", required=True, help="file of passages")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        cpu = time.process_time()
        schema, searcher = build(arguments.passages, folder)
        say({
            "peers": ["tantivy", "tantivy_set"],
            "versions": {"tantivy": tantivy.__version__},
            "build_cpu_seconds": time.process_time() - cpu,
            "segments": searcher.num_segments,
        })
        for line in sys.stdin:
            if not line.strip():
                return
            say(answer(schema, searcher, json.loads(line)))


if __name__ == "__main__":
    main()
