"""How long other tools take from a model file to its shapes.

    shape_inference.py onnx|onnx_tool MODEL.onnx

Prints three times in milliseconds: from the file to the tool's own graph; the first shape inference,
which also sets up the tool; and the least of some more, where that is quick. Starting Python and
importing the tool are in none; weights outside the file are not read.
"""
import sys
import time

import onnx


def seconds(work):
    start = time.perf_counter()
    result = work()
    return result, time.perf_counter() - start


def first_and_again(work):
    _, first = seconds(work)
    again, spent = first, first
    while spent < 2:
        _, took = seconds(work)
        again, spent = min(again, took), spent + took
    return first, again


def with_onnx(path):
    model, reading = seconds(lambda: onnx.load(path, load_external_data=False))
    return reading, *first_and_again(lambda: onnx.shape_inference.infer_shapes(model))


def with_onnx_tool(path):
    import numpy
    import onnx_tool

    model, reading = seconds(lambda: onnx.load(path, load_external_data=False))
    # Its graph reads every initializer, so those outside the file become zeros; not counted.
    for tensor in model.graph.initializer:
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            tensor.ClearField("external_data")
            tensor.ClearField("data_location")
            tensor.raw_data = bytes(4 * int(numpy.prod(tensor.dims, dtype=numpy.int64)))
    inputs = {
        port.name: numpy.zeros(
            [dim.dim_value or 1 for dim in port.type.tensor_type.shape.dim], numpy.float32)
        for port in model.graph.input
    }
    tool, building = seconds(lambda: onnx_tool.Model(model, {"verbose": False}))
    return reading + building, *first_and_again(lambda: tool.graph.shape_infer(inputs))


def main():
    tool, path = sys.argv[1:]
    times = {"onnx": with_onnx, "onnx_tool": with_onnx_tool}[tool](path)
    print(*(f"{time * 1e3:.1f}" for time in times))


main()
