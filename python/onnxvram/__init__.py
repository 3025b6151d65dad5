"""How much GPU memory an ONNX model needs, and why.

    import onnxvram

    analysis = onnxvram.analyze("resnet50.onnx", batch=256)
    analysis.peak                               # bytes that are live at once, without weights
    analysis.runtimes["torch"]["total_bytes"]
    analysis.tensors                            # rows with name, shape, bytes and steps

Everything that a report shows is in `analysis.json`, as `onnxvram --json` writes it. Sizes are bytes.
"""
from ._analysis import Analysis, Tensor, diff, together
from ._analyze import analyze
from ._errors import (Cancelled, DeviceError, FileError, FormatError, LimitError, ModelError, OnnxvramError, OutOfMemory,
                      SizeOverflow, UsageError)
from ._library import version
from ._plans import Plan

__all__ = ["Analysis", "Cancelled", "DeviceError", "FileError", "FormatError", "LimitError", "ModelError", "OnnxvramError",
           "OutOfMemory", "Plan", "SizeOverflow", "Tensor", "UsageError", "analyze", "diff", "together", "version"]
__version__ = version()
