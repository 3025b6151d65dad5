#!/usr/bin/env python3
"""A batch changed by the program against the same network exported with that batch.

    rebatch.py export DIR [--names NAME,...] [--exporter dynamo|torchscript] [--set small|real|fresh|drawn]
    rebatch.py compare DIR --onnxvram PROGRAM [--json FILE] [-- OPTION...]

`export` writes DIR/NAME.EXPORTER.bN.onnx for every batch N (needs torch; the networks of libraries timm, torchvision,
transformers, diffusers and segmentation_models_pytorch). `compare` analyses the exports of batch 1 and 4 with --batch 7
and 8, and those of batch 7 and 8 as they are:

    equal    every tensor and every peak
    refused  exit status 2, with the node and the remedy
    noted    a difference of which a diagnostic warns
    WRONG    anything else
"""
import argparse
import collections
import json
import pathlib
import subprocess
import sys

FROM, TO = (1, 4), (7, 8)


# --- networks ---------------------------------------------------------------------------------------------------------

def small_networks():
    """Networks whose code uses the batch: name -> function of the batch that gives module and inputs."""
    import torch
    from torch import nn
    import torch.nn.functional as F

    class Net(nn.Module):
        def __init__(self, batch, forward, *inputs, **layers):
            super().__init__()
            self.batch, self.run, self.inputs = batch, forward, inputs
            for name, layer in layers.items():
                setattr(self, name, layer)

        def forward(self, *inputs):
            return self.run(self, *inputs)

    def chunk_by_config(b):
        def run(net, x):
            return torch.cat([net.fc(part) for part in x.chunk(2)])
        return Net(b, run, torch.rand(b, 6, 16), fc=nn.Linear(16, 16))

    def split_by_sample(b):
        def run(net, x):
            return torch.stack([net.fc(part) for part in x.unbind(0)])
        return Net(b, run, torch.rand(b, 6, 16), fc=nn.Linear(16, 16))

    def contrastive(b):
        def run(net, x, y):
            a, c = F.normalize(net.a(x), dim=-1), F.normalize(net.c(y), dim=-1)
            return F.cross_entropy(a @ c.t() * 10, torch.arange(x.shape[0]))
        return Net(b, run, torch.rand(b, 16), torch.rand(b, 16), a=nn.Linear(16, 8), c=nn.Linear(16, 8))

    def contrastive_masked(b):
        def run(net, x):
            z = net.a(x)
            near = z @ z.t()
            return near.masked_fill(torch.eye(x.shape[0], dtype=torch.bool), -1e4).softmax(-1)
        return Net(b, run, torch.rand(b, 16), a=nn.Linear(16, 8))

    def contrastive_pairs(b):
        def run(net, x, y):
            return net.a(x) @ net.a(y).t()
        return Net(b, run, torch.rand(b, 16), torch.rand(2 * b, 16), a=nn.Linear(16, 8))

    def dual_static_inputs(b):
        def run(net, image, text):
            return net.image(image).mean((2, 3)) + net.text(text).mean(1)
        return Net(b, run, torch.rand(b, 3, 16, 16), torch.zeros(b, 9, dtype=torch.int64),
                   image=nn.Conv2d(3, 16, 3), text=nn.Embedding(50, 16))

    def state_as_input(b):
        def run(net, x, state):
            return net.gru(x, state)[0]
        return Net(b, run, torch.rand(b, 5, 8), torch.rand(1, b, 8), gru=nn.GRU(8, 8, batch_first=True))

    def attention(width, heads, length):
        def make(b):
            def run(net, x):
                n, t, c = x.shape
                q, k, v = net.qkv(x).reshape(n, t, 3, heads, c // heads).permute(2, 0, 3, 1, 4).unbind(0)
                y = (q @ k.transpose(-2, -1)).softmax(-1) @ v
                return net.out(y.transpose(1, 2).reshape(n, t, c))
            return Net(b, run, torch.rand(b, length, width), qkv=nn.Linear(width, 3 * width), out=nn.Linear(width, width))
        return make

    def heads_first(heads, length):
        def make(b):
            def run(net, x):
                n, t, c = x.shape
                y = net.q(x).view(n, t, heads, c // heads).permute(2, 0, 1, 3).reshape(heads * n, t, c // heads)
                y = (y @ y.transpose(1, 2)).softmax(-1) @ y
                return y.view(heads, n, t, c // heads).permute(1, 2, 0, 3).reshape(n, t, c)
            return Net(b, run, torch.rand(b, length, 16), q=nn.Linear(16, 16))
        return make

    def channels_equal(b):
        def run(net, x):
            y = net.conv(x)
            return net.fc(y.view(x.shape[0], 4, -1)).reshape(x.shape[0], -1)
        return Net(b, run, torch.rand(b, 4, 8, 8), conv=nn.Conv2d(4, 4, 3, padding=1), fc=nn.Linear(64, 4))

    def windows_equal(b):
        def run(net, x):
            n, h, w, c = x.shape
            y = x.view(n, h // 4, 4, w // 4, 4, c).permute(0, 1, 3, 2, 4, 5).reshape(-1, 16, c)
            y = net.fc(y).view(n, h // 4, w // 4, 4, 4, c).permute(0, 1, 3, 2, 4, 5).reshape(n, h, w, c)
            return y
        return Net(b, run, torch.rand(b, 16, 16, 4), fc=nn.Linear(4, 4))

    def mask_expand(heads, length):
        def make(b):
            def run(net, x, mask):
                n, t, c = x.shape
                bias = (1.0 - mask[:, None, None, :].expand(n, heads, t, t)) * -1e4
                q = net.q(x).view(n, t, heads, -1).transpose(1, 2)
                return ((q @ q.transpose(-2, -1) + bias).softmax(-1) @ q).transpose(1, 2).reshape(n, t, c)
            return Net(b, run, torch.rand(b, length, 16), torch.ones(b, length), q=nn.Linear(16, 16))
        return make

    def one_hot(classes):
        def make(b):
            def run(net, x, labels):
                hot = F.one_hot(labels, classes).float()
                return net.fc(x) * hot
            return Net(b, run, torch.rand(b, 16), torch.zeros(b, dtype=torch.int64), fc=nn.Linear(16, classes))
        return make

    def one_hot_of_samples(b):
        def run(net, x):
            return net.fc(x) + F.one_hot(torch.arange(x.shape[0]) % 3, 3).float()
        return Net(b, run, torch.rand(b, 16), fc=nn.Linear(16, 3))

    def pad_and_shift(b):
        def run(net, tokens):
            start = torch.zeros(tokens.shape[0], 1, dtype=tokens.dtype)
            return net.emb(torch.cat([start, tokens[:, :-1]], 1))
        return Net(b, run, torch.zeros(b, 6, dtype=torch.int64), emb=nn.Embedding(20, 8))

    def pad_and_shift_in_place(b):
        def run(net, tokens):
            shifted = tokens.new_zeros(tokens.shape)
            shifted[:, 1:] = tokens[:, :-1].clone()
            shifted[:, 0] = 3
            return net.emb(shifted)
        return Net(b, run, torch.zeros(b, 6, dtype=torch.int64), emb=nn.Embedding(20, 8))

    def position_ids(b):
        def run(net, tokens):
            n, t = tokens.shape
            places = torch.arange(t).unsqueeze(0).expand(n, t)
            return net.fc(net.emb(tokens) + net.pos(places))
        return Net(b, run, torch.zeros(b, 6, dtype=torch.int64), emb=nn.Embedding(20, 8), pos=nn.Embedding(10, 8),
                   fc=nn.Linear(8, 8))

    def arange_to_float(b):
        def run(net, x):
            return net.fc(x * torch.arange(x.shape[0]).float().view(-1, 1))
        return Net(b, run, torch.rand(b, 16), fc=nn.Linear(16, 8))

    def arange_of_batch_in_width(b):
        def run(net, x):
            return net.fc(x)[:, :x.shape[0]]
        return Net(b, run, torch.rand(b, 16), fc=nn.Linear(16, 16))

    def roll(b):
        def run(net, x):
            return net.fc(x) * net.fc(torch.roll(x, 1, 0))
        return Net(b, run, torch.rand(b, 16), fc=nn.Linear(16, 8))

    def roll_of_windows(b):
        def run(net, x):
            return net.fc(torch.roll(x, (-2, -2), (1, 2)))
        return Net(b, run, torch.rand(b, 4, 4, 4), fc=nn.Linear(4, 4))

    def slice_ends(b):
        def run(net, x):
            n = x.shape[0]
            return net.fc(x[1:n] - x[0:n - 1])
        return Net(b, run, torch.rand(b, 16) if b > 1 else torch.rand(2, 16), fc=nn.Linear(16, 8))

    def slice_half(b):
        def run(net, x):
            n = max(x.shape[0] // 2, 1)
            return net.fc(x[:n])
        return Net(b, run, torch.rand(b, 16), fc=nn.Linear(16, 8))

    def slice_whole(b):
        def run(net, x):
            y = net.fc(x)
            return y[:x.shape[0]].relu()
        return Net(b, run, torch.rand(b, 16), fc=nn.Linear(16, 8))

    def positions_by_batch(b):
        def run(net, x):
            return net.fc(x + net.pe[:x.shape[0]])
        return Net(b, run, torch.rand(b, 6, 16), fc=nn.Linear(16, 8), pe=nn.Parameter(torch.rand(32, 1, 16)))

    def stacked_constants(b):
        def run(net, x):
            means = torch.stack([torch.tensor([0.1, 0.2, 0.3])] * x.shape[0]).view(-1, 3, 1, 1)
            return net.conv(x - means)
        return Net(b, run, torch.rand(b, 3, 8, 8), conv=nn.Conv2d(3, 4, 3))

    def zeros_state(kind):
        def make(b):
            def run(net, x):
                zeros = torch.zeros(1, x.shape[0], 8)
                return net.rnn(x, (zeros, zeros) if kind is nn.LSTM else zeros)[0]
            return Net(b, run, torch.rand(b, 5, 8), rnn=kind(8, 8, batch_first=True))
        return make

    def own_state(kind):
        def make(b):
            def run(net, x):
                return net.rnn(x)[0]
            return Net(b, run, torch.rand(b, 5, 8), rnn=kind(8, 8, num_layers=2, bidirectional=True, batch_first=True))
        return make

    def cell_state(b):
        def run(net, x):
            h = torch.zeros(x.shape[0], 8)
            c = x.new_zeros(x.shape[0], 8)
            for t in range(3):
                h, c = net.cell(x[:, t], (h, c))
            return h
        return Net(b, run, torch.rand(b, 5, 8), cell=nn.LSTMCell(8, 8))

    def expand_by_matmul(b):
        def run(net, x):
            return net.fc(x + torch.ones(x.shape[0], 1) @ net.token)
        return Net(b, run, torch.rand(b, 16), fc=nn.Linear(16, 8), token=nn.Parameter(torch.rand(1, 16)))

    def class_token(b):
        def run(net, x):
            y = torch.cat([net.token.expand(x.shape[0], -1, -1), x], 1)
            return net.fc(y)
        return Net(b, run, torch.rand(b, 6, 16), fc=nn.Linear(16, 8), token=nn.Parameter(torch.rand(1, 1, 16)))

    def queries(b):
        def run(net, x):
            q = net.q.weight.unsqueeze(0).repeat(x.shape[0], 1, 1)
            return net.fc((q @ x.transpose(1, 2)).softmax(-1) @ x)
        return Net(b, run, torch.rand(b, 6, 16), fc=nn.Linear(16, 8), q=nn.Embedding(4, 16))

    def queries_relu(b):
        def run(net, x):
            q = net.fc(net.q.weight.unsqueeze(1).repeat(1, x.shape[0], 1)).relu().transpose(0, 1)
            return (q @ x.transpose(1, 2)).softmax(-1) @ x
        return Net(b, run, torch.rand(b, 6, 16), fc=nn.Linear(16, 16), q=nn.Embedding(4, 16))

    def resize(b):
        def run(net, x):
            y = net.down(x)
            return F.interpolate(y, size=x.shape[2:], mode="bilinear") + x
        return Net(b, run, torch.rand(b, 4, 8, 8), down=nn.Conv2d(4, 4, 2, 2))

    def anchors(b):
        def run(net, x):
            y = net.head(x)
            n, _, h, w = y.shape
            y = y.view(n, 3, 6, h, w).permute(0, 1, 3, 4, 2)
            rows, columns = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
            grid = torch.stack([columns, rows], 2).view(1, 1, h, w, 2).expand(n, 3, h, w, 2).float()
            boxes = (y[..., :2].sigmoid() + grid) * 8
            return torch.cat([boxes, y[..., 2:]], -1).view(n, -1, 6)
        return Net(b, run, torch.rand(b, 3, 32, 32), head=nn.Conv2d(3, 18, 8, 8))

    def pixel_shuffle(b):
        def run(net, x):
            return F.pixel_shuffle(net.conv(x), 2)
        return Net(b, run, torch.rand(b, 4, 4, 4), conv=nn.Conv2d(4, 16, 3, padding=1))

    def group_norm(b):
        def run(net, x):
            return F.group_norm(net.conv(x), 4)
        return Net(b, run, torch.rand(b, 4, 4, 4), conv=nn.Conv2d(4, 8, 3, padding=1))

    def batch_by_batch(b):
        def run(net, x):
            y = net.fc(x).reshape(-1, 4)
            return y.view(x.shape[0], -1)
        return Net(b, run, torch.rand(b, 4, 4), fc=nn.Linear(4, 4))

    def statistics_of_batch(b):
        def run(net, x):
            y = net.fc(x)
            spread = (y - y.mean(0, keepdim=True)).std(0, keepdim=True)
            return torch.cat([y, spread.expand(x.shape[0], -1)], 1)
        return Net(b, run, torch.rand(max(b, 2), 16) if b == 1 else torch.rand(b, 16), fc=nn.Linear(16, 8))

    def topk_of_batch(b):
        def run(net, x):
            return net.fc(x).flatten().topk(x.shape[0]).values
        return Net(b, run, torch.rand(b, 16), fc=nn.Linear(16, 8))

    def gather_last(b):
        def run(net, x, lengths):
            y = net.fc(x)
            return y[torch.arange(x.shape[0]), lengths]
        return Net(b, run, torch.rand(b, 6, 16), torch.zeros(b, dtype=torch.int64), fc=nn.Linear(16, 8))

    def token_expand_mask(b):
        def run(net, x):
            t = x.shape[1]
            mask = torch.tril(torch.ones(t, t)).view(1, 1, t, t).expand(x.shape[0], 1, t, t)
            q = net.q(x).view(x.shape[0], t, 2, 8).transpose(1, 2)
            near = (q @ q.transpose(-2, -1)).masked_fill(mask == 0, -1e4)
            return near.softmax(-1) @ q
        return Net(b, run, torch.rand(b, 6, 16), q=nn.Linear(16, 16))

    def sample_noise(b):
        def run(net, x):
            return net.fc(x + torch.randn(x.shape))
        return Net(b, run, torch.rand(b, 16), fc=nn.Linear(16, 8))

    def merged_mean(b):
        def run(net, x):
            n, t, c = x.shape
            return net.fc(x.reshape(n * t, c)).view(n, t, 8).sum() / n
        return Net(b, run, torch.rand(b, 6, 16), fc=nn.Linear(16, 8))

    return {
        "chunk_by_config": chunk_by_config, "split_by_sample": split_by_sample, "contrastive": contrastive,
        "contrastive_masked": contrastive_masked, "contrastive_pairs": contrastive_pairs,
        "dual_static_inputs": dual_static_inputs, "state_as_input": state_as_input,
        "equal_heads": attention(16, 4, 6), "equal_heads_length": attention(16, 4, 4), "equal_all": attention(4, 4, 4),
        "heads_first": heads_first(2, 6), "heads_first_equal": heads_first(4, 6), "heads_first_all": heads_first(4, 4),
        "channels_equal": channels_equal, "windows_equal": windows_equal, "mask_expand": mask_expand(2, 6),
        "mask_expand_equal": mask_expand(4, 4), "one_hot": one_hot(10), "one_hot_equal": one_hot(4),
        "one_hot_of_samples": one_hot_of_samples, "pad_and_shift": pad_and_shift,
        "pad_and_shift_in_place": pad_and_shift_in_place, "position_ids": position_ids, "arange_to_float": arange_to_float,
        "slice_of_width": arange_of_batch_in_width, "roll": roll, "roll_of_windows": roll_of_windows,
        "slice_ends": slice_ends, "slice_half": slice_half, "slice_whole": slice_whole,
        "positions_by_batch": positions_by_batch, "stacked_constants": stacked_constants,
        "zeros_state_lstm": zeros_state(nn.LSTM), "zeros_state_gru": zeros_state(nn.GRU),
        "own_state_lstm": own_state(nn.LSTM), "own_state_rnn": own_state(nn.RNN), "cell_state": cell_state,
        "expand_by_matmul": expand_by_matmul, "class_token": class_token, "queries": queries,
        "queries_relu": queries_relu, "resize": resize, "anchors": anchors, "pixel_shuffle": pixel_shuffle,
        "group_norm": group_norm, "batch_by_batch": batch_by_batch, "statistics_of_batch": statistics_of_batch,
        "topk_of_batch": topk_of_batch, "gather_last": gather_last, "token_expand_mask": token_expand_mask,
        "sample_noise": sample_noise, "merged_mean": merged_mean,
    }


def real_networks():
    """Small configurations of networks of libraries."""
    import torch
    from torch import nn

    class Wrapped(nn.Module):
        def __init__(self, network, key, inputs, names=()):
            super().__init__()
            self.network, self.key, self.inputs, self.names = network, key, inputs, names

        def forward(self, *inputs):
            plain = inputs[:len(inputs) - len(self.names)]
            named = dict(zip(self.names, inputs[len(plain):]))
            result = self.network(*plain, **named)
            return result if self.key is None else result[self.key]

    def image(size):
        return lambda b: (torch.rand(b, 3, size, size),)

    def tokens(length):
        return lambda b: (torch.ones(b, length, dtype=torch.int64),)

    def library(make, inputs, key=None, names=()):
        return lambda b: Wrapped(make(), key, inputs(b), names)

    def hugging(model, config, inputs, key, names, **options):
        def make():
            import transformers
            network = getattr(transformers, model)(getattr(transformers, config)(**options))
            network.config.use_cache = False
            return network
        return library(make, inputs, key, names)

    def swin():
        import torchvision.models as models
        return models.SwinTransformer([4, 4], 24, [2, 2], [2, 4], [4, 4], num_classes=10)

    def vit():
        import torchvision.models as models
        return models.VisionTransformer(32, 8, 2, 4, 32, 64, num_classes=10)

    def unet():
        import segmentation_models_pytorch as smp
        return smp.Unet("resnet18", encoder_weights=None)

    def lraspp():
        import torchvision.models.segmentation as models
        return models.lraspp_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=4)

    def timm_model(name):
        def make():
            import timm
            return timm.create_model(name, pretrained=False, num_classes=10)
        return make

    def detr():
        import transformers
        backbone = transformers.ResNetConfig(embedding_size=8, hidden_sizes=[8, 16, 16, 32], depths=[1, 1, 1, 1],
                                             layer_type="basic", out_features=["stage4"])
        config = transformers.DetrConfig(use_timm_backbone=False, use_pretrained_backbone=False, backbone=None,
                                         backbone_config=backbone, d_model=32, encoder_layers=1, decoder_layers=1,
                                         encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=64,
                                         decoder_ffn_dim=64, num_queries=10)
        return transformers.DetrForObjectDetection(config)

    def language_model():
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.emb, self.rnn = nn.Embedding(50, 16), nn.LSTM(16, 16, 2, batch_first=True)
                self.out = nn.Linear(16, 50)

            def forward(self, x):
                state = torch.zeros(2, x.shape[0], 16)
                return self.out(self.rnn(self.emb(x), (state, state))[0])
        return Model()

    def speech(b):
        return torch.rand(b, 16, 64), torch.ones(b, 6, dtype=torch.int64)

    def pairs(length):
        return lambda b: (torch.ones(b, length, dtype=torch.int64), torch.ones(b, length, dtype=torch.int64))

    def clip_inputs(b):
        return torch.ones(b, 8, dtype=torch.int64), torch.rand(b, 3, 32, 32), torch.ones(b, 8, dtype=torch.int64)

    return {
        "vit": library(vit, image(32)), "swin": library(swin, image(64)), "unet": library(unet, image(64)),
        "lraspp": library(lraspp, image(64), "out"), "mobilevit": library(timm_model("mobilevit_xxs"), image(64)),
        "convnext": library(timm_model("convnext_atto"), image(64)), "lstm": library(language_model, tokens(12)),
        "detr": library(detr, image(64), "logits"),
        "bert": hugging("BertModel", "BertConfig", pairs(12), "last_hidden_state", ("input_ids", "attention_mask"),
                        vocab_size=50, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64),
        "gpt2": hugging("GPT2LMHeadModel", "GPT2Config", tokens(12), "logits", ("input_ids",), vocab_size=50,
                        n_embd=32, n_layer=2, n_head=4),
        "t5": hugging("T5ForConditionalGeneration", "T5Config", pairs(12), "logits", ("input_ids", "decoder_input_ids"),
                      vocab_size=50, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4),
        "whisper": hugging("WhisperForConditionalGeneration", "WhisperConfig", speech, "logits",
                           ("input_features", "decoder_input_ids"), vocab_size=50, d_model=32, encoder_layers=1,
                           decoder_layers=1, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=64,
                           decoder_ffn_dim=64, num_mel_bins=16, max_source_positions=32, max_target_positions=16,
                           pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1),
        "clip": hugging("CLIPModel", "CLIPConfig", clip_inputs, "logits_per_image",
                        ("input_ids", "pixel_values", "attention_mask"),
                        text_config=dict(vocab_size=50, hidden_size=32, intermediate_size=64, num_hidden_layers=1,
                                         num_attention_heads=4, max_position_embeddings=8, eos_token_id=2),
                        vision_config=dict(hidden_size=32, intermediate_size=64, num_hidden_layers=1,
                                           num_attention_heads=4, image_size=32, patch_size=8), projection_dim=16),
    }


def fresh_networks():
    """Networks that the rules were not made with: listed before any was exported, and none left out since."""
    import torch
    from torch import nn

    class Wrapped(nn.Module):
        def __init__(self, network, key, *inputs):
            super().__init__()
            self.network, self.key, self.inputs = network, key, inputs

        def forward(self, *inputs):
            result = self.network(*inputs)
            return result if self.key is None else getattr(result, self.key)

    def image(*shape):
        return lambda b: (torch.rand(b, *shape),)

    def tokens(length):
        return lambda b: (torch.ones(b, length, dtype=torch.int64),)

    def build(make, inputs, key=None):
        return lambda b: Wrapped(make(), key, *inputs(b))

    def hugging(model, config, inputs, key, **options):
        def make():
            import transformers
            return getattr(transformers, model)(getattr(transformers, config)(**options))
        return build(make, inputs, key)

    def mixer():
        from timm.models.mlp_mixer import MlpMixer
        return MlpMixer(num_classes=10, img_size=32, patch_size=8, num_blocks=2, embed_dim=32)

    def cait():
        from timm.models.cait import Cait
        return Cait(img_size=32, patch_size=8, num_classes=10, embed_dim=32, depth=2, num_heads=4)

    def xcit():
        from timm.models.xcit import Xcit
        return Xcit(img_size=32, patch_size=8, num_classes=10, embed_dim=32, depth=2, num_heads=4)

    def maxvit():
        import torchvision.models as models
        return models.MaxVit((64, 64), 16, 4, [16, 32], [1, 1], 8, 0.0, num_classes=10)

    def deeplab():
        import segmentation_models_pytorch as smp
        return smp.DeepLabV3Plus("resnet18", encoder_weights=None)

    def diffusion():
        import diffusers
        unet = diffusers.UNet2DModel(16, 3, 3, layers_per_block=1, block_out_channels=(16, 32), norm_num_groups=8,
                                     down_block_types=("DownBlock2D", "AttnDownBlock2D"),
                                     up_block_types=("AttnUpBlock2D", "UpBlock2D"))
        return unet

    def steps(b):
        return torch.rand(b, 3, 16, 16), torch.ones(b, dtype=torch.int64)

    small = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64)
    return {
        "mixer": build(mixer, image(3, 32, 32)), "cait": build(cait, image(3, 32, 32)),
        "xcit": build(xcit, image(3, 32, 32)), "maxvit": build(maxvit, image(3, 64, 64)),
        "deeplab": build(deeplab, image(3, 64, 64)), "diffusion": build(diffusion, steps, "sample"),
        "segformer": hugging("SegformerForSemanticSegmentation", "SegformerConfig", image(3, 64, 64), "logits",
                             hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1], num_attention_heads=[1, 2, 3, 4],
                             decoder_hidden_size=16),
        "wav2vec2": hugging("Wav2Vec2Model", "Wav2Vec2Config", image(4000), "last_hidden_state", vocab_size=20,
                            conv_dim=(16,) * 7, num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=4, **small),
        "spectrogram": hugging("ASTForAudioClassification", "ASTConfig", image(64, 32), "logits", max_length=64,
                               num_mel_bins=32, **small),
        "llama": hugging("LlamaForCausalLM", "LlamaConfig", tokens(12), "logits", vocab_size=50,
                         num_key_value_heads=2, use_cache=False, **small),
        "deberta": hugging("DebertaV2Model", "DebertaV2Config", tokens(12), "last_hidden_state", vocab_size=50,
                           relative_attention=True, pos_att_type=["c2p", "p2c"], **small),
        "timesformer": hugging("TimesformerForVideoClassification", "TimesformerConfig", image(4, 3, 32, 32), "logits",
                               image_size=32, patch_size=8, num_frames=4, **small),
    }


def drawn_networks():
    """What seeds drew for scripts/export (drawn_again.py, drawn_inference.third()), of those that take a batch; written down before
    any was exported."""
    import torch
    from torch import nn

    class Wrapped(nn.Module):
        def __init__(self, network, key, *inputs):
            super().__init__()
            self.network, self.key, self.inputs = network, key, inputs

        def forward(self, *inputs):
            result = self.network(*inputs)
            return result if self.key is None else getattr(result, self.key)

    def series(make, *shape):
        def build(b):
            sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "export"))
            import drawn_again
            return Wrapped(getattr(drawn_again, make)(), None, torch.rand(b, *shape))
        return build

    def language(name, config=None, **options):
        def build(b):
            import transformers
            sizes = dict(vocab_size=50, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
                         d_model=32, decoder_layers=2, decoder_attention_heads=4, decoder_ffn_dim=64, n_embd=32, n_layer=2,
                         n_head=4, head_dim=8, pad_token_id=0, bos_token_id=1, eos_token_id=2, use_cache=False, **options)
            kind = getattr(transformers, (config or name.replace("ForCausalLM", "").replace("LMHeadModel", "")) + "Config")
            known = kind()
            network = getattr(transformers, name)(kind(**{k: v for k, v in sizes.items() if hasattr(known, k)}))
            return Wrapped(network, "logits", torch.ones(b, 12, dtype=torch.int64))
        return build

    def image(name, size=64):
        def build(b):
            import timm
            return Wrapped(timm.create_model(name, num_classes=10), None, torch.rand(b, 3, size, size))
        return build

    return {
        "fusion-transformer": series("fusion_transformer", 36, 6), "graph-wavenet": series("graph_wavenet", 2, 20, 13),
        "dlinear": series("decomposed", 96, 7), "pattern-attention": series("pattern_attention", 24, 8),
        "segments": series("segments", 96, 7), "hunyuan": language("HunYuanDenseV1ForCausalLM", num_key_value_heads=2),
        "apertus": language("ApertusForCausalLM", num_key_value_heads=2), "plbart": language("PLBartForCausalLM"),
        "smollm3": language("SmolLM3ForCausalLM", num_key_value_heads=2), "openai-gpt": language("OpenAIGPTLMHeadModel"),
        "bitnet": language("BitNetForCausalLM", num_key_value_heads=2),
        "exaone4": language("Exaone4ForCausalLM", num_key_value_heads=2),
        "nanochat": language("NanoChatForCausalLM", num_key_value_heads=4),
        "diffllama": language("DiffLlamaForCausalLM", num_key_value_heads=2),
        "hardcorenas": image("hardcorenas_a"), "tinynet": image("tinynet_d"), "darknet-focus": image("cs3darknet_focus_m"),
    }


NETWORKS = {"small": small_networks, "real": real_networks, "fresh": fresh_networks, "drawn": drawn_networks}


def export(args):
    import warnings
    import logging
    import torch
    warnings.filterwarnings("ignore")
    logging.disable(logging.ERROR)
    torch.manual_seed(0)
    torch.backends.mha.set_fastpath_enabled(False)
    networks = NETWORKS[args.set]()
    folder = pathlib.Path(args.folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in networks.items():
        if args.names and name not in args.names.split(","):
            continue
        for batch in FROM + (TO if args.set == "small" else TO[:1]):
            path = folder / f"{name}.{args.exporter}.b{batch}.onnx"
            if path.exists():
                continue
            try:
                net = make(batch).eval()
                if net.inputs[0].shape[0] != batch:
                    continue
                with torch.no_grad():
                    torch.onnx.export(net, net.inputs, str(path), dynamo=args.exporter == "dynamo", verbose=False)
            except Exception as error:  # an exporter that fails is not judged
                print(name, args.exporter, batch, str(error).splitlines()[0][:150], flush=True)


# --- comparing --------------------------------------------------------------------------------------------------------

def analyse(program, path, options):
    done = subprocess.run([program, "-q", "--json", str(path), *options], capture_output=True, text=True)
    if done.returncode != 0:
        return None, done.stderr.strip()
    return json.loads(done.stdout)["models"][0], ""


def tensors_of(model):
    """Shapes of activations and the bytes of weights by type."""
    rows = [row for row in model["tensors"] if row["kind"] not in ("initializer", "constant")]
    return collections.Counter((row["dtype"], str(row["shape"])) for row in rows)


def figures(model):
    result = {"parameters": model["parameters"]["bytes"], "peak": model["peak"]["bytes"], "macs": model["macs"]}
    for name, runtime in model["runtimes"].items():
        result.update({f"{name}.{key}": value for key, value in runtime.items() if key.endswith("bytes")})
    for key, value in (model.get("training") or {}).items():
        if key.endswith("bytes"):
            result[f"training.{key}"] = value
    return result


def judge(program, old, new, batch, options):
    truth, error = analyse(program, new, options)
    if truth is None:
        return "skipped", f"native: {error}"
    mine, error = analyse(program, old, ["--batch", str(batch), *options])
    if mine is None:
        fine = "export" in error and "dynamic_shapes" in error and "dynamic_axes" in error
        return ("refused" if fine else "REFUSED"), error.split(": ", 1)[-1]
    mine_rows, true_rows = tensors_of(mine), tensors_of(truth)
    mine_figures, true_figures = figures(mine), figures(truth)
    off = [f"{key} {mine_figures.get(key)} for {value}" for key, value in true_figures.items()
           if mine_figures.get(key) != value]
    if mine_rows == true_rows and not off:
        return "equal", ""
    detail = f"rows {dict(mine_rows - true_rows)} for {dict(true_rows - mine_rows)}; {'; '.join(off[:4])}"
    noted = [d["message"] for d in mine["diagnostics"] if d["code"] == "batch"]
    if noted:
        return "noted", f"{noted[0]} | {detail}"
    return "WRONG", detail


def compare(args):
    folder, counts, rows = pathlib.Path(args.folder), collections.Counter(), []
    for old in sorted(folder.glob("*.b*.onnx")):
        stem, batch = old.name[:-len(".onnx")].rsplit(".b", 1)
        if int(batch) not in FROM:
            continue
        for to in TO:
            new = folder / f"{stem}.b{to}.onnx"
            if not new.exists():
                continue
            outcome, detail = judge(args.onnxvram, old, new, to, args.options)
            counts[batch, outcome] += 1
            rows.append({"network": stem, "from": int(batch), "to": to, "outcome": outcome, "detail": detail})
            print(f"{outcome:8} {stem} {batch}->{to} {detail}", flush=True)
    for (batch, outcome), count in sorted(counts.items()):
        print(f"batch {batch}: {outcome} {count}")
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(rows, indent=1) + "\n")
    return 1 if any(outcome.isupper() for _, outcome in counts) else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("export")
    one.add_argument("folder")
    one.add_argument("--names")
    one.add_argument("--exporter", choices=("dynamo", "torchscript"), default="dynamo")
    one.add_argument("--set", choices=tuple(NETWORKS), default="small")
    two = commands.add_parser("compare")
    two.add_argument("folder")
    two.add_argument("--onnxvram", required=True)
    two.add_argument("--json")
    argv = sys.argv[1:]
    options = argv[argv.index("--") + 1:] if "--" in argv else []
    args = parser.parse_args(argv[:argv.index("--")] if "--" in argv else argv)
    args.options = options
    return export(args) if args.command == "export" else compare(args)


if __name__ == "__main__":
    sys.exit(main())
