//! The runs before the baseline.

use evalwave::github::baseline::{Search, find};

use super::{merge_of, wanted};
use crate::github::client;
use crate::support::github::{Fault, Github, Run, State, artifact_of, day, sha, summary};

/// Run `id` measured `commit` on a day of its own, and its pair came to `verdict`.
fn measured_on(state: &mut State, id: u64, commit: &str, verdict: &str) {
    let mut summary = summary("all", Some(&sha(commit)));
    summary["run"]["started_at"] = day(u32::try_from(id).unwrap()).into();
    summary["pairs"][0]["verdict"] = verdict.into();
    state.runs.push(Run::pushed(id, commit));
    state.artifacts.push(artifact_of(id, "evalwave-all", &summary));
}

#[tokio::test]
async fn the_runs_before_the_baseline_are_its_history_and_those_after_it_are_not() {
    let mut state = State::with_history(&["a", "b", "c", "d", "e"]);
    state.commit("merge", &["d", "head"]);
    for (id, commit) in [(1, "a"), (2, "b"), (3, "c"), (4, "d"), (5, "e")] {
        measured_on(&mut state, id, commit, "pass");
    }
    let github = Github::start(state);
    let wanted = wanted(merge_of("main"));
    for (asked, expected) in [
        (0, vec![]),
        (2, vec!["run 3", "run 2"]),
        (10, vec!["run 3", "run 2", "run 1"]),
    ] {
        let (search, earlier) = find(&client(&github), &wanted, asked).await;
        let Search::Found(found) = search else {
            panic!("{search:?}")
        };
        assert_eq!(found.run, 4);
        let sources: Vec<&str> = earlier.results.iter().map(|set| set.source.as_str()).collect();
        assert_eq!((sources, earlier.failed), (expected, None));
    }
}

#[tokio::test]
async fn a_history_that_cannot_be_read_leaves_the_baseline_and_says_so() {
    let mut state = State::with_history(&["a", "b"]);
    state.commit("merge", &["b", "head"]);
    measured_on(&mut state, 1, "a", "pass");
    measured_on(&mut state, 2, "b", "pass");
    state.trouble("/actions/runs/1/artifacts", 9, || Fault::Status(403, vec![]));
    let github = Github::start(state);
    let (search, earlier) = find(&client(&github), &wanted(merge_of("main")), 10).await;
    assert!(matches!(search, Search::Found(found) if found.run == 2));
    assert!(earlier.results.is_empty());
    let failed = earlier.failed.unwrap();
    assert!(failed.contains("actions: read"), "{failed}");
}

#[tokio::test]
async fn a_history_is_as_long_as_it_was_asked_for_and_says_where_it_is_not() {
    let mut state = State::with_history(&["a", "b"]);
    state.commit("merge", &["b", "head"]);
    for id in 0..60 {
        // Those of every other run have expired.
        let mut summary = summary("all", Some(&sha("a")));
        summary["run"]["started_at"] = Run::pushed(id, "a").created_at.into();
        state.runs.push(Run::pushed(id, "a"));
        if id % 2 == 0 {
            state.artifacts.push(artifact_of(id, "evalwave-all", &summary));
        }
    }
    state.measured(Run::pushed(60, "b"));
    let github = Github::start(state);
    let (client, wanted) = (client(&github), wanted(merge_of("main")));
    for (asked, given, exhausted) in [(20, 19, Some(40)), (24, 21, Some(44)), (50, 30, None)] {
        let (search, earlier) = find(&client, &wanted, asked).await;
        assert!(matches!(search, Search::Found(found) if found.run == 60));
        assert_eq!(
            (earlier.results.len(), earlier.exhausted),
            (given, exhausted),
            "{asked}"
        );
    }
}
