#!/usr/bin/env python3
"""Whole libraries: networks in an order that no person chose, exported by default, and what training them takes.

    python scripts/export/population.py list SOURCE                        the names in their order, with their numbers
    python scripts/export/population.py measure DIR SOURCE FROM TO         the names of numbers FROM to TO - 1
    python scripts/export/population.py measure DIR SOURCE --names NAME... or these
    python scripts/export/population.py older DIR                          what is measured there, by the older exporter, too
    python scripts/export/population.py table DIR --exe onnxvram           rows of docs/accuracy/default-exports.md

Sources: `timm`, one model of each module; `transformers`, a small configuration of each type of model; `segmentation`, an
architecture and an encoder of segmentation-models-pytorch; `layers` and `graphs`, of torch_geometric; `audio`, of torchaudio;
`diffusers`, a small configuration of each class of diffusers.models (diffusion.py), which is given all tensors as inputs;
`torchvision`, every model that is not quantized, of detectors the backbone and the head of all positions.

The order is that of SHA-256 of a seed and the name. It depends on no other name: what a later version of a library adds comes
in between, and the others keep their order. What this script cannot build small is a name, too, and fails when it is
measured: nothing is left out by hand. Names may also be models of timm, and classes of transformers, instead of the module
and of the type, which is taken in the first class that the library has for it: types that read text and pictures, sound and
text, or series are those that no list of one kind of input has.

`measure` needs the CUDA build of PyTorch and a device. It writes NAME.onnx, NAME.export.json, NAME.kept.json,
NAME.momentum.json and NAME.adamw.json, or NAME.*.fail with the error, each by a process of its own; what is there is not
measured again. `older` writes NAME.older.onnx, in training mode and without folding constants, which `table --older`
reads instead; what is measured is the same. `table` needs the files and the program. The figures are those of default_exports.py. Recurrent networks are
compared by all bytes that are asked for: the workspace of cuDNN's recurrences is a tensor of PyTorch.
"""

import argparse
import functools
import glob
import hashlib
import json
import os
import signal
import subprocess
import sys
import traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import default_exports
import diffusion
import fresh_networks

BATCH = default_exports.BATCH
SEED = 2311
PARAMETERS = 120_000_000  # most that is measured
MODULE = 90_000_000  # most of a model that is taken for its module of timm
SECONDS = {"export": 500, "older": 300, "kept": 300, "momentum": 300, "adamw": 300}

# The sizes of small networks, by the names that configurations of transformers have for them.
SMALL = {
    **dict.fromkeys(("hidden_size", "d_model", "n_embd", "embedding_size", "emb_dim", "projection_dim", "dim", "embed_dim",
                     "decoder_hidden_size", "fusion_hidden_size"), 64),
    **dict.fromkeys(("num_hidden_layers", "num_layers", "n_layer", "n_layers", "encoder_layers", "decoder_layers",
                     "num_decoder_layers", "num_encoder_layers"), 2),
    **dict.fromkeys(("num_attention_heads", "num_heads", "n_head", "n_heads", "encoder_attention_heads",
                     "decoder_attention_heads", "num_experts", "num_local_experts", "n_routed_experts"), 4),
    **dict.fromkeys(("intermediate_size", "d_ff", "encoder_ffn_dim", "decoder_ffn_dim", "ffn_dim"), 128),
    **dict.fromkeys(("head_dim", "d_kv", "kv_channels"), 16),
    **dict.fromkeys(("max_position_embeddings", "n_positions", "max_seq_len"), 64),
    **dict.fromkeys(("layerdrop", "encoder_layerdrop", "decoder_layerdrop"), 0.0),
    "num_key_value_heads": 2, "vocab_size": 500, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "num_labels": 10,
    "use_cache": False, "apply_spec_augment": False, "num_feat_extract_layers": 3, "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 4, "conv_dim": (32, 32, 32), "conv_stride": (5, 4, 4), "conv_kernel": (10, 4, 4),
}
# Networks of several stages keep their own widths and depths.
STAGES = ("hidden_sizes", "depths", "num_encoder_blocks", "stage_channels")
WIDTHS = ("hidden_size", "embed_dim", "num_layers", "num_heads", "num_attention_heads", "dim")

