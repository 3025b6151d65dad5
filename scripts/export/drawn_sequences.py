"""Language, graph, speech, series and recurrent networks for default_exports.py: drawn by a seed, and written down before use.

random.Random(20261125) for first(), random.Random(20261126) for second(), 20261127 for third() shuffled, each on its own, the model types of the
transformers library's language tasks (`drawn_networks.drawn`), the layers of torch_geometric.nn, and the names of papers below.
Left out in that order: what another table here or its text names, a configuration without a class of its own, what could not be
built at this size or has over 20 million parameters, what selects edges by values or needs other inputs, and Fourier transforms.
"""

from drawn_families import languages
from drawn_parts import GRAPH, given, graph, layer, together, whole
from fresh_networks import BATCH, values

PAPERS = ("DLinear", "N-HiTS", "iTransformer", "TiDE", "TimesNet", "FEDformer", "Autoformer", "Informer", "LSTNet", "DeepAR",
          "MTGNN", "STGCN", "Graph WaveNet", "TCN-attention", "ESRNN", "SRU", "minGRU", "xLSTM (sLSTM)", "RWKV", "Conformer",
          "QuartzNet", "Tacotron 2 encoder", "DeepSpeech 2", "Bi-LSTM-CRF emissions", "ELMo", "Pointer network",
          "Neural ODE (RK4)", "S4D", "LMU", "Hyena", "gMLP", "Phased LSTM", "GRU-D", "RNN-T joint", "FastSpeech 2")

# For third(), of which those were left out whose names stood elsewhere.
MORE_PAPERS = ("DLinear", "iTransformer", "TiDE", "TimesNet", "FEDformer", "Autoformer", "Informer", "MTGNN", "Graph WaveNet",
               "TCN-attention", "SRU", "RWKV", "QuartzNet", "ELMo", "S4D", "LMU", "Hyena", "FastSpeech 2", "GLU language model",
               "MinimalRNN", "IndRNN", "Highway LSTM", "QRNN", "NARRE", "BiDAF", "DCRNN", "Neural Turing Machine", "TPA-LSTM",
               "SpineNet RNN", "Set Transformer", "Gated graph sequence (GGNN)", "Jasper", "ContextNet", "DKT", "Mogrifier LSTM",
               "Nested LSTM", "ON-LSTM", "FRU", "Skip RNN", "Universal Transformer", "Linear Transformer", "RetNet", "GateLoop",
               "HGRN", "Deep Voice decoder", "R-Transformer", "SRU++", "NBEATSx", "TFT", "Crossformer cell", "TSMixerx", "MICN",
               "Pyraformer", "SegRNN", "PatchTST head")


def words(length, below=500):
    return lambda device: whole(BATCH, length, below=below)(device)


def pointer():
    """Vinyals et al. 2015: an LSTM reads points, and cells point back at them by additive attention."""
    import torch
    from torch import nn

    class Network(nn.Module):
        def __init__(self, width=64):
            super().__init__()
            self.embed, self.encoder, self.cell = nn.Linear(2, width), nn.LSTM(width, width, batch_first=True), nn.LSTMCell(width, width)
            self.keys, self.query = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
            self.score, self.start = nn.Linear(width, 1, bias=False), nn.Parameter(torch.randn(width))

        def forward(self, x):
            states, (h, c) = self.encoder(self.embed(x))
            h, c, keys = h[0], c[0], self.keys(states)
            given, results = self.start.expand(x.shape[0], -1), []
            for _ in range(8):
                h, c = self.cell(given, (h, c))
                scores = self.score(torch.tanh(keys + self.query(h).unsqueeze(1))).squeeze(2)
                given = torch.bmm(torch.softmax(scores, 1).unsqueeze(1), states).squeeze(1)
                results.append(scores)
            return torch.stack(results, 1)
    return Network()


def emissions():
    """Lample et al. 2016 without the chain: words and characters, each read in both directions."""
    import torch
    from torch import nn

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.letters = nn.Embedding(500, 48, padding_idx=0), nn.Embedding(80, 16, padding_idx=0)
            self.spelling = nn.LSTM(16, 16, batch_first=True, bidirectional=True)
            self.reading = nn.LSTM(80, 64, batch_first=True, bidirectional=True)
            self.drop, self.head = nn.Dropout(0.5), nn.Linear(128, 9)

        def forward(self, x):
            words, letters = x
            b, n, k = letters.shape
            _, (h, _) = self.spelling(self.letters(letters.view(b * n, k)))
            spelled = torch.cat((h[0], h[1]), 1).view(b, n, -1)
            y, _ = self.reading(self.drop(torch.cat((self.words(words), spelled), 2)))
            return self.head(self.drop(y))
    return Network()


