#!/usr/bin/env python3
"""Apply plans that keep tensors on the host, with the CUDA build of PyTorch, and measure what they say of themselves.

    python scripts/export/offloaded.py [--plans N] build/release/onnxvram [NAME...]

For each network of plans_applied.py: the plans `none` and `offload`, and of `joint` at most N that move something, evenly.
Each plan's own lines of Python are executed on the network as it is written, on the device.  Then

    peak      of tensors, in the fourth iteration with momentum: allocations of libraries are told by their stacks
    moved     bytes that were copied to the host, and back
    host      what PyTorch's allocator of pinned memory had in use at most

Prints CSV: network,plan,predicted,measured,difference,moved predicted,moved,host predicted,host,gradient
"""

import argparse
import gc
import subprocess
import tempfile
import warnings
from pathlib import Path

import torch
from torch.nn import functional as F

from checkpointed import read_plans
from plans_applied import NETWORKS, apply, gradient_difference, image, timm_model, tokens
from libraries import tensor_peak
from saved_bytes import make_optimizer


def vision(name):
    import torchvision
    return torchvision.models.get_model(name, weights=None)


MORE = {
    "resnet18": (lambda: vision("resnet18"), image(64), 8),
    "vgg11_bn": (lambda: vision("vgg11_bn"), image(64), 8),
    "mobilenet_v3_small": (lambda: vision("mobilenet_v3_small"), image(64), 8),
    "convnext_atto": (lambda: timm_model("convnext_atto"), image(64), 8),
    "deit_tiny": (lambda: timm_model("deit_tiny_patch16_224", img_size=64), image(64), 8),
    "mixer_s32": (lambda: timm_model("mixer_s32_224"), image(224), 2),
    "regnety_002": (lambda: timm_model("regnety_002"), image(64), 8),
}


class Counted:
    """Copies between host and device."""

    def __enter__(self):
        self.bytes, self.copy, self.to = 0, torch.Tensor.copy_, torch.Tensor.to

        def copy(target, source, *args, **kwargs):
            self.bytes += target.nbytes * (source.is_cuda and not target.is_cuda)
            return self.copy(target, source, *args, **kwargs)

        def to(source, *args, **kwargs):
            target = self.to(source, *args, **kwargs)
            self.bytes += target.nbytes * (target.is_cuda and not source.is_cuda)
            return target

        torch.Tensor.copy_, torch.Tensor.to = copy, to
        return self

    def __exit__(self, *_):
        torch.Tensor.copy_, torch.Tensor.to = self.copy, self.to


def separate_attention():
    torch.backends.cuda.enable_flash_sdp(False)
    torch.backends.cuda.enable_mem_efficient_sdp(False)
    torch.backends.cuda.enable_cudnn_sdp(False)


def held():
    return torch.cuda.memory_stats()["requested_bytes.all.current"]


def measure(make, inputs, batch, plan):
    gc.collect()
    torch._C._cuda_clearCublasWorkspaces()
    before = held()
    model, x, target = make().train().cuda(), inputs(batch).cuda(), None
    apply(plan, model)
    optimizer, state = make_optimizer("sgd", model.parameters()), {}

    def iterate():
        optimizer.zero_grad()
        state["y"] = model(x)
        if "target" not in state:
            state["target"] = torch.empty_like(state["y"]).detach()
        state["loss"] = F.mse_loss(state["y"], state["target"])
        state["loss"].backward()
        optimizer.step()

    torch.cuda.host_memory.reset_peak_host_memory_stats() if hasattr(torch.cuda, "host_memory") else None
    torch._C._cuda_resetPeakHostMemoryStats()
    for _ in range(2):
        iterate()
    with Counted() as counted:
        iterate()
    host = torch.cuda.host_memory_stats()["active_bytes.peak"]
    torch._C._cuda_clearCublasWorkspaces()  # else kept from the first iteration on
    return tensor_peak(iterate) - before, counted.bytes, host


def plans_of(program, make, inputs, batch, folder):
    model, plans = str(Path(folder) / "network.onnx"), str(Path(folder) / "plans.txt")
    torch.manual_seed(0)
    torch.onnx.export(make().train(), (inputs(batch),), model, dynamo=True, verbose=False, external_data=False,
                      input_names=["x"])
    subprocess.run([program, model, "--train", "momentum", "--loss", "mse", "--attention", "math", "--inplace",
                    "--checkpoint", "none,offload,joint", "--plan-out", plans, "-q"], check=True, capture_output=True)
    return read_plans(plans)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--plans", type=int, default=4)
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    separate_attention()
    networks = {**NETWORKS, **MORE}
    for name in options.names or networks:
        make, inputs, batch = networks[name]
        with tempfile.TemporaryDirectory() as folder:
            plans = plans_of(options.program, make, inputs, batch, folder)
        front = [plan for plan in plans if plan.name == "joint" and plan.moved]
        n = min(options.plans, len(front))
        front = [front[i * (len(front) - 1) // max(1, n - 1)] for i in range(n)]
        for plan in [plan for plan in plans if plan.name != "joint"] + front:
            start = f"{name},{plan.name} ({len(plan.segments)} segments),{plan.peak}"
            try:
                peak, moved, host = measure(make, inputs, batch, plan)
                gradient = gradient_difference(make, inputs, plan) if plan.code and plan.name != "offload" else 0
                print(f"{start},{peak},{100 * (plan.peak / peak - 1):+.2f} %,{plan.moved},{moved},{plan.host},{host},"
                      f"{gradient:.1e}", flush=True)
            except Exception as error:
                print(f"{start},failed: {type(error).__name__}: {str(error)[:300]}", flush=True)


if __name__ == "__main__":
    main()
