"""estimate() and from_torch(): a network that is in memory, without a file and without its weights."""
import contextlib
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple, Union

from ._analysis import Analysis
from ._analyze import analyze
from ._errors import UsageError
from ._record import MODES, kept_as_it_was, needed_torch, recording

Progress = Union[bool, Callable[[str], Any], None]


def estimate(model: Any, args: Sequence[Any] = (), kwargs: Optional[Dict[str, Any]] = None, *, batch: Optional[int] = None,
             dynamic_shapes: Any = None, progress: Progress = None, **options: Any) -> Analysis:
    """How much GPU memory a network of PyTorch takes: record() and analyze() in one, as eager PyTorch runs it.

    model           an nn.Module on any device, "meta" too. It is left as it was; its weights are not read and not copied
    args, kwargs    an example of its inputs. Sizes and dtypes count alone, so that torch.empty(..., device="meta") will do
    batch           the batch size: dim 0 of each tensor in args and kwargs that has the size of the first one's is free, and
                    this. Default: that of the example
    dynamic_shapes  other free sizes, as record() takes them; with `dims={"sequence": 4096}` to bind them
    options         those of analyze(): train="adamw", budget="T4,L4", max_batch=True, checkpoint="all" ...

    Figures are those of the program on a file that record() wrote. Raises RecordingError for a network that cannot be run
    without values, with the module and the line, and what analyze() raises.
    """
    data, shapes, name = recorded(model, args, kwargs, batch, dynamic_shapes, progress, options)
    return analyze(data, name=name, progress=progress, batch=batch if shapes else None, **options)


def from_torch(model: Any, args: Sequence[Any] = (), kwargs: Optional[Dict[str, Any]] = None, *, batch: Optional[int] = None,
               dynamic_shapes: Any = None, progress: Progress = None, **options: Any) -> Analysis:
    """The same with ONNX Runtime beside PyTorch: the network is exported, too (torch.onnx.export, dynamo=True), without its
    weights. Needs onnxscript. Raises UsageError, with the exporter's own words, where it cannot be exported; estimate() then
    answers for PyTorch."""
    import os
    import tempfile
    data, shapes, name = recorded(model, args, kwargs, batch, dynamic_shapes, progress, options)
    exported = export(model, args, kwargs or {}, shapes)
    with tempfile.TemporaryDirectory(prefix="onnxvram-") as folder:
        program = os.path.join(folder, name + ".program.json")
        with open(program, "wb") as file:
            file.write(data)
        return analyze(exported, name=name, program=program, progress=progress, batch=batch if shapes else None, **options)


def recorded(model: Any, args: Sequence[Any], kwargs: Optional[Dict[str, Any]], batch: Optional[int], dynamic_shapes: Any,
             progress: Progress, options: Dict[str, Any]) -> Tuple[bytes, Any, str]:
    """A recording as bytes, the free sizes, and what reports call it."""
    needed_torch()
    from ._program_file import text_of
    if dynamic_shapes is None and (batch is not None or options.get("max_batch")):
        dynamic_shapes = free_batch(model, args, kwargs or {})
    name = type(model).__name__
    modes = MODES if options.get("train") else ("inference",)
    return text_of(recording(model, args, kwargs, dynamic_shapes, modes, progress, name)), dynamic_shapes, name


def free_batch(model: Any, args: Sequence[Any], kwargs: Dict[str, Any]) -> Dict[str, Any]:
    """dynamic_shapes by argument: dim 0 of what has the first tensor's size there."""
    import inspect
    import torch
    from torch.utils import _pytree
    bound = inspect.signature(model.forward).bind(*args, **kwargs).arguments
    tensors = [t for t in _pytree.tree_flatten(bound)[0] if isinstance(t, torch.Tensor) and t.dim() > 0]
    if not tensors:
        raise UsageError("batch: no argument of the network is a tensor with dims: name the size with dynamic_shapes and dims")
    size = int(tensors[0].shape[0])

    def of(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return {0: "batch"} if value.dim() > 0 and value.shape[0] == size else None
        if isinstance(value, (list, tuple)):
            return [of(v) for v in value]
        return {key: of(v) for key, v in value.items()} if isinstance(value, dict) else None

    return {name: of(value) for name, value in bound.items()}


def export(model: Any, args: Sequence[Any], kwargs: Dict[str, Any], shapes: Any) -> bytes:
    """An .onnx file in evaluation mode whose weights would lie in a file of their own, which is not written. It is not
    optimized: that folds weights, which are not there, and ONNX Runtime does it when it loads the file."""
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.utils import _pytree
    with quiet(), kept_as_it_was(model), FakeTensorMode(allow_non_fake_inputs=True):
        model.eval()
        made: Dict[int, Any] = {}
        for module in model.modules():
            for tensors in (module._parameters, module._buffers):
                for name, old in tensors.items():
                    if old is not None:
                        tensors[name] = made.setdefault(id(old), fake(old))
        args, kwargs = _pytree.tree_map(lambda v: fake(v) if isinstance(v, torch.Tensor) else v, (tuple(args), kwargs))
        try:
            program = torch.onnx.export(model, args, kwargs=kwargs, dynamo=True, optimize=False, dynamic_shapes=shapes,
                                        verbose=False)
        except ImportError as error:
            raise UsageError(f"from_torch needs onnxscript, which torch.onnx.export uses: pip install onnxscript ({error})") from error
        except Exception as error:
            raise UsageError(f"torch.onnx.export cannot export {type(model).__name__}: {cause(error)}; estimate() answers for "
                             f"PyTorch without an export") from error
    return without_data(program.model)


def fake(old: Any) -> Any:
    import torch
    new = torch.empty_strided(old.shape, old.stride(), dtype=old.dtype, device="cpu")
    return torch.nn.Parameter(new, requires_grad=old.requires_grad) if isinstance(old, torch.nn.Parameter) else new


def cause(error: BaseException) -> str:
    """The innermost exception's first line: the exporter wraps it in pages of advice."""
    while error.__cause__ is not None:
        error = error.__cause__
    lines: List[str] = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else 'no message'}"


def without_data(model: Any) -> bytes:
    import onnx_ir
    at = 0
    for name, value in model.graph.initializers.items():
        old = value.const_value
        value.const_value = onnx_ir.ExternalTensor("weights.data", at, old.nbytes, old.dtype, shape=old.shape, name=name)
        at += old.nbytes
    serialized: bytes = onnx_ir.to_proto(model).SerializeToString()
    return serialized


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Without the exporter's log and warnings; what it raises is raised."""
    import logging
    import warnings
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
