"use strict";
/* All tensors: searched, sorted, and only those rows made that are seen. */

const ROW_HEIGHT = 26;

class TensorTable {
  constructor(state) {
    this.state = state;
    this.sort = { key: "bytes", down: true };
    /* `order`: what sorts a row; `text`: what shows it. Both take the tensor and its row. */
    this.columns = [
      { key: "name", title: "tensor", text: (t, i) => make("button.link", { type: "button", click: () => this.choose(i) }, nameSpan(t.name, 70)), order: (t) => t.name },
      { key: "kind", title: "kind", text: (t) => t.kind, order: (t) => t.kind },
      { key: "dtype", title: "type", text: (t) => clean(t.dtype, 24), order: (t) => t.dtype },
      { key: "shape", title: "shape", text: (t) => make("bdi", {}, shapeText(t.shape)), order: (t) => shapeText(t.shape) },
      { key: "bytes", title: "bytes", right: true, text: (t, i) => (t.bound ? "\u2264 " : "") + bytesText(this.size(i)), order: (t, i) => this.size(i) ?? -1 },
      { key: "first", title: "first", right: true, text: (t) => t.first_step ?? "", order: (t) => t.first_step ?? -1 },
      { key: "last", title: "last", right: true, text: (t) => t.last_step ?? "", order: (t) => t.last_step ?? -1 },
    ];
    this.search = make("input.search", { type: "search", placeholder: "search tensors", "aria-label": "search tensors",
      autocomplete: "off", spellcheck: "false", input: () => this.filter() });
    this.count = make("span.note", { "aria-live": "polite" });
    this.head = make("div.head", { role: "row" });
    this.body = make("div.rows");
    this.view = make("div.view", { tabindex: 0, role: "rowgroup", "aria-label": "tensors", scroll: () => this.show() }, this.body);
    this.element = make("div.tensors", {}, make("div.tools", {}, this.search, make("kbd", { title: "focuses the search" }, "/"), this.count),
      make("div.grid", { role: "table", "aria-label": "tensors" }, this.head, this.view));
    this.makeHead();
    state.when(["model"], () => this.load());
    new ResizeObserver(() => this.show()).observe(this.view);
  }

  makeHead() {
    replace(this.head, this.columns.map((c) => {
      const isSorted = this.sort.key === c.key;
      return make("div." + (c.right ? "right" : "left"), { role: "columnheader",
        "aria-sort": isSorted ? (this.sort.down ? "descending" : "ascending") : "none" },
        make("button", { type: "button", click: () => this.sortBy(c.key) },
          c.title + (isSorted ? (this.sort.down ? " \u25be" : " \u25b4") : "")));
    }));
  }

  /* Where dims are free, a tensor has the size it has in the example. */
  load() {
    const model = this.state.model;
    const sizes = new Map();
    if (model.isExample) {
      const e = model.executions.find((x) => x.runtime === "ideal");
      if (e !== undefined) {
        e.decode();
        for (let i = 0; i < e.n; i++) sizes.set(e.name[i], e.bytes[i]);
      }
    }
    this.tensors = model.json.tensors;
    this.sizes = sizes;
    this.keys = null;
    this.filter();
  }

  size(i) {
    return this.tensors[i].bytes ?? this.sizes.get(i) ?? null;
  }

  searched(t) {
    return (t.name.length > 2000 ? t.name.slice(0, 1000) + t.name.slice(-1000) : t.name).toLowerCase() + " " + t.kind + " " + t.dtype;
  }

  sortBy(key) {
    this.sort = { key, down: this.sort.key === key ? !this.sort.down : key === "bytes" };
    this.makeHead();
    this.head.querySelector("[aria-sort=ascending] button, [aria-sort=descending] button").focus();
    this.filter();
  }

  filter() {
    const words = this.search.value.toLowerCase().split(/\s+/).filter((w) => w !== "");
    let found = Uint32Array.from(this.tensors, (_, i) => i);
    if (words.length > 0) {
      this.keys ??= this.tensors.map((t) => this.searched(t));
      found = found.filter((i) => words.every((w) => this.keys[i].includes(w)));
    }
    const { order } = this.columns.find((c) => c.key === this.sort.key), sign = this.sort.down ? -1 : 1;
    const values = this.tensors.map(order);
    this.found = found.sort((a, b) => (values[a] < values[b] ? -sign : values[a] > values[b] ? sign : a - b));
    let sum = 0;
    for (const i of found) sum += this.size(i) ?? 0;
    this.count.textContent = this.found.length.toLocaleString("en-US") + " of " + this.tensors.length.toLocaleString("en-US") +
      " tensors, " + bytesText(sum);
    this.view.setAttribute("aria-rowcount", String(this.found.length));
    this.view.scrollTop = 0;
    this.show();
  }

  show() {
    if (this.found === undefined) return;
    /* Browsers end an element at some 30 million pixels; a million rows is below. */
    this.body.style.height = Math.min(this.found.length, 1000000) * ROW_HEIGHT + "px";
    const from = Math.max(0, Math.floor(this.view.scrollTop / ROW_HEIGHT) - 4);
    const end = Math.min(this.found.length, from + Math.ceil(this.view.clientHeight / ROW_HEIGHT) + 8);
    const rows = [];
    for (let k = from; k < end; k++) {
      const i = this.found[k];
      const row = make("div.row", { role: "row", "data-tensor": i },
        this.columns.map((c) => make("div." + (c.right ? "right" : "left"), { role: "cell" }, c.text(this.tensors[i], i))));
      row.style.transform = "translateY(" + k * ROW_HEIGHT + "px)";
      rows.push(row);
    }
    replace(this.body, rows);
  }

  /* The step that makes it, with its node and line, and its buffer in the charts. */
  choose(tensor) {
    const e = this.state.execution;
    if (e === null) return;
    const i = e.name.indexOf(tensor);
    if (i < 0) return;
    this.state.set({ buffer: i, step: e.first[i], pinned: e.first[i] });
    document.getElementById("timeline").scrollIntoView();
  }
}
