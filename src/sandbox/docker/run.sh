# Runs one command in a container and sees to it that nothing of it stays. Written for any `sh` there is.
# Arguments: the pids of the daemons, whether there may be other processes to spare, whether the command's own are to
# be kept, the number of old results, their paths, and the command.
# Its standard input is the link to evalwave: when that is closed, everything is killed. Reports go out on its standard
# error; the command's output, both streams in their order, on its standard output. Its variables have names that the
# attempt's own do not have: those are its environment too, and go on to the command as they are.
evalwave_daemons=$1 evalwave_spare=$2 evalwave_stay=$3 evalwave_old=$4
shift 4
exec 3<&0 4>&1 5>&2 </dev/null >/dev/null 2>&1
set -f
trap : TERM INT HUP QUIT USR1 USR2 PIPE
evalwave_work=$(pwd -P)

# Its parent and its session; false where it is none to kill.
look() {
  IFS= read -r evalwave_stat <"/proc/$1/stat" || return 1
  set -- ${evalwave_stat##*) }
  evalwave_state=$1 evalwave_parent=$2 evalwave_session=$4
  case $evalwave_state in Z | X) return 1 ;; esac
  # The session of the first process: what keeps the container alive.
  case $evalwave_session in 0 | 1) return 1 ;; esac
}

# Whether it is a daemon, or a daemon's.
is_kept() {
  evalwave_at=$1
  while :; do
    case " $evalwave_daemons " in *" $evalwave_at "* | *" $evalwave_session "*) return 0 ;; esac
    case $evalwave_parent in '' | 0 | 1 | *[!0-9]*) return 1 ;; esac
    evalwave_at=$evalwave_parent
    look "$evalwave_at" || return 1
  done
}

processes() {
  set +f
  cd /proc && echo [0-9]*
}

# Kills everything but itself, its caller, and what is to be kept.
sweep() {
  if [ "$evalwave_spare" = no ]; then
    kill -9 -1
    return
  fi
  evalwave_rounds=0
  while [ "$evalwave_rounds" -lt 100 ]; do
    evalwave_found=
    read -r evalwave_self _ </proc/self/stat
    for evalwave_pid in $(processes); do
      case $evalwave_pid in 1 | "$evalwave_self" | "$1") continue ;; esac
      look "$evalwave_pid" || continue
      is_kept "$evalwave_pid" || { kill -9 "$evalwave_pid" && evalwave_found=$evalwave_pid; }
    done
    [ -n "$evalwave_found" ] || return
    evalwave_rounds=$((evalwave_rounds + 1))
  done
}

# What survives of `boot`, and with it the shell that passes its output on; nothing where nothing does.
survivors() {
  evalwave_found=
  for evalwave_pid in $(processes); do
    case $evalwave_pid in 1 | "$$") continue ;; esac
    look "$evalwave_pid" || continue
    # This shell's own helpers and what they run.
    [ "$evalwave_parent" = "$$" ] && continue
    look "$evalwave_parent" && [ "$evalwave_parent" = "$$" ] && continue
    evalwave_found="$evalwave_found $evalwave_pid"
  done
  [ -z "$evalwave_found" ] || echo " $$$evalwave_found"
}

# Deletes an old result; one behind a link that leads out of the workspace is not the attempt's.
remove() (
  cd -P -- "${1%/*}" || exit 0
  case $(pwd -P)/ in "$evalwave_work"/*) rm -rf -- "./${1##*/}" ;; esac
)

# How often the kernel has killed in this container for memory; nothing where it does not say.
count_kills() {
  for evalwave_file in /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control; do
    [ -r "$evalwave_file" ] || continue
    while read -r evalwave_name evalwave_number; do
      case $evalwave_name in oom_kill) echo "$evalwave_number" ;; esac
    done <"$evalwave_file"
  done
}

# Whether it has done so while the command ran.
look_at_memory() {
  evalwave_memory=$(count_kills)
  case $evalwave_memory in
    '') evalwave_memory=unknown ;;
    "$evalwave_kills") evalwave_memory=enough ;;
    *) evalwave_memory=short ;;
  esac
}

(
  trap '' TERM INT HUP QUIT USR1 USR2 PIPE
  exec 4>&- 5>&-
  read -r _ <&3
  sweep none
) &
evalwave_watcher=$!

while [ "$evalwave_old" -gt 0 ]; do
  remove "$1" || { printf 'refused %s\n' "$1" >&5; exit; }
  shift
  evalwave_old=$((evalwave_old - 1))
done
echo begun >&5
evalwave_kills=$(count_kills)

if [ "$evalwave_stay" = yes ]; then
  {
    (exec 3<&- 4>&- 5>&-; exec "$@") 2>&1
    evalwave_code=$?
    look_at_memory
    kill -9 "$evalwave_watcher"
    printf '\nended %s %s%s\n' "$evalwave_code" "$evalwave_memory" "$(survivors)" >&5
  } | {
    # Once nobody reads it any more, what a daemon writes goes nowhere, and does not kill it.
    cat >&4 3<&- 5>&-
    exec cat >/dev/null 3<&- 4>&- 5>&-
  }
  # The code is in the report alone: without one it did not succeed.
  exit 1
else
  (exec 3<&- 5>&-; exec "$@") >&4 2>&4 4>&-
  evalwave_code=$?
  look_at_memory
  sweep "$$"
  printf '\nended %s %s\n' "$evalwave_code" "$evalwave_memory" >&5
  exit "$evalwave_code"
fi
