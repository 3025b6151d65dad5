"""Reads and writes share/cudnn/conv.trees, whose layout src/kernels/conv_trees.h tells."""
import math
import struct
from collections import Counter

import numpy as np

HEAD, KIND, PAIR = (struct.Struct(f) for f in ("<7I4B", "<HHBBB", "<HH"))
TAIL, PART, LIMIT, ROOT = (struct.Struct(f) for f in ("<I", "<I", "<f", "<II"))
ROUND = 11000  # limits below have three digits: see limit_of
LOW_IS_LEAF, LOW_IS_SHORT, LOW_IS_LONG = range(3)
LONG, TABLED = 32, 3  # bytes of what has a skip; how often a leaf is met that has a row
ONE_SKIP = 128  # first bytes that are a skip
ARCHS, MODES = ["90", "80", "86", "89"], ["tf32", "ieee", "nhwc", "half", "half-nhwc", "B-tf32", "B-ieee", "B-half", "most", "E-ieee"]


class Tree:
    def __init__(self, nodes, leaves, most):
        self.nodes, self.leaves, self.most = nodes, leaves, most


def trees_of(data):
    """The trees that `write` wrote, by arch, mode and pass."""
    *places, one_limit, one_pair, pair_firsts, one_part = HEAD.unpack_from(data)
    kinds, tails, parts, pairs, limits, roots = (
        list(layout.iter_unpack(data[at:end])) for layout, at, end in zip((KIND, TAIL, PART, PAIR, LIMIT, ROOT), places, places[1:]))
    kinds = [(form, tuple(tiles) if any(tiles) else None) for *tiles, form in kinds]
    forms = [(kinds[part % 1024][0], part >> 10 & 2047, tails[part >> 21][0], kinds[part % 1024][1]) for part, in parts]

    def node_at(tree, here, is_leaf):
        """Adds the node and those under it; what follows them."""
        index = len(tree.nodes)
        tree.nodes.append((-1, -1, 0, 0))
        if is_leaf:
            is_pair = data[here] < pair_firsts
            number, here = number_at(data, here, one_pair if is_pair else pair_firsts)
            if not is_pair:
                other, here = number_at(data, here, one_part)
            tree.leaves[index] = tuple(forms[part] for part in (pairs[number] if is_pair else (number - pair_firsts, other)))
            return here
        (feature, low), high_is_leaf = divmod(data[here] // 2, 3), data[here] % 2
        limit, here = number_at(data, here + 1, one_limit)
        if low == LOW_IS_LONG:
            _, here = number_at(data, here, ONE_SKIP)
        high = node_at(tree, here, low == LOW_IS_LEAF)
        tree.nodes[index] = (index + 1, len(tree.nodes), feature, limit_of(limit, limits))
        return node_at(tree, high, high_is_leaf)

    trees = {}
    for job, (root, most) in zip(((a, m, p) for a in ARCHS for m in MODES for p in "fdw"), roots):
        trees[job] = Tree([], {}, most)
        if root:
            node_at(trees[job], places[-1] + root - 1, False)
    return trees


def number_at(data, at, alone):
    """See src/kernels/conv_trees.h; `alone`: how many first bytes are a number. Also what follows it."""
    first = data[at]
    return (first, at + 1) if first < alone else (alone + (first - alone << 8 | data[at + 1]), at + 2)


def number_of(number, alone):
    return bytes((number,)) if number < alone else bytes((alone + (number - alone >> 8), (number - alone) & 255))


def alone_of(count, firsts=256):
    """How many of so many first bytes can stand alone."""
    return min(firsts, (256 * firsts - count) // 255)


def limit_of(number, others=()):
    return float(np.float32(number % 1000 * 10 ** (number // 1000))) if number < ROUND else others[number - ROUND][0]


def shape_of(tree, at=0):
    """(pair of parts) or (feature, limit, low, high), without what makes no difference."""
    left, right, feature, limit = tree.nodes[at]
    if left < 0:
        return tree.leaves[at]
    low, high = shape_of(tree, left), shape_of(tree, right)
    return low if low == high else (feature, float(np.float32(math.floor(limit))), low, high)


def nodes_of(shape):
    return [shape] + [node for under in shape[2:] for node in nodes_of(under)]


def emit(shape, pairs, parts, limits, firsts):
    """The tree as bytes: see src/kernels/conv_trees.h."""
    one_limit, one_pair, pair_firsts, one_part = firsts
    if len(shape) == 2:
        if shape in pairs:
            return number_of(pairs[shape], one_pair)
        return number_of(pair_firsts + parts[shape[0]], pair_firsts) + number_of(parts[shape[1]], one_part)
    feature, limit, low, high = shape
    first, last = (emit(under, pairs, parts, limits, firsts) for under in (low, high))
    kind = LOW_IS_LEAF if len(low) == 2 else LOW_IS_LONG if len(first) >= LONG else LOW_IS_SHORT
    head = bytes(((len(high) == 2) + 2 * kind + 6 * feature,)) + number_of(limits[limit], one_limit)
    return head + (number_of(len(first), ONE_SKIP) if kind == LOW_IS_LONG else b"") + first + last


def numbered(counts):
    """Each by its place among the commonest."""
    return {what: number for number, what in enumerate(sorted(counts, key=lambda what: (-counts[what], str(what))))}


def write(out, trees):
    """Says how many bytes of nodes, leaves and parts there are."""
    shapes = {job: shape_of(tree) for job, tree in trees.items() if tree.nodes}
    shapes = {job: shape if len(shape) > 2 else (0, 0, shape, shape) for job, shape in shapes.items()}
    everything = [node for shape in shapes.values() for node in nodes_of(shape)]
    counts, part_counts = Counter(node for node in everything if len(node) == 2), Counter()
    for pair, count in counts.items():
        for part in pair:
            part_counts[part] += count if count < TABLED else 0
    pairs = numbered({pair: count for pair, count in counts.items() if count >= TABLED})
    limits, parts = {limit_of(number): number for number in reversed(range(ROUND))}, numbered(part_counts)
    others = numbered(Counter(node[1] for node in everything if len(node) > 2 and node[1] not in limits))
    limits.update((limit, ROUND + number) for limit, number in others.items())
    pair_firsts = 256 - math.ceil(len(parts) / 256)
    firsts = alone_of(ROUND + len(others)), alone_of(len(pairs), pair_firsts), pair_firsts, alone_of(len(parts))
    nodes, roots = b"", []
    for job, tree in trees.items():
        roots.append((len(nodes) + 1 if job in shapes else 0, tree.most))
        nodes += emit(shapes[job], pairs, parts, limits, firsts) if job in shapes else b""
    kinds, tails = {}, {}
    part_rows = [(kinds.setdefault((*(tiles or (0, 0, 0, 0)), form), len(kinds)), splits, tails.setdefault(rest, len(tails)))
                 for form, splits, rest, tiles in parts]
    assert all(kind < 1024 and splits < 2048 for kind, splits, _ in part_rows)
    part_rows = ((kind | splits << 10 | tail << 21,) for kind, splits, tail in part_rows)
    pair_rows = ((parts[one], parts[other]) for one, other in pairs)
    rows = (KIND, kinds), (TAIL, zip(tails)), (PART, part_rows), (PAIR, pair_rows), (LIMIT, zip(others)), (ROOT, roots)
    tables = [b"".join(layout.pack(*row) for row in table) for layout, table in rows] + [nodes]
    places = [HEAD.size + sum(map(len, tables[:i])) for i in range(len(tables))]
    out.write(HEAD.pack(*places, *firsts) + b"".join(tables))
    return f"{len(nodes)} bytes of nodes, {len(counts)} different leaves of {len(parts)} parts"
