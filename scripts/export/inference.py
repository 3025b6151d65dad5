#!/usr/bin/env python3
"""Networks of libraries, exported for inference with default options, and what a forward pass takes on a device.

    python scripts/export/inference.py export DIR [NAME...]            NAME.dynamo.onnx, NAME.torchscript.onnx
    python scripts/export/inference.py measure DIR [NAME...]           NAME.json
    python scripts/export/inference.py table DIR --exe onnxvram        the tables of docs/accuracy/inference.md
    python scripts/export/inference.py library DIR SOURCE NAME...      names of population.py: export and measure
    python scripts/export/inference.py library-table DIR               their table

`--amp fp16` and `--amp bf16` measure and compare under autocast (NAME.fp16.json), `--setting` without TF32 or with channels
last; `--gpu` names the device that was measured.

`measure` needs the CUDA build of PyTorch and a device: what tensors take at most in the fourth forward pass under
no_grad(), workspaces left out, what the allocator held and had from the device in the third; the caller holds the input and the result. The network runs as its library makes it: activations in place where their modules say so, attention and
nn.MultiheadAttention as PyTorch chooses. `table` needs nothing but the files; it passes --inplace where a module other
than ReLU is in place, which its user knows.

`library` takes the networks of whole libraries that population.py builds, which see: a process each, NAME.export.json and
NAME.4.json, or NAME.*.fail. In their table, tensors have a second end (`--locals`), and a third figure with the options that warnings name.
"""

import argparse
import gc
import glob
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import drawn_inference  # noqa: E402
import drawn_parts  # noqa: E402
import population  # noqa: E402
from default_exports import difference, is_tensor, read, slug  # noqa: E402

BATCH = 4
DRAWN = ("Segformer (VGG-13)", "MobileViT for segmentation", "FastRGCNConv", "DPT for segmentation", "DETR", "Deformable DETR",
         "D-FINE", "YOLOS", "Depth Anything", "CogView4", "UPerNet (VGG-11)", "BEiT for segmentation")
EXPORTERS = ("dynamo", "torchscript")


