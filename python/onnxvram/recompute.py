"""What the plans of `onnxvram MODEL.onnx --checkpoint LIST --plan-out plan.py` need: torch, and this file alone.

    from onnxvram import recompute
    recompute.apply(network, plan)

`plan` is a dictionary, as such a module, the member "apply" of a plan in JSON, or Plan.apply() of the package has it:

    {"form": "modules", "modules": ["layers.0", "layers.2 layers.3"]}     rows of modules, each under torch.utils.checkpoint
    {"form": "modules", "modules": [...], "save": "product+attention"}      create_selective_checkpoint_contexts, which saves these results
    {"form": "modules", "modules": [...], "checkpoint": "reentrant"}        checkpoint(use_reentrant=True)
    {"form": "sequential", "count": 4}                                    torch.utils.checkpoint.checkpoint_sequential
    {"form": "save_on_cpu"}                                               torch.autograd.graph.save_on_cpu
    {"form": "compile", "memory_budget": 0.5}                             torch.compile
    {"form": "operations", "segments": [["enter layers.0 1", "op layers.2 add 3"]], "keep": ["op layers.0.fc product 1"]}
"""
# Operations: checkpoints between any two operations of a network as it is written.
#
# While the forward pass runs, the operations of a segment are noted, with what comes in from outside.  What autograd
# would keep of tensors made inside is not kept: when backward first asks for some of it, the noted operations run once
# more, those alone that lead to what autograd would have kept.  Results of operations in `keep` stay, so that neither
# these nor what comes before them runs again.  Running statistics move once, random numbers are the same again.
#
# Up to the border `offload` (True: everywhere) what is kept waits on the host, parameters, buffers and inputs of the
# network excepted, and comes back to the device for the backward that asks for it.
import collections
import contextlib
import functools
import inspect
import sys

import torch
import torch.utils.checkpoint
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter, tree_map_only

Ref = collections.namedtuple("Ref", "number")  # of a tensor, among the arguments of a noted operation

KINDS = {**dict.fromkeys(("mm", "addmm", "bmm", "baddbmm", "linear"), "product"), "safe_softmax": "softmax", "rsub": "sub", "celu": "elu",
         "stack": "cat"}  # as exports write it
RESULT_SAVERS = {"relu", "sigmoid", "tanh", "softmax", "log_softmax", "exp", "sqrt", "rsqrt", "reciprocal", "elu"}


def refs_of(given):
    return [x.number for x in tree_iter(given, is_leaf=is_ref) if is_ref(x)]


def is_ref(x):
    return isinstance(x, Ref)


def key_of(tensor):
    return (tensor.untyped_storage()._cdata, tensor.storage_offset(), tensor.shape, tensor.stride(), tensor.dtype)


def kind_of(func):
    name = func.overloadpacket.__name__.strip("_")
    if name in KINDS:
        return KINDS[name]
    for kind in ("batch_norm", "layer_norm", "group_norm", "max_pool", "avg_pool", "convolution", "upsample", "attention"):
        if kind in name and "backward" not in name:
            return kind
    return name


def writes(func, args):
    """The arguments that it works in place on."""
    return [arg for arg, formal in zip(args, func._schema.arguments)
            if isinstance(arg, (torch.Tensor, Ref)) and formal.alias_info is not None and formal.alias_info.is_write]


def copies(tensors):
    """Of tensors by number; what are views of one memory are so again."""
    groups, made = collections.defaultdict(dict), {}
    for number, x in tensors.items():
        groups[key_of(x)[0], x.dtype][number] = x
    for group in groups.values():
        one = next(iter(group.values()))
        if len(group) == 1:
            made.update((number, x.clone()) for number, x in group.items())
            continue
        first = min(x.storage_offset() for x in group.values())
        end = max(x.storage_offset() + 1 + sum((n - 1) * stride for n, stride in zip(x.shape, x.stride()))
                  for x in group.values())
        copy = one.as_strided((end - first,), (1,), first).clone()
        made.update((number, copy.as_strided(x.shape, x.stride(), x.storage_offset() - first))
                    for number, x in group.items())
    return made


