// The chosen sample: what was predicted, how surely, and which rows decided.

const article = document.getElementById("sample");
let chosenHead = -1; // all heads together

function mark(i) {
  return ["", "right", "wrong"][unpack("right")[i]];
}

function verdict(name) {
  const near = { right: "near", wrong: "far" };
  return DATA.labels ? name : near[name];
}

function pair(name, value) {
  return el("div", {}, el("dt", {}, name), el("dd", { dir: "auto" }, value));
}

function answer(i) {
  const list = el("dl", { className: "answer" }, pair("predicted", label(DATA.prediction[i])));
  if (DATA.truth) list.append(pair("observed", label(DATA.truth[i])));
  list.append(pair(DATA.labels ? "confidence" : "attention", percent(CONFIDENCE[i])));
  if (mark(i)) list.append(el("span", { className: `badge ${mark(i)}` }, verdict(mark(i))));
  if (unpack("ambiguous")[i]) list.append(el("span", { className: "badge ambiguous" }, "ambiguous"));
  return list;
}

function chances(i) {
  const count = DATA.classes;
  const shares = Array.from(numbers("probability", i * count, (i + 1) * count), (p, k) => [p, k]);
  const table = el("div", { className: "chances", "aria-label": "class probabilities", role: "group" });
  for (const [share, k] of shares.sort((a, b) => b[0] - a[0]).slice(0, 4)) {
    table.append(el("span", { dir: "auto" }, DATA.labels[k]), bar(share), el("span", { className: "number" }, percent(share)));
  }
  return table;
}

function headChoice(i) {
  const group = el("div", { id: "heads", role: "radiogroup", "aria-label": "Head" });
  for (let r = -1; r < HEADS; r++) {
    const button = el("button", { role: "radio", className: r < 0 ? "" : `h${r % 8}` }, r < 0 ? "together" : `head ${r}`);
    button.dataset.head = r;
    group.append(button);
  }
  radios(group, (button) => {
    chosenHead = Number(button.dataset.head);
    showSample(i);
    article.querySelector(`[data-head="${chosenHead}"]`).focus();
  });
  check(group, group.querySelector(`[data-head="${chosenHead}"]`));
  return group;
}

function rowTable(i, rows, head) {
  const heads = head < 0 ? [...Array(HEADS).keys()] : [head];
  const top = el("tr", {}, el("th", { scope: "col" }, "row"));
  if (DATA.kind === "text") top.append(el("th", { scope: "col" }, "words"));
  for (const r of heads) {
    const name = HEADS > 1 ? `head ${r} ` : "";
    top.append(el("th", { scope: "col" }, `${name}attention`));
    if (DATA.scores) top.append(el("th", { scope: "col", className: "score" }, "score"));
  }
  const body = el("tbody");
  const sorted = [...rows].sort((a, b) => shown(b, head).weight - shown(a, head).weight).slice(0, 8);
  for (const row of sorted) {
    const own = el("td", { className: "number own", dir: "auto", title: `row ${row.number}` }, `${row.id ?? row.number}${row.true ? " ▲" : ""}`);
    const line = el("tr", {}, own);
    if (DATA.kind === "text") line.append(el("td", { className: "word", dir: "auto" }, row.text));
    for (const r of heads) {
      const share = el("span", { className: "number" }, percent(row.weights[r]));
      line.append(el("td", { className: "weight" }, el("div", { className: "cell" }, bar(row.weights[r], `h${r % 8}`), share)));
      if (DATA.scores) line.append(el("td", { className: "number" }, number(row.scores[r])));
    }
    body.append(line);
  }
  const table = el("table", {}, el("caption", {}, "Rows with the most attention"), el("thead", {}, top), body);
  return el("div", { className: "scroll" }, table);
}

function legend(i, rows) {
  const notes = [];
  const missing = unpack("rows")[i] - rows.length;
  if (DATA.kind === "text") notes.push("Shade is attention; underlined is the located row.");
  if (DATA.kind === "rows") notes.push("Dotted line: half of the attention.");
  if (DATA.standout) notes.push("Numbers after features: standard deviations from the mean of all rows.");
  if (DATA.kind === "image") notes.push("Thick box: the located row.");
  if (DATA.trueRows) notes.push({ text: "Dashed: a true row.", image: "Dashed: a true row.", rows: "▲ and the mark below the line: a true row." }[DATA.kind]);
  if (missing) notes.push(`${missing} rows of little attention are left out.`);
  return el("p", { className: "legend" }, notes.join(" "));
}

// The located rows, each with the features that set it apart.
function located(i, rows, head) {
  if (!DATA.standout) return [];
  const heads = head < 0 ? [...Array(HEADS).keys()] : [head];
  const list = el("dl", { className: "located-rows" });
  for (const r of heads) {
    const row = rows.find((candidate) => candidate.located[r]);
    const name = `${HEADS > 1 ? `head ${r}: ` : ""}${row ? called(row) : "–"}`;
    list.append(el("div", { className: `h${r % 8}`, title: "standard deviations from the mean of all rows" }, el("dt", { dir: "auto" }, name), el("dd", { dir: "auto" }, DATA.standout[i * HEADS + r])));
  }
  return [list];
}

function showSample(i) {
  hideTooltip();
  const rows = rowsOf(i);
  const head = HEADS > 1 ? chosenHead : 0;
  const before = el("button", { className: "step", title: "Previous sample", "aria-label": "Previous sample" }, "↑");
  const after = el("button", { className: "step", title: "Next sample", "aria-label": "Next sample" }, "↓");
  before.addEventListener("click", () => step(-1));
  after.addEventListener("click", () => step(1));
  article.replaceChildren(
    el("div", { className: "title" }, el("h2", { dir: "auto", title: DATA.ids[i] }, DATA.ids[i]), before, after),
    answer(i),
    ...(DATA.labels ? [chances(i)] : []),
    ...(HEADS > 1 ? [headChoice(i)] : []),
    ...located(i, rows, head),
    ...draw(i, rows, head),
    rowTable(i, rows, head),
    legend(i, rows),
  );
  article.dataset.sample = i;
}
