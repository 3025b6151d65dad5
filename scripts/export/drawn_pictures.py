"""Networks of vision, segmentation, detection, diffusion and video for default_exports.py: drawn by a seed.

random.Random(20261125) for pictures() and 20261126 for pictures_later() shuffled, of each library, the names that stood in no
script and no table here: modules of timm.models and single models of it (at most 30 million parameters; at 64 if their size is
not fixed), model types of the transformers library, classes of diffusers, pairs of architecture and encoder of
segmentation-models-pytorch, models of torchvision. Both were written down before anything was exported. Left out in that
order: what needs more than the inputs below, or has over 55 million parameters. Every fourth name that could be exported is
exported by the older exporter, too (`dynamo=False`). pictures_third() and pictures_fourth() say their own rules.
"""

from drawn_parts import SMALL, TEXT, called, detected, given, library, together, whole
from fresh_networks import BATCH, diffusers_model, image, segmentation, timm_model, values

OLDER = ", older exporter"


def vision(name, **options):
    def make():
        import torchvision
        return torchvision.models.get_model(name, weights=None, **options)
    return make


def result(model, config, key="logits", **options):
    return called(library(model, config, **options), lambda n, x: n(x, return_dict=True), key)


def diffusion(name, **options):
    return called(diffusers_model(name, **options), lambda n, x: n(*x, return_dict=False)[0])


def small_resnet(*stages):
    import transformers
    return transformers.ResNetConfig(embedding_size=16, hidden_sizes=[16, 32, 64, 64], depths=[1, 1, 1, 1], layer_type="basic",
                                     out_features=list(stages))


def real_time():
    import transformers
    backbone = transformers.RTDetrResNetConfig(embedding_size=16, hidden_sizes=[16, 32, 64, 64], depths=[1, 1, 1, 1],
                                               layer_type="basic", out_features=["stage2", "stage3", "stage4"])
    return transformers.RTDetrForObjectDetection(transformers.RTDetrConfig(
        backbone_config=backbone, encoder_hidden_dim=64, encoder_in_channels=[32, 64, 64], encoder_ffn_dim=128,
        encoder_attention_heads=4, d_model=64, num_queries=20, decoder_in_channels=[64, 64, 64], decoder_ffn_dim=128,
        decoder_layers=2, decoder_attention_heads=4, num_denoising=0, num_labels=10))


def tables():
    import transformers
    return transformers.TableTransformerForObjectDetection(transformers.TableTransformerConfig(
        backbone_config=small_resnet("stage4"), d_model=64, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=128, decoder_ffn_dim=128, num_queries=20, num_labels=10))


def video_autoencoder(name, **options):
    return called(diffusers_model(name, base_dim=16, z_dim=4, dim_mult=[1, 2], num_res_blocks=1, temperal_downsample=[False],
                                  latents_mean=[0.0] * 4, latents_std=[1.0] * 4, **options),
                  lambda n, x: n(x, return_dict=False)[0])


PICTURES = {"image_size": 64, "patch_size": 8, "num_labels": 10, **SMALL}
HEADS = {"num_attention_heads": 4, "attention_head_dim": 16}


def older(table, *names):
    return {**table, **{name + OLDER: table[name] for name in names}}


