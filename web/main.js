"use strict";
/* Puts the page together. */

function showExecution(state, execution) {
  execution.decode();
  const keepsRange = state.execution !== null && state.execution.count === execution.count;
  const range = keepsRange ? { low: state.low, high: state.high } : { low: 0, high: execution.count };
  state.set({ execution, pinned: null, buffer: -1, step: execution.peakStep, ...range });
}

function section(id, title, note, ...children) {
  return make("section", { id, tabindex: -1, "aria-labelledby": id + "-title" },
    make("header", {}, make("h2", { id: id + "-title" }, title), note ? make("p.note", {}, note) : null), children);
}

/* What people ask, and where the answer is. */
const QUESTIONS = [["Which number counts?", "needed"], ["Why that much?", "needed"], ["Does it fit?", "gpus"], ["What makes it fit?", "remedies"],
                   ["Which batch?", "largest"], ["Which tensor makes the peak?", "peak"], ["Which line of Python?", "peak"], ["Which plan?", "plans"],
                   ["How do two models compare?", "compare"], ["What changed?", "changes"]];

/* Weights that are more than half of all would leave nothing to see of the rest. */
function wantsWeights(execution) {
  if (execution === null) return true;
  execution.decode();
  const row = execution.stack("kind").find((r) => r.color === "weights");
  return row === undefined || row.bytes[execution.peakStep] < 0.5 * execution.live[execution.peakStep];
}

/* The same of what an allocator asks for at the least. */
function wantsReserved(execution) {
  return execution === null || execution.json.reserved_peak_bytes < 6 * execution.json.peak_bytes;
}

class Page {
  constructor(report) {
    this.report = report;
    this.models = report.models.map((m, i) => new Model(m, i));
    this.state = new State();
    this.state.models = this.models;
    this.live = make("div.aloud", { "aria-live": "polite", role: "status" });
    this.timeline = new Timeline(this.state, this.live);
    this.arena = new Arena(this.state);
    this.tools = make("div.tools");
    this.figures = make("dl.headline");
    this.table = new TensorTable(this.state);
    this.names = this.models.map((m, i) => clean(fileName(m.path), 40) + (this.models.some((o, k) => k !== i && o.path === m.path) ? " (" + (i + 1) + ")" : ""));
    this.build();
    this.keys();
    this.state.when(["model"], () => this.headline());
    this.state.when(["model", "execution"], () => this.toolbar());
    this.show(this.models[0]);
    this.state.flush();
  }

  build() {
    const state = this.state;
    const title = make("h1");
    this.title = title;
    this.tabs = this.models.length > 1 ? choice("model", this.names.map((n, i) => [i, n]), 0, (i) => this.show(this.models[i])) : null;
    const theme = make("button.theme", { type: "button", title: "dark or light", "aria-label": "dark or light", click: () => this.turn() }, "\u25d0");
    this.front = new Front(state, this.report);
    this.trainingSection = section("training", "Training", null, new Training(state).element);
    this.stale = make("p.note.stale", { role: "status" });
    state.when(["stale", "model"], () => replace(this.stale, state.stale ? "Drawn for the sizes of the example: the charts do not follow the sliders." : null));
    this.noPlans = make("p.note");
    const app = document.getElementById("app");
    replace(app, make("a.skip", { href: "#timeline" }, "to the timeline"),
      make("header.top", {}, make("span.brand", {}, "onnxvram"), this.tabs, make("span.grow"), theme),
      make("main", {}, make("div.intro", {}, title, this.figures,
        make("nav.questions", { "aria-label": "questions" }, QUESTIONS.map(([text, id]) => make("a", { href: "#" + id }, text)))),
        section("fit", "Does it fit?", null, new Answer(state, this.report).element, new LowerBound(state).element),
        this.trainingSection,
        section("timeline", "Live memory", null, this.stale, this.tools, this.timeline.element),
        section("memory", "Where it lies", null, this.arena.element),
        section("plans", "Checkpointing plans", null, this.noPlans, this.front.element),
        section("peak", "The peak", null, new PeakSet(state).element),
        section("modules", "Modules", null, new Modules(state).element),
        section("runtimes", "Runtimes side by side", null, new Runtimes(state).element),
        section("compare", "Models side by side", null, this.comparison()),
        section("tensors", "Tensors", null, this.table.element),
        section("notes", "Notes", null, new Notes(state).element)),
      make("footer", {}, this.report.generator + ". Sizes are binary: 1 MiB is 1,048,576 bytes. Keys: / searches; in the timeline the arrows move, " +
        "Enter pins, + and \u2212 zoom, p goes to the peak, Esc shows all."), this.live);
  }

  /* Of one model the command that compares it with another. */
  comparison() {
    if (this.models.length === 1)
      return make("p.note", { id: "changes", tabindex: -1 }, "Two models, and what changed between them: ",
        make("code", {}, commandText({ command: ["diff", "OLD.onnx", this.models[0].path, "--html"] })));
    const charts = new SideBySide(this.state, this.names, (model) => this.show(model)).element;
    return this.models.length === 2 ? [charts, new Compare(this.models, this.names).element] : charts;
  }

