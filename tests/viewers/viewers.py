"""What --memory-viz, --perfetto and --model-explorer write, as the packages of these viewers read it.

    viewers.py snapshot|torch|perfetto|model-explorer PROGRAM SAMPLES SCRATCH

Exits with 77 where the package that the check is named after is missing. "snapshot" and "perfetto" need Python alone.
"""

import json
import pathlib
import pickle
import subprocess
import sys

CASES = [
    ("resnet18", ["--batch", "2"]),
    ("resnet18", ["--batch", "2", "--runtime", "ort"]),
    ("resnet18", ["--batch", "2", "--runtime", "arena"]),
    ("resnet18", ["--batch", "2", "--runtime", "async"]),
    ("resnet18", ["--batch", "2", "--expandable-segments"]),
    ("scan", ["--batch", "2", "--dim", "sequence=5"]),
    ("control-flow", ["--batch", "2"]),
    ("resnet18-train", ["--batch", "8", "--train", "adamw"]),
    ("resnet18-train", ["--batch", "8", "--train", "sgd", "--checkpoint", "sqrt"]),
    ("resnet18-train", ["--batch", "8", "--train", "adam", "--expandable-segments"]),
]


def analyse(program, samples, scratch, name, options, option):
    """The file that the option writes, and the model's report."""
    out, report = scratch / "out", scratch / "report.json"
    subprocess.run([program, "-q", samples / f"{name}.onnx", *options, option, out, f"--json={report}", "--timelines"], check=True,
                   stdout=subprocess.DEVNULL)
    return out, json.loads(report.read_text())["models"][0]


def shown(model, options):
    """The execution that the viewers show, as the report has it."""
    runs = model["timelines"]["executions"]
    if "--checkpoint" in options:
        return next(e for e in runs if "plan" in e)
    name = "train" if "--train" in options else options[options.index("--runtime") + 1] if "--runtime" in options else "torch"
    return next(e for e in runs if e["runtime"] == name)


def run_trace(trace):
    """Lives through the events; the most that was requested and reserved. Everything has gone back at the end."""
    blocks, segments, requested, reserved, peaks = {}, {}, 0, 0, [0, 0]
    for e in trace:
        action, address, size = e["action"], e["addr"], e["size"]
        if action == "alloc":
            assert address not in blocks and size > 0
            blocks[address] = size
            requested += size
        elif action == "free_requested":
            assert blocks[address] == size
        elif action == "free_completed":
            assert blocks.pop(address) == size
            requested -= size
        elif action in ("segment_alloc", "segment_map"):
            assert address not in segments
            segments[address] = size
            reserved += size
        elif action == "segment_free":
            assert segments.pop(address) == size
            reserved -= size
        else:
            assert action == "segment_unmap", action
            for at in [a for a in segments if address <= a < address + size]:
                reserved -= segments.pop(at)
        assert e["frames"] and all(set(f) == {"name", "filename", "line"} for f in e["frames"])
        peaks = [max(peaks[0], requested), max(peaks[1], reserved)]
    assert not blocks and not segments and requested == reserved == 0
    return peaks


def check_snapshot(data, execution):
    requested, reserved = run_trace(data["device_traces"][0])
    assert data["device_traces"][1] == []
    segments = data["segments"]
    total = sum(s["total_size"] for s in segments)
    allocated = sum(s["allocated_size"] for s in segments)
    if execution["runtime"] != "async":  # its pool reserves by itself
        assert reserved == execution["reserved_peak_bytes"], (reserved, execution["reserved_peak_bytes"])
    assert allocated == execution["allocated_peak_bytes"], (allocated, execution["allocated_peak_bytes"])
    assert total <= reserved  # it may grow after the peak
    for s in segments:
        assert s["device"] == 1 and sum(b["size"] for b in s["blocks"]) == s["total_size"]
        at = s["address"]
        for b in s["blocks"]:
            assert b["address"] == at and b["requested_size"] <= b["size"]
            at += b["size"]
    return total, sum(s["requested_size"] for s in segments), requested


def snapshot(program, samples, scratch):
    for name, options in CASES:
        out, model = analyse(program, samples, scratch, name, options, "--memory-viz")
        total, at_peak, requested = check_snapshot(pickle.loads(out.read_bytes()), shown(model, options))
        print(f"{name} {' '.join(options)}: {total} reserved, {at_peak} of {requested} requested at the peak")


