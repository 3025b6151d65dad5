"use strict";
/* The device's memory: offset against step. A rectangle is a buffer where its runtime's allocator, or the plan,
 * put it; segments stand one above the other. */

class Arena {
  constructor(state) {
    this.state = state;
    this.scene = new Scene("where buffers lie in memory, over the steps", 360, (c, w, h) => this.draw(c, w, h));
    this.tip = make("div.tip", { hidden: true });
    this.caption = make("div.aside");
    this.element = make("div.timeline", {}, make("div.stage", {}, this.scene.canvas, this.tip), this.caption);
    state.when(["execution"], () => this.lay());
    state.when(["low", "high", "buffer", "step", "pinned", "weights", "mode", "budget"], () => this.scene.later());
    const canvas = this.scene.canvas;
    canvas.addEventListener("pointermove", (event) => this.hover(event));
    canvas.addEventListener("pointerleave", () => {
      this.tip.hidden = true;
      this.state.set({ buffer: -1 });
    });
    canvas.addEventListener("keydown", (event) => this.key(event));
  }

  /* Where each segment begins in the picture. */
  lay() {
    const e = this.state.execution;
    if (e === null) return;
    let sum = 0;
    this.base = new Float64Array(e.segmentBytes.length);
    this.used = new Uint8Array(e.segmentBytes.length);
    this.fixed = new Uint8Array(e.segmentBytes.length).fill(1);
    for (let i = 0; i < e.n; i++) {
      if (e.segment[i] < 0) continue;
      this.used[e.segment[i]] = 1;
      if (e.layer[i] !== 0) this.fixed[e.segment[i]] = 0;
    }
    for (let s = 0; s < this.base.length; s++) {
      this.base[s] = sum;
      sum += e.segmentBytes[s];
    }
    this.total = sum;
    this.order = Array.from({ length: e.n }, (_, i) => i)
      .filter((i) => e.segment[i] >= 0 && e.bytes[i] > 0 && e.kindName(i) !== "pool");
    this.describe(e);
    this.scene.later();
  }

  /* At the peak: what was asked for, what blocks are larger by, what is free. */
  describe(e) {
    const peak = e.peakStep, n = e.segmentBytes.length;
    const parts = [["in buffers", e.live[peak], slotColor("activations")], ["rounding", Math.max(0, e.allocated[peak] - e.live[peak]), slotColor("temporary")],
                   ["reserved and free", Math.max(0, e.reserved[peak] - Math.max(e.allocated[peak], e.live[peak])), null]];
    const whole = parts.reduce((sum, p) => sum + p[1], 0) || 1;
    const track = make("div.track");
    for (const [title, bytes, color] of parts) {
      const part = make("i.part" + (color === null ? ".uncertain" : ""), { title: title + ": " + bytesText(bytes) });
      part.style.width = (100 * bytes) / whole + "%";
      if (color !== null) part.style.background = color;
      track.append(part);
    }
    replace(this.caption, make("h3", {}, countText(n) + (n === 1 ? " segment" : " segments")),
      make("p.note", {}, bytesText(e.json.reserved_peak_bytes) + " reserved at most. What is hatched is reserved and free; what lies above it in the " +
        "picture came from a later segment."), make("h3", {}, "At the peak"), track,
      make("dl.parts", {}, parts.map(([title, bytes, color]) => {
        const swatch = make("i.swatch" + (color === null ? ".uncertain" : ""));
        if (color !== null) swatch.style.background = color;
        return make("div", {}, make("dt", {}, swatch, title), make("dd", {}, bytesText(bytes)));
      })));
  }

  /* Segments of weights alone can be left out, as in the timeline. */
  rows() {
    const e = this.state.execution, rows = [];
    let sum = 0;
    for (let s = 0; s < this.base.length; s++) {
      const isShown = this.state.weights || !this.fixed[s];
      rows.push(isShown ? sum : -1);
      if (isShown) sum += e.segmentBytes[s];
    }
    const budget = this.state.budget === null ? null : this.state.budget - (this.total - sum);
    return { rows, budget, total: withBudget(Math.max(1, sum), budget) };
  }

  draw(context, width, height) {
    const e = this.state.execution;
    if (e === null || this.base === undefined) return;
    const { low, high } = this.state, right = width - PLOT.right, top = 20, bottom = height - 10;
    const { rows, budget, total } = this.rows();
    this.shown = { rows, total };
    const x = (step) => PLOT.left + ((right - PLOT.left) * (Math.min(high, Math.max(low, step)) - low)) / (high - low);
    const y = (bytes) => bottom - ((bottom - top) * bytes) / total;
    const key = [e.model.index, e.index, low, high, this.state.weights, this.state.mode, this.state.budget].join();
    this.scene.cached(context, key, (pen) => {
      this.drawAll(pen, { x, y, rows, right, top, bottom, total });
      if (budget !== null) drawBudget(pen, PLOT.left, right, top, y(budget), this.state.budget);
    });
    this.drawChosen(context, x, y, rows);
    this.drawCursors(context, x, top, bottom);
  }

