//! How a sandbox comes by a revision where the service has not cloned it: after a warm boot, and for submodules.

use reqwest::Url;

use super::client::Client;
use super::create::Repository;
use super::error::VercelError;
use super::script::Script;
use super::session::Session;
use crate::sandbox::SandboxError;

/// The password is in the environment alone, and is told to the repository's own host alone.
const CHECKOUT: &str = r#"
url=$1; revision=$2; host=$3; fetches=$4; submodules=$5
answer='!f() { test "$1" = get && printf "username=%s\npassword=%s\n" "$EVALWAVE_GIT_USERNAME" "$EVALWAVE_GIT_PASSWORD"; }; f'
export GIT_TERMINAL_PROMPT=0
ask() {
  if [ -n "$EVALWAVE_GIT_PASSWORD" ]; then
    git -c credential.helper= -c "credential.$host.helper=$answer" "$@"
  else
    git "$@"
  fi
}
if [ "$fetches" = 1 ]; then
  [ -d .git ] || git init -q . || exit 1
  ask fetch -q --depth 1 --no-tags "$url" "$revision" || exit 1
  git checkout -q -f --detach FETCH_HEAD || exit 1
fi
if [ "$submodules" = 1 ]; then
  ask submodule update -q --init --recursive --depth 1 --force || exit 1
fi
"#;

/// Brings a machine's files to the revision, where its creation has not.
pub(super) async fn check_out(
    client: &Client,
    session: &Session,
    repository: &Repository,
    is_warm: bool,
    submodules: bool,
) -> Result<(), SandboxError> {
    let Some((script, env)) = script(repository, is_warm, submodules) else {
        return Ok(());
    };
    let what = "check the revision out in the sandbox";
    let printed = session
        .at_top()
        .script(client, what, &script, &env, false)
        .await
        .map_err(VercelError::in_sandbox)?;
    match printed.code {
        0 => Ok(()),
        _ => Err(SandboxError::new(format!("cannot {what}: {}", printed.why()))),
    }
}

/// The script and its environment; `None` where there is nothing to do.
fn script(
    repository: &Repository,
    is_warm: bool,
    submodules: bool,
) -> Option<(Script, Vec<(String, String)>)> {
    if !is_warm && !submodules {
        return None;
    }
    let host = Url::parse(&repository.url)
        .ok()
        .map(|url| url.origin().ascii_serialization());
    let flag = |is: bool| u8::from(is).to_string();
    let args = [
        repository.url.clone(),
        repository.revision.clone(),
        host.unwrap_or_default(),
        flag(is_warm),
        flag(submodules),
    ];
    let env = repository.login.iter().flat_map(|(username, password)| {
        [
            ("EVALWAVE_GIT_USERNAME".to_owned(), username.clone()),
            ("EVALWAVE_GIT_PASSWORD".to_owned(), password.clone()),
        ]
    });
    Some((Script::plain(CHECKOUT, args), env.collect()))
}

#[cfg(test)]
mod tests {
    use camino::Utf8PathBuf;

    use super::script;
    use crate::sandbox::vercel::Repository;

    #[test]
    fn a_password_is_in_the_environment_and_never_an_argument() {
        let repository = Repository {
            url: "https://github.com/o/r.git".to_owned(),
            revision: "abc".to_owned(),
            directory: Utf8PathBuf::new(),
            login: Some(("x-access-token".to_owned(), "s3cret-token".to_owned())),
        };
        assert!(script(&repository, false, false).is_none());
        let (script, env) = script(&repository, true, false).unwrap();
        assert!(!script.args.join(" ").contains("s3cret-token"));
        assert_eq!(script.args[5], "https://github.com");
        assert!(env.iter().any(|(_, value)| value == "s3cret-token"));
        assert!(!format!("{repository:?}").contains("s3cret"));
    }
}
