//! `attempt`, settled.

use std::time::Duration;

use super::super::file::attempt::{
    Attempt, Exit, Json, Keep, Phases, Publish, Published, ResultFormat, Secret, Upload,
};
use super::super::file::shape::List;
use super::super::settings::{self, Given, Level};
use super::super::template::Template;
use super::super::value::{ExitStatus, FileGlob, Seconds, Span};
use super::super::{
    AttemptConfig, ConfigError, ExitConfig, Format, Grade, InfraConfig, KeepConfig, PhaseLimits,
    PublishConfig, PublishWhat, SecretConfig, UploadConfig,
};

const MINUTE: Duration = Duration::from_secs(60);

/// Settles how an attempt is made.
pub(super) fn settle(written: &Attempt, given: &Given) -> Result<AttemptConfig, ConfigError> {
    let timeout = match given.find(&settings::TIMEOUT) {
        Some(found) if found.level == Level::Flag => Some(found.read::<Span>()?.0),
        Some(found) => Some(found.read::<Seconds>()?.0),
        None => written.timeout.map(|span| span.0),
    };
    let infra = written.infra.clone().unwrap_or_default();
    Ok(AttemptConfig {
        upload: upload(written.upload.clone().unwrap_or_default()),
        setup: written.setup.clone().map(Into::into),
        boot: written.boot.clone().map(Into::into),
        command: written.command.clone().into(),
        produces: written.produces.unwrap_or_default(),
        result: written.result.clone().map(|path| path.0),
        format: format(written),
        exit: exit(written.exit.clone().unwrap_or_default()),
        infra: InfraConfig {
            exit: codes(infra.exit, &[]),
            error: infra
                .error
                .unwrap_or_default()
                .0
                .into_iter()
                .map(|pattern| pattern.0)
                .collect(),
        },
        keep: written.keep.clone().map(keep),
        publish: publish(written.publish.clone().unwrap_or_default()),
        timeout: timeout.unwrap_or(12 * MINUTE),
        grace: written.grace.map_or(5 * MINUTE, |span| span.0),
        phases: phases(written.phases.clone().unwrap_or_default()),
        env: written
            .env
            .clone()
            .into_iter()
            .flatten()
            .map(|(name, value)| (name.0, value.0))
            .collect(),
        env_from: written
            .env_from
            .clone()
            .unwrap_or_default()
            .0
            .into_iter()
            .map(|name| name.0)
            .collect(),
        secrets: written
            .secrets
            .clone()
            .unwrap_or_default()
            .0
            .iter()
            .map(secret)
            .collect(),
    })
}

/// Without a result to read, the exit code is all that there is.
fn format(written: &Attempt) -> Format {
    match (written.format, &written.result) {
        (Some(ResultFormat::ExitCode), _) | (None, None) => Format::ExitCode,
        (Some(ResultFormat::Evals), _) => Format::Evals,
        (Some(ResultFormat::Junit), _) => Format::Junit,
        (Some(ResultFormat::AgentEval), _) => Format::AgentEval,
        (Some(ResultFormat::Inspect), _) => Format::Inspect,
        (Some(ResultFormat::Harbor), _) => Format::Harbor,
        (Some(ResultFormat::Promptfoo), _) => Format::Promptfoo,
        (Some(ResultFormat::Json), _) => Format::Json(grade(written.json.clone().unwrap_or_default())),
        (Some(ResultFormat::Jsonl), _) => Format::Jsonl(match written.json.clone() {
            Some(json) if json.passed.is_some() || json.score.is_some() => grade(json),
            json => Grade {
                threshold: grade(json.unwrap_or_default()).threshold,
                ..Grade::of_rows()
            },
        }),
        (Some(ResultFormat::Auto) | None, _) => Format::Auto,
    }
}

fn grade(written: Json) -> Grade {
    Grade {
        passed: written.passed.map(|pointer| pointer.0),
        score: written.score.map(|pointer| pointer.0),
        threshold: written.threshold.map_or(1.0, |threshold| threshold.0),
    }
}

fn upload(written: Upload) -> UploadConfig {
    UploadConfig {
        git: written.git.unwrap_or(true),
        include: globs(written.include),
        exclude: globs(written.exclude),
    }
}

fn exit(written: Exit) -> ExitConfig {
    ExitConfig {
        pass: codes(written.pass, &[0]),
        fail: codes(written.fail, &[1]),
    }
}

fn codes(written: Option<List<ExitStatus>>, default: &[i32]) -> Vec<i32> {
    match written {
        Some(codes) => codes.0.into_iter().map(|code| code.0.cast_signed()).collect(),
        None => default.to_vec(),
    }
}

fn keep(written: Keep) -> KeepConfig {
    KeepConfig {
        path: written.path.0,
        exclude: globs(written.exclude),
        max_size: written.max_size.map_or(200 * bytesize::MB, |size| size.0),
    }
}

fn publish(written: Publish) -> PublishConfig {
    let (what, file) = match written.what {
        Some(Published::Representative) | None => (PublishWhat::Representative, "{eval}.json"),
        Some(Published::All) => (PublishWhat::All, "{eval}/run-{attempt}/result.json"),
    };
    let file = written.file.map_or_else(
        || Template::parse(file).expect("the default paths are templates"),
        |file| file.0,
    );
    PublishConfig { what, file }
}

fn phases(written: Phases) -> PhaseLimits {
    PhaseLimits {
        provision: written.provision.map_or(10 * MINUTE, |span| span.0),
        setup: written.setup.map_or(15 * MINUTE, |span| span.0),
        collect: written.collect.map_or(5 * MINUTE, |span| span.0),
    }
}

fn secret(written: &Secret) -> SecretConfig {
    SecretConfig {
        name: written.name().to_owned(),
        optional: written.is_optional(),
    }
}

fn globs(written: Option<List<FileGlob>>) -> Vec<String> {
    written
        .unwrap_or_default()
        .0
        .into_iter()
        .map(|glob| glob.0)
        .collect()
}
