//! Runs of parts of one plan as one run: what belongs together, which try counts, what is missing. Reads no file.

use std::collections::{BTreeSet, HashMap};

use jiff::Timestamp;

use crate::model::{
    AttemptRecord, CancelReason, Concurrency, PairId, PlannedBudget, Run, RunPlan, Selection, SelectionKind,
};

/// Missing attempts that are named one by one.
const NAMED: usize = 5;

/// A run of a part, and what a reader knows it by.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    /// Its name.
    pub name: &'a str,
    /// The run.
    pub run: &'a Run,
}

/// A part that does not belong to the others.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot join `{part}` with `{with}`: {why}\nname only the parts of one run")]
pub struct Foreign {
    /// Which part.
    pub part: String,
    /// The part that it was held against.
    pub with: String,
    /// The difference.
    pub why: String,
}

/// What parts come to together.
#[derive(Debug)]
pub struct Joined {
    /// The plan of the whole.
    pub plan: RunPlan,
    /// When its first part started.
    pub started_at: Timestamp,
    /// The commit that all of them measured.
    pub commit: Option<String>,
    /// The positions of the parts in the order in which they started: whatever a later one says of an attempt counts.
    pub order: Vec<usize>,
    /// How many seconds each part started after the first one.
    pub shifts: Vec<f64>,
    /// Which part has the last word on an attempt: the latest that gave it a result, else the latest.
    pub last_word: HashMap<(PairId, u32), usize>,
    /// Seconds from the start of the first part to the end of the last.
    pub wall_seconds: f64,
    /// What is missing, in words; `None` where everything that was planned is there.
    pub missing: Option<String>,
    /// What a reader should know: overlaps, parts that died, what the parts said.
    pub notices: Vec<String>,
}

/// Joins parts; there is at least one.
///
/// # Errors
/// A part that measured something else than the first one.
pub fn join(parts: &[Part<'_>]) -> Result<Option<Joined>, Foreign> {
    let Some(first) = parts.first() else {
        return Ok(None);
    };
    for part in &parts[1..] {
        if let Some(why) = difference(first.run, part.run) {
            return Err(Foreign {
                part: part.name.to_owned(),
                with: first.name.to_owned(),
                why,
            });
        }
    }
    let mut order: Vec<usize> = (0..parts.len()).collect();
    order.sort_by_key(|at| parts[*at].run.started_at);
    let started_at = parts[order[0]].run.started_at;
    let shift = |part: &Part<'_>| {
        let since = part.run.started_at.duration_since(started_at);
        super::round_seconds(since.as_secs_f64().max(0.0))
    };
    let shifts: Vec<f64> = parts.iter().map(shift).collect();
    let ends = parts.iter().zip(&shifts);
    let ends = ends.map(|(part, shift)| shift + part.run.wall_seconds);
    let (last_word, mut notices) = last_words(parts, &order);
    let plan = plan_of_whole(parts);
    let missing = missing(parts, &plan, &last_word);
    for part in parts {
        let said = part.run.notices.iter();
        notices.extend(said.map(|notice| format!("{}: {notice}", part.name)));
        if part.run.cancelled {
            notices.push(format!(
                "{}: it was cancelled or died: what it had is taken",
                part.name
            ));
        }
    }
    Ok(Some(Joined {
        plan,
        started_at,
        commit: first.run.commit.clone(),
        wall_seconds: ends.fold(0.0, f64::max),
        order,
        shifts,
        last_word,
        missing,
        notices,
    }))
}

fn difference(one: &Run, other: &Run) -> Option<String> {
    let commit = |run: &Run| run.commit.clone().unwrap_or_else(|| "unknown".to_owned());
    let shards = |run: &Run| run.plan.shard.as_ref().map(|shard| shard.count);
    let pace = |run: &Run| (run.plan.strategy, run.plan.on_pass);
    if let Some(why) = one.plan.difference_of_whole(&other.plan) {
        return Some(why);
    }
    if one.commit != other.commit {
        return Some(format!(
            "its commit is `{}`, not `{}`",
            commit(other),
            commit(one)
        ));
    }
    if pace(one) != pace(other) {
        let (one, other) = (one.plan.strategy, other.plan.strategy);
        return Some(format!(
            "its strategy is `{other}`, not `{one}`, or it goes on differently once a pair is decided"
        ));
    }
    match (shards(one), shards(other)) {
        (Some(one), Some(other)) if one != other => {
            Some(format!("it is one of {other} shards, not one of {one}"))
        }
        _ => None,
    }
}

