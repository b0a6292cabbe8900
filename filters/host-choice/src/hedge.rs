// SPDX-License-Identifier: Apache-2.0
//! Envoy's own hedging, asked for by its router's headers.

use std::time::Duration;

use crate::caller;
use crate::config::Trust;
use crate::headers::Headers;
use crate::host::{Map, RequestHost};

const HEDGE: &str = "x-envoy-hedge-on-per-try-timeout";
const AFTER: &str = "x-envoy-upstream-rq-per-try-timeout-ms";
const RETRY_ON: &str = "x-envoy-retry-on";
const MAX_RETRIES: &str = "x-envoy-max-retries";
/// Methods whose requests may be served twice (RFC 9110, section 9.2.2).
const IDEMPOTENT: [&[u8]; 6] = [b"GET", b"HEAD", b"OPTIONS", b"TRACE", b"PUT", b"DELETE"];

/// Whether the request may be tried at two hosts: it is idempotent, and its caller has not told Envoy
/// anything of the kind. What a caller who is not believed told is removed, or all where it cannot be read.
pub(crate) fn may(trust: Trust, headers: Option<&Headers>, host: &impl RequestHost) -> bool {
    let names = [HEDGE, AFTER, RETRY_ON, MAX_RETRIES];
    let is_told = |name: &&str| headers.is_none_or(|headers| headers.get(name).is_some());
    let told: Vec<&str> = names.into_iter().filter(is_told).collect();
    if !told.is_empty() {
        if headers.is_some() && caller::is_trusted(trust, host) {
            return false;
        }
        for name in told {
            let _ = host.set_header(Map::Request, name, None);
        }
    }
    let method = headers.and_then(|headers| headers.get(":method"));
    method.is_some_and(|method| IDEMPOTENT.contains(&method))
}

/// Asks for one second try after this time; says whether Envoy was told.
pub(crate) fn ask(after: Duration, host: &impl RequestHost) -> bool {
    let after = after.as_millis().to_string();
    // Without a retry policy Envoy does not hedge; this one repeats no answer of a host. A try that fails takes the
    // one that there is.
    let headers = [
        (HEDGE, "true"),
        (AFTER, after.as_str()),
        (
            RETRY_ON,
            "connect-failure,refused-stream,reset-before-request",
        ),
        (MAX_RETRIES, "1"),
    ];
    headers
        .iter()
        .all(|(name, value)| host.set_header(Map::Request, name, Some(value)).is_ok())
}
