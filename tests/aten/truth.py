#!/usr/bin/env python3
"""What PyTorch itself says of its ATen operators: writes tests/truth/aten.txt, which tests/aten/test_table.c compares the table with.

    python3 tests/aten/truth.py > tests/truth/aten.txt      (torch, numpy, expecttest; on the CPU, a minute)

Operators are those that PyTorch's own samples call (torch.testing._internal). A line:

    aten.mul.Tensor | self other | self | other |

operator | tensor arguments in the schema's order | those that want gradients | arguments that autograd keeps (`saved_tensors_hooks`) | results
that it keeps, by number. Behind the last bar: "view", "write" by the schema's aliases. "= fp32 aten.exp.default": a list of autocast (ATen/autocast_mode.h).
"""
import os
import re
import signal
import sys
import warnings
from typing import Any, Dict, List, Tuple

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

MOST_SAMPLES, MOST_CALLS, MOST_SECONDS = 8, 3, 20


class Log(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.calls: Dict[Any, List[Tuple[Any, Any]]] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        known = self.calls.setdefault(func, [])
        if len(known) < MOST_CALLS and func.namespace == "aten":
            known.append(tree_map(lambda x: x.detach().clone() if isinstance(x, torch.Tensor) else x, (args, kwargs)))
        return func(*args, **kwargs)


def tensors_of(value: Any) -> List[torch.Tensor]:
    return [x for x in tree_flatten(value)[0] if isinstance(x, torch.Tensor)]


def is_written(func: Any) -> bool:
    return any(a.alias_info is not None and a.alias_info.is_write for a in func._schema.arguments)


def is_view(func: Any) -> bool:
    return not is_written(func) and any(r.alias_info is not None for r in func._schema.returns)


def named(func: Any, args: Any, kwargs: Any) -> List[Tuple[str, Any]]:
    """Arguments with tensors, in the schema's order."""
    found = []
    for i, argument in enumerate(func._schema.arguments):
        value = args[i] if i < len(args) else kwargs.get(argument.name)
        if tensors_of(value):
            found.append((argument.name, value))
    return found


def run(func: Any, args: Any, kwargs: Any, wanted: str) -> Any:
    """What autograd keeps where that argument ("": all) wants gradients: names of arguments, numbers of results; None: no gradient."""
    kept: List[torch.Tensor] = []
    own: Dict[int, str] = {}

    def fresh(name: str) -> Any:
        def one(x: Any) -> Any:
            if not isinstance(x, torch.Tensor):
                return x
            y = x.detach().clone()
            if (y.is_floating_point() or y.is_complex()) and wanted in ("", name):
                y.requires_grad_()
                y = y * 1 if is_written(func) else y
            own.setdefault(y.untyped_storage()._cdata, name)
            return y
        return one

    names = [a.name for a in func._schema.arguments]
    written = [a.name for a in func._schema.arguments[:1] if a.alias_info is not None and a.alias_info.is_write]
    args = tuple(tree_map(fresh(names[i]), a) for i, a in enumerate(args))
    kwargs = {k: tree_map(fresh(k), v) for k, v in kwargs.items()}
    def pack(x: torch.Tensor) -> Any:
        kept.append(x.detach())
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
        results = func(*args, **kwargs)
    out = tensors_of(results)
    if not any(r.requires_grad for r in out):
        return None
    first = {r.untyped_storage()._cdata: str(i) for i, r in reversed(list(enumerate(out)))}
    saved_in, saved_out = set(), set()
    for x in kept:
        at = x.untyped_storage()._cdata
        if at in own and own[at] not in written:
            saved_in.add(own[at])
        elif at in first:
            saved_out.add(first[at])
    return sorted(saved_in, key=names.index), sorted(saved_out)


def log_samples() -> Dict[Any, List[Tuple[Any, Any]]]:
    log = Log()
    def late(*unused: Any) -> None:
        raise TimeoutError
    signal.signal(signal.SIGALRM, late)
    for op in op_db:
        signal.alarm(MOST_SECONDS)
        try:
            for i, sample in enumerate(op.sample_inputs("cpu", torch.float32, requires_grad=False)):
                if i >= MOST_SAMPLES:
                    break
                for variant in (op.op, op.inplace_variant):
                    if variant is None:
                        continue
                    try:
                        with torch.no_grad(), log:
                            variant(sample.input.clone() if isinstance(sample.input, torch.Tensor) else sample.input,
                                    *sample.args, **sample.kwargs)
                    except (RuntimeError, TypeError, ValueError, IndexError, AttributeError, NotImplementedError):
                        pass
        except Exception:  # samples that this build cannot make
            pass
        finally:
            signal.alarm(0)
    return log.calls


def casts() -> List[str]:
    """Autocast's lists: "= low conv2d"."""
    path = os.path.join(os.path.dirname(torch.__file__), "include", "ATen", "autocast_mode.h")
    kinds = {"LOWER_PRECISION_FP": "low", "FP32": "fp32", "FP32_SET_OPT_DTYPE": "result", "PROMOTE": "widest"}
    found, kind = [], None
    for line in open(path):
        start = re.match(r"#define AT_FORALL_(\w+)\(_\)", line)
        if start:
            kind = kinds.get(start[1])
        item = re.match(r"\s+_\((\w+)(?:, (\w+))?\)", line)
        if kind and item:
            found.append(f"= {kind} aten.{item[1]}.{item[2] or 'default'}")
    return sorted(found)


def main() -> int:
    warnings.filterwarnings("ignore")
    torch.manual_seed(0)
    lines = set()
    for func, calls in log_samples().items():
        if func.namespace != "aten" or "backward" in func.__name__ or func._schema.overload_name in ("out",):
            continue
        flag = "write" if is_written(func) else "view" if is_view(func) else ""
        for args, kwargs in calls:
            arguments = named(func, args, kwargs)
            names = [n for n, _ in arguments]
            floats = [n for n, v in arguments if any(t.is_floating_point() or t.is_complex() for t in tensors_of(v))]
            for wanted in [""] + (floats if len(floats) > 1 else []):
                try:
                    kept = run(func, args, kwargs, wanted)
                except Exception:  # no derivative, or none for that argument
                    continue
                wants = " ".join([wanted] if wanted else floats)
                name = str(func)
                if kept is None:
                    lines.add(f"{name} | {' '.join(names)} | {wants} | - | - | {flag}")
                else:
                    lines.add(f"{name} | {' '.join(names)} | {wants} | {' '.join(kept[0])} | {' '.join(kept[1])} | {flag}")
    print(f"# PyTorch {torch.__version__}: operator | tensor arguments | want gradients | kept arguments (-: no gradient) | kept results | aliases")
    print("\n".join(sorted(lines)))
    print("\n".join(casts()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
