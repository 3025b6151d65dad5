"""More networks of libraries for default_trainees.py, chosen before the program had seen any of them.

Small configurations. The graph networks need torch_geometric, which the others do without.
"""

BATCH = 4


def image(size=64, channels=3):
    def make(device):
        import torch
        return torch.rand(BATCH, channels, size, size, device=device)
    return make


def values(*shape):
    def make(device):
        import torch
        return torch.rand(BATCH, *shape, device=device)
    return make


def tokens(length=48):
    def make(device):
        import torch
        return torch.zeros(BATCH, length, dtype=torch.int64, device=device)
    return make


def picked(make, key=None, **fixed):
    """A network with one result: a key of an object of many, or an item of a tuple."""
    def build():
        from torch import nn

        class Picked(nn.Module):
            def __init__(self):
                super().__init__()
                self.network = make()

            def forward(self, x):
                result = self.network(x, **fixed)
                return result if key is None else result[key]
        return Picked()
    return build


def transformer(model, config, key="logits", **options):
    def make():
        import transformers
        return getattr(transformers, model)(getattr(transformers, config)(**options))
    return picked(make, key, return_dict=True)


def timm_model(name, **options):
    def make():
        import timm
        return timm.create_model(name, pretrained=False, num_classes=10, **options)
    return make


def vision(folder, name, **options):
    def make():
        import torchvision
        return getattr(getattr(torchvision.models, folder), name)(**options)
    return make


def diffusion(name, key, fixed=None, **options):
    def make():
        import diffusers
        return getattr(diffusers, name)(**options)
    return picked(make, key, return_dict=False, **(fixed or {}))


def geometric(name, **options):
    """Two layers of torch_geometric on a fixed graph of 200 nodes and 800 edges."""
    def make():
        import torch
        import torch_geometric.nn
        from torch import nn

        class Network(nn.Module):
            def __init__(self):
                super().__init__()
                numbers = torch.Generator().manual_seed(1)
                self.register_buffer("edges", torch.randint(0, 200, (2, 800), generator=numbers))
                layer = getattr(torch_geometric.nn, name)
                self.first, self.second = layer(32, 32, **options), layer(32, 32, **options)
                self.head = nn.Linear(32, 7)

            def forward(self, x):
                x = self.first(x, self.edges).relu()
                return self.head(self.second(x, self.edges).relu())
        return Network()
    return make


def nodes(device):
    import torch
    return torch.rand(200, 32, device=device)


def networks():
    small = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128}
    words = {**small, "vocab_size": 500}
    speech = {**small, "vocab_size": 30, "conv_dim": (32, 32, 32), "conv_stride": (5, 4, 4), "conv_kernel": (10, 4, 4),
              "num_feat_extract_layers": 3, "num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 4,
              "apply_spec_augment": False, "layerdrop": 0.0}
    sequences = {"vocab_size": 500, "d_model": 64, "encoder_layers": 2, "decoder_layers": 2, "encoder_ffn_dim": 128,
                 "decoder_ffn_dim": 128, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
                 "max_position_embeddings": 64}
    return {
        "MaxViT": (timm_model("maxvit_pico_rw_256"), image(256), ()),
        "DaViT": (timm_model("davit_tiny"), image(64), ()),
        "Twins": (timm_model("twins_svt_small"), image(224), ()),
        "MambaOut": (timm_model("mambaout_femto"), image(64), ()),
        "DLA-34": (timm_model("dla34"), image(64), ()),
        "MobileViT V2": (timm_model("mobilevitv2_050"), image(256), ()),
        "CrossViT": (timm_model("crossvit_9_240"), image(240), ()),
        "BEiT": (transformer("BeitForImageClassification", "BeitConfig", image_size=64, patch_size=8, num_labels=10,
                             **small), image(), ()),
        "FNet": (transformer("FNetForMaskedLM", "FNetConfig", vocab_size=500, hidden_size=64, num_hidden_layers=2,
                             intermediate_size=128), tokens(), ()),
        "BART": (transformer("BartForConditionalGeneration", "BartConfig", **sequences), tokens(), ()),
        "DeBERTa V2": (transformer("DebertaV2ForMaskedLM", "DebertaV2Config", relative_attention=True,
                                   pos_att_type=["p2c", "c2p"], **words), tokens(), ()),
        "Mamba": (transformer("MambaForCausalLM", "MambaConfig", vocab_size=500, hidden_size=64, num_hidden_layers=2,
                              state_size=8), tokens(16), ()),
        "Qwen3": (transformer("Qwen3ForCausalLM", "Qwen3Config", num_key_value_heads=2, head_dim=16, **words),
                  tokens(), ()),
        "Cohere": (transformer("CohereForCausalLM", "CohereConfig", num_key_value_heads=2, **words), tokens(), ()),
        "AST": (transformer("ASTForAudioClassification", "ASTConfig", max_length=64, num_mel_bins=32, num_labels=10,
                            **small), values(64, 32), ()),
        "Wav2Vec2-Conformer": (transformer("Wav2Vec2ConformerForCTC", "Wav2Vec2ConformerConfig", **speech),
                               values(4000), ()),
        "TimeSformer": (transformer("TimesformerForVideoClassification", "TimesformerConfig", image_size=32,
                                    patch_size=8, num_frames=4, num_labels=10, **small), values(4, 3, 32, 32), ()),
        "Swin3D": (vision("video", "swin3d_t", num_classes=10), values(3, 4, 64, 64), ()),
        "FCN (ResNet-50)": (picked(vision("segmentation", "fcn_resnet50", weights=None, weights_backbone=None,
                                          num_classes=5), "out"), image(), ()),
        "UPerNet (ResNet-18)": (lambda: __import__("segmentation_models_pytorch").UPerNet(
            encoder_name="resnet18", encoder_weights=None, classes=5), image(), ()),
        "UNet1DModel": (diffusion("UNet1DModel", 0, {"timestep": 10}, sample_size=256, block_out_channels=(32, 32, 64),
                                  in_channels=2, out_channels=2, extra_in_channels=16), values(2, 256), ()),
        "AutoencoderTiny": (diffusion("AutoencoderTiny", 0, encoder_block_out_channels=(16, 16),
                                      decoder_block_out_channels=(16, 16), num_encoder_blocks=(1, 2),
                                      num_decoder_blocks=(2, 1)), image(), ()),
        "GCN": (geometric("GCNConv"), nodes, ()),
        "GAT": (geometric("GATConv"), nodes, ()),
        "GraphSAGE": (geometric("SAGEConv"), nodes, ()),
    }
