#!/usr/bin/env python3
"""The front of checkpointing plans beside what others give at the same price.

    python scripts/export/peers.py [--ways LIST] [--limit S] [--units N] build/release/onnxvram FOLDER [NAME...]

    front        the least peak of the plans of `optimal` whose overhead is at most 0, 5, 10, 20 %
    compiled     the same of --compile=BUDGET, from 1 to 0 in steps of 0.05: the min-cut of torch.compile, at an activation_memory_budget
    segments     of segments=K, K from 1 to 32: checkpoint_sequential
    people       of what people write: the setters of transformers and timm, torchtitan's lists, every other unit
    sac_ilp      of PyTorch's own planner (torch.distributed._tools.sac_ilp)
    checkmate    of schedules of single operations, by an integer program as Checkmate's

Training is with SGD. Prints CSV: network,batch,way,0,5,10,20 (bytes; empty: none is so cheap),least,most: by how many per cent its peaks are
above the least one of the front (and of --compile, for `compiled`) that costs no more.

sac_ilp's figures are its own: an upper bound of the peak (parameters, gradients and activations), and the time that runs again, by a
roofline of one H100, as a share of a forward and a backward. What its program assumes is seen to first:

    - a module is called once in a forward: each further call of a module gets a module of its own (ResNet's relu)
    - it runs again whole modules with others inside, of which none holds another: the rows of VGG16's and the U-Net's
      modules are grouped, one group for each resolution
    - the curve of a module is fitted in seconds: pwlf's fitfast stands for its fit
    - a module without products that take time has no curve (not a number), nor one that keeps nothing: they are left alone
    - every module that is called has a backward: those without one (LLaMA's rotary_emb) are left out
    - weights are filled without looking at them: trunc_normal_ (ViT's) does look, and does nothing here

checkmate's units and tensors are those of `--checkpoint optimal --timelines --json` (training.chain). In the program (Jain et al.,
MLSys 2020) there is a stage for the forward pass, in which each unit runs once, and one for the backward of each unit, the last first. In a
stage of backward any unit before it may run again, in order; any tensor may go behind any run. It minimises the peak, with products of at
most 0, 5, 10, 20 % of a forward and a backward run again:

    while a unit runs       what is held of others, what it takes while it keeps nothing, and what it makes for its backward
                            alone where that stays; behind it, what is held
    while its backward runs what is held of units before it, and its backward_bytes; all that it saves must be there

Neighbours are joined until --units are left, those first that have the fewest bytes between them: a schedule of joined units is one of
single units, so its peak is an upper bound. On stderr: level, status (optimal: proved the least of joined units), bound.

sac_ilp needs the CUDA build of PyTorch and a device, pulp and pwlf; checkmate OR-tools (CP-SAT).
"""
import argparse
import contextlib
import logging
import math
import os
import sys
import time
import warnings

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))
from truth import exports  # noqa: E402
from truth.harness import report  # noqa: E402
from truth.networks import fronts, planned  # noqa: E402

NETWORKS = {**{network.name: network for network in planned.NETWORKS}, **fronts.NETWORKS}
LEVELS = (0, 0.05, 0.1, 0.2)
PEOPLE = ("blocks", "reentrant", "sqrt", "every=2", "save=product+attention", "save=product+attention+convolution", "save=attention")


# --- Predicted ---------------------------------------------------------------------------------

class Asked:
    """The program, of the recording of a network."""

    def __init__(self, program, network, folder):
        base = os.path.join(folder, network.name)
        if not os.path.exists(base + ".recording.json.gz"):
            exports.make("recording", network._replace(batch=2), base)
        self.name = network.name
        self.asked = program, base + ".recording.json.gz", ["--batch", str(network.batch), "--train", "sgd", "--loss", network.loss]

    def training(self, *options):
        program, path, own = self.asked
        found = report(program, path, [*own, *options])
        if isinstance(found, str):
            raise ValueError(f"{self.name}: {found}")
        return found["training"]

    def plans(self, checkpoint, *options):
        return [(plan["peak_bytes"], plan["overhead"]) for plan in self.training("--checkpoint", checkpoint, *options)["plans"]]

    def accepted(self, plans):
        """Those that the program does not refuse: more segments than there are units, no gradient on the way."""
        try:
            return self.plans(",".join(plans))
        except ValueError:
            return [point for plan in plans for point in self.accepted([plan])] if len(plans) > 1 else []

    def compiled(self):
        found = [self.training(f"--compile={k / 20}")["compile"] for k in range(21)]
        return [(part["peak_bytes"], part["overhead"]) for part in found]


