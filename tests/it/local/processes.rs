//! Commands: how they end, what they see, and that nothing of them stays.

use std::collections::BTreeMap;
use std::process::Stdio;

use evalwave::config::{HomeMode, LandlockMode, NetworkMode};
use evalwave::model::ErrorClass;
use evalwave::sandbox::{Command, Exit};
use tokio::sync::mpsc;

use crate::support::sandbox::{PATIENCE, argv, run, sh, shell, start};
use crate::support::{Suite, only_in_ci};

use super::{Bench, marked, skipped, wait_for_end};

/// Six ways to leave a process behind, then the word `ready`.
const LEAVE: &str = "
    sleep 1000 &
    nohup sleep 1000 >/dev/null 2>&1 &
    setsid sleep 1000 >/dev/null 2>&1 &
    (setsid sh -c 'sleep 1000 & sleep 1000 & exit 0' &)
    (trap '' TERM HUP INT; sleep 1000) &
    sh -c '(sh -c \"(sleep 1000 &) ; sleep 1000\" &)'
    echo ready
";

fn with_mark(mark: &str, text: &str) -> Command {
    Command {
        env: vec![("MARK".to_owned(), mark.to_owned())],
        ..shell(text)
    }
}

#[tokio::test]
async fn exit_codes_and_signals_are_told_apart() {
    let bench = Bench::new();
    let backend = bench.backend();
    let mut sandbox = start(&backend, "a").await;
    for (text, exit) in [
        ("exit 0", Exit::Code(0)),
        ("exit 7", Exit::Code(7)),
        ("exit 137", Exit::Code(137)),
        ("kill -TERM $$", Exit::Signal(15)),
        ("kill -KILL $$", Exit::Signal(9)),
        // The process group is the command's own: this must not reach the supervisor.
        ("trap 'exit 3' TERM; kill -TERM 0; exit 4", Exit::Code(3)),
    ] {
        assert_eq!(run(&mut *sandbox, &shell(text)).await.0.unwrap(), exit, "{text}");
    }
    sandbox.stop().await.unwrap();
}

#[tokio::test]
async fn a_program_that_cannot_run_is_the_commands_failure_as_in_a_shell() {
    let bench = Bench::new();
    bench.write("plain.txt", "text");
    let backend = bench.backend();
    let mut sandbox = start(&backend, "a").await;
    sandbox.upload(&bench.workspace(&["plain.txt"])).await.unwrap();
    let (exit, output) = run(&mut *sandbox, &argv(&["no-such-program", "x"])).await;
    assert_eq!(exit.unwrap(), Exit::Code(127));
    assert!(output.starts_with("cannot run `no-such-program`: "), "{output}");
    let (exit, output) = run(&mut *sandbox, &argv(&["./plain.txt"])).await;
    assert_eq!(exit.unwrap(), Exit::Code(126), "{output}");
    sandbox.stop().await.unwrap();
}

#[tokio::test]
async fn arguments_arrive_as_they_are() {
    let bench = Bench::new();
    let backend = bench.backend();
    let mut sandbox = start(&backend, "a").await;
    let words = ["printf", "%s|", "a b", "", "$HOME", "--", "'\"", "\u{e9}\n"];
    let (_, output) = run(&mut *sandbox, &argv(&words)).await;
    assert_eq!(output, "a b||$HOME|--|'\"|\u{e9}\n|");
    sandbox.stop().await.unwrap();
}

#[tokio::test]
async fn the_environment_is_built_from_nothing() {
    let bench = Bench::new();
    let backend = bench.backend();
    let mut sandbox = start(&backend, "a").await;
    let command = Command {
        env: vec![
            ("TOKEN".to_owned(), "a=b\nc".to_owned()),
            ("LANG".to_owned(), "fr_FR.UTF-8".to_owned()),
        ],
        ..argv(&["env", "-0"])
    };
    let (_, output) = run(&mut *sandbox, &command).await;
    let found: BTreeMap<&str, &str> = output
        .split_terminator('\0')
        .filter_map(|variable| variable.split_once('='))
        .collect();
    let directory = bench.temporary.join("evalwave-r1/a");
    let (home, temporary) = (directory.join("home"), directory.join("tmp"));
    let expected = BTreeMap::from([
        ("PATH", "/usr/bin:/bin"),
        ("HOME", home.as_str()),
        ("LANG", "fr_FR.UTF-8"),
        ("TMPDIR", temporary.as_str()),
        ("TOKEN", "a=b\nc"),
    ]);
    assert_eq!(found, expected);
    sh(
        &mut *sandbox,
        "test \"$LANG\" = C.UTF-8 && touch \"$HOME/a\" \"$TMPDIR/b\"",
    )
    .await;
    let (_, input) = run(&mut *sandbox, &argv(&["readlink", "/proc/self/fd/0"])).await;
    assert_eq!(input, "/dev/null\n");
    sandbox.stop().await.unwrap();
}