def phased():
    """Neil et al. 2016: an LSTM whose states change while a trained oscillation is open."""
    import torch
    from torch import nn

    class Cell(nn.Module):
        def __init__(self, width, out):
            super().__init__()
            self.given, self.own = nn.Linear(width, 4 * out), nn.Linear(out, 4 * out, bias=False)
            self.period, self.shift = nn.Parameter(torch.rand(out) * 3), nn.Parameter(torch.rand(out))
            self.open = nn.Parameter(torch.full((out,), 0.1))

        def forward(self, x, t, h, c):
            i, f, g, o = (self.given(x) + self.own(h)).chunk(4, 1)
            period = torch.exp(self.period)
            phase = torch.remainder(t - self.shift, period) / period
            rising, falling = 2 * phase / self.open, 2 - 2 * phase / self.open
            k = torch.where(phase < self.open / 2, rising, torch.where(phase < self.open, falling, 0.001 * phase))
            cell = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            c = k * cell + (1 - k) * c
            h = k * torch.sigmoid(o) * torch.tanh(cell) + (1 - k) * h
            return h, c

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell, self.head = Cell(8, 64), nn.Linear(64, 10)

        def forward(self, x):
            values, times = x
            h = c = torch.zeros(values.shape[0], 64, device=values.device)
            for t in range(values.shape[1]):
                h, c = self.cell(values[:, t], times[:, t:t + 1], h, c)
            return self.head(h)
    return Network()


