//! Engines by commands: directories of this machine, the docker command line, and Slurm.

use async_trait::async_trait;
use camino::{Utf8Path, Utf8PathBuf};
use evalwave::config::CommandConfig;
use evalwave::config::template::{CommandTemplate, Template};
use evalwave::model::LeftSandbox;
use evalwave::sandbox::Backend;
use evalwave::sandbox::command::{CommandBackend, CommandOptions};
use tempfile::TempDir;

use super::engines::{directory, walk};
use super::{Engine, argument_lists};
use crate::support::only_in_ci;
use crate::support::sandbox::{Remembered, spec, start};

/// An engine of these commands. `@` stands for a directory of the test's own.
struct ByCommand {
    backend: CommandBackend,
    source: Utf8PathBuf,
    path: Utf8PathBuf,
    environment: Vec<(String, String)>,
    /// Prints a line for each sandbox of `r1`.
    left: String,
    /// Prints what the engine shows of its sandboxes.
    inspect: &'static str,
    _directory: TempDir,
}

/// The commands of an engine, as a user writes them.
#[derive(Clone, Copy)]
struct Commands<'a> {
    create: &'a str,
    exec: &'a str,
    delete: &'a str,
    list: &'a str,
    upload: Option<&'a str>,
    download: Option<&'a str>,
}

/// Sandboxes that are directories: what a user would do who has nothing but a shell.
const DIRECTORIES: Commands<'_> = Commands {
    create: "mkdir -p @/{run_id} && mkdir @/{run_id}/{name} && echo {run_id}/{name}",
    exec: "cd @/{sandbox} && exec sh",
    delete: "chmod -R u+rwx @/{sandbox}; rm -rf @/{sandbox}",
    list: "cd @/{run_id} || exit 0; for name in *; do test ! -d \"$name\" || echo {run_id}/$name $name; done",
    upload: None,
    download: None,
};

