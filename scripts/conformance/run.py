#!/usr/bin/env python3
"""Shape inference against the ONNX backend tests: onnxvram and, on the same models, its peers.

    run.py --onnxvram PROGRAM [--data DIR]... [--peers] [--list OUTCOME]...

--data: folders of backend tests (repeatable), e.g. those of Debian's libonnx-testdata. The tests of the installed onnx
are always taken. Every output of a case gets an outcome; the case has the worst of its outputs:

    exact    type and shape are those of the answer
    bound    marked as an upper bound, and it is one
    unknown  no number for some dim, or no size
    error    the program gave up
    WRONG    a number or a type that differs, or a bound that is too low
"""
import argparse
import collections
import concurrent.futures
import datetime
import importlib.metadata
import json
import multiprocessing
import os
import pathlib
import subprocess
import sys
import tempfile
import warnings

import onnx
from onnx import TensorProto, numpy_helper

import cases
import peers

OUTCOMES = ("exact", "bound", "unknown", "error", "WRONG")


# --- judging ----------------------------------------------------------------------------------------------------------

def judge_shape(found, dims):
    if found is None:
        return "unknown", ""
    if len(found) != len(dims):
        return "WRONG", f"{found} for {dims}"
    if any(isinstance(mine, int) and mine != real for mine, real in zip(found, dims)):
        return "WRONG", f"{found} for {dims}"
    return ("exact", "") if all(isinstance(mine, int) for mine in found) else ("unknown", f"{found} for {dims}")


def judge_tensor(row, answer):
    """One tensor of onnxvram's JSON."""
    expected = cases.element_type(answer)
    if row["dtype"] in ("?", "undefined"):
        return "unknown", "no type"
    if expected is not None and row["dtype"] != expected:
        return "WRONG", f"{row['dtype']} for {expected}"
    size = cases.size_of(answer)
    if row.get("bound"):
        if row["bytes"] is None:
            return "unknown", f"{row['shape']}: no bound"
        return ("bound", "") if row["bytes"] >= size else ("WRONG", f"at most {row['bytes']} bytes for {size}")
    if isinstance(answer, TensorProto):
        return judge_shape(row["shape"], list(answer.dims))
    if row["bytes"] is None:
        return "unknown", f"{row['dtype']} of unknown size"
    return ("exact", "") if row["bytes"] == size else ("WRONG", f"{row['bytes']} bytes for {size}")


def worst(outcomes):
    return max(outcomes, key=lambda outcome: OUTCOMES.index(outcome[0]), default=("exact", ""))


def by_onnxvram(program, model, answers):
    path = "model.onnx"
    onnx.save(model, path)
    done = subprocess.run([program, "-q", "--json", path], capture_output=True, text=True)
    if done.returncode != 0:
        return "error", done.stderr.strip().replace(path, "") or f"exit status {done.returncode}"
    rows = {row["name"]: row for row in json.loads(done.stdout)["models"][0]["tensors"]}
    return worst(judge_tensor(rows[name], answer) if name in rows else ("unknown", f"no tensor {name}")
                 for name, answer in answers.items())


def by_peer(peer, model, answers):
    try:
        found = peers.ask(peer, model)
    except BaseException as failure:  # they raise whatever they like, SystemExit too
        return "error", f"{type(failure).__name__}: {failure}"[:200]
    outcomes = []
    for name, answer in answers.items():
        dtype, shape = found.get(name, (None, None))
        if not isinstance(answer, TensorProto):
            outcomes.append(("unknown", "not compared"))
        elif dtype is not None and dtype != cases.element_type(answer):
            outcomes.append(("WRONG", f"{dtype} for {cases.element_type(answer)}"))
        else:
            outcomes.append(judge_shape(shape, list(answer.dims)))
    return worst(outcomes)


