"""Graphs, segmentation, diffusion, video, detection and recurrent cells for default_exports.py: drawn by a seed.

Candidates of each family were the names of its library that stood in no script and no table here (segmentation: pairs of
architecture and encoder), sorted, then shuffled by random.Random(1201) for third() and 1202 for fourth(). Both were written
down before anything was exported. Left out in that order: what needs more than the inputs below, selects edges by their
values, or has over 30 million parameters. Several inputs are a tuple.
"""

from fresh_networks import BATCH, diffusers_model, image, segmentation, values

SMALL = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128}


def together(*makes):
    return lambda device: tuple(make(device) for make in makes)


def whole(*shape, below):
    def make(device):
        import torch
        return torch.randint(0, below, shape, generator=torch.Generator().manual_seed(1)).to(device)
    return make


def given(*shape):
    def make(device):
        import torch
        return torch.rand(*shape, device=device)
    return make


GRAPH = given(200, 32), whole(2, 800, below=200)


def called(make, call, key=None):
    """A network that is called by `call(network, inputs)`; one result of many by its key."""
    def build():
        from torch import nn

        class Called(nn.Module):
            def __init__(self):
                super().__init__()
                self.network = make()

            def forward(self, x):
                result = call(self.network, x)
                return result if key is None else result[key]
        return Called()
    return build


def graph(make, width=32):
    """Two layers of torch_geometric and a head; what a layer takes beside the nodes are inputs."""
    def build():
        from torch import nn

        class Network(nn.Module):
            def __init__(self):
                super().__init__()
                self.first, self.second, self.head = make(32), make(width), nn.Linear(width, 7)

            def forward(self, x):
                y = self.first(*x).relu()
                return self.head(self.second(y, *x[1:]).relu())
        return Network()
    return build


def layer(name, *arguments, **options):
    def make(width):
        import torch_geometric.nn
        return getattr(torch_geometric.nn, name)(width, 32, *arguments, **options)
    return make


def signed():
    import torch_geometric.nn
    from torch import nn

    class Signed(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = torch_geometric.nn.SignedConv(32, 32, first_aggr=True)
            self.second, self.head = torch_geometric.nn.SignedConv(32, 32, first_aggr=False), nn.Linear(64, 7)

        def forward(self, x):
            y = self.first(*x).relu()
            return self.head(self.second(y, *x[1:]).relu())
    return Signed()


def edge_networks(width):
    import torch_geometric.nn
    from torch import nn
    return torch_geometric.nn.NNConv(width, 32, nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, width * 32)), "mean")


def aggregated(width):
    import torch
    import torch_geometric.nn
    return torch_geometric.nn.PNAConv(width, 32, ["mean", "min", "max", "std"], ["identity", "amplification", "attenuation"],
                                      torch.ones(8, dtype=torch.int64) * 25, towers=4)


def library(model, config, **options):
    def make():
        import transformers
        return getattr(transformers, model)(getattr(transformers, config)(**options))
    return make


def detector(model, config, **options):
    """A detection transformer on the features of a small ResNet."""
    def make():
        import transformers
        backbone = transformers.ResNetConfig(embedding_size=16, hidden_sizes=[16, 32, 64, 64], depths=[1, 1, 1, 1],
                                             layer_type="basic", out_features=["stage2", "stage3", "stage4"]
                                             if "num_feature_levels" in options else ["stage4"])
        return getattr(transformers, model)(getattr(transformers, config)(
            use_timm_backbone=False, use_pretrained_backbone=False, backbone=None, backbone_config=backbone, d_model=64,
            encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=128,
            decoder_ffn_dim=128, num_queries=20, num_labels=10, **options))
    return make


def detected(make):
    """Classes and boxes of the queries."""
    return called(make, lambda network, x: (lambda r: (r.logits, r.pred_boxes))(network(pixel_values=x, return_dict=True)))


