// The pairs one by one: the flips, or what the filter leaves. Rows come as they are scrolled to.
const rowsAtOnce = 25;
const mostPrinted = 500;
const columns = [
  ["change", (pair) => Object.keys(states).indexOf(pair.state)],
  ["experiment", (pair) => pair.experimentName],
  ["eval", (pair) => pair.evalName],
  ["before", (pair) => pair.before ?? ""],
  ["now", (pair) => pair.now],
  ["took", (pair) => pair.seconds ?? -1],
  ["why", why],
];
const sorting = { column: 0, down: false };
let showsAll = false;
let wanted = [];
let shown = 0;
// The rows are laid out as grids, so that those out of sight cost nothing; the roles say that it is a table all the same.
const head = el("thead", { role: "rowgroup" });
const table = el("table", { role: "table", "aria-labelledby": "list-title" }, head);
const heads = columns.map(([label], column) => {
  const button = el("button", { type: "button" }, label === "why" ? "first failing check" : label);
  button.addEventListener("click", () => {
    sorting.down = sorting.column === column && !sorting.down;
    sorting.column = column;
    drawList();
  });
  return el("th", { role: "columnheader", scope: "col", "aria-sort": "none" }, button);
});
const more = el("button", { type: "button", class: "more" });
const scroller = new IntersectionObserver(
  (entries) => {
    if (entries.some((entry) => entry.isIntersecting)) showMore();
  },
  { rootMargin: "600px" },
);

const flipped = data.pairs.filter((pair) => pair.flip);
const lost = data.pairs.filter((pair) => pair.verdict !== "pass");

// Without a filter: what changed; where nothing did, what did not pass.
function chosen() {
  if (isFiltered()) return [data.pairs.filter(matches), "Pairs that match"];
  if (showsAll) return [[...data.pairs], "All pairs"];
  if (flipped.length) return [[...flipped], "Flips"];
  return lost.length ? [[...lost], "Pairs that did not pass"] : [[...data.pairs], "All pairs"];
}

function compare(one, other) {
  const key = columns[sorting.column][1];
  const [first, second] = [key(one), key(other)];
  const order =
    typeof first === "number" ? first - second : first.localeCompare(second, undefined, { numeric: true });
  // Flips that nothing explains come before those that are known to come and go.
  return (sorting.down ? -order : order) || isKnown(one) - isKnown(other) || one.at - other.at;
}

function toggle(row, pair) {
  const button = row.querySelector(".open");
  const opens = button.getAttribute("aria-expanded") === "false";
  button.setAttribute("aria-expanded", String(opens));
  if (opens) row.after(el("tr", { role: "row", class: "inside" }, el("td", { role: "cell" }, ...detail(pair, false))));
  else row.nextElementSibling.remove();
}

const cell = (attributes, ...children) => el("td", { role: "cell", ...attributes }, ...children);

function rowOf(pair) {
  const open = el("button", { type: "button", class: "open", "aria-expanded": "false" }, badge(pair.state), states[pair.state][1]);
  const marks = remarks(pair).flatMap((remark) => [" ", el("span", { class: "tag" }, remark)]);
  const row = el(
    "tr",
    { role: "row", class: "pair" },
    cell({}, open),
    cell({}, name(pair.experimentName)),
    cell({}, name(pair.evalName)),
    cell({ "data-name": "before" }, pair.before ?? ""),
    cell({ "data-name": "now" }, pair.now, ...marks),
    cell({ "data-name": "took" }, pair.seconds === undefined ? "" : duration(pair.seconds)),
    cell({ class: "why" }, el("bdi", {}, why(pair).slice(0, 160))),
  );
  row.addEventListener("click", (event) => {
    if (!getSelection().toString() || event.target.closest("button")) toggle(row, pair);
  });
  return row;
}

function showMore() {
  const rows = wanted.slice(shown, shown + rowsAtOnce).map(rowOf);
  table.append(el("tbody", { role: "rowgroup" }, ...rows));
  shown = Math.min(shown + rowsAtOnce, wanted.length);
  const left = wanted.length - shown;
  more.hidden = left === 0;
  more.textContent = `Show more (${left} left)`;
  // Observed anew, it tells again where it is still in sight.
  scroller.unobserve(more);
  if (left) scroller.observe(more);
}

function drawList() {
  const [pairs, words] = chosen();
  wanted = pairs.sort(compare);
  shown = 0;
  heads.forEach((head, column) => {
    const mine = column === sorting.column;
    head.setAttribute("aria-sort", mine ? (sorting.down ? "descending" : "ascending") : "none");
    const button = head.firstChild;
    button.textContent = button.textContent.replace(/ [▲▼]$/u, "") + (mine ? (sorting.down ? " ▼" : " ▲") : "");
  });
  table.replaceChildren(head);
  byId("list-title").textContent = words;
  byId("found").textContent = `${wanted.length} of ${count(data.pairs.length, "pair", "pairs")}`;
  const all = byId("all");
  all.hidden = !isFiltered() && wanted.length === data.pairs.length && !showsAll;
  all.textContent = isFiltered() ? "Clear the filter" : showsAll ? "Show less" : "Show all pairs";
  showMore();
}

byId("all").addEventListener("click", () => {
  if (isFiltered()) {
    clearFilter();
    return;
  }
  showsAll = !showsAll;
  drawList();
});
more.addEventListener("click", showMore);
// Paper cannot be scrolled, and has its limits.
addEventListener("beforeprint", () => {
  while (shown < Math.min(wanted.length, mostPrinted)) showMore();
});
if (data.pairs.length) {
  head.append(el("tr", { role: "row" }, ...heads));
  byId("list").append(table, more);
  listeners.push(drawList);
  drawList();
}
