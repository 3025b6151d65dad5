#!/usr/bin/env python3
"""Measure what autograd keeps between forward and backward, to judge training predictions by.

Every tensor that PyTorch saves for backward on the CPU is caught by a hook; each distinct storage counts once, at its
whole size, and parameters and buffers are left out.  The loss is the cross-entropy of the output with int64 targets.
Two batch sizes give the two numbers: saved = saved_fixed + N * saved_per_sample; a third must agree.

    python scripts/export/saved.py [--out tests/truth] [NAME...]

`buffer_bytes` is what the saved buffers (running statistics) measure, should a reader want to count them as saved.
Attention runs as the separate operations that an export shows, not as a fused kernel; PyTorch then scales queries and
keys each by the root of the factor, which keeps two more tensors a layer than releases before 2.0 did.
"""

import argparse
import json
import os
import sys

import torch
import torchvision
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, os.pardir, os.pardir, "samples"))
import nets  # noqa: E402

NETWORKS = {  # constructor, input of one sample
    "resnet18-train": (torchvision.models.resnet18, (3, 224, 224)),
    "mobilenet_v2-train": (torchvision.models.mobilenet_v2, (3, 224, 224)),
    "vit-small-train": (nets.small_vit, (3, 96, 96)),
    "unet-train": (nets.UNet, (3, 64, 64)),
    "resnet50": (torchvision.models.resnet50, (3, 224, 224)),
    "vgg16": (torchvision.models.vgg16, (3, 224, 224)),
    "vit_b_16": (torchvision.models.vit_b_16, (3, 224, 224)),
}


def saved_bytes(model, shape, batch):
    """Bytes of the saved storages, those of buffers counted apart."""
    parameters = {p.untyped_storage().data_ptr() for p in model.parameters()}
    buffers = {b.untyped_storage().data_ptr() for b in model.buffers()}
    storages = {}
    kept = []  # tensors stay alive here, so that no address is used twice

    def pack(tensor):
        storage = tensor.untyped_storage()
        kept.append(tensor.detach())
        storages[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor), sdpa_kernel(SDPBackend.MATH):
        output = model(torch.rand(batch, *shape))
        targets = torch.zeros((batch, *output.shape[2:]), dtype=torch.int64)
        F.cross_entropy(output, targets)
    for address in parameters:
        storages.pop(address, None)
    of_buffers = sum(size for address, size in storages.items() if address in buffers)
    return sum(storages.values()) - of_buffers, of_buffers


def measure(name):
    make, shape = NETWORKS[name]
    torch.manual_seed(0)
    model = make().train()
    (two, buffer_bytes), (three, _), (four, _) = (saved_bytes(model, shape, batch) for batch in (2, 3, 4))
    per_sample = three - two
    if four - three != per_sample:
        print(f"{name}: not linear in the batch: {two}, {three}, {four}", file=sys.stderr)
    parameters = sum(p.numel() for p in model.parameters())
    return {"saved_fixed": two - 2 * per_sample, "saved_per_sample": per_sample, "buffer_bytes": buffer_bytes,
            "params": parameters, "trainable": parameters, "loss": "cross_entropy on the output, targets int64",
            "torch": torch.__version__, "device": "cpu", "input": list(shape)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", default=os.path.join(HERE, os.pardir, os.pardir, "tests", "truth"))
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NETWORKS)}; default all")
    args = parser.parse_args()
    torch.set_num_threads(1)
    for name in args.names or NETWORKS:
        facts = measure(name)
        with open(os.path.join(args.out, name + ".saved.json"), "w") as out:
            json.dump(facts, out, separators=(",", ":"))
            out.write("\n")


if __name__ == "__main__":
    main()