def fine():
    """D-FINE with an HGNet of small stages."""
    import transformers
    backbone = transformers.HGNetV2Config(
        stem_channels=[3, 8, 16], embedding_size=16, hidden_sizes=[32, 64, 64, 64], depths=[1, 1, 1, 1], hidden_act="relu",
        stage_in_channels=[16, 32, 64, 64], stage_mid_channels=[16, 16, 16, 16], stage_out_channels=[32, 64, 64, 64],
        stage_num_blocks=[1, 1, 1, 1], stage_downsample=[False, True, True, True], stage_light_block=[False, False, True, True],
        stage_kernel_size=[3, 3, 5, 5], stage_numb_of_layers=[2, 2, 2, 2], use_learnable_affine_block=True,
        out_features=["stage2", "stage3", "stage4"])
    return transformers.DFineForObjectDetection(transformers.DFineConfig(
        backbone_config=backbone, encoder_hidden_dim=64, d_model=64, encoder_in_channels=[64, 64, 64], encoder_ffn_dim=128,
        decoder_in_channels=[64, 64, 64], encoder_attention_heads=4, decoder_attention_heads=4, decoder_ffn_dim=128,
        decoder_layers=2, num_queries=20, num_denoising=0, num_labels=10, feat_strides=[8, 16, 32]))


def tree():
    """Tai et al. 2015: a child-sum LSTM over complete binary trees."""
    import torch
    from torch import nn

    class Tree(nn.Module):
        def __init__(self, width=64):
            super().__init__()
            self.words, self.leaf = nn.Embedding(500, width), nn.Linear(width, 3 * width)
            self.gates, self.forget = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.head, self.drop = nn.Linear(width, 5), nn.Dropout(0.2)

        def forward(self, x):
            i, o, u = self.leaf(self.drop(self.words(x))).chunk(3, -1)
            c = torch.sigmoid(i) * torch.tanh(u)
            h = torch.sigmoid(o) * torch.tanh(c)
            while h.shape[1] > 1:
                children = h.unflatten(1, (-1, 2))
                i, o, u = self.gates(children.sum(2)).chunk(3, -1)
                f = torch.sigmoid(self.forget(children))
                c = torch.sigmoid(i) * torch.tanh(u) + (f * c.unflatten(1, (-1, 2))).sum(2)
                h = torch.sigmoid(o) * torch.tanh(c)
            return self.head(h[:, 0])
    return Tree()


def quasi_recurrent():
    """Bradbury et al. 2017: gates by convolutions, a pooling along time."""
    import torch
    from torch import nn

    class Layer(nn.Module):
        def __init__(self, width, out):
            super().__init__()
            self.gates = nn.Conv1d(width, 3 * out, 2, padding=1)

        def forward(self, x):
            z, f, o = self.gates(x)[..., :-1].chunk(3, 1)
            z, f, o = torch.tanh(z), torch.sigmoid(f), torch.sigmoid(o)
            c, states = torch.zeros_like(z[..., 0]), []
            for t in range(z.shape[-1]):
                c = f[..., t] * c + (1 - f[..., t]) * z[..., t]
                states.append(c)
            return o * torch.stack(states, -1)

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.first, self.second = nn.Embedding(500, 64), Layer(64, 64), Layer(64, 64)
            self.drop, self.head = nn.Dropout(0.2), nn.Linear(64, 500)

        def forward(self, x):
            y = self.second(self.drop(self.first(self.words(x).transpose(1, 2))))
            return self.head(y.transpose(1, 2))
    return Network()


def independent():
    """Li et al. 2018: recurrent weights of one value for each state."""
    import torch
    from torch import nn

    class Layer(nn.Module):
        def __init__(self, width, out):
            super().__init__()
            self.given, self.own = nn.Linear(width, out), nn.Parameter(torch.rand(out))

        def forward(self, x):
            given = self.given(x)
            h, states = torch.zeros_like(given[:, 0]), []
            for t in range(x.shape[1]):
                h = torch.relu(given[:, t] + self.own * h)
                states.append(h)
            return torch.stack(states, 1)

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(Layer(8 if i == 0 else 64, 64) for i in range(3))
            self.norms = nn.ModuleList(nn.BatchNorm1d(64) for _ in range(3))
            self.head = nn.Linear(64, 10)

        def forward(self, x):
            for recurrent, norm in zip(self.layers, self.norms):
                x = norm(recurrent(x).transpose(1, 2)).transpose(1, 2)
            return self.head(x[:, -1])
    return Network()


