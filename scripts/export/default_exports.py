#!/usr/bin/env python3
"""Networks of libraries and some written here, exported with the exporter's default options, and what training them takes.

    python scripts/export/default_exports.py export DIR [NAME...]            NAME.onnx, and NAME.saved.json
    python scripts/export/default_exports.py peaks DIR [NAME...]             NAME.kept.json, NAME.momentum.json, NAME.adamw.json
    python scripts/export/default_exports.py table DIR --exe onnxvram        the tables of docs/accuracy/default-exports.md

With `--attention auto`, `peaks` and `table` are about the kernels of attention that PyTorch chooses (NAME.momentum.auto.json),
with `--amp fp16` under autocast, and the table has peaks alone.

`saved`: bytes that autograd keeps for backward, on fake CUDA tensors, which need no device. `peaks` needs the CUDA build
of PyTorch and a device: the same bytes there, and what is asked for at most in the fourth iteration of training, by tensors alone
(tensor_peak) and with workspaces, attention as separate operations. Outputs of more than one tensor have a cross-entropy
each, and the loss is their sum. `table` needs nothing but the files. One process for each network keeps failures apart.
"""

import argparse
import contextlib
import gc
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import drawn_families
import drawn_networks
import drawn_parts
import drawn_pictures
import drawn_sequences
import fresh_networks

BATCH = 4


