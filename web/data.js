"use strict";
/* The report, decoded: nothing here computes a figure anew, columns are only summed up to what they hold. */

const LAYERS = ["weights", "optimizer", "gradients", "activations", "pattern", "temporary"];
const LAYER_TEXT = { weights: "weights", optimizer: "optimizer state", gradients: "gradients",
                     activations: "activations", pattern: "memory pattern", temporary: "temporary" };
const LAYER_OF_KIND = { weight: 0, statistic: 0, state: 1, gradient: 2, pool: 4, temporary: 5, workspace: 5 };

/* Differences to values; a column that is absent holds its usual value, one that is a number is that of another
 * execution. */
function decodeColumn(table, key, usual, others) {
  const count = table.count;
  const values = new Float64Array(count);
  let from = table[key];
  if (typeof from === "number") from = others[from][key];
  if (from === undefined) return values.fill(usual);
  let sum = 0;
  for (let i = 0; i < count; i++) {
    sum += from[i];
    values[i] = sum;
  }
  return values;
}

class Execution {
  constructor(model, json, index) {
    this.model = model;
    this.json = json;
    this.index = index;
    this.runtime = json.runtime;
    this.plan = json.plan ?? null;
    this.count = json.steps.count;
    this.decoded = false;
    this.stacks = new Map();
  }

  get title() {
    if (this.runtime !== "train") return this.runtime;
    if (this.plan === null) return "train";
    const plans = this.model.json.training?.plans ?? [];
    return "train: " + (plans[this.plan] === undefined ? this.plan : planName(plans[this.plan]));
  }

  decode() {
    if (this.decoded) return this;
    this.decoded = true;
    const { steps, buffers, segments } = this.json;
    const all = this.model.timelines.executions;
    const column = (table, key, usual = 0) =>
      decodeColumn(table, key, usual, all.map((e) => (table === steps ? e.steps : table === buffers ? e.buffers : e.segments)));
    this.node = column(steps, "node", -1);
    this.label = column(steps, "label", -1);
    this.phase = column(steps, "phase");
    this.iteration = column(steps, "iteration");
    this.recompute = column(steps, "recompute");
    this.live = column(steps, "live_bytes");
    this.allocated = column(steps, "allocated_bytes");
    this.reserved = column(steps, "reserved_bytes");
    this.n = buffers.count;
    this.name = column(buffers, "name", -1);
    this.kind = column(buffers, "kind");
    this.bytes = column(buffers, "bytes");
    this.first = column(buffers, "first");
    this.last = column(buffers, "steps");
    for (let i = 0; i < this.n; i++) this.last[i] += this.first[i];
    this.within = column(buffers, "within", -1);
    this.transient = column(buffers, "transient");
    this.segment = column(buffers, "segment", -1);
    this.offset = column(buffers, "offset");
    this.segmentBytes = column(segments, "bytes");
    this.segmentFirst = column(segments, "first");
    this.segmentEnd = column(segments, "end");
    const kinds = this.model.timelines.kinds;
    this.layer = new Uint8Array(this.n);
    for (let i = 0; i < this.n; i++) {
      const layer = LAYER_OF_KIND[kinds[this.kind[i]]];
      this.layer[i] = layer === undefined ? 3 : layer;
      const isWhole = this.first[i] === 0 && this.last[i] === this.count - 1;
      if (this.layer[i] === 4 && isWhole) this.layer[i] = 0; /* the block of all weights */
    }
    return this;
  }

  weightsAt(step) {
    this.weights ??= this.stack("kind").find((row) => row.color === "weights") ?? null;
    return this.weights === null ? 0 : this.weights.bytes[step];
  }

  /* The line of Python of what runs. */
  lineAt(step) {
    return this.node[step] >= 0 ? this.model.json.nodes[this.node[step]].line : undefined;
  }

  /* The module of the step that makes a buffer; a weight's is that of its first reader. */
  get module() {
    if (this.modules !== undefined) return this.modules;
    const ofNode = this.model.moduleOfNode;
    this.modules = new Int32Array(this.n);
    for (let i = 0; i < this.n; i++) {
      const name = this.name[i], step = this.node[this.first[i]];
      const node = name >= 0 ? this.model.nodeOfName(name) : -1;
      this.modules[i] = node >= 0 ? ofNode[node] : this.layer[i] === 0 || step < 0 ? 0 : ofNode[step];
    }
    return this.modules;
  }

