"""A few lines that behave as PyTorch does, as far as python/onnxvram/recompute.py sees it: memory with addresses that are
used again, operations that a dispatch mode sees below autograd, what autograd saves and through which hooks, modules.
Tensors have one dim. Sizes count elements.
"""

import collections
import contextlib
import enum
import heapq
import random
import sys
import types


class Memory:
    free, n_addresses, live, peak = [], 0, 0, 0


class Storage:
    def __init__(self, data, on_host=False):
        if Memory.free:
            self._cdata = heapq.heappop(Memory.free)
        else:
            Memory.n_addresses += 1
            self._cdata = Memory.n_addresses
        self.data, self.version, self.on_host = list(data), 0, on_host
        Memory.live += 0 if on_host else len(self.data)
        Memory.peak = max(Memory.peak, Memory.live)

    def __del__(self):
        heapq.heappush(Memory.free, self._cdata)
        Memory.live -= 0 if self.on_host else len(self.data)


Device = collections.namedtuple("Device", "type")


class Tensor:
    dtype, grad, node, base, seen = "float64", None, None, None, 0

    def __init__(self, data=(), storage=None, offset=0, n=None):
        self.storage = Storage(data) if storage is None else storage
        self.offset, self.shape = offset, (len(self.storage.data) if n is None else n,)
        self.is_leaf = self.requires_grad = False

    def values(self):
        return self.storage.data[self.offset:self.offset + self.shape[0]]

    def write(self, values):
        self.storage.data[self.offset:self.offset + self.shape[0]] = values
        self.storage.version += 1

    def alias(self):
        return Tensor((), self.storage, self.offset, self.shape[0])

    untyped_storage = property(lambda self: lambda: self.storage)
    is_cuda = property(lambda self: not self.storage.on_host)
    device = property(lambda self: Device("cuda" if self.is_cuda else "cpu"))
    _version = property(lambda self: self.storage.version)

    def storage_offset(self):
        return self.offset

    def stride(self):
        return (1,)

    def size(self):
        return self.shape

    def detach(self):
        return call(detach, self)

    def clone(self):
        return call(clone, self)

    def copy_(self, other, non_blocking=False):
        return call(copy_, self, other)

    def to(self, device, non_blocking=False):
        return call(clone, self) if device.type == "cuda" else self

    def as_strided(self, shape, strides, offset):
        return Tensor((), self.storage, offset, shape[0])

    def chunk(self):
        return call(chunk, self)


def empty(size, dtype=None, device="cpu", pin_memory=False):
    return Tensor((), Storage([0.0] * size[0], on_host=device == "cpu"))


# --- Operations ---------------------------------------------------------------------------------------------------------

class Tag(enum.Enum):
    nondeterministic_seeded = 0


class Operation:
    """`grads`: gradients of results, and values of what is saved (of arguments, of results) -> gradients of arguments."""

    runs = 0  # of all operations

    def __init__(self, name, run, saves=(), saves_results=(), grads=None, writes=(), seeded=False, is_view=False):
        self.run, self.saves, self.saves_results, self.grads = run, saves, saves_results, grads
        self.writes, self.is_view = writes, is_view
        self.overloadpacket = types.SimpleNamespace(__name__=name)
        arguments = [types.SimpleNamespace(alias_info=types.SimpleNamespace(is_write=True) if i in writes else None)
                     for i in range(5)]
        self._schema = types.SimpleNamespace(arguments=arguments)
        self.tags = {Tag.nondeterministic_seeded} if seeded else set()

    def __call__(self, *args, **kwargs):
        return call(self, *args, **kwargs)


def pointwise(function):
    return lambda *args: Tensor(map(function, *(x.values() for x in args)))


def in_place(function):
    def run(x, *others):
        x.write(list(map(function, x.values(), *(y.values() for y in others))))
        return x
    return run


def zipped(function, *lists):
    return list(map(function, *lists))


