"""Fresh networks written as people write them: pictures, volumes, sets, generators. Written down before any was run or predicted."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

from .common import Network, image, numbers, together, values


class LeNet5(nn.Module):
    def __init__(self):
        super(LeNet5, self).__init__()
        self.feature_extractor = nn.Sequential(
            nn.Conv2d(1, 6, kernel_size=5), nn.Tanh(), nn.AvgPool2d(kernel_size=2),
            nn.Conv2d(6, 16, kernel_size=5), nn.Tanh(), nn.AvgPool2d(kernel_size=2),
            nn.Conv2d(16, 120, kernel_size=5), nn.Tanh())
        self.classifier = nn.Sequential(nn.Linear(120, 84), nn.Tanh(), nn.Linear(84, 10))

    def forward(self, x):
        x = self.feature_extractor(x)
        x = torch.flatten(x, 1)
        logits = self.classifier(x)
        probs = F.log_softmax(logits, dim=1)
        return probs


class BasicBlock(nn.Module):
    expansion = 1

    def __init__(self, in_planes, planes, stride=1):
        super(BasicBlock, self).__init__()
        self.conv1 = nn.Conv2d(in_planes, planes, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.conv2 = nn.Conv2d(planes, planes, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.shortcut = nn.Sequential()
        if stride != 1 or in_planes != planes:
            self.shortcut = nn.Sequential(nn.Conv2d(in_planes, planes, 1, stride, bias=False), nn.BatchNorm2d(planes))

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += self.shortcut(x)
        out = F.relu(out)
        return out


class CifarResNet(nn.Module):
    def __init__(self, width=16):
        super(CifarResNet, self).__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width)
        self.layer1 = nn.Sequential(BasicBlock(width, width), BasicBlock(width, width))
        self.layer2 = nn.Sequential(BasicBlock(width, width * 2, 2), BasicBlock(width * 2, width * 2))
        self.linear = nn.Linear(width * 2, 10)

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)))
        out = self.layer1(out)
        out = self.layer2(out)
        out = F.avg_pool2d(out, 16)
        out = out.view(out.size(0), -1)
        return self.linear(out)


class ConvAutoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(3, 16, 3, padding=1), nn.Conv2d(16, 4, 3, padding=1)
        self.pool = nn.MaxPool2d(2, 2, return_indices=True)
        self.unpool = nn.MaxUnpool2d(2, 2)
        self.t_conv1, self.t_conv2 = nn.Conv2d(4, 16, 3, padding=1), nn.Conv2d(16, 3, 3, padding=1)

    def forward(self, x):
        x, i1 = self.pool(F.relu(self.conv1(x)))
        x, i2 = self.pool(F.relu(self.conv2(x)))
        x = F.relu(self.t_conv1(self.unpool(x, i2)))
        return torch.sigmoid(self.t_conv2(self.unpool(x, i1)))


class SRNet(nn.Module):
    """Super-resolution with sub-pixels."""

    def __init__(self, upscale=3):
        super().__init__()
        self.relu = nn.ReLU()
        self.conv1 = nn.Conv2d(1, 32, (5, 5), (1, 1), (2, 2))
        self.conv2 = nn.Conv2d(32, 32, 3, 1, 1)
        self.conv3 = nn.Conv2d(32, 16, 3, 1, 1)
        self.conv4 = nn.Conv2d(16, upscale ** 2, 3, 1, 1)
        self.pixel_shuffle = nn.PixelShuffle(upscale)

    def forward(self, x):
        x = self.relu(self.conv1(x))
        x = self.relu(self.conv2(x))
        x = self.relu(self.conv3(x))
        return self.pixel_shuffle(self.conv4(x))


class DenoisingUNet(nn.Module):
    """DDPM in small: group norm, attention in the middle, embeddings of time added."""

    class Res(nn.Module):
        def __init__(self, i, o, t):
            super().__init__()
            self.n1, self.c1 = nn.GroupNorm(4, i), nn.Conv2d(i, o, 3, padding=1)
            self.t = nn.Linear(t, o)
            self.n2, self.c2 = nn.GroupNorm(4, o), nn.Conv2d(o, o, 3, padding=1)
            self.drop = nn.Dropout(0.1)
            self.skip = nn.Conv2d(i, o, 1) if i != o else nn.Identity()

        def forward(self, x, t):
            h = self.c1(F.silu(self.n1(x)))
            h = h + self.t(F.silu(t))[:, :, None, None]
            h = self.c2(self.drop(F.silu(self.n2(h))))
            return h + self.skip(x)

    class Attn(nn.Module):
        def __init__(self, c):
            super().__init__()
            self.norm, self.qkv, self.out = nn.GroupNorm(4, c), nn.Conv1d(c, c * 3, 1), nn.Conv1d(c, c, 1)

        def forward(self, x):
            b, c, h, w = x.shape
            q, k, v = self.qkv(self.norm(x).view(b, c, -1)).chunk(3, dim=1)
            w_ = torch.einsum("bcn,bcm->bnm", q, k) * c ** -0.5
            w_ = w_.softmax(dim=-1)
            return x + self.out(torch.einsum("bnm,bcm->bcn", w_, v)).view(b, c, h, w)

    def __init__(self, ch=16):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(ch, ch * 4), nn.SiLU(), nn.Linear(ch * 4, ch * 4))
        self.ch = ch
        self.inp = nn.Conv2d(3, ch, 3, padding=1)
        self.d1, self.down = self.Res(ch, ch, ch * 4), nn.Conv2d(ch, ch, 3, 2, 1)
        self.d2, self.mid = self.Res(ch, ch * 2, ch * 4), self.Attn(ch * 2)
        self.u2, self.u1 = self.Res(ch * 2 + ch, ch, ch * 4), self.Res(ch * 2, ch, ch * 4)
        self.out = nn.Sequential(nn.GroupNorm(4, ch), nn.SiLU(), nn.Conv2d(ch, 3, 3, padding=1))

    def forward(self, x, t):
        half = self.ch // 2
        emb = math.log(10000) / (half - 1)
        emb = torch.exp(torch.arange(half, device=x.device) * -emb)
        emb = t.float()[:, None] * emb[None, :]
        emb = self.time(torch.cat((emb.sin(), emb.cos()), dim=-1))
        hs = [self.inp(x)]
        hs.append(self.d1(hs[-1], emb))
        hs.append(self.down(hs[-1]))
        h = self.mid(self.d2(hs[-1], emb))
        h = self.u2(torch.cat([h, hs.pop()], dim=1), emb)
        h = F.interpolate(h, scale_factor=2, mode="nearest")
        h = self.u1(torch.cat([h, hs.pop()], dim=1), emb)
        return self.out(h)


class CycleStep(nn.Module):
    """Two generators, cycles and identities."""

    def __init__(self, c=12):
        super().__init__()

        def gen():
            return nn.Sequential(
                nn.ReflectionPad2d(3), nn.Conv2d(3, c, 7), nn.InstanceNorm2d(c), nn.ReLU(inplace=True),
                nn.Conv2d(c, c * 2, 3, 2, 1), nn.InstanceNorm2d(c * 2), nn.ReLU(inplace=True),
                nn.ConvTranspose2d(c * 2, c, 3, 2, 1, output_padding=1), nn.InstanceNorm2d(c), nn.ReLU(inplace=True),
                nn.ReflectionPad2d(3), nn.Conv2d(c, 3, 7), nn.Tanh())
        self.G_AB, self.G_BA = gen(), gen()

    def forward(self, real_A, real_B):
        fake_B = self.G_AB(real_A)
        fake_A = self.G_BA(real_B)
        loss_id = F.l1_loss(self.G_BA(real_A), real_A) + F.l1_loss(self.G_AB(real_B), real_B)
        loss_cycle = F.l1_loss(self.G_BA(fake_B), real_A) + F.l1_loss(self.G_AB(fake_A), real_B)
        return 10.0 * loss_cycle + 5.0 * loss_id


class WganCritic(nn.Module):
    """Critic and generator with layer norms and weight clipping left to the loop."""

    def __init__(self):
        super().__init__()
        self.g = nn.Sequential(nn.Linear(16, 64), nn.LayerNorm(64), nn.LeakyReLU(0.2, True), nn.Linear(64, 256), nn.LayerNorm(256),
                               nn.LeakyReLU(0.2, True), nn.Linear(256, 784), nn.Tanh())
        self.d = nn.Sequential(nn.Linear(784, 256), nn.LeakyReLU(0.2, True), nn.Linear(256, 64), nn.LeakyReLU(0.2, True), nn.Linear(64, 1))

    def forward(self, imgs, z):
        gen = self.g(z)
        return -torch.mean(self.d(imgs.flatten(1))) + torch.mean(self.d(gen))


class Pix2PixDown(nn.Module):
    """A nested U-Net built from the inside."""

    class Block(nn.Module):
        def __init__(self, outer, inner, sub=None, outermost=False):
            super().__init__()
            self.outermost = outermost
            down = [nn.Conv2d(outer if not outermost else 3, inner, 4, 2, 1)]
            up_in = inner * 2 if sub is not None else inner
            up = [nn.ReLU(True), nn.ConvTranspose2d(up_in, outer if not outermost else 3, 4, 2, 1)]
            if not outermost:
                down.insert(0, nn.LeakyReLU(0.2, True))
                up.append(nn.BatchNorm2d(outer))
            else:
                up.append(nn.Tanh())
            self.model = nn.Sequential(*down, *([sub] if sub is not None else []), *up)

        def forward(self, x):
            if self.outermost:
                return self.model(x)
            return torch.cat([x, self.model(x)], 1)

    def __init__(self):
        super().__init__()
        block = self.Block(32, 48)
        block = self.Block(16, 32, block)
        self.model = self.Block(3, 16, block, outermost=True)

    def forward(self, x):
        return self.model(x)


class SENet(nn.Module):
    class SELayer(nn.Module):
        def __init__(self, channel, reduction=8):
            super().__init__()
            self.avg_pool = nn.AdaptiveAvgPool2d(1)
            self.fc = nn.Sequential(nn.Linear(channel, channel // reduction, bias=False), nn.ReLU(inplace=True),
                                    nn.Linear(channel // reduction, channel, bias=False), nn.Sigmoid())

        def forward(self, x):
            b, c, _, _ = x.size()
            y = self.avg_pool(x).view(b, c)
            y = self.fc(y).view(b, c, 1, 1)
            return x * y.expand_as(x)

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 32, 3, 2, 1), nn.BatchNorm2d(32), nn.ReLU6(inplace=True))
        self.stages = nn.ModuleList(nn.Sequential(nn.Conv2d(32, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(inplace=True),
                                                  self.SELayer(32)) for _ in range(3))
        self.fc = nn.Linear(32, 12)

    def forward(self, x):
        x = self.stem(x)
        for stage in self.stages:
            x = x + stage(x)
        return self.fc(F.adaptive_max_pool2d(x, 1).squeeze(-1).squeeze(-1))


class CBAM(nn.Module):
    def __init__(self, c=24):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(3, c, 3, 2, 1), nn.Conv2d(c, c, 3, 1, 1)
        self.mlp = nn.Sequential(nn.Conv2d(c, c // 4, 1), nn.ReLU(), nn.Conv2d(c // 4, c, 1))
        self.spatial = nn.Conv2d(2, 1, 7, padding=3, bias=False)
        self.head = nn.Linear(c, 8)

    def forward(self, x):
        x = F.relu(self.conv2(F.relu(self.conv1(x))))
        ca = torch.sigmoid(self.mlp(F.adaptive_avg_pool2d(x, 1)) + self.mlp(F.adaptive_max_pool2d(x, 1)))
        x = ca * x
        avg_out = torch.mean(x, dim=1, keepdim=True)
        max_out, _ = torch.max(x, dim=1, keepdim=True)
        x = torch.sigmoid(self.spatial(torch.cat([avg_out, max_out], dim=1))) * x
        return self.head(x.mean(dim=(-2, -1)))


class YoloHead(nn.Module):
    """Three scales, each with its own grid."""

    def __init__(self, na=3, nc=4):
        super().__init__()

        def cbl(i, o, k, s):
            return nn.Sequential(nn.Conv2d(i, o, k, s, k // 2, bias=False), nn.BatchNorm2d(o), nn.SiLU())
        self.s1, self.s2, self.s3 = cbl(3, 16, 3, 2), cbl(16, 32, 3, 2), cbl(32, 64, 3, 2)
        self.lat, self.fuse = cbl(64, 32, 1, 1), cbl(64, 32, 3, 1)
        self.p2, self.p3 = nn.Conv2d(32, na * (5 + nc), 1), nn.Conv2d(64, na * (5 + nc), 1)
        self.na, self.no = na, 5 + nc
        self.register_buffer("anchors", torch.tensor([[[10., 13], [16, 30], [33, 23]], [[30., 61], [62, 45], [59, 119]]]))

    def decode(self, x, i):
        bs, _, ny, nx = x.shape
        x = x.view(bs, self.na, self.no, ny, nx).permute(0, 1, 3, 4, 2).contiguous()
        yv, xv = torch.meshgrid(torch.arange(ny, device=x.device), torch.arange(nx, device=x.device), indexing="ij")
        grid = torch.stack((xv, yv), 2).view(1, 1, ny, nx, 2).float()
        y = x.sigmoid()
        xy = (y[..., 0:2] * 2. - 0.5 + grid) * 8 * (i + 1)
        wh = (y[..., 2:4] * 2) ** 2 * self.anchors[i].view(1, self.na, 1, 1, 2)
        return torch.cat((xy, wh, y[..., 4:]), -1).view(bs, -1, self.no)

    def forward(self, x):
        c2 = self.s2(self.s1(x))
        c3 = self.s3(c2)
        up = F.interpolate(self.lat(c3), size=c2.shape[-2:], mode="nearest")
        p2 = self.fuse(torch.cat([up, c2], 1))
        return torch.cat([self.decode(self.p2(p2), 0), self.decode(self.p3(c3), 1)], 1)


class FPN(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1, self.c2, self.c3 = nn.Conv2d(3, 16, 3, 2, 1), nn.Conv2d(16, 32, 3, 2, 1), nn.Conv2d(32, 64, 3, 2, 1)
        self.laterals = nn.ModuleList(nn.Conv2d(c, 24, 1) for c in (16, 32, 64))
        self.smooth = nn.ModuleList(nn.Conv2d(24, 24, 3, padding=1) for _ in range(3))
        self.cls = nn.Conv2d(24, 6, 3, padding=1)

    def forward(self, x):
        c1 = F.relu(self.c1(x))
        c2 = F.relu(self.c2(c1))
        c3 = F.relu(self.c3(c2))
        feats = [l(c) for l, c in zip(self.laterals, (c1, c2, c3))]
        for i in (1, 0):
            feats[i] = feats[i] + F.interpolate(feats[i + 1], size=feats[i].shape[2:], mode="bilinear", align_corners=False)
        feats = [s(f) for s, f in zip(self.smooth, feats)]
        outs = [self.cls(f).flatten(2) for f in feats]
        return torch.cat(outs, dim=2).transpose(1, 2)


class ASPP(nn.Module):
    def __init__(self, c=16, classes=7):
        super().__init__()
        self.back = nn.Sequential(nn.Conv2d(3, c, 3, 2, 1), nn.BatchNorm2d(c), nn.ReLU(), nn.Conv2d(c, c * 2, 3, 2, 1), nn.BatchNorm2d(c * 2), nn.ReLU())
        self.branches = nn.ModuleList([nn.Sequential(nn.Conv2d(c * 2, c, 3, padding=d, dilation=d, bias=False), nn.BatchNorm2d(c), nn.ReLU()) for d in (1, 2, 4)])
        self.pool = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(c * 2, c, 1, bias=False), nn.ReLU())
        self.project = nn.Sequential(nn.Conv2d(c * 4, c, 1), nn.BatchNorm2d(c), nn.ReLU(), nn.Dropout(0.5), nn.Conv2d(c, classes, 1))

    def forward(self, x):
        size = x.shape[-2:]
        x = self.back(x)
        res = [b(x) for b in self.branches]
        res.append(F.interpolate(self.pool(x), size=x.shape[-2:], mode="bilinear", align_corners=False))
        return F.interpolate(self.project(torch.cat(res, dim=1)), size=size, mode="bilinear", align_corners=False)


class UNet3D(nn.Module):
    def __init__(self, c=8):
        super().__init__()

        def block(i, o):
            return nn.Sequential(nn.Conv3d(i, o, 3, padding=1), nn.InstanceNorm3d(o), nn.LeakyReLU(0.01, inplace=True),
                                 nn.Conv3d(o, o, 3, padding=1), nn.InstanceNorm3d(o), nn.LeakyReLU(0.01, inplace=True))
        self.e1, self.e2, self.d1 = block(1, c), block(c, c * 2), block(c * 2, c)
        self.up, self.out = nn.ConvTranspose3d(c * 2, c, 2, 2), nn.Conv3d(c, 3, 1)

    def forward(self, x):
        skip = self.e1(x)
        x = self.e2(F.max_pool3d(skip, 2))
        x = self.d1(torch.cat((self.up(x), skip), 1))
        return self.out(x)


class TwoStream(nn.Module):
    """Frames by one network, over time by an LSTM."""

    def __init__(self):
        super().__init__()
        self.cnn = nn.Sequential(nn.Conv2d(3, 8, 5, 2), nn.ReLU(inplace=True), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3), nn.ReLU(inplace=True),
                                 nn.AdaptiveAvgPool2d((2, 2)))
        self.rnn = nn.LSTM(64, 32, batch_first=True)
        self.fc = nn.Linear(32, 6)

    def forward(self, x):
        b, t, c, h, w = x.size()
        y = self.cnn(x.reshape(b * t, c, h, w))
        y = y.view(b, t, -1)
        out, (hn, cn) = self.rnn(y)
        return self.fc(hn[-1])


class ConvLSTMNet(nn.Module):
    def __init__(self, hid=12):
        super().__init__()
        self.hid = hid
        self.conv = nn.Conv2d(1 + hid, 4 * hid, 3, padding=1)
        self.out = nn.Conv2d(hid, 1, 1)

    def forward(self, seq):
        b, t, _, h, w = seq.shape
        hx = torch.zeros(b, self.hid, h, w, device=seq.device)
        cx = torch.zeros(b, self.hid, h, w, device=seq.device)
        outs = []
        for i in range(t):
            gates = self.conv(torch.cat([seq[:, i], hx], dim=1))
            ci, cf, co, cg = torch.split(gates, self.hid, dim=1)
            cx = torch.sigmoid(cf) * cx + torch.sigmoid(ci) * torch.tanh(cg)
            hx = torch.sigmoid(co) * torch.tanh(cx)
            outs.append(self.out(hx))
        return torch.stack(outs, 1)


class NeuralStyle(nn.Module):
    """Content and style against fixed features under no_grad."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(3, 16, 9, padding=4), nn.InstanceNorm2d(16, affine=True), nn.ReLU(), nn.Conv2d(16, 3, 9, padding=4))
        self.features = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, 2, 1), nn.ReLU())
        for p in self.features.parameters():
            p.requires_grad_(False)

    @staticmethod
    def gram(y):
        b, ch, h, w = y.size()
        f = y.view(b, ch, w * h)
        return f.bmm(f.transpose(1, 2)) / (ch * h * w)

    def forward(self, x, style):
        y = self.net(x)
        with torch.no_grad():
            fx, fs = self.features(x), self.gram(self.features(style))
        fy = self.features(y)
        return F.mse_loss(fy, fx) + 1e5 * F.mse_loss(self.gram(fy), fs)


