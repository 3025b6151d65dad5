"""`onnxvram.record`: the program of a network as eager PyTorch runs it on a GPU, without one."""
import argparse
import contextlib
import gc
import importlib
import inspect
import os
import sys
import time
import traceback
import weakref
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple, Union

from ._errors import RecordingError, UsageError
from ._progress import teller

Path = Union[str, "os.PathLike[str]"]
MODES = ("training", "inference")


def needed_torch() -> Any:
    try:
        import torch
    except ImportError as error:
        raise UsageError("recording needs PyTorch 2.4 or later, and it is not installed: pip install torch") from error
    if tuple(int(part) for part in torch.__version__.split(".")[:2]) < (2, 4):
        raise UsageError(f"recording needs PyTorch 2.4 or later, found {torch.__version__}: pip install --upgrade torch")
    return torch


def save_program(program: Any, path: Path) -> None:
    """Write the program of an exported network, without its weights.

    `program` is what torch.export.export or torch.onnx.export(dynamo=True) returned. The file is the `model.json` of the
    archive that torch.export.save writes, compressed where the name ends in .gz. Raises UsageError for anything else.
    """
    needed_torch()
    from . import _program_file
    _program_file.save_program(program, path)


def record(model: Any, args: Sequence[Any], kwargs: Optional[Dict[str, Any]] = None, *, dynamic_shapes: Any = None,
           path: Path = "model.program.json", modes: Sequence[str] = MODES,
           progress: Union[bool, Callable[[str], Any], None] = None) -> None:
    """Run the network once for each mode on fake CUDA tensors, and write the calls that PyTorch makes.

    model           an nn.Module on any device. It is left as it was; its weights are not read and not copied
    args, kwargs    an example of its inputs. Sizes and dtypes count alone
    dynamic_shapes  the sizes that may change, as torch.export.export takes them; a name ("batch") is enough for a dim:
                    ({0: "batch"},). Without it, the program is that of the example's sizes
    path            the file, compressed where the name ends in .gz
    modes           "training" (forward as in training, and what autograd keeps) and "inference" (evaluation, no_grad)
    progress        True shows a line, a function is called with each

    A model that is in training mode is recorded as it is, frozen parts in evaluation mode included. Raises RecordingError
    for a network that cannot be run without values, with the module and the line, and UsageError for arguments that make no
    sense.
    """
    made = recording(model, args, kwargs, dynamic_shapes, modes, progress, os.path.basename(os.fspath(path)))
    from . import _program_file
    _program_file.write(made, path)


def recording(model: Any, args: Sequence[Any], kwargs: Optional[Dict[str, Any]], dynamic_shapes: Any, modes: Sequence[str],
              progress: Union[bool, Callable[[str], Any], None], name: str) -> Dict[str, Any]:
    """What record() writes; `name` is what progress calls it."""
    torch = needed_torch()
    if not isinstance(model, torch.nn.Module):
        raise UsageError(f"record: expected a torch.nn.Module, found {type(model).__name__}")
    wrong = [m for m in modes if m not in MODES]
    if wrong or not modes:
        raise UsageError(f"record: expected modes 'training' and 'inference', found {list(modes)}")
    if isinstance(args, torch.Tensor) or not isinstance(args, (list, tuple)):
        raise UsageError(f"record: expected a tuple of the network's arguments, found {type(args).__name__}: write (x,)")
    tell = teller(progress, name)
    programs = {}
    try:
        for mode in modes:
            programs[mode] = Run(torch, model, tuple(args), kwargs or {}, dynamic_shapes, mode, tell).program
    finally:
        if tell is not None and hasattr(tell, "close"):
            tell.close()
    return {"format": "onnxvram.program", "version": 1, "torch_version": torch.__version__, "programs": programs,
            "weights_config": weights_config(next(iter(programs.values())))}


def weights_config(program: Dict[str, Any]) -> Dict[str, Any]:
    """Which parameters are one tensor, as archives say it: by the file that would have their data."""
    lifetimes = program["lifetimes"]
    listed = [s["parameter"] for s in program["graph_module"]["signature"]["input_specs"] if "parameter" in s]
    return {"config": {p["parameter_name"]: {"path_name": f"weight_{lifetimes[p['arg']['name']]['storage']}"} for p in listed}}


