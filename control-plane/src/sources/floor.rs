// SPDX-License-Identifier: Apache-2.0
//! Lists of hosts that shrink: a file that is emptied, cut off or half written is no reason to be without hosts.
//!
//! ```text
//!  as read ── all hosts, and perhaps more ────────────────────────> in force at once
//!        ├── some are missing ───────── read the same again ──────> in force
//!        ├── fewer than half as many ── the same for shrink_after ─> in force
//!        ├── none, and no registry is asked ───────────────────> never, but by `shrink_after: 0s`
//!        └── a whole cluster, or who may do what ─ the same again ─> in force, all of it
//! ```
//! Until then the list in force stays as it is, and [`Kept`] says so.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tracing::{info, warn};

use crate::config::{Cluster, Config, Host, Kept};

/// People save files; a second is soon enough for them.
pub(super) const LOOK_EVERY: Duration = Duration::from_secs(1);

/// What was read and what is in force.
#[derive(Debug)]
pub struct Floor {
    in_force: Arc<Config>,
    /// With when it was first read so; none where the files are bad now.
    read: Option<(Arc<Config>, Instant)>,
    is_news: bool,
}

impl Floor {
    /// The first configuration is in force as it is.
    pub fn new(config: Arc<Config>) -> Self {
        let (in_force, read, is_news) = (config, None, false);
        Self {
            in_force,
            read,
            is_news,
        }
    }

    /// The files say something else than before.
    pub fn read(&mut self, config: Arc<Config>, now: Instant) {
        (self.read, self.is_news) = (Some((config, now)), true);
    }

    /// The files say the same, and clusters beside theirs are others: what is read for so long goes on.
    pub fn beside(&mut self, config: Arc<Config>, now: Instant) {
        let since = self.read.as_ref().map_or(now, |(_, since)| *since);
        (self.read, self.is_news) = (Some((config, since)), true);
    }

    /// The files cannot be read any more: what they said before is confirmed by nothing.
    pub fn spoiled(&mut self) {
        (self.read, self.is_news) = (None, false);
    }

    /// What is to be in force from now on, if that is something else than before.
    pub fn settle(&mut self, now: Instant) -> Option<Arc<Config>> {
        let (read, since) = self.read.as_ref()?;
        let read_for = now.saturating_duration_since(*since);
        if read_for < LOOK_EVERY && self.lacks_a_part(read) {
            return None;
        }
        let mut config = Config::clone(read);
        for (name, cluster) in &mut config.clusters {
            let old = self.in_force.clusters.get(name);
            let old = old.map_or(&[][..], |old| &old.hosts);
            if let Some(kept) = keeps(old, cluster, read_for) {
                *cluster = Arc::new(Cluster {
                    hosts: old.to_vec(),
                    kept: Some(kept),
                    ..Cluster::clone(cluster)
                });
            }
        }
        if !self.is_news && kept(&config) == kept(&self.in_force) {
            return None;
        }
        self.tell(&config);
        self.is_news = false;
        self.in_force = Arc::new(config);
        Some(self.in_force.clone())
    }

    /// Whether a cluster is gone, or the section without which everybody may do everything: the end of the file, perhaps.
    fn lacks_a_part(&self, read: &Config) -> bool {
        let mut names = self.in_force.clusters.keys();
        names.any(|name| !read.clusters.contains_key(name))
            || self.in_force.authorization.is_some() && read.authorization.is_none()
    }

    fn tell(&self, config: &Config) {
        for (name, cluster) in &config.clusters {
            let before = self.in_force.clusters.get(name);
            let before = before.and_then(|before| before.kept);
            match cluster.kept {
                // One that is only read again says nothing.
                Some(kept) if cluster.kept != before && kept.until_read_for != Some(LOOK_EVERY) => {
                    warn!(cluster = name, %kept, "a list of hosts has shrunk");
                }
                None if before.is_some() => {
                    info!(
                        cluster = name,
                        hosts = cluster.hosts.len(),
                        "the list of hosts is in force"
                    );
                }
                _ => {}
            }
        }
    }
}