# --- sac_ilp -----------------------------------------------------------------------------------

class Calls:
    """In place of a module that is called several times: one module for each call."""

    def __init__(self, modules):
        self.modules, self.at = modules, 0

    def __call__(self, *args, **kwargs):
        module = self.modules[self.at % len(self.modules)]
        self.at += 1
        return module(*args, **kwargs)


def separate_calls(model, x):
    """Of modules without parameters; what has some cannot be called twice."""
    counts, hooks = {}, []

    def count(module, _):
        counts[module] = counts.get(module, 0) + 1

    for module in model.modules():
        hooks.append(module.register_forward_pre_hook(count))
    model(x)
    for hook in hooks:
        hook.remove()
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if counts.get(child, 0) < 2:
                continue
            if any(True for _ in child.parameters()):
                raise ValueError(f"{name} has parameters and is called {counts[child]} times")
            copies = [child] + [type(child)(*([child.inplace] if hasattr(child, "inplace") else []))
                                for _ in range(counts[child] - 1)]
            delattr(parent, name)
            for i, copy in enumerate(copies):
                parent.add_module(f"{name}_{i}", copy)
            setattr(parent, name, Calls(copies))


def loss_of(output):
    import torch
    from torch import nn
    if output.dim() == 3:
        output = output.transpose(1, 2)
    return nn.functional.cross_entropy(output, torch.zeros(output.shape[:1] + output.shape[2:], dtype=torch.int64))


def fast_fits():
    import pwlf
    pwlf.PiecewiseLinFit.fit = lambda self, n_segments, **_: self.fitfast(n_segments)


def leave_out(memory, times):
    """Modules without a backward."""
    from torch.distributed._tools.mem_tracker import _ModState
    names = set()
    for module, stats in list(memory.memory_tracking.items()):
        if _ModState.PRE_BW not in stats.snapshots:
            names.add(stats.mod_fqn)
            del memory.memory_tracking[module]
    for order in (times.mod_fw_pre_order, times.mod_bw_pre_order, times.mod_fw_post_order, times.mod_bw_post_order):
        order[:] = [name for name in order if name not in names]


def module_info(network):
    import torch
    from torch import nn
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.distributed._tools.ilp_utils import aggregate_stats
    from torch.distributed._tools.mem_tracker import MemTracker
    from torch.distributed._tools.runtime_estimator import RuntimeEstimator
    from torch.distributed._tools.sac_estimator import SACEstimator
    device = torch.device("cuda", torch.cuda.current_device())
    nn.init.trunc_normal_ = lambda tensor, *_, **__: tensor
    with FakeTensorMode(), device:
        model, (x,) = network.make().train(), network.inputs(network.batch)
        separate_calls(model, x)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        def step():
            loss_of(model(x)).backward()
            optimizer.step()
            optimizer.zero_grad()

        step()
        memory, times, sac = MemTracker(), RuntimeEstimator("NVIDIA H100"), SACEstimator("NVIDIA H100")
        memory.track_external(model, optimizer)
        with memory:
            step()
        with times("operator-level-cost-model"):
            step()
        with sac("operator-level-cost-model"):
            loss_of(model(x))
        leave_out(memory, times)
        for name in [name for name, stats in sac.sac_mod_stats.items() if sum(stats.memory) == 0]:
            del sac.sac_mod_stats[name]
        return aggregate_stats(model, memory, times, sac, device)


def leave_alone(info):
    """Modules whose curve is not a number, or that keep nothing."""
    units = 0
    for module in info["mod_stats"]:
        numbers = module["slopes"] + module["intercepts"]
        usable = numbers and all(map(math.isfinite, numbers)) and module["sac_memory"] > 0
        units += bool(usable)
        if not usable:
            module.update(is_leaf=True, n_segments=0, slopes=[], intercepts=[], sac_memory=0, sac_runtime=0)
    return units


