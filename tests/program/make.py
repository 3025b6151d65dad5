"""Writes the programs that tests read, with PyTorch: net.json.gz, a network in training mode, and flow.json.gz, one with
inner graphs and sizes that are computed, while_loop.json.gz and scan.json.gz with a loop. Run where PyTorch is; the tests need none.

    python tests/program/make.py
"""
import gzip
import json
import os
import re
import tempfile
import zipfile

import torch
import torch.nn.functional as F
from torch import nn
from torch._higher_order_ops.scan import scan

HERE = os.path.dirname(os.path.abspath(__file__))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.bn = nn.BatchNorm2d(8)
        self.relu = nn.ReLU(inplace=True)
        self.pool = nn.MaxPool2d(2)
        self.unused = nn.Linear(4, 4)
        self.fc = nn.Linear(8, 10)
        self.weights = nn.Parameter(torch.ones(3))
        self.register_buffer("scale", torch.ones(1), persistent=False)

    def forward(self, x):
        x = self.pool(self.relu(self.bn(self.conv(x))))
        x = x.flatten(2).transpose(1, 2)
        x = x * torch.softmax(self.weights, 0)[0] * self.scale
        x = F.dropout(x, 0.1, self.training)
        return self.fc(x.mean(1))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(8, 8)

    def forward(self, x):
        return self.lin(x).relu()


class Flow(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = Block()

    def forward(self, x, k):
        x = self.block(self.block(x))
        with torch.no_grad():
            z = (x * 2).sum()
        x = torch.cond(x.sum() > 0, lambda a: a + 1, lambda a: (a - 1).cos(), (x,))
        a, b = x.chunk(2, 1)
        return {
            "product": a * b,
            "masked": x.masked_fill(x > 0, float("-inf")),
            "places": torch.nonzero(k),
            "padded": F.pad(x, (0, x.shape[0] % 3)),
            "zeros": x.new_zeros((x.shape[0] + x.shape[0] // 2, max(x.shape[0], 3))),
            "larger": F.interpolate(x[None, None], scale_factor=1.5),
            "length": torch.complex(x, x).abs(),
            "z": z,
        }


class WhileLoop(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(8, 8)

    def forward(self, x):
        i = torch.zeros((), dtype=torch.int64)
        return torch.while_loop(lambda i, y: i < 4, lambda i, y: (i + 1, torch.tanh(self.lin(y))), (i, x))[1]


class Scan(WhileLoop):
    def forward(self, x):
        def step(state, row):
            state = torch.tanh(self.lin(state) + row)
            return state, state.clone()

        return scan(step, torch.zeros_like(x[0]), x)[1]


def save(name, model, args, shapes):
    program = torch.export.export(model, args, dynamic_shapes=shapes, strict=False)
    with tempfile.NamedTemporaryFile(suffix=".pt2") as file:
        torch.export.save(program, file.name)
        with zipfile.ZipFile(file.name) as archive:
            entry = next(n for n in archive.namelist() if n.endswith("models/model.json"))
            text = archive.read(entry).decode()
    text = re.sub(r'File \\"[^"]*/([^/"]*)\\"', r'File \\"\1\\"', text)
    data = json.dumps(json.loads(text), separators=(",", ":")).encode()
    with open(os.path.join(HERE, name), "wb") as out:
        out.write(gzip.compress(data, 9, mtime=0))


batch = torch.export.Dim("batch", min=2, max=64)
save("net.json.gz", Net().train(), (torch.zeros(4, 3, 16, 16),), ({0: batch},))
save("flow.json.gz", Flow().eval(), (torch.zeros(4, 8), torch.ones(5)), {"x": {0: batch}, "k": None})
save("while_loop.json.gz", WhileLoop().train(), (torch.zeros(4, 8),), None)
save("scan.json.gz", Scan().train(), (torch.zeros(4, 8),), None)
