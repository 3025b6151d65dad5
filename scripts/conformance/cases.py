"""The ONNX backend tests as cases: a model without its own answers, and the outputs that are right.

A case is a folder with model.onnx and test_data_set_0/{input,output}_N.pb, as onnx generates and Debian's
libonnx-testdata installs them; the folder `light` holds models beside their output.
"""
import pathlib
import sys

import onnx
from onnx import TensorProto, helper

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "export"))
import ort_truth as truth  # noqa: E402

MODES = {
    "side": "inputs of rank 0 and 1 are constants",
    "none": "no contents are known",
    "all": "every input is a constant",
}

# The names that onnxvram's JSON uses.
NAMES = {number: name.lower() for name, number in TensorProto.DataType.items()}
NAMES[TensorProto.FLOAT] = "float32"
NAMES[TensorProto.DOUBLE] = "float64"

MESSAGES = {"sequence_type": onnx.SequenceProto, "optional_type": onnx.OptionalProto, "map_type": onnx.MapProto,
            "tensor_type": TensorProto, "sparse_tensor_type": onnx.SparseTensorProto}


class Case:
    """`answers`: output name -> message of its contents."""

    def __init__(self, name, path, inputs, outputs):
        self.name = name
        self.model = onnx.load(path)
        self.contents = {}
        self.answers = {}
        weights = {tensor.name for tensor in self.model.graph.initializer}
        fed = [value for value in self.model.graph.input if value.name not in weights]
        if inputs and len(inputs) > len(fed):
            fed = list(self.model.graph.input)
        for value, file in zip(fed, inputs):
            self.contents[value.name] = read(value, file)
        for value, file in zip(self.model.graph.output, outputs):
            self.answers[value.name] = read(value, file)


def read(value, path):
    message = MESSAGES[value.type.WhichOneof("value")]()
    message.ParseFromString(path.read_bytes())
    # Old tests store what numpy had no type for as integers of its width.
    if isinstance(message, TensorProto) and value.type.tensor_type.elem_type:
        message.data_type = value.type.tensor_type.elem_type
    return message


def number_of(path):
    return int(path.stem.rsplit("_", 1)[1])


def find(root):
    """Paths of cases: (name, model, inputs, outputs)."""
    root = pathlib.Path(root)
    for model in sorted(root.rglob("model.onnx")):
        data = model.parent / "test_data_set_0"
        files = [sorted(data.glob(f"{kind}_*.pb"), key=number_of) for kind in ("input", "output")]
        if files[1]:
            yield f"{model.parent.parent.name}/{model.parent.name}", model, *files
    for model in sorted(root.rglob("light_*.onnx")):
        outputs = sorted(model.parent.glob(f"{model.stem}_output_*.pb"), key=number_of)
        if outputs:
            yield f"light/{model.stem}", model, [], outputs


def forget(value):
    """Keep what kind of value it is and the type of its elements, drop every size."""
    kind = value.type.WhichOneof("value")
    while kind in ("sequence_type", "optional_type"):
        inner = getattr(value.type if hasattr(value, "type") else value, kind).elem_type
        value, kind = inner, inner.WhichOneof("value")
    holder = value.type if hasattr(value, "type") else value
    if kind in ("tensor_type", "sparse_tensor_type"):
        getattr(holder, kind).ClearField("shape")


def prepare(case, mode, typed):
    """The model as `mode` shows it. Without `typed` not even the types of its outputs are told."""
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    graph = model.graph
    del graph.value_info[:]
    for value in graph.output:
        if typed:
            forget(value)
        else:
            value.ClearField("type")
    kept = []
    for value in graph.input:
        content = case.contents.get(value.name)
        if isinstance(content, TensorProto):
            constant = mode == "all" or (mode == "side" and len(content.dims) < 2)
            if constant:
                tensor = graph.initializer.add()
                tensor.CopyFrom(content)
                tensor.name = value.name
                continue
            value.CopyFrom(helper.make_tensor_value_info(value.name, content.data_type, list(content.dims)))
        kept.append(onnx.ValueInfoProto.FromString(value.SerializeToString()))
    if len(kept) < len(graph.input):
        del graph.input[:]
        graph.input.extend(kept)
        model.ir_version = max(model.ir_version, 4)  # before, an initializer had to be an input too
    return model


# --- answers ----------------------------------------------------------------------------------------------------------

def element_type(message):
    """Text of the type of a content, as onnxvram spells it; None where the content does not tell."""
    if isinstance(message, TensorProto):
        return NAMES[message.data_type]
    if isinstance(message, onnx.SequenceProto):
        elems = message.tensor_values or message.sequence_values or message.optional_values
        return f"sequence({element_type(elems[0])})" if elems else None
    if isinstance(message, onnx.OptionalProto):
        kind = onnx.OptionalProto.DataType.Name(message.elem_type)
        if kind == "TENSOR" and message.tensor_value.data_type:
            return f"optional({element_type(message.tensor_value)})"
        if kind == "SEQUENCE":
            inner = element_type(message.sequence_value)
            return inner and f"optional({inner})"
    return None


def size_of(message):
    """Bytes of a content."""
    if isinstance(message, TensorProto):
        return truth.tensor_bytes(message.data_type, message.dims)
    if isinstance(message, onnx.SequenceProto):
        return sum(map(size_of, (*message.tensor_values, *message.sequence_values, *message.optional_values)))
    if isinstance(message, onnx.OptionalProto):
        return sum(size_of(getattr(message, field)) for field in ("tensor_value", "sequence_value")
                   if message.HasField(field))
    return 0
