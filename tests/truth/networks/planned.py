"""Networks for checkpointing plans, of kinds that no list had. Written down before a plan of one was asked for; predicted once."""
import torch
import torch.nn as nn
import torch.nn.functional as F

from .common import Network, image, numbers, picked, timm, together, transformer, values, vision


class Capsules(nn.Module):
    """Votes of parts for wholes, weighed by how well they agree, three times in a loop; the length of a whole is its score."""

    def __init__(self, parts=8, d=16, classes=10):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 32, 5, 2, 2), nn.ReLU(True), nn.Conv2d(32, 8 * parts, 5, 2, 2))
        self.votes = nn.Parameter(0.1 * torch.randn(parts * 64, classes, d, 8))

    @staticmethod
    def squash(x):
        norm = x.norm(dim=-1, keepdim=True)
        return x * norm / (1 + norm ** 2)

    def forward(self, x):
        parts = self.squash(self.stem(x).flatten(2).reshape(x.shape[0], -1, 8))
        votes = torch.einsum("pcdk,bpk->bpcd", self.votes, parts)
        agreement = torch.zeros(votes.shape[:3], device=x.device)
        for _ in range(3):
            wholes = self.squash((agreement.softmax(2).unsqueeze(-1) * votes).sum(1))
            agreement = agreement + (votes * wholes.unsqueeze(1)).sum(-1)
        return wholes.pow(2).sum(-1).add(1e-6).sqrt()


class SourceSplit(nn.Module):
    """A U-Net of sound: gated convolutions, a recurrent layer in the middle, skips in a list."""

    def __init__(self, widths=(16, 32, 64)):
        super().__init__()
        self.down, self.up, before = nn.ModuleList(), nn.ModuleList(), 1
        for width in widths:
            self.down.append(nn.Sequential(nn.Conv1d(before, width, 8, 4, 2), nn.ReLU(), nn.Conv1d(width, 2 * width, 1), nn.GLU(1)))
            self.up.insert(0, nn.Sequential(nn.Conv1d(width, 2 * width, 3, padding=1), nn.GLU(1), nn.ConvTranspose1d(width, max(before, 2), 8, 4, 2)))
            before = width
        self.middle, self.join = nn.LSTM(widths[-1], widths[-1], 2, batch_first=True, bidirectional=True), nn.Linear(2 * widths[-1], widths[-1])

    def forward(self, x):
        mean, skips = x.mean(-1, keepdim=True), []
        x = (x - mean) / (x.std(-1, keepdim=True) + 1e-5)
        for layer in self.down:
            x = layer(x)
            skips.append(x)
        x = self.join(self.middle(x.transpose(1, 2))[0]).transpose(1, 2).contiguous()
        for i, layer in enumerate(self.up):
            x = layer(x + skips.pop())
            if i + 1 < len(self.up):
                x = F.relu(x, inplace=True)
        return x


class Flow(nn.Module):
    """One field of weights, followed by four steps of Runge and Kutta; time is a channel."""

    def __init__(self, width=24):
        super().__init__()
        self.stem = nn.Conv2d(3, width, 3, 2, 1)
        self.norms = nn.ModuleList(nn.GroupNorm(4, width) for _ in range(2))
        self.convs = nn.ModuleList(nn.Conv2d(width + 1, width, 3, 1, 1) for _ in range(2))
        self.head = nn.Linear(width, 10)

    def field(self, t, x):
        for norm, conv in zip(self.norms, self.convs):
            x = conv(torch.cat([F.silu(norm(x)), torch.full_like(x[:, :1], t)], 1))
        return x

    def forward(self, x, steps=4):
        x, h = self.stem(x), 1 / steps
        for i in range(steps):
            a = self.field(i * h, x)
            b = self.field((i + 0.5) * h, x + 0.5 * h * a)
            c = self.field((i + 0.5) * h, x + 0.5 * h * b)
            x = x + h / 6 * (a + 2 * b + 2 * c + self.field((i + 1) * h, x + h * c))
        return self.head(x.mean((2, 3)))


