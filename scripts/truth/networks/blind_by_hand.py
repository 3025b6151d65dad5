"""Networks as practitioners write them, one for each habit of code. Written down before one was exported; predicted once."""
import copy
import functools
import math
from collections import OrderedDict

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.utils.checkpoint as cp

from .common import Network, image, numbers, together, values


class InfoGan(nn.Module):
    """One trunk for the discriminator and for the codes, least squares."""

    def __init__(self, z=32, c=6):
        super().__init__()
        self.gen = nn.Sequential(nn.ConvTranspose2d(z + c, 64, 4), nn.BatchNorm2d(64), nn.ReLU(True), nn.ConvTranspose2d(64, 32, 4, 2, 1),
                                 nn.BatchNorm2d(32), nn.ReLU(True), nn.ConvTranspose2d(32, 16, 4, 2, 1), nn.BatchNorm2d(16), nn.ReLU(True),
                                 nn.ConvTranspose2d(16, 3, 4, 2, 1), nn.Tanh())
        self.trunk = nn.Sequential(nn.Conv2d(3, 16, 4, 2, 1), nn.LeakyReLU(0.1, inplace=True), nn.Conv2d(16, 32, 4, 2, 1), nn.BatchNorm2d(32),
                                   nn.LeakyReLU(0.1, inplace=True), nn.Conv2d(32, 64, 8), nn.LeakyReLU(0.1, inplace=True))
        self.d, self.q, self.mu = nn.Conv2d(64, 1, 1), nn.Conv2d(64, c - 2, 1), nn.Conv2d(64, 2, 1)

    def forward(self, real, z, code, label):
        fake = self.gen(torch.cat([z, code], 1)[:, :, None, None])
        d_real = self.d(self.trunk(real)).view(-1)
        d_fake = self.d(self.trunk(fake.detach())).view(-1)
        loss_d = 0.5 * ((d_real - 1) ** 2).mean() + 0.5 * (d_fake ** 2).mean()
        feature = self.trunk(fake)
        info = F.cross_entropy(self.q(feature).flatten(1), label) + 0.1 * F.mse_loss(self.mu(feature).flatten(1), code[:, -2:])
        return loss_d + 0.5 * ((self.d(feature).view(-1) - 1) ** 2).mean() + info


class LadderVAE(nn.Module):
    def __init__(self, x=196, h=(128, 64), z=(24, 12)):
        super().__init__()
        self.up = nn.ModuleList([nn.Sequential(nn.Linear(i, o), nn.BatchNorm1d(o), nn.ELU()) for i, o in zip((x,) + h, h)])
        self.q = nn.ModuleList([nn.Linear(a, 2 * b) for a, b in zip(h, z)])
        self.p = nn.Sequential(nn.Linear(z[1], 64), nn.ELU(), nn.Linear(64, 2 * z[0]))
        self.dec = nn.Sequential(nn.Linear(z[0], 128), nn.ELU(), nn.Linear(128, x))

    def reparam(self, mu, logvar):
        return mu + torch.randn_like(mu) * torch.exp(logvar / 2) if self.training else mu

    def forward(self, x):
        d, stats = x, []
        for up, q in zip(self.up, self.q):
            d = up(d)
            stats.append(q(d).chunk(2, dim=1))
        (m1, v1), (m2, v2) = stats
        z2 = self.reparam(m2, v2)
        pm, pv = self.p(z2).chunk(2, 1)
        prec_q, prec_p = torch.exp(-v1), torch.exp(-pv)
        var = 1 / (prec_q + prec_p)
        mu = (m1 * prec_q + pm * prec_p) * var
        z1 = self.reparam(mu, var.log())
        kl2 = -0.5 * (1 + v2 - m2.pow(2) - v2.exp()).sum(1)
        kl1 = 0.5 * (pv - var.log() + (var + (mu - pm) ** 2) / pv.exp() - 1).sum(1)
        return (F.binary_cross_entropy_with_logits(self.dec(z1), x, reduction="none").sum(-1) + kl1 + kl2).mean()


class Translator(nn.Module):
    """LSTM cells with Luong's attention and input feeding; the target is given."""

    def __init__(self, vs=300, vt=260, e=32, h=48):
        super().__init__()
        self.h, self.src, self.tgt = h, nn.Embedding(vs, e, padding_idx=0), nn.Embedding(vt, e, padding_idx=0)
        self.encoder, self.decoder = nn.LSTM(e, h, bidirectional=True, batch_first=True), nn.LSTMCell(e + h, h)
        self.h_proj, self.c_proj, self.att = nn.Linear(2 * h, h, bias=False), nn.Linear(2 * h, h, bias=False), nn.Linear(2 * h, h, bias=False)
        self.combine, self.vocab, self.dropout = nn.Linear(3 * h, h, bias=False), nn.Linear(h, vt, bias=False), nn.Dropout(0.3)

    def step(self, y_bar, state, enc, enc_proj, mask):
        state = self.decoder(y_bar, state)
        e_t = torch.bmm(enc_proj, state[0].unsqueeze(2)).squeeze(2)
        e_t = e_t.masked_fill(mask, -float("inf"))
        alpha = F.softmax(e_t, dim=1)
        a_t = torch.bmm(alpha.unsqueeze(1), enc).squeeze(1)
        return state, self.dropout(torch.tanh(self.combine(torch.cat((state[0], a_t), dim=1))))

    def forward(self, source, target):
        mask = source < 0
        enc, (h, c) = self.encoder(self.src(source))
        state = (self.h_proj(torch.cat((h[0], h[1]), 1)), self.c_proj(torch.cat((c[0], c[1]), 1)))
        enc_proj, o_prev, outs = self.att(enc), torch.zeros(source.size(0), self.h, device=source.device), []
        for y_t in torch.split(self.tgt(target[:, :-1]), 1, dim=1):
            state, o_prev = self.step(torch.cat((y_t.squeeze(1), o_prev), dim=-1), state, enc, enc_proj, mask)
            outs.append(o_prev)
        logp = F.log_softmax(self.vocab(torch.stack(outs)), dim=-1)
        gold = torch.gather(logp, index=target.t()[1:].unsqueeze(-1), dim=-1).squeeze(-1)
        return -(gold * (target.t()[1:] >= 0).float()).sum() / target.size(0)


