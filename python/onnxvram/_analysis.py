"""An analysis of one model, and what it answers."""
import base64
import dataclasses
import html
import json
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Sequence, Tuple, Union

from ._errors import OnnxvramError, OutOfMemory, UsageError
from ._library import Calls, fail, ffi, lib, printable, text
from ._options import Path
from ._plans import Plan, plans_of

if TYPE_CHECKING:
    import pandas

Json = Dict[str, Any]
UNKNOWN = 2 ** 64 - 1  # ONV_SIZE_UNKNOWN

FORMATS = {"text": "TEXT", "json": "JSON", "csv": "CSV", "layers": "LAYERS", "markdown": "MARKDOWN", "html": "HTML",
           "checkpoints": "CHECKPOINTS", "checkpoints-python": "CHECKPOINTS_PYTHON", "ort-partition": "ORT_PARTITION", "formula": "FORMULA",
           "svg": "SVG", "formula-python": "FORMULA_PYTHON", "formula-c": "FORMULA_C", "onnx": "ONNX", "graph": "DUMP_GRAPH",
           "intervals": "DUMP_INTERVALS", "plan": "DUMP_PLAN", "trace": "DUMP_TRACE", "replay": "DUMP_REPLAY",
           "header": "DUMP_HEADER", "memory-viz": "MEMORY_VIZ", "perfetto": "PERFETTO",
           "model-explorer": "MODEL_EXPLORER", "measured": "MEASURED"}
FORMATS = {name: code for name, code in FORMATS.items() if hasattr(lib, "ONV_FORMAT_" + code)}
DIFFS = {"text": "DIFF", "markdown": "DIFF_MARKDOWN", "json": "DIFF_JSON"}


@dataclasses.dataclass(frozen=True)
class Tensor:
    """A value of the graph. `bytes` and parts of `shape` are not known while dims are free; weights have no steps."""

    name: str
    kind: str
    dtype: Optional[str]
    shape: Optional[Tuple[Union[int, str], ...]]
    bytes: Optional[int]
    first_step: Optional[int]
    last_step: Optional[int]
    alias_of: Optional[str]
    bound: bool = False
    format: Optional[str] = None


@dataclasses.dataclass(frozen=True)
class Placement:
    """A tensor in one block of memory, from its first step through its last."""

    name: str
    offset: int
    bytes: int
    first_step: int
    last_step: int


@dataclasses.dataclass(frozen=True)
class Module:
    """With everything inside. `parent` is its index in the list, None of the model itself."""

    name: str
    parent: Optional[int]
    depth: int
    parameters: int
    macs: Optional[int]
    activation_bytes: int


class LargestBatch(int):
    """A number of samples, with the runtime and the GPU, or the budget, in which it is the largest."""

    runtime: str
    gpu: str

    def __new__(cls, batch: int, runtime: str, gpu: str) -> "LargestBatch":
        made = super().__new__(cls, batch)
        made.runtime, made.gpu = runtime, gpu
        return made

    def __repr__(self) -> str:
        return f"{int(self)} ({self.runtime}, {self.gpu})"


