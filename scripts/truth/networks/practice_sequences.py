"""Fresh networks as people write them in their projects, the second set: text, sound, series, tables, graphs, agents, flows, fields."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Categorical, Normal, kl_divergence
from torch.nn.utils import parametrizations
from torch.utils.checkpoint import checkpoint

from .common import Network, numbers, together, values


class LockedDropout(nn.Module):
    def forward(self, x, dropout=0.5):
        if not self.training or not dropout:
            return x
        m = x.data.new(1, x.size(1), x.size(2)).bernoulli_(1 - dropout)
        mask = m.div_(1 - dropout)
        mask = mask.expand_as(x)
        return mask * x


class LSTMLanguageModel(nn.Module):
    """Tied weights, one mask of dropout for all steps, three layers of their own sizes."""

    def __init__(self, ntoken=200, ninp=48, nhid=64, nlayers=3):
        super().__init__()
        self.lockdrop, self.encoder = LockedDropout(), nn.Embedding(ntoken, ninp)
        self.rnns = nn.ModuleList([nn.LSTM(ninp if l == 0 else nhid, nhid if l != nlayers - 1 else ninp, 1) for l in range(nlayers)])
        self.decoder = nn.Linear(ninp, ntoken)
        self.decoder.weight = self.encoder.weight

    def forward(self, input):
        emb = self.lockdrop(self.encoder(input.t()), 0.4)
        raw_output, raw_outputs = emb, []
        for l, rnn in enumerate(self.rnns):
            raw_output, _ = rnn(raw_output)
            raw_outputs.append(raw_output)
            if l != len(self.rnns) - 1:
                raw_output = self.lockdrop(raw_output, 0.25)
        output = self.lockdrop(raw_output, 0.4)
        result = self.decoder(output.view(output.size(0) * output.size(1), output.size(2)))
        loss = F.cross_entropy(result, input.t().reshape(-1))
        loss = loss + 2 * output.pow(2).mean()
        return loss + (raw_outputs[-1][1:] - raw_outputs[-1][:-1]).pow(2).mean()


class TextVAE(nn.Module):
    def __init__(self, vocab=150, emb=32, hidden=64, latent=16):
        super().__init__()
        self.embedding, self.dropout = nn.Embedding(vocab, emb), nn.Dropout(p=0.3)
        self.encoder_rnn = nn.GRU(emb, hidden, num_layers=1, bidirectional=True, batch_first=True)
        self.decoder_rnn = nn.GRU(emb, hidden, num_layers=1, batch_first=True)
        self.hidden2mean, self.hidden2logv = nn.Linear(hidden * 2, latent), nn.Linear(hidden * 2, latent)
        self.latent2hidden, self.outputs2vocab = nn.Linear(latent, hidden), nn.Linear(hidden, vocab)

    def forward(self, input_sequence):
        batch_size = input_sequence.size(0)
        input_embedding = self.embedding(input_sequence)
        _, hidden = self.encoder_rnn(input_embedding)
        hidden = hidden.transpose(0, 1).reshape(batch_size, -1)
        mean, logv = self.hidden2mean(hidden), self.hidden2logv(hidden)
        std = torch.exp(0.5 * logv)
        z = torch.randn([batch_size, std.size(1)], device=std.device)
        z = z * std + mean
        hidden = self.latent2hidden(z).unsqueeze(0)
        outputs, _ = self.decoder_rnn(self.dropout(input_embedding), hidden)
        logp = F.log_softmax(self.outputs2vocab(outputs.reshape(-1, outputs.size(2))), dim=-1)
        nll = F.nll_loss(logp[:-1], input_sequence.reshape(-1)[1:], reduction="sum")
        kl = -0.5 * torch.sum(1 + logv - mean.pow(2) - logv.exp())
        return (nll + 0.1 * kl) / batch_size


class LayerNormLSTM(nn.Module):
    """Cells by hand, over time with unbind and append."""

    class Cell(nn.Module):
        def __init__(self, i, h):
            super().__init__()
            self.weight_ih, self.weight_hh = nn.Parameter(torch.randn(4 * h, i) * 0.1), nn.Parameter(torch.randn(4 * h, h) * 0.1)
            self.ln_i, self.ln_h, self.ln_c = nn.LayerNorm(4 * h), nn.LayerNorm(4 * h), nn.LayerNorm(h)

        def forward(self, input, state):
            hx, cx = state
            gates = self.ln_i(torch.mm(input, self.weight_ih.t())) + self.ln_h(torch.mm(hx, self.weight_hh.t()))
            ingate, forgetgate, cellgate, outgate = gates.chunk(4, 1)
            ingate, forgetgate, cellgate, outgate = ingate.sigmoid(), forgetgate.sigmoid(), cellgate.tanh(), outgate.sigmoid()
            cy = self.ln_c((forgetgate * cx) + (ingate * cellgate))
            hy = outgate * torch.tanh(cy)
            return hy, (hy, cy)

    def __init__(self, i=20, h=32, classes=6):
        super().__init__()
        self.cells, self.h, self.fc = nn.ModuleList([self.Cell(i, h), self.Cell(h, h)]), h, nn.Linear(h, classes)

    def forward(self, x):
        for cell in self.cells:
            zero = x.new_zeros(x.size(0), self.h)
            state, outputs = (zero, zero), []
            for step in x.unbind(1):
                out, state = cell(step, state)
                outputs += [out]
            x = torch.stack(outputs, dim=1)
        return self.fc(x[:, -1])


class S4D(nn.Module):
    """A diagonal state space as a long convolution by FFT."""

    class Layer(nn.Module):
        def __init__(self, d, n=8):
            super().__init__()
            self.log_dt, self.D = nn.Parameter(torch.rand(d) * 3 - 6), nn.Parameter(torch.randn(d))
            self.C = nn.Parameter(torch.randn(d, n, 2) * 0.5)
            self.log_A_real, self.A_imag = nn.Parameter(torch.log(0.5 * torch.ones(d, n))), nn.Parameter(math.pi * torch.arange(n).repeat(d, 1).float())
            self.out, self.norm, self.drop = nn.Sequential(nn.Conv1d(d, 2 * d, 1), nn.GLU(dim=-2)), nn.LayerNorm(d), nn.Dropout(0.1)

        def forward(self, x):
            L = x.size(-1)
            dt = torch.exp(self.log_dt)
            C = torch.view_as_complex(self.C)
            A = -torch.exp(self.log_A_real) + 1j * self.A_imag
            dtA = A * dt.unsqueeze(-1)
            K = dtA.unsqueeze(-1) * torch.arange(L, device=A.device)
            C = C * (torch.exp(dtA) - 1.0) / A
            k = 2 * torch.einsum("hn, hnl -> hl", C, torch.exp(K)).real
            y = torch.fft.irfft(torch.fft.rfft(x, n=2 * L) * torch.fft.rfft(k, n=2 * L), n=2 * L)[..., :L]
            y = self.out(self.drop(F.gelu(y + x * self.D.unsqueeze(-1))))
            return self.norm((x + y).transpose(-1, -2)).transpose(-1, -2)

    def __init__(self, d=32):
        super().__init__()
        self.encoder, self.layers, self.decoder = nn.Linear(1, d), nn.ModuleList([self.Layer(d) for _ in range(2)]), nn.Linear(d, 10)

    def forward(self, x):
        x = self.encoder(x).transpose(-1, -2)
        for layer in self.layers:
            x = layer(x)
        return self.decoder(x.mean(dim=-1))


class RetNet(nn.Module):
    """Retention in its parallel form: decays instead of softmax."""

    def __init__(self, vocab=128, d=64, heads=4, layers=2):
        super().__init__()
        self.emb, self.heads = nn.Embedding(vocab, d), heads
        self.blocks = nn.ModuleList(nn.ModuleDict(dict(n1=nn.LayerNorm(d), qkvg=nn.Linear(d, 4 * d, bias=False), gn=nn.GroupNorm(heads, d),
                                                       o=nn.Linear(d, d, bias=False), n2=nn.LayerNorm(d), f1=nn.Linear(d, 2 * d),
                                                       f2=nn.Linear(2 * d, d))) for _ in range(layers))
        self.register_buffer("gamma", 1 - torch.exp(torch.linspace(math.log(1 / 32), math.log(1 / 512), heads)))
        self.head = nn.Linear(d, vocab, bias=False)

    def forward(self, x):
        x = self.emb(x)
        b, t, d = x.shape
        n = torch.arange(t, device=x.device).unsqueeze(1)
        m = torch.arange(t, device=x.device).unsqueeze(0)
        D = (self.gamma[:, None, None] ** (n - m)) * (n >= m).float()
        D.masked_fill_(torch.isnan(D), 0)
        for blk in self.blocks:
            q, k, v, g = blk["qkvg"](blk["n1"](x)).chunk(4, dim=-1)
            q, k, v = (u.reshape(b, t, self.heads, -1).permute(0, 2, 1, 3) for u in (q, k, v))
            y = ((q @ k.transpose(-1, -2)) * D) @ v
            y = y.transpose(1, 2).reshape(b * t, d)
            y = blk["gn"](y).view(b, t, d)
            x = x + blk["o"](F.silu(g) * y)
            x = x + blk["f2"](F.gelu(blk["f1"](blk["n2"](x))))
        return self.head(x)


class Hyena(nn.Module):
    def __init__(self, d=32, L=64, order=2):
        super().__init__()
        self.in_proj, self.out_proj = nn.Linear(d, (order + 1) * d), nn.Linear(d, d)
        self.short = nn.Conv1d((order + 1) * d, (order + 1) * d, 3, padding=2, groups=(order + 1) * d)
        self.filter = nn.Sequential(nn.Linear(5, 32), nn.SiLU(), nn.Linear(32, order * d))
        t = torch.linspace(0, 1, L)[:, None]
        bands = torch.linspace(1e-4, 1, 2)[None]
        self.register_buffer("z", torch.cat([t, torch.sin(2 * math.pi * bands * t), torch.cos(2 * math.pi * bands * t)], -1))
        self.register_buffer("decay", torch.exp(-t * torch.linspace(1, 8, order * d)[None]))
        self.d, self.L, self.order, self.head = d, L, order, nn.Linear(d, 5)

    def forward(self, u):
        x = self.short(self.in_proj(u).transpose(1, 2))[..., :self.L]
        *xs, v = x.split(self.d, dim=1)
        k = (self.filter(self.z) * self.decay).t().view(self.order, self.d, self.L)
        for o, gate in enumerate(reversed(xs)):
            v = v * gate
            kf = torch.fft.rfft(k[o], n=2 * self.L) / (2 * self.L)
            v = torch.fft.irfft(torch.fft.rfft(v, n=2 * self.L) * kf, n=2 * self.L, norm="forward")[..., :self.L]
        return self.head(self.out_proj(v.transpose(1, 2)).mean(1))


class SoftMoE(nn.Module):
    def __init__(self, d=48, experts=4, slots=4):
        super().__init__()
        self.emb = nn.Linear(24, d)
        self.phi, self.scale = nn.Parameter(torch.randn(d, experts, slots) * d ** -0.5), nn.Parameter(torch.ones(1))
        self.experts = nn.ModuleList([nn.Sequential(nn.Linear(d, 2 * d), nn.GELU(), nn.Linear(2 * d, d)) for _ in range(experts)])
        self.norm, self.head = nn.LayerNorm(d), nn.Linear(d, 6)

    def forward(self, x):
        x = self.emb(x)
        h = self.norm(x)
        logits = torch.einsum("bmd,dnp->bmnp", F.normalize(h, dim=-1), self.scale * F.normalize(self.phi, dim=0))
        d = logits.softmax(dim=1)
        c = logits.flatten(2).softmax(dim=-1).reshape(logits.shape)
        xs = torch.einsum("bmd,bmnp->bnpd", h, d)
        ys = torch.stack([f(xs[:, i]) for i, f in enumerate(self.experts)], dim=1)
        x = x + torch.einsum("bnpd,bmnp->bmd", ys, c)
        return self.head(x.mean(dim=1))


class SwitchFFN(nn.Module):
    """Each expert runs on all tokens and counts where the router chose it; a loss balances them."""

    def __init__(self, d=32, experts=4, k=2):
        super().__init__()
        self.inp, self.gate, self.k = nn.Linear(16, d), nn.Linear(d, experts, bias=False), k
        self.w1, self.w2 = nn.Parameter(torch.randn(experts, d, 64) * 0.1), nn.Parameter(torch.randn(experts, 64, d) * 0.1)
        self.out = nn.Linear(d, 1)

    def forward(self, x, y):
        x = self.inp(x)
        logits = self.gate(x)
        probs = logits.softmax(-1)
        top, idx = probs.topk(self.k, dim=-1)
        top = top / top.sum(-1, keepdim=True)
        combine = torch.zeros_like(probs).scatter(-1, idx, top)
        h = torch.einsum("btd,edf->btef", x, self.w1)
        h = F.silu(h)
        o = torch.einsum("btef,efd->bted", h, self.w2)
        x = x + (o * combine.unsqueeze(-1)).sum(2)
        density = F.one_hot(idx[..., 0], probs.size(-1)).float().mean((0, 1))
        aux = (density * probs.mean((0, 1))).sum() * probs.size(-1)
        return F.mse_loss(self.out(x).squeeze(-1), y) + 0.01 * aux


class TinyT5(nn.Module):
    """Encoder and decoder with relative positions in buckets, tied embeddings."""

    class Attention(nn.Module):
        def __init__(self, d, h):
            super().__init__()
            self.q, self.k, self.v, self.o = (nn.Linear(d, d, bias=False) for _ in range(4))
            self.h = h

        def forward(self, x, kv=None, bias=None):
            kv = x if kv is None else kv
            def split(t):
                return t.view(t.size(0), t.size(1), self.h, -1).transpose(1, 2)
            scores = torch.matmul(split(self.q(x)), split(self.k(kv)).transpose(3, 2))
            if bias is not None:
                scores += bias
            w = F.softmax(scores.float(), dim=-1).type_as(scores)
            w = F.dropout(w, p=0.1, training=self.training)
            y = torch.matmul(w, split(self.v(kv))).transpose(1, 2).contiguous()
            return self.o(y.view(x.size(0), -1, y.size(2) * y.size(3)))

    def __init__(self, vocab=128, d=48, h=4):
        super().__init__()
        self.shared, self.rel_e, self.rel_d = nn.Embedding(vocab, d), nn.Embedding(16, h), nn.Embedding(16, h)
        self.enc = nn.ModuleList([nn.ModuleList([nn.RMSNorm(d), self.Attention(d, h), nn.RMSNorm(d), nn.Linear(d, 96), nn.Linear(96, d)])
                                  for _ in range(2)])
        self.dec = nn.ModuleList([nn.ModuleList([nn.RMSNorm(d), self.Attention(d, h), nn.RMSNorm(d), self.Attention(d, h), nn.RMSNorm(d),
                                                 nn.Linear(d, 96), nn.Linear(96, d)]) for _ in range(2)])
        self.drop, self.final, self.d = nn.Dropout(0.1), nn.RMSNorm(d), d

    @staticmethod
    def bucket(t, table, causal):
        pos = torch.arange(t, device=table.weight.device)
        rel = (pos[None, :] - pos[:, None]).clamp(-8, 7) + 8
        bias = table(rel).permute(2, 0, 1).unsqueeze(0)
        return bias + torch.triu(torch.full((t, t), -1e9, device=bias.device), 1) if causal else bias

    def forward(self, src, tgt):
        x, bias = self.drop(self.shared(src)), self.bucket(src.size(1), self.rel_e, False)
        for n1, att, n2, wi, wo in self.enc:
            x = x + self.drop(att(n1(x), bias=bias))
            x = x + self.drop(wo(self.drop(F.relu(wi(n2(x))))))
        y, bias = self.drop(self.shared(tgt)), self.bucket(tgt.size(1), self.rel_d, True)
        for n1, att, n2, cross, n3, wi, wo in self.dec:
            y = y + self.drop(att(n1(y), bias=bias))
            y = y + self.drop(cross(n2(y), kv=x))
            y = y + self.drop(wo(self.drop(F.relu(wi(n3(y))))))
        y = self.final(y) * (self.d ** -0.5)
        return F.linear(y, self.shared.weight)


class AlibiGPT(nn.Module):
    """Blocks under checkpoints while it trains."""

    class Block(nn.Module):
        def __init__(self, d, h):
            super().__init__()
            self.ln1, self.ln2, self.qkv, self.proj = nn.LayerNorm(d), nn.LayerNorm(d), nn.Linear(d, 3 * d), nn.Linear(d, d)
            self.mlp, self.h = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d), nn.Dropout(0.1)), h

        def forward(self, x, bias):
            B, T, C = x.shape
            q, k, v = self.qkv(self.ln1(x)).view(B, T, 3, self.h, -1).unbind(2)
            att = torch.einsum("bthd,bshd->bhts", q, k) / math.sqrt(C // self.h) + bias
            y = torch.einsum("bhts,bshd->bthd", att.softmax(-1), v).reshape(B, T, C)
            x = x + self.proj(y)
            return x + self.mlp(self.ln2(x))

    def __init__(self, vocab=150, d=64, h=4, n=3):
        super().__init__()
        self.wte, self.h, self.ln_f = nn.Embedding(vocab, d), nn.ModuleList([self.Block(d, h) for _ in range(n)]), nn.LayerNorm(d)
        self.register_buffer("slopes", torch.tensor([2 ** (-8 * (i + 1) / h) for i in range(h)]))

    def forward(self, idx):
        t = idx.size(1)
        pos = torch.arange(t, device=idx.device)
        bias = (pos[None, :] - pos[:, None]).float()
        bias = self.slopes[:, None, None] * bias + torch.full((t, t), float("-inf"), device=idx.device).triu(1)
        x = self.wte(idx)
        for block in self.h:
            x = checkpoint(block, x, bias, use_reentrant=False) if self.training else block(x, bias)
        return self.ln_f(x) @ self.wte.weight.t()


class PerceiverIO(nn.Module):
    class Attn(nn.Module):
        def __init__(self, dq, dkv, h=4):
            super().__init__()
            self.nq, self.nk = nn.LayerNorm(dq), nn.LayerNorm(dkv)
            self.to_q, self.to_kv, self.to_out, self.h = nn.Linear(dq, dq, bias=False), nn.Linear(dkv, 2 * dq, bias=False), nn.Linear(dq, dq), h
            self.ff = nn.Sequential(nn.LayerNorm(dq), nn.Linear(dq, 4 * dq), nn.GELU(), nn.Linear(2 * dq * 2, dq))

        def forward(self, q, kv):
            k, v = self.to_kv(self.nk(kv)).chunk(2, dim=-1)
            x = self.to_q(self.nq(q))
            x, k, v = map(lambda t: t.reshape(t.shape[0], t.shape[1], self.h, -1).transpose(1, 2).flatten(0, 1), (x, k, v))
            sim = torch.bmm(x, k.transpose(1, 2)) * x.size(-1) ** -0.5
            out = torch.bmm(sim.softmax(-1), v).unflatten(0, (-1, self.h)).transpose(1, 2).flatten(2)
            q = q + self.to_out(out)
            return q + self.ff(q)

    def __init__(self, din=16, d=48, latents=12):
        super().__init__()
        self.latents, self.queries = nn.Parameter(torch.randn(latents, d)), nn.Parameter(torch.randn(5, d))
        self.cross, self.inner, self.dec, self.out = self.Attn(d, din), nn.ModuleList([self.Attn(d, d) for _ in range(2)]), self.Attn(d, d), nn.Linear(d, 4)

    def forward(self, x):
        z = self.latents.unsqueeze(0).repeat(x.size(0), 1, 1)
        z = self.cross(z, x)
        for layer in self.inner:
            z = layer(z, z)
        return self.out(self.dec(self.queries.expand(x.size(0), -1, -1), z))


class Performer(nn.Module):
    def __init__(self, vocab=100, d=64, h=4, m=24):
        super().__init__()
        self.emb, self.qkv, self.proj, self.norm, self.fc = nn.Embedding(vocab, d), nn.Linear(d, 3 * d), nn.Linear(d, d), nn.LayerNorm(d), nn.Linear(d, 3)
        self.h = h
        self.register_buffer("omega", torch.randn(m, d // h))

    def phi(self, x, query):
        x = x * x.size(-1) ** -0.25
        u = torch.einsum("bhnd,md->bhnm", x, self.omega)
        d = (x ** 2).sum(-1, keepdim=True) / 2
        peak = u.amax(dim=-1, keepdim=True).detach() if query else u.amax(dim=(-1, -2), keepdim=True).detach()
        return (torch.exp(u - d - peak) + 1e-4) * self.omega.size(0) ** -0.5

    def forward(self, x):
        x = self.emb(x)
        b, n, d = x.shape
        q, k, v = (t.view(b, n, self.h, -1).transpose(1, 2) for t in self.qkv(self.norm(x)).chunk(3, -1))
        q, k = self.phi(q, True), self.phi(k, False)
        kv = torch.einsum("bhnm,bhne->bhme", k, v)
        z = 1.0 / torch.einsum("bhnm,bhm->bhn", q, k.sum(dim=-2))
        out = torch.einsum("bhnm,bhme,bhn->bhne", q, kv, z)
        x = x + self.proj(out.transpose(1, 2).reshape(b, n, d))
        return self.fc(x.mean(1))


class TransformerXL(nn.Module):
    """A memory of the last segment, positions relative by shifting."""

    def __init__(self, vocab=100, d=48, h=4, mem=16):
        super().__init__()
        self.emb, self.h, self.mem = nn.Embedding(vocab, d), h, mem
        self.q, self.kv, self.r, self.o = nn.Linear(d, d, bias=False), nn.Linear(d, 2 * d, bias=False), nn.Linear(d, d, bias=False), nn.Linear(d, d)
        self.u, self.v = nn.Parameter(torch.zeros(h, d // h)), nn.Parameter(torch.zeros(h, d // h))
        self.norm, self.ff, self.out = nn.LayerNorm(d), nn.Sequential(nn.Linear(d, 96), nn.ReLU(inplace=True), nn.Linear(96, d)), nn.Linear(d, vocab)
        self.register_buffer("inv", 1 / (10000 ** (torch.arange(0.0, d, 2.0) / d)))

    def rel_shift(self, x):
        pad = torch.zeros((x.size(0), x.size(1), x.size(2), 1), device=x.device, dtype=x.dtype)
        x_padded = torch.cat([pad, x], dim=3).view(x.size(0), x.size(1), x.size(3) + 1, x.size(2))
        return x_padded[:, :, 1:].view_as(x)

    def forward(self, ids, memory):
        w, m = self.emb(ids), self.emb(memory).detach()
        b, t, d = w.shape
        cat = torch.cat([m, w], 1)
        klen = cat.size(1)
        sin = torch.outer(torch.arange(klen - 1, -1, -1.0, device=w.device), self.inv)
        r = self.r(torch.cat([sin.sin(), sin.cos()], -1)).view(klen, self.h, -1)
        q = self.q(w).view(b, t, self.h, -1)
        k, v = (x.view(b, klen, self.h, -1) for x in self.kv(cat).chunk(2, -1))
        AC = torch.einsum("bihd,bjhd->bhij", q + self.u, k)
        BD = self.rel_shift(torch.einsum("bihd,jhd->bhij", q + self.v, r))
        score = (AC + BD).mul_((d // self.h) ** -0.5)
        mask = torch.ones(t, klen, dtype=torch.bool, device=w.device).triu(1 + klen - t)
        prob = F.softmax(score.masked_fill(mask, -1e30), dim=-1)
        w = self.norm(w + self.o(torch.einsum("bhij,bjhd->bihd", prob, v).reshape(b, t, d)))
        return self.out(w + self.ff(w))


class LoRAGPT(nn.Module):
    """Everything is frozen but two matrices a layer and a prefix of keys and values."""

    class Attn(nn.Module):
        def __init__(self, d, h, r=4, prefix=4):
            super().__init__()
            self.c_attn, self.c_proj, self.h = nn.Linear(d, 3 * d), nn.Linear(d, d), h
            for p in self.parameters():
                p.requires_grad = False
            self.lora_A, self.lora_B = nn.Parameter(torch.zeros(2 * r, d)), nn.Parameter(torch.zeros(2 * d, r))
            self.prefix = nn.Parameter(torch.randn(2, prefix, d))

        def forward(self, x):
            b, t, d = x.shape
            q, k, v = self.c_attn(x).split(d, dim=-1)
            after_a = F.linear(F.dropout(x, 0.05, self.training), self.lora_A)
            dq, dv = F.conv1d(after_a.transpose(-2, -1), self.lora_B.unsqueeze(-1), groups=2).transpose(-2, -1).split(d, -1)
            q, v = q + 2 * dq, v + 2 * dv
            k = torch.cat([self.prefix[0].expand(b, -1, -1), k], 1)
            v = torch.cat([self.prefix[1].expand(b, -1, -1), v], 1)
            q, k, v = (u.view(b, -1, self.h, d // self.h).transpose(1, 2) for u in (q, k, v))
            mask = torch.ones(t, k.size(2), dtype=torch.bool, device=x.device).tril(k.size(2) - t)
            return self.c_proj(F.scaled_dot_product_attention(q, k, v, mask).transpose(1, 2).reshape(b, t, d))

    def __init__(self, vocab=120, d=64, n=2):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocab, d), nn.Embedding(32, d)
        self.mlps = nn.ModuleList([nn.Sequential(nn.LayerNorm(d), nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d)) for _ in range(n)])
        self.lns = nn.ModuleList([nn.LayerNorm(d) for _ in range(n + 1)])
        for p in self.parameters():
            p.requires_grad = False
        self.attns = nn.ModuleList([self.Attn(d, 4) for _ in range(n)])

    def forward(self, idx):
        x = self.wte(idx) + self.wpe.weight[:idx.size(1)]
        for ln, attn, mlp in zip(self.lns, self.attns, self.mlps):
            x = x + attn(ln(x))
            x = x + mlp(x)
        return F.linear(self.lns[-1](x), self.wte.weight)


class DeepSpeech(nn.Module):
    """Clipped activations in place, recurrent layers summed over both directions, row convolution."""

    def __init__(self, classes=20, hidden=48):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(1, 8, (11, 5), (2, 2), (5, 2)), nn.BatchNorm2d(8), nn.Hardtanh(0, 20, inplace=True),
                                  nn.Conv2d(8, 8, (7, 5), (2, 1), (3, 2)), nn.BatchNorm2d(8), nn.Hardtanh(0, 20, inplace=True))
        self.rnns = nn.ModuleList([nn.GRU(8 * 10, hidden, bidirectional=True), nn.GRU(hidden, hidden, bidirectional=True)])
        self.bns = nn.ModuleList([nn.Identity(), nn.BatchNorm1d(hidden)])
        self.fc = nn.Sequential(nn.BatchNorm1d(hidden), nn.Linear(hidden, classes, bias=False))

    def forward(self, x):
        x = self.conv(x.unsqueeze(1))
        b, c, f, t = x.size()
        x = x.view(b, c * f, t).transpose(1, 2).transpose(0, 1).contiguous()
        for bn, rnn in zip(self.bns, self.rnns):
            s = x.size()
            x = bn(x.view(s[0] * s[1], -1)).view(s)
            x, _ = rnn(x)
            x = x.view(x.size(0), x.size(1), 2, -1).sum(2).view(x.size(0), x.size(1), -1)
        x = self.fc(x.reshape(t * b, -1)).view(t, b, -1).transpose(0, 1)
        return x.log_softmax(-1)


class Wav2Vec(nn.Module):
    def __init__(self, d=48):
        super().__init__()
        self.features = nn.Sequential(nn.Conv1d(1, 32, 10, 5, bias=False), nn.GroupNorm(32, 32), nn.GELU(), nn.Conv1d(32, 32, 3, 2, bias=False),
                                      nn.GELU(), nn.Conv1d(32, 32, 3, 2, bias=False), nn.GELU())
        self.norm, self.proj, self.target = nn.LayerNorm(32), nn.Linear(32, d), nn.Linear(32, d)
        self.mask_emb = nn.Parameter(torch.empty(d).uniform_())
        self.pos = parametrizations.weight_norm(nn.Conv1d(d, d, 16, padding=8, groups=4), dim=2)
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(d, 4, 96, 0.1, batch_first=True), 2)

    def forward(self, wav, mask):
        f = self.norm(self.features(wav.unsqueeze(1)).transpose(1, 2))
        x = self.proj(f)
        x = torch.where(mask.unsqueeze(-1).bool(), self.mask_emb, x)
        x = x + F.gelu(self.pos(x.transpose(1, 2))[..., :-1]).transpose(1, 2)
        c, q = self.encoder(x), self.target(f)
        negs = torch.stack([q.roll(s, dims=1) for s in (1, 3, 5, 7)], 0)
        logits = F.cosine_similarity(c.unsqueeze(0), torch.cat([q.unsqueeze(0), negs], 0), dim=-1) / 0.1
        return F.cross_entropy(logits.permute(1, 2, 0).flatten(0, 1), torch.zeros_like(mask).flatten())


class HifiGan(nn.Module):
    """A vocoder and discriminators of several periods, shared by real and made sound, with feature matching."""

    def __init__(self, mel=20, c=32):
        super().__init__()
        wn = nn.utils.weight_norm
        self.pre, self.post = wn(nn.Conv1d(mel, c, 7, 1, 3)), wn(nn.Conv1d(c // 4, 1, 7, 1, 3))
        self.ups = nn.ModuleList([wn(nn.ConvTranspose1d(c // 2 ** i, c // 2 ** (i + 1), 8, 4, 2)) for i in range(2)])
        self.res = nn.ModuleList([nn.ModuleList([wn(nn.Conv1d(c // 2 ** (i + 1), c // 2 ** (i + 1), 3, 1, d, d)) for d in (1, 3)])
                                  for i in range(2)])
        self.discs = nn.ModuleList([nn.ModuleList([wn(nn.Conv2d(1, 8, (5, 1), (3, 1), (2, 0))), wn(nn.Conv2d(8, 16, (5, 1), (3, 1), (2, 0))),
                                                   wn(nn.Conv2d(16, 1, (3, 1), 1, (1, 0)))]) for _ in (2, 3, 5)])

    def discriminate(self, x):
        outs, maps = [], []
        for period, convs in zip((2, 3, 5), self.discs):
            b, c, t = x.shape
            h = F.pad(x, (0, period - t % period), "reflect") if t % period else x
            h = h.view(b, c, h.size(-1) // period, period)
            fmap = []
            for l in convs[:-1]:
                h = F.leaky_relu(l(h), 0.1)
                fmap.append(h)
            outs.append(convs[-1](h).flatten(1, -1))
            maps.append(fmap)
        return outs, maps

    def forward(self, mel, wav):
        x = self.pre(mel)
        for up, res in zip(self.ups, self.res):
            x = up(F.leaky_relu(x, 0.1))
            for conv in res:
                x = conv(F.leaky_relu(x, 0.1)) + x
        fake = torch.tanh(self.post(F.leaky_relu(x)))
        real = wav.unsqueeze(1)
        r, rm = self.discriminate(real)
        g, gm = self.discriminate(fake)
        d, _ = self.discriminate(fake.detach())
        loss_d = sum(((1 - a) ** 2).mean() + (b ** 2).mean() for a, b in zip(r, d))
        loss_g = sum(((1 - b) ** 2).mean() for b in g)
        fm = sum((a - b).abs().mean() for ra, ga in zip(rm, gm) for a, b in zip(ra, ga))
        return loss_d + loss_g + 2 * fm + 45 * F.l1_loss(fake, real)


class Demucs(nn.Module):
    """Skips on a stack that the way up pops, an LSTM in the middle."""

    def __init__(self, c=16, depth=3):
        super().__init__()
        self.encoder, self.decoder, i = nn.ModuleList(), nn.ModuleList(), 1
        for index in range(depth):
            o = c * 2 ** index
            self.encoder.append(nn.Sequential(nn.Conv1d(i, o, 8, 4), nn.ReLU(), nn.Conv1d(o, 2 * o, 1), nn.GLU(1)))
            self.decoder.insert(0, nn.Sequential(nn.Conv1d(o, 2 * o, 1), nn.GLU(1), nn.ConvTranspose1d(o, i if index else 2, 8, 4)))
            i = o
        self.lstm, self.linear = nn.LSTM(i, i, 2, bidirectional=True), nn.Linear(2 * i, i)

    def forward(self, mix):
        x = mix.unsqueeze(1)
        std = x.std(dim=-1, keepdim=True)
        x = x / (1e-3 + std)
        skips = []
        for encode in self.encoder:
            x = encode(x)
            skips.append(x)
        x = x.permute(2, 0, 1)
        x, _ = self.lstm(x)
        x = self.linear(x).permute(1, 2, 0)
        for decode in self.decoder:
            skip = skips.pop(-1)
            x = x + skip[..., :x.shape[-1]]
            x = decode(x)
        return std * x


class Transducer(nn.Module):
    """RNN-T's joint of all times and all labels."""

    def __init__(self, vocab=24, d=32):
        super().__init__()
        self.enc, self.emb, self.pred = nn.LSTM(20, d, 2, batch_first=True), nn.Embedding(vocab, d), nn.LSTM(d, d, batch_first=True)
        self.forward_layer, self.project = nn.Linear(2 * d, 48), nn.Linear(48, vocab)

    def forward(self, x, labels):
        enc, _ = self.enc(x)
        dec, _ = self.pred(self.emb(labels))
        t, u = enc.size(1), dec.size(1)
        enc = enc.unsqueeze(2).repeat([1, 1, u, 1])
        dec = dec.unsqueeze(1).repeat([1, t, 1, 1])
        joint = torch.cat((enc, dec), dim=-1)
        out = F.log_softmax(self.project(torch.tanh(self.forward_layer(joint))), dim=-1)
        return -out[..., 0].mean()