def run_case(job):
    """(mode, program) -> outcome."""
    (name, model, inputs, outputs), program, peer_names, folder = job
    case = cases.Case(name, model, inputs, outputs)
    results = {}
    own = os.path.join(folder, str(os.getpid()))  # one of the peers writes a file where it stands
    os.makedirs(own, exist_ok=True)
    os.chdir(own)
    for mode in cases.MODES:
        untold = cases.prepare(case, mode, typed=False)
        results[mode, "onnxvram"] = by_onnxvram(program, untold, case.answers)
        for peer in peer_names:
            typed = cases.prepare(case, mode, typed=True)
            results[mode, peer] = by_peer(peer, typed, case.answers)
    return name, results


# --- running ----------------------------------------------------------------------------------------------------------

def message_of(value, content):
    """A content of a generated test, which is numpy's or already a message."""
    if hasattr(content, "SerializeToString"):
        return content
    makers = {"sequence_type": numpy_helper.from_list, "optional_type": numpy_helper.from_optional,
              "map_type": numpy_helper.from_dict}
    return makers.get(value.type.WhichOneof("value"), numpy_helper.from_array)(content, value.name)


def write_case(folder, model, inputs, outputs):
    data = folder / "test_data_set_0"
    data.mkdir(parents=True, exist_ok=True)
    for kind, values, contents in (("input", model.graph.input, inputs), ("output", model.graph.output, outputs)):
        for k, (value, content) in enumerate(zip(values, contents)):
            (data / f"{kind}_{k}.pb").write_bytes(message_of(value, content).SerializeToString())
    onnx.save(model, folder / "model.onnx")


def generated(folder):
    """The tests that the installed onnx makes by program, as files. They are kept between runs."""
    root = pathlib.Path(folder) / f"onnx-{onnx.__version__}"
    if not (root / "done").exists():
        from onnx.backend.test.case import model, node
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tests = node.collect_testcases() + model.collect_testcases()
        for test in tests:
            if test.model is not None:
                write_case(root / test.kind / test.name, test.model, *test.data_sets[0])
        (root / "done").touch()
    return root


def run_set(roots, args, folder):
    paths = [path for root in roots for path in cases.find(root) if args.only in path[0]]
    names = list(peers.PEERS) if args.peers else []
    jobs = [(path, os.path.abspath(args.onnxvram), names, folder) for path in paths]
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(args.jobs, mp_context=context) as pool:
        return dict(pool.map(run_case, jobs, chunksize=8))


def table(title, results, programs):
    print(f"\n{title}: {len(results)} cases\n")
    print("| known contents | program | " + " | ".join(OUTCOMES) + " |")
    print("|---|---|" + "--:|" * len(OUTCOMES))
    for mode, text in cases.MODES.items():
        for program in programs:
            counts = collections.Counter(result[mode, program][0] for result in results.values())
            print(f"| {text} | {program} | " + " | ".join(str(counts[o]) for o in OUTCOMES) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--onnxvram", required=True)
    parser.add_argument("--data", action="append", default=[], metavar="DIR")
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--only", default="", metavar="PART", help="cases whose name holds PART")
    parser.add_argument("--list", action="append", default=[], choices=OUTCOMES, help="print cases of that outcome")
    parser.add_argument("--list-peer", default="onnxvram", metavar="NAME", help="of that program")
    parser.add_argument("--cache", default=os.path.join(tempfile.gettempdir(), "onnx-backend-tests"))
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    programs = ["onnxvram"] + (list(peers.PEERS) if args.peers else [])
    own = pathlib.Path(onnx.__file__).parent / "backend/test/data"
    sets = {folder: [folder] for folder in args.data}
    sets[f"onnx {onnx.__version__}"] = [generated(args.cache), own]
    packages = sorted({package for package, _ in peers.PEERS.values()}) if args.peers else ["onnx"]
    print(datetime.date.today(), *(f"{package} {importlib.metadata.version(package)}" for package in packages), sep=", ")
    with tempfile.TemporaryDirectory() as folder:
        for title, roots in sets.items():
            results = run_set(roots, args, folder)
            table(title, results, programs)
            for name, result in results.items():
                for mode in cases.MODES:
                    outcome, detail = result[mode, args.list_peer]
                    if outcome in args.list:
                        print(f"{outcome} {mode} {name}: {detail}", file=sys.stderr)


if __name__ == "__main__":
    main()
