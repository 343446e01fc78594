"""Builds a BERT encoder as an ONNX graph straight from safetensors.

Inputs: input_ids, attention_mask, token_type_ids, int64 [batch, sequence]. The output is one of
embedding, float32 [batch, hidden], mean-pooled under the mask and of unit length;
logits, float32 [batch, labels], of a sequence classifier;
last_hidden_state, float32 [batch, sequence, hidden].
"""

import json
import pathlib
import struct

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 20


def read_safetensors(path):
    """Maps tensor names to float32 arrays; the format is a JSON header and raw data."""
    data = pathlib.Path(path).read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + size])
    tensors = {}
    for name, info in header.items():
        if name == "__metadata__" or info["dtype"] != "F32":
            continue
        start, end = info["data_offsets"]
        values = np.frombuffer(data[8 + size + start : 8 + size + end], np.float32)
        tensors[name.removeprefix("bert.")] = values.reshape(info["shape"])
    return tensors


class Builder:
    """Collects nodes and initializers; every method returns an output's name."""

    def __init__(self, tensors):
        self.tensors, self.nodes, self.constants = tensors, [], {}

    def constant(self, name, value):
        if name not in self.constants:
            self.constants[name] = numpy_helper.from_array(np.ascontiguousarray(value), name)
        return name

    def add(self, op, *inputs, **attributes):
        output = f"{op}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [output], **attributes))
        return output

    def dense(self, x, name):
        weight = self.constant(name + ".weight", self.tensors[name + ".weight"].T)
        product = self.add("MatMul", x, weight)
        return self.add("Add", product, self.constant(name + ".bias", self.tensors[name + ".bias"]))

    def norm(self, x, name, epsilon):
        gain = self.constant(name + ".weight", self.tensors[name + ".weight"])
        bias = self.constant(name + ".bias", self.tensors[name + ".bias"])
        return self.add("LayerNormalization", x, gain, bias, axis=-1, epsilon=epsilon)

    def embeddings(self, epsilon):
        tables = {k: f"embeddings.{k}_embeddings.weight" for k in ("word", "position", "token_type")}
        for table in tables.values():
            self.constant(table, self.tensors[table])
        word = self.add("Gather", tables["word"], "input_ids")
        kind = self.add("Gather", tables["token_type"], "token_type_ids")
        start = self.constant("start", np.array([0], np.int64))
        length = self.add("Shape", "input_ids", start=1, end=2)
        place = self.add("Slice", tables["position"], start, length, start)
        x = self.add("Add", self.add("Add", word, kind), place)
        return self.norm(x, "embeddings.LayerNorm", epsilon)

    def heads(self, x, shape, order):
        return self.add("Transpose", self.add("Reshape", x, shape), perm=order)

    def attention(self, x, name, mask, heads, hidden):
        shape = self.constant("split", np.array([0, 0, heads, hidden // heads], np.int64))
        query = self.heads(self.dense(x, name + ".self.query"), shape, [0, 2, 1, 3])
        key = self.heads(self.dense(x, name + ".self.key"), shape, [0, 2, 3, 1])
        value = self.heads(self.dense(x, name + ".self.value"), shape, [0, 2, 1, 3])
        root = self.constant("root", np.float32((hidden // heads) ** 0.5))
        scores = self.add("Add", self.add("Div", self.add("MatMul", query, key), root), mask)
        context = self.add("MatMul", self.add("Softmax", scores, axis=-1), value)
        joined = self.add("Transpose", context, perm=[0, 2, 1, 3])
        joined = self.add("Reshape", joined, self.constant("join", np.array([0, 0, hidden], np.int64)))
        return self.dense(joined, name + ".output.dense")

    def layer(self, x, name, mask, config):
        heads, hidden, epsilon = config["num_attention_heads"], config["hidden_size"], config["layer_norm_eps"]
        attended = self.attention(x, name + "attention", mask, heads, hidden)
        x = self.norm(self.add("Add", attended, x), name + "attention.output.LayerNorm", epsilon)
        middle = self.add("Gelu", self.dense(x, name + "intermediate.dense"))
        return self.norm(self.add("Add", self.dense(middle, name + "output.dense"), x), name + "output.LayerNorm", epsilon)

    def mask(self):
        axes = self.constant("mask axes", np.array([1, 2], np.int64))
        wide = self.add("Cast", self.add("Unsqueeze", "attention_mask", axes), to=TensorProto.FLOAT)
        inverse = self.add("Sub", self.constant("one float", np.float32(1)), wide)
        return self.add("Mul", inverse, self.constant("lowest", np.float32(-1e9)))

    def pool(self, x):
        last, middle = self.constant("last", np.array([2], np.int64)), self.constant("middle", np.array([1], np.int64))
        weights = self.add("Cast", self.add("Unsqueeze", "attention_mask", last), to=TensorProto.FLOAT)
        total = self.add("ReduceSum", self.add("Mul", x, weights), middle, keepdims=0)
        return self.add("LpNormalization", total, axis=-1, p=2)  # a sum's direction is the mean's

    def classify(self, x):
        first = self.add("Gather", x, self.constant("first", np.array([0], np.int64)), axis=1)
        first = self.add("Squeeze", first, self.constant("middle", np.array([1], np.int64)))
        pooled = self.add("Tanh", self.dense(first, "pooler.dense"))
        return self.dense(pooled, "classifier")


def build(directory, output="embedding"):
    """Returns the ONNX model of the encoder in directory."""
    directory = pathlib.Path(directory)
    config = json.loads((directory / "config.json").read_text())
    b = Builder(read_safetensors(directory / "model.safetensors"))
    mask = b.mask()
    x = b.embeddings(config["layer_norm_eps"])
    for i in range(config["num_hidden_layers"]):
        x = b.layer(x, f"encoder.layer.{i}.", mask, config)
    head, shape = {
        "embedding": (b.pool, ["batch", config["hidden_size"]]),
        "logits": (b.classify, ["batch", "labels"]),
        "last_hidden_state": (lambda x: x, ["batch", "sequence", config["hidden_size"]]),
    }[output]
    b.nodes.append(helper.make_node("Identity", [head(x)], [output]))
    names = ("input_ids", "attention_mask", "token_type_ids")
    inputs = [helper.make_tensor_value_info(n, TensorProto.INT64, ["batch", "sequence"]) for n in names]
    outputs = [helper.make_tensor_value_info(output, TensorProto.FLOAT, shape)]
    graph = helper.make_graph(b.nodes, "encoder", inputs, outputs, list(b.constants.values()))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9)
    onnx.checker.check_model(model)
    return model
