"""Networks as practitioners write them, fifteen kinds. Run once on the CPU to find errors of typing; listed before one was exported; predicted once."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

from .common import Network, image, numbers, together, values


class CycleGan(nn.Module):
    """Two generators and two critics of patches: cycles, identities and least squares of the generators' step."""

    class Residual(nn.Module):
        def __init__(self, c):
            super().__init__()
            self.block = nn.Sequential(nn.ReflectionPad2d(1), nn.Conv2d(c, c, 3), nn.InstanceNorm2d(c), nn.ReLU(inplace=True),
                                       nn.ReflectionPad2d(1), nn.Conv2d(c, c, 3), nn.InstanceNorm2d(c))

        def forward(self, x):
            return x + self.block(x)

    def generator(self, c=16):
        return nn.Sequential(nn.ReflectionPad2d(3), nn.Conv2d(3, c, 7), nn.InstanceNorm2d(c), nn.ReLU(True),
                             nn.Conv2d(c, 2 * c, 3, 2, 1), nn.InstanceNorm2d(2 * c), nn.ReLU(True), *[self.Residual(2 * c) for _ in range(2)],
                             nn.ConvTranspose2d(2 * c, c, 3, 2, 1, 1), nn.InstanceNorm2d(c), nn.ReLU(True), nn.ReflectionPad2d(3), nn.Conv2d(c, 3, 7), nn.Tanh())

    def __init__(self, c=16):
        super().__init__()
        self.ab, self.ba = self.generator(), self.generator()
        critic = lambda: nn.Sequential(nn.Conv2d(3, c, 4, 2, 1), nn.LeakyReLU(0.2, True), nn.Conv2d(c, 2 * c, 4, 2, 1), nn.InstanceNorm2d(2 * c),  # noqa: E731
                                       nn.LeakyReLU(0.2, True), nn.Conv2d(2 * c, 1, 4, 1, 1))
        self.da, self.db = critic(), critic()
        for critic in (self.da, self.db):
            critic.requires_grad_(False)

    def forward(self, a, b):
        same_b, same_a = self.ab(b), self.ba(a)
        fake_b, fake_a = self.ab(a), self.ba(b)
        judged_b, judged_a = self.db(fake_b), self.da(fake_a)
        loss_gan = F.mse_loss(judged_b, torch.ones_like(judged_b)) + F.mse_loss(judged_a, torch.ones_like(judged_a))
        back_a, back_b = self.ba(fake_b), self.ab(fake_a)
        loss_cycle = F.l1_loss(back_a, a) + F.l1_loss(back_b, b)
        return loss_gan + 10 * loss_cycle + 5 * (F.l1_loss(same_b, b) + F.l1_loss(same_a, a))


