#!/usr/bin/env python3
"""Record what a model's tensors really measure, as ONNX Runtime produced them.

Each node runs by itself on the CPU (nested.py, which has the definitions of the peak), so each recorded shape is one that a
kernel wrote, never one that was inferred.  Initializers and the outputs of Constant nodes are weights and no live bytes;
nothing is aliased and nothing is rounded, but for sub-byte types, which round up to a byte once per tensor.

Weights that the file refers to and that are absent are replaced by seeded random numbers: no shape depends on them.

    ort_truth.py MODEL.onnx --bind batch=8 [--bind seq=16] [--value NAME=3] [-o OUT.json]
"""

import argparse
import json
import os
import sys

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

import nested

# Bits of one element.  Strings have no size of their own and count as nothing.
BITS = {
    TensorProto.FLOAT: 32, TensorProto.UINT8: 8, TensorProto.INT8: 8, TensorProto.UINT16: 16, TensorProto.INT16: 16,
    TensorProto.INT32: 32, TensorProto.INT64: 64, TensorProto.STRING: 0, TensorProto.BOOL: 8,
    TensorProto.FLOAT16: 16, TensorProto.DOUBLE: 64, TensorProto.UINT32: 32, TensorProto.UINT64: 64,
    TensorProto.COMPLEX64: 64, TensorProto.COMPLEX128: 128, TensorProto.BFLOAT16: 16, TensorProto.FLOAT8E4M3FN: 8,
    TensorProto.FLOAT8E4M3FNUZ: 8, TensorProto.FLOAT8E5M2: 8, TensorProto.FLOAT8E5M2FNUZ: 8, TensorProto.UINT4: 4,
    TensorProto.INT4: 4, TensorProto.FLOAT4E2M1: 4, getattr(TensorProto, "FLOAT8E8M0", -1): 8,
    getattr(TensorProto, "INT2", -2): 2, getattr(TensorProto, "UINT2", -3): 2,
}


def tensor_bytes(dtype, shape):
    return (int(np.prod(shape, dtype=object)) * BITS[dtype] + 7) // 8


# --- the graph's own facts --------------------------------------------------------------------------------------------

def subgraphs(node):
    for attribute in node.attribute:
        if attribute.type == onnx.AttributeProto.GRAPH:
            yield attribute.g
        elif attribute.type == onnx.AttributeProto.GRAPHS:
            yield from attribute.graphs


def weight_names(graph):
    names = {i.name for i in graph.initializer} | {s.values.name for s in graph.sparse_initializer}
    for node in graph.node:
        if node.op_type == "Constant" and node.domain in ("", "ai.onnx"):
            names |= set(node.output)
    return names


def is_data_dependent(graph):
    """Whether some shape hangs on the numbers in a tensor, so that other input gives other sizes."""
    counting = {"NonZero", "NonMaxSuppression", "Unique", "Compress"}
    return any(node.op_type in counting for inner in every_graph(graph) for node in inner.node)


# --- loading ----------------------------------------------------------------------------------------------------------

def every_graph(graph):
    yield graph
    for node in graph.node:
        for inner in subgraphs(node):
            yield from every_graph(inner)


def fill_absent_weights(model, seed=0):
    """Give random values to external tensors.  They stay within (0.01, 0.02), so that variances are positive."""
    rng = np.random.default_rng(seed)
    for graph in every_graph(model.graph):
        for tensor in graph.initializer:
            if tensor.data_location != TensorProto.EXTERNAL:
                continue
            dtype = helper.tensor_dtype_to_np_dtype(tensor.data_type)
            if np.dtype(dtype).kind in "iub":
                values = np.zeros(tuple(tensor.dims), dtype)
            else:
                values = rng.uniform(0.01, 0.02, tuple(tensor.dims)).astype(dtype)
            tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))


def load(path):
    """The model with its weights, or with random ones where the file that holds them is absent."""
    try:
        return onnx.load(path)
    except (FileNotFoundError, onnx.checker.ValidationError):
        model = onnx.load(path, load_external_data=False)
        fill_absent_weights(model)
        return model


