"""Networks of sequences for default_exports.py: drawn by a seed from the transformers library, and written from their papers.

`drawn(SEED, ...)` shuffles the model types of the library's tasks and leaves out those that another table here has. All get
one small configuration: of TINY what their configuration class knows. The lists below are what was drawn and could be built.
"""

import random

from fresh_networks import BATCH, tokens, values

TINY = {
    **dict.fromkeys(("hidden_size", "d_model", "n_embd", "embedding_size", "emb_dim", "projection_dim", "dim",
                     "num_mel_bins_out"), 64),
    **dict.fromkeys(("num_hidden_layers", "num_layers", "n_layer", "n_layers", "encoder_layers", "decoder_layers",
                     "num_decoder_layers", "num_encoder_layers"), 2),
    **dict.fromkeys(("num_attention_heads", "num_heads", "n_head", "n_heads", "encoder_attention_heads",
                     "decoder_attention_heads"), 4),
    **dict.fromkeys(("intermediate_size", "d_ff", "encoder_ffn_dim", "decoder_ffn_dim", "ffn_dim"), 128),
    **dict.fromkeys(("num_key_value_heads",), 2),
    **dict.fromkeys(("head_dim", "d_kv", "kv_channels"), 16),
    **dict.fromkeys(("max_position_embeddings", "n_positions", "max_seq_len"), 64),
    "vocab_size": 500, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
    "num_feat_extract_layers": 3, "num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 4,
    "conv_dim": (32, 32, 32), "conv_stride": (5, 4, 4), "conv_kernel": (10, 4, 4), "apply_spec_augment": False,
    "layerdrop": 0.0, "encoder_layerdrop": 0.0, "decoder_layerdrop": 0.0, "num_labels": 10, "use_cache": False,
}
TASKS = ("CAUSAL_LM", "MASKED_LM", "SEQ_TO_SEQ_CAUSAL_LM", "SEQUENCE_CLASSIFICATION")


def small(config_class):
    """A configuration with what it knows of TINY."""
    known = config_class()
    return config_class(**{key: value for key, value in TINY.items() if hasattr(known, key)})


def drawn(seed, used, tasks=TASKS):
    """All (model type, class) of the tasks in the order of the seed; `used`: text of what is not fresh any more."""
    from transformers.models.auto import configuration_auto, modeling_auto
    found = {}
    for task in tasks:
        for kind, name in getattr(modeling_auto, f"MODEL_FOR_{task}_MAPPING_NAMES").items():
            config = configuration_auto.CONFIG_MAPPING_NAMES.get(kind)
            if config is not None and f'"{config}"' not in used and isinstance(name, str):
                found.setdefault(kind, (name, config))
    order = sorted(found)
    random.Random(seed).shuffle(order)
    return [(kind, *found[kind]) for kind in order]


def transformer(model, config, key="logits"):
    def make():
        import transformers
        from torch import nn

        class Picked(nn.Module):
            def __init__(self):
                super().__init__()
                self.network = getattr(transformers, model)(small(getattr(transformers, config)))

            def forward(self, x):
                return self.network(x, return_dict=True)[key]
        return Picked()
    return make


def library():
    """What the seed 1122 gave: of the language tasks, and of speech, in this order."""
    words, waves = (
        (tokens(), ("Ernie4_5_MoeForCausalLM Ernie4_5_MoeConfig", "SeedOssForCausalLM SeedOssConfig",
                    "Lfm2ForCausalLM Lfm2Config", "MiniMaxM3VLForCausalLM MiniMaxM3VLTextConfig",
                    "OlmoForCausalLM OlmoConfig", "Jais2ForCausalLM Jais2Config",
                    "FlaubertWithLMHeadModel FlaubertConfig", "RemBertForCausalLM RemBertConfig",
                    "MegatronBertForCausalLM MegatronBertConfig", "PersimmonForCausalLM PersimmonConfig",
                    "CamembertForCausalLM CamembertConfig", "LongformerForMaskedLM LongformerConfig",
                    "RecurrentGemmaForCausalLM RecurrentGemmaConfig", "Glm4ForCausalLM Glm4Config",
                    "DogeForCausalLM DogeConfig", "XLMRobertaXLForCausalLM XLMRobertaXLConfig",
                    "BlenderbotForCausalLM BlenderbotConfig", "GraniteMoeForCausalLM GraniteMoeConfig")),
        (values(4000), ("UniSpeechSatForCTC UniSpeechSatConfig", "SEWDForCTC SEWDConfig")))
    table = {}
    for inputs, names in (words, waves):
        for name in names:
            model, config = name.split()
            table[config[:-len("Config")]] = (transformer(model, config), inputs, ())
    return table


