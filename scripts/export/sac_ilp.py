#!/usr/bin/env python3
"""PyTorch's own planner of selective checkpointing (torch.distributed._tools.sac_ilp) on the networks of peers.py.

    python scripts/export/sac_ilp.py [--limit S] [NAME...]

Its figures are its own: an upper bound of the peak (parameters, gradients and activations; SGD has no state), and the time that
runs again, by a roofline of one H100, as a share of a forward and a backward.  What its program assumes is seen to first:

    - a module is called once in a forward: each further call of a module gets a module of its own (ResNet's relu)
    - it runs again whole modules with others inside, of which none holds another: the rows of VGG16's and the U-Net's
      modules are grouped, one group for each resolution
    - the curve of a module is fitted in seconds: pwlf's fitfast stands for its fit
    - a module without products that take time has no curve (not a number), nor one that keeps nothing: they are left alone
    - every module that is called has a backward: those without one (LLaMA's rotary_emb) are left out
    - weights are filled without looking at them: trunc_normal_ (ViT's) does look, and does nothing here

Needs the CUDA build of PyTorch and a device, pulp and pwlf.  Prints CSV: network,batch,units,none,0,5,10,20 (bytes)
"""

import argparse
import contextlib
import logging
import math
import os
import sys
import time
import warnings

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

from peers import LEVELS, row

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, os.pardir, "samples"))
import nets  # noqa: E402

DEVICE = "NVIDIA H100"


def vision(name, **options):
    def make():
        import torchvision
        return torchvision.models.get_model(name, weights=None, **options)
    return make


def vgg16():
    """Its convolutions in five groups, each with the pool that ends it."""
    model, groups, rest = vision("vgg16")(), [], []
    for layer in model.features:
        rest.append(layer)
        if isinstance(layer, nn.MaxPool2d):
            groups.append(nn.Sequential(*rest))
            rest = []
    model.features = nn.Sequential(*groups)
    return model


def llama():
    from transformers import LlamaConfig, LlamaForCausalLM

    class Logits(nn.Module):
        def __init__(self):
            super().__init__()
            torch.set_default_dtype(torch.float16)
            self.model = LlamaForCausalLM(LlamaConfig(
                vocab_size=8192, hidden_size=256, intermediate_size=688, num_hidden_layers=4, num_attention_heads=8,
                num_key_value_heads=2, max_position_embeddings=512, attn_implementation="eager"))
            torch.set_default_dtype(torch.float32)

        def forward(self, x):
            return self.model(x, use_cache=False).logits
    return Logits()


# As in docs/accuracy/plans.md: (make, batch, size of an input).
NETWORKS = {
    "vgg16": (vgg16, 16, (3, 224, 224)),
    "resnet18": (vision("resnet18"), 32, (3, 224, 224)),
    "resnet50": (vision("resnet50"), 16, (3, 224, 224)),
    "mobilenet_v2": (vision("mobilenet_v2"), 32, (3, 224, 224)),
    "unet": (nets.UNet, 8, (3, 256, 256)),
    "vit_b_16": (vision("vit_b_16"), 16, (3, 224, 224)),
    "llama": (llama, 8, (512,)),
    "efficientnet_b0": (vision("efficientnet_b0", stochastic_depth_prob=0.0), 16, (3, 224, 224)),
    "r3d_18": (vision("r3d_18"), 16, (3, 8, 56, 56)),
}


class Calls:
    """In place of a module that is called several times: one module for each call."""

    def __init__(self, modules):
        self.modules, self.at = modules, 0

    def __call__(self, *args, **kwargs):
        module = self.modules[self.at % len(self.modules)]
        self.at += 1
        return module(*args, **kwargs)


def separate_calls(model, x):
    """Of modules without parameters; what has some cannot be called twice."""
    counts, hooks = {}, []

    def count(module, _):
        counts[module] = counts.get(module, 0) + 1

    for module in model.modules():
        hooks.append(module.register_forward_pre_hook(count))
    model(x)
    for hook in hooks:
        hook.remove()
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if counts.get(child, 0) < 2:
                continue
            if any(True for _ in child.parameters()):
                raise ValueError(f"{name} has parameters and is called {counts[child]} times")
            copies = [child] + [type(child)(*([child.inplace] if hasattr(child, "inplace") else []))
                                for _ in range(counts[child] - 1)]
            delattr(parent, name)
            for i, copy in enumerate(copies):
                parent.add_module(f"{name}_{i}", copy)
            setattr(parent, name, Calls(copies))


