"""Plans of modules and of operations on a network of PyTorch itself, in float64: shards, replicas, copies, files, autocast, torch.compile.
Run by tests/project/python.sh."""
import contextlib
import copy
import gc
import importlib.util
import io
import os
import tempfile
import unittest
import unittest.mock
import warnings
import weakref

HAS_TORCH = importlib.util.find_spec("torch") is not None
if HAS_TORCH:
    import torch
    from torch import nn

    from onnxvram import recompute

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.a, self.b, self.drop = nn.BatchNorm1d(8), nn.Linear(8, 16), nn.Linear(16, 8), nn.Dropout(0.1)

        def forward(self, x, *, scale=None):
            return 1 - (x + self.drop(self.b(nn.functional.celu(self.a(self.norm(x))))) * scale)

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers, self.head = nn.ModuleList(Block() for _ in range(4)), nn.Linear(8, 3)

        def forward(self, x):
            for layer in self.layers:
                x = layer(x, scale=0.5)
            return self.head(x)

    class Branches(nn.Module):
        """Puts its results into the list that it is given."""

        def __init__(self):
            super().__init__()
            self.parts = nn.ModuleList(nn.Sequential(nn.Linear(8, 8), nn.Tanh()) for _ in range(2))

        def forward(self, x):
            for i, part in enumerate(self.parts):
                x[i] = part(x[i])
            return [x[0] + x[1], x[1]]

    class Measuring(nn.Module):
        """Divides without gradients before it divides with them: plans name the latter."""

        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 8)

        def forward(self, x):
            y = self.a(x)
            with torch.no_grad():
                size = (y / y.norm()).sum()
            return self.b(torch.tanh(y) / (2 + size))

    class Popping(nn.Module):
        """Reads the last of a list alone, and takes it out."""

        def __init__(self):
            super().__init__()
            self.layer = nn.Sequential(nn.Linear(8, 8), nn.Tanh())

        def forward(self, board):
            board["x"] = self.layer(board["x"] * board["skips"].pop())
            return board

SINGLE = {"form": "modules", "modules": ["layers.0", "layers.1", "layers.2", "layers.3"]}
NESTED = {"form": "modules", "modules": ["layers.0 layers.1", "layers.1", "layers.2"]}
OPERATIONS = {"form": "operations", "segments": [["enter layers.0 1", "enter layers.1 1"], ["enter layers.1 1", "op layers.3 sub 1"]],
              "keep": ["op layers.1.a product 1", "op layers.2 elu 1"]}
SELECTIVE, REENTRANT = {**SINGLE, "save": "product+elu"}, {"form": "modules", "modules": ["layers.1", "layers.2", "layers.3"], "checkpoint": "reentrant"}
PLANS = {"single": SINGLE, "nested": NESTED, "operations": OPERATIONS, "selective": SELECTIVE, "reentrant": REENTRANT}


def network(plan=None, dtype="float64"):
    torch.manual_seed(0)
    made = Network().to(getattr(torch, dtype))
    return made if plan is None else recompute.apply(made, plan)


def batch(seed=0, dtype="float64"):
    return torch.randn(6, 8, generator=torch.Generator().manual_seed(seed)).to(getattr(torch, dtype))


def left(model, x, context=contextlib.nullcontext):
    """Gradients, and running statistics."""
    torch.manual_seed(1)
    with context():
        loss = model(x).square().mean()
    loss.backward()
    grads = [p.grad.full_tensor() if hasattr(p.grad, "full_tensor") else p.grad for p in model.parameters()]
    return [t.clone() for t in [*grads, *model.buffers()]]


def shard(model):
    from torch.distributed.fsdp import fully_shard
    for layer in model.layers:
        fully_shard(layer)
    return fully_shard(model)


def rank_of_two(rank, folder):
    """Fails where something is not as without a plan."""
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel
    warnings.simplefilter("ignore")
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2)
    x, test = batch(rank), unittest.TestCase()
    plain = left(DistributedDataParallel(network()), x)
    for name, plan in PLANS.items():
        found = left(DistributedDataParallel(network(plan)), x)
        assert all(torch.equal(a, b) for a, b in zip(plain, found)), f"DDP, {name}"
        for model in (lambda plan=plan: shard(network(plan)), lambda plan=plan: recompute.apply(shard(network()), plan)):
            if plan in (SINGLE, SELECTIVE, REENTRANT):
                found = left(model(), x)
                assert all(torch.allclose(a, b, rtol=1e-12, atol=1e-15) for a, b in zip(plain, found)), f"FSDP, {name}"
            else:
                with test.assertRaisesRegex(ValueError, "fully_shard has some|is not for FSDP"):
                    model()(x)
    dist.destroy_process_group()


