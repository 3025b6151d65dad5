"""Networks for checkpointing plans, of kinds that no list had. Written down before a plan of one was asked for; predicted once."""
import torch
import torch.nn as nn
import torch.nn.functional as F

from .common import Network, image, numbers, timm, together, transformer, values, vision


class VideoGru(nn.Module):
    """One convolutional cell for all frames, one encoder and one decoder for each."""

    def __init__(self, width=16):
        super().__init__()
        self.encode = nn.Sequential(nn.Conv2d(3, width, 3, 2, 1), nn.GroupNorm(4, width), nn.SiLU(inplace=True))
        self.gates, self.new = nn.Conv2d(2 * width, 2 * width, 3, 1, 1), nn.Conv2d(2 * width, width, 3, 1, 1)
        self.decode = nn.Sequential(nn.ConvTranspose2d(width, width, 2, 2), nn.ReLU(True), nn.Conv2d(width, 5, 1))

    def forward(self, frames):
        state, results = None, []
        for frame in frames.unbind(1):
            x = self.encode(frame)
            state = torch.zeros_like(x) if state is None else state
            update, reset = torch.sigmoid(self.gates(torch.cat([x, state], 1))).chunk(2, 1)
            new = torch.tanh(self.new(torch.cat([x, reset * state], 1)))
            state = (1 - update) * state + update * new
            results.append(self.decode(state))
        return torch.stack(results, 2)


class Perceiver(nn.Module):
    """Latents that look at the data again and again, by one block of shared weights, with blocks of their own between."""

    def __init__(self, d=48, latents=12):
        super().__init__()
        self.latents = nn.Parameter(torch.randn(latents, d))
        self.embed, self.look = nn.Linear(8, d), nn.MultiheadAttention(d, 4, batch_first=True)
        self.norms = nn.ModuleList(nn.LayerNorm(d) for _ in range(3))
        self.think = nn.ModuleList(nn.TransformerEncoderLayer(d, 4, 2 * d, 0.1, "gelu", batch_first=True, norm_first=True) for _ in range(3))
        self.head = nn.Linear(d, 10)

    def forward(self, x):
        x, z = self.embed(x), self.latents.expand(x.shape[0], -1, -1)
        for norm, think in zip(self.norms, self.think):
            z = z + self.look(norm(z), x, x, need_weights=False)[0]
            z = think(z)
        return self.head(z.mean(1))


class FilmNet(nn.Module):
    """Encoder and decoder of residual blocks that a condition scales and shifts; skips in a dictionary, resized by interpolation."""

    class Block(nn.Module):
        def __init__(self, i, o):
            super().__init__()
            self.norm, self.conv = nn.BatchNorm2d(i), nn.Conv2d(i, o, 3, padding=1)
            self.film, self.skip = nn.Linear(16, 2 * o), nn.Conv2d(i, o, 1) if i != o else nn.Identity()

        def forward(self, x, condition):
            scale, shift = self.film(condition)[:, :, None, None].chunk(2, 1)
            return self.skip(x) + F.gelu(self.conv(self.norm(x)) * (1 + scale) + shift)

    def __init__(self, widths=(16, 24, 32)):
        super().__init__()
        self.stem, self.embed = nn.Conv2d(3, widths[0], 3, padding=1), nn.Embedding(10, 16)
        self.down = nn.ModuleDict({str(w): self.Block(i, w) for i, w in zip((widths[0],) + widths, widths)})
        self.up = nn.ModuleDict({str(w): self.Block(2 * w, o) for w, o in zip(widths[::-1], widths[-2::-1] + widths[:1])})
        self.head = nn.Conv2d(widths[0], 4, 1)

    def forward(self, x, label):
        x, condition, skips = self.stem(x), self.embed(label), {}
        for name, block in self.down.items():
            x = skips[name] = block(x, condition)
            x = F.avg_pool2d(x, 2)
        for name, block in self.up.items():
            skip = skips.pop(name)
            x = block(torch.cat([F.interpolate(x, skip.shape[-2:], mode="bilinear"), skip], 1), condition)
        return self.head(x)


class Supervised(nn.Module):
    """Stages of dense residual blocks, each with a classifier of its own; additions in place, stochastic depth by rows."""

    class Stage(nn.Module):
        def __init__(self, i, o):
            super().__init__()
            self.reduce = nn.Sequential(nn.Conv2d(i, o, 3, 2, 1, bias=False), nn.BatchNorm2d(o), nn.LeakyReLU(0.1, True))
            self.blocks = nn.ModuleList(nn.Sequential(nn.Conv2d(o, o, 3, 1, 1, groups=4), nn.BatchNorm2d(o), nn.Hardswish(),
                                                      nn.Conv2d(o, o, 1), nn.BatchNorm2d(o)) for _ in range(3))
            self.head = nn.Linear(o, 10)

        def forward(self, x):
            x = self.reduce(x)
            for block in self.blocks:
                y = block(x)
                y *= torch.empty(x.shape[0], 1, 1, 1, device=x.device).bernoulli_(0.9)
                x = F.relu(y.add_(x))
            return x, self.head(x.mean((2, 3)))

    def __init__(self):
        super().__init__()
        self.stages = nn.ModuleList(self.Stage(i, o) for i, o in ((3, 16), (16, 32), (32, 64)))

    def forward(self, x):
        results = []
        for stage in self.stages:
            x, result = stage(x)
            results.append(result)
        return tuple(results)


NETWORKS = [
    Network("video_gru", VideoGru, values(4, 3, 32, 32)),
    Network("perceiver", Perceiver, values(60, 8)),
    Network("film_net", FilmNet, together(image(32), numbers())),
    Network("supervised", Supervised, image(48)),
    Network("inception_v3", vision("inception_v3", num_classes=10, aux_logits=False, init_weights=False), image(96)),
    Network("efficientvit_b0", timm("efficientvit_b0"), image(64)),
    Network("gmlp", timm("gmlp_s16_224", img_size=64), image(64)),
    Network("cait", timm("cait_xxs24_224", img_size=64), image(64)),
    Network("vovnet", timm("vovnet39a"), image(64)),
    Network("mvp", transformer("MvpForConditionalGeneration", "MvpConfig", fixed={"use_cache": False}, decoder_start_token_id=2), numbers(24)),
    Network("olmo2", transformer("Olmo2ForCausalLM", "Olmo2Config"), numbers(24)),
    Network("modernbert", transformer("ModernBertForMaskedLM", "ModernBertConfig"), numbers(24)),
]
