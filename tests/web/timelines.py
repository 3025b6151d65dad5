"""What --timelines adds to the JSON: columns add up to the figures that the report prints, and refer to what there is.

usage: timelines.py PROGRAM SAMPLES SCRATCH
"""
import base64
import itertools
import json
import pathlib
import subprocess
import sys
import zlib

import onnx_bytes

CASES = [
    ["resnet50.onnx", "--batch", "4"],
    ["resnet18.onnx"],
    ["llama.onnx"],
    ["gpt2.onnx"],
    ["fasterrcnn.onnx"],
    ["control-flow.onnx"],
    ["functions.onnx"],
    ["scan.onnx"],
    ["lstm.onnx"],
    ["resnet18-train.onnx", "--batch", "2", "--train", "adam", "--checkpoint", "sqrt,blocks", "--runtime", "torch,ort"],
    ["resnet18-train.onnx", "--batch", "2", "--train", "adam", "--checkpoint", "sqrt,none,blocks", "--runtime", "torch"],
    ["unet-train.onnx", "--batch", "2", "-d", "height=64", "-d", "width=64", "--train", "sgd"],
]


def column(execution, others, table, key, usual):
    values = execution[table].get(key)
    if isinstance(values, int):
        assert values < len(others), "a column is that of an execution that comes later"
        values = others[values][table][key]
    if values is None:
        return [usual] * execution[table]["count"]
    assert len(values) == execution[table]["count"]
    return list(itertools.accumulate(values))


def figures(model, sized, execution):
    """What the report says of it: the most that is live, allocated, reserved; None where it says nothing."""
    name = execution["runtime"]
    if name == "train":
        training = model["training"]
        plan = training["plans"][execution["plan"]] if "plan" in execution else training
        is_base = "plan" in execution or not any(p.get("chosen") for p in training.get("plans", []))
        if not is_base:
            return None, None, None
        return training.get("requested_peak_bytes") if plan is training else None, plan["allocated_peak_bytes"], \
            plan["reserved_peak_bytes"]
    runtime = sized["runtimes"][name]
    if name in ("ideal", "arena"):
        return runtime["total_bytes"] if name == "ideal" else None, None, runtime["total_bytes"]
    if name == "ort":
        return None, None, runtime["high_bytes"]
    if name == "async":
        return None, runtime["used_peak_bytes"], runtime["reserved_peak_bytes"]
    return None, runtime["allocated_peak_bytes"], runtime["reserved_peak_bytes"]


def check_execution(model, sized, timelines, execution, before):
    def of(table, key, usual=0):
        return column(execution, before, table, key, usual)

    n_names = len(model["tensors"]) + len(timelines["labels"])
    n_steps = execution["steps"]["count"]
    live, allocated, reserved = (of("steps", k + "_bytes") for k in ("live", "allocated", "reserved"))
    start = execution.get("measured_from", 0)
    most = max(live[start:])
    assert most == execution["peak_bytes"] == live[execution["peak_step"]]
    assert max(allocated) == execution["allocated_peak_bytes"]
    assert max(reserved) == execution["reserved_peak_bytes"]
    for mine, printed in zip((most, max(allocated), max(reserved)), figures(model, sized, execution)):
        assert printed is None or mine == printed, (execution["runtime"], mine, printed)
    assert all(-1 <= n < len(model["nodes"]) for n in of("steps", "node", -1))
    assert all(-1 <= n < n_names for n in of("steps", "label", -1))
    names, kinds = of("buffers", "name", -1), of("buffers", "kind")
    size, first, steps = (of("buffers", k) for k in ("bytes", "first", "steps"))
    segment, offset, within = of("buffers", "segment", -1), of("buffers", "offset"), of("buffers", "within", -1)
    transient = of("buffers", "transient")
    segments = of("segments", "bytes")
    assert all(-1 <= n < n_names for n in names)
    assert all(0 <= k < len(timelines["kinds"]) for k in kinds)
    total = [0] * (n_steps + 1)
    for i in range(len(names)):
        assert 0 <= first[i] <= first[i] + steps[i] < n_steps
        assert segment[i] < len(segments) and within[i] < i
        if segment[i] >= 0 and execution["runtime"] != "async":
            assert offset[i] + size[i] <= segments[segment[i]], "a buffer is outside of its segment"
        if within[i] < 0 and not transient[i]:
            total[first[i]] += size[i]
            total[first[i] + steps[i] + 1] -= size[i]
    for step, (mine, said) in enumerate(zip(itertools.accumulate(total), live)):
        assert mine <= said, f"step {step}: buffers are more than what is live"


def check_model(model):
    sized = model if "timelines" in model else model["example"]
    timelines = sized["timelines"]
    modules = timelines["modules"]
    assert len(modules["of_node"]) == len(model["nodes"])
    assert all(0 <= m < len(modules["list"]) for m in itertools.accumulate(modules["of_node"]))
    for i, module in enumerate(modules["list"]):
        assert (module["parent"] is None) == (i == 0) and (i == 0 or module["parent"] < i)
    kinds = [e["runtime"] for e in timelines["executions"]]
    for name in sized.get("runtimes", {}):
        assert name in kinds, name
    for i, execution in enumerate(timelines["executions"]):
        check_execution(model, sized, timelines, execution, timelines["executions"][:i])
    return kinds


def block_of(page):
    text = page.read_text(encoding="utf-8")
    begin = '<script type="application/json" id="report">'
    assert text.count(begin) == 1
    block = text.split(begin)[1].split("</script>")[0]
    assert not set(block) & set("<>&\n") and block.isascii()
    return json.loads(block if block.startswith("{") else zlib.decompress(base64.b64decode(block, validate=True)))


def block_is_plain(page):
    return 'id="report">{' in page.read_text(encoding="utf-8")


def run(program, model, options, scratch):
    html, out, picture = scratch / "page.html", scratch / "report.json", scratch / "picture.svg"
    subprocess.run([program, "-q", model, *options, f"--html={html}", f"--json={out}", "--timelines", "--svg", picture],
                   check=True, stdout=subprocess.DEVNULL)
    report = json.loads(out.read_text())
    shown = block_of(html)
    assert shown.pop("command")[0] == "report"
    assert shown == report, "the page and --json differ"
    return report, html.stat().st_size, picture.read_text(encoding="utf-8")


def main():
    program, samples, scratch = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    for name, *options in CASES:
        report, size, picture = run(program, samples / name, options, scratch)
        kinds = check_model(report["models"][0])
        assert picture.startswith("<svg ") and picture.rstrip().endswith("</svg>")
        print(f"{name}: {', '.join(kinds)}; {size:,} bytes")
        assert name != "resnet50.onnx" or size < 1 << 20
    large = scratch / "large.onnx"
    large.write_bytes(onnx_bytes.large(10000))
    report, size, _ = run(program, large, ["--batch", "8"], scratch)
    check_model(report["models"][0])
    print(f"10,000 nodes, {len(report['models'][0]['tensors']):,} tensors: {size:,} bytes")
    assert size < 1 << 20 and not block_is_plain(scratch / "page.html")
    hostile = scratch / "hostile.onnx"
    hostile.write_bytes(onnx_bytes.hostile())
    _, _, picture = run(program, hostile, ["--batch", "2", "-d", "<b>width</b>=5"], scratch)
    for tag in "<script", "<img", "<b>", "<svg onload", "\u202e":
        assert tag not in picture, tag


main()
