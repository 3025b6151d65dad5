#!/usr/bin/env python3
"""What people train with, measured: sharing among devices, LoRA, quantized weights, copies, the host, losses, checkpoints.

    python scripts/export/sharing.py export DIR                        NETWORK.onnx, also in bfloat16
    python scripts/export/sharing.py measure DIR [NAME...]             NAME.json
    python scripts/export/sharing.py table DIR --exe onnxvram          rows of docs/accuracy/training.md, and of process.md (frozen)

`measure` needs the CUDA build of PyTorch and a device; devices beyond the first are PyTorch's fake process group, so that
no collective runs.  Quantized weights need bitsandbytes, LoRA needs peft, the fused loss Liger's kernels.  Under FSDP a
network is made without memory, sharded, and then given its parts.  Attention runs as separate operations.  Figures are of the
third iteration, of tensors of the fourth, each row in a process of its own.
"""

import argparse
import contextlib
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))
from truth.harness import difference, read, report, step, write  # noqa: E402
from truth.measure import Loss, peaks  # noqa: E402
from truth.networks.sharing_cases import CASES, UNITS  # noqa: E402

# --- export -------------------------------------------------------------------------------------------


def export(folder):
    import torch
    from truth.networks.sharing import NETWORKS
    for name, (make, inputs) in NETWORKS.items():
        for suffix, dtype in (("", torch.float32), (".bf16", torch.bfloat16)):
            path = os.path.join(folder, name + suffix + ".onnx")
            if os.path.exists(path):
                continue
            torch.manual_seed(0)
            model = make().train()
            with torch.no_grad():  # equal parameters would be written once
                for p in model.parameters():
                    trained = p.requires_grad
                    p.requires_grad_(False)
                    p += 1e-3 * torch.randn_like(p)
                    p.requires_grad_(trained)
            x = inputs(3, "cpu")
            x = x.to(dtype) if x.is_floating_point() else x
            torch.onnx.export(model.to(dtype), (x,), path, dynamo=True, external_data=False, input_names=["input"],
                              dynamic_shapes=({0: "batch"},), verbose=False)
            print(path, flush=True)


# --- measure ------------------------------------------------------------------------------------------


def quantize(model, how):
    """As transformers replaces frozen linear layers: all but the head and those of the adapters."""
    import bitsandbytes as bnb
    from torch import nn
    for module in list(model.modules()):
        for name, old in list(module.named_children()):
            frozen = type(old) is nn.Linear and not any(p.requires_grad for p in old.parameters())
            if not frozen or name == "lm_head":
                continue
            size, bias = (old.in_features, old.out_features), old.bias is not None
            if how == "nf4":
                new = bnb.nn.Linear4bit(*size, bias=bias, compute_dtype=old.weight.dtype, compress_statistics=True,
                                        quant_type="nf4")
                new.weight = bnb.nn.Params4bit(old.weight.data, requires_grad=False, quant_type="nf4",
                                               compress_statistics=True, module=new)
            else:
                new = bnb.nn.Linear8bitLt(*size, bias=bias, has_fp16_weights=False, threshold=6.0)
                new.weight = bnb.nn.Int8Params(old.weight.data, requires_grad=False, has_fp16_weights=False)
            if bias:
                new.bias = old.bias
            setattr(module, name, new)


def checkpoint_units(model, pattern):
    from torch.utils.checkpoint import checkpoint
    for name, module in model.named_modules():
        if re.fullmatch(pattern, name):
            module.forward = lambda *a, run=module.forward, **k: checkpoint(run, *a, use_reentrant=False, **k)


def shard(model, pattern, options):
    import torch
    from torch.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy, fully_shard
    how = {}
    if options.get("precision"):
        how["mp_policy"] = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    if options.get("offload"):
        how["offload_policy"] = CPUOffloadPolicy(pin_memory=False)
    for name, module in model.named_modules():
        if re.fullmatch(pattern, name):
            fully_shard(module, **how)
    fully_shard(model, **how)


