"""More networks of libraries for default_exports.py, chosen before the program had seen any of them.

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
                layer = name if callable(name) else lambda: getattr(torch_geometric.nn, name)(32, 32, **options)
                self.first, self.second = layer(), layer()
                self.head = nn.Linear(32, 7)

            def forward(self, x):
                x = self.first(x, self.edges).relu()
                return self.head(self.second(x, self.edges).relu())
        return Network()
    return make


def conditioned(make):
    """A network that takes an image and five vectors of 64 values, which are a buffer here."""
    def build():
        import torch
        from torch import nn

        class Conditioned(nn.Module):
            def __init__(self):
                super().__init__()
                self.network = make()
                self.register_buffer("context", torch.rand(BATCH, 5, 64))

            def forward(self, x):
                return self.network(x, 10, self.context, return_dict=False)[0]
        return Conditioned()
    return build


def classified(make):
    """A network that takes images, times and classes, which are buffers here."""
    def build():
        import torch
        from torch import nn

        class Classified(nn.Module):
            def __init__(self):
                super().__init__()
                self.network = make()
                self.register_buffer("times", torch.arange(BATCH))
                self.register_buffer("classes", torch.arange(BATCH))

            def forward(self, x):
                return self.network(x, self.times, self.classes, return_dict=False)[0]
        return Classified()
    return build


def segmentation(name, encoder, **options):
    def make():
        import segmentation_models_pytorch
        return getattr(segmentation_models_pytorch, name)(encoder_name=encoder, encoder_weights=None, classes=5, **options)
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


def second():
    """Chosen and written down on 2026-11-22, before any of them was exported."""
    def diffusers_model(name, **options):
        def make():
            import diffusers
            return getattr(diffusers, name)(**options)
        return make

    def gin():
        import torch_geometric.nn
        from torch import nn
        return torch_geometric.nn.GINConv(nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 32)))

    small = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128}
    words = {**small, "vocab_size": 500}
    speech = {**small, "vocab_size": 30, "conv_dim": (32, 32, 32), "conv_stride": (5, 4, 4), "conv_kernel": (10, 4, 4),
              "num_feat_extract_layers": 3, "num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 4,
              "apply_spec_augment": False, "layerdrop": 0.0}
    pictures = {**small, "image_size": 64, "patch_size": 8, "num_labels": 10}
    return {
        "ResNeSt-14": (timm_model("resnest14d"), image(), ()),
        "SKNet-18": (timm_model("skresnet18"), image(), ()),
        "ReXNet": (timm_model("rexnet_100"), image(), ()),
        "Visformer": (timm_model("visformer_tiny"), image(224), ()),
        "TinyViT": (timm_model("tiny_vit_5m_224"), image(224), ()),
        "PVT v2": (timm_model("pvt_v2_b0"), image(), ()),
        "GC ViT": (timm_model("gcvit_xxtiny"), image(224), ()),
        "HGNet v2": (timm_model("hgnetv2_b0"), image(), ()),
        "NF-ResNet-26": (timm_model("nf_resnet26"), image(), ()),
        "VoVNet": (timm_model("ese_vovnet19b_dw"), image(), ()),
        "Sequencer2D": (timm_model("sequencer2d_s"), image(64), ()),
        "BoTNet-26": (timm_model("botnet26t_256"), image(256), ()),
        "Hiera": (timm_model("hiera_tiny_224"), image(224), ()),
        "Falcon": (transformer("FalconForCausalLM", "FalconConfig", vocab_size=500, hidden_size=64, num_hidden_layers=2,
                               num_attention_heads=4), tokens(), ()),
        "GPT-J": (transformer("GPTJForCausalLM", "GPTJConfig", vocab_size=500, n_positions=64, n_embd=64, n_layer=2,
                              n_head=4, rotary_dim=8), tokens(), ()),
        "OLMo 2": (transformer("Olmo2ForCausalLM", "Olmo2Config", num_key_value_heads=2, **words), tokens(), ()),
        "Gemma 2": (transformer("Gemma2ForCausalLM", "Gemma2Config", num_key_value_heads=2, head_dim=16, **words),
                    tokens(), ()),
        "StableLM": (transformer("StableLmForCausalLM", "StableLmConfig", num_key_value_heads=2, **words), tokens(), ()),
        "Phi-3": (transformer("Phi3ForCausalLM", "Phi3Config", num_key_value_heads=2, pad_token_id=0, **words),
                  tokens(), ()),
        "RoFormer": (transformer("RoFormerForMaskedLM", "RoFormerConfig", **words), tokens(), ()),
        "ConvBERT": (transformer("ConvBertForMaskedLM", "ConvBertConfig", embedding_size=64, **words), tokens(), ()),
        "MPNet": (transformer("MPNetForMaskedLM", "MPNetConfig", **words), tokens(), ()),
        "SqueezeBERT": (transformer("SqueezeBertForMaskedLM", "SqueezeBertConfig", embedding_size=64, **words), tokens(), ()),
        "Data2Vec vision": (transformer("Data2VecVisionForImageClassification", "Data2VecVisionConfig", **pictures),
                            image(), ()),
        "CvT": (transformer("CvtForImageClassification", "CvtConfig", num_labels=10, embed_dim=[32, 64, 64],
                            num_heads=[1, 2, 2], depth=[1, 1, 2]), image(), ()),
        "DPT": (transformer("DPTForDepthEstimation", "DPTConfig", "predicted_depth", image_size=64, patch_size=8,
                            hidden_size=64, num_hidden_layers=4, num_attention_heads=4, intermediate_size=128,
                            backbone_out_indices=[0, 1, 2, 3], neck_hidden_sizes=[32, 32, 64, 64],
                            fusion_hidden_size=32), image(), ()),
        "SEW": (transformer("SEWForCTC", "SEWConfig", squeeze_factor=2, **speech), values(4000), ()),
        "UniSpeech": (transformer("UniSpeechForCTC", "UniSpeechConfig", **speech), values(4000), ()),
        "Data2Vec audio": (transformer("Data2VecAudioForCTC", "Data2VecAudioConfig", conv_pos_kernel_size=5,
                                       num_conv_pos_embeddings=2, **{k: v for k, v in speech.items() if k not in (
                                           "num_conv_pos_embeddings", "num_conv_pos_embedding_groups")}), values(4000), ()),
        "HiFi-GAN": (transformer("SpeechT5HifiGan", "SpeechT5HifiGanConfig", "waveform", model_in_dim=32,
                                 upsample_initial_channel=64, upsample_rates=[4, 4], upsample_kernel_sizes=[8, 8]),
                     values(32, 32), ()),
        "PatchTST": (transformer("PatchTSTForPrediction", "PatchTSTConfig", "prediction_outputs", num_input_channels=3,
                                 context_length=96, patch_length=8, patch_stride=8, prediction_length=16, d_model=64,
                                 num_hidden_layers=2, num_attention_heads=4, ffn_dim=128), values(96, 3), ()),
        "MViT v2": (vision("video", "mvit_v2_s", num_classes=10), values(3, 16, 224, 224), ()),
        "U-Net (EfficientNet-B0)": (segmentation("Unet", "efficientnet-b0"), image(), ()),
        "DeepLabV3 (ResNet-18)": (segmentation("DeepLabV3", "resnet18"), image(), ()),
        "VQModel": (diffusion("VQModel", 0, block_out_channels=(32, 64), norm_num_groups=8, layers_per_block=1,
                              down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2),
                    image(32), ()),
        "UNet2DConditionModel": (conditioned(diffusers_model(
            "UNet2DConditionModel", sample_size=16, block_out_channels=(32, 64), norm_num_groups=8, layers_per_block=1,
            cross_attention_dim=64, attention_head_dim=16, down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
            up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"))), image(16, 4), ()),
        "DiT": (classified(diffusers_model("DiTTransformer2DModel", num_attention_heads=4, attention_head_dim=16,
                                           in_channels=4, out_channels=4, num_layers=2, sample_size=16, patch_size=2,
                                           num_embeds_ada_norm=10)), image(16, 4), ()),
        "GIN": (geometric(gin), nodes, ()),
        "residual gated graph": (geometric("ResGatedGraphConv"), nodes, ()),
    }


def told(make, **more):
    """A diffusion transformer that takes times and five vectors of 64 values, which are buffers here."""
    def build():
        import torch
        from torch import nn

        class Told(nn.Module):
            def __init__(self):
                super().__init__()
                self.network = make()
                self.register_buffer("times", torch.arange(BATCH))
                self.register_buffer("context", torch.rand(BATCH, 5, 64))

            def forward(self, x):
                return self.network(hidden_states=x, encoder_hidden_states=self.context, timestep=self.times,
                                    return_dict=False, **more)[0]
        return Told()
    return build


def diffusers_model(name, **options):
    def make():
        import diffusers
        return getattr(diffusers, name)(**options)
    return make


def drawn_vision():
    """Drawn on 2026-11-22, and written down before any of them was exported.

    timm: random.Random(12).sample(FAMILIES, 16), families being modules of timm.models of which neither the scripts nor
    docs/accuracy.md named anything; of each the smallest model, if it has at most 30 million parameters, at its own size if
    that is fixed and at 64 otherwise. The others by the same generator from the names of the library, in that order, where
    they need no more than an image (or a video, nodes), times and text.
    """
    heads = {"num_attention_heads": 4, "attention_head_dim": 16, "num_layers": 2, "in_channels": 4, "sample_size": 16}

    def swin3d():
        from torchvision.models.video.swin_transformer import SwinTransformer3d
        return SwinTransformer3d(patch_size=[2, 4, 4], embed_dim=32, depths=[1, 1, 1, 1], num_heads=[1, 2, 4, 8],
                                 window_size=[8, 7, 7], num_classes=10)
    return {
        "ViT with ResNet stem": (timm_model("vit_tiny_r_s16_p8_224"), image(224), ()),
        "FasterNet": (timm_model("fasternet_t0"), image(), ()),
        "RDNet": (timm_model("rdnet_tiny"), image(), ()),
        "ConViT": (timm_model("convit_tiny"), image(224), ()),
        "InceptionNeXt": (timm_model("inception_next_atto"), image(), ()),
        "EfficientViT (MSRA)": (timm_model("efficientvit_m0"), image(224), ()),
        "RepGhostNet": (timm_model("repghostnet_050"), image(), ()),
        "iFormer": (timm_model("iformer_t"), image(), ()),
        "Swin3D (small)": (swin3d, values(3, 4, 64, 64), ()),
        "Sana": (told(diffusers_model("SanaTransformer2DModel", out_channels=4, num_cross_attention_heads=4,
                                      cross_attention_head_dim=16, cross_attention_dim=64, caption_channels=64, **heads)),
                 image(16, 4), ()),
        "Latte": (told(diffusers_model("LatteTransformer3DModel", out_channels=4, cross_attention_dim=64, caption_channels=64,
                                       patch_size=2, video_length=4, norm_type="ada_norm_single", attention_bias=True,
                                       num_embeds_ada_norm=1000, activation_fn="gelu-approximate", **heads)),
                  values(4, 4, 16, 16), ()),
        "SegFormer (EfficientNet-Lite3)": (segmentation("Segformer", "timm-tf_efficientnet_lite3"), image(), ()),
        "DeepLabV3 (EfficientNet-Lite2)": (segmentation("DeepLabV3", "timm-tf_efficientnet_lite2"), image(), ()),
        "MFConv": (geometric("MFConv"), nodes, ()),
        "ClusterGCN": (geometric("ClusterGCNConv"), nodes, ()),
    }


def drawn_later():
    """By the same rule, random.Random(13) for timm, and what the first draw had left; written down on the same day."""
    heads = {"num_attention_heads": 4, "attention_head_dim": 16, "num_layers": 2, "in_channels": 4, "sample_size": 16}

    def cgc():
        import torch_geometric.nn
        return torch_geometric.nn.CGConv(32)

    def decoded(make):
        def build():
            from torch import nn

            class Decoded(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.network = make()

                def forward(self, x):
                    return self.network(x, num_frames=BATCH, return_dict=False)[0]
            return Decoded()
        return build
    return {
        "LowFormer": (timm_model("lowformer_b0"), image(), ()),
        "EfficientViT (MIT)": (timm_model("efficientvit_b0"), image(), ()),
        "HardCoRe-NAS": (timm_model("hardcorenas_b"), image(), ()),
        "SAM 2 Hiera": (timm_model("sam2_hiera_tiny"), image(), ()),
        "EfficientViM": (timm_model("efficientvim_m1"), image(), ()),
        "ViT, relative positions": (timm_model("test_vit_relpos"), image(160), ()),
        "ViTamin": (timm_model("vitamin_small_224"), image(224), ()),
        "PixArt": (told(diffusers_model("PixArtTransformer2DModel", out_channels=8, cross_attention_dim=64, patch_size=2,
                                        caption_channels=64, use_additional_conditions=False, **heads),
                        added_cond_kwargs={"resolution": None, "aspect_ratio": None}), image(16, 4), ()),
        "AutoencoderKLTemporalDecoder": (decoded(diffusers_model("AutoencoderKLTemporalDecoder",
                                                                 block_out_channels=(32, 64), layers_per_block=1,
                                                                 down_block_types=("DownEncoderBlock2D",) * 2)),
                                         image(32), ()),
        "U-Net (EfficientNet-Lite3)": (segmentation("Unet", "timm-tf_efficientnet_lite3"), image(), ()),
        "GENConv": (geometric("GENConv"), nodes, ()),
        "CGConv": (geometric(cgc), nodes, ()),
    }
