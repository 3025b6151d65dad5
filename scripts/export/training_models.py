"""Networks whose training memory is measured: how each is made, fed, exported.

A network takes `inputs(batch)` and gives one tensor that the cross-entropy takes: [N, classes ...], or [N, S, classes]
of a language model.  Attention runs as the separate operations that an export shows.
"""

import os
import sys
from dataclasses import dataclass
from typing import Callable

import torch
import torchvision
from torch import nn
from torch.nn import functional as F

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, os.pardir, os.pardir, "samples"))
import nets  # noqa: E402


class Logits(nn.Module):
    """A network of the transformers library, without its dictionary of outputs."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, tokens):
        # The mask is given because without one the library looks for packed sequences, which no export can follow.
        return self.model(tokens, attention_mask=torch.ones_like(tokens), return_dict=True).logits


def bert():
    from transformers import BertConfig, BertForSequenceClassification

    return Logits(BertForSequenceClassification(BertConfig(
        vocab_size=8192, hidden_size=256, num_hidden_layers=4, num_attention_heads=4, intermediate_size=1024,
        attn_implementation="eager")))


def gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel

    return Logits(GPT2LMHeadModel(GPT2Config(
        vocab_size=8192, n_positions=256, n_embd=256, n_layer=4, n_head=4, bos_token_id=0, eos_token_id=0,
        use_cache=False, attn_implementation="eager")))


def swin():
    return torchvision.models.SwinTransformer(patch_size=[4, 4], embed_dim=96, depths=[2, 2, 6, 2],
                                              num_heads=[3, 6, 12, 24], window_size=[7, 7],
                                              stochastic_depth_prob=0.0)


class GroupNormNet(nn.Module):
    """What no classic has: group norm, Mish, tanh GELU, a transposed convolution, an average pool."""

    def __init__(self):
        super().__init__()
        self.a = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1, bias=False), nn.GroupNorm(8, 32), nn.Mish(),
                               nn.AvgPool2d(2), nn.Conv2d(32, 64, 3, padding=1), nn.GroupNorm(8, 64),
                               nn.GELU(approximate="tanh"))
        self.b = nn.Sequential(nn.ConvTranspose2d(64, 32, 2, stride=2), nn.LeakyReLU(0.1), nn.Dropout(0.2))
        self.head = nn.Linear(32, 10)

    def forward(self, x):
        return self.head(self.b(self.a(x)).mean((2, 3)))


def sequential():
    """Modules in a row, each of which keeps something: what checkpoint_sequential takes."""
    layers = [nn.Conv2d(3, 32, 3, padding=1)]
    for width in (32, 32, 64, 64):
        layers += [nn.Tanh(), nn.Conv2d(layers[-1].out_channels, width, 3, padding=1)]
    layers += [nn.MaxPool2d(2), nn.BatchNorm2d(64), nn.Conv2d(64, 128, 3, padding=1), nn.GELU(), nn.MaxPool2d(4),
               nn.Conv2d(128, 100, 1)]
    return nn.Sequential(*layers)


@dataclass
class TrainingModel:
    make: Callable[[], nn.Module]
    shape: tuple  # of one sample
    tokens: bool = False

    def inputs(self, batch, device="cpu"):
        if self.tokens:
            return torch.zeros((batch, *self.shape), dtype=torch.int64, device=device)
        return torch.zeros((batch, *self.shape), device=device)


def vision(name, size=224, **options):
    return TrainingModel(lambda: getattr(torchvision.models, name)(**options), (3, size, size))


MODELS = {
    "alexnet": vision("alexnet"),
    "convnext_tiny": vision("convnext_tiny", stochastic_depth_prob=0.0),
    "densenet121": vision("densenet121"),
    "efficientnet_b0": vision("efficientnet_b0", stochastic_depth_prob=0.0),
    "googlenet": vision("googlenet", aux_logits=False, init_weights=False),
    "inception_v3": vision("inception_v3", 299, aux_logits=False, init_weights=False),
    "mnasnet1_0": vision("mnasnet1_0"),
    "mobilenet_v2": vision("mobilenet_v2"),
    "mobilenet_v3_large": vision("mobilenet_v3_large"),
    "mobilenet_v3_small": vision("mobilenet_v3_small"),
    "regnet_x_400mf": vision("regnet_x_400mf"),
    "regnet_y_400mf": vision("regnet_y_400mf"),
    "resnet18": vision("resnet18"),
    "resnet50": vision("resnet50"),
    "resnext50_32x4d": vision("resnext50_32x4d"),
    "shufflenet_v2_x1_0": vision("shufflenet_v2_x1_0"),
    "squeezenet1_1": vision("squeezenet1_1"),
    "swin_t": TrainingModel(swin, (3, 224, 224)),
    "vgg11_bn": vision("vgg11_bn"),
    "vgg16": vision("vgg16"),
    "vit_b_16": vision("vit_b_16"),
    "wide_resnet50_2": vision("wide_resnet50_2"),
    "small_vit": TrainingModel(nets.small_vit, (3, 96, 96)),
    "unet": TrainingModel(nets.UNet, (3, 64, 64)),
    "group_norm": TrainingModel(GroupNormNet, (3, 32, 32)),
    "sequential": TrainingModel(sequential, (3, 64, 64)),
    "bert": TrainingModel(bert, (64,), tokens=True),
    "gpt2": TrainingModel(gpt2, (64,), tokens=True),
}


def targets_of(output):
    """Class numbers, int64, for an output of the shape."""
    shape = (output.shape[0] * output.shape[1],) if output.dim() == 3 else (output.shape[0], *output.shape[2:])
    return torch.zeros(shape, dtype=torch.int64, device=output.device)


def loss_of(output, targets):
    """The cross-entropy."""
    return F.cross_entropy(output.reshape(-1, output.shape[-1]) if output.dim() == 3 else output, targets)


def export(name, path, newer):
    """Write the network in training mode, by the exporter of TorchScript, which folds nothing, or by the newer one as
    it is by default; weights left out of the file."""
    import onnx
    from export import dynamo, strip, torchscript

    entry = MODELS[name]
    torch.manual_seed(0)
    model = entry.make()
    if newer:
        with torch.no_grad():  # of parameters with the same values the exporter writes one
            for parameter in model.parameters():
                parameter += 1e-3 * torch.randn_like(parameter)
        dynamo(model, (entry.inputs(3),), path, ({0: "batch"},), ["input"], ["output"], training=True)
    else:
        torchscript(model, (entry.inputs(2),), path, {"input": {0: "batch"}, "output": {0: "batch"}},
                    ["input"], ["output"], training=True)
    model = onnx.load(path, load_external_data=False)
    strip(model)
    onnx.save(model, path)


def main():
    """python scripts/export/training_models.py [--dynamo] DIR [NAME...]"""
    newer = sys.argv[1] == "--dynamo"
    folder, *names = sys.argv[2 if newer else 1:]
    for name in names or MODELS:
        try:
            export(name, os.path.join(folder, name + ".onnx"), newer)
            print(name, flush=True)
        except Exception as error:  # one network that cannot be exported does not stop the others
            print(f"{name}: {str(error).splitlines()[0][:200]}", file=sys.stderr)


if __name__ == "__main__":
    main()
