//! What has to be known of a run's sandboxes to delete them after its process has died.

use camino::Utf8PathBuf;
use serde::{Deserialize, Serialize};

/// Where the sandboxes of a run are. It names places, never commands or credentials: it is read back from a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Whereabouts {
    /// On this machine.
    Local {
        /// The directory of temporary files.
        temporary: Utf8PathBuf,
    },
    /// At Vercel.
    Vercel {
        /// The address of the API.
        base_url: String,
        /// The team that owns the project.
        team_id: String,
        /// The project.
        project_id: String,
    },
    /// Where the commands of the configuration say: they are not repeated here.
    Command,
    /// In containers.
    Docker {
        /// The engine's address.
        host: String,
    },
}

/// A sandbox that may still be there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftSandbox {
    /// What we called it.
    pub name: String,
    /// What its engine calls it, where that is something else and was heard of.
    pub id: Option<String>,
}
