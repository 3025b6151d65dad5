"""A recording of one run of a network: the calls as they are dispatched, and when their results are freed.

The run is on fake CUDA tensors (torch._subclasses.FakeTensorMode), which have sizes, strides and storages but no memory.
"""
import linecache
import math
import os
import sys
import weakref
from typing import Any, Callable, Dict, List, Optional, Tuple

import sympy
import torch
from torch._dispatch.python import enable_python_dispatcher
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.utils import _pytree
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.weak import WeakIdKeyDictionary

from ._cuda_calls import corrected
from ._program_file import FORMATS, LAYOUTS, Json, dtype_number

HERE = os.path.dirname(os.path.abspath(__file__))
TORCH = os.path.dirname(os.path.abspath(torch.__file__))
MOST_KNOWN = 1 << 16  # elements of a tensor whose values are followed
LAYERS = os.path.join(TORCH, "nn", "modules")
MODULE_FILE = os.path.join(LAYERS, "module.py")


class Saved:
    """What autograd keeps in place of a tensor: gone when autograd lets go of it."""
    __slots__ = ("__weakref__",)


class Storage:
    """What is known of a stretch of memory while the network runs."""
    __slots__ = ("number", "values", "is_alive", "saved", "freed_after")

    def __init__(self, number: int) -> None:
        self.number, self.values, self.is_alive = number, [], True  # type: int, List[str], bool
        self.saved, self.freed_after = 0, None  # type: int, Optional[str]


