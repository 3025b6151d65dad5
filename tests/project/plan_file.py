"""Called by plan_file.sh with the program and the folder of samples."""
import ast
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

program, samples = sys.argv.pop(1), pathlib.Path(sys.argv.pop(1))
BORDER = re.compile(r"(enter|leave) [\w.-]+ [1-9]\d*|op [\w.-]+ [a-z_]+ [1-9]\d*")
FIGURES = ("id", "peak_bytes", "reserved_peak_bytes", "recompute_macs", "saved_activation_bytes", "apply")
RESNET = ("resnet18-train", "--batch", "4")
MEASURED = (("gpt2", "modules=*h.*/2", 2929864), ("gpt2", "save=product+attention", 2489032), ("gpt2", "reentrant", 2441160),
            ("vit", "blocks", 1841328), ("vit", "reentrant", 1876144))
MLP = {"form": "operations", "segments": [["enter . 1", "leave . 1"]], "keep": []}


def run(sample, *options):
    file = sample if isinstance(sample, pathlib.Path) else samples / f"{sample}.onnx"
    return subprocess.run([program, file, "--train", "momentum", *options], capture_output=True, text=True)


def training(sample, *options):
    ran = run(sample, "--json", *options)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)["models"][0]["training"]


class PlanFiles(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def written(self, apply, name="optimal", **other):
        file = self.folder / "written.json"
        file.write_text(json.dumps({"plan_version": 1, "name": name, "apply": apply, **other}))
        return file

    def check_places(self, apply):
        places = [place for pair in apply.get("segments", []) for place in pair] + apply.get("keep", [])
        self.assertTrue(all(BORDER.fullmatch(place) for place in places + [apply[k] for k in ("offload",) if k in apply]), apply)
        return len(places) // 2 + len(apply.get("modules", []))

    def test_plans_are_read_back_with_the_same_figures(self):
        for least, sample, checkpoint, *options in (
                (10, "resnet18-train", "all", "--batch", "16"), (20, "mobilenet_v2-train", "blocks,optimal", "--batch", "16"),
                (8, "vit-small-train", "all", "--batch", "16"), (10, "bert-dynamo", "all", "-b2", "-dsequence=32"),
                (30, "unet-train", "sqrt,optimal", "--batch", "16", "--dim", "height=64", "--dim", "width=64"),
                (50, "vit-small-train", "offload,joint", "--batch", "16"), (100, "densenet201", "optimal", "--batch", "8"),
                (22, "resnet18-train", "modules=layer[12].*/2,modules=layer?,save=convolution,save=convolution+relu,reentrant", "--batch", "16"),
                (10, "bert-dynamo", "modules=*.layer.*/2,save=product,reentrant", "-b2", "-dsequence=32"), (1, "resnet18-train", "optimal", "--batch", "16", "--compile")):
            plans, n_places = training(sample, *options, "--checkpoint", checkpoint)["plans"], 0
            self.assertEqual(len({plan["id"] for plan in plans}), len({json.dumps(plan["apply"]) for plan in plans}))
            for plan in plans:
                n_places += self.check_places(plan["apply"])
            for plan in plans[::max(1, len(plans) // 6)]:
                with self.subTest(sample=sample, name=plan["name"], id=plan["id"]):
                    again = training(sample, *options, "--plan", self.written(plan["apply"], plan["name"]))
                    self.assertEqual([again["plans"][0][key] for key in FIGURES], [plan[key] for key in FIGURES])
                    self.assertEqual(again["reserved_peak_bytes"], plan["reserved_peak_bytes"])  # it is the chosen one
            self.assertGreaterEqual(n_places, least, sample)
            self.assertEqual(any(plan["apply"]["form"] == "compile" for plan in plans), "--compile" in options)

    def test_a_step_takes_what_pytorch_took(self):
        """Tensors at the peak, measured with the CUDA build of PyTorch 2.15 over a substitute for the driver."""
        for network, checkpoint, measured in MEASURED:
            with self.subTest(network=network, checkpoint=checkpoint):
                plan, = training(samples.parent / f"tests/truth/programs/{network}.recording.json.gz", "-b4", "--checkpoint", checkpoint)["plans"]
                self.assertLess(abs(plan["peak_bytes"] / measured - 1), 0.001)

    def test_what_an_inner_segment_keeps_stays_for_it(self):
        """A product of an outer one keeps its operand, which is the result that the inner one keeps."""
        bert = samples.parent / "tests/truth/programs/bert.recording.json.gz"
        plans = training(bert, "-b4", "--checkpoint", "optimal")["plans"]
        self.assertTrue(any(" attention " in kept for plan in plans for kept in plan["apply"]["keep"]))

    def test_a_plan_is_priced_at_another_batch(self):
        file = self.folder / "plan.json"
        small = training(*RESNET, "--checkpoint", "optimal@1%", "--plan-out", file)["plans"][0]
        large = training("resnet18-train", "--batch", "8", "--plan", file)["plans"][0]
        self.assertEqual(large["id"], small["id"])
        self.assertGreater(large["peak_bytes"], small["peak_bytes"])

    def test_python_has_the_same_plan(self):
        for which in ("blocks", "optimal@1%", "offload"):
            module, data = self.folder / "plan.py", self.folder / "plan.json"
            plan = training(*RESNET, "--checkpoint", which, "--plan-out", module)["plans"][0]
            self.assertEqual(run(*RESNET, "--checkpoint", which, "--plan-out", data).returncode, 0)
            tree = ast.parse(module.read_text())
            self.assertEqual(ast.literal_eval(tree.body[1].value), plan["apply"])
            self.assertEqual(json.loads(data.read_text())["apply"], plan["apply"])
            self.assertLess(len(module.read_text().splitlines()), 60)

    def test_one_of_a_list_is_taken(self):
        plans = training(*RESNET, "--checkpoint", "all")["plans"]
        knee = [plan for plan in plans if plan.get("knee")]
        self.assertEqual(len(knee), 1)
        run(*RESNET, "--checkpoint", "all", "--plan-out", self.folder / "knee.json")
        self.assertEqual(json.loads((self.folder / "knee.json").read_text())["id"], knee[0]["id"])
        cheap = [plan for plan in plans if plan["overhead"] <= 0.03]
        for which, wanted in ((plans[-1]["id"], plans[-1]), (f"optimal@{plans[-1]['id']}", plans[-1]),
                              ("all@3%", min(cheap, key=lambda p: (p["reserved_peak_bytes"], p["recompute_macs"]))),
                              ("all@64GiB", min(plans, key=lambda p: (p["recompute_macs"], p["reserved_peak_bytes"])))):
            with self.subTest(which=which):
                taken = training(*RESNET, "--checkpoint", which)["plans"]
                self.assertEqual([plan["id"] for plan in taken], [wanted["id"]])
        for which, message in (("all@ffffffff", "is ffffffff"), ("sqrt@1%", "costs at most 1%"), ("all@1MiB", "fits into 1MiB"),
                               ("all@", "found ''"), ("all@7", "found '7'"), ("all@2B", "found '2B'"), ("all@x%", "found 'x%'"), ("none@-1%", "found '-1%'")):
            ran = run(*RESNET, "--checkpoint", which)
            self.assertIn(message, ran.stderr)
            self.assertIn(ran.returncode, (1, 2))

    def test_what_is_no_plan_of_the_network_is_refused(self):
        two = [["enter layer1 1", "enter layer2 1"], ["enter layer1.1 1", "enter layer3 1"]]
        deep = [[f"op . add {i}", f"op . add {i + 1}"] for i in range(2000)]
        for message, apply in (
                ("no 'enter layer9 1', 'op . add 9', which", {**MLP, "segments": [["enter layer9 1", "op . add 9"]]}),
                ("no 'leave . 1'", {**MLP, "keep": ["leave . 1"]}), ("and more", {**MLP, "segments": deep}),
                ("ends where that is not possible", {**MLP, "segments": two}),
                ("ends where that is not possible", {**MLP, "segments": [["leave . 1", "enter . 1"]]}),
                ("ends where that is not possible", {**MLP, "segments": MLP["segments"] * 9}),
                ("is not a row of whole modules", {"form": "modules", "modules": ["layer1.0 layer2.1"]}),
                ("no 'layer9'", {"form": "modules", "modules": ["layer1.0", "layer9"]}),
                ("found 'conv'", {"form": "modules", "modules": ["layer1.0"], "save": "conv"}),
                ("without apply.save", {"form": "modules", "modules": ["layer1.0"], "save": "relu", "checkpoint": "reentrant"}),
                ("module 1 of the plan has a gradient", {"form": "modules", "modules": ["conv1"], "checkpoint": "reentrant"}),
                ("not an nn.Sequential", {"form": "sequential", "count": 2}), ("from 1 to 1048576", {"form": "sequential", "count": 0}),
                ("add --compile", {"form": "compile", "memory_budget": 0.5}), ("from 0 to 1", {"form": "compile", "memory_budget": 2}),
                ("found 'rows'", {"form": "rows"}), ("expected text, found nothing", {}), ("expected a list", {"form": "modules"}),
                ("where they begin and end", {**MLP, "segments": [["enter . 1"]]}), ("expected text", {**MLP, "keep": [1]})):
            with self.subTest(message=message):
                ran = run(*RESNET, "--plan", self.written(apply))
                self.assertIn(message, ran.stderr)
                self.assertIn(ran.returncode, (1, 2))
        for message, text in (("no plan.json: ", "{"), ("expected plan_version", "{}"), ("expected a JSON object", "[]"), ("nested", "[" * 9000),
                              ("expected 1, found 2", '{"plan_version": 2}'), ("bytes", " " * (5 << 20))):
            file = self.folder / "no plan.json"
            file.write_text(text)
            ran = run(*RESNET, "--plan", file)
            self.assertIn(message, ran.stderr)
            self.assertEqual(ran.returncode, 1)

    def test_plans_that_shards_refuse_are_named(self):
        for which, n in (("blocks", 0), ("optimal", 1), ("sqrt", 1)):
            ran = run("vit-small-train", "-b4", "--fsdp", "--world", "2", "--checkpoint", which)
            self.assertEqual(("fsdp-plans" in ran.stdout), n > 0, which)

    def test_outputs_that_cannot_be(self):
        file = self.written(MLP)
        for message, *options in (("is the same file and is read", "--plan", file, "--plan-out", file),
                                  ("named .py or .json, found 'plan.txt'", "--checkpoint", "all", "--plan-out", "plan.txt")):
            ran = run(*RESNET, *options)
            self.assertIn(message, ran.stderr)
            self.assertEqual(ran.returncode, 2)


if __name__ == "__main__":
    unittest.main()