class MeshNet(nn.Module):
    """Encode, process, decode: messages on edges, sums at nodes, in flat batches."""

    class Layer(nn.Module):
        def __init__(self, d):
            super().__init__()
            def mlp(i):
                return nn.Sequential(nn.Linear(i, d), nn.ReLU(), nn.Linear(d, d), nn.LayerNorm(d))
            self.edge, self.node = mlp(3 * d), mlp(2 * d)

        def forward(self, x, e, src, dst):
            m = self.edge(torch.cat([x[src], x[dst], e], dim=-1))
            agg = torch.zeros_like(x).scatter_add_(0, dst.unsqueeze(-1).expand_as(m), m)
            return x + self.node(torch.cat([x, agg], dim=-1)), e + m

    def __init__(self, d=32):
        super().__init__()
        self.n, self.e = nn.Linear(6, d), nn.Linear(3, d)
        self.layers, self.out = nn.ModuleList(self.Layer(d) for _ in range(3)), nn.Linear(d, 3)

    def forward(self, nodes, edges, index):
        b, n, _ = nodes.shape
        offset = torch.arange(b, device=nodes.device)[:, None, None] * n
        src, dst = (index + offset).permute(2, 0, 1).reshape(2, -1)
        x, e = self.n(nodes.flatten(0, 1)), self.e(edges.flatten(0, 1))
        for layer in self.layers:
            x, e = layer(x, e, src, dst)
        return self.out(x).view(b, n, -1)


class XDeepFM(nn.Module):
    def __init__(self, fields=(50, 20, 70, 10, 30, 40), d=16, cin=(24, 24)):
        super().__init__()
        self.register_buffer("offsets", torch.tensor((0,) + fields[:-1]).cumsum(0))
        self.embedding, self.linear = nn.Embedding(sum(fields), d), nn.Embedding(sum(fields), 1)
        self.bias = nn.Parameter(torch.zeros(1))
        sizes = [len(fields), *cin]
        self.cin = nn.ModuleList(nn.Conv1d(sizes[0] * s, o, 1) for s, o in zip(sizes, cin))
        self.fc = nn.Linear(sum(cin), 1)
        layers, i = [], len(fields) * d
        for o in (64, 32):
            layers += [nn.Linear(i, o), nn.BatchNorm1d(o), nn.ReLU(), nn.Dropout(p=0.2)]
            i = o
        self.mlp = nn.Sequential(*layers, nn.Linear(i, 1))

    def forward(self, x, y):
        x = x + self.offsets
        e = self.embedding(x)
        xs, x0, h = [], e.unsqueeze(2), e
        for conv in self.cin:
            z = x0 * h.unsqueeze(1)
            b, f0, fin, d = z.shape
            h = F.relu(conv(z.view(b, f0 * fin, d)))
            xs.append(h)
        logit = self.linear(x).sum(1) + self.bias + self.fc(torch.sum(torch.cat(xs, dim=1), 2)) + self.mlp(e.flatten(1))
        return F.binary_cross_entropy(torch.sigmoid(logit.squeeze(1)), y)


class MultiScaleFlow(nn.Module):
    """Squeeze, checkerboards, split."""

    class Coupling(nn.Module):
        def __init__(self, c, flip):
            super().__init__()
            self.net = nn.Sequential(nn.Conv2d(c, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 32, 1), nn.ReLU(), nn.Conv2d(32, 2 * c, 3, padding=1))
            self.scale, self.flip = nn.Parameter(torch.ones(c, 1, 1)), flip

        def forward(self, x, logdet):
            h, w = x.shape[-2:]
            mask = (torch.arange(h, device=x.device)[:, None] + torch.arange(w, device=x.device)) % 2 == self.flip
            mask = mask.to(x.dtype)[None, None]
            s, t = self.net(x * mask).chunk(2, 1)
            s = torch.tanh(s) * self.scale * (1 - mask)
            return x * torch.exp(s) + t * (1 - mask), logdet + s.flatten(1).sum(-1)

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.ModuleList(self.Coupling(3, i % 2) for i in range(2)), nn.ModuleList(self.Coupling(12, i % 2) for i in range(2))

    def forward(self, x):
        x = x * 0.9 + 0.05
        logdet = -(torch.log(x) + torch.log(1 - x)).sum((1, 2, 3))
        x = torch.log(x) - torch.log(1 - x)
        for f in self.a:
            x, logdet = f(x, logdet)
        x = F.pixel_unshuffle(x, 2)
        for f in self.b:
            x, logdet = f(x, logdet)
        prior = sum((-0.5 * z ** 2 - 0.5 * math.log(2 * math.pi)).flatten(1).sum(1) for z in torch.split(x, [6, 6], dim=1))
        return -(prior + logdet).mean() / 3072


class MipNerf(nn.Module):
    """Integrated encodings of cones, two levels of samples; the second is drawn from the first one's weights."""

    def __init__(self, freq=6, w=64, n=16):
        super().__init__()
        self.freq, self.n = freq, n
        self.net1 = nn.Sequential(nn.Linear(6 * freq, w), nn.ReLU(True), nn.Linear(w, w), nn.ReLU(True))
        self.net2 = nn.Sequential(nn.Linear(6 * freq + w, w), nn.ReLU(True))
        self.sigma, self.rgb = nn.Linear(w, 1), nn.Sequential(nn.Linear(w + 3, 32), nn.ReLU(True), nn.Linear(32, 3), nn.Sigmoid())

    def encode(self, mean, var):
        scale = 2.0 ** torch.arange(self.freq, device=mean.device)
        y = (mean[..., None, :] * scale[:, None]).flatten(-2)
        v = (var[..., None, :] * scale[:, None] ** 2).flatten(-2)
        return torch.exp(-0.5 * torch.cat([v, v], -1)) * torch.sin(torch.cat([y, y + 0.5 * math.pi], dim=-1))

    def level(self, o, d, t):
        mid, half = (t[..., 1:] + t[..., :-1]) / 2, (t[..., 1:] - t[..., :-1]) / 2
        mean = o[:, None] + mid[..., None] * d[:, None]
        x = self.encode(mean, (half ** 2 / 3)[..., None].expand_as(mean))
        h = self.net2(torch.cat([self.net1(x), x], -1))
        rgb = self.rgb(torch.cat([h, d[:, None].expand(-1, h.shape[1], -1)], -1))
        dd = F.softplus(self.sigma(h).squeeze(-1) - 1) * (2 * half)
        alpha = 1 - torch.exp(-dd)
        trans = torch.exp(-torch.cat([torch.zeros_like(dd[:, :1]), torch.cumsum(dd[:, :-1], -1)], -1))
        weights = alpha * trans
        return (weights[..., None] * rgb).sum(1), weights

    def forward(self, o, d, target):
        t = torch.linspace(2.0, 6.0, self.n + 1, device=o.device).expand(o.shape[0], self.n + 1)
        c, w = self.level(o, d, t)
        with torch.no_grad():
            cdf = torch.cumsum((w + 0.01) / (w + 0.01).sum(-1, keepdim=True), -1)
            u = torch.linspace(0, 0.999, self.n + 1, device=o.device).expand(o.shape[0], -1).contiguous()
            t2 = torch.gather(t, 1, torch.searchsorted(cdf, u).clamp(max=self.n))
            t2, _ = torch.sort(t2 + 0.01 * torch.rand_like(t2), dim=-1)
        f, _ = self.level(o, d, t2)
        return 0.1 * F.mse_loss(c, target) + F.mse_loss(f, target)