def call(network: Any, args: Any, kwargs: Any) -> Any:
    """The lines of a trace begin below this one."""
    return network(*args, **kwargs)


class Run:
    """One mode of a recording; `program` is in the schema of the archive."""

    def __init__(self, torch: Any, model: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any], dynamic_shapes: Any, mode: str,
                 tell: Optional[Callable[[str], Any]]) -> None:
        from torch._subclasses.fake_tensor import FakeTensorMode
        from torch.fx.experimental.symbolic_shapes import ShapeEnv
        from . import _cuda_calls
        from ._recorder import Recorder
        self.torch, self.model, self.mode, self.tell, self.told = torch, model, mode, tell, 0.0
        self.environment = ShapeEnv(allow_scalar_outputs=False, allow_dynamic_output_shape_ops=False)
        self.symbols: Dict[str, Any] = {}  # by name: (symbol, size)
        self.recorder = Recorder(call.__code__, {}, self.follow)
        self.paths = {id(module): name for name, module in reversed(list(model.named_modules()))}
        was_collecting = gc.isenabled()
        gc.collect()
        gc.disable()  # cycles would go at times of their own
        try:
            with kept_as_it_was(model), FakeTensorMode(allow_non_fake_inputs=True, shape_env=self.environment):
                self.change_mode()
                self.make_fake()
                args, kwargs = self.make_inputs(args, kwargs, dynamic_shapes)
                with self.hooks(), _cuda_calls.composites():
                    results = self.run(args, kwargs)
                self.program = self.finish(results)
        finally:
            if was_collecting:
                gc.enable()

    # The network on fake tensors

    def change_mode(self) -> None:
        if self.mode == "inference":
            self.model.eval()
        elif not self.model.training:
            self.model.train()

    def make_fake(self) -> None:
        """Parameters and buffers without memory. Tied parameters stay tied; of buffers nn.Module.to() makes one for each module,
        where they are not on the GPU yet."""
        torch, made = self.torch, {}  # type: Any, Dict[int, Any]
        from torch.nn.parameter import is_lazy
        self.parameters: List[Tuple[str, str]] = []
        self.buffers: List[Tuple[str, str, bool]] = []
        for path, module in self.model.named_modules():
            for tensors in (module._parameters, module._buffers):
                for name, old in tensors.items():
                    if old is None:
                        continue
                    full = f"{path}.{name}" if path else name
                    if is_lazy(old):
                        raise RecordingError(f"parameter '{full}' has no shape yet: run the network once before it is recorded",
                                             path)
                    is_copied = tensors is module._buffers and not old.is_cuda
                    if is_copied or id(old) not in made:
                        made[id(old)] = self.add_fake(full, name, old, module)
                    elif tensors is module._parameters:
                        self.add_parameter(made[id(old)], full)
                    tensors[name] = made[id(old)]
            if isinstance(module, torch.nn.RNNBase):  # which keeps lists of its parameters, and looks at their addresses
                weights = [getattr(module, n, None) for n in module._flat_weights_names]
                module.__dict__.update(_flat_weights=weights, flatten_parameters=lambda: None, _flat_weight_refs=[
                    w if w is None else weakref.ref(w) for w in weights])

    def add_fake(self, full: str, name: str, old: Any, module: Any) -> Any:
        torch = self.torch
        new = torch.empty_strided(old.shape, old.stride(), dtype=old.dtype, device="cuda")
        if isinstance(old, torch.nn.Parameter):
            new = torch.nn.Parameter(new, requires_grad=old.requires_grad)
            self.add_parameter(new, full)
        else:
            self.buffers.append((self.recorder.add(new, "b_" + full.replace(".", "_")), full,
                                 name not in module._non_persistent_buffers_set))
        return new

    def add_parameter(self, new: Any, full: str) -> None:
        """A tied one has several names; calls read the last, as in archives."""
        self.parameters.append((self.recorder.add(new, "p_" + full.replace(".", "_")), full))

    # Inputs

    def make_inputs(self, args: Tuple[Any, ...], kwargs: Dict[str, Any], dynamic_shapes: Any) -> Tuple[Any, Any]:
        signature = inspect.signature(self.model.forward)
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise UsageError(f"record: the arguments are not those of {type(self.model).__name__}.forward{signature}: "
                             f"{error}") from error
        shapes = dynamic_shapes if dynamic_shapes is not None else {}
        if isinstance(shapes, (list, tuple)):
            shapes = dict(zip(bound.arguments, shapes))
        unknown = [name for name in shapes if name not in bound.arguments]
        if unknown:
            raise UsageError(f"record: dynamic_shapes names '{unknown[0]}', which is not an argument: they are "
                             f"{', '.join(bound.arguments)}")
        self.inputs: List[str] = []
        for name, value in bound.arguments.items():
            bound.arguments[name] = self.fake_input(name, value, shapes.get(name))
        return bound.args, bound.kwargs

    def fake_input(self, name: str, value: Any, shape: Any) -> Any:
        if isinstance(value, self.torch.Tensor):
            fake = self.fake_tensor(name, value, shape)
            self.inputs.append(self.recorder.add(fake, name))
            return fake
        if isinstance(value, (list, tuple)):
            parts = [self.fake_input(f"{name}_{i}", v, shape[i] if shape else None) for i, v in enumerate(value)]
            return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
        if isinstance(value, dict):
            return {k: self.fake_input(f"{name}_{k}", v, shape.get(k) if shape else None) for k, v in value.items()}
        return value

    def fake_tensor(self, name: str, value: Any, shape: Any) -> Any:
        if isinstance(shape, (list, tuple)):
            shape = dict(enumerate(shape))
        sizes = [self.size(name, axis, int(size), (shape or {}).get(axis)) for axis, size in enumerate(value.shape)]
        order = sorted(range(value.dim()), key=lambda axis: (-value.stride(axis), axis))
        new = self.torch.empty([sizes[axis] for axis in order], dtype=value.dtype, device="cuda")
        new = new.permute([order.index(axis) for axis in range(value.dim())]) if order != sorted(order) else new
        return new.requires_grad_() if value.requires_grad else new

    def size(self, name: str, axis: int, size: int, dim: Any) -> Any:
        """The size of a dim: a number, or a symbol of its name."""
        kind = type(dim).__name__
        if dim is None or isinstance(dim, int) or "STATIC" in str(dim):
            return size
        if kind == "_DerivedDim":  # 2*batch
            root = self.symbol(dim.root.__name__, next((n for n in range(1, size + 1) if dim.fn(n) == size), 0), name, axis)
            return dim.fn(root)
        if isinstance(dim, str) or hasattr(dim, "__name__"):
            return self.symbol(dim if isinstance(dim, str) else dim.__name__, size, name, axis)
        if kind == "_DimHint":
            return self.symbol(f"{name}_{axis}", size, name, axis)
        raise UsageError(f"record: dynamic_shapes of '{name}', dim {axis}: expected a name, torch.export.Dim or None, found {dim}")

    def symbol(self, symbol: str, size: int, name: str, axis: int) -> Any:
        if symbol in self.symbols:
            known, old = self.symbols[symbol]
            if old != size:
                raise UsageError(f"record: dim '{symbol}' has size {old} in one input and {size} in dim {axis} of '{name}': "
                                 f"give both the same size, or two names")
            return known
        import sympy
        from torch._dynamo.source import ConstantSource
        from torch.fx.experimental.symbolic_shapes import DimDynamic
        # Sizes of 0 and 1 would be constants; no value depends on the example's.
        hint, source = max(size, 2), ConstantSource(symbol)
        made = self.environment.create_symbol(hint, source, dynamic_dim=DimDynamic.DYNAMIC, constraint_dim=None)
        self.recorder.renamed[made] = sympy.Symbol(symbol, positive=True, integer=True)
        self.symbols[symbol] = self.environment.create_symintnode(made, hint=hint, source=source), size
        return self.symbols[symbol][0]

    # The run

    @contextlib.contextmanager
    def hooks(self) -> Iterator[None]:
        """Which modules and functions of autograd run. Hooks for all modules, as those of a module turn off the fast path of attention."""
        from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
        running: List[Any] = []

        def enter(module: Any, _: Any) -> None:
            running.append(module)
            kind = type(module)
            self.recorder.modules.append((self.paths.get(id(module), ""), f"{kind.__module__}.{kind.__qualname__}"))

        def leave(module: Any, _: Any, results: Any) -> None:
            while running and running[-1] is not module:
                running.pop()
                self.recorder.modules.pop()
            if running:
                running.pop()
                self.recorder.modules.pop()

        function, recorder = self.torch.autograd.Function, self.recorder
        original = function.__dict__["apply"]

        def apply(kind: Any, *args: Any, **kwargs: Any) -> Any:
            first, n_kept = len(recorder.nodes), len(recorder.kept)
            results = original.__get__(None, kind)(*args, **kwargs)
            recorder.end_function(first, n_kept, (args, kwargs), results)
            return results

        handles = register_module_forward_pre_hook(enter), register_module_forward_hook(leave)
        function.apply = classmethod(apply)
        try:
            yield
        finally:
            function.apply = original
            for handle in handles:
                handle.remove()

    def run(self, args: Any, kwargs: Any) -> Any:
        torch, recorder = self.torch, self.recorder

        def used(_: Any) -> Any:
            raise RecordingError("the network calls backward in its forward, which a recording does not follow",
                                 self.place())
        try:
            if self.mode == "inference":
                with torch.no_grad(), recorder:
                    return call(self.model, args, kwargs)
            with torch.enable_grad(), torch.autograd.graph.saved_tensors_hooks(recorder.save, used), recorder:
                return call(self.model, args, kwargs)
        except RecordingError:
            raise
        except Exception as error:
            raise RecordingError(self.explain(error), self.place()) from error

    def follow(self, count: int) -> None:
        """After each call: no symbol may have become a number."""
        for made in self.recorder.renamed:
            if made in self.environment.replacements:
                name = self.recorder.renamed[made]
                frame: Any = sys._getframe(2)
                raise RecordingError(
                    f"dim '{name}' is dynamic, but {self.where(traceback.extract_stack(frame))} fixes it to "
                    f"{self.environment.replacements[made]}: use x.shape[i] without int(), or record without this dim in "
                    f"dynamic_shapes", self.place())
        if self.tell is not None and time.monotonic() - self.told > 0.5:
            self.told = time.monotonic()
            self.tell(f"{self.mode}, call {count}")

    def place(self) -> str:
        return str(self.recorder.modules[-1][0]) if self.recorder.modules else ""

    def where(self, frames: Any) -> str:
        """The innermost line that is the user's, and its module."""
        from ._recorder import HERE, TORCH
        path = self.place()
        kind = self.recorder.modules[-1][1].split(".")[-1] if self.recorder.modules else type(self.model).__name__
        module = f"module '{path}' ({kind})" if path else f"the network ({kind})"
        for frame in reversed(list(frames)):
            if not frame.filename.startswith((TORCH, HERE)):
                return f"{module}, {frame.filename}, line {frame.lineno} ({frame.line}),"
        return module

    def explain(self, error: Exception) -> str:
        where = self.where(traceback.extract_tb(error.__traceback__))
        kind, text = type(error).__name__, str(error).strip().split("\n")[0]
        if kind in ("DataDependentOutputException", "GuardOnDataDependentSymNode"):
            return (f"{where} needs the value of a tensor ({text}), which a recording does not have: avoid .item(), .tolist() and "
                    f"tensors in conditions")
        if kind == "DynamicOutputShapeException":
            return f"{where} gives a result whose size depends on values ({text}): its size must follow from the inputs' sizes"
        if "to be on the same device" in text or "found at least two devices" in text or "FakeTensor Device Propagation" in text:
            return (f"{where} mixes tensors of the host and of the GPU ({text}): create tensors on the device of the inputs, "
                    f"device=x.device, or register them as buffers")
        return f"{where} raises {kind}: {text}"

    # The program

    def finish(self, results: Any) -> Dict[str, Any]:
        from torch.utils import _pytree
        recorder = self.recorder
        recorder.note_gradients()
        recorder.ended = True
        outputs = [recorder.name_of(r) for r in _pytree.tree_flatten(plain(results))[0] if isinstance(r, self.torch.Tensor)]
        lasting = {recorder.storage_number(name) for name in outputs}
        inputs = [*(name for name, _ in self.parameters), *(name for name, *_ in self.buffers), *recorder.constants, *self.inputs]
        lasting |= {recorder.storage_number(name) for name in inputs}
        recorder.drop_unread_detach(outputs)
        specs: List[Any] = [{"parameter": {"arg": {"name": n}, "parameter_name": full}} for n, full in self.parameters]
        specs += [{"buffer": {"arg": {"name": n}, "buffer_name": full, "persistent": kept}} for n, full, kept in self.buffers]
        specs += [{"tensor_constant": {"arg": {"name": n}, "tensor_constant_name": n}} for n in recorder.constants]
        specs += [{"user_input": {"arg": {"as_tensor": {"name": n}}}} for n in self.inputs]
        graph = {"inputs": [{"as_tensor": {"name": n}} for n in inputs], "outputs": [{"as_tensor": {"name": n}} for n in outputs],
                 "nodes": recorder.nodes, "tensor_values": recorder.values, "sym_int_values": recorder.sym_ints,
                 "sym_float_values": recorder.sym_floats, "sym_bool_values": {}}
        return {"graph_module": {"graph": graph, "signature": {"input_specs": specs, "output_specs": [
            {"user_output": {"arg": {"as_tensor": {"name": n}}}} for n in outputs]}},
            "range_constraints": {name: {"min_val": 1, "max_val": None} for name in self.symbols},
            "lifetimes": recorder.lifetimes(lasting, self.mode == "training")}


