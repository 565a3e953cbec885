// A sample's rows as shaded text, as boxes over its picture, or as columns.
// `head` is an index, or -1 for all heads together: a row then has its largest weight, in that
// head's colour.

function shown(row, head) {
  let best = head;
  if (head < 0) best = row.weights.indexOf(Math.max(...row.weights));
  const located = head < 0 ? row.located.some(Boolean) : row.located[head];
  if (head < 0 && located && !row.located[best]) best = row.located.indexOf(true);
  return { weight: row.weights[best], located, hue: `h${best % 8}` };
}

function dress(element, row, head) {
  const { weight, located, hue } = shown(row, head);
  element.classList.add("row", hue);
  element.classList.toggle("located", located);
  element.classList.toggle("true", row.true);
  element.style.setProperty("--w", weight);
  element.dataset.row = row.number;
}

function strongest(rows, head) {
  let best = 0;
  rows.forEach((row, k) => { if (shown(row, head).weight > shown(rows[best], head).weight) best = k; });
  return best;
}

function drawText(i, rows, head) {
  const text = DATA.texts[i];
  const paragraph = el("p", { className: "text", dir: "auto" });
  const inText = rows.filter((row) => row.stop > row.start).sort((a, b) => a.start - b.start);
  const elements = [], drawn = [];
  let at = 0;
  for (const row of inText) {
    if (row.start < at) continue; // overlaps the row before; it stays in the table
    const span = el("span", {}, text.slice(row.start, row.stop));
    dress(span, row, head);
    paragraph.append(text.slice(at, row.start), span);
    at = row.stop;
    elements.push(span);
    drawn.push(row);
  }
  paragraph.append(text.slice(at));
  if (drawn.length) makeReachable(elements, drawn, strongest(drawn, head));
  return [paragraph];
}

function picture(i, view, name) {
  const [width, height] = DATA.sizes[i];
  const image = svg("image", { href: DATA.images[i], width, height, preserveAspectRatio: "none" });
  return svg("svg", { viewBox: view || `0 0 ${width} ${height}`, class: name }, image);
}

function drawPicture(i, rows, head) {
  const [width, height] = DATA.sizes[i];
  const scale = Math.max(1, 416 / Math.max(width, height));
  const view = picture(i, null, "picture-view");
  view.setAttribute("width", width * scale);
  view.setAttribute("role", "group");
  view.setAttribute("aria-label", "picture with a box for every row");
  // The strongest on top.
  const sorted = [...rows].sort((a, b) => shown(a, head).weight - shown(b, head).weight);
  const elements = sorted.map((row) => {
    const [y, x, h, w] = row.box;
    const box = svg("rect", { x, y, width: w, height: h });
    dress(box, row, head);
    return box;
  });
  sorted.forEach((row, k) => {
    const [y, x, h, w] = row.box;
    if (shown(row, head).located) view.append(svg("rect", { x, y, width: w, height: h, class: "casing" }));
    view.append(elements[k]);
    if (row.true) view.append(svg("rect", { x, y, width: w, height: h, class: "truth" }));
  });
  makeReachable(elements, sorted, elements.length - 1);
  return [view];
}

function drawColumns(i, rows, head) {
  const p = unpack("rows")[i];
  const view = svg("svg", {
    viewBox: `0 -0.04 ${p} 1.1`, preserveAspectRatio: "none", class: "columns", role: "group", "aria-label": "attention to rows",
  });
  view.append(svg("line", { x1: 0, x2: p, y1: 1, y2: 1, class: "base" }));
  view.append(svg("line", { x1: 0, x2: p, y1: 0.5, y2: 0.5, class: "half" }));
  const heads = head < 0 ? [...Array(HEADS).keys()] : [head];
  const elements = rows.map((row) => {
    heads.forEach((r, place) => {
      const width = 0.84 / heads.length;
      view.append(svg("rect", {
        x: row.number + 0.08 + place * width, width, y: 1 - row.weights[r], height: row.weights[r], class: `value h${r % 8}`,
      }));
    });
    if (row.true) view.append(svg("rect", { x: row.number + 0.1, width: 0.8, y: 1.02, height: 0.03, class: "truth" }));
    const target = svg("rect", { x: row.number, width: 1, y: 0, height: 1 });
    dress(target, row, head);
    return target;
  });
  view.append(...elements);
  makeReachable(elements, rows, strongest(rows, head));
  const axis = el("p", { className: "axis" }, el("span", {}, "row 0"), el("span", {}, `row ${p - 1}`));
  return [view, axis];
}

const draw = { text: drawText, image: drawPicture, rows: drawColumns }[DATA.kind];

// A sample's rows in one line of the list: the words around the located one, or tiny columns.
function miniature(i) {
  const line = el("div", { className: "snippet" });
  if (DATA.kind === "text") {
    const text = DATA.texts[i];
    const row = rowsOf(i).find((candidate) => candidate.located[0]);
    if (!row || row.stop === row.start) {
      line.append(text.slice(0, 120).replaceAll("\n", " "));
    } else {
      const earliest = Math.max(0, row.start - 24);
      const gap = text.indexOf(" ", earliest);
      const from = earliest && gap >= 0 && gap < row.start ? gap + 1 : earliest;
      line.append((from ? "…" : "") + text.slice(from, row.start).replaceAll("\n", " "));
      line.append(el("b", {}, row.text), text.slice(row.stop, row.stop + 90).replaceAll("\n", " "));
    }
    return line;
  }
  if (DATA.kind === "image") {
    const row = rowsOf(i).find((candidate) => candidate.located[0]);
    line.append(`${called(row)}, attention ${percent(row.weights[0])}`);
    return line;
  }
  const p = unpack("rows")[i];
  const view = svg("svg", { viewBox: `0 0 ${p} 1`, preserveAspectRatio: "none", "aria-hidden": "true" });
  for (let r = 0; r < HEADS; r++) {
    let path = "";
    for (const row of rowsOf(i)) {
      if (row.weights[r] > 0.01) path += `M${row.number + 0.1} 1v${-row.weights[r]}h0.8v${row.weights[r]}z`;
    }
    view.append(svg("path", { d: path, class: `h${r % 8}`, fill: "var(--hue)" }));
  }
  view.append(svg("line", { x1: 0, x2: p, y1: 1, y2: 1, stroke: "var(--line)", "stroke-width": 0.08 }));
  line.append(view);
  return line;
}
