"use strict";
/* What charts share: colors, canvases in device pixels, axes, and the state that links them. */

/* Okabe and Ito's colors, which colour-blind people can tell apart; the dark theme lightens the two darkest. */
const PALETTE = {
  light: { weights: "#8d99a6", optimizer: "#56b4e9", gradients: "#009e73", activations: "#0072b2",
           pattern: "#cc79a7", temporary: "#e69f00", rest: "#c3cad2",
           series: ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#6a51a3", "#8c6d31"] },
  dark: { weights: "#6b7785", optimizer: "#56b4e9", gradients: "#1fb58a", activations: "#3b8fd4",
          pattern: "#d48fb5", temporary: "#e69f00", rest: "#4a5460",
          series: ["#3b8fd4", "#e8743b", "#1fb58a", "#d48fb5", "#56b4e9", "#9d86d1", "#b39a5b"] },
};

function isDark() {
  return document.documentElement.dataset.theme === "dark";
}

function themeColor(name) {
  return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
}

/* A slot of a stack: a layer's name, or a number of the series, of which later rounds are lighter. */
function slotColor(slot) {
  const palette = PALETTE[isDark() ? "dark" : "light"];
  if (typeof slot === "string") return palette[slot];
  const base = palette.series[slot % palette.series.length];
  const round = Math.floor(slot / palette.series.length) % 4;
  return round === 0 ? base : mix(base, isDark() ? "#14181d" : "#ffffff", 0.22 * round);
}

/* The same for many of them. */
function rememberColors() {
  const known = new Map();
  return (slot) => {
    if (!known.has(slot)) known.set(slot, slotColor(slot));
    return known.get(slot);
  };
}

function mix(a, b, part) {
  const channel = (text, at) => parseInt(text.slice(at, at + 2), 16);
  const parts = [1, 3, 5].map((at) => Math.round(channel(a, at) * (1 - part) + channel(b, at) * part));
  return "#" + parts.map((v) => v.toString(16).padStart(2, "0")).join("");
}

/* What links the parts: which execution is looked at, which of its steps, which buffer. */
class State extends EventTarget {
  constructor() {
    super();
    Object.assign(this, { models: [], model: null, execution: null, mode: "kind", step: 0, pinned: null, low: 0, high: 1,
                          buffer: -1, weights: true, reserved: true, budget: null, stale: false });
    this.changed = new Set();
  }

  set(changes) {
    for (const [key, value] of Object.entries(changes)) {
      if (this[key] === value) continue;
      this[key] = value;
      this.changed.add(key);
    }
    if (this.changed.size === 0 || this.isQueued) return;
    this.isQueued = true;
    requestAnimationFrame(() => this.flush());
  }

  flush() {
    const changed = this.changed;
    this.changed = new Set();
    this.isQueued = false;
    this.dispatchEvent(new CustomEvent("change", { detail: changed }));
  }

  when(keys, call) {
    this.addEventListener("change", (event) => { if (keys.some((key) => event.detail.has(key))) call(); });
  }
}

/* How wide a drawing is whose text is to be read: as its place, where that is told. */
function plotWidth(place, most) {
  return Math.max(320, Math.min(most, place.clientWidth || most));
}

/* A canvas that is as many device pixels as it takes room; draw(context, width, height) in CSS pixels. */
class Scene {
  constructor(label, height, draw, attributes = {}) {
    this.draw = draw;
    this.height = height;
    this.canvas = make("canvas.scene", { tabindex: 0, role: "img", "aria-label": label, ...attributes });
    this.canvas.style.height = height + "px";
    this.width = 0;
    new ResizeObserver(() => this.resize()).observe(this.canvas);
  }

  resize() {
    const width = Math.max(1, Math.floor(this.canvas.clientWidth));
    const ratio = window.devicePixelRatio || 1;
    if (width === this.width && ratio === this.ratio) return;
    this.width = width;
    this.ratio = ratio;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(this.height * ratio);
    this.paint();
  }

  paint() {
    if (this.width === 0) return;
    const context = this.canvas.getContext("2d");
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    context.clearRect(0, 0, this.width, this.height);
    context.font = "11px system-ui, sans-serif";
    this.draw(context, this.width, this.height);
  }

  /* What changes seldom is drawn once for each key, and shown from then on. */
  cached(context, key, draw) {
    const size = this.canvas.width + "x" + this.canvas.height + (isDark() ? "d" : "l");
    key = key + "|" + size;
    if (this.cacheKey !== key) {
      this.cacheKey = key;
      this.cache ??= document.createElement("canvas");
      this.cache.width = this.canvas.width;
      this.cache.height = this.canvas.height;
      const pen = this.cache.getContext("2d");
      pen.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
      pen.font = context.font;
      draw(pen);
    }
    context.drawImage(this.cache, 0, 0, this.width, this.height);
  }

  later() {
    if (this.isQueued) return;
    this.isQueued = true;
    requestAnimationFrame(() => {
      this.isQueued = false;
      this.paint();
    });
  }
}

/* Marks of an axis: four or so, round in `unit`. */
function ticks(low, top, unit = 1) {
  const rough = (top - low) / unit / 4;
  if (!(rough > 0)) return [low];
  const scale = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].find((f) => f * scale >= rough) * scale * unit;
  const marks = [];
  for (let v = Math.ceil(low / step) * step; v <= top * 1.0001; v += step) marks.push(v);
  return marks;
}

