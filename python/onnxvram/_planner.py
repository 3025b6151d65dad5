"""The planner without a model: offsets for intervals, what an allocator holds, an order of a graph."""
import dataclasses
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

from ._errors import UsageError
from ._library import Calls, fail, ffi, lib, text
from ._options import Size, limit_names, size

NO_INDEX = 2 ** 64 - 1  # ONV_NO_INDEX


@dataclasses.dataclass(frozen=True)
class Offsets:
    """A plan: an offset for each interval, in their order. No plan needs less than `lower_bound`."""

    offsets: Tuple[int, ...]
    height: int
    lower_bound: int
    optimal: bool
    fits: bool


@dataclasses.dataclass(frozen=True)
class Held:
    """What an allocator made of a trace, as it counts itself. With `out_of_memory` the figures are those up to there."""

    allocated_peak: int
    reserved_peak: int
    requested_peak: int
    allocated_end: int
    reserved_end: int
    segments: int
    out_of_memory: bool


@dataclasses.dataclass(frozen=True)
class Order:
    """Nodes in an order, and the most that is live while one of them runs. `lower_bound` is None where it was not searched for."""

    nodes: Tuple[int, ...]
    peak: int
    lower_bound: Optional[int]
    proven: bool


class Request:
    """The options of a call, and what they point to; Ctrl-C ends it."""

    def __init__(self, limits: Optional[Mapping[str, Size]], effort: Optional[int], **given: Any):
        self.calls = Calls()
        self.alive: List[Any] = []
        self.options = ffi.new("onv_planner_options *")
        lib.onv_planner_options_init(self.options, ffi.sizeof("onv_planner_options"))
        self.options.cancelled = self.calls.add("bool(void *)", lambda _context: self.calls.raised is not None, True)
        if effort is not None:
            self.options.effort = effort
        for name, value in given.items():
            if value is not None:
                setattr(self.options, name, value)
        if limits:
            made = ffi.new("onv_limits *")
            lib.onv_limits_init(made, ffi.sizeof("onv_limits"))
            for name, value in limits.items():
                if not lib.onv_limits_set(made, name.encode(), size(value)):
                    raise UsageError(f"expected limits of {', '.join(limit_names())}, found {name}={value!r}")
            self.options.limits = made
            self.alive.append(made)

    def name(self, given: str) -> Any:
        self.alive.append(ffi.new("char[]", given.encode()))
        return self.alive[-1]

    def check(self, status: int, error: Any, what: str) -> None:
        self.calls.check()
        if status != lib.ONV_OK:
            fail(status, error, what)


def wrong(what: str, row: Any, raised: BaseException) -> UsageError:
    return UsageError(f"expected {what}, found {row!r}: {raised}")


def plan(intervals: Iterable[Sequence[int]], *, capacity: Optional[Size] = None, alignment: Optional[Size] = None,
         effort: Optional[int] = None, limits: Optional[Mapping[str, Size]] = None) -> Offsets:
    """Finds an offset for each interval (lower, upper, size), which is needed from step lower up to but not including upper,
    so that no two that share a step overlap. With a capacity the search ends at the first plan within it."""
    rows = list(intervals)
    made, offsets = ffi.new("onv_interval[]", len(rows)), ffi.new("uint64_t[]", max(len(rows), 1))
    for to, row in zip(made, rows):
        try:
            to.lower, to.upper, to.size = row
        except (TypeError, ValueError, OverflowError) as raised:
            raise wrong("an interval as (lower, upper, size)", row, raised) from raised
    request = Request(limits, effort, capacity=None if capacity is None else size(capacity),
                      alignment=None if alignment is None else size(alignment))
    info, error = ffi.new("onv_plan_info *"), ffi.new("onv_error *")
    status = lib.onv_plan_get(made, len(rows), request.options, offsets, info, ffi.sizeof("onv_plan_info"), error)
    request.check(status, error, "plan")
    return Offsets(tuple(ffi.unpack(offsets, len(rows))) if rows else (), info.height, info.lower_bound, info.optimal, info.fits)


