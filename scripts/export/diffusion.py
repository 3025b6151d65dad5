"""Small networks of diffusers for population.py.

Configurations of diffusers are made small by the names of their fields, and given what a forward pass asks for by the names of
its arguments; what such a guess gets wrong stands in a table by class. Arguments that a network can do without are left out,
unless the table names them. Networks are given all tensors, conditions, too, as inputs: buffers would be constants.
"""

import ast
import glob
import importlib.util
import inspect
import os

BATCH, TEXT, WIDTH, SIDE, FRAMES = 4, 8, 32, 16, 3

# Fields of configurations with whole numbers, and what they become.
SMALL = {
    **dict.fromkeys(("num_layers", "num_hidden_layers", "depth", "num_blocks", "nlayers", "n_layers", "num_visual_blocks",
                     "num_double_layers"), 2),
    **dict.fromkeys(("num_single_layers", "num_refiner_layers", "n_refiner_layers", "num_text_blocks", "layers_per_block",
                     "num_res_blocks", "decoder_num_layers", "encoder_layers_per_block", "decoder_layers_per_block",
                     "num_mmdit_layers", "num_single_dit_layers", "num_attention_pooler_hidden_layers", "approximator_layers",
                     "n_controlnet_blocks"), 1),
    **dict.fromkeys(("num_attention_heads", "num_heads", "n_heads", "nheads", "num_cross_attention_heads", "block_num_heads",
                     "num_key_value_heads", "num_kv_heads", "n_kv_heads", "num_key_value_attention_heads", "caption_heads",
                     "motion_num_attention_heads", "decoder_num_attention_heads", "audio_num_attention_heads"), 2),
    **dict.fromkeys(("attention_head_dim", "cross_attention_head_dim", "head_dim", "decoder_attention_head_dim",
                     "audio_attention_head_dim"), 16),
    **dict.fromkeys(("cross_attention_dim", "joint_attention_dim", "text_dim", "text_embed_dim", "caption_channels",
                     "embed_dim", "hidden_size", "dim", "cap_feat_dim", "text_in_dim", "pooled_projection_dim",
                     "cross_attention_input_dim", "model_dim", "in_text_dim", "in_text_dim2", "time_dim", "time_embed_dim",
                     "condition_dim", "context_in_dim", "caption_projection_dim", "conditioning_dim", "encoder_hidden_size",
                     "cond_embed_dim", "model_channels", "text_hidden_dim", "text_encoder_dim", "cond_token_dim",
                     "global_cond_dim", "cross_attention_dim_t5", "encoder_hidden_states_channels", "img_context_dim_out",
                     "embedding_dim", "clip_embed_dim", "token_dim", "dim_cond", "pair_repr_dim",
                     "audio_cross_attention_dim", "freq_dim", "time_proj_dim", "hidden_channels", "timestep_features_dim",
                     "adaln_lora_dim", "base_dim", "decoder_base_dim", "ch", "block_out_channels", "tri_mult_c",
                     "audio_acoustic_hidden_dim", "crossattn_proj_in_channels", "encoder_dim", "input_dim"), WIDTH),
    **dict.fromkeys(("ffn_dim", "ff_dim", "intermediate_size", "ffn_hidden_size", "approximator_hidden_dim"), 2 * WIDTH),
    **dict.fromkeys(("sample_size", "sample_width", "sample_height", "image_size", "resolution"), SIDE),
    **dict.fromkeys(("vocab_size", "codebook_size", "num_vq_embeddings"), 100),
    "multiple_of": 16, "addition_time_embed_dim": 16, "pos_embed_max_size": SIDE, "num_frames": FRAMES, "decoder_dim": 64,
}
# Fields of configurations with a number for each axis or each level.
AXES = ("axes_dims_rope", "rope_axes_dim", "axes_dims", "rope_dim_list", "axes_dim", "axes_dims_a", "rope_dim")
LEVELS = ("block_out_channels", "encoder_block_out_channels", "decoder_block_out_channels")


