// SPDX-License-Identifier: Apache-2.0
//! What callers and weir-controls tell of tables.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::Value;
use weir_mesh::{CALLERS, Control, HOSTS, Mesh};
use weir_stage::http;
use weir_tables::Meta;

const TABLES: &str = "type.googleapis.com/weir.v1.HostTable";

/// A figure of an Envoy.
#[must_use]
pub fn figure(admin: SocketAddr, name: &str) -> Option<u64> {
    let page = http::get(admin, &format!("/stats?filter={name}")).ok()?;
    let line = page.body.lines().find(|line| line.contains(name))?;
    line.rsplit(' ').next()?.parse().ok()
}

/// A figure of a weir-control, by its name with labels.
#[must_use]
pub fn of_control(control: &Control, name: &str) -> Option<u64> {
    let page = http::get(control.admin, "/metrics").ok()?;
    let line = page.body.lines().find(|line| line.starts_with(name))?;
    line.rsplit(' ').next()?.parse().ok()
}

/// The sum over all lines that begin so; none where there is no such line.
#[must_use]
pub fn sum_of_control(control: &Control, name: &str) -> Option<u64> {
    let page = http::get(control.admin, "/metrics").ok()?;
    let lines = page.body.lines().filter(|line| line.starts_with(name));
    let values = lines.map(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
    values.reduce(|sum, value| sum?.checked_add(value?))?
}

/// How many callers have a stream to a weir-control.
#[must_use]
pub fn connected(mesh: &Mesh) -> usize {
    let callers = mesh.callers().iter();
    callers
        .filter(|caller| figure(caller.admin, "weir_filter_connected") == Some(1))
        .count()
}

/// How many callers have a table that is too old, or none.
#[must_use]
pub fn stale(mesh: &Mesh) -> usize {
    let callers = mesh.callers().iter();
    callers
        .filter(|caller| figure(caller.admin, "weir_stale_tables") != Some(0))
        .count()
}

/// The weir-control that leads: the one there is, or the one that says so.
#[must_use]
pub fn leader(mesh: &Mesh) -> Option<Control> {
    let controls = mesh.controls();
    let leads = |control: &&Control| control.role().is_none_or(|role| role == "leading");
    match controls {
        [only] => Some(only.clone()),
        several => several.iter().find(leads).cloned(),
    }
}

/// Which table each caller has accepted of this weir-control.
#[must_use]
pub fn accepted(control: &Control) -> BTreeMap<String, Meta> {
    let tables = || {
        let page = http::get(control.admin, "/tables").ok()?;
        let tables: Value = serde_json::from_str(&page.body).ok()?;
        Some(tables["proxies"].as_array()?.clone())
    };
    let proxies = tables().unwrap_or_default();
    let caller = |proxy: &Value| {
        let name = proxy["proxy"].as_str()?;
        let version = proxy["accepted"][TABLES][HOSTS].as_str()?;
        let version = version.parse().ok()?;
        name.starts_with(CALLERS)
            .then(|| (name.to_owned(), version))
    };
    proxies.iter().filter_map(caller).collect()
}

/// To an earlier build, or to the one of an earlier leader.
fn goes_back(before: Meta, now: Meta) -> bool {
    now.is_older_than(before) || now.is_of_older_leader_than(before)
}

/// What becomes of the callers' tables while somebody is away.
#[derive(Debug)]
pub struct Watch {
    began: Instant,
    /// The epoch of the one that is lost.
    lost: Option<u64>,
    last: BTreeMap<String, Meta>,
    stale_since: Option<Instant>,
    /// From the loss until every caller had accepted a table of another weir-control.
    pub fresh: Option<Duration>,
    /// The longest time for which a caller had only a table that was too old.
    pub stale: Duration,
    /// How often a caller accepted an older table than it had.
    pub back: u32,
}

impl Watch {
    /// From now on, with the tables that the callers have.
    #[must_use]
    pub fn begin(mesh: &Mesh) -> Self {
        let lost = leader(mesh);
        let mut watch = Self {
            began: Instant::now(),
            lost: None,
            last: BTreeMap::new(),
            stale_since: None,
            fresh: None,
            stale: Duration::ZERO,
            back: 0,
        };
        watch.note(mesh.controls());
        let leader = lost.map(|control| accepted(&control)).unwrap_or_default();
        let epochs = watch.last.values().chain(leader.values());
        watch.lost = epochs.map(|version| version.epoch).max();
        watch.began = Instant::now();
        watch
    }

    /// Looks at those who live.
    pub fn look(&mut self, mesh: &Mesh, living: &[Control]) {
        let now = Instant::now();
        match stale(mesh) {
            0 => self.stale_since = None,
            _ => {
                let since = *self.stale_since.get_or_insert(now);
                self.stale = self.stale.max(now - since);
            }
        }
        let seen = self.note(living);
        let of_another = seen
            .values()
            .filter(|version| Some(version.epoch) != self.lost);
        if self.fresh.is_none() && of_another.count() >= mesh.callers().len() {
            self.fresh = Some(self.began.elapsed());
        }
    }

    fn note(&mut self, controls: &[Control]) -> BTreeMap<String, Meta> {
        let mut seen = BTreeMap::new();
        for (caller, version) in controls.iter().flat_map(accepted) {
            // A replica that was left may still list it.
            let newest = seen.entry(caller).or_insert(version);
            if goes_back(*newest, version) {
                continue;
            }
            *newest = version;
        }
        for (caller, version) in &seen {
            let before = self.last.insert(caller.clone(), *version);
            self.back += u32::from(before.is_some_and(|before| goes_back(before, *version)));
        }
        seen
    }
}
