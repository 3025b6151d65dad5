"""Networks whose fronts of checkpointing plans are compared with what others give (scripts/export/peers.py)."""
from .common import Network, image, numbers, sample, transformer, values, vision


def vgg16():
    """Its convolutions in five groups, each with the pool that ends it."""
    from torch import nn
    model, groups, rest = vision("vgg16")(), [], []
    for layer in model.features:
        rest.append(layer)
        if isinstance(layer, nn.MaxPool2d):
            groups.append(nn.Sequential(*rest))
            rest = []
    model.features = nn.Sequential(*groups)
    return model


LLAMA = transformer("LlamaForCausalLM", "LlamaConfig", vocab_size=8192, hidden_size=256, intermediate_size=688, num_hidden_layers=4,
                    num_attention_heads=8, num_key_value_heads=2, head_dim=32, max_position_embeddings=512, attn_implementation="eager")
NETWORKS = {network.name: network for network in (
    Network("vgg16", vgg16, image(224), batch=16),
    Network("resnet18", vision("resnet18"), image(224), batch=32),
    Network("resnet50", vision("resnet50"), image(224), batch=16),
    Network("mobilenet_v2", vision("mobilenet_v2"), image(224), batch=32),
    Network("unet", sample("UNet"), image(256), batch=8),
    Network("vit_b_16", vision("vit_b_16"), image(224), batch=16),
    Network("llama", LLAMA, numbers(512), batch=8),
    Network("efficientnet_b0", vision("efficientnet_b0", stochastic_depth_prob=0.0), image(224), batch=16),
    Network("r3d_18", vision("r3d_18", "video"), values(3, 8, 56, 56), batch=16),
    Network("densenet121", vision("densenet121"), image(224), batch=16),
    Network("convnext_tiny", vision("convnext_tiny", stochastic_depth_prob=0.0), image(224), batch=16),
    Network("swin_t", vision("swin_t", stochastic_depth_prob=0.0), image(224), batch=16))}