# The lists of transformers, in the order in which a type is looked for, and what their networks are given.
TASKS = {"CAUSAL_LM": "tokens", "MASKED_LM": "tokens", "SEQ_TO_SEQ_CAUSAL_LM": "tokens", "SEQUENCE_CLASSIFICATION": "tokens",
         "TOKEN_CLASSIFICATION": "tokens", "IMAGE_CLASSIFICATION": "image", "SEMANTIC_SEGMENTATION": "image",
         "DEPTH_ESTIMATION": "image", "AUDIO_CLASSIFICATION": "sound", "CTC": "sound", "VIDEO_CLASSIFICATION": "video",
         "OBJECT_DETECTION": "image", "UNIVERSAL_SEGMENTATION": "image", "ZERO_SHOT_IMAGE_CLASSIFICATION": "pair",
         "VISUAL_QUESTION_ANSWERING": "pair", "SPEECH_SEQ_2_SEQ": "speech", "IMAGE_TO_IMAGE": "image",
         "MASKED_IMAGE_MODELING": "image", "KEYPOINT_DETECTION": "image", "POSE_ESTIMATION": "image", "IMAGE_MATTING": "image",
         "TEXT_RECOGNITION": "image", "TIME_SERIES_CLASSIFICATION": "series", "MASK_GENERATION": "image"}


def by_digest(names):
    return sorted(names, key=lambda name: hashlib.sha256(f"{SEED} {name}".encode()).hexdigest())


def image(size=64, channels=3):
    import torch
    return lambda device: torch.rand(BATCH, channels, size, size, device=device)


def values(*shape):
    import torch
    return lambda device: torch.rand(*shape, device=device)


# transformers

def small(config_class):
    known = config_class()
    options = {k: v for k, v in SMALL.items() if hasattr(known, k)}
    for key in list(options):  # a list stays the list that it is
        if isinstance(getattr(known, key), (list, tuple)) and not isinstance(options[key], (list, tuple)):
            del options[key]
    if any(hasattr(known, k) for k in STAGES):
        options = {k: v for k, v in options.items() if k not in WIDTHS}
    size, patch = getattr(known, "image_size", None), getattr(known, "patch_size", None)
    if isinstance(size, int):
        options["image_size"] = 64 if not isinstance(patch, int) or 64 % patch == 0 else 4 * patch
    return config_class(**options)


def small_of_all(config_class):
    """Small, and so are the configurations of its parts."""
    known = small(config_class)
    parts = {key: small_of_all(part).to_dict() for key, part in getattr(config_class, "sub_configs", {}).items()
             if hasattr(part, "to_dict") and not part.__name__.startswith("Auto")}
    return config_class(**{**{k: getattr(known, k) for k in SMALL if hasattr(known, k)}, **parts}) if parts else known


def config_for(config, kind):
    return (small_of_all if kind in ("pair", "speech") else small)(config)


def transformers_inputs(config, kind, main_input):
    def make(device):
        import torch
        c = config_for(config, kind)
        tokens = torch.zeros(BATCH, 48, dtype=torch.int64, device=device)
        if kind == "tokens":
            return tokens
        if kind == "pair":
            size = getattr(getattr(c, "vision_config", c), "image_size", 64)
            return {"input_ids": tokens[:, :16].contiguous(), "pixel_values": torch.rand(BATCH, 3, size, size, device=device)}
        if kind == "speech":
            sound = ((4000,) if main_input == "input_values" else (96, getattr(c, "num_mel_bins", 80)))
            return {main_input: torch.rand(BATCH, *sound, device=device), "decoder_input_ids": tokens[:, :16].contiguous()}
        if kind == "series":
            return torch.rand(BATCH, c.context_length, c.num_input_channels, device=device)
        if kind == "image":
            size = getattr(c, "image_size", 64)
            size = size[0] if isinstance(size, (list, tuple)) else size if isinstance(size, int) else 64
            return torch.rand(BATCH, getattr(c, "num_channels", 3) or 3, size, size, device=device)
        if kind == "video":
            return torch.rand(BATCH, getattr(c, "num_frames", 8), 3, c.image_size, c.image_size, device=device)
        if hasattr(c, "num_mel_bins") and hasattr(c, "max_length"):
            return torch.rand(BATCH, c.max_length, c.num_mel_bins, device=device)
        if hasattr(c, "num_mel_bins") or hasattr(c, "input_feat_per_channel"):
            return torch.rand(BATCH, 96, getattr(c, "num_mel_bins", 80), device=device)
        return torch.rand(BATCH, 4000, device=device)
    return make