def axes(count):
    """Halves of a head's width for axes of positions."""
    return {1: (16,), 2: (8, 8), 3: (4, 6, 6), 4: (4, 4, 4, 4)}[count]


def smaller(fields):
    """A small configuration of the fields of one, by their names; of more than two levels of blocks the first and the last."""
    given, levels = {}, len(fields.get("down_block_types") or ())
    for name, value in fields.items():
        if levels > 2 and isinstance(value, (tuple, list)) and len(value) == levels:
            given[name] = value = type(value)([value[0], value[-1]])
        if name in AXES and isinstance(value, (tuple, list)):
            given[name] = type(value)(axes(len(value)))
        elif name in LEVELS and isinstance(value, (tuple, list)):
            given[name] = type(value)([WIDTH] * (len(value) // 2) + [2 * WIDTH] * ((len(value) + 1) // 2))
        elif name in SMALL and isinstance(value, (tuple, list)) and value and isinstance(value[0], int):
            given[name] = type(value)([SMALL[name]] * len(value))
        elif name in SMALL and isinstance(value, int) and not isinstance(value, bool):
            given[name] = SMALL[name]
        elif name in ("in_channels", "out_channels") and isinstance(value, int) and value > 16:
            given[name] = 16
        elif name == "in_channels" and value is None:
            given[name] = 4
    return given


def classes():
    """Every class of diffusers.models that is a network of its own; read, as importing all of them would ask for a device."""
    folder = os.path.join(importlib.util.find_spec("diffusers").submodule_search_locations[0], "models")
    found = []
    for path in glob.glob(os.path.join(folder, "**", "*.py"), recursive=True):
        with open(path) as file:
            tree = ast.parse(file.read())
        found += [c.name for c in tree.body
                  if isinstance(c, ast.ClassDef) and any("ModelMixin" in ast.unparse(b) for b in c.bases)
                  and any(isinstance(f, ast.FunctionDef) and f.name == "forward" for f in c.body)]
    return found


def defaults(function):
    """Arguments and their defaults."""
    return {k: p.default for k, p in inspect.signature(function).parameters.items()
            if k != "self" and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)}


def number(*shape, high=0):
    """The shape of a tensor; with a highest value one of whole numbers, with True one of truth values."""
    return shape, high


def shapes(name, config, wanted):
    """What a forward pass is given: {argument: number(...) or what it is}."""
    def field(*names):
        return next((config[n] for n in names if isinstance(config.get(n), int)), 0)
    channels = field("in_channels", "io_channels", "in_visual_dim", "latent_channels") or 4
    text = field("joint_attention_dim", "text_dim", "text_embed_dim", "caption_channels", "cross_attention_dim", "cap_feat_dim",
                 "in_text_dim", "context_in_dim", "cross_attention_input_dim", "cond_token_dim", "text_in_dim",
                 "conditioning_dim") or WIDTH
    is_video = any(w in name for w in ("3D", "Video", "Mochi", "Cosmos", "Allegro", "Wan", "CogVideoX", "Magvit", "MiniMaxH3",
                                       "VidTok", "SR"))
    pictures = (BATCH, channels, *((FRAMES,) if is_video else ()), SIDE, SIDE)
    if name.startswith("Autoencoder") or name.endswith("VAE"):
        pictures = (BATCH, channels, *((5,) if is_video else ()), 2 * SIDE, 2 * SIDE)
    if any(a in wanted for a in ("img_ids", "img_shapes")):  # a row for each patch of the picture
        pictures = (BATCH, SIDE, channels)
    known = {
        "hidden_states": number(*pictures), "sample": number(*pictures), "x": number(*pictures),
        "timestep": number(BATCH), "timestep_r": number(BATCH), "r_timestep": number(BATCH),
        "controlnet_cond": number(*pictures), "latents": number(*pictures),
        "encoder_hidden_states": number(BATCH, TEXT, text),
        "encoder_attention_mask": number(BATCH, TEXT, high=1), "encoder_hidden_states_mask": number(BATCH, TEXT, high=1),
        "encoder_mask": number(BATCH, TEXT, high=1),
        "pooled_projections": number(BATCH, field("pooled_projection_dim", "in_text_dim2") or WIDTH),
        "img_ids": number(SIDE, 3), "txt_ids": number(TEXT, 3),
        "img_shapes": [[(1, 4, 4)]] * BATCH,
        **dict.fromkeys(("original_size", "target_size", "crop_coords"), number(BATCH, 2)),
        "fps": number(BATCH), "input_ids": number(BATCH, TEXT, high=1),
    }
    return known


def network(name):
    """(make, make input on a device)"""
    import diffusers
    import torch
    from torch import nn
    kind = getattr(diffusers, name)
    options, given = TABLE.get(name, ({}, {}))
    fields = defaults(kind.__init__)
    config = {**smaller(fields), **options}
    arguments = defaults(kind.forward)
    needed = {k for k, v in arguments.items() if v is inspect.Parameter.empty}
    needed |= {k for k in ("encoder_hidden_states", "timestep", "pooled_projections", "img_ids", "txt_ids", "img_shapes",
                           "encoder_hidden_states_mask") if k in arguments}
    asked = {**{k: v for k, v in shapes(name, {**fields, **config}, arguments).items() if k in needed}, **given}
    fixed = {k: v for k, v in asked.items() if not is_shape(v)}
    tensors = {k: v for k, v in asked.items() if is_shape(v)}

    class Network(nn.Module):
        """The results that are tensors."""

        def __init__(self):
            super().__init__()
            self.network = kind(**config)

        def forward(self, x):
            return results_of(self.network(**x, **fixed))

    def inputs(device):
        def make(shape, high):
            if high is True:
                return torch.zeros(shape, dtype=torch.bool, device=device)
            return torch.ones(shape, dtype=torch.int64, device=device) if high else torch.rand(shape, device=device)
        return {k: make(shape, high) for k, (shape, high) in tensors.items()}
    return Network, inputs


def is_shape(value):
    return isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], tuple) and isinstance(value[1], int)


