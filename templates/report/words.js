// The data of the page, and how it is said. All text from it is shown as text and never as markup.
const data = JSON.parse(document.getElementById("data").textContent);
const states = {
  down: ["▼", "PASS→FAIL"],
  up: ["▲", "FAIL→PASS"],
  error: ["!", "error"],
  fail: ["✗", "fail"],
  flaky: ["~", "pass, not every attempt"],
  pass: ["✓", "pass"],
  not_run: ["·", "not run"],
};
const outcomes = {
  passed: ["pass", "passed"],
  failed: ["fail", "failed"],
  timed_out: ["fail", "timed out"],
  errored: ["error", "errored"],
  cancelled: ["not_run", "cancelled"],
};

const byId = (id) => document.getElementById(id);

// An element with attributes; children are elements or texts.
function el(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (value !== undefined && value !== false) made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== undefined && child !== null && child !== ""));
  return made;
}

const name = (text) => el("code", {}, el("bdi", {}, text));

// As the other reports say it: 4.2s, 42s, 28m10s, 2h05m.
function duration(seconds) {
  if (seconds < 9.95) return `${Math.max(seconds, 0).toFixed(1)}s`;
  const whole = Math.round(seconds);
  const two = (number) => String(number).padStart(2, "0");
  if (whole < 60) return `${whole}s`;
  if (whole < 3600) return `${Math.floor(whole / 60)}m${two(whole % 60)}s`;
  return `${Math.floor(whole / 3600)}h${two(Math.floor((whole % 3600) / 60))}m`;
}

const count = (number, one, many) => `${number} ${number === 1 ? one : many}`;

data.pairs.forEach((pair, at) => {
  pair.at = at;
  pair.experimentName = data.experiments[pair.experiment];
  pair.evalName = data.evals[pair.eval];
  pair.labels ??= [];
  // What a pair is shown as: a change before what it is.
  pair.state = pair.flip ?? (pair.verdict === "pass" && pair.flaky ? "flaky" : pair.verdict);
  const graded = pair.attempts.filter((attempt) => ["passed", "failed", "timed_out"].includes(attempt.outcome));
  const commands = graded.map((attempt) => attempt.phases?.[4]).filter((seconds) => seconds != null);
  pair.seconds = commands.length ? commands.reduce((sum, each) => sum + each, 0) / commands.length : undefined;
});

const badge = (state) => el("span", { class: `state s-${state}`, "aria-hidden": "true" }, states[state][0]);

// What is known of a flip besides its way.
function remarks(pair) {
  const said = [];
  if (pair.quarantined) said.push("in quarantine");
  else if (pair.flip && pair.flaky) said.push("known flaky");
  if (pair.confirmed === true) said.push("confirmed");
  if (pair.confirmed === false) said.push("did not reproduce");
  if (pair.loose) said.push("not firm");
  return said;
}

const title = (pair) => `${pair.experimentName} × ${pair.evalName}`;
const now = (pair) => `${pair.now}${pair.seconds === undefined ? "" : ` in ${duration(pair.seconds)}`}`;
const before = (pair) =>
  pair.before === undefined
    ? ""
    : `${pair.before}${pair.before_seconds == null ? "" : ` in ${duration(pair.before_seconds)}`}`;

// The pair in one line, for whoever does not see its colour.
const said = (pair) =>
  [
    `${title(pair)}: ${states[pair.state][1]}`,
    ...remarks(pair),
    `now ${now(pair)}`,
    pair.before === undefined ? "not in the baseline" : `before ${before(pair)}`,
  ].join(", ");

// Why it failed: the first check, the first error.
function why(pair) {
  for (const attempt of pair.attempts) {
    if (attempt.failed) return data.texts[attempt.failed[0][0]];
  }
  for (const attempt of pair.attempts) {
    if (attempt.error) return `${attempt.error.class}: ${data.texts[attempt.error.message].split("\n")[0]}`;
    if (attempt.outcome === "timed_out") return "timed out";
  }
  return "";
}
