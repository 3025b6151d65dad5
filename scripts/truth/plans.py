"""Checkpointing plans applied to networks of the corpus by python/onnxvram/recompute.py: what training then takes, and whether its gradients
and statistics are the same.

The program is asked for plans of a network's recording; of a front (of many rows of one name) some are run, both ends and evenly between. Columns:

    network,plan,id,form,segments,kept,predicted,measured,tensors,allocated,reserved,gradient,statistics

tensors, allocated and reserved are differences of what is predicted from what the CUDA build takes with momentum (measure.py), gradient and
statistics the largest difference from training without a plan, in float64 (float32 where the network's code
allows no other) and in parts of the largest.
"""
import copy
import os
import sys

from . import measure
from .harness import report

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../python/onnxvram"))
import recompute  # noqa: E402


def asked(exe, file, network, checkpoint):
    """At the batch of the exports, which some files have as a symbol."""
    for batch in (["--batch", str(network.batch)], []):
        found = report(exe, file, ["--train", "momentum", "--loss", network.loss, "--checkpoint", checkpoint, *batch])
        if not isinstance(found, str):
            return found["training"]["plans"]
    raise RuntimeError(found)


def some(plans, most):
    """Of each name at most so many."""
    for name in dict.fromkeys(plan["name"] for plan in plans):
        front = [plan for plan in plans if plan["name"] == name]
        n = min(most, len(front))
        yield from (front[i * (len(front) - 1) // max(1, n - 1)] for i in range(n))


def trained(network):
    """The network in float64, or as it is where its code has another type; inputs; what is left without a plan."""
    import torch
    for dtype in (torch.float64, torch.float32):
        torch.manual_seed(0)
        model, inputs = network.make().to(dtype).train(), tuple(x.to(dtype) if x.is_floating_point() else x for x in network.inputs(2))
        try:
            return model, inputs, run(copy.deepcopy(model), inputs, network)
        except RuntimeError:
            if dtype == torch.float32:
                raise


def run(model, inputs, network):
    import torch
    torch.manual_seed(1)
    loss = measure.Loss(network.loss)
    loss(model(*inputs)).backward()
    grads = [p.grad for p in model.parameters() if p.grad is not None]
    return grads, [b for b in model.buffers() if b.is_floating_point()]


def differences(network, plan):
    """Of gradients, and of running statistics."""
    model, inputs, plain = trained(network)
    planned = run(recompute.apply(copy.deepcopy(model), plan["apply"]), inputs, network)
    if [len(part) for part in plain] != [len(part) for part in planned]:
        raise RuntimeError("other parameters have gradients")
    return [max([0.0] + [((a - b).abs().max() / (a.abs().max() + 1e-300)).item() for a, b in zip(*pair) if a.numel()])
            for pair in zip(plain, planned)]


def row(network, plan, peaks, apart):
    start = [network.name, plan["name"], plan["id"], plan["apply"]["form"], len(plan["segments"]), len(plan["apply"].get("keep", ())), plan["peak_bytes"]]
    apply = lambda model: recompute.apply(model, plan["apply"])  # noqa: E731
    found = apart(300, lambda: measure.training(network, network.batch, "momentum", apply)) if peaks else {"result": None}
    same = apart(300, lambda: differences(network, plan))
    if "failed" in found:
        return [*start, "failed", found["failed"][:150].replace(",", ";")]
    measured = found["result"] or {}
    keys = (("tensors", "peak_bytes"), ("allocated", "allocated_peak_bytes"), ("reserved", "reserved_peak_bytes"))
    parts = [f"{100 * (plan[key] / measured[name] - 1):+.2f} %" if measured else "-" for name, key in keys]
    left = (f"{part:.1e}" for part in same["result"]) if "result" in same else ("failed", same["failed"][:150].replace(",", ";"))
    return [*start, measured.get("tensors", "-"), *parts, *left]
