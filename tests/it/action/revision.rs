//! What is measured is the revision that sandboxes fetch, whatever is checked out.

use camino::Utf8PathBuf;
use serde_json::json;

use super::outcome::flaky;
use super::rerun::keep;
use super::{Step, Workflow, measured};
use crate::support::Suite;
use crate::support::github::{Pull, State, sha};
use crate::support::vercel::{self, Faults, Light, Limits, Machines, PROJECT, Route, TEAM, Vercel};

/// A workflow whose attempts pass in machines that fetch the repository.
struct Bench {
    vercel: Vercel,
    workflow: Workflow,
}

impl Bench {
    fn new(state: State) -> Self {
        let light = Light {
            scale: 1.0,
            ..Light::default()
        };
        let account = vercel::State::new(Limits::none(), Faults::new(7, Vec::new()));
        let vercel = Vercel::start(0, account, Machines::light(light)).unwrap();
        let suite = Suite::new(&format!(
            "version: 1\nsuite: {{ name: all, pairs: [{{ experiment: agent, eval: task }}] }}\nsandbox:\n  \
             kind: vercel\n  base-url: {}\nattempt: {{ command: agent takes-0.01s, format: exit-code }}\n",
            vercel.base_url()
        ));
        let workflow = Workflow::new(suite, state)
            .set("VERCEL_TOKEN", vercel::TOKEN)
            .set("VERCEL_TEAM_ID", TEAM)
            .set("VERCEL_PROJECT_ID", PROJECT);
        Self { vercel, workflow }
    }

    fn with(self, change: impl FnOnce(Workflow) -> Workflow) -> Self {
        Self {
            workflow: change(self.workflow),
            ..self
        }
    }

    fn created(&self) -> u64 {
        self.vercel.state().counts.with(Route::Create, 200)
    }
}

#[test]
fn a_head_that_is_named_is_compared_with_where_it_left_the_base_branch() {
    let bench = Bench::new(flaky());
    let base = |step: &Step| step.document()["comparison"]["baseline"]["commit"].clone();
    // The head left at `a`; the merge that is checked out would be compared with `b`.
    bench.workflow.github.state().commit("head", &["a"]);
    let named = bench.with(|workflow| workflow.input("revision", &sha("head")));
    let step = named.workflow.run();
    assert_eq!(step.code, 0, "{}", step.log);
    assert_eq!(step.document()["run"]["commit"], sha("head"));
    assert_eq!(base(&step), sha("a"), "{}", step.log);
    assert!(!step.notices().contains("the merge of"), "{}", step.notices());

    let checked_out = named.with(|workflow| workflow.input("revision", ""));
    let step = checked_out.workflow.run();
    assert_eq!(step.code, 0, "{}", step.log);
    assert_eq!(base(&step), sha("b"), "{}", step.log);
    assert!(
        step.notices().contains("measured: the merge of"),
        "{}",
        step.notices()
    );
}

#[test]
fn a_job_that_is_run_again_takes_over_what_measured_the_same_revision() {
    let bench = Bench::new(measured());
    let bench = bench.with(|workflow| workflow.input("revision", &sha("head")));
    let step = bench.workflow.run();
    assert_eq!((step.code, bench.created()), (0, 1), "{}", step.log);
    let results = Utf8PathBuf::from(step.output("results-dir"));
    keep(&bench.workflow, &results, true);
    fs_err::remove_dir_all(results).unwrap();
    let again = bench.with(|workflow| workflow.set("GITHUB_RUN_ATTEMPT", "2"));
    let step = again.workflow.run();
    assert_eq!((step.code, step.output("passed")), (0, "1"), "{}", step.log);
    assert_eq!(again.created(), 1, "its result is there: {}", step.notices());

    let other = again.with(|workflow| workflow.input("revision", &sha("fork")));
    let step = other.workflow.run();
    assert_eq!((step.code, other.created()), (0, 2), "{}", step.log);
    assert!(
        step.notices()
            .contains(&format!("its commit is `{}`, not `{}`", sha("head"), sha("fork"))),
        "{}",
        step.notices()
    );
    // What a branch was by then, and what it is now, may be two commits.
    let branch = other.with(|workflow| workflow.input("revision", "faster"));
    let step = branch.workflow.run();
    assert_eq!((step.code, branch.created()), (0, 3), "{}", step.log);
    let why =
        "nothing is taken over from an earlier one: the commit of the revision `faster` is not known here";
    assert!(step.notices().contains(why), "{}", step.notices());
}

#[test]
fn an_approved_commit_is_the_one_that_sandboxes_fetch() {
    let bench = Bench::new(measured());
    bench.workflow.github.state().pulls.push(Pull {
        number: 14,
        state: "open",
        head_repository: Some("someone/evals"),
        head_branch: "faster",
        head_sha: sha("fork"),
        base_branch: "main",
    });
    let approved = bench.with(|workflow| {
        workflow
            .event("workflow_dispatch", "refs/heads/main", json!({}))
            .input("pull-request", "14")
            .input("head-sha", &sha("fork"))
    });
    // Checked out is the approved commit or not: it is the branch that is fetched.
    let branch = approved.with(|workflow| workflow.input("revision", "faster"));
    let step = branch.workflow.run();
    assert_eq!((step.code, branch.created()), (2, 0), "{}", step.log);
    let refusal = step.annotations("error")[0];
    assert!(
        refusal.contains("was approved, and sandboxes would fetch `faster`"),
        "{refusal}"
    );

    let commit = branch.with(|workflow| workflow.input("revision", &sha("fork")));
    let step = commit.workflow.run();
    assert_eq!((step.code, commit.created()), (0, 1), "{}", step.log);
    assert_eq!(commit.workflow.github.state().comments[0].pull, 14);
}
