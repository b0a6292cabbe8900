// SPDX-License-Identifier: Apache-2.0
//! What a server says.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;

/// The longest reason of a server that is repeated, in characters.
const LONGEST_REASON: usize = 300;

/// Warnings that are repeated.
const MOST_WARNINGS: usize = 20;

/// The answer to a query.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// Of a scalar one without labels.
    pub series: Vec<Series>,
    /// The server's own words, as on data that it did not get from another one.
    pub warnings: Vec<String>,
}

/// One series at the moment of the query.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// By name.
    pub labels: BTreeMap<String, String>,
    /// NaN and infinities are numbers.
    pub value: Result<f64, NoNumber>,
}

/// Why a series has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoNumber {
    /// It counts by buckets.
    #[error("a native histogram, not a number")]
    Histogram,
    /// Something else, which no server says.
    #[error("not a number")]
    Text,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Another program, or something between it and us.
    #[error("not an answer of a Prometheus server")]
    Foreign,
    /// The server's own words.
    #[error("{0}")]
    Error(String),
    /// It says success, and nothing else.
    #[error("an answer without data")]
    NoData,
    /// Many moments.
    #[error("a matrix, not one moment: the query ends in a range, as in [5m]")]
    Matrix,
    /// A text.
    #[error("a string, not numbers")]
    Text,
}

#[derive(Deserialize)]
struct Written {
    status: String,
    data: Option<Data>,
    error: Option<String>,
    #[serde(default)]
    warnings: Vec<String>,
}

#[derive(Deserialize)]
#[serde(tag = "resultType", content = "result", rename_all = "lowercase")]
enum Data {
    Vector(Vec<WrittenSeries>),
    Scalar(Sample),
    Matrix(IgnoredAny),
    String(IgnoredAny),
}

#[derive(Deserialize)]
struct WrittenSeries {
    #[serde(default)]
    metric: BTreeMap<String, String>,
    /// None of a native histogram.
    value: Option<Sample>,
}

/// When it was, and the number as text.
type Sample = (f64, String);

/// Reads the body of an answer, whatever its status: an error's body says why.
pub fn read(body: &[u8]) -> Result<Answer, Refused> {
    let written: Written = serde_json::from_slice(body).map_err(|_| Refused::Foreign)?;
    if let Some(error) = written.error {
        return Err(Refused::Error(line(&error)));
    }
    if written.status != "success" {
        return Err(Refused::Foreign);
    }
    let series = match written.data.ok_or(Refused::NoData)? {
        Data::Vector(series) => series.into_iter().map(series_of).collect(),
        Data::Scalar(sample) => vec![Series {
            labels: BTreeMap::new(),
            value: number(&sample),
        }],
        Data::Matrix(_) => return Err(Refused::Matrix),
        Data::String(_) => return Err(Refused::Text),
    };
    Ok(Answer {
        series,
        warnings: written
            .warnings
            .iter()
            .take(MOST_WARNINGS)
            .map(|warning| line(warning))
            .collect(),
    })
}

/// A server's words as one line, not for ever.
fn line(text: &str) -> String {
    let shown = text.chars().take(LONGEST_REASON);
    shown
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

fn series_of(written: WrittenSeries) -> Series {
    let value = written.value.as_ref();
    Series {
        value: value.map_or(Err(NoNumber::Histogram), number),
        labels: written.metric,
    }
}

fn number((_, text): &Sample) -> Result<f64, NoNumber> {
    text.parse().map_err(|_| NoNumber::Text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(data: &str) -> Result<Answer, Refused> {
        read(format!("{{\"status\":\"success\",\"data\":{data}}}").as_bytes())
    }

    #[test]
    fn each_series_of_a_vector_comes_with_its_labels() {
        let data = r#"{"resultType":"vector","result":[
            {"metric":{"__name__":"up","instance":"127.0.0.1:1"},"value":[1435781451.781,"0.25"]},
            {"metric":{"instance":"127.0.0.1:2"},"value":[1435781451,"2.5e-1"]}],"stats":{}}"#;
        let series = said(data).unwrap().series;
        let of = |index: usize| {
            (
                series[index].labels["instance"].as_str(),
                series[index].value,
            )
        };
        assert_eq!(of(0), ("127.0.0.1:1", Ok(0.25)));
        assert_eq!(of(1), ("127.0.0.1:2", Ok(0.25)));
        assert_eq!(series[0].labels["__name__"], "up");
        assert_eq!(
            said(r#"{"resultType":"vector","result":[]}"#)
                .unwrap()
                .series,
            []
        );
    }

    #[test]
    fn a_scalar_is_one_series_without_labels() {
        let answer = said(r#"{"resultType":"scalar","result":[1435781451,"3"]}"#).unwrap();
        assert_eq!(answer.series.len(), 1);
        assert_eq!(answer.series[0].value, Ok(3.0));
        assert!(answer.series[0].labels.is_empty());
    }

    #[test]
    fn what_is_no_number_says_what_it_is() {
        let one = |series: &str| {
            let answer = said(&format!(r#"{{"resultType":"vector","result":[{series}]}}"#));
            answer.unwrap().series.remove(0).value
        };
        let value = |text: &str| one(&format!(r#"{{"metric":{{}},"value":[1,"{text}"]}}"#));
        assert!(value("NaN").unwrap().is_nan());
        assert_eq!(value("+Inf"), Ok(f64::INFINITY));
        assert_eq!(value("-Inf"), Ok(f64::NEG_INFINITY));
        assert_eq!(value("x"), Err(NoNumber::Text));
        let histogram = r#"{"metric":{},"histogram":[1,{"count":"1","sum":"2"}]}"#;
        assert_eq!(one(histogram), Err(NoNumber::Histogram));
    }

    #[test]
    fn anything_but_a_moment_is_refused_with_the_reason() {
        let matrix = r#"{"resultType":"matrix","result":[{"metric":{},"values":[[1,"2"]]}]}"#;
        assert_eq!(said(matrix), Err(Refused::Matrix));
        let text = r#"{"resultType":"string","result":[1,"x"]}"#;
        assert_eq!(said(text), Err(Refused::Text));
        assert_eq!(said("null"), Err(Refused::NoData));
        let tensor = r#"{"resultType":"tensor","result":[]}"#;
        assert_eq!(said(tensor), Err(Refused::Foreign));
        for foreign in ["", "<html>", "[]", "{}", r#"{"status":"up","data":null}"#] {
            assert_eq!(read(foreign.as_bytes()), Err(Refused::Foreign), "{foreign}");
        }
    }

    #[test]
    fn an_error_is_told_in_the_servers_words() {
        let error = r#"{"status":"error","errorType":"bad_data","error":"1:3: parse error"}"#;
        let refused = read(error.as_bytes()).unwrap_err();
        assert_eq!(refused.to_string(), "1:3: parse error");
        let long = format!(r#"{{"status":"error","error":"{}"}}"#, "é".repeat(1000));
        assert_eq!(
            read(long.as_bytes()).unwrap_err().to_string(),
            "é".repeat(300)
        );
    }

    #[test]
    fn warnings_come_with_the_answer() {
        let body = r#"{"status":"success","warnings":["a store is gone"],
            "data":{"resultType":"vector","result":[]}}"#;
        assert_eq!(read(body.as_bytes()).unwrap().warnings, ["a store is gone"]);
    }
}
