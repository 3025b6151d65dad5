"""Collects the convolution layers of many networks, for problems.py: what shapes people train.

    python layers.py FOLDER [PART/PARTS]     # writes FOLDER/networks.json, or networks.PART.json of one part

Networks of torchvision, timm, segmentation-models-pytorch and diffusers, and small ones of the literature that no
library has, on PyTorch's meta device: nothing is computed.  A layer: [transposed, rank, in channels, out channels,
groups, input, output, kernel, stride, padding, dilation] for one image; where a network pads by itself or unevenly, the
input is the padded one.
"""
import hashlib
import json
import os
import sys
import warnings

import torch
import torchvision
from torch import nn
from torch.nn import functional as F

warnings.filterwarnings("ignore")
CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)
networks = {}  # name: (make, input's dims, call)


def add(name, make, dims, call=None):
    networks[name] = (make, dims, call or (lambda network, x: network(x)))


def layer_of(module, x, out):
    rank = len(module.kernel_size)
    in_dims, padding = list(x.shape[2:]), module.padding
    if x.dim() != rank + 2:
        return None
    if isinstance(padding, str):
        reach = [d * (k - 1) if padding == "same" else 0 for d, k in zip(module.dilation, module.kernel_size)]
        if any(r % 2 for r in reach):  # padded beforehand, by one more at the end
            in_dims, reach = [n + r for n, r in zip(in_dims, reach)], [0] * rank
        padding = [r // 2 for r in reach]
    elif module.padding_mode != "zeros":
        in_dims, padding = [n + 2 * p for n, p in zip(in_dims, padding)], [0] * rank
    if min(in_dims) < 1 or min(out.shape) < 1:
        return None
    return [isinstance(module, CONVOLUTIONS[3:]), rank, x.shape[1], out.shape[1], module.groups, in_dims,
            list(out.shape[2:]), list(module.kernel_size), list(module.stride), list(padding), list(module.dilation)]


def layers_of(name, make, dims, call):
    rows = []

    def see(module, args, out):
        row = layer_of(module, args[0], out)
        if row and row not in rows:
            rows.append(row)

    try:
        with torch.device("meta"), torch.no_grad():
            network = make().eval()
            for module in network.modules():
                if isinstance(module, CONVOLUTIONS):
                    module.register_forward_hook(see)
            call(network, torch.empty(dims))
    except Exception as error:  # what ran until then counts
        print(f"{name}: {error!r}"[:160], file=sys.stderr)
    return rows


# ---- torchvision
SIZES = {"inception_v3": 299, "efficientnet_b3": 300, "efficientnet_b4": 380, "efficientnet_v2_s": 384}


def vision(name, **options):
    return lambda: torchvision.models.get_model(name, weights=None, **options)


def add_training_models():
    """What docs/accuracy/process.md trains: nothing is fitted to layers that these have."""
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../samples"))
    import nets
    for name in ("alexnet", "convnext_tiny", "densenet121", "efficientnet_b0", "googlenet", "inception_v3", "mnasnet1_0", "mobilenet_v2",
                 "mobilenet_v3_large", "mobilenet_v3_small", "regnet_x_400mf", "regnet_y_400mf", "resnet18", "resnet50", "resnext50_32x4d",
                 "shufflenet_v2_x1_0", "squeezenet1_1", "swin_t", "vgg11_bn", "vgg16", "vit_b_16", "wide_resnet50_2"):
        add(name, vision(name), (1, 3, *[SIZES.get(name, 224)] * 2))
    add("small_vit", nets.small_vit, (1, 3, 96, 96))
    add("unet", nets.UNet, (1, 3, 64, 64))


def add_torchvision():
    for name in torchvision.models.list_models(module=torchvision.models):
        size = SIZES.get(name, 224)
        add(name, vision(name), (1, 3, size, size))
    for name, height, width in (("resnet18", 32, 32), ("vgg16", 32, 32), ("resnet34", 64, 64), ("vgg13_bn", 64, 64),
                                ("densenet169", 128, 128), ("mobilenet_v2", 160, 160), ("resnet101", 256, 256),
                                ("resnet18", 320, 320), ("resnet50", 448, 448), ("resnet18", 133, 161),
                                ("resnet152", 288, 288), ("googlenet", 96, 96), ("squeezenet1_0", 128, 128)):
        add(f"{name}@{height}x{width}", vision(name), (1, 3, height, width))
    for name in torchvision.models.list_models(module=torchvision.models.segmentation):
        make = vision(name, weights_backbone=None)
        add(name, make, (1, 3, 520, 520))
        add(name + "@256", make, (1, 3, 256, 256))
    for name in torchvision.models.list_models(module=torchvision.models.video):
        add(name, vision(name), (1, 3, 16, 224, 224) if name[:2] in ("mv", "sw", "s3") else (1, 3, 16, 112, 112))
    for name, height, width in (("retinanet_resnet50_fpn", 800, 800), ("fasterrcnn_resnet50_fpn", 800, 1088),
                                ("ssd300_vgg16", 300, 300), ("ssdlite320_mobilenet_v3_large", 320, 320),
                                ("fasterrcnn_mobilenet_v3_large_320_fpn", 320, 480)):
        def make(name=name):
            return vision(name, weights_backbone=None)().backbone
        add(name, make, (1, 3, height, width))


def add_timm():
    import timm
    for name in timm.list_models():
        size = timm.get_pretrained_cfg(name)
        size = size.input_size if size else (3, 224, 224)
        if int(hashlib.md5(name.encode()).hexdigest(), 16) % 3 == 0:
            add("timm/" + name, lambda name=name: timm.create_model(name), (1, *size))


def add_segmentation():
    import segmentation_models_pytorch as smp
    encoders = ("resnet18", "resnet34", "resnet50", "efficientnet-b0", "efficientnet-b3", "mobilenet_v2", "mit_b0",
                "mit_b2", "vgg11_bn", "densenet121", "se_resnext50_32x4d", "timm-regnety_008", "dpn68", "resnext50_32x4d")
    for architecture in ("Unet", "UnetPlusPlus", "MAnet", "Linknet", "FPN", "PSPNet", "DeepLabV3", "DeepLabV3Plus", "PAN",
                         "UPerNet", "Segformer"):
        for encoder in encoders:
            name = f"{architecture}-{encoder}"
            pick = int(hashlib.md5(name.encode()).hexdigest(), 16)
            if pick % 3:
                continue
            size = (128, 192, 256, 320, 384, 512)[pick // 3 % 6]
            add(f"smp/{name}@{size}", lambda a=architecture, e=encoder: getattr(smp, a)(e, encoder_weights=None),
                (1, 3, size, size))


def add_diffusers():
    from diffusers import AutoencoderKL, AutoencoderTiny, UNet2DConditionModel, UNet2DModel, VQModel

    def autoencoder():
        return AutoencoderKL(block_out_channels=(128, 256, 512, 512), layers_per_block=2, latent_channels=4,
                             down_block_types=("DownEncoderBlock2D",) * 4, up_block_types=("UpDecoderBlock2D",) * 4)

    def step():
        return torch.ones((), dtype=torch.long)

    for size in (256, 512):
        add(f"autoencoder_decode@{size}", autoencoder, (1, 4, size // 8, size // 8), lambda m, x: m.decode(x))
        add(f"autoencoder_encode@{size}", autoencoder, (1, 3, size, size), lambda m, x: m.encode(x))
    for size in (32, 64, 96):
        add(f"stable_diffusion@{size}", lambda: UNet2DConditionModel(cross_attention_dim=768), (1, 4, size, size),
            lambda m, x: m(x, step(), torch.empty(1, 77, 768)))
    for size, widths in ((32, (128, 256, 256, 256)), (64, (224, 448, 672, 896)), (128, (128, 128, 256, 256, 512, 512)),
                         (28, (32, 64, 64)), (64, (64, 128, 256))):
        add(f"ddpm_{widths[0]}_{len(widths)}@{size}", lambda widths=widths, size=size: UNet2DModel(
            sample_size=size, block_out_channels=widths, down_block_types=("DownBlock2D",) * len(widths),
            up_block_types=("UpBlock2D",) * len(widths)), (1, 3, size, size), lambda m, x: m(x, step()))
    add("vq", lambda: VQModel(block_out_channels=(128, 256, 512), down_block_types=("DownEncoderBlock2D",) * 3,
                              up_block_types=("UpDecoderBlock2D",) * 3), (1, 3, 256, 256))
    add("autoencoder_tiny", AutoencoderTiny, (1, 3, 256, 256))


# ---- networks of the literature
def row(*modules):
    return lambda: nn.Sequential(*modules)


def chain(make, *channels, **options):
    return [make(a, b, **options) for a, b in zip(channels, channels[1:])]


class UNet(nn.Module):
    def __init__(self, rank, channels, width, depth):
        super().__init__()
        make, up = CONVOLUTIONS[rank - 1], CONVOLUTIONS[rank + 2]
        self.pool = (F.max_pool1d, F.max_pool2d, F.max_pool3d)[rank - 1]
        widths = [width << i for i in range(depth)]
        self.down = nn.ModuleList(nn.Sequential(make(a, b, 3, padding=1), make(b, b, 3, padding=1))
                                  for a, b in zip([channels] + widths, widths))
        self.up = nn.ModuleList(up(2 * w, w, 2, 2) for w in reversed(widths[:-1]))
        self.join = nn.ModuleList(nn.Sequential(make(2 * w, w, 3, padding=1), make(w, w, 3, padding=1))
                                  for w in reversed(widths[:-1]))
        self.head = make(width, 2, 1)

    def forward(self, x):
        kept = []
        for block in self.down:
            x = block(self.pool(x, 2) if kept else x)
            kept.append(x)
        for up, join, old in zip(self.up, self.join, reversed(kept[:-1])):
            x = join(torch.cat([up(x), old], 1))
        return self.head(x)


def dense_block():
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Conv2d(3, 64, 3, 1, 1)
            self.convs = nn.ModuleList(nn.Conv2d(64 + 32 * i, 32 if i < 4 else 64, 3, 1, 1) for i in range(5))

        def forward(self, x):
            made = [self.first(x)]
            for conv in self.convs:
                made.append(conv(torch.cat(made, 1)))
            return made[-1]

    return Block()


def vocoder():
    modules, width = [nn.Conv1d(80, 512, 7, padding=3)], 512
    for kernel, stride in ((16, 8), (16, 8), (4, 2), (4, 2)):
        modules.append(nn.ConvTranspose1d(width, width // 2, kernel, stride, (kernel - stride) // 2))
        width //= 2
        modules += [nn.Conv1d(width, width, k, padding=(k - 1) * d // 2, dilation=d) for k in (3, 7, 11) for d in (1, 3, 5)]
    return nn.Sequential(*modules, nn.Conv1d(width, 1, 7, padding=3))


def translator():
    return nn.Sequential(
        nn.ReflectionPad2d(3), nn.Conv2d(3, 64, 7), *chain(nn.Conv2d, 64, 128, 256, kernel_size=3, stride=2, padding=1),
        *chain(nn.Conv2d, 256, 256, 256, kernel_size=3, padding=1),
        *chain(nn.ConvTranspose2d, 256, 128, 64, kernel_size=3, stride=2, padding=1, output_padding=1),
        nn.ReflectionPad2d(3), nn.Conv2d(64, 3, 7))


def plain(*widths, size=3, pool=True):
    modules = []
    for a, b in zip(widths, widths[1:]):
        modules += [nn.Conv2d(a, b, size, padding=size // 2)] + [nn.MaxPool2d(2)] * pool
    return lambda: nn.Sequential(*modules)


def add_literature():
    four = {"kernel_size": 4, "stride": 2, "padding": 1}
    add("dcgan_generator", row(nn.ConvTranspose2d(100, 512, 4), *chain(nn.ConvTranspose2d, 512, 256, 128, 64, 3, **four)),
        (1, 100, 1, 1))
    add("dcgan_discriminator", row(*chain(nn.Conv2d, 3, 64, 128, 256, 512, **four), nn.Conv2d(512, 1, 4)), (1, 3, 64, 64))
    add("pix2pix", row(*chain(nn.Conv2d, 3, 64, 128, 256, 512, 512, 512, **four),
                       *chain(nn.ConvTranspose2d, 512, 512, 512, 256, 128, 64, 3, **four)), (1, 3, 256, 256))
    for size in (128, 256):
        add(f"cyclegan@{size}", translator, (1, 3, size, size))
    add("srgan", row(nn.Conv2d(3, 64, 9, 1, 4), nn.Conv2d(64, 64, 3, 1, 1), nn.Conv2d(64, 256, 3, 1, 1), nn.PixelShuffle(2),
                     nn.Conv2d(64, 256, 3, 1, 1), nn.PixelShuffle(2), nn.Conv2d(64, 3, 9, 1, 4)), (1, 3, 64, 64))
    add("edsr", row(nn.Conv2d(3, 256, 3, 1, 1), nn.Conv2d(256, 256, 3, 1, 1), nn.Conv2d(256, 1024, 3, 1, 1),
                    nn.PixelShuffle(2), nn.Conv2d(256, 3, 3, 1, 1)), (1, 3, 96, 96))
    add("esrgan", dense_block, (1, 3, 128, 128))
    for name, widths, size, kernel in (("dncnn", (1, 64, 64, 1), 180, 3), ("mnist", (1, 32, 64), 28, 3),
                                       ("cifar", (3, 32, 64, 128, 256), 32, 3), ("vae", (3, 32, 64, 128, 256, 512), 64, 3),
                                       ("lenet", (1, 6, 16), 28, 5), ("small", (3, 16, 32, 64, 128), 96, 3),
                                       ("wide", (3, 64, 128, 256, 512), 64, 3), ("tiny", (3, 8, 16, 32), 48, 3)):
        add(f"plain_{name}", plain(*widths, size=kernel, pool=name != "dncnn"), (1, widths[0], size, size))
    add("atari", row(nn.Conv2d(4, 32, 8, 4), nn.Conv2d(32, 64, 4, 2), nn.Conv2d(64, 64, 3)), (1, 4, 84, 84))
    for rank, channels, width, depth, dims in ((2, 1, 64, 5, (256, 256)), (2, 3, 32, 5, (512, 512)), (2, 1, 64, 5, (192, 320)),
                                               (2, 3, 16, 4, (128, 128)), (2, 3, 24, 4, (160, 160)), (2, 3, 48, 4, (96, 96)),
                                               (3, 1, 32, 4, (64, 64, 64)), (3, 4, 16, 4, (96, 96, 96)),
                                               (3, 1, 8, 3, (32, 32, 32)), (1, 2, 24, 5, (16384,))):
        add(f"unet{rank}d_{width}@{dims[0]}", lambda a=(rank, channels, width, depth): UNet(*a), (1, channels, *dims))
    for length in (32, 100):
        add(f"hifigan@{length}", vocoder, (1, 80, length))
    add("wav2vec2", row(nn.Conv1d(1, 512, 10, 5), *[nn.Conv1d(512, 512, 3, 2) for _ in range(4)], nn.Conv1d(512, 512, 2, 2),
                        nn.Conv1d(512, 512, 2, 2)), (1, 1, 160000))
    add("whisper", row(nn.Conv1d(80, 512, 3, padding=1), nn.Conv1d(512, 512, 3, 2, 1)), (1, 80, 3000))
    add("wavenet", row(nn.Conv1d(1, 64, 1), *[nn.Conv1d(64, 64, 3, padding=2**i, dilation=2**i) for i in range(10)],
                       nn.Conv1d(64, 256, 1)), (1, 1, 16000))
    add("tcn", row(nn.Conv1d(1, 25, 7, padding=3), *[nn.Conv1d(25, 25, 7, padding=3 * 2**i, dilation=2**i)
                                                     for i in range(6)]), (1, 1, 784))
    add("conformer", row(nn.Conv1d(256, 512, 1), nn.GLU(1), nn.Conv1d(256, 256, 31, padding=15, groups=256),
                         nn.Conv1d(256, 256, 1)), (1, 256, 400))
    add("deepspeech", row(nn.Conv2d(1, 32, (41, 11), (2, 2), (20, 5)), nn.Conv2d(32, 32, (21, 11), (2, 1), (10, 5))),
        (1, 1, 161, 500))
    add("c3d", row(nn.Conv3d(3, 64, 3, 1, 1), nn.MaxPool3d((1, 2, 2)), nn.Conv3d(64, 128, 3, 1, 1), nn.MaxPool3d(2),
                   nn.Conv3d(128, 256, 3, 1, 1), nn.Conv3d(256, 256, 3, 1, 1), nn.MaxPool3d(2),
                   nn.Conv3d(256, 512, 3, 1, 1)), (1, 3, 16, 112, 112))
    for patch, width, size in ((16, 768, 224), (16, 384, 224), (14, 1024, 224), (8, 192, 96), (32, 512, 256), (4, 64, 64)):
        add(f"patches_{patch}_{width}", row(nn.Conv2d(3, width, patch, patch)), (1, 3, size, size))


def main(folder, part="0/1"):
    part, parts = map(int, part.split("/"))
    for collect in (add_training_models, add_torchvision, add_literature, add_segmentation, add_diffusers, add_timm):
        collect()
    names, layers = sorted(networks), {}
    for name in names[part::parts]:
        rows = layers_of(name, *networks[name])
        if rows:
            layers[name] = rows
    with open(f"{folder}/networks{f'.{part}' * (parts > 1)}.json", "w") as file:
        json.dump({"nets": layers}, file)
    print(len(layers), "networks,", sum(map(len, layers.values())), "layers")


main(*sys.argv[1:])
