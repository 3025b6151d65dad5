"use strict";
/* The answers at many sizes: curves over one dim, a map of two of them; where it stops fitting is a line. */

class SweepPage {
  constructor(report) {
    this.sweep = report.sweep;
    const { axes, points, devices } = this.sweep;
    this.sizes = axes.map((name) => [...new Set(points.map((p) => p.bindings[name]))]);
    this.chosen = this.sizes.map((list) => list[0]); /* of dims beyond the first two */
    this.runtimes = Object.keys(points.find((p) => p.answer !== null).answer.runtimes);
    this.runtime = this.runtimes[0];
    this.device = devices[0] ?? null;
    this.drawing = make("div.sweep", { role: "region", "aria-live": "polite", "aria-label": "answers" });
    const selects = axes.slice(2).map((name, k) => make("label", {}, clean(name, 30) + " ", make("select", {
      change: (event) => { this.chosen[k + 2] = Number(event.target.value); this.draw(); } }, this.sizes[k + 2].map((n) => make("option", { value: n }, n)))));
    const runtimes = choice("runtime", this.runtimes.map((r) => [r, r, ABOUT[r]]), this.runtime, (r) => {
      this.runtime = r;
      press(runtimes, r);
      this.draw();
    });
    const gpus = devices.length === 0 ? null : choice("GPU", devices.map((d, k) => [k, clean(d.name, 30)]), 0, (k) => {
      this.device = devices[k];
      press(gpus, k);
      this.draw();
    });
    replace(document.getElementById("app"), make("header.top", {}, make("span.brand", {}, "onnxvram")),
      make("main", {}, make("div.intro", {}, make("h1", {}, nameSpan(fileName(this.sweep.path), 60)),
        make("p.note", {}, "Needed" + (this.sweep.gpu === "" ? "" : " on " + clean(this.sweep.gpu, 60)) + ", by " + axes.map((a) => clean(a, 30)).join(" and "))),
      section("answers", "Memory by size", null, make("div.tools", {}, runtimes, gpus, selects), this.drawing)),
      make("footer", {}, report.generator + ". Sizes are binary: 1 MiB is 1,048,576 bytes."));
    this.draw();
  }

  /* At these places of the first axes; null: the model does not take these sizes. */
  at(...places) {
    const { axes, points } = this.sweep;
    const size = (k) => (k < places.length ? this.sizes[k][places[k]] : this.chosen[k]);
    return points.find((p) => axes.every((name, k) => p.bindings[name] === size(k))).answer;
  }

  fits(answer) {
    return this.device === null || (answer !== null && answer.fits[this.device.name]);
  }

  /* The largest size that fits. */
  endText(answers, sizes, name) {
    const fitting = sizes.filter((_, k) => answers[k] !== null && this.fits(answers[k]));
    return this.device === null ? null : make("p.note", { "data-figure": "end" }, clean(this.device.name, 30) + ": " +
      (fitting.length === 0 ? "no " + clean(name, 30) + " of these fits" : clean(name, 30) + " = " + countText(Math.max(...fitting)) + " is the largest of these that fits"));
  }

  draw() {
    replace(this.drawing, this.sweep.axes.length === 1 ? this.curves() : this.map(),
      this.device === null ? null : make("p.note", {}, "What fits is judged by the runtime that needs the most."));
  }

