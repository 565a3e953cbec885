// One tooltip for whatever row the pointer or the keyboard is on.

const tooltip = document.getElementById("tooltip");

function describe(row) {
  const place = row.id === null ? "" : ` · row ${row.number}`;
  const lines = [`${called(row)}${place}${row.text ? ` · ${row.text}` : ""}${row.true ? " · true row" : ""}`];
  for (let r = 0; r < HEADS; r++) {
    const name = HEADS > 1 ? `head ${r}: ` : "";
    const score = row.scores ? `, score ${number(row.scores[r])}` : "";
    lines.push(`${name}attention ${percent(row.weights[r])}${score}${row.located[r] ? ", located" : ""}`);
  }
  return lines.join("\n");
}

function showTooltip(element, row) {
  tooltip.textContent = describe(row);
  tooltip.hidden = false;
  const at = element.getBoundingClientRect();
  const own = tooltip.getBoundingClientRect();
  const left = Math.min(Math.max(6, at.left + at.width / 2 - own.width / 2), innerWidth - own.width - 6);
  const above = at.top - own.height - 8;
  tooltip.style.left = `${left}px`;
  tooltip.style.top = `${above > 4 ? above : at.bottom + 8}px`;
}

function hideTooltip() {
  tooltip.hidden = true;
}

// Rows of one sample are one tab stop; arrow keys go from row to row.
function makeReachable(elements, rows, first) {
  elements.forEach((element, k) => {
    element.setAttribute("tabindex", k === first ? "0" : "-1");
    element.setAttribute("role", "img");
    element.setAttribute("aria-label", describe(rows[k]).replaceAll("\n", "; "));
    element.addEventListener("pointerenter", () => showTooltip(element, rows[k]));
    element.addEventListener("pointerleave", hideTooltip);
    element.addEventListener("focus", () => showTooltip(element, rows[k]));
    element.addEventListener("blur", hideTooltip);
    element.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      const next = step && elements[k + step];
      if (!next) return;
      event.preventDefault();
      element.setAttribute("tabindex", "-1");
      next.setAttribute("tabindex", "0");
      next.focus();
    });
  });
}

addEventListener("scroll", hideTooltip, true);
