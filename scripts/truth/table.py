"""The table of evidence: what onnxvram says from each kind of file, against what the CUDA build took."""
import glob
import gzip
import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict

EVIDENCE = (("recording", ".recording.json.gz", ".recording.json.gz"), ("archive", ".archive.json.gz", ".archive.json.gz"),
            ("default export", ".train.onnx", ".eval.onnx"), ("older exporter", ".older.train.onnx", ".older.eval.onnx"))
KEPT, PEAK = 0.2, 0.5  # percent


def read(path):
    try:
        with open(path) as file:
            return json.load(file)
    except FileNotFoundError:
        return {}


def file_of(base, suffix, folder):
    """The file, unpacked into the folder where it is stored compressed; None: there is none."""
    if os.path.exists(base + suffix):
        return base + suffix
    if not suffix.endswith(".onnx") or not os.path.exists(base + suffix + ".gz"):
        return None
    path = os.path.join(folder, os.path.basename(base) + suffix)
    if not os.path.exists(path):
        with gzip.open(base + suffix + ".gz") as packed, open(path, "wb") as file:
            file.write(packed.read())
    return path


def report(exe, path, options):
    """The report, or the reason why there is none."""
    run = subprocess.run([exe, path, *options, "--json"], capture_output=True, text=True, check=False)
    try:
        found = json.loads(run.stdout)
        if found["models"]:
            return found["models"][0]
    except (ValueError, KeyError):
        pass
    lines = run.stderr.strip().splitlines()
    return lines[-1].removeprefix("onnxvram: ").removeprefix(os.path.join(os.path.dirname(path), "")) if lines else f"exit status {run.returncode}"


def percent(predicted, measured):
    return 0.0 if predicted == measured else 100.0 * (predicted - measured) / max(measured, 1)


def codes(model):
    return ",".join(sorted({d["code"] for d in model["diagnostics"] if d.get("severity") == "warning" and d.get("code")}))


class Row:
    """What one file says of one network in one mode: the worst of its batches, or why it says nothing."""

    def __init__(self):
        self.parts, self.why, self.codes, self.in_range = [], "", "", True

    def add(self, what, limit, predicted, measured):
        self.parts.append((abs(percent(predicted, measured)) > limit, what, percent(predicted, measured)))

    def add_peak(self, what, figures, measured):
        """PyTorch allocates some workspaces as memory of tensors, so that the measured peak of tensors may have them (attention's backward):
        what the allocator had in all decides then, in percent of the tensors."""
        tensors, differ = measured["tensors"], figures["allocated_peak_bytes"] - measured["allocated"]
        of_tensors = percent(figures["tensor_peak_bytes"], tensors)
        self.parts.append((min(abs(of_tensors), 100.0 * abs(differ) / tensors) > PEAK, what, of_tensors))

    @property
    def is_right(self):
        return not self.why and bool(self.parts) and not any(p[0] for p in self.parts)

    def text(self):
        if self.why:
            return self.why.partition(" and it cannot be changed: ")[0]
        return ", ".join(f"{what} {value:+.2f} %" for bad, what, value in self.parts if bad)


def training(exe, path, network, batch, measured, row, options):
    for optimizer in ("momentum", "adamw"):
        if optimizer not in measured:
            continue
        found = report(exe, path, ["--train", optimizer, "--loss", network["loss"], *options])
        if isinstance(found, str):
            row.why = found
            return
        row.codes = codes(found)
        if "peak_bytes" not in found.get("training", {}):
            row.why = "no figure"
            return
        figures = found["training"]
        if optimizer == "momentum" and "kept" in measured:
            row.add(f"kept at {batch}", KEPT, figures["saved_activation_bytes"], measured["kept"])
        row.add_peak(f"{optimizer} at {batch}", figures, measured[optimizer])


