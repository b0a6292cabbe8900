// SPDX-License-Identifier: Apache-2.0
//! The requests whose cost is kept.

use std::time::Duration;

use weir_tables::v1::{self, HostState, Overload, Selection};

use crate::{RULES, busy, table};

/// A request and the proxy that it comes to. Unless it says more: 14 idle hosts that tell no costs, `estimate` as by
/// default, nothing cached, a key that is new each time.
pub(super) struct Scenario {
    pub(super) name: &'static str,
    /// What decisions have to say, or the figures would be of something else.
    pub(super) reason: &'static str,
    /// Of the plugin.
    pub(super) configuration: &'static str,
    pub(super) table: Option<v1::HostTable>,
    /// Whether there is the same table of hosts that read prompts for these.
    pub(super) readers: bool,
    pub(super) key: Key,
    /// Bytes of the prompt in its body, which is read for the key; 0: there is no body.
    pub(super) prompt: usize,
    /// For how long no table has come.
    pub(super) age: Duration,
    pub(super) caller: &'static str,
    /// Headers beside the usual ones.
    pub(super) more: &'static [(&'static str, &'static str)],
    pub(super) answer: &'static [(&'static str, &'static str)],
}

pub(super) enum Key {
    /// The first host has said that it has it.
    Cached,
    Same,
    New,
    None,
}

/// Keys in bodies.
const PROMPT: &str = r#"{"clusters":{"rules":{"key":{"prompt":{}}}}}"#;
/// The same, and other hosts read these.
const PREFILL: &str =
    r#"{"clusters":{"rules":{"key":{"prompt":{}},"prefill":{"table":"readers"}}}}"#;
/// Neither the cluster's name nor the caller's address matters.
const ANY: &str = r#"{"clusters":{"*":{"table":"rules"}},"trust":"any"}"#;
const APPLICATION: &str = "127.0.0.1:50000";
const STRANGER: &str = "10.9.8.7:50000";
const LOAD: [(&str, &str); 1] = [(
    "endpoint-load-metrics",
    "TEXT named_metrics.weir.in_progress=3,named_metrics.weir.queued.0=1,\
     named_metrics.weir.queuing_delay_seconds=0.012",
)];

pub(super) fn hosts(count: usize) -> Vec<v1::Host> {
    let address = |n: usize| format!("10.0.{}.{}:8080", 100 + n / 100, 100 + n % 100);
    (0..count).map(|n| busy(&address(n), 1, 0)).collect()
}

fn scenario(name: &'static str, reason: &'static str) -> Scenario {
    let mut table = table(1, hosts(14));
    table.cache_shards = 16;
    let scenario = Scenario {
        name,
        reason,
        configuration: RULES,
        table: Some(table),
        readers: false,
        key: Key::New,
        prompt: 0,
        age: Duration::ZERO,
        caller: APPLICATION,
        more: &[],
        answer: &[],
    };
    selected(Selection::Estimate, scenario)
}

fn of_fleet(count: usize, mut scenario: Scenario) -> Scenario {
    if let Some(table) = &mut scenario.table {
        table.hosts = hosts(count);
    }
    scenario
}

fn with(
    mut scenario: Scenario,
    change: impl FnOnce(&mut v1::HostTable, &mut v1::Policy),
) -> Scenario {
    if let Some(table) = &mut scenario.table {
        let mut policy = table.policy.take().unwrap_or_default();
        change(table, &mut policy);
        table.policy = Some(policy);
    }
    scenario
}

fn selected(selection: Selection, scenario: Scenario) -> Scenario {
    with(scenario, |_, policy| policy.selection = selection.into())
}

/// The one host that has less in progress than the others admits nothing.
fn only_the_cold_refuse(table: &mut v1::HostTable, policy: &mut v1::Policy) {
    policy.overload = Overload::Dagor.into();
    policy.hot_cold_permille = Some(0);
    if let Some(cold) = table.hosts.first_mut() {
        *cold = v1::Host {
            admission_level: Some(0),
            ..busy(&cold.address, 0, 0)
        };
    }
}

