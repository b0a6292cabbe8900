// SPDX-License-Identifier: Apache-2.0
//! What callers and weir-controls tell of tables.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::Value;
use weir_mesh::{CALLERS, Control, HOSTS, Mesh};
use weir_stage::http;

/// Where a table comes from: the epoch that its builder drew, and the build. A leader's epoch begins with the
/// index of its lock.
pub type Version = (u64, u64);

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

/// How many callers have a stream to a weir-control.
#[must_use]
pub fn connected(mesh: &Mesh) -> usize {
    let callers = mesh.callers().iter();
    callers
        .filter(|caller| figure(caller.admin, "weir_control_connected") == Some(1))
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
pub fn accepted(control: &Control) -> BTreeMap<String, Version> {
    let tables = || {
        let page = http::get(control.admin, "/tables").ok()?;
        let tables: Value = serde_json::from_str(&page.body).ok()?;
        Some(tables["proxies"].as_array()?.clone())
    };
    let proxies = tables().unwrap_or_default();
    let caller = |proxy: &Value| {
        let name = proxy["proxy"].as_str()?;
        let version = proxy["accepted"][TABLES][HOSTS].as_str()?;
        let (epoch, build) = version.split_once('.')?;
        let version = (u64::from_str_radix(epoch, 16).ok()?, build.parse().ok()?);
        name.starts_with(CALLERS)
            .then(|| (name.to_owned(), version))
    };
    proxies.iter().filter_map(caller).collect()
}

/// Whether the one was built after the other, as far as that is known: by a later leader, or later by the same.
fn goes_back(before: Version, now: Version) -> bool {
    // As `weir_tables::Meta` draws epochs: the highest bit is set where there was no lock.
    let lock = |(epoch, _): Version| (epoch >> 63 == 0).then_some(epoch >> 32);
    match (lock(before), lock(now)) {
        _ if before.0 == now.0 => now.1 < before.1,
        (Some(before), Some(now)) => now < before,
        _ => false,
    }
}

/// What becomes of the callers' tables while somebody is away.
#[derive(Debug)]
pub struct Watch {
    began: Instant,
    /// The epoch of the one that is lost.
    lost: Option<u64>,
    last: BTreeMap<String, Version>,
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
        watch.lost = epochs.map(|version| version.0).max();
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
        let of_another = seen.values().filter(|version| Some(version.0) != self.lost);
        if self.fresh.is_none() && of_another.count() >= mesh.callers().len() {
            self.fresh = Some(self.began.elapsed());
        }
    }

    fn note(&mut self, controls: &[Control]) -> BTreeMap<String, Version> {
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

#[cfg(test)]
mod tests {
    use super::*;

    const LOCK_3: u64 = 3 << 32;
    const LOCK_4: u64 = 4 << 32;
    const NO_LOCK: u64 = 1 << 63;

    #[test]
    fn a_later_build_or_leader_never_goes_back() {
        assert!(!goes_back((LOCK_3 + 7, 5), (LOCK_3 + 7, 6)));
        assert!(!goes_back((LOCK_3 + 7, 5), (LOCK_4 + 1, 1)));
        assert!(goes_back((LOCK_3 + 7, 5), (LOCK_3 + 7, 4)));
        assert!(goes_back((LOCK_4 + 1, 1), (LOCK_3 + 7, 5)));
    }

    #[test]
    fn nothing_is_known_of_two_that_had_no_lock() {
        assert!(!goes_back((NO_LOCK + 2, 9), (NO_LOCK + 1, 1)));
        assert!(goes_back((NO_LOCK + 2, 9), (NO_LOCK + 2, 8)));
    }
}
