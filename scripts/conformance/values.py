"""A file without what it declares, and whether a value has the type and the shape that ONNX Runtime gave it."""
import collections
import json
import subprocess

import onnx

from cases import NAMES, truth
from run import judge_shape


def undeclared(path):
    """The file with nothing declared but its inputs."""
    model = onnx.load(path)
    for graph in truth.every_graph(model.graph):
        del graph.value_info[:]
    for output in model.graph.output:
        output.ClearField("type")
    return model


def judge(row, dtype, shape):
    if row is None:
        return "unknown", "no such tensor"
    if row["dtype"] != NAMES[dtype]:
        return ("unknown" if row["dtype"] in ("?", "undefined") else "WRONG"), f"{row['dtype']} for {NAMES[dtype]}"
    if row.get("bound"):
        most = truth.tensor_bytes(dtype, shape)
        if row["bytes"] is None:
            return "unknown", f"{row['shape']}: no bound"
        return ("bound", "") if row["bytes"] >= most else ("WRONG", f"at most {row['bytes']} bytes for {shape}")
    return judge_shape(row["shape"], shape)


def tally(rows, real):
    """How many values have which outcome, and what is unknown or wrong; `real`: name -> (dtype, shape)."""
    counts, details = collections.Counter(), []
    for name, (dtype, shape) in real.items():
        outcome, detail = judge(rows.get(name), dtype, shape)
        counts[outcome] += 1
        if outcome in ("unknown", "WRONG"):
            details.append(f"{outcome} {name}: {detail}")
    return counts, details


def compare(program, path, model, feeds, options):
    """The tally of all values of the file, which the program gets with nothing declared; `model`: the same, of sizes that are bound."""
    real = truth.run_everything(model, feeds)
    bare = path.with_suffix(".bare")
    onnx.save(undeclared(path), bare)
    done = subprocess.run([program, "-q", "--json", *options, str(bare)], capture_output=True, text=True)
    bare.unlink()
    if done.returncode != 0:
        return collections.Counter(error=1), [f"error {options}: {done.stderr.strip()}"]
    return tally({row["name"]: row for row in json.loads(done.stdout)["models"][0]["tensors"]}, real)
