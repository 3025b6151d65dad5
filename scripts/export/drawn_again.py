"""Networks of language, speech, graphs, series and papers for default_exports.py that stood in no table: drawn by seeds.

Candidates were names that stood in no script, document or truth file here, sorted, then shuffled: transformers' language
tasks by random.Random(20261201), its speech tasks by 20261202, torch_geometric by 20261204, the PAPERS below by 20261205.
fourth() has the first ones of each list, fifth() the next ones; both were written down before any was exported. Left out in
that order: what needs other inputs than tokens, values or a graph, what could not be built at this size or has over 20
million parameters, and what selects edges by values.
"""

from drawn_families import languages, speech
from drawn_parts import GRAPH, given, graph, layer, together, whole
from fresh_networks import BATCH, values

PAPERS = ("BiDAF", "ContextNet", "DCRNN", "DLinear", "ELMo", "GGNN", "Graph WaveNet", "HGRN", "Informer", "Mogrifier LSTM",
          "QuartzNet", "RWKV", "RetNet", "SRU", "SegRNN", "TFT", "TPA-LSTM", "TiDE", "Universal Transformer", "iTransformer")


def words(length, below=500):
    return whole(BATCH, length, below=below)


def gated_graph():
    """Li et al. 2016: messages along edges of two kinds, and a GRU cell at each node, several times."""
    import torch
    from torch import nn

    class Network(nn.Module):
        def __init__(self, width=48, steps=4):
            super().__init__()
            self.steps, self.begin = steps, nn.Linear(32, width)
            self.out, self.back = nn.Linear(width, width), nn.Linear(width, width)
            self.cell, self.gate, self.head = nn.GRUCell(2 * width, width), nn.Linear(width + 32, 7), nn.Linear(width, 7)

        def forward(self, x):
            nodes, edges = x
            h = torch.tanh(self.begin(nodes))
            for _ in range(self.steps):
                forth = torch.zeros_like(h).index_add(0, edges[1], self.out(h)[edges[0]])
                back = torch.zeros_like(h).index_add(0, edges[0], self.back(h)[edges[1]])
                h = self.cell(torch.cat([forth, back], 1), h)
            return torch.sigmoid(self.gate(torch.cat([h, nodes], 1))) * torch.tanh(self.head(h))
    return Network()


