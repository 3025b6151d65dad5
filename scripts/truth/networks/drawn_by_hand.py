"""Networks as practitioners write them, of kinds that no other list has. Written down before one was exported; predicted once."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

from .common import Network, image, numbers, together, values


class Graphormer(nn.Module):
    """Attention with a bias of degrees and distances, both embedded; masked by the number of nodes."""

    def __init__(self, d=48, heads=4, layers=3):
        super().__init__()
        self.atom, self.degree, self.spatial = nn.Embedding(40, d, padding_idx=0), nn.Embedding(12, d), nn.Embedding(8, heads)
        self.blocks = nn.ModuleList([nn.ModuleDict({"norm": nn.LayerNorm(d), "qkv": nn.Linear(d, 3 * d), "out": nn.Linear(d, d),
                                                    "ffn": nn.Sequential(nn.LayerNorm(d), nn.Linear(d, 2 * d), nn.GELU(), nn.Dropout(0.1),
                                                                         nn.Linear(2 * d, d))}) for _ in range(layers)])
        self.heads, self.head = heads, nn.Linear(d, 5)

    def forward(self, atoms, degrees, distances):
        h = self.atom(atoms) + self.degree(degrees)
        b, n, d = h.shape
        bias = self.spatial(distances).permute(0, 3, 1, 2).masked_fill((atoms == 39)[:, None, None, :], float("-inf"))
        for block in self.blocks:
            q, k, v = block["qkv"](block["norm"](h)).view(b, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
            a = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(d // self.heads) + bias, dim=-1)
            h = h + block["out"]((F.dropout(a, 0.1, self.training) @ v).transpose(1, 2).reshape(b, n, d))
            h = h + block["ffn"](h)
        return self.head(h[:, 0])


class Hourglass(nn.Module):
    """Two stacked hourglasses by recursion, a loss for each."""

    class Residual(nn.Module):
        def __init__(self, i, o):
            super().__init__()
            self.body = nn.Sequential(nn.BatchNorm2d(i), nn.ReLU(), nn.Conv2d(i, o // 2, 1), nn.BatchNorm2d(o // 2), nn.ReLU(True),
                                      nn.Conv2d(o // 2, o // 2, 3, padding=1), nn.BatchNorm2d(o // 2), nn.ReLU(True), nn.Conv2d(o // 2, o, 1))
            self.skip = nn.Conv2d(i, o, 1) if i != o else nn.Identity()

        def forward(self, x):
            return self.body(x) + self.skip(x)

    class Glass(nn.Module):
        def __init__(self, depth, c):
            super().__init__()
            R = Hourglass.Residual
            self.up, self.low1, self.low3 = R(c, c), R(c, c), R(c, c)
            self.low2 = Hourglass.Glass(depth - 1, c) if depth > 1 else R(c, c)

        def forward(self, x):
            low = self.low3(self.low2(self.low1(F.max_pool2d(x, 2, stride=2))))
            return self.up(x) + F.interpolate(low, scale_factor=2)

    def __init__(self, c=32, joints=6):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, c, 7, 2, 3), nn.BatchNorm2d(c), nn.ReLU(inplace=True), self.Residual(c, c))
        self.glasses = nn.ModuleList([self.Glass(3, c) for _ in range(2)])
        self.out = nn.ModuleList([nn.Conv2d(c, joints, 1) for _ in range(2)])
        self.merge = nn.Conv2d(joints, c, 1)

    def forward(self, x, target):
        x, loss = self.stem(x), 0
        for i, glass in enumerate(self.glasses):
            y = glass(x)
            p = self.out[i](y)
            loss = loss + F.mse_loss(p, target)
            if i == 0:
                x = x + y + self.merge(p)
        return loss


class SetTransformer(nn.Module):
    """Induced points with nn.MultiheadAttention, pooled by a seed."""

    def __init__(self, d=32, points=6):
        super().__init__()
        self.embed, self.points, self.seed = nn.Linear(3, d), nn.Parameter(torch.randn(1, points, d)), nn.Parameter(torch.randn(1, 1, d))
        self.a, self.b, self.c = (nn.MultiheadAttention(d, 4, dropout=0.1, batch_first=True) for _ in range(3))
        self.n1, self.n2, self.head = nn.LayerNorm(d), nn.LayerNorm(d), nn.Linear(d, 7)

    def forward(self, x):
        x = self.embed(x)
        h, _ = self.a(self.points.expand(x.size(0), -1, -1), x, x, need_weights=False)
        x = self.n1(x + self.b(x, h, h)[0])
        x = self.n2(x + F.relu(x))
        return self.head(self.c(self.seed.repeat(x.size(0), 1, 1), x, x)[0].squeeze(1))


class VqGan(nn.Module):
    """Encoder, codes by nearest neighbour with a straight-through estimator, decoder; commitment and hinge."""

    def __init__(self, c=32, codes=64):
        super().__init__()
        self.enc = nn.Sequential(nn.Conv2d(3, c, 3, 1, 1), nn.GroupNorm(8, c), nn.SiLU(), nn.Conv2d(c, c, 4, 2, 1), nn.SiLU(), nn.Conv2d(c, c, 4, 2, 1))
        self.dec = nn.Sequential(nn.Conv2d(c, c, 3, 1, 1), nn.SiLU(), nn.Upsample(scale_factor=2), nn.Conv2d(c, c, 3, 1, 1), nn.SiLU(),
                                 nn.Upsample(scale_factor=2), nn.Conv2d(c, 3, 3, 1, 1), nn.Sigmoid())
        self.book = nn.Embedding(codes, c)
        self.critic = nn.Sequential(nn.Conv2d(3, c, 4, 2, 1), nn.LeakyReLU(0.2, True), nn.Conv2d(c, 1, 4, 2, 1))

    def forward(self, x):
        z = self.enc(x).permute(0, 2, 3, 1).contiguous()
        flat = z.view(-1, z.shape[-1])
        with torch.no_grad():
            d = flat.pow(2).sum(1, keepdim=True) - 2 * flat @ self.book.weight.t() + self.book.weight.pow(2).sum(1)
            index = d.argmin(1)
        q = self.book(index).view_as(z)
        vq = F.mse_loss(q, z.detach()) + 0.25 * F.mse_loss(z, q.detach())
        out = self.dec((z + (q - z).detach()).permute(0, 3, 1, 2))
        return F.l1_loss(out, x) + vq - 0.1 * self.critic(out).mean() + F.relu(1 - self.critic(x)).mean()


class TftCell(nn.Module):
    """Gated residual networks, variable selection, an LSTM and attention with a triangular mask."""

    class Grn(nn.Module):
        def __init__(self, d):
            super().__init__()
            self.a, self.b, self.g, self.n, self.drop = nn.Linear(d, d), nn.Linear(d, d), nn.Linear(d, 2 * d), nn.LayerNorm(d), nn.Dropout(0.1)

        def forward(self, x):
            return self.n(x + F.glu(self.g(self.drop(self.b(F.elu(self.a(x))))), dim=-1))

    def __init__(self, variables=5, d=24):
        super().__init__()
        self.embed = nn.ModuleList([nn.Linear(1, d) for _ in range(variables)])
        self.each = nn.ModuleList([self.Grn(d) for _ in range(variables)])
        self.choose, self.lstm = nn.Linear(variables * d, variables), nn.LSTM(d, d, batch_first=True)
        self.attend, self.last, self.out = nn.MultiheadAttention(d, 2, batch_first=True), self.Grn(d), nn.Linear(d, 3)

    def forward(self, x, y):
        parts = [e(x[..., i:i + 1]) for i, e in enumerate(self.embed)]
        weights = torch.softmax(self.choose(torch.cat(parts, -1)), -1)
        h = sum(w.unsqueeze(-1) * g(p) for w, g, p in zip(weights.unbind(-1), self.each, parts))
        h = h + self.lstm(h)[0]
        mask = torch.triu(torch.ones(h.size(1), h.size(1), dtype=torch.bool, device=h.device), 1)
        q = self.out(self.last(h + self.attend(h, h, h, attn_mask=mask, need_weights=False)[0]))
        e = y.unsqueeze(-1) - q
        return torch.maximum(e * torch.tensor([0.1, 0.5, 0.9], device=e.device), e * torch.tensor([-0.9, -0.5, -0.1], device=e.device)).mean()


class Mlp4Rec(nn.Module):
    """Embeddings in a dict by feature, crossed, with L2 of the embeddings in the loss."""

    def __init__(self, sizes=(("user", 500), ("item", 900), ("city", 60)), d=16):
        super().__init__()
        self.tables = nn.ModuleDict({k: nn.Embedding(n, d) for k, n in sizes})
        self.mlp = nn.Sequential(nn.Linear(d * len(sizes) + 3, 64), nn.BatchNorm1d(64), nn.PReLU(), nn.Dropout(0.2), nn.Linear(64, 1))

    def forward(self, user, item, city, click):
        batch = {"user": user, "item": item, "city": city}
        e = {k: table(batch[k]) for k, table in self.tables.items()}
        cross = torch.stack([(e[a] * e[b]).sum(-1) for a, b in (("user", "item"), ("user", "city"), ("item", "city"))], -1)
        p = self.mlp(torch.cat(list(e.values()) + [cross], -1)).squeeze(-1)
        return F.binary_cross_entropy_with_logits(p, click) + 1e-4 * sum(v.pow(2).mean() for v in e.values())


class Griffin(nn.Module):
    """Local attention by unfold, and a gated recurrence as a Python loop."""

    def __init__(self, vocab=200, d=32, window=8):
        super().__init__()
        self.embed, self.window = nn.Embedding(vocab, d), window
        self.gate, self.value, self.decay = nn.Linear(d, d), nn.Linear(d, d), nn.Parameter(torch.full((d,), 2.0))
        self.q, self.kv, self.norm = nn.Linear(d, d), nn.Linear(d, 2 * d), nn.RMSNorm(d)
        self.head = nn.Linear(d, vocab, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, tokens):
        x = self.embed(tokens)
        a = torch.sigmoid(self.decay) ** (8 * torch.sigmoid(self.gate(x)))
        v, h, out = self.value(x), torch.zeros_like(x[:, 0]), []
        for t in range(x.size(1)):
            h = a[:, t] * h + torch.sqrt(1 - a[:, t] ** 2 + 1e-6) * v[:, t]
            out.append(h)
        x = self.norm(x + torch.stack(out, 1))
        k, v = F.pad(self.kv(x), (0, 0, self.window - 1, 0)).unfold(1, self.window, 1).chunk(2, dim=2)
        a = torch.softmax(torch.einsum("btd,btdw->btw", self.q(x), k) / 6, -1)
        return self.head(x + torch.einsum("btw,btdw->btd", a, v)).transpose(1, 2)


class BoxHeads(nn.Module):
    """Features of two scales, classes and boxes reshaped and joined; GIoU against boxes that are given."""

    def __init__(self, c=24, classes=4, anchors=3):
        super().__init__()
        block = lambda i, o, s: nn.Sequential(nn.Conv2d(i, o, 3, s, 1, bias=False), nn.BatchNorm2d(o), nn.SiLU(inplace=True))  # noqa: E731
        self.stem, self.down = nn.Sequential(block(3, c, 2), block(c, c, 2), block(c, c, 1)), block(c, 2 * c, 2)
        self.heads, self.k = nn.ModuleList([nn.Conv2d(c, anchors * (classes + 4), 1), nn.Conv2d(2 * c, anchors * (classes + 4), 1)]), classes + 4

    def forward(self, x, boxes, labels):
        p3 = self.stem(x)
        flat = [h(f).flatten(2).transpose(1, 2).reshape(x.shape[0], -1, self.k) for h, f in zip(self.heads, (p3, self.down(p3)))]
        out = torch.cat(flat, 1)
        wh, xy = out[..., 2:4].exp().clamp(max=8), out[..., :2]
        lt, rb = torch.max(xy, boxes[..., :2]), torch.min(xy + wh, boxes[..., 2:])
        inter = (rb - lt).clamp(min=0).prod(-1)
        union = wh.prod(-1) + (boxes[..., 2:] - boxes[..., :2]).prod(-1) - inter + 1e-6
        return (1 - inter / union).mean() + F.cross_entropy(out[..., 4:].flatten(0, 1), labels.flatten())


class NeuralProcess(nn.Module):
    """Latent and deterministic paths; KL between two normal distributions of torch.distributions."""

    def __init__(self, d=48):
        super().__init__()
        mlp = lambda i, o: nn.Sequential(nn.Linear(i, d), nn.ReLU(), nn.Linear(d, d), nn.ReLU(), nn.Linear(d, o))  # noqa: E731
        self.r, self.s, self.z, self.dec = mlp(2, d), mlp(2, d), nn.Linear(d, 2 * d), mlp(2 * d + 1, 2)

    def latent(self, x, y):
        mu, raw = self.z(self.s(torch.cat([x, y], -1)).mean(1)).chunk(2, -1)
        return torch.distributions.Normal(mu, 0.1 + 0.9 * torch.sigmoid(raw), validate_args=False)

    def forward(self, x, y):
        cx, cy = x[:, :8], y[:, :8]
        prior, post = self.latent(cx, cy), self.latent(x, y)
        r = self.r(torch.cat([cx, cy], -1)).mean(1)
        z = post.rsample()
        h = torch.cat([r, z], -1).unsqueeze(1).expand(-1, x.size(1), -1)
        mu, raw = self.dec(torch.cat([h, x], -1)).chunk(2, -1)
        nll = -torch.distributions.Normal(mu, 0.1 + F.softplus(raw), validate_args=False).log_prob(y).mean()
        return nll + torch.distributions.kl_divergence(post, prior).mean()


class EarlyExit(nn.Module):
    """A classifier behind each stage; each later one learns from the last, detached."""

    def __init__(self):
        super().__init__()
        self.stages, self.exits, i = nn.ModuleList(), nn.ModuleList(), 3
        for o in (16, 32, 64):
            self.stages.append(nn.Sequential(nn.Conv2d(i, o, 3, 2, 1), nn.InstanceNorm2d(o, affine=True), nn.Mish(inplace=True),
                                             nn.Conv2d(o, o, 3, 1, 1, groups=o), nn.Conv2d(o, o, 1), nn.Hardswish()))
            self.exits.append(nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.2), nn.Linear(o, 10)))
            i = o

    def forward(self, x, y):
        logits = []
        for stage, exit in zip(self.stages, self.exits):
            x = stage(x)
            logits.append(exit(x))
        teacher = F.softmax(logits[-1].detach() / 3, dim=-1)
        loss = F.cross_entropy(logits[-1], y)
        for out in logits[:-1]:
            loss += F.kl_div(F.log_softmax(out / 3, dim=-1), teacher, reduction="batchmean") + F.cross_entropy(out, y)
        return loss


NETWORKS = [
    Network("graphormer", Graphormer, together(numbers(16), numbers(16), numbers(16, 16))),
    Network("hourglass", Hourglass, together(image(), values(6, 32, 32)), "none"),
    Network("set_transformer", SetTransformer, values(40, 3)),
    Network("vq_gan", VqGan, image(32), "none"),
    Network("temporal_fusion", TftCell, together(values(20, 5), values(20)), "none"),
    Network("crossed_tables", Mlp4Rec, together(numbers(), numbers(), numbers(), values()), "none"),
    Network("griffin", Griffin, numbers(24)),
    Network("box_heads", BoxHeads, together(image(), values(960, 4), numbers(960)), "none"),
    Network("neural_process", NeuralProcess, together(values(20, 1), values(20, 1)), "none"),
    Network("early_exit", EarlyExit, together(image(32), numbers()), "none"),
]