  bufferName(i) {
    return this.name[i] < 0 ? this.model.timelines.kinds[this.kind[i]] : this.model.nameText(this.name[i]);
  }

  kindName(i) {
    return this.model.timelines.kinds[this.kind[i]];
  }

  /* "Conv", or the runtime's name for what runs. */
  operation(step) {
    return this.label[step] >= 0 ? this.model.nameText(this.label[step]) : "";
  }

  nodeName(step) {
    return this.node[step] >= 0 ? this.model.nodeText(this.node[step]) : "";
  }

  stepText(step) {
    const phase = this.phase[step] > 0 || this.runtime === "train"
      ? this.model.timelines.phases[this.phase[step]] + (this.recompute[step] ? ", again" : "") : "";
    return { operation: clean(this.operation(step), 48), node: this.nodeName(step), phase };
  }

  /* What makes up the live bytes of a step, largest first. Of what begins there, buffers that are freed before
   * the next one is allocated stand beside those alone that came before them; the moment with the most counts. */
  liveAt(step) {
    const rows = [], begun = [];
    let sum = 0, most = 0, best = [];
    for (let i = 0; i < this.n; i++) {
      if (this.within[i] >= 0 || this.first[i] > step || step > this.last[i] || this.bytes[i] === 0) continue;
      if (this.first[i] < step) {
        rows.push(i);
        continue;
      }
      if (sum + this.bytes[i] > most) {
        most = sum + this.bytes[i];
        best = [begun.length, i];
      }
      if (this.transient[i]) continue;
      sum += this.bytes[i];
      begun.push(i);
    }
    if (best.length > 0) rows.push(...begun.slice(0, best[0]), best[1]);
    return rows.sort((a, b) => this.bytes[b] - this.bytes[a] || a - b);
  }

  /* Bytes by step of each of the layers that `layerOf` gives buffers; the last row of the result is what of the
   * live bytes is not in them: buffers that are freed before the next one of their step. */
  sum(nLayers, layerOf) {
    const n = this.count, rows = [];
    for (let l = 0; l <= nLayers; l++) rows.push(new Float64Array(n + 1));
    for (let i = 0; i < this.n; i++) {
      if (this.within[i] >= 0 || this.transient[i]) continue;
      const row = rows[layerOf(i)];
      row[this.first[i]] += this.bytes[i];
      row[this.last[i] + 1] -= this.bytes[i];
    }
    const rest = rows[nLayers];
    rest.set(this.live);
    for (let l = 0; l < nLayers; l++) {
      const row = rows[l];
      let sum = 0;
      for (let s = 0; s < n; s++) {
        sum += row[s];
        row[s] = sum;
        rest[s] -= sum;
      }
    }
    return rows;
  }

  /* The stack of a mode: rows from below, each with a name, a color slot, and its bytes by step. */
  stack(mode) {
    let stack = this.stacks.get(mode);
    if (stack === undefined) {
      stack = mode === "tensor" ? this.stackTensors() : mode === "module" ? this.stackModules() : this.stackKinds();
      this.stacks.set(mode, stack);
    }
    return stack;
  }

  stackKinds() {
    const rows = this.sum(LAYERS.length, (i) => this.layer[i]);
    const rest = rows.pop();
    const temporary = rows[5];
    for (let s = 0; s < this.count; s++) temporary[s] += rest[s];
    return rows.map((bytes, l) => ({ name: LAYER_TEXT[LAYERS[l]], color: LAYERS[l], bytes, layer: l }))
      .filter((row) => row.bytes.some((b) => b > 0));
  }

  stackTensors() {
    const most = 32;
    const order = Array.from({ length: this.n }, (_, i) => i)
      .filter((i) => this.layer[i] !== 0 && this.within[i] < 0 && !this.transient[i] && this.bytes[i] > 0);
    /* The ones that take most room in the picture: bytes times steps. */
    const area = (i) => this.bytes[i] * (this.last[i] - this.first[i] + 1);
    order.sort((a, b) => this.bytes[b] - this.bytes[a] || area(b) - area(a) || a - b);
    const shown = order.slice(0, most).sort((a, b) => this.first[a] - this.first[b] || a - b);
    const layer = new Map(shown.map((i, k) => [i, k + 2]));
    const rows = this.sum(shown.length + 2, (i) => (this.layer[i] === 0 ? 0 : layer.get(i) ?? 1));
    const all = [{ name: "weights", color: "weights", bytes: rows[0] },
                 { name: "small ones", color: "rest", bytes: rows[1] }];
    shown.forEach((i, k) => all.push({ name: this.bufferName(i), color: k, bytes: rows[k + 2], buffer: i }));
    all.push({ name: "temporary", color: "temporary", bytes: rows[shown.length + 2] });
    return all.filter((row) => row.bytes.some((b) => b > 0));
  }

