// SPDX-License-Identifier: Apache-2.0
use std::time::Duration;

use super::*;
use crate::sources::discovery::MOST_SHOWN;

fn settings(metrics_port: Option<u16>) -> Dns {
    Dns {
        name: "rules.example".into(),
        port: None,
        metrics_port,
        server: None,
        interval: Duration::from_secs(5),
        timeout: Duration::from_secs(5),
    }
}

fn service(target: &str, port: u16, addresses: &[&str]) -> Service {
    Service {
        priority: 0,
        port,
        target: Name::from_ascii(target).unwrap(),
        addresses: addresses.iter().map(|ip| ip.parse().unwrap()).collect(),
    }
}

fn addresses(found: &Found) -> Vec<&str> {
    found
        .hosts
        .iter()
        .map(|host| host.address.as_str())
        .collect()
}

#[test]
fn every_address_is_a_host_once_and_nobodys_is_complained_of() {
    let ips = ["127.0.0.2", "::1", "127.0.0.1", "127.0.0.2", "0.0.0.0"];
    let ips = ips.map(|ip| ip.parse().unwrap()).to_vec();
    let found = read(Asked::Addresses(ips, 80), &settings(Some(90)));
    assert_eq!(
        addresses(&found),
        ["127.0.0.1:80", "127.0.0.2:80", "[::1]:80"]
    );
    assert_eq!(found.complaints, ["rules.example: nobody is at 0.0.0.0:80"]);
    let first = &found.hosts[0];
    assert_eq!(first.metrics_address, "127.0.0.1:90");
    assert_eq!(first.cache_address, "127.0.0.1:90");
    assert_eq!(first.instance.as_ref().unwrap().id, "rules.example");
}

#[test]
fn services_tell_their_ports_and_names() {
    let services = vec![
        service("b.example.", 82, &["127.0.0.2"]),
        service("a.example.", 81, &["127.0.0.1", "127.0.0.3"]),
        service("lost.example.", 80, &[]),
        service(".", 0, &[]),
        service("c.example.", 0, &["127.0.0.4"]),
    ];
    let found = read(Asked::Services(services), &settings(None));
    assert_eq!(
        addresses(&found),
        ["127.0.0.1:81", "127.0.0.2:82", "127.0.0.3:81"]
    );
    assert_eq!(found.hosts[1].metrics_address, "127.0.0.2:82");
    assert_eq!(found.hosts[1].instance.as_ref().unwrap().id, "b.example.");
    assert_eq!(
        found.complaints,
        [
            "c.example.: nobody is at 127.0.0.4:0",
            "lost.example. has no address"
        ]
    );
}

#[test]
fn no_record_is_told_with_what_there_should_be() {
    let nobody = |asked| read(asked, &settings(None)).complaints;
    assert_eq!(
        nobody(Asked::Addresses(Vec::new(), 80)),
        ["\"rules.example\" has no A or AAAA record"]
    );
    assert_eq!(
        nobody(Asked::Services(Vec::new())),
        ["\"rules.example\" has no SRV record; write dns.port where it has addresses"]
    );
}

#[test]
fn no_more_is_complained_of_than_a_reader_can_take_in() {
    let services = (0..50).map(|number| service(&format!("h{number}.example."), 80, &[]));
    let found = read(Asked::Services(services.collect()), &settings(None));
    assert_eq!(found.complaints.len(), MOST_SHOWN + 1);
    assert_eq!(found.complaints[MOST_SHOWN], "and 30 more");
}
