"""python -m onnxvram.verify MODEL.onnx: how right the prediction is on this machine's GPU.

The model runs in PyTorch and in ONNX Runtime, each in a process of its own, and what they took stands next to what the
program predicts. All predictions come from the program's JSON. Nothing but the standard library is needed here; the runs
need torch or onnxruntime-gpu.
"""
import argparse
import datetime
import json
import os
import shutil
import subprocess
import sys
import tempfile
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

if __package__:
    from . import _runs
else:  # next to scripts/gpu-check
    import _runs  # type: ignore[import-not-found, no-redef]

TOLERANCE = 50  # as onnxvram compare: one part of so many, 2 %
INSIDE, FAILED, USAGE, OUTSIDE = 0, 1, 2, 4

# Options of the program that a run follows, by their key in a task.
FOLLOWED = {"--train": "train", "--accumulate": "accumulate", "--amp": "amp", "--precision": "precision", "--attention": "attention",
            "--optimizer-impl": "optimizer_impl", "--zero-grad": "zero_grad", "--channels-last": "channels_last",
            "--no-tf32": "no_tf32", "--cudnn-benchmark": "cudnn_benchmark"}
FLAGS = ("--channels-last", "--no-tf32", "--cudnn-benchmark", "--expandable-segments")
# Those that say what the export does not: of the prediction alone.
MISSING = ("--missing-parameters", "--missing-buffers", "--parameters", "--buffers")
OF_PREDICTION = ("--dim", "--shape", "--gpu", "--pytorch", "--inplace", "--locals", *MISSING, "--graph-module", "--no-fast-path",
                 "--folded-norms", "--as-exported", "--program", "--op-shapes", "--loss")
# What one runtime alone has.
OF_ORT = ("--ort",)
OF_TORCH = ("--amp", "--attention", "--channels-last", "--no-tf32", "--cudnn-benchmark", "--expandable-segments", "--pytorch", "--inplace",
            "--locals", *MISSING, "--graph-module", "--no-fast-path", "--folded-norms", "--as-exported")
SHORT = {"-b": "--batch", "-d": "--dim", "-s": "--shape"}
# What may be told of a model without a name of it.
ANONYMOUS = ("--batch", "--train", "--accumulate", "--amp", "--precision", "--attention", "--optimizer-impl", "--zero-grad", "--channels-last",
             "--no-tf32", "--cudnn-benchmark", "--expandable-segments", "--ort", "--pytorch", "--gpu", "--loss")
VALUELESS = FLAGS + ("--locals", "--graph-module", "--no-fast-path", "--folded-norms", "--as-exported")

Json = Dict[str, Any]
Runner = Callable[[str, Json], Json]


class Wrong(Exception):
    """What ends a verification: a message and an exit status."""

    def __init__(self, message: str, status: int = FAILED) -> None:
        super().__init__(message)
        self.status = status


def split_options(words: Sequence[str]) -> List[Tuple[str, Optional[str]]]:
    """Options of the program as pairs; refuses those that no run here follows."""
    pairs: List[Tuple[str, Optional[str]]] = []
    at = list(words)
    while at:
        name, equals, value = at.pop(0).partition("=")
        if name[:2] in SHORT and not name.startswith("--") and len(name) > 2:
            name, equals, value = name[:2], "=", name[2:] + equals + value
        name = SHORT.get(name, name)
        known = name in FOLLOWED or name in OF_PREDICTION or name in FLAGS or name in ("--batch", "--ort")
        if not known:
            raise Wrong(f"verify: option '{name}' is unknown, or no run here follows it: leave it out", USAGE)
        if name in VALUELESS or (name == "--inplace" and not equals):
            pairs.append((name, None))
        elif equals:
            pairs.append((name, value))
        elif at:
            pairs.append((name, at.pop(0)))
        else:
            raise Wrong(f"verify: option '{name}' needs a value", USAGE)
    return pairs


def words_of(pairs: Sequence[Tuple[str, Optional[str]]]) -> List[str]:
    return [name if value is None else f"{name}={value}" for name, value in pairs]


