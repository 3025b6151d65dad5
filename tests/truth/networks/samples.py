"""The networks behind samples/*-train.onnx: what autograd keeps of them is in tests/truth/NAME.measured.json."""
from .common import Network, image, sample, vision

NETWORKS = [
    Network("resnet18-train", vision("resnet18"), image(224), batch=2, other=5),
    Network("mobilenet_v2-train", vision("mobilenet_v2"), image(224), batch=2, other=5),
    Network("vit-small-train", sample("small_vit"), image(96), batch=2, other=5),
    Network("unet-train", sample("UNet"), image(64), batch=2, other=5),
    Network("vit_b_16", vision("vit_b_16"), image(224), batch=2, other=5),
]
