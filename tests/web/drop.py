"""The page that scripts/page makes, in a browser: reports of dropped models are those of the program here, byte for byte of
their JSON; broken files, wrong options and hostile names give the program's own messages; nothing is asked for, from a server
as from a disk; a model of 500 MB takes less than 300 MB of memory; the page is less than 2 MB.

usage: drop.py PROGRAM SAMPLES SCRATCH CHROMIUM PAGE.html
"""
import functools
import http.server
import json
import os
import pathlib
import re
import subprocess
import sys
import threading
import time

from playwright.sync_api import sync_playwright

import onnx_bytes
from onnx_bytes import node, number, text, value, varint

MOST_BYTES = 2_000_000
MOST_MEMORY = 300_000_000

# Options by the label of their field.
CASES = {
    "resnet50.onnx": {"Batch size": "8", "GPU or bytes to fit": "T4"},
    "resnet18-train.onnx": {"Batch size": "4", "Training with": "adam", "Other options": "--checkpoint all"},
    "unet-train.onnx": {"Batch size": "2", "Other dimensions": "height=64 width=64", "Training with": "sgd"},
    "llama.onnx": {"Other dimensions": "batch=2 sequence=64", "Runtime": "ort"},
    "bert.onnx": {"Precision": "fp16"},
    "control-flow.onnx": {},
    "fasterrcnn.onnx": {},
    "gpt2.onnx": {"Other options": "--order greedy --top '20'"},
    "mobilenet_v2.onnx": {"Batch size": "16", "Other options": "--budget 2GiB --max-batch"},
}
FIELDS = {"Batch size": "--batch", "Other dimensions": "--dim", "GPU or bytes to fit": "--budget", "Runtime": "--runtime",
          "Precision": "--precision", "Training with": "--train"}


def until(condition, what, seconds=300):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"not within {seconds} s: {what}"
        time.sleep(0.05)


def options(case):
    args = []
    for label, words in case.items():
        words = words.split(" ") if label in ("Other dimensions", "Other options") else [words]
        args += [w.strip("'") if label == "Other options" else f"{FIELDS[label]}={w}" for w in words]
    return args


