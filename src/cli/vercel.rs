//! What sandboxes of Vercel need of this process: who asks, this repository, and what is in the network policy's
//! placeholders. Asks the service nothing itself.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::anyhow;
use camino::Utf8Path;
use serde_json::Value;

use super::Failure;
use super::context::{Context, Shared};
use crate::config::{VercelConfig, VercelFiles, VercelLimits, VercelPolicy};
use crate::model::Whereabouts;
use crate::runner::Job;
use crate::sandbox::vercel::{Account, Credentials, Repository, VercelBackend};
use crate::{catalog, git};

const TOKEN: &str = "VERCEL_TOKEN";
const TEAM: &str = "VERCEL_TEAM_ID";
const PROJECT: &str = "VERCEL_PROJECT_ID";

/// Where the API is, by its owner's own names, and where on this machine something may stand for it.
const KNOWN: [&str; 5] = [
    "https://vercel.com/",
    "https://api.vercel.com/",
    "http://127.0.0.1:",
    "http://[::1]:",
    "http://localhost:",
];

/// The variables that are needed and not there.
pub(super) fn missing(config: &VercelConfig, context: &Context) -> Vec<String> {
    let placeholders = placeholders(config);
    let needed = [TOKEN, TEAM, PROJECT]
        .into_iter()
        .chain(placeholders.iter().map(String::as_str));
    needed
        .filter(|name| context.variable(name).is_none())
        .map(str::to_owned)
        .collect()
}

/// Finds an address that no token may be sent to, and credentials that cannot be sent.
pub(super) fn check(config: &VercelConfig, context: &Context) -> Result<(), Failure> {
    account(config, context).map(drop)
}

/// What must not be seen in anything that is kept.
pub(super) fn hidden(config: &VercelConfig, context: &Context) -> Vec<String> {
    let placeholders = placeholders(config);
    let names = [TOKEN, "GITHUB_TOKEN"]
        .into_iter()
        .chain(placeholders.iter().map(String::as_str));
    names
        .filter_map(|name| context.variable(name))
        .map(str::to_owned)
        .collect()
}

/// The engine for a run; `root` is the configuration's.
pub(super) fn backend(
    config: &VercelConfig,
    job: &Job,
    root: &Utf8Path,
    context: &Context,
) -> Result<VercelBackend, Failure> {
    let config = VercelConfig {
        network_policy: config
            .network_policy
            .as_ref()
            .map(|policy| filled(policy, context)),
        // The revision that is given is this one's, not the base's beside it.
        revision: config.revision.clone().filter(|_| job.workspace.root == root),
        ..config.clone()
    };
    let repository = match config.source {
        VercelFiles::Repository => Some(repository(&config, &job.workspace.root, context)?),
        VercelFiles::Upload => None,
    };
    let account = account(&config, context)?;
    Ok(VercelBackend::new(&config, account, repository, job.started_at))
}

/// What deletes the sandboxes of a run that is over. A file says where they are, and must not have a token sent anywhere.
pub(super) fn reaper(whereabouts: &Whereabouts, context: &Context) -> Result<Account, Failure> {
    let Whereabouts::Vercel {
        base_url,
        team_id,
        project_id,
    } = whereabouts
    else {
        return Err(anyhow!("these sandboxes are not at Vercel").into());
    };
    let given = context
        .variable("EVALWAVE_VERCEL_API")
        .map(|url| url.trim_end_matches('/'));
    let whole = format!("{base_url}/");
    let is_known = KNOWN.iter().any(|known| whole.starts_with(known)) || given == Some(base_url);
    if !is_known {
        return Err(anyhow!(
            "the run was made at `{base_url}`, which is not Vercel's own address\nif the token may be sent there, set `EVALWAVE_VERCEL_API={base_url}`"
        )
        .into());
    }
    let token = context
        .variable(TOKEN)
        .ok_or_else(|| anyhow!("missing in the environment: `{TOKEN}`"))?;
    let credentials = Credentials {
        token: token.to_owned(),
        team_id: team_id.clone(),
        project_id: project_id.clone(),
    };
    Ok(Account::new(base_url, VercelLimits::default(), &credentials, 0)?)
}

/// One for the whole process: what may be asked is the account's, however many engines ask.
fn account(config: &VercelConfig, context: &Context) -> Result<Arc<Account>, Failure> {
    let Shared { vercel } = &context.shared;
    if let Some(account) = vercel.get() {
        return Ok(Arc::clone(account));
    }
    let variable = |name: &str| context.variable(name).unwrap_or_default().to_owned();
    let credentials = Credentials {
        token: variable(TOKEN),
        team_id: variable(TEAM),
        project_id: variable(PROJECT),
    };
    let seed = super::context::random();
    let account = Account::new(&config.base_url, config.limits, &credentials, seed)?;
    Ok(Arc::clone(vercel.get_or_init(|| Arc::new(account))))
}

