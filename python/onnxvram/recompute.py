# Checkpoints between any two operations of a network as it is written.
#
# While the forward pass runs, the operations of a segment are noted, with what comes in from outside.  What autograd
# would keep of tensors made inside is not kept: when backward asks for it, the noted operations run once more.  As with
# torch.utils.checkpoint(use_reentrant=False), but a segment need not be a function, running statistics move once, and
# results of the operations in `keep` stay, so that these do not run again.
import collections

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter, tree_map_only

Ref = collections.namedtuple("Ref", "number")  # of a tensor, among the arguments of a noted operation


def refs_of(given):
    return [x.number for x in tree_iter(given, is_leaf=is_ref) if is_ref(x)]


def is_ref(x):
    return isinstance(x, Ref)


def key_of(tensor):
    return (tensor.untyped_storage()._cdata, tensor.storage_offset(), tensor.shape, tensor.stride(), tensor.dtype)


def kind_of(func):
    name = func.overloadpacket.__name__.strip("_")
    if name in ("mm", "addmm", "bmm", "baddbmm", "linear"):
        return "product"
    for kind in ("batch_norm", "layer_norm", "group_norm", "max_pool", "convolution"):
        if kind in name and "backward" not in name:
            return kind
    return name


class Segment:
    def __init__(self, parent):
        self.parent = parent
        self.items = []  # (function, arguments, numbers of its results), and inner segments
        self.made = set()  # numbers of tensors
        self.inputs, self.kept = {}, {}  # tensors by number; inner segments have their inputs from around them
        self.needed = collections.Counter()  # by number: who will ask for it
        self.results = {}  # what is made once more and not yet asked for
        cuda = torch.cuda.is_available() and torch.cuda.is_initialized()
        self.random = torch.get_rng_state(), torch.cuda.get_rng_state() if cuda else None

    def operations(self):
        for item in self.items:
            yield from item.operations() if isinstance(item, Segment) else (item,)

    def read(self):
        return {number for _, given, _ in self.operations() for number in refs_of(given)} - self.made

    def input(self, number):
        if self.parent is None:
            return self.inputs[number]
        return self.parent.value(number) if number in self.parent.made else self.parent.input(number)

    def value(self, number):
        if number in self.kept:
            return self.kept[number]
        if number not in self.results:
            self.run()
        self.needed[number] -= 1
        return self.results[number] if self.needed[number] > 0 else self.results.pop(number)

    def run(self):
        wanted = {number for number, count in self.needed.items() if count > 0}
        operations = list(self.operations())
        last = max(i for i, (_, _, made) in enumerate(operations) if not wanted.isdisjoint(made))
        operations = operations[:last + 1]
        last_read = {number: i for i, (_, given, _) in enumerate(operations) for number in refs_of(given)}
        values = {number: self.input(number) for number in self.read() if number in last_read}
        state, cuda_state = self.random
        with torch.no_grad(), torch.random.fork_rng([] if cuda_state is None else [torch.cuda.current_device()]):
            torch.set_rng_state(state)
            if cuda_state is not None:
                torch.cuda.set_rng_state(cuda_state)
            for i, (func, given, made) in enumerate(operations):
                if all(number is None or number in self.kept for number in made):
                    values.update((number, self.kept[number]) for number in made if number is not None)
                else:
                    values.update(self.once_more(func, given, made, values))
                for number in refs_of(given) + made:
                    if number not in wanted and last_read.get(number, i) <= i:
                        values.pop(number, None)
        self.results.update((number, values[number]) for number in wanted)
        self.kept = {}

    @staticmethod
    def once_more(func, given, made, values):
        args, kwargs = tree_map_only(Ref, lambda ref: values[ref.number], given, is_leaf=is_ref)
        if kind_of(func) == "batch_norm":  # its running statistics have moved
            args = [arg.clone() if k in (3, 4) and arg is not None else arg for k, arg in enumerate(args)]
        return [(number, x) for number, x in zip(made, tree_iter(func(*args, **kwargs))) if number is not None]


class Saved:
    """What autograd keeps instead of a tensor."""

    def __init__(self, segment, number):
        self.segment, self.number, self.tensor = segment, number, None
        segment.needed[number] += 1

    def get(self):
        return self.segment.value(self.number) if self.tensor is None else self.tensor