def by_budgets(info, limit):
    """(peak, overhead) by budgets between none and where the solver finds nothing."""
    from torch.distributed._tools.ilp_utils import get_peak_memory_runtime_baseline, parse_module_info
    from torch.distributed._tools.sac_ilp import sac_milp
    graph, start = parse_module_info(info), time.time()
    peak, runtime = get_peak_memory_runtime_baseline(graph)
    found = [(peak, 0.0)]
    for percent in range(98, 10, -3):
        _, again, least = sac_milp(graph, peak * percent / 100 / 2 ** 30)
        if least < 0 or time.time() - start > limit:
            break
        found.append((least, again / runtime))
    return found


def sac_ilp(network, limit):
    fast_fits()
    with contextlib.redirect_stdout(sys.stderr):
        info = module_info(network)
        leave_alone(info)
        return by_budgets(info, limit)


# --- checkmate ---------------------------------------------------------------------------------

ROUNDED = 4096  # bytes: numbers of the program are small


class Program:
    def __init__(self, chain, most):
        from ortools.sat.python import cp_model
        self.units, self.most = chain["units"], most
        self.beside = [unit["beside_bytes"] for unit in self.units] + [chain["beside_bytes"]]
        # (bytes, unit that makes it, units that read it, units whose backward needs it)
        self.tensors = [(t["bytes"], t["made_by"], set(t["read_by"]), set(t["saved_by"]))
                        for t in chain["tensors"] if t["bytes"] > 0]
        self.tensors += [(unit["own_bytes"], i, set(), {i}) for i, unit in enumerate(self.units) if unit["own_bytes"] > 0]
        self.model, self.runs = cp_model.CpModel(), []
        self.peak = self.model.new_int_var(0, rounded(most), "peak")

    def build(self, macs):
        held = self.forward()
        for last in range(len(self.units) - 1, -1, -1):
            held = self.backward(last, held)
        unit = max(1, sum(u["macs"] for u in self.units) >> 30)  # of products
        self.model.add(sum(self.units[u]["macs"] // unit * ran for u, ran in self.runs) <= macs // unit)
        self.model.minimize(self.peak)

    def forward(self):
        held = {}
        for u in range(len(self.units)):
            held = self.run(u, held, 1, self.beside[-1])
        return held

    def backward(self, last, held):
        for u in range(last + 1):
            ran = self.model.new_bool_var("")
            self.runs.append((u, ran))
            held = self.run(u, held, ran, self.beside[last + 1])
        for t, (_, _, _, saved) in enumerate(self.tensors):
            if last in saved:
                self.model.add(held[t] == 1)
        held = {t: x for t, x in held.items() if self.tensors[t][1] < last}
        self.bound(held, rounded(self.units[last]["backward_bytes"]))
        return held

    def run(self, u, held, ran, beside):
        """What is held behind it."""
        after, takes = {}, rounded(self.units[u]["passing_bytes"])
        for t, (_, maker, readers, _) in enumerate(self.tensors):
            if maker == u:
                after[t] = self.model.new_bool_var("")
                self.model.add(after[t] <= held.get(t, 0) + ran)
            elif t in held:
                after[t] = self.model.new_bool_var("")
                self.model.add(after[t] <= held[t])
            if u in readers and maker != u:  # it is there while the unit runs, and may go only behind it
                self.model.add((after[t] if t in after else 0) >= ran)
        more = max(0, rounded(self.units[u]["forward_bytes"]) - takes)
        own = [x for t, x in after.items() if self.tensors[t][1] == u and not self.tensors[t][2]]
        others = {t: x for t, x in after.items() if self.tensors[t][1] != u}
        self.bound(others, takes * ran + more * sum(own) + rounded(beside))
        self.bound(after, rounded(beside))
        return after

    def bound(self, held, beside):
        self.model.add(sum(rounded(self.tensors[t][0]) * x for t, x in held.items()) + beside <= self.peak)

    def solve(self, limit):
        from ortools.sat.python import cp_model
        solver = cp_model.CpSolver()
        solver.parameters.max_time_in_seconds = limit
        solver.parameters.num_workers = 1
        status = solver.solve(self.model)
        found = status in (cp_model.OPTIMAL, cp_model.FEASIBLE)
        print(solver.status_name(status).lower(), int(solver.best_objective_bound) * ROUNDED, file=sys.stderr, flush=True)
        return int(solver.objective_value) * ROUNDED if found else None


def join(chain, most):
    """Neighbours as one unit, until `most` are left."""
    units, tensors = [dict(unit) for unit in chain["units"]], [dict(t) for t in chain["tensors"]]
    while len(units) > most:
        sizes = [sum(t["bytes"] for t in tensors if t["made_by"] == a) + unit["own_bytes"] + units[a + 1]["own_bytes"]
                 for a, unit in enumerate(units[:-1])]
        join_two(units, tensors, sizes.index(min(sizes)))
    return {"units": units, "tensors": tensors, "beside_bytes": chain["beside_bytes"]}


def join_two(units, tensors, a):
    first, second, b = units[a], units[a + 1], a + 1
    made = [t for t in tensors if t["made_by"] == a]
    inside = [t for t in made if max([*t["read_by"], *t["saved_by"], a]) <= b]
    read = sum(t["bytes"] for t in made if max([*t["read_by"], a]) >= b)
    there = sum(t["bytes"] for t in made if t["saved_by"] or max([*t["read_by"], a]) >= b)
    kept = sum(t["bytes"] for t in made if a in t["saved_by"] or b in t["saved_by"])
    units[a:a + 2] = [{
        "macs": first["macs"] + second["macs"],
        "forward_bytes": max(first["forward_bytes"], first["own_bytes"] + there + second["forward_bytes"]),
        "passing_bytes": max(first["passing_bytes"], read + second["passing_bytes"]),
        "own_bytes": first["own_bytes"] + second["own_bytes"] + sum(t["bytes"] for t in inside if t["saved_by"]),
        "backward_bytes": max(first["backward_bytes"], first["own_bytes"] + kept + second["backward_bytes"]),
        "beside_bytes": first["beside_bytes"],
    }]
    tensors[:] = [{"bytes": t["bytes"], "made_by": t["made_by"] - (t["made_by"] > a),
                   "read_by": sorted({u - (u > a) for u in t["read_by"]}),
                   "saved_by": sorted({u - (u > a) for u in t["saved_by"]})} for t in tensors if t not in inside]


def rounded(size):
    return -(-size // ROUNDED)


def checkmate(asked, units, limit):
    training = asked.training("--checkpoint", "none,optimal", "--timelines")
    chain, points = join(training["chain"], units), []
    for level in LEVELS:
        program = Program(chain, max(plan["peak_bytes"] for plan in training["plans"]))
        program.build(int(level * 3 * sum(unit["macs"] for unit in chain["units"])))
        print(asked.name, level, end=" ", file=sys.stderr)
        points.append((program.solve(limit), level))
    return [point for point in points if point[0] is not None]


# --- All of them -------------------------------------------------------------------------------

def row(points, front):
    cells, apart = [], [100 * (peak / min(p for p, o in front if o <= overhead + 1e-6) - 1) for peak, overhead in points]
    for level in LEVELS:
        peaks = [peak for peak, overhead in points if overhead <= level + 1e-6]
        cells.append(str(min(peaks)) if peaks else "")
    return ",".join(cells + [f"{end:+.1f}" for end in ((min(apart), max(apart)) if apart else ())])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("folder", help="of recordings, which are made where they are missing")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--ways", default="front,compiled,segments,people,sac_ilp,checkmate", metavar="LIST")
    parser.add_argument("--limit", type=float, default=60, help="sac_ilp: seconds for a network; checkmate: for each level")
    parser.add_argument("--units", type=int, default=16, help="checkmate: at most")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    logging.disable(logging.ERROR)
    for name in options.names or fronts.NETWORKS:
        network, asked = NETWORKS[name], Asked(options.program, NETWORKS[name], options.folder)
        front = asked.plans("none,optimal")
        ways = {"front": lambda: front, "compiled": asked.compiled, "segments": lambda: asked.accepted([f"segments={k}" for k in range(1, 33)]),
                "people": lambda: asked.accepted(PEOPLE),
                "sac_ilp": lambda: sac_ilp(network, options.limit), "checkmate": lambda: checkmate(asked, options.units, options.limit)}
        for way in options.ways.split(","):
            beside = asked.plans("none,optimal", "--compile") if way == "compiled" else front
            print(f"{name},{network.batch},{way},{row(ways[way](), beside)}", flush=True)


if __name__ == "__main__":
    main()
