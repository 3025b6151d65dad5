#!/usr/bin/env python3
"""Measure the peak of training with activation checkpointing, for the plans of a plan file.

    onnxvram unet.onnx --batch 16 --train adamw --checkpoint blocks,sqrt,optimal --plan-out=plans.txt
    python scripts/export/checkpointed.py unet unet.onnx plans.txt --batch 16 --optimizer adamw

Each plan is applied to the network of training_models.py in the first of these ways that it can be, or in all of them:

    snippet     the plan file's own PyTorch lines are executed; needs segments that are rows of whole modules
    traced      the network, traced by torch.fx, runs one operation after the other, the segments of the plan under
                torch.utils.checkpoint(use_reentrant=False); they must begin and end where operations of the trace do
    sequential  segments=K of a network of modules in a row: torch.utils.checkpoint.checkpoint_sequential with K; the
                segments of the plan are not looked at

The peak is that of three iterations as PyTorch's memory tracker counts it on fake tensors.

Prints CSV: network,batch,optimizer,plan,way,segments,predicted,tracked,difference
"""

import argparse
import functools
import re
import sys

import onnx
import torch
from torch import fx, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

from saved_bytes import fake, peak_bytes
from training_models import MODELS


class Plan:
    def __init__(self, name):
        self.name = name
        self.peak = self.moved = self.host = 0
        self.segments = []  # (first node, last node, modules)
        self.code = []  # lines of Python
        self.by_hand = False  # they do not apply all segments


def read_plans(path):
    plans = []
    for line in open(path):
        fields = line.rstrip("\n").split("\t")
        if fields[0] == "plan":
            plans.append(Plan(fields[1]))
        elif fields[0] == "peak_bytes":
            plans[-1].peak = int(fields[1])
        elif fields[0] in ("offloaded_bytes", "returned_bytes"):
            plans[-1].moved += int(fields[1])
        elif fields[0] == "host_bytes":
            plans[-1].host = int(fields[1])
        elif fields[0] == "segment":
            plans[-1].segments.append(fields[1:])
        elif line.startswith("# ") and plans:
            plans[-1].code.append(line.rstrip("\n")[2:])
        elif line.startswith("#: Segment"):
            plans[-1].by_hand = True
    return plans


# --- Traced ------------------------------------------------------------------------------------------------------------

SHAPES = {"Constant", "ConstantOfShape", "Shape", "Gather", "Unsqueeze", "Squeeze", "Identity", "Range", "Slice",
          "Equal", "Where", "Cast", "Div", "Mod", "Sub"}
VIEWS = {"Reshape", "Transpose", "Flatten"}
NO_WORK = {"getattr", "size", "dim", "_assert", "floordiv", "getitem", "eq", "is_grad_enabled"}


def work_of(traced):
    """The nodes of a trace that compute tensors, in order."""
    work = []
    for node in traced.graph.nodes:
        name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")
        if node.op == "call_module" or node.op in ("call_function", "call_method") and name not in NO_WORK:
            work.append(node)
    return work


class Places:
    """Which operations of the trace a node of the ONNX graph belongs to.

    Nodes of a leaf module carry its name.  The others stand between two leaf modules, where both sides must have as
    many of them: shapes are left out.  A segment can begin and end in a leaf of several nodes only at its ends.
    """

    def __init__(self, model, traced):
        self.work = work_of(traced)
        self.place = {}
        self.ends = {}  # of a leaf: its first and its last node that compute something
        self.order = {node.name: i for i, node in enumerate(model.graph.node)}
        # A leaf that is called again has "_1" ... behind its name in the graph, as has the trace's node.
        calls = {}
        leaves = {}
        for i, node in enumerate(self.work):
            if node.op != "call_module":
                continue
            n = calls[node.target] = calls.get(node.target, 0) + 1
            leaves[node.target + (f"_{n - 1}" if n > 1 else "")] = i
        loose, last = [], -1
        for node in model.graph.node:
            at = self.leaf(node.name, leaves)
            if at is None:
                loose.append(node)
                continue
            if at != last:
                self.between(loose, last, at)
                loose = []
            for inside in loose + [node]:
                self.place[inside.name] = at
                if inside.op_type not in SHAPES | VIEWS:
                    i = self.order[inside.name]
                    self.ends[at] = (self.ends.get(at, (i,))[0], i)
            loose, last = [], at
        self.between(loose, last, len(self.work))

    def segment(self, first, last):
        a, b = self.place[first], self.place[last]
        if self.order[first] > self.ends.get(a, (sys.maxsize,))[0] or self.order[last] < self.ends.get(b, (0, 0))[1]:
            raise ValueError("a segment cuts through a leaf")
        return a, b

    @staticmethod
    def leaf(name, leaves):
        """ "/layer1/layer1.0/conv1/Conv" -> "layer1.0.conv1" """
        path = []
        for scope in name.split("/")[1:-1]:
            parts = scope.split(".")
            path += parts[len(parts) - 1:] if path and parts[:-1] == path[-len(parts) + 1:] and len(parts) > 1 else parts
        for end in range(len(path), 0, -1):
            at = leaves.get(".".join(path[:end]))
            if at is not None:
                return at
        return None

    def between(self, loose, before, after):
        loose = [node for node in loose if node.op_type not in SHAPES]
        if len(loose) == after - before - 1:
            for i, node in enumerate(loose):
                self.place[node.name] = before + 1 + i


