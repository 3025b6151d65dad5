"use strict";
/* The parts beside the charts: does it fit, the peak, modules, plans, runtimes, two models compared. */

/* --- Does it fit ----------------------------------------------------------------------------------- */

const USUAL_GPUS = ["T4", "RTX 4090", "A100 40GB", "H100", "H200"];

class Verdict {
  constructor(state, report) {
    this.state = state;
    this.gpus = report.gpus ?? [];
    this.element = make("div.verdict");
    state.when(["model", "execution"], () => this.refresh());
    state.when(["budget"], () => this.paint(this.formula));
  }

  /* Budgets that were asked for, or else usual GPUs. */
  devices() {
    const json = this.state.model.json;
    const asked = json.fits ?? (json.fit ? [json.fit] : []);
    if (asked.length > 0)
      return asked.map((fit) => ({ name: clean(fit.device ?? "budget", 32), usable: fit.usable_bytes, fit }));
    return this.gpus.filter((g) => USUAL_GPUS.includes(g.name)).map((g) => ({ name: g.name, usable: g.usable_bytes }))
      .sort((a, b) => a.usable - b.usable);
  }

  refresh() {
    const model = this.state.model;
    const formula = model.json.formula;
    this.sizes = (model.json.free_dims ?? []).map((dim) => {
      const size = model.json.example?.bindings?.[dim.name];
      return typeof size === "number" ? size : 1;
    });
    const dims = model.json.free_dims ?? [];
    const hasFormula = formula !== undefined && formula.peak_bytes_largest_of.length > 0 &&
      formulaPeak(formula, this.sizes) !== null;
    this.bars = make("div.gpus");
    replace(this.element, hasFormula ? this.sliders(dims) : null, this.bars);
    this.paint(hasFormula ? formula : null);
  }

  sliders(dims) {
    this.says = make("output.says", { "aria-live": "polite" });
    const rows = dims.map((dim, k) => {
      /* Powers of two, and what lies between them. */
      const slider = make("input", { type: "range", min: 0, max: 56, step: 1, "aria-label": clean(dim.name, 60), "data-dim": k });
      const number = make("input.number", { type: "number", min: 1, max: 1048576, "aria-label": clean(dim.name, 60) + ", exact" });
      slider.value = String(Math.round(4 * Math.log2(this.sizes[k])));
      number.value = String(this.sizes[k]);
      const take = (size) => {
        this.sizes[k] = Math.max(1, Math.min(1048576, Math.round(size) || 1));
        this.paint(this.state.model.json.formula);
      };
      slider.addEventListener("input", () => {
        take(2 ** (Number(slider.value) / 4));
        number.value = String(this.sizes[k]);
        slider.setAttribute("aria-valuetext", number.value);
      });
      number.addEventListener("input", () => {
        take(Number(number.value));
        slider.value = String(Math.round(4 * Math.log2(this.sizes[k])));
      });
      return make("label.dim", {}, nameSpan(dim.name, 30), slider, number);
    });
    return make("div.sliders", {}, rows, this.says);
  }

  /* What stands in the bar: of a runtime what it holds, or the formula's weights and peak. */
  parts(formula) {
    const model = this.state.model;
    if (formula !== null) {
      const peak = formulaPeak(formula, this.sizes);
      const weights = formula.weight_bytes;
      if (this.says) {
        const step = peak === null ? null : model.json.nodes[peak.step];
        replace(this.says, peak === null ? "too large to tell" : [make("b.total", { "data-figure": "formula" }, bytesText(weights + peak.bytes)),
          " = weights " + bytesText(weights) + " + peak " + bytesText(peak.bytes) + " at ", nameSpan(step ? step.name || step.op_type : "", 40)]);
      }
      return peak === null ? null : { parts: [["weights", weights, "weights"], ["peak", peak.bytes, "activations"]], low: weights + peak.bytes,
        high: weights + peak.bytes, what: "weights and the graph's own peak by the formula; runtimes add their own" };
    }
    const e = this.state.execution;
    const name = e?.runtime === "train" ? "train" : e?.runtime;
    const r = name === "train" ? trainingTotals(model.json, e.plan) : model.runtimes[name];
    if (r === undefined || r === null) return null;
    const weights = r.weight_bytes ?? 0, held = r.total_bytes, driver = r.driver_bytes ?? 0;
    const context = r.context_bytes ?? [0, 0];
    const isChosen = name !== "train" || e.plan === null || model.json.training.plans[e.plan].chosen === true;
    return { judged: isChosen ? name : null, parts: [["weights", weights, "weights"], ["in addition to weights", held - weights, "activations"],
                     ["handles of libraries", driver, "temporary"], ["context, at least", context[0], "rest"]],
             range: context[1] - context[0], low: held + driver + context[0], high: held + driver + context[1],
             what: name === "train" ? "training, as PyTorch's allocator reserves it" : name + ", with its context" };
  }

