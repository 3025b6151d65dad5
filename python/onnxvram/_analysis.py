"""An analysis of one model: `analyze()` and what it answers."""
import dataclasses
import html
import json
import os
from typing import Any, Dict, List, Optional, Tuple, Union

from ._errors import OnnxvramError, UsageError
from ._library import fail, ffi, lib
from ._options import Options

FORMATS = {"text": "TEXT", "json": "JSON", "csv": "CSV", "layers": "LAYERS", "markdown": "MARKDOWN",
           "checkpoints": "CHECKPOINTS", "formula": "FORMULA", "formula-python": "FORMULA_PYTHON", "formula-c": "FORMULA_C",
           "graph": "DUMP_GRAPH", "intervals": "DUMP_INTERVALS", "plan": "DUMP_PLAN", "trace": "DUMP_TRACE",
           "header": "DUMP_HEADER"}


@dataclasses.dataclass(frozen=True)
class Tensor:
    """A value of the graph. Sizes are None where they are not known; weights have no steps."""

    name: str
    kind: str
    dtype: str
    shape: Optional[Tuple[Union[int, str], ...]]
    bytes: Optional[int]
    first_step: Optional[int]
    last_step: Optional[int]
    alias_of: Optional[str]


@dataclasses.dataclass(frozen=True)
class Plan:
    """A checkpointing plan: what training with it takes, and the code that applies it."""

    name: str
    peak_bytes: int
    saved_activation_bytes: int
    recompute_macs: int
    overhead: float
    segments: Tuple[Tuple[str, str], ...]
    code: Optional[str]

    def apply(self, model: Any) -> Any:
        """Wraps the modules of a PyTorch network, in place, so that they run as the plan says."""
        if self.code is None:
            raise UsageError(f"the plan '{self.name}' has no code: ask for it with checkpoint='{self.name}'")
        exec(compile(self.code, f"<plan {self.name}>", "exec"), {"__name__": "onnxvram_plan", "model": model})
        return model


class Analysis:
    """What is known of one model. It holds memory of the library until it is closed or collected."""

    def __init__(self, handle: Any, keep: Tuple[Any, ...], name: str):
        self._handle = ffi.gc(handle, lib.onv_analysis_destroy)
        self._keep, self._name = keep, name
        self._json: Optional[Dict[str, Any]] = None

    def __enter__(self) -> "Analysis":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """Gives the memory back; what was read before stays."""
        if self._handle is not None:
            ffi.release(self._handle)
            self._handle = None

    def report(self, format: str = "text", *, width: int = 0, top: int = 0, verbose: bool = False) -> str:
        """The report as the program writes it: text, json, csv, layers, markdown, formula ..."""
        if format not in FORMATS:
            raise UsageError(f"expected one of {', '.join(FORMATS)}, found '{format}'")
        if self._handle is None:
            raise UsageError("the analysis is closed")
        parts: List[bytes] = []

        @ffi.callback("onv_write_fn")
        def write(_context: Any, text: Any, size: int) -> bool:
            parts.append(ffi.unpack(text, size))
            return True

        options = ffi.new("onv_report_options *")
        options.struct_size = ffi.sizeof("onv_report_options")
        options.width, options.top, options.verbosity, options.unicode = width, top, int(verbose), True
        error = ffi.new("onv_error *")
        models = ffi.new("onv_analysis *[]", [self._handle])
        status = lib.onv_report(ffi.cast("const onv_analysis *const *", models), 1,
                                getattr(lib, "ONV_FORMAT_" + FORMATS[format]), options, write, ffi.NULL, error)
        if status != lib.ONV_OK:
            fail(status, error, self._name)
        return b"".join(parts).decode("utf-8", "surrogateescape")

    @property
    def json(self) -> Dict[str, Any]:
        """The model's part of `onnxvram --json`, read once."""
        if self._json is None:
            self._json = json.loads(self.report("json"))["models"][0]
        return self._json

    @property
    def peak(self) -> Optional[int]:
        """Bytes that are live at once, without weights; None while a size is not known."""
        return self.json["peak"]["bytes"]

    @property
    def peak_step(self) -> int:
        return self.json["peak"]["step"]

    @property
    def peak_tensors(self) -> List[str]:
        return self.json["peak"]["tensors"]

    @property
    def weights(self) -> int:
        return self.json["parameters"]["bytes"]

    @property
    def macs(self) -> Optional[int]:
        return self.json["macs"]

    @property
    def tensors(self) -> List[Tensor]:
        fields = [field.name for field in dataclasses.fields(Tensor)]
        rows = []
        for row in self.json["tensors"]:
            values = {name: row.get(name) for name in fields}
            values["shape"] = tuple(values["shape"]) if values["shape"] is not None else None
            rows.append(Tensor(**values))
        return rows

    @property
    def nodes(self) -> List[Dict[str, Any]]:
        return self.json["nodes"]

    @property
    def runtimes(self) -> Dict[str, Dict[str, Any]]:
        """By name: ideal, arena, torch, ort, async, and train where it was asked for."""
        return self.json.get("runtimes", {})

    @property
    def training(self) -> Optional[Dict[str, Any]]:
        return self.json.get("training")

    @property
    def fits(self) -> Optional[bool]:
        """Whether it fits the budget, or one of several; None: there was none."""
        rows = self.json.get("fits") or ([self.json["fit"]] if "fit" in self.json else [])
        return any(row["fits"] for row in rows) if rows else None

    @property
    def max_batch(self) -> Optional[int]:
        return self.json.get("fit", {}).get("max_batch")

    @property
    def diagnostics(self) -> List[Dict[str, Any]]:
        return self.json["diagnostics"]

    @property
    def free_dims(self) -> List[Dict[str, Any]]:
        return self.json.get("free_dims", [])

    @property
    def plans(self) -> List[Plan]:
        """The checkpointing plans that were asked for, with the code of those that have some."""
        if self.training is None or "plans" not in self.training:
            return []
        codes = plan_codes(self.report("checkpoints"))
        return [Plan(name=row["name"], peak_bytes=row["peak_bytes"], saved_activation_bytes=row["saved_activation_bytes"],
                     recompute_macs=row["recompute_macs"], overhead=row["overhead"],
                     segments=tuple((first, last) for first, last in row["segments"]),
                     code=codes.get((row["name"], row["peak_bytes"]))) for row in self.training["plans"]]

    def to_pandas(self) -> Any:
        """The tensors as a pandas.DataFrame, a row each."""
        try:
            import pandas
        except ImportError as missing:
            raise OnnxvramError("to_pandas() needs pandas: pip install 'onnxvram[tables]'") from missing
        return pandas.DataFrame([dataclasses.asdict(tensor) for tensor in self.tensors])

    def live_bytes(self) -> Any:
        """What is live at each step, as a NumPy array where NumPy is installed, else a list."""
        values = [node["live_bytes"] for node in self.nodes]
        try:
            import numpy
        except ImportError:
            return values
        return numpy.array(values, dtype=numpy.float64 if None in values else numpy.uint64)

    def __repr__(self) -> str:
        return f"<onnxvram.Analysis of {self._name!r}: peak {self.peak}, weights {self.weights} bytes>"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.report('text', width=100))}</pre>"