def time_series():
    import transformers
    from torch import nn

    class Mixer(nn.Module):
        def __init__(self):
            super().__init__()
            self.network = transformers.PatchTSMixerForPrediction(transformers.PatchTSMixerConfig(
                context_length=96, patch_length=8, patch_stride=8, prediction_length=16, num_input_channels=3, d_model=32,
                num_layers=2, mode="mix_channel", gated_attn=True, scaling="std"))

        def forward(self, x):
            return self.network(x, return_dict=True).prediction_outputs
    return Mixer()


def image_and_text():
    import torch
    import transformers
    from torch import nn
    part = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128}

    class Pairs(nn.Module):
        def __init__(self):
            super().__init__()
            self.network = transformers.SiglipModel(transformers.SiglipConfig(
                text_config={**part, "vocab_size": 500, "max_position_embeddings": 16, "projection_size": 64},
                vision_config={**part, "image_size": 64, "patch_size": 16}))
            self.register_buffer("words", torch.arange(BATCH * 16).reshape(BATCH, 16))

        def forward(self, x):
            return self.network(input_ids=self.words, pixel_values=x, return_dict=True).logits_per_image
    return Pairs()


def sequence_to_sequence():
    import torch
    from torch import nn

    class Translator(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.positions = nn.Embedding(500, 64), nn.Parameter(torch.randn(48, 64))
            self.body = nn.Transformer(64, 4, 2, 2, 128, batch_first=True)
            self.head = nn.Linear(64, 500)
            self.register_buffer("given", torch.arange(BATCH * 32).reshape(BATCH, 32))
            self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(32))

        def forward(self, x):
            source = self.words(x) * 8 + self.positions
            target = self.words(self.given) * 8 + self.positions[:32]
            return self.head(self.body(source, target, tgt_mask=self.mask, tgt_is_causal=True))
    return Translator()