class Step:
    """The optimizer, where its options have it."""

    def __init__(self, model, name, options):
        import torch
        make = {"sgd": lambda p: torch.optim.SGD(p, lr=0.1), "adamw": torch.optim.AdamW,
                "momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9)}[name]
        self.own = [p for p in model.parameters() if p.requires_grad]
        self.copies, self.where = None, options.get("offload") if "fsdp" not in options else None
        if self.where:
            self.copies = [p.detach().cpu() for p in self.own]
        elif options.get("master_weights") and "fsdp" not in options:
            self.copies = [p.detach().clone().float() for p in self.own]
        self.optimizer = make(self.own if self.copies is None else self.copies)
        if self.where == "gradients":
            for p, copy in zip(self.own, self.copies):
                p.register_post_accumulate_grad_hook(lambda p, copy=copy: self.take(p, copy))

    @staticmethod
    def take(p, copy):
        grad = p.grad.to(copy.device, copy.dtype)
        copy.grad = grad if copy.grad is None else copy.grad + grad
        p.grad = None

    def zero(self):
        for p in self.own:
            p.grad = None
        self.optimizer.zero_grad()

    def run(self):
        import torch
        if self.copies is not None and self.where != "gradients":
            for p, copy in zip(self.own, self.copies):
                if self.where:
                    copy.grad = p.grad.cpu()
                else:
                    self.take(p, copy)
        self.optimizer.step()
        if self.copies is None:
            return
        with torch.no_grad():
            for p, copy in zip(self.own, self.copies):
                p.copy_(copy)
        self.optimizer.zero_grad()


def fused_loss(model, inputs, state):
    """Liger's, whose kernels no device compiles here."""
    import torch
    from liger_kernel.ops import fused_linear_cross_entropy as fused

    class NoKernel:
        def __getitem__(self, grid):
            return lambda *a, **k: None

    fused.liger_cross_entropy_kernel = fused.element_mul_kernel = NoKernel()
    hidden = model.body(inputs)
    hidden = hidden.reshape(-1, hidden.shape[-1])
    state.setdefault("targets", torch.zeros(hidden.shape[0], dtype=torch.int64, device=hidden.device))
    return fused.LigerFusedLinearCrossEntropyFunction.apply(hidden, model.head.weight, state["targets"])[0]


def chunked_loss(model, inputs, state, chunks):
    """The linear layer and the loss of some rows after another."""
    import torch
    from torch.nn import functional as F
    hidden = model.body(inputs)
    hidden = hidden.reshape(-1, hidden.shape[-1])
    state.setdefault("targets", torch.zeros(hidden.shape[0], dtype=torch.int64, device=hidden.device))
    total = 0.0
    for rows, targets in zip(hidden.chunk(chunks), state["targets"].chunk(chunks)):
        total = total + F.cross_entropy(model.head(rows).float(), targets, reduction="sum")
    return total / hidden.shape[0]


def pass_of(model, inputs, options, state):
    import torch
    loss = options.get("loss", "")
    if loss.startswith("fused"):
        state["loss"] = fused_loss(model, inputs, state)
    elif loss.startswith("chunked"):
        state["loss"] = chunked_loss(model, inputs, state, int(loss.partition("=")[2]))
    else:
        state["output"] = model(inputs)
        if loss == "mse":
            state["loss"] = torch.nn.functional.mse_loss(state["output"], state["targets"])
        else:
            state["loss"] = state.setdefault("losses", Loss("cross-entropy"))(state["output"])


def build(row):
    """The network on the device as the options have it, and its input."""
    import torch
    import torch.distributed as dist
    from truth.networks.sharing import NETWORKS
    name, batch, _, options = row
    make, inputs = NETWORKS[name]
    if "world" in options:
        from torch.testing._internal.distributed.fake_pg import FakeStore
        dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=options["world"])
    torch.manual_seed(0)
    low = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(options.get("precision"))
    with torch.device("meta") if "fsdp" in options else contextlib.nullcontext():
        model = make().train()
    if "checkpoint" in options:
        checkpoint_units(model, UNITS[name])
    if "fsdp" in options:
        shard(model, UNITS[name], options)
        model.to_empty(device="cpu" if "offload" in options else "cuda")
        for module in model.modules():
            for key, buffer in module._buffers.items():  # numbers of positions, which are looked up, among them
                module._buffers[key] = buffer if buffer is None else torch.zeros_like(buffer, device="cuda")
        low = None
    else:
        if low:
            model = model.to(low)
        if "weights" in options:
            quantize(model, options["weights"])
        model = model.cuda()
    x = inputs(batch, "cpu")
    x = (x.to(low) if low and x.is_floating_point() else x).cuda()
    if "ddp" in options:
        model = torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=options["ddp"] == "view")

        def all_reduce(state, bucket):
            done = torch.futures.Future()
            done.set_result(bucket.buffer())
            return done

        model.register_comm_hook(None, all_reduce)
    return model, x


