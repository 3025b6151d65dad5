#!/usr/bin/env python3
"""Regenerate the sample models, their truth files and the table in README.md.

    python samples/export.py --out samples [--truth tests/truth] [--weights DIR] [NAME...]

Each sample is a real export with random weights.  The full model is written to DIR (a temporary folder by default) and
ONNX Runtime measures every tensor of it; what lands in the repository is the same graph with its large float
initializers replaced by references to a `weights.bin` that does not exist.  Without names all samples are made.

Needs torch, torchvision, transformers, onnx, onnxruntime and onnxscript; downloads nothing.
"""

import argparse
import dataclasses
import os
import sys
import tempfile
import warnings
from typing import Callable

import numpy as np
import onnx
import torch
import torchvision
from onnx import TensorProto, helper, numpy_helper

import nets

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, os.pardir, "scripts", "export"))
import ort_truth as truth  # noqa: E402

WEIGHTS_FILE = "weights.bin"
# A float tensor beyond this many bytes leaves the file.  Integers and booleans may decide shapes and stay, unless they
# are tables that no shape could hang on.
INLINE_FLOAT_BYTES = 1024
INLINE_INTEGER_BYTES = 16 * 1024
NAME_SCOPES = "pkg.torch.onnx.name_scopes"
SHAPE_TYPES = (TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL)


# --- leaving weights and bloat out ------------------------------------------------------------------------------------

def leaves_file(tensor):
    limit = INLINE_INTEGER_BYTES if tensor.data_type in SHAPE_TYPES else INLINE_FLOAT_BYTES
    return truth.tensor_bytes(tensor.data_type, tensor.dims) > limit


def clear_text(message):
    """Drop documentation and metadata (stack traces) from a message and everything in it, but for the module that a
    node came from.
    """
    fields = message.DESCRIPTOR.fields_by_name
    scopes = []
    if isinstance(message, onnx.NodeProto):
        scopes = [(note.key, note.value) for note in message.metadata_props if note.key == NAME_SCOPES]
    for field in ("doc_string", "metadata_props"):
        if field in fields:
            message.ClearField(field)
    for key, value in scopes:
        message.metadata_props.add(key=key, value=value)
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        for child in value if isinstance(value, (list, tuple)) or hasattr(value, "add") else [value]:
            clear_text(child)


def strip(model, keep_value_info=False):
    """Leave weights, text and (mostly) value_info out of a model, in place."""
    clear_text(model)
    offset = 0
    for graph in truth.every_graph(model.graph):
        if not keep_value_info:
            del graph.value_info[:]
        for tensor in graph.initializer:
            if not leaves_file(tensor):
                continue
            length = truth.tensor_bytes(tensor.data_type, tensor.dims)
            reference = TensorProto(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims,
                                    data_location=TensorProto.EXTERNAL)
            for key, value in (("location", WEIGHTS_FILE), ("offset", offset), ("length", length)):
                reference.external_data.add(key=key, value=str(value))
            tensor.CopyFrom(reference)
            offset += length


# --- the two exporters ------------------------------------------------------------------------------------------------

def torchscript(model, args, path, axes, inputs, outputs, opset=17, training=False, **extra):
    """Export by tracing.  `axes` names the dynamic dims of each input and output: {"input": {0: "batch"}}."""
    mode = torch.onnx.TrainingMode.TRAINING if training else torch.onnx.TrainingMode.EVAL
    if not isinstance(model, torch.jit.ScriptModule):
        model.train(training)
    torch.onnx.export(model, args, path, dynamo=False, opset_version=opset, training=mode,
                      do_constant_folding=not training, input_names=inputs, output_names=outputs, dynamic_axes=axes,
                      **extra)


def dynamo(model, args, path, shapes, inputs, outputs, opset=20, training=False):
    """Export by torch.export.  `shapes` has one {dim: name} for each argument."""
    torch.onnx.export(model.train(training), args, path, dynamo=True, external_data=False, opset_version=opset,
                      input_names=inputs, output_names=outputs, dynamic_shapes=shapes, verbose=False)