class Axial(nn.Module):
    """Attention along rows, then along columns, with positions that are learnt; windows of a map that shrinks between stages."""

    class Block(nn.Module):
        def __init__(self, d, size, heads=4):
            super().__init__()
            self.heads, self.place = heads, nn.Parameter(torch.zeros(heads, size, size))
            self.norms = nn.ModuleList(nn.LayerNorm(d) for _ in range(3))
            self.qkv, self.out = nn.ModuleList(nn.Linear(d, 3 * d, False) for _ in range(2)), nn.ModuleList(nn.Linear(d, d) for _ in range(2))
            self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU("tanh"), nn.Dropout(0.1), nn.Linear(4 * d, d))

        def along(self, i, x):
            q, k, v = self.qkv[i](self.norms[i](x)).unflatten(-1, (3, self.heads, -1)).permute(3, 0, 1, 4, 2, 5)
            weights = ((q @ k.transpose(-1, -2)) * q.shape[-1] ** -0.5 + self.place).softmax(-1)
            return self.out[i]((weights @ v).transpose(2, 3).flatten(3))

        def forward(self, x):
            x = x + self.along(0, x)
            y = x.transpose(1, 2)
            x = (y + self.along(1, y)).transpose(1, 2)
            return x + self.mlp(self.norms[2](x))

    def __init__(self, widths=(32, 64), size=16):
        super().__init__()
        self.embed = nn.Conv2d(3, widths[0], 4, 4)
        self.stages = nn.ModuleList(nn.Sequential(*(self.Block(w, size >> i) for _ in range(2))) for i, w in enumerate(widths))
        self.merge = nn.ModuleList(nn.Linear(4 * a, b, False) for a, b in zip(widths, widths[1:]))
        self.head = nn.Linear(widths[-1], 10)

    def forward(self, x):
        x = self.embed(x).permute(0, 2, 3, 1)
        for i, stage in enumerate(self.stages):
            if i:
                x = self.merge[i - 1](torch.cat([x[:, a::2, b::2] for a in (0, 1) for b in (0, 1)], -1))
            x = stage(x)
        return self.head(x.mean((1, 2)))


class Automaton(nn.Module):
    """Cells that look around with fixed filters and change by one small network, sixteen times; half of them rest each time."""

    def __init__(self, channels=16, hidden=64, steps=16):
        super().__init__()
        self.steps, self.seed = steps, nn.Conv2d(3, channels, 1)
        sobel = torch.tensor([[-1.0, 0, 1], [-2, 0, 2], [-1, 0, 1]]) / 8
        self.register_buffer("filters", torch.stack([sobel, sobel.T, torch.eye(3) / 3]).repeat(channels, 1, 1).unsqueeze(1))
        self.change = nn.Sequential(nn.Conv2d(4 * channels, hidden, 1), nn.ReLU(True), nn.Conv2d(hidden, channels, 1, bias=False))
        self.rest, self.head = nn.Dropout2d(0.5), nn.Linear(channels, 10)

    def forward(self, x):
        x = self.seed(x)
        for _ in range(self.steps):
            around = F.conv2d(F.pad(x, (1, 1, 1, 1), "circular"), self.filters, groups=x.shape[1])
            x = x + self.rest(self.change(torch.cat([x, around], 1)))
        return self.head(x.amax((2, 3)))


class Inverted(nn.Module):
    """Inverted residuals whose activations, gates and sums all work in place."""

    class Block(nn.Module):
        def __init__(self, before, width, stride, act, expand=4):
            super().__init__()
            inner = before * expand
            self.widen = nn.Sequential(nn.Conv2d(before, inner, 1, bias=False), nn.BatchNorm2d(inner), act(inplace=True))
            self.deep = nn.Sequential(nn.Conv2d(inner, inner, 3, stride, 1, groups=inner, bias=False), nn.BatchNorm2d(inner), act(inplace=True))
            self.gate = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(inner, inner // 8, 1), nn.SiLU(True), nn.Conv2d(inner // 8, inner, 1), nn.Hardsigmoid(True))
            self.narrow, self.adds = nn.Sequential(nn.Conv2d(inner, width, 1, bias=False), nn.BatchNorm2d(width)), stride == 1 and before == width

        def forward(self, x):
            y = self.deep(self.widen(x))
            y = self.narrow(y * self.gate(y))
            return y.add_(x) if self.adds else y

    def __init__(self, widths=(16, 24, 32, 48)):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, widths[0], 3, 2, 1, bias=False), nn.BatchNorm2d(widths[0]), nn.Hardswish(True))
        pairs = [(a, b, 2) for a, b in zip(widths, widths[1:])]
        blocks = [block for a, b, stride in pairs for block in ((a, b, stride), (b, b, 1), (b, b, 1))]
        self.blocks = nn.ModuleList(self.Block(*block, nn.SiLU if i < 5 else nn.Hardswish) for i, block in enumerate(blocks))
        self.head = nn.Linear(widths[-1], 10)

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x.mean((2, 3)))


