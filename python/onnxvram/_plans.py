"""Checkpointing plans, as the report has them (docs/checkpointing.md)."""
import dataclasses
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, TypeVar

from ._errors import UsageError

Module = TypeVar("Module")


@dataclasses.dataclass(frozen=True)
class Plan:
    """What training with it takes. `data` is what onnxvram.recompute.apply() takes, `id` the same at every size."""

    name: str
    id: str
    peak_bytes: int
    saved_activation_bytes: int
    allocated_peak_bytes: int
    reserved_peak_bytes: int
    recompute_macs: int
    overhead: float
    segments: Tuple[Tuple[str, str], ...]
    data: Dict[str, Any]
    chosen: bool = False
    knee: bool = False  # to be taken where no budget chooses
    kept: Tuple[str, ...] = ()
    offloaded_bytes: int = 0
    memory_budget: Optional[float] = None  # of torch.compile, where the plan is that

    def apply(self, model: Module) -> Module:
        """Makes a PyTorch network run as the plan says, in place; it returns the network. Raises UsageError where that cannot be."""
        from . import recompute
        try:
            run: Any = recompute.apply  # it has no types, for it goes without the package
            applied: Module = run(model, self.data)
        except ValueError as refusal:
            raise UsageError(f"the plan {self.name}@{self.id} cannot be applied: {refusal}") from refusal
        return applied


def plans_of(rows: Sequence[Mapping[str, Any]]) -> List[Plan]:
    names = [field.name for field in dataclasses.fields(Plan)]
    plans = []
    for row in rows:
        values = {name: row[name] for name in names if name in row}
        values.update(data=row["apply"], segments=tuple((first, last) for first, last in row["segments"]),
                      kept=tuple(row["apply"].get("keep", ())))
        plans.append(Plan(**values))
    return plans
