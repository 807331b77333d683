// Invents run directories of a realistic shape, the same for the same numbers: one to look at, and those that it is
// compared with. What compares them is evalwave itself.
import { execFileSync } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const models = ["opal", "quartz", "basalt", "marble", "granite", "slate"];
const kinds = ["build", "debug", "migrate", "secure", "query", "deploy", "review", "refactor"];
const things = ["auth", "storage", "functions", "realtime", "schema", "webhooks", "search", "billing", "cron", "cache"];
const checks = [
  ["the migration applies to an empty database", "relation \"members\" already exists"],
  ["rows of other tenants stay hidden", "expected 0 rows, got 3: policy `tenant_read` is missing USING"],
  ["the function answers within 2 s", "no answer after 2000 ms"],
  ["the page renders without errors", "TypeError: undefined is not a function at render (app.ts:41:7)"],
  ["no secret is committed", "found a key in config/settings.ts"],
  ["types check", "src/api.ts(12,3): error TS2322: Type 'string' is not assignable to type 'number'."],
  ["the judge finds the answer complete", "The answer names the cause, but does not say how the index is kept up to date."],
];

// Mulberry32: small, and the same everywhere.
function random(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const round = (number) => Math.round(number * 1000) / 1000;

// The pairs of a suite, each with how likely it is to pass and how long it takes.
function suite({ experiments, evals, most }) {
  const next = random(237);
  const agents = Array.from({ length: experiments }, (_, at) => {
    const model = models[at % models.length];
    return {
      name: `${model}-${["mini", "pro", "max"][Math.floor(at / models.length) % 3]}${at >= 18 ? `-v${Math.floor(at / 18) + 1}` : ""}`,
      provider: ["north", "south", "east"][at % 3],
      skill: 0.6 + 1.6 * next(),
    };
  });
  const tasks = Array.from({ length: evals }, (_, at) => ({
    name: `${kinds[at % kinds.length]}-${things[Math.floor(at / kinds.length) % things.length]}-${String(at + 1).padStart(3, "0")}`,
    kind: kinds[at % kinds.length],
    ease: next() < 0.55 ? 3.4 : 5 * next() - 2.4,
    seconds: 90 + 420 * next() ** 2,
  }));
  const pairs = tasks.flatMap((task) =>
    agents.map((agent) => ({ task, agent, odds: 1 / (1 + Math.exp(-(task.ease + 1.3 * (agent.skill - 1)))) })),
  );
  return pairs.slice(0, most);
}

function attempt(next, index, pair, drift, worse) {
  const { task, agent } = pair;
  const odds = worse && agent.provider === "south" ? pair.odds * 0.8 : pair.odds;
  const passed = next() < odds;
  const dice = next();
  const command = round(task.seconds * (0.6 + 0.9 * next()) * (passed ? 1 : 1.25));
  const provision = round(1 + 4 * next());
  const phases = { provision, upload: round(1 + next()), setup: null, boot: round(4 + 6 * next()), command, collect: round(0.5 + 2 * next()) };
  const seconds = round(Object.values(phases).reduce((sum, each) => sum + (each ?? 0), 0.05));
  const made = {
    index,
    outcome: passed ? "passed" : "failed",
    reason: null,
    seconds,
    started_offset: round(drift + 2 * next()),
    phases,
    boot: "warm",
    tries: dice > 0.985 ? 2 : 1,
    error: null,
    checks_failed: [],
    checks: checks.length,
    score: null,
    usage: { input_tokens: Math.round(40000 + 90000 * next()), output_tokens: Math.round(2000 + 6000 * next()), cost_usd: round(0.05 + 0.4 * next()) },
    path: `attempts/${agent.name}__${task.name}/${index}`,
  };
  if (!passed) {
    const failed = checks.filter(() => next() < 0.3);
    if (!failed.length) failed.push(checks[index % checks.length]);
    made.checks_failed = failed.map(([name]) => name);
    made.check_notes = failed.map(([, note]) => note);
    made.output = [
      `> agent ${agent.name} on ${task.name}`,
      `step ${Math.floor(20 + 30 * next())}: edited 3 files`,
      ...failed.map(([name]) => `FAIL ${name}`),
      `${checks.length - failed.length} of ${checks.length} checks passed`,
    ].join("\n");
  }
  if (made.tries === 2) made.earlier = [lostTry(1)];
  if (dice < 0.004) {
    Object.assign(made, {
      outcome: "errored",
      checks_failed: [],
      checks: undefined,
      check_notes: undefined,
      output: undefined,
      usage: null,
      tries: 3,
      earlier: [lostTry(1), lostTry(2)],
      error: { class: "throttled", phase: "command", message: "the provider throttled the agent\n429 too many requests, retry after 30 s\nno result was written", exit_code: 75, signal: null },
    });
  }
  return made;
}

// A try that another one followed.
function lostTry(number) {
  const message = "the sandbox went away: its engine answered 410";
  return { number, seconds: 12.5 * number, error: { class: "sandbox_lost", phase: "command", message, exit_code: null, signal: null } };
}

function decided(pair, attempts) {
  const graded = attempts.filter(({ outcome }) => ["passed", "failed", "timed_out"].includes(outcome));
  const passed = graded.filter(({ outcome }) => outcome === "passed").length;
  return {
    experiment: pair.agent.name,
    eval: pair.task.name,
    labels: { kind: [pair.task.kind], provider: [pair.agent.provider] },
    verdict: graded.length === 0 ? "error" : passed > 0 ? "pass" : "fail",
    passed_attempts: passed,
    graded_attempts: graded.length,
    planned_attempts: attempts.length,
    representative: graded.length ? graded[0].index : null,
    seconds: round(attempts.reduce((sum, { seconds }) => sum + seconds, 0)),
    firm: passed > 0 || graded.length === attempts.length,
    attempts,
  };
}

function summary(pairs, { seed, worse, day }) {
  const next = random(seed);
  const all = pairs.map((pair) => decided(pair, [1, 2].map((index) => attempt(next, index, pair, 6 * next(), worse))));
  const attempts = all.flatMap((pair) => pair.attempts);
  const count = (outcome) => attempts.filter((each) => each.outcome === outcome).length;
  const verdicts = (verdict) => all.filter((pair) => pair.verdict === verdict).length;
  const [passed, failed] = [verdicts("pass"), verdicts("fail")];
  const graded = count("passed") + count("failed") + count("timed_out");
  const ratio = (part, of) => (of ? Math.round((part / of) * 10000) / 10000 : null);
  const distribution = {};
  for (const pair of all.filter(({ graded_attempts: number }) => number > 0)) {
    const share = `${pair.passed_attempts}/${pair.graded_attempts}`;
    distribution[share] = (distribution[share] ?? 0) + 1;
  }
  const concurrency = attempts.length;
  return {
    schema: "evalwave.summary/1",
    tool: { name: "evalwave", version: "0.1.0" },
    run: {
      id: `invented-${seed}`,
      started_at: `2026-03-${String(day).padStart(2, "0")}T08:00:00Z`,
      wall_seconds: round(Math.max(...attempts.map((each) => each.started_offset + each.seconds)) + 4.2),
      complete: verdicts("error") === 0,
      conclusion: verdicts("error") ? "incomplete" : "success",
      strategy: "parallel",
      runs: 2,
      concurrency,
      policy: "any",
      sandbox: "vercel",
      suite: "benchmark",
      commit: Array.from({ length: 40 }, () => Math.floor(16 * next()).toString(16)).join(""),
      config_hash: Array.from({ length: 64 }, () => Math.floor(16 * next()).toString(16)).join(""),
      concurrency_reason: `${concurrency} = pairs x runs (${all.length} x 2): one wave`,
      selection: { kind: "all", selected: all.length, of: all.length },
      url: null,
    },
    totals: {
      pairs: all.length,
      passed,
      failed,
      errored: verdicts("error"),
      not_run: 0,
      pass_rate: ratio(passed, passed + failed),
      attempts: {
        planned: attempts.length,
        graded,
        passed: count("passed"),
        failed: count("failed"),
        timed_out: count("timed_out"),
        errored: count("errored"),
        cancelled: 0,
        retried: attempts.filter(({ tries }) => tries > 1).length,
      },
      any_pass_rate: ratio(passed, passed + failed),
      attempt_pass_rate: ratio(count("passed"), graded),
      all_pass_rate: ratio(all.filter((pair) => pair.passed_attempts === pair.graded_attempts && pair.graded_attempts).length, passed + failed),
      distribution,
      sandbox_seconds: round(all.reduce((sum, { seconds }) => sum + seconds, 0)),
      cost_usd: round(attempts.reduce((sum, { usage }) => sum + (usage?.cost_usd ?? 0), 0)),
      tokens: attempts.reduce((sum, { usage }) => sum + (usage ? usage.input_tokens + usage.output_tokens : 0), 0),
    },
    pairs: all,
    comparison: null,
    gates: [],
    quarantined: [],
    notices: [],
  };
}

function write(directory, document) {
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, "summary.json"), JSON.stringify(document));
}

