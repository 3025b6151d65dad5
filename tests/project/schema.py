"""schema.py SOURCE PROGRAM: reports of all samples, of the options that add parts, those that tests hold and those in
pages, against the schema that is installed; and the keys that the code writes against those that the schema has, and
against those of the reports."""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import jsonschema

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(sys.argv[1]) / "tests/web"))
import onnx_bytes

source, program = pathlib.Path(sys.argv[1]), sys.argv[2]
schema = json.loads((source / "share/report.schema.json").read_text())
jsonschema.Draft202012Validator.check_schema(schema)


def strict(part):
    """Readers skip keys that they do not know; here each has to be in the schema."""
    if isinstance(part, list):
        return [strict(value) for value in part]
    if not isinstance(part, dict):
        return part
    made = {key: strict(value) for key, value in part.items()}
    if part.get("type") == "object" and "properties" in part and "additionalProperties" not in part:
        made["additionalProperties"] = False
    return made


validator = jsonschema.Draft202012Validator(strict(schema))
# Readers of earlier releases: a report is as the schema says that they were written by. Sweeps had none.
earlier = {path.name: jsonschema.Draft202012Validator(json.loads(path.read_text()))
           for path in sorted((source / "tests/frozen").glob("report-*.schema.json"))}
failures, seen = [], set()


def known_keys(part):
    """Of the schema: its properties, at any depth."""
    if isinstance(part, dict):
        yield from (key for key, value in part.get("properties", {}).items() if isinstance(value, (dict, bool)))
        for value in part.values():
            yield from known_keys(value)
    elif isinstance(part, list):
        for value in part:
            yield from known_keys(value)


def note_keys(part):
    if isinstance(part, dict):
        seen.update(part)
        part = list(part.values())
    if isinstance(part, list):
        for value in part:
            note_keys(value)


def kind_of(part):
    """What the schema can tell of a value: its keys and types, words, whether numbers are negative."""
    if isinstance(part, dict):
        texts = ("name", "node", "path", "shape", "message", "text")
        return tuple((key, (isinstance(value, str) and key in texts) or kind_of(value)) for key, value in part.items())
    if isinstance(part, list):
        return tuple(sorted({kind_of(value) for value in part}, key=repr))
    if isinstance(part, (int, float)) and not isinstance(part, bool):
        return type(part).__name__, part < 0
    return part


def shorten(part):
    """Of long lists one value of each kind."""
    if isinstance(part, dict):
        return {key: shorten(value) for key, value in part.items()}
    if not isinstance(part, list):
        return part
    if len(part) > 16:
        part = list({kind_of(value): value for value in part}.values())
    return [shorten(value) for value in part]


def validate(report, text):
    note_keys(report)
    for error in list(validator.iter_errors(shorten(report)))[:3]:
        place = "/".join(map(str, error.absolute_path))
        failures.append(f"{text}: {place}: {error.message[:300]}")
    for name, other in earlier.items() if not {"sweep", "deployment"} & set(report) else ():
        failures.extend(f"{text}: {name}: {error.message[:300]}" for error in list(other.iter_errors(shorten(report)))[:3])


# What the first readers were promised: each key with what is behind it. A tuple is a choice.
NUMBER, TEXT, PLACE = int, str, (int, type(None))
BY_RUNTIME = {"ideal": ("activation_peak_bytes",), "arena": ("activation_peak_bytes", "lower_bound_bytes"),
              "torch": ("allocated_peak_bytes", "reserved_peak_bytes"), "ort": ("first_run_bytes", "steady_bytes"),
              "async": ("used_peak_bytes", "reserved_peak_bytes")}
