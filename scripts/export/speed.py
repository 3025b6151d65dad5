#!/usr/bin/env python3
"""Estimated times next to what can be known of them: PyTorch's own counters, and published throughputs.

    python scripts/export/speed.py counters build/release/onnxvram FOLDER     # FOLDER: exports are kept there
    python scripts/export/speed.py published build/release/onnxvram FOLDER

Needs torch, torchvision, timm, transformers and onnxscript; no GPU.  `counters`: multiply-accumulates of
torch.utils.flop_counter, and bytes of the operations that PyTorch dispatches: operands and results of each, but of views.  The
counter forgets the groups of a convolution where it counts the gradient of weights; here they count.  `published`: samples per
second of NVIDIA/DeepLearningExamples, PyTorch, one GPU.  Prints CSV.
"""
import json
import os
import subprocess
import sys

import timm
import torch
import torchvision
import transformers
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode, conv_flop_count

IMAGES = {"torchvision": ("squeezenet1_1", "mnasnet1_0", "resnext50_32x4d", "efficientnet_v2_s"),
          "timm": ("repvgg_a0", "poolformer_s12", "pit_ti_224", "edgenext_xx_small", "xcit_nano_12_p16_224", "hrnet_w18_small")}
TEXTS = {"distilbert": (transformers.DistilBertModel, transformers.DistilBertConfig(dim=128, n_layers=2, n_heads=4, hidden_dim=256, vocab_size=500)),
         "albert": (transformers.AlbertModel, transformers.AlbertConfig(hidden_size=128, num_hidden_layers=2, num_attention_heads=4,
                                                                       intermediate_size=256, vocab_size=500, embedding_size=64)),
         "t5 encoder": (transformers.T5EncoderModel, transformers.T5Config(d_model=128, d_kv=32, d_ff=256, num_layers=2, num_heads=4, vocab_size=500)),
         "electra": (transformers.ElectraModel, transformers.ElectraConfig(hidden_size=128, num_hidden_layers=2, num_attention_heads=4,
                                                                          intermediate_size=256, vocab_size=500, embedding_size=64))}
# Network, what is run, batch, GPU, type, samples per second.  Batches of training are those of the README; of resnet50 and
# efficientnet_b0, whose READMEs name none, 128.  TF32 of BERT is not here: cuBLAS computed it, as that container lets it.
PUBLISHED = [
    ("resnet50", "train", 128, "A100 80GB", "tf32", 938), ("resnet50", "train", 128, "A100 80GB", "fp16", 2470),
    ("resnet50", "train", 128, "V100 16GB", "fp32", 367), ("resnet50", "train", 128, "V100 16GB", "fp16", 1200),
    ("resnet50", "train", 128, "V100 32GB", "fp32", 356), ("resnet50", "train", 128, "V100 32GB", "fp16", 1156),
    ("resnet50", "infer", 1, "V100 16GB", "fp32", 96), ("resnet50", "infer", 8, "V100 16GB", "fp32", 709),
    ("resnet50", "infer", 128, "V100 16GB", "fp32", 1229), ("resnet50", "infer", 1, "V100 16GB", "fp16", 78),
    ("resnet50", "infer", 128, "V100 16GB", "fp16", 3249), ("resnet50", "infer", 1, "T4", "fp32", 98),
    ("resnet50", "infer", 128, "T4", "fp32", 426), ("resnet50", "infer", 128, "T4", "fp16", 1190),
    ("resnext101_32x4d", "train", 128, "A100 40GB", "tf32", 300.42), ("resnext101_32x4d", "train", 128, "A100 40GB", "fp16", 908.4),
    ("resnext101_32x4d", "train", 64, "V100 16GB", "fp32", 150.05), ("resnext101_32x4d", "train", 128, "V100 16GB", "fp16", 534.91),
    ("resnext101_32x4d", "infer", 64, "V100 16GB", "fp32", 485.7), ("resnext101_32x4d", "infer", 128, "V100 16GB", "fp16", 1079.1),
    ("resnext101_32x4d", "infer", 64, "T4", "fp32", 449.3), ("resnext101_32x4d", "infer", 128, "T4", "fp16", 948.27),
    ("efficientnet_b0", "train", 128, "A100 80GB", "tf32", 1078), ("efficientnet_b0", "train", 128, "A100 80GB", "fp16", 2489),
    ("efficientnet_b0", "train", 128, "V100 16GB", "fp32", 655), ("efficientnet_b0", "train", 128, "V100 16GB", "fp16", 1301),
    ("bert-large 128", "train", 256, "A100 80GB", "fp16", 580), ("bert-large 128", "train", 64, "A100 40GB", "fp16", 415),
    ("bert-large 512", "train", 16, "A100 40GB", "fp16", 78), ("bert-large 128", "train", 8, "V100 16GB", "fp32", 33.36),
    ("bert-large 128", "train", 16, "V100 16GB", "fp16", 125.44), ("bert-large 512", "train", 2, "V100 16GB", "fp32", 7.56),
]


