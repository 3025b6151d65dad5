"""Fresh networks as people write them in their projects, the second set: pictures, detection, diffusion, contrast, generation."""
import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

from .common import Network, image, numbers, together, values


def conv_bn(i, o, k=3, s=1, act=True):
    layers = [nn.Conv2d(i, o, k, s, k // 2, bias=False), nn.BatchNorm2d(o)]
    return nn.Sequential(*layers, nn.SiLU(inplace=True)) if act else nn.Sequential(*layers)


class DictUNet(nn.Module):
    """Skips by name."""

    def __init__(self, ch=(16, 32, 64), classes=4):
        super().__init__()
        self.downs, self.ups = nn.ModuleDict(), nn.ModuleDict()
        last = 3
        for i, c in enumerate(ch):
            self.downs[f"d{i}"] = nn.Sequential(conv_bn(last, c), conv_bn(c, c))
            last = c
        for i in reversed(range(len(ch) - 1)):
            self.ups[f"u{i}"] = nn.Sequential(conv_bn(ch[i + 1] + ch[i], ch[i]), conv_bn(ch[i], ch[i]))
        self.pool, self.head = nn.MaxPool2d(2), nn.Conv2d(ch[0], classes, 1)

    def forward(self, x):
        skips = {}
        for i, (name, down) in enumerate(self.downs.items()):
            if i:
                x = self.pool(x)
            x = down(x)
            skips[name] = x
        for name, up in self.ups.items():
            x = F.interpolate(x, scale_factor=2, mode="nearest")
            x = up(torch.cat([x, skips["d" + name[1:]]], dim=1))
        return self.head(x)


class AttentionGate(nn.Module):
    def __init__(self, F_g, F_l, F_int):
        super(AttentionGate, self).__init__()
        self.W_g = nn.Sequential(nn.Conv2d(F_g, F_int, 1), nn.BatchNorm2d(F_int))
        self.W_x = nn.Sequential(nn.Conv2d(F_l, F_int, 1), nn.BatchNorm2d(F_int))
        self.psi = nn.Sequential(nn.Conv2d(F_int, 1, 1), nn.BatchNorm2d(1), nn.Sigmoid())
        self.relu = nn.ReLU(inplace=True)

    def forward(self, g, x):
        g1 = self.W_g(g)
        x1 = self.W_x(x)
        psi = self.relu(g1 + x1)
        psi = self.psi(psi)
        return x * psi


class AttUNet(nn.Module):
    def __init__(self, out=1):
        super(AttUNet, self).__init__()
        def block(i, o):
            return nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU(inplace=True),
                                 nn.Conv2d(o, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU(inplace=True))
        self.Maxpool = nn.MaxPool2d(kernel_size=2, stride=2)
        self.Conv1, self.Conv2, self.Conv3 = block(3, 16), block(16, 32), block(32, 64)
        self.Up3, self.Att3, self.Up_conv3 = nn.ConvTranspose2d(64, 32, 2, 2), AttentionGate(32, 32, 16), block(64, 32)
        self.Up2, self.Att2, self.Up_conv2 = nn.ConvTranspose2d(32, 16, 2, 2), AttentionGate(16, 16, 8), block(32, 16)
        self.Conv_1x1 = nn.Conv2d(16, out, kernel_size=1)

    def forward(self, x):
        x1 = self.Conv1(x)
        x2 = self.Maxpool(x1)
        x2 = self.Conv2(x2)
        x3 = self.Maxpool(x2)
        x3 = self.Conv3(x3)
        d3 = self.Up3(x3)
        x2 = self.Att3(g=d3, x=x2)
        d3 = torch.cat((x2, d3), dim=1)
        d3 = self.Up_conv3(d3)
        d2 = self.Up2(d3)
        x1 = self.Att2(g=d2, x=x1)
        d2 = torch.cat((x1, d2), dim=1)
        d2 = self.Up_conv2(d2)
        return self.Conv_1x1(d2)


class AcGan(nn.Module):
    """One discriminator for real and made pictures, with a second head for the class."""

    def __init__(self, nz=24, classes=5):
        super().__init__()
        self.label_emb = nn.Embedding(classes, nz)
        self.l1 = nn.Linear(nz, 64 * 8 * 8)
        self.conv_blocks = nn.Sequential(
            nn.BatchNorm2d(64), nn.Upsample(scale_factor=2), nn.Conv2d(64, 64, 3, 1, 1), nn.BatchNorm2d(64, 0.8),
            nn.LeakyReLU(0.2, inplace=True), nn.Upsample(scale_factor=2), nn.Conv2d(64, 32, 3, 1, 1), nn.BatchNorm2d(32, 0.8),
            nn.LeakyReLU(0.2, inplace=True), nn.Conv2d(32, 3, 3, 1, 1), nn.Tanh())
        def block(i, o, bn=True):
            b = [nn.Conv2d(i, o, 3, 2, 1), nn.LeakyReLU(0.2, inplace=True), nn.Dropout2d(0.25)]
            if bn:
                b.append(nn.BatchNorm2d(o, 0.8))
            return b
        self.disc = nn.Sequential(*block(3, 16, bn=False), *block(16, 32), *block(32, 64))
        self.adv_layer = nn.Sequential(nn.Linear(64 * 16, 1), nn.Sigmoid())
        self.aux_layer = nn.Linear(64 * 16, classes)

    def judge(self, img):
        out = self.disc(img)
        out = out.view(out.shape[0], -1)
        return self.adv_layer(out), self.aux_layer(out)

    def forward(self, imgs, z, labels):
        gen = self.conv_blocks(self.l1(torch.mul(self.label_emb(labels), z)).view(-1, 64, 8, 8))
        valid, fake = torch.ones(imgs.size(0), 1, device=imgs.device), torch.zeros(imgs.size(0), 1, device=imgs.device)
        validity, pred_label = self.judge(gen)
        g_loss = 0.5 * (F.binary_cross_entropy(validity, valid) + F.cross_entropy(pred_label, labels))
        real_pred, real_aux = self.judge(imgs)
        fake_pred, fake_aux = self.judge(gen.detach())
        d_real = (F.binary_cross_entropy(real_pred, valid) + F.cross_entropy(real_aux, labels)) / 2
        d_fake = (F.binary_cross_entropy(fake_pred, fake) + F.cross_entropy(fake_aux, labels)) / 2
        return g_loss + (d_real + d_fake) / 2


class HingeGan(nn.Module):
    """Spectral norms, a hinge loss, residual blocks, and an average of the generator that makes the samples."""

    class Up(nn.Module):
        def __init__(self, i, o):
            super().__init__()
            self.b1, self.c1, self.b2, self.c2 = nn.BatchNorm2d(i), nn.Conv2d(i, o, 3, 1, 1), nn.BatchNorm2d(o), nn.Conv2d(o, o, 3, 1, 1)
            self.skip = nn.Conv2d(i, o, 1)

        def forward(self, x):
            h = F.interpolate(F.relu(self.b1(x)), scale_factor=2)
            h = self.c2(F.relu(self.b2(self.c1(h))))
            return h + self.skip(F.interpolate(x, scale_factor=2))

    def __init__(self):
        super().__init__()
        sn = nn.utils.spectral_norm
        self.fc = nn.Linear(32, 32 * 16)
        self.g = nn.Sequential(self.Up(32, 32), self.Up(32, 16), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 3, 3, 1, 1), nn.Tanh())
        self.d = nn.Sequential(sn(nn.Conv2d(3, 16, 3, 1, 1)), nn.ReLU(), nn.AvgPool2d(2), sn(nn.Conv2d(16, 32, 3, 1, 1)), nn.ReLU(),
                               nn.AvgPool2d(2), sn(nn.Conv2d(32, 32, 3, 1, 1)), nn.ReLU())
        self.out = sn(nn.Linear(32, 1))
        self.ema = copy.deepcopy(self.g).requires_grad_(False)

    def critic(self, x):
        return self.out(self.d(x).sum(dim=(2, 3)))

    def forward(self, real, z):
        h = self.fc(z).view(-1, 32, 4, 4)
        fake = self.g(h)
        with torch.no_grad():
            sample = self.ema(h)
        loss_d = F.relu(1.0 - self.critic(real)).mean() + F.relu(1.0 + self.critic(fake.detach())).mean()
        loss_g = -self.critic(fake).mean()
        return loss_d + loss_g + 0.0 * F.mse_loss(fake, sample)


class ConvVAE(nn.Module):
    def __init__(self, latent=32, beta=4.0):
        super().__init__()
        modules, c = [], 3
        for h in [16, 32, 64]:
            modules.append(nn.Sequential(nn.Conv2d(c, h, 3, 2, 1), nn.BatchNorm2d(h), nn.LeakyReLU()))
            c = h
        self.encoder = nn.Sequential(*modules)
        self.fc_mu, self.fc_var = nn.Linear(64 * 16, latent), nn.Linear(64 * 16, latent)
        self.decoder_input = nn.Linear(latent, 64 * 16)
        modules = []
        for i, o in [(64, 32), (32, 16)]:
            modules.append(nn.Sequential(nn.ConvTranspose2d(i, o, 3, 2, 1, output_padding=1), nn.BatchNorm2d(o), nn.LeakyReLU()))
        self.decoder = nn.Sequential(*modules)
        self.final = nn.Sequential(nn.ConvTranspose2d(16, 16, 3, 2, 1, output_padding=1), nn.BatchNorm2d(16), nn.LeakyReLU(),
                                   nn.Conv2d(16, 3, 3, padding=1), nn.Tanh())
        self.beta = beta

    def forward(self, input):
        result = torch.flatten(self.encoder(input), start_dim=1)
        mu, log_var = self.fc_mu(result), self.fc_var(result)
        std = torch.exp(0.5 * log_var)
        z = torch.randn_like(std).mul_(std).add_(mu)
        recons = self.final(self.decoder(self.decoder_input(z).view(-1, 64, 4, 4)))
        kld = torch.mean(-0.5 * torch.sum(1 + log_var - mu ** 2 - log_var.exp(), dim=1), dim=0)
        return F.mse_loss(recons, input) + self.beta * kld


class MoCo(nn.Module):
    def __init__(self, dim=32, K=256, T=0.07):
        super().__init__()
        def encoder():
            return nn.Sequential(conv_bn(3, 16, s=2), conv_bn(16, 32, s=2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, dim))
        self.T = T
        self.encoder_q, self.encoder_k = encoder(), encoder()
        for param_q, param_k in zip(self.encoder_q.parameters(), self.encoder_k.parameters()):
            param_k.data.copy_(param_q.data)
            param_k.requires_grad = False
        self.register_buffer("queue", F.normalize(torch.randn(dim, K), dim=0))

    def forward(self, im_q, im_k):
        q = F.normalize(self.encoder_q(im_q), dim=1)
        with torch.no_grad():
            k = F.normalize(self.encoder_k(im_k), dim=1)
        l_pos = torch.einsum("nc,nc->n", [q, k]).unsqueeze(-1)
        l_neg = torch.einsum("nc,ck->nk", [q, self.queue.clone().detach()])
        logits = torch.cat([l_pos, l_neg], dim=1)
        logits /= self.T
        return F.cross_entropy(logits, torch.zeros(logits.shape[0], dtype=torch.long, device=logits.device))


class BarlowTwins(nn.Module):
    def __init__(self, sizes=(32, 64, 64)):
        super().__init__()
        self.backbone = nn.Sequential(conv_bn(3, 16, s=2), conv_bn(16, 32, s=2), nn.AdaptiveAvgPool2d(1), nn.Flatten())
        layers = []
        for i in range(len(sizes) - 2):
            layers += [nn.Linear(sizes[i], sizes[i + 1], bias=False), nn.BatchNorm1d(sizes[i + 1]), nn.ReLU(inplace=True)]
        layers.append(nn.Linear(sizes[-2], sizes[-1], bias=False))
        self.projector, self.bn = nn.Sequential(*layers), nn.BatchNorm1d(sizes[-1], affine=False)

    @staticmethod
    def off_diagonal(x):
        n, m = x.shape
        return x.flatten()[:-1].view(n - 1, n + 1)[:, 1:].flatten()

    def forward(self, y1, y2):
        z1, z2 = self.projector(self.backbone(y1)), self.projector(self.backbone(y2))
        c = self.bn(z1).T @ self.bn(z2)
        c.div_(y1.shape[0])
        on_diag = torch.diagonal(c).add_(-1).pow_(2).sum()
        off_diag = self.off_diagonal(c).pow_(2).sum()
        return on_diag + 0.0051 * off_diag


class Dino(nn.Module):
    """The student sees all crops, the teacher two; the teacher's centre is a buffer that moves."""

    def __init__(self, out=64):
        super().__init__()
        def net():
            return nn.Sequential(nn.Conv2d(3, 32, 8, 8), nn.GELU(), nn.Flatten(2), nn.AdaptiveAvgPool1d(1), nn.Flatten(),
                                 nn.Linear(32, 64), nn.GELU(), nn.Linear(64, out))
        self.student, self.teacher = net(), net()
        self.teacher.load_state_dict(self.student.state_dict())
        for p in self.teacher.parameters():
            p.requires_grad = False
        self.register_buffer("center", torch.zeros(1, out))

    def forward(self, x):
        g1, g2 = x, torch.flip(x, dims=[3])
        local = [F.interpolate(x[:, :, i:i + 32, i:i + 32], size=(32, 32), mode="bilinear") for i in (0, 16, 32)]
        with torch.no_grad():
            t = self.teacher(torch.cat([g1, g2]))
            targets = F.softmax((t - self.center) / 0.04, dim=-1).detach().chunk(2)
            if self.training:
                self.center = self.center * 0.9 + t.mean(dim=0, keepdim=True) * 0.1
        outs = list(self.student(torch.cat([g1, g2])).chunk(2)) + [self.student(c) for c in local]
        total, n = 0, 0
        for iq, q in enumerate(targets):
            for v, s in enumerate(outs):
                if v == iq:
                    continue
                total += torch.sum(-q * F.log_softmax(s / 0.1, dim=-1), dim=-1).mean()
                n += 1
        total /= n
        return total


class L2Norm(nn.Module):
    def __init__(self, n, scale):
        super().__init__()
        self.weight = nn.Parameter(torch.full((n,), float(scale)))

    def forward(self, x):
        norm = x.pow(2).sum(dim=1, keepdim=True).sqrt() + 1e-10
        x = torch.div(x, norm)
        return self.weight.unsqueeze(0).unsqueeze(2).unsqueeze(3).expand_as(x) * x


class SSD(nn.Module):
    def __init__(self, classes=4):
        super().__init__()
        self.vgg = nn.ModuleList([nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(inplace=True), nn.MaxPool2d(2, 2), nn.Conv2d(16, 32, 3, padding=1),
                                  nn.ReLU(inplace=True), nn.MaxPool2d(2, 2, ceil_mode=True), nn.Conv2d(32, 64, 3, padding=1),
                                  nn.ReLU(inplace=True)])
        self.extras = nn.ModuleList([nn.Conv2d(64, 32, 1), nn.Conv2d(32, 64, 3, 2, 1), nn.Conv2d(64, 32, 1), nn.Conv2d(32, 64, 3, 2, 1)])
        self.norm = L2Norm(64, 20)
        self.loc = nn.ModuleList([nn.Conv2d(64, 4 * 4, 3, padding=1) for _ in range(3)])
        self.conf = nn.ModuleList([nn.Conv2d(64, 4 * classes, 3, padding=1) for _ in range(3)])
        self.classes = classes

    def forward(self, x):
        sources, loc, conf = list(), list(), list()
        for k in range(len(self.vgg)):
            x = self.vgg[k](x)
        sources.append(self.norm(x))
        for k, v in enumerate(self.extras):
            x = F.relu(v(x), inplace=True)
            if k % 2 == 1:
                sources.append(x)
        for (x, l, c) in zip(sources, self.loc, self.conf):
            loc.append(l(x).permute(0, 2, 3, 1).contiguous())
            conf.append(c(x).permute(0, 2, 3, 1).contiguous())
        loc = torch.cat([o.view(o.size(0), -1) for o in loc], 1)
        conf = torch.cat([o.view(o.size(0), -1) for o in conf], 1)
        return loc.view(loc.size(0), -1, 4), conf.view(conf.size(0), -1, self.classes)


class CenterNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.base = nn.Sequential(conv_bn(3, 16, s=2), conv_bn(16, 32, s=2), conv_bn(32, 64, s=2))
        self.up = nn.Sequential(nn.ConvTranspose2d(64, 32, 4, 2, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU(inplace=True))
        for head, n in {"hm": 3, "wh": 2, "reg": 2}.items():
            self.__setattr__(head, nn.Sequential(nn.Conv2d(32, 32, 3, padding=1), nn.ReLU(inplace=True), nn.Conv2d(32, n, 1)))

    @staticmethod
    def neg_loss(pred, gt):
        pos_inds, neg_inds = gt.eq(1).float(), gt.lt(1).float()
        neg_weights = torch.pow(1 - gt, 4)
        pos_loss = torch.log(pred) * torch.pow(1 - pred, 2) * pos_inds
        neg_loss = torch.log(1 - pred) * torch.pow(pred, 2) * neg_weights * neg_inds
        return -(pos_loss.sum() + neg_loss.sum()) / (pos_inds.sum() + 1e-4)

    def forward(self, x, heat, ind):
        x = self.up(self.base(x))
        hm = torch.clamp(self.hm(x).sigmoid_(), min=1e-4, max=1 - 1e-4)
        losses = self.neg_loss(hm, heat)
        for name in ("wh", "reg"):
            feat = getattr(self, name)(x).permute(0, 2, 3, 1).contiguous()
            feat = feat.view(feat.size(0), -1, feat.size(3))
            pred = feat.gather(1, ind.unsqueeze(2).expand(ind.size(0), ind.size(1), feat.size(2)))
            losses = losses + F.l1_loss(pred, torch.zeros_like(pred), reduction="sum") / 8
        return losses


class RetinaHead(nn.Module):
    """A pyramid whose levels share their heads; the focal loss is written out."""

    def __init__(self, c=32, classes=3, anchors=3):
        super().__init__()
        self.c3, self.c4, self.c5 = conv_bn(3, c, s=4), conv_bn(c, c, s=2), conv_bn(c, c, s=2)
        self.lateral = nn.ModuleList([nn.Conv2d(c, c, 1) for _ in range(3)])
        def tower(n):
            layers = []
            for _ in range(2):
                layers += [nn.Conv2d(c, c, 3, padding=1), nn.GroupNorm(8, c), nn.ReLU()]
            return nn.Sequential(*layers, nn.Conv2d(c, n, 3, padding=1))
        self.cls_head, self.box_head, self.classes = tower(anchors * classes), tower(anchors * 4), classes

    def forward(self, x):
        c3 = self.c3(x)
        c4 = self.c4(c3)
        c5 = self.c5(c4)
        p5 = self.lateral[2](c5)
        p4 = self.lateral[1](c4) + F.interpolate(p5, size=c4.shape[-2:], mode="nearest")
        p3 = self.lateral[0](c3) + F.interpolate(p4, size=c3.shape[-2:], mode="nearest")
        feats = [p3, p4, p5]
        cls = torch.cat([self.cls_head(f).permute(0, 2, 3, 1).reshape(x.size(0), -1, self.classes) for f in feats], 1)
        box = torch.cat([self.box_head(f).permute(0, 2, 3, 1).reshape(x.size(0), -1, 4) for f in feats], 1)
        p = torch.sigmoid(cls)
        target = torch.zeros_like(p)
        ce = F.binary_cross_entropy_with_logits(cls, target, reduction="none")
        p_t = p * target + (1 - p) * (1 - target)
        focal = (0.25 * target + 0.75 * (1 - target)) * ce * ((1 - p_t) ** 2)
        return focal.sum() / x.size(0) + F.smooth_l1_loss(box, torch.zeros_like(box), beta=0.1)


class Detr(nn.Module):
    def __init__(self, hidden=64, classes=5, queries=10):
        super().__init__()
        self.backbone = nn.Sequential(conv_bn(3, 32, s=4), conv_bn(32, 64, s=4))
        self.conv = nn.Conv2d(64, hidden, 1)
        self.transformer = nn.Transformer(hidden, 4, 2, 2, 128)
        self.linear_class, self.linear_bbox = nn.Linear(hidden, classes + 1), nn.Linear(hidden, 4)
        self.query_pos = nn.Parameter(torch.rand(queries, hidden))
        self.row_embed = nn.Parameter(torch.rand(50, hidden // 2))
        self.col_embed = nn.Parameter(torch.rand(50, hidden // 2))

    def forward(self, inputs):
        h = self.conv(self.backbone(inputs))
        H, W = h.shape[-2:]
        pos = torch.cat([self.col_embed[:W].unsqueeze(0).repeat(H, 1, 1), self.row_embed[:H].unsqueeze(1).repeat(1, W, 1)],
                        dim=-1).flatten(0, 1).unsqueeze(1)
        h = self.transformer(pos + 0.1 * h.flatten(2).permute(2, 0, 1),
                             self.query_pos.unsqueeze(1).repeat(1, inputs.shape[0], 1)).transpose(0, 1)
        return self.linear_class(h), self.linear_bbox(h).sigmoid()


class WindowNet(nn.Module):
    """Shifted windows by hand, with a table of relative positions."""

    class Block(nn.Module):
        def __init__(self, dim, heads, ws, shift):
            super().__init__()
            self.norm1, self.norm2, self.heads, self.ws, self.shift = nn.LayerNorm(dim), nn.LayerNorm(dim), heads, ws, shift
            self.qkv, self.proj = nn.Linear(dim, dim * 3), nn.Linear(dim, dim)
            self.mlp = nn.Sequential(nn.Linear(dim, dim * 2), nn.GELU(), nn.Dropout(0.1), nn.Linear(dim * 2, dim))
            self.table = nn.Parameter(torch.zeros((2 * ws - 1) ** 2, heads))
            coords = torch.stack(torch.meshgrid(torch.arange(ws), torch.arange(ws), indexing="ij")).flatten(1)
            rel = (coords[:, :, None] - coords[:, None, :]).permute(1, 2, 0) + ws - 1
            self.register_buffer("index", rel[..., 0] * (2 * ws - 1) + rel[..., 1])

        def forward(self, x):
            B, H, W, C = x.shape
            shortcut, ws = x, self.ws
            x = self.norm1(x)
            if self.shift > 0:
                x = torch.roll(x, shifts=(-self.shift, -self.shift), dims=(1, 2))
            x = x.view(B, H // ws, ws, W // ws, ws, C).permute(0, 1, 3, 2, 4, 5).contiguous().view(-1, ws * ws, C)
            q, k, v = self.qkv(x).reshape(-1, ws * ws, 3, self.heads, C // self.heads).permute(2, 0, 3, 1, 4)
            q = q * (C // self.heads) ** -0.5
            attn = q @ k.transpose(-2, -1)
            attn = attn + self.table[self.index.view(-1)].view(ws * ws, ws * ws, -1).permute(2, 0, 1).contiguous().unsqueeze(0)
            attn = attn.softmax(dim=-1)
            x = self.proj((attn @ v).transpose(1, 2).reshape(-1, ws * ws, C))
            x = x.view(B, H // ws, W // ws, ws, ws, C).permute(0, 1, 3, 2, 4, 5).contiguous().view(B, H, W, C)
            if self.shift > 0:
                x = torch.roll(x, shifts=(self.shift, self.shift), dims=(1, 2))
            x = shortcut + x
            return x + self.mlp(self.norm2(x))

    def __init__(self, dim=32):
        super().__init__()
        self.embed = nn.Conv2d(3, dim, 4, 4)
        self.blocks = nn.ModuleList([self.Block(dim, 4, 4, 0 if i % 2 == 0 else 2) for i in range(3)])
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, 10)

    def forward(self, x):
        x = self.embed(x).permute(0, 2, 3, 1)
        for blk in self.blocks:
            x = blk(x)
        return self.head(self.norm(x).mean((1, 2)))


class Inception(nn.Module):
    class Block(nn.Module):
        def __init__(self, i, o):
            super().__init__()
            self.branches = nn.ModuleList([nn.Sequential(nn.Conv2d(i, o, k, padding=k // 2), nn.BatchNorm2d(o), nn.ReLU())
                                           for k in (1, 3, 5)])
            self.pool = nn.Sequential(nn.MaxPool2d(3, 1, 1), nn.Conv2d(i, o, 1))

        def forward(self, x):
            return torch.cat([b(x) for b in self.branches] + [self.pool(x)], dim=1)

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 7, 2, 3), nn.ReLU(), nn.MaxPool2d(3, 2, 1), nn.LocalResponseNorm(5))
        self.blocks = nn.ModuleList([self.Block(16, 8), self.Block(32, 16)])
        self.aux, self.drop, self.fc = nn.Linear(32, 10), nn.Dropout(0.4), nn.Linear(64, 10)

    def forward(self, x):
        x = self.blocks[0](self.stem(x))
        aux = self.aux(F.adaptive_avg_pool2d(x, 1).flatten(1))
        x = self.blocks[1](x)
        out = self.fc(self.drop(x.mean([-2, -1])))
        if self.training:
            return out, aux
        return out


class VideoFormer(nn.Module):
    """Attention over space, then over time, by reshaping."""

    class Block(nn.Module):
        def __init__(self, d, h):
            super().__init__()
            self.space, self.time = nn.MultiheadAttention(d, h, batch_first=True), nn.MultiheadAttention(d, h, batch_first=True)
            self.n1, self.n2, self.n3 = nn.LayerNorm(d), nn.LayerNorm(d), nn.LayerNorm(d)
            self.ff = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

        def forward(self, x, t):
            bt, n, d = x.shape
            y = self.n1(x)
            x = x + self.space(y, y, y, need_weights=False)[0]
            x = x.view(bt // t, t, n, d).transpose(1, 2).reshape(-1, t, d)
            y = self.n2(x)
            x = x + self.time(y, y, y, need_weights=False)[0]
            x = x.view(bt // t, n, t, d).transpose(1, 2).reshape(bt, n, d)
            return x + self.ff(self.n3(x))

    def __init__(self, d=48, frames=4):
        super().__init__()
        self.patch, self.pos = nn.Conv2d(3, d, 8, 8), nn.Parameter(torch.zeros(1, 16, d))
        self.blocks, self.head = nn.ModuleList([self.Block(d, 4) for _ in range(2)]), nn.Linear(d, 7)

    def forward(self, video):
        b, t = video.shape[:2]
        x = self.patch(video.flatten(0, 1)).flatten(2).transpose(1, 2) + self.pos
        for block in self.blocks:
            x = block(x, t)
        return self.head(x.mean(1).view(b, t, -1).mean(1))


def modulate(x, shift, scale):
    return x * (1 + scale.unsqueeze(1)) + shift.unsqueeze(1)


def timestep_embedding(t, dim, max_period=10000):
    half = dim // 2
    freqs = torch.exp(-math.log(max_period) * torch.arange(start=0, end=half, dtype=torch.float32) / half).to(device=t.device)
    args = t[:, None].float() * freqs[None]
    return torch.cat([torch.cos(args), torch.sin(args)], dim=-1)


class CrossDit(nn.Module):
    """A diffusion transformer with cross attention to words and one table of modulations for all blocks."""

    class Block(nn.Module):
        def __init__(self, d, h):
            super().__init__()
            self.norm1 = nn.LayerNorm(d, elementwise_affine=False, eps=1e-6)
            self.norm2 = nn.LayerNorm(d, elementwise_affine=False, eps=1e-6)
            self.attn, self.cross = nn.MultiheadAttention(d, h, batch_first=True), nn.MultiheadAttention(d, h, batch_first=True)
            self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(approximate="tanh"), nn.Linear(4 * d, d))
            self.scale_shift_table = nn.Parameter(torch.randn(6, d) / d ** 0.5)

        def forward(self, x, y, t):
            B = x.shape[0]
            sh1, sc1, g1, sh2, sc2, g2 = (self.scale_shift_table[None] + t.reshape(B, 6, -1)).chunk(6, dim=1)
            h = self.norm1(x) * (1 + sc1) + sh1
            x = x + g1 * self.attn(h, h, h, need_weights=False)[0]
            x = x + self.cross(x, y, y, need_weights=False)[0]
            return x + g2 * self.mlp(self.norm2(x) * (1 + sc2) + sh2)

    def __init__(self, d=64, p=4):
        super().__init__()
        self.x_embedder, self.y_embedder, self.p = nn.Conv2d(4, d, p, p), nn.Linear(32, d), p
        self.t_embedder = nn.Sequential(nn.Linear(64, d), nn.SiLU(), nn.Linear(d, d))
        self.t_block = nn.Sequential(nn.SiLU(), nn.Linear(d, 6 * d))
        self.blocks, self.final = nn.ModuleList([self.Block(d, 4) for _ in range(2)]), nn.Linear(d, p * p * 4)

    def forward(self, x, t, y):
        h = w = x.shape[-1] // self.p
        tokens = self.x_embedder(x).flatten(2).transpose(1, 2)
        t0 = self.t_block(self.t_embedder(timestep_embedding(t, 64)))
        y = self.y_embedder(y)
        for block in self.blocks:
            tokens = block(tokens, y, t0)
        out = self.final(tokens).reshape(x.shape[0], h, w, self.p, self.p, 4)
        out = torch.einsum("nhwpqc->nchpwq", out)
        return out.reshape(x.shape[0], 4, h * self.p, w * self.p)


class JointDit(nn.Module):
    """Two streams with one attention; flow matching on a straight line."""

    class Stream(nn.Module):
        def __init__(self, d):
            super().__init__()
            self.ada, self.qkv, self.proj = nn.Sequential(nn.SiLU(), nn.Linear(d, 6 * d)), nn.Linear(d, 3 * d), nn.Linear(d, d)
            self.n1, self.n2 = nn.LayerNorm(d, elementwise_affine=False), nn.LayerNorm(d, elementwise_affine=False)
            self.qn, self.kn = nn.RMSNorm(d // 4), nn.RMSNorm(d // 4)
            self.mlp = nn.Sequential(nn.Linear(d, 2 * d), nn.GELU(), nn.Linear(2 * d, d))

        def pre(self, x, c):
            self_mod = self.ada(c).chunk(6, dim=-1)
            qkv = self.qkv(modulate(self.n1(x), self_mod[0], self_mod[1])).unflatten(-1, (3, 4, -1)).permute(2, 0, 3, 1, 4)
            return self.qn(qkv[0]), self.kn(qkv[1]), qkv[2], self_mod[2:]

        def post(self, x, attn, mod):
            x = x + mod[0].unsqueeze(1) * self.proj(attn)
            return x + mod[3].unsqueeze(1) * self.mlp(modulate(self.n2(x), mod[1], mod[2]))

    def __init__(self, d=64, depth=2):
        super().__init__()
        self.img_in, self.txt_in, self.time_in = nn.Linear(16, d), nn.Linear(32, d), nn.Linear(32, d)
        self.img, self.txt = (nn.ModuleList([self.Stream(d) for _ in range(depth)]) for _ in range(2))
        self.out = nn.Linear(d, 16)

    def forward(self, x1, txt):
        x0 = torch.randn_like(x1)
        t = torch.rand(x1.shape[0], device=x1.device)
        xt = (1 - t[:, None, None]) * x0 + t[:, None, None] * x1
        img, text, c = self.img_in(xt), self.txt_in(txt), self.time_in(timestep_embedding(t * 1000, 32))
        for a, b in zip(self.img, self.txt):
            qa, ka, va, ma = a.pre(img, c)
            qb, kb, vb, mb = b.pre(text, c)
            q, k, v = (torch.cat(pair, dim=2) for pair in ((qb, qa), (kb, ka), (vb, va)))
            o = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
            text, img = b.post(text, o[:, :text.shape[1]], mb), a.post(img, o[:, text.shape[1]:], ma)
        return F.mse_loss(self.out(img), x1 - x0)


class Edm(nn.Module):
    """Preconditioned denoiser; the convolutions in the middle run under a checkpoint."""

    def __init__(self, c=32, sigma_data=0.5):
        super().__init__()
        self.inp, self.out, self.noise = nn.Conv2d(3, c, 3, padding=1), nn.Conv2d(c, 3, 3, padding=1), nn.Linear(1, c)
        self.body = nn.Sequential(*[nn.Sequential(nn.GroupNorm(8, c), nn.SiLU(), nn.Conv2d(c, c, 3, padding=1)) for _ in range(4)])
        self.sigma_data = sigma_data

    def forward(self, images):
        rnd_normal = torch.randn([images.shape[0], 1, 1, 1], device=images.device)
        sigma = (rnd_normal * 1.2 - 1.2).exp()
        weight = (sigma ** 2 + self.sigma_data ** 2) / (sigma * self.sigma_data) ** 2
        n = torch.randn_like(images) * sigma
        c_skip = self.sigma_data ** 2 / (sigma ** 2 + self.sigma_data ** 2)
        c_out = sigma * self.sigma_data / (sigma ** 2 + self.sigma_data ** 2).sqrt()
        c_in = 1 / (self.sigma_data ** 2 + sigma ** 2).sqrt()
        x = self.inp(c_in * (images + n)) + self.noise(sigma.log().flatten(1) / 4)[:, :, None, None]
        x = checkpoint(self.body, x, use_reentrant=False)
        D_x = c_skip * (images + n) + c_out * self.out(x)
        return (weight * ((D_x - images) ** 2)).mean()


class ConsistencyModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(33, 128), nn.SiLU(), nn.Linear(128, 128), nn.SiLU(), nn.Linear(128, 32))
        self.target = copy.deepcopy(self.net)
        self.target.requires_grad_(False)

    def forward(self, x, t):
        noise = torch.randn_like(x)
        t1, t2 = t[:, :1], t[:, 1:]
        a = self.net(torch.cat([x + t2 * noise, t2], dim=-1))
        with torch.no_grad():
            b = self.target(torch.cat([x + t1 * noise, t1], dim=-1))
        d = a - b
        return (torch.sqrt(d ** 2 + 0.03 ** 2) - 0.03).mean()


class LoRALinear(nn.Module):
    def __init__(self, base, r=4, alpha=8, dropout=0.05):
        super().__init__()
        self.base = base
        for p in self.base.parameters():
            p.requires_grad = False
        self.A, self.B = nn.Parameter(torch.randn(r, base.in_features) * 0.01), nn.Parameter(torch.zeros(base.out_features, r))
        self.scaling, self.dropout = alpha / r, nn.Dropout(dropout)

    def forward(self, x):
        return self.base(x) + (self.dropout(x) @ self.A.T @ self.B.T) * self.scaling


class LoRAViT(nn.Module):
    def __init__(self, d=64, layers=2):
        super().__init__()
        self.patch, self.cls, self.pos = nn.Conv2d(3, d, 16, 16), nn.Parameter(torch.zeros(1, 1, d)), nn.Parameter(torch.zeros(1, 17, d))
        self.layers = nn.ModuleList()
        for _ in range(layers):
            self.layers.append(nn.ModuleDict({"n1": nn.LayerNorm(d), "q": nn.Linear(d, d), "k": nn.Linear(d, d), "v": nn.Linear(d, d),
                                              "o": nn.Linear(d, d), "n2": nn.LayerNorm(d), "up": nn.Linear(d, 4 * d),
                                              "down": nn.Linear(4 * d, d)}))
        for p in self.parameters():
            p.requires_grad = False
        for layer in self.layers:
            layer["q"], layer["v"] = LoRALinear(layer["q"]), LoRALinear(layer["v"])
        self.head = nn.Linear(d, 10)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls.expand(x.size(0), -1, -1), x], 1) + self.pos
        for l in self.layers:
            h = l["n1"](x)
            q, k, v = [l[n](h).unflatten(-1, (4, -1)).transpose(1, 2) for n in "qkv"]
            x = x + l["o"](F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
            x = x + l["down"](F.gelu(l["up"](l["n2"](x))))
        return self.head(x[:, 0])


class AdapterResNet(nn.Module):
    """A frozen backbone in evaluation mode, with small parallel convolutions that learn."""

    def __init__(self, c=32, n=3):
        super().__init__()
        self.stem = conv_bn(3, c, s=2)
        self.blocks = nn.ModuleList([nn.Sequential(conv_bn(c, c), conv_bn(c, c, act=False)) for _ in range(n)])
        for module in (self.stem, self.blocks):
            for p in module.parameters():
                p.requires_grad_(False)
        self.adapters = nn.ModuleList([nn.Conv2d(c, c, 1) for _ in range(n)])
        self.norms, self.fc = nn.ModuleList([nn.BatchNorm2d(c) for _ in range(n)]), nn.Linear(c, 6)

    def train(self, mode=True):
        super().train(mode)
        self.stem.eval()
        self.blocks.eval()
        return self

    def forward(self, x):
        x = self.stem(x)
        for block, adapter, norm in zip(self.blocks, self.adapters, self.norms):
            x = F.relu(x + block(x) + norm(adapter(x)))
        return self.fc(F.adaptive_avg_pool2d(x, 1).squeeze(-1).squeeze(-1))


class CondConv(nn.Module):
    """Kernels mixed for each sample, run as one grouped convolution."""

    class Layer(nn.Module):
        def __init__(self, i, o, k, experts=4):
            super().__init__()
            self.weight, self.routing = nn.Parameter(torch.randn(experts, o, i, k, k) * 0.05), nn.Linear(i, experts)
            self.k = k

        def forward(self, x):
            b, c, h, w = x.size()
            r = torch.sigmoid(self.routing(x.mean(dim=(2, 3))))
            weight = (r @ self.weight.flatten(1)).view(b * self.weight.size(1), c, self.k, self.k)
            out = F.conv2d(x.reshape(1, b * c, h, w), weight, padding=self.k // 2, groups=b)
            return out.view(b, -1, out.size(-2), out.size(-1))

    def __init__(self):
        super().__init__()
        self.stem, self.l1, self.l2 = nn.Conv2d(3, 16, 3, 2, 1), self.Layer(16, 32, 3), self.Layer(32, 32, 3)
        self.b1, self.b2, self.fc = nn.BatchNorm2d(32), nn.BatchNorm2d(32), nn.Linear(32, 10)

    def forward(self, x):
        x = F.relu_(self.stem(x))
        x = F.relu_(self.b1(self.l1(x)))
        x = F.relu_(self.b2(self.l2(x)))
        return self.fc(x.mean(dim=[2, 3]))


class Raft(nn.Module):
    """All pairs of two feature maps, looked up around the current flow, and a convolutional GRU."""

    def __init__(self, d=32, iters=3):
        super().__init__()
        self.fnet = nn.Sequential(nn.Conv2d(3, d, 7, 4, 3), nn.InstanceNorm2d(d), nn.ReLU(inplace=True), nn.Conv2d(d, d, 3, 2, 1))
        self.cnet = nn.Sequential(nn.Conv2d(3, d, 7, 4, 3), nn.BatchNorm2d(d), nn.ReLU(inplace=True), nn.Conv2d(d, 2 * d, 3, 2, 1))
        self.motion = nn.Conv2d(9 + 2, d - 2, 3, padding=1)
        self.convz, self.convr, self.convq = (nn.Conv2d(3 * d, d, 3, padding=1) for _ in range(3))
        self.flow_head, self.iters = nn.Conv2d(d, 2, 3, padding=1), iters

    def forward(self, image1, image2):
        fmap1, fmap2 = self.fnet(torch.cat([image1, image2], dim=0)).chunk(2)
        b, c, h, w = fmap1.shape
        corr = torch.matmul(fmap1.view(b, c, h * w).transpose(1, 2), fmap2.view(b, c, h * w)) / math.sqrt(c)
        corr = corr.view(b * h * w, 1, h, w)
        net, inp = torch.split(self.cnet(image1), [c, c], dim=1)
        net, inp = torch.tanh(net), torch.relu(inp)
        ys, xs = torch.meshgrid(torch.arange(h, device=corr.device), torch.arange(w, device=corr.device), indexing="ij")
        coords0 = torch.stack([xs, ys], dim=0).float()[None].repeat(b, 1, 1, 1)
        coords1 = coords0.clone()
        r = torch.linspace(-1, 1, 3, device=corr.device)
        delta = torch.stack(torch.meshgrid(r, r, indexing="ij"), dim=-1).view(1, 3, 3, 2)
        flows = []
        for _ in range(self.iters):
            coords1 = coords1.detach()
            at = coords1.permute(0, 2, 3, 1).reshape(b * h * w, 1, 1, 2) + delta
            grid = 2 * at / torch.tensor([w - 1, h - 1], device=at.device) - 1
            look = F.grid_sample(corr, grid, align_corners=True).view(b, h, w, -1).permute(0, 3, 1, 2)
            flow = coords1 - coords0
            x = torch.cat([inp, F.relu(self.motion(torch.cat([look, flow], 1))), flow], dim=1)
            hx = torch.cat([net, x], dim=1)
            z, r_ = torch.sigmoid(self.convz(hx)), torch.sigmoid(self.convr(hx))
            q = torch.tanh(self.convq(torch.cat([r_ * net, x], dim=1)))
            net = (1 - z) * net + z * q
            coords1 = coords1 + self.flow_head(net)
            flows.append(F.interpolate(coords1 - coords0, scale_factor=8, mode="bilinear", align_corners=True) * 8)
        return sum(0.8 ** (self.iters - i - 1) * f.abs().mean() for i, f in enumerate(flows))


class CostVolume(nn.Module):
    """Stereo: the volume is filled slice by slice, a soft argmin reads it."""

    def __init__(self, c=16, D=6):
        super().__init__()
        self.feature = nn.Sequential(conv_bn(3, c, s=2), conv_bn(c, c, s=2))
        def c3(i, o):
            return nn.Sequential(nn.Conv3d(i, o, 3, 1, 1, bias=False), nn.BatchNorm3d(o))
        self.dres0, self.dres1 = nn.Sequential(c3(2 * c, c), nn.ReLU(inplace=True)), nn.Sequential(c3(c, c), nn.ReLU(inplace=True), c3(c, c))
        self.classify, self.D = nn.Conv3d(c, 1, 3, padding=1, bias=False), D

    def forward(self, left, right):
        ref, tgt = self.feature(left), self.feature(right)
        cost = torch.zeros(ref.size(0), ref.size(1) * 2, self.D, ref.size(2), ref.size(3), device=ref.device)
        for i in range(self.D):
            if i > 0:
                cost[:, :ref.size(1), i, :, i:] = ref[:, :, :, i:]
                cost[:, ref.size(1):, i, :, i:] = tgt[:, :, :, :-i]
            else:
                cost[:, :ref.size(1), i, :, :] = ref
                cost[:, ref.size(1):, i, :, :] = tgt
        cost = cost.contiguous()
        cost0 = self.dres0(cost)
        cost0 = self.dres1(cost0) + cost0
        cost = F.interpolate(self.classify(cost0), scale_factor=(1, 4, 4), mode="trilinear").squeeze(1)
        pred = F.softmax(cost, dim=1)
        disp = torch.arange(self.D, device=pred.device, dtype=pred.dtype).view(1, -1, 1, 1)
        return torch.sum(pred * disp, 1)


class Involution(nn.Module):
    class Layer(nn.Module):
        def __init__(self, c, k=3, groups=4):
            super().__init__()
            self.reduce, self.span = conv_bn(c, c // 4, 1), nn.Conv2d(c // 4, k * k * groups, 1)
            self.unfold, self.k, self.g = nn.Unfold(k, padding=k // 2), k, groups

        def forward(self, x):
            b, c, h, w = x.shape
            weight = self.span(self.reduce(x)).view(b, self.g, self.k ** 2, h, w).unsqueeze(2)
            out = self.unfold(x).view(b, self.g, c // self.g, self.k ** 2, h, w)
            return (weight * out).sum(dim=3).view(b, c, h, w)

    def __init__(self):
        super().__init__()
        self.stem, self.inv1, self.inv2, self.fc = conv_bn(3, 32, s=4), self.Layer(32), self.Layer(32), nn.Linear(32, 8)

    def forward(self, x):
        x = self.stem(x)
        x = x + self.inv1(x)
        x = F.hardswish(x + self.inv2(x))
        return self.fc(F.adaptive_max_pool2d(x, 1).flatten(1))


class Sign(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sign()

    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        return g * (x.abs() <= 1).to(g.dtype)


class BinaryNet(nn.Module):
    class Conv(nn.Conv2d):
        def forward(self, x):
            scale = self.weight.abs().mean(dim=(1, 2, 3), keepdim=True)
            return F.conv2d(Sign.apply(x), Sign.apply(self.weight) * scale, None, self.stride, self.padding)

    def __init__(self):
        super().__init__()
        self.conv0, self.bn0 = nn.Conv2d(3, 32, 3, 2, 1, bias=False), nn.BatchNorm2d(32)
        self.convs = nn.ModuleList([self.Conv(32, 32, 3, 1, 1, bias=False) for _ in range(3)])
        self.bns, self.acts = nn.ModuleList([nn.BatchNorm2d(32) for _ in range(3)]), nn.ModuleList([nn.PReLU(32) for _ in range(3)])
        self.fc = nn.Linear(32, 10)

    def forward(self, x):
        x = self.bn0(self.conv0(x))
        for conv, bn, act in zip(self.convs, self.bns, self.acts):
            x = act(bn(conv(x)) + x)
        return self.fc(x.mean((2, 3)))


class FakeQuantNet(nn.Module):
    """Straight-through rounding by detach."""

    def __init__(self):
        super().__init__()
        self.c1, self.c2, self.fc = nn.Conv2d(3, 16, 3, 2, 1), nn.Conv2d(16, 32, 3, 2, 1), nn.Linear(32, 10)
        self.s = nn.ParameterList([nn.Parameter(torch.tensor(0.1)) for _ in range(2)])

    def q(self, x, s):
        y = torch.clamp(x / s, -128, 127)
        y = (y.round() - y).detach() + y
        return y * s

    def fq(self, w):
        s = w.detach().abs().max() / 127
        return w + (torch.round(w / s) * s - w).detach()

    def forward(self, x):
        x = F.relu(F.conv2d(x, self.fq(self.c1.weight), self.c1.bias, 2, 1))
        x = self.q(x, self.s[0])
        x = F.relu(F.conv2d(x, self.fq(self.c2.weight), self.c2.bias, 2, 1))
        x = self.q(x, self.s[1])
        return self.fc(F.avg_pool2d(x, x.shape[-2:]).flatten(1))


class ReverseGrad(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, alpha):
        ctx.alpha = alpha
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output.neg() * ctx.alpha, None


class Dann(nn.Module):
    def __init__(self):
        super().__init__()
        self.feature = nn.Sequential(nn.Conv2d(3, 32, 5), nn.BatchNorm2d(32), nn.MaxPool2d(2), nn.ReLU(True), nn.Conv2d(32, 48, 5),
                                     nn.BatchNorm2d(48), nn.Dropout2d(), nn.MaxPool2d(2), nn.ReLU(True))
        self.class_classifier = nn.Sequential(nn.Linear(48 * 25, 100), nn.BatchNorm1d(100), nn.ReLU(True), nn.Dropout(), nn.Linear(100, 10),
                                              nn.LogSoftmax(dim=1))
        self.domain_classifier = nn.Sequential(nn.Linear(48 * 25, 100), nn.BatchNorm1d(100), nn.ReLU(True), nn.Linear(100, 2),
                                               nn.LogSoftmax(dim=1))

    def forward(self, source, target, label):
        fs, ft = self.feature(source).view(-1, 48 * 25), self.feature(target).view(-1, 48 * 25)
        err_s_label = F.nll_loss(self.class_classifier(fs), label)
        ds, dt = self.domain_classifier(ReverseGrad.apply(fs, 0.3)), self.domain_classifier(ReverseGrad.apply(ft, 0.3))
        return err_s_label + F.nll_loss(ds, torch.zeros_like(label)) + F.nll_loss(dt, torch.ones_like(label))


class CheckpointedResNet(nn.Module):
    class Basic(nn.Module):
        def __init__(self, c):
            super().__init__()
            self.conv1, self.bn1 = nn.Conv2d(c, c, 3, 1, 1, bias=False), nn.BatchNorm2d(c)
            self.conv2, self.bn2 = nn.Conv2d(c, c, 3, 1, 1, bias=False), nn.BatchNorm2d(c)

        def forward(self, x):
            out = F.relu(self.bn1(self.conv1(x)))
            out = self.bn2(self.conv2(out))
            out += x
            return F.relu(out)

    def __init__(self, c=32, n=4):
        super().__init__()
        self.stem, self.layers, self.fc = conv_bn(3, c, s=2), nn.Sequential(*[self.Basic(c) for _ in range(n)]), nn.Linear(c, 10)

    def forward(self, x):
        x = self.stem(x)
        x = checkpoint_sequential(self.layers, 2, x, use_reentrant=False)
        return self.fc(x.mean((2, 3)))


class SlotAttention(nn.Module):
    def __init__(self, slots=5, dim=32, iters=3):
        super().__init__()
        self.encoder = nn.Sequential(nn.Conv2d(3, dim, 5, 2, 2), nn.ReLU(), nn.Conv2d(dim, dim, 5, 2, 2), nn.ReLU())
        self.mu, self.log_sigma = nn.Parameter(torch.randn(1, 1, dim)), nn.Parameter(torch.zeros(1, 1, dim))
        self.to_q, self.to_k, self.to_v = (nn.Linear(dim, dim, bias=False) for _ in range(3))
        self.gru, self.fc1, self.fc2 = nn.GRUCell(dim, dim), nn.Linear(dim, 64), nn.Linear(64, dim)
        self.norm_in, self.norm_slots, self.norm_ff = nn.LayerNorm(dim), nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.decoder = nn.Sequential(nn.ConvTranspose2d(dim, 16, 5, 2, 2, 1), nn.ReLU(), nn.ConvTranspose2d(16, 4, 5, 2, 2, 1))
        self.slots, self.iters, self.dim = slots, iters, dim

    def forward(self, images):
        x = self.encoder(images).flatten(2).transpose(1, 2)
        b, n, d = x.shape
        x = self.norm_in(x)
        k, v = self.to_k(x), self.to_v(x)
        slots = self.mu.expand(b, self.slots, -1) + self.log_sigma.exp().expand(b, self.slots, -1) * torch.randn(b, self.slots, d, device=x.device)
        for _ in range(self.iters):
            prev = slots
            q = self.to_q(self.norm_slots(slots))
            dots = torch.einsum("bid,bjd->bij", q, k) * self.dim ** -0.5
            attn = dots.softmax(dim=1) + 1e-8
            attn = attn / attn.sum(dim=-1, keepdim=True)
            updates = torch.einsum("bjd,bij->bid", v, attn)
            slots = self.gru(updates.reshape(-1, d), prev.reshape(-1, d)).reshape(b, -1, d)
            slots = slots + self.fc2(F.relu(self.fc1(self.norm_ff(slots))))
        grid = slots.reshape(-1, d)[:, :, None, None].repeat(1, 1, 8, 8)
        recons, masks = self.decoder(grid).view(b, self.slots, 4, 32, 32).split([3, 1], dim=2)
        masks = masks.softmax(dim=1)
        return F.mse_loss((recons * masks).sum(dim=1), F.interpolate(images, 32))


class Clip(nn.Module):
    def __init__(self, d=64, vocab=200):
        super().__init__()
        self.visual = nn.Sequential(conv_bn(3, 32, s=4), conv_bn(32, 64, s=4), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, d))
        self.token, self.pos = nn.Embedding(vocab, d), nn.Parameter(torch.empty(16, d).normal_(std=0.01))
        self.text = nn.TransformerEncoder(nn.TransformerEncoderLayer(d, 4, 128, 0.0, "gelu", batch_first=True, norm_first=True), 2)
        self.ln, self.proj = nn.LayerNorm(d), nn.Parameter(torch.randn(d, d) * d ** -0.5)
        self.logit_scale = nn.Parameter(torch.ones([]) * math.log(1 / 0.07))

    def forward(self, images, text):
        mask = torch.triu(torch.full((16, 16), float("-inf"), device=images.device), diagonal=1)
        x = self.ln(self.text(self.token(text) + self.pos, mask=mask))
        t = x[torch.arange(x.shape[0], device=x.device), text.argmax(dim=-1)] @ self.proj
        i = self.visual(images)
        i, t = i / i.norm(dim=1, keepdim=True), t / t.norm(dim=1, keepdim=True)
        logits = self.logit_scale.exp() * i @ t.t()
        labels = torch.arange(logits.shape[0], device=logits.device)
        return (F.cross_entropy(logits, labels) + F.cross_entropy(logits.t(), labels)) / 2


class ArcFace(nn.Module):
    def __init__(self, classes=40, d=64, s=30.0, m=0.5):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(3, 32, 3, 2, 1), nn.BatchNorm2d(32), nn.PReLU(32), nn.Conv2d(32, 64, 3, 2, 1),
                                 nn.BatchNorm2d(64), nn.PReLU(64), nn.Conv2d(64, 64, 16, groups=64, bias=False), nn.Flatten(),
                                 nn.Linear(64, d, bias=False), nn.BatchNorm1d(d))
        self.weight = nn.Parameter(torch.randn(classes, d))
        self.s, self.cos_m, self.sin_m, self.th, self.mm = s, math.cos(m), math.sin(m), math.cos(math.pi - m), math.sin(math.pi - m) * m

    def forward(self, x, label):
        cosine = F.linear(F.normalize(self.net(x)), F.normalize(self.weight))
        sine = torch.sqrt((1.0 - torch.pow(cosine, 2)).clamp(0, 1))
        phi = cosine * self.cos_m - sine * self.sin_m
        phi = torch.where(cosine > self.th, phi, cosine - self.mm)
        one_hot = torch.zeros(cosine.size(), device=x.device)
        one_hot.scatter_(1, label.view(-1, 1).long(), 1)
        output = (one_hot * phi) + ((1.0 - one_hot) * cosine)
        output *= self.s
        return F.cross_entropy(output, label)


NETWORKS = [
    Network("dict_unet", DictUNet, image(), "cross-entropy"),
    Network("att_unet", AttUNet, image(), "mse"),
    Network("ac_gan", AcGan, together(image(32), values(24), numbers()), "none"),
    Network("hinge_gan", HingeGan, together(image(16), values(32)), "none"),
    Network("conv_vae", ConvVAE, image(32), "none"),
    Network("moco", MoCo, together(image(32), image(32)), "none"),
    Network("barlow_twins", BarlowTwins, together(image(32), image(32)), "none"),
    Network("dino", Dino, image(), "none"),
    Network("ssd", SSD, image(), "cross-entropy"),
    Network("center_net", CenterNet, together(image(), values(3, 16, 16), numbers(8)), "none"),
    Network("retina_head", RetinaHead, image(), "none"),
    Network("detr", Detr, image(), "mse"),
    Network("window_net", WindowNet, image()),
    Network("inception", Inception, image()),
    Network("video_former", VideoFormer, values(4, 3, 32, 32)),
    Network("cross_dit", CrossDit, together(values(4, 16, 16), values(), values(8, 32)), "mse"),
    Network("joint_dit", JointDit, together(values(24, 16), values(8, 32)), "none"),
    Network("edm", Edm, image(32), "none"),
    Network("consistency_model", ConsistencyModel, together(values(32), values(2)), "none"),
    Network("lora_vit", LoRAViT, image()),
    Network("adapter_resnet", AdapterResNet, image(32)),
    Network("cond_conv", CondConv, image(32)),
    Network("raft", Raft, together(image(), image()), "none"),
    Network("cost_volume", CostVolume, together(image(48), image(48)), "mse"),
    Network("involution", Involution, image()),
    Network("binary_net", BinaryNet, image(32)),
    Network("fake_quant_net", FakeQuantNet, image(32)),
    Network("dann", Dann, together(image(32), image(32), numbers()), "none"),
    Network("checkpointed_resnet", CheckpointedResNet, image(32)),
    Network("slot_attention", SlotAttention, image(32), "none"),
    Network("clip", Clip, together(image(), numbers(16)), "none"),
    Network("arc_face", ArcFace, together(image(), numbers()), "none"),
]