class Esim(nn.Module):
    def __init__(self, vocab=200, d=32, h=24):
        super().__init__()
        self.emb, self.lstm1, self.lstm2 = nn.Embedding(vocab, d), nn.LSTM(d, h, batch_first=True, bidirectional=True), nn.LSTM(8 * h, h, batch_first=True, bidirectional=True)
        self.fc = nn.Sequential(nn.BatchNorm1d(8 * h), nn.Linear(8 * h, 32), nn.ELU(inplace=True), nn.Dropout(0.5), nn.Linear(32, 3))

    @staticmethod
    def pooled(x):
        return torch.cat([F.avg_pool1d(x.transpose(1, 2), x.size(1)).squeeze(-1), F.max_pool1d(x.transpose(1, 2), x.size(1)).squeeze(-1)], -1)

    def forward(self, sent1, sent2):
        mask1, mask2 = sent1.eq(1), sent2.eq(1)
        o1, o2 = self.lstm1(self.emb(sent1))[0], self.lstm1(self.emb(sent2))[0]
        attention = torch.matmul(o1, o2.transpose(1, 2))
        w1 = F.softmax(attention.masked_fill(mask2.unsqueeze(1), -1e9), dim=-1)
        w2 = F.softmax(attention.transpose(1, 2).masked_fill(mask1.unsqueeze(1), -1e9), dim=-1)
        a1, a2 = torch.matmul(w1, o2), torch.matmul(w2, o1)
        m1 = torch.cat([o1, a1, o1 - a1, torch.mul(o1, a1)], -1)
        m2 = torch.cat([o2, a2, o2 - a2, torch.mul(o2, a2)], -1)
        v1, v2 = self.pooled(self.lstm2(m1)[0]), self.pooled(self.lstm2(m2)[0])
        return self.fc(torch.cat([v1, v2], -1))


