#!/usr/bin/env python3
"""Models with branches and loops: what is live in them by definition, and what ONNX Runtime allocates.

    cc -shared -fPIC -D_GNU_SOURCE -o interpose.so tests/ort/recorded/interpose.c -ldl
    control_flow.py --interpose interpose.so [--write FOLDER]

Each model runs in a process of its own under the CPU provider, without arena and with graph optimisations off, with
and without the memory pattern; `interpose.so` writes down every allocation and free.  The most that is allocated at a
time, in the second run, is `ort_peak_bytes` (`ort_pattern_peak_bytes` with the pattern); what the caller feeds is not in
it.  Values, sizes and the ideal peak by the definitions are those of scripts/export/ort_truth.py.  --write keeps models and
truth files: tests/conformance holds them, and a test compares.
"""
import argparse
import ctypes
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnx.parser

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/export"))
import nested  # noqa: E402
import ort_truth as truth  # noqa: E402

HEAD = '<ir_version: 8, opset_import: ["" : 17]>\n'

MODELS = dict(text.split("\n", 1) for text in (ROOT / "tests/conformance/control_flow.txt").read_text().removeprefix("# ").split("\n# "))


def build(name):
    model = onnx.parser.parse_model(HEAD + MODELS[name])
    if name == "scan-two":
        model.graph.initializer.append(onnx.numpy_helper.from_array(np.array([0]), "zero"))
    model.producer_name = "scripts/conformance/control_flow.py"
    return model


def measure(library, path, pattern):
    """In a process of its own: the most bytes that the second run holds at a time."""
    library = ctypes.CDLL(library)
    session = nested.session(path, enable_cpu_mem_arena=False, enable_mem_pattern=pattern)
    feeds = truth.feeds_for(onnx.load(path).graph, {})
    with tempfile.NamedTemporaryFile() as file:
        for _ in range(2):
            library.record_open(file.name.encode())
            session.run(None, feeds)
            library.record_close()
        held, now, most = {}, 0, 0
        for line in open(file.name):
            what, number, *size = line.strip().split(",")
            if what == "alloc":
                held[number] = int(size[0])
                now += held[number]
                most = max(most, now)
            else:
                now -= held.pop(number)
    return most


def in_its_own_process(library, path, pattern):
    command = [sys.executable, __file__, "--interpose", library, "--measure", path] + (["--pattern"] if pattern else [])
    done = subprocess.run(command, env={**os.environ, "LD_PRELOAD": library}, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{path}: {done.stderr.strip().splitlines()[-1]}")
    return int(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--interpose", required=True)
    parser.add_argument("--measure")
    parser.add_argument("--pattern", action="store_true")
    parser.add_argument("--write")
    args = parser.parse_args()
    library = os.path.abspath(args.interpose)
    if args.measure:
        print(measure(library, args.measure, args.pattern))
        return
    with tempfile.TemporaryDirectory() as scratch:
        folder = args.write or scratch
        for name in MODELS:
            path = os.path.join(folder, name + ".onnx")
            onnx.save(build(name), path)
            recorded = truth.record(path, {})
            for key, pattern in (("ort_peak_bytes", False), ("ort_pattern_peak_bytes", True)):
                recorded[key] = in_its_own_process(library, path, pattern)
            if args.write:
                truth.write(recorded, os.path.join(folder, name + ".fixed.truth.json"))
            print(f"{name:22} ideal {recorded['peak']['bytes']:>10}  ort {recorded['ort_peak_bytes']:>10} "
                  f"{recorded['ort_pattern_peak_bytes']:>10}", flush=True)


if __name__ == "__main__":
    main()
