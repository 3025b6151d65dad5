"""Writes convolution problems as ask.c reads them, for the sets that fit.py fits to and checks on.

    python problems.py NETWORKS.json SET... > problems     # SET: layers=N, varied=N, near=N, designs=N, patches=N, stems=N,
                                                           # overlapping=N, tubelets=N, large=N, grouped=N, depthwise=N, video=N, dilated=N,
                                                           # expanding=N, pointwise=N, heads=N, narrow=N, lines=N, upscaling=N, photos=N, tight=N, crowds=N
    options: --dtype fp32|fp16|bf16 --channels-last --no-tf32 --passes fdw --depthwise --seed N --batches N

layers=N: each layer of networks.json at N batches drawn from 1 to 128; --batches N: to 2^N. varied=N: N layers of the fitted half with sizes,
channels and batch changed at random. patches=N, stems=N: N patch embeddings (kernel = stride) and first layers (few
channels) of random sizes. near=N: layers of the fitted half with one or two of their sizes changed a little. designs=N: layers of
sizes that networks are usually made of. Families of random sizes: large=N, images of more than 448 x 448 pixels; grouped=N; depthwise=N,
kernels of 3 to 13; video=N, three dims, whole or factored kernels; dilated=N, backbones and heads of segmentation; expanding=N, k x k to several
times the channels; pointwise=N, 1 x 1 of many channels and few pixels; heads=N, to or from few channels; narrow=N, few channels on both sides; lines=N, one dim;
upscaling=N, what transposed layers have; photos=N, first layers of images that are not square, in small batches;
tight=N, kernels of 3 to 13 on images of 4 to 24 pixels; crowds=N, small images in batches of 128 to 4,096.  --depthwise: also those that PyTorch computes without cuDNN.

The first letter of an id says what the row is for: t a layer of TABLES, the networks that docs/accuracy/process.md trains, whatever the
batch, to which nothing is fitted; f fitted to; h held out (a layer that no fitted network has); v made here, fitted to, and no layer of the two
that are not; p patches, stems and families, half and half (p fitted, q held out).  A network's half follows from its name, whatever its size.
"""
import argparse
import hashlib
import json
import math
import random

TABLES = """alexnet convnext_tiny densenet121 efficientnet_b0 googlenet inception_v3 mnasnet1_0 mobilenet_v2 mobilenet_v3_large
mobilenet_v3_small regnet_x_400mf regnet_y_400mf resnet18 resnet50 resnext50_32x4d shufflenet_v2_x1_0 squeezenet1_1 swin_t
vgg11_bn vgg16 vit_b_16 wide_resnet50_2 small_vit unet""".split()
BATCHES = [1, 2, 3, 4, 6, 8, 8, 12, 16, 16, 20, 24, 32, 32, 48, 64, 64, 128]
LARGE_BATCHES = [96, 160, 192, 256, 256, 300, 320, 384, 400, 512, 512, 600, 640, 768, 1000, 1024]
SIDES = sorted({*range(4, 21), *(a << b for a in (5, 6, 7, 8, 9, 13, 15) for b in range(1, 7)), 27, 33, 35, 38, 41, 44, 65, 71, 75, 95,
                100, 109, 113, 130, 147, 149, 150, 200, 256, 272, 299, 300, 380, 400, 512})
CHANNELS = sorted({*range(1, 17), *range(16, 129, 4), *range(128, 513, 8), *range(512, 2049, 32), 2304, 2560, 3072})


def half_of(name):
    base = name.split("@")[0]
    if base in TABLES:
        return "t"
    return "fh"[int(hashlib.md5(base.encode()).hexdigest(), 16) % 2]


def distinct(networks):
    """Layers by number, and the half of each: those of the tables before fitted before held out."""
    halves = {}
    for name in sorted(networks):
        for row in networks[name]:
            halves.setdefault(json.dumps(row), set()).add(half_of(name))
    return [(json.loads(text), next(h for h in "tfh" if h in halves[text])) for text in sorted(halves)]