class UViT(nn.Module):
    """A diffusion transformer with tokens for time and class and long skips; flow matching."""

    class Block(nn.Module):
        def __init__(self, d, skip=False):
            super().__init__()
            self.skip = nn.Linear(2 * d, d) if skip else None
            self.n1, self.n2, self.qkv, self.proj = nn.LayerNorm(d), nn.LayerNorm(d), nn.Linear(d, 3 * d, bias=False), nn.Linear(d, d)
            self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

        def forward(self, x, skip=None):
            if self.skip is not None:
                x = self.skip(torch.cat([x, skip], dim=-1))
            B, L, C = x.shape
            q, k, v = self.qkv(self.n1(x)).reshape(B, L, 3, 4, C // 4).permute(2, 0, 3, 1, 4).unbind(0)
            x = x + self.proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(B, L, C))
            return x + self.mlp(self.n2(x))

    def __init__(self, d=64, depth=2, classes=11):
        super().__init__()
        self.patch, self.label, self.pos = nn.Conv2d(3, d, 4, 4), nn.Embedding(classes, d), nn.Parameter(torch.zeros(1, 66, d))
        self.time = nn.Sequential(nn.Linear(d, 4 * d), nn.SiLU(), nn.Linear(4 * d, d))
        self.ins, self.mid = nn.ModuleList([self.Block(d) for _ in range(depth)]), self.Block(d)
        self.outs = nn.ModuleList([self.Block(d, True) for _ in range(depth)])
        self.norm, self.head, self.final, self.d = nn.LayerNorm(d), nn.Linear(d, 48), nn.Conv2d(3, 3, 3, padding=1), d

    def velocity(self, x, t, y):
        x = self.patch(x).flatten(2).transpose(1, 2)
        freqs = torch.exp(-math.log(10000) * torch.arange(self.d // 2, device=x.device) / (self.d // 2))
        args = t[:, None] * freqs[None]
        emb = self.time(torch.cat([torch.cos(args), torch.sin(args)], -1)).unsqueeze(1)
        x = torch.cat((self.label(y).unsqueeze(1), emb, x), dim=1) + self.pos
        skips = []
        for blk in self.ins:
            x = blk(x)
            skips.append(x)
        x = self.mid(x)
        for blk in self.outs:
            x = blk(x, skips.pop())
        x = self.head(self.norm(x))[:, 2:, :]
        return self.final(F.pixel_shuffle(x.transpose(1, 2).unflatten(2, (8, 8)), 4))

    def forward(self, x1, y):
        t, x0 = torch.rand(x1.shape[0], device=x1.device), torch.randn_like(x1)
        y = torch.where(torch.rand_like(t) < 0.1, 10, y)
        xt = t[:, None, None, None] * x1 + (1 - t[:, None, None, None]) * x0
        return ((self.velocity(xt, t * 1000, y) - (x1 - x0)) ** 2).mean()


class ListUNet(nn.Module):
    class Res(nn.Module):
        def __init__(self, i, o):
            super().__init__()
            self.c1, self.c2 = nn.Conv2d(i, o, 3, padding=1, bias=False), nn.Conv2d(o, o, 3, padding=1, bias=False)
            self.b1, self.b2, self.short = nn.InstanceNorm2d(o, affine=True), nn.InstanceNorm2d(o, affine=True), nn.Conv2d(i, o, 1) if i != o else nn.Identity()

        def forward(self, x):
            out = F.leaky_relu(self.b1(self.c1(x)), 0.01, inplace=True)
            out = self.b2(self.c2(out))
            out += self.short(x)
            return F.leaky_relu(out, 0.01, inplace=True)

    def __init__(self, c=(16, 32, 48, 64), classes=3):
        super().__init__()
        self.enc = nn.ModuleList([self.Res(i, o) for i, o in zip((1,) + c, c)])
        self.up = nn.ModuleList([nn.ConvTranspose2d(c[i + 1], c[i], 2, stride=2) for i in reversed(range(3))])
        self.dec = nn.ModuleList([self.Res(2 * c[i], c[i]) for i in reversed(range(3))])
        self.seg = nn.ModuleList([nn.Conv2d(c[i], classes, 1) for i in reversed(range(3))])

    def forward(self, x):
        skips, outs = [], []
        for i, stage in enumerate(self.enc):
            x = stage(x if i == 0 else F.max_pool2d(x, 2))
            skips.append(x)
        skips.pop()
        for up, dec, seg in zip(self.up, self.dec, self.seg):
            x = dec(torch.cat((up(x), skips.pop()), 1))
            outs.append(seg(x))
        return outs[::-1] if self.training else outs[-1]


class RecurrentA2C(nn.Module):
    """A rollout through a GRU cell that is reset by `done`; advantages by a loop backwards."""

    def __init__(self, obs=12, acts=5, h=64):
        super().__init__()
        self.fc, self.gru = nn.Sequential(nn.Linear(obs, h), nn.Tanh()), nn.GRUCell(h, h)
        self.pi, self.v, self.h = nn.Linear(h, acts), nn.Linear(h, 1), h

    def forward(self, obs, act, rew, done):
        B, T, _ = obs.shape
        hx, hs = obs.new_zeros(B, self.h), []
        z = self.fc(obs)
        for t in range(T):
            hx = self.gru(z[:, t], hx * (1 - done[:, t]).unsqueeze(-1))
            hs.append(hx)
        hs = torch.stack(hs, 1)
        logits, value = self.pi(hs), self.v(hs).squeeze(-1)
        with torch.no_grad():
            adv, last = torch.zeros_like(rew), 0
            for t in reversed(range(T - 1)):
                delta = rew[:, t] + 0.99 * value[:, t + 1] * (1 - done[:, t + 1]) - value[:, t]
                last = delta + 0.99 * 0.95 * (1 - done[:, t + 1]) * last
                adv[:, t] = last
            ret = adv + value
            adv = (adv - adv.mean()) / (adv.std() + 1e-8)
        logp = F.log_softmax(logits, -1)
        chosen = logp.gather(-1, act.unsqueeze(-1)).squeeze(-1)
        entropy = -(logp.exp() * logp).sum(-1).mean()
        return -(adv * chosen).mean() + 0.5 * (ret - value).pow(2).mean() - 0.01 * entropy


class SigLip(nn.Module):
    """Pictures by convolutions, words by a transformer; a sigmoid for each pair."""

    def __init__(self, d=48, vocab=200, words=16):
        super().__init__()
        def stage(i, o):
            return nn.Sequential(nn.Conv2d(i, o, 2, 2), nn.GroupNorm(1, o), nn.Conv2d(o, o, 7, padding=3, groups=o), nn.Conv2d(o, 4 * o, 1), nn.GELU(),
                                 nn.Conv2d(4 * o, o, 1))
        self.visual = nn.Sequential(stage(3, 16), stage(16, 32), stage(32, 64), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, d))
        self.token, self.positions = nn.Embedding(vocab, d), nn.Parameter(torch.empty(words, d).normal_(std=0.01))
        layer = nn.TransformerEncoderLayer(d, 4, 4 * d, 0.0, "gelu", batch_first=True, norm_first=True)
        self.text, self.ln, self.projection = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), nn.LayerNorm(d), nn.Parameter(torch.randn(d, d) * d ** -0.5)
        self.t, self.b = nn.Parameter(torch.tensor(math.log(10.0))), nn.Parameter(torch.tensor(-10.0))

    def forward(self, img, txt):
        zi = F.normalize(self.visual(img), dim=-1)
        x = self.text(self.token(txt) + self.positions)
        zt = self.ln(x)[torch.arange(x.shape[0], device=x.device), txt.argmax(dim=-1)] @ self.projection
        zt = zt / zt.norm(dim=-1, keepdim=True)
        logits = zi @ zt.t() * self.t.exp() + self.b
        labels = 2 * torch.eye(logits.shape[0], device=logits.device) - 1
        return -F.logsigmoid(labels * logits).sum() / logits.shape[0]