  paint(formula) {
    this.formula = formula;
    const total = this.parts(formula);
    if (total === null) {
      replace(this.bars, make("p.note", {}, "A size is not known: bind all dimensions."));
      return;
    }
    const rows = this.devices().map((gpu) => {
      /* Where the report judged this device, by its own libraries, that is what counts. */
      const judged = gpu.fit?.runtimes?.[total.judged]?.fits;
      const fits = judged ?? total.high <= gpu.usable, mayFit = total.low <= gpu.usable;
      const whole = Math.max(gpu.usable, total.high);
      const track = make("div.track");
      for (const [title, bytes, color] of total.parts) this.add(track, title, bytes, whole, slotColor(color));
      if (total.range > 0) this.add(track, "context, at most", total.range, whole, null).classList.add("uncertain");
      const limit = make("i.limit");
      limit.style.left = (100 * gpu.usable) / whole + "%";
      track.append(limit);
      const isWhole = formula === null, free = gpu.usable - total.high;
      const verdict = fits ? (isWhole ? "fits" : "these fit") + (free >= 0 ? ", " + bytesText(free) + " free" : "")
        : mayFit ? "may fit" : "does not fit, " + bytesText(total.low - gpu.usable) + " too much";
      const most = gpu.fit?.max_batch ?? gpu.fit?.max_size;
      const isLine = this.state.budget === gpu.usable;
      const line = make("button.device", { type: "button", "aria-pressed": String(isLine), title: "a line in the chart below",
        click: () => this.state.set({ budget: isLine ? null : gpu.usable }) }, gpu.name, make("small", {}, bytesText(gpu.usable)));
      return make("div.gpu." + (fits ? "fits" : mayFit ? "may" : "over"), {}, line, track,
        make("span.says", {}, make("i.sign", { "aria-hidden": "true" }, fits ? "\u2713" : mayFit ? "?" : "\u2717"), verdict,
          most !== undefined ? make("small", {}, "largest: " + countText(most)) : null));
    });
    const sum = total.low === total.high ? bytesText(total.low) : bytesText(total.low) + " to " + bytesText(total.high);
    const keys = total.parts.filter(([, bytes]) => bytes > 0).map(([title, , color]) => {
      const swatch = make("i.swatch");
      swatch.style.background = slotColor(color);
      return make("span.key", {}, swatch, title);
    });
    if (total.range > 0) keys.push(make("span.key", {}, make("i.swatch.uncertain"), "context, at most"));
    replace(this.bars, make("p.note.sum", {}, formula === null ? make("b.total", { "data-figure": "total" }, sum) : null,
      make("span", {}, total.what), keys), rows);
  }

  add(track, title, bytes, whole, color) {
    const part = make("i.part", { title: title + ": " + bytesText(bytes) });
    part.style.width = (100 * bytes) / whole + "%";
    if (color !== null) part.style.background = color;
    track.append(part);
    return part;
  }
}

/* Of training, without and with a plan, what the table of runtimes has of the others. */
function trainingTotals(json, plan) {
  const t = json.training;
  if (t === undefined) return null;
  const p = plan === null || plan === undefined ? t : t.plans[plan];
  const context = Object.values(json.runtimes ?? {}).find((r) => r.context_bytes)?.context_bytes ?? [0, 0];
  return { weight_bytes: t.parameter_bytes, total_bytes: p.reserved_peak_bytes, driver_bytes: t.driver_bytes, context_bytes: context,
           allocated_peak_bytes: p.allocated_peak_bytes, reserved_peak_bytes: p.reserved_peak_bytes, tensor_peak_bytes: p.peak_bytes };
}

/* --- The peak set ---------------------------------------------------------------------------------- */

/* What a saving changes, as the text report says it. */
function savingText(model, s) {
  const node = model.json.nodes.find((n) => n.name === s.node);
  const op = (s.everywhere ? "every " : "") + clean(node?.op_type ?? "input", 40);
  switch (s.kind) {
    case "16-bit": return op + " in 16 bits";
    case "in-place": return op + " in place of its input";
    case "recompute": return op + " computed again" + (s.more_macs > 0 ? " (" + scaledText(s.more_macs) + " multiply-accumulates)" : "");
    case "later": return op + " just before it is read";
    case "earlier": return op + " as soon as it can run";
    case "split-batch": return "batch as " + s.parts + " parts of " + s.batch + " (" + countText(s.more_nodes) + " more runs of nodes)";
    default: return clean(s.kind, 40);
  }
}

