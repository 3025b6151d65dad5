"""Keyword arguments as the library's struct of options."""
import json
import operator
import os
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from ._errors import UsageError
from ._library import Calls, ffi, lib, text

Size = Union[int, str]
Path = Union[str, "os.PathLike[str]"]

# Keywords that are fields of onv_options, by how their values are given.
TEXTS = ("order", "runtimes", "train", "loss", "ddp", "fsdp", "offload", "weights", "attention", "checkpoint", "zero_grad",
         "optimizer_impl", "pytorch", "max_dim", "objective", "kv_cache", "replay")
PATHS = ("op_shapes_file", "shape_trace", "program", "snapshot", "plan")
COUNTS = ("batch", "effort", "margin_percent", "accumulate", "zero_stage", "world", "compute_capability",
          "parameters", "contexts")
SIZES = ("pool", "align", "buffers", "measured", "workspace")
FLAGS = ("expandable_segments", "max_batch", "master_weights", "ema", "as_exported", "no_external_data", "locals", "ort_advise",
         "ort_partition", "channels_last", "no_tf32", "cudnn_benchmark", "folded_norms", "graph_module", "no_fast_path",
         "answer_alone", "example", "formulas", "onnx_out", "savings", "remedies", "timelines", "strict")
LISTS = ("freeze", "train_only", "inplace", "ort")
POSITIVE = ("batch", "accumulate", "world", "contexts")  # 0 of the struct is: not given
# Fields that have no keyword of their name: they go with the one named, or are the library's business.
OTHERWISE = {"struct_size": "", "n_dims": "dims", "n_shapes": "shapes", "n_input_values": "input_values", "n_freeze": "freeze",
             "n_train_only": "train_only", "n_inplace": "inplace", "n_ort": "ort", "budgets": "budget", "n_budgets": "budget",
             "compile_budget": "compile", "has_max_growth": "max_growth", "max_growth_basis_points": "max_growth",
             "cancelled": "", "cancel_context": "", "progress_context": "progress",
             "dims_found": ""}


