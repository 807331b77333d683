//! Whether the fake Vercel is faithful: Vercel's official client drives it. What that client cannot see, such as what
//! is counted and what chance shows, is looked at here.

mod official;
mod real;

use serde_json::{Value, json};

use crate::support::vercel::{
    Fault, Faults, Light, LightRule, Limits, Machines, PROJECT, Quota, Rate, Route, Rule, State, TEAM, TOKEN,
    Times, Vercel,
};

/// Asks one fake.
struct Client {
    http: reqwest::Client,
    base: String,
}

impl Client {
    fn new(vercel: &Vercel) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        Self {
            http: reqwest::Client::new(),
            base: vercel.base_url(),
        }
    }

    /// `None` where the connection ended without an answer.
    async fn ask(&self, method: &str, path: &str, body: &Value) -> Option<(u16, Value)> {
        let sign = if path.contains('?') { '&' } else { '?' };
        let url = format!(
            "{}{path}{sign}teamId={TEAM}&projectId={PROJECT}&project={PROJECT}",
            self.base
        );
        let request = self.http.request(method.parse().unwrap(), url);
        let request = request.bearer_auth(TOKEN).body(body.to_string());
        let answer = request.send().await.ok()?;
        let status = answer.status().as_u16();
        let text = answer.text().await.ok()?;
        Some((status, serde_json::from_str(&text).unwrap_or(Value::String(text))))
    }

    /// The status, and what `Retry-After` tells.
    async fn refusal(&self, method: &str, path: &str) -> (u16, Option<u64>) {
        let url = format!("{}{path}?teamId={TEAM}&projectId={PROJECT}", self.base);
        let request = self.http.request(method.parse().unwrap(), url).bearer_auth(TOKEN);
        let answer = request
            .body(json!({ "projectId": PROJECT }).to_string())
            .send()
            .await
            .unwrap();
        let told = answer.headers().get("retry-after");
        let told = told.map(|told| told.to_str().unwrap().parse().unwrap());
        (answer.status().as_u16(), told)
    }

    async fn create(&self, name: &str) -> Option<(u16, Value)> {
        let body = json!({ "projectId": PROJECT, "name": name, "persistent": false, "runtime": "node24" });
        self.ask("POST", "/v2/sandboxes", &body).await
    }

    /// A sandbox's session.
    async fn session(&self, name: &str) -> String {
        let (status, created) = self.create(name).await.unwrap();
        assert_eq!(status, 200, "{created}");
        created["session"]["id"].as_str().unwrap().to_owned()
    }

    /// The exit code of a command that is run and waited for.
    async fn run(&self, session: &str, command: &Value) -> i64 {
        let path = format!("/v2/sandboxes/sessions/{session}/cmd");
        let (_, started) = self.ask("POST", &path, command).await.unwrap();
        let id = started["command"]["id"].as_str().unwrap();
        let (status, ended) = self
            .ask("GET", &format!("{path}/{id}?wait=true"), &Value::Null)
            .await
            .unwrap();
        assert_eq!(status, 200, "{ended}");
        ended["command"]["exitCode"].as_i64().unwrap()
    }
}

fn light(limits: Limits, rules: Vec<Rule>, light: Light) -> Vercel {
    let state = State::new(limits, Faults::new(1, rules));
    Vercel::start(0, state, Machines::light(light)).unwrap()
}

#[tokio::test]
async fn a_light_command_takes_and_exits_as_it_is_named() {
    let simulated = Light {
        scale: 1e-6,
        rules: vec![LightRule {
            contains: "tar ".to_owned(),
            seconds: 0.0,
            exit: 2,
            stdout: String::new(),
        }],
        files: [("/results.json".to_owned(), "{}".to_owned())].into(),
    };
    let vercel = light(Limits::none(), Vec::new(), simulated);
    let client = Client::new(&vercel);
    let session = client.session("one").await;
    for (command, code) in [
        (json!({ "command": "true" }), 0),
        (
            json!({ "command": "sh", "args": ["-c", "agent takes-600s exits-3"] }),
            3,
        ),
        (
            json!({ "command": "agent", "env": { "EVAL": "task-7-takes-12.5s-exits-1" } }),
            1,
        ),
        (json!({ "command": "sh", "args": ["-c", "tar -c x"] }), 2),
        (
            json!({ "command": "agent", "args": ["takes-9e9s"], "timeout": 1 }),
            0,
        ),
        (
            json!({ "command": "agent", "args": ["takes-99999999999s"], "timeout": 1 }),
            137,
        ),
    ] {
        assert_eq!(client.run(&session, &command).await, code, "{command}");
    }
    let read = format!("/v2/sandboxes/sessions/{session}/fs/read");
    let found = client
        .ask("POST", &read, &json!({ "path": "/tmp/x/results.json" }))
        .await;
    assert_eq!(found, Some((200, json!({}))));
    let (missing, _) = client
        .ask("POST", &read, &json!({ "path": "/tmp/other" }))
        .await
        .unwrap();
    assert_eq!(missing, 404);
}

