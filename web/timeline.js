"use strict";
/* Live memory over the steps: the stack, the minimap with its brush, what stands at a step. */

const PLOT = { left: 78, right: 14, top: 26, bottom: 26 };

class Timeline {
  constructor(state, live) {
    this.state = state;
    this.live = live; /* says aloud what was pinned */
    this.scene = new Scene("live memory over the steps", 330, (c, w, h) => this.draw(c, w, h),
                           { role: "slider", "aria-valuemin": 0 });
    this.mini = new Scene("minimap: drag to choose steps", 54, (c, w, h) => this.drawMini(c, w, h));
    this.tip = make("div.tip", { hidden: true });
    this.details = make("div.details");
    this.legend = make("div.legend");
    this.element = make("div.timeline", {},
      make("div.charts", {}, make("div.stage", {}, this.scene.canvas, this.tip), this.mini.canvas, this.legend),
      this.details);
    this.listen();
    state.when(["execution", "mode", "low", "high", "weights", "reserved", "budget"], () => this.refresh());
    state.when(["step", "pinned", "buffer"], () => this.scene.later());
    state.when(["pinned", "execution", "step", "weights", "mode"], () => this.showDetails());
    state.when(["execution"], () => this.mini.later());
    state.when(["low", "high"], () => this.mini.later());
  }

  get execution() {
    return this.state.execution;
  }

  /* --- Where things are ------------------------------------------------------------------------ */

  x(step, width) {
    const { low, high } = this.state;
    return PLOT.left + ((width - PLOT.left - PLOT.right) * (step - low)) / (high - low);
  }

  stepAt(x) {
    const { low, high } = this.state;
    const part = (x - PLOT.left) / (this.scene.width - PLOT.left - PLOT.right);
    return Math.max(low, Math.min(high - 1, low + Math.floor(part * (high - low))));
  }

  bands() {
    const stack = this.execution.stack(this.state.mode);
    return this.state.weights ? stack : stack.filter((row) => row.color !== "weights");
  }

  base(step) {
    return this.state.weights ? 0 : this.execution.weightsAt(step);
  }

  /* --- Drawing --------------------------------------------------------------------------------- */

  refresh() {
    if (this.execution === null) return;
    this.sampled = null;
    this.scene.later();
    this.showLegend();
    this.scene.canvas.setAttribute("aria-valuemax", String(this.execution.count - 1));
  }

  sample(width) {
    const columns = Math.max(1, Math.floor(width - PLOT.left - PLOT.right));
    const { low, high } = this.state;
    if (this.sampled === null || this.sampled.columns !== columns)
      this.sampled = { columns, steps: sampleSteps(this.execution.live, low, high, columns) };
    return this.sampled.steps;
  }

  draw(context, width, height) {
    const e = this.execution;
    if (e === null) return;
    const steps = this.sample(width), bands = this.bands();
    const right = width - PLOT.right, bottom = height - PLOT.bottom;
    const reserved = this.reservedAt(steps);
    let most = 1;
    for (let c = 0; c < steps.length; c++) {
      most = Math.max(most, e.live[steps[c]] - this.base(steps[c]));
      if (this.state.reserved) most = Math.max(most, reserved[c] - this.base(steps[c]));
    }
    const budget = this.state.budget !== null ? this.state.budget - this.base(0) : null;
    most = withBudget(most, budget);
    this.most = most;
    const y = (bytes) => bottom - ((bottom - PLOT.top) * bytes) / most;
    const { mode, low, high, weights } = this.state;
    const key = [e.model.index, e.index, mode, low, high, weights, this.state.reserved, this.state.budget].join();
    this.scene.cached(context, key, (pen) => {
      this.drawPhases(pen, width, bottom);
      drawByteAxis(pen, PLOT.left, right, PLOT.top, bottom, most);
      this.drawBands(pen, bands, steps, width, y);
      if (this.state.reserved) this.drawReserved(pen, reserved, steps, width, y);
      if (budget !== null) drawBudget(pen, PLOT.left, right, PLOT.top, y(budget), this.state.budget);
      this.drawPeak(pen, width, y);
      this.drawStepAxis(pen, width, bottom);
    });
    this.drawChosen(context, bands, steps, width, y);
    this.drawCursor(context, width, bottom, y);
  }

