"""Networks whose time is estimated (scripts/export/speed.py): those that PyTorch counts, written down before, and those of ../published_speed.csv."""
from .common import SMALL, Network, image, numbers, picked, timm, transformer, values, vision


def text(name, model, config, length=64, **sizes):
    return Network(name, transformer(model, config, without=SMALL, **sizes), numbers(length), batch=2)


def lstm():
    from torch import nn
    return picked(nn.LSTM(64, 96, 2, batch_first=True), 0, {})


WORDS = {"hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 256, "vocab_size": 500, "embedding_size": 64}
LARGE = {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096}
COUNTED = [
    *[Network(name, vision(name), image(224), batch=2) for name in ("squeezenet1_1", "mnasnet1_0", "resnext50_32x4d", "efficientnet_v2_s")],
    *[Network(name, timm(name), image(224), batch=2)
      for name in ("repvgg_a0", "poolformer_s12", "pit_ti_224", "edgenext_xx_small", "xcit_nano_12_p16_224", "hrnet_w18_small")],
    text("distilbert", "DistilBertModel", "DistilBertConfig", dim=128, n_layers=2, n_heads=4, hidden_dim=256, vocab_size=500),
    text("albert", "AlbertModel", "AlbertConfig", **WORDS),
    text("t5 encoder", "T5EncoderModel", "T5Config", d_model=128, d_kv=32, d_ff=256, num_layers=2, num_heads=4, vocab_size=500),
    text("electra", "ElectraModel", "ElectraConfig", **WORDS),
    Network("lstm", lstm, values(32, 64), batch=2),
]
PUBLISHED = {network.name: network for network in (
    Network("resnet50", vision("resnet50"), image(224), batch=2), Network("efficientnet_b0", vision("efficientnet_b0"), image(224), batch=2),
    Network("resnext101_32x4d", timm("resnext101_32x4d"), image(224), batch=2),
    *[text(f"bert-large {length}", "BertModel", "BertConfig", length, **LARGE) for length in (128, 512)])}
