// SPDX-License-Identifier: Apache-2.0
//! A host that lies about its load or its cache: what share it gets, by count. Callers are `weir-policy` as the
//! filter runs it; every request takes the same time everywhere, so an honest fleet shares evenly.

use std::collections::VecDeque;
use std::time::Duration;

use rand::SeedableRng;
use rand::rngs::StdRng;
use weir_policy::{
    CacheShard, Cluster, Cost, Host, HostId, HostState, KeyHash, Keys, Level, Load, Outcome,
    Policy, Rank, Request, Selection, Table, Work,
};

const HOSTS: usize = 8;
const LIAR: usize = 0;
const REQUESTS: usize = 4_000;
/// How hosts are chosen, and what is known of their capacity.
#[derive(Clone, Copy)]
struct Fleet {
    selection: Selection,
    millicores: u32,
}

/// Requests in flight all together: five a host.
const IN_FLIGHT: usize = 5 * HOSTS;

fn address(host: usize) -> String {
    format!("127.0.0.1:{}", 1000 + host)
}

/// What a host says that has so many jobs, all of them queued.
fn jobs(in_progress: u32) -> Load {
    Load {
        in_progress,
        queued: in_progress,
        ..Load::default()
    }
}

/// What hosts say: all the truth but the liar, who is always as it claims. Capacities are known or not.
fn table(fleet: Fleet, at: Duration, truth: &[u32], claims: &Load) -> Table {
    let Fleet {
        selection,
        millicores,
    } = fleet;
    let host = |index: usize| {
        let said = match index {
            LIAR => claims.clone(),
            _ => jobs(truth[index]),
        };
        Host {
            address: address(index),
            state: HostState::Up,
            load: Some(Load {
                observed: at,
                ..said
            }),
            level: Level::ALL,
            capacity_millicores: millicores,
            speed_permille: 0,
            preempt_at: None,
            zone: 0,
        }
    };
    let policy = Policy {
        selection,
        ..Policy::default()
    };
    // What `estimate` counts in.
    let cost = Cost {
        fetch: Duration::ZERO,
        run: Duration::from_millis(IN_FLIGHT as u64 / HOSTS as u64),
    };
    let table = Table::new(policy, (0..HOSTS).map(host).collect(), 1).unwrap();
    table.with_mean_cost(cost)
}

/// Which keys a host says it has.
fn cache(keys: &[u64], host: usize) -> CacheShard {
    let mut keys: Vec<u64> = keys
        .iter()
        .map(|key| KeyHash::of(&key.to_le_bytes()).0)
        .collect();
    keys.sort_unstable();
    let ends = (1..=keys.len() as u32).collect();
    let holders = vec![0; keys.len()];
    CacheShard::new(0, 1, vec![HostId::of(&address(host))], keys, ends, holders).unwrap()
}

/// Requests that each host got from so many callers, who hear of hosts every ten requests. In between each knows
/// what it sent itself.
fn shares(
    selection: Selection,
    callers: usize,
    claims: u32,
    claimed: &[u64],
    keys: u64,
) -> Vec<usize> {
    let fleet = Fleet {
        selection,
        millicores: 1000,
    };
    shares_of(fleet, callers, &jobs(claims), claimed, keys)
}

fn shares_of(
    fleet: Fleet,
    callers: usize,
    claims: &Load,
    claimed: &[u64],
    keys: u64,
) -> Vec<usize> {
    let selection = fleet.selection;
    let mut rng = StdRng::seed_from_u64(7);
    let mut all = vec![Cluster::default(); callers];
    let mut truth = [0u32; HOSTS];
    let mut got = vec![0; HOSTS];
    let mut flying = VecDeque::new();
    for number in 0..REQUESTS {
        let now = Duration::from_millis(1 + number as u64);
        if number % 10 == 0 {
            for caller in &mut all {
                caller.set_table(table(fleet, now, &truth, claims), now, now);
                caller.set_cache_shard(0, cache(claimed, LIAR));
            }
        }
        if flying.len() == IN_FLIGHT {
            let (caller, host, sent): (usize, usize, Duration) = flying.pop_front().unwrap();
            all[caller].finished(HostId::of(&address(host)), sent, now);
            truth[host] -= 1;
        }
        let key = (keys > 0).then(|| KeyHash::of(&(number as u64 % keys).to_le_bytes()));
        let request = Request {
            keys: Keys::new(key),
            rank: Rank::new(16, 0),
        };
        let caller = number % callers;
        let decision = all[caller].decide(&request, now, &mut rng);
        let Outcome::Send(ranked) = decision.outcome else {
            panic!("{decision:?}")
        };
        let host = ranked.first().unwrap() as usize;
        if host == LIAR && selection == Selection::Dynamic && keys == 0 {
            let here = all[caller].in_flight(HostId::of(&address(LIAR)));
            let honest = (1..HOSTS as u32).map(|host| all[caller].in_progress(host, now));
            assert!(Some(here) <= honest.min().unwrap(), "the law of the bound");
        }
        all[caller].assigned(HostId::of(&address(host)), &request, now);
        flying.push_back((caller, host, now));
        truth[host] += 1;
        got[host] += 1;
    }
    got
}

