// SPDX-License-Identifier: Apache-2.0
//! Fuel and host calls of a request, by reason.

use weir_harness::cost::{self, Request};
use weir_report::Table;

use crate::bench::section::Section;

/// How the testkit counts what the host asks of the module to hand something over.
const ALLOCATE: &str = "proxy_on_memory_allocate";

pub(super) fn section() -> Section {
    let tick = cost::tick();
    let header = ["request", "fuel", "host calls", "that hand over", "which"];
    Section {
        title: "A request in the filter, by reason".to_owned(),
        how: "WebAssembly instructions (fuel) and calls of Envoy, from the creation of a request's context to \
              its end, under weir-testkit: the same in every run on every machine, and held by a test \
              (filters/host-choice/tests/kept.toml). Selection estimate, the default, and 14 hosts unless it \
              says more; 9 headers of a usual request."
            .to_owned(),
        table: Table::new(header, cost::requests().iter().map(row)),
        notes: vec![
            "To hand over bytes (a property, a header map), Envoy calls the module for memory: most of what a \
             host call costs."
                .to_owned(),
            format!(
                "A tick at which nothing has come takes {} fuel in the VM that keeps the streams, {} in others.",
                tick.owner, tick.other
            ),
        ],
        ..Section::default()
    }
}

fn row(request: &Request) -> Vec<String> {
    let calls = request.calls.iter().filter(|(name, _)| **name != ALLOCATE);
    let all: u64 = calls.clone().map(|(_, count)| count).sum();
    let handing_over = request.calls.get(ALLOCATE).copied().unwrap_or(0);
    let which: Vec<String> = calls.map(|(name, count)| call(name, *count)).collect();
    vec![
        request.name.to_owned(),
        request.fuel.to_string(),
        all.to_string(),
        handing_over.to_string(),
        which.join(", "),
    ]
}

fn call(name: &str, count: u64) -> String {
    let name = name.trim_start_matches("proxy_");
    match count {
        1 => name.to_owned(),
        _ => format!("{count} {name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_host_asks_for_is_no_call_of_the_host() {
        let calls = [
            (ALLOCATE, 3),
            ("proxy_get_property", 2),
            ("clock_time_get", 1),
        ];
        let request = Request {
            name: "known_cached",
            fuel: 7,
            calls: calls.into(),
        };
        let cells = [
            "known_cached",
            "7",
            "3",
            "3",
            "clock_time_get, 2 get_property",
        ];
        assert_eq!(row(&request), cells);
    }
}