def pictures():
    """Written down on 2026-11-22 before any of them was exported."""
    sizes = together(image(16, 4), TEXT, whole(BATCH, below=1000), given(BATCH, 2), given(BATCH, 2), given(BATCH, 2))
    return older({
        "Swin V2 (window 16)": (timm_model("swinv2_tiny_window16_256"), image(256), ()),
        "Inception-ResNet v2": (timm_model("inception_resnet_v2"), image(128), ()),
        "CSATv2": (timm_model("csatv2"), image(512), ()),
        "SHViT": (timm_model("shvit_s3"), image(), ()),
        "EfficientNet-EM": (timm_model("efficientnet_em"), image(), ()),
        "GhostNet V3": (timm_model("ghostnetv3_100"), image(), ()),
        "NF-SE-ResNet-50": (timm_model("nf_seresnet50"), image(), ()),
        "ConvNeXt femto (overlapping stem)": (timm_model("convnext_femto_ols"), image(), ()),
        "ECA-NFNet-L0": (timm_model("eca_nfnet_l0"), image(), ()),
        "SegFormer (transformers)": (result("SegformerForSemanticSegmentation", "SegformerConfig", num_labels=10,
                                            hidden_sizes=[16, 32, 40, 64], decoder_hidden_size=64), image(), ()),
        "DINOv2 with registers": (result("Dinov2WithRegistersForImageClassification", "Dinov2WithRegistersConfig", **{
            k: v for k, v in PICTURES.items() if k != "intermediate_size"}), image(), ()),
        "RT-DETR": (detected(real_time), image(128), ()),
        "PoolFormer (transformers)": (result("PoolFormerForImageClassification", "PoolFormerConfig", num_labels=10,
                                             hidden_sizes=[16, 32, 40, 64]), image(), ()),
        "Table Transformer": (detected(tables), image(128), ()),
        "I-JEPA": (result("IJepaForImageClassification", "IJepaConfig", **PICTURES), image(), ()),
        "Donut Swin": (result("DonutSwinForImageClassification", "DonutSwinConfig", num_labels=10, embed_dim=32,
                              depths=[2, 2], num_heads=[2, 4], image_size=112), image(112), ()),
        "CogVideoX": (diffusion("CogVideoXTransformer3DModel", in_channels=4, out_channels=4, time_embed_dim=64, text_embed_dim=64,
                                num_layers=2, sample_width=16, sample_height=16, sample_frames=5, max_text_seq_length=8, **HEADS),
                      together(given(BATCH, 2, 4, 16, 16), TEXT, whole(BATCH, below=1000)), ()),
        "FLUX.2": (called(diffusers_model("Flux2Transformer2DModel", in_channels=16, num_layers=1, num_single_layers=2,
                                          joint_attention_dim=64, timestep_guidance_channels=32, axes_dims_rope=(4, 4, 4, 4),
                                          guidance_embeds=False, **HEADS),
                          lambda n, x: n(x[0], x[1], x[2], x[3], x[4], return_dict=False)[0]),
                   together(given(BATCH, 64, 16), TEXT, given(BATCH), given(64, 4), given(8, 4)), ()),
        "CogView3-Plus": (diffusion("CogView3PlusTransformer2DModel", in_channels=4, num_layers=2, out_channels=4,
                                    text_embed_dim=64, time_embed_dim=64, condition_dim=32, pos_embed_max_size=16, sample_size=16,
                                    **HEADS), sizes, ()),
        "AutoencoderKLQwenImage": (video_autoencoder("AutoencoderKLQwenImage"), values(3, 1, 32, 32), ()),
        "AutoencoderKLWan": (video_autoencoder("AutoencoderKLWan"), values(3, 1, 32, 32), ()),
        "UPerNet (EfficientNet-B0)": (segmentation("UPerNet", "timm-efficientnet-b0"), image(), ()),
        "U-Net++ (SE-ResNet-50)": (segmentation("UnetPlusPlus", "se_resnet50"), image(), ()),
        "DeepLabV3+ (MobileNet V3)": (segmentation("DeepLabV3Plus", "timm-mobilenetv3_small_100"), image(), ()),
        "FPN (ResNet-34)": (segmentation("FPN", "resnet34"), image(), ()),
        "RAFT": (called(vision("raft_small"), lambda n, x: n(*x, num_flow_updates=2)[-1]),
                 together(image(128), image(128)), ()),
        "RegNet X (1.6 GF)": (vision("regnet_x_1_6gf", num_classes=10), image(), ()),
        "DenseNet-161": (vision("densenet161", num_classes=10), image(), ()),
        "EfficientNet V2-S": (vision("efficientnet_v2_s", num_classes=10), image(), ()),
    }, "SHViT", "ConvNeXt femto (overlapping stem)", "DINOv2 with registers", "PoolFormer (transformers)", "I-JEPA", "Donut Swin",
        "U-Net++ (SE-ResNet-50)", "RegNet X (1.6 GF)")


