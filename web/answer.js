"use strict";
/* The answer: what is judged, on which GPU, whether it fits, what sets it, and ways out. All of it is the report's own
 * ("answer"): nothing is added up or judged here. */

/* Parts of a sum in the unit of the sum: "0.25 to 0.59". */
function partText(low, high, whole) {
  if (high === 0) return "\u2013";
  let power = 0;
  while (power < 6 && whole >= 1024 ** (power + 1)) power++;
  const text = (bytes) => (bytes / 1024 ** power).toFixed(power < 3 ? 0 : 2);
  return text(low) === text(high) ? text(high) : text(low) + "\u2013" + text(high);
}

/* As the text report writes them: "3.78–4.12 GiB", "97.4 MiB". */
function rangeText(low, high) {
  let power = 0;
  while (power < 6 && high >= 1024 ** (power + 1)) power++;
  const part = partText(low, high, high);
  return part.includes("\u2013") ? part + " " + UNITS[power] : bytesText(high);
}

function gpuText(of) {
  return of.gpu === null ? "" : " on " + clean(of.gpu, 40) + (of.gpu_assumed ? " (assumed)" : "");
}

/* "fits", "does not fit", with what else there is to say. */
function fitText(fit) {
  if (fit.fits) return "fits";
  return fit.fits_by_release ? "does not fit, unless PyTorch returns cached memory, which is slower" : "does not fit";
}

/* "train 602 (1,032 if PyTorch returns cached memory, and slower)" */
function largestText(device) {
  const parts = device.runtimes.map((r) => {
    const most = r.max_batch ?? r.max_size, more = r.max_batch_by_release ?? r.max_size_by_release;
    if (most === undefined) return null;
    return clean(r.runtime, 20) + " " + (most === 0 ? "none" : countText(most)) +
      (more === undefined ? "" : " (" + countText(more) + " if PyTorch returns cached memory, and slower)");
  }).filter((text) => text !== null);
  return parts.length === 0 ? "" : parts.join(", ");
}

class Answer {
  constructor(state, report) {
    this.state = state;
    this.report = report;
    this.element = make("div.answer");
    state.when(["model", "budget"], () => this.refresh());
  }

  refresh() {
    const model = this.state.model, answer = model.json.answer;
    const shown = answer.runtime !== null ? answer : model.sized.answer;
    if (answer.runtime === null) {
      const open = model.json.free_dims ?? [];
      replace(this.element, make("p.note", {}, open.length > 0
        ? "Not sized: dimensions are free. The runtimes' figures need sizes for " + open.map((d) => clean(d.name, 30)).join(", ") + "."
        : "Not sized: a size is not known."), shown ? make("p.note", {}, "With the sizes of the example, and no verdict:") : null,
        shown ? this.waterfall(shown) : null);
      return;
    }
    replace(this.element, this.waterfall(answer), this.devices(answer), this.largest(answer), this.remedies(answer), this.warnings(answer));
  }

  waterfall(answer) {
    const row = (r) => make("tr", { "data-answer": r.runtime }, make("th", { scope: "row" }, clean(r.runtime, 20)),
      make("td.right", {}, partText(r.live_bytes[0], r.live_bytes[1], r.high_bytes)),
      make("td.right", {}, partText(r.reserved_bytes[0], r.reserved_bytes[1], r.high_bytes)),
      make("td.right.wide", {}, partText(r.low_bytes - r.context_bytes[0] - r.reserved_bytes[0], r.library_bytes, r.high_bytes)),
      make("td.right.wide", {}, partText(r.context_bytes[0], r.context_bytes[1], r.high_bytes)),
      make("td.right", {}, make("b.total", { "data-figure": "answer" }, rangeText(r.low_bytes, r.high_bytes))),
      make("td.note", {}, "set by " + clean(r.set_by, 160)));
    return make("div.scrolls", { id: "needed", tabindex: -1 }, make("table.small", {}, make("caption", {}, "Needed" + gpuText(answer)),
      make("thead", {}, make("tr", {}, ["", "live", "\u2192 reserved", "+ libraries", "+ context", "= total", "why"].map((t, k) =>
        make("th" + (k > 0 && k < 6 ? ".right" : "") + (k === 3 || k === 4 ? ".wide" : ""), { scope: "col" }, t)))), make("tbody", {}, answer.runtimes.map(row))));
  }

