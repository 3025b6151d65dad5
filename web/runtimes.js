"use strict";
/* Runtimes side by side, each caveat beside its number; models compared. */

const ABOUT = {
  ideal: "a lower bound, the sum of what is live: nothing shared, nothing rounded",
  arena: "a plan: the same values at planned offsets in one block",
  torch: "eager PyTorch with its caching allocator",
  ort: "ONNX Runtime's CUDA provider",
  async: "eager execution on the device's own pool (cudaMallocAsync)",
  cpu: "ONNX Runtime's CPU provider, in the host's memory",
  tensorrt: "an estimate of TensorRT, by NVIDIA's documents",
  train: "training in eager PyTorch",
};

/* What each figure does not say. */
function caveats(model, name, r) {
  const notes = [];
  if (name === "ideal") notes.push("no runtime needs less without sharing buffers");
  if (name === "arena")
    notes.push(r.optimal ? "no plan needs less" : "a better plan may exist: no plan needs less than " + bytesText(r.lower_bound_bytes));
  if (name === "torch" && r.least_peak_bytes < r.locals_peak_bytes)
    notes.push("by how long Python holds results, which the file leaves open: " + bytesText(r.least_peak_bytes) + " to " +
      bytesText(r.locals_peak_bytes) + " allocated");
  if (name === "ort") {
    notes.push("by the order of initializers and the kernels that cuDNN chooses: " + bytesText(r.low_bytes) + " to " + bytesText(r.high_bytes));
    const missing = Object.keys(r.graph?.not_modelled ?? {});
    if (missing.length > 0) notes.push("rewrites that are not modelled: " + missing.join(", "));
    if (r.out_of_memory) notes.push("its gpu_mem_limit is not enough");
  }
  if (r.context_bytes?.[1] > 0) notes.push("the context is an estimate: " + bytesText(r.context_bytes[0]) + " to " + bytesText(r.context_bytes[1]));
  return notes;
}

class Runtimes {
  constructor(state) {
    this.state = state;
    this.element = make("div.runtimes");
    state.when(["model", "execution"], () => this.refresh());
  }

  refresh() {
    const model = this.state.model;
    const entries = Object.entries(model.runtimes);
    if (entries.length === 0) {
      replace(this.element, make("p.note", {}, "A size is not known, so no runtime has a figure: bind all dimensions."));
      return;
    }
    const most = Math.max(...entries.map(([, r]) => r.total_bytes));
    replace(this.element, make("div.scrolls", {}, make("table", {}, make("thead", {}, make("tr", {},
      [["runtime", ""], ["needs", ".right"], ["holds", ".right"], ["", ".wide"], ["weights", ".right.wide"], ["allocated", ".right.wide"],
       ["reserved", ".right"], ["handles", ".right.wide"]].map(([t, kind]) => make("th" + kind, { scope: "col" }, t)))),
      make("tbody", {}, entries.map(([name, r]) => this.row(name, r, most))))),
      make("details", {}, make("summary", {}, "what these figures are, and what they leave open"), make("ul.caveats", {}, entries.map(([name, r]) =>
        make("li", {}, make("b", {}, name), ": " + [ABOUT[name] ?? "", ...caveats(model, name, r)].join("; "))))), this.runs());
  }

  row(name, r, most) {
    const model = this.state.model;
    /* The figures of training are those of the plan that was chosen. */
    const chosen = (model.json.training?.plans ?? []).findIndex((p) => p.chosen);
    const plan = name === "train" && chosen >= 0 ? chosen : null;
    const e = model.executions.find((x) => x.runtime === name && x.plan === plan);
    const bar = make("i.bar");
    bar.style.width = (100 * r.total_bytes) / most + "%";
    const allocated = r.allocated_peak_bytes ?? r.used_peak_bytes ?? (e !== undefined ? e.json.allocated_peak_bytes : null);
    const reserved = r.reserved_peak_bytes ?? r.high_bytes ?? r.total_bytes;
    const title = e === undefined ? name : make("button.link", { type: "button", click: () => showExecution(this.state, e) }, name);
    const isShown = e !== undefined && this.state.execution === e;
    const judged = (model.sized.answer ?? model.json.answer).runtimes.find((x) => x.runtime === name);
    return make("tr" + (isShown ? ".chosen" : ""), { "data-runtime": name },
      make("th", { scope: "row", title: ABOUT[name] }, title),
      make("td.right", {}, judged !== undefined ? rangeText(judged.low_bytes, judged.high_bytes) : "not judged"),
      make("td.right", { "data-figure": "total_bytes" }, bytesText(r.total_bytes)), make("td.meter.wide", {}, bar),
      make("td.right.wide", {}, bytesText(r.weight_bytes)), make("td.right.wide", {}, bytesText(allocated)),
      make("td.right", {}, bytesText(reserved)), make("td.right.wide", {}, r.driver_bytes ? bytesText(r.driver_bytes) : "\u2013"));
  }

  /* What each run of a session took. */
  runs() {
    const e = this.state.model.executions.find((x) => x.runtime === "ort");
    if (e === undefined) return null;
    const runs = e.iterations();
    const most = Math.max(...runs.map((r) => r.reserved), 1);
    return make("div.runs", {}, make("h3", {}, "Runs of one ONNX Runtime session"), make("div.columns", {}, runs.map((r, k) => {
      const reserved = make("i.bar.reserved"), allocated = make("i.bar");
      reserved.style.width = (100 * r.reserved) / most + "%";
      allocated.style.width = (100 * r.allocated) / most + "%";
      return make("div.run", {}, make("b", {}, "run " + (k + 1)), make("div.pair", {}, reserved, allocated),
        make("span", {}, bytesText(r.allocated) + " allocated, " + bytesText(r.reserved) + " reserved"));
    })), make("p.note", {}, "From the second run on, what a run makes on its way is one block, packed as the first run traced it."));
  }
}

