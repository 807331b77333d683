//! Whole waves against engines that refuse, in simulated time.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use tokio::task::LocalSet;
use tokio::time::{Instant, sleep};

use super::{Creations, Rates, Throttles};

const PRO: Rates = Rates {
    start: 150,
    ramp: 500,
    most: 5_000,
};
const VCPUS: u32 = 2;
const MINUTE: Duration = Duration::from_secs(60);
const TRIES: u32 = 12;

/// An engine that says no, and when it is asked.
struct Engine {
    begun: Instant,
    /// vCPUs that it gives out in each of its minutes, which begin with the first creation; the last holds on.
    minutes: Vec<u32>,
    /// Refuses everything in this time.
    storm: std::ops::Range<u64>,
    /// Sandboxes that it has at once.
    concurrent: usize,
    retry_after: Option<u64>,
    first: Option<Duration>,
    given: VecDeque<(u64, u32)>,
    running: usize,
    asked: usize,
    refused: usize,
}

impl Engine {
    fn new(minutes: &[u32]) -> Self {
        Self {
            begun: Instant::now(),
            minutes: minutes.to_vec(),
            storm: 0..0,
            concurrent: usize::MAX,
            retry_after: None,
            first: None,
            given: VecDeque::new(),
            running: 0,
            asked: 0,
            refused: 0,
        }
    }

    fn create(&mut self) -> Result<(), Option<Duration>> {
        let now = self.begun.elapsed();
        self.asked += 1;
        let first = *self.first.get_or_insert(now);
        let minute = (now - first).as_secs() / MINUTE.as_secs();
        let quota = self.minutes[(minute as usize).min(self.minutes.len() - 1)];
        let spent: u32 = self
            .given
            .iter()
            .filter(|(at, _)| *at == minute)
            .map(|(_, cost)| cost)
            .sum();
        if self.storm.contains(&now.as_secs()) || spent + VCPUS > quota || self.running >= self.concurrent {
            self.refused += 1;
            return Err(self.retry_after.map(Duration::from_secs));
        }
        self.given.push_back((minute, VCPUS));
        self.running += 1;
        Ok(())
    }
}

/// What became of a wave.
#[derive(Debug)]
struct Wave {
    done: usize,
    given_up: usize,
    asked: usize,
    refused: usize,
    wall: Duration,
    last_start: Duration,
}

/// `sandboxes` at once, 64 of them starting, each running for `work`.
async fn wave(engine: Engine, rates: Rates, running: usize, sandboxes: usize, work: Duration) -> Wave {
    let begun = Instant::now();
    let engine = Rc::new(RefCell::new(engine));
    let creations = Creations::new(Throttles {
        running,
        rates,
        seed: 1,
    });
    let starting = Rc::new(tokio::sync::Semaphore::new(64));
    let ends = Rc::new(RefCell::new((0, 0, Duration::ZERO)));
    let tasks = LocalSet::new();
    for _ in 0..sandboxes {
        let (engine, creations) = (Rc::clone(&engine), creations.clone());
        let (starting, ends) = (Rc::clone(&starting), Rc::clone(&ends));
        tasks.spawn_local(async move {
            let permit = starting.acquire().await.unwrap();
            let (_place, mut turn) = creations.admit(VCPUS).await;
            let mut tried = 0;
            loop {
                tried += 1;
                sleep(Duration::from_millis(40)).await;
                let created = engine.borrow_mut().create();
                sleep(Duration::from_millis(400)).await;
                match created {
                    Ok(()) => break turn.passed(),
                    Err(_) if tried == TRIES => return ends.borrow_mut().1 += 1,
                    Err(retry_after) => turn.refused(retry_after),
                }
                turn = creations.again(VCPUS).await;
            }
            drop(permit);
            ends.borrow_mut().2 = begun.elapsed();
            sleep(work).await;
            engine.borrow_mut().running -= 1;
            ends.borrow_mut().0 += 1;
        });
    }
    // A wave that is stuck would let simulated time run away.
    tokio::time::timeout(Duration::from_secs(1_000_000), tasks)
        .await
        .expect("the wave ends");
    let engine = engine.borrow();
    let (done, given_up, last_start) = *ends.borrow();
    Wave {
        done,
        given_up,
        asked: engine.asked,
        refused: engine.refused,
        wall: begun.elapsed(),
        last_start,
    }
}

const WORK: Duration = Duration::from_secs(600);

#[tokio::test(start_paused = true)]
async fn a_wave_of_474_is_never_refused_because_it_asks_for_no_more_than_the_quota() {
    let engine = Engine::new(&[150, 650, 1_150, 1_650]);
    let wave = wave(engine, PRO, 10_000, 474, WORK).await;
    assert_eq!((wave.done, wave.refused, wave.asked), (474, 0, 474));
    // 948 vCPUs: 150 in the first minute, 650 in the second, the rest in the third.
    assert!(wave.last_start < Duration::from_secs(135), "{wave:?}");
}

