"""The page of --html in a browser: no sample's page asks for anything or complains, charts and tables answer to
pointer and keys, numbers are the JSON's, hostile names stay text, a model of 20,000 tensors stays usable.

usage: page.py PROGRAM SAMPLES SCRATCH CHROMIUM
"""
import json
import pathlib
import subprocess
import sys
import time

from playwright.sync_api import sync_playwright

import onnx_bytes

BOUND = {
    "resnet50.onnx": ["--batch", "4"],
    "unet-train.onnx": ["--batch", "2", "-d", "height=64", "-d", "width=64", "--train", "adam", "--checkpoint", "all", "--budget", "2GiB",
                        "--max-batch"],
    "resnet18-train.onnx": ["--batch", "2", "--train", "sgd", "--budget", "T4,H100"],
    "vit-small-train.onnx": ["--batch", "4", "--train", "adam", "--budget", "T4,RTX 4090,A100 40GB,H100,H200", "--max-batch"],
    "mobilenet_v2-train.onnx": ["--batch", "64", "--train", "sgd", "--budget", "2GiB"],
}


def label(size):
    """As the text report writes bytes, made independently of the page."""
    if size < 1024:
        return f"{size} B"
    for power, unit in enumerate(["KiB", "MiB", "GiB", "TiB"], 1):
        decimals = 1 if power < 3 else 2
        text = f"{size / 1024**power:.{decimals}f}"
        if float(text) < 1024:
            return f"{text} {unit}"
    raise AssertionError(size)


def span(of):
    """A range, as the text report writes it."""
    low, high = of["low_bytes"], of["high_bytes"]
    power = max(p for p in range(7) if high >= 1024**p or p == 0)
    text = [f"{round_half_up(x, 1024**power, 0 if power < 3 else 2)}" for x in (low, high)]
    return label(high) if text[0] == text[1] else f"{text[0]}–{text[1]} {['B', 'KiB', 'MiB', 'GiB', 'TiB'][power]}"


def round_half_up(count, unit, decimals):
    digits = (2 * count * 10**decimals + unit) // (2 * unit)
    return str(digits) if decimals == 0 else f"{digits // 10**decimals}.{digits % 10**decimals:0{decimals}}"


def verdict(fit):
    if fit["fits"]:
        return "fits"
    return "does not fit, unless PyTorch returns cached memory, which is slower" if fit.get("fits_by_release") else "does not fit"


def until(page, condition, seconds=30):
    """Playwright's own wait evaluates its condition inside the page a second time, where the page's policy forbids eval."""
    end = time.monotonic() + seconds
    while not page.evaluate(condition):
        assert time.monotonic() < end, f"not within {seconds} s: {condition}"
        page.wait_for_timeout(20)


