"""Runs other engines for `sluice bench embed --peers` and `sluice bench rerank --peers`.

    python embed.py --model DIR --threads N [--output embedding|logits]

Prints one JSON line {"peers": [...], "versions": {...}}, then answers requests, a JSON line each:
{"peer": NAME, "ids": [[...]], "runs": N} with {"seconds": WALL, "cpu_seconds": CPU, "times": [...],
"vectors": [[...]]}; seconds are those of all runs together, after one that is not counted, and times of each. Sequences of unequal length are
padded to the longest, in batches of at most 32 ("batch" says otherwise). An empty line ends it.
"""

import argparse
import json
import sys
import tempfile
import time

import numpy as np
import onnxruntime
import openvino
from onnxruntime.quantization import QuantType, quantize_dynamic

import graph


def onnxruntime_peer(model, threads):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return lambda feed: session.run(None, feed)[0]


def openvino_peer(model, threads, precision):
    core = openvino.Core()
    settings = {
        "INFERENCE_PRECISION_HINT": precision,
        "INFERENCE_NUM_THREADS": threads,
        "PERFORMANCE_HINT": "LATENCY",
    }
    request = core.compile_model(core.read_model(model, b""), "CPU", settings).create_infer_request()
    return lambda feed: request.infer(feed)[0]


def quantized(model):
    """ONNX Runtime's dynamic int8, weights by channel, as its own tool makes it."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = folder + "/f32.onnx", folder + "/int8.onnx"
        with open(source, "wb") as file:
            file.write(model)
        quantize_dynamic(source, target, weight_type=QuantType.QInt8, per_channel=True)
        with open(target, "rb") as file:
            return file.read()


def open_peers(directory, threads, output):
    model = graph.build(directory, output).SerializeToString()
    return {
        "onnxruntime_f32": onnxruntime_peer(model, threads),
        "onnxruntime_int8": onnxruntime_peer(quantized(model), threads),
        "openvino_f32": openvino_peer(model, threads, "f32"),
        "openvino_bf16": openvino_peer(model, threads, "bf16"),
    }


def feeds(ids, batch):
    """Pads batches of sequences to their longest."""
    for start in range(0, len(ids), batch):
        rows = ids[start : start + batch]
        shape = (len(rows), max(map(len, rows)))
        tokens, mask = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        for i, row in enumerate(rows):
            tokens[i, : len(row)], mask[i, : len(row)] = row, 1
        yield {"input_ids": tokens, "attention_mask": mask, "token_type_ids": np.zeros(shape, np.int64)}


def answer(run, request):
    batches = list(feeds(request["ids"], request.get("batch", 32)))
    vectors = [row.tolist() for feed in batches for row in np.array(run(feed))]
    times, wall, cpu = [], time.perf_counter(), time.process_time()
    for _ in range(request["runs"]):
        began = time.perf_counter()
        for feed in batches:
            run(feed)
        times.append(time.perf_counter() - began)
    return {
        "times": times,
        "seconds": time.perf_counter() - wall,
        "cpu_seconds": time.process_time() - cpu,
        "vectors": vectors,
    }


def say(value):
    print(json.dumps(value), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True, help="folder with config.json and model.safetensors")
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--output", default="embedding", choices=["embedding", "logits"])
    arguments = parser.parse_args()
    peers = open_peers(arguments.model, arguments.threads, arguments.output)
    say({
        "peers": list(peers),
        "versions": {"onnxruntime": onnxruntime.__version__, "openvino": openvino.__version__},
    })
    for line in sys.stdin:
        if not line.strip():
            return
        request = json.loads(line)
        say(answer(peers[request["peer"]], request))


if __name__ == "__main__":
    main()
