//! How a sandbox is asked for: what the request says, how often it is sent, and what a lost answer means. Knows nothing
//! of what runs in it.

use std::sync::Arc;
use std::time::Duration;

use camino::Utf8PathBuf;
use serde_json::{Map, Value, json};

use super::Account;
use super::api::{Created, Status};
use super::client::{ANSWER, Ask, Client, LONGEST_WAIT};
use super::error::{Again, Problem, VercelError};
use crate::config::{VercelBase, VercelConfig, VercelPolicy};
use crate::sandbox::limit::{Admission, Turn};
use crate::sandbox::under_way::UnderWay;
use crate::sandbox::{SandboxError, SandboxSpec};

/// How often a creation is asked for.
const TRIES: u32 = 12;

/// Where nobody says how long to wait, it is never longer than this.
const LONGEST_PAUSE: Duration = Duration::from_secs(20);

/// How long one answer may take: a repository may have to be cloned for it.
const CREATION: Duration = Duration::from_secs(180);

/// More labels than these are refused.
const MOST_TAGS: usize = 5;

/// The label of all that a run owns.
pub(super) const RUN_TAG: &str = "evalwave-run";

/// What a sandbox's files come from, besides its runtime or image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Origin<'a> {
    Nothing,
    Repository(&'a Repository),
    Snapshot(&'a str),
}

/// A repository at a revision.
#[derive(Clone, PartialEq, Eq)]
pub struct Repository {
    /// Its address, `https` and without credentials.
    pub url: String,
    /// The commit, or a name of one.
    pub revision: String,
    /// The suite's directory in it; empty is the repository itself.
    pub directory: Utf8PathBuf,
    /// A user's name and password, where it is private.
    pub login: Option<(String, String)>,
}

impl std::fmt::Debug for Repository {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let login = self.login.as_ref().map(|_| "***");
        write!(
            f,
            "Repository {{ {} at {}, login: {login:?} }}",
            self.url, self.revision
        )
    }
}

/// The body of the request.
pub(super) fn body(
    project_id: &str,
    config: &VercelConfig,
    spec: &SandboxSpec,
    origin: &Origin<'_>,
) -> Value {
    let mut body = Map::new();
    body.insert("projectId".to_owned(), json!(project_id));
    body.insert("ports".to_owned(), json!([]));
    match origin {
        Origin::Nothing => {}
        Origin::Repository(repository) => {
            let mut source = json!({
                "type": "git",
                "url": repository.url,
                "revision": repository.revision,
                "depth": 1,
            });
            if let Some((username, password)) = &repository.login {
                source["username"] = json!(username);
                source["password"] = json!(password);
            }
            body.insert("source".to_owned(), source);
        }
        Origin::Snapshot(id) => {
            body.insert(
                "source".to_owned(),
                json!({ "type": "snapshot", "snapshotId": id }),
            );
        }
    }
    let timeout = config.timeout.unwrap_or(spec.limit).min(VercelConfig::LONGEST);
    let timeout = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
    body.insert("timeout".to_owned(), json!(timeout));
    body.insert("resources".to_owned(), json!({ "vcpus": config.vcpus }));
    if !matches!(origin, Origin::Snapshot(_)) {
        let (key, name) = match &config.base {
            VercelBase::Runtime(name) => ("runtime", name),
            VercelBase::Image(name) => ("image", name),
        };
        body.insert(key.to_owned(), json!(name));
    }
    body.insert("name".to_owned(), json!(spec.name));
    // Otherwise every stop stores a snapshot, for money.
    body.insert("persistent".to_owned(), json!(false));
    if let Some(policy) = &config.network_policy {
        let policy = match policy {
            VercelPolicy::Named(name) => json!({ "mode": name }),
            VercelPolicy::Rules(rules) => rules.clone(),
        };
        body.insert("networkPolicy".to_owned(), policy);
    }
    body.insert("tags".to_owned(), Value::Object(tags(spec)));
    if let Some(region) = &config.region {
        body.insert("region".to_owned(), json!(region));
    }
    Value::Object(body)
}

fn tags(spec: &SandboxSpec) -> Map<String, Value> {
    let run = [(RUN_TAG.to_owned(), spec.run_id.as_str())];
    let labels = spec
        .labels
        .iter()
        .map(|(name, value)| (format!("evalwave-{name}"), value.as_str()));
    run.into_iter()
        .chain(labels)
        .take(MOST_TAGS)
        .map(|(name, value)| (name, json!(tag(value))))
        .collect()
}

