"""How much GPU memory an ONNX model needs, and why.

    import onnxvram

    analysis = onnxvram.analyze("resnet50.onnx", batch=256)
    analysis.peak            # bytes that are live at once, without weights
    analysis.runtimes["torch"]["total_bytes"]
    analysis.tensors         # rows with name, shape, bytes and steps

Everything that a report shows is in `analysis.json`, as `onnxvram --json` writes it. Sizes are bytes.
"""
from ._analysis import Analysis, Plan, Tensor, analyze
from ._errors import (Cancelled, DeviceError, FormatError, LimitError, ModelError, OnnxvramError, OverflowedError,
                      UsageError)
from ._library import version

__all__ = ["Analysis", "Cancelled", "DeviceError", "FormatError", "LimitError", "ModelError", "OnnxvramError",
           "OverflowedError", "Plan", "Tensor", "UsageError", "analyze", "version"]
__version__ = version()
