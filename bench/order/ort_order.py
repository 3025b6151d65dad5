#!/usr/bin/env python3
"""The order in which ONNX Runtime runs the nodes of a model, by its own profile.

    ort_order.py MODEL.onnx ...

Prints the nodes' places in the file; all inputs are ones, free dimensions 8. Constant nodes do not
run. With optimisation off, onnxruntime 1.31.1 ran control-flow, resnet18, lstm, scan,
mobilenet_v3_small, bert-dynamo, densenet201, vit_b_16-dynamo and swin_t-dynamo in exactly the order
that `--order ort` gives.
"""
import json
import os
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime as ort

TYPES = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(int32)": np.int32,
         "tensor(bool)": np.bool_}


def order_of(path, folder):
    model = onnx.load(path)
    for place, node in enumerate(model.graph.node):
        node.name = f"@{place}"
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.enable_profiling = True
    options.profile_file_prefix = os.path.join(folder, "profile")
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(model.SerializeToString(), options,
                                   providers=["CPUExecutionProvider"])
    feeds = {i.name: np.ones([d if isinstance(d, int) else 8 for d in i.shape], TYPES[i.type])
             for i in session.get_inputs()}
    session.run(None, feeds)
    with open(session.end_profiling()) as file:
        events = [e for e in json.load(file)
                  if e.get("cat") == "Node" and e["name"].endswith("_kernel_time")]
    names = [e["name"].removesuffix("_kernel_time") for e in sorted(events, key=lambda e: e["ts"])]
    return [name[1:] for name in names if name.startswith("@")]


with tempfile.TemporaryDirectory() as scratch:
    for argument in sys.argv[1:]:
        print(argument, *order_of(argument, scratch))