@unittest.skipUnless(HAS_TORCH, "not installed: torch")
class Plans(unittest.TestCase):
    def test_lists_that_modules_change(self):
        def run(stages):
            x = [batch(0), batch(1)]
            for stage in stages:
                x = stage(x)
            return (x[0] * x[1]).sum()

        torch.manual_seed(0)
        made, grads = nn.ModuleList(Branches() for _ in range(3)).double(), []
        planned = recompute.apply(copy.deepcopy(made), {"form": "modules", "modules": ["0", "1"]})
        for stages, way in (made, run), (planned, run), (planned, torch.compile(run, backend="aot_eager")):
            grads.append(torch.autograd.grad(way(stages), list(stages.parameters())))
        for a, *others in zip(*grads):
            self.assertTrue(all(torch.equal(a, b) for b in others))

    def test_lists_of_modules_are_refused(self):
        with self.assertRaisesRegex(ValueError, "module layers is a list, which is not called itself: .* modules=layers.\\*"):
            network({"form": "modules", "modules": ["layers"]})

    def test_reentrant_modules_take_no_lists_with_gradients(self):
        stage = recompute.apply(nn.ModuleList([Branches().double()]), {"form": "modules", "modules": ["0"], "checkpoint": "reentrant"})[0]
        for x in [batch(0).requires_grad_()] * 2, [batch(0), batch(1).requires_grad_()]:
            with self.assertRaisesRegex(RuntimeError, "module 0 is given a list with tensors that have gradients"):
                stage(x)

    def test_lists_hold_what_the_second_run_reads(self):
        torch.manual_seed(0)
        made, weights, grads = nn.ModuleList(Popping() for _ in range(3)).double(), batch(1).requires_grad_(), []
        for stages in made, recompute.apply(copy.deepcopy(made), {"form": "modules", "modules": ["0", "1", "2"]}):
            board, between = {"x": batch(0), "skips": [weights * (k + 1) for k in range(3)]}, []
            last = weakref.ref(board["skips"][0])
            for stage in stages:
                between.append(board["x"])
                board = stage(board)
            loss = board["x"].square().sum()
            del board, stage
            grads.append(torch.autograd.grad(loss, [between[2]]))
            self.assertIsNone(last())
            grads[-1] += torch.autograd.grad(between[2], [weights], grads[-1])
        for a, b in zip(*grads):
            self.assertTrue(torch.equal(a, b))

    def expect_same(self, plan, model, x=None, context=contextlib.nullcontext, dtype="float64"):
        x = batch(dtype=dtype) if x is None else x
        for a, b in zip(left(network(dtype=dtype), x, context), left(model, x, context)):
            self.assertTrue(torch.equal(a, b), plan)

    def test_gradients_and_statistics_are_those_without(self):
        for name, plan in PLANS.items():
            self.expect_same(name, network(plan))
            self.expect_same(name, network(plan, "float32"), context=lambda: torch.autocast("cpu", torch.bfloat16), dtype="float32")

    def test_what_the_operation_behind_two_borders_saves_is_its_own(self):
        plan, runs = {"form": "operations", "keep": [], "segments": [[f"enter {name} 1", "op layers.1.a product 1"] for name in (".", "layers.0")]}, []
        model = network(plan)
        with unittest.mock.patch.object(recompute.Segment, "run", lambda segment: runs.append(segment)):
            torch.autograd.grad(model(batch()).square().mean(), model.layers[1].a.weight)
        self.assertEqual(runs, [])

    def test_operations_without_gradients_are_not_counted(self):
        torch.manual_seed(0)
        plain = Measuring().double()
        plan = {"form": "operations", "keep": [], "segments": [["op . tanh 1", "op . div 1"]]}
        found = left(recompute.apply(copy.deepcopy(plain), plan), batch())
        self.assertTrue(all(torch.equal(a, b) for a, b in zip(left(plain, batch()), found)))

    def test_a_graph_without_backward_is_let_go(self):
        """As of a step that is left out, or of results that no loss reads."""
        class Gate(nn.Module):
            def __init__(self):
                super().__init__()
                self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 8)

            def forward(self, x):
                return self.b(self.a(x).sigmoid()).sigmoid()

        for more in ({}, {"keep": ["op . sigmoid 1"]}, {"offload": "enter b 1"}):
            model = recompute.apply(Gate(), {"form": "operations", "keep": [], "segments": [["enter . 1", "enter b 1"]], **more})
            held = weakref.ref(model(batch().float()))
            gc.collect()
            self.assertIsNone(held(), more)
            self.assertFalse([x for x in gc.get_objects() if isinstance(x, recompute.Segment)], more)

    def test_copies_and_files(self):
        for name, plan in PLANS.items():
            model, file = network(plan), io.BytesIO()
            self.assertEqual(list(model.state_dict()), list(network().state_dict()))
            torch.save(model, file)
            file.seek(0)
            self.expect_same(name, copy.deepcopy(model))
            self.assertTrue(all(p.grad is None for p in model.parameters()))
            self.expect_same(name, torch.load(file, weights_only=False))

    def test_torch_compile(self):
        for name, plan in PLANS.items():
            plain, compiled = network().eval(), torch.compile(network(plan).eval(), backend="aot_eager")
            for a, b in zip(left(plain, batch()), left(compiled, batch())):
                self.assertTrue(torch.allclose(a, b, rtol=1e-12, atol=1e-15), name)

    def test_shards_and_replicas(self):
        import torch.multiprocessing
        if not torch.distributed.is_available():
            self.skipTest("this build of PyTorch has no torch.distributed")
        hidden = os.environ.get("CUDA_VISIBLE_DEVICES")
        os.environ["CUDA_VISIBLE_DEVICES"] = ""  # fully_shard would take a GPU that is there
        try:
            with tempfile.TemporaryDirectory() as folder:
                torch.multiprocessing.spawn(rank_of_two, args=(folder,), nprocs=2)
        finally:
            os.environ.pop("CUDA_VISIBLE_DEVICES") if hidden is None else os.environ.update(CUDA_VISIBLE_DEVICES=hidden)


if __name__ == "__main__":
    unittest.main()