# --- builders: each writes a full model to a path ---------------------------------------------------------------------

def vision(name, opset=17, training=False, size=224, dynamic=("batch",), prepare=lambda model: model, **options):
    """A torchvision model by constructor name; `dynamic` names dims 0, 2 and 3 as far as it goes."""
    def build(path):
        make = getattr(torchvision.models, name, None) or getattr(torchvision.models.segmentation, name)
        image_net(prepare(make(**options)), path, opset, training, size, dynamic)
    return build


def distinct(model):
    """Norms that differ, as those of a trained network do: the exporter writes equal vectors once, and copies of them by
    Identity.
    """
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            for values in (module.weight.data, module.bias.data, module.running_mean):
                values.add_(0.1 * torch.randn_like(values))
            module.running_var.mul_(1 + 0.1 * torch.rand_like(module.running_var))
    return model


def image_net(model, path, opset=17, training=False, size=224, dynamic=("batch",), batch=2):
    axes = dict(zip((0, 2, 3), dynamic))
    # A segmentation network keeps the size of its input, a classifier only the batch.
    model.eval()
    with torch.no_grad():
        result = model(torch.zeros(batch, 3, size, size))
    result = result["out"] if isinstance(result, dict) else result
    kept = axes if result.dim() == 4 else {0: axes[0]} if axes else {}
    torchscript(model, (torch.randn(batch, 3, size, size),), path, {"input": axes, "output": kept}, ["input"],
                ["output"], opset, training)


def vision_dynamo(name, **options):
    def build(path):
        model = getattr(torchvision.models, name)(**options)
        dynamo(model, (torch.randn(2, 3, 224, 224),), path, ({0: "batch"},), ["input"], ["output"])
    return build


def resnet50_batch1(path):
    image_net(distinct(nets.ResNet50Batch1()), path, dynamic=(), batch=1)


def swin_two_stages(path):
    """Swin with the first two of its four stages: the same shape arithmetic in a third of the nodes."""
    image_net(torchvision.models.SwinTransformer(patch_size=[4, 4], embed_dim=96, depths=[2, 2], num_heads=[3, 6],
                                                 window_size=[7, 7]), path)


def faster_rcnn(path):
    """A detector: how many boxes survive depends on the image."""
    make = torchvision.models.detection.fasterrcnn_mobilenet_v3_large_320_fpn
    torchscript(make(weights=None, weights_backbone=None), ([torch.rand(3, 320, 320)],), path,
                {"image": {1: "height", 2: "width"}}, ["image"], ["boxes", "labels", "scores"])


def small_vit_train(path):
    image_net(nets.small_vit(), path, training=True, size=96)


def unet(training=False):
    def build(path):
        image_net(nets.UNet(), path, training=training, size=64, dynamic=("batch", "height", "width"))
    return build


def lstm(path):
    axes = {"tokens": {0: "batch", 1: "sequence"}, "logits": {0: "batch"}}
    torchscript(nets.LstmClassifier(), (torch.ones(2, 9, dtype=torch.int64),), path, axes, ["tokens"], ["logits"],
                opset=11)


def bert_model():
    from transformers import BertConfig, BertModel

    config = BertConfig(vocab_size=8192, hidden_size=256, num_hidden_layers=4, num_attention_heads=4,
                        intermediate_size=1024, attn_implementation="eager")
    return nets.Encoder(BertModel(config))


def bert(path, exporter="torchscript"):
    inputs = ["input_ids", "attention_mask", "token_type_ids"]
    outputs = ["last_hidden_state", "pooler_output"]
    tokens = torch.ones(2, 9, dtype=torch.int64)
    per_token = {0: "batch", 1: "sequence"}
    if exporter == "dynamo":
        dynamo(bert_model(), (tokens,) * 3, path, (per_token,) * 3, inputs, outputs)
        return
    axes = {name: per_token for name in [*inputs, outputs[0]]} | {outputs[1]: {0: "batch"}}
    torchscript(bert_model(), (tokens,) * 3, path, axes, inputs, outputs)