class Options:
    """The struct, and what it points to for as long as this object lives."""

    def __init__(self, given: Mapping[str, Any]):
        self.alive: List[Any] = []
        self.calls = Calls()
        self.struct = ffi.new("onv_options *")
        lib.onv_options_init(self.struct, ffi.sizeof("onv_options"))
        never = self.calls.add("bool(void *)", lambda _context: self.calls.raised is not None, True)
        self.struct.cancelled = never
        for name, value in given.items():
            if value is None:
                continue
            try:
                self._set(name, value)
            except (TypeError, OverflowError, AttributeError) as wrong:
                raise UsageError(f"{name}={value!r}: {wrong}") from wrong

    def _keep(self, made: Any) -> Any:
        self.alive.append(made)
        return made

    def _text(self, value: Any) -> Any:
        raw = value if isinstance(value, bytes) else value.encode("utf-8", "surrogateescape")
        if b"\0" in raw:
            raise UsageError(f"expected text without a NUL, found {value!r}")
        return self._keep(ffi.new("char[]", raw))

    def _set(self, name: str, value: Any) -> None:
        if name in TEXTS:
            if isinstance(value, (bool, int, float)):
                raise TypeError(f"expected text, as in {name}='...'")
            setattr(self.struct, name, self._text(value if isinstance(value, str) else ",".join(value)))
        elif name in PATHS:
            setattr(self.struct, name, self._text(os.fsencode(value)))
        elif name in COUNTS:
            count = operator.index(value)
            if count < 1 and name in POSITIVE:
                raise TypeError("expected a number of at least 1")
            setattr(self.struct, name, count)
        elif name in SIZES:
            setattr(self.struct, name, size(value))
        elif name in FLAGS:
            setattr(self.struct, name, bool(value))
        elif name in LISTS:
            self._set_list(name, value)
        elif name in ("precision", "amp"):
            setattr(self.struct, name, precision(value))
        else:
            getattr(self, "_set_" + name)(value)

    def _set_list(self, name: str, given: Any) -> None:
        if isinstance(given, Mapping):  # settings of ONNX Runtime
            given = [f"{key}={value}" for key, value in given.items()]
        texts = [self._text(value) for value in ([given] if isinstance(given, str) else given)]
        setattr(self.struct, name, self._keep(ffi.new("char *[]", texts)))
        setattr(self.struct, f"n_{name}", len(texts))

    def _bindings(self, dims: Mapping[str, int]) -> Any:
        rows = self._keep(ffi.new("onv_dim_binding[]", len(dims)))
        for row, (name, value) in zip(rows, dims.items()):
            row.name, row.size = self._text(name), operator.index(value)
        return rows

    def _set_dims(self, dims: Mapping[str, int]) -> None:
        self.struct.dims, self.struct.n_dims = self._bindings(dims), len(dims)

    def _set_shapes(self, shapes: Mapping[str, Sequence[int]]) -> None:
        rows = self._keep(ffi.new("onv_shape_binding[]", len(shapes)))
        for row, (name, shape) in zip(rows, shapes.items()):
            row.name, row.rank = self._text(name), len(shape)
            row.dims = self._keep(ffi.new("int64_t[]", [operator.index(x) for x in shape]))
        self.struct.shapes, self.struct.n_shapes = rows, len(shapes)

    def _set_input_values(self, values: Mapping[str, Any]) -> None:
        rows = self._keep(ffi.new("onv_input_value[]", len(values)))
        for row, (name, given) in zip(rows, values.items()):
            row.name = self._text(name)
            if isinstance(given, (str, os.PathLike)):
                row.file = self._text(os.fsencode(given))  # of a TensorProto
                continue
            if isinstance(given, (int, float)):
                given = [given]
            numbers = [float(x) for x in (given.ravel() if hasattr(given, "ravel") else given)]
            row.count, row.numbers = len(numbers), self._keep(ffi.new("double[]", numbers))
        self.struct.input_values, self.struct.n_input_values = rows, len(values)

    def _set_limits(self, limits: Mapping[str, Size]) -> None:
        made = self._keep(ffi.new("onv_limits *"))
        lib.onv_limits_init(made, ffi.sizeof("onv_limits"))
        for name, value in limits.items():
            if not lib.onv_limits_set(made, name.replace("_", "-").encode(), size(value)):
                raise UsageError(f"expected a limit of {', '.join(limit_names())} and a number that fits it, "
                                 f"found {name}={value!r}")
        self.struct.limits = made

    def _set_budget(self, budgets: Union[Size, Sequence[Size]]) -> None:
        if isinstance(budgets, str):
            budgets = budgets.split(",")
        many = [budgets] if isinstance(budgets, int) else list(budgets)
        rows = self._keep(ffi.new("onv_budget[]", len(many)))
        for row, given in zip(rows, many):
            name, row.bytes, row.compute_capability = budget(given)
            row.name = self._text(name) if name is not None else ffi.NULL
        self.struct.budgets, self.struct.n_budgets = rows, len(many)

    def _set_gpu(self, name: str) -> None:
        full, _, self.struct.compute_capability = gpu(name)
        self.struct.gpu = self._text(full)

    def _set_compile(self, given: Union[bool, float]) -> None:
        self.struct.compile = given is not False
        self.struct.compile_budget = float(given)

    def _set_max_growth(self, percent: float) -> None:
        self.struct.has_max_growth = True
        self.struct.max_growth_basis_points = round(100 * percent)

    def _set_baseline(self, given: Any) -> None:
        name, model = baseline(given)
        made, figures = self._keep(ffi.new("onv_baseline *")), figures_of(model)
        rows = self._keep(ffi.new("onv_figure[]", len(figures)))
        for row, (what, value) in zip(rows, figures.items()):
            row.what, row.bytes = self._text(what), value
        bindings = {key: value for key, value in model.get("bindings", {}).items() if isinstance(value, int)}
        made.name, made.figures, made.n_figures = self._text(name), rows, len(figures)
        made.bindings, made.n_bindings = self._bindings(bindings), len(bindings)
        self.struct.baseline = made

    def _set_progress(self, tell: Any) -> None:
        self.struct.progress = self.calls.add("void(void *, const char *)", lambda _context, stage: tell(text(stage)))