  edges(steps, width, c) {
    const inner = width - PLOT.left - PLOT.right;
    return PLOT.left + (inner * c) / steps.length;
  }

  /* The outline of a band that stands on `below`, along the columns in which it is there. */
  trace(context, band, below, steps, width, y) {
    const n = steps.length;
    context.beginPath();
    for (let from = 0; from < n;) {
      if (band.bytes[steps[from]] <= 0) {
        from++;
        continue;
      }
      let end = from;
      while (end < n && band.bytes[steps[end]] > 0) end++;
      context.moveTo(this.edges(steps, width, from), y(below[from]));
      for (let c = from; c < end; c++) {
        const at = y(below[c] + band.bytes[steps[c]]);
        context.lineTo(this.edges(steps, width, c), at);
        context.lineTo(this.edges(steps, width, c + 1), at);
      }
      for (let c = end - 1; c >= from; c--) {
        context.lineTo(this.edges(steps, width, c + 1), y(below[c]));
        context.lineTo(this.edges(steps, width, c), y(below[c]));
      }
      context.closePath();
      from = end;
    }
  }

  drawBands(context, bands, steps, width, y) {
    const below = new Float64Array(steps.length), paper = themeColor("paper");
    for (const band of bands) {
      this.trace(context, band, below, steps, width, y);
      context.fillStyle = slotColor(band.color);
      context.fill();
      if (band.buffer !== undefined || band.module !== undefined) {
        context.strokeStyle = paper;
        context.lineWidth = 0.4;
        context.stroke();
      }
      for (let c = 0; c < steps.length; c++) below[c] += band.bytes[steps[c]];
    }
  }

  /* The buffer that is pointed at, here or elsewhere: its band, and when it lives as a bar above the plot. */
  drawChosen(context, bands, steps, width, y) {
    const i = this.state.buffer, e = this.execution, { low, high } = this.state;
    if (i < 0 || i >= e.n || e.last[i] < low || e.first[i] >= high) return;
    const band = bands.find((b) => b.buffer === i);
    if (band !== undefined) {
      const below = new Float64Array(steps.length);
      for (const b of bands.slice(0, bands.indexOf(band)))
        for (let c = 0; c < steps.length; c++) below[c] += b.bytes[steps[c]];
      this.trace(context, band, below, steps, width, y);
      context.strokeStyle = themeColor("ink");
      context.lineWidth = 2;
      context.stroke();
    }
    const from = this.x(Math.max(low, e.first[i]), width), to = this.x(Math.min(high, e.last[i] + 1), width);
    context.fillStyle = themeColor("accent");
    context.fillRect(from, PLOT.top - 8, Math.max(2, to - from), 4);
  }

  reservedAt(steps) {
    const e = this.execution, { low, high } = this.state, n = steps.length;
    const most = new Float64Array(n);
    for (let c = 0; c < n; c++) {
      const from = low + Math.floor((c * (high - low)) / n), end = low + Math.floor(((c + 1) * (high - low)) / n);
      for (let s = from; s < Math.max(end, from + 1); s++) most[c] = Math.max(most[c], e.reserved[s]);
    }
    return most;
  }

  drawReserved(context, reserved, steps, width, y) {
    context.beginPath();
    for (let c = 0; c < steps.length; c++) {
      const at = y(reserved[c] - this.base(steps[c]));
      if (c === 0) context.moveTo(this.edges(steps, width, 0), at);
      else context.lineTo(this.edges(steps, width, c), at);
      context.lineTo(this.edges(steps, width, c + 1), at);
    }
    context.strokeStyle = themeColor("ink");
    context.lineWidth = 1.4;
    context.setLineDash([5, 3]);
    context.stroke();
    context.setLineDash([]);
  }

