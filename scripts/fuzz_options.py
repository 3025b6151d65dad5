"""Options for scripts/fuzz-graphs: what the program offers to complete, with values that the program was seen to accept."""
import collections
import json
import pathlib
import re
import subprocess

import numpy
import onnx
from onnx import helper

NUMBERS = ["0", "1", "2", "3", "7", "10", "64", "256", "1000", "100000", "4294967295", "9223372036854775807"]
SIZES = ["1", "4096", "1MiB", "300MB", "16GiB", "80GB", "1TiB"]
SHAPED = {  # values whose form help gives in capitals
    "NAME=N": ["N=2", "batch=1", "batch=3", "sequence=7", "range#1=4", "unk__0=2", "d0=2", "M=1"],
    "NAME=MIN:OPT:MAX": ["batch=1:2:4", "N=1:1:8", "x=1x8:2x8:4x8", "sequence=1:64:512"],
    "INPUT=AxBxC": ["x=2x3", "x=1", "input=1x3x224x224", "x=1x3x8x8"],
    "NAME=V,V,...": ["x=1", "shape=2,3", "n=4", "x=@values.pb", "missing=@values.pb"],
    "OUTPUT=NAME": ["y=mse"],
    "NAME": ["batch", "N", "sequence"],
    "PATTERN": ["*", "*weight*", "/m.0*", "layer?", "fc"],
    "PERCENT": ["0", "1", "10", "99"],
}
OUTPUTS = {"svg", "memory-viz", "perfetto", "model-explorer", "onnx-out", "ort-partition"}
INPUTS = {"op-shapes": "rules.shapes", "baseline": "base.json", "shape-trace": "requests.csv", "snapshot": "late.pickle"}
# They end the program, read a device or choose what the run is about; genai and triton take a folder and no model.
LEFT_OUT = {"help", "version", "list-gpus", "jobs", "untrusted", "genai", "triton"}

Choice = collections.namedtuple("Choice", "option words needs")  # needs: choices that it was accepted with


def write_inputs(folder):
    """The files that options name, and a model to try options on."""
    shape = [helper.make_tensor_value_info("x", 1, ["batch", 8]), helper.make_tensor_value_info("y", 1, None)]
    weight = onnx.numpy_helper.from_array(numpy.zeros((8, 8), "float32"), "w")
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"], name="/fc/MatMul"), helper.make_node("Relu", ["h"], ["y"], name="/relu/Relu")]
    graph = helper.make_graph(nodes, "probe", shape[:1], shape[1:], [weight])
    for name in ("probe.onnx", "other.onnx"):
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), folder / name)
    (folder / "values.pb").write_bytes(onnx.numpy_helper.from_array(numpy.arange(3)).SerializeToString())
    (folder / "requests.csv").write_text("batch\n1\n4\n2\n4\n")
    (folder / "rules.shapes").write_text("Custom(x[a, b]) -> y[a, b]\n")
    (folder / "base.json").write_text(json.dumps({"models": [{
        "path": "probe.onnx", "bindings": {"batch": 2}, "parameters": {"bytes": 256}, "peak": {"bytes": 128},
        "runtimes": {"torch": {"total_bytes": 4096}}}]}))


def ask(program, folder, words, models=("probe.onnx",)):
    """The status of a run on the models to try options on, and its message."""
    done = subprocess.run([program, *words, *models], cwd=folder, capture_output=True, check=False, timeout=60)
    return done.returncode, done.stderr.decode(errors="replace")


def is_refused(status, message):
    """Whether the command line was, so that no model was looked at."""
    return status == 2 and "(see onnxvram --help)" in message


