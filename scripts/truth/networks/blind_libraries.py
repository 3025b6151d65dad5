"""Networks of libraries whose families no other list has. Written down before one was exported; predicted once.

The second list of timm has modules without a network in any list, shuffled by random.Random(20261125): of each the first name that is small enough or can be built small.
"""
from .common import Network, image, numbers, picked, timm, together, transformer, values, vision

LM = {"use_cache": False}


def swin3d():
    from torchvision.models.video.swin_transformer import SwinTransformer3d
    return SwinTransformer3d([2, 4, 4], 24, [2, 2], [2, 4], [4, 4, 4], num_classes=10)


def mvit():
    from torchvision.models.video.mvit import MSBlockConfig, MViT
    blocks = [MSBlockConfig(1, 24, 48, [3, 3, 3], [3, 3, 3], [1, 1, 1], [1, 4, 4]), MSBlockConfig(2, 48, 48, [3, 3, 3], [3, 3, 3], [1, 2, 2], [1, 2, 2])]
    return MViT((32, 32), 8, blocks, True, True, True, True, stochastic_depth_prob=0.1, num_classes=10)


def diffuser(name, **options):
    def make():
        import diffusers
        return picked(getattr(diffusers, name)(**options), 0, {"return_dict": False})
    return make


def retinanet():
    """Backbone, pyramid and heads; anchors, matching and suppression are left out."""
    from torch import nn
    from torchvision.models.detection.backbone_utils import mobilenet_backbone
    from torchvision.models.detection.retinanet import RetinaNetHead

    class Detector(nn.Module):
        def __init__(self):
            super().__init__()
            self.backbone = mobilenet_backbone(backbone_name="mobilenet_v3_large", weights=None, fpn=True, trainable_layers=6)
            self.head = RetinaNetHead(self.backbone.out_channels, 3, 5)

        def forward(self, x):
            return self.head(list(self.backbone(x).values()))
    return Detector()


