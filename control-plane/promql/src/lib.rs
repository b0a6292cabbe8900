// SPDX-License-Identifier: Apache-2.0
//! Prometheus' instant queries (`GET /api/v1/query` of its
//! [HTTP API](https://prometheus.io/docs/prometheus/latest/querying/api/#instant-queries)), without any I/O.
//!
//! ```text
//!  PromQL ── path ──> GET ──> body ── read ──> Answer { series, warnings } or the reason why there is none
//! ```
//!
//! The same trouble has the same words, so that whoever logs changes logs it once.

mod answer;

pub use answer::{Answer, NoNumber, Refused, Series, read};

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

/// Path and query of the URL that asks a server. `prefix` is what stands in front of its API: empty, or beginning
/// with a slash and ending with none.
pub fn path(prefix: &str, query: &str) -> String {
    let query = utf8_percent_encode(query, NON_ALPHANUMERIC);
    format!("{prefix}/api/v1/query?query={query}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_query_arrives_as_it_was_written(query: String) {
            let path = path("/p", &query);
            prop_assert!(path.bytes().all(|byte| byte.is_ascii_graphic()), "{}", path);
            let text = path.strip_prefix("/p/api/v1/query?query=").unwrap();
            prop_assert!(!text.contains(['&', '#', '+']));
            let decoded = percent_encoding::percent_decode_str(text).decode_utf8().unwrap();
            prop_assert_eq!(decoded, query);
        }
    }
}
