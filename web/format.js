"use strict";
/* Numbers and text for people, and the helpers that make elements. Text of a model reaches the page through
 * clean() and textContent alone. */

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

/* "812 B", "97.3 MiB", "2.30 GiB", as the text report writes them. */
function bytesText(bytes) {
  if (bytes === null || bytes === undefined) return "?";
  if (bytes < 0) return "\u2212" + bytesText(-bytes);
  if (bytes < 1024) return Math.round(bytes) + " B";
  let power = 1;
  let value = bytes / 1024;
  const decimals = () => (power < 3 ? 1 : 2);
  while (power < 6 && Number(value.toFixed(decimals())) >= 1024) {
    value /= 1024;
    power++;
  }
  return value.toFixed(decimals()) + " " + UNITS[power];
}

function signedBytes(bytes) {
  return bytes > 0 ? "+" + bytesText(bytes) : bytes < 0 ? bytesText(bytes) : "0 B";
}

function countText(count) {
  return count === null || count === undefined ? "?" : count.toLocaleString("en-US");
}

/* "4.09 G": powers of 1000. */
function scaledText(count) {
  if (count === null || count === undefined) return "?";
  if (count < 1000) return String(count);
  const suffixes = ["", "k", "M", "G", "T", "P", "E"];
  let power = 0;
  while (count >= 999.5 && power < suffixes.length - 1) {
    count /= 1000;
    power++;
  }
  return count.toPrecision(3) + " " + suffixes[power];
}

function percentText(part, whole) {
  return whole > 0 ? ((100 * part) / whole).toFixed(1) + "%" : "0.0%";
}

/* What could deceive a reader or take a page apart becomes an escape: controls, bidirectional marks, line
 * separators, characters that are not seen. */
const HIDDEN = new RegExp(
  "[\\u0000-\\u001f\\u007f-\\u009f\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f" +
    "\\u200b-\\u200f\\u2028-\\u202f\\u205f-\\u206f\\u3164\\ufe00-\\ufe0f\\ufeff\\uffa0\\ufff0-\\uffff]" +
    "|[\\ud800-\\udbff](?![\\udc00-\\udfff])|(?<![\\ud800-\\udbff])[\\udc00-\\udfff]|\\udb40[\\udc00-\\udfff]",
  "g");

function escapeCharacter(c) {
  const code = c.codePointAt(0);
  return code <= 0xff ? "\\x" + code.toString(16).padStart(2, "0")
                      : "\\u" + code.toString(16).padStart(4, "0");
}

/* At most `most` characters: of a longer name the middle goes, for its end tells most. */
function clean(text, most = 160) {
  if (text === null || text === undefined) return "";
  if (text.length > 4 * most) text = text.slice(0, 2 * most) + "\u2026" + text.slice(-2 * most);
  text = text.replace(HIDDEN, escapeCharacter);
  if (text.length <= most) return text;
  const head = Math.floor((most - 1) / 3);
  return text.slice(0, head) + "\u2026" + text.slice(text.length - (most - 1 - head));
}

function fileName(path) {
  return path.slice(path.lastIndexOf("/") + 1);
}

/* "256x3x224x224" */
function shapeText(shape) {
  if (shape === null || shape === undefined) return "?";
  return shape.length === 0 ? "scalar" : shape.map((d) => clean(String(d), 40)).join("\u00d7");
}

/* --- Elements ------------------------------------------------------------------------------------ */

const SVG = "http://www.w3.org/2000/svg";

/* make("p.note", {title: "..."}, "text", child, ...): strings become text, never markup. */
function make(what, attributes, ...children) {
  const [tag, ...classes] = what.split(".");
  return fill(document.createElement(tag), classes, attributes, children);
}

function makeSvg(what, attributes, ...children) {
  const [tag, ...classes] = what.split(".");
  return fill(document.createElementNS(SVG, tag), classes, attributes, children);
}

function fill(element, classes, attributes, children) {
  if (classes.length > 0) element.setAttribute("class", classes.join(" "));
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(key, value);
    else element.setAttribute(key, value === true ? "" : String(value));
  }
  for (const child of children.flat(Infinity)) if (child !== null && child !== undefined) element.append(child);
  return element;
}

function replace(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter((c) => c !== null && c !== undefined));
}

/* A name of the model: shortened, its own direction kept to itself. */
function nameSpan(text, most = 80) {
  const span = make("bdi.name", { dir: "ltr" }, clean(text, most));
  if (text !== null && text !== undefined && text.length > most) span.title = clean(text, 600);
  return span;
}

/* The line of Python that it was exported from; the file may not say it. */
function lineText(line) {
  return line === undefined ? null : make("code.at", { title: "the line of Python" }, clean(line, 80));
}

/* A word of a command, as a shell takes it. */
function shellWord(text) {
  return /^[A-Za-z0-9_@%+=:,./-]+$/.test(text) ? text : "'" + text.replaceAll("'", "'\\''") + "'";
}

/* The command that made the report as a page, with more words, for the text of it; a page that no command made has the model's path alone. */
function commandText(report, ...more) {
  const [name, ...all] = report.command ?? ["report", ...report.models.map((m) => m.path)];
  const words = all.filter((word) => !/^(-q|--quiet|--html(=.*)?)$/.test(word));
  return clean(["onnxvram", ...(name === "report" ? [] : [name]), ...words, ...more].map(shellWord).join(" "), 2000);
}

/* Copies by a field that is selected: the clipboard's own interface is closed to pages in a frame. */
function copyButton(what, text) {
  const button = make("button", { type: "button", "aria-label": "copy " + what, click: () => {
    const field = make("textarea.aloud", { readonly: true });
    field.value = text;
    button.after(field);
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    button.focus();
    button.textContent = done ? "copied" : "not allowed here";
  } }, "copy " + what);
  return button;
}

/* A checkpointing plan's, with the budget where it is torch.compile. */
function planName(plan) {
  return clean(plan.name, 30) + (plan.memory_budget === undefined ? "" : ", compile=" + plan.memory_budget);
}

/* Buttons of which one is pressed. */
function choice(label, options, chosen, choose) {
  const buttons = options.map(([value, text, title]) =>
    make("button", { type: "button", title, "aria-pressed": String(value === chosen),
                     "data-value": value, click: () => choose(value) }, text));
  return make("div.choice", { role: "group", "aria-label": label }, buttons);
}

function press(group, value) {
  for (const button of group.querySelectorAll("button"))
    button.setAttribute("aria-pressed", String(button.dataset.value === String(value)));
}

function check(label, checked, change) {
  const box = make("input", { type: "checkbox", change: () => change(box.checked) });
  box.checked = checked;
  return make("label.check", {}, box, label);
}
