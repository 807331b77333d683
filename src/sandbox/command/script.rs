//! The shell scripts that are run in a sandbox by the user's `exec`: text out, nothing else. They need a POSIX shell
//! and the usual small tools, and `tar` to move files.
//!
//! Each script is one group of commands, so that a shell reads it whole before it does anything: of a script that is
//! cut off nothing runs. What comes on standard input after it is data. A line with the script's mark says that it has
//! begun, another how it ended.

use std::fmt::Write as _;

use camino::Utf8Path;

use super::quote::quoted;
use crate::config::CommandLine;
use crate::sandbox::disk::LEFT;

/// The directory that evalwave makes where `exec` starts its shell.
pub(super) const DIRECTORY: &str = "evalwave";
/// The variable by which the processes of one command are known.
const MARK_VARIABLE: &str = "EVALWAVE_EXEC";
/// The variable that an engine has handed on where the commands see evalwave's own environment.
pub(super) const HOST_VARIABLE: &str = "EVALWAVE_HOST";

/// Kills what a command started: its session, and whatever carries a mark that begins with `o`. No two versions of grep
/// agree on how to read an environment, so that tail names the files and awk reads the lines.
const END: &str = r#"end() {
  if [ -s ../command ] && read -r p <../command; then kill -KILL "-$p" "$p" 2>/dev/null; fi
  n=0
  while [ "$n" -lt 50 ]; do
    f=$(tail -c +1 /dev/null /proc/[0-9]*/environ 2>/dev/null | tr '\0' '\n' | awk -v "m=EVALWAVE_EXEC=$o" '
      /^==> \/proc\/[0-9]+\/environ <==$/ { split($2, part, "/"); p = part[3] }
      index($0, m) == 1 { print p }')
    # One that is being born is seen the second time.
    if [ -z "$f" ]; then n=$((n + 25)); fi
    for e in $f; do kill -KILL "$e" 2>/dev/null; done
    n=$((n + 1))
  done
  rm -f ../command
}
"#;

/// Of an environment that an engine has handed on from evalwave's machine, only PATH is left.
const CLEAR: &str = r#"if [ -n "${EVALWAVE_HOST+x}" ]; then
  for v in $(env | sed -n 's/^\([A-Za-z_][A-Za-z0-9_]*\)=.*/\1/p'); do
    case $v in PATH | PWD | IFS) ;; *) unset "$v" ;; esac
  done
fi
"#;

