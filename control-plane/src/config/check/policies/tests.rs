// SPDX-License-Identifier: Apache-2.0
use serde_json::json;

use super::*;
use crate::config::{Backend, ServicePort};

fn spec(more: Value) -> Value {
    let target = json!({ "group": "", "kind": "Service", "name": "rules", "sectionName": "http" });
    let mut spec = json!({ "targetRefs": [target] });
    let all = spec.as_object_mut().unwrap();
    all.extend(more.as_object().unwrap().clone());
    spec
}

fn refusal(spec: &Value) -> String {
    let read = read("shop/one", "shop", Some(spec), &Access::Pod);
    read.unwrap_err().to_string()
}

#[test]
fn a_policy_is_a_cluster_for_each_of_its_services() {
    let mut spec = spec(json!({
        "policy": { "overload": "dagor", "ranked_hosts": 2 },
        "scrape": { "interval": "2s" },
        "metrics_port": 9100,
    }));
    let second = json!({ "group": "", "kind": "Service", "name": "search", "sectionName": "8080" });
    let targets = spec["targetRefs"].as_array_mut().unwrap();
    targets.push(second);
    let clusters = read("shop/one", "shop", Some(&spec), &Access::Pod).unwrap();
    let names: Vec<&str> = clusters.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["rules.shop", "search.shop"]);
    let ports = [ServicePort::Named("http".into()), ServicePort::Number(8080)];
    for ((name, cluster), port) in clusters.iter().zip(ports) {
        assert_eq!(cluster.policy.ranked_hosts, 2);
        let scrape = cluster.scrape.as_ref().unwrap();
        assert_eq!(scrape.poll.interval.as_secs(), 2);
        let Some(Registry::Kubernetes(asked)) = &cluster.registry else {
            panic!("asked elsewhere");
        };
        let name = name.strip_suffix(".shop").unwrap().to_owned();
        assert_eq!(asked.namespace, "shop");
        assert_eq!(asked.backend, Backend::Service(name, port));
        assert_eq!(asked.metrics_port, Some(9100));
    }
}

fn pool(name: &str, more: Value) -> Value {
    let mut target = json!({
        "group": "inference.networking.k8s.io", "kind": "InferencePool", "name": name,
    });
    let fields = target.as_object_mut().unwrap();
    fields.extend(more.as_object().unwrap().clone());
    target
}

#[test]
fn a_pool_is_a_cluster_whose_hosts_it_selects() {
    let spec = json!({ "targetRefs": [pool("llama", json!({}))] });
    let clusters = read("ml/one", "ml", Some(&spec), &Access::Pod).unwrap();
    let Some(Registry::Kubernetes(asked)) = &clusters[0].1.registry else {
        panic!("asked elsewhere");
    };
    assert_eq!(clusters[0].0, "llama.ml");
    assert_eq!(asked.backend, Backend::Pool("llama".into()));
}

#[test]
fn what_is_wrong_with_a_policy_is_said_by_its_fields() {
    let cases = [
        (json!({}), "spec.targetRefs: 1 to 16 are needed"),
        (spec(json!({ "hosts": [] })), "unknown field `hosts`"),
        (spec(json!({ "consul": {} })), "unknown field `consul`"),
        (
            spec(json!({ "policy": { "overload": "best" } })),
            "spec.policy.overload: \"best\" is unknown",
        ),
        (
            spec(json!({ "policy": { "selection": "caching_plan" } })),
            "policy.selection caching_plan",
        ),
        (
            spec(json!({ "metrics_port": 0 })),
            "spec.metrics_port: \"0\" is no port",
        ),
        (
            json!({ "targetRefs": [{ "kind": "InferencePool", "name": "a" }] }),
            "spec.targetRefs[0].group: \"\" is not the group of this kind; write \"inference.networking.k8s.io\"",
        ),
        (
            json!({ "targetRefs": [pool("a", json!({ "sectionName": "http" }))] }),
            "spec.targetRefs[0].sectionName: an InferencePool says its ports itself",
        ),
        (
            json!({ "targetRefs": [{ "kind": "Gateway", "name": "a" }] }),
            "spec.targetRefs[0].kind: \"Gateway\" is unknown; one of Service, InferencePool",
        ),
        (
            json!({ "targetRefs": [{ "kind": "Service", "name": "rules" }] }),
            "spec.targetRefs[0].sectionName: required",
        ),
        (
            json!({ "targetRefs": [{ "kind": "Service", "name": "../nodes", "sectionName": "http" }] }),
            "spec.targetRefs[0].name: ",
        ),
    ];
    for (spec, said) in cases {
        let refusal = refusal(&spec);
        assert!(refusal.starts_with("WeirPolicy shop/one: "), "{refusal}");
        assert!(refusal.contains(said), "{refusal}: {said}");
    }
    let twice = &mut spec(json!({}));
    let targets = twice["targetRefs"].as_array_mut().unwrap();
    targets.push(targets[0].clone());
    let refusal = refusal(twice);
    assert!(refusal.contains("spec.targetRefs[1].name: "), "{refusal}");
}

/// Whoever may write a policy could have it sent to hosts of theirs.
#[test]
fn no_file_of_weir_controls_machine_is_read_for_a_policy() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let pair = rcgen::generate_simple_self_signed(["a".to_owned()]).unwrap();
    std::fs::write(file.path(), pair.cert.pem()).unwrap();
    for section in ["scrape", "cache"] {
        let refusal = refusal(&spec(json!({ section: { "tls": { "ca": file.path() } } })));
        let said = format!("spec.{section}.tls.ca: ");
        assert!(refusal.contains(&said), "{refusal}");
        assert!(
            refusal.contains("files are named in weir-control.yaml alone"),
            "{refusal}"
        );
    }
}

/// Its hosts are the author's, and the memory that their answers take is everybody's.
#[test]
fn a_policy_asks_for_no_more_than_weir_control_asks_by_itself() {
    let cases = [
        ("scrape", "max_bytes", json!("5MiB"), "to 4MiB"),
        ("scrape", "timeout", json!("6s"), "to 5s"),
        ("scrape", "interval", json!("50ms"), "100ms to"),
        ("cache", "max_bytes", json!("17MiB"), "to 16MiB"),
        ("cache", "max_keys", json!(1_000_001), "to 1000000"),
    ];
    for (section, field, value, said) in cases {
        let refusal = refusal(&spec(json!({ section: { field: value } })));
        let field = format!("spec.{section}.{field}: ");
        assert!(refusal.contains(&field), "{refusal}");
        assert!(refusal.contains(said), "{refusal}");
    }
}

#[test]
fn a_policy_that_is_too_long_to_be_kept_says_so() {
    let refusal = read("shop/one", "shop", None, &Access::Pod).unwrap_err();
    let said = "WeirPolicy shop/one: spec: longer than 65536 bytes";
    assert_eq!(refusal.to_string(), said);
}

#[test]
fn a_controller_has_a_domain_and_a_path() {
    for good in ["weir.dev/weir-control", "a.example/b/c-d"] {
        assert!(is_controller(good), "{good}");
    }
    for bad in ["", "weir.dev", "/a", "a/", "a b/c", "a/b c"] {
        assert!(!is_controller(bad), "{bad}");
    }
}