class ColBert(nn.Module):
    def __init__(self, vocab=200, d=48, dim=16):
        super().__init__()
        self.emb = nn.Embedding(vocab, d, padding_idx=0)
        self.enc = nn.TransformerEncoder(nn.TransformerEncoderLayer(d, 4, 96, 0.1, activation="gelu", batch_first=True), 1)
        self.linear = nn.Linear(d, dim, bias=False)

    def encode(self, ids):
        x = self.linear(self.enc(self.emb(ids)))
        return F.normalize(x, p=2, dim=2)

    def forward(self, query, pos, neg):
        q = self.encode(query)
        scores = [(q @ self.encode(doc).permute(0, 2, 1)).max(2).values.sum(1) for doc in (pos, neg)]
        return torch.stack(scores, dim=-1)


class Dien(nn.Module):
    """Attention of the target item over a history, dice activations."""

    class Dice(nn.Module):
        def __init__(self, n):
            super().__init__()
            self.bn, self.alpha = nn.BatchNorm1d(n, eps=1e-8), nn.Parameter(torch.zeros(n))

        def forward(self, x):
            p = torch.sigmoid(self.bn(x))
            return self.alpha * (1 - p) * x + p * x

    def __init__(self, items=300, cats=30, d=12):
        super().__init__()
        self.item, self.cat, self.gru = nn.Embedding(items, d), nn.Embedding(cats, d), nn.GRU(2 * d, 2 * d, batch_first=True)
        self.att = nn.Sequential(nn.Linear(8 * d, 32), nn.Sigmoid(), nn.Linear(32, 1))
        self.mlp = nn.Sequential(nn.Linear(6 * d, 40), self.Dice(40), nn.Linear(40, 2))

    def forward(self, hist_i, hist_c, item, cat):
        target = torch.cat([self.item(item), self.cat(cat)], -1)
        hist = torch.cat([self.item(hist_i), self.cat(hist_c)], -1)
        states, _ = self.gru(hist)
        queries = target.unsqueeze(1).expand_as(states)
        score = self.att(torch.cat([queries, states, queries - states, queries * states], dim=-1)).squeeze(-1)
        mask = hist_i != 0
        score = torch.where(mask, score, torch.full_like(score, -2 ** 31))
        user = torch.bmm(score.softmax(-1).unsqueeze(1), states).squeeze(1)
        return self.mlp(torch.cat([target, user, target * user], -1))


