"""Fresh networks written as people write them: text, series, tables, graphs, agents, physics. Written down before any was run or predicted."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils import parametrizations

from .common import Network, numbers, together, values


class TextCNN(nn.Module):
    def __init__(self, vocab=400, dim=32):
        super(TextCNN, self).__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.convs = nn.ModuleList([nn.Conv2d(1, 16, (k, dim)) for k in (3, 4, 5)])
        self.dropout = nn.Dropout(0.5)
        self.fc1 = nn.Linear(48, 4)

    def forward(self, x):
        x = self.embed(x)
        x = x.unsqueeze(1)
        x = [F.relu(conv(x)).squeeze(3) for conv in self.convs]
        x = [F.max_pool1d(i, i.size(2)).squeeze(2) for i in x]
        x = torch.cat(x, 1)
        x = self.dropout(x)
        return self.fc1(x)


class BiLSTMAttention(nn.Module):
    def __init__(self, vocab=300, emb=24, hidden=32):
        super().__init__()
        self.embedding = nn.Embedding(vocab, emb)
        self.lstm = nn.LSTM(emb, hidden, bidirectional=True)
        self.w = nn.Parameter(torch.zeros(hidden * 2))
        self.fc = nn.Linear(hidden * 2, 3)

    def forward(self, x):
        emb = self.embedding(x).permute(1, 0, 2)
        H, _ = self.lstm(emb)
        H = H.permute(1, 0, 2)
        M = torch.tanh(H)
        alpha = F.softmax(torch.matmul(M, self.w), dim=1).unsqueeze(-1)
        out = torch.sum(H * alpha, 1)
        out = F.relu(out)
        return self.fc(out)


class NanoGPT(nn.Module):
    class Block(nn.Module):
        def __init__(self, c, h, t):
            super().__init__()
            self.ln_1, self.ln_2 = nn.LayerNorm(c, bias=False), nn.LayerNorm(c, bias=False)
            self.c_attn, self.c_proj = nn.Linear(c, 3 * c, bias=False), nn.Linear(c, c, bias=False)
            self.fc, self.proj = nn.Linear(c, 4 * c, bias=False), nn.Linear(4 * c, c, bias=False)
            self.h, self.dropout = h, nn.Dropout(0.1)

        def forward(self, x):
            B, T, C = x.size()
            q, k, v = self.c_attn(self.ln_1(x)).split(C, dim=2)
            k = k.view(B, T, self.h, C // self.h).transpose(1, 2)
            q = q.view(B, T, self.h, C // self.h).transpose(1, 2)
            v = v.view(B, T, self.h, C // self.h).transpose(1, 2)
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=None, dropout_p=0.1 if self.training else 0, is_causal=True)
            y = y.transpose(1, 2).contiguous().view(B, T, C)
            x = x + self.dropout(self.c_proj(y))
            return x + self.dropout(self.proj(F.gelu(self.fc(self.ln_2(x)))))

    def __init__(self, vocab=96, c=64, t=32):
        super().__init__()
        self.transformer = nn.ModuleDict(dict(wte=nn.Embedding(vocab, c), wpe=nn.Embedding(t, c), drop=nn.Dropout(0.1),
                                              h=nn.ModuleList([self.Block(c, 4, t) for _ in range(2)]), ln_f=nn.LayerNorm(c, bias=False)))
        self.lm_head = nn.Linear(c, vocab, bias=False)
        self.transformer.wte.weight = self.lm_head.weight

    def forward(self, idx, targets):
        pos = torch.arange(0, idx.size(1), dtype=torch.long, device=idx.device)
        x = self.transformer.drop(self.transformer.wte(idx) + self.transformer.wpe(pos))
        for block in self.transformer.h:
            x = block(x)
        logits = self.lm_head(self.transformer.ln_f(x))
        return F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)


class RMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.eps, self.weight = eps, nn.Parameter(torch.ones(dim))

    def _norm(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)

    def forward(self, x):
        return self._norm(x.float()).type_as(x) * self.weight


class MiniLlama(nn.Module):
    """Rotary positions by complex numbers, grouped keys."""

    def __init__(self, vocab=120, dim=64, heads=4, kv=2, layers=2, seq=24):
        super().__init__()
        self.tok, self.heads, self.kv, self.hd = nn.Embedding(vocab, dim), heads, kv, dim // heads
        self.layers = nn.ModuleList(nn.ModuleDict({
            "an": RMSNorm(dim), "q": nn.Linear(dim, dim, bias=False), "k": nn.Linear(dim, kv * self.hd, bias=False),
            "v": nn.Linear(dim, kv * self.hd, bias=False), "o": nn.Linear(dim, dim, bias=False), "fn": RMSNorm(dim),
            "w1": nn.Linear(dim, 128, bias=False), "w2": nn.Linear(128, dim, bias=False), "w3": nn.Linear(dim, 128, bias=False)})
            for _ in range(layers))
        self.norm, self.out = RMSNorm(dim), nn.Linear(dim, vocab, bias=False)
        freqs = 1.0 / (10000 ** (torch.arange(0, self.hd, 2).float() / self.hd))
        self.register_buffer("angles", torch.outer(torch.arange(seq).float(), freqs), persistent=False)

    def rotate(self, x):
        x1, x2 = x.float().reshape(*x.shape[:-1], -1, 2).unbind(-1)
        cos, sin = self.angles.cos()[None, :, None], self.angles.sin()[None, :, None]
        return torch.stack([x1 * cos - x2 * sin, x1 * sin + x2 * cos], -1).flatten(3).type_as(x)

    def forward(self, tokens):
        b, s = tokens.shape
        h = self.tok(tokens)
        mask = torch.full((s, s), float("-inf"), device=tokens.device)
        mask = torch.triu(mask, diagonal=1)
        for l in self.layers:
            x = l["an"](h)
            q = self.rotate(l["q"](x).view(b, s, self.heads, self.hd))
            k = self.rotate(l["k"](x).view(b, s, self.kv, self.hd))
            v = l["v"](x).view(b, s, self.kv, self.hd)
            k, v = (t[:, :, :, None, :].expand(b, s, self.kv, self.heads // self.kv, self.hd).reshape(b, s, self.heads, self.hd) for t in (k, v))
            q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
            scores = torch.matmul(q, k.transpose(2, 3)) / math.sqrt(self.hd)
            scores = F.softmax((scores + mask).float(), dim=-1).type_as(q)
            h = h + l["o"](torch.matmul(scores, v).transpose(1, 2).contiguous().view(b, s, -1))
            x = l["fn"](h)
            h = h + l["w2"](F.silu(l["w1"](x)) * l["w3"](x))
        return self.out(self.norm(h)).float()


class LoRANet(nn.Module):
    """Frozen layers with adapters."""

    class LoRALinear(nn.Module):
        def __init__(self, i, o, r=4):
            super().__init__()
            self.base = nn.Linear(i, o)
            self.base.weight.requires_grad_(False)
            self.base.bias.requires_grad_(False)
            self.A, self.B = nn.Parameter(torch.randn(r, i) * 0.01), nn.Parameter(torch.zeros(o, r))
            self.drop, self.scaling = nn.Dropout(0.05), 2.0

        def forward(self, x):
            return self.base(x) + (self.drop(x) @ self.A.t() @ self.B.t()) * self.scaling

    def __init__(self, d=48):
        super().__init__()
        self.emb = nn.Embedding(200, d)
        self.emb.weight.requires_grad = False
        self.l1, self.l2, self.head = self.LoRALinear(d, d * 2), self.LoRALinear(d * 2, d), nn.Linear(d, 6)

    def forward(self, x):
        x = self.emb(x)
        x = x + self.l2(F.gelu(self.l1(x)))
        return self.head(x.mean(1))


class Mamba(nn.Module):
    """A selective scan, step by step."""

    def __init__(self, vocab=80, d=24, n=8, inner=48):
        super().__init__()
        self.emb, self.in_proj = nn.Embedding(vocab, d), nn.Linear(d, inner * 2, bias=False)
        self.conv = nn.Conv1d(inner, inner, 4, groups=inner, padding=3)
        self.x_proj, self.dt_proj = nn.Linear(inner, 2 + n * 2, bias=False), nn.Linear(2, inner)
        self.A_log = nn.Parameter(torch.log(torch.arange(1, n + 1, dtype=torch.float32).repeat(inner, 1)))
        self.D, self.out_proj, self.n = nn.Parameter(torch.ones(inner)), nn.Linear(inner, d, bias=False), n
        self.norm, self.head = nn.LayerNorm(d), nn.Linear(d, vocab, bias=False)

    def ssm(self, x):
        A = -torch.exp(self.A_log.float())
        dt, B, C = self.x_proj(x).split([2, self.n, self.n], dim=-1)
        dt = F.softplus(self.dt_proj(dt))
        dA = torch.exp(torch.einsum("bld,dn->bldn", dt, A))
        dBu = torch.einsum("bld,bln,bld->bldn", dt, B, x)
        state = torch.zeros(x.shape[0], x.shape[2], self.n, device=x.device)
        ys = []
        for i in range(x.shape[1]):
            state = dA[:, i] * state + dBu[:, i]
            ys.append(torch.einsum("bdn,bn->bd", state, C[:, i, :]))
        return torch.stack(ys, dim=1) + x * self.D

    def forward(self, ids):
        h = self.emb(ids)
        x, res = self.in_proj(self.norm(h)).chunk(2, dim=-1)
        x = self.conv(x.transpose(1, 2))[:, :, :ids.shape[1]].transpose(1, 2)
        y = self.ssm(F.silu(x)) * F.silu(res)
        return self.head(h + self.out_proj(y))


class RWKV(nn.Module):
    def __init__(self, vocab=64, d=32):
        super().__init__()
        self.emb, self.ln1, self.ln2 = nn.Embedding(vocab, d), nn.LayerNorm(d), nn.LayerNorm(d)
        self.mk, self.mv, self.mr = (nn.Parameter(torch.rand(1, 1, d)) for _ in range(3))
        self.decay, self.first = nn.Parameter(torch.zeros(d)), nn.Parameter(torch.zeros(d))
        self.key, self.value, self.receptance, self.output = (nn.Linear(d, d, bias=False) for _ in range(4))
        self.time_shift = nn.ZeroPad2d((0, 0, 1, -1))
        self.fk, self.fv, self.head = nn.Linear(d, 4 * d, bias=False), nn.Linear(4 * d, d, bias=False), nn.Linear(d, vocab)

    def forward(self, idx):
        x = self.emb(idx)
        y = self.ln1(x)
        xx = self.time_shift(y)
        k = self.key(y * self.mk + xx * (1 - self.mk))
        v = self.value(y * self.mv + xx * (1 - self.mv))
        r = torch.sigmoid(self.receptance(y * self.mr + xx * (1 - self.mr)))
        aa = bb = torch.zeros_like(k[:, 0])
        w, out = -torch.exp(self.decay), []
        for t in range(k.size(1)):
            ek = torch.exp(k[:, t])
            out.append((aa + torch.exp(self.first) * ek * v[:, t]) / (bb + torch.exp(self.first) * ek + 1e-8))
            aa = torch.exp(w) * aa + ek * v[:, t]
            bb = torch.exp(w) * bb + ek
        x = x + self.output(r * torch.stack(out, 1))
        k = torch.square(torch.relu(self.fk(self.ln2(x))))
        return self.head(x + self.fv(k))


class PointerNet(nn.Module):
    """An LSTM cell that points at its input, in a loop."""

    def __init__(self, hidden=32, steps=5):
        super().__init__()
        self.enc, self.dec = nn.LSTM(2, hidden, batch_first=True), nn.LSTMCell(2, hidden)
        self.W1, self.W2, self.v, self.steps = nn.Linear(hidden, hidden), nn.Linear(hidden, hidden), nn.Linear(hidden, 1), steps

    def forward(self, x):
        enc, (h, c) = self.enc(x)
        h, c = h[0], c[0]
        inp, logits = x.mean(1), []
        for _ in range(self.steps):
            h, c = self.dec(inp, (h, c))
            u = self.v(torch.tanh(self.W1(enc) + self.W2(h).unsqueeze(1))).squeeze(-1)
            logits.append(u)
            inp = torch.bmm(u.softmax(-1).unsqueeze(1), x).squeeze(1)
        return torch.stack(logits, 1)


class Tacotron(nn.Module):
    """Prenet with dropout that stays on, CBHG in small."""

    def __init__(self, vocab=40, d=32):
        super().__init__()
        self.emb = nn.Embedding(vocab, d)
        self.pre1, self.pre2 = nn.Linear(d, d), nn.Linear(d, d // 2)
        self.bank = nn.ModuleList(nn.Conv1d(d // 2, d // 2, k, padding=k // 2) for k in range(1, 5))
        self.bns = nn.ModuleList(nn.BatchNorm1d(d // 2) for _ in range(4))
        self.proj = nn.Conv1d(d * 2, d // 2, 3, padding=1)
        self.highway_h, self.highway_t = nn.Linear(d // 2, d // 2), nn.Linear(d // 2, d // 2)
        self.gru = nn.GRU(d // 2, d // 2, batch_first=True, bidirectional=True)
        self.mel = nn.Linear(d, 20)

    def forward(self, text):
        x = self.emb(text)
        x = F.dropout(F.relu(self.pre1(x)), 0.5, training=True)
        x = F.dropout(F.relu(self.pre2(x)), 0.5, training=True)
        T = x.size(1)
        y = x.transpose(1, 2)
        bank = torch.cat([bn(F.relu(conv(y)[:, :, :T])) for conv, bn in zip(self.bank, self.bns)], dim=1)
        y = self.proj(F.max_pool1d(F.pad(bank, (0, 1)), 2, 1)).transpose(1, 2) + x
        H, Tg = F.relu(self.highway_h(y)), torch.sigmoid(self.highway_t(y))
        y = H * Tg + y * (1.0 - Tg)
        return self.mel(self.gru(y)[0])


class SpecAugCTC(nn.Module):
    """Speech to characters with a CTC loss inside."""

    def __init__(self, mels=40, classes=29):
        super().__init__()
        self.cnn = nn.Sequential(nn.Conv2d(1, 8, 3, stride=2, padding=1), nn.GELU(), nn.Conv2d(8, 8, 3, padding=1), nn.GELU())
        self.fc, self.ln = nn.Linear(160, 48), nn.LayerNorm(48)
        self.rnn, self.out = nn.GRU(48, 48, 1, batch_first=True, bidirectional=True), nn.Linear(96, classes)

    def forward(self, spec):
        x = self.cnn(spec)
        b, c, f, t = x.size()
        x = x.view(b, c * f, t).transpose(1, 2)
        x = F.gelu(self.ln(self.fc(x)))
        x, _ = self.rnn(x)
        return F.log_softmax(self.out(x), dim=2)


class ConvTasNet(nn.Module):
    def __init__(self, n=32, l=16, blocks=3):
        super().__init__()
        self.encoder, self.decoder = nn.Conv1d(1, n, l, stride=l // 2, bias=False), nn.ConvTranspose1d(n, 1, l, stride=l // 2, bias=False)
        self.norm = nn.GroupNorm(1, n)
        self.blocks = nn.ModuleList(nn.Sequential(nn.Conv1d(n, n * 2, 1), nn.PReLU(), nn.GroupNorm(1, n * 2),
                                                  nn.Conv1d(n * 2, n * 2, 3, padding=2 ** i, dilation=2 ** i, groups=n * 2), nn.PReLU(),
                                                  nn.GroupNorm(1, n * 2), nn.Conv1d(n * 2, n, 1)) for i in range(blocks))
        self.mask = nn.Conv1d(n, n * 2, 1)

    def forward(self, mix):
        w = F.relu(self.encoder(mix))
        y = self.norm(w)
        for b in self.blocks:
            y = y + b(y)
        m = torch.sigmoid(self.mask(y)).view(mix.size(0), 2, -1, w.size(-1))
        s = w.unsqueeze(1) * m
        return self.decoder(s.flatten(0, 1)).view(mix.size(0), 2, -1)


class Informer(nn.Module):
    """Series decomposition and linear layers, as in DLinear, with reversible normalization."""

    def __init__(self, seq=48, pred=12, ch=5):
        super().__init__()
        self.w, self.b = nn.Parameter(torch.ones(ch)), nn.Parameter(torch.zeros(ch))
        self.trend, self.seasonal = nn.Linear(seq, pred), nn.Linear(seq, pred)

    def forward(self, x):
        mean = x.mean(1, keepdim=True).detach()
        std = torch.sqrt(torch.var(x, dim=1, keepdim=True, unbiased=False) + 1e-5).detach()
        x = (x - mean) / std * self.w + self.b
        front, end = x[:, 0:1].repeat(1, 12, 1), x[:, -1:].repeat(1, 12, 1)
        avg = F.avg_pool1d(torch.cat([front, x, end], 1).permute(0, 2, 1), 25, 1).permute(0, 2, 1)
        res = x - avg
        y = self.seasonal(res.permute(0, 2, 1)) + self.trend(avg.permute(0, 2, 1))
        y = (y.permute(0, 2, 1) - self.b) / (self.w + 1e-10)
        return y * std + mean


class NBeats(nn.Module):
    def __init__(self, back=30, fore=6, width=48, blocks=3):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(back, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
                                                  nn.Linear(width, back + fore)) for _ in range(blocks))
        self.back, self.fore = back, fore

    def forward(self, x):
        forecast = torch.zeros(x.size(0), self.fore, device=x.device)
        for block in self.blocks:
            b, f = block(x).split([self.back, self.fore], -1)
            x = x - b
            forecast = forecast + f
        return forecast


class DeepAR(nn.Module):
    """A likelihood over an LSTM's outputs."""

    def __init__(self, hid=24):
        super().__init__()
        self.lstm = nn.LSTM(3, hid, 2, dropout=0.1, batch_first=True)
        self.mu, self.sigma = nn.Linear(hid, 1), nn.Linear(hid, 1)

    def forward(self, x, y):
        h, _ = self.lstm(x)
        mu, sigma = self.mu(h), F.softplus(self.sigma(h)) + 1e-4
        return (0.5 * ((y - mu) / sigma) ** 2 + torch.log(sigma) + 0.5 * math.log(2 * math.pi)).mean()