  stackModules() {
    const modules = this.model.shownModules;
    const rows = this.sum(modules.length + 2, (i) => {
      if (this.layer[i] === 0) return 0;
      const m = this.model.shownModuleOf[this.module[i]];
      return m < 0 ? 1 : m + 2;
    });
    const all = [{ name: "weights", color: "weights", bytes: rows[0] },
                 { name: "outside of modules", color: "rest", bytes: rows[1] }];
    modules.forEach((m, k) => all.push({ name: this.model.modulePath(m), color: k, bytes: rows[k + 2], module: m }));
    all.push({ name: "temporary", color: "temporary", bytes: rows[modules.length + 2] });
    return all.filter((row) => row.bytes.some((b) => b > 0));
  }

  /* The color slot that a buffer has in the stack of a mode. */
  slot(i, mode) {
    const layer = LAYERS[this.layer[i]];
    if (mode === "kind" || layer === "weights" || layer === "temporary") return layer;
    if (mode === "module") {
      const m = this.model.shownModuleOf[this.module[i]];
      return m < 0 ? "rest" : m;
    }
    this.slots ??= new Map(this.stack("tensor").filter((row) => row.buffer !== undefined).map((row) => [row.buffer, row.color]));
    return this.slots.get(i) ?? "rest";
  }

  get peakStep() {
    return this.json.peak_step;
  }

  /* Of each iteration or run: the most that is live, allocated, reserved. */
  iterations() {
    this.decode();
    const runs = [];
    for (let s = 0; s < this.count; s++) {
      const run = (runs[this.iteration[s]] ??= { live: 0, allocated: 0, reserved: 0 });
      run.live = Math.max(run.live, this.live[s]);
      run.allocated = Math.max(run.allocated, this.allocated[s]);
      run.reserved = Math.max(run.reserved, this.reserved[s]);
    }
    return runs;
  }

  /* Bytes of activations that stay from a forward to a backward step, by module. */
  savedByModule() {
    this.decode();
    const saved = new Float64Array(this.model.modules.length);
    const from = this.json.measured_from ?? 0;
    for (let i = 0; i < this.n; i++) {
      if (this.within[i] >= 0 || this.layer[i] !== 3 || this.first[i] < from) continue;
      const a = this.first[i], b = this.last[i];
      const isSaved = this.iteration[a] === this.iteration[from] && this.phase[a] === 0 && this.phase[b] === 2 &&
        !this.recompute[a];
      if (isSaved) saved[this.module[i]] += this.bytes[i];
    }
    return saved;
  }
}

class Model {
  constructor(json, index) {
    this.json = json;
    this.index = index;
    this.path = json.path;
    this.isExample = json.timelines === undefined && json.example?.timelines !== undefined;
    /* What figures stand for: the model itself, or the example of its free dims. */
    this.sized = this.isExample ? json.example : json;
    this.timelines = this.sized.timelines ?? { executions: [], labels: [], kinds: [], phases: [], modules: null };
    this.modules = this.timelines.modules?.list ?? [{ name: "", parent: null }];
    const nodes = json.nodes.length;
    this.moduleOfNode = this.timelines.modules
      ? decodeColumn({ count: nodes, of: this.timelines.modules.of_node }, "of", 0, []) : new Float64Array(nodes);
    this.executions = this.timelines.executions.map((e, i) => new Execution(this, e, i));
    this.linkModules();
  }

  /* By name the node that makes it, or else the first one that reads it; or that is called so. */
  linkNodes() {
    const { tensors, nodes } = this.json, rowOf = new Map(), nodeOf = new Map();
    const found = new Int32Array(tensors.length + this.timelines.labels.length).fill(-1);
    tensors.forEach((t, i) => { if (!rowOf.has(t.name)) rowOf.set(t.name, i); });
    nodes.forEach((node, s) => {
      if (node.name !== "" && !nodeOf.has(node.name)) nodeOf.set(node.name, s);
      for (const name of node.outputs) if (rowOf.has(name)) found[rowOf.get(name)] = s;
    });
    nodes.forEach((node, s) => {
      for (const name of node.inputs) if (found[rowOf.get(name)] < 0) found[rowOf.get(name)] = s;
    });
    this.timelines.labels.forEach((text, i) => { found[tensors.length + i] = nodeOf.get(text) ?? -1; });
    return found;
  }