fn by_commands(commands: Commands<'_>, inspect: &'static str, more: &[(&str, &str)]) -> ByCommand {
    let (directory, path) = directory();
    let template = |text: &str| {
        let text = text.replace('@', path.as_str());
        CommandTemplate::Shell(Template::parse(&text).unwrap())
    };
    let config = CommandConfig {
        create: template(commands.create),
        upload: commands.upload.map(template),
        exec: template(commands.exec),
        download: commands.download.map(template),
        delete: template(commands.delete),
        list: Some(template(commands.list)),
    };
    // What a process of CI has, and a sandbox must not see.
    let mut environment = vec![
        ("PATH".to_owned(), std::env::var("PATH").unwrap()),
        ("LANG".to_owned(), "C.UTF-8".to_owned()),
        ("GITHUB_TOKEN".to_owned(), "not for attempts".to_owned()),
        ("CARGO_LINES".to_owned(), "one\nRUST_two=\nthree".to_owned()),
    ];
    let more = more.iter();
    environment.extend(more.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    let options = CommandOptions {
        root: path.clone(),
        environment: environment.clone(),
        temporary: path.clone(),
    };
    ByCommand {
        backend: CommandBackend::new(&config, options, "r1"),
        source: path.join("source"),
        environment,
        inspect,
        left: commands
            .list
            .replace('@', path.as_str())
            .replace("{run_id}", "r1"),
        path,
        _directory: directory,
    }
}

/// Directories, with the script on standard input.
pub(super) async fn scripted() -> Option<Box<dyn Engine>> {
    Some(Box::new(by_commands(DIRECTORIES, "true", &[])))
}

/// Directories, with everything passed in files.
pub(super) async fn by_files() -> Option<Box<dyn Engine>> {
    let commands = Commands {
        exec: "cd @/{sandbox} && sh {file}",
        upload: Some("tar -xof {file} -C {dir}"),
        download: Some("tar -C {dir} -cf {file} -- {path}"),
        ..DIRECTORIES
    };
    Some(Box::new(by_commands(commands, "true", &[])))
}

/// Containers by the docker command line, of an image that holds busybox.
pub(super) async fn docker_cli() -> Option<Box<dyn Engine>> {
    let host = only_in_ci("EVALWAVE_TEST_DOCKER")?;
    let commands = Commands {
        create: "docker run --detach --init --name t$(basename @)-{name} --label by-command=@/{run_id} evalwave-test:base sleep {lifetime_sec}",
        exec: "docker exec --interactive {sandbox} sh",
        delete: "docker rm --force --volumes {sandbox}",
        list: "docker ps --all --quiet --no-trunc --filter label=by-command=@/{run_id}",
        upload: None,
        download: None,
    };
    Some(Box::new(by_commands(
        commands,
        "docker inspect $(docker ps --all --quiet)",
        &[("DOCKER_HOST", &host)],
    )))
}

/// Jobs of Slurm, each with a directory on its node.
pub(super) async fn slurm() -> Option<Box<dyn Engine>> {
    let config = only_in_ci("EVALWAVE_TEST_SLURM")?;
    let commands = Commands {
        create: "mkdir -p @/jobs && mkdir @/jobs/{name} && salloc --no-shell --job-name=@/{run_id} --comment={name} --time=10 2>&1 | sed -n 's/.*Granted job allocation //p'",
        exec: "srun --jobid={sandbox} --overlap --export=NONE --quiet --chdir=@/jobs/{name} /bin/sh",
        delete: "scancel --full {sandbox}; while squeue --noheader --jobs={sandbox} 2>/dev/null | grep -q .; do sleep 0.1; done; rm -rf @/jobs/{name}",
        list: "squeue --noheader --name=@/{run_id} --format='%A %k'",
        upload: None,
        download: None,
    };
    Some(Box::new(by_commands(
        commands,
        "scontrol show jobs",
        &[("SLURM_CONF", &config)],
    )))
}

#[tokio::test]
async fn a_sandbox_that_another_attempt_has_is_refused_until_it_is_deleted() {
    let commands = Commands {
        create: "mkdir -p @/same; echo same",
        ..DIRECTORIES
    };
    let by_command = by_commands(commands, "true", &[]);
    let backend = &by_command.backend;
    let ledger = Remembered::default();
    let first = backend.start(&spec("r1-a"), &ledger).await.unwrap();
    let why = backend
        .start(&spec("r1-b"), &ledger)
        .await
        .map(|_| ())
        .unwrap_err();
    let expected = "`sandbox.create` printed `same`, which is another attempt's";
    assert!(why.to_string().starts_with(expected), "{why}");
    first.stop().await.unwrap();
    backend.start(&spec("r1-c"), &ledger).await.unwrap();
}

#[tokio::test]
async fn what_was_created_under_its_own_name_is_deleted_though_no_list_shows_it() {
    let commands = Commands {
        create: "mkdir -p @/{name}; echo {name}",
        delete: "rm -r @/{sandbox}",
        list: "true",
        ..DIRECTORIES
    };
    let by_command = by_commands(commands, "true", &[]);
    let ledger = Remembered::default();
    let sandbox = by_command.backend.start(&spec("r1-a"), &ledger).await.unwrap();
    drop(sandbox);
    let created = ledger.created.lock().unwrap().clone();
    assert_eq!(created, [("r1-a".to_owned(), "r1-a".to_owned())]);
    let left = |name: &str, id: Option<&str>| LeftSandbox {
        name: name.to_owned(),
        id: id.map(str::to_owned),
    };
    // The second was never created: its `delete` would fail.
    let left = [left("r1-a", Some("r1-a")), left("r1-b", None)];
    by_command.backend.reaper().reap("r1", &left).await.unwrap();
    assert!(!by_command.path.join("r1-a").exists());
}

#[tokio::test]
async fn what_is_created_when_nobody_waits_for_it_any_more_is_deleted_all_the_same() {
    let commands = Commands {
        create: "touch @/begun; while [ ! -e @/go ]; do sleep 0.01; done; mkdir @/{name}; echo {name}",
        delete: "rm -r @/{sandbox}; touch @/deleted",
        list: "cd @; ls -d r1-* 2>/dev/null || true",
        ..DIRECTORIES
    };
    let by_command = by_commands(commands, "true", &[]);
    let at = |name: &str| by_command.path.join(name);
    let ledger = Remembered::default();
    let (spec, begun) = (spec("r1-a"), at("begun"));
    tokio::select! {
        _ = by_command.backend.start(&spec, &ledger) => panic!("it cannot be there yet"),
        () = appears(&begun) => {}
    }
    fs_err::write(at("go"), "").unwrap();
    let left = [LeftSandbox {
        name: "r1-a".to_owned(),
        id: None,
    }];
    by_command.backend.reaper().reap("r1", &left).await.unwrap();
    assert!(at("deleted").exists() && !at("r1-a").exists());
}

async fn appears(path: &camino::Utf8Path) {
    while !path.exists() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_disk_that_a_command_has_filled_is_told() {
    let (_tools, tools) = directory();
    let df =
        "#!/bin/sh\necho Filesystem 1024-blocks Used Available Capacity Mounted on\necho none 9 9 0 100% /\n";
    fs_err::write(tools.join("df"), df).unwrap();
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs_err::set_permissions(tools.join("df"), executable).unwrap();
    let path = format!("{tools}:{}", std::env::var("PATH").unwrap());
    let expected = "no space left on the disk of the sandbox (0 KB)";
    for (more, full) in [(vec![], None), (vec![("PATH", path.as_str())], Some(expected))] {
        let by_command = by_commands(DIRECTORIES, "true", &more);
        let mut sandbox = start(&by_command.backend, "r1-a").await;
        assert_eq!(sandbox.full_disk().await.as_deref(), full);
        sandbox.stop().await.unwrap();
    }
}

impl ByCommand {
    /// What a command prints that need not succeed: sandboxes of other tests come and go.
    fn said(&self, text: &str) -> String {
        let mut command = assert_cmd::Command::new("sh");
        command.args(["-c", text]).envs(self.environment.iter().cloned());
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    }
}

#[async_trait]
impl Engine for ByCommand {
    fn backend(&self) -> &dyn Backend {
        &self.backend
    }

    fn source(&self) -> &Utf8Path {
        &self.source
    }

    async fn left(&self) -> Vec<String> {
        self.said(&self.left).lines().map(str::to_owned).collect()
    }

    async fn shown(&self) -> String {
        let names = walk(&self.path).into_iter().map(|path| path.into_string() + "\n");
        argument_lists() + &names.collect::<String>() + &self.said(self.inspect)
    }
}