/// Of [`REQUESTS`]: each of so many callers has at most one more in flight at the liar than every honest host has
/// in all, h. Of all that is in flight, callers × (h + 1) + (hosts - 1) × h, it has the first part.
fn bound(callers: usize) -> usize {
    let (callers, hosts) = (callers as f64, HOSTS as f64);
    let honest = (IN_FLIGHT as f64 - callers) / (callers + hosts - 1.0);
    let share = callers * (honest + 1.0) / IN_FLIGHT as f64;
    (REQUESTS as f64 * share * 1.05) as usize
}

#[test]
fn a_host_that_claims_to_be_idle_gets_no_more_from_a_caller_than_honest_hosts_have() {
    for selection in [Selection::Dynamic, Selection::Estimate] {
        for callers in [1, 2, 4] {
            let got = shares(selection, callers, 0, &[], 0);
            let bound = bound(callers);
            eprintln!("{selection:?}, {callers} callers: {got:?}, bound {bound}");
            assert!(got[LIAR] <= bound, "{selection:?}, {callers}: {got:?}");
        }
    }
}

#[test]
fn a_host_that_claims_no_work_or_a_thousand_cores_gets_no_more_than_one_that_claims_to_be_idle() {
    let no_work = Load {
        work: Some(Work::default()),
        ..jobs(5)
    };
    let cores = Load {
        in_progress: 1_000,
        busy_cores: Some(1_000),
        ..Load::default()
    };
    for (millicores, claims) in [(1000, no_work), (0, cores)] {
        for callers in [1, 2, 4] {
            let fleet = Fleet {
                selection: Selection::Estimate,
                millicores,
            };
            let got = shares_of(fleet, callers, &claims, &[], 0);
            let bound = bound(callers);
            eprintln!("{claims:?}, {callers} callers: {got:?}, bound {bound}");
            assert!(got[LIAR] <= bound, "{claims:?}, {callers}: {got:?}");
        }
    }
}

#[test]
fn baseline_does_not_listen_to_what_hosts_say() {
    let honest = shares(Selection::Baseline, 1, 5, &[], 1000);
    for claims in [0, u32::MAX] {
        assert_eq!(shares(Selection::Baseline, 1, claims, &[], 1000), honest);
    }
}

#[test]
fn a_host_that_claims_an_absurd_load_harms_itself_alone() {
    for selection in [Selection::Dynamic, Selection::Estimate] {
        let got = shares(selection, 2, u32::MAX, &[], 0);
        assert_eq!(got[LIAR], 0, "{got:?}");
        let usual = REQUESTS / (HOSTS - 1);
        assert!(
            got[1..].iter().all(|requests| *requests < 2 * usual),
            "{got:?}"
        );
    }
}

#[test]
fn a_host_that_claims_keys_gets_the_requests_for_these_and_no_others() {
    let claimed: Vec<u64> = (0..50).collect();
    // A quarter of all requests are for them. Of the others it gets a share like everybody.
    let theirs = REQUESTS / 4;
    for selection in [Selection::Dynamic, Selection::Estimate] {
        let honest = shares(selection, 2, 5, &[], 200);
        let got = shares(selection, 2, 5, &claimed, 200);
        eprintln!("{selection:?}, keys: honest {honest:?}, lied {got:?}");
        assert!(
            got[LIAR] <= theirs + (REQUESTS - theirs) / HOSTS * 3 / 2,
            "{selection:?}: {got:?}"
        );
        // With `estimate` only as long as nobody else would be done sooner.
        let comes_first = selection == Selection::Dynamic;
        assert_eq!(got[LIAR] >= theirs, comes_first, "{selection:?}: {got:?}");
    }
}
