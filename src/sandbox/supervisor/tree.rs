//! Finds and kills the processes below this one, through /proc. Knows nothing of commands.

use std::collections::HashSet;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

/// What one strike came to.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Strike {
    /// Processes found for the first time, and killed.
    pub killed: usize,
    /// Processes that were struck before and are still about to die.
    pub dying: usize,
    /// Processes of another user, which cannot be killed.
    pub refused: usize,
}

/// Kills every descendant of this process that is not in `known` yet, and adds it there.
///
/// All are stopped before any is killed: a chain of forks then neither gets ahead of the search, nor into the places
/// of those that died.
pub(super) fn strike(known: &mut HashSet<Pid>) -> Strike {
    let mut strike = Strike::default();
    let mut found = Vec::new();
    loop {
        let fresh: Vec<Pid> = descendants()
            .into_iter()
            .filter(|pid| !known.contains(pid))
            .collect();
        if fresh.is_empty() {
            break;
        }
        for &pid in &fresh {
            let _ = kill_process(pid, Signal::STOP);
        }
        known.extend(&fresh);
        found.extend(fresh);
    }
    for &pid in &found {
        match kill_process(pid, Signal::KILL) {
            Err(Errno::PERM) => strike.refused += 1,
            Ok(()) | Err(_) => strike.killed += 1,
        }
    }
    // Those struck earlier: told apart so that the caller does not wait for one that never dies.
    for pid in descendants() {
        if !found.contains(&pid) {
            match kill_process(pid, Signal::KILL) {
                Err(Errno::PERM) => strike.refused += 1,
                Ok(()) | Err(_) => strike.dying += 1,
            }
        }
    }
    strike
}

/// Kills every process of this user with a variable whose value begins with `prefix`, until there is none.
///
/// The last resort for a supervisor that was itself killed: what it looked after has another parent now.
pub(crate) fn kill_marked(prefix: &[u8]) {
    let me = rustix::process::getpid();
    let mut known = HashSet::new();
    loop {
        let fresh: Vec<Pid> = every_process()
            .filter(|&pid| pid != me && !known.contains(&pid) && is_marked(pid, prefix))
            .collect();
        if fresh.is_empty() {
            break;
        }
        for &pid in &fresh {
            let _ = kill_process(pid, Signal::STOP);
        }
        for &pid in &fresh {
            let _ = kill_process(pid, Signal::KILL);
        }
        known.extend(fresh);
    }
    for pid in known {
        wait_for_end(pid);
    }
}

/// Returns when a process that was killed is dead, which the kernel does not do at once.
fn wait_for_end(pid: Pid) {
    let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else {
        return;
    };
    // One that waits for a device or a network file system is not waited for.
    let limit = Timespec {
        tv_sec: 5,
        tv_nsec: 0,
    };
    let _ = poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&limit));
}

fn is_marked(pid: Pid, prefix: &[u8]) -> bool {
    let Ok(environment) = fs_err::read(format!("/proc/{pid}/environ")) else {
        return false;
    };
    environment
        .split(|&byte| byte == 0)
        .filter_map(|variable| Some(&variable[variable.iter().position(|&byte| byte == b'=')? + 1..]))
        .any(|value| value.starts_with(prefix))
}

/// Every living descendant, parents before children.
fn descendants() -> Vec<Pid> {
    let me = rustix::process::getpid();
    let mut found = Vec::new();
    let mut seen = HashSet::from([me]);
    let mut waiting = vec![me];
    let table = if has_children_files() {
        None
    } else {
        Some(parents())
    };
    while let Some(parent) = waiting.pop() {
        let children = match &table {
            None => children(parent),
            Some(table) => {
                let of_parent = table.iter().filter(|(_, its_parent)| *its_parent == parent);
                of_parent.map(|(pid, _)| *pid).collect()
            }
        };
        for child in children {
            if seen.insert(child) {
                waiting.push(child);
                if is_alive(child) {
                    found.push(child);
                }
            }
        }
    }
    found
}

/// The kernel's own lists of children, which most kernels offer: with them the cost is that of this tree, not of all
/// processes of the machine, and a thousand supervisors may be at it at once.
fn has_children_files() -> bool {
    rustix::fs::access("/proc/thread-self/children", rustix::fs::Access::EXISTS).is_ok()
}

fn children(parent: Pid) -> Vec<Pid> {
    let mut children = Vec::new();
    let Ok(threads) = fs_err::read_dir(format!("/proc/{parent}/task")) else {
        return children;
    };
    for thread in threads.flatten() {
        if let Ok(list) = fs_err::read_to_string(thread.path().join("children")) {
            children.extend(list.split_ascii_whitespace().filter_map(parse_pid));
        }
    }
    children
}

/// Every process with its parent.
fn parents() -> Vec<(Pid, Pid)> {
    every_process()
        .filter_map(|pid| Some((pid, stat(pid)?.parent?)))
        .collect()
}

fn every_process() -> impl Iterator<Item = Pid> {
    let entries = fs_err::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| parse_pid(entry.file_name().to_str()?))
}

fn is_alive(pid: Pid) -> bool {
    stat(pid).is_some_and(|stat| !matches!(stat.state, b'Z' | b'X'))
}

struct Stat {
    state: u8,
    parent: Option<Pid>,
}

fn stat(pid: Pid) -> Option<Stat> {
    parse_stat(&fs_err::read(format!("/proc/{pid}/stat")).ok()?)
}

/// `pid (name) state parent …`, where the name may itself hold spaces and brackets.
fn parse_stat(text: &[u8]) -> Option<Stat> {
    let name_end = text.iter().rposition(|&byte| byte == b')')?;
    let rest = std::str::from_utf8(text.get(name_end + 1..)?).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    Some(Stat {
        state: *fields.next()?.as_bytes().first()?,
        parent: parse_pid(fields.next()?),
    })
}

fn parse_pid(text: &str) -> Option<Pid> {
    Pid::from_raw(text.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::{every_process, parents, parse_stat};

    #[test]
    fn a_process_name_cannot_forge_its_parent() {
        let stat = parse_stat(b"77 (a) S 1 (x) Z 5 6 7").unwrap();
        assert_eq!((stat.state, stat.parent.unwrap().as_raw_pid()), (b'Z', 5));
        assert!(parse_stat(b"77 (a").is_none());
        assert!(parse_stat(b"").is_none());
    }

    #[test]
    fn this_process_and_its_parent_are_seen() {
        let me = rustix::process::getpid();
        assert!(every_process().any(|pid| pid == me));
        assert!(parents().contains(&(me, rustix::process::getppid().unwrap())));
    }
}