class GShard(nn.Module):
    """Two experts for each token, dispatched by one-hot masks with a capacity."""

    def __init__(self, d=32, experts=4, vocab=100):
        super().__init__()
        self.embed, self.n, self.wg = nn.Embedding(vocab, d), experts, nn.Linear(d, experts, bias=False)
        self.w1, self.w2 = nn.Parameter(torch.randn(experts, d, 4 * d) * 0.02), nn.Parameter(torch.randn(experts, 4 * d, d) * 0.02)
        self.norm, self.head = nn.LayerNorm(d), nn.Linear(d, vocab)

    def moe(self, x):
        g, s, d = x.shape
        gates = F.softmax(self.wg(x).float(), dim=-1)
        capacity = 2 * s // self.n
        i1 = gates.argmax(-1)
        m1 = F.one_hot(i1, self.n).to(x.dtype)
        m2 = F.one_hot((gates * (1 - m1)).argmax(-1), self.n).to(x.dtype)
        self.aux = (gates.mean(1) * m1.mean(1)).mean() * self.n ** 2
        p1 = torch.cumsum(m1, 1) - m1
        p2 = torch.cumsum(m2, 1) - m2 + m1.sum(1, keepdim=True)
        m1, m2 = m1 * (p1 < capacity), m2 * (p2 < capacity)
        g1, g2 = (gates * m1).sum(-1), (gates * m2).sum(-1)
        denom = torch.clamp(g1 + g2, min=1e-9)
        combine = 0
        for gate, m, p in ((g1 / denom, m1, p1), (g2 / denom, m2, p2)):
            slot = F.one_hot((p * m).sum(-1).long(), capacity).to(x.dtype) * m.sum(-1, keepdim=True)
            combine = combine + gate[..., None, None] * m[..., None] * slot[:, :, None]
        dispatch = (combine > 0).to(x.dtype)
        h = torch.einsum("gsec,gsm->egcm", dispatch, x)
        h = torch.einsum("egcm,emh->egch", h, self.w1).relu()
        return torch.einsum("gsec,egcm->gsm", combine, torch.einsum("egch,ehm->egcm", h, self.w2))

    def forward(self, ids, targets):
        x = self.embed(ids)
        x = x + self.moe(self.norm(x))
        return F.cross_entropy(self.head(x).transpose(1, 2), targets) + 0.01 * self.aux


class HAN(nn.Module):
    """Documents: GRUs with attention over words, then over sentences."""

    class Attend(nn.Module):
        def __init__(self, d):
            super().__init__()
            self.proj, self.query = nn.Linear(d, d), nn.Parameter(torch.randn(d))

        def forward(self, h):
            a = torch.softmax(torch.tanh(self.proj(h)) @ self.query, dim=1)
            return (a.unsqueeze(-1) * h).sum(dim=1), a

    def __init__(self, vocab=400, e=32, h=24, classes=5):
        super().__init__()
        self.emb, self.word, self.sent = nn.Embedding(vocab, e), nn.GRU(e, h, bidirectional=True, batch_first=True), nn.GRU(2 * h, h, 2, True, True, 0.2, True)
        self.wa, self.sa, self.drop, self.out = self.Attend(2 * h), self.Attend(2 * h), nn.Dropout(0.4), nn.Linear(2 * h, classes)

    def forward(self, docs):
        b, s, w = docs.size()
        self.word.flatten_parameters()
        h, _ = self.word(self.drop(self.emb(docs.view(b * s, w))))
        v, word_alphas = self.wa(h)
        h, _ = self.sent(v.view(b, s, -1))
        v, sentence_alphas = self.sa(h)
        return self.out(self.drop(v))