#[tokio::test]
async fn a_wave_is_counted_by_route_and_at_its_height() {
    let vercel = light(Limits::none(), Vec::new(), Light::default());
    let client = Client::new(&vercel);
    let names: Vec<String> = (0..50).map(|n| format!("s{n}")).collect();
    let created = names.iter().map(|name| client.session(name));
    futures::future::join_all(created).await;
    for name in &names {
        let path = format!("/v2/sandboxes/{name}");
        assert_eq!(client.ask("DELETE", &path, &Value::Null).await.unwrap().0, 200);
    }
    let state = vercel.state();
    assert_eq!(state.counts.of(Route::Create), 50);
    assert_eq!(state.counts.with(Route::Delete, 200), 50);
    assert_eq!(state.counts.all(), 100);
    assert_eq!(state.counts.peak_live(), 50);
    assert_eq!(state.counts.peak_vcpus_per_minute(), 100);
    assert_eq!(state.counts.peak_per_minute(), 100);
    assert!(state.sandboxes.is_empty());
}

#[tokio::test]
async fn a_command_for_a_pending_session_waits_until_it_runs() {
    let vercel = light(Limits::none(), Vec::new(), Light::default());
    vercel.state().take(Times {
        create_ms: u64::MAX / 2,
        answers_pending: true,
        ..Times::default()
    });
    let client = Client::new(&vercel);
    let session = client.session("one").await;
    let command = json!({ "command": "true" });
    let mut ran = std::pin::pin!(client.run(&session, &command));
    let asked = async {
        while vercel.state().counts.open(Route::Run) == 0 {
            tokio::task::yield_now().await
        }
    };
    tokio::select! {
        code = &mut ran => panic!("ended with {code} before it could begin"),
        () = asked => {}
    }
    vercel.state().take(Times::default());
    assert_eq!(ran.await, 0);
}

#[tokio::test]
async fn what_was_done_stays_done_where_the_answer_is_lost() {
    for fault in [Fault::Lost, Fault::EarlyEof, Fault::BadGateway] {
        let rules = vec![Rule::first(Route::Create, 1, fault.clone())];
        let vercel = light(Limits::none(), rules, Light::default());
        let client = Client::new(&vercel);
        let answer = client.create("one").await;
        let told = matches!(answer, Some((200, _)));
        assert!(!told, "{fault:?}: {answer:?}");
        let (status, refused) = client.create("one").await.unwrap();
        assert_eq!(status, 400, "{fault:?}");
        let message = "A sandbox with the name 'one' already exists for this project.";
        assert_eq!(
            refused["error"],
            json!({ "code": "bad_request", "message": message })
        );
    }
    let vercel = light(
        Limits::none(),
        vec![Rule::first(Route::Create, 1, Fault::Reset)],
        Light::default(),
    );
    let client = Client::new(&vercel);
    assert_eq!(client.create("one").await, None);
    assert_eq!(client.create("one").await.unwrap().0, 200);
}