/// Every reason once but for those to hold a request, which end with another, and what else a request can bring along.
pub(super) fn all() -> Vec<Scenario> {
    let cached = |name, reason| Scenario {
        key: Key::Cached,
        ..scenario(name, reason)
    };
    let known = |name| cached(name, "known_cached");
    let dynamic = |scenario| selected(Selection::Dynamic, scenario);
    let all_headers = &[("x-weir-priority", "high"), ("x-weir-user", "somebody")];
    let down = |table: &mut v1::HostTable, _: &mut v1::Policy| {
        for host in &mut table.hosts {
            host.state = HostState::Down.into();
        }
    };
    vec![
        known("known_cached"),
        Scenario {
            key: Key::Same,
            ..scenario("assumed_cached", "assumed_cached")
        },
        scenario("not_cached", "not_cached"),
        Scenario {
            key: Key::None,
            ..scenario("no_key", "no_key")
        },
        selected(Selection::Baseline, scenario("baseline", "baseline")),
        selected(Selection::Random, scenario("random", "random")),
        selected(Selection::Rendezvous, scenario("rendezvous", "rendezvous")),
        with(scenario("overloaded", "overloaded"), |table, policy| {
            policy.overload = Overload::Breaker.into();
            for host in &mut table.hosts {
                *host = busy(&host.address, 300, 300);
            }
        }),
        with(scenario("no_host", "no_host"), down),
        Scenario {
            table: None,
            ..scenario("no_table", "no_table")
        },
        Scenario {
            age: Duration::from_secs(10),
            ..with(scenario("stale_table", "stale_table"), down)
        },
        Scenario {
            prompt: 500,
            configuration: PROMPT,
            ..scenario("no_key, a prompt of 500 B is read", "no_key")
        },
        Scenario {
            prompt: 20_000,
            configuration: PROMPT,
            ..scenario("not_cached, a prompt of 20 kB is read", "not_cached")
        },
        Scenario {
            prompt: 20_000,
            configuration: PREFILL,
            readers: true,
            ..scenario(
                "not_cached, a prompt of 20 kB is read elsewhere",
                "not_cached",
            )
        },
        Scenario {
            more: all_headers,
            ..known("known_cached, with priority and user")
        },
        Scenario {
            configuration: ANY,
            ..known("known_cached, whatever cluster and caller")
        },
        Scenario {
            answer: &LOAD,
            ..known("known_cached, with the host's load on the answer")
        },
        Scenario {
            caller: STRANGER,
            more: all_headers,
            ..scenario("no_key, of a stranger whose headers are removed", "no_key")
        },
        with(known("known_cached, each leaves a receipt"), |_, policy| {
            policy.receipt_every = Some(1)
        }),
        with(known("known_cached, none leaves a receipt"), |_, policy| {
            policy.receipt_every = Some(0)
        }),
        with(known("known_cached, one host is named"), |_, policy| {
            policy.ranked_hosts = Some(1)
        }),
        with(
            Scenario {
                reason: "not_steered",
                ..known("known_cached, not steered")
            },
            |_, policy| policy.steer_percent = Some(0),
        ),
        of_fleet(1000, known("known_cached, 1000 hosts")),
        of_fleet(1000, scenario("not_cached, 1000 hosts", "not_cached")),
        dynamic(known("known_cached, by dynamic")),
        dynamic(scenario("not_cached, by dynamic", "not_cached")),
        dynamic(Scenario {
            key: Key::None,
            ..scenario("no_key, by dynamic", "no_key")
        }),
        of_fleet(1000, dynamic(known("known_cached, by dynamic, 1000 hosts"))),
        of_fleet(
            1000,
            dynamic(scenario("not_cached, by dynamic, 1000 hosts", "not_cached")),
        ),
        selected(Selection::HotCold, scenario("cold", "cold")),
        selected(
            Selection::HotCold,
            with(scenario("hot", "hot"), only_the_cold_refuse),
        ),
        selected(Selection::CachingPlan, cached("planned", "planned")),
        with(scenario("panic", "panic"), |table, _| {
            for host in table.hosts.iter_mut().skip(1) {
                host.state = HostState::Draining.into();
            }
        }),
    ]
}

/// The first host, which has the cached key.
pub(super) fn holder() -> String {
    hosts(1).remove(0).address
}
