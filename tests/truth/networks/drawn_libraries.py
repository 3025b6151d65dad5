"""Networks of libraries whose families no other list has. Written down before one was exported; predicted once.

timm: modules without a network in any list, shuffled by random.Random(20261129). transformers: classes for language, shuffled likewise, without mixtures of experts.
"""
from .common import Network, image, numbers, picked, timm, together, transformer, values, vision

LM = {"use_cache": False}


def diffuser(name, **options):
    def make():
        import diffusers
        return picked(getattr(diffusers, name)(**options), 0, {"return_dict": False})
    return make


NETWORKS = [
    Network("rexnet", timm("rexnet_100", num_classes=10, drop_path_rate=0.1), image(), "cross-entropy", 2, 3),
    Network("iformer", timm("iformer_t", num_classes=10), image(), "cross-entropy", 2, 3),
    Network("mambaout", timm("mambaout_femto", num_classes=10), image(), "cross-entropy", 2, 3),
    Network("pit", timm("pit_ti_224", num_classes=10), image(224), "cross-entropy", 2, 3),
    Network("fcn", lambda: picked(vision("fcn_resnet50", "segmentation", weights=None, weights_backbone=None, num_classes=5)(), "out", {}), image(),
            "cross-entropy", 2, 3),
    Network("regnet_y", vision("regnet_y_400mf", num_classes=10), image(), "cross-entropy", 2, 3),
    Network("big_bird", transformer("BigBirdForCausalLM", "BigBirdConfig", fixed=LM, attention_type="original_full", is_decoder=True), numbers(24)),
    Network("m2m_100", transformer("M2M100ForConditionalGeneration", "M2M100Config", fixed=LM, decoder_start_token_id=2), together(numbers(24), numbers(24), numbers(16))),
    Network("biogpt", transformer("BioGptForCausalLM", "BioGptConfig", fixed=LM), numbers(24)),
    Network("roberta", transformer("RobertaForCausalLM", "RobertaConfig", fixed=LM, is_decoder=True), numbers(24)),
    Network("xlm_roberta_xl", transformer("XLMRobertaXLForMaskedLM", "XLMRobertaXLConfig"), numbers(24)),
    Network("mobilebert", transformer("MobileBertForMaskedLM", "MobileBertConfig", hidden_size=64, embedding_size=32, intra_bottleneck_size=32,
                                      true_hidden_size=32), numbers(24)),
    Network("unet_condition", diffuser("UNet2DConditionModel", sample_size=16, block_out_channels=(32, 64), down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
                                       up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"), layers_per_block=1, cross_attention_dim=32, attention_head_dim=8,
                                       norm_num_groups=8), together(values(4, 16, 16), numbers(), values(7, 32)), "mse"),
    Network("pixart", diffuser("PixArtTransformer2DModel", num_attention_heads=4, attention_head_dim=16, in_channels=4, out_channels=4, num_layers=2,
                               cross_attention_dim=64, sample_size=16, caption_channels=32, use_additional_conditions=False),
            together(values(4, 16, 16), values(7, 32), numbers()), "mse"),
    Network("tiny_autoencoder", diffuser("AutoencoderTiny", encoder_block_out_channels=(16, 16, 16), decoder_block_out_channels=(16, 16, 16),
                                         num_encoder_blocks=(1, 2, 2), num_decoder_blocks=(2, 2, 1)), image(64), "mse"),
]