#[tokio::test(start_paused = true)]
async fn a_storm_of_refusals_costs_its_own_time_and_a_few_questions() {
    for retry_after in [None, Some(1), Some(30), Some(120)] {
        let mut engine = Engine::new(&[150, 650, 1_150, 1_650]);
        engine.storm = 20..320;
        engine.retry_after = retry_after;
        let wave = wave(engine, PRO, 10_000, 474, WORK).await;
        assert_eq!((wave.done, wave.given_up), (474, 0), "{retry_after:?}: {wave:?}");
        // Those on their way when it breaks, and then one each time that the wait is over.
        let refused = 64 + 300 / retry_after.unwrap_or(10) as usize;
        assert!(wave.refused <= refused, "{retry_after:?}: {wave:?}");
        // The storm, the wait that was begun in it, the wave; growing again after it takes a few minutes more.
        let patience = 320 + 300 + 600 + 600;
        assert!(
            wave.wall < Duration::from_secs(patience),
            "{retry_after:?}: {wave:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_gives_less_than_it_says_is_not_flooded_and_nothing_freezes() {
    // A sixth of what the configuration believes, and every refusal says to wait for a minute and a half.
    let mut engine = Engine::new(&[100]);
    engine.retry_after = Some(90);
    let wave = wave(engine, PRO, 10_000, 474, WORK).await;
    assert_eq!((wave.done, wave.given_up), (474, 0), "{wave:?}");
    assert!(wave.refused < 474, "{wave:?}");
    // 948 vCPUs at 100 a minute are 9 minutes and a half; with the waits not more than six times that.
    assert!(wave.last_start < Duration::from_secs(60 * 60), "{wave:?}");
}

#[tokio::test(start_paused = true)]
async fn an_account_that_others_use_too_still_gets_everything_done() {
    // Ten at once are allowed, and somebody else has six of them.
    let mut engine = Engine::new(&[1_000]);
    engine.concurrent = 4;
    engine.retry_after = Some(20);
    let wave = wave(engine, PRO, 10, 40, MINUTE).await;
    assert_eq!((wave.done, wave.given_up), (40, 0), "{wave:?}");
    // Ten waves of four are ten minutes.
    assert!(wave.wall < Duration::from_secs(40 * 60), "{wave:?}");
}

#[tokio::test(start_paused = true)]
async fn the_rate_starts_again_after_ten_quiet_minutes() {
    let creations = Creations::new(Throttles {
        running: 1_000,
        rates: PRO,
        seed: 1,
    });
    let mut last = Instant::now();
    let mut fast = Duration::ZERO;
    for _ in 0..400 {
        let before = Instant::now();
        let (_, turn) = creations.admit(VCPUS).await;
        turn.passed();
        last = Instant::now();
        fast = last - before;
    }
    // In its second minute: 650 a minute are 0.19 s for two.
    assert!(fast < Duration::from_millis(400), "{fast:?}");
    sleep(Duration::from_secs(700)).await;
    let resumed = Instant::now();
    for _ in 0..75 {
        creations.admit(VCPUS).await.1.passed();
    }
    // A third of the first minute's 150 at once, the rest over that minute.
    assert!(resumed.elapsed() < Duration::from_secs(61));
    assert!(
        resumed.elapsed() > Duration::from_secs(50),
        "{:?}",
        resumed.elapsed()
    );
    assert!(last < resumed);
}

#[tokio::test(start_paused = true)]
async fn whoever_goes_ahead_and_is_cancelled_does_not_shut_the_others_out() {
    let creations = Creations::new(Throttles {
        running: 10,
        rates: PRO,
        seed: 1,
    });
    let (_place, turn) = creations.admit(VCPUS).await;
    turn.refused(Some(Duration::from_secs(10)));
    let (place, probe) = creations.admit(VCPUS).await;
    let waiting = creations.clone();
    let waiting = tokio::spawn(async move { waiting.admit(VCPUS).await.1.passed() });
    sleep(Duration::from_secs(100)).await;
    assert!(!waiting.is_finished());
    drop((place, probe));
    waiting.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn one_that_has_its_place_is_not_stuck_behind_one_that_waits_for_it() {
    let creations = Creations::new(Throttles {
        running: 1,
        rates: PRO,
        seed: 1,
    });
    let (place, turn) = creations.admit(VCPUS).await;
    let other = creations.clone();
    let other = tokio::spawn(async move { drop(other.admit(VCPUS).await) });
    sleep(Duration::from_secs(1)).await;
    turn.refused(Some(Duration::from_secs(10)));
    creations.again(VCPUS).await.passed();
    assert!(!other.is_finished());
    drop(place);
    other.await.unwrap();
}