  show(model) {
    const main = model.mainExecution();
    const execution = main >= 0 ? model.executions[main].decode() : null;
    const fit = model.json.fit;
    if (this.tabs !== null) press(this.tabs, model.index);
    this.state.set({ model, execution, step: execution?.peakStep ?? 0, pinned: null, buffer: -1, low: 0, high: execution?.count ?? 1,
                     weights: wantsWeights(execution), reserved: wantsReserved(execution), budget: fit?.usable_bytes ?? null, stale: false });
    document.body.classList.toggle("empty", execution === null);
    this.trainingSection.hidden = model.json.training === undefined;
    const hasPlans = (model.json.training?.plans ?? []).length > 0, ask = model.json.training !== undefined ? ["--checkpoint", "all"] : ["--train", "adamw", "--checkpoint", "all"];
    replace(this.noPlans, hasPlans ? "Choose one to see its timeline above." : ["What training could do without, by running parts of it again: ",
      make("code", {}, commandText(this.report, ...ask))]);
  }

  headline() {
    const model = this.state.model, json = model.json, sized = model.sized;
    replace(this.title, nameSpan(fileName(model.path), 60));
    const answer = json.answer;
    const needed = answer.runtimes.map((r) => clean(r.runtime, 20) + " " + rangeText(r.low_bytes, r.high_bytes)).join(", ");
    const rows = [["needed" + gpuText(answer), needed === "" ? "not sized" : needed],
                  ["parameters", scaledText(json.parameters.count)], ["weights", bytesText(json.parameters.bytes)],
                  ["peak of the graph, a lower bound", bytesText(sized.peak?.bytes ?? null)], ["multiply-accumulates", scaledText(sized.macs ?? json.macs)],
                  ["nodes", countText(json.nodes.length)]];
    const bindings = Object.entries(sized.bindings ?? {}).map(([k, v]) => clean(k, 24) + "=" + (Array.isArray(v) ? v.join("\u00d7") : v)).join(", ");
    if (bindings !== "") rows.push([model.isExample ? "sizes, as an example" : "sizes", clean(bindings, 120)]);
    replace(this.figures, rows.map(([what, text]) => make("div", {}, make("dt", {}, what), make("dd", {}, make("bdi", {}, text)))));
  }

  toolbar() {
    const state = this.state, model = state.model;
    if (state.execution === null) {
      replace(this.tools, make("p.note", {}, "A size is not known, so nothing can be drawn: bind all dimensions."));
      return;
    }
    const plain = model.executions.filter((e) => e.plan === null);
    const plans = model.executions.filter((e) => e.plan !== null);
    const runtimes = choice("runtime", plain.map((e) => [e.index, e.title, ABOUT[e.runtime]]), state.execution.index,
      (i) => showExecution(state, model.executions[i]));
    const select = plans.length === 0 ? null : make("select", { "aria-label": "checkpointing plan", change: (event) => {
      if (event.target.value !== "") showExecution(state, model.executions[Number(event.target.value)]);
    } }, make("option", { value: "" }, "plan\u2026"), plans.map((e) => {
      const option = make("option", { value: e.index }, e.title + ", " + bytesText(e.json.peak_bytes));
      option.selected = e === state.execution;
      return option;
    }));
    const modes = choice("stacked by", [["kind", "kind"], ["module", "module"], ["tensor", "tensor"]], state.mode, (mode) => {
      state.set({ mode });
      press(modes, mode);
    });
    replace(this.tools, runtimes, select, make("span.label", {}, "by"), modes,
      check("weights", state.weights, (weights) => state.set({ weights })),
      check("reserved", state.reserved, (reserved) => state.set({ reserved })),
      make("button", { type: "button", click: () => state.set({ low: 0, high: state.execution.count }) }, "all steps"),
      make("button", { type: "button", click: () => this.timeline.moveTo(state.execution.peakStep) }, "to the peak"));
  }

  turn() {
    setTheme(!isDark());
    const all = ["model", "execution", "mode"];
    for (const key of all) this.state.changed.add(key);
    this.state.set({ buffer: -1 });
    this.state.flush();
    this.timeline.scene.paint();
    this.timeline.mini.paint();
    this.arena.scene.paint();
  }

  keys() {
    document.addEventListener("keydown", (event) => {
      const isTyping = ["INPUT", "SELECT", "TEXTAREA"].includes(document.activeElement?.tagName);
      if (event.key !== "/" || isTyping || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      this.table.search.focus();
      this.table.search.scrollIntoView({ block: "center" });
    });
    /* On paper everything is open and light. */
    let theme;
    addEventListener("beforeprint", () => {
      theme = isDark();
      for (const details of document.querySelectorAll("details")) details.open = true;
      if (theme) this.turn();
    });
    addEventListener("afterprint", () => { if (theme) this.turn(); });
    darkness.addEventListener("change", () => { if (isDark() !== darkness.matches) this.turn(); });
  }
}

// Of large models the report is deflated, in base64.
async function unpack(text) {
  const app = document.getElementById("app");
  replace(app, make("p.loading", { role: "status" }, "Reading a report of " + bytesText(text.length) + ", packed \u2026"));
  const packed = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const plain = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const report = await new Response(plain).json();
  replace(app, make("p.loading", { role: "status" }, "Drawing " + countText(report.models[0].nodes.length) + " nodes \u2026"));
  await new Promise((done) => { setTimeout(done); }); /* lets it be seen */
  begin(report);
}

function begin(report) {
  page = report.sweep !== undefined ? new SweepPage(report) : new Page(report);
}

const darkness = matchMedia("(prefers-color-scheme: dark)");

function setTheme(isNight) {
  document.documentElement.dataset.theme = isNight ? "dark" : "light";
}

let page;

setTheme(darkness.matches);
const data = document.getElementById("report").textContent;
if (data.startsWith("{")) begin(JSON.parse(data));
else unpack(data);
