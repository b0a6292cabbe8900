// SPDX-License-Identifier: Apache-2.0
//! Links that one machine cannot break. The others are broken before a real Envoy: control-plane/tests/doctor.

use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use super::super::Diagnosis;
use super::super::evidence::{Asked, Certificate, Control, Endpoint, Envoy, Evidence, Upstream};
use super::super::finding::{Finding, Verdict};
use super::super::runbook::Runbook;
use super::*;
use crate::answers::{Cluster, Host, Replica, Source, Tables};
use crate::page::Address;

const HOUR: Duration = Duration::from_secs(3_600);

fn address(port: u16) -> Address {
    format!("127.0.0.1:{port}").parse().unwrap()
}

fn evidence(controls: Vec<Control>, envoys: Vec<Envoy>) -> Evidence {
    let asked = |port, control| Asked {
        address: address(port),
        said: Ok(control),
    };
    Evidence {
        now: SystemTime::UNIX_EPOCH + HOUR,
        controls: (1..)
            .zip(controls)
            .map(|(port, one)| asked(port, one))
            .collect(),
        envoys: envoys
            .into_iter()
            .map(|envoy| Asked {
                address: address(9),
                said: Ok(envoy),
            })
            .collect(),
    }
}

fn replica(role: &str) -> Control {
    let replica = Replica {
        role: role.into(),
        ..Replica::default()
    };
    Control {
        tables: Tables {
            replica: Some(replica),
            ..Tables::default()
        },
        ..Control::default()
    }
}

fn of_cluster(cluster: Cluster) -> Control {
    Control {
        tables: Tables {
            clusters: [("rules".to_owned(), cluster)].into(),
            ..Tables::default()
        },
        ..Control::default()
    }
}

fn up(port: u16) -> Host {
    Host {
        address: format!("127.0.0.1:{port}"),
        state: "up".into(),
        capacity_millicores: 1_000,
        ..Host::default()
    }
}

/// The worst that is said at a link, with its evidence.
fn said(evidence: &Evidence, link: &str) -> (Verdict, String) {
    let found = all(evidence);
    let at_link = |finding: &&Finding| finding.link == link;
    let worst = |finding: &&Finding| match finding.verdict {
        Verdict::Broken => 0,
        Verdict::Poor => 1,
        Verdict::Fine => 2,
    };
    let finding = found.iter().filter(at_link).min_by_key(worst);
    let finding = finding.unwrap_or_else(|| panic!("nothing is said of {link}: {found:#?}"));
    (finding.verdict, finding.said.clone())
}

fn says(evidence: &Evidence, verdict: Verdict, link: &str, words: &str) {
    let (worst, text) = said(evidence, link);
    assert!(
        worst == verdict && text.contains(words),
        "{link}: {worst:?} {text}"
    );
}

#[test]
fn one_replica_leads_and_the_others_follow() {
    let two = |role| evidence(vec![replica("leading"), replica(role)], vec![]);
    says(&two("following"), Verdict::Fine, "leader", "127.0.0.1:1");
    says(
        &two("leading"),
        Verdict::Broken,
        "leader",
        "two lead: 127.0.0.1:1 and 127.0.0.1:2",
    );
    let none = evidence(vec![replica("waiting")], vec![]);
    says(
        &none,
        Verdict::Broken,
        "leader",
        "none of those that were asked leads",
    );
    let mut unwell = replica("leading");
    let complaint = &mut unwell.tables.replica.as_mut().unwrap().complaint;
    *complaint = Some("the lock is not renewed".into());
    let unwell = evidence(vec![unwell], vec![]);
    says(&unwell, Verdict::Poor, "leader", "the lock is not renewed");
}

#[test]
fn a_clock_that_is_wrong_is_told_with_its_sign() {
    let at = |date| {
        let control = Control {
            date: Some(date),
            ..Control::default()
        };
        evidence(vec![control], vec![])
    };
    let now = SystemTime::UNIX_EPOCH + HOUR;
    let second = Duration::from_secs(1);
    says(&at(now - second), Verdict::Fine, "clock", "a few seconds");
    says(
        &at(now - 60 * second),
        Verdict::Poor,
        "clock",
        "60 s behind",
    );
    says(&at(now + 60 * second), Verdict::Poor, "clock", "60 s ahead");
}

