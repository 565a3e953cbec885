"use strict";
// The block of data; its packed arrays are decoded when they are first used.

const DATA = JSON.parse(document.getElementById("data").textContent);
const N = DATA.ids.length;
const HEADS = DATA.heads;

function bytes(base64) {
  const raw = atob(base64);
  const array = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) array[i] = raw.charCodeAt(i);
  return array;
}

// All 65,536 half-precision numbers, so that reading one is a table lookup.
const HALVES = new Float32Array(65536);
for (let code = 0; code < 65536; code++) {
  const sign = code & 0x8000 ? -1 : 1;
  const exponent = (code >> 10) & 31;
  const fraction = code & 1023;
  HALVES[code] = sign * (exponent ? 2 ** (exponent - 15) * (1 + fraction / 1024) : 2 ** -24 * fraction);
}

// Entries `start` to `stop` of an array of half-precision numbers.
function numbers(name, start, stop) {
  const codes = unpack(name);
  const array = new Float32Array(stop - start);
  for (let k = start; k < stop; k++) array[k - start] = HALVES[codes[k]];
  return array;
}

const unpacked = new Map();
function unpack(name) {
  if (!unpacked.has(name)) {
    const raw = bytes(DATA[name].data).buffer;
    const kind = { u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, f2: Uint16Array }[DATA[name].type];
    unpacked.set(name, new kind(raw));
  }
  return unpacked.get(name);
}

// First packed row of every sample.
const CUTS = new Float64Array(N + 1);
unpack("kept").forEach((count, i) => { CUTS[i + 1] = CUTS[i] + count; });

// The kept rows of a sample: index, weights and scores of all heads, and places in text or picture.
function rowsOf(i) {
  const weights = numbers("weights", CUTS[i] * HEADS, CUTS[i + 1] * HEADS);
  const scores = DATA.scores && numbers("scores", CUTS[i] * HEADS, CUTS[i + 1] * HEADS);
  const truth = DATA.trueRows ? new Set(DATA.trueRows[i]) : null;
  const located = unpack("located").subarray(i * HEADS, (i + 1) * HEADS);
  const rows = [];
  for (let k = CUTS[i]; k < CUTS[i + 1]; k++) {
    const place = k - CUTS[i];
    const at = DATA.index ? unpack("index")[k] : place;
    const row = {
      number: at,
      weights: weights.subarray(place * HEADS, (place + 1) * HEADS),
      scores: scores && scores.subarray(place * HEADS, (place + 1) * HEADS),
      located: Array.from(located, (row) => row === at),
      true: truth !== null && truth.has(at),
      id: DATA.rowIds ? DATA.rowIds[k] : null,
    };
    if (DATA.kind === "text") {
      row.start = unpack("starts")[k];
      row.stop = row.start + unpack("lengths")[k];
      row.text = DATA.texts[i].slice(row.start, row.stop);
    } else if (DATA.kind === "image") {
      row.box = unpack("boxes").subarray(4 * k, 4 * k + 4); // top, left, height, width
    }
    rows.push(row);
  }
  return rows;
}

// What a row is called: its own id, or its place.
function called(row) {
  return row.id === null ? `row ${row.number}` : row.id;
}

// A long name keeps its two ends, of which one often tells samples apart.
function shortened(name) {
  const letters = Array.from(name);
  return letters.length <= 26 ? name : `${letters.slice(0, 10).join("")}…${letters.slice(-12).join("")}`;
}

function minus(text) {
  return text.replace("-", "−");
}

function label(code) {
  return DATA.labels ? DATA.labels[code] : minus(String(Number(code.toPrecision(4))));
}

const CONFIDENCE = numbers("confidence", 0, N);

function percent(share) {
  const value = 100 * share;
  if (value > 0 && value < 0.05) return "< 0.1 %";
  if (value < 100 && value >= 99.95) return "> 99.9 %";
  return (value >= 100 || value === 0 ? value.toFixed(0) : value.toFixed(1)) + " %";
}

function number(value) {
  return minus(Math.abs(value) >= 1000 ? value.toFixed(0) : value.toPrecision(3));
}

// An element with properties and children; strings become text, never markup.
function el(name, properties = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key.includes("-") || key === "role") element.setAttribute(key, value);
    else element[key] = value;
  }
  element.append(...children);
  return element;
}

function svg(name, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

function bar(share, name = "") {
  const fill = el("i");
  fill.style.width = `${100 * Math.min(1, share)}%`;
  return el("div", { className: `bar ${name}` }, fill);
}
