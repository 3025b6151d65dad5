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
import json
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, os.pardir), HERE]
from truth import table  # noqa: E402
from truth.measure import Loss, peaks  # noqa: E402

UNITS = {"tower": r"blocks\.\d+", "tower_wide": r"blocks\.\d+", "gpt2": r"model\.transformer\.h\.\d+",
         "llama": r"model\.model\.layers\.\d+", "lora_llama": r"model.*layers\.\d+", "resnet18": r"layer\d\.\d",
         "bert": r"model\.bert\.encoder\.layer\.\d+", "small_vit": r"encoder\.layers\.encoder_layer_\d+"}
LORA = {"train_only": ["*lora_*"]}
BEHIND = {"train_only": ["first.*", "last.*"], "loss": "mse"}  # of the frozen layer


def cases():
    """Name: (network, batch, optimizer, options of onnxvram)."""
    fsdp, ddp = {"fsdp": True}, {"ddp": "copy"}
    bf16, blocks = {"precision": "bf16"}, {"checkpoint": "blocks"}
    chunked, fused = {"loss": "chunked-cross-entropy=8"}, {"loss": "fused-cross-entropy"}
    rows = [
        ("tower", 4, "adamw", {**ddp, "world": 4}), ("tower", 4, "adamw", {"ddp": "view", "world": 4}),
        ("resnet18", 4, "adamw", {**ddp, "world": 4}), ("resnet18", 4, "adamw", {"ddp": "view", "world": 4}),
        ("tower_wide", 8, "adamw", {**ddp, "world": 8}),
        ("gpt2", 4, "momentum", {**ddp, "world": 8, "accumulate": 2}),
        ("gpt2", 4, "momentum", {"ddp": "view", "world": 8, "accumulate": 2}),
        ("tower_wide", 8, "adamw", {**fsdp, "world": 8}), ("gpt2", 4, "adamw", {**fsdp, "world": 8}),
        ("llama", 4, "adamw", {**fsdp, "world": 8}), ("lora_llama", 4, "adamw", {**fsdp, "world": 4, **LORA}),
        ("tower", 4, "adamw", {**fsdp, "world": 4, "accumulate": 2}),
        ("resnet18", 8, "momentum", {**fsdp, "world": 4}),
        ("tower_wide", 8, "adamw", {**fsdp, "world": 4, **bf16, "master_weights": True}),
        ("lora_llama", 4, "adamw", LORA), ("lora_llama", 4, "adamw", {**LORA, "weights": "nf4"}),
        ("lora_llama", 4, "adamw", {**LORA, **bf16}),
        ("lora_llama", 4, "adamw", {**LORA, **bf16, "weights": "nf4"}),
        ("lora_llama", 4, "adamw", {**LORA, **bf16, "weights": "int8"}),
        ("gpt2", 4, "adamw", {}), ("llama", 4, "adamw", {}), ("resnet18", 4, "adamw", {}),
        ("tower_wide", 8, "adamw", {}),
        ("gpt2", 4, "adamw", bf16), ("resnet18", 4, "adamw", bf16),
        ("gpt2", 4, "adamw", {**bf16, "master_weights": True}),
        ("gpt2", 4, "adamw", {**bf16, "master_weights": True, "accumulate": 2}),
        ("gpt2", 4, "adamw", {"ema": True}), ("resnet18", 4, "momentum", {"ema": True}),
        ("gpt2", 4, "adamw", {"offload": "optimizer"}), ("gpt2", 4, "adamw", {"offload": "gradients"}),
        ("tower_wide", 8, "adamw", fused), ("tower_wide", 8, "adamw", {**fused, **bf16}),
        ("tower_wide", 32, "sgd", fused), ("tower_wide", 32, "sgd", {**fused, **bf16}),
        ("tower_wide", 8, "adamw", {"loss": "chunked-cross-entropy=4"}), ("tower_wide", 8, "adamw", chunked),
        ("tower_wide", 32, "momentum", chunked), ("tower_wide", 32, "sgd", chunked),
        ("tower_wide", 32, "sgd", {**chunked, **bf16}),
        *[(name, rows, "sgd", {**BEHIND, "weights": kind, **({"precision": dtype} if dtype else {})}) for kind in ("nf4", "int8")
          for name, rows, dtype in (("frozen", 4096, "bf16"), ("frozen_plain", 4096, ""), ("frozen", 1024, "fp16"))],
        # together with checkpoints, and with one another
        ("tower_wide", 32, "adamw", blocks), ("llama", 8, "adamw", blocks),
        ("lora_llama", 8, "adamw", {**LORA, **blocks}), ("lora_llama", 8, "adamw", {**LORA, **blocks, "weights": "nf4"}),
        ("tower_wide", 32, "adamw", {**fsdp, "world": 4, **blocks}), ("llama", 8, "adamw", {**fsdp, "world": 4, **blocks}),
        ("tower_wide", 32, "adamw", {"offload": "optimizer", **blocks}),
        ("tower_wide", 32, "adamw", {"offload": "gradients", **blocks}),
        ("tower_wide", 8, "adamw", {**ddp, "world": 4, "offload": "optimizer"}),
        ("tower_wide", 8, "adamw", {"ddp": "view", "world": 4, "offload": "optimizer"}),
        ("tower_wide", 8, "adamw", {**fsdp, "world": 4, "offload": "gradients"}),
        # measured once
        ("bert", 8, "adamw", {**fsdp, "world": 4}), ("bert", 8, "adamw", {**fsdp, "world": 4, **blocks}),
        ("bert", 8, "adamw", {**fsdp, "world": 2, "offload": "gradients"}),
        ("bert", 8, "momentum", {"ddp": "view", "world": 4, "accumulate": 2}),
        ("small_vit", 16, "momentum", {**fsdp, "world": 8}), ("small_vit", 16, "adamw", {**bf16, "ema": True}),
        ("small_vit", 16, "adamw", {"offload": "gradients", **blocks}),
    ]
    return {name_of(row): row for row in rows}


