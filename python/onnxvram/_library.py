"""The shared library beside this file, through cffi without a compiler (ABI mode)."""
import inspect
import os
import re
from typing import Any, Callable, List, NoReturn, Optional

from . import _errors
from ._interface import ffi as made_ffi  # made from the public header when the package is built

ffi: Any = made_ffi
lib: Any = ffi.dlopen(os.path.join(os.path.dirname(os.path.abspath(__file__)), "libonnxvram.so"))

KINDS = {"MEMORY": _errors.OutOfMemory, "IO": _errors.FileError, "FORMAT": _errors.FormatError, "MODEL": _errors.ModelError,
         "LIMIT": _errors.LimitError, "OVERFLOW": _errors.SizeOverflow, "USAGE": _errors.UsageError,
         "DEVICE": _errors.DeviceError, "CANCELLED": _errors.Cancelled}


def text(pointer: Any) -> str:
    """Text of a model is bytes; what is no UTF-8 comes back as surrogates, as in names of files."""
    made: str = ffi.string(pointer).decode("utf-8", "surrogateescape")
    return made


def printable(given: str) -> str:
    """Safe to show on a terminal: text of a model may hold anything."""
    raw = given.encode("utf-8", "surrogateescape")
    room = ffi.new("char[]", 8 * len(raw) + 1)
    lib.onv_printable(ffi.new("char[]", raw), room, len(room))
    return text(room)


def version() -> str:
    return text(lib.onv_version())


PAIRS = {"dim": "dims", "limit": "limits", "shape": "shapes", "input-value": "input_values"}


def in_python(message: str) -> str:
    """A message with the keywords of analyze() in place of the options of the command line: `--dim M=N` is dims={'M': N}."""
    from ._analyze import analyze
    known = inspect.signature(analyze).parameters

    def pair(found: "re.Match[str]") -> str:
        return f"{PAIRS[found[1]]}={{'{found[2]}': {found[3]}}}"

    def keyword(found: "re.Match[str]") -> str:
        name = PAIRS.get(found[1], found[1].replace("-", "_"))
        return name + ("=" if found[2] else "") if name in known else found[0]

    message = re.sub(r"--(dim|limit|shape|input-value) ([^\s=,;]+)=([^\s,;]+)", pair, message)
    return re.sub(r"(?<![\w-])--([a-z][a-z-]*[a-z])([ =](?=[A-Z0-9]))?", keyword, message)


def fail(status: int, error: Any, name: str) -> NoReturn:
    node, op_type = text(error.node), text(error.op_type)
    place = f"node '{node}'{f' ({op_type})' if op_type else ''}: " if node else ""
    kind = _errors.OnnxvramError
    for code, found in KINDS.items():
        if status == getattr(lib, "ONV_ERR_" + code):
            kind = found
    raise kind(printable(f"{name}: {place}{in_python(text(error.message))}"), node or None, op_type or None)


class Calls:
    """Functions that the library calls back. What one of them raises, KeyboardInterrupt included, ends the call of the
    library and is raised behind it."""

    def __init__(self) -> None:
        self.raised: Optional[BaseException] = None
        self.made: List[Any] = []

    def add(self, kind: str, function: Callable[..., Any], otherwise: Any = None) -> Any:
        """`otherwise` is what the library gets where `function` raises."""
        made = ffi.callback(kind, function, onerror=self._note, **({} if otherwise is None else {"error": otherwise}))
        self.made.append(made)
        return made

    def _note(self, _kind: Any, raised: BaseException, _trace: Any) -> None:
        self.raised = self.raised or raised

    def check(self) -> None:
        if self.raised is not None:
            raised, self.raised = self.raised, None
            raise raised