def run_in_process(what: str, task: Json) -> Json:
    """A run of its own process; what it says goes to standard error when it fails."""
    with tempfile.NamedTemporaryFile("w", suffix=".json", dir=os.path.dirname(task["result"])) as file:
        json.dump(task, file)
        file.flush()
        environment = dict(os.environ)
        if task.get("expandable_segments"):
            environment["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
        ran = subprocess.run([sys.executable, _runs.__file__, what, file.name], env=environment, stdout=subprocess.DEVNULL,
                             stderr=subprocess.PIPE, text=True)
    lines = ran.stderr.strip().splitlines() or [f"status {ran.returncode}"]
    if ran.returncode == _runs.NO_GPU:
        raise Wrong(f"verify needs a GPU: {lines[-1]}", USAGE)
    if ran.returncode != 0:
        raise Wrong(f"verify: the run in {what} failed: {lines[-1]}")
    with open(task["result"], encoding="utf-8") as result:
        found: Json = json.load(result)
    return found


class Verification:
    """The program, a model, and what is run of it."""

    def __init__(self, options: argparse.Namespace, pairs: List[Tuple[str, Optional[str]]], runner: Runner, folder: str) -> None:
        self.options, self.pairs, self.run, self.folder = options, pairs, runner, folder
        self.figures: List[Json] = []
        self.partings: List[Json] = []
        self.versions: Dict[str, str] = {}
        self.model: Json = {}

    def predict(self, *more: str, without: Sequence[str] = ()) -> Json:
        """The model's JSON."""
        path = os.path.join(self.folder, "prediction.json")
        words = words_of([pair for pair in self.pairs if pair[0] not in without])
        command = [self.options.program, self.options.model, *words, *more, f"--json={path}", "-q"]
        ran = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if ran.returncode not in (0, OUTSIDE) or not os.path.exists(path):
            raise Wrong(ran.stderr.strip() or f"onnxvram ended with status {ran.returncode}", ran.returncode or FAILED)
        with open(path, encoding="utf-8") as file:
            self.model = json.load(file)["models"][0]
        os.unlink(path)
        return self.model

    def task(self, **more: Any) -> Json:
        task: Json = {"result": os.path.join(self.folder, "result.json"), **more}
        for name, value in self.pairs:
            if name in FOLLOWED:
                task[FOLLOWED[name]] = True if value is None else value
            if name == "--expandable-segments":
                task["expandable_segments"] = True
        return task

    def add(self, runtime: str, what: str, low: int, high: int, measured: Optional[int]) -> None:
        is_outside = measured is not None and (measured < low - low // TOLERANCE or measured > high + high // TOLERANCE)
        self.figures.append({"runtime": runtime, "what": what, "low_bytes": low, "high_bytes": high, "measured_bytes": measured,
                             "is_outside": is_outside})

    def add_beside(self, runtime: str, row: Json, measured: Optional[int]) -> None:
        low, high = (end + row["library_bytes"] for end in row["context_bytes"])
        self.add(runtime, "context and handles", low, high, measured)

    # The two runtimes

    def batch(self) -> Optional[int]:
        sizes = [value for name, value in self.pairs if name == "--batch" and value is not None]
        return int(sizes[-1]) if sizes else None

    def compare_torch(self) -> None:
        trains = any(name == "--train" for name, _ in self.pairs)
        runtime = "train" if trains else "torch"
        only = [] if trains else ["--runtime=torch"]
        snapshot = os.path.join(self.folder, "snapshot.pickle")
        loss = self.predict(*only, without=OF_ORT)["training"]["loss"] if trains else "none"
        ran = self.run("torch", self.task(function=self.options.torch, batch=self.batch(), loss=loss, snapshot=snapshot))
        model = self.predict(*only, f"--snapshot={snapshot}", without=OF_ORT)
        measured, row = model["measured"], next(r for r in model["answer"]["runtimes"] if r["runtime"] == runtime)
        tensors = [pair for kind, pair in measured["kinds"].items() if kind not in ("workspaces", "rounding", "cached")]
        predicted = sum(pair["predicted_bytes"] for pair in tensors)
        self.add(runtime, "tensors at the peak", predicted, predicted, sum(pair["measured_bytes"] for pair in tensors))
        ranges = {figure["what"]: figure for figure in measured["figures"]}
        for what in ("allocated", "reserved"):
            self.add(runtime, what, ranges[what]["low_bytes"], ranges[what]["high_bytes"], ran[f"{what}_bytes"])
        self.add_beside(runtime, row, ran["beside_bytes"])
        if "parts_at" in measured:
            self.partings.append(dict(measured["parts_at"], runtime=runtime))
        self.versions.update(ran["versions"])

    def compare_onnxruntime(self) -> None:
        model = self.predict("--runtime=ort", without=OF_TORCH)
        inputs = [tensor for tensor in model["tensors"] if tensor["kind"] == "input"]
        free = [tensor["name"] for tensor in inputs if not all(isinstance(size, int) for size in tensor["shape"])]
        if free:
            raise Wrong(f"verify: input '{free[0]}' has no size: bind its dimensions with --batch N or --dim NAME=N", USAGE)
        ran = self.run("onnxruntime", self.task(
            model=os.path.abspath(self.options.model), ort=[value for name, value in self.pairs if name == "--ort"],
            inputs=[{key: tensor[key] for key in ("name", "dtype", "shape")} for tensor in inputs]))
        row = next(r for r in model["answer"]["runtimes"] if r["runtime"] == "ort")
        low, high = row["context_bytes"]
        self.add("ort", "session, with handles", row["low_bytes"] - low, row["high_bytes"] - high, ran["session_bytes"][-1])
        self.add("ort", "context", low, high, ran["beside_bytes"])
        self.versions.update(ran["versions"])


# --- What is said of it -----------------------------------------------------------------------------------------------

def size(bytes_: int) -> str:
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if abs(bytes_) >= unit:
            return f"{bytes_ / unit:.1f} {name}"
    return f"{bytes_} B"


def row_of(figure: Json) -> List[str]:
    low, high, measured = figure["low_bytes"], figure["high_bytes"], figure["measured_bytes"]
    predicted = size(low) if low == high else f"{size(low)} to {size(high)}"
    if measured is None:
        return [figure["runtime"], figure["what"], predicted, "not measured", ""]
    apart = min(max(measured, low), high)
    difference = measured - apart
    text = "" if difference == 0 else f"{'+' if difference > 0 else '-'}{size(abs(difference))}"
    return [figure["runtime"], figure["what"], predicted, size(measured), text + (" (outside)" if figure["is_outside"] else "")]


def parting_text(parting: Json) -> str:
    text = f"{parting['runtime']}: the order of allocations parts at step {parting['step']}, {parting['operation']}: "
    if "predicted_until" in parting:
        return (text + f"{size(parting['predicted_bytes'])} are freed before {parting['predicted_until']} by the prediction, before "
                f"{parting['measured_until']} in the measurement")
    return text + (f"predicted {size(parting['predicted_bytes'])}, measured {size(parting['measured_bytes'])}"
                   + (f" at {parting['where']}" if "where" in parting else ""))


HEAD = ["runtime", "", "predicted", "measured", "difference"]


def as_text(verification: Verification, title: str) -> str:
    rows = [HEAD, *map(row_of, verification.figures)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(HEAD))]
    lines = [title, ""]
    for row in rows:
        cells = [cell.rjust(width) if 2 <= i <= 3 else cell.ljust(width) for i, (cell, width) in enumerate(zip(row, widths))]
        lines.append(("  " + "  ".join(cells)).rstrip())
    return "\n".join([*lines, *map(parting_text, verification.partings)]) + "\n"


def anonymous(verification: Verification, gpu: Json) -> Json:
    """What may be published: no name of the model, of its parts, of its files."""
    def operation(parting: Json) -> Json:
        text = parting["operation"]
        node = parting["node"]
        kept = {key: parting[key] for key in ("runtime", "step", "phase", "predicted_bytes", "measured_bytes")}
        return dict(kept, operation=text[:-len(node)].strip() if node and text.endswith(node) else text)

    model, options = verification.model, verification.options
    return {"schema_version": 1, "source": "verify", "date": datetime.date.today().isoformat(), "network": options.name,
            "program": options.version, **gpu, "versions": verification.versions,
            "options": words_of([(name, value) for name, value in verification.pairs if name in ANONYMOUS]),
            "sizes": [size for size in model["bindings"].values() if isinstance(size, int)],
            "nodes": len(model["nodes"]), "parameters": model["parameters"]["count"],
            "figures": verification.figures, "parts_at": [operation(parting) for parting in verification.partings]}


def as_issue(verification: Verification, row: Json) -> str:
    """The form of an issue about a wrong figure, filled in."""
    table = ["| " + " | ".join(cells) + " |" for cells in [HEAD, ["---"] * len(HEAD), *map(row_of, verification.figures)]]
    return "\n".join([
        f"**The command and its version**: `onnxvram verify MODEL.onnx {' '.join(row['options'])}`, {row['program']}", "",
        f"**What was measured**, on {row['gpu']} (compute capability {row['compute_capability']}, driver {row['driver']}), with "
        + ", ".join(f"{name} {version}" for name, version in row["versions"].items()) + ":", "",
        *table, "", *[f"Parts at step {p['step']}, {p['operation']}: predicted {p['predicted_bytes']}, measured "
                      f"{p['measured_bytes']} bytes." for p in row["parts_at"]], "",
        "**The model**: " + (row["network"] or "not named") + f", {row['nodes']} nodes, {row['parameters']} parameters.", "",
        "```json", json.dumps(row, indent=1), "```", ""])


# --- The command ------------------------------------------------------------------------------------------------------

def parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(
        prog="onnxvram verify", allow_abbrev=False,
        usage="onnxvram verify MODEL.onnx [--torch MODULE:FUNCTION] [--runtime torch,ort] [OPTION...]",
        description="Run the model on this machine's GPU, and print what it takes next to what is predicted.",
        epilog="Other options are those of the program: --batch, --train, --amp, --ort and others that a run can follow. "
               "Exit status: 0 inside of the ranges, 1 something failed, 2 wrong usage or no GPU, 4 outside by more than 2 percent.")
    p.add_argument("model", metavar="MODEL.onnx")
    p.add_argument("--torch", metavar="MODULE:FUNCTION", help="FUNCTION([batch=N]) returns (model, args[, kwargs]); MODULE may be a "
                                                              "file.py. Without it PyTorch is not run")
    p.add_argument("--runtime", metavar="LIST", help="torch, ort: what is run (both, where they can be; with --train torch)")
    p.add_argument("-o", "--output", metavar="FILE", default="onnxvram-verify.json",
                   help="what was found, without names of the model; FILE.md is an issue with it (onnxvram-verify.json)")
    p.add_argument("--name", metavar="NETWORK", help="name the network in FILE")
    p.add_argument("--program", help=argparse.SUPPRESS)
    return p


def choose_runtimes(options: argparse.Namespace, trains: bool) -> List[str]:
    asked = options.runtime.split(",") if options.runtime else (["torch"] if options.torch else []) + ([] if trains else ["ort"])
    wrong = [name for name in asked if name not in ("torch", "ort")]
    if wrong:
        raise Wrong(f"verify: --runtime takes torch and ort, not '{wrong[0]}'", USAGE)
    if not asked or ("torch" in asked and not options.torch):
        raise Wrong("verify: PyTorch needs the network: add --torch MODULE:FUNCTION, which returns (model, args)", USAGE)
    if "ort" in asked and trains:
        raise Wrong("verify: ONNX Runtime does not train: leave ort or --train out", USAGE)
    return asked


def find_gpu() -> Json:
    try:
        driver = _runs.Driver()
    except _runs.NoGpu as error:
        raise Wrong(f"verify needs a GPU: {error}", USAGE) from error
    return {"gpu": driver.name, "compute_capability": driver.capability, "driver": driver.version}


def add_gpu(program: str, pairs: List[Tuple[str, Optional[str]]], gpu: Json) -> None:
    """Libraries of the GPU that is here, unless one was named: the one of that name, or else of its compute capability."""
    if any(name == "--gpu" for name, _ in pairs):
        return
    listed = subprocess.run([program, "--list-gpus"], stdout=subprocess.PIPE, text=True).stdout.splitlines()[1:]
    names = [line[:28].strip() for line in listed if line[28:].split()[1] == gpu["compute_capability"]]
    words = set(gpu["gpu"].split())
    names.sort(key=lambda name: -len(words & set(name.split())))
    if names:
        pairs.append(("--gpu", names[0]))


def verify(options: argparse.Namespace, rest: Sequence[str], runner: Runner, gpu: Optional[Json]) -> int:
    pairs = split_options(rest)
    asked = choose_runtimes(options, any(name == "--train" for name, _ in pairs))
    options.program = options.program or shutil.which("onnxvram")
    if options.program is None:
        raise Wrong("verify needs the program onnxvram, and it is not in PATH: --program names it", USAGE)
    options.version = subprocess.run([options.program, "--version"], stdout=subprocess.PIPE, text=True).stdout.strip()
    gpu = gpu or find_gpu()
    add_gpu(options.program, pairs, gpu)
    with tempfile.TemporaryDirectory() as folder:
        verification = Verification(options, pairs, runner, folder)
        if "torch" in asked:
            verification.compare_torch()
        if "ort" in asked:
            verification.compare_onnxruntime()
    row = anonymous(verification, gpu)
    sys.stdout.write(as_text(verification, f"{options.model} on {gpu['gpu']}, driver {gpu['driver']}"))
    with open(options.output, "w", encoding="utf-8") as file:
        json.dump(row, file, indent=1)
        file.write("\n")
    with open(os.path.splitext(options.output)[0] + ".md", "w", encoding="utf-8") as file:
        file.write(as_issue(verification, row))
    return OUTSIDE if any(figure["is_outside"] for figure in verification.figures) else INSIDE


def main(argv: Optional[Sequence[str]] = None, runner: Runner = run_in_process, gpu: Optional[Json] = None) -> int:
    """`runner` and `gpu` stand in for a run and a device where tests have neither."""
    options, rest = parser().parse_known_args(argv)
    try:
        return verify(options, rest, runner, gpu)
    except Wrong as error:
        print(f"onnxvram: {error}" if not str(error).startswith("onnxvram:") else error, file=sys.stderr)
        return error.status


if __name__ == "__main__":
    sys.exit(main())