#[test]
fn what_weir_control_complains_of_is_passed_on() {
    let mut control = Control {
        unready: Some("no replica leads".into()),
        ..Control::default()
    };
    let unready = |control| evidence(vec![control], vec![]);
    says(
        &unready(control),
        Verdict::Broken,
        "weir-control",
        "no replica leads",
    );
    control = Control::default();
    control.tables.memory.limit_bytes = Some(100);
    control.tables.memory.counted_bytes = 95;
    says(
        &unready(control),
        Verdict::Poor,
        "weir-control",
        "95 of 100 bytes",
    );
}

#[test]
fn hosts_that_are_not_up_are_told_apart_from_none_at_all() {
    let of = |hosts| {
        let cluster = Cluster {
            hosts,
            ..Cluster::default()
        };
        evidence(vec![of_cluster(cluster)], vec![])
    };
    let down = |port| Host {
        state: "down".into(),
        ..up(port)
    };
    says(&of(vec![up(1), up(2)]), Verdict::Fine, "hosts", "2 up");
    says(
        &of(vec![up(1), down(2)]),
        Verdict::Poor,
        "hosts",
        "127.0.0.1:2",
    );
    says(
        &of(vec![down(1), down(2)]),
        Verdict::Broken,
        "hosts",
        "none of 2 is up",
    );
}

#[test]
fn hosts_with_one_fault_have_one_line() {
    let failing = |port| {
        let source = Source {
            error: Some("status 404".into()),
            ..Source::default()
        };
        Host {
            sources: [("scrape".to_owned(), source)].into(),
            ..up(port)
        }
    };
    let cluster = Cluster {
        hosts: (1..=12).map(failing).collect(),
        ..Cluster::default()
    };
    let found = all(&evidence(vec![of_cluster(cluster)], vec![]));
    let lines: Vec<_> = found.iter().filter(|one| one.link == "sources").collect();
    assert_eq!(lines.len(), 1, "{lines:#?}");
    assert!(
        lines[0].said.contains("and 4 more: status 404"),
        "{lines:#?}"
    );
}

#[test]
fn a_follower_is_not_asked_about_hosts() {
    let mut follower = replica("following");
    follower.tables.clusters = of_cluster(Cluster::default()).tables.clusters;
    let found = all(&evidence(vec![replica("leading"), follower], vec![]));
    assert!(found.iter().all(|one| one.link != "hosts"), "{found:#?}");
}

/// What an Envoy says whose only plugin has these settings.
fn envoy(settings: &str, stats: Value) -> Envoy {
    let plugin = json!({
        "@type": "type.googleapis.com/envoy.extensions.filters.http.wasm.v3.Wasm",
        "config": {
            "name": "weir", "root_id": "weir", "failure_policy": "FAIL_RELOAD",
            "vm_config": {"vm_id": "weir"},
            "configuration": {"@type": "type.googleapis.com/google.protobuf.StringValue", "value": settings},
        },
    });
    envoy_with(plugin, stats)
}

fn envoy_with(plugin: Value, stats: Value) -> Envoy {
    let manager = json!({
        "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "request_timeout": "1s",
        "http_filters": [{"name": "weir", "typed_config": plugin}],
        "route_config": {"virtual_hosts": [{"routes": [{"route": {"cluster": "rules"}}]}]},
    });
    let listener =
        json!({"name": "egress", "filter_chains": [{"filters": [{"typed_config": manager}]}]});
    let config = json!({"configs": [
        {"@type": "a.ListenersConfigDump", "dynamic_listeners": [
            {"active_state": {"listener": listener}, "error_state": {"details": "no such filter"}}]},
        {"@type": "a.ClustersConfigDump", "dynamic_active_clusters": [
            {"cluster": {"name": "rules", "lb_policy": "RING_HASH"}}]},
    ]});
    let info = json!({
        "version": "a/1.40.0/b", "state": "LIVE", "node": {"id": "sidecar-1"},
        "command_line_options": {"service_node": "sidecar-1"},
    });
    let stats: Vec<_> = stats
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, value)| json!({"name": name, "value": value}))
        .collect();
    Envoy::parse(
        &info,
        &config,
        &json!({}),
        &json!({}),
        &json!({"stats": stats}),
    )
}

