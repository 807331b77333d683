// A pair with its attempts: in a row of the list, or in a dialog; and the tip that follows pointer and focus.
const svgSpace = "http://www.w3.org/2000/svg";

function phaseBar(attempt) {
  const total = attempt.phases.reduce((sum, seconds) => sum + (seconds ?? 0), 0);
  const bar = document.createElementNS(svgSpace, "svg");
  bar.setAttribute("viewBox", "0 0 1000 8");
  bar.setAttribute("preserveAspectRatio", "none");
  bar.setAttribute("aria-hidden", "true");
  let at = 0;
  attempt.phases.forEach((seconds, phase) => {
    if (!seconds || !total) return;
    const width = (seconds / total) * 1000;
    const part = document.createElementNS(svgSpace, "rect");
    part.setAttribute("class", data.phases[phase] === "command" ? `a-${attempt.outcome}` : data.phases[phase]);
    part.setAttribute("x", at.toFixed(1));
    part.setAttribute("width", width.toFixed(1));
    part.setAttribute("height", "8");
    bar.append(part);
    at += width;
  });
  return bar;
}

const endOf = (error) =>
  [error.exit_code == null ? "" : `exit code ${error.exit_code}`, error.signal == null ? "" : `signal ${error.signal}`]
    .filter(Boolean)
    .map((part) => ` ${part}`)
    .join(",");

const kindOf = (error) => (error.class === error.phase ? error.class : `${error.class} in ${error.phase}`);

function filesOf(path) {
  const href = `./${path.split("/").map(encodeURIComponent).join("/")}/output.log`;
  return ["files: ", el("a", { href }, el("code", {}, `${path}/`))];
}

function earlierTry(path, earlier) {
  const [state] = outcomes.errored;
  const { n, seconds, error } = earlier;
  return el(
    "li",
    {},
    el(
      "p",
      { class: "ending" },
      badge(state),
      el("span", {}, `try ${n} errored after ${duration(seconds)}: `, el("b", {}, kindOf(error)), endOf(error)),
    ),
    el("pre", { tabindex: "0", "aria-label": `What went wrong in try ${n}` }, data.texts[error.message]),
    path === undefined ? "" : el("p", { class: "phases" }, ...filesOf(`${path}/tries/${n}`)),
  );
}

function attemptCard(pair, attempt, heading) {
  const [state, outcome] = outcomes[attempt.outcome];
  const facts = [];
  if (attempt.start !== undefined) facts.push(duration(attempt.seconds), `from ${duration(attempt.start)} on`);
  if (attempt.boot) facts.push(attempt.boot);
  if (attempt.tries > 1) facts.push(`try ${attempt.tries}`);
  if (attempt.score != null) facts.push(`score ${attempt.score}`);
  if (attempt.reason) facts.push(`reason: ${attempt.reason}`);
  const card = el(
    "div",
    { class: "attempt" },
    el(heading, { class: "ending" }, badge(state), el("span", {}, `attempt ${attempt.n} ${outcome}`), el("span", {}, facts.join(", "))),
  );
  if (attempt.phases) {
    const each = attempt.phases.map((seconds, at) => (seconds == null ? "" : `${data.phases[at]} ${duration(seconds)}`));
    card.append(phaseBar(attempt), el("p", { class: "phases" }, each.filter(Boolean).join(" · ")));
  }
  if (attempt.error) {
    const { error } = attempt;
    card.append(
      el("p", {}, el("b", {}, kindOf(error)), endOf(error)),
      el("pre", { tabindex: "0", "aria-label": "What went wrong" }, data.texts[error.message]),
    );
  }
  const failed = attempt.failed ?? [];
  const lost = failed.length + (attempt.more_failed ?? 0);
  if (attempt.checks) card.append(el("p", {}, `${attempt.checks - lost} of ${count(attempt.checks, "check", "checks")} passed`));
  if (failed.length) {
    const item = ([check, note]) =>
      el("li", {}, el("bdi", {}, data.texts[check]), note === undefined ? "" : el("span", {}, data.texts[note]));
    card.append(el("ul", { "aria-label": "Failed checks" }, ...failed.map(item)));
    if (attempt.more_failed) card.append(el("p", {}, `and ${attempt.more_failed} more`));
  }
  if (attempt.output !== undefined) {
    card.append(
      el("p", { class: "phases" }, "the end of its output"),
      el("pre", { tabindex: "0", "aria-label": "The end of its output" }, data.texts[attempt.output]),
    );
  }
  const used = [];
  if (attempt.tokens != null) used.push(`${attempt.tokens} tokens`);
  if (attempt.cost !== undefined) used.push(attempt.cost);
  if (used.length && attempt.earlier) used.push("all tries together");
  if (used.length) card.append(el("p", { class: "phases" }, used.join(", ")));
  const path = attempt.kept ? `${pair.directory}/${attempt.n}` : attempt.path;
  if (path !== undefined) card.append(el("p", { class: "phases" }, ...filesOf(path)));
  if (attempt.earlier) {
    card.append(
      el("p", { class: "phases" }, "before that"),
      el("ul", { class: "tries", "aria-label": "Earlier tries" }, ...attempt.earlier.map((earlier) => earlierTry(path, earlier))),
    );
  }
  return card;
}