  /* A line for each device: what the runtime that decides needs there. */
  devices(answer) {
    const devices = answer.devices ?? answer.usual_devices ?? [];
    if (devices.length === 0) return make("p.note", { id: "gpus", tabindex: -1 }, "No GPU is judged: give one with --budget.");
    return make("div.gpus", { id: "gpus", tabindex: -1 }, devices.map((device) => {
      const name = clean(device.device ?? bytesText(device.budget_bytes), 32);
      const whole = Math.max(device.usable_bytes, device.high_bytes);
      const track = make("div.track");
      this.add(track, clean(device.runtime, 20) + ", at least", device.low_bytes, whole, slotColor("activations"));
      this.add(track, "at most", device.high_bytes - device.low_bytes, whole, null).classList.add("uncertain");
      const limit = make("i.limit");
      limit.style.left = (100 * device.usable_bytes) / whole + "%";
      track.append(limit);
      const isLine = this.state.budget === device.usable_bytes;
      const line = make("button.device", { type: "button", "aria-pressed": String(isLine), title: "a line in the chart below",
        click: () => this.state.set({ budget: isLine ? null : device.usable_bytes }) }, name, make("small", {}, bytesText(device.usable_bytes)));
      return make("div.gpu." + (device.fits ? "fits" : device.fits_by_release ? "may" : "over"), { "data-device": name }, line, track,
        make("span.says", {}, make("i.sign", { "aria-hidden": "true" }, device.fits ? "\u2713" : "\u2717"),
          make("span", { "data-figure": "verdict" }, fitText(device)), ", " + clean(device.runtime, 20) + " ",
          make("span", { "data-figure": "need" }, rangeText(device.low_bytes, device.high_bytes))));
    }));
  }

  /* The largest batch or dim of each device; where none was searched for, the command that does. */
  largest(answer) {
    const found = (answer.devices ?? []).map((d) => [clean(d.device ?? bytesText(d.budget_bytes), 32), largestText(d)]).filter(([, text]) => text !== "");
    const budget = answer.devices === undefined ? ["--budget", answer.gpu ?? "T4"] : [];
    return make("p.note", { id: "largest", tabindex: -1 }, found.length > 0
      ? "Largest that fits: " + found.map(([name, text]) => name + ": " + text).join("; ")
      : ["The largest batch that fits: ", make("code", {}, commandText(this.report, "--max-batch", ...budget))]);
  }

  remedies(answer) {
    const remedies = answer.remedies ?? [];
    if (remedies.length === 0)
      return make("p.note", { id: "remedies", tabindex: -1 }, answer.fits === false ? "No single option that is known makes it fit."
        : "Nothing has to change" + (answer.fits === null ? ": no budget was given." : ": it fits."));
    return make("div.remedies", { id: "remedies", tabindex: -1 }, make("h3", {}, "To make it fit, add one of these to the command"), make("ul", {}, remedies.map((r) =>
      make("li", {}, make("code", {}, clean(r.option, 200)), ": " + clean(r.runtime, 20) + " " + rangeText(r.low_bytes, r.high_bytes) + ", " +
        (r.fits ? "fits" : "not enough") + " (" + clean(r.what, 120) + ")"))));
  }

  warnings(answer) {
    if (answer.warnings.length === 0) return null;
    return make("p.note", {}, "Warnings, in the notes below: " + answer.warnings.map((w) => clean(w, 40)).join(", "));
  }

  add(track, title, bytes, whole, color) {
    const part = make("i.part", { title: title + ": " + bytesText(bytes) });
    part.style.width = (100 * bytes) / whole + "%";
    if (color !== null) part.style.background = color;
    track.append(part);
    return part;
  }
}

/* --- Free dims -------------------------------------------------------------------------------------- */

/* Sliders for what is free: the graph's own lower bound by its formula, and the command that gives the runtimes' figures. */
class LowerBound {
  constructor(state) {
    this.state = state;
    this.element = make("div.bound");
    state.when(["model"], () => this.refresh());
  }

  refresh() {
    const model = this.state.model, formula = model.json.formula, dims = model.json.free_dims ?? [];
    this.dims = dims;
    this.sizes = dims.map((dim) => {
      const size = model.json.example?.bindings?.[dim.name];
      return typeof size === "number" ? size : 1;
    });
    this.drawn = this.sizes.slice();
    const hasFormula = formula !== undefined && formula.peak_bytes_largest_of.length > 0 && formulaPeak(formula, this.sizes) !== null;
    replace(this.element, hasFormula ? this.sliders() : null);
    if (hasFormula) this.paint();
  }