class DcnV2(nn.Module):
    def __init__(self, fields=(100, 50, 20, 10, 5), dense=6, d=8):
        super().__init__()
        self.emb = nn.Embedding(sum(fields), d)
        self.register_buffer("offsets", torch.tensor([0] + list(fields[:-1])).cumsum(0))
        n = len(fields) * d + dense
        self.U, self.V = nn.ParameterList([nn.Parameter(torch.randn(n, 8) * 0.1) for _ in range(3)]), nn.ParameterList([nn.Parameter(torch.randn(n, 8) * 0.1) for _ in range(3)])
        self.b = nn.ParameterList([nn.Parameter(torch.zeros(n)) for _ in range(3)])
        self.deep = nn.Sequential(nn.Linear(n, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 32), nn.ReLU())
        self.linear, self.out = nn.EmbeddingBag(sum(fields), 1, mode="sum"), nn.Linear(n + 32, 1)

    def forward(self, dense, cats, label):
        cats = cats + self.offsets
        x0 = torch.cat([self.emb(cats).flatten(1), dense], 1)
        x = x0
        for U, V, b in zip(self.U, self.V, self.b):
            x = x0 * (x @ V @ U.t() + b) + x
        logit = self.out(torch.cat([x, self.deep(x0)], dim=1)) + self.linear(cats)
        return F.binary_cross_entropy_with_logits(logit.squeeze(1), label)