class LRU(nn.Module):
    """A linear recurrent unit: diagonal, as real and imaginary parts, by a parallel scan of doubling steps."""

    class Layer(nn.Module):
        def __init__(self, d, n):
            super().__init__()
            self.nu, self.theta, self.gamma = nn.Parameter(torch.rand(n)), nn.Parameter(torch.rand(n) * 6.28), nn.Parameter(torch.ones(n))
            self.B, self.C, self.D = nn.Linear(d, 2 * n, bias=False), nn.Linear(2 * n, d, bias=False), nn.Parameter(torch.ones(d))
            self.norm, self.glu = nn.LayerNorm(d), nn.Linear(d, 2 * d)

        def forward(self, x):
            u = self.norm(x)
            re, im = self.B(u).chunk(2, -1)
            re, im = re * self.gamma, im * self.gamma
            mag = torch.exp(-torch.exp(self.nu))
            a, b = mag * torch.cos(self.theta), mag * torch.sin(self.theta)
            step, L = 1, x.shape[1]
            while step < L:
                pr, pi = F.pad(re, (0, 0, step, 0))[:, :L], F.pad(im, (0, 0, step, 0))[:, :L]
                re, im = re + a * pr - b * pi, im + a * pi + b * pr
                a, b = a * a - b * b, 2 * a * b
                step *= 2
            y = self.C(torch.cat([re, -im], -1)) + self.D * u
            return x + F.glu(self.glu(F.gelu(y)), dim=-1)

    def __init__(self, d=32, n=24):
        super().__init__()
        self.inp, self.layers, self.out = nn.Linear(1, d), nn.ModuleList([self.Layer(d, n) for _ in range(3)]), nn.Linear(d, 10)

    def forward(self, x):
        h = functools.reduce(lambda h, f: f(h), self.layers, self.inp(x))
        return self.out(h.mean(dim=1))


class DoRA(nn.Module):
    """Frozen layers, low-rank updates with their own magnitudes, also of convolutions."""

    class Linear(nn.Module):
        def __init__(self, base, r=4):
            super().__init__()
            self.base = base.requires_grad_(False)
            self.A, self.B = nn.Parameter(torch.randn(r, base.in_features) / r), nn.Parameter(torch.zeros(base.out_features, r))
            self.m = nn.Parameter(base.weight.norm(dim=1, keepdim=True).detach().clone())

        def forward(self, x):
            w = self.base.weight + self.B @ self.A
            return F.linear(x, self.m * w / w.norm(dim=1, keepdim=True).detach(), self.base.bias)

    class Conv(nn.Module):
        def __init__(self, base, r=4):
            super().__init__()
            self.base = base.requires_grad_(False)
            self.down, self.up = nn.Conv2d(base.in_channels, r, 3, 1, 1, bias=False), nn.Conv2d(r, base.out_channels, 1, bias=False)
            nn.init.zeros_(self.up.weight)

        def forward(self, x):
            return self.base(x) + self.up(self.down(x)) * 0.5

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(OrderedDict([("c1", nn.Conv2d(3, 32, 3, 1, 1)), ("r1", nn.ReLU()), ("p1", nn.MaxPool2d(2)), ("c2", nn.Conv2d(32, 64, 3, 1, 1)),
                                              ("r2", nn.ReLU()), ("p2", nn.AdaptiveMaxPool2d(4)), ("f", nn.Flatten()), ("l1", nn.Linear(1024, 128)),
                                              ("r3", nn.ReLU()), ("l2", nn.Linear(128, 10))]))
        for name, child in list(self.net.named_children()):
            if isinstance(child, nn.Linear):
                setattr(self.net, name, self.Linear(child))
            elif isinstance(child, nn.Conv2d):
                setattr(self.net, name, self.Conv(child))

    def forward(self, x):
        return self.net(x)


class UniversalTransformer(nn.Module):
    """One layer for all steps, and the output shares the embedding's weight."""

    def __init__(self, vocab=256, d=48, t=20, steps=4):
        super().__init__()
        self.embed, self.pos, self.step = nn.Embedding(vocab, d), nn.Parameter(torch.zeros(t, d)), nn.Embedding(steps, d)
        self.attn, self.n1, self.n2 = nn.MultiheadAttention(d, 4, dropout=0.1, batch_first=True), nn.LayerNorm(d), nn.LayerNorm(d)
        self.ff, self.out, self.steps = nn.Sequential(nn.Linear(d, 4 * d), nn.ReLU(), nn.Dropout(0.1), nn.Linear(4 * d, d)), nn.Linear(d, vocab, bias=False), steps
        self.out.weight = self.embed.weight

    def forward(self, ids):
        x = self.embed(ids) * self.embed.embedding_dim ** 0.5
        mask = torch.triu(torch.ones(ids.size(1), ids.size(1), dtype=torch.bool, device=ids.device), 1)
        for i in range(self.steps):
            x = x + self.pos[:ids.size(1)] + self.step.weight[i]
            x = self.n1(x + self.attn(x, x, x, attn_mask=mask, need_weights=False)[0])
            x = self.n2(x + self.ff(x))
        return self.out(x)


