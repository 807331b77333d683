//! The fake is held to GitHub's published description with every question; here it is shown that this can fail, and
//! that no described route goes untested.

use std::collections::BTreeSet;

use evalwave::github::baseline::{Event, Measured, Place, ThisRun, Wanted, find};
use evalwave::github::comment::{Stamp, State as Progress, Target, publish};
use evalwave::github::pull_request::{by_head, read};
use serde_json::{Value, json};

use super::client;
use crate::support::github::{
    Answer, Comment, Exchange, Github, Pull, Release, Run, State, day, described, routes_described, sha,
};

#[tokio::test]
async fn every_described_route_is_asked_as_it_is_described() {
    let mut state = State::with_history(&["a", "b"]);
    state.commit("head", &["a"]);
    state.commit("merge", &["b", "head"]);
    state.tags.insert("v1".to_owned(), sha("a"));
    state.releases.push(Release {
        tag: "v1",
        draft: false,
        prerelease: false,
    });
    state.pulls.push(Pull {
        number: 7,
        state: "open",
        head_repository: Some("octo/evals"),
        head_branch: "topic",
        head_sha: sha("head"),
        base_branch: "main",
    });
    let marked = |id: u64| Comment {
        id,
        pull: 7,
        author: Some("github-actions[bot]".to_owned()),
        body: "<!-- evalwave suite=all -->\n".to_owned(),
    };
    state.comments = vec![marked(1), marked(2)];
    state.measured(Run::pushed(1, "a"));
    let github = Github::start(state);
    let client = client(&github);
    let repository = "octo/evals".parse().unwrap();
    let on = |base: &str, measured| Event::PullRequest {
        base_branch: base.to_owned(),
        measured,
    };
    let places = [
        Place::Auto(on("main", Measured::MergeCommit(sha("merge")))),
        Place::Auto(on("main", Measured::Head(sha("head")))),
        Place::Auto(on("feature/with slash", Measured::Head(sha("head")))),
        Place::Auto(Event::Tag { tag: "v2".to_owned() }),
        Place::LatestRelease,
        Place::Run(1),
    ];
    for place in places {
        let wanted = Wanted {
            repository: "octo/evals".parse().unwrap(),
            workflow: "evals.yml".to_owned(),
            suite: "all".to_owned(),
            artifact: "evalwave-all".to_owned(),
            run: ThisRun { id: 900, number: 900 },
            place,
            now: day(10).parse().unwrap(),
            policy: None,
        };
        find(&client, &wanted, 1).await;
    }
    read(&client, &repository, 7).await.unwrap();
    by_head(&client, &repository, &repository, "topic", "x")
        .await
        .unwrap();
    let stamp = Stamp {
        suite: "all".to_owned(),
        run_id: 5,
        run_attempt: 1,
        head: "abc".to_owned(),
        time: day(10).parse().unwrap(),
        state: Progress::Final,
    };
    for pull_request in [7, 8] {
        let target = Target {
            repository: "octo/evals".parse().unwrap(),
            pull_request,
        };
        publish(&client, &target, &stamp, &|_| "text".to_owned())
            .await
            .unwrap();
    }

    let state = github.state();
    let exchanges = state.exchanges.iter();
    let asked: BTreeSet<String> = exchanges
        .filter(|exchange| !exchange.path.starts_with("/blob/") && exchange.path != "/graphql")
        // That the answers are as described was seen when they were given.
        .filter_map(|exchange| described(exchange, "", &refusal()).ok())
        .collect();
    let unasked: Vec<String> = routes_described()
        .into_iter()
        .filter(|route| !asked.contains(route))
        .collect();
    assert!(unasked.is_empty(), "never asked: {unasked:?}");
}

fn refusal() -> Answer {
    Answer::refused(404, &[])
}

fn asking(method: &str, path: &str, query: &str, body: Value) -> Exchange {
    Exchange {
        method: method.to_owned(),
        path: path.to_owned(),
        query: query.to_owned(),
        authorization: None,
        body,
        status: 404,
    }
}

#[test]
fn what_is_not_described_is_seen() {
    let wrong = |exchange: Exchange, answer: Answer| described(&exchange, "", &answer).unwrap_err();
    let none = Value::Null;
    let comments = "/repos/o/r/issues/7/comments";
    assert!(wrong(asking("GET", "/repos/o/r/evals", "", none.clone()), refusal()).contains("no such route"));
    let query = wrong(asking("GET", comments, "per-page=5", none.clone()), refusal());
    assert!(query.contains("no query parameter per-page"));
    let number = wrong(asking("GET", comments, "per_page=many", none.clone()), refusal());
    assert!(number.contains("per_page"), "{number}");
    let number = wrong(
        asking("GET", "/repos/o/r/issues/seven/comments", "", none.clone()),
        refusal(),
    );
    assert!(number.contains("issue_number"), "{number}");
    let body = wrong(asking("POST", comments, "", json!({ "text": "x" })), refusal());
    assert!(body.contains("body"), "{body}");
    let answer = Answer {
        status: 200,
        headers: Vec::new(),
        body: b"[{\"id\": \"seven\"}]".to_vec(),
    };
    assert!(wrong(asking("GET", comments, "", none), answer).contains("answer 200"));
}