def networks():
    """Name: (make, make input on a device for a batch, more batches to compare, exporters)."""
    import torch
    from torch import nn

    def image(size=224, channels=3):
        return lambda device, batch: torch.rand(batch, channels, size, size, device=device)

    def values(*shape):
        return lambda device, batch: torch.rand(batch, *shape, device=device)

    def tokens(length=128):
        return lambda device, batch: torch.zeros(batch, length, dtype=torch.int64, device=device)

    class Pick(nn.Module):
        """One result of a network that gives an object of many."""

        def __init__(self, network, key, **fixed):
            super().__init__()
            self.network, self.key, self.fixed = network, key, fixed

        def forward(self, x):
            return self.network(x, **self.fixed)[self.key]

    class Pairs(nn.Module):
        """The last of the flows between two images that lie behind each other."""

        def __init__(self, network):
            super().__init__()
            self.network = network

        def forward(self, x):
            return self.network(x[:, :3], x[:, 3:], num_flow_updates=3)[-1]

    def vision(folder, name, **options):
        def make():
            import torchvision
            models = torchvision.models
            return getattr(getattr(models, folder) if folder else models, name)(**options)
        return make

    def timm(name, **options):
        def make():
            import timm
            return timm.create_model(name, pretrained=False, **options)
        return make

    def transformer(model, config, key=0, fixed=(), **options):
        def make():
            import transformers
            return Pick(getattr(transformers, model)(getattr(transformers, config)(**options)), key, **dict(fixed))
        return make

    def segmentation(name, encoder):
        def make():
            import segmentation_models_pytorch
            return getattr(segmentation_models_pytorch, name)(encoder_name=encoder, encoder_weights=None, classes=5)
        return make

    def unet2d():
        import diffusers
        return Pick(diffusers.UNet2DModel(sample_size=32, block_out_channels=(64, 128), norm_num_groups=8,
                                          layers_per_block=1, down_block_types=("DownBlock2D", "AttnDownBlock2D"),
                                          up_block_types=("AttnUpBlock2D", "UpBlock2D")), 0, timestep=10,
                    return_dict=False)

    small = {"hidden_size": 256, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 512}
    words = {**small, "vocab_size": 1000}
    no_cache = (("use_cache", False),)
    table = {name: (vision(None, name), image(), (8, 32), EXPORTERS)
             for name in ("resnet50", "densenet121", "mobilenet_v2", "efficientnet_b0", "vit_b_16")}
    table.update({
        # torchvision
        "regnet_y_800mf": (vision(None, "regnet_y_800mf"), image()),
        "mobilenet_v3_large": (vision(None, "mobilenet_v3_large"), image()),
        "shufflenet_v2_x1_0": (vision(None, "shufflenet_v2_x1_0"), image()),
        "swin_v2_t": (vision(None, "swin_v2_t"), image(256)),
        "maxvit_t": (vision(None, "maxvit_t"), image()),
        "deeplabv3_resnet50": (lambda: Pick(vision("segmentation", "deeplabv3_resnet50", weights=None,
                                                   weights_backbone=None)(), "out"), image()),
        "lraspp": (lambda: Pick(vision("segmentation", "lraspp_mobilenet_v3_large", weights=None,
                                       weights_backbone=None)(), "out"), image()),
        "r2plus1d_18": (vision("video", "r2plus1d_18"), values(3, 8, 112, 112)),
        # timm
        "convnext_tiny (timm)": (timm("convnext_tiny"), image()),
        "pit_s_224": (timm("pit_s_224"), image()),
        "mixer_s16_224": (timm("mixer_s16_224"), image()),
        "vit_small_patch16_224": (timm("vit_small_patch16_224"), image()),
        "eva02_tiny_patch14_224": (timm("eva02_tiny_patch14_224"), image()),
        "mobilenetv4_conv_small": (timm("mobilenetv4_conv_small"), image()),
        "nfnet_l0": (timm("nfnet_l0"), image()),
        "repvgg_a0": (timm("repvgg_a0"), image()),
        "cspdarknet53": (timm("cspdarknet53"), image()),
        "efficientformerv2_s0": (timm("efficientformerv2_s0"), image()),
        "hrnet_w18_small": (timm("hrnet_w18_small"), image()),
        "resmlp_12_224": (timm("resmlp_12_224"), image()),
        # transformers
        "BERT": (transformer("BertModel", "BertConfig", **words), tokens()),
        "RoBERTa": (transformer("RobertaForSequenceClassification", "RobertaConfig", **words), tokens()),
        "GPT-2": (transformer("GPT2LMHeadModel", "GPT2Config", fixed=no_cache, vocab_size=1000, n_embd=256, n_layer=3,
                              n_head=4), tokens()),
        "Qwen3": (transformer("Qwen3ForCausalLM", "Qwen3Config", fixed=no_cache, num_key_value_heads=2, head_dim=64,
                              **words), tokens()),
        "T5 encoder": (transformer("T5EncoderModel", "T5Config", vocab_size=1000, d_model=256, d_ff=512, num_layers=3,
                                   num_heads=4), tokens()),
        "Whisper encoder": (lambda: Pick(__import__("transformers").WhisperModel(__import__("transformers").WhisperConfig(
            d_model=256, encoder_layers=3, decoder_layers=1, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=512,
            max_source_positions=400)).encoder, 0), values(80, 800)),
        "CLIP vision": (transformer("CLIPVisionModel", "CLIPVisionConfig", image_size=224, **small), image()),
        "SegFormer": (transformer("SegformerForSemanticSegmentation", "SegformerConfig"), image()),
        "DINOv2": (transformer("Dinov2Model", "Dinov2Config", image_size=224, **{k: v for k, v in small.items()
                                                                                if k != "intermediate_size"}), image()),
        "wav2vec 2.0": (transformer("Wav2Vec2Model", "Wav2Vec2Config", **small), values(16000)),
        # chosen when the rules for names of Python stood
        "googlenet": (vision(None, "googlenet", init_weights=False), image()),
        "mnasnet1_0": (vision(None, "mnasnet1_0"), image()),
        "swin_t": (vision(None, "swin_t"), image()),
        "fcn_resnet50": (lambda: Pick(vision("segmentation", "fcn_resnet50", weights=None, weights_backbone=None)(),
                                      "out"), image()),
        "davit_tiny": (timm("davit_tiny"), image()),
        "twins_svt_small": (timm("twins_svt_small"), image()),
        "ghostnet_100": (timm("ghostnet_100"), image()),
        "poolformerv2_s12": (timm("poolformerv2_s12"), image()),
        "levit_128s": (timm("levit_128s"), image()),
        "dpn68": (timm("dpn68"), image()),
        "OPT": (transformer("OPTForCausalLM", "OPTConfig", fixed=no_cache, vocab_size=1000, hidden_size=256,
                            num_hidden_layers=3, num_attention_heads=4, ffn_dim=512, word_embed_proj_dim=256,
                            max_position_embeddings=256), tokens()),
        "GPT-NeoX": (transformer("GPTNeoXForCausalLM", "GPTNeoXConfig", fixed=no_cache, **words), tokens()),
        "Mistral": (transformer("MistralForCausalLM", "MistralConfig", fixed=no_cache, num_key_value_heads=2, **words),
                    tokens()),
        "ModernBERT": (transformer("ModernBertModel", "ModernBertConfig", pad_token_id=0, bos_token_id=1, eos_token_id=2,
                                   cls_token_id=1, sep_token_id=2, **words), tokens()),
        "ALBERT": (transformer("AlbertModel", "AlbertConfig", embedding_size=64, **words), tokens()),
        "ViT (transformers)": (transformer("ViTModel", "ViTConfig", image_size=224, **small), image()),
        # chosen when names and what `x += y` overwrites stood
        "resnext50_32x4d": (vision(None, "resnext50_32x4d"), image()),
        "mobilevit_s": (timm("mobilevit_s"), image(256)),
        "coat_lite_tiny": (timm("coat_lite_tiny"), image()),
        "DistilBERT": (transformer("DistilBertModel", "DistilBertConfig", vocab_size=1000, dim=256, n_layers=3, n_heads=4,
                                   hidden_dim=512), tokens()),
        "Gemma": (transformer("GemmaForCausalLM", "GemmaConfig", fixed=no_cache, num_key_value_heads=2, head_dim=64,
                              **words), tokens()),
        "LinkNet (MobileNet V2)": (segmentation("Linknet", "mobilenet_v2"), image()),
        # drawn: random.Random(20261122) over timm, torchvision and the models of transformers that take words, where no name
        # like it stood in these scripts or documents, with less than 80 million parameters
        "convmixer_768_32": (timm("convmixer_768_32"), image()),
        "mixnet_xl": (timm("mixnet_xl"), image()),
        "ecaresnext26t_32x4d": (timm("ecaresnext26t_32x4d"), image()),
        "shvit_s1": (timm("shvit_s1"), image()),
        "resnetrs50": (timm("resnetrs50"), image(160)),
        "gmixer_24_224": (timm("gmixer_24_224"), image()),
        "hardcorenas_e": (timm("hardcorenas_e"), image()),
        "fbnetv3_b": (timm("fbnetv3_b"), image()),
        "raft_large": (lambda: Pairs(vision("optical_flow", "raft_large")()), image(128, 6)),
        "ERNIE": (transformer("ErnieModel", "ErnieConfig", pad_token_id=0, **words), tokens()),
        "FlexOlmo": (transformer("FlexOlmoModel", "FlexOlmoConfig", fixed=no_cache, pad_token_id=0, **words), tokens()),
        "XLM-RoBERTa": (transformer("XLMRobertaModel", "XLMRobertaConfig", pad_token_id=0, **words), tokens()),
        "Granite": (transformer("GraniteModel", "GraniteConfig", fixed=no_cache, pad_token_id=0, **words), tokens()),
        # drawn for training (drawn_parts.py), of which no rule was made
        **{name: (make, lambda device, batch, given=given: given(device)) for name, (make, given, _) in
           {**drawn_parts.third(), **drawn_parts.fourth()}.items() if name in DRAWN},
        # segmentation-models-pytorch, diffusers
        "U-Net (ResNet-34)": (segmentation("Unet", "resnet34"), image()),
        "U-Net++ (MobileNet V2)": (segmentation("UnetPlusPlus", "mobilenet_v2"), image()),
        "FPN (EfficientNet-B0)": (segmentation("FPN", "efficientnet-b0"), image()),
        "UNet2DModel": (unet2d, image(32)),
        # one layer of each norm and of attention
        "nn.TransformerEncoder": (lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(256, 4, 512, batch_first=True),
                                                                3), values(128, 256), (), EXPORTERS),
    })
    table = {name: (row + ((), ("dynamo",)))[:4] if len(row) == 2 else row for name, row in table.items()}
    drawn = {name: (make, given, (batch,), ("dynamo",), how) for name, (make, given, batch, how) in drawn_inference.table().items()}
    return {**{name: (*row, "") for name, row in table.items()}, **drawn}