def random_state():
    cuda = torch.cuda.is_available() and torch.cuda.is_initialized()
    return torch.get_rng_state(), torch.cuda.get_rng_state() if cuda else None


class Moved:
    """A copy on the host."""

    def __init__(self, tensor):
        self.device = tensor.device
        self.copy = torch.empty(tensor.size(), dtype=tensor.dtype, device="cpu", pin_memory=tensor.is_cuda)
        self.copy.copy_(tensor, non_blocking=tensor.is_cuda)

    def back(self):
        return self.copy.to(self.device, non_blocking=self.device.type == "cuda")


def on_device(x):
    return x.back() if isinstance(x, Moved) else x


class Operation:
    def __init__(self, func, given):
        self.func, self.given = func, given
        self.reads, self.made = set(refs_of(given)), []  # numbers; None: no tensor
        self.overwritten = [ref.number for ref in writes(func, given[0])]
        self.views = []  # of what it overwrites: their numbers before it and behind it
        self.kept = {}  # results that stay, by number
        self.random = random_state() if torch.Tag.nondeterministic_seeded in func.tags else None

    def run(self, values, held):
        """Adds its results to the values; those in `held` stay as they are."""
        spoiled = {key_of(values[number])[0] for number in self.overwritten}
        given = {number: values[number] for number in self.reads}
        shared = {number: x for number, x in values.items() if key_of(x)[0] in spoiled} if spoiled else {}
        if not held.isdisjoint(shared):  # it works on a copy
            copied = copies(shared)
            given.update((number, x) for number, x in copied.items() if number in given)
            values.update((number, x) for number, x in copied.items() if number not in held)
        args, kwargs = tree_map_only(Ref, lambda ref: given[ref.number], self.given, is_leaf=is_ref)
        if kind_of(self.func) == "batch_norm":  # its running statistics have moved
            args = [arg.clone() if k in (3, 4) and arg is not None else arg for k, arg in enumerate(args)]
        out = self.func(*args, **kwargs) if self.random is None else self.draw_again(args, kwargs)
        values.update((number, x) for number, x in zip(self.made, tree_iter(out)) if number is not None)
        values.update((new, given[old]) for old, new in self.views)

    def draw_again(self, args, kwargs):
        state, cuda_state = self.random
        with torch.random.fork_rng([] if cuda_state is None else [torch.cuda.current_device()]):
            torch.set_rng_state(state)
            if cuda_state is not None:
                torch.cuda.set_rng_state(cuda_state)
            return self.func(*args, **kwargs)


