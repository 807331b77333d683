use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};
use proptest::{collection, option, prop_assert_eq};

use super::{Grade, Tally, firm, representative, verdict};
use crate::model::{CancelReason, Outcome, Policy, Verdict};

const POLICIES: [Policy; 7] = [
    Policy::Any,
    Policy::All,
    Policy::Majority,
    mean(0.0, false),
    mean(0.5, false),
    mean(0.7, true),
    mean(1.0, false),
];

const fn mean(threshold: f64, complete: bool) -> Policy {
    Policy::Mean { threshold, complete }
}

fn grade(outcome: Outcome) -> Grade {
    Grade {
        outcome,
        reason: None,
        score: None,
    }
}

fn cancelled(reason: CancelReason) -> Grade {
    Grade {
        reason: Some(reason),
        ..grade(Outcome::Cancelled)
    }
}

/// P passed, F failed, T timed out, E errored, R cancelled with the run, D cancelled because decided.
fn grades(letters: &str) -> Vec<Grade> {
    letters
        .chars()
        .map(|letter| match letter {
            'P' => grade(Outcome::Passed),
            'F' => grade(Outcome::Failed),
            'T' => grade(Outcome::TimedOut),
            'E' => grade(Outcome::Errored),
            'R' => cancelled(CancelReason::Run),
            _ => cancelled(CancelReason::Decided),
        })
        .collect()
}

fn decide(policy: Policy, letters: &str) -> Verdict {
    let grades = grades(letters);
    verdict(policy, grades.len() as u32, &grades)
}

fn is_firm(policy: Policy, letters: &str) -> bool {
    let grades = grades(letters);
    firm(policy, grades.len() as u32, &grades)
}

#[test]
fn policies_decide_over_the_attempts_that_gave_a_result() {
    let [any, all, majority] = [Policy::Any, Policy::All, Policy::Majority];
    for (policy, letters, expected) in [
        (any, "FP", Verdict::Pass),
        (any, "FF", Verdict::Fail),
        (any, "EP", Verdict::Pass),
        (any, "EF", Verdict::Fail),
        (any, "TF", Verdict::Fail),
        (any, "PD", Verdict::Pass),
        (any, "FR", Verdict::Fail),
        (all, "PP", Verdict::Pass),
        (all, "PT", Verdict::Fail),
        (all, "PE", Verdict::Pass),
        (majority, "PF", Verdict::Fail),
        (majority, "PPF", Verdict::Pass),
        (majority, "PEF", Verdict::Fail),
        (majority, "PEE", Verdict::Pass),
        (mean(0.5, false), "PF", Verdict::Pass),
        (mean(0.5, false), "PTF", Verdict::Fail),
        (mean(0.5, false), "PE", Verdict::Pass),
        (mean(0.5, true), "PE", Verdict::Error),
        (mean(0.5, true), "PR", Verdict::Error),
        (mean(0.5, true), "PF", Verdict::Pass),
    ] {
        assert_eq!(decide(policy, letters), expected, "{policy} {letters}");
    }
}

#[test]
fn a_pair_without_any_result_is_an_error_or_was_not_run() {
    for policy in POLICIES {
        assert_eq!(decide(policy, "EE"), Verdict::Error);
        assert_eq!(decide(policy, "ER"), Verdict::Error);
        assert_eq!(decide(policy, "RR"), Verdict::NotRun);
        assert_eq!(decide(policy, ""), Verdict::NotRun);
    }
}

#[test]
fn scores_are_averaged_and_a_mean_on_the_threshold_passes() {
    let scored = |outcome, score| Grade {
        score: Some(score),
        ..grade(outcome)
    };
    let low = [scored(Outcome::Passed, 0.4), scored(Outcome::Passed, 0.5)];
    assert_eq!(verdict(mean(0.5, false), 2, &low), Verdict::Fail);
    let high = [scored(Outcome::Failed, 0.9), grade(Outcome::Failed)];
    assert_eq!(verdict(mean(0.45, false), 2, &high), Verdict::Pass);
    // 0.7 + 0.7 + 0.7 is 2.0999999999999996 in binary.
    let on_it = [scored(Outcome::Passed, 0.7); 3];
    assert_eq!(verdict(mean(0.7, false), 3, &on_it), Verdict::Pass);
    let timed_out = [scored(Outcome::TimedOut, 1.0)];
    assert_eq!(verdict(mean(0.1, false), 1, &timed_out), Verdict::Fail);
}

#[test]
fn a_verdict_is_firm_if_lost_attempts_could_not_have_changed_it() {
    let [any, all] = [Policy::Any, Policy::All];
    for (policy, letters, expected) in [
        (any, "PE", true),
        (any, "PR", true),
        (any, "FE", false),
        (any, "FR", false),
        (any, "FF", true),
        (any, "PD", true),
        (all, "PE", false),
        (all, "FE", true),
        (all, "FD", true),
        (all, "PP", true),
        (Policy::Majority, "PPE", true),
        (Policy::Majority, "PFE", false),
        (Policy::Majority, "FFD", true),
        (mean(0.5, true), "PE", false),
        (any, "EE", false),
        (any, "RR", false),
    ] {
        assert_eq!(is_firm(policy, letters), expected, "{policy} {letters}");
    }
}

