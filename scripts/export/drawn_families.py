"""Networks for default_exports.py: language, speech, vision and time series, drawn by a seed, and written down before use.

random.Random(20261123) shuffled the model types of the transformers library's tasks (`drawn_networks.drawn`), the modules of
timm.models (of each the smallest model, if it has at most 30 million parameters, at its own size if that is fixed and at 64
otherwise) and names of papers. Left out: what another table here or its text names, classes of another type, and what could
not be built at this size.
"""

from drawn_networks import transformer
from fresh_networks import BATCH, image, timm_model, tokens, values


def languages(*names):
    table = {}
    for name in names:
        model, config = name.split()
        table[config[:-len("Config")]] = (transformer(model, config), tokens(), ())
    return table


def crossformer():
    """Zhang and Yan 2023: attention along time, and between variables by way of a few routers."""
    import torch
    from torch import nn

    class Attention(nn.Module):
        def __init__(self, width=32, heads=4):
            super().__init__()
            self.heads, self.drop = heads, nn.Dropout(0.1)
            self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))

        def forward(self, q, k, v):
            b, l, _ = q.shape
            s = k.shape[1]
            q = self.query(q).view(b, l, self.heads, -1)
            k = self.key(k).view(b, s, self.heads, -1)
            v = self.value(v).view(b, s, self.heads, -1)
            scores = torch.einsum("blhe,bshe->bhls", q, k)
            weights = self.drop(torch.softmax(scores / q.shape[-1] ** 0.5, -1))
            return self.out(torch.einsum("bhls,bshd->blhd", weights, v).contiguous().view(b, l, -1))

    class TwoStages(nn.Module):
        def __init__(self, segments, width=32):
            super().__init__()
            self.time, self.send, self.receive = Attention(), Attention(), Attention()
            self.router = nn.Parameter(torch.randn(segments, 3, width))
            self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(4))
            self.first, self.second = (nn.Sequential(nn.Linear(width, 64), nn.GELU(), nn.Linear(64, width)) for _ in range(2))
            self.drop = nn.Dropout(0.1)

        def forward(self, x):
            b, variables, segments, width = x.shape
            y = x.reshape(b * variables, segments, width)
            y = self.norms[0](y + self.drop(self.time(y, y, y)))
            y = self.norms[1](y + self.drop(self.first(y)))
            y = y.view(b, variables, segments, width).transpose(1, 2).reshape(b * segments, variables, width)
            router = self.router.repeat(b, 1, 1)
            told = self.send(router, y, y)
            y = self.norms[2](y + self.drop(self.receive(y, told, told)))
            y = self.norms[3](y + self.drop(self.second(y)))
            return y.view(b, segments, variables, width).transpose(1, 2)

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Linear(12, 32)
            self.position = nn.Parameter(torch.randn(1, 7, 8, 32))
            self.norm = nn.LayerNorm(32)
            self.layers = nn.ModuleList((TwoStages(8), TwoStages(8)))
            self.head = nn.Linear(8 * 32, 24)

        def forward(self, x):
            x = self.embed(x.view(BATCH, 7, 8, 12))
            x = self.norm(x + self.position)
            for layer in self.layers:
                x = layer(x)
            return self.head(x.flatten(2))
    return Network()


def time_mixer():
    """Chen et al. 2023: perceptrons along time and along features in turn."""
    from torch import nn

    class Block(nn.Module):
        def __init__(self, length, width):
            super().__init__()
            self.before, self.between = nn.BatchNorm1d(length), nn.BatchNorm1d(length)
            self.along, self.drop = nn.Linear(length, length), nn.Dropout(0.1)
            self.features = nn.Sequential(nn.Linear(width, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, width), nn.Dropout(0.1))

        def forward(self, x):
            y = self.before(x).transpose(1, 2)
            x = x + self.drop(self.along(y).relu()).transpose(1, 2)
            return x + self.features(self.between(x))

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.Sequential(Block(96, 16), Block(96, 16))
            self.head = nn.Linear(96, 24)

        def forward(self, x):
            return self.head(self.blocks(x).transpose(1, 2)).transpose(1, 2)
    return Network()


