//! What a step learns of the events that GitHub sends, and of some that it never would.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{EventError, Invocation, Trigger};

const SHA: &str = "1111111111111111111111111111111111111111";
const BASE: &str = "2222222222222222222222222222222222222222";

fn environment(event: &str) -> BTreeMap<String, String> {
    let variables = [
        ("GITHUB_EVENT_NAME", event),
        ("GITHUB_REPOSITORY", "owner/agents"),
        ("GITHUB_REPOSITORY_ID", "7"),
        ("GITHUB_API_URL", "https://api.github.com"),
        ("GITHUB_SERVER_URL", "https://github.com/"),
        ("GITHUB_RUN_ID", "99"),
        ("GITHUB_RUN_ATTEMPT", "2"),
        ("GITHUB_SHA", SHA),
        ("GITHUB_REF", "refs/heads/main"),
        ("GITHUB_ACTOR", "ada"),
        (
            "GITHUB_WORKFLOW_REF",
            "owner/agents/.github/workflows/evals.yml@refs/heads/main",
        ),
    ];
    variables
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

fn read(event: &str, payload: &Value) -> Result<Invocation, EventError> {
    Invocation::read(&environment(event), payload.to_string().as_bytes())
}

fn repository(id: u64, full_name: &str) -> Value {
    json!({ "id": id, "full_name": full_name })
}

fn pull_request(head: Value) -> Value {
    json!({
        "repository": { "id": 7, "full_name": "owner/agents", "default_branch": "main" },
        "pull_request": {
            "number": 12,
            "user": { "login": "ada" },
            "head": { "sha": SHA, "ref": "faster", "repo": head },
            "base": { "sha": BASE, "ref": "main", "repo": repository(7, "owner/agents") },
        },
    })
}

#[test]
fn a_pull_request_of_the_repository_itself_is_not_foreign() {
    let own = read("pull_request", &pull_request(repository(7, "owner/agents"))).unwrap();
    assert!(!own.is_foreign());
    assert_eq!(own.withholds_secrets(), None);
    assert_eq!(own.pull_request().unwrap().number, 12);
    assert_eq!(own.changed_since(), Some(BASE));
    assert_eq!(own.workflow.as_deref(), Some("evals.yml"));
    assert_eq!(
        own.run_url(),
        "https://github.com/owner/agents/actions/runs/99/attempts/2"
    );
    assert_eq!(own.default_branch.as_deref(), Some("main"));
}

#[test]
fn a_fork_is_known_by_its_id_and_so_is_one_that_is_gone() {
    for head in [
        repository(8, "someone/agents"),
        repository(8, "owner/agents"),
        Value::Null,
    ] {
        let fork = read("pull_request", &pull_request(head.clone())).unwrap();
        assert!(fork.is_foreign(), "{head}");
        assert_eq!(fork.withholds_secrets(), Some("a fork"));
        assert!(!fork.is_dangerous(), "it has no secrets");
        assert!(
            read("pull_request_target", &pull_request(head))
                .unwrap()
                .is_dangerous()
        );
    }
    let renamed = read(
        "pull_request_target",
        &pull_request(repository(7, "owner/old-name")),
    )
    .unwrap();
    assert!(!renamed.is_dangerous());
}

#[test]
fn dependabot_has_no_secrets_of_the_repository() {
    let mut variables = environment("pull_request");
    variables.insert("GITHUB_ACTOR".to_owned(), "dependabot[bot]".to_owned());
    let payload = pull_request(repository(7, "owner/agents")).to_string();
    let run = Invocation::read(&variables, payload.as_bytes()).unwrap();
    assert_eq!(run.withholds_secrets(), Some("Dependabot"));
}

#[test]
fn every_event_is_told_apart() {
    let zeros = "0".repeat(40);
    let first = read("push", &json!({ "before": zeros })).unwrap();
    assert_eq!(first.trigger, Trigger::Push { before: None });
    let push = read("push", &json!({ "before": BASE })).unwrap();
    assert_eq!(push.changed_since(), Some(BASE));
    let merge_group = json!({ "merge_group": { "base_sha": BASE, "base_ref": "refs/heads/main" } });
    assert_eq!(
        read("merge_group", &merge_group).unwrap().changed_since(),
        Some(BASE)
    );
    let schedule = read("schedule", &json!({})).unwrap();
    assert_eq!(
        (schedule.trigger, schedule.default_branch),
        (Trigger::Schedule, None)
    );
    assert_eq!(
        read("workflow_dispatch", &json!({ "inputs": null }))
            .unwrap()
            .trigger,
        Trigger::WorkflowDispatch
    );
    let release = read("release", &json!({ "release": { "tag_name": "v1" } })).unwrap();
    assert_eq!(
        release.trigger,
        Trigger::Release {
            tag: Some("v1".to_owned())
        }
    );
    let other = read("issue_comment", &json!([])).unwrap();
    assert_eq!(other.trigger, Trigger::Other("issue_comment".to_owned()));
}

#[test]
fn a_run_that_ended_is_dangerous_if_its_commit_is_another_repositorys() {
    let payload = |head: Value| {
        json!({ "workflow_run": {
            "id": 5, "event": "pull_request", "head_sha": SHA, "head_branch": "main",
            "head_repository": head, "pull_requests": [{ "number": 3 }, { "number": "four" }, null],
        } })
    };
    let fork = read("workflow_run", &payload(repository(8, "someone/agents"))).unwrap();
    assert!(fork.is_dangerous());
    let Trigger::WorkflowRun(run) = &fork.trigger else {
        panic!("{fork:?}")
    };
    assert_eq!((run.id, run.pull_requests.as_slice()), (5, &[3][..]));
    assert!(
        !read("workflow_run", &payload(repository(7, "owner/agents")))
            .unwrap()
            .is_dangerous()
    );
}

#[test]
fn elsewhere_than_on_github_that_is_said() {
    let error = Invocation::read(&BTreeMap::new(), b"{}").unwrap_err();
    insta::assert_snapshot!(error, @r"
    this runs inside GitHub Actions: `GITHUB_EVENT_NAME` is not set in the environment
    at a terminal use `evalwave run`
    ");
}

#[test]
fn an_event_without_what_its_kind_has_is_named() {
    let error = read("pull_request", &json!({ "pull_request": { "number": "12" } })).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot read the event `pull_request`: `pull_request/number` is missing or not a number"
    );
    let mut payload = pull_request(Value::Null);
    payload["pull_request"]["head"]["sha"] = json!("$(touch x)");
    let error = read("pull_request", &payload).unwrap_err();
    assert!(error.to_string().contains("pull_request/head/sha"), "{error}");
    let error = Invocation::read(&environment("push"), b"\xff{").unwrap_err();
    assert!(
        error.to_string().starts_with("cannot read the event: "),
        "{error}"
    );
}

#[test]
fn addresses_and_names_have_to_be_some() {
    for (name, value) in [
        ("GITHUB_API_URL", "file:///etc/passwd"),
        ("GITHUB_SERVER_URL", "https://x\n::error::y"),
        ("GITHUB_REPOSITORY", "owner/../x"),
        ("GITHUB_REPOSITORY", "owner"),
        ("GITHUB_RUN_ID", "-1"),
    ] {
        let mut variables = environment("push");
        variables.insert(name.to_owned(), value.to_owned());
        let error = Invocation::read(&variables, b"{}").unwrap_err();
        assert!(matches!(error, EventError::Variable { .. }), "{name}: {error}");
    }
}

/// Any JSON, with the keys that events have among its keys.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
        Just(Value::from(SHA)),
    ];
    let keys = prop::sample::select(vec![
        "pull_request",
        "number",
        "head",
        "base",
        "sha",
        "ref",
        "repo",
        "id",
        "full_name",
        "user",
        "login",
        "workflow_run",
        "head_sha",
        "head_repository",
        "event",
        "pull_requests",
        "merge_group",
        "base_sha",
        "before",
        "release",
        "tag_name",
        "repository",
        "default_branch",
    ]);
    leaf.prop_recursive(5, 64, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((keys.clone(), inner), 0..6).prop_map(|entries| {
                entries
                    .into_iter()
                    .map(|(key, value)| (key.to_owned(), value))
                    .collect()
            }),
        ]
    })
}