// `whole` where nothing beside it says which state the pair is in.
function detail(pair, whole) {
  const labels = pair.labels.map((at) => el("span", { class: "tag" }, el("bdi", {}, data.labels[at].join("="))));
  return [
    el(
      "p",
      { class: "summary" },
      whole ? badge(pair.state) : "",
      whole ? el("b", {}, [states[pair.state][1], ...remarks(pair)].join(", ")) : "",
      el("span", {}, [`now ${now(pair)}`, pair.before === undefined ? "" : `before ${before(pair)}`].filter(Boolean).join(" · ")),
      ...labels,
    ),
    el("div", { class: "attempts" }, ...pair.attempts.map((attempt) => attemptCard(pair, attempt, whole ? "h3" : "h4"))),
  ];
}

const dialog = byId("detail");

function openDetail(pair) {
  byId("detail-title").replaceChildren(name(pair.experimentName), " × ", name(pair.evalName));
  byId("detail-body").replaceChildren(...detail(pair, true));
  hideTip();
  dialog.showModal();
}

byId("close").addEventListener("click", () => dialog.close());
dialog.addEventListener("click", (event) => {
  if (event.target === dialog) dialog.close();
});

const tip = byId("tip");

// What the tip is about, and where that was when the tip was put there.
let told;

// `box` is the part of the element that the tip is about: all of it where nothing else is said.
function showTip(lines, about, box = about.getBoundingClientRect()) {
  tip.replaceChildren(el("b", {}, lines[0]), ...lines.slice(1).filter(Boolean).map((line) => el("div", {}, line)));
  told = { about, at: about.getBoundingClientRect() };
  placeTip(box);
}

function placeTip(box) {
  tip.hidden = false;
  const { width, height } = tip.getBoundingClientRect();
  const left = Math.min(Math.max(8, box.left + box.width / 2 - width / 2), innerWidth - width - 8);
  const above = box.top - height - 10;
  tip.style.left = `${left}px`;
  tip.style.top = `${above > 4 ? above : Math.min(box.bottom + 10, innerHeight - height - 4)}px`;
}

function hideTip() {
  tip.hidden = true;
}

// A browser tells late that it scrolled, also that it brought into view what got the focus: the tip of that goes with it.
function followTip() {
  if (tip.hidden) return;
  const box = told.about.getBoundingClientRect();
  if (box.left === told.at.left && box.top === told.at.top) return;
  told.at = box;
  const seen = box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth;
  if (seen && told.about === document.activeElement) placeTip(box);
  else hideTip();
}

addEventListener("scroll", followTip, { passive: true, capture: true });
addEventListener("keydown", (event) => {
  if (event.key === "Escape") hideTip();
});

const tipOf = (pair) => [
  title(pair),
  [states[pair.state][1], ...remarks(pair)].join(", "),
  `now ${now(pair)}`,
  pair.before === undefined ? "" : `before ${before(pair)}`,
  pair.labels.map((at) => data.labels[at].join("=")).join(", "),
];