  drawPhases(context, width, bottom) {
    const e = this.execution, { low, high } = this.state;
    if (e.phase[e.count - 1] === 0 && e.iteration[e.count - 1] === 0) return;
    const names = this.state.model.timelines.phases;
    let from = low;
    for (let s = low + 1; s <= high; s++) {
      if (s < high && e.phase[s] === e.phase[from] && e.iteration[s] === e.iteration[from]) continue;
      const x0 = this.x(from, width), x1 = this.x(s, width);
      if (e.runtime === "train" ? e.phase[from] === 2 : e.iteration[from] % 2 === 1) {
        context.fillStyle = themeColor("shade");
        context.fillRect(x0, PLOT.top - 18, x1 - x0, bottom - PLOT.top + 18);
      }
      const run = e.runtime === "train" ? names[e.phase[from]] : "run " + (e.iteration[from] + 1);
      const text = e.runtime === "train" && e.phase[from] === 0 ? "iteration " + (e.iteration[from] + 1) + ": " + run : run;
      context.fillStyle = themeColor("muted");
      context.textAlign = "left";
      context.textBaseline = "top";
      if (context.measureText(text).width + 8 < x1 - x0) context.fillText(text, x0 + 4, 4);
      else if (context.measureText(run).width + 8 < x1 - x0) context.fillText(run, x0 + 4, 4);
      from = s;
    }
  }

  drawPeak(context, width, y) {
    const e = this.execution, step = e.peakStep;
    if (step < this.state.low || step >= this.state.high) return;
    const x = this.x(step + 0.5, width), at = y(e.live[step] - this.base(step));
    context.fillStyle = themeColor("bad");
    context.beginPath();
    context.arc(x, at, 4.5, 0, 7);
    context.fill();
    context.strokeStyle = themeColor("paper");
    context.lineWidth = 1.5;
    context.stroke();
    const base = this.base(step);
    const short = "peak " + bytesText(e.live[step]), whole = short + (base > 0 ? ", " + bytesText(e.live[step] - base) + " without the weights" : "");
    context.font = "600 12px system-ui, sans-serif";
    const fits = (text) => context.measureText(text).width + 14 < Math.max(x, width - x);
    const text = fits(whole) ? whole : short, isLeft = x + context.measureText(text).width + 14 > width;
    context.textAlign = isLeft ? "right" : "left";
    context.textBaseline = "bottom";
    context.lineWidth = 4;
    context.strokeStyle = themeColor("paper");
    context.strokeText(text, isLeft ? x - 8 : x + 8, at - 3);
    context.fillStyle = themeColor("ink");
    context.fillText(text, isLeft ? x - 8 : x + 8, at - 3);
    context.font = "11px system-ui, sans-serif";
  }

  drawStepAxis(context, width, bottom) {
    const { low, high } = this.state;
    context.fillStyle = themeColor("muted");
    context.textAlign = "center";
    context.textBaseline = "top";
    for (const s of ticks(low, high - 1).filter(Number.isInteger))
      context.fillText(s.toLocaleString("en-US"), Math.min(this.x(s + 0.5, width), width - context.measureText(s.toLocaleString("en-US")).width / 2), bottom + 7);
    context.textAlign = "right";
    context.fillText("step", PLOT.left - 8, bottom + 7);
  }

