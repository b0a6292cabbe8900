// SPDX-License-Identifier: Apache-2.0
//! What is timed: decisions of one policy in one fleet, and what a table and an answer cost it.

use std::hint::black_box;
use std::time::Duration;

use anyhow::Result;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use weir_policy::{Cluster, Host, HostId, Load, Overload, Rank, Request, Selection, Table};

use super::fleet::{self, KEYS, NOW};

/// Repetitions between two looks at the clock, so that its own cost and grain do not show.
pub(super) const REPEATED: usize = 256;

/// Hosts in the tables that are taken between two looks at the clock: many small tables or one large.
pub(super) const TABLED: usize = 10_000;

/// Something done over and over.
pub(super) trait Case {
    /// What is not timed.
    fn prepare(&mut self) {}

    /// Says how often it was done.
    fn run(&mut self) -> usize;
}

impl<F: FnMut() -> usize> Case for F {
    fn run(&mut self) -> usize {
        self()
    }
}

/// Which keys are asked for.
#[derive(Clone, Copy)]
pub(super) enum Asked {
    Cached,
    NotCached,
    NoKey,
}

/// Decisions for one key after the other.
pub(super) fn decisions(hosts: usize, selection: Selection, asked: Asked) -> Result<Box<dyn Case>> {
    let cluster = fleet::cluster(hosts, selection)?;
    let numbers = match asked {
        Asked::Cached => (0..KEYS).step_by(2),
        Asked::NotCached | Asked::NoKey => (1..KEYS).step_by(2),
    };
    let request = |number| Request {
        keys: (!matches!(asked, Asked::NoKey))
            .then(|| fleet::key(number))
            .into(),
        rank: Rank::new(16, 64),
    };
    let requests: Vec<Request> = numbers.map(request).collect();
    let mut at = 0;
    let mut rng = SmallRng::seed_from_u64(3);
    Ok(Box::new(move || {
        for request in requests.iter().cycle().skip(at).take(REPEATED) {
            black_box(cluster.decide(black_box(request), NOW, &mut rng));
        }
        at = (at + REPEATED) % requests.len();
        REPEATED
    }))
}

/// Takes tables.
struct Tables {
    cluster: Cluster,
    table: Table,
    copies: Vec<Table>,
}

impl Case for Tables {
    fn prepare(&mut self) {
        let hosts = self.table.hosts().len();
        self.copies = vec![self.table.clone(); TABLED.div_ceil(hosts)];
    }

    fn run(&mut self) -> usize {
        let mut hosts = 0;
        for table in self.copies.drain(..) {
            hosts += table.hosts().len();
            self.cluster.set_table(table, NOW, NOW);
        }
        hosts
    }
}

/// New tables. Counted by host: it is once a table, not once a request.
pub(super) fn tables(hosts: usize) -> Result<Box<dyn Case>> {
    Ok(Box::new(Tables {
        cluster: fleet::cluster(hosts, Selection::Estimate)?,
        table: fleet::table(hosts, Selection::Estimate, Overload::Dagor)?,
        copies: Vec::new(),
    }))
}

/// Answers whose load closes or opens a breaker, so that a host changes its place among the others.
pub(super) fn answers(hosts: usize) -> Result<Box<dyn Case>> {
    let breaker = Overload::Breaker { queued_jobs: 100 };
    let table = fleet::table(hosts, Selection::Estimate, breaker)?;
    let ids: Vec<HostId> = table.hosts().iter().map(Host::id).collect();
    let mut cluster = Cluster::default();
    cluster.set_table(table, NOW, NOW);
    // Hosts close one after the other, then open one after the other.
    let closing = ids.iter().map(|id| (*id, 200));
    let opening = ids.iter().map(|id| (*id, 0));
    let told: Vec<(HostId, u32)> = closing.chain(opening).collect();
    let (mut next, mut at) = (0, NOW);
    Ok(Box::new(move || {
        for (id, queued) in told.iter().cycle().skip(next).take(REPEATED) {
            at += Duration::from_nanos(1);
            let load = Load {
                observed: at,
                in_progress: 5,
                queued: *queued,
                ..Load::default()
            };
            cluster.observed(*id, load, at);
        }
        next = (next + REPEATED) % told.len();
        REPEATED
    }))
}
