//! The one comment of a suite: what is left on the pull request, whatever happened on the way.

use std::sync::Arc;

use evalwave::github::comment::{CommentError, Published, Stamp, State as Progress, Target, publish};
use tokio::sync::Barrier;

use super::client;
use crate::support::github::{Comment, Fault, Github, State};

const ME: &str = "github-actions[bot]";

fn target() -> Target {
    Target {
        repository: "octo/evals".parse().unwrap(),
        pull_request: 7,
    }
}

/// The stamp of a run's end.
fn stamp(run_id: u64) -> Stamp {
    Stamp {
        suite: "all".to_owned(),
        run_id,
        run_attempt: 1,
        head: "abc1234".to_owned(),
        time: "2026-03-10T10:00:00Z".parse().unwrap(),
        state: Progress::Final,
    }
}

async fn say(github: &Github, stamp: &Stamp, text: &str) -> Result<Published, CommentError> {
    publish(&client(github), &target(), stamp, &|_| text.to_owned()).await
}

/// What a run has said, as a comment that is there already.
fn said(id: u64, run_id: u64, text: &str) -> Comment {
    written(
        id,
        ME,
        &format!(
            "<!-- evalwave suite=all -->\n<!-- evalwave run={run_id} attempt=1 head=abc1234 state=final \
             time=2026-03-10T10:00:00Z -->\n{text}"
        ),
    )
}

fn written(id: u64, author: &str, body: &str) -> Comment {
    Comment {
        id,
        pull: 7,
        author: Some(author.to_owned()),
        body: body.to_owned(),
    }
}

fn with(comments: Vec<Comment>) -> Github {
    Github::start(State {
        comments,
        ..State::default()
    })
}

/// Number and last line of each comment that is left.
fn left(github: &Github) -> Vec<(u64, String)> {
    let state = github.state();
    let comments = state.comments.iter();
    comments
        .map(|comment| {
            (
                comment.id,
                comment.body.lines().last().unwrap_or_default().to_owned(),
            )
        })
        .collect()
}

fn one(id: u64, text: &str) -> Vec<(u64, String)> {
    vec![(id, text.to_owned())]
}

#[tokio::test]
async fn the_first_run_writes_a_comment_that_begins_with_its_marker() {
    let github = with(Vec::new());
    let published = say(&github, &stamp(5), "### Evals").await.unwrap();
    assert_eq!(
        published,
        Published::Created("https://github.com/octo/evals/pull/7#issuecomment-101".to_owned())
    );
    assert_eq!(
        github.state().comments[0].body,
        "<!-- evalwave suite=all -->\n\
         <!-- evalwave run=5 attempt=1 head=abc1234 state=final time=2026-03-10T10:00:00Z -->\n\
         ### Evals"
    );
}

#[tokio::test]
async fn a_running_comment_becomes_the_final_one_and_never_again_a_running_one() {
    let github = with(Vec::new());
    let running = |minute: u32| Stamp {
        state: Progress::Running,
        time: format!("2026-03-10T09:{minute:02}:00Z").parse().unwrap(),
        ..stamp(5)
    };
    say(&github, &running(1), "1 of 9").await.unwrap();
    say(&github, &running(2), "2 of 9").await.unwrap();
    assert_eq!(left(&github), one(101, "2 of 9"));
    say(&github, &stamp(5), "final").await.unwrap();
    let late = say(&github, &running(3), "3 of 9").await.unwrap();
    assert!(matches!(late, Published::Newer(_)));
    // The cleanup step finds that the run has ended well.
    let partial = Stamp {
        state: Progress::Partial,
        ..stamp(5)
    };
    assert!(matches!(
        say(&github, &partial, "died").await.unwrap(),
        Published::Newer(_)
    ));
    assert_eq!(left(&github), one(101, "final"));
}

#[tokio::test]
async fn a_run_that_died_is_finalised_by_its_cleanup() {
    let github = with(Vec::new());
    let state = |state| Stamp { state, ..stamp(5) };
    say(&github, &state(Progress::Running), "2 of 9").await.unwrap();
    say(&github, &state(Progress::Partial), "partial: 2 of 9")
        .await
        .unwrap();
    assert_eq!(left(&github), one(101, "partial: 2 of 9"));
}

