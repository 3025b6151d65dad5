#!/usr/bin/env python3
"""The front of checkpointing plans beside schedules of single operations, by an integer program as Checkmate's.

    python scripts/export/checkmate.py [--limit S] [--free] [--units N] build/release/onnxvram samples/vgg16.onnx:16 [MODEL:BATCH[:DIM=N]...]

The units and tensors are those of `--checkpoint optimal --timelines --json` (training.chain), training is with SGD.  In the
program (Jain et al., MLSys 2020) there is a stage for the forward pass, in which each unit runs once, and one for the backward
of each unit, the last first.  In a stage of backward any unit before it may run again, in order; any tensor may go behind any
run.  It minimises the peak, with products of at most 0, 5, 10, 20 % of a forward and a backward run again:

    while a unit runs       what is held of others, what it takes while it keeps nothing, and what it makes for its backward
                            alone where that stays; behind it, what is held
    while its backward runs what is held of units before it, and its backward_bytes; all that it saves must be there

Searched are peaks below that of the front; with --free, all. With --units, neighbours are joined until so many are left, those
first that have the fewest bytes between them: a schedule of joined units is one of single units, so its peak is an upper bound.  Needs OR-tools (CP-SAT).
Prints CSV: network,batch,units,overhead,front,program,status,bound,seconds.  The status: optimal; infeasible: no schedule is
smaller than the front; feasible: the limit came before the proof; unknown: the limit came first.
"""

import argparse
import time

from ortools.sat.python import cp_model

from peers import LEVELS, run

ROUNDED = 4096  # bytes: numbers of the program are small


class Program:
    def __init__(self, chain, most):
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
        solver, start = cp_model.CpSolver(), time.time()
        solver.parameters.max_time_in_seconds = limit
        solver.parameters.num_workers = 2
        status = solver.solve(self.model)
        found = status in (cp_model.OPTIMAL, cp_model.FEASIBLE)
        return (int(solver.objective_value) * ROUNDED if found else "", solver.status_name(status).lower(),
                int(solver.best_objective_bound) * ROUNDED, round(time.time() - start, 1))


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


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("models", nargs="+")
    parser.add_argument("--limit", type=float, default=60, help="seconds for each row")
    parser.add_argument("--free", action="store_true", help="peaks above the front's, too")
    parser.add_argument("--units", type=int, help="at most")
    parser.add_argument("--levels", default=",".join(map(str, LEVELS)), help="of overhead")
    options = parser.parse_args()
    for text in options.models:
        model, batch, *dims = text.split(":")
        training = run(options.program, model, batch, dims, "--checkpoint", "none,optimal", "--timelines")
        chain = training["chain"] if options.units is None else join(training["chain"], options.units)
        name = model.split("/")[-1].removesuffix(".onnx")
        for level in map(float, options.levels.split(",")):
            front = min(p["peak_bytes"] for p in training["plans"] if p["overhead"] <= level + 1e-6)
            program = Program(chain, max(p["peak_bytes"] for p in training["plans"]) if options.free else front)
            program.build(int(level * 3 * sum(u["macs"] for u in chain["units"])))
            found = program.solve(options.limit)
            print(f"{name},{batch},{len(chain['units'])},{level},{front}," + ",".join(map(str, found)), flush=True)


if __name__ == "__main__":
    main()