OLDEST = {
    "path": TEXT, "ir_version": NUMBER, "producer": TEXT, "opset_import": {"": NUMBER}, "bindings": {"batch": NUMBER},
    "parameters": {"count": NUMBER, "bytes": NUMBER}, "macs": NUMBER,
    "tensors": [{"name": TEXT, "kind": TEXT, "dtype": TEXT, "shape": list, "bytes": NUMBER, "first_step": PLACE, "last_step": PLACE,
                 "alias_of": (str, type(None))}],
    "nodes": [{"step": NUMBER, "name": TEXT, "op_type": TEXT, "domain": TEXT, "inputs": list, "outputs": list, "macs": NUMBER,
               "live_bytes": NUMBER}],
    "peak": {"bytes": NUMBER, "step": NUMBER, "node": TEXT, "tensors": [TEXT]},
    "runtimes": {name: {key: NUMBER for key in (*keys, "total_bytes")} for name, keys in BY_RUNTIME.items()},
    "fit": {"budget_bytes": NUMBER, "fits": bool, "max_batch": NUMBER},
    "training": {"optimizer": TEXT, "parameter_bytes": NUMBER, "gradient_bytes": NUMBER, "optimizer_bytes": NUMBER,
                 "saved_activation_bytes": NUMBER, "peak_bytes": NUMBER,
                 "plans": [{"name": TEXT, "peak_bytes": NUMBER, "saved_activation_bytes": NUMBER, "recompute_macs": NUMBER,
                            "overhead": float}]},
    "replay": {"device": TEXT, "predicted_bytes": NUMBER, "measured_bytes": NUMBER, "agrees": bool},
    "diagnostics": [{"severity": TEXT, "code": TEXT, "node": TEXT, "message": TEXT}]}


def read(part, wanted, place):
    """As such a reader does: it takes what it knows, and skips all else."""
    if isinstance(wanted, dict):
        for key, value in wanted.items():
            if not isinstance(part, dict) or key not in part:
                failures.append(f"a reader of the first version misses {place}.{key}")
            else:
                read(part[key], value, f"{place}.{key}")
    elif isinstance(wanted, list):
        if not part:
            failures.append(f"a reader of the first version finds nothing in {place}")
        for value in part:
            read(value, wanted[0], place + "[]")
    elif not isinstance(part, wanted):
        failures.append(f"a reader of the first version finds {part!r} at {place}")


def check_oldest(one, other):
    """All parts of the first version, in two reports; and sums that it could rely on."""
    found = {**one, **{key: other[key] for key in ("training", "replay")}}
    read(found, OLDEST, "model")
    sums = {"peak": (found["peak"]["bytes"], max(node["live_bytes"] for node in found["nodes"])),
            "ideal": (found["runtimes"]["ideal"]["total_bytes"], found["parameters"]["bytes"] + found["peak"]["bytes"]),
            "fit": (found["fit"]["fits"], found["answer"]["fits"])}
    # What a runtime holds is a part of what is on the device, which the answer says.
    for row in found["answer"]["runtimes"]:
        of = found["runtimes"][row["runtime"]]
        sums[row["runtime"]] = of["total_range_bytes"], [row["low_bytes"], row["high_bytes"]]
        sums[row["runtime"] + " holds"] = True, of["total_bytes"] + of["driver_bytes"] < row["high_bytes"]
    failures.extend(f"a reader of the first version finds other sums: {name}: {a} and {b}" for name, (a, b) in sums.items() if a != b)


