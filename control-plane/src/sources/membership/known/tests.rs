// SPDX-License-Identifier: Apache-2.0
use super::*;
use crate::config::{Instance, Written};

/// As a file has it, with what stands under `clusters`.
fn config(clusters: &str) -> Arc<Config> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.yaml");
    std::fs::write(&path, format!("clusters: {clusters}\n")).unwrap();
    let loaded = crate::config::load(&path).map_err(|(error, _)| error);
    loaded.unwrap().config
}

fn host(port: u16) -> Host {
    let address = format!("127.0.0.1:{port}");
    Host {
        metrics_address: "127.0.0.1:9000".into(),
        cache_address: "127.0.0.1:9000".into(),
        capacity_millicores: 1000,
        preempt_at_unix_ms: 5,
        zone: Some("found".into()),
        draining: false,
        written: None,
        instance: Some(Instance {
            id: "i".into(),
            node: "n".into(),
        }),
        address,
    }
}

fn found(ports: impl IntoIterator<Item = u16>) -> Found {
    let hosts: Vec<Host> = ports.into_iter().map(host).collect();
    Found {
        instances: hosts.len(),
        hosts,
        complaints: vec![],
    }
}

fn ports(membership: &Membership, cluster: &str) -> Vec<u16> {
    let hosts = &membership.effective().clusters[cluster].hosts;
    let port = |host: &Host| host.address.rsplit_once(':').unwrap().1.parse().unwrap();
    hosts.iter().map(port).collect()
}

#[test]
fn hosts_that_were_found_stand_beside_those_that_are_written() {
    let written = config(
        "{ r: { consul: {}, hosts: [ { address: \"127.0.0.1:2\" } ] }, s: { hosts: [ { address: 127.0.0.1:8 } ] } }",
    );
    let mut membership = Membership::new(written);
    assert_eq!(ports(&membership, "r"), [2]);
    assert_eq!(membership.find("r", found([1, 3])), (true, vec![]));
    assert_eq!(ports(&membership, "r"), [1, 2, 3]);
    assert_eq!(
        membership.find("r", found([1, 3])),
        (false, vec![]),
        "nothing new"
    );
    assert_eq!(membership.find("r", found([3])), (true, vec![]));
    assert_eq!(ports(&membership, "r"), [2, 3]);
    assert_eq!(
        membership.find("s", found([9])),
        (false, vec![]),
        "asked by nobody"
    );
    assert_eq!(ports(&membership, "s"), [8]);
}

#[test]
fn a_host_that_is_written_and_found_drains_where_either_says_so() {
    let written =
        config("{ r: { dns: { name: x, port: 1 }, hosts: [ { address: \"127.0.0.1:1\" } ] } }");
    let mut membership = Membership::new(written);
    let mut told = found([1, 2]);
    let drains = |membership: &Membership| {
        let hosts = &membership.effective().clusters["r"].hosts;
        hosts.iter().map(|host| host.draining).collect::<Vec<_>>()
    };
    membership.find("r", told.clone());
    assert_eq!(drains(&membership), [false, false]);
    told.hosts[0].draining = true;
    assert_eq!(membership.find("r", told), (true, vec![]));
    assert_eq!(drains(&membership), [true, false]);
}

#[test]
fn of_a_host_that_is_written_and_found_the_written_fields_count() {
    let address = "address: \"127.0.0.1:1\"";
    let written = config(&format!(
        "{{ r: {{ consul: {{}}, hosts: [ {{ {address}, capacity_millicores: 7, draining: true }} ] }} }}"
    ));
    let mut membership = Membership::new(written);
    membership.find("r", found([1]));
    let merged = membership.effective().clusters["r"].hosts[0].clone();
    let capacity_millicores = true;
    let expected = Host {
        capacity_millicores: 7,
        draining: true,
        written: Some(Written {
            capacity_millicores,
            ..Written::default()
        }),
        ..host(1)
    };
    assert_eq!(merged, expected);
    let all = "metrics_address: \"127.0.0.1:5\", preempt_at_unix_ms: 0, zone: a";
    membership.configure(config(&format!(
        "{{ r: {{ consul: {{}}, hosts: [ {{ {address}, {all} }} ] }} }}"
    )));
    let merged = membership.effective().clusters["r"].hosts[0].clone();
    assert_eq!(
        merged.cache_address, "127.0.0.1:5",
        "where the metrics are, as in the file"
    );
    assert_eq!(
        (merged.preempt_at_unix_ms, merged.capacity_millicores),
        (0, 1000)
    );
    assert_eq!(merged.zone.as_deref(), Some("a"));
}

#[test]
fn whoever_finds_nobody_keeps_what_was_found_last_and_says_so() {
    let mut membership = Membership::new(config("{ r: { consul: {} } }"));
    let nobody = || Found {
        complaints: vec!["all gone".into()],
        ..Found::default()
    };
    let (changed, complaints) = membership.find("r", nobody());
    assert!(!changed);
    assert_eq!(
        complaints,
        [
            "all gone",
            "no host is known, so no table is pushed; proxies keep what they have"
        ]
    );
    membership.find("r", found([1, 2]));
    let (changed, complaints) = membership.find("r", nobody());
    assert!(!changed);
    assert_eq!(
        complaints,
        ["all gone", "what was found last stays: 2 hosts"]
    );
    assert_eq!(ports(&membership, "r"), [1, 2]);
}

