//! What earlier runs say of each pair: which go both ways, and how many flips noise alone predicts. Knows no file.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::evidence::{Compared, differing};
use crate::model::comparison::{EarlierRun, History};
use crate::model::{PairId, ResultSet, Verdict};

/// The firm verdicts of each pair in earlier runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ledger {
    runs: Vec<Earlier>,
    pairs: BTreeMap<PairId, Record>,
    warnings: Vec<String>,
}

/// One of them.
#[derive(Clone, Debug, PartialEq)]
struct Earlier {
    source: String,
    commit: Option<String>,
    started_at: Option<Timestamp>,
    /// Whether a pair with a firm verdict passed.
    passed: BTreeMap<PairId, bool>,
}

/// How often earlier runs decided a pair each way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Firm passes.
    pub passed: u32,
    /// Firm failures.
    pub failed: u32,
}

impl Ledger {
    /// Reads earlier runs, beside the two that are compared.
    ///
    /// Left out with a warning is a run whose policy or number of attempts is known and not this run's, because its
    /// verdicts mean something else, and one that is the baseline or this run over again, which would be counted
    /// twice.
    pub fn new(history: &[ResultSet], baseline: &ResultSet, current: &ResultSet) -> Self {
        let mut ledger = Self::default();
        for earlier in history {
            if let Some(why) = unusable(earlier, baseline, current) {
                ledger
                    .warnings
                    .push(format!("history: `{}` is left out: {why}", earlier.source));
                continue;
            }
            let mut passed = BTreeMap::new();
            for pair in earlier.pairs.iter().filter(|pair| pair.firm) {
                let record = ledger.pairs.entry(pair.id.clone()).or_default();
                match pair.verdict {
                    Verdict::Pass => record.passed += 1,
                    Verdict::Fail => record.failed += 1,
                    Verdict::Error | Verdict::NotRun => continue,
                }
                passed.insert(pair.id.clone(), pair.verdict == Verdict::Pass);
            }
            ledger.runs.push(Earlier {
                source: earlier.source.clone(),
                commit: earlier.commit.clone(),
                started_at: earlier.started_at,
                passed,
            });
        }
        ledger
    }

    /// What earlier runs decided of a pair.
    pub fn record(&self, pair: &PairId) -> Record {
        self.pairs.get(pair).copied().unwrap_or_default()
    }

    /// Runs that were left out, and why.
    pub(super) fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Whether earlier runs, the baseline among them, hold both verdicts.
    pub(super) fn goes_both_ways(&self, pair: &Compared<'_>) -> bool {
        let Record { passed, failed } = self.record(pair.id());
        let before = pair.passed_before();
        passed + u32::from(before) > 0 && failed + u32::from(!before) > 0
    }

