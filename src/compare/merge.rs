//! Several result sets read as one. Does not compare anything.

use std::collections::HashMap;

use crate::model::{PairId, ResultSet, Selection, SelectionKind};

/// Result sets that cannot be read as one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    /// There is no set at all.
    #[error("cannot read no results as one set")]
    Nothing,
    /// A pair is there twice.
    #[error("cannot read `{first}` and `{second}` as one: both hold the pair {pair}")]
    SamePair {
        /// The pair.
        pair: PairId,
        /// The source that has it first.
        first: String,
        /// The source that has it again.
        second: String,
    },
    /// Two sets decided their pairs in different ways.
    #[error(
        "cannot read `{first}` and `{second}` as one: their {what} differ ({values})\ncompare them one at a time"
    )]
    Differ {
        /// `policies` or `runs`.
        what: &'static str,
        /// Both values.
        values: String,
        /// The source that has the first value.
        first: String,
        /// The source that has the other.
        second: String,
    },
}

/// Reads several result sets as one, their pairs in the order given.
///
/// Policy and runs are those of the sets that know them; commit, branch and page are kept where all sets agree. The
/// whole started when its first part did, and how long it took is known of a single set only.
///
/// # Errors
/// No set, a pair that is there twice, or policies or runs that are known and differ.
pub fn merge(mut sets: Vec<ResultSet>) -> Result<ResultSet, MergeError> {
    check_pairs(&sets)?;
    if sets.len() < 2 {
        return sets.pop().ok_or(MergeError::Nothing);
    }
    let policy = agreed(&sets, "policies", |set| set.policy)?;
    let runs = agreed(&sets, "runs", |set| set.runs)?;
    let sources: Vec<&str> = sets.iter().map(|set| set.source.as_str()).collect();
    Ok(ResultSet {
        source: sources.join(" + "),
        policy,
        runs,
        commit: same_in_all(&sets, |set| set.commit.clone()),
        reference: same_in_all(&sets, |set| set.reference.clone()),
        started_at: sets.iter().filter_map(|set| set.started_at).min(),
        wall_seconds: None,
        run_url: same_in_all(&sets, |set| set.run_url.clone()),
        selection: selection(&sets),
        is_cut_short: sets.iter().any(|set| set.is_cut_short),
        tells_errors: sets.iter().all(|set| set.tells_errors),
        pairs: sets.into_iter().flat_map(|set| set.pairs).collect(),
    })
}

fn check_pairs(sets: &[ResultSet]) -> Result<(), MergeError> {
    let mut sources: HashMap<&PairId, &str> = HashMap::new();
    for set in sets {
        for pair in &set.pairs {
            if let Some(first) = sources.insert(&pair.id, &set.source) {
                return Err(MergeError::SamePair {
                    pair: pair.id.clone(),
                    first: first.to_owned(),
                    second: set.source.clone(),
                });
            }
        }
    }
    Ok(())
}

/// The one value that the sets have, where they know it.
fn agreed<T: PartialEq + Copy + std::fmt::Display>(
    sets: &[ResultSet],
    what: &'static str,
    value: impl Fn(&ResultSet) -> Option<T>,
) -> Result<Option<T>, MergeError> {
    let mut known: Option<(T, &str)> = None;
    for set in sets {
        match (known, value(set)) {
            (None, Some(value)) => known = Some((value, &set.source)),
            (Some((first, source)), Some(second)) if first != second => {
                return Err(MergeError::Differ {
                    what,
                    values: format!("{first} and {second}"),
                    first: source.to_owned(),
                    second: set.source.clone(),
                });
            }
            _ => {}
        }
    }
    Ok(known.map(|(value, _)| value))
}

fn same_in_all(sets: &[ResultSet], value: impl Fn(&ResultSet) -> Option<String>) -> Option<String> {
    let first = value(sets.first()?)?;
    sets.iter()
        .all(|set| value(set).as_ref() == Some(&first))
        .then_some(first)
}

/// Whole suites are a whole; shards of one suite are it once they are all there; anything else is a part.
fn selection(sets: &[ResultSet]) -> Option<Selection> {
    let each: Vec<Selection> = sets.iter().map(|set| set.selection).collect::<Option<_>>()?;
    let selected = each.iter().map(|selection| selection.selected).sum();
    let of: usize = each.iter().map(|selection| selection.of).sum();
    let all = |kind| each.iter().all(|selection| selection.kind == kind);
    let suite = each.first().map(|selection| selection.of)?;
    let one_suite = each.iter().all(|selection| selection.of == suite);
    Some(if all(SelectionKind::All) {
        Selection {
            kind: SelectionKind::All,
            selected,
            of,
        }
    } else if all(SelectionKind::Shard) && one_suite {
        let kind = if selected == suite {
            SelectionKind::All
        } else {
            SelectionKind::Shard
        };
        Selection {
            kind,
            selected,
            of: suite,
        }
    } else {
        Selection {
            kind: SelectionKind::Subset,
            selected,
            of,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{failed, passed, set};
    use super::{MergeError, merge};
    use crate::model::{Policy, Selection, SelectionKind};

    #[test]
    fn sets_are_read_as_one_in_their_order() {
        let one = set("one.json", vec![passed("a", "x")]);
        let mut two = set("two.json", vec![failed("a", "y")]);
        two.policy = Some(Policy::All);
        two.commit = Some("abc".to_owned());
        let merged = merge(vec![one, two]).unwrap();
        assert_eq!(merged.source, "one.json + two.json");
        assert_eq!(merged.policy, Some(Policy::All));
        assert_eq!(merged.commit, None, "only one of them is known to be of it");
        let evals: Vec<&str> = merged.pairs.iter().map(|pair| pair.id.eval.as_str()).collect();
        assert_eq!(evals, ["x", "y"]);
    }

    #[test]
    fn a_pair_in_two_sources_is_an_error_that_names_both() {
        let sets = vec![
            set("one.json", vec![passed("a", "x")]),
            set("two.json", vec![failed("a", "x")]),
        ];
        let error = merge(sets).unwrap_err().to_string();
        assert_eq!(
            error,
            "cannot read `one.json` and `two.json` as one: both hold the pair a × x"
        );
    }

    #[test]
    fn different_policies_cannot_be_read_as_one() {
        let mut one = set("one.json", vec![passed("a", "x")]);
        let mut two = set("two.json", vec![passed("a", "y")]);
        (one.policy, two.policy) = (Some(Policy::Any), Some(Policy::All));
        let error = merge(vec![one, two]).unwrap_err().to_string();
        assert!(error.contains("their policies differ (any and all)"), "{error}");
        assert_eq!(merge(Vec::new()), Err(MergeError::Nothing));
    }

    #[test]
    fn all_shards_of_a_suite_are_the_suite() {
        let shard = |eval: &str| {
            let mut shard = set(eval, vec![passed("a", eval)]);
            shard.selection = Some(Selection {
                kind: SelectionKind::Shard,
                selected: 1,
                of: 3,
            });
            shard
        };
        let two_of_three = merge(vec![shard("x"), shard("y")]).unwrap();
        assert!(two_of_three.is_partial_selection());
        let whole = merge(vec![shard("x"), shard("y"), shard("z")]).unwrap();
        assert!(!whole.is_partial_selection());
    }
}