const RULES: &str = r#"{"clusters": {"rules": {}}}"#;

#[test]
fn an_intention_that_is_missing_shows_as_403() {
    let answers = |refused| {
        let stats = json!({"cluster.rules.upstream_rq_403": refused, "cluster.rules.upstream_rq_completed": 8});
        evidence(vec![], vec![envoy(RULES, stats)])
    };
    says(
        &answers(8),
        Verdict::Broken,
        "hosts let it in",
        "all 8 answers were 403",
    );
    says(&answers(3), Verdict::Poor, "hosts let it in", "3 of 8");
    says(
        &answers(0),
        Verdict::Fine,
        "hosts let it in",
        "none of them 403",
    );
}

#[test]
fn a_diagnosis_without_callers_says_that_it_is_half_of_one() {
    let said = Diagnosis::from(&evidence(vec![], vec![])).to_string();
    assert!(said.contains("was not looked at"), "{said}");
}

#[test]
fn a_filter_in_a_listener_of_another_upstream_too_is_no_fault() {
    let mut both = envoy(RULES, json!({}));
    let mut other = both.connections[0].clone();
    other.listener = "egress of weir-control".into();
    other.routes[0].clusters = ["weir-control".to_owned()].into();
    both.connections.push(other);
    let told = |envoy: &Envoy| {
        let found = all(&evidence(vec![], vec![envoy.clone()]));
        let mut settings = found.iter().filter(|one| one.link == "filter's settings");
        settings.any(|one| one.said.contains("none of which"))
    };
    assert!(!told(&both));
    both.connections.remove(0);
    assert!(told(&both));
}

#[test]
fn a_resolver_in_the_way_shows_as_the_policy() {
    let ring = evidence(vec![], vec![envoy(RULES, json!({}))]);
    says(&ring, Verdict::Broken, "cluster's policy", "ring_hash");
}

#[test]
fn what_envoy_refuses_is_told() {
    let refusing = evidence(vec![], vec![envoy(RULES, json!({}))]);
    says(
        &refusing,
        Verdict::Broken,
        "caller's Envoy",
        "no such filter",
    );
}

#[test]
fn a_filter_that_does_not_run_or_panics_is_told() {
    let with = |stats| evidence(vec![], vec![envoy(RULES, stats)]);
    says(&with(json!({})), Verdict::Broken, "filter runs", "no VM");
    let panicked = json!({"wasm.envoy.wasm.runtime.v8.active": 2, "wasm.weir.vm_reload": 3});
    says(&with(panicked), Verdict::Poor, "filter runs", "3 VMs");
}

#[test]
fn settings_that_name_nothing_or_are_no_json_are_told() {
    let with = |settings| evidence(vec![], vec![envoy(settings, json!({}))]);
    says(
        &with("{}"),
        Verdict::Broken,
        "filter's settings",
        "names no cluster",
    );
    says(&with("{"), Verdict::Broken, "filter's settings", "no JSON");
    let other = r#"{"clusters": {"other": {}}}"#;
    says(
        &with(other),
        Verdict::Broken,
        "filter's settings",
        "\"other\"",
    );
    let nobody = r#"{"control_cluster": null, "clusters": {"rules": {}}}"#;
    says(&with(nobody), Verdict::Broken, "control_cluster", "null");
}

#[test]
fn a_table_that_is_refused_or_stale_is_told() {
    let stale = evidence(
        vec![],
        vec![envoy(RULES, json!({"wasmcustom.weir_stale_tables": 1}))],
    );
    says(
        &stale,
        Verdict::Broken,
        "tables",
        "1 tables are missing or older",
    );
    let mut control = of_cluster(Cluster::default());
    let refuses = serde_json::from_value(
        json!([{"reason": "unknown selection", "resources": {"rules": "7"}}]),
    );
    control.tables.proxies = vec![crate::answers::Proxy {
        proxy: "sidecar-1".into(),
        refuses: refuses.unwrap(),
        ..Default::default()
    }];
    let refused = evidence(vec![control], vec![envoy(RULES, json!({}))]);
    says(
        &refused,
        Verdict::Broken,
        "tables",
        "refuses \"rules\": unknown selection",
    );
}

