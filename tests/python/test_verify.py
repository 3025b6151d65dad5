"""onnxvram.verify: what it says of runs. A stand-in for a run has the snapshot that PyTorch wrote of a small network; where a Python with
PyTorch's CUDA build and a driver is named (ONV_TEST_CUDA_PYTHON), the runs are real. Run by tests/project/python.sh."""
import contextlib
import io
import json
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

from onnxvram import _runs, verify

SOURCE, BUILD = os.environ["ONV_SOURCE_DIR"], os.environ["ONV_BUILD_DIR"]
PROGRAM = os.path.join(BUILD, "onnxvram")
TINY = os.path.join(SOURCE, "tests/measured/tiny.onnx")
SNAPSHOT = os.path.join(SOURCE, "tests/fuzz/corpus/snapshot/late.pickle")
GPU = {"gpu": "NVIDIA H100 80GB HBM3", "compute_capability": "9.0", "driver": "13.2"}
TRAIN = ["-b", "8", "--train", "adamw", "--torch", "nets:tiny", "--inplace=none"]


class Fake:
    """A run that has happened: its figures, and a snapshot whose events `bend` may change."""

    def __init__(self, bend=None, **figures):
        self.bend = bend
        self.figures = {"allocated_bytes": 48638976, "reserved_bytes": 56623104, "beside_bytes": None, **figures}
        self.tasks = []

    def __call__(self, what, task):
        self.tasks.append((what, task))
        if what == "onnxruntime":
            return {"session_bytes": self.figures["session_bytes"], "beside_bytes": None, "versions": {"onnxruntime": "1.31.1"}}
        with open(SNAPSHOT, "rb") as file:
            snapshot = pickle.load(file)
        if self.bend is not None:
            self.bend(snapshot["device_traces"][0])
        with open(task["snapshot"], "wb") as file:
            pickle.dump(snapshot, file)
        return {**self.figures, "versions": {"torch": "2.15.0"}}