def plan_codes(text: str) -> Dict[Tuple[str, int], str]:
    """The Python of each plan of a plan file, by name and peak."""
    codes: Dict[Tuple[str, int], str] = {}
    name, peak, lines = None, None, []  # type: Optional[str], Optional[int], List[str]
    for line in [*text.splitlines()[1:], "plan\t"]:
        key, _, value = line.partition("\t")
        if key == "plan":
            if name is not None and peak is not None and any(lines):
                codes[(name, peak)] = "\n".join(lines) + "\n"
            name, peak, lines = value, None, []
        elif key == "peak_bytes":
            peak = int(value)
        elif line.startswith("#") and name is not None:
            lines.append(line[2:])
    return codes


def read(model: Any) -> Tuple[Optional[bytes], str]:
    """Bytes and a name: of a path, of bytes, or of what has SerializeToString (onnx.ModelProto)."""
    if isinstance(model, (str, os.PathLike)):
        return None, os.fspath(model)
    if isinstance(model, (bytes, bytearray, memoryview)):
        return bytes(model), "model"
    if hasattr(model, "SerializeToString"):
        return model.SerializeToString(), "model"
    raise UsageError(f"expected a path, bytes or an onnx.ModelProto, found {type(model).__name__}")


def analyze(model: Any, **options: Any) -> Analysis:
    """Analyses `model`: a path, bytes, or an onnx.ModelProto.

    Options are those of the program: batch=8, dims={"sequence": 128}, shapes={"x": (1, 3, 224, 224)}, precision="fp16",
    runtimes="torch", budget="T4" or [..], max_batch=True, train="adamw", checkpoint="optimal", limits={"memory": 2**30} ...
    """
    made = Options(options)
    data, name = read(model)
    error = ffi.new("onv_error *")
    handle = ffi.new("onv_analysis **")
    path = os.fsencode(name)
    if data is None:
        status = lib.onv_analysis_new(path, made.struct, handle, error)
    else:
        data = ffi.from_buffer(data)
        status = lib.onv_analysis_new_from_memory(data, len(data), path, made.struct, handle, error)
    if status != lib.ONV_OK:
        fail(status, error, name)
    return Analysis(handle[0], (made, data), name)