class Mmoe(nn.Module):
    def __init__(self, d=30, experts=4, tasks=2):
        super().__init__()
        self.experts = nn.ModuleList([nn.Sequential(nn.Linear(d, 48), nn.ReLU(), nn.Linear(48, 24), nn.ReLU()) for _ in range(experts)])
        self.gates = nn.ModuleList([nn.Sequential(nn.Linear(d, experts), nn.Softmax(dim=-1)) for _ in range(tasks)])
        self.towers = nn.ModuleList([nn.Sequential(nn.Linear(24, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 1)) for _ in range(tasks)])
        self.log_vars = nn.Parameter(torch.zeros(tasks))

    def forward(self, x, y):
        expert_out = torch.stack([e(x) for e in self.experts], dim=1)
        preds = [tower((gate(x).unsqueeze(-1) * expert_out).sum(1)) for gate, tower in zip(self.gates, self.towers)]
        loss = 0
        for i, p in enumerate(preds):
            precision = torch.exp(-self.log_vars[i])
            loss += precision * (p.squeeze(-1) - y[:, i]).pow(2).mean() + self.log_vars[i]
        return loss


class Autoformer(nn.Module):
    """Series decomposed into trend and season, correlations by FFT, the best delays rolled."""

    def __init__(self, d=32, top=3):
        super().__init__()
        self.value, self.q, self.k, self.v, self.o = nn.Conv1d(7, d, 3, padding=1, padding_mode="circular", bias=False), nn.Linear(d, d), nn.Linear(d, d), nn.Linear(d, d), nn.Linear(d, d)
        self.avg, self.c1, self.c2, self.out, self.top = nn.AvgPool1d(13, 1), nn.Conv1d(d, 2 * d, 1, bias=False), nn.Conv1d(2 * d, d, 1, bias=False), nn.Linear(d, 7), top

    def decomp(self, x):
        front, end = x[:, 0:1, :].repeat(1, 6, 1), x[:, -1:, :].repeat(1, 6, 1)
        trend = self.avg(torch.cat([front, x, end], dim=1).permute(0, 2, 1)).permute(0, 2, 1)
        return x - trend, trend

    def forward(self, x):
        mean = x.mean(1, keepdim=True).detach()
        x = self.value((x - mean).permute(0, 2, 1)).transpose(1, 2)
        q, k, v = self.q(x), self.k(x), self.v(x)
        L = x.size(1)
        corr = torch.fft.irfft(torch.fft.rfft(q.transpose(1, 2), dim=-1) * torch.conj(torch.fft.rfft(k.transpose(1, 2), dim=-1)), n=L, dim=-1)
        mean_value = corr.mean(dim=1)
        weights, delay = torch.topk(mean_value, self.top, dim=-1)
        weights = torch.softmax(weights, dim=-1)
        init = torch.arange(L, device=x.device).view(1, 1, -1)
        tmp = v.transpose(1, 2).repeat(1, 1, 2)
        agg = torch.zeros_like(v.transpose(1, 2))
        for i in range(self.top):
            index = (init + delay[:, i].view(-1, 1, 1)).expand(-1, v.size(2), -1)
            agg = agg + torch.gather(tmp, dim=-1, index=index) * weights[:, i].view(-1, 1, 1)
        x, trend1 = self.decomp(x + self.o(agg.transpose(1, 2)))
        y = self.c2(F.gelu(self.c1(x.transpose(-1, 1)))).transpose(-1, 1)
        season, trend2 = self.decomp(x + y)
        return self.out(season + trend1 + trend2) + mean