#[test]
fn certificates_are_told_before_they_expire() {
    let until = |expires| {
        let mut envoy = envoy(RULES, json!({}));
        envoy.certificates = vec![Certificate {
            path: "/etc/weir/sidecar.pem".into(),
            expires: Some(expires),
        }];
        evidence(vec![], vec![envoy])
    };
    let now = SystemTime::UNIX_EPOCH + HOUR;
    says(
        &until(now - HOUR),
        Verdict::Broken,
        "certificates",
        "sidecar.pem has expired",
    );
    says(
        &until(now + HOUR),
        Verdict::Poor,
        "certificates",
        "within seven days",
    );
    says(
        &until(now + 24 * 30 * HOUR),
        Verdict::Fine,
        "certificates",
        "all 1",
    );
}

#[test]
fn some_hosts_that_differ_are_less_than_all_that_differ() {
    let with = |ports: &[u16]| {
        let mut envoy = envoy(RULES, json!({}));
        let endpoint = |port: &u16| Endpoint {
            address: format!("127.0.0.1:{port}"),
            ..Endpoint::default()
        };
        envoy.hosts = [("rules".to_owned(), ports.iter().map(endpoint).collect())].into();
        let cluster = Cluster {
            hosts: vec![up(1), up(2)],
            ..Cluster::default()
        };
        evidence(vec![of_cluster(cluster)], vec![envoy])
    };
    says(&with(&[1, 2]), Verdict::Fine, "the same hosts", "2 hosts");
    says(
        &with(&[1]),
        Verdict::Poor,
        "the same hosts",
        "which Envoy has not",
    );
    says(
        &with(&[1, 2, 3]),
        Verdict::Poor,
        "the same hosts",
        "does not name",
    );
    says(
        &with(&[3]),
        Verdict::Broken,
        "the same hosts",
        "no choice can be followed",
    );
}

/// As Envoy 1.40 shows the sample of filters/native.
#[test]
fn a_dynamic_module_is_a_filter_without_vms() {
    let with = |stats| {
        let module = json!({
            "@type": "type.googleapis.com/envoy.extensions.filters.http.dynamic_modules.v3.DynamicModuleFilter",
            "dynamic_module_config": {
                "do_not_close": true, "module": {"local": {"filename": "/etc/weir/libweir_native-0.1.0.so"}}},
            "filter_name": "weir",
            "filter_config": {"@type": "type.googleapis.com/google.protobuf.StringValue", "value": RULES},
        });
        evidence(vec![], vec![envoy_with(module, stats)])
    };
    let runs = json!({
        "dynamicmodulescustom.weir_decisions_total.reason.known_cached": 9,
        "dynamicmodulescustom.weir_filter_connected": 1,
    });
    let runs = with(runs);
    says(&runs, Verdict::Fine, "filter", "egress");
    says(&runs, Verdict::Fine, "filter's settings", "rules");
    says(&runs, Verdict::Fine, "filter runs", "a dynamic module, 9");
    says(&runs, Verdict::Fine, "stream", "open");
    let idle = with(json!({}));
    says(&idle, Verdict::Poor, "filter runs", "decided nothing yet");
    let Ok(mut nameless) = runs.envoys.into_iter().next().unwrap().said else {
        panic!("it has answered");
    };
    nameless.service_node = None;
    let nameless = evidence(vec![], vec![nameless]);
    says(&nameless, Verdict::Poor, "stream", "name of its machine");
}