  drawCursor(context, width, bottom, y) {
    const e = this.execution;
    for (const [step, isPinned] of [[this.state.step, false], [this.state.pinned, true]]) {
      if (step === null || step < this.state.low || step >= this.state.high) continue;
      const x = Math.round(this.x(step + 0.5, width)) + 0.5;
      context.strokeStyle = themeColor(isPinned ? "accent" : "ink");
      context.lineWidth = isPinned ? 2 : 1;
      context.globalAlpha = isPinned ? 1 : 0.5;
      context.beginPath();
      context.moveTo(x, PLOT.top - 4);
      context.lineTo(x, bottom);
      context.stroke();
      context.globalAlpha = 1;
      context.fillStyle = themeColor(isPinned ? "accent" : "ink");
      context.beginPath();
      context.arc(x, y(e.live[step] - this.base(step)), 3, 0, 7);
      context.fill();
    }
  }

  drawMini(context, width, height) {
    const e = this.execution;
    if (e === null) return;
    const inner = width - PLOT.left - PLOT.right;
    let most = 1;
    for (let s = 0; s < e.count; s++) most = Math.max(most, e.live[s] - this.base(s));
    context.fillStyle = slotColor("rest");
    drawArea(context, e, (s) => this.base(s), { left: PLOT.left, right: PLOT.left + inner, top: 5, bottom: height - 3, most });
    const x0 = PLOT.left + (inner * this.state.low) / e.count, x1 = PLOT.left + (inner * this.state.high) / e.count;
    context.fillStyle = themeColor("veil");
    context.fillRect(PLOT.left, 0, x0 - PLOT.left, height);
    context.fillRect(x1, 0, PLOT.left + inner - x1, height);
    context.strokeStyle = themeColor("accent");
    context.lineWidth = 1.5;
    context.strokeRect(x0 + 0.5, 1, Math.max(2, x1 - x0 - 1), height - 2);
    context.fillStyle = themeColor("accent");
    for (const x of [x0, x1]) context.fillRect(x - 2.5, height / 2 - 9, 5, 18);
  }

  /* --- What is said ---------------------------------------------------------------------------- */

  showLegend() {
    const rows = this.bands().slice().reverse();
    replace(this.legend, rows.slice(0, 40).map((row) => {
      const swatch = make("i.swatch");
      swatch.style.background = slotColor(row.color);
      const item = make("button.key", { type: "button", tabindex: -1,
        mouseenter: () => { if (row.buffer !== undefined) this.state.set({ buffer: row.buffer }); },
        mouseleave: () => { if (row.buffer !== undefined) this.state.set({ buffer: -1 }); } }, swatch, nameSpan(row.name, 34));
      return item;
    }));
    if (this.state.reserved) this.legend.append(make("span.key", {}, make("i.dash"), "reserved"));
  }

  stepSummary(step) {
    const e = this.execution, text = e.stepText(step);
    return "step " + step.toLocaleString("en-US") + ", " + text.operation +
      (text.phase !== "" ? " (" + text.phase + ")" : "") + ": " + bytesText(e.live[step]) + " live, " +
      bytesText(e.allocated[step]) + " allocated, " + bytesText(e.reserved[step]) + " reserved";
  }

  showDetails() {
    const e = this.execution;
    if (e === null) return;
    const step = this.state.pinned ?? this.state.step;
    const text = e.stepText(step);
    const rows = e.liveAt(step).filter((i) => this.state.weights || e.layer[i] !== 0);
    const most = rows.length > 0 ? e.bytes[rows[0]] : 1;
    this.scene.canvas.setAttribute("aria-valuenow", String(step));
    this.scene.canvas.setAttribute("aria-valuetext", this.stepSummary(step));
    replace(this.details,
      make("h3", {}, (this.state.pinned !== null ? "Pinned: step " : "Step ") + step.toLocaleString("en-US"),
        text.phase !== "" ? make("span.phase", {}, text.phase) : null),
      make("p.op", {}, make("b", {}, text.operation), " ", nameSpan(text.node, 60), lineText(e.lineAt(step))),
      make("dl.figures", {},
        make("div", {}, make("dt", {}, "live"), make("dd", { "data-figure": "live" }, bytesText(e.live[step]))),
        make("div", {}, make("dt", {}, "allocated"), make("dd", {}, bytesText(e.allocated[step]))),
        make("div", {}, make("dt", {}, "reserved"), make("dd", {}, bytesText(e.reserved[step])))),
      make("p.note", {}, rows.length.toLocaleString("en-US") + " buffers" +
        (this.state.weights ? "" : " without the weights") + ", largest first"),
      make("ol.bars", {}, rows.slice(0, 14).map((i) => bufferBar(this.state, i, most))));
  }

