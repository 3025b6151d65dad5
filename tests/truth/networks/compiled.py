"""Networks whose kept bytes torch.compile divides (scripts/export/compiled.py)."""
from . import common
from .common import Network, image, numbers, sample, timm, values, vision


def transformer(name, model, config, **options):
    return Network(name, common.transformer(model, config, "logits", fixed={"return_dict": True}, without=common.SMALL, **options), numbers(64))


def entry(name, key, **options):
    return Network(name, vision(key, **options), image(224))


SMALL = {"hidden_size": 128, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 344}
WORDS = {**SMALL, "vocab_size": 2000}
NETWORKS = {row.name: row for row in (
    entry("ViT-B/16", "vit_b_16"),
    transformer("LLaMA", "LlamaForCausalLM", "LlamaConfig", num_key_value_heads=4, **WORDS),
    entry("EfficientNet-B0", "efficientnet_b0", stochastic_depth_prob=0.0),
    Network("r3d_18", vision("r3d_18", "video"), values(3, 8, 64, 64)),
    entry("ResNet-18", "resnet18"), entry("ResNet-50", "resnet50"),
    transformer("BERT", "BertForMaskedLM", "BertConfig", **WORDS),
    transformer("GPT-2", "GPT2LMHeadModel", "GPT2Config", n_embd=128, n_layer=4, n_head=4, vocab_size=2000, bos_token_id=0,
                eos_token_id=0, use_cache=False),
    Network("U-Net", sample("UNet"), image(64)), entry("ConvNeXt-T", "convnext_tiny", stochastic_depth_prob=0.0),
    entry("MobileNetV3-L", "mobilenet_v3_large"),
    Network("small ViT", sample("small_vit"), image(96)),
    # Chosen before the program had seen any of them.
    entry("RegNetY-400MF", "regnet_y_400mf"), entry("Swin-T", "swin_t", stochastic_depth_prob=0.0),
    transformer("Qwen3", "Qwen3ForCausalLM", "Qwen3Config", num_key_value_heads=2, head_dim=32, **WORDS),
    Network("MambaOut", timm("mambaout_femto", num_classes=10), image(64)),
    Network("DLA-34", timm("dla34", num_classes=10), image(64)),
    transformer("DistilBERT", "DistilBertForMaskedLM", "DistilBertConfig", vocab_size=2000, dim=128, n_layers=4, n_heads=4, hidden_dim=344))}
