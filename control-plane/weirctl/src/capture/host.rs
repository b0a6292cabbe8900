// SPDX-License-Identifier: Apache-2.0
//! When hosts began with what had arrived.
//!
//! A host takes the most important request first, of these the oldest, and begins with one whenever a core is free. By
//! that the logged arrivals and ends say when it began with each: Lindley's recursion (*The theory of queues with a
//! single server*, 1952) the other way round, for several cores.

use std::collections::BTreeSet;

use super::log::{Log, Visit};

/// Of each request of the log: microseconds since 1970. None where no host answered, or where a request ended before
/// there was a core for it, which those of the log alone do not explain.
pub(super) fn begun(log: &Log, cores: usize) -> Vec<Option<u64>> {
    let mut at: Vec<Vec<usize>> = vec![Vec::new(); log.hosts.len()];
    for (index, seen) in log.seen.iter().enumerate() {
        if let Some(visit) = seen.visit {
            at[visit.host as usize].push(index);
        }
    }
    let mut begun = vec![None; log.seen.len()];
    for requests in at {
        let visits = requests.iter().filter_map(|index| {
            let seen = &log.seen[*index];
            Some((*index, seen.important, seen.visit?))
        });
        replay(visits.collect(), cores, &mut begun);
    }
    begun
}

/// What happens at one host, in the order of time; where an end and an arrival coincide the end comes first.
fn replay(visits: Vec<(usize, bool, Visit)>, cores: usize, begun: &mut [Option<u64>]) {
    let mut events: Vec<_> = visits
        .iter()
        .enumerate()
        .flat_map(|(which, (_, _, visit))| {
            [(visit.ended, false, which), (visit.arrived, true, which)]
        })
        .collect();
    events.sort_unstable();
    let mut waiting = BTreeSet::new();
    let mut busy = 0;
    for (now, arrives, which) in events {
        let (index, important, visit) = visits[which];
        let place = (!important, visit.arrived, which);
        if arrives {
            if busy < cores {
                busy += 1;
                begun[index] = Some(now);
            } else {
                waiting.insert(place);
            }
        } else if !waiting.remove(&place) {
            match waiting.pop_first() {
                Some((.., next)) => begun[visits[next].0] = Some(now),
                None => busy -= 1,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begins(visits: &[(u64, u64, bool)], cores: usize) -> Vec<Option<u64>> {
        let mut begun = vec![None; visits.len()];
        let visit = |(index, (arrived, ended, important)): (usize, &(u64, u64, bool))| {
            let (host, arrived, ended) = (0, *arrived, *ended);
            (
                index,
                *important,
                Visit {
                    host,
                    arrived,
                    ended,
                },
            )
        };
        replay(
            visits.iter().enumerate().map(visit).collect(),
            cores,
            &mut begun,
        );
        begun
    }

    #[test]
    fn who_comes_to_a_free_core_is_begun_at_once_and_others_when_one_is_free() {
        let visits = [(0, 10, false), (1, 15, false), (2, 20, false)];
        assert_eq!(begins(&visits, 2), [Some(0), Some(1), Some(10)]);
        assert_eq!(begins(&visits, 1), [Some(0), Some(10), Some(15)]);
        assert_eq!(begins(&visits, 3), [Some(0), Some(1), Some(2)]);
    }

    #[test]
    fn the_important_is_begun_first_and_who_arrives_at_an_end_finds_the_core_free() {
        let visits = [
            (0, 10, false),
            (1, 30, false),
            (2, 20, true),
            (30, 40, false),
        ];
        assert_eq!(begins(&visits, 1), [Some(0), Some(20), Some(10), Some(30)]);
    }

    #[test]
    fn an_end_that_no_core_explains_is_not_begun_and_takes_none() {
        let visits = [(0, 10, false), (1, 5, false), (2, 20, false)];
        assert_eq!(begins(&visits, 1), [Some(0), None, Some(10)]);
    }
}