#[tokio::test]
async fn the_users_home_is_inherited_where_asked_for() {
    let mut bench = Bench::new();
    bench.config.home = HomeMode::Inherit;
    let backend = bench.backend();
    let mut sandbox = start(&backend, "a").await;
    sh(&mut *sandbox, "touch \"$HOME/login\"").await;
    sandbox.stop().await.unwrap();
    assert!(bench.temporary.with_file_name("home").join("login").exists());
    let mut options = bench.options();
    options.home = None;
    let refused = evalwave::sandbox::local::LocalBackend::new(&bench.config, options, &bench.source);
    assert!(refused.unwrap_err().to_string().contains("`HOME` is not set"));
}

#[test]
fn commands_get_the_limit_on_open_files_that_evalwave_had() {
    let attempt = "format: exit-code\nkeep: { path: limits }";
    let suite = Suite::scripted("a/one", attempt, "", "(ulimit -S -n; ulimit -S -c) > limits");
    let text = "ulimit -S -n 256 && exec \"$0\" run -o out";
    let run = std::process::Command::new("sh")
        .args(["-c", text, env!("CARGO_BIN_EXE_evalwave")])
        .current_dir(suite.path())
        .output()
        .unwrap();
    assert!(run.status.success(), "{run:?}");
    assert_eq!(suite.read("out/attempts/a__one/1/files/limits"), "256\n0\n");
}

#[tokio::test]
async fn both_streams_arrive_in_order() {
    let bench = Bench::new();
    let backend = bench.backend();
    let mut sandbox = start(&backend, "a").await;
    let output = sh(
        &mut *sandbox,
        "for i in 1 2 3; do echo out$i; echo err$i >&2; done",
    )
    .await;
    assert_eq!(output, "out1\nerr1\nout2\nerr2\nout3\nerr3\n");
    sandbox.stop().await.unwrap();
}

#[tokio::test]
async fn much_output_streams_through_in_small_chunks() {
    let bench = Bench::new();
    let backend = bench.backend();
    let mut sandbox = start(&backend, "a").await;
    let (sender, mut receiver) = mpsc::channel::<Vec<u8>>(1);
    let count = tokio::spawn(async move {
        let (mut bytes, mut largest) = (0, 0);
        while let Some(chunk) = receiver.recv().await {
            bytes += chunk.len();
            largest = largest.max(chunk.capacity());
        }
        (bytes, largest)
    });
    let command = shell("head -c 10000000 /dev/zero; printf end");
    assert_eq!(sandbox.exec(&command, &sender).await.unwrap(), Exit::Code(0));
    drop(sender);
    let (bytes, largest) = count.await.unwrap();
    assert_eq!(bytes, 10_000_003);
    assert!(largest <= 16 * 1024, "{largest}");
    sandbox.stop().await.unwrap();
}

#[tokio::test]
async fn a_receiver_that_is_gone_does_not_hold_the_command_up() {
    let bench = Bench::new();
    let backend = bench.backend();
    let mut sandbox = start(&backend, "a").await;
    let (sender, receiver) = mpsc::channel(1);
    drop(receiver);
    let command = shell("head -c 1000000 /dev/zero; exit 5");
    let exit = tokio::time::timeout(PATIENCE, sandbox.exec(&command, &sender))
        .await
        .unwrap();
    assert_eq!(exit.unwrap(), Exit::Code(5));
    sandbox.stop().await.unwrap();
}

#[tokio::test]
async fn whatever_a_command_leaves_behind_is_killed_when_it_ends() {
    for landlock in [LandlockMode::Auto, LandlockMode::Off] {
        let mut bench = Bench::new();
        bench.config.landlock = landlock;
        let backend = bench.backend();
        let mut sandbox = start(&backend, "a").await;
        let mark = format!("end-{landlock:?}");
        let (exit, output) = run(&mut *sandbox, &with_mark(&mark, &format!("{LEAVE} exit 9"))).await;
        assert_eq!((exit.unwrap(), output.as_str()), (Exit::Code(9), "ready\n"));
        assert_eq!(marked(&mark), [0; 0], "{landlock:?}");
        sandbox.stop().await.unwrap();
    }
}

#[tokio::test]
async fn a_chain_of_forks_does_not_outrun_the_killing() {
    let bench = Bench::new();
    let backend = bench.backend();
    let mut sandbox = start(&backend, "a").await;
    // Each link starts the next and ends, for ever, each in a session of its own; twenty chains at once.
    bench.write("chain.sh", "exec setsid -f sh ./chain.sh >/dev/null 2>&1");
    sandbox.upload(&bench.workspace(&["chain.sh"])).await.unwrap();
    let text = "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do sh ./chain.sh; done";
    let (exit, _) = run(&mut *sandbox, &with_mark("chain", text)).await;
    assert_eq!(exit.unwrap(), Exit::Code(0));
    assert_eq!(marked("chain"), [0; 0]);
    sandbox.stop().await.unwrap();
}