class ChangeDetector(nn.Module):
    """Two pictures through one encoder; absolute differences at three scales."""

    def __init__(self, c=(16, 32, 64)):
        super().__init__()
        self.stages = nn.ModuleList()
        for i, o in zip((3,) + c, c):
            self.stages.append(nn.Sequential(nn.Conv2d(i, o, 3, 2, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU6(inplace=True),
                                             nn.Conv2d(o, o, 3, 1, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU6(inplace=True)))
        self.fuse = nn.ModuleList([nn.Conv2d(o, 24, 1) for o in c])
        self.head = nn.Sequential(nn.Conv2d(72, 24, 3, padding=1), nn.Dropout2d(0.1), nn.ReLU(), nn.Conv2d(24, 2, 1))

    def encode(self, x):
        feats = []
        for s in self.stages:
            x = s(x)
            feats.append(x)
        return feats

    def forward(self, before, after):
        diffs = [torch.abs(a - b) for a, b in zip(self.encode(before), self.encode(after))]
        maps = [F.interpolate(f(d), size=diffs[0].shape[2:], mode="bilinear", align_corners=False) for f, d in zip(self.fuse, diffs)]
        return F.interpolate(self.head(torch.cat(maps, dim=1)), scale_factor=2, mode="bilinear", align_corners=False)


class ImageField(nn.Module):
    """A convolutional encoder writes each picture's own perceptron of coordinates."""

    def __init__(self, h=32):
        super().__init__()
        self.shapes = [(2 * 16, h), (h, h), (h, 3)]
        self.encoder = nn.Sequential(nn.Conv2d(3, 16, 5, 2, 2), nn.SELU(), nn.Conv2d(16, 32, 5, 2, 2), nn.SELU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(128, 64))
        self.hyper = nn.ModuleList(nn.Linear(64, i * o + o) for i, o in self.shapes)
        self.register_buffer("freqs", torch.randn(2, 16) * 10)
        ys, xs = torch.meshgrid(torch.linspace(-1, 1, 24), torch.linspace(-1, 1, 24), indexing="ij")
        self.register_buffer("grid", torch.stack([xs, ys], -1).view(-1, 2))

    def forward(self, x):
        code = self.encoder(x)
        p = 2 * math.pi * self.grid @ self.freqs
        h = torch.cat([p.sin(), p.cos()], -1).unsqueeze(0).repeat(x.shape[0], 1, 1)
        for n, ((i, o), hyper) in enumerate(zip(self.shapes, self.hyper)):
            w, b = hyper(code).split([i * o, o], dim=-1)
            h = torch.baddbmm(b.unsqueeze(1), h, w.view(-1, i, o) / math.sqrt(i))
            if n < len(self.shapes) - 1:
                h = torch.sin(h)
        return F.mse_loss(torch.sigmoid(h).transpose(1, 2).reshape_as(x), x)


class FusedRMSNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, eps):
        rstd = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)
        ctx.save_for_backward(x, weight, rstd)
        return x * rstd * weight

    @staticmethod
    def backward(ctx, grad):
        x, weight, rstd = ctx.saved_tensors
        xhat = x * rstd
        wg = grad * weight
        gx = (wg - xhat * (wg * xhat).mean(-1, keepdim=True)) * rstd
        return gx, (grad * xhat).flatten(0, -2).sum(0), None


class SwiGLUFunction(torch.autograd.Function):
    """Keeps its inputs alone; backward computes the sigmoid again."""

    @staticmethod
    def forward(ctx, gate, up):
        ctx.save_for_backward(gate, up)
        return F.silu(gate) * up

    @staticmethod
    def backward(ctx, grad):
        gate, up = ctx.saved_tensors
        sig = torch.sigmoid(gate)
        silu = gate * sig
        return grad * up * (sig * (1 - silu) + silu), grad * silu


class FusedBlocks(nn.Module):
    def __init__(self, d=48, layers=3):
        super().__init__()
        self.inp, self.out, self.weights = nn.Linear(10, d), nn.Linear(d, 4), nn.ParameterList([nn.Parameter(torch.ones(d)) for _ in range(layers)])
        self.gate, self.up, self.down = (nn.ModuleList(nn.Linear(i, o, bias=False) for _ in range(layers)) for i, o in ((d, 96), (d, 96), (96, d)))

    def forward(self, x):
        x = self.inp(x)
        for w, gate, up, down in zip(self.weights, self.gate, self.up, self.down):
            y = FusedRMSNorm.apply(x, w, 1e-6)
            x = x + down(SwiGLUFunction.apply(gate(y), up(y)))
        return self.out(x.mean(1))


