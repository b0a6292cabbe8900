// SPDX-License-Identifier: Apache-2.0
//! What holds after every step.

use std::collections::BTreeMap;
use std::time::Duration;

use weir_fleet::State;
use weir_policy::{Level, RANKS, Rank, USERS};
use weir_tables::{Meta, v1};

use crate::control::{CLUSTER, Control};
use crate::sidecar::Sidecar;

/// The parts of the requests that are of each class, most important first.
pub(crate) const CLASSES: [(u8, &str, f64); 3] =
    [(0, "top", 0.1), (8, "middle", 0.3), (16, "low", 0.6)];
/// Most of what is admitted that a step of a level sheds: [`weir_policy::steady::Params::most`].
const MOST: f64 = 0.7;
/// What was asked for lately differs by so much from what is asked for in the long run.
const CHANCE: f64 = 0.07;
/// After so long a leader has seen what is asked for: a share is one of the requests that it knows.
const SEEN_AFTER: Duration = Duration::from_secs(10);
/// And once it has counted so many since then: of fewer a share is more by chance than [`CHANCE`]. Time alone does not
/// say so, as reports go to the leader before until that hears of the other one.
const COUNTED: u64 = 400;
/// Levels move once in it.
const WINDOW: Duration = Duration::from_secs(1);
/// Keys in shared data: six of the proxy, a table, two shards and a record of each VM, with room for VMs that died.
const MOST_KEYS: usize = 40;

#[derive(Default)]
pub(crate) struct Laws {
    /// By sidecar: the table in shared data, and when it came.
    tables: BTreeMap<usize, (Meta, Duration)>,
    /// By weir-control.
    levels: BTreeMap<usize, Levels>,
    /// By sidecar and VM: the least important rank that was sent by its present table, and the most important one
    /// that was shed.
    decided: BTreeMap<(usize, usize), (Option<u16>, Option<u16>)>,
}

#[derive(Clone, PartialEq)]
struct Levels {
    life: u64,
    epoch: u64,
    /// When it began to lead, or to know which level is in force.
    began: Duration,
    /// The requests that it had counted then.
    counted: u64,
    /// The hosts whose figures count.
    fresh: Vec<String>,
    highest: Level,
    /// When it last fell.
    fell: Duration,
}

/// The part of all requests that a level admits.
fn admitted(level: Level) -> f64 {
    let of_class = |class: u8| {
        let first = u16::from(class) * USERS;
        f64::from(level.ranks().saturating_sub(first).min(USERS)) / f64::from(USERS)
    };
    CLASSES
        .iter()
        .map(|(class, _, part)| part * of_class(*class))
        .sum()
}

impl Laws {
    /// A VM has read its table: decisions are compared among those by one table.
    pub(crate) fn ticked(&mut self, vm: (usize, usize)) {
        self.decided.remove(&vm);
    }

    /// A request was sent to these hosts.
    pub(crate) fn sent(
        &mut self,
        vm: (usize, usize),
        rank: Rank,
        to: &[String],
        by: Option<&v1::HostTable>,
    ) {
        let table = by.expect("nobody is chosen without a table");
        assert!(!to.is_empty(), "a request that is sent has a host");
        for address in to {
            let known = table.hosts.iter().any(|host| host.address == *address);
            assert!(known, "{address} is not in the table");
        }
        let (sent, _) = self.decided.entry(vm).or_default();
        *sent = Some(sent.unwrap_or(0).max(rank.number()));
        self.in_order(vm);
    }

    /// A request was shed. It is not sent as well, and nobody would have taken it.
    pub(crate) fn shed(
        &mut self,
        vm: (usize, usize),
        rank: Rank,
        to: &[String],
        by: Option<&v1::HostTable>,
    ) {
        assert!(to.is_empty(), "a request that is shed is sent to {to:?}");
        let table = by.expect("nothing is shed without a table");
        let up = table
            .hosts
            .iter()
            .filter(|host| host.state() == v1::HostState::Up);
        for host in up {
            let level = host.admission_level.unwrap_or(u32::from(RANKS));
            let refuses = u32::from(rank.number()) >= level;
            assert!(refuses, "{rank:?} is shed, and {} admits it", host.address);
        }
        let (_, shed) = self.decided.entry(vm).or_default();
        *shed = Some(shed.unwrap_or(RANKS).min(rank.number()));
        self.in_order(vm);
    }

    /// What is sent by a table is more important than what is shed by it.
    fn in_order(&self, vm: (usize, usize)) {
        if let Some((Some(sent), Some(shed))) = self.decided.get(&vm) {
            assert!(sent < shed, "rank {sent} is sent and {shed} is shed");
        }
    }

