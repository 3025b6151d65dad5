#!/usr/bin/env python3
"""What ONNX Runtime's optimizer makes of models for its CUDA provider; tests/rewrite/test_graphs.c compares the program's rewriting.

    python scripts/export/ort_graphs.py record TRUTH.json MODEL.onnx...

It creates a session at each graph_optimization_level, saves the graph that it would run (optimized_model_filepath)
and writes one row per model and level: operators with their counts, those on the CPU, initializers, their bytes, the
transformers that changed something.  It needs the GPU build of ONNX Runtime and a CUDA driver, for creating the
session; nothing is run.  Models whose weights are left out are given random ones (integers: 0).
"""

import argparse
import collections
import json
import os
import re
import subprocess
import sys
import tempfile

import ort_truth as truth

LEVELS = ("disabled", "basic", "extended", "all")


def fill(source, target):
    """Write the model with weights of its own in place of those that are not there."""
    import onnx
    model = onnx.load(source, load_external_data=False)
    absent = any(tensor.data_location == onnx.TensorProto.EXTERNAL for graph in truth.every_graph(model.graph) for tensor in graph.initializer)
    if not absent:
        return source
    truth.fill_absent_weights(model)
    onnx.save(model, target)
    return target


def full_name(node):
    return f"{node.domain}.{node.op_type}" if node.domain not in ("", "ai.onnx") else node.op_type


def create_session(model, level, saved):
    """Runs in a process of its own, whose log the caller reads."""
    import onnxruntime as ort

    levels = {"disabled": "ORT_DISABLE_ALL", "basic": "ORT_ENABLE_BASIC", "extended": "ORT_ENABLE_EXTENDED",
              "all": "ORT_ENABLE_ALL"}
    options = ort.SessionOptions()
    options.log_severity_level = 0
    options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, levels[level])
    options.optimized_model_filepath = saved
    session = ort.InferenceSession(model, options, providers=["CUDAExecutionProvider", "CPUExecutionProvider"])
    assert "CUDAExecutionProvider" in session.get_providers()
    sys.stderr.flush()
    os._exit(0)


def record_one(model, level):
    import onnx

    with tempfile.TemporaryDirectory() as folder:
        saved = os.path.join(folder, "optimized.onnx")
        run = subprocess.run([sys.executable, __file__, "create-session", model, level, saved], capture_output=True,
                             text=True, errors="replace")
        log = run.stdout + run.stderr
        if run.returncode or not os.path.exists(saved):
            return {"error": log.strip().splitlines()[-1][-200:]}
        graphs = list(truth.every_graph(onnx.load(saved, load_external_data=False).graph))
    on_cpu = collections.Counter()
    provider = None
    for line in log.splitlines():
        placed = re.search(r"(?:All nodes|Node\(s\)) placed on \[(\w+)\]", line)
        if placed:
            provider = placed.group(1)
            continue
        node = re.search(r"VerifyEachNodeIsAssignedToAnEp\]\s+(\S+) \(", line)
        if node and provider == "CPUExecutionProvider":
            on_cpu[node.group(1)] += 1
    tensors = [tensor for graph in graphs for tensor in graph.initializer]
    return {"operators": dict(sorted(collections.Counter(full_name(n) for g in graphs for n in g.node).items())),
            "cpu_operators": dict(sorted(on_cpu.items())),
            "initializers": len(tensors), "initializer_bytes": sum(truth.tensor_bytes(t.data_type, t.dims) for t in tensors),
            "transformers": sorted(set(re.findall(r"GraphTransformer (\S+) modified: 1", log)))}


def record(arguments):
    found = {"source": "", "models": {}}
    if os.path.exists(arguments.truth):
        found = json.load(open(arguments.truth))
    import onnxruntime

    found["source"] = f"ONNX Runtime {onnxruntime.__version__}, CUDAExecutionProvider, graphs as saved"
    for path in arguments.models:
        name = os.path.splitext(os.path.basename(path))[0]
        with tempfile.TemporaryDirectory() as folder:
            model = fill(path, os.path.join(folder, name + ".onnx"))
            found["models"][name] = {level: record_one(model, level) for level in LEVELS}
        print(name, {level: sum(row.get("operators", {}).values()) for level, row in found["models"][name].items()},
              flush=True)
    with open(arguments.truth, "w") as file:
        rows = [f"{json.dumps(name)}: {{\n" + ",\n".join(
            f"  {json.dumps(level)}: {json.dumps(row, separators=(',', ':'))}" for level, row in levels.items()) + "}"
            for name, levels in sorted(found["models"].items())]
        file.write(f'{{"source": {json.dumps(found["source"])}, "models": {{\n' + ",\n".join(rows) + "}}\n")


def main():
    if sys.argv[1:2] == ["create-session"]:
        create_session(*sys.argv[2:])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("record",))
    parser.add_argument("truth")
    parser.add_argument("models", nargs="+")
    record(parser.parse_args())


if __name__ == "__main__":
    main()
