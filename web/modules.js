"use strict";
/* Modules as an icicle: a row for each depth, as wide as its share. */

const METRICS = [
  ["parameters", "weights", "parameters"], ["activations", "activations", "bytes of all results"],
  ["peak", "at the peak", "bytes that live at the peak of the execution that is shown"],
  ["saved", "saved for backward", "bytes kept from forward to backward"], ["macs", "multiply-accumulates", ""],
];

class Modules {
  constructor(state) {
    this.state = state;
    this.metric = "activations";
    this.root = 0;
    this.tools = make("div.tools");
    this.rows = make("div.icicle", { role: "tree", "aria-label": "modules" });
    this.says = make("p.note", { "aria-live": "polite" });
    this.element = make("div.modules", {}, this.tools, this.rows, this.says);
    state.when(["model"], () => { this.root = 0; this.refresh(); });
    state.when(["execution"], () => this.refresh());
    new ResizeObserver(() => this.layOut()).observe(this.rows);
    this.rows.addEventListener("keydown", (event) => this.key(event));
  }

  /* With everything inside, by module. */
  values() {
    const model = this.state.model, e = this.state.execution, list = model.modules;
    switch (this.metric) {
      case "parameters": return list.map((m) => m.parameters ?? 0);
      case "activations": return list.map((m) => m.activation_bytes ?? 0);
      case "macs": return list.map((m) => m.macs ?? 0);
      default: break;
    }
    const sums = new Float64Array(list.length);
    if (e === null) return Array.from(sums);
    if (this.metric === "saved") sums.set(e.savedByModule());
    else for (const i of e.liveAt(e.peakStep)) sums[e.module[i]] += e.bytes[i];
    for (let i = list.length - 1; i > 0; i--) sums[list[i].parent] += sums[i];
    return Array.from(sums);
  }

  text(value) {
    return this.metric === "macs" ? scaledText(value) : this.metric === "parameters" ? scaledText(value) : bytesText(value);
  }

  refresh() {
    const hasTraining = this.state.execution?.runtime === "train";
    if (this.metric === "saved" && !hasTraining) this.metric = "activations";
    replace(this.tools, choice("size of a module", METRICS.filter(([key]) => key !== "saved" || hasTraining), this.metric, (key) => {
      this.metric = key;
      this.refresh();
    }));
    this.sizes = this.values();
    this.layOut();
  }

  layOut() {
    const model = this.state.model;
    if (model === null || this.sizes === undefined) return;
    const width = this.rows.clientWidth, least = 3, height = 30, most = 400;
    const items = [];
    let queue = [[this.root, 0, width, 0]], deepest = 0;
    while (queue.length > 0 && items.length < most) {
      const next = [];
      for (const [m, left, room, depth] of queue) {
        if (room < least || items.length >= most) continue;
        items.push(this.cell(m, left, room, depth * height));
        deepest = Math.max(deepest, depth);
        if (depth >= 9) continue;
        let at = left;
        const whole = this.sizes[m] || 1;
        for (const child of model.children[m]) {
          const part = (room * this.sizes[child]) / whole;
          next.push([child, at, part, depth + 1]);
          at += part;
        }
      }
      queue = next;
    }
    replace(this.rows, items);
    this.rows.style.height = (deepest + 1) * height + "px";
    if (items.length > 0) items[0].tabIndex = 0;
    this.say(this.root);
  }

  say(m) {
    const list = this.state.model.modules;
    replace(this.says, nameSpan(this.state.model.modulePath(m), 90), ": " + this.text(this.sizes[m]) + " (" +
      percentText(this.sizes[m], this.sizes[0]) + "), " + scaledText(list[m].parameters) + " parameters, " +
      bytesText(list[m].activation_bytes) + " results, " + scaledText(list[m].macs) + " multiply-accumulates");
  }

  cell(m, left, room, top) {
    const model = this.state.model;
    const slot = model.shownModuleOf[m];
    const name = m === 0 ? fileName(model.path) : model.modules[m].name;
    const cell = make("button.cell", { type: "button", tabindex: -1, role: "treeitem", "data-module": m,
      title: clean(model.modulePath(m), 120) + ": " + this.text(this.sizes[m]),
      mouseenter: () => this.say(m), focus: () => this.say(m),
      click: () => {
        this.root = m === this.root && m > 0 ? model.modules[m].parent : m;
        this.layOut();
        this.rows.firstChild?.focus();
      } });
    cell.classList.toggle("labelled", room > 34);
    if (room > 34) cell.append(clean(name, 60), room > 110 ? make("small", {}, " " + this.text(this.sizes[m])) : "");
    cell.style.transform = "translate(" + left + "px," + top + "px)";
    cell.style.width = Math.max(1, room - 1) + "px";
    cell.style.background = m === this.root ? slotColor("rest") : slotColor(slot < 0 ? "rest" : slot);
    if (slot >= 0 && m !== this.root) cell.classList.add("colored");
    return cell;
  }

  key(event) {
    const cells = [...this.rows.children], at = cells.indexOf(document.activeElement);
    if (at < 0) return;
    const model = this.state.model, m = Number(cells[at].dataset.module);
    const find = (target) => cells.find((c) => Number(c.dataset.module) === target);
    let to;
    if (event.key === "ArrowRight") to = cells[at + 1];
    else if (event.key === "ArrowLeft") to = cells[at - 1];
    else if (event.key === "ArrowDown") to = model.children[m].map(find).find((c) => c !== undefined);
    else if (event.key === "ArrowUp") to = m === this.root ? undefined : find(model.modules[m].parent);
    else if (event.key === "Escape" && this.root > 0) {
      this.root = model.modules[this.root].parent;
      this.layOut();
      to = this.rows.firstChild;
    } else return;
    event.preventDefault();
    if (to === undefined || to === null) return;
    for (const c of this.rows.children) c.tabIndex = -1;
    to.tabIndex = 0;
    to.focus();
  }
}