NETWORKS = [
    Network("patch_ts_mixer", transformer("PatchTSMixerForPrediction", "PatchTSMixerConfig", "prediction_outputs", context_length=64,
                                          prediction_length=16, num_input_channels=3, d_model=16, num_layers=3), values(64, 3), "mse"),
    Network("fnet", transformer("FNetForMaskedLM", "FNetConfig"), numbers(24)),
    Network("lfm2", transformer("Lfm2ForCausalLM", "Lfm2Config", fixed=LM, layer_types=["conv", "full_attention", "conv"],
                                num_hidden_layers=3), numbers(24)),
    Network("recurrent_gemma", transformer("RecurrentGemmaForCausalLM", "RecurrentGemmaConfig", fixed=LM, num_hidden_layers=3, lru_width=64,
                                           attention_window_size=16), numbers(24)),
    Network("mixtral", transformer("MixtralForCausalLM", "MixtralConfig", fixed=LM, num_local_experts=4, experts_implementation="batched_mm"),
            numbers(24)),
    Network("gpt_oss", transformer("GptOssForCausalLM", "GptOssConfig", fixed=LM, num_local_experts=4, num_experts_per_tok=2, sliding_window=16),
            numbers(24)),
    Network("bart", transformer("BartForConditionalGeneration", "BartConfig", fixed=LM, decoder_start_token_id=2), numbers(24)),
    Network("bloom", transformer("BloomForCausalLM", "BloomConfig", fixed=LM), numbers(24)),
    Network("nystromformer", transformer("NystromformerForMaskedLM", "NystromformerConfig", num_landmarks=8, segment_means_seq_len=64), numbers(64)),
    Network("wav2vec2_conformer", transformer("Wav2Vec2ConformerForCTC", "Wav2Vec2ConformerConfig", conv_dim=[32] * 3, conv_stride=[5, 4, 4],
                                              conv_kernel=[10, 8, 4], num_feat_extract_layers=3, num_conv_pos_embeddings=16,
                                              num_conv_pos_embedding_groups=4, apply_spec_augment=False), values(3200)),
    Network("speech_to_text", transformer("Speech2TextModel", "Speech2TextConfig", part="encoder", conv_channels=64, input_feat_per_channel=40,
                                          max_source_positions=100), values(96, 40), "mse"),
    Network("segformer", transformer("SegformerForSemanticSegmentation", "SegformerConfig", hidden_sizes=[16, 32, 48, 64], depths=[1, 1, 1, 1],
                                     num_attention_heads=[1, 2, 3, 4], decoder_hidden_size=64), image()),
    Network("videomae", transformer("VideoMAEForVideoClassification", "VideoMAEConfig", image_size=32, patch_size=8, num_frames=4),
            values(4, 3, 32, 32)),
    Network("swin2sr", transformer("Swin2SRForImageSuperResolution", "Swin2SRConfig", without=("hidden_size", "num_attention_heads", "num_hidden_layers"),
                                   image_size=32, embed_dim=36, depths=[2, 2], num_heads=[3, 3], window_size=8, upscale=2), image(32), "mse"),
    Network("blip", transformer("BlipForImageTextRetrieval", "BlipConfig", image_text_hidden_size=32,
                                text_config={"hidden_size": 64, "encoder_hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
                                             "num_attention_heads": 4, "vocab_size": 300, "projection_dim": 32, "max_position_embeddings": 64,
                                             "bos_token_id": 1, "sep_token_id": 2},
                                vision_config={"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
                                               "image_size": 64, "projection_dim": 32}), together(numbers(12), image())),
    Network("swin3d", swin3d, values(3, 8, 32, 32)),
    Network("mvit", mvit, values(3, 8, 32, 32)),
    Network("s3d", vision("s3d", "video", num_classes=10), values(3, 16, 224, 224), "cross-entropy", 2, 3),
    Network("retinanet", retinanet, image(128), "mse", 2, 3),
    Network("raft_small", lambda: picked(vision("raft_small", "optical_flow")(), -1, {"num_flow_updates": 4}), together(image(128), image(128)),
            "mse", 2, 3),
    Network("tnt", timm("tnt_s_legacy_patch16_224", img_size=64, depth=2, drop_path_rate=0.1, num_classes=10), image()),
    Network("volo", timm("volo_d1_224", img_size=64, num_classes=10), image(), "cross-entropy", 2, 3),
    Network("focalnet", timm("focalnet_tiny_srf", drop_path_rate=0.1, num_classes=10), image(), "cross-entropy", 2, 3),
    Network("coat_lite", timm("coat_lite_tiny", img_size=64, num_classes=10), image(), "cross-entropy", 2, 3),
    Network("hrnet", timm("hrnet_w18_small", num_classes=10), image(), "cross-entropy", 2, 3),
    Network("crossvit", timm("crossvit_tiny_240", num_classes=10), image(240), "cross-entropy", 2, 3),
    Network("gcvit", timm("gcvit_xxtiny", img_size=224, num_classes=10), image(224), "cross-entropy", 2, 3),
    Network("lambda_resnet", timm("lambda_resnet26rpt_256", img_size=128, num_classes=10), image(128), "cross-entropy", 2, 3),
] + [Network(name, timm(name, num_classes=10, **options), image(size), "cross-entropy", 2, 3) for name, size, options in (
    ("mobilenetv5_base", 64, {}),
    ("davit_tiny", 64, {}),
    ("tresnet_m", 64, {}),
    ("beitv2_base_patch16_224", 64, {"img_size": 64, "depth": 2, "drop_path_rate": 0.1}),
    ("samvit_base_patch16_224", 64, {"img_size": 64, "depth": 2}),
    ("nest_tiny_jx", 224, {}),
    ("vitamin_small_224", 224, {}),
    ("lowformer_b1", 64, {}),
    ("csatv2", 512, {}),
    ("convit_tiny", 64, {"img_size": 64, "depth": 4}),
    ("convmixer_768_32", 64, {}),
    ("legacy_xception", 96, {}),
    ("twins_pcpvt_small", 224, {}),
    ("inception_resnet_v2", 128, {}),
)] + [
    Network("cohere", transformer("CohereForCausalLM", "CohereConfig", fixed=LM), numbers(24)),
    Network("roformer", transformer("RoFormerForMaskedLM", "RoFormerConfig", embedding_size=32), numbers(24)),
    Network("convbert", transformer("ConvBertForMaskedLM", "ConvBertConfig", embedding_size=64), numbers(24)),
    Network("squeezebert", transformer("SqueezeBertForMaskedLM", "SqueezeBertConfig", embedding_size=64), numbers(24)),
    Network("hiera", transformer("HieraForImageClassification", "HieraConfig", without=("hidden_size", "num_attention_heads"), image_size=[64, 64],
                                 embed_dim=32, depths=[1, 1], num_heads=[1, 2], masked_unit_size=[4, 4], query_stride=[2, 2], num_query_pool=1), image()),
    Network("falcon", transformer("FalconForCausalLM", "FalconConfig", without=("head_dim",), fixed=LM), numbers(24)),
    Network("dpt", transformer("DPTForDepthEstimation", "DPTConfig", image_size=64, backbone_out_indices=[0, 1, 2, 3], neck_hidden_sizes=[16, 16, 32, 32],
                               fusion_hidden_size=32, num_hidden_layers=4), image(), "mse"),
    Network("ibert", transformer("IBertForMaskedLM", "IBertConfig"), numbers(24)),
    Network("git", transformer("GitForCausalLM", "GitConfig", fixed=LM, vision_config={
        "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128, "image_size": 64}), numbers(24)),
] + [Network(name, timm(name, num_classes=10, **options), image(size), "cross-entropy", 2, 3) for name, size, options in (  # the third list
    ("cait_xxs24_224", 64, {"img_size": 64, "depth": 3, "drop_path_rate": 0.1}),
    ("dpn68", 64, {}),
    ("inception_next_atto", 64, {"drop_path_rate": 0.1}),
    ("rdnet_tiny", 64, {}),
    ("resnest14d", 64, {}),
    ("skresnet18", 64, {}),
    ("visformer_tiny", 224, {}),
    ("vit_relpos_small_patch16_224", 64, {"img_size": 64, "depth": 2}),
)] + [
    Network("gemma2", transformer("Gemma2ForCausalLM", "Gemma2Config", fixed=LM, sliding_window=16), numbers(24)),
    Network("phi", transformer("PhiForCausalLM", "PhiConfig", without=("head_dim",), fixed=LM), numbers(24)),
    Network("ast", transformer("ASTForAudioClassification", "ASTConfig", num_mel_bins=32, max_length=64), values(64, 32)),
    Network("yolos", transformer("YolosForObjectDetection", "YolosConfig", image_size=[64, 64], num_detection_tokens=8, use_mid_position_embeddings=False),
            image()),
    Network("swin_v2", vision("swin_v2_t", num_classes=10), image(64), "cross-entropy", 2, 3),
    Network("diffusion_unet", diffuser("UNet2DModel", sample_size=32, block_out_channels=(32, 64), down_block_types=("DownBlock2D", "AttnDownBlock2D"),
                                       up_block_types=("AttnUpBlock2D", "UpBlock2D"), layers_per_block=1, norm_num_groups=8),
            together(image(32), numbers()), "mse"),
    Network("autoencoder_kl", diffuser("AutoencoderKL", block_out_channels=(16, 32), down_block_types=("DownEncoderBlock2D",) * 2,
                                       up_block_types=("UpDecoderBlock2D",) * 2, norm_num_groups=8), image(64), "mse"),
]
