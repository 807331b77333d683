// The publishing step of supabase/evals, as far as it looks at a run: `node export.mjs RUN ROWS PAIRS` brings the
// directories `raw-results-<experiment>__<eval>/` of RUN together as its workflow does, makes a row of each result file,
// grafts the rows into ROWS, and prints them. PAIRS is what its runner was asked for: pairs that gave nothing lose their
// rows, and their suites are what its repository would say of them.
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

const [run, existing, pairsFile] = process.argv.slice(2);
const json = (path) => JSON.parse(readFileSync(path, 'utf8'));
const pairs = json(pairsFile);
const key = (row) => `${row.experiment}::${row.eval}`;

const row = (file, sourcePath, asked) => {
  const result = json(file);
  return {
    experiment: result.experiment,
    experimentSuite: result.experimentSuite ?? asked.experiment_suite,
    experimentDisplay: result.experimentDisplay,
    eval: result.eval,
    stage: result.stage,
    product: result.product,
    topic: result.topic,
    suite: result.suite ?? asked.eval_suite,
    interface: result.interface,
    cliVersion: result.cliVersion,
    passed: result.passed === true,
    checks: result.checks,
    skills: result.skills,
    docs: result.docs,
    usage: result.usage,
    stepCount: result.stepCount,
    toolCallCount: result.toolCallCount,
    durationMs: result.durationMs,
    attempts: result.attempts,
    run: result.run,
    sourcePath,
  };
};

const rows = [];
const asked = new Set();
for (const pair of pairs) {
  const [experiment, name] = [pair.experiment, pair.eval_id];
  asked.add(key({ experiment, eval: name }));
  const directory = join(run, `raw-results-${experiment}__${name}`);
  if (existsSync(join(directory, `${name}.json`))) {
    rows.push(row(join(directory, `${name}.json`), `${experiment}/${name}.json`, pair));
  } else if (existsSync(join(directory, name))) {
    for (const each of readdirSync(join(directory, name)).filter((entry) => /^run-\d+$/.test(entry)).sort()) {
      const path = join(name, each, 'result.json');
      rows.push(row(join(directory, path), `${experiment}/${path}`, pair));
    }
  }
}
const merged = [...json(existing).filter((each) => !asked.has(key(each))), ...rows].sort(
  (one, other) =>
    one.experiment.localeCompare(other.experiment) ||
    one.eval.localeCompare(other.eval) ||
    (one.run ?? 0) - (other.run ?? 0),
);
process.stdout.write(`${JSON.stringify(merged, null, 2)}\n`);
