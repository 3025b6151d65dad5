#!/usr/bin/env python3
"""Estimated times next to what can be known of them: PyTorch's own counters, and published throughputs.

    python scripts/export/speed.py counters build/release/onnxvram FOLDER [NAME...]     # FOLDER: programs are kept there
    python scripts/export/speed.py published build/release/onnxvram FOLDER [NAME...]

Needs torch, torchvision, timm and transformers; no GPU.  `counters`: multiply-accumulates of
torch.utils.flop_counter, and bytes of the operations that PyTorch dispatches: operands and results of each, but of views.  The
counter forgets the groups of a convolution where it counts the gradient of weights; here they count.  `published`: samples per
second of NVIDIA/DeepLearningExamples, PyTorch, one GPU (tests/truth/published_speed.csv). Batches of training are those of the README; of
resnet50 and efficientnet_b0, whose READMEs name none, 128.  TF32 of BERT is not there: cuBLAS computed it, as that container lets it.
Prints CSV.
"""
import csv
import os
import sys

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode, conv_flop_count

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, os.pardir)
sys.path.insert(0, os.path.join(ROOT, "scripts"))
from truth.exports import by_batch  # noqa: E402
from truth.harness import report  # noqa: E402
from truth.networks.speed import COUNTED, PUBLISHED  # noqa: E402


class Traffic(TorchDispatchMode):
    """Bytes of operands and results, but of views."""
    bytes = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        read = [x for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
        made = [x for x in tree_leaves(out) if isinstance(x, torch.Tensor)]
        places = {x.untyped_storage().data_ptr() for x in read}
        if made and (func._schema.is_mutable or not all(x.untyped_storage().data_ptr() in places for x in made)):
            self.bytes += sum(min(x.numel() * x.element_size(), x.untyped_storage().nbytes()) for x in read + made)
        return out


def convolution_backward(grad, x, weight, _bias, _stride, _padding, _dilation, transposed, _output, _groups, wanted, **_kwargs):
    return sum(wanted[:2]) * conv_flop_count(x, weight, grad, transposed)


def macs_of(run):
    with FlopCounterMode(display=False, custom_mapping={torch.ops.aten.convolution_backward: convolution_backward}) as counter:
        run()
    return counter.get_total_flops() // 2


def bytes_of(run):
    with Traffic() as traffic:
        run()
    return traffic.bytes


def export(network, made, folder, is_open):
    """Its program; `is_open`: of any batch."""
    path = os.path.join(folder, network.name.replace(" ", "_") + ".pt2")
    if not os.path.exists(path):
        inputs = network.inputs(network.batch)
        shapes = by_batch(made, inputs, torch.export.Dim("batch")) if is_open else None
        torch.export.save(torch.export.export(made, inputs, dynamic_shapes=shapes), path)
    return path


def analyse(program, path, *options):
    model = report(program, path, list(options))
    if isinstance(model, str):
        raise RuntimeError(model)
    return model["training"]["time"] if "training" in model else model["runtimes"]["torch"]["time"], model


def sum_of(result):
    """Of a tensor, or of the first of a tuple."""
    return (result if isinstance(result, torch.Tensor) else result[0]).sum()


def counters(program, folder, names):
    print("network,forward MACs,predicted,step MACs,predicted,step bytes,predicted,forward bytes,predicted")
    for row in COUNTED:
        if names and row.name not in names:
            continue
        network, (x,) = row.make().train(), row.inputs(row.batch)
        path = export(row, network, folder, False)
        forward, step = macs_of(lambda: network(x)), macs_of(lambda: sum_of(network(x)).backward())
        network.zero_grad()
        step_bytes = bytes_of(lambda: sum_of(network(x)).backward())
        time, model = analyse(program, path, "-b", "2", "--gpu", "A100 40GB", "--train", "sgd", "--loss", "none")
        # SGD reads parameters and gradients, and writes parameters.
        without = time["bytes"] - 3 * model["training"]["gradient_bytes"]
        network.eval()
        with torch.no_grad():
            pass_bytes = bytes_of(lambda: network(x))
        one, _ = analyse(program, path, "-b", "2", "--gpu", "A100 40GB", "--runtime", "torch")
        print(row.name, forward, one["macs"], step, time["macs"], step_bytes, without, pass_bytes, one["bytes"], sep=",", flush=True)


def published(program, folder, names):
    print("network,what,batch,GPU,type,published,low,high,inside")
    with open(os.path.join(ROOT, "tests/truth/published_speed.csv"), newline="") as file:
        rows = list(csv.reader(file))[1:]
    for name, what, batch, gpu, kind, rate in rows:
        if names and name not in names:
            continue
        path = export(PUBLISHED[name], PUBLISHED[name].make().train(), folder, True)
        options = ["-b", batch, "--gpu", gpu] + (["--amp", "fp16"] if kind == "fp16" else [])
        options += ["--train", "lamb" if name.startswith("bert") else "momentum"] if what == "train" else ["--runtime", "torch"]
        time, _ = analyse(program, path, *options)
        low, high = int(batch) / time["seconds"]["high"], int(batch) / time["seconds"]["low"]
        print(name, what, batch, gpu, kind, rate, round(low, 1), round(high, 1), low <= float(rate) <= high, sep=",", flush=True)


if __name__ == "__main__":
    {"counters": counters, "published": published}[sys.argv[1]](*sys.argv[2:4], sys.argv[4:])
