// SPDX-License-Identifier: Apache-2.0
//! The answer that is given here.
//!
//! It passes through `on_http_response_headers` like an answer from a host, where debug headers are added.

use std::time::Duration;

use proxy_wasm::types::Action;

use crate::hostcalls;
use crate::in_flight::pass;

/// gRPC's.
const RESOURCE_EXHAUSTED: i32 = 8;

pub(crate) fn shed(retry_after: Duration, random: u64) -> Action {
    // The header counts in whole seconds: rounded up or down by chance, so that the mean stays.
    let millis = retry_after.as_millis() + u128::from(random % 1000);
    let seconds = (millis / 1000).max(1).to_string();
    let body = format!("overloaded: try again in {seconds} s\n");
    let headers = [("retry-after", seconds.as_str())];
    match hostcalls::respond(429, "weir_overloaded", &headers, &body, RESOURCE_EXHAUSTED) {
        Ok(()) => Action::Pause,
        // An answer that cannot be given is better left to Envoy than never given.
        Err(_) => pass(),
    }
}
