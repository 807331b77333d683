//! Which earlier run becomes the baseline.

mod history;
mod named;

use evalwave::github::baseline::{Candidates, Event, Found, Measured, Place, Search, ThisRun, Wanted, find};
use serde_json::json;

use super::client;
use crate::support::github::{Fault, Github, Release, Run, State, artifact_of, day, sha, summary};

fn wanted(place: Place) -> Wanted {
    Wanted {
        repository: "octo/evals".parse().unwrap(),
        workflow: "evals.yml".to_owned(),
        suite: "all".to_owned(),
        artifact: "evalwave-all".to_owned(),
        run: ThisRun { id: 900, number: 900 },
        place,
        now: day(10).parse().unwrap(),
        policy: None,
    }
}

/// A pull request into `base` whose merge commit was measured.
fn merge_of(base: &str) -> Place {
    Place::Auto(Event::PullRequest {
        base_branch: base.to_owned(),
        measured: Measured::MergeCommit(sha("merge")),
    })
}

/// `main` is a-b-c-d; a pull request merges `head`, which left at b, into c: its merge commit's parents are c and head.
fn merged_pull_request() -> State {
    let mut state = State::with_history(&["a", "b", "c", "d"]);
    state.commit("head", &["b"]);
    state.commit("merge", &["c", "head"]);
    state
}

async fn search(github: &Github, place: Place) -> Search {
    find(&client(github), &wanted(place), 0).await.0
}

async fn found(github: &Github, place: Place) -> Found {
    match search(github, place).await {
        Search::Found(found) => *found,
        other => panic!("{other:?}"),
    }
}

async fn why_none(github: &Github, place: Place) -> String {
    match search(github, place).await {
        Search::NotFound(why) => why,
        other => panic!("{other:?}"),
    }
}

