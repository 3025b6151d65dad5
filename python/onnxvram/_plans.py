"""Checkpointing plans, with the Python of the plan file that applies them (docs/checkpointing.md)."""
import dataclasses
import warnings
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, TypeVar

from ._errors import UsageError

Module = TypeVar("Module")


@dataclasses.dataclass(frozen=True)
class Plan:
    """What training with it takes, and how PyTorch runs it. `code` works on a network `model`; it is None where nothing
    tells where in the network the segments stand. `notes` say what the code leaves out."""

    name: str
    peak_bytes: int
    saved_activation_bytes: int
    allocated_peak_bytes: int
    reserved_peak_bytes: int
    recompute_macs: int
    overhead: float
    chosen: bool
    segments: Tuple[Tuple[str, str], ...]
    kept: Tuple[str, ...] = ()
    offloaded_bytes: int = 0
    memory_budget: Optional[float] = None  # of torch.compile, where the plan is that
    code: Optional[str] = None
    notes: Tuple[str, ...] = ()

    def apply(self, model: Module) -> Module:
        """Makes a PyTorch network run as the plan says, in place; it returns the network."""
        if not self.segments and not self.offloaded_bytes and self.memory_budget is None:
            return model
        if self.code is None:
            raise UsageError(f"the plan '{self.name}' cannot be applied: {' '.join(self.notes) or 'it has no code'}")
        for note in self.notes:
            warnings.warn(note, stacklevel=2)
        exec(compile(self.code, f"<plan {self.name}>", "exec"), {"__name__": "onnxvram_plan", "model": model})
        return model


def split(text: str) -> List[Tuple[Optional[str], Tuple[str, ...]]]:
    """Of each plan of a plan file the code and the notes."""
    parts: List[Tuple[Optional[str], Tuple[str, ...]]] = []
    for block in text.split("\nplan\t")[1:]:
        lines = [line[1:] for line in block.splitlines() if line.startswith("#")]
        code = "\n".join(line[1:] for line in lines if not line.startswith(":")).strip("\n")
        notes: List[str] = []
        for line in (line[1:].strip() for line in lines if line.startswith(":")):
            if line.startswith(("Segment ", "The lines alone")) or not notes:
                notes.append(line)
            else:
                notes[-1] += " " + line
        parts.append((code + "\n" if code else None, tuple(x for x in notes if not x.startswith("In PyTorch"))))
    return parts


def plans_of(rows: Sequence[Mapping[str, Any]], text: str) -> List[Plan]:
    """`rows` are all plans; the plan file `text` has the chosen one, or all."""
    names = [field.name for field in dataclasses.fields(Plan)]
    written = [row for row in rows if row.get("chosen")] or list(rows)
    found: Dict[int, Tuple[Optional[str], Tuple[str, ...]]] = {id(row): part for row, part in zip(written, split(text))}
    plans = []
    for row in rows:
        values = {name: row[name] for name in names if name in row}
        code, notes = found.get(id(row), (None, (f"ask for it alone, with checkpoint='{row['name']}'",)))
        values.update(chosen=row.get("chosen", False), segments=tuple((first, last) for first, last in row["segments"]),
                      kept=tuple(row.get("kept", ())), code=code, notes=notes)
        plans.append(Plan(**values))
    return plans
