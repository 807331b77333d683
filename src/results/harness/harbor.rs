//! Format `harbor`: a trial's `result.json`.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::ReadError;
use super::once::parse_once;
use super::value::{beyond_a_score, count, failure, known, lenient, not_negative, score, total};
use crate::model::{Check, Reading, ReadingVerdict, Usage};

/// The reward that counts where a trial has several.
const REWARD: &str = "reward";
/// Exceptions of a provider that throttles.
const THROTTLING: [&str; 3] = ["ApiRateLimitError", "ApiOverloadedError", "RateLimitError"];
/// Exceptions after which a reward counts, in results that do not say so themselves.
const GRADED: [&str; 2] = ["AgentTimeoutError", "NonZeroAgentExitCodeError"];

#[derive(Deserialize)]
struct Trial {
    trial_name: String,
    #[serde(default, deserialize_with = "lenient")]
    agent_result: Option<Agent>,
    verifier_result: Option<Verifier>,
    exception_info: Option<Exception>,
    step_results: Option<Vec<Step>>,
    #[serde(default, deserialize_with = "lenient")]
    agent_execution: Option<Timing>,
}

#[derive(Deserialize)]
struct Step {
    #[serde(default, deserialize_with = "lenient")]
    agent_result: Option<Agent>,
    exception_info: Option<Exception>,
}

#[derive(Deserialize)]
struct Agent {
    #[serde(default, deserialize_with = "count")]
    n_input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    n_output_tokens: Option<u64>,
    #[serde(default, deserialize_with = "lenient")]
    cost_usd: Option<f64>,
}

#[derive(Deserialize)]
struct Verifier {
    rewards: Option<BTreeMap<String, f64>>,
}

#[derive(Deserialize)]
struct Exception {
    exception_type: String,
    #[serde(default, deserialize_with = "lenient")]
    exception_message: String,
    policy: Option<Policy>,
}

/// What harbor makes of an exception of this type.
#[derive(Deserialize)]
struct Policy {
    should_retry: bool,
    has_valid_reward: bool,
}

#[derive(Deserialize)]
struct Timing {
    #[serde(default, deserialize_with = "lenient")]
    started_at: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    finished_at: Option<String>,
}

/// An exception that leaves no valid reward, by harbor's own classes, is an error; else the reward decides, and 1
/// passes. A trial without a reward, or with one that is not from 0 to 1, has no grade.
pub(super) fn read(text: &str) -> Result<Reading, ReadError> {
    let trial: Trial = parse_once(text)?;
    if trial.trial_name.is_empty() {
        return Err(ReadError::document("harbor", "`trial_name` is empty"));
    }
    let steps = trial.step_results.as_deref().unwrap_or_default();
    let exceptions: Vec<&Exception> = trial
        .exception_info
        .iter()
        .chain(steps.iter().filter_map(|step| step.exception_info.as_ref()))
        .collect();
    let rewards = trial
        .verifier_result
        .and_then(|verifier| verifier.rewards)
        .unwrap_or_default();
    let is_no_score = |(_, reward): &(&String, &f64)| score(**reward).is_none();
    // Of several, none of which is the one, the trial is as good as the worst.
    let worst = || rewards.iter().min_by(|(_, one), (_, other)| one.total_cmp(other));
    let counting = rewards
        .get_key_value(REWARD)
        .or_else(|| rewards.iter().find(is_no_score))
        .or_else(worst);
    let beyond = counting
        .filter(is_no_score)
        .map(|(name, reward)| beyond_a_score(name, *reward, "verifier"));
    let reward = counting.and_then(|(_, reward)| score(*reward));
    let breaking = exceptions.iter().find(|exception| !exception.has_valid_reward());
    let verdict = match (breaking, reward) {
        (Some(exception), _) => ReadingVerdict::Errored {
            retry: exception.policy.as_ref().is_none_or(|policy| policy.should_retry),
        },
        (None, Some(reward)) if reward >= 1.0 => ReadingVerdict::Passed,
        (None, Some(_)) => ReadingVerdict::Failed,
        // Nobody graded it: the same again would be no better.
        (None, None) => ReadingVerdict::Errored { retry: false },
    };
    let error = breaking
        .map(|exception| exception.text())
        .or(beyond)
        .or_else(|| exceptions.first().map(|exception| exception.text()))
        .or_else(|| reward.is_none().then(|| "the trial has no reward".to_owned()));
    let (error, throttled) = failure(&error.unwrap_or_default());
    let agents = trial
        .agent_result
        .iter()
        .chain(steps.iter().filter_map(|step| step.agent_result.as_ref()));
    Ok(Reading {
        verdict,
        checks: rewards
            .iter()
            // What counts something else is no grade.
            .filter_map(|(name, reward)| Some((name, score(*reward)?)))
            .map(|(name, reward)| Check {
                name: name.clone(),
                passed: reward >= 1.0,
                notes: Some(format!("{reward}")),
            })
            .collect(),
        score: reward,
        usage: known(total(agents.map(Agent::usage))),
        seconds: trial.agent_execution.as_ref().and_then(Timing::seconds),
        error,
        throttled: throttled
            || breaking.is_some_and(|exception| THROTTLING.contains(&&*exception.exception_type)),
    })
}

impl Exception {
    fn has_valid_reward(&self) -> bool {
        match &self.policy {
            Some(policy) => policy.has_valid_reward,
            None => GRADED.contains(&&*self.exception_type),
        }
    }

    fn text(&self) -> String {
        format!("{}: {}", self.exception_type, self.exception_message.trim())
    }
}

impl Agent {
    fn usage(&self) -> Usage {
        Usage {
            input_tokens: self.n_input_tokens,
            output_tokens: self.n_output_tokens,
            cost_usd: self.cost_usd.and_then(not_negative),
        }
    }
}

impl Timing {
    fn seconds(&self) -> Option<f64> {
        let time = |text: &Option<String>| text.as_ref()?.parse::<jiff::Timestamp>().ok();
        let (started, finished) = (time(&self.started_at)?, time(&self.finished_at)?);
        not_negative(finished.duration_since(started).as_secs_f64())
    }
}