def name_of(row):
    network, batch, optimizer, options = row
    return "-".join([network, str(batch), optimizer, *(f"{k}" if v is True else f"{k}={v}" for k, v in options.items()
                                                       if k != "train_only")])


def networks():
    """Name: how it is made, what it is fed with."""
    import torch
    from torch import nn
    from torch.nn import functional as F

    from truth.networks.common import sample, vision

    class Block(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            return x + self.down(F.gelu(self.up(self.norm(x))))

    class Tower(nn.Module):
        def __init__(self, width, blocks, words):
            super().__init__()
            self.embed = nn.Embedding(words, width)
            self.blocks = nn.ModuleList(Block(width) for _ in range(blocks))
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)

        def body(self, x):
            x = self.embed(x)
            for block in self.blocks:
                x = block(x)
            return self.norm(x)

        def forward(self, x):
            return self.head(self.body(x))

    class Frozen(nn.Module):
        """A frozen linear layer between trained ones."""

        def __init__(self, bias):
            super().__init__()
            self.first, self.frozen, self.last = nn.Linear(768, 768), nn.Linear(768, 3072, bias=bias), nn.Linear(3072, 64)
            self.frozen.requires_grad_(False)

        def forward(self, x):
            return self.last(torch.relu(self.frozen(self.first(x))))

    class Logits(nn.Module):
        def __init__(self, model):
            super().__init__()
            self.model = model

        def forward(self, tokens):
            # Without a mask the library looks for packed sequences, which no export can follow.
            return self.model(tokens, attention_mask=torch.ones_like(tokens), return_dict=True).logits

    def bert():
        from transformers import BertConfig, BertForSequenceClassification
        return Logits(BertForSequenceClassification(BertConfig(
            vocab_size=8192, hidden_size=256, num_hidden_layers=4, num_attention_heads=4, intermediate_size=1024,
            attn_implementation="eager")))

    def gpt2():
        from transformers import GPT2Config, GPT2LMHeadModel
        return Logits(GPT2LMHeadModel(GPT2Config(
            vocab_size=8192, n_positions=256, n_embd=256, n_layer=4, n_head=4, bos_token_id=0, eos_token_id=0,
            use_cache=False, attn_implementation="eager")))

    def llama():
        from transformers import LlamaConfig, LlamaForCausalLM
        return Logits(LlamaForCausalLM(LlamaConfig(
            vocab_size=8192, hidden_size=256, intermediate_size=688, num_hidden_layers=4, num_attention_heads=4,
            num_key_value_heads=2, use_cache=False, attn_implementation="eager", pad_token_id=0, bos_token_id=0,
            eos_token_id=0)))

    def lora_llama():
        from peft import LoraConfig, get_peft_model
        network = llama()
        network.model = get_peft_model(network.model, LoraConfig(r=8, lora_alpha=16, target_modules=["q_proj", "v_proj"]))
        return network

    def tokens(length):
        return lambda batch, device: torch.zeros(batch, length, dtype=torch.int64, device=device)

    def rows(batch, device):
        return torch.rand(batch, 768, device=device)

    def pictures(size):
        return lambda batch, device: torch.zeros(batch, 3, size, size, device=device)

    return {"tower": (lambda: Tower(96, 4, 1000), tokens(32)), "tower_wide": (lambda: Tower(512, 6, 8000), tokens(64)),
            "frozen": (lambda: Frozen(True), rows), "frozen_plain": (lambda: Frozen(False), rows), "llama": (llama, tokens(64)),
            "lora_llama": (lora_llama, tokens(64)), "gpt2": (gpt2, tokens(64)), "bert": (bert, tokens(64)),
            "resnet18": (vision("resnet18"), pictures(224)), "small_vit": (sample("small_vit"), pictures(96))}