def product_grads(grads, saved):
    return [zipped(float.__mul__, grads[0], saved[1]), zipped(float.__mul__, grads[0], saved[0])]


def relu_grads(grads, saved):
    return [zipped(lambda g, y: g * (y > 0), grads[0], saved[0])]


def draw(x):
    mask = Tensor([float(generators["cuda"].random() < 0.5) for _ in x.values()])
    return Tensor(zipped(float.__mul__, x.values(), mask.values())), mask


def normalise(x, weight, bias, mean, count):
    mean.write([m + v for m, v in zip(mean.values(), x.values())])
    return Tensor(zipped(lambda v, w, b: v * w + b, x.values(), weight.values(), bias.values()))


def halves(x):
    n = x.shape[0] // 2
    return Tensor((), x.storage, x.offset, n), Tensor((), x.storage, x.offset + n, x.shape[0] - n)


def halves_grads(grads, saved):
    n = max(len(g) for g in grads if g is not None)
    return [(grads[0] or [0.0] * n) + (grads[1] or [0.0] * n)]


def join_grads(grads, saved):
    n = len(grads[0]) // 2
    return [grads[0][:n], grads[0][n:]]


mul = Operation("mul", pointwise(float.__mul__), saves=(0, 1), grads=product_grads)
mm = Operation("mm", pointwise(float.__mul__), saves=(0, 1), grads=product_grads)
add = Operation("add", pointwise(float.__add__), grads=lambda grads, _: [grads[0], grads[0]])
add_ = Operation("add_", in_place(float.__add__), grads=lambda grads, _: [grads[0], grads[0]], writes=(0,))
relu = Operation("relu", pointwise(lambda x: max(x, 0.0)), saves_results=(0,), grads=relu_grads)
relu_ = Operation("relu_", in_place(lambda x: max(x, 0.0)), saves_results=(0,), grads=relu_grads, writes=(0,))
native_dropout = Operation("native_dropout", draw, saves_results=(1,), seeded=True,
                           grads=lambda grads, saved: [zipped(float.__mul__, grads[0], saved[0])])
# Its schema does not say what it writes.
batch_norm = Operation("cudnn_batch_norm", normalise, saves=(0, 1), grads=lambda grads, saved: [
    *product_grads(grads, saved), grads[0], None, None])
chunk = Operation("chunk", halves, grads=halves_grads, is_view=True)
cat = Operation("cat", lambda x, y: Tensor(x.values() + y.values()), grads=join_grads)
stack = Operation("stack", cat.run, grads=join_grads)
detach = Operation("detach", Tensor.alias)
clone = Operation("clone", lambda x: Tensor(x.values()))
copy_ = Operation("copy_", in_place(lambda _, y: y), writes=(0,))


# --- Dispatch -----------------------------------------------------------------------------------------------------------

modes, hooks, grad_enabled = [], [], [True]


class TorchDispatchMode:
    def __init__(self):
        pass

    def __enter__(self):
        modes.append(self)
        return self

    def __exit__(self, *_):
        modes.remove(self)


def below_autograd(func, args):
    if not modes:
        Operation.runs += 1
        return func.run(*args)
    mode = modes.pop()
    try:
        return mode.__torch_dispatch__(func, (), args, {})
    finally:
        modes.append(mode)


def as_tuple(x):
    return x if isinstance(x, tuple) else (x,)


def call(func, *args):
    traced = func.grads is not None and grad_enabled[0] and any(needs_grad(x) for x in args)
    node = Node(func, [edge(x) for x in args]) if traced else None
    if traced:
        node.saved = [Saved(args[i]) for i in func.saves]
    out = below_autograd(func, args)
    if not traced:
        return out
    results = as_tuple(out)
    for i, x in enumerate(results):
        x.node, x.requires_grad, x.is_leaf = (node, i), True, False
        node.n_results = len(results)
        if func.is_view:
            x.base, x.seen = args[0], args[0].storage.version
    node.saved += [Saved(results[i]) for i in func.saves_results]
    return out


