//! `sandbox` as it is written: each kind has keys of its own.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};

use super::attempt::Command;
use super::shape::{List, by_shape};
use crate::config::node::Node;
use crate::config::problem::{KeyPath, Problem, Segment};
use crate::config::value::{
    Amount, FileGlob, FromText, MountText, Refusal, RelativePath, Size, Span, Text, Whole, read,
};

/// Where attempts run.
#[derive(Clone, Debug)]
pub(in crate::config) enum Sandbox {
    Local(Local),
    Docker(Docker),
    Vercel(Box<Vercel>),
    Command(CommandEngine),
}

/// The kinds of sandboxes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::config) enum Kind {
    Local,
    Docker,
    Vercel,
    Command,
}

impl Kind {
    pub(in crate::config) fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Docker => "docker",
            Self::Vercel => "vercel",
            Self::Command => "command",
        }
    }
}

impl FromText for Kind {
    const EXPECTED: &'static str = "`local`, `docker`, `vercel` or `command`";

    fn from_text(text: &str) -> Result<Self, Refusal> {
        let kinds = [Self::Local, Self::Docker, Self::Vercel, Self::Command];
        kinds
            .into_iter()
            .find(|kind| kind.name() == text)
            .ok_or_else(|| Refusal::Because(crate::config::problem::not_among(text, &kinds.map(Self::name))))
    }
}

impl Sandbox {
    /// Reads the keys of the kind that the mapping names.
    pub(in crate::config) fn read(node: &Node) -> Result<Self, Problem> {
        let below = |problem: Problem| problem.below(Segment::Key("sandbox".to_owned()));
        let kind = match node.get("kind") {
            None => Kind::Local,
            Some(Node::Text(kind)) => {
                self::read::<Kind>(kind).map_err(|text| Problem::new(KeyPath::of("sandbox.kind"), text))?
            }
            Some(other) => {
                let problem = Text::deserialize(other).err().map(|problem| problem.text);
                return Err(Problem::new(
                    KeyPath::of("sandbox.kind"),
                    problem.unwrap_or_default(),
                ));
            }
        };
        let sandbox = match kind {
            Kind::Local => Local::deserialize(node).map(Self::Local),
            Kind::Docker => Docker::deserialize(node).map(Self::Docker),
            Kind::Vercel => Vercel::deserialize(node).map(Box::new).map(Self::Vercel),
            Kind::Command => CommandEngine::deserialize(node).map(Self::Command),
        }
        .map_err(below)?;
        sandbox.check().map_err(below)?;
        Ok(sandbox)
    }

    /// What the keys of one kind may not say together.
    fn check(&self) -> Result<(), Problem> {
        let either = |one: &str, other: &str, has_one: bool, has_other: bool| match has_one && has_other {
            true => Err(Problem::new(
                KeyPath::of(one),
                format!("expected `{one}` or `{other}`, found both\nkeep one of them"),
            )),
            false => Ok(()),
        };
        match self {
            Self::Docker(docker) => {
                either("image", "build", docker.image.is_some(), docker.build.is_some())?;
                if docker.image.is_none() && docker.build.is_none() {
                    return Err(Problem::missing(
                        KeyPath::of("image"),
                        "what containers are made of, unless `build` says how to make it",
                    ));
                }
                Ok(())
            }
            Self::Vercel(vercel) => {
                let (runtime, image) = (vercel.runtime.is_some(), vercel.image.is_some());
                either("runtime", "image", runtime, image)?;
                super::vercel::check(vercel)
            }
            Self::Command(command) => super::engine::check(command),
            Self::Local(_) => Ok(()),
        }
    }

    pub(in crate::config) fn kind(&self) -> Kind {
        match self {
            Self::Local(_) => Kind::Local,
            Self::Docker(_) => Kind::Docker,
            Self::Vercel(_) => Kind::Vercel,
            Self::Command(_) => Kind::Command,
        }
    }
}

/// Stands for `sandbox` while the rest of the file is read: its keys depend on its kind, see [`Sandbox::read`].
#[derive(Clone, Copy, Debug)]
pub(in crate::config) struct SandboxKeys;

impl<'de> Deserialize<'de> for SandboxKeys {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(from).map(|_| Self)
    }
}

impl JsonSchema for SandboxKeys {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Sandbox".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [
            generator.subschema_for::<Local>(),
            generator.subschema_for::<Docker>(),
            generator.subschema_for::<Vercel>(),
            generator.subschema_for::<CommandEngine>(),
        ] })
    }
}

macro_rules! kind {
    ($type:ident, $word:literal) => {
        #[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
        enum $type {
            #[default]
            #[serde(rename = $word)]
            Kind,
        }
    };
}
kind!(LocalKind, "local");
kind!(DockerKind, "docker");
kind!(VercelKind, "vercel");
kind!(CommandKind, "command");

