use camino::Utf8Path;
use tempfile::TempDir;

use super::{RunDir, Stored, load, replay};
use crate::config::settings::Given;
use crate::config::{Config, Source, load as load_config};
use crate::model::event::JOURNAL_SCHEMA;
use crate::model::{
    AttemptDetails, AttemptId, AttemptRecord, CancelReason, Event, Labels, Outcome, Pair, PairId, Run,
    Verdict,
};
use crate::plan::{Experience, Request, Select, build};

fn config() -> Config {
    let source = Source {
        name: "evalwave.yml",
        bytes: b"version: 1\nsuite: { pairs: [] }\nattempt: { command: 'true' }\n",
    };
    load_config(Some(&source), &Given::default()).unwrap()
}

fn attempt() -> AttemptId {
    AttemptId {
        pair: PairId::new("x", "e").unwrap(),
        index: 1,
    }
}

/// A run of one pair that has started.
async fn started(root: &Utf8Path) -> RunDir {
    let config = config();
    let pair = Pair {
        id: attempt().pair,
        labels: Labels::default(),
    };
    let plan = build(&Request {
        config: &config,
        pairs: &[pair],
        select: &Select::default(),
        capacity: None,
        experience: &Experience::default(),
        is_pinned: false,
    })
    .unwrap();
    let directory = RunDir::create(root, false, &plan, &config.attempt).unwrap();
    let event = Event::RunStarted {
        schema: JOURNAL_SCHEMA.to_owned(),
        run_id: "r".to_owned(),
        started_at: "2026-01-01T00:00:00Z".parse().unwrap(),
        commit: None,
        plan: Box::new(plan),
    };
    directory.record(&event).await.unwrap();
    directory
}

fn ended(outcome: Outcome) -> Event {
    Event::AttemptEnded {
        pair: attempt().pair,
        record: Box::new(AttemptRecord {
            outcome,
            reason: None,
            tries: 1,
            path: Some(attempt().path()),
            ..AttemptRecord::not_started(1, CancelReason::Run)
        }),
        details: Box::new(AttemptDetails::default()),
    }
}

fn replayed(root: &Utf8Path) -> Run {
    match load(root).unwrap() {
        Stored::Journal(replayed) => replayed.run,
        Stored::Summary(_) => panic!("there is no summary"),
    }
}

#[tokio::test]
async fn an_attempt_whose_file_cannot_be_written_is_in_the_journal_all_the_same() {
    let temporary = TempDir::new().unwrap();
    let root = Utf8Path::from_path(temporary.path()).unwrap();
    let directory = started(root).await;
    fs_err::write(root.join("attempts"), "in the way").unwrap();
    assert!(directory.record(&ended(Outcome::Passed)).await.is_err());
    assert_eq!(replayed(root).pairs[0].records[0].outcome, Outcome::Passed);
}

#[tokio::test]
async fn a_pair_is_published_whatever_a_killed_command_left_as_its_result() {
    let temporary = TempDir::new().unwrap();
    let root = Utf8Path::from_path(temporary.path()).unwrap();
    let directory = started(root).await;
    let files = directory.open_try(&attempt(), 1).await.unwrap();
    fs_err::write(files.join("result.json"), b"{\"passed\": \xff").unwrap();
    directory.record(&ended(Outcome::TimedOut)).await.unwrap();
    let pair_ended = Event::PairEnded {
        pair: attempt().pair,
        verdict: Verdict::Fail,
        representative: Some(1),
        graded: vec![1],
    };
    directory.record(&pair_ended).await.unwrap();
    let published = fs_err::read_to_string(root.join("raw-results-x__e/e.json")).unwrap();
    let published: serde_json::Value = serde_json::from_str(&published).unwrap();
    assert_eq!(
        (&published["passed"], &published["attempts"]),
        (&false.into(), &1.into())
    );
}

#[tokio::test]
async fn a_line_that_cannot_be_read_costs_only_itself_and_is_named() {
    let temporary = TempDir::new().unwrap();
    let root = Utf8Path::from_path(temporary.path()).unwrap();
    let directory = started(root).await;
    directory.record(&ended(Outcome::Failed)).await.unwrap();
    let journal = root.join("journal.jsonl");
    let whole = fs_err::read_to_string(&journal).unwrap();
    fs_err::write(&journal, format!("{whole}{{\"attempt_en")).unwrap();
    assert_eq!(replayed(root).pairs[0].records.len(), 1);
    let (first, rest) = whole.split_once('\n').unwrap();
    fs_err::write(&journal, format!("{first}\n{{\"attempt_en\0\n{rest}")).unwrap();
    let replayed = replay(&journal).unwrap();
    assert_eq!(
        (replayed.broken, replayed.run.pairs[0].records.len()),
        (vec![2], 1)
    );
    fs_err::write(&journal, format!("{{\"run_sta\n{rest}")).unwrap();
    let broken = load(root).unwrap_err().to_string();
    assert!(broken.contains("its first line does not start a run"), "{broken}");
    fs_err::write(
        &journal,
        whole.replace("evalwave.journal/1", "evalwave.journal/0"),
    )
    .unwrap();
    let older = load(root).unwrap_err().to_string();
    assert!(
        older.contains("its version is `evalwave.journal/0`, expected `evalwave.journal/1`"),
        "{older}"
    );
}

/// The journal of a run that came to its end, and whatever a hostile or broken disk makes of it.
#[test]
fn no_journal_panics_and_none_tells_more_than_was_told() {
    use proptest::prelude::*;

    let temporary = TempDir::new().unwrap();
    let root = Utf8Path::from_path(temporary.path()).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let directory = runtime.block_on(started(root));
    runtime
        .block_on(directory.record(&ended(Outcome::Failed)))
        .unwrap();
    let journal = root.join("journal.jsonl");
    let whole = fs_err::read(&journal).unwrap();
    let damaged = root.join("damaged.jsonl");
    let damage = (
        0..whole.len(),
        0..64_usize,
        proptest::collection::vec(any::<u8>(), 0..64),
    );
    proptest!(ProptestConfig::with_cases(2000), |((at, taken, put) in damage)| {
        let end = (at + taken).min(whole.len());
        let bytes = [&whole[..at], &put, &whole[end..]].concat();
        fs_err::write(&damaged, bytes).unwrap();
        if let Ok(replayed) = replay(&damaged) {
            prop_assert!(replayed.run.pairs.iter().all(|pair| pair.records.len() <= 1));
            let _ = crate::aggregate::summarize(&replayed.run);
        }
    });
    proptest!(|(bytes in proptest::collection::vec(any::<u8>(), 0..512))| {
        fs_err::write(&damaged, bytes).unwrap();
        prop_assert!(replay(&damaged).is_err());
    });
}
