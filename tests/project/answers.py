"""No surface contradicts another: text, -q, Markdown, JSON, the page's data, Python and the exit status say the same of a model, on
each GPU, in inference and in training, and so do sweeps, searches for the largest batch and sessions that are served together. Expected lines are made here, of the JSON's bytes.

usage: answers.py SOURCE PROGRAM all|some     with the Python package on PYTHONPATH
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import onnxvram

source, program, which = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
GPUS = ["T4", "RTX 4090", "A100 40GB", "H100", "H200"]
TASK_GPUS = ["T4", "H100"]
SOME = {"resnet18.onnx": 8, "resnet18-train.onnx": 64, "gpt2.onnx": 4, "control-flow.onnx": 2}
UNITS = ["B", "KiB", "MiB", "GiB", "TiB"]
contradictions, compared = [], 0


def rounded(count, unit, decimals):
    digits = (2 * count * 10**decimals + unit) // (2 * unit)
    return str(digits) if decimals == 0 else f"{digits // 10**decimals}.{digits % 10**decimals:0{decimals}}"


def size(count):
    """"97.4 MiB"."""
    power = max(p for p in range(5) if count >= 1024**p or p == 0)
    if power == 0:
        return f"{count} B"
    text = rounded(count, 1024**power, 1 if power < 3 else 2)
    return f"{text} {UNITS[power]}" if float(text) < 1024 else f"{rounded(count, 1024**(power + 1), 2 if power >= 2 else 1)} {UNITS[power + 1]}"


def span(of):
    """"3.78–4.12 GiB"."""
    low, high = of["low_bytes"], of["high_bytes"]
    power = max(p for p in range(5) if high >= 1024**p or p == 0)
    first, last = (rounded(x, 1024**power, 0 if power < 3 else 2) for x in (low, high))
    return size(high) if first == last else f"{first}–{last} {UNITS[power]}"


def verdict(device, n_runtimes):
    by = f" (by {device['runtime']})" if n_runtimes > 1 else ""
    release = " unless PyTorch returns cached memory" if device.get("fits_by_release") else ""
    return f", {'fits' if device['fits'] else 'does not fit'} {device['device']}{by}{release}"


def line(path, answer):
    """What -q prints."""
    rows = answer["runtimes"]
    gpu = f" on {answer['gpu']}{' (assumed)' if answer['gpu_assumed'] else ''}" if answer["gpu"] else ""
    return (f"{path}: " + ", ".join(f"{r['runtime']} {span(r)}" for r in rows) + gpu
            + "".join(verdict(d, len(rows)) for d in answer.get("devices", [])))


def cell(fit):
    return span(fit) + ("" if fit["fits"] else ": if cached memory is returned" if fit.get("fits_by_release") else ": no")


def expect(what, holds):
    global compared
    compared += 1
    if not holds:
        contradictions.append(what)


def run(arguments, statuses=(0, 3)):
    made = subprocess.run([program, *map(str, arguments)], cwd=source, capture_output=True, text=True, check=False)
    if made.returncode not in statuses:
        raise SystemExit(f"{' '.join(map(str, arguments))}: status {made.returncode}: {made.stderr}")
    return made.stdout, made.returncode


def words(text):
    """A table's row without the widths of its columns."""
    return [re.sub(r" {2,}", "|", row.strip()) for row in text.splitlines()]


