//! What earlier results say of how long attempts take, what they cost and how often they pass. Knows no plan.

use std::collections::HashMap;

use super::price::cost_of;
use super::scheduled::duration;
use crate::config::PriceConfig;
use crate::model::{Labels, PairId, ResultSet, Sample, Verdict};

/// Fewer attempts of pairs that ran several say nothing of how much attempts of a pair differ.
const FEWEST_RATIOS: usize = 20;
/// How much attempts of a pair differ where nothing tells: quantiles of a log-normal distribution of a quarter.
const USUAL_RATIOS: [f64; 9] = [0.66, 0.77, 0.85, 0.93, 1.0, 1.08, 1.18, 1.29, 1.52];

/// Everything that is known from earlier runs.
#[derive(Clone, Debug, Default)]
pub struct Experience {
    seconds: Values,
    costs: Values,
    overheads: Vec<f64>,
    passes: HashMap<PairId, Share>,
    all_passes: Share,
    ratios: Vec<f64>,
}

/// Values by pair, by eval and by experiment.
#[derive(Clone, Debug, Default)]
struct Values {
    of_pair: HashMap<PairId, Vec<f64>>,
    of_eval: HashMap<String, Vec<f64>>,
    of_experiment: HashMap<String, Vec<f64>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Share {
    passed: u32,
    of: u32,
}

impl Experience {
    /// What these results say together. `labels` of their pairs name the model that a price is for.
    pub fn of<'a>(sets: impl IntoIterator<Item = &'a ResultSet>, price: &PriceConfig) -> Self {
        let mut experience = Self::default();
        for pair in sets.into_iter().flat_map(|set| &set.pairs) {
            match &pair.samples {
                Some(samples) => {
                    for sample in samples.iter().filter(|sample| sample.outcome.is_graded()) {
                        experience.add(&pair.id, &pair.labels, sample, price);
                    }
                }
                None => match pair.verdict {
                    Verdict::Pass => experience.add_pass(&pair.id, true),
                    Verdict::Fail => experience.add_pass(&pair.id, false),
                    Verdict::Error | Verdict::NotRun => {}
                },
            }
        }
        for seconds in experience.seconds.of_pair.values().filter(|each| each.len() > 1) {
            if let Some(middle) = median(seconds).filter(|middle| *middle > 0.0) {
                experience.ratios.extend(seconds.iter().map(|each| each / middle));
            }
        }
        experience.ratios.sort_unstable_by(f64::total_cmp);
        experience
    }

    /// Seconds of a command of the pair: the median of its own, else of its eval, else of its experiment.
    pub fn seconds(&self, pair: &PairId) -> Option<f64> {
        self.seconds.median(pair)
    }

    /// Whether durations of the pair itself are known.
    pub fn knows(&self, pair: &PairId) -> bool {
        self.seconds.of_pair.contains_key(pair)
    }

    /// Seconds around a command in a fresh sandbox.
    pub fn overhead(&self) -> Option<f64> {
        median(&self.overheads)
    }

    /// USD of an attempt of the pair, likewise.
    pub fn cost(&self, pair: &PairId) -> Option<f64> {
        self.costs.median(pair)
    }

    /// Whether any attempt says what it cost.
    pub(super) fn knows_costs(&self) -> bool {
        !self.costs.of_pair.is_empty()
    }

    /// How likely an attempt of the pair passes; half where nothing is known. One attempt of the usual kind is counted
    /// besides the pair's own, so that nothing is taken for certain.
    pub(super) fn passes(&self, pair: &PairId) -> f64 {
        let share = |share: Share, otherwise: f64| {
            (f64::from(share.passed) + otherwise) / (f64::from(share.of) + 1.0)
        };
        let usual = share(self.all_passes, 0.5);
        share(self.passes.get(pair).copied().unwrap_or_default(), usual)
    }

    /// How long attempts of one pair take beside its median, the shortest first.
    pub(super) fn ratios(&self) -> &[f64] {
        if self.ratios.len() < FEWEST_RATIOS {
            &USUAL_RATIOS
        } else {
            &self.ratios
        }
    }

    fn add(&mut self, pair: &PairId, labels: &Labels, sample: &Sample, price: &PriceConfig) {
        self.add_pass(pair, sample.outcome == crate::model::Outcome::Passed);
        // A file that somebody else wrote may hold a time that is none.
        let seconds = |seconds: Option<f64>| seconds.filter(|seconds| duration(*seconds).is_some());
        if let Some(seconds) = seconds(sample.command_seconds) {
            self.seconds.add(pair, seconds);
        }
        self.overheads.extend(seconds(sample.overhead_seconds));
        let cost = sample.usage.and_then(|usage| cost_of(usage, labels, price));
        if let Some(cost) = cost {
            self.costs.add(pair, cost);
        }
    }