class Segment:
    def __init__(self, parent):
        self.parent = parent
        self.items = []  # operations, and inner segments
        self.made = set()  # numbers of tensors
        self.inputs = {}  # tensors by number; those of inner segments are there when the outer one ran again
        self.needed = collections.Counter()  # by number: who will ask for it
        self.results = {}  # what is made once more and not yet asked for
        self.ran = False

    def inner(self):
        return [item for item in self.items if isinstance(item, Segment)]

    def operations(self):
        for item in self.items:
            yield from item.operations() if isinstance(item, Segment) else (item,)

    def pruned(self):
        """What is to be there in the end, the operations that run for it, and what they read from outside."""
        wanted = {number for number, count in self.needed.items() if count > 0}
        wanted = wanted.union(*(segment.reads for segment in self.inner()))
        needed, runs = set(wanted), []
        for operation in reversed(list(self.operations())):
            if needed.isdisjoint(operation.made) and needed.isdisjoint(new for _, new in operation.views):
                continue
            if not operation.kept:
                runs.append(operation)
            needed.difference_update(operation.made, (new for _, new in operation.views))
            if not operation.kept:
                needed.update(operation.reads)
        return wanted, runs[::-1], needed

    def close(self, move):
        self.reads = self.pruned()[2]
        self.inputs = {number: move(number, x) for number, x in self.inputs.items() if number in self.reads}
        self.versions = {number: x._version for number, x in self.inputs.items() if not isinstance(x, Moved)}

    def value(self, number):
        self.run_once()
        if number not in self.results:
            raise RuntimeError("backward comes here once more: a graph with recomputation is good for one backward pass")
        return self.results[number]

    def asked(self, number):
        self.needed[number] -= 1
        if self.needed[number] == 0:
            self.results.pop(number, None)

    def run_once(self):
        if not self.ran:
            if self.parent is not None:
                self.parent.run_once()
            self.run()

    def run(self):
        wanted, runs, _ = self.pruned()
        if any(self.inputs[number]._version != version for number, version in self.versions.items()):
            raise RuntimeError("what a segment is to run again from was overwritten behind it")
        last_read = {number: i for i, operation in enumerate(runs) for number in operation.reads}
        values = {number: on_device(x) for number, x in self.inputs.items()}
        for operation in self.operations():
            operation.kept = {number: on_device(x) for number, x in operation.kept.items()}
            values.update(operation.kept)
        held = wanted.union(values)
        with torch.no_grad():
            for i, operation in enumerate(runs):
                operation.run(values, held)
                for number in operation.reads.union(operation.made, (new for _, new in operation.views)):
                    if number not in held and last_read.get(number, i) <= i:
                        values.pop(number, None)
        for segment in self.inner():
            segment.inputs, segment.versions = {number: values[number] for number in segment.reads}, {}
        self.results = {number: values[number] for number, count in self.needed.items() if count > 0}
        self.inputs, self.ran = {}, True
        for item in self.items:
            if isinstance(item, Operation):
                item.kept = {}


class Saved:
    """What autograd keeps instead of a tensor."""

    def __init__(self, segment, number, tensor=None):
        self.segment, self.number, self.tensor = None, number, tensor
        if segment is not None:
            self.settle(segment, number)

    def settle(self, segment, number):
        """That segment makes it once more."""
        self.let_go()
        self.segment, self.number, self.tensor = segment, number, None
        segment.needed[number] += 1

    def get(self):
        return self.segment.value(self.number) if self.tensor is None else on_device(self.tensor)

    def let_go(self):
        if self.segment is not None:
            self.segment.asked(self.number)
            self.segment = None

    def __del__(self):
        self.let_go()


