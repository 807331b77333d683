//! The base revision, measured beside the change: the one that is named, else the one that the event compares with.

use serde_json::json;

use super::{Workflow, always, commit_all, measured, suite};
use crate::support::git;
use crate::support::github::sha;

#[test]
fn the_base_can_be_measured_beside_the_change() {
    let workflow = Workflow::new(suite("agent/task", "", &always(true)), measured());
    let workflow = workflow.input("baseline", "measure:HEAD");
    let step = workflow.run();
    assert_eq!(step.output("baseline-pass-rate"), "1", "{}", step.log);
    assert!(
        step.log.contains("::group::baseline 1/1 PASS agent × task"),
        "{}",
        step.log
    );
    assert!(
        !workflow
            .github
            .asked()
            .iter()
            .any(|line| line.contains("/actions/")),
        "nothing is looked for"
    );
}

/// What the event compares with is fetched where the checkout has one commit only, whatever the default branch is.
#[test]
fn the_base_of_the_event_is_measured_where_none_is_named() {
    for event in ["pull_request", "push"] {
        let workflow = Workflow::new(suite("agent/task", "", &always(true)), measured());
        let origin = tempfile::tempdir().unwrap();
        let there = camino::Utf8Path::from_path(origin.path()).unwrap();
        git(workflow.suite.path(), &["clone", "--quiet", ".", there.as_str()]);
        git(
            workflow.suite.path(),
            &["remote", "add", "origin", there.as_str()],
        );
        fs_err::write(there.join("attempt.sh"), always(false)).unwrap();
        let base = commit_all(there);
        let mut state = workflow.github.state();
        state.commits.insert(base.clone(), Vec::new());
        state
            .commits
            .insert(workflow.head.clone(), vec![base.clone(), sha("head")]);
        drop(state);
        let workflow = workflow.input("baseline", "measure");
        let workflow = match event {
            "push" => workflow.event(event, "refs/heads/main", json!({ "before": base })),
            _ => workflow,
        };
        let step = workflow.run();
        assert_eq!(
            (step.output("pass-rate"), step.output("baseline-pass-rate")),
            ("1", "0"),
            "{event}: {}",
            step.log
        );
        assert!(
            step.summary.contains("against <code>main</code>"),
            "{}",
            step.summary
        );
    }
}
