// SPDX-License-Identifier: Apache-2.0
//! One level for the cluster, and a lower one for a host that is far behind the others.
//!
//! ```text
//!  the usual host's wait ────────────> the cluster's level: what is shed
//!  a host's wait beyond the usual ──> its own, if lower: what it passes on to the others
//! ```
//! While the usual host is not overloaded nobody is shed, whatever one hot host has queued; and in overload
//! of all no host is behind, so that levels do not add up. By `baseline` nobody passes anything on: to it one
//! host less is another place for nearly every key.

use std::time::Duration;

use weir_policy::Level;
use weir_policy::steady::{Controller, Params, Window};

use super::{Counts, HostLevel, Seen, Step};
use crate::settings::Dagor;

/// The cluster's level. By default it admits everything.
#[derive(Debug, Default)]
pub struct ClusterLevel {
    controller: Controller,
    stepped: Duration,
}

/// Work done for another host costs a fetch, so that host gets its keys back at an even pace.
pub(super) fn passing(dagor: &Dagor) -> Params {
    Params {
        // A single host's wait is too much chance to be extrapolated.
        ahead: Duration::ZERO,
        haste: 1.0,
        settle: dagor.steady.settle,
        half_life: dagor.steady.half_life,
        ..Params::aiming_at(dagor.behind / 3)
    }
}

/// The mean of the middle half: as little moved by a few hot hosts as the median, and less by chance.
fn midmean(mut waits: Vec<Duration>) -> Option<Duration> {
    waits.sort_unstable();
    let outer = waits.len() / 4;
    let middle = waits.get(outer..waits.len() - outer)?;
    let sum: Duration = middle.iter().sum();
    sum.checked_div(u32::try_from(middle.len()).ok()?)
}

impl ClusterLevel {
    /// Goes on from the level that somebody else came to.
    pub fn starting_at(level: Level) -> Self {
        Self {
            controller: Controller::starting_at(level),
            ..Self::default()
        }
    }

    /// The level.
    pub fn get(&self) -> Level {
        self.controller.level()
    }

    /// Whether every host whose figures are not stale has newer ones than at the last step: a level that
    /// moves faster than its effect is seen moves too far.
    pub fn is_due<'a, 'b: 'a>(
        mut hosts: impl Iterator<Item = &'a Seen<'b>>,
        now: Duration,
        with: &Step<'_>,
    ) -> bool {
        let late = |host: &Seen<'_>| {
            let figures = host.figures.as_ref();
            figures.is_some_and(|seen| with.is_fresh(seen, now) && !host.level.flow.is_news(seen))
        };
        !hosts.any(late)
    }

    /// Ends a window of the hosts that are up. `offered` is what the cluster was asked for, `share` each
    /// host's part of it. Whether a level has changed.
    ///
    /// Stale figures open a host's level, and nobody's open the cluster's: not to know is not to be
    /// overloaded.
    pub fn step(
        &mut self,
        offered: &Counts,
        share: &Counts,
        hosts: &mut [Seen<'_>],
        now: Duration,
        with: &Step<'_>,
    ) -> bool {
        let before = self.get();
        let length = now.saturating_sub(std::mem::replace(&mut self.stepped, now));
        let (waits, mut changed) = waits(hosts, now, with);
        let Some(usual) = midmean(waits) else {
            *self = Self {
                stepped: now,
                ..Self::default()
            };
            return changed || self.get() != before;
        };
        let window = window(offered, hosts, usual, length);
        self.controller.step(&with.dagor.steady, &window);
        changed |= self.get() != before;
        for host in hosts.iter_mut().filter(|_| with.passes_on) {
            if let Some(seen) = &host.figures {
                let wait = host.level.flow.wait(seen);
                let beyond = wait.map(|wait| wait.saturating_sub(usual));
                changed |= host
                    .level
                    .pass_on(with.dagor, share, length, beyond, host.idle);
            }
        }
        changed
    }
}

/// The waits of the hosts whose figures are fresh. The levels of the others are opened; whether one has changed.
fn waits(hosts: &mut [Seen<'_>], now: Duration, with: &Step<'_>) -> (Vec<Duration>, bool) {
    let mut waits = Vec::with_capacity(hosts.len());
    let mut changed = false;
    for host in hosts {
        host.figures = host.figures.take().filter(|seen| with.is_fresh(seen, now));
        match &host.figures {
            Some(seen) => {
                host.level.flow.observe(seen);
                waits.extend(host.level.flow.wait(seen));
            }
            None => {
                changed |= host.level.passing.level() != Level::ALL;
                *host.level = host.level.opened(now);
            }
        }
    }
    (waits, changed)
}

/// The cluster's window: what was asked for, and what its hosts did.
fn window(offered: &Counts, hosts: &[Seen<'_>], usual: Duration, length: Duration) -> Window {
    let idle = hosts.iter().filter(|host| host.idle).count();
    let all =
        |part: fn(&HostLevel) -> f64| -> f64 { hosts.iter().map(|host| part(host.level)).sum() };
    let (sent, refused) = (all(|host| host.sent), all(|host| host.refused));
    let rates = hosts.iter().filter_map(|host| host.level.flow.rate());
    let offered = offered.iter();
    Window {
        length,
        demand: offered.map(|(rank, count)| (*rank, *count)).collect(),
        done: rates.sum::<f64>() * length.as_secs_f64(),
        wait: Some(usual),
        // As many as the usual wait is the mean of.
        idle: idle >= hosts.len() - hosts.len() / 4,
        refused: if sent > 0.0 { refused / sent } else { 0.0 },
    }
}

impl HostLevel {
    /// Moves what the host passes on, whose wait is so far `beyond` the usual one; whether it has changed.
    fn pass_on(
        &mut self,
        dagor: &Dagor,
        share: &Counts,
        length: Duration,
        beyond: Option<Duration>,
        idle: bool,
    ) -> bool {
        let before = self.passing.level();
        self.wanted(share, before);
        let window = Window {
            length,
            demand: std::mem::take(&mut self.demand).into_iter().collect(),
            done: self.flow.rate().unwrap_or(0.0) * length.as_secs_f64(),
            wait: beyond,
            idle,
            refused: self.refused(),
        };
        self.passing.step(&passing(dagor), &window);
        self.passing.level() != before
    }

    /// Begins the next window, whether or not the last one has moved anything; whether what the host passes
    /// on has changed. Where nobody passes anything on, it is nothing.
    pub fn begin_window(&mut self, with: &Step<'_>) -> bool {
        self.requests = 0.0;
        (self.sent, self.refused) = (0.0, 0.0);
        self.demand.clear();
        let opens = !with.passes_on && self.passing.level() != Level::ALL;
        if opens {
            self.passing = Controller::default();
        }
        opens
    }
}
