"""What a list of networks is made of. A list is a module with `NETWORKS`."""
from typing import Any, Callable, NamedTuple, Tuple


class Network(NamedTuple):
    name: str
    make: Callable[[], Any]
    inputs: Callable[[int], Tuple[Any, ...]]  # on the host, for a batch
    loss: str = "cross-entropy"  # of each output; "mse"; "none": the network gives its loss
    batch: int = 4  # of the exports
    other: int = 6  # a second one that is measured
    dtype: str = "float32"


def image(size=64, channels=3):
    return values(channels, size, size)


def values(*shape):
    def make(batch):
        import torch
        return (torch.rand(batch, *shape),)
    return make


def numbers(*shape, below=2):
    """Whole numbers, zeros: embeddings and classes take them whatever they count."""
    def make(batch):
        import torch
        return (torch.zeros(batch, *shape, dtype=torch.int64),)
    return make


def together(*makes):
    return lambda batch: tuple(x for make in makes for x in make(batch))


def vision(name, folder=None, **options):
    def make():
        import torchvision
        models = torchvision.models
        return getattr(getattr(models, folder) if folder else models, name)(**options)
    return make


def sample(name):
    """Of samples/nets.py."""
    def make():
        import os
        import sys
        sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../samples"))
        import nets
        return getattr(nets, name)()
    return make


def timm(name, **options):
    def make():
        import timm as library
        return library.create_model(name, pretrained=False, **options)
    return make


SMALL = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 300,
         "d_model": 64, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
         "encoder_ffn_dim": 128, "decoder_ffn_dim": 128, "n_embd": 64, "n_layer": 2, "n_head": 4, "num_key_value_heads": 2,
         "head_dim": 16, "max_position_embeddings": 128, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "use_cache": False}


def transformer(model, config, result=0, part=None, fixed=None, without=(), **options):
    """A network of transformers from its configuration in small, but for sizes that it does not take (`without`); `result` of what it gives,
    called with keywords `fixed`."""
    def make():
        import transformers
        kind = getattr(transformers, config)
        known = kind()
        sizes = {k: v for k, v in SMALL.items() if k not in options and k not in without and hasattr(known, k)}
        network = getattr(transformers, model)(kind(**sizes, **options))
        if part is not None:
            network = getattr(network, part)
        return picked(network, result, fixed or {})
    return make


def picked(network, result, fixed):
    from torch import nn

    class Picked(nn.Module):
        """One result of a network that gives an object of many."""

        def __init__(self, network):
            super().__init__()
            self.network = network

        def forward(self, *inputs):
            return self.network(*inputs, **fixed)[result]
    return Picked(network)
