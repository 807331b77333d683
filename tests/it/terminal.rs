//! The live view, in a real terminal: what a person sees on the screen while a run goes on and after it.

use std::cell::Cell;
use std::time::{Duration, Instant};

use assert_cmd::Command;

use crate::support::Suite;

/// Where `.ci/run` says that tmux is.
const TMUX: &str = "EVALWAVE_TEST_TMUX";

/// No screen takes longer to show what it is to show.
const PATIENCE: Duration = Duration::from_secs(30);

/// A run that waits for files: `first` lets the first eval's attempts end, `others` the others'.
const WAITS: &str = r#"
[ "$EVALWAVE_EVAL" = first ] && gate=first || gate=others
until [ -e "$GATES/$gate" ]; do sleep 0.05; done
case $EVALWAVE_EVAL in
  first) echo '{"passed": true}' > result.json ;;
  second) echo '{"passed": false}' > result.json ;;
  *) exit 9 ;;
esac
"#;

/// A shell in a terminal of its own.
struct Screen {
    tmux: String,
    socket: String,
    suite: Suite,
    /// How many runs were started.
    starts: Cell<u32>,
}

impl Screen {
    /// `None`, said, where there is no tmux.
    fn new(columns: u32, rows: u32) -> Option<Self> {
        let Ok(tmux) = std::env::var(TMUX) else {
            eprintln!("not run: `{TMUX}` does not say where tmux is; .ci/run installs it and does");
            return None;
        };
        let suite = Suite::new("");
        let pairs = ["careful", "hasty"]
            .iter()
            .flat_map(|experiment| ["first", "second", "third"].map(|eval| (experiment, eval)))
            .map(|(experiment, eval)| format!("{{ experiment: {experiment}, eval: {eval} }}"))
            .collect::<Vec<_>>();
        suite.write(
            "evalwave.yml",
            &format!(
                "version: 1\nsuite: {{ name: t, pairs: [{}] }}\nstrategy: parallel\nruns: 2\nretry: {{ tries: 1 }}\nattempt:\n  command: sh attempt.sh\n  result: result.json\n  env: {{ GATES: {} }}\n",
                pairs.join(", "),
                suite.path()
            ),
        );
        suite.write("attempt.sh", WAITS);
        let screen = Self {
            tmux,
            socket: format!("{}/tmux", suite.path()),
            suite,
            starts: Cell::new(0),
        };
        let size = [columns.to_string(), rows.to_string()];
        let shell = "env -i PATH=\"$PATH\" HOME=\"$HOME\" TERM=\"$TERM\" PS1='ready> ' LC_ALL=C.UTF-8 sh -i";
        screen.tmux(&[
            "-f",
            "/dev/null",
            "-u",
            "new-session",
            "-d",
            "-x",
            &size[0],
            "-y",
            &size[1],
            shell,
        ]);
        screen.wait_for("ready>");
        Some(screen)
    }

    fn tmux(&self, arguments: &[&str]) -> String {
        let done = Command::new(&self.tmux)
            .args(["-S", &self.socket])
            .args(arguments)
            .current_dir(self.suite.path())
            .env_remove("TMUX")
            .assert()
            .success();
        String::from_utf8(done.get_output().stdout.clone()).unwrap()
    }

    fn type_line(&self, line: &str) {
        self.tmux(&["send-keys", "-l", line]);
        self.tmux(&["send-keys", "Enter"]);
    }

    /// Starts the suite with variables and flags; the shell says how it ended.
    fn start(&self, variables: &str, flags: &str) {
        let program = assert_cmd::cargo::cargo_bin("evalwave");
        let script = format!("exec {} \"$@\"\n", program.display());
        self.suite.write("evalwave.sh", &script);
        self.starts.set(self.starts.get() + 1);
        let number = self.starts.get();
        self.type_line(&format!(
            "{variables} sh evalwave.sh run -o out {flags}; echo \"run {number} ended: $?.\""
        ));
    }

    /// Waits for the end of what was started last.
    fn wait_for_exit(&self, code: u32) {
        self.wait_for(&format!("run {} ended: {code}.", self.starts.get()));
    }

    fn open(&self, gate: &str) {
        self.suite.write(gate, "");
    }

    /// What is seen, and what has gone out of sight above it.
    fn everything(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-J", "-S", "-"])
    }

