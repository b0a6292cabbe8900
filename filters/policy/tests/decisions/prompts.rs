// SPDX-License-Identifier: Apache-2.0
//! Hosts of a language model: what delays the first token of an answer is what is still to be read.

use std::time::Duration;

use proptest::prelude::*;
use weir_policy::{
    Cluster, Cost, Host, HostId, Keys, Load, Policy, Reason, Request, Selection, Serves, Table,
    Work,
};

use crate::fleet::{NOW, cache, host, id, key, millis, named, request, rng, seconds, select};

/// A host that told a moment ago how many answers it writes and how many prompts wait.
fn told(number: usize, running: u32, queued: u32) -> Host {
    Host {
        load: Some(Load {
            observed: NOW,
            in_progress: running + queued,
            queued,
            ..Load::default()
        }),
        ..host(number)
    }
}

/// Its prompts take a second on average. Of the keys 1, 2 ... host 0 has the first `held`.
fn cluster(hosts: Vec<Host>, held: u64) -> Cluster {
    let mean = Cost {
        fetch: seconds(1),
        run: Duration::ZERO,
    };
    cluster_of(mean, hosts, held)
}

/// The same, with other times on average: to read a prompt, and to write its answer.
fn cluster_of(mean: Cost, hosts: Vec<Host>, held: u64) -> Cluster {
    let policy = Policy {
        serves: Serves::Prompts,
        ..select(Selection::Estimate)
    };
    let mut cluster = Cluster::default();
    let table = Table::new(policy, hosts, 1).unwrap();
    cluster.set_table(table.with_mean_cost(mean), NOW, NOW);
    let shard = cache((1..=held).map(|n| (key(n), vec![(0, false)])).collect());
    cluster.set_cache_shard(0, shard);
    cluster
}

/// A prompt of so many blocks.
fn prompt(blocks: u64) -> Request {
    Request {
        keys: Keys::new((1..=blocks).map(key)),
        ..request(None)
    }
}

/// One of which no block is anywhere.
fn other(blocks: u64, salt: u64) -> Request {
    Request {
        keys: Keys::new((1..=blocks).map(|n| key(1000 * salt + n))),
        ..request(None)
    }
}

fn first_at(cluster: &Cluster, request: &Request, now: Duration) -> HostId {
    named(cluster, &cluster.decide(request, now, &mut rng(1)))[0]
}

fn first(cluster: &Cluster, request: &Request) -> HostId {
    first_at(cluster, request, NOW)
}

#[test]
fn answers_that_are_written_delay_nobody() {
    let cluster = cluster(vec![told(0, 100, 0), told(1, 0, 0)], 8);
    assert_eq!(
        first(&cluster, &prompt(10)),
        id(0),
        "only two are to be read"
    );
    let elsewhere = first(&cluster, &other(10, 1));
    assert_eq!(elsewhere, id(1), "nothing else differs");
}

#[test]
fn prompts_that_wait_delay_as_long_as_they_take_to_be_read() {
    // The request's own ten blocks take the mean second: none was seen before.
    for (held, queued, expected) in [(4, 0, 0), (8, 1, 0), (4, 1, 1), (0, 1, 1)] {
        let cluster = cluster(vec![told(0, 0, queued), told(1, 0, 0)], held);
        let chosen = first(&cluster, &prompt(10));
        assert_eq!(chosen, id(expected), "{held} held, {queued} wait");
    }
    let busy = cluster(vec![told(0, 0, 1), told(1, 0, 1)], 8);
    assert_eq!(first(&busy, &prompt(10)), id(0), "they wait everywhere");
}

#[test]
fn a_long_prompt_delays_what_comes_after_it_for_longer_than_a_short_one() {
    let mut cluster = cluster(vec![told(0, 0, 0), told(1, 0, 0)], 0);
    cluster.assigned(id(0), &other(30, 1), NOW);
    cluster.assigned(id(1), &other(3, 2), NOW);
    cluster.assigned(id(1), &other(3, 3), NOW);
    assert_eq!(
        first(&cluster, &other(3, 4)),
        id(1),
        "two short ones are read sooner"
    );
}

#[test]
fn a_prompt_that_another_host_reads_delays_nobody_where_it_is_written() {
    let mut cluster = cluster(vec![told(0, 0, 0), told(1, 0, 0)], 0);
    cluster.assigned_to(id(0), &other(60, 1), false, NOW);
    cluster.assigned(id(1), &other(3, 2), NOW);
    assert_eq!(first(&cluster, &other(3, 4)), id(0), "three are read there");
    assert_eq!(cluster.in_flight(id(0)), 1);
    assert_eq!(cluster.lacks(0, &other(60, 1).keys, NOW), 0, "it gets it");
}

