//! Fresh attempts of every flipped pair: whether the flip is there again. Decides by the same policy as the run.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context as _;
use camino::{Utf8Path, Utf8PathBuf};

use super::arms::{Arm, Common, Driver, Occupied, Place, share};
use super::conclude::Judging;
use super::{Failure, keep, measure};
use crate::aggregate;
use crate::model::comparison::{Flip, Flips};
use crate::model::layout::CONFIRM_DIR;
use crate::model::{
    CancelReason, Concurrency, PairId, PlannedBudget, PlannedLimit, Produces, RunPlan, Selection,
    SelectionKind, Strategy, Summary, Verdict, with_causes,
};
use crate::plan;

/// What is tried again.
pub(super) struct Wanted<'a> {
    /// Fresh attempts of each flipped pair; 0 is none.
    pub(super) attempts: u32,
    pub(super) plan: &'a RunPlan,
    /// Of the run that is confirmed.
    pub(super) run_id: &'a str,
    pub(super) directory: &'a Utf8Path,
    /// The base's plan and workspace, where it was measured.
    pub(super) base: Option<(&'a RunPlan, &'a Utf8Path)>,
    /// Most attempts at once.
    pub(super) most: Option<usize>,
    /// The limits of both sides together.
    pub(super) limits: &'a [PlannedLimit],
    /// What is left of the budget; `None` where it is used up.
    pub(super) budget: Option<PlannedBudget>,
}

/// What became of the fresh attempts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Fresh {
    pub(super) cancelled: bool,
    /// Something of them could not be written.
    pub(super) lost: bool,
}

/// What the fresh attempts say.
struct Answer {
    /// The flipped pairs that have a fresh verdict, and whether it agrees.
    confirmed: BTreeMap<PairId, bool>,
    /// The same in one sentence.
    notice: String,
    fresh: Fresh,
}

impl Wanted<'_> {
    /// Makes the attempts, of the base too where it was measured: a flip is there again if each side gives again what
    /// it gave. What goes wrong is a notice: what was measured before stands without it.
    pub(super) fn confirm(&self, judging: &mut Judging<'_>, common: &Common<'_>, driver: &Driver) -> Fresh {
        let comparison = judging.comparison();
        let Some(comparison) = comparison.filter(|_| self.attempts > 0 && !judging.run.cancelled) else {
            return Fresh::default();
        };
        // Whatever keeps them from an answer, it was asked for.
        judging.known.confirmed = Some(BTreeMap::new());
        match self.ask(&comparison.flips, common, driver) {
            Ok(None) => Fresh::default(),
            Ok(Some(answer)) => {
                judging.known.confirmed = Some(answer.confirmed);
                judging.summary.notices.push(answer.notice);
                answer.fresh
            }
            Err(failure) => {
                let why = with_causes(failure.error.as_ref());
                judging
                    .summary
                    .notices
                    .push(format!("the flips could not be confirmed: {why}"));
                Fresh::default()
            }
        }
    }

    /// `None` without a flip.
    fn ask(&self, flips: &Flips, common: &Common<'_>, driver: &Driver) -> Result<Option<Answer>, Failure> {
        let flipped: BTreeSet<PairId> = flips
            .pass_to_fail
            .iter()
            .chain(&flips.fail_to_pass)
            .map(pair)
            .collect();
        if flipped.is_empty() {
            return Ok(None);
        }
        let budget = self.budget.context("the budget is used up")?;
        let directory = self.directory.join(CONFIRM_DIR);
        let place = |name, root, run_id, directory: Utf8PathBuf| Place {
            name,
            root,
            run_id,
            directory,
            // What an earlier session of the run has confirmed may not be what flips now.
            occupied: Occupied::Replace,
        };
        let fresh = |plan: &RunPlan| RunPlan {
            limits: self.limits.to_vec(),
            budget,
            ..fresh(plan, &flipped, self.attempts, self.most)
        };
        let mut plan = fresh(self.plan);
        let base = self.base.map(|(plan, root)| (fresh(plan), root));
        let (mut at_once, mut arms) = (true, Vec::new());
        if let Some((mut base, root)) = base {
            at_once = share(&mut plan, &mut base, self.most);
            let run_id = format!("{}-confirm-baseline", self.run_id);
            let place = place("confirm baseline ", root, run_id, measure::directory(&directory));
            arms.push((place, base));
        }
        let run_id = format!("{}-confirm", self.run_id);
        arms.insert(
            0,
            (place("confirm ", &common.suite.root, run_id, directory), plan),
        );
        let arms: Result<Vec<Arm>, Failure> = arms
            .into_iter()
            .map(|(place, plan)| Arm::new(common, place, plan))
            .collect();
        let arms = arms?;
        let runs = driver.run(&arms.iter().collect::<Vec<&Arm>>(), at_once);
        let summaries: Vec<Summary> = runs.iter().map(aggregate::summarize).collect();
        let mut lost = arms.iter().any(|arm| arm.recording.has_lost());
        for (arm, summary) in arms.iter().zip(&summaries) {
            lost |= !keep(&arm.recording.directory, summary)?;
        }
        let fresh: Vec<BTreeMap<PairId, Verdict>> = summaries.iter().map(verdicts).collect();
        let confirmed = answers(flips.pass_to_fail.iter(), &fresh, [Verdict::Pass, Verdict::Fail]).chain(
            answers(flips.fail_to_pass.iter(), &fresh, [Verdict::Fail, Verdict::Pass]),
        );
        let confirmed: BTreeMap<PairId, bool> = confirmed.collect();
        let mut notice = self.notice(&confirmed, flipped.len(), arms.len() > 1);
        let mut reasons = summaries.iter().map(|summary| summary.run.reason);
        if reasons.any(|reason| reason == Some(CancelReason::Budget)) {
            notice.push_str(", cut short: the budget was used up");
        }
        Ok(Some(Answer {
            notice,
            confirmed,
            fresh: Fresh {
                cancelled: runs.iter().any(|run| run.cancelled),
                lost,
            },
        }))
    }

    fn notice(&self, confirmed: &BTreeMap<PairId, bool>, flipped: usize, both: bool) -> String {
        let again = confirmed.values().filter(|agrees| **agrees).count();
        let without = flipped - confirmed.len();
        let attempts = match self.attempts {
            1 => "1 fresh attempt".to_owned(),
            many => format!("{many} fresh attempts"),
        };
        let sides = if both { " on both sides" } else { "" };
        let pairs = if flipped == 1 { "pair" } else { "pairs" };
        let mut text = format!("{attempts} of {flipped} flipped {pairs}{sides}: {again} flipped again");
        if without > 0 {
            text.push_str(&format!(", {without} without a fresh verdict"));
        }
        text + &format!(" (`{CONFIRM_DIR}/`)")
    }
}