/// This repository, as a machine elsewhere fetches it.
fn repository(config: &VercelConfig, root: &Utf8Path, context: &Context) -> Result<Repository, Failure> {
    let help = "set `sandbox.source: upload` to send files instead";
    let server = context.variable("GITHUB_SERVER_URL");
    let here = server.zip(context.variable("GITHUB_REPOSITORY"));
    let url = match here {
        Some((server, name)) => Some(format!("{server}/{name}.git")),
        None => git::command(root, &["remote", "get-url", "origin"])
            .output()
            .ok()
            .filter(|output| output.status.success())
            .and_then(|output| fetchable(String::from_utf8_lossy(&output.stdout).trim())),
    };
    let url = url.ok_or_else(|| {
        anyhow!("cannot tell where sandboxes fetch this repository from: it has no remote `origin` with an `https` address\n{help}")
    })?;
    let revision = config.revision.clone().or_else(|| catalog::commit(root));
    let revision = revision
        .ok_or_else(|| anyhow!("cannot tell which revision sandboxes fetch: nothing is committed\n{help}"))?;
    // The token is the server's own, and nobody else's.
    let host = server.unwrap_or("https://github.com");
    let token = context.variable("GITHUB_TOKEN").or_else(|| {
        let input = context.inputs.iter().find(|(name, _)| name == "github-token");
        input
            .map(|(_, token)| token.trim())
            .filter(|token| !token.is_empty())
    });
    let login = token.filter(|_| url.starts_with(&format!("{host}/")));
    let directory = git::command(root, &["rev-parse", "--show-prefix"])
        .output()
        .ok()
        .filter(|output| output.status.success());
    let directory = directory.map(|output| String::from_utf8_lossy(&output.stdout).trim_end().to_owned());
    Ok(Repository {
        url,
        revision,
        directory: directory.unwrap_or_default().trim_end_matches('/').into(),
        login: login.map(|token| ("x-access-token".to_owned(), token.to_owned())),
    })
}

/// The address of a remote as everybody can fetch it, without anybody's password.
fn fetchable(remote: &str) -> Option<String> {
    let (host, path) = match remote.split_once("://") {
        Some(("https" | "ssh", rest)) => rest.split_once('/')?,
        Some(_) => return None,
        // `git@host:path`; a path of this machine has no host.
        None => remote.split_once(':').filter(|(host, _)| host.contains('@'))?,
    };
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    let host = match remote.starts_with("ssh://") {
        true => host.split(':').next().unwrap_or(host),
        false => host,
    };
    (!host.is_empty() && !path.is_empty()).then(|| format!("https://{host}/{path}"))
}

/// The variables that the rules of a network policy name, as `${NAME}`.
fn placeholders(config: &VercelConfig) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    if let Some(VercelPolicy::Rules(rules)) = &config.network_policy {
        let _ = each_text(rules, &mut |text| {
            let mut rest = text;
            while let Some((_, name, after)) = placeholder(rest) {
                names.insert(name.to_owned());
                rest = after;
            }
            text.to_owned()
        });
    }
    names
}

fn filled(policy: &VercelPolicy, context: &Context) -> VercelPolicy {
    match policy {
        VercelPolicy::Named(name) => VercelPolicy::Named(name.clone()),
        VercelPolicy::Rules(rules) => VercelPolicy::Rules(each_text(rules, &mut |text| {
            let mut filled = String::new();
            let mut rest = text;
            while let Some((before, name, after)) = placeholder(rest) {
                filled += before;
                filled += context.variable(name).unwrap_or_default();
                rest = after;
            }
            filled + rest
        })),
    }
}

/// The first placeholder: what is before it, its name, what is after it.
fn placeholder(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once("${")?;
    let (name, after) = rest.split_once('}')?;
    Some((before, name, after))
}

/// The same with every text made anew.
fn each_text(value: &Value, make: &mut dyn FnMut(&str) -> String) -> Value {
    match value {
        Value::String(text) => Value::String(make(text)),
        Value::Array(items) => items.iter().map(|item| each_text(item, make)).collect(),
        Value::Object(entries) => entries
            .iter()
            .map(|(key, item)| (key.clone(), each_text(item, make)))
            .collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{each_text, fetchable, placeholder};

    #[test]
    fn a_remote_is_fetched_over_https_without_a_password() {
        for (remote, url) in [
            ("git@github.com:o/r.git", Some("https://github.com/o/r.git")),
            (
                "ssh://git@github.com:22/o/r.git",
                Some("https://github.com/o/r.git"),
            ),
            ("https://user:pass@github.com/o/r", Some("https://github.com/o/r")),
            ("https://github.com:8443/o/r", Some("https://github.com:8443/o/r")),
            ("/home/me/r", None),
            ("C:/r", None),
            ("file:///r", None),
        ] {
            assert_eq!(fetchable(remote).as_deref(), url, "{remote}");
        }
    }

    #[test]
    fn placeholders_are_found_wherever_a_text_is() {
        assert_eq!(placeholder("Bearer ${A}!"), Some(("Bearer ", "A", "!")));
        assert_eq!(placeholder("$A {B}"), None);
        let rules = json!({ "allow": { "api.example": [{ "transform": [{ "headers": { "x": "${K}" } }] }] }, "n": 1 });
        let filled = each_text(&rules, &mut |text| text.replace("${K}", "v"));
        assert_eq!(
            filled["allow"]["api.example"][0]["transform"][0]["headers"]["x"],
            "v"
        );
        assert_eq!(filled["n"], 1);
    }
}
