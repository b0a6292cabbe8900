// SPDX-License-Identifier: Apache-2.0
//! Where levels begin after a restart in overload: sidecars know which are in force.

use std::collections::BTreeMap;
use std::time::Duration;

use weir_policy::Level;

/// Tables wait so long for the reports of those who are quick to come back.
const LEAST: Duration = Duration::from_secs(1);
/// And so long for a report at all. A sidecar is back within 2 s of the start and reports each second.
const MOST: Duration = Duration::from_secs(3);
/// Proxies that are listened to. The middle one of so many stands against half of them.
const PROXIES: usize = 64;

/// What proxies said since this process began.
#[derive(Debug)]
pub struct Resumption {
    since: Duration,
    /// By a hash of the proxy's name and the host's address.
    said: BTreeMap<u64, BTreeMap<String, Level>>,
}

impl Resumption {
    /// Nobody has said anything yet.
    pub fn new(now: Duration) -> Self {
        Self {
            since: now,
            said: BTreeMap::new(),
        }
    }

    /// A proxy said which levels are in force at some hosts.
    pub fn hear(&mut self, proxy: u64, levels: &BTreeMap<String, Level>) {
        // Who has sent nothing yet knows none.
        if levels.is_empty() {
            return;
        }
        if self.said.len() < PROXIES || self.said.contains_key(&proxy) {
            let said = self.said.entry(proxy).or_default();
            said.extend(levels.iter().map(|(host, level)| (host.clone(), *level)));
        }
    }

    /// Whether there is still something to wait for.
    pub fn waits(&self, now: Duration) -> bool {
        let passed = now.saturating_sub(self.since);
        passed < LEAST || passed < MOST && self.said.is_empty()
    }

    /// The level of each host that somebody named: the middle one of what is said of it. Of two the higher one, as to
    /// shed without need is worse.
    pub fn levels(&self) -> BTreeMap<String, Level> {
        let mut by_host: BTreeMap<&String, Vec<Level>> = BTreeMap::new();
        for (host, level) in self.said.values().flatten() {
            by_host.entry(host).or_default().push(*level);
        }
        let middle = |(host, mut levels): (&String, Vec<Level>)| {
            levels.sort_unstable();
            Some((host.clone(), *levels.get(levels.len() / 2)?))
        };
        by_host.into_iter().filter_map(middle).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(level: u16) -> BTreeMap<String, Level> {
        BTreeMap::from([("h".to_owned(), Level::admitting(level))])
    }

    fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn the_middle_one_of_what_proxies_say_is_in_force() {
        let mut resumption = Resumption::new(secs(0));
        resumption.hear(1, &said(2000));
        assert_eq!(resumption.levels(), said(2000));
        resumption.hear(2, &said(0));
        assert_eq!(resumption.levels(), said(2000), "the higher one of two");
        resumption.hear(3, &said(1900));
        assert_eq!(resumption.levels(), said(1900));
        resumption.hear(4, &BTreeMap::new());
        assert_eq!(resumption.levels(), said(1900), "it has sent nothing there");
    }

    #[test]
    fn tables_wait_a_second_for_the_quick_and_three_for_anybody() {
        let mut resumption = Resumption::new(secs(10));
        assert!(resumption.waits(secs(10)) && resumption.waits(secs(12)));
        assert!(!resumption.waits(secs(13)));
        resumption.hear(1, &said(1));
        assert!(resumption.waits(secs(10)) && !resumption.waits(secs(11)));
    }

    #[test]
    fn a_crowd_of_proxies_takes_no_more_room_than_some_do() {
        let mut resumption = Resumption::new(secs(0));
        for proxy in 0..1000 {
            resumption.hear(proxy, &said(1));
        }
        assert_eq!(resumption.said.len(), PROXIES);
    }
}