def differential():
    """Chen et al. 2018: a network is integrated by the method of Runge and Kutta."""
    import torch
    from torch import nn

    class Change(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.first, self.second = nn.Linear(width + 1, 96), nn.Linear(96, width)

        def forward(self, t, y):
            time = torch.full_like(y[:, :1], t)
            return self.second(torch.tanh(self.first(torch.cat([y, time], 1))))

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.before, self.change, self.head = nn.Linear(20, 48), Change(48), nn.Linear(48, 10)

        def forward(self, x):
            y, step = self.before(x), 0.125
            for i in range(8):
                t = i * step
                a = self.change(t, y)
                b = self.change(t + step / 2, y + step / 2 * a)
                c = self.change(t + step / 2, y + step / 2 * b)
                d = self.change(t + step, y + step * c)
                y = y + step / 6 * (a + 2 * b + 2 * c + d)
            return self.head(y)
    return Network()


def autoregressive():
    """Salinas et al. 2020: an LSTM over lagged and scaled values gives a normal distribution."""
    import torch
    from torch import nn
    from torch.nn import functional as F

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.series = nn.Embedding(50, 8)
            self.lstm = nn.LSTM(1 + 3 + 8, 40, 3, batch_first=True, dropout=0.1)
            self.mean, self.deviation = nn.Linear(40, 1), nn.Linear(40, 1)

        def forward(self, x):
            values, covariates, series = x
            scale = values.abs().mean(1, keepdim=True) + 1
            told = self.series(series).unsqueeze(1).expand(-1, values.shape[1], -1)
            y, _ = self.lstm(torch.cat([(values / scale).unsqueeze(2), covariates, told], 2))
            scale = scale.unsqueeze(2)
            return torch.cat([self.mean(y) * scale, F.softplus(self.deviation(y)) * scale], 2)
    return Network()


def transducer():
    """Graves 2012: frames and labels are read apart and added for each pair."""
    import torch
    from torch import nn

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.frames = nn.LSTM(40, 64, 2, batch_first=True)
            self.labels, self.predictor = nn.Embedding(30, 64), nn.GRU(64, 64, batch_first=True)
            self.left, self.right, self.head = nn.Linear(64, 96), nn.Linear(64, 96), nn.Linear(96, 30)

        def forward(self, x):
            frames, labels = x
            heard, _ = self.frames(frames)
            told, _ = self.predictor(self.labels(labels))
            return self.head(torch.tanh(self.left(heard)[:, :, None] + self.right(told)[:, None]))
    return Network()


def roads():
    """Yu et al. 2018: gated convolutions along time, and Chebyshev polynomials of a graph between them."""
    import torch
    from torch import nn
    from torch.nn import functional as F

    class Gated(nn.Module):
        def __init__(self, width, out):
            super().__init__()
            self.width, self.out, self.conv = width, out, nn.Conv2d(width, 2 * out, (3, 1))

        def forward(self, x):
            kept = F.pad(x, (0, 0, 0, 0, 0, self.out - self.width))[:, :, 2:]
            p, q = self.conv(x).chunk(2, 1)
            return (p + kept) * torch.sigmoid(q)

    class Block(nn.Module):
        def __init__(self, width, mid, out, nodes):
            super().__init__()
            self.before, self.after = Gated(width, out), Gated(mid, out)
            self.theta, self.bias = nn.Parameter(torch.randn(3, out, mid)), nn.Parameter(torch.randn(mid))
            self.norm, self.drop = nn.LayerNorm([nodes, out]), nn.Dropout(0.3)

        def forward(self, x, polynomials):
            x = self.before(x)
            y = torch.einsum("kij,bctj->bktic", polynomials, x)
            y = torch.einsum("bktic,kco->btio", y, self.theta) + self.bias
            y = self.after(F.relu(y.permute(0, 3, 1, 2)))
            return self.drop(self.norm(y.permute(0, 2, 3, 1)).permute(0, 3, 1, 2))

    class Network(nn.Module):
        def __init__(self, nodes=25):
            super().__init__()
            self.blocks = nn.ModuleList((Block(1, 16, 64, nodes), Block(64, 16, 64, nodes)))
            self.register_buffer("polynomials", torch.rand(3, nodes, nodes))
            self.last, self.head = Gated(64, 64), nn.Conv2d(64, 1, 1)

        def forward(self, x):
            for block in self.blocks:
                x = block(x, self.polynomials)
            return self.head(self.last(x))
    return Network()


def smoothed():
    """Smyl 2020: levels and seasons of each series are trained beside dilated recurrent layers with shortcuts."""
    import torch
    from torch import nn

    class Network(nn.Module):
        def __init__(self, series=40, season=4, given=8, ahead=4):
            super().__init__()
            self.season, self.given, self.ahead = season, given, ahead
            self.level_rate, self.season_rate = nn.Parameter(torch.rand(series)), nn.Parameter(torch.rand(series))
            self.start = nn.Parameter(torch.rand(series, season))
            self.layers = nn.ModuleList((nn.LSTM(given, 40), nn.LSTM(40, 40)))
            self.mix, self.head = nn.Linear(40, 40), nn.Linear(40, ahead)

        def forward(self, x):
            values, which = x
            a, s = torch.sigmoid(self.level_rate[which]), torch.sigmoid(self.season_rate[which])
            seasons = [torch.exp(self.start[which, i]) for i in range(self.season)]
            level = values[:, 0] / seasons[0]
            seasons.append(seasons[0])
            levels = [level]
            for t in range(1, values.shape[1]):
                level = a * (values[:, t] / seasons[t]) + (1 - a) * level
                seasons.append(s * (values[:, t] / level) + (1 - s) * seasons[t])
                levels.append(level)
            seasons = torch.stack(seasons[:values.shape[1]], 1)
            windows = [torch.log(values[:, i:i + self.given] / seasons[:, i:i + self.given] / levels[i + self.given - 1][:, None])
                       for i in range(values.shape[1] - self.given + 1)]
            y = torch.stack(windows)
            first, _ = self.layers[0](y)
            second, _ = self.layers[1](first)
            return self.head(torch.tanh(self.mix(first + second)))
    return Network()


def decaying():
    """Che et al. 2018: a GRU for values that are missing, whose inputs and states decay with time."""
    import torch
    from torch import nn

    class Network(nn.Module):
        def __init__(self, width=12, state=64):
            super().__init__()
            self.decay_x, self.decay_h = nn.Linear(width, width), nn.Linear(width, state)
            self.update, self.reset, self.new = (nn.Linear(2 * width + state, state) for _ in range(3))
            self.register_buffer("mean", torch.rand(width))
            self.head, self.state = nn.Sequential(nn.Dropout(0.3), nn.BatchNorm1d(state), nn.Linear(state, 10)), state

        def forward(self, x):
            values, mask, since = x
            h, last = torch.zeros(values.shape[0], self.state, device=values.device), values[:, 0]
            for t in range(values.shape[1]):
                v, m, d = values[:, t], mask[:, t], since[:, t]
                gx, gh = torch.exp(-torch.relu(self.decay_x(d))), torch.exp(-torch.relu(self.decay_h(d)))
                last = m * v + (1 - m) * last
                v = m * v + (1 - m) * (gx * last + (1 - gx) * self.mean)
                h = gh * h
                seen = torch.cat([v, h, m], 1)
                z, r = torch.sigmoid(self.update(seen)), torch.sigmoid(self.reset(seen))
                h = (1 - z) * h + z * torch.tanh(self.new(torch.cat([v, r * h, m], 1)))
            return self.head(h)
    return Network()


def exponential():
    """Beck et al. 2024: an LSTM with exponential gates and a normalizer, in heads."""
    import torch
    from torch import nn

    class Layer(nn.Module):
        def __init__(self, width, heads=4):
            super().__init__()
            self.norm, self.given, self.heads = nn.LayerNorm(width), nn.Linear(width, 4 * width), heads
            self.own = nn.Parameter(torch.randn(4, heads, width // heads, width // heads) * 0.1)
            self.group, self.up, self.down = nn.GroupNorm(heads, width), nn.Linear(width, 2 * width), nn.Linear(width, width)

        def forward(self, x):
            b, n, width = x.shape
            given = self.given(self.norm(x)).view(b, n, 4, self.heads, -1)
            h = c = s = m = torch.zeros_like(given[:, 0, 0])
            states = []
            for t in range(n):
                i, f, z, o = (given[:, t] + torch.einsum("bhd,ghde->bghe", h, self.own)).unbind(1)
                f = nn.functional.logsigmoid(f)
                most = torch.maximum(f + m, i)
                i, f, m = torch.exp(i - most), torch.exp(f + m - most), most
                c, s = f * c + i * torch.tanh(z), f * s + i
                h = torch.sigmoid(o) * c / s
                states.append(h)
            y = torch.stack(states, 1).reshape(b * n, width)
            a, g = self.up(self.group(y)).view(b, n, -1).chunk(2, 2)
            return x + self.down(a * nn.functional.gelu(g))

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.words = nn.Embedding(500, 64)
            self.layers, self.head = nn.Sequential(Layer(64), Layer(64)), nn.Linear(64, 500)

        def forward(self, x):
            return self.head(self.layers(self.words(x)))
    return Network()


def first():
    """By seed 20261125, written down on 2026-11-22 before any was exported."""
    def edges(width):
        from torch import nn
        import torch_geometric.nn
        return torch_geometric.nn.GINEConv(nn.Sequential(nn.Linear(width, 32), nn.ReLU(), nn.Linear(32, 32)), edge_dim=4)

    def layers_of(width):
        import torch_geometric.nn
        return torch_geometric.nn.DNAConv(width, heads=4, groups=4, dropout=0.1, add_self_loops=False)

    def deep():
        import torch
        from torch import nn

        class Network(nn.Module):
            def __init__(self):
                super().__init__()
                self.before, self.layers, self.head = nn.Linear(32, 32), nn.ModuleList((layers_of(32), layers_of(32))), nn.Linear(32, 7)

            def forward(self, x):
                nodes, links = x
                y = torch.relu(self.before(nodes)).view(-1, 1, 32)
                for one in self.layers:
                    y = torch.cat([y, torch.relu(one(y, links)).view(-1, 1, 32)], 1)
                return self.head(y[:, -1])
        return Network()

    def light(width):
        import torch_geometric.nn
        return torch_geometric.nn.LGConv()

    def parts(width):
        import torch_geometric.nn
        return torch_geometric.nn.HypergraphConv(width, 32, use_attention=False, dropout=0.1)

    return {
        **languages("XGLMForCausalLM XGLMConfig", "BlenderbotSmallForCausalLM BlenderbotSmallConfig",
                    "Qwen3_5ForCausalLM Qwen3_5TextConfig", "GPTBigCodeForCausalLM GPTBigCodeConfig",
                    "GraniteMoeHybridForCausalLM GraniteMoeHybridConfig", "Data2VecTextForCausalLM Data2VecTextConfig",
                    "EuroBertForMaskedLM EuroBertConfig", "MiniMaxM2ForCausalLM MiniMaxM2Config",
                    "JinaEmbeddingsV3ForMaskedLM JinaEmbeddingsV3Config", "BailingHybridForCausalLM BailingHybridConfig",
                    "CwmForCausalLM CwmConfig"),
        "DenseGATConv": (graph(layer("DenseGATConv", heads=2, concat=False)), together(given(BATCH, 50, 32), given(BATCH, 50, 50)), ()),
        "DNAConv": (deep, together(*GRAPH), ()),
        "LGConv": (graph(light), together(*GRAPH), ()),
        "FeaStConv": (graph(layer("FeaStConv", heads=4, add_self_loops=False)), together(*GRAPH), ()),
        "GINEConv": (graph(edges), together(*GRAPH, given(800, 4)), ()),
        "HypergraphConv": (graph(parts), together(*GRAPH), ()),
        "EGConv": (graph(layer("EGConv", add_self_loops=False)), together(*GRAPH), ()),
        "TAGConv": (graph(layer("TAGConv")), together(*GRAPH), ()),
        "Pointer network": (pointer, values(24, 2), ()),
        "Bi-LSTM-CRF emissions": (emissions, together(words(20), lambda device: whole(BATCH, 20, 8, below=80)(device)), ()),
        "Phased LSTM": (phased, together(values(24, 8), values(24)), ()),
        "Neural ODE (RK4)": (differential, values(20), ()),
        "DeepAR": (autoregressive, together(values(48), values(48, 3), lambda device: whole(BATCH, below=50)(device)), ()),
        "RNN-T joint": (transducer, together(values(40, 40), words(12, 30)), ()),
        "STGCN": (roads, values(1, 12, 25), ()),
        "ESRNN": (smoothed, together(values(24), lambda device: whole(BATCH, below=40)(device)), ()),
        "GRU-D": (decaying, together(values(20, 12), values(20, 12), values(20, 12)), ()),
        "xLSTM (sLSTM)": (exponential, words(24), ()),
    }


def pooled_forecaster():
    """Challu et al. 2023: blocks see the series pooled at several rates, and interpolate what they forecast."""
    from torch import nn
    from torch.nn import functional as F

    class Block(nn.Module):
        def __init__(self, rate, given=96, ahead=24, width=64):
            super().__init__()
            self.pool, self.given, self.ahead = nn.MaxPool1d(rate, rate, ceil_mode=True), given, ahead
            self.body = nn.Sequential(nn.Linear(given // rate, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
            self.knots, self.back = nn.Linear(width, ahead // rate), nn.Linear(width, given)

        def forward(self, x):
            y = self.body(self.pool(x.unsqueeze(1)).squeeze(1))
            return self.back(y), F.interpolate(self.knots(y).unsqueeze(1), size=self.ahead, mode="linear").squeeze(1)

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList(Block(rate) for rate in (8, 4, 2))

        def forward(self, x):
            forecast = x[:, -1:]
            for block in self.blocks:
                back, ahead = block(x)
                x, forecast = x - back, forecast + ahead
            return forecast
    return Network()


def minimal_gates():
    """Feng et al. 2024: a GRU whose gates see no state, as sums along time in logarithms."""
    import torch
    from torch import nn
    from torch.nn import functional as F

    class Layer(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.norm, self.gate, self.new = nn.LayerNorm(width), nn.Linear(width, width), nn.Linear(width, width)
            self.down = nn.Linear(width, width)

        def forward(self, x):
            y = self.norm(x)
            k, new = self.gate(y), self.new(y)
            keep, value = -F.softplus(k), -F.softplus(-k) + torch.where(new >= 0, (F.relu(new) + 0.5).log(), -F.softplus(-new))
            total = torch.cumsum(keep, 1)
            return x + self.down((total + torch.logcumsumexp(value - total, 1)).exp())

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.words = nn.Embedding(500, 64)
            self.layers, self.head = nn.Sequential(Layer(64), Layer(64)), nn.Linear(64, 500)

        def forward(self, x):
            return self.head(self.layers(self.words(x)))
    return Network()


def deep_speech():
    """Amodei et al. 2016: convolutions over time and frequency, GRUs with batch norms between, a lookahead convolution."""
    import torch
    from torch import nn

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.front = nn.Sequential(nn.Conv2d(1, 8, (11, 5), (2, 2), (5, 2), bias=False), nn.BatchNorm2d(8), nn.Hardtanh(0, 20),
                                       nn.Conv2d(8, 8, (11, 5), (2, 1), (5, 2), bias=False), nn.BatchNorm2d(8), nn.Hardtanh(0, 20))
            self.layers = nn.ModuleList((nn.GRU(80, 64, bidirectional=True), nn.GRU(64, 64, bidirectional=True)))
            self.norm, self.head = nn.BatchNorm1d(64), nn.Linear(64, 30)

        def forward(self, x):
            y = self.front(x.unsqueeze(1))
            b, c, f, t = y.shape
            y = y.view(b, c * f, t).permute(2, 0, 1)
            for i, layer in enumerate(self.layers):
                if i > 0:
                    y = self.norm(y.reshape(t * b, -1)).view(t, b, -1)
                y, _ = layer(y)
                y = y.view(t, b, 2, -1).sum(2)
            return self.head(y)
    return Network()


def characters():
    """Shen et al. 2018: the encoder of a synthesizer, convolutions and an LSTM in both directions."""
    import torch
    from torch import nn
    from torch.nn import functional as F

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.letters = nn.Embedding(80, 64)
            self.convs = nn.ModuleList(nn.Sequential(nn.Conv1d(64, 64, 5, padding=2), nn.BatchNorm1d(64)) for _ in range(3))
            self.lstm, self.head = nn.LSTM(64, 32, batch_first=True, bidirectional=True), nn.Linear(64, 40)

        def forward(self, x):
            y = self.letters(x).transpose(1, 2)
            for conv in self.convs:
                y = F.dropout(F.relu(conv(y)), 0.5, self.training)
            y, _ = self.lstm(y.transpose(1, 2))
            return self.head(torch.tanh(y))
    return Network()


def both_times():
    """Lai et al. 2018: a convolution, a GRU, a GRU over every sixth step, and a linear part."""
    import torch
    from torch import nn

    class Network(nn.Module):
        def __init__(self, series=8, length=48, kernel=7, skip=6):
            super().__init__()
            self.conv, self.drop, self.skip = nn.Conv2d(1, 32, (kernel, series)), nn.Dropout(0.2), skip
            self.long, self.short = nn.GRU(32, 32), nn.GRU(32, 5)
            self.steps = (length - kernel) // skip
            self.mix, self.linear = nn.Linear(32 + skip * 5, series), nn.Linear(12, 1)

        def forward(self, x):
            b, _, series = x.shape
            c = self.drop(torch.relu(self.conv(x.unsqueeze(1)))).squeeze(3)
            r = self.drop(self.long(c.permute(2, 0, 1))[1].squeeze(0))
            s = c[:, :, -self.steps * self.skip:].reshape(b, 32, self.steps, self.skip).permute(2, 0, 3, 1)
            s = self.short(s.reshape(self.steps, b * self.skip, 32))[1].view(b, -1)
            y = self.mix(torch.cat((r, self.drop(s)), 1))
            return torch.sigmoid(y + self.linear(x[:, -12:].permute(0, 2, 1).reshape(-1, 12)).view(-1, series))
    return Network()


def second():
    """By seed 20261126, without what the first draw had: written down before any was exported, as the first."""
    def hops(name, **options):
        def make(width):
            import torch_geometric.nn
            return getattr(torch_geometric.nn, name)(width, **options)
        return make

    return {
        **languages("MarkupLMForSequenceClassification MarkupLMConfig", "CTRLLMHeadModel CTRLConfig",
                    "LayoutLMForMaskedLM LayoutLMConfig", "MoshiForCausalLM MoshiConfig"),
        "SuperGATConv": (graph(layer("SuperGATConv", heads=2, concat=False, add_self_loops=False, attention_type="SD",
                                     is_undirected=True)), together(*GRAPH), ()),
        "ChebConv": (graph(layer("ChebConv", K=3)), together(*GRAPH), ()),
        "GeneralConv": (graph(layer("GeneralConv")), together(*GRAPH), ()),
        "AGNNConv": (graph(lambda width: hops("AGNNConv", add_self_loops=False)(True)), together(*GRAPH), ()),
        "DenseGINConv": (graph(lambda width: hops("DenseGINConv")(__import__("torch").nn.Linear(width, 32))),
                         together(given(BATCH, 50, 32), given(BATCH, 50, 50)), ()),
        "SGConv": (graph(layer("SGConv", K=2, add_self_loops=False)), together(*GRAPH), ()),
        "FiLMConv": (graph(layer("FiLMConv")), together(*GRAPH), ()),
        "N-HiTS": (pooled_forecaster, values(96), ()),
        "minGRU": (minimal_gates, words(32), ()),
        "DeepSpeech 2": (deep_speech, values(40, 64), ()),
        "Tacotron 2 encoder": (characters, words(40, 80), ()),
        "LSTNet": (both_times, values(48, 8), ()),
    }


def linear_attention():
    """Katharopoulos et al. 2020: sums along time in place of a softmax over pairs."""
    import torch
    from torch import nn
    from torch.nn import functional as F

    class Layer(nn.Module):
        def __init__(self, width, heads=4):
            super().__init__()
            self.heads, self.given, self.out = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.norms = nn.ModuleList((nn.LayerNorm(width), nn.LayerNorm(width)))
            self.up, self.down, self.drop = nn.Linear(width, 4 * width), nn.Linear(4 * width, width), nn.Dropout(0.1)

        def attend(self, x):
            b, n, width = x.shape
            q, k, v = self.given(x).view(b, n, 3, self.heads, -1).unbind(2)
            q, k = F.elu(q) + 1, F.elu(k) + 1
            states = torch.cumsum(torch.einsum("bnhd,bnhe->bnhde", k, v), 1)
            below = torch.einsum("bnhd,bnhd->bnh", q, torch.cumsum(k, 1)) + 1e-6
            y = torch.einsum("bnhd,bnhde->bnhe", q, states) / below.unsqueeze(3)
            return self.out(y.reshape(b, n, width))

        def forward(self, x):
            x = self.norms[0](x + self.drop(self.attend(x)))
            return self.norms[1](x + self.drop(self.down(F.gelu(self.up(x)))))

    class Network(nn.Module):
        def __init__(self, width=64):
            super().__init__()
            self.words, self.places = nn.Embedding(500, width), nn.Parameter(torch.randn(48, width) * 0.02)
            self.layers, self.head = nn.ModuleList((Layer(width), Layer(width))), nn.Linear(width, 500)

        def forward(self, x):
            x = self.words(x) + self.places[:x.shape[1]]
            for layer in self.layers:
                x = layer(x)
            return self.head(x)
    return Network()


def sets():
    """Lee et al. 2019: attention between the members of a set by way of points that are trained."""
    import torch
    from torch import nn

    class Pair(nn.Module):
        def __init__(self, width, heads=4):
            super().__init__()
            self.heads, self.drops = heads, nn.LayerNorm(width)
            self.q, self.k, self.v, self.o = (nn.Linear(width, width) for _ in range(4))
            self.norm = nn.LayerNorm(width)

        def forward(self, x, y):
            q, k, v = self.q(x), self.k(y), self.v(y)
            size = q.shape[2] // self.heads
            q_, k_, v_ = (torch.cat(t.split(size, 2), 0) for t in (q, k, v))
            a = torch.softmax(q_.bmm(k_.transpose(1, 2)) / q.shape[2] ** 0.5, 2)
            o = self.drops(torch.cat((q_ + a.bmm(v_)).split(q.shape[0], 0), 2))
            return self.norm(o + torch.relu(self.o(o)))

    class Induced(nn.Module):
        def __init__(self, width, points):
            super().__init__()
            self.points = nn.Parameter(torch.randn(1, points, width))
            self.first, self.second = Pair(width), Pair(width)

        def forward(self, x):
            return self.second(x, self.first(self.points.repeat(x.shape[0], 1, 1), x))

    class Network(nn.Module):
        def __init__(self, width=64):
            super().__init__()
            self.embed, self.blocks = nn.Linear(3, width), nn.Sequential(Induced(width, 16), Induced(width, 16))
            self.seeds, self.pool, self.head = nn.Parameter(torch.randn(1, 4, width)), Pair(width), nn.Linear(width, 10)

        def forward(self, x):
            y = self.blocks(self.embed(x))
            return self.head(self.pool(self.seeds.repeat(x.shape[0], 1, 1), y)).mean(1)
    return Network()


def tracing():
    """Piech et al. 2015: an LSTM over what was answered says which question comes out right next."""
    import torch
    from torch import nn

    class Network(nn.Module):
        def __init__(self, skills=60, width=64):
            super().__init__()
            self.skills, self.answers = skills, nn.Embedding(2 * skills, width)
            self.lstm, self.drop, self.head = nn.LSTM(width, 100, batch_first=True), nn.Dropout(0.2), nn.Linear(100, skills)

        def forward(self, x):
            skill, right = x
            y, _ = self.lstm(self.answers(skill + self.skills * right))
            return torch.sigmoid(self.head(self.drop(y)))
    return Network()


def nested():
    """Moniz and Krueger 2017: the memory of an LSTM is an LSTM itself."""
    import torch
    from torch import nn

    class Cell(nn.Module):
        def __init__(self, width, out):
            super().__init__()
            self.given, self.own = nn.Linear(width, 4 * out), nn.Linear(out, 4 * out, bias=False)
            self.inner_given, self.inner_own = nn.Linear(out, 4 * out), nn.Linear(out, 4 * out, bias=False)

        def forward(self, x, state):
            h, c, memory = state
            i, f, o, g = (self.given(x) + self.own(h)).chunk(4, 1)
            own, given = torch.sigmoid(f) * c, torch.sigmoid(i) * torch.tanh(g)
            i, f, p, g = (self.inner_given(given) + self.inner_own(own)).chunk(4, 1)
            memory = torch.sigmoid(f) * memory + torch.sigmoid(i) * torch.tanh(g)
            c = torch.sigmoid(p) * torch.tanh(memory)
            return torch.sigmoid(o) * torch.tanh(c), c, memory

    class Network(nn.Module):
        def __init__(self, width=48):
            super().__init__()
            self.words, self.cells = nn.Embedding(200, 32), nn.ModuleList((Cell(32, width), Cell(width, width)))
            self.head, self.width = nn.Linear(width, 200), width

        def forward(self, x):
            words = self.words(x)
            states = [[torch.zeros(x.shape[0], self.width, device=x.device) for _ in range(3)] for _ in self.cells]
            results = torch.zeros(x.shape[0], x.shape[1], self.width, device=x.device)
            for t in range(x.shape[1]):
                y = words[:, t]
                for i, cell in enumerate(self.cells):
                    states[i] = cell(y, states[i])
                    y = states[i][0]
                results[:, t] = y
            return self.head(results)
    return Network()


def jasper():
    """Li et al. 2019: blocks of convolutions along time, whose shortcuts come from all blocks before."""
    from torch import nn

    def part(width, out, kernel, stride=1):
        return nn.Sequential(nn.Conv1d(width, out, kernel, stride, kernel // 2, bias=False), nn.BatchNorm1d(out))

    class Block(nn.Module):
        def __init__(self, widths, out, kernel, parts=3):
            super().__init__()
            self.parts = nn.ModuleList(part(widths[-1] if i == 0 else out, out, kernel) for i in range(parts))
            self.shortcuts = nn.ModuleList(part(width, out, 1) for width in widths)
            self.act, self.drop = nn.ReLU(), nn.Dropout(0.2)

        def forward(self, earlier):
            y = earlier[-1]
            for conv in self.parts[:-1]:
                y = self.drop(self.act(conv(y)))
            y = self.parts[-1](y)
            for x, shortcut in zip(earlier, self.shortcuts):
                y = y + shortcut(x)
            return earlier + [self.drop(self.act(y))]

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.front = nn.Sequential(part(40, 48, 11, 2), nn.ReLU(), nn.Dropout(0.2))
            self.blocks = nn.ModuleList((Block((48,), 48, 11), Block((48, 48), 64, 13), Block((48, 48, 64), 80, 17)))
            self.last, self.head = nn.Sequential(part(80, 96, 1), nn.ReLU(), nn.Dropout(0.3)), nn.Conv1d(96, 30, 1)

        def forward(self, x):
            earlier = [self.front(x)]
            for block in self.blocks:
                earlier = block(earlier)
            return self.head(self.last(earlier[-1]))
    return Network()


def independent():
    """Li et al. 2018: each unit of a recurrent layer sees its own state alone; batch norms stand between layers."""
    import torch
    from torch import nn

    class Layer(nn.Module):
        def __init__(self, width, out):
            super().__init__()
            self.given, self.own, self.norm = nn.Linear(width, out), nn.Parameter(torch.rand(out)), nn.BatchNorm1d(out)

        def forward(self, x):
            given, states = self.given(x), []
            h = torch.zeros_like(given[0])
            for step in given.unbind(0):
                h = torch.relu(step + self.own * h)
                states.append(h)
            return self.norm(torch.stack(states).permute(1, 2, 0)).permute(2, 0, 1)

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers, self.head = nn.Sequential(Layer(6, 64), Layer(64, 64), Layer(64, 64)), nn.Linear(64, 10)

        def forward(self, x):
            return self.head(self.layers(x.transpose(0, 1))[-1])
    return Network()


def third():
    """By seed 20261127, as second(): written down before any was exported."""
    def edges(width):
        import torch_geometric.nn
        from torch import nn
        return torch_geometric.nn.EdgeConv(nn.Sequential(nn.Linear(2 * width, 32), nn.ReLU(), nn.Linear(32, 32)))

    def simple(_):
        import torch_geometric.nn
        return torch_geometric.nn.SimpleConv()

    def teleported(_):
        import torch_geometric.nn
        return torch_geometric.nn.APPNP(4, 0.1, add_self_loops=False)

    return {
        **languages("HunYuanMoEV1ForCausalLM HunYuanMoEV1Config", "CpmAntForCausalLM CpmAntConfig",
                    "NystromformerForMaskedLM NystromformerConfig", "NeoMMEForMaskedLM NeoMMEConfig",
                    "JetMoeForCausalLM JetMoeConfig", "HeliumForCausalLM HeliumConfig", "ZayaForCausalLM ZayaConfig"),
        "EdgeConv": (graph(edges), together(*GRAPH), ()),
        "SimpleConv": (graph(simple), together(*GRAPH), ()),
        "GATv2Conv": (graph(layer("GATv2Conv", heads=2, concat=False, add_self_loops=False)), together(*GRAPH), ()),
        "APPNP": (graph(teleported), together(*GRAPH), ()),
        "Linear Transformer": (linear_attention, words(48), ()),
        "Set Transformer": (sets, values(60, 3), ()),
        "DKT": (tracing, together(words(30, 60), words(30, 2)), ()),
        "Nested LSTM": (nested, words(16, 200), ()),
        "Jasper": (jasper, values(40, 96), ()),
        "IndRNN": (independent, values(24, 6), ()),
    }