def networks():
    """Name: (make, make input on a device, more options of onnxvram)."""
    import torch
    from torch import nn
    from torch.nn import functional as F

    def image(size=64, channels=3):
        return lambda device: torch.rand(BATCH, channels, size, size, device=device)

    def values(*shape):
        return lambda device: torch.rand(BATCH, *shape, device=device)

    def tokens(length=48):
        return lambda device: torch.zeros(BATCH, length, dtype=torch.int64, device=device)

    class Pick(nn.Module):
        """One result of a network that gives an object of many."""

        def __init__(self, network, key, **fixed):
            super().__init__()
            self.network, self.key, self.fixed = network, key, fixed

        def forward(self, x):
            return self.network(x, **self.fixed)[self.key]

    def transformer(model, config, key="logits", **options):
        def make():
            import transformers
            return Pick(getattr(transformers, model)(getattr(transformers, config)(**options)), key, return_dict=True)
        return make

    def vision(folder, name, **options):
        def make():
            import torchvision
            return getattr(getattr(torchvision.models, folder), name)(**options)
        return make

    def segmentation(name, encoder, **options):
        def make():
            import segmentation_models_pytorch
            return getattr(segmentation_models_pytorch, name)(encoder_name=encoder, encoder_weights=None, classes=5,
                                                              **options)
        return make

    class TwoHeads(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 32, 3, padding=1), nn.ReLU())
            self.dense, self.classes = nn.Conv2d(32, 5, 1), nn.Linear(32, 10)

        def forward(self, x):
            x = self.body(x)
            return self.dense(x), self.classes(x.mean((2, 3)))

    class Auxiliary(nn.Module):
        """Segmentation with an auxiliary head."""

        def __init__(self, network):
            super().__init__()
            self.network = network

        def forward(self, x):
            results = self.network(x)
            return results["out"], results["aux"]

    class Graph(nn.Module):
        """Messages along edges, added up at nodes, written in three ways."""

        def __init__(self, way, width=32, nodes=200, edges=800):
            super().__init__()
            numbers = torch.Generator().manual_seed(1)
            self.way, self.nodes = way, nodes
            self.register_buffer("source", torch.randint(0, nodes, (edges,), generator=numbers))
            self.register_buffer("target", torch.randint(0, nodes, (edges,), generator=numbers))
            self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(3))
            self.head = nn.Linear(width, 7)

        def forward(self, x):
            for layer in self.layers:
                h = layer(x)
                if self.way == "index_add":
                    h = torch.zeros_like(h).index_add(0, self.target, h[self.source])
                elif self.way == "scatter_add":
                    h = torch.zeros_like(h).scatter_add(0, self.target[:, None].expand(-1, h.shape[1]), h[self.source])
                else:
                    h = torch.zeros_like(h).index_add(0, self.target, h.index_select(0, self.source))
                x = F.relu(x + h)
            return self.head(x)

    def unet2d():
        import diffusers
        return Pick(diffusers.UNet2DModel(sample_size=32, in_channels=3, out_channels=3, block_out_channels=(32, 64),
                                          norm_num_groups=8, layers_per_block=1,
                                          down_block_types=("DownBlock2D", "AttnDownBlock2D"),
                                          up_block_types=("AttnUpBlock2D", "UpBlock2D")), 0, timestep=10,
                    return_dict=False)

    class Autoencoder(nn.Module):
        def __init__(self):
            super().__init__()
            import diffusers
            self.network = diffusers.AutoencoderKL(block_out_channels=(32, 64), norm_num_groups=8, layers_per_block=1,
                                                   down_block_types=("DownEncoderBlock2D",) * 2,
                                                   up_block_types=("UpDecoderBlock2D",) * 2)

        def forward(self, x):
            return self.network.decode(self.network.encode(x).latent_dist.mode()).sample

    small = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128}
    speech = {**small, "vocab_size": 30, "conv_dim": (32, 32, 32), "conv_stride": (5, 4, 4), "conv_kernel": (10, 4, 4),
              "num_feat_extract_layers": 3, "num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 4,
              "apply_spec_augment": False, "layerdrop": 0.0}
    video = {**small, "image_size": 32, "patch_size": 8, "num_frames": 4, "num_labels": 10}
    words = {**small, "vocab_size": 500}
    return {
        # attention as PyTorch chooses it
        "ViT-B/16": (lambda: __import__("torchvision").models.vit_b_16(), image(224), ()),
        "CLIP vision (64)": (transformer("CLIPVisionModel", "CLIPVisionConfig", "pooler_output", image_size=64, patch_size=8,
                                         **small), image(), ()),
        "LLaMA": (transformer("LlamaForCausalLM", "LlamaConfig", num_key_value_heads=2, **words), tokens(), ()),
        "Whisper encoder (64)": (lambda: Pick(__import__("transformers").WhisperModel(__import__("transformers").WhisperConfig(
            d_model=64, encoder_layers=2, decoder_layers=1, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=128,
            max_source_positions=100)).encoder, 0), values(80, 200), ()),
        "two heads": (TwoHeads, image(), ()),
        "DeepLabV3 with an auxiliary head": (
            lambda: Auxiliary(vision("segmentation", "deeplabv3_mobilenet_v3_large", weights=None, weights_backbone=None,
                                     aux_loss=True, num_classes=5)()), image(), ()),
        "wav2vec 2.0": (transformer("Wav2Vec2ForCTC", "Wav2Vec2Config", **speech), values(4000), ()),
        "HuBERT": (transformer("HubertForCTC", "HubertConfig", **speech), values(4000), ()),
        "WavLM": (transformer("WavLMForCTC", "WavLMConfig", **speech), values(4000), ()),
        "VideoMAE": (transformer("VideoMAEForVideoClassification", "VideoMAEConfig", **video), values(4, 3, 32, 32), ()),
        "ViViT": (transformer("VivitForVideoClassification", "VivitConfig", tubelet_size=[2, 8, 8], **video),
                  values(4, 3, 32, 32), ()),
        "R3D-18": (vision("video", "r3d_18", num_classes=10), values(3, 4, 32, 32), ()),
        "S3D": (vision("video", "s3d", num_classes=10), values(3, 16, 64, 64), ()),
        "graph, index_add": (lambda: Graph("index_add"), lambda device: torch.rand(200, 32, device=device), ()),
        "graph, scatter_add": (lambda: Graph("scatter_add"), lambda device: torch.rand(200, 32, device=device), ()),
        "graph, index_select": (lambda: Graph("index_select"), lambda device: torch.rand(200, 32, device=device), ()),
        "UNet2DModel": (unet2d, image(32), ()),
        "AutoencoderKL": (Autoencoder, image(32), ()),
        "U-Net (ResNet-18)": (segmentation("Unet", "resnet18"), image(), ()),
        "PSPNet (ResNet-18)": (segmentation("PSPNet", "resnet18"), image(), ()),
        "MA-Net (ResNet-18)": (segmentation("MAnet", "resnet18"), image(), ()),
        "PAN (ResNet-18)": (segmentation("PAN", "resnet18"), image(128), ()),
        "SegFormer (smp)": (segmentation("Segformer", "resnet18"), image(), ()),
        "BLOOM": (transformer("BloomForCausalLM", "BloomConfig", vocab_size=500, hidden_size=64, n_layer=2, n_head=4),
                  tokens(), ()),
        "Phi": (transformer("PhiForCausalLM", "PhiConfig", **words), tokens(), ()),
        "MobileBERT": (transformer("MobileBertForMaskedLM", "MobileBertConfig", embedding_size=32,
                                   intra_bottleneck_size=32, true_hidden_size=32, **words), tokens(), ()),
    }