def transformers_classes():
    """Type of model, class, its configuration, what it is given."""
    from transformers.models.auto import configuration_auto, modeling_auto
    for task, kind in TASKS.items():
        for model, name in getattr(modeling_auto, f"MODEL_FOR_{task}_MAPPING_NAMES").items():
            config = configuration_auto.CONFIG_MAPPING_NAMES.get(model)
            if isinstance(name, str) and config:
                yield model, name, config, kind


def transformers_types():
    return {model for model, *_ in transformers_classes()}


def transformers_network(name):
    import transformers
    from torch import nn
    _, model, config, kind = next(c for c in transformers_classes() if name in c[:2])
    config = getattr(transformers, config)

    class Picked(nn.Module):
        """The result that has a loss."""

        def __init__(self):
            super().__init__()
            self.network = getattr(transformers, model)(config_for(config, kind))
            self.network.config.return_dict = True

        def forward(self, x):
            r = self.network(**x) if isinstance(x, dict) else self.network(x)
            for k in ("logits", "predicted_depth", "class_queries_logits", "logits_per_image", "last_hidden_state"):
                if k in r and r[k] is not None:
                    return r[k]
            return r[0]
    return Picked, transformers_inputs(config, kind, getattr(transformers, model).main_input_name)


# timm

@functools.cache
def timm_model(name):
    """The model of that name, or the first of a module that is small enough, and the size of its pictures."""
    import timm
    import torch
    is_module = name in timm.list_modules()
    for model in by_digest(timm.list_models(module=name)) if is_module else [name]:
        with torch.device("meta"):
            try:
                network = timm.create_model(model, pretrained=False)
            except Exception:  # some cannot be built so, whatever it is
                continue
        if not is_module or sum(p.numel() for p in network.parameters()) < MODULE:
            config = network.default_cfg if isinstance(network.default_cfg, dict) else network.default_cfg.to_dict()
            return model, min(config["input_size"][-1] if config.get("fixed_input_size") else 64, 256)
    raise ValueError("all are too large")


def timm_network(name):
    import timm
    model, size = timm_model(name)
    return lambda: timm.create_model(model, pretrained=False, num_classes=10), image(size)


def timm_names():
    import timm
    return timm.list_modules()


# segmentation-models-pytorch

VISION_TRANSFORMERS = ("tu-vit_tiny_patch16_224", "tu-deit_tiny_patch16_224", "tu-vit_small_patch16_224")


def segmentation_names():
    import segmentation_models_pytorch as smp
    kinds = ("Unet", "UnetPlusPlus", "MAnet", "Linknet", "FPN", "PSPNet", "PAN", "DeepLabV3", "DeepLabV3Plus", "UPerNet",
             "Segformer", "DPT")
    return [f"{kind} {encoder}" for kind in kinds
            for encoder in (VISION_TRANSFORMERS if kind == "DPT" else smp.encoders.encoders)]


def segmentation_network(name):
    import segmentation_models_pytorch as smp
    kind, encoder = name.split()
    more = {"encoder_depth": 4, "dynamic_img_size": True} if kind == "DPT" else {}
    return (lambda: getattr(smp, kind)(encoder_name=encoder, encoder_weights=None, classes=5, **more),
            image(128 if kind == "PAN" else 64))


# torch_geometric