class Analysis:
    """What is known of one model; `onnxvram.analyze()` makes it. It holds memory of the library until it is closed (it is a
    context manager) or collected. What was read from it stays."""

    def __init__(self, holder: Any, name: str, has_timelines: bool = False):
        self._holder, self._name, self._has_timelines = holder, name, has_timelines
        self._json: Optional[Json] = None

    def __enter__(self) -> "Analysis":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """Gives the memory back; `json`, and what is read from it, stays where it was asked for before."""
        holder, self._holder = self._holder, None
        if holder is not None:
            ffi.release(holder)

    @property
    def handle(self) -> Any:
        """The library's onv_analysis, for calls of its C interface."""
        if self._holder is None:
            raise UsageError(f"the analysis of {self._name} is closed")
        return self._holder[0]

    def report(self, format: str = "text", *, width: int = 0, top: int = 0, verbosity: int = 0, color: bool = False) -> str:
        """A report as the program writes it: text, json, csv, layers, markdown, html, formula, intervals ..."""
        return b"".join(self._parts(format, width, top, verbosity, color)).decode("utf-8", "surrogateescape")

    def write(self, path: Path, format: str = "text", *, width: int = 0, top: int = 0, verbosity: int = 0) -> None:
        """The same into a file; bytes too: "onnx" of an analysis with onnx_out=True, "memory-viz" with timelines=True."""
        parts = self._parts(format, width, top, verbosity, False)
        with open(path, "wb") as file:
            file.writelines(parts)

    def _parts(self, format: str, width: int, top: int, verbosity: int, color: bool) -> List[bytes]:
        if format not in FORMATS:
            raise UsageError(f"expected one of {', '.join(FORMATS)}, found {format!r}")
        return write_report([self], "ONV_FORMAT_" + FORMATS[format], width=width, top=top, verbosity=verbosity, color=color)

    @property
    def json(self) -> Json:
        """The model's part of `onnxvram --json`, read once; report.schema.json beside this file describes it."""
        if self._json is None:
            self._json = json.loads(self.report("json"))["models"][0]
        return self._json

    @property
    def answer(self) -> Json:
        """What is needed, as every report says it: runtime, gpu, low_bytes, high_bytes, fits (None without a budget), set_by,
        warnings; by runtime in `runtimes`, by budget in `devices`. runtime is None while a size is not known."""
        found: Json = self.json["answer"]
        return found

    @property
    def peak(self) -> Optional[int]:
        """Bytes that are live at once, without weights; None while a size is not known."""
        found: Optional[int] = self.json["peak"]["bytes"]
        return found

    @property
    def peak_step(self) -> int:
        found: int = self.json["peak"]["step"]
        return found

    @property
    def peak_tensors(self) -> List[Tensor]:
        """What is live at the peak, the largest first."""
        tensors = {tensor.name: tensor for tensor in self.tensors}
        return [tensors[name] for name in self.json["peak"]["tensors"]]

    @property
    def placements(self) -> List[Placement]:
        """Where the runtime arena places what lives: one block above the weights. Empty where it is not among the runtimes, or
        a size is not known."""
        rows, info = [], ffi.new("onv_tensor_info *")
        for i in range(lib.onv_analysis_tensor_count(self.handle)):
            if not lib.onv_analysis_tensor_get(self.handle, i, info, ffi.sizeof("onv_tensor_info")):
                raise OutOfMemory(f"no memory for the tensors of {self._name}")
            if info.live and info.offset != UNKNOWN:
                rows.append(Placement(text(info.name), info.offset, info.bytes, info.first_step, info.last_step))
        return rows

    def modules(self, depth: int = 0) -> List[Module]:
        """The modules of the network, found again from names: the model first, each behind the one around it; up to `depth`
        deep, 0 is all."""
        made, error, info = ffi.new("onv_module_table **"), ffi.new("onv_error *"), ffi.new("onv_module_info *")
        status = lib.onv_module_table_new(self.handle, depth, made, error)
        if status != lib.ONV_OK:
            fail(status, error, self._name)
        rows: List[Module] = []
        try:
            while lib.onv_module_table_get(made[0], len(rows), info, ffi.sizeof("onv_module_info")):
                rows.append(Module(text(info.name), info.parent if rows else None, info.depth, info.parameters,
                                   info.macs if info.macs != UNKNOWN else None, info.activation_bytes))
        finally:
            lib.onv_module_table_destroy(made[0])
        return rows

    @property
    def weights(self) -> int:
        """Bytes of the weights, shared ones once."""
        found: int = self.json["parameters"]["bytes"]
        return found

    @property
    def parameters(self) -> int:
        """Elements of the weights."""
        found: int = self.json["parameters"]["count"]
        return found

    @property
    def macs(self) -> Optional[int]:
        """Multiply-accumulates."""
        found: Optional[int] = self.json["macs"]
        return found

    @property
    def tensors(self) -> List[Tensor]:
        names = [field.name for field in dataclasses.fields(Tensor)]
        rows = []
        for row in self.json["tensors"]:
            values = {name: row[name] for name in names if name in row}
            values["shape"] = tuple(values["shape"]) if values["shape"] is not None else None
            rows.append(Tensor(**values))
        return rows

    @property
    def nodes(self) -> List[Json]:
        found: List[Json] = self.json["nodes"]
        return found

    @property
    def runtimes(self) -> Dict[str, Json]:
        """Figures by runtime: ideal, arena, torch, ort, async. None are there while a size is not known."""
        found: Dict[str, Json] = self.json.get("runtimes", {})
        return found

    @property
    def training(self) -> Optional[Json]:
        found: Optional[Json] = self.json.get("training")
        return found

    @property
    def plans(self) -> List[Plan]:
        """The checkpointing plans that were asked for."""
        rows = (self.training or {}).get("plans", [])
        return plans_of(rows)

    @property
    def fits(self) -> Optional[bool]:
        """Whether it fits the budget, or one of several; None: there was none, or a size is not known."""
        rows = self.answer.get("devices", [])
        return any(row["fits"] for row in rows) if rows else None

    @property
    def max_batch(self) -> Optional["LargestBatch"]:
        """The largest batch that fits the first budget, in the runtime that ends there; 0: none does; None: it was not asked
        for. `max_batches` has each GPU and runtime."""
        return min((row for row in self.max_batches if row.gpu == self.max_batches[0].gpu), default=None)

    @property
    def max_batches(self) -> List["LargestBatch"]:
        """The largest batch of each runtime, by budget."""
        rows = [(device["device"], row) for device in self.answer.get("devices", []) for row in device.get("runtimes", [])]
        return [LargestBatch(row["max_batch"], row["runtime"], gpu) for gpu, row in rows if "max_batch" in row]

    @property
    def kv_cache(self) -> Optional[Json]:
        found: Optional[Json] = self.json.get("kv_cache")
        return found

    @property
    def savings(self) -> List[Json]:
        """Changes that make the peak smaller, of an analysis with savings=True."""
        found: List[Json] = self.json.get("savings", [])
        return found

    @property
    def free_dims(self) -> List[Json]:
        """What is not bound, with the option that binds it."""
        found: List[Json] = self.json.get("free_dims", [])
        return found

    @property
    def diagnostics(self) -> List[Json]:
        found: List[Json] = self.json["diagnostics"]
        return found

    def to_pandas(self) -> "pandas.DataFrame":
        """The tensors as a table, a row each."""
        try:
            import pandas
        except ImportError as missing:
            raise OnnxvramError("to_pandas() needs pandas: pip install 'onnxvram[tables]'") from missing
        names = [field.name for field in dataclasses.fields(Tensor)]
        table = pandas.DataFrame([dataclasses.astuple(tensor) for tensor in self.tensors], columns=names)
        return table.astype({name: "Int64" for name in ("bytes", "first_step", "last_step")})

    def live_bytes(self) -> Any:
        """What is live at each step: a NumPy array where NumPy is installed, else a list. Steps with a size that is not
        known are NaN, and None."""
        values: List[Optional[int]] = [node["live_bytes"] for node in self.nodes]
        try:
            import numpy
        except ImportError:
            return values
        return numpy.array(values, dtype=numpy.float64 if None in values else numpy.uint64)

    def __repr__(self) -> str:
        if self._holder is None and self._json is None:
            return f"<onnxvram.Analysis of {self._name!r}: closed>"
        return f"<onnxvram.Analysis of {self._name!r}: peak {self.peak}, weights {self.weights} bytes>"

    def _repr_html_(self) -> str:
        """For notebooks: what is needed as a table, and the picture of live memory, in which nothing can run."""
        columns = ("runtime", "low_bytes", "high_bytes", "fits", "set_by")
        many = self.answer.get("devices") or [self.answer]
        why = {row["runtime"]: row.get("set_by") for row in self.answer.get("runtimes", [])}
        rows = [{"gpu": device["gpu"], "set_by": why.get(row["runtime"]), **row} for device in many
                for row in device.get("runtimes", [])]
        titles = ("GPU", "runtime", "at least", "at most", "fits", "set by")
        lines = ["<tr>" + "".join(f"<th>{title}</th>" for title in titles) + "</tr>"]
        for row in rows:
            cells = [row["gpu"], *(shown(name, row.get(name)) for name in columns)]
            lines.append("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>")
        if not rows:  # a size is not known: the text says which
            return f"<pre>{html.escape(self.report('text', width=100))}</pre>"
        picture = base64.b64encode(self.report("svg").encode("utf-8", "surrogateescape")).decode()
        return (f"<p><b>{html.escape(printable(self._name))}</b></p><table>{''.join(lines)}</table>"
                f'<img alt="live memory" style="max-width: 100%" src="data:image/svg+xml;base64,{picture}">')