def interactions():
    """Liu et al. 2022: even and odd values are split again and again, and change each other."""
    import torch
    from torch import nn

    def change(width):
        return nn.Sequential(nn.ReplicationPad1d((3, 3)), nn.Conv1d(width, width, 5), nn.LeakyReLU(0.01), nn.Dropout(0.5),
                             nn.Conv1d(width, width, 3), nn.Tanh())

    class Interaction(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.phi, self.psi, self.up, self.down = (change(width) for _ in range(4))

        def forward(self, x):
            even, odd = x[:, ::2].permute(0, 2, 1), x[:, 1::2].permute(0, 2, 1)
            d, c = odd.mul(torch.exp(self.phi(even))), even.mul(torch.exp(self.psi(odd)))
            return (c + self.up(d)).permute(0, 2, 1), (d - self.down(c)).permute(0, 2, 1)

    class Tree(nn.Module):
        def __init__(self, levels, width):
            super().__init__()
            self.here = Interaction(width)
            self.below = nn.ModuleList(Tree(levels - 1, width) for _ in range(2)) if levels else None

        def forward(self, x):
            even, odd = self.here(x)
            if self.below is not None:
                even, odd = self.below[0](even), self.below[1](odd)
            return torch.stack((even, odd), 2).flatten(1, 2)

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.tree, self.head = Tree(2, 8), nn.Conv1d(96, 24, 1, bias=False)

        def forward(self, x):
            return self.head(self.tree(x) + x)
    return Network()


def speaker():
    """Desplanques et al. 2020: Res2Net blocks with squeeze and excitation, and statistics by attention."""
    import torch
    from torch import nn

    def unit(width, out, kernel=1, step=1):
        return nn.Sequential(nn.Conv1d(width, out, kernel, padding=step * (kernel // 2), dilation=step), nn.ReLU(),
                             nn.BatchNorm1d(out))

    class Excite(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.first, self.second = nn.Conv1d(width, 16, 1), nn.Conv1d(16, width, 1)

        def forward(self, x):
            y = self.second(torch.relu(self.first(x.mean(2, keepdim=True))))
            return x * torch.sigmoid(y)

    class Block(nn.Module):
        def __init__(self, width, step):
            super().__init__()
            self.before, self.behind, self.excite = unit(width, width), unit(width, width), Excite(width)
            self.parts = nn.ModuleList(unit(width // 4, width // 4, 3, step) for _ in range(3))

        def forward(self, x):
            parts = torch.chunk(self.before(x), 4, 1)
            done = [parts[0]]
            for i, part in enumerate(self.parts):
                done.append(part(parts[i + 1] + done[-1] if i else parts[1]))
            return x + self.excite(self.behind(torch.cat(done, 1)))

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.front = unit(40, 64, 5)
            self.blocks = nn.ModuleList(Block(64, i) for i in (2, 3, 4))
            self.joined = nn.Conv1d(192, 192, 1)
            self.attention = nn.Sequential(nn.Conv1d(576, 32, 1), nn.ReLU(), nn.BatchNorm1d(32), nn.Tanh(), nn.Conv1d(32, 192, 1),
                                           nn.Softmax(2))
            self.norm, self.head = nn.BatchNorm1d(384), nn.Linear(384, 32)

        def forward(self, x):
            x = self.front(x)
            results = []
            for block in self.blocks:
                x = block(x)
                results.append(x)
            x = torch.relu(self.joined(torch.cat(results, 1)))
            mean, deviation = x.mean(2, keepdim=True), x.var(2, keepdim=True).clamp(min=1e-4).sqrt()
            seen = torch.cat([x, mean.expand_as(x), deviation.expand_as(x)], 1)
            w = self.attention(seen)
            mean = (x * w).sum(2)
            deviation = ((x * x * w).sum(2) - mean * mean).clamp(min=1e-4).sqrt()
            return self.head(self.norm(torch.cat([mean, deviation], 1)))
    return Network()


def waveforms():
    """Kumar et al. 2019: a vocoder of transposed convolutions and dilated residual stacks, all with weight norm."""
    from torch import nn
    from torch.nn.utils.parametrizations import weight_norm

    class Stack(nn.Module):
        def __init__(self, width, step):
            super().__init__()
            self.body = nn.Sequential(nn.LeakyReLU(0.2), nn.ReflectionPad1d(step), weight_norm(nn.Conv1d(width, width, 3, dilation=step)),
                                      nn.LeakyReLU(0.2), weight_norm(nn.Conv1d(width, width, 1)))
            self.shortcut = weight_norm(nn.Conv1d(width, width, 1))

        def forward(self, x):
            return self.shortcut(x) + self.body(x)

    layers, width = [nn.ReflectionPad1d(3), weight_norm(nn.Conv1d(40, 64, 7))], 64
    for ratio in (4, 2):
        layers += [nn.LeakyReLU(0.2), weight_norm(nn.ConvTranspose1d(width, width // 2, 2 * ratio, ratio, ratio // 2)),
                   *(Stack(width // 2, 3 ** i) for i in range(3))]
        width //= 2
    return nn.Sequential(*layers, nn.LeakyReLU(0.2), nn.ReflectionPad1d(3), weight_norm(nn.Conv1d(width, 1, 7)), nn.Tanh())


def speech(model, config, **options):
    """A model of speech whose sizes are in its encoder's configuration, given features."""
    def make():
        import transformers
        from torch import nn

        class Recognizer(nn.Module):
            def __init__(self):
                super().__init__()
                self.network = getattr(transformers, model)(getattr(transformers, config)(**options))

            def forward(self, x):
                return self.network(x, return_dict=True).logits
        return Recognizer()
    return make


ENCODER = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128}


def families():
    """Written down on 2026-11-22 before any of them was exported, as is families_later()."""
    return {
        **languages("GPTNeoXJapaneseForCausalLM GPTNeoXJapaneseConfig", "AfmoeForCausalLM AfmoeConfig",
                    "FalconH1ForCausalLM FalconH1Config", "MvpForCausalLM MvpConfig", "MarianForCausalLM MarianConfig",
                    "HrmTextForCausalLM HrmTextConfig", "Ministral3ForCausalLM Ministral3Config",
                    "ModernBertDecoderForCausalLM ModernBertDecoderConfig"),
        "Wav2Vec2Bert": (speech("Wav2Vec2BertForCTC", "Wav2Vec2BertConfig", vocab_size=30, layerdrop=0.0,
                                apply_spec_augment=False, **ENCODER), values(60, 160), ()),
        "Parakeet": (speech("ParakeetForCTC", "ParakeetCTCConfig", vocab_size=30, pad_token_id=29, encoder_config={
            **ENCODER, "num_mel_bins": 40, "subsampling_conv_channels": 32, "layerdrop": 0.0}), values(96, 40), ()),
        "VOLO": (timm_model("volo_d1_224"), image(224), ()),
        "CSPNeXt": (timm_model("cspnext_tiny"), image(), ()),
        "StarNet": (timm_model("starnet_s050"), image(), ()),
        "ResNet V2": (timm_model("resnetv2_18"), image(), ()),
        "Xception (aligned)": (timm_model("xception41p"), image(), ()),
        "Crossformer": (crossformer, values(7, 96), ()),
        "TSMixer": (time_mixer, values(96, 16), ()),
        "SCINet": (interactions, values(96, 8), ()),
        "ECAPA-TDNN": (speaker, values(40, 120), ()),
        "MelGAN": (waveforms, values(40, 32), ()),
    }


def gated_forecaster():
    """van den Oord et al. 2016, for a series: causal convolutions with gates, residuals and skips."""
    import torch
    from torch import nn
    from torch.nn import functional as F

    class Layer(nn.Module):
        def __init__(self, step):
            super().__init__()
            self.step = step
            self.filter, self.gate = nn.Conv1d(32, 32, 2, dilation=step), nn.Conv1d(32, 32, 2, dilation=step)
            self.stays, self.skips = nn.Conv1d(32, 32, 1), nn.Conv1d(32, 64, 1)

        def forward(self, x):
            y = F.pad(x, (self.step, 0))
            y = torch.tanh(self.filter(y)) * torch.sigmoid(self.gate(y))
            return x + self.stays(y), self.skips(y)

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Conv1d(4, 32, 1)
            self.layers = nn.ModuleList(Layer(2 ** i) for i in range(6))
            self.head = nn.Sequential(nn.ReLU(), nn.Conv1d(64, 64, 1), nn.ReLU(), nn.Conv1d(64, 4, 1))

        def forward(self, x):
            x, skipped = self.first(x), []
            for layer in self.layers:
                x, skip = layer(x)
                skipped.append(skip)
            return self.head(torch.stack(skipped).sum(0))
    return Network()


def modern_convolutions():
    """Luo and Wang 2024: patches of each variable, large depthwise kernels, and feed-forward networks of groups."""
    from torch import nn

    class Block(nn.Module):
        def __init__(self, variables, width):
            super().__init__()
            all_of_them = variables * width
            self.large = nn.Conv1d(all_of_them, all_of_them, 31, padding=15, groups=all_of_them, bias=False)
            self.large_norm = nn.BatchNorm1d(all_of_them)
            self.small = nn.Conv1d(all_of_them, all_of_them, 5, padding=2, groups=all_of_them, bias=False)
            self.small_norm, self.norm = nn.BatchNorm1d(all_of_them), nn.BatchNorm1d(width)
            self.first, self.act = nn.Conv1d(all_of_them, 2 * all_of_them, 1, groups=variables), nn.GELU()
            self.second, self.drop = nn.Conv1d(2 * all_of_them, all_of_them, 1, groups=variables), nn.Dropout(0.1)

        def forward(self, x):
            b, m, d, n = x.shape
            y = x.reshape(b, m * d, n)
            y = self.large_norm(self.large(y)) + self.small_norm(self.small(y))
            y = self.norm(y.reshape(b * m, d, n)).reshape(b, m * d, n)
            y = self.drop(self.second(self.act(self.drop(self.first(y)))))
            return x + y.reshape(b, m, d, n)

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem = nn.Sequential(nn.Conv1d(1, 16, 8, 4, 2), nn.BatchNorm1d(16))
            self.blocks = nn.Sequential(Block(7, 16), Block(7, 16))
            self.head = nn.Sequential(nn.Flatten(-2), nn.Linear(16 * 24, 24))

        def forward(self, x):
            b, m, n = x.shape
            y = self.stem(x.reshape(b * m, 1, n))
            return self.head(self.blocks(y.reshape(b, m, 16, -1)))
    return Network()


def inception_time():
    """Ismail Fawaz et al. 2020: kernels of three sizes beside each other, with a shortcut around three of them."""
    import torch
    from torch import nn

    class Inception(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.narrow = nn.Conv1d(width, 16, 1, bias=False)
            self.parts = nn.ModuleList(nn.Conv1d(16, 16, k, padding=k // 2, bias=False) for k in (39, 19, 9))
            self.pooled = nn.Sequential(nn.MaxPool1d(3, 1, 1), nn.Conv1d(width, 16, 1, bias=False))
            self.norm, self.relu = nn.BatchNorm1d(64), nn.ReLU()

        def forward(self, x):
            y = self.narrow(x)
            return self.relu(self.norm(torch.cat([part(y) for part in self.parts] + [self.pooled(x)], 1)))

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList(Inception(64 if i else 3) for i in range(6))
            self.shortcuts = nn.ModuleList(nn.Sequential(nn.Conv1d(i, 64, 1, bias=False), nn.BatchNorm1d(64)) for i in (3, 64))
            self.head = nn.Linear(64, 10)

        def forward(self, x):
            kept = x
            for i, block in enumerate(self.blocks):
                x = block(x)
                if i % 3 == 2:
                    x = torch.relu(x + self.shortcuts[i // 3](kept))
                    kept = x
            return self.head(x.mean(2))
    return Network()


def families_later():
    """The same by random.Random(20261124), without what the first draw had."""
    return {
        **languages("ArceeForCausalLM ArceeConfig", "NemotronForCausalLM NemotronConfig", "Starcoder2ForCausalLM Starcoder2Config",
                    "BigBirdPegasusForCausalLM BigBirdPegasusConfig", "BertGenerationDecoder BertGenerationConfig",
                    "Llama4ForCausalLM Llama4TextConfig", "OlmoeForCausalLM OlmoeConfig",
                    "VaultGemmaForCausalLM VaultGemmaConfig", "BioGptForCausalLM BioGptConfig", "MBartForCausalLM MBartConfig"),
        "LASR": (speech("LasrForCTC", "LasrCTCConfig", vocab_size=30, pad_token_id=29, encoder_config={
            **ENCODER, "num_mel_bins": 40, "subsampling_conv_channels": 32, "layerdrop": 0.0}), values(96, 40), ()),
        "Swin V2 (CR)": (timm_model("swinv2_cr_tiny_224"), image(224), ()),
        "CPUBone": (timm_model("cpubone_nano"), image(), ()),
        "SwiftFormer": (timm_model("swiftformer_xs"), image(224), ()),
        "FocalNet": (timm_model("focalnet_tiny_srf"), image(), ()),
        "LCNet V2": (timm_model("lcnetv2_small"), image(), ()),
        "WaveNet forecaster": (gated_forecaster, values(4, 128), ()),
        "ModernTCN": (modern_convolutions, values(7, 96), ()),
        "InceptionTime": (inception_time, values(3, 128), ()),
    }