    /// What is seen once it holds `text`.
    fn wait_for(&self, text: &str) -> String {
        let begun = Instant::now();
        loop {
            let seen = self.tmux(&["capture-pane", "-p"]);
            if seen.contains(text) {
                return seen;
            }
            assert!(begun.elapsed() < PATIENCE, "no `{text}` in:\n{seen}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

/// Parts of the live view that nothing else holds.
const VIEW: [&str; 3] = [" so far", "oldest:", "running"];

#[test]
fn the_view_is_drawn_anew_follows_the_terminals_size_and_leaves_only_the_summary() {
    let Some(screen) = Screen::new(100, 30) else {
        return;
    };
    // Most runs start at the bottom of a full screen.
    screen.type_line("seq 60");
    screen.start("", "");
    let seen = screen.wait_for("0/12 attempts · 12 running");
    assert!(seen.contains("time left unknown"), "{seen}");
    assert!(seen.contains("careful       0/6"), "{seen}");
    screen.open("first");
    let seen = screen.wait_for("4/12 attempts · 4 passed · 8 running");
    assert!(!seen.contains("0/12 attempts"), "{seen}");
    screen.tmux(&["resize-window", "-x", "44", "-y", "12"]);
    let seen = screen.wait_for("· 8 running\n");
    assert_eq!(seen.matches("4/12 attempts").count(), 1, "{seen}");
    assert_eq!(seen.matches("experiment  ended").count(), 1, "{seen}");
    screen.tmux(&["resize-window", "-x", "120", "-y", "40"]);
    screen.wait_for("4/12 attempts · 4 passed · 8 running · ");
    screen.open("others");
    screen.wait_for_exit(3);
    let everything = screen.everything();
    for part in VIEW {
        assert!(!everything.contains(part), "`{part}` is left:\n{everything}");
    }
    let after: Vec<&str> = everything
        .lines()
        .skip_while(|line| !line.contains("/12 errored"))
        .collect();
    assert_eq!(everything.matches(" errored   ").count(), 4, "{everything}");
    assert!(
        after.iter().any(|line| line.starts_with("2/4 passed (50.0 %)")),
        "{everything}"
    );
    assert!(after.contains(&"results in out"), "{everything}");
}

#[test]
fn an_interrupt_ends_the_view_and_is_answered() {
    let Some(screen) = Screen::new(80, 24) else { return };
    screen.start("", "");
    screen.open("first");
    screen.wait_for("4/12 attempts");
    screen.tmux(&["send-keys", "C-c"]);
    screen.wait_for_exit(130);
    let everything = screen.everything();
    for part in VIEW.into_iter().chain(["^C"]) {
        assert!(!everything.contains(part), "`{part}` is left:\n{everything}");
    }
    assert_eq!(
        everything.matches("cancelling: nothing more starts").count(),
        1,
        "{everything}"
    );
    assert!(everything.contains("results in out"), "{everything}");
}

#[test]
fn a_run_that_is_stopped_and_continued_leaves_what_its_shell_wrote() {
    let Some(screen) = Screen::new(80, 24) else { return };
    screen.start("", "");
    screen.open("first");
    screen.wait_for("4/12 attempts");
    screen.tmux(&["send-keys", "C-z"]);
    screen.wait_for("Stopped");
    screen.type_line("echo kept; fg");
    screen.wait_for("kept");
    screen.open("others");
    // The shell has taken a stopped job for an ended one, and said so.
    screen.wait_for("results in out");
    let everything = screen.everything();
    assert!(
        everything.contains("kept") && everything.contains("Stopped"),
        "{everything}"
    );
}

#[test]
fn colour_is_for_those_who_want_it() {
    let Some(screen) = Screen::new(100, 30) else {
        return;
    };
    let colored = |screen: &Screen| screen.tmux(&["capture-pane", "-p", "-e"]).contains("\u{1b}[3");
    screen.open("first");
    screen.start("", "");
    screen.wait_for("4/12 attempts");
    assert!(colored(&screen));
    screen.open("others");
    screen.wait_for_exit(3);
    fs_err::remove_file(screen.suite.path().join("others")).unwrap();
    screen.type_line("clear");
    screen.start("NO_COLOR=1", "--overwrite");
    screen.wait_for("4/12 attempts");
    assert!(!colored(&screen));
    screen.open("others");
    screen.wait_for_exit(3);
    assert!(!colored(&screen));
}

#[test]
fn in_ci_and_on_a_dumb_terminal_there_are_lines_and_no_view() {
    let Some(screen) = Screen::new(100, 60) else {
        return;
    };
    screen.open("first");
    screen.open("others");
    for variables in ["CI=true", "TERM=dumb"] {
        screen.start(variables, "--overwrite");
        screen.wait_for_exit(3);
        let everything = screen.everything();
        let (_, everything) = everything.rsplit_once(variables).unwrap();
        assert_eq!(everything.matches("/12 passed    ").count(), 4, "{everything}");
        assert!(!everything.contains("so far"), "{everything}");
    }
}

#[test]
fn a_terminal_without_utf_8_is_given_ascii() {
    let Some(screen) = Screen::new(44, 40) else { return };
    screen.open("first");
    screen.start("LC_ALL=C", "");
    let view = screen.wait_for("4/12 attempts");
    assert!(view.is_ascii(), "{view}");
    screen.open("others");
    screen.wait_for_exit(3);
    let everything = screen.everything();
    assert!(everything.is_ascii(), "{everything}");
}

#[test]
fn quiet_shows_what_goes_wrong_and_the_summary_and_verbose_each_start() {
    let suite = Suite::scripted(
        "a/one a/two",
        "result: result.json",
        "",
        "[ $EVALWAVE_EVAL = two ] && exit 9; echo '{\"passed\": true}' > result.json",
    );
    let run = |flags: &str| {
        let (run, _) = suite.run(&format!("--overwrite --runs 1 {flags}"));
        crate::support::stderr(&run.code(3))
    };
    assert_eq!(run("--quiet"), "");
    assert!(crate::support::stdout(&suite.ev("run -q -o other").code(3)).contains("1/1 passed"));
    let usual = run("");
    assert!(
        usual.contains("passed    a × one #1") && !usual.contains("started"),
        "{usual}"
    );
    let verbose = run("-v");
    assert!(verbose.contains("started   a × one #1"), "{verbose}");
    assert!(verbose.contains("started   a × two #1, try 2"), "{verbose}");
    suite.ev("run -q -v").code(2);
}
