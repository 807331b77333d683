//! That everything ends: commands, what they leave behind, sandboxes, and what was left of a run.

use evalwave::model::LeftSandbox;
use evalwave::sandbox::{Command, Exit, Sandbox};
use tokio::sync::mpsc;

use super::{Bench, with_env};
use crate::support::sandbox::{Remembered, run, sh, shell};

/// Five ways to leave a process behind, then the word `ready`.
const LEAVE: &str = "
    sleep 1000 &
    nohup sleep 1000 >/dev/null 2>&1 &
    setsid sleep 1000 >/dev/null 2>&1 &
    (setsid sh -c 'sleep 1000 & sleep 1000 & exit 0' &)
    (trap '' TERM HUP INT; sleep 1000) &
    echo ready
";

fn marked(mark: &str, text: &str) -> Command {
    with_env(&[("MARK", mark)], text)
}

/// A mark that no other engine's test of the same sentence has.
fn unique(bench: &Bench, what: &str) -> String {
    format!("{what}-{}", bench.0.source().as_str().replace('/', "-"))
}

/// Runs a command for ever, and drops it once it has said a word.
pub(super) async fn drop_when_ready(sandbox: &mut dyn Sandbox, command: &Command) {
    let (sender, mut receiver) = mpsc::channel(1);
    tokio::select! {
        _ = sandbox.exec(command, &sender) => panic!("it waits for ever"),
        chunk = receiver.recv() => assert_eq!(chunk.unwrap(), b"ready\n"),
    }
}

pub(super) async fn whatever_a_command_leaves_behind_is_killed_when_it_ends(bench: &Bench) {
    let mark = unique(bench, "end");
    let mut sandbox = bench.start("end").await;
    let (exit, output) = run(&mut *sandbox, &marked(&mark, &format!("{LEAVE} exit 9"))).await;
    assert_eq!((exit.unwrap(), output.as_str()), (Exit::Code(9), "ready\n"));
    assert_eq!(bench.0.marked(&mark).await, 0);
    sandbox.stop().await.unwrap();
}

pub(super) async fn dropping_a_command_kills_it_with_everything_it_started(bench: &Bench) {
    let mark = unique(bench, "drop");
    let mut sandbox = bench.start("drop").await;
    drop_when_ready(&mut *sandbox, &marked(&mark, &format!("{LEAVE} wait"))).await;
    sandbox.stop().await.unwrap();
    assert_eq!(bench.0.marked(&mark).await, 0);
}

pub(super) async fn a_dropped_command_is_gone_before_the_next_one_starts(bench: &Bench) {
    let mark = unique(bench, "next");
    let mut sandbox = bench.start("next").await;
    let command = marked(&mark, &format!("{LEAVE} while :; do touch alive; done"));
    drop_when_ready(&mut *sandbox, &command).await;
    sh(&mut *sandbox, "rm -f alive").await;
    assert_eq!(bench.0.marked(&mark).await, 0);
    assert_eq!(sh(&mut *sandbox, "ls").await, "");
    sandbox.stop().await.unwrap();
}

/// A daemon that answers USR1 with a file, and one in a session of its own.
fn boot(mark: &str) -> Command {
    Command {
        keeps_daemons: true,
        ..marked(
            mark,
            "sh -c 'trap \"touch asked\" USR1; echo $$ >pid; while :; do sleep 1000 & wait; echo noise; done' &
             until test -s pid; do :; done; (cd / && setsid sleep 1000 &); echo booted",
        )
    }
}

const ASK: &str = "rm -f asked; kill -USR1 $(cat pid); until test -e asked; do :; done";

pub(super) async fn daemons_live_until_stop_and_nothing_else_does(bench: &Bench) {
    let (mark, other) = (unique(bench, "daemon"), unique(bench, "no-daemon"));
    let mut sandbox = bench.start("daemons").await;
    let (exit, output) = run(&mut *sandbox, &boot(&mark)).await;
    assert_eq!((exit.unwrap(), output.as_str()), (Exit::Code(0), "booted\n"));
    // The next command reaches it, and its output, which nobody reads, does not kill it.
    for _ in 0..3 {
        sh(&mut *sandbox, ASK).await;
    }
    let (exit, _) = run(&mut *sandbox, &marked(&other, LEAVE)).await;
    assert_eq!(exit.unwrap(), Exit::Code(0));
    assert_eq!(bench.0.marked(&other).await, 0, "what is no daemon is killed");
    assert!(bench.0.marked(&mark).await >= 3);
    sh(&mut *sandbox, ASK).await;
    sandbox.stop().await.unwrap();
    assert_eq!(bench.0.marked(&mark).await, 0);
}