class Recompute(TorchDispatchMode):
    def __init__(self, model, segments, keep=(), offload=None):
        super().__init__()
        self.offload, self.moves, self.moving = offload, False, False
        segments = [tuple(pair) for pair in segments]
        self.segments, self.keep, self.own_forward = segments, set(keep), vars(model).get("forward")
        texts = [text for pair in segments for text in pair] + list(keep) + [offload] * isinstance(offload, str)
        modules = {name for name, _ in model.named_modules(remove_duplicate=False)}
        self.mentioned = {text.split()[1] for text in texts} - modules - {"."}
        if any(text.startswith("node ") for text in texts):
            raise ValueError("the file that the plan was made of does not say where in the code some segments are: export with "
                             "torch.onnx.export(..., dynamo=True), or record()")
        missing = [name for name in sorted(self.mentioned) if name.rpartition("_")[0] not in modules - {""}]
        if missing:
            raise ValueError(f"the plan is for another network: this one has no module {', '.join(missing[:5])}")
        refuse_shards(model)
        self.counted = {tuple(text.split()[1:3]) for text in texts if text.startswith("op ")}
        self.model, self.path = model, []
        for name, module in model.named_modules():
            if module is not model:
                module.register_forward_pre_hook(functools.partial(self.before_call, name))
                module.register_forward_hook(functools.partial(self.after_call, name), always_call=True)
        model.forward = self.forward

    def before_call(self, name, module, args):
        self.enter(name)

    def after_call(self, name, module, args, out):
        self.leave(name)

    def forward(self, *args, **kwargs):
        forward_of = called(self.model, self.own_forward)
        if not torch.is_grad_enabled():
            return forward_of(*args, **kwargs)
        refuse_shards(self.model)
        self.path, self.last_number, self.missing = [], 0, set(self.keep)
        self.calls, self.count = collections.Counter(), collections.Counter()
        self.open, self.ends, self.at, self.numbers, self.fresh, self.kept = None, [], 0, {}, [], {}
        self.born = {}  # by storage: the last number given before it was made; its address may have been another's
        self.fixed = {key_of(t)[0] for t in self.model.buffers()}
        given = [x for x in tree_iter((args, kwargs)) if isinstance(x, torch.Tensor)]
        self.stays = self.fixed.union(key_of(t)[0] for t in [*self.model.parameters(), *given])
        self.moves, self.moved = self.offload is not None, {}
        with self, torch.autograd.graph.saved_tensors_hooks(self.pack, lambda x: x.get() if isinstance(x, Saved) else x):
            self.enter(".")
            out = forward_of(*args, **kwargs)
            self.leave(".")
        missing = self.ends[-1:] or [begin for begin, _ in self.segments[self.at:]] or sorted(self.missing)
        missing = missing or [self.offload] * (self.moves and self.offload is not True)
        if missing:
            raise RuntimeError(f"this network never came to '{missing[0]}': the plan is for another one, another way, or another device's attention")
        self.numbers = self.fresh = self.kept = self.moved = None
        self.moves = False
        return out

    def enter(self, name):
        if name == "." or self.path:
            self.calls[name] += 1
            again = f"{name}_{self.calls[name] - 1}"  # what the older exporter calls the second call and on
            self.path.append(again if again in self.mentioned else name)
            self.pass_border(f"enter {name}")
            if again in self.mentioned:
                self.pass_border(f"enter {again}")

    def leave(self, name):
        if self.path:
            again = self.path.pop()
            if again != name:
                self.pass_border(f"leave {again}")
            self.pass_border(f"leave {name}")

    def pass_border(self, text, given=()):
        self.count[text] += 1
        text = f"{text} {self.count[text]}"
        ends = bool(self.ends) and self.ends[-1] == text
        while self.ends and self.ends[-1] == text:
            self.end(given)
        if ends and not self.moves:
            self.fresh = []
        if text == self.offload:
            self.moves = False
            for saved in self.shown(given):
                saved[0].tensor = saved[1]
        while self.at < len(self.segments) and self.segments[self.at][0] == text:
            self.begin(self.segments[self.at][1], given)
        return text

    def begin(self, end, given):
        segment, shown = Segment(self.open), self.shown(given) if self.moves else ()
        if self.open is None:
            self.numbers, self.kept = self.numbers if self.moves else {}, {}
        else:
            self.open.items.append(segment)
        self.open = segment
        self.ends.append(end)
        self.at += 1
        for saved, tensor in shown:
            saved.settle(segment, self.ref(tensor).number)

    def end(self, given):
        segment, parent = self.open, self.open.parent
        last = segment.items[-1] if segment.items else None
        own = isinstance(last, Operation) and kind_of(last.func) in RESULT_SAVERS
        self.fresh = self.fresh[own:]
        for saved, tensor in self.shown(given):
            if parent is None:
                saved.let_go()
                saved.tensor = self.move(saved.number, tensor)
            else:
                saved.settle(parent, saved.number)
        segment.close(self.move if parent is None else lambda number, x: x)
        self.ends.pop()
        self.open = parent
        if parent is not None:
            parent.made |= segment.made

    def shown(self, given):
        """What the operation behind a border saves of its arguments was shown before it came."""
        keys = {key_of(x) for x in tree_iter(given) if isinstance(x, torch.Tensor)}
        return [(saved, tensor) for saved, tensor in self.fresh if key_of(tensor) in keys]

    def move(self, number, tensor):
        if not self.moves or key_of(tensor)[0] in self.stays:
            return tensor
        if number not in self.moved:
            self.moving = True  # these operations are not the network's
            self.moved[number] = Moved(tensor)
            self.moving = False
        return self.moved[number]

    def named(self, tensor):
        self.last_number += 1
        self.numbers[key_of(tensor)] = self.last_number
        return self.last_number

    def outermost(self):
        segment = self.open
        while segment.parent is not None:
            segment = segment.parent
        return segment

    def ref(self, tensor):
        number = self.numbers.get(key_of(tensor))
        number = self.named(tensor) if number is None else number
        if self.maker(number) is None:
            self.outermost().inputs.setdefault(number, self.without_graph(tensor))
        return Ref(number)

    def without_graph(self, tensor):
        """The graph holds what is saved, which would hold the graph: for ever, where no backward pass comes."""
        self.moving = True  # this operation is not the network's
        tensor = tensor.detach()
        self.moving = False
        return tensor

    def pass_by(self, func, args, kwargs):
        """An operation outside of segments."""
        if not self.moves:
            return func(*args, **kwargs)
        self.fresh = []
        spoiled = {key_of(x)[0] for x in writes(func, args)}
        self.numbers = {key: number for key, number in self.numbers.items() if key[0] not in spoiled} if spoiled else self.numbers
        out = func(*args, **kwargs)
        self.note_births(out, args, kwargs)
        for x in tree_iter(out):
            if isinstance(x, torch.Tensor):
                self.named(x)
        return out

    def note_births(self, out, args, kwargs):
        given = {key_of(x)[0] for x in tree_iter((args, kwargs)) if isinstance(x, torch.Tensor)}
        made = {key_of(x)[0] for x in tree_iter(out) if isinstance(x, torch.Tensor)}
        self.born.update(dict.fromkeys(made - given, self.last_number))

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs, text = kwargs or {}, None
        if self.moving:
            return func(*args, **kwargs)
        place = self.path[-1] if self.path else None, kind_of(func)
        if place in self.counted and torch.is_grad_enabled() and any(isinstance(x, torch.Tensor) and x.requires_grad
                                                                     for x in tree_iter((args, kwargs))):
            text = self.pass_border(f"op {place[0]} {place[1]}", (args, kwargs))
        segment = self.open
        if segment is None:
            return self.pass_by(func, args, kwargs)
        self.fresh = []
        operation = Operation(func, tree_map_only(torch.Tensor, self.ref, (args, kwargs)))
        for tensor in writes(func, args) if kind_of(func) != "batch_norm" else ():
            if key_of(tensor)[0] in self.fixed:
                return func(*args, **kwargs)  # a counter of batches
            self.before_overwriting(operation, tensor)
        out = func(*args, **kwargs)
        self.note_births(out, args, kwargs)
        operation.made = [self.named(x) if isinstance(x, torch.Tensor) else None for x in tree_iter(out)]
        results = {number: x for number, x in zip(operation.made, tree_iter(out)) if number is not None}
        segment.made.update(results, (new for _, new in operation.views))
        segment.items.append(operation)
        self.missing.discard(text)
        if text in self.keep and not operation.views:  # views have what it overwrites when it runs again
            operation.kept = {number: self.move(number, x.detach()) for number, x in results.items()}
            self.kept.update(dict.fromkeys(results, operation))
        return out

    def before_overwriting(self, operation, tensor):
        """What segments hold of the tensor, or of views of it, stays as it was."""
        storage, inputs, spoiled = key_of(tensor)[0], self.outermost().inputs, {}
        for key in [key for key in self.numbers if key[0] == storage]:
            number = self.numbers[key]
            gone = number <= self.born.get(storage, 0)  # of a tensor whose address this one has now
            if gone or (number not in inputs and self.maker(number) is None):  # this segment has not met it
                del self.numbers[key]
                continue
            if number in inputs and not isinstance(inputs[number], Moved):
                spoiled[number] = inputs[number]
            if number in self.kept and not isinstance(self.kept[number].kept[number], Moved):
                self.kept[number].kept[number] = self.kept[number].kept[number].clone()
            if number not in operation.overwritten:
                self.last_number += 1
                self.numbers[key] = self.last_number
                operation.views.append((number, self.last_number))
                operation.reads.add(number)
        inputs.update(copies(spoiled))

    def pack(self, tensor):
        tensor = self.without_graph(tensor)
        if self.moves and key_of(tensor)[0] not in self.stays:
            return self.pack_moved(tensor)
        number = self.numbers.get(key_of(tensor)) if self.open is not None else None
        segment = self.maker(number)
        if number is None or segment is None or number in self.kept:
            return tensor
        saved = Saved(segment, number)
        self.fresh.append((saved, tensor))
        return saved

    def maker(self, number):
        segment = self.open
        while number is not None and segment is not None and number not in segment.made:
            segment = segment.parent
        return segment

    def pack_moved(self, tensor):
        """What comes into segments is theirs to keep."""
        if self.open is not None:
            number = self.ref(tensor).number
            saved = Saved(self.maker(number) or self.open, number)
        else:
            number = self.numbers.get(key_of(tensor)) or self.named(tensor)
            saved = Saved(None, number, self.move(number, tensor))
        self.fresh.append((saved, tensor))
        return saved


