"""Networks whose programs lie in tests/tape/programs: what torch.export, and onnxvram.record, made of them at a batch of 2 (PyTorch 2.15)."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

NETWORKS = {}


def net(name, inputs):
    def add(network):
        NETWORKS[name] = (network, inputs)
        return network

    return add


def tok(v=100, l=32):
    return lambda b: (torch.randint(0, v, (b, l)),)


def img(_, s):
    return lambda b: (torch.randn(b, 3, s, s),)


@net("lstm", tok())
class LSTM(nn.Module):
    def __init__(s):
        super().__init__()
        s.e = nn.Embedding(100, 32)
        s.l = nn.LSTM(32, 48, 2, batch_first=True, dropout=0.2, bidirectional=True)
        s.f = nn.Linear(96, 10)

    def forward(s, x):
        y, (h, c) = s.l(s.e(x))
        return s.f(y[:, -1])


@net("unet", img("", 64))
class UNet(nn.Module):
    def __init__(s):
        super().__init__()

        def b(i, o):
            return nn.Sequential(
                nn.Conv2d(i, o, 3, padding=1, bias=False),
                nn.BatchNorm2d(o),
                nn.ReLU(inplace=True),
                nn.Conv2d(o, o, 3, padding=1, bias=False),
                nn.BatchNorm2d(o),
                nn.ReLU(inplace=True),
            )

        s.d1 = b(3, 16)
        s.d2 = b(16, 32)
        s.mid = b(32, 64)
        s.p = nn.MaxPool2d(2)
        s.u2 = nn.ConvTranspose2d(64, 32, 2, 2)
        s.c2 = b(64, 32)
        s.u1 = nn.ConvTranspose2d(32, 16, 2, 2)
        s.c1 = b(32, 16)
        s.o = nn.Conv2d(16, 4, 1)

    def forward(s, x):
        a = s.d1(x)
        b = s.d2(s.p(a))
        m = s.mid(s.p(b))
        y = s.c2(torch.cat([s.u2(m), b], 1))
        y = s.c1(torch.cat([s.u1(y), a], 1))
        return s.o(y)


@net("encoder", lambda b: (torch.randn(b, 20, 64),))
class Enc(nn.Module):
    def __init__(s):
        super().__init__()
        s.t = nn.TransformerEncoder(nn.TransformerEncoderLayer(64, 4, 128, batch_first=True), 2)
        s.f = nn.Linear(64, 8)

    def forward(s, x):
        return s.f(s.t(x))


@net("vae", lambda b: (torch.randn(b, 784),))
class VAE(nn.Module):
    def __init__(s):
        super().__init__()
        s.e = nn.Linear(784, 128)
        s.m = nn.Linear(128, 16)
        s.v = nn.Linear(128, 16)
        s.d = nn.Sequential(nn.Linear(16, 128), nn.LeakyReLU(0.2, inplace=True), nn.Linear(128, 784), nn.Sigmoid())

    def forward(s, x):
        h = F.elu(s.e(x))
        mu, lv = s.m(h), s.v(h)
        z = mu + torch.randn_like(mu) * torch.exp(0.5 * lv)
        return s.d(z)


@net("attn", lambda b: (torch.randn(b, 16, 48),))
class Attn(nn.Module):
    def __init__(s):
        super().__init__()
        s.q = nn.Linear(48, 144)
        s.o = nn.Linear(48, 48)
        s.g = nn.Parameter(torch.ones(48))
        s.unused = nn.Linear(5, 5)
        s.dr = nn.Dropout(0.1)

    def forward(s, x):
        B, T, C = x.shape
        y = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * s.g
        q, k, v = s.q(y).view(B, T, 3, 4, 12).permute(2, 0, 3, 1, 4).unbind(0)
        a = (q @ k.transpose(-2, -1)) * 12**-0.5
        m = torch.tril(torch.ones(T, T, device=x.device)).bool()
        a = a.masked_fill(~m, float("-inf")).softmax(-1)
        a = s.dr(a)
        y = (a @ v).transpose(1, 2).reshape(B, T, C)
        x = x + s.o(y)
        x = x + F.silu(x) * torch.tanh(x)
        return x[:, ::2].contiguous().flatten(1)


@net("inplace", lambda b: (torch.randn(b, 8, 20),))
class InP(nn.Module):
    def __init__(s):
        super().__init__()
        s.a = nn.Linear(20, 20)
        s.b = nn.Linear(20, 20)
        s.c = nn.Conv1d(8, 8, 3, padding=1)

    def forward(s, x):
        y = s.a(x)
        y += 1
        y *= 2
        z = torch.zeros_like(y)
        z[:, 2:5] = s.b(y)[:, 2:5]
        z.add_(y)
        h = F.hardtanh_(s.c(z))
        h = F.silu(h, inplace=True)
        h[:, 0].mul_(3)
        return F.log_softmax(h.mean(1) - h.std(1), -1)


@net("gnn", lambda b: (torch.randn(10 * b, 16),))
class GNN(nn.Module):
    def __init__(s):
        super().__init__()
        s.a = nn.Linear(16, 32)
        s.b = nn.Linear(32, 32)
        s.o = nn.Linear(32, 4)
        s.register_buffer("e", torch.randint(0, 10, (2, 40)))

    def forward(s, x):
        for l in (s.a, s.b):
            m = l(x)[s.e[0]]
            x = torch.zeros(x.shape[0], m.shape[1], device=x.device).index_add(0, s.e[1], m)
            x = F.relu(x)
        return s.o(x)


@net("recsys", lambda b: (torch.randint(0, 50, (b,)), torch.randint(0, 60, (b,)), torch.randn(b, 7)))
class Rec(nn.Module):
    def __init__(s):
        super().__init__()
        s.u = nn.Embedding(50, 16)
        s.i = nn.Embedding(60, 16)
        s.m = nn.Sequential(nn.Linear(39, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Dropout(0.3), nn.Linear(64, 1))

    def forward(s, u, i, x):
        a, b = s.u(u), s.i(i)
        d = (a * b).sum(-1, keepdim=True)
        return torch.sigmoid(s.m(torch.cat([a, b, x], -1)) + d)


@net("moe", lambda b: (torch.randn(b * 6, 32),))
class MoE(nn.Module):
    def __init__(s):
        super().__init__()
        s.g = nn.Linear(32, 4)
        s.e = nn.ModuleList(nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 32)) for _ in range(4))

    def forward(s, x):
        w = s.g(x).softmax(-1)
        t, i = w.topk(2, -1)
        mask = torch.zeros_like(w).scatter(-1, i, t)
        mask = mask / mask.sum(-1, keepdim=True)
        return torch.stack([e(x) for e in s.e], 1).mul(mask.unsqueeze(-1)).sum(1)


@net("dit", lambda b: (torch.randn(b, 4, 16, 16), torch.rand(b)))
class DiT(nn.Module):
    def __init__(s):
        super().__init__()
        s.p = nn.Conv2d(4, 48, 2, 2)
        s.pos = nn.Parameter(torch.zeros(1, 64, 48))
        s.t = nn.Sequential(nn.Linear(32, 48), nn.SiLU(), nn.Linear(48, 48))
        s.ada = nn.Linear(48, 288)
        s.n1 = nn.LayerNorm(48, elementwise_affine=False)
        s.n2 = nn.LayerNorm(48, elementwise_affine=False)
        s.a = nn.MultiheadAttention(48, 4, batch_first=True)
        s.m = nn.Sequential(nn.Linear(48, 96), nn.GELU(approximate="tanh"), nn.Linear(96, 48))
        s.o = nn.Linear(48, 16)

    def forward(s, x, t):
        f = torch.exp(-torch.arange(16, device=x.device) * 0.5)
        te = t[:, None] * f
        c = s.t(torch.cat([te.sin(), te.cos()], -1))
        h = s.p(x).flatten(2).transpose(1, 2) + s.pos
        a, b, g, d, e, k = s.ada(F.silu(c)).chunk(6, 1)
        y = s.n1(h) * (1 + b[:, None]) + a[:, None]
        h = h + g[:, None] * s.a(y, y, y, need_weights=False)[0]
        y = s.n2(h) * (1 + e[:, None]) + d[:, None]
        h = h + k[:, None] * s.m(y)
        h = s.o(h)
        B = h.shape[0]
        return h.view(B, 8, 8, 4, 2, 2).permute(0, 3, 1, 4, 2, 5).reshape(B, 4, 16, 16)


@net("gan", lambda b: (torch.randn(b, 3, 32, 32), torch.randn(b, 16)))
class GAN(nn.Module):
    def __init__(s):
        super().__init__()
        sn = nn.utils.parametrizations.spectral_norm
        s.g = nn.Sequential(
            nn.Linear(16, 8 * 8 * 16),
            nn.Unflatten(1, (16, 8, 8)),
            nn.ConvTranspose2d(16, 8, 4, 2, 1),
            nn.BatchNorm2d(8),
            nn.ReLU(True),
            nn.ConvTranspose2d(8, 3, 4, 2, 1),
            nn.Tanh(),
        )
        s.d = nn.Sequential(
            nn.Conv2d(3, 8, 4, 2, 1),
            nn.LeakyReLU(0.2, True),
            nn.Conv2d(8, 16, 4, 2, 1),
            nn.GroupNorm(4, 16),
            nn.LeakyReLU(0.2, True),
            nn.Flatten(),
            nn.Linear(1024, 1),
        )

    def forward(s, x, z):
        f = s.g(z)
        return torch.cat([s.d(x), s.d(f)], 0)


@net("misc", lambda b: (torch.randn(b, 6, 24, 24),))
class Misc(nn.Module):
    def __init__(s):
        super().__init__()
        s.wn = nn.utils.parametrizations.weight_norm(nn.Conv2d(6, 8, 3))
        s.inn = nn.InstanceNorm2d(8, affine=True)
        s.pr = nn.PReLU()
        s.ap = nn.AdaptiveAvgPool2d(4)
        s.bil = nn.Bilinear(8, 8, 5)
        s.rp = nn.ReflectionPad2d(1)

    def forward(s, x):
        y = s.pr(s.inn(s.wn(s.rp(x))))
        u = F.interpolate(y, scale_factor=2, mode="bilinear", align_corners=False)
        y = F.max_pool2d(u, 2) + F.avg_pool2d(u, 2)
        y = s.ap(y)
        y = F.pixel_shuffle(y, 2)
        a = y.flatten(1)[:, :8]
        b = torch.einsum("bchw,bdhw->bcd", y, y).flatten(1)[:, :4]
        b = torch.cat([b, b], 1)
        o = s.bil(a, b)
        c = F.cosine_similarity(a, b, dim=1)
        return o * c[:, None] + torch.where(a.sum(1, keepdim=True) > 0, o, -o).clamp(-1, 1)


@net("losses", lambda b: (torch.randn(b, 40), torch.randn(b, 40)))
class Losses(nn.Module):
    """Losses that PyTorch computes by other operators; what autograd keeps of it is in test_corpus.c."""

    def __init__(s):
        super().__init__()
        s.a = nn.Linear(40, 40)

    def forward(s, x, y):
        a, b = s.a(x), s.a(y)
        return (
            F.l1_loss(a, y)
            + F.kl_div(a.log_softmax(-1), y.softmax(-1), reduction="batchmean")
            + F.kl_div(a.log_softmax(-1), y.log_softmax(-1), reduction="sum", log_target=True)
            + F.pairwise_distance(a, b).mean()
            + F.triplet_margin_loss(a, b, y, swap=True)
            + torch.clamp_min(a, b).exp().mean()
        )


@net("autocast", img("", 32))
class Autocast(nn.Module):
    """Regions of autocast in forward, one inside another."""

    def __init__(s, d=64):
        super().__init__()
        s.p, s.q, s.o, s.g, s.h = nn.Conv2d(3, d, 4, 4), nn.Linear(d, 3 * d), nn.Linear(d, d), nn.GroupNorm(4, d), nn.Linear(d, 10)
        s.l = nn.Parameter(torch.ones(d))

    def forward(s, x):
        with torch.autocast(x.device.type, dtype=torch.bfloat16):
            h = s.g(s.p(x)).flatten(2).transpose(1, 2)
            q, k, v = s.q(h).view(h.shape[0], -1, 3, 4, 16).permute(2, 0, 3, 1, 4)
            h = h + s.l * s.o(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
            with torch.autocast(x.device.type, enabled=False):
                w = (h.float() @ h.float().transpose(1, 2)).softmax(-1)
            h = F.silu(s.o(w @ h)).mean(1)
        return s.h(h.float())


@net("casts", tok(100, 32))
class Casts(nn.Module):
    """What autocast casts: all operands of an einsum, the second half of cross_entropy; a norm in float32 that gives the type back."""

    def __init__(s, d=64):
        super().__init__()
        s.e, s.q, s.o = nn.Embedding(100, d), nn.Linear(d, d), nn.Linear(d, 100)
        s.g = nn.Parameter(torch.ones(d))

    def forward(s, x):
        h = s.q(s.e(x))
        w = (h @ h.transpose(1, 2)).softmax(-1)
        y = torch.einsum("bij,bjk,bik->bik", w, h, s.e(x))
        n = h.float()
        n = s.g * (n * torch.rsqrt(n.pow(2).mean(-1, keepdim=True) + 1e-6)).type_as(h)
        return F.cross_entropy(s.o(y + n).transpose(1, 2)[:, :, :-1], x[:, 1:])


@net("masked", lambda b: (torch.rand(b, 48, 32),))
class Masked(nn.Module):
    """Attention that gives its weights, with two masks of booleans: in evaluation the fast path without a fused kernel."""

    def __init__(s):
        super().__init__()
        s.l, s.m = nn.Linear(32, 32), nn.MultiheadAttention(32, 4, 0.1, batch_first=True)

    def forward(s, x):
        x = s.l(x)
        causal = torch.triu(torch.ones(48, 48, dtype=torch.bool, device=x.device), 1)
        padding = torch.zeros(x.shape[0], 48, dtype=torch.bool, device=x.device)
        return s.l(s.m(x, x, x, padding, True, causal)[0])


@net("odd_heads", lambda b: (torch.rand(b, 48, 36),))
class OddHeads(nn.Module):
    """A layer whose heads are nine wide, which no fused kernel takes in the fast path."""

    def __init__(s):
        super().__init__()
        s.l, s.m = nn.Linear(36, 36), nn.TransformerEncoderLayer(36, 4, 64, 0.1, "gelu", batch_first=True, norm_first=True)

    def forward(s, x):
        return s.l(s.m(s.l(x)))


@net("joined_types", lambda b: (torch.rand(b, 512, 448),))
class JoinedTypes(nn.Module):
    """Joins a result in bfloat16 with its input in float32: the engine casts the part of the gradient, and lets the whole go."""

    def __init__(s, d=64):
        super().__init__()
        s.a, s.b, s.c = nn.Sequential(nn.Linear(448, 1024), nn.ReLU(), nn.Linear(1024, d)), nn.Linear(d + 448, d), nn.Linear(d, 8)

    def forward(s, x):
        return s.c(s.b(torch.cat([s.a(x), x], -1)))


@net("overwritten_rows", lambda b: (torch.rand(b, 512, 64),))
class OverwrittenRows(nn.Module):
    """Overwrites the results of linear layers over rows, which are no views to autograd though they share a matrix."""

    def __init__(s, d=512):
        super().__init__()
        s.a, s.b, s.c = nn.Linear(64, d), nn.Linear(d, d), nn.Linear(d, 8)

    def forward(s, x):
        return s.c(F.elu_(s.b(F.elu_(s.a(x)))))


@net("rotary", lambda b: (torch.rand(b, 256, 64),))
class Rotary(nn.Module):
    """Positions as products of complex numbers, whose gradients reach the layer behind. Parameters in an order that forward has not."""

    def __init__(s, d=64):
        super().__init__()
        s.o, s.b, s.a = nn.Linear(d, 8), nn.Linear(d, 512), nn.Linear(d, d)
        turns = torch.outer(torch.arange(256), 1e4 ** (-torch.arange(0, 16, 2) / 16))
        s.register_buffer("turns", torch.polar(torch.ones_like(turns), turns)[:, None])

    def forward(s, x):
        x = s.a(x).view(x.shape[0], 256, 4, 8, 2)
        x = torch.view_as_real(torch.view_as_complex(x) * s.turns).flatten(2)
        return s.o(F.relu(s.b(x))[..., :64])


@net("cells", lambda b: (torch.rand(b, 3, 96),))
class Cells(nn.Module):
    """Cells of recurrent layers: plain ones are two linear layers, of the others a kernel adds the biases."""

    def __init__(s, d=96):
        super().__init__()
        s.t, s.r, s.g, s.l = nn.RNNCell(d, d), nn.RNNCell(d, d, nonlinearity="relu"), nn.GRUCell(d, d), nn.LSTMCell(d, d)
        s.o = nn.Linear(d, 10)

    def forward(s, x):
        a = b = c = d = torch.tanh(x[:, 0])
        for i in range(1, x.shape[1]):
            a = s.r(s.t(x[:, i], a), a)
            b = s.g(a, b)
            c, d = s.l(b, (c, d))
        return s.o(c)


@net("tied", tok(300, 16))
class Tied(nn.Module):
    """A language model whose last layer is its embedding: one parameter of two names."""

    def __init__(s, d=64):
        super().__init__()
        s.e, s.l, s.o = nn.Embedding(300, d), nn.Linear(d, d), nn.Linear(d, 300)
        s.o.weight = s.e.weight

    def forward(s, x):
        return s.o(torch.tanh(s.l(s.e(x))))


class Turned(nn.Module):
    def __init__(s, d=64):
        super().__init__()
        s.a, s.b = nn.Linear(d, 2 * d), nn.Linear(2 * d, d)

    def forward(s, x, turns):
        return x + s.b(F.gelu(s.a(x * turns)))


@net("given_buffers", tok(300, 32))
class GivenBuffers(nn.Module):
    """Blocks that are given a buffer of the network's: none of them can be handed on to from the embedding by itself."""

    def __init__(s, d=64):
        super().__init__()
        s.e, s.l, s.o = nn.Embedding(300, d), nn.ModuleList(Turned(d) for _ in range(3)), nn.Linear(d, 8)
        s.register_buffer("turns", torch.rand(32, d))

    def forward(s, x):
        x = s.e(x)
        for layer in s.l:
            x = layer(x, s.turns)
        return s.o(x)


