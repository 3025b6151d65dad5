"""What the CUDA build of PyTorch asks its allocator for: training and inference of one network.

Each measurement runs in a process of its own, as what the one before leaves on the device would count. Sizes in bytes.

    kept                 storages that autograd keeps from the forward pass until backward, without parameters and buffers
    tensors              the peak: what is requested at most for tensors at one time in a step that follows three others (parameters,
                         gradients, the optimizer's state, inputs and results are among them); workspaces of libraries are not
    allocated, reserved  the allocator's own peaks in the third step: workspaces too, sizes rounded up; segments

cuDNN's state of dropout is made once in a process, as a tensor, and is no activation: neither `kept` nor `tensors` has it.
"""
import gc
import pathlib
import sys
import weakref

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "python/onnxvram"))
from _runs import Loss  # noqa: E402

# Functions of PyTorch that allocate memory for tensors; all other allocations are workspaces.
MARKS = ("empty_cuda", "empty_strided_cuda", "empty_generic", "resize_bytes_cuda", "CUDAGuardImpl")


def made(network, batch):
    import torch
    torch.manual_seed(0)
    dtype = getattr(torch, network.dtype)
    model = network.make().cuda()
    inputs = tuple(x.cuda() for x in network.inputs(batch))
    if dtype != torch.float32:
        model, inputs = model.to(dtype), tuple(x.to(dtype) if x.is_floating_point() else x for x in inputs)
    return model, inputs


def head_of(event):
    """The C++ functions on its stack, the innermost first."""
    return [n for n in (f["name"] for f in event["frames"]) if "::" in n or "(" in n][:14]


def is_rnn_workspace(events, at, heads):
    """cuDNN's workspace of a recurrent layer is made as a tensor's memory, and gone before anything else is made."""
    inside = [any("_cudnn_rnn" in n or "_cudnn_impl" in n for n in head) for head in heads]
    if not inside[at] or any(word in n for n in heads[at] for word in ("contiguous", "clone", "copy", "zeros", "like")):
        return False
    for later in range(at + 1, len(events)):
        if events[later]["action"] == "free_completed" and events[later]["addr"] == events[at]["addr"]:
            return True
        if events[later]["action"] == "alloc" and not inside[later]:
            return False
    return False


def states_of_dropout():
    """A mode that notes the storages of the states of dropout that cuDNN makes while it is entered, in `made`."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    class States(TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.made = {}

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            result = func(*args, **(kwargs or {}))
            if func.overloadpacket is torch.ops.aten._cudnn_init_dropout_state:
                storage = result.untyped_storage()
                self.made[storage._cdata] = storage.nbytes()
            return result
    return States()


def most_of_tensors(events):
    """What is requested at most for tensors in PyTorch's history of allocations."""
    live, now, most = {}, 0, 0
    heads = [head_of(event) if event["action"] == "alloc" else [] for event in events]
    for at, event in enumerate(events):
        if event["action"] == "alloc":
            is_tensor = any(mark in n for n in heads[at] for mark in MARKS) and not is_rnn_workspace(events, at, heads)
            live[event["addr"]] = event["size"] if is_tensor else 0
            now += live[event["addr"]]
            most = max(most, now)
        elif event["action"] == "free_completed":
            now -= live.pop(event["addr"], event["size"])
    return most


def tensor_peak(run, once=0):
    """What is requested for tensors at most while it runs. `once`: bytes that are there from before and do not count."""
    import torch
    held = torch.cuda.memory_stats()["requested_bytes.all.current"] - once
    torch.cuda.memory._record_memory_history(enabled="all", context="alloc", stacks="all", max_entries=2000000)
    run()
    events = torch.cuda.memory._snapshot()["device_traces"][0]
    torch.cuda.memory._record_memory_history(enabled=None)
    return held + most_of_tensors(events)


def peaks(run):
    """Of the third run, and of tensors in the fourth."""
    import torch
    with states_of_dropout() as states:
        run()
    for _ in range(2):
        torch.cuda.reset_peak_memory_stats()
        run()
    stats = torch.cuda.memory_stats()
    return {"allocated": stats["allocated_bytes.all.peak"], "reserved": stats["reserved_bytes.all.peak"],
            "tensors": tensor_peak(run, sum(states.made.values()))}


def training(network, batch, optimizer, change=lambda model: model):
    import torch
    model, inputs = made(network, batch)
    model = change(model.train())
    step = (torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9) if optimizer == "momentum" else
            torch.optim.AdamW(model.parameters()))
    loss, state = Loss(network.loss), {}

    def iterate():
        step.zero_grad()
        state["results"] = model(*inputs)
        state["loss"] = loss(state["results"])
        state["loss"].backward()
        step.step()
    return peaks(iterate)


class Saved:
    """What autograd keeps, as long as it does."""

    def __init__(self, tensor):
        self.tensor = tensor


def kept(network, batch):
    """Distinct storages that autograd keeps until backward."""
    import torch
    model, inputs = made(network, batch)
    model.train()

    def key(tensor):
        return tensor.untyped_storage()._cdata
    state = {key(t) for t in model.parameters()} | {key(t) for t in model.buffers()}
    buffers, saved = list(model.buffers()), []

    def pack(tensor):
        held = Saved(tensor.detach())
        saved.append(weakref.ref(held))
        return held
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda held: held.tensor), states_of_dropout() as states:
        loss = Loss(network.loss)
        result = loss(model(*inputs))
    gc.collect()
    state |= states.made.keys()
    alive = [held.tensor for held in (ref() for ref in saved) if held is not None]
    total = sum({key(t): t.untyped_storage().nbytes() for t in alive if key(t) not in state and t.is_cuda}.values())
    del result, buffers
    return total


def inference(network, batch):
    import torch
    model, inputs = made(network, batch)
    model.eval()
    state = {}

    @torch.no_grad()
    def run():
        state.clear()
        state["results"] = model(*inputs)
    return peaks(run)


KINDS = {"kept": kept, "momentum": lambda n, b: training(n, b, "momentum"), "adamw": lambda n, b: training(n, b, "adamw"),
         "inference": inference}
