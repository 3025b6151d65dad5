"""Reads and writes share/cudnn/conv.trees, whose layout src/kernels/conv_trees.h tells."""
import math
import struct
from collections import Counter

import numpy as np

FILE, CODE, HEAD, KIND, PAIR = (struct.Struct(f) for f in ("<8I", "<8I", "<H", "<HHBBB", "<HH"))
TAIL, PART, LIMIT, ROOT = (struct.Struct(f) for f in ("<I", "<I", "<f", "<II"))
ROUND = 10000  # limits below have three digits: see limit_of
LEAVES, LOW_LEAF, HIGH_LEAF, LOW, HIGH, SKIPPED_LOW = range(6)  # what is under a node, and what of it is first
OF_HEAD, OF_SKIP, OF_ONE, OF_PAIR, OF_FIRST, OF_SECOND, OF_LIMIT = range(7)  # codes; from the last on one for each feature
LONG, TABLED, WORD = 7, 6, 4  # nodes of what has a skip; how often a leaf is met that has a row; bytes that are read at once
SKIPS = [(0, 7), (128, 7), (256, 8), (512, 9), (1024, 10), (2048, 12), (6144, 14), (22528, 18)]
ARCHS, MODES = ["90", "80", "86", "89"], ["tf32", "ieee", "nhwc", "half", "half-nhwc", "B-tf32", "B-ieee", "B-half", "most", "E-ieee"]


class Tree:
    def __init__(self, nodes, leaves, most):
        self.nodes, self.leaves, self.most = nodes, leaves, most


