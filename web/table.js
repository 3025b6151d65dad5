"use strict";
/* All tensors: searched, sorted, and only those rows made that are seen. */

const ROW_HEIGHT = 26;

class TensorTable {
  constructor(state) {
    this.state = state;
    this.sort = { key: "bytes", down: true };
    this.columns = [
      { key: "name", title: "tensor", text: (t) => nameSpan(t.name, 70), order: (t) => t.name },
      { key: "kind", title: "kind", text: (t) => t.kind, order: (t) => t.kind },
      { key: "dtype", title: "type", text: (t) => clean(t.dtype, 24), order: (t) => t.dtype },
      { key: "shape", title: "shape", text: (t) => make("bdi", {}, shapeText(t.shape)), order: (t) => shapeText(t.shape) },
      { key: "bytes", title: "bytes", right: true, text: (t) => (t.bound ? "\u2264 " : "") + bytesText(t.size), order: (t) => t.size ?? -1 },
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
    this.rows = model.json.tensors.map((t, i) => ({ ...t, index: i, size: t.bytes ?? sizes.get(i) ?? null,
      key: (t.name.length > 2000 ? t.name.slice(0, 1000) + t.name.slice(-1000) : t.name).toLowerCase() + " " + t.kind + " " + t.dtype }));
    this.filter();
  }

  sortBy(key) {
    this.sort = { key, down: this.sort.key === key ? !this.sort.down : key === "bytes" };
    this.makeHead();
    this.head.querySelector("[aria-sort=ascending] button, [aria-sort=descending] button").focus();
    this.filter();
  }

  filter() {
    const words = this.search.value.toLowerCase().split(/\s+/).filter((w) => w !== "");
    this.found = this.rows.filter((t) => words.every((w) => t.key.includes(w)));
    const order = this.columns.find((c) => c.key === this.sort.key).order, sign = this.sort.down ? -1 : 1;
    const keys = new Map(this.found.map((t) => [t, order(t)]));
    this.found.sort((a, b) => {
      const x = keys.get(a), y = keys.get(b);
      return x < y ? -sign : x > y ? sign : a.index - b.index;
    });
    let sum = 0;
    for (const t of this.found) sum += t.size ?? 0;
    this.count.textContent = this.found.length.toLocaleString("en-US") + " of " + this.rows.length.toLocaleString("en-US") +
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
      const t = this.found[k];
      const row = make("div.row", { role: "row", "data-tensor": t.index, click: () => this.choose(t) },
        this.columns.map((c) => make("div." + (c.right ? "right" : "left"), { role: "cell" }, c.text(t))));
      row.style.transform = "translateY(" + k * ROW_HEIGHT + "px)";
      rows.push(row);
    }
    replace(this.body, rows);
  }

  /* The step that makes it, and its buffer in the charts. */
  choose(t) {
    const e = this.state.execution;
    if (e === null) return;
    const i = e.name.indexOf(t.index);
    if (i < 0) return;
    this.state.set({ buffer: i, step: e.first[i] });
  }
}
