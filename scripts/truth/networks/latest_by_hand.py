"""Networks as practitioners write them, ten kinds once more by another hand. Run once on the CPU to find errors of typing; listed before one was exported; predicted once."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

from .common import Network, image, numbers, together, values


class SharedCritic(nn.Module):
    """A generator, and a discriminator whose trunk two heads share: hinge losses of both sides and features that match."""

    def __init__(self, z=32, c=24):
        super().__init__()
        up = lambda i, o: nn.Sequential(nn.Upsample(scale_factor=2), nn.Conv2d(i, o, 3, 1, 1), nn.BatchNorm2d(o), nn.LeakyReLU(0.2, True))  # noqa: E731
        self.start, self.g = nn.Linear(z, 4 * c * 16), nn.Sequential(up(4 * c, 2 * c), up(2 * c, c), up(c, c), nn.Conv2d(c, 3, 3, 1, 1), nn.Tanh())
        self.trunk = nn.ModuleList([nn.utils.parametrizations.spectral_norm(nn.Conv2d(i, o, 4, 2, 1)) for i, o in ((3, c), (c, 2 * c), (2 * c, 4 * c))])
        self.real, self.kind = nn.Linear(4 * c, 1), nn.Linear(4 * c, 5)

    def judge(self, x):
        features = []
        for conv in self.trunk:
            x = F.leaky_relu(conv(x), 0.2)
            features.append(x)
        h = x.sum((2, 3))
        return self.real(h).squeeze(1), self.kind(h), features

    def forward(self, x, z, y):
        fake = self.g(self.start(z).view(z.shape[0], -1, 4, 4))
        (r, kind, fr), (f, _, ff), (d, _, _) = self.judge(x), self.judge(fake), self.judge(fake.detach())
        match = sum(F.l1_loss(a, b.detach()) for a, b in zip(ff, fr))
        return F.relu(1 - r).mean() + F.relu(1 + d).mean() - f.mean() + 10 * match + F.cross_entropy(kind, y)


class BetaVae(nn.Module):
    def __init__(self, c=24, z=16):
        super().__init__()
        self.enc = nn.Sequential(nn.Conv2d(3, c, 4, 2, 1), nn.ELU(), nn.Conv2d(c, 2 * c, 4, 2, 1), nn.GroupNorm(4, 2 * c), nn.ELU(), nn.Flatten())
        self.moments, self.back = nn.Linear(2 * c * 64, 2 * z), nn.Linear(z, 2 * c * 64)
        self.dec = nn.Sequential(nn.Unflatten(1, (2 * c, 8, 8)), nn.ConvTranspose2d(2 * c, c, 4, 2, 1), nn.ELU(), nn.ConvTranspose2d(c, 6, 4, 2, 1))

    def forward(self, x):
        mean, log_var = self.moments(self.enc(x)).chunk(2, dim=1)
        std = torch.exp(0.5 * log_var.clamp(-8, 8))
        out, scale = self.dec(self.back(mean + std * torch.randn_like(std))).split(3, dim=1)
        nll = ((x - out.sigmoid()) ** 2 / (2 * F.softplus(scale) ** 2 + 1e-3)).flatten(1).sum(1)
        return (nll - 2 * (1 + log_var - mean.pow(2) - log_var.exp()).sum(1)).mean()


class Translator(nn.Module):
    """A GRU in both directions, additive attention, a cell of the decoder for each word; teacher forcing."""

    def __init__(self, v=120, d=48):
        super().__init__()
        self.src, self.tgt, self.enc = nn.Embedding(v, d), nn.Embedding(v, d), nn.GRU(d, d, batch_first=True, bidirectional=True)
        self.bridge, self.key, self.query, self.score = nn.Linear(2 * d, d), nn.Linear(2 * d, d), nn.Linear(d, d, bias=False), nn.Linear(d, 1)
        self.cell, self.out = nn.GRUCell(3 * d, d), nn.Linear(4 * d, v)

    def forward(self, s, t):
        memory, last = self.enc(F.dropout(self.src(s), 0.1, self.training))
        h, keys, logits = torch.tanh(self.bridge(torch.cat([last[0], last[1]], -1))), self.key(memory), []
        for word in self.tgt(t).unbind(1):
            w = self.score(torch.tanh(keys + self.query(h)[:, None])).squeeze(-1).softmax(-1)
            context = torch.einsum("bs,bsd->bd", w, memory)
            h = self.cell(torch.cat([word, context], -1), h)
            logits.append(self.out(torch.cat([h, context, word], -1)))
        return torch.stack(logits, 1)


class Messages(nn.Module):
    """Three rounds of messages along edges, gates, sums and most of them by node, a mean of all."""

    def __init__(self, d=40):
        super().__init__()
        self.node, self.edge = nn.Embedding(20, d), nn.Linear(3, d)
        self.layers = nn.ModuleList([nn.ModuleDict({"m": nn.Sequential(nn.Linear(3 * d, d), nn.SiLU(), nn.Linear(d, d)), "g": nn.Linear(d, 1),
                                                    "u": nn.GRUCell(2 * d, d), "n": nn.LayerNorm(d)}) for _ in range(3)])
        self.head = nn.Sequential(nn.Linear(d, d), nn.ReLU(), nn.Dropout(0.2), nn.Linear(d, 4))

    def forward(self, kinds, source, target, features):
        h, e = self.node(kinds), self.edge(features)
        for layer in self.layers:
            m = layer["m"](torch.cat([h[source], h[target], e], -1))
            m = m * torch.sigmoid(layer["g"](m))
            total = torch.zeros_like(h).index_add_(0, target, m)
            most = torch.zeros_like(h).scatter_reduce(0, target[:, None].expand_as(m), m, "amax")
            h, e = layer["n"](layer["u"](torch.cat([total, most], -1), h) + h), e + m
        return self.head(h)


class Interest(nn.Module):
    """Attention of a candidate over a history, crosses, and experts with gates for two tasks."""

    def __init__(self, v=200, d=16):
        super().__init__()
        self.item, self.user = nn.Embedding(v, d, padding_idx=0), nn.Embedding(v, d)
        self.unit = nn.Sequential(nn.Linear(4 * d, 32), nn.PReLU(), nn.Linear(32, 1))
        self.cross = nn.ParameterList([nn.Parameter(torch.rand(3 * d) * 0.1) for _ in range(2)])
        self.experts = nn.ModuleList([nn.Sequential(nn.Linear(3 * d, 48), nn.BatchNorm1d(48), nn.ReLU()) for _ in range(3)])
        self.gates, self.towers = nn.ModuleList([nn.Linear(3 * d, 3) for _ in range(2)]), nn.ModuleList([nn.Linear(48, 1) for _ in range(2)])

    def forward(self, user, item, history, clicked, bought):
        i, past = self.item(item), self.item(history)
        q = i[:, None].expand_as(past)
        a = self.unit(torch.cat([q, past, q - past, q * past], -1)).masked_fill((history == 0)[..., None], -1e4)
        x0 = x = torch.cat([self.user(user), i, (a.softmax(1) * past).sum(1)], -1)
        for w in self.cross:
            x = x0 * (x @ w)[:, None] + x
        mixed = torch.stack([e(x) for e in self.experts], 1)
        logits = [t((g(x).softmax(-1)[..., None] * mixed).sum(1))[:, 0] for g, t in zip(self.gates, self.towers)]
        p = torch.sigmoid(logits[0])
        return F.binary_cross_entropy(p, clicked) + F.binary_cross_entropy(p * torch.sigmoid(logits[1]), bought)


class Coupling(nn.Module):
    """Squeezed images through steps of actnorm, an invertible product and affine couplings; the likelihood."""

    def __init__(self, c=12, width=48, steps=3):
        super().__init__()
        net = lambda: nn.Sequential(nn.Conv2d(c // 2, width, 3, 1, 1), nn.ReLU(), nn.Conv2d(width, width, 1), nn.ReLU(), nn.Conv2d(width, c, 3, 1, 1))  # noqa: E731
        self.nets = nn.ModuleList([net() for _ in range(steps)])
        self.w = nn.ParameterList([nn.Parameter(torch.linalg.qr(torch.randn(c, c))[0]) for _ in range(steps)])
        self.b, self.s = nn.Parameter(torch.zeros(steps, c, 1, 1)), nn.Parameter(torch.zeros(steps, c, 1, 1))

    def forward(self, x):
        x = F.pixel_unshuffle(x + torch.rand_like(x) / 256, 2)
        total = x.new_zeros(x.shape[0])
        for net, w, b, s in zip(self.nets, self.w, self.b, self.s):
            x = F.conv2d((x + b) * s.exp(), w[..., None, None])
            total = total + (s.sum() + torch.linalg.slogdet(w)[1]) * x.shape[2] * x.shape[3]
            a, y = x.chunk(2, 1)
            t, raw = net(a).chunk(2, 1)
            scale = torch.sigmoid(raw + 2)
            x, total = torch.cat([a, (y + t) * scale], 1), total + scale.log().flatten(1).sum(1)
        return -(total - 0.5 * (x ** 2 + math.log(2 * math.pi)).flatten(1).sum(1)).mean()


class Radiance(nn.Module):
    """Points along rays, encoded; density and colour by direction; composited by products of what passes."""

    def __init__(self, d=48, levels=6, samples=24):
        super().__init__()
        self.register_buffer("bands", 2.0 ** torch.arange(levels) * math.pi)
        self.near, self.skip = nn.Sequential(nn.Linear(6 * levels + 3, d), nn.ReLU(True), nn.Linear(d, d), nn.ReLU(True)), nn.Linear(d + 6 * levels + 3, d)
        self.sigma, self.colour, self.samples = nn.Linear(d, 1), nn.Sequential(nn.Linear(d + 3, d // 2), nn.ReLU(True), nn.Linear(d // 2, 3)), samples

    def encode(self, x):
        a = (x[..., None] * self.bands).flatten(-2)
        return torch.cat([x, a.sin(), a.cos()], -1)

    def forward(self, origin, direction):
        d = F.normalize(direction, dim=-1)
        t = torch.linspace(0.1, 4, self.samples, device=d.device).expand(d.shape[0], -1)
        p = self.encode(origin[:, None] + t[..., None] * d[:, None])
        h = F.relu(self.skip(torch.cat([self.near(p), p], -1)))
        alpha = 1 - torch.exp(-F.softplus(self.sigma(h)[..., 0]) * F.pad(t.diff(dim=-1), (0, 1), value=1.0))
        passed = torch.cumprod(torch.cat([torch.ones_like(alpha[:, :1]), 1 - alpha + 1e-10], -1), -1)[:, :-1]
        weights = alpha * passed
        rgb = torch.sigmoid(self.colour(torch.cat([h, d[:, None].expand(-1, self.samples, -1)], -1)))
        return (weights[..., None] * rgb).sum(1) + 1 - weights.sum(-1, keepdim=True)


class NoiseTransformer(nn.Module):
    """Patches with scales and shifts from the time, normalised queries and keys; learns the velocity."""

    class Block(nn.Module):
        def __init__(self, d, heads):
            super().__init__()
            self.heads, self.n1, self.n2 = heads, nn.LayerNorm(d, elementwise_affine=False), nn.LayerNorm(d, elementwise_affine=False)
            self.qkv, self.out, self.q, self.k = nn.Linear(d, 3 * d), nn.Linear(d, d), nn.RMSNorm(d // heads), nn.RMSNorm(d // heads)
            self.mlp, self.mod = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU("tanh"), nn.Linear(4 * d, d)), nn.Sequential(nn.SiLU(), nn.Linear(d, 6 * d))

        def forward(self, x, c):
            s1, b1, g1, s2, b2, g2 = self.mod(c)[:, None].chunk(6, -1)
            q, k, v = (u.unflatten(-1, (self.heads, -1)).transpose(1, 2) for u in self.qkv(self.n1(x) * (1 + s1) + b1).chunk(3, -1))
            a = F.scaled_dot_product_attention(self.q(q), self.k(k), v).transpose(1, 2).flatten(2)
            x = x + g1 * self.out(a)
            return x + g2 * self.mlp(self.n2(x) * (1 + s2) + b2)

    def __init__(self, d=64, patch=4, size=32):
        super().__init__()
        self.patch, self.put = patch, nn.Conv2d(3, d, patch, patch)
        self.place, self.time = nn.Parameter(torch.zeros(1, (size // patch) ** 2, d)), nn.Sequential(nn.Linear(32, d), nn.SiLU(), nn.Linear(d, d))
        self.blocks, self.last = nn.ModuleList([self.Block(d, 4) for _ in range(3)]), nn.Linear(d, 3 * patch * patch)

    def forward(self, x, noise, t):
        mixed = (1 - t[:, None, None, None]) * x + t[:, None, None, None] * noise
        angles = t[:, None] * torch.exp(-math.log(1e4) * torch.arange(16, device=t.device) / 16)
        c, h = self.time(torch.cat([angles.cos(), angles.sin()], -1)), self.put(mixed).flatten(2).transpose(1, 2) + self.place
        for block in self.blocks:
            h = block(h, c)
        side = x.shape[-1] // self.patch
        v = self.last(h).view(-1, side, side, self.patch, self.patch, 3).permute(0, 5, 1, 3, 2, 4).reshape(x.shape)
        return F.mse_loss(v, noise - x)


class Speech(nn.Module):
    """Spectra masked, convolutions, LSTMs in both directions, CTC."""

    def __init__(self, mels=40, c=24, d=64, v=30):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(1, c, 3, 2, 1), nn.BatchNorm2d(c), nn.Hardtanh(0, 20, inplace=True), nn.Conv2d(c, c, 3, (1, 2), 1), nn.SiLU())
        self.norm, self.rnn = nn.LayerNorm(c * 10), nn.LSTM(c * 10, d, 2, batch_first=True, dropout=0.1, bidirectional=True)
        self.out = nn.Linear(2 * d, v)

    def forward(self, x, targets):
        if self.training:
            x = x * (torch.rand(x.shape[0], x.shape[1], 1, device=x.device) > 0.1)
        h = self.conv(x[:, None]).permute(0, 2, 1, 3).flatten(2)
        logits = self.out(self.rnn(self.norm(h))[0]).log_softmax(-1).transpose(0, 1)
        sizes = torch.full((x.shape[0],), logits.shape[0], dtype=torch.long), torch.full((x.shape[0],), targets.shape[1], dtype=torch.long)
        return F.ctc_loss(logits, targets, *sizes, zero_infinity=True)


class Clipped(nn.Module):
    """PPO: a shared trunk of convolutions, a policy of several dims, values clipped, entropy."""

    def __init__(self, d=64, actions=6):
        super().__init__()
        self.trunk = nn.Sequential(nn.Conv2d(4, 16, 8, 4), nn.ReLU(), nn.Conv2d(16, 32, 4, 2), nn.ReLU(), nn.Flatten(), nn.Linear(32 * 49, d), nn.Tanh())
        self.policy, self.value = nn.Linear(d, actions), nn.Linear(d, 1)

    def forward(self, seen, action, old, gain, before):
        h = self.trunk(seen)
        chosen = torch.distributions.Categorical(logits=self.policy(h), validate_args=False)
        ratio, value = (chosen.log_prob(action) - old).exp(), self.value(h)[:, 0]
        gain = (gain - gain.mean()) / (gain.std() + 1e-8)
        surrogate = torch.min(ratio * gain, ratio.clamp(0.8, 1.2) * gain)
        clipped = before + (value - before).clamp(-0.2, 0.2)
        return -surrogate.mean() + 0.5 * torch.max((value - gain) ** 2, (clipped - gain) ** 2).mean() - 0.01 * chosen.entropy().mean()


NETWORKS = [
    Network("shared_critic", SharedCritic, together(image(32), values(32), numbers()), "none"),
    Network("beta_vae", BetaVae, image(32), "none"),
    Network("translator", Translator, together(numbers(14), numbers(10))),
    Network("messages", Messages, together(numbers(), numbers(), numbers(), values(3)), "cross-entropy", 40, 60),
    Network("interest", Interest, together(numbers(), numbers(), numbers(12), values(), values()), "none", 16, 24),
    Network("coupling", Coupling, image(32), "none"),
    Network("radiance", Radiance, together(values(3), values(3)), "mse", 32, 48),
    Network("noise_transformer", NoiseTransformer, together(image(32), image(32), values()), "none"),
    Network("speech", Speech, together(values(64, 40), numbers(8)), "none"),
    Network("clipped", Clipped, together(values(4, 72, 72), numbers(), values(), values(), values()), "none", 16, 24),
]
