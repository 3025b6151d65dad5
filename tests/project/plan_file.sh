#!/usr/bin/env bash
# The Python of plan files runs and does what the plan says: every row of modules runs under one
# checkpoint, all modules once and in order. PyTorch is played by a few lines; what it makes of plans is
# measured by scripts/export/checkpointed.py.
set -euo pipefail
program=${ONV_BUILD_DIR:?}/onnxvram
samples=${ONV_SOURCE_DIR:?}/samples
command -v python3 >/dev/null || { echo "skipped: there is no python3"; exit 77; }

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat >"$folder/apply.py" <<'END'
import ast
import contextlib
import re
import sys
import types


class Module:
    def __init__(self, name):
        self.forward = lambda x, *args, **kwargs: x + [name]

    def __call__(self, *args, **kwargs):
        return self.forward(*args, **kwargs)


class Model(dict):
    def get_submodule(self, name):
        return self.setdefault(name, Module(name))


def checkpoint(function, *args, use_reentrant, **kwargs):
    assert use_reentrant is False
    checkpoint.depth += 1
    checkpoint.calls += 1
    result = function(*args, **kwargs)
    checkpoint.depth -= 1
    return result


@contextlib.contextmanager
def saving(pin_memory):
    assert pin_memory is True
    yield
    saving.forwards += 1


checkpoint.depth = checkpoint.calls = saving.forwards = 0
for name in ("torch", "torch.autograd", "torch.autograd.graph", "torch.utils", "torch.utils.checkpoint"):
    sys.modules[name] = types.ModuleType(name)
sys.modules["torch.utils.checkpoint"].checkpoint = checkpoint
sys.modules["torch"].autograd = sys.modules["torch.autograd"]
sys.modules["torch.autograd"].graph = sys.modules["torch.autograd.graph"]
sys.modules["torch.autograd.graph"].save_on_cpu = saving
for name in ("torch._functorch", "torch._functorch.config"):
    sys.modules[name] = types.ModuleType(name)
sys.modules["torch"]._functorch = sys.modules["torch._functorch"]
sys.modules["torch._functorch"].config = sys.modules["torch._functorch.config"]


BORDER = re.compile(r"(enter|leave) [\w.-]+ [1-9]\d*|op [\w.-]+ [a-z_]+ [1-9]\d*")


def check_borders(name, segments, code, by_hand):
    """Between operations: the code is whole, every segment has its place, and so has what is kept."""
    text = "\n".join(code)
    call = ast.parse(text).body[-1].value
    pairs = ast.literal_eval(call.args[1])
    given = {keyword.arg: ast.literal_eval(keyword.value) for keyword in call.keywords}
    kept, offload = given.pop("keep", []), given.pop("offload", True)
    assert not given and (offload is True or BORDER.fullmatch(offload)), f"{name}: {given} {offload}"
    assert all(BORDER.fullmatch(text) and text.startswith("op ") for text in kept), f"{name}: {kept}"
    assert all(BORDER.fullmatch(border) for pair in pairs for border in pair), f"{name}: {pairs}"
    assert len(pairs) + by_hand == len(segments), f"{name}: {pairs}"
    return len(pairs)


def check_compiled(name, code, budget):
    compiled = []
    model = types.SimpleNamespace(compile=lambda: compiled.append(sys.modules["torch._functorch.config"].activation_memory_budget))
    exec("\n".join(code), {"model": model})
    assert compiled == [budget], f"{name}: {compiled}, not {budget}"
    return 1


def check(name, segments, code, by_hand, budget):
    if budget is not None:
        return check_compiled(name, code, budget)
    if any(line.startswith("Recompute(model") for line in code):
        return check_borders(name, segments, code, by_hand)
    model = Module("network") if any("save_on_cpu" in line for line in code) else Model()
    names = {"model": model}
    exec("\n".join(code), names)
    if "save_on_cpu" in names:
        assert model([], beside=1) == ["network"] and saving.forwards == 1, name
        saving.forwards = 0
        return 0
    rows = [row.split() for row in names.get("segments", [])]
    assert len(rows) + by_hand == len(segments), f"{name}: {len(rows)} rows and {by_hand} by hand of {len(segments)}"
    for row in rows:
        assert " ".join(row) in [modules for _, _, modules in segments], f"{name}: {row}"
    for row in rows:
        around = [other for other in rows if other != row and
                  all(any(m == o or m.startswith(o + ".") for o in other) for m in row)]
        parts = [o for other in rows for o in other for m in row if o.startswith(m + ".")]
        if around or parts:
            continue  # runs inside of that one; modules here have no parts
        checkpoint.calls = 0
        result = []
        for module in row:
            result = model[module](result, "beside")
        assert result == row, f"{name}: {row} ran as {result}"
        inside = [other for other in rows if set(other) <= set(row)]
        assert checkpoint.calls == len(inside), f"{name}: {checkpoint.calls} checkpoints in {row}"
    return len(rows)


def main():
    plans, total = [], 0
    for line in open(sys.argv[1]):
        fields = line.rstrip("\n").split("\t")
        if fields[0] == "plan":
            plans.append((fields[1], [], [], [], []))
        elif fields[0] == "compile":
            plans[-1][4].append(float(fields[1]))
        elif fields[0] == "segment":
            plans[-1][1].append(fields[1:])
        elif line.startswith("#: Segment"):
            plans[-1][3].append(line)
        elif line.startswith("# ") and plans:
            plans[-1][2].append(line[2:].rstrip("\n"))
    for name, segments, code, by_hand, budget in plans:
        total += check(name, segments, code, len(by_hand), *(budget or [None]))
    print(f"{len(plans)} plans, {total} segments")
    assert total >= int(sys.argv[2])
    assert any(budget for _, _, _, _, budget in plans) == (sys.argv[3:] == ["compiled"])


main()
END

check() { # sample, the least number of rows in all its plans, options
    local sample=$1 least=$2
    shift 2
    "$program" "$samples/$sample.onnx" "$@" --train momentum --plan-out="$folder/plans.txt" -q >"$folder/said"
    echo -n "$sample: "
    case " $* " in *" --compile"*) least="$least compiled" ;; esac
    # shellcheck disable=SC2086 # two words
    python3 "$folder/apply.py" "$folder/plans.txt" $least
}
check resnet18-train 10 --batch 16 --checkpoint all
check mobilenet_v2-train 40 --batch 16 --checkpoint all
check vit-small-train 8 --batch 16 --checkpoint all
check unet-train 30 --batch 16 --dim height=64 --dim width=64 --checkpoint all
check resnet18-train 1 --batch 16 --checkpoint sqrt
check vit-small-train 50 --batch 16 --checkpoint offload,joint
check resnet18-train 10 --batch 16 --compile --checkpoint optimal
