// SPDX-License-Identifier: Apache-2.0
//! The node of a host: what its governor says, and what it is told.

use std::time::{Duration, Instant};

use weir_policy::Level;

/// A capacity that moves by less of what the table says is told with the next table, not by one of its own: a
/// governor moves cores and frequencies many times a second, each table goes to every sidecar, and waits that
/// are off by a twentieth change hardly an order. Of our own choice.
const WORTH_A_TABLE: f64 = 0.05;

/// Between changes of a host's capacity: whoever says another one each time makes no more tables than this for
/// all sidecars. Of our own choice.
const BETWEEN_CHANGES: Duration = Duration::from_secs(1);

/// A host's word counts up to so many times what is configured: the fastest that a core may be beside what an
/// operator had in mind, and more. Of our own choice.
const MOST_TIMES: u32 = 4;

/// One host's.
#[derive(Debug, Default)]
pub struct Node {
    /// Thousandths of a core that the service has there, and when something was said last.
    said: Option<(u32, Duration)>,
    /// When that changed.
    changed: Option<Duration>,
    /// What was said since and counts from a second after that on.
    waiting: Option<u32>,
    /// In the newest table.
    told: u32,
    /// It said something once, and has not for so long that it does not count any more.
    silent: bool,
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
    /// What counts of what it said, and when it said something last.
    pub fn said(&self) -> Option<(u32, Duration)> {
        self.said
    }

    /// Whether its governor has fallen silent: it was stopped, or is cut off.
    pub fn is_silent(&self) -> bool {
        self.silent
    }

    /// The capacity that counts.
    pub fn capacity(&self, configured: u32) -> u32 {
        self.said.map_or(configured, |(millicores, _)| millicores)
    }

    /// It says what it has; of a host that is `configured` to have nothing, everything is believed. True if that
    /// is worth a table now.
    pub fn says(&mut self, millicores: u32, configured: u32, now: Duration) -> bool {
        let most = match configured {
            0 => u32::MAX,
            configured => configured.saturating_mul(MOST_TIMES),
        };
        let before = self.said.map(|(before, _)| before);
        self.silent = false;
        self.waiting = Some(millicores.min(most));
        self.said = before.map(|before| (before, now));
        match before {
            Some(_) => self.settle(now),
            None => self.take(now),
        }
    }

    /// What waits counts when its time has come. True if that is worth a table.
    pub fn settle(&mut self, now: Duration) -> bool {
        let is_due = |changed| now.saturating_sub(changed) >= BETWEEN_CHANGES;
        self.changed.is_none_or(is_due) && self.take(now)
    }

    fn take(&mut self, now: Duration) -> bool {
        let Some(millicores) = self.waiting.take() else {
            return false;
        };
        let before = self.said.map(|(before, _)| before);
        if before != Some(millicores) {
            self.changed = Some(now);
        }
        let at = self.said.map_or(now, |(_, at)| at);
        self.said = Some((millicores, at));
        self.is_news(millicores)
    }

    /// What it said longer ago than `limit` counts no more. True if that is worth a table.
    pub fn forget(&mut self, configured: u32, now: Duration, limit: Duration) -> bool {
        match self.said {
            Some((_, at)) if now.saturating_sub(at) > limit => {
                (self.said, self.waiting) = (None, None);
                self.silent = true;
                self.is_news(configured)
            }
            _ => false,
        }
    }

    fn is_news(&self, millicores: u32) -> bool {
        let moved = f64::from(self.told.abs_diff(millicores));
        moved > 0.0 && moved >= f64::from(self.told) * WORTH_A_TABLE
    }

    /// A table with this capacity has been built.
    pub fn tell(&mut self, capacity: u32) {
        self.told = capacity;
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
            assert_eq!(told(before).says(now, 0, NOW), worth, "{before} to {now}");
        }
    }

    #[test]
    fn small_steps_add_up_to_what_is_worth_a_table() {
        let mut node = told(1000);
        let steps = [(0, 980), (1, 960), (2, 940)];
        let worth = steps.map(|(at, now)| node.says(now, 0, NOW + BETWEEN_CHANGES * at));
        assert_eq!(worth, [false, false, true]);
    }

    #[test]
    fn whoever_says_another_capacity_each_time_changes_it_once_a_second_to_what_was_said_last() {
        let mut node = told(1000);
        let mut changes = Vec::new();
        for tenth in 0..30 {
            let now = NOW + Duration::from_millis(100) * tenth;
            // As the state does before it publishes.
            let settled = node.settle(now);
            let millicores = 500 + 100 * tenth;
            if node.says(millicores, 0, now) || settled {
                changes.push((tenth, node.capacity(0)));
                node.tell(node.capacity(0));
            }
        }
        assert_eq!(changes, [(0, 500), (10, 1400), (20, 2400)]);
    }

    #[test]
    fn what_is_said_again_before_its_time_changes_nothing() {
        let mut node = told(1000);
        node.says(500, 0, NOW);
        node.tell(500);
        assert!(!node.says(4000, 0, NOW));
        assert!(!node.says(500, 0, NOW));
        assert!(!node.settle(NOW + BETWEEN_CHANGES));
        assert_eq!(node.capacity(0), 500);
    }

    #[test]
    fn a_word_counts_up_to_some_times_what_is_configured() {
        for (configured, said, counts) in [
            (1000, 4000, 4000),
            (1000, 4001, 4000),
            (1000, 1, 1),
            (0, 1_024_000, 1_024_000),
            (u32::MAX, 1_024_000, 1_024_000),
        ] {
            let mut node = Node::default();
            node.says(said, configured, NOW);
            assert_eq!(node.capacity(configured), counts, "{said} of {configured}");
        }
    }

    #[test]
    fn what_was_said_counts_as_long_as_the_limit_and_no_longer() {
        let (mut node, limit) = (told(1000), Duration::from_secs(60));
        node.says(500, 0, NOW);
        node.tell(500);
        assert!(!node.forget(1000, NOW + limit, limit));
        assert_eq!((node.capacity(1000), node.is_silent()), (500, false));
        let later = NOW + limit + Duration::from_millis(1);
        assert!(node.forget(1000, later, limit));
        assert_eq!((node.capacity(1000), node.said()), (1000, None));
        assert!(!node.forget(1000, later, limit), "once");
        assert!(node.is_silent());
        node.says(500, 0, later);
        assert!(!node.is_silent(), "it is back");
        assert!(!told(1000).is_silent(), "a node without a governor");
    }
}
