"""Recordings of networks, where PyTorch is installed. Run by tests/project/python.sh."""
import contextlib
import gzip
import importlib.util
import io
import json
import os
import sys
import tempfile
import unittest
import warnings

import onnxvram
from onnxvram._record import weights_config

HAS_TORCH = importlib.util.find_spec("torch") is not None
if HAS_TORCH:
    import torch
    from torch import nn
    from torch.nn import functional as F


def record(network, *args, **options):
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's own
        path = os.path.join(folder, "network.program.json.gz")
        onnxvram.record(network, args, path=path, **options)
        with gzip.open(path) as file:
            return json.load(file)["programs"]


def calls(program):
    return [node["target"].split(".", 2)[2] for node in program["graph_module"]["graph"]["nodes"]]


def value_of(program, target, result=0):
    for node in program["graph_module"]["graph"]["nodes"]:
        if node["target"] == f"torch.ops.{target}":
            return node["outputs"][result]["as_tensor"]["name"]
    raise AssertionError(f"no call of {target} in {calls(program)}")


def sizes(program, **dims):
    """The sizes of all values under numbers for the symbols."""
    import sympy

    def number(size):
        if "as_int" in size:
            return size["as_int"]
        names = {"Symbol": sympy.Symbol, "Integer": sympy.Integer, "Add": sympy.Add, "Mul": sympy.Mul, "Pow": sympy.Pow}
        from torch.utils._sympy import functions
        names.update({n: getattr(functions, n) for n in ("FloorDiv", "Mod", "CeilDiv", "PythonMod", "CleanDiv") if hasattr(functions, n)})
        expression = eval(size["as_expr"]["expr_str"], {"__builtins__": {}}, names)
        return int(expression.subs({s: dims[s.name] for s in expression.free_symbols}))
    return {name: [[number(s) for s in value[kind]] for kind in ("sizes", "strides")]
            for name, value in program["graph_module"]["graph"]["tensor_values"].items()}


