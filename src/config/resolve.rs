//! The file and what was given outside it, settled into a [`Config`]: who wins, and every default.
//!
//! What is written is checked to the end before anything is refused for not being built in yet.

mod attempt;
mod sandbox;
mod spending;
mod suite;

use super::check::{check_gates, check_history, check_sources};
use super::error::{ConfigError, Origin};
use super::file::{Comment, Compare, Concurrency, Confirm, File, Flaky, LabelGate, Parsed, Retry, Runs};
use super::problem::{KeyPath, Problem};
use super::settings::{self, Found, Given, Level};
use super::value::{FromText, GateText, LabelName, OneWave, SourceText};
use super::{
    BaselineConfig, CommentMode, CompareConfig, ComparisonConfig, Config, FlakyConfig, HistoryConfig,
    LabelGates, ReportConfig, RetryConfig, WantedConcurrency,
};
use crate::model::{Gate, Policy, Produces, Strategy};

/// Settles everything that a run needs, or what is done with one that has its pairs already.
pub(super) fn run(
    parsed: Parsed,
    origin: Origin<'_>,
    given: &Given,
    needs_pairs: bool,
) -> Result<Config, ConfigError> {
    let Parsed { file, sandbox } = parsed;
    let mode = Mode::settle(&file, given)?;
    let runs = pick(given, &settings::RUNS, file.runs)?.map_or(1, |runs: Runs| runs.0);
    let concurrency = concurrency(&file, given, &mode)?;
    let max_concurrency =
        pick(given, &settings::MAX_CONCURRENCY, file.max_concurrency)?.map(|most| most.0 as usize);
    let policy = policy(&file, given)?.unwrap_or_default();
    let mut sandbox = sandbox::settle(sandbox, given.find(&settings::SANDBOX))?;
    sandbox::settle_vercel(&mut sandbox, given)?;
    let confirm = pick(given, &settings::CONFIRM, file.confirm)?.map_or(0, |confirm: Confirm| confirm.0);
    let history = history(Some(&file), given)?;
    let baseline = baseline(Some(&file), given)?;
    let fail_on = fail_on(Some(&file), given)?;
    let (gates, flaky) = (gates(Some(&file)), flaky(Some(&file)));
    let report = report(Some(&file), given)?;
    let suite = suite::settle(&file, origin, given, needs_pairs)?;
    let attempt = attempt::settle(&file.attempt, given)?;
    if attempt.produces == Produces::Pair && mode.strategy != Strategy::Sequential {
        let text = format!(
            "expected `sequential` with `produces: pair`, found `{}`: one command runs all attempts of its pair itself",
            mode.strategy
        );
        return Err(match mode.from {
            Some(found) => found.wrong(&text),
            None => origin.error(Problem::new(KeyPath::of("strategy"), text)),
        });
    }

    Ok(Config {
        suite,
        attempt,
        runs,
        strategy: mode.strategy,
        concurrency,
        max_concurrency,
        policy,
        on_pass: file.on_pass.unwrap_or_default(),
        on_timeout: file.on_timeout.unwrap_or_default(),
        limits: spending::limits(file.limits.unwrap_or_default()),
        budget: spending::budget(file.budget.as_ref()),
        price: spending::price(file.price, &sandbox),
        retry: retry(file.retry.unwrap_or_default()),
        sandbox,
        baseline,
        history,
        confirm,
        fail_on,
        gates,
        flaky,
        compare: compare(file.compare.as_ref()),
        report,
    })
}

