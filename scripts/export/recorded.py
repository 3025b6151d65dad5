#!/usr/bin/env python3
"""Networks of which others published what training took on a GPU, exported without their weights.

    python scripts/export/recorded.py DIR [NAME...]            NAME.onnx

docs/measured.md has the predictions next to these recordings, and says where each comes from. The exports are for
training (the newer exporter, default options, dynamic batch or sequence); weights are left out, as in the samples.
"""

import math
import os
import sys


def networks():
    """Name: (make, inputs, dynamic shapes)."""
    import torch
    import torchvision
    from torch import nn

    class Small(nn.Module):
        """A convolution, a mean over 2 x 2, a linear layer."""

        def __init__(self):
            super().__init__()
            self.conv, self.pool = nn.Conv2d(3, 8, 3), nn.AvgPool2d(2, 2)
            self.fc = nn.Linear(8 * 111 * 111, 10)

        def forward(self, x):
            return self.fc(self.pool(self.conv(x)).flatten(1))

    class Product(nn.Module):
        def __init__(self, fan_in, fan_out):
            super().__init__()
            self.weight = nn.Parameter(torch.empty(fan_out, fan_in).normal_())

        def forward(self, x):
            return torch.einsum("...i,oi->...o", x, self.weight)

    class Norm(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(width))

        def forward(self, x):
            dtype = x.dtype
            x = x.float()
            x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5)
            return (self.weight * x).to(dtype)

    class Rotation(nn.Module):
        def __init__(self, length, width):
            super().__init__()
            angles = torch.outer(torch.arange(length), 10000.0 ** (-torch.arange(0, width, 2) / width))
            self.register_buffer("table", torch.stack((angles.cos(), angles.sin())), persistent=False)

        def forward(self, x):
            first, second = x.unflatten(-1, (-1, 2)).movedim(-1, 0).unbind(0)
            cos, sin = self.table[:, :x.shape[-2], :].unbind(0)
            return torch.cat((cos * first - sin * second, sin * first + cos * second), -1)

    def softmax(x):
        exponentials = torch.exp(x - torch.max(x, -1, keepdim=True)[0])
        return exponentials / exponentials.sum(-1, keepdim=True)

    class Attention(nn.Module):
        def __init__(self, width, heads, rotation):
            super().__init__()
            self.heads, self.rotation = heads, rotation
            self.q, self.k, self.v, self.out = (Product(width, width) for _ in range(4))

        def forward(self, x):
            length = x.shape[1]
            q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in (self.q(x), self.k(x), self.v(x)))
            q, k = self.rotation(q), self.rotation(k)
            place = torch.arange(length, device=x.device)
            mask = (place[:, None] >= place[None, :])[None]
            scores = torch.einsum("...qd,...kd->...qk", q, k) / math.sqrt(k.shape[-1])
            weights = softmax(torch.where(mask, scores, float("-inf")))
            out = torch.einsum("...qk,...kd->...qd", weights, v)
            return self.out(out.transpose(1, 2).flatten(2).contiguous())

    class Gated(nn.Module):
        def __init__(self, width, inner):
            super().__init__()
            self.up, self.gate, self.down = Product(width, inner), Product(width, inner), Product(inner, width)

        def forward(self, x):
            up = self.up(x)
            return self.down(up * torch.sigmoid(up) * self.gate(x))

    class Block(nn.Module):
        def __init__(self, width, heads, inner, rotation):
            super().__init__()
            self.attention, self.gated = Attention(width, heads, rotation), Gated(width, inner)
            self.norm1, self.norm2 = Norm(width), Norm(width)

        def forward(self, x):
            attended = self.attention(self.norm1(x))
            x = x + attended
            forwarded = self.gated(self.norm2(x))
            return x + forwarded

    class LanguageModel(nn.Module):
        def __init__(self, words=10000, width=1024, layers=24, heads=16, inner=4096, length=1024):
            super().__init__()
            self.table = nn.Parameter(torch.empty(words, width).normal_())
            rotation = Rotation(length, width // heads)
            self.layers = nn.ModuleList(Block(width, heads, inner, rotation) for _ in range(layers))
            self.norm, self.head = Norm(width), Product(width, words)

        def forward(self, tokens):
            x = self.table[tokens]
            for layer in self.layers:
                x = layer(x)
            return self.head(self.norm(x))

    class WithLoss(nn.Module):
        """Its loss is written out as the recorded program has it."""

        def __init__(self, network):
            super().__init__()
            self.network = network

        def forward(self, tokens, targets):
            x = self.network(tokens)
            x = x - torch.max(x, -1, keepdim=True)[0]
            x = x - torch.log(torch.exp(x).sum(-1, keepdim=True))
            return torch.gather(-x, -1, targets[..., None]).mean()

    def bert():
        import transformers
        config = transformers.BertConfig(hidden_size=1024, num_hidden_layers=24, num_attention_heads=16,
                                         intermediate_size=4096, attn_implementation="eager")

        class Logits(nn.Module):
            def __init__(self):
                super().__init__()
                self.network = transformers.BertForSequenceClassification(config)

            def forward(self, tokens, mask, types):
                return self.network(tokens, attention_mask=mask, token_type_ids=types, return_dict=True).logits
        return Logits()

    def image():
        return (torch.rand(2, 3, 224, 224),)

    def tokens(batch, length, count):
        return tuple(torch.zeros(batch, length, dtype=torch.int64) for _ in range(count))

    by_batch, by_length = {0: "batch"}, {1: "length"}
    vision = torchvision.models
    return {
        "small-cnn": (Small, image, (by_batch,)),
        "vgg16_bn": (lambda: vision.vgg16_bn(num_classes=10), image, (by_batch,)),
        "resnet50": (lambda: vision.resnet50(num_classes=10), image, (by_batch,)),
        "resnet50-1000": (vision.resnet50, image, (by_batch,)),
        "vit_b_16": (lambda: vision.vit_b_16(num_classes=10), image, (by_batch,)),
        "language-model": (LanguageModel, lambda: tokens(4, 128, 1), (by_length,)),
        "language-model-loss": (lambda: WithLoss(LanguageModel()), lambda: tokens(4, 128, 2), (by_length, by_length)),
        "bert-large": (bert, lambda: tokens(2, 512, 3), (by_batch,) * 3),
    }


def main():
    import onnx
    import torch
    folder, names = sys.argv[1], sys.argv[2:]
    table = networks()
    for name in names or table:
        make, inputs, shapes = table[name]
        path = os.path.join(folder, name + ".onnx")
        program = torch.onnx.export(make().train(), inputs(), dynamo=True, dynamic_shapes=shapes, verbose=False)
        program.save(path, external_data=True)
        model = onnx.load(path, load_external_data=False)
        for tensor in model.graph.initializer:
            if tensor.data_location != onnx.TensorProto.EXTERNAL and len(tensor.raw_data) > 4096:
                print(f"{name}: {tensor.name} stays in the file, {len(tensor.raw_data)} bytes", file=sys.stderr)
        for node in model.graph.node:
            node.doc_string = ""
            kept = [(note.key, note.value) for note in node.metadata_props if not note.key.endswith("stack_trace")]
            node.ClearField("metadata_props")
            for key, value in kept:
                node.metadata_props.add(key=key, value=value)
        onnx.save(model, path)
        os.remove(path + ".data")
        print(name, os.path.getsize(path), flush=True)


if __name__ == "__main__":
    main()
