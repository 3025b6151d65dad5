"""analyze(): the options by name."""
import os
from typing import Any, Callable, Mapping, Optional, Sequence, Tuple, Union

from ._analysis import Analysis
from ._errors import UsageError
from ._library import fail, ffi, lib
from ._options import Options, Path, Size
from ._progress import Shown, teller

Names = Union[str, Sequence[str]]


def analyze(model: Any, *,
            name: Optional[str] = None,
            progress: Union[bool, Callable[[str], Any], None] = None,
            # Sizes.
            batch: Optional[int] = None,
            dims: Optional[Mapping[str, int]] = None,
            shapes: Optional[Mapping[str, Sequence[int]]] = None,
            input_values: Optional[Mapping[str, Any]] = None,
            op_shapes_file: Optional[Path] = None,
            program: Optional[Path] = None,
            snapshot: Optional[Path] = None,
            measured: Optional[Size] = None,
            answer_alone: Optional[bool] = None,
            example: Optional[bool] = None,
            formulas: Optional[bool] = None,
            strict: Optional[bool] = None,
            # The network and how it runs.
            precision: Optional[str] = None,
            weights: Optional[str] = None,
            kv_cache: Optional[str] = None,
            order: Optional[str] = None,
            runtime: Optional[Names] = None,
            runtimes: Optional[Names] = None,
            gpu: Optional[str] = None,
            compute_capability: Optional[int] = None,
            align: Optional[Size] = None,
            savings: Optional[bool] = None,
            remedies: Optional[bool] = None,
            onnx_out: Optional[bool] = None,
            timelines: Optional[bool] = None,
            # What it is to fit.
            budget: Union[Size, Sequence[Size], None] = None,
            margin_percent: Optional[int] = None,
            max_batch: Optional[bool] = None,
            max_dim: Optional[str] = None,
            objective: Optional[str] = None,
            baseline: Any = None,
            max_growth: Optional[float] = None,
            # PyTorch.
            pytorch: Optional[str] = None,
            attention: Optional[str] = None,
            as_exported: Optional[bool] = None,
            folded_norms: Optional[bool] = None,
            graph_module: Optional[bool] = None,
            no_fast_path: Optional[bool] = None,
            locals: Optional[bool] = None,
            inplace: Optional[Names] = None,
            parameters: Optional[int] = None,
            buffers: Optional[Size] = None,
            channels_last: Optional[bool] = None,
            no_tf32: Optional[bool] = None,
            cudnn_benchmark: Optional[bool] = None,
            expandable_segments: Optional[bool] = None,
            pool: Optional[Size] = None,
            # ONNX Runtime.
            ort: Union[Mapping[str, Any], Names, None] = None,
            ort_advise: Optional[bool] = None,
            ort_partition: Optional[bool] = None,
            shape_trace: Optional[Path] = None,
            # TensorRT, an estimate.
            contexts: Optional[int] = None,
            workspace: Optional[Size] = None,
            # Training in PyTorch.
            train: Optional[str] = None,
            loss: Optional[str] = None,
            amp: Optional[str] = None,
            freeze: Optional[Names] = None,
            train_only: Optional[Names] = None,
            attention_dropout: Optional[float] = None,
            accumulate: Optional[int] = None,
            zero_grad: Optional[str] = None,
            optimizer_impl: Optional[str] = None,
            master_weights: Optional[bool] = None,
            offload: Optional[str] = None,
            ema: Optional[bool] = None,
            checkpoint: Optional[Names] = None,
            plan: Optional[Path] = None,
            compile: Union[bool, float, None] = None,
            zero_stage: Optional[int] = None,
            ddp: Optional[str] = None,
            fsdp: Optional[str] = None,
            world: Optional[int] = None,
            # Work.
            effort: Optional[int] = None,
            limits: Optional[Mapping[str, Size]] = None,
            no_external_data: Optional[bool] = None,
            replay: Optional[str] = None) -> Analysis:
    """Analyses `model`: a path, bytes, or an onnx.ModelProto. `name` is what reports of one in memory call it; external data
    is looked for in that path's folder.

    Options are those of the program (`onnxvram --help`), under the names of the library's struct onv_options, and runtime as the
    program spells it. Sizes are bytes, or text like "16GiB"; budget takes GPUs too: "T4,L4". progress=True shows what is worked
    on, and a function gets it as text; whatever that raises ends the analysis, as Ctrl-C does.
    """
    given = {key: value for key, value in vars().items() if key not in ("model", "name", "progress", "runtime")}
    if runtime is not None:
        if runtimes is not None:
            raise UsageError("runtime and runtimes are one option: give one of them")
        given["runtimes"] = runtime
    data, path = load(model)
    shown = teller(progress, name or path)
    try:
        return run(data, path, name or path, Options({**given, "progress": shown}))
    finally:
        if isinstance(shown, Shown):
            shown.close()


def load(model: Any) -> Tuple[Optional[bytes], str]:
    """Bytes and a name: of a path, of bytes, or of what has SerializeToString (onnx.ModelProto)."""
    if isinstance(model, (str, os.PathLike)):
        return None, os.fsdecode(model)
    if isinstance(model, (bytes, bytearray, memoryview)):
        return bytes(model), "model"
    if hasattr(model, "SerializeToString"):
        return model.SerializeToString(), "model"
    raise UsageError(f"expected a path, bytes or an onnx.ModelProto, found {type(model).__name__}")


def run(data: Optional[bytes], path: str, name: str, options: Options) -> Analysis:
    error = ffi.new("onv_error *")
    view = ffi.from_buffer(data) if data is not None else None

    def destroy(made: Any, _kept: Any = (view, options)) -> None:
        lib.onv_analysis_destroy(made[0])

    # Whatever happens from here on, an analysis that was made is destroyed, and before the bytes that it refers to.
    holder = ffi.gc(ffi.new("onv_analysis **"), destroy)
    if data is None:
        status = lib.onv_analysis_new(os.fsencode(path), options.struct, holder, error)
    else:
        status = lib.onv_analysis_new_from_memory(view, len(data), os.fsencode(name), options.struct, holder, error)
    options.calls.check()
    if status != lib.ONV_OK:
        fail(status, error, name)
    return Analysis(holder, name, options.struct.timelines)
