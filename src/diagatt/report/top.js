// What located rows of each class have in common.

function signedBar(value, largest) {
  const fill = el("i");
  const width = (50 * Math.abs(value)) / largest;
  fill.style.width = `${width}%`;
  fill.style.left = value < 0 ? `${50 - width}%` : "50%";
  fill.style.background = value < 0 ? "var(--h1)" : "var(--h0)";
  return el("div", { className: "signed" }, fill);
}

const DRAW_GROUP = {
  text(group) {
    const largest = Math.max(...group.entries.map((entry) => entry.value));
    return el("ol", {}, ...group.entries.map((entry) => {
      const button = el("button", { dir: "auto", title: "Search this word" }, entry.name);
      button.addEventListener("click", () => searchFor(entry.name));
      const share = (100 * entry.value).toPrecision(2);
      return el("li", {}, button, bar(entry.value / largest, "h0"), el("span", { className: "number" }, share));
    }));
  },
  rows(group) {
    const largest = Math.max(...group.entries.map((entry) => Math.abs(entry.value)), 1e-9);
    return el("ol", {}, ...group.entries.map((entry) => {
      const value = `${entry.value < 0 ? "−" : "+"}${Math.abs(entry.value).toFixed(2)}`;
      const name = el("span", { className: "label", dir: "auto", title: entry.name }, entry.name);
      return el("li", {}, name, signedBar(entry.value, largest), el("span", { className: "number" }, value));
    }));
  },
  image(group) {
    return el("div", { className: "patches" }, ...group.entries.map((entry) => {
      const row = rowsOf(entry.sample).find((candidate) => candidate.number === entry.row);
      const [top, left, height, width] = row.box;
      const name = `${DATA.ids[entry.sample]}, row ${entry.row}, attention ${percent(entry.value)}`;
      const button = el("button", { className: "patch", title: name, "aria-label": name });
      button.append(picture(entry.sample, `${left} ${top} ${width} ${height}`, ""));
      button.addEventListener("click", () => openSample(entry.sample));
      return button;
    }));
  },
};

function drawGroups() {
  document.getElementById("groups").replaceChildren(...DATA.top.map((group) => {
    const heading = el("h3", { dir: "auto" }, group.name);
    return el("div", { className: "group" }, heading, DRAW_GROUP[DATA.kind](group));
  }));
}
