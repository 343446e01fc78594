"""Runs other vector indexes for `sluice bench search --peers`, one thread each.

    python search.py --rows FILE --queries FILE --dims N --cache DIR [--peers NAME,NAME]

FILEs are float32 vectors of unit length, row after row. An index is built once and kept in DIR, with a note of what
it took. Prints one JSON line {"peers": {NAME: {"settings": [...], "filters": BOOL, "build_cpu_s": S, "bytes": N}},
"versions": {...}}, then answers requests, a JSON line each:

    {"peer": NAME, "setting": S, "filters": [FILE, ...], "queries": N, "passes": P, "k": K, "each": BOOL}

A setting is the length of a graph's candidate list or the number of lists to visit. FILEs hold the rows allowed,
uint32, ascending; the i-th of the first N queries is asked under the i-th of the F filters, modulo F. No filter: all
rows. The answer is {"seconds": S, "cpu_seconds": S, "hits": [[row, ...], ...]}, times of one pass of P. All queries of a
filter are one call, which spares Python's own time, after one query to warm up. If "each" is set they are then asked
again one by one: "times" and "cpu_times" are the seconds of each. An empty line ends it.

Selections are made ready beforehand and not timed: faiss has a bitmap, or for its plain float32 index an array of
rows, of which it looks at no others; hnswlib's filter is a Python function, far slower than its own mark of deletion,
so what is not allowed is marked as deleted; usearch's Python has no filter.
"""

import argparse
import importlib.metadata
import json
import pathlib
import sys
import time

import faiss
import hnswlib
import numpy as np
import usearch.index

LINKS, CANDIDATES = 16, 200  # of a graph under construction: the usual choice
WIDTHS = [10, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 1024]


