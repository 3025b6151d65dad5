"""Fits the trees of share/cudnn/conv.trees to answers of cuDNN and prints how far they meet held-out layers.

    python fit.py FOLDER [TREES] > report     # FOLDER: NAME.in (of problems.py) and NAME.out (of ask.c) of the sets; writes FOLDER/conv.trees

The trees of TREES, an earlier result, are grown on: a leaf whose answers differ is divided, and all are pruned.  Those of settings without
answers in FOLDER stay as they are.  Without TREES all trees begin as one leaf.

Sets: 90-tf32 (compute capability, setting), B90-...: heuristics' mode B, M90-...: all plans (ask 100), of which the largest
workspace counts, E86-...: cuDNN 8.9.  Needs numpy and scikit-learn.

A workspace is a form (which copies of the tensors it has), splits (copies of the weights in float32 for a divided sum), what
kernels that divide the sums of their last tiles leave (`partial_bytes`, exact, by the kernel that cuDNN names), and a rest.  A tree
asks for sizes (`features`) and ends at the likeliest of these, and the second likeliest.  It is grown to a
number of leaves, then pruned: what meets no more of the fitted rows is taken back.  Layers whose kernel is their stride (patch
embeddings) have a tree of their own under a common top.  Held-out rows are never looked at but in the report.
"""
import math
import os
import sys
from collections import Counter

import numpy as np
from sklearn.tree import DecisionTreeClassifier

from trees import ARCHS, MODES, Tree, shape_of, trees_of, write

MIB = 1 << 20
PATCHES = 32  # the feature that tells them
RANK, WIDTH = 9, 22
FORMS = ["none", "x+y+w", "x+w", "y+w", "x+y", "x", "y", "w", "X+Y+W", "X+W", "Y+W", "X+Y", "X", "Y", "W", "N*w", "2x", "2y",
         "winograd", "fft", "2N*w", "winograd's weights", "8 groups' x+y", "8 groups' x+y+w", "2^n x+y+w", "table", "16 images' winograd",
         "fft of 32 x 32", "float x+y+w", "8 groups' X+Y+W", "even groups' x+y+w", "64 channels' x+y+w", "64 channels' x+y"]
NONE, XYW, XY, W, PAD_XYW, PAD_XY, PAD_W, POWER_XYW = 0, 1, 4, 7, 8, 11, 14, 24
LEAVES = {"90-tf32": 5000, "80-tf32": 2500, "86-tf32": 2500, "89-tf32": 2500, "90-half": 3000, "90-ieee": 600, "90-nhwc": 3000,
          "90-half-nhwc": 3000, "90-B-tf32": 2000, "86-E-ieee": 1000}  # others: 60; before pruning
# Tiles of kernels that divide sums on compute capability 9.0, by their knob 2; knobs 27 and 28 are the blocks of a cluster.
TILES = {0: (128, 128), 1: (128, 64), 3: (256, 128), 4: (256, 64), 5: (64, 64), 6: (128, 256), 7: (64, 128), 9: (64, 256), 20: (256, 96)}
# The same of kernels that leave whole results, by knob 2; knob 17 is their number and knob 12 how many stay in the workspace.
SLICES = {0: (128, 128), 3: (256, 128), 5: (64, 64), 8: (64, 32), 10: (64, 16), 11: (32, 16), 12: (32, 32), 14: (16, 64), 23: (32, 128)}
PATCH_LEAVES = {"90-tf32": 800, "90-half": 500}  # others: 250
# Limits of features that are at the top of a tree, and whether what has a tree of its own is above. As ONNX Runtime asks, one dim is an
# image of width 1.
APART = {"90-B-tf32": {(RANK, 2): True, (WIDTH, 1): False}, "90-B-half": {(WIDTH, 1): False}}
DIVIDES = 25  # the knob that is 0 where sums are divided
# Rows of mean weight that a leaf has to meet more than its neighbour would, and one of the patches' tree; others: 2.5
# times the root of 10,000s.
WORTH = {"90-tf32": (2.0, 1.0), "90-B-tf32": (2.0, 1.0), "80-tf32": (4.0, 2.0), "86-tf32": (4.0, 2.0), "89-tf32": (4.0, 2.0),
         "86-E-ieee": (2.0, 1.0), "90-half": (3.0, 1.5), "90-nhwc": (4.0, 2.0), "90-half-nhwc": (4.0, 2.0)}


