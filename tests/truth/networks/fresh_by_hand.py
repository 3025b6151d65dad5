"""Networks as practitioners write them, none like those of the other lists. Written down before one was exported; predicted once."""
import math

import torch
import torch.nn.functional as F
from torch import nn

from .common import Network, image, numbers, together, values


def mlp(*sizes, act=nn.ReLU):
    layers = []
    for a, b in zip(sizes[:-1], sizes[1:]):
        layers += [nn.Linear(a, b), act()]
    return nn.Sequential(*layers[:-1])


class Ppo(nn.Module):
    """An actor and a critic on one network of convolutions: the clipped loss, the value's, the entropy."""

    def __init__(self, actions=6):
        super().__init__()
        self.network = nn.Sequential(nn.Conv2d(4, 16, 8, stride=4), nn.ReLU(), nn.Conv2d(16, 32, 4, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(32 * 6 * 6, 128), nn.ReLU())
        self.actor, self.critic = nn.Linear(128, actions), nn.Linear(128, 1)

    def forward(self, obs, action, old, advantage, returns):
        hidden = self.network(obs / 255.0)
        logits, value = self.actor(hidden), self.critic(hidden).view(-1)
        logp = F.log_softmax(logits, dim=-1)
        entropy = -(logp * logp.exp()).sum(-1)
        ratio = (logp.gather(1, action.unsqueeze(1)).squeeze(1) - old).exp()
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        policy = torch.max(-advantage * ratio, -advantage * torch.clamp(ratio, 0.8, 1.2)).mean()
        return policy - 0.01 * entropy.mean() + 0.5 * 0.5 * ((value - returns) ** 2).mean()


class Sac(nn.Module):
    """A squashed Gaussian, twin critics, their targets without gradients."""

    def __init__(self, obs=17, act=6, h=64):
        super().__init__()
        self.pi = mlp(obs, h, h, 2 * act)
        self.q1, self.q2, self.t1, self.t2 = (mlp(obs + act, h, h, 1) for _ in range(4))
        self.log_alpha = nn.Parameter(torch.zeros(1))
        for p in [*self.t1.parameters(), *self.t2.parameters()]:
            p.requires_grad_(False)

    def sample(self, obs):
        mean, log_std = self.pi(obs).chunk(2, dim=-1)
        log_std = torch.clamp(log_std, -5, 2)
        std = log_std.exp()
        x = mean + std * torch.randn_like(mean)
        y = torch.tanh(x)
        logp = -((x - mean) ** 2) / (2 * std ** 2) - log_std - math.log(math.sqrt(2 * math.pi))
        logp -= torch.log(1 - y.pow(2) + 1e-6)
        return y, logp.sum(1, keepdim=True)

    def forward(self, obs, act, reward, after, done):
        alpha = self.log_alpha.exp()
        with torch.no_grad():
            next_act, next_logp = self.sample(after)
            sa = torch.cat([after, next_act], 1)
            target = torch.min(self.t1(sa), self.t2(sa)) - alpha * next_logp
            goal = reward.unsqueeze(1) + (1 - done.unsqueeze(1)) * 0.99 * target
        sa = torch.cat([obs, act], 1)
        critics = F.mse_loss(self.q1(sa), goal) + F.mse_loss(self.q2(sa), goal)
        pi, logp = self.sample(obs)
        sp = torch.cat([obs, pi], 1)
        actor = (alpha.detach() * logp - torch.min(self.q1(sp), self.q2(sp))).mean()
        return critics + actor - (self.log_alpha * (logp + 6).detach()).mean()


class Byol(nn.Module):
    """Two views, a network that learns and one that follows it."""

    def __init__(self, d=64, p=32):
        super().__init__()
        def encoder():
            return nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU(inplace=True), nn.Conv2d(16, d, 3, 2, 1, bias=False), nn.BatchNorm2d(d), nn.ReLU(inplace=True),
                                 nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(d, 2 * d), nn.BatchNorm1d(2 * d), nn.ReLU(inplace=True), nn.Linear(2 * d, p))
        self.online, self.target = encoder(), encoder()
        self.predictor = nn.Sequential(nn.Linear(p, 2 * d), nn.BatchNorm1d(2 * d), nn.ReLU(inplace=True), nn.Linear(2 * d, p))
        for q in self.target.parameters():
            q.requires_grad = False

    def forward(self, a, b):
        pa, pb = self.predictor(self.online(a)), self.predictor(self.online(b))
        with torch.no_grad():
            za, zb = self.target(a), self.target(b)
        loss = 2 - 2 * (F.normalize(pa, dim=-1) * F.normalize(zb.detach(), dim=-1)).sum(dim=-1)
        return (loss + 2 - 2 * (F.normalize(pb, dim=-1) * F.normalize(za.detach(), dim=-1)).sum(dim=-1)).mean()