class PeakSet {
  constructor(state) {
    this.state = state;
    this.note = make("p.note");
    this.list = make("ol.bars.linked");
    this.help = make("div.help");
    this.element = make("div", {}, this.note, this.list, this.help);
    state.when(["execution", "mode"], () => this.refresh());
    state.when(["model"], () => this.showSavings());
    state.when(["buffer"], () => this.mark());
  }

  refresh() {
    const e = this.state.execution;
    if (e === null) return;
    const step = e.peakStep, all = e.liveAt(step), rows = all.filter((i) => e.layer[i] !== 0), shown = rows.slice(0, 18);
    const fixed = all.filter((i) => e.layer[i] === 0), sum = (list) => list.reduce((bytes, i) => bytes + e.bytes[i], 0);
    const text = e.stepText(step);
    replace(this.note, bytesText(e.live[step]) + " at step " + step.toLocaleString("en-US") + ", ", make("b", {}, text.operation), " ",
      nameSpan(text.node, 50), ": " + bytesText(sum(fixed)) + " of it in " + countText(fixed.length) + " weights, and " +
        countText(rows.length) + " other buffers, largest first");
    const most = shown.length > 0 ? e.bytes[shown[0]] : 1;
    replace(this.list, shown.map((i) => bufferBar(this.state, i, most, this.story(i))),
      rows.length > shown.length ? make("li.note", {}, countText(rows.length - shown.length) + " more, " +
        bytesText(sum(rows.slice(shown.length)))) : null);
  }

  /* Single changes, each analysed by itself, of the graph's own peak. */
  showSavings() {
    const model = this.state.model, savings = model.json.savings ?? [];
    if (savings.length === 0) {
      replace(this.help);
      return;
    }
    const most = savings[0].saved_bytes, peak = model.json.peak.bytes;
    replace(this.help, make("h3", {}, "Possible savings, each by itself, of the graph's own peak"), make("table.small", {}, make("tbody", {}, savings.map((s) => {
      const bar = make("i.bar.less");
      bar.style.width = (100 * s.saved_bytes) / most + "%";
      return make("tr", {}, make("td.right", {}, "\u2212" + bytesText(s.saved_bytes)), make("td.right", {}, percentText(s.saved_bytes, peak)),
        make("td.meter", {}, bar), make("td", {}, savingText(model, s)), make("td", {}, s.everywhere ? "" : nameSpan(s.tensor ?? s.node ?? "", 60)));
    }))));
  }

  /* Who makes it, who reads it last, what would save it. */
  story(i) {
    const e = this.state.execution;
    const parts = [e.kindName(i) + ", "];
    if (e.first[i] === 0 && e.last[i] === e.count - 1) parts.push("there all the time");
    else if (e.transient[i]) parts.push("while ", nameSpan(e.nodeName(e.first[i]) || e.operation(e.first[i]), 36), " runs");
    else {
      const made = e.stepText(e.first[i]), read = e.stepText(e.last[i]);
      parts.push(e.first[i] === 0 && e.kindName(i) === "input" ? "given" : ["made by ", nameSpan(made.node || made.operation, 36)],
        " (step " + e.first[i] + "), ", e.last[i] === e.count - 1 ? "kept to the end" : ["last read by ", nameSpan(read.node || read.operation, 36),
          " (step " + e.last[i] + ")"]);
    }
    const saves = this.savings(i);
    return make("div.story", {}, parts.flat(), saves !== null ? make("div.saves", {}, saves) : null);
  }

  savings(i) {
    const e = this.state.execution;
    const model = this.state.model, name = e.bufferName(i);
    const found = (model.json.savings ?? []).find((s) => s.tensor === name && !s.everywhere);
    if (found !== undefined && e.runtime !== "train")
      return savingText(model, found) + ": " + bytesText(found.saved_bytes) + " less at the graph's own peak";
    const plans = this.state.model.json.training?.plans ?? [];
    const isKept = e.runtime === "train" && e.layer[i] === 3 && e.phase[e.first[i]] === 0 && e.phase[e.last[i]] === 2;
    if (isKept && plans.length > 0) {
      const least = plans.reduce((a, b) => (b.peak_bytes < a.peak_bytes ? b : a));
      return "kept for backward: checkpointing makes it anew (" + clean(least.name, 30) + ": " + bytesText(least.peak_bytes) + ")";
    }
    return isKept ? "kept for backward: --checkpoint makes it anew" : null;
  }

  mark() {
    for (const item of this.list.children)
      item.classList.toggle("marked", item.dataset.buffer !== undefined && Number(item.dataset.buffer) === this.state.buffer);
  }
}

