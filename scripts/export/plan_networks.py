"""Networks of libraries for compiled.py, drawn by seeds: families of timm, language models of transformers, and pairs of a decoder
and an encoder of segmentation_models_pytorch that no document and no script had when they were drawn. Left out was what the library
does not build as it is asked here, or has more than 40 million parameters.
"""
import libraries


def drawn():
    """Name: (make, size of images; None: words): 64, or the least that the network takes."""
    images = ("regnetz_b16", "halonet_h1", "focalnet_tiny_srf", "cspnext_m", "ghostnetv3_050", "cspresnet50w",
              "ecaresnet50d_pruned", "tnt_s_legacy_patch16_224", "semnasnet_140", "densenetblur121d", "darknetaa53",
              "coatnext_nano_rw_224", "gcresnext50ts", "resnetblur18", "spnasnet_100", "seresnetaa50d",
              "flexivit_small", "cspresnext50", "fbnetc_100", "hieradet_small", "skresnext50_32x4d")
    words = (("UltrabertForMaskedLM", "UltrabertConfig"), ("Ministral3ForCausalLM", "Ministral3Config"),
             ("BertGenerationDecoder", "BertGenerationConfig"), ("JetMoeForCausalLM", "JetMoeConfig"),
             ("Lfm3ForCausalLM", "Lfm3Config"), ("RoCBertForCausalLM", "RoCBertConfig"),
             ("Emu3ForCausalLM", "Emu3TextConfig"), ("DiffLlamaForCausalLM", "DiffLlamaConfig"),
             ("BeamForCausalLM", "BeamConfig"), ("NomicBertForMaskedLM", "NomicBertConfig"),
             ("GraniteSWAForCausalLM", "GraniteSWAConfig"), ("YosoForMaskedLM", "YosoConfig"),
             ("MraForMaskedLM", "MraConfig"))
    masks = (("PAN", "efficientnet-b5"), ("Linknet", "timm-skresnet18"), ("UPerNet", "timm-efficientnet-b3"),
             ("Unet", "mobileone_s3"), ("PSPNet", "timm-tf_efficientnet_lite0"), ("FPN", "vgg19_bn"), ("UPerNet", "mobileone_s4"),
             ("UPerNet", "timm-skresnext50_32x4d"), ("DeepLabV3Plus", "timm-skresnet34"))
    sized = dict.fromkeys(("tnt_s_legacy_patch16_224", "coatnext_nano_rw_224", "flexivit_small"), {"img_size": 64})
    return {
        **{name: (libraries.timm_model(name, **sized.get(name, {})), 256 if name.startswith("halonet") else 64) for name in images},
        **{model: (libraries.tiny(model, config), None) for model, config in words},
        **{f"{decoder}:{encoder}": (libraries.segmentation(decoder, encoder), 128 if decoder == "PAN" else 64)
           for decoder, encoder in masks},
    }