/// What a path is: sets `k` to `none`, `outside`, `file` or `dir`, and `d` to the directory that holds it.
const LOOK: &str = r#"look() {
  k=none
  d=$(cd -P -- "$1" 2>/dev/null && pwd -P) || return 0
  t=$d/$2
  if [ -d "$t" ]; then
    k=dir; t=$(cd -P -- "$t" && pwd -P)
  elif [ -f "$t" ]; then
    k=file; if [ -h "$t" ]; then t=$(readlink -f -- "$t"); fi
  else
    return 0
  fi
  case $t/ in "$w"/*) ;; *) k=outside ;; esac
}
"#;

/// Deletes a path below the workspace, also where a command took the right to do so away.
const GONE: &str = r#"gone() {
  d=$(cd -P -- "$1" 2>/dev/null && pwd -P) || return 0
  case $d/ in "$w"/*) ;; *) return 0 ;; esac
  rm -rf -- "$d/$2" 2>/dev/null && return 0
  chmod -R u+rwX -- "$d/$2" 2>/dev/null
  chmod u+rwx -- "$d" 2>/dev/null
  rm -rf -- "$d/$2"
}
"#;

/// What every script does first.
#[derive(Debug)]
pub(super) struct Preamble<'a> {
    /// The mark of its lines, which nothing else prints.
    pub(super) mark: &'a str,
    /// The mark of processes that are to be killed first: those of a command that was given up, or all.
    pub(super) kill: Option<&'a str>,
    /// What is to be deleted first.
    pub(super) delete: &'a [Removal],
}

/// Paths in the workspace that are deleted together, and once: what is there later is a command's.
#[derive(Clone, Debug)]
pub(super) struct Removal {
    /// By which the sandbox remembers it; nobody can know it before.
    pub(super) mark: String,
    pub(super) paths: Vec<(String, String)>,
}

/// A path as the directory that holds it, and its name in there; the workspace itself is `.` in `.`.
pub(super) fn parted(path: &Utf8Path) -> (String, String) {
    let parent = path
        .parent()
        .map(Utf8Path::as_str)
        .filter(|parent| !parent.is_empty());
    (
        parent.map_or_else(|| ".".to_owned(), |parent| format!("./{parent}")),
        path.file_name().unwrap_or(".").to_owned(),
    )
}

impl Preamble<'_> {
    /// Makes the directories, and goes to the workspace; `w` is its path.
    fn text(&self) -> String {
        let mut text = "{\nunset CDPATH\nPATH=${PATH:-/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin}; export PATH\n".to_owned();
        let _ = writeln!(text, "m={}", self.mark);
        let _ = writeln!(
            text,
            "mkdir -p {DIRECTORY}/workspace {DIRECTORY}/home {DIRECTORY}/tmp && cd {DIRECTORY}/workspace || exit 1\nw=$(pwd -P)"
        );
        text.push_str(END);
        if let Some(kill) = self.kill {
            let _ = writeln!(text, "o={}; end", quoted(kill));
        }
        if !self.delete.is_empty() {
            text.push_str(GONE);
        }
        for Removal { mark, paths } in self.delete {
            let _ = writeln!(text, "if [ ! -e ../{mark} ]; then");
            for (directory, name) in paths {
                let _ = writeln!(text, "gone {} {} || exit 1", quoted(directory), quoted(name));
            }
            let _ = writeln!(text, "true 2>/dev/null >../{mark}\nfi");
        }
        text
    }
}

/// Says `begin` and what `word` expands to.
fn begin(word: &str) -> String {
    format!("printf '%s begin %s\\n' \"$m\" \"{word}\"\n")
}

/// Says `end` with the status in `c`, and leaves whatever may follow on standard input unread.
const FINISH: &str = "printf '%s end %s\\n' \"$m\" \"$c\"\nexit 0\n}\n";

/// Makes the workspace, and says where it is.
pub(super) fn look_around(preamble: &Preamble<'_>) -> String {
    format!("{}{}c=0\n{FINISH}", preamble.text(), begin("$w"))
}

/// Unpacks the tar that follows on standard input.
pub(super) fn unpack(preamble: &Preamble<'_>) -> String {
    format!("{}{}tar -xof -\nc=$?\n{FINISH}", preamble.text(), begin("$w"))
}

/// Unpacks a tar that is a part of the script, for an `exec` without standard input.
pub(super) fn unpack_enclosed(preamble: &Preamble<'_>, base64: &str) -> String {
    format!(
        "{}{}base64 -d <<'{mark}' | tar -xof -\n{base64}\n{mark}\nc=$?\n{FINISH}",
        preamble.text(),
        begin("$w"),
        mark = preamble.mark,
    )
}

/// Says what the path is, and the directory that holds it; then, with `pack`, writes a tar of it, its entries named from
/// its last component on. A link is looked through: what it leads to is copied to where it has the link's name.
pub(super) fn look_at(preamble: &Preamble<'_>, path: &Utf8Path, pack: bool) -> String {
    let (directory, name) = parted(path);
    let (directory, name) = (quoted(&directory), quoted(&name));
    let mut text = preamble.text();
    text.push_str(LOOK);
    // What an attempt made unreadable is its own user's still.
    let _ = write!(
        text,
        r#"n={name}
look {directory} "$n"
if [ "$k" = dir ] || [ "$k" = file ]; then
  [ "$(id -u)" = 0 ] || chmod -R u+rX -- "$t" 2>/dev/null
  if [ -h "$d/$n" ]; then
    rm -rf ../link && mkdir ../link && cp -RPp -- "$t" "../link/$n" || exit 1
    d=$(cd ../link && pwd -P)
  fi
fi
"#
    );
    text.push_str(&begin("$k $d"));
    text.push_str("c=0\n");
    if pack {
        // A file that grows meanwhile is no failure.
        text.push_str(
            r#"if [ "$k" = dir ] || [ "$k" = file ]; then
  tar -C "$d" -cf - -- "$n"
  c=$?
  if [ "$c" = 1 ] && tar --version 2>/dev/null | grep -q GNU; then c=0; fi
fi
"#,
        );
    }
    text.push_str(FINISH);
    text
}

/// Writes the path of everything below the directory, each followed by a NUL.
pub(super) fn list(preamble: &Preamble<'_>, directory: &Utf8Path) -> String {
    let (parent, name) = parted(directory);
    format!(
        "{}{LOOK}look {} {}\n{}c=0\nif [ \"$k\" = dir ]; then (cd -P -- {} && find . -print0); c=$?; fi\n{FINISH}",
        preamble.text(),
        quoted(&parent),
        quoted(&name),
        begin("$k"),
        quoted(&format!("./{directory}")),
    )
}

/// Writes how much is left of the disk, as [`LEFT`] does.
pub(super) fn look_at_disk(preamble: &Preamble<'_>) -> String {
    format!("{}{LEFT}{}left .\nc=0\n{FINISH}", preamble.text(), begin("$w"))
}

/// What a command needs.
#[derive(Debug)]
pub(super) struct Run<'a> {
    /// The mark of its processes.
    pub(super) processes: &'a str,
    pub(super) line: &'a CommandLine,
    /// Variables, secrets among them. The names are words of the shell.
    pub(super) env: &'a [(String, String)],
    /// Whether what it leaves behind lives on.
    pub(super) keeps_daemons: bool,
    /// Whether standard input stays open as long as the command is wanted.
    pub(super) watched: bool,
}

/// Runs a command: both streams go to standard output, and it dies when standard input is closed.
pub(super) fn run(preamble: &Preamble<'_>, run: &Run<'_>) -> String {
    let mut text = preamble.text();
    let _ = writeln!(text, "o={}\nexec 3<&0 </dev/null", quoted(run.processes));
    text.push_str(&begin("$w"));
    // A shell that tells of a killed job shows its text: the name of a function, and no variables.
    text.push_str("go() {\nexec 3<&-\n");
    text.push_str(CLEAR);
    text.push_str(
        "h=${w%/workspace}; HOME=$h/home; TMPDIR=$h/tmp; LANG=${LANG:-C.UTF-8}\n\
         export HOME TMPDIR LANG\n",
    );
    // Before the attempt's own variables, which may have the name of one of these.
    let _ = writeln!(text, "export {MARK_VARIABLE}=\"$o\"");
    for (name, value) in run.env {
        let _ = writeln!(text, "export {name}={}", quoted(value));
    }
    let words: Vec<String> = match run.line {
        CommandLine::Shell(line) => vec!["sh".to_owned(), "-c".to_owned(), quoted(line)],
        CommandLine::Argv(argv) => argv.iter().map(|word| quoted(word)).collect(),
    };
    let words = words.join(" ");
    let output = if run.keeps_daemons { ">../boot.log" } else { ">&1" };
    // The command leads a session of its own, which is killed with it.
    let _ = write!(
        text,
        "set -- sh -c 'echo $$ >../command; exec \"$@\"' sh {words}\n\
         if command -v setsid >/dev/null 2>&1; then set -- setsid \"$@\"; fi\nexec \"$@\"\n}}\n\
         go {output} 2>&1 &\np=$!\nexec 2>/dev/null\n"
    );
    if run.watched {
        text.push_str(
            "(exec >/dev/null 2>&1; while read -r x <&3; do :; done; end) &\nq=$!\nexec 3<&-\nwait \"$p\"\nc=$?\nkill \"$q\"\nwait \"$q\"\n",
        );
    } else {
        text.push_str("exec 3<&-\nwait \"$p\"\nc=$?\n");
    }
    if run.keeps_daemons {
        text.push_str("rm -f ../command\ncat ../boot.log\n");
    } else {
        text.push_str("end\n");
    }
    text.push_str(FINISH);
    text
}
