#!/usr/bin/env python3
"""Files of --onnx-out: onnx.checker takes them, they are the model but for what is added, ONNX Runtime gives the same outputs.

Every model is written without bindings in the file's order, and with the sizes of its first truth in other orders; each file then
runs at the sizes of all truths of the model, against the model itself: bit by bit without graph optimisations; with them nearly, for
known shapes let ONNX Runtime fuse more.  Weights that are absent become random ones inside the file.

    onnx_out.py --onnxvram build/dev/onnxvram [--skip NAME] [DIR_OF_MODELS DIR_OF_TRUTH]...
    onnx_out.py --onnxvram build/dev/onnxvram [--external] --model "FILE.onnx [DIM=SIZE...]"...
"""

import argparse
import collections
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime as ort

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts" / "export"))
import nested  # noqa: E402
import ort_truth as truth  # noqa: E402

ORDERS = ("model", "greedy", "optimal", "ort")


def models_of(folders, skipped):
    """path -> the bindings and values of its truths."""
    found = collections.defaultdict(list)
    for models, truths in folders:
        for file in sorted(pathlib.Path(truths).glob("*.truth.json")):
            row = json.loads(file.read_text())
            path = pathlib.Path(models) / row["model"]
            if path.exists() and path.stem not in skipped:
                found[path].append((row["binds"], row.get("values", {})))
    return found


def write(program, source, to, order, binds):
    command = [program, "-q", str(source), "--runtime", "ideal", "--order", order, "--onnx-out", str(to)]
    for name, size in binds.items():
        command += ["--dim", f"{name}={size}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stderr.strip() if done.returncode else None


def strip(graph):
    """Takes out what --onnx-out adds to a graph and to those of its nodes."""
    del graph.value_info[:]
    for value in list(graph.input) + list(graph.output):
        del value.metadata_props[:]
        if value.doc_string.startswith("onnxvram."):
            value.ClearField("doc_string")
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                strip(attribute.g)


def stripped(model):
    """The model without what is added, its nodes in one order."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    del copy.metadata_props[:]
    strip(copy.graph)
    nodes = sorted(node.SerializeToString(deterministic=True) for node in copy.graph.node)
    del copy.graph.node[:]
    return copy.SerializeToString(deterministic=True), nodes


def entries(graph):
    """Entries of value_info, those of inner graphs too."""
    inner = (a.g for node in graph.node for a in node.attribute if a.type == onnx.AttributeProto.GRAPH)
    return len(graph.value_info) + sum(map(entries, inner))


LEVELS = (ort.GraphOptimizationLevel.ORT_DISABLE_ALL, ort.GraphOptimizationLevel.ORT_ENABLE_ALL)


def runner(path, level):
    ort.set_seed(1)  # of Dropout: sessions that are made alike draw alike
    return nested.session(str(path), level, log_severity_level=2)


def same(a, b, exactly):
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(same(x, y, exactly) for x, y in zip(a, b))
    if isinstance(a, dict):
        return a == b
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.tobytes() == b.tobytes():
        return True
    return not exactly and a.dtype.kind == "f" and np.allclose(a, b, rtol=1e-2, atol=1e-3, equal_nan=True)


def feeds_at(model, binds, values):
    light = onnx.ModelProto()
    light.CopyFrom(truth.light_copy(model))
    truth.bind(light, binds)
    return truth.feeds_for(light.graph, values)


def judge_file(source, written, cases, answers):
    """What is wrong with the file; None: nothing."""
    try:
        onnx.checker.check_model(str(written), full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        try:
            onnx.checker.check_model(str(source), full_check=True)
        except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError):
            pass  # the model itself is not taken
        else:
            return f"onnx.checker: {error}"
    if stripped(onnx.load(written)) != stripped(onnx.load(source)):
        return "more was changed than is added"
    for level in LEVELS:
        session = runner(written, level)
        for (binds, _), (feeds, answer) in zip(cases, answers[level]):
            if not same(answer, session.run(None, feeds), level == LEVELS[0]):
                return f"other outputs at {binds}, {level.name}"
    return None


def judge_model(program, path, cases, folder, external):
    source = folder / path.name
    model = truth.load(str(path))
    copy = onnx.ModelProto()
    copy.CopyFrom(model)  # saving to another file empties the tensors
    onnx.save(copy, source, save_as_external_data=external, location=path.name + ".data", size_threshold=1024)
    all_feeds = [feeds_at(model, binds, values) for binds, values in cases]
    answers = {}
    for level in LEVELS:
        session = runner(source, level)
        try:
            answers[level] = [(feeds, session.run(None, feeds)) for feeds in all_feeds]
        except Exception as error:  # noqa: BLE001: random weights lead some nowhere; their files are loaded alone
            print(f"{path.name:28} does not run itself, {level.name}: {str(error)[:80]!r}", flush=True)
            answers[level] = []
        del session
    bad = 0
    for order in ORDERS:
        written = folder / f"{path.stem}.{order}.onnx"
        binds = {} if order == "model" else cases[0][0]
        wrong = write(program, source, written, order, binds)
        if wrong is None:
            wrong = judge_file(source, written, cases, answers)
        again = folder / "again.onnx"
        if wrong is None and order == "model":
            wrong = write(program, written, again, order, binds)
            if wrong is None and again.read_bytes() != written.read_bytes():
                wrong = "written once more, it changes"
        bad += wrong is not None
        added = entries(onnx.load(written, load_external_data=False).graph) if written.exists() else 0
        print(f"{path.name:28} {order:8} {added:5} value_info  {wrong or 'ok'}", flush=True)
        written.unlink(missing_ok=True)
    return bad


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--onnxvram", required=True)
    parser.add_argument("--skip", action="append", default=[])
    parser.add_argument("--model", action="append", default=[], help="a model without a truth, and sizes of its dims")
    parser.add_argument("--external", action="store_true", help="weights are in a file of their own")
    parser.add_argument("folders", nargs="*")
    args = parser.parse_args()
    folders = list(zip(args.folders[::2], args.folders[1::2]))
    if not folders and not args.model:
        folders = [(ROOT / "samples", ROOT / "tests" / "truth")]
    bad = 0
    models = models_of(folders, args.skip)
    for name, *sizes in map(str.split, args.model):
        binds = {dim: int(size) for dim, size in (pair.rsplit("=", 1) for pair in sizes)}
        models[pathlib.Path(name)].append((binds, {}))
    for path, cases in models.items():
        with tempfile.TemporaryDirectory() as folder:
            try:
                bad += judge_model(args.onnxvram, path, cases, pathlib.Path(folder), args.external)
            except Exception as error:  # noqa: BLE001: the next model is to be judged
                print(f"{path.name:28} the model itself does not run: {error}"[:200], flush=True)
    print(f"{bad} files are not as they should be")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