def fusion_transformer():
    """Lim et al. 2021: gated residual networks choose variables, an LSTM reads the past, attention looks back over it."""
    import torch
    from torch import nn
    from torch.nn import functional as F

    class Gated(nn.Module):
        def __init__(self, width, out):
            super().__init__()
            self.first, self.second, self.gate = nn.Linear(width, out), nn.Linear(out, out), nn.Linear(out, 2 * out)
            self.skip = nn.Linear(width, out) if width != out else nn.Identity()
            self.drop, self.norm = nn.Dropout(0.1), nn.LayerNorm(out)

        def forward(self, x):
            y = self.second(F.elu(self.first(x)))
            return self.norm(self.skip(x) + F.glu(self.gate(self.drop(y)), -1))

    class Selection(nn.Module):
        def __init__(self, variables, width):
            super().__init__()
            self.weights = Gated(variables * width, variables)
            self.each = nn.ModuleList(Gated(width, width) for _ in range(variables))

        def forward(self, x):
            weights = torch.softmax(self.weights(x.flatten(2)), -1).unsqueeze(-1)
            each = torch.stack([network(x[:, :, i]) for i, network in enumerate(self.each)], 2)
            return (weights * each).sum(2)

    class Network(nn.Module):
        def __init__(self, variables=6, width=32, heads=4, ahead=12):
            super().__init__()
            self.heads, self.ahead = heads, ahead
            self.embed = nn.ModuleList(nn.Linear(1, width) for _ in range(variables))
            self.select, self.lstm = Selection(variables, width), nn.LSTM(width, width, batch_first=True)
            self.gate, self.norm = nn.Linear(width, 2 * width), nn.LayerNorm(width)
            self.q, self.k, self.v = nn.Linear(width, width), nn.Linear(width, width), nn.Linear(width, width // heads)
            self.out, self.last, self.head = nn.Linear(width // heads, width), Gated(width, width), nn.Linear(width, 3)

        def forward(self, x):
            x = self.select(torch.stack([embed(x[:, :, i:i + 1]) for i, embed in enumerate(self.embed)], 2))
            y, _ = self.lstm(x)
            x = self.norm(x + F.glu(self.gate(y), -1))
            b, n, width = x.shape
            q = self.q(x).view(b, n, self.heads, -1).transpose(1, 2)
            k = self.k(x).view(b, n, self.heads, -1).transpose(1, 2)
            mask = torch.ones(n, n, dtype=torch.bool, device=x.device).triu(1)
            scores = (q @ k.transpose(2, 3) / (width // self.heads) ** 0.5).masked_fill(mask, -1e9)
            y = (torch.softmax(scores, -1) @ self.v(x).unsqueeze(1)).mean(1)
            return self.head(self.last(x + self.out(y))[:, -self.ahead:])
    return Network()


def graph_wavenet():
    """Wu et al. 2019: gated dilated convolutions along time, and diffusion over a graph that is learned."""
    import torch
    from torch import nn

    class Network(nn.Module):
        def __init__(self, nodes=20, width=16, layers=4):
            super().__init__()
            self.start = nn.Conv2d(2, width, 1)
            self.left, self.right = nn.Parameter(torch.randn(nodes, 8)), nn.Parameter(torch.randn(8, nodes))
            self.register_buffer("support", torch.softmax(torch.rand(nodes, nodes), 1))
            self.filters = nn.ModuleList(nn.Conv2d(width, width, (1, 2), dilation=2 ** (i % 2)) for i in range(layers))
            self.gates = nn.ModuleList(nn.Conv2d(width, width, (1, 2), dilation=2 ** (i % 2)) for i in range(layers))
            self.mixes = nn.ModuleList(nn.Conv2d(5 * width, width, 1) for _ in range(layers))
            self.skips = nn.ModuleList(nn.Conv2d(width, 4 * width, 1) for _ in range(layers))
            self.norms = nn.ModuleList(nn.BatchNorm2d(width) for _ in range(layers))
            self.first, self.second = nn.Conv2d(4 * width, 8 * width, 1), nn.Conv2d(8 * width, 12, 1)
            self.drop = nn.Dropout(0.3)

        def forward(self, x):
            learned = torch.softmax(torch.relu(self.left @ self.right), 1)
            x, skip = self.start(x), 0
            for conv, gate, mix, step, norm in zip(self.filters, self.gates, self.mixes, self.skips, self.norms):
                before = x
                x = torch.tanh(conv(x)) * torch.sigmoid(gate(x))
                s = step(x)
                skip = s if isinstance(skip, int) else skip[..., -s.shape[3]:] + s
                out = [x]
                for a in (self.support, learned):
                    y = torch.einsum("ncvl,vw->ncwl", x, a).contiguous()
                    out += [y, torch.einsum("ncvl,vw->ncwl", y, a).contiguous()]
                x = self.drop(mix(torch.cat(out, 1)))
                x = norm(x + before[..., -x.shape[3]:])
            return self.second(torch.relu(self.first(torch.relu(skip))))
    return Network()


def decomposed():
    """Zeng et al. 2023: a moving average and what is left of it have a linear layer each, for each variable."""
    import torch
    from torch import nn

    class Network(nn.Module):
        def __init__(self, given=96, ahead=24, variables=7, kernel=25):
            super().__init__()
            self.kernel, self.mean = kernel, nn.AvgPool1d(kernel, 1)
            self.trends = nn.ModuleList(nn.Linear(given, ahead) for _ in range(variables))
            self.seasons = nn.ModuleList(nn.Linear(given, ahead) for _ in range(variables))

        def forward(self, x):
            half = (self.kernel - 1) // 2
            padded = torch.cat([x[:, :1].repeat(1, half, 1), x, x[:, -1:].repeat(1, half, 1)], 1)
            trend = self.mean(padded.permute(0, 2, 1)).permute(0, 2, 1)
            season = (x - trend).permute(0, 2, 1)
            trend = trend.permute(0, 2, 1)
            result = torch.zeros(x.shape[0], x.shape[2], 24, device=x.device)
            for i in range(x.shape[2]):
                result[:, i] = self.seasons[i](season[:, i]) + self.trends[i](trend[:, i])
            return result.permute(0, 2, 1)
    return Network()


def pattern_attention():
    """Shih et al. 2019: convolutions find patterns in an LSTM's states, which the last state looks at."""
    import torch
    from torch import nn
    from torch.nn import functional as F

    class Network(nn.Module):
        def __init__(self, variables=8, width=48, filters=16, given=24):
            super().__init__()
            self.begin, self.lstm = nn.Linear(variables, width), nn.LSTM(width, width, 2, batch_first=True)
            self.patterns, self.score = nn.Conv2d(1, filters, (1, given - 1)), nn.Linear(width, filters)
            self.left, self.right, self.head = nn.Linear(filters, width), nn.Linear(width, width), nn.Linear(width, variables)

        def forward(self, x):
            states, (h, _) = self.lstm(torch.relu(self.begin(x)))
            last = h[-1]
            found = F.relu(self.patterns(states[:, :-1].permute(0, 2, 1).unsqueeze(1))).squeeze(3).permute(0, 2, 1)
            weights = torch.sigmoid(torch.bmm(found, self.score(last).unsqueeze(2)))
            context = (weights * found).sum(1)
            return self.head(self.left(context) + self.right(last))
    return Network()


def segments():
    """Lin et al. 2023: a GRU reads segments of a series, and one step for each segment ahead, all at once."""
    import torch
    from torch import nn

    class Network(nn.Module):
        def __init__(self, variables=7, width=64, given=96, ahead=48, length=12):
            super().__init__()
            self.length, self.ahead, self.width = length, ahead, width
            self.embed, self.gru = nn.Sequential(nn.Linear(length, width), nn.ReLU()), nn.GRU(width, width, batch_first=True)
            self.places = nn.Parameter(torch.randn(ahead // length, width // 2))
            self.channels = nn.Parameter(torch.randn(variables, width // 2))
            self.head = nn.Sequential(nn.Dropout(0.5), nn.Linear(width, length))

        def forward(self, x):
            b, n, c = x.shape
            last = x[:, -1:].detach()
            y = (x - last).permute(0, 2, 1).reshape(-1, n // self.length, self.length)
            _, h = self.gru(self.embed(y))
            steps = self.ahead // self.length
            asked = torch.cat([self.places.unsqueeze(0).repeat(c, 1, 1), self.channels.unsqueeze(1).repeat(1, steps, 1)], -1)
            asked = asked.view(-1, 1, self.width).repeat(b, 1, 1)
            _, y = self.gru(asked, h.repeat(1, 1, steps).view(1, -1, self.width))
            return self.head(y).view(-1, c, self.ahead).permute(0, 2, 1) + last
    return Network()


def universal():
    """Dehghani et al. 2019: one layer of a transformer runs again and again, with signals of place and time."""
    import math
    import torch
    from torch import nn

    def signal(length, width, offset=0):
        places = torch.arange(offset, offset + length).float().unsqueeze(1)
        rates = torch.exp(torch.arange(width // 2) * -(math.log(10000) / (width // 2 - 1)))
        return torch.cat([torch.sin(places * rates), torch.cos(places * rates)], 1)

    class Layer(nn.Module):
        def __init__(self, width, heads=4):
            super().__init__()
            self.heads = heads
            self.q, self.k, self.v, self.out = (nn.Linear(width, width, bias=False) for _ in range(4))
            self.first, self.second, self.drop = nn.LayerNorm(width), nn.LayerNorm(width), nn.Dropout(0.1)
            self.change = nn.Sequential(nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width))

        def forward(self, x):
            b, n, width = x.shape
            y = self.first(x)
            q, k, v = (layer(y).view(b, n, self.heads, -1).transpose(1, 2) for layer in (self.q, self.k, self.v))
            weights = self.drop(torch.softmax(torch.matmul(q * (width // self.heads) ** -0.5, k.transpose(2, 3)), -1))
            x = x + self.drop(self.out(torch.matmul(weights, v).transpose(1, 2).contiguous().view(b, n, width)))
            return x + self.drop(self.change(self.second(x)))

    class Network(nn.Module):
        def __init__(self, width=64, length=40, steps=4):
            super().__init__()
            self.words, self.layer, self.steps = nn.Embedding(500, width), Layer(width), steps
            self.register_buffer("places", signal(length, width))
            self.register_buffer("times", signal(steps, width))
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 500)

        def forward(self, x):
            x = self.words(x)
            for i in range(self.steps):
                x = x + self.places[:x.shape[1]]
                x = x + self.times[i]
                x = self.layer(x)
            return self.head(self.norm(x))
    return Network()


def contextual():
    """Peters et al. 2018: convolutions of characters, LSTMs of both directions apart, layers mixed by trained weights."""
    import torch
    from torch import nn

    class Network(nn.Module):
        def __init__(self, width=64):
            super().__init__()
            self.letters = nn.Embedding(80, 16)
            self.convs = nn.ModuleList((nn.Conv1d(16, 32, 2), nn.Conv1d(16, 32, 3), nn.Conv1d(16, 32, 4)))
            self.highways = nn.ModuleList((nn.Linear(96, 192), nn.Linear(96, 192)))
            self.project = nn.Linear(96, width)
            self.forth = nn.ModuleList((nn.LSTM(width, width, batch_first=True), nn.LSTM(width, width, batch_first=True)))
            self.back = nn.ModuleList((nn.LSTM(width, width, batch_first=True), nn.LSTM(width, width, batch_first=True)))
            self.mix, self.scale = nn.Parameter(torch.rand(3)), nn.Parameter(torch.ones(1))
            self.drop, self.head = nn.Dropout(0.2), nn.Linear(2 * width, 20)

        def forward(self, x):
            b, n, k = x.shape
            letters = self.letters(x.view(b * n, k)).transpose(1, 2)
            y = torch.cat([torch.relu(conv(letters).max(2)[0]) for conv in self.convs], 1)
            for highway in self.highways:
                changed, gate = highway(y).chunk(2, 1)
                gate = torch.sigmoid(gate)
                y = gate * y + (1 - gate) * torch.relu(changed)
            y = self.project(y).view(b, n, -1)
            layers, left, right = [torch.cat([y, y], 2)], y, y.flip(1)
            for forth, back in zip(self.forth, self.back):
                left, right = self.drop(forth(left)[0]), self.drop(back(right)[0])
                layers.append(torch.cat([left, right.flip(1)], 2))
            weights = torch.softmax(self.mix, 0)
            return self.head(self.drop(self.scale * sum(w * h for w, h in zip(weights, layers))))
    return Network()


def dense():
    """A batch of small graphs by their matrices."""
    return together(given(BATCH, 50, 32), given(BATCH, 50, 50))


def directed(width):
    import torch_geometric.nn as nn
    return nn.DirGNNConv(nn.SAGEConv(width, 32))


def antisymmetric(width):
    import torch_geometric.nn as nn
    return nn.AntiSymmetricConv(width, nn.SAGEConv(width, width), num_iters=2)


def perceptron(*widths):
    from torch import nn
    layers = []
    for before, after in zip(widths, widths[1:]):
        layers += [nn.Linear(before, after), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def points(width):
    import torch_geometric.nn as nn
    return nn.PointNetConv(perceptron(width + 3, 32, 32), perceptron(32, 32), add_self_loops=False)


def moved_points(width):
    import torch_geometric.nn as nn
    return nn.PointGNNConv(perceptron(width, 16, 3), perceptron(width + 3, 32, 32), perceptron(32, 32))


def conformer():
    """GraniteSpeech 5.0's encoder with a head for letters."""
    return speech("GraniteSpeech5ForCTC", "GraniteSpeech5CTCConfig", vocab_size=30, pad_token_id=29, encoder_config={
        "hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 128, "num_mel_bins": 40,
        "vocab_size": 30, "max_position_embeddings": 64, "context_size": 16, "subsample_layers": [1]})()


def streaming():
    """Moonshine's streaming encoder, of which attention sees a window."""
    import transformers
    from torch import nn

    class Encoder(nn.Module):
        def __init__(self):
            super().__init__()
            sizes = {"hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 4, "intermediate_size": 128}
            config = transformers.MoonshineStreamingConfig(vocab_size=100, num_hidden_layers=1, **sizes,
                                                           encoder_config={**sizes, "num_hidden_layers": 3})
            self.network = transformers.MoonshineStreamingForConditionalGeneration(config).model.encoder

        def forward(self, x):
            return self.network(x, return_dict=True).last_hidden_state
    return Encoder()


FEATURES = (given(200, 32), given(200, 3), whole(2, 800, below=200))


def fourth():
    """The first ones; RoCBert has 13.6 million parameters, as its table of pronunciations has one size."""
    return {
        **languages("RobertaPreLayerNormForCausalLM RobertaPreLayerNormConfig", "HunYuanDenseV1ForCausalLM HunYuanDenseV1Config",
                    "ApertusForCausalLM ApertusConfig", "LlamaForCausalLM IQuestCoderConfig", "AriaTextForCausalLM AriaTextConfig",
                    "PLBartForCausalLM PLBartConfig", "SmolLM3ForCausalLM SmolLM3Config", "LlamaForCausalLM InternLM3Config",
                    "GraniteMoeSharedForCausalLM GraniteMoeSharedConfig", "OpenAIGPTLMHeadModel OpenAIGPTConfig",
                    "BitNetForCausalLM BitNetConfig", "RoCBertForCausalLM RoCBertConfig", "BambaForCausalLM BambaConfig"),
        "GraniteSpeech5": (conformer, values(96, 160), ()),
        "DenseSAGEConv": (graph(layer("DenseSAGEConv")), dense(), ()),
        "DirGNNConv": (graph(directed), together(*GRAPH), ()),
        "PDNConv": (graph(layer("PDNConv", 4, 16, add_self_loops=False)), together(*GRAPH, given(800, 4)), ()),
        "AntiSymmetricConv": (graph(antisymmetric), together(*GRAPH), ()),
        "PointNetConv": (graph(points), together(*FEATURES), ()),
        "GGNN": (gated_graph, together(*GRAPH), ()),
        "TFT": (fusion_transformer, values(36, 6), ()),
        "Graph WaveNet": (graph_wavenet, values(2, 20, 13), ()),
        "DLinear": (decomposed, values(96, 7), ()),
    }


def fifth():
    """The next ones."""
    return {
        **languages("Exaone4ForCausalLM Exaone4Config", "IBertForMaskedLM IBertConfig", "DeepseekV4ForCausalLM DeepseekV4Config",
                    "TrOCRForCausalLM TrOCRConfig", "HyperCLOVAXForCausalLM HyperCLOVAXConfig",
                    "DiffLlamaForCausalLM DiffLlamaConfig", "GraniteMoeSWAForCausalLM GraniteMoeSWAConfig",
                    "JambaForCausalLM JambaConfig", "FlintForCausalLM FlintConfig", "GptOssForCausalLM GptOssConfig",
                    "NanoChatForCausalLM NanoChatConfig"),
        "MoonshineStreaming encoder": (streaming, values(4000), ()),
        "PointGNNConv": (graph(moved_points), together(*FEATURES), ()),
        "MixHopConv": (graph(layer("MixHopConv", add_self_loops=False), 96), together(*GRAPH), ()),
        "HEATConv": (graph(layer("HEATConv", 2, 3, 8, 4, 8, heads=2, concat=False)),
                     together(*GRAPH, whole(200, below=2), whole(800, below=3), given(800, 4)), ()),
        "ARMAConv": (graph(layer("ARMAConv", num_stacks=2, num_layers=2)), together(*GRAPH), ()),
        "TPA-LSTM": (pattern_attention, values(24, 8), ()),
        "SegRNN": (segments, values(96, 7), ()),
        "Universal Transformer": (universal, words(40), ()),
        "ELMo": (contextual, whole(BATCH, 12, 6, below=80), ()),
    }
