// SPDX-License-Identifier: Apache-2.0
//! What is read from a page of metrics (Prometheus or OpenMetrics text).

use std::collections::HashMap;
use std::net::SocketAddr;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use weir_exposition::{Fault, Series, lines};

/// What a host says of itself at one moment.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub(crate) struct Load {
    /// Requests that it has, waiting ones included.
    pub(crate) in_progress: f64,
    /// Those that wait for a core.
    pub(crate) queued: f64,
    /// Of all jobs so far: seconds that they waited, and how many they are.
    #[serde(rename = "waited_s")]
    pub(crate) waited: f64,
    pub(crate) jobs: f64,
}

impl Load {
    /// The sums over all classes. A host that has had no job yet does not show its waits.
    pub(super) fn parse(page: &str) -> Result<Self> {
        let mut load = Self::default();
        let mut found = false;
        for sample in samples(page) {
            let (series, value) = sample?;
            match series.name {
                "weir_host_in_progress" => (load.in_progress, found) = (value, true),
                "weir_host_queued" => load.queued += value,
                "weir_host_queuing_delay_seconds_sum" => load.waited += value,
                "weir_host_queuing_delay_seconds_count" => load.jobs += value,
                _ => {}
            }
        }
        if !found {
            bail!("the page has no weir_host_in_progress");
        }
        Ok(load)
    }
}

/// The admission level of each host, in ranks; empty where none are kept.
pub(super) fn levels(page: &str) -> Result<HashMap<SocketAddr, u16>> {
    let mut levels = HashMap::new();
    for sample in samples(page) {
        let (series, level) = sample?;
        if series.name == "weir_control_admission_level" {
            let host = series.label("host").context("a level has no host")?;
            levels.insert(host.parse()?, level as u16);
        }
    }
    Ok(levels)
}

/// The samples, in their order. A line that is none names its place.
fn samples(page: &str) -> impl Iterator<Item = Result<(Series<'_>, f64)>> {
    lines(page).map(|line| {
        let place = |fault: Fault| {
            let (number, column) = (line.number, fault.column);
            anyhow::anyhow!("line {number}, column {column}: {fault}")
        };
        line.read().map_err(place)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: &str = "\
# TYPE weir_host_in_progress gauge
weir_host_in_progress 7
weir_host_queued{priority=\"0\"} 1
weir_host_queued{priority=\"16\"} 2
weir_host_queuing_delay_seconds_sum{priority=\"0\"} 0.5
weir_host_queuing_delay_seconds_count{priority=\"0\"} 4
weir_host_queuing_delay_seconds_bucket{le=\"+Inf\",priority=\"0\"} 4 # {t=\"}\"} 1
weir_host_queuing_delay_seconds_sum{priority=\"16\"} 1.5
weir_host_queuing_delay_seconds_count{priority=\"16\"} 6
# EOF
";

    #[test]
    fn a_host_is_the_sum_of_its_classes() {
        let load = Load {
            in_progress: 7.0,
            queued: 3.0,
            waited: 2.0,
            jobs: 10.0,
        };
        assert_eq!(Load::parse(HOST).unwrap(), load);
        let error = Load::parse("up 1\n").unwrap_err().to_string();
        assert!(error.contains("weir_host_in_progress"), "{error}");
    }

    #[test]
    fn levels_are_by_host_whatever_is_in_other_labels() {
        let page = "weir_control_admission_level{cluster=\"a\\\",host=\\\"\",host=\"127.0.0.1:7\"} 2100\nother 1\n";
        let levels = levels(page).unwrap();
        assert_eq!(levels.len(), 1);
        assert_eq!(levels[&"127.0.0.1:7".parse().unwrap()], 2100);
    }

    #[test]
    fn what_is_no_value_names_its_line_and_column() {
        let error = |line: &str| {
            let page = format!("# a comment\n{line}\n");
            Load::parse(&page).unwrap_err().to_string()
        };
        assert_eq!(
            error("in_progress soon"),
            "line 2, column 13: \"soon\" is not a number"
        );
        assert_eq!(error("a{b=\"c} 1"), "line 2, column 6: no closing quote");
        assert_eq!(error("a{b} 1"), "line 2, column 3: no label");
        assert_eq!(error("{b=\"c\"} 1"), "line 2, column 1: no name");
    }
}