async fn why_failed(github: &Github, place: Place) -> String {
    match search(github, place).await {
        Search::Failed(why) => why,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_measured_merge_commit_is_compared_with_its_first_parent() {
    let mut state = merged_pull_request();
    for (id, commit) in [(1, "a"), (2, "b"), (3, "c"), (4, "d")] {
        state.measured(Run::pushed(id, commit));
    }
    let github = Github::start(state);
    let found = found(&github, merge_of("main")).await;
    assert_eq!(found.run, 3);
    assert_eq!(found.how, "main, exact base, 8 days old");
    assert_eq!(found.results.commit, Some(sha("c")));
    assert_eq!(found.results.reference.as_deref(), Some("main"));
    assert_eq!(
        found.results.run_url.as_deref(),
        Some("https://github.com/octo/evals/actions/runs/3")
    );
    assert_eq!(found.results.pairs.len(), 1);
}

#[tokio::test]
async fn a_measured_head_is_compared_with_where_it_left_the_base_branch() {
    let mut state = merged_pull_request();
    for (id, commit) in [(1, "a"), (2, "b"), (3, "c"), (4, "d")] {
        state.measured(Run::pushed(id, commit));
    }
    let github = Github::start(state);
    let measured = Measured::Head(sha("head"));
    let place = Place::Auto(Event::PullRequest {
        base_branch: "main".to_owned(),
        measured,
    });
    let found = found(&github, place).await;
    assert_eq!(
        (found.run, found.how.as_str()),
        (2, "main, exact base, 8 days old")
    );
}

#[tokio::test]
async fn without_a_run_of_the_base_its_nearest_ancestor_is_taken() {
    let mut state = merged_pull_request();
    state.measured(Run::pushed(1, "a"));
    state.measured(Run::pushed(2, "b"));
    state.measured(Run::pushed(4, "d"));
    let github = Github::start(state);
    let found = found(&github, merge_of("main")).await;
    assert_eq!(
        (found.run, found.how.as_str()),
        (2, "main, 1 commit before the base, 8 days old")
    );
}

#[tokio::test]
async fn without_a_run_of_any_ancestor_the_newest_is_taken_and_it_says_so() {
    let mut state = merged_pull_request();
    state.commit("other", &[]);
    state.measured(Run::pushed(1, "other"));
    state.measured(Run::pushed(2, "other"));
    let github = Github::start(state);
    let found = found(&github, merge_of("main")).await;
    assert_eq!(found.run, 2);
    assert_eq!(found.how, "main, not known how far from the base, 8 days old");
}

#[tokio::test]
async fn the_newest_run_of_the_wanted_commit_is_taken() {
    let mut state = merged_pull_request();
    state.measured(Run::pushed(3, "c"));
    state.measured(Run::pushed(5, "c").by("schedule"));
    let github = Github::start(state);
    assert_eq!(found(&github, merge_of("main")).await.run, 5);
}

#[tokio::test]
async fn a_forks_branch_called_main_is_no_baseline() {
    let mut state = merged_pull_request();
    let forked = |id| Run {
        head_repository: Some(77),
        ..Run::pushed(id, "c")
    };
    state.measured(forked(5).by("pull_request"));
    state.measured(forked(6));
    state.measured(Run {
        head_repository: None,
        ..Run::pushed(7, "c")
    });
    state.measured(Run::pushed(2, "b"));
    let github = Github::start(state);
    assert_eq!(found(&github, merge_of("main")).await.run, 2);
}

#[tokio::test]
async fn only_trusted_events_of_the_same_workflow_count() {
    let mut state = merged_pull_request();
    for (id, event) in (5..).zip([
        "pull_request",
        "pull_request_target",
        "workflow_run",
        "issue_comment",
    ]) {
        state.measured(Run::pushed(id, "c").by(event));
    }
    state.measured(Run {
        workflow: "other.yml",
        ..Run::pushed(20, "c")
    });
    state.measured(Run {
        status: "in_progress",
        ..Run::pushed(21, "c")
    });
    state.runs.push(Run {
        status: "in_progress",
        ..Run::pushed(900, "c")
    });
    let github = Github::start(state);
    let why = why_none(&github, merge_of("main")).await;
    assert_eq!(
        why,
        "no finished run of `evals.yml` on `main` in the last 90 days"
    );
}

#[tokio::test]
async fn runs_are_looked_for_on_several_pages() {
    let mut state = merged_pull_request();
    state.page_size = 3;
    state.measured(Run::pushed(1, "c"));
    for id in 10..20 {
        state.measured(Run::pushed(id, "c").by("pull_request"));
    }
    let github = Github::start(state);
    assert_eq!(found(&github, merge_of("main")).await.run, 1);
}

#[tokio::test]
async fn an_expired_artifact_is_passed_over() {
    let mut state = merged_pull_request();
    state.measured(Run::pushed(2, "b"));
    state.measured(Run::pushed(3, "c"));
    state.artifacts[1].expired = true;
    let github = Github::start(state);
    assert_eq!(found(&github, merge_of("main")).await.run, 2);
}

#[tokio::test]
async fn an_artifact_that_vanishes_between_list_and_download_is_passed_over() {
    for gone in [404, 410] {
        let mut state = merged_pull_request();
        state.measured(Run::pushed(2, "b"));
        state.measured(Run::pushed(3, "c"));
        state.trouble("/artifacts/30/zip", 1, || Fault::Status(gone, Vec::new()));
        let github = Github::start(state);
        assert_eq!(found(&github, merge_of("main")).await.run, 2);
    }
    let mut state = merged_pull_request();
    state.measured(Run::pushed(2, "b"));
    state.measured(Run::pushed(3, "c"));
    state.artifacts[1].bytes = None;
    let github = Github::start(state);
    assert_eq!(found(&github, merge_of("main")).await.run, 2);
}

#[tokio::test]
async fn only_complete_results_of_the_whole_suite_count() {
    let mut state = merged_pull_request();
    let mut add = |id: u64, change: &dyn Fn(&mut serde_json::Value)| {
        let mut summary = summary("all", Some(&sha("c")));
        change(&mut summary);
        state.runs.push(Run::pushed(id, "c"));
        state.artifacts.push(artifact_of(id, "evalwave-all", &summary));
    };
    add(9, &|summary| summary["run"]["complete"] = false.into());
    add(8, &|summary| {
        summary["run"]["selection"]["kind"] = "subset".into()
    });
    add(7, &|summary| summary["run"]["selection"]["kind"] = "shard".into());
    add(6, &|summary| summary["run"]["suite"] = "slow".into());
    add(5, &|summary| summary["schema"] = "evalwave.summary/9".into());
    add(4, &|summary| summary["run"]["commit"] = sha("head").into());
    let github = Github::start(state);
    let why = why_none(&github, merge_of("main")).await;
    assert_eq!(
        why,
        "no earlier run has results to compare with (run 9: it is not complete, and 5 more)"
    );
    github.state().measured(Run::pushed(3, "c"));
    assert_eq!(found(&github, merge_of("main")).await.run, 3);
}

#[tokio::test]
async fn an_approved_run_of_a_forks_commit_is_no_baseline() {
    let mut state = merged_pull_request();
    let mut dispatched = |id: u64, measured: Option<&str>| {
        state.runs.push(Run::pushed(id, "c").by("workflow_dispatch"));
        let summary = summary("all", measured);
        state.artifacts.push(artifact_of(id, "evalwave-all", &summary));
    };
    dispatched(7, Some(&sha("head")));
    dispatched(6, None);
    dispatched(5, Some(&sha("c")));
    let github = Github::start(state);
    assert_eq!(found(&github, merge_of("main")).await.run, 5);
}

#[tokio::test]
async fn suites_of_one_workflow_do_not_take_each_others_results() {
    let mut state = merged_pull_request();
    state.runs.push(Run::pushed(3, "c"));
    let slow = summary("slow", Some(&sha("c")));
    state.artifacts.push(artifact_of(3, "evalwave-slow", &slow));
    let github = Github::start(state);
    let why = why_none(&github, merge_of("main")).await;
    assert!(
        why.contains("it has no artifact `evalwave-all`, or that has expired"),
        "{why}"
    );
}

#[tokio::test]
async fn what_a_merge_queue_has_measured_counts_once_it_is_on_the_branch() {
    let mut state = merged_pull_request();
    let queued = |id, commit| Run::pushed(id, commit).by("merge_group");
    state.commit("thrown-out", &["c"]);
    state.measured(queued(4, "thrown-out").on("gh-readonly-queue/main/pr-2-c"));
    let github = Github::start(state);
    // The queue threw that one out again: it never was on the branch.
    why_none(&github, merge_of("main")).await;
    let on_the_branch = queued(3, "c").on("gh-readonly-queue/main/pr-1-b");
    github.state().measured(on_the_branch);
    let found = found(&github, merge_of("main")).await;
    assert_eq!(found.run, 3);
    assert_eq!(found.how, "gh-readonly-queue/main/pr-1-b, exact base, 8 days old");
}

#[tokio::test]
async fn a_merge_group_is_compared_with_its_base() {
    let mut state = merged_pull_request();
    state.measured(Run::pushed(3, "c"));
    state.measured(Run::pushed(4, "d"));
    let github = Github::start(state);
    let place = Place::Auto(Event::MergeGroup {
        base_branch: "main".to_owned(),
        base: sha("c"),
    });
    assert_eq!(found(&github, place).await.run, 3);
}

#[tokio::test]
async fn a_stacked_pull_request_falls_back_to_the_default_branch_and_says_so() {
    let mut state = merged_pull_request();
    // The base branch `feature` left main at b, and has never been measured.
    state.commit("f", &["b"]);
    state.commit("merge", &["f", "head"]);
    state.measured(Run::pushed(2, "b"));
    state.measured(Run::pushed(4, "d"));
    let github = Github::start(state);
    let found = found(&github, merge_of("feature")).await;
    assert_eq!(found.run, 2);
    assert_eq!(
        found.how,
        "main, for feature has no result, 1 commit before the base, 8 days old"
    );
}

#[tokio::test]
async fn the_first_run_ever_has_no_baseline_yet() {
    let github = Github::start(merged_pull_request());
    let why = why_none(&github, merge_of("main")).await;
    assert_eq!(
        why,
        "no finished run of `evals.yml` on `main` in the last 90 days"
    );
    let why = why_none(&github, merge_of("feature")).await;
    assert_eq!(
        why,
        "no finished run of `evals.yml` on `feature` in the last 90 days, and none on the default branch `main`"
    );
}

#[tokio::test]
async fn a_push_is_compared_with_what_was_pushed_before() {
    let mut state = State::with_history(&["a", "b", "c", "d"]);
    for (id, commit) in [(1, "a"), (2, "b"), (3, "c")] {
        state.measured(Run::pushed(id, commit));
    }
    // A later push, for this one was started again.
    state.measured(Run::pushed(950, "d"));
    let github = Github::start(state);
    let push = |before: Option<String>| {
        Place::Auto(Event::Push {
            branch: "main".to_owned(),
            before,
        })
    };
    let found_before = found(&github, push(Some(sha("b")))).await;
    assert_eq!(found_before.run, 2);
    assert_eq!(found_before.how, "main, exact previous push, 8 days old");
    // A branch that is new has nothing before it.
    assert_eq!(found(&github, push(Some("0".repeat(40)))).await.run, 3);
    assert_eq!(found(&github, push(None)).await.run, 3);
}

#[tokio::test]
async fn a_scheduled_or_dispatched_run_is_compared_with_the_branchs_last() {
    let mut state = State::with_history(&["a", "b"]);
    state.measured(Run::pushed(1, "a").by("schedule"));
    let github = Github::start(state);
    let on = |branch: &str| {
        Place::Auto(Event::OnBranch {
            branch: branch.to_owned(),
            commit: Some(sha("b")),
        })
    };
    let found_before = found(&github, on("main")).await;
    assert_eq!(
        found_before.how,
        "main, 1 commit before the measured commit, 8 days old"
    );
    let found_elsewhere = found(&github, on("try")).await;
    assert_eq!(found_elsewhere.run, 1);
    assert!(found_elsewhere.how.contains("for try has no result"));
    let unknown = Place::Auto(Event::OnBranch {
        branch: "main".to_owned(),
        commit: None,
    });
    assert_eq!(
        found(&github, unknown).await.how,
        "main, not known how far from the measured commit, 8 days old"
    );
}

#[tokio::test]
async fn a_tag_is_compared_with_the_release_before_it() {
    let mut state = State::with_history(&["a", "b", "c"]);
    state
        .tags
        .extend([("v1".to_owned(), sha("a")), ("v2".to_owned(), sha("c"))]);
    let release = |tag, prerelease| Release {
        tag,
        draft: false,
        prerelease,
    };
    state.releases = vec![
        release("v2", false),
        release("v2-rc1", true),
        release("v1", false),
    ];
    state.measured(Run::pushed(1, "a"));
    state.measured(Run::pushed(2, "b"));
    state.measured(Run::pushed(3, "c"));
    let github = Github::start(state);
    let tag = |tag: &str| Place::Auto(Event::Tag { tag: tag.to_owned() });
    let before = found(&github, tag("v2")).await;
    assert_eq!(
        (before.run, before.how.as_str()),
        (1, "main, exact commit of v1, 8 days old")
    );
    assert_eq!(
        why_none(&github, tag("v1")).await,
        "there is no release before `v1`"
    );
}

#[tokio::test]
async fn earlier_runs_follow_one_by_one_and_are_read_only_when_asked_for() {
    let mut state = merged_pull_request();
    for (id, commit) in [(1, "a"), (2, "b"), (3, "c"), (4, "d")] {
        state.measured(Run::pushed(id, commit));
    }
    let github = Github::start(state);
    let (client, wanted) = (client(&github), wanted(merge_of("main")));
    let mut candidates = Candidates::list(&client, &wanted, 0).await.unwrap();
    let downloads = |github: &Github| {
        let asked = github.asked();
        asked.iter().filter(|line| line.starts_with("GET /blob/")).count()
    };
    assert_eq!(downloads(&github), 0);
    let mut runs = Vec::new();
    while let Some(found) = candidates.next(&client).await.unwrap() {
        runs.push(found.run);
        assert_eq!(downloads(&github), runs.len());
    }
    assert_eq!(runs, [3, 2, 1, 4]);
}

#[tokio::test]
async fn no_more_than_twenty_runs_are_opened_in_search_of_a_baseline() {
    let mut state = merged_pull_request();
    state.runs.extend((1..=40).map(|id| Run::pushed(id, "c")));
    let github = Github::start(state);
    // However long its history is to be.
    let (search, _) = find(&client(&github), &wanted(merge_of("main")), 100).await;
    assert!(
        matches!(&search, Search::NotFound(why) if why.ends_with("and 19 more)")),
        "{search:?}"
    );
    let asked = github.asked();
    assert_eq!(
        asked.iter().filter(|line| line.ends_with("/artifacts")).count(),
        20
    );
}

#[tokio::test]
async fn a_missing_permission_is_a_failed_look_up_and_names_it() {
    let mut state = merged_pull_request();
    state.measured(Run::pushed(3, "c"));
    state.forbidden.push("actions: read");
    let github = Github::start(state);
    let why = why_failed(&github, merge_of("main")).await;
    assert_eq!(
        why,
        "cannot list the runs of `evals.yml`: it is not allowed (403: Resource not accessible by integration)\n\
         the job needs `permissions: { actions: read }`"
    );
}

#[tokio::test]
async fn a_server_in_trouble_is_a_failed_look_up_and_never_no_baseline() {
    for about in [
        "/runs",
        "/git/commits/",
        "GET /repos/octo/evals/commits",
        "/artifacts",
        "/zip",
        "/blob/",
    ] {
        let mut state = merged_pull_request();
        state.measured(Run::pushed(2, "b"));
        state.trouble(about, 3, || Fault::Status(502, Vec::new()));
        let github = Github::start(state);
        let why = why_failed(&github, merge_of("main")).await;
        assert!(why.contains("the answer is 502"), "{about}: {why}");
    }
}

#[tokio::test]
async fn an_enterprise_server_keeps_the_beginning_of_its_paths() {
    let mut state = merged_pull_request();
    state.prefix = "/api/v3".to_owned();
    state.measured(Run::pushed(3, "c"));
    let github = Github::start(state);
    assert_eq!(found(&github, merge_of("main")).await.run, 3);
    assert!(
        github.asked().iter().all(|line| {
            line.starts_with("GET /api/v3/repos/octo/evals/") || line.starts_with("GET /blob/")
        })
    );
}

#[tokio::test]
async fn null_fields_of_other_runs_and_artifacts_do_no_harm() {
    let mut state = merged_pull_request();
    state.measured(Run::pushed(3, "c"));
    state.runs.push(Run {
        head_branch: None,
        head_repository: None,
        ..Run::pushed(4, "c")
    });
    let mut nameless = artifact_of(3, "evalwave-all", &json!(null));
    nameless.created_at = None;
    nameless.expired = true;
    state.artifacts.push(nameless);
    let github = Github::start(state);
    // The fake lists a run without a branch only where no branch is asked for.
    assert_eq!(found(&github, merge_of("main")).await.run, 3);
}