#[test]
fn a_new_configuration_keeps_what_was_found_while_the_question_is_the_same() {
    let mut membership = Membership::new(config("{ r: { consul: {} } }"));
    let asked = |membership: &Membership| membership.found["r"].registry.clone();
    membership.find("r", found([1]));
    let first = asked(&membership);
    membership.configure(config("{ r: { consul: {}, cache_shards: 4 } }"));
    assert!(first.is(&asked(&membership)), "the task goes on");
    membership.configure(config("{ r: { consul: { wait: 9s } } }"));
    assert_eq!(ports(&membership, "r"), [1]);
    assert!(!first.is(&asked(&membership)), "a new task asks");
    let written = "hosts: [ { address: 127.0.0.1:9 } ]";
    membership.configure(config(&format!("{{ r: {{ {written} }} }}")));
    assert_eq!(ports(&membership, "r"), [9]);
}

#[test]
fn hosts_of_the_question_before_stay_until_the_new_one_names_some() {
    let mut membership = Membership::new(config("{ r: { consul: {} } }"));
    membership.find("r", found([1, 2]));
    let written = "hosts: [ { address: \"127.0.0.1:9\" } ]";
    let other = format!("{{ r: {{ consul: {{ service: other }}, {written} }} }}");
    membership.configure(config(&other));
    assert_eq!(ports(&membership, "r"), [1, 2, 9]);
    let complaint =
        "the hosts are 2 as the question before found them, until Consul names some to the new one";
    let waiting: Vec<_> = membership.waiting().map(|(_, why)| why).collect();
    assert_eq!(waiting, [complaint]);
    let nobody = membership.find("r", Found::default());
    assert_eq!(nobody, (false, vec![complaint.to_owned()]));
    membership.configure(config(&other));
    assert_eq!(membership.waiting().count(), 1, "still not answered");
    assert_eq!(membership.find("r", found([3])), (true, vec![]));
    assert_eq!(ports(&membership, "r"), [3, 9]);
    assert_eq!(membership.waiting().count(), 0);
}

#[test]
fn hosts_of_another_registry_stay_until_the_new_one_names_some() {
    let mut membership = Membership::new(config("{ r: { consul: {} } }"));
    membership.find("r", found([1, 2]));
    membership.configure(config("{ r: { dns: { name: r.example, port: 1 } } }"));
    assert_eq!(ports(&membership, "r"), [1, 2]);
    let waiting: Vec<_> = membership.waiting().map(|(_, why)| why).collect();
    assert_eq!(
        waiting,
        ["the hosts are 2 as the question before found them, until DNS names some to the new one"]
    );
    membership.find("r", found([3]));
    membership.configure(config(
        "{ r: { dns: { name: r.example, port: 1, interval: 9s } } }",
    ));
    assert_eq!(ports(&membership, "r"), [3], "asked at another pace");
    assert_eq!(membership.waiting().count(), 0);
    membership.configure(config("{ r: { dns: { name: r.example, port: 2 } } }"));
    assert_eq!(membership.waiting().count(), 1, "of another port");
}

#[test]
fn another_weight_is_the_same_question_and_asked_at_once() {
    let mut membership = Membership::new(config("{ r: { consul: {} } }"));
    membership.find("r", found([1]));
    let before = membership.found["r"].registry.clone();
    membership.configure(config("{ r: { consul: { weight_millicores: 9 } } }"));
    assert_eq!(ports(&membership, "r"), [1]);
    assert_eq!(membership.waiting().count(), 0);
    assert!(!membership.is_asked("r", &before), "a new task asks");
}

#[test]
fn a_trust_domain_that_changes_is_complained_of_until_it_is_the_old_one_again() {
    let mut membership = Membership::new(config("{ r: { consul: {} } }"));
    assert!(membership.trust("r", "a.consul".into()).is_empty());
    assert!(membership.trust("r", "a.consul".into()).is_empty());
    let complaints = membership.trust("r", "b.consul".into());
    assert!(complaints[0].starts_with("the trust domain was \"a.consul\" and is \"b.consul\": "));
    assert!(membership.trust("r", "a.consul".into()).is_empty());
}

#[test]
fn news_of_a_question_that_is_no_longer_asked_is_nobodys() {
    let mut membership = Membership::new(config("{ r: { consul: {} } }"));
    let settings = membership.found["r"].registry.clone();
    assert!(membership.is_asked("r", &settings));
    membership.configure(config("{ r: { consul: { service: other } } }"));
    assert!(!membership.is_asked("r", &settings));
    membership.configure(config("{ s: { consul: {} } }"));
    assert!(!membership.is_asked("r", &settings));
}

#[test]
fn a_table_is_never_given_more_hosts_than_it_may_have() {
    let mut membership = Membership::new(config(
        "{ r: { consul: {}, hosts: [ { address: \"127.0.0.2:1\" } ] } }",
    ));
    let many: Vec<Host> = (0..MAX_HOSTS)
        .map(|n| Host {
            address: format!("10.0.{}.{}:1", n / 256, n % 256),
            ..host(1)
        })
        .collect();
    let found = Found {
        hosts: many,
        ..Found::default()
    };
    let (changed, complaints) = membership.find("r", found);
    assert!(
        changed && complaints[0].contains("more than 40000"),
        "{complaints:?}"
    );
    assert_eq!(membership.effective().clusters["r"].hosts.len(), MAX_HOSTS);
}
