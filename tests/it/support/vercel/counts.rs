//! What was asked: how often, how answered, how fast at most. For tests to assert on.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::limits::Rate;
use super::routes::Route;

/// What was asked.
#[derive(Debug)]
pub(crate) struct Counts {
    /// Each route's answers by status; 0 is a connection that ended without one.
    routes: BTreeMap<Route, BTreeMap<u16, u64>>,
    /// How often each was asked.
    asked: BTreeMap<Route, u64>,
    per_second: Rate,
    per_minute: Rate,
    vcpus_per_minute: Rate,
    deletes_per_second: Rate,
    /// Sessions that are not over.
    pub(crate) live: u64,
    peak_live: u64,
}

impl Counts {
    pub(crate) fn new(minute_ms: u64) -> Self {
        Self {
            routes: BTreeMap::new(),
            asked: BTreeMap::new(),
            per_second: Rate::over(1000),
            per_minute: Rate::over(minute_ms),
            vcpus_per_minute: Rate::over(minute_ms),
            deletes_per_second: Rate::over(1000),
            live: 0,
            peak_live: 0,
        }
    }

    /// How long a minute is from now on.
    pub(crate) fn resize(&mut self, minute_ms: u64) {
        self.per_minute.resize(minute_ms);
        self.vcpus_per_minute.resize(minute_ms);
    }

    pub(crate) fn asked(&mut self, now: u64, route: Route) {
        *self.asked.entry(route).or_default() += 1;
        self.per_second.add(now, 1);
        self.per_minute.add(now, 1);
        if route == Route::Delete {
            self.deletes_per_second.add(now, 1);
        }
    }

    pub(crate) fn answered(&mut self, route: Route, status: u16) {
        *self.routes.entry(route).or_default().entry(status).or_default() += 1;
    }

    pub(crate) fn created(&mut self, now: u64, vcpus: u64) {
        self.vcpus_per_minute.add(now, vcpus);
        self.live += 1;
        self.peak_live = self.peak_live.max(self.live);
    }

    /// How often a route was answered.
    pub(crate) fn of(&self, route: Route) -> u64 {
        self.routes.get(&route).map_or(0, |by| by.values().sum())
    }

    /// How many of its questions wait for their answer.
    pub(crate) fn open(&self, route: Route) -> u64 {
        self.asked.get(&route).copied().unwrap_or(0) - self.of(route)
    }

    /// How often with this status.
    pub(crate) fn with(&self, route: Route, status: u16) -> u64 {
        self.routes
            .get(&route)
            .and_then(|by| by.get(&status))
            .copied()
            .unwrap_or(0)
    }

    /// How often anything was answered.
    pub(crate) fn all(&self) -> u64 {
        self.routes.values().flat_map(BTreeMap::values).sum()
    }

    pub(crate) fn peak_per_second(&self) -> u64 {
        self.per_second.peak()
    }

    pub(crate) fn peak_per_minute(&self) -> u64 {
        self.per_minute.peak()
    }

    pub(crate) fn peak_vcpus_per_minute(&self) -> u64 {
        self.vcpus_per_minute.peak()
    }

    pub(crate) fn peak_deletes_per_second(&self) -> u64 {
        self.deletes_per_second.peak()
    }

    pub(crate) fn peak_live(&self) -> u64 {
        self.peak_live
    }

    pub(crate) fn json(&self) -> Value {
        json!({
            "all": self.all(),
            "routes": self.routes.iter().map(|(route, by)| (route.name(), by)).collect::<BTreeMap<_, _>>(),
            "live": self.live,
            "peak-live": self.peak_live(),
            "peak-per-second": self.peak_per_second(),
            "peak-per-minute": self.peak_per_minute(),
            "peak-vcpus-per-minute": self.peak_vcpus_per_minute(),
            "peak-deletes-per-second": self.peak_deletes_per_second(),
        })
    }
}
