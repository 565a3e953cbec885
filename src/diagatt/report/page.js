// Wiring: radio groups, keys, and the first sample shown.

function check(group, chosen) {
  for (const button of group.querySelectorAll('[role="radio"]')) {
    button.setAttribute("aria-checked", String(button === chosen));
    button.tabIndex = button === chosen ? 0 : -1;
  }
}

function radios(group, onChoice) {
  const buttons = [...group.querySelectorAll('[role="radio"]')];
  buttons.forEach((button, k) => {
    button.addEventListener("click", () => { check(group, button); onChoice(button); });
    button.addEventListener("keydown", (event) => {
      const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (!by) return;
      event.preventDefault();
      const next = buttons[(k + by + buttons.length) % buttons.length];
      next.focus();
      next.click();
    });
  });
}

for (const button of filters.querySelectorAll("button")) {
  let count = 0;
  for (let i = 0; i < N; i++) count += PASSES[button.dataset.filter](i) ? 1 : 0;
  button.querySelector("span").textContent = count.toLocaleString("en");
}
radios(filters, refresh);
check(filters, filters.querySelector('[data-filter="all"]'));
search.addEventListener("input", refresh);
sorting.addEventListener("change", refresh);

addEventListener("keydown", (event) => {
  const typing = event.target.matches("input, select, textarea");
  if (event.key === "/" && !typing) {
    event.preventDefault();
    search.focus();
    search.select();
  } else if (event.key === "Escape" && event.target === search) {
    search.value = "";
    refresh();
    list.focus();
  }
});
search.addEventListener("keydown", (event) => {
  if (event.key !== "ArrowDown" && event.key !== "Enter") return;
  event.preventDefault();
  list.focus();
});
addEventListener("resize", drawList);

document.title = DATA.title;
refresh();
drawGroups();
performance.mark("ready");
document.documentElement.dataset.ready = "yes";