class Faiss:
    filters = True

    def __init__(self, recipe, settings):
        self.recipe, self.settings = recipe, settings

    def build(self, vectors):
        index = faiss.index_factory(vectors.shape[1], self.recipe, faiss.METRIC_INNER_PRODUCT)
        if "HNSW" in self.recipe:
            index.hnsw.efConstruction = CANDIDATES
        index.train(vectors)
        index.add(vectors)
        self.index = index

    def save(self, path):
        faiss.write_index(self.index, path)

    def load(self, path, dims):
        self.index = faiss.read_index(path)

    def select(self, allowed):
        if allowed is None:
            self.selector = None
        elif self.recipe == "Flat":
            self.selector = faiss.IDSelectorArray(allowed.astype(np.int64))
        else:
            bits = np.zeros(-(-self.index.ntotal // 8) * 8, np.uint8)
            bits[allowed] = 1
            self.selector = faiss.IDSelectorBitmap(np.packbits(bits, bitorder="little"))

    def set(self, setting):
        if "HNSW" in self.recipe:
            self.parameters = faiss.SearchParametersHNSW(efSearch=setting, sel=self.selector)
        elif "IVF" in self.recipe:
            self.parameters = faiss.SearchParametersIVF(nprobe=setting, sel=self.selector)
        else:
            self.parameters = faiss.SearchParameters(sel=self.selector) if self.selector else None

    def search(self, queries, k):
        return self.index.search(queries, k, params=self.parameters)[1]


class Hnswlib:
    filters, settings = True, WIDTHS

    def __init__(self):
        self.deleted = np.zeros(0, np.uint32)

    def build(self, vectors):
        self.index = hnswlib.Index("ip", vectors.shape[1])
        self.index.init_index(len(vectors), M=LINKS, ef_construction=CANDIDATES, random_seed=1)
        self.index.add_items(vectors, num_threads=1)

    def save(self, path):
        self.index.save_index(path)

    def load(self, path, dims):
        self.index = hnswlib.Index("ip", dims)
        self.index.load_index(path)

    def select(self, allowed):
        everything = np.arange(self.index.get_current_count(), dtype=np.uint32)
        unwanted = everything[:0] if allowed is None else np.setdiff1d(everything, allowed, assume_unique=True)
        for row in np.setdiff1d(self.deleted, unwanted, assume_unique=True).tolist():
            self.index.unmark_deleted(row)
        for row in np.setdiff1d(unwanted, self.deleted, assume_unique=True).tolist():
            self.index.mark_deleted(row)
        self.deleted = unwanted

    def set(self, setting):
        self.index.set_ef(setting)

    def search(self, queries, k):
        try:
            return self.index.knn_query(queries, k, num_threads=1)[0].astype(np.int64)
        except RuntimeError:  # one of the queries found fewer than k
            return np.concatenate([self.one(query, k) for query in queries])

    def one(self, query, k):
        try:
            return self.index.knn_query(query, k, num_threads=1)[0].astype(np.int64)
        except RuntimeError:
            return np.full((1, k), -1)


class Usearch:
    filters, settings = False, WIDTHS

    def empty(self, dims):
        return usearch.index.Index(ndim=dims, metric="ip", dtype="i8", connectivity=LINKS, expansion_add=CANDIDATES)

    def build(self, vectors):
        self.index = self.empty(vectors.shape[1])
        self.index.add(np.arange(len(vectors)), vectors, threads=1)

    def save(self, path):
        self.index.save(path)

    def load(self, path, dims):
        self.index = self.empty(dims)
        self.index.load(path)

    def select(self, allowed):
        assert allowed is None

    def set(self, setting):
        self.index.expansion_search = setting

    def search(self, queries, k):
        return self.index.search(queries, k, threads=1).keys.reshape(len(queries), -1).astype(np.int64)


PROBES = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]
PEERS = {
    "hnswlib": Hnswlib(),
    "faiss_flat": Faiss("Flat", [0]),
    "faiss_sq8": Faiss("SQ8", [0]),
    "faiss_ivf_flat": Faiss("IVF2048,Flat", PROBES),
    "faiss_ivf_sq8": Faiss("IVF2048,SQ8", PROBES),
    "faiss_hnsw_sq8": Faiss(f"HNSW{LINKS}_SQ8", WIDTHS),
    "faiss_hnsw": Faiss(f"HNSW{LINKS}", WIDTHS),
    "usearch": Usearch(),
}


def prepare(peer, name, vectors, cache):
    """Builds or loads a peer's index; returns what building it took."""
    package = name.split("_")[0].replace("faiss", "faiss-cpu")
    stem = f"{name}-{importlib.metadata.version(package)}"
    path, note = cache / f"{stem}.index", cache / f"{stem}.json"
    if note.exists():
        peer.load(str(path), vectors.shape[1])
        return json.loads(note.read_text())
    print(f"building {name}", file=sys.stderr, flush=True)
    cpu = time.process_time()
    peer.build(vectors)
    took = {"build_cpu_s": time.process_time() - cpu}
    peer.save(str(path))
    took["bytes"] = path.stat().st_size
    note.write_text(json.dumps(took))
    print(f"built {name}: {took}", file=sys.stderr, flush=True)
    return took


def ask(peer, queries, k, turn, places, passes, each):
    """Adds to a turn what the queries at some places found, and took."""
    some = np.ascontiguousarray(queries[places])
    peer.search(some[:1], k)
    cpu, start = time.process_time(), time.perf_counter()
    for _ in range(passes):
        found = peer.search(some, k)
    turn["seconds"] += (time.perf_counter() - start) / passes
    turn["cpu_seconds"] += (time.process_time() - cpu) / passes
    for at, rows in zip(places, found.tolist()):
        turn["hits"][at] = [row for row in rows if row >= 0]
    for at in places if each else []:
        query = queries[at : at + 1]
        cpu, start = time.process_time(), time.perf_counter()
        peer.search(query, k)
        turn["times"][at] = time.perf_counter() - start
        turn["cpu_times"][at] = time.process_time() - cpu


def answer(peer, queries, request):
    n, filters = request["queries"], request["filters"] or [None]
    turn = {"seconds": 0.0, "cpu_seconds": 0.0, "hits": [[]] * n, "times": [0.0] * n, "cpu_times": [0.0] * n}
    for i, path in enumerate(filters):
        peer.select(None if path is None else np.fromfile(path, np.uint32))
        peer.set(request["setting"])
        ask(peer, queries, request["k"], turn, range(i, n, len(filters)), request["passes"], request["each"])
    return turn


def say(value):
    print(json.dumps(value), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", required=True, help="file of vectors to search among")
    parser.add_argument("--queries", required=True, help="file of vectors to search for")
    parser.add_argument("--dims", required=True, type=int)
    parser.add_argument("--cache", required=True, type=pathlib.Path, help="folder that keeps built indexes")
    parser.add_argument("--peers", default=",".join(PEERS), help="which of them")
    arguments = parser.parse_args()
    faiss.omp_set_num_threads(1)
    vectors = np.memmap(arguments.rows, np.float32, "r").reshape(-1, arguments.dims)
    queries = np.fromfile(arguments.queries, np.float32).reshape(-1, arguments.dims)
    peers = {}
    for name in arguments.peers.split(","):
        took = prepare(PEERS[name], name, vectors, arguments.cache)
        peers[name] = {"settings": PEERS[name].settings, "filters": PEERS[name].filters, **took}
    say({"peers": peers, "versions": {p: importlib.metadata.version(p) for p in ("faiss-cpu", "hnswlib", "usearch")}})
    for line in sys.stdin:
        if not line.strip():
            return
        request = json.loads(line)
        say(answer(PEERS[request["peer"]], queries, request))


if __name__ == "__main__":
    main()
