"""Called by recompute.sh with the program and recompute.py: the plan that a file has for `segments=K` of an nn.Sequential, on networks
of a few numbers (small_torch.py), gives the same results and gradients as without, and holds as much less as the plan says.
"""

import gc
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest

import small_torch as t

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "web"))
import onnx_bytes as onnx  # noqa: E402

t.install()
program, code = sys.argv.pop(1), {}
exec(compile(open(sys.argv.pop(1)).read(), "recompute.py", "exec"), code)
N, BYTES = 8, 4


class Product(t.Module):
    def __init__(self, source):
        super().__init__()
        self.w = t.parameter([source.uniform(-1.5, 2) for _ in range(N)])

    def forward(self, x):
        return t.mm(x, self.w)


def network(n):
    return t.Sequential(*(Product(random.Random(i)) for i in range(n)))


def exported(n):
    """The same as a file: products of one row."""
    names = ["x"] + [f"y{i}" for i in range(n)]
    return onnx.model([onnx.value(11, "x", [1, N]), onnx.value(12, names[-1], [1, N])] + [
        part for i in range(n) for part in (
            onnx.weight(f"{i}.weight", [N, N]),
            onnx.node("MatMul", [names[i], f"{i}.weight"], [names[i + 1]], f"/{i}/MatMul"))])


def plan_of(n, count):
    """The plan, and by how much less is kept than without the plan."""
    with tempfile.TemporaryDirectory() as folder:
        model, plans = os.path.join(folder, "model.onnx"), os.path.join(folder, "plan.json")
        pathlib.Path(model).write_bytes(exported(n))

        def kept(plan, *more):
            run = subprocess.run([program, model, "--train", "sgd", "--loss", "none", "--checkpoint", plan, "--json", *more],
                                 check=True, capture_output=True, text=True)
            return json.loads(run.stdout)["models"][0]["training"]["saved_activation_bytes"]

        less = kept("none") - kept(f"segments={count}", "--plan-out", plans)
        return json.loads(pathlib.Path(plans).read_text())["apply"], less


class Pass:
    def __init__(self, n, plan=None):
        gc.collect()  # of the passes before
        model, x = network(n), t.Tensor([float(i) - 3 for i in range(N)])
        if plan is not None:
            code["apply"](model, plan)
        before, runs = t.Memory.live, t.Operation.runs
        out = model(x)
        self.held = t.Memory.live - before
        t.backward(out)
        self.runs = t.Operation.runs - runs
        self.left = [out.values()] + [p.grad for p in model.parameters()]


class Sequential(unittest.TestCase):
    def test_it_does_what_the_plan_says(self):
        for n, count in ((5, 2), (5, 3), (5, 5), (6, 2), (6, 3), (7, 3)):
            with self.subTest(n=n, count=count):
                plan, less = plan_of(n, count)
                self.assertEqual(plan, {"form": "sequential", "count": count})
                plain, planned = Pass(n), Pass(n, plan)
                self.assertEqual(planned.left, plain.left)
                self.assertEqual((plain.held - planned.held) * BYTES, less)
                self.assertEqual(planned.runs - plain.runs, n // count * (count - 1))

    def test_it_holds_less(self):
        self.assertGreater(plan_of(6, 3)[1], 0)
        self.assertEqual(plan_of(7, 1)[1], 0)  # one part, the last one: it keeps everything


if __name__ == "__main__":
    unittest.main()
