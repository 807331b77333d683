//! Shows on standard error how far a run has come: a live view on a terminal, lines elsewhere.

mod left;
mod lines;
mod standing;
mod view;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use camino::Utf8Path;
use tokio::time::Instant;

use super::context::Context;
use super::recorder::{Audience, Show};
use super::{screen, tell};
use crate::model::Event;
use crate::runner::Job;
use lines::Detail;
pub(super) use lines::heartbeat;
pub(super) use standing::Standing;
use view::{Canvas, view};

/// How often the live view is drawn anew.
const REDRAW: Duration = Duration::from_millis(200);
/// How often a run that goes on says how far it is, where there is no live view.
const HEARTBEAT: Duration = Duration::from_secs(60);

/// How a run is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    /// Not at all, but for what goes wrong.
    Quiet,
    /// A view that is drawn anew, in colour or not, below lines of what goes wrong.
    Live { color: bool, ellipsis: &'static str },
    /// Lines, and one a minute of how far it is.
    Plain,
}

/// Shows the runs of a command.
pub(super) struct Progress {
    manner: Manner,
    detail: Detail,
    begun: Instant,
    /// Of every run that has been announced.
    standings: Mutex<Vec<Standing>>,
    /// Held while the view is made and drawn, so that an older one never takes the place of a newer one. Events do not
    /// wait for it: a terminal may stop whoever writes to it for as long as it likes.
    drawing: Mutex<()>,
}

/// Shows one of them.
struct One {
    progress: Arc<Progress>,
    at: usize,
}

impl Progress {
    /// As the flags and the surroundings have it.
    pub(super) fn new(quiet: bool, verbose: bool, context: &Context) -> Arc<Self> {
        let manner = match context.live_terminal() {
            _ if quiet => Manner::Quiet,
            true => Manner::Live {
                color: !context.no_color(),
                ellipsis: if context.stderr_in_ascii() { "..." } else { "…" },
            },
            false => Manner::Plain,
        };
        let detail = match manner {
            Manner::Quiet => Detail::Nothing,
            _ if verbose => Detail::Everything,
            Manner::Live { .. } => Detail::Trouble,
            Manner::Plain => Detail::Endings,
        };
        Arc::new(Self {
            manner,
            detail,
            begun: Instant::now(),
            standings: Mutex::default(),
            drawing: Mutex::default(),
        })
    }

    /// Goes on showing how far the runs are, for as long as it is let.
    pub(super) async fn go_on(self: Arc<Self>) {
        match self.manner {
            Manner::Quiet => {}
            Manner::Live { .. } => tokio::join!(self.draw_again_and_again(), forget_when_continued()).0,
            Manner::Plain => self.beat(&|line| tell(line)).await,
        }
    }

    async fn draw_again_and_again(&self) {
        let mut tick = tokio::time::interval(REDRAW);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut has_waited = false;
        loop {
            let due = tick.tick().await;
            // A process that was stopped hears of it by a signal, which comes before the next time.
            let is_late = due.elapsed() >= REDRAW;
            if !is_late || has_waited {
                self.draw();
            }
            has_waited = is_late && !has_waited;
        }
    }

    async fn beat(&self, say: &(dyn Fn(&str) + Sync)) {
        let mut beat = tokio::time::interval_at(Instant::now() + HEARTBEAT, HEARTBEAT);
        loop {
            beat.tick().await;
            self.with(|standings, now| {
                for standing in standings.iter().filter(|standing| standing.is_live()) {
                    say(&heartbeat(standing, now));
                }
            });
        }
    }

    fn draw(&self) {
        if let Manner::Live { color, ellipsis } = self.manner {
            let (rows, columns) = screen::size();
            let canvas = Canvas {
                columns,
                rows,
                color,
                ellipsis,
            };
            let _drawing = self.drawing.lock().unwrap_or_else(PoisonError::into_inner);
            let lines = self.with(|standings, now| view(standings, now, canvas));
            screen::draw(lines);
        }
    }

    fn with<T>(&self, use_them: impl FnOnce(&mut Vec<Standing>, Duration) -> T) -> T {
        let mut standings = self.standings.lock().unwrap_or_else(PoisonError::into_inner);
        use_them(&mut standings, self.begun.elapsed())
    }
}

impl Audience for Arc<Progress> {
    fn attend(&self, name: &'static str, job: &Job, _directory: &Utf8Path) -> Arc<dyn Show> {
        let standing = Standing::of(name, job);
        let at = self.with(|standings, _| {
            standings.push(standing);
            standings.len() - 1
        });
        Arc::new(One {
            progress: Arc::clone(self),
            at,
        })
    }
}

impl Show for One {
    fn show(&self, event: &Event) {
        let detail = self.progress.detail;
        self.progress.with(|standings, now| {
            let standing = &mut standings[self.at];
            standing.apply(event, now);
            // Said while it is held, so that the counts are in order.
            if let Some(line) = lines::line(standing, event, detail) {
                tell(&line);
            }
        });
        if matches!(event, Event::RunEnded { .. }) {
            // Whatever comes next is written below the lines that stay.
            self.progress.draw();
        }
    }
}

/// A process that was stopped and goes on finds the terminal written to by its shell.
async fn forget_when_continued() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let continued = SignalKind::from_raw(rustix::process::Signal::CONT.as_raw());
        if let Ok(mut continued) = signal(continued) {
            while continued.recv().await.is_some() {
                screen::forget();
            }
        }
    }
}

#[cfg(test)]
mod tests;