class VicReg(nn.Module):
    """Invariance, variance, covariance of two views."""

    def __init__(self, p=64):
        super().__init__()
        self.backbone = nn.Sequential(nn.Conv2d(3, 32, 3, 2, 1), nn.BatchNorm2d(32), nn.GELU(), nn.Conv2d(32, 64, 3, 2, 1), nn.BatchNorm2d(64), nn.GELU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.projector = nn.Sequential(nn.Linear(64, p), nn.BatchNorm1d(p), nn.ReLU(True), nn.Linear(p, p, bias=False))

    def spread(self, x):
        x = x - x.mean(dim=0)
        std = torch.sqrt(x.var(dim=0) + 0.0001)
        cov = (x.T @ x) / (x.shape[0] - 1)
        n = cov.shape[0]
        off = cov.flatten()[:-1].view(n - 1, n + 1)[:, 1:].flatten()
        return torch.mean(F.relu(1 - std)) / 2, off.pow_(2).sum().div(n)

    def forward(self, a, b):
        x, y = self.projector(self.backbone(a)), self.projector(self.backbone(b))
        (sx, cx), (sy, cy) = self.spread(x), self.spread(y)
        return 25.0 * F.mse_loss(x, y) + 25.0 * (sx + sy) + cx + cy


class DecisionTransformer(nn.Module):
    """Returns, states and actions in turn, a causal transformer, actions predicted."""

    class Block(nn.Module):
        def __init__(self, d, heads, length):
            super().__init__()
            self.ln1, self.ln2, self.heads = nn.LayerNorm(d), nn.LayerNorm(d), heads
            self.qkv, self.proj, self.drop = nn.Linear(d, 3 * d), nn.Linear(d, d), nn.Dropout(0.1)
            self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d), nn.Dropout(0.1))
            self.register_buffer("mask", torch.tril(torch.ones(length, length)).view(1, 1, length, length))

        def forward(self, x):
            b, t, c = x.size()
            q, k, v = self.qkv(self.ln1(x)).split(c, dim=2)
            q, k, v = (z.view(b, t, self.heads, c // self.heads).transpose(1, 2) for z in (q, k, v))
            att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
            att = F.softmax(att.masked_fill(self.mask[:, :, :t, :t] == 0, float("-inf")), dim=-1)
            x = x + self.drop(self.proj((self.drop(att) @ v).transpose(1, 2).contiguous().view(b, t, c)))
            return x + self.mlp(self.ln2(x))

    def __init__(self, state=11, act=3, d=48, context=10):
        super().__init__()
        self.time, self.ret, self.state, self.act = nn.Embedding(100, d), nn.Linear(1, d), nn.Linear(state, d), nn.Linear(act, d)
        self.norm, self.blocks = nn.LayerNorm(d), nn.Sequential(*[self.Block(d, 4, 3 * context) for _ in range(2)])
        self.head = nn.Sequential(nn.Linear(d, act), nn.Tanh())

    def forward(self, states, actions, returns, times):
        b, t, _ = states.shape
        time = self.time(times)
        s, a, r = self.state(states) + time, self.act(actions) + time, self.ret(returns) + time
        x = torch.stack((r, s, a), dim=1).permute(0, 2, 1, 3).reshape(b, 3 * t, -1)
        x = self.blocks(self.norm(x)).reshape(b, t, 3, -1).permute(0, 2, 1, 3)
        return F.mse_loss(self.head(x[:, 1]), actions)


class Detr(nn.Module):
    """A small backbone, positions, nn.Transformer with queries; classes and boxes, matched in order, every layer's loss."""

    def __init__(self, d=64, queries=10, classes=7):
        super().__init__()
        self.backbone = nn.Sequential(nn.Conv2d(3, 32, 7, 2, 3, bias=False), nn.BatchNorm2d(32), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1), nn.Conv2d(32, 64, 3, 2, 1, bias=False),
                                      nn.BatchNorm2d(64), nn.ReLU(inplace=True))
        self.shrink = nn.Conv2d(64, d, 1)
        self.row, self.col = nn.Parameter(torch.rand(20, d // 2)), nn.Parameter(torch.rand(20, d // 2))
        self.query = nn.Embedding(queries, d)
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(d, 4, 128, 0.1, batch_first=True), 2, enable_nested_tensor=False)
        self.layers = nn.ModuleList([nn.TransformerDecoderLayer(d, 4, 128, 0.1, batch_first=True) for _ in range(2)])
        self.classes, self.box = nn.Linear(d, classes + 1), mlp(d, d, d, 4)

    def forward(self, images, labels, boxes):
        x = self.shrink(self.backbone(images))
        h, w = x.shape[-2:]
        pos = torch.cat([self.col[:w].unsqueeze(0).repeat(h, 1, 1), self.row[:h].unsqueeze(1).repeat(1, w, 1)], dim=-1).flatten(0, 1).unsqueeze(0)
        memory = self.encoder(x.flatten(2).permute(0, 2, 1) + pos)
        y = self.query.weight.unsqueeze(0).repeat(x.shape[0], 1, 1)
        loss = 0
        for layer in self.layers:
            y = layer(y, memory)
            logits, at = self.classes(y), self.box(y).sigmoid()
            loss = loss + F.cross_entropy(logits.transpose(1, 2), labels) + 5 * F.l1_loss(at, boxes) + 2 * self.giou(at, boxes)
        return loss

    def giou(self, a, b):
        a, b = (torch.cat([z[..., :2] - z[..., 2:] / 2, z[..., :2] + z[..., 2:] / 2], -1) for z in (a, b))
        area = lambda z: (z[..., 2] - z[..., 0]) * (z[..., 3] - z[..., 1])  # noqa: E731
        wh = (torch.min(a[..., 2:], b[..., 2:]) - torch.max(a[..., :2], b[..., :2])).clamp(min=0)
        inter = wh[..., 0] * wh[..., 1]
        union = area(a) + area(b) - inter
        hull = (torch.max(a[..., 2:], b[..., 2:]) - torch.min(a[..., :2], b[..., :2])).clamp(min=0)
        hull = hull[..., 0] * hull[..., 1]
        return (1 - (inter / union - (hull - union) / hull)).mean()


class HifiGan(nn.Module):
    """The step of the generator: upsampling with dilated residual blocks under weight norm, discriminators of periods, matched features."""

    class Res(nn.Module):
        def __init__(self, c):
            super().__init__()
            norm = nn.utils.parametrizations.weight_norm
            self.a = nn.ModuleList([norm(nn.Conv1d(c, c, 3, dilation=d, padding=d)) for d in (1, 3)])
            self.b = nn.ModuleList([norm(nn.Conv1d(c, c, 3, padding=1)) for _ in range(2)])

        def forward(self, x):
            for a, b in zip(self.a, self.b):
                x = b(F.leaky_relu(a(F.leaky_relu(x, 0.1)), 0.1)) + x
            return x

    class Period(nn.Module):
        def __init__(self, period):
            super().__init__()
            self.period = period
            self.convs = nn.ModuleList([nn.Conv2d(i, o, (5, 1), (3, 1), (2, 0)) for i, o in ((1, 8), (8, 16))])
            self.post = nn.Conv2d(16, 1, (3, 1), 1, (1, 0))

        def forward(self, x):
            maps, (b, c, t) = [], x.shape
            if t % self.period != 0:
                n = self.period - t % self.period
                x, t = F.pad(x, (0, n), "reflect"), t + n
            x = x.view(b, c, t // self.period, self.period)
            for conv in self.convs:
                x = F.leaky_relu(conv(x), 0.1)
                maps.append(x)
            return self.post(x).flatten(1, -1), maps

    def __init__(self, mels=20, c=32):
        super().__init__()
        self.pre = nn.Conv1d(mels, c, 7, padding=3)
        self.ups = nn.ModuleList([nn.ConvTranspose1d(c, c // 2, 8, 4, 2), nn.ConvTranspose1d(c // 2, c // 4, 8, 4, 2)])
        self.res = nn.ModuleList([nn.ModuleList([self.Res(w) for _ in range(2)]) for w in (c // 2, c // 4)])
        self.post, self.critics = nn.Conv1d(c // 4, 1, 7, padding=3), nn.ModuleList([self.Period(p) for p in (2, 3, 5)])

    def forward(self, mel, wave):
        x = self.pre(mel)
        for up, blocks in zip(self.ups, self.res):
            x = up(F.leaky_relu(x, 0.1))
            total = None
            for block in blocks:
                total = block(x) if total is None else total + block(x)
            x = total / len(blocks)
        x = torch.tanh(self.post(F.leaky_relu(x)))
        loss = 45 * F.l1_loss(x, wave)
        for critic in self.critics:
            _, real = critic(wave)
            score, fake = critic(x)
            loss = loss + torch.mean((1 - score) ** 2) + 2 * sum(torch.mean(torch.abs(r - f)) for r, f in zip(real, fake))
        return loss


class BiLstmCrf(nn.Module):
    """Words and their characters, an LSTM of two directions, a chain of tags summed forward."""

    def __init__(self, words=200, chars=40, tags=7, h=32):
        super().__init__()
        self.word, self.char, self.conv = nn.Embedding(words, 32), nn.Embedding(chars, 16), nn.Conv1d(16, 16, 3, padding=1)
        self.lstm, self.out, self.drop = nn.LSTM(48, h, batch_first=True, bidirectional=True), nn.Linear(2 * h, tags), nn.Dropout(0.3)
        self.transitions, self.start, self.end = nn.Parameter(torch.randn(tags, tags)), nn.Parameter(torch.randn(tags)), nn.Parameter(torch.randn(tags))

    def forward(self, words, chars, tags):
        b, t, n = chars.shape
        c = self.conv(self.char(chars.view(b * t, n)).transpose(1, 2)).max(dim=2)[0].view(b, t, -1)
        x, _ = self.lstm(self.drop(torch.cat([self.word(words), c], dim=-1)))
        emit = self.out(self.drop(x))
        score = self.start + emit[:, 0]
        gold = self.start[tags[:, 0]] + emit[:, 0].gather(1, tags[:, :1]).squeeze(1)
        for i in range(1, t):
            score = torch.logsumexp(score.unsqueeze(2) + self.transitions.unsqueeze(0) + emit[:, i].unsqueeze(1), dim=1)
            gold = gold + self.transitions[tags[:, i - 1], tags[:, i]] + emit[:, i].gather(1, tags[:, i:i + 1]).squeeze(1)
        return (torch.logsumexp(score + self.end, dim=1) - gold - self.end[tags[:, -1]]).mean()


class Perceiver(nn.Module):
    """A few latents that look at all pixels with Fourier features, blocks that share weights."""

    class Attention(nn.Module):
        def __init__(self, d, context=None, heads=4, width=16):
            super().__init__()
            context, self.heads, self.scale = context or d, heads, width ** -0.5
            self.norm, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(context)
            self.q, self.kv, self.out = nn.Linear(d, heads * width, bias=False), nn.Linear(context, 2 * heads * width, bias=False), nn.Linear(heads * width, d)

        def forward(self, x, context=None):
            y = self.norm(x)
            q = self.q(y)
            k, v = self.kv(y if context is None else self.norm2(context)).chunk(2, dim=-1)
            q, k, v = (z.unflatten(-1, (self.heads, -1)).transpose(1, 2) for z in (q, k, v))
            sim = torch.einsum("bhid,bhjd->bhij", q, k) * self.scale
            return x + self.out(torch.einsum("bhij,bhjd->bhid", sim.softmax(dim=-1), v).transpose(1, 2).flatten(2))

    class Geglu(nn.Module):
        def __init__(self, d):
            super().__init__()
            self.norm, self.a, self.b = nn.LayerNorm(d), nn.Linear(d, 8 * d), nn.Linear(4 * d, d)

        def forward(self, x):
            y, gate = self.a(self.norm(x)).chunk(2, dim=-1)
            return x + self.b(y * F.gelu(gate))

    def __init__(self, size=24, bands=4, d=64, latents=16, classes=10):
        super().__init__()
        at = torch.stack(torch.meshgrid(*(torch.linspace(-1, 1, size),) * 2, indexing="ij"), -1).view(-1, 2)
        waves = at.unsqueeze(-1) * torch.linspace(1.0, size / 2, bands) * math.pi
        self.register_buffer("places", torch.cat([waves.sin(), waves.cos(), at.unsqueeze(-1)], dim=-1).flatten(1))
        self.latents = nn.Parameter(torch.randn(latents, d))
        self.cross, self.ff = self.Attention(d, 3 + self.places.shape[1]), self.Geglu(d)
        self.selfs = nn.ModuleList([nn.ModuleList([self.Attention(d), self.Geglu(d)]) for _ in range(2)])
        self.head = nn.Sequential(nn.LayerNorm(d), nn.Linear(d, classes))

    def forward(self, images):
        b = images.shape[0]
        data = torch.cat([images.flatten(2).transpose(1, 2), self.places.expand(b, -1, -1)], dim=-1)
        x = self.latents.expand(b, -1, -1)
        for _ in range(2):
            x = self.ff(self.cross(x, data))
            for attend, ff in self.selfs:
                x = ff(attend(x))
        return self.head(x.mean(dim=1))


class PatchTst(nn.Module):
    """Series normalised by instance, cut into overlapping patches, each channel alone."""

    def __init__(self, channels=5, length=96, patch=16, stride=8, d=32, horizon=24):
        super().__init__()
        n = (length - patch) // stride + 2
        self.patch, self.stride, self.pad = patch, stride, nn.ReplicationPad1d((0, stride))
        self.weight, self.bias = nn.Parameter(torch.ones(channels)), nn.Parameter(torch.zeros(channels))
        self.embed, self.place, self.drop = nn.Linear(patch, d), nn.Parameter(0.02 * torch.randn(n, d)), nn.Dropout(0.2)
        self.layers = nn.ModuleList([nn.ModuleDict({"attn": nn.MultiheadAttention(d, 4, 0.1, batch_first=True), "n1": nn.BatchNorm1d(d), "n2": nn.BatchNorm1d(d),
                                                    "ff": nn.Sequential(nn.Linear(d, 64), nn.GELU(), nn.Dropout(0.2), nn.Linear(64, d))}) for _ in range(2)])
        self.head = nn.Linear(n * d, horizon)

    def forward(self, x, target):
        mean, std = x.mean(1, keepdim=True).detach(), torch.sqrt(x.var(1, keepdim=True, unbiased=False) + 1e-5).detach()
        x = ((x - mean) / std * self.weight + self.bias).permute(0, 2, 1)
        z = self.embed(self.pad(x).unfold(-1, self.patch, self.stride))
        b, c, n, d = z.shape
        z = self.drop(z.reshape(b * c, n, d) + self.place)
        for layer in self.layers:
            z = layer["n1"]((z + self.drop(layer["attn"](z, z, z)[0])).transpose(1, 2)).transpose(1, 2)
            z = layer["n2"]((z + self.drop(layer["ff"](z))).transpose(1, 2)).transpose(1, 2)
        y = self.head(z.view(b, c, n, d).flatten(2)).permute(0, 2, 1)
        return F.mse_loss((y - self.bias) / (self.weight + 1e-10) * std + mean, target)


class NBeats(nn.Module):
    """Blocks that take what they explain off the series and add what they forecast: trend, seasons, anything."""

    def __init__(self, past=60, horizon=12, h=64):
        super().__init__()
        t = torch.linspace(0, 1, past + horizon)
        powers, waves = torch.stack([t ** i for i in range(3)]), torch.stack([f(2 * math.pi * k * t) for k in range(1, 5) for f in (torch.cos, torch.sin)])
        self.register_buffer("trend", powers)
        self.register_buffer("season", waves)
        self.past, self.stacks = past, nn.ModuleList()
        for size in (3, 8, past + horizon):
            self.stacks.append(nn.ModuleList([nn.Sequential(*[m for i in range(3) for m in (nn.Linear(past if i == 0 else h, h), nn.ReLU())], nn.Linear(h, size)) for _ in range(2)]))

    def forward(self, x, target):
        rest, forecast = x, torch.zeros_like(target)
        for blocks, basis in zip(self.stacks, (self.trend, self.season, None)):
            for block in blocks:
                theta = block(rest)
                both = theta if basis is None else theta @ basis
                rest = rest - both[:, :self.past]
                forecast = forecast + both[:, self.past:]
        return 200 * torch.mean(torch.abs(forecast - target) / (torch.abs(forecast.detach()) + torch.abs(target) + 1e-6))


class Ddpm(nn.Module):
    """Noise by a schedule, a U-Net with times and attention that predicts it."""

    class Res(nn.Module):
        def __init__(self, i, o, t=64):
            super().__init__()
            self.n1, self.c1, self.n2, self.c2 = nn.GroupNorm(8, i), nn.Conv2d(i, o, 3, padding=1), nn.GroupNorm(8, o), nn.Conv2d(o, o, 3, padding=1)
            self.time, self.skip = nn.Linear(t, 2 * o), nn.Conv2d(i, o, 1) if i != o else nn.Identity()

        def forward(self, x, t):
            h = self.c1(F.silu(self.n1(x)))
            scale, shift = self.time(F.silu(t))[:, :, None, None].chunk(2, dim=1)
            h = self.n2(h) * (scale + 1) + shift
            return self.c2(F.silu(h)) + self.skip(x)

    class Attend(nn.Module):
        def __init__(self, c):
            super().__init__()
            self.norm, self.qkv, self.out = nn.GroupNorm(8, c), nn.Conv2d(c, 3 * c, 1), nn.Conv2d(c, c, 1)

        def forward(self, x):
            b, c, h, w = x.shape
            q, k, v = self.qkv(self.norm(x)).reshape(b, 3, c, h * w).unbind(1)
            weight = torch.bmm(q.transpose(1, 2), k).mul(c ** -0.5).softmax(dim=-1)
            return x + self.out(torch.bmm(v, weight.transpose(1, 2)).view(b, c, h, w))

    def __init__(self, c=32, steps=1000):
        super().__init__()
        self.register_buffer("alphas", torch.cumprod(1 - torch.linspace(1e-4, 0.02, steps), dim=0))
        self.times, self.c = mlp(c, 64, 64, act=nn.SiLU), c
        self.put, self.d1, self.d2, self.down = nn.Conv2d(3, c, 3, padding=1), self.Res(c, c), self.Res(c, 2 * c), nn.Conv2d(c, c, 4, 2, 1)
        self.m1, self.at, self.m2 = self.Res(2 * c, 2 * c), self.Attend(2 * c), self.Res(2 * c, 2 * c)
        self.u1, self.up, self.u2 = self.Res(4 * c, c), nn.Sequential(nn.Upsample(scale_factor=2, mode="nearest"), nn.Conv2d(c, c, 3, padding=1)), self.Res(2 * c, c)
        self.out = nn.Sequential(nn.GroupNorm(8, c), nn.SiLU(), nn.Conv2d(c, 3, 3, padding=1))

    def forward(self, x0, t):
        noise = torch.randn_like(x0)
        a = self.alphas.gather(0, t).reshape(-1, 1, 1, 1)
        x = a.sqrt() * x0 + (1 - a).sqrt() * noise
        f = torch.exp(torch.arange(self.c // 2, device=t.device) * -(math.log(10000) / (self.c // 2 - 1)))
        e = t[:, None].float() * f[None, :]
        e = self.times(torch.cat((e.sin(), e.cos()), dim=-1))
        x = self.put(x)
        h1 = self.d1(x, e)
        h2 = self.d2(self.down(h1), e)
        x = self.m2(self.at(self.m1(h2, e)), e)
        x = self.up(self.u1(torch.cat((x, h2), dim=1), e))
        return F.smooth_l1_loss(self.out(self.u2(torch.cat((x, h1), dim=1), e)), noise)


class LoraGpt(nn.Module):
    """A frozen language model with grouped queries, rotary places and gated layers; adapters of rank 4 on queries and values."""

    class Lora(nn.Module):
        def __init__(self, i, o, r=4):
            super().__init__()
            self.base, self.a, self.b = nn.Linear(i, o, bias=False), nn.Linear(i, r, bias=False), nn.Linear(r, o, bias=False)
            self.drop, self.scale = nn.Dropout(0.05), 8 / r
            self.base.weight.requires_grad_(False)

        def forward(self, x):
            return self.base(x) + self.b(self.a(self.drop(x))) * self.scale

    class Block(nn.Module):
        def __init__(self, d=64, heads=4, groups=2):
            super().__init__()
            self.heads, self.groups, self.width = heads, groups, d // heads
            lora = LoraGpt.Lora
            self.q, self.k, self.v, self.o = lora(d, d), nn.Linear(d, groups * self.width, bias=False), lora(d, groups * self.width), nn.Linear(d, d, bias=False)
            self.n1, self.n2 = nn.RMSNorm(d), nn.RMSNorm(d)
            self.gate, self.up, self.down = nn.Linear(d, 2 * d, bias=False), nn.Linear(d, 2 * d, bias=False), nn.Linear(2 * d, d, bias=False)

        def turn(self, x, cos, sin):
            a, b = x.chunk(2, dim=-1)
            return x * cos + torch.cat((-b, a), dim=-1) * sin

        def forward(self, x, cos, sin):
            b, t, _ = x.shape
            y = self.n1(x)
            q = self.turn(self.q(y).view(b, t, self.heads, self.width).transpose(1, 2), cos, sin)
            k = self.turn(self.k(y).view(b, t, self.groups, self.width).transpose(1, 2), cos, sin)
            v = self.v(y).view(b, t, self.groups, self.width).transpose(1, 2)
            k, v = (z.repeat_interleave(self.heads // self.groups, dim=1) for z in (k, v))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, -1)
            x = x + self.o(y)
            y = self.n2(x)
            return x + self.down(F.silu(self.gate(y)) * self.up(y))

    def __init__(self, vocabulary=300, d=64, length=24):
        super().__init__()
        self.embed, self.blocks, self.norm, self.head = nn.Embedding(vocabulary, d), nn.ModuleList([self.Block(d) for _ in range(2)]), nn.RMSNorm(d), nn.Linear(d, vocabulary, bias=False)
        angle = torch.outer(torch.arange(length).float(), 10000.0 ** (-torch.arange(0, 16, 2).float() / 16)).repeat(1, 2)
        self.register_buffer("cos", angle.cos(), persistent=False)
        self.register_buffer("sin", angle.sin(), persistent=False)
        for name, p in self.named_parameters():
            p.requires_grad_(".a." in name or ".b." in name)

    def forward(self, ids):
        x = self.embed(ids)
        for block in self.blocks:
            x = block(x, self.cos[:ids.shape[1]], self.sin[:ids.shape[1]])
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits[:, :-1].reshape(-1, logits.shape[-1]).float(), ids[:, 1:].reshape(-1))


class SparseAutoencoder(nn.Module):
    """The largest activations of a wide dictionary, scattered back; what dead ones can explain of the rest; normalised inputs."""

    def __init__(self, d=64, n=512, k=16, k_aux=32):
        super().__init__()
        self.encoder, self.decoder, self.bias = nn.Linear(d, n, bias=False), nn.Linear(n, d, bias=False), nn.Parameter(torch.zeros(d))
        self.latent_bias, self.k, self.k_aux = nn.Parameter(torch.zeros(n)), k, k_aux
        self.register_buffer("dead", torch.zeros(n, dtype=torch.bool))

    def top(self, pre, k):
        values, at = torch.topk(pre, k=k, dim=-1)
        return torch.zeros_like(pre).scatter_(-1, at, F.relu(values))

    def forward(self, x):
        mu = x.mean(dim=-1, keepdim=True)
        x = x - mu
        std = x.std(dim=-1, keepdim=True)
        x = x / (std + 1e-5)
        pre = self.encoder(x - self.bias) + self.latent_bias
        seen = self.decoder(self.top(pre, self.k)) + self.bias
        rest = x - seen.detach()
        aux = self.decoder(self.top(torch.where(self.dead, pre, torch.full_like(pre, -1e9)), self.k_aux))
        normed = lambda y, z: ((y - z) ** 2).mean(dim=1) / (z ** 2).mean(dim=1)  # noqa: E731
        return normed(seen, x).mean() + normed(aux, rest).nan_to_num(0).mean() / 32


class Capsules(nn.Module):
    """Capsules that agree by routing, three times; margins, and pictures made anew."""

    def __init__(self, classes=10, routes=8 * 36, d=8, e=16):
        super().__init__()
        self.conv, self.primary = nn.Conv2d(1, 64, 9), nn.Conv2d(64, 64, 9, stride=2)
        self.w, self.d = nn.Parameter(0.01 * torch.randn(1, routes, classes, e, d)), d
        self.decoder = nn.Sequential(nn.Linear(classes * e, 128), nn.ReLU(inplace=True), nn.Linear(128, 784), nn.Sigmoid())

    def squash(self, s, dim=-1):
        n = (s ** 2).sum(dim=dim, keepdim=True)
        return n / (1 + n) * s / torch.sqrt(n + 1e-8)

    def forward(self, images, target):
        x = self.primary(F.relu(self.conv(images), inplace=True))
        b = x.size(0)
        u = self.squash(x.view(b, 8, self.d, -1).permute(0, 1, 3, 2).reshape(b, -1, self.d))
        seen = (self.w @ u[:, :, None, :, None]).squeeze(-1)
        fixed = seen.detach()
        logits = torch.zeros(b, seen.shape[1], seen.shape[2], 1, device=images.device)
        for i in range(3):
            c = F.softmax(logits, dim=2)
            if i == 2:
                v = self.squash((c * seen).sum(dim=1))
            else:
                logits = logits + (fixed * self.squash((c * fixed).sum(dim=1)).unsqueeze(1)).sum(dim=-1, keepdim=True)
        length = (v ** 2).sum(dim=-1).sqrt()
        hot = F.one_hot(target, 10).float()
        margin = (hot * F.relu(0.9 - length) ** 2 + 0.5 * (1 - hot) * F.relu(length - 0.1) ** 2).sum(dim=1).mean()
        made = self.decoder((v * hot.unsqueeze(-1)).flatten(1))
        return margin + 0.0005 * F.mse_loss(made, images.flatten(1), reduction="sum")


NETWORKS = [
    Network("ppo", Ppo, together(values(4, 64, 64), numbers(), values(), values(), values()), "none", 16, 24),
    Network("sac", Sac, together(values(17), values(6), values(), values(17), values()), "none", 32, 48),
    Network("byol", Byol, together(image(32), image(32)), "none"),
    Network("vic_reg", VicReg, together(image(32), image(32)), "none", 8, 12),
    Network("decision_transformer", DecisionTransformer, together(values(10, 11), values(10, 3), values(10, 1), numbers(10)), "none"),
    Network("detr", Detr, together(image(64), numbers(10), values(10, 4)), "none"),
    Network("hifi_gan", HifiGan, together(values(20, 16), values(1, 256)), "none"),
    Network("bilstm_crf", BiLstmCrf, together(numbers(9), numbers(9, 6), numbers(9)), "none"),
    Network("perceiver", Perceiver, image(24)),
    Network("patch_tst", PatchTst, together(values(96, 5), values(24, 5)), "none"),
    Network("n_beats", NBeats, together(values(60), values(12)), "none", 32, 48),
    Network("ddpm", Ddpm, together(image(16), numbers()), "none"),
    Network("lora_gpt", LoraGpt, numbers(24), "none"),
    Network("sparse_autoencoder", SparseAutoencoder, values(64), "none", 32, 48),
    Network("capsules", Capsules, together(values(1, 28, 28), numbers()), "none"),
]
