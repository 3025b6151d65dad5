"""Other programs that infer shapes: model -> {output: (type or None, shape)}.

A shape is None where nothing is said, else a list whose members are numbers or None. A type of None was not told.
"""
import io
import contextlib
import logging
import warnings

import onnx

from cases import NAMES


def numbers_of(value):
    tensor = value.type.tensor_type
    if value.type.WhichOneof("value") != "tensor_type" or not tensor.HasField("shape"):
        return None, None
    dims = [dim.dim_value if dim.HasField("dim_value") else None for dim in tensor.shape.dim]
    return NAMES.get(tensor.elem_type) if tensor.elem_type else None, dims


def outputs_of(model):
    return {value.name: numbers_of(value) for value in model.graph.output}


def by_onnx(model):
    return outputs_of(onnx.shape_inference.infer_shapes(model, strict_mode=False, data_prop=True))


def by_onnxruntime(model):
    from onnxruntime.tools.symbolic_shape_infer import SymbolicShapeInference
    logging.disable(logging.CRITICAL)
    return outputs_of(SymbolicShapeInference.infer_shapes(model, auto_merge=True))


def by_onnx_shape_inference(model):
    import onnx_ir
    from onnx_shape_inference import infer_symbolic_shapes
    logging.disable(logging.CRITICAL)
    result = infer_symbolic_shapes(onnx_ir.from_proto(model))
    found = {}
    for value in result.graph.outputs:
        dims = None if value.shape is None else [d if isinstance(d, int) else None for d in value.shape]
        found[value.name] = (NAMES.get(value.dtype.value) if value.dtype else None, dims)
    return found


def by_onnx_tool(model):
    import onnx_tool
    graph = onnx_tool.Model(model, {"verbose": False}).graph
    graph.shape_infer()
    found = {}
    for name in graph.output:
        tensor = graph.tensormap.get(name)
        shape = tensor.get_shape() if tensor is not None else None
        if shape is not None:
            shape = [int(d) if not isinstance(d, str) else None for d in shape]
        # What it did not get to has the shape of a scalar; scalars are told as unknown then.
        found[name] = (None, shape or None)
    return found


PEERS = {
    "onnx": ("onnx", by_onnx),
    "ORT symbolic": ("onnxruntime", by_onnxruntime),
    "onnx-shape-inference": ("onnx-shape-inference", by_onnx_shape_inference),
    "onnx-tool": ("onnx-tool", by_onnx_tool),
}


def ask(peer, model):
    """What the peer finds, or the text of its failure."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        return PEERS[peer][1](model)