class Tester:
    def __init__(self, browser, program, samples, scratch):
        self.context = browser.new_context(viewport={"width": 1300, "height": 1000})
        self.program, self.samples, self.scratch, self.problems = program, samples, scratch, []

    def open(self, address):
        page = self.context.new_page()
        page.on("console", lambda m: self.problems.append(f"console {m.type}: {m.text}"))
        page.on("pageerror", lambda e: self.problems.append(str(e)))
        page.on("dialog", lambda d: (self.problems.append(f"dialog {d.message}"), d.dismiss()))
        page.on("request", lambda r: r.url == address or r.url.startswith("blob:") or self.problems.append(f"asks for {r.url[:200]}"))
        page.goto(address)
        return page

    def fill(self, page, case):
        for label in [*FIELDS, "Other options"]:
            field = page.get_by_label(label, exact=True)
            if field.evaluate("f => f.tagName") == "SELECT":
                field.select_option(case.get(label, ""))
            else:
                field.fill(case.get(label, ""))

    def analyse(self, page, files, case=None):
        """What the page says of these files: the text of the problem, and the report's data."""
        self.fill(page, case or {})
        page.get_by_label("Drop a model here").set_input_files([])  # the same files again would be no change
        page.get_by_label("Drop a model here").set_input_files(files)
        until(lambda: not page.locator("#stop").is_visible(), f"a report of {files}")
        if not page.locator("#report").is_visible():
            return page.inner_text("#problem"), None
        report = page.frame_locator("#report")
        report.locator("#tensors .row").first.wait_for()
        problem = page.inner_text("#problem") if page.locator("#problem").is_visible() else ""
        data = json.loads(report.locator("script#report").text_content())
        assert "--html=/report.html" in data.pop("command")
        return problem, data

    def native(self, folder, names, case=None):
        """The same by the program here."""
        data = self.scratch / "native.json"
        data.unlink(missing_ok=True)
        run = subprocess.run([self.program, *options(case or {}), *names, f"--json={data}", "--timelines"], cwd=folder, text=True,
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
        return run.stderr.strip(), json.loads(data.read_text()) if data.exists() else None

    def same(self, page, folder, names, case=None):
        shown, report = self.analyse(page, [folder / name for name in names], case)
        said, expected = self.native(folder, names, case)
        assert shown.strip() == said, (names, shown, said)
        assert report == expected, f"{names} with {case}: the page's report is another"
        return report

    def calm(self):
        assert not self.problems, self.problems


def samples(t, page):
    for sample in sorted(t.samples.glob("*.onnx")):
        report = t.same(page, t.samples, [sample.name], CASES.get(sample.name, {}))
        assert report is not None, sample
        t.calm()
    report = t.same(page, t.samples, ["resnet18.onnx", "resnet50.onnx"], {"Batch size": "2"})
    assert len(report["models"]) == 2


def phone(t, page):
    """On a screen of 390 pixels neither the page nor a report in it is wider."""
    desk = page.viewport_size
    page.set_viewport_size({"width": 390, "height": 844})
    t.analyse(page, [t.samples / "resnet18-train.onnx"], CASES["resnet18-train.onnx"])
    for document in page.locator("html"), page.frame_locator("#report").locator("html"):
        width = document.evaluate("e => e.scrollWidth")
        assert width <= 390, f"{width} pixels wide on a phone"
    page.set_viewport_size(desk)
    t.calm()


def messages(t, page):
    """Whatever the bytes, the program's own words."""
    whole = (t.samples / "resnet18.onnx").read_bytes()
    noise = bytes((i * 2654435761 >> 13) & 255 for i in range(50000))
    files = {"cut.onnx": whole[: len(whole) // 2], "noise.onnx": noise, "zip.onnx": b"PK\x03\x04" + noise, "empty.onnx": b"",
             "text.onnx": b"hello\n", "changed.onnx": whole[:300] + noise[:40] + whole[340:], "deep.onnx": b"\x3a\xff\xff\xff\xff\x0f" * 999,
             "-b.onnx": b"PK\x03\x04", "<img src=x onerror=alert(1)>.onnx": b"%PDF"}
    for name, data in files.items():
        (t.scratch / name).write_bytes(data)
        given = "./" + name if name.startswith("-") else name
        shown, report = t.analyse(page, [t.scratch / name])
        said, _ = t.native(t.scratch, [given])
        assert report is None and shown.strip() == said != "", (name, shown, said)
        assert page.locator("#problem *").count() == 0
    for case in {"Batch size": "many"}, {"Other options": "--no-such-option"}, {"Other dimensions": "nothing=3"}, {"GPU or bytes to fit": "T5"}:
        shown, report = t.analyse(page, [t.samples / "resnet18.onnx"], case)
        said, _ = t.native(t.samples, ["resnet18.onnx"], case)
        assert report is None and shown.strip() == said != "", (case, shown, said)
    shown, _ = t.analyse(page, [t.samples / "resnet18.onnx"], {"Other options": "--list-gpus"})
    assert shown.startswith("GPU") and "RTX 4090" in shown
    shown, _ = t.analyse(page, [t.samples / "resnet18.onnx"], {"Other options": "--replay -b 2"})
    assert shown.strip() == "onnxvram: resnet18.onnx: --replay: 'cuda' is unknown; choose from host", shown
    (t.scratch / "hostile.onnx").write_bytes(onnx_bytes.hostile())
    t.same(page, t.scratch, ["hostile.onnx"])
    t.calm()


def external(t, page):
    """A shape that stands in a file beside the model's."""
    pair = lambda key, words: text(13, text(1, key) + text(2, words))
    shape = text(5, number(1, 2) + number(2, 7) + text(8, "shape") + pair("location", "net.onnx.data") + pair("offset", "8") + pair("length", "16") + number(14, 1))
    graph = [value(11, "x", [4, 6]), shape, node("Reshape", ["x", "shape"], ["y"]), node("Relu", ["y"], ["z"]), value(12, "z", ["a", "b"])]
    (t.scratch / "net.onnx").write_bytes(onnx_bytes.model(graph))
    (t.scratch / "net.onnx.data").write_bytes(b"".join(n.to_bytes(8, "little") for n in (0, 3, 8)))
    shown, report = t.analyse(page, [t.scratch / "net.onnx", t.scratch / "net.onnx.data"])
    said, expected = t.native(t.scratch, ["net.onnx"])
    assert shown.strip() == said == "", (shown, said)
    assert report == expected, (report["models"][0]["diagnostics"], expected["models"][0]["diagnostics"])
    assert [3, 8] in [tensor["shape"] for tensor in report["models"][0]["tensors"]]
    t.calm()


def sizes(t, page):
    """Sizes beyond the 32 bits of the memory that the analyzer runs in."""
    weight = text(5, number(1, 70000) + number(1, 70000) + number(2, 1) + text(8, "w") + text(13, text(1, "location") + text(2, "w.bin")) + number(14, 1))
    graph = [value(11, "x", ["batch", 70000]), weight, node("MatMul", ["x", "w"], ["y"]), node("Relu", ["y"], ["z"]), value(12, "z", ["batch", 70000])]
    (t.scratch / "wide.onnx").write_bytes(onnx_bytes.model(graph))
    model = t.same(page, t.scratch, ["wide.onnx"], {"Batch size": "50000", "Training with": "adam"})["models"][0]
    assert model["parameters"]["bytes"] == 4 * 70000**2 > 2**32 < model["peak"]["bytes"]
    t.calm()


def hands(t, page):
    """By drop, by keyboard; stopped; saved; names for a screen reader."""
    t.fill(page, {})
    model = (t.samples / "control-flow.onnx").read_bytes()
    page.evaluate("""(bytes) => {
        const data = new DataTransfer();
        data.items.add(new File([new Uint8Array(bytes)], "control-flow.onnx"));
        document.body.dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
    }""", list(model))
    until(lambda: page.inner_text("#status").startswith("Report of control-flow.onnx"), "the dropped model's report")
    for field in page.locator("input, select, button, iframe").all():
        assert field.evaluate("f => f.labels?.length > 0 || f.textContent !== '' || f.title !== ''"), field.evaluate("f => f.outerHTML")
    page.get_by_role("button", name="Try ResNet-18").press("Enter")
    until(lambda: page.inner_text("#status").startswith("Report of resnet18.onnx"), "the sample's report")
    page.get_by_label("Batch size").focus()
    page.keyboard.press("Control+a")
    page.keyboard.type("3")
    page.keyboard.press("Enter")
    until(lambda: "--batch=3" in page.inner_text("#command"), "an analysis with that batch")
    until(lambda: not page.locator("#stop").is_visible(), "its end")
    page.get_by_label("Other options").fill("--checkpoint all --train adam --effort 100000000000")
    page.get_by_label("Drop a model here").set_input_files([t.samples / "vit-small-train.onnx"])
    page.locator("#stop").click()
    assert page.inner_text("#status") == "Stopped."
    t.analyse(page, [t.samples / "resnet18.onnx"])
    with page.expect_download() as download:
        page.locator("#save").click()
    saved = t.scratch / "saved.html"
    download.value.save_as(saved)
    assert download.value.suggested_filename == "resnet18.onnx.html" and b'id="report"' in saved.read_bytes()
    t.calm()


def choices(t, page):
    """The lists of the page are the program's."""
    text = subprocess.run([t.program, "--help"], capture_output=True, text=True, check=True).stdout
    for title, field in ("Runtimes", "runtime"), ("Optimizers", "train"):
        part = re.search(rf"^{title}.*\n((?:  .*\n)+)", text, re.M)[1]
        assert page.eval_on_selector_all(f"#{field} option[value='']", "o => o.length") == 1
        assert page.eval_on_selector_all(f"#{field} option:not([value])", "o => o.map(x => x.value)") == re.findall(r"^  (\w+)", part, re.M)
    known = subprocess.run([t.program, "--list-gpus"], capture_output=True, text=True, check=True).stdout
    for gpu in page.eval_on_selector_all("#gpus option", "o => o.map(x => x.value)"):
        assert re.search(rf"^{gpu}  ", known, re.M), gpu


# --- Memory ----------------------------------------------------------------------------------------

def processes(mark):
    """The browser's processes: by kind, their ids."""
    parents, lines = {}, {}
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            lines[int(folder.name)] = (folder / "cmdline").read_text()
            parents[int(folder.name)] = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1])
        except (OSError, ValueError):
            continue
    ours = {pid for pid, line in lines.items() if mark in line and "--type=" not in line}
    while more := {pid for pid, parent in parents.items() if parent in ours} - ours:
        ours |= more
    return [pid for pid in ours if "--type=renderer" in lines.get(pid, "")]


