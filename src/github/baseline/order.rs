//! Which runs can be a baseline, and in which order they are looked at. Asks nobody.

use std::collections::{HashMap, VecDeque};

use jiff::Timestamp;

/// A run, as it is listed; whatever is `None` was not said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) id: u64,
    pub(super) number: Option<u64>,
    pub(super) event: Option<String>,
    pub(super) branch: Option<String>,
    pub(super) commit: Option<String>,
    pub(super) completed: bool,
    /// The run's own repository and that of its head are known, and one.
    pub(super) from_here: bool,
    pub(super) created_at: Option<Timestamp>,
    pub(super) url: Option<String>,
}

/// Events whose runs measure what the repository's own people have put there.
pub(super) const TRUSTED: [&str; 4] = ["push", "schedule", "workflow_dispatch", "merge_group"];

/// A release is made by those who may push.
pub(super) const TRUSTED_OF_TAG: [&str; 5] =
    ["push", "schedule", "workflow_dispatch", "merge_group", "release"];

impl Run {
    /// Whether it ran to its end, for a trusted event, on a commit of this repository.
    pub(super) fn is_trusted(&self, events: &[&str]) -> bool {
        self.completed && self.from_here && self.event.as_deref().is_some_and(|event| events.contains(&event))
    }

    /// Whether it measured what a merge queue was about to put on `branch`.
    pub(super) fn is_queued_for(&self, branch: &str) -> bool {
        self.branch
            .as_deref()
            .and_then(|name| name.strip_prefix("gh-readonly-queue/"))
            .and_then(|name| name.strip_prefix(branch))
            .is_some_and(|rest| rest.starts_with('/'))
    }
}

/// How a run's commit stands to the wanted one, nearest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fit {
    /// It is that commit.
    Exact,
    /// It is so many commits before it.
    Before(u32),
    /// Nobody knows.
    Unrelated,
}

/// Orders runs: the wanted commit, then its ancestors from the nearest, then the others; of one commit and of the
/// others the newest first.
pub(super) fn order(runs: Vec<Run>, steps: &HashMap<String, u32>) -> Vec<(Run, Fit)> {
    let mut ordered: Vec<(Run, Fit)> = runs
        .into_iter()
        .map(|run| {
            let fit = match run.commit.as_deref().and_then(|commit| steps.get(commit)) {
                Some(0) => Fit::Exact,
                Some(steps) => Fit::Before(*steps),
                None => Fit::Unrelated,
            };
            (run, fit)
        })
        .collect();
    ordered.sort_by_key(|(run, fit)| (*fit, std::cmp::Reverse((run.created_at, run.id))));
    ordered
}

/// How many steps each known ancestor is before `wanted`, itself included; `parents` are those of each commit.
pub(super) fn steps(wanted: &str, parents: &HashMap<String, Vec<String>>) -> HashMap<String, u32> {
    let mut steps = HashMap::from([(wanted.to_owned(), 0)]);
    let mut next = VecDeque::from([wanted]);
    while let Some(commit) = next.pop_front() {
        let far = steps.get(commit).copied().unwrap_or_default() + 1;
        for parent in parents.get(commit).into_iter().flatten() {
            if !steps.contains_key(parent) {
                steps.insert(parent.clone(), far);
                next.push_back(parent);
            }
        }
    }
    steps
}

/// A span of time as one would say it.
pub(super) fn age(from: Timestamp, now: Timestamp) -> String {
    let minutes = now.duration_since(from).as_secs().max(0) / 60;
    match minutes {
        0..120 => format!("{minutes} min old"),
        120..2880 => format!("{} h old", minutes / 60),
        _ => format!("{} days old", minutes / 1440),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::{Fit, Run, TRUSTED, age, order, steps};

    fn run(id: u64, commit: &str) -> Run {
        Run {
            id,
            commit: Some(commit.to_owned()),
            created_at: Some(format!("2026-03-01T00:00:{id:02}Z").parse().unwrap()),
            ..Run::default()
        }
    }

    fn parents(lines: &[&str]) -> HashMap<String, Vec<String>> {
        lines
            .iter()
            .map(|line| {
                let mut words = line.split_whitespace().map(str::to_owned);
                (words.next().unwrap(), words.collect())
            })
            .collect()
    }

    #[test]
    fn the_wanted_commit_comes_before_its_ancestors_and_those_before_the_rest() {
        let steps = steps("d", &parents(&["d c", "c b", "b a"]));
        let runs = vec![
            run(5, "x"),
            run(4, "a"),
            run(3, "d"),
            run(2, "b"),
            run(1, "d"),
            run(6, "y"),
        ];
        let order: Vec<(u64, Fit)> = order(runs, &steps)
            .iter()
            .map(|(run, fit)| (run.id, *fit))
            .collect();
        assert_eq!(
            order,
            [
                (3, Fit::Exact),
                (1, Fit::Exact),
                (2, Fit::Before(2)),
                (4, Fit::Before(3)),
                (6, Fit::Unrelated),
                (5, Fit::Unrelated),
            ]
        );
    }

    #[test]
    fn the_shorter_way_through_a_merge_counts() {
        // m merges the branch c-d into b.
        let steps = steps("m", &parents(&["m b d", "d c", "c a", "b a"]));
        assert_eq!(steps["b"], 1);
        assert_eq!(steps["a"], 2);
        assert_eq!(steps["c"], 2);
    }

    #[test]
    fn only_a_finished_run_of_a_trusted_event_on_our_own_commit_is_trusted() {
        let trusted = Run {
            event: Some("push".to_owned()),
            completed: true,
            from_here: true,
            ..Run::default()
        };
        assert!(trusted.is_trusted(&TRUSTED));
        let event = |event: Option<&str>| Run {
            event: event.map(str::to_owned),
            ..trusted.clone()
        };
        for name in [
            Some("pull_request"),
            Some("pull_request_target"),
            Some("workflow_run"),
            None,
        ] {
            assert!(!event(name).is_trusted(&TRUSTED), "{name:?}");
        }
        assert!(
            !Run {
                from_here: false,
                ..trusted.clone()
            }
            .is_trusted(&TRUSTED)
        );
        assert!(
            !Run {
                completed: false,
                ..trusted.clone()
            }
            .is_trusted(&TRUSTED)
        );
    }

    #[test]
    fn a_merge_queue_belongs_to_the_branch_that_it_ends_in() {
        let queued = |branch: &str| Run {
            branch: Some(branch.to_owned()),
            ..Run::default()
        };
        assert!(queued("gh-readonly-queue/main/pr-7-abc").is_queued_for("main"));
        assert!(!queued("gh-readonly-queue/main2/pr-7-abc").is_queued_for("main"));
        assert!(!queued("main").is_queued_for("main"));
    }

    #[test]
    fn ages_are_said_in_the_unit_that_one_would_use() {
        let now = "2026-03-10T12:00:00Z".parse().unwrap();
        for (from, said) in [
            ("2026-03-10T12:00:01Z", "0 min old"),
            ("2026-03-10T11:01:00Z", "59 min old"),
            ("2026-03-10T09:59:00Z", "2 h old"),
            ("2026-03-07T12:00:00Z", "3 days old"),
        ] {
            assert_eq!(age(from.parse().unwrap(), now), said);
        }
    }
}
