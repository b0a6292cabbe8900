// SPDX-License-Identifier: Apache-2.0
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

const FILE: &str = "
policies: { namespaces: [shop] }
clusters:
  search.shop: { hosts: [ { address: \"127.0.0.1:9001\" } ] }
";

fn base() -> Config {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.yaml");
    std::fs::write(&path, FILE).unwrap();
    let loaded = crate::config::load(&path).map_err(|(error, _)| error);
    Config::clone(&loaded.unwrap().config)
}

/// Written at this second, for these services.
fn object(name: &str, second: u8, services: &[&str], more: Value) -> (Id, Arc<Object>) {
    let target =
        |service: &&str| json!({ "kind": "Service", "name": service, "sectionName": "http" });
    let targets: Vec<Value> = services.iter().map(target).collect();
    let mut spec = json!({ "targetRefs": targets });
    spec.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    let whole = json!({
        "metadata": {
            "name": name,
            "namespace": "shop",
            "uid": format!("{name}{second}"),
            "creationTimestamp": format!("2026-01-01T00:00:{second:02}Z"),
        },
        "spec": spec,
    });
    let object: Object = serde_json::from_value(whole).unwrap();
    (object.id(), Arc::new(object))
}

fn names(config: &Config) -> Vec<&str> {
    config.clusters.keys().map(String::as_str).collect()
}

fn refusals(verdicts: &[Verdict]) -> Vec<Option<String>> {
    let said = |verdict: &Verdict| verdict.refused.as_ref().map(ToString::to_string);
    verdicts.iter().map(said).collect()
}

#[test]
fn the_oldest_policy_of_a_service_counts_and_the_file_before_them() {
    let objects = Objects::from([
        object("a", 9, &["rules"], json!({})),
        object(
            "b",
            3,
            &["rules"],
            json!({ "policy": { "ranked_hosts": 1 } }),
        ),
        object("c", 1, &["search"], json!({})),
        object("d", 2, &["build", "rules"], json!({})),
    ]);
    let mut attachments = Attachments::default();
    let (config, verdicts) = attachments.attach(&base(), &objects);
    assert_eq!(names(&config), ["build.shop", "rules.shop", "search.shop"]);
    let of = |owner: &str, cluster: &str| Some(format!("{owner} has the cluster {cluster}.shop"));
    let by_d = of("WeirPolicy shop/d", "rules");
    let by_file = of("weir-control.yaml", "search");
    assert_eq!(refusals(&verdicts), [by_d.clone(), by_d, by_file, None]);
    // The oldest is gone, and so the next one has it.
    let mut objects = objects;
    objects.retain(|id, _| id.name != "d");
    let (config, verdicts) = attachments.attach(&base(), &objects);
    assert_eq!(names(&config), ["rules.shop", "search.shop"]);
    assert_eq!(config.clusters["rules.shop"].policy.ranked_hosts, 1);
    assert_eq!(verdicts[1].clusters, ["rules.shop"]);
    assert_eq!(verdicts[1].refused, None);
}

#[test]
fn what_was_good_stays_until_something_better_is_written_or_the_object_is_gone() {
    let mut attachments = Attachments::default();
    let mut attach = |more: Value, second| {
        let objects = Objects::from([object("a", second, &["rules"], more)]);
        attachments.attach(&base(), &objects)
    };
    let (good, _) = attach(json!({ "policy": { "ranked_hosts": 2 } }), 1);
    let (stays, verdicts) = attach(json!({ "policy": { "ranked_hosts": 99 } }), 1);
    let good = &good.clusters["rules.shop"];
    assert!(Arc::ptr_eq(good, &stays.clusters["rules.shop"]));
    assert_eq!(verdicts[0].clusters, ["rules.shop"]);
    let said = refusals(&verdicts).remove(0).unwrap();
    assert_eq!(said, "spec.policy.ranked_hosts: 99 is not in 1 to 8");
    // The same again changes nothing.
    let (same, _) = attach(json!({ "policy": { "ranked_hosts": 2 } }), 1);
    assert!(Arc::ptr_eq(good, &same.clusters["rules.shop"]));
    // One that was deleted and written anew is another one.
    let (another, verdicts) = attach(json!({ "policy": { "ranked_hosts": 99 } }), 2);
    assert_eq!(names(&another), ["search.shop"]);
    assert_eq!(verdicts[0].clusters, [""; 0]);
}

#[test]
fn a_namespace_has_so_many_clusters_and_the_oldest_policies_have_them() {
    let services: Vec<String> = (0..16).map(|number| format!("s{number}")).collect();
    let objects = (0..20).map(|number: u8| {
        let services: Vec<String> = services.iter().map(|it| format!("{it}-{number}")).collect();
        let services: Vec<&str> = services.iter().map(String::as_str).collect();
        object(&format!("p{number}"), number, &services, json!({}))
    });
    let (config, verdicts) = Attachments::default().attach(&base(), &objects.collect());
    assert_eq!(config.clusters.len(), MOST_CLUSTERS + 1);
    for verdict in verdicts {
        let number: usize = verdict.object.metadata.name[1..].parse().unwrap();
        let expected = (number >= MOST_CLUSTERS / 16).then_some(Refused::TooMany);
        assert_eq!(verdict.refused, expected, "{number}");
    }
}

proptest! {
    /// Whatever is written, deleted and written over, a cluster has one owner, and the verdicts are what is in force.
    #[test]
    fn clusters_are_those_of_the_verdicts(
        steps in proptest::collection::vec((0..3u8, 0..4u8, 0..3u8, 0..10u32), 1..12),
    ) {
        let (base, mut attachments) = (base(), Attachments::default());
        let mut objects = Objects::new();
        for (name, second, service, ranked) in steps {
            let services = [["rules", "build", "search"][usize::from(service)]];
            let more = json!({ "policy": { "ranked_hosts": ranked } });
            let (id, object) = object(["a", "b", "c"][usize::from(name)], second, &services, more);
            match ranked {
                9 => drop(objects.remove(&id)),
                _ => drop(objects.insert(id, object)),
            }
            let (config, verdicts) = attachments.attach(&base, &objects);
            prop_assert_eq!(verdicts.len(), objects.len());
            let mut owned: Vec<&str> = verdicts.iter().flat_map(|it| &it.clusters).map(String::as_str).collect();
            owned.push("search.shop");
            owned.sort_unstable();
            prop_assert_eq!(names(&config), owned);
            for verdict in &verdicts {
                prop_assert!(verdict.refused.is_some() || verdict.clusters.len() == 1);
            }
        }
    }
}
