//! Limiters that the sandboxes of an engine share: how many run, how fast they are created, how often the engine is
//! asked. They decide, and time is a value to them; only [`creations`] and [`control`] wait. They know no engine.

mod bucket;
mod control;
mod creations;
mod gate;
mod jitter;
mod pacer;
mod running;

pub(super) use bucket::Bucket;
pub(super) use control::Control;
pub(super) use creations::{Admission, Creations, Throttles, Turn};
pub(super) use jitter::Jitter;
pub(super) use pacer::Rates;

#[cfg(test)]
mod tests;
