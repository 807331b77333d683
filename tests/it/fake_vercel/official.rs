//! Vercel's official client, in its pinned version, drives the fake.

use std::process::Command;

use crate::support::repository;
use crate::support::vercel::{Faults, Limits, Machines, Route, State, Vercel};

/// Where `.ci/run` says that Node.js is.
const NODE: &str = "EVALWAVE_TEST_NODE";
/// Where it says that the client is installed, with the scenarios.
const SDK: &str = "EVALWAVE_TEST_VERCEL_SDK";

#[test]
fn vercels_official_client_accepts_the_fake_in_every_scenario() {
    let (Some(node), Some(sdk), Some(bwrap)) = (
        std::env::var_os(NODE),
        std::env::var_os(SDK),
        super::real::bwrap(),
    ) else {
        eprintln!(
            "skipped: {NODE}, {SDK} and {} do not all say where Node.js, Vercel's client and bubblewrap are; .ci/run \
             sets them",
            super::real::BWRAP
        );
        return;
    };
    let state = State::new(Limits::default(), Faults::default());
    let vercel = Vercel::start(0, state, Machines::real(bwrap).unwrap()).unwrap();
    let script = repository().join(sdk.into_string().unwrap()).join("drive.mjs");
    let driven = Command::new(node)
        .args([script.as_str(), &vercel.base_url()])
        .env("NO_COLOR", "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&driven.stdout);
    assert!(
        driven.status.success(),
        "{said}\n{}",
        String::from_utf8_lossy(&driven.stderr)
    );
    // A script that asked nothing would have succeeded too.
    assert!(
        said.contains("# fail 0\n") && !said.contains("# pass 0\n"),
        "{said}"
    );
    let state = vercel.state();
    for route in [
        Route::Create,
        Route::Fork,
        Route::Get,
        Route::List,
        Route::Update,
        Route::Delete,
        Route::ListSessions,
        Route::Stop,
        Route::Extend,
        Route::NetworkPolicy,
        Route::Run,
        Route::RunAndWait,
        Route::GetCommand,
        Route::Wait,
        Route::Logs,
        Route::Kill,
        Route::Mkdir,
        Route::Write,
        Route::Read,
        Route::Snapshot,
        Route::Interactive,
        Route::GetSnapshot,
        Route::DeleteSnapshot,
        Route::ListSnapshots,
        Route::SnapshotTree,
    ] {
        assert!(state.counts.with(route, 200) > 0, "{}", route.name());
    }
    assert!(state.sandboxes.is_empty());
    assert_eq!(state.troubles, Vec::<String>::new());
}
