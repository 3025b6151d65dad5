#!/usr/bin/env python3
"""The front of checkpointing plans beside what others give at the same price.

    python scripts/export/peers.py build/release/onnxvram samples/resnet50.onnx:8 [MODEL:BATCH[:DIM=N]...]

    front        the least peak of the plans of `optimal` whose overhead is at most 0, 5, 10, 20 %, with --compile
    eager        the same without --compile
    sequential   the same of segments=K, K from 1 to 32: checkpoint_sequential
    compiled     the same of --compile=BUDGET, from 1 to 0 in steps of 0.05: torch.compile

Training is with SGD.  Prints CSV: network,batch,way,0,5,10,20 (bytes; empty: none is so cheap)
"""

import json
import subprocess
import sys

LEVELS = (0, 0.05, 0.1, 0.2)


def run(program, model, batch, dims, *options):
    bound = [x for dim in dims for x in ("--dim", dim)]
    text = subprocess.run([program, model, "--batch", batch, *bound, "--train", "sgd", *options, "--json"], check=True,
                          capture_output=True, text=True).stdout
    report = json.loads(text)
    return (report["models"][0] if "models" in report else report)["training"]


def row(points):
    cells = []
    for level in LEVELS:
        peaks = [peak for peak, overhead in points if overhead <= level + 1e-6]
        cells.append(str(min(peaks)) if peaks else "")
    return ",".join(cells)


def sequential(program, model, batch, dims):
    points = []
    for k in range(1, 33):
        try:
            points += plans(run(program, model, batch, dims, "--checkpoint", f"segments={k}"))
        except subprocess.CalledProcessError:
            break  # more than there are units
    return points


def compiled(program, model, batch, dims):
    found = [run(program, model, batch, dims, f"--compile={k / 20}")["compile"] for k in range(21)]
    return [(compile["peak_bytes"], compile["overhead"]) for compile in found]


def plans(training):
    return [(plan["peak_bytes"], plan["overhead"]) for plan in training["plans"]]


def main():
    program = sys.argv[1]
    for text in sys.argv[2:]:
        model, batch, *dims = text.split(":")
        name = model.split("/")[-1].removesuffix(".onnx")
        for way, points in (("front", plans(run(program, model, batch, dims, "--checkpoint", "none,optimal", "--compile"))),
                            ("eager", plans(run(program, model, batch, dims, "--checkpoint", "none,optimal"))),
                            ("sequential", sequential(program, model, batch, dims)),
                            ("compiled", compiled(program, model, batch, dims))):
            print(f"{name},{batch},{way},{row(points)}", flush=True)


if __name__ == "__main__":
    main()
