// SPDX-License-Identifier: Apache-2.0
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::config::Access;

fn settings(port: &str) -> Kubernetes {
    Kubernetes {
        namespace: "shop".into(),
        backend: Backend::Service(
            "rules".into(),
            match port.parse() {
                Ok(number) => ServicePort::Number(number),
                Err(_) => ServicePort::Named(port.into()),
            },
        ),
        metrics_port: None,
        access: Access::Pod,
    }
}

/// A slice `s` with a port `http`.
fn slice(kind: &str, endpoints: Value) -> Slice {
    serde_json::from_value(json!({
        "metadata": { "name": "s" },
        "addressType": kind,
        "ports": [ { "name": "http", "port": 8080 }, { "name": "dns", "port": 53, "protocol": "UDP" } ],
        "endpoints": endpoints,
    }))
    .unwrap()
}

fn found(slices: &[Slice]) -> Found {
    read(slices.iter(), &settings("http"))
}

/// Addresses, with `!` where a host drains.
fn hosts(found: &Found) -> Vec<String> {
    let text = |host: &Host| match host.draining {
        true => format!("{}!", host.address),
        false => host.address.clone(),
    };
    found.hosts.iter().map(text).collect()
}

#[test]
fn conditions_decide_whether_a_host_takes_requests_finishes_what_it_has_or_is_none() {
    let all = [None, Some(true), Some(false)];
    for ready in all {
        for serving in all {
            for terminating in all {
                let conditions = Conditions {
                    ready,
                    serving,
                    terminating,
                };
                let expected = match (ready, serving, terminating) {
                    (None | Some(true), _, None | Some(false)) => State::Up,
                    (Some(false), _, None | Some(false)) => State::Out,
                    // It ends.
                    (Some(false), None | Some(false), Some(true)) => State::Out,
                    (_, _, Some(true)) => State::Draining,
                };
                assert_eq!(state(&conditions), expected, "{conditions:?}");
            }
        }
    }
}

#[test]
fn what_a_slice_tells_of_a_host() {
    let endpoints = json!([
        {
            "addresses": ["10.0.0.9", "10.0.0.10"],
            "conditions": { "ready": true },
            "targetRef": { "kind": "Pod", "name": "rules-a", "uid": "1" },
            "nodeName": "node-1",
            "zone": "zone-b",
        },
        { "addresses": ["10.0.0.10"], "conditions": null, "hostname": "rules-b" },
        { "addresses": ["10.0.0.11"], "conditions": { "ready": false, "serving": true, "terminating": true } },
        { "addresses": ["10.0.0.12"], "conditions": { "ready": false } },
    ]);
    let told = found(&[slice("IPv4", endpoints.clone())]);
    assert_eq!(
        hosts(&told),
        ["10.0.0.10:8080", "10.0.0.11:8080!", "10.0.0.9:8080"]
    );
    assert_eq!((told.instances, told.complaints), (4, vec![]));
    let of = |index: usize| told.hosts[index].instance.clone().unwrap();
    let zone = |index: usize| told.hosts[index].zone.as_deref();
    assert_eq!((&*of(0).id, zone(0)), ("rules-b", None));
    assert_eq!((&*of(1).id, &*of(1).node), ("s", ""));
    assert_eq!((&*of(2).id, &*of(2).node), ("rules-a", "node-1"));
    assert_eq!(zone(2), Some("zone-b"));
    let with_metrics = Kubernetes {
        metrics_port: Some(9100),
        ..settings("8080")
    };
    let slices = [slice("IPv4", endpoints)];
    let told = read(slices.iter(), &with_metrics);
    assert_eq!(told.hosts[0].address, "10.0.0.10:8080");
    assert_eq!(told.hosts[0].metrics_address, "10.0.0.10:9100");
    assert_eq!(told.hosts[0].cache_address, "10.0.0.10:9100");
}

#[test]
fn a_pod_in_both_families_is_one_host_and_one_of_ipv6_alone_is_one_too() {
    let pod = |name: &str, address: &str| json!({ "addresses": [address], "targetRef": { "kind": "Pod", "name": name, "uid": name } });
    let slices = [
        slice("IPv6", json!([pod("a", "fd00::1"), pod("b", "fd00::2")])),
        slice("IPv4", json!([pod("a", "10.0.0.1")])),
    ];
    let told = found(&slices);
    assert_eq!(hosts(&told), ["10.0.0.1:8080", "[fd00::2]:8080"]);
    assert_eq!(told.instances, 2);
}

#[test]
fn an_address_in_two_slices_is_one_host_that_takes_requests_if_either_says_so() {
    let up = || slice("IPv4", json!([{ "addresses": ["10.0.0.1"] }]));
    let ends = || {
        let conditions = json!({ "ready": false, "serving": true, "terminating": true });
        slice(
            "IPv4",
            json!([{ "addresses": ["10.0.0.1"], "conditions": conditions }]),
        )
    };
    assert_eq!(hosts(&found(&[up(), ends()])), ["10.0.0.1:8080"]);
    assert_eq!(hosts(&found(&[ends(), up()])), ["10.0.0.1:8080"]);
    assert_eq!(hosts(&found(&[ends(), ends()])), ["10.0.0.1:8080!"]);
}