class TabTransformer(nn.Module):
    def __init__(self, cards=(10, 20, 5), cont=6, dim=16):
        super().__init__()
        self.embs = nn.ModuleList(nn.Embedding(c, dim) for c in cards)
        self.attn = nn.TransformerEncoderLayer(dim, 2, 32, 0.1, batch_first=True)
        self.bn = nn.BatchNorm1d(cont)
        self.mlp = nn.Sequential(nn.Linear(dim * len(cards) + cont, 64), nn.SELU(), nn.AlphaDropout(0.1), nn.Linear(64, 2))

    def forward(self, cat, cont):
        x = torch.stack([e(cat[:, i]) for i, e in enumerate(self.embs)], dim=1)
        x = self.attn(x).flatten(1)
        return self.mlp(torch.cat([x, self.bn(cont)], dim=1))


class DeepFM(nn.Module):
    def __init__(self, fields=(50, 40, 30, 20), k=8):
        super().__init__()
        self.register_buffer("offsets", torch.tensor([0, 50, 90, 120]), persistent=False)
        self.linear, self.embedding = nn.Embedding(sum(fields), 1), nn.Embedding(sum(fields), k)
        self.bias = nn.Parameter(torch.zeros(1))
        self.mlp = nn.Sequential(nn.Linear(len(fields) * k, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 1))

    def forward(self, x, y):
        x = x + self.offsets
        e = self.embedding(x)
        fm = 0.5 * (e.sum(1).pow(2) - e.pow(2).sum(1)).sum(1, keepdim=True)
        out = self.linear(x).sum(1) + self.bias + fm + self.mlp(e.flatten(1))
        return F.binary_cross_entropy_with_logits(out.squeeze(1), y)