@net("teacher", lambda b: (torch.rand(b, 16, 96),))
class Teacher(nn.Module):
    """A teacher without gradient, whose weights autocast casts again at each use, and a matrix that is used as a view."""

    def __init__(s, d=96):
        super().__init__()
        s.t = nn.ModuleList(nn.Linear(d, 4 * d) if i % 2 == 0 else nn.Linear(4 * d, d) for i in range(4)).requires_grad_(False)
        s.w, s.o = nn.Parameter(torch.rand(d, 2, d // 2)), nn.Linear(d, d)

    def forward(s, x):
        y = x
        with torch.no_grad():
            for layer in s.t:
                y = torch.relu(layer(y))
            for _ in range(3):
                y = y @ s.w.flatten(1)
        return s.o(x @ s.w.flatten(1)) - y


@net("widened", lambda b: (torch.rand(b, 2, 4, 256, 32),))
class Widened(nn.Module):
    """Attention over five dims runs by parts, in float32 for 16 bits, and casts its probabilities although nobody takes them."""

    def __init__(s):
        super().__init__()
        s.o = nn.Linear(32, 8)

    def forward(s, x):
        with torch.no_grad():
            x = x.to(torch.bfloat16)
            y = F.scaled_dot_product_attention(x, x, x)
        return s.o(y.mean((1, 2, 3), dtype=torch.float32))


class Normed(nn.Module):
    def __init__(s, d):
        super().__init__()
        s.weight = nn.Parameter(torch.ones(d))

    def forward(s, x):
        input_dtype = x.dtype
        x = x.to(torch.float32)
        x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
        return s.weight * x.to(input_dtype)


@net("named_types", lambda b: (torch.rand(b, 16, 64),))
class NamedTypes(nn.Module):
    """Norms in float32 of what may have 16 bits: behind a linear layer, and before one, where the sum has 32."""

    def __init__(s, d=64):
        super().__init__()
        s.a, s.b, s.n, s.m = nn.Linear(d, d), nn.Linear(d, d), Normed(d), Normed(d)

    def forward(s, x):
        x = x + s.n(s.a(x))
        return s.b(s.m(x))


@net("lists_of_layers", tok(300, 32))
class ListsOfLayers(nn.Module):
    """Layers in lists, which are parts of names and are not called."""

    def __init__(s, d=64):
        super().__init__()
        s.e, s.o = nn.Embedding(300, d), nn.Linear(d, 8)
        s.l = nn.ModuleList(nn.ModuleList([nn.LayerNorm(d), nn.Linear(d, 4 * d), nn.Linear(4 * d, d)]) for _ in range(3))

    def forward(s, x):
        x = s.e(x)
        for n, a, b in s.l:
            x = x + b(F.gelu(a(n(x))))
        return s.o(x)


@net("column_norms", lambda b: (torch.rand(b, 4096, 64),))
class ColumnNorms(nn.Module):
    """A norm over the rows of what was turned: the values that are added up lie apart, those of the other dim side by side."""

    def __init__(s, d=64):
        super().__init__()
        s.w = nn.Parameter(torch.rand(d))

    def forward(s, x):
        return torch.linalg.vector_norm((x * s.w).transpose(1, 2), dim=-1)


@net("circular_pads", lambda b: (torch.rand(b, 256, 128),))
class CircularPads(nn.Module):
    """What is padded by its other end is copied in parts, and not read in backward: the norm's result is not kept."""

    def __init__(s, d=128):
        super().__init__()
        s.n, s.w = nn.LayerNorm(d), nn.Parameter(torch.rand(259))

    def forward(s, x):
        return F.pad(s.n(x).transpose(1, 2), (2, 1), mode="circular") * s.w


@net("filled_result", lambda b: (torch.rand(b, 256, 128),))
class FilledResult(nn.Module):
    """The result is there early, and filled; until forward returns, the caller's name holds that of the iteration before."""

    def __init__(s, d=128):
        super().__init__()
        s.w = nn.Parameter(torch.rand(d))

    def forward(s, x):
        y = x.new_empty(x.shape[0], 1024, 128)
        y[:, :256] = x * s.w
        y[:, 256:] = x.repeat(1, 3, 1) * s.w * x.repeat(1, 1, 24).mean()
        return y


@net("pooled_part", lambda b: (torch.rand(b, 64, 64, 192),))
class PooledPart(nn.Module):
    """Images whose channels come last, a part of those of a product: pooling copies them."""

    def __init__(s, d=192):
        super().__init__()
        s.w = nn.Parameter(torch.rand(d))

    def forward(s, x):
        return F.max_pool2d((x * s.w)[..., :64].permute(0, 3, 1, 2), 2)


@net("fixed_point", lambda b: (torch.rand(b, 256, 256),))
class FixedPoint(nn.Module):
    """Autocast casts a weight first where nothing has gradients, and reads that cast where all have."""

    def __init__(s, d=256):
        super().__init__()
        s.l = nn.Linear(d, d)

    def forward(s, x):
        with torch.no_grad():
            z = torch.tanh(s.l(x))
        return torch.tanh(s.l(z) + x)


@net("checkpointed_chunks", lambda b: (torch.rand(b, 1024, 64),))
class CheckpointedChunks(nn.Module):
    """A loop runs one function inside a checkpoint again and again, and the line adds what it gives."""

    def __init__(s, d=64):
        super().__init__()
        s.l = nn.Linear(d, 1024)
        s.o = nn.Linear(d, 4)

    def part(s, h):
        return torch.log_softmax(s.l(h), -1).mean((0, 1))

    def forward(s, x):
        total = s.o(x).mean()
        for h in x.chunk(8, 1):
            total = total + checkpoint(s.part, h, use_reentrant=False)
        return total


@net("summed_log_probs", lambda b: (torch.rand(b, 256, 512),))
class SummedLogProbs(nn.Module):
    """Of two gradients the first is a sum's, which repeats elements: what is added is dense, and not copied."""

    def __init__(s, d=512):
        super().__init__()
        s.w = nn.Parameter(torch.rand(d))

    def forward(s, x):
        y = F.log_softmax(x * s.w, -1)
        return y[..., 0] + y.sum(-1)


@net("dotted", lambda b: (torch.rand(b, 64, 64),))
class Dotted(nn.Module):
    """A product of two vectors and no other one: cuBLAS has its workspace for that, too."""

    def __init__(s, d=64):
        super().__init__()
        s.w = nn.Parameter(torch.rand(d))

    def forward(s, x):
        return torch.dot(s.w, x.mean((0, 1)))


@net("batched_weight", lambda b: (torch.rand(b, 64, 256),))
class BatchedWeight(nn.Module):
    """A product of batches expands a matrix: autocast casts it before. What a network expands is cast as it is."""

    def __init__(s, d=256):
        super().__init__()
        s.register_buffer("w", torch.rand(d, 4 * d))
        s.l, s.v = nn.Linear(d, d, bias=False), nn.Parameter(torch.rand(4 * d, 64))

    def forward(s, x):
        y = torch.matmul(s.l(x).transpose(1, 2), s.w[:64])
        return torch.softmax(torch.bmm(y, s.v.expand(x.shape[0], -1, -1)), -1)


@net("weight_hook", lambda b: (torch.rand(b, 64, 128),))
class WeightHook(nn.Module):
    """torch.nn.utils.spectral_norm() sets the module's weight before each call: the module has it until the next one."""

    def __init__(s, d=128):
        super().__init__()
        s.a, s.b, s.c = (nn.utils.spectral_norm(nn.Linear(d, d)) for _ in range(3))

    def forward(s, x):
        return s.c(torch.relu(s.b(torch.relu(s.a(x)))))


@net("many_bags", lambda b: (torch.randint(0, 2000, (b, 256, 16)),))
class ManyBags(nn.Module):
    """Backward of bags sorts what they looked up, however few there are."""

    def __init__(s, d=64):
        super().__init__()
        s.e = nn.EmbeddingBag(2000, d, mode="sum")

    def forward(s, x):
        return s.e(x.flatten(0, 1))


@net("bilinear_form", lambda b: (torch.rand(b, 64), torch.rand(b, 48)))
class BilinearForm(nn.Module):
    """A product of matrices for each result, with cuBLAS's workspace."""

    def __init__(s):
        super().__init__()
        s.b = nn.Bilinear(64, 48, 8)

    def forward(s, x, y):
        return s.b(x, y)


@net("smoothed_labels", lambda b: (torch.rand(b, 256, 64), torch.randint(0, 16384, (b, 256))))
class SmoothedLabels(nn.Module):
    """Under autocast the labels' part is summed in float32 of what log_softmax gives in 16 bits."""

    def __init__(s):
        super().__init__()
        s.l = nn.Linear(64, 16384)

    def forward(s, x, y):
        return F.cross_entropy(s.l(x).flatten(0, 1), y.flatten(), label_smoothing=0.1)


@net("camera_rays", lambda b: (torch.rand(b, 64, 4, 4),))
class CameraRays(nn.Module):
    """Inverses of small matrices take cuBLAS's workspace."""

    def __init__(s):
        super().__init__()
        s.w = nn.Parameter(torch.rand(4, 4) + 4 * torch.eye(4))

    def forward(s, x):
        return torch.linalg.inv(x * s.w)


@net("paired_losses", lambda b: (torch.rand(b, 512, 64), torch.rand(b, 512, 64)))
class PairedLosses(nn.Module):
    """Losses that PyTorch computes by other operators."""

    def __init__(s):
        super().__init__()
        s.l = nn.Linear(64, 64)

    def forward(s, x, y):
        x = s.l(x)
        a = F.margin_ranking_loss(x, y, torch.ones_like(y))
        b = F.hinge_embedding_loss(x, torch.ones_like(y))
        c = F.poisson_nll_loss(x, y)
        d = F.cosine_embedding_loss(x.flatten(0, 1), y.flatten(0, 1), torch.ones_like(y[..., 0]).flatten(), 0.1)
        weight, rows, likely = torch.ones_like(y[0, 0]), x.flatten(0, 1), y.flatten(0, 1).softmax(-1)
        e = F.cross_entropy(rows, likely.argmax(-1), weight, label_smoothing=0.1)
        return a + b + c + d + e + F.cross_entropy(rows, likely, weight)


@net("turned_views", lambda b: (torch.rand(b, 8, 32, 32),))
class TurnedViews(nn.Module):
    """affine_grid multiplies matrices: it takes cuBLAS's workspace."""

    def __init__(s):
        super().__init__()
        s.w = nn.Parameter(torch.rand(2, 3))

    def forward(s, x):
        grid = F.affine_grid(s.w.expand(x.shape[0], 2, 3), x.shape, align_corners=False)
        return F.grid_sample(x, grid, align_corners=False)


@net("hidden_results", lambda b: (torch.rand(b, 64, 256), torch.randint(0, 256, (b, 64, 32))))
class HiddenResults(nn.Module):
    """Kernels keep noise, a mask, and wrapped indices that their calls do not give."""

    def __init__(s):
        super().__init__()
        s.l = nn.Linear(256, 256)

    def forward(s, x, i):
        x = F.rrelu(s.l(x), training=True)
        x = torch.fake_quantize_per_tensor_affine(x, 0.1, 0, -128, 127)
        return torch.take_along_dim(x, i, 2)


@net("one_statistic", lambda b: (torch.rand(b, 64, 4096),))
class OneStatistic(nn.Module):
    """Backward of var_mean has a part for each result that has a gradient."""

    def __init__(s):
        super().__init__()
        s.w = nn.Parameter(torch.ones(4096))

    def forward(s, x):
        variance, _ = torch.var_mean(x * s.w, -1)
        return variance


@net("square_slopes", lambda b: (torch.rand(b, 512, 512),))
class SquareSlopes(nn.Module):
    """PReLU of three dims, as many channels as elements in a row."""

    def __init__(s):
        super().__init__()
        s.p = nn.PReLU(512)

    def forward(s, x):
        return s.p(x)


@net("pooled_neighbours", lambda b: (torch.rand(b, 512, 3), torch.rand(b, 64, 512, 64)))
class PooledNeighbours(nn.Module):
    """A factor's gradient has the order of the other one where the product was summed; topk by many blocks of threads."""

    def __init__(s):
        super().__init__()
        s.l, s.c = nn.Linear(64, 64, bias=False), nn.Conv2d(64, 32, 1)

    def forward(s, points, x):
        nearest = torch.cdist(points, points).topk(64, dim=-1, largest=False)[0]
        scores = (s.l(x.permute(0, 2, 3, 1)) + nearest.unsqueeze(-1)).softmax(dim=-2).permute(0, 3, 1, 2)
        return s.c(torch.sum(scores * x, dim=-1, keepdim=True))


@net("words_and_sentences", lambda b: (torch.rand(b, 32, 64, 64),))
class WordsAndSentences(nn.Module):
    """The gradient of a recurrent layer's input has its order of memory: a layer before, whose batch comes first, copies it."""

    def __init__(s):
        super().__init__()
        s.words, s.sentences = nn.GRU(64, 64, batch_first=True), nn.GRU(64, 64, batch_first=True)

    def forward(s, x):
        words, _ = s.words(x.flatten(0, 1))
        sentences = (words * words.softmax(dim=1)).sum(dim=1).unflatten(0, (-1, 32))
        return s.sentences(sentences)[0].mean(1)


@net("scans_of_views", lambda b: (torch.rand(b, 64, 256),))
class ScansOfViews(nn.Module):
    """Scans copy what is not contiguous; addr's kernel needs no workspace, its gradients are products with vectors."""

    def __init__(s):
        super().__init__()
        s.w = nn.Parameter(torch.rand(64))

    def forward(s, x):
        x = x.transpose(1, 2).cumsum(-1)
        return torch.addr(x[0], x[0, :, 0], s.w)


@net("bounded_by_tensors", lambda b: (torch.rand(b, 64, 4096),))
class BoundedByTensors(nn.Module):
    """Backward of clamp() reuses its masks before it makes half of the gradient."""

    def __init__(s):
        super().__init__()
        s.w = nn.Parameter(torch.ones(4096))
        s.register_buffer("low", torch.zeros(4096))
        s.register_buffer("high", torch.ones(4096))

    def forward(s, x):
        return torch.clamp(x * s.w, s.low, s.high)


@net("tall_bases", lambda b: (torch.rand(b, 16, 32, 24),))
class TallBases(nn.Module):
    """cuBLAS decomposes many small matrices; backward takes products of the factors."""

    def __init__(s):
        super().__init__()
        s.w = nn.Parameter(torch.rand(32, 24))

    def forward(s, x):
        q, r = torch.linalg.qr(x + s.w)
        return q * r.sum()


@net("conjugates", lambda b: (torch.rand(b, 2, 8192),))
class Conjugates(nn.Module):
    """Products copy a conjugate, which is a view; its backward does not, and that of the other factor does."""

    def __init__(s):
        super().__init__()
        s.w = nn.Parameter(torch.rand(8192))

    def forward(s, x):
        z = torch.complex(x[:, 0] * s.w, x[:, 1])
        return torch.view_as_real(z * z.conj())


@net("patches_of_images", lambda b: (torch.rand(b, 8, 64, 64),))
class PatchesOfImages(nn.Module):
    """Patches that do not overlap have the memory that was allocated like the image; windows that do are allocated beside it."""

    def __init__(s):
        super().__init__()
        s.w = nn.Parameter(torch.rand(8, 1, 1))

    def forward(s, x):
        patches = F.unfold(x * s.w, 8, stride=8)
        return F.fold(F.unfold(F.fold(patches, 64, 8, stride=8), 3, padding=1), 64, 3, padding=1)


@net("smoothed_pixels", lambda b: (torch.rand(b, 4, 64, 64), torch.randint(0, 4, (b, 64, 64))))
class SmoothedPixels(nn.Module):
    """With few classes the integers by which pixels are counted are the most that smoothing makes."""

    def __init__(s):
        super().__init__()
        s.w = nn.Parameter(torch.rand(4, 1, 1))
        s.register_buffer("weight", torch.ones(4))

    def forward(s, x, y):
        each = F.cross_entropy(x * s.w, y, s.weight, reduction="none", label_smoothing=0.1)
        return F.cross_entropy(x * s.w, y, label_smoothing=0.1) + each.mean()


@net("projected_states", lambda b: (torch.rand(b, 32, 48),))
class ProjectedStates(nn.Module):
    """cuDNN's workspace of layers with projections was not measured: it is no row of measured.txt."""

    def __init__(s):
        super().__init__()
        s.l = nn.LSTM(48, 64, proj_size=16, batch_first=True)

    def forward(s, x):
        return s.l(x)[0]


@net("phases", lambda b: (torch.rand(b, 2, 8192),))
class Phases(nn.Module):
    """The angle of complex numbers is computed as complex numbers; backward divides them by squares."""

    def __init__(s):
        super().__init__()
        s.w = nn.Parameter(torch.rand(8192))

    def forward(s, x):
        return torch.angle(torch.complex(x[:, 0] * s.w, x[:, 1]))


@net("warped_images", lambda b: (torch.rand(b, 4, 64, 64), torch.rand(b, 2, 64, 64)))
class WarpedImages(nn.Module):
    """cuDNN samples with aligned corners, and copies a grid that is not contiguous; PyTorch's kernel does not."""

    def __init__(s):
        super().__init__()
        s.w = nn.Parameter(torch.rand(4, 1, 1))
        s.v = nn.Parameter(torch.rand(2, 1, 1))

    def forward(s, x, flow):
        x, grid = x * s.w, (flow * s.v).permute(0, 2, 3, 1)
        return F.grid_sample(x, grid, align_corners=True) + F.grid_sample(x, grid, align_corners=False)
