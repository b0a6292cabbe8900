// SPDX-License-Identifier: Apache-2.0
//! The newest counters of one VM for one cluster.
//!
//! What is heard of for the first time either began to count since the VM was last heard, and counts from zero, or is
//! where counting begins: it may be days old, and that is no burst.

use std::collections::BTreeMap;

use weir_policy::{HostId, Rank};
use weir_tables::v1;

use super::refused::{Refused, Tally};
use super::{Names, News, There, raise};
use crate::requests::Change;
use crate::rollout::{Share, Shares};

/// What a host's counters take beside those by rank, in rows.
const HOST_ROWS: usize = 8;

/// What a VM takes, and each of its clusters, beside their hosts and ranks, in rows: maps of one entry take 2 kB.
pub(super) const VM_ROWS: usize = 40;
pub(super) const CLUSTER_ROWS: usize = 80;

/// Rows that may still be kept.
#[derive(Debug)]
pub(super) struct Room(pub(super) usize);

impl Room {
    pub(super) fn take(&mut self, rows: usize) -> bool {
        let left = self.0.checked_sub(rows);
        self.0 = left.unwrap_or(self.0);
        left.is_some()
    }
}

/// The report that a record is of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Telling {
    /// The proxy was known before it.
    pub(super) proxy_known: bool,
    /// It leaves out what has not changed.
    pub(super) changes: bool,
    /// When the VM wrote the newest record before this one, on the proxy's clock.
    pub(super) heard_ns: Option<u64>,
    /// None newer was taken in.
    pub(super) is_newest: bool,
}

#[derive(Debug, Default)]
pub(super) struct Counters {
    offered: Ranks,
    shed: Ranks,
    held: u64,
    shares: Shares,
    hosts: BTreeMap<HostId, Host>,
    /// By how much requests in flight have changed at hosts that were told of, until it is taken.
    pub(super) moved: Vec<(HostId, Change)>,
    /// When the record was written whose assignments and costs are known.
    pub(super) told_ns: Option<u64>,
}

#[derive(Debug, Default)]
struct Host {
    since_ms: u64,
    in_flight: u32,
    unconnected: u64,
    reading_us: u64,
    outcomes: [u64; 4],
    admitted: Ranks,
}

/// Counters by rank.
#[derive(Debug, Default)]
struct Ranks {
    counts: BTreeMap<u16, u64>,
    /// Some were never told: of a rank that is heard of for the first time nothing counts.
    is_partial: bool,
}

impl Ranks {
    /// Of a record that comes now.
    fn told(&mut self, telling: Telling, is_whole: bool, is_new: bool) {
        match (telling.changes, is_whole) {
            (true, true) => self.is_partial = false,
            (true, false) => self.is_partial |= is_new,
            (false, _) => {}
        }
    }

    /// Takes in the newest counts; `rose` is given what each has risen by.
    fn fold(
        &mut self,
        told: &[v1::RankCount],
        counts: bool,
        room: &mut Room,
        refused: &mut Tally,
        mut rose: impl FnMut(Rank, u64),
    ) {
        for v1::RankCount { rank, count } in told {
            let Some(rank) = Rank::from_number(*rank) else {
                refused.add(Refused::UnknownRank, 1);
                continue;
            };
            let counts = match self.counts.get_mut(&rank.number()) {
                Some(known) => {
                    let rise = rise(known, *count);
                    if counts { rise } else { 0 }
                }
                None if !room.take(1) => {
                    refused.add(Refused::TooManyRows, 1);
                    self.is_partial = true;
                    continue;
                }
                None => {
                    self.counts.insert(rank.number(), *count);
                    if counts && !self.is_partial {
                        *count
                    } else {
                        0
                    }
                }
            };
            if counts > 0 {
                rose(rank, counts);
            }
        }
    }
}

/// Moves a counter; never back.
fn rise(counter: &mut u64, new: u64) -> u64 {
    let rise = new.saturating_sub(*counter);
    *counter = (*counter).max(new);
    rise
}

/// Moves a share's counters; never back.
fn share_risen(share: &mut Share, told: v1::Share) -> Share {
    Share {
        ended: rise(&mut share.ended, told.ended),
        failed: rise(&mut share.failed, told.failed),
        duration_us: rise(&mut share.duration_us, told.duration_us),
        shed: rise(&mut share.shed, told.shed),
    }
}