class Recorder(TorchDispatchMode):  # type: ignore[misc]
    """Logs the calls that reach it. `modules` are those that run now, the outermost first: (path, class)."""

    def __init__(self, entry: Any, names: Dict[Any, Any], follow: Callable[[int], None]) -> None:
        """`entry` is the code that calls the network, `names` renames symbols, `follow` is called after each call."""
        super().__init__()
        self.entry, self.renamed, self.follow = entry, names, follow
        self.nodes: List[Json] = []
        self.values: Dict[str, Json] = {}
        self.sym_ints: Dict[str, Json] = {}
        self.sym_floats: Dict[str, Json] = {}
        self.constants: List[str] = []
        self.modules: List[Tuple[str, str]] = []
        self.storages: Dict[int, Storage] = {}
        self.every_storage: List[Storage] = []
        self.names: Any = {}
        self.taken: Dict[str, int] = {}
        self.watched: List[Tuple[Any, str, int]] = []
        self.symbols: Dict[Any, str] = {}
        self.ended = False
        self.kept: List[str] = []  # what autograd keeps, in order
        self.known: Any = WeakIdKeyDictionary()  # the values of tensors that follow from constants alone, such as masks

    # Values

    def unique(self, base: str) -> str:
        name = base
        while name in self.taken:
            name = f"{base}_{self.taken[base]}"
            self.taken[base] += 1
        self.taken[name] = 1
        return name

    def expression(self, value: Any) -> Any:
        return value.node.expr.xreplace(self.renamed)

    def size(self, size: Any) -> Json:
        if not isinstance(size, torch.SymInt):
            return {"as_int": int(size)}
        expression = self.expression(size)
        if expression.is_number:
            return {"as_int": int(expression)}
        return {"as_expr": {"expr_str": sympy.srepr(expression), "hint": {"as_int": int(size.node.hint)}}}

    def describe(self, tensor: Any) -> Json:
        strided = tensor.layout == torch.strided
        return {"dtype": dtype_number(tensor.dtype), "sizes": [self.size(s) for s in tensor.shape],
                "requires_grad": bool(tensor.requires_grad),
                "device": {"type": tensor.device.type, "index": None},
                "strides": [self.size(s) for s in tensor.stride()] if strided else [],
                "storage_offset": self.size(tensor.storage_offset() if strided else 0),
                "layout": LAYOUTS.get(tensor.layout, 0)}

    def storage_of(self, tensor: Any) -> Optional[Storage]:
        if tensor.layout != torch.strided or not isinstance(tensor, torch._subclasses.FakeTensor):
            return None
        memory = tensor.untyped_storage()
        storage = self.storages.get(memory._cdata)
        if storage is None:
            storage = self.storages[memory._cdata] = Storage(len(self.every_storage))
            self.every_storage.append(storage)
            weakref.finalize(memory, self.freed, memory._cdata, storage).atexit = False
        return storage

    def add(self, tensor: Any, base: str) -> str:
        """A new value, under which the tensor is known from now on."""
        name = self.unique(base)
        return self.name(tensor, name)

    def name(self, tensor: Any, name: str) -> str:
        self.values[name] = self.describe(tensor)
        key = id(tensor)
        self.names[key] = (weakref.ref(tensor, lambda _: self.forget(key, name)), name)
        storage = self.storage_of(tensor)
        if storage is not None:
            storage.values.append(name)
        return name

    def forget(self, key: int, name: str) -> None:
        if self.names.get(key, (None, None))[1] == name:
            del self.names[key]

    def name_of(self, tensor: Any) -> str:
        found = self.names.get(id(tensor))
        if found is not None and found[0]() is tensor:
            return str(found[1])
        # Autograd copies the object of a tensor here and there; the memory is the same.
        storage = self.storage_of(tensor)
        if storage is not None:
            meta = self.describe(tensor)
            for name in reversed(storage.values):
                if all(self.values[name][k] == meta[k] for k in ("dtype", "sizes", "strides", "storage_offset")):
                    return name
        name = self.add(tensor, "constant")
        self.constants.append(name)
        return name

    # Lifetimes

    def last(self) -> Optional[str]:
        return str(self.nodes[-1]["name"]) if self.nodes else None

    def freed(self, key: int, storage: Storage) -> None:
        if self.storages.get(key) is storage:
            del self.storages[key]
        if not self.ended:
            storage.is_alive = False
            storage.freed_after = self.last()

    def unsaved(self, storage: Storage) -> None:
        if not self.ended:
            storage.saved -= 1
            if not storage.saved and not storage.is_alive:
                storage.freed_after = self.last()

    def save(self, tensor: Any) -> Saved:
        token, storage = Saved(), self.storage_of(tensor)
        if storage is not None:
            storage.saved += 1
            self.kept += storage.values[-1:]
            weakref.finalize(token, self.unsaved, storage).atexit = False
        return token

    # Calls

    def argument(self, value: Any) -> Json:
        if value is None:
            return {"as_none": True}
        if isinstance(value, torch.Tensor):
            return {"as_tensor": {"name": self.name_of(value)}}
        if isinstance(value, bool):
            return {"as_bool": value}
        if isinstance(value, int):
            return {"as_int": value}
        if isinstance(value, float):
            return {"as_float": value if math.isfinite(value) else "NaN" if math.isnan(value) else
                    "Infinity" if value > 0 else "-Infinity"}
        if isinstance(value, torch.SymInt):
            return {"as_sym_int": self.symbolic(value)}
        if isinstance(value, torch.SymFloat):
            return {"as_sym_float": self.symbolic(value)}
        if isinstance(value, str):
            return {"as_string": value}
        if isinstance(value, complex):
            return {"as_complex": {"real": value.real, "imag": value.imag}}
        if isinstance(value, torch.dtype):
            return {"as_scalar_type": dtype_number(value)}
        if isinstance(value, torch.device):
            return {"as_device": {"type": value.type, "index": value.index}}
        if isinstance(value, (list, tuple)):
            return self.list_argument(value)
        if isinstance(value, torch.layout):
            return {"as_layout": LAYOUTS.get(value, 0)}
        if isinstance(value, torch.memory_format):
            return {"as_memory_format": FORMATS[value]}
        return {"as_string": type(value).__name__}

    def list_argument(self, values: Any) -> Json:
        if any(isinstance(v, torch.Tensor) for v in values):
            if all(isinstance(v, torch.Tensor) for v in values):
                return {"as_tensors": [{"name": self.name_of(v)} for v in values]}
            return {"as_optional_tensors": [self.argument(v) for v in values]}
        if any(isinstance(v, torch.SymInt) for v in values):
            return {"as_sym_ints": [self.symbolic(v) for v in values]}
        if values and all(isinstance(v, bool) for v in values):
            return {"as_bools": list(values)}
        if all(isinstance(v, int) for v in values):
            return {"as_ints": list(values)}
        if all(isinstance(v, (int, float)) for v in values):
            return {"as_floats": [float(v) for v in values]}
        return {"as_none": True}

    def symbolic(self, value: Any) -> Json:
        if isinstance(value, (int, float)):
            return {"as_int": value} if isinstance(value, int) else {"as_float": value}
        expression = self.expression(value)
        is_float = isinstance(value, torch.SymFloat)
        if expression.is_number:
            return {"as_float": float(expression)} if is_float else {"as_int": int(expression)}
        if expression not in self.symbols:
            name = self.symbols[expression] = self.unique("sym_float" if is_float else "sym_int")
            if is_float:
                self.sym_floats[name] = {"as_expr": {"expr_str": sympy.srepr(expression),
                                                     "hint": {"as_float": float(value.node.hint)}}}
            else:
                self.sym_ints[name] = self.size(value)
        return {"as_name": self.symbols[expression]}

    def result(self, value: Any, call: str) -> Json:
        if isinstance(value, torch.Tensor):
            return {"as_tensor": {"name": self.add(value, f"{call}_r")}}
        if isinstance(value, (list, tuple)):
            return {"as_tensors": [{"name": self.add(v, f"{call}_r")} for v in value if isinstance(v, torch.Tensor)]}
        return self.argument(value)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        given = func._schema.arguments
        inputs = [{"name": given[i].name if i < len(given) else str(i), "arg": self.argument(a), "kind": 1}
                  for i, a in enumerate(args)]
        inputs += [{"name": k, "arg": self.argument(v), "kind": 2} for k, v in kwargs.items()]
        if func is torch.ops.aten._local_scalar_dense.default and args[0] in self.known:
            with unset_fake_temporarily():
                return self.known[args[0]].item()
        with enable_python_dispatcher():  # without it C++ reads sizes as numbers (pad, interpolate ...), which fixes symbols
            results = corrected(func, args, func(*args, **kwargs))
        self.follow_values(func, args, kwargs, results)
        if not (func._schema.is_mutable or has_tensor(results)):
            return results  # a size or a device that was asked for
        self.note_gradients()
        name = self.unique(func._schema.name.split("::")[-1])
        if isinstance(results, torch.Tensor):  # a call and its only result have one name
            outputs = [{"as_tensor": {"name": self.name(results, name)}}]
        else:
            several = isinstance(results, tuple) and len(func._schema.returns) > 1
            outputs = [self.result(r, name) for r in (results if several else (results,))]
        for r in results if isinstance(results, (list, tuple)) else (results,):
            if isinstance(r, torch.Tensor) and (r.dtype.is_floating_point or r.dtype.is_complex):
                self.watched.append((weakref.ref(r), self.names[id(r)][1], 0))
        self.nodes.append({"target": f"torch.ops.{func}", "name": name, "inputs": inputs, "outputs": outputs,
                           "metadata": {"stack_trace": self.trace(), "nn_module_stack": self.module_stack()}})
        self.follow(len(self.nodes))
        return results

    def end_function(self, first: int, n_kept: int, given: Any, results: Any) -> None:
        """An autograd.Function of the network's own has run, whose calls are those from `first` on: a call of what it is to autograd,
        with what it has saved, from `n_kept` on, and what it may hold besides, which lifetimes tell."""
        made = [r for r in _pytree.tree_leaves(results) if isinstance(r, torch.Tensor) and r.requires_grad]
        inside = {name for node in self.nodes[first:] for entry in node["outputs"] for name in names_in(entry)}
        if not made or not inside.intersection(self.name_of(r) for r in made):
            return
        self.watched = [w for w in self.watched if not any(w[0]() is r for r in made)]
        name = self.unique("own_function")
        lists = {"given": [self.name_of(a) for a in _pytree.tree_leaves(given) if isinstance(a, torch.Tensor)],
                 "made": [self.name_of(r) for r in made]}
        lists["kept"] = list(dict.fromkeys(self.kept[n_kept:] + sorted(inside.difference(lists["made"]))))
        inputs = [{"name": k, "arg": {"as_tensors": [{"name": n} for n in v]}, "kind": 1} for k, v in lists.items()]
        outputs = [{"as_tensor": {"name": self.name(r, name if len(made) == 1 else self.unique(f"{name}_r"))}} for r in made]
        self.nodes.append({"target": "torch.ops.higher_order.own_function", "name": name, "inputs": inputs, "outputs": outputs,
                           "metadata": {"stack_trace": self.trace(), "nn_module_stack": self.module_stack()}})

    def module_stack(self) -> str:
        return ";".join(f"L__self__{p.replace('.', '_')},{p},{c}" for p, c in self.modules)

    def follow_values(self, func: Any, args: Any, kwargs: Any, results: Any) -> None:
        """What a call gives that reads nothing but constants, computed on the host: networks ask whether a mask is causal."""
        flat, spec = _pytree.tree_flatten((args, kwargs))
        tensors = [a for a in flat if isinstance(a, torch.Tensor)]
        known = all(isinstance(t, torch.Tensor) and t in self.known for t in tensors)
        if torch.Tag.nondeterministic_seeded in func.tags or func._schema.is_mutable or not (known and (tensors or is_factory(func))):
            for t in tensors if func._schema.is_mutable else ():
                self.known.pop(t, None)
            return
        made = [r for r in (results if isinstance(results, (list, tuple)) else (results,)) if isinstance(r, torch.Tensor)]
        if not made or any(isinstance(s, torch.SymInt) or s > MOST_KNOWN for r in made for s in (*r.shape, r.numel())):
            return
        host = torch.device("cpu")
        flat = [self.known[a] if isinstance(a, torch.Tensor) else host if isinstance(a, torch.device) else a for a in flat]
        with unset_fake_temporarily():
            found_args, found_kwargs = _pytree.tree_unflatten(flat, spec)
            found = func(*found_args, **found_kwargs)
        for result, value in zip(made, found if isinstance(found, (list, tuple)) else (found,)):
            self.known[result] = value

    def note_gradients(self) -> None:
        """Autograd marks a result once the call has returned, and asks for other things before."""
        waiting = []
        for reference, name, age in self.watched:
            tensor = reference()
            if tensor is not None and tensor.requires_grad:
                self.values[name]["requires_grad"] = True
            elif tensor is not None and age < 2:
                waiting.append((reference, name, age + 1))
        self.watched = waiting

    def trace(self) -> str:
        """The lines that led to the call, the outermost first, as the archive has them; of PyTorch those of nn.Module alone."""
        frame, lines = sys._getframe(2), []  # type: Any, List[str]
        while frame is not None and frame.f_code is not self.entry:
            code = frame.f_code
            name = code.co_filename
            if not name.startswith((TORCH, HERE)) or name.startswith(LAYERS) and name != MODULE_FILE:
                text = linecache.getline(name, frame.f_lineno).strip()
                lines.append(f'File "{name}", line {frame.f_lineno}, in {code.co_name}\n    {text}')
            frame = frame.f_back
        return "\n  ".join(reversed(lines))

    # What a program needs at the end

    def storage_number(self, name: str) -> int:
        return self.numbers().get(name, -1)

    def numbers(self) -> Dict[str, int]:
        return {name: storage.number for storage in self.every_storage for name in storage.values}

    def drop_unread_detach(self, outputs: List[str]) -> None:
        """Autograd detaches what it saves, which is no call of the network's and takes no memory."""
        read = set(outputs)
        for node in self.nodes:
            for entry in node["inputs"]:
                read.update(names_in(entry["arg"]))
        kept: List[Json] = []
        moved: Dict[str, Optional[str]] = {}
        for node in self.nodes:
            if node["target"] == "torch.ops.aten.detach.default" and node["name"] not in read:
                moved[node["name"]] = kept[-1]["name"] if kept else None
                del self.values[node["name"]]
            else:
                kept.append(node)
        self.nodes = kept
        for storage in self.every_storage:
            storage.values = [name for name in storage.values if name not in moved]
            storage.freed_after = moved.get(storage.freed_after or "", storage.freed_after)

    def lifetimes(self, lasting: Any, is_training: bool) -> Json:
        """Of each value: its storage, after which call that was freed, and whether autograd kept it for backward. What neither
        the network's results nor its state hold is held for backward: by a context, or by what runs again."""
        result = {}
        for storage in self.every_storage:
            kept = storage.saved > 0 or is_training and storage.is_alive and storage.number not in lasting
            for name in storage.values:
                result[name] = {"storage": storage.number, "kept": kept,
                                "freed_after": None if storage.is_alive else storage.freed_after}
        return result


def is_factory(func: Any) -> bool:
    return func._schema.name.split("::")[-1] in ("full", "ones", "zeros", "arange", "linspace", "eye", "scalar_tensor", "tril_indices",
                                                 "triu_indices")


def has_tensor(results: Any) -> bool:
    if isinstance(results, (list, tuple)):
        return any(has_tensor(r) for r in results)
    return isinstance(results, torch.Tensor)


def names_in(argument: Json) -> List[str]:
    for kind, value in argument.items():
        if kind == "as_tensor":
            return [value["name"]]
        if kind == "as_tensors":
            return [v["name"] for v in value]
        if kind == "as_optional_tensors":
            return [name for v in value for name in names_in(v)]
    return []