def layers():
    """Of layers that are not made of a width before and a width after alone: how; None: they need more than edges."""
    import torch_geometric.nn as g
    from torch import nn

    def perceptron(before):
        return nn.Sequential(nn.Linear(before, 32), nn.ReLU(), nn.Linear(32, 32))
    return {
        "NNConv": None, "GMMConv": None, "SplineConv": None, "GCN2Conv": None, "FAConv": None,
        "GINConv": lambda: g.GINConv(perceptron(32)), "EdgeConv": lambda: g.EdgeConv(perceptron(64)),
        "ChebConv": lambda: g.ChebConv(32, 32, K=3), "GatedGraphConv": lambda: g.GatedGraphConv(32, 3),
        "AGNNConv": g.AGNNConv, "APPNP": lambda: g.APPNP(3, 0.1), "MixHopConv": lambda: g.MixHopConv(32, 32, [1]),
        "EGConv": lambda: g.EGConv(32, 32, num_heads=4, num_bases=2),
    }


def layer_names():
    import inspect
    import torch_geometric.nn as g
    special = layers()
    return [n for n in dir(g) if n.endswith("Conv") and inspect.isclass(getattr(g, n)) and special.get(n, n) is not None]


def layer_network(name):
    return fresh_networks.geometric(layers().get(name, name)), values(200, 32)


def deep_graph():
    import torch_geometric.nn as g
    from torch import nn

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.begin, self.head = nn.Linear(32, 64), nn.Linear(64, 7)
            self.layers = nn.ModuleList(
                g.DeepGCNLayer(g.GENConv(64, 64, aggr="softmax", t=1.0, learn_t=True, num_layers=2, norm="layer"),
                               nn.LayerNorm(64), nn.ReLU(inplace=True), block="res+", dropout=0.1) for _ in range(3))

        def forward(self, x, edges):
            x = self.layers[0].conv(self.begin(x), edges)
            for layer in self.layers[1:]:
                x = layer(x, edges)
            return self.head(x)
    return Network()


def graphs():
    """No GCN and GAT: they select edges by their values, so that sizes depend on data."""
    import torch
    import torch_geometric.nn as g
    return {
        "GraphSAGE": lambda: g.GraphSAGE(32, 64, 3, 7, dropout=0.3, jk="cat"),
        "GraphSAGE, LSTM over layers": lambda: g.GraphSAGE(32, 64, 2, 7, act="gelu", jk="lstm"),
        "GIN": lambda: g.GIN(32, 64, 3, 7, norm="layer_norm"),
        "PNA": lambda: g.PNA(32, 32, 2, 7, aggregators=["mean", "max", "std"], scalers=["identity", "amplification"],
                             deg=torch.ones(10, dtype=torch.long)),
        "EdgeCNN": lambda: g.EdgeCNN(32, 64, 3, 7, jk="max"),
        "DeepGCN": deep_graph,
    }


def graph_network(name):
    import torch
    from torch import nn

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            numbers = torch.Generator().manual_seed(1)
            self.register_buffer("edges", torch.randint(0, 200, (2, 800), generator=numbers))
            self.body = graphs()[name]()

        def forward(self, x):
            return self.body(x, self.edges)
    return Network, values(200, 32)


# torchaudio

def audio():
    """Name: (network, tensors that are buffers here, shape of the input)."""
    import torch
    from torch import nn
    from torchaudio import models

    def waves(classes, *convolutions):
        return models.wav2vec2_model("group_norm", list(convolutions), False, 64, 0.1, 16, 4, 2, 4, 0.1, 128, 0.1, 0.1, False,
                                     0.0, classes)
    first = ((32, 10, 5), (32, 4, 4))
    return {
        "Conformer": (lambda: models.Conformer(80, 4, 128, 2, 31, dropout=0.1), [torch.full((BATCH,), 100)], (100, 80)),
        "Emformer": (lambda: models.Emformer(80, 4, 128, 2, 20, right_context_length=4), [torch.full((BATCH,), 96)], (100, 80)),
        "Wav2Letter": (lambda: models.Wav2Letter(30, "mfcc", 40), [], (40, 100)),
        "DeepSpeech": (lambda: models.DeepSpeech(80, 128, 30), [], (1, 100, 80)),
        "ConvTasNet": (lambda: models.ConvTasNet(2, 16, 64, 3, 32, 64, 4, 2), [], (1, 4000)),
        "Wav2Vec2": (lambda: waves(30, *first, (32, 4, 4)), [], (4000,)),
        "HDemucs": (lambda: models.HDemucs(["a", "b"], channels=8, depth=4, nfft=1024), [], (2, 8192)),
        "SquimSubjective": (lambda: models.SquimSubjective(waves(None, *first), nn.Linear(64, 64), nn.Linear(64, 1)),
                            [torch.rand(BATCH, 4000)], (4000,)),
    }


