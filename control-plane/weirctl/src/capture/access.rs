// SPDX-License-Identifier: Apache-2.0
//! A line of a caller's access log.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use weir_filter::orca::{self, Spent};

use super::entry::{self, Entry, Name, Took};

/// What is taken of a line. Envoy writes `null` where a request has none of it; other fields may be there.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Line {
    /// When the request came to Envoy.
    #[serde(deserialize_with = "moment", serialize_with = "shown")]
    pub(crate) start_time: Timestamp,
    pub(crate) key: Option<String>,
    pub(crate) priority: Option<String>,
    pub(crate) user: Option<String>,
    /// 0: the caller went away.
    pub(crate) response_code: u16,
    /// Milliseconds, until the last byte went to the caller.
    pub(crate) duration: u64,
    pub(crate) upstream_host: Option<String>,
    /// Microseconds until the first byte went to the host that answered.
    pub(crate) before_us: Option<u64>,
    /// Microseconds from then to the last byte of its answer.
    pub(crate) upstream_us: Option<u64>,
    /// The answer's `endpoint-load-metrics`, of hosts that tell what a request has cost.
    pub(crate) load_metrics: Option<String>,
    /// Whose it is, in a log of several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) caller: Option<String>,
}

/// # Errors
/// The field, and why.
pub(super) fn parse(line: &str) -> Result<Entry, String> {
    let line: Line = entry::read(line)?;
    let (important, cost) = (line.is_important(), line.cost());
    let took = line.upstream_host.zip(line.before_us).zip(line.upstream_us);
    let filled = |name: Option<String>| name.filter(|name| !name.is_empty()).map(Name::Clear);
    Ok(Entry {
        came: u64::try_from(line.start_time.as_microsecond()).unwrap_or(0),
        cluster: None,
        caller: line.caller,
        key: filled(line.key),
        user: filled(line.user),
        important,
        status: line.response_code,
        duration_ms: u32::try_from(line.duration).unwrap_or(u32::MAX),
        took: took.map(|((host, before_us), us)| Took {
            host,
            before_us,
            us,
        }),
        cost,
    })
}

impl Line {
    /// What the host says that it has cost; none where it says nothing of that, or nonsense.
    fn cost(&self) -> Option<Spent> {
        let said = self.load_metrics.as_deref()?;
        orca::parse(said.as_bytes(), Duration::ZERO)?.spent
    }

    /// Whether the filter takes it for important: `high`, or a class of the upper half.
    fn is_important(&self) -> bool {
        let class = |text: &str| text.parse().is_ok_and(entry::is_important);
        self.priority
            .as_deref()
            .is_some_and(|text| text == "high" || class(text))
    }
}

fn moment<'de, D: Deserializer<'de>>(from: D) -> Result<Timestamp, D::Error> {
    let text = String::deserialize(from)?;
    text.parse().map_err(serde::de::Error::custom)
}

fn shown<S: Serializer>(moment: &Timestamp, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(moment)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"{"start_time": "2026-11-25T15:00:00.000250Z", "key": "a", "priority": null, "user": null,
        "response_code": 200, "duration": 12, "upstream_host": "10.0.0.1:80", "before_us": 90, "upstream_us": 11800,
        "reason": "known_cached"}"#;

    #[test]
    fn a_line_says_when_where_and_how_long() {
        let entry = parse(LINE).unwrap();
        assert_eq!(entry.came % 1_000_000, 250);
        let took = entry.took.unwrap();
        assert_eq!(
            (took.host.as_str(), took.before_us, took.us),
            ("10.0.0.1:80", 90, 11800)
        );
        assert_eq!(entry.key, Some(Name::Clear("a".into())));
        assert_eq!((entry.important, entry.cost), (false, None));
    }

    #[test]
    fn a_host_may_say_what_a_request_has_cost() {
        let says = |said: &str| {
            let told = format!("{{\"load_metrics\": \"{said}\", ");
            parse(&LINE.replacen('{', &told, 1)).unwrap().cost
        };
        let spent = |fetch, run| {
            let (fetch, run) = (fetch, Duration::from_millis(run));
            Some(Spent { fetch, run })
        };
        let run = "TEXT request_cost.weir.run_seconds=0.02";
        assert_eq!(says(run), spent(None, 20));
        let both = format!("{run}, request_cost.weir.fetch_seconds=0.1");
        assert_eq!(says(&both), spent(Some(Duration::from_millis(100)), 20));
        assert_eq!(says("TEXT named_metrics.weir.queued=1"), None);
        assert_eq!(says("nonsense"), None);
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
            assert_eq!(parse(&line).unwrap().important, important, "{text}");
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
            let error = parse(&LINE.replace(was, is)).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
