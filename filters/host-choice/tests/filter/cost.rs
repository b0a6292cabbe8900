// SPDX-License-Identifier: Apache-2.0
//! Size of the module, and the fuel that requests cost (`cargo test -p weir-filter cost -- --nocapture`).

use weir_tables::v1;

use crate::harness::{
    A, Chosen, Proxy, RULES, TICKS, ask, busy, cached, module_file, request, resource, table, up,
};

#[test]
fn the_module_is_smaller_than_a_megabyte() {
    let bytes = std::fs::metadata(module_file()).unwrap().len();
    println!("weir_filter.wasm: {bytes} bytes");
    assert!(bytes < 1_000_000, "{bytes} bytes");
}

/// Shows the fuel of each callback of a request that ends with an answer; returns that of the choice.
fn show(proxy: &Proxy, name: &str, headers: &[(&str, &str)]) -> u64 {
    let vm = proxy.worker();
    let measure = || {
        let request = request(vm, headers);
        let asked = vm.fuel_of("proxy_on_request_headers");
        if request.local_reply().is_none() {
            let first = request.first();
            request.answer(&first, &[(":status", "200")]);
        }
        let answered = vm.fuel_of("proxy_on_response_headers");
        request.finish().unwrap();
        (
            request.reason(),
            asked,
            answered,
            vm.fuel_of("proxy_on_log"),
        )
    };
    // What grows has grown after the first ones.
    (0..20).for_each(|_| drop(measure()));
    let (reason, asked, answered, logged) = measure();
    println!("{name:>28}: {reason:>14} request {asked:>7} response {answered:>6} log {logged:>6}");
    asked
}

#[test]
fn fuel_of_requests_by_reason_does_not_grow_with_the_fleet() {
    let mut known = Vec::new();
    for count in [6_usize, 100, 1_000] {
        let addresses: Vec<_> = (0..count)
            .map(|n| format!("10.0.{}.{}:80", 100 + n / 100, 100 + n % 100))
            .collect();
        let hosts = || {
            addresses
                .iter()
                .map(|address| busy(address, 1, 0))
                .collect()
        };
        let first = addresses[0].as_str();
        let mut dynamic = table(1, hosts());
        dynamic.cache_shards = 16;
        let proxy = Proxy::with(RULES, &[dynamic]);
        proxy.ads().accepts(&cached(1, 16, &[("known", first)]));
        proxy.run(TICKS);
        known.push(show(
            &proxy,
            &format!("dynamic, {count} hosts"),
            &[("x-weir-key", "known")],
        ));
        show(&proxy, "", &[("x-weir-key", "assumed")]);
        show(&proxy, "", &[]);
        let all = [
            ("x-weir-key", "known"),
            ("x-weir-priority", "high"),
            ("x-weir-user", "me"),
        ];
        show(&proxy, "with priority and user", &all);
        println!(
            "{:>28}: fuel of a tick {}",
            "",
            proxy.worker().fuel_of("proxy_on_tick")
        );
        for selection in [
            v1::Selection::Baseline,
            v1::Selection::Random,
            v1::Selection::Rendezvous,
        ] {
            let mut other = table(2, hosts());
            other.policy.as_mut().unwrap().selection = selection.into();
            proxy.ads().accepts(&[resource(&other)]);
            proxy.run(TICKS);
            show(&proxy, "", &[("x-weir-key", "key")]);
        }
    }
    let [_, hundred, thousand] = known[..] else {
        panic!("three fleets")
    };
    assert!(
        thousand < 2 * hundred,
        "{thousand} for 1,000 hosts, {hundred} for 100"
    );
    let mut shedding = table(1, vec![busy(A, 300, 300)]);
    shedding.policy.as_mut().unwrap().overload = v1::Overload::Breaker.into();
    show(
        &Proxy::with(RULES, &[shedding]),
        "shed",
        &[("x-weir-key", "key")],
    );
    show(
        &Proxy::with(RULES, &[table(1, up(&[]))]),
        "no host",
        &[("x-weir-key", "key")],
    );
    let without = Proxy::start(RULES);
    ask(without.worker(), "key").finish().unwrap();
    let fuel = without.worker().fuel_of("proxy_on_request_headers");
    println!("{:>28}: {:>14} request {fuel:>7}", "no table", "no_table");
}
