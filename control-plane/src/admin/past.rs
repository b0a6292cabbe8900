// SPDX-License-Identifier: Apache-2.0
//! Figures of hosts over the last fifteen minutes.
//!
//! ```text
//!  Glance, each 5 s ── record ──> one Column a host (180 points of 8 bytes) ── json ──> /past
//! ```

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use serde::Serialize;
use weir_fleet::view::glance::{Glance, HostGlance};

use crate::metrics::Traffic;

/// Between two rows.
pub(crate) const EVERY: Duration = Duration::from_secs(5);
/// Fifteen minutes of rows.
const ROWS: usize = 180;
/// Hosts that are kept.
pub(crate) const MOST_HOSTS: usize = 2000;
/// Clusters whose requests are kept.
const MOST_CLUSTERS: usize = 64;

/// The ring. 2,000 hosts take 3 MB, 64 clusters 0.2 MB, and as JSON together 5 MB at the most, which all readers of a
/// row share.
///
/// Of more hosts the first are kept, and the page says how many are left out. One that has gone stays until its last
/// point is fifteen minutes old, or until its place is needed.
#[derive(Debug, Default)]
pub(crate) struct Past {
    /// How many rows there have been.
    rows: u64,
    /// Of each row that is kept, by its number modulo [`ROWS`].
    unix_ms: Vec<u64>,
    hosts: BTreeMap<Name, Column<Point>>,
    clusters: BTreeMap<String, (Counts, Column<Counts>)>,
    left_out: usize,
    /// As it was asked for since the newest row.
    json: Option<Bytes>,
}

/// Cluster and address.
type Name = (String, String);

/// Of one host or cluster, by the number of the row modulo [`ROWS`].
#[derive(Debug)]
struct Column<T> {
    points: Box<[T]>,
    /// The row in which it was last.
    seen: u64,
}

/// A host at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Point {
    /// As the next two: one more than the figure, 0 where it is not known, and cut where it has no room.
    in_progress: u16,
    queued: u16,
    delay_ms: u16,
    /// The state's letter less `a`, by [`LEVELS`], and the level.
    level_and_state: u16,
}

/// More than there are levels.
const LEVELS: u16 = 8192;
/// By number: not there, up, draining, down.
const STATES: [char; 4] = ['-', 'u', 'd', 'x'];

/// What requests of a cluster have come to since the row before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    offered: u64,
    shed: u64,
}

/// The answer of `/past`. Arrays have an element for each of `unix_ms`, the oldest first; -1 is not known.
#[derive(Debug, Serialize)]
struct Page<'a> {
    every_ms: u64,
    unix_ms: Vec<u64>,
    hosts: Vec<HostPage<'a>>,
    clusters: Vec<ClusterPage<'a>>,
    /// Hosts for which there is no place.
    left_out: usize,
}

#[derive(Debug, Serialize)]
struct HostPage<'a> {
    cluster: &'a str,
    host: &'a str,
    in_progress: Vec<i32>,
    queued: Vec<i32>,
    delay_ms: Vec<i32>,
    level: Vec<u16>,
    /// A letter a row: `u`p, `d`raining, `x` down, `-` not there.
    state: String,
}

/// Requests since the row before.
#[derive(Debug, Serialize)]
struct ClusterPage<'a> {
    cluster: &'a str,
    offered: Vec<u64>,
    shed: Vec<u64>,
}

impl Past {
    /// Adds a row.
    pub(crate) fn record(
        &mut self,
        glance: &Glance,
        traffic: &BTreeMap<String, Traffic>,
        unix_ms: u64,
    ) {
        self.rows += 1;
        let row = self.rows;
        self.json = None;
        self.unix_ms.resize(ROWS, 0);
        self.unix_ms[slot(row)] = unix_ms;
        self.hosts.values_mut().for_each(|column| column.clear(row));
        let columns = self.clusters.values_mut();
        columns.for_each(|(_, column)| column.clear(row));
        self.hosts.retain(|_, column| column.is_kept(row));
        self.clusters.retain(|_, (_, column)| column.is_kept(row));
        self.left_out = 0;
        for (cluster, glance) in &glance.clusters {
            for host in &glance.hosts {
                let name = (cluster.clone(), host.host.clone());
                match self.make_room(&name) {
                    true => self.hosts.entry(name).or_default().set(row, host.into()),
                    false => self.left_out += 1,
                }
            }
            self.left_out += glance.total.hosts - glance.hosts.len();
        }
        for (cluster, traffic) in traffic {
            if self.clusters.contains_key(cluster) || self.clusters.len() < MOST_CLUSTERS {
                self.count(cluster, traffic);
            }
        }
    }