def compare_text(name, answer, text, markdown):
    gpu = f"{answer['gpu']}{' (assumed; --gpu NAME chooses)' if answer['gpu_assumed'] else ''}"
    expect(f"{name}: text: the GPU", f"Needed on {gpu}" in text.splitlines())
    expect(f"{name}: Markdown: the GPU", f"\n**Needed** on {gpu}\n" in markdown)
    rows = words(text)
    for r in answer["runtimes"]:
        expect(f"{name}: text: {r['runtime']}", any(x.startswith(r["runtime"] + "|") and x.endswith("|" + span(r)) for x in rows))
        expect(f"{name}: Markdown: {r['runtime']}",
               any(x.startswith(f"| {r['runtime']} |") and x.endswith(f"| {span(r)} |") for x in markdown.splitlines()))
    for d in answer["devices"]:
        cells = [d["device"], size(d["budget_bytes"]), "yes" if d["fits"] else "no", *(cell(f) for f in d["runtimes"])]
        expect(f"{name}: text: {d['device']}", "|".join(cells) in rows)
        expect(f"{name}: Markdown: {d['device']}", "| " + " | ".join(cells) + " |" in markdown)
    first = text.index("Needed on ")
    headings = ["\nModel\n", "\nMemory of the graph", *(["\nTraining with"] if answer["runtime"] == "train" else [])]
    expect(f"{name}: text: the answer comes first", all(first < text.index(h) for h in headings))


def embedded(page):
    found = re.search(r'<script type="application/json"[^>]*>(.*?)</script>', page.read_text(), re.S)
    return json.loads(found[1])["models"][0]


def without(answer, *keys):
    return {key: value for key, value in answer.items() if key not in keys}


def same_device(a, b):
    """On one GPU alone and in a list: all but whose figures come first."""
    return without(a, "fits_by_release") == without(b, "fits_by_release") and a.get("fits_by_release") == b.get("fits_by_release")


def compare(path, sizes, train, scratch):
    name = f"{path.name}{' ' + train if train else ''}"
    data, page, model = scratch / "report.json", scratch / "report.html", f"samples/{path.name}"
    options = [*sizes, *(["--train", train] if train else [])]
    everywhere = [*options, "--budget", ",".join(GPUS)]
    text, status = run([model, *everywhere, f"--json={data}", f"--html={page}"])
    report = json.loads(data.read_text())["models"][0]
    answer = report["answer"]
    expect(f"{name}: the answer is the first member", next(iter(report)) == "answer")
    quiet, quiet_status = run([model, "-q", *everywhere])
    markdown, _ = run([model, *everywhere, "--format", "markdown"])
    expect(f"{name}: -q: {quiet}", quiet.splitlines()[0] == line(model, answer))
    expect(f"{name}: status", status == quiet_status == (0 if any(d["fits"] for d in answer["devices"]) else 3))
    expect(f"{name}: fit and fits", [f["fits"] for f in report["fits"]] == [d["fits"] for d in answer["devices"]]
           and report["fit"]["fits"] == answer["fits"])
    compare_text(name, answer, text, markdown)
    expect(f"{name}: the page's data", embedded(page)["answer"] == answer)
    for d in answer["devices"]:
        expect(f"{name}: {d['device']}: the upper end decides",
               d["fits"] == all(f["high_bytes"] <= d["usable_bytes"] for f in d["runtimes"]))
    for gpu, device in zip(GPUS, answer["devices"]):
        said, status = run([model, "-q", *options, "--budget", gpu, f"--json={data}"])
        alone = json.loads(data.read_text())["models"][0]["answer"]
        expect(f"{name}: {gpu} alone", same_device(alone["devices"][0], device))
        expect(f"{name}: {gpu} alone: figures", (alone["low_bytes"], alone["high_bytes"], alone["fits"], alone["runtime"], alone["gpu"])
               == (device["low_bytes"], device["high_bytes"], device["fits"], device["runtime"], gpu))
        expect(f"{name}: {gpu} alone: -q", said.splitlines()[0] == line(model, alone) and status == (0 if alone["fits"] else 3))
    run([model, "-q", *options, f"--html={page}"])
    drawn = embedded(page)["answer"]
    expect(f"{name}: GPUs of the page", drawn["usual_devices"] == answer["devices"] and drawn["fits"] is None)
    dims = dict(x.split("=") for x in sizes[1::2])
    with onnxvram.analyze(str(source / model), dims={k: int(v) for k, v in dims.items()}, train=train, budget=GPUS) as found:
        expect(f"{name}: Python", without(found.answer, "remedies") == without(answer, "remedies"))
        expect(f"{name}: Python: fits", found.fits == any(d["fits"] for d in answer["devices"]))
        expect(f"{name}: Python: -q", found.report("text", verbosity=-1).splitlines()[0].split(": ", 1)[1] == quiet.splitlines()[0].split(": ", 1)[1])


