"use strict";
/* The page: takes files, runs the program in a worker, shows its report in a frame that can do nothing but draw. */

const find = (id) => document.getElementById(id);
const TICK = 1000;

/* The program, unpacked once; each analysis has a worker of its own, whose memory goes with it. */
async function unpack() {
  const packed = Uint8Array.from(atob(find("program").textContent), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}

/* Words as a shell reads them: blanks divide, quotes and backslashes hold together. */
function words(text) {
  const found = [];
  for (const [whole] of text.matchAll(/(?:[^\s"'\\]|\\.|"(?:[^"\\]|\\.)*"|'[^']*')+/gs)) {
    found.push(whole.replace(/\\(.)|"((?:[^"\\]|\\.)*)"|'([^']*)'/gs,
      (part, escaped, double, single) => escaped ?? single ?? double.replace(/\\(["\\])/g, "$1")));
  }
  return found;
}

function quoted(word) {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : "'" + word.replaceAll("'", "'\\''") + "'";
}

class Page {
  constructor() {
    this.files = [];
    this.worker = null;
    this.program = unpack();
    this.address = null;
    find("files").addEventListener("change", (event) => this.take([...event.target.files]));
    find("form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.start();
    });
    /* A model that is in the page, with a batch where none is given. */
    find("sample").addEventListener("click", () => {
      const bytes = Uint8Array.from(atob(find("resnet18").textContent), (c) => c.charCodeAt(0));
      find("batch").value ||= "8";
      this.take([new File([bytes], "resnet18.onnx")]);
    });
    find("stop").addEventListener("click", () => {
      this.end();
      find("status").textContent = "Stopped.";
    });
    this.listen();
  }

  /* A file may be dropped anywhere. */
  listen() {
    const drop = find("drop");
    addEventListener("dragover", (event) => {
      event.preventDefault();
      drop.classList.add("over");
    });
    addEventListener("dragleave", (event) => {
      if (event.relatedTarget === null) drop.classList.remove("over");
    });
    addEventListener("drop", (event) => {
      event.preventDefault();
      drop.classList.remove("over");
      this.take([...event.dataTransfer.files]);
    });
  }

  take(files) {
    if (files.length === 0) return;
    this.files = files;
    find("start").disabled = false;
    this.start();
  }

  /* Models are what is called so, or the only file there is; the rest is their external data. */
  models() {
    const named = this.files.filter((file) => /\.onnx$/i.test(file.name));
    return (named.length > 0 ? named : this.files.slice(0, 1)).map((file) => (file.name.startsWith("-") ? "./" : "") + file.name);
  }

  options() {
    const args = [];
    for (const field of document.querySelectorAll("[data-option]")) {
      const text = field.value.trim();
      const values = text === "" ? [] : "each" in field.dataset ? words(text) : [text];
      for (const value of values) args.push(field.dataset.option + "=" + value);
    }
    return [...args, ...words(find("more").value)];
  }

  async start() {
    if (this.files.length === 0) return;
    this.end();
    const args = [...this.options(), ...this.models()];
    const names = this.models().join(", "), began = Date.now();
    find("command").hidden = false;
    find("command").querySelector("code").textContent = ["onnxvram", ...args, "--html"].map(quoted).join(" ");
    for (const id of ["problem", "save"]) find(id).hidden = true;
    find("report")?.remove();
    find("status").textContent = "Analysing " + names;
    find("stop").hidden = false;
    const ticker = setInterval(() => {
      find("status").textContent = "Analysing " + names + ": " + Math.round((Date.now() - began) / TICK) + " s";
    }, TICK);
    this.quiet = () => clearInterval(ticker);
    const address = URL.createObjectURL(new Blob([find("worker").textContent], { type: "text/javascript" }));
    const worker = new Worker(address);
    this.worker = worker;
    worker.onmessage = ({ data }) => this.show(data, names, began);
    worker.onerror = (event) => this.show({ said: ["the analyzer stopped: " + event.message], report: null }, names, began);
    const program = await this.program;
    URL.revokeObjectURL(address);
    if (this.worker === worker) worker.postMessage({ program, files: this.files, args });
  }

  end() {
    this.quiet?.();
    this.worker?.terminate();
    this.worker = null;
    find("stop").hidden = true;
  }

  show({ said, report }, names, began) {
    this.end();
    const seconds = ((Date.now() - began) / TICK).toFixed(1);
    find("status").textContent = report === null ? "No report of " + names + "." : "Report of " + names + ", after " + seconds + " s";
    find("problem").textContent = said.join("\n");
    find("problem").hidden = said.length === 0;
    if (report === null) return;
    if (this.address !== null) URL.revokeObjectURL(this.address);
    this.address = URL.createObjectURL(new Blob([report], { type: "text/html" }));
    /* A frame of its own for each: one that was hidden meanwhile may not be laid out again. */
    const frame = document.createElement("iframe");
    frame.id = "report";
    frame.title = "Report of " + names;
    frame.setAttribute("sandbox", "allow-scripts");
    frame.srcdoc = new TextDecoder().decode(report);
    document.querySelector("main").append(frame);
    find("save").href = this.address;
    find("save").download = names.replace(/[^\w.-]+/g, "_") + ".html";
    find("save").hidden = false;
  }
}

const page = new Page();