class Writer:
    def __init__(self, options):
        self.options, self.dtype = options, {"fp32": 0, "fp16": 2, "bf16": 9}[options.dtype]

    def __call__(self, name, layer, batch):
        transposed, rank, c, k, groups, in_dims, out_dims, *rest = layer
        o = self.options
        native = groups == c > 1 and not (transposed or o.channels_last or o.depthwise or self.dtype)
        large = batch * max(c * math.prod(in_dims), k * math.prod(out_dims)) >= 2**30
        if native or large or (o.channels_last and rank != 2):
            return False
        if transposed:  # the forward pass of one is the other's data gradient
            c, k, in_dims, out_dims = k, c, out_dims, in_dims
        for which in o.passes:
            asked = {"f": "d", "d": "f", "w": "w"}[which] if transposed else which
            print(f"{name}.{which}", asked, self.dtype, int(o.channels_last), int(not o.no_tf32), rank, batch, c, k, groups,
                  *in_dims, *out_dims, *(n for dims in rest for n in dims))
        return True


def near(value, choices, factor):
    fitting = [n for n in choices if value / factor <= n <= value * factor]
    return random.choice(fitting) if fitting else max(1, int(value))


def out_of(in_dims, kernel, stride, padding, dilation):
    return [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in zip(in_dims, kernel, stride, padding, dilation)]


def varied(layer):
    transposed, rank, c, k, groups, in_dims, out_dims, *rest = layer
    if transposed:
        in_dims, c, k = out_dims, k, c
    if groups == 1 and random.random() < .7:
        was, same = c, c == k
        c = near(c, CHANNELS, 2.2) if c > 4 else c
        k = c if same and was > 4 and random.random() < .8 else near(k, CHANNELS, 2.2) if k > 4 else k
    scale = random.choice([1, 1, .5, .7, 1.4, 2])
    if len(set(in_dims)) == 1:
        in_dims = [near(in_dims[0] * scale, SIDES, 1.35)] * rank
    else:
        in_dims = [max(1, round(n * scale)) if n > 16 else n for n in in_dims]
    out_dims = out_of(in_dims, *rest)
    if min(out_dims) < 1:
        return None
    return [False, rank, c, k, groups, in_dims, out_dims, *rest]


USUAL_CHANNELS = [8, 16, 24, 32, 32, 48, 64, 64, 64, 80, 96, 112, 128, 128, 128, 144, 160, 192, 192, 224, 240, 256, 256, 256, 288, 320, 384,
                  384, 448, 480, 512, 512, 512, 576, 640, 672, 768, 768, 960, 1024, 1024, 1152, 1280, 1536, 2048, 2048]
USUAL_SIDES = [4, 5, 6, 7, 7, 7, 8, 8, 9, 10, 12, 13, 14, 14, 14, 15, 16, 16, 17, 18, 19, 20, 24, 26, 27, 28, 28, 28, 32, 32, 35, 36, 38, 40,
               48, 52, 54, 55, 56, 56, 56, 60, 64, 64, 65, 72, 75, 80, 96, 100, 104, 112, 112, 112, 120, 128, 128, 149, 150, 160, 192, 224,
               224, 256]


def side_near(side):
    if side <= 2 or random.random() < .35:
        return side
    if random.random() < .54:
        return max(2, side + random.choice([-6, -4, -3, -2, -1, 1, 2, 3, 4, 6]))
    return near(side, USUAL_SIDES, 2.5)


def channels_near(count):
    if count <= 4:
        return random.choice([count] * 6 + [1, 2, 3, 3, 4])
    if random.random() < .35:
        return count
    step = 8 if count >= 64 else 4 if count >= 16 else 1
    if random.random() < .7:
        return max(step, round(count * 2 ** random.uniform(-.6, .6) / step) * step)
    return near(count, USUAL_CHANNELS, 3)


