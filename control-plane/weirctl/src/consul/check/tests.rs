// SPDX-License-Identifier: Apache-2.0
//! What is concluded. A real Consul's answers: tests/consul.rs.

use serde_json::json;

use super::super::evidence::{BESIDE, Unread, key};
use super::*;

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

fn ours() -> Value {
    json!({"name": "rules"})
}

fn wanted() -> Wanted {
    let upstreams = [("rules", Some(ours())), ("weir-control", None)];
    let datacenter = weir_consul::Datacenter {
        name: "dc1".into(),
        trust_domain: "trust".into(),
    };
    Wanted {
        datacenter,
        hosts: ["rules".to_owned()].into(),
        upstreams: upstreams
            .map(|(name, cluster)| (name.to_owned(), cluster))
            .into(),
        trust_is_said: false,
    }
}

fn sidecar(datacenter: &str, proxy: Value) -> Value {
    json!({"ServiceID": "web-1-sidecar-proxy", "Datacenter": datacenter, "ServiceProxy": proxy})
}

fn looked(wanted: &Wanted, sidecars: Vec<Value>) -> Vec<Finding> {
    looked_by(&json!({}), wanted, sidecars)
}

/// Where Consul's chain of the hosts is this one.
fn looked_by(chain: &Value, wanted: &Wanted, sidecars: Vec<Value>) -> Vec<Finding> {
    let mut callers = Callers::default();
    for sidecar in sidecars.iter().map(Sidecar::of) {
        for upstream in sidecar.upstreams("rules") {
            callers.chains.insert(key(&upstream), Ok(chain.clone()));
        }
    }
    callers.sidecars.push(Ok(sidecars));
    caller("web", &callers, wanted)
}

#[test]
fn callers_need_each_upstream_and_no_cluster_of_their_own() {
    let look = |proxy: Value| looked(&wanted(), vec![sidecar("dc1", proxy)]);
    let both = json!([
        {"DestinationName": "rules", "Config": {"envoy_cluster_json": ours().to_string()}},
        {"DestinationName": "weir-control"},
    ]);
    assert_eq!(only(&look(json!({"Upstreams": both}))).0, Verdict::Fine);
    let one = json!({"Upstreams": [{"DestinationName": "rules", "Config": {"envoy_cluster_json": "{}"}}]});
    let found = look(one);
    let words = ["another envoy_cluster_json", "no upstream \"weir-control\""];
    for (finding, words) in found.iter().zip(words) {
        assert!(finding.said.contains(words), "{found:#?}");
    }
    assert_eq!(only(&looked(&wanted(), vec![])).0, Verdict::Broken);
}

#[test]
fn a_transparent_proxy_needs_no_upstream_and_that_somebody_says_whom_it_believes() {
    let transparent = || vec![sidecar("dc1", json!({"Mode": "transparent"}))];
    let found = looked(&wanted(), transparent());
    let (verdict, said) = only(&found);
    assert!(
        verdict == Verdict::Broken && said.contains("BELIEVES NONE"),
        "{said}"
    );
    let said = Wanted {
        trust_is_said: true,
        ..wanted()
    };
    assert_eq!(only(&looked(&said, transparent())).0, Verdict::Fine);
    // What it reaches is of its own data centre.
    let found = looked(&said, vec![sidecar("dc2", json!({"Mode": "transparent"}))]);
    assert!(
        found[0]
            .said
            .contains("of dc2, and Consul gives it the cluster of dc1"),
        "{found:#?}"
    );
}

#[test]
fn of_another_data_centre_the_hosts_are_followed_and_a_gateway_is_not() {
    let look = |home: &str, upstream: Value, chain: Value| {
        let control = json!({"DestinationName": "weir-control", "Datacenter": "dc1"});
        let proxy = json!({"Upstreams": [upstream, control]});
        let found = looked_by(&chain, &wanted(), vec![sidecar(home, proxy)]);
        let said: Vec<_> = found.iter().map(|one| one.said.clone()).collect();
        (found[0].verdict, said.join("; "))
    };
    let to = |datacenter: &str| json!({"DestinationName": "rules", "Datacenter": datacenter});
    let by =
        |mode: &str| json!({"Targets": {"rules.default.dc1": {"MeshGateway": {"Mode": mode}}}});
    assert_eq!(look("dc2", to("dc1"), by("")).0, Verdict::Fine);
    assert_eq!(look("dc2", to("dc1"), by("none")).0, Verdict::Fine);
    for mode in ["local", "remote"] {
        let (verdict, said) = look("dc2", to("dc1"), by(mode));
        assert!(
            verdict == Verdict::Broken && said.contains("NOBODY FOLLOWS"),
            "{said}"
        );
    }
    // Gateways are between data centres.
    assert_eq!(look("dc1", to(""), by("local")).0, Verdict::Fine);
    let (verdict, said) = look("dc1", to("dc2"), by(""));
    assert!(
        verdict == Verdict::Broken && said.contains("ITS REQUESTS FAIL"),
        "{said}"
    );
    let (verdict, said) = look("dc2", to(""), by(""));
    assert!(
        verdict == Verdict::Broken && said.contains("ITS REQUESTS FAIL"),
        "{said}"
    );
    let own = json!({"name": "rules.default.dc2.internal.trust"}).to_string();
    let own = json!({"DestinationName": "rules", "Datacenter": "dc2", "Config": {"envoy_cluster_json": own}});
    let (_, said) = look("dc1", own, by(""));
    assert!(
        said.contains("no upstream \"rules\"") && !said.contains("FAIL"),
        "{said}"
    );
    let peer = json!({"DestinationName": "rules", "DestinationPeer": "two"});
    let (_, said) = look("dc1", peer, by(""));
    assert!(
        said.contains("peer \"two\"") && said.contains("no upstream"),
        "{said}"
    );
}

#[test]
fn an_upstream_that_has_another_chain_than_its_service_fails_by_the_override() {
    let upstreams = json!([{"DestinationName": "rules"}, {"DestinationName": "weir-control"}]);
    let look = |chain: Value| {
        let sidecar = sidecar("dc1", json!({"Upstreams": upstreams}));
        looked_by(&chain, &wanted(), vec![sidecar])
    };
    assert_eq!(
        only(&look(json!({"CustomizationHash": ""}))).0,
        Verdict::Fine
    );
    let found = look(json!({"CustomizationHash": "fc9afadf"}));
    let (verdict, said) = only(&found);
    assert!(
        verdict == Verdict::Broken && said.contains("ITS REQUESTS FAIL"),
        "{said}"
    );
}

#[test]
fn what_cannot_be_read_says_which_right_is_missing() {
    let unread = Unread {
        said: "403: Permission denied".into(),
        mend: "give the token service \"web\" { policy = \"read\" }".into(),
    };
    let callers = Callers {
        sidecars: vec![Err(unread)],
        ..Callers::default()
    };
    let found = caller("web", &callers, &wanted());
    assert_eq!(only(&found).0, Verdict::Broken);
    assert!(found[0].mend.as_ref().unwrap().contains("service \"web\""));
}