  sliders() {
    this.says = make("output.says", { "aria-live": "polite" });
    const rows = this.dims.map((dim, k) => {
      /* Powers of two, and what lies between them. */
      const slider = make("input", { type: "range", min: 0, max: 56, step: 1, "aria-label": clean(dim.name, 60), "data-dim": k });
      const number = make("input.number", { type: "number", min: 1, max: 1048576, "aria-label": clean(dim.name, 60) + ", exact" });
      slider.value = String(Math.round(4 * Math.log2(this.sizes[k])));
      number.value = String(this.sizes[k]);
      const take = (size) => {
        this.sizes[k] = Math.max(1, Math.min(1048576, Math.round(size) || 1));
        this.paint();
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

  paint() {
    const model = this.state.model, formula = model.json.formula, peak = formulaPeak(formula, this.sizes);
    const weights = formula.weight_bytes;
    const isStale = this.sizes.some((size, k) => size !== this.drawn[k]);
    this.state.set({ stale: isStale });
    const step = peak === null ? null : model.json.nodes[peak.step];
    replace(this.says, make("p.note", {}, "Graph lower bound, not a verdict: ", peak === null ? "too large to tell" :
      [make("b.total", { "data-figure": "formula" }, bytesText(weights + peak.bytes)), " = weights " + bytesText(weights) + " + peak " +
        bytesText(peak.bytes) + " at ", nameSpan(step ? step.name || step.op_type : "", 40)]),
      make("p.note", {}, "What runtimes need at these sizes, and whether it fits: ", make("code", { "data-figure": "command" }, this.command())),
      this.runtimes(formula.runtimes), ...this.contradictions().map((text) => make("p.note.warning", { "data-figure": "contradiction" }, make("b", {}, "warning: "), text)));
  }

  /* What runtimes hold by their own formulas, where --formula found some, and within what was seen. */
  runtimes(found) {
    if (found === undefined) return null;
    const seen = found.for ?? [], size = (name) => this.sizes[this.dims.findIndex((d) => d.name === name)];
    const within = seen.every((d) => size(d.name) >= d.from && size(d.name) <= d.until && size(d.name) % d.unit === 0);
    const where = seen.map((d) => clean(d.name, 30) + " from " + countText(d.from) + " to " + countText(d.until) + (d.unit > 1 ? " in steps of " + d.unit : "")).join(", ");
    const text = (f) => {
      const peak = f.why_not !== undefined ? null : formulaPeak({ peak_bytes_largest_of: f.tensor_bytes_largest_of }, this.sizes);
      return make("li", { "data-runtime-formula": f.runtime + " " + f.end }, clean(f.runtime, 20) + ", " + f.end + " end: ",
        f.why_not !== undefined ? "no formula: " + clean(f.why_not, 200) : !within ? "not seen at these sizes" : peak === null ? "too large to tell" : make("b", {}, bytesText(peak.bytes)));
    };
    return make("div.note", {}, "Tensors of runtimes at their peak, before the allocator, by formulas that equal " + countText(found.analyses) + " analyses, for " + where + ":",
      found.why_not !== undefined ? " none: " + clean(found.why_not, 200) : make("ul.caveats", {}, found.figures.map(text)));
  }

  command() {
    const options = this.dims.map((dim, k) => (dim.option.startsWith("--batch ") ? "--batch " + this.sizes[k]
      : "--dim " + shellWord(dim.name + "=" + this.sizes[k])));
    return clean("onnxvram " + shellWord(this.state.model.path) + " " + options.join(" ") + " --budget T4", 400);
  }

  /* A dim that is as long as others together, as the report says of it. */
  contradictions() {
    const sizeOf = (name) => {
      const k = this.dims.findIndex((d) => d.name === name);
      return k >= 0 ? this.sizes[k] : this.state.model.json.bindings[name];
    };
    return this.dims.filter((d) => d.sum_of !== undefined).map((d) => {
      const sum = d.sum_of.reduce((bytes, name) => bytes + sizeOf(name), 0);
      return sum === sizeOf(d.name) ? null
        : clean(d.name, 30) + " is " + sizeOf(d.name) + ", but " + d.sum_of.map((n) => clean(n, 30)).join(" + ") + " is " + sum;
    }).filter((text) => text !== null);
  }
}
