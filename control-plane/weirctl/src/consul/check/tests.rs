// SPDX-License-Identifier: Apache-2.0
//! What is concluded. A real Consul's answers: tests/consul.rs.

use serde_json::json;

use super::super::evidence::{BESIDE, Unread};
use super::*;
use crate::doctor::finding::Verdict;

/// Verdict and evidence of each finding.
fn said(found: &[Finding]) -> Vec<(Verdict, &str)> {
    let both = found.iter().map(|one| (one.verdict, &*one.said));
    both.collect()
}

fn only(found: &[Finding]) -> (Verdict, &str) {
    assert_eq!(found.len(), 1, "{found:#?}");
    said(found)[0]
}

fn reached(chain: Value, beside: [Value; 3]) -> Reached {
    let entry = |value: Value| Ok(Some(value).filter(|value| !value.is_null()));
    let beside = BESIDE.into_iter().zip(beside);
    Reached {
        name: "rules".into(),
        is_control: false,
        chain: Ok(chain),
        beside: beside.map(|(kind, value)| (kind, entry(value))).collect(),
    }
}

fn way(allowed: bool, intentions: Value) -> Way {
    Way {
        from: "web".into(),
        to: "rules".into(),
        allowed: Ok(allowed),
        intentions: Ok(intentions.as_array().unwrap().clone()),
        instances: Ok(Vec::new()),
    }
}

#[test]
fn entries_that_switch_the_override_off_are_named_with_what_they_do() {
    let router = json!({"Routes": [{}, {}]});
    let resolver = json!({"ConnectTimeout": "0s", "Redirect": {"Service": "b"}, "Subsets": null});
    let custom = json!({"Protocol": "http"});
    let found = heeded(&reached(
        custom.clone(),
        [router, Value::Null, resolver.clone()],
    ));
    assert_eq!(found.len(), 2, "{found:#?}");
    for (finding, words) in found.iter().zip([
        "service-router has 2 routes",
        "service-resolver sets Redirect",
    ]) {
        assert_eq!(finding.verdict, Verdict::Broken);
        assert!(
            finding.said.contains(words) && finding.said.contains("NOBODY FOLLOWS"),
            "{}",
            finding.said
        );
    }
    assert!(
        found[0]
            .mend
            .as_ref()
            .unwrap()
            .contains("-kind service-router -name rules")
    );
    // Consul's word counts, also where no entry says why.
    let found = heeded(&reached(custom, [Value::Null, Value::Null, json!({})]));
    assert!(found[0].said.contains("not the default one"), "{found:#?}");
    let default = json!({"Protocol": "http", "Default": true});
    let found = heeded(&reached(default, [Value::Null, Value::Null, resolver]));
    assert!(
        found.iter().all(|one| one.verdict == Verdict::Fine),
        "{found:#?}"
    );
}

#[test]
fn a_protocol_is_the_one_that_callers_speak() {
    let chain = json!({"Protocol": "tcp", "Default": true});
    let found = protocol(&reached(chain, [Value::Null, Value::Null, Value::Null]));
    let (verdict, said) = only(&found);
    assert!(verdict == Verdict::Broken && said.contains("\"tcp\""));
}

#[test]
fn the_intention_that_counts_is_named() {
    let of = |source: &str, permissions: Value| json!({"SourceName": source, "DestinationName": "rules", "Permissions": permissions});
    let verdict = |way: &Way| {
        let found = intention(way);
        let (verdict, said) = only(&found);
        (verdict, said.to_owned())
    };
    assert_eq!(
        verdict(&way(true, json!([]))),
        (Verdict::Fine, "allowed".into())
    );
    let (_, denied) = verdict(&way(
        false,
        json!([of("other", json!(null)), of("*", json!(null))]),
    ));
    assert!(denied.contains("of \"*\" to \"rules\""), "{denied}");
    let (poor, by_request) = verdict(&way(false, json!([of("web", json!([{}]))])));
    assert_eq!(poor, Verdict::Poor);
    assert!(by_request.contains("depends on the request"));
    assert!(verdict(&way(false, json!([]))).1.contains("by default"));
}

#[test]
fn instances_that_are_ill_are_told_by_their_first_check() {
    let instance = |status: &str| {
        let check = json!({"Name": "sidecar", "Status": status, "Output": "refused\nmore"});
        json!({"Service": {"ID": "rules-1"}, "Checks": [{"Status": "passing"}, check]})
    };
    let look = |all: Vec<Value>| {
        let found = instances(&Way {
            instances: Ok(all),
            ..way(true, json!([]))
        });
        let (verdict, said) = only(&found);
        (verdict, said.to_owned())
    };
    let (good, ill) = (instance("passing"), instance("critical"));
    assert_eq!(
        look(vec![good.clone()]),
        (Verdict::Fine, "1 healthy instance".into())
    );
    let expected = "1 of 2 are not healthy: \"rules-1\": check \"sidecar\" is critical: refused";
    assert_eq!(
        look(vec![good, ill.clone()]),
        (Verdict::Poor, expected.into())
    );
    assert_eq!(look(vec![ill]).0, Verdict::Broken);
    assert_eq!(look(vec![]).0, Verdict::Broken);
}

#[test]
fn callers_need_each_upstream_and_no_cluster_of_their_own() {
    let ours = json!({"name": "rules"});
    let upstreams = [("rules", Some(ours.clone())), ("weir-control", None)];
    let upstreams = upstreams
        .map(|(name, cluster)| (name.to_owned(), cluster))
        .into();
    let look = |proxy: Value| {
        let sidecar = json!({"ServiceID": "web-1-sidecar-proxy", "ServiceProxy": proxy});
        caller("web", &Ok(vec![sidecar]), &upstreams)
    };
    let both = json!([
        {"DestinationName": "rules", "Config": {"envoy_cluster_json": ours.to_string()}},
        {"DestinationName": "weir-control"},
    ]);
    assert_eq!(only(&look(json!({"Upstreams": both}))).0, Verdict::Fine);
    assert_eq!(only(&look(json!({"Mode": "transparent"}))).0, Verdict::Fine);
    let one = json!({"Upstreams": [{"DestinationName": "rules", "Config": {"envoy_cluster_json": "{}"}}]});
    let found = look(one);
    let words = ["another envoy_cluster_json", "no upstream \"weir-control\""];
    for (finding, words) in found.iter().zip(words) {
        assert!(finding.said.contains(words), "{found:#?}");
    }
    assert_eq!(
        only(&caller("web", &Ok(vec![]), &upstreams)).0,
        Verdict::Broken
    );
}

#[test]
fn what_cannot_be_read_says_which_right_is_missing() {
    let unread = Unread {
        said: "403: Permission denied".into(),
        mend: "give the token service \"web\" { policy = \"read\" }".into(),
    };
    let found = caller("web", &Err(unread), &BTreeMap::new());
    assert_eq!(only(&found).0, Verdict::Broken);
    assert!(found[0].mend.as_ref().unwrap().contains("service \"web\""));
}