#[tokio::test]
async fn the_comment_is_found_on_a_later_page() {
    let mut comments: Vec<Comment> = (1..=250).map(|id| written(id, "someone", "a comment")).collect();
    comments.push(said(300, 4, "before"));
    let github = with(comments);
    let published = say(&github, &stamp(5), "now").await.unwrap();
    assert!(matches!(published, Published::Updated(_)));
    let state = github.state();
    assert_eq!(state.comments.len(), 251);
    assert!(state.comments[250].body.ends_with("now"));
}

#[tokio::test]
async fn only_a_comment_of_ones_own_that_begins_with_the_marker_is_touched() {
    let marked = said(1, 4, "x").body;
    let others = vec![
        written(1, "mallory", &marked),
        written(2, "other-app[bot]", &marked),
        written(3, ME, &format!("> {marked}")),
        written(4, ME, &marked.replace("suite=all", "suite=all-slow")),
        Comment {
            author: None,
            ..written(5, ME, &marked)
        },
    ];
    let github = with(others.clone());
    say(&github, &stamp(5), "ours").await.unwrap();
    let state = github.state();
    assert_eq!(state.comments[..5], others[..]);
    assert_eq!(state.comments.len(), 6);
}

#[tokio::test]
async fn a_token_of_another_app_or_of_a_person_has_its_own_comment() {
    for login in ["evals-app[bot]", "octocat"] {
        let github = Github::start(State {
            login: login.to_owned(),
            comments: vec![said(1, 4, "the workflow's")],
            ..State::default()
        });
        say(&github, &stamp(5), "one").await.unwrap();
        say(&github, &stamp(6), "two").await.unwrap();
        let state = github.state();
        assert_eq!(state.comments.len(), 2);
        assert!(state.comments[1].body.ends_with("two"));
    }
}

#[tokio::test]
async fn a_token_that_may_not_ask_whose_it_is_finds_the_workflows_comment() {
    let github = with(vec![said(1, 4, "before")]);
    github
        .state()
        .trouble("/graphql", 1, || Fault::Status(403, Vec::new()));
    say(&github, &stamp(5), "now").await.unwrap();
    assert_eq!(left(&github), one(1, "now"));
}

#[tokio::test]
async fn an_enterprise_server_is_asked_whose_the_token_is_beside_its_other_api() {
    let github = Github::start(State {
        prefix: "/api/v3".to_owned(),
        login: "evals-app[bot]".to_owned(),
        comments: vec![written(1, "evals-app[bot]", &said(1, 4, "before").body)],
        ..State::default()
    });
    say(&github, &stamp(5), "now").await.unwrap();
    assert_eq!(left(&github), one(1, "now"));
    let asked = github.asked();
    assert_eq!(asked[0], "POST /api/graphql");
    assert!(
        asked[1..]
            .iter()
            .all(|line| line.contains(" /api/v3/repos/octo/evals/")),
        "{asked:?}"
    );
}

#[tokio::test]
async fn duplicates_are_folded_into_the_oldest() {
    let github = with(vec![
        said(3, 2, "b"),
        said(1, 1, "a"),
        said(9, 4, "d"),
        said(4, 3, "c"),
    ]);
    say(&github, &stamp(5), "now").await.unwrap();
    assert_eq!(left(&github), one(1, "now"));
}

#[tokio::test]
async fn duplicates_of_newer_runs_are_folded_by_an_older_one_too() {
    let github = with(vec![said(1, 1, "a"), said(3, 8, "the newest"), said(4, 3, "c")]);
    let published = say(&github, &stamp(5), "older").await.unwrap();
    assert!(matches!(published, Published::Newer(_)));
    assert_eq!(left(&github), one(1, "the newest"));
}

#[tokio::test]
async fn an_older_run_never_overwrites_a_newer_one_even_when_started_again() {
    let github = with(vec![said(1, 6, "of the newer commit")]);
    let again = Stamp {
        run_attempt: 9,
        time: "2026-03-11T10:00:00Z".parse().unwrap(),
        ..stamp(5)
    };
    assert!(matches!(
        say(&github, &again, "of the older").await.unwrap(),
        Published::Newer(_)
    ));
    assert_eq!(left(&github), one(1, "of the newer commit"));
    assert_eq!(github.writes(), 0);
    // A later attempt of the same run is newer than its first.
    let again = Stamp {
        run_attempt: 2,
        state: Progress::Running,
        ..stamp(6)
    };
    say(&github, &again, "second attempt").await.unwrap();
    assert_eq!(left(&github), one(1, "second attempt"));
}

