//! The shell scripts that run in a sandbox around the user's commands: they start one once and leave nothing of it,
//! delete, list and pack files. Plain POSIX sh with the tools of any image; everything that varies is an argument. Where
//! the attempt's variables are the script's too, its own have names that those do not have.

use camino::Utf8Path;

use crate::config::CommandLine;
use crate::sandbox::disk::LEFT;

/// Where the scripts keep their own files.
pub(super) const DIRECTORY: &str = "/tmp/.evalwave";

/// A script ends so where its command has been started already, or cannot be.
pub(super) const STARTED_BEFORE: i32 = 97;
/// A script ends so where a file could not be deleted, and nothing was started.
pub(super) const NOT_REMOVED: i32 = 98;
/// What is printed of a command that was started, and what it deletes before that is gone.
pub(super) const HAS_RUN: &str = "has run";
/// There is no such path.
pub(super) const ABSENT: i32 = 44;
/// The path leads out of the workspace.
pub(super) const OUTSIDE: i32 = 45;

/// An archive no larger than this comes as text, at once.
const INLINE: u64 = 128 * 1024;
/// What is said of an archive's size where it comes as text.
pub(super) const FOLLOWS: &str = "-";

/// Deletes the paths that the arguments after their number name. One whose directory is not in the workspace is none.
const REMOVE: &str = r#"
evalwave_top=$(pwd -P)
remove() {
  evalwave_parent=$(cd -P -- "$(dirname -- "$1")" 2>/dev/null && pwd -P) || return 0
  case "$evalwave_parent/" in "$evalwave_top"/*) ;; *) return 0 ;; esac
  rm -rf -- "$1" 2>/dev/null && return 0
  chmod u+rwx -- "$evalwave_parent" 2>/dev/null
  chmod -R u+rwX -- "$1" 2>/dev/null
  rm -rf -- "$1"
}
evalwave_number=$1; shift
while [ "$evalwave_number" -gt 0 ]; do
  remove "$1" || { echo "cannot delete $1" >&2; exit 98; }
  shift; evalwave_number=$((evalwave_number - 1))
done
"#;

/// Kills whatever bears the mark of a command, until nothing does: also what has left its group and its session.
const SWEEP: &str = r#"
sweep() {
  evalwave_round=0
  while [ "$evalwave_round" -lt 100 ]; do
    evalwave_left=$(grep -lzxF "EVALWAVE_EXEC=$1" /proc/[0-9]*/environ 2>/dev/null | cut -d/ -f3)
    [ -n "$evalwave_left" ] || return 0
    kill -9 $evalwave_left 2>/dev/null
    evalwave_round=$((evalwave_round + 1))
    if [ "$evalwave_round" -gt 3 ]; then sleep 0.05; fi
  done
}
"#;

/// Sweeps, and tells what is known of the command.
const SWEPT: &str = r#"
sweep "$1"
if [ -e "/tmp/.evalwave/$1/ran" ]; then echo "$2"; fi
"#;

/// What starts a user's command: its own directory is the proof that it was started, so that a request that is sent
/// again starts nothing.
const BEGIN: &str = r#"
evalwave_id=$1; evalwave_keep=$2; evalwave_own=/tmp/.evalwave/$1; shift 2
mkdir -p /tmp/.evalwave && mkdir "$evalwave_own" 2>/dev/null || exit 97
"#;

/// Both streams as one, which keeps their order. What daemons print goes to a file that outlives the request; it is
/// shown as far as it came. A file that cannot be made would end the shell with a code of its own, were it made by `exec`.
const RUN: &str = r#"
evalwave_session=$(command -v setsid) || evalwave_session=
evalwave_out=$evalwave_own/out
if [ "$evalwave_keep" = 1 ]; then true >"$evalwave_out" || exit 97; fi
true >"$evalwave_own/ran" || exit 97
if [ "$evalwave_keep" = 1 ]; then exec 3>"$evalwave_out"; else exec 3>&1; fi
# What the shell itself says of a signal is no output of the command. Some shells apply the redirections of a plain
# command to themselves while it runs, so the command is a subshell.
exec 2>/dev/null
(export EVALWAVE_EXEC="$evalwave_id"; exec $evalwave_session sh -c 'exec "$@"' sh "$@") </dev/null >&3 2>&3 3>&-
evalwave_code=$?
if [ "$evalwave_keep" = 1 ]; then cat "$evalwave_out"; else sweep "$evalwave_id"; fi
exit "$evalwave_code"
"#;