def masks():
    import transformers
    return transformers.MaskFormerForInstanceSegmentation(transformers.MaskFormerConfig(
        fpn_feature_size=32, mask_feature_size=32, num_labels=10,
        backbone_config=transformers.SwinConfig(image_size=64, embed_dim=16, depths=[1, 1, 1, 1], num_heads=[1, 2, 2, 4],
                                                window_size=4, out_features=["stage1", "stage2", "stage3", "stage4"]),
        decoder_config=transformers.DetrConfig(d_model=32, encoder_layers=1, decoder_layers=2, encoder_attention_heads=4,
                                               decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64,
                                               num_queries=20)))


def pictures_later():
    """The same by the other seed, without what the first draw had."""
    return older({
        "ViT, relative positions (post norm)": (timm_model("vit_relpos_small_patch16_rpn_224"), image(224), ()),
        "RegNet Y (6.4 GF)": (timm_model("regnety_064"), image(), ()),
        "Swin (window 7)": (timm_model("swin_tiny_patch4_window7_224"), image(224), ()),
        "ResNet-50-C": (timm_model("resnet50c"), image(), ()),
        "ConvNeXt pico": (timm_model("convnext_pico"), image(), ()),
        "MobileNet V2 (0.35)": (timm_model("mobilenetv2_035"), image(), ()),
        "GC-ResNet-33ts": (timm_model("gcresnet33ts"), image(), ()),
        "GLPN": (result("GLPNForDepthEstimation", "GLPNConfig", "predicted_depth", hidden_sizes=[16, 32, 40, 64],
                        decoder_hidden_size=32), image(), ()),
        "VideoPrism": (result("VideoPrismForVideoClassification", "VideoPrismVisionConfig", image_size=32, num_frames=4,
                              tubelet_size=[1, 8, 8], hidden_size=64, num_attention_heads=4, intermediate_size=128,
                              num_spatial_layers=2, num_temporal_layers=1, num_auxiliary_layers=1, num_labels=10),
                       values(4, 3, 32, 32), ()),
        "ImageGPT": (result("ImageGPTForImageClassification", "ImageGPTConfig", vocab_size=65, n_positions=64, n_embd=64, n_layer=2,
                            n_head=4, num_labels=10, use_cache=False), whole(BATCH, 64, below=64), ()),
        "MaskFormer": (called(masks, lambda n, x: (lambda r: (r.class_queries_logits, r.masks_queries_logits))(
            n(x, return_dict=True))), image(), ()),
        "ViT-MSN": (result("ViTMSNForImageClassification", "ViTMSNConfig", **PICTURES), image(), ()),
        "BRIA FIBO": (called(diffusers_model("BriaFiboTransformer2DModel", in_channels=16, num_layers=1, num_single_layers=1,
                                             joint_attention_dim=64, text_encoder_dim=32, axes_dims_rope=[4, 6, 6], **HEADS),
                             lambda n, x: n(x[0], x[1], text_encoder_layers=[x[5], x[5]], timestep=x[2], img_ids=x[3],
                                            txt_ids=x[4], return_dict=False)[0]),
                      together(given(BATCH, 64, 16), TEXT, given(BATCH), given(64, 3), given(8, 3), given(BATCH, 8, 32)), ()),
        "SanaVideo": (diffusion("SanaVideoTransformer3DModel", in_channels=4, out_channels=4, num_layers=2,
                                num_cross_attention_heads=4, cross_attention_head_dim=16, cross_attention_dim=64,
                                caption_channels=64, sample_size=16, **HEADS),
                      together(given(BATCH, 4, 2, 16, 16), TEXT, whole(BATCH, below=1000)), ()),
        "AuraFlow": (diffusion("AuraFlowTransformer2DModel", sample_size=16, num_mmdit_layers=1, num_single_dit_layers=2,
                               joint_attention_dim=64, caption_projection_dim=64, pos_embed_max_size=64, **HEADS),
                     together(image(16, 4), TEXT, given(BATCH)), ()),
        "PRX": (diffusion("PRXTransformer2DModel", in_channels=4, context_in_dim=64, hidden_size=64, num_heads=4, depth=2,
                          axes_dim=[8, 8]), together(image(16, 4), given(BATCH), TEXT), ()),
        "PSPNet (MobileOne-S2)": (segmentation("PSPNet", "mobileone_s2"), image(), ()),
        "PAN (ResNeXt-50)": (segmentation("PAN", "resnext50_32x4d"), image(128), ()),
        "FPN (EfficientNet-B1)": (segmentation("FPN", "timm-efficientnet-b1"), image(), ()),
        "RegNet Y (1.6 GF)": (vision("regnet_y_1_6gf", num_classes=10), image(), ()),
        "EfficientNet-B3": (vision("efficientnet_b3", num_classes=10), image(), ()),
    }, "ConvNeXt pico", "GLPN", "ViT-MSN", "MobileNet V2 (0.35)")