def tagger():
    from torch import nn

    class Tagger(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.drop = nn.Embedding(500, 64), nn.Dropout(0.3)
            self.body = nn.LSTM(64, 64, 2, batch_first=True, bidirectional=True, dropout=0.2)
            self.attention, self.norm = nn.MultiheadAttention(128, 4, batch_first=True), nn.LayerNorm(128)
            self.head = nn.Linear(128, 17)

        def forward(self, x):
            states, _ = self.body(self.drop(self.words(x)))
            seen, _ = self.attention(states, states, states, need_weights=False)
            return self.head(self.norm(states + seen))
    return Tagger()


def temporal():
    """Bai et al. 2018: dilated causal convolutions with weight norm, cut to length."""
    from torch import nn
    from torch.nn.utils.parametrizations import weight_norm

    class Cut(nn.Module):
        def __init__(self, behind):
            super().__init__()
            self.behind = behind

        def forward(self, x):
            return x[:, :, :-self.behind].contiguous()

    class Block(nn.Module):
        def __init__(self, width, out, step):
            super().__init__()
            self.body = nn.Sequential(*(layer for i in range(2) for layer in (
                weight_norm(nn.Conv1d(out if i else width, out, 3, padding=2 * step, dilation=step)), Cut(2 * step), nn.ReLU(),
                nn.Dropout(0.2))))
            self.shortcut = nn.Conv1d(width, out, 1) if width != out else None
            self.relu = nn.ReLU()

        def forward(self, x):
            beside = x if self.shortcut is None else self.shortcut(x)
            return self.relu(self.body(x) + beside)

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(Block(8, 32, 1), Block(32, 32, 2), Block(32, 64, 4))
            self.head = nn.Linear(64, 10)

        def forward(self, x):
            return self.head(self.body(x)[:, :, -1])
    return Network()


def perceptron(*widths, last=False):
    from torch import nn
    layers = [layer for a, b in zip(widths, widths[1:]) for layer in (nn.Linear(a, b), nn.ReLU())]
    return nn.Sequential(*layers if last else layers[:-1])


def recommender():
    """Naumov et al. 2019: dense features and embeddings, all products of two."""
    import torch
    from torch import nn

    class Recommender(nn.Module):
        def __init__(self):
            super().__init__()
            self.tables = nn.ModuleList(nn.Embedding(200, 32) for _ in range(8))
            self.bottom, self.top = perceptron(13, 64, 32, last=True), perceptron(32 + 36, 64, 2)
            self.register_buffer("dense", torch.rand(BATCH, 13))
            self.register_buffer("pairs", torch.tril_indices(9, 9, -1))

        def forward(self, x):
            dense = self.bottom(self.dense)
            rows = torch.stack([dense] + [table(x[:, i]) for i, table in enumerate(self.tables)], 1)
            products = torch.bmm(rows, rows.transpose(1, 2))
            return self.top(torch.cat([dense, products[:, self.pairs[0], self.pairs[1]]], 1))
    return Recommender()


def crossed():
    """Wang et al. 2021: cross layers beside a deep network."""
    import torch
    from torch import nn

    class Crossed(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(1000, 16)
            self.crosses = nn.ModuleList(nn.Linear(128, 128) for _ in range(3))
            self.deep = nn.Sequential(nn.Linear(128, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 64),
                                      nn.BatchNorm1d(64), nn.ReLU())
            self.head = nn.Linear(192, 2)

        def forward(self, x):
            first = self.table(x).flatten(1)
            crossed = first
            for cross in self.crosses:
                crossed = first * cross(crossed) + crossed
            return self.head(torch.cat([crossed, self.deep(first)], 1))
    return Crossed()


def separator():
    """Luo and Mesgarani 2019: masks of a learned filter bank, by stacks of dilated depthwise convolutions."""
    import torch
    from torch import nn

    class Block(nn.Module):
        def __init__(self, step):
            super().__init__()
            self.body = nn.Sequential(nn.Conv1d(32, 64, 1), nn.PReLU(), nn.GroupNorm(1, 64),
                                      nn.Conv1d(64, 64, 3, padding=step, dilation=step, groups=64), nn.PReLU(),
                                      nn.GroupNorm(1, 64))
            self.stays, self.skips = nn.Conv1d(64, 32, 1), nn.Conv1d(64, 32, 1)

        def forward(self, x):
            y = self.body(x)
            return x + self.stays(y), self.skips(y)

    class Separator(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder, self.decoder = nn.Conv1d(1, 64, 16, 8, bias=False), nn.ConvTranspose1d(64, 1, 16, 8, bias=False)
            self.norm, self.narrow = nn.GroupNorm(1, 64), nn.Conv1d(64, 32, 1)
            self.blocks = nn.ModuleList(Block(2 ** (i % 3)) for i in range(6))
            self.mask = nn.Sequential(nn.PReLU(), nn.Conv1d(32, 128, 1), nn.Sigmoid())

        def forward(self, x):
            filters = self.encoder(x)
            y, skipped = self.narrow(self.norm(filters)), 0
            for block in self.blocks:
                y, skip = block(y)
                skipped = skipped + skip
            masks = self.mask(skipped).view(BATCH, 2, 64, -1)
            voices = (filters.unsqueeze(1) * masks).flatten(0, 1)
            return self.decoder(voices).view(BATCH, 2, -1)
    return Separator()


def sequential_recommender():
    """Kang and McAuley 2018."""
    import torch
    from torch import nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.before, self.between = nn.LayerNorm(64), nn.LayerNorm(64)
            self.attention = nn.MultiheadAttention(64, 2, 0.2)
            self.first, self.second = nn.Conv1d(64, 64, 1), nn.Conv1d(64, 64, 1)
            self.drops = nn.ModuleList((nn.Dropout(0.2), nn.Dropout(0.2)))

        def forward(self, x, mask):
            x = x.transpose(0, 1)
            asked = self.before(x)
            seen, _ = self.attention(asked, x, x, attn_mask=mask)
            x = self.between((asked + seen).transpose(0, 1))
            y = self.second(torch.relu(self.drops[0](self.first(x.transpose(1, 2)))))
            return x + self.drops[1](y).transpose(1, 2)

    class Recommender(nn.Module):
        def __init__(self):
            super().__init__()
            self.items, self.positions = nn.Embedding(500, 64, padding_idx=0), nn.Embedding(48, 64)
            self.drop, self.norm = nn.Dropout(0.2), nn.LayerNorm(64)
            self.blocks = nn.ModuleList((Block(), Block()))

        def forward(self, x):
            at = torch.arange(x.shape[1], device=x.device)
            y = self.items(x) * 8 + self.positions(at)
            y = self.drop(y)
            mask = ~torch.tril(torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device))
            for block in self.blocks:
                y = block(y, mask)
            return self.norm(y) @ self.items.weight.t()
    return Recommender()


def speller():
    """A convolutional and recurrent encoder, and a decoder that looks back, one cell call for each step (Bahdanau 2015)."""
    import torch
    from torch import nn

    class Speller(nn.Module):
        def __init__(self):
            super().__init__()
            self.front = nn.Sequential(nn.Conv1d(40, 64, 3, 2, 1), nn.BatchNorm1d(64), nn.ReLU())
            self.encoder = nn.GRU(64, 32, batch_first=True, bidirectional=True)
            self.keys, self.query, self.score = nn.Linear(64, 64), nn.Linear(64, 64), nn.Linear(64, 1)
            self.words, self.cell, self.head = nn.Embedding(30, 64), nn.GRUCell(128, 64), nn.Linear(128, 30)
            self.register_buffer("given", torch.arange(BATCH * 6).reshape(BATCH, 6))

        def forward(self, x):
            states, last = self.encoder(self.front(x).transpose(1, 2))
            keys, hidden, results = self.keys(states), torch.cat([last[0], last[1]], 1), []
            for i in range(6):
                score = self.score(torch.tanh(keys + self.query(hidden).unsqueeze(1)))
                context = (torch.softmax(score, 1) * states).sum(1)
                hidden = self.cell(torch.cat([self.words(self.given[:, i]), context], 1), hidden)
                results.append(self.head(torch.cat([hidden, context], 1)))
            return torch.stack(results, 1)
    return Speller()


def basis_expansion():
    """Oreshkin et al. 2020: blocks that take away what they explain."""
    import torch
    from torch import nn

    class Block(nn.Module):
        def __init__(self, basis):
            super().__init__()
            self.body = perceptron(96, 128, 128, 128, last=True)
            self.back, self.ahead = nn.Linear(128, 8, bias=False), nn.Linear(128, 8, bias=False)
            self.register_buffer("past", basis[:, :96])
            self.register_buffer("future", basis[:, 96:])

        def forward(self, x):
            y = self.body(x)
            return self.back(y) @ self.past, self.ahead(y) @ self.future

    class Forecaster(nn.Module):
        def __init__(self):
            super().__init__()
            basis = torch.linspace(0, 1, 120) ** torch.arange(8)[:, None]
            self.blocks = nn.ModuleList(Block(basis) for _ in range(4))

        def forward(self, x):
            ahead = torch.zeros(x.shape[0], 24, device=x.device)
            for block in self.blocks:
                back, more = block(x)
                x, ahead = x - back, ahead + more
            return ahead
    return Forecaster()


def factorization():
    """Guo et al. 2017: linear terms, products of two by squares, and a deep network."""
    import torch
    from torch import nn

    class Factorization(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.linear, self.bias = nn.Embedding(1000, 16), nn.Embedding(1000, 1), nn.Parameter(torch.randn(1))
            self.deep = nn.Sequential(nn.Linear(128, 64), nn.ReLU(), nn.Dropout(0.5), nn.Linear(64, 64), nn.ReLU(),
                                      nn.Dropout(0.5), nn.Linear(64, 1))

        def forward(self, x):
            rows = self.table(x)
            pairs = 0.5 * (rows.sum(1).pow(2) - rows.pow(2).sum(1)).sum(1, keepdim=True)
            result = self.bias + self.linear(x).sum(1) + pairs + self.deep(rows.flatten(1))
            return torch.cat([result, -result], 1)
    return Factorization()


FIRST = ("Ernie4_5_Moe", "SeedOss", "Lfm2", "MiniMaxM3VLText", "Olmo", "Jais2", "Flaubert", "RemBert", "MegatronBert",
         "UniSpeechSat")


def first():
    """Written down on 2026-11-22 before any of them was exported, as is later()."""
    table = library()
    return {
        **{name: table[name] for name in FIRST},
        "PatchTSMixer": (time_series, values(96, 3), ()),
        "SigLIP": (image_and_text, lambda device: values(3, 64, 64)(device), ()),
        "nn.Transformer": (sequence_to_sequence, tokens(), ()),
        "LSTM tagger": (tagger, tokens(), ()),
        "TCN": (temporal, values(8, 128), ()),
        "DLRM": (recommender, tokens(8), ()),
        "DCN v2": (crossed, tokens(8), ()),
    }


def later():
    return {
        **{name: network for name, network in library().items() if name not in FIRST},
        "Conv-TasNet": (separator, values(1, 2000), ()),
        "SASRec": (sequential_recommender, tokens(), ()),
        "listen and spell": (speller, values(40, 64), ()),
        "N-BEATS": (basis_expansion, values(96), ()),
        "DeepFM": (factorization, tokens(8), ()),
    }