#[tokio::test]
async fn an_unchanged_comment_is_not_sent() {
    let github = with(vec![said(1, 5, "the same")]);
    let later = Stamp {
        time: "2026-03-10T11:00:00Z".parse().unwrap(),
        ..stamp(5)
    };
    let published = say(&github, &later, "the same").await.unwrap();
    assert!(matches!(published, Published::Unchanged(_)));
    assert_eq!(github.writes(), 0);
}

#[tokio::test]
async fn a_lost_post_is_not_doubled() {
    let github = with(Vec::new());
    github.state().trouble("POST /repos", 1, || Fault::Lost);
    say(&github, &stamp(5), "once").await.unwrap();
    assert_eq!(left(&github), one(101, "once"));
    assert_eq!(github.writes(), 1);
}

/// The next so many looks after the first show what was there before.
fn lag(github: &Github, looks: usize) {
    let about = "GET /repos/octo/evals/issues/7";
    let mut state = github.state();
    let before = state.comments.clone();
    state.trouble(about, 1, || Fault::Late(before.clone()));
    state.trouble(about, looks, || Fault::Late(before.clone()));
}

#[tokio::test]
async fn a_list_that_lags_behind_a_change_has_nothing_done_twice() {
    for looks in [1, 2, 20] {
        let github = with(Vec::new());
        lag(&github, looks);
        let published = say(&github, &stamp(5), "once").await.unwrap();
        assert!(matches!(published, Published::Created(_)), "{published:?}");
        assert_eq!((left(&github), github.writes()), (one(101, "once"), 1), "{looks}");

        let github = with(vec![said(1, 4, "before")]);
        lag(&github, looks);
        let published = say(&github, &stamp(5), "now").await.unwrap();
        assert!(matches!(published, Published::Updated(_)), "{published:?}");
        assert_eq!((left(&github), github.writes()), (one(1, "now"), 1), "{looks}");
    }
    let github = with(vec![said(1, 5, "the same"), said(2, 3, "besides")]);
    lag(&github, 2);
    let published = say(&github, &stamp(5), "the same").await.unwrap();
    assert!(matches!(published, Published::Unchanged(_)), "{published:?}");
    assert_eq!((left(&github), github.writes()), (one(1, "the same"), 1));
}

#[tokio::test]
async fn a_comment_of_another_run_that_is_seen_late_is_folded_all_the_same() {
    let github = with(Vec::new());
    github.state().trouble("POST /repos", 1, || {
        Fault::After(Box::new(|state| state.comments.push(said(102, 4, "older"))))
    });
    lag(&github, 1);
    say(&github, &stamp(5), "newer").await.unwrap();
    assert_eq!(left(&github), one(101, "newer"));
}

#[tokio::test]
async fn a_post_that_never_arrived_is_sent_again() {
    for fault in [|| Fault::Drop, || Fault::Status(502, Vec::new())] {
        let github = with(Vec::new());
        github.state().trouble("POST /repos", 2, fault);
        say(&github, &stamp(5), "once").await.unwrap();
        assert_eq!(left(&github), one(101, "once"));
    }
    let github = with(Vec::new());
    github
        .state()
        .trouble("POST /repos", 3, || Fault::Status(503, Vec::new()));
    assert!(matches!(
        say(&github, &stamp(5), "once").await,
        Err(CommentError::Github(_))
    ));
}

#[tokio::test]
async fn a_write_that_is_tried_again_does_not_overwrite_what_came_in_between() {
    let github = with(vec![said(1, 4, "before")]);
    github.state().trouble("GET /repos/octo/evals/issues/7", 1, || {
        Fault::After(Box::new(|state| {
            // The PATCH that follows fails, and meanwhile a newer run writes.
            state.comments[0] = said(1, 9, "newer");
        }))
    });
    github
        .state()
        .trouble("PATCH", 1, || Fault::Status(502, Vec::new()));
    let published = say(&github, &stamp(5), "older").await.unwrap();
    assert!(matches!(published, Published::Newer(_)));
    assert_eq!(left(&github), one(1, "newer"));
}

