//! The fake GitHub's answers: a question and the state in, an answer out, the state changed. Knows no connections.

use serde_json::{Value, json};

use super::described::{decoded, filled, pairs};
use super::state::{Artifact, Comment, Exchange, Pull, Release, Run, State, TOKEN};

/// An answer.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    fn json(status: u16, body: &Value) -> Self {
        Self {
            status,
            headers: vec![(
                "content-type".to_owned(),
                "application/json; charset=utf-8".to_owned(),
            )],
            body: body.to_string().into_bytes(),
        }
    }

    /// A refusal as GitHub words it.
    pub(crate) fn refused(status: u16, headers: &[(&'static str, String)]) -> Self {
        let message = match status {
            401 => "Bad credentials",
            403 => "Resource not accessible by integration",
            404 => "Not Found",
            410 => "Artifact has expired",
            422 => "Validation Failed",
            429 => "You have exceeded a secondary rate limit",
            _ => "Server Error",
        };
        let mut body = json!({
            "message": message, "documentation_url": "https://docs.github.com/rest", "status": status.to_string(),
        });
        if status == 422 {
            body = json!({ "message": message, "documentation_url": "https://docs.github.com/rest" });
        }
        let mut answer = Self::json(status, &body);
        let headers = headers
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.clone()));
        answer.headers.extend(headers);
        answer
    }

    fn not_found() -> Self {
        Self::refused(404, &[])
    }
}

pub(super) fn answer(state: &mut State, exchange: &Exchange) -> Answer {
    if let Some(id) = exchange.path.strip_prefix("/blob/") {
        return blob(state, id);
    }
    if exchange.authorization.as_deref() != Some(&format!("Bearer {TOKEN}")) {
        return Answer::refused(401, &[]);
    }
    if exchange.path == format!("{}/graphql", state.prefix.trim_end_matches("/v3")) {
        return Answer::json(200, &json!({ "data": { "viewer": { "login": state.login } } }));
    }
    let repository = format!("{}/repos/{}", state.prefix, state.repository);
    let Some(path) = exchange.path.strip_prefix(&repository) else {
        return Answer::not_found();
    };
    let path: Vec<String> = path.split('/').skip(1).map(decoded).collect();
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    let ask = Question {
        query: pairs(&exchange.query),
        url: format!("{}{}", state.host, exchange.path),
    };
    if let Some(permission) = permission(&exchange.method, &path)
        && state.forbidden.contains(&permission)
    {
        return Answer::refused(403, &[]);
    }
    match (exchange.method.as_str(), path.as_slice()) {
        ("GET", []) => Answer::json(200, &repository_json(state)),
        ("GET", ["actions", "workflows", workflow, "runs"]) => runs(state, workflow, &ask),
        ("GET", ["actions", "runs", id]) => found(run(state, id).map(|run| run_json(state, run))),
        ("GET", ["actions", "runs", id, "artifacts"]) => artifacts(state, id, &ask),
        ("GET", ["actions", "artifacts", id, "zip"]) => location(state, id),
        ("GET", ["commits"]) => commits(state, &ask),
        ("GET", ["commits", reference]) => match state.commit_of(reference) {
            Some(commit) => Answer::json(200, &commit_json(state, &commit, "commit")),
            None => Answer::refused(422, &[]),
        },
        ("GET", ["compare", base_and_head]) => compare(state, base_and_head),
        ("GET", ["git", "commits", commit]) => match state.commits.contains_key(*commit) {
            true => Answer::json(200, &commit_json(state, commit, "git-commit")),
            false => Answer::not_found(),
        },
        ("GET", ["issues", number, "comments"]) => comments(state, number, &ask),
        ("POST", ["issues", number, "comments"]) => post(state, number, &exchange.body),
        ("PATCH", ["issues", "comments", id]) => patch(state, id, &exchange.body),
        ("DELETE", ["issues", "comments", id]) => delete(state, id),
        ("GET", ["pulls"]) => pulls(state, &ask),
        ("GET", ["pulls", number]) => {
            let pull = state.pulls.iter().find(|pull| pull.number.to_string() == *number);
            found(pull.map(|pull| pull_json(pull, "pull-request")))
        }
        ("GET", ["releases"]) => ask.page(state, state.releases.iter().map(release_json).collect(), None),
        ("GET", ["releases", "latest"]) => {
            let latest = state
                .releases
                .iter()
                .find(|release| !release.draft && !release.prerelease);
            found(latest.map(release_json))
        }
        _ => Answer::not_found(),
    }
}

