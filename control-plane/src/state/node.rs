// SPDX-License-Identifier: Apache-2.0
//! The node of a host: what its governor says, and what it is told.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;
use weir_policy::Level;

/// A capacity that moves by less of what the table says is told with the next table, not by one of its own: a
/// governor moves cores and frequencies many times a second, each table goes to every sidecar, and waits that
/// are off by a twentieth change hardly an order. Of our own choice.
const WORTH_A_TABLE: f64 = 0.05;

/// One host's.
#[derive(Debug, Default)]
pub struct Node {
    /// Thousandths of a core that the service has there, and when that was said.
    said: Option<(u32, Duration)>,
    /// In the newest table.
    told: u32,
    /// To the governor's stream, if there is one.
    row: Option<watch::Sender<Row>>,
}

/// What a governor is told of its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// As sidecars are told.
    pub level: Level,
    /// Mean time that jobs waited in its queue.
    pub delay: Option<Duration>,
    /// When that was true; none where there are no figures.
    pub observed: Option<Instant>,
}

impl Node {
    /// What it said, and when.
    pub fn said(&self) -> Option<(u32, Duration)> {
        self.said
    }

    /// The capacity that counts.
    pub fn capacity(&self, configured: u32) -> u32 {
        self.said.map_or(configured, |(millicores, _)| millicores)
    }

    /// It says what it has. True if that is worth a table.
    pub fn says(&mut self, millicores: u32, now: Duration) -> bool {
        self.said = Some((millicores, now));
        self.is_news(millicores)
    }

    /// What it said longer ago than `limit` counts no more. True if that is worth a table.
    pub fn forget(&mut self, configured: u32, now: Duration, limit: Duration) -> bool {
        match self.said {
            Some((_, at)) if now.saturating_sub(at) > limit => {
                self.said = None;
                self.is_news(configured)
            }
            _ => false,
        }
    }

    fn is_news(&self, millicores: u32) -> bool {
        let moved = f64::from(self.told.abs_diff(millicores));
        moved > 0.0 && moved >= f64::from(self.told) * WORTH_A_TABLE
    }

    /// A row for the governor, and those after it.
    pub fn watch(&mut self, row: Row) -> watch::Receiver<Row> {
        match &self.row {
            Some(rows) => {
                rows.send_replace(row);
                rows.subscribe()
            }
            None => {
                let (rows, watch) = watch::channel(row);
                self.row = Some(rows);
                watch
            }
        }
    }

    /// Whether its governor listens.
    pub fn is_watched(&self) -> bool {
        self.row.as_ref().is_some_and(|rows| !rows.is_closed())
    }

    /// A table with this capacity has been built, and with it this row where somebody listens.
    pub fn tell(&mut self, capacity: u32, row: Option<Row>) {
        self.told = capacity;
        match (&self.row, row) {
            (Some(rows), Some(row)) => {
                rows.send_if_modified(|old| std::mem::replace(old, row) != row);
            }
            _ => self.row = None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::from_secs(100);

    fn told(capacity: u32) -> Node {
        Node {
            told: capacity,
            ..Node::default()
        }
    }

    #[test]
    fn a_twentieth_of_what_was_told_is_worth_a_table_and_less_is_not() {
        for (before, now, worth) in [
            (1000, 1000, false),
            (1000, 1049, false),
            (1000, 1050, true),
            (1000, 950, true),
            (0, 1, true),
            (0, 0, false),
            (u32::MAX, 1, true),
        ] {
            assert_eq!(told(before).says(now, NOW), worth, "{before} to {now}");
        }
    }

    #[test]
    fn small_steps_add_up_to_what_is_worth_a_table() {
        let mut node = told(1000);
        let worth: Vec<bool> = [980, 960, 940].map(|now| node.says(now, NOW)).into();
        assert_eq!(worth, [false, false, true]);
    }

    #[test]
    fn what_was_said_counts_as_long_as_the_limit_and_no_longer() {
        let (mut node, limit) = (told(1000), Duration::from_secs(60));
        node.says(500, NOW);
        node.tell(500, None);
        assert!(!node.forget(1000, NOW + limit, limit));
        assert_eq!(node.capacity(1000), 500);
        let later = NOW + limit + Duration::from_millis(1);
        assert!(node.forget(1000, later, limit));
        assert_eq!((node.capacity(1000), node.said()), (1000, None));
        assert!(!node.forget(1000, later, limit), "once");
    }

    #[test]
    fn a_governor_is_told_what_changes_until_it_has_gone() {
        let mut node = Node::default();
        let row = |delay| Row {
            level: Level::ALL,
            delay: Some(Duration::from_millis(delay)),
            observed: None,
        };
        let mut watch = node.watch(row(1));
        assert_eq!(*watch.borrow_and_update(), row(1));
        node.tell(0, Some(row(1)));
        assert!(!watch.has_changed().unwrap());
        node.tell(0, Some(row(2)));
        assert_eq!(*watch.borrow_and_update(), row(2));
        let newer = node.watch(row(3));
        drop(watch);
        assert!(node.is_watched());
        drop(newer);
        assert!(!node.is_watched());
    }
}