class TwoTower(nn.Module):
    def __init__(self, users=300, items=500, d=24):
        super().__init__()
        self.u, self.i = nn.Embedding(users, d), nn.Embedding(items, d)
        self.um, self.im = nn.Sequential(nn.Linear(d, d), nn.ReLU(), nn.Linear(d, d)), nn.Sequential(nn.Linear(d, d), nn.ReLU(), nn.Linear(d, d))

    def forward(self, user, item, negative):
        q = F.normalize(self.um(self.u(user)), dim=-1)
        p, n = F.normalize(self.im(self.i(item)), dim=-1), F.normalize(self.im(self.i(negative)), dim=-1)
        pos, neg = (q * p).sum(-1), (q * n).sum(-1)
        return -F.logsigmoid((pos - neg) * 10).mean()


class SASRec(nn.Module):
    def __init__(self, items=200, d=32, seq=20):
        super().__init__()
        self.item, self.pos, self.drop = nn.Embedding(items, d, padding_idx=0), nn.Embedding(seq, d), nn.Dropout(0.2)
        self.norms = nn.ModuleList(nn.LayerNorm(d, eps=1e-8) for _ in range(4))
        self.attns = nn.ModuleList(nn.MultiheadAttention(d, 2, 0.2) for _ in range(2))
        self.ffns = nn.ModuleList(nn.Sequential(nn.Conv1d(d, d, 1), nn.Dropout(0.2), nn.ReLU(), nn.Conv1d(d, d, 1), nn.Dropout(0.2)) for _ in range(2))

    def forward(self, seqs, pos, neg):
        x = self.item(seqs) * self.item.embedding_dim ** 0.5
        x = self.drop(x + self.pos(torch.arange(seqs.shape[1], device=seqs.device)))
        keep = (seqs == 0).unsqueeze(-1)
        x = x.masked_fill(keep, 0)
        mask = ~torch.tril(torch.ones((seqs.shape[1], seqs.shape[1]), dtype=torch.bool, device=seqs.device))
        for i in range(2):
            x = x.transpose(0, 1)
            Q = self.norms[2 * i](x)
            out, _ = self.attns[i](Q, x, x, attn_mask=mask)
            x = (Q + out).transpose(0, 1)
            y = self.norms[2 * i + 1](x)
            x = self.ffns[i](y.transpose(-1, -2)).transpose(-1, -2) + y
        ps, ns = (x * self.item(pos)).sum(-1), (x * self.item(neg)).sum(-1)
        return (F.softplus(-ps) + F.softplus(ns)).mean()