#[tokio::test]
async fn requests_creations_and_deletions_have_limits_of_their_own() {
    let limits = Limits {
        concurrent: 2,
        requests_per_minute: 6,
        deletes_per_second: 0,
        vcpus_per_minute: [5, 0, 5],
        minute_ms: 3_600_000,
        ..Limits::default()
    };
    let vercel = light(limits, Vec::new(), Light::default());
    let client = Client::new(&vercel);
    let mut refusals = Vec::new();
    client.session("one").await;
    client.session("two").await;
    for (limits, method, path) in [
        (limits, "POST", "/v2/sandboxes"),
        (
            Limits {
                concurrent: 9,
                ..limits
            },
            "POST",
            "/v2/sandboxes",
        ),
        (limits, "DELETE", "/v2/sandboxes/one"),
        (limits, "GET", "/v2/sandboxes/one"),
        (limits, "GET", "/v2/sandboxes/one"),
    ] {
        vercel.state().limit(limits);
        refusals.push(client.refusal(method, path).await);
    }
    let some = |seconds: std::ops::RangeInclusive<u64>, told: &Option<u64>| {
        told.is_some_and(|told| seconds.contains(&told))
    };
    assert_eq!(refusals[0], (429, None), "when another ends is not known");
    assert!(
        refusals[1].0 == 429 && some(3000..=3600, &refusals[1].1),
        "{refusals:?}"
    );
    assert!(
        refusals[2].0 == 429 && some(1..=1, &refusals[2].1),
        "{refusals:?}"
    );
    assert_eq!(refusals[3], (200, None));
    assert!(
        refusals[4].0 == 429 && some(3000..=3600, &refusals[4].1),
        "{refusals:?}"
    );
    let state = vercel.state();
    assert_eq!(state.counts.peak_vcpus_per_minute(), 4);
    assert_eq!(state.sandboxes.len(), 2);
}

#[test]
fn the_same_seed_shows_the_same_faults() {
    let shown = |seed| {
        let mut faults = Faults::new(seed, Rule::storm(0.05));
        let at = |_| faults.at(Route::Wait, false).map(|fault| format!("{fault:?}"));
        (0..2000).map(at).collect::<Vec<_>>()
    };
    let first = shown(1);
    assert_eq!(first, shown(1));
    assert_ne!(first, shown(2));
    // Five of the six kinds concern a question that waits, and the first of several is shown.
    let some = first.iter().flatten().count() as f64 / 2000.0;
    let expected = 1.0 - 0.95_f64.powi(5);
    assert!((some - expected).abs() < 0.03, "{some} of {expected}");
}

#[test]
fn a_fault_shows_only_where_it_can() {
    let rules = vec![
        Rule::first(Route::Create, 1, Fault::SnapshotGone),
        Rule::first(Route::Stop, 1, Fault::SessionOver),
        Rule::first(Route::Read, 1, Fault::LostPoll(1)),
        Rule::first(Route::Read, 2, Fault::Reset),
    ];
    let mut faults = Faults::new(1, rules);
    assert_eq!(faults.at(Route::Create, false), None);
    assert_eq!(faults.at(Route::Create, true), Some(Fault::SnapshotGone));
    assert_eq!(faults.at(Route::Create, true), None);
    assert_eq!(faults.at(Route::Stop, false), None);
    assert_eq!(faults.at(Route::Read, false), Some(Fault::Reset));
    assert_eq!(faults.at(Route::Read, false), Some(Fault::Reset));
    assert_eq!(faults.at(Route::Read, false), None);
    assert_eq!(
        faults.shown.into_iter().collect::<Vec<_>>(),
        [("Reset".to_owned(), 2), ("SnapshotGone".to_owned(), 1)]
    );
}

#[test]
fn the_most_in_any_window_is_known_wherever_it_begins() {
    let mut rate = Rate::over(1000);
    for (at, amount) in [(0, 1), (600, 2), (999, 1), (1500, 4), (1600, 1)] {
        rate.add(at, amount);
    }
    assert_eq!(rate.peak(), 7, "from 600 to 1599");
    assert_eq!(rate.full(1700, 7), None);
    assert_eq!(rate.full(1700, 6), Some(299));
    assert_eq!(rate.full(2600, 1), None);
}

#[test]
fn the_quota_grows_each_minute_and_begins_again_after_ten_idle_ones() {
    const MINUTE: u64 = 60_000;
    let limits = Limits::default();
    let mut quota = Quota::default();
    let start = 1_700_000_000_123;
    let mut most = |minute: u64| {
        let mut vcpus = 0;
        while quota.take(start + minute * MINUTE, 1, &limits).is_ok() {
            vcpus += 1;
        }
        vcpus
    };
    assert_eq!(most(0), 150);
    assert_eq!(most(1), 650);
    assert_eq!(most(2), 1150);
    assert_eq!(most(11), 5000);
    assert_eq!(most(21), 150);
    assert_eq!(quota.take(start + 21 * MINUTE + 59_000, 1, &limits), Err(1000));
    assert_eq!(quota.take(start + 22 * MINUTE, 8, &limits), Ok(()));
}