  pin(step) {
    this.state.set({ pinned: step, step: step ?? this.state.step });
    this.live.textContent = step === null ? "nothing is pinned" : "pinned " + this.stepSummary(step);
  }

  /* --- Pointer and keys ------------------------------------------------------------------------ */

  bandAt(step, y) {
    const bytes = ((this.scene.height - PLOT.bottom - y) / (this.scene.height - PLOT.bottom - PLOT.top)) * this.most;
    let sum = 0;
    for (const band of this.bands()) {
      sum += band.bytes[step];
      if (bytes <= sum) return band;
    }
    return null;
  }

  hover(event) {
    const box = this.scene.canvas.getBoundingClientRect();
    const x = event.clientX - box.left, y = event.clientY - box.top;
    const inner = this.scene.width - PLOT.left - PLOT.right;
    if (this.execution === null || x < PLOT.left || x > PLOT.left + inner) return this.leave();
    let step = this.stepAt(x);
    /* Where a pixel stands for several steps, it shows the one with the most. */
    const steps = this.sample(this.scene.width);
    if (steps.length < this.state.high - this.state.low)
      step = steps[Math.min(steps.length - 1, Math.floor(((x - PLOT.left) / inner) * steps.length))];
    const band = this.bandAt(step, y);
    this.state.set({ step, buffer: band?.buffer ?? -1 });
    const text = this.execution.stepText(step);
    replace(this.tip, make("b", {}, "step " + step.toLocaleString("en-US") + " " + text.operation),
      text.node !== "" ? make("div", {}, nameSpan(text.node, 60)) : null,
      make("div", {}, bytesText(this.execution.live[step]) + " live"),
      band !== null ? make("div.in", {}, nameSpan(band.name, 60), ": " + bytesText(band.bytes[step])) : null);
    this.tip.hidden = false;
    const room = this.scene.width - this.tip.offsetWidth - 8;
    this.tip.style.transform = "translate(" + Math.max(0, x + 16 > room ? x - 16 - this.tip.offsetWidth : x + 16) +
      "px," + Math.max(0, Math.min(y + 12, this.scene.height - this.tip.offsetHeight)) + "px)";
  }

  leave() {
    this.tip.hidden = true;
    this.state.set({ buffer: -1 });
  }

  zoom(factor, center) {
    const { low, high } = this.state, n = this.execution.count;
    const length = Math.max(Math.min(8, n), Math.min(n, Math.round((high - low) * factor)));
    let from = Math.round(center - ((center - low) / Math.max(1, high - low)) * length);
    from = Math.max(0, Math.min(n - length, from));
    this.state.set({ low: from, high: from + length });
  }

  /* A step that is moved to is shown. */
  moveTo(step) {
    const n = this.execution.count;
    step = Math.max(0, Math.min(n - 1, step));
    const length = this.state.high - this.state.low;
    let low = this.state.low;
    if (step < low) low = step;
    if (step >= low + length) low = step - length + 1;
    this.state.set({ step, low, high: low + length });
    if (this.state.pinned !== null) this.pin(step);
  }

