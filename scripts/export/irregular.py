#!/usr/bin/env python3
"""Networks whose cells are wired irregularly, as ONNX files, and what an order of execution saves in them.

    python scripts/export/irregular.py export DIR [NAME...]            NAME.onnx, weights beside it
    python scripts/export/irregular.py table DIR --exe onnxvram        the table of docs/performance.md

Inference, batch 1. NASNet-A and PNASNet are timm's; the others are written here after their papers: cells of DARTS (V2) and
AmoebaNet-D, EfficientDet's BiFPN on timm's EfficientNet, and randomly wired networks (Watts-Strogatz, 32 nodes a stage, K 4, P 0.75).
`...-cell` is a single cell. `table` takes the best order from the report, as it is without options, and with the default effort of
`--order optimal`; `--exact` also searches all orders of graphs of few enough sets of nodes, by code of its own.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import time

DARTS_NORMAL = [("sep3", 0), ("sep3", 1), ("sep3", 0), ("sep3", 1), ("sep3", 1), ("skip", 0), ("skip", 0), ("dil3", 2)]
DARTS_REDUCE = [("max3", 0), ("max3", 1), ("skip", 2), ("max3", 1), ("max3", 0), ("skip", 2), ("skip", 2), ("max3", 1)]
AMOEBA_NORMAL = [("conv1", 1), ("max3", 1), ("skip", 1), ("conv7", 0), ("conv1", 0), ("conv7", 0), ("max3", 2), ("skip", 2),
                 ("avg3", 1), ("conv1", 5)]
AMOEBA_REDUCE = [("max2", 0), ("max3", 0), ("skip", 2), ("conv3", 1), ("conv7", 2), ("max3", 2), ("skip", 3), ("max2", 1),
                 ("avg3", 2), ("conv1", 3)]
CELLS = {"darts": ((DARTS_NORMAL, [2, 3, 4, 5]), (DARTS_REDUCE, [2, 3, 4, 5])),
         "amoebanet": ((AMOEBA_NORMAL, [0, 3, 4, 6]), (AMOEBA_REDUCE, [4, 5, 6]))}


def watts_strogatz(n, k, p, seed):
    """Edges (a, b) with a < b of a connected ring of n nodes with k neighbours each, an edge rewired with probability p."""
    draw = random.Random(seed)
    while True:
        edges = set()
        for step in range(1, k // 2 + 1):
            for a in range(n):
                b = (a + step) % n
                if draw.random() < p:
                    free = [c for c in range(n) if c != a and (min(a, c), max(a, c)) not in edges]
                    b = draw.choice(free) if free else b
                edges.add((min(a, b), max(a, b)))
        reached, todo = {0}, [0]
        while todo:
            at = todo.pop()
            for a, b in edges:
                for other in ((b,) if a == at else (a,) if b == at else ()):
                    if other not in reached:
                        reached.add(other)
                        todo.append(other)
        if len(reached) == n:
            return sorted(edges)


def networks():
    """Name: (make a module, its inputs' shapes)."""
    import timm
    import torch
    from torch import nn
    from torch.nn import functional as F

    def norm(channels):
        return nn.BatchNorm2d(channels)

    def relu_conv(a, b, stride=1):
        return nn.Sequential(nn.ReLU(), nn.Conv2d(a, b, 1, stride, bias=False), norm(b))

    def separable(a, b, size, stride, twice=False, dilation=1):
        pad = (size - 1) * dilation // 2
        layers = [nn.ReLU(), nn.Conv2d(a, a, size, stride, pad, dilation, a, bias=False), nn.Conv2d(a, b, 1, bias=False), norm(b)]
        if twice:
            layers += [nn.ReLU(), nn.Conv2d(b, b, size, 1, pad, 1, b, bias=False), nn.Conv2d(b, b, 1, bias=False), norm(b)]
        return nn.Sequential(*layers)

    class FactorizedReduce(nn.Module):
        def __init__(self, a, b):
            super().__init__()
            self.left = nn.Conv2d(a, b // 2, 1, 2, bias=False)
            self.right = nn.Conv2d(a, b - b // 2, 1, 2, bias=False)
            self.norm = norm(b)

        def forward(self, x):
            x = F.relu(x)
            return self.norm(torch.cat([self.left(x), self.right(F.pad(x, (0, 1, 0, 1))[:, :, 1:, 1:])], 1))

    def operation(kind, c, stride):
        if kind == "skip":
            return nn.Identity() if stride == 1 else FactorizedReduce(c, c)
        if kind == "sep3":
            return separable(c, c, 3, stride, twice=True)
        if kind == "dil3":
            return separable(c, c, 3, stride, dilation=2)
        if kind == "max2":
            return nn.MaxPool2d(2, stride, 0 if stride == 2 else 1)
        if kind == "max3":
            return nn.MaxPool2d(3, stride, 1)
        if kind == "avg3":
            return nn.AvgPool2d(3, stride, 1, count_include_pad=False)
        if kind == "conv1":
            return relu_conv(c, c, stride)
        if kind == "conv3":
            quarter = c // 4
            return nn.Sequential(relu_conv(c, quarter), nn.ReLU(), nn.Conv2d(quarter, quarter, 3, stride, 1, bias=False),
                                 norm(quarter), relu_conv(quarter, c))
        quarter = c // 4
        return nn.Sequential(relu_conv(c, quarter), nn.ReLU(),
                             nn.Conv2d(quarter, quarter, (1, 7), (1, stride), (0, 3), bias=False), norm(quarter), nn.ReLU(),
                             nn.Conv2d(quarter, quarter, (7, 1), (stride, 1), (3, 0), bias=False), norm(quarter),
                             relu_conv(quarter, c))

    class Cell(nn.Module):
        """Two states come in; each pair of operations makes one more."""

        def __init__(self, rows, concat, before, last, c, reduces, was_reduced):
            super().__init__()
            self.rows, self.concat = rows, concat
            self.before = FactorizedReduce(before, c) if was_reduced else relu_conv(before, c)
            self.last = relu_conv(last, c)
            self.operations = nn.ModuleList(operation(kind, c, 2 if reduces and at < 2 else 1) for kind, at in rows)
            self.channels = c * len(concat)

        def forward(self, before, last):
            states = [self.before(before), self.last(last)]
            for k in range(0, len(self.rows), 2):
                left = self.operations[k](states[self.rows[k][1]])
                right = self.operations[k + 1](states[self.rows[k + 1][1]])
                states.append(left + right)
            return torch.cat([states[i] for i in self.concat], 1)

    class Stacked(nn.Module):
        """Cells in three stages, a reduction at each third, on a stem that halves three times."""

        def __init__(self, kind, c, layers):
            super().__init__()
            normal, reduce = CELLS[kind]
            self.stem0 = nn.Sequential(nn.Conv2d(3, c // 2, 3, 2, 1, bias=False), norm(c // 2), nn.ReLU(),
                                       nn.Conv2d(c // 2, c, 3, 2, 1, bias=False), norm(c))
            self.stem1 = nn.Sequential(nn.ReLU(), nn.Conv2d(c, c, 3, 2, 1, bias=False), norm(c))
            before, last, was_reduced, cells = c, c, True, []
            for i in range(layers):
                reduces = i in (layers // 3, 2 * layers // 3)
                c *= 2 if reduces else 1
                cells.append(Cell(*(reduce if reduces else normal), before, last, c, reduces, was_reduced))
                before, last, was_reduced = last, cells[-1].channels, reduces
            self.cells = nn.ModuleList(cells)
            self.head = nn.Linear(last, 1000)

        def forward(self, x):
            before = self.stem0(x)
            last = self.stem1(before)
            for cell in self.cells:
                before, last = last, cell(before, last)
            return self.head(last.mean((2, 3)))

    class Wired(nn.Module):
        """A stage of a randomly wired network."""

        def __init__(self, n, seed, a, b):
            super().__init__()
            edges = watts_strogatz(n, 4, 0.75, seed)
            self.read = [[s for s, t in edges if t == i] for i in range(n)]
            self.ends = [i for i in range(n) if all(s != i for s, _ in edges)]
            self.weights = nn.ParameterList(nn.Parameter(torch.zeros(len(r))) for r in self.read)
            self.nodes = nn.ModuleList(separable(a if not r else b, b, 3, 2 if not r else 1) for r in self.read)

        def forward(self, x):
            made = []
            for read, weight, node in zip(self.read, self.weights, self.nodes):
                if not read:
                    made.append(node(x))
                    continue
                w = torch.sigmoid(weight)
                total = made[read[0]] * w[0]
                for k, i in enumerate(read[1:], 1):
                    total = total + made[i] * w[k]
                made.append(node(total))
            total = made[self.ends[0]]
            for i in self.ends[1:]:
                total = total + made[i]
            return total / len(self.ends)

    class RandWire(nn.Module):
        def __init__(self, c, seed, n=32):
            super().__init__()
            self.stem = nn.Sequential(nn.Conv2d(3, c // 2, 3, 2, 1, bias=False), norm(c // 2))
            self.stages = nn.Sequential(Wired(n // 2, seed, c // 2, c), *(Wired(n, seed + k, c << (k - 1), c << k) for k in (1, 2, 3)))
            self.last = nn.Sequential(nn.ReLU(), nn.Conv2d(c << 3, 1280, 1, bias=False), norm(1280))
            self.head = nn.Linear(1280, 1000)

        def forward(self, x):
            return self.head(self.last(self.stages(self.stem(x))).mean((2, 3)))

    class BiFPN(nn.Module):
        """Levels 3 to 7: from the top down, then up, each sum weighted and convolved."""

        def __init__(self, w):
            super().__init__()
            self.down = nn.ModuleList(nn.Sequential(nn.SiLU(), *list(separable(w, w, 3, 1))[1:]) for _ in range(4))
            self.up = nn.ModuleList(nn.Sequential(nn.SiLU(), *list(separable(w, w, 3, 1))[1:]) for _ in range(4))
            self.down_weights = nn.Parameter(torch.ones(4, 2))
            self.up_weights = nn.Parameter(torch.ones(4, 3))

        def join(self, weights, *inputs):
            w = F.relu(weights)
            w = w / (w.sum() + 1e-4)
            total = inputs[0] * w[0]
            for k, x in enumerate(inputs[1:], 1):
                total = total + x * w[k]
            return total

        def forward(self, *levels):
            levels, middle = list(levels), [None] * 5
            middle[4] = levels[4]
            for i in (3, 2, 1, 0):
                above = F.interpolate(middle[i + 1], size=levels[i].shape[-2:], mode="nearest")
                middle[i] = self.down[i](self.join(self.down_weights[i], levels[i], above))
            out = [middle[0]]
            for i in (1, 2, 3, 4):
                below = F.max_pool2d(out[-1], 3, 2, 1)
                parts = (levels[i], below) if i == 4 else (levels[i], middle[i], below)
                out.append(self.up[i - 1](self.join(self.up_weights[i - 1], *parts)))
            return out

    class EfficientDet(nn.Module):
        def __init__(self, backbone, w, cells, depth, classes=90, anchors=9):
            super().__init__()
            self.backbone = timm.create_model(backbone, features_only=True, out_indices=(2, 3, 4))
            channels = self.backbone.feature_info.channels()
            self.lateral = nn.ModuleList(nn.Sequential(nn.Conv2d(c, w, 1), norm(w)) for c in channels + channels[-1:])
            self.cells = nn.ModuleList(BiFPN(w) for _ in range(cells))
            tower = lambda out: nn.Sequential(*[m for _ in range(depth) for m in (nn.Conv2d(w, w, 3, 1, 1, groups=w), nn.Conv2d(w, w, 1), norm(w), nn.SiLU())],
                                              nn.Conv2d(w, w, 3, 1, 1, groups=w), nn.Conv2d(w, out, 1))
            self.classes, self.boxes = tower(classes * anchors), tower(4 * anchors)

        def forward(self, x):
            features = self.backbone(x)
            levels = [lateral(f) for lateral, f in zip(self.lateral, features)]
            levels.append(F.max_pool2d(self.lateral[3](features[-1]), 3, 2, 1))
            levels.append(F.max_pool2d(levels[-1], 3, 2, 1))
            for cell in self.cells:
                levels = cell(*levels)
            return [self.classes(f) for f in levels] + [self.boxes(f) for f in levels]

    def cell(kind, which, c, size):
        rows, concat = CELLS[kind][which]
        return (lambda: Cell(rows, concat, c * 4, c * 4, c, which == 1, False)), [(1, c * 4, size, size)] * 2

    image = lambda size: [(1, 3, size, size)]
    found = {
        "nasnetalarge": (lambda: timm.create_model("nasnetalarge"), image(331)),
        "pnasnet5large": (lambda: timm.create_model("pnasnet5large"), image(331)),
        "amoebanet-d": (lambda: Stacked("amoebanet", 64, 18), image(224)),
        "darts": (lambda: Stacked("darts", 48, 14), image(224)),
        "efficientdet-d0": (lambda: EfficientDet("efficientnet_b0", 64, 3, 3), image(512)),
        "efficientdet-d4": (lambda: EfficientDet("efficientnet_b4", 224, 7, 4), image(1024)),
        "bifpn-cell": (lambda: BiFPN(64), [(1, 64, 64 >> k, 64 >> k) for k in range(5)]),
        "darts-normal-cell": cell("darts", 0, 48, 28),
        "darts-reduction-cell": cell("darts", 1, 96, 28),
        "amoebanet-normal-cell": cell("amoebanet", 0, 64, 28),
        "amoebanet-reduction-cell": cell("amoebanet", 1, 128, 28),
        "randwire-stage": (lambda: Wired(32, 1, 109, 218), [(1, 109, 56, 56)]),
    }
    for seed in (1, 2, 3):
        found[f"randwire-small-{seed}"] = ((lambda s: lambda: RandWire(78, 10 * s))(seed), image(224))
        found[f"randwire-regular-{seed}"] = ((lambda s: lambda: RandWire(109, 10 * s))(seed), image(224))
    return found


def export(folder, names):
    import torch
    all_of_them = networks()
    for name in names or all_of_them:
        make, shapes = all_of_them[name]
        torch.manual_seed(0)
        module = make().eval()
        torch.onnx.export(module, tuple(torch.rand(s) for s in shapes), os.path.join(folder, f"{name}.onnx"), dynamo=True,
                          external_data=True, verbose=False)


# --- All orders ------------------------------------------------------------------------------------------------------


def exact(report, most_sets):
    """The least peak of all orders: a search over the sets of nodes that can have run, least peak first. None: too many."""
    import heapq
    tensors = {t["name"]: t for t in report["tensors"]}
    alias = {name: t["alias_of"] for name, t in tensors.items()}

    def owner(name):
        while alias[name]:
            name = alias[name]
        return name

    counted = {n for n, t in tensors.items() if t["first_step"] is not None}
    nodes = [([owner(n) for n in dict.fromkeys(k["inputs"]) if n in counted],
              [owner(n) for n in k["outputs"] if n in counted]) for k in report["nodes"]]
    size = {n: tensors[n]["bytes"] for n in counted if not alias[n]}
    last = len(nodes) - 1
    writers, readers = {}, {}
    for i, (reads, writes) in enumerate(nodes):
        for n in writes:
            writers.setdefault(n, i)
        for n in reads:
            readers[n] = readers.get(n, 0) | 1 << i
    held = {owner(n) for n, t in tensors.items() if t["kind"] == "output"}
    need = [0] * len(nodes)
    made_at = {}
    for i, k in enumerate(report["nodes"]):
        for n in k["outputs"]:
            made_at[n] = i
    for i, k in enumerate(report["nodes"]):
        for n in k["inputs"]:
            if n in made_at:
                need[i] |= 1 << made_at[n]
    inputs = [n for n in size if n not in writers]

    def live(done):
        total = 0
        for n, b in size.items():
            if n in writers and not done >> writers[n] & 1:
                continue
            if n in held or readers.get(n, 0) & ~done:
                total += b
        return total

    start = live(0)
    best, queue, full = {0: 0}, [(0, 0)], (1 << last + 1) - 1
    while queue:
        peak, done = heapq.heappop(queue)
        if done == full:
            return peak
        if peak > best[done] or len(best) > most_sets:
            if len(best) > most_sets:
                return None
            continue
        before = live(done) if done else start
        for i in range(last + 1):
            if done >> i & 1 or need[i] & ~done:
                continue
            made = sum(size[n] for n in nodes[i][1] if n in size and n in writers and writers[n] == i)
            after = max(peak, before + made)
            then = done | 1 << i
            if after < best.get(then, 1 << 62):
                best[then] = after
                heapq.heappush(queue, (after, then))
    return None


def ask(exe, path, *options):
    begin = time.process_time()
    run = subprocess.run([exe, path, "--runtime", "ideal", "--json", *options], capture_output=True, text=True)
    if run.returncode not in (0, 1):
        raise SystemExit(run.stderr)
    return json.loads(run.stdout)["models"][0], time.process_time() - begin


def table(folder, exe, names, most_sets):
    print("| network | nodes | the file's order, MiB | best found by default | lower bound | ONNX Runtime's order | by default, ms |"
          + (" all orders |" if most_sets else ""))
    print("|---|--:|--:|--:|--:|--:|--:|" + ("--:|" if most_sets else ""))
    for name in names or sorted(f[:-5] for f in os.listdir(folder) if f.endswith(".onnx")):
        path = os.path.join(folder, f"{name}.onnx")
        report, _ = ask(exe, path)
        ort, _ = ask(exe, path, "--order", "ort")
        own, best = report["peak"]["bytes"], report["best_order"]

        def change(b):
            return f"{b / 2**20:.2f} ({100 * (b / own - 1):+.1f} %)"

        runs = []
        for _ in range(3):
            begin = os.times()
            subprocess.run([exe, path, "--runtime", "ideal", "-q"], capture_output=True, check=False)
            end = os.times()
            runs.append(1000 * (end.children_user + end.children_system - begin.children_user - begin.children_system))
        line = [name, str(len(report["nodes"])), f"{own / 2**20:.2f}", change(best["peak_bytes"]),
                "proven" if best["proven"] else change(best["lower_bound_bytes"]), change(ort["peak"]["bytes"]), f"{min(runs):.0f}"]
        if most_sets:
            least = exact(report, most_sets)
            line.append("too many" if least is None else change(least))
        print("| " + " | ".join(line) + " |", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("export", "table"))
    parser.add_argument("folder")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--exe", default="onnxvram")
    parser.add_argument("--exact", type=int, default=0, metavar="SETS")
    args = parser.parse_args()
    if args.what == "export":
        export(args.folder, args.names)
    else:
        table(args.folder, args.exe, args.names, args.exact)


if __name__ == "__main__":
    sys.exit(main())
