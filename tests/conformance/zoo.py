"""Architectures with small configurations and random weights, for scripts/conformance/models.py. Nothing is downloaded.

An architecture is (make, arguments, dims, bindings): make() gives a module that takes tensors and gives tensors;
dims has one {axis: name} per argument; bindings are the sizes at which ONNX Runtime runs the export.
"""
import dataclasses
from typing import Callable

import torch
import torchvision
from torch import nn
from torch.nn import functional as F

ZOO = {}


@dataclasses.dataclass
class Architecture:
    make: Callable[[], nn.Module]
    args: Callable[[], tuple]
    dims: tuple
    bindings: tuple


def add(name, make, args, dims, *bindings):
    ZOO[name] = Architecture(make, args, dims, bindings)


# --- torchvision ------------------------------------------------------------------------------------------------------

class Only(nn.Module):
    """The tensors of a result that may be a dictionary or a list of them."""

    def __init__(self, inner, listed=False):
        super().__init__()
        self.inner, self.listed = inner, listed

    def forward(self, x):
        result = self.inner([x] if self.listed else x)
        if isinstance(result, (list, tuple)):
            result = result[0] if self.listed else result[-1]
        return tuple(result.values()) if isinstance(result, dict) else result


def classifier(name, size=64, **options):
    make = getattr(torchvision.models, name)
    add(name, lambda: make(num_classes=10, **options), lambda: (torch.randn(2, 3, size, size),), ({0: "batch"},),
        {"batch": 1}, {"batch": 3})


classifier("alexnet", size=224)
for each in ("squeezenet1_1", "resnet18", "resnext50_32x4d", "densenet121", "mobilenet_v2",
             "mobilenet_v3_small", "shufflenet_v2_x1_0", "mnasnet0_5", "efficientnet_b0", "regnet_y_400mf",
             "convnext_tiny", "swin_t", "swin_v2_t"):
    classifier(each)
classifier("googlenet", aux_logits=False, init_weights=False)
classifier("inception_v3", size=299, aux_logits=False, init_weights=False)
classifier("vit_b_32", image_size=64)
ZOO["maxvit"] = Architecture(
    lambda: torchvision.models.MaxVit(input_size=(64, 64), stem_channels=16, partition_size=2, block_channels=[16, 32],
                                      block_layers=[1, 1], head_dim=8, stochastic_depth_prob=0.0, num_classes=10),
    lambda: (torch.randn(2, 3, 64, 64),), ({0: "batch"},), ({"batch": 1}, {"batch": 3}))

PICTURE = {0: "batch", 2: "height", 3: "width"}
for each in ("fcn_resnet50", "deeplabv3_mobilenet_v3_large", "lraspp_mobilenet_v3_large"):
    make_one = getattr(torchvision.models.segmentation, each)
    add(each, lambda make_one=make_one: Only(make_one(weights=None, weights_backbone=None, num_classes=4)),
        lambda: (torch.randn(2, 3, 64, 96),), (PICTURE,), {"batch": 1, "height": 64, "width": 96},
        {"batch": 2, "height": 97, "width": 130})
for each in ("fasterrcnn_mobilenet_v3_large_320_fpn", "ssdlite320_mobilenet_v3_large", "retinanet_resnet50_fpn",
             "fcos_resnet50_fpn", "maskrcnn_resnet50_fpn"):
    make_one = getattr(torchvision.models.detection, each)
    size = {} if "320" in each else {"min_size": 128, "max_size": 160}
    add(each, lambda make_one=make_one, size=size: Only(
        make_one(weights=None, weights_backbone=None, num_classes=4, **size), listed=True),
        lambda: (torch.rand(3, 128, 128),), ({1: "height", 2: "width"},), {"height": 128, "width": 128},
        {"height": 96, "width": 144})
add("r3d_18", lambda: torchvision.models.video.r3d_18(num_classes=10), lambda: (torch.randn(2, 3, 8, 32, 32),),
    ({0: "batch", 2: "frames"},), {"batch": 1, "frames": 8}, {"batch": 2, "frames": 5})


# --- transformers -----------------------------------------------------------------------------------------------------