def audio_network(name):
    from torch import nn
    make, tensors, shape = audio()[name]

    class First(nn.Module):
        """The first result of a network."""

        def __init__(self):
            super().__init__()
            self.network = make()
            for i, tensor in enumerate(tensors):
                self.register_buffer(f"given{i}", tensor)

        def forward(self, x):
            r = self.network(x, *(getattr(self, f"given{i}") for i in range(len(tensors))))
            return r[0] if isinstance(r, tuple) else r
    return First, values(BATCH, *shape)


# torchvision

# Arguments of networks that take pictures of one size, and the sizes of those that do not take small ones.
SIZED = {"vit_": {"image_size": 64}, "mvit_": {"spatial_size": (64, 64), "temporal_size": 8}}
SIDES = {"inception_v3": 128, "maxvit_t": 224, "s3d": 224, "raft": 128, "swin_v2": 64, "ssd300": 300, "ssdlite320": 320}


def vision_names():
    """No quantized networks, which cannot be trained."""
    import torchvision
    return [n for n in torchvision.models.list_models() if not n.startswith("quantized")]


def vision_network(name):
    """Of detectors what does not depend on data: the backbone and the head of all positions."""
    import torch
    import torchvision
    from torch import nn
    options = next((o for begin, o in SIZED.items() if name.startswith(begin)), {})
    side = next((s for begin, s in SIDES.items() if name.startswith(begin)), 64)
    kind = torchvision.models.get_model_builder(name).__module__.split(".")[2]

    class Whole(nn.Module):
        def __init__(self):
            super().__init__()
            more = {"weights_backbone": None} if kind in ("detection", "segmentation") else {}
            more = {"init_weights": False} if name in ("googlenet", "inception_v3") else more
            self.network = torchvision.models.get_model(name, weights=None, **more, **options)

        def forward(self, x):
            if kind == "optical_flow":
                return tuple(self.network(x[:, :3], x[:, 3:], num_flow_updates=3))
            found = self.network(x)
            return tuple(found.values()) if isinstance(found, dict) else tuple(found) if isinstance(found, tuple) else found

    class Detector(nn.Module):
        def __init__(self):
            super().__init__()
            network = torchvision.models.get_model(name, weights=None, weights_backbone=None)
            self.backbone, self.head = network.backbone, network.rpn.head if hasattr(network, "rpn") else network.head

        def forward(self, x):
            maps = self.backbone(x)
            found = self.head(list(maps.values()) if isinstance(maps, dict) else [maps])
            return diffusion.results_of(found)
    shape = {"video": (3, 16 if name == "s3d" else 8, side, side), "optical_flow": (6, side, side)}.get(kind, (3, side, side))
    return Detector if kind == "detection" else Whole, lambda device: torch.rand(BATCH, *shape, device=device)


# Source: (names, network of a name as (make, make input on a device)).
SOURCES = {
    "timm": (timm_names, timm_network),
    "transformers": (transformers_types, transformers_network),
    "segmentation": (segmentation_names, segmentation_network),
    "layers": (layer_names, layer_network),
    "graphs": (graphs, graph_network),
    "audio": (audio, audio_network),
    "diffusers": (diffusion.classes, diffusion.network),
    "torchvision": (vision_names, vision_network),
}