class Recompute(TorchDispatchMode):
    def __init__(self, model, segments, keep=()):
        super().__init__()
        self.segments, self.keep, self.forward_of = segments, set(keep), model.forward
        texts = [text for pair in segments for text in pair] + list(keep)
        modules = {name for name, _ in model.named_modules(remove_duplicate=False)}
        self.mentioned = {text.split()[1] for text in texts} - modules
        self.counted = {tuple(text.split()[1:3]) for text in texts if text.startswith("op ")}
        self.model = model
        for name, module in model.named_modules():
            if module is not model:
                module.register_forward_pre_hook(lambda _, args, name=name: self.enter(name))
                module.register_forward_hook(lambda _, args, out, name=name: self.leave(name), always_call=True)
        model.forward = self.forward

    def forward(self, *args, **kwargs):
        if not torch.is_grad_enabled():
            return self.forward_of(*args, **kwargs)
        self.path, self.last_number = [], 0
        self.calls, self.count = collections.Counter(), collections.Counter()
        self.open, self.ends, self.at, self.numbers, self.fresh = None, [], 0, {}, []
        self.fixed = {key_of(t)[0] for t in self.model.buffers()}
        with self, torch.autograd.graph.saved_tensors_hooks(self.pack, lambda x: x.get() if isinstance(x, Saved) else x):
            self.enter(".")
            out = self.forward_of(*args, **kwargs)
            self.leave(".")
        if self.ends or self.at < len(self.segments):
            missing = self.ends[-1] if self.ends else self.segments[self.at][0]
            raise RuntimeError(f"this network never came to '{missing}': the plan is for another one, or another way")
        self.numbers = self.fresh = None
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
        while self.ends and self.ends[-1] == text:
            self.end(given)
        while self.at < len(self.segments) and self.segments[self.at][0] == text:
            self.begin(self.segments[self.at][1])
        return text

    def begin(self, end):
        segment = Segment(self.open)
        if self.open is None:
            self.numbers = {}
        else:
            self.open.items.append(segment)
        self.open = segment
        self.ends.append(end)
        self.at += 1

    def end(self, given):
        segment, parent = self.open, self.open.parent
        # What the operation behind the border saves of its arguments was shown before it came.
        keys = {key_of(x) for x in tree_iter(given) if isinstance(x, torch.Tensor)}
        for saved, tensor in self.fresh:
            if key_of(tensor) in keys:
                saved.tensor = tensor
                segment.needed[saved.number] -= 1
        self.fresh = []
        self.ends.pop()
        self.open = parent
        if parent is not None:
            parent.needed.update(segment.read() & parent.made)
            parent.made |= segment.made

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
        if number is None:
            number = self.named(tensor)
            self.outermost().inputs[number] = tensor
        return Ref(number)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs, text = kwargs or {}, None
        place = self.path[-1] if self.path else None, kind_of(func)
        if place in self.counted and any(isinstance(x, torch.Tensor) and x.requires_grad for x in tree_iter((args, kwargs))):
            text = self.pass_border(f"op {place[0]} {place[1]}", (args, kwargs))
        segment = self.open
        if segment is None:
            return func(*args, **kwargs)
        self.fresh = []
        given = tree_map_only(torch.Tensor, self.ref, (args, kwargs))
        for arg, formal in zip(args, func._schema.arguments):
            if isinstance(arg, torch.Tensor) and formal.alias_info is not None and formal.alias_info.is_write:
                if key_of(arg)[0] in self.fixed and kind_of(func) != "batch_norm":
                    return func(*args, **kwargs)  # a counter of batches
                if arg.requires_grad and self.numbers[key_of(arg)] in self.outermost().inputs:
                    raise RuntimeError(f"{func} overwrites what comes into the segment that ends at '{self.ends[-1]}'")
        out = func(*args, **kwargs)
        made = [self.named(x) if isinstance(x, torch.Tensor) else None for x in tree_iter(out)]
        segment.made.update(number for number in made if number is not None)
        segment.items.append((func, given, made))
        if text in self.keep:
            segment.kept.update((number, x.detach()) for number, x in zip(made, tree_iter(out)) if number is not None)
        return out

    def pack(self, tensor):
        number = self.numbers.get(key_of(tensor)) if self.open is not None else None
        if number is None or number not in self.open.made or number in self.open.kept:
            return tensor
        saved = Saved(self.open, number)
        self.fresh.append((saved, tensor))
        return saved