def depth():
    import transformers
    return transformers.Tipsv2DptForDepthEstimation(transformers.Tipsv2DptConfig(
        backbone_config=transformers.Tipsv2VisionConfig(
            hidden_size=64, num_hidden_layers=4, num_attention_heads=4, image_size=64, patch_size=8, out_indices=[1, 2, 3, 4],
            apply_layernorm=True, reshape_hidden_states=False),
        neck_hidden_sizes=[16, 16, 32, 32], fusion_hidden_size=32, num_depth_bins=16))


def feature_map(model, config, **options):
    return called(library(model, config, **options), lambda n, x: n(x).feature_maps[-1])


def pictures_third():
    """By random.Random(20261127), the newer exporter alone; of a module of timm the smallest model, at most 30 million parameters.
    Left out beside what is said above: detectors and networks for points, masks of random places, what other tables have under
    another name, Mochi (its sizes depend on values), DeepLabV3+ with VGG-19, which the library refuses, and segmentation with
    over 45 million parameters. Written down on 2026-11-22 before any of them was exported."""
    words = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64, "vocab_size": 100}
    sight = {**SMALL, "image_size": 64, "patch_size": 8}
    return {
        "HaloNet": (timm_model("halonet_h1"), image(256), ()),
        "MetaCLIP 2": (result("MetaClip2ForImageClassification", "MetaClip2Config", num_labels=10, vision_config=sight,
                              text_config=words), image(), ()),
        "AutoencoderKLHunyuanVideo": (called(diffusers_model(
            "AutoencoderKLHunyuanVideo", latent_channels=4, down_block_types=("HunyuanVideoDownBlock3D",) * 4,
            up_block_types=("HunyuanVideoUpBlock3D",) * 4, block_out_channels=(8, 8, 16, 16), layers_per_block=1,
            norm_num_groups=4), lambda n, x: n(x, return_dict=False)[0]), values(3, 5, 32, 32), ()),
        "ShuffleNet V2 (x0.5)": (vision("shufflenet_v2_x0_5", num_classes=10), image(), ()),
        "CS3 Darknet": (timm_model("cs3darknet_focus_s"), image(), ()),
        "Pixio": (feature_map("PixioBackbone", "PixioConfig", hidden_size=64, num_hidden_layers=2, num_attention_heads=4,
                              image_size=64, patch_size=8), image(), ()),
        "PSPNet (DPN-92)": (segmentation("PSPNet", "dpn92"), image(), ()),
        "CAFormer": (timm_model("caformer_s18"), image(), ()),
        "TIPSv2 DPT": (called(depth, lambda n, x: n(x).predicted_depth), image(), ()),
        "EasyAnimate": (called(diffusers_model(
            "EasyAnimateTransformer3DModel", in_channels=4, out_channels=4, patch_size=2, sample_width=16, sample_height=16,
            num_layers=2, mmdit_layers=1, time_embed_dim=64, text_embed_dim=64, **HEADS),
            lambda n, x: n(x[0], x[1], encoder_hidden_states=x[2], return_dict=False)[0]),
                        together(given(BATCH, 4, 2, 16, 16), whole(BATCH, below=1000), TEXT), ()),
        "RegNet Y (3.2 GF)": (vision("regnet_y_3_2gf", num_classes=10), image(), ()),
        "MambaOut (tiny)": (timm_model("mambaout_tiny"), image(), ()),
        "DINOv3 ConvNeXt": (feature_map("DINOv3ConvNextBackbone", "DINOv3ConvNextConfig", hidden_sizes=[16, 32, 40, 64],
                                        depths=[1, 1, 2, 1]), image(), ()),
        "UPerNet (EfficientNet-Lite4)": (segmentation("UPerNet", "timm-tf_efficientnet_lite4"), image(), ()),
        "ResNet-32-TS": (timm_model("resnet32ts"), image(), ()),
        "AIMv2": (called(library("Aimv2VisionModel", "Aimv2VisionConfig", **sight), lambda n, x: n(x).pooler_output), image(), ()),
        "AutoencoderKLHunyuanVideo15": (called(diffusers_model(
            "AutoencoderKLHunyuanVideo15", latent_channels=4, block_out_channels=(8, 8, 16, 16, 16), layers_per_block=1),
            lambda n, x: n(x, return_dict=False)[0]), values(3, 5, 32, 32), ()),
        "GhostNet V2 (1.3)": (timm_model("ghostnetv2_130"), image(), ()),
        "LinkNet (VGG-19)": (segmentation("Linknet", "vgg19"), image(), ()),
    }


