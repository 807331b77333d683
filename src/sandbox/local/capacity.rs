//! How many attempts this machine can hold at once: by memory and by open files, never by cores, since agents mostly
//! wait.

use crate::sandbox::{Capacity, Limit};

/// Descriptors of one running attempt in evalwave: what leads to its process (three at most), process handle, log and
/// a file in passing.
const FILES_PER_ATTEMPT: u64 = 8;

/// Descriptors that are left for everything else.
const FILES_KEPT: u64 = 64;

/// Preparing a workspace is work, unlike waiting for an agent: more at once than this only makes all of them late.
const STARTING: usize = 16;

/// What bounds the number of attempts; `None` where it is unknown.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Machine {
    /// Bytes.
    pub memory: Option<u64>,
    /// Most open files of a process.
    pub open_files: Option<u64>,
}

/// The smaller of the two bounds, with its reason.
pub(super) fn capacity(machine: Machine, memory_per_attempt: u64) -> Capacity {
    let by_memory = machine.memory.map(|memory| Limit {
        value: at_least_one(memory / memory_per_attempt.max(1)),
        reason: format!(
            "{} of memory at {} an attempt",
            size(memory),
            size(memory_per_attempt)
        ),
    });
    Capacity {
        running: [by_memory, machine.open_files.map(by_files)]
            .into_iter()
            .flatten()
            .min_by_key(|limit| limit.value),
        starting: STARTING,
    }
}

/// How many attempts a process with so many open files can run, with the reason.
pub(super) fn by_files(files: u64) -> Limit {
    Limit {
        value: at_least_one(files.saturating_sub(FILES_KEPT) / FILES_PER_ATTEMPT),
        reason: format!("{files} open files at {FILES_PER_ATTEMPT} an attempt"),
    }
}

fn at_least_one(value: u64) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX).max(1)
}

/// Decimal units, as in `evalwave.yml`: `256 MB`, `15.2 GB`.
fn size(bytes: u64) -> String {
    bytesize::ByteSize::b(bytes)
        .display()
        .si()
        .to_string()
        .replace(".0 ", " ")
}

/// Raises this process's limit on open files as far as it may go. Returns what the limit was, for those it starts,
/// and what bounds it now: the same however often it is asked, since it is raised the first time alone.
#[cfg(unix)]
pub(super) fn raise_open_files() -> (Option<u64>, Option<u64>) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    static RAISED: std::sync::OnceLock<(Option<u64>, Option<u64>)> = std::sync::OnceLock::new();
    *RAISED.get_or_init(|| {
        let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
        let raised = Rlimit {
            current: maximum,
            maximum,
        };
        // macOS refuses more than its own limit; what was there stays.
        match setrlimit(Resource::Nofile, raised) {
            Ok(()) => (current, maximum),
            Err(_) => (current, current),
        }
    })
}

/// Memory that can be used without swapping, in bytes: the machine's, or that of the control group if that is less.
#[cfg(target_os = "linux")]
pub(super) fn memory_available() -> Option<u64> {
    let machine = mem_available(&fs_err::read_to_string("/proc/meminfo").ok()?)?;
    let group = fs_err::read_to_string("/proc/self/cgroup").ok();
    let group =
        group.and_then(|text| group_available(text.lines().find_map(|line| line.strip_prefix("0::"))?));
    Some(group.map_or(machine, |group| group.min(machine)))
}

/// Unknown on systems other than Linux.
#[cfg(not(target_os = "linux"))]
pub(super) fn memory_available() -> Option<u64> {
    None
}

#[cfg(target_os = "linux")]
fn mem_available(meminfo: &str) -> Option<u64> {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim_end().parse().ok()?;
    Some(kibibytes * 1024)
}

/// The least that a control group (version 2) and those above it leave; `None` without any limit.
#[cfg(target_os = "linux")]
fn group_available(group: &str) -> Option<u64> {
    let root = camino::Utf8Path::new("/sys/fs/cgroup");
    let group = root.join(group.trim_start_matches('/'));
    let read =
        |path: camino::Utf8PathBuf| -> Option<u64> { fs_err::read_to_string(path).ok()?.trim().parse().ok() };
    group
        .ancestors()
        .take_while(|group| group.starts_with(root))
        .filter_map(|group| {
            let most = read(group.join("memory.max"))?;
            Some(most.saturating_sub(read(group.join("memory.current"))?))
        })
        .min()
}

#[cfg(test)]
mod tests {
    use super::{Machine, capacity};

    const GB: u64 = 1_000_000_000;

    #[test]
    fn memory_bounds_with_its_reason() {
        let machine = Machine {
            memory: Some(15_200_000_000),
            open_files: Some(20_000),
        };
        let running = capacity(machine, 256_000_000).running.unwrap();
        assert_eq!(running.value, 59);
        assert_eq!(running.reason, "15.2 GB of memory at 256 MB an attempt");
    }

    #[test]
    fn open_files_bound_where_they_are_fewer() {
        let machine = Machine {
            memory: Some(500 * GB),
            open_files: Some(1024),
        };
        let running = capacity(machine, GB).running.unwrap();
        assert_eq!(
            (running.value, running.reason.as_str()),
            (120, "1024 open files at 8 an attempt")
        );
    }

    #[test]
    fn one_attempt_always_fits_and_the_unknown_is_no_limit() {
        let machine = Machine {
            memory: Some(GB),
            open_files: Some(10),
        };
        assert_eq!(capacity(machine, 4 * GB).running.unwrap().value, 1);
        assert_eq!(capacity(Machine::default(), GB).running, None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn available_memory_is_read_in_bytes() {
        let text = "MemTotal:  100 kB\nMemAvailable:   24105 kB\n";
        assert_eq!(super::mem_available(text), Some(24_684_520 - 1_000));
        assert_eq!(super::mem_available("MemFree: 1 kB\n"), None);
    }
}
