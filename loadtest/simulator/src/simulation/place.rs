// SPDX-License-Identifier: Apache-2.0
//! Bounds: placements that see what no caller can.
//!
//! The request travels to the hosts first and is placed there, so nothing is on its way unseen.
//! Hosts take it at once.

use std::collections::BTreeMap;
use std::time::Duration;

use rustc_hash::FxHashMap;
use weir_replay::record::Outcome;

use super::{Event, Simulation};
use crate::joblets;
use crate::pending::Place;
use crate::scenario::{HostFault, Placement, Scenario};
use crate::workload::Job;

/// Requests that wait in one place, by class and then by their coming to it.
#[derive(Debug, Default)]
pub(super) struct Queue {
    waiting: BTreeMap<(u8, u64), u32>,
    /// Where each of them is.
    places: FxHashMap<u32, (u8, u64)>,
    came: u64,
    /// Cores are being given out: what that wakes need not begin again.
    feeding: bool,
}

impl Queue {
    fn push(&mut self, class: u8, request: u32) {
        let place = (class, self.came);
        self.waiting.insert(place, request);
        self.places.insert(request, place);
        self.came += 1;
    }

    /// Nobody wants it any more, or it has a host.
    pub(super) fn remove(&mut self, request: u32) {
        if let Some(place) = self.places.remove(&request) {
            self.waiting.remove(&place);
        }
    }
}

impl<J: Iterator<Item = Job>, F: FnMut(crate::Ended)> Simulation<'_, J, F> {
    /// Sends an attempt on its way to wherever it is placed; whether callers do not place it.
    pub(super) fn bounds(&mut self, request: u32, now: Duration) -> bool {
        if !self.scenario.placement.is_bound() {
            return false;
        }
        if let Some(pending) = self.pending.get_mut(&request) {
            // Should the caller's patience end first.
            pending.ended.outcome = Outcome::Timeout;
            let arrives = now + self.scenario.network;
            self.agenda.note(arrives, Event::Place(request));
        }
        true
    }

    pub(super) fn place(&mut self, request: u32, now: Duration) {
        let Some(pending) = self.pending.get(&request) else {
            return;
        };
        match self.scenario.placement {
            Placement::Callers | Placement::Stock(_) => {}
            Placement::Clairvoyant => match self.earliest(request, now) {
                Some(host) => self.submit(request, host, now),
                None => self.no_host(request, now),
            },
            Placement::CentralQueue => {
                self.queue.push(pending.job.class, request);
                self.feed(now);
            }
        }
    }

    fn no_host(&mut self, request: u32, now: Duration) {
        if let Some(pending) = self.pending.get_mut(&request) {
            pending.ended.outcome = Outcome::Failed;
        }
        self.back_off(request, None, now);
    }

    /// The host that ends it first, and is there until then if any is.
    fn earliest(&mut self, request: u32, now: Duration) -> Option<usize> {
        let pending = self.pending.get(&request)?;
        let work = joblets::of(&pending.job, self.keys, &self.scenario.timing);
        let mut best = None;
        for (number, host) in self.hosts.iter_mut().enumerate() {
            if !host.up {
                continue;
            }
            let needs = host.expected(now, &work);
            let goes = goes(self.scenario, number, host.goes, now);
            let lost = goes.is_some_and(|goes| goes < now + needs);
            // Equal ones are told apart by their room for what comes next.
            let rank = (lost, needs, usize::MAX - host.idle(now), number);
            best = best.into_iter().chain([rank]).min();
        }
        best.map(|(.., host)| host)
    }

    /// Gives waiting requests to idle cores: the most important first, to a host that has its data
    /// if there is one, else to the host with most cores idle.
    pub(super) fn feed(&mut self, now: Duration) {
        if std::mem::replace(&mut self.queue.feeding, true) {
            return;
        }
        while let Some((request, host)) = self.next_placed(now) {
            self.queue.remove(request);
            self.submit(request, host, now);
        }
        self.queue.feeding = false;
    }

    fn next_placed(&mut self, now: Duration) -> Option<(u32, usize)> {
        let (_, request) = self.queue.waiting.first_key_value()?;
        let pending = self.pending.get(request)?;
        let work = joblets::of(&pending.job, self.keys, &self.scenario.timing);
        let hosts = self.hosts.iter_mut().enumerate();
        let idle = hosts.filter_map(|(number, host)| {
            let idle = if host.up { host.idle(now) } else { 0 };
            (idle > 0).then(|| (host.has(&work), idle, usize::MAX - number))
        });
        let (.., number) = idle.max()?;
        Some((*request, usize::MAX - number))
    }

    fn submit(&mut self, request: u32, host: usize, now: Duration) {
        if let Some(pending) = self.pending.get_mut(&request) {
            pending.ended.host = Some(host);
            pending.connection += 1;
            pending.at = Some(Place {
                host,
                sent: now,
                demand: None,
                job: None,
                started: false,
            });
            let connection = pending.connection;
            self.accept(request, connection, now);
        }
    }
}

/// When a host will be gone: taken away, or lost.
fn goes(
    scenario: &Scenario,
    host: usize,
    taken: Option<Duration>,
    now: Duration,
) -> Option<Duration> {
    let of = scenario
        .troubles
        .iter()
        .filter(|trouble| trouble.host == host);
    let lost = of.filter(|trouble| trouble.what == HostFault::Lost && trouble.at >= now);
    lost.map(|trouble| trouble.at).chain(taken).min()
}