def precision(name: str) -> int:
    known: Dict[str, int] = {"fp32": lib.ONV_PRECISION_FP32, "fp16": lib.ONV_PRECISION_FP16, "bf16": lib.ONV_PRECISION_BF16}
    for usual, code in known.items():
        if lib.onv_is_called(name.encode(), usual.encode()):
            return code
    raise UsageError(f"expected fp32, fp16 or bf16, found {name!r}")


def limit_names() -> List[str]:
    names: List[str] = []
    while (name := lib.onv_limit_name(len(names), ffi.NULL, ffi.NULL)) != ffi.NULL:
        names.append(text(name))
    return names


def parse_size(given: str) -> Optional[int]:
    found = ffi.new("uint64_t *")
    made: Optional[int] = found[0] if lib.onv_size_parse(given.strip().encode("utf-8", "surrogateescape"), found) else None
    return made


def size(given: Size) -> int:
    found = parse_size(given) if isinstance(given, str) else operator.index(given)
    if found is None:
        raise UsageError(f"expected bytes as a number, or a size like 16GiB, found {given!r}")
    return found


def gpu(name: str) -> Tuple[str, int, int]:
    """Its name, bytes, compute capability."""
    found = ffi.new("onv_gpu_info[8]")
    count = lib.onv_gpu_by_name_get(name.encode("utf-8", "surrogateescape"), found, 8, ffi.sizeof("onv_gpu_info"))
    if count == 0:
        raise UsageError(f"expected a size like 16GiB or a GPU, found {name!r}: `onnxvram --list-gpus` has all")
    if count > 1:
        raise UsageError(f"{name!r} may be any of {', '.join(text(row.name) for row in found[0:min(count, 8)])}: name one")
    return text(found[0].name), found[0].usable_bytes, 10 * found[0].cc_major + found[0].cc_minor


def budget(given: Size) -> Tuple[Optional[str], int, int]:
    """Bytes, a size like "16GiB", or a GPU: its name, bytes, compute capability."""
    if isinstance(given, str):
        made = parse_size(given) if given.strip(" 0123456789.") else None  # "3090" is a GPU, and no size without its unit
    else:
        made = operator.index(given)
    found: Tuple[Optional[str], int, int] = gpu(str(given)) if made is None else (None, made, 0)
    if found[1] <= 0:
        raise UsageError(f"expected a budget above 0, found {given!r}")
    return found


def baseline(given: Any) -> Tuple[str, Dict[str, Any]]:
    """A name and the model's part of a report: of a file that --json wrote, of what json.load() made of one, or of an
    Analysis."""
    name = "baseline"
    if isinstance(given, (str, os.PathLike)):
        name = os.fspath(given)
        with open(given, encoding="utf-8") as file:
            given = json.load(file)
    report = getattr(given, "json", given)
    if isinstance(report, dict) and "models" in report:
        if len(report["models"]) != 1:
            raise UsageError(f"expected a baseline of one model, found {len(report['models'])}")
        report = report["models"][0]
    if not isinstance(report, dict) or not isinstance(report.get("peak"), dict):
        raise UsageError("expected a report that --json wrote as the baseline, found something else")
    return name, report


def figures_of(model: Mapping[str, Any]) -> Dict[str, int]:
    rows = {"weights": model.get("parameters", {}).get("bytes"), "peak": model["peak"].get("bytes")}
    if None not in rows.values():
        rows["total"] = rows["weights"] + rows["peak"]
    rows.update((name, runtime.get("total_bytes")) for name, runtime in model.get("runtimes", {}).items())
    rows["train"] = model.get("training", {}).get("reserved_peak_bytes")
    return {what: value for what, value in rows.items() if isinstance(value, int)}