class Runner(nn.Module):
    """Runs a trace as Python would run the code: a name goes after its last reader."""

    def __init__(self, traced, work, segments):
        super().__init__()
        self.traced = traced
        self.nodes = [node for node in traced.graph.nodes]
        at = {node: i for i, node in enumerate(self.nodes)}
        self.last_read = {}
        for node in self.nodes:
            for value in node.all_input_nodes:
                self.last_read[value] = at[node]
        # By places in self.nodes; the nodes without work go along with what is behind them.
        self.segments = [(at[work[a]], at[work[b]]) for a, b in segments]

    def value(self, node, env):
        args, kwargs = fx.node.map_arg((node.args, node.kwargs), env.__getitem__)
        if node.op == "call_module":
            return self.traced.get_submodule(node.target)(*args, **kwargs)
        if node.op == "call_function":
            return node.target(*args, **kwargs)
        if node.op == "call_method":
            return getattr(args[0], node.target)(*args[1:], **kwargs)
        value = self.traced
        for part in node.target.split("."):
            value = getattr(value, part)
        return value

    def run(self, env, first, last, begin):
        """Nodes first .. last; `begin`: the segments of the list that may still be entered."""
        i = first
        while i <= last:
            inner = [k for k in range(begin, len(self.segments))
                     if self.segments[k][0] == i and self.segments[k][1] <= last]
            if inner:
                i = self.segment(env, inner[0])
                continue
            node = self.nodes[i]
            env[node] = self.value(node, env)
            for value in [*node.all_input_nodes, node]:
                if self.last_read.get(value, i) <= i:
                    env.pop(value, None)
            i += 1

    def segment(self, env, k):
        first, last = self.segments[k]
        made = self.nodes[first:last + 1]
        inputs = list(dict.fromkeys(v for node in made for v in node.all_input_nodes if v in env))
        results = [node for node in made if self.last_read.get(node, -1) > last]

        def function(*values):
            inside = dict(zip(inputs, values))
            del values
            self.run(inside, first, last, k + 1)
            return tuple(inside[node] for node in results)

        values = checkpoint(function, *[env[node] for node in inputs], use_reentrant=False)
        for node in inputs:
            if self.last_read[node] <= last:
                env.pop(node, None)
        env.update(zip(results, values))
        return last + 1

    def forward(self, x):
        env = {self.nodes[0]: x}
        output = self.nodes[-1]
        assert self.nodes[0].op == "placeholder" and output.op == "output"
        self.last_read[output.args[0]] = len(self.nodes)
        self.run(env, 1, len(self.nodes) - 2, 0)
        return env[output.args[0]]


def traced_network(network, path, plan):
    traced = fx.symbolic_trace(network)
    places = Places(onnx.load(path, load_external_data=False), traced)
    return Runner(traced, places.work, [places.segment(first, last) for first, last, _ in plan.segments])


# --- All ---------------------------------------------------------------------------------------------------------------

def measure(name, batch, optimizer, dtype, apply):
    entry = MODELS[name]
    model = entry.make().train()
    with FakeTensorMode(allow_non_fake_inputs=True):
        fake(model, "cpu")
        return peak_bytes(apply(model), entry.inputs(batch, "cpu"), optimizer, dtype)


def by_snippet(model, plan):
    exec("\n".join(plan.code), {"model": model})
    return model


class Sequential(nn.Module):
    def __init__(self, model, segments):
        super().__init__()
        self.model, self.segments = model, segments

    def forward(self, x):
        return checkpoint_sequential(self.model, self.segments, x, use_reentrant=False)


def compare(args, plan, way):
    if way == "sequential":
        if not isinstance(MODELS[args.network].make(), nn.Sequential) or not plan.name.startswith("segments="):
            return False
        apply = functools.partial(Sequential, segments=int(plan.name.split("=")[1]))
    elif way == "snippet":
        if not plan.segments or plan.by_hand:
            return False
        apply = functools.partial(by_snippet, plan=plan)
    else:
        apply = functools.partial(traced_network, path=args.model, plan=plan)
    dtype = getattr(torch, args.amp) if args.amp else None
    tracked = measure(args.network, args.batch, args.optimizer, dtype, apply)
    print(f"{args.network},{args.batch},{args.optimizer},{plan.name},{way},{len(plan.segments)},{plan.peak},{tracked},"
          f"{100 * (plan.peak - tracked) / tracked:+.3f}", flush=True)
    return True


def chosen(plans, only, most):
    """Those that match; of a front not more than `most`, spread evenly."""
    fronts = {}
    for plan in plans:
        if re.search(only, plan.name):
            fronts.setdefault(plan.name, []).append(plan)
    for front in fronts.values():
        last = len(front) - 1
        if last >= most:
            front = [front[(i + 1) * last // (most + 1)] for i in range(most)]
        yield from front


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("network")
    parser.add_argument("model", help="the network's export")
    parser.add_argument("plans")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--optimizer", default="sgd")
    parser.add_argument("--amp", help="bfloat16: under autocast")
    parser.add_argument("--ways", default="snippet,traced,sequential")
    parser.add_argument("--all-ways", action="store_true")
    parser.add_argument("--only", default="", help="a pattern for the names of plans")
    parser.add_argument("--most", type=int, default=1, help="points of a front")
    args = parser.parse_args()
    for plan in chosen(read_plans(args.plans), args.only, args.most):
        for way in args.ways.split(","):
            try:
                if compare(args, plan, way) and not args.all_ways:
                    break
            except Exception as error:  # one that fails does not stop the others
                print(f"{args.network}, {plan.name}, {way}: {type(error).__name__} {str(error).splitlines()[:1]}",
                      file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