  key(event) {
    if (this.execution === null || event.ctrlKey || event.metaKey || event.altKey) return;
    const by = event.shiftKey ? 10 : 1, step = this.state.pinned ?? this.state.step;
    const moves = { ArrowRight: step + by, ArrowLeft: step - by, PageDown: step + 100, PageUp: step - 100, Home: 0,
                    End: this.execution.count - 1, p: this.execution.peakStep };
    if (event.key in moves) this.moveTo(moves[event.key]);
    else if (event.key === "Enter" || event.key === " ") this.pin(this.state.pinned === null ? step : null);
    else if (event.key === "+" || event.key === "=") this.zoom(0.5, step);
    else if (event.key === "-") this.zoom(2, step);
    else if (event.key === "Escape") { this.pin(null); this.state.set({ low: 0, high: this.execution.count }); }
    else return;
    event.preventDefault();
  }

  listen() {
    const canvas = this.scene.canvas;
    canvas.addEventListener("pointermove", (event) => this.hover(event));
    canvas.addEventListener("pointerleave", () => this.leave());
    canvas.addEventListener("click", (event) => {
      this.hover(event);
      this.pin(this.state.pinned === this.state.step ? null : this.state.step);
    });
    canvas.addEventListener("dblclick", () => this.state.set({ low: 0, high: this.execution.count }));
    canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.shiftKey) return;
      event.preventDefault();
      this.zoom(event.deltaY > 0 ? 1.25 : 0.8, this.stepAt(event.clientX - canvas.getBoundingClientRect().left));
    }, { passive: false });
    canvas.addEventListener("keydown", (event) => this.key(event));
    this.mini.canvas.addEventListener("keydown", (event) => this.key(event));
    this.brush();
  }

  /* Drag an end, the window, or anew. */
  brush() {
    const canvas = this.mini.canvas;
    let drag = null;
    const at = (event) => {
      const box = canvas.getBoundingClientRect(), inner = box.width - PLOT.left - PLOT.right;
      const part = (event.clientX - box.left - PLOT.left) / inner;
      return Math.max(0, Math.min(1, part)) * this.execution.count;
    };
    canvas.addEventListener("pointerdown", (event) => {
      if (this.execution === null) return;
      const { low, high } = this.state, step = at(event), near = (8 / canvas.clientWidth) * this.execution.count;
      const isWhole = low === 0 && high === this.execution.count;
      drag = Math.abs(step - low) < near ? { end: high } : Math.abs(step - high) < near ? { end: low }
        : step > low && step < high && !isWhole ? { grip: step, low, high } : { end: step };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (drag === null) return;
      const n = this.execution.count, step = at(event);
      if (drag.grip !== undefined) {
        const length = drag.high - drag.low;
        const low = Math.max(0, Math.min(n - length, Math.round(drag.low + step - drag.grip)));
        this.state.set({ low, high: low + length });
        return;
      }
      const low = Math.floor(Math.min(step, drag.end)), high = Math.ceil(Math.max(step, drag.end));
      if (high - low >= Math.min(4, n)) this.state.set({ low, high });
    });
    const stop = () => { drag = null; };
    canvas.addEventListener("pointerup", stop);
    canvas.addEventListener("pointercancel", stop);
    canvas.addEventListener("dblclick", () => this.state.set({ low: 0, high: this.execution.count }));
  }
}

/* A buffer as a bar, linked with the charts. */
function bufferBar(state, i, most, extra) {
  const e = state.execution;
  const bar = make("i.bar");
  bar.style.width = (100 * e.bytes[i]) / most + "%";
  bar.style.background = slotColor(e.slot(i, state.mode));
  const item = make("li", { tabindex: extra === undefined ? null : 0, "data-buffer": i,
    mouseenter: () => state.set({ buffer: i }), mouseleave: () => state.set({ buffer: -1 }),
    focus: () => state.set({ buffer: i }), blur: () => state.set({ buffer: -1 }) },
    make("div.line", {}, nameSpan(e.bufferName(i), 56), make("span.size", {}, bytesText(e.bytes[i]))), bar, extra);
  item.title = e.kindName(i) + ", steps " + e.first[i] + " to " + e.last[i];
  return item;
}