pub(super) async fn daemons_outlive_a_dropped_command(bench: &Bench) {
    let (mark, other) = (unique(bench, "daemon-drop"), unique(bench, "no-daemon-drop"));
    let mut sandbox = bench.start("daemons-drop").await;
    run(&mut *sandbox, &boot(&mark)).await.0.unwrap();
    drop_when_ready(&mut *sandbox, &marked(&other, &format!("{LEAVE} wait"))).await;
    sh(&mut *sandbox, ASK).await;
    assert_eq!(bench.0.marked(&other).await, 0);
    sandbox.stop().await.unwrap();
    assert_eq!(bench.0.marked(&mark).await, 0);
}

pub(super) async fn a_stop_in_mid_command_leaves_nothing(bench: &Bench) {
    let mark = unique(bench, "stop");
    let mut sandbox = bench.start("stop").await;
    run(&mut *sandbox, &boot(&mark)).await.0.unwrap();
    drop_when_ready(&mut *sandbox, &marked(&mark, &format!("{LEAVE} wait"))).await;
    assert_eq!(bench.0.left().await.len(), 1);
    sandbox.stop().await.unwrap();
    assert_eq!(bench.0.marked(&mark).await, 0);
    assert_eq!(bench.0.left().await, [""; 0]);
}

pub(super) async fn stopping_leaves_nothing_whatever_was_made_unwritable(bench: &Bench) {
    let mut sandbox = bench.start("unwritable").await;
    sh(
        &mut *sandbox,
        "mkdir -p a/b/c && touch a/b/c/f && chmod 000 a/b/c a/b && chmod 500 a . \"$HOME\"",
    )
    .await;
    sandbox.stop().await.unwrap();
    assert_eq!(bench.0.left().await, [""; 0]);
}

pub(super) async fn a_name_is_used_once(bench: &Bench) {
    let mut first = bench.start("twice").await;
    sh(&mut *first, "touch mine").await;
    let again = bench
        .0
        .backend()
        .start(&bench.spec("twice"), &Remembered::default())
        .await;
    assert!(
        again.is_err(),
        "two sandboxes of one name could not be told apart"
    );
    assert_eq!(
        sh(&mut *first, "ls").await,
        "mine\n",
        "the first one stays as it is"
    );
    first.stop().await.unwrap();
}

pub(super) async fn what_was_not_stopped_is_reaped_and_reaping_again_is_no_failure(bench: &Bench) {
    let mark = unique(bench, "reap");
    let ledger = Remembered::default();
    let backend = bench.0.backend();
    let mut left = Vec::new();
    for name in ["left-1", "left-2"] {
        let mut sandbox = backend.start(&bench.spec(name), &ledger).await.unwrap();
        run(&mut *sandbox, &boot(&mark)).await.0.unwrap();
        // As if this process had died.
        std::mem::forget(sandbox);
        let created = ledger.created.lock().unwrap();
        let id = created
            .iter()
            .find(|(created, _)| *created == bench.spec(name).name);
        left.push(LeftSandbox {
            name: bench.spec(name).name,
            id: id.map(|(_, id)| id.clone()),
        });
    }
    // Its name was written down, and then it was never created.
    left.push(LeftSandbox {
        name: "never-created".to_owned(),
        id: None,
    });
    assert!(bench.0.marked(&mark).await > 0);
    for deleted in [2, 0] {
        let reaped = backend.reaper().reap(bench.0.run_id(), &left).await.unwrap();
        assert!(reaped.failed.is_empty(), "{:?}", reaped.failed);
        assert_eq!(
            reaped.deleted, deleted,
            "what was there is counted, and nothing else"
        );
        assert_eq!(bench.0.left().await, [""; 0]);
        assert_eq!(bench.0.marked(&mark).await, 0);
    }
}

pub(super) async fn reaping_takes_only_its_own_run(bench: &Bench) {
    let mut sandbox = bench.start("mine").await;
    bench.0.backend().reaper().reap("r2", &[]).await.unwrap();
    let (exit, _) = run(&mut *sandbox, &shell("exit 0")).await;
    assert_eq!(exit.unwrap(), Exit::Code(0));
    sandbox.stop().await.unwrap();
}
