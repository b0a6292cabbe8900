// SPDX-License-Identifier: Apache-2.0
//! What identities see of a snapshot, kept by what they may see: sidecars of one team share theirs.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use weir_fleet::authorization::{Sight, What};
use weir_fleet::snapshot::Snapshot;
use weir_tables::{CACHE_SHARD_TYPE, HOST_TABLE_TYPE, parse_cache_shard_name};

use super::subscription::Resources;
use super::types::{CLUSTER, ENDPOINTS};

/// Far more than there are rules; beyond them all are made anew.
const MOST_VIEWS: usize = 256;

/// By type: the resources that there are, and those of them that are seen.
type View = BTreeMap<&'static str, (Arc<Resources>, Arc<Resources>)>;

/// The views of the newest snapshot. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(super) struct Views(Arc<Mutex<BTreeMap<Sight, View>>>);

impl Views {
    /// What is seen of a snapshot. Resources of a type that have not changed are the same ones again.
    pub(super) fn of(&self, snapshot: &Arc<Snapshot>, sight: Option<&Sight>) -> Arc<Snapshot> {
        let Some(sight) = sight else {
            return snapshot.clone();
        };
        let mut views = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if views.len() >= MOST_VIEWS && !views.contains_key(sight) {
            views.clear();
        }
        let view = views.entry(sight.clone()).or_default();
        view.retain(|kind, _| snapshot.resources.contains_key(kind));
        for (kind, all) in &snapshot.resources {
            if !view.get(kind).is_some_and(|(of, _)| Arc::ptr_eq(of, all)) {
                let seen = all
                    .iter()
                    .filter(|(name, _)| denies(sight, kind, name).is_none());
                let seen = seen.map(|(name, resource)| (name.clone(), resource.clone()));
                view.insert(kind, (all.clone(), Arc::new(seen.collect())));
            }
        }
        let resources = view.iter().map(|(kind, (_, seen))| (*kind, seen.clone()));
        Arc::new(Snapshot {
            resources: resources.collect(),
            withheld: snapshot.withheld,
        })
    }
}

/// What would have to be allowed for a resource to be seen; none where it is. Listeners, routes and the filter's
/// configuration say which clusters there are, not what is in them: whoever sees one cluster has them.
pub(super) fn denies(sight: &Sight, kind: &str, name: &str) -> Option<What> {
    let (what, is_seen) = match kind {
        HOST_TABLE_TYPE | CLUSTER | ENDPOINTS => (What::Tables, sight.tables.have(name)),
        CACHE_SHARD_TYPE => {
            let cluster = parse_cache_shard_name(name).map(|(cluster, _, _)| cluster);
            let is_seen = cluster.is_ok_and(|cluster| sight.keys.have(cluster));
            (What::Keys, is_seen)
        }
        _ => (What::Tables, !sight.tables.are_none()),
    };
    (!is_seen).then_some(what)
}

#[cfg(test)]
mod tests {
    use weir_tables::cache_shard_name;

    use super::*;
    use weir_fleet::authorization::Clusters;
    use weir_fleet::snapshot::Resource;

    fn snapshot(names: [&str; 2], version: &str) -> Arc<Snapshot> {
        let resource = |name: String| {
            let version = version.into();
            let body = Default::default();
            (name, Resource { version, body })
        };
        let tables = names.map(|name| resource(name.to_owned()));
        let shards = names.map(|name| resource(cache_shard_name(name, 1, 0)));
        Arc::new(Snapshot {
            resources: [
                (HOST_TABLE_TYPE, Arc::new(tables.into())),
                (CACHE_SHARD_TYPE, Arc::new(shards.into())),
            ]
            .into(),
            ..Default::default()
        })
    }

    #[test]
    fn of_each_type_the_allowed_clusters_are_seen_and_what_stays_is_the_same_again() {
        let only = |name: &str| Clusters::Named([name.to_owned()].into());
        let sight = Sight {
            tables: only("a"),
            keys: only("b"),
        };
        let (views, first) = (Views::default(), snapshot(["a", "b"], "1"));
        let seen = views.of(&first, Some(&sight));
        let names = |seen: &Snapshot, kind: &str| -> Vec<String> {
            seen.of_type(kind).unwrap().keys().cloned().collect()
        };
        assert_eq!(names(&seen, HOST_TABLE_TYPE), ["a"]);
        assert_eq!(names(&seen, CACHE_SHARD_TYPE), ["b/1/0"]);
        assert!(Arc::ptr_eq(&views.of(&first, None), &first));

        let mut second = Snapshot::clone(&snapshot(["a", "b"], "2"));
        let tables = first.of_type(HOST_TABLE_TYPE).unwrap().clone();
        second.resources.insert(HOST_TABLE_TYPE, tables);
        let newer = views.of(&Arc::new(second), Some(&sight));
        let same = |kind| Arc::ptr_eq(seen.of_type(kind).unwrap(), newer.of_type(kind).unwrap());
        assert!(same(HOST_TABLE_TYPE) && !same(CACHE_SHARD_TYPE));
        assert_eq!(&*newer.get(CACHE_SHARD_TYPE, "b/1/0").unwrap().version, "2");
    }

    #[test]
    fn no_more_views_are_kept_than_there_may_be() {
        let (views, snapshot) = (Views::default(), snapshot(["a", "b"], "1"));
        for index in 0..3 * MOST_VIEWS {
            let tables = Clusters::Named([index.to_string()].into());
            let keys = Clusters::All;
            views.of(&snapshot, Some(&Sight { tables, keys }));
            assert!(views.0.lock().unwrap().len() <= MOST_VIEWS);
        }
    }
}