#[test]
fn what_a_host_lacks_is_what_it_is_neither_known_nor_assumed_to_have() {
    let mut cluster = cluster(vec![told(0, 0, 0), told(1, 0, 0)], 8);
    let asked = prompt(10);
    assert_eq!(cluster.lacks(0, &asked.keys, NOW), 2);
    assert_eq!(cluster.lacks(1, &asked.keys, NOW), 10);
    cluster.assigned(id(1), &prompt(9), NOW);
    assert_eq!(cluster.lacks(1, &asked.keys, NOW), 1);
    let long = Keys::of_prompt((1..=64).map(key));
    assert_eq!(cluster.lacks(0, &long, NOW), 272 - 8);
    assert_eq!(Cluster::default().lacks(0, &long, NOW), 272);
}

#[test]
fn what_engines_had_of_prompts_is_no_part_of_the_time_that_they_read() {
    let mean = Cost {
        fetch: millis(200),
        run: Duration::ZERO,
    };
    let mut cluster = cluster_of(mean, vec![told(0, 0, 0), told(1, 0, 0)], 36);
    let with_an_end_of_its_own = |salt: u64| Request {
        keys: Keys::new((1..=36).chain(1000 * salt..1000 * salt + 4).map(key)),
        ..request(None)
    };
    let reads = (1..=300)
        .map(|salt| cluster.assigned(id(0), &with_an_end_of_its_own(salt), NOW))
        .last();
    assert_eq!(reads, Some(millis(200)), "four of forty are the mean");
}

/// 64 keys of a prompt stand for 272 blocks, 48 for 80.
#[test]
fn of_a_prompts_keys_the_later_ones_stand_for_more() {
    let read = |blocks: u64, salt: u64| Request {
        keys: Keys::of_prompt((1..=blocks).map(|n| key(1000 * salt + n))),
        ..request(None)
    };
    let mut cluster = cluster(vec![told(0, 0, 0), told(1, 0, 0)], 0);
    cluster.assigned(id(0), &read(64, 1), NOW);
    for salt in 2..4 {
        cluster.assigned(id(1), &read(48, salt), NOW);
    }
    let chosen = first(&cluster, &read(3, 5));
    assert_eq!(chosen, id(1), "twice 80 blocks are read sooner");
    // What it has of a long prompt is worth waiting for the rest of a short one.
    let begun = |held| {
        let mut cluster = self::cluster(vec![told(0, 0, 0), told(1, 0, 0)], held);
        cluster.assigned(id(0), &read(48, 6), NOW);
        first(
            &cluster,
            &Request {
                keys: Keys::of_prompt((1..=64).map(key)),
                ..request(None)
            },
        )
    };
    assert_eq!((begun(30), begun(60)), (id(1), id(0)));
}

#[test]
fn what_was_sent_has_been_read_after_its_time() {
    let mut cluster = cluster(vec![told(0, 0, 0), told(1, 0, 0)], 8);
    let at = |cluster: &Cluster, after| first_at(cluster, &prompt(10), NOW + millis(after));
    cluster.assigned(id(0), &other(30, 1), NOW);
    assert_eq!(at(&cluster, 100), id(1), "a long one is before it");
    assert_eq!(at(&cluster, 2900), id(0), "it has nearly been read");
}

#[test]
fn a_host_that_says_that_nothing_waits_is_believed_but_for_what_was_sent_since() {
    let mut cluster = cluster(vec![told(0, 0, 0), told(1, 0, 0)], 8);
    for salt in 1..20 {
        cluster.assigned(id(0), &other(30, salt), NOW);
    }
    let later = |after| NOW + millis(after);
    let idle = Load {
        observed: later(50),
        ..Load::default()
    };
    let decide = |cluster: &Cluster, after| first_at(cluster, &prompt(10), later(after));
    assert_eq!(decide(&cluster, 50), id(1));
    cluster.observed(id(0), idle.clone(), later(50));
    assert_eq!(
        decide(&cluster, 2100),
        id(0),
        "twice the mean later at the latest"
    );
    cluster.assigned(id(0), &other(30, 30), later(2100));
    assert_eq!(decide(&cluster, 2200), id(1));
}