fn found(body: Option<Value>) -> Answer {
    body.map_or_else(Answer::not_found, |body| Answer::json(200, &body))
}

fn permission(method: &str, path: &[&str]) -> Option<&'static str> {
    match (method, path.first()?) {
        (_, &"actions") => Some("actions: read"),
        ("GET", &"issues") => None,
        (_, &"issues") => Some("pull-requests: write"),
        _ => None,
    }
}

struct Question {
    query: Vec<(String, String)>,
    /// Without the query.
    url: String,
}

impl Question {
    fn get(&self, name: &str) -> Option<&str> {
        let pair = self.query.iter().find(|(each, _)| each == name);
        pair.map(|(_, value)| value.as_str())
    }

    /// One page of a list, with links to the others; `key` where the list is a part of the answer.
    fn page(&self, state: &State, entries: Vec<Value>, key: Option<&str>) -> Answer {
        let number = |name: &str| self.get(name).and_then(|text| text.parse::<usize>().ok());
        let size = number("per_page").unwrap_or(30).min(state.page_size);
        let page = number("page").unwrap_or(1);
        let total = entries.len();
        let listed: Vec<Value> = entries.into_iter().skip((page - 1) * size).take(size).collect();
        let body = match key {
            Some(key) => json!({ "total_count": total, key: listed }),
            None => Value::from(listed),
        };
        let mut answer = Answer::json(200, &body);
        let mut links = Vec::new();
        if page > 1 {
            links.push(format!("<{}?page={}>; rel=\"prev\"", self.url, page - 1));
        }
        if page * size < total {
            links.push(format!("<{}?page={}>; rel=\"next\"", self.url, page + 1));
            links.push(format!(
                "<{}?page={}>; rel=\"last\"",
                self.url,
                total.div_ceil(size)
            ));
        }
        if !links.is_empty() {
            answer.headers.push(("link".to_owned(), links.join(", ")));
        }
        answer
    }
}

fn repository_json(state: &State) -> Value {
    let said = json!({ "id": 1, "full_name": state.repository, "default_branch": state.default_branch });
    filled("full-repository", &said)
}

fn run<'s>(state: &'s State, id: &str) -> Option<&'s Run> {
    state.runs.iter().find(|run| run.id.to_string() == id)
}

fn run_json(state: &State, run: &Run) -> Value {
    let mut said = json!({
        "id": run.id, "run_number": run.id, "event": run.event,
        "status": run.status, "head_branch": run.head_branch, "created_at": run.created_at,
        "run_started_at": run.created_at, "path": format!(".github/workflows/{}", run.workflow),
        "html_url": format!("https://github.com/{}/actions/runs/{}", state.repository, run.id),
        "repository": { "id": 1, "full_name": state.repository },
        "head_repository": run.head_repository.map(|id| json!({ "id": id })),
    });
    if let Some(commit) = &run.head_sha {
        said["head_sha"] = commit.as_str().into();
    }
    filled("workflow-run", &said)
}

fn runs(state: &State, workflow: &str, ask: &Question) -> Answer {
    let is = |name: &str, value: Option<&str>| ask.get(name).is_none_or(|wanted| Some(wanted) == value);
    let since = ask
        .get("created")
        .and_then(|created| created.strip_prefix(">="))
        .unwrap_or("");
    let mut runs: Vec<&Run> = state.runs.iter().filter(|run| run.workflow == workflow).collect();
    if runs.is_empty() {
        return Answer::not_found();
    }
    runs.retain(|run| {
        is("branch", run.head_branch.as_deref())
            && is("event", Some(run.event))
            && is("status", Some(run.status))
            && is("head_sha", run.head_sha.as_deref())
            && run.created_at.as_str() >= since
    });
    runs.sort_by_key(|run| std::cmp::Reverse((run.created_at.clone(), run.id)));
    let runs = runs.into_iter().map(|run| run_json(state, run)).collect();
    ask.page(state, runs, Some("workflow_runs"))
}