/* Round in the binary unit of the upper end. */
function byteTicks(low, top) {
  return ticks(low, top, 2 ** (10 * Math.max(0, Math.min(6, Math.floor(Math.log2(top) / 10)))));
}

function drawByteAxis(context, left, right, top, bottom, most) {
  context.strokeStyle = themeColor("grid");
  context.fillStyle = themeColor("muted");
  context.textAlign = "right";
  context.textBaseline = "middle";
  context.lineWidth = 1;
  for (const bytes of byteTicks(0, most)) {
    const y = Math.round(bottom - ((bottom - top) * bytes) / most) + 0.5;
    context.beginPath();
    context.moveTo(left, y);
    context.lineTo(right, y);
    context.stroke();
    context.fillText(bytesText(bytes), left - 8, y);
  }
}

/* How high an axis is that ends with the curves: a budget counts unless it would flatten them. */
function withBudget(most, budget) {
  return 1.04 * (budget !== null && budget > most && budget <= 2 * most ? budget : most);
}

/* A line at the budget; dotted along the upper edge where it is beyond it. */
function drawBudget(context, left, right, top, at, budget) {
  const isBeyond = at < top, y = Math.max(at, top);
  context.strokeStyle = context.fillStyle = themeColor("bad");
  context.lineWidth = 1.5;
  context.setLineDash(isBeyond ? [2, 5] : []);
  context.beginPath();
  context.moveTo(left, y);
  context.lineTo(right, y);
  context.stroke();
  context.setLineDash([]);
  context.textAlign = "right";
  context.textBaseline = "bottom";
  context.fillText("budget " + bytesText(budget) + (isBeyond ? ", beyond this chart" : ""), right - 4, y - 2);
}

/* Live bytes of all steps as one area. */
function drawArea(context, e, base, { left, right, top, bottom, most }) {
  const steps = sampleSteps(e.live, 0, e.count, Math.max(1, Math.floor(right - left)));
  const x = (c) => left + ((right - left) * c) / steps.length;
  context.beginPath();
  context.moveTo(left, bottom);
  steps.forEach((s, c) => {
    const at = bottom - ((bottom - top) * (e.live[s] - base(s))) / most;
    context.lineTo(x(c), at);
    context.lineTo(x(c + 1), at);
  });
  context.lineTo(right, bottom);
  context.fill();
}

/* By pixel column the step with the most live bytes: what a picture of many steps must not lose. */
function sampleSteps(values, low, high, columns) {
  const n = high - low;
  const count = Math.max(1, Math.min(columns, n));
  const steps = new Int32Array(count);
  for (let c = 0; c < count; c++) {
    const from = low + Math.floor((c * n) / count), end = Math.max(from + 1, low + Math.floor(((c + 1) * n) / count));
    let most = from;
    for (let s = from + 1; s < end; s++) if (values[s] > values[most]) most = s;
    steps[c] = most;
  }
  return steps;
}

function hatch(context, color) {
  const tile = document.createElement("canvas");
  tile.width = tile.height = 6;
  const pen = tile.getContext("2d");
  pen.strokeStyle = color;
  pen.lineWidth = 1;
  pen.beginPath();
  pen.moveTo(0, 6);
  pen.lineTo(6, 0);
  pen.stroke();
  return context.createPattern(tile, "repeat");
}