def bert_dynamo(path):
    bert(path, "dynamo")


def decoder(model, path, exporter, opset):
    """Export a causal language model with its KV cache as inputs and outputs."""
    config = model.config
    heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
    width = config.hidden_size // config.num_attention_heads
    slots = [f"{layer}.{part}" for layer in range(config.num_hidden_layers) for part in ("key", "value")]
    past = [f"past_key_values.{slot}" for slot in slots]
    present = [f"present.{slot}" for slot in slots]
    inputs = ["input_ids", "attention_mask", *past]
    outputs = ["logits", *present]
    args = (torch.ones(2, 3, dtype=torch.int64), torch.ones(2, 8, dtype=torch.int64),
            *(torch.randn(2, heads, 5, width, dtype=model.dtype) for _ in past))
    axes = {"input_ids": {0: "batch", 1: "sequence"}, "attention_mask": {0: "batch", 1: "total"},
            "logits": {0: "batch", 1: "sequence"}}
    axes |= {name: {0: "batch", 2: "past"} for name in past}
    if exporter == "dynamo":
        shapes = (axes["input_ids"], axes["attention_mask"], tuple(axes[name] for name in past))
        dynamo(nets.Decoder(model), args, path, shapes, inputs, outputs, opset)
        return
    axes |= {name: {0: "batch", 2: "total"} for name in present}
    torchscript(nets.Decoder(model), args, path, axes, inputs, outputs, opset)


def gpt2(exporter="torchscript", opset=17):
    def build(path):
        from transformers import GPT2Config, GPT2LMHeadModel

        config = GPT2Config(vocab_size=8192, n_positions=256, n_embd=256, n_layer=4, n_head=4, bos_token_id=0,
                            eos_token_id=0, attn_implementation="eager")
        decoder(GPT2LMHeadModel(config), path, exporter, opset)
    return build


def llama(exporter="torchscript", opset=17, dtype=torch.float32, attention="eager"):
    def build(path):
        from transformers import LlamaConfig, LlamaForCausalLM

        config = LlamaConfig(vocab_size=8192, hidden_size=256, intermediate_size=688, num_hidden_layers=4,
                             num_attention_heads=8, num_key_value_heads=2, max_position_embeddings=512,
                             attn_implementation=attention)
        decoder(LlamaForCausalLM(config).to(dtype), path, exporter, opset)
    return build


def resnet18_qdq(path):
    """ResNet-18 quantised after training: QuantizeLinear / DequantizeLinear around every operator."""
    from onnxruntime import quantization

    class Images(quantization.CalibrationDataReader):
        def __init__(self):
            rng = np.random.default_rng(0)
            self.batches = iter([{"input": rng.random((1, 3, 224, 224), np.float32)} for _ in range(2)])

        def get_next(self):
            return next(self.batches, None)

    with tempfile.TemporaryDirectory() as folder:
        plain = os.path.join(folder, "plain.onnx")
        vision("resnet18")(plain)
        quantization.quantize_static(plain, path, Images(), quant_format=quantization.QuantFormat.QDQ,
                                     per_channel=True)


def bert_int8(path):
    """The encoder with weights quantised and activations quantised on the fly."""
    from onnxruntime import quantization

    with tempfile.TemporaryDirectory() as folder:
        plain = os.path.join(folder, "plain.onnx")
        bert(plain)
        quantization.quantize_dynamic(plain, path)


def refiner(path):
    model = torch.jit.script(nets.Refiner().eval())
    axes = {"input": {0: "batch"}, "output": {0: "batch"}}
    torchscript(model, (torch.randn(2, 3, 32, 32), torch.tensor(3)), path, axes, ["input", "steps"], ["output"])