class Grammar:
    """What may be asked, learned from its help and from what the program refuses."""

    def __init__(self, program, folder, rng):
        self.program, self.folder, self.rng = program, folder, rng
        write_inputs(folder)
        self.options = {name: self.read_option(name) for name in self.completions("--") if name not in LEFT_OUT | {"replay"}}
        self.choices, self.used = {}, collections.Counter()
        for name in self.options:
            self.learn(name, 0)
        self.n_outputs = 0

    def said(self, *words):
        return subprocess.run([self.program, *words], capture_output=True, check=True, text=True).stdout

    def completions(self, *words):
        """What the last word may become; names of options without their dashes."""
        return [line.split("\t")[0].removeprefix("--") for line in self.said("complete", *words).splitlines()]

    def read_option(self, name):
        """Its value as help writes it, or None, and its help."""
        text = " ".join(self.said("help", f"--{name}").split("\n\n")[0].split())
        value, about = re.fullmatch(r"(?:-\w, )?--[a-z0-9-]+(\[=[^\]]*\]| [A-Z][^ ]*)?(?: (.*))?", text).groups("")
        return value.strip() or None, about

    def candidates(self, name):
        """Words that may be a value."""
        value, about = self.options[name]
        if value is None:
            return [None]
        bare = value.strip("[]=")
        if name in INPUTS:
            return [INPUTS[name]]
        if name == "plan-out":
            return ["{out}.json", "{out}.py"]
        if name in OUTPUTS or "FILE" in bare:
            return ["{out}"]
        found = [None] if value.startswith("[") else []
        found += SHAPED.get(bare, [])
        found += re.findall(r"[A-Za-z0-9][A-Za-z0-9.-]*", about)
        listed = self.completions(f"--{name}", "")
        numbers = {"limit": ("3", "5000", "100000000"),
                   "ort": ("0", "1", "all", "off", "kSameAsRequested", "HEURISTIC", "EXHAUSTIVE", "400000000")}
        found += [word + v for word in listed for v in (numbers.get(name, ("3",)) if word.endswith("=") else ("",))]
        found += NUMBERS + SIZES + ["0.5", "H100", "T4,16GiB", "none", "all", "text", "python", "c", "math", "flash", "host"]
        return list(dict.fromkeys(found))

    def learn(self, name, depth):
        """What the program accepts of an option, with the other options that it asks for."""
        if name in self.choices:
            return
        self.choices[name], doubtful = [], []
        for value in self.candidates(name):
            words = [f"--{name}"] if value is None else \
                [f"--{name}={value}"] if self.options[name][0].startswith("[") else [f"--{name}", value]
            needs, last = [], None
            for _ in range(5):
                tried = [w.replace("{out}", "dropped") for c in needs for w in c.words] + [w.replace("{out}", "dropped.2") for w in words]
                status, message = ask(self.program, self.folder, tried)
                if not is_refused(status, message):
                    last = Choice(name, words, tuple(needs))
                if status != 2:
                    self.choices[name].append(last)
                    last = None
                    break
                asked = [o for o in re.findall(r"--([a-z0-9-]+)", message)
                         if o in self.options and o != name and o not in {c.option for c in needs}
                         and not (o == "dim" and "batch" in {c.option for c in needs})]
                if not asked or depth > 2:
                    break
                self.learn(asked[0], depth + 1)
                if asked[0] == "dim":  # of any name
                    needs.append(Choice("batch", ["--batch", "2"], ()))
                    continue
                # Two may ask for each other: the one that is being learned takes a number.
                is_number = self.options[asked[0]][0] == "N" or not self.choices[asked[0]]
                best = [Choice(asked[0], [f"--{asked[0]}", "2"], ())] if is_number else \
                    sorted(self.choices[asked[0]], key=lambda c: (" ".join(c.words) not in message, len(c.needs)))
                needs.append(best[0])
            if last is not None:
                doubtful.append(last)
        self.choices[name] = self.choices[name] or doubtful  # models may take what the small one does not

    def draw(self):
        """Options that are accepted together, and whether for several models; the least used come first."""
        names = [n for n in self.choices if self.choices[n]]
        while True:
            wanted = sorted(names, key=lambda n: self.used[n] + self.rng.random() * 50)[:self.rng.choice([1, 2, 3, 4])]
            if self.rng.random() < 0.5:
                wanted += self.rng.sample(names, self.rng.choice([1, 2]))
            chosen = {}
            for name in wanted:
                choice = self.rng.choice(self.choices[name])
                for c in (*choice.needs, choice):
                    chosen.setdefault(c.option, c)
            if self.rng.random() < 0.1:
                chosen["untrusted"] = Choice("untrusted", ["--untrusted"], ())
            for _ in range(4):
                words = self.write(chosen.values())
                if not is_refused(*ask(self.program, self.folder, words)):
                    several = not is_refused(*ask(self.program, self.folder, words, ("probe.onnx", "other.onnx")))
                    return words, list(chosen), several
                if len(chosen) == 1:
                    break
                del chosen[self.rng.choice(list(chosen))]

    def write(self, choices):
        words = []
        for choice in choices:
            for word in choice.words:
                self.n_outputs += "{out}" in word
                words.append(word.replace("{out}", f"out.{self.n_outputs % 8}"))
        return words

    def count(self, names, n):
        self.used.update({name: n for name in names})


def clear(folder):
    for name in pathlib.Path(folder).glob("out.*"):
        name.unlink()
