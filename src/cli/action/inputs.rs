//! The inputs that are no part of the configuration, each read once.

use anyhow::anyhow;
use camino::Utf8PathBuf;

use crate::cli::Failure;
use crate::cli::context::Context;
use crate::config::settings::{self, Given, Setting};
use crate::github::event::is_sha;
use crate::plan::Shard;

/// What the action is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Command {
    Action,
    Merge,
    Compare,
    Comment,
    Install,
    Snapshot,
}

/// The commit of a pull request that a maintainer has read and wants to be measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Approved {
    pub(super) pull_request: u64,
    pub(super) head: String,
}

pub(super) struct Inputs {
    pub(super) command: Command,
    pub(super) config: Option<Utf8PathBuf>,
    pub(super) shard: Option<Shard>,
    pub(super) changed_only: bool,
    /// The baseline is an input, rather than a key of the configuration.
    pub(super) names_baseline: bool,
    pub(super) output_dir: Option<Utf8PathBuf>,
    pub(super) artifact: Option<String>,
    pub(super) approved: Option<Approved>,
    pub(super) token: Option<String>,
    pub(super) accepts_untrusted: bool,
    /// All of them, for the configuration.
    pub(super) given: Given,
}

impl Inputs {
    pub(super) fn read(context: &Context) -> Result<Self, Failure> {
        let given = Given::new([], context.inputs.clone(), context.environment.clone());
        let text = |setting: &Setting| Ok::<_, Failure>(given.text(setting)?.map(str::to_owned));
        let shard = given
            .text(&settings::SHARD)?
            .map(str::parse::<Shard>)
            .transpose()?;
        Ok(Self {
            command: command(given.text(&settings::COMMAND)?)?,
            config: text(&settings::CONFIG)?.map(Utf8PathBuf::from),
            shard,
            changed_only: given.truth(&settings::CHANGED)?,
            names_baseline: given.text(&settings::BASELINE)?.is_some(),
            output_dir: text(&settings::OUTPUT_DIR)?.map(Utf8PathBuf::from),
            artifact: given.text(&settings::ARTIFACT)?.map(artifact).transpose()?,
            approved: approved(
                given.text(&settings::PULL_REQUEST)?,
                given.text(&settings::HEAD_SHA)?,
            )?,
            token: text(&settings::GITHUB_TOKEN)?,
            accepts_untrusted: given.truth(&settings::ACCEPT_UNTRUSTED)?,
            given,
        })
    }
}

fn command(text: Option<&str>) -> Result<Command, Failure> {
    match text.unwrap_or("action") {
        "action" => Ok(Command::Action),
        "merge" => Ok(Command::Merge),
        "compare" => Ok(Command::Compare),
        "comment" => Ok(Command::Comment),
        "install" => Ok(Command::Install),
        "snapshot" => Ok(Command::Snapshot),
        other => Err(anyhow!(
            "input `command`: expected `action`, `merge`, `compare`, `comment`, `install` or `snapshot`, found {other:?}"
        )
        .into()),
    }
}

fn approved(number: Option<&str>, head: Option<&str>) -> Result<Option<Approved>, Failure> {
    let (number, head) = match (number, head) {
        (None, None) => return Ok(None),
        (Some(number), Some(head)) => (number, head),
        (Some(_), None) => {
            return Err(anyhow!(
                "input `pull-request`: expected `head-sha` beside it, the commit that was read and found harmless"
            )
            .into());
        }
        (None, Some(_)) => return Err(anyhow!("input `head-sha`: expected `pull-request` beside it").into()),
    };
    let wrong = |input: &str, expected: &str, found: &str| {
        anyhow!("input `{input}`: expected {expected}, found {found:?}")
    };
    let pull_request = number
        .parse()
        .map_err(|_| wrong("pull-request", "a number", number))?;
    if !is_sha(head) {
        return Err(wrong("head-sha", "a whole commit, 40 hexadecimal digits", head).into());
    }
    Ok(Some(Approved {
        pull_request,
        head: head.to_ascii_lowercase(),
    }))
}

/// What can be the name of an artifact on every system.
fn artifact(name: &str) -> Result<String, Failure> {
    let forbidden = |character: char| character.is_control() || "\":<>|*?\\/".contains(character);
    match name.contains(forbidden) {
        true => Err(anyhow!(
            "input `artifact`: expected a name without any of \" : < > | * ? \\ /, found {name:?}"
        )
        .into()),
        false => Ok(name.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::{Approved, Command, approved, artifact, command};

    const SHA: &str = "0123456789abcdef0123456789ABCDEF01234567";

    #[test]
    fn a_command_is_one_of_six() {
        assert_eq!(command(None).unwrap(), Command::Action);
        assert_eq!(command(Some("comment")).unwrap(), Command::Comment);
        assert_eq!(command(Some("merge")).unwrap(), Command::Merge);
        assert_eq!(command(Some("snapshot")).unwrap(), Command::Snapshot);
        let error = command(Some("rm -rf")).unwrap_err().error.to_string();
        assert_eq!(
            error,
            "input `command`: expected `action`, `merge`, `compare`, `comment`, `install` or `snapshot`, found \"rm -rf\""
        );
    }

    #[test]
    fn a_commit_is_approved_whole_and_for_one_pull_request() {
        let found = approved(Some("12"), Some(SHA)).unwrap();
        let head = SHA.to_ascii_lowercase();
        assert_eq!(
            found,
            Some(Approved {
                pull_request: 12,
                head
            })
        );
        assert_eq!(approved(None, None).unwrap(), None);
        for (number, head) in [
            (Some("12"), None),
            (None, Some(SHA)),
            (Some("-1"), Some(SHA)),
            (Some("12"), Some("main")),
            (Some("12"), Some(&SHA[..7])),
        ] {
            assert!(approved(number, head).is_err(), "{number:?} {head:?}");
        }
    }

    #[test]
    fn an_artifact_has_a_name_that_every_system_can_store() {
        assert!(artifact("evals nightly").is_ok());
        assert!(artifact("a/b").is_err());
    }
}
