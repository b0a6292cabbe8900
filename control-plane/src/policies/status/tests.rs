// SPDX-License-Identifier: Apache-2.0
use std::sync::Arc;

use super::super::attach::{Attachments, Verdict};
use super::super::object::{Object, Objects};
use super::*;
use crate::config::{Config, Loaded};
use weir_fleet::view::SourceView;

/// The state's owner, of this configuration; Kubernetes was asked for hosts.
fn view(config: &Config) -> View {
    let metrics = crate::metrics::Metrics::default();
    let now = std::time::Instant::now();
    let mut view = crate::owner::Owner::new(config, 1, metrics, now).view(now);
    for cluster in view.clusters.values_mut() {
        let asked = SourceView {
            last_success_ms_ago: Some(5),
            error: None,
            failing_for_ms: None,
            complaints: Vec::new(),
        };
        cluster.sources.insert("kubernetes", asked);
    }
    view
}

fn base() -> Config {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.yaml");
    std::fs::write(&path, "policies: { namespaces: [shop] }\n").unwrap();
    let loaded = crate::config::load(&path).map_err(|(error, _)| error);
    let Loaded { config, .. } = loaded.unwrap();
    Config::clone(&config)
}

fn attach(whole: &Value) -> (Verdict, View) {
    let object: Object = serde_json::from_value(whole.clone()).unwrap();
    let object = Arc::new(object);
    let objects = Objects::from([(object.id(), object)]);
    let (config, mut verdicts) = Attachments::default().attach(&base(), &objects);
    (verdicts.remove(0), view(&config))
}

fn policy(ranked: u32) -> Value {
    json!({
        "metadata": { "name": "a", "namespace": "shop", "uid": "1", "generation": 7, "resourceVersion": "5" },
        "spec": {
            "targetRefs": [{ "kind": "Service", "name": "rules", "sectionName": "http" }],
            "policy": { "ranked_hosts": ranked },
        },
    })
}

const OURS: &str = "weir.dev/weir-control";
const NOW: &str = "2026-01-01T00:00:00Z";
const LATER: &str = "2026-01-01T00:00:09Z";

#[test]
fn a_status_is_written_once_and_keeps_others_entries_and_the_times_of_what_stays() {
    let (verdict, view) = attach(&policy(2));
    let object = due(&verdict, OURS, &view, NOW).unwrap();
    assert_eq!(object["metadata"]["resourceVersion"], "5");
    let entry = &object["status"]["ancestors"][0];
    assert_eq!(entry["ancestorRef"]["name"], "rules");
    let [accepted, programmed] = &entry["conditions"].as_array().unwrap()[..] else {
        panic!("{entry}");
    };
    let said = |condition: &Value| format!("{} {}", condition["status"], condition["reason"]);
    assert_eq!(said(accepted), "\"True\" \"Accepted\"");
    assert_eq!(said(programmed), "\"False\" \"NoHosts\"");
    assert_eq!(accepted["observedGeneration"], 7);
    assert_eq!(accepted["lastTransitionTime"], NOW);

    // With it, nothing is due; another's entry is not ours to write.
    let mut with = policy(2);
    with["status"] = object["status"].clone();
    let others =
        json!({ "ancestorRef": { "name": "rules" }, "controllerName": "others.example/one" });
    let ancestors = with["status"]["ancestors"].as_array_mut().unwrap();
    ancestors.insert(0, others.clone());
    let (verdict, view) = attach(&with);
    assert_eq!(due(&verdict, OURS, &view, LATER), None);

    // A generation that is refused changes one condition's time.
    with["spec"]["policy"]["ranked_hosts"] = json!(99);
    with["metadata"]["generation"] = json!(8);
    let (verdict, view) = attach(&with);
    let object = due(&verdict, OURS, &view, LATER).unwrap();
    let ancestors = object["status"]["ancestors"].as_array().unwrap();
    assert_eq!((ancestors.len(), &ancestors[0]), (2, &others));
    let accepted = &ancestors[1]["conditions"][0];
    assert_eq!(said(accepted), "\"False\" \"Invalid\"");
    assert_eq!(
        accepted["message"],
        "spec.policy.ranked_hosts: 99 is not in 1 to 8"
    );
    assert_eq!(accepted["lastTransitionTime"], LATER);
    let programmed = &ancestors[1]["conditions"][1];
    assert_eq!(said(programmed), "\"False\" \"Pending\"");
    assert_eq!(programmed["lastTransitionTime"], NOW);
}

#[test]
fn hosts_and_a_table_make_a_policy_programmed() {
    let (verdict, mut view) = attach(&policy(2));
    let target = targets(&verdict.object).next().unwrap();
    let entry = |view: &View| entry(&verdict, OURS, target.clone(), view)["conditions"][1].clone();
    let cluster = view.clusters.get_mut("rules.shop").unwrap();
    assert_eq!(cluster.hosts.len(), 0);
    let mut other = attach_hosts();
    std::mem::swap(&mut cluster.hosts, &mut other);
    cluster.not_pushed = None;
    let programmed = entry(&view);
    assert_eq!(programmed["status"], "True", "{programmed}");
    assert_eq!(programmed["message"], "1 host");
    view.clusters.get_mut("rules.shop").unwrap().not_pushed = Some("why");
    assert_eq!(entry(&view)["message"], "why");
}

/// Of a cluster with one host.
fn attach_hosts() -> Vec<weir_fleet::view::HostView> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.yaml");
    let text = "clusters: { a: { hosts: [ { address: \"127.0.0.1:9001\" } ] } }";
    std::fs::write(&path, text).unwrap();
    let loaded = crate::config::load(&path).map_err(|(error, _)| error);
    let view = view(&loaded.unwrap().config);
    view.clusters["a"].hosts.clone()
}

#[test]
fn nothing_is_said_before_anybody_was_asked_and_what_is_no_target_is_shown_as_it_is() {
    let (verdict, mut view) = attach(&policy(2));
    let source = view.clusters.get_mut("rules.shop").unwrap();
    source
        .sources
        .get_mut("kubernetes")
        .unwrap()
        .last_success_ms_ago = None;
    assert_eq!(due(&verdict, OURS, &view, NOW), None);
    let mut bad = policy(2);
    bad["spec"]["targetRefs"][0]["name"] = json!("My.Service");
    let (verdict, view) = attach(&bad);
    let entry = &due(&verdict, OURS, &view, NOW).unwrap()["status"]["ancestors"][0];
    assert_eq!(entry["ancestorRef"]["name"], "My.Service");
    assert_eq!(entry["conditions"][0]["reason"], "Invalid");
}

#[test]
fn of_two_controllers_each_writes_its_own_entry() {
    let (verdict, view) = attach(&policy(2));
    let mut with = policy(2);
    with["status"] = due(&verdict, "weir.dev/one", &view, NOW).unwrap()["status"].clone();
    let (verdict, view) = attach(&with);
    let both = due(&verdict, "weir.dev/two", &view, NOW).unwrap();
    assert_eq!(both["status"]["ancestors"].as_array().unwrap().len(), 2);
    with["status"] = both["status"].clone();
    let (verdict, view) = attach(&with);
    for controller in ["weir.dev/one", "weir.dev/two"] {
        assert_eq!(due(&verdict, controller, &view, LATER), None);
    }
}