def check(*arguments, statuses=(0, 3)):
    command = [program, *map(str, arguments), "--json"]
    made = subprocess.run(command, cwd=source, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    text = " ".join(command[1:])
    if made.returncode not in statuses:
        failures.append(f"{text}: exit status {made.returncode}: {made.stderr.decode(errors='replace')}")
        return
    validate(json.loads(made.stdout), text)


def samples():
    """Of each sample one set of sizes, from what was measured of it."""
    for path in sorted((source / "samples").glob("*.onnx")):
        measured = sorted((source / "tests/truth").glob(path.stem + ".*.truth.json"))
        sizes = measured[0].name.split(".")[1] if measured else "batch2"
        yield path, [x for name, size in re.findall(r"([a-z]+)(\d+)", sizes) for x in ("--dim", f"{name}={size}")]


for path, sizes in samples():
    check(f"samples/{path.name}", *(sizes if path.stem != "resnet50-batch1" else []), statuses=(0,))

r18, trained, llama = "samples/resnet18.onnx", "samples/resnet18-train.onnx", "samples/llama.onnx"
context = ("--dim", "batch=1", "--dim", "sequence=1", "--dim", "total=32", "--dim", "past=31")
with tempfile.TemporaryDirectory() as folder:
    before, requests = pathlib.Path(folder) / "before.json", pathlib.Path(folder) / "requests.csv"
    requests.write_text("batch\n1\n4\n2\n")
    subprocess.run([program, r18, "-b", "2", f"--json={before}"], cwd=source, check=True, stdout=subprocess.DEVNULL)
    # Free dims: a formula and an example.
    for name in ("resnet18", "llama", "lstm", "control-flow", "scan", "functions"):
        check(f"samples/{name}.onnx")
    # Orders, formats of weights, what the application holds.
    for order in ("ort", "greedy", "optimal"):
        check(r18, "-b", 2, "--order", order, "--align", 256)
    check(llama, *context, "--weight-format", "int4")
    check(llama, *context, "--kv-cache", "copies")
    check(llama, *context, "--kv-cache", "shared", "--budget", "T4")
    check(llama, "--kv-cache", "shared")
    # Budgets and baselines.
    check(r18, "-b", 2, "--budget", "T4,1MB,8GiB", "--max-batch", "--objective", "throughput", "--margin", 10)
    check(r18, "--budget", "1MB", "-b", 1)
    check("samples/unet.onnx", "-b", 1, "-d", "width=1024", "--runtime", "torch", "--budget", "T4", "--max-dim", "height")
    check(r18, "-b", 3, "--baseline", before, "--max-growth", 1)
    check(r18, "-b", 2, "--baseline", before)
    # What was measured.
    tiny = ("tests/measured/tiny.onnx", "-b", 8, "--train", "adamw", "--inplace=none")
    for snapshot, statuses in (("late", (0,)), ("longer", (0,)), ("early", (4,))):
        check(*tiny, "--snapshot", f"tests/fuzz/corpus/snapshot/{snapshot}.pickle", "--measured", "500MiB", statuses=statuses)
    # ONNX Runtime.
    check(r18, "-b", 2, "--ort-advise", "--ort", "gpu_mem_limit=67108864")
    check(r18, "--shape-trace", requests)
    check(r18, trained, "-b", 2, "--together", "--budget", "T4,1GiB")
    check("sweep", r18, "-b", "1,2", "--budget", "T4")
    # Standard output has the formulas themselves.
    formulas = pathlib.Path(folder) / "formulas.json"
    subprocess.run([program, "samples/bert.onnx", "--runtime", "torch", "--formula", f"--json={formulas}"], cwd=source, check=True, stdout=subprocess.DEVNULL)
    validate(json.loads(formulas.read_text()), "--formula --json")
    # PyTorch.
    check("tests/tape/programs/cbam.archive.json.gz", "-b", 2)
    check(r18, "-b", 2, "--runtime", "torch", "--locals", "--inplace", "--channels-last", "--gpu", "T4", "--cached", "2GiB")
    check(trained, "-b", 2, "--train", "adam", "--checkpoint", "all,save=convolution,reentrant", "--runtime", "torch,ideal")
    check(trained, "-b", 2, "--train", "sgd", "--checkpoint", "optimal", "--budget", "8GiB", "--max-batch")
    check(trained, "-b", 2, "--train", "adam", "--checkpoint", "offload,joint", "--budget", "1GiB")
    check("samples/mobilenet_v2-train.onnx", "-b", 2, "--train", "adam", "--checkpoint", "joint,offload")
    check(trained, "-b", 2, "--train", "adam", "--compile=0.5", "--cudnn-benchmark", "--ema", "--offload", "optimizer")
    check(trained, "-b", 2, "--train", "adam", "--precision", "bf16", "--master-weights")
    check(trained, "-b", 2, "--train", "adam", "--fsdp", "--world", 4)
    check(trained, "-b", 2, "--train", "adam", "--checkpoint", "every=3", "--replay=host", statuses=(0, 3, 4))
    check(trained, "-b", 2, "--train", "adam", "--ddp", "--world", 2, "--accumulate", 2)
    check("samples/vit-small-train.onnx", "-b", 2, "--train", "adamw", "--weight-format", "nf4", "--freeze", "encoder*")
    check(trained, "-b", 32, "--train", "adam", "--budget", "1750MiB")
    # What drawings need.
    check(trained, "-b", 2, "--train", "adam", "--checkpoint", "sqrt", "--timelines")
    check(r18, "--timelines", "--runtime", "ideal,torch")
    check(r18, "-b", 2, "--timelines", "--runtime", "ort,arena,async")
    page = pathlib.Path(folder) / "page.html"
    subprocess.run([program, trained, "-b", "2", "--train", "adam", "--checkpoint", "offload", f"--html={page}"], cwd=source,
                   check=True, stdout=subprocess.DEVNULL)
    embedded = re.search(r'<script type="application/json"[^>]*>(.*?)</script>', page.read_text(), re.S)
    validate(json.loads(embedded[1]), "the page of --html")
    # Replays and diffs.
    check(r18, "-b", 1, "--replay=host", "--runtime", "torch,async", statuses=(0, 3, 4))
    check(r18, "--replay=host", "--runtime", "async", "--budget", "100MB", "--max-batch", "-b", 1, statuses=(0, 3, 4))
    check(r18, "--replay=host", "--runtime", "torch", "--budget", "30MB", "--max-batch", "-b", 1, statuses=(0, 3, 4))
    # Operators that are not known: no formula, and more notes than are kept.
    unknown = pathlib.Path(folder) / "unknown.onnx"
    nodes = [onnx_bytes.node(f"Nothing{i}", ["x"], [f"y{i}"], f"n{i}") for i in range(1100)]
    unknown.write_bytes(onnx_bytes.model([onnx_bytes.value(11, "x", ["batch", 4]), *nodes, onnx_bytes.value(12, "y0", ["n"])]))
    check(unknown)
    check(r18, "-b", 2, "--runtime", "cpu")
    check(r18, "-b", 2, "--runtime", "tensorrt", "--workspace", "1GiB")
    check(r18, "-b", 2, "--gpu", "K80", "--train", "adamw")  # without published speeds
    # Deployments.
    served = pathlib.Path(folder) / "served"
    (served / "net/1").mkdir(parents=True)
    (served / "net/1/model.onnx").write_bytes((source / r18).read_bytes())
    (served / "net/config.pbtxt").write_text("max_batch_size: 2")
    check("--triton", served, "--budget", "T4,1MB")
    (served / "genai_config.json").write_text(json.dumps({"model": {
        "context_length": 64, "vocab_size": 100, "decoder": {
            "filename": "llama.onnx", "session_options": {"provider_options": [{"cuda": {}}]}}}}))
    (served / "llama.onnx").write_bytes((source / llama).read_bytes())
    sizes = [x for dim in ("batch=1", "sequence=16", "past=16", "total=32") for x in ("--dim", dim)]
    check("--genai", served, *sizes, "--budget", "T4")
    check("absent.onnx", r18, "README.md", "-b", 1, statuses=(1,))
    check("absent.onnx", statuses=(1,))
    both = pathlib.Path(folder) / "one.json", pathlib.Path(folder) / "other.json"
    for file, words in zip(both, ((r18, "--budget", "T4", "--max-batch"),
                                  (trained, "--train", "sgd", "--checkpoint", "sqrt", "--replay=host"))):
        subprocess.run([program, *words, "-b", "2", "-q", f"--json={file}"], cwd=source, check=False, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
    check_oldest(*(json.loads(file.read_text())["models"][0] for file in both))
# Those that tests hold.
for path in sorted((source / "tests/report/golden").glob("*.json")):
    validate(json.loads(path.read_text()), path.name)
check("diff", r18, trained, "-b", 2)
check("diff", r18, "samples/resnet18-dynamo.onnx")
check("diff", trained, trained, "-b", 2, "--train", "adam")

known = set(known_keys(schema))
code = "".join(path.read_text() for path in (source / "src/report").glob("json*.c")) + (source / "src/report/diff.c").read_text()
written = set(re.findall(r'(?:onv_json_key|onv_json_put_\w+|put_(?:bool|dim|rows)|write_series|write_range)\(\s*[\w>.&-]+,\s*"(\w+)"', code))
failures += [f"the code writes '{key}', which the schema lacks" for key in sorted(written - known)]
# One needs a network of its own that the notes of no sample place; another is of products that bitsandbytes expands.
never = known - seen - {"by_hand", "dequantized_bytes"}
failures += [f"no report has '{key}'" for key in sorted(never)]
print(f"{len(known)} keys, in reports {len(known & seen)}; in none: {', '.join(sorted(known - seen)) or '-'}")
for failure in failures:
    print(failure)
sys.exit(bool(failures))