class Tensors(nn.Module):
    """A transformers model called by keyword; its tensors as a tuple."""

    def __init__(self, inner, names, **fixed):
        super().__init__()
        self.inner, self.names, self.fixed = inner, names, fixed

    def forward(self, *args):
        result = self.inner(**dict(zip(self.names, args)), **self.fixed)
        return tuple(value for value in result.to_tuple() if isinstance(value, torch.Tensor))


TEXT = {0: "batch", 1: "sequence"}
SMALL = {"vocab_size": 256, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
         "intermediate_size": 128, "max_position_embeddings": 128}


def hf(name, kind, config, config_kind, args, dims, bindings, names, **fixed):
    def make():
        import transformers
        settings = getattr(transformers, config_kind)(**config)
        settings._attn_implementation = "eager"
        return Tensors(getattr(transformers, kind)(settings), names, **fixed)
    add(name, make, args, dims, *bindings)


def tokens(*shape):
    return torch.ones(*shape, dtype=torch.int64)


def text(name, prefix, kind="Model", **config):
    hf(name, f"{prefix}{kind}", SMALL | config, f"{prefix}Config", lambda: (tokens(2, 9), tokens(2, 9)), (TEXT, TEXT),
       ({"batch": 1, "sequence": 16}, {"batch": 3, "sequence": 7}), ("input_ids", "attention_mask"),
       **({"use_cache": False} if kind == "ForCausalLM" else {}))


def picture(name, prefix, kind="ForImageClassification", **config):
    hf(name, f"{prefix}{kind}", config, f"{prefix}Config", lambda: (torch.randn(2, 3, 64, 64),), ({0: "batch"},),
       ({"batch": 1}, {"batch": 3}), ("pixel_values",))


text("bert", "Bert")
text("distilbert", "DistilBert", dim=64, n_layers=2, n_heads=4, hidden_dim=128)
text("roberta", "Roberta", pad_token_id=0)
text("albert", "Albert", embedding_size=32)
text("electra", "Electra", embedding_size=32)
text("deberta_v2", "DebertaV2", relative_attention=True, pos_att_type=["p2c", "c2p"])
text("gpt2", "GPT2", "LMHeadModel", n_embd=64, n_layer=2, n_head=4, n_positions=128, use_cache=False)
text("opt", "OPT", "ForCausalLM", ffn_dim=128, word_embed_proj_dim=64)
text("bloom", "Bloom", "ForCausalLM", n_layer=2, n_head=4)
text("llama", "Llama", "ForCausalLM", num_key_value_heads=2)
text("mistral", "Mistral", "ForCausalLM", num_key_value_heads=2, sliding_window=8, head_dim=16)
text("qwen2", "Qwen2", "ForCausalLM", num_key_value_heads=2)
text("gemma", "Gemma", "ForCausalLM", num_key_value_heads=1, head_dim=16)
text("phi", "Phi", "ForCausalLM")
text("gpt_neox", "GPTNeoX", "ForCausalLM")
SEQ2SEQ = ({0: "batch", 1: "source"}, {0: "batch", 1: "target"})
SEQ2SEQ_SIZES = ({"batch": 1, "source": 16, "target": 1}, {"batch": 3, "source": 7, "target": 5})
for each, prefix, extra in (
        ("t5", "T5", {"d_model": 64, "d_kv": 16, "d_ff": 128, "num_layers": 2, "num_heads": 4}),
        ("bart", "Bart", {"d_model": 64, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
                          "decoder_attention_heads": 4, "encoder_ffn_dim": 128, "decoder_ffn_dim": 128})):
    hf(each, f"{prefix}ForConditionalGeneration", {"vocab_size": 256} | extra, f"{prefix}Config",
       lambda: (tokens(2, 9), tokens(2, 4)), SEQ2SEQ, SEQ2SEQ_SIZES, ("input_ids", "decoder_input_ids"),
       use_cache=False)
