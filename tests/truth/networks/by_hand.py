"""Networks as people write them for their own work: the corpus's second half. Written without trying them first."""
import math

import torch
from torch import nn
from torch.nn import functional as F

from .common import Network, image, numbers, together, values


class Gan(nn.Module):
    """The discriminator looks at pictures and at the generator's, as a step of its training does."""

    def __init__(self, nz=32, ngf=16, ndf=16):
        super().__init__()
        self.netG = nn.Sequential(
            nn.ConvTranspose2d(nz, ngf * 4, 4, 1, 0, bias=False), nn.BatchNorm2d(ngf * 4), nn.ReLU(True),
            nn.ConvTranspose2d(ngf * 4, ngf * 2, 4, 2, 1, bias=False), nn.BatchNorm2d(ngf * 2), nn.ReLU(True),
            nn.ConvTranspose2d(ngf * 2, ngf, 4, 2, 1, bias=False), nn.BatchNorm2d(ngf), nn.ReLU(True),
            nn.ConvTranspose2d(ngf, 3, 4, 2, 1, bias=False), nn.Tanh())
        self.netD = nn.Sequential(
            nn.Conv2d(3, ndf, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(ndf, ndf * 2, 4, 2, 1, bias=False), nn.BatchNorm2d(ndf * 2), nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(ndf * 2, 1, 8, 1, 0, bias=False), nn.Flatten())

    def forward(self, real, noise):
        fake = self.netG(noise[:, :, None, None])
        pred_real = self.netD(real)
        pred_fake = self.netD(fake)
        loss_d = F.binary_cross_entropy_with_logits(pred_real, torch.ones_like(pred_real)) + \
            F.binary_cross_entropy_with_logits(self.netD(fake.detach()), torch.zeros_like(pred_real))
        return loss_d + F.binary_cross_entropy_with_logits(pred_fake, torch.ones_like(pred_fake))


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(784, 400)
        self.fc21 = nn.Linear(400, 20)
        self.fc22 = nn.Linear(400, 20)
        self.fc3 = nn.Linear(20, 400)
        self.fc4 = nn.Linear(400, 784)

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        eps = torch.randn_like(std)
        return mu + eps * std

    def decode(self, z):
        h3 = F.relu(self.fc3(z))
        return torch.sigmoid(self.fc4(h3))

    def forward(self, x):
        mu, logvar = self.encode(x.view(-1, 784))
        z = self.reparameterize(mu, logvar)
        recon_x = self.decode(z)
        BCE = F.binary_cross_entropy(recon_x, x.view(-1, 784), reduction='sum')
        KLD = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
        return BCE + KLD


class Seq2Seq(nn.Module):
    """GRUs with attention over the encoder's states, step by step with teacher forcing."""

    def __init__(self, vocab=120, hidden=48):
        super().__init__()
        self.embedding = nn.Embedding(vocab, hidden)
        self.encoder = nn.GRU(hidden, hidden, batch_first=True, bidirectional=True)
        self.bridge = nn.Linear(2 * hidden, hidden)
        self.keys = nn.Linear(2 * hidden, hidden, bias=False)
        self.cell = nn.GRUCell(hidden + 2 * hidden, hidden)
        self.out = nn.Linear(hidden, vocab)
        self.dropout = nn.Dropout(0.1)

    def forward(self, src, tgt):
        enc, h = self.encoder(self.dropout(self.embedding(src)))
        state = torch.tanh(self.bridge(torch.cat([h[0], h[1]], dim=-1)))
        keys = self.keys(enc)
        outputs = []
        for t in range(tgt.size(1)):
            scores = torch.bmm(keys, state.unsqueeze(2)).squeeze(2)
            weights = F.softmax(scores, dim=1)
            context = torch.bmm(weights.unsqueeze(1), enc).squeeze(1)
            emb = self.dropout(self.embedding(tgt[:, t]))
            state = self.cell(torch.cat([emb, context], 1), state)
            outputs.append(self.out(state))
        return torch.stack(outputs, dim=1)


class GraphConv(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(in_features, out_features))
        self.bias = nn.Parameter(torch.zeros(out_features))
        nn.init.xavier_uniform_(self.weight)

    def forward(self, x, adj):
        support = torch.matmul(x, self.weight)
        return torch.matmul(adj, support) + self.bias


class GCN(nn.Module):
    def __init__(self, nfeat=16, nhid=32, nclass=7, dropout=0.5):
        super().__init__()
        self.gc1 = GraphConv(nfeat, nhid)
        self.gc2 = GraphConv(nhid, nclass)
        self.dropout = dropout

    def forward(self, x, adj):
        deg = adj.sum(-1, keepdim=True).clamp(min=1)
        adj = adj / deg
        x = F.relu(self.gc1(x, adj))
        x = F.dropout(x, self.dropout, training=self.training)
        x = self.gc2(x, adj)
        return x.mean(1)


class DLRM(nn.Module):
    """A recommender: embeddings of categories, dots of all pairs."""

    def __init__(self, sizes=(1000, 200, 50, 30), dense=13, dim=16):
        super().__init__()
        self.tables = nn.ModuleList([nn.Embedding(n, dim) for n in sizes])
        self.bottom = nn.Sequential(nn.Linear(dense, 64), nn.ReLU(), nn.Linear(64, dim), nn.ReLU())
        n = len(sizes) + 1
        self.register_buffer("li", torch.tensor([i for i in range(n) for j in range(i)]))
        self.register_buffer("lj", torch.tensor([j for i in range(n) for j in range(i)]))
        self.top = nn.Sequential(nn.Linear(dim + n * (n - 1) // 2, 64), nn.ReLU(), nn.Linear(64, 2))

    def forward(self, dense, sparse):
        x = self.bottom(dense)
        ly = [table(sparse[:, i]) for i, table in enumerate(self.tables)]
        T = torch.cat([x] + ly, dim=1).view(x.size(0), -1, x.size(1))
        Z = torch.bmm(T, T.transpose(1, 2))
        Zflat = Z[:, self.li, self.lj]
        return self.top(torch.cat([x, Zflat], dim=1))


class Coupling(nn.Module):
    def __init__(self, dim, hidden, flip):
        super().__init__()
        self.flip = flip
        self.net = nn.Sequential(nn.Linear(dim // 2, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(),
                                 nn.Linear(hidden, dim))

    def forward(self, x, log_det):
        a, b = x.chunk(2, dim=1)
        if self.flip:
            a, b = b, a
        s, t = self.net(a).chunk(2, dim=1)
        s = torch.tanh(s)
        b = b * torch.exp(s) + t
        log_det = log_det + s.sum(dim=1)
        if self.flip:
            a, b = b, a
        return torch.cat([a, b], dim=1), log_det


class RealNVP(nn.Module):
    def __init__(self, dim=32, hidden=64, n=6):
        super().__init__()
        self.layers = nn.ModuleList(Coupling(dim, hidden, i % 2 == 1) for i in range(n))

    def forward(self, x):
        log_det = x.new_zeros(x.size(0))
        for layer in self.layers:
            x, log_det = layer(x, log_det)
        log_p = -0.5 * (x ** 2 + math.log(2 * math.pi)).sum(1)
        return -(log_p + log_det).mean()


class NeRF(nn.Module):
    def __init__(self, D=6, W=64, skips=(3,), n_freqs=6):
        super().__init__()
        self.register_buffer("freqs", 2.0 ** torch.arange(n_freqs))
        in_ch = 3 + 3 * 2 * n_freqs
        self.skips = skips
        self.pts_linears = nn.ModuleList(
            [nn.Linear(in_ch, W)] + [nn.Linear(W + in_ch if i in skips else W, W) for i in range(D - 1)])
        self.alpha_linear = nn.Linear(W, 1)
        self.rgb_linear = nn.Linear(W, 3)

    def embed(self, x):
        xb = x[..., None] * self.freqs
        four = torch.sin(torch.cat([xb, xb + 0.5 * math.pi], dim=-1))
        return torch.cat([x, four.flatten(-2)], dim=-1)

    def forward(self, rays):
        o, d = rays[:, :3], rays[:, 3:]
        t = torch.linspace(0.1, 4., 16, device=rays.device)
        pts = o[:, None] + d[:, None] * t[:, None]
        emb = self.embed(pts)
        h = emb
        for i, l in enumerate(self.pts_linears):
            h = F.relu(l(h))
            if i in self.skips:
                h = torch.cat([emb, h], -1)
        sigma = F.relu(self.alpha_linear(h))[..., 0]
        rgb = torch.sigmoid(self.rgb_linear(h))
        alpha = 1. - torch.exp(-sigma * 0.25)
        trans = torch.cumprod(torch.cat([torch.ones_like(alpha[:, :1]), 1. - alpha + 1e-10], -1), -1)[:, :-1]
        weights = alpha * trans
        return (weights[..., None] * rgb).sum(1)


def modulate(x, shift, scale):
    return x * (1 + scale.unsqueeze(1)) + shift.unsqueeze(1)


class DiTBlock(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.norm1 = nn.LayerNorm(dim, elementwise_affine=False, eps=1e-6)
        self.norm2 = nn.LayerNorm(dim, elementwise_affine=False, eps=1e-6)
        self.heads = heads
        self.qkv = nn.Linear(dim, dim * 3)
        self.proj = nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, dim * 4), nn.GELU(approximate="tanh"), nn.Linear(dim * 4, dim))
        self.adaLN = nn.Sequential(nn.SiLU(), nn.Linear(dim, 6 * dim))

    def attn(self, x):
        B, N, C = x.shape
        q, k, v = self.qkv(x).reshape(B, N, 3, self.heads, C // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        x = F.scaled_dot_product_attention(q, k, v)
        return self.proj(x.transpose(1, 2).reshape(B, N, C))

    def forward(self, x, c):
        shift1, scale1, gate1, shift2, scale2, gate2 = self.adaLN(c).chunk(6, dim=1)
        x = x + gate1.unsqueeze(1) * self.attn(modulate(self.norm1(x), shift1, scale1))
        x = x + gate2.unsqueeze(1) * self.mlp(modulate(self.norm2(x), shift2, scale2))
        return x


class DiT(nn.Module):
    def __init__(self, dim=64, depth=2, heads=4, patch=4, size=32):
        super().__init__()
        self.x_embed = nn.Conv2d(4, dim, patch, patch)
        self.pos = nn.Parameter(torch.zeros(1, (size // patch) ** 2, dim), requires_grad=False)
        self.t_embed = nn.Sequential(nn.Linear(64, dim), nn.SiLU(), nn.Linear(dim, dim))
        self.y_embed = nn.Embedding(11, dim)
        self.blocks = nn.ModuleList(DiTBlock(dim, heads) for _ in range(depth))
        self.norm, self.out, self.patch = nn.LayerNorm(dim, elementwise_affine=False), nn.Linear(dim, patch * patch * 4), patch

    def forward(self, x, t, y):
        half = 32
        freqs = torch.exp(-math.log(10000) * torch.arange(half, dtype=torch.float32, device=t.device) / half)
        args = t[:, None].float() * freqs[None]
        c = self.t_embed(torch.cat([torch.cos(args), torch.sin(args)], dim=-1)) + self.y_embed(y)
        x = self.x_embed(x).flatten(2).transpose(1, 2) + self.pos
        for block in self.blocks:
            x = block(x, c)
        x = self.out(self.norm(x))
        h = w = int(x.shape[1] ** 0.5)
        x = x.reshape(x.shape[0], h, w, self.patch, self.patch, 4)
        return torch.einsum("nhwpqc->nchpwq", x).reshape(x.shape[0], 4, h * self.patch, w * self.patch)


class DoubleConv(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.double_conv = nn.Sequential(
            nn.Conv2d(i, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True),
            nn.Conv2d(o, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True))

    def forward(self, x):
        return self.double_conv(x)


class UNet(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.inc = DoubleConv(3, width)
        self.down1 = nn.Sequential(nn.MaxPool2d(2), DoubleConv(width, width * 2))
        self.down2 = nn.Sequential(nn.MaxPool2d(2), DoubleConv(width * 2, width * 4))
        self.up1 = nn.ConvTranspose2d(width * 4, width * 2, 2, stride=2)
        self.conv1 = DoubleConv(width * 4, width * 2)
        self.up2 = nn.ConvTranspose2d(width * 2, width, 2, stride=2)
        self.conv2 = DoubleConv(width * 2, width)
        self.outc = nn.Conv2d(width, 5, 1)

    def forward(self, x):
        x1 = self.inc(x)
        x2 = self.down1(x1)
        x3 = self.down2(x2)
        x = self.up1(x3)
        diffY, diffX = x2.size(2) - x.size(2), x2.size(3) - x.size(3)
        x = F.pad(x, [diffX // 2, diffX - diffX // 2, diffY // 2, diffY - diffY // 2])
        x = self.conv1(torch.cat([x2, x], dim=1))
        x = self.conv2(torch.cat([x1, self.up2(x)], dim=1))
        return self.outc(x)


class Siamese(nn.Module):
    """Triplets through one encoder."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, 16, 5), nn.PReLU(), nn.MaxPool2d(2, 2), nn.Conv2d(16, 32, 5), nn.PReLU(), nn.MaxPool2d(2, 2),
            nn.Flatten(), nn.Linear(32 * 4 * 4, 64), nn.PReLU(), nn.Linear(64, 16))

    def forward(self, anchor, positive, negative):
        a, p, n = (F.normalize(self.encoder(x), dim=1) for x in (anchor, positive, negative))
        return F.triplet_margin_loss(a, p, n, margin=0.3)


class Experts(nn.Module):
    """Soft mixture: every expert runs, the best two count."""

    def __init__(self, dim=48, hidden=96, n=4, k=2):
        super().__init__()
        self.gate = nn.Linear(dim, n, bias=False)
        self.w1 = nn.Parameter(torch.randn(n, dim, hidden) * 0.02)
        self.w2 = nn.Parameter(torch.randn(n, hidden, dim) * 0.02)
        self.k = k

    def forward(self, x):
        logits = self.gate(x)
        top, index = logits.topk(self.k, dim=-1)
        weights = torch.zeros_like(logits).scatter(-1, index, F.softmax(top, dim=-1))
        h = torch.einsum("bsd,edh->bseh", x, self.w1)
        y = torch.einsum("bseh,ehd->bsed", F.silu(h), self.w2)
        return torch.einsum("bsed,bse->bsd", y, weights)


class MoETransformer(nn.Module):
    def __init__(self, vocab=200, dim=48, layers=2):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.layers = nn.ModuleList(nn.ModuleDict({
            "n1": nn.LayerNorm(dim), "attn": nn.MultiheadAttention(dim, 4, batch_first=True), "n2": nn.LayerNorm(dim),
            "moe": Experts(dim)}) for _ in range(layers))
        self.head = nn.Linear(dim, vocab, bias=False)
        self.head.weight = self.emb.weight

    def forward(self, idx):
        x = self.emb(idx)
        mask = torch.triu(torch.full((x.size(1), x.size(1)), float("-inf"), device=x.device), diagonal=1)
        for layer in self.layers:
            h = layer["n1"](x)
            x = x + layer["attn"](h, h, h, attn_mask=mask, need_weights=False)[0]
            x = x + layer["moe"](layer["n2"](x))
        return self.head(x)


class LSTMTagger(nn.Module):
    def __init__(self, vocab=300, dim=32, hidden=48, tags=9):
        super().__init__()
        self.word_embeddings = nn.Embedding(vocab, dim, padding_idx=0)
        self.lstm = nn.LSTM(dim, hidden // 2, num_layers=2, bidirectional=True, batch_first=True, dropout=0.3)
        self.hidden2tag = nn.Linear(hidden, tags)

    def forward(self, sentence):
        embeds = self.word_embeddings(sentence)
        lstm_out, _ = self.lstm(embeds)
        return self.hidden2tag(lstm_out)


class CharRNN(nn.Module):
    """A vanilla RNN that hands its state out."""

    def __init__(self, vocab=60, hidden=64):
        super().__init__()
        self.vocab = vocab
        self.rnn = nn.RNN(vocab, hidden, 2, nonlinearity="relu", batch_first=True)
        self.fc = nn.Linear(hidden, vocab)

    def forward(self, x):
        x = F.one_hot(x, self.vocab).float()
        out, hidden = self.rnn(x)
        return self.fc(out)


class WaveNet(nn.Module):
    """Weight norm in the older style, gates, skips."""

    def __init__(self, channels=24, layers=6):
        super().__init__()
        wn = torch.nn.utils.weight_norm
        self.start = wn(nn.Conv1d(1, channels, 1))
        self.filters = nn.ModuleList(wn(nn.Conv1d(channels, channels, 2, dilation=2 ** i)) for i in range(layers))
        self.gates = nn.ModuleList(wn(nn.Conv1d(channels, channels, 2, dilation=2 ** i)) for i in range(layers))
        self.skips = nn.ModuleList(nn.Conv1d(channels, channels, 1) for _ in range(layers))
        self.residuals = nn.ModuleList(nn.Conv1d(channels, channels, 1) for _ in range(layers))
        self.end = nn.Sequential(nn.ReLU(), nn.Conv1d(channels, 64, 1), nn.ReLU(), nn.Conv1d(64, 32, 1))

    def forward(self, x):
        x = self.start(x)
        total = 0
        for i, (f, g, s, r) in enumerate(zip(self.filters, self.gates, self.skips, self.residuals)):
            y = F.pad(x, (2 ** i, 0))
            y = torch.tanh(f(y)) * torch.sigmoid(g(y))
            total = total + s(y)
            x = x + r(y)
        return self.end(total)


class Checkpointed(nn.Module):
    """Blocks that run again in backward."""

    def __init__(self, dim=64, depth=4):
        super().__init__()
        self.stem = nn.Linear(32, dim)
        self.blocks = nn.ModuleList(nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))
                                    for _ in range(depth))
        self.head = nn.Linear(dim, 10)

    def forward(self, x):
        from torch.utils.checkpoint import checkpoint
        x = self.stem(x)
        for block in self.blocks:
            x = x + checkpoint(block, x, use_reentrant=False)
        return self.head(x.mean(1))


class InPlace(nn.Module):
    """As much in place as autograd allows."""

    def __init__(self):
        super().__init__()
        self.c1, self.b1 = nn.Conv2d(3, 16, 3, 2, 1), nn.BatchNorm2d(16)
        self.c2, self.b2 = nn.Conv2d(16, 16, 3, 1, 1), nn.BatchNorm2d(16)
        self.c3 = nn.Conv2d(16, 32, 3, 2, 1)
        self.fc = nn.Linear(32, 10)

    def forward(self, x):
        x = F.relu_(self.b1(self.c1(x)))
        res = x
        x = self.b2(self.c2(x))
        x += res
        x = F.leaky_relu(x, 0.1, inplace=True)
        x = F.hardswish(self.c3(x), inplace=True)
        x = x.mean([2, 3])
        x.mul_(0.5).add_(1)
        return self.fc(x)


class SelfAttentionClassifier(nn.Module):
    """Attention by hand, with a mask of the padding."""

    def __init__(self, vocab=500, dim=64, heads=4, layers=2, classes=5):
        super().__init__()
        self.emb, self.pos = nn.Embedding(vocab, dim), nn.Embedding(64, dim)
        self.q = nn.ModuleList(nn.Linear(dim, dim) for _ in range(layers))
        self.k = nn.ModuleList(nn.Linear(dim, dim) for _ in range(layers))
        self.v = nn.ModuleList(nn.Linear(dim, dim) for _ in range(layers))
        self.o = nn.ModuleList(nn.Linear(dim, dim) for _ in range(layers))
        self.ln = nn.ModuleList(nn.LayerNorm(dim) for _ in range(layers))
        self.heads, self.drop, self.cls = heads, nn.Dropout(0.1), nn.Linear(dim, classes)

    def forward(self, ids):
        b, s = ids.shape
        mask = (ids != 0)[:, None, None, :]
        x = self.emb(ids) + self.pos(torch.arange(s, device=ids.device))
        for q, k, v, o, ln in zip(self.q, self.k, self.v, self.o, self.ln):
            Q, K, V = (l(x).view(b, s, self.heads, -1).transpose(1, 2) for l in (q, k, v))
            att = (Q @ K.transpose(-2, -1)) / math.sqrt(Q.size(-1))
            att = att.masked_fill(mask == 0, -1e9)
            att = self.drop(att.softmax(-1))
            x = ln(x + o((att @ V).transpose(1, 2).contiguous().view(b, s, -1)))
        return self.cls(x[:, 0])


class EncoderLayerNet(nn.Module):
    """nn.TransformerEncoder for series."""

    def __init__(self, features=7, dim=32):
        super().__init__()
        self.proj = nn.Linear(features, dim)
        self.pos = nn.Parameter(torch.randn(1, 48, dim) * 0.02)
        layer = nn.TransformerEncoderLayer(dim, 4, dim * 2, dropout=0.1, activation="gelu", batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.out = nn.Linear(dim, 1)

    def forward(self, x):
        x = self.proj(x) + self.pos
        x = self.encoder(x)
        return self.out(x[:, -1])


class FullTransformer(nn.Module):
    def __init__(self, vocab=150, dim=48):
        super().__init__()
        self.src, self.tgt = nn.Embedding(vocab, dim), nn.Embedding(vocab, dim)
        self.transformer = nn.Transformer(dim, 4, 2, 2, 96, 0.1, batch_first=True, norm_first=True)
        self.generator = nn.Linear(dim, vocab)

    def forward(self, src, tgt):
        mask = nn.Transformer.generate_square_subsequent_mask(tgt.shape[1], device=tgt.device)
        h = self.transformer(self.src(src) * math.sqrt(48), self.tgt(tgt) * math.sqrt(48), tgt_mask=mask)
        return self.generator(h)


class PointNet(nn.Module):
    def __init__(self, k=10):
        super().__init__()
        self.conv1, self.conv2, self.conv3 = nn.Conv1d(3, 32, 1), nn.Conv1d(32, 64, 1), nn.Conv1d(64, 128, 1)
        self.bn1, self.bn2, self.bn3 = nn.BatchNorm1d(32), nn.BatchNorm1d(64), nn.BatchNorm1d(128)
        self.tnet = nn.Sequential(nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 9))
        self.fc = nn.Sequential(nn.Linear(128, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Dropout(p=0.3), nn.Linear(64, k))

    def feat(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        x = F.relu(self.bn2(self.conv2(x)))
        x = self.bn3(self.conv3(x))
        return torch.max(x, 2, keepdim=True)[0].view(-1, 128)

    def forward(self, x):
        iden = torch.eye(3, device=x.device).view(1, 9).repeat(x.size(0), 1)
        trans = (self.tnet(self.feat(x)) + iden).view(-1, 3, 3)
        x = torch.bmm(x.transpose(2, 1), trans).transpose(2, 1)
        return F.log_softmax(self.fc(self.feat(x)), dim=1)


class SpectralCritic(nn.Module):
    def __init__(self):
        super().__init__()
        sn = torch.nn.utils.parametrizations.spectral_norm
        self.net = nn.Sequential(sn(nn.Conv2d(3, 16, 4, 2, 1)), nn.LeakyReLU(0.1), sn(nn.Conv2d(16, 32, 4, 2, 1)),
                                 nn.LeakyReLU(0.1), nn.Flatten(), sn(nn.Linear(32 * 8 * 8, 1)))

    def forward(self, x):
        return F.relu(1 - self.net(x)).mean()


class StyleBlock(nn.Module):
    """Weights that depend on the sample, by one grouped convolution."""

    def __init__(self, i, o, w_dim):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(o, i, 3, 3))
        self.affine = nn.Linear(w_dim, i)
        self.noise_strength = nn.Parameter(torch.zeros(1))

    def forward(self, x, w):
        b, c, h, wd = x.shape
        s = self.affine(w).view(b, 1, c, 1, 1) + 1
        weight = self.weight[None] * s
        weight = weight * torch.rsqrt(weight.pow(2).sum([2, 3, 4], keepdim=True) + 1e-8)
        x = F.conv2d(x.reshape(1, b * c, h, wd), weight.reshape(-1, c, 3, 3), padding=1, groups=b)
        x = x.view(b, -1, h, wd)
        x = x + self.noise_strength * torch.randn(b, 1, h, wd, device=x.device)
        return F.leaky_relu(x, 0.2)


class StyleGenerator(nn.Module):
    def __init__(self, z=32, w=32):
        super().__init__()
        self.mapping = nn.Sequential(*[m for _ in range(3) for m in (nn.Linear(z, w), nn.LeakyReLU(0.2))])
        self.const = nn.Parameter(torch.randn(1, 32, 4, 4))
        self.blocks = nn.ModuleList([StyleBlock(32, 32, w), StyleBlock(32, 16, w), StyleBlock(16, 16, w)])
        self.to_rgb = nn.Conv2d(16, 3, 1)

    def forward(self, z):
        w = self.mapping(z)
        x = self.const.expand(z.size(0), -1, -1, -1)
        for i, block in enumerate(self.blocks):
            if i:
                x = F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
            x = block(x, w)
        return self.to_rgb(x)


class SpatialTransformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.localization = nn.Sequential(nn.Conv2d(1, 8, 7), nn.MaxPool2d(2, stride=2), nn.ReLU(True), nn.Conv2d(8, 10, 5),
                                          nn.MaxPool2d(2, stride=2), nn.ReLU(True))
        self.fc_loc = nn.Sequential(nn.Linear(10 * 3 * 3, 32), nn.ReLU(True), nn.Linear(32, 3 * 2))
        self.conv1, self.conv2, self.drop = nn.Conv2d(1, 10, 5), nn.Conv2d(10, 20, 5), nn.Dropout2d()
        self.fc1, self.fc2 = nn.Linear(320, 50), nn.Linear(50, 10)

    def stn(self, x):
        xs = self.localization(x)
        xs = xs.view(-1, 10 * 3 * 3)
        theta = self.fc_loc(xs)
        theta = theta.view(-1, 2, 3)
        grid = F.affine_grid(theta, x.size(), align_corners=False)
        return F.grid_sample(x, grid, align_corners=False)

    def forward(self, x):
        x = self.stn(x)
        x = F.relu(F.max_pool2d(self.conv1(x), 2))
        x = F.relu(F.max_pool2d(self.drop(self.conv2(x)), 2))
        x = x.view(-1, 320)
        x = F.relu(self.fc1(x))
        x = F.dropout(x, training=self.training)
        return F.log_softmax(self.fc2(x), dim=1)


class TCN(nn.Module):
    def __init__(self, features=8, channels=(16, 16, 16)):
        super().__init__()
        layers, last = [], features
        for i, c in enumerate(channels):
            layers.append(nn.ModuleList([nn.Conv1d(last, c, 3, padding=2 * 2 ** i, dilation=2 ** i),
                                         nn.Conv1d(c, c, 3, padding=2 * 2 ** i, dilation=2 ** i),
                                         nn.Conv1d(last, c, 1) if last != c else nn.Identity()]))
            last = c
        self.layers, self.out = nn.ModuleList(layers), nn.Linear(last, 1)

    def forward(self, x):
        for i, (a, b, shortcut) in enumerate(self.layers):
            chomp = 2 * 2 ** i
            y = F.dropout(F.relu(a(x)[:, :, :-chomp]), 0.2, self.training)
            y = F.dropout(F.relu(b(y)[..., :-chomp]), 0.2, self.training)
            x = F.relu(y + shortcut(x))
        return self.out(x[:, :, -1])


class DQN(nn.Module):
    """Dueling heads; targets of a frozen copy under no_grad."""

    def __init__(self, actions=6):
        super().__init__()

        def body():
            return nn.Sequential(nn.Conv2d(4, 16, 8, 4), nn.ReLU(), nn.Conv2d(16, 32, 4, 2), nn.ReLU(), nn.Flatten(),
                                 nn.Linear(32 * 6 * 6, 64), nn.ReLU())
        self.online, self.target = body(), body()
        self.value, self.advantage = nn.Linear(64, 1), nn.Linear(64, actions)

    def q(self, h):
        a = self.advantage(h)
        return self.value(h) + a - a.mean(1, keepdim=True)

    def forward(self, state, following, action, reward):
        q = self.q(self.online(state)).gather(1, action)
        with torch.no_grad():
            best = self.q(self.target(following)).max(1, keepdim=True).values
        return F.smooth_l1_loss(q, reward + 0.99 * best)


class ContrastivePair(nn.Module):
    """CLIP in small: two towers, one temperature, a loss over all pairs."""

    def __init__(self, vocab=200, dim=32):
        super().__init__()
        self.visual = nn.Sequential(nn.Conv2d(3, 16, 4, 4), nn.GELU(), nn.Conv2d(16, 32, 2, 2), nn.GELU(), nn.AdaptiveAvgPool2d(1),
                                    nn.Flatten(), nn.Linear(32, dim))
        self.token = nn.EmbeddingBag(vocab, 48)
        self.text = nn.Sequential(nn.Linear(48, 64), nn.Tanh(), nn.Linear(64, dim))
        self.logit_scale = nn.Parameter(torch.ones([]) * math.log(1 / 0.07))

    def forward(self, image, text):
        i = self.visual(image)
        t = self.text(self.token(text))
        i = i / i.norm(dim=1, keepdim=True)
        t = t / t.norm(dim=1, keepdim=True)
        logits = self.logit_scale.exp() * i @ t.t()
        labels = torch.arange(logits.shape[0], device=logits.device)
        return (F.cross_entropy(logits, labels) + F.cross_entropy(logits.t(), labels)) / 2


class VQVAE(nn.Module):
    """A straight-through estimator over the nearest code."""

    def __init__(self, codes=64, dim=16):
        super().__init__()
        self.encoder = nn.Sequential(nn.Conv2d(3, 32, 4, 2, 1), nn.ReLU(), nn.Conv2d(32, dim, 4, 2, 1))
        self.codebook = nn.Embedding(codes, dim)
        self.decoder = nn.Sequential(nn.ConvTranspose2d(dim, 32, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(32, 3, 4, 2, 1))

    def forward(self, x):
        z = self.encoder(x)
        flat = z.permute(0, 2, 3, 1).reshape(-1, z.shape[1])
        d = flat.pow(2).sum(1, keepdim=True) - 2 * flat @ self.codebook.weight.t() + self.codebook.weight.pow(2).sum(1)
        q = self.codebook(d.argmin(1)).view(z.shape[0], z.shape[2], z.shape[3], -1).permute(0, 3, 1, 2)
        loss = F.mse_loss(q, z.detach()) + 0.25 * F.mse_loss(z, q.detach())
        q = z + (q - z).detach()
        return loss + F.mse_loss(self.decoder(q), x)


class DeepSets(nn.Module):
    def __init__(self):
        super().__init__()
        self.phi = nn.Sequential(nn.Linear(10, 48), nn.ELU(inplace=True), nn.Linear(48, 48), nn.ELU(inplace=True))
        self.rho = nn.Sequential(nn.Linear(144, 48), nn.ELU(), nn.Linear(48, 4))

    def forward(self, x):
        h = self.phi(x)
        pooled = torch.cat([h.sum(1), h.amax(1), h.std(1)], dim=-1)
        return self.rho(pooled)


class Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, i):
        ctx.save_for_backward(i)
        return i * torch.sigmoid(i)

    @staticmethod
    def backward(ctx, grad_output):
        i = ctx.saved_tensors[0]
        s = torch.sigmoid(i)
        return grad_output * (s * (1 + i * (1 - s)))


class Separable(nn.Module):
    """Depthwise blocks with squeeze and excitation, and an activation with its own backward."""

    def __init__(self, width=24, blocks=3):
        super().__init__()
        self.stem = nn.Conv2d(3, width, 3, 2, 1, bias=False)
        self.blocks = nn.ModuleList(nn.ModuleList([
            nn.Conv2d(width, width * 4, 1, bias=False), nn.BatchNorm2d(width * 4),
            nn.Conv2d(width * 4, width * 4, 3, 1, 1, groups=width * 4, bias=False), nn.BatchNorm2d(width * 4),
            nn.Conv2d(width * 4, width // 4, 1), nn.Conv2d(width // 4, width * 4, 1),
            nn.Conv2d(width * 4, width, 1, bias=False), nn.BatchNorm2d(width)]) for _ in range(blocks))
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        act = Swish.apply
        x = act(self.stem(x))
        for expand, n1, depth, n2, reduce, excite, project, n3 in self.blocks:
            y = act(n1(expand(x)))
            y = act(n2(depth(y)))
            s = F.adaptive_avg_pool2d(y, 1)
            y = torch.sigmoid(excite(act(reduce(s)))) * y
            x = x + n3(project(y))
        return self.head(x.mean((2, 3)))


class MessagePassing(nn.Module):
    """Edges by index, sums at nodes; gated by GRUs, as in networks for molecules."""

    def __init__(self, nodes=20, edges=60, dim=24, rounds=3):
        super().__init__()
        g = torch.Generator().manual_seed(0)
        self.register_buffer("src", torch.randint(0, nodes, (edges,), generator=g))
        self.register_buffer("dst", torch.randint(0, nodes, (edges,), generator=g))
        self.rounds, self.edge = rounds, nn.Sequential(nn.Linear(2 * dim, dim), nn.SiLU())
        self.gru, self.embed, self.readout = nn.GRUCell(dim, dim), nn.Linear(9, dim), nn.Linear(dim, 3)

    def forward(self, x):
        b, n, _ = x.shape
        h = self.embed(x)
        for _ in range(self.rounds):
            m = self.edge(torch.cat([h[:, self.src], h[:, self.dst]], -1))
            agg = torch.zeros_like(h).index_add_(1, self.dst, m)
            h = self.gru(agg.reshape(b * n, -1), h.reshape(b * n, -1)).view(b, n, -1)
        return self.readout(h.mean(1))


NETWORKS = [
    Network("gan", Gan, together(image(32), values(32)), "none"),
    Network("vae", VAE, image(28, 1), "none"),
    Network("seq2seq", Seq2Seq, together(numbers(9), numbers(7))),
    Network("gcn", GCN, together(values(12, 16), values(12, 12))),
    Network("dlrm", DLRM, together(values(13), numbers(4))),
    Network("realnvp", RealNVP, values(32), "none", 16, 24),
    Network("nerf", NeRF, values(6), "mse", 32, 48),
    Network("dit", DiT, together(values(4, 32, 32), values(), numbers()), "mse"),
    Network("unet", UNet, image(48)),
    Network("siamese", Siamese, together(*[image(28, 1)] * 3), "none"),
    Network("moe_transformer", MoETransformer, numbers(16)),
    Network("lstm_tagger", LSTMTagger, numbers(14)),
    Network("char_rnn", CharRNN, numbers(18)),
    Network("wavenet", WaveNet, values(1, 200)),
    Network("checkpointed", Checkpointed, values(16, 32)),
    Network("in_place", InPlace, image(32)),
    Network("self_attention_classifier", SelfAttentionClassifier, numbers(20)),
    Network("encoder_layer_net", EncoderLayerNet, values(48, 7), "mse"),
    Network("full_transformer", FullTransformer, together(numbers(11), numbers(9))),
    Network("pointnet", PointNet, values(3, 128)),
    Network("spectral_critic", SpectralCritic, image(32), "none"),
    Network("style_generator", StyleGenerator, values(32), "mse"),
    Network("spatial_transformer", SpatialTransformer, image(28, 1)),
    Network("tcn", TCN, values(8, 40), "mse"),
    Network("dqn", DQN, together(values(4, 64, 64), values(4, 64, 64), numbers(1), values(1)), "none"),
    Network("contrastive_pair", ContrastivePair, together(image(32), numbers(10)), "none"),
    Network("vqvae", VQVAE, image(32), "none"),
    Network("deep_sets", DeepSets, values(15, 10)),
    Network("separable", Separable, image(48)),
    Network("message_passing", MessagePassing, values(20, 9)),
]