class PatchTST(nn.Module):
    def __init__(self, L=96, patch=16, stride=8, d=32, horizon=24):
        super().__init__()
        self.patch, self.stride, n = patch, stride, (L - patch) // stride + 2
        self.affine_weight, self.affine_bias = nn.Parameter(torch.ones(5)), nn.Parameter(torch.zeros(5))
        self.embed, self.pos, self.drop = nn.Linear(patch, d), nn.Parameter(torch.zeros(1, n, d)), nn.Dropout(0.2)
        self.layers = nn.ModuleList([nn.TransformerEncoderLayer(d, 4, 64, 0.2, "gelu", batch_first=True) for _ in range(2)])
        self.head = nn.Sequential(nn.Flatten(-2), nn.Linear(n * d, horizon))

    def forward(self, x):
        mean = x.mean(1, keepdim=True).detach()
        std = torch.sqrt(x.var(dim=1, keepdim=True, unbiased=False) + 1e-5).detach()
        x = (x - mean) / std * self.affine_weight + self.affine_bias
        x = F.pad(x.permute(0, 2, 1), (0, self.stride), mode="replicate").unfold(-1, self.patch, self.stride)
        b, c, n, p = x.shape
        x = self.drop(self.embed(x).reshape(b * c, n, -1) + self.pos)
        for layer in self.layers:
            x = layer(x)
        x = self.head(x.view(b, c, n, -1)).permute(0, 2, 1)
        return (x - self.affine_bias) / (self.affine_weight + 1e-10) * std + mean


class TabNet(nn.Module):
    """Sparsemax by sorting, steps of attention over columns."""

    def __init__(self, d=20, n=12, steps=3, classes=4):
        super().__init__()
        self.bn, self.shared = nn.BatchNorm1d(d), nn.Linear(d, 4 * n, bias=False)
        self.own, self.bns = nn.ModuleList([nn.Linear(2 * n, 4 * n, bias=False) for _ in range(steps)]), nn.ModuleList([nn.BatchNorm1d(4 * n) for _ in range(steps)])
        self.att, self.abn = nn.ModuleList([nn.Linear(n, d, bias=False) for _ in range(steps)]), nn.ModuleList([nn.BatchNorm1d(d) for _ in range(steps)])
        self.fc, self.n = nn.Linear(n, classes), n

    @staticmethod
    def sparsemax(z):
        z = z - z.max(dim=-1, keepdim=True)[0]
        zs, _ = torch.sort(z, dim=-1, descending=True)
        rho = torch.arange(1, z.size(-1) + 1, device=z.device, dtype=z.dtype)
        cs = zs.cumsum(-1) - 1
        support = (rho * zs > cs).sum(dim=-1, keepdim=True).clamp(min=1)
        tau = cs.gather(-1, support - 1) / support.to(z.dtype)
        return torch.clamp(z - tau, min=0)

    def forward(self, x):
        x = self.bn(x)
        prior, out, loss = torch.ones_like(x), 0, 0
        a = F.glu(self.shared(x))[:, self.n:]
        for own, bn, att, abn in zip(self.own, self.bns, self.att, self.abn):
            M = self.sparsemax(abn(att(a)) * prior)
            loss = loss + torch.mean(torch.sum(torch.mul(M, torch.log(M + 1e-15)), dim=1))
            prior = torch.mul(1.3 - M, prior)
            h = F.glu(self.shared(torch.mul(M, x)))
            h = (h + F.glu(bn(own(h)))) * math.sqrt(0.5)
            out = out + F.relu(h[:, :self.n])
            a = h[:, self.n:]
        return self.fc(out)


class Gin(nn.Module):
    """Messages by index_add over a list of edges that all samples share."""

    def __init__(self, n=20, d=16, h=32):
        super().__init__()
        edges = torch.stack([torch.arange(n).repeat(3), (torch.arange(n).repeat(3) + torch.tensor([1, 2, 5]).repeat_interleave(n)) % n])
        self.register_buffer("edge_index", edges)
        self.eps = nn.Parameter(torch.zeros(2))
        self.mlps = nn.ModuleList([nn.Sequential(nn.Linear(i, h), nn.ReLU(), nn.Linear(h, h), nn.ReLU()) for i in (d, h)])
        self.lin = nn.Linear(d + 2 * h, 3)

    def forward(self, x):
        src, dst = self.edge_index
        pooled = [x.sum(1)]
        for i, mlp in enumerate(self.mlps):
            agg = torch.zeros_like(x).index_add_(1, dst, x[:, src])
            x = mlp((1 + self.eps[i]) * x + agg)
            pooled.append(x.sum(1))
        return self.lin(F.dropout(torch.cat(pooled, -1), 0.5, self.training))


class Egnn(nn.Module):
    def __init__(self, d=24, layers=2):
        super().__init__()
        self.emb = nn.Embedding(10, d)
        self.edge = nn.ModuleList([nn.Sequential(nn.Linear(2 * d + 1, d), nn.SiLU(), nn.Linear(d, d), nn.SiLU()) for _ in range(layers)])
        self.coord = nn.ModuleList([nn.Sequential(nn.Linear(d, d), nn.SiLU(), nn.Linear(d, 1, bias=False), nn.Tanh()) for _ in range(layers)])
        self.node = nn.ModuleList([nn.Sequential(nn.Linear(2 * d, d), nn.SiLU(), nn.Linear(d, d)) for _ in range(layers)])
        self.out = nn.Linear(d, 1)

    def forward(self, z, pos):
        h, x = self.emb(z), pos
        n = h.size(1)
        off = 1 - torch.eye(n, device=h.device).unsqueeze(-1)
        for edge, coord, node in zip(self.edge, self.coord, self.node):
            diff = x.unsqueeze(2) - x.unsqueeze(1)
            radial = diff.square().sum(-1, keepdim=True)
            m = edge(torch.cat([h.unsqueeze(2).expand(-1, -1, n, -1), h.unsqueeze(1).expand(-1, n, -1, -1), radial], -1)) * off
            x = x + (diff / (radial.sqrt() + 1) * coord(m)).sum(2) / (n - 1)
            h = h + node(torch.cat([h, m.sum(2)], -1))
        return self.out(h).sum(1)


class GatedGraph(nn.Module):
    def __init__(self, d=32, steps=4, kinds=3):
        super().__init__()
        self.init, self.edges, self.gru, self.steps = nn.Linear(12, d), nn.ModuleList([nn.Linear(d, d, bias=False) for _ in range(kinds)]), nn.GRUCell(d, d), steps
        self.gate, self.out = nn.Linear(2 * d, d), nn.Linear(2 * d, d)
        self.fc = nn.Linear(d, 5)

    def forward(self, x, adj):
        h0 = h = torch.tanh(self.init(x))
        b, n, d = h.shape
        for _ in range(self.steps):
            m = sum(torch.bmm(adj[:, e], lin(h)) for e, lin in enumerate(self.edges))
            h = self.gru(m.view(b * n, d), h.view(b * n, d)).view(b, n, d)
        hh = torch.cat([h, h0], dim=-1)
        return self.fc((torch.sigmoid(self.gate(hh)) * torch.tanh(self.out(hh))).sum(1))