#[tokio::test]
async fn two_racing_first_runs_end_with_one_comment_the_newer() {
    for newer_first in [false, true] {
        let github = with(Vec::new());
        // Both look, and see nothing; then both write; then both look.
        for about in ["GET /repos/octo/evals/issues/7", "POST /repos"] {
            let barrier = Arc::new(Barrier::new(2));
            github
                .state()
                .trouble(about, 2, || Fault::Meet(Arc::clone(&barrier)));
        }
        let (older, newer) = (stamp(5), stamp(6));
        let (older, newer) = (say(&github, &older, "older"), say(&github, &newer, "newer"));
        let ended = match newer_first {
            true => tokio::join!(newer, older),
            false => {
                let (older, newer) = tokio::join!(older, newer);
                (newer, older)
            }
        };
        ended.0.unwrap();
        ended.1.unwrap();
        let left = left(&github);
        assert_eq!(left, one(101, "newer"));
    }
}

#[tokio::test]
async fn two_racing_updates_end_with_the_newer_text() {
    for newer_first in [false, true] {
        let github = with(vec![said(1, 4, "before")]);
        for about in ["GET /repos/octo/evals/issues/7", "PATCH /repos"] {
            let barrier = Arc::new(Barrier::new(2));
            github
                .state()
                .trouble(about, 2, || Fault::Meet(Arc::clone(&barrier)));
        }
        let (older, newer) = (stamp(5), stamp(6));
        let (older, newer) = (say(&github, &older, "older"), say(&github, &newer, "newer"));
        match newer_first {
            true => drop(tokio::join!(newer, older)),
            false => drop(tokio::join!(older, newer)),
        }
        assert_eq!(left(&github), one(1, "newer"));
    }
}

#[tokio::test]
async fn legs_of_different_suites_do_not_touch_each_others_comment() {
    let github = with(Vec::new());
    let of = |suite: &str| Stamp {
        suite: suite.to_owned(),
        ..stamp(5)
    };
    let (fast, slow) = (of("fast"), of("slow"));
    let (fast, slow) = tokio::join!(say(&github, &fast, "fast"), say(&github, &slow, "slow"));
    fast.unwrap();
    slow.unwrap();
    let mut texts: Vec<String> = left(&github).into_iter().map(|(_, text)| text).collect();
    texts.sort_unstable();
    assert_eq!(texts, ["fast", "slow"]);
}

#[tokio::test]
async fn a_comment_that_somebody_deletes_meanwhile_is_written_again() {
    let github = with(vec![said(1, 4, "before")]);
    github.state().trouble("GET /repos/octo/evals/issues/7", 1, || {
        Fault::After(Box::new(|state| state.comments.clear()))
    });
    say(&github, &stamp(5), "now").await.unwrap();
    assert_eq!(left(&github), one(101, "now"));
}

#[tokio::test]
async fn a_comment_is_never_longer_than_60_000_bytes() {
    let github = with(Vec::new());
    publish(&client(&github), &target(), &stamp(5), &|limit| "x".repeat(limit))
        .await
        .unwrap();
    assert_eq!(github.state().comments[0].body.len(), 60_000);
}

#[tokio::test]
async fn a_comment_that_is_too_long_all_the_same_is_shortened_until_it_fits() {
    let github = with(Vec::new());
    github.state().longest_comment = 15_000;
    publish(&client(&github), &target(), &stamp(5), &|limit| "x".repeat(limit))
        .await
        .unwrap();
    assert_eq!(github.state().comments[0].body.len(), 12_000);
    github.state().longest_comment = 100;
    let error = publish(&client(&github), &target(), &stamp(6), &|limit| "y".repeat(limit)).await;
    let error = error.unwrap_err().to_string();
    assert!(
        error.starts_with("cannot comment on pull request 7: the answer is 422"),
        "{error}"
    );
}

#[tokio::test]
async fn a_token_that_may_only_read_is_told_from_everything_else() {
    let github = with(vec![said(1, 4, "before")]);
    github.state().forbidden.push("pull-requests: write");
    let error = say(&github, &stamp(5), "now").await.unwrap_err();
    assert!(matches!(error, CommentError::Forbidden(_)));
    assert_eq!(
        error.to_string(),
        "cannot comment on pull request 7: it is not allowed (403: Resource not accessible by integration)\n\
         the job needs `permissions: { pull-requests: write }`"
    );
    assert_eq!(left(&github), one(1, "before"));
}