def in_half(how, module_or_input):
    """With `half` floats are of 16 bits; inputs may be several, and tokens stay."""
    import torch
    if how != "half":
        return module_or_input
    if isinstance(module_or_input, tuple):
        return tuple(in_half(how, each) for each in module_or_input)
    is_floating = not isinstance(module_or_input, torch.Tensor) or module_or_input.is_floating_point()
    return module_or_input.half() if is_floating else module_or_input


def export(base, network):
    import torch
    make, inputs, batches, exporters, how = network
    batch = batches[0] if len(batches) == 1 else BATCH
    for exporter in exporters:
        path = f"{base}.{exporter}.onnx"
        if os.path.exists(path):
            continue
        torch.manual_seed(0)
        try:
            torch.onnx.export(in_half(how, make().eval()), (in_half(how, inputs("cpu", batch)),), path, dynamo=exporter == "dynamo", verbose=False)
        except Exception as error:  # noqa: BLE001: whatever an exporter fails with, the others go on
            print(base, exporter, "failed:", str(error).strip().splitlines()[:1], flush=True)
            if os.path.exists(path):
                os.remove(path)


def measure(network, batch, amp, setting):
    import torch
    make, inputs, how = network[0], network[1], network[4]
    gc.collect()  # the network before is part of cycles
    torch.cuda.empty_cache()
    torch.backends.cudnn.allow_tf32 = setting != "no-tf32"
    torch.manual_seed(0)
    model = in_half(how, make().eval())
    in_place = any(getattr(m, "inplace", False) and not isinstance(m, torch.nn.ReLU) for m in model.modules())
    model, state = model.cuda(), {}
    if setting == "channels-last":
        model = model.to(memory_format=torch.channels_last)
    x = in_half(how, inputs("cuda", batch))
    amp = "fp16" if how == "amp" else amp
    if setting == "channels-last":
        x = x.contiguous(memory_format=torch.channels_last)

    def run():
        state.clear()
        low = {"": None, "fp16": torch.float16, "bf16": torch.bfloat16}[amp]
        with torch.no_grad(), torch.autocast("cuda", dtype=low, enabled=low is not None):
            state["y"] = model(x)

    for _ in range(3):
        torch.cuda.reset_peak_memory_stats()
        run()
    stats = torch.cuda.memory_stats()
    state.clear()
    held = torch.cuda.memory_stats()["requested_bytes.all.current"]
    torch.cuda.memory._record_memory_history(enabled="all", context="alloc", stacks="all", max_entries=2000000)
    run()
    events = torch.cuda.memory._snapshot()["device_traces"][0]
    torch.cuda.memory._record_memory_history(enabled=None)
    live, now, most = {}, 0, 0
    for event in events:
        if event["action"] == "alloc":
            live[event["addr"]] = event["size"] if is_tensor(event) else 0
            now += live[event["addr"]]
            most = max(most, now)
        elif event["action"] == "free_completed":
            now -= live.pop(event["addr"], event["size"])
    return {"tensors": held + most, "allocated": stats["allocated_bytes.all.peak"],
            "reserved": stats["reserved_bytes.all.peak"], "inplace": in_place}