  drawAll(context, { x, y, rows, right, top, bottom, total }) {
    const e = this.state.execution, { low, high } = this.state;
    drawByteAxis(context, PLOT.left, right, top, bottom, total);
    const free = hatch(context, themeColor("grid"));
    for (let s = 0; s < rows.length; s++) {
      if (rows[s] < 0 || e.segmentEnd[s] <= low || e.segmentFirst[s] >= high) continue;
      const x0 = x(e.segmentFirst[s]), x1 = x(e.segmentEnd[s]), y1 = y(rows[s]), y0 = y(rows[s] + e.segmentBytes[s]);
      context.fillStyle = free;
      context.fillRect(x0, y0, Math.max(1, x1 - x0), Math.max(0.5, y1 - y0));
      if (y1 - y0 < 3) continue;
      context.strokeStyle = themeColor("line");
      context.lineWidth = 1;
      context.strokeRect(x0 + 0.5, y0, Math.max(1, x1 - x0 - 1), y1 - y0);
    }
    this.drawBuffers(context, x, y);
  }

  drawBuffers(context, x, y) {
    const e = this.state.execution, { low, high } = this.state, { rows } = this.shown;
    const paper = themeColor("paper"), colors = rememberColors();
    context.lineWidth = 0.5;
    for (const i of this.order) {
      if (e.last[i] < low || e.first[i] >= high || rows[e.segment[i]] < 0) continue;
      const x0 = x(e.first[i]), x1 = x(e.last[i] + 1), at = rows[e.segment[i]] + e.offset[i];
      const y0 = y(at + e.bytes[i]), h = y(at) - y0;
      if (h < 0.15) continue;
      context.fillStyle = colors(e.slot(i, this.state.mode));
      context.fillRect(x0, y0, Math.max(1, x1 - x0), Math.max(0.6, h));
      if (h < 3 || x1 - x0 < 3) continue;
      context.strokeStyle = paper;
      context.strokeRect(x0, y0, x1 - x0, h);
    }
  }

  drawChosen(context, x, y, rows) {
    const i = this.state.buffer, e = this.state.execution;
    if (i < 0 || i >= e.n || e.segment[i] < 0 || rows[e.segment[i]] < 0) return;
    const at = rows[e.segment[i]] + e.offset[i], x0 = x(e.first[i]), y0 = y(at + e.bytes[i]);
    context.strokeStyle = themeColor("ink");
    context.lineWidth = 2;
    context.strokeRect(x0, y0, Math.max(2, x(e.last[i] + 1) - x0), Math.max(2, y(at) - y0));
  }

  drawCursors(context, x, top, bottom) {
    for (const [step, color] of [[this.state.step, "ink"], [this.state.pinned, "accent"]]) {
      if (step === null || step < this.state.low || step >= this.state.high) continue;
      context.strokeStyle = themeColor(color);
      context.globalAlpha = color === "ink" ? 0.4 : 1;
      context.lineWidth = 1;
      context.beginPath();
      context.moveTo(x(step + 0.5), top);
      context.lineTo(x(step + 0.5), bottom);
      context.stroke();
      context.globalAlpha = 1;
    }
  }

  hover(event) {
    const e = this.state.execution;
    if (e === null || this.shown === undefined) return;
    const box = this.scene.canvas.getBoundingClientRect();
    const px = event.clientX - box.left, py = event.clientY - box.top;
    const { low, high } = this.state;
    const part = (px - PLOT.left) / (this.scene.width - PLOT.left - PLOT.right);
    if (part < 0 || part > 1) return;
    const step = Math.min(high - 1, Math.floor(low + part * (high - low)));
    const bytes = ((this.scene.height - 10 - py) / (this.scene.height - 30)) * this.shown.total;
    let found = -1;
    for (const i of this.order) {
      const at = this.shown.rows[e.segment[i]];
      if (at < 0 || e.first[i] > step || e.last[i] < step) continue;
      if (at + e.offset[i] <= bytes && bytes < at + e.offset[i] + e.bytes[i]) found = i;
    }
    this.state.set({ step, buffer: found });
    this.tip.hidden = found < 0;
    if (found < 0) return;
    replace(this.tip, make("b", {}, nameSpan(e.bufferName(found), 60)),
      make("div", {}, bytesText(e.bytes[found]) + " " + e.kindName(found) + ", steps " + e.first[found] + " to " + e.last[found]),
      make("div", {}, "segment " + e.segment[found] + " at " + bytesText(e.offset[found])));
    const room = this.scene.width - this.tip.offsetWidth - 8;
    this.tip.style.transform = "translate(" + Math.max(0, Math.min(px + 16, room)) + "px," +
      Math.max(0, Math.min(py + 12, this.scene.height - this.tip.offsetHeight)) + "px)";
  }

  /* Up and down go through what lives at the step, by address; left and right are the timeline's. */
  key(event) {
    const e = this.state.execution;
    if (e === null || !["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight"].includes(event.key)) return;
    event.preventDefault();
    if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
      const step = this.state.step + (event.key === "ArrowRight" ? 1 : -1);
      this.state.set({ step: Math.max(0, Math.min(e.count - 1, step)) });
      return;
    }
    const place = (i) => this.base[e.segment[i]] + e.offset[i];
    const here = this.order.filter((i) => e.first[i] <= this.state.step && this.state.step <= e.last[i])
      .sort((a, b) => place(a) - place(b));
    if (here.length === 0) return;
    const at = here.indexOf(this.state.buffer) + (event.key === "ArrowUp" ? 1 : -1);
    const i = here[(at + here.length) % here.length];
    this.state.set({ buffer: i });
    this.scene.canvas.setAttribute("aria-label", "memory: " + clean(e.bufferName(i), 60) + ", " + bytesText(e.bytes[i]) +
      ", segment " + e.segment[i] + " at " + bytesText(e.offset[i]));
  }
}