/// Who has the last word on each attempt, and which parts say something of the same ones.
fn last_words(parts: &[Part<'_>], order: &[usize]) -> (HashMap<(PairId, u32), usize>, Vec<String>) {
    let mut last: HashMap<(PairId, u32), (usize, bool)> = HashMap::new();
    let mut overlaps: Vec<((usize, usize), usize)> = Vec::new();
    for &at in order {
        let run = parts[at].run;
        for (planned, pair) in run.plan.pairs.iter().zip(&run.pairs) {
            for record in pair.records.iter().filter(|record| says_something(record)) {
                let key = (planned.id.clone(), record.index);
                let graded = record.outcome.is_graded();
                if let Some((earlier, was_graded)) = last.get(&key).copied() {
                    match overlaps.iter_mut().find(|(both, _)| *both == (earlier, at)) {
                        Some((_, count)) => *count += 1,
                        None => overlaps.push(((earlier, at), 1)),
                    }
                    // A result is not taken away by a later try that gave none.
                    if was_graded && !graded {
                        continue;
                    }
                }
                last.insert(key, (at, graded));
            }
        }
    }
    let told = overlaps.into_iter().map(|((one, other), count)| {
        let (one, other) = (parts[one].name, parts[other].name);
        format!("{count} attempts are in both {one} and {other}: the latest with a result counts")
    });
    let last = last.into_iter().map(|(key, (at, _))| (key, at)).collect();
    (last, told.collect())
}

/// Whether a record is more than that its run came to its end before the attempt.
fn says_something(record: &AttemptRecord) -> bool {
    record.tries > 0 || record.reason == Some(CancelReason::Decided)
}

fn plan_of_whole(parts: &[Part<'_>]) -> RunPlan {
    let first = &parts[0].run.plan;
    let pairs = first.whole().to_vec();
    let shards: BTreeSet<usize> = parts.iter().filter_map(|part| shard_index(part.run)).collect();
    let mut at_once = 0;
    for part in parts {
        let is_again = |other: &&Part<'_>| shard_index(other.run) == shard_index(part.run);
        // Of several runs of one shard the first stands for all.
        if parts
            .iter()
            .find(is_again)
            .is_some_and(|other| std::ptr::eq(other.run, part.run))
        {
            at_once += part.run.plan.concurrency.value;
        }
    }
    let reason = match shards.len() {
        0 => first.concurrency.reason.clone(),
        many => format!("{at_once} in {many} shards"),
    };
    let selection = Selection {
        kind: match pairs.len() == first.selection.of {
            true => SelectionKind::All,
            false => SelectionKind::Subset,
        },
        selected: pairs.len(),
        of: first.selection.of,
    };
    RunPlan {
        pairs,
        concurrency: Concurrency {
            most: None,
            value: at_once.max(1),
            reason,
            bounded: false,
        },
        limits: Vec::new(),
        budget: PlannedBudget::default(),
        forecast: None,
        selection,
        shard: None,
        ..first.clone()
    }
}

fn shard_index(run: &Run) -> Option<usize> {
    run.plan.shard.as_ref().map(|shard| shard.index)
}

/// What was planned and is not there, in words.
fn missing(parts: &[Part<'_>], plan: &RunPlan, seen: &HashMap<(PairId, u32), usize>) -> Option<String> {
    let planned = plan.pairs.iter();
    let planned = planned.flat_map(|pair| (1..=plan.runs).map(move |index| (&pair.id, index)));
    let is_there = |(id, index): &(&PairId, u32)| {
        let at = seen.get(&((*id).clone(), *index));
        let record = at.and_then(|at| parts[*at].run.pair(id)?.1.record(*index));
        record.is_some_and(|record| matches!(record.reason, None | Some(CancelReason::Decided)))
    };
    let missing: Vec<(&PairId, u32)> = planned.filter(|attempt| !is_there(attempt)).collect();
    if missing.is_empty() {
        return None;
    }
    let mut text = format!(
        "{} of {} planned attempts are missing",
        missing.len(),
        plan.attempts()
    );
    let there: BTreeSet<usize> = parts.iter().filter_map(|part| shard_index(part.run)).collect();
    let count = parts[0].run.plan.shard.as_ref().map_or(0, |shard| shard.count);
    // Of more shards than there are pairs, those beyond have none.
    let absent: Vec<String> = (1..=count.min(plan.pairs.len()))
        .filter(|index| !there.contains(index))
        .map(|index| format!("{index}/{count}"))
        .collect();
    if !absent.is_empty() {
        text += &format!("; no part is of shard {}", absent.join(", "));
    }
    let named = missing.iter().take(NAMED);
    let named: Vec<String> = named.map(|(id, index)| format!("{id} #{index}")).collect();
    text += &format!(": {}", named.join(", "));
    if missing.len() > NAMED {
        text += &format!(" and {} more", missing.len() - NAMED);
    }
    Some(text)
}