def most_memory(pid):
    """The most that a process had in memory: (all, of its own at the moment)."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return [int(re.search(rf"^{key}:\s+(\d+) kB", status, re.M)[1]) * 1024 for key in ("VmHWM", "RssAnon")]


def big_model(path):
    """100 layers of 5 MiB each: 524 MB, in a file with holes."""
    sizes, weights, nodes, last = [1024, 1280], [], [], "input"
    for i in range(100):
        rows, columns = sizes[i % 2], sizes[1 - i % 2]
        head = number(1, rows) + number(1, columns) + number(2, 1) + text(8, f"w{i}") + varint(9 << 3 | 2) + varint(4 * rows * columns)
        weights.append((head, 4 * rows * columns))
        nodes.append(node("MatMul", [last, f"w{i}"], [f"h{i}"]))
        last = f"h{i}"
    rest = b"".join([text(2, "main"), *nodes, value(11, "input", ["batch", 1024]), value(12, last, ["batch", 1024])])
    heads = [varint(5 << 3 | 2) + varint(len(head) + hole) + head for head, hole in weights]
    graph_bytes = len(rest) + sum(len(head) for head in heads) + sum(hole for _, hole in weights)
    with path.open("wb") as file:
        file.write(number(1, 8) + text(8, text(1, "") + number(2, 17)) + varint(7 << 3 | 2) + varint(graph_bytes) + rest)
        for head, (_, hole) in zip(heads, weights):
            file.write(head)
            file.seek(hole, os.SEEK_CUR)
        file.truncate(file.tell())


def memory(t, address, mark):
    model = t.scratch / "big.onnx"
    big_model(model)
    assert model.stat().st_size > 500_000_000
    page = t.open(address)
    before = {pid: most_memory(pid) for pid in processes(mark)}
    began = time.monotonic()
    report = t.same(page, t.scratch, ["big.onnx"], {"Batch size": "64"})
    seconds = time.monotonic() - began
    after = {pid: most_memory(pid) for pid in processes(mark)}
    pid, (most, own) = max(after.items(), key=lambda item: item[1][0])
    first = max((all_ for all_, _ in before.values()), default=0)
    print(f"a model of {model.stat().st_size / 1e6:.0f} MB: {seconds:.1f} s; its process had {most / 1e6:.0f} MB in memory at the most, "
          f"{first / 1e6:.0f} MB before it, {own / 1e6:.0f} MB of its own at the end")
    assert report["models"][0]["parameters"]["bytes"] > 500_000_000
    assert most < MOST_MEMORY, f"{most} bytes"
    page.close()
    t.calm()


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def main():
    program, folder, scratch, chromium, html = map(lambda p: pathlib.Path(p).resolve(), sys.argv[1:6])
    size = html.stat().st_size
    assert size < MOST_BYTES, f"{size} bytes"
    print(f"the page: {size:,} bytes")
    handler = functools.partial(Quiet, directory=html.parent.parent)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}/{html.parent.name}/{html.name}"
    mark = f"--onnxvram-test={os.getpid()}"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--headless", mark])
        t = Tester(browser, program, folder, scratch)
        memory(t, address, mark)
        page = t.open(address)
        choices(t, page)
        messages(t, page)
        external(t, page)
        sizes(t, page)
        phone(t, page)
        hands(t, page)
        samples(t, page)
        page.close()
        page = t.open(html.as_uri())
        t.same(page, t.samples, ["resnet50.onnx"], CASES["resnet50.onnx"])
        t.calm()
        browser.close()
    server.shutdown()
    print(f"{len(list(folder.glob('*.onnx')))} samples")


main()
