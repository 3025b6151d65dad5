"""The files that a network's user would have: default exports, the older exporter's, the archive and the recording.

    NAME.train.onnx, NAME.eval.onnx          torch.onnx.export(model, args, dynamo=True), the model in both modes
    NAME.older.train.onnx, .older.eval.onnx  torch.onnx.export(model, args, dynamo=False)
    NAME.archive.json.gz                     torch.export, dims 0 dynamic where that can be exported
    NAME.recording.json.gz                   onnxvram.record, dims 0 dynamic likewise

Weights are left out, and paths in notes are shortened, so that files are the same wherever they are made.
"""
import contextlib
import gzip
import inspect
import io
import os
import site
import sys
import tempfile
import types
import warnings

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOLDERS = sorted({*site.getsitepackages(), os.path.join(ROOT, "tests")}, key=len, reverse=True)
# The Python package of this checkout, without the shared library that the rest of it needs.
sys.modules["onnxvram"] = types.ModuleType("onnxvram")
sys.modules["onnxvram"].__path__ = [os.path.join(ROOT, "python", "onnxvram")]


def shortened(text):
    for folder in FOLDERS:
        text = text.replace(folder + "/", "")
    return text


def made(network, train):
    import torch
    torch.manual_seed(0)
    model, inputs = network.make(), network.inputs(network.batch)
    dtype = getattr(torch, network.dtype)
    if dtype != torch.float32:
        model, inputs = model.to(dtype), tuple(x.to(dtype) if x.is_floating_point() else x for x in inputs)
    return model.train(train), inputs


def strip(path):
    """The model without its weights, in one file."""
    import onnx
    model = onnx.load(path, load_external_data=False)
    for tensor in model.graph.initializer:
        if tensor.data_location != onnx.TensorProto.EXTERNAL and len(tensor.raw_data) > 1024:
            tensor.ClearField("raw_data")
            tensor.data_location = onnx.TensorProto.EXTERNAL
            tensor.external_data.add(key="location", value="weights")
    def walk(graph):
        for node in graph.node:
            for note in node.metadata_props:
                note.value = shortened(note.value)
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    walk(attribute.g)
    walk(model.graph)
    for function in model.functions:
        for node in function.node:
            for note in node.metadata_props:
                note.value = shortened(note.value)
    for note in model.metadata_props:
        note.value = shortened(note.value)
    onnx.save(model, path)
    with contextlib.suppress(FileNotFoundError):
        os.remove(path + ".data")


def onnx_file(network, path, train, dynamo):
    import torch
    model, inputs = made(network, train)
    if dynamo:
        torch.onnx.export(model, inputs, dynamo=True, verbose=False).save(path, external_data=True)
    else:
        mode = torch.onnx.TrainingMode.TRAINING if train else torch.onnx.TrainingMode.EVAL
        torch.onnx.export(model, inputs, path, dynamo=False, training=mode, do_constant_folding=not train)
    strip(path)


def by_batch(model, inputs, dim):
    """Dynamic shapes with that dim in front; those of `forward(self, *inputs)` are one argument."""
    shapes = tuple({0: dim} for _ in inputs)
    kinds = [p.kind for p in inspect.signature(model.forward).parameters.values()]
    return (shapes,) if kinds == [inspect.Parameter.VAR_POSITIONAL] else shapes


def shorten(path):
    with gzip.open(path) as file:
        text = shortened(file.read().decode())
    with open(path, "wb") as file:
        file.write(gzip.compress(text.encode(), 9, mtime=0))


def archive(network, path):
    """True: its batch is a symbol."""
    import torch
    from onnxvram import _record
    model, inputs = made(network, True)
    try:
        program, dynamic = torch.export.export(model, inputs, dynamic_shapes=by_batch(model, inputs, torch.export.Dim("batch"))), True
    except Exception:
        model, inputs = made(network, True)
        program, dynamic = torch.export.export(model, inputs), False
    _record.save_program(program, path)
    shorten(path)
    return dynamic


def recording(network, path):
    from onnxvram import _errors, _record
    model, inputs = made(network, True)
    try:
        _record.record(model, inputs, dynamic_shapes=by_batch(model, inputs, "batch"), path=path)
        dynamic = True
    except _errors.RecordingError:
        _record.record(model, inputs, path=path)
        dynamic = False
    shorten(path)
    return dynamic


MAKERS = {"recording": (".recording.json.gz", recording), "archive": (".archive.json.gz", archive),
          "train": (".train.onnx", lambda n, p: onnx_file(n, p, True, True)),
          "eval": (".eval.onnx", lambda n, p: onnx_file(n, p, False, True)),
          "older.train": (".older.train.onnx", lambda n, p: onnx_file(n, p, True, False)),
          "older.eval": (".older.eval.onnx", lambda n, p: onnx_file(n, p, False, False))}


def make(kind, network, base):
    """What there is to say of the file."""
    suffix, maker = MAKERS[kind]
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        dynamic = maker(network, base + suffix)
    return {"bytes": os.path.getsize(base + suffix), **({} if dynamic is None else {"dynamic": dynamic})}


def warm(kinds):
    """PyTorch imports much when it first exports; the processes that make files are forked after that."""
    from torch import nn

    from .networks.common import Network, values
    with tempfile.TemporaryDirectory() as folder:
        for kind in kinds:
            make(kind, Network("warm", lambda: nn.Sequential(nn.Linear(4, 4), nn.ReLU()), values(4)), os.path.join(folder, "warm"))