fn kept(config: &Config) -> BTreeSet<&str> {
    let clusters = config.clusters.iter();
    let kept = clusters.filter(|(_, cluster)| cluster.kept.is_some());
    kept.map(|(name, _)| name.as_str()).collect()
}

/// Why the old list stays, if it does, when the cluster's has been read for so long.
fn keeps(old: &[Host], cluster: &Cluster, read_for: Duration) -> Option<Kept> {
    let new: BTreeSet<&str> = addresses(&cluster.hosts).collect();
    let gone = addresses(old)
        .filter(|address| !new.contains(address))
        .count();
    let after = cluster.shrink_after;
    if gone == 0 || after.is_zero() {
        return None;
    }
    let until_read_for = match new.len() {
        0 if cluster.registry.is_none() => None,
        named if 2 * named < old.len() => Some(after),
        _ => Some(after.min(LOOK_EVERY)),
    };
    let stays = until_read_for.is_none_or(|time| read_for < time);
    stays.then_some(Kept {
        named: new.len(),
        stay: old.len(),
        gone,
        until_read_for,
    })
}

fn addresses(hosts: &[Host]) -> impl Iterator<Item = &str> {
    hosts.iter().map(|host| host.address.as_str())
}

#[cfg(test)]
mod tests {
    use weir_fleet::authorization::Authorization;

    use super::*;