def scan(path):
    """A recurrent cell in a Scan over time, weights captured from outside; built by hand."""
    width, hidden = 32, 64
    rng = np.random.default_rng(0)
    weights = {"w": (width, hidden), "r": (hidden, hidden), "b": (hidden,)}
    floats = TensorProto.FLOAT
    body = helper.make_graph(
        [helper.make_node("MatMul", ["x_t", "w"], ["in_part"]),
         helper.make_node("MatMul", ["h_prev", "r"], ["state_part"]),
         helper.make_node("Add", ["in_part", "state_part"], ["summed"]),
         helper.make_node("Add", ["summed", "b"], ["biased"]),
         helper.make_node("Tanh", ["biased"], ["h_next"]),
         helper.make_node("Identity", ["h_next"], ["y_t"])],
        "cell",
        [helper.make_tensor_value_info("h_prev", floats, None), helper.make_tensor_value_info("x_t", floats, None)],
        [helper.make_tensor_value_info("h_next", floats, None), helper.make_tensor_value_info("y_t", floats, None)])
    graph = helper.make_graph(
        [helper.make_node("Shape", ["x"], ["batch_of_x"], start=0, end=1),
         helper.make_node("Concat", ["batch_of_x", "hidden_size"], ["state_shape"], axis=0),
         helper.make_node("ConstantOfShape", ["state_shape"], ["h0"]),
         helper.make_node("Scan", ["h0", "x"], ["h_last", "states"], body=body, num_scan_inputs=1,
                          scan_input_axes=[1], scan_output_axes=[1]),
         helper.make_node("ReduceMax", ["states"], ["pooled"], axes=[1], keepdims=0),
         helper.make_node("Concat", ["pooled", "h_last"], ["y"], axis=1)],
        "scan",
        [helper.make_tensor_value_info("x", floats, ["batch", "sequence", width])],
        [helper.make_tensor_value_info("y", floats, ["batch", 2 * hidden])],
        [numpy_helper.from_array(rng.normal(0, 0.1, shape).astype(np.float32), name) for name, shape in
         weights.items()] + [numpy_helper.from_array(np.array([hidden], np.int64), "hidden_size")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8,
                              producer_name="onnx.helper")
    onnx.checker.check_model(model)
    onnx.save(model, path)


FUNCTIONS = """
<ir_version: 8, opset_import: ["" : 17, "sample" : 1], producer_name: "onnx.parser">
functions (float[batch, sequence, 64] x) => (float[batch, sequence, 64] y)
{
    hidden = sample.Block <alpha = 0.5> (x, up1, down1)
    y = sample.Block <alpha = 0.25> (hidden, up2, down2)
}
<domain: "sample", opset_import: ["" : 17, "sample" : 1]>
Block <alpha> (x, up, down) => (y)
{
    inner = sample.Activated <alpha: float = @alpha> (x, up)
    projected = MatMul (inner, down)
    y = Add (x, projected)
}
<domain: "sample", opset_import: ["" : 17]>
Activated <alpha> (x, w) => (y)
{
    wide = MatMul (x, w)
    y = Elu <alpha: float = @alpha> (wide)
}
"""


def functions(path):
    """Two calls of a local function that calls another one; the largest tensor exists only inside."""
    model = onnx.parser.parse_model(FUNCTIONS)
    rng = np.random.default_rng(0)
    for name, shape in (("up1", (64, 256)), ("down1", (256, 64)), ("up2", (64, 256)), ("down2", (256, 64))):
        values = rng.normal(0, 0.1, shape).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(values, name))
    onnx.checker.check_model(model)
    onnx.save(model, path)


# --- the table of samples ---------------------------------------------------------------------------------------------

@dataclasses.dataclass
class Sample:
    name: str
    build: Callable[[str], None]
    origin: str
    exporter: str = "TorchScript"
    binds: tuple = ({"batch": 1}, {"batch": 8})  # one truth file for each
    values: dict = dataclasses.field(default_factory=dict)
    keep_value_info: bool = False


def tokens(batch, sequence):
    return {"batch": batch, "sequence": sequence}


def cached(batch, sequence, past):
    return {"batch": batch, "sequence": sequence, "total": past + sequence, "past": past}


def image(batch, height, width):
    return {"batch": batch, "height": height, "width": width}


ONE = ({"batch": 1},)
TEXT = (tokens(1, 16), tokens(8, 33))
CACHE = (cached(1, 1, 31), cached(4, 7, 0))

