"""The largest batch against runs: a run at N fits, one at N + 1 does not, for each runtime, GPU and figure.

    largest.py PROGRAM SAMPLES FOLDER [all]      # all: every sample that has a batch, five GPUs, three kinds of runs
"""
import itertools
import json
import os
import subprocess
import sys

program, samples, scratch = sys.argv[1:4]
TOKENS = {"sequence": 64}
CACHE = {"sequence": 16, "past": 48, "total": 64}
IMAGE = {"height": 96, "width": 64}
DIMS = {"bert": TOKENS, "bert-dynamo": TOKENS, "bert-int8": TOKENS, "functions": TOKENS, "lstm": TOKENS, "scan": TOKENS, "gpt2": CACHE,
        "llama": CACHE, "llama-attention": CACHE, "llama-dynamo": CACHE, "deeplabv3_resnet50": IMAGE, "unet": IMAGE, "unet-train": IMAGE}
NO_BATCH = {"fasterrcnn"}
NOT_TRAINED = {"bert-int8", "control-flow", "llama-attention", "resnet18-qdq", "scan"}
RUNS = {"inference": ["--runtime", "ideal,arena,torch,ort,async"],
        "training": ["--train", "adamw"],
        "none": ["--train", "adamw", "--checkpoint", "none"],
        "plans": ["--train", "momentum", "--checkpoint", "none,blocks"]}
ALL_GPUS = ["T4", "A10G", "A100 40GB", "RTX 4090", "H100"]
QUICK = [("resnet18-train", "A10G", "training"), ("resnet18-train", "A10G", "none"), ("resnet18-train", "T4", "plans"),
         ("vit_b_16-dynamo", "A10G", "none"), ("mobilenet_v2", "A10G", "training"), ("unet-train", "RTX 4090", "none"), ("lstm", "T4", "inference"), ("functions", "H100", "inference")]
failures = []


def analyse(sample, gpu, kind, *options):
    report = os.path.join(scratch, "report.json")
    dims = [text for name, size in DIMS.get(sample, {}).items() for text in ("--dim", f"{name}={size}")]
    command = [program, os.path.join(samples, sample + ".onnx"), "-q", "--budget", gpu, f"--json={report}", *dims, *RUNS[kind], *options]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode not in (0, 3):
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
    with open(report) as file:
        return json.load(file)["models"][0]


def verdicts(model):
    """By runtime, and of all: whether it fits, and whether it does once cached memory is returned."""
    fit = model["fit"]
    for name, of in [("all", fit), *fit["runtimes"].items()]:
        yield name, (of["fits"], of["fits"] or of.get("fits_by_release", False))


def beyond(kind, batch):
    """The next size that is told from it: among plans some thousandth away."""
    grain = 1
    while "--checkpoint" in RUNS[kind] and batch // grain >= 2048:
        grain *= 2
    return batch + grain


def check(sample, gpu, kind):
    found = analyse(sample, gpu, kind, "--max-batch")["fit"]
    seen = {}
    for name, of in [("all", found), *found["runtimes"].items()]:
        figures = of["max_batch"], of.get("max_batch_by_release", of["max_batch"])
        for which, batch in enumerate(figures):
            for at, expected in ((batch, True), (beyond(kind, batch), False)):
                if at < 1 or batch >= 2 ** 30:
                    continue
                if at not in seen:
                    seen[at] = dict(verdicts(analyse(sample, gpu, kind, "--batch", str(at))))
                if seen[at][name][which] != expected:
                    failures.append(f"{sample}, {kind}, {gpu}, {name}: {figures} were found, but a run at {at} says {seen[at][name]}")
    return found


def rate(batch, time):
    return batch / (time["seconds"]["low"] * time["seconds"]["high"]) ** 0.5


def time_at(sample, gpu, kind, batch, plan):
    only = ["--checkpoint", plan] if plan is not None else []
    model = analyse(sample, gpu, kind, "--batch", str(batch), *only)
    return model["training"]["time"] if "training" in model else model["runtimes"]["torch"]["time"]


def check_best(sample, gpu, kind):
    """The best batch has the time of a run at it, and no plan at its own largest batch is faster."""
    found = analyse(sample, gpu, kind, "--max-batch", "--objective", "batch")["fit"]
    if found["best"]["batch"] != found["max_batch"]:
        failures.append(f"{sample}, {kind}, {gpu}: the largest batch is {found['max_batch']}, not {found['best']}")
    model = analyse(sample, gpu, kind, "--max-batch", "--objective", "throughput")
    best = model["fit"]["best"]
    if time_at(sample, gpu, kind, best["batch"], best.get("id"))["seconds"] != best["time"]["seconds"]:
        failures.append(f"{sample}, {kind}, {gpu}: a run says another time than {best}")
    for plan in model.get("training", {}).get("plans", []):
        time = time_at(sample, gpu, kind, plan["max_batch"], plan["id"])
        if rate(plan["max_batch"], time) > 1.000001 * rate(best["batch"], best["time"]):
            failures.append(f"{sample}, {kind}, {gpu}: {plan['name']} at {plan['max_batch']} is faster than {best}")


def main():
    rows = QUICK
    for row in (("resnet18-train", "T4", "plans"), ("resnet18-train", "A10G", "training"), ("mobilenet_v2", "A10G", "inference")):
        check_best(*row)
    if sys.argv[4:] == ["all"]:
        names = sorted(name[:-5] for name in os.listdir(samples) if name.endswith(".onnx") and name[:-5] not in NO_BATCH)
        rows = [row for row in itertools.product(names, ALL_GPUS, RUNS) if row[2] == "inference" or row[0] not in NOT_TRAINED]
    for number, row in enumerate(rows):
        try:
            found = check(*row)
        except RuntimeError as error:
            failures.append(str(error))
            continue
        if sys.argv[4:] == ["all"]:
            print(*row, found["max_batch"], found.get("max_batch_by_release", ""), flush=True)
    for line in failures:
        print(line, file=sys.stderr)
    sys.exit(1 if failures else 0)


main()
