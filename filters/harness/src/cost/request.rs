// SPDX-License-Identifier: Apache-2.0
//! The cost of one request.

use std::collections::BTreeMap;

use weir_testkit::{Host, HttpStream, Vm};

use super::scenario::{self, Key, Scenario};
use crate::{CONTROL, Chosen, Proxy, TICKS, cached, resource, vm_of};

/// Requests before those that count: what grows at first has grown.
const WARM_UP: usize = 28;
const REQUESTS: usize = 100;
/// What Envoy calls for a request whose answer has no body.
const CALLBACKS: [&str; 7] = [
    "proxy_on_context_create",
    "proxy_on_request_headers",
    "proxy_on_request_body",
    "proxy_on_response_headers",
    "proxy_on_done",
    "proxy_on_log",
    "proxy_on_delete",
];

/// What a request costs from the creation of its context to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Why its host was chosen, and what else it brought along.
    pub name: &'static str,
    /// Of all callbacks; the mean of a hundred requests.
    pub fuel: u64,
    /// Calls of host functions, and of the module's allocator by the host.
    pub calls: BTreeMap<&'static str, u64>,
}

/// The cost of a request by reason.
#[must_use]
pub fn requests() -> Vec<Request> {
    scenario::all().iter().map(measure).collect()
}

fn measure(scenario: &Scenario) -> Request {
    let proxy = proxy(scenario);
    let vm = proxy.worker();
    (0..WARM_UP).for_each(|number| exchange(vm, scenario, number));
    let before = vm.fuel_used();
    (WARM_UP..WARM_UP + REQUESTS).for_each(|number| exchange(vm, scenario, number));
    let fuel = (vm.fuel_used() - before) / REQUESTS as u64;
    let mut calls = BTreeMap::new();
    for (name, count) in CALLBACKS
        .iter()
        .flat_map(|callback| vm.host_calls_of(callback))
    {
        *calls.entry(name).or_default() += count;
    }
    Request {
        name: scenario.name,
        fuel,
        calls,
    }
}

/// A proxy that has been told what the scenario needs.
fn proxy(scenario: &Scenario) -> Proxy {
    let host = Host::new();
    host.add_upstream(CONTROL);
    let vm = |_| {
        let vm = vm_of(&host, scenario.configuration, "rules", scenario.caller);
        let vm = match scenario.prompt {
            0 => vm,
            _ => vm.allow_on_headers_stop_iteration(),
        };
        vm.start().expect("starts")
    };
    let vms = (0..3).map(vm).collect();
    let proxy = Proxy { host, vms };
    proxy.run(TICKS);
    if let Some(table) = &scenario.table {
        proxy.ads().accepts(&[resource(table)]);
        if scenario.readers {
            let mut readers = table.clone();
            readers.cluster = "readers".into();
            proxy.ads().accepts(&[resource(&readers)]);
        }
        proxy.run(TICKS);
        let holder = scenario::holder();
        proxy
            .ads()
            .accepts(&cached(1, table.cache_shards, &[("cached", &holder)]));
    }
    proxy.run(TICKS + scenario.age);
    proxy
}

fn exchange(vm: &Vm, scenario: &Scenario, number: usize) {
    let new = format!("project-{number}");
    let key = match scenario.key {
        Key::Cached => Some("cached"),
        Key::Same => Some("same"),
        Key::New => Some(new.as_str()),
        Key::None => None,
    };
    let usual = [
        (":authority", "rules.example"),
        (":path", "/v1/run?project=17"),
        (":method", "POST"),
        (":scheme", "http"),
        ("user-agent", "application/1.0"),
        ("content-type", "application/json"),
        ("x-forwarded-proto", "http"),
        ("x-request-id", "0b9f4c2e-3d0c-4f8e-9d7a-6f1f5a3c2b1d"),
    ];
    let key = key.map(|key| ("x-weir-key", key));
    let headers: Vec<_> = usual
        .into_iter()
        .chain(key)
        .chain(scenario.more.iter().copied())
        .collect();
    let request = match scenario.prompt {
        0 => vm.request(headers.as_slice()),
        _ => vm.request_open(headers.as_slice()),
    };
    let request = request.expect("no trap");
    if scenario.prompt > 0 {
        let prompt = format!("{number} is read. ").repeat(scenario.prompt);
        let prompt = prompt.get(..scenario.prompt).expect("ASCII");
        let body = format!(r#"{{"model":"m","prompt":"{prompt}","max_tokens":16}}"#);
        request.body(body, true).expect("no trap");
    }
    // The first of a key that is sent again and again was not cached.
    if number >= WARM_UP {
        assert_eq!(request.reason(), scenario.reason, "{}", scenario.name);
    }
    if request.local_reply().is_none() {
        answer(&request, scenario);
    }
    request.finish().expect("no trap");
}

fn answer(request: &HttpStream, scenario: &Scenario) {
    let usual = [
        (":status", "200"),
        ("content-type", "application/json"),
        ("content-length", "2"),
        ("date", "Sat, 01 Jan 2000 00:00:00 GMT"),
        ("x-envoy-upstream-service-time", "1"),
    ];
    let headers: Vec<_> = usual.iter().chain(scenario.answer).copied().collect();
    let address = match request.first() {
        // Envoy has chosen.
        first if first.is_empty() => scenario::holder(),
        first => first,
    };
    request.answer(&address, &headers);
}