const EVENTS: [&str; 8] = [
    "pull_request",
    "pull_request_target",
    "push",
    "merge_group",
    "workflow_run",
    "release",
    "schedule",
    "other",
];

/// The events that have something to read, as GitHub sends them.
fn sent() -> impl Strategy<Value = (&'static str, Value)> {
    let own = repository(7, "owner/agents");
    let fork = repository(8, "someone/agents");
    let run = json!({
        "action": "completed",
        "repository": own,
        "workflow_run": {
            "id": 5, "run_attempt": 1, "event": "pull_request", "head_sha": SHA, "head_branch": "faster",
            "head_repository": fork, "pull_requests": [{ "number": 3 }],
        },
    });
    let group =
        json!({ "repository": own, "merge_group": { "base_sha": BASE, "base_ref": "refs/heads/main" } });
    prop::sample::select(vec![
        ("pull_request", pull_request(own.clone())),
        ("pull_request_target", pull_request(fork)),
        ("push", json!({ "repository": own, "before": BASE, "after": SHA })),
        ("merge_group", group),
        ("workflow_run", run),
        (
            "release",
            json!({ "repository": own, "release": { "tag_name": "v1" } }),
        ),
    ])
}

/// Every value below this one and itself, by where it is.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Object(entries) => entries
            .iter()
            .for_each(|(key, value)| places(value, &format!("{at}/{key}"), found)),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .for_each(|(index, value)| places(value, &format!("{at}/{index}"), found)),
        _ => {}
    }
}

