// SPDX-License-Identifier: Apache-2.0
//! A line of an access log.

use jiff::Timestamp;
use serde::{Deserialize, Deserializer};

/// What is taken of a line. Envoy writes `null` where a request has none of it; other fields may be there.
#[derive(Debug, Deserialize)]
pub(super) struct Entry {
    /// When the request came to Envoy.
    #[serde(deserialize_with = "moment")]
    pub(super) start_time: Timestamp,
    pub(super) key: Option<String>,
    pub(super) priority: Option<String>,
    pub(super) user: Option<String>,
    /// 0: the caller went away.
    pub(super) response_code: u16,
    /// Milliseconds, until the last byte went to the caller.
    pub(super) duration: u64,
    pub(super) upstream_host: Option<String>,
    /// Microseconds until the first byte went to the host that answered.
    pub(super) before_us: Option<u64>,
    /// Microseconds from then to the last byte of its answer.
    pub(super) upstream_us: Option<u64>,
}

impl Entry {
    /// # Errors
    /// The field, and why.
    pub(super) fn parse(line: &str) -> Result<Self, String> {
        let json = &mut serde_json::Deserializer::from_str(line);
        serde_path_to_error::deserialize(json).map_err(|error| {
            let field = error.path().to_string();
            match field.as_str() {
                "." => error.inner().to_string(),
                _ => format!("{field}: {}", error.inner()),
            }
        })
    }

    /// Whether the filter takes it for important: `high`, or a class of the upper half.
    pub(super) fn is_important(&self) -> bool {
        let class = |text: &str| text.parse::<u8>().is_ok_and(|class| class < 16);
        self.priority
            .as_deref()
            .is_some_and(|text| text == "high" || class(text))
    }
}

fn moment<'de, D: Deserializer<'de>>(from: D) -> Result<Timestamp, D::Error> {
    let text = String::deserialize(from)?;
    text.parse().map_err(serde::de::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"{"start_time": "2026-11-25T15:00:00.000250Z", "key": "a", "priority": null, "user": null,
        "response_code": 200, "duration": 12, "upstream_host": "10.0.0.1:80", "before_us": 90, "upstream_us": 11800,
        "reason": "known_cached"}"#;

    #[test]
    fn a_line_says_when_where_and_how_long() {
        let entry = Entry::parse(LINE).unwrap();
        assert_eq!(entry.start_time.subsec_microsecond(), 250);
        assert_eq!(
            (entry.before_us, entry.upstream_us),
            (Some(90), Some(11800))
        );
        assert!(!entry.is_important());
    }

    #[test]
    fn priorities_are_names_and_classes() {
        for (text, important) in [
            ("\"high\"", true),
            ("\"0\"", true),
            ("\"15\"", true),
            ("\"16\"", false),
            ("\"low\"", false),
            ("\"\"", false),
        ] {
            let line = LINE.replace("\"priority\": null", &format!("\"priority\": {text}"));
            assert_eq!(
                Entry::parse(&line).unwrap().is_important(),
                important,
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_wrong_is_told_with_its_field() {
        for (was, is, expected) in [
            (
                "\"2026-11-25T15:00:00.000250Z\"",
                "7",
                "start_time: invalid type",
            ),
            ("2026-11-25T15", "yesterday", "start_time: "),
            (
                "\"duration\": 12",
                "\"duration\": \"12\"",
                "duration: invalid type",
            ),
            (
                "\"response_code\"",
                "\"code\"",
                "missing field `response_code`",
            ),
            ("{\"start_time\"", "\"start_time\"", "invalid type"),
        ] {
            let error = Entry::parse(&LINE.replace(was, is)).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