def plain(results: Any) -> Any:
    """Objects with fields, such as those of transformers, as what they hold."""
    if hasattr(results, "to_tuple"):
        return results.to_tuple()
    return dict(results) if isinstance(results, dict) else results


@contextlib.contextmanager
def kept_as_it_was(model: Any) -> Iterator[None]:
    """Whatever the run changes in the attributes of modules is undone; in tables, too, where parameters and hooks are."""
    before = [(m, dict(m.__dict__), {t: dict(v) for t, v in m.__dict__.items() if isinstance(v, dict)})
              for m in model.modules()]
    try:
        yield
    finally:
        for module, attributes, contents in before:
            module.__dict__.clear()
            module.__dict__.update(attributes)
            for name, content in contents.items():
                table = attributes[name]
                if [*table] != [*content] or any(table[key] is not x for key, x in content.items()):  # some can only be read (diffusers' config)
                    table.clear()
                    table.update(content)


def find(name: str) -> Any:
    """What MODULE:FUNCTION gives: (model, args), and kwargs and dynamic_shapes where there are more."""
    module, _, function = name.partition(":")
    if not function:
        raise UsageError(f"expected MODULE:FUNCTION, found '{name}': FUNCTION() returns (model, args)")
    sys.path.insert(0, os.getcwd())
    if module.endswith(".py"):
        sys.path.insert(0, os.path.dirname(os.path.abspath(module)))
        module = os.path.basename(module)[:-3]
    try:
        found = getattr(importlib.import_module(module), function)()
    except (ImportError, AttributeError) as error:
        raise UsageError(f"cannot call {name}: {error}") from error
    if not isinstance(found, tuple) or not 2 <= len(found) <= 4:
        raise UsageError(f"{name} returned {type(found).__name__}: expected (model, args), (model, args, kwargs) or (model, args, "
                         f"kwargs, dynamic_shapes)")
    return found


