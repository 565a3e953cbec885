// The list of samples: filtered, sorted, and drawn only where it is visible.

const ITEM = 58; // pixels, as in the style
const list = document.getElementById("list");
const items = document.getElementById("items");
const search = document.getElementById("search");
const sorting = document.getElementById("sort");
const filters = document.getElementById("filters");

const PASSES = {
  all: () => true,
  right: (i) => unpack("right")[i] === 1,
  wrong: (i) => unpack("right")[i] === 2,
  ambiguous: (i) => unpack("ambiguous")[i] === 1,
};
const ORDERS = {
  order: null,
  sure: (a, b) => CONFIDENCE[b] - CONFIDENCE[a],
  unsure: (a, b) => CONFIDENCE[a] - CONFIDENCE[b],
  error: (a, b) => DATA.error[b] - DATA.error[a],
};

let matching = []; // samples that match, in order
let place = 0; // position of the chosen sample among them

const haystacks = DATA.ids.map((id, i) => {
  const parts = [id, label(DATA.prediction[i])];
  if (DATA.truth) parts.push(label(DATA.truth[i]));
  if (DATA.texts) parts.push(DATA.texts[i]);
  return parts.join("\n").toLowerCase();
});

function refresh() {
  const needle = search.value.trim().toLowerCase();
  const filter = filters.querySelector('[aria-checked="true"]').dataset.filter;
  const chosen = matching[place];
  matching = [];
  for (let i = 0; i < N; i++) {
    if (PASSES[filter](i) && (!needle || haystacks[i].includes(needle))) matching.push(i);
  }
  if (ORDERS[sorting.value]) matching.sort(ORDERS[sorting.value]);
  document.getElementById("count").textContent = `${matching.length.toLocaleString("en")} of ${N.toLocaleString("en")}`;
  document.getElementById("none").hidden = matching.length > 0;
  list.hidden = matching.length === 0;
  items.style.height = `${matching.length * ITEM}px`;
  list.scrollTop = 0;
  choose(filter === "all" && !needle && sorting.value === "order" ? Math.max(0, matching.indexOf(chosen)) : 0);
}

function option(at) {
  const i = matching[at];
  const outcome = mark(i);
  const sign = { right: "✓", wrong: "✗" }[outcome] || "";
  const truth = outcome === "wrong" ? ` (${label(DATA.truth[i])})` : "";
  const item = el(
    "div",
    { id: `option-${at}`, role: "option", "aria-selected": String(at === place), "aria-posinset": at + 1, "aria-setsize": matching.length },
    el("span", { className: `mark ${outcome}`, title: outcome && verdict(outcome), "aria-label": outcome && verdict(outcome) }, sign),
  );
  if (DATA.kind === "image") {
    item.classList.add("pictured");
    item.append(picture(i, null, "picture"));
  }
  const sure = `${unpack("ambiguous")[i] ? "? " : ""}${percent(CONFIDENCE[i])}`;
  item.append(
    el(
      "span", { className: "name", title: `${DATA.ids[i]} · ${label(DATA.prediction[i])}${truth}` },
      el("span", { className: "id", dir: "auto" }, shortened(DATA.ids[i])), " · ",
      el("span", { className: "predicted", dir: "auto" }, `${label(DATA.prediction[i])}${truth}`),
    ),
    el("span", { className: "sure", title: DATA.labels ? "confidence" : "attention" }, sure),
    miniature(i),
  );
  item.style.top = `${at * ITEM}px`;
  item.dataset.place = at;
  return item;
}

function drawList() {
  const first = Math.max(0, Math.floor(list.scrollTop / ITEM) - 4);
  const last = Math.min(matching.length, Math.ceil((list.scrollTop + list.clientHeight) / ITEM) + 4);
  const drawn = [];
  for (let at = first; at < last; at++) drawn.push(option(at));
  items.replaceChildren(...drawn);
}

function choose(at) {
  if (!matching.length) {
    items.replaceChildren();
    list.removeAttribute("aria-activedescendant");
    article.replaceChildren();
    delete article.dataset.sample;
    return;
  }
  place = Math.min(Math.max(0, at), matching.length - 1);
  const top = place * ITEM;
  if (top < list.scrollTop) list.scrollTop = top;
  if (top + ITEM > list.scrollTop + list.clientHeight) list.scrollTop = top + ITEM - list.clientHeight;
  drawList();
  list.setAttribute("aria-activedescendant", `option-${place}`);
  showSample(matching[place]);
}

function step(by) {
  choose(place + by);
  article.querySelector(`[aria-label="${by < 0 ? "Previous" : "Next"} sample"]`).focus();
}

function openSample(i) {
  search.value = "";
  check(filters, filters.querySelector('[data-filter="all"]'));
  refresh();
  choose(matching.indexOf(i));
  document.getElementById("explorer").scrollIntoView();
}

function searchFor(word) {
  search.value = word;
  check(filters, filters.querySelector('[data-filter="all"]'));
  refresh();
  document.getElementById("explorer").scrollIntoView();
}

list.addEventListener("scroll", () => requestAnimationFrame(drawList));
list.addEventListener("click", (event) => {
  const item = event.target.closest('[role="option"]');
  if (!item) return;
  choose(Number(item.dataset.place));
  // On a narrow screen the sample is below the list.
  if (getComputedStyle(document.getElementById("explorer")).display === "block") article.scrollIntoView();
});
list.addEventListener("keydown", (event) => {
  const page = Math.max(1, Math.floor(list.clientHeight / ITEM) - 1);
  const moves = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -N, End: N };
  if (!(event.key in moves)) return;
  event.preventDefault();
  choose(place + moves[event.key]);
});
