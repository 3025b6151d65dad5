"""estimate(), from_torch() and onnxvram.hf, where PyTorch, onnxscript, transformers are installed. Run by tests/project/python.sh."""
import contextlib
import importlib.util
import io
import json
import os
import subprocess
import tempfile
import unittest
import warnings

import onnxvram

PROGRAM = os.path.join(os.environ["ONV_BUILD_DIR"], "onnxvram")
HAS = {name: importlib.util.find_spec(name) is not None for name in ("torch", "onnxscript", "transformers", "timm", "peft")}
if HAS["torch"]:
    import torch
    from torch import nn


def needs(*names):
    return unittest.skipUnless(all(HAS[name] for name in names), "needs " + " and ".join(names))


def program_says(path, *options):
    done = subprocess.run([PROGRAM, path, "--json", *options], capture_output=True, check=True)
    return json.loads(done.stdout)["models"][0]["answer"]


def tiny():
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 30 * 30, 10))


class EstimateTest(unittest.TestCase):
    def setUp(self):
        warnings.simplefilter("ignore")  # PyTorch's own

    def test_an_error_is_said_in_its_first_line(self):
        from onnxvram._estimate import cause
        self.assertEqual(cause(ValueError("\nno such size\n\nadvice")), "ValueError: no such size")

    @needs("torch")
    def test_as_the_program_says(self):
        """The same figures as the command line with the recording on a file."""
        networks = {"tiny": (tiny(), (torch.zeros(2, 3, 32, 32),))}
        if HAS["timm"]:
            import timm
            for name in ("resnet10t", "mobilenetv3_small_050", "vit_tiny_patch16_224", "convnext_atto"):
                with torch.device("meta"):
                    networks[name] = timm.create_model(name), (torch.empty(2, 3, 224, 224),)
        if HAS["transformers"]:
            import transformers
            tokens = (torch.zeros(2, 16, dtype=torch.int64),)
            small = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 100,
                     "num_key_value_heads": 4}
            for name in ("Bert", "Roberta", "Llama", "Mistral", "Qwen2"):
                with torch.device("meta"):
                    model = getattr(transformers, name + "Model")(getattr(transformers, name + "Config")(**small))
                networks[name] = model, tokens
        for name, (model, args) in networks.items():
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "a.program.json")
                onnxvram.record(model, args, path=path, dynamic_shapes=({0: "batch"},))
                ours = onnxvram.estimate(model, args, batch=8, train="adamw")
                self.assertEqual(ours.answer, program_says(path, "--batch=8", "--train=adamw"))
                ours = onnxvram.estimate(model, args)
                self.assertEqual(ours.answer["runtime"], "torch")

    @needs("torch")
    def test_options(self):
        args, model = (torch.empty(2, 3, 32, 32, device="meta"),), tiny()
        before = [p.data_ptr() for p in model.parameters()]
        largest = onnxvram.estimate(model, args, train="sgd", max_batch=True, budget="T4").max_batch
        self.assertGreater(largest, 1000)
        self.assertEqual((largest.runtime, largest.gpu), ("train", "T4"))
        self.assertEqual([p.data_ptr() for p in model.parameters()], before)
        lines = []
        onnxvram.estimate(model, args, progress=lines.append)
        self.assertTrue(lines)
        with self.assertRaisesRegex(onnxvram.UsageError, "write \\(x,\\)"):
            onnxvram.estimate(model, args[0])
        with self.assertRaisesRegex(onnxvram.UsageError, "no argument of the network is a tensor"):
            onnxvram.estimate(nn.Identity(), (3,), batch=2)

    @needs("torch")
    def test_what_cannot_be_recorded(self):
        class Looks(nn.Module):
            def forward(self, x):
                return x if x.sum().item() > 0 else -x
        with self.assertRaisesRegex(onnxvram.RecordingError, "needs the value of a tensor"):
            onnxvram.estimate(Looks(), (torch.zeros(2, 3),))

    @needs("torch", "onnxscript")
    def test_from_torch(self):
        with torch.device("meta"):
            model = tiny()
        made = onnxvram.from_torch(model, (torch.empty(2, 3, 32, 32, device="meta"),), batch=8)
        self.assertEqual([row["runtime"] for row in made.answer["runtimes"]], ["torch", "ort"])
        alone = onnxvram.estimate(model, (torch.empty(2, 3, 32, 32, device="meta"),), batch=8)
        self.assertEqual(made.runtimes["torch"]["total_bytes"], alone.runtimes["torch"]["total_bytes"])
        self.assertTrue(next(model.parameters()).is_meta)

        class Refused(nn.Module):
            def forward(self, x):
                return torch.linalg.eigvals(x)
        with self.assertRaisesRegex(onnxvram.UsageError, "cannot export Refused: .*; estimate\\(\\) answers"):
            onnxvram.from_torch(Refused(), (torch.zeros(3, 3),))