def pictures_fourth():
    """By random.Random(20261128), under the rules of pictures_third(): of timm single models alone, as the smallest ones of the
    modules that were left are too large or in other tables. Left out beside: Allegro's autoencoder, audio and video with masks, for
    want of time. Written down on 2026-11-22 before any of them was exported."""
    unet = {"sample_size": 16, "in_channels": 8, "block_out_channels": (32, 64), "num_attention_heads": (2, 4), "num_frames": 2,
            "down_block_types": ("CrossAttnDownBlockSpatioTemporal", "DownBlockSpatioTemporal"), "layers_per_block": 1,
            "up_block_types": ("UpBlockSpatioTemporal", "CrossAttnUpBlockSpatioTemporal"), "cross_attention_dim": 64,
            "addition_time_embed_dim": 32, "projection_class_embeddings_input_dim": 96}
    return {
        "EfficientNet-X-B3": (timm_model("efficientnet_x_b3"), image(), ()),
        "PP-LCNet V4": (feature_map("PPLCNetV4Backbone", "PPLCNetV4Config", scale=0.25), image(), ()),
        "FLUX ControlNet": (called(diffusers_model("FluxControlNetModel", in_channels=16, num_layers=1, num_single_layers=1,
                                                   joint_attention_dim=64, pooled_projection_dim=32, axes_dims_rope=[4, 6, 6],
                                                   **HEADS),
                                   lambda n, x: n(hidden_states=x[0], controlnet_cond=x[0], controlnet_mode=None,
                                                  conditioning_scale=1.0, encoder_hidden_states=x[1], timestep=x[2], img_ids=x[3],
                                                  txt_ids=x[4], pooled_projections=x[5], return_dict=False)[0][0]),
                            together(given(BATCH, 64, 16), TEXT, given(BATCH), given(64, 3), given(8, 3), given(BATCH, 32)), ()),
        "DeepLabV3+ (EfficientNet-B4)": (segmentation("DeepLabV3Plus", "efficientnet-b4"), image(), ()),
        "EfficientFormer V2 (large)": (timm_model("efficientformerv2_l"), image(224), ()),
        "UVDoc": (feature_map("UVDocBackbone", "UVDocBackboneConfig"), image(), ()),
        "UNetSpatioTemporal": (called(diffusers_model("UNetSpatioTemporalConditionModel", **unet),
                                      lambda n, x: n(x[0], x[1], x[2], x[3], return_dict=False)[0]),
                               together(given(BATCH, 2, 8, 16, 16), given(BATCH), given(BATCH, 1, 64), given(BATCH, 3)), ()),
        "MNASNet 0.75": (vision("mnasnet0_75", num_classes=10), image(), ()),
        "CrossViT (15, 240)": (timm_model("crossvit_15_240"), image(240), ()),
        "RF-DETR's DINOv2": (feature_map("RfDetrDinov2Backbone", "RfDetrDinov2Config", hidden_size=64, num_hidden_layers=2,
                                         num_attention_heads=4, image_size=64, patch_size=8, num_windows=2), image(), ()),
        "EfficientNet-B4": (timm_model("tf_efficientnet_b4"), image(), ()),
        "VoVNet-39a": (timm_model("vovnet39a"), image(), ()),
        "ShuffleNet V2 (x2.0)": (vision("shufflenet_v2_x2_0", num_classes=10), image(), ()),
        "LowFormer-B1": (timm_model("lowformer_b1"), image(), ()),
    }


