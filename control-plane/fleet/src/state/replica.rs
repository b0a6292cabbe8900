// SPDX-License-Identifier: Apache-2.0
//! What changes when this replica leads, and when it does not.
//!
//! ```text
//!  Waiting ────> nothing is pushed: a type that is not there is silence
//!  Following ──> what the leader pushes, as it came; nobody is served where that one is not reached and keeps its lock
//!  Leading ────> own tables; those of the leader before stay until there are own ones, and so do its levels
//! ```

use std::sync::Arc;
use std::time::{Duration, Instant};

use prost::Message;
use weir_tables::{CACHE_SHARD_TYPE, HOST_TABLE_TYPE, Meta, v1};

use super::State;
use super::publish::shard_names;
use crate::cluster::Cluster;
use crate::event::Event;
use crate::ledger::Ledger;
use crate::role::Role;
use crate::snapshot::{Resource, Snapshot};
use crate::types::ENDPOINTS;

/// What this process is among those of its group.
#[derive(Debug)]
pub struct Replica {
    /// What it does.
    pub role: Role,
    /// It is one of several.
    pub of_several: bool,
    /// When it took its role.
    pub since: Duration,
    /// What is wrong with the lock.
    pub complaint: Option<String>,
    /// What the leader pushes; none before it has said anything.
    mirrored: Option<Arc<Snapshot>>,
    /// When it said so last.
    mirrored_at: Duration,
    /// It is to be pushed.
    news: bool,
    /// Since when the leader is not reached.
    severed: Option<Duration>,
    /// By then the lock of a leader that is gone has another holder.
    handed_over_after: Duration,
    /// The leader is not reached for longer than that.
    is_cut_off: bool,
}

/// The only one.
impl Default for Replica {
    fn default() -> Self {
        Self {
            role: Role::Leading { index: 0 },
            of_several: false,
            since: Duration::ZERO,
            complaint: None,
            mirrored: None,
            mirrored_at: Duration::ZERO,
            news: false,
            severed: None,
            handed_over_after: Duration::MAX,
            is_cut_off: false,
        }
    }
}

impl Replica {
    /// Why sidecars do not get tables from here, if they do not.
    fn unready(&self) -> Option<&'static str> {
        match self.role {
            Role::Waiting => Some("no leader is known yet"),
            Role::Following(_) if self.is_cut_off => {
                Some("the leader keeps its lock and is not reached from here")
            }
            Role::Following(_) if self.mirrored.is_none() => {
                Some("the leader's tables have not come yet")
            }
            _ => None,
        }
    }
}

impl State {
    /// One of several, which says nothing before it knows who leads. A leader that is gone has lost its lock after
    /// this time.
    pub fn of_several(mut self, handed_over_after: Duration) -> Self {
        self.replica = Replica {
            role: Role::Waiting,
            of_several: true,
            handed_over_after,
            ..Replica::default()
        };
        self
    }

    /// One that may have been there before: its levels go on from those that sidecars say are in force.
    pub fn resuming(mut self) -> Self {
        for cluster in self.clusters.values_mut() {
            cluster.resume(Duration::ZERO);
        }
        self
    }

    /// Takes what this replica is now. A replica that leads anew takes a new epoch, made of `random`.
    pub fn take_role(&mut self, role: Role, random: u64, now: Instant) -> Vec<Event> {
        let clock = self.clock(now);
        let before = std::mem::replace(&mut self.replica.role, role.clone());
        if before == role || !self.replica.of_several {
            return Vec::new();
        }
        self.replica.since = clock;
        (self.replica.severed, self.replica.is_cut_off) = (None, false);
        self.snapshot.withheld = false;
        let led = before.leads();
        match (led, &role) {
            (true, Role::Leading { index }) => {
                self.epoch = Meta::draw_epoch(*index, random);
                for cluster in self.clusters.values_mut() {
                    cluster.changed = true;
                }
            }
            (false, Role::Leading { index }) => {
                self.epoch = Meta::draw_epoch(*index, random);
                self.begin(clock);
            }
            (was_leading, _) => {
                self.replica.mirrored = None;
                if was_leading {
                    // Proxies report to another one.
                    self.ledger = Ledger::default();
                }
            }
        }
        self.events.push(Event::RoleChanged { role, led });
        self.taken_events()
    }

    /// Why sidecars do not get tables from here, if they do not.
    pub fn unready(&self) -> Option<String> {
        let why = self.replica.unready()?;
        let complaint = self.replica.complaint.as_ref();
        Some(complaint.map_or(why.to_owned(), |complaint| format!("{why}: {complaint}")))
    }

    /// Nothing that was heard when this replica last led counts, and what it mirrored since is where it begins.
    fn begin(&mut self, now: Duration) {
        self.ledger = Ledger::default();
        self.budget.begin();
        self.configured = true;
        self.endpoints = Vec::new();
        let table = |snapshot: &Snapshot, name: &str| {
            let table = snapshot.get(HOST_TABLE_TYPE, name)?;
            v1::HostTable::decode(table.body.clone()).ok()
        };
        let mirrored = self.replica.mirrored.take();
        let before = mirrored.as_deref().unwrap_or(&self.snapshot);
        for (name, cluster) in &mut self.clusters {
            *cluster = Cluster::new(cluster.config.clone());
            cluster.begin(now, table(before, name).as_ref());
        }
        self.events.push(Event::Begun);
    }

