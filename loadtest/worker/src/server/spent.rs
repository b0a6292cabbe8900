// SPDX-License-Identifier: Apache-2.0
//! The headers that tell where the time of a job went.

use std::time::Duration;

use axum::http::{HeaderMap, HeaderValue};
use weir_executor::{Source, Spent};

/// Adds `x-worker-wait-us`, `x-worker-fetch-us`, `x-worker-cache` and, where the run is over,
/// `x-worker-run-us`.
pub(crate) fn tell(headers: &mut HeaderMap, spent: &Spent, run_is_over: bool) {
    headers.insert("x-worker-wait-us", micros(spent.wait));
    headers.insert("x-worker-fetch-us", micros(spent.fetch));
    if run_is_over {
        headers.insert("x-worker-run-us", micros(spent.run));
    }
    let cache = match spent.source {
        Source::None => return,
        Source::Hit => "hit",
        Source::Miss => "miss",
        Source::Shared => "shared",
    };
    headers.insert("x-worker-cache", HeaderValue::from_static(cache));
}

fn micros(duration: Duration) -> HeaderValue {
    HeaderValue::from(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX))
}