# --- Autograd -----------------------------------------------------------------------------------------------------------

def needs_grad(x):
    return x.requires_grad


def edge(x):
    """A view of what was overwritten since has its gradient from there."""
    if not x.requires_grad:
        return None
    if x.base is not None and x.seen != x.storage.version:
        node = Node(chunk, [edge(x.base)])
        node.n_results, x.seen = 2, x.storage.version
        x.node = (node, x.node[1])
    return x.node if x.node is not None else x


class Node:
    count = 0

    def __init__(self, func, edges):
        Node.count += 1
        self.number, self.func, self.edges, self.saved, self.n_results = Node.count, func, edges, [], 1


class Overwritten(Exception):
    """A tensor that backward needs was changed in place."""


class Saved:
    def __init__(self, tensor):
        self.hooks = hooks[-1] if hooks else None
        self.version = tensor.storage.version
        self.what = self.hooks[0](tensor.alias()) if self.hooks else tensor.alias()

    def get(self):
        if self.hooks:
            return self.hooks[1](self.what)
        if self.what.storage.version != self.version:
            raise Overwritten()
        return self.what


@contextlib.contextmanager
def saved_tensors_hooks(pack, unpack):
    hooks.append((pack, unpack))
    try:
        yield
    finally:
        hooks.pop()


@contextlib.contextmanager
def no_grad():
    before, grad_enabled[0] = grad_enabled[0], False
    try:
        yield
    finally:
        grad_enabled[0] = before


@contextlib.contextmanager
def enable_grad():
    before, grad_enabled[0] = grad_enabled[0], True
    try:
        yield
    finally:
        grad_enabled[0] = before


def backward(tensor):
    """Of the sum of its elements. The node that was made last goes first."""
    node, index = tensor.node
    grads = {node: {index: [1.0] * tensor.shape[0]}}
    while grads:
        node = max(grads, key=lambda n: n.number)
        given = grads.pop(node)
        saved = [s.get() for s in node.saved]
        with no_grad():
            made = node.func.grads([given.get(i) for i in range(node.n_results)], [s.values() for s in saved])
        del saved
        node.saved = []
        for to, grad in zip(node.edges, made):
            if to is None or grad is None:
                continue
            if isinstance(to, Tensor):
                to.grad = grad if to.grad is None else zipped(float.__add__, to.grad, grad)
                continue
            slots = grads.setdefault(to[0], {})
            slots[to[1]] = zipped(float.__add__, slots[to[1]], grad) if to[1] in slots else grad


# --- Modules ------------------------------------------------------------------------------------------------------------

def parameter(values):
    x = Tensor(values)
    x.is_leaf = x.requires_grad = True
    return x


class Module:
    forward = None

    def __init__(self):
        self.before, self.behind = [], []

    def __call__(self, *args, **kwargs):
        for hook in self.before:
            hook(self, args)
        out = None
        try:
            out = self.forward(*args, **kwargs)
        finally:
            for hook in self.behind:
                hook(self, args, out)
        return out

    def register_forward_pre_hook(self, hook):
        self.before.append(hook)

    def register_forward_hook(self, hook, always_call=False):
        self.behind.append(hook)

    _forward_pre_hooks = property(lambda self: self.before)
    _forward_hooks = property(lambda self: self.behind)

    def modules(self):
        return (module for _, module in self.named_modules())

    def named_modules(self, prefix="", remove_duplicate=True):
        yield prefix, self
        for name, child in vars(self).items():
            if isinstance(child, Module):
                yield from child.named_modules(f"{prefix}.{name}" if prefix else name)

    def tensors(self):
        for _, module in self.named_modules():
            yield from (x for x in vars(module).values() if isinstance(x, Tensor))

    def parameters(self):
        return (x for x in self.tensors() if x.requires_grad)

    def buffers(self):
        return (x for x in self.tensors() if not x.requires_grad)


