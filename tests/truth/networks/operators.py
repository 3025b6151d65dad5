"""Networks of few kilobytes around one operation, by its name (scripts/export/compiled.py)."""
from copy import deepcopy

import torch
from torch import nn
from torch.nn import functional as F

from .common import Network


class Call(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def rows(operation, width=64):
    def make():
        return around(nn.Linear(32, 64), operation, nn.Linear(width, 16))
    return Network("", make, lambda _: (torch.rand(24, 32),))


def images(operation, channels=8):
    def make():
        return around(nn.Conv2d(3, 8, 3, padding=1), operation, nn.Conv2d(channels, 4, 3, padding=1))
    return Network("", make, lambda _: (torch.rand(3, 3, 16, 16),))


def volumes(operation):
    def make():
        return around(nn.Conv3d(3, 8, 3, padding=1), operation, nn.Conv3d(8, 4, 3, padding=1))
    return Network("", make, lambda _: (torch.rand(3, 3, 8, 8, 8),))


def around(first, operation, last):
    """Layers of its own each time."""
    return nn.Sequential(first, deepcopy(operation) if isinstance(operation, nn.Module) else Call(operation), last)


class Attention(nn.Module):
    def __init__(self, attend):
        super().__init__()
        self.attend, self.project, self.out = attend, nn.Linear(32, 96), nn.Linear(32, 32)

    def forward(self, x, *mask):
        q, k, v = (t.view(*x.shape[:2], 4, 8).transpose(1, 2) for t in self.project(x).chunk(3, -1))
        return self.out(self.attend(q, k, v, *mask).transpose(1, 2).flatten(2))


def attention(attend):
    return Network("", lambda: Attention(attend), lambda _: (torch.rand(3, 10, 32),))


class Packed(nn.Module):
    """Samples in a row: a mask of places alone, which PyTorch's kernels have no flag for; each of two layers gets it."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(Attention(F.scaled_dot_product_attention) for _ in range(2))

    def forward(self, x):
        at = torch.arange(x.shape[1], device=x.device)
        of = torch.zeros(x.shape[:2], dtype=torch.int64, device=x.device)
        mask = (at[None, None, None] <= at[None, None, :, None]) & (of[:, None, None] == of[:, None, :, None])
        for layer in self.layers:
            x = layer(x, mask)
        return x


def tokens():
    return nn.Sequential(nn.Embedding(50, 32), nn.LayerNorm(32), nn.Linear(32, 50))


OPERATORS = {
    "relu": rows(nn.ReLU()), "gelu": rows(nn.GELU()), "gelu_tanh": rows(nn.GELU("tanh")), "silu": rows(nn.SiLU()),
    "hardswish": rows(nn.Hardswish()), "hardsigmoid": rows(nn.Hardsigmoid()), "relu6": rows(nn.ReLU6()),
    "leaky_relu": rows(nn.LeakyReLU()), "elu": rows(nn.ELU()), "selu": rows(nn.SELU()), "celu": rows(nn.CELU()),
    "softplus": rows(nn.Softplus()), "mish": rows(nn.Mish()), "sigmoid": rows(nn.Sigmoid()), "tanh": rows(nn.Tanh()),
    "prelu": rows(nn.PReLU(64)), "log_sigmoid": rows(nn.LogSigmoid()), "glu": rows(nn.GLU(), 32),
    "softsign": rows(nn.Softsign()), "softmax": rows(nn.Softmax(-1)), "log_softmax": rows(nn.LogSoftmax(-1)),
    "dropout": rows(nn.Dropout(0.1)), "layer_norm": rows(nn.LayerNorm(64)), "rms_norm": rows(nn.RMSNorm(64)),
    "exp": rows(torch.exp), "sqrt": rows(lambda x: torch.sqrt(x.abs() + 1)), "sin": rows(torch.sin),
    "rsqrt": rows(lambda x: torch.rsqrt(x * x + 1)), "cube": rows(lambda x: x ** 3), "abs": rows(torch.abs),
    "divide": rows(lambda x: x / (x * x + 1)), "clamp": rows(lambda x: x.clamp(-1, 1)),
    "where": rows(lambda x: torch.where(x > 0, x, 2 * x)), "gate": rows(lambda x: x[:, :32] * x[:, 32:].sigmoid(), 32),
    "mean": rows(lambda x: x - x.mean(-1, keepdim=True)), "amax": rows(lambda x: x - x.amax(-1, keepdim=True)),
    "roll": rows(lambda x: x.roll(3, 1)), "flip": rows(lambda x: x.flip(1)), "cumsum": rows(lambda x: x.cumsum(1)),
    "batch_norm": images(nn.Sequential(nn.BatchNorm2d(8), nn.ReLU())),
    "batch_norm_silu": images(nn.Sequential(nn.BatchNorm2d(8), nn.SiLU())),
    "group_norm": images(nn.Sequential(nn.GroupNorm(2, 8), nn.SiLU())),
    "instance_norm": images(nn.Sequential(nn.InstanceNorm2d(8, affine=True), nn.ReLU())),
    "max_pool": images(nn.Sequential(nn.ReLU(), nn.MaxPool2d(2))), "avg_pool": images(nn.AvgPool2d(2)),
    "max_pool3d": volumes(nn.Sequential(nn.ReLU(), nn.MaxPool3d(2))), "batch_norm3d": volumes(nn.BatchNorm3d(8)),
    "squeeze_excitation": images(lambda x: x * x.mean((2, 3), keepdim=True).sigmoid()),
    "bilinear": images(nn.Upsample(scale_factor=2, mode="bilinear")), "nearest": images(nn.Upsample(scale_factor=2)),
    "reflect": images(nn.ReflectionPad2d(1)),
    "conv_transpose": images(nn.ConvTranspose2d(8, 8, 2, stride=2)),
    "concatenation": images(lambda x: torch.cat([x, x.relu()], 1), 16), "pixel_shuffle": images(nn.PixelShuffle(2), 2),
    "attention": attention(F.scaled_dot_product_attention),
    "attention_apart": attention(lambda q, k, v: (q @ k.transpose(-1, -2) / 8 ** 0.5).softmax(-1) @ v),
    "attention_packed": Network("", Packed, lambda _: (torch.rand(4, 48, 32),)),
    "embedding": Network("", tokens, lambda _: (torch.zeros(3, 10, dtype=torch.int64),)),
}