fn artifacts(state: &State, run: &str, ask: &Question) -> Answer {
    let artifacts = state
        .artifacts
        .iter()
        .filter(|artifact| artifact.run.to_string() == run);
    let artifacts = artifacts.filter(|artifact| ask.get("name").is_none_or(|name| name == artifact.name));
    let artifacts = artifacts.map(artifact_json).collect();
    ask.page(state, artifacts, Some("artifacts"))
}

fn artifact_json(artifact: &Artifact) -> Value {
    let mut said = json!({
        "id": artifact.id, "name": artifact.name, "expired": artifact.expired, "created_at": artifact.created_at,
    });
    if let Some(digest) = &artifact.digest {
        said["digest"] = digest.as_str().into();
    }
    filled("artifact", &said)
}

fn location(state: &State, id: &str) -> Answer {
    let Some(artifact) = state
        .artifacts
        .iter()
        .find(|artifact| artifact.id.to_string() == id)
    else {
        return Answer::not_found();
    };
    if artifact.expired {
        return Answer::refused(410, &[]);
    }
    Answer {
        status: 302,
        headers: vec![(
            "location".to_owned(),
            format!("{}/blob/{id}?sig=signed", state.host),
        )],
        body: Vec::new(),
    }
}

/// Where artifacts are stored, which is not GitHub: it refuses whoever shows a token.
fn blob(state: &State, id: &str) -> Answer {
    let artifact = state
        .artifacts
        .iter()
        .find(|artifact| artifact.id.to_string() == id);
    match artifact.and_then(|artifact| artifact.bytes.clone()) {
        Some(body) => Answer {
            status: 200,
            headers: vec![("content-type".to_owned(), "application/zip".to_owned())],
            body,
        },
        None => Answer::refused(404, &[]),
    }
}

impl State {
    fn commit_of(&self, reference: &str) -> Option<String> {
        let tag = reference.strip_prefix("tags/").map(|tag| self.tags.get(tag));
        let found = match tag {
            Some(tag) => tag,
            None => self.branches.get(reference),
        };
        let commit = found.cloned().unwrap_or_else(|| reference.to_owned());
        self.commits.contains_key(&commit).then_some(commit)
    }

    /// A commit and all before it, nearest first.
    fn history(&self, commit: &str) -> Vec<String> {
        let mut history = vec![commit.to_owned()];
        let mut at = 0;
        while let Some(commit) = history.get(at) {
            let parents = self.commits.get(commit).cloned().unwrap_or_default();
            let new: Vec<String> = parents
                .into_iter()
                .filter(|parent| !history.contains(parent))
                .collect();
            history.extend(new);
            at += 1;
        }
        history
    }
}

fn commit_json(state: &State, commit: &str, shape: &str) -> Value {
    let parents: Vec<Value> = state.commits[commit]
        .iter()
        .map(|parent| match shape {
            "git-commit" => json!({ "sha": parent, "url": "", "html_url": "" }),
            _ => json!({ "sha": parent, "url": "" }),
        })
        .collect();
    filled(shape, &json!({ "sha": commit, "parents": parents }))
}

fn commits(state: &State, ask: &Question) -> Answer {
    let Some(commit) = ask.get("sha").and_then(|reference| state.commit_of(reference)) else {
        return Answer::not_found();
    };
    let history = state.history(&commit);
    let history = history
        .iter()
        .map(|commit| commit_json(state, commit, "commit"))
        .collect();
    ask.page(state, history, None)
}