# --- Rows of modules -----------------------------------------------------------------------------------------------------

def called(module, own):
    """The forward that a module had before it was replaced: one of its own, or that of its class."""
    return functools.partial(type(module).forward, module) if own is None else own


def moves_statistics(module):
    return getattr(module, "track_running_stats", False) and hasattr(module, "momentum") and module.training


@contextlib.contextmanager
def statistics_stay(modules, within=contextlib.nullcontext()):
    """Running statistics of norms moved when the modules ran first."""
    norms = [(m, m.momentum, m.num_batches_tracked) for m in modules if moves_statistics(m)]
    counts = [None if count is None else count.clone() for _, _, count in norms]
    for module, _, _ in norms:
        module.momentum = 0.0
    try:
        with within:
            yield
    finally:
        for (module, momentum, count), before in zip(norms, counts):
            module.momentum = momentum
            if count is not None:
                count.copy_(before)


def refuse_hooks(names, modules):
    """Hooks of the first module are around the whole row; those of others, as of FSDP, would come when these have run."""
    for name, module in zip(names[1:], modules[1:]):
        if module._forward_hooks or module._forward_pre_hooks:
            raise ValueError(f"module {name} has hooks (fully_shard has some), so that it cannot run in the checkpoint of {names[0]}: "
                             f"take a plan with one module a row, as --checkpoint blocks makes them")