fn pair(flip: &Flip) -> PairId {
    PairId {
        experiment: flip.experiment.clone(),
        eval: flip.eval.clone(),
    }
}

/// The same plan for these pairs and so many attempts.
fn fresh(plan: &RunPlan, pairs: &BTreeSet<PairId>, attempts: u32, most: Option<usize>) -> RunPlan {
    let mut fresh = plan.clone();
    fresh.pairs.retain(|planned| pairs.contains(&planned.id));
    fresh.runs = attempts;
    fresh.selection = Selection {
        kind: SelectionKind::Subset,
        selected: fresh.pairs.len(),
        of: plan.selection.of,
    };
    let by_pair = fresh.strategy == Strategy::Sequential || fresh.produces == Produces::Pair;
    let all = plan::sandboxes(&fresh);
    let value = all.min(most.unwrap_or(usize::MAX)).max(1);
    fresh.concurrency = Concurrency {
        most: None,
        value,
        reason: format!(
            "{value} of {all} fresh {}",
            if by_pair { "pairs" } else { "attempts" }
        ),
        bounded: value < all,
    };
    fresh
}

/// The firm verdicts of a run.
fn verdicts(summary: &Summary) -> BTreeMap<PairId, Verdict> {
    let firm = summary.pairs.iter().filter(|pair| pair.firm);
    let decided = firm.filter(|pair| matches!(pair.verdict, Verdict::Pass | Verdict::Fail));
    decided.map(|pair| (pair.id(), pair.verdict)).collect()
}

/// Whether each side gave again what it gave at first: this run the second, a measured base the first.
fn answers<'a>(
    flips: impl Iterator<Item = &'a Flip> + 'a,
    fresh: &'a [BTreeMap<PairId, Verdict>],
    [before, now]: [Verdict; 2],
) -> impl Iterator<Item = (PairId, bool)> + 'a {
    flips.filter_map(move |flip| {
        let id = pair(flip);
        let mut agrees = true;
        for (verdicts, expected) in fresh.iter().zip([now, before]) {
            agrees &= *verdicts.get(&id)? == expected;
        }
        Some((id, agrees))
    })
}
