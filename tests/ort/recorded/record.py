#!/usr/bin/env python3
"""Records what ONNX Runtime's CPU provider allocates in a run, for test_ort_recorded.c.

    cc -shared -fPIC -D_GNU_SOURCE -o interpose.so interpose.c -ldl
    LD_PRELOAD=$PWD/interpose.so ./record.py interpose.so MODEL.onnx OUT.csv [DIM=N ...]

MODEL.onnx needs its weights (samples/export.py makes them). Graph optimizations are off, so that
the nodes that run are those of the file; free dimensions are overridden, so that shapes are known
when buffers are planned; one thread. Three sessions: without arena and pattern every buffer is an
allocation, [run]; with the pattern that is the first allocation of the second run, [pattern]; with
the arena its regions are the allocations of three runs, [regions].
"""
import ctypes
import os
import sys
import tempfile

import numpy
import onnxruntime

TYPES = {"tensor(float)": numpy.float32, "tensor(int64)": numpy.int64, "tensor(bool)": numpy.bool_}


def record(library, model, dims, arena, pattern, runs):
    options = onnxruntime.SessionOptions()
    options.enable_cpu_mem_arena = arena
    options.enable_mem_pattern = pattern
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    for name, size in dims.items():
        options.add_free_dimension_override_by_name(name, size)
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    feeds = {i.name: numpy.ones([d if isinstance(d, int) else dims[d] for d in i.shape], TYPES[i.type])
             for i in session.get_inputs()}
    events = []
    with tempfile.NamedTemporaryFile() as file:
        for _ in range(runs):
            library.record_open(file.name.encode())
            result = session.run(None, feeds)
            library.record_mark(b"end")
            library.record_close()
            del result
            with open(file.name) as lines:
                events.append([line.strip() for line in lines if line != "end\n"])
    return events


def main():
    library = ctypes.CDLL(os.path.abspath(sys.argv[1]))
    model, out = sys.argv[2], sys.argv[3]
    dims = {name: int(size) for name, size in (pair.split("=") for pair in sys.argv[4:])}
    run = record(library, model, dims, False, False, 2)[1]
    pattern = record(library, model, dims, False, True, 2)[1]
    regions = [events for events in record(library, model, dims, True, True, 3)]
    with open(out, "w") as file:
        bound = " ".join(f"{name}={size}" for name, size in dims.items())
        print(f"# onnxruntime {onnxruntime.__version__}, {os.path.basename(model)} {bound}", file=file)
        print("[run]", *run, "[pattern]", *pattern, sep="\n", file=file)
        for number, events in enumerate(regions):
            print(f"[regions {number + 1}]", file=file)
            for event in events:
                print(event.split(",")[2], file=file)


main()
