#!/usr/bin/env python3
"""Exports of many architectures: does onnxvram see every shape that ONNX Runtime produces?

    models.py --onnxvram PROGRAM --folder DIR [--only PART]...
    models.py --folder DIR --keep tests/conformance [NAME.VARIANT...]

Each architecture of tests/conformance/zoo.py is exported by both exporters of PyTorch. From the first of these come the graphs that ONNX
Runtime's optimiser makes at its levels, and quantised ones. ONNX Runtime then runs every graph with all its values as
outputs, at each binding; declared shapes are taken away, and onnxvram is asked for the same values. Exports are kept
in DIR, those that are there are not made again. --keep makes the small models of tests/conformance of them, without
their weights, and their truth.
"""
import argparse
import collections
import contextlib
import datetime
import io
import logging
import os
import pathlib
import signal
import sys
import warnings

import numpy as np
import onnx
import onnxruntime as ort

import values
from run import OUTCOMES

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "export"), str(HERE.parents[1] / "samples"), str(HERE.parents[1] / "tests/conformance")]
import ort_truth as truth  # noqa: E402
import zoo  # noqa: E402
from export import strip  # noqa: E402

EXPORT_SECONDS = 150
KEPT = ("lraspp_mobilenet_v3_large.dynamo", "squeezenet1_1.all", "deberta_v2.extended", "bert.extended",
        "lstm.dynamic-int8", "mistral.dynamo", "wav2vec2.dynamo", "diffusion_unet.torchscript")
LEVELS = {"basic": ort.GraphOptimizationLevel.ORT_ENABLE_BASIC,
          "extended": ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
          "all": ort.GraphOptimizationLevel.ORT_ENABLE_ALL}


# --- making models ----------------------------------------------------------------------------------------------------

def by_torchscript(name, path):
    import torch
    arch = zoo.ZOO[name]
    inputs = [f"in{k}" for k in range(len(arch.dims))]
    torch.onnx.export(arch.make().eval(), arch.args(), path, dynamo=False, opset_version=17, input_names=inputs,
                      dynamic_axes=dict(zip(inputs, arch.dims)))


def by_dynamo(name, path):
    import torch
    arch = zoo.ZOO[name]
    inputs = [f"in{k}" for k in range(len(arch.dims))]
    star = len(arch.dims) > 0 and isinstance(arch.make(), zoo.Tensors)
    shapes = (arch.dims,) if star else arch.dims
    torch.onnx.export(arch.make().eval(), arch.args(), path, dynamo=True, external_data=False, opset_version=20,
                      input_names=inputs, dynamic_shapes=shapes, verbose=False)


def optimised(level):
    def make(name, path):
        options = ort.SessionOptions()
        options.graph_optimization_level = LEVELS[level]
        options.optimized_model_filepath = str(path)
        options.log_severity_level = 4
        ort.InferenceSession(str(path.with_name(f"{name}.torchscript.onnx")), options,
                             providers=["CPUExecutionProvider"])
    return make


def quantised(name, path):
    from onnxruntime import quantization
    quantization.quantize_dynamic(str(path.with_name(f"{name}.torchscript.onnx")), str(path))


def calibrated(name, path):
    from onnxruntime import quantization

    class Reader(quantization.CalibrationDataReader):
        def __init__(self):
            model = onnx.load(path.with_name(f"{name}.torchscript.onnx"))
            truth.bind(model, zoo.ZOO[name].bindings[0])
            self.batches = iter([truth.feeds_for(model.graph, {})])

        def get_next(self):
            return next(self.batches, None)

    source = str(path.with_name(f"{name}.torchscript.onnx"))
    quantization.quantize_static(source, str(path), Reader(), quant_format=quantization.QuantFormat.QDQ)


VARIANTS = {"torchscript": by_torchscript, "dynamo": by_dynamo, "basic": optimised("basic"),
            "extended": optimised("extended"), "all": optimised("all"), "dynamic int8": quantised,
            "QDQ": calibrated}


def too_long(number, frame):
    raise TimeoutError(f"no end after {EXPORT_SECONDS} s")


def make(name, variant, path):
    """None, or why there is no such model."""
    failure = path.with_suffix(".failed")
    if path.exists():
        return None
    if failure.exists():
        return failure.read_text()
    part = path.with_suffix(".part")
    signal.signal(signal.SIGALRM, too_long)
    signal.alarm(EXPORT_SECONDS)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()), \
                contextlib.redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            VARIANTS[variant](name, path)
    except BaseException as problem:
        signal.alarm(0)
        path.unlink(missing_ok=True)
        part.unlink(missing_ok=True)
        failure.write_text(f"{type(problem).__name__}: {str(problem).strip().splitlines()[0] if str(problem) else ''}")
        if isinstance(problem, KeyboardInterrupt):
            raise
        return failure.read_text()
    signal.alarm(0)
    return None


