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
    Amount, FileGlob, FromText, Refusal, RelativePath, Size, Span, Text, Whole, read,
};

/// Where attempts run.
#[derive(Clone, Debug)]
pub(in crate::config) enum Sandbox {
    Local(Local),
    /// A kind whose engine does not exist yet; its keys are checked, and that is all.
    Other(Kind),
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
        match kind {
            Kind::Local => Local::deserialize(node).map(Self::Local),
            Kind::Docker => Docker::deserialize(node).map(|_| Self::Other(kind)),
            Kind::Vercel => Vercel::deserialize(node).map(|_| Self::Other(kind)),
            Kind::Command => CommandEngine::deserialize(node).map(|_| Self::Other(kind)),
        }
        .map_err(below)
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
        /// The kind's name.
        #[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
        enum $type {
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
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", expecting = "a mapping")]
#[expect(dead_code, reason = "its keys are checked; its engine comes later")]
struct Docker {
    kind: DockerKind,
    /// The image's name.
    image: Option<Text>,
    /// Builds the image first.
    build: Option<DockerBuild>,
    /// Memory of a container.
    memory: Option<Size>,
    /// Memory reckoned for an attempt when the number at once is settled. Default: `256MB`.
    memory_per_attempt: Option<Size>,
    /// CPUs of a container.
    cpus: Option<Amount>,
    /// Processes of a container.
    pids: Option<Whole<1, 1_000_000>>,
    /// `bridge`, `none`, or a network's name.
    network: Option<Text>,
    /// The user that commands run as.
    user: Option<Text>,
    /// Bind mounts, as `SOURCE:TARGET[:ro]`.
    mounts: Option<List<Text>>,
    /// Whether a small init process reaps what the command leaves behind.
    init: Option<bool>,
    /// Whether the container's own files are read-only.
    read_only: Option<bool>,
    /// Whether the container has the host's rights.
    privileged: Option<bool>,
    /// The image's platform, such as `linux/arm64`.
    platform: Option<Text>,
    /// Whether the container is kept after `setup` once, and sandboxes start from it.
    warm: Option<bool>,
}

/// How an image is built.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping")]
#[expect(dead_code, reason = "its keys are checked; its engine comes later")]
struct DockerBuild {
    /// The Dockerfile's path.
    dockerfile: Option<RelativePath>,
    /// The directory that is sent to the engine.
    context: Option<RelativePath>,
}

/// Sandboxes of Vercel.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", expecting = "a mapping")]
#[expect(dead_code, reason = "its keys are checked; its engine comes later")]
struct Vercel {
    kind: VercelKind,
    /// vCPUs of a sandbox. Default: 2.
    vcpus: Option<Whole<1, 64>>,
    /// The runtime, such as `node24`.
    runtime: Option<Text>,
    /// An image instead of a runtime.
    image: Option<Text>,
    /// Where a sandbox's files come from: this repository at the measured revision, or an upload.
    source: Option<VercelSource>,
    /// Whether submodules are fetched.
    submodules: Option<bool>,
    /// The sandbox's own time limit.
    timeout: Option<Span>,
    /// The snapshot that sandboxes start from.
    snapshot_id: Option<Text>,
    /// Which hosts a sandbox reaches, and which headers are added for it.
    network_policy: Option<NetworkPolicy>,
    /// The region.
    region: Option<Text>,
    /// Another address of the API.
    base_url: Option<Text>,
    /// Another version of the API.
    api_version: Option<Text>,
    /// The account's limits. Default: those of the Pro plan.
    limits: Option<VercelLimits>,
    /// How a snapshot with `setup` done is keyed.
    warm: Option<VercelWarm>,
}

/// Where a sandbox's files come from.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum VercelSource {
    /// This repository at the measured revision.
    Repository,
    /// What `attempt.upload` selects.
    Upload,
}

#[derive(Debug)]
#[expect(dead_code, reason = "its keys are checked; its engine comes later")]
enum NetworkPolicy {
    Name(Text),
    Rules(BTreeMap<String, IgnoredAnyValue>),
}

by_shape! {
    NetworkPolicy, "a policy's name, or a mapping",
    text Name(Text),
    map Rules(BTreeMap<String, IgnoredAnyValue>),
}

#[derive(Debug, Deserialize)]
struct IgnoredAnyValue(IgnoredAny);

impl JsonSchema for IgnoredAnyValue {
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
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", expecting = "a mapping")]
#[expect(dead_code, reason = "its keys are checked; its engine comes later")]
struct VercelLimits {
    /// Sandboxes at once.
    concurrent: Option<Whole<1, 100_000>>,
    /// vCPUs that may be started each minute: at first, more each minute, at most.
    vcpus_per_minute: Option<[Whole<1, 1_000_000>; 3]>,
    /// Requests each minute.
    requests_per_minute: Option<Whole<1, 10_000_000>>,
    /// Deletions each second.
    deletes_per_second: Option<Whole<1, 10_000>>,
}

/// How a snapshot is keyed.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping")]
#[expect(dead_code, reason = "its keys are checked; its engine comes later")]
struct VercelWarm {
    /// Lockfiles whose change makes a new snapshot.
    files: Option<List<FileGlob>>,
}

/// Sandboxes of any engine that has a command line.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping")]
#[expect(dead_code, reason = "its keys are checked; its engine comes later")]
struct CommandEngine {
    kind: CommandKind,
    /// Creates a sandbox and prints its id.
    create: Command,
    /// Copies files in.
    upload: Option<Command>,
    /// Runs a command in it.
    exec: Command,
    /// Copies files out.
    download: Option<Command>,
    /// Deletes it.
    delete: Command,
    /// Lists sandboxes.
    list: Option<Command>,
}
