//! `sandbox`, settled.

use super::super::file::sandbox::{
    CommandEngine, Docker, DockerBuild, Home, Kind, Landlock, Local, Network, NetworkPolicy, Sandbox, Vercel,
    VercelLimits as WrittenLimits, VercelSource, Workspace,
};
use super::super::settings::{self, Found, Given};
use super::super::value::{FromText, Refusal, Text, Whole};
use super::super::{
    CommandConfig, ConfigError, DockerConfig, DockerImage, DockerMount, HomeMode, LandlockMode, LocalConfig,
    NetworkMode, SandboxConfig, VercelBase, VercelConfig, VercelFiles, VercelLimits, VercelPolicy,
    WorkspaceMode,
};

/// Where the API of Vercel is.
const VERCEL_API: &str = "https://vercel.com/api";

/// Memory that an attempt is reckoned to take where nothing is said.
const MEMORY_PER_ATTEMPT: u64 = 256 * bytesize::MB;

/// Settles where attempts run. A kind that is given outside the file and is not the file's overrules all its keys.
pub(super) fn settle(
    written: Option<Sandbox>,
    given: Option<Found<'_>>,
) -> Result<SandboxConfig, ConfigError> {
    let Some(given) = given else {
        return Ok(config(written.unwrap_or(Sandbox::Local(Local::default()))));
    };
    let kind = given.read::<Kind>()?;
    match written {
        Some(written) if written.kind() == kind => Ok(config(written)),
        _ => match kind {
            Kind::Local => Ok(config(Sandbox::Local(Local::default()))),
            Kind::Vercel => Ok(config(Sandbox::Vercel(Box::default()))),
            Kind::Docker | Kind::Command => Err(given.wrong(&format!(
                "expected a kind that needs no more keys, or the configuration's own, found `{name}`\nwrite `kind: {name}` with its keys below `sandbox`",
                name = kind.name()
            ))),
        },
    }
}

/// What is given outside the file for sandboxes of Vercel alone.
pub(super) fn settle_vercel(sandbox: &mut SandboxConfig, given: &Given) -> Result<(), ConfigError> {
    let kind = sandbox.kind();
    let only = |found: Found<'_>, key: &str, here: &str| {
        Err(found.wrong(&format!(
            "it means something for `{key}` alone, found `{here}`\nleave it out, or change that"
        )))
    };
    for setting in [&settings::SNAPSHOT_ID, &settings::REVISION] {
        let Some(found) = given.find(setting) else {
            continue;
        };
        let SandboxConfig::Vercel(vercel) = sandbox else {
            return only(found, "sandbox.kind: vercel", kind);
        };
        if setting == &settings::SNAPSHOT_ID {
            vercel.snapshot_id = Some(found.read::<Text>()?.0);
        } else if vercel.source == VercelFiles::Repository {
            vercel.revision = Some(found.read::<Revision>()?.0);
        } else {
            return only(found, "sandbox.source: repository", "upload");
        }
    }
    Ok(())
}

/// A commit, branch or tag.
struct Revision(String);

impl FromText for Revision {
    const EXPECTED: &'static str = "a commit, branch or tag";

    fn from_text(text: &str) -> Result<Self, Refusal> {
        let is_plain = !text.starts_with('-')
            && !text.contains(|char: char| char.is_control() || " ~^:?*[\\".contains(char));
        is_plain.then(|| Self(text.to_owned())).ok_or(Refusal::Unlike)
    }
}

fn config(written: Sandbox) -> SandboxConfig {
    match written {
        Sandbox::Local(written) => SandboxConfig::Local(local(written)),
        Sandbox::Docker(written) => SandboxConfig::Docker(docker(written)),
        Sandbox::Vercel(written) => SandboxConfig::Vercel(vercel(*written)),
        Sandbox::Command(written) => SandboxConfig::Command(command(written)),
    }
}

fn local(written: Local) -> LocalConfig {
    LocalConfig {
        workspace: match written.workspace {
            Some(Workspace::Copy) | None => WorkspaceMode::Copy,
            Some(Workspace::Overlay) => WorkspaceMode::Overlay,
            Some(Workspace::Worktree) => WorkspaceMode::Worktree,
            Some(Workspace::Shared) => WorkspaceMode::Shared,
        },
        link: written
            .link
            .unwrap_or_default()
            .0
            .into_iter()
            .map(|path| path.0)
            .collect(),
        home: match written.home {
            Some(Home::Private) | None => HomeMode::Private,
            Some(Home::Inherit) => HomeMode::Inherit,
        },
        landlock: match written.landlock {
            Some(Landlock::Auto) | None => LandlockMode::Auto,
            Some(Landlock::Off) => LandlockMode::Off,
        },
        network: match written.network {
            Some(Network::Inherit) | None => NetworkMode::Inherit,
            Some(Network::None) => NetworkMode::None,
        },
        memory_per_attempt: written
            .memory_per_attempt
            .map_or(MEMORY_PER_ATTEMPT, |size| size.0),
    }
}