    fn config(hosts: usize, more: &str) -> Arc<Config> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.yaml");
        let row = |port| format!("{{ address: \"127.0.0.1:{port}\" }}, ");
        let rows: String = (1..=hosts).map(row).collect();
        std::fs::write(folder.path().join("h.yaml"), format!("[ {rows} ]")).unwrap();
        let text = format!("clusters: {{ r: {{ hosts_file: h.yaml, {more} }} }}\n");
        std::fs::write(&path, text).unwrap();
        let loaded = crate::config::load(&path).map_err(|(error, _)| error);
        loaded.unwrap().config
    }

    const START: Duration = Duration::from_secs(100);

    /// Hosts in force, and whether they are kept, so long after each reading; none where nothing is news.
    fn after(floor: &mut Floor, start: Instant, ms: u64) -> Option<(usize, bool)> {
        let config = floor.settle(start + Duration::from_millis(ms))?;
        let cluster = &config.clusters["r"];
        Some((cluster.hosts.len(), cluster.kept.is_some()))
    }

    fn written(text: &str) -> Arc<Config> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.yaml");
        std::fs::write(&path, text).unwrap();
        let loaded = crate::config::load(&path).map_err(|(error, _)| error);
        loaded.unwrap().config
    }

    #[test]
    fn a_file_that_lacks_a_cluster_or_its_rules_counts_when_it_is_read_so_again() {
        let clusters = |names: &[&str]| {
            let one = |name: &&str| {
                format!("  {name}: {{ hosts: [ {{ address: \"127.0.0.1:1\" }} ] }}\n")
            };
            let all: String = names.iter().map(one).collect();
            format!("clusters:\n{all}")
        };
        let with_rules = |names: &[&str]| {
            Arc::new(Config {
                authorization: Some(Arc::new(Authorization(Vec::new()))),
                ..Config::clone(&written(&clusters(names)))
            })
        };
        let whole = with_rules(&["r", "s"]);
        for cut_off in [with_rules(&["r"]), written(&clusters(&["r", "s"]))] {
            let start = Instant::now() + START;
            let mut floor = Floor::new(whole.clone());
            floor.read(cut_off.clone(), start);
            assert!(floor.settle(start).is_none());
            floor.read(whole.clone(), start + LOOK_EVERY / 2);
            let settled = floor.settle(start + LOOK_EVERY / 2).unwrap();
            assert_eq!(settled.clusters.len(), 2);
            floor.read(cut_off, start + LOOK_EVERY);
            assert!(floor.settle(start + LOOK_EVERY).is_none());
            let meant = floor.settle(start + LOOK_EVERY * 2);
            assert!(meant.is_some());
        }
    }

    #[test]
    fn a_list_that_is_emptied_never_counts_unless_that_is_forced() {
        let start = Instant::now() + START;
        let mut floor = Floor::new(config(4, ""));
        floor.read(config(0, ""), start);
        assert_eq!(after(&mut floor, start, 0), Some((4, true)));
        assert_eq!(after(&mut floor, start, 100_000_000), None);
        let kept = floor.in_force.clusters["r"].kept.unwrap();
        assert_eq!(
            kept.to_string(),
            "the list names no host, so the last 4 stay; shrink_after: 0s takes it at once"
        );
        floor.read(config(0, "shrink_after: 0s"), start);
        assert_eq!(after(&mut floor, start, 0), Some((0, false)));
    }

    #[test]
    fn a_list_that_lost_more_than_half_counts_when_it_was_the_same_for_a_while() {
        let start = Instant::now() + START;
        let mut floor = Floor::new(config(4, ""));
        floor.read(config(1, ""), start);
        assert_eq!(after(&mut floor, start, 0), Some((4, true)));
        assert_eq!(after(&mut floor, start, 29_999), None);
        assert_eq!(after(&mut floor, start, 30_000), Some((1, false)));
        floor.read(config(5, "shrink_after: 2s"), start);
        assert_eq!(
            after(&mut floor, start, 0),
            Some((5, false)),
            "more count at once"
        );
        floor.read(config(2, "shrink_after: 2s"), start);
        assert_eq!(after(&mut floor, start, 1_999), Some((5, true)));
        assert_eq!(after(&mut floor, start, 2_000), Some((2, false)));
    }

    #[test]
    fn a_list_that_lost_some_counts_when_it_is_read_the_same_again() {
        let start = Instant::now() + START;
        let mut floor = Floor::new(config(4, ""));
        floor.read(config(3, ""), start);
        assert_eq!(after(&mut floor, start, 0), Some((4, true)));
        // It was half written: the next look finds another list.
        floor.read(config(5, ""), start + LOOK_EVERY);
        assert_eq!(after(&mut floor, start, 1_000), Some((5, false)));
        floor.read(config(3, ""), start);
        assert_eq!(after(&mut floor, start, 999), Some((5, true)));
        assert_eq!(after(&mut floor, start, 1_000), Some((3, false)));
    }

    #[test]
    fn what_was_read_before_the_files_were_bad_is_not_confirmed_by_time() {
        let start = Instant::now() + START;
        let mut floor = Floor::new(config(4, ""));
        floor.read(config(1, ""), start);
        assert_eq!(after(&mut floor, start, 0), Some((4, true)));
        floor.spoiled();
        assert_eq!(after(&mut floor, start, 60_000), None);
        floor.read(config(4, ""), start + Duration::from_secs(60));
        assert_eq!(after(&mut floor, start, 60_000), Some((4, false)));
    }

    #[test]
    fn clusters_beside_those_of_the_files_do_not_make_a_list_wait_anew() {
        let start = Instant::now() + START;
        let mut floor = Floor::new(config(4, "shrink_after: 3s"));
        floor.read(config(1, "shrink_after: 3s"), start);
        assert_eq!(after(&mut floor, start, 0), Some((4, true)));
        for second in 1..3 {
            let now = start + second * LOOK_EVERY;
            floor.beside(config(1, "shrink_after: 3s"), now);
            assert_eq!(after(&mut floor, now, 0), Some((4, true)));
        }
        assert_eq!(after(&mut floor, start, 3_000), Some((1, false)));
    }

    #[test]
    fn the_rest_of_a_configuration_counts_at_once() {
        let start = Instant::now() + START;
        let mut floor = Floor::new(config(4, ""));
        floor.read(config(0, "cache_shards: 4"), start);
        let config = floor.settle(start).unwrap();
        assert_eq!(config.clusters["r"].cache_shards, 4);
        assert_eq!(config.clusters["r"].hosts.len(), 4);
    }
}