def skipping():
    """Plain recurrent cells in two layers, the second one beside a shortcut."""
    import torch
    from torch import nn

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.first, self.second = nn.Embedding(500, 64), nn.RNNCell(64, 64), nn.RNNCell(64, 64, nonlinearity="relu")
            self.head = nn.Linear(64, 500)

        def forward(self, x):
            words = self.words(x)
            a = b = words.new_zeros(x.shape[0], 64)
            results = []
            for t in range(x.shape[1]):
                a = self.first(words[:, t], a)
                b = self.second(a, b)
                results.append(self.head(a + b))
            return torch.stack(results, 1)
    return Network()


def gated_convolutions():
    """Ballas et al. 2016: a GRU whose products are convolutions, over the frames of a video."""
    import torch
    from torch import nn

    class Cell(nn.Module):
        def __init__(self, width, out):
            super().__init__()
            self.out, self.gates = out, nn.Conv2d(width + out, 2 * out, 3, padding=1)
            self.new = nn.Conv2d(width + out, out, 3, padding=1)

        def forward(self, x, h):
            r, z = torch.sigmoid(self.gates(torch.cat([x, h], 1))).chunk(2, 1)
            return (1 - z) * h + z * torch.tanh(self.new(torch.cat([x, r * h], 1)))

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second, self.head = Cell(3, 16), Cell(16, 32), nn.Linear(32, 10)

        def forward(self, x):
            a = x.new_zeros(x.shape[0], 16, *x.shape[3:])
            b = x.new_zeros(x.shape[0], 32, *x.shape[3:])
            for t in range(x.shape[1]):
                a = self.first(x[:, t], a)
                b = self.second(a, b)
            return self.head(b.mean((2, 3)))
    return Network()


def translator():
    """Luong et al. 2015: a GRU, and a decoder of GRUCell with attention by dot products."""
    import torch
    from torch import nn

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.source, self.target = nn.Embedding(500, 64), nn.Embedding(500, 64)
            self.encoder, self.cell = nn.GRU(64, 64, batch_first=True), nn.GRUCell(64, 64)
            self.mix, self.head, self.drop = nn.Linear(128, 64), nn.Linear(64, 500), nn.Dropout(0.2)

        def forward(self, x):
            source, target = x
            states, last = self.encoder(self.drop(self.source(source)))
            hidden, results = last[0], []
            for t in range(target.shape[1]):
                hidden = self.cell(self.drop(self.target(target[:, t])), hidden)
                weights = torch.softmax(torch.bmm(states, hidden.unsqueeze(2)), 1)
                context = torch.bmm(weights.transpose(1, 2), states).squeeze(1)
                results.append(self.head(torch.tanh(self.mix(torch.cat([context, hidden], 1)))))
            return torch.stack(results, 1)
    return Network()


def language_model():
    """Two LSTMCells and a head of the embedding's weights."""
    import torch
    from torch import nn

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.drop = nn.Embedding(500, 96), nn.Dropout(0.3)
            self.cells = nn.ModuleList((nn.LSTMCell(96, 96), nn.LSTMCell(96, 96)))
            self.head = nn.Linear(96, 500)
            self.head.weight = self.words.weight

        def forward(self, x):
            words = self.drop(self.words(x))
            states = [None, None]
            results = []
            for t in range(x.shape[1]):
                y = words[:, t]
                for i, cell in enumerate(self.cells):
                    states[i] = cell(y, states[i])
                    y = self.drop(states[i][0])
                results.append(y)
            return self.head(torch.stack(results, 1))
    return Network()


TEXT = given(BATCH, 8, 64)