#[test]
fn what_all_callers_sent_counts_but_no_more_than_twice_what_the_host_says() {
    // The request's ten blocks take a second at host 1, and half of one at host 0, where there is so much before it.
    let chosen = |unread: u64, queued| {
        let mut busy = told(0, 4, queued);
        if let Some(load) = &mut busy.load {
            load.work = Some(Work::by_class([millis(unread)]));
        }
        let cluster = cluster(vec![busy, told(1, 4, 0)], 5);
        first(&cluster, &prompt(10))
    };
    assert_eq!(chosen(300, 0), id(0));
    assert_eq!(
        chosen(900, 0),
        id(1),
        "nothing waits, but one is being read"
    );
    // Whoever lies to weir-control keeps nobody from a host for longer than two mean prompts.
    let idle = |unread| {
        let mut host = told(0, 0, 0);
        if let Some(load) = &mut host.load {
            load.work = Some(Work::by_class([millis(unread)]));
        }
        let mut cluster = cluster(vec![host, told(1, 0, 0)], 0);
        cluster.assigned(id(1), &other(10, 1), NOW);
        cluster.assigned(id(1), &other(10, 2), NOW);
        cluster.assigned(id(1), &other(10, 3), NOW);
        first(&cluster, &other(10, 4))
    };
    assert_eq!(idle(1_000_000), id(0));
}

#[test]
fn what_a_host_lacks_is_known_however_many_others_have_it() {
    let mut hosts: Vec<_> = (0..100).map(|number| told(number, 0, 0)).collect();
    hosts.sort_by(|a, b| a.address.cmp(&b.address));
    let mut cluster = cluster(hosts, 0);
    let shared = (0..100)
        .filter(|host| *host != 40)
        .map(|host| (host, false));
    let shared: Vec<_> = shared.collect();
    cluster.set_cache_shard(
        0,
        cache((1..=8).map(|n| (key(n), shared.clone())).collect()),
    );
    let asked = prompt(9);
    for host in 0..100 {
        let lacks = if cluster.id(host) == Some(id(40)) {
            9
        } else {
            1
        };
        assert_eq!(cluster.lacks(host, &asked.keys, NOW), lacks, "{host}");
    }
    cluster.assigned(id(40), &prompt(8), NOW);
    let at = (0..100).find(|host| cluster.id(*host) == Some(id(40)));
    let lacks = cluster.lacks(at.unwrap(), &asked.keys, NOW);
    assert_eq!(lacks, 1, "it was sent there");
}

/// Host 0 has most of the prompt, and reads the rest in under half a second.
#[test]
fn a_host_that_goes_while_the_answer_is_written_comes_last() {
    for (left, run, expected) in [
        (1000, 0, 0),
        (300, 0, 1),
        (1000, 500, 0),
        (1000, 700, 1),
        (20_000, 18_000, 0),
        (20_000, 20_000, 1),
    ] {
        let goes = Host {
            preempt_at: Some(NOW + millis(left)),
            ..told(0, 0, 0)
        };
        let mean = Cost {
            fetch: seconds(1),
            run: millis(run),
        };
        let cluster = cluster_of(mean, vec![goes, told(1, 0, 0)], 8);
        let chosen = first(&cluster, &prompt(10));
        assert_eq!(chosen, id(expected), "{left} ms are left, {run} to write");
    }
}

#[test]
fn how_long_answers_take_moves_no_choice_where_no_host_goes() {
    for run in [0, 60] {
        let mean = Cost {
            fetch: seconds(1),
            run: seconds(run),
        };
        let cluster = cluster_of(mean, vec![told(0, 0, 1), told(1, 0, 0)], 8);
        assert_eq!(first(&cluster, &prompt(10)), id(0));
        let cluster = cluster_of(mean, vec![told(0, 0, 1), told(1, 0, 0)], 4);
        assert_eq!(first(&cluster, &prompt(10)), id(1));
    }
}

proptest! {
    #[test]
    fn whatever_is_sent_and_told_there_is_a_decision_and_a_reason(
        sent in prop::collection::vec((0usize..3, 0u64..70, 0u64..5000, 0u32..50), 0..40),
        blocks in 0u64..80,
    ) {
        let mut cluster = cluster(vec![told(0, 0, 0), told(1, 0, 0)], 8);
        let mut now = NOW;
        for (salt, (host, blocks, after, queued)) in (1..).zip(sent) {
            now += millis(after);
            cluster.assigned(id(host), &other(blocks, salt), now);
            let load = Load { observed: now, in_progress: queued, queued, ..Load::default() };
            cluster.observed(id(host), load, now);
        }
        let decision = cluster.decide(&prompt(blocks), now, &mut rng(1));
        prop_assert_eq!(named(&cluster, &decision).len(), 2);
        prop_assert_eq!(blocks == 0, decision.reason == Reason::NoKey);
        // The account decides the same again.
        let account = cluster.account(&prompt(blocks), &decision, now, &mut rng(1));
        let (ranked, reason) = account.decide().unwrap();
        prop_assert_eq!((weir_policy::Outcome::Send(ranked), reason), (decision.outcome, decision.reason));
    }
}