/// A value as a label may be: the service's own lists take `name:value` apart at a colon.
pub(super) fn tag(value: &str) -> String {
    let plain = |char: char| {
        if char.is_ascii_alphanumeric() || "._-".contains(char) {
            char
        } else {
            '-'
        }
    };
    value.chars().take(128).map(plain).collect()
}

/// The version in the path that creates.
pub(super) fn version<'a>(config: &'a VercelConfig, origin: &Origin<'_>) -> &'a str {
    match (&config.api_version, &config.base, origin) {
        (Some(version), ..) => version,
        (None, VercelBase::Runtime(_), Origin::Nothing | Origin::Repository(_)) => "v2",
        (None, ..) => "v3",
    }
}

/// Why there is no sandbox.
#[derive(Debug)]
pub(super) enum NoSandbox {
    /// It was refused for good: none has come to be, and its name is free.
    Refused(VercelError),
    /// None was to be had; one that has come to be all the same is lost, and has taken the name.
    Lost(VercelError),
}

impl NoSandbox {
    /// As a failure of the sandbox: another may fare better, unless it is a matter of who we are or what we ask for.
    pub(super) fn failure(self) -> SandboxError {
        match self {
            Self::Refused(error) => error.in_creation(),
            Self::Lost(error) => error.in_sandbox(),
        }
    }
}

/// What is asked for, by whom.
pub(super) struct Creation<'a> {
    pub(super) account: &'a Arc<Account>,
    pub(super) under_way: &'a UnderWay,
    /// Its place among those that run.
    pub(super) place: &'a Arc<Admission>,
    pub(super) vcpus: u32,
    /// The version in the path.
    pub(super) version: &'a str,
    pub(super) name: &'a str,
    pub(super) body: Arc<Value>,
}

/// Asks for a sandbox that nobody else names so, until there is one, or a definite no. `turn` is the first request's.
pub(super) async fn create(creation: &Creation<'_>, turn: Turn) -> Result<Created, NoSandbox> {
    match request(creation, turn).await? {
        Some(created) => Ok(created),
        None => {
            let found = by_name(&creation.account.client, creation.name).await;
            found.map_err(NoSandbox::Lost)
        }
    }
}

/// Asks for a sandbox; `None` where its name is taken since an answer was lost: by that request, if by nobody else.
pub(super) async fn request(creation: &Creation<'_>, mut turn: Turn) -> Result<Option<Created>, NoSandbox> {
    let account = creation.account;
    let client = &account.client;
    let mut tried = 0;
    let mut is_unknown = false;
    loop {
        tried += 1;
        let error = match ask(creation).await {
            Ok(created) => {
                turn.passed();
                return Ok(Some(created));
            }
            Err(error) => error,
        };
        let is_taken = error.refusal().is_some_and(|refusal| refusal.is_duplicate_name());
        if is_taken && is_unknown {
            turn.passed();
            return Ok(None);
        }
        match error.again() {
            Again::Never => {
                turn.passed();
                let is_free = error.refusal().is_some() && !is_unknown;
                return Err(match is_free {
                    true => NoSandbox::Refused(error),
                    false => NoSandbox::Lost(error),
                });
            }
            Again::Throttled(retry_after) => turn.refused(retry_after),
            Again::Soon => {
                is_unknown = true;
                drop(turn);
                let told = error.refusal().and_then(|refusal| refusal.retry_after);
                let wait = match told {
                    Some(told) => client.stretch(told.min(LONGEST_WAIT), 1.0, 1.4),
                    None => client.stretch(
                        Duration::from_secs(1 << tried.min(5)).min(LONGEST_PAUSE),
                        0.8,
                        1.2,
                    ),
                };
                if tried < TRIES {
                    tokio::time::sleep(wait).await;
                }
            }
        }
        if tried == TRIES {
            return Err(NoSandbox::Lost(error));
        }
        turn = account.creations.again(creation.vcpus).await;
    }
}

/// Asks once. An answer that nobody waits for any more is heard all the same, and the sandbox is deleted.
async fn ask(creation: &Creation<'_>) -> Result<Created, VercelError> {
    const WHAT: &str = "create the sandbox";
    let (account, same) = (Arc::clone(creation.account), Arc::clone(creation.account));
    let (version, body) = (creation.version.to_owned(), Arc::clone(&creation.body));
    let asking = async move {
        let ask = Ask::post(WHAT, vec![&version, "sandboxes"], body.as_ref())
            .limit(Some(CREATION))
            .once();
        account.client.ask::<Created>(&ask).await
    };
    let (name, place) = (creation.name.to_owned(), Arc::clone(creation.place));
    let undo = async move |created: Result<Created, VercelError>| {
        if created.is_ok() {
            let _ = same.reaper.delete(&name, None).await;
        }
        drop(place);
    };
    let asked = creation.under_way.carry(asking, undo).await;
    asked.unwrap_or_else(|error| {
        Err(VercelError {
            asked: WHAT.to_owned(),
            problem: Problem::Unexpected(error.to_string()),
        })
    })
}

