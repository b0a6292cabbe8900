// SPDX-License-Identifier: Apache-2.0
//! Whose figures of a host's queue move its level.
//!
//! Tables carry the newest figures, whoever told them. A level needs a better witness: the host itself, if it was asked
//! lately; else the middle one of what several proxies say that its answers carried, so that one liar is outvoted.

use std::time::Duration;

use crate::observed::{From, Observed};

/// Proxies whose word is kept of one host. The middle one of seven stands against three liars.
const MOST: usize = 7;
/// Windows for which a word counts. A host is asked once a second, as long as a window is by default.
const WINDOWS: u32 = 2;

/// What was said of one host.
#[derive(Clone, Debug, Default)]
pub struct Witnesses {
    /// By the host itself, or by a Prometheus server that asked it.
    host: Option<Observed>,
    /// By proxies, the newest of each.
    proxies: Vec<(u64, Observed)>,
}

impl Witnesses {
    /// Takes in figures; `proxy` is a hash of the name of who reported them.
    pub fn hear(&mut self, proxy: u64, observed: &Observed) {
        if observed.from != From::Report {
            if self.host.as_ref().is_none_or(|old| old.at <= observed.at) {
                self.host = Some(observed.clone());
            }
            return;
        }
        let same = self.proxies.iter().position(|(known, _)| *known == proxy);
        let place = same.or_else(|| {
            let full = self.proxies.len() >= MOST;
            let oldest = self.proxies.iter().enumerate();
            let oldest = oldest.min_by_key(|(_, (_, word))| word.at);
            oldest.filter(|_| full).map(|(place, _)| place)
        });
        match place.and_then(|place| self.proxies.get_mut(place)) {
            Some((_, word)) if word.at > observed.at => {}
            Some(word) => *word = (proxy, observed.clone()),
            None => self.proxies.push((proxy, observed.clone())),
        }
    }

    /// What is believed at `now`, with windows of this length: the newest figures of the host, where there are no
    /// other ones however old.
    pub fn believed(&self, now: Duration, window: Duration) -> Option<Observed> {
        let lately = |word: &Observed| now.saturating_sub(word.at) <= window * WINDOWS;
        if let Some(host) = self.host.as_ref().filter(|host| lately(host)) {
            return Some(host.clone());
        }
        let proxies = self.proxies.iter().map(|(_, word)| word);
        let mut words: Vec<&Observed> = proxies.filter(|word| lately(word)).collect();
        let newest = words.iter().map(|word| word.at).max();
        // A proxy that is alone would harm itself alone; beside several the host's older word is one more.
        if words.len() > 1 {
            words.extend(&self.host);
        }
        words.sort_unstable_by_key(|word| weight(word));
        let middle = words.get(words.len().saturating_sub(1) / 2);
        let at = newest.unwrap_or_default();
        let middle = middle.map(|word| Observed {
            at: word.at.max(at),
            delay_at: word.delay_at.max(at),
            ..(*word).clone()
        });
        middle.or_else(|| self.host.clone())
    }
}

/// More means more overloaded.
fn weight(observed: &Observed) -> (u64, Option<Duration>) {
    let queued = observed.figures.queued.iter().flatten();
    let queued = queued.map(|jobs| u64::from(*jobs)).sum();
    (queued, observed.figures.queuing_delay)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Figures;

    const WINDOW: Duration = Duration::from_secs(1);

    fn observed(from: From, at: u64, queued: u32) -> Observed {
        let at = Duration::from_secs(at);
        Observed {
            figures: Figures {
                queued: Some(vec![queued]),
                ..Figures::default()
            },
            at,
            delay_at: at,
            from,
        }
    }

    fn believed(witnesses: &Witnesses, now: u64) -> Option<u64> {
        let believed = witnesses.believed(Duration::from_secs(now), WINDOW);
        believed.map(|word| weight(&word).0)
    }

    #[test]
    fn the_host_itself_is_believed_whatever_proxies_say() {
        let mut witnesses = Witnesses::default();
        witnesses.hear(0, &observed(From::Scrape, 10, 0));
        for proxy in 1..5 {
            witnesses.hear(proxy, &observed(From::Report, 11, 1_000_000));
        }
        assert_eq!(believed(&witnesses, 11), Some(0));
    }

    #[test]
    fn of_proxies_the_middle_one_is_believed_where_the_host_was_not_asked_lately() {
        let mut witnesses = Witnesses::default();
        witnesses.hear(0, &observed(From::Prometheus, 1, 5));
        for (proxy, queued) in [(1, 7), (2, 1_000_000), (3, 8)] {
            witnesses.hear(proxy, &observed(From::Report, 10, queued));
        }
        assert_eq!(believed(&witnesses, 10), Some(7));
        // They have gone: the last word of the host, and its age.
        assert_eq!(believed(&witnesses, 20), Some(5));
    }

    #[test]
    fn of_three_proxies_without_a_word_of_the_host_the_middle_one_is_believed() {
        let mut witnesses = Witnesses::default();
        for (proxy, queued) in [(1, 7), (2, 0), (3, 1_000_000)] {
            witnesses.hear(proxy, &observed(From::Report, 10, queued));
        }
        assert_eq!(believed(&witnesses, 10), Some(7));
    }

    /// Else the level would wait for news that it has.
    #[test]
    fn the_middle_word_counts_as_old_as_the_newest() {
        let mut witnesses = Witnesses::default();
        for (proxy, at, queued) in [(1, 9, 7), (2, 10, 0), (3, 9, 8)] {
            witnesses.hear(proxy, &observed(From::Report, at, queued));
        }
        let now = Duration::from_secs(10);
        let word = witnesses.believed(now, WINDOW).unwrap();
        assert_eq!((weight(&word).0, word.at, word.delay_at), (7, now, now));
    }

    #[test]
    fn a_proxy_that_is_alone_is_believed() {
        let mut witnesses = Witnesses::default();
        assert_eq!(believed(&witnesses, 0), None);
        witnesses.hear(1, &observed(From::Report, 10, 9));
        assert_eq!(believed(&witnesses, 10), Some(9));
        witnesses.hear(0, &observed(From::Scrape, 1, 5));
        assert_eq!(believed(&witnesses, 10), Some(9), "the host's word is old");
    }

    /// Words come by several ways, and one may be overtaken.
    #[test]
    fn an_older_word_of_a_witness_does_not_replace_its_newer_one() {
        for from in [From::Scrape, From::Report] {
            let mut witnesses = Witnesses::default();
            witnesses.hear(1, &observed(from, 10, 9));
            witnesses.hear(1, &observed(from, 9, 1));
            assert_eq!(believed(&witnesses, 10), Some(9), "{from:?}");
            for (at, queued) in [(10, 8), (11, 7)] {
                witnesses.hear(1, &observed(from, at, queued));
                assert_eq!(believed(&witnesses, 11), Some(queued.into()), "{from:?}");
            }
        }
    }

    #[test]
    fn a_crowd_of_proxies_takes_no_more_room_than_seven() {
        let mut witnesses = Witnesses::default();
        for proxy in 0..1000 {
            witnesses.hear(proxy, &observed(From::Report, proxy, 0));
        }
        assert_eq!(witnesses.proxies.len(), MOST);
        assert!(witnesses.proxies.iter().all(|(proxy, _)| *proxy >= 993));
    }
}