  curves() {
    const [name] = this.sweep.axes, [sizes] = this.sizes, answers = sizes.map((_, k) => this.at(k));
    const width = plotWidth(this.drawing, 960), height = 360, left = 78, right = 24, top = 24, bottom = 40;
    const shown = answers.map((a) => a?.runtimes[this.runtime]), most = Math.max(...shown.map((r) => r?.high_bytes ?? 0));
    const budget = this.device?.usable_bytes ?? null, end = withBudget(most, budget);
    /* Columns are even: sizes mostly double. */
    const x = (k) => left + ((width - left - right) * (k + 0.5)) / sizes.length, y = (bytes) => height - bottom - ((height - top - bottom) * bytes) / end;
    const drawing = makeSvg("svg.plot", { viewBox: "0 0 " + width + " " + height, role: "img", "aria-label": "memory of " + this.runtime + " by " + clean(name, 30) });
    for (const tick of byteTicks(0, end))
      drawing.append(makeSvg("line.grid", { x1: left, x2: width - right, y1: y(tick), y2: y(tick) }), makeSvg("text.tick.end", { x: left - 8, y: y(tick) + 4 }, bytesText(tick)));
    const every = Math.ceil(sizes.length / (width / 60));
    sizes.forEach((size, k) => { if (k % every === 0) drawing.append(makeSvg("text.tick.middle", { x: x(k), y: height - bottom + 16 }, countText(size))); });
    drawing.append(makeSvg("text.tick.middle", { x: (left + width) / 2, y: height - 6 }, clean(name, 40)));
    const path = (of) => shown.map((r, k) => (r === undefined ? null : x(k) + "," + y(of(r)))).filter((p) => p !== null);
    const high = path((r) => r.high_bytes), low = path((r) => r.low_bytes);
    drawing.append(makeSvg("polygon.band", { points: [...high, ...low.reverse()].join(" ") }), makeSvg("polyline.high", { points: high.join(" ") }));
    if (budget !== null) {
      const at = Math.max(top, y(budget));
      drawing.append(makeSvg("line.budget" + (budget > end ? ".beyond" : ""), { x1: left, x2: width - right, y1: at, y2: at }),
        makeSvg("text.tick.end", { x: width - right, y: at - 4 }, clean(this.device.name, 30) + ": " + bytesText(budget) + " usable" + (budget > end ? ", beyond this chart" : "")));
    }
    for (let k = 0; k + 1 < sizes.length; k++)
      if (this.fits(answers[k]) !== this.fits(answers[k + 1])) {
        const at = (x(k) + x(k + 1)) / 2;
        drawing.append(makeSvg("line.budget", { x1: at, x2: at, y1: top, y2: height - bottom }));
      }
    const row = (r, k) => make("tr", {}, make("th", { scope: "row" }, countText(sizes[k])), make("td.right", { "data-point": k }, r === undefined ? "not sized" : rangeText(r.low_bytes, r.high_bytes)),
      make("td", {}, this.device === null || r === undefined ? "" : this.fits(answers[k]) ? "fits" : "does not fit"));
    return [drawing, this.endText(answers, sizes, name), make("div.scrolls", {}, make("table.small", {}, make("thead", {}, make("tr", {}, [clean(name, 30), this.runtime, this.device === null ? "" : clean(this.device.name, 30)]
      .map((t, k) => make("th" + (k === 1 ? ".right" : ""), { scope: "col" }, t)))), make("tbody", {}, shown.map(row))))];
  }

  /* The darker, the more; the line is between what fits and what does not. */
  map() {
    const [down, across] = this.sweep.axes, [rows, columns] = this.sizes;
    const answers = rows.map((_, i) => columns.map((_, k) => this.at(i, k)));
    const high = (a) => a?.runtimes[this.runtime]?.high_bytes ?? 0, most = Math.max(1, ...answers.flat().map(high));
    const cell = (a, i, k) => {
      const ends = (other) => other !== undefined && this.fits(a) !== this.fits(other), r = a?.runtimes[this.runtime];
      const td = make("td.right" + (ends(answers[i][k + 1]) ? ".ends" : "") + (ends(answers[i + 1]?.[k]) ? ".ends-below" : ""), { "data-point": i + "," + k,
        title: this.device === null || a === null ? null : this.fits(a) ? "fits" : "does not fit" }, r === undefined ? "not sized" : rangeText(r.low_bytes, r.high_bytes));
      td.style.background = "color-mix(in srgb, " + slotColor("activations") + " " + Math.round((50 * high(a)) / most) + "%, transparent)";
      return td;
    };
    return make("div.scrolls", {}, make("table.heat", {}, make("caption", {}, clean(down, 30) + " down, " + clean(across, 30) + " across" +
      (this.device === null ? "" : "; the line is where " + clean(this.device.name, 30) + " ends")),
      make("thead", {}, make("tr", {}, make("th"), columns.map((c) => make("th.right", { scope: "col" }, countText(c))))),
      make("tbody", {}, rows.map((size, i) => make("tr", {}, make("th", { scope: "row" }, countText(size)), columns.map((_, k) => cell(answers[i][k], i, k)))))));
  }
}
