"""Formulas of runtimes against analyses at 100 sizes that the program did not choose: the functions of --formula=python give what the
JSON report gives, within the sizes that they say they are for; what has none says why.

usage: formulas.py PROGRAM SAMPLES
"""
import json
import pathlib
import random
import re
import subprocess
import sys

MOST = 100
CASES = [("resnet50.onnx", "torch,ort", 4), ("unet.onnx", "torch,ort", 4), ("bert.onnx", "torch", 1), ("lstm.onnx", "torch", 2)]


def run(program, *words):
    return subprocess.run([program, *map(str, words)], check=True, capture_output=True, text=True).stdout


def check(program, model, runtimes, n_formulas):
    text = run(program, model, "--runtime", runtimes, "--formula=python")
    functions = {}
    exec(text, functions)  # noqa: S102 - it is the program's own output
    found = {name: f for name, f in functions.items() if "_tensors_" in name}
    assert len(found) == n_formulas, text
    where = re.search(r"the same as (\d+) analyses, for (.*)", text)
    dims = [(n, int(a), int(b), int(u or 1)) for n, a, b, u in re.findall(r"(\w+) from (\d+) to (\d+)(?: in steps of (\d+))?", where[2])]
    assert int(where[1]) == MOST and dims, where[0]
    points = random.Random(7)
    for _ in range(MOST):
        sizes = {n: u * points.randint(-(-a // u), min(b, 40 * u) // u) for n, a, b, u in dims}
        words = [w for n, size in sizes.items() for w in ("--dim", f"{n}={size}")]
        rows = json.loads(run(program, model, "--runtime", runtimes, "--json", *words))["models"][0]["answer"]["runtimes"]
        for name, f in found.items():
            runtime, end = name.split("_tensors_")
            live = next(r for r in rows if r["runtime"] == runtime)["live_bytes"]
            assert f(**sizes) == live[end == "high_bytes"], (model, sizes, name, f(**sizes), live)


def main():
    program, samples = sys.argv[1], pathlib.Path(sys.argv[2])
    for name, runtimes, n_formulas in CASES:
        check(program, samples / name, runtimes, n_formulas)
    text = run(program, samples / "bert.onnx", "--runtime", "ort", "--formula")
    assert "ort_tensors_low_bytes: no polynomial" in text, text
    print(f"{len(CASES)} models, {MOST} sizes each")


main()