    fn add_pass(&mut self, pair: &PairId, passed: bool) {
        let of_pair = self.passes.entry(pair.clone()).or_default();
        for share in [of_pair, &mut self.all_passes] {
            share.of += 1;
            share.passed += u32::from(passed);
        }
    }
}

impl Values {
    fn add(&mut self, pair: &PairId, value: f64) {
        let (eval, experiment) = (pair.eval.as_str(), pair.experiment.as_str());
        self.of_pair.entry(pair.clone()).or_default().push(value);
        self.of_eval.entry(eval.to_owned()).or_default().push(value);
        self.of_experiment
            .entry(experiment.to_owned())
            .or_default()
            .push(value);
    }

    fn median(&self, pair: &PairId) -> Option<f64> {
        let values = self.of_pair.get(pair);
        let values = values.or_else(|| self.of_eval.get(pair.eval.as_str()));
        let values = values.or_else(|| self.of_experiment.get(pair.experiment.as_str()));
        median(values?)
    }
}

/// The value in the middle, or between the two there; `None` of none.
pub(super) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let upper = sorted.get(sorted.len() / 2)?;
    let lower = sorted.get(sorted.len().saturating_sub(1) / 2)?;
    Some(f64::midpoint(*lower, *upper))
}

#[cfg(test)]
mod tests {
    use super::{Experience, median};
    use crate::config::{ModelPrice, PriceConfig};
    use crate::model::{Labels, Outcome, PairId, PairResult, ResultSet, Sample, Usage, Verdict};

    fn pair(experiment: &str, eval: &str, seconds: &[f64]) -> PairResult {
        let sample = |(position, seconds): (usize, &f64)| Sample {
            index: position as u32 + 1,
            outcome: Outcome::Passed,
            stopped_early: false,
            command_seconds: Some(*seconds),
            overhead_seconds: Some(40.0),
            score: None,
            usage: Some(Usage {
                input_tokens: Some(1_000_000),
                output_tokens: Some(100_000),
                cost_usd: None,
            }),
        };
        let mut labels = Labels::default();
        labels.add("model", "small");
        PairResult {
            id: PairId::new(experiment, eval).unwrap(),
            labels,
            verdict: Verdict::Pass,
            firm: true,
            samples: Some(seconds.iter().enumerate().map(sample).collect()),
            graded: None,
        }
    }

    fn experience() -> Experience {
        let pairs = vec![
            pair("a", "one", &[10.0, 30.0]),
            pair("b", "one", &[100.0]),
            pair("a", "two", &[1000.0]),
        ];
        let price = ModelPrice {
            input: 3.0,
            output: 15.0,
        };
        let price = PriceConfig {
            models: [("small".to_owned(), price)].into(),
            ..PriceConfig::default()
        };
        Experience::of([&ResultSet::of_pairs("baseline", pairs)], &price)
    }

    #[test]
    fn a_pair_without_durations_of_its_own_has_those_of_its_eval_and_then_of_its_experiment() {
        let experience = experience();
        let seconds = |experiment, eval| experience.seconds(&PairId::new(experiment, eval).unwrap());
        assert_eq!(seconds("a", "one"), Some(20.0));
        assert_eq!(seconds("c", "one"), Some(30.0));
        assert_eq!(seconds("a", "three"), Some(30.0));
        assert_eq!(seconds("c", "three"), None);
        assert_eq!(experience.overhead(), Some(40.0));
    }

    #[test]
    fn times_and_costs_below_nothing_or_beyond_all_numbers_are_unknown() {
        let mut broken = pair("a", "one", &[-10.0, f64::INFINITY]);
        for (sample, cost) in broken.samples.iter_mut().flatten().zip([-1.0, f64::NAN]) {
            sample.overhead_seconds = Some(-5.0);
            sample.usage = Some(Usage {
                cost_usd: Some(cost),
                ..Usage::default()
            });
        }
        let results = ResultSet::of_pairs("baseline", vec![broken]);
        let experience = Experience::of([&results], &PriceConfig::default());
        let id = PairId::new("a", "one").unwrap();
        assert_eq!(
            (
                experience.seconds(&id),
                experience.overhead(),
                experience.cost(&id)
            ),
            (None, None, None)
        );
    }

    #[test]
    fn tokens_cost_what_the_models_price_says() {
        let cost = experience().cost(&PairId::new("a", "one").unwrap());
        assert_eq!(cost, Some(4.5));
    }

    #[test]
    fn nothing_is_known_from_nothing_and_nothing_is_certain() {
        let nothing = Experience::default();
        let pair = PairId::new("a", "one").unwrap();
        assert_eq!((nothing.seconds(&pair), nothing.overhead()), (None, None));
        assert_eq!(nothing.passes(&pair), 0.5);
        let passes = experience().passes(&pair);
        assert!((0.9..1.0).contains(&passes), "{passes}");
        assert_eq!(median(&[]), None);
    }
}