#[test]
fn a_sidecar_goes_by_the_name_that_its_plugin_is_given() {
    let named = |name| format!(r#"{{"proxy": "{name}", "clusters": {{"rules": {{}}}}}}"#);
    let connected = json!({"wasmcustom.weir_filter_connected": 1});
    let caller = |name| envoy(&named(name), connected.clone());
    let mut control = of_cluster(Cluster::default());
    let refusing = |name: &str, kind: &str, reason: &str| crate::answers::Proxy {
        proxy: name.into(),
        kind: kind.into(),
        refuses: vec![crate::answers::Refusal {
            reason: reason.into(),
            ..Default::default()
        }],
        ..Default::default()
    };
    control.tables.proxies = vec![refusing("b", "weir", "too large")];
    let refused = evidence(vec![control], vec![caller("b")]);
    says(&refused, Verdict::Broken, "tables", "too large");
    let mut control = of_cluster(Cluster::default());
    control.tables.proxies = vec![refusing("sidecar-1", "envoy", "no such type")];
    let refused = evidence(vec![control], vec![caller("b")]);
    says(&refused, Verdict::Broken, "tables", "no such type");
    let two = evidence(vec![], vec![caller("b"), caller("c")]);
    says(&two, Verdict::Fine, "stream", "open");
    let same = evidence(vec![], vec![caller("b"), caller("b")]);
    says(&same, Verdict::Broken, "stream", "several Envoys");
}

/// The same Envoy a second later.
fn later(mut envoy: Envoy, stats: Value) -> Envoy {
    envoy.earlier = std::mem::replace(&mut envoy.stats, self::envoy(RULES, stats).stats);
    envoy
}

#[test]
fn what_was_mended_is_broken_no_longer() {
    let link = "choices are followed";
    let with = |before: u64, now: u64, follows| {
        let stats = |count| json!({"wasmcustom.weir_choices_ignored_total": count, "wasmcustom.weir_decisions_total": 9});
        let mut envoy = later(envoy(RULES, stats(before)), stats(now));
        let upstream = envoy.clusters.get_mut("rules").unwrap();
        (upstream.follows, upstream.reads_destination) = (follows, follows);
        evidence(vec![], vec![envoy])
    };
    says(&with(5, 5, true), Verdict::Poor, link, "since its start");
    says(&with(5, 6, true), Verdict::Broken, link, "6 requests");
    // Nobody sends a request within the second, and the cause is there.
    says(&with(5, 5, false), Verdict::Broken, link, "5 requests");

    let with = |before: u64, now: u64, connections| {
        let stats = |count| json!({"cluster.weir-control.ssl.fail_verify_san": count});
        let mut envoy = later(envoy(RULES, stats(before)), stats(now));
        let control = Upstream {
            http2: true,
            ..Upstream::default()
        };
        envoy.clusters.insert("weir-control".into(), control);
        let endpoint = Endpoint {
            connections,
            ..Endpoint::default()
        };
        envoy.hosts.insert("weir-control".into(), vec![endpoint]);
        evidence(vec![], vec![envoy])
    };
    let link = "control_cluster";
    says(&with(5, 5, 1), Verdict::Poor, link, "is accepted now");
    says(&with(5, 6, 1), Verdict::Broken, link, "refused 6 times");
    says(&with(5, 5, 0), Verdict::Broken, link, "refused 5 times");
}

/// Times as Envoy 1.40 tells them of a filter in a file that is replaced.
#[test]
fn a_filter_that_was_refused_is_broken_until_another_is_accepted() {
    let with = |came, accepted: u64, successes: u64| {
        let start = "extension_config_discovery.http_filter.weir";
        let mut stats = serde_json::Map::new();
        for (name, value) in [
            ("update_rejected", 1),
            ("update_success", successes),
            ("update_time", accepted),
        ] {
            stats.insert(format!("{start}.{name}"), value.into());
        }
        let filter = json!({"name": "weir"});
        let config = json!({"configs": [{"@type": "a.EcdsConfigDump", "ecds_filters": [
            {"ecds_filter": filter, "last_updated": came}]}]});
        let mut envoy = envoy(RULES, stats.into());
        envoy.connections[0].separate = vec!["weir".into()];
        envoy.came_unix_ms = super::super::dump::Dump::new(&config).came_unix_ms();
        evidence(vec![], vec![envoy])
    };
    let refused = with("2026-11-30T09:59:46.307Z", 1_796_032_780_961, 1);
    says(&refused, Verdict::Broken, "filter", "an older one");
    let mended = with("2026-11-30T09:59:50.976Z", 1_796_032_790_979, 2);
    says(&mended, Verdict::Poor, "filter", "not when it came last");
    let never = with("2026-11-30T09:59:46.307Z", 0, 0);
    says(&never, Verdict::Broken, "filter", "answered 500");
}

#[test]
fn a_policy_that_is_withdrawn_is_named() {
    let of = |mode: &str, withdrawn: Option<&str>| {
        let cluster = Cluster {
            mode: mode.into(),
            withdrawn: withdrawn.map(str::to_owned),
            hosts: vec![up(1)],
            ..Cluster::default()
        };
        evidence(vec![of_cluster(cluster)], vec![])
    };
    let withdrawn = of("10%", Some("they took 90.0 ms"));
    let words = "withdrawn, so Envoy chooses for every request: they took 90.0 ms";
    says(&withdrawn, Verdict::Poor, "policy", words);
    assert_eq!(
        runbook(&withdrawn, words),
        Some(Runbook::WeirPolicyWithdrawn)
    );
    says(&of("10%", None), Verdict::Fine, "policy", "10% of the keys");
    says(&of("shadow", None), Verdict::Fine, "policy", "in shadow");
}

#[test]
fn hosts_are_compared_with_those_of_the_leader() {
    let mut caller = envoy(RULES, json!({}));
    let endpoint = Endpoint {
        address: "127.0.0.1:1".into(),
        ..Endpoint::default()
    };
    caller.hosts = [("rules".to_owned(), vec![endpoint])].into();
    let with = |role: &str, port| {
        let mut control = replica(role);
        let cluster = Cluster {
            hosts: vec![up(port)],
            ..Cluster::default()
        };
        control.tables.clusters = of_cluster(cluster).tables.clusters;
        control
    };
    let both = vec![with("following", 7), with("leading", 1)];
    let both = evidence(both, vec![caller]);
    says(&both, Verdict::Fine, "the same hosts", "1 host");
}

#[test]
fn every_link_that_is_told_is_in_the_readme() {
    let readme = include_str!("../../../README.md");
    let envoy = envoy(RULES, json!({"wasmcustom.weir_decisions_total": 1}));
    let cluster = Cluster {
        mode: "live".into(),
        hosts: vec![up(1)],
        ..Cluster::default()
    };
    let mut control = of_cluster(cluster);
    control.tables.program_version = Some("0.1.0".into());
    let found = all(&evidence(vec![control], vec![envoy]));
    for finding in &found {
        assert!(
            readme.contains(&format!("| {} |", finding.link)),
            "{}",
            finding.link
        );
    }
}

/// The section that the finding names whose evidence has these words.
fn runbook(evidence: &Evidence, words: &str) -> Option<Runbook> {
    let found = all(evidence);
    let finding = found.iter().find(|finding| finding.said.contains(words));
    finding.unwrap_or_else(|| panic!("{found:#?}")).runbook
}

#[test]
fn few_hosts_with_old_figures_are_another_alert_than_most() {
    let stale = |port| Host {
        stale: true,
        ..up(port)
    };
    let of = |hosts| {
        let cluster = Cluster {
            hosts,
            ..Cluster::default()
        };
        runbook(&evidence(vec![of_cluster(cluster)], vec![]), "too old")
    };
    let few = of(vec![stale(1), up(2)]);
    assert_eq!(few, Some(Runbook::WeirHostsStale));
    let most = of(vec![stale(1), stale(2), up(3)]);
    assert_eq!(most, Some(Runbook::WeirMostHostsStale));
}

#[test]
fn a_node_whose_governor_was_stopped_is_named() {
    let silent = Host {
        node_silent: true,
        ..up(1)
    };
    let cluster = Cluster {
        hosts: vec![silent, up(2)],
        ..Cluster::default()
    };
    let found = evidence(vec![of_cluster(cluster)], vec![]);
    let said = r#"the governors of the nodes of "127.0.0.1:1" are silent"#;
    assert_eq!(runbook(&found, said), Some(Runbook::WeirGovernorSilent));
}
