"""Ten questions that people ask of a page, answered in a browser by keyboard alone: Tab reaches the question by its accessible name, Enter
leads to the answer, and the answer is what the JSON report says. What is copied and what is chosen is found in the same way.

usage: questions.py PROGRAM SAMPLES SCRATCH CHROMIUM
"""
import json
import pathlib
import shlex
import subprocess
import sys

from playwright.sync_api import sync_playwright

import onnx_bytes

TRACE = 'File "/home/me/net/model.py", line 213, in forward\n    return torch.relu(x)\n'


def pages(program, folder, scratch):
    """A page of training with plans, one of two models, one of a file that notes lines of Python."""
    traced = scratch / "traced.onnx"
    traced.write_bytes(onnx_bytes.model([
        onnx_bytes.value(11, "input", [64, 64]),
        onnx_bytes.node("Relu", ["input"], ["out"], "/act/Relu", {"pkg.torch.onnx.stack_trace": TRACE, "namespace": ": M/act: ReLU/relu: aten.relu.default",
                                                                  "pkg.torch.onnx.class_hierarchy": "['M', 'ReLU', 'aten.relu.default']",
                                                                  "pkg.torch.onnx.name_scopes": "['', 'act', 'relu']"}),
        onnx_bytes.value(12, "out", [64, 64])]))
    made = {}
    for name, words in {
        "train": [folder / "resnet18-train.onnx", "--batch", "8", "--train", "sgd", "--checkpoint", "sqrt,blocks", "--budget", "T4", "--max-batch"],
        "tight": [folder / "resnet50.onnx", "--batch", "256", "--budget", "2GiB"],
        "two": [folder / "resnet18.onnx", folder / "resnet50.onnx", "--batch", "2"],
        "traced": [traced],
    }.items():
        html, data = scratch / f"{name}.html", scratch / f"{name}.json"
        subprocess.run([program, *words, f"--html={html}", f"--json={data}"], check=False, capture_output=True)
        made[name] = html, json.loads(data.read_text())
    return made


class Reader:
    """Someone who has a keyboard alone."""

    def __init__(self, context, html):
        self.page = context.new_page()
        self.problems = []
        self.page.on("pageerror", lambda e: self.problems.append(str(e)))
        self.page.goto(html.as_uri())
        self.page.wait_for_selector("#tensors .row")

    def focused(self):
        """The accessible name of what has the focus: its label, or else its text."""
        return self.page.evaluate("document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent")

    def tab_to(self, name, most=400):
        for _ in range(most):
            self.page.keyboard.press("Tab")
            if self.focused() == name:
                return
        raise AssertionError(f"no Tab reaches '{name}'")

    def ask(self, question):
        """The text of what the question leads to, which has the focus then."""
        self.page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
        self.page.keyboard.press("Control+Home")
        self.page.goto(self.page.url.split("#")[0] + "#")
        self.tab_to(question)
        self.page.keyboard.press("Enter")
        self.page.wait_for_timeout(50)
        assert self.page.evaluate("document.activeElement.tabIndex === -1 && document.activeElement !== document.body"), question
        return self.page.evaluate("document.activeElement.innerText")

    def close(self):
        assert not self.problems, self.problems
        self.page.close()


def gib(size):
    return f"{size / 2**30:.2f}"


def questions_of_one(context, made):
    html, report = made["tight"]
    answer = report["models"][0]["answer"]
    reader = Reader(context, html)
    number = reader.ask("Which number counts?")
    judged = answer["runtimes"][0]
    assert f"{gib(judged['low_bytes'])}–{gib(judged['high_bytes'])} GiB" in number, number
    assert judged["set_by"][:30] in reader.ask("Why that much?")
    assert "does not fit" in reader.ask("Does it fit?") and answer["fits"] is False
    remedies = reader.ask("What makes it fit?")
    assert answer["remedies"] and all(r["option"] in remedies for r in answer["remedies"]), remedies
    assert "--max-batch" in reader.ask("Which batch?")
    assert "--checkpoint" in reader.ask("Which plan?")
    assert "onnxvram diff" in reader.ask("What changed?")
    reader.close()


def plans(context, made, program):
    html, report = made["train"]
    model = report["models"][0]
    reader = Reader(context, html)
    found = reader.ask("Which batch?")
    most = model["answer"]["devices"][0]["runtimes"][0]["max_batch"]
    assert f"train {most:,}" in found, found
    text = reader.ask("Which plan?")
    for plan in model["training"]["plans"]:
        assert plan["name"] in text and plan["id"] in text, text
    last = model["training"]["plans"][-1]
    reader.tab_to(f"{last['name']} {last['id']}: " + reader.page.get_attribute("circle.plan >> nth=-1", "aria-label").split(": ", 1)[1])
    reader.page.keyboard.press("Enter")
    reader.page.wait_for_timeout(200)
    assert reader.page.evaluate("page.state.execution.plan") == len(model["training"]["plans"]) - 1
    copied = []
    for what in "plan", "command":
        reader.tab_to(f"copy {what}")
        reader.page.keyboard.press("Enter")
        copied.append(reader.page.evaluate("navigator.clipboard.readText()"))
    first = model["training"]["plans"][0]
    assert json.loads(copied[0])["apply"] == first["apply"] and json.loads(copied[0])["id"] == first["id"]
    words = shlex.split(copied[1])
    assert words[0] == "onnxvram" and f"sqrt,blocks@{first['id']}" in words, words
    again = json.loads(subprocess.run([program, *(w for w in words[1:] if not w.startswith("--json")), "--json"], check=False,
                                      capture_output=True, text=True).stdout)
    chosen = [p for p in again["models"][0]["training"]["plans"] if p.get("chosen")]
    assert [p["id"] for p in chosen] == [first["id"]]
    reader.close()


def lines(context, made):
    html, report = made["traced"]
    assert report["models"][0]["nodes"][0]["line"] == "net/model.py:213"
    reader = Reader(context, html)
    peak = reader.ask("Which tensor makes the peak?")
    assert "input" in peak and "out" in peak, peak
    assert "net/model.py:213" in reader.ask("Which line of Python?")
    reader.tab_to("out")
    reader.page.keyboard.press("Enter")
    reader.page.wait_for_timeout(200)
    assert "/act/Relu" in reader.page.inner_text(".details") and "net/model.py:213" in reader.page.inner_text(".details")
    reader.close()


def two(context, made):
    html, report = made["two"]
    before, after = (m["runtimes"]["torch"]["total_bytes"] for m in report["models"])
    reader = Reader(context, html)
    assert reader.ask("How do two models compare?").count("resnet50.onnx") >= 2
    change = reader.ask("What changed?")
    assert f"+{(after - before) / 2**20:.1f} MiB (+{100 * (after - before) / before:.1f}%)" in change, change
    reader.close()


def main():
    program, folder, scratch, chromium = sys.argv[1], pathlib.Path(sys.argv[2]).resolve(), pathlib.Path(sys.argv[3]), sys.argv[4]
    made = pages(program, folder, scratch)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--headless"])
        context = browser.new_context(viewport={"width": 1400, "height": 1000}, permissions=["clipboard-read", "clipboard-write"])
        questions_of_one(context, made)
        plans(context, made, program)
        lines(context, made)
        two(context, made)
        browser.close()
    print("ten questions answered by keyboard")


main()