fn compare(state: &State, base_and_head: &str) -> Answer {
    let ends = base_and_head.split_once("...");
    let commits = ends.and_then(|(base, head)| Some((state.commit_of(base)?, state.commit_of(head)?)));
    let base = commits.and_then(|(base, head)| {
        let of_head = state.history(&head);
        state
            .history(&base)
            .into_iter()
            .find(|commit| of_head.contains(commit))
    });
    found(base.map(|base| {
        let commit = commit_json(state, &base, "commit");
        filled(
            "commit-comparison",
            &json!({ "merge_base_commit": commit, "base_commit": commit }),
        )
    }))
}

fn comment_json(state: &State, comment: &Comment) -> Value {
    let url = format!(
        "https://github.com/{}/pull/{}#issuecomment-{}",
        state.repository, comment.pull, comment.id
    );
    // The user is null where the account has been deleted.
    let user = comment.author.as_deref().map(|login| json!({ "login": login }));
    filled(
        "issue-comment",
        &json!({ "id": comment.id, "body": comment.body, "html_url": url, "user": user }),
    )
}

fn comments(state: &State, number: &str, ask: &Question) -> Answer {
    let comments = state
        .comments
        .iter()
        .filter(|comment| comment.pull.to_string() == number);
    let mut comments: Vec<&Comment> = comments.collect();
    comments.sort_by_key(|comment| comment.id);
    let comments = comments
        .into_iter()
        .map(|comment| comment_json(state, comment))
        .collect();
    ask.page(state, comments, None)
}

fn body_of(state: &State, body: &Value) -> Result<String, Answer> {
    let text = body["body"].as_str().unwrap_or_default();
    match text.len() {
        0 => Err(Answer::refused(422, &[])),
        length if length > state.longest_comment => Err(Answer::refused(422, &[])),
        _ => Ok(text.to_owned()),
    }
}

fn post(state: &mut State, number: &str, body: &Value) -> Answer {
    let body = match body_of(state, body) {
        Ok(body) => body,
        Err(answer) => return answer,
    };
    let last = state
        .comments
        .iter()
        .map(|comment| comment.id)
        .max()
        .unwrap_or(100);
    let comment = Comment {
        id: last + 1,
        pull: number.parse().unwrap(),
        author: Some(state.login.clone()),
        body,
    };
    state.comments.push(comment.clone());
    Answer::json(201, &comment_json(state, &comment))
}

fn patch(state: &mut State, id: &str, body: &Value) -> Answer {
    let body = match body_of(state, body) {
        Ok(body) => body,
        Err(answer) => return answer,
    };
    let Some(comment) = state
        .comments
        .iter_mut()
        .find(|comment| comment.id.to_string() == id)
    else {
        return Answer::not_found();
    };
    comment.body = body;
    let comment = comment.clone();
    Answer::json(200, &comment_json(state, &comment))
}

fn delete(state: &mut State, id: &str) -> Answer {
    let before = state.comments.len();
    state.comments.retain(|comment| comment.id.to_string() != id);
    if state.comments.len() == before {
        return Answer::not_found();
    }
    Answer {
        status: 204,
        headers: Vec::new(),
        body: Vec::new(),
    }
}

fn pulls(state: &State, ask: &Question) -> Answer {
    let wanted = |pull: &&Pull| {
        let owner = pull.head_repository.and_then(|name| name.split('/').next());
        let head = format!("{}:{}", owner.unwrap_or("unknown"), pull.head_branch);
        ask.get("state").is_none_or(|state| state == pull.state)
            && ask.get("head").is_none_or(|wanted| wanted == head)
    };
    let pulls = state.pulls.iter().filter(wanted);
    let pulls = pulls.map(|pull| pull_json(pull, "pull-request-simple")).collect();
    ask.page(state, pulls, None)
}

fn pull_json(pull: &Pull, shape: &str) -> Value {
    let said = json!({
        "number": pull.number, "state": pull.state,
        "head": {
            "sha": pull.head_sha, "ref": pull.head_branch,
            "repo": pull.head_repository.map(|name| json!({ "full_name": name })),
        },
        "base": { "ref": pull.base_branch },
    });
    filled(shape, &said)
}

fn release_json(release: &Release) -> Value {
    let said = json!({ "tag_name": release.tag, "draft": release.draft, "prerelease": release.prerelease });
    filled("release", &said)
}
