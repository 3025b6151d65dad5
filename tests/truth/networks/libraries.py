"""Networks of torchvision, timm and transformers, small ones: the corpus's first half."""
from .common import Network, image, numbers, picked, timm, transformer, values, vision


def small_vit():
    from torchvision.models.vision_transformer import VisionTransformer
    return VisionTransformer(image_size=64, patch_size=16, num_layers=2, num_heads=4, hidden_dim=64, mlp_dim=128, dropout=0.1,
                             num_classes=10)


def small_swin():
    from torchvision.models.swin_transformer import SwinTransformer
    return SwinTransformer(patch_size=[4, 4], embed_dim=32, depths=[2, 2], num_heads=[2, 4], window_size=[4, 4], num_classes=10)


def small_convnext():
    from torchvision.models.convnext import CNBlockConfig, ConvNeXt
    return ConvNeXt([CNBlockConfig(32, 64, 2), CNBlockConfig(64, None, 2)], stochastic_depth_prob=0.1, num_classes=10)


def small_densenet():
    from torchvision.models.densenet import DenseNet
    return DenseNet(growth_rate=12, block_config=(3, 3), num_init_features=16, drop_rate=0.1, num_classes=10)


def small_maxvit():
    from torchvision.models.maxvit import MaxVit
    return MaxVit(input_size=(64, 64), stem_channels=16, partition_size=2, block_channels=[16, 32], block_layers=[1, 1],
                  head_dim=16, stochastic_depth_prob=0.1, num_classes=10)


def small_mixer():
    from timm.models.mlp_mixer import MlpMixer
    return MlpMixer(num_classes=10, img_size=64, patch_size=16, num_blocks=2, embed_dim=64)


NETWORKS = [
    Network("resnet18", vision("resnet18", num_classes=10), image()),
    Network("mobilenet_v3_small", vision("mobilenet_v3_small", num_classes=10), image()),
    Network("squeezenet1_1", vision("squeezenet1_1", num_classes=10), image()),
    Network("shufflenet_v2_x0_5", vision("shufflenet_v2_x0_5", num_classes=10), image()),
    Network("mnasnet0_5", vision("mnasnet0_5", num_classes=10), image()),
    Network("alexnet", vision("alexnet", num_classes=10), image(96)),
    Network("googlenet", vision("googlenet", num_classes=10, aux_logits=False, init_weights=False), image()),
    Network("vit", small_vit, image()),
    Network("swin", small_swin, image()),
    Network("convnext", small_convnext, image()),
    Network("densenet", small_densenet, image()),
    Network("maxvit", small_maxvit, image()),
    Network("lraspp", lambda: picked(vision("lraspp_mobilenet_v3_large", "segmentation", weights=None, weights_backbone=None,
                                            num_classes=5)(), "out", {}), image()),
    Network("r3d", lambda: __import__("torchvision").models.video.VideoResNet(*r3d_parts()), values(3, 4, 32, 32)),
    Network("timm_resnet10t", timm("resnet10t", num_classes=10), image()),
    Network("timm_lcnet_050", timm("lcnet_050", num_classes=10), image()),
    Network("timm_ghostnet_050", timm("ghostnet_050", num_classes=10), image()),
    Network("timm_regnetx_002", timm("regnetx_002", num_classes=10), image()),
    Network("timm_edgenext_xx_small", timm("edgenext_xx_small", num_classes=10, depths=(1, 1, 1, 1)), image()),
    Network("timm_mixer", small_mixer, image()),
    Network("timm_deit", timm("deit_tiny_patch16_224", img_size=64, depth=2, embed_dim=96, num_heads=3, drop_path_rate=0.1,
                              num_classes=10), image()),
    Network("timm_poolformer", timm("poolformer_s12", num_classes=10), image()),
    Network("timm_levit_128s", timm("levit_128s", img_size=64, num_classes=10), image()),
    Network("timm_mobilevit_xxs", timm("mobilevit_xxs", num_classes=10), image()),
    Network("bert", transformer("BertForSequenceClassification", "BertConfig"), numbers(24)),
    Network("gpt2", transformer("GPT2LMHeadModel", "GPT2Config", fixed={"use_cache": False}), numbers(24)),
    Network("llama", transformer("LlamaForCausalLM", "LlamaConfig", fixed={"use_cache": False}), numbers(24)),
    Network("distilbert", transformer("DistilBertForMaskedLM", "DistilBertConfig", dim=64, n_layers=2, n_heads=4, hidden_dim=128),
            numbers(24)),
    Network("albert", transformer("AlbertForMaskedLM", "AlbertConfig", embedding_size=32), numbers(24)),
    Network("opt", transformer("OPTForCausalLM", "OPTConfig", ffn_dim=128, word_embed_proj_dim=64, fixed={"use_cache": False}),
            numbers(24)),
    Network("t5_encoder", transformer("T5EncoderModel", "T5Config", d_kv=16, d_ff=128, num_layers=2, num_heads=4), numbers(24)),
    Network("whisper_encoder", transformer("WhisperModel", "WhisperConfig", part="encoder", max_source_positions=50),
            values(80, 100)),
    Network("clip_vision", transformer("CLIPVisionModel", "CLIPVisionConfig", image_size=64, patch_size=16), image()),
]


def r3d_parts():
    from torchvision.models.video.resnet import BasicBlock, BasicStem, Conv3DSimple
    return BasicBlock, [Conv3DSimple] * 4, [1, 1, 1, 1], BasicStem, 10
