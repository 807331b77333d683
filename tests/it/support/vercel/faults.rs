//! What goes wrong, and at which question: by a list or by a seeded chance. Knows nothing of how it is done.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::routes::Route;

/// Something that goes wrong.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Fault {
    /// Nothing is done: 429, to be asked again after so many seconds.
    TooMany(u64),
    /// The same, the seconds told as a date.
    TooManyUntil(u64),
    /// The same, no time told.
    TooManyUntold,
    /// Nothing is done: this status, with this code.
    Refused(u16, String),
    /// It is done, and the answer is 502.
    BadGateway,
    /// The connection is reset; nothing is done.
    Reset,
    /// It is done, and the connection is reset in place of an answer.
    Lost,
    /// It is done, and the answer ends in its middle.
    EarlyEof,
    /// A question that waits is held for so many milliseconds, and the connection is reset.
    LostPoll(u64),
    /// A line of failure in the middle of the output.
    ErrorLine,
    /// It is done, and the answer comes so many milliseconds later.
    Slow(u64),
    /// It is done, and then answered, only when it is let go. By hand nobody could.
    #[serde(skip)]
    Held,
    /// It is done, and the answer tells no labels.
    Unlabelled,
    /// The snapshot has expired.
    SnapshotGone,
    /// The session is over, as if its time had run out.
    SessionOver,
}

impl Fault {
    fn concerns(&self, route: Route, from_snapshot: bool) -> bool {
        match self {
            Self::LostPoll(_) => matches!(route, Route::Wait | Route::Logs | Route::RunAndWait),
            Self::ErrorLine => matches!(route, Route::Logs | Route::RunAndWait),
            Self::Unlabelled => matches!(route, Route::Create | Route::Get),
            Self::SnapshotGone => route == Route::Create && from_snapshot,
            Self::SessionOver => route.needs_session(),
            _ => true,
        }
    }
}

/// When a fault shows.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Rule {
    /// The routes it concerns; none is all.
    #[serde(default)]
    pub(crate) on: Vec<Route>,
    pub(crate) fault: Fault,
    /// With which of the questions it concerns, the first being 1.
    #[serde(default)]
    pub(crate) at: Vec<u64>,
    /// The chance with any other, from 0 to 1.
    #[serde(default)]
    pub(crate) probability: f64,
}

impl Rule {
    /// With the first questions of this route, one after the other.
    pub(crate) fn first(route: Route, times: u64, fault: Fault) -> Self {
        Self {
            on: vec![route],
            fault,
            at: (1..=times).collect(),
            probability: 0.0,
        }
    }

    /// Everything at once, each with this chance.
    pub(crate) fn storm(probability: f64) -> Vec<Self> {
        let faults = [
            Fault::TooMany(1),
            Fault::BadGateway,
            Fault::Reset,
            Fault::EarlyEof,
            Fault::LostPoll(50),
            Fault::SnapshotGone,
        ];
        let rule = |fault| Self {
            on: Vec::new(),
            fault,
            at: Vec::new(),
            probability,
        };
        faults.into_iter().map(rule).collect()
    }
}

/// The rules, and how often each was asked.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    seed: u64,
    rules: Vec<(Rule, u64)>,
    /// How often each showed.
    pub(crate) shown: BTreeMap<String, u64>,
}

impl Faults {
    /// The same seed and the same questions, the same faults.
    pub(crate) fn new(seed: u64, rules: Vec<Rule>) -> Self {
        Self {
            seed,
            rules: rules.into_iter().map(|rule| (rule, 0)).collect(),
            shown: BTreeMap::new(),
        }
    }

    /// In place of those before; what has shown stays counted.
    pub(crate) fn replace(&mut self, rules: Vec<Rule>) {
        self.rules = rules.into_iter().map(|rule| (rule, 0)).collect();
    }

    /// What goes wrong with this question: of several rules the first.
    pub(crate) fn at(&mut self, route: Route, from_snapshot: bool) -> Option<Fault> {
        let seed = self.seed;
        let mut found = None;
        for (index, (rule, asked)) in self.rules.iter_mut().enumerate() {
            let listed = rule.on.is_empty() || rule.on.contains(&route);
            if !listed || !rule.fault.concerns(route, from_snapshot) {
                continue;
            }
            *asked += 1;
            let by_chance = chance(seed, index as u64, *asked) < rule.probability;
            if found.is_none() && (rule.at.contains(asked) || by_chance) {
                found = Some(rule.fault.clone());
            }
        }
        if let Some(fault) = &found {
            let words = format!("{fault:?}");
            let name = words.split('(').next().unwrap_or_default().to_owned();
            *self.shown.entry(name).or_default() += 1;
        }
        found
    }
}

/// A number from 0 to 1 that depends on these three alone.
fn chance(seed: u64, stream: u64, index: u64) -> f64 {
    // The mixing function of splitmix64, which is in the public domain.
    let mut mixed = seed
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .wrapping_add(stream.wrapping_mul(0xd1b5_4a32_d192_ed03))
        .wrapping_add(index.wrapping_mul(0x8cb9_2ba7_2f3d_8dd7));
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^= mixed >> 31;
    (mixed >> 11) as f64 / (1_u64 << 53) as f64
}