/// Settles what a comparison of results that exist already needs; there may be no file at all.
pub(super) fn comparison(
    parsed: Option<&(Parsed, Origin<'_>)>,
    given: &Given,
) -> Result<ComparisonConfig, ConfigError> {
    let file = parsed.map(|(parsed, _)| &parsed.file);
    let baseline = baseline(file, given)?;
    let policy = match file {
        Some(file) => policy(file, given)?,
        None => pick::<Policy>(given, &settings::POLICY, None)?,
    };
    let settled = ComparisonConfig {
        policy,
        history: history(file, given)?,
        fail_on: fail_on(file, given)?,
        gates: gates(file),
        flaky: flaky(file),
        compare: compare(file.and_then(|file| file.compare.as_ref())),
        report: report(file, given)?,
        baseline,
    };
    Ok(settled)
}

/// When attempts start, and who said so.
pub(super) struct Mode<'a> {
    pub(super) strategy: Strategy,
    /// What was given outside the file; `None` is the file or the default.
    pub(super) from: Option<Found<'a>>,
    /// The level whose `parallel-attempts` asks for one wave.
    one_wave: Option<Level>,
}

impl<'a> Mode<'a> {
    fn settle(file: &File, given: &'a Given) -> Result<Self, ConfigError> {
        for level in Level::HIGHEST_FIRST {
            let strategy = given.at(level, &settings::STRATEGY);
            let wave = given.at(level, &settings::PARALLEL_ATTEMPTS);
            let wanted = strategy.map(Found::read::<Strategy>).transpose()?;
            if let Some(wave) = wave {
                let OneWave(meant) = wave.read()?;
                if let (Some(strategy), Some(wanted)) = (strategy, wanted)
                    && wanted != meant
                {
                    return Err(wave.wrong(&format!(
                        "{wave} and {strategy} contradict each other\ngive one of them"
                    )));
                }
                return Ok(Self {
                    strategy: meant,
                    from: Some(wave),
                    one_wave: (meant == Strategy::Parallel).then_some(level),
                });
            }
            if let Some(wanted) = wanted {
                return Ok(Self {
                    strategy: wanted,
                    from: strategy,
                    one_wave: None,
                });
            }
        }
        Ok(Self {
            strategy: file.strategy.unwrap_or_default(),
            from: None,
            one_wave: None,
        })
    }
}

/// `parallel-attempts: true` is `concurrency: auto` at its own level: it stands in for the file's number and for one
/// that a lower level gives, and yields to one that its own or a higher level gives.
fn concurrency(file: &File, given: &Given, mode: &Mode<'_>) -> Result<WantedConcurrency, ConfigError> {
    let found = given.find(&settings::CONCURRENCY);
    let wanted = match (found, mode.one_wave) {
        (Some(found), Some(wave)) if found.level < wave => None,
        (Some(found), _) => Some(found.read::<Concurrency>()?),
        (None, Some(_)) => None,
        (None, None) => file.concurrency,
    };
    Ok(match wanted {
        Some(Concurrency::Fixed(number)) => WantedConcurrency::Fixed(number.0 as usize),
        Some(Concurrency::Auto(_)) | None => WantedConcurrency::Auto,
    })
}

fn policy(file: &File, given: &Given) -> Result<Option<Policy>, ConfigError> {
    pick(given, &settings::POLICY, file.policy.map(Policy::from))
}

fn baseline(file: Option<&File>, given: &Given) -> Result<BaselineConfig, ConfigError> {
    let sources: Vec<SourceText> = match given.find(&settings::BASELINE) {
        Some(found) => {
            let sources: Vec<SourceText> = found.list(&['\n'])?;
            let texts: Vec<&str> = sources.iter().map(|source| source.0.as_str()).collect();
            check_sources(&texts).map_err(|text| found.wrong(&text))?;
            sources
        }
        None => match file.and_then(|file| file.baseline.as_ref()) {
            Some(sources) => sources.0.clone(),
            None => return Ok(BaselineConfig::Auto),
        },
    };
    let texts: Vec<String> = sources.into_iter().map(|source| source.0).collect();
    Ok(match texts.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["auto"] => BaselineConfig::Auto,
        ["none"] => BaselineConfig::None,
        ["measure"] => BaselineConfig::Measure(None),
        [source] if source.starts_with("measure:") => {
            BaselineConfig::Measure(Some(source["measure:".len()..].to_owned()))
        }
        _ => BaselineConfig::Sources(texts),
    })
}