  /* A few modules by which a stack can be told apart: as deep as gives at most a dozen. */
  linkModules() {
    const list = this.modules;
    this.depth = list.map(() => 0);
    this.children = list.map(() => []);
    for (let i = 1; i < list.length; i++) {
      this.depth[i] = this.depth[list[i].parent] + 1;
      this.children[list[i].parent].push(i);
    }
    const most = 14;
    let shown = this.children[0].slice();
    while (shown.length === 1 && this.children[shown[0]].length > 0) shown = this.children[shown[0]];
    for (;;) {
      const next = shown.flatMap((m) => (this.children[m].length > 0 ? this.children[m] : [m]));
      if (next.length > most || next.length === shown.length) break;
      shown = next;
    }
    this.shownModules = shown.length > most ? shown.slice(0, most) : shown;
    const slot = new Map(this.shownModules.map((m, k) => [m, k]));
    this.shownModuleOf = new Int32Array(list.length).fill(-1);
    for (let i = 0; i < list.length; i++)
      this.shownModuleOf[i] = slot.get(i) ?? (i > 0 ? this.shownModuleOf[list[i].parent] : -1);
  }

  nameText(name) {
    const n = this.json.tensors.length;
    return name < n ? this.json.tensors[name].name : this.timelines.labels[name - n];
  }

  nodeOfName(name) {
    this.nodeOf ??= this.linkNodes(); /* of many nodes it takes a while, and only modules ask */
    return this.nodeOf[name];
  }

  nodeText(node) {
    const row = this.json.nodes[node];
    return row.name !== "" ? row.name : row.outputs[0] ?? row.op_type;
  }

  modulePath(m) {
    const parts = [];
    for (; m > 0; m = this.modules[m].parent) parts.unshift(this.modules[m].name);
    return parts.join("/") || "(model)";
  }

  get runtimes() {
    return this.sized.runtimes ?? {};
  }

  /* What is drawn first: training as it is chosen, or else PyTorch, ONNX Runtime, what there is. */
  mainExecution() {
    const chosen = (this.json.training?.plans ?? []).findIndex((p) => p.chosen);
    const ranked = this.executions.slice().sort((a, b) => this.rank(a, chosen) - this.rank(b, chosen));
    return ranked[0]?.index ?? -1;
  }

  rank(execution, chosen) {
    if (execution.runtime === "train")
      return execution.plan === (chosen >= 0 ? chosen : null) ? 0 : 100 + (execution.plan ?? 0);
    return 1 + ["torch", "ort", "async", "arena", "ideal"].indexOf(execution.runtime);
  }
}

/* --- Formulas of the free dims ------------------------------------------------------------------- */

/* Postfix order over whole numbers; null where it is not exact any more. */
function evaluate(postfix, sizes) {
  if (postfix === undefined) return null;
  const stack = [];
  for (const item of postfix) {
    if (typeof item === "number") stack.push(BigInt(item));
    else if (Array.isArray(item)) stack.push(BigInt(sizes[item[0]]));
    else {
      const b = stack.pop(), a = stack.pop();
      const value = operate(item, a, b);
      if (value === null) return null;
      stack.push(value);
    }
  }
  const result = Number(stack.pop());
  return Number.isSafeInteger(result) ? result : null;
}

function operate(op, a, b) {
  if (a === undefined || b === undefined || ((op === "//" || op === "%") && b === 0n)) return null;
  switch (op) {
    case "+": return a + b;
    case "*": return a * b;
    case "min": return a < b ? a : b;
    case "max": return a > b ? a : b;
    case "//": return floorDivide(a, b);
    case "%": return a - b * floorDivide(a, b);
    default: return null;
  }
}

function floorDivide(a, b) {
  const q = a / b;
  return a % b !== 0n && a < 0n !== b < 0n ? q - 1n : q;
}

/* The peak at these sizes: the largest of the pieces, and the step it is at. */
function formulaPeak(formula, sizes) {
  let best = null;
  for (const piece of formula.peak_bytes_largest_of) {
    const bytes = typeof piece.bytes === "number" ? piece.bytes : evaluate(piece.postfix, sizes);
    if (bytes === null) return null;
    if (best === null || bytes > best.bytes) best = { bytes, step: piece.step };
  }
  return best;
}