class Tester:
    def __init__(self, browser, program, scratch):
        self.context = browser.new_context(viewport={"width": 1400, "height": 1000})
        self.program = program
        self.scratch = scratch
        self.problems = []

    def write(self, name, models, options):
        html, data = self.scratch / f"{name}.html", self.scratch / f"{name}.json"
        subprocess.run([self.program, "-q", *models, *options, f"--html={html}", f"--json={data}", "--timelines"], check=False,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return html, json.loads(data.read_text())

    def open(self, html):
        page = self.context.new_page()
        page.on("console", lambda m: self.problems.append(f"{html.name}: console {m.type}: {m.text}"))
        page.on("pageerror", lambda e: self.problems.append(f"{html.name}: {e}"))
        page.on("dialog", lambda d: (self.problems.append(f"{html.name}: dialog {d.message}"), d.dismiss()))
        page.on("request", lambda r: r.url == html.as_uri() or self.problems.append(f"{html.name}: asks for {r.url[:200]}"))
        page.goto(html.as_uri())
        page.wait_for_selector("#tensors .row")
        return page

    def numbers(self, page, model):
        """What the page says of runtimes, weights and the peak."""
        sized = model if "runtimes" in model else model.get("example", model)
        shown = page.eval_on_selector_all("#runtimes tr[data-runtime]",
                                          "rows => rows.map(r => [r.dataset.runtime, r.querySelector('[data-figure]').textContent])")
        want = [[name, label(r["total_bytes"])] for name, r in sized.get("runtimes", {}).items()]
        assert shown == want, (shown, want)
        headline = dict(page.eval_on_selector_all(".headline div", "d => d.map(x => [x.children[0].textContent, x.children[1].textContent])"))
        assert headline["weights"] == label(model["parameters"]["bytes"])
        peak = sized["peak"]["bytes"]
        assert headline["peak of the graph, a lower bound"] == ("?" if peak is None else label(peak))
        self.answer(page, model)
        count = page.text_content("#tensors .tools .note")
        assert f"of {len(model['tensors']):,} tensors" in count

    def answer(self, page, model):
        """The page says what the report answers: of each runtime its total, of each device the verdict with its own libraries."""
        answer = model["answer"]
        shown = answer if answer["runtime"] is not None else model.get("example", {}).get("answer")
        rows = page.eval_on_selector_all("[data-answer]",
                                         "rows => rows.map(r => [r.dataset.answer, r.querySelector('[data-figure]').textContent])")
        assert rows == [[r["runtime"], span(r)] for r in (shown or {"runtimes": []})["runtimes"]], rows
        devices = answer.get("devices", answer.get("usual_devices", []))
        said = page.eval_on_selector_all("[data-device]", """rows => rows.map(r => [r.dataset.device,
            r.querySelector('[data-figure=verdict]').textContent, r.querySelector('[data-figure=need]').textContent])""")
        assert said == [[d["device"] or label(d["budget_bytes"]), verdict(d), span(d)] for d in devices], said
        gpu = answer["gpu"]
        if gpu is not None:
            assert f"on {gpu}{' (assumed)' if answer['gpu_assumed'] else ''}" in page.text_content(".answer caption")
        for remedy in answer.get("remedies", []):
            assert remedy["option"] in page.text_content(".remedies")
        training = model.get("training")
        assert page.locator("#training").is_visible() == (training is not None)
        if training is not None:
            chosen = next((p for p in training.get("plans", []) if p.get("chosen")), training)
            assert page.text_content("[data-training=reserved]") == label(chosen["reserved_peak_bytes"])

    def stacks(self, page):
        """In each mode the bands of a step add up to its live bytes, and so does the list of what lives there."""
        assert page.evaluate("""() => ["kind", "module", "tensor"].every((mode) => page.state.model.executions.every((e) => {
            e.decode();
            const rows = e.stack(mode);
            for (let s = 0; s < e.count; s++) {
                let sum = 0;
                for (const row of rows) sum += row.bytes[s];
                if (sum !== e.live[s]) return false;
            }
            const steps = [0, e.peakStep, e.count - 1];
            return steps.every((s) => e.liveAt(s).reduce((sum, i) => sum + e.bytes[i], 0) === e.live[s]);
        }))""")

    def close(self, page):
        page.close()
        assert not self.problems, self.problems


def charts(t, page):
    """The timeline of a bound model: hover, pin, keys, brush, stacks, theme."""
    chart, mini = page.locator("#timeline canvas").nth(0), page.locator("#timeline canvas").nth(1)
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] - 40)
    page.wait_for_selector(".timeline .tip:not([hidden])")
    page.mouse.click(box["x"] + box["width"] / 3, box["y"] + box["height"] - 40)
    until(page, "document.querySelector('.details h3').textContent.startsWith('Pinned')")
    pinned = page.evaluate("page.state.pinned")
    live = page.evaluate("page.state.execution.live[page.state.pinned]")
    assert page.text_content(".details [data-figure=live]") == label(int(live))
    assert f"pinned step {pinned:,}," in page.text_content(".aloud")
    chart.focus()
    page.keyboard.press("ArrowRight")
    until(page, f"page.state.pinned === {pinned + 1}")
    assert chart.get_attribute("aria-valuenow") is not None
    page.keyboard.press("p")
    until(page, "page.state.pinned === page.state.execution.peakStep")
    page.keyboard.press("+")
    until(page, "page.state.high - page.state.low < page.state.execution.count")
    page.keyboard.press("Escape")
    until(page, "page.state.pinned === null && page.state.high === page.state.execution.count")
    mini.scroll_into_view_if_needed()
    box = mini.bounding_box()
    page.mouse.move(box["x"] + 200, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + 300, box["y"] + 20)
    page.mouse.move(box["x"] + 420, box["y"] + 20)
    page.mouse.up()
    until(page, "page.state.low > 0 && page.state.high < page.state.execution.count")
    mini.dblclick()
    until(page, "page.state.low === 0 && page.state.high === page.state.execution.count")
    for mode in "tensor", "module", "kind":
        page.click(f"#timeline button[data-value={mode}]")
        until(page, f"page.state.mode === '{mode}'")
    page.click("#timeline button[data-value='3']")
    until(page, "page.state.execution.runtime === 'ort'")
    arena = page.locator("#memory canvas")
    arena.scroll_into_view_if_needed()
    arena.focus()
    page.keyboard.press("ArrowUp")
    until(page, "page.state.buffer >= 0")
    before = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.click(".theme")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != before