class Board(nn.Module):
    """Scales that lie in a dictionary: each step reads it, writes into it, and leaves a skip in a list that the way back pops."""

    class Step(nn.Module):
        def __init__(self, before, width, stride):
            super().__init__()
            self.conv, self.norm = nn.Conv2d(before, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
            self.gate = nn.Conv2d(width, width, 1)

        def forward(self, board):
            x = F.silu(self.norm(self.conv(board["x"])))
            board["skips"].append(x)
            board["x"] = x * torch.sigmoid(self.gate(x))
            return board

    class Back(nn.Module):
        def __init__(self, before, width):
            super().__init__()
            self.join, self.norm = nn.Conv2d(before + width, width, 3, 1, 1, bias=False), nn.GroupNorm(4, width)

        def forward(self, board):
            skip = board["skips"].pop()
            x = F.interpolate(board["x"], size=skip.shape[2:], mode="nearest")
            board["x"] = F.relu(self.norm(self.join(torch.cat([x, skip], 1))), inplace=True)
            return board

    def __init__(self, widths=(16, 24, 32, 48)):
        super().__init__()
        pairs = list(zip((3, *widths), widths))
        self.down = nn.ModuleList(step for a, b in pairs for step in (self.Step(a, b, 2), self.Step(b, b, 1)))
        self.up = nn.ModuleList(self.Back(b, a) for a, b in ((16, 16), (16, 24), (24, 24), (24, 32), (32, 32), (32, 48), (48, 48), (48, 48))[::-1])
        self.head = nn.Conv2d(16, 5, 1)

    def forward(self, x):
        board = {"x": x, "skips": []}
        for step in (*self.down, *self.up):
            board = step(board)
        return self.head(board["x"])


class Reader(nn.Module):
    """Slots that read a sequence: blocks are called by keywords alone and return two tensors; classes and a reconstruction come out."""

    class Block(nn.Module):
        def __init__(self, d, heads=4):
            super().__init__()
            self.heads, self.norms = heads, nn.ModuleList(nn.LayerNorm(d) for _ in range(3))
            self.q, self.kv, self.out = nn.Linear(d, d), nn.Linear(d, 2 * d), nn.Linear(d, d)
            self.slots, self.tokens, self.drop = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d)), nn.Linear(d, d), nn.Dropout(0.1)

        def forward(self, *, slots, tokens, scale=1.0):
            q = self.q(self.norms[0](slots)).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            k, v = self.kv(self.norms[1](tokens)).unflatten(-1, (2, self.heads, -1)).permute(2, 0, 3, 1, 4)
            read = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
            slots = slots + scale * self.drop(self.out(read))
            slots = slots + self.slots(self.norms[2](slots))
            return slots, tokens + scale * torch.tanh(self.tokens(tokens)) * slots.mean(1, keepdim=True)

    def __init__(self, d=64, slots=16, layers=6):
        super().__init__()
        self.embed, self.start = nn.Linear(16, d), nn.Parameter(0.1 * torch.randn(slots, d))
        self.blocks = nn.ModuleList(self.Block(d) for _ in range(layers))
        self.classes, self.rebuilt = nn.Linear(d, 10), nn.Linear(d, 16)

    def forward(self, x):
        tokens, slots = self.embed(x), self.start.expand(x.shape[0], -1, -1)
        for block in self.blocks:
            slots, tokens = block(slots=slots, tokens=tokens, scale=0.5)
        return self.classes(slots), self.rebuilt(tokens)


def diffusers(name, **options):
    def make():
        import diffusers as library
        return picked(getattr(library, name)(**options), 0, {"return_dict": False})
    return make


CONDITIONED = diffusers("UNet2DConditionModel", sample_size=32, block_out_channels=(32, 64), layers_per_block=1, cross_attention_dim=32,
                        down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"), up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
                        attention_head_dim=8, norm_num_groups=8)
NETWORKS = [
    Network("capsules", Capsules, image(32)),
    Network("source_split", SourceSplit, values(1, 1024), loss="mse"),
    Network("flow", Flow, image(32)),
    Network("axial", Axial, image(64)),
    Network("visformer", timm("visformer_tiny", img_size=64), image(64)),
    Network("nfnet", timm("eca_nfnet_l0"), image(64)),
    Network("sequencer", timm("sequencer2d_s", img_size=64), image(64)),
    Network("twins", timm("twins_pcpvt_small", img_size=64), image(64)),
    Network("efficientformer", timm("efficientformer_l1"), image(224), batch=2, other=3),
    Network("pegasus", transformer("PegasusForCausalLM", "PegasusConfig"), numbers(24)),
    Network("blenderbot", transformer("BlenderbotForCausalLM", "BlenderbotConfig"), numbers(24)),
    Network("automaton", Automaton, image(64)),
    Network("inverted", Inverted, image(128)),
    Network("hrnet", timm("hrnet_w18_small"), image(64)),
    Network("gpt_neox", transformer("GPTNeoXForCausalLM", "GPTNeoXConfig"), numbers(24)),
    Network("codegen", transformer("CodeGenForCausalLM", "CodeGenConfig", rotary_dim=8), numbers(24)),
    Network("board", Board, image(64), loss="mse"),
    Network("reader", Reader, values(96, 16), loss="mse"),
    Network("tiny_vit", timm("tiny_vit_5m_224"), image(224), batch=2, other=3),
    Network("gemma2", transformer("Gemma2ForCausalLM", "Gemma2Config", query_pre_attn_scalar=16), numbers(24)),
    Network("unet2d", CONDITIONED, together(values(4, 32, 32), numbers(), values(20, 32)), loss="mse"),
    Network("raft", vision("raft_small", "optical_flow"), together(image(128), image(128)), loss="mse"),
]
