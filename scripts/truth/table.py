"""The table of evidence: what onnxvram says from each kind of file, against what the CUDA build took."""
import glob
import gzip
import os
import statistics
import sys
import tempfile
from collections import defaultdict

from .harness import read, report

EVIDENCE = (("recording", ".recording.json.gz", ".recording.json.gz"), ("archive", ".archive.json.gz", ".archive.json.gz"),
            ("default export", ".train.onnx", ".eval.onnx"), ("older exporter", ".older.train.onnx", ".older.eval.onnx"))
KEPT, PEAK = 0.2, 0.5  # percent
FIXED = "and it cannot be changed: "  # the export has a fixed batch


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


def percent(predicted, measured):
    return 0.0 if predicted == measured else 100.0 * (predicted - measured) / max(measured, 1)


def codes(model):
    return ",".join(sorted({d["code"] for d in model["diagnostics"] if d.get("severity") == "warning" and d.get("code")}))


class Row:
    """What one file says of one network in one mode, at each batch; or why it says nothing, at the file's batch or at another one."""

    def __init__(self, batch):
        self.batch, self.parts, self.why, self.refused, self.codes, self.outside, self.width = batch, [], "", "", "", set(), None

    def add(self, what, batch, limit, predicted, measured):
        off = percent(predicted, measured)
        self.parts.append((abs(off) > limit, what, batch, off))

    def add_peak(self, what, batch, figures, ends, measured):
        """PyTorch allocates some workspaces as memory of tensors, so that the measured peak of tensors may have them (attention's backward):
        what the allocator had in all decides then, in percent of the tensors."""
        tensors, allocated, around = measured["tensors"], measured["allocated"], PEAK / 100 * measured["tensors"]
        off = percent(figures["tensor_peak_bytes"], tensors)
        differ = min(abs(off), 100.0 * abs(figures["allocated_peak_bytes"] - allocated) / tensors)
        self.parts.append((differ > PEAK, what, batch, off))
        low, high = ends.get("tensor_range_bytes", [figures["tensor_peak_bytes"]] * 2)
        least, most = (ends.get(k, figures["allocated_peak_bytes"]) for k in ("least_peak_bytes", "locals_peak_bytes"))
        if not (low - around <= tensors <= high + around or least - around <= allocated <= most + around):
            self.outside.add(batch)
        if batch == self.batch and what == "tensors":
            self.width = 100.0 * (high - low) / tensors

    def is_right(self, batch=None):
        parts = [p for p in self.parts if batch in (None, p[2])]
        return not self.why and bool(parts) and not any(p[0] for p in parts) and (batch is not None or not self.refused)

    def is_inside(self, batch=None):
        """Peaks lie between both ends."""
        return not self.why and bool(self.parts) and not self.outside.intersection([batch] if batch else self.outside) and (
            batch is not None or not self.refused)

    def is_silent(self):
        """More than 2 % off, and neither a warning nor a range says so."""
        return not self.codes and any(p[0] and abs(p[3]) > 2 and (p[1] == "kept" or p[2] in self.outside) for p in self.parts)

    def text(self):
        parts = [f"{what} at {batch} {value:+.2f} %" for bad, what, batch, value in self.parts if bad]
        fixed = ["fixed batch"] if self.refused else []
        return ", ".join(parts + fixed + [self.why.partition(FIXED)[0]] * bool(self.why))


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
            row.add("kept", batch, KEPT, figures["saved_activation_bytes"], measured["kept"])
        row.add_peak(optimizer, batch, {**figures, "tensor_peak_bytes": figures["peak_bytes"]}, found["runtimes"]["train"], measured[optimizer])


def inference(exe, path, network, batch, measured, row, options):
    found = report(exe, path, ["--runtime", "torch", *options])
    if isinstance(found, str):
        row.why = found
        return
    row.codes = codes(found)
    if "torch" not in found.get("runtimes", {}):
        row.why = "no figure"
        return
    figures = found["runtimes"]["torch"]
    row.add_peak("tensors", batch, figures, figures, measured["inference"])