def shown(name: str, value: Any) -> str:
    """A cell of the table."""
    if name.endswith("_bytes"):
        return f"{value / 2 ** 30:.2f} GiB"
    return {None: "", True: "yes", False: "no"}.get(value, str(value)) if not isinstance(value, str) else value


def write_report(analyses: Sequence[Analysis], format: str, *, width: int = 0, top: int = 0, verbosity: int = 0,
                 color: bool = False, together: Any = ffi.NULL) -> List[bytes]:
    parts: List[bytes] = []
    calls = Calls()

    def write(_context: Any, text: Any, size: int) -> bool:
        parts.append(ffi.unpack(text, size))
        return True

    options = ffi.new("onv_report_options *")
    lib.onv_report_options_init(options, ffi.sizeof("onv_report_options"))
    options.width, options.top, options.verbosity, options.color = width, top, verbosity, color
    options.unicode, options.together = True, together
    error = ffi.new("onv_error *")
    models = ffi.new("onv_analysis *[]", [analysis.handle for analysis in analyses])
    status = lib.onv_report(ffi.cast("const onv_analysis *const *", models), len(analyses), getattr(lib, format), options,
                            calls.add("onv_write_fn", write, False), ffi.NULL, error)
    calls.check()
    if status != lib.ONV_OK:
        fail(status, error, analyses[0]._name)
    return parts