fn docker(written: Docker) -> DockerConfig {
    let image = match written.image {
        Some(image) => DockerImage::Named(image.0.trim().to_owned()),
        None => build(written.build.unwrap_or_default()),
    };
    let mounts = written.mounts.unwrap_or_default().0.into_iter();
    DockerConfig {
        image,
        memory: written.memory.map(|size| size.0),
        memory_per_attempt: written
            .memory_per_attempt
            .or(written.memory)
            .map_or(MEMORY_PER_ATTEMPT, |size| size.0),
        cpus: written.cpus.map(|cpus| cpus.0),
        pids: written.pids.map(|pids| u64::from(pids.0)),
        network: written
            .network
            .map_or_else(|| "bridge".to_owned(), |network| network.0),
        user: written.user.map(|user| user.0),
        mounts: mounts
            .map(|mount| DockerMount {
                source: mount.source,
                target: mount.target,
                read_only: mount.read_only,
            })
            .collect(),
        init: written.init.unwrap_or_default(),
        read_only: written.read_only.unwrap_or_default(),
        privileged: written.privileged.unwrap_or_default(),
        platform: written.platform.map(|platform| platform.0),
        warm: written.warm.unwrap_or_default(),
    }
}

fn build(written: DockerBuild) -> DockerImage {
    DockerImage::Built {
        context: written.context.map(|path| path.0).unwrap_or_default(),
        dockerfile: written
            .dockerfile
            .map_or_else(|| "Dockerfile".into(), |path| path.0),
    }
}

fn vercel(written: Vercel) -> VercelConfig {
    VercelConfig {
        vcpus: written.vcpus.map_or(2, |vcpus| vcpus.0),
        base: match (written.image, written.runtime) {
            (Some(image), _) => VercelBase::Image(image.0),
            (None, Some(runtime)) => VercelBase::Runtime(runtime.0),
            (None, None) => VercelBase::Runtime("node24".to_owned()),
        },
        source: match written.source {
            Some(VercelSource::Repository) | None => VercelFiles::Repository,
            Some(VercelSource::Upload) => VercelFiles::Upload,
        },
        revision: None,
        submodules: written.submodules.unwrap_or_default(),
        timeout: written.timeout.map(|span| span.0),
        snapshot_id: written.snapshot_id.map(|id| id.0),
        network_policy: written.network_policy.map(|policy| match policy {
            NetworkPolicy::Name(name) => VercelPolicy::Named(name.0),
            NetworkPolicy::Rules(rules) => {
                VercelPolicy::Rules(rules.into_iter().map(|(key, rule)| (key, rule.0)).collect())
            }
        }),
        region: written.region.map(|region| region.0),
        base_url: written.base_url.map_or_else(
            || VERCEL_API.to_owned(),
            |url| url.0.trim().trim_end_matches('/').to_owned(),
        ),
        api_version: written.api_version.map(|version| version.0),
        limits: limits(written.limits.unwrap_or_default()),
        warm: written.warm.map(|warm| {
            let files = warm.files.unwrap_or_default().0;
            files.into_iter().map(|glob| glob.0).collect()
        }),
    }
}

fn limits(written: WrittenLimits) -> VercelLimits {
    let default = VercelLimits::default();
    VercelLimits {
        concurrent: written
            .concurrent
            .map_or(default.concurrent, |most| most.0 as usize),
        vcpus_per_minute: written
            .vcpus_per_minute
            .map_or(default.vcpus_per_minute, |rates| rates.map(|Whole(rate)| rate)),
        requests_per_minute: written
            .requests_per_minute
            .map_or(default.requests_per_minute, |most| most.0),
        deletes_per_second: written
            .deletes_per_second
            .map_or(default.deletes_per_second, |most| most.0),
    }
}

fn command(written: CommandEngine) -> CommandConfig {
    CommandConfig {
        create: written.create.into(),
        upload: written.upload.map(Into::into),
        exec: written.exec.into(),
        download: written.download.map(Into::into),
        delete: written.delete.into(),
        list: written.list.map(Into::into),
    }
}