class Verify(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.output = os.path.join(folder.name, "found.json")
        self.folder = folder.name

    def verify(self, *arguments, runner, status):
        said, wrong = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(wrong):
            got = verify.main(["--program", PROGRAM, "-o", self.output, TINY, *arguments], runner, GPU)
        self.assertEqual(got, status, said.getvalue() + wrong.getvalue())
        return said.getvalue() + wrong.getvalue()

    def found(self):
        with open(self.output) as file:
            return json.load(file)

    def test_figures_agree(self):
        runner = Fake(beside_bytes=400 << 20)
        said = self.verify(*TRAIN, runner=runner, status=0)
        self.assertNotIn("parts at", said)
        row = self.found()
        measured = {figure["what"]: figure for figure in row["figures"]}
        self.assertEqual(measured["allocated"]["low_bytes"], measured["allocated"]["measured_bytes"])
        self.assertEqual(measured["tensors at the peak"]["measured_bytes"], 48633600 - (32 << 20))
        self.assertEqual(measured["context and handles"]["measured_bytes"], 400 << 20)
        (what, task), = runner.tasks
        self.assertEqual((what, task["function"], task["train"], task["loss"], task["batch"]),
                         ("torch", "nets:tiny", "adamw", "cross-entropy", 8))

    def test_what_is_published_names_nothing(self):
        self.verify(*TRAIN, runner=Fake(), status=0)
        with open(self.output) as file:
            text = file.read()
        with open(os.path.splitext(self.output)[0] + ".md") as file:
            text += file.read()
        for word in ("tiny", "nets", "/a/Conv", "Gemm", self.folder):
            self.assertNotIn(word, text)
        self.assertIn("| train | allocated | 46.4 MiB | 46.4 MiB |", text)
        self.assertIsNone(self.found()["network"])
        self.verify(*TRAIN, "--name", "a small network", runner=Fake(), status=0)
        self.assertEqual(self.found()["network"], "a small network")

    def test_a_wrong_size_is_found_at_its_step(self):
        def bend(trace):
            second = [event for event in trace if event["action"] == "alloc"][1]
            second["size"] *= 3
        said = self.verify(*TRAIN, runner=Fake(bend, allocated_bytes=52833280), status=4)
        self.assertIn("parts at step 17, forward of relu /Relu: predicted 2.0 MiB, measured 6.0 MiB at forward train.py:11", said)
        parting, = self.found()["parts_at"]
        self.assertEqual((parting["step"], parting["operation"], parting["measured_bytes"]), (17, "forward of relu", 6 << 20))

    def test_a_wrong_prediction_is_found_at_its_step(self):
        said = self.verify(*TRAIN[:-1], runner=Fake(), status=0)  # ReLUs overwrite their input, by the prediction
        self.assertIn("parts at step 16, forward of conv /a/Conv: predicted 0 B, measured 2.0 MiB", said)

    def test_a_longer_lifetime_is_found_at_its_step(self):
        def bend(trace):
            trace[44:51] = trace[46:51] + trace[44:46]
        said = self.verify(*TRAIN, runner=Fake(bend), status=0)
        self.assertIn("parts at step 17, forward of relu /Relu: 2.0 MiB are freed before backward of conv /a/Conv by the prediction",
                      said)

    def test_outside_of_the_range(self):
        self.assertIn("(outside)", self.verify(*TRAIN, runner=Fake(reserved_bytes=77594624), status=4))
        low = self.verify("-b", "8", "--runtime", "ort", runner=Fake(session_bytes=[0, 0, 0, 147849216]), status=0)
        self.assertIn("session, with handles", low)
        self.verify("-b", "8", "--runtime", "ort", runner=Fake(session_bytes=[0, 0, 0, 1 << 30]), status=4)

    def test_mistakes(self):
        for arguments, message in (
                (["--ddp"], "option '--ddp' is unknown, or no run here follows it"), (["-b"], "'--batch' needs a value"),
                (["--runtime", "ideal"], "--runtime takes torch and ort, not 'ideal'"),
                (["--train", "adamw"], "add --torch MODULE:FUNCTION"),
                (["--train", "adamw", "--runtime", "ort"], "ONNX Runtime does not train"),
                (["--runtime", "ort"], "input 'x' has no size: bind its dimensions"),
                (["--train", "adamv", "--torch", "a:b"], "did you mean 'adam'?")):
            self.assertIn(message, self.verify(*arguments, runner=Fake(), status=2))

    @unittest.skipIf(shutil.which("nvidia-smi") or "ONV_TEST_CUDA_PYTHON" in os.environ, "there may be a GPU")
    def test_without_a_gpu(self):
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            self.assertEqual(verify.main(["--program", PROGRAM, TINY, *TRAIN]), 2)
        self.assertIn("verify needs a GPU: the CUDA driver", said.getvalue())


class Nvml:
    """A library with one GPU."""

    def __getattr__(self, name):
        def call(*args):
            if name == "nvmlDeviceGetCount_v2":
                args[0]._obj.value = 1
            elif name == "nvmlDeviceGetMemoryInfo":
                args[1]._obj.used = 5 << 30
            elif name == "nvmlDeviceGetUUID":
                args[1].value = b"GPU-00112233-4455-6677-8899-aabbccddeeff"
            return 0
        return call


class Devices(unittest.TestCase):
    def test_nvml(self):
        with unittest.mock.patch("ctypes.CDLL", return_value=Nvml()):
            self.assertEqual(_runs.nvml_used(), {"00112233445566778899aabbccddeeff": 5 << 30})
        for missing in (OSError("no such library"), AttributeError("an old one")):
            with unittest.mock.patch("ctypes.CDLL", side_effect=missing):
                self.assertEqual(_runs.nvml_used(), {})

    def test_the_gpu_that_is_here_is_named(self):
        for gpu, named in (({"gpu": "NVIDIA H100 80GB HBM3", "compute_capability": "9.0"}, "H100"),
                           ({"gpu": "NVIDIA L4", "compute_capability": "8.9"}, "L4"), ({"gpu": "X", "compute_capability": "1.0"}, None)):
            pairs = []
            verify.add_gpu(PROGRAM, pairs, gpu)
            self.assertEqual(pairs, [("--gpu", named)] if named else [])
        pairs = [("--gpu", "T4")]
        verify.add_gpu(PROGRAM, pairs, GPU)
        self.assertEqual(pairs, [("--gpu", "T4")])


NETWORK = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Conv2d(3, 16, 3, padding=1)
        self.b = nn.Linear(16 * 64 * 64, 10)
    def forward(self, x):
        return self.b(torch.relu(self.a(x)).flatten(1))

def tiny(batch):
    return Net(), (torch.randn(batch, 3, 64, 64),)
"""


@unittest.skipUnless("ONV_TEST_CUDA_PYTHON" in os.environ, "no Python with PyTorch's CUDA build and a driver is named")
class Real(unittest.TestCase):
    """On a GPU, or whatever driver the library path has."""

    def run_in(self, *arguments, status):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "nets.py"), "w") as file:
                file.write(NETWORK)
            shutil.copy(TINY, folder)
            with open(os.path.join(folder, "tiny.bin"), "wb") as file:
                file.truncate(16 << 20)
            ran = subprocess.run([os.environ["ONV_TEST_CUDA_PYTHON"], verify.__file__, "--program", PROGRAM, "tiny.onnx", *arguments],
                                 cwd=folder, capture_output=True, text=True)
            self.assertEqual(ran.returncode, status, ran.stdout + ran.stderr)
            with open(os.path.join(folder, "onnxvram-verify.json")) as file:
                return {(f["runtime"], f["what"]): f for f in json.load(file)["figures"]}

    def test_training(self):
        for more in ([], ["--accumulate", "3"]):
            figures = self.run_in(*TRAIN, *more, status=0)
            for what in ("allocated", "reserved"):
                figure = figures["train", what]
                self.assertAlmostEqual(figure["low_bytes"], figure["measured_bytes"], delta=1024)  # scalars

    def test_inference(self):
        figures = self.run_in("-b", "8", "--torch", "nets:tiny", "--inplace=none", status=0)
        self.assertFalse(figures["torch", "allocated"]["is_outside"])
        self.assertFalse(figures["ort", "session, with handles"]["is_outside"])


if __name__ == "__main__":
    sys.exit(unittest.main())