def diff(before: Analysis, after: Analysis, format: str = "text", *, width: int = 0) -> str:
    """What changed from one model to another: text, markdown or json."""
    if format not in DIFFS:
        raise UsageError(f"expected one of {', '.join(DIFFS)}, found {format!r}")
    parts = write_report([before, after], "ONV_FORMAT_" + DIFFS[format], width=width)
    return b"".join(parts).decode("utf-8", "surrogateescape")


def together(analyses: Sequence[Analysis], instances: Optional[Sequence[int]] = None) -> Json:
    """Sessions of ONNX Runtime in one process on one device: bytes of all, each analysis `instances[i]` times."""
    counts = [1] * len(analyses) if instances is None else list(instances)
    if len(counts) != len(analyses):
        raise UsageError(f"expected a count for each of the {len(analyses)} analyses, found {len(counts)}")
    info, error = ffi.new("onv_together_info *"), ffi.new("onv_error *")
    handles = ffi.new("onv_analysis *[]", [analysis.handle for analysis in analyses])
    status = lib.onv_together_get(handles, ffi.new("unsigned[]", counts), len(counts), info, ffi.sizeof("onv_together_info"),
                                  error)
    if status != lib.ONV_OK:
        fail(status, error, "together")
    report = json.loads(b"".join(write_report(analyses, "ONV_FORMAT_JSON", together=info)))
    found: Json = report["together"]
    return found
