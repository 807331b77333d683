//! `sandbox`, settled: what each engine is told.

use std::fmt;
use std::time::Duration;

use camino::Utf8PathBuf;

use super::template::CommandTemplate;

/// `sandbox`.
#[derive(Clone, Debug)]
pub enum SandboxConfig {
    /// On this machine.
    Local(LocalConfig),
    /// In containers of a Docker engine.
    Docker(DockerConfig),
    /// In sandboxes of Vercel.
    Vercel(VercelConfig),
    /// In sandboxes that the user's own commands make.
    Command(CommandConfig),
}

impl SandboxConfig {
    /// The kind's name.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Local(_) => "local",
            Self::Docker(_) => "docker",
            Self::Vercel(_) => "vercel",
            Self::Command(_) => "command",
        }
    }
}

/// `sandbox` of kind `local`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalConfig {
    /// How the workspace comes into being.
    pub workspace: WorkspaceMode,
    /// Paths that are symlinked into a copied workspace rather than copied.
    pub link: Vec<Utf8PathBuf>,
    /// Whose HOME an attempt has.
    pub home: HomeMode,
    /// Whether the kernel confines an attempt where it can.
    pub landlock: LandlockMode,
    /// Whether an attempt may open network connections.
    pub network: NetworkMode,
    /// Memory reckoned for an attempt, in bytes, at least 1.
    pub memory_per_attempt: u64,
}

/// `sandbox.workspace`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkspaceMode {
    /// A copy for each sandbox.
    Copy,
    /// An overlay mount over one copy.
    Overlay,
    /// A git worktree.
    Worktree,
    /// The source itself: the suite promises not to clash.
    Shared,
}

/// `sandbox.home`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HomeMode {
    /// An empty one of its own.
    Private,
    /// The user's.
    Inherit,
}

/// `sandbox.landlock`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LandlockMode {
    /// Where the kernel offers it.
    Auto,
    /// Never.
    Off,
}

/// `sandbox.network` of kind `local`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkMode {
    /// As evalwave itself.
    Inherit,
    /// None, where the kernel can refuse it.
    None,
}

/// `sandbox` of kind `docker`.
#[derive(Clone, Debug, PartialEq)]
pub struct DockerConfig {
    /// What containers are made of.
    pub image: DockerImage,
    /// Memory of a container, in bytes; `None` is no limit.
    pub memory: Option<u64>,
    /// Memory reckoned for an attempt, in bytes, at least 1.
    pub memory_per_attempt: u64,
    /// CPUs of a container; `None` is no limit.
    pub cpus: Option<f64>,
    /// Processes of a container; `None` is no limit.
    pub pids: Option<u64>,
    /// `bridge`, `none`, or a network's name.
    pub network: String,
    /// The user that commands run as; `None` is the image's.
    pub user: Option<String>,
    /// Bind mounts.
    pub mounts: Vec<DockerMount>,
    /// Whether a small init process reaps what commands leave behind.
    pub init: bool,
    /// Whether the container's own files are read-only.
    pub read_only: bool,
    /// Whether the container has the host's rights.
    pub privileged: bool,
    /// The image's platform; `None` is the engine's.
    pub platform: Option<String>,
    /// Whether sandboxes start from a container in which `setup` has been done once.
    pub warm: bool,
}

/// `sandbox.image` or `sandbox.build`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DockerImage {
    /// This one, which is pulled where the engine does not have it.
    Named(String),
    /// One that is built first. Paths are relative to the configuration's root.
    Built {
        /// The directory that is sent to the engine; empty is the root itself.
        context: Utf8PathBuf,
        /// The Dockerfile, in the context.
        dockerfile: Utf8PathBuf,
    },
}

/// One of `sandbox.mounts` of kind `docker`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DockerMount {
    /// A path of the engine's machine, relative ones to the configuration's root, or the name of a volume.
    pub source: String,
    /// Where it appears in the container; absolute.
    pub target: String,
    /// Whether the container may not write to it.
    pub read_only: bool,
}

/// `sandbox` of kind `vercel`.
#[derive(Clone, Debug, PartialEq)]
pub struct VercelConfig {
    /// vCPUs of a sandbox: 1, or an even number.
    pub vcpus: u32,
    /// What sandboxes are made of.
    pub base: VercelBase,
    /// Where a sandbox's files come from.
    pub source: VercelFiles,
    /// The revision of the repository that is measured; `None` is what is checked out.
    pub revision: Option<String>,
    /// Whether submodules are fetched.
    pub submodules: bool,
    /// The sandbox's own time limit; `None` is what an attempt may take.
    pub timeout: Option<Duration>,
    /// The snapshot that sandboxes start from, where it is named.
    pub snapshot_id: Option<String>,
    /// Which hosts a sandbox reaches; `None` is the service's default.
    pub network_policy: Option<VercelPolicy>,
    /// The region; `None` is the service's default.
    pub region: Option<String>,
    /// The address of the API, without a slash at its end.
    pub base_url: String,
    /// The version in the path that creates sandboxes, such as `v2`; `None` is the one that fits the base.
    pub api_version: Option<String>,
    /// The account's limits.
    pub limits: VercelLimits,
    /// Globs of the files whose change makes a new snapshot; `None` where no snapshot is wanted.
    pub warm: Option<Vec<String>>,
}

impl VercelConfig {
    /// The longest time limit that a sandbox has in any plan.
    pub const LONGEST: Duration = Duration::from_secs(24 * 3600);
}

/// `sandbox.runtime` or `sandbox.image` of kind `vercel`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VercelBase {
    /// A runtime, such as `node24`.
    Runtime(String),
    /// An image.
    Image(String),
}

/// `sandbox.source` of kind `vercel`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VercelFiles {
    /// This repository at the measured revision.
    Repository,
    /// What `attempt.upload` selects.
    Upload,
}

/// `sandbox.network-policy` of kind `vercel`.
#[derive(Clone, PartialEq)]
pub enum VercelPolicy {
    /// A policy's name.
    Named(String),
    /// Rules, as the API takes them. There may be keys in them.
    Rules(serde_json::Value),
}

impl fmt::Debug for VercelPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(name) => write!(f, "Named({name:?})"),
            Self::Rules(_) => write!(f, "Rules(***)"),
        }
    }
}

/// `sandbox.limits` of kind `vercel`; the defaults are those of the Pro plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VercelLimits {
    /// Sandboxes at once.
    pub concurrent: usize,
    /// vCPUs that may be started each minute: at first, more each minute, at most.
    pub vcpus_per_minute: [u32; 3],
    /// Requests each minute.
    pub requests_per_minute: u32,
    /// Deletions each second.
    pub deletes_per_second: u32,
}

impl Default for VercelLimits {
    fn default() -> Self {
        Self {
            concurrent: 10_000,
            vcpus_per_minute: [150, 500, 5_000],
            requests_per_minute: 10_000,
            deletes_per_second: 20,
        }
    }
}

/// `sandbox` of kind `command`: the user's own commands.
#[derive(Clone, Debug)]
pub struct CommandConfig {
    /// Creates a sandbox and prints its id.
    pub create: CommandTemplate,
    /// Copies files in.
    pub upload: Option<CommandTemplate>,
    /// Runs a command in it.
    pub exec: CommandTemplate,
    /// Copies files out.
    pub download: Option<CommandTemplate>,
    /// Deletes it.
    pub delete: CommandTemplate,
    /// Lists sandboxes.
    pub list: Option<CommandTemplate>,
}