/// An event is read, or one line says what is wrong with it; whatever is read is what it has to be.
fn is_sound(event: &str, bytes: &[u8]) {
    let invocation = match Invocation::read(&environment(event), bytes) {
        Ok(invocation) => invocation,
        Err(error) => {
            let said = error.to_string();
            assert!(said.starts_with("cannot read the event"), "{said}");
            assert!(!said.contains(char::is_control) && said.len() < 200, "{said}");
            return;
        }
    };
    let dangerous = invocation.is_dangerous();
    assert!(!dangerous || invocation.is_foreign());
    assert!(invocation.changed_since().is_none_or(super::is_sha));
    match &invocation.trigger {
        Trigger::PullRequest(pull_request) | Trigger::PullRequestTarget(pull_request) => {
            assert!(super::is_sha(&pull_request.head.sha) && super::is_sha(&pull_request.base.sha));
            assert_eq!(
                dangerous,
                event == "pull_request_target" && invocation.is_foreign()
            );
        }
        Trigger::WorkflowRun(run) => {
            assert!(super::is_sha(&run.head_sha));
            let is_own = run.head_repository.as_ref().is_some_and(|head| head.id == 7);
            assert_eq!(dangerous, !is_own);
        }
        _ => assert!(!dangerous),
    }
}

proptest! {
    #[test]
    fn no_bytes_are_too_much(event in prop::sample::select(&EVENTS[..]), bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        is_sound(event, &bytes);
    }

    #[test]
    fn no_json_is_too_much(event in prop::sample::select(&EVENTS[..]), payload in any_json()) {
        is_sound(event, payload.to_string().as_bytes());
    }

    #[test]
    fn no_value_in_the_place_of_another_is_too_much((event, mut payload) in sent(), at in any::<prop::sample::Index>(), value in any_json()) {
        let mut found = Vec::new();
        places(&payload, "", &mut found);
        *payload.pointer_mut(&found[at.index(found.len())]).unwrap() = value;
        is_sound(event, payload.to_string().as_bytes());
    }

    #[test]
    fn no_torn_event_is_too_much(
        (event, payload) in sent(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        end in any::<prop::sample::Index>(),
        is_cut in any::<bool>(),
    ) {
        let mut bytes = payload.to_string().into_bytes();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if is_cut {
            bytes.truncate(end.index(bytes.len()));
        }
        is_sound(event, &bytes);
    }

    #[test]
    fn no_variable_is_too_much(name in prop::sample::select(environment("push").into_keys().collect::<Vec<_>>()), value in any::<String>()) {
        let mut variables = environment("push");
        variables.insert(name, value);
        let _ = Invocation::read(&variables, b"{}");
    }
}