def torch(program, samples, scratch):
    try:
        from torch.cuda import _memory_viz
    except ImportError:
        return 77
    for name, options in CASES:
        out, model = analyse(program, samples, scratch, name, options, "--memory-viz")
        data, execution = pickle.loads(out.read_bytes()), shown(model, options)
        sums = _memory_viz.segsum(data)
        for key, bytes_ in (("total_reserved", sum(s["total_size"] for s in data["segments"])),
                            ("total_allocated", sum(s["requested_size"] for s in data["segments"]))):
            assert f"{key}: {_memory_viz.Bytes(bytes_)}\n" in sums, sums
        lines = _memory_viz.memory(data, format_flamegraph=lambda text: text).splitlines()
        assert sum(int(line.rsplit(" ", 1)[1]) for line in lines) == sum(s["total_size"] for s in data["segments"])
        entries = _memory_viz.trace(data).splitlines()
        assert f"{len(data['device_traces'][0])} entries" in entries[:3], entries[:3]
        print(f"{name} {' '.join(options)}: {execution['allocated_peak_bytes']} allocated")
    return 0


def perfetto(program, samples, scratch):
    for name, options in CASES:
        out, model = analyse(program, samples, scratch, name, options, "--perfetto")
        titles, most, slices, peaks = {}, {}, {}, {}
        for e in json.loads(out.read_text())["traceEvents"]:
            pid, arguments = e["pid"], e["args"]
            if e["ph"] == "M" and e["name"] == "process_name":
                titles[pid] = arguments["name"]
            elif e["ph"] == "C":
                most[pid, e["name"]] = max(most.get((pid, e["name"]), 0), arguments["bytes"])
            elif e["ph"] == "X":
                slices.setdefault(pid, []).append((e["ts"], e["dur"], arguments.get("step")))
            elif e["ph"] == "i":
                peaks[pid] = (e["ts"], arguments["bytes"])
        runs = model["timelines"]["executions"]
        assert len(titles) == len(runs)
        for (pid, title), e in zip(titles.items(), runs):
            steps = [s for s in slices[pid] if s[2] is not None]
            groups = [s for s in slices[pid] if s[2] is None]
            assert most[pid, "allocated"] == e["allocated_peak_bytes"], (title, e["allocated_peak_bytes"])
            assert most[pid, "reserved"] == e["reserved_peak_bytes"], title
            assert most[pid, "live"] >= e["peak_bytes"] and peaks[pid] == (e["peak_step"], e["peak_bytes"]), title
            assert [s[:2] for s in steps] == [(i, 1) for i in range(e["steps"]["count"])]
            assert sum(length for _, length, _ in groups) == e["steps"]["count"]
            assert all(a[0] + a[1] == b[0] for a, b in zip(groups, groups[1:]))
        print(f"{name} {' '.join(options)}: {', '.join(titles.values())}")
    return 0


def model_explorer(program, samples, scratch):
    try:
        from model_explorer import node_data_builder as ndb
        from model_explorer.config import ModelExplorerConfig
    except ImportError:
        return 77
    for name, options in CASES:
        out, model = analyse(program, samples, scratch, name, options, "--model-explorer")
        data = json.loads(out.read_text())
        built = ndb.GraphNodeData(results={k: ndb.NodeDataResult(**v) for k, v in data["results"].items()}, name=data["name"],
                                  gradient=[ndb.GradientItem(**g) for g in data["gradient"]])
        assert json.loads(built.to_json_string())["results"] == data["results"]
        taken = ModelExplorerConfig()
        taken.add_node_data(name=data["name"], node_data=built)
        taken.add_node_data_from_path(str(out))
        assert [g["stop"] for g in data["gradient"]] == [0, 0.5, 1]
        assert max(r["value"] for r in data["results"].values()) <= shown(model, options)["peak_bytes"]
        if "--train" not in options:
            assert max(r["value"] for r in data["results"].values()) == shown(model, options)["peak_bytes"]
        names = {n["name"] for n in model["nodes"]} | {o for n in model["nodes"] for o in n["outputs"]}
        missing = [k for k in data["results"] if k not in names]
        if "ort" not in options:
            assert not missing, missing[:3]
        print(f"{name} {' '.join(options)}: {len(data['results'])} nodes")
    return 0


if __name__ == "__main__":
    check = {"snapshot": snapshot, "torch": torch, "perfetto": perfetto, "model-explorer": model_explorer}[sys.argv[1]]
    sys.exit(check(sys.argv[2], pathlib.Path(sys.argv[3]), pathlib.Path(sys.argv[4])))