def predicted(exe, path, options):
    run = subprocess.run([exe, path, "--runtime", "torch", *options, "--json"], capture_output=True, text=True, check=False)
    if run.returncode != 0:
        return run.stderr.strip().splitlines()[-1]
    model = json.loads(run.stdout)["models"][0]
    return {**model["runtimes"]["torch"], "codes": sorted({d.get("code", "?") for d in model["diagnostics"]})}


def result_of(base, batch, *settings):
    return ".".join([base, str(batch), *(s for s in settings if s), "json"])


def rows(exe, base, name, network, amp, setting, gpu):
    for batch in network[2] or (BATCH,):
        found = read(result_of(base, batch, amp, setting))
        if found is None:
            print(f"| {name} | {batch} | not measured |")
            continue
        for exporter in network[3]:
            path = f"{base}.{exporter}.onnx"
            cells = [name, str(batch), exporter, f"{found['tensors']:,}"]
            options = (["--inplace"] if found["inplace"] else []) + ["--gpu", gpu]
            options += ["-b", str(batch)] if batch != BATCH and len(network[2]) != 1 else []
            options += ["--amp", amp or "fp16"] if amp or network[4] == "amp" else []
            options += ["--" + setting] if setting else []
            result = predicted(exe, path, options) if os.path.exists(path) else "not exported"
            if isinstance(result, str):
                print("| " + " | ".join([*cells, result]) + " |", flush=True)
                continue
            low, high = result["allocated_peak_bytes"], result["locals_peak_bytes"]
            tensors = result["tensor_peak_bytes"]
            print("| " + " | ".join([*cells, f"{tensors:,}", difference(tensors, found["tensors"]),
                                     difference(low, found["allocated"]),
                                     "" if high == low else difference(high, found["allocated"]),
                                     difference(result["reserved_peak_bytes"], found["reserved"]) if "reserved" in found else "",
                                     ", ".join(result["codes"])]) + " |", flush=True)