class Reads(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.seen = set()  # tensors, by id

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen.update(id(x) for x in tree_iter((args, kwargs)) if isinstance(x, torch.Tensor))
        return func(*args, **(kwargs or {}))


class Unread(torch.Tensor):
    """In place of a tensor that the first run did not read; it has no memory."""

    @staticmethod
    def __new__(cls, x):
        return torch.Tensor._make_wrapper_subclass(cls, x.shape, dtype=x.dtype, device=x.device, requires_grad=x.requires_grad)

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        raise RuntimeError(f"the second run of a module reads ({func}) what its first run did not read of a list: take a plan of operations")


class Row:
    """Modules of which each takes what the one before gives: the first one runs all of them under torch.utils.checkpoint,
    the others hand on what they get."""

    def __init__(self, names, modules, plan):
        self.names, self.modules, self.is_reentrant = names, modules, plan.get("checkpoint") == "reentrant"
        self.save = set(plan["save"].split("+")) if "save" in plan else None
        self.own = [vars(module).get("forward") for module in modules]
        self.first = [list(inspect.signature(type(module).forward).parameters)[1:2] for module in modules]
        modules[0].forward = self.run
        for at, module in enumerate(modules[1:], 1):
            module.forward = functools.partial(self.hand_on, at)

    def run(self, *args, **kwargs):
        refuse_hooks(self.names, self.modules)
        if not torch.is_grad_enabled():
            return self.forward(*args, **kwargs)
        if self.is_reentrant:
            return self.run_reentrant(args, kwargs)
        if any(isinstance(x, (list, dict)) for x in (*args, *kwargs.values())):
            return self.run_with_lists(args, kwargs)
        return self.checkpoint(self.forward, args, kwargs)

    def checkpoint(self, forward, args, kwargs):
        if self.save is not None or (any(moves_statistics(m) for m in self.inside()) and not torch.compiler.is_compiling()):
            kwargs = {**kwargs, "context_fn": self.contexts}
        return torch.utils.checkpoint.checkpoint(forward, *args, use_reentrant=False, **kwargs)

    @torch.compiler.disable  # it would trace both runs as one
    def run_with_lists(self, *given):
        """A module may put other tensors into a list that it is given (HRNet), or be given more than it reads: the second run has
        the list as the first one had it, and holds until then what that one read."""
        first, given_again = [given], tree_map_only(torch.Tensor, lambda x: x, given)

        def forward(*_, **__):
            nonlocal given_again
            if not first:
                args, kwargs = tree_map_only(torch.Tensor, lambda x: x, given_again)
                return self.forward(*args, **kwargs)
            args, kwargs = first.pop()
            with Reads() as reads:
                out = self.forward(*args, **kwargs)
            given_again = tree_map_only(torch.Tensor, lambda x: x if id(x) in reads.seen else Unread(x), given_again)
            return out
        return self.checkpoint(forward, *tree_map_only(torch.Tensor, Unread, given))

    def inside(self):
        return [m for module in self.modules for m in module.modules()]

    def contexts(self):
        first = cached = contextlib.nullcontext()
        if self.save is not None:
            policies = torch.utils.checkpoint.CheckpointPolicy
            first, cached = torch.utils.checkpoint.create_selective_checkpoint_contexts(
                lambda context, func, *args, **kwargs: policies.MUST_SAVE if kind_of(func) in self.save else policies.PREFER_RECOMPUTE)
        if torch.compiler.is_compiling():  # which moves statistics once by itself
            return first, cached
        return first, statistics_stay(self.inside(), cached)

    def run_reentrant(self, args, kwargs):
        """It takes no keywords, and is no part of autograd's graph where nothing that comes in is."""
        n, names = len(args), tuple(kwargs)  # the node holds the function as long as the graph is there

        def forward(*given):
            with statistics_stay(self.inside()) if torch.is_grad_enabled() else contextlib.nullcontext():
                return self.forward(*given[:n], **dict(zip(names, given[n:])))
        given = (*args, *kwargs.values())
        if any(isinstance(x, torch.Tensor) and x.requires_grad for arg in given if not isinstance(arg, torch.Tensor) for x in tree_iter(arg)):
            raise RuntimeError(f"module {self.names[0]} is given a list with tensors that have gradients, through which a reentrant "
                               f"checkpoint gives none: take a plan without, as --checkpoint blocks makes them")
        if not any(isinstance(x, torch.Tensor) and x.requires_grad for x in given):
            raise RuntimeError(f"no input of module {self.names[0]} has a gradient, so that a reentrant checkpoint would give its "
                               f"parameters none: take a plan without, as --checkpoint blocks makes them")
        return torch.utils.checkpoint.checkpoint(forward, *given, use_reentrant=True)

    def forward(self, *args, **kwargs):
        out = called(self.modules[0], self.own[0])(*args, **kwargs)
        if not args:
            kwargs = {name: x for name, x in kwargs.items() if name not in self.first[0]}
        for module, own, name in zip(self.modules[1:], self.own[1:], self.names[1:]):
            if not isinstance(out, torch.Tensor):
                raise RuntimeError(f"module {name} is called with a part of what the module before returns: take a plan with "
                                   f"one module a row, as --checkpoint blocks makes them")
            out = called(module, own)(out, *args[1:], **kwargs)
        return out

    def hand_on(self, at, *args, **kwargs):
        return args[0] if args else kwargs[self.first[at][0]]


class OnHost:
    def __init__(self, network):
        self.network, self.own = network, vars(network).get("forward")
        network.forward = self.forward

    def forward(self, *args, **kwargs):
        with torch.autograd.graph.save_on_cpu(pin_memory=True):
            return called(self.network, self.own)(*args, **kwargs)


class Sequential:
    def __init__(self, network, count):
        if not isinstance(network, torch.nn.Sequential):
            raise ValueError("the plan is for an nn.Sequential")
        self.network, self.count = network, count
        network.forward = self.forward

    def forward(self, x):
        return torch.utils.checkpoint.checkpoint_sequential(list(self.network), self.count, x, use_reentrant=False)


# --- Plans ---------------------------------------------------------------------------------------------------------------

def refuse_shards(network):
    """A segment would run again from parameters that FSDP has freed since."""
    fsdp = sys.modules.get("torch.distributed.fsdp")
    kinds = tuple(getattr(fsdp, name) for name in ("FSDPModule", "FullyShardedDataParallel") if hasattr(fsdp, name))
    if kinds and any(isinstance(module, kinds) for module in network.modules()):
        raise ValueError("a plan of operations is not for FSDP, which frees the parameters that segments run again from: take "
                         "a plan of modules, as --checkpoint blocks makes them")


def apply_modules(network, plan):
    modules = dict(network.named_modules())
    rows = [row.split() for row in plan["modules"]]
    missing = [name for row in rows for name in row if name not in modules]
    if missing:
        raise ValueError(f"the plan is for another network: this one has no module {', '.join(missing[:5])}")
    lists = [name for row in rows for name in row if type(modules[name]).forward is torch.nn.Module.forward]
    if lists:
        raise ValueError(f"module {lists[0]} is a list, which is not called itself: take a plan that names its members, as modules={lists[0]}.*")
    for names in rows:
        refuse_hooks(names, [modules[name] for name in names])
    for names in reversed(rows):  # outer rows run inner ones as these are by then
        Row(names, [modules[name] for name in names], plan)


def apply_compile(network, plan):
    import torch._functorch.config
    torch._functorch.config.activation_memory_budget = plan["memory_budget"]
    network.compile()


FORMS = {
    "none": lambda network, plan: None,
    "modules": apply_modules,
    "sequential": lambda network, plan: Sequential(network, plan["count"]),
    "save_on_cpu": lambda network, plan: OnHost(network),
    "compile": apply_compile,
    "operations": lambda network, plan: Recompute(network, plan["segments"], plan["keep"], plan.get("offload")),
}


def apply(network, plan):
    """Makes a network train as the plan says, in place, and returns it. It may be copied, saved, wrapped by DDP, or run under
    autocast then. Raises ValueError, and changes nothing, where the plan is for another network or FSDP cannot run it."""
    if plan.get("form") not in FORMS:
        raise ValueError(f"expected a plan in the form of {', '.join(FORMS)}, found {plan.get('form')!r}")
    owners = [getattr(vars(module).get("forward"), "__self__", None) for module in network.modules()]
    if any(isinstance(owner, (Recompute, Row, OnHost, Sequential)) for owner in owners):
        raise ValueError("the network has a plan already: make it anew")
    FORMS[plan["form"]](network, plan)
    return network
