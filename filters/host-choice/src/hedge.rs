// SPDX-License-Identifier: Apache-2.0
//! Envoy's own hedging, asked for by its router's headers.

use std::time::Duration;

use crate::caller;
use crate::config::Trust;
use crate::headers::Headers;
use crate::host::{Map, RequestHost};

/// Two attempts at once.
pub(crate) const HEDGE: &str = "x-envoy-hedge-on-per-try-timeout";
const AFTER: &str = "x-envoy-upstream-rq-per-try-timeout-ms";
const RETRY_ON: &str = "x-envoy-retry-on";
pub(crate) const MAX_RETRIES: &str = "x-envoy-max-retries";
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::FakeRequest;

    fn may_be(trust: Trust, request: &FakeRequest) -> bool {
        may(trust, request.headers(Map::Request).ok().as_ref(), request)
    }

    #[test]
    fn a_request_that_may_be_served_twice_may_be_tried_at_two_hosts() {
        for (method, expected) in [("GET", true), ("PUT", true), ("POST", false)] {
            let request = FakeRequest::with_method(method, &[]);
            assert_eq!(may_be(Trust::Any, &request), expected, "{method}");
        }
    }

    #[test]
    fn a_trusted_callers_own_retries_stay_and_a_strangers_are_removed() {
        for name in [HEDGE, AFTER, RETRY_ON, MAX_RETRIES] {
            let request = FakeRequest::new(&[(name, "1")]);
            assert!(!may_be(Trust::Any, &request), "{name}");
            assert!(request.header(Map::Request, name).is_some(), "{name}");
            assert!(may_be(Trust::None, &request), "{name}");
            assert_eq!(request.header(Map::Request, name), None);
        }
    }

    #[test]
    fn headers_that_cannot_be_read_are_removed_and_nothing_is_tried_twice() {
        let request = FakeRequest::new(&[(RETRY_ON, "5xx")]);
        assert!(!may(Trust::Any, None, &request));
        assert_eq!(request.header(Map::Request, RETRY_ON), None);
    }

    #[test]
    fn envoy_is_asked_for_one_retry_by_four_headers_or_by_none_that_count() {
        let request = FakeRequest::new(&[]);
        assert!(ask(Duration::from_millis(30), &request));
        let header = |name| request.header(Map::Request, name);
        assert_eq!(header(AFTER).as_deref(), Some("30"));
        assert_eq!(header(MAX_RETRIES).as_deref(), Some("1"));
        request.deafen_to(RETRY_ON);
        assert!(!ask(Duration::from_millis(30), &request));
    }
}