#[test]
fn what_cannot_be_used_is_complained_of_and_the_rest_is_used() {
    let one = json!([{ "addresses": ["10.0.0.1"] }]);
    let good = || slice("IPv4", one.clone());
    let complaint = |bad: Slice, port: &str| {
        let slices = [good(), bad];
        let told = read(slices.iter(), &settings(port));
        told.complaints.join("; ")
    };
    let named = |ports: Value| {
        let mut bad = slice("IPv4", json!([{ "addresses": ["10.0.0.2"] }]));
        bad.metadata.name = "bad".into();
        bad.ports = serde_json::from_value(ports).unwrap();
        complaint(bad, "http")
    };
    assert_eq!(
        named(
            json!([{ "name": "grpc", "port": 9000 }, { "port": 9001 }, { "name": "http", "port": 1, "protocol": "UDP" }])
        ),
        "slice \"bad\" has no TCP port http; it has grpc (9000), 9001: see kubernetes.port"
    );
    assert_eq!(
        named(json!([])),
        "slice \"bad\" has no TCP port http; it has none: see kubernetes.port"
    );
    assert_eq!(
        named(json!([{ "name": "http" }])),
        "slice \"bad\" has no TCP port http; it has http (every one): see kubernetes.port"
    );
    assert_eq!(
        complaint(
            slice("FQDN", json!([{ "addresses": ["a.example"] }])),
            "http"
        ),
        "slice \"s\" has addresses of type \"FQDN\"; only IP addresses can be named to proxies"
    );
    for nobody in [json!(["0.0.0.0"]), json!(["a.example"]), json!([])] {
        let text = nobody[0].as_str().unwrap_or_default().to_owned();
        let bad = slice("IPv4", json!([{ "addresses": nobody }]));
        assert_eq!(
            complaint(bad, "http"),
            format!("\"s\": nobody is at {text:?}")
        );
    }
    // What has nobody needs no port.
    let mut empty = slice("IPv4", Value::Null);
    empty.ports.clear();
    assert_eq!(complaint(empty, "http"), "");
}

#[test]
fn a_service_that_is_not_there_differs_from_one_without_pods_and_from_one_that_is_not_ready() {
    assert_eq!(
        found(&[]).complaints,
        [
            "namespace shop has no EndpointSlice of a service rules: there is none of this name, or it selects no \
             pods and nobody else writes its endpoints"
        ]
    );
    assert_eq!(
        found(&[slice("IPv4", json!([]))]).complaints,
        ["service rules in namespace shop has no endpoint: no pod is selected"]
    );
    let out = json!([{ "addresses": ["10.0.0.1"], "conditions": { "ready": false } }]);
    assert_eq!(
        found(&[slice("IPv4", out)]).complaints,
        ["no endpoint of service rules in namespace shop can be used: 1 of 1 not ready"]
    );
}

fn endpoint() -> impl Strategy<Value = Value> {
    let condition = || proptest::option::of(any::<bool>());
    (0..6u8, 0..6u8, condition(), condition(), condition()).prop_map(
        |(last, pod, ready, serving, terminating)| {
            json!({
                "addresses": [format!("10.0.0.{last}")],
                "conditions": { "ready": ready, "serving": serving, "terminating": terminating },
                "targetRef": { "kind": "Pod", "name": format!("rules-{pod}"), "uid": pod.to_string() },
            })
        },
    )
}

proptest! {
    #[test]
    fn hosts_are_the_endpoints_that_answer_each_address_once_however_they_are_sliced(
        endpoints in proptest::collection::vec(endpoint(), 0..20),
        cut in 0..20usize,
    ) {
        let (one, two) = endpoints.split_at(cut.min(endpoints.len()));
        let whole = found(&[slice("IPv4", json!(endpoints))]);
        let parts = found(&[slice("IPv4", json!(two)), slice("IPv4", json!(one))]);
        prop_assert_eq!(hosts(&whole), hosts(&parts));
        // By address, the best that any endpoint says.
        let mut best: BTreeMap<String, bool> = BTreeMap::new();
        for endpoint in &slice("IPv4", json!(endpoints)).endpoints {
            let draining = match state(&endpoint.conditions) {
                State::Up => false,
                State::Draining => true,
                State::Out => continue,
            };
            let address = format!("{}:8080", endpoint.addresses[0]);
            best.entry(address).and_modify(|all| *all &= draining).or_insert(draining);
        }
        let told: BTreeMap<String, bool> = whole
            .hosts
            .iter()
            .map(|host| (host.address.clone(), host.draining))
            .collect();
        prop_assert_eq!(told, best);
        prop_assert!(whole.hosts.is_sorted_by(|one, two| one.address < two.address));
    }
}
