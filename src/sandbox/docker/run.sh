# Runs one command in a container and sees to it that nothing of it stays. Written for any `sh` there is.
# Arguments: the pids of the daemons, whether there may be other processes to spare, whether the command's own are to
# be kept, the number of old results, their paths, and the command.
# Its standard input is the link to evalwave: when that is closed, everything is killed. Reports go out on its standard
# error; the command's output, both streams in their order, on its standard output.
daemons=$1 spare=$2 stay=$3 old=$4
shift 4
exec 3<&0 4>&1 5>&2 </dev/null >/dev/null 2>&1
set -f
trap : TERM INT HUP QUIT USR1 USR2 PIPE
work=$(pwd -P)

# Its parent and its session; false where it is none to kill.
look() {
  IFS= read -r stat <"/proc/$1/stat" || return 1
  set -- ${stat##*) }
  state=$1 parent=$2 session=$4
  case $state in Z | X) return 1 ;; esac
  # The session of the first process: what keeps the container alive.
  case $session in 0 | 1) return 1 ;; esac
}

# Whether it is a daemon, or a daemon's.
is_kept() {
  at=$1
  while :; do
    case " $daemons " in *" $at "* | *" $session "*) return 0 ;; esac
    case $parent in '' | 0 | 1 | *[!0-9]*) return 1 ;; esac
    at=$parent
    look "$at" || return 1
  done
}

processes() {
  set +f
  cd /proc && echo [0-9]*
}

# Kills everything but itself, its caller, and what is to be kept.
sweep() {
  if [ "$spare" = no ]; then
    kill -9 -1
    return
  fi
  rounds=0
  while [ "$rounds" -lt 100 ]; do
    found=
    read -r self _ </proc/self/stat
    for pid in $(processes); do
      case $pid in 1 | "$self" | "$1") continue ;; esac
      look "$pid" || continue
      is_kept "$pid" || { kill -9 "$pid" && found=$pid; }
    done
    [ -n "$found" ] || return
    rounds=$((rounds + 1))
  done
}

# What survives of `boot`, and with it the shell that passes its output on; nothing where nothing does.
survivors() {
  found=
  for pid in $(processes); do
    case $pid in 1 | "$$") continue ;; esac
    look "$pid" || continue
    # This shell's own helpers and what they run.
    [ "$parent" = "$$" ] && continue
    look "$parent" && [ "$parent" = "$$" ] && continue
    found="$found $pid"
  done
  [ -z "$found" ] || echo " $$$found"
}

# Deletes an old result; one behind a link that leads out of the workspace is not the attempt's.
remove() (
  cd -P -- "${1%/*}" || exit 0
  case $(pwd -P)/ in "$work"/*) rm -rf -- "./${1##*/}" ;; esac
)

# How often the kernel has killed in this container for memory; nothing where it does not say.
count_kills() {
  for file in /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control; do
    [ -r "$file" ] || continue
    while read -r name number; do
      case $name in oom_kill) echo "$number" ;; esac
    done <"$file"
  done
}

# Whether it has done so while the command ran.
look_at_memory() {
  memory=$(count_kills)
  case $memory in
    '') memory=unknown ;;
    "$kills") memory=enough ;;
    *) memory=short ;;
  esac
}

(
  trap '' TERM INT HUP QUIT USR1 USR2 PIPE
  exec 4>&- 5>&-
  read -r _ <&3
  sweep none
) &
watcher=$!

while [ "$old" -gt 0 ]; do
  remove "$1" || { printf 'refused %s\n' "$1" >&5; exit; }
  shift
  old=$((old - 1))
done
echo begun >&5
kills=$(count_kills)

if [ "$stay" = yes ]; then
  {
    (exec 3<&- 4>&- 5>&-; exec "$@") 2>&1
    code=$?
    look_at_memory
    kill -9 "$watcher"
    printf '\nended %s %s%s\n' "$code" "$memory" "$(survivors)" >&5
  } | {
    # Once nobody reads it any more, what a daemon writes goes nowhere, and does not kill it.
    cat >&4 3<&- 5>&-
    exec cat >/dev/null 3<&- 4>&- 5>&-
  }
  # The code is in the report alone: without one it did not succeed.
  exit 1
else
  (exec 3<&- 5>&-; exec "$@") >&4 2>&4 4>&-
  code=$?
  look_at_memory
  sweep "$$"
  printf '\nended %s %s\n' "$code" "$memory" >&5
  exit "$code"
fi
