//! Our engine of Vercel as tests make it, for the fake.

use std::sync::Arc;

use camino::Utf8PathBuf;
use evalwave::config::{VercelBase, VercelConfig, VercelFiles, VercelLimits};
use evalwave::sandbox::vercel::{Account, Credentials, VercelBackend};

use super::vercel::{PROJECT, TEAM, TOKEN};

/// Where `.ci/run` says that bubblewrap is, without which the fake runs nothing for real.
pub(crate) fn bwrap() -> Option<Utf8PathBuf> {
    const BWRAP: &str = "EVALWAVE_TEST_BWRAP";
    let path = std::env::var(BWRAP).ok();
    if path.is_none() {
        eprintln!("skipped: {BWRAP} does not say where bubblewrap is; .ci/run installs it and sets it");
    }
    path.map(Utf8PathBuf::from)
}

pub(crate) fn config(base_url: &str) -> VercelConfig {
    VercelConfig {
        vcpus: 2,
        base: VercelBase::Runtime("node24".to_owned()),
        source: VercelFiles::Upload,
        revision: None,
        submodules: false,
        timeout: None,
        snapshot_id: None,
        network_policy: None,
        region: None,
        base_url: base_url.to_owned(),
        api_version: None,
        limits: VercelLimits {
            concurrent: 10_000,
            vcpus_per_minute: [1_000_000, 1, 1_000_000],
            requests_per_minute: 10_000_000,
            deletes_per_second: 10_000,
        },
        warm: None,
    }
}

pub(crate) fn backend(config: &VercelConfig) -> VercelBackend {
    let credentials = Credentials {
        token: TOKEN.to_owned(),
        team_id: TEAM.to_owned(),
        project_id: PROJECT.to_owned(),
    };
    let account = Account::new(&config.base_url, config.limits, &credentials, 1).unwrap();
    VercelBackend::new(config, Arc::new(account), None, jiff::Timestamp::now())
}
