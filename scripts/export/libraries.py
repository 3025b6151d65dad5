"""Networks of libraries by their names, small ones, and how the scripts of this folder measure and compare them."""
import functools
import json
import operator

BATCH = 4

TINY = {
    **dict.fromkeys(("hidden_size", "d_model", "n_embd", "embedding_size", "emb_dim", "projection_dim", "dim",
                     "num_mel_bins_out"), 64),
    **dict.fromkeys(("num_hidden_layers", "num_layers", "n_layer", "n_layers", "encoder_layers", "decoder_layers",
                     "num_decoder_layers", "num_encoder_layers"), 2),
    **dict.fromkeys(("num_attention_heads", "num_heads", "n_head", "n_heads", "encoder_attention_heads",
                     "decoder_attention_heads"), 4),
    **dict.fromkeys(("intermediate_size", "d_ff", "encoder_ffn_dim", "decoder_ffn_dim", "ffn_dim"), 128),
    **dict.fromkeys(("num_key_value_heads",), 2),
    **dict.fromkeys(("head_dim", "d_kv", "kv_channels"), 16),
    **dict.fromkeys(("max_position_embeddings", "n_positions", "max_seq_len"), 64),
    "vocab_size": 500, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
    "num_feat_extract_layers": 3, "num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 4,
    "conv_dim": (32, 32, 32), "conv_stride": (5, 4, 4), "conv_kernel": (10, 4, 4), "apply_spec_augment": False,
    "layerdrop": 0.0, "encoder_layerdrop": 0.0, "decoder_layerdrop": 0.0, "num_labels": 10, "use_cache": False,
}


def image(size=64, channels=3):
    def make(device):
        import torch
        return torch.rand(BATCH, channels, size, size, device=device)
    return make


def values(*shape):
    def make(device):
        import torch
        return torch.rand(BATCH, *shape, device=device)
    return make


def tokens(length=48):
    def make(device):
        import torch
        return torch.zeros(BATCH, length, dtype=torch.int64, device=device)
    return make


def picked(make, key=None, **fixed):
    """A network with one result: a key of an object of many, or an item of a tuple."""
    def build():
        from torch import nn

        class Picked(nn.Module):
            def __init__(self):
                super().__init__()
                self.network = make()

            def forward(self, x):
                result = self.network(x, **fixed)
                return result if key is None else result[key]
        return Picked()
    return build


def transformer(model, config, key="logits", **options):
    def make():
        import transformers
        return getattr(transformers, model)(getattr(transformers, config)(**options))
    return picked(make, key, return_dict=True)


def tiny(model, config):
    """A language model of transformers whose configuration takes from TINY what it knows."""
    def make():
        import transformers
        known = getattr(transformers, config)()
        return getattr(transformers, model)(type(known)(**{key: value for key, value in TINY.items() if hasattr(known, key)}))
    return picked(make, "logits", return_dict=True)


def timm_model(name, **options):
    def make():
        import timm
        return timm.create_model(name, pretrained=False, num_classes=10, **options)
    return make


def vision(folder, name, **options):
    def make():
        import torchvision
        return getattr(getattr(torchvision.models, folder), name)(**options)
    return make


def segmentation(name, encoder, **options):
    def make():
        import segmentation_models_pytorch
        return getattr(segmentation_models_pytorch, name)(encoder_name=encoder, encoder_weights=None, classes=5, **options)
    return make


def slug(name):
    return "".join(c if c.isalnum() else "_" for c in name)


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


def losses(output):
    """The sum of a cross-entropy for each output; targets are made with them."""
    from training_models import loss_of, targets_of
    outputs = output if isinstance(output, tuple) else (output,)
    targets = [targets_of(o) for o in outputs]
    return lambda results: functools.reduce(operator.add, (
        loss_of(o, t) for o, t in zip(results if isinstance(results, tuple) else (results,), targets)))