class Nvae(nn.Module):
    """Two groups of latents, cells with squeeze and excitation, KL by group, discretised logistics."""

    class Cell(nn.Module):
        def __init__(self, c):
            super().__init__()
            self.body = nn.Sequential(nn.BatchNorm2d(c), nn.Conv2d(c, 3 * c, 1), nn.BatchNorm2d(3 * c), nn.SiLU(), nn.Conv2d(3 * c, 3 * c, 5, padding=2, groups=3 * c),
                                      nn.BatchNorm2d(3 * c), nn.SiLU(), nn.Conv2d(3 * c, c, 1), nn.BatchNorm2d(c))
            self.squeeze, self.excite = nn.Linear(c, c // 4), nn.Linear(c // 4, c)

        def forward(self, x):
            y = self.body(x)
            s = self.excite(F.relu(self.squeeze(y.mean(dim=[2, 3])))).sigmoid()
            return x + 0.1 * y * s[:, :, None, None]

    def __init__(self, c=24, z=8):
        super().__init__()
        self.stem, self.down = nn.Conv2d(3, c, 3, 1, 1), nn.ModuleList([nn.Sequential(self.Cell(c), nn.Conv2d(c, c, 3, 2, 1)) for _ in range(2)])
        self.start = nn.Parameter(torch.randn(c, 8, 8))
        self.posterior, self.prior = nn.ModuleList([nn.Conv2d(2 * c, 2 * z, 3, 1, 1) for _ in range(2)]), nn.Conv2d(c, 2 * z, 1)
        self.merge, self.cells = nn.ModuleList([nn.Conv2d(c + z, c, 1) for _ in range(2)]), nn.ModuleList([self.Cell(c) for _ in range(2)])
        self.out = nn.Conv2d(c, 6, 3, 1, 1)

    def forward(self, x):
        h, encoded = self.stem(x), []
        for stage in self.down:
            h = stage(h)
            encoded.append(h)
        s, kl = self.start.unsqueeze(0).expand(x.size(0), -1, -1, -1), 0.0
        for i in range(2):
            e = encoded[-1 - i]
            if i == 1:
                s = F.interpolate(s, scale_factor=2, mode="nearest")
            mean, log_sigma = self.posterior[i](torch.cat([e, s], 1)).chunk(2, 1)
            if i == 0:
                prior_mean, prior_log = torch.zeros_like(mean), torch.zeros_like(log_sigma)
            else:
                prior_mean, prior_log = self.prior(s).chunk(2, 1)
            log_sigma = 5.0 * torch.tanh(log_sigma / 5.0)
            z = mean + log_sigma.exp() * torch.randn_like(mean)
            term = (mean - prior_mean) / prior_log.exp()
            kl = kl + (0.5 * (term * term + (2 * (log_sigma - prior_log)).exp()) - 0.5 - log_sigma + prior_log).sum(dim=[1, 2, 3])
            s = self.cells[i](self.merge[i](torch.cat([s, z], 1)))
        mean, log_scale = self.out(F.interpolate(s, scale_factor=2)).chunk(2, 1)
        inverse = torch.exp(-log_scale.clamp(min=-7))
        upper, lower = torch.sigmoid(inverse * (x - mean + 1 / 255)), torch.sigmoid(inverse * (x - mean - 1 / 255))
        log_p = torch.log((upper - lower).clamp(min=1e-5))
        return (kl - log_p.sum(dim=[1, 2, 3])).mean()


class PointerGenerator(nn.Module):
    """Summaries: LSTMs, coverage, words generated or copied by scatter_add."""

    def __init__(self, v=150, d=32, h=48):
        super().__init__()
        self.embed, self.encoder = nn.Embedding(v, d), nn.LSTM(d, h, batch_first=True, bidirectional=True)
        self.reduce_h, self.reduce_c = nn.Linear(2 * h, h), nn.Linear(2 * h, h)
        self.cell, self.w_h, self.w_s, self.w_c = nn.LSTMCell(d + 2 * h, h), nn.Linear(2 * h, h, bias=False), nn.Linear(2 * h, h), nn.Linear(1, h, bias=False)
        self.v, self.p_gen = nn.Linear(h, 1, bias=False), nn.Linear(4 * h + d, 1)
        self.out = nn.Sequential(nn.Linear(3 * h, h), nn.Linear(h, v))

    def forward(self, source, target, gold):
        memory, (h, c) = self.encoder(self.embed(source))
        features = self.w_h(memory)
        h, c = F.relu(self.reduce_h(torch.cat([h[0], h[1]], dim=1))), F.relu(self.reduce_c(torch.cat([c[0], c[1]], dim=1)))
        context, coverage = memory.new_zeros(memory.size(0), memory.size(2)), memory.new_zeros(memory.size(0), memory.size(1))
        losses = []
        for step in range(target.size(1)):
            word = self.embed(target[:, step])
            h, c = self.cell(torch.cat([word, context], dim=1), (h, c))
            state = torch.cat([h, c], dim=1)
            score = self.v(torch.tanh(features + self.w_s(state).unsqueeze(1) + self.w_c(coverage.unsqueeze(2)))).squeeze(2)
            attention = F.softmax(score, dim=1)
            context = torch.bmm(attention.unsqueeze(1), memory).squeeze(1)
            generate = torch.sigmoid(self.p_gen(torch.cat([context, state, word], dim=1)))
            words = F.softmax(self.out(torch.cat([h, context], dim=1)), dim=1)
            final = (generate * words).scatter_add(1, source, (1 - generate) * attention)
            picked = final.gather(1, gold[:, step].unsqueeze(1)).squeeze(1)
            losses.append(-torch.log(picked + 1e-12) + torch.min(attention, coverage).sum(1))
            coverage = coverage + attention
        return torch.stack(losses, 1).mean()


class Gat(nn.Module):
    """Two layers of graph attention over edges: softmax by target with scatter_reduce, ELU, dropout of coefficients."""

    class Layer(nn.Module):
        def __init__(self, i, o, heads, concat=True):
            super().__init__()
            self.heads, self.o, self.concat, self.w = heads, o, concat, nn.Linear(i, heads * o, bias=False)
            self.a_src, self.a_dst, self.bias = nn.Parameter(torch.randn(1, heads, o)), nn.Parameter(torch.randn(1, heads, o)), nn.Parameter(torch.zeros(heads * o if concat else o))

        def forward(self, x, source, target):
            n = x.size(0)
            h = self.w(F.dropout(x, 0.6, self.training)).view(n, self.heads, self.o)
            e = F.leaky_relu((h * self.a_src).sum(-1)[source] + (h * self.a_dst).sum(-1)[target], 0.2)
            index = target.unsqueeze(1).expand_as(e)
            most = torch.full((n, self.heads), float("-inf"), device=x.device).scatter_reduce(0, index, e.detach(), "amax")
            e = (e - most[target]).exp()
            total = torch.zeros(n, self.heads, device=x.device).scatter_add_(0, index, e)
            alpha = F.dropout(e / (total[target] + 1e-16), 0.6, training=self.training)
            out = torch.zeros(n, self.heads, self.o, device=x.device)
            out.index_add_(0, target, h[source] * alpha.unsqueeze(-1))
            return (out.flatten(1) if self.concat else out.mean(1)) + self.bias

    def __init__(self, i=40, c=7):
        super().__init__()
        self.one, self.two = self.Layer(i, 8, 8), self.Layer(64, c, 4, False)

    def forward(self, x, source, target):
        return self.two(F.elu(self.one(x, source, target)), source, target)


class SasRec(nn.Module):
    """Items in sequence: causal attention by nn.MultiheadAttention, positives against negatives."""

    def __init__(self, v=400, d=48, length=30):
        super().__init__()
        self.items, self.places, self.drop = nn.Embedding(v, d, padding_idx=0), nn.Embedding(length, d), nn.Dropout(0.2)
        self.norms1, self.norms2 = nn.ModuleList([nn.LayerNorm(d, eps=1e-8) for _ in range(2)]), nn.ModuleList([nn.LayerNorm(d, eps=1e-8) for _ in range(2)])
        self.attentions = nn.ModuleList([nn.MultiheadAttention(d, 2, 0.2) for _ in range(2)])
        self.convs = nn.ModuleList([nn.ModuleList([nn.Conv1d(d, d, 1), nn.Conv1d(d, d, 1)]) for _ in range(2)])
        self.last = nn.LayerNorm(d, eps=1e-8)

    def forward(self, log, positive, negative):
        x = self.items(log) * self.items.embedding_dim ** 0.5
        x = self.drop(x + self.places(torch.arange(log.shape[1], device=log.device)))
        padded = log == 0
        x = x * ~padded.unsqueeze(-1)
        mask = ~torch.tril(torch.ones((log.shape[1], log.shape[1]), dtype=torch.bool, device=log.device))
        for i in range(2):
            x = torch.transpose(x, 0, 1)
            q = self.norms1[i](x)
            out, _ = self.attentions[i](q, x, x, attn_mask=mask)
            x = torch.transpose(q + out, 0, 1)
            x = self.norms2[i](x)
            y = self.convs[i][1](F.relu(F.dropout(self.convs[i][0](x.transpose(-1, -2)), 0.2, self.training)))
            x = x + F.dropout(y, 0.2, self.training).transpose(-1, -2)
            x = x * ~padded.unsqueeze(-1)
        h = self.last(x)
        up, down = (h * self.items(positive)).sum(-1), (h * self.items(negative)).sum(-1)
        loss = F.binary_cross_entropy_with_logits(up, torch.ones_like(up)) + F.binary_cross_entropy_with_logits(down, torch.zeros_like(down))
        return loss + 1e-4 * self.items.weight.norm()


class TwoTower(nn.Module):
    """Retrieval: bags of embeddings and dense features, batch norm, in-batch softmax with a correction of popularity."""

    def __init__(self, d=32):
        super().__init__()
        self.history, self.country, self.item, self.tags = nn.EmbeddingBag(500, d, mode="mean"), nn.Embedding(20, 8), nn.Embedding(500, d), nn.EmbeddingBag(60, d, mode="sum")
        tower = lambda i: nn.Sequential(nn.Linear(i, 96), nn.BatchNorm1d(96), nn.GELU(), nn.Dropout(0.1), nn.Linear(96, d))  # noqa: E731
        self.user, self.thing, self.scale = tower(d + 8 + 5), tower(2 * d), nn.Parameter(torch.tensor(2.0))

    def forward(self, history, country, dense, item, tags, log_popularity):
        u = self.user(torch.cat([self.history(history), self.country(country), torch.log1p(dense)], dim=1))
        i = self.thing(torch.cat([self.item(item), self.tags(tags)], dim=1))
        u, i = F.normalize(u, dim=1), F.normalize(i, dim=1)
        logits = self.scale.exp() * u @ i.t() - log_popularity.unsqueeze(0)
        labels = torch.arange(u.size(0), device=u.device)
        return F.cross_entropy(logits, labels, label_smoothing=0.05)


class WaveGlow(nn.Module):
    """Audio in groups: invertible 1x1 convolutions, couplings by dilated gated convolutions with weight norm; the likelihood."""

    class Net(nn.Module):
        def __init__(self, half, mels, width=24, layers=3):
            super().__init__()
            wn = nn.utils.parametrizations.weight_norm
            self.width, self.layers = width, layers
            self.start, self.cond = wn(nn.Conv1d(half, width, 1)), wn(nn.Conv1d(mels, 2 * width * layers, 1))
            self.ins = nn.ModuleList([wn(nn.Conv1d(width, 2 * width, 3, dilation=2 ** i, padding=2 ** i)) for i in range(layers)])
            self.skips = nn.ModuleList([wn(nn.Conv1d(width, 2 * width if i < layers - 1 else width, 1)) for i in range(layers)])
            self.end = nn.Conv1d(width, 2 * half, 1)

        def forward(self, x, spec):
            x, spec = self.start(x), self.cond(spec)
            output = torch.zeros_like(x)
            for i in range(self.layers):
                a = self.ins[i](x) + spec[:, 2 * i * self.width:2 * (i + 1) * self.width]
                acts = torch.tanh(a[:, :self.width]) * torch.sigmoid(a[:, self.width:])
                both = self.skips[i](acts)
                if i < self.layers - 1:
                    x = x + both[:, :self.width]
                    output = output + both[:, self.width:]
                else:
                    output = output + both
            return self.end(output)

    def __init__(self, mels=20, group=8, flows=3):
        super().__init__()
        self.group, self.up = group, nn.ConvTranspose1d(mels, mels, 32, stride=16)
        self.mix = nn.ParameterList([nn.Parameter(torch.linalg.qr(torch.randn(group, group))[0].contiguous()) for _ in range(flows)])
        self.nets = nn.ModuleList([self.Net(group // 2, mels * group) for _ in range(flows)])

    def forward(self, spec, audio):
        spec = self.up(spec)[:, :, :audio.size(1)]
        spec = spec.unfold(2, self.group, self.group).permute(0, 2, 1, 3)
        spec = spec.contiguous().view(spec.size(0), spec.size(1), -1).permute(0, 2, 1)
        audio = audio.unfold(1, self.group, self.group).permute(0, 2, 1)
        total_s, total_d = 0.0, 0.0
        for w, net in zip(self.mix, self.nets):
            total_d = total_d + audio.size(0) * audio.size(2) * torch.logdet(w @ w.t()) / 2
            audio = F.conv1d(audio, w.unsqueeze(-1))
            n = audio.size(1) // 2
            a, b = audio[:, :n], audio[:, n:]
            out = net(a, spec)
            log_s, t = out[:, n:], out[:, :n]
            b = torch.exp(log_s) * b + t
            total_s = total_s + log_s.sum()
            audio = torch.cat([a, b], 1)
        return ((audio * audio).sum() / 2 - total_s - total_d) / audio.numel()


class SirenNerf(nn.Module):
    """A coarse and a fine field of sines; fine samples by inverting the weights' distribution."""

    class Field(nn.Module):
        def __init__(self, d=40):
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(3 if i == 0 else d, d) for i in range(3)])
            self.sigma, self.rgb = nn.Linear(d, 1), nn.Linear(d + 3, 3)

        def forward(self, p, d):
            for layer in self.layers:
                p = torch.sin(30.0 * layer(p))
            return F.relu(self.sigma(p)).squeeze(-1), self.rgb(torch.cat([p, d], dim=-1)).sigmoid()

    def __init__(self, samples=16):
        super().__init__()
        self.coarse, self.fine, self.samples = self.Field(), self.Field(), samples

    def render(self, field, origin, direction, z):
        points = origin[:, None, :] + direction[:, None, :] * z[..., None]
        sigma, rgb = field(points, direction[:, None, :].expand_as(points))
        delta = torch.cat([z[:, 1:] - z[:, :-1], torch.full_like(z[:, :1], 1e10)], dim=-1)
        alpha = 1.0 - torch.exp(-sigma * delta)
        weights = alpha * torch.cumprod(torch.cat([torch.ones_like(alpha[:, :1]), 1.0 - alpha + 1e-10], dim=-1), dim=-1)[:, :-1]
        return torch.sum(weights[..., None] * rgb, dim=-2), weights

    def forward(self, origin, direction, colour):
        z = torch.linspace(2.0, 6.0, self.samples, device=origin.device).expand(origin.shape[0], self.samples)
        middle = 0.5 * (z[..., 1:] + z[..., :-1])
        if self.training:
            upper, lower = torch.cat([middle, z[..., -1:]], -1), torch.cat([z[..., :1], middle], -1)
            z = lower + (upper - lower) * torch.rand_like(lower)
        first, weights = self.render(self.coarse, origin, direction, z)
        with torch.no_grad():
            pdf = weights[..., 1:-1] + 1e-5
            pdf = pdf / pdf.sum(-1, keepdim=True)
            cdf = torch.cat([torch.zeros_like(pdf[..., :1]), torch.cumsum(pdf, -1)], -1)
            u = torch.rand(cdf.shape[0], self.samples, device=cdf.device)
            index = torch.searchsorted(cdf, u, right=True)
            below, above = (index - 1).clamp(min=0), index.clamp(max=cdf.shape[-1] - 1)
            c0, c1 = cdf.gather(1, below), cdf.gather(1, above)
            b0, b1 = middle.gather(1, below), middle.gather(1, above)
            width = torch.where(c1 - c0 < 1e-5, torch.ones_like(c0), c1 - c0)
            more = b0 + (u - c0) / width * (b1 - b0)
        second, _ = self.render(self.fine, origin, direction, torch.sort(torch.cat([z, more], -1), -1)[0])
        return F.mse_loss(first, colour) + F.mse_loss(second, colour)


class CaptionDit(nn.Module):
    """A diffusion transformer with captions: rotary queries and keys, SwiGLU, one shared modulation, dropped captions, weights by SNR."""

    class Block(nn.Module):
        def __init__(self, d, heads):
            super().__init__()
            self.heads, self.table = heads, nn.Parameter(torch.randn(6, d) / d ** 0.5)
            self.n1, self.n2 = nn.LayerNorm(d, elementwise_affine=False, eps=1e-6), nn.LayerNorm(d, elementwise_affine=False, eps=1e-6)
            self.qkv, self.proj, self.q, self.kv, self.cross = nn.Linear(d, 3 * d), nn.Linear(d, d), nn.Linear(d, d), nn.Linear(d, 2 * d), nn.Linear(d, d)
            self.w1, self.w2, self.w3 = nn.Linear(d, 2 * d, bias=False), nn.Linear(2 * d, d, bias=False), nn.Linear(d, 2 * d, bias=False)

        def rotate(self, x, cos, sin):
            a, b = x.chunk(2, dim=-1)
            return x * cos + torch.cat((-b, a), dim=-1) * sin

        def forward(self, x, y, t, cos, sin):
            b, n, d = x.shape
            shift1, scale1, gate1, shift2, scale2, gate2 = (self.table[None] + t.reshape(b, 6, -1)).chunk(6, dim=1)
            q, k, v = self.qkv(self.n1(x) * (1 + scale1) + shift1).reshape(b, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
            a = F.scaled_dot_product_attention(self.rotate(q, cos, sin), self.rotate(k, cos, sin), v)
            x = x + gate1 * self.proj(a.transpose(1, 2).reshape(b, n, d))
            q = self.q(x).view(b, n, self.heads, -1).transpose(1, 2)
            k, v = self.kv(y).view(b, y.size(1), 2, self.heads, -1).permute(2, 0, 3, 1, 4)
            x = x + self.cross(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, d))
            h = self.n2(x) * (1 + scale2) + shift2
            return x + gate2 * self.w2(F.silu(self.w1(h)) * self.w3(h))

    def __init__(self, d=64, heads=4, patch=2, size=16):
        super().__init__()
        self.patch, self.embed = patch, nn.Conv2d(4, d, patch, patch)
        self.time, self.mod = nn.Sequential(nn.Linear(64, d), nn.SiLU(), nn.Linear(d, d)), nn.Sequential(nn.SiLU(), nn.Linear(d, 6 * d))
        self.caption, self.null = nn.Sequential(nn.Linear(32, d), nn.GELU(approximate="tanh"), nn.Linear(d, d)), nn.Parameter(torch.zeros(1, 1, 32))
        self.blocks, self.norm, self.out = nn.ModuleList([self.Block(d, heads) for _ in range(2)]), nn.LayerNorm(d), nn.Linear(d, 4 * patch * patch)
        n, width = (size // patch) ** 2, d // heads
        angles = torch.outer(torch.arange(n).float(), 10000 ** (-torch.arange(0, width, 2).float() / width))
        self.register_buffer("cos", torch.cat([angles, angles], -1).cos(), persistent=False)
        self.register_buffer("sin", torch.cat([angles, angles], -1).sin(), persistent=False)
        self.register_buffer("alphas", torch.cumprod(1 - torch.linspace(1e-4, 0.02, 1000), 0))

    def forward(self, latents, steps, text, noise):
        alpha = self.alphas[steps].view(-1, 1, 1, 1)
        noisy = alpha.sqrt() * latents + (1 - alpha).sqrt() * noise
        if self.training:
            drop = torch.rand(text.size(0), 1, 1, device=text.device) < 0.1
            text = torch.where(drop, self.null.to(text.dtype), text)
        angles = steps[:, None].float() * torch.exp(-math.log(10000) * torch.arange(32, device=steps.device) / 32)[None]
        t = self.mod(self.time(torch.cat([torch.cos(angles), torch.sin(angles)], dim=-1)))
        y, x = self.caption(text), self.embed(noisy).flatten(2).transpose(1, 2)
        for block in self.blocks:
            x = block(x, y, t, self.cos, self.sin)
        b, c, h, w = latents.shape
        x = self.out(self.norm(x)).reshape(b, h // self.patch, w // self.patch, self.patch, self.patch, c)
        x = torch.einsum("nhwpqc->nchpwq", x).reshape(b, c, h, w)
        snr = (alpha / (1 - alpha)).flatten()
        weight = torch.clamp(snr, max=5.0) / snr
        return (F.mse_loss(x, noise, reduction="none").mean(dim=[1, 2, 3]) * weight).mean()


class Conformer(nn.Module):
    """Speech: halves of feed-forward, attention with relative places, a gated convolution; frames classified."""

    class Block(nn.Module):
        def __init__(self, d, heads=4, kernel=7):
            super().__init__()
            ff = lambda: nn.Sequential(nn.LayerNorm(d), nn.Linear(d, 4 * d), nn.SiLU(), nn.Dropout(0.1), nn.Linear(4 * d, d), nn.Dropout(0.1))  # noqa: E731
            self.ff1, self.ff2, self.norm, self.heads = ff(), ff(), nn.LayerNorm(d), heads
            self.q, self.k, self.v, self.o, self.p = nn.Linear(d, d), nn.Linear(d, d), nn.Linear(d, d), nn.Linear(d, d), nn.Linear(d, d, bias=False)
            self.u, self.w = nn.Parameter(torch.zeros(heads, d // heads)), nn.Parameter(torch.zeros(heads, d // heads))
            self.attn_norm, self.conv_norm = nn.LayerNorm(d), nn.LayerNorm(d)
            self.point1, self.depth, self.bn, self.point2 = nn.Conv1d(d, 2 * d, 1), nn.Conv1d(d, d, kernel, padding=kernel // 2, groups=d), nn.BatchNorm1d(d), nn.Conv1d(d, d, 1)
            self.drop = nn.Dropout(0.1)

        def shift(self, x):
            b, h, n, m = x.size()
            x = torch.cat([x.new_zeros(b, h, n, 1), x], dim=-1).view(b, h, m + 1, n)
            return x[:, :, 1:].view(b, h, n, m)[:, :, :, :m // 2 + 1]

        def attend(self, x, places):
            b, n, d = x.shape
            q = self.q(x).view(b, n, self.heads, -1)
            k, v = self.k(x).view(b, n, self.heads, -1).permute(0, 2, 3, 1), self.v(x).view(b, n, self.heads, -1).transpose(1, 2)
            p = self.p(places).view(1, -1, self.heads, d // self.heads).permute(0, 2, 3, 1)
            content = torch.matmul((q + self.u).transpose(1, 2), k)
            place = self.shift(torch.matmul((q + self.w).transpose(1, 2), p))
            weights = self.drop(torch.softmax((content + place) / math.sqrt(d // self.heads), dim=-1))
            return self.o(torch.matmul(weights, v).transpose(1, 2).reshape(b, n, d))

        def forward(self, x, places):
            x = x + 0.5 * self.ff1(x)
            x = x + self.drop(self.attend(self.attn_norm(x), places))
            y = F.glu(self.point1(self.conv_norm(x).transpose(1, 2)), dim=1)
            y = self.point2(F.silu(self.bn(self.depth(y)))).transpose(1, 2)
            x = x + self.drop(y)
            return self.norm(x + 0.5 * self.ff2(x))

    def __init__(self, mels=40, d=48, v=30):
        super().__init__()
        self.sub = nn.Sequential(nn.Conv2d(1, 16, 3, 2), nn.ReLU(), nn.Conv2d(16, 16, 3, 2), nn.ReLU())
        self.put, self.blocks, self.out, self.d = nn.Linear(16 * 9, d), nn.ModuleList([self.Block(d) for _ in range(2)]), nn.Linear(d, v), d

    def forward(self, x):
        x = self.sub(x.unsqueeze(1))
        b, c, n, f = x.shape
        x = F.dropout(self.put(x.transpose(1, 2).reshape(b, n, c * f)), 0.1, self.training)
        place = torch.arange(n - 1, -n, -1, device=x.device).float()[:, None] * torch.exp(torch.arange(0, self.d, 2, device=x.device) * -(math.log(1e4) / self.d))
        places = torch.stack([place.sin(), place.cos()], -1).flatten(1)[None]
        for block in self.blocks:
            x = block(x, places)
        return self.out(x)


class Yolo(nn.Module):
    """A detector with split bottlenecks, pooled pyramids and distributions of distances; boxes that were assigned, CIoU."""

    class Conv(nn.Sequential):
        def __init__(self, i, o, k=1, s=1):
            super().__init__(nn.Conv2d(i, o, k, s, k // 2, bias=False), nn.BatchNorm2d(o, 1e-3, 0.03), nn.SiLU(inplace=True))

    class C2f(nn.Module):
        def __init__(self, i, o, n=2):
            super().__init__()
            self.c = o // 2
            self.cv1, self.cv2 = Yolo.Conv(i, o), Yolo.Conv((2 + n) * self.c, o)
            self.m = nn.ModuleList([nn.Sequential(Yolo.Conv(self.c, self.c, 3), Yolo.Conv(self.c, self.c, 3)) for _ in range(n)])

        def forward(self, x):
            y = list(self.cv1(x).chunk(2, 1))
            for m in self.m:
                y.append(y[-1] + m(y[-1]))
            return self.cv2(torch.cat(y, 1))

    def __init__(self, c=16, bins=8, classes=5):
        super().__init__()
        self.bins, self.classes = bins, classes
        self.stem, self.s2 = self.Conv(3, c, 3, 2), nn.Sequential(self.Conv(c, 2 * c, 3, 2), self.C2f(2 * c, 2 * c))
        self.s3, self.s4 = nn.Sequential(self.Conv(2 * c, 4 * c, 3, 2), self.C2f(4 * c, 4 * c)), nn.Sequential(self.Conv(4 * c, 8 * c, 3, 2), self.C2f(8 * c, 8 * c))
        self.pool, self.sppf1, self.sppf2 = nn.MaxPool2d(5, 1, 2), self.Conv(8 * c, 4 * c), self.Conv(16 * c, 8 * c)
        self.up, self.fuse = nn.Upsample(None, 2, "nearest"), self.C2f(12 * c, 4 * c)
        self.box = nn.ModuleList([nn.Sequential(self.Conv(i, 32, 3), nn.Conv2d(32, 4 * bins, 1)) for i in (4 * c, 8 * c)])
        self.cls = nn.ModuleList([nn.Sequential(self.Conv(i, 32, 3), nn.Conv2d(32, classes, 1)) for i in (4 * c, 8 * c)])
        self.register_buffer("project", torch.arange(bins, dtype=torch.float))

    def forward(self, x, boxes, scores):
        p3 = self.s3(self.s2(self.stem(x)))
        y = self.sppf1(self.s4(p3))
        y1 = self.pool(y)
        y2 = self.pool(y1)
        p4 = self.sppf2(torch.cat((y, y1, y2, self.pool(y2)), 1))
        p3 = self.fuse(torch.cat([self.up(p4), p3], 1))
        features = [torch.cat((b(f), c(f)), 1) for f, b, c in zip((p3, p4), self.box, self.cls)]
        flat = torch.cat([f.view(x.shape[0], 4 * self.bins + self.classes, -1) for f in features], 2)
        distances, logits = flat.split((4 * self.bins, self.classes), 1)
        distances, logits = distances.permute(0, 2, 1).contiguous(), logits.permute(0, 2, 1).contiguous()
        anchors = torch.cat([torch.stack(torch.meshgrid(torch.arange(f.shape[2], device=x.device) + 0.5, torch.arange(f.shape[3], device=x.device) + 0.5,
                                                        indexing="ij"), -1).view(-1, 2).flip(-1) for f in features])
        b, a, _ = distances.shape
        d = distances.view(b, a, 4, self.bins).softmax(3).matmul(self.project)
        lt, rb = d.chunk(2, -1)
        found = torch.cat((anchors - lt, anchors + rb), -1)
        weight = scores.sum(-1)
        l, t, r, m = found.unbind(-1)
        l2, t2, r2, m2 = boxes.unbind(-1)
        inter = (r.minimum(r2) - l.maximum(l2)).clamp(0) * (m.minimum(m2) - t.maximum(t2)).clamp(0)
        union = (r - l) * (m - t) + (r2 - l2) * (m2 - t2) - inter + 1e-7
        iou = inter / union
        cw, ch = r.maximum(r2) - l.minimum(l2), m.maximum(m2) - t.minimum(t2)
        diagonal = cw ** 2 + ch ** 2 + 1e-7
        rho = ((l2 + r2 - l - r) ** 2 + (t2 + m2 - t - m) ** 2) / 4
        v = (4 / math.pi ** 2) * (torch.atan((r2 - l2) / (m2 - t2 + 1e-7)) - torch.atan((r - l) / (m - t + 1e-7))).pow(2)
        with torch.no_grad():
            factor = v / (v - iou + (1 + 1e-7))
        ciou = iou - (rho / diagonal + v * factor)
        goal = torch.cat((anchors - boxes[..., :2], boxes[..., 2:] - anchors), -1).clamp(0, self.bins - 1.01)
        left = goal.long()
        wl = left + 1 - goal
        bins = distances.view(-1, self.bins)
        dfl = (F.cross_entropy(bins, left.view(-1), reduction="none").view(left.shape) * wl +
               F.cross_entropy(bins, (left + 1).view(-1), reduction="none").view(left.shape) * (1 - wl)).mean(-1)
        total = scores.sum().clamp(min=1)
        return (F.binary_cross_entropy_with_logits(logits, scores, reduction="none").sum() + 7.5 * ((1 - ciou) * weight).sum() + 1.5 * (dfl * weight).sum()) / total


class Mae(nn.Module):
    """Patches masked by sorted noise, an encoder of those that stay, a decoder of all, pixels normalised by patch."""

    def __init__(self, size=32, patch=4, d=64, small=32):
        super().__init__()
        n = (size // patch) ** 2
        self.patch, self.embed, self.cls = patch, nn.Conv2d(3, d, patch, patch), nn.Parameter(torch.zeros(1, 1, d))
        self.place, self.place2 = nn.Parameter(torch.zeros(1, n + 1, d), requires_grad=False), nn.Parameter(torch.zeros(1, n + 1, small), requires_grad=False)
        layer = lambda w: nn.TransformerEncoderLayer(w, 4, 4 * w, 0.0, "gelu", batch_first=True, norm_first=True)  # noqa: E731
        self.blocks, self.norm = nn.ModuleList([layer(d) for _ in range(2)]), nn.LayerNorm(d)
        self.shrink, self.mask, self.blocks2, self.norm2, self.out = nn.Linear(d, small), nn.Parameter(torch.zeros(1, 1, small)), nn.ModuleList([layer(small)]), nn.LayerNorm(small), nn.Linear(small, 3 * patch * patch)

    def forward(self, images):
        x = self.embed(images).flatten(2).transpose(1, 2) + self.place[:, 1:, :]
        b, n, d = x.shape
        keep = n // 4
        noise = torch.rand(b, n, device=x.device)
        shuffle = torch.argsort(noise, dim=1)
        restore = torch.argsort(shuffle, dim=1)
        x = torch.gather(x, dim=1, index=shuffle[:, :keep].unsqueeze(-1).repeat(1, 1, d))
        mask = torch.ones([b, n], device=x.device)
        mask[:, :keep] = 0
        mask = torch.gather(mask, dim=1, index=restore)
        x = torch.cat(((self.cls + self.place[:, :1, :]).expand(b, -1, -1), x), dim=1)
        for block in self.blocks:
            x = block(x)
        x = self.shrink(self.norm(x))
        rest = torch.cat([x[:, 1:, :], self.mask.repeat(b, n + 1 - x.shape[1], 1)], dim=1)
        rest = torch.gather(rest, dim=1, index=restore.unsqueeze(-1).repeat(1, 1, x.shape[2]))
        x = torch.cat([x[:, :1, :], rest], dim=1) + self.place2
        for block in self.blocks2:
            x = block(x)
        x = self.out(self.norm2(x))[:, 1:, :]
        p, side = self.patch, images.shape[2] // self.patch
        target = torch.einsum("nchpwq->nhwpqc", images.reshape(b, 3, side, p, side, p)).reshape(b, side * side, p * p * 3)
        mean, var = target.mean(dim=-1, keepdim=True), target.var(dim=-1, keepdim=True)
        loss = ((x - (target - mean) / (var + 1.e-6) ** .5) ** 2).mean(dim=-1)
        return (loss * mask).sum() / mask.sum()


class WorldModel(nn.Module):
    """A recurrent state with categories drawn straight through, prior and posterior balanced, pictures and rewards decoded."""

    def __init__(self, h=64, groups=8, kinds=8, actions=4):
        super().__init__()
        self.groups, self.kinds, z = groups, kinds, groups * kinds
        self.enc = nn.Sequential(nn.Conv2d(3, 16, 4, 2), nn.SiLU(), nn.Conv2d(16, 32, 4, 2), nn.SiLU(), nn.Flatten(), nn.Linear(32 * 36, h))
        self.input, self.cell = nn.Sequential(nn.Linear(z + actions, h), nn.LayerNorm(h), nn.SiLU()), nn.GRUCell(h, h)
        self.prior, self.posterior = nn.Sequential(nn.Linear(h, h), nn.SiLU(), nn.Linear(h, z)), nn.Sequential(nn.Linear(2 * h, h), nn.SiLU(), nn.Linear(h, z))
        self.dec = nn.Sequential(nn.Linear(h + z, 32 * 16), nn.Unflatten(1, (32, 4, 4)), nn.ConvTranspose2d(32, 16, 4, 2, 1), nn.SiLU(), nn.ConvTranspose2d(16, 16, 4, 2, 1), nn.SiLU(),
                                 nn.ConvTranspose2d(16, 3, 4, 2, 1))
        self.reward, self.h = nn.Sequential(nn.Linear(h + z, h), nn.SiLU(), nn.Linear(h, 1)), h

    def draw(self, logits):
        p = 0.99 * F.softmax(logits.view(-1, self.groups, self.kinds), -1) + 0.01 / self.kinds
        g = -torch.log(-torch.log(torch.rand_like(p).clamp(1e-6, 1 - 1e-6)))
        hard = F.one_hot((p.log() + g).argmax(-1), self.kinds).float()
        return (hard + p - p.detach()).flatten(1), p

    def kl(self, p, q):
        return (p * (p.log() - q.log())).sum((-2, -1))

    def forward(self, frames, actions, rewards):
        b, t = frames.shape[:2]
        e = self.enc(frames.flatten(0, 1)).view(b, t, -1)
        h, z = torch.zeros(b, self.h, device=frames.device), torch.zeros(b, self.groups * self.kinds, device=frames.device)
        states, kl = [], []
        for i in range(t):
            h = self.cell(self.input(torch.cat([z, actions[:, i]], -1)), h)
            _, prior = self.draw(self.prior(h))
            z, posterior = self.draw(self.posterior(torch.cat([h, e[:, i]], -1)))
            kl.append(0.5 * self.kl(posterior.detach(), prior).clamp(min=1.0) + 0.1 * self.kl(posterior, prior.detach()).clamp(min=1.0))
            states.append(torch.cat([h, z], -1))
        s = torch.stack(states, 1)
        seen = self.dec(s.flatten(0, 1)).view_as(frames)
        return F.mse_loss(seen, frames) * 3072 + F.smooth_l1_loss(self.reward(s).squeeze(-1), rewards) + torch.stack(kl, 1).mean()


class SchNet(nn.Module):
    """Atoms with continuous filters of their distances, cut off by a cosine; energies summed."""

    class Ssp(nn.Module):
        def forward(self, x):
            return F.softplus(x) - math.log(2.0)

    def __init__(self, d=32, gaussians=20, cutoff=5.0):
        super().__init__()
        self.embed, self.cutoff = nn.Embedding(20, d, padding_idx=0), cutoff
        self.register_buffer("offset", torch.linspace(0, cutoff, gaussians))
        self.filters = nn.ModuleList([nn.Sequential(nn.Linear(gaussians, d), self.Ssp(), nn.Linear(d, d)) for _ in range(3)])
        self.ins, self.outs = nn.ModuleList([nn.Linear(d, d, bias=False) for _ in range(3)]), nn.ModuleList([nn.Sequential(nn.Linear(d, d), self.Ssp(), nn.Linear(d, d)) for _ in range(3)])
        self.last = nn.Sequential(nn.Linear(d, d // 2), self.Ssp(), nn.Linear(d // 2, 1))

    def forward(self, z, position):
        x, mask = self.embed(z), (z > 0).float()
        distance = (position.unsqueeze(2) - position.unsqueeze(1)).pow(2).sum(-1).add(1e-8).sqrt()
        smeared = torch.exp(-8.0 * (distance.unsqueeze(-1) - self.offset) ** 2)
        cut = 0.5 * (torch.cos(distance * math.pi / self.cutoff) + 1.0) * (distance < self.cutoff).float()
        pairs = cut * mask.unsqueeze(1) * mask.unsqueeze(2) * (1 - torch.eye(z.shape[1], device=z.device))
        for f, i, o in zip(self.filters, self.ins, self.outs):
            w = f(smeared) * pairs.unsqueeze(-1)
            x = x + o((w * i(x).unsqueeze(1)).sum(2))
        return (self.last(x).squeeze(-1) * mask).sum(1, keepdim=True)


class Mamba(nn.Module):
    """A language model of selective states, scanned step by step, in plain PyTorch."""

    class Block(nn.Module):
        def __init__(self, d, state=8, rank=4):
            super().__init__()
            inner = 2 * d
            self.norm, self.put, self.out = nn.Parameter(torch.ones(d)), nn.Linear(d, 2 * inner, bias=False), nn.Linear(inner, d, bias=False)
            self.conv, self.x_proj, self.dt = nn.Conv1d(inner, inner, 4, groups=inner, padding=3), nn.Linear(inner, rank + 2 * state, bias=False), nn.Linear(rank, inner)
            self.a_log, self.d = nn.Parameter(torch.log(torch.arange(1, state + 1).float().repeat(inner, 1))), nn.Parameter(torch.ones(inner))
            self.rank, self.state = rank, state

        def scan(self, u, delta, a, b, c):
            decay = torch.exp(torch.einsum("bld,dn->bldn", delta, a))
            given = torch.einsum("bld,bln,bld->bldn", delta, b, u)
            x, ys = torch.zeros(u.shape[0], u.shape[2], a.shape[1], device=u.device), []
            for i in range(u.shape[1]):
                x = decay[:, i] * x + given[:, i]
                ys.append(torch.einsum("bdn,bn->bd", x, c[:, i]))
            return torch.stack(ys, dim=1) + u * self.d

        def forward(self, x):
            skip, n = x, x.shape[1]
            x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.norm
            x, gate = self.put(x).chunk(2, dim=-1)
            x = F.silu(self.conv(x.transpose(1, 2))[:, :, :n].transpose(1, 2))
            delta, b, c = self.x_proj(x).split([self.rank, self.state, self.state], dim=-1)
            y = self.scan(x, F.softplus(self.dt(delta)), -torch.exp(self.a_log.float()), b, c)
            return skip + self.out(y * F.silu(gate))

    def __init__(self, v=200, d=32):
        super().__init__()
        self.embed, self.blocks, self.norm = nn.Embedding(v, d), nn.ModuleList([self.Block(d) for _ in range(2)]), nn.LayerNorm(d)
        self.head = nn.Linear(d, v, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, ids):
        x = self.embed(ids)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


NETWORKS = [
    Network("cycle_gan", CycleGan, together(image(32), image(32)), "none"),
    Network("nvae", Nvae, image(32), "none"),
    Network("pointer_generator", PointerGenerator, together(numbers(14), numbers(6), numbers(6)), "none"),
    Network("gat", Gat, together(values(40), numbers(), numbers()), "cross-entropy", 60, 90),
    Network("sas_rec", SasRec, together(numbers(30), numbers(30), numbers(30)), "none"),
    Network("two_tower", TwoTower, together(numbers(12), numbers(), values(5), numbers(), numbers(4), values()), "none", 32, 48),
    Network("wave_glow", WaveGlow, together(values(20, 16), values(256)), "none"),
    Network("siren_nerf", SirenNerf, together(values(3), values(3), values(3)), "none", 32, 48),
    Network("caption_dit", CaptionDit, together(values(4, 16, 16), numbers(), values(7, 32), values(4, 16, 16)), "none"),
    Network("conformer", Conformer, values(64, 40)),
    Network("yolo", Yolo, together(image(64), values(80, 4), values(80, 5)), "none"),
    Network("mae", Mae, image(32), "none"),
    Network("world_model", WorldModel, together(values(5, 3, 32, 32), values(5, 4), values(5)), "none"),
    Network("sch_net", SchNet, together(numbers(12), values(12, 3)), "mse"),
    Network("mamba", Mamba, numbers(20)),
]