def library_network(source, name):
    make, inputs = population.SOURCES[source][1](name)
    return make, lambda device, batch: inputs(device), (BATCH,), ("dynamo",), ""


def library(folder, source, names):
    import onnxscript  # noqa: F401 (here, so that not every process loads what takes longest)
    import torch  # noqa: F401
    os.makedirs(folder, exist_ok=True)
    for name in names:
        base = os.path.join(folder, slug(f"{source} {name}"))
        kinds = {"export": lambda: population.export(base, source, name, is_training=False),
                 str(BATCH): lambda: measure(library_network(source, name), BATCH, "", "")}
        failed = next((kind for kind, f in kinds.items() if not population.in_a_process(base, kind, f)), None)
        print(source, name, f"failed: {failed}" if failed else "measured", flush=True)


def library_table(folder, exe, gpu):
    print("| network | tensors: measured | predicted | difference | with `--locals` | with options that warnings name | allocated | "
          "reserved | diagnostics |\n|---|--:|--:|--:|--:|---|--:|--:|---|")
    for path in sorted(glob.glob(os.path.join(folder, "*.export.json"))):
        base, exported = path[:-len(".export.json")], read(path)
        found = read(result_of(base, BATCH))
        if found is None:
            continue
        always = ["--gpu", gpu] + (["--inplace"] if found["inplace"] else [])

        def tensors(*options):
            result = predicted(exe, base + ".onnx", [*always, *options])
            return result if isinstance(result, str) else difference(result["tensor_peak_bytes"], found["tensors"])
        result = predicted(exe, base + ".onnx", always)
        if isinstance(result, str):
            print(f"| {exported['name']} | {result} |", flush=True)
            continue
        options = population.options_of(result["codes"], exported)
        asked = " ".join(options)
        print("| " + " | ".join([exported["name"], f"{found['tensors']:,}", f"{result['tensor_peak_bytes']:,}",
                                 difference(result["tensor_peak_bytes"], found["tensors"]),
                                 tensors("--locals") if "python-locals" in result["codes"] else "",
                                 f"{tensors(*options)} with `{asked}`" if options else "",
                                 difference(result["allocated_peak_bytes"], found["allocated"]),
                                 difference(result["reserved_peak_bytes"], found["reserved"]),
                                 ", ".join(result["codes"])]) + " |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("export", "measure", "table", "library", "library-table"))
    parser.add_argument("folder")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--exe", default="onnxvram")
    parser.add_argument("--amp", default="", choices=("", "fp16", "bf16"))
    parser.add_argument("--setting", default="", choices=("", "no-tf32", "channels-last"))
    parser.add_argument("--gpu", default="H100")
    arguments = parser.parse_args()
    if arguments.what == "library":
        library(arguments.folder, arguments.names[0], arguments.names[1:])
        return
    if arguments.what == "library-table":
        library_table(arguments.folder, arguments.exe, arguments.gpu)
        return
    table = networks()
    if arguments.what == "table":
        print("| network | batch | export | tensors: measured | predicted | difference | allocated | with `--locals` | "
              "reserved | diagnostics |\n|---|--:|---|--:|--:|--:|--:|--:|--:|---|")
    for name in arguments.names or table:
        base = os.path.join(arguments.folder, slug(name))
        if arguments.what == "table":
            rows(arguments.exe, base, name, table[name], arguments.amp, arguments.setting, arguments.gpu)
        elif arguments.what == "export":
            export(base, table[name])
            print(name, flush=True)
        for batch in table[name][2] or (BATCH,) if arguments.what == "measure" else ():
            path = result_of(base, batch, arguments.amp, arguments.setting)
            if os.path.exists(path):
                continue
            try:
                result = measure(table[name], batch, arguments.amp, arguments.setting)
            except Exception as error:  # noqa: BLE001: one network keeps no other from being measured
                print(name, batch, "failed:", error, flush=True)
                continue
            with open(path, "w") as file:
                json.dump(result, file)
            print(name, batch, result, flush=True)


if __name__ == "__main__":
    main()
