#!/usr/bin/env python3
"""What whole training processes take: allocated and reserved bytes of networks that nothing was fitted to.

    python scripts/export/processes.py export|measure|table|replay DIR [ROW...]     as sharing.py

Chosen before one of them was predicted: networks of libraries that are in neither half of what cuDNN's choices were
fitted to, or in the half held out (scripts/cudnn/problems.py). Exports are default ones of the row's batch.
"""

import os

import sharing
from libraries import picked, segmentation


def timm(name, **options):
    def make():
        import timm as library
        return library.create_model(name, pretrained=False, num_classes=100, **options)
    return make


def vision(name, **options):
    def make():
        import torchvision
        return getattr(torchvision.models, name)(weights=None, **options)
    return make


def transformer(model, config, **options):
    def make():
        import transformers
        sizes = {"hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 1024, "vocab_size": 4000}
        return getattr(transformers, model)(getattr(transformers, config)(
            **{**sizes, **options}, attn_implementation="eager"))
    return picked(make, "logits", return_dict=True, use_cache=False) if "Causal" in model else picked(make, "logits", return_dict=True)


# Name: (make, dims of an image or a number of tokens, batch, optimizer, settings).
ROWS = {
    "legacy_seresnet34": (timm("legacy_seresnet34"), (3, 224, 224), 8, "momentum", ""),
    "lcnet_050": (timm("lcnet_050"), (3, 224, 224), 16, "adamw", ""),
    "mnasnet0_5": (vision("mnasnet0_5"), (3, 192, 192), 16, "momentum", ""),
    "gernet_m": (timm("gernet_m"), (3, 224, 224), 8, "momentum", ""),
    "repvgg_a1": (timm("repvgg_a1"), (3, 224, 224), 8, "adamw", "channels-last"),
    "ese_vovnet39b": (timm("ese_vovnet39b"), (3, 224, 224), 8, "momentum", ""),
    "regnety_016": (timm("regnety_016"), (3, 224, 224), 8, "adamw", "no-tf32"),
    "rexnetr_100": (timm("rexnetr_100"), (3, 224, 224), 8, "momentum", "fp16"),
    "ghostnet_100": (timm("ghostnet_100"), (3, 224, 224), 16, "adamw", ""),
    "vgg13_bn": (vision("vgg13_bn"), (3, 160, 160), 8, "momentum", ""),
    "resnetrs50": (timm("resnetrs50"), (3, 160, 160), 8, "adamw", "fp16"),
    "dla60x_c": (timm("dla60x_c"), (3, 224, 224), 8, "momentum", ""),
    "cs3darknet_focus_s": (timm("cs3darknet_focus_s"), (3, 256, 256), 8, "momentum", ""),
    "efficientnet_lite0": (timm("efficientnet_lite0"), (3, 224, 224), 16, "adamw", ""),
    "tf_efficientnetv2_b0": (timm("tf_efficientnetv2_b0"), (3, 192, 192), 8, "momentum", "fp16"),
    "resnest26d": (timm("resnest26d"), (3, 224, 224), 8, "adamw", ""),
    "darknet17": (timm("darknet17"), (3, 256, 256), 4, "momentum", "no-tf32"),
    "mobilenetv1_100": (timm("mobilenetv1_100"), (3, 224, 224), 8, "momentum", "channels-last"),
    "seresnet50_fp16_nhwc": (timm("legacy_seresnext50_32x4d"), (3, 224, 224), 8, "momentum", "fp16 channels-last"),
    "inception_v4": (timm("inception_v4"), (3, 299, 299), 4, "momentum", ""),
    "vit_tiny_patch16": (timm("vit_tiny_patch16_224"), (3, 224, 224), 16, "adamw", ""),
    "resmlp_12": (timm("resmlp_12_224"), (3, 224, 224), 8, "momentum", "bf16"),
    "levit_conv_128s": (timm("levit_conv_128s"), (3, 224, 224), 16, "adamw", ""),
    "mixer_small": (timm("mixer_s16_224"), (3, 224, 224), 8, "adamw", ""),
    "albert": (transformer("AlbertForMaskedLM", "AlbertConfig", embedding_size=128), 96, 8, "adamw", ""),
    "qwen2": (transformer("Qwen2ForCausalLM", "Qwen2Config", num_key_value_heads=2), 128, 8, "adamw", "bf16"),
    "phi": (transformer("PhiForCausalLM", "PhiConfig"), 96, 4, "momentum", ""),
    "mpnet": (transformer("MPNetForMaskedLM", "MPNetConfig"), 128, 8, "momentum", "fp16"),
    # Drawn: random.Random(2611).sample of timm's names, those of at most 40 million parameters and 256 pixels in the order drawn that are
    # neither above nor in the half that cuDNN's choices were fitted to; batch, optimizer and setting by another random.Random(2611).
    "resnetaa50": (timm("resnetaa50"), (3, 224, 224), 16, "adamw", ""),
    "mobilenetv1_100h": (timm("mobilenetv1_100h"), (3, 224, 224), 8, "momentum", "bf16"),
    "regnety_040_sgn": (timm("regnety_040_sgn"), (3, 224, 224), 4, "adamw", "channels-last"),
    "tf_efficientnet_lite1": (timm("tf_efficientnet_lite1"), (3, 240, 240), 8, "adamw", ""),
    "dpn68b": (timm("dpn68b"), (3, 224, 224), 16, "adamw", ""),
    "mobilevitv2_050": (timm("mobilevitv2_050"), (3, 256, 256), 4, "adamw", "channels-last"),
    "pit_s_distilled_224": (timm("pit_s_distilled_224"), (3, 224, 224), 4, "adamw", "fp16"),
    "levit_conv_256": (timm("levit_conv_256"), (3, 224, 224), 8, "adamw", "fp16"),
    "vit_small_patch16_dinov3_qkvb": (timm("vit_small_patch16_dinov3_qkvb"), (3, 256, 256), 4, "momentum", "fp16"),
    "maxxvit_rmlp_nano_rw_256": (timm("maxxvit_rmlp_nano_rw_256"), (3, 256, 256), 4, "momentum", "no-tf32"),
    "nf_regnet_b3": (timm("nf_regnet_b3"), (3, 224, 224), 4, "momentum", "channels-last"),
    "coat_mini": (timm("coat_mini"), (3, 224, 224), 4, "adamw", "fp16"),
    "dla46x_c": (timm("dla46x_c"), (3, 224, 224), 4, "momentum", ""),
    "nf_regnet_b4": (timm("nf_regnet_b4"), (3, 224, 224), 4, "adamw", "fp16"),
    "cs3se_edgenet_x": (timm("cs3se_edgenet_x"), (3, 256, 256), 8, "momentum", "no-tf32"),
    "convnextv2_nano": (timm("convnextv2_nano"), (3, 224, 224), 8, "adamw", "channels-last"),
    "cs3sedarknet_xdw": (timm("cs3sedarknet_xdw"), (3, 224, 224), 8, "momentum", "fp16"),
    "repvit_m0_9": (timm("repvit_m0_9"), (3, 224, 224), 4, "momentum", "fp16"),
    "seresnext50_32x4d": (timm("seresnext50_32x4d"), (3, 224, 224), 4, "adamw", "fp16"),
    "regnety_040": (timm("regnety_040"), (3, 224, 224), 8, "adamw", ""),
    "coatnet_nano_cc_224": (timm("coatnet_nano_cc_224"), (3, 224, 224), 16, "adamw", ""),
    "tf_efficientnetv2_b3": (timm("tf_efficientnetv2_b3"), (3, 240, 240), 8, "adamw", "no-tf32"),
    "lcnetv2_base": (timm("lcnetv2_base"), (3, 224, 224), 8, "adamw", ""),
    "hardcorenas_e": (timm("hardcorenas_e"), (3, 224, 224), 8, "momentum", ""),
    "convnext_atto": (timm("convnext_atto"), (3, 224, 224), 4, "adamw", ""),
    "resnet10t": (timm("resnet10t"), (3, 176, 176), 4, "adamw", "channels-last"),
    # Drawn likewise by random.Random(2612), after the rules were mended with some of the rows above.
    "fbnetv3_b": (timm("fbnetv3_b"), (3, 224, 224), 4, "adamw", ""),
    "iformer_m": (timm("iformer_m"), (3, 224, 224), 4, "momentum", ""),
    "swinv2_tiny_window8_256": (timm("swinv2_tiny_window8_256"), (3, 256, 256), 8, "adamw", ""),
    "vit_small_r26_s32_224": (timm("vit_small_r26_s32_224"), (3, 224, 224), 4, "momentum", ""),
    "fastvit_t12": (timm("fastvit_t12"), (3, 256, 256), 8, "adamw", "no-tf32"),
    "mobilenetv4_conv_medium": (timm("mobilenetv4_conv_medium"), (3, 256, 256), 16, "momentum", "no-tf32"),
    "tf_efficientnetv2_b2": (timm("tf_efficientnetv2_b2"), (3, 208, 208), 4, "momentum", "channels-last"),
    "cspdarknet53": (timm("cspdarknet53"), (3, 256, 256), 4, "adamw", "fp16"),
    "efficientnet_em": (timm("efficientnet_em"), (3, 240, 240), 16, "adamw", ""),
    "resnest50d_1s4x24d": (timm("resnest50d_1s4x24d"), (3, 224, 224), 4, "adamw", "no-tf32"),
    "repvgg_a2": (timm("repvgg_a2"), (3, 224, 224), 8, "momentum", ""),
    "regnetz_d32": (timm("regnetz_d32"), (3, 256, 256), 4, "adamw", ""),
    # Drawn likewise by random.Random(2711), before cuDNN was asked for families of shapes; the first ten that can be exported count.
    "maxvit_pico_rw_256": (timm("maxvit_pico_rw_256"), (3, 224, 224), 8, "adamw", ""),
    "mambaout_kobe": (timm("mambaout_kobe"), (3, 224, 224), 4, "adamw", ""),
    "hrnet_w18_ssld": (timm("hrnet_w18_ssld"), (3, 224, 224), 16, "momentum", ""),
    "fasternet_t1": (timm("fasternet_t1"), (3, 224, 224), 16, "adamw", "fp16"),
    "mobilenetv4_conv_blur_medium": (timm("mobilenetv4_conv_blur_medium"), (3, 224, 224), 8, "adamw", ""),
    "efficientvit_m1": (timm("efficientvit_m1"), (3, 224, 224), 16, "momentum", "fp16"),
    "maxxvit_rmlp_tiny_rw_256": (timm("maxxvit_rmlp_tiny_rw_256"), (3, 224, 224), 8, "momentum", "channels-last"),
    "selecsls60": (timm("selecsls60"), (3, 224, 224), 8, "momentum", ""),
    "mobilenetv3_rw": (timm("mobilenetv3_rw"), (3, 224, 224), 4, "adamw", "fp16"),
    "inception_next_atto": (timm("inception_next_atto"), (3, 224, 224), 8, "momentum", ""),
    "hiera_tiny_224": (timm("hiera_tiny_224"), (3, 224, 224), 16, "adamw", "fp16"),
    "botnet26t_256": (timm("botnet26t_256"), (3, 256, 256), 4, "adamw", "channels-last"),
    "swiftformer_s": (timm("swiftformer_s"), (3, 224, 224), 16, "adamw", ""),
    "inception_next_tiny": (timm("inception_next_tiny"), (3, 224, 224), 16, "momentum", ""),
    # Drawn by random.Random(2811), before the last rules: of timm as above, of torchvision, pairs of architecture and encoder of
    # segmentation-models-pytorch that no layer was asked of, and language models of transformers that no script here has.
    "cait_xxs24_224": (timm("cait_xxs24_224"), (3, 224, 224), 4, "adamw", ""),
    "repghostnet_080": (timm("repghostnet_080"), (3, 224, 224), 4, "momentum", "fp16"),
    "resnet50_clip_gap": (timm("resnet50_clip_gap"), (3, 224, 224), 16, "adamw", ""),
    "dla60_res2net": (timm("dla60_res2net"), (3, 224, 224), 16, "adamw", "bf16"),
    "gcvit_tiny": (timm("gcvit_tiny"), (3, 224, 224), 4, "adamw", "bf16"),
    "ghostnetv3_100": (timm("ghostnetv3_100"), (3, 224, 224), 4, "adamw", ""),
    "poolformerv2_s12": (timm("poolformerv2_s12"), (3, 224, 224), 8, "momentum", "channels-last"),
    "rexnet_300": (timm("rexnet_300"), (3, 224, 224), 4, "momentum", ""),
    "vit_srelpos_small_patch16_224": (timm("vit_srelpos_small_patch16_224"), (3, 224, 224), 4, "adamw", "no-tf32"),
    "poolformerv2_s36": (timm("poolformerv2_s36"), (3, 224, 224), 8, "adamw", ""),
    "selecsls60b": (timm("selecsls60b"), (3, 224, 224), 16, "adamw", ""),
    "swin_s3_tiny_224": (timm("swin_s3_tiny_224"), (3, 224, 224), 8, "adamw", ""),
    "regnetx_002": (timm("regnetx_002"), (3, 224, 224), 8, "adamw", ""),
    "rdnet_tiny": (timm("rdnet_tiny"), (3, 224, 224), 16, "adamw", "bf16"),
    "repvit_m1_5": (timm("repvit_m1_5"), (3, 224, 224), 4, "momentum", ""),
    "crossvit_tiny_240": (timm("crossvit_tiny_240"), (3, 240, 240), 8, "adamw", ""),
    "regnet_x_16gf": (vision("regnet_x_16gf"), (3, 224, 224), 16, "adamw", ""),
    "regnet_x_8gf": (vision("regnet_x_8gf"), (3, 224, 224), 4, "momentum", "bf16"),
    "UPerNet-efficientnet-b0": (segmentation("UPerNet", "efficientnet-b0"), (3, 256, 256), 4, "adamw", ""),
    "Linknet-inceptionv4": (segmentation("Linknet", "inceptionv4"), (3, 160, 160), 4, "adamw", "fp16"),
    "PAN-timm-efficientnet-b2": (segmentation("PAN", "timm-efficientnet-b2"), (3, 256, 256), 4, "momentum", ""),
    "PSPNet-vgg13_bn": (segmentation("PSPNet", "vgg13_bn"), (3, 160, 160), 8, "adamw", "channels-last"),
    "stablelm": (transformer("StableLmForCausalLM", "StableLmConfig"), 64, 4, "adamw", "fp16"),
    "xglm": (transformer("XGLMForCausalLM", "XGLMConfig"), 160, 4, "adamw", ""),
    "biogpt": (transformer("BioGptForCausalLM", "BioGptConfig"), 128, 8, "adamw", ""),
    "granite": (transformer("GraniteForCausalLM", "GraniteConfig"), 64, 8, "adamw", "fp16"),
    "gemma": (transformer("GemmaForCausalLM", "GemmaConfig"), 128, 8, "adamw", "bf16"),
    "starcoder2": (transformer("Starcoder2ForCausalLM", "Starcoder2Config"), 160, 8, "adamw", ""),
    "gptneo": (transformer("GPTNeoForCausalLM", "GPTNeoConfig"), 160, 8, "adamw", ""),
    "gptneox": (transformer("GPTNeoXForCausalLM", "GPTNeoXConfig"), 128, 4, "adamw", ""),
}


def networks():
    """As sharing.py has them; each has one row of the same name."""
    import torch

    def made(dims):
        if isinstance(dims, int):
            return lambda batch, device: torch.zeros(batch, dims, dtype=torch.int64, device=device)
        return lambda batch, device: torch.rand(batch, *dims, device=device)
    return {name: (row[0], made(row[1])) for name, row in ROWS.items()}


def cases():
    options = {"no-tf32": {"no_tf32": True}, "channels-last": {"channels_last": True}, "fp16": {"amp": "fp16"}, "bf16": {"amp": "bf16"}}
    return {name: (name, batch, optimizer, {k: v for word in settings.split() for k, v in options[word].items()})
            for name, (_, _, batch, optimizer, settings) in ROWS.items()}


def export(folder):
    import torch
    for name, (make, inputs) in networks().items():
        path = os.path.join(folder, name + ".onnx")

        def work():
            torch.manual_seed(0)
            torch.onnx.export(make().train(), (inputs(ROWS[name][2], "cpu"),), path, dynamo=True)
        if not os.path.exists(path):
            sharing.in_a_process(path, work)


if __name__ == "__main__":
    sharing.main(__doc__, cases(), networks, export)