def export(base, source, name, is_training=True):
    import torch
    make, inputs = SOURCES[source][1](name)

    def parameters(network):
        count = sum(p.numel() for p in network.parameters())
        if count > PARAMETERS:
            raise ValueError(f"too large: {count:,} parameters")
        return count
    with torch.device("meta"):  # before the memory is asked for
        try:
            network = make()
        except Exception:  # some compute with values as they are built
            network = None
        if network is not None:
            parameters(network)
    torch.manual_seed(0)
    network, x = make().train(is_training), inputs("cpu")
    count = parameters(network)
    torch.onnx.export(network, (x, {}), base + ".onnx", dynamo=True)  # without {} a dict would be arguments by name
    shape = {k: list(v.shape) for k, v in x.items()} if isinstance(x, dict) else list(x.shape)
    model = {"model": timm_model(name)[0]} if source == "timm" else {}
    model["inplace"] = sorted({m.inplace for m in network.modules() if isinstance(getattr(m, "inplace", None), bool)})
    return {"name": f"{source} {name}", "parameters": count, "buffers": sum(b.nbytes for b in network.buffers()),
            "shape": shape, **model}


def in_a_process(base, kind, measure):
    """Writes BASE.KIND.json, or BASE.KIND.fail; what the measurement before leaves on the device would count."""
    if os.path.exists(f"{base}.{kind}.json") or os.path.exists(f"{base}.{kind}.fail"):
        return os.path.exists(f"{base}.{kind}.json")
    child = os.fork()
    if child == 0:
        signal.alarm(SECONDS.get(kind, 300))
        try:
            result = measure()
            with open(f"{base}.{kind}.json", "w") as file:
                json.dump(result, file)
        except BaseException:
            with open(f"{base}.{kind}.fail", "w") as file:
                traceback.print_exc(file=file)
            os._exit(1)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    if status and not os.path.exists(f"{base}.{kind}.fail"):
        with open(f"{base}.{kind}.fail", "w") as file:
            file.write(f"ended with status {status}\n")
    return status == 0


def measure(folder, source, names):
    import onnxscript  # noqa: F401 (here, so that not every process loads what takes longest)
    import torch  # noqa: F401
    os.makedirs(folder, exist_ok=True)
    for name in names:
        base = os.path.join(folder, default_exports.slug(f"{source} {name}"))
        kinds = {"export": lambda: export(base, source, name),
                 "kept": lambda: default_exports.kept(SOURCES[source][1](name)),
                 **{o: lambda o=o: default_exports.peak(SOURCES[source][1](name), o) for o in ("momentum", "adamw")}}
        failed = next((kind for kind, f in kinds.items() if not in_a_process(base, kind, f)), None)
        print(name, f"failed: {failed}" if failed else "measured", flush=True)


def export_older(base, source, name):
    import torch
    make, inputs = SOURCES[source][1](name)
    torch.manual_seed(0)
    torch.onnx.export(make().train(), (inputs("cpu"), {}), base + ".older.onnx", dynamo=False, do_constant_folding=False,
                      training=torch.onnx.TrainingMode.TRAINING)
    return {}


def older(folder):
    import onnxscript  # noqa: F401
    import torch  # noqa: F401
    for path in sorted(glob.glob(os.path.join(folder, "*.adamw.json"))):
        base = path[:-len(".adamw.json")]
        source, name = default_exports.read(base + ".export.json")["name"].split(" ", 1)
        done = in_a_process(base, "older", lambda base=base, source=source, name=name: export_older(base, source, name))
        print(name, "exported" if done else "failed", flush=True)


def predict(exe, path, *options):
    """Two predictions, momentum and AdamW, and the error of the program."""
    results = []
    for optimizer in ("momentum", "adamw"):
        run = subprocess.run([exe, path, "--train", optimizer, "--loss", "cross-entropy", "--attention", "math", *options,
                              "--json"], capture_output=True, text=True, check=False)
        if run.returncode != 0:
            return [], (run.stderr.strip().splitlines() or [f"status {run.returncode}"])[-1]
        results.append(json.loads(run.stdout)["models"][0])
    return results, ""


def is_recurrent(path, predicted):
    import onnx
    nodes = onnx.load(path, load_external_data=False).graph.node
    return (any(n.op_type in ("LSTM", "GRU", "RNN") for n in nodes) or
            any(d["code"] == "recurrent-reserve" for d in predicted["diagnostics"]))