class Row:
    def __init__(self, fields, answer, knobs=""):
        self.id, self.which, self.elem = fields[0], fields[1], 4 if fields[2] == "0" else 2
        self.is_bf16, self.channels_last, self.rank = fields[2] == "9", fields[3] == "1", int(fields[5])
        numbers, r = list(map(int, fields[6:])), self.rank
        self.n, self.c, self.k, self.g = numbers[:4]
        dims = [numbers[4 + i * r:4 + (i + 1) * r] for i in range(6)]
        self.in_dims, self.out_dims, self.kernel, self.stride, self.pad, self.dilation = dims
        self.bytes = answer
        self.cg, self.kg = self.c // self.g, self.k // self.g
        self.i, self.o, self.taps = math.prod(self.in_dims), math.prod(self.out_dims), math.prod(self.kernel)
        self.x, self.y = self.n * self.c * self.i * self.elem, self.n * self.k * self.o * self.elem
        self.w = self.k * self.cg * self.taps * self.elem
        quantum = 16 // self.elem
        self.pad_c, self.pad_k = -(-self.cg // quantum) * quantum, -(-self.kg // quantum) * quantum
        self.forms = forms_of(self)
        self.tiles, self.slices = tiles_of(knobs, self.which)
        self.label = label_of(self)


def fft_bytes(r):
    if r.rank != 2:
        return 0
    side, need = 16, max(n + 2 * p for n, p in zip(r.in_dims, r.pad))
    while side < need:
        side *= 2
    spectrum, nc, nk, ck = 16 * side * (side // 2 + 1), r.n * r.cg, r.n * r.kg, r.cg * r.kg
    made, read = {"f": (nk, nc + ck), "d": (nc, nk + ck), "w": (ck, nc + nk)}[r.which]
    group = (r.x + r.y + r.w if r.g > 8 else r.y if r.which == "w" else r.w) // r.g
    return (group + spectrum * max(made, read)) * min(r.g, 8)


def tiles_fft_bytes(r):
    """As fft_bytes, of tiles of 32 x 32, one after the other."""
    return 8 * 32 * 17 * (2 * r.n * (r.cg + r.kg) + r.cg * r.kg) * min(r.g, 8) + (r.x + r.y if r.g > 1 else 0)


def winograd_bytes(r, images):
    if r.rank != 2:
        return 0
    tiles = images * math.prod(-(-n // 4) for n in (r.in_dims if r.which == "d" else r.out_dims))
    return 144 * (tiles * (r.cg + r.kg) + r.cg * r.kg) * min(r.g, 8)


def tiles_of(knobs, which):
    """Rows and columns of a tile, and of a cluster in tiles (0: whole results are left, with padded channels or without), and how many
    are left; nothing for kernels that do not divide sums."""
    knob = dict(map(int, part.split("=")) for part in knobs.split(",")) if knobs else {}
    cluster = knob.get(27), knob.get(28)
    if which == "w" and knob.get(17, 0) > 1 and knob.get(2) in SLICES:
        return (*SLICES[knob[2]], 0, int(18 in knob)), max(knob.get(12, 1), 1)
    return (*TILES[knob[2]], *cluster) if knob.get(DIVIDES) == 0 and None not in cluster and knob[2] in TILES else None, 0


def blocks(n, size):
    return -(-n // size)


def splits_of(most, steps, rounds, least, each):
    """Among how many clusters a tile is divided whose sum has `steps` steps."""
    if rounds and steps >= 3 * least:
        return blocks(steps, max(4, blocks(steps, most)))
    if not rounds and most >= 9 and steps >= 9 * each:
        return min(most, steps // each)
    splits, more = 1, min(2, most)
    while splits < more and (steps >= least * splits if rounds else blocks(steps, splits) - blocks(steps, more) >= least):
        splits, more = more, min(2 * more, most)
    return splits


def partial_bytes(r, tiles):
    """float32 tiles that the clusters leave which share a tile of the last, unfilled round over 7 x 18 multiprocessors."""
    if tiles is None:
        return 0
    height, width, down, across = tiles
    deep, each, leasts = (32, 33, (16, 20, 28)) if r.elem == 4 else (64, 17, (61, 77, 109) if r.is_bf16 else (8, 10, 14))
    if r.which == "w":
        rows, columns, steps = blocks(r.kg, height), r.taps * blocks(r.cg, width), blocks(r.n * r.o, deep)
    else:
        pixels, made, read = (r.n * r.o, r.kg, r.cg) if r.which == "f" else (r.n * r.i, r.cg, r.kg)
        rows, columns, steps = blocks(pixels, height), blocks(made, width), blocks(read, deep) * r.taps
    count, clusters = blocks(rows, down) * blocks(columns, across) * r.g, 7 * (18 // (down * across))
    tail, least = count % clusters, leasts[0 if height * width >= 128 * 128 else 1 if height * width > 64 * 64 else 2]
    splits = splits_of(clusters // tail, steps, count > clusters, least, each) if tail else 1
    return splits * tail * down * across * height * width * 4 if splits > 1 else 0


def slice_bytes(r, tiles, splits):
    """What is made in whole tiles of float32, `splits` times, and what counts them."""
    height, width, _, pads = tiles
    groups, channels, filters = r.g, r.pad_c if pads else r.cg, r.kg
    if pads and r.g > 1:
        groups, channels = packed(r)
        groups, channels = groups // max(1, 64 // channels), max(64, channels)
        filters = channels
    count = groups * blocks(filters, height) * blocks(channels * r.taps, width)
    return count * (splits * height * width + splits + 1) * 4


def parts_of(r, tiles):
    """What the parts of a sum take, however many there are, and for each."""
    if tiles and tiles[2] == 0:
        once = slice_bytes(r, tiles, 0)
        return once, slice_bytes(r, tiles, 1) - once
    return partial_bytes(r, tiles), 0


def power_of(r):
    """Channels of a group, in and out, in kernels that want powers of two."""
    return 1 << (max(r.cg, r.kg) - 1).bit_length()


def packed(r):
    """Groups and their channels in kernels that take 64 channels of several groups at a time."""
    channels = max(power_of(r), 4)
    together = max(1, 64 // channels)
    return blocks(r.g, together) * together, channels


def forms_of(r):
    x, y, w = r.x, r.y, r.w
    px, py = r.n * r.pad_c * r.g * r.i * r.elem, r.n * r.pad_k * r.g * r.o * r.elem
    pw = r.pad_k * r.g * r.pad_c * r.taps * r.elem
    images, group = r.n * (r.cg * r.i + r.kg * r.o), r.cg * r.kg * r.taps
    power, even = power_of(r), r.g + r.g % 2
    padded = r.n * (r.pad_c * r.i + r.pad_k * r.o) + r.pad_c * r.pad_k * r.taps
    packs, wide = packed(r)
    return [0, x + y + w, x + w, y + w, x + y, x, y, w, px + py + pw, px + pw, py + pw, px + py, px, py, pw, r.n * w, 2 * x, 2 * y,
            winograd_bytes(r, r.n), fft_bytes(r), 2 * r.n * w, 100 * r.cg * r.k if r.taps == 9 and r.rank == 2 else 0,
            min(r.g, 8) * images * r.elem, min(r.g, 8) * (images + group) * r.elem,
            r.g * power * (r.n * (r.i + r.o) + power * r.taps) * r.elem, 6 * r.o * min(r.g, 8), winograd_bytes(r, 16 * blocks(r.n, 16)),
            tiles_fft_bytes(r), (x + y + w) * 4 // r.elem, min(r.g, 8) * padded * r.elem, even * (images + group) * r.elem,
            packs * wide * (r.n * (r.i + r.o) + wide * r.taps) * r.elem, packs * wide * r.n * (r.i + r.o) * r.elem]


def unit_of(r, form):
    """What is made, in float32 and padded where the form is, of which each part of a divided sum has a copy."""
    if form == POWER_XYW and r.which == "w":
        return r.g * power_of(r) ** 2 * r.taps * 4
    made = {"f": 6, "d": 5, "w": W}[r.which]
    return r.forms[made + 7 if PAD_XYW <= form <= PAD_W else made] * 4 // r.elem


def plain(r, form):
    lower = form - 7
    return lower if PAD_XYW <= form <= PAD_W and r.forms[form] == r.forms[lower] else form


def label_of(r):
    """Form, splits, rest, tiles."""
    if r.slices:
        form, splits, rest = label_without(r, r.bytes - slice_bytes(r, r.tiles, r.slices))
        if splits == 0 and 0 <= rest <= 1300:
            return form, r.slices, rest, r.tiles
    elif r.tiles and r.bytes > 8192:
        least = r.bytes - partial_bytes(r, r.tiles)
        form, _, rest = label_without(r, least)
        if rest <= 1300:
            return form, 0, rest, r.tiles
        fitting = [form for form in (PAD_XYW, XYW, PAD_XY, XY) if r.forms[form] <= r.bytes] if r.taps > 1 or r.g > 1 else [PAD_XY, XY]
        return (plain(r, fitting[0]), 0, 0, r.tiles) if fitting else (NONE, 0, r.bytes, None)
    return *label_without(r, r.bytes), None


def label_without(r, b):
    forms = r.forms
    if b <= 8192:
        return NONE, 0, b
    for form in range(1, len(FORMS)):
        if forms[form] > 0 and 0 <= b - forms[form] <= 1300:
            return plain(r, form), 0, b - forms[form]
    copies = (PAD_XYW, XYW) if r.taps > 1 or r.g > 1 else (PAD_XY, XY)
    for form in copies + (PAD_XYW, XYW, POWER_XYW, 9, 2, 10, 3, 12, 5, 13, 6, NONE) if r.which == "w" else (NONE,):
        rest, unit = b - forms[form], unit_of(r, form)
        splits = round(rest / unit)
        if 1 <= splits <= 1000 and -64 <= rest - splits * unit <= max(2048 + splits * 8, unit / 100):  # and a table of places
            return plain(r, form), splits, max(0, rest - splits * unit)
    for form in copies + (NONE,) if r.which == "w" else (PAD_XYW, XYW, NONE):  # some parts are a little more than what is made
        splits = round((b - forms[form]) / unit_of(r, form))
        if (3 if r.which == "w" else 1) <= splits <= 1000 and abs(b - forms[form] - splits * unit_of(r, form)) <= .04 * b:
            return plain(r, form), splits, 0
    for form in copies + (9, 10, 11, PAD_W, 15):
        rest = b - forms[form]
        if form in copies and 0 <= rest and (rest <= 40 * MIB or rest <= 300 * forms[PAD_W]):
            return plain(r, form), 0, rest
        if form not in copies and 0 <= rest <= 20 * MIB and forms[form] > b / 2:
            return plain(r, form), 0, rest
    return NONE, 0, b


def key_of(r):
    """What a tree is to tell apart: splits and rests where they matter."""
    form, splits, rest, tiles = r.label
    bucket = 1 + round(2 * math.log2(rest / 1024)) if rest > max(65536, .04 * r.forms[form]) else 0
    small = splits * unit_of(r, form) <= max(65536, .02 * r.forms[form]) and not r.slices
    return form, 0 if small else splits, bucket, tiles or ()


def align(n):
    return 32 if n % 32 == 0 else n & -n


def features(r):
    pixels, reach = r.n * r.o, r.cg * r.taps
    return [r.n, r.cg, r.kg, r.g, r.i, r.o, r.taps, math.prod(r.stride), max(r.dilation), r.rank, r.n * r.c * r.i, pixels * r.k,
            r.k * reach, pixels, reach, align(r.cg), align(r.kg), align(r.o), max(r.kernel), pixels * r.k * reach,
            blocks(pixels, 128) * blocks(r.kg, 128), align(r.i), r.in_dims[-1], max(r.pad),
            blocks(r.n * r.i, 128) * blocks(r.cg, 128), blocks(reach, 64) * blocks(r.kg, 64), 16 * r.kg // r.cg,
            16 * pixels // reach, 16 * pixels // r.kg, r.out_dims[-1], r.n * r.i, r.kernel[-1],
            int(r.kernel == r.stride and r.taps > 1 and not any(r.pad)), int(r.is_bf16)]


def read(name, which):
    problems, answers = {}, {}
    with open(name + ".in") as file:
        for line in file:
            if line.split(None, 2)[1] == which:
                problems[line.split(None, 1)[0]] = line
    with open(name + ".out") as file:
        for line in file:
            fields = line.split()
            if len(fields) >= 6 and int(fields[4]) >= 0 and fields[0] in problems:  # an engine without knobs has six
                answer = int(fields[4]), fields[5] if len(fields) > 6 else ""
                answers[fields[0]] = max(answer, answers.get(fields[0], answer))
    for key in sorted(answers):
        yield Row(problems[key].split(), *answers[key])


class Fit:
    def __init__(self, rows, setting, tree):
        keys = [key_of(r) for r in rows]
        count = Counter(keys)
        keys = [key if count[key] > 3 else (key[0], 0, *key[2:]) for key in keys]
        self.names = sorted(set(keys))
        number = {key: i for i, key in enumerate(self.names)}
        self.numbers = np.array([number[key] for key in keys])
        self.labels = np.array([r.label[1:3] for r in rows])
        self.weights = np.array([(r.x + r.y + r.w) ** .4 for r in rows])
        self.forms = np.array([[min(form, 1 << 62) for form in r.forms] for r in rows], float)
        self.units = np.array([[unit_of(r, form) for form in (XYW, PAD_XYW, POWER_XYW)] for r in rows], float)
        self.partials = {tiles: np.array([parts_of(r, tiles) for r in rows], float).T
                         for tiles in {r.label[3] for r in rows} | {part[3] for leaf in tree.leaves.values() for part in leaf}}
        self.actual = np.array([r.bytes for r in rows], float)
        self.table = np.array([features(r) for r in rows], np.float32)
        fitted = np.array([r.id[0] in "fvp" for r in rows])
        use = fitted & np.array([r.label[2] <= 64 * MIB for r in rows])  # more is no rest: a form that is not known
        self.nodes, self.leaves = list(tree.nodes), dict(tree.leaves)
        if not self.leaves:
            self.nodes = [(1, 2, PATCHES, 0), (-1, -1, 0, 0), (-1, -1, 0, 0)]
        known = self.part_off(APART.get(setting, {}))
        first, here = len(self.nodes), np.where(use)[0]
        patches = self.table[here, PATCHES] > 0
        for node, indices in self.parted(here).items():
            if self.nodes[node][0] < 0 and len(indices):
                limits = (PATCH_LEAVES, 250) if self.table[indices[0], PATCHES] > 0 else (LEAVES, 60)
                self.divide(node, indices, limits[0].get(setting, limits[1]))
        pair = WORTH.get(setting) or [2.5 * max(1, math.sqrt(those.sum() / 10000)) for those in (~patches, patches)]
        pair = [worth * self.weights[here[those]].mean() if those.any() else 0 for worth, those in zip(pair, (~patches, patches))]
        self.prune(self.parted(here), pair, first, known)
        at = np.zeros(len(rows), int)
        for leaf, indices in self.parted(np.arange(len(rows))).items():
            if self.nodes[leaf][0] < 0:
                at[indices] = leaf
        copied = 2 * self.forms[:, [XYW, PAD_XYW]].max(1)
        self.most = max([-(-r.bytes // MIB) for r, most, use_it in zip(rows, copied, fitted) if use_it and r.bytes > most] + [tree.most])
        self.lines = [self.report(rows, at, np.array([r.id[0] in letters for r in rows]), what)
                      for what, letters in (("fitted", "fvp"), ("held out", "h"), ("tables", "t"), ("random", "q"))]

    def part_off(self, apart):
        """Puts leaves next to the tree, but where it begins with them. Gives the leaves of the tree as it was."""
        known, at, there = dict(self.leaves), 0, set()
        while self.nodes[at][2:] in apart:
            there.add(self.nodes[at][2:])
            at = self.nodes[at][0 if apart[self.nodes[at][2:]] else 1]
        for (feature, limit), is_above in apart.items():
            if (feature, limit) in there:
                continue
            old = [(*(child + 2 if child > 0 else child for child in node[:2]), *node[2:]) for node in self.nodes]
            self.nodes = [(2, 1, feature, limit) if is_above else (1, 2, feature, limit), (-1, -1, 0, 0), *old]
            known = {leaf + 2: parts for leaf, parts in known.items()}
            self.leaves = {1: next(iter(known.values())), **known} if known else {}
        return known

    def divide(self, leaf, indices, leaves):
        """Puts a tree where a leaf is. Nodes: left, right (-1: a leaf), feature, limit."""
        if len(set(self.numbers[indices])) < 2 or len(indices) < 6:
            return
        tree = DecisionTreeClassifier(max_leaf_nodes=min(leaves, len(indices) // 3), min_samples_leaf=3, criterion="entropy", random_state=0)
        t = tree.fit(self.table[indices], self.numbers[indices], self.weights[indices]).tree_
        shift = len(self.nodes) - 1  # the tree's root takes the leaf's place
        made = [(left + shift, right + shift, feature, limit) if left >= 0 else (-1, -1, 0, 0) for left, right, feature, limit in
                zip(t.children_left.tolist(), t.children_right.tolist(), t.feature.tolist(), t.threshold.tolist())]
        self.nodes[leaf] = made[0]
        self.nodes += made[1:]

    def parted(self, indices):
        """Who comes to each node; nodes that nobody comes to are not there."""
        parts, stack = {}, [(0, indices)]
        while stack:
            node, indices = stack.pop()
            parts[node] = indices
            left, right, feature, limit = self.nodes[node]
            if left >= 0:
                goes_left = self.table[indices, feature] <= limit
                stack += [(left, indices[goes_left]), (right, indices[~goes_left])]
        return parts

    def prune(self, parts, prices, first, old):
        """From the leaves up: a node whose tree meets not enough more than the node alone becomes a leaf, but for those before `first`,
        which were fitted to other answers; a leaf of these, in `old`, stays what it was where the new answers are not worth a change."""
        worth = {}
        for node, indices in reversed(parts.items()):  # children were put there after their parents
            left, right, feature, limit = self.nodes[node]
            children = [child for child in (left, right) if left >= 0 and len(parts[child])]
            if len(indices) == 0 or node < first and node not in old:
                worth[node] = sum(worth[child] for child in children)
                continue
            price, made = prices[int(self.table[indices[0], PATCHES] > 0)], self.leaf_of(indices)
            known = old.get(node)
            if known and self.met(known, indices) >= self.met(made, indices) - price:
                made = known
            self.leaves[node] = made
            alone, worth[node] = self.met(made, indices) - price, sum(worth[child] for child in children)
            if not children or node > 0 and worth[node] <= alone:
                self.nodes[node], worth[node] = (-1, -1, feature, limit), alone
            elif len(children) == 2:
                self.nodes[node] = (left, right, feature, self.rounded(feature, limit, parts[left], parts[right]))
            elif len(children) == 1:
                self.nodes[node], self.leaves[node] = self.nodes[children[0]], self.leaves[children[0]]

    def rounded(self, feature, limit, left, right):
        """The fewest digits that part the same rows, near to the middle."""
        low, high = self.table[left, feature].max(), self.table[right, feature].min()
        for digits in range(3, 7):
            short = float(f"{limit:.{digits}g}")
            if low <= np.float32(short) < high:
                return short
        return limit

    def met(self, leaf, indices):
        first, second = leaf
        actual, guess, other = self.actual[indices], self.bytes_of(indices, first), self.bytes_of(indices, second)
        score = near(guess, actual) + .25 * (abs(guess - actual) <= 2048) + .25 * inside(guess, other, actual)
        return (score * self.weights[indices]).sum()

    def bytes_of(self, indices, part):
        form, splits, rest, tiles = part
        once, each = self.partials[tiles][:, indices]
        units = each if tiles else self.units[indices, 2 if form == POWER_XYW else int(PAD_XYW <= form <= PAD_W)]
        return self.forms[indices, form] + rest + once + splits * units

    def leaf_of(self, indices):
        share = np.bincount(self.numbers[indices], self.weights[indices])
        first, second = (np.argsort(-share, kind="stable").tolist() * 2)[:2]
        if share[second] < .1 * share.sum():
            second = first

        def typical(number):
            here, key = indices[self.numbers[indices] == number], self.names[number]
            splits, rests = np.sort(self.labels[here, 0]), np.sort(self.labels[here, 1])
            return key[0], int(splits[len(here) // 2]), rounded(rests), key[3] or None

        return typical(first), typical(second)

    def report(self, rows, at, mask, what):
        picked = np.where(mask)[0]
        if len(picked) == 0:
            return f"{what} 0"
        actual, ends = self.actual[picked], np.zeros((len(picked), 2))
        for leaf in set(at[picked]):
            here = at[picked] == leaf
            ends[here] = np.stack([self.bytes_of(picked[here], part) for part in self.leaves[leaf]], 1)
        guess = ends[:, 0]
        met = near(guess, actual)
        large = (actual > 32 * MIB) | (guess > 32 * MIB)
        sum_ = max(actual.sum(), 1)
        worst = int(np.argmax(abs(actual - guess)))
        return (f"{what} {len(picked)} exact {(abs(actual - guess) <= 2048).mean():.1%} near {met.mean():.1%} large "
                f"{met[large].mean() if large.any() else 1:.1%} of {large.sum()} by bytes {actual[met].sum() / sum_:.1%} inside "
                f"{inside(*ends.T, actual).mean():.1%} bias {(guess - actual).sum() / sum_:+.1%} "
                f"worst {guess[worst] / MIB:,.0f} for {actual[worst] / MIB:,.0f} MiB")


def near(guess, actual):
    return (abs(actual - guess) <= .1 * actual) | (abs(actual - guess) <= 65536)


def inside(one, other, actual):
    return (np.minimum(one, other) * .9 - 65536 <= actual) & (actual <= np.maximum(one, other) * 1.1 + 65536)


def set_of(arch, mode):
    letter = {"B": "B", "m": "M", "E": "E"}.get(mode[0], "")
    return f"{letter}{arch}-{'tf32' if letter == 'M' else mode[2:] if letter else mode}"


def fit(job, tree):
    arch, mode, which = job
    name = set_of(arch, mode)
    if not (os.path.exists(name + ".in") and os.path.exists(name + ".out")):
        return None
    rows = [r for r in read(name, which) if not (r.channels_last and r.rank != 2)]
    if len(rows) < 700:
        return None
    made = Fit(rows, f"{arch}-{mode}", tree)
    for line in made.lines:
        print(f"{arch} {mode} {which} | {line}", flush=True)
    return Tree(made.nodes, made.leaves, made.most)


def rounded(rests):
    """The middle one; in blocks of 512 bytes, as PyTorch's allocator has, and to 1 / 16 where it is not what most have."""
    rest = int(rests[len(rests) // 2])
    if rest <= 1536:  # tables and alignment: a block, whatever they are
        return 256 if rest else 0
    block = 512 if 2 * (rests == rest).sum() > len(rests) else 1 << max(9, rest.bit_length() - 4)
    return rest if rest <= 4096 else round(rest / block) * block


def main(folder, table=None):
    trees = trees_of(open(table, "rb").read()) if table else {(a, m, p): Tree([], {}, 0) for a in ARCHS for m in MODES for p in "fdw"}
    os.chdir(folder)
    sys.setrecursionlimit(10000)
    for job, tree in trees.items():
        trees[job] = fit(job, tree) or tree
    with open("conv.trees", "wb") as out:
        size = write(out, trees)
    written = trees_of(open("conv.trees", "rb").read())
    assert all(shape_of(tree) == shape_of(written[job]) for job, tree in trees.items() if tree.nodes)
    print(size)


if __name__ == "__main__":
    main(*sys.argv[1:])