impl Counters {
    /// Takes in a record; `is_new`: there was none of this cluster before.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn fold(
        &mut self,
        record: &v1::ClusterRecord,
        is_new: bool,
        telling: Telling,
        there: There<'_, impl Names>,
        room: &mut Room,
        news: &mut News,
        refused: &mut Tally,
    ) {
        let begins = !telling.changes || record.whole && telling.heard_ns.is_none();
        let counts = telling.proxy_known && (!is_new || begins);
        let ranks = [
            (&mut self.offered, &record.offered, &mut news.offered),
            (&mut self.shed, &record.shed, &mut news.shed),
        ];
        for (known, told, news) in ranks {
            known.told(telling, record.whole, is_new);
            known.fold(told, counts, room, refused, |rank, rise| {
                raise(news.entry(rank).or_default(), rise);
            });
        }
        let held = rise(&mut self.held, record.held);
        raise(&mut news.held, if counts { held } else { 0 });
        let told = [
            (
                &mut self.shares.steered,
                record.steered,
                &mut news.shares.steered,
            ),
            (
                &mut self.shares.left,
                record.unsteered,
                &mut news.shares.left,
            ),
        ];
        for (share, told, news) in told {
            let risen = share_risen(share, told.unwrap_or_default());
            if counts {
                *news = risen;
            }
        }
        for host in &record.hosts {
            match there.refuses(&record.cluster, &host.address) {
                None => self.fold_host(host, telling, room, news, refused),
                Some(reason) => refused.add(reason, 1),
            }
        }
    }

    fn fold_host(
        &mut self,
        record: &v1::HostRecord,
        telling: Telling,
        room: &mut Room,
        news: &mut News,
        refused: &mut Tally,
    ) {
        let id = HostId::of(&record.address);
        let known = self.hosts.get(&id);
        let was = known.map_or(0, |host| host.in_flight);
        let known = known.map(|host| host.since_ms);
        let since_ms = match telling.changes && !record.whole {
            true => known.unwrap_or(0),
            false => record.since_ms,
        };
        let since_heard = telling
            .heard_ns
            .is_none_or(|heard| since_ms.saturating_mul(1_000_000) > heard);
        let begins = match telling.changes {
            true => record.whole && since_heard,
            false => since_ms == 0 || since_heard,
        };
        let counts = telling.proxy_known && (known == Some(since_ms) || begins);
        match known {
            Some(known) if since_ms < known => return,
            Some(known) if since_ms == known => {}
            Some(_) => {
                let old = self.hosts.insert(id, Host::default()).unwrap_or_default();
                room.0 += old.admitted.counts.len();
            }
            None if !room.take(HOST_ROWS) => {
                refused.add(Refused::TooManyRows, 1);
                return;
            }
            None => {
                self.hosts.insert(id, Host::default());
            }
        }
        let host = self.hosts.entry(id).or_default();
        let is_new = known != Some(since_ms);
        host.since_ms = since_ms;
        host.admitted.told(telling, record.whole, is_new);
        if telling.is_newest {
            host.in_flight = record.in_flight;
        }
        let by = i64::from(host.in_flight) - i64::from(was);
        let ended = host.tell(record, counts, room, news, refused);
        let change = Change {
            by,
            ended,
            is_found: telling.heard_ns.is_none(),
        };
        self.moved.push((id, change));
    }

    /// The host has left the table.
    pub(super) fn remove(&mut self, host: HostId) -> usize {
        self.hosts.remove(&host).map_or(0, |host| host.rows())
    }

    pub(super) fn in_flight(&self) -> u64 {
        let hosts = self.hosts.values();
        hosts.map(|host| u64::from(host.in_flight)).sum()
    }

    /// Requests in flight, by host, as what is under way more than nothing.
    pub(super) fn all_under_way(&self) -> impl Iterator<Item = (HostId, Change)> {
        let hosts = self.hosts.iter().filter(|(_, host)| host.in_flight > 0);
        hosts.map(|(id, host)| {
            let change = Change {
                by: host.in_flight.into(),
                ended: 0,
                is_found: false,
            };
            (*id, change)
        })
    }

    pub(super) fn no_longer_in_flight(&mut self) {
        self.hosts.values_mut().for_each(|host| host.in_flight = 0);
    }

    /// What it takes.
    pub(super) fn rows(&self) -> usize {
        let hosts: usize = self.hosts.values().map(Host::rows).sum();
        CLUSTER_ROWS + self.offered.counts.len() + self.shed.counts.len() + hosts
    }
}

impl Host {
    /// Takes the record's counters; what they rose by `counts`, or it does not. Returns the requests that ended.
    fn tell(
        &mut self,
        record: &v1::HostRecord,
        counts: bool,
        room: &mut Room,
        news: &mut News,
        refused: &mut Tally,
    ) -> u64 {
        let address = &record.address;
        for (counter, new, sums) in [
            (
                &mut self.unconnected,
                record.unconnected,
                &mut news.unconnected,
            ),
            (
                &mut self.reading_us,
                record.reading_us,
                &mut news.reading_us,
            ),
        ] {
            let rose = rise(counter, new);
            if rose > 0 && counts {
                raise(sums.entry(address.clone()).or_default(), rose);
            }
        }
        let outcomes = [
            record.ok,
            record.client_error,
            record.server_error,
            record.no_answer,
        ];
        let mut ended = 0;
        let counters = self.outcomes.iter_mut().zip(outcomes);
        for ((counter, new), news) in counters.zip(&mut news.outcomes) {
            let rise = rise(counter, new);
            let counted = if counts { rise } else { 0 };
            raise(news, counted);
            raise(&mut ended, counted);
        }
        self.admitted
            .fold(&record.admitted, counts, room, refused, |rank, rise| {
                let admitted = news.admitted.entry(address.clone()).or_default();
                raise(admitted.entry(rank).or_default(), rise);
            });
        ended
    }

    fn rows(&self) -> usize {
        HOST_ROWS + self.admitted.counts.len()
    }
}
