//! What every engine promises the runner: one suite of sentences, held by each engine in turn.
//!
//! A sandbox of the suite has `sh` and the common tools of busybox, and no more.

mod command;
mod commands;
mod endings;
mod engines;
mod files;

use async_trait::async_trait;
use camino::{Utf8Path, Utf8PathBuf};
use evalwave::sandbox::{Backend, Command, Sandbox, SandboxSpec, Workspace};

use crate::support::sandbox::{Remembered, shell, spec};

/// An engine, and what is seen of it from outside.
#[async_trait]
trait Engine: Send + Sync {
    /// What is held to its promises.
    fn backend(&self) -> &dyn Backend;

    /// The run that its sandboxes belong to.
    fn run_id(&self) -> &str {
        "r1"
    }

    /// An empty directory, which workspaces may be uploaded from.
    fn source(&self) -> &Utf8Path;

    /// What there is of the run's sandboxes, by any names.
    async fn left(&self) -> Vec<String>;

    /// What anybody who may look at the engine sees of these sandboxes: argument lists, labels, names of files.
    async fn shown(&self) -> String;

    /// How many processes run in its sandboxes that have `MARK=mark` in their environment.
    async fn marked(&self, mark: &str) -> usize {
        marked_here(mark)
    }
}

/// An engine with the shorthands of this suite.
struct Bench(Box<dyn Engine>);

impl Bench {
    async fn start(&self, name: &str) -> Box<dyn Sandbox> {
        let (spec, ledger) = (self.spec(name), Remembered::default());
        self.0.backend().start(&spec, &ledger).await.unwrap()
    }

    fn spec(&self, name: &str) -> SandboxSpec {
        let run_id = self.0.run_id();
        SandboxSpec {
            run_id: run_id.to_owned(),
            ..spec(&format!("{run_id}-{name}"))
        }
    }

    /// A sandbox with these files of the source.
    async fn with_files(&self, name: &str, files: &[&str]) -> Box<dyn Sandbox> {
        let mut sandbox = self.start(name).await;
        sandbox.upload(&self.workspace(files)).await.unwrap();
        sandbox
    }

    fn workspace(&self, files: &[&str]) -> Workspace {
        Workspace {
            root: self.0.source().to_owned(),
            files: files.iter().map(Utf8PathBuf::from).collect(),
        }
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.0.source().join(path);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(path, text).unwrap();
    }
}

fn with_env(variables: &[(&str, &str)], text: &str) -> Command {
    let variables = variables.iter();
    Command {
        env: variables
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        ..shell(text)
    }
}

/// Processes of this machine, in whichever container, with this variable in their environment.
fn marked_here(mark: &str) -> usize {
    processes("environ", format!("MARK={mark}").as_bytes())
}

/// How many processes have this text between two zeros of a file of theirs in /proc.
fn processes(file: &str, text: &[u8]) -> usize {
    let processes = fs_err::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|process| fs_err::read(process.path().join(file)).ok())
        .filter(|parts| parts.split(|&byte| byte == 0).any(|part| part == text))
        .count()
}

/// Every process's argument list.
fn argument_lists() -> String {
    let processes = fs_err::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|process| fs_err::read(process.path().join("cmdline")).ok())
        .map(|arguments| String::from_utf8_lossy(&arguments).replace('\0', " ") + "\n")
        .collect()
}

macro_rules! hold {
    ($engine:ident; $($module:ident: $($sentence:ident)*;)*) => {
        mod $engine {
            $($(
                #[tokio::test(flavor = "multi_thread")]
                async fn $sentence() {
                    if let Some(engine) = super::engines::$engine().await {
                        super::$module::$sentence(&super::Bench(engine)).await;
                    }
                }
            )*)*
        }
    };
}

macro_rules! contract {
    ($($engine:ident)*) => {
        $(hold! {
            $engine;
            commands:
                exit_codes_and_signals_are_the_commands_own
                a_program_that_cannot_run_fails_as_in_a_shell
                arguments_arrive_as_they_are
                both_streams_arrive_in_order
                much_output_streams_through_in_small_chunks
                a_receiver_that_is_gone_does_not_hold_the_command_up
                the_environment_is_built_from_empty
                variables_arrive_whatever_a_script_of_the_engines_may_call_its_own
                standard_input_is_empty
                home_and_the_directory_for_temporary_files_are_the_sandboxs_own
                a_secret_is_in_the_environment_and_nowhere_else;
            files:
                an_upload_keeps_modes_links_and_odd_names
                an_upload_leaves_its_source_alone
                what_is_not_there_is_no_failure_to_download
                a_download_brings_trees_with_links_and_modes
                a_download_of_the_workspace_has_the_paths_in_it
                a_large_file_comes_back_whole
                nothing_of_this_machine_is_brought_out
                a_result_may_be_a_link_within_the_workspace
                a_store_that_fails_ends_a_download_however_much_is_still_to_come
                an_old_result_is_removed_and_nothing_else
                what_a_dropped_command_wrote_is_brought_out
                an_old_result_is_not_brought_out_though_no_command_began
                sandboxes_do_not_see_each_others_files;
            endings:
                whatever_a_command_leaves_behind_is_killed_when_it_ends
                dropping_a_command_kills_it_with_everything_it_started
                a_dropped_command_is_gone_before_the_next_one_starts
                daemons_live_until_stop_and_nothing_else_does
                daemons_outlive_a_dropped_command
                a_stop_in_mid_command_leaves_nothing
                stopping_leaves_nothing_whatever_was_made_unwritable
                a_name_is_used_once
                what_was_not_stopped_is_reaped_and_reaping_again_is_no_failure
                reaping_takes_only_its_own_run;
        })*
    };
}

contract!(local docker scripted by_files docker_cli slurm vercel);
