#!/usr/bin/env python3
"""What torch.compile keeps between forward and backward, to judge `--compile` by.

    python scripts/export/compiled.py export DIR [NAME...]             NAME.onnx by the exporter's default options
    python scripts/export/compiled.py measure DIR [NAME...]            NAME.compiled.json: saved bytes at some budgets;
                                                                       NAME.graph: the joint graph, and what is saved
    python scripts/export/compiled.py operators DIR [NAME...]          both, of networks around one operation
    python scripts/export/compiled.py peaks DIR [NAME...]              NAME.peak.json: of training, batch 16, by Inductor;
                                                                       with --budget B: NAME.peak-B.json
    python scripts/export/compiled.py table DIR --exe onnxvram         the tables of docs/accuracy/plans.md

torch.compile traces the network in training mode with Inductor's decompositions, Inductor's passes over the joint graph
run, and AOTAutograd's min-cut partitioner divides it, as for Inductor; no kernels are compiled. Counted are the distinct
storages of what it saves, parameters and buffers left out. The loss is no part of the graph. `eager` is the same count
of what eager autograd saves. `measure` needs the CUDA build of PyTorch and a device.
"""

import argparse
from copy import deepcopy
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, os.pardir), HERE, os.path.join(HERE, os.pardir, os.pardir, "samples")]
from sharing import difference, in_a_process, read  # noqa: E402
from truth import table  # noqa: E402
from truth.networks import common  # noqa: E402
from truth.networks.common import Network, image, numbers, sample, timm, values, vision  # noqa: E402

BUDGETS = (1.0, 0.8, 0.5, 0.2)


def transformer(name, model, config, **options):
    return Network(name, common.transformer(model, config, "logits", fixed={"return_dict": True}, without=common.SMALL, **options), numbers(64))


def networks():
    """By their names."""
    def entry(name, key, **options):
        return Network(name, vision(key, **options), image(224))

    small = {"hidden_size": 128, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 344}
    words = {**small, "vocab_size": 2000}
    rows = (
        entry("ViT-B/16", "vit_b_16"),
        transformer("LLaMA", "LlamaForCausalLM", "LlamaConfig", num_key_value_heads=4, **words),
        entry("EfficientNet-B0", "efficientnet_b0", stochastic_depth_prob=0.0),
        Network("r3d_18", vision("r3d_18", "video"), values(3, 8, 64, 64)),
        entry("ResNet-18", "resnet18"), entry("ResNet-50", "resnet50"),
        transformer("BERT", "BertForMaskedLM", "BertConfig", **words),
        transformer("GPT-2", "GPT2LMHeadModel", "GPT2Config", n_embd=128, n_layer=4, n_head=4, vocab_size=2000, bos_token_id=0,
                    eos_token_id=0, use_cache=False),
        Network("U-Net", sample("UNet"), image(64)), entry("ConvNeXt-T", "convnext_tiny", stochastic_depth_prob=0.0),
        entry("MobileNetV3-L", "mobilenet_v3_large"),
        Network("small ViT", sample("small_vit"), image(96)),
        # Chosen before the program had seen any of them.
        entry("RegNetY-400MF", "regnet_y_400mf"), entry("Swin-T", "swin_t", stochastic_depth_prob=0.0),
        transformer("Qwen3", "Qwen3ForCausalLM", "Qwen3Config", num_key_value_heads=2, head_dim=32, **words),
        Network("MambaOut", timm("mambaout_femto", num_classes=10), image(64)),
        Network("DLA-34", timm("dla34", num_classes=10), image(64)),
        transformer("DistilBERT", "DistilBertForMaskedLM", "DistilBertConfig", vocab_size=2000, dim=128, n_layers=4, n_heads=4, hidden_dim=344))
    return {row.name: row for row in rows}


