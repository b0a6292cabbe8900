// SPDX-License-Identifier: Apache-2.0
//! Requests that a host may bounce: give back, before anything of it is done, where it would wait there longer than at
//! the next host named.
//!
//! ```text
//!  caller's proxy: exchange.rs ── may-wait: µs; id ──> attempt.rs, once for each attempt ── may-wait: µs ──> host
//!                                                          ^                                               │
//!                                                          └── 429, bounced, load ── it would wait longer ─┤ inbound.rs
//!                              the next one, by the route's retry policy <──┘                               └─> or it runs
//! ```

use std::time::Duration;

use crate::headers::Headers;
use crate::hedge::{HEDGE, MAX_RETRIES};
use crate::host::{Map, RequestHost};
use crate::tries::Tries;

/// For how many microseconds the request may wait at this host; further on, what names it in the caller's proxy.
pub(crate) const MAY_WAIT: &str = "x-weir-may-wait";
/// On the answer of a host that gives the request back. The route retries by it.
pub const BOUNCED: &str = "x-weir-bounced";
const ID: &str = ";id=";
/// Envoy keeps a request's body for a retry up to its buffer limit, 1 MiB unless configured; of a larger one, or
/// where its caller bounds the retries, the bounce would be the answer.
const MAX_BODY: u64 = 256 << 10;

/// Whether Envoy can send the request once more after a host had it; `ends` says whether it has no body. Of a hedged
/// one two attempts at once could not be told apart.
pub(crate) fn may(headers: Option<&Headers>, ends: bool) -> bool {
    let Some(headers) = headers else { return false };
    let [length, retries, hedge] = headers.get_each(["content-length", MAX_RETRIES, HEDGE]);
    let length = length.and_then(|length| std::str::from_utf8(length).ok());
    let length = length.and_then(|length| length.parse::<u64>().ok());
    let is_whole = ends || length.is_some_and(|length| length <= MAX_BODY);
    is_whole && retries.is_none() && hedge.is_none()
}

/// Tells the host how long the request may wait, and this proxy's attempts which request it is; says whether that was
/// possible.
pub(crate) fn offer(tries: &Tries, bound: Duration, host: &impl RequestHost) -> bool {
    let value = format!("{}{ID}{:016x}", bound.as_micros(), tries.id);
    host.set_header(Map::Request, MAY_WAIT, Some(&value))
        .is_ok()
}

/// Takes the offer back, if there is one.
pub(crate) fn withdraw(headers: &Headers, host: &impl RequestHost) {
    if headers.get(MAY_WAIT).is_some() {
        let _ = host.set_header(Map::Request, MAY_WAIT, None);
    }
}

/// Which request it is.
pub(crate) fn id(headers: &Headers) -> Option<u64> {
    let value = std::str::from_utf8(headers.get(MAY_WAIT)?).ok()?;
    let (_, id) = value.split_once(ID)?;
    u64::from_str_radix(id, 16).ok()
}

/// For how long it may wait, by the offer; none: for as long as need be.
pub(crate) fn bound(offer: &[u8]) -> Option<Duration> {
    let value = std::str::from_utf8(offer).ok()?;
    let (micros, _) = value.split_once(';').unwrap_or((value, ""));
    micros.parse().ok().map(Duration::from_micros)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::headers::serialize;

    fn of(headers: &[(&str, &str)]) -> Headers {
        Headers::new(serialize(headers))
    }

    #[test]
    fn a_request_may_be_given_back_where_envoy_has_all_of_it_and_may_retry() {
        for (expected, ends, headers) in [
            (true, true, &[][..]),
            (false, false, &[]),
            (true, false, &[("content-length", "262144")]),
            (false, false, &[("content-length", "262145")]),
            (false, false, &[("content-length", "-1")]),
            (false, false, &[("transfer-encoding", "chunked")]),
            (false, true, &[(MAX_RETRIES, "0")]),
            (false, true, &[(HEDGE, "true")]),
        ] {
            assert_eq!(may(Some(&of(headers)), ends), expected, "{headers:?}");
        }
        assert!(!may(None, true));
    }

    #[test]
    fn a_bound_is_read_with_and_without_what_names_the_request() {
        let read = |value| {
            let headers = of(&[(MAY_WAIT, value)]);
            (headers.get(MAY_WAIT).and_then(bound), id(&headers))
        };
        let micros = |micros| Some(Duration::from_micros(micros));
        assert_eq!(read("1500;id=00000000000000ff"), (micros(1500), Some(255)));
        assert_eq!(read("0"), (micros(0), None));
        for bad in ["", "x", "-1", "1e3", ";id=", "1.5;id=g"] {
            assert_eq!(read(bad).0, None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn any_value_is_read_without_a_panic(value in prop::collection::vec(any::<u8>(), 0..40)) {
            let headers = Headers::new(serialize(&[(MAY_WAIT, value)]));
            let _ = (headers.get(MAY_WAIT).and_then(bound), id(&headers));
        }
    }
}