def simulate(events: Iterable[Union[Tuple[Any, int], Tuple[Any, None]]], allocator: str = "torch", *, capacity: Optional[Size] = None,
             expandable_segments: bool = False, effort: Optional[int] = None,
             limits: Optional[Mapping[str, Size]] = None) -> Held:
    """Serves allocations (id, bytes) and frees (id, None) by an allocator's rules: torch, bfc (ONNX Runtime), async (CUDA),
    arena (all of it planned as one block) ... An id may be used again after it was freed."""
    rows = list(events)
    made, live = ffi.new("onv_event[]", len(rows)), {}  # type: Any, Dict[Any, int]
    for i, (to, row) in enumerate(zip(made, rows)):
        try:
            key, count = row
            if count is None:
                to.frees = live.pop(key)
            elif key in live:
                raise UsageError(f"expected an id that is free, found {key!r}, which is allocated")
            else:
                to.bytes, to.frees, live[key] = count, NO_INDEX, i
        except KeyError as raised:
            raise UsageError(f"expected a free of what is allocated, found {row!r}") from raised
        except (TypeError, OverflowError) as raised:
            raise wrong("an event as (id, bytes) or (id, None)", row, raised) from raised
    request = Request(limits, effort, capacity=None if capacity is None else size(capacity), expandable_segments=expandable_segments)
    info, error = ffi.new("onv_simulated_info *"), ffi.new("onv_error *")
    status = lib.onv_simulate_get(made, len(rows), request.name(allocator), request.options, info,
                                  ffi.sizeof("onv_simulated_info"), error)
    request.check(status, error, "simulate")
    return Held(**{field.name: getattr(info, field.name) for field in dataclasses.fields(Held)})


def order(nodes: Sequence[Tuple[Iterable[Any], Mapping[Any, int]]], *, inputs: Optional[Mapping[Any, int]] = None,
          outputs: Iterable[Any] = (), extra_bytes: Optional[Sequence[int]] = None, strategy: Optional[str] = None,
          effort: Optional[int] = None, limits: Optional[Mapping[str, Size]] = None) -> Order:
    """Finds an order of nodes, each (names that it reads, {name: bytes} that it makes), with a small peak. `inputs` are there
    from the start, `outputs` stay to the end; `extra_bytes` of a node are needed while it runs. strategy: "optimal", the
    default, searches; "greedy" does not."""
    values: Dict[Any, Tuple[int, int]] = {name: (count, NO_INDEX) for name, count in (inputs or {}).items()}
    for i, (_, makes) in enumerate(nodes):
        for name, count in makes.items():
            if name in values:
                raise UsageError(f"expected values with names of their own, found {name!r} twice")
            values[name] = (count, i)
    index, reads, last = {name: i for i, name in enumerate(values)}, [], set(outputs)
    for i, (names, _) in enumerate(nodes):
        for name in names:
            if name not in index:
                raise UsageError(f"expected a value of the graph, found {name!r} read by node {i}: is it an input?")
            reads.append((i, index[name]))
    missing = [name for name in last if name not in index]
    if missing:
        raise UsageError(f"expected outputs that the graph has, found {missing[0]!r}")
    if extra_bytes is not None and len(extra_bytes) != len(nodes):
        raise UsageError(f"expected extra_bytes of {len(nodes)} nodes, found {len(extra_bytes)}")
    graph = ffi.new("onv_size_graph *", {"struct_size": ffi.sizeof("onv_size_graph"), "n_nodes": len(nodes),
                                         "n_values": len(values), "n_reads": len(reads)})
    try:
        kept = [ffi.new("onv_graph_value[]", [(count, writer, name in last) for name, (count, writer) in values.items()]),
                ffi.new("onv_graph_read[]", reads), ffi.new("uint64_t[]", extra_bytes or [0] * len(nodes))]
    except (TypeError, OverflowError) as raised:
        raise wrong("sizes in bytes", nodes, raised) from raised
    graph.values, graph.reads, graph.extra_bytes = kept
    request = Request(limits, effort)
    if strategy is not None:
        request.options.order = request.name(strategy)
    found, info, error = ffi.new("size_t[]", max(len(nodes), 1)), ffi.new("onv_graph_order_info *"), ffi.new("onv_error *")
    status = lib.onv_order_graph_get(graph, request.options, found, info, ffi.sizeof("onv_graph_order_info"), error)
    request.check(status, error, "order")
    return Order(tuple(ffi.unpack(found, len(nodes))) if nodes else (), info.peak_bytes, info.lower_bound_bytes or None, info.proven)


def allocators() -> List[str]:
    """What simulate() knows."""
    names: List[str] = []
    while (name := lib.onv_name_at(lib.ONV_NAMES_ALLOCATORS, len(names), ffi.NULL)) != ffi.NULL:
        names.append(text(name))
    return names + ["arena"]