/// Sandboxes on this machine: directories and processes of their own. Not a security boundary.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", expecting = "a mapping")]
pub(in crate::config) struct Local {
    /// On this machine. Default: `local`.
    #[expect(dead_code, reason = "it has been looked at to come here")]
    kind: Option<LocalKind>,
    /// How a workspace comes into being. Default: `copy`.
    pub(in crate::config) workspace: Option<Workspace>,
    /// Paths that are symlinked into a copied workspace rather than copied.
    pub(in crate::config) link: Option<List<RelativePath>>,
    /// Whose HOME an attempt has. Default: `private`.
    pub(in crate::config) home: Option<Home>,
    /// Whether the kernel confines an attempt where it can. Default: `auto`.
    pub(in crate::config) landlock: Option<Landlock>,
    /// Whether an attempt may open network connections. Default: `inherit`.
    pub(in crate::config) network: Option<Network>,
    /// Memory reckoned for an attempt when the number at once is settled. Default: `256MB`.
    pub(in crate::config) memory_per_attempt: Option<Size>,
}

/// How a workspace comes into being.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(in crate::config) enum Workspace {
    /// A copy for each sandbox.
    Copy,
    /// An overlay mount over one copy.
    Overlay,
    /// A git worktree.
    Worktree,
    /// The source itself: the suite promises not to clash.
    Shared,
}

/// Whose HOME an attempt has.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(in crate::config) enum Home {
    /// An empty one of its own.
    Private,
    /// The user's.
    Inherit,
}

/// Whether the kernel confines an attempt.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(in crate::config) enum Landlock {
    /// Where the kernel offers it.
    Auto,
    /// Never.
    Off,
}

/// Whether an attempt may open network connections.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(in crate::config) enum Network {
    /// As evalwave itself.
    Inherit,
    /// None, where the kernel can refuse it.
    None,
}

/// Sandboxes in containers of a Docker engine.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", expecting = "a mapping")]
pub(in crate::config) struct Docker {
    /// In containers.
    #[expect(dead_code, reason = "it has been looked at to come here")]
    kind: DockerKind,
    /// The image's name. Default: what `build` makes.
    pub(in crate::config) image: Option<Text>,
    /// Builds the image first, in the place of `image`.
    pub(in crate::config) build: Option<DockerBuild>,
    /// Memory of a container. Default: no limit.
    pub(in crate::config) memory: Option<Size>,
    /// Memory reckoned for an attempt when the number at once is settled. Default: `memory`, else `256MB`.
    pub(in crate::config) memory_per_attempt: Option<Size>,
    /// CPUs of a container. Default: no limit.
    pub(in crate::config) cpus: Option<Amount>,
    /// Processes of a container. Default: no limit.
    pub(in crate::config) pids: Option<Whole<1, 1_000_000>>,
    /// `bridge`, `none`, or a network's name. Default: `bridge`.
    pub(in crate::config) network: Option<Text>,
    /// The user that commands run as. Default: the image's own.
    pub(in crate::config) user: Option<Text>,
    /// Bind mounts, as `SOURCE:TARGET[:ro]`.
    pub(in crate::config) mounts: Option<List<MountText>>,
    /// Whether a small init process reaps what the command leaves behind. Default: `false`.
    pub(in crate::config) init: Option<bool>,
    /// Whether the container's own files are read-only. Default: `false`.
    pub(in crate::config) read_only: Option<bool>,
    /// Whether the container has the host's rights. Default: `false`.
    pub(in crate::config) privileged: Option<bool>,
    /// The image's platform, such as `linux/arm64`. Default: the engine's own.
    pub(in crate::config) platform: Option<Text>,
    /// Whether the container is kept after `setup` once, and sandboxes start from it. Default: `false`.
    pub(in crate::config) warm: Option<bool>,
}

/// How an image is built.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping")]
pub(in crate::config) struct DockerBuild {
    /// The Dockerfile's path. Default: `Dockerfile`.
    pub(in crate::config) dockerfile: Option<RelativePath>,
    /// The directory that is sent to the engine. Default: that of the configuration.
    pub(in crate::config) context: Option<RelativePath>,
}