def table(page, model):
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.type") == "search"
    name = max(model["tensors"], key=lambda t: t["bytes"] or 0)["name"]
    page.keyboard.type(name)
    until(page, "document.querySelector('#tensors .row .name').textContent.length > 0")
    found = sum(name.lower() in t["name"].lower() for t in model["tensors"])
    assert page.text_content("#tensors .tools .note").startswith(f"{found:,} of ")
    page.fill(".search", "no such tensor at all")
    assert page.text_content("#tensors .tools .note").startswith("0 of ")
    page.fill(".search", "")
    page.click("#tensors .head button >> nth=0")
    first = page.text_content("#tensors .row .name >> nth=0")
    assert first == min(t["name"] for t in model["tensors"])


def slider(page, model):
    """Twice the batch by its slider: the formula's figure, worked out here from the expressions of the JSON."""
    dims = [d["name"] for d in model["free_dims"]]
    sizes = dict(model["example"]["bindings"])
    batch = next(d for d in dims if "batch" in d)
    sizes[batch] = 8
    page.fill(f".dim:nth-child({dims.index(batch) + 1}) .number", "8")
    peak = 0
    for piece in model["formula"]["peak_bytes_largest_of"]:
        stack = []
        for item in piece["postfix"]:
            if isinstance(item, str):
                b, a = stack.pop(), stack.pop()
                stack.append({"+": a + b, "*": a * b, "//": a // b if b else 0, "%": a % b if b else 0, "min": min(a, b), "max": max(a, b)}[item])
            else:
                stack.append(sizes[dims[item[0]]] if isinstance(item, list) else item)
        peak = max(peak, stack[0])
    assert page.text_content("[data-figure=formula]") == label(model["formula"]["weight_bytes"] + peak)
    assert "lower bound, not a verdict" in page.text_content(".sliders .says") and page.locator("[data-device]").count() == 0
    assert page.text_content("[data-figure=command]") == (
        "onnxvram " + model["path"] + " " + " ".join(f"--batch {sizes[d]}" if d == batch else f"--dim {d}={sizes[d]}" for d in dims)
        + " --budget T4")
    until(page, "document.querySelector('.stale').textContent.includes('do not follow')")
    assert page.locator("[data-figure=contradiction]").count() == 0
    total = next(d for d in model["free_dims"] if "sum_of" in d)
    page.fill(f".dim:nth-child({dims.index(total['name']) + 1}) .number", "7")
    want = sum(sizes[name] for name in total["sum_of"])
    assert f"{total['name']} is 7, but {' + '.join(total['sum_of'])} is {want}" in page.text_content("[data-figure=contradiction]")
    page.fill(f".dim:nth-child({dims.index(total['name']) + 1}) .number", str(sizes[total["name"]]))
    page.locator(".dim input[type=range] >> nth=0").focus()
    page.keyboard.press("ArrowRight")
    until(page, f"document.querySelector('.dim .number').value !== '{sizes[dims[0]]}'")
    assert page.text_content("[data-figure=formula]") != label(model["formula"]["weight_bytes"] + peak)


def plans(page, model):
    """Each plan's dot shows its timeline, whose peak is the plan's; its row says how large a batch may be."""
    dots = page.locator("#plans circle.plan")
    assert dots.count() == len(model["training"]["plans"])
    assert page.text_content("#plans th:nth-last-child(2)") == "max batch"
    for plan, text in zip(model["training"]["plans"], page.locator("#plans td.batch").all_text_contents(), strict=True):
        more = f" ({plan['max_batch_by_release']:,} if cached memory is returned)" if "max_batch_by_release" in plan else ""
        assert text == (f"{plan['max_batch']:,}" if "max_batch" in plan else "none found") + more, text
    dots.nth(1).click()
    until(page, "page.state.execution.plan === 1")
    dots.nth(2).focus()
    page.keyboard.press("Enter")
    until(page, "page.state.execution.plan === 2 && document.activeElement.matches('circle.plan.chosen[data-plan=\"2\"]')")
    page.focus("#plans button[data-plan='1']")
    page.keyboard.press("Enter")
    until(page, "page.state.execution.plan === 1 && document.activeElement.closest('tr')?.matches('.chosen')")
    dots.nth(2).click()
    until(page, "page.state.execution.plan === 2")
    assert page.evaluate("page.state.execution.json.reserved_peak_bytes") == model["training"]["plans"][2]["reserved_peak_bytes"]


def samples(t, folder):
    for sample in sorted(folder.glob("*.onnx")):
        html, report = t.write(sample.stem, [sample], BOUND.get(sample.name, []))
        page, model = t.open(html), report["models"][0]
        t.numbers(page, model)
        if sample.name == "resnet50.onnx":
            charts(t, page)
            table(page, model)
        if sample.name in ("resnet50.onnx", "unet-train.onnx", "llama.onnx", "control-flow.onnx"):
            t.stacks(page)
        if sample.name == "llama.onnx":
            slider(page, model)
        if sample.name == "unet-train.onnx":
            plans(page, model)
        t.close(page)


def two_models(t, folder):
    html, report = t.write("two", [folder / "resnet18.onnx", folder / "resnet50.onnx"], ["--batch", "2"])
    page = t.open(html)
    assert page.locator("#compare .more").count() > 0
    page.click(".top button[data-value='1']")
    until(page, "document.querySelector('h1').textContent === 'resnet50.onnx'")
    t.numbers(page, report["models"][1])
    t.close(page)


def sweep(t, folder):
    """Curves and the map have the figures of the JSON, and a line where the budget ends."""
    for axes, budget, options in (["batch"], "2.00 GiB", ["-b", "8..128"]), (["batch", "sequence"], "800.0 MiB", ["-b", "1..64", "-d", "sequence=64..512"]):
        html, data = t.scratch / f"sweep{len(axes)}.html", t.scratch / f"sweep{len(axes)}.json"
        model = folder / ("resnet50.onnx" if len(axes) == 1 else "bert.onnx")
        subprocess.run([t.program, "sweep", model, *options, "--budget", budget.replace(" ", "") + ",T4", f"--html={html}", f"--json={data}"], check=False, capture_output=True)
        points = json.loads(data.read_text())["sweep"]["points"]
        page = t.context.new_page()
        page.on("console", lambda m: t.problems.append(m.text))
        page.on("pageerror", lambda e: t.problems.append(str(e)))
        page.goto(html.as_uri())
        for runtime in "torch", "ort":
            page.click(f"button[data-value={runtime}]")
            assert page.locator("[data-point]").all_text_contents() == [span(p["answer"]["runtimes"][runtime]) for p in points]
        fits = [p["answer"]["fits"][budget] for p in points]
        assert True in fits and False in fits
        if len(axes) == 1:
            ends = sum(a != b for a, b in zip(fits, fits[1:]))
            assert page.locator("line.budget").count() == ends + 1
            most = max(p["bindings"]["batch"] for p, good in zip(points, fits) if good)
            assert f"batch = {most} is the largest" in page.text_content("[data-figure=end]")
        else:
            wide = len({p["bindings"]["sequence"] for p in points})
            beside = sum(fits[k] != fits[k + 1] for k in range(len(fits) - 1) if (k + 1) % wide)
            assert page.locator("td.ends").count() == beside
            assert page.locator("td.ends-below").count() == sum(a != b for a, b in zip(fits, fits[wide:]))
        page.click("button[data-value='1']")
        assert page.locator("td.ends, td.ends-below").count() == 0
        t.close(page)


def hostile(t):
    model = t.scratch / "hostile.onnx"
    model.write_bytes(onnx_bytes.hostile())
    for name, options in ("hostile", []), ("hostile-bound", ["--batch", "2", "-d", "<b>width</b>=5"]):
        html, _ = t.write(name, [model], options)
        page = t.open(html)
        page.click("#modules .cell >> nth=1")
        page.evaluate("page.state.set({ mode: 'tensor' })")
        page.hover("#timeline canvas >> nth=0")
        assert page.title() == "hostile.onnx - onnxvram"
        assert page.locator("#app script, #app b > script, #app img, #app svg[onload]").count() == 0
        assert page.evaluate("document.scripts.length") == page.evaluate("document.querySelectorAll('body > script').length")
        text = page.inner_text("#tensors")
        assert "<img src=x" in text and "\\u202eevil" in text and "\u202e" not in page.inner_text("body")
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), "a name breaks the layout"
        t.close(page)


PHONES = [ # models and options: several runtimes, training, budgets, free dims, comparisons
    (["resnet50.onnx"], ["--batch", "4", "--budget", "T4,A10G,H100"]),
    (["resnet18-train.onnx"], ["--batch", "2", "--train", "sgd", "--budget", "T4,H100", "--max-batch"]),
    (["unet-train.onnx"], BOUND["unet-train.onnx"]),
    (["resnet18.onnx"], ["--batch", "8", "--runtime", "ort", "--ort-advise"]),
    (["bert.onnx"], ["--batch", "4", "-d", "sequence=128", "--budget", "T4"]),
    (["llama.onnx"], []),
    (["control-flow.onnx"], []),
    (["resnet18.onnx", "resnet50.onnx"], ["--batch", "2", "--budget", "T4,H100"]),
]


def phone(t, browser, folder):
    """On a screen of 390 pixels nothing is wider than the page, whatever is shown; what is wider by nature scrolls in its own box."""
    desk, t.context = t.context, browser.new_context(viewport={"width": 390, "height": 844}, is_mobile=True, has_touch=True)
    for models, options in PHONES:
        html, _ = t.write("phone-" + models[-1], [folder / m for m in models], options)
        page = t.open(html)
        wide = page.evaluate("""() => {
            const scrolls = (e) => e !== null && (getComputedStyle(e).overflowX !== "visible" || scrolls(e.parentElement));
            return [...document.querySelectorAll("#app *")].filter((e) => e.getBoundingClientRect().right > 390.5 && !scrolls(e.parentElement))
                .map((e) => (e.closest("section")?.id ?? "") + " " + e.tagName + "." + e.className);
        }""")
        assert wide == [], f"{html.name}: wider than a phone: {wide[:5]}"
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width == 390, f"{html.name}: {width} pixels wide on a phone"
        assert page.evaluate("[...document.querySelectorAll('#app table')].every((e) => e.scrollWidth <= e.clientWidth || getComputedStyle(e).overflowX === 'auto')")
        t.close(page)
    t.context.close()
    t.context = desk


def still(t, browser):
    """Without JavaScript the picture and the text report are there."""
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.on("console", lambda m: t.problems.append(m.text))
    page.goto((t.scratch / "resnet50.html").as_uri())
    assert page.locator("noscript svg path").count() > 3 and "ONNX" not in page.title()
    assert "= total" in page.inner_text("noscript pre >> nth=0")
    context.close()
    assert not t.problems, t.problems


def large(t):
    model = t.scratch / "large.onnx"
    model.write_bytes(onnx_bytes.large(10000))
    html, _ = t.write("large", [model], ["--batch", "8"])
    began = time.monotonic()
    page = t.open(html)
    loaded = time.monotonic() - began
    assert page.evaluate("document.querySelectorAll('*').length") < 3000, "an element for each of many buffers"
    assert page.evaluate("page.state.model.nodeOf === undefined"), "drawing looked at all names"
    paint = page.evaluate("performance.getEntriesByType('paint').at(-1)?.startTime ?? 0")
    page.evaluate("""() => {
        window.frames = [];
        let last = performance.now();
        const tick = () => { const now = performance.now(); frames.push(now - last); last = now; requestAnimationFrame(tick); };
        requestAnimationFrame(tick);
    }""")
    box = page.locator("#timeline canvas").nth(1).bounding_box()
    page.mouse.move(box["x"] + 300, box["y"] + 20)
    page.mouse.down()
    for i in range(40):
        page.mouse.move(box["x"] + 300 + 10 * i, box["y"] + 20)
    page.mouse.up()
    frames = sorted(page.evaluate("frames"))
    print(f"20,000 tensors: loaded in {loaded:.1f} s, first paint at {paint / 1000:.1f} s; while brushing a frame took "
          f"{frames[len(frames) // 2]:.0f} ms (median), {frames[-1]:.0f} ms at most")
    assert loaded < 60 and frames[-1] < 10000
    t.close(page)


def main():
    program, folder, scratch, chromium = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]), sys.argv[4]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--headless"])
        t = Tester(browser, program, scratch)
        samples(t, folder)
        two_models(t, folder)
        sweep(t, folder)
        hostile(t)
        phone(t, browser, folder)
        still(t, browser)
        large(t)
        browser.close()
    print(f"{len(list(folder.glob('*.onnx')))} samples")


main()
