// SPDX-License-Identifier: Apache-2.0
//! One number from a Prometheus server, by its HTTP API: `GET /api/v1/query`, an instant query.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::config::Query;

/// Where the query is asked.
pub(super) fn path(query: &Query) -> String {
    let text = utf8_percent_encode(&query.query, NON_ALPHANUMERIC);
    format!("{}/api/v1/query?query={text}", query.prefix)
}

#[derive(Deserialize)]
struct Answer {
    data: Option<Data>,
    error: Option<String>,
}

#[derive(Deserialize)]
#[serde(tag = "resultType", content = "result", rename_all = "lowercase")]
enum Data {
    Vector(Vec<Series>),
    Scalar(Sample),
    Matrix(IgnoredAny),
    String(IgnoredAny),
}

#[derive(Deserialize)]
struct Series {
    /// None of a native histogram.
    value: Option<Sample>,
}

/// When it was, and the number as text.
type Sample = (f64, String);

/// The answer's one number, as seconds. The error is the reason why there is none; the same reason has the same
/// words.
pub(super) fn latency(answer: &str) -> Result<Duration> {
    let answer: Answer =
        serde_json::from_str(answer).context("no answer of a Prometheus server")?;
    if let Some(error) = answer.error {
        bail!("{error}");
    }
    let text = match answer.data.context("an answer without data")? {
        Data::Scalar((_, text)) => text,
        Data::Vector(series) => {
            ensure!(!series.is_empty(), "no series");
            ensure!(series.len() == 1, "more than one series");
            let value = series.into_iter().find_map(|series| series.value);
            value.context("a histogram, not a number")?.1
        }
        Data::Matrix(_) => bail!("a matrix, not a number"),
        Data::String(_) => bail!("a string, not a number"),
    };
    let seconds: f64 = text.parse().ok().context("not a number")?;
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
        format!("{{\"resultType\":\"vector\",\"result\":[{series}],\"stats\":{{}}}}")
    }

    #[test]
    fn one_number_is_a_latency() {
        let quarter = Ok(Duration::from_millis(250));
        assert_eq!(said(&vector("0.25")), quarter);
        assert_eq!(said(&vector("2.5e-1")), quarter);
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
        ] {
            let reason = said(&vector(value)).unwrap_err();
            assert!(reason.starts_with(told), "{reason}");
        }
        let series = r#"{"metric":{},"value":[1,"2"]}"#;
        let cases = [
            (
                r#"{"resultType":"vector","result":[]}"#.to_owned(),
                "no series",
            ),
            (
                format!(r#"{{"resultType":"vector","result":[{series},{series}]}}"#),
                "more than one series",
            ),
            (
                r#"{"resultType":"vector","result":[{"metric":{},"histogram":[1,{}]}]}"#.into(),
                "a histogram",
            ),
            (
                r#"{"resultType":"matrix","result":[{"metric":{},"values":[[1,"2"]]}]}"#.into(),
                "a matrix",
            ),
            (
                r#"{"resultType":"string","result":[1,"x"]}"#.into(),
                "a string",
            ),
            (
                r#"{"resultType":"scalar","result":[1,"x"]}"#.into(),
                "not a number",
            ),
            (
                r#"{"resultType":"tensor","result":[]}"#.into(),
                "no answer of a Prometheus server",
            ),
            ("null".into(), "without data"),
        ];
        for (data, reason) in cases {
            let told = said(&data).unwrap_err();
            assert!(told.contains(reason), "{data}\n{told}");
        }
        let error = r#"{"status":"error","errorType":"bad_data","error":"parse error"}"#;
        assert_eq!(latency(error).unwrap_err().to_string(), "parse error");
        assert!(latency("<html>").is_err() && latency("").is_err());
    }

    #[test]
    fn a_query_arrives_as_it_was_written() {
        let query = Query {
            address: "127.0.0.1:9090".parse().unwrap(),
            prefix: "/p".into(),
            query: "max(a{b=~\"c|d\"}) & é".into(),
        };
        let path = path(&query);
        assert!(path.bytes().all(|byte| byte.is_ascii_graphic()), "{path}");
        let text = path.strip_prefix("/p/api/v1/query?query=").unwrap();
        let decoded = percent_encoding::percent_decode_str(text).decode_utf8();
        assert_eq!(decoded.unwrap(), query.query);
    }
}
