"""Keyword arguments as the library's struct of options."""
from typing import Any, Dict, List, Mapping, Sequence, Tuple, Union

from ._errors import UsageError
from ._library import ffi, lib

UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
         "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}

# Keyword -> field, by how the value is given.
STRINGS = ("order", "runtimes", "train", "loss", "ddp", "fsdp", "offload", "weights", "attention", "checkpoint", "zero_grad",
           "optimizer_impl", "pytorch", "max_dim", "op_shapes_file", "shape_trace")
NUMBERS = ("batch", "effort", "margin_percent", "accumulate", "zero_stage", "world", "pool", "compute_capability", "align",
           "attention_dropout", "compile_budget")
FLAGS = ("expandable_segments", "max_batch", "master_weights", "ema", "as_exported", "no_external_data", "locals", "ort_advise",
         "channels_last", "no_tf32", "cudnn_benchmark", "folded_norms", "graph_module", "no_fast_path", "compile", "example")
LISTS = ("freeze", "train_only", "inplace", "ort")


class Options:
    """The struct, and what it points to for as long as this object lives."""

    def __init__(self, given: Mapping[str, Any]):
        self.alive: List[Any] = []
        self.struct = ffi.new("onv_options *")
        lib.onv_options_init(self.struct, ffi.sizeof("onv_options"))
        for name, value in given.items():
            if value is None:
                continue
            self._set(name, value)

    def _keep(self, made: Any) -> Any:
        self.alive.append(made)
        return made

    def _text(self, value: Any) -> Any:
        return self._keep(ffi.new("char[]", str(value).encode("utf-8", "surrogateescape")))

    def _set(self, name: str, value: Any) -> None:
        if name in STRINGS:
            if not isinstance(value, str):
                value = ",".join(map(str, value))
            setattr(self.struct, name, self._text(value))
        elif name in NUMBERS:
            setattr(self.struct, name, value)
        elif name in FLAGS:
            setattr(self.struct, name, bool(value))
        elif name in LISTS:
            self._set_list(name, [value] if isinstance(value, str) else value)
        elif name in ("precision", "amp"):
            setattr(self.struct, name, precision(value))
        elif name == "budget":
            self._set_budgets([value] if isinstance(value, (str, int)) else value)
        elif name == "dims":
            self._set_dims(value)
        elif name == "shapes":
            self._set_shapes(value)
        elif name == "input_values":
            self._set_input_values(value)
        elif name == "limits":
            self._set_limits(value)
        else:
            raise UsageError(f"'{name}' is not an option of analyze()")

    def _set_list(self, name: str, values: Sequence[str]) -> None:
        texts = [self._text(value) for value in values]
        setattr(self.struct, name, self._keep(ffi.new("char *[]", texts)))
        setattr(self.struct, f"n_{name}", len(texts))

    def _set_dims(self, dims: Mapping[str, int]) -> None:
        rows = self._keep(ffi.new("onv_dim_binding[]", len(dims)))
        for row, (name, size) in zip(rows, dims.items()):
            row.name, row.size = self._text(name), size
        self.struct.dims, self.struct.n_dims = rows, len(dims)

    def _set_shapes(self, shapes: Mapping[str, Sequence[int]]) -> None:
        rows = self._keep(ffi.new("onv_shape_binding[]", len(shapes)))
        for row, (name, shape) in zip(rows, shapes.items()):
            row.name, row.rank = self._text(name), len(shape)
            row.dims = self._keep(ffi.new("int64_t[]", list(shape)))
        self.struct.shapes, self.struct.n_shapes = rows, len(shapes)

    def _set_input_values(self, values: Mapping[str, Any]) -> None:
        rows = self._keep(ffi.new("onv_input_value[]", len(values)))
        for row, (name, given) in zip(rows, values.items()):
            numbers = [float(x) for x in (given.ravel() if hasattr(given, "ravel") else given)]
            row.name, row.count = self._text(name), len(numbers)
            row.numbers = self._keep(ffi.new("double[]", numbers))
        self.struct.input_values, self.struct.n_input_values = rows, len(values)

    def _set_limits(self, limits: Mapping[str, int]) -> None:
        made = self._keep(ffi.new("onv_limits *"))
        lib.onv_limits_init(made, ffi.sizeof("onv_limits"))
        for name, value in limits.items():
            if not lib.onv_limits_set(made, name.replace("_", "-").encode(), value):
                raise UsageError(f"'{name}' is no limit, or {value} does not fit it")
        self.struct.limits = made

    def _set_budgets(self, budgets: Sequence[Union[str, int]]) -> None:
        rows = self._keep(ffi.new("onv_budget[]", len(budgets)))
        for row, given in zip(rows, budgets):
            name, row.bytes, row.compute_capability = budget(given)
            row.name = self._text(name)
        self.struct.budgets, self.struct.n_budgets = rows, len(budgets)


def precision(name: str) -> int:
    known: Dict[str, int] = {"fp32": lib.ONV_PRECISION_FP32, "fp16": lib.ONV_PRECISION_FP16, "bf16": lib.ONV_PRECISION_BF16}
    if name not in known:
        raise UsageError(f"expected fp32, fp16 or bf16, found '{name}'")
    return known[name]


def budget(given: Union[str, int]) -> Tuple[str, int, int]:
    """Bytes, a size like "16GiB", or the name of a GPU: its name, bytes, compute capability."""
    if isinstance(given, int):
        return f"{given} bytes", given, 0
    digits = given.strip()
    unit = digits.lstrip("0123456789.").strip()
    if digits[:1].isdigit() and unit.upper() in UNITS:
        return given, int(float(digits[:len(digits) - len(unit)]) * UNITS[unit.upper()]), 0
    found = ffi.new("onv_gpu_info[8]")
    count = lib.onv_gpu_by_name_get(given.encode(), found, 8, ffi.sizeof("onv_gpu_info"))
    if count == 0:
        raise UsageError(f"expected a size like 16GiB or the name of a GPU, found '{given}': `onnxvram --list-gpus` has all")
    if count > 1:
        names = ", ".join(ffi.string(row.name).decode() for row in found[0:min(count, 8)])
        raise UsageError(f"'{given}' may be any of: {names}: name one")
    row = found[0]
    return ffi.string(row.name).decode(), row.usable_bytes, 10 * row.cc_major + row.cc_minor