hf("whisper", "WhisperForConditionalGeneration",
   {"vocab_size": 256, "d_model": 64, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "encoder_ffn_dim": 128, "decoder_ffn_dim": 128, "max_source_positions": 50,
    "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1}, "WhisperConfig",
   lambda: (torch.randn(2, 80, 100), tokens(2, 4)), ({0: "batch"}, {0: "batch", 1: "target"}),
   ({"batch": 1, "target": 1}, {"batch": 3, "target": 5}), ("input_features", "decoder_input_ids"), use_cache=False)
hf("wav2vec2", "Wav2Vec2Model", {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
                                 "intermediate_size": 128, "conv_dim": [32] * 7, "num_conv_pos_embedding_groups": 4,
                                 "num_conv_pos_embeddings": 16}, "Wav2Vec2Config",
   lambda: (torch.randn(2, 4000),), ({0: "batch", 1: "samples"},),
   ({"batch": 1, "samples": 4000}, {"batch": 2, "samples": 5001}), ("input_values",))
hf("clip", "CLIPModel",
   {"text_config": {"vocab_size": 256, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
                    "intermediate_size": 128, "bos_token_id": 0, "eos_token_id": 1},
    "vision_config": {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128,
                      "image_size": 64, "patch_size": 16}, "projection_dim": 32}, "CLIPConfig",
   lambda: (tokens(2, 9), torch.randn(3, 3, 64, 64)), ({0: "texts", 1: "sequence"}, {0: "batch"}),
   ({"texts": 1, "sequence": 16, "batch": 2}, {"texts": 4, "sequence": 7, "batch": 3}), ("input_ids", "pixel_values"))
VIT = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128, "image_size": 64,
       "patch_size": 16, "num_labels": 10}
picture("vit", "ViT", **VIT)
picture("deit", "DeiT", **VIT)
picture("beit", "Beit", **VIT, use_relative_position_bias=True, out_indices=[1, 2], vocab_size=16)
picture("segformer", "Segformer", "ForSemanticSegmentation", depths=[1, 1, 1, 1], hidden_sizes=[16, 32, 48, 64],
        decoder_hidden_size=32, num_labels=5)
picture("mobilevit", "MobileViT", hidden_sizes=[32, 48, 64], neck_hidden_sizes=[8, 16, 24, 32, 40, 64, 96],
        num_attention_heads=4, num_labels=10, image_size=64)
picture("dinov2", "Dinov2", **VIT)
picture("convnextv2", "ConvNextV2", hidden_sizes=[16, 24, 32, 48], depths=[1, 1, 2, 1], num_labels=10)


# --- plain torch ------------------------------------------------------------------------------------------------------

class Residual(nn.Module):
    """The block of diffusion models: two convolutions, the embedded time step between them."""

    def __init__(self, inputs, outputs, time):
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(8, inputs), nn.GroupNorm(8, outputs)
        self.conv1 = nn.Conv2d(inputs, outputs, 3, padding=1)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1)
        self.time = nn.Linear(time, outputs)
        self.skip = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x, t):
        h = self.conv1(F.silu(self.norm1(x))) + self.time(F.silu(t))[:, :, None, None]
        return self.skip(x) + self.conv2(F.silu(self.norm2(h)))


class Attention(nn.Module):
    def __init__(self, width, context, heads=4):
        super().__init__()
        self.heads = heads
        self.q, self.out = nn.Linear(width, width), nn.Linear(width, width)
        self.k, self.v = nn.Linear(context, width), nn.Linear(context, width)

    def split(self, x):
        return x.view(x.shape[0], x.shape[1], self.heads, -1).transpose(1, 2)

    def forward(self, x, context):
        h = F.scaled_dot_product_attention(self.split(self.q(x)), self.split(self.k(context)),
                                           self.split(self.v(context)))
        return self.out(h.transpose(1, 2).flatten(2))


class SpatialAttention(nn.Module):
    def __init__(self, width, context):
        super().__init__()
        self.norm = nn.GroupNorm(8, width)
        self.own, self.cross = Attention(width, width), Attention(width, context)

    def forward(self, x, context):
        batch, width, height, length = x.shape
        h = self.norm(x).flatten(2).transpose(1, 2)
        h = h + self.own(h, h)
        h = h + self.cross(h, context)
        return x + h.transpose(1, 2).reshape(batch, width, height, length)


