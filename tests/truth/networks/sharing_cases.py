"""Rows of scripts/export/sharing.py by name: (network, batch, optimizer, options of onnxvram). UNITS are the modules that are checkpointed or sharded."""
UNITS = {"tower": r"blocks\.\d+", "tower_wide": r"blocks\.\d+", "gpt2": r"model\.transformer\.h\.\d+",
         "llama": r"model\.model\.layers\.\d+", "lora_llama": r"model.*layers\.\d+", "resnet18": r"layer\d\.\d",
         "bert": r"model\.bert\.encoder\.layer\.\d+", "small_vit": r"encoder\.layers\.encoder_layer_\d+"}
LORA = {"train_only": ["*lora_*"]}
BEHIND = {"train_only": ["first.*", "last.*"], "loss": "mse"}  # of the frozen layer
FSDP, DDP = {"fsdp": True}, {"ddp": "copy"}
BF16, BLOCKS = {"precision": "bf16"}, {"checkpoint": "blocks"}
CHUNKED, FUSED = {"loss": "chunked-cross-entropy=8"}, {"loss": "fused-cross-entropy"}


def name_of(row):
    network, batch, optimizer, options = row
    return "-".join([network, str(batch), optimizer, *(f"{k}" if v is True else f"{k}={v}" for k, v in options.items()
                                                       if k != "train_only")])


CASES = {name_of(row): row for row in [
    ("tower", 4, "adamw", {**DDP, "world": 4}), ("tower", 4, "adamw", {"ddp": "view", "world": 4}),
    ("resnet18", 4, "adamw", {**DDP, "world": 4}), ("resnet18", 4, "adamw", {"ddp": "view", "world": 4}),
    ("tower_wide", 8, "adamw", {**DDP, "world": 8}),
    ("gpt2", 4, "momentum", {**DDP, "world": 8, "accumulate": 2}),
    ("gpt2", 4, "momentum", {"ddp": "view", "world": 8, "accumulate": 2}),
    ("tower_wide", 8, "adamw", {**FSDP, "world": 8}), ("gpt2", 4, "adamw", {**FSDP, "world": 8}),
    ("llama", 4, "adamw", {**FSDP, "world": 8}), ("lora_llama", 4, "adamw", {**FSDP, "world": 4, **LORA}),
    ("tower", 4, "adamw", {**FSDP, "world": 4, "accumulate": 2}),
    ("resnet18", 8, "momentum", {**FSDP, "world": 4}),
    ("tower_wide", 8, "adamw", {**FSDP, "world": 4, **BF16, "master_weights": True}),
    ("lora_llama", 4, "adamw", LORA), ("lora_llama", 4, "adamw", {**LORA, "weights": "nf4"}),
    ("lora_llama", 4, "adamw", {**LORA, **BF16}),
    ("lora_llama", 4, "adamw", {**LORA, **BF16, "weights": "nf4"}),
    ("lora_llama", 4, "adamw", {**LORA, **BF16, "weights": "int8"}),
    ("gpt2", 4, "adamw", {}), ("llama", 4, "adamw", {}), ("resnet18", 4, "adamw", {}),
    ("tower_wide", 8, "adamw", {}),
    ("gpt2", 4, "adamw", BF16), ("resnet18", 4, "adamw", BF16),
    ("gpt2", 4, "adamw", {**BF16, "master_weights": True}),
    ("gpt2", 4, "adamw", {**BF16, "master_weights": True, "accumulate": 2}),
    ("gpt2", 4, "adamw", {"ema": True}), ("resnet18", 4, "momentum", {"ema": True}),
    ("gpt2", 4, "adamw", {"offload": "optimizer"}), ("gpt2", 4, "adamw", {"offload": "gradients"}),
    ("tower_wide", 8, "adamw", FUSED), ("tower_wide", 8, "adamw", {**FUSED, **BF16}),
    ("tower_wide", 32, "sgd", FUSED), ("tower_wide", 32, "sgd", {**FUSED, **BF16}),
    ("tower_wide", 8, "adamw", {"loss": "chunked-cross-entropy=4"}), ("tower_wide", 8, "adamw", CHUNKED),
    ("tower_wide", 32, "momentum", CHUNKED), ("tower_wide", 32, "sgd", CHUNKED),
    ("tower_wide", 32, "sgd", {**CHUNKED, **BF16}),
    *[(name, rows, "sgd", {**BEHIND, "weights": kind, **({"precision": dtype} if dtype else {})}) for kind in ("nf4", "int8")
      for name, rows, dtype in (("frozen", 4096, "bf16"), ("frozen_plain", 4096, ""), ("frozen", 1024, "fp16"))],
    # together with checkpoints, and with one another
    ("tower_wide", 32, "adamw", BLOCKS), ("llama", 8, "adamw", BLOCKS),
    ("lora_llama", 8, "adamw", {**LORA, **BLOCKS}), ("lora_llama", 8, "adamw", {**LORA, **BLOCKS, "weights": "nf4"}),
    ("tower_wide", 32, "adamw", {**FSDP, "world": 4, **BLOCKS}), ("llama", 8, "adamw", {**FSDP, "world": 4, **BLOCKS}),
    ("tower_wide", 32, "adamw", {"offload": "optimizer", **BLOCKS}),
    ("tower_wide", 32, "adamw", {"offload": "gradients", **BLOCKS}),
    ("tower_wide", 8, "adamw", {**DDP, "world": 4, "offload": "optimizer"}),
    ("tower_wide", 8, "adamw", {"ddp": "view", "world": 4, "offload": "optimizer"}),
    ("tower_wide", 8, "adamw", {**FSDP, "world": 4, "offload": "gradients"}),
    # measured once
    ("bert", 8, "adamw", {**FSDP, "world": 4}), ("bert", 8, "adamw", {**FSDP, "world": 4, **BLOCKS}),
    ("bert", 8, "adamw", {**FSDP, "world": 2, "offload": "gradients"}),
    ("bert", 8, "momentum", {"ddp": "view", "world": 4, "accumulate": 2}),
    ("small_vit", 16, "momentum", {**FSDP, "world": 8}), ("small_vit", 16, "adamw", {**BF16, "ema": True}),
    ("small_vit", 16, "adamw", {"offload": "gradients", **BLOCKS}),
]}
