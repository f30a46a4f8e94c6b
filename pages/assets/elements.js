// The data of a page, and what its elements are made of.
"use strict";

const DATA = JSON.parse(document.getElementById("data").textContent);

/** Make an element; children that are strings become text, never markup. */
function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name, value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

/** Make an element of SVG. */
function drawn(tag, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name, value);
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

/** Print a number in three digits, with the prefix of its thousands. */
function size(number) {
  for (const prefix of ["", "k", "M", "G"]) {
    if (number < 999.5) return `${Number(number.toPrecision(3))}${prefix}`;
    number /= 1000;
  }
  return `${Number(number.toPrecision(3))}T`;
}

/** Print a number of bytes. */
function inBytes(number) {
  return `${size(number)}B`.replace(/(\d)([kMGT]?B)/, "$1\u202f$2");
}

/** Print a whole number with its thousands apart. */
function grouped(number) {
  return number.toLocaleString("en").replaceAll(",", "\u202f");
}

/** Print seconds in three digits, in the unit that fits. */
function time(seconds) {
  for (const unit of ["s", "ms", "µs"]) {
    if (seconds >= 0.9995) return `${Number(seconds.toPrecision(3))} ${unit}`;
    seconds *= 1000;
  }
  return `${Number(seconds.toPrecision(3))} ns`;
}

/** A part of a line in a colour of its own. */
function part(kind, text) {
  return element("span", { class: kind }, text);
}

/** A table of facts: pairs of a name and a value, which is text or elements. */
function facts(pairs) {
  const rows = pairs.filter(([, value]) => value !== undefined && value !== "" && value !== null);
  return element("dl", {}, ...rows.flatMap(([name, value]) => [
    element("dt", {}, name),
    element("dd", {}, ...(Array.isArray(value) ? value : [String(value)])),
  ]));
}

/** A share of a whole as a bar with its number. */
function bar(share, text) {
  const filled = element("span", { class: "filled" });
  filled.style.width = `${Math.round(Math.min(1, share) * 100)}%`;
  return element("span", { class: "bar", role: "img", "aria-label": text }, filled, part("value", text));
}

/** Say something to those who listen to the page. */
function say(text) {
  document.getElementById("said").textContent = text;
}