def operators():
    """Name: a network of few kilobytes around one operation."""
    import torch
    from torch import nn
    from torch.nn import functional as F

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

    return {
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


VIEWS = {"view", "_unsafe_view", "reshape", "permute", "squeeze", "unsqueeze", "expand", "slice", "select", "alias", "t",
         "transpose", "as_strided", "diagonal", "unfold", "split", "split_with_sizes", "unbind"}


def is_part(node):
    """An item of a split."""
    return node.op == "call_function" and getattr(node.target, "__name__", "") == "getitem" and \
        "split" in str(node.args[0].target)


def partition(network, budgets):
    """The joint graph, and what is saved at each budget: rows of (name, operator, dtype, shape, storage's bytes)."""
    import torch
    import torch._functorch.config as config
    from functorch.compile import make_boxed_func
    from torch._dynamo.backends.common import aot_autograd
    from torch._functorch.partitioners import min_cut_rematerialization_partition
    from torch._inductor.compile_fx import _recursive_joint_graph_passes
    from torch._inductor.decomposition import select_decomp_table
    from torch._inductor.virtualized import V
    from torch._guards import detect_fake_mode

    torch.manual_seed(0)
    model = network.make().train().cuda()
    found = {}

    def divide(gm, joint_inputs, *, num_fwd_outputs, static_lifetime_input_indices=None, **_):
        if found:
            raise RuntimeError("the network has more than one graph")
        with V.set_fake_mode(detect_fake_mode(joint_inputs)):
            _recursive_joint_graph_passes(gm, skip_invoke_subgraph=True, input_device=torch.device("cuda"))
        primals = [n.name for n in gm.graph.nodes if n.op == "placeholder" and "primals" in n.target]
        left_out = {primals[i] for i in static_lifetime_input_indices}
        for budget in budgets:
            with config.patch(activation_memory_budget=budget):
                fw, bw = min_cut_rematerialization_partition(
                    torch.fx.GraphModule(gm, deepcopy(gm.graph)), joint_inputs, num_fwd_outputs=num_fwd_outputs,
                    static_lifetime_input_indices=static_lifetime_input_indices)
            rows, seen = [], set()
            for node in fw.graph.find_nodes(op="output")[0].args[0][num_fwd_outputs:]:
                value = node.meta.get("val")
                if not isinstance(value, torch.Tensor):
                    continue
                base = node
                while str(base.target).removeprefix("aten.").split(".")[0] in VIEWS or is_part(base):
                    base = base.args[0]
                if base.name in left_out or base.name in seen:
                    continue
                seen.add(base.name)
                whole = base.meta["val"]
                rows.append((node.name, str(node.target), str(value.dtype), tuple(value.shape),
                             whole.numel() * whole.element_size()))
            found[budget] = rows
        found["graph"] = gm.graph
        return fw, bw

    def nothing(gm, _):
        return make_boxed_func(gm.forward)

    backend = aot_autograd(fw_compiler=nothing, bw_compiler=nothing, partition_fn=divide,
                           decompositions=select_decomp_table(), keep_inference_input_mutations=True)
    torch.compile(model, backend=backend, fullgraph=True)(*(x.cuda() for x in network.inputs(network.batch)))
    return found


def measure(network, graph):
    from truth import measure as by
    eager = by.kept(network._replace(loss="none"), network.batch)
    found = partition(network, BUDGETS)
    with open(graph, "w") as out:
        write_graph(found, BUDGETS, out)
    return {"eager": eager, "saved": {str(b): sum(r[-1] for r in found[b]) for b in BUDGETS}}


def write_graph(found, budgets, out):
    for node in found["graph"].nodes:
        value = node.meta.get("val")
        shape = f"{str(value.dtype)[6:]}{list(value.shape)}" if hasattr(value, "shape") else ""
        print(f"{node.name}: {shape} = {node.target}{node.args}", file=out)
    for budget in budgets:
        print(f"saved at {budget}:", file=out)
        for r in found[budget]:
            print(*r, file=out)


PEAK_BATCH = 16


def measure_peak(network, budget):
    """The most that tensors take in an iteration with SGD and momentum, cross-entropy outside of the compiled network."""
    import torch._functorch.config as config
    from truth import measure as by

    def compiled(model):
        model.compile()
        return model

    with config.patch(activation_memory_budget=budget):
        return by.training(network, PEAK_BATCH, "momentum", compiled)


def base_of(folder, name):
    return os.path.join(folder, "".join(c if c.isalnum() else "_" for c in name))


def row(exe, folder, name):
    base = base_of(folder, name)
    measured = read(base + ".compiled.json")
    if measured is None or not os.path.exists(base + ".onnx"):
        return f"| {name} | not measured |"
    cells = []
    for budget in BUDGETS:
        found = table.report(exe, base + ".onnx", ["--train", "sgd", "--loss", "none", f"--compile={budget}"])
        if isinstance(found, str):
            return f"| {name} | {found} |"
        predicted = found["training"]["compile"]["saved_activation_bytes"]
        truth = measured["saved"][str(budget)]
        if not cells:
            cells += [f"{predicted:,}", f"{truth:,}", f"{100 * truth / measured['eager']:.1f} %"]
        cells.append(difference(predicted, truth))
    return f"| {name} | " + " | ".join(cells) + " |"


def export(network, path):
    import torch
    torch.manual_seed(0)
    torch.onnx.export(network.make().train(), network.inputs(network.batch), path, dynamo=True)


def measure_operators(folder, names):
    """NAME.onnx without contents of weights, and compiled.json: what is saved, by name and budget."""
    import onnx
    import torch
    from export import strip
    table = operators()
    path = os.path.join(folder, "compiled.json")
    results = read(path) or {}
    for name in names or table:
        file = os.path.join(folder, name + ".onnx")
        try:
            torch._dynamo.reset()
            found = partition(table[name], BUDGETS)
            export(table[name], file)
            model = onnx.load(file)
            strip(model)
            onnx.save(model, file)
            if os.path.exists(file + ".data"):
                os.remove(file + ".data")
        except Exception as error:  # one that cannot be traced or exported does not stop the others
            print(f"{name}: {str(error).strip().splitlines()[0][:200]}", file=sys.stderr)
            continue
        results[name] = {str(b): sum(r[-1] for r in found[b]) for b in BUDGETS}
        with open(os.path.join(folder, name + ".graph"), "w") as out:
            write_graph(found, BUDGETS, out)
        with open(path, "w") as out:
            json.dump(results, out, indent=1)
            out.write("\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("export", "measure", "operators", "peaks", "table"))
    parser.add_argument("folder")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--exe", default="onnxvram")
    parser.add_argument("--budget", type=float, default=1, help="of peaks")
    arguments = parser.parse_args()
    if arguments.what == "operators":
        measure_operators(arguments.folder, arguments.names)
        return
    table = networks()
    if arguments.what == "table":
        print("| network | predicted | AOTAutograd | of eager's | " + " | ".join(f"budget {b:g}" for b in BUDGETS) +
              " |\n|---|--:|--:|" + "--:|" * (len(BUDGETS) + 1))
    for name in arguments.names or table:
        base = base_of(arguments.folder, name)
        if arguments.what == "table":
            print(row(arguments.exe, arguments.folder, name), flush=True)
            continue

        def work():
            if arguments.what == "export":
                export(table[name], base + ".onnx")
                return
            result = (measure_peak(table[name], arguments.budget) if arguments.what == "peaks" else
                      measure(table[name], base + ".graph"))
            with open(base + suffix, "w") as file:
                json.dump(result, file)
            print(name, result, flush=True)
        peaks = ".peak.json" if arguments.budget == 1 else f".peak-{arguments.budget:g}.json"
        suffix = {"export": ".onnx", "peaks": peaks}.get(arguments.what, ".compiled.json")
        if not os.path.exists(base + suffix):
            in_a_process(base, work)


if __name__ == "__main__":
    main()
