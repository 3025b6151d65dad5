"""The shared library beside this file, through cffi without a compiler (ABI mode)."""
import os
from typing import Any, NoReturn

from . import _errors
from ._interface import ffi  # made from the public header when the package is built

lib: Any = ffi.dlopen(os.path.join(os.path.dirname(os.path.abspath(__file__)), "libonnxvram.so"))


def version() -> str:
    return text(lib.onv_version())


def text(pointer: Any) -> str:
    """Text of a model is bytes; what is no UTF-8 comes back as surrogates, as in names of files."""
    return ffi.string(pointer).decode("utf-8", "surrogateescape")


def fail(status: int, error: Any, path: str) -> NoReturn:
    message, node = text(error.message), text(error.node)
    if node:
        message = f"node '{node}' ({text(error.op_type)}): {message}" if error.op_type[0] != b"\0" else f"node '{node}': {message}"
    kinds = {lib.ONV_ERR_FORMAT: _errors.FormatError, lib.ONV_ERR_MODEL: _errors.ModelError,
             lib.ONV_ERR_LIMIT: _errors.LimitError, lib.ONV_ERR_OVERFLOW: _errors.OverflowedError,
             lib.ONV_ERR_USAGE: _errors.UsageError, lib.ONV_ERR_DEVICE: _errors.DeviceError,
             lib.ONV_ERR_CANCELLED: _errors.Cancelled}
    if status == lib.ONV_ERR_MEMORY:
        raise MemoryError(f"{path}: {message}")
    if status == lib.ONV_ERR_IO:
        raise OSError(f"{path}: {message}")
    raise kinds.get(status, _errors.OnnxvramError)(f"{path}: {message}", node or None, text(error.op_type) or None)