class SimCLR(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.backbone = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU(inplace=True),
                                      nn.Conv2d(16, 32, 3, 2, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU(inplace=True))
        self.projector = nn.Sequential(nn.Linear(32, 64, bias=False), nn.BatchNorm1d(64), nn.ReLU(inplace=True), nn.Linear(64, dim))

    def forward(self, x1, x2):
        x = torch.cat([x1, x2], dim=0)
        z = self.projector(self.backbone(x).mean([2, 3]))
        z = F.normalize(z, dim=1)
        sim = z @ z.T / 0.5
        n = z.shape[0]
        mask = torch.eye(n, dtype=torch.bool, device=z.device)
        sim = sim.masked_fill(mask, float("-inf"))
        target = torch.arange(n, device=z.device).roll(n // 2)
        return F.cross_entropy(sim, target)


class BYOL(nn.Module):
    """Online and target networks; the target without gradient."""

    def __init__(self):
        super().__init__()

        def enc():
            return nn.Sequential(nn.Flatten(), nn.Linear(3 * 24 * 24, 64), nn.BatchNorm1d(64), nn.ReLU(inplace=True), nn.Linear(64, 32))
        self.online, self.target = enc(), enc()
        self.predictor = nn.Sequential(nn.Linear(32, 64), nn.BatchNorm1d(64), nn.ReLU(inplace=True), nn.Linear(64, 32))
        self.target.requires_grad_(False)

    def loss_fn(self, x, y):
        x = F.normalize(x, dim=-1, p=2)
        y = F.normalize(y, dim=-1, p=2)
        return 2 - 2 * (x * y).sum(dim=-1)

    def forward(self, a, b):
        pa, pb = self.predictor(self.online(a)), self.predictor(self.online(b))
        with torch.no_grad():
            ta, tb = self.target(a), self.target(b)
        return (self.loss_fn(pa, tb.detach()) + self.loss_fn(pb, ta.detach())).mean()


class MaskedAutoencoder(nn.Module):
    """Patches that stay are gathered by a random order."""

    def __init__(self, dim=48, n=16):
        super().__init__()
        self.embed, self.pos = nn.Linear(48, dim), nn.Parameter(torch.zeros(1, n, dim))
        self.enc = nn.TransformerEncoder(nn.TransformerEncoderLayer(dim, 4, dim * 2, batch_first=True, norm_first=True), 2)
        self.mask_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.dec = nn.TransformerEncoderLayer(dim, 4, dim * 2, batch_first=True, norm_first=True)
        self.pred = nn.Linear(dim, 48)

    def forward(self, imgs):
        B = imgs.shape[0]
        p = imgs.reshape(B, 3, 4, 4, 4, 4).permute(0, 2, 4, 3, 5, 1).reshape(B, 16, 48)
        x = self.embed(p) + self.pos
        N, L, D = x.shape
        keep = L // 4
        ids = torch.argsort(torch.rand(N, L, device=x.device), dim=1)
        restore = torch.argsort(ids, dim=1)
        kept = torch.gather(x, 1, ids[:, :keep].unsqueeze(-1).repeat(1, 1, D))
        kept = self.enc(kept)
        full = torch.cat([kept, self.mask_token.repeat(N, L - keep, 1)], dim=1)
        full = torch.gather(full, 1, restore.unsqueeze(-1).repeat(1, 1, D)) + self.pos
        out = self.pred(self.dec(full))
        return ((out - p) ** 2).mean(dim=-1).mean()


class CapsuleNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 32, 9)
        self.primary = nn.Conv2d(32, 32, 9, 2)
        self.W = nn.Parameter(0.01 * torch.randn(1, 288, 10, 8, 4))

    @staticmethod
    def squash(s):
        n = s.norm(dim=-1, keepdim=True)
        return (n ** 2 / (1 + n ** 2)) * (s / (n + 1e-8))

    def forward(self, x):
        u = self.primary(F.relu(self.conv(x)))
        u = self.squash(u.view(u.size(0), -1, 4))
        u_hat = (self.W @ u[:, :, None, :, None]).squeeze(-1)
        b = torch.zeros(*u_hat.size()[:3], 1, device=x.device)
        for r in range(3):
            c = F.softmax(b, dim=2)
            v = self.squash((c * u_hat).sum(dim=1, keepdim=True))
            if r < 2:
                b = b + (u_hat * v).sum(-1, keepdim=True)
        return v.squeeze(1).norm(dim=-1)


class DeformBlock(nn.Module):
    """Offsets predicted, bilinear samples taken by grid_sample."""

    def __init__(self, c=12):
        super().__init__()
        self.stem, self.offset, self.conv = nn.Conv2d(3, c, 3, padding=1), nn.Conv2d(c, 2, 3, padding=1), nn.Conv2d(c, c, 3, padding=1)
        self.fc = nn.Linear(c, 5)

    def forward(self, x):
        x = F.gelu(self.stem(x))
        n, _, h, w = x.shape
        off = torch.tanh(self.offset(x)).permute(0, 2, 3, 1)
        ys, xs = torch.linspace(-1, 1, h, device=x.device), torch.linspace(-1, 1, w, device=x.device)
        gy, gx = torch.meshgrid(ys, xs, indexing="ij")
        grid = torch.stack([gx, gy], -1).expand(n, -1, -1, -1) + 0.1 * off
        x = F.grid_sample(x, grid, padding_mode="border", align_corners=True)
        return self.fc(F.relu(self.conv(x)).mean((2, 3)))


class DepthSmooth(nn.Module):
    """Depth with an edge-aware smoothness loss."""

    def __init__(self):
        super().__init__()
        self.down, self.mid = nn.Conv2d(3, 16, 3, 2, 1), nn.Conv2d(16, 16, 3, 1, 1)
        self.up = nn.Upsample(scale_factor=2, mode="nearest")
        self.disp = nn.Conv2d(16, 1, 3, 1, 1)

    def forward(self, img):
        x = F.elu(self.down(img), inplace=True)
        x = F.elu(self.mid(x), inplace=True)
        disp = torch.sigmoid(self.disp(self.up(x)))
        disp = disp / (disp.mean(2, True).mean(3, True) + 1e-7)
        gx = torch.abs(disp[:, :, :, :-1] - disp[:, :, :, 1:])
        gy = torch.abs(disp[:, :, :-1, :] - disp[:, :, 1:, :])
        ix = torch.mean(torch.abs(img[:, :, :, :-1] - img[:, :, :, 1:]), 1, keepdim=True)
        iy = torch.mean(torch.abs(img[:, :, :-1, :] - img[:, :, 1:, :]), 1, keepdim=True)
        return (gx * torch.exp(-ix)).mean() + (gy * torch.exp(-iy)).mean()


class DiceSeg(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(1, 12, 3, padding=1), nn.Mish(inplace=True), nn.Conv2d(12, 12, 3, padding=1), nn.Mish(inplace=True),
                                 nn.Conv2d(12, 1, 1))

    def forward(self, x, y):
        p = torch.sigmoid(self.net(x))
        p, y = p.view(p.size(0), -1), y.view(y.size(0), -1)
        inter = (p * y).sum(1)
        dice = 1 - (2. * inter + 1) / (p.sum(1) + y.sum(1) + 1)
        return dice.mean() + F.binary_cross_entropy(p, y)


class PointNet2(nn.Module):
    """Neighbours by distances, groups by gather."""

    def __init__(self, k=8):
        super().__init__()
        self.k = k
        self.mlp = nn.Sequential(nn.Conv2d(6, 24, 1, bias=False), nn.BatchNorm2d(24), nn.LeakyReLU(0.2), nn.Conv2d(24, 48, 1))
        self.head = nn.Linear(48, 8)

    def forward(self, x):
        B, N, C = x.shape
        d = torch.cdist(x, x)
        idx = d.topk(self.k, dim=-1, largest=False)[1]
        base = torch.arange(B, device=x.device).view(-1, 1, 1) * N
        flat = (idx + base).view(-1)
        neighbours = x.reshape(B * N, C)[flat].view(B, N, self.k, C)
        centre = x.unsqueeze(2).expand(-1, -1, self.k, -1)
        f = torch.cat((neighbours - centre, centre), dim=3).permute(0, 3, 1, 2).contiguous()
        f = self.mlp(f).max(dim=-1)[0]
        return self.head(f.max(dim=-1)[0])


class ViTScratch(nn.Module):
    """A vision transformer from a tutorial."""

    class PreNorm(nn.Module):
        def __init__(self, dim, fn):
            super().__init__()
            self.norm, self.fn = nn.LayerNorm(dim), fn

        def forward(self, x, **kwargs):
            return self.fn(self.norm(x), **kwargs)

    class Attention(nn.Module):
        def __init__(self, dim, heads=4, dim_head=16, dropout=0.1):
            super().__init__()
            inner = dim_head * heads
            self.heads, self.scale = heads, dim_head ** -0.5
            self.attend, self.dropout = nn.Softmax(dim=-1), nn.Dropout(dropout)
            self.to_qkv = nn.Linear(dim, inner * 3, bias=False)
            self.to_out = nn.Sequential(nn.Linear(inner, dim), nn.Dropout(dropout))

        def forward(self, x):
            qkv = self.to_qkv(x).chunk(3, dim=-1)
            q, k, v = map(lambda t: t.view(t.shape[0], t.shape[1], self.heads, -1).transpose(1, 2), qkv)
            dots = torch.matmul(q, k.transpose(-1, -2)) * self.scale
            attn = self.dropout(self.attend(dots))
            out = torch.matmul(attn, v).transpose(1, 2)
            return self.to_out(out.reshape(out.shape[0], out.shape[1], -1))

    def __init__(self, dim=48, depth=2):
        super().__init__()
        self.patch = nn.Sequential(nn.Unfold(8, stride=8))
        self.lin = nn.Linear(192, dim)
        self.cls_token, self.pos = nn.Parameter(torch.randn(1, 1, dim)), nn.Parameter(torch.randn(1, 17, dim))
        self.layers = nn.ModuleList(nn.ModuleList([
            self.PreNorm(dim, self.Attention(dim)),
            self.PreNorm(dim, nn.Sequential(nn.Linear(dim, 96), nn.GELU(), nn.Dropout(0.1), nn.Linear(96, dim), nn.Dropout(0.1)))])
            for _ in range(depth))
        self.mlp_head = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 10))

    def forward(self, img):
        x = self.lin(self.patch(img).transpose(1, 2))
        b, n, _ = x.shape
        x = torch.cat((self.cls_token.repeat(b, 1, 1), x), dim=1)
        x += self.pos[:, :(n + 1)]
        for attn, ff in self.layers:
            x = attn(x) + x
            x = ff(x) + x
        return self.mlp_head(x[:, 0])


