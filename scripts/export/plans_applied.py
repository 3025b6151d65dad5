#!/usr/bin/env python3
"""Apply the checkpointing plans that onnxvram writes, and measure what they say of themselves.

    python scripts/export/plans_applied.py [--plans N] [--cuda] build/release/onnxvram [NAME...]

For each network: an export, the plans of `--checkpoint all` (with --plans of `optimal` at most N, both ends and evenly between),
and for each plan the plan file's own lines of Python executed on the network as it is written.  The program is told how
many parameters the network has, for a file may lack some that nothing reads.  Then

    peak       of three iterations with momentum as PyTorch's memory tracker counts it on fake tensors; with --cuda as
               the CUDA build's allocator does on the device (offloaded.py)
    gradient   in float64: the largest difference from training without a plan, in parts of the largest gradient

Prints CSV: network,plan,segments,kept,predicted,tracked,difference,gradient
"""

import argparse
import copy
import functools
import subprocess
import tempfile
import warnings
from pathlib import Path

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from checkpointed import read_plans
from plan_networks import drawn
from saved_bytes import dropout_of_cuda, fake, make_optimizer


def timm_model(name, **kwargs):
    import timm
    return timm.create_model(name, **kwargs)


class Logits(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        return self.model(x, **({"use_cache": False} if hasattr(self.model.config, "use_cache") else {})).logits


def mpnet():
    import transformers as t
    config = t.MPNetConfig(vocab_size=200, hidden_size=96, intermediate_size=384, num_hidden_layers=3, num_attention_heads=4)
    return Logits(t.MPNetForMaskedLM(config))


def stablelm():
    import transformers as t
    config = t.StableLmConfig(vocab_size=200, hidden_size=96, intermediate_size=256, num_hidden_layers=3,
                              num_attention_heads=4, num_key_value_heads=2, attn_implementation="eager")
    return Logits(t.StableLmForCausalLM(config))


def olmo():
    import transformers as t
    config = t.OlmoConfig(vocab_size=200, hidden_size=96, intermediate_size=256, num_hidden_layers=3,
                          num_attention_heads=4, attn_implementation="eager", pad_token_id=0)
    return Logits(t.OlmoForCausalLM(config))


def llama():
    import transformers as t
    config = t.LlamaConfig(vocab_size=200, hidden_size=96, intermediate_size=256, num_hidden_layers=3,
                           num_attention_heads=4, num_key_value_heads=2, attn_implementation="eager")
    return Logits(t.LlamaForCausalLM(config))


def deeplabv3plus():
    import segmentation_models_pytorch as smp
    return smp.DeepLabV3Plus("resnet18", encoder_weights=None)


def image(size):
    return lambda batch: torch.randn(batch, 3, size, size)


def tokens(batch):
    return torch.randint(2, 200, (batch, 48))


NETWORKS = {
    "tinynet_e": (lambda: timm_model("tinynet_e"), image(64), 8),
    "rexnet_100": (lambda: timm_model("rexnet_100"), image(64), 8),
    "ese_vovnet19b_dw": (lambda: timm_model("ese_vovnet19b_dw"), image(64), 8),
    "gernet_s": (lambda: timm_model("gernet_s"), image(64), 8),
    "skresnet18": (lambda: timm_model("skresnet18"), image(64), 8),
    "selecsls42b": (lambda: timm_model("selecsls42b"), image(64), 8),
    "visformer_tiny": (lambda: timm_model("visformer_tiny", img_size=64), image(64), 8),
    "mpnet": (mpnet, tokens, 4),
    "stablelm": (stablelm, tokens, 4),
    "olmo": (olmo, tokens, 4),
    "llama": (llama, tokens, 4),
    "deeplabv3plus_resnet18": (deeplabv3plus, image(64), 8),
    **{name: (make, tokens, 4) if size is None else (make, image(size), 8) for name, (make, size) in drawn().items()},
}


def plans_of(program, make, inputs, batch, folder, plans_list="all"):
    model, plans = str(Path(folder) / "network.onnx"), str(Path(folder) / "plans.txt")
    torch.manual_seed(0)
    network = make().train()
    torch.onnx.export(network, (inputs(batch),), model, dynamo=True, verbose=False, external_data=False,
                      input_names=["x"])
    subprocess.run([program, model, "--train", "momentum", "--loss", "mse", "--attention", "math",
                    "--parameters", str(sum(p.numel() for p in network.parameters())), "--checkpoint", plans_list, "--plan-out", plans, "-q"], check=True, capture_output=True)
    return read_plans(plans)


def apply(plan, model):
    if plan.code:
        exec("\n".join(plan.code), {"model": model})


def tracked_peak(make, inputs, batch, plan):
    from torch.distributed._tools.mem_tracker import MemTracker
    model, example = make().train(), inputs(batch)
    with FakeTensorMode(allow_non_fake_inputs=True):
        fake(model, "cpu")
        x = torch.empty(example.shape, dtype=example.dtype)
        apply(plan, model)
        optimizer, tracker = make_optimizer("sgd", model.parameters()), MemTracker()
        tracker.track_external(model, optimizer, x)
        with tracker, sdpa_kernel(SDPBackend.MATH), dropout_of_cuda():
            target = None
            for _ in range(3):
                tracker.reset_mod_stats()
                optimizer.zero_grad()
                y = model(x)
                target = torch.empty(y.shape) if target is None else target
                loss = F.mse_loss(y, target)
                loss.backward()
                optimizer.step()
        return max(sizes["Total"] for sizes in tracker.get_tracker_snapshot("peak").values())


def measured_peak(make, inputs, batch, plan):
    import offloaded
    offloaded.separate_attention()
    return offloaded.measure(make, inputs, batch, plan)[0]


def backward(model, x):
    torch.manual_seed(1)
    model(x).square().mean().backward()
    return model


@functools.lru_cache(maxsize=1)
def without_plan(make, inputs):
    """A network in float64, its input, and a copy with gradients."""
    torch.manual_seed(0)
    fresh, x = make().double().train(), inputs(2)
    x = x.double() if x.is_floating_point() else x
    return fresh, x, backward(copy.deepcopy(fresh), x)


def gradient_difference(make, inputs, plan):
    fresh, x, plain = without_plan(make, inputs)
    planned, most = copy.deepcopy(fresh), 0.0
    apply(plan, planned)
    backward(planned, x)
    for a, b in zip(plain.parameters(), planned.parameters()):
        if a.grad is not None:
            most = max(most, ((a.grad - b.grad).abs().max() / (a.grad.abs().max() + 1e-300)).item())
    return most


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--list", default="all", help="of --checkpoint")
    parser.add_argument("--plans", type=int)
    parser.add_argument("--cuda", action="store_true")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)  # the networks are small: more wait for each other
    if options.cuda:
        torch.cuda.init()
    for name in options.names or NETWORKS:
        make, inputs, batch = NETWORKS[name]
        with tempfile.TemporaryDirectory() as folder:
            plans = plans_of(options.program, make, inputs, batch, folder, options.list)
        front = [plan for plan in plans if plan.name == "optimal"]
        n = min(options.plans or len(front), len(front))
        front = [front[i * (len(front) - 1) // max(1, n - 1)] for i in range(n)]
        for plan in [plan for plan in plans if plan.name != "optimal"] + front:
            kept = sum(line.startswith('    "op ') for line in plan.code)
            start = f"{name},{plan.name}{' (by hand)' if plan.by_hand else ''},{len(plan.segments)},{kept},{plan.peak}"
            try:
                peak = measured_peak(make, inputs, batch, plan) if options.cuda else tracked_peak(make, inputs, batch, plan)
                gradient = gradient_difference(make, inputs, plan) if plan.code else 0
                print(f"{start},{peak},{100 * (plan.peak / peak - 1):+.2f} %,{gradient:.1e}", flush=True)
            except Exception as error:
                print(f"{start},failed: {type(error).__name__}: {str(error)[:200]}", flush=True)


if __name__ == "__main__":
    main()