def slug(name):
    return "".join(c if c.isalnum() else "_" for c in name)


def losses(output):
    """The sum of a cross-entropy for each output; targets are made with them."""
    from training_models import loss_of, targets_of
    outputs = output if isinstance(output, tuple) else (output,)
    targets = [targets_of(o) for o in outputs]
    return lambda results: sum_of(loss_of(o, t) for o, t in
                                  zip(results if isinstance(results, tuple) else (results,), targets))


def sum_of(items):
    total = None
    for item in items:
        total = item if total is None else total + item
    return total


def export(folder, name, network):
    import torch
    from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensorMode
    import saved_bytes
    make, inputs, _ = network
    torch.manual_seed(0)
    model = make().train()
    result = {"parameters": sum(p.numel() for p in model.parameters())}
    torch.onnx.export(model, (inputs("cpu"),), os.path.join(folder, slug(name) + ".onnx"),
                      dynamo=not name.endswith(drawn_pictures.OLDER))
    saved_bytes.targets_of = lambda output: losses(output)
    saved_bytes.loss_of = lambda output, loss: loss(output)
    try:
        with FakeTensorMode(allow_non_fake_inputs=True):
            result["saved"], result["buffers"] = saved_bytes.saved_bytes(saved_bytes.fake(model, "cuda"),
                                                                            inputs("cuda"))
    except DataDependentOutputException:
        pass  # kept() tells
    return result


def kept(network):
    """The same of the CUDA build: fake tensors know no reserve of cuDNN, and no values that Python asks for."""
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
    import saved_bytes
    make, inputs = network[:2]
    torch.manual_seed(0)
    saved_bytes.targets_of = lambda output: losses(output)
    saved_bytes.loss_of = lambda output, loss: loss(output)
    with sdpa_kernel(SDPBackend.MATH):
        saved, buffers = saved_bytes.saved_bytes(make().train().cuda(), inputs("cuda"))
    return {"saved": saved, "buffers": buffers}


MARKS = ("empty_cuda", "empty_strided_cuda", "empty_generic", "resize_bytes_cuda", "CUDAGuardImpl")


def is_tensor(event):
    """By the functions that asked for the memory: what no tensor's constructor allocates is a workspace."""
    names = [f["name"] for f in event["frames"]]
    head = [n for n in names if "::" in n or "(" in n][:14]
    return any(mark in n for n in head for mark in MARKS)


def peak(network, optimizer, context=None, amp=""):
    """Of tensors alone; in the context, by default with attention as separate operations."""
    import torch
    low = {"": None, "fp16": torch.float16, "bf16": torch.bfloat16}[amp]
    from torch.nn.attention import SDPBackend, sdpa_kernel
    make, inputs = network[:2]
    gc.collect()  # the network before is part of cycles
    torch.manual_seed(0)
    model = make().train().cuda()
    x = inputs("cuda")
    step = (torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9) if optimizer == "momentum"
            else torch.optim.AdamW(model.parameters()))
    state = {}

    def iterate():
        step.zero_grad()
        with torch.autocast("cuda", dtype=low, enabled=low is not None):
            state["output"] = model(x)
            state.setdefault("losses", losses(state["output"]))
            state["loss"] = state["losses"](state["output"])
        state["loss"].backward()
        step.step()

    with context or sdpa_kernel(SDPBackend.MATH):
        for _ in range(3):
            iterate()
        held = torch.cuda.memory_stats()["requested_bytes.all.current"]
        torch.cuda.memory._record_memory_history(enabled="all", context="alloc", stacks="all", max_entries=2000000)
        iterate()
        events = torch.cuda.memory._snapshot()["device_traces"][0]
    live, now, most, everything, most_at_all = {}, 0, 0, 0, 0
    for event in events:
        if event["action"] == "alloc":
            live[event["addr"]] = event["size"] if is_tensor(event) else 0
            now += live[event["addr"]]
            everything += event["size"]
            most, most_at_all = max(most, now), max(most_at_all, everything)
        elif event["action"] == "free_completed":
            now -= live.pop(event["addr"], event["size"])
            everything -= event["size"]
    return {"tensor_peak": held + most, "requested_peak": held + most_at_all}


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


