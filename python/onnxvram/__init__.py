"""How much GPU memory an ONNX model needs, and why.

    import onnxvram

    analysis = onnxvram.analyze("resnet50.onnx", batch=256)
    analysis.answer["high_bytes"]               # on the device, at most: context and libraries included
    analysis.peak                               # bytes that are live at once, without weights
    analysis.tensors                            # rows with name, shape, bytes and steps

    onnxvram.estimate(model, (x,), batch=32, train="adamw", budget="RTX 4090")   # a network of PyTorch, without a file

Everything that a report shows is in `analysis.json`, as `onnxvram --json` writes it. Sizes are bytes.
"""
from ._analysis import Analysis, LargestBatch, Module, Placement, Tensor, diff, together
from ._analyze import analyze
from ._errors import (Cancelled, DeviceError, FileError, FormatError, LimitError, ModelError, OnnxvramError, OutOfMemory,
                      RecordingError, SizeOverflow, UsageError)
from ._estimate import estimate, from_torch
from ._library import version
from ._planner import Held, Offsets, Order, allocators, order, plan, simulate
from ._plans import Plan
from ._record import record, save_program

__all__ = ["Analysis", "Cancelled", "DeviceError", "FileError", "FormatError", "Held", "LimitError", "ModelError", "Module",
           "LargestBatch", "Offsets", "OnnxvramError", "Order", "OutOfMemory", "Placement", "Plan", "RecordingError", "SizeOverflow", "Tensor",
           "UsageError", "allocators", "analyze", "diff", "estimate", "from_torch", "order", "plan", "record",
           "save_program", "simulate", "together", "version"]
__version__ = version()