def third():
    """By seed 1201."""
    return {
        "GMMConv": (graph(layer("GMMConv", dim=2, kernel_size=3)), together(*GRAPH, given(800, 2)), ()),
        "FastRGCNConv": (graph(layer("FastRGCNConv", 3)), together(*GRAPH, whole(800, below=3)), ()),
        "SignedConv": (signed, together(*GRAPH, whole(2, 400, below=200)), ()),
        "Segformer (VGG-13)": (segmentation("Segformer", "vgg13"), image(), ()),
        "FPN (MobileOne-S0)": (segmentation("FPN", "mobileone_s0"), image(), ()),
        "Unet (EfficientNet-B5)": (segmentation("Unet", "timm-efficientnet-b5"), image(), ()),
        "PAN (Xception)": (segmentation("PAN", "xception"), image(128), ()),
        "Wan": (called(diffusers_model("WanTransformer3DModel", num_attention_heads=4, attention_head_dim=16, in_channels=4,
                                       out_channels=4, text_dim=64, freq_dim=64, ffn_dim=128, num_layers=2,
                                       rope_max_seq_len=32),
                       lambda n, x: n(*x, return_dict=False)[0]),
                together(given(BATCH, 4, 2, 16, 16), whole(BATCH, below=1000), TEXT), ()),
        "Bria": (called(diffusers_model("BriaTransformer2DModel", in_channels=16, num_layers=1, num_single_layers=2,
                                        attention_head_dim=16, num_attention_heads=4, joint_attention_dim=64,
                                        axes_dims_rope=[4, 6, 6]),
                        lambda n, x: n(hidden_states=x[0], encoder_hidden_states=x[1], timestep=x[2], img_ids=x[3], txt_ids=x[4],
                                       return_dict=False)[0]),
                 together(given(BATCH, 64, 16), TEXT, given(BATCH), given(64, 3), given(8, 3)), ()),
        "D-FINE": (detected(fine), image(128), ()),
        "DETR": (detected(detector("DetrForObjectDetection", "DetrConfig")), image(128), ()),
        "Deformable DETR": (detected(detector("DeformableDetrForObjectDetection", "DeformableDetrConfig",
                                              num_feature_levels=4)), image(128), ()),
        "V-JEPA 2": (called(library("VJEPA2ForVideoClassification", "VJEPA2Config", patch_size=8, crop_size=32,
                                    frames_per_clip=4, tubelet_size=2, hidden_size=64, num_attention_heads=4,
                                    num_hidden_layers=2, mlp_ratio=2.0, num_pooler_layers=1, pred_hidden_size=64,
                                    pred_num_attention_heads=4, pred_num_hidden_layers=1, num_labels=10),
                            lambda n, x: n(pixel_values_videos=x, return_dict=True), "logits"), values(4, 3, 32, 32), ()),
        "DPT for segmentation": (called(library("DPTForSemanticSegmentation", "DPTConfig", image_size=64, patch_size=8,
                                                backbone_out_indices=[0, 1, 2, 3], neck_hidden_sizes=[32, 32, 64, 64],
                                                fusion_hidden_size=32, num_labels=10,
                                                **{**SMALL, "num_hidden_layers": 4}),
                                        lambda n, x: n(x, return_dict=True), "logits"), image(), ()),
        "MobileViT for segmentation": (called(library("MobileViTForSemanticSegmentation", "MobileViTConfig", image_size=128,
                                                      hidden_sizes=[32, 48, 64], neck_hidden_sizes=[8, 16, 24, 32, 48, 64, 96],
                                                      aspp_out_channels=32, num_labels=10),
                                              lambda n, x: n(x, return_dict=True), "logits"), image(128), ()),
        "tree LSTM": (tree, lambda device: whole(BATCH, 32, below=500)(device), ()),
        "quasi-recurrent": (quasi_recurrent, lambda device: whole(BATCH, 32, below=500)(device), ()),
        "independently recurrent": (independent, values(32, 8), ()),
        "RNNCell": (skipping, lambda device: whole(BATCH, 32, below=500)(device), ()),
    }


