#!/usr/bin/env python3
"""What PyTorch's CUDA kernels allocate on the way: writes tests/truth/aten_temporaries.txt, which tests/tape/test_temporaries.c compares the
table with.

    python3 tests/aten/temporaries.py > tests/truth/aten_temporaries.txt      (a CUDA build of PyTorch; a minute)

Operators are those of rows that have a gradient, called with tensors of 64 x 64 x 64 floats. A line:

    aten.clamp.default | self min=0.5 max=0.5 | 64x64x64 | 0 | 786432

operator | arguments: a tensor, or a number; ":64" a tensor of that shape, ":b" of bools | the first result's shape | most bytes that forward
takes beside its results | most that backward takes beside the incoming gradient and the gradients that it makes.
"""
import re
import sys
import warnings
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

import torch

ROOT = Path(__file__).resolve().parents[2]
SHAPE = (64, 64, 64)
RUNS = 5
CONDITIONS = ("condition", "mask")
NUMBERS = {"int": 1, "float": 0.5, "number": 0.5, "SymInt": 1}


def rows() -> List[str]:
    """Names of operators that a row describes whole: with a gradient, without a rule."""
    found = []
    for path in sorted((ROOT / "src" / "aten").glob("*.def")):
        text = re.sub(r"\n +", " ", path.read_text())
        for name, overload, grads, rest in re.findall(
                r'^(?:OP\((\w+)|OVERLOAD\((?:\w+, \w+)()), "[^"]*", "([^"]*)"(.*)$', text, re.M):
            if grads and "RULE(" not in rest and "VIEW" not in rest and not name.endswith("_"):
                found.append(name or overload)
        for base in re.findall(r'^OVERLOAD\((\w+), \w+, "[^"]*", "[^"]+"(?!.*RULE|.*VIEW)', text, re.M):
            found.append(base)
    return sorted(set(n for n in found if n and not n.endswith("_")))


def arguments_of(schema: Any) -> Optional[List[Tuple[str, Any, str]]]:
    """(name, value, as it is written) for each argument without a default, and bounds; None: it cannot be called so."""
    made: List[Tuple[str, Any, str]] = []
    for a in schema.arguments:
        kind = str(a.type)
        is_bound = a.name in ("min", "max") and "Optional" in kind
        if a.has_default_value() and not is_bound:
            continue
        kind = re.sub(r"Optional\[(\w+)\]", r"\1", kind)
        if kind == "Tensor" and a.name in CONDITIONS:
            made.append((a.name, torch.ones(SHAPE, dtype=torch.bool, device="cuda"), f"{a.name}:b"))
        elif kind == "Tensor" and (a.name.startswith("ind") or a.name == "repeats"):
            return None
        elif kind == "Tensor":
            made.append((a.name, torch.full(SHAPE, 0.5, device="cuda", requires_grad=True), a.name))
        elif kind in NUMBERS:
            number = 3 if a.name == "p" else NUMBERS[kind]  # the order of a norm
            made.append((a.name, number, f"{a.name}={number}"))
        elif kind in ("List[int]", "Optional[List[int]]") and a.name == "dim":
            made.append((a.name, [1], f"{a.name}=[1]"))
        else:
            return None
    return made


def peak(run: Any) -> Tuple[Any, int]:
    """What it gives, and the most bytes that were requested beside those before: of several runs, for threads free what the one before made."""
    most = 0
    for _ in range(RUNS):
        result = None
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_stats()["requested_bytes.all.current"]
        result = run()
        most = max(most, torch.cuda.memory_stats()["requested_bytes.all.peak"] - before)
    return result, most


def bytes_of(values: Any) -> int:
    storages: Dict[int, int] = {}
    for x in values:
        if isinstance(x, torch.Tensor):
            storages[x.untyped_storage()._cdata] = x.untyped_storage().nbytes()
    return sum(storages.values())


def measure(func: Any) -> Optional[str]:
    made = arguments_of(func._schema)
    if not made or not isinstance(made[0][1], torch.Tensor):
        return None
    values = {name: value for name, value, _ in made}
    wanted = [v for _, v, _ in made if isinstance(v, torch.Tensor) and v.requires_grad]
    func(**values)  # handles of libraries, and what is kept by them
    results, forward = peak(lambda: func(**values))
    results = list(results) if isinstance(results, (tuple, list)) else [results]
    first = results[0]
    if not first.requires_grad or first.is_complex():
        return None
    own = bytes_of(results) - bytes_of([r for r in results if any(r.data_ptr() == w.data_ptr() for w in wanted)])
    grad = torch.ones_like(first)
    gradients, backward = peak(lambda: torch.autograd.grad(first, wanted, grad, retain_graph=True, allow_unused=True))
    same = [g for g in gradients if g is not None and g.untyped_storage()._cdata == grad.untyped_storage()._cdata]
    made_bytes = bytes_of([g for g in gradients if g is not None]) - bytes_of(same)
    shape = "x".join(map(str, first.shape)) or "1"
    return f"{func} | {' '.join(text for _, _, text in made)} | {shape if first.dim() else '-'} | {forward - own} | {max(backward - made_bytes, 0)}"


def main() -> int:
    warnings.filterwarnings("ignore")
    print(f"# PyTorch {torch.__version__}: operator | arguments | first result | bytes of forward beside its results | of backward beside its gradients")
    for name in rows():
        packet = getattr(torch.ops.aten, name, None)
        for overload in packet.overloads() if packet is not None else []:
            func = getattr(packet, overload)
            if any(a.alias_info is not None for a in func._schema.arguments) or "out" in overload:
                continue
            try:
                line = measure(func)
            except Exception as error:  # arguments of another kind
                print(f"{func}: {str(error).splitlines()[0][:100]}", file=sys.stderr)
                continue
            if line:
                print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