class GAT(nn.Module):
    def __init__(self, f=12, h=16, heads=2, classes=4):
        super().__init__()
        self.W = nn.ModuleList(nn.Linear(f, h, bias=False) for _ in range(heads))
        self.a = nn.ParameterList(nn.Parameter(torch.randn(2 * h, 1) * 0.1) for _ in range(heads))
        self.out = nn.Linear(h * heads, classes)
        self.h = h

    def forward(self, x, adj):
        x = F.dropout(x, 0.6, training=self.training)
        outs = []
        for W, a in zip(self.W, self.a):
            Wh = W(x)
            e = F.leaky_relu(Wh @ a[:self.h] + (Wh @ a[self.h:]).transpose(1, 2), 0.2)
            att = torch.where(adj > 0.5, e, -9e15 * torch.ones_like(e))
            att = F.dropout(F.softmax(att, dim=2), 0.6, training=self.training)
            outs.append(F.elu(att @ Wh))
        return self.out(torch.cat(outs, dim=-1).mean(1))


class SchNet(nn.Module):
    """Distances into radial functions, continuous filters, energies."""

    def __init__(self, d=24, rbf=16):
        super().__init__()
        self.emb = nn.Embedding(20, d)
        self.register_buffer("mu", torch.linspace(0, 5, rbf))
        self.filters = nn.ModuleList(nn.Sequential(nn.Linear(rbf, d), nn.Softplus(), nn.Linear(d, d)) for _ in range(2))
        self.inter = nn.ModuleList(nn.Linear(d, d) for _ in range(2))
        self.energy = nn.Sequential(nn.Linear(d, d // 2), nn.Softplus(), nn.Linear(d // 2, 1))

    def forward(self, z, pos):
        diff = pos[:, :, None] - pos[:, None]
        r = torch.sqrt((diff ** 2).sum(-1) + 1e-9)
        g = torch.exp(-10 * (r[..., None] - self.mu) ** 2)
        cut = 0.5 * (torch.cos(r * math.pi / 5) + 1) * (r < 5).float()
        x = self.emb(z)
        for f, l in zip(self.filters, self.inter):
            w = f(g) * cut[..., None]
            x = x + l((x[:, None] * w).sum(2))
        return self.energy(x).sum(1)


class ActorCritic(nn.Module):
    """A PPO step."""

    def __init__(self, obs=8, act=4):
        super().__init__()
        self.actor = nn.Sequential(nn.Linear(obs, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, act))
        self.critic = nn.Sequential(nn.Linear(obs, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))

    def forward(self, obs, action, old_logp, adv, ret):
        logp_all = F.log_softmax(self.actor(obs), -1)
        logp = logp_all.gather(1, action).squeeze(1)
        ratio = (logp - old_logp).exp()
        adv = (adv - adv.mean()) / (adv.std() + 1e-8)
        pg = torch.max(-adv * ratio, -adv * torch.clamp(ratio, 0.8, 1.2)).mean()
        v = self.critic(obs).flatten()
        ent = -(logp_all.exp() * logp_all).sum(-1).mean()
        return pg + 0.5 * ((v - ret) ** 2).mean() - 0.01 * ent


class SAC(nn.Module):
    """Squashed Gaussian policy, two critics, a temperature."""

    def __init__(self, o=6, a=2):
        super().__init__()
        self.pi = nn.Sequential(nn.Linear(o, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
        self.mu, self.log_std = nn.Linear(64, a), nn.Linear(64, a)

        def q():
            return nn.Sequential(nn.Linear(o + a, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
        self.q1, self.q2, self.log_alpha = q(), q(), nn.Parameter(torch.zeros(1))

    def forward(self, obs):
        h = self.pi(obs)
        mu, log_std = self.mu(h), torch.clamp(self.log_std(h), -20, 2)
        std = log_std.exp()
        u = mu + std * torch.randn_like(std)
        logp = (-0.5 * (((u - mu) / (std + 1e-8)) ** 2 + 2 * log_std + math.log(2 * math.pi))).sum(1)
        logp = logp - (2 * (math.log(2) - u - F.softplus(-2 * u))).sum(1)
        act = torch.tanh(u)
        x = torch.cat([obs, act], -1)
        q = torch.min(self.q1(x), self.q2(x)).squeeze(-1)
        return (self.log_alpha.exp().detach() * logp - q).mean() + (-self.log_alpha * (logp.detach() - 2.0)).mean()


class WorldModel(nn.Module):
    """A recurrent state-space model, unrolled."""

    def __init__(self, obs=16, act=3, det=32, sto=8):
        super().__init__()
        self.enc, self.dec = nn.Sequential(nn.Linear(obs, 32), nn.ELU()), nn.Sequential(nn.Linear(det + sto, 32), nn.ELU(), nn.Linear(32, obs))
        self.gru, self.inp = nn.GRUCell(32, det), nn.Linear(sto + act, 32)
        self.prior, self.post, self.det, self.sto = nn.Linear(det, 2 * sto), nn.Linear(det + 32, 2 * sto), det, sto

    def forward(self, obs, act):
        b, t, _ = obs.shape
        h, s = obs.new_zeros(b, self.det), obs.new_zeros(b, self.sto)
        e, kl, recs = self.enc(obs), 0.0, []
        for i in range(t):
            h = self.gru(F.elu(self.inp(torch.cat([s, act[:, i]], -1))), h)
            pm, ps = self.prior(h).chunk(2, -1)
            qm, qs = self.post(torch.cat([h, e[:, i]], -1)).chunk(2, -1)
            ps, qs = F.softplus(ps) + 0.1, F.softplus(qs) + 0.1
            s = qm + qs * torch.randn_like(qm)
            kl = kl + (torch.log(ps / qs) + (qs ** 2 + (qm - pm) ** 2) / (2 * ps ** 2) - 0.5).sum(-1).mean()
            recs.append(self.dec(torch.cat([h, s], -1)))
        return F.mse_loss(torch.stack(recs, 1), obs) + kl


class PINN(nn.Module):
    """Layers with sines; the residual is left to the loop."""

    def __init__(self, width=48, depth=4):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(2, width)] + [nn.Linear(width, width) for _ in range(depth)])
        self.out = nn.Linear(width, 1)

    def forward(self, x, t):
        h = torch.cat([x, t], dim=1)
        for i, layer in enumerate(self.layers):
            h = torch.sin((30 if i == 0 else 1) * layer(h))
        return self.out(h)


class FNO(nn.Module):
    """A Fourier operator with its own transform, as a product with cosines and sines."""

    def __init__(self, width=16, modes=6, n=32):
        super().__init__()
        k = torch.arange(modes).float()[:, None] * torch.arange(n).float()[None] * (2 * math.pi / n)
        self.register_buffer("c", k.cos())
        self.register_buffer("s", k.sin())
        self.lift, self.drop = nn.Linear(1, width), nn.Linear(width, 1)
        self.wr = nn.ParameterList(nn.Parameter(torch.randn(modes, width, width) / width) for _ in range(2))
        self.wi = nn.ParameterList(nn.Parameter(torch.randn(modes, width, width) / width) for _ in range(2))
        self.local = nn.ModuleList(nn.Conv1d(width, width, 1) for _ in range(2))

    def forward(self, u):
        x = self.lift(u.unsqueeze(-1))
        for wr, wi, conv in zip(self.wr, self.wi, self.local):
            re, im = torch.einsum("bnc,mn->bmc", x, self.c), -torch.einsum("bnc,mn->bmc", x, self.s)
            a = torch.einsum("bmi,mio->bmo", re, wr) - torch.einsum("bmi,mio->bmo", im, wi)
            b = torch.einsum("bmi,mio->bmo", re, wi) + torch.einsum("bmi,mio->bmo", im, wr)
            y = torch.einsum("bmo,mn->bno", a, self.c) - torch.einsum("bmo,mn->bno", b, self.s)
            x = F.gelu(y + conv(x.transpose(1, 2)).transpose(1, 2))
        return self.drop(x).squeeze(-1)


class HyperNet(nn.Module):
    def __init__(self, z=8, hidden=16):
        super().__init__()
        self.gen = nn.Sequential(nn.Linear(z, 32), nn.ReLU(), nn.Linear(32, 10 * hidden + hidden))
        self.z, self.hidden, self.head = nn.Parameter(torch.randn(z)), hidden, nn.Linear(hidden, 3)

    def forward(self, x):
        p = self.gen(self.z)
        w, b = p[:10 * self.hidden].view(self.hidden, 10), p[10 * self.hidden:]
        return self.head(torch.relu(F.linear(x, w, b)))


class NeuralODE(nn.Module):
    """Runge-Kutta with fixed steps."""

    def __init__(self, d=16):
        super().__init__()
        self.f, self.head = nn.Sequential(nn.Linear(d, 48), nn.Tanh(), nn.Linear(48, d)), nn.Linear(d, 4)

    def forward(self, y):
        dt = 0.25
        for _ in range(4):
            k1 = self.f(y)
            k2 = self.f(y + 0.5 * dt * k1)
            k3 = self.f(y + 0.5 * dt * k2)
            k4 = self.f(y + dt * k3)
            y = y + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return self.head(y)


class MixtureDensity(nn.Module):
    def __init__(self, k=4):
        super().__init__()
        self.z = nn.Sequential(nn.Linear(3, 32), nn.Tanh())
        self.pi, self.sigma, self.mu = nn.Linear(32, k), nn.Linear(32, k), nn.Linear(32, k)

    def forward(self, x, y):
        h = self.z(x)
        pi, sigma, mu = F.softmax(self.pi(h), -1), torch.exp(self.sigma(h)), self.mu(h)
        prob = torch.exp(-0.5 * ((y.expand_as(mu) - mu) / sigma) ** 2) / sigma / math.sqrt(2 * math.pi)
        return torch.mean(-torch.log(torch.sum(prob * pi, dim=1) + 1e-10))


class ProtoNet(nn.Module):
    """Few-shot: prototypes of a support set in every sample of the batch."""

    def __init__(self):
        super().__init__()

        def block(i, o):
            return nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU(), nn.MaxPool2d(2))
        self.encoder = nn.Sequential(block(1, 16), block(16, 16), block(16, 16))

    def forward(self, support, query):
        b, n, k = support.shape[:3]
        z = self.encoder(support.flatten(0, 2)).flatten(1).view(b, n, k, -1).mean(2)
        q = self.encoder(query).flatten(1)
        d = torch.pow(q.unsqueeze(1) - z, 2).sum(2)
        return -d


class WeightNormMLP(nn.Module):
    """Parametrized layers: weight norm and orthogonal-free spectral norm."""

    def __init__(self):
        super().__init__()
        self.a = parametrizations.weight_norm(nn.Linear(20, 64), dim=0)
        self.b = parametrizations.weight_norm(nn.Linear(64, 64), dim=0)
        self.c = parametrizations.spectral_norm(nn.Linear(64, 5))

    def forward(self, x):
        x = F.softplus(self.a(x), beta=100)
        x = F.softplus(self.b(x), beta=100)
        return self.c(x)


class MemoryNet(nn.Module):
    """Hops over stories."""

    def __init__(self, vocab=60, d=24, hops=3):
        super().__init__()
        self.A, self.B, self.C = nn.Embedding(vocab, d), nn.Embedding(vocab, d), nn.Embedding(vocab, d)
        self.H, self.W, self.hops = nn.Linear(d, d), nn.Linear(d, vocab), hops

    def forward(self, story, query):
        m, c = self.A(story).sum(2), self.C(story).sum(2)
        u = self.B(query).sum(1)
        for _ in range(self.hops):
            p = F.softmax((m * u.unsqueeze(1)).sum(2), dim=1)
            o = (p.unsqueeze(2) * c).sum(1)
            u = self.H(u) + o
        return self.W(u)


class CRF(nn.Module):
    """A tagger with a linear-chain loss, forward algorithm step by step."""

    def __init__(self, vocab=100, tags=6, hid=24):
        super().__init__()
        self.emb, self.lstm = nn.Embedding(vocab, 16), nn.LSTM(16, hid // 2, bidirectional=True, batch_first=True)
        self.fc, self.trans = nn.Linear(hid, tags), nn.Parameter(torch.randn(tags, tags) * 0.1)

    def forward(self, words, tags):
        e = self.fc(self.lstm(self.emb(words))[0])
        score = e.gather(2, tags.unsqueeze(2)).squeeze(2).sum(1) + self.trans[tags[:, 1:], tags[:, :-1]].sum(1)
        alpha = e[:, 0]
        for t in range(1, words.size(1)):
            alpha = torch.logsumexp(alpha.unsqueeze(1) + self.trans + e[:, t].unsqueeze(2), dim=2)
        return (torch.logsumexp(alpha, 1) - score).mean()


class Distilled(nn.Module):
    """A frozen teacher in evaluation mode and a student with a tempered loss."""

    def __init__(self):
        super().__init__()
        self.teacher = nn.Sequential(nn.Linear(40, 128), nn.ReLU(), nn.Dropout(0.2), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10))
        self.student = nn.Sequential(nn.Linear(40, 32), nn.ReLU(), nn.Linear(32, 10))
        for p in self.teacher.parameters():
            p.requires_grad = False

    def forward(self, x):
        T = 4.0
        with torch.no_grad():
            soft = F.softmax(self.teacher(x) / T, dim=-1)
        logits = self.student(x)
        return F.kl_div(F.log_softmax(logits / T, dim=-1), soft, reduction="batchmean") * T * T


NETWORKS = [
    Network("crf", CRF, together(numbers(12), numbers(12)), "none"),
    Network("distilled", Distilled, values(40), "none", 16, 24),
    Network("text_cnn", TextCNN, numbers(20)),
    Network("bilstm_attention", BiLSTMAttention, numbers(15)),
    Network("nano_gpt", NanoGPT, together(numbers(32), numbers(32)), "none"),
    Network("mini_llama", MiniLlama, numbers(24)),
    Network("lora_net", LoRANet, numbers(16)),
    Network("mamba", Mamba, numbers(12)),
    Network("rwkv", RWKV, numbers(10)),
    Network("pointer_net", PointerNet, values(8, 2)),
    Network("tacotron", Tacotron, numbers(18), "mse"),
    Network("spec_aug_ctc", SpecAugCTC, values(1, 40, 48)),
    Network("conv_tasnet", ConvTasNet, values(1, 320), "mse"),
    Network("informer", Informer, values(48, 5), "mse"),
    Network("nbeats", NBeats, values(30), "mse"),
    Network("deep_ar", DeepAR, together(values(20, 3), values(20, 1)), "none"),
    Network("tab_transformer", TabTransformer, together(numbers(3), values(6))),
    Network("deep_fm", DeepFM, together(numbers(4), values()), "none"),
    Network("two_tower", TwoTower, together(numbers(), numbers(), numbers()), "none"),
    Network("sasrec", SASRec, together(numbers(20), numbers(20), numbers(20)), "none"),
    Network("gat", GAT, together(values(14, 12), values(14, 14))),
    Network("schnet", SchNet, together(numbers(10), values(10, 3)), "mse"),
    Network("actor_critic", ActorCritic, together(values(8), numbers(1), values(), values(), values()), "none", 32, 48),
    Network("sac", SAC, values(6), "none", 32, 48),
    Network("world_model", WorldModel, together(values(6, 16), values(6, 3)), "none"),
    Network("pinn", PINN, together(values(1), values(1)), "mse", 64, 96),
    Network("fno", FNO, values(32), "mse"),
    Network("hyper_net", HyperNet, values(10), "cross-entropy", 16, 24),
    Network("neural_ode", NeuralODE, values(16), "cross-entropy", 16, 24),
    Network("mixture_density", MixtureDensity, together(values(3), values(1)), "none", 32, 48),
    Network("proto_net", ProtoNet, together(values(3, 2, 1, 16, 16), values(1, 16, 16))),
    Network("weight_norm_mlp", WeightNormMLP, values(20), "cross-entropy", 16, 24),
    Network("memory_net", MemoryNet, together(numbers(6, 5), numbers(5))),
]
