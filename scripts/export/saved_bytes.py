#!/usr/bin/env python3
"""Measure the training memory of many networks without a GPU.

Saved: bytes that autograd keeps for backward, distinct storages, parameters and buffers left out.
Peak: what PyTorch's own memory tracker counts in the second and third iteration of training.
Both on fake tensors, which have sizes but no data, so that CUDA's own choices (masks of dropout) are seen on any
machine.

    python scripts/export/saved_bytes.py [--device cuda|cpu] [--batch 2,5] [--peaks sgd,adamw] [NAME...]

prints CSV: name,batch,device,params,saved,buffers,optimizer,peak

    python scripts/export/saved_bytes.py --write tests/truth

writes what is saved of samples in training mode on the CPU, as saved_fixed + N * saved_per_sample; three batches must agree.
`buffer_bytes` is what the saved buffers (running statistics) measure, should a reader want to count them as saved.
"""

import argparse
import contextlib
import gc
import json
import os
import sys
import weakref

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from training_models import MODELS, loss_of, targets_of

SAMPLES = {"resnet18-train": "resnet18", "mobilenet_v2-train": "mobilenet_v2", "vit-small-train": "small_vit",
           "unet-train": "unet", **{name: name for name in ("resnet50", "vgg16", "vit_b_16")}}  # file: network


def fake(model, device):
    """The same network on fake tensors (inside a FakeTensorMode); tied parameters stay tied."""
    made = {}
    for module in model.modules():
        for tensors in (module._parameters, module._buffers):
            for name, old in tensors.items():
                if old is None:
                    continue
                if old not in made:
                    new = torch.empty_like(old, device=device)
                    made[old] = torch.nn.Parameter(new) if isinstance(old, torch.nn.Parameter) else new
                tensors[name] = made[old]
    return model


@contextlib.contextmanager
def autocast(dtype):
    """torch.autocast of CUDA, which itself refuses to work without a device."""
    if dtype is None:
        yield
        return
    torch.set_autocast_enabled("cuda", True)
    torch.set_autocast_dtype("cuda", dtype)
    torch.autocast_increment_nesting()
    try:
        yield
    finally:
        if torch.autocast_decrement_nesting() == 0:
            torch.clear_autocast_cache()
        torch.set_autocast_enabled("cuda", False)


@contextlib.contextmanager
def attention_by(kernel):
    """scaled_dot_product_attention by a kernel that the choice would not take without a device; None: by math."""
    if kernel is None:
        with sdpa_kernel(SDPBackend.MATH):
            yield
        return

    def attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, **_):
        if torch.is_autocast_enabled("cuda"):
            low = torch.get_autocast_dtype("cuda")
            query, key, value = query.to(low), key.to(low), value.to(low)
            attn_mask = attn_mask.to(low) if attn_mask is not None and attn_mask.is_floating_point() else attn_mask
        if kernel == "flash" and query.dtype != torch.float32 and attn_mask is None:
            return torch.ops.aten._scaled_dot_product_flash_attention(query, key, value, dropout_p, is_causal)[0]
        if attn_mask is not None:
            if attn_mask.dtype == torch.bool:
                attn_mask = torch.where(attn_mask, 0.0, float("-inf")).to(query.dtype)
            attn_mask = attn_mask.expand(*query.shape[:-1], key.shape[-2])
        return torch.ops.aten._scaled_dot_product_efficient_attention(query, key, value, attn_mask, True, dropout_p,
                                                                      is_causal)[0]

    plain, F.scaled_dot_product_attention = F.scaled_dot_product_attention, attention
    try:
        yield
    finally:
        F.scaled_dot_product_attention = plain


class Held:
    """What autograd keeps for a backward, as long as it does."""

    def __init__(self, tensor):
        self.tensor = tensor


def saved_bytes(model, x, dtype=None, kernel=None, loss=True):
    """Bytes of the saved storages, those of buffers counted apart."""
    def key(tensor):
        return tensor.untyped_storage()._cdata

    parameters = {key(p) for p in model.parameters()}
    given = list(model.buffers())  # a forward pass may replace them: their addresses stay theirs
    buffers = {key(b) for b in given}
    kept = []

    def pack(tensor):
        held = Held(tensor.detach())
        kept.append(weakref.ref(held))
        return held

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda held: held.tensor), attention_by(kernel), autocast(dtype):
        output = model(x)
        result = loss_of(output, targets_of(output)) if loss else output
    gc.collect()
    # What no loss leads to went with the forward pass.
    alive = [held.tensor for held in (ref() for ref in kept) if held is not None]
    storages = {key(tensor): tensor.untyped_storage().nbytes() for tensor in alive}
    del result
    of_buffers = sum(size for address, size in storages.items() if address in buffers)
    total = sum(size for address, size in storages.items() if address not in parameters)
    return total - of_buffers, of_buffers


