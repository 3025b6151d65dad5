"use strict";
/* The parts beside the charts: training, the peak, plans. */

/* --- Training ----------------------------------------------------------------------------------------- */

/* What training holds, as the text report lists it. */
class Training {
  constructor(state) {
    this.state = state;
    this.element = make("div.training");
    state.when(["model"], () => this.refresh());
  }

  refresh() {
    const t = this.state.model.json.training;
    if (t === undefined) {
      replace(this.element);
      return;
    }
    const chosen = (t.plans ?? []).find((p) => p.chosen);
    const rows = [["parameters", t.parameter_bytes, ""], ["buffers", t.buffer_bytes, "running statistics, constants"],
                  ["gradients", t.gradient_bytes, ""], ["optimizer", t.optimizer_bytes, "state"],
                  ["activations", (chosen ?? t).saved_activation_bytes, "saved for backward"],
                  ["peak", (chosen ?? t).peak_bytes, "of tensors"], ["reserved", (chosen ?? t).reserved_peak_bytes, "by PyTorch's caching allocator"]];
    replace(this.element, make("p.note", {}, "with " + clean(t.optimizer, 30) + " in PyTorch, loss: " + clean(t.loss, 60) +
        (chosen === undefined ? "" : ", checkpoints: " + planName(chosen))),
      make("table.small", {}, make("tbody", {}, rows.filter(([, bytes]) => bytes !== undefined).map(([what, bytes, note]) =>
        make("tr", {}, make("th", { scope: "row" }, what), make("td.right", { "data-training": what }, bytesText(bytes)), make("td.note", {}, note))))));
  }
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
        make("td.meter.wide", {}, bar), make("td", {}, savingText(model, s)), make("td", {}, s.everywhere ? "" : nameSpan(s.tensor ?? s.node ?? "", 60)));
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
      parts.push(e.first[i] === 0 && e.kindName(i) === "input" ? "given" : ["made by ", this.link(e.first[i], made)],
        ", ", e.last[i] === e.count - 1 ? "kept to the end" : ["last read by ", this.link(e.last[i], read)]);
    }
    const saves = this.savings(i), line = lineText(e.lineAt(e.first[i]));
    return make("div.story", {}, parts.flat(2), line === null || e.layer[i] === 0 ? null : ["; ", line], saves !== null ? make("div.saves", {}, saves) : null);
  }

  /* A node's name, which leads to its step in the charts. */
  link(step, text) {
    return [make("button.link", { type: "button", click: () => {
      this.state.set({ step, pinned: step, low: 0, high: this.state.execution.count });
      document.getElementById("timeline").scrollIntoView();
    } }, nameSpan(text.node || text.operation, 36)), " (step " + step + ")"];
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

/* "602 (1,032 if cached memory is returned)" */
function batchText(plan) {
  const most = plan.max_batch === undefined ? "none found" : countText(plan.max_batch), more = plan.max_batch_by_release;
  return more === undefined ? most : most + " (" + countText(more) + " if cached memory is returned)";
}

/* What a plan adds to a step, an estimate: "+3% to +9%". */
function timeText(time) {
  if (time?.overhead === undefined) return "?";
  return "+" + (100 * time.overhead.low).toFixed(0) + "% to +" + (100 * time.overhead.high).toFixed(0) + "%";
}

class Front {
  constructor(state, report) {
    this.state = state;
    this.report = report;
    this.element = make("div.front");
    state.when(["model", "execution", "budget"], () => this.refresh());
  }

  refresh() {
    const model = this.state.model, plans = model.json.training?.plans ?? [];
    if (plans.length === 0) {
      replace(this.element);
      return;
    }
    const isBeside = window.matchMedia("(min-width: 1181px)").matches; /* of its table: report.css */
    const width = isBeside ? 460 : plotWidth(this.element, 640), height = 300, left = 78, right = 24, top = 22, bottom = 40;
    const peaks = plans.map((p) => p.peak_bytes), over = 100 * Math.max(0.02, ...plans.map((p) => p.overhead)) * 1.08;
    /* No axis from 0: the plans are to be told apart. */
    const least = Math.min(...peaks) * 0.9, budget = this.state.budget, peak = withBudget(Math.max(...peaks), budget);
    const x = (v) => left + 10 + ((width - left - right - 10) * 100 * v) / over;
    const y = (v) => height - bottom - ((height - top - bottom) * (v - least)) / (peak - least);
    const drawing = makeSvg("svg.plot", { viewBox: "0 0 " + width + " " + height, role: "group", "aria-label": "peak over recomputation, by plan" });
    for (const tick of byteTicks(least, peak))
      drawing.append(makeSvg("line.grid", { x1: left, x2: width - right, y1: y(tick), y2: y(tick) }),
        makeSvg("text.tick.end", { x: left - 8, y: y(tick) + 4 }, bytesText(tick)));
    for (const tick of ticks(0, over)) drawing.append(makeSvg("text.tick.middle", { x: x(tick / 100), y: height - bottom + 18 }, tick + "%"));
    drawing.append(makeSvg("text.tick.middle", { x: (left + width) / 2, y: height - 4 }, "multiply-accumulates that run again"));
    if (budget !== null) {
      const isBeyond = budget > peak, at = isBeyond ? top - 6 : y(budget);
      if (budget >= least) drawing.append(makeSvg("line.budget" + (isBeyond ? ".beyond" : ""), { x1: left, x2: width - right, y1: at, y2: at }),
        makeSvg("text.tick.end", { x: width - right, y: at - 4 }, "budget " + bytesText(budget) + (isBeyond ? ", beyond this chart" : "")));
    }
    this.drawFrontLine(drawing, plans, x, y);
    plans.forEach((p, k) => drawing.append(this.dot(p, k, x(p.overhead), y(p.peak_bytes))));
    this.label(drawing, plans, x, y, width - right);
    const focused = this.element.contains(document.activeElement) ? document.activeElement : null;
    replace(this.element, drawing, make("div.scrolls", {}, this.table(plans)));
    if (focused !== null) this.element.querySelector(focused.localName + '[data-plan="' + focused.dataset.plan + '"]')?.focus();
  }

  /* Beside its dot each plan's name and id, as long as there is room. */
  label(drawing, plans, x, y, right) {
    const taken = plans.map((p) => ({ at: y(p.peak_bytes) + 4, from: x(p.overhead) - 8, wide: 16 }));
    for (const p of plans) {
      const text = planName(p) + " " + p.id, wide = 6 * text.length, isLeft = x(p.overhead) + 12 + wide > right;
      const from = isLeft ? x(p.overhead) - 12 - wide : x(p.overhead) + 12;
      const at = [4, -10, 18, -24, 32].map((by) => y(p.peak_bytes) + by)
        .find((v) => !taken.some((t) => Math.abs(t.at - v) < 12 && t.from < from + wide && from < t.from + t.wide));
      if (at === undefined) continue;
      taken.push({ at, from, wide });
      drawing.append(makeSvg("text.tick" + (isLeft ? ".end" : ""), { x: isLeft ? from + wide : from, y: at }, text));
    }
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
    const text = planName(p) + " " + p.id + ": peak " + bytesText(p.peak_bytes) + ", " + (100 * p.overhead).toFixed(1) + "% again";
    const dot = makeSvg("circle.plan" + (isChosen ? ".chosen" : ""), { cx, cy, r: isChosen ? 8 : 6, tabindex: 0, role: "button",
      "aria-label": text, "aria-pressed": String(isChosen), "data-plan": k, click: () => this.choose(k),
      keydown: (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        this.choose(k);
      } });
    dot.append(makeSvg("title", {}, text));
    return dot;
  }

  /* As --plan-out writes it, for --plan. */
  planFile(p) {
    const { id, name, peak_bytes, reserved_peak_bytes, recompute_macs, overhead, offloaded_bytes, apply } = p;
    return JSON.stringify({ plan_version: 1, generator: this.report.generator, model: this.state.model.path, id, name, peak_bytes, reserved_peak_bytes,
                            recompute_macs, overhead, offloaded_bytes: offloaded_bytes ?? 0, apply }, null, 2);
  }

  /* The same list of plans, of which that one is taken. */
  commandText(p) {
    const words = (this.report.command ?? ["report", this.state.model.path]).slice();
    const at = words.findIndex((w) => /^--checkpoint(=|$)/.test(w)), of = (list) => list.split("@")[0] + "@" + p.id;
    if (at < 0) return commandText({ command: words }, "--checkpoint", of("all"));
    if (words[at].includes("=")) words[at] = of(words[at]);
    else words[at + 1] = of(words[at + 1]);
    return commandText({ command: words });
  }

  table(plans) {
    const searched = plans.some((p) => p.max_batch > 0 || p.max_batch_by_release > 0);
    const timed = plans.some((p) => p.time?.overhead !== undefined);
    const columns = ["plan", "id", "peak", "reserved", "again"].concat(timed ? ["time"] : [], ["segments"], searched ? ["max batch"] : [], [""]);
    const rows = plans.map((p, k) => {
      const isChosen = this.state.execution?.runtime === "train" && this.state.execution.plan === k;
      const name = this.execution(k) !== undefined
        ? make("button.link", { type: "button", "data-plan": k, click: () => this.choose(k) }, planName(p)) : planName(p);
      return make("tr" + (isChosen ? ".chosen" : ""), {}, make("td", {}, name), make("td", {}, p.id), make("td.right", {}, bytesText(p.peak_bytes)),
        make("td.right", {}, bytesText(p.reserved_peak_bytes)), make("td.right", {}, (100 * p.overhead).toFixed(1) + "%"),
        timed ? make("td.right", {}, timeText(p.time)) : null, make("td.right", {}, countText(p.segments.length)), searched ? make("td.batch", {}, batchText(p)) : null,
        make("td.copies", {}, copyButton("plan", this.planFile(p)), copyButton("command", this.commandText(p))));
    });
    return make("table.small", {}, make("thead", {}, make("tr", {}, columns.map((t, k) =>
      make("th" + (k > 1 && t !== "max batch" ? ".right" : ""), { scope: "col" }, t)))), make("tbody", {}, rows));
  }
}