# --- comparing --------------------------------------------------------------------------------------------------------

def used(model, binding):
    """The bindings whose symbols the inputs have; exporters may rename or fix some."""
    symbols = {dim.dim_param for value in model.graph.input for dim in value.type.tensor_type.shape.dim}
    return {name: size for name, size in binding.items() if name in symbols}


def compare(program, path, binding):
    """(outcome counts, first details) of one model at one binding."""
    model = onnx.load(path)
    options = [part for name, size in used(model, binding).items() for part in ("-d", f"{name}={size}")]
    truth.bind(model, binding)
    return values.compare(program, path, model, truth.feeds_for(model.graph, {}), options)


def check(program, folder, name, variant):
    path = folder / f"{name}.{variant.replace(' ', '-')}.onnx"
    reason = make(name, variant, path)
    if reason is not None:
        return {"not made": reason}
    result = {"counts": collections.Counter(), "details": [], "nodes": len(onnx.load(path).graph.node)}
    for binding in zoo.ZOO[name].bindings:
        try:
            counts, details = compare(program, path, binding)
        except (Exception, SystemExit) as problem:  # what ONNX Runtime does not run is no measure
            result.setdefault("not run", []).append(f"{binding}: {str(problem).splitlines()[0][:200]}")
            continue
        result["counts"].update(counts)
        result["details"] += details
    return result


def tables(results):
    print("\n| graph | models | all exact | exact or bound | values | " + " | ".join(OUTCOMES) + " |")
    print("|---|" + "--:|" * (4 + len(OUTCOMES)))
    for variant in VARIANTS:
        done = [r for (_, v), r in results.items() if v == variant and r.get("counts")]
        if not done:
            continue
        total = sum((r["counts"] for r in done), collections.Counter())
        exact = sum(set(+r["counts"]) <= {"exact"} for r in done)
        sound = sum(set(+r["counts"]) <= {"exact", "bound"} for r in done)
        print(f"| {variant} | {len(done)} | {exact} | {sound} | {sum(total.values())} | "
              + " | ".join(str(total[o]) for o in OUTCOMES) + " |")


def keep(folder, out, names):
    for name in names:
        model, small = onnx.load(folder / f"{name}.onnx"), name.replace(".", "-")
        strip(model)
        onnx.save(model, out / f"{small}.onnx")
        for binding in zoo.ZOO[name.split(".")[0]].bindings:
            record = truth.record(str(folder / f"{name}.onnx"), binding)
            truth.write({**record, "model": f"{small}.onnx"}, out / f"{small}.{truth.key_of(binding)}.truth.json")
        print(small, (out / f"{small}.onnx").stat().st_size)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--onnxvram", metavar="PROGRAM")
    parser.add_argument("--folder", type=pathlib.Path, metavar="DIR")
    parser.add_argument("--only", action="append", metavar="PART", help="architectures with PART in their name, =NAME= for a whole one")
    parser.add_argument("--variant", action="append", choices=list(VARIANTS))
    parser.add_argument("--keep", type=pathlib.Path, metavar="DIR", help="small models go there, instead of a run")
    parser.add_argument("names", nargs="*", default=KEPT, help="of --keep")
    args = parser.parse_args()
    if args.keep:
        keep(args.folder, args.keep, args.names)
        return
    if not args.onnxvram or not args.folder:
        parser.error("--onnxvram and --folder are needed")
    args.folder.mkdir(parents=True, exist_ok=True)
    np.random.seed(0)
    logging.disable(logging.WARNING)  # of the quantiser, about every bias
    results = {}
    for name in zoo.ZOO:
        if args.only and not any(part in f"={name}=" for part in args.only):
            continue
        for variant in args.variant or VARIANTS:
            result = results[name, variant] = check(os.path.abspath(args.onnxvram), args.folder, name, variant)
            if result.get("counts"):
                text = ", ".join(f"{n} {outcome}" for outcome, n in result["counts"].items())
                print(f"{name} {variant}: {result['nodes']} nodes, {text}", flush=True)
                print(*(f"    {line}" for line in result["details"][:8]), sep="\n", end="\n" * bool(result["details"]))
            for line in result.get("not run", []):
                print(f"    not run {name} {variant} {line}", flush=True)
            if "not made" in result:
                print(f"    not made {name} {variant}: {result['not made'][:160]}", flush=True)
    print(datetime.date.today(), f"onnx {onnx.__version__}, onnxruntime {ort.__version__}")
    tables(results)


if __name__ == "__main__":
    main()