SAMPLES = [
    Sample("resnet18", vision("resnet18"), "torchvision `resnet18()`"),
    Sample("resnet50", vision("resnet50", prepare=distinct), "torchvision `resnet50()`"),
    Sample("resnet50-batch1", resnet50_batch1, "torchvision `ResNet`, flattened by `view(1, 2048)`", binds=({},)),
    Sample("vit_b_16", vision("vit_b_16"), "torchvision `vit_b_16()`", binds=ONE),
    Sample("bert", bert, "transformers `BertModel`, 4 layers, 256 wide", binds=TEXT),
    Sample("gpt2", gpt2(), "transformers `GPT2LMHeadModel`, 4 layers, 256 wide, KV cache", binds=CACHE),
    Sample("vgg16", vision("vgg16", opset=9), "torchvision `vgg16()`"),
    Sample("densenet201", vision("densenet201"), "torchvision `densenet201()`", binds=ONE),
    Sample("mobilenet_v2", vision("mobilenet_v2", opset=13), "torchvision `mobilenet_v2()`"),
    Sample("llama", llama(), "transformers `LlamaForCausalLM`, 4 layers, 256 wide, GQA 8:2, KV cache", binds=CACHE),
    Sample("unet", unet(), "`nets.UNet()`", binds=(image(1, 128, 128), image(4, 64, 96))),
    Sample("lstm", lstm, "`nets.LstmClassifier()`, `nn.LSTM`, 2 layers, bidirectional",
           binds=(tokens(1, 16), tokens(8, 33))),
    Sample("deeplabv3_resnet50",
           vision("deeplabv3_resnet50", size=96, dynamic=("batch", "height", "width"), weights=None,
                  weights_backbone=None),
           "torchvision `deeplabv3_resnet50()`", binds=(image(1, 224, 224), image(2, 96, 160))),
    Sample("efficientnet_b0", vision("efficientnet_b0"), "torchvision `efficientnet_b0()`", binds=ONE),
    Sample("mobilenet_v3_small", vision("mobilenet_v3_small", opset=11), "torchvision `mobilenet_v3_small()`"),
    Sample("convnext_tiny", vision("convnext_tiny", opset=18), "torchvision `convnext_tiny()`", binds=ONE),
    Sample("swin-2stage", swin_two_stages, "torchvision `SwinTransformer`, the first two stages of `swin_t`", binds=ONE),
    Sample("fasterrcnn", faster_rcnn, "torchvision `fasterrcnn_mobilenet_v3_large_320_fpn()`",
           binds=({"height": 320, "width": 320},)),
    Sample("resnet18-dynamo", vision_dynamo("resnet18"), "torchvision `resnet18()`", "dynamo"),
    Sample("vit_b_16-dynamo", vision_dynamo("vit_b_16"), "torchvision `vit_b_16()`", "dynamo"),
    Sample("swin_t-dynamo", vision_dynamo("swin_t"), "torchvision `swin_t()`", "dynamo", binds=ONE),
    Sample("bert-dynamo", bert_dynamo, "as `bert`", "dynamo", binds=TEXT),
    Sample("llama-dynamo", llama("dynamo", 20, torch.float16), "as `llama`, in float16; keeps its value_info", "dynamo",
           binds=CACHE, keep_value_info=True),
    Sample("llama-attention", llama("dynamo", 23, attention="sdpa"),
           "as `llama`: Attention, RMSNormalization and RotaryEmbedding as operators", "dynamo",
           binds=(cached(1, 1, 31), cached(1, 7, 0))),
    Sample("resnet18-qdq", resnet18_qdq, "`resnet18`, `onnxruntime.quantization.quantize_static`, QDQ, per channel"),
    Sample("bert-int8", bert_int8, "`bert`, `onnxruntime.quantization.quantize_dynamic`", binds=TEXT[:1]),
    Sample("resnet18-train", vision("resnet18", training=True), "torchvision `resnet18()`, training mode"),
    Sample("mobilenet_v2-train", vision("mobilenet_v2", training=True), "torchvision `mobilenet_v2()`, training mode",
           binds=ONE),
    Sample("vit-small-train", small_vit_train, "`nets.small_vit()`, training mode"),
    Sample("unet-train", unet(training=True), "`nets.UNet()`, training mode", binds=(image(2, 64, 64),)),
    Sample("control-flow", refiner, "`torch.jit.script(nets.Refiner())`: Loop and If", values={"steps": 3}),
    Sample("scan", scan, "`scan()` in `export.py`: Scan", "onnx.helper", binds=TEXT),
    Sample("functions", functions, "`functions()` in `export.py`: local functions, nested", "onnx.parser", binds=TEXT),
]