class First(torch.nn.Module):
    """The first result alone."""

    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, x):
        result = self.network(x)
        return result if isinstance(result, torch.Tensor) else result[0]


class Lstm(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.LSTM(64, 96, 2, batch_first=True)

    def forward(self, x):
        return self.layers(x)[0]


class Traffic(TorchDispatchMode):
    """Bytes of operands and results, but of views."""
    bytes = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        read = [x for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
        made = [x for x in tree_leaves(out) if isinstance(x, torch.Tensor)]
        places = {x.untyped_storage().data_ptr() for x in read}
        if made and (func._schema.is_mutable or not all(x.untyped_storage().data_ptr() in places for x in made)):
            self.bytes += sum(min(x.numel() * x.element_size(), x.untyped_storage().nbytes()) for x in read + made)
        return out


def convolution_backward(grad, x, weight, _bias, _stride, _padding, _dilation, transposed, _output, _groups, wanted, **_kwargs):
    return sum(wanted[:2]) * conv_flop_count(x, weight, grad, transposed)


def macs_of(run):
    with FlopCounterMode(display=False, custom_mapping={torch.ops.aten.convolution_backward: convolution_backward}) as counter:
        run()
    return counter.get_total_flops() // 2


def bytes_of(run):
    with Traffic() as traffic:
        run()
    return traffic.bytes


def export(network, x, folder, name, is_open):
    """Its program; `is_open`: of any batch."""
    path = os.path.join(folder, name.replace(" ", "_") + ".pt2")
    if not os.path.exists(path):
        torch.export.save(torch.export.export(network, (x,), dynamic_shapes=({0: torch.export.Dim("batch")},) if is_open else None), path)
    return path


def analyse(program, path, *options):
    done = subprocess.run([program, path, "--json", *options], capture_output=True, text=True)
    if done.returncode not in (0, 3):
        raise RuntimeError(done.stderr)
    model = json.loads(done.stdout)["models"][0]
    return model["training"]["time"] if "training" in model else model["runtimes"]["torch"]["time"], model


def networks():
    image = torch.randn(2, 3, 224, 224)
    for name in IMAGES["torchvision"]:
        yield name, getattr(torchvision.models, name)(), image
    for name in IMAGES["timm"]:
        yield name, timm.create_model(name), image
    for name, (kind, config) in TEXTS.items():
        yield name, kind(config), torch.randint(0, 500, (2, 64))
    yield "lstm", Lstm(), torch.randn(2, 32, 64)


def counters(program, folder):
    print("network,forward MACs,predicted,step MACs,predicted,step bytes,predicted,forward bytes,predicted")
    for name, network, x in networks():
        network = First(network).train()
        path = export(network, x, folder, name, False)
        forward, step = macs_of(lambda: network(x)), macs_of(lambda: network(x).sum().backward())
        network.zero_grad()
        step_bytes = bytes_of(lambda: network(x).sum().backward())
        time, model = analyse(program, path, "-b", "2", "--gpu", "A100 40GB", "--train", "sgd", "--loss", "none")
        # SGD reads parameters and gradients, and writes parameters.
        without = time["bytes"] - 3 * model["training"]["gradient_bytes"]
        network.eval()
        with torch.no_grad():
            pass_bytes = bytes_of(lambda: network(x))
        one, _ = analyse(program, path, "-b", "2", "--gpu", "A100 40GB", "--runtime", "torch")
        print(name, forward, one["macs"], step, time["macs"], step_bytes, without, pass_bytes, one["bytes"], sep=",", flush=True)


def published(program, folder):
    print("network,what,batch,GPU,type,published,low,high,inside")
    for name, what, batch, gpu, kind, rate in PUBLISHED:
        if name.startswith("bert"):
            config = transformers.BertConfig(hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096)
            network, x = transformers.BertModel(config), torch.randint(0, 1000, (2, int(name.split()[1])))
        else:
            network = timm.create_model(name) if name == "resnext101_32x4d" else getattr(torchvision.models, name)()
            x = torch.randn(2, 3, 224, 224)
        path = export(First(network).train(), x, folder, name, True)
        options = ["-b", str(batch), "--gpu", gpu] + (["--amp", "fp16"] if kind == "fp16" else [])
        options += ["--train", "lamb" if name.startswith("bert") else "momentum"] if what == "train" else ["--runtime", "torch"]
        time, _ = analyse(program, path, *options)
        low, high = batch / time["seconds"]["high"], batch / time["seconds"]["low"]
        print(name, what, batch, gpu, kind, rate, round(low, 1), round(high, 1), low <= rate <= high, sep=",", flush=True)


if __name__ == "__main__":
    {"counters": counters, "published": published}[sys.argv[1]](*sys.argv[2:])
