//! Credentials of registries, found as docker itself finds them: in its configuration, or with the programs that it
//! names there.

use std::collections::HashMap;
use std::process::Stdio;

use base64::Engine as _;
use bollard::auth::DockerCredentials;
use serde::Deserialize;
use tokio::io::AsyncWriteExt as _;

use super::connection::DockerEngine;
use crate::sandbox::SandboxError;

/// What docker calls its own registry.
const DOCKER_HUB: &str = "https://index.docker.io/v1/";

/// Docker's configuration, as far as it is about registries.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Configuration {
    auths: HashMap<String, Login>,
    cred_helpers: HashMap<String, String>,
    creds_store: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "lowercase")]
struct Login {
    auth: Option<String>,
    username: Option<String>,
    password: Option<String>,
    identitytoken: Option<String>,
}

/// What a credential helper answers.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Answer {
    username: String,
    secret: String,
}

/// The credentials for the registry of an image, where there are any.
pub(super) async fn of_image(
    engine: &DockerEngine,
    image: &str,
) -> Result<Option<DockerCredentials>, SandboxError> {
    let configuration = read(engine)?;
    of_registry(engine, &configuration, registry(image)).await
}

/// The credentials for every registry that the configuration names: a build may need any of them.
pub(super) async fn of_all(
    engine: &DockerEngine,
) -> Result<HashMap<String, DockerCredentials>, SandboxError> {
    let configuration = read(engine)?;
    let mut all = HashMap::new();
    for registry in configuration
        .auths
        .keys()
        .chain(configuration.cred_helpers.keys())
    {
        if let Some(found) = of_registry(engine, &configuration, registry).await? {
            all.insert(registry.clone(), found);
        }
    }
    Ok(all)
}

fn read(engine: &DockerEngine) -> Result<Configuration, SandboxError> {
    let Some(directory) = &engine.configuration else {
        return Ok(Configuration::default());
    };
    let path = directory.join("config.json");
    let bytes = match fs_err::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Configuration::default()),
        Err(error) => return Err(SandboxError::io("cannot read docker's configuration", error)),
    };
    serde_json::from_slice(&bytes).map_err(|error| {
        SandboxError::new(format!(
            "cannot read docker's configuration `{path}`: it is not JSON as docker writes it (line {})",
            error.line()
        ))
    })
}

/// The registry in an image's name, as docker's configuration writes it.
fn registry(image: &str) -> &str {
    match image.split_once('/') {
        Some((first, _)) if first.contains(['.', ':']) || first == "localhost" => match first {
            "docker.io" | "index.docker.io" => DOCKER_HUB,
            other => other,
        },
        _ => DOCKER_HUB,
    }
}

async fn of_registry(
    engine: &DockerEngine,
    configuration: &Configuration,
    registry: &str,
) -> Result<Option<DockerCredentials>, SandboxError> {
    let helper = configuration
        .cred_helpers
        .get(registry)
        .or(configuration.creds_store.as_ref());
    if let Some(helper) = helper {
        return ask(engine, helper, registry).await;
    }
    // Old versions of docker wrote addresses rather than names.
    let bare = |text: &str| {
        let text = text.trim_start_matches("https://").trim_start_matches("http://");
        text.trim_end_matches('/').to_owned()
    };
    let login = configuration.auths.get(registry).or_else(|| {
        let same = |(name, _): &(&String, &Login)| bare(name) == bare(registry);
        configuration.auths.iter().find(same).map(|(_, login)| login)
    });
    Ok(login.and_then(|login| credentials(login, registry)))
}

fn credentials(login: &Login, registry: &str) -> Option<DockerCredentials> {
    let decoded = login
        .auth
        .as_ref()
        .and_then(|auth| base64::engine::general_purpose::STANDARD.decode(auth.trim()).ok())
        .and_then(|bytes| String::from_utf8(bytes).ok());
    let pair = decoded.as_ref().and_then(|text| text.split_once(':'));
    let username = login
        .username
        .clone()
        .or_else(|| pair.map(|(name, _)| name.to_owned()));
    let password = login
        .password
        .clone()
        .or_else(|| pair.map(|(_, password)| password.trim_end_matches('\0').to_owned()));
    if username.is_none() && login.identitytoken.is_none() {
        return None;
    }
    Some(DockerCredentials {
        username,
        password,
        identitytoken: login.identitytoken.clone(),
        serveraddress: Some(registry.to_owned()),
        ..DockerCredentials::default()
    })
}