    fn make_room(&mut self, name: &Name) -> bool {
        if self.hosts.len() < MOST_HOSTS || self.hosts.contains_key(name) {
            return true;
        }
        let columns = self.hosts.iter();
        let gone = columns.filter(|(_, column)| column.seen + 1 < self.rows);
        let Some(gone) = gone.min_by_key(|(_, column)| column.seen) else {
            return false;
        };
        let gone = gone.0.clone();
        self.hosts.remove(&gone).is_some()
    }

    fn count(&mut self, cluster: &str, traffic: &Traffic) {
        let total = Counts {
            offered: traffic.offered.values().sum(),
            shed: traffic.shed.values().sum(),
        };
        let begin = || (total, Column::default());
        let (before, column) = self
            .clusters
            .entry(cluster.to_owned())
            .or_insert_with(begin);
        let since = Counts {
            offered: total.offered.saturating_sub(before.offered),
            shed: total.shed.saturating_sub(before.shed),
        };
        *before = total;
        column.set(self.rows, since);
    }

    /// The answer of `/past`, encoded once a row.
    pub(crate) fn json(&mut self) -> Bytes {
        if let Some(json) = &self.json {
            return json.clone();
        }
        let text = serde_json::to_vec(&self.page()).unwrap_or_default();
        self.json.insert(text.into()).clone()
    }

    fn page(&self) -> Page<'_> {
        let kept = self.rows.saturating_sub(ROWS as u64) + 1..=self.rows;
        let hosts = self.hosts.iter().map(|((cluster, host), column)| {
            let points = || kept.clone().map(|row| column.points[slot(row)]);
            let figures = |of: fn(Point) -> u16| points().map(|it| i32::from(of(it)) - 1).collect();
            HostPage {
                cluster,
                host,
                in_progress: figures(|point| point.in_progress),
                queued: figures(|point| point.queued),
                delay_ms: figures(|point| point.delay_ms),
                level: points().map(|it| it.level_and_state % LEVELS).collect(),
                state: points().map(Point::state).collect(),
            }
        });
        let clusters = self.clusters.iter().map(|(cluster, (_, column))| {
            let of =
                |of: fn(Counts) -> u64| kept.clone().map(move |row| of(column.points[slot(row)]));
            ClusterPage {
                cluster,
                offered: of(|counts| counts.offered).collect(),
                shed: of(|counts| counts.shed).collect(),
            }
        });
        Page {
            every_ms: EVERY.as_millis() as u64,
            unix_ms: kept.clone().map(|row| self.unix_ms[slot(row)]).collect(),
            hosts: hosts.collect(),
            clusters: clusters.collect(),
            left_out: self.left_out,
        }
    }
}

fn slot(row: u64) -> usize {
    (row % ROWS as u64) as usize
}

impl<T: Clone + Default> Default for Column<T> {
    fn default() -> Self {
        Self {
            points: vec![T::default(); ROWS].into(),
            seen: 0,
        }
    }
}

impl<T: Default> Column<T> {
    fn clear(&mut self, row: u64) {
        self.points[slot(row)] = T::default();
    }

    fn set(&mut self, row: u64, point: T) {
        self.points[slot(row)] = point;
        self.seen = row;
    }

    fn is_kept(&self, row: u64) -> bool {
        self.seen + (ROWS as u64) > row
    }
}

impl Point {
    fn state(self) -> char {
        STATES[usize::from(self.level_and_state / LEVELS) % STATES.len()]
    }
}

impl From<&HostGlance> for Point {
    fn from(host: &HostGlance) -> Self {
        let figure = |figure: Option<u32>| {
            figure.map_or(0, |it| u16::try_from(it).unwrap_or(u16::MAX).max(1))
        };
        let more = |it: Option<u32>| figure(it.map(|it| it.saturating_add(1)));
        let delay = host.delay_ms.map(|delay| delay.round() as u32);
        let state = match host.state {
            "up" => 1,
            "draining" => 2,
            _ => 3,
        };
        let level = host.level.unwrap_or(weir_policy::Level::ALL.ranks());
        Self {
            in_progress: more(host.in_progress),
            queued: more(host.queued),
            delay_ms: more(delay),
            level_and_state: state * LEVELS + level % LEVELS,
        }
    }
}

#[cfg(test)]
mod tests;