    /// Takes what the leader pushes, unless it is of one that this replica does not follow any more.
    pub(super) fn mirrored(&mut self, index: u64, snapshot: Arc<Snapshot>, now: Duration) {
        if self.follows(index) {
            self.replica.mirrored = Some(snapshot);
            self.replica.mirrored_at = now;
            self.replica.news = true;
            self.replica.severed = None;
        }
    }

    /// The leader is not reached, unless it is one that this replica does not follow any more.
    pub(super) fn severed(&mut self, index: u64, now: Duration) {
        if self.follows(index) {
            self.replica.severed.get_or_insert(now);
        }
    }

    /// It is.
    pub(super) fn reached(&mut self, index: u64) {
        if self.follows(index) {
            self.replica.severed = None;
        }
    }

    fn follows(&self, index: u64) -> bool {
        matches!(&self.replica.role, Role::Following(leader) if leader.index == index)
    }

    /// Adds what this replica's settings name and the leader has not said yet.
    fn add_unknown(&self, snapshot: &mut Snapshot) {
        for (kind, resources) in &mut snapshot.resources {
            let clusters = self.clusters.iter();
            let names: Vec<String> = match *kind {
                HOST_TABLE_TYPE | ENDPOINTS => clusters.map(|(name, _)| name.clone()).collect(),
                CACHE_SHARD_TYPE => clusters
                    .flat_map(|(name, cluster)| shard_names(name, cluster))
                    .collect(),
                // The leader cuts a long response: the rest is still to come.
                envoys => {
                    let standalone = self.settings.standalone.iter();
                    let names = standalone.flat_map(|standalone| standalone.names(envoys));
                    names.collect()
                }
            };
            let missing = |name: &String| !resources.contains_key(name);
            let missing: Vec<String> = names.into_iter().filter(missing).collect();
            if !missing.is_empty() {
                let unknown = missing.into_iter().map(|name| (name, Resource::unknown()));
                Arc::make_mut(resources).extend(unknown);
            }
        }
    }

    /// What the leader pushes. Of what only this replica's configuration names, nothing is said: that it does not
    /// exist would be more than is known. Nor of clusters whose tables are older than `stale_after`, as the leader
    /// is silent: proxies keep those that they have, and know their age; one that comes now would take it for new.
    pub(super) fn publish_mirrored(&mut self, now: Duration) -> Option<Arc<Snapshot>> {
        let news = std::mem::take(&mut self.replica.news);
        let configured = std::mem::take(&mut self.configured);
        let severed = self.replica.severed;
        let is_cut_off =
            severed.is_some_and(|since| now.saturating_sub(since) > self.replica.handed_over_after);
        let was_cut_off = std::mem::replace(&mut self.replica.is_cut_off, is_cut_off);
        let turned = is_cut_off != was_cut_off;
        let mirrored = self.replica.mirrored.clone();
        let mirrored = mirrored.or_else(|| turned.then(Arc::default))?;
        let silence = now.saturating_sub(self.replica.mirrored_at);
        let clusters = self.clusters.iter();
        let stale: Vec<String> = clusters
            .filter(|(_, cluster)| silence > cluster.config.policy.stale_after)
            .map(|(name, _)| name.clone())
            .collect();
        let is_told = |name: &String| self.snapshot.get(HOST_TABLE_TYPE, name).is_some();
        let ages = stale.iter().any(is_told);
        if !(news || configured || ages || turned) {
            return None;
        }
        let mut snapshot = Snapshot::clone(&mirrored);
        snapshot.withheld = is_cut_off;
        if let Some(tables) = snapshot.resources.get_mut(HOST_TABLE_TYPE) {
            let stale = stale.into_iter().map(|name| (name, Resource::unknown()));
            Arc::make_mut(tables).extend(stale);
        }
        self.add_unknown(&mut snapshot);
        for (name, table) in snapshot
            .of_type(HOST_TABLE_TYPE)
            .into_iter()
            .flat_map(|tables| tables.iter())
            // Nobody would take back what is told of others.
            .filter(|(name, _)| self.clusters.contains_key(*name))
        {
            let old = self.snapshot.get(HOST_TABLE_TYPE, name);
            let is_new = old.is_none_or(|old| old.version != table.version);
            self.events.push(Event::TableMissing {
                cluster: name.clone(),
                missing: table.is_unknown(),
            });
            if is_new && let Ok(table) = v1::HostTable::decode(table.body.clone()) {
                self.events.push(Event::TableMirrored {
                    cluster: name.clone(),
                    unix_ms: table.built_unix_ms,
                });
            }
        }
        self.snapshot = snapshot;
        Some(Arc::new(self.snapshot.clone()))
    }
}
