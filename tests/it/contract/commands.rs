//! How commands end, what they say, and what they see.

use std::collections::BTreeMap;

use evalwave::sandbox::Exit;
use tokio::sync::mpsc;

use super::{Bench, with_env};
use crate::support::sandbox::{PATIENCE, argv, run, sh, shell};

pub(super) async fn exit_codes_and_signals_are_the_commands_own(bench: &Bench) {
    let mut sandbox = bench.start("exits").await;
    for code in [0, 1, 7, 75, 125, 137, 255] {
        let (exit, output) = run(&mut *sandbox, &shell(&format!("exit {code}"))).await;
        assert_eq!((exit.unwrap(), output.as_str()), (Exit::Code(code), ""));
    }
    for signal in [15, 9] {
        let (exit, output) = run(&mut *sandbox, &shell(&format!("kill -{signal} $$"))).await;
        // An engine that is told of exit codes alone gives the shell's.
        let told = [Exit::Signal(signal), Exit::Code(128 + signal)];
        let exit = exit.unwrap();
        assert!(told.contains(&exit), "{exit:?}");
        assert_eq!(output, "");
    }
    let text = "trap 'exit 3' TERM; kill -TERM 0; exit 4";
    let exit = run(&mut *sandbox, &shell(text)).await.0;
    assert_eq!(
        exit.unwrap(),
        Exit::Code(3),
        "its process group is the command's own"
    );
    sandbox.stop().await.unwrap();
}

pub(super) async fn a_program_that_cannot_run_fails_as_in_a_shell(bench: &Bench) {
    bench.write("plain.txt", "text");
    let mut sandbox = bench.with_files("programs", &["plain.txt"]).await;
    for (words, code) in [
        (&["no-such-program", "x"][..], 127),
        (&["./plain.txt"], 126),
        // Words of the shell are no programs.
        (&["exit", "0"], 127),
    ] {
        let (exit, output) = run(&mut *sandbox, &argv(words)).await;
        assert_eq!(exit.unwrap(), Exit::Code(code), "{words:?}: {output}");
        assert!(output.contains(words[0]), "{words:?}: {output}");
    }
    assert_eq!(sh(&mut *sandbox, "echo on").await, "on\n");
    sandbox.stop().await.unwrap();
}

pub(super) async fn arguments_arrive_as_they_are(bench: &Bench) {
    let mut sandbox = bench.start("arguments").await;
    let words = [
        "printf", "%s|", "a b", "", "$HOME", "--", "'\"", "\\n*", "\u{e9}\n",
    ];
    let (_, output) = run(&mut *sandbox, &argv(&words)).await;
    assert_eq!(output, "a b||$HOME|--|'\"|\\n*|\u{e9}\n|");
    let text = "printf '%s' \"a  b\" 'it'\\''s' `echo c`; # no more";
    assert_eq!(sh(&mut *sandbox, text).await, "a  bit'sc");
    sandbox.stop().await.unwrap();
}

pub(super) async fn both_streams_arrive_in_order(bench: &Bench) {
    let mut sandbox = bench.start("streams").await;
    let text = "for i in 1 2 3 4 5 6 7 8; do echo out$i; echo err$i >&2; done; printf end";
    let expected: String = (1..=8).map(|i| format!("out{i}\nerr{i}\n")).collect();
    assert_eq!(sh(&mut *sandbox, text).await, expected + "end");
    sandbox.stop().await.unwrap();
}

pub(super) async fn much_output_streams_through_in_small_chunks(bench: &Bench) {
    let mut sandbox = bench.start("much").await;
    let (sender, mut receiver) = mpsc::channel::<Vec<u8>>(1);
    let count = tokio::spawn(async move {
        let (mut bytes, mut largest) = (0, 0);
        while let Some(chunk) = receiver.recv().await {
            bytes += chunk.len();
            largest = largest.max(chunk.len());
        }
        (bytes, largest)
    });
    let command = shell("head -c 10000000 /dev/zero; printf end");
    assert_eq!(sandbox.exec(&command, &sender).await.unwrap(), Exit::Code(0));
    drop(sender);
    let (bytes, largest) = count.await.unwrap();
    assert_eq!(bytes, 10_000_003);
    assert!(largest <= 64 * 1024, "{largest}");
    sandbox.stop().await.unwrap();
}

pub(super) async fn a_receiver_that_is_gone_does_not_hold_the_command_up(bench: &Bench) {
    let mut sandbox = bench.start("gone").await;
    let (sender, receiver) = mpsc::channel(1);
    drop(receiver);
    let command = shell("head -c 1000000 /dev/zero; exit 5");
    let exit = tokio::time::timeout(PATIENCE, sandbox.exec(&command, &sender)).await;
    assert_eq!(exit.unwrap().unwrap(), Exit::Code(5));
    sandbox.stop().await.unwrap();
}

