#!/usr/bin/env python3
"""Measure the peak of training with activation checkpointing, for the plans of a plan file.

    onnxvram resnet50.onnx --batch 4 --train momentum --checkpoint segments=4 --plan-out=plan.txt
    python scripts/export/checkpointed.py resnet50 --batch 4 plan.txt

The network runs as a sequence of its modules, those of a segment together under
torch.utils.checkpoint(use_reentrant=False); segments may hold one another.  The peak is that of three iterations of SGD
with momentum, as PyTorch's memory tracker counts it on fake tensors.  Prints CSV: name,batch,plan,segments,peak
"""

import argparse
import sys

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from saved_trainees import fake, peak_bytes
from trainees import TRAINEES


class Step(nn.Module):
    """A part of a network's own forward that is no module."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def vit_tokens(model):
    def tokens(x):
        x = x.flatten(2).transpose(1, 2)
        x = torch.cat([model.class_token.expand(x.shape[0], -1, -1), x], dim=1)
        return model.encoder.dropout(x + model.encoder.pos_embedding)
    return tokens


def chain_of(name, model):
    """The modules that run one after the other, by name; a Step has none of its own."""
    def numbered(path):
        return [(f"{path}.{i}", child) for i, child in model.get_submodule(path).named_children()]

    flatten = ("", Step(lambda x: x.flatten(1)))
    if name.startswith(("resnet", "resnext", "wide_resnet")):
        stem = [(part, getattr(model, part)) for part in ("conv1", "bn1", "relu", "maxpool")]
        return stem + sum((numbered(f"layer{i}") for i in range(1, 5)), []) + [
            ("avgpool", model.avgpool), flatten, ("fc", model.fc)]
    if name.startswith("vgg"):
        return numbered("features") + [("avgpool", model.avgpool), flatten] + numbered("classifier")
    if name == "mobilenet_v2":
        return numbered("features") + [("", Step(lambda x: x.mean((2, 3))))] + numbered("classifier")
    if "vit" in name:
        return [("conv_proj", model.conv_proj), ("", Step(vit_tokens(model)))] + numbered("encoder.layers") + [
            ("encoder.ln", model.encoder.ln), ("", Step(lambda x: x[:, 0])), ("heads", model.heads)]
    return None


def read_plans(path):
    """name -> list of lists of module names."""
    plans = {}
    for line in open(path):
        fields = line.rstrip("\n").split("\t")
        if fields[0] == "plan":
            segments = plans[fields[1]] = []
        elif fields[0] == "segment":
            segments.append(fields[3].split())
    return plans


def is_within(name, modules):
    return any(name == m or name.startswith(m + ".") for m in modules)


class Checkpointed(nn.Module):
    """A chain in which stretches are checkpointed; `segments` are (first, last) places, outer before inner."""

    def __init__(self, chain, segments):
        super().__init__()
        self.chain = nn.ModuleList(module for _, module in chain)
        self.segments = segments

    def stretch(self, x, first, last, inside):
        """Runs first..last; `inside`: how many segments of the list are open around it."""
        i = first
        while i <= last:
            inner = [(k, s) for k, s in enumerate(self.segments) if k >= inside and s[0] == i and s[1] <= last]
            if inner:
                k, (begin, end) = inner[0]
                x = checkpoint(lambda y, b=begin, e=end, n=k + 1: self.stretch(y, b, e, n), x, use_reentrant=False)
                i = end + 1
            else:
                x = self.chain[i](x)
                i += 1
        return x

    def forward(self, x):
        return self.stretch(x, 0, len(self.chain) - 1, 0)


def places(chain, modules):
    """The stretch of the chain that holds exactly these modules; steps between them go along."""
    held = [i for i, (name, _) in enumerate(chain) if name and is_within(name, modules)]
    if not held or not all(any(is_within(chain[i][0], [m]) for i in held) for m in modules):
        raise ValueError("the segment cuts through a module")
    return held[0], held[-1]


def cuda_dropout(x, p=0.5, training=True, inplace=False):
    """As on CUDA, where the mask has a byte for each element."""
    return torch.native_dropout(x, p, True)[0] if training and p > 0 else x


def wrapped(model, segments):
    """Modules checkpointed one by one, where they stand."""
    for modules in segments:
        (name,) = modules
        module = model.get_submodule(name)
        plain = module.forward
        module.forward = lambda *args, f=plain, **named: checkpoint(f, *args, use_reentrant=False, **named)
    return model


def measure(name, batch, segments):
    if not all(segments):
        raise ValueError("a segment is no whole number of modules")
    trainee = TRAINEES[name]
    model = trainee.make().train()
    with FakeTensorMode(allow_non_fake_inputs=True):
        fake(model, "cpu")
        x = trainee.inputs(batch, "cpu")
        chain = chain_of(name, model)
        if chain is None:
            network = wrapped(model, segments)
        else:
            network = Checkpointed(chain, [places(chain, modules) for modules in segments])
        return peak_bytes(network, x, "sgd")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("network")
    parser.add_argument("plans")
    parser.add_argument("--batch", type=int, default=4)
    args = parser.parse_args()
    F.dropout = cuda_dropout
    for plan, segments in read_plans(args.plans).items():
        try:
            peak = measure(args.network, args.batch, segments)
            print(f"{args.network},{args.batch},{plan},{len(segments)},{peak}", flush=True)
        except Exception as error:  # one plan that fails does not stop the others
            print(f"{args.network}, {plan}: {str(error).splitlines()[:1]}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
