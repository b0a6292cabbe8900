// SPDX-License-Identifier: Apache-2.0
//! Rows of hosts, for the governors of their nodes.

use std::collections::BTreeMap;

use tokio::sync::watch;
use weir_fleet::node::Row;

/// Cluster and host.
type Key = (String, String);

/// Streams of governors that listen.
#[derive(Debug, Default)]
pub(crate) struct Rows(BTreeMap<Key, watch::Sender<Row>>);

impl Rows {
    /// A row for the governor of a host, and those after it.
    pub(crate) fn watch(&mut self, cluster: &str, host: &str, row: Row) -> watch::Receiver<Row> {
        let key = (cluster.to_owned(), host.to_owned());
        match self.0.get(&key) {
            Some(rows) => {
                rows.send_replace(row);
                rows.subscribe()
            }
            None => {
                let (rows, watch) = watch::channel(row);
                self.0.insert(key, rows);
                watch
            }
        }
    }

    /// A cluster's table has been built: governors are told what it says of their hosts. Streams end whose host is
    /// gone, and those that nobody hears are forgotten.
    pub(crate) fn tell(&mut self, cluster: &str, row: impl Fn(&str) -> Option<Row>) {
        self.0.retain(|(of_cluster, host), rows| {
            if of_cluster != cluster {
                return true;
            }
            let Some(row) = row(host).filter(|_| !rows.is_closed()) else {
                return false;
            };
            rows.send_if_modified(|old| std::mem::replace(old, row) != row);
            true
        });
    }

    /// Streams go on of the hosts that are there.
    pub(crate) fn retain(&mut self, is_there: impl Fn(&str, &str) -> bool) {
        self.0.retain(|(cluster, host), _| is_there(cluster, host));
    }

    /// All streams end.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use weir_policy::Level;

    use super::*;

    fn row(delay: u64) -> Row {
        Row {
            level: Level::ALL,
            delay: Some(Duration::from_millis(delay)),
            observed: None,
        }
    }

    #[test]
    fn a_governor_is_told_what_changes_until_it_has_gone() {
        let mut rows = Rows::default();
        let mut watch = rows.watch("c", "h", row(1));
        assert_eq!(*watch.borrow_and_update(), row(1));
        rows.tell("c", |_| Some(row(1)));
        assert!(!watch.has_changed().unwrap());
        rows.tell("other", |_| Some(row(9)));
        assert!(!watch.has_changed().unwrap());
        rows.tell("c", |_| Some(row(2)));
        assert_eq!(*watch.borrow_and_update(), row(2));
        let newer = rows.watch("c", "h", row(3));
        drop(watch);
        rows.tell("c", |_| Some(row(4)));
        assert_eq!(rows.0.len(), 1);
        drop(newer);
        rows.tell("c", |_| Some(row(5)));
        assert!(rows.0.is_empty());
    }

    #[test]
    fn a_stream_ends_with_its_host() {
        let mut rows = Rows::default();
        let gone = rows.watch("c", "gone", row(1));
        let stays = rows.watch("c", "stays", row(1));
        rows.tell("c", |host| (host == "stays").then(|| row(2)));
        assert!(gone.has_changed().is_err());
        assert!(stays.has_changed().unwrap());
        rows.retain(|_, _| false);
        assert!(stays.has_changed().is_err());
    }
}
