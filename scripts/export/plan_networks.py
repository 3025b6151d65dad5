#!/usr/bin/env python3
"""Networks of libraries for plans_applied.py, drawn by a seed.

    python scripts/export/plan_networks.py [SEED [REVISION]]    prints the orders that the seed gives

Drawn are, of what the documents and scripts did not mention (of the git REVISION, by default that before this file): families of timm, language
models of transformers, and pairs of a decoder and an encoder of segmentation_models_pytorch. `drawn()` holds what the seed
2211 gave: the first five, three and two, in its order, but for what the library does not build as it is asked here, or has
more than 40 million parameters; in the same way the first of each that 2311 gave later; and five, three and two of 2711
(commit cce66f3), but for networks that take images of 256 alone.
"""

import random
import re
import subprocess
import sys
from pathlib import Path

import drawn_networks


def mentioned(revision):
    """The text of documents and scripts, to look names up in."""
    root = Path(__file__).resolve().parents[2]
    files = subprocess.run(["git", "ls-tree", "-r", "--name-only", revision, "docs", "scripts"], check=True,
                           capture_output=True, text=True, cwd=root).stdout.split()
    texts = [subprocess.run(["git", "show", f"{revision}:{name}"], check=True, capture_output=True, text=True,
                            cwd=root).stdout for name in files if name.endswith((".md", ".py"))]
    return plain("".join(texts))


def plain(text):
    return re.sub("[-_+]", "", text.lower())


def orders(seed, known):
    import segmentation_models_pytorch as smp
    import timm

    def is_new(name):
        return plain(name) not in known

    images = timm.list_models()
    random.Random(seed).shuffle(images)
    families = {}
    for name in images:
        families.setdefault(re.split("[_0-9]", name)[0], name)
    words = drawn_networks.drawn(seed, "", ("CAUSAL_LM", "MASKED_LM"))
    decoders = ("Unet", "UnetPlusPlus", "MAnet", "Linknet", "FPN", "PSPNet", "DeepLabV3", "DeepLabV3Plus", "PAN", "UPerNet",
                "Segformer", "DPT")
    encoders = [name for name in sorted(smp.encoders.encoders) if is_new(name)]
    masks = [(decoder, encoder) for decoder in decoders for encoder in encoders]
    random.Random(seed).shuffle(masks)
    return ([name for family, name in families.items() if is_new(family)],
            [name for _, name, config in words if is_new(config.removesuffix("Config"))], masks)


def image_model(name, **options):
    def make():
        import timm
        return timm.create_model(name, num_classes=10, **options)
    return make


def mask_model(decoder, encoder):
    def make():
        import segmentation_models_pytorch as smp
        return getattr(smp, decoder)(encoder_name=encoder, encoder_weights=None, classes=5)
    return make


def drawn():
    """Name: (make, size of images; None: words): 64, or the least that the network takes."""
    images = ("regnetz_b16", "halonet_h1", "focalnet_tiny_srf", "cspnext_m", "ghostnetv3_050", "cspresnet50w",
              "ecaresnet50d_pruned", "tnt_s_legacy_patch16_224", "semnasnet_140", "densenetblur121d", "darknetaa53",
              "coatnext_nano_rw_224", "gcresnext50ts", "resnetblur18", "spnasnet_100", "seresnetaa50d")
    words = (("UltrabertForMaskedLM", "UltrabertConfig"), ("Ministral3ForCausalLM", "Ministral3Config"),
             ("BertGenerationDecoder", "BertGenerationConfig"), ("JetMoeForCausalLM", "JetMoeConfig"),
             ("Lfm3ForCausalLM", "Lfm3Config"), ("RoCBertForCausalLM", "RoCBertConfig"),
             ("Emu3ForCausalLM", "Emu3TextConfig"), ("DiffLlamaForCausalLM", "DiffLlamaConfig"),
             ("BeamForCausalLM", "BeamConfig"), ("NomicBertForMaskedLM", "NomicBertConfig"),
             ("GraniteSWAForCausalLM", "GraniteSWAConfig"))
    masks = (("PAN", "efficientnet-b5"), ("Linknet", "timm-skresnet18"), ("UPerNet", "timm-efficientnet-b3"),
             ("Unet", "mobileone_s3"), ("PSPNet", "timm-tf_efficientnet_lite0"), ("FPN", "vgg19_bn"), ("UPerNet", "mobileone_s4"))
    sized = dict.fromkeys(("tnt_s_legacy_patch16_224", "coatnext_nano_rw_224"), {"img_size": 64})
    return {
        **{name: (image_model(name, **sized.get(name, {})), 256 if name.startswith("halonet") else 64) for name in images},
        **{model: (drawn_networks.transformer(model, config), None) for model, config in words},
        **{f"{decoder}:{encoder}": (mask_model(decoder, encoder), 128 if decoder == "PAN" else 64)
           for decoder, encoder in masks},
    }


def main():
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else 2211
    for order in orders(seed, mentioned(sys.argv[2] if len(sys.argv) > 2 else "18b37fd")):
        print(*(name if isinstance(name, str) else ":".join(name) for name in order[:16]))


if __name__ == "__main__":
    main()