def main(argv: Optional[Sequence[str]] = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m onnxvram.record", description=(
        "Record the calls that a network makes in eager PyTorch, without a GPU, for onnxvram --program."))
    parser.add_argument("function", metavar="MODULE:FUNCTION", help=(
        "FUNCTION() returns (model, args), and kwargs and dynamic_shapes where they are needed; MODULE may be a file.py"))
    parser.add_argument("-o", "--output", default="model.program.json", metavar="FILE",
                        help="file to write, compressed where it ends in .gz (default: model.program.json)")
    parser.add_argument("--mode", choices=(*MODES, "both"), default="both", help="what to record (default: both)")
    parser.add_argument("--batch", metavar="NAME", help="make dim 0 of every tensor of args dynamic, by this name")
    options = parser.parse_args(argv)
    try:
        model, args, kwargs, shapes = (*find(options.function), None, None)[:4]
        if options.batch:
            shapes = tuple({0: options.batch} if getattr(a, "ndim", 0) else None for a in args)
        record(model, args, kwargs, dynamic_shapes=shapes, path=options.output,
               modes=MODES if options.mode == "both" else (options.mode,), progress=sys.stderr.isatty())
    except (RecordingError, UsageError) as error:
        print(f"python -m onnxvram.record: {error}", file=sys.stderr)
        return 2 if isinstance(error, UsageError) else 1
    return 0
