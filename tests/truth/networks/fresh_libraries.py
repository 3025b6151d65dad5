"""Networks of libraries in small sizes whose families no other list has. Written down before one was exported; predicted once."""
from .common import Network, image, numbers, picked, timm, together, transformer, values, vision
from .drawn_libraries import LM, diffuser

NETWORKS = [
    Network("gptj", transformer("GPTJForCausalLM", "GPTJConfig", fixed=LM, rotary_dim=8), numbers(24)),
    Network("granite", transformer("GraniteForCausalLM", "GraniteConfig", fixed=LM), numbers(24)),
    Network("xlnet", transformer("XLNetForSequenceClassification", "XLNetConfig", fixed={"use_mems": False}, without=("max_position_embeddings",), d_inner=128), numbers(24)),
    Network("electra", transformer("ElectraForTokenClassification", "ElectraConfig", embedding_size=32), numbers(24)),
    Network("segformer", transformer("SegformerForSemanticSegmentation", "SegformerConfig", num_encoder_blocks=2, depths=[1, 1], sr_ratios=[2, 1], hidden_sizes=[16, 32],
                                     patch_sizes=[7, 3], strides=[4, 2], num_attention_heads=[1, 2], mlp_ratios=[2, 2], decoder_hidden_size=32), image()),
    Network("wav2vec2", transformer("Wav2Vec2ForSequenceClassification", "Wav2Vec2Config", conv_dim=(32, 32, 32), conv_stride=(5, 2, 2), conv_kernel=(10, 3, 2),
                                    num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=4, mask_time_prob=0.0, layerdrop=0.0), values(1600)),
    Network("unet", diffuser("UNet2DModel", sample_size=16, block_out_channels=(32, 64), layers_per_block=1, norm_num_groups=8, attention_head_dim=8,
                             down_block_types=("DownBlock2D", "AttnDownBlock2D"), up_block_types=("AttnUpBlock2D", "UpBlock2D")), together(image(16), numbers()), "mse"),
    Network("autoencoder_kl", diffuser("AutoencoderKL", block_out_channels=(16, 32), norm_num_groups=8, latent_channels=4,
                                       down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2), image(32), "mse"),
    Network("sd3", diffuser("SD3Transformer2DModel", sample_size=16, num_layers=2, attention_head_dim=16, num_attention_heads=4, caption_projection_dim=64,
                            joint_attention_dim=32, pooled_projection_dim=32, in_channels=4, out_channels=4, pos_embed_max_size=16),
            together(values(4, 16, 16), values(7, 32), values(32), numbers()), "mse"),
    Network("crossvit", timm("crossvit_tiny_240", num_classes=10, drop_path_rate=0.1), image(240), "cross-entropy", 2, 3),
    Network("skresnet", timm("skresnet18", num_classes=10), image(), "cross-entropy", 2, 3),
    Network("vovnet", timm("ese_vovnet19b_slim", num_classes=10), image(), "cross-entropy", 2, 3),
    Network("eva02", timm("eva02_tiny_patch14_224", num_classes=10, img_size=56, depth=2), image(56), "cross-entropy", 2, 3),
    Network("efficientformer", timm("efficientformer_l1", num_classes=10), image(224), "cross-entropy", 2, 3),
    Network("deeplab", lambda: picked(vision("deeplabv3_mobilenet_v3_large", "segmentation", weights=None, weights_backbone=None, num_classes=5)(), "out", {}), image(),
            "cross-entropy", 2, 3),
]