/* --- Checkpointing plans --------------------------------------------------------------------------- */

class Front {
  constructor(state) {
    this.state = state;
    this.element = make("div.front");
    state.when(["model", "execution"], () => this.refresh());
  }

  refresh() {
    const model = this.state.model, plans = model.json.training?.plans ?? [];
    if (plans.length === 0) {
      replace(this.element);
      return;
    }
    const width = 640, height = 300, left = 78, right = 24, top = 16, bottom = 40;
    const peaks = plans.map((p) => p.peak_bytes), over = Math.max(0.02, ...plans.map((p) => p.overhead)) * 1.08;
    /* No axis from 0: the plans are to be told apart. */
    const peak = Math.max(...peaks) * 1.04, least = Math.min(...peaks) * 0.9;
    const x = (v) => left + 10 + ((width - left - right - 10) * v) / over;
    const y = (v) => height - bottom - ((height - top - bottom) * (v - least)) / (peak - least);
    const drawing = makeSvg("svg.plot", { viewBox: "0 0 " + width + " " + height, role: "group", "aria-label": "peak over recomputation, by plan" });
    for (const tick of byteTicks(peak - least).map((t) => t + least))
      drawing.append(makeSvg("line.grid", { x1: left, x2: width - right, y1: y(tick), y2: y(tick) }),
        makeSvg("text.tick.end", { x: left - 8, y: y(tick) + 4 }, bytesText(tick)));
    for (let k = 0; k <= 4; k++)
      drawing.append(makeSvg("text.tick.middle", { x: x((over * k) / 4), y: height - bottom + 18 }, ((100 * over * k) / 4).toFixed(0) + "%"));
    drawing.append(makeSvg("text.tick.middle", { x: (left + width) / 2, y: height - 4 }, "multiply-accumulates that run again"));
    this.drawFrontLine(drawing, plans, x, y);
    plans.forEach((p, k) => drawing.append(this.dot(p, k, x(p.overhead), y(p.peak_bytes))));
    replace(this.element, drawing, this.table(plans));
  }

  drawFrontLine(drawing, plans, x, y) {
    const sorted = plans.slice().sort((a, b) => a.overhead - b.overhead || a.peak_bytes - b.peak_bytes);
    let least = Infinity, path = "";
    for (const p of sorted) {
      if (p.peak_bytes >= least) continue;
      path += path === "" ? "M" + x(p.overhead) + " " + y(p.peak_bytes) : "H" + x(p.overhead) + "V" + y(p.peak_bytes);
      least = p.peak_bytes;
    }
    drawing.append(makeSvg("path.step", { d: path }));
  }

  execution(plan) {
    return this.state.model.executions.find((e) => e.runtime === "train" && e.plan === plan);
  }

  choose(plan) {
    const e = this.execution(plan);
    if (e !== undefined) showExecution(this.state, e);
  }

  dot(p, k, cx, cy) {
    const isChosen = this.state.execution?.runtime === "train" && this.state.execution.plan === k;
    const text = planName(p) + ": peak " + bytesText(p.peak_bytes) + ", " + (100 * p.overhead).toFixed(1) + "% again";
    const dot = makeSvg("circle.plan" + (isChosen ? ".chosen" : ""), { cx, cy, r: isChosen ? 8 : 6, tabindex: 0, role: "button",
      "aria-label": text, "aria-pressed": String(isChosen), "data-plan": k, click: () => this.choose(k),
      keydown: (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        this.choose(k);
        this.element.querySelector('[data-plan="' + k + '"]')?.focus();
      } });
    dot.append(makeSvg("title", {}, text));
    return dot;
  }

  table(plans) {
    const rows = plans.map((p, k) => {
      const isChosen = this.state.execution?.runtime === "train" && this.state.execution.plan === k;
      const name = this.execution(k) !== undefined
        ? make("button.link", { type: "button", click: () => this.choose(k) }, planName(p)) : planName(p);
      return make("tr" + (isChosen ? ".chosen" : ""), {}, make("td", {}, name), make("td.right", {}, bytesText(p.peak_bytes)),
        make("td.right", {}, bytesText(p.reserved_peak_bytes)), make("td.right", {}, (100 * p.overhead).toFixed(1) + "%"),
        make("td.right", {}, countText(p.segments.length)));
    });
    return make("table.small", {}, make("thead", {}, make("tr", {}, ["plan", "peak", "reserved", "again", "segments"].map((t, k) =>
      make("th" + (k > 0 ? ".right" : ""), { scope: "col" }, t)))), make("tbody", {}, rows));
  }
}