/// The sandbox of this name, as it is: one that has stopped is not started again.
async fn by_name(client: &Client, name: &str) -> Result<Created, VercelError> {
    let ask = Ask::get("find the sandbox that was created", vec!["v2", "sandboxes", name])
        .query(vec![("projectId", &client.project_id)])
        .limit(Some(ANSWER));
    let created = client.ask::<Created>(&ask).await?;
    match created.session.status {
        Status::Pending | Status::Running | Status::Unknown => Ok(created),
        gone => Err(ask.failed(Problem::Gone(gone.word().to_owned()))),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use camino::Utf8PathBuf;
    use serde_json::json;

    use super::{Origin, Repository, body, tag, version};
    use crate::config::{VercelBase, VercelConfig, VercelFiles, VercelLimits, VercelPolicy};
    use crate::sandbox::SandboxSpec;

    fn config() -> VercelConfig {
        VercelConfig {
            vcpus: 4,
            base: VercelBase::Runtime("node24".to_owned()),
            source: VercelFiles::Repository,
            revision: None,
            submodules: false,
            timeout: Some(Duration::from_secs(600)),
            snapshot_id: None,
            network_policy: None,
            region: None,
            base_url: "https://vercel.com/api".to_owned(),
            api_version: None,
            limits: VercelLimits::default(),
            warm: None,
        }
    }

    fn spec() -> SandboxSpec {
        SandboxSpec {
            name: "n1".to_owned(),
            run_id: "r1".to_owned(),
            labels: vec![("expires", "2026-03-02T10:00:00Z".to_owned())],
            limit: Duration::from_secs(1800),
        }
    }

    #[test]
    fn a_creation_from_a_repository_says_what_the_sdk_says() {
        let repository = Repository {
            url: "https://github.com/o/r.git".to_owned(),
            revision: "abc".to_owned(),
            directory: Utf8PathBuf::new(),
            login: None,
        };
        let origin = Origin::Repository(&repository);
        assert_eq!(
            body("prj_1", &config(), &spec(), &origin),
            json!({
                "projectId": "prj_1", "ports": [],
                "source": { "type": "git", "url": "https://github.com/o/r.git", "revision": "abc", "depth": 1 },
                "timeout": 600_000, "resources": { "vcpus": 4 }, "runtime": "node24", "name": "n1", "persistent": false,
                "tags": { "evalwave-run": "r1", "evalwave-expires": "2026-03-02T10-00-00Z" },
            })
        );
        assert_eq!(version(&config(), &origin), "v2");
    }

    #[test]
    fn a_creation_from_a_snapshot_names_no_runtime_and_every_creation_is_not_persistent() {
        let config = VercelConfig {
            timeout: None,
            network_policy: Some(VercelPolicy::Named("deny-all".to_owned())),
            region: Some("fra1".to_owned()),
            ..config()
        };
        let body = body("p", &config, &spec(), &Origin::Snapshot("snap_1"));
        assert_eq!(body.get("runtime"), None);
        assert_eq!(
            body["source"],
            json!({ "type": "snapshot", "snapshotId": "snap_1" })
        );
        assert_eq!(body["persistent"], json!(false));
        assert_eq!(body["timeout"], json!(1_800_000));
        assert_eq!(body["networkPolicy"], json!({ "mode": "deny-all" }));
        assert_eq!(body["region"], json!("fra1"));
        assert_eq!(version(&config, &Origin::Snapshot("snap_1")), "v3");
    }

    #[test]
    fn keys_in_the_rules_of_a_network_policy_are_never_shown() {
        let rules = json!({ "allow": { "api.example": [{ "headers": { "x-key": "s3cret" } }] } });
        let config = VercelConfig {
            network_policy: Some(VercelPolicy::Rules(rules)),
            ..config()
        };
        let shown = format!("{config:?}");
        assert!(
            shown.contains("Rules(***)") && !shown.contains("s3cret"),
            "{shown}"
        );
    }

    #[test]
    fn a_label_holds_nothing_that_a_list_would_take_apart() {
        assert_eq!(tag("a:b c/ä"), "a-b-c--");
        assert_eq!(tag(&"x".repeat(500)).len(), 128);
    }
}