class EfficientDenseNet(nn.Module):
    """Concatenation, norm and the narrow convolution run under a checkpoint."""

    class Layer(nn.Module):
        def __init__(self, i, k):
            super().__init__()
            self.norm1, self.conv1 = nn.BatchNorm2d(i), nn.Conv2d(i, 4 * k, 1, bias=False)
            self.norm2, self.conv2 = nn.BatchNorm2d(4 * k), nn.Conv2d(4 * k, k, 3, padding=1, bias=False)

        def bottleneck(self, *inputs):
            return self.conv1(F.relu(self.norm1(torch.cat(inputs, 1))))

        def forward(self, *prev):
            out = cp.checkpoint(self.bottleneck, *prev, use_reentrant=False) if self.training else self.bottleneck(*prev)
            return F.dropout(self.conv2(F.relu(self.norm2(out))), 0.1, self.training)

    def __init__(self, k=12, n=4):
        super().__init__()
        self.stem, c = nn.Conv2d(3, 24, 3, padding=1, bias=False), 24
        self.blocks, self.trans = nn.ModuleList(), nn.ModuleList()
        for _ in range(2):
            self.blocks.append(nn.ModuleList([self.Layer(c + i * k, k) for i in range(n)]))
            c += n * k
            self.trans.append(nn.Sequential(nn.BatchNorm2d(c), nn.ReLU(inplace=True), nn.Conv2d(c, c // 2, 1, bias=False), nn.AvgPool2d(2)))
            c //= 2
        self.fc = nn.Linear(c, 10)

    def forward(self, x):
        x = self.stem(x)
        for block, trans in zip(self.blocks, self.trans):
            feats = [x]
            for layer in block:
                feats.append(layer(*feats))
            x = trans(torch.cat(feats, 1))
        return self.fc(x.mean((2, 3)))


def rearrange(x, before, after, /, **sizes):
    """A small einops: axes by letters, groups in brackets."""
    def parse(side):
        groups, inner = [], None
        for word in side.replace("(", " ( ").replace(")", " ) ").split():
            if word == "(":
                inner = []
            elif word == ")":
                groups.append(inner)
                inner = None
            else:
                (groups if inner is None else inner).append([word] if inner is None else word)
        return groups
    left, right = parse(before), parse(after)
    for group, n in zip(left, x.shape):
        unknown = [a for a in group if a not in sizes]
        if unknown:
            sizes[unknown[0]] = n // math.prod(sizes[a] for a in group if a in sizes)
    flat = [a for g in left for a in g]
    x = x.reshape([sizes[a] for a in flat]).permute([flat.index(a) for g in right for a in g])
    return x.reshape([math.prod(sizes[a] for a in g) for g in right])


class AxialNet(nn.Module):
    """Attention over windows, then over the grid, written with rearrange()."""

    class Attention(nn.Module):
        def __init__(self, d, heads=4):
            super().__init__()
            self.heads, self.norm, self.to_qkv, self.to_out = heads, nn.LayerNorm(d), nn.Linear(d, 3 * d, bias=False), nn.Linear(d, d)

        def forward(self, x):
            q, k, v = map(lambda t: rearrange(t, "b n (h d)", "b h n d", h=self.heads), self.to_qkv(self.norm(x)).chunk(3, dim=-1))
            sim = torch.einsum("b h i d, b h j d -> b h i j", q * q.shape[-1] ** -0.5, k)
            attn = (sim - sim.amax(dim=-1, keepdim=True).detach()).softmax(dim=-1)
            return self.to_out(rearrange(torch.einsum("b h i j, b h j d -> b h i d", attn, v), "b h n d", "b n (h d)")) + x

    def __init__(self, d=48, p=4):
        super().__init__()
        self.p, self.to_patch = p, nn.Linear(3 * p * p, d)
        self.window, self.grid, self.head = self.Attention(d), self.Attention(d), nn.Sequential(nn.LayerNorm(d), nn.Linear(d, 10))

    def forward(self, img):
        x = self.to_patch(rearrange(img, "b c (h p) (w q)", "b h w (p q c)", p=self.p, q=self.p))
        b, h = x.shape[0], x.shape[1]
        x = self.window(rearrange(x, "b (x m) (y n) d", "(b x y) (m n) d", m=4, n=4))
        x = rearrange(x, "(b x y) (m n) d", "b (x m) (y n) d", x=h // 4, y=h // 4, m=4, n=4)
        x = self.grid(rearrange(x, "b (m x) (n y) d", "(b x y) (m n) d", m=4, n=4))
        return self.head(rearrange(x, "(b s) n d", "b (s n) d", b=b, n=16).mean(dim=1))


class ShiftNet(nn.Module):
    """Frames: channels shifted in a buffer by slices; sums, scales and clamps in place."""

    def __init__(self, c=24, classes=6):
        super().__init__()
        self.stem = nn.Conv2d(3, c, 3, 2, 1)
        self.convs, self.bns = nn.ModuleList([nn.Conv2d(c, c, 3, 1, 1, bias=False) for _ in range(3)]), nn.ModuleList([nn.BatchNorm2d(c) for _ in range(3)])
        self.fc, self.fold = nn.Linear(c, classes), c // 8

    def shift(self, x, b):
        x = x.view(b, -1, *x.shape[1:])
        out, f = torch.zeros_like(x), self.fold
        out[:, :-1, :f] = x[:, 1:, :f]
        out[:, 1:, f:2 * f] = x[:, :-1, f:2 * f]
        out[:, :, 2 * f:] = x[:, :, 2 * f:]
        return out.view(-1, *out.shape[2:])

    def forward(self, video):
        b, t = video.shape[:2]
        x = self.stem(video.flatten(0, 1)).relu_()
        for conv, bn in zip(self.convs, self.bns):
            y = bn(conv(self.shift(x, b)))
            y.mul_(0.5).add_(x)
            x = y.clamp_(min=0)
        x = F.adaptive_avg_pool2d(x, 1).view(b, t, -1)
        weights = torch.ones(b, t, 1, device=x.device)
        weights[:, 0] *= 0.5
        x *= weights
        logits = self.fc(x.sum(1))
        logits /= t
        return logits


class MixedBranches(nn.Module):
    """Almost all of it in comprehensions, generators and reduce()."""

    def __init__(self, c=24, kernels=(3, 5, 7), columns=6):
        super().__init__()
        self.embeds = nn.ModuleList([nn.Linear(1, c) for _ in range(columns)])
        self.branches = nn.ModuleList([nn.Sequential(*[m for k in kernels for m in (nn.Conv1d(c, c, k, padding=k // 2, groups=g), nn.BatchNorm1d(c), nn.GELU())])
                                       for g in (1, 2, 4)])
        self.gates = nn.ParameterDict({str(i): nn.Parameter(torch.ones(c, 1)) for i in range(3)})
        self.heads = nn.ModuleList([nn.Linear(c, 1) for _ in range(4)])

    def forward(self, x):
        x = torch.stack([e(col.unsqueeze(-1)) for e, col in zip(self.embeds, x.unbind(-1))], dim=0).sum(0).transpose(1, 2)
        outs = {i: b(x) for i, b in enumerate(self.branches)}
        mixed = sum(torch.sigmoid(self.gates[str(i)]) * o for i, o in outs.items())
        best = functools.reduce(torch.maximum, outs.values())
        pooled = [f(mixed + best) for f in (lambda t: t.mean(-1), lambda t: t.amax(-1), lambda t: t[..., -1], lambda t: t.std(-1))]
        return torch.cat([h(p) for h, p in zip(self.heads, pooled)], dim=1)


class BiFPN(nn.Module):
    """Features by name: down, up, weighted sums; heads shared by all levels."""

    def __init__(self, c=32, anchors=3, classes=4):
        super().__init__()
        def conv(i, o, s=1):
            return nn.Sequential(nn.Conv2d(i, i, 3, s, 1, groups=i, bias=False), nn.Conv2d(i, o, 1), nn.BatchNorm2d(o), nn.SiLU())
        self.stem = nn.ModuleDict({"p2": conv(3, 16, 2), "p3": conv(16, 24, 2), "p4": conv(24, 40, 2), "p5": conv(40, 64, 2)})
        self.lateral = nn.ModuleDict({k: nn.Conv2d(i, c, 1) for k, i in (("p3", 24), ("p4", 40), ("p5", 64))})
        self.td, self.up = nn.ModuleDict({k: conv(c, c) for k in ("p3", "p4")}), nn.ModuleDict({k: conv(c, c) for k in ("p4", "p5")})
        self.w = nn.ParameterDict({f"{d}_{k}": nn.Parameter(torch.ones(n)) for d, k, n in (("td", "p3", 2), ("td", "p4", 2), ("up", "p4", 3), ("up", "p5", 2))})
        self.heads = nn.ModuleDict({"cls": nn.Conv2d(c, anchors * classes, 3, padding=1), "box": nn.Conv2d(c, anchors * 4, 3, padding=1)})

    def fuse(self, key, *tensors):
        w = F.relu(self.w[key])
        w = w / (w.sum() + 1e-4)
        return sum(w[i] * t for i, t in enumerate(tensors))

    def forward(self, x):
        feats = {}
        for name, stage in self.stem.items():
            x = stage(x)
            if name in self.lateral:
                feats[name] = self.lateral[name](x)
        td = {"p5": feats["p5"]}
        for name, above in (("p4", "p5"), ("p3", "p4")):
            td[name] = self.td[name](self.fuse(f"td_{name}", feats[name], F.interpolate(td[above], scale_factor=2)))
        out = {"p3": td["p3"]}
        out["p4"] = self.up["p4"](self.fuse("up_p4", feats["p4"], td["p4"], F.max_pool2d(out["p3"], 2)))
        out["p5"] = self.up["p5"](self.fuse("up_p5", feats["p5"], F.max_pool2d(out["p4"], 2)))
        return {k: torch.cat([head(f).permute(0, 2, 3, 1).flatten(1) for f in out.values()], dim=1) for k, head in self.heads.items()}


class DomainRouter(nn.Module):
    """A plan of names decides which modules run; one of them runs twice, one never."""

    def __init__(self, d=64):
        super().__init__()
        self.parts = nn.ModuleDict({
            "embed": nn.Linear(20, d), "mix": nn.Sequential(nn.LayerNorm(d), nn.Linear(d, d), nn.Mish()), "deep": nn.Sequential(nn.Linear(d, 2 * d), nn.GLU(-1)),
            "conv": nn.Conv1d(d, d, 3, padding=1), "unused": nn.Linear(d, d)})
        self.adapters = nn.ModuleDict({n: nn.Sequential(nn.Linear(d, 8), nn.ReLU(), nn.Linear(8, d)) for n in ("news", "shop", "chat")})
        self.heads = nn.ModuleDict({"news": nn.Linear(d, 3), "shop": nn.Linear(d, 7), "chat": nn.Linear(d, 2)})
        self.plan = ["embed", "mix", "deep", "mix", "conv"]

    def forward(self, x):
        for name in self.plan:
            part = self.parts[name]
            y = part(x.transpose(1, 2)).transpose(1, 2) if isinstance(part, nn.Conv1d) else part(x)
            x = x + y if y.shape == x.shape else y
        shared = x.mean(1)
        return {name: head(shared + self.adapters[name](shared)) for name, head in self.heads.items()}


class MeanTeacher(nn.Module):
    """The teacher follows the student inside of forward; its predictions are targets."""

    def __init__(self, momentum=0.99):
        super().__init__()
        self.student = nn.Sequential(nn.Conv2d(3, 24, 3, 1, 1), nn.BatchNorm2d(24), nn.LeakyReLU(0.1), nn.MaxPool2d(2), nn.Dropout(0.25),
                                     nn.Conv2d(24, 48, 3, 1, 1), nn.BatchNorm2d(48), nn.LeakyReLU(0.1), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(48, 10))
        self.teacher, self.momentum = copy.deepcopy(self.student), momentum
        for p in self.teacher.parameters():
            p.requires_grad_(False)

    @torch.no_grad()
    def update(self):
        for ps, pt in zip(self.student.parameters(), self.teacher.parameters()):
            pt.mul_(self.momentum).add_(ps, alpha=1 - self.momentum)

    def forward(self, weak, strong, label):
        if self.training:
            self.update()
        logits = self.student(strong)
        with torch.no_grad():
            target = self.teacher(weak).softmax(-1)
            confident = (target.max(-1).values > 0.5).float()
        consistency = ((logits.softmax(-1) - target) ** 2).sum(-1)
        return F.cross_entropy(logits, label) + (confident * consistency).mean()


NETWORKS = [
    Network("domain_router", DomainRouter, values(16, 20)),
    Network("fused_blocks", FusedBlocks, values(20, 10)),
    Network("dora", DoRA, image(32)),
    Network("ladder_vae", LadderVAE, values(196), "none", 32, 48),
    Network("xdeepfm", XDeepFM, together(numbers(6), values()), "none", 32, 48),
    Network("mixed_branches", MixedBranches, values(40, 6), "mse"),
    Network("han", HAN, numbers(6, 12)),
    Network("universal_transformer", UniversalTransformer, numbers(20)),
    Network("image_field", ImageField, image(24), "none"),
    Network("shift_net", ShiftNet, values(6, 3, 32, 32)),
    Network("mesh_net", MeshNet, together(values(30, 6), values(80, 3), numbers(80, 2)), "mse"),
    Network("mean_teacher", MeanTeacher, together(image(32), image(32), numbers()), "none"),
    Network("change_detector", ChangeDetector, together(image(), image())),
    Network("axial_net", AxialNet, image()),
    Network("lru", LRU, values(60, 1)),
    Network("siglip_pair", SigLip, together(image(), numbers(16)), "none"),
    Network("gshard", GShard, together(numbers(16), numbers(16)), "none"),
    Network("mip_nerf", MipNerf, together(values(3), values(3), values(3)), "none", 32, 48),
    Network("multi_scale_flow", MultiScaleFlow, image(16), "none"),
    Network("info_gan", InfoGan, together(image(32), values(32), values(6), numbers()), "none"),
    Network("recurrent_a2c", RecurrentA2C, together(values(10, 12), numbers(10), values(10), values(10)), "none", 16, 24),
    Network("translator", Translator, together(numbers(14), numbers(10)), "none"),
    Network("list_unet", ListUNet, values(1, 64, 64)),
    Network("uvit", UViT, together(image(32), numbers()), "none"),
    Network("bifpn", BiFPN, image(128), "mse"),
    Network("efficient_dense_net", EfficientDenseNet, image(32)),
]
