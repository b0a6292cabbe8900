// SPDX-License-Identifier: Apache-2.0
//! What is counted in fuel, which WebAssembly alone has.

use weir_harness::{A, Proxy, RULES, ask, cost, table, up};

#[test]
fn fuel_does_not_grow_with_the_fleet() {
    let requests = cost::requests();
    let fuel = |name: &str| {
        requests
            .iter()
            .find(|request| request.name == name)
            .unwrap()
            .fuel
    };
    for name in ["known_cached", "not_cached"] {
        let (few, many) = (fuel(name), fuel(&format!("{name}, 1000 hosts")));
        assert!(
            many < 2 * few,
            "{name}: {many} with 1,000 hosts, {few} with 14"
        );
    }
}

#[test]
fn a_receipt_of_one_request_in_a_thousand_costs_less_than_a_hundredth() {
    let requests = cost::requests();
    let fuel = |end: &str| {
        let mut named = requests.iter();
        let named = named.find(|request| request.name == format!("known_cached, {end}"));
        named.unwrap().fuel as f64
    };
    let (none, each) = (fuel("none leaves a receipt"), fuel("each leaves a receipt"));
    assert!(each > none, "the receipts are written");
    assert!(
        (each - none) / 1000.0 < none / 100.0,
        "{each} with, {none} without"
    );
}

#[test]
fn what_comes_of_an_answer_after_its_headers_does_not_enter_the_vm() {
    let proxy = Proxy::with(RULES, &[table(1, up(&[A]))]);
    let (vm, open) = (proxy.worker(), ask(proxy.worker(), "key"));
    open.response_open([(":status", "200")]).unwrap();
    (0..100).for_each(|_| _ = open.response_body("a part", false).unwrap());
    open.response_trailers([("grpc-status", "0")]).unwrap();
    assert_eq!(open.response_body_sent(), "a part".repeat(100).as_bytes());
    open.finish().unwrap();
    for entered in ["response_headers", "log", "delete"] {
        assert!(vm.fuel_of(&format!("proxy_on_{entered}")) > 0, "{entered}");
    }
    for not_entered in ["response_body", "response_trailers", "done"] {
        let fuel = vm.fuel_of(&format!("proxy_on_{not_entered}"));
        assert_eq!(fuel, 0, "{not_entered}");
    }
}