def row(exe, folder, name, more):
    base = os.path.join(folder, slug(name))
    figures = [read(f"{base}.{kind}.json") for kind in ("saved", "momentum", "adamw")]
    figures[0] = read(f"{base}.kept.json") or figures[0]
    if None in figures or not os.path.exists(base + ".onnx"):
        return None
    results = []
    for optimizer in ("momentum", "adamw"):
        run = subprocess.run([exe, base + ".onnx", "--train", optimizer, "--loss", "cross-entropy", *more, "--json"],
                             capture_output=True, text=True, check=False)
        if run.returncode != 0:
            return f"| {name} | {run.stderr.strip().splitlines()[-1]} |"
        results.append(json.loads(run.stdout)["models"][0]["training"])
    kept, measured = results[0]["saved_activation_bytes"], figures[0]["saved"]
    peaks = [f["tensor_peak"] for f in figures[1:]]
    return (f"| {name} | {kept:,} | {measured:,} | {difference(kept, measured)} | {results[0]['peak_bytes']:,} | "
            f"{peaks[0]:,} | {difference(results[0]['peak_bytes'], peaks[0])} | "
            f"{difference(results[1]['peak_bytes'], peaks[1])} |")


def row_of_peaks(exe, folder, name, suffix, more):
    base, cells = os.path.join(folder, slug(name)), [name]
    for optimizer in ("momentum", "adamw"):
        measured = read(f"{base}.{optimizer}{suffix}.json")
        run = subprocess.run([exe, base + ".onnx", "--train", optimizer, "--loss", "cross-entropy", *more, "--json"],
                             capture_output=True, text=True, check=False)
        if measured is None or run.returncode != 0:
            return None
        found = json.loads(run.stdout)["models"][0]["training"]["peak_bytes"]
        cells += [f"{found:,}", f"{measured['tensor_peak']:,}", difference(found, measured["tensor_peak"])]
    return f"| {' | '.join(cells)} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("export", "peaks", "table"))
    parser.add_argument("folder")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--exe", default="onnxvram")
    parser.add_argument("--attention", default="math", choices=("math", "auto"))
    parser.add_argument("--amp", default="", choices=("", "fp16", "bf16"))
    arguments = parser.parse_args()
    is_chosen, amp = arguments.attention == "auto", arguments.amp
    suffix = (".auto" if is_chosen else "") + (f".{amp}" if amp else "")
    options = ["--attention", arguments.attention] + (["--amp", amp] if amp else [])
    context = contextlib.nullcontext() if is_chosen else None
    table = {**networks(), **fresh_networks.networks(), **fresh_networks.second(), **fresh_networks.drawn_vision(),
             **fresh_networks.drawn_later(), **drawn_networks.first(), **drawn_networks.later(), **drawn_parts.third(),
             **drawn_parts.fourth(), **drawn_families.families(), **drawn_families.families_later(),
             **drawn_pictures.pictures(), **drawn_pictures.pictures_later(), **drawn_pictures.pictures_third(),
             **drawn_pictures.pictures_fourth(), **drawn_pictures.pictures_fifth(), **drawn_pictures.pictures_sixth(),
             **drawn_sequences.first(), **drawn_sequences.second(), **drawn_sequences.third()}
    if arguments.what == "table":
        print("| network | momentum: predicted | measured | difference | AdamW: predicted | measured | difference |\n"
              "|---|--:|--:|--:|--:|--:|--:|" if suffix else
              "| network | kept: predicted | measured | difference | peak (momentum): predicted | measured | difference | "
              "AdamW |\n|---|---|---|---|---|---|---|---|")
    for name in arguments.names or table:
        base = os.path.join(arguments.folder, slug(name))
        if arguments.what == "table":
            line = (row_of_peaks(arguments.exe, arguments.folder, name, suffix, [*table[name][2], *options]) if suffix else
                    row(arguments.exe, arguments.folder, name, [*table[name][2], *options]))
            print(line if line is not None else f"| {name} | not measured |")
            continue
        measures = {"saved": lambda: export(arguments.folder, name, table[name])} if arguments.what == "export" else {
            **({} if suffix else {"kept": lambda: kept(table[name])}),
            **{o + suffix: lambda o=o: peak(table[name], o, context, amp) for o in ("momentum", "adamw")}}
        for kind, measure in measures.items():
            if os.path.exists(f"{base}.{kind}.json"):
                continue
            # In a process of its own: what the measurement before leaves on the device would count.
            child = os.fork()
            if child == 0:
                result = measure()
                with open(f"{base}.{kind}.json", "w") as file:
                    json.dump(result, file)
                print(name, kind, result, flush=True)
                os._exit(0)
            os.waitpid(child, 0)


if __name__ == "__main__":
    main()
