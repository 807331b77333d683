// The grid: experiments across, evals down, a cell a pair. Arrow keys move in it, and Enter opens a pair.
const mostPerColumn = 25;
// With no more experiments than this, each cell has room for its numbers.
const roomy = data.experiments.length <= 14;
let rows = [];
let current;

// The order of one side of the grid.
function ordered(names, side) {
  const order = names.map((_, at) => at);
  if (filter.order === "name") {
    order.sort((one, other) => names[one].localeCompare(names[other], undefined, { numeric: true }));
  } else if (filter.order === "worst") {
    const lost = names.map(() => ({ fail: 0, error: 0 }));
    for (const pair of data.pairs) if (pair.verdict in lost[pair[side]]) lost[pair[side]][pair.verdict] += 1;
    order.sort((one, other) => lost[other].fail - lost[one].fail || lost[other].error - lost[one].error);
  }
  return order;
}

const isKnown = (pair) => pair.flip !== undefined && pair.flaky === true;

function cellOf(pair) {
  if (!pair) return el("td", {});
  const known = isKnown(pair) ? " known" : "";
  const cell = el(
    "td",
    { class: `state s-${pair.state}${known}`, role: "gridcell", tabindex: "-1", "aria-label": said(pair) },
    states[pair.state][0],
    roomy ? el("span", { class: "share" }, pair.now) : "",
  );
  cell.pair = pair;
  return cell;
}

function drawGrid() {
  const experiments = ordered(data.experiments, "experiment");
  const evals = ordered(data.evals, "eval");
  const pairs = new Map(data.pairs.map((pair) => [pair.eval * data.experiments.length + pair.experiment, pair]));
  // A narrow grid goes on beside itself.
  const narrow = experiments.length <= 4 && evals.length > mostPerColumn;
  const size = narrow ? mostPerColumn : evals.length;
  rows = [];
  const parts = [];
  for (let from = 0; from < evals.length; from += size) {
    const head = experiments.map((at) => el("th", { scope: "col", title: data.experiments[at] }, el("span", {}, el("bdi", {}, data.experiments[at]))));
    const body = evals.slice(from, from + size).map((at) => {
      const cells = experiments.map((experiment) => cellOf(pairs.get(at * data.experiments.length + experiment)));
      rows.push(cells);
      return el("tr", {}, el("th", { scope: "row", title: data.evals[at] }, el("bdi", {}, data.evals[at])), ...cells);
    });
    const table = el(
      "table",
      { role: "grid", "aria-label": "Pairs, experiments across and evals down" },
      el("thead", {}, el("tr", {}, el("td", {}), ...head)),
      el("tbody", {}, ...body),
    );
    parts.push(el("div", { class: "matrix" }, table));
  }
  if (data.pairs.some(isKnown)) {
    parts.push(el("p", { class: "quiet" }, "a dashed edge: a flip of a pair that is known to go both ways"));
  }
  byId("grid").replaceChildren(...parts);
  byId("grid").classList.toggle("roomy", roomy);
  current = rows.flat().find((cell) => cell.pair);
  current?.setAttribute("tabindex", "0");
}

function dimGrid() {
  const active = isFiltered();
  for (const cell of rows.flat()) {
    if (cell.pair) cell.classList.toggle("faint", active && !matches(cell.pair));
  }
}

function focusCell(cell) {
  current?.setAttribute("tabindex", "-1");
  current = cell;
  cell.setAttribute("tabindex", "0");
  cell.focus();
}

// The next pair in a direction, beyond places without one.
function next(cell, down, right) {
  let row = rows.findIndex((cells) => cells.includes(cell));
  let column = rows[row].indexOf(cell);
  for (;;) {
    row += down;
    column += right;
    const found = rows[row]?.[column];
    if (!found || found.pair) return found;
  }
}

const grid = byId("grid");
grid.addEventListener("keydown", (event) => {
  const cell = event.target;
  if (!cell.pair) return;
  const row = rows.find((cells) => cells.includes(cell)).filter((each) => each.pair);
  const moves = {
    ArrowDown: () => next(cell, 1, 0),
    ArrowUp: () => next(cell, -1, 0),
    ArrowRight: () => next(cell, 0, 1),
    ArrowLeft: () => next(cell, 0, -1),
    Home: () => row[0],
    End: () => row[row.length - 1],
  };
  if (moves[event.key]) {
    const to = moves[event.key]();
    event.preventDefault();
    if (to) focusCell(to);
  } else if (event.key === "Enter" || event.key === " ") {
    event.preventDefault();
    openDetail(cell.pair);
  }
});
grid.addEventListener("click", (event) => {
  if (!event.target.pair) return;
  focusCell(event.target);
  openDetail(event.target.pair);
});
for (const kind of ["pointerover", "focusin"]) {
  grid.addEventListener(kind, (event) => {
    const { pair } = event.target;
    if (pair && event.pointerType !== "touch") showTip(tipOf(pair), event.target);
    else hideTip();
  });
}
grid.addEventListener("pointerleave", hideTip);
grid.addEventListener("focusout", hideTip);
drawGrid();
listeners.push(dimGrid);
