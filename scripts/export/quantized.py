"""Training behind a frozen, quantized linear layer: predictions beside bitsandbytes.

    python scripts/export/quantized.py export DIR                              linear.onnx, plain.onnx
    python scripts/export/quantized.py measure DIR [NAME]                      NAME.json; the CUDA build of PyTorch, bitsandbytes, a device
    python scripts/export/quantized.py table DIR --exe onnxvram [--gpu H100]   the table of docs/accuracy/process.md

Three linear layers, 768 to 768 to 3,072 to 64, with a ReLU behind the second, which is frozen and quantized from the type of the
activations, as transformers loads one; the others train with SGD and a mean squared error. Figures of the third iteration, one
process for each row.
"""

import argparse
import json
import os
import subprocess
import sys

ROWS = [(kind, bias, dtype, rows) for kind in ("nf4", "int8") for bias, dtype, rows in
        ((True, "bf16", 4096), (False, "fp32", 4096), (True, "fp16", 1024))]


def network(bias):
    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.frozen, self.last = nn.Linear(768, 768), nn.Linear(768, 3072, bias=bias), nn.Linear(3072, 64)

        def forward(self, x):
            return self.last(torch.relu(self.frozen(self.first(x))))
    torch.manual_seed(0)
    net = Net().train()
    net.frozen.requires_grad_(False)
    return net


def name_of(kind, bias, dtype, rows):
    return f"{kind}.{'bias' if bias else 'plain'}.{dtype}.{rows}"


def export(folder):
    import torch
    for bias in (True, False):
        rows = torch.export.Dim("rows", min=2)
        torch.onnx.export(network(bias), (torch.rand(64, 768),), os.path.join(folder, "linear.onnx" if bias else "plain.onnx"),
                          dynamo=True, dynamic_shapes=({0: rows},))


def quantized(layer, kind):
    import bitsandbytes
    nn = bitsandbytes.nn
    has_bias, dtype = layer.bias is not None, layer.weight.dtype
    if kind == "nf4":
        made = nn.Linear4bit(768, 3072, bias=has_bias, compute_dtype=dtype, quant_type="nf4", compress_statistics=True)
        made.weight = nn.Params4bit(layer.weight.data, requires_grad=False, quant_type="nf4", compress_statistics=True, module=made)
    else:
        made = nn.Linear8bitLt(768, 3072, bias=has_bias, has_fp16_weights=False, threshold=6.0)
        made.weight = nn.Int8Params(layer.weight.data, requires_grad=False, has_fp16_weights=False)
    made.bias = layer.bias
    return made


def measure(kind, bias, dtype, rows):
    import torch
    dtype = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}[dtype]
    net = network(bias).to(dtype)
    net.frozen = quantized(net.frozen, kind)
    net = net.cuda()
    x = torch.rand(rows, 768, device="cuda", dtype=dtype)
    step = torch.optim.SGD([p for p in net.parameters() if p.requires_grad], lr=0.1)
    target = torch.zeros(rows, 64, device="cuda", dtype=dtype)
    for _ in range(3):
        torch.cuda.reset_peak_memory_stats()
        step.zero_grad()
        y = net(x)
        loss = torch.nn.functional.mse_loss(y, target)
        loss.backward()
        step.step()
    stats = torch.cuda.memory_stats()
    return {"allocated": stats["allocated_bytes.all.peak"], "reserved": stats["reserved_bytes.all.peak"]}


def line(exe, gpu, folder, row):
    kind, bias, dtype, rows = row
    with open(os.path.join(folder, name_of(*row) + ".json")) as file:
        measured = json.load(file)
    precision = [] if dtype == "fp32" else ["--precision", dtype]
    run = subprocess.run([exe, os.path.join(folder, "linear.onnx" if bias else "plain.onnx"), "-d", f"rows={rows}", "--train", "sgd",
                          "--loss", "mse", "--train-only", "first.*", "--train-only", "last.*", "--weight-format", kind, "--runtime", "torch",
                          "--gpu", gpu, *precision, "--json"], capture_output=True, text=True, check=False)
    if run.returncode != 0:
        return f"| {name_of(*row)} | {run.stderr.strip().splitlines()[-1]} |"
    got = json.loads(run.stdout)["models"][0]["training"]
    off = [100 * (got[f"{k}_peak_bytes"] - measured[k]) / measured[k] for k in ("allocated", "reserved")]
    return (f"| {kind}, {'with' if bias else 'no'} bias, {dtype}, {rows:,} rows | {measured['allocated']:,} | {off[0]:+.2f} % | "
            f"{measured['reserved']:,} | {off[1]:+.2f} % |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("export", "measure", "table"))
    parser.add_argument("folder")
    parser.add_argument("name", nargs="?")
    parser.add_argument("--exe", default="onnxvram")
    parser.add_argument("--gpu", default="H100")
    arguments = parser.parse_args()
    if arguments.what == "export":
        export(arguments.folder)
    elif arguments.what == "table":
        print("| layer | allocated | predicted | reserved | predicted |\n|---|--:|--:|--:|--:|")
        for row in ROWS:
            print(line(arguments.exe, arguments.gpu, arguments.folder, row))
    else:
        for row in ROWS:
            name = name_of(*row)
            if arguments.name == name:
                with open(os.path.join(arguments.folder, name + ".json"), "w") as file:
                    json.dump(measure(*row), file)
            elif arguments.name is None:
                subprocess.run([sys.executable, __file__, "measure", arguments.folder, name], check=True)


if __name__ == "__main__":
    main()