// Writes the run to `<directory>/now`, and its page beside it. Gives the page's path.
export function invent(evalwave, directory, shape) {
  const pairs = suite(shape);
  const before = summary(pairs, { seed: 2, worse: false, day: 20 });
  const now = summary(pairs, { seed: 3, worse: true, day: 21 });
  write(join(directory, "before"), before);
  write(join(directory, "now"), now);
  const history = Array.from({ length: shape.history ?? 5 }, (_, at) => {
    const path = join(directory, `earlier-${at + 1}`);
    write(path, summary(pairs, { seed: 10 + at, worse: false, day: 10 + at }));
    return path;
  });
  const options = { encoding: "utf8", maxBuffer: 1 << 28 };
  const compare = ["compare", "--baseline", join(directory, "before"), "--current", join(directory, "now"), "--format", "json", "--group-by", "provider"];
  if (history.length) compare.push("--history", ...history);
  now.comparison = JSON.parse(execFileSync(evalwave, compare, options));
  Object.assign(now.comparison.baseline, { ref: "main", age_seconds: 93600 });
  for (const [at, pair] of now.pairs.entries()) {
    const old = before.pairs[at];
    const commands = old.attempts.filter(({ outcome }) => outcome !== "errored").map(({ phases }) => phases.command);
    const seconds = commands.length ? round(commands.reduce((sum, each) => sum + each, 0) / commands.length) : null;
    pair.before = { verdict: old.verdict, result: `${old.passed_attempts}/${old.graded_attempts}`, seconds };
  }
  write(join(directory, "now"), now);
  const page = join(directory, "now", "report.html");
  writeFileSync(page, execFileSync(evalwave, ["report", join(directory, "now"), "--format", "html"], options));
  return page;
}

export const shapes = {
  usual: { experiments: 12, evals: 20, most: 237 },
  large: { experiments: 50, evals: 100, most: 5000, history: 0 },
};