def compare_sweep(name, model, sizes, options):
    """Each point is the answer at its size, in JSON, text and CSV."""
    dim, first = sizes[1].split("=")
    sweep = ["sweep", model, "--dim", f"{dim}={first},{int(first) * 2}", *sizes[2:], *options, "--budget", ",".join(TASK_GPUS)]
    made = json.loads(run([*sweep, "--json"])[0])["sweep"]
    rows, table = words(run(sweep)[0]), run([*sweep, "--csv"])[0].splitlines()
    for point in filter(lambda point: point["answer"], made["points"]):
        size = point["bindings"][dim]
        bound = ["--dim", f"{dim}={size}", *sizes[2:]]
        answer = json.loads(run([model, *bound, *options, "--budget", ",".join(TASK_GPUS), "--json"])[0])["models"][0]["answer"]
        fits = {d["device"]: d["fits"] for d in answer["devices"]}
        expect(f"{name}: sweep at {size}", point["answer"] == {
            "runtime": answer["runtime"], "low_bytes": answer["low_bytes"], "high_bytes": answer["high_bytes"], "fits": fits,
            "runtimes": {r["runtime"]: {"low_bytes": r["low_bytes"], "high_bytes": r["high_bytes"]} for r in answer["runtimes"]}})
        cells = [f"{size:,}", *map(span, answer["runtimes"]), *("fits" if fit else "no" for fit in fits.values())]
        expect(f"{name}: sweep at {size}: text", "|".join(cells) in rows)
        for r in answer["runtimes"]:
            line = [str(size), r["runtime"], str(r["low_bytes"]), str(r["high_bytes"]), *(str(fit).lower() for fit in fits.values())]
            expect(f"{name}: sweep at {size}: CSV: {r['runtime']}", ",".join(line) in table)
    expect(f"{name}: sweep: the GPU", made["gpu"] == TASK_GPUS[0])
    expect(f"{name}: sweep: something is answered", any(point["answer"] for point in made["points"]))


def compare_fit(name, model, sizes, options, scratch):
    """The largest batch is one in JSON, text, -q and Python; it fits, and the next one does not."""
    data, others = scratch / "fit.json", sizes[2:]
    fit = ["fit", model, *others, *options, "--budget", ",".join(TASK_GPUS)]
    text, status = run([*fit, f"--json={data}"])
    report = json.loads(data.read_text())["models"][0]
    devices = report["answer"]["devices"]
    quiet, quiet_status = run([*fit, "-q"])
    expect(f"{name}: fit: status", status == quiet_status)
    expect(f"{name}: fit: fit and fits", [[f["fits"], f["max_batch"], f["low_bytes"], f["high_bytes"]] for f in report["fits"]]
           == [[d["fits"], d["max_batch"], d["low_bytes"], d["high_bytes"]] for d in devices])
    for d in devices:
        batches = [f"{r['max_batch']:,}" + (f"; {r['max_batch_by_release']:,}" if "max_batch_by_release" in r else "") for r in d["runtimes"]]
        said = f"; largest batch on {d['device']}: " + ", ".join(
            f"{r['runtime']} {r['max_batch']:,}" for r in d["runtimes"])
        plain = re.sub(r" \([^)]*cached memory[^)]*\)", "", quiet)
        expect(f"{name}: fit: -q: {d['device']}: {quiet}", said in plain)
        expect(f"{name}: fit: text: {d['device']}",
               "|".join([d["device"], size(d["budget_bytes"]), "yes" if d["fits"] else "no", *batches]) in words(text))
        for batch, fits in ((d["max_batch"], True), (d["max_batch"] + 1, False)):
            if batch > 0:
                made, _ = run([model, "-b", batch, *others, *options, "--budget", d["device"], "--json"])
                expect(f"{name}: fit: {batch} on {d['device']}", json.loads(made)["models"][0]["answer"]["fits"] == fits)
    dims = {k: int(v) for k, v in (x.split("=") for x in others[1::2])}
    train = options[1] if options else None
    with onnxvram.analyze(str(source / model), dims=dims, train=train, budget=TASK_GPUS, max_batch=True) as found:
        expect(f"{name}: fit: Python", [(int(b), b.runtime, b.gpu) for b in found.max_batches]
               == [(r["max_batch"], r["runtime"], d["device"]) for d in devices for r in d["runtimes"]])