pub(super) async fn the_environment_is_built_from_empty(bench: &Bench) {
    let mut sandbox = bench.start("environment").await;
    let command = with_env(
        &[("TOKEN", "a=b\nc'\"$x"), ("LANG", "fr_FR.UTF-8"), ("EMPTY", "")],
        "cat /proc/self/environ | tr '\\0' '\\1'",
    );
    let (_, output) = run(&mut *sandbox, &command).await;
    let found: BTreeMap<&str, &str> = output
        .split_terminator('\u{1}')
        .filter_map(|variable| variable.split_once('='))
        .collect();
    assert_eq!(found["TOKEN"], "a=b\nc'\"$x");
    assert_eq!((found["LANG"], found["EMPTY"]), ("fr_FR.UTF-8", ""));
    for name in ["PATH", "HOME", "TMPDIR"] {
        assert!(found[name].starts_with('/'), "{name}: {found:?}");
    }
    // This process has them from cargo.
    for name in found.keys() {
        let others = ["CARGO", "RUST", "GITHUB_", "EVALWAVE_TEST", "DOCKER_"];
        assert!(!others.iter().any(|other| name.starts_with(other)), "{name}");
    }
    let next = sh(&mut *sandbox, "echo \"$LANG ${TOKEN-none}\"").await;
    assert_eq!(
        next, "C.UTF-8 none\n",
        "what one command was given is not the next one's"
    );
    sandbox.stop().await.unwrap();
}

pub(super) async fn standard_input_is_empty(bench: &Bench) {
    let mut sandbox = bench.start("input").await;
    assert_eq!(sh(&mut *sandbox, "cat; echo end").await, "end\n");
    sandbox.stop().await.unwrap();
}

pub(super) async fn home_and_the_directory_for_temporary_files_are_the_sandboxs_own(bench: &Bench) {
    let mut one = bench.start("home-one").await;
    let mut other = bench.start("home-other").await;
    let text =
        "set -e; ls \"$HOME\" \"$TMPDIR\" | grep -cx mine || true; touch \"$HOME/mine\" \"$TMPDIR/mine\"";
    assert_eq!(sh(&mut *one, text).await, "0\n");
    assert_eq!(sh(&mut *other, text).await, "0\n");
    assert_eq!(
        sh(&mut *one, text).await,
        "2\n",
        "they stay from command to command"
    );
    one.stop().await.unwrap();
    other.stop().await.unwrap();
}

pub(super) async fn variables_arrive_whatever_a_script_of_the_engines_may_call_its_own(bench: &Bench) {
    let mut sandbox = bench.start("names").await;
    // What scripts call their own, short or in words.
    let letters = ('a'..='z').map(String::from);
    let words = [
        "at",
        "code",
        "command",
        "count",
        "daemons",
        "dir",
        "file",
        "found",
        "home",
        "id",
        "keep",
        "left",
        "memory",
        "name",
        "number",
        "old",
        "out",
        "own",
        "parent",
        "path",
        "pid",
        "result",
        "round",
        "rounds",
        "self",
        "session",
        "spare",
        "stat",
        "state",
        "stay",
        "top",
        "watcher",
        "work",
        "workspace",
    ];
    let names: Vec<String> = letters.chain(words.map(str::to_owned)).collect();
    let env: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "mine")).collect();
    let text: String = names
        .iter()
        .map(|name| format!("[ \"${name}\" = mine ] || echo {name}; "))
        .collect();
    let (exit, output) = run(&mut *sandbox, &with_env(&env, &text)).await;
    assert_eq!((exit.unwrap(), output.as_str()), (Exit::Code(0), ""));
    sandbox.stop().await.unwrap();
}

pub(super) async fn a_secret_is_in_the_environment_and_nowhere_else(bench: &Bench) {
    const SECRET: &str = "hunter2-in-the-environment";
    let mut sandbox = bench.start("secret").await;
    let command = with_env(&[("SECRET", SECRET)], "echo ready; exec sleep 1000");
    let (sender, mut receiver) = mpsc::channel(16);
    let shown = tokio::select! {
        _ = sandbox.exec(&command, &sender) => panic!("it waits for ever"),
        shown = async {
            assert_eq!(receiver.recv().await.unwrap(), b"ready\n");
            bench.0.shown().await
        } => shown,
    };
    assert!(shown.contains("secret"), "the sandbox itself is seen: {shown}");
    assert!(!shown.contains(SECRET), "{shown}");
    sandbox.stop().await.unwrap();
}
