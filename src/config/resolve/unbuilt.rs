//! What can be written and is understood, but whose machinery does not exist yet: one plain answer, before anything runs.

use crate::config::error::ConfigError;
use crate::config::settings::{self, Given};

/// Refuses the first thing that is not built in yet.
pub(super) fn refuse(given: &Given) -> Result<(), ConfigError> {
    for setting in [&settings::SNAPSHOT_ID, &settings::REVISION] {
        if let Some(found) = given.find(setting) {
            return Err(found.not_built_in());
        }
    }
    Ok(())
}