if HAS_TORCH:
    class Small(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.norm, self.act = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(inplace=True)
            self.unused, self.head = nn.Linear(4, 4), nn.Linear(8, 10)
            self.lstm = nn.LSTM(8, 8, 2, batch_first=True, dropout=0.1)
            self.register_buffer("scale", torch.ones(8), persistent=False)

        def forward(self, x):
            x = self.act(self.norm(self.conv(x)))
            y = x.flatten(2).transpose(1, 2) * self.scale
            y, _ = self.lstm(y)
            x = y.mean(1)
            return self.head(x)

    class Attention(nn.Module):
        def __init__(self, width=32, **options):
            super().__init__()
            self.layers = nn.TransformerEncoder(nn.TransformerEncoderLayer(width, 4, 64, batch_first=True), 2)

        def forward(self, x):
            return self.layers(x)

    class OneHead(nn.Module):
        """Multi-query attention: four heads of queries, one of keys and values."""

        def __init__(self):
            super().__init__()
            self.query, self.both = nn.Linear(32, 32), nn.Linear(32, 16)

        def forward(self, x):
            key, value = self.both(x).unsqueeze(1).chunk(2, -1)
            return F.scaled_dot_product_attention(self.query(x).unflatten(-1, (4, 8)).transpose(1, 2), key, value)

    class Tied(nn.Module):
        """Two modules with one tensor."""

        def __init__(self):
            super().__init__()
            self.table, self.head = nn.Embedding(9, 4), nn.Linear(4, 9, bias=False)
            self.head.weight = self.table.weight

        def forward(self, x):
            return self.head(self.table(x))

    class Masked(nn.Module):
        def __init__(self, mask):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(4))
            self.register_buffer("mask", mask)

        def forward(self, x):
            return x * self.weight * self.mask

    class Item(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Sequential(nn.Linear(4, 4), Fails())

        def forward(self, x):
            return self.inner(x)

    class Fails(nn.Module):
        def forward(self, x):
            return x * x.sum().item()

    class Autocast(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn, self.attention, self.out = nn.LSTM(8, 32, 2, batch_first=True), Attention(), nn.Linear(32, 4)

        def forward(self, x):
            with torch.autocast("cuda", dtype=torch.bfloat16):
                x = self.attention(self.rnn(x)[0])
                with torch.autocast("cuda", enabled=False):
                    return self.out(x.float())

    class Experts(nn.Module):
        """Products of groups, as experts of transformers have them: which kernel there is, they ask the device."""
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(4, 16, 32))

        def forward(self, x, offsets):
            if torch.cuda.get_device_capability(x.device) < (8, 0):
                raise NotImplementedError
            return F.grouped_mm(x * 2, self.weight.transpose(-2, -1), offs=offsets)

    class Fixes(nn.Module):
        def forward(self, x):
            return x.reshape(int(x.shape[0]) * 2, -1)


@unittest.skipUnless(HAS_TORCH, "not installed: torch")
class Recordings(unittest.TestCase):
    def test_facts(self):
        network = Small()
        before = {name: (id(p), p.device) for name, p in network.named_parameters()}
        programs = record(network, torch.rand(2, 3, 8, 8))
        self.assertEqual({name: (id(p), p.device) for name, p in network.named_parameters()}, before)
        self.assertTrue(network.training)
        program = programs["training"]
        specs = program["graph_module"]["signature"]["input_specs"]
        names = [s["parameter"]["parameter_name"] for s in specs if "parameter" in s]
        self.assertEqual(names, [name for name, _ in network.named_parameters()])
        self.assertIn("unused.weight", names)
        self.assertEqual([s["buffer"]["persistent"] for s in specs if "buffer" in s], [False, True, True, True])
        self.assertIn("aten.cudnn_batch_norm.default", calls(program))
        self.assertIn("aten.relu_.default", calls(program))
        self.assertIn("aten._cudnn_rnn.default", calls(program))
        self.assertNotIn("aten.detach.default", calls(program))
        node = program["graph_module"]["graph"]["nodes"][0]
        self.assertEqual(node["metadata"]["nn_module_stack"].split(";")[-1], "L__self__conv,conv,torch.nn.modules.conv.Conv2d")
        self.assertIn("x = self.act(self.norm(self.conv(x)))", node["metadata"]["stack_trace"])

    def test_gradients(self):
        program = record(Small(), torch.rand(2, 3, 8, 8), modes=["training"])["training"]
        values = program["graph_module"]["graph"]["tensor_values"]
        for target in ("aten.convolution.default", "aten.relu_.default", "aten.addmm.default"):
            self.assertTrue(values[value_of(program, target)]["requires_grad"], target)
        self.assertFalse(values["x"]["requires_grad"])
        self.assertFalse(values["cudnn_batch_norm_r_1"]["requires_grad"])

    def test_values_of_constants(self):
        class Decoder(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16, batch_first=True), 1)

            def forward(self, x):
                mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1], device=x.device)
                return self.layers(x, x, tgt_mask=mask)
        program = record(Decoder(), torch.rand(2, 5, 8), modes=["training"])["training"]
        node = next(n for n in program["graph_module"]["graph"]["nodes"] if "efficient_attention" in n["target"])
        arguments = {a["name"]: a["arg"] for a in node["inputs"]}
        self.assertEqual((arguments["attn_bias"], arguments["is_causal"]), ({"as_none": True}, {"as_bool": True}))

    def test_lifetimes(self):
        programs = record(Small(), torch.rand(2, 3, 8, 8))
        lives = programs["training"]["lifetimes"]
        conv, norm = value_of(programs["training"], "aten.convolution.default"), value_of(programs["training"], "aten.relu_.default")
        self.assertEqual((lives[conv]["kept"], lives[conv]["freed_after"]), (True, "cudnn_batch_norm"))
        self.assertEqual(lives[norm]["storage"], lives[value_of(programs["training"], "aten.cudnn_batch_norm.default")]["storage"])
        self.assertEqual((lives["p_conv_weight"]["freed_after"], lives["x"]["freed_after"]), (None, None))
        lives = programs["inference"]["lifetimes"]
        self.assertFalse(any(life["kept"] for life in lives.values()))
        # `x` is bound until the mean is computed, `y` until forward returns.
        self.assertEqual(lives[value_of(programs["inference"], "aten.relu_.default")]["freed_after"], "mean")
        self.assertEqual(lives[value_of(programs["inference"], "aten._cudnn_rnn.default")]["freed_after"], "addmm")

    def test_kept_is_what_autograd_keeps(self):
        """Against a run on the CPU, where the same calls are made."""
        network = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4), nn.Softmax(-1))
        state = {t.untyped_storage().data_ptr() for t in network.parameters()}
        kept, x = {}, torch.rand(5, 8)

        def pack(t):
            kept[t.untyped_storage().data_ptr()] = t.untyped_storage().nbytes()
            return t
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
            held = network(x)
        expected = sum(size for key, size in kept.items() if key not in state and key != x.untyped_storage().data_ptr())
        self.assertEqual(tuple(held.shape), (5, 4))
        program = record(network, x, modes=["training"])["training"]
        values, total = program["graph_module"]["graph"]["tensor_values"], {}
        given = {life["storage"] for name, life in program["lifetimes"].items() if name.startswith(("p_", "b_", "input"))}
        for name, life in program["lifetimes"].items():
            if life["kept"] and life["storage"] not in given:
                size = 4
                for s in values[name]["sizes"]:
                    size *= s["as_int"]
                total[life["storage"]] = max(total.get(life["storage"], 0), size)
        self.assertEqual(sum(total.values()), expected)

    def test_own_functions_are_calls(self):
        """What an autograd.Function gives has a gradient again, and what it saves is named."""
        class Twice(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                y = x.exp()
                ctx.save_for_backward(y)
                return y * 2

            @staticmethod
            def backward(ctx, grad):
                return grad * 2 * ctx.saved_tensors[0]

        class Network(nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = nn.Linear(4, 4)

            def forward(self, x):
                return Twice.apply(self.linear(x)).sum()

        original = torch.autograd.Function.__dict__["apply"]
        programs = record(Network(), torch.rand(3, 4))
        self.assertIs(torch.autograd.Function.__dict__["apply"], original)
        graph = programs["training"]["graph_module"]["graph"]
        function = next(n for n in graph["nodes"] if n["target"] == "torch.ops.higher_order.own_function")
        lists = {i["name"]: [t["name"] for t in i["arg"]["as_tensors"]] for i in function["inputs"]}
        self.assertEqual(lists, {"given": ["addmm"], "made": ["mul"], "kept": ["exp"]})
        requires = {name: value["requires_grad"] for name, value in graph["tensor_values"].items()}
        self.assertEqual([requires[n] for n in ("addmm", "exp", "mul", "own_function")], [True, False, False, True])
        self.assertTrue(programs["training"]["lifetimes"]["exp"]["kept"])
        targets = [n["target"] for n in programs["inference"]["graph_module"]["graph"]["nodes"]]
        self.assertEqual(targets[-1], "torch.ops.aten.sum.default")
        self.assertNotIn("torch.ops.higher_order.own_function", targets)

    def test_symbols_are_right_for_every_batch(self):
        class Heads(nn.Module):
            def __init__(self):
                super().__init__()
                self.body, self.attention = nn.Conv2d(3, 8, 3, stride=2), nn.MultiheadAttention(8, 2, batch_first=True)

            def forward(self, x):
                x = self.body(x).flatten(2).transpose(1, 2)
                x = x + self.attention(x, x, x)[0]
                return x.reshape(-1, 8), torch.cat([x, x]).sum(0), torch.zeros(x.shape[0] * 2, 3, device=x.device)

        symbolic = record(Heads(), torch.rand(4, 3, 9, 9), dynamic_shapes=({0: "batch"},))
        for batch in (2, 3, 8):
            fixed = record(Heads(), torch.rand(batch, 3, 9, 9))
            for mode in ("training", "inference"):
                self.assertEqual(sizes(symbolic[mode], batch=batch), sizes(fixed[mode]))
                self.assertEqual(calls(symbolic[mode]), calls(fixed[mode]))
        # Strides of dims of size 1 differ, sizes do not.
        fixed = record(Heads(), torch.rand(1, 3, 9, 9))["training"]
        found = sizes(symbolic["training"], batch=1)
        self.assertEqual({n: v[0] for n, v in sizes(fixed).items() if n in ("convolution", "addmm")},
                         {n: v[0] for n, v in found.items() if n in ("convolution", "addmm")})
        self.assertEqual(symbolic["training"]["range_constraints"], {"batch": {"min_val": 1, "max_val": None}})

    def test_symbols_stay_free(self):
        """In PyTorch's C++ these read sizes as numbers."""
        class Sizes(nn.Module):
            def forward(self, x):
                x = F.pad(x, (0, 1, 0, 1), value=1.0)
                up = [F.interpolate(x, scale_factor=2), F.interpolate(x, size=(16, 16), mode="bilinear"),
                      F.interpolate(x, scale_factor=2.0, mode="bicubic"), F.interpolate(x.flatten(2), scale_factor=2, mode="linear")]
                return F.fold(F.unfold(x, 3), (9, 9), 3), torch.fft.rfft(x), *up
        program = record(Sizes(), torch.zeros(2, 4, 8, 8), dynamic_shapes=({0: "batch"},))["inference"]
        small, large = sizes(program, batch=2), sizes(program, batch=5)
        for name, (shape, _) in small.items():
            self.assertEqual(large[name][0], [5, *shape[1:]] if shape else shape, name)
        self.assertEqual([c for c in calls(program) if "upsample" in c],
                         ["aten.upsample_nearest2d.default", "aten.upsample_bilinear2d.default", "aten.upsample_bicubic2d.default",
                          "aten.upsample_linear1d.default"])

    def test_shared_buffers(self):
        """nn.Module.to() copies a buffer for each module that has it, and leaves parameters tied."""
        network, mask = nn.Sequential(Masked(torch.ones(4)), Masked(torch.ones(4))), torch.ones(4)
        network[0].mask = network[1].mask = mask
        network[1].weight = network[0].weight
        program = record(network, torch.rand(2, 4), modes=["inference"])["inference"]
        specs = program["graph_module"]["signature"]["input_specs"]
        self.assertEqual([s["buffer"]["buffer_name"] for s in specs if "buffer" in s], ["0.mask", "1.mask"])
        self.assertEqual([s["parameter"]["parameter_name"] for s in specs if "parameter" in s], ["0.weight", "1.weight"])
        files = weights_config(program)["config"]
        self.assertEqual(files["0.weight"], files["1.weight"])
        self.assertIs(network[0].mask, network[1].mask)

    def test_tables_that_can_only_be_read(self):
        class Frozen(dict):
            def refuse(self, *args):
                raise TypeError("cannot be changed")
            clear = update = refuse

        network = nn.Linear(4, 4)
        network.config = Frozen(size=4)
        self.assertEqual(calls(record(network, torch.rand(2, 4), modes=["inference"])["inference"])[-1], "aten.addmm.default")
        self.assertEqual(network.config, {"size": 4})

    def test_sampling_by_a_grid(self):
        class Sampled(nn.Module):
            def forward(self, x, grid):
                return F.grid_sample(x, grid, align_corners=True)

        program = record(Sampled(), torch.rand(2, 3, 8, 8), torch.rand(2, 4, 5, 2), modes=["inference"])["inference"]
        self.assertEqual(calls(program)[-1], "aten.cudnn_grid_sampler.default")
        self.assertEqual(sizes(program)[value_of(program, "aten.cudnn_grid_sampler.default")], [[2, 3, 4, 5], [60, 20, 5, 1]])

    def test_hooks_of_the_network(self):
        """One that a network registers when it first runs, as transformers does for hidden states, is there once in each mode."""
        class Hooked(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer, self.has_hook, self.seen = nn.Linear(4, 4), False, []

            def forward(self, x):
                if not self.has_hook:
                    self.layer.register_forward_hook(lambda module, args, result: self.seen.append(result))
                self.has_hook, self.seen = True, []
                return self.layer(x) + sum(self.seen)

        network = Hooked()
        programs = record(network, torch.rand(2, 4))
        for program in programs.values():
            self.assertEqual(calls(program).count("aten.add.Tensor"), 2)
        self.assertEqual((len(network.layer._forward_hooks), network.seen), (0, []))

    def test_bias_is_added_in_place(self):
        """To a linear layer's product of what is not contiguous. PyTorch does so unless a dispatch mode, such as the recorder's, is on."""
        class Turned(nn.Module):
            def __init__(self):
                super().__init__()
                self.f, self.g = nn.Linear(8, 8), nn.Linear(8, 4)

            def forward(self, x):
                return self.g(self.f(x.transpose(0, 1)))

        for program in record(Turned(), torch.rand(3, 5, 8)).values():
            self.assertEqual([c for c in calls(program) if c.startswith("aten.add")], ["aten.add_.Tensor", "aten.addmm.default"])

    def test_attention(self):
        programs = record(Attention(), torch.rand(2, 6, 32))
        self.assertIn("aten._scaled_dot_product_efficient_attention.default", calls(programs["training"]))
        self.assertIn("aten._transformer_encoder_layer_fwd.default", calls(programs["inference"]))
        halves = record(Attention().half(), torch.rand(2, 6, 32).half(), modes=["training"])["training"]
        self.assertIn("aten._scaled_dot_product_flash_attention.default", calls(halves))
        odd = record(nn.MultiheadAttention(9, 3, batch_first=True), *[torch.rand(2, 6, 9)] * 3, modes=["training"])["training"]
        self.assertNotIn("attention", " ".join(calls(odd)))

    @unittest.skipUnless(HAS_TORCH and hasattr(F, "grouped_mm"), "F.grouped_mm of PyTorch 2.10 on")
    def test_grouped_products(self):
        """Networks may ask for the compute capability, and autograd keeps both operands and where groups end."""
        asked = torch.cuda.get_device_capability
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "experts.program.json")
            onnxvram.record(Experts(), (torch.rand(64, 32), torch.arange(4, dtype=torch.int32)), path=path, modes=["training"])
            found = onnxvram.analyze(path, train="sgd")
        self.assertIs(torch.cuda.get_device_capability, asked)
        codes = {d["code"] for d in found.diagnostics}
        self.assertFalse(codes & {"unknown-aten-op", "recorded-kept", "training-opaque"}, codes)
        self.assertEqual(found.training["saved_activation_bytes"],
                         64 * 32 * 4 + 4 * 4 + (64 * 16 * 4 + 64 * 8 + 4))  # the last three: the loss

    def test_regions_of_autocast(self):
        """As on a GPU, though there is none; every tensor has a type that the file can say."""
        found = record(Autocast(), torch.rand(2, 6, 8), modes=["training"])["training"]
        graph = found["graph_module"]["graph"]
        results = {n["target"]: graph["tensor_values"][n["outputs"][0]["as_tensor"]["name"]]["dtype"] for n in graph["nodes"]
                   if "as_tensor" in n["outputs"][0]}
        bfloat16, float32 = 13, 7
        self.assertEqual(results["torch.ops.aten._scaled_dot_product_flash_attention.default"], bfloat16)
        self.assertEqual(results["torch.ops.aten._cudnn_rnn.default"], bfloat16)
        self.assertEqual(graph["tensor_values"][graph["outputs"][0]["as_tensor"]["name"]]["dtype"], float32)
        self.assertNotIn(0, [v["dtype"] for v in graph["tensor_values"].values()])
        self.assertFalse(torch.is_autocast_enabled("cuda"))

    @unittest.skipIf(not HAS_TORCH or tuple(int(n) for n in torch.__version__.split(".")[:2]) < (2, 14), "kernels of PyTorch 2.14 on")
    def test_attention_of_more_shapes(self):
        """One head of keys and values for all of the query's; no batch, with a mask of rows."""
        class Unbatched(nn.Module):
            def forward(self, x):
                return nn.functional.scaled_dot_product_attention(x, x, x, torch.ones(x.shape[1], x.shape[1], device=x.device))

        for network, x in ((OneHead(), torch.rand(2, 6, 32)), (Unbatched(), torch.rand(4, 6, 32))):
            found = record(network, x.requires_grad_(), modes=["training"])["training"]
            self.assertIn("aten._scaled_dot_product_efficient_attention.default", calls(found))

    def test_saved_program(self):
        program = torch.export.export(nn.Sequential(nn.Linear(8, 4), nn.ReLU(inplace=True)), (torch.rand(2, 8),))
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.program.json")
            onnxvram.save_program(program, path)
            with open(path) as file:
                found = json.load(file)
            self.assertIn("torch.ops.aten.relu_.default", [n["target"] for n in found["graph_module"]["graph"]["nodes"]])
            onnxvram.save_program(program, path + ".gz")
            with gzip.open(path + ".gz") as file:
                self.assertEqual(json.load(file), found)
            self.assertEqual({n: w["path_name"] for n, w in found["weights_config"]["config"].items()},
                             {"0.weight": "weight_0", "0.bias": "weight_1"})
            onnxvram.save_program(torch.export.export(Tied(), (torch.tensor([1]),)), path)
            with open(path) as file:
                self.assertEqual({n: w["path_name"] for n, w in json.load(file)["weights_config"]["config"].items()},
                                 {"table.weight": "weight_0", "head.weight": "weight_0"})
            with self.assertRaisesRegex(onnxvram.UsageError, "expected a torch.export.ExportedProgram"):
                onnxvram.save_program(nn.Linear(2, 2), path)

    def test_errors_say_where(self):
        with self.assertRaisesRegex(onnxvram.RecordingError, r"module 'inner.1' \(Fails\).*test_record.py, line \d+ .*item"):
            record(Item(), torch.rand(2, 4))
        with self.assertRaisesRegex(onnxvram.RecordingError, r"dim 'batch' is dynamic, but .*test_record.py.*fixes it to 2"):
            record(Fixes(), torch.rand(2, 4), dynamic_shapes=({0: "batch"},))
        record(Fixes(), torch.rand(2, 4))
        with self.assertRaisesRegex(onnxvram.RecordingError, "has no shape yet"):
            record(nn.LazyLinear(3), torch.rand(2, 4))
        with self.assertRaisesRegex(onnxvram.UsageError, "the arguments are not those of"):
            record(nn.Linear(4, 4))
        with self.assertRaisesRegex(onnxvram.UsageError, "names 'y', which is not an argument"):
            record(nn.Linear(4, 4), torch.rand(2, 4), dynamic_shapes={"y": {0: "batch"}})
        with self.assertRaisesRegex(onnxvram.UsageError, r"write \(x,\)"):
            onnxvram.record(nn.Linear(4, 4), torch.rand(2, 4))
        network = Item()
        with contextlib.suppress(onnxvram.RecordingError):
            record(network, torch.rand(2, 4))
        self.assertEqual(network.inner[0].weight.device.type, "cpu")

    def test_command_line(self):
        from onnxvram import _record
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "made_here.py"), "w") as file:
                file.write("import torch\ndef network():\n    return torch.nn.Linear(4, 2), (torch.rand(3, 4),)\n")
            path, errors = os.path.join(folder, "out.json"), io.StringIO()
            before = list(sys.path)
            try:
                self.assertEqual(_record.main([os.path.join(folder, "made_here.py:network"), "-o", path, "--batch", "n",
                                               "--mode", "training"]), 0)
                with contextlib.redirect_stderr(errors):
                    self.assertEqual(_record.main(["no_such_module:network"]), 2)
            finally:
                sys.path[:] = before
            with open(path) as file:
                found = json.load(file)
        self.assertEqual((found["format"], found["version"], list(found["programs"])), ("onnxvram.program", 1, ["training"]))
        self.assertEqual(sizes(found["programs"]["training"], n=7)["addmm"], [[7, 2], [2, 1]])
        self.assertIn("no_such_module", errors.getvalue())


class WithoutTorch(unittest.TestCase):
    @unittest.skipIf(HAS_TORCH, "PyTorch is installed")
    def test_what_is_missing(self):
        with self.assertRaisesRegex(onnxvram.UsageError, "pip install torch"):
            onnxvram.record(None, ())


if __name__ == "__main__":
    unittest.main()