def near_layer(layer):
    transposed, rank, c, k, groups, in_dims, out_dims, *rest = layer
    if transposed:
        in_dims, c, k = out_dims, k, c
    if groups == 1:
        same = c == k
        c = channels_near(c)
        k = c if same and random.random() < .7 else channels_near(k)
    elif groups == c == k:
        groups = c = k = channels_near(c)
    else:
        more = max(1, round(groups * random.choice([1, 1, 1, .5, 2, 1.5])))
        groups, c, k = more, c // groups * more, k // groups * more
    in_dims = [side_near(in_dims[0])] * rank if len(set(in_dims)) == 1 else [side_near(n) for n in in_dims]
    out = out_of(in_dims, *rest)
    return [False, rank, c, k, groups, in_dims, out, *rest] if min(out) > 0 else None


def design():
    kernel, stride = random.choice([(3, 1)] * 8 + [(3, 2)] * 4 + [(1, 1)] * 6 + [(1, 2)] * 2 + [(5, 1), (5, 2), (7, 1), (2, 2), (4, 2), (7, 2)])
    side, c = random.choice(USUAL_SIDES), random.choice(USUAL_CHANNELS)
    k = c if random.random() < .35 else random.choice(USUAL_CHANNELS)
    if max(c, k) * side > 40000 or side >= 100 and max(c, k) > 256 or side <= 8 and max(c, k) < 64:
        return None
    rest = [[kernel] * 2, [stride] * 2, [kernel // 2 if kernel % 2 else int(kernel == 4)] * 2, [1, 1]]
    out = out_of([side] * 2, *rest)
    return [False, 2, c, k, 1, [side] * 2, out, *rest] if min(out) > 0 else None


IMAGES = [32, 64, 96, 112, 128, 144, 160, 192, 192, 224, 224, 224, 224, 224, 240, 256, 256, 256, 288,
          320, 336, 384, 384, 392, 448, 448, 512, 518]
WIDTHS = [32, 48, 64, 64, 96, 96, 128, 128, 160, 192, 192, 224, 256, 256, 320, 384, 384, 432, 448, 512, 512, 576, 640, 768, 768, 768, 896,
          1024, 1024, 1152, 1280]
STAGES = [32, 40, 48, 64, 64, 80, 96, 96, 96, 112, 128, 128, 160, 192, 192, 224, 256, 256, 320, 352, 384, 384, 512, 512, 640, 704, 768, 1024]


def batch_of(most=7):
    batch = min(2 ** most, max(1, round(2 ** random.uniform(0, most))))
    return 2 ** round(math.log2(batch)) if random.random() < .6 else batch


def overlapping():
    """Patches that share pixels, padded or not: of spectra, and of the stages of networks that mix convolutions and attention."""
    kernel = random.choice([3, 3, 4, 5, 6, 7, 7, 7, 8, 8, 9, 10, 12, 14, 16, 16, 16, 16, 20, 24, 32])
    stride = random.randint((kernel + 1) // 2, kernel - 1)
    padding = random.choice([0, 0, kernel // 2, (kernel - 1) // 2, (kernel - stride + 1) // 2])
    if random.random() < .5:
        side = [random.choice(IMAGES)] * 2
    else:  # spectra
        side = [random.choice([16, 32, 40, 64, 64, 80, 96, 128, 128, 128, 160, 256]), round(2 ** random.uniform(6, 11))]
        side = side[::random.choice([1, 1, -1])]
    channels = random.choice([1, 1, 1, 1, 2, 3, 3, 3, 3, 4]) if random.random() < .75 else random.choice(STAGES)
    rest = [[kernel] * 2, [stride] * 2, [padding] * 2, [1, 1]]
    out = out_of(side, *rest)
    return [False, 2, channels, random.choice(WIDTHS), 1, side, out, *rest] if min(out) > 0 else None


def tubelet():
    """Patches of a video."""
    size = [random.choice([1, 2, 2, 2, 4]), *[random.choice([4, 8, 14, 16, 16, 32])] * 2]
    cells = [random.choice([4, 8, 8, 16]), *[random.choice([7, 8, 10, 14, 14, 16, 20, 24])] * 2]
    return [False, 3, random.choice([1, 3, 3, 3]), random.choice(WIDTHS), 1, [a * b for a, b in zip(size, cells)], cells, size, size, [0] * 3, [1] * 3]


def patch():
    """Kernel = stride: patch embeddings of images, what comes between the stages of ConvNeXt and Swin, reductions of attention."""
    kind = random.random()
    if kind < .6:
        size, channels, width = random.choice([2, 4, 4, 4, 7, 8, 8, 12, 14, 14, 16, 16, 16, 16, 32, 32]), 3, random.choice(WIDTHS)
        cells = max(1, random.choice(IMAGES) // size) if random.random() < .75 else random.choice(
            [4, 5, 6, 8, 10, 14, 16, 20, 24, 28, 32, 48, 64])
    elif kind < .8:
        size, channels = random.choice([2, 2, 2, 2, 4, 8]), random.choice(STAGES)
        cells = random.choice([3, 4, 6, 7, 7, 8, 10, 12, 14, 14, 16, 20, 24, 28, 28, 32, 48, 56])
        width = random.choice([channels, 2 * channels, 2 * channels, random.choice(STAGES)])
    else:
        size, channels = random.choice([2, 4, 4, 8, 8, 14, 16, 16, 16, 32]), random.choice([1, 1, 2, 4, 4, 6, 8, 12, 16, 16, 64, 96])
        cells, width = random.choice([4, 6, 7, 8, 12, 14, 14, 16, 16, 24, 27, 28, 32, 37, 48, 56, 64]), random.choice(WIDTHS)
    return [False, 2, channels, width, 1, [size * cells] * 2, [cells] * 2, [size] * 2, [size] * 2, [0, 0], [1, 1]]


def stem():
    kernel, stride = random.choice([(3, 2), (3, 2), (7, 2), (7, 2), (11, 4), (5, 2), (7, 4), (4, 2), (3, 1), (7, 1), (5, 1), (9, 1), (16, 10), (16, 8), (8, 4), (10, 5)])
    padding = random.choice([kernel // 2, kernel // 2, 0, (kernel - 1) // 2])
    side = [near(2 ** random.uniform(4.5, 9), SIDES, 1.2)] * 2
    if random.random() < .25:  # spectra, strips of text
        side = [near(2 ** random.uniform(4.5, 7.5), SIDES, 1.2), round(2 ** random.uniform(6, 10.5))]
    rest = [[kernel] * 2, [stride] * 2, [padding] * 2, [1, 1]]
    out = out_of(side, *rest)
    channels = random.choice([1, 1, 2, 3, 3, 3, 3, 4, 6, 8, 12])
    width = random.choice([8, 16, 24, 32, 32, 40, 48, 64, 64, 64, 96, 128, 192, 256, 768])
    return [False, 2, channels, width, 1, side, out, *rest] if min(out) > 0 else None


def photo():
    kernel, stride = random.choice([(3, 2), (3, 2), (3, 1), (5, 2), (7, 2), (7, 2)])
    sides = [96, 112, 128, 160, 192, 224, 240, 256, 288, 299, 320, 384, 416, 448, 480, 512, 640, 800]
    side = [random.choice(sides), random.choice(sides)]
    rest = [[kernel] * 2, [stride] * 2, [kernel // 2] * 2, [1, 1]]
    return [False, 2, random.choice([1, 3, 3, 3, 3, 4]), random.choice([16, 24, 32, 32, 40, 48, 64, 64, 96]), 1, side, out_of(side, *rest), *rest]


def made(channels, width, groups, side, kernel, stride=(1, 1), dilation=1):
    """A layer, padded as is usual; None where nothing comes out or it is too large."""
    padding = [d * (k - 1) // 2 for k, d in zip(kernel, [dilation] * len(kernel))]
    rest = [list(kernel), list(stride), padding, [dilation] * len(kernel)]
    out = out_of(side, *rest)
    if min(out) < 1 or min(n + 2 * p - dilation * (k - 1) for n, p, k in zip(side, padding, kernel)) < 1:
        return None
    return [False, len(kernel), channels, width, groups, list(side), out, *rest]


FRAMES = [(480, 640), (512, 1024), (600, 800), (640, 640), (720, 1280), (768, 768), (768, 1024), (800, 800), (800, 1088), (800, 1344), (896, 896),
          (1024, 1024), (1024, 2048), (1080, 1920), (1280, 1280), (1536, 1536), (2048, 2048)]


def large():
    """One or a few images of many pixels."""
    if random.random() < .5:
        side = list(random.choice(FRAMES))
        if random.random() < .3:
            side = [n // 2 * 2 + random.choice([0, 0, 2, -2]) for n in side]
    else:
        side = [round(2 ** random.uniform(8.8, 11) / 8) * 8]
        side.append(side[0] if random.random() < .6 else round(side[0] * 2 ** random.uniform(-1, 1) / 8) * 8)
    if side[0] * side[1] < 448 * 448:
        return None
    most = min(1024, 2 ** 28 // (side[0] * side[1]))
    usual = [n for n in (1, 3, 3, 3, 4, *USUAL_CHANNELS) if n <= most]
    channels, width = random.choice(usual), random.choice(usual + [1, 3, 21])
    if random.random() < .35:
        width = channels
    kernel, stride = random.choice([(3, 1)] * 9 + [(1, 1)] * 5 + [(3, 2)] * 4 + [(5, 1), (7, 1), (7, 2), (9, 1), (4, 2), (2, 2), (1, 2), (5, 2)])
    return made(channels, width, 1, side, [kernel] * 2, [stride] * 2, random.choice([1] * 9 + [2]) if kernel == 3 else 1)


def grouped():
    """As in ResNeXt, RegNet, ResNeSt, DLA: some channels for each group."""
    each = random.choice([2, 4, 4, 8, 8, 8, 16, 16, 16, 24, 24, 32, 32, 40, 48, 56, 64, 64, 72, 80, 96, 112, 128, 168, 232, 264])
    groups = random.choice([2, 2, 3, 4, 4, 5, 6, 7, 8, 8, 10, 11, 12, 14, 16, 16, 17, 20, 24, 28, 32, 32, 32, 40, 48, 64])
    if not 16 <= each * groups <= 3072:
        return None
    kernel, stride = random.choice([(3, 1)] * 8 + [(3, 2)] * 4 + [(5, 1), (5, 2), (1, 1), (1, 1), (7, 1)])
    side = side_near(random.choice(USUAL_SIDES))
    if side * each * groups > 60000 or side <= 8 and each * groups < 64:
        return None
    out = each * groups if random.random() < .85 else groups * random.choice([each // 2 or 1, 2 * each])
    return made(each * groups, out, groups, [side] * 2, [kernel] * 2, [stride] * 2, random.choice([1] * 15 + [2]) if kernel == 3 else 1)


def depthwise():
    """A kernel for each channel, which PyTorch gives to cuDNN with channels last."""
    kernel, stride = random.choice([(3, 1)] * 4 + [(3, 2)] * 3 + [(5, 1)] * 3 + [(5, 2)] * 2 + [(7, 1)] * 6 + [(7, 2), (9, 1), (11, 1), (13, 1), (2, 2)])
    channels = random.choice([*CHANNELS[8:], *USUAL_CHANNELS, *STAGES])
    side = side_near(random.choice(USUAL_SIDES))
    if side * channels > 60000:
        return None
    return made(channels, channels, channels, [side] * 2, [kernel] * 2, [stride] * 2)


def video():
    side, frames = random.choice([7, 8, 14, 14, 16, 20, 28, 28, 32, 40, 48, 56, 56, 64, 80, 96, 112, 112, 128]), random.choice(
        [1, 2, 2, 4, 4, 6, 8, 8, 12, 16, 16, 24, 32])
    kernel, stride = random.choice([((3, 3, 3), 1)] * 4 + [((3, 3, 3), 2), ((1, 1, 1), 1), ((1, 1, 1), 1), ((1, 3, 3), 1), ((1, 3, 3), 1),
                                   ((1, 3, 3), 2), ((3, 1, 1), 1), ((3, 1, 1), 1), ((3, 1, 1), 2), ((5, 1, 1), 1), ((1, 7, 7), 2), ((2, 2, 2), 2)])
    usual = [3, *USUAL_CHANNELS, 144, 230, 288, 460, 576, 921, 45]
    channels, width = random.choice(usual), random.choice(usual)
    if random.random() < .35:
        width = channels
    if max(channels, width) * side > 24000 or side <= 8 and max(channels, width) < 64:
        return None
    if random.random() < .25:  # a volume
        frames = side
    strides = [stride if k > 1 or kernel == (1, 1, 1) else 1 for k in kernel]
    return made(channels, width, 1, [frames, side, side], kernel, strides)


def dilated():
    side = random.choice([24, 28, 28, 32, 33, 41, 48, 56, 60, 64, 65, 65, 68, 80, 96, 97, 100, 128, 129])
    kernel, dilation = random.choice([(1, 1)] * 6 + [(3, 1)] * 3 + [(3, 2)] * 4 + [(3, 4)] * 3 + [(3, 6), (3, 12), (3, 18), (3, 24), (3, 36)])
    usual = [64, 128, 256, 256, 512, 512, 512, 1024, 1024, 1280, 2048, 2048]
    channels, width = random.choice(usual), random.choice([*usual, 19, 21, 48, 150])
    return made(channels, width, 1, [side] * 2, [kernel] * 2, [1, 1], dilation)


def expanding():
    """Fused blocks of EfficientNet, gates and heads: k x k to more channels than come in, or to fewer."""
    channels, times = random.choice([16, 24, 32, 40, 48, 56, 64, 72, 80, 96, 112, 128, 160, 192]), random.choice([2, 3, 4, 4, 6, 6, 8])
    kernel, stride = random.choice([(3, 1)] * 4 + [(3, 2)] * 4 + [(5, 1), (1, 1), (1, 1)])
    side = side_near(random.choice([n for n in USUAL_SIDES if n >= 14]))
    width = channels * times if random.random() < .9 else channels * times + 8
    if width * side > 60000:
        return None
    if random.random() < .15:
        channels, width = width, channels
    return made(channels, width, 1, [side] * 2, [kernel] * 2, [stride] * 2)


def pointwise():
    """1 x 1 of last stages: many channels, few pixels."""
    side = random.choice([4, 5, 6, 7, 7, 7, 7, 8, 8, 9, 10, 12, 13, 14, 14, 14, 15, 16, 17, 19, 20, 24, 28, 28, 32])
    usual = [n for n in (*USUAL_CHANNELS, *CHANNELS) if n >= 96]
    channels, width = random.choice(usual), random.choice(usual)
    if random.random() < .4:
        width = max(8, round(channels * random.choice([.25, .25, .5, 1, 2, 4, 4, 6])))
    if max(channels, width) > 4096 or min(channels, width) * side < 1000:
        return None
    return made(channels, width, 1, [side] * 2, [1, 1], [random.choice([1] * 7 + [2])] * 2)


def heads():
    """Few channels on one side, of many pixels: what restores images, segments them, or makes them."""
    few, many = random.choice([1, 1, 2, 3, 3, 3, 4, 5, 6, 8, 12, 16]), random.choice([n for n in (*CHANNELS, *USUAL_CHANNELS) if 8 <= n <= 512])
    side = side_near(random.choice([n for n in USUAL_SIDES if n >= 24]) * random.choice([1, 1, 1, 2, 3]))
    if side * side * many > 2 ** 23:
        return None
    kernel = random.choice([1, 1, 3, 3, 3, 3, 5, 7, 9])
    channels, width = (many, few) if random.random() < .75 else (few, many)
    return made(channels, width, 1, [side] * 2, [kernel] * 2, [random.choice([1, 1, 1, 2])] * 2)


def narrow():
    """Few channels on both sides: first stages of U-Nets and of small networks."""
    usual = [4, 6, 8, 8, 10, 12, 16, 16, 16, 20, 24, 24, 28, 30, 32, 32, 36, 40, 48, 48, 56, 64, 64, 72, 80, 96]
    channels, width = random.choice(usual), random.choice(usual)
    side = side_near(random.choice([n for n in USUAL_SIDES if n >= 28]) * random.choice([1, 1, 2, 2]))
    kernel, stride = random.choice([(3, 1)] * 8 + [(3, 2)] * 3 + [(1, 1)] * 4 + [(5, 1), (5, 2), (7, 1), (2, 2), (4, 2)])
    return made(channels, channels if random.random() < .4 else width, 1, [side] * 2, [kernel] * 2, [stride] * 2)


def line():
    """One dim: sound and series, which cuDNN sees as images of height 1."""
    length, kernel = round(2 ** random.uniform(5, 15)), random.choice([1, 1, 1, 2, 3, 3, 3, 3, 4, 5, 7, 7, 8, 10, 11, 16, 31])
    usual = [1, 2, 16, 32, 64, 64, 80, 96, 128, 128, 192, 256, 256, 384, 512, 512, 768, 1024]
    channels, width = random.choice(usual), random.choice(usual)
    if random.random() < .4:
        width = channels
    if length * max(channels, width) > 2 ** 22:
        return None
    stride = random.choice([1, kernel // 2, kernel // 2, kernel]) if kernel in (2, 4, 8, 10, 16) else random.choice([1, 1, 1, 1, 2])
    dilation = random.choice([1, 1, 1, 2, 4, 9, 27]) if kernel in (3, 7) and stride == 1 else 1
    return made(channels, width, 1, [1, length], [1, kernel], [1, stride], dilation)


def column():
    """One dim as ONNX Runtime asks: an image of width 1. Also first layers of sound, layers with groups, which mix channels or encode places,
    and kernels of two strides, as transposed layers have them."""
    layer, kind = line(), random.random()
    if layer is None or kind > .5:
        return layer and [*layer[:5], *(dims[::-1] for dims in layer[5:])]
    length, channels, width, groups, stride, padding = layer[5][1], layer[2], layer[3], 1, 1, 0
    if kind < .15:
        length, channels, width = round(2 ** random.uniform(10, 17.5)), random.choice([1, 1, 1, 2]), random.choice([16, 32, 64, 64, 128, 256, 258, 512])
        kernel, stride = random.choice([(3, 1), (3, 2), (5, 1), (7, 1), (10, 5), (10, 5), (16, 8), (20, 10), (256, 128), (400, 160), (512, 256)])
        padding = random.choice([0, 0, kernel // 2])
    elif kind < .3:
        width, kernel = channels, random.choice([3, 3, 5, 7, 7, 15, 31, 31, 64, 128, 128])
        groups, padding = random.choice([channels, channels, channels, min(4, channels), min(16, channels)]), kernel // 2
    else:
        stride = random.choice([2, 2, 2, 4, 5, 8])
        kernel, padding = random.choice([(2 * stride, (stride + 1) // 2), (2 * stride, 0), (stride, 0)])
    rest = [[kernel, 1], [stride, 1], [padding, 0], [1, 1]]
    out = out_of([length, 1], *rest)
    return [False, 2, channels, width, groups, [length, 1], out, *rest] if min(out) > 0 and channels % groups == 0 else None


def upscaling(rank=2):
    """Kernels of two strides, as transposed layers have them: from many channels to fewer, read backwards."""
    stride = random.choice([2, 2, 2, 4, 8])
    channels, width = random.choice([1, 2, 3, 3, 16, 17, 21, 32, 34, 48, 64, 96, 128, 256]), random.choice(USUAL_CHANNELS)
    side = side_near(random.choice(USUAL_SIDES)) * stride
    kernel, padding = random.choice([(2 * stride, stride // 2), (2 * stride, stride // 2), (stride, 0), (stride + 1, stride // 2)])
    rest = [[kernel] * rank, [stride] * rank, [padding] * rank, [1] * rank]
    fits = side ** rank * max(channels, width) < 2 ** 24
    return [False, rank, channels, width, 1, [side] * rank, out_of([side] * rank, *rest), *rest] if fits else None


def tight():
    """Images of a few pixels under kernels of several: heads of poses, relations between places."""
    side = [random.randint(4, 24)] * 2 if random.random() < .5 else [random.randint(4, 24), random.randint(4, 24)]
    channels, width = random.choice(USUAL_CHANNELS), random.choice([1, 2, 4, 17, 21, 68, 133, *USUAL_CHANNELS])
    kernel, stride = random.choice([(3, 1), (3, 1), (3, 2), (5, 1), (5, 1), (7, 1), (7, 1), (9, 1), (11, 1), (13, 1)])
    return made(channels, width, 1, side, [kernel] * 2, [stride] * 2)


def crowd():
    """Small images of which there are many: what an agent sees, crops, patches of slides, characters."""
    side, first = random.choice([7, 8, 9, 10, 14, 16, 20, 24, 28, 28, 28, 32, 32, 36, 42, 48, 64, 64, 84, 84, 96]), random.random() < .3
    channels = random.choice([1, 1, 3, 3, 3, 4, 4, 6, 9, 12]) if first else random.choice([16, 20, 24, 32, 32, 48, 50, 64, 64, 96, 128, 192, 256])
    width = random.choice([16, 16, 20, 24, 32, 32, 32, 48, 50, 64, 64, 64, 96, 128, 128, 192, 256])
    kernel, stride = random.choice([(3, 1)] * 5 + [(3, 2)] * 3 + [(8, 4)] * 2 + [(4, 2)] * 3 + [(5, 1)] * 2 + [(5, 2), (1, 1), (2, 2), (7, 1), (4, 1)])
    rest = [[kernel] * 2, [stride] * 2, [random.choice([0, kernel // 2])] * 2, [1, 1]]
    return [False, 2, channels, width, 1, [side] * 2, out_of([side] * 2, *rest), *rest] if kernel <= side else None


FAMILIES = {"crowds": crowd, "patches": patch, "overlapping": overlapping, "tubelets": tubelet, "heads": heads, "narrow": narrow, "lines": line, "columns": column, "volumes": lambda: upscaling(3), "upscaling": upscaling, "stems": stem, "photos": photo, "large": large, "grouped": grouped, "depthwise": depthwise, "video": video, "dilated": dilated,
            "expanding": expanding, "pointwise": pointwise, "tight": tight}


def batch_for(name, most):
    if most > 7:
        return batch_of(most)
    if name == "crowds":
        return random.choice([2 ** random.randint(7, 12), round(2 ** random.uniform(7, 12))])
    if name == "photos":
        return random.choice([1, 1, 2, 3, 4, 4, 6, 8, 8, 12, 16, 24, 32])
    if name != "large":
        return batch_of(8 if name in ("patches", "overlapping") else 6 if name == "video" else 7)
    return random.choice([1, 1, 1, 1, 2, 2, 3, 4, 8])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("networks")
    parser.add_argument("sets", nargs="+")
    parser.add_argument("--dtype", default="fp32", choices=("fp32", "fp16", "bf16"))
    parser.add_argument("--channels-last", action="store_true")
    parser.add_argument("--no-tf32", action="store_true")
    parser.add_argument("--depthwise", action="store_true")
    parser.add_argument("--passes", default="fdw")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--batches", type=int, default=7)
    options = parser.parse_args()
    random.seed(options.seed)
    write, layers = Writer(options), distinct(json.load(open(options.networks))["nets"])
    fitted = [layer for layer, half in layers if half == "f"]
    others = {json.dumps(layer[1:]) for layer, half in layers if half != "f"}
    makers = {"varied": lambda: varied(random.choice(fitted)), "near": lambda: near_layer(random.choice(fitted)), "designs": design,
              **FAMILIES}
    for name, count in (text.split("=") for text in options.sets):
        rows = 0
        while name != "layers" and rows < int(count):
            layer = makers[name]()
            letter = "pq"[rows % 2] if name in FAMILIES else "v"
            if layer is not None and json.dumps(layer[1:]) not in others:
                rows += write(f"{letter}{name[:2] if name in FAMILIES else name[0]}{options.seed}.{rows}", layer, batch_for(name, options.batches))
        for number, (layer, half) in enumerate(layers if name == "layers" else []):
            batches = BATCHES + [n for n in LARGE_BATCHES if options.batches > 7 and n <= 2 ** options.batches]
            for batch in sorted(set(random.sample(batches, int(count)))):
                write(f"{half}{options.seed}.{number}.{batch}", layer, batch)


main()
