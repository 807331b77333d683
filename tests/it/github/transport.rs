//! How questions are asked: patience, refusals, addresses, and pull requests.

use evalwave::github::pull_request::{PullRequest, by_head, read};
use evalwave::github::{Client, GithubError, Problem, Secret};

use super::client;
use crate::support::github::{Fault, Github, Pull, State, TOKEN, sha};

fn pull(number: u64, head_repository: Option<&'static str>, commit: &str) -> Pull {
    Pull {
        number,
        state: "open",
        head_repository,
        head_branch: "topic",
        head_sha: sha(commit),
        base_branch: "main",
    }
}

async fn ask(client: &Client) -> Result<PullRequest, GithubError> {
    read(client, &"octo/evals".parse().unwrap(), 7).await
}

fn with_a_pull_request() -> Github {
    let mut state = State::default();
    state.pulls.push(pull(7, Some("octo/evals"), "head"));
    Github::start(state)
}

#[tokio::test]
async fn a_question_is_asked_again_where_that_may_help_and_not_for_ever() {
    let github = with_a_pull_request();
    github.state().trouble("/pulls/7", 1, || Fault::Drop);
    github.state().trouble("/pulls/7", 1, || {
        Fault::Status(503, vec![("retry-after", "0".to_owned())])
    });
    assert_eq!(ask(&client(&github)).await.unwrap().head, sha("head"));
    github
        .state()
        .trouble("/pulls/7", 9, || Fault::Status(500, Vec::new()));
    let error = ask(&client(&github)).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot read pull request 7: the answer is 500: Server Error"
    );
    assert_eq!(github.asked().len(), 6);
}

#[tokio::test]
async fn a_long_wait_is_not_waited_for() {
    let github = with_a_pull_request();
    let limited = || Fault::Status(429, vec![("retry-after", "3600".to_owned())]);
    github.state().trouble("/pulls/7", 1, limited);
    let error = ask(&client(&github)).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot read pull request 7: the rate limit is reached (429), for another 60 min: too long to wait for"
    );
    let used_up = || {
        let headers = [
            ("x-ratelimit-remaining", "0"),
            ("x-ratelimit-reset", "4102444800"),
        ];
        Fault::Status(
            403,
            headers.map(|(name, value)| (name, value.to_owned())).to_vec(),
        )
    };
    github.state().trouble("/pulls/7", 1, used_up);
    let error = ask(&client(&github)).await.unwrap_err();
    assert!(matches!(
        error.problem,
        Problem::RateLimited {
            status: 403,
            wait: Some(_)
        }
    ));
    assert_eq!(github.asked().len(), 2);
}

#[tokio::test]
async fn a_wrong_token_is_said_and_never_shown() {
    let github = with_a_pull_request();
    let wrong = Client::new(&github.api_url(), Some(&Secret::new("ghs_a-token-of-yesterday"))).unwrap();
    let error = ask(&wrong).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot read pull request 7: the token is wrong or has expired (401)"
    );
    assert!(!format!("{error:?} {wrong:?}").contains("yesterday"));
    let unsendable = Client::new(&github.api_url(), Some(&Secret::new("ghs_two\nlines"))).unwrap_err();
    assert!(matches!(unsendable.problem, Problem::Token));
    assert!(!format!("{unsendable:?} {unsendable}").contains("ghs_"));
    assert_eq!(format!("{:?}", Secret::new(TOKEN)), "***");
}

#[tokio::test]
async fn nobody_at_the_address_is_an_error_that_says_so() {
    // A port that was bound and closed again may be another test's by now; nobody listens on the first.
    let client = Client::new("http://127.0.0.1:1", None)
        .unwrap()
        .with_first_wait(std::time::Duration::ZERO);
    let error = ask(&client).await.unwrap_err().to_string();
    assert!(
        error.starts_with("cannot read pull request 7: no answer ("),
        "{error}"
    );
    assert!(error.to_lowercase().contains("refused"), "{error}");
}

#[tokio::test]
async fn what_is_no_address_is_refused_before_anything_is_sent() {
    for address in [
        "",
        "api.github.com",
        "ftp://api.github.com",
        "https://user:pass@ghe.example",
        "https://",
    ] {
        let error = Client::new(address, None).unwrap_err();
        assert!(matches!(error.problem, Problem::Address(_)), "{address}: {error}");
    }
}

#[test]
fn a_client_outside_of_a_runtime_is_an_error_and_no_panic() {
    let error = Client::new("https://api.github.com", None).unwrap_err();
    assert!(matches!(error.problem, Problem::Setup(_)), "{error}");
}

#[tokio::test]
async fn an_answer_of_another_shape_is_an_error_and_no_panic() {
    let github = with_a_pull_request();
    github
        .state()
        .trouble("/pulls/7", 1, || Fault::Status(200, Vec::new()));
    // What the fake has said here is no pull request, and not described either.
    let error = ask(&client(&github)).await.unwrap_err();
    github.state().undescribed.clear();
    assert_eq!(
        error.to_string(),
        "cannot read pull request 7: the answer has not a head, a base and a number"
    );
    let proxy = serve_once("HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\n<html>");
    let error = ask(&Client::new(&proxy, None).unwrap()).await.unwrap_err();
    assert!(matches!(error.problem, Problem::Shape(_)), "{error}");
}

/// A server that answers once, whatever is asked.
fn serve_once(answer: &'static str) -> String {
    use std::io::{Read as _, Write as _};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 4096]);
        stream.write_all(answer.as_bytes()).unwrap();
    });
    address
}

#[tokio::test]
async fn a_forks_pull_request_is_found_by_its_head() {
    let pulls = vec![
        pull(3, Some("mallory/evals"), "other"),
        pull(4, Some("mallory/evals-copy"), "head"),
        pull(5, Some("octo/evals"), "head"),
        pull(6, None, "head"),
        pull(8, Some("mallory/evals"), "head"),
        Pull {
            state: "closed",
            ..pull(9, Some("mallory/evals"), "closed")
        },
    ];
    let github = Github::start(State {
        pulls,
        page_size: 1,
        ..State::default()
    });
    let client = client(&github);
    let (base, fork) = ("octo/evals".parse().unwrap(), "mallory/evals".parse().unwrap());
    let of = async |commit: &str| {
        let found = by_head(&client, &base, &fork, "topic", &sha(commit))
            .await
            .unwrap();
        found.map(|found| found.number)
    };
    assert_eq!(of("head").await, Some(8));
    // It has moved on, or is closed.
    assert_eq!(of("before").await, None);
    assert_eq!(of("closed").await, None);
    assert_eq!(read(&client, &base, 6).await.unwrap().head_repository, None);
}