# --- export -------------------------------------------------------------------------------------------


def export(folder):
    import torch
    for name, (make, inputs) in networks().items():
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
        with torch.autocast("cuda", dtype=low_of(options.get("amp", "fp16")), enabled="amp" in options):
            state["output"] = model(inputs)
            if loss == "mse":
                state["loss"] = torch.nn.functional.mse_loss(state["output"], state["targets"])
            else:
                state["loss"] = state.setdefault("losses", Loss("cross-entropy"))(state["output"])


def low_of(name):
    import torch
    return {"bf16": torch.bfloat16, "fp16": torch.float16}[name]


def build(row, made):
    """The network on the device as the options have it, and its input."""
    import torch
    import torch.distributed as dist
    name, batch, _, options = row
    make, inputs = made[name]
    if "world" in options:
        from torch.testing._internal.distributed.fake_pg import FakeStore
        dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=options["world"])
    torch.manual_seed(0)
    low = low_of(options["precision"]) if "precision" in options else None
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
    if "channels_last" in options:
        model, x = model.to(memory_format=torch.channels_last), x.contiguous(memory_format=torch.channels_last)
    if "ddp" in options:
        model = torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=options["ddp"] == "view")

        def all_reduce(state, bucket):
            done = torch.futures.Future()
            done.set_result(bucket.buffer())
            return done

        model.register_comm_hook(None, all_reduce)
    return model, x


def measure(row, made):
    import torch
    _, _, optimizer, options = row
    torch.backends.cudnn.allow_tf32 = "no_tf32" not in options
    torch.backends.cuda.enable_flash_sdp(False)
    torch.backends.cuda.enable_mem_efficient_sdp(False)
    torch.backends.cuda.enable_cudnn_sdp(False)
    model, x = build(row, made)
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


def read(path):
    try:
        with open(path) as file:
            return json.load(file)
    except (OSError, ValueError):
        return None


def difference(predicted, measured):
    if predicted == measured:
        return "exact"
    percent = 100 * (predicted - measured) / measured
    return f"{abs(predicted - measured):,} bytes" if abs(percent) < 0.005 else f"{percent:+.2f} %"


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
    found = table.report(exe, path, ["-b", str(batch), "--train", optimizer, "--attention", "math", "--gpu", "H100", *arguments_of(options), *more])
    if isinstance(found, str):
        return found
    training = found["training"]
    return {"tensors": training["peak_bytes"], "allocated": training["allocated_peak_bytes"],
            "reserved": training["reserved_peak_bytes"]}


def line(exe, folder, name, row):
    measured = read(os.path.join(folder, name + ".json"))
    more = ["--inplace"] if measured and measured["inplace"] else []  # which the user of a network knows
    ours, options = predicted(exe, folder, row, *more), " ".join(arguments_of(row[3]) + more) or "-"
    head = f"| {row[0]} | {row[1]} | {row[2]} | `{options}` |"
    if measured is None:
        return f"{head} not measured |"
    if isinstance(ours, str):
        return f"{head} {ours} |"
    kinds = ("tensors", "allocated", "reserved")
    return f"{head} {measured['tensors']:,} | " + " | ".join(difference(ours[k], measured[k]) for k in kinds) + " |"


def in_a_process(base, work):
    """What a measurement before leaves on the device would count."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            work()
            status = 0
        except Exception as error:  # noqa: BLE001: the others go on
            print(os.path.basename(base), "failed:", repr(error)[:300], flush=True)
        os._exit(status)
    os.waitpid(child, 0)


def note(base, row):
    result = measure(row, networks())
    with open(base + ".json", "w") as file:
        json.dump(result, file)
    print(os.path.basename(base), result, flush=True)


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
    table = cases()
    for name in arguments.names or table:
        base = os.path.join(arguments.folder, name)
        if arguments.what == "table":
            print(line(arguments.exe, arguments.folder, name, table[name]), flush=True)
        elif not os.path.exists(base + ".json"):
            in_a_process(base, lambda n=name, b=base: note(b, table[n]))


if __name__ == "__main__":
    main()
