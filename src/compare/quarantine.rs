//! Pairs that are known to go both ways, as the configuration lists them: they run and are shown, and do not gate.
//! Knows no clock: the day is given.

use jiff::civil::Date;

use crate::config::FlakyConfig;
use crate::glob::{IdGlob, InvalidGlob, id_glob};
use crate::model::summary::Quarantined;
use crate::model::{PairId, ResultSet};

/// The list of one configuration, as it stands on one day.
#[derive(Clone, Debug, Default)]
pub struct Quarantine {
    entries: Vec<Entry>,
}

#[derive(Clone, Debug)]
struct Entry {
    experiment: Option<IdGlob>,
    eval: Option<IdGlob>,
    until: Option<Date>,
    why: Option<String>,
    expired: bool,
}

impl Quarantine {
    /// Takes the list; an entry counts up to and including its last day.
    ///
    /// # Errors
    /// Text that is no glob.
    pub fn new(flaky: &[FlakyConfig], today: Date) -> Result<Self, InvalidGlob> {
        let entry = |flaky: &FlakyConfig| -> Result<Entry, InvalidGlob> {
            Ok(Entry {
                experiment: flaky.experiment.as_deref().map(id_glob).transpose()?,
                eval: flaky.eval.as_deref().map(id_glob).transpose()?,
                until: flaky.until,
                why: flaky.why.clone(),
                expired: flaky.until.is_some_and(|until| until < today),
            })
        };
        Ok(Self {
            entries: flaky.iter().map(entry).collect::<Result<_, _>>()?,
        })
    }

    /// Whether a pair does not gate.
    pub fn holds(&self, pair: &PairId) -> bool {
        self.find(pair).is_some()
    }

    /// The pairs of a run that do not gate, in its order.
    pub fn of(&self, results: &ResultSet) -> Vec<Quarantined> {
        let quarantined = |id: &PairId| {
            let entry = self.find(id)?;
            Some(Quarantined {
                experiment: id.experiment.clone(),
                eval: id.eval.clone(),
                until: entry.until,
                why: entry.why.clone(),
            })
        };
        results
            .pairs
            .iter()
            .filter_map(|pair| quarantined(&pair.id))
            .collect()
    }

    /// Entries that do nothing any more: expired ones, and ones that no pair of a whole suite matches.
    pub fn warnings(&self, results: &ResultSet) -> Vec<String> {
        let of = |entry: &Entry| {
            let matches = results.pairs.iter().any(|pair| entry.matches(&pair.id));
            match (entry.until, matches) {
                (_, false) if results.is_partial_selection() => None,
                (_, false) => Some(format!("flaky: {entry} matches no pair: take it out of the list")),
                (Some(until), true) if entry.expired => Some(format!(
                    "flaky: {entry} has expired on {until}: what it matches gates again"
                )),
                _ => None,
            }
        };
        self.entries.iter().filter_map(of).collect()
    }

    fn find(&self, pair: &PairId) -> Option<&Entry> {
        self.entries
            .iter()
            .find(|entry| !entry.expired && entry.matches(pair))
    }
}

impl Entry {
    fn matches(&self, pair: &PairId) -> bool {
        let matches = |glob: &Option<IdGlob>, id: &str| glob.as_ref().is_none_or(|glob| glob.matches(id));
        matches(&self.experiment, pair.experiment.as_str()) && matches(&self.eval, pair.eval.as_str())
    }
}

impl std::fmt::Display for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = |glob: &Option<IdGlob>| glob.as_ref().map_or("*", IdGlob::as_str).to_owned();
        write!(f, "`{} × {}`", text(&self.experiment), text(&self.eval))
    }
}

#[cfg(test)]
mod tests {
    use jiff::civil::{Date, date};

    use super::super::tests::{failed, passed, set};
    use super::Quarantine;
    use crate::config::FlakyConfig;
    use crate::model::{PairId, Selection, SelectionKind};

    const LAST_DAY: Date = date(2027, 1, 31);

    fn on(day: Date, experiment: Option<&str>, eval: &str) -> Quarantine {
        let flaky = FlakyConfig {
            experiment: experiment.map(str::to_owned),
            eval: Some(eval.to_owned()),
            until: Some(LAST_DAY),
            why: Some("the service is slow".to_owned()),
        };
        Quarantine::new(&[flaky], day).unwrap()
    }

    #[test]
    fn an_entry_holds_up_to_and_including_its_last_day() {
        let pair = PairId::new("opus", "build-auth").unwrap();
        let results = set("now", vec![passed("opus", "build-auth"), failed("opus", "x")]);
        let last = on(LAST_DAY, None, "build-*");
        assert!(last.holds(&pair));
        assert!(!last.holds(&PairId::new("opus", "x").unwrap()));
        assert_eq!(last.warnings(&results), [""; 0]);
        assert_eq!(last.of(&results)[0].why.as_deref(), Some("the service is slow"));
        assert_eq!(last.of(&results).len(), 1);

        let after = on(date(2027, 2, 1), None, "build-*");
        assert!(!after.holds(&pair));
        assert!(after.of(&results).is_empty());
        assert_eq!(
            after.warnings(&results),
            ["flaky: `* × build-*` has expired on 2027-01-31: what it matches gates again"]
        );
    }

    #[test]
    fn both_globs_have_to_match_and_an_entry_that_matches_nothing_is_told_of_a_whole_suite() {
        let mut results = set("now", vec![passed("opus", "build-auth")]);
        let other = on(LAST_DAY, Some("gpt*"), "build-*");
        assert!(!other.holds(&results.pairs[0].id));
        assert_eq!(
            other.warnings(&results),
            ["flaky: `gpt* × build-*` matches no pair: take it out of the list"]
        );
        results.selection = Some(Selection {
            kind: SelectionKind::Subset,
            selected: 1,
            of: 9,
        });
        assert_eq!(other.warnings(&results), [""; 0]);
    }
}
