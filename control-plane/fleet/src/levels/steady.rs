// SPDX-License-Identifier: Apache-2.0
//! One level for the cluster, and a lower one for a host that is far behind the others.
//!
//! ```text
//!  the usual host's wait ────────────> the cluster's level: what is shed, by as much of it as would not be then
//!  a host's wait beyond the usual ──> its own, if lower: what it passes on to the others
//! ```
//! While the usual host is not overloaded nobody is shed, whatever one hot host has queued; and in overload
//! of all no host is behind, so that levels do not add up. By `baseline` nobody passes anything on: to it one
//! host less is another place for nearly every key.

use std::time::Duration;

use weir_policy::steady::{Controller, Params, Waits, Window};
use weir_policy::{CLASSES, Level};

use super::cores::{Cores, Standing};
use super::flow::own_work;
use super::{Counts, HostLevel, Seen, Step};
use crate::settings::Dagor;

/// The cluster's level. By default it admits everything.
#[derive(Debug, Default)]
pub struct ClusterLevel {
    controller: Controller,
    stepped: Duration,
    cores: Standing,
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

/// The usual host's, class by class.
fn usual(waits: impl Iterator<Item = Waits>) -> Option<Waits> {
    let waits: Vec<_> = waits.collect();
    let of = |class| midmean(waits.iter().map(|waits| waits.of(class)).collect());
    let by_class = (0..CLASSES).map(|class| of(class as u8));
    by_class.collect::<Option<_>>().map(Waits::by_class)
}

/// The mean of the middle half: as little moved by a few hot hosts as the median, and less by chance.
fn midmean(mut waits: Vec<Duration>) -> Option<Duration> {
    waits.sort_unstable();
    let outer = waits.len() / 4;
    let middle = waits.get(outer..waits.len() - outer)?;
    // A page may claim any wait.
    let sum = middle
        .iter()
        .copied()
        .fold(Duration::ZERO, Duration::saturating_add);
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
        let mut changed = observe(hosts, now, with);
        let of_all = usual(hosts.iter().filter_map(|host| host.waits()));
        let avoidable = usual(hosts.iter().filter_map(|host| host.avoidable()));
        let (Some(usual), Some(avoidable)) = (of_all, avoidable) else {
            *self = Self {
                stepped: now,
                ..Self::default()
            };
            for host in hosts.iter_mut().filter(|host| host.idle) {
                changed |= open(host, now);
            }
            return changed || self.get() != before;
        };
        let cores = Cores::of(hosts.iter().map(|host| host.millicores));
        let window = Window {
            gained: self.cores.gained(cores),
            ..window(offered, hosts, avoidable, length)
        };
        self.controller.step(&with.dagor.steady, &window);
        self.cores.stepped(cores, before, self.get());
        changed |= self.get() != before;
        for host in hosts
            .iter_mut()
            .filter(|host| with.passes_on && host.figures.is_some())
        {
            let beyond = host.waits().map(|waits| waits.beyond(&usual));
            let cores = Cores::of([host.millicores].into_iter());
            changed |= host
                .level
                .pass_on(with.dagor, share, length, beyond, (host.idle, cores));
        }
        changed
    }
}

/// Opens the host's level; whether it has changed.
fn open(host: &mut Seen<'_>, now: Duration) -> bool {
    let changed = host.level.passing.level() != Level::ALL;
    *host.level = host.level.opened(now);
    changed
}

/// Takes in the figures that are fresh. The levels of the other hosts are opened; whether one has changed.
fn observe(hosts: &mut [Seen<'_>], now: Duration, with: &Step<'_>) -> bool {
    let mut changed = false;
    for host in hosts {
        host.figures = host.figures.take().filter(|seen| with.is_fresh(seen, now));
        match &host.figures {
            Some(seen) => host.level.flow.observe(seen),
            None => changed |= open(host, now),
        }
    }
    changed
}

impl Seen<'_> {
    /// How long what is queued there will wait.
    fn waits(&self) -> Option<Waits> {
        self.level.flow.waits(self.figures.as_ref()?)
    }

    /// How much of that would not be if less were admitted.
    fn avoidable(&self) -> Option<Waits> {
        let waits = self.waits()?;
        let own = own_work(self.figures.as_ref()?, self.millicores);
        Some(match own {
            Some(own) => waits.at_most(&own),
            None => waits,
        })
    }
}

/// The cluster's window: what was asked for, and what its hosts did.
fn window(offered: &Counts, hosts: &[Seen<'_>], wait: Waits, length: Duration) -> Window {
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
        wait: Some(wait),
        // As many as the usual wait is the mean of.
        idle: idle >= hosts.len() - hosts.len() / 4,
        gained: 0.0,
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
        beyond: Option<Waits>,
        (idle, cores): (bool, Option<Cores>),
    ) -> bool {
        let before = self.passing.level();
        self.wanted(share, before);
        let window = Window {
            length,
            demand: std::mem::take(&mut self.demand).into_iter().collect(),
            done: self.flow.rate().unwrap_or(0.0) * length.as_secs_f64(),
            wait: beyond,
            idle,
            gained: self.cores.gained(cores),
            refused: self.refused(),
        };
        self.passing.step(&passing(dagor), &window);
        self.cores.stepped(cores, before, self.passing.level());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_that_nobody_can_have_are_no_more_than_the_longest() {
        let absurd = Duration::MAX / 3 * 2;
        assert_eq!(midmean(vec![absurd; 3]), Some(Duration::MAX / 3));
        let one = Duration::from_secs(1);
        assert_eq!(midmean(vec![absurd, one, one, one]), Some(one));
    }
}