/// The arguments of packing. An archive of before takes no room from this one.
const PACKED: &str = r#"
path=$1; inline=$2; out=/tmp/.evalwave/packed
rm -f "$out"
"#;

/// Prints what is left where commands write.
const DISKS: &str = "left . /tmp\n";

/// Packs a path into a file, and prints how large that is. Where it is small, or there is no room for it, it prints a
/// dash, and then the archive.
const PACK: &str = r#"
[ -e "$path" ] || exit 44
real=$(readlink -f -- "$path") || exit 44
case "$real/" in "$evalwave_top"/*) ;; *) exit 45 ;; esac
[ -d "$real" ] || [ -f "$real" ] || exit 44
mkdir -p /tmp/.evalwave/link
pack() {
  if [ "$path" = . ]; then
    tar -czf "$1" .
  elif [ -L "$path" ]; then
    rm -rf /tmp/.evalwave/link/*
    cp -a -- "$real" "/tmp/.evalwave/link/$(basename -- "$path")" && tar -C /tmp/.evalwave/link -czf "$1" -- "$(basename -- "$path")"
  else
    tar -C "$(dirname -- "$path")" -czf "$1" -- "$(basename -- "$path")"
  fi
  [ $? -le 1 ]
}
if pack "$out" 2>/dev/null || { chmod -R u+rwX -- "$real" 2>/dev/null; pack "$out"; }; then
  size=$(wc -c <"$out")
  if [ "$size" -gt "$inline" ]; then echo "$size"; exit; fi
  echo -
  base64 "$out"
  exit
fi
rm -f "$out"
echo -
exec 4>&1
packed=$({ { pack - 3>&- 4>&-; echo $? >&3; } | base64 >&4; } 3>&1)
exit "$packed"
"#;

/// Prints every path below a directory, coded.
const LIST: &str = r#"
top=$(pwd -P)
real=$(cd -P -- "$1" 2>/dev/null && pwd -P) || exit 44
case "$real/" in "$top"/*) ;; *) exit 44 ;; esac
mkdir -p /tmp/.evalwave
find "$1/" -print0 >/tmp/.evalwave/list || exit 1
base64 /tmp/.evalwave/list
"#;

/// A command of the API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Script {
    pub(super) args: Vec<String>,
}

impl Script {
    fn new(parts: &[&str], args: impl IntoIterator<Item = String>) -> Self {
        let mut all = vec!["-c".to_owned(), parts.concat(), "evalwave".to_owned()];
        all.extend(args);
        Self { args: all }
    }

    /// Starts a user's command once, known as `id`, after these paths have been deleted.
    pub(super) fn run(id: &str, keeps_daemons: bool, removed: &[String], line: &CommandLine) -> Self {
        let mut args = vec![id.to_owned(), u8::from(keeps_daemons).to_string()];
        args.extend(counted(removed));
        match line {
            CommandLine::Shell(text) => args.extend(["sh".to_owned(), "-c".to_owned(), text.clone()]),
            CommandLine::Argv(argv) => args.extend(argv.iter().cloned()),
        }
        Self::new(&[BEGIN, REMOVE, SWEEP, RUN], args)
    }

    /// Kills what a command has left, and says whether it was started.
    pub(super) fn sweep(id: &str) -> Self {
        Self::new(&[SWEEP, SWEPT], [id.to_owned(), HAS_RUN.to_owned()])
    }

    /// Packs a path of the workspace, after these paths have been deleted.
    pub(super) fn pack(path: &Utf8Path, removed: &[String]) -> Self {
        let path = if path.as_str().is_empty() {
            "."
        } else {
            path.as_str()
        };
        let mut args = counted(removed);
        args.extend([path.to_owned(), INLINE.to_string()]);
        Self::new(&[REMOVE, LEFT, PACKED, DISKS, PACK], args)
    }

    /// Tells what is left of the disk.
    pub(super) fn left() -> Self {
        Self::new(&[LEFT, DISKS], [])
    }

    /// Lists what is below a directory of the workspace.
    pub(super) fn list(base: &Utf8Path) -> Self {
        let base = if base.as_str().is_empty() {
            "."
        } else {
            base.as_str()
        };
        Self::new(&[LIST], [base.to_owned()])
    }

    /// Any other.
    pub(super) fn plain(text: &str, args: impl IntoIterator<Item = String>) -> Self {
        Self::new(&[text], args)
    }
}

fn counted(paths: &[String]) -> Vec<String> {
    let mut args = vec![paths.len().to_string()];
    // A path that begins with a dash is no option.
    args.extend(paths.iter().map(|path| format!("./{path}")));
    args
}