def loss_of(output):
    if output.dim() == 3:
        output = output.transpose(1, 2)
    return nn.functional.cross_entropy(output, torch.zeros(output.shape[:1] + output.shape[2:], dtype=torch.int64))


def fast_fits():
    import pwlf
    pwlf.PiecewiseLinFit.fit = lambda self, n_segments, **_: self.fitfast(n_segments)


def leave_out(memory, times):
    """Modules without a backward."""
    from torch.distributed._tools.mem_tracker import _ModState
    names = set()
    for module, stats in list(memory.memory_tracking.items()):
        if _ModState.PRE_BW not in stats.snapshots:
            names.add(stats.mod_fqn)
            del memory.memory_tracking[module]
    for order in (times.mod_fw_pre_order, times.mod_bw_pre_order, times.mod_fw_post_order, times.mod_bw_post_order):
        order[:] = [name for name in order if name not in names]


def module_info(make, batch, shape):
    from torch.distributed._tools.ilp_utils import aggregate_stats
    from torch.distributed._tools.mem_tracker import MemTracker
    from torch.distributed._tools.runtime_estimator import RuntimeEstimator
    from torch.distributed._tools.sac_estimator import SACEstimator
    device = torch.device("cuda", torch.cuda.current_device())
    nn.init.trunc_normal_ = lambda tensor, *_, **__: tensor
    with FakeTensorMode(), device:
        model = make().train()
        x = torch.zeros(batch, *shape, dtype=torch.int64) if len(shape) == 1 else torch.randn(batch, *shape)
        separate_calls(model, x)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        def step():
            loss_of(model(x)).backward()
            optimizer.step()
            optimizer.zero_grad()

        step()
        memory, times, sac = MemTracker(), RuntimeEstimator(DEVICE), SACEstimator(DEVICE)
        memory.track_external(model, optimizer)
        with memory:
            step()
        with times("operator-level-cost-model"):
            step()
        with sac("operator-level-cost-model"):
            loss_of(model(x))
        leave_out(memory, times)
        for name in [name for name, stats in sac.sac_mod_stats.items() if sum(stats.memory) == 0]:
            del sac.sac_mod_stats[name]
        return aggregate_stats(model, memory, times, sac, device)


def leave_alone(info):
    """Modules whose curve is not a number, or that keep nothing."""
    units = 0
    for module in info["mod_stats"]:
        numbers = module["slopes"] + module["intercepts"]
        usable = numbers and all(map(math.isfinite, numbers)) and module["sac_memory"] > 0
        units += bool(usable)
        if not usable:
            module.update(is_leaf=True, n_segments=0, slopes=[], intercepts=[], sac_memory=0, sac_runtime=0)
    return units


def points(info, limit):
    """(peak, overhead) by budgets between none and where the solver finds nothing."""
    from torch.distributed._tools.ilp_utils import get_peak_memory_runtime_baseline, parse_module_info
    from torch.distributed._tools.sac_ilp import sac_milp
    graph, start = parse_module_info(info), time.time()
    peak, runtime = get_peak_memory_runtime_baseline(graph)
    found = [(peak, 0.0)]
    for percent in range(98, 10, -3):
        _, again, least = sac_milp(graph, peak * percent / 100 / 2 ** 30)
        if least < 0 or time.time() - start > limit:
            break
        found.append((least, again / runtime))
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--limit", type=float, default=300, help="seconds for the budgets of a network")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    fast_fits()
    logging.disable(logging.ERROR)
    for name in options.names or NETWORKS:
        with contextlib.redirect_stdout(sys.stderr):
            info = module_info(*NETWORKS[name])
            units = leave_alone(info)
            found = points(info, options.limit)
        print(f"{name},{NETWORKS[name][1]},{units},{found[0][0]},{row(found)}", flush=True)
        print(name, [(p, round(o, 3)) for p, o in found], file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