class HubTest(unittest.TestCase):
    def answer(self, *words):
        from onnxvram import hf
        out = io.StringIO()
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(out), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            path = os.path.join(folder, "a.json")
            status = hf.main([*words, "--program", PROGRAM, "-q", f"--json={path}"])
            if status not in (0, 3):
                return status, out.getvalue()
            with open(path, encoding="utf-8") as file:
                return status, json.load(file)["models"][0]

    def test_counts_are_at_least_one(self):
        from onnxvram import hf
        for word in ("0", "-1", "two"):
            with self.subTest(word), contextlib.redirect_stderr(io.StringIO()) as said, self.assertRaises(SystemExit):
                hf.parser().parse_args(["folder", f"--sequence={word}"])
            self.assertIn(f"expected a number of at least 1, found '{word}'", said.getvalue())

    @needs("torch", "transformers")
    def test_configs(self):
        import transformers
        small = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 100,
                 "num_key_value_heads": 4, "head_dim": 16}
        heads = {"Bert": "ForSequenceClassification", "Roberta": "ForTokenClassification", "Llama": "ForCausalLM",
                 "Mistral": "ForCausalLM", "Qwen2": "ForCausalLM", "Gemma": "ForCausalLM", "ViT": "ForImageClassification",
                 "Electra": "ForMaskedLM", "DistilBert": "ForQuestionAnswering", "T5": "ForConditionalGeneration",
                 "Albert": "ForMaskedLM", "ResNet": "ForImageClassification"}
        own = {"DistilBert": {"dim": 64, "n_layers": 2, "n_heads": 4, "hidden_dim": 128}, "ResNet": {},
               "Albert": {"embedding_size": 32, **small},
               "T5": {"d_model": 64, "num_layers": 2, "num_heads": 4, "d_kv": 16, "d_ff": 128}}
        for name, head in heads.items():
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                config = getattr(transformers, name + "Config")(**own.get(name, small))
                config.architectures = [name + head]
                config.save_pretrained(folder)
                status, model = self.answer(folder, "--sequence=32", "--train=adamw", "--budget=RTX 4090")
                self.assertEqual(status, 0, model)
                self.assertEqual(model["answer"]["runtime"], "train")
                with torch.device("meta"):
                    made = getattr(transformers, name + head)(config)
                self.assertEqual(model["parameters"]["count"] >= sum(p.numel() for p in made.parameters()), True)

    @needs("torch", "transformers", "peft", "onnxscript")
    def test_adapters(self):
        import transformers
        with tempfile.TemporaryDirectory() as folder:
            config = transformers.LlamaConfig(num_hidden_layers=2, hidden_size=1024, intermediate_size=2048, vocab_size=100, num_attention_heads=8)
            config.architectures = ["LlamaForCausalLM"]
            config.save_pretrained(folder)
            _, whole = self.answer(folder, "--sequence=32", "--train=adamw")
            status, model = self.answer(folder, "--sequence=32", "--train=adamw", "--lora=8")
            self.assertEqual(status, 0, model)
            self.assertLess(model["training"]["gradient_bytes"], whole["training"]["gradient_bytes"] / 2)
            status, packed = self.answer(folder, "--sequence=32", "--train=adamw", "--lora=8", "--weights=nf4")
            self.assertEqual(status, 0, packed)
            self.assertLess(packed["answer"]["low_bytes"], model["answer"]["low_bytes"])

    @needs("torch", "transformers")
    def test_mistakes(self):
        with tempfile.TemporaryDirectory() as folder:
            status, text = self.answer(folder)
            self.assertEqual(status, 2)
            self.assertIn("expected a folder with config.json, or an id", text)


if __name__ == "__main__":
    unittest.main()