/// Sandboxes of Vercel.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", expecting = "a mapping")]
pub(in crate::config) struct Vercel {
    /// In sandboxes of Vercel.
    #[expect(dead_code, reason = "it has been looked at to come here")]
    kind: VercelKind,
    /// vCPUs of a sandbox: 1, or an even number. Default: 2.
    pub(in crate::config) vcpus: Option<Whole<1, 64>>,
    /// The runtime. Default: `node24`.
    pub(in crate::config) runtime: Option<Text>,
    /// An image instead of a runtime.
    pub(in crate::config) image: Option<Text>,
    /// Where a sandbox's files come from: this repository at the measured revision, or an upload.
    /// Default: `repository`.
    pub(in crate::config) source: Option<VercelSource>,
    /// Whether submodules are fetched. Default: `false`.
    pub(in crate::config) submodules: Option<bool>,
    /// The sandbox's own time limit, at most 24 h. Default: what an attempt may take.
    pub(in crate::config) timeout: Option<Span>,
    /// The snapshot that sandboxes start from. Default: the one that `warm` finds, if any.
    pub(in crate::config) snapshot_id: Option<Text>,
    /// Which hosts a sandbox reaches, and which headers are added for it: `allow-all`, `deny-all`, or rules as the service
    /// takes them. Default: the service's own.
    pub(in crate::config) network_policy: Option<NetworkPolicy>,
    /// The region. Default: the service's own.
    pub(in crate::config) region: Option<Text>,
    /// The address of the API. Default: `https://vercel.com/api`.
    pub(in crate::config) base_url: Option<Text>,
    /// Another version of the API in the path that creates. Default: by what is created.
    pub(in crate::config) api_version: Option<Text>,
    /// The account's limits. Default: those of the Pro plan.
    pub(in crate::config) limits: Option<VercelLimits>,
    /// How a snapshot with `setup` done is keyed. Default: no snapshot is looked for.
    pub(in crate::config) warm: Option<VercelWarm>,
}

/// Where a sandbox's files come from.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(in crate::config) enum VercelSource {
    /// This repository at the measured revision.
    Repository,
    /// What `attempt.upload` selects.
    Upload,
}

#[derive(Clone, Debug)]
pub(in crate::config) enum NetworkPolicy {
    Name(Text),
    Rules(BTreeMap<String, Anything>),
}

by_shape! {
    NetworkPolicy, "a policy's name, or a mapping",
    text Name(Text),
    map Rules(BTreeMap<String, Anything>),
}

/// What is for the service to understand.
#[derive(Clone, Debug, Deserialize)]
pub(in crate::config) struct Anything(pub(in crate::config) serde_json::Value);

impl JsonSchema for Anything {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Any".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({})
    }
}

/// The account's limits.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", expecting = "a mapping")]
pub(in crate::config) struct VercelLimits {
    /// Sandboxes at once. Default: 10000.
    pub(in crate::config) concurrent: Option<Whole<1, 100_000>>,
    /// vCPUs that may be started each minute: at first, more each minute, at most. Default: 150, 500, 5000.
    pub(in crate::config) vcpus_per_minute: Option<[Whole<1, 1_000_000>; 3]>,
    /// Requests each minute. Default: 10000.
    pub(in crate::config) requests_per_minute: Option<Whole<1, 10_000_000>>,
    /// Deletions each second. Default: 20.
    pub(in crate::config) deletes_per_second: Option<Whole<1, 10_000>>,
}

/// How a snapshot is keyed.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping")]
pub(in crate::config) struct VercelWarm {
    /// Lockfiles whose change makes a new snapshot.
    pub(in crate::config) files: Option<List<FileGlob>>,
}

/// Sandboxes of any engine that has a command line, by commands of your own. They run on this machine, where the
/// configuration is. Exit code 75 says that the engine could not do it now, and that it is to be tried again.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping")]
pub(in crate::config) struct CommandEngine {
    /// In sandboxes that commands create.
    #[expect(dead_code, reason = "it has been looked at to come here")]
    kind: CommandKind,
    /// Creates a sandbox and prints its id. Placeholders: `{name}`, `{run_id}`, `{lifetime_sec}`, `{expires}`,
    /// `{experiment}`, `{eval}`, `{attempt}`.
    pub(in crate::config) create: Command,
    /// Runs `sh` in it, and gives it the script that comes on standard input; with `{file}`, the script is in that file
    /// instead. Placeholders: `{sandbox}`, `{name}`, `{run_id}`, `{file}`.
    pub(in crate::config) exec: Command,
    /// Deletes it; where there is none, that is a success. Placeholders: `{sandbox}`, `{name}`, `{run_id}`.
    pub(in crate::config) delete: Command,
    /// Prints the sandboxes that are there, one a line: the id, and the name that it was created with. With `{run_id}`,
    /// those of that run.
    pub(in crate::config) list: Option<Command>,
    /// Unpacks the tar on standard input, which is also `{file}`, in the directory `{dir}` of the sandbox. Default: by
    /// `exec`. Placeholders: `{sandbox}`, `{name}`, `{run_id}`, `{file}`, `{dir}`.
    pub(in crate::config) upload: Option<Command>,
    /// Writes a tar of `{path}` in the directory `{dir}` of the sandbox to standard output, or to `{file}`. Default: by
    /// `exec`. Placeholders: `{sandbox}`, `{name}`, `{run_id}`, `{file}`, `{dir}`, `{path}`.
    pub(in crate::config) download: Option<Command>,
}
