"""Networks of training as people have it, by name: how one is made, what it is fed with (scripts/export/sharing.py)."""
import torch
from torch import nn
from torch.nn import functional as F

from .common import sample, vision


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Tower(nn.Module):
    def __init__(self, width, blocks, words):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(blocks))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)

    def body(self, x):
        x = self.embed(x)
        for block in self.blocks:
            x = block(x)
        return self.norm(x)

    def forward(self, x):
        return self.head(self.body(x))


class Frozen(nn.Module):
    """A frozen linear layer between trained ones."""

    def __init__(self, bias):
        super().__init__()
        self.first, self.frozen, self.last = nn.Linear(768, 768), nn.Linear(768, 3072, bias=bias), nn.Linear(3072, 64)
        self.frozen.requires_grad_(False)

    def forward(self, x):
        return self.last(torch.relu(self.frozen(self.first(x))))


class Logits(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, tokens):
        # Without a mask the library looks for packed sequences, which no export can follow.
        return self.model(tokens, attention_mask=torch.ones_like(tokens), return_dict=True).logits


def bert():
    from transformers import BertConfig, BertForSequenceClassification
    return Logits(BertForSequenceClassification(BertConfig(
        vocab_size=8192, hidden_size=256, num_hidden_layers=4, num_attention_heads=4, intermediate_size=1024,
        attn_implementation="eager")))


def gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel
    return Logits(GPT2LMHeadModel(GPT2Config(
        vocab_size=8192, n_positions=256, n_embd=256, n_layer=4, n_head=4, bos_token_id=0, eos_token_id=0,
        use_cache=False, attn_implementation="eager")))


def llama():
    from transformers import LlamaConfig, LlamaForCausalLM
    return Logits(LlamaForCausalLM(LlamaConfig(
        vocab_size=8192, hidden_size=256, intermediate_size=688, num_hidden_layers=4, num_attention_heads=4,
        num_key_value_heads=2, use_cache=False, attn_implementation="eager", pad_token_id=0, bos_token_id=0,
        eos_token_id=0)))


def lora_llama():
    from peft import LoraConfig, get_peft_model
    network = llama()
    network.model = get_peft_model(network.model, LoraConfig(r=8, lora_alpha=16, target_modules=["q_proj", "v_proj"]))
    return network


def tokens(length):
    return lambda batch, device: torch.zeros(batch, length, dtype=torch.int64, device=device)


def rows(batch, device):
    return torch.rand(batch, 768, device=device)


def pictures(size):
    return lambda batch, device: torch.zeros(batch, 3, size, size, device=device)


NETWORKS = {"tower": (lambda: Tower(96, 4, 1000), tokens(32)), "tower_wide": (lambda: Tower(512, 6, 8000), tokens(64)),
        "frozen": (lambda: Frozen(True), rows), "frozen_plain": (lambda: Frozen(False), rows), "llama": (llama, tokens(64)),
        "lora_llama": (lora_llama, tokens(64)), "gpt2": (gpt2, tokens(64)), "bert": (bert, tokens(64)),
        "resnet18": (vision("resnet18"), pictures(224)), "small_vit": (sample("small_vit"), pictures(96))}