def results_of(found):
    """The tensors of a result, one as itself."""
    import torch
    tensors, rest = [], [found]
    while rest:
        item = rest.pop(0)
        if torch.is_tensor(item):
            if item.is_floating_point():
                tensors.append(item)
        elif isinstance(item, dict):
            rest = list(item.values()) + rest
        elif isinstance(item, (tuple, list)):
            rest = list(item) + rest
    return tensors[0] if len(tensors) == 1 else tuple(tensors)


# Class: (fields of its configuration, arguments of its forward pass) where the guesses are wrong.
VIDEO = (BATCH, 4, FRAMES, SIDE, SIDE)
ROPE = [list(range(FRAMES)), list(range(SIDE // 2)), list(range(SIDE // 2))]
TABLE = {
    "I2VGenXLUNet": ({}, {"sample": number(*VIDEO), "image_latents": number(*VIDEO), "image_embeddings": number(BATCH, WIDTH)}),
    "UNetSpatioTemporalConditionModel": ({"projection_class_embeddings_input_dim": 48}, {
        "sample": number(BATCH, FRAMES, 8, SIDE, SIDE), "added_time_ids": number(BATCH, 3)}),
    "UNetMotionModel": ({}, {"sample": number(*VIDEO), "encoder_hidden_states": number(BATCH * FRAMES, TEXT, WIDTH)}),
    "JoyImageEditPlusTransformer3DModel": ({}, {
        "hidden_states": number(BATCH, 32, 16, 1, 2, 2), "shape_list": [[(1, 4, 4), (1, 4, 4)]] * BATCH}),
    "StableAudioDiTModel": ({"global_states_input_dim": WIDTH}, {
        "hidden_states": number(BATCH, 16, 64), "global_hidden_states": number(BATCH, 1, WIDTH)}),
    "StableAudio3DiTModel": ({"io_channels": 16}, {
        "hidden_states": number(BATCH, 16, 64), "global_hidden_states": number(BATCH, WIDTH)}),
    "MMAudioVAE": ({}, {"sample": number(BATCH, 16384)}),
    "UVit2DModel": ({"micro_cond_embed_dim": 5 * WIDTH, "micro_cond_encode_dim": WIDTH, "in_channels": WIDTH}, {
        "input_ids": number(BATCH, 8, 8, high=1), "pooled_text_emb": number(BATCH, WIDTH), "micro_conds": number(BATCH, 5)}),
    "QwenImage21Transformer2DModel": ({}, {
        "hidden_states": number(BATCH, 16, 16), "img_mask": number(BATCH, TEXT, high=True)}),
    "AutoencoderKLHunyuanImageRefiner": ({}, {"sample": number(BATCH, 3, 5, 32, 32)}),
    "CosmosControlNetModel": ({"in_channels": 18, "latent_channels": 18}, {
        "controls_latents": number(BATCH, 16, FRAMES, SIDE, SIDE), "latents": number(BATCH, 16, FRAMES, SIDE, SIDE),
        "condition_mask": number(BATCH, 1, FRAMES, SIDE, SIDE), "padding_mask": number(1, 1, SIDE, SIDE)}),
    "CosmosTransformer3DModel": ({}, {"padding_mask": number(1, 1, SIDE, SIDE)}),
    "DreamLiteTransformer2DModel": ({"in_channels": WIDTH, "cross_attention_dim": WIDTH}, {}),
    "Transformer2DModel": ({"in_channels": WIDTH, "cross_attention_dim": WIDTH}, {}),
    "Kandinsky6Transformer3DModel": ({"time_dim": WIDTH}, {"hidden_states": number(BATCH, FRAMES, SIDE, SIDE, 33)}),
    "ErnieImageTransformer2DModel": ({}, {"text_bth": number(BATCH, TEXT, WIDTH), "text_lens": number(BATCH, high=1)}),
    "AutoencoderKLMiniMaxH3Audio": ({"encoder_dim": 16, "latent_dim": 64, "encoder_rates": (2, 4), "decoder_rates": (4, 2),
                                     "decoder_kernel_sizes": (8, 4)}, {"sample": number(BATCH, 1, 512)}),
    "AutoencoderKLMiniMaxH3": ({"token_drop": 0}, {"sample": number(BATCH, 3, 17, 32, 32)}),
    "Kandinsky5Transformer3DModel": ({}, {
        "hidden_states": number(BATCH, FRAMES, SIDE, SIDE, 4), "visual_rope_pos": ROPE, "text_rope_pos": list(range(TEXT))}),
    "GlmImageTransformer2DModel": ({}, {
        "prior_token_id": number(BATCH, SIDE * SIDE // 4, high=1),
        "prior_token_drop": number(BATCH, SIDE * SIDE // 4, high=True)}),
    "LuminaNextDiT2DModel": ({"num_kv_heads": 2}, {"image_rotary_emb": number(SIDE, SIDE, 8)}),
    "AutoencoderKLMochi": ({"in_channels": 15}, {"sample": number(BATCH, 3, 5, 32, 32)}),
    "HunyuanDiT2DModel": ({"patch_size": 2, "text_len": TEXT, "text_len_t5": TEXT, "num_layers": 4,
                           "pooled_projection_dim": WIDTH,
                           "use_style_cond_and_image_meta_size": False}, {
        "text_embedding_mask": number(BATCH, TEXT, high=1), "encoder_hidden_states_t5": number(BATCH, TEXT, WIDTH),
        "text_embedding_mask_t5": number(BATCH, TEXT, high=1)}),
    "ControlNetModel": ({}, {"controlnet_cond": number(BATCH, 3, 2 * SIDE, 2 * SIDE)}),
    "PriorTransformer": ({"num_embeddings": TEXT}, {
        "hidden_states": number(BATCH, WIDTH), "proj_embedding": number(BATCH, WIDTH)}),
}