class Notes {
  constructor(state) {
    this.state = state;
    this.element = make("div.notes");
    state.when(["model"], () => this.refresh());
  }

  refresh() {
    const all = this.state.model.json.diagnostics;
    replace(this.element, all.length === 0 ? make("p.note", {}, "There is nothing to add.") : make("ul", {}, all.slice(0, 200).map((d) =>
      make("li." + (d.severity === "warning" ? "warning" : "hint"), {}, make("b", {}, d.severity + ": "),
        d.node !== "" ? [nameSpan(d.node, 50), ": "] : null, clean(d.message, 600)))),
      all.length > 200 ? make("p.note", {}, (all.length - 200) + " more are in the JSON") : null);
  }
}

/* --- Several models -------------------------------------------------------------------------------- */

/* What the runtime that is shown holds of each model, on axes of its own. */
class SideBySide {
  constructor(state, names, show) {
    this.state = state;
    const charts = state.models.map((model, k) => {
      const scene = new Scene("live memory of " + names[k], 170, (c, w, h) => this.draw(this.execution(model), c, w, h), { tabindex: null });
      state.when(["execution", "budget"], () => scene.later());
      return make("div", {}, make("button.link", { type: "button", click: () => show(model) }, names[k]), scene.canvas);
    });
    this.element = make("div.columns", {}, charts);
  }

  execution(model) {
    const shown = this.state.execution;
    return (shown === null ? undefined : model.executions.find((e) => e.runtime === shown.runtime && e.plan === null)?.decode());
  }

  draw(e, context, width, height) {
    if (e === undefined) return;
    const plot = { left: PLOT.left, right: width - PLOT.right, top: 18, bottom: height - 22 }, budget = this.state.budget;
    plot.most = withBudget(e.json.peak_bytes, budget);
    drawByteAxis(context, plot.left, plot.right, plot.top, plot.bottom, plot.most);
    context.fillStyle = slotColor("activations");
    drawArea(context, e, () => 0, plot);
    if (budget !== null)
      drawBudget(context, plot.left, plot.right, plot.top, plot.bottom - ((plot.bottom - plot.top) * budget) / plot.most, budget);
    context.fillStyle = themeColor("muted");
    context.textAlign = "left";
    context.textBaseline = "top";
    context.fillText(e.title + ": " + bytesText(e.json.peak_bytes) + " at step " + countText(e.peakStep) + " of " + countText(e.count), plot.left, height - 16);
  }
}

class Compare {
  constructor(models, names) {
    this.element = make("div.compare", { id: "changes", tabindex: -1 });
    const [before, after] = models;
    replace(this.element, this.figures(before, after, names), this.tensors(before, after));
  }

  change(a, b, text = bytesText) {
    if (a === null || a === undefined || b === null || b === undefined) return make("td.right", {}, "\u2013");
    const sign = b > a ? "more" : b < a ? "less" : "same";
    const shown = b === a ? "the same" : (b > a ? "+" : "\u2212") + text(Math.abs(b - a)) + (a > 0 ? " (" + (b > a ? "+" : "\u2212") + percentText(Math.abs(b - a), a) + ")" : "");
    return make("td.right." + sign, {}, shown);
  }

  figures(before, after, names) {
    const rows = [["weights", before.json.parameters.bytes, after.json.parameters.bytes],
                  ["peak of the graph", before.sized.peak?.bytes ?? null, after.sized.peak?.bytes ?? null]];
    for (const name of Object.keys(after.runtimes))
      if (before.runtimes[name]) rows.push([name, before.runtimes[name].total_bytes, after.runtimes[name].total_bytes]);
    return make("table.small", {}, make("thead", {}, make("tr", {}, ["", names[0], names[1], "change"].map((t, k) =>
      make("th" + (k > 0 ? ".right" : ""), { scope: "col" }, t)))), make("tbody", {}, rows.map(([what, x, y]) =>
      make("tr", {}, make("th", { scope: "row" }, what), make("td.right", {}, bytesText(x)), make("td.right", {}, bytesText(y)), this.change(x, y)))));
  }

  /* What came, went or changed its size, by name; the largest first. */
  tensors(before, after) {
    const old = new Map(before.json.tensors.map((t) => [t.name, t.bytes ?? 0]));
    const changes = [];
    for (const t of after.json.tensors) {
      const was = old.get(t.name), is = t.bytes ?? 0;
      old.delete(t.name);
      if (was === undefined) changes.push([t.name, is, "only in the second"]);
      else if (was !== is) changes.push([t.name, is - was, bytesText(was) + " \u2192 " + bytesText(is)]);
    }
    for (const [name, bytes] of old) changes.push([name, -bytes, "only in the first"]);
    changes.sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]));
    const most = Math.abs(changes[0]?.[1] ?? 0) || 1;
    return make("div.changes", {}, make("p.note", {}, countText(changes.length) + " tensors differ"), make("ol.bars.two", {},
      changes.slice(0, 30).map(([name, bytes, how]) => {
        const bar = make("i.bar." + (bytes > 0 ? "more" : "less"));
        bar.style.width = (50 * Math.abs(bytes)) / most + "%";
        return make("li", {}, make("div.line", {}, nameSpan(name, 50), make("span.size", {}, signedBytes(bytes) + ", " + how)), make("div.axis", {}, bar));
      })));
  }
}