class DiffusionUNet(nn.Module):
    """The U-Net of latent diffusion in small: time embedding, cross-attention, nearest upsampling."""

    def __init__(self, width=32, context=48):
        super().__init__()
        self.width = width
        self.time = nn.Sequential(nn.Linear(width, 64), nn.SiLU(), nn.Linear(64, 64))
        self.stem = nn.Conv2d(4, width, 3, padding=1)
        self.down1, self.attend1 = Residual(width, width, 64), SpatialAttention(width, context)
        self.shrink = nn.Conv2d(width, width, 3, stride=2, padding=1)
        self.middle, self.attend2 = Residual(width, 2 * width, 64), SpatialAttention(2 * width, context)
        self.grow = nn.Conv2d(2 * width, width, 3, padding=1)
        self.up1 = Residual(2 * width, width, 64)
        self.head = nn.Conv2d(width, 4, 3, padding=1)

    def forward(self, x, step, context):
        half = self.width // 2
        rates = torch.exp(-9.2 * torch.arange(half, dtype=torch.float32) / half)
        angles = step[:, None].float() * rates[None]
        t = self.time(torch.cat([angles.cos(), angles.sin()], dim=-1))
        first = self.attend1(self.down1(self.stem(x), t), context)
        h = self.attend2(self.middle(self.shrink(first), t), context)
        h = self.grow(F.interpolate(h, size=first.shape[-2:], mode="nearest"))
        return self.head(self.up1(torch.cat([h, first], dim=1), t))


class Vae(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.encoder = nn.Sequential(nn.Conv2d(3, width, 3, padding=1), nn.SiLU(),
                                     nn.Conv2d(width, 2 * width, 3, stride=2, padding=1), nn.SiLU(),
                                     nn.Conv2d(2 * width, 8, 3, stride=2, padding=1))
        self.decoder = nn.Sequential(nn.ConvTranspose2d(4, 2 * width, 4, stride=2, padding=1), nn.SiLU(),
                                     nn.Upsample(scale_factor=2.0), nn.Conv2d(2 * width, 3, 3, padding=1))

    def forward(self, x):
        mean, scale = self.encoder(x).chunk(2, dim=1)
        return self.decoder(mean + torch.randn_like(mean) * torch.exp(0.5 * scale)), mean


class Recurrent(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.embed = nn.Embedding(256, 32)
        self.cells = kind(32, 48, num_layers=2, bidirectional=True, batch_first=True)
        self.head = nn.Linear(96, 10)

    def forward(self, words):
        return self.head(self.cells(self.embed(words))[0]).log_softmax(-1)


class Separable(nn.Module):
    """Spectrogram-like front end: unfold, windows, gated convolutions over time."""

    def __init__(self):
        super().__init__()
        self.project = nn.Linear(64, 48)
        self.gates = nn.ModuleList(nn.Conv1d(48, 96, 3, padding=d, dilation=d) for d in (1, 2, 4))

    def forward(self, wave):
        frames = wave.unfold(1, 64, 32)
        h = self.project(frames * torch.hann_window(64)).transpose(1, 2)
        for gate in self.gates:
            h = h + F.glu(gate(h), dim=1)
        return h.mean(dim=2), h.amax(dim=2)


add("diffusion_unet", DiffusionUNet, lambda: (torch.randn(2, 4, 16, 24), tokens(2), torch.randn(2, 7, 48)),
    (PICTURE, {0: "batch"}, {0: "batch", 1: "words"}), {"batch": 1, "height": 16, "width": 16, "words": 7},
    {"batch": 2, "height": 18, "width": 23, "words": 5})
add("vae", Vae, lambda: (torch.randn(2, 3, 32, 48),), (PICTURE,), {"batch": 1, "height": 32, "width": 32},
    {"batch": 2, "height": 36, "width": 52})
add("lstm", lambda: Recurrent(nn.LSTM), lambda: (tokens(2, 9),), (TEXT,), {"batch": 1, "sequence": 16},
    {"batch": 3, "sequence": 7})
add("gru", lambda: Recurrent(nn.GRU), lambda: (tokens(2, 9),), (TEXT,), {"batch": 1, "sequence": 16},
    {"batch": 3, "sequence": 7})
add("transformer", lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(64, 4, 128, batch_first=True), 2),
    lambda: (torch.randn(2, 9, 64),), (TEXT,), {"batch": 1, "sequence": 16}, {"batch": 3, "sequence": 7})
add("separable", Separable, lambda: (torch.randn(2, 640),), ({0: "batch", 1: "samples"},),
    {"batch": 1, "samples": 640}, {"batch": 2, "samples": 1000})