    pub(crate) fn of_sidecar(&mut self, number: usize, sidecar: &Sidecar) {
        let keys = sidecar.keys();
        assert!(keys <= MOST_KEYS, "{keys} keys in shared data");
        for (host, in_flight) in sidecar.in_flight() {
            assert!(
                in_flight < 100_000,
                "{in_flight} in flight at {host}: below zero"
            );
        }
        let Some((table, received)) = sidecar.table() else {
            return;
        };
        for host in &table.hosts {
            let level = host.admission_level.unwrap_or(0);
            assert!(level <= RANKS.into(), "level {level}");
        }
        let new = Meta {
            epoch: table.epoch,
            version: table.version,
        };
        let before = self.tables.insert(number, (new, received));
        if let Some((old, at)) = before.filter(|(old, _)| *old != new) {
            assert!(!new.is_older_than(old), "from table {old} back to {new}");
            let stale_after = table
                .policy
                .as_ref()
                .and_then(|policy| policy.stale_after_ms);
            let stale_after = Duration::from_millis(stale_after.unwrap_or(5_000).into());
            let was_fresh = received.saturating_sub(at) <= stale_after;
            let went_back = new.is_of_older_leader_than(old) && was_fresh;
            assert!(
                !went_back,
                "from table {old} back to an older leader's {new}"
            );
        }
    }

    /// `knows_demand`: nothing has come lately between what is asked for and what it hears of that.
    pub(crate) fn of_control(
        &mut self,
        number: usize,
        control: &Control,
        now: Duration,
        knows_demand: bool,
    ) {
        let state = &control.state;
        is_bounded(state);
        let cluster = &state.clusters()[CLUSTER];
        let clock = control.clock(now);
        let stale_after = cluster.config.policy.stale_after;
        let counts =
            |host: &&weir_fleet::host::Host| host.age(clock).is_some_and(|age| age <= stale_after);
        for host in cluster.hosts.values().filter(|host| !counts(host)) {
            let level = cluster.level_of(host, clock);
            assert_eq!(level, Level::ALL, "not to know is not to be overloaded");
        }
        let fresh = || cluster.hosts.values().filter(counts);
        let highest = fresh().map(|host| cluster.level_of(host, clock)).max();
        let levels = Levels {
            life: control.life,
            epoch: state.epoch(),
            began: now,
            counted: control.counted.values().sum(),
            fresh: fresh().map(|host| host.config.address.clone()).collect(),
            highest: highest.unwrap_or(Level::ALL),
            fell: Duration::ZERO,
        };
        let before = self.levels.insert(number, levels);
        let (Some(before), Some(after)) = (before, self.levels.get_mut(&number)) else {
            return;
        };
        after.fell = before.fell;
        let counted = after.counted;
        let leads = state.replica().role.leads() && !cluster.resumes();
        if leads && (before.life, before.epoch) == (after.life, after.epoch) {
            (after.began, after.counted) = (before.began, before.counted);
        }
        let knows_demand = knows_demand && counted - after.counted >= COUNTED;
        let has_seen = now - after.began >= SEEN_AFTER;
        let is_same = leads && has_seen && before.fresh == after.fresh;
        if !is_same || after.highest >= before.highest {
            return;
        }
        after.fell = now;
        let (from, to) = (admitted(before.highest), admitted(after.highest));
        let least = (1.0 - MOST) * from - CHANCE;
        assert!(
            to >= least || !knows_demand,
            "one step went from {from} to {to} of all requests"
        );
        let since = now - before.fell;
        assert!(since >= WINDOW, "the level fell twice within {since:?}");
    }
}

/// What others can make grow stays within its limits.
fn is_bounded(state: &State) {
    let (limits, ledger, budget) = (&state.settings().reports, state.ledger(), state.budget());
    assert!(ledger.proxies() <= limits.max_proxies);
    assert!(ledger.rows() <= limits.max_rows);
    assert!(
        !budget.is_over(),
        "{} of {:?}",
        budget.counted(),
        budget.limit()
    );
}

/// However often a report comes, and after whatever restarts: no request is counted that was not made. Not so of a VM
/// that a new leader does not hear of at first, as it stands still: what it counted before counts when it goes on.
pub(crate) fn counts_once(control: &Control, sidecars: &[Sidecar]) {
    let is_honest = |sidecar: &&Sidecar| !sidecar.has_lied && !sidecar.was_silent;
    for sidecar in sidecars.iter().filter(is_honest) {
        let counted = control.counted.get(&sidecar.name).copied().unwrap_or(0);
        let (name, asked) = (&sidecar.name, sidecar.asked);
        assert!(
            counted <= asked,
            "{counted} requests of {name} counted of {asked}"
        );
    }
}