/// Asks the program `docker-credential-<helper>`.
#[expect(
    clippy::disallowed_methods,
    reason = "credentials are where docker's own helper keeps them"
)]
async fn ask(
    engine: &DockerEngine,
    helper: &str,
    registry: &str,
) -> Result<Option<DockerCredentials>, SandboxError> {
    let program = format!("docker-credential-{helper}");
    let cannot = |error| {
        SandboxError::io(
            format!("cannot ask `{program}` for credentials of `{registry}`"),
            error,
        )
    };
    if helper.contains(['/', '\\']) {
        return Err(SandboxError::new(format!(
            "cannot use the credential helper `{helper}`: it is no name"
        )));
    }
    let mut command = tokio::process::Command::new(&program);
    if let Some(path) = &engine.path {
        command.env("PATH", path);
    }
    let mut child = command
        .arg("get")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .map_err(cannot)?;
    if let Some(mut input) = child.stdin.take() {
        input.write_all(registry.as_bytes()).await.map_err(cannot)?;
    }
    let answer = child.wait_with_output().await.map_err(cannot)?;
    if !answer.status.success() {
        // It knows of none: the image may be public.
        return Ok(None);
    }
    let Ok(Answer { username, secret }) = serde_json::from_slice(&answer.stdout) else {
        return Err(SandboxError::new(format!(
            "cannot use the credentials of `{registry}`: `{program}` did not answer as docker expects"
        )));
    };
    let is_token = username == "<token>";
    Ok(Some(DockerCredentials {
        identitytoken: is_token.then(|| secret.clone()),
        username: (!is_token).then_some(username),
        password: (!is_token).then_some(secret),
        serveraddress: Some(registry.to_owned()),
        ..DockerCredentials::default()
    }))
}

#[cfg(test)]
mod tests {
    use super::{Configuration, DOCKER_HUB, of_registry, registry};
    use crate::sandbox::docker::DockerEngine;

    #[test]
    fn the_registry_is_the_first_part_of_a_name_that_looks_like_a_host() {
        for (image, expected) in [
            ("node:24", DOCKER_HUB),
            ("library/node", DOCKER_HUB),
            ("docker.io/library/node", DOCKER_HUB),
            ("ghcr.io/owner/image:tag", "ghcr.io"),
            ("localhost/image", "localhost"),
            ("registry:5000/image", "registry:5000"),
        ] {
            assert_eq!(registry(image), expected, "{image}");
        }
    }

    #[tokio::test]
    async fn logins_are_read_as_docker_writes_them() {
        let text = r#"{"auths": {"https://index.docker.io/v1/": {"auth": "bWU6cGFzczp3b3Jk"},
            "https://ghcr.io": {"username": "me", "password": "x"}, "quay.io": {}}, "HttpHeaders": {}}"#;
        let configuration: Configuration = serde_json::from_str(text).unwrap();
        let engine = DockerEngine::default();
        let found = async |registry| of_registry(&engine, &configuration, registry).await.unwrap();
        let hub = found(DOCKER_HUB).await.unwrap();
        assert_eq!(
            (hub.username.as_deref(), hub.password.as_deref()),
            (Some("me"), Some("pass:word"))
        );
        assert_eq!(found("ghcr.io").await.unwrap().password.as_deref(), Some("x"));
        assert_eq!(found("quay.io").await, None);
        assert_eq!(found("elsewhere.example").await, None);
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_helper_is_asked_as_docker_asks_it() {
        use std::os::unix::fs::PermissionsExt as _;

        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("docker-credential-test");
        let script = "#!/bin/sh\nread -r registry\n[ \"$1 $registry\" = 'get quay.io' ] || exit 1\necho '{\"Username\": \"<token>\", \"Secret\": \"t\"}'\n";
        fs_err::write(&program, script).unwrap();
        fs_err::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let engine = DockerEngine {
            path: Some(format!("{}:/usr/bin:/bin", directory.path().display())),
            ..DockerEngine::default()
        };
        let configuration: Configuration =
            serde_json::from_str(r#"{"credHelpers": {"quay.io": "test", "ghcr.io": "test"}}"#).unwrap();
        let found = of_registry(&engine, &configuration, "quay.io")
            .await
            .unwrap()
            .unwrap();
        assert_eq!(
            (found.identitytoken.as_deref(), found.username),
            (Some("t"), None)
        );
        assert_eq!(
            of_registry(&engine, &configuration, "ghcr.io").await.unwrap(),
            None
        );
    }
}