#[tokio::test]
async fn dropping_a_command_kills_it_with_everything_it_started() {
    let bench = Bench::new();
    let backend = bench.backend();
    let mut sandbox = start(&backend, "a").await;
    let (sender, mut receiver) = mpsc::channel(1);
    let command = with_mark("drop", &format!("{LEAVE} wait"));
    tokio::select! {
        _ = sandbox.exec(&command, &sender) => panic!("it waits for ever"),
        chunk = receiver.recv() => assert_eq!(chunk.unwrap(), b"ready\n"),
    }
    sandbox.stop().await.unwrap();
    assert_eq!(marked("drop"), [0; 0]);
    drop(backend);
    assert_eq!(bench.left(), 0);
}

#[tokio::test]
async fn a_dropped_command_is_gone_before_the_next_one_starts() {
    let bench = Bench::new();
    let backend = bench.backend();
    let mut sandbox = start(&backend, "a").await;
    let (sender, mut receiver) = mpsc::channel(1);
    let command = with_mark("next", &format!("{LEAVE} wait"));
    tokio::select! {
        _ = sandbox.exec(&command, &sender) => panic!("it waits for ever"),
        _ = receiver.recv() => {}
    }
    sh(&mut *sandbox, "exit 0").await;
    assert_eq!(marked("next"), [0; 0]);
    sandbox.stop().await.unwrap();
}

#[tokio::test]
async fn a_command_that_kills_its_supervisor_is_a_lost_sandbox_and_does_not_escape() {
    let mut bench = Bench::new();
    bench.config.landlock = LandlockMode::Off;
    let backend = bench.backend();
    let mut sandbox = start(&backend, "a").await;
    let text = format!("{LEAVE} kill -KILL $PPID; wait");
    let (exit, _) = run(&mut *sandbox, &with_mark("patricide", &text)).await;
    assert_eq!(exit.unwrap_err().class, Some(ErrorClass::SandboxLost));
    for pid in marked("patricide") {
        wait_for_end(pid);
    }
    sandbox.stop().await.unwrap();
    assert_eq!(marked("patricide"), [0; 0]);
}

#[tokio::test]
async fn daemons_live_until_stop_where_they_are_to_be_kept() {
    let bench = Bench::new();
    let backend = bench.backend();
    let mut sandbox = start(&backend, "a").await;
    let boot = Command {
        keeps_daemons: true,
        ..with_mark(
            "daemon",
            "sh -c 'trap \"touch asked\" USR1; echo $$ >pid; while :; do sleep 1000 & wait; echo noise; done' &
             until test -s pid; do :; done; (cd / && setsid sleep 1000 &); echo booted",
        )
    };
    let (exit, output) = run(&mut *sandbox, &boot).await;
    assert_eq!((exit.unwrap(), output.as_str()), (Exit::Code(0), "booted\n"));
    assert!(marked("daemon").len() >= 3, "{:?}", marked("daemon"));
    // The next command reaches it, and its output, which nobody reads, does not kill it.
    sh(
        &mut *sandbox,
        "kill -USR1 $(cat pid); until test -e asked; do :; done",
    )
    .await;
    assert!(marked("daemon").len() >= 3);
    sandbox.stop().await.unwrap();
    assert_eq!(marked("daemon"), [0; 0]);
}

#[tokio::test]
async fn a_boot_command_without_daemons_leaves_nothing_running() {
    let bench = Bench::new();
    let backend = bench.backend();
    let mut sandbox = start(&backend, "a").await;
    let boot = Command {
        keeps_daemons: true,
        ..with_mark("boot", "echo KEY=1 >.env")
    };
    assert_eq!(run(&mut *sandbox, &boot).await.0.unwrap(), Exit::Code(0));
    assert_eq!(marked("boot"), [0; 0]);
    assert_eq!(sh(&mut *sandbox, "cat .env").await, "KEY=1\n");
    sandbox.stop().await.unwrap();
}