def padless(name, **options):
    return called(diffusers_model(name, **options), lambda n, x: n(x, return_dict=False)[0])


def pictures_fifth():
    """By random.Random(20261201), under the rules of pictures_third(), of timm single models of at most 30 million parameters.
    Left out beside: networks of texts and points, those of two inputs of pictures, and SigLIP, which is in another table. Written
    down on 2026-11-23 before any of them was exported."""
    sight = {**SMALL, "image_size": 64, "patch_size": 8}
    return {
        "RepGhostNet (0.8)": (timm_model("repghostnet_080"), image(), ()),
        "RegNet V (4.0 GF)": (timm_model("regnetv_040"), image(), ()),
        "LowFormer-E2": (timm_model("lowformer_e2"), image(), ()),
        "HGNet (small)": (timm_model("hgnet_small"), image(), ()),
        "ViT-S/32 (384)": (timm_model("vit_small_patch32_384"), image(384), ()),
        "LeViT-192": (timm_model("levit_192"), image(224), ()),
        "ECA-ResNet-101-D (pruned)": (timm_model("ecaresnet101d_pruned"), image(), ()),
        "HGNet V2-B4": (timm_model("hgnetv2_b4"), image(), ()),
        "CaiT-XXS-36": (timm_model("cait_xxs36_224"), image(224), ()),
        "ViTPose": (feature_map("VitPoseBackbone", "VitPoseBackboneConfig", image_size=[64, 48], patch_size=[16, 16], hidden_size=64,
                                num_hidden_layers=2, num_attention_heads=4),
                    lambda device: image(64)(device)[..., :48].contiguous(), ()),
        "PP-LCNet V3": (feature_map("PPLCNetV3Backbone", "PPLCNetV3Config", scale=0.5), image(), ()),
        "Sapiens 2": (feature_map("Sapiens2Backbone", "Sapiens2Config", num_key_value_attention_heads=2,
                                  num_key_value_heads_per_layer=[4, 2], num_first_full_attention_layers=1,
                                  num_last_full_attention_layers=0, **sight), image(), ()),
        "MLCD": (called(library("MLCDVisionModel", "MLCDVisionConfig", **sight), lambda n, x: n(x).pooler_output), image(), ()),
        "AutoencoderKLCosmos": (padless(
            "AutoencoderKLCosmos", latent_channels=4, encoder_block_out_channels=(16, 16, 32), decode_block_out_channels=(16, 32, 32),
            attention_resolutions=(8,), resolution=32, num_layers=1, patch_size=2, spatial_compression_ratio=4,
            temporal_compression_ratio=2), values(3, 5, 32, 32), ()),
        "AutoencoderKLLTX2Video": (padless(
            "AutoencoderKLLTX2Video", latent_channels=8, block_out_channels=(16, 16, 32, 32), decoder_block_out_channels=(16, 16, 32),
            layers_per_block=(1, 1, 1, 1, 1), decoder_layers_per_block=(1, 1, 1, 1)), values(3, 9, 64, 64), ()),
        "Cosmos": (diffusion("CosmosTransformer3DModel", in_channels=4, out_channels=4, num_layers=2, text_embed_dim=64,
                             adaln_lora_dim=16, max_size=(4, 16, 16), concat_padding_mask=False, extra_pos_embed_type=None,
                             **HEADS), together(given(BATCH, 4, 2, 16, 16), given(BATCH), TEXT), ()),
        "Stable Diffusion 3": (diffusion("SD3Transformer2DModel", sample_size=16, in_channels=4, num_layers=2, joint_attention_dim=64,
                                         caption_projection_dim=64, pooled_projection_dim=32, out_channels=4, pos_embed_max_size=16,
                                         **HEADS),
                               together(image(16, 4), TEXT, given(BATCH, 32), whole(BATCH, below=1000)), ()),
        "AutoencoderKLHunyuanImage": (padless(
            "AutoencoderKLHunyuanImage", in_channels=3, out_channels=3, latent_channels=4, block_out_channels=(32, 64),
            layers_per_block=1, spatial_compression_ratio=2, sample_size=32), image(32), ()),
        "SegFormer (EfficientNet-B4)": (segmentation("Segformer", "timm-efficientnet-b4"), image(), ()),
        "PSPNet (Xception)": (segmentation("PSPNet", "xception"), image(128), ()),
        "U-Net (EfficientNet-Lite4)": (segmentation("Unet", "timm-tf_efficientnet_lite4"), image(), ()),
        "MA-Net (VGG-13)": (segmentation("MAnet", "vgg13_bn"), image(), ()),
        "U-Net (MiT-B0)": (segmentation("Unet", "mit_b0"), image(), ()),
        "RegNet X (8 GF)": (vision("regnet_x_8gf", num_classes=10), image(), ()),
        "Swin-S": (vision("swin_s", num_classes=10), image(), ()),
    }