    /// What the history says of the compared pairs; `None` without any.
    ///
    /// Noise alone predicts as many PASS→FAIL as an earlier run shows on average against the same baseline: the sum,
    /// over the pairs that passed in the baseline, of the share of their earlier verdicts that are failures. FAIL→PASS
    /// likewise. If nothing changed, an earlier run differs from the baseline exactly as this one does, so this is
    /// unbiased whatever the baseline was lucky with. Pairs without an earlier verdict add nothing, and the number of
    /// those that have one is told beside it.
    pub(super) fn summary(&self, compared: &[Compared<'_>]) -> Option<History> {
        if self.runs.is_empty() {
            return None;
        }
        let (mut pairs, mut flaky, mut down, mut up) = (0, 0, 0.0, 0.0);
        for pair in compared {
            let record = self.record(pair.id());
            let verdicts = f64::from(record.passed) + f64::from(record.failed);
            if verdicts == 0.0 {
                continue;
            }
            pairs += 1;
            flaky += usize::from(self.goes_both_ways(pair));
            if pair.passed_before() {
                down += f64::from(record.failed) / verdicts;
            } else {
                up += f64::from(record.passed) / verdicts;
            }
        }
        let known = |expected: f64| (pairs > 0).then(|| (expected * 100.0).round() / 100.0);
        Some(History {
            runs: self.runs.len(),
            pairs,
            flaky,
            expected_pass_to_fail: known(down),
            expected_fail_to_pass: known(up),
            each: self.runs.iter().map(|earlier| earlier.of(compared)).collect(),
        })
    }
}

impl Earlier {
    /// What the run says of the compared pairs.
    fn of(&self, compared: &[Compared<'_>]) -> EarlierRun {
        let mut of = EarlierRun {
            source: self.source.clone(),
            commit: self.commit.clone(),
            started_at: self.started_at,
            pairs: 0,
            passed: 0,
            pass_to_fail: 0,
            fail_to_pass: 0,
        };
        for pair in compared {
            let Some(&passed) = self.passed.get(pair.id()) else {
                continue;
            };
            of.pairs += 1;
            of.passed += usize::from(passed);
            of.pass_to_fail += usize::from(pair.passed_before() && !passed);
            of.fail_to_pass += usize::from(!pair.passed_before() && passed);
        }
        of
    }
}

fn unusable(earlier: &ResultSet, baseline: &ResultSet, current: &ResultSet) -> Option<String> {
    if let Some((theirs, ours)) = differing(earlier.policy, current.policy) {
        return Some(format!(
            "it decided its pairs by the policy `{theirs}`, this run by `{ours}`"
        ));
    }
    if let Some((theirs, ours)) = differing(earlier.runs, current.runs) {
        return Some(format!(
            "it made up to {theirs} attempts of each pair, this run {ours}"
        ));
    }
    let same = |other: &ResultSet| {
        other.source == earlier.source
            || (other.started_at.is_some() && other.started_at == earlier.started_at)
    };
    if same(baseline) {
        Some("it is the baseline itself".to_owned())
    } else if same(current) {
        Some("it is this run itself".to_owned())
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{failed, options, passed, set};
    use super::super::{Known, compare_knowing};
    use crate::model::comparison::Comparison;
    use crate::model::{Policy, ResultSet};

    /// `+` is a pass, `-` a failure, of evals a, b, c, …
    fn run(source: &str, verdicts: &str) -> ResultSet {
        let pairs = ('a'..)
            .zip(verdicts.chars())
            .filter_map(|(eval, verdict)| match verdict {
                '+' => Some(passed("x", &eval.to_string())),
                '-' => Some(failed("x", &eval.to_string())),
                _ => None,
            });
        set(source, pairs.collect())
    }

    fn compared(before: &str, now: &str, history: Vec<ResultSet>) -> Comparison {
        let known = Known {
            history,
            ..Known::default()
        };
        compare_knowing(&run("before", before), &run("now", now), &options(), &known)
    }

    #[test]
    fn a_flip_of_a_pair_that_earlier_runs_decided_both_ways_is_flaky() {
        let history = vec![run("one", "+-+-."), run("two", "+++--")];
        let comparison = compared("++++-", "----+", history);
        let flaky: Vec<(&str, bool)> = comparison
            .flips
            .pass_to_fail
            .iter()
            .map(|flip| (flip.eval.as_str(), flip.flaky))
            .collect();
        assert_eq!(
            flaky,
            [("a", false), ("c", false), ("b", true), ("d", true)],
            "b went both ways before, and d failed before the baseline passed"
        );
        assert!(
            !comparison.flips.fail_to_pass[0].flaky,
            "e failed wherever it ran"
        );
    }

    #[test]
    fn noise_predicts_as_many_flips_as_earlier_runs_show_against_the_same_baseline() {
        let history = vec![run("one", "+-+-."), run("two", "--+-+"), run("three", "+-++-")];
        let comparison = compared("+++--", "+++--", history.clone());
        let summary = comparison.history.unwrap();
        assert_eq!((summary.runs, summary.pairs, summary.flaky), (3, 5, 4));
        // a failed in 1 of 3, b in 3 of 3; d passed in 1 of 3, e in 1 of 2.
        assert_eq!(summary.expected_pass_to_fail, Some(1.33));
        assert_eq!(summary.expected_fail_to_pass, Some(0.83));
        let each = summary.each.iter().map(|run| {
            (
                run.source.as_str(),
                run.pairs,
                run.passed,
                run.pass_to_fail,
                run.fail_to_pass,
            )
        });
        assert_eq!(
            each.collect::<Vec<_>>(),
            [("one", 4, 2, 1, 0), ("two", 5, 2, 2, 1), ("three", 5, 3, 1, 1)]
        );
        // What they show one by one.
        let shown: usize = history
            .iter()
            .map(|earlier| {
                let before = run("before", "+++-");
                super::super::compare(&before, earlier, &options())
                    .flips
                    .pass_to_fail
                    .len()
            })
            .sum();
        assert_eq!(shown, 4, "4 in 3 runs are 1.33 in one");
    }

    #[test]
    fn without_an_earlier_verdict_nothing_is_predicted() {
        assert_eq!(compared("+", "-", Vec::new()).history, None);
        let summary = compared("+", "-", vec![run("one", "")]).history.unwrap();
        assert_eq!((summary.runs, summary.pairs), (1, 0));
        assert_eq!(
            (summary.expected_pass_to_fail, summary.expected_fail_to_pass),
            (None, None)
        );
    }

    #[test]
    fn runs_that_mean_something_else_or_are_compared_already_are_left_out_and_said() {
        let mut other = run("other", "-");
        other.policy = Some(Policy::All);
        let before = run("before", "+");
        let mut now = run("now", "-");
        now.policy = Some(Policy::Any);
        let known = Known {
            history: vec![other, before.clone(), run("now", "-")],
            ..Known::default()
        };
        let comparison = compare_knowing(&before, &now, &options(), &known);
        assert_eq!(comparison.history, None);
        assert!(!comparison.flips.pass_to_fail[0].flaky);
        assert_eq!(
            comparison.warnings,
            [
                "history: `other` is left out: it decided its pairs by the policy `all`, this run by `any`",
                "history: `before` is left out: it is the baseline itself",
                "history: `now` is left out: it is this run itself",
            ]
        );
    }
}