class GlowStep(nn.Module):
    """Activation norm, an invertible 1x1 convolution, affine coupling."""

    def __init__(self, c=12, steps=3):
        super().__init__()
        self.loc = nn.ParameterList(nn.Parameter(torch.zeros(1, c, 1, 1)) for _ in range(steps))
        self.scale = nn.ParameterList(nn.Parameter(torch.ones(1, c, 1, 1)) for _ in range(steps))
        self.weights = nn.ParameterList(nn.Parameter(torch.linalg.qr(torch.randn(c, c))[0]) for _ in range(steps))
        self.nets = nn.ModuleList(nn.Sequential(nn.Conv2d(c // 2, 24, 3, padding=1), nn.ReLU(inplace=True), nn.Conv2d(24, 24, 1),
                                                nn.ReLU(inplace=True), nn.Conv2d(24, c, 3, padding=1)) for _ in range(steps))

    def forward(self, x):
        b, c, h, w = x.shape
        x = x.view(b, c, h // 2, 2, w // 2, 2).permute(0, 1, 3, 5, 2, 4).contiguous().view(b, c * 4, h // 2, w // 2)
        logdet = 0
        for loc, scale, weight, net in zip(self.loc, self.scale, self.weights, self.nets):
            x = scale * (x + loc)
            logdet = logdet + x.shape[2] * x.shape[3] * torch.sum(torch.log(torch.abs(scale)))
            x = F.conv2d(x, weight[:, :, None, None])
            a, bb = x.chunk(2, 1)
            log_s, t = net(a).chunk(2, 1)
            s = torch.sigmoid(log_s + 2)
            x = torch.cat([a, (bb + t) * s], 1)
            logdet = logdet + torch.sum(torch.log(s).view(b, -1), 1)
        return (0.5 * x.pow(2).sum((1, 2, 3)) - logdet).mean()


NETWORKS = [
    Network("lenet5", LeNet5, image(32, 1)),
    Network("cifar_resnet", CifarResNet, image(32)),
    Network("conv_autoencoder", ConvAutoencoder, image(32), "mse"),
    Network("sr_net", SRNet, image(24, 1), "mse"),
    Network("denoising_unet", DenoisingUNet, together(image(32), numbers()), "mse"),
    Network("cycle_step", CycleStep, together(image(32), image(32)), "none"),
    Network("wgan_critic", WganCritic, together(image(28, 1), values(16)), "none"),
    Network("pix2pix_down", Pix2PixDown, image(32), "mse"),
    Network("se_net", SENet, image(40)),
    Network("cbam", CBAM, image(40)),
    Network("yolo_head", YoloHead, image(64), "mse"),
    Network("fpn", FPN, image(64)),
    Network("aspp", ASPP, image(64)),
    Network("unet3d", UNet3D, values(1, 16, 16, 16)),
    Network("two_stream", TwoStream, values(5, 3, 32, 32)),
    Network("conv_lstm", ConvLSTMNet, values(4, 1, 16, 16), "mse"),
    Network("neural_style", NeuralStyle, together(image(32), image(32)), "none"),
    Network("simclr", SimCLR, together(image(32), image(32)), "none"),
    Network("byol", BYOL, together(image(24), image(24)), "none"),
    Network("masked_autoencoder", MaskedAutoencoder, image(16), "none"),
    Network("capsule_net", CapsuleNet, image(28, 1)),
    Network("deform_block", DeformBlock, image(24)),
    Network("depth_smooth", DepthSmooth, image(32), "none"),
    Network("dice_seg", DiceSeg, together(image(32, 1), image(32, 1)), "none"),
    Network("point_net2", PointNet2, values(64, 3)),
    Network("vit_scratch", ViTScratch, image(32)),
    Network("glow_step", GlowStep, image(16), "none"),
]