class DiffPool(nn.Module):
    def __init__(self, d=16, h=32, k=(8, 2)):
        super().__init__()
        self.embed, self.pool = nn.ModuleList(), nn.ModuleList()
        for i, n in zip((d, h), k):
            self.embed.append(nn.Linear(i, h))
            self.pool.append(nn.Linear(i, n))
        self.fc, self.bn = nn.Linear(h, 4), nn.BatchNorm1d(h)

    def forward(self, x, adj):
        reg = 0
        for embed, pool in zip(self.embed, self.pool):
            a = adj + torch.eye(adj.size(1), device=adj.device)
            deg = a.sum(-1).clamp(min=1).pow(-0.5)
            a = deg.unsqueeze(-1) * a * deg.unsqueeze(-2)
            z = F.relu(a @ embed(x))
            s = torch.softmax(a @ pool(x), dim=-1)
            reg = reg + torch.norm(adj - s @ s.transpose(1, 2), p=2) / adj.numel() - (s * torch.log(s + 1e-15)).sum(-1).mean()
            x, adj = s.transpose(1, 2) @ z, s.transpose(1, 2) @ adj @ s
        return F.cross_entropy(self.fc(self.bn(x.mean(1))), torch.zeros(x.size(0), dtype=torch.long, device=x.device)) + 0.1 * reg


class Ppo(nn.Module):
    """The loss of one minibatch: an actor and a critic on a shared trunk."""

    def __init__(self, obs=17, act=6):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(obs, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh())
        self.actor, self.critic = nn.Linear(64, act), nn.Linear(64, 1)

    def forward(self, obs, actions, old_logp, adv, ret):
        h = self.trunk(obs)
        dist, value = Categorical(logits=self.actor(h)), self.critic(h).squeeze(-1)
        ratio = torch.exp(dist.log_prob(actions) - old_logp)
        adv = (adv - adv.mean()) / (adv.std() + 1e-8)
        pg = torch.max(-adv * ratio, -adv * torch.clamp(ratio, 0.8, 1.2)).mean()
        return pg + 0.5 * F.mse_loss(value, ret) - 0.01 * dist.entropy().mean()


class RainbowIqn(nn.Module):
    """Noisy duelling heads with quantiles; the next state's values come from a target network without gradients."""

    class Noisy(nn.Module):
        def __init__(self, i, o):
            super().__init__()
            self.mu, self.sigma = nn.Parameter(torch.empty(o, i).uniform_(-0.1, 0.1)), nn.Parameter(torch.full((o, i), 0.02))
            self.bias = nn.Parameter(torch.zeros(o))

        def forward(self, x):
            if self.training:
                i, o = torch.randn(self.mu.size(1), device=x.device), torch.randn(self.mu.size(0), device=x.device)
                i, o = i.sign().mul_(i.abs().sqrt_()), o.sign().mul_(o.abs().sqrt_())
                return F.linear(x, self.mu + self.sigma * o.ger(i), self.bias)
            return F.linear(x, self.mu, self.bias)

    class Net(nn.Module):
        def __init__(self, noisy, actions=5, q=8):
            super().__init__()
            self.conv = nn.Sequential(nn.Conv2d(4, 16, 8, 4), nn.ReLU(), nn.Conv2d(16, 32, 4, 2), nn.ReLU(), nn.Flatten())
            self.v, self.a, self.q, self.n = noisy(32 * 36, q), noisy(32 * 36, actions * q), q, actions

        def forward(self, x):
            x = self.conv(x)
            v, a = self.v(x).view(-1, 1, self.q), self.a(x).view(-1, self.n, self.q)
            return v + a - a.mean(1, keepdim=True)

    def __init__(self):
        super().__init__()
        self.online, self.target = self.Net(self.Noisy), self.Net(self.Noisy)
        self.target.load_state_dict(self.online.state_dict())
        for p in self.target.parameters():
            p.requires_grad_(False)
        self.register_buffer("tau", (torch.arange(8) + 0.5) / 8)

    def forward(self, s, s2, a, r):
        q = self.online(s).gather(1, a.view(-1, 1, 1).expand(-1, 1, 8)).squeeze(1)
        with torch.no_grad():
            best = self.online(s2).mean(2).argmax(1)
            nxt = self.target(s2).gather(1, best.view(-1, 1, 1).expand(-1, 1, 8)).squeeze(1)
            target = r.unsqueeze(1) + 0.99 * nxt
        u = target.unsqueeze(1) - q.unsqueeze(2)
        huber = torch.where(u.abs() <= 1.0, 0.5 * u.pow(2), u.abs() - 0.5)
        return ((self.tau.view(1, -1, 1) - (u.detach() < 0).float()).abs() * huber).mean(2).sum(1).mean()


class DecisionTransformer(nn.Module):
    def __init__(self, s=11, a=3, d=48, T=10):
        super().__init__()
        self.embed_t, self.embed_r, self.embed_s, self.embed_a = nn.Embedding(T, d), nn.Linear(1, d), nn.Linear(s, d), nn.Linear(a, d)
        self.ln, self.blocks = nn.LayerNorm(d), nn.ModuleList([nn.TransformerEncoderLayer(d, 4, 4 * d, 0.1, "gelu", batch_first=True, norm_first=True) for _ in range(2)])
        self.predict = nn.Sequential(nn.Linear(d, a), nn.Tanh())

    def forward(self, states, actions, rtg, timesteps):
        b, t = states.shape[0], states.shape[1]
        time = self.embed_t(timesteps)
        tokens = torch.stack((self.embed_r(rtg) + time, self.embed_s(states) + time, self.embed_a(actions) + time), dim=1)
        x = self.ln(tokens.permute(0, 2, 1, 3).reshape(b, 3 * t, -1))
        mask = nn.Transformer.generate_square_subsequent_mask(3 * t, device=x.device)
        for block in self.blocks:
            x = block(x, src_mask=mask, is_causal=True)
        x = x.reshape(b, t, 3, -1).permute(0, 2, 1, 3)
        return torch.mean((self.predict(x[:, 1]) - actions) ** 2)


class MaskedFlow(nn.Module):
    """Autoregressive flow by masked linear layers, norms between, orders reversed."""

    class Masked(nn.Linear):
        def __init__(self, i, o, mask):
            super().__init__(i, o)
            self.register_buffer("mask", mask)

        def forward(self, x):
            return F.linear(x, self.weight * self.mask, self.bias)

    def __init__(self, d=8, h=48, n=3):
        super().__init__()
        deg_in, deg_h = torch.arange(d), torch.arange(h) % (d - 1)
        m1, m2, m3 = (deg_h[:, None] >= deg_in).float(), (deg_h[:, None] >= deg_h).float(), (deg_in[:, None] > deg_h).float().repeat(2, 1)
        self.nets = nn.ModuleList([nn.Sequential(self.Masked(d, h, m1), nn.ReLU(), self.Masked(h, h, m2), nn.ReLU(), self.Masked(h, 2 * d, m3))
                                   for _ in range(n)])
        self.log_gamma, self.beta = nn.Parameter(torch.zeros(n, d)), nn.Parameter(torch.zeros(n, d))

    def forward(self, x):
        log_det = torch.zeros(x.shape[0], device=x.device)
        for i, net in enumerate(self.nets):
            m, a = net(x).chunk(chunks=2, dim=1)
            x = (x - m) * torch.exp(-a)
            log_det = log_det - a.sum(dim=1)
            mean, var = x.mean(0), x.var(0) + 1e-5
            x = (x - mean) / var.sqrt() * self.log_gamma[i].exp() + self.beta[i]
            log_det += (self.log_gamma[i] - 0.5 * torch.log(var)).sum()
            x = x.flip(dims=(1,))
        return -(-0.5 * (x ** 2).sum(1) - 0.5 * x.size(1) * math.log(2 * math.pi) + log_det).mean()


class SplineFlow(nn.Module):
    """Coupling by rational quadratic splines."""

    def __init__(self, d=6, K=6, h=32):
        super().__init__()
        self.half, self.K = d // 2, K
        self.nets = nn.ModuleList([nn.Sequential(nn.Linear(self.half, h), nn.Tanh(), nn.Linear(h, (3 * K - 1) * self.half)) for _ in range(2)])

    def spline(self, x, params):
        W, H, D = torch.split(params.reshape(x.shape[0], self.half, 3 * self.K - 1), [self.K, self.K, self.K - 1], dim=2)
        W, H = 6 * torch.softmax(W, dim=2), 6 * torch.softmax(H, dim=2)
        D = F.pad(F.softplus(D), pad=(1, 1), value=1.0)
        cw, ch = F.pad(torch.cumsum(W, -1), (1, 0)) - 3, F.pad(torch.cumsum(H, -1), (1, 0)) - 3
        idx = (torch.sum(x[..., None] >= cw, dim=-1) - 1).clamp(0, self.K - 1)[..., None]
        w, cwk, h, chk = (t.gather(-1, idx)[..., 0] for t in (W, cw, H, ch))
        d0, d1 = D.gather(-1, idx)[..., 0], D.gather(-1, idx + 1)[..., 0]
        theta = (x - cwk) / w
        delta, tt = h / w, theta * (1 - theta)
        den = delta + (d0 + d1 - 2 * delta) * tt
        out = chk + h * (delta * theta.pow(2) + d0 * tt) / den
        dnum = delta.pow(2) * (d1 * theta.pow(2) + 2 * delta * tt + d0 * (1 - theta).pow(2))
        return out, (torch.log(dnum) - 2 * torch.log(den)).sum(1)

    def forward(self, x):
        lower, upper = x[:, :self.half], x[:, self.half:]
        upper, ld1 = self.spline(upper, self.nets[0](lower))
        lower, ld2 = self.spline(lower, self.nets[1](upper))
        z = torch.cat([lower, upper], dim=1)
        return -(Normal(0.0, 1.0).log_prob(z).sum(1) + ld1 + ld2).mean()


