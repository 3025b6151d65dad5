"""Networks that no library ships in the form the samples need."""

import torch
import torchvision
from torch import nn
from torch.nn import functional as F


class ResNet50Batch1(torchvision.models.ResNet):
    """ResNet-50 that flattens with the batch written into a constant, as many published exports do."""

    def __init__(self):
        super().__init__(torchvision.models.resnet.Bottleneck, [3, 4, 6, 3])

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(self.avgpool(x).view(1, 2048))


def small_vit():
    """A Vision Transformer of four layers with dropout between them."""
    return torchvision.models.VisionTransformer(image_size=96, patch_size=16, num_layers=4, num_heads=4,
                                                hidden_dim=256, mlp_dim=1024, dropout=0.1)


def double_conv(inputs, outputs):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True),
        nn.Conv2d(outputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True))


class UNet(nn.Module):
    """Four levels down and up; the skip connections keep the early, large tensors alive to the end."""

    def __init__(self, classes=2, width=32, levels=4):
        super().__init__()
        widths = [width << level for level in range(levels + 1)]
        self.stem = double_conv(3, widths[0])
        self.down = nn.ModuleList(double_conv(a, b) for a, b in zip(widths, widths[1:]))
        self.up = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, stride=2) for a, b in zip(widths, widths[1:]))
        self.merge = nn.ModuleList(double_conv(2 * a, a) for a in widths[:-1])
        self.head = nn.Conv2d(width, classes, 1)

    def forward(self, x):
        x = self.stem(x)
        skips = []
        for block in self.down:
            skips.append(x)
            x = block(F.max_pool2d(x, 2))
        for up, merge in zip(reversed(self.up), reversed(self.merge)):
            x = merge(torch.cat([skips.pop(), up(x)], dim=1))
        return self.head(x)


class LstmClassifier(nn.Module):
    """Tokens, two bidirectional LSTM layers, one label a sequence."""

    def __init__(self, vocabulary=10000, width=128, hidden=256, classes=5):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.lstm = nn.LSTM(width, hidden, num_layers=2, bidirectional=True, batch_first=True)
        self.head = nn.Linear(2 * hidden, classes)

    def forward(self, tokens):
        states, _ = self.lstm(self.embedding(tokens))
        return self.head(states.mean(dim=1))


class Encoder(nn.Module):
    """A transformers encoder with positional inputs and a plain tuple of outputs."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask, token_type_ids):
        result = self.model(input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids)
        return result.last_hidden_state, result.pooler_output


class Decoder(nn.Module):
    """A transformers decoder whose KV cache goes in and comes out as separate tensors: key, value, key, value …"""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask, *past):
        from transformers import DynamicCache

        cache = DynamicCache(list(zip(past[0::2], past[1::2])))
        result = self.model(input_ids=input_ids, attention_mask=attention_mask, past_key_values=cache, use_cache=True)
        present = [tensor for layer in result.past_key_values.layers for tensor in (layer.keys, layer.values)]
        return result.logits, *present


class Refiner(nn.Module):
    """Repeats a residual block a number of times that is an input, and branches on the data: Loop and If.

    Both branches give the same shape; the inner one of them works through a larger tensor than the other.
    """

    def __init__(self, width=16):
        super().__init__()
        self.stem = nn.Conv2d(3, width, 3, padding=1)
        self.block = nn.Conv2d(width, width, 3, padding=1)
        self.wide = nn.Conv2d(width, 4 * width, 1)
        self.narrow = nn.Conv2d(4 * width, width, 1)

    def forward(self, x: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.stem(x))
        for _ in range(int(steps)):
            x = x + torch.relu(self.block(x))
        if bool(x.mean() > 0.5):
            x = self.narrow(torch.relu(self.wide(x)))
        else:
            x = torch.relu(self.block(x))
        return x.mean(dim=[2, 3])