def compare_serve(name, model, sizes, scratch):
    """Two sessions in one process: the sum, and whether it fits, in text, -q, Markdown, JSON, Python and the status."""
    data = scratch / "serve.json"
    serve = ["serve", f"{model}*2", *sizes, "--budget", "T4,1GiB"]
    text, status = run([*serve, f"--json={data}"])
    sums = json.loads(data.read_text())["together"]
    total = {"low_bytes": sums["total_low_bytes"], "high_bytes": sums["total_high_bytes"]}
    expect(f"{name}: serve: status", status == (0 if any(f["fits"] for f in sums["fits"]) else 3))
    verdicts = [f"Together they {'fit' if f['fits'] else 'do not fit'} {f['device'] or size(f['budget_bytes'])}." for f in sums["fits"]]
    expect(f"{name}: serve: the upper end decides", [f["fits"] for f in sums["fits"]]
           == [total["high_bytes"] <= f["budget_bytes"] for f in sums["fits"]])
    for surface, said in (("text", text), ("-q", run([*serve, "-q"])[0])):
        expect(f"{name}: serve: {surface}", f"total|{span(total)}|all of them at once" in words(said) and all(v in said for v in verdicts))
    markdown, _ = run([*serve, "--format", "markdown"])
    expect(f"{name}: serve: Markdown", f"| total | {span(total)} | all of them at once |" in markdown and all("- " + v in markdown for v in verdicts))
    dims = {k: int(v) for k, v in (x.split("=") for x in sizes[1::2])}
    with onnxvram.analyze(str(source / model), dims=dims, runtime="ort", budget="T4,1GiB") as found:
        expect(f"{name}: serve: Python", onnxvram.together([found], [2]) == sums)


def cases():
    """Of each sample one set of sizes, from what was measured of it; training where the program sizes it."""
    for path in sorted((source / "samples").glob("*.onnx")):
        if which == "some" and path.name not in SOME:
            continue
        measured = sorted((source / "tests/truth").glob(path.stem + ".*.truth.json"))
        sizes = dict(re.findall(r"([a-z]+)(\d+)", measured[0].name.split(".")[1] if measured else "batch2"))
        if path.stem == "resnet50-batch1":
            sizes = {}
        if which == "some" and "batch" in sizes:
            sizes["batch"] = SOME[path.name]
        bound = [x for name, n in sizes.items() for x in ("--dim", f"{name}={n}")]
        yield path, bound, None
        made = subprocess.run([program, str(path), "-q", *bound, "--train", "adamw"], capture_output=True, text=True, check=False)
        if made.returncode == 0:
            yield path, bound, "adamw"
        else:
            print(f"{path.name}: training is not sized: {made.stderr.strip()[-160:]}")


with tempfile.TemporaryDirectory() as folder:
    n = 0
    for case in cases():
        n += 1
        compare(*case, pathlib.Path(folder))
        path, sizes, train = case
        if which == "some" and not path.name.startswith("resnet18"):
            continue
        task = f"samples/{path.name}", sizes, ["--train", train] if train else []
        if sizes:
            compare_sweep(path.name, *task)
        if "batch" in "".join(sizes[1:2]):
            compare_fit(path.name, *task, pathlib.Path(folder))
        if train is None:
            compare_serve(path.name, *task[:2], pathlib.Path(folder))
for found in contradictions:
    print(found)
print(f"{n} cases on {len(GPUS)} GPUs, {compared} comparisons, {len(contradictions)} contradictions")
sys.exit(1 if contradictions or n < 6 else 0)
