#!/usr/bin/env python3
"""Nodes of ONNX Runtime's own operators: does it give the outputs that tests/ops says?

    contrib.py [--tests FOLDER] [OPERATOR]...

Each case of tests/ops/cases_*.c with an operator of another domain than ONNX's becomes a model of one node, which ONNX
Runtime's CPU provider runs, or where it cannot, its CUDA provider; symbols get small sizes. Cases that are errors are left out. What has no kernel,
or refuses inputs of zeros, is listed.
"""
import argparse
import concurrent.futures
import multiprocessing
import pathlib
import re

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper

HERE = pathlib.Path(__file__).resolve().parent
DTYPES = {"f32": "FLOAT", "f16": "FLOAT16", "bf16": "BFLOAT16", "f64": "DOUBLE", "i64": "INT64", "i32": "INT32", "i16": "INT16",
          "i8": "INT8", "u8": "UINT8", "u16": "UINT16", "u32": "UINT32", "u64": "UINT64", "bool": "BOOL", "str": "STRING",
          "i4": "INT4", "u4": "UINT4"}
SIZES = dict(b=2, s=6, p=5, q=3, n=4, m=3, k=8, v=16, t=6, h=8, w=8, c=4, d=4)
TYPE = re.compile(r"(\w+)\[([^\]]*)\](?:=\{([^}]*)\})?$")


def read_cases(folder):
    """(file, operator, inputs, attributes, outputs), texts as they stand in the tables."""
    for path in sorted(folder.glob("cases_*.c")):
        text = re.sub(r'\bMS\b', '"com.microsoft:"', path.read_text(encoding="utf-8"))
        for row in re.findall(r"\{((?:\s*\"[^\"]*\")+),\s*\d+,((?:[^{}\"]|\"[^\"]*\")*)\}", text):
            operator = "".join(re.findall(r'"([^"]*)"', row[0]))
            fields = ["".join(re.findall(r'"([^"]*)"', part)) for part in re.split(r",(?=(?:[^\"]*\"[^\"]*\")*[^\"]*$)", row[1])]
            if operator.startswith("com.microsoft:") and len(fields) > 2 and not fields[2].startswith("!"):
                yield path.name, operator.split(":")[1], fields[0], fields[1], fields[2]


def sizes(text):
    """The dims of a type as numbers; None for one that only the data decides."""
    dims = [part for part in text.split(",") if part]
    return [None if "#" in part or "?" in part else eval(part, {"__builtins__": {}}, SIZES) for part in dims]  # noqa: S307


def read_attributes(text):
    for key, value in re.findall(r"(\w+)=(\[[^\]]*\]|\S+)", text):
        if value[0] == "[":
            yield key, [int(part) for part in value[1:-1].split(",") if part]
        else:
            number = float if re.fullmatch(r"-?\d+\.\d+", value) else int if re.fullmatch(r"-?\d+", value) else None
            yield key, number(value) if number else value.strip("'")


def make_input(text):
    match = TYPE.match(text)
    if match is None or match[1] not in DTYPES or "..." in match[2]:
        raise ValueError(f"an input of {text}")
    dtype = getattr(TensorProto, DTYPES[match[1]])
    dims = sizes(match[2])
    numbers = [0] * int(np.prod(dims))
    if match[3] is not None:
        numbers = [eval(part, {"__builtins__": {}}, SIZES) for part in match[3].split(",")]  # noqa: S307
    elif match[1] in ("f32", "f16"):
        numbers = [0.5] * len(numbers)
    return helper.make_tensor("", dtype, dims, [str(n) for n in numbers] if match[1] == "str" else numbers)


def run(operator, inputs, attributes, outputs):
    """What differs, as text; "" where nothing does."""
    tensors = [None if text == "-" else make_input(text) for text in inputs.split()]
    given = outputs.split("<=")[0].split()
    names = [f"y{i}" if text != "-" else "" for i, text in enumerate(given)]
    for i, tensor in enumerate(tensors):
        if tensor is not None:
            tensor.name = f"x{i}"
    node = helper.make_node(operator, [t.name if t is not None else "" for t in tensors], names, domain="com.microsoft",
                            **dict(read_attributes(attributes)))
    present = [t for t in tensors if t is not None]
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info(t.name, t.data_type, t.dims) for t in present],
                              [onnx.ValueInfoProto(name=name) for name in names if name])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)],
                              ir_version=10)
    options = ort.SessionOptions()
    options.log_severity_level = 4
    feed = {t.name: onnx.numpy_helper.to_array(t) for t in present}
    try:
        results = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"]).run(None, feed)
    except Exception:  # noqa: BLE001 (ONNX Runtime's errors have no common class)
        cuda = ort.InferenceSession(model.SerializeToString(), options, providers=["CUDAExecutionProvider", "CPUExecutionProvider"])
        results = cuda.run(None, feed)
    wrong = []
    for text, result in zip([t for t in given if t != "-"], results):
        match = TYPE.match(text)
        if match is None:
            continue
        expected, found = sizes(match[2]), list(result.shape)
        agrees = len(expected) == len(found) and all(e is None or e == f for e, f in zip(expected, found))
        if not agrees:
            wrong.append(f"{text}: {found}")
    return "; ".join(wrong)


def try_operator(operator, rows):
    """Rows as text by verdict."""
    found = {}
    for file, inputs, attributes, outputs in rows:
        try:
            wrong = run(operator, inputs, attributes, outputs)
            verdict = "differs" if wrong else "agrees"
        except Exception as error:  # noqa: BLE001 (ONNX Runtime's errors have no common class)
            wrong, verdict = str(error).strip().splitlines()[0][-170:], "no answer"
        found.setdefault(verdict, []).append(f"{file}: {inputs} {attributes} -> {wrong}")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tests", type=pathlib.Path, default=HERE.parent.parent / "tests" / "ops")
    parser.add_argument("operators", nargs="*")
    arguments = parser.parse_args()
    cases, verdicts = {}, {}
    for file, operator, *case in read_cases(arguments.tests):
        if not arguments.operators or operator in arguments.operators:
            cases.setdefault(operator, []).append((file, *case))
    for operator, rows in cases.items():
        # A kernel may crash: each operator has a process.
        with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as pool:
            try:
                verdicts[operator] = pool.submit(try_operator, operator, rows).result()
            except concurrent.futures.process.BrokenProcessPool:
                verdicts[operator] = {"no answer": [f"{rows[0][0]}: its kernel crashes"]}
    for operator, found in sorted(verdicts.items()):
        print(operator, ", ".join(f"{verdict} {len(rows)}" for verdict, rows in sorted(found.items())))
        for row in found.get("differs", []) + ([] if "agrees" in found else found.get("no answer", [])):
            print("   ", row)
    count = {verdict: sum(verdict in found for found in verdicts.values()) for verdict in ("agrees", "differs", "no answer")}
    print(f"{len(verdicts)} operators: {count}")
    return 1 if count["differs"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
