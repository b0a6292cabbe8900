// SPDX-License-Identifier: Apache-2.0

use proptest::prelude::*;
use weir_harness::{C, busy};

use super::*;

#[derive(Clone, Debug)]
enum Step {
    Ask {
        priority: &'static str,
    },
    Answer {
        which: prop::sample::Index,
        by: usize,
        status: &'static str,
        flags: u64,
    },
    End(prop::sample::Index),
    Drop(prop::sample::Index),
    /// Its context goes before its exchange.
    Lose(prop::sample::Index),
    Deafen(prop::sample::Index),
    Tick(u64),
    Push {
        level: u32,
        hosts: usize,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let index = any::<prop::sample::Index>;
    let statuses = prop::sample::select(vec!["200", "404", "429", "500", "504"]);
    let flags = prop::sample::select(vec![0, 0, 0x4, 0x10, NOT_CONNECTED]);
    let answer = (index(), 0usize..3, statuses, flags);
    prop_oneof![
        5 => prop::sample::select(vec!["high", "low"]).prop_map(|priority| Step::Ask { priority }),
        4 => answer.prop_map(|(which, by, status, flags)| Step::Answer { which, by, status, flags }),
        3 => index().prop_map(Step::End),
        2 => index().prop_map(Step::Drop),
        1 => index().prop_map(Step::Lose),
        1 => index().prop_map(Step::Deafen),
        3 => (0u64..300).prop_map(Step::Tick),
        2 => (prop::sample::select(vec![0, 100, 4096]), 1usize..4)
            .prop_map(|(level, hosts)| Step::Push { level, hosts }),
    ]
}

fn any_table(version: u64, level: u32, hosts: usize) -> v1::HostTable {
    let mut any = holding(version, level);
    any.policy.as_mut().unwrap().hedging = hedging().policy.unwrap().hedging;
    any.hosts = [A, B, C][..hosts]
        .iter()
        .map(|host| busy(host, 0, 0))
        .collect();
    for host in &mut any.hosts {
        host.admission_level = Some(level);
        host.capacity_millicores = 2_000;
    }
    any
}

proptest! {
    #[test]
    fn whatever_happens_every_attempt_ends_exactly_once(
        steps in prop::collection::vec(step(), 1..80),
    ) {
        let mut worker = Worker::with(&any_table(1, 4096, 3));
        let mut open: Vec<(u32, Exchange<FakeHost>, FakeRequest)> = Vec::new();
        let mut known = 3;
        for (version, step) in (2u32..).zip(steps) {
            match step {
                Step::Ask { priority } => {
                    let request = FakeRequest::new(&[("x-weir-priority", priority)]);
                    let (exchange, _) = worker.ask(version, &request);
                    open.push((version, exchange, request));
                }
                Step::Tick(milliseconds) => worker.tick(milliseconds),
                Step::Push { level, hosts } => {
                    worker.push(&any_table(version.into(), level, hosts));
                    known = hosts;
                }
                _ if open.is_empty() => {}
                Step::Answer { which, by, status, flags } => {
                    let at = which.index(open.len());
                    let (_, exchange, request) = &mut open[at];
                    // A host that is in no table gets no counters.
                    request.answer([A, B, C][by % known], &[(":status", status)]);
                    request.set_number(Number::Attempts, 1 + by as u64);
                    request.set_number(Number::ResponseFlags, flags);
                    exchange.on_response(request);
                }
                Step::End(which) => {
                    let at = which.index(open.len());
                    let (_, exchange, request) = &mut open[at];
                    exchange.on_end(request);
                }
                Step::Drop(which) => {
                    let at = which.index(open.len());
                    let (context, ..) = open.swap_remove(at);
                    worker.contexts.remove(&context);
                }
                Step::Lose(which) => {
                    let at = which.index(open.len());
                    worker.contexts.remove(&open[at].0);
                }
                Step::Deafen(which) => open[which.index(open.len())].2.deafen(),
            }
        }
        drop(open);
        // With all hosts back none of those that left is forgotten.
        worker.push(&any_table(1_000, 4096, 3));
        let record = worker.record();
        for address in [A, B, C] {
            prop_assert_eq!(worker.in_flight(address), 0, "{}", address);
        }
        let (begun, ended) = counted(&record);
        prop_assert_eq!(begun, ended);
        prop_assert_eq!(worker.host.metric("weir_held_requests"), 0);
        let hedges = worker.vm.enter(|vm| vm.hedges("rules"));
        let none = weir_policy::Hedges::default();
        prop_assert_eq!(format!("{hedges:?}"), format!("{:?}", Some(none)));
    }
}