class Sequential(Module):
    def __init__(self, *modules):
        super().__init__()
        vars(self).update((str(i), module) for i, module in enumerate(modules))

    def __iter__(self):
        return (child for child in vars(self).values() if isinstance(child, Module))

    def forward(self, x):
        for module in self:
            x = module(x)
        return x


# --- Checkpoints --------------------------------------------------------------------------------------------------------

def checkpoint(function, *args, use_reentrant, context_fn=None, **kwargs):
    """What autograd would keep is a number, until backward asks for the first one: then the function runs once more."""
    assert use_reentrant is False
    saved, n_saved = [], [0]
    first, second = context_fn() if context_fn is not None else (contextlib.nullcontext(),) * 2

    def pack(_):
        n_saved[0] += 1
        return n_saved[0] - 1

    def unpack(number):
        if not saved:
            with second, enable_grad(), saved_tensors_hooks(lambda tensor: saved.append(tensor), lambda nothing: nothing):
                function(*args, **kwargs)
        return saved[number]

    with first, saved_tensors_hooks(pack, unpack):
        return function(*args, **kwargs)


def checkpoint_sequential(functions, segments, input, use_reentrant):
    def run(first, end):
        def forward(x):
            for function in functions[first:end]:
                x = function(x)
            return x
        return forward

    size = len(functions) // segments
    for first in range(0, size * (segments - 1), size):
        input = checkpoint(run(first, first + size), input, use_reentrant=use_reentrant)
    return run(size * (segments - 1), len(functions))(input)


# --- The rest -----------------------------------------------------------------------------------------------------------

generators = {"cpu": random.Random(1), "cuda": random.Random(2)}


@contextlib.contextmanager
def fork_rng(devices):
    states = {name: generator.getstate() for name, generator in generators.items()}
    yield
    for name, state in states.items():
        generators[name].setstate(state)


def tree_iter(tree, is_leaf=None):
    if (is_leaf is None or not is_leaf(tree)) and isinstance(tree, (tuple, list, dict)):
        for item in tree.values() if isinstance(tree, dict) else tree:
            yield from tree_iter(item, is_leaf)
    else:
        yield tree


def tree_map_only(kind, function, tree, is_leaf=None):
    if (is_leaf is None or not is_leaf(tree)) and isinstance(tree, dict):
        return {key: tree_map_only(kind, function, item, is_leaf) for key, item in tree.items()}
    if (is_leaf is None or not is_leaf(tree)) and isinstance(tree, (tuple, list)):
        return type(tree)(tree_map_only(kind, function, item, is_leaf) for item in tree)
    return function(tree) if isinstance(tree, kind) else tree


def install():
    """As the module `torch`."""
    def module(name, **items):
        made = sys.modules[name] = types.ModuleType(name)
        vars(made).update(items)
        parent, _, own = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], own, made)

    module("torch", Tensor=Tensor, Tag=Tag, empty=empty, no_grad=no_grad, is_grad_enabled=lambda: grad_enabled[0],
           get_rng_state=generators["cpu"].getstate, set_rng_state=generators["cpu"].setstate)
    module("torch.cuda", is_available=lambda: True, is_initialized=lambda: True, current_device=lambda: 0,
           get_rng_state=generators["cuda"].getstate, set_rng_state=generators["cuda"].setstate)
    module("torch.random", fork_rng=fork_rng)
    module("torch.autograd")
    module("torch.autograd.graph", saved_tensors_hooks=saved_tensors_hooks)
    module("torch.utils")
    module("torch.utils.checkpoint", checkpoint=checkpoint, checkpoint_sequential=checkpoint_sequential)
    module("torch.nn", Module=Module, Sequential=Sequential)
    module("torch.compiler", is_compiling=lambda: False, disable=lambda function: function)
    module("torch.utils._python_dispatch", TorchDispatchMode=TorchDispatchMode)
    module("torch.utils._pytree", tree_iter=tree_iter, tree_map_only=tree_map_only)