def fourth():
    """By seed 1202."""
    return {
        "NNConv": (graph(edge_networks), together(*GRAPH, given(800, 4)), ()),
        "PNAConv": (graph(aggregated), together(*GRAPH), ()),
        "DenseGraphConv": (graph(layer("DenseGraphConv")), together(given(BATCH, 50, 32), given(BATCH, 50, 50)), ()),
        "UPerNet (VGG-11)": (segmentation("UPerNet", "vgg11_bn"), image(), ()),
        "LinkNet (Xception)": (segmentation("Linknet", "xception"), image(), ()),
        "DeepLabV3 (DenseNet-201)": (segmentation("DeepLabV3", "densenet201"), image(), ()),
        "PSPNet (EfficientNet-B2)": (segmentation("PSPNet", "timm-efficientnet-b2"), image(), ()),
        "CogView4": (called(diffusers_model("CogView4Transformer2DModel", in_channels=4, out_channels=4, num_layers=2,
                                            attention_head_dim=16, num_attention_heads=4, text_embed_dim=64, time_embed_dim=64,
                                            condition_dim=32, pos_embed_max_size=16, sample_size=16, rope_axes_dim=(16, 16)),
                            lambda n, x: n(*x, return_dict=False)[0]),
                     together(image(16, 4), given(BATCH, 16, 64), whole(BATCH, below=1000), given(BATCH, 2), given(BATCH, 2),
                              given(BATCH, 2)), ()),
        "AsymmetricAutoencoderKL": (called(diffusers_model(
            "AsymmetricAutoencoderKL", down_block_types=("DownEncoderBlock2D",) * 2, down_block_out_channels=(32, 64),
            up_block_types=("UpDecoderBlock2D",) * 2, up_block_out_channels=(32, 64)),
            lambda n, x: n(x, return_dict=False)[0]), image(32), ()),
        "UNet3DConditionModel": (called(diffusers_model(
            "UNet3DConditionModel", sample_size=16, block_out_channels=(32, 64), norm_num_groups=8, layers_per_block=1,
            cross_attention_dim=64, attention_head_dim=16, down_block_types=("CrossAttnDownBlock3D", "DownBlock3D"),
            up_block_types=("UpBlock3D", "CrossAttnUpBlock3D")), lambda n, x: n(*x, return_dict=False)[0]),
            together(given(BATCH, 4, 4, 16, 16), whole(BATCH, below=1000), TEXT), ()),
        "Conditional DETR": (detected(detector("ConditionalDetrForObjectDetection", "ConditionalDetrConfig")), image(128), ()),
        "YOLOS": (detected(library("YolosForObjectDetection", "YolosConfig", image_size=[64, 64], patch_size=8,
                                   num_detection_tokens=20, num_labels=10, **SMALL)), image(), ()),
        "MViT": (lambda: __import__("torchvision").models.video.mvit_v1_b(num_classes=10), values(3, 16, 224, 224), ()),
        "BEiT for segmentation": (called(library("BeitForSemanticSegmentation", "BeitConfig", image_size=64, patch_size=16,
                                                 num_labels=10, out_indices=[1, 2, 3, 4], use_auxiliary_head=False,
                                                 **{**SMALL, "num_hidden_layers": 4}),
                                         lambda n, x: n(x, return_dict=True), "logits"), image(), ()),
        "Depth Anything": (called(lambda: (lambda t: t.DepthAnythingForDepthEstimation(t.DepthAnythingConfig(
            backbone_config=t.Dinov2Config(image_size=70, patch_size=14, hidden_size=64, num_hidden_layers=4,
                                           num_attention_heads=4, mlp_ratio=2, out_indices=[1, 2, 3, 4], reshape_hidden_states=False,
                                           apply_layernorm=True),
            patch_size=14, reassemble_hidden_size=64, neck_hidden_sizes=[16, 32, 64, 64], fusion_hidden_size=32,
            head_hidden_size=16)))(__import__("transformers")), lambda n, x: n(x, return_dict=True), "predicted_depth"),
            image(70), ()),
        "Swin2SR": (called(library("Swin2SRForImageSuperResolution", "Swin2SRConfig", image_size=32, embed_dim=32,
                                   depths=[2, 2], num_heads=[4, 4], window_size=8, mlp_ratio=2.0, upscale=2),
                           lambda n, x: n(x, return_dict=True), "reconstruction"), image(32), ()),
        "ConvGRU": (gated_convolutions, values(6, 3, 32, 32), ()),
        "GRUCell translator": (translator, together(whole(BATCH, 24, below=500), whole(BATCH, 16, below=500)), ()),
        "LSTMCell language model": (language_model, lambda device: whole(BATCH, 32, below=500)(device), ()),
    }