# --- producing --------------------------------------------------------------------------------------------------------

def produce(sample, out, truth_folder, weights_folder):
    full = os.path.join(weights_folder, sample.name + ".onnx")
    torch.manual_seed(0)
    sample.build(full)
    for binds in sample.binds:
        facts = truth.record(full, binds, sample.values)
        truth.write(facts, os.path.join(truth_folder, f"{sample.name}.{truth.key_of(binds)}.truth.json"))
    model = onnx.load(full)
    strip(model, sample.keep_value_info)
    onnx.save(model, os.path.join(out, sample.name + ".onnx"))


def dynamic_dims(graph):
    names = []
    for value in graph.input:
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param and dim.dim_param not in names:
                names.append(dim.dim_param)
    return ", ".join(names) or "none"


def table_row(sample, out, truth_folder):
    import json

    path = os.path.join(out, sample.name + ".onnx")
    model = onnx.load(path, load_external_data=False)
    with open(os.path.join(truth_folder, f"{sample.name}.{truth.key_of(sample.binds[0])}.truth.json")) as file:
        facts = json.load(file)
    opset = next(o.version for o in model.opset_import if o.domain in ("", "ai.onnx"))
    binds = ", ".join(f"{name} {number}" for name, number in facts["binds"].items()) or "as exported"
    return (f"| `{sample.name}.onnx` | {sample.origin} | {sample.exporter} | {opset} | {dynamic_dims(model.graph)} | "
            f"{facts['weight_elems']:,} | {facts['nodes']:,} | {binds} | {facts['peak']['bytes']:,} | "
            f"{os.path.getsize(path) // 1024} KiB |")


def write_table(out, truth_folder):
    """Put the table of the samples that exist between the markers of README.md."""
    start, end = "<!-- samples: begin -->", "<!-- samples: end -->"
    path = os.path.join(out, "README.md")
    rows = ["| file | origin | exporter | opset | dynamic dims | weight elements | nodes | truth at | "
            "ideal peak, bytes | file size |", "|---|---|---|--:|---|--:|--:|---|--:|--:|"]
    rows += [table_row(sample, out, truth_folder) for sample in SAMPLES
             if os.path.exists(os.path.join(out, sample.name + ".onnx"))]
    with open(path) as file:
        text = file.read()
    before, after = text.split(start)[0], text.split(end)[1]
    with open(path, "w") as file:
        file.write(before + start + "\n" + "\n".join(rows) + "\n" + end + after)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default=HERE, help="folder of the stripped models and of README.md")
    parser.add_argument("--truth", default=os.path.join(HERE, os.pardir, "tests", "truth"))
    parser.add_argument("--weights", help="keep the full models in this folder")
    parser.add_argument("--table", action="store_true", help="only rewrite the table in README.md")
    parser.add_argument("names", nargs="*", metavar="NAME")
    args = parser.parse_args()
    unknown = set(args.names) - {sample.name for sample in SAMPLES}
    if unknown:
        parser.error("no such sample: " + ", ".join(sorted(unknown)))
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        for sample in SAMPLES if not args.table else []:
            if args.names and sample.name not in args.names:
                continue
            print(sample.name, file=sys.stderr, flush=True)
            produce(sample, args.out, args.truth, args.weights or folder)
    write_table(args.out, args.truth)


if __name__ == "__main__":
    main()
