//! What a user sees of a configuration: the settled values, or one message.

mod given;
mod schema;
mod settled;
mod wrong;

use super::settings::Given;
use super::{Config, Source, load};

/// The least that a file says.
const LEAST: &str = "version: 1\nsuite:\n  pairs: pairs.json\nattempt:\n  command: run\n";

/// Every key that is built in, with the values of the documentation.
const FULL: &str = r#"
version: 1
suite:
  name: benchmark
  evals:
    glob: evals/*/PROMPT.md
    id: dir
  experiments:
    glob: experiments/*.ts
  include: [{ experiment: "claude-*", eval: "build-*" }]
  exclude: [{ experiment: "*-no-skills", label: { suite: regression } }]
  changed:
    evals: "evals/{eval}/**"
    experiments: "experiments/{experiment}.*"
    all: ["packages/**", "pnpm-lock.yaml"]
attempt:
  upload: { git: true, include: [], exclude: [] }
  setup: pnpm install --frozen-lockfile
  boot: ./start-docker.sh
  command: pnpm eval -- --experiment {experiment} --eval {eval} --runs 1 --timeout-sec {timeout_sec}
  produces: attempt
  result: results/{experiment}/{eval}.json
  format: auto
  exit: { pass: [0], fail: [1] }
  infra: { exit: [75], error: ["rate.?limit"] }
  keep: { path: "results/{experiment}", exclude: ["**/node_modules/**"], max-size: 200MB }
  publish: { what: representative, as: "{eval}.json" }
  timeout: 12m
  grace: 5m
  phases: { provision: 10m, setup: 15m, collect: 5m }
  env: { CI: "1" }
  env-from: [LANG]
  secrets: [ANTHROPIC_API_KEY, { name: OPENAI_API_KEY, optional: true }]
runs: 2
strategy: sequential
concurrency: auto
max-concurrency: null
policy: any
on-pass: continue
on-timeout: fail
retry: { tries: 3, budget: 20% }
limits: []
budget: { sandbox-minutes: null, cost: null, allow-unknown: false }
sandbox:
  kind: local
  workspace: copy
  link: [node_modules, .venv]
  home: private
  landlock: auto
  network: inherit
  memory-per-attempt: 256MB
baseline: auto
confirm: 0
fail-on: [incomplete, regression, significant, error, "drop:5pp", "below:80%", "not-proven:5pp", no-baseline, inconclusive]
gates: []
compare: { alpha: 0.05, margin: 10pp }
flaky: []
report:
  group-by: provider
  comment: always
price: { vcpu-hour: 0.128, gb-hour: 0.0212, models: { some-model: { input: 3.0, output: 15.0 } } }
"#;

fn file(text: &str) -> Source<'_> {
    Source {
        name: "evalwave.yml",
        bytes: text.as_bytes(),
    }
}

fn read(text: &str) -> Config {
    load(Some(&file(text)), &Given::default()).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn message(text: &str) -> String {
    match load(Some(&file(text)), &Given::default()) {
        Ok(_) => "no error".to_owned(),
        Err(error) => error.to_string(),
    }
}