#[tokio::test]
async fn a_confined_command_writes_only_to_its_own_files() {
    let bench = Bench::new();
    if bench.source.starts_with("/tmp") {
        skipped("this build lies below /tmp, where every attempt may write");
        return;
    }
    bench.write("file", "text");
    let backend = bench.backend();
    let mut sandbox = start(&backend, "a").await;
    let _other = start(&backend, "b").await;
    let probe = format!(
        "echo x >inside && echo x >/dev/null && touch /tmp/$$ && rm /tmp/$$ && cat {source}/file || exit 1
         touch {source}/new 2>/dev/null && echo source
         touch {run}/b/workspace/new 2>/dev/null && echo other
         kill -0 $PPID 2>/dev/null && echo signal
         cat /proc/$PPID/environ >/dev/null 2>&1 && echo environment
         exit 0",
        source = bench.source,
        run = bench.temporary.join("evalwave-r1")
    );
    let output = sh(&mut *sandbox, &probe).await;
    let confinement = sandbox.confinement();
    if confinement.iter().any(|word| word.starts_with("not confined")) {
        skipped(&confinement.join(", "));
        return;
    }
    let promised = |what| confinement.iter().any(|word| word.contains(what));
    let mut expected = "text".to_owned();
    if !promised("signals") {
        expected += "signal\n";
    }
    if !promised("looked into") {
        expected += "environment\n";
    }
    assert_eq!(output, expected, "{confinement:?}");
    sandbox.stop().await.unwrap();
}

#[tokio::test]
async fn a_command_without_network_cannot_connect() {
    let mut bench = Bench::new();
    bench.config.network = NetworkMode::None;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let connect =
        format!("bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port}' 2>/dev/null && echo connected; exit 0");
    let backend = bench.backend();
    let mut sandbox = start(&backend, "a").await;
    let output = sh(&mut *sandbox, &connect).await;
    let refused = sandbox.confinement().contains(&"Landlock: no TCP".to_owned());
    assert_eq!(output, if refused { "" } else { "connected\n" });
    sandbox.stop().await.unwrap();

    bench.config.network = NetworkMode::Inherit;
    let backend = bench.backend();
    let mut sandbox = start(&backend, "b").await;
    assert_eq!(sh(&mut *sandbox, &connect).await, "connected\n");
    sandbox.stop().await.unwrap();
}

#[tokio::test]
async fn an_unconfined_command_is_called_that() {
    let mut bench = Bench::new();
    bench.config.landlock = LandlockMode::Off;
    let backend = bench.backend();
    let mut sandbox = start(&backend, "a").await;
    sh(&mut *sandbox, &format!("touch {}/new", bench.source)).await;
    assert_eq!(sandbox.confinement(), ["not confined: `landlock: off`"]);
    sandbox.stop().await.unwrap();
}

#[test]
fn nothing_survives_when_evalwave_itself_is_killed() {
    let attempt = "format: exit-code\nenv: { MARK: orphans }\nenv-from: [READY]";
    let suite = Suite::scripted("a/one", attempt, "", &format!("{LEAVE} touch \"$READY\"; wait"));
    let ready = suite.path().join("ready");
    let mut killed = std::process::Command::new(env!("CARGO_BIN_EXE_evalwave"))
        .args(["run", "-o", "out"])
        .current_dir(suite.path())
        .env("READY", &ready)
        .env("TMPDIR", suite.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    while !ready.exists() {
        assert!(killed.try_wait().unwrap().is_none(), "the run ended early");
        std::thread::yield_now();
    }
    let orphans = marked("orphans");
    assert!(orphans.len() >= 7, "{orphans:?}");
    killed.kill().unwrap();
    killed.wait().unwrap();
    orphans.into_iter().for_each(wait_for_end);
    assert_eq!(marked("orphans"), [0; 0]);
}

#[test]
fn a_command_that_cannot_be_looked_after_is_not_left_running() {
    let Some(unshare) = only_in_ci("EVALWAVE_TEST_UNSHARE") else {
        return;
    };
    // A user who may have two threads: the supervisor's own, and either the command or the one that watches it.
    let script = "mount -t tmpfs none /mnt; touch /mnt/evalwave; mount --bind \"$0\" /mnt/evalwave
        exec setpriv --reuid 54321 --regid 54321 --clear-groups prlimit --nproc=2:2 \
            /mnt/evalwave __attempt -- sleep \"$1\"";
    let mark = format!("20.{}", std::process::id());
    let mut words = unshare.split_whitespace();
    let mut supervisor = std::process::Command::new(words.next().unwrap())
        .args(words)
        .args(["--mount", "sh", "-e", "-c", script])
        .args([env!("CARGO_BIN_EXE_evalwave"), &mark])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    // Closed, it would be the order to kill.
    let link = supervisor.stdin.take();
    assert_eq!(supervisor.wait().unwrap().code(), Some(1));
    let command = format!("sleep\0{mark}\0").into_bytes();
    let processes = fs_err::read_dir("/proc").unwrap().flatten();
    let left = processes
        .filter_map(|process| fs_err::read(process.path().join("cmdline")).ok())
        .filter(|arguments| *arguments == command);
    assert_eq!(left.count(), 0);
    drop(link);
}