def measure(row):
    import torch
    _, _, optimizer, options = row
    torch.backends.cuda.enable_flash_sdp(False)
    torch.backends.cuda.enable_mem_efficient_sdp(False)
    torch.backends.cuda.enable_cudnn_sdp(False)
    model, x = build(row)
    average = None
    if options.get("ema"):
        from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
        average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.999))
    step, state, passes = Step(model, optimizer, options), {}, options.get("accumulate", 1)
    if options.get("loss") == "mse":
        state["targets"] = torch.zeros(len(x), model.last.out_features, device="cuda", dtype=x.dtype)

    def iterate():
        step.zero()
        for i in range(passes):
            waits = "ddp" in options and i + 1 < passes
            with model.no_sync() if waits else contextlib.nullcontext():
                pass_of(model, x, options, state)
                state["loss"].backward()
        step.run()
        if average is not None:
            average.update_parameters(model)

    in_place = any(getattr(m, "inplace", False) and not isinstance(m, torch.nn.ReLU) for m in model.modules())
    return {**peaks(iterate), "inplace": in_place}


# --- compare ------------------------------------------------------------------------------------------


def arguments_of(options):
    result = []
    for key, value in options.items():
        flag = "--" + key.replace("_", "-")
        if value is True:
            result.append(flag)
        elif key == "ddp":
            result.append(f"{flag}={value}")
        else:
            for part in value if isinstance(value, list) else [value]:
                result += [flag, str(part)]
    return result


def predicted(exe, folder, row, *more):
    name, batch, optimizer, options = row
    low_path = os.path.join(folder, f"{name}.{options.get('precision')}.onnx")
    path = low_path if "fsdp" not in options and os.path.exists(low_path) else os.path.join(folder, name + ".onnx")
    return report(exe, path, ["-b", str(batch), "--train", optimizer, "--attention", "math", "--gpu", "H100", *arguments_of(options), *more])


def line(exe, folder, name, row):
    measured = read(os.path.join(folder, name + ".json"))
    more = ["--inplace"] if measured and measured["inplace"] else []  # which the user of a network knows
    ours, options = predicted(exe, folder, row, *more), " ".join(arguments_of(row[3]) + more) or "-"
    head = f"| {row[0]} | {row[1]} | {row[2]} | `{options}` |"
    if not measured:
        return f"{head} not measured |"
    if isinstance(ours, str):
        return f"{head} {ours} |"
    kinds = (("peak_bytes", "tensors"), ("allocated_peak_bytes", "allocated"), ("reserved_peak_bytes", "reserved"))
    return f"{head} {measured['tensors']:,} | " + " | ".join(difference(ours["training"][key], measured[k]) for key, k in kinds) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("export", "measure", "table"))
    parser.add_argument("folder")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--exe", default="onnxvram")
    arguments = parser.parse_args()
    if arguments.what == "export":
        export(arguments.folder)
        return
    for name in arguments.names or CASES:
        base = os.path.join(arguments.folder, name)
        if arguments.what == "table":
            print(line(arguments.exe, arguments.folder, name, CASES[name]), flush=True)
        elif not os.path.exists(base + ".json"):
            found = step(base, "measured", 1200, lambda row=CASES[name]: measure(row))
            if found:
                write(base + ".json", found)
                print(name, found, flush=True)


if __name__ == "__main__":
    main()
