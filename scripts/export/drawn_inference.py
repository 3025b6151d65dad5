"""Networks for inference.py that a seed drew: vision, language, speech, detection and what is like it, diffusion.

Candidates of each family were the names of timm and torchvision, of transformers' tasks, and of diffusers that stood in
no script, document or truth file here, sorted, then shuffled by random.Random(2211) to 2215; the batches are
random.Random(2216).choice((1, 2, 4, 8)), in turn float32, float16 (`half`), float32, autocast to float16 (`amp`). All of it was written down
before anything was exported. Left out in that order: over 80 million parameters, and what needs more than the inputs
below or a size that is given by its values. Of each family the first ones are `first()`, the next ones `second()`.
"""

import random

SMALL = {"hidden_size": 256, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 512, "vocab_size": 1000,
         "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "use_cache": False}


def called(make, key, **fixed):
    """One result of a network; the first argument or several."""
    def build():
        from torch import nn

        class Called(nn.Module):
            def __init__(self):
                super().__init__()
                self.network = make()

            def forward(self, x):
                if isinstance(x, (list, tuple)):
                    return self.network(*x, **fixed)[key]
                return self.network(x, **fixed)[key]
        return Called()
    return build


def timm(name):
    def make():
        import timm as library
        return library.create_model(name, pretrained=False)
    return make


def vision(name):
    def make():
        import torchvision
        return getattr(torchvision.models, name)()
    return make


def transformer(model, config, sizes=SMALL, **options):
    """With what the configuration knows of the sizes."""
    def make():
        import transformers
        kind = getattr(transformers, config)
        known = kind()
        return getattr(transformers, model)(kind(**{k: v for k, v in sizes.items() if hasattr(known, k)}, **options))
    return make


def diffusion(name, **options):
    def make():
        import diffusers
        return getattr(diffusers, name)(**options)
    return make


def image(size=224, channels=3):
    return lambda device, batch: random_values(device, batch, channels, size, size)


def values(*shape):
    return lambda device, batch: random_values(device, batch, *shape)


def random_values(device, *shape):
    import torch
    return torch.rand(*shape, device=device)


def tokens(length=128):
    def make(device, batch):
        import torch
        return torch.zeros(batch, length, dtype=torch.int64, device=device)
    return make


def together(*makes):
    return lambda device, batch: tuple(make(device, batch) for make in makes)


def steps(device, batch):
    import torch
    return torch.ones(batch, device=device)


def first():
    return [
        ("hardcorenas_d", timm("hardcorenas_d"), image()),
        ("pvt_v2_b2_li", timm("pvt_v2_b2_li"), image()),
        ("res2net101_26w_4s", timm("res2net101_26w_4s"), image()),
        ("resnet101_clip", timm("resnet101_clip"), image()),
        ("Olmo 3", called(transformer("Olmo3ForSequenceClassification", "Olmo3Config", num_key_value_heads=2), 0), tokens()),
        ("ESM C", called(transformer("EsmcForMaskedLM", "EsmcConfig"), 0), tokens()),
        ("BigBird", called(transformer("BigBirdForMaskedLM", "BigBirdConfig"), 0), tokens()),
        ("Moonshine encoder", called(lambda: transformer(
            "MoonshineForConditionalGeneration", "MoonshineConfig", encoder_num_hidden_layers=3,
            decoder_num_hidden_layers=1, encoder_num_attention_heads=4, decoder_num_attention_heads=4)().model.encoder, 0),
         values(16000)),
        ("MobileNetV2 for segmentation", called(transformer("MobileNetV2ForSemanticSegmentation", "MobileNetV2Config", {}), 0), image()),
        ("RT-DETR", called(transformer("RTDetrForObjectDetection", "RTDetrConfig", {}, use_pretrained_backbone=False), 0), image(320)),
        ("AuraFlow", called(diffusion("AuraFlowTransformer2DModel", sample_size=32, num_mmdit_layers=2, num_single_dit_layers=2,
                                      attention_head_dim=64, num_attention_heads=4, joint_attention_dim=256, caption_projection_dim=256,
                                      pos_embed_max_size=256), 0, return_dict=False),
         together(values(4, 32, 32), values(16, 256), steps)),
        ("AutoencoderKLKVAE", called(diffusion("AutoencoderKLKVAE"), 0, return_dict=False), image(64)),
    ]


def second():
    return [
        ("swin_v2_s", vision("swin_v2_s"), image(256)),
        ("swinv2_cr_tiny_384", timm("swinv2_cr_tiny_384"), image(384)),
        ("legacy_seresnet18", timm("legacy_seresnet18"), image()),
        ("efficientvim_m2", timm("efficientvim_m2"), image()),
        ("Cohere 2", called(transformer("Cohere2ForCausalLM", "Cohere2Config", num_key_value_heads=2), 0, use_cache=False), tokens()),
        ("TAPAS", called(transformer("TapasForMaskedLM", "TapasConfig"), 0), tokens()),
        ("Gemma 3", called(transformer("Gemma3ForCausalLM", "Gemma3TextConfig", num_key_value_heads=2, head_dim=64), 0, use_cache=False),
         tokens()),
        ("Speech2Text encoder", called(lambda: transformer(
            "Speech2TextForConditionalGeneration", "Speech2TextConfig", d_model=256, encoder_layers=3, decoder_layers=1,
            encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=512)().model.encoder, 0), values(400, 80)),
        ("PP-OCRv6", called(transformer("PPOCRV6SmallDetForObjectDetection", "PPOCRV6SmallDetConfig", {}), 0), image()),
        ("PP-OCRv5", called(transformer("PPOCRV5MobileDetForObjectDetection", "PPOCRV5MobileDetConfig", {}), 0), image()),
        ("AutoencoderKLMagvit", called(diffusion("AutoencoderKLMagvit", block_out_channels=(32, 64, 64, 64), norm_num_groups=8), 0,
                                       return_dict=False), values(3, 5, 64, 64)),
    ]


def third():
    """Drawn later: timm by random.Random(20261211), torchvision by 20261212, transformers by the seeds of drawn_again.py; what
    was left out has over 80 million parameters."""
    return [
        ("sehalonet33ts", timm("sehalonet33ts"), image(256)),
        ("lambda_resnet26rpt_256", timm("lambda_resnet26rpt_256"), image(256)),
        ("hardcorenas_a", timm("hardcorenas_a"), image()),
        ("gcvit_xtiny", timm("gcvit_xtiny"), image()),
        ("resnetv2_50d_frn", timm("resnetv2_50d_frn"), image()),
        ("fastvit_mci1", timm("fastvit_mci1"), image(256)),
        ("tinynet_d", timm("tinynet_d"), image(152)),
        ("cs3darknet_focus_m", timm("cs3darknet_focus_m"), image(256)),
        ("fcn_resnet101", called(lambda: __import__("torchvision").models.segmentation.fcn_resnet101(
            weights=None, weights_backbone=None), "out"), image()),
        ("regnet_x_3_2gf", vision("regnet_x_3_2gf"), image()),
        ("RoBERTa (pre-layer norm)", called(transformer("RobertaPreLayerNormForCausalLM", "RobertaPreLayerNormConfig"), 0), tokens()),
        ("HunYuan dense", called(transformer("HunYuanDenseV1ForCausalLM", "HunYuanDenseV1Config", num_key_value_heads=2, head_dim=64), 0,
                                 use_cache=False), tokens()),
        ("PLBart decoder", called(transformer("PLBartForCausalLM", "PLBartConfig", {
            "d_model": 256, "decoder_layers": 3, "decoder_attention_heads": 4, "decoder_ffn_dim": 512, "vocab_size": 1000}), 0,
            use_cache=False), tokens()),
        ("OpenAI GPT", called(transformer("OpenAIGPTLMHeadModel", "OpenAIGPTConfig", {
            "n_embd": 256, "n_layer": 3, "n_head": 4, "vocab_size": 1000}), 0), tokens()),
        ("Moonshine streaming encoder", called(lambda: transformer(
            "MoonshineStreamingForConditionalGeneration", "MoonshineStreamingConfig", num_key_value_heads=4, encoder_config={
                **{k: SMALL[k] for k in ("hidden_size", "num_attention_heads", "num_hidden_layers", "intermediate_size")},
                "num_key_value_heads": 4})().model.encoder, 0), values(16000)),
        ("SEW encoder", called(transformer("SEWModel", "SEWConfig"), 0), values(16000)),
    ]


def table():
    """Name: (make, input, batch, "", "half" or "amp")."""
    chosen, rows = random.Random(2216), {}
    for i, (name, make, inputs) in enumerate(first() + second() + third()):
        rows[name] = (make, inputs, chosen.choice((1, 2, 4, 8)), ("", "half", "", "amp")[i % 4])
    return rows