def trees_of(data):
    """The trees that `write` wrote, by arch, mode and pass."""
    places = FILE.unpack_from(data)
    codes = [[(row & 0xFFFFFF, row >> 24) for row in code] for code in CODE.iter_unpack(data[FILE.size : places[0]])]
    heads, kinds, tails, parts, pairs, limits, roots = (
        list(layout.iter_unpack(data[at:end])) for layout, at, end in zip((HEAD, KIND, TAIL, PART, PAIR, LIMIT, ROOT), places, places[1:]))
    kinds = [(form, tuple(tiles) if any(tiles) else None) for *tiles, form in kinds]
    forms = [(kinds[part % 1024][0], part >> 10 & 2047, tails[part >> 21][0], kinds[part % 1024][1]) for part, in parts]
    nodes, at = data[places[-1] :], 0

    def bits(count):
        nonlocal at
        at += count
        return (int.from_bytes(nodes[(at - count) // 8 : at // 8 + 1], "little") >> (at - count) % 8) & ((1 << count) - 1)

    def number(code):
        base, more = codes[code][bits(3)]
        return base + bits(more)

    def node(tree, is_leaf):
        """Adds the node and those under it."""
        index = len(tree.nodes)
        tree.nodes.append((-1, -1, 0, 0))
        if is_leaf:
            pair = (number(OF_ONE),) * 2 if bits(1) else (number(OF_PAIR),)
            if len(pair) == 1:
                pair = pairs[pair[0] - 1] if pair[0] else (number(OF_FIRST), number(OF_SECOND))
            tree.leaves[index] = tuple(forms[part] for part in pair)
            return
        feature, kind = divmod(heads[number(OF_HEAD)][0], 8)
        limit = limit_of(number(OF_LIMIT + feature), limits)
        if kind == SKIPPED_LOW:
            number(OF_SKIP)
        node(tree, kind <= HIGH_LEAF)
        under = index + 1, len(tree.nodes)
        tree.nodes[index] = (*(under[::-1] if kind in (HIGH_LEAF, HIGH) else under), feature, limit)
        node(tree, kind == LEAVES)

    trees = {}
    for job, (root, most) in zip(((a, m, p) for a in ARCHS for m in MODES for p in "fdw"), roots):
        trees[job] = Tree([], {}, most)
        if root:
            at = root - 1
            node(trees[job], False)
    return trees


def limit_of(number, others=()):
    power = 0 if number < 1000 else (number - 100) // 900
    return float(np.float32((number - 900 * power) * 10**power)) if number < ROUND else others[number - ROUND][0]


def shape_of(tree, at=0):
    """(pair of parts) or (feature, limit, low, high), without what makes no difference."""
    left, right, feature, limit = tree.nodes[at]
    if left < 0:
        return tree.leaves[at]
    low, high = shape_of(tree, left), shape_of(tree, right)
    return low if low == high else (feature, float(np.float32(math.floor(limit))), low, high)


def nodes_of(shape):
    return [shape] + [node for under in shape[2:] for node in nodes_of(under)]


def code_of(counts):
    """The eight classes (first, bits) of 2^bits numbers with which the counted numbers take the fewest bits."""
    numbers = np.array(sorted(counts), dtype=int)
    sums = np.concatenate([[0], np.cumsum([counts[number] for number in numbers])])
    spans = [(bits, np.searchsorted(numbers, numbers + (1 << bits))) for bits in range(15)]
    least, choices = np.append(np.full(len(numbers), np.inf), 0), []  # of the numbers from one on, in so many classes
    for _ in range(8):
        costs = np.array([(sums[end] - sums[:-1]) * bits + least[end] for bits, end in spans])
        choices.append(costs.argmin(axis=0))
        least = np.append(costs.min(axis=0), 0)
    code, at = [], 0
    for choice in reversed(choices):
        if at < len(numbers):
            code.append((int(numbers[at]), int(choice[at])))
            at = spans[choice[at]][1][at]
    return code + [(0, 0)] * (8 - len(code))


def numbers_of(node, tables):
    """What a node is made of, as (code, number), but for its skip."""
    heads, pairs, parts, limits = tables
    if len(node) == 2:
        if node[0] == node[1]:
            return [(OF_ONE, parts[node[0]])]
        return [(OF_PAIR, 1 + pairs[node])] if node in pairs else [(OF_PAIR, 0), (OF_FIRST, parts[node[0]]), (OF_SECOND, parts[node[1]])]
    return [(OF_HEAD, heads[head_of(node)]), (OF_LIMIT + node[0], limits[node[1]])]


def head_of(node):
    low, high = (len(nodes_of(under)) for under in node[2:])
    if min(low, high) == 1:
        kind = LEAVES if low == high else LOW_LEAF if low == 1 else HIGH_LEAF
    else:
        kind = SKIPPED_LOW if min(low, high) >= LONG else LOW if low <= high else HIGH
    return kind + 8 * node[0]


def text_of(number, code):
    """Its class and its place in there, as bits, the lowest one first."""
    which, (first, bits) = next((k, row) for k, row in enumerate(code) if row[0] <= number < row[0] + (1 << row[1]))
    return format(which + 8 * (number - first), f"0{3 + bits}b")[::-1]


def emit(node, tables, codes):
    """The tree as bits: see src/kernels/conv_trees.h."""
    text = "".join(text_of(number, codes[code]) for code, number in numbers_of(node, tables))
    if len(node) == 2:
        return str(int(node[0] == node[1])) + text
    low, high = (emit(under, tables, codes) for under in node[2:])
    kind = head_of(node) % 8
    return text + (text_of(len(low), SKIPS) if kind == SKIPPED_LOW else "") + (high + low if kind in (HIGH_LEAF, HIGH) else low + high)


def numbered(counts):
    """Each by its place among the commonest."""
    return {what: number for number, what in enumerate(sorted(counts, key=lambda what: (-counts[what], str(what))))}


def write(out, trees):
    """Says how many bytes of nodes, leaves and parts there are."""
    shapes = {job: shape_of(tree) for job, tree in trees.items() if tree.nodes}
    shapes = {job: shape if len(shape) > 2 else (0, 0, shape, shape) for job, shape in shapes.items()}
    everything = [node for shape in shapes.values() for node in nodes_of(shape)]
    inner, counts, part_counts = [node for node in everything if len(node) > 2], Counter(node for node in everything if len(node) == 2), Counter()
    pairs = numbered({pair: count for pair, count in counts.items() if count >= TABLED and pair[0] != pair[1]})
    for pair, count in counts.items():
        for part in set(pair):
            part_counts[part] += 0 if pair in pairs else count
    limits, parts = {limit_of(number): number for number in reversed(range(ROUND))}, numbered(part_counts)
    others = numbered(Counter(node[1] for node in inner if node[1] not in limits))
    limits.update((limit, ROUND + number) for limit, number in others.items())
    tables = numbered(Counter(map(head_of, inner))), pairs, parts, limits
    uses = {code: Counter() for code in range(OF_LIMIT + 1 + max(node[0] for node in inner))}
    for node in everything:
        for code, number in numbers_of(node, tables):
            uses[code][number] += 1
    codes = [SKIPS if code == OF_SKIP else code_of(use) for code, use in uses.items()]
    nodes, roots = "", []
    for job, tree in trees.items():
        roots.append((len(nodes) + 1 if job in shapes else 0, tree.most))
        nodes += emit(shapes[job], tables, codes) if job in shapes else ""
    kinds, tails = {}, {}
    part_rows = [(kinds.setdefault((*(tiles or (0, 0, 0, 0)), form), len(kinds)), splits, tails.setdefault(rest, len(tails)))
                 for form, splits, rest, tiles in parts]
    assert all(kind < 1024 and splits < 2048 for kind, splits, _ in part_rows)
    part_rows = ((kind | splits << 10 | tail << 21,) for kind, splits, tail in part_rows)
    pair_rows = ((parts[one], parts[other]) for one, other in pairs)
    code_rows = ([first | bits << 24 for first, bits in code] for code in codes)
    rows = (CODE, code_rows), (HEAD, zip(tables[0])), (KIND, kinds), (TAIL, zip(tails)), (PART, part_rows), (PAIR, pair_rows), (LIMIT, zip(others)), (ROOT, roots)
    written = [b"".join(layout.pack(*row) for row in table) for layout, table in rows]
    places = [FILE.size + sum(map(len, written[: 1 + i])) for i in range(len(rows))]
    bits = int(nodes[::-1], 2).to_bytes(len(nodes) // 8 + WORD, "little")  # the last one is read as a word
    out.write(FILE.pack(*places) + b"".join(written) + bits)
    return f"{len(bits)} bytes of nodes, {len(counts)} different leaves of {len(parts)} parts"