#[test]
fn an_error_verdict_is_never_firm() {
    assert!(!is_firm(mean(0.5, true), "ED"));
}

#[test]
fn the_representative_is_the_first_attempt_that_agrees_with_the_verdict() {
    let of = |policy, letters| representative(decide(policy, letters), &grades(letters));
    assert_eq!(of(Policy::Any, "EFPP"), Some(2));
    assert_eq!(of(Policy::Any, "EFF"), Some(1));
    assert_eq!(of(Policy::All, "PTF"), Some(1));
    assert_eq!(of(Policy::All, "EPP"), Some(1));
    assert_eq!(of(Policy::Majority, "PFF"), Some(1));
    assert_eq!(of(Policy::Any, "EE"), None);
    assert_eq!(of(Policy::Any, "RR"), None);
    assert_eq!(of(mean(0.5, true), "PE"), None);
}

#[test]
fn a_mean_against_every_outcome_is_stood_for_by_the_first_result() {
    let grades = [
        grade(Outcome::Errored),
        Grade {
            score: Some(0.2),
            ..grade(Outcome::Passed)
        },
    ];
    let verdict = verdict(mean(0.5, false), 2, &grades);
    assert_eq!(verdict, Verdict::Fail);
    assert_eq!(representative(verdict, &grades), Some(1));
}

/// The verdicts that the missing attempts could still bring about, by trying every combination.
fn possible(policy: Policy, planned: u32, grades: &[Grade], missing: u32) -> Vec<Verdict> {
    if missing == 0 {
        return vec![verdict(policy, planned, grades)];
    }
    [Outcome::Passed, Outcome::Failed, Outcome::Errored]
        .into_iter()
        .flat_map(|outcome| {
            let mut grades = grades.to_vec();
            grades.push(grade(outcome));
            possible(policy, planned, &grades, missing - 1)
        })
        .collect()
}

fn by_brute_force(policy: Policy, planned: u32, grades: &[Grade], missing: u32) -> Option<Verdict> {
    let mut verdicts = possible(policy, planned, grades, missing);
    verdicts.dedup();
    (verdicts.len() == 1).then(|| verdicts[0])
}

fn any_grade() -> impl Strategy<Value = Grade> {
    let graded = prop_oneof![
        Just(Outcome::Passed),
        Just(Outcome::Failed),
        Just(Outcome::TimedOut),
        Just(Outcome::Errored)
    ];
    let reason = prop_oneof![
        Just(CancelReason::Run),
        Just(CancelReason::Breaker),
        Just(CancelReason::Decided)
    ];
    prop_oneof![
        4 => (graded, option::of(0.0..=1.0)).prop_map(|(outcome, score)| Grade { score, ..grade(outcome) }),
        1 => reason.prop_map(cancelled),
    ]
}

fn any_policy() -> impl Strategy<Value = Policy> {
    let mean = (0.0..=1.0, any::<bool>()).prop_map(|(threshold, complete)| mean(threshold, complete));
    prop_oneof![Just(Policy::Any), Just(Policy::All), Just(Policy::Majority), mean]
}

#[test]
fn decided_is_what_trying_every_combination_finds() {
    for policy in POLICIES {
        for planned in 1..=5_u32 {
            for done in 0..=planned {
                let letters = ["P", "F", "E", "R"];
                for mut code in 0..4_u32.pow(done) {
                    let mut so_far = String::new();
                    for _ in 0..done {
                        so_far.push_str(letters[(code % 4) as usize]);
                        code /= 4;
                    }
                    let so_far_grades = grades(&so_far);
                    let missing = planned - done;
                    let decided = Tally::of(&so_far_grades).decided(policy, planned, missing);
                    let expected = by_brute_force(policy, planned, &so_far_grades, missing);
                    assert_eq!(decided, expected, "{policy} {so_far} and {missing} missing");
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn decided_and_firm_hold_for_any_scores(
        policy in any_policy(),
        grades in collection::vec(any_grade(), 0..5),
        missing in 0..4_u32,
    ) {
        let planned = grades.len() as u32 + missing;
        let decided = Tally::of(&grades).decided(policy, planned, missing);
        prop_assert_eq!(decided, by_brute_force(policy, planned, &grades, missing));

        let is_lost = |grade: &Grade| {
            grade.outcome == Outcome::Errored
                || (grade.outcome == Outcome::Cancelled && grade.reason != Some(CancelReason::Decided))
        };
        let (lost, kept): (Vec<Grade>, Vec<Grade>) = grades.iter().partition(|grade| is_lost(grade));
        let expected = by_brute_force(policy, planned, &kept, lost.len() as u32);
        let expected = matches!(expected, Some(Verdict::Pass | Verdict::Fail));
        prop_assert_eq!(firm(policy, planned, &grades), expected);
    }
}
