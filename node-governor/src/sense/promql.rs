// SPDX-License-Identifier: Apache-2.0
//! One number from a Prometheus server: the service's latency.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use weir_promql::read;

/// The answer's one number, as seconds. The error is the reason why there is none; the same reason has the same
/// words.
pub fn latency(answer: &str) -> Result<Duration> {
    let series = read(answer.as_bytes())?.series;
    ensure!(series.len() <= 1, "more than one series");
    let seconds = series.into_iter().next().context("no series")?.value?;
    ensure!(seconds.is_finite(), "{seconds} seconds");
    ensure!(seconds >= 0.0, "less than 0 seconds");
    Duration::try_from_secs_f64(seconds).context("too many seconds")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(data: &str) -> Result<Duration, String> {
        let answer = format!("{{\"status\":\"success\",\"data\":{data}}}");
        latency(&answer).map_err(|error| format!("{error:#}"))
    }

    fn vector(value: &str) -> String {
        let series =
            format!("{{\"metric\":{{\"a\":\"b\"}},\"value\":[1435781451.781,\"{value}\"]}}");
        format!("{{\"resultType\":\"vector\",\"result\":[{series}]}}")
    }

    #[test]
    fn one_number_is_a_latency() {
        let quarter = Ok(Duration::from_millis(250));
        assert_eq!(said(&vector("0.25")), quarter);
        assert_eq!(said(&vector("0")), Ok(Duration::ZERO));
        let scalar = r#"{"resultType":"scalar","result":[1435781451,"0.25"]}"#;
        assert_eq!(said(scalar), quarter);
    }

    #[test]
    fn anything_else_is_none_and_says_why() {
        for (value, told) in [
            ("NaN", "NaN seconds"),
            ("+Inf", "inf seconds"),
            ("-Inf", "-inf seconds"),
            ("-0.1", "less than 0 seconds"),
            ("1e300", "too many seconds"),
            ("x", "not a number"),
        ] {
            let reason = said(&vector(value)).unwrap_err();
            assert!(reason.starts_with(told), "{reason}");
        }
        let series = r#"{"metric":{},"value":[1,"2"]}"#;
        let cases = [
            (r#"{"resultType":"vector","result":[]}"#, "no series"),
            (
                &format!(r#"{{"resultType":"vector","result":[{series},{series}]}}"#),
                "more than one series",
            ),
            ("null", "without data"),
        ];
        for (data, reason) in cases {
            let told = said(data).unwrap_err();
            assert!(told.contains(reason), "{data}\n{told}");
        }
        assert!(latency("<html>").is_err());
    }
}
