// SPDX-License-Identifier: Apache-2.0
//! A line of weir-control's files of receipts.

use std::time::Duration;

use serde::Deserialize;

use super::entry::{self, Entry, Name, Took};

/// What is taken of a line, which has all that `/receipts` shows.
#[derive(Debug, Deserialize)]
struct Line {
    ended_unix_ms: u64,
    proxy: String,
    cluster: String,
    class: u8,
    /// Hashes, as [`Name::shown`] makes them.
    keys: Vec<String>,
    /// Where the request was when it ended.
    host: Option<String>,
    /// 0: there was no answer.
    status: u16,
    /// From the decision to the end.
    duration_ms: f64,
}

/// # Errors
/// The field, and why.
pub(super) fn parse(line: &str) -> Result<Entry, String> {
    let line: Line = entry::read(line)?;
    let duration = Duration::try_from_secs_f64(line.duration_ms / 1e3)
        .map_err(|error| format!("duration_ms: {error}"))?;
    let us = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
    Ok(Entry {
        came: line.ended_unix_ms.saturating_mul(1_000).saturating_sub(us),
        cluster: Some(line.cluster),
        caller: Some(line.proxy),
        key: line.keys.into_iter().next().map(Name::Hash),
        user: None,
        important: entry::is_important(line.class),
        status: line.status,
        duration_ms: u32::try_from(duration.as_millis()).unwrap_or(u32::MAX),
        // Envoy begins with a host some microseconds after the filter has decided.
        took: line.host.map(|host| Took {
            host,
            before_us: 0,
            us,
        }),
        cost: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"{"ended_unix_ms": 1000000, "number": 7, "proxy": "p", "cluster": "rules", "class": 16,
        "keys": ["00000000000000ff", "01"], "host": "10.0.0.1:80", "status": 200, "duration_ms": 12.5}"#;

    #[test]
    fn a_receipt_says_who_asked_when_and_how_long_it_was_at_which_host() {
        let entry = Entry::parse(LINE).unwrap();
        assert_eq!(entry.came, 999_987_500);
        assert_eq!(
            (entry.caller.as_deref(), entry.cluster.as_deref()),
            (Some("p"), Some("rules"))
        );
        let took = entry.took.unwrap();
        assert_eq!((took.host.as_str(), took.us), ("10.0.0.1:80", 12_500));
        assert_eq!((entry.important, entry.status), (false, 200));
        // A hash stays what it is: that of an access log's key is the same.
        let shown = entry.key.map(|key| key.shown(false));
        assert_eq!(shown.as_deref(), Some("00000000000000ff"));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_field() {
        for (was, is, expected) in [
            ("12.5", "-1", "duration_ms: "),
            ("\"status\": 200, ", "", "missing field `status`"),
            ("16", "\"low\"", "class: invalid type"),
            ("1000000", "\"now\"", "ended_unix_ms: invalid type"),
        ] {
            let error = Entry::parse(&LINE.replace(was, is)).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