def pictures_sixth():
    """By random.Random(20261202), under the rules of pictures_fifth(), without what that has; written down with it."""
    return {
        "MixNet-S": (timm_model("mixnet_s"), image(), ()),
        "LowFormer-E1": (timm_model("lowformer_e1"), image(), ()),
        "ConvFormer-S18": (timm_model("convformer_s18"), image(), ()),
        "ViT, parallel heads (256)": (timm_model("vit_pwee_patch16_reg1_gap_256"), image(256), ()),
        "ResNeXt-26-TS": (timm_model("resnext26ts"), image(), ()),
        "Res2Net of DLA-60": (timm_model("dla60_res2net"), image(), ()),
        "ReXNet-R (2.0)": (timm_model("rexnetr_200"), image(), ()),
        "HGNet (tiny)": (timm_model("hgnet_tiny"), image(), ()),
        "AutoencoderKLLTXVideo": (padless(
            "AutoencoderKLLTXVideo", latent_channels=8, block_out_channels=(16, 16, 32, 32), decoder_block_out_channels=(16, 16, 32, 32),
            layers_per_block=(1, 1, 1, 1, 1), decoder_layers_per_block=(1, 1, 1, 1, 1)), values(3, 9, 64, 64), ()),
        "Chroma": (called(diffusers_model("ChromaTransformer2DModel", in_channels=16, num_layers=1, num_single_layers=1,
                                          joint_attention_dim=64, axes_dims_rope=(4, 6, 6), approximator_num_channels=16,
                                          approximator_hidden_dim=32, approximator_layers=2, **HEADS),
                          lambda n, x: n(x[0], x[1], x[2], x[3], x[4], return_dict=False)[0]),
                   together(given(BATCH, 64, 16), TEXT, given(BATCH), given(64, 3), given(8, 3)), ()),
        "UPerNet (VGG-13)": (segmentation("UPerNet", "vgg13_bn"), image(), ()),
        "PAN (VGG-19)": (segmentation("PAN", "vgg19"), image(128), ()),
        "DeepLabV3+ (MiT-B1)": (segmentation("DeepLabV3Plus", "mit_b1"), image(), ()),
        "U-Net (EfficientNet-Lite0)": (segmentation("Unet", "timm-tf_efficientnet_lite0"), image(), ()),
        "LinkNet (EfficientNet-B4)": (segmentation("Linknet", "timm-efficientnet-b4"), image(), ()),
    }
