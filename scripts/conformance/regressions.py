#!/usr/bin/env python3
"""Small models for tests/conformance: exports of models.py without their weights, and their truth.

    regressions.py --folder DIR --out tests/conformance [NAME.VARIANT...]

DIR is the folder of models.py. Without names those that the repository holds are made again.
"""
import argparse
import pathlib
import sys

import onnx

import zoo

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "export"), str(HERE.parents[1] / "samples")]
import truth  # noqa: E402
from export import strip  # noqa: E402

KEPT = ("lraspp_mobilenet_v3_large.dynamo", "squeezenet1_1.all", "deberta_v2.extended", "bert.extended",
        "lstm.dynamic-int8", "mistral.dynamo", "wav2vec2.dynamo", "diffusion_unet.torchscript")


def keep(source, name, bindings, out):
    model = onnx.load(source)
    strip(model)
    onnx.save(model, out / f"{name}.onnx")
    for binding in bindings:
        record = truth.record(str(source), binding)
        record["model"] = f"{name}.onnx"
        truth.write(record, out / f"{name}.{truth.key_of(binding)}.truth.json")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--folder", required=True, type=pathlib.Path)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("names", nargs="*", default=KEPT)
    args = parser.parse_args()
    for name in args.names:
        keep(args.folder / f"{name}.onnx", name.replace(".", "-"), zoo.ZOO[name.split(".")[0]].bindings, args.out)
        print(name, (args.out / f"{name.replace('.', '-')}.onnx").stat().st_size)


if __name__ == "__main__":
    main()