def cuda_dropout(x, p=0.5, training=True, inplace=False):
    """As on CUDA, where the mask has a byte for each element."""
    return torch.native_dropout(x, p, True)[0] if training and p > 0 else x


@contextlib.contextmanager
def dropout_of_cuda():
    plain, F.dropout = F.dropout, cuda_dropout
    try:
        yield
    finally:
        F.dropout = plain


def make_optimizer(name, parameters):
    if name == "adamw":
        return torch.optim.AdamW(parameters, foreach=True)
    return torch.optim.SGD(parameters, lr=0.1, momentum=0.9, foreach=True)


def peak_bytes(model, x, optimizer_name, dtype=None):
    """Peak of the tracker over three iterations; the backward of fake CUDA tensors wants a device, so on the CPU,
    with the dropout of CUDA.

    With a dtype under the CPU's autocast, which agrees with that of CUDA for convolutions, linear layers and batch
    norms, not for layer norm and softmax.
    """
    from torch.distributed._tools.mem_tracker import MemTracker

    optimizer = make_optimizer(optimizer_name, model.parameters())
    tracker = MemTracker()
    tracker.track_external(model, optimizer, x)
    peak = 0
    targets = None  # part of the batch: they stay
    with tracker, sdpa_kernel(SDPBackend.MATH), dropout_of_cuda():
        for _ in range(3):
            tracker.reset_mod_stats()  # it would take a second forward for an unknown call
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype or torch.bfloat16, enabled=dtype is not None):
                output = model(x)
                targets = targets_of(output) if targets is None else targets
                loss = loss_of(output, targets)
            loss.backward()
            optimizer.step()
    snapshot = tracker.get_tracker_snapshot("peak")
    for per_device in snapshot.values():
        peak = max(peak, per_device["Total"])
    return peak


def rows(name, device, batch, optimizers, dtype, kernel):
    entry = MODELS[name]
    model = entry.make().train()
    with FakeTensorMode(allow_non_fake_inputs=True):
        fake(model, device)
        x = entry.inputs(batch, device)
        if kernel is not None and hasattr(model, "model"):
            # The transformers library has attention of its own too; a mask of ones, which has no values here, would
            # not be recognised as none.
            model.model.set_attn_implementation("sdpa")
            model.forward = lambda tokens: model.model(tokens, return_dict=True).logits
        params = sum(p.numel() for p in model.parameters())
        saved, buffers = saved_bytes(model, x, dtype, kernel)
        facts = f"{name},{batch},{device},{params},{saved},{buffers}"
        print(f"{facts},,", flush=True)
        for optimizer in optimizers:
            print(f"{facts},{optimizer},{peak_bytes(model, x, optimizer)}", flush=True)
            model.zero_grad()


def write_samples(folder):
    for sample, name in SAMPLES.items():
        entry = MODELS[name]
        model = entry.make().train()
        with FakeTensorMode(allow_non_fake_inputs=True):
            fake(model, "cpu")
            (two, buffers), (three, _), (four, _) = (saved_bytes(model, entry.inputs(batch, "cpu")) for batch in (2, 3, 4))
        if four - three != three - two:
            sys.exit(f"{sample}: not linear in the batch: {two}, {three}, {four}")
        parameters = sum(p.numel() for p in model.parameters())
        facts = {"saved_fixed": 3 * two - 2 * three, "saved_per_sample": three - two, "buffer_bytes": buffers,
                 "params": parameters, "trainable": parameters, "loss": "cross_entropy on the output, targets int64",
                 "torch": torch.__version__, "device": "cpu", "input": list(entry.shape)}
        with open(os.path.join(folder, sample + ".saved.json"), "w") as out:
            json.dump(facts, out, separators=(",", ":"))
            out.write("\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--batch", default="2,5")
    parser.add_argument("--peaks", default="")
    parser.add_argument("--amp", help="float16 or bfloat16: under autocast (CUDA only)")
    parser.add_argument("--attention", choices=("flash", "efficient"),
                        help="what is saved with such a kernel (CUDA only)")
    parser.add_argument("--write", metavar="FOLDER", help="SAMPLE.saved.json of the samples")
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    if args.write:
        write_samples(args.write)
        return
    for name in args.names or MODELS:
        for batch in map(int, args.batch.split(",")):
            try:
                rows(name, args.device, batch, list(filter(None, args.peaks.split(","))),
                     getattr(torch, args.amp) if args.amp else None, args.attention)
            except Exception as error:  # one network that fails does not stop the others
                print(f"{name}: {str(error).splitlines()[:1]}", file=sys.stderr)


if __name__ == "__main__":
    main()
