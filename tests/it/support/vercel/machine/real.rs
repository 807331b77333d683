//! A machine of processes: their own mounts and process ids by bubblewrap, `/tmp`, `/vercel` and `/home` of their own,
//! everything else of this system, to read. Runs as root, and as any user where user namespaces are allowed.
//!
//! It has no network, user, memory or processor of its own: commands run as the user that runs the fake.

use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{ExitStatus, Output, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use rustix::process::{Pid, Signal, geteuid, kill_process};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::mpsc::UnboundedReceiver;

use super::{Disk, Job, Print};

const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
const HOME: &str = "/home/vercel-sandbox";
/// How long the output of what a command has left running is waited for.
const DRAIN: Duration = Duration::from_millis(100);

/// Where disks lie.
pub(crate) struct Place {
    bwrap: Utf8PathBuf,
    directory: TempDir,
}

impl Place {
    pub(super) fn new(bwrap: Utf8PathBuf) -> io::Result<Self> {
        let tried = std::process::Command::new(&bwrap).arg("--version").output();
        tried.map_err(|error| io::Error::new(error.kind(), format!("cannot run `{bwrap}`: {error}")))?;
        let directory = TempDir::with_prefix("fake-vercel-")?;
        fs_err::create_dir(directory.path().join("snapshots"))?;
        Ok(Self { bwrap, directory })
    }

    fn snapshot(&self, name: &str) -> Utf8PathBuf {
        let path = self.directory.path().join("snapshots").join(name);
        Utf8PathBuf::from_path_buf(path).unwrap()
    }

    pub(super) async fn boot(&self, disk: Disk) -> io::Result<Machine> {
        let directory = TempDir::with_prefix_in("disk-", self.directory.path())?;
        let root = Utf8PathBuf::from_path_buf(directory.path().to_owned()).unwrap();
        match &disk {
            Disk::Snapshot(name) => copy(&self.snapshot(name), &root).await?,
            _ => {
                for own in ["tmp", "vercel/sandbox", "home/vercel-sandbox"] {
                    fs_err::create_dir_all(root.join(own))?;
                }
            }
        }
        if let Disk::Git {
            url,
            revision,
            depth,
            user,
        } = &disk
        {
            clone(
                &root.join("vercel/sandbox"),
                url,
                revision.as_deref(),
                *depth,
                user.as_ref(),
            )
            .await?;
        }
        let mut bwrap = Command::new(&self.bwrap);
        bwrap.args(["--die-with-parent", "--unshare-pid"]);
        mounts(&mut bwrap, &root)?;
        // The state tells the process to enter, on the standard output; `ready` tells that all is mounted.
        bwrap
            .args(["--chdir", "/", "--json-status-fd", "1", "--"])
            .args(["sh", "-c", "echo ready >&2; exec sleep infinity"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let mut outer = bwrap.spawn()?;
        let said = first_line(outer.stderr.take()).await?;
        if said != "ready" {
            return Err(io::Error::other(format!("bwrap: {said}")));
        }
        let status = first_line(outer.stdout.take()).await?;
        let status: serde_json::Value = serde_json::from_str(&status)?;
        let inner = status["child-pid"]
            .as_i64()
            .and_then(|pid| i32::try_from(pid).ok());
        let inner = inner.and_then(Pid::from_raw);
        Ok(Machine {
            inner: inner.ok_or_else(|| io::Error::other("bwrap tells no process"))?,
            outer: Mutex::new(outer),
            directory: Some(directory),
        })
    }

    pub(super) async fn save(&self, machine: &Machine, name: &str) -> io::Result<u64> {
        machine.kill();
        let target = self.snapshot(name);
        fs_err::create_dir(&target)?;
        let root = machine
            .directory
            .as_ref()
            .and_then(|directory| Utf8Path::from_path(directory.path()));
        copy(root.unwrap(), &target).await?;
        let size = checked(Command::new("du").args(["-sb", target.as_str()]).output().await?)?;
        let size = String::from_utf8_lossy(&size);
        let bytes = size
            .split_whitespace()
            .next()
            .and_then(|bytes| bytes.parse().ok());
        bytes.ok_or_else(|| io::Error::other("du tells no size"))
    }
}

/// This system to read, and a few places to write.
fn mounts(bwrap: &mut Command, root: &Utf8Path) -> io::Result<()> {
    for entry in fs_err::read_dir("/")? {
        let path = Utf8PathBuf::from_path_buf(entry?.path()).unwrap();
        if ["/proc", "/dev", "/tmp", "/vercel", "/home"].contains(&path.as_str()) {
            continue;
        }
        if path.is_symlink() {
            bwrap.args(["--symlink", path.read_link_utf8()?.as_str(), path.as_str()]);
        } else if path.is_dir() {
            bwrap.args(["--ro-bind", path.as_str(), path.as_str()]);
        }
    }
    bwrap.args(["--proc", "/proc", "--dev-bind", "/dev", "/dev"]);
    for own in ["tmp", "vercel", "home"] {
        bwrap.args(["--bind", root.join(own).as_str(), &format!("/{own}")]);
    }
    Ok(())
}

async fn first_line(stream: Option<impl AsyncRead + Unpin>) -> io::Result<String> {
    let mut line = String::new();
    if let Some(stream) = stream {
        BufReader::new(stream).read_line(&mut line).await?;
    }
    Ok(line.trim_end().to_owned())
}

async fn copy(from: &Utf8Path, to: &Utf8Path) -> io::Result<()> {
    let from = format!("{from}/.");
    let copied = Command::new("cp")
        .args(["-a", "--reflink=auto", &from, to.as_str()])
        .output();
    checked(copied.await?).map(drop)
}

async fn clone(
    directory: &Utf8Path,
    url: &str,
    revision: Option<&str>,
    depth: Option<u32>,
    user: Option<&(String, String)>,
) -> io::Result<()> {
    let url = match (user, url.split_once("://")) {
        (Some((name, password)), Some((scheme @ ("http" | "https"), rest))) => {
            format!("{scheme}://{name}:{password}@{rest}")
        }
        _ => url.to_owned(),
    };
    let mut fetch = vec!["fetch".to_owned(), "--quiet".to_owned()];
    fetch.extend(depth.map(|depth| format!("--depth={depth}")));
    fetch.extend([url, revision.unwrap_or("HEAD").to_owned()]);
    let checkout = ["checkout", "--quiet", "FETCH_HEAD"].map(str::to_owned).to_vec();
    for arguments in [vec!["init".to_owned(), "--quiet".to_owned()], fetch, checkout] {
        let mut git = Command::new("git");
        git.args(arguments)
            .current_dir(directory)
            .env("GIT_TERMINAL_PROMPT", "0");
        checked(git.output().await?)?;
    }
    Ok(())
}

fn checked(output: Output) -> io::Result<Vec<u8>> {
    match output.status.success() {
        true => Ok(output.stdout),
        false => Err(io::Error::other(
            String::from_utf8_lossy(&output.stderr).trim_end().to_owned(),
        )),
    }
}

/// One machine: it lives as long as bubblewrap does, and with it everything that was started in it.
pub(crate) struct Machine {
    /// The process to enter, and the first of its process ids.
    inner: Pid,
    outer: Mutex<Child>,
    /// There until it is dropped.
    directory: Option<TempDir>,
}

impl Machine {
    /// A command inside.
    fn enter(&self, cwd: &str, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--target", &self.inner.to_string(), "--mount", "--pid"]);
        if !geteuid().is_root() {
            command.args(["--user", "--preserve-credentials"]);
        }
        command
            .args(["--", "env", &format!("--chdir={cwd}"), "--", program])
            .env_clear()
            .env("PATH", PATH)
            .env("HOME", HOME)
            .stdin(Stdio::null())
            .kill_on_drop(true);
        command
    }

    pub(super) async fn run(&self, job: Job, signals: &mut UnboundedReceiver<i32>, print: Print) -> i32 {
        let mut command = self.enter(&job.cwd, &job.program);
        command.args(&job.args).envs(&job.env);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(error) => {
                print("stderr", format!("{error}\n"));
                return 127;
            }
        };
        let outputs = [
            tokio::spawn(pump(child.stdout.take(), "stdout", print.clone())),
            tokio::spawn(pump(child.stderr.take(), "stderr", print)),
        ];
        let limit = job.timeout.unwrap_or(Duration::MAX);
        let mut timeout = std::pin::pin!(tokio::time::sleep(limit));
        let status = loop {
            let signal = tokio::select! {
                status = child.wait() => break status,
                Some(signal) = signals.recv() => signal,
                () = &mut timeout, if !timeout.is_elapsed() => 9,
            };
            deliver(&mut child, signal).await;
        };
        let drained = futures::future::join_all(outputs);
        let _ = tokio::time::timeout(DRAIN, drained).await;
        status.map_or(127, code)
    }

    pub(super) async fn write(&self, directory: &str, archive: &[u8]) -> io::Result<()> {
        let mut tar = self.enter("/", "tar");
        tar.args(["--extract", "--gzip", "--preserve-permissions", "--no-same-owner"]);
        tar.args(["--file=-", "--directory", directory]);
        tar.stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = tar.spawn()?;
        let stdin = child.stdin.take();
        let written = async {
            if let Some(mut stdin) = stdin {
                // A tar that has seen enough closes its input; what it thought of it tells its exit code.
                let _ = stdin.write_all(archive).await;
            }
        };
        let (output, ()) = tokio::join!(child.wait_with_output(), written);
        checked(output?).map(drop)
    }

    pub(super) async fn read(&self, path: &str) -> io::Result<Option<Vec<u8>>> {
        const MISSING: i32 = 44;
        let mut cat = self.enter("/", "sh");
        let script = format!("[ -e \"$1\" ] || exit {MISSING}; exec cat -- \"$1\"");
        let output = cat.args(["-c", &script, "sh", path]).output().await?;
        match output.status.code() {
            Some(MISSING) => Ok(None),
            _ => checked(output).map(Some),
        }
    }

    pub(super) async fn mkdir(&self, path: &str, recursive: bool) -> io::Result<()> {
        let mut mkdir = self.enter("/", "mkdir");
        if recursive {
            mkdir.arg("-p");
        }
        checked(mkdir.args(["--", path]).output().await?).map(drop)
    }

    /// Kills the first process inside, and the kernel all others with it.
    pub(super) fn kill(&self) {
        let mut outer = self.outer.lock().unwrap();
        // While bubblewrap is there, its child's process id is nobody else's.
        if let Ok(None) = outer.try_wait() {
            let _ = kill_process(self.inner, Signal::KILL);
            let _ = outer.start_kill();
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.kill();
        // A disk may hold many files, and others are waiting to be answered.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let directory = self.directory.take();
            runtime.spawn_blocking(move || drop(directory));
        }
    }
}

/// Sends a signal to the command, which is the child of the process that entered for it.
async fn deliver(child: &mut Child, signal: i32) {
    let Some(id) = child.id() else { return };
    let children = format!("/proc/{id}/task/{id}/children");
    // It may not have entered yet.
    for _ in 0..1000 {
        let listed = fs_err::read_to_string(&children).unwrap_or_default();
        let pid = listed.split_whitespace().next().and_then(|pid| pid.parse().ok());
        if let Some((pid, signal)) = pid.and_then(Pid::from_raw).zip(Signal::from_named_raw(signal)) {
            let _ = kill_process(pid, signal);
            return;
        }
        if !matches!(child.try_wait(), Ok(None)) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

fn code(status: ExitStatus) -> i32 {
    status
        .code()
        .unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

/// Prints what comes, as text: a character that is not complete waits for its rest.
async fn pump(stream: Option<impl AsyncRead + Unpin>, name: &'static str, print: Print) {
    let Some(mut stream) = stream else { return };
    let mut buffer = vec![0; 64 * 1024];
    let mut held = Vec::new();
    loop {
        let read = stream.read(&mut buffer).await.unwrap_or(0);
        held.extend_from_slice(&buffer[..read]);
        let complete = match std::str::from_utf8(&held) {
            Err(error) if read > 0 && error.error_len().is_none() => error.valid_up_to(),
            _ => held.len(),
        };
        let text: Vec<u8> = held.drain(..complete).collect();
        if !text.is_empty() {
            print(name, String::from_utf8_lossy(&text).into_owned());
        }
        if read == 0 {
            return;
        }
    }
}
