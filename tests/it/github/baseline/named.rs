//! A baseline that is named: a tag, a release, a run, an artifact; and the artifact of this very job, which is none.

use evalwave::github::baseline::{Event, Measured, Place, Search, Wanted, find};

use super::{found, merge_of, merged_pull_request, wanted, why_none};
use crate::github::client;
use crate::support::github::{Github, Release, Run, State, artifact_of, sha, summary};

#[tokio::test]
async fn a_tag_and_the_latest_release_can_be_named() {
    let mut state = State::with_history(&["a", "b"]);
    state.tags.insert("v1".to_owned(), sha("a"));
    state.measured(Run::pushed(1, "a").by("release").on("v1"));
    state.measured(Run::pushed(2, "b"));
    let github = Github::start(state);
    let tag = |tag: &str| Place::Tag(tag.to_owned());
    assert_eq!(found(&github, tag("v1")).await.run, 1);
    assert_eq!(why_none(&github, tag("v9")).await, "there is no tag `v9`");
    assert_eq!(
        why_none(&github, Place::LatestRelease).await,
        "there is no release yet"
    );
    github.state().releases.push(Release {
        tag: "v1",
        draft: false,
        prerelease: false,
    });
    assert_eq!(found(&github, Place::LatestRelease).await.run, 1);
}

#[tokio::test]
async fn a_run_can_be_named() {
    let mut state = merged_pull_request();
    // Even one that no event would choose, for somebody has chosen it.
    state.measured(Run::pushed(5, "head").by("pull_request").on("topic"));
    let github = Github::start(state);
    let found = found(&github, Place::Run(5)).await;
    assert_eq!((found.run, found.how.as_str()), (5, "topic, 8 days old"));
    assert_eq!(
        why_none(&github, Place::Run(6)).await,
        "there is no run 6 in `octo/evals`"
    );
}

#[tokio::test]
async fn an_artifact_can_be_named_of_this_very_run_or_of_earlier_ones() {
    let mut state = merged_pull_request();
    state.runs.push(Run::pushed(3, "c"));
    state
        .artifacts
        .push(artifact_of(3, "before", &summary("all", Some(&sha("c")))));
    let github = Github::start(state);
    let place = || Place::Artifact {
        name: "before".to_owned(),
        event: Event::PullRequest {
            base_branch: "main".to_owned(),
            measured: Measured::MergeCommit(sha("merge")),
        },
    };
    assert_eq!(found(&github, place()).await.run, 3);
    let own = artifact_of(900, "before", &summary("other", None));
    github.state().artifacts.push(own);
    let found = found(&github, place()).await;
    assert_eq!(
        (found.run, found.how.as_str()),
        (900, "this very run, 8 days old")
    );
}

#[tokio::test]
async fn a_job_that_is_run_again_is_not_compared_with_what_it_has_kept_itself() {
    let mut state = merged_pull_request();
    state.measured(Run::pushed(3, "c"));
    let event = || Event::PullRequest {
        base_branch: "main".to_owned(),
        measured: Measured::MergeCommit(sha("merge")),
    };
    let named = |name: &str| Place::Artifact {
        name: name.to_owned(),
        event: event(),
    };
    let own = |name: &str| artifact_of(900, name, &summary("all", Some(&sha("merge"))));
    state.artifacts.push(own("evalwave-all"));
    let github = Github::start(state);
    assert_eq!(found(&github, named("evalwave-all")).await.run, 3);
    assert_eq!(
        why_none(&github, Place::Run(900)).await,
        "run 900 is this very run, which is no baseline of itself"
    );
    // What another job of the run has kept is another thing.
    github.state().artifacts.push(own("before"));
    assert_eq!(found(&github, named("before")).await.run, 900);
}

#[tokio::test]
async fn earlier_runs_are_read_from_the_artifact_that_this_job_keeps_its_results_in() {
    let mut state = merged_pull_request();
    state.measured(Run::pushed(3, "c"));
    state.runs.push(Run::pushed(2, "b"));
    let nightly = summary("all", Some(&sha("b")));
    state.artifacts.push(artifact_of(2, "nightly", &nightly));
    let github = Github::start(state);
    let wanted = Wanted {
        artifact: "nightly".to_owned(),
        ..wanted(merge_of("main"))
    };
    let (search, _) = find(&client(&github), &wanted, 0).await;
    assert!(
        matches!(&search, Search::Found(found) if found.run == 2),
        "{search:?}"
    );
}
