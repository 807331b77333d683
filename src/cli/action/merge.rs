//! The action's `command: merge`: the runs of shards as the one run that they are, told as that would have been.

use anyhow::Context as _;
use camino::Utf8PathBuf;

use super::inputs::Inputs;
use super::measure::{Measurement, Prepared, skips};
use super::step::Step;
use crate::cli::Failure;
use crate::cli::arguments::SelectionArguments;
use crate::cli::arms::Driver;
use crate::cli::context::{self, Context};
use crate::cli::merge::{Merging, Parts};
use crate::cli::sources::Suite;
use crate::github::event::Invocation;
use crate::github::log::Loudness;
use crate::model::ExitCode;
use crate::store::StoreError;

/// Joins what lies in `output-dir`.
pub(super) fn merge(
    inputs: &Inputs,
    invocation: &Invocation,
    step: &mut Step,
    context: &Context,
) -> Result<ExitCode, Failure> {
    let named = inputs.output_dir.clone();
    let named: Utf8PathBuf = named.context(
        "`command: merge` needs the shards' run directories\nname the directory that they were downloaded to with `output-dir`",
    )?;
    let selection = SelectionArguments {
        config: inputs.config.clone(),
        ..SelectionArguments::default()
    };
    let driver = Driver::new()?;
    let suite = Suite::without_pairs(&selection, &[], context)?;
    let parts = match Parts::find(&[named], context) {
        // Its shards were skipped too. Where they have measured, they had the secrets that a merge needs not.
        Err(failure) if found_none(&failure) && skips(&suite, invocation, step, context) => {
            return Ok(ExitCode::Success);
        }
        found => found?,
    };
    if parts.suite() != suite.config.suite.name {
        return Err(anyhow::anyhow!(
            "cannot join these shards: they are of the suite `{}`, and the configuration is of `{}`",
            parts.suite(),
            suite.config.suite.name
        )
        .into());
    }
    driver.set_out();
    let measurement = Measurement {
        selection: &selection,
        inputs,
        invocation,
        suite: &suite,
        context,
    };
    measurement.merge(&parts, &driver, step)
}

fn found_none(failure: &Failure) -> bool {
    matches!(failure.error.downcast_ref(), Some(StoreError::NoRun(_)))
}

impl Measurement<'_> {
    fn merge(&self, parts: &Parts, driver: &Driver, step: &mut Step) -> Result<ExitCode, Failure> {
        let config = &self.suite.config;
        let now = context::now();
        let Some((prepared, known)) = self.settle(now, driver, step)? else {
            return Ok(ExitCode::Cancelled);
        };
        let Prepared {
            subject,
            client,
            looked,
            not_done,
        } = prepared;
        let talk = self.conversation(client, &subject);
        let directory = self.fresh_directory(&context::new_run_id(now));
        step.outputs(&[
            ("artifact", self.artifact()),
            ("results-dir", directory.to_string()),
        ]);
        let mut notices = looked.notes;
        notices.extend(subject.note);
        let merging = Merging {
            config,
            baseline: looked.baseline,
            known,
            directory: directory.clone(),
            url: Some(self.invocation.run_url()),
        };
        let done = merging.run(parts, driver, notices)?;
        if let Some(missing) = &parts.joined.missing {
            step.annotate(Loudness::Error, "shards are not whole", missing);
        }
        self.tell(&done, &directory, talk.as_ref(), not_done, driver, step);
        Ok(done.exit(false))
    }
}
