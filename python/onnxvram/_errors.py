"""Errors of the library as exceptions."""
from typing import Optional


class OnnxvramError(Exception):
    """What the library could not do. `node` and `op_type` say where in the model, where that is known."""

    def __init__(self, message: str, node: Optional[str] = None, op_type: Optional[str] = None):
        super().__init__(message)
        self.node, self.op_type = node, op_type


class OutOfMemory(OnnxvramError, MemoryError):
    """An allocation of the analysis itself failed."""


class FileError(OnnxvramError, OSError):
    """A file could not be opened, read or written."""


class FormatError(OnnxvramError):
    """Not an ONNX file, or a damaged one."""


class ModelError(OnnxvramError):
    """The model contradicts itself or the definitions of its operators."""


class LimitError(OnnxvramError):
    """A limit on work, memory or output was passed."""


class SizeOverflow(OnnxvramError, OverflowError):
    """A size does not fit 64 bits."""


class UsageError(OnnxvramError, ValueError):
    """An option that makes no sense, or not for this model."""


class RecordingError(OnnxvramError):
    """A network that cannot be recorded. `node` is the path of the module."""


class DeviceError(OnnxvramError):
    """A GPU, its driver or its memory."""


class Cancelled(OnnxvramError):
    """The analysis was ended before it was done."""