def inference(exe, path, network, batch, measured, row, options):
    found = report(exe, path, ["--runtime", "torch", *options])
    if isinstance(found, str):
        row.why = found
        return
    row.codes = codes(found)
    if "torch" not in found.get("runtimes", {}):
        row.why = "no figure"
        return
    figures, tensors = found["runtimes"]["torch"], measured["inference"]["tensors"]
    row.add_peak(f"tensors at {batch}", figures, measured["inference"])
    allocated, around = measured["inference"]["allocated"], PEAK / 100 * tensors
    low, high = figures["tensor_range_bytes"]
    row.in_range &= (low - around <= tensors <= high + around or
                     figures["least_peak_bytes"] - around <= allocated <= figures["locals_peak_bytes"] + around)


def rows(base, exe, network, measured, made, folder):
    """((evidence, mode), row) for each file that there is; the folder is for what is unpacked."""
    for evidence, train, evaluate in EVIDENCE:
        for mode, suffix, work in (("training", train, training), ("inference", evaluate, inference)):
            path = file_of(base, suffix, folder)
            if path is None:
                continue
            row, own = Row(), str(network["batch"])
            is_static = suffix.endswith(".gz") and not made.get(evidence, {}).get("dynamic", True)
            for batch, figures in measured.items():
                if row.why or (is_static and batch != own) or (mode == "inference" and "inference" not in figures):
                    continue
                options = [] if is_static or (suffix.endswith(".onnx") and batch == own) else ["--batch", batch]
                work(exe, path, network, batch, figures, row, options)
            if row.parts or row.why:
                yield (evidence, mode), row


def write(folder, exe, words, known=None):
    """Of the networks in the folder that are measured: of those sets and names, or of all. `known` is a file with rows that were right;
    the result is whether they are right now."""
    with tempfile.TemporaryDirectory() as unpacked:
        return write_with(folder, exe, words, known, unpacked)


def write_with(folder, exe, words, known, unpacked):
    right, total, inside = defaultdict(int), defaultdict(int), defaultdict(int)
    bad, good, missing, sets = [], [], [], []
    for path in sorted(glob.glob(os.path.join(folder, "*.made.json"))):
        base, made = path[:-len(".made.json")], read(path)
        name, network, measured = os.path.basename(base), made["network"], read(base + ".measured.json")
        which = network["set"]
        if words and which not in words and name not in words:
            continue
        if not measured:
            missing.append(name)
            continue
        sets += [which] if which not in sets else []
        for key, row in rows(base, exe, network, measured, made, unpacked):
            total[which, key] += 1
            right[which, key] += row.is_right
            inside[which, key] += row.is_right or (not row.why and row.in_range and key[1] == "inference")
            if row.is_right:
                good.append(f"{name} {'-'.join(key).replace(' ', '-')}")
            else:
                bad.append(f"| {name} | {key[0]} | {key[1]} | {row.text()} | {row.codes} |")
    print("| evidence |" + "".join(f" {s}: training | inference | in the range |" for s in sets))
    print("|---|" + "--:|--:|--:|" * len(sets))
    for evidence, *_ in EVIDENCE:
        cells = []
        for s in sets:
            t, i = (s, (evidence, "training")), (s, (evidence, "inference"))
            cells += [f"{right[t]} / {total[t]}", f"{right[i]} / {total[i]}", f"{inside[i]} / {total[i]}"]
        print(f"| {evidence} | " + " | ".join(cells) + " |")
    print("\n| network | evidence | mode | what differs | warnings |\n|---|---|---|---|---|")
    print("\n".join(bad))
    if missing:
        print(f"\nNot measured: {', '.join(missing)}.")
    return known is None or compare(good, known)


def compare(good, known):
    """Every row of the file is right; what is right and not in the file is added to it."""
    with open(known) as file:
        before = file.read().split("\n")[:-1]
    lost, won = sorted(set(before) - set(good)), sorted(set(good) - set(before))
    for row in lost:
        print(f"was right, is not: {row}", file=sys.stderr)
    if won and not lost:
        with open(known, "w") as file:
            file.writelines(f"{row}\n" for row in sorted(good))
        print(f"{len(won)} more rows are right: added to {known}", file=sys.stderr)
    return not lost
