"""Runs other embedding servers for `sluice bench serve --peers`.

    python serve.py --model DIR --threads N [--engines torch_bf16,...]

Serves the model in DIR with infinity, one server per engine, and prints one JSON line when all answer:
{"peers": {NAME: {"url": ..., "pid": ...}}, "versions": {...}}; POST url takes an OpenAI embedding request
for the model "peer". The servers end with this program's input.
"""

import argparse
import importlib.metadata
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

from onnxruntime.quantization import QuantType, quantize_dynamic

import graph

ENGINES = {
    "infinity_torch_f32": ["--engine", "torch", "--dtype", "float32"],
    "infinity_torch_bf16": ["--engine", "torch", "--dtype", "bfloat16"],
    "infinity_onnxruntime_f32": ["--engine", "optimum"],
    "infinity_onnxruntime_int8": ["--engine", "optimum"],
}
PATIENCE = 600  # seconds until a server answers


def with_onnx(model, folder, quantized):
    """Copies the model and puts the ONNX file beside it that infinity's optimum engine wants."""
    target = pathlib.Path(folder) / "peer"
    shutil.copytree(model, target)
    f32, int8 = target / "model.onnx", target / "model_quantized.onnx"
    f32.write_bytes(graph.build(model, "last_hidden_state").SerializeToString())
    if quantized:
        quantize_dynamic(str(f32), str(int8), weight_type=QuantType.QInt8, per_channel=True)
        f32.unlink()
    return target


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def start(name, model, threads, folder):
    port, settings = free_port(), ENGINES[name]
    if "optimum" in settings:
        model = with_onnx(model, folder, name.endswith("int8"))
    environment = dict(
        os.environ, OMP_NUM_THREADS=str(threads), HF_HUB_OFFLINE="1", HF_HOME=folder, DO_NOT_TRACK="1",
        INFINITY_ANONYMOUS_USAGE_STATS="0", TOKENIZERS_PARALLELISM="false",
    )
    command = [
        str(pathlib.Path(sys.executable).parent / "infinity_emb"), "v2", "--model-id", ".",  # optimum finds the file so only
        "--served-model-name", "peer", "--device", "cpu", "--host", "127.0.0.1", "--port", str(port),
        "--no-model-warmup", "--log-level", "warning", *settings,
    ]
    process = subprocess.Popen(command, env=environment, cwd=model, stdin=subprocess.DEVNULL, stdout=sys.stderr)
    return process, f"http://127.0.0.1:{port}"


def await_answer(process, url):
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return urllib.request.urlopen(url + "/health", timeout=5).read()
        except (urllib.error.URLError, OSError):
            if process.poll() is not None:
                sys.exit(f"the server ended with status {process.returncode}")
            if time.monotonic() > deadline:
                sys.exit(f"the server did not answer within {PATIENCE} s")
            time.sleep(0.2)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True, help="folder of the model")
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--engines", default=",".join(ENGINES))
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by a signal"))  # and ends the servers
    servers = {}
    with tempfile.TemporaryDirectory() as root:
        try:
            for name in arguments.engines.split(","):
                folder = pathlib.Path(root) / name
                folder.mkdir()
                servers[name] = start(name, arguments.model, arguments.threads, str(folder))
            for process, url in servers.values():
                await_answer(process, url)
            print(json.dumps({
                "peers": {n: {"url": u + "/embeddings", "pid": p.pid} for n, (p, u) in servers.items()},
                "versions": {n: importlib.metadata.version(n) for n in ("infinity-emb", "torch", "onnxruntime")},
            }), flush=True)
            sys.stdin.read()
        finally:
            for process, _ in servers.values():
                process.terminate()
            for process, _ in servers.values():
                process.wait()


if __name__ == "__main__":
    main()