def bind(model, binds):
    """Write numbers in place of the symbols of the inputs."""
    weights = weight_names(model.graph)
    for value in model.graph.input:
        if value.name in weights or not value.type.HasField("tensor_type"):
            continue
        for position, dim in enumerate(value.type.tensor_type.shape.dim):
            if dim.HasField("dim_value"):
                continue
            if dim.dim_param not in binds:
                raise SystemExit(f"input {value.name}, dim {position}: nothing binds {dim.dim_param or 'it'!r}")
            dim.dim_value = binds[dim.dim_param]


# --- measuring --------------------------------------------------------------------------------------------------------

def feeds_for(graph, values):
    """Floats are random, integers 1 and booleans true, unless a value is given."""
    rng = np.random.default_rng(0)
    feeds = {}
    weights = weight_names(graph)
    for value in graph.input:
        if value.name in weights:
            continue
        dtype = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        shape = tuple(d.dim_value for d in value.type.tensor_type.shape.dim)
        if value.name in values:
            feeds[value.name] = np.full(shape, values[value.name], dtype)
        elif np.dtype(dtype).kind in "iub":
            feeds[value.name] = np.ones(shape, dtype)
        else:
            feeds[value.name] = rng.random(shape, np.float32).astype(dtype)
    return feeds


def run_everything(model, feeds):
    """name -> (dtype, shape) of every node output.  The model gains outputs here and is of no further use."""
    graph = model.graph
    known = {o.name for o in graph.output}
    wanted = [name for node in graph.node for name in node.output if name]
    graph.output.extend(onnx.ValueInfoProto(name=name) for name in wanted if name not in known)
    # Shapes that the file declares would only be compared with the real ones, and warned about.
    del graph.value_info[:]
    session = nested.session(model)
    feeds = {name: ort.OrtValue.ortvalue_from_numpy(array) for name, array in feeds.items()}
    results = session.run_with_ort_values(wanted, feeds)
    types = {}
    for name, result in zip(wanted, results):
        if result.is_tensor():
            types[name] = (result.element_type(), list(result.shape()))
    return types


def light_copy(model):
    """The model with the data of its large tensors left out, for inference that never looks at it."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for tensor in copy.graph.initializer:
        if len(tensor.raw_data) > 4096:
            tensor.ClearField("raw_data")
            tensor.data_location = TensorProto.EXTERNAL
            tensor.external_data.add(key="location", value="weights.bin")
    del copy.graph.value_info[:]
    return copy


def record(path, binds, values=None):
    """The truth of one model at one set of bindings, ready for JSON. What has more than one shape, in iterations or branches,
    is in `bounds`, the largest."""
    model = load(path)
    bind(model, binds)
    found, peak, steps, (elems, weight_bytes) = nested.measure(model, feeds_for(model.graph, values or {}))
    return {
        "model": os.path.basename(path),
        "binds": dict(binds),
        "shapes": {name: value.shape for name, value in found.items()},
        "bounds": sorted(name for name, value in found.items() if value.differs),
        "data_dependent": is_data_dependent(model.graph),
        "peak": peak,
        "weight_elems": elems,
        "weight_bytes": weight_bytes,
        "nodes": steps,
        "source": f"onnxruntime {ort.__version__}, node by node",
    }


def write(truth, path):
    with open(path, "w") as out:
        json.dump(truth, out, separators=(",", ":"))
        out.write("\n")


def key_of(binds):
    """batch=1, seq=16 -> batch1_seq16"""
    return "_".join(f"{name}{number}" for name, number in binds.items()) or "fixed"


def pairs(texts):
    return {name: int(number) for name, number in (text.split("=") for text in texts)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model")
    parser.add_argument("--bind", action="append", default=[], metavar="NAME=N")
    parser.add_argument("--value", action="append", default=[], metavar="INPUT=V", help="fill an integer input with V")
    parser.add_argument("-o", "--output", help="default: standard output")
    args = parser.parse_args()
    truth = record(args.model, pairs(args.bind), pairs(args.value))
    write(truth, args.output or sys.stdout.fileno())


if __name__ == "__main__":
    main()
