// SPDX-License-Identifier: Apache-2.0
//! A caching plan with hindsight: each key at one host.
//!
//! How Ulita made his is not in document 001. Here the keys are taken in the order of the core time that the
//! workload spends on them, longest first, each to the host that has least so far (Graham, *Bounds on
//! multiprocessing timing anomalies*, SIAM J. Appl. Math. 17(2), 1969). No plan made before the fact knows as much.

use std::time::Duration;

use weir_fleet::settings::Plan;
use weir_policy::HostId;

use crate::control::address;
use crate::workload::{Job, Key};

/// The plan for these requests on so many hosts.
#[must_use]
pub fn longest_first(keys: &[Key], jobs: impl Iterator<Item = Job>, hosts: usize) -> Plan {
    let mut work = vec![Duration::ZERO; keys.len()];
    for job in jobs {
        let place = job.key.and_then(|key| work.get_mut(key as usize));
        if let Some(work) = place {
            *work += job.work.core_time();
        }
    }
    let mut order: Vec<_> = keys.iter().zip(work).collect();
    order.sort_by_key(|(_, work)| std::cmp::Reverse(*work));
    let mut load = vec![Duration::ZERO; hosts];
    let mut plan = Plan::new();
    for (key, work) in order {
        let least = (0..hosts).min_by_key(|host| load[*host]);
        if let Some(host) = least {
            load[host] += work;
            let id = HostId::of(&address(host));
            plan.entry(id).or_default().extend(key.keys.as_slice());
        }
    }
    plan
}

#[cfg(test)]
mod tests {
    use weir_policy::KeyHash;

    use super::*;
    use crate::workload::{LOW, Work};

    #[test]
    fn the_longest_key_has_a_host_of_its_own_where_it_is_as_long_as_the_others_together() {
        let keys: Vec<_> = (0..4).map(|key| Key::new(&key.to_string())).collect();
        let job = |(key, seconds)| Job {
            at: Duration::ZERO,
            key: Some(key),
            version: 0,
            class: LOW,
            user: None,
            sender: None,
            bytes: 0,
            work: Work::Whole(Duration::from_secs(seconds)),
            then: None,
        };
        let jobs = [(0, 2), (1, 1), (2, 3), (2, 3), (3, 3)].map(job);
        let plan = longest_first(&keys, jobs.into_iter(), 2);
        let hash = |key: &usize| KeyHash::of(key.to_string().as_bytes());
        let hashes = |keys: &[usize]| keys.iter().map(hash).collect::<Vec<_>>();
        let of = |host: usize| &plan[&HostId::of(&address(host))];
        assert_eq!(*of(0), hashes(&[2]));
        assert_eq!(*of(1), hashes(&[3, 0, 1]));
    }
}