/// The number of the file, and the sources of the flag: neither stands in for the other.
fn history(file: Option<&File>, given: &Given) -> Result<HistoryConfig, ConfigError> {
    let sources: Vec<SourceText> = match given.find(&settings::HISTORY) {
        Some(found) => {
            let sources: Vec<SourceText> = found.list(&['\n'])?;
            let texts: Vec<&str> = sources.iter().map(|source| source.0.as_str()).collect();
            check_history(&texts).map_err(|text| found.wrong(&text))?;
            sources
        }
        None => Vec::new(),
    };
    Ok(HistoryConfig {
        runs: file.and_then(|file| file.history).map_or(10, |runs| runs.0),
        sources: sources.into_iter().map(|source| source.0).collect(),
    })
}

fn gates(file: Option<&File>) -> Vec<LabelGates> {
    let written = file.and_then(|file| file.gates.as_ref());
    let settle = |gate: &LabelGate| LabelGates {
        name: gate.label.name().to_owned(),
        value: gate.label.value().to_owned(),
        fail_on: gate.fail_on.0.iter().map(|gate| gate.0).collect(),
    };
    written.map_or_else(Vec::new, |gates| gates.0.iter().map(settle).collect())
}

fn flaky(file: Option<&File>) -> Vec<FlakyConfig> {
    let written = file.and_then(|file| file.flaky.as_ref());
    let settle = |flaky: &Flaky| FlakyConfig {
        experiment: flaky.experiment.as_ref().map(|glob| glob.0.clone()),
        eval: flaky.eval.as_ref().map(|glob| glob.0.clone()),
        until: flaky.until.map(|day| day.0),
        why: flaky.why.as_ref().map(|why| why.0.clone()),
    };
    written.map_or_else(Vec::new, |flaky| flaky.0.iter().map(settle).collect())
}

fn fail_on(file: Option<&File>, given: &Given) -> Result<Vec<Gate>, ConfigError> {
    let gates: Vec<GateText> = match given.find(&settings::FAIL_ON) {
        Some(found) => {
            let gates: Vec<GateText> = found.list(&[',', '\n'])?;
            check_gates(&gates).map_err(|text| found.wrong(&text))?;
            gates
        }
        None => match file.and_then(|file| file.fail_on.as_ref()) {
            Some(gates) => gates.0.clone(),
            None => vec![GateText(Gate::Incomplete)],
        },
    };
    Ok(gates.into_iter().map(|gate| gate.0).collect())
}

fn report(file: Option<&File>, given: &Given) -> Result<ReportConfig, ConfigError> {
    let written = file.and_then(|file| file.report.as_ref());
    let group_by = written.and_then(|report| report.group_by.clone());
    let comment = written
        .and_then(|report| report.comment)
        .map(|comment| match comment {
            Comment::Always => CommentMode::Always,
            Comment::Changes => CommentMode::Changes,
            Comment::Failures => CommentMode::Failures,
            Comment::Never => CommentMode::Never,
        });
    Ok(ReportConfig {
        group_by: pick(given, &settings::GROUP_BY, group_by)?.map(|label: LabelName| label.0),
        comment: pick(given, &settings::COMMENT, comment)?.unwrap_or_default(),
    })
}

fn compare(written: Option<&Compare>) -> CompareConfig {
    let default = CompareConfig::default();
    CompareConfig {
        alpha: written
            .and_then(|compare| compare.alpha)
            .map_or(default.alpha, |alpha| alpha.0),
        margin: written
            .and_then(|compare| compare.margin)
            .map_or(default.margin, |margin| margin.0),
    }
}

fn retry(written: Retry) -> RetryConfig {
    RetryConfig {
        tries: written.tries.map_or(3, |tries| tries.0),
        budget: written.budget.map_or(0.2, |budget| budget.0),
    }
}

/// The value that wins: of the highest level that gives one, else of the file.
fn pick<T: FromText>(
    given: &Given,
    setting: &settings::Setting,
    written: Option<T>,
) -> Result<Option<T>, ConfigError> {
    match given.find(setting) {
        Some(found) => found.read().map(Some),
        None => Ok(written),
    }
}