def rows(base, exe, network, measured, made, folder):
    """((evidence, mode), row) for each file that there is; the folder is for what is unpacked."""
    for evidence, train, evaluate in EVIDENCE:
        for mode, suffix, work in (("training", train, training), ("inference", evaluate, inference)):
            path = file_of(base, suffix, folder)
            if path is None:
                continue
            own = str(network["batch"])
            row = Row(own)
            is_static = suffix.endswith(".gz") and not made.get(evidence, {}).get("dynamic", True)
            for batch, figures in measured.items():
                if row.why or (is_static and batch != own) or (mode == "inference" and "inference" not in figures):
                    continue
                options = [] if is_static or (suffix.endswith(".onnx") and batch == own) else ["--batch", batch]
                work(exe, path, network, batch, figures, row, options)
                if FIXED in row.why and batch != own:
                    row.refused, row.why = row.why, ""
            if row.parts or row.why or row.refused:
                yield (evidence, mode), row


def write(folder, exe, words, known=None):
    """Of the networks in the folder that are measured: of those sets and names, or of all. `known` is a file with rows that were right;
    the result is whether they are right now."""
    with tempfile.TemporaryDirectory() as unpacked:
        return write_with(folder, exe, words, known, unpacked)


def print_table(sets, kinds, counts, columns):
    print("| evidence |" + "".join(" | ".join([f" {s.replace('_', ' ')}: training", *columns[1:]]) + " |" for s in sets))
    print("|---|" + "--:|" * len(columns) * len(sets))
    for evidence in kinds:
        print(f"| {evidence} | " + " | ".join(" / ".join(map(str, counts[s, evidence, c])) for s in sets for c in columns) + " |")


def print_bad(bad):
    """A line for each network and evidence; those whose batch alone is fixed are listed below."""
    fixed, lines = {}, {}
    for (name, evidence), modes in bad.items():
        texts = {mode: row.text() for mode, row in modes.items()}
        if set(texts.values()) == {"fixed batch"}:
            fixed.setdefault(evidence, []).append(name if len(texts) == 2 else f"{name} ({min(texts)})")
            continue
        warned = sorted({code for row in modes.values() for code in row.codes.split(",") if code})
        cells = texts.get("training", ""), texts.get("inference", ""), ", ".join(warned)
        lines.setdefault((name, *cells), []).append(evidence)
    print("| network | evidence | training | inference | warnings |\n|---|---|---|---|---|")
    for (name, *cells), evidence in lines.items():
        print("| " + " | ".join((name, ", ".join(evidence), *cells)) + " |")
    for evidence, names in sorted(fixed.items()):
        print(f"\nRight at the batch of the file, which is fixed: {evidence}: {', '.join(names)}.")


def write_with(folder, exe, words, known, unpacked):
    both, own, silent = (defaultdict(lambda: [0, 0]) for _ in range(3))
    widths = defaultdict(list)
    bad, good, missing, sets = {}, [], [], []

    def count(counts, key, is_there):
        counts[key][0] += is_there
        counts[key][1] += 1

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
        for (evidence, mode), row in rows(base, exe, network, measured, made, unpacked):
            for counts, batch in ((both, None), (own, row.batch)):
                if batch and not row.why and all(p[2] != batch for p in row.parts):
                    continue  # it was not measured
                count(counts, (which, evidence, mode), row.is_right(batch))
                ranged = "in the range" if mode == "inference" else "peaks in the range"
                count(counts, (which, evidence, ranged), row.is_right(batch) or row.is_inside(batch))
            silent[evidence][0] += row.is_silent()
            silent[evidence][1] += 1
            if row.width is not None:
                widths[evidence].append(row.width)
            if row.is_right():
                good.append(f"{name} {evidence}-{mode}".replace("default export", "default-export").replace("older exporter", "older-exporter"))
            else:
                bad.setdefault((name, evidence), {})[mode] = row
    kinds = [e for e, *_ in EVIDENCE]
    print_table(sets, kinds, both, ("training", "inference", "in the range"))
    print()
    print_bad(bad)
    print()
    print_table(sets, kinds[2:], own, ("training", "peaks in the range", "inference", "in the range"))
    print("\nMore than 2 % off without a warning or a range: " + ", ".join(f"{e} {silent[e][0]} of {silent[e][1]}" for e in kinds if e in silent) + ".")
    print("Width of inference's range at the batch of the file, of the measured tensors, median and nine of ten: " +
          ", ".join(f"{e} {statistics.median(w):.1f} and {sorted(w)[9 * len(w) // 10]:.0f} %" for e, w in widths.items()) + ".")
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