def differences(predicted, measured, whole):
    """In percent: kept, peak with momentum, peak with AdamW."""
    key, of = ("requested_peak_bytes", "requested_peak") if whole else ("peak_bytes", "tensor_peak")
    pairs = [(predicted[0]["training"]["saved_activation_bytes"], measured[0]["saved"])]
    pairs += [(p["training"][key], m[of]) for p, m in zip(predicted, measured[1:])]
    return [100 * (p - m) / m if m else 0.0 for p, m in pairs]


def is_right(found):
    return abs(found[0]) <= 0.2 and abs(found[1]) <= 0.5 and abs(found[2]) <= 0.5


def options_of(warnings, exported):
    """What the warnings ask for, as whoever has the network knows it."""
    options = []
    if {"missing-parameters", "assumed-sizes", "assumed-parameter", "unlisted-parameters"} & set(warnings):
        options += ["--parameters", str(exported["parameters"])]
    if "missing-buffers" in warnings and exported.get("buffers"):
        options += ["--buffers", str(exported["buffers"])]
    if "relu-inplace" in warnings and exported.get("inplace") == [False]:
        options.append("--inplace=none")
    if "activation-inplace" in warnings and exported.get("inplace") == [True]:
        options.append("--inplace")
    if "attention-dropout" in warnings:
        options += ["--attention-dropout", "0.1"]
    return options


def cells(found):
    return " | ".join(f"{round(percent, 2) + 0.0:+.2f} %" for percent in found)


def table(folder, exe, ending):
    print("| network | kept | peak (momentum) | AdamW | with options that warnings name | warnings |\n"
          "|---|--:|--:|--:|---|---|")
    count = right = with_options = 0
    for path in sorted(glob.glob(os.path.join(folder, "*.export.json"))):
        base, exported = path[:-len(".export.json")], default_exports.read(path)
        measured = [default_exports.read(f"{base}.{kind}.json") for kind in ("kept", "momentum", "adamw")]
        if None in measured or not os.path.exists(base + ending):
            continue
        count += 1
        predicted, error = predict(exe, base + ending)
        if error:
            print(f"| {exported['name']} | {error} |")
            continue
        whole = is_recurrent(base + ending, predicted[1])
        found = differences(predicted, measured, whole)
        warnings = sorted({d["code"] for d in predicted[1]["diagnostics"]
                           if d["severity"] == "warning" or d["code"] == "unlisted-parameters"})
        options = options_of(warnings, exported)
        right, note = right + is_right(found), ""
        if not is_right(found) and options:
            again, error = predict(exe, base + ending, *options)
            note = error
            if not error:
                better = differences(again, measured, whole)
                with_options += is_right(better)
                note = f"{', '.join(f'{round(p, 2) + 0.0:+.2f}' for p in better)} with `{' '.join(options)}`"
        print(f"| {exported['name']} | {cells(found)} | {note} | {', '.join(warnings)} |", flush=True)
    print(f"\nRight: {right} of {count}, with the options {right + with_options}.")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="what", required=True)
    command = commands.add_parser("list")
    command.add_argument("source", choices=SOURCES)
    command = commands.add_parser("measure")
    command.add_argument("folder")
    command.add_argument("source", choices=SOURCES)
    command.add_argument("range", nargs="*", type=int, metavar="FROM TO")
    command.add_argument("--names", nargs="+")
    command = commands.add_parser("older")
    command.add_argument("folder")
    command = commands.add_parser("table")
    command.add_argument("folder")
    command.add_argument("--older", action="store_const", const=".older.onnx", default=".onnx", dest="ending")
    command.add_argument("--exe", default="onnxvram")
    arguments = parser.parse_args()
    if arguments.what == "table":
        table(arguments.folder, arguments.exe, arguments.ending)
        return
    if arguments.what == "older":
        older(arguments.folder)
        return
    names = by_digest(SOURCES[arguments.source][0]())
    if arguments.what == "list":
        for number, name in enumerate(names):
            print(number, name)
    elif arguments.names or len(arguments.range) == 2:
        measure(arguments.folder, arguments.source, arguments.names or names[slice(*arguments.range)])
    else:
        parser.error("measure needs FROM and TO, or --names")


if __name__ == "__main__":
    main()