class Kan(nn.Module):
    """B-splines on edges."""

    class Layer(nn.Module):
        def __init__(self, i, o, grid=5, order=3):
            super().__init__()
            step = 2 / grid
            self.register_buffer("grid", (torch.arange(-order, grid + order + 1) * step - 1).expand(i, -1).contiguous())
            self.base, self.spline, self.order = nn.Parameter(torch.randn(o, i) * 0.1), nn.Parameter(torch.randn(o, i, grid + order) * 0.1), order

        def forward(self, x):
            base = F.linear(F.silu(x), self.base)
            g, x = self.grid, x.unsqueeze(-1)
            bases = ((x >= g[:, :-1]) & (x < g[:, 1:])).to(x.dtype)
            for k in range(1, self.order + 1):
                bases = ((x - g[:, :-(k + 1)]) / (g[:, k:-1] - g[:, :-(k + 1)]) * bases[:, :, :-1]) + \
                    ((g[:, k + 1:] - x) / (g[:, k + 1:] - g[:, 1:(-k)]) * bases[:, :, 1:])
            return base + F.linear(bases.flatten(1), self.spline.flatten(1))

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([self.Layer(10, 16), self.Layer(16, 1)])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


class HashGrid(nn.Module):
    """A field from hashed tables at several resolutions, rendered along rays."""

    def __init__(self, levels=4, size=512, f=2):
        super().__init__()
        self.tables = nn.ParameterList([nn.Parameter(torch.empty(size, f).uniform_(-1e-4, 1e-4)) for _ in range(levels)])
        self.res, self.size = [8 * 2 ** i for i in range(levels)], size
        self.sigma, self.color = nn.Sequential(nn.Linear(levels * f, 32), nn.ReLU(), nn.Linear(32, 16)), nn.Sequential(nn.Linear(18, 32), nn.ReLU(), nn.Linear(32, 3))
        self.register_buffer("corners", torch.tensor([[i, j, k] for i in (0, 1) for j in (0, 1) for k in (0, 1)]))
        self.register_buffer("primes", torch.tensor([1, 2654435, 805459]))

    def encode(self, x):
        feats = []
        for table, res in zip(self.tables, self.res):
            p = x * res
            base = p.floor()
            frac = (p - base).unsqueeze(-2)
            idx = (base.long().unsqueeze(-2) + self.corners) * self.primes
            h = torch.bitwise_xor(torch.bitwise_xor(idx[..., 0], idx[..., 1]), idx[..., 2]) % self.size
            w = torch.where(self.corners.bool(), frac, 1 - frac).prod(-1, keepdim=True)
            feats.append((table[h] * w).sum(-2))
        return torch.cat(feats, -1)

    def forward(self, origins, dirs):
        t = torch.linspace(0.1, 1.0, 16, device=origins.device)
        pts = (origins[:, None] + dirs[:, None] * t[:, None]).clamp(0, 0.999)
        h = self.sigma(self.encode(pts))
        sigma = F.softplus(h[..., 0])
        rgb = torch.sigmoid(self.color(torch.cat([h[..., 1:], dirs[:, None].expand(-1, 16, -1)], -1)))
        alpha = 1 - torch.exp(-sigma * 0.06)
        trans = torch.cumprod(torch.cat([torch.ones_like(alpha[:, :1]), 1 - alpha + 1e-10], -1), -1)[:, :-1]
        return ((alpha * trans)[..., None] * rgb).sum(1)


class BayesNet(nn.Module):
    """Weights drawn in every pass, with the divergence from their prior."""

    class Layer(nn.Module):
        def __init__(self, i, o):
            super().__init__()
            self.mu, self.rho, self.bias = nn.Parameter(torch.randn(o, i) * 0.1), nn.Parameter(torch.full((o, i), -5.0)), nn.Parameter(torch.zeros(o))

        def forward(self, x):
            q = Normal(self.mu, F.softplus(self.rho))
            kl = kl_divergence(q, Normal(torch.zeros_like(self.mu), torch.ones_like(self.mu))).sum()
            return F.linear(x, q.rsample(), self.bias), kl

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([self.Layer(20, 64), self.Layer(64, 64), self.Layer(64, 5)])

    def forward(self, x, y):
        total = 0
        for i, layer in enumerate(self.layers):
            x, kl = layer(x)
            total = total + kl
            if i < len(self.layers) - 1:
                x = F.relu(x)
        return F.cross_entropy(x, y) + total / 1000


NETWORKS = [
    Network("lstm_language_model", LSTMLanguageModel, numbers(24), "none"),
    Network("text_vae", TextVAE, numbers(16), "none"),
    Network("layer_norm_lstm", LayerNormLSTM, values(10, 20)),
    Network("s4d", S4D, values(64, 1)),
    Network("ret_net", RetNet, numbers(24)),
    Network("hyena", Hyena, values(64, 32)),
    Network("soft_moe", SoftMoE, values(16, 24)),
    Network("switch_ffn", SwitchFFN, together(values(12, 16), values(12)), "none"),
    Network("tiny_t5", TinyT5, together(numbers(16), numbers(12))),
    Network("alibi_gpt", AlibiGPT, numbers(24)),
    Network("perceiver_io", PerceiverIO, values(40, 16)),
    Network("performer", Performer, numbers(40)),
    Network("transformer_xl", TransformerXL, together(numbers(16), numbers(16))),
    Network("lora_gpt", LoRAGPT, numbers(24)),
    Network("deep_speech", DeepSpeech, values(40, 60)),
    Network("wav2vec", Wav2Vec, together(values(1000), numbers(49)), "none"),
    Network("hifi_gan", HifiGan, together(values(20, 16), values(256)), "none"),
    Network("demucs", Demucs, values(852), "mse"),
    Network("transducer", Transducer, together(values(20, 20), numbers(8)), "none"),
    Network("esim", Esim, together(numbers(12), numbers(14))),
    Network("col_bert", ColBert, together(numbers(8), numbers(20), numbers(20))),
    Network("dien", Dien, together(numbers(10), numbers(10), numbers(), numbers())),
    Network("dcn_v2", DcnV2, together(values(6), numbers(5), values()), "none"),
    Network("mmoe", Mmoe, together(values(30), values(2)), "none"),
    Network("autoformer", Autoformer, values(48, 7), "mse"),
    Network("patch_tst", PatchTST, values(96, 5), "mse"),
    Network("tab_net", TabNet, values(20)),
    Network("gin", Gin, values(20, 16)),
    Network("egnn", Egnn, together(numbers(9), values(9, 3)), "mse"),
    Network("gated_graph", GatedGraph, together(values(10, 12), values(3, 10, 10))),
    Network("diff_pool", DiffPool, together(values(16, 16), values(16, 16)), "none"),
    Network("ppo", Ppo, together(values(17), numbers(), values(), values(), values()), "none", 32, 48),
    Network("rainbow_iqn", RainbowIqn, together(values(4, 64, 64), values(4, 64, 64), numbers(), values()), "none"),
    Network("decision_transformer", DecisionTransformer, together(values(10, 11), values(10, 3), values(10, 1), numbers(10)), "none"),
    Network("masked_flow", MaskedFlow, values(8), "none", 32, 48),
    Network("spline_flow", SplineFlow, values(6), "none", 32, 48),
    Network("kan", Kan, values(10), "mse", 32, 48),
    Network("hash_grid", HashGrid, together(values(3), values(3)), "mse", 32, 48),
    Network("bayes_net", BayesNet, together(values(20), numbers()), "none"),
]
