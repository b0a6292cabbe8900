// SPDX-License-Identifier: Apache-2.0
//! What the Envoys of a way did for its requests, by their own counts and by the system's.
//!
//! ```text
//! Envoys' /stats/prometheus ─┐
//! CPU time of processes ─────┼─> Counts, before and after ─> Usage ─> rounds.jsonl ─> Table
//! hosts' /metrics ───────────┘
//! ```
//! They and their connections are real, also where the hosts' work is not.

use std::fmt;
use std::net::SocketAddr;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use weir_exposition::sum;
use weir_stage::envoy::Envoy;
use weir_stage::http;

use crate::demo::table::{NAME, Spread, milliseconds};
use crate::sidecar::HOSTS;

/// The pages with connections and the filter's metrics: a whole one has thousands of lines.
const STATS: &str = "/stats/prometheus?filter=upstream_cx|weir_";

/// The Envoys of a way.
pub(super) struct Envoys {
    pub(super) callers: Vec<Envoy>,
    /// One before each host, or none at all.
    pub(super) hosts: Vec<Envoy>,
}

/// Since they were started.
#[derive(Default)]
struct Counts {
    callers_cpu: f64,
    hosts_cpu: f64,
    opened: f64,
    open: f64,
    given_back: f64,
    sent_on: f64,
    runs: f64,
}

/// While the requests of a way were sent and answered.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub(super) struct Usage {
    /// CPU time of all callers' Envoys, in seconds.
    #[serde(rename = "callers_cpu_s")]
    pub(super) callers_cpu: f64,
    /// The same of the Envoys before hosts; none where there are none.
    #[serde(rename = "hosts_cpu_s")]
    pub(super) hosts_cpu: Option<f64>,
    /// Connections to hosts that callers' Envoys opened.
    pub(super) opened: u64,
    /// Those that were open at the end.
    pub(super) open: u64,
    /// Requests given back, as the Envoys before hosts count; of a request each counts.
    pub(super) given_back: u64,
    /// The same, as callers' Envoys count those that they sent to the next host.
    pub(super) sent_on: u64,
    /// Jobs that hosts began.
    pub(super) runs: u64,
}

/// What is counted from a moment on.
pub(super) struct Meter {
    envoys: Envoys,
    /// The pages of the hosts themselves.
    pages: Vec<SocketAddr>,
    before: Counts,
}

impl Meter {
    pub(super) fn start(envoys: Envoys, pages: Vec<SocketAddr>) -> Result<Self> {
        let before = Counts::read(&envoys, &pages)?;
        Ok(Self {
            envoys,
            pages,
            before,
        })
    }

    /// Since it was started.
    pub(super) fn read(&self) -> Result<Usage> {
        let (before, now) = (&self.before, Counts::read(&self.envoys, &self.pages)?);
        let since = |count: fn(&Counts) -> f64| count(&now) - count(before);
        let has_hosts = !self.envoys.hosts.is_empty();
        Ok(Usage {
            callers_cpu: since(|counts| counts.callers_cpu),
            hosts_cpu: has_hosts.then(|| since(|counts| counts.hosts_cpu)),
            opened: since(|counts| counts.opened) as u64,
            open: now.open as u64,
            given_back: since(|counts| counts.given_back) as u64,
            sent_on: since(|counts| counts.sent_on) as u64,
            runs: since(|counts| counts.runs) as u64,
        })
    }
}

impl Counts {
    fn read(envoys: &Envoys, pages: &[SocketAddr]) -> Result<Self> {
        let mut counts = Self::default();
        for envoy in &envoys.callers {
            let page = http::get(envoy.admin, STATS)?.body;
            let connections = |what: &str| {
                let name = format!("envoy_cluster_upstream_cx_{what}");
                sum(&page, &name, &[("envoy_cluster_name", HOSTS)])
                    .with_context(|| format!("no {name} at {}", envoy.admin))
            };
            counts.opened += connections("total")?;
            counts.open += connections("active")?;
            // Envoys without the filter, and those in which it has counted nothing yet, do not have it.
            counts.sent_on += sum(&page, "weir_bounces_total", &[]).unwrap_or(0.0);
            counts.callers_cpu += envoy.process.cpu()?.as_secs_f64();
        }
        for envoy in &envoys.hosts {
            let page = http::get(envoy.admin, STATS)?.body;
            counts.given_back += sum(&page, "weir_inbound_bounced_total", &[]).unwrap_or(0.0);
            counts.hosts_cpu += envoy.process.cpu()?.as_secs_f64();
        }
        for host in pages {
            let page = http::get(*host, "/metrics")?.body;
            // A host that has had no job yet does not have it.
            let began = sum(&page, "weir_host_queuing_delay_seconds_count", &[]);
            counts.runs += began.unwrap_or(0.0);
        }
        Ok(counts)
    }
}

/// A way's line.
pub(super) struct Row<'a> {
    pub(super) way: &'a str,
    pub(super) requests: u64,
    /// Time of requests beyond that in the host.
    pub(super) outside: Spread,
    pub(super) usage: &'a Usage,
}

pub(super) struct Table<'a>(pub(super) Vec<Row<'a>>);

impl Row<'_> {
    /// The cells: outside the host, then callers' Envoys, then hosts'.
    pub(super) fn cells(&self) -> [String; 9] {
        let usage = self.usage;
        let each = |amount: f64, digits: usize| match self.requests {
            0 => "-".to_owned(),
            requests => format!("{:.digits$}", amount / requests as f64),
        };
        let cpu = |seconds: f64| each(1e3 * seconds, 2);
        [
            milliseconds(self.outside.p50),
            milliseconds(self.outside.p90),
            cpu(usage.callers_cpu),
            usage.opened.to_string(),
            usage.open.to_string(),
            usage.hosts_cpu.map_or("-".to_owned(), cpu),
            usage.given_back.to_string(),
            each(usage.given_back as f64, 3),
            each(usage.runs as f64, 3),
        ]
    }
}

/// The explanation of the columns, below the table.
pub(super) const EXPLANATION: &str = "\
Envoys, connections and CPU time are REAL, a request each. outside: of requests answered at their first attempt, time that
          was not in the host, the replayer's own lag left out; opened, open: connections to hosts, opened and left at the
          end; given: requests that hosts gave back, and the same a request; runs: jobs begun by hosts, a request
";

impl fmt::Display for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (outside, callers, hosts) = ("outside, ms", "callers' Envoys", "hosts' Envoys");
        writeln!(f, "{:<NAME$} |{outside:^14}|{callers:^23}|{hosts:^23}|", "")?;
        writeln!(
            f,
            "{:<NAME$} |    p50    p90| CPU ms  opened    open| CPU ms   given       |   runs",
            "way"
        )?;
        writeln!(
            f,
            "{:-<NAME$}-+{:-<14}+{:-<23}+{:-<23}+{:-<7}",
            "", "", "", "", ""
        )?;
        for row in &self.0 {
            let [p50, p90, callers, opened, open, hosts, given, share, runs] = row.cells();
            writeln!(
                f,
                "{:<NAME$} |{p50:>7}{p90:>7}|{callers:>7}{opened:>8}{open:>8}|{hosts:>7}{given:>8}{share:>8}|{runs:>7}",
                row.way
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_divides_by_requests_and_keeps_its_columns() {
        let usage = Usage {
            callers_cpu: 12.0,
            hosts_cpu: Some(4.0),
            opened: 410,
            open: 384,
            given_back: 1500,
            sent_on: 1500,
            runs: 10_000,
        };
        let alone = Usage {
            hosts_cpu: None,
            given_back: 0,
            ..usage.clone()
        };
        let outside = Spread {
            p50: 1.25,
            p90: 12.5,
            ..Spread::default()
        };
        let row = |way, usage| Row {
            way,
            requests: 10_000,
            outside,
            usage,
        };
        let table = Table(vec![
            row("envoy least_request", &alone),
            row("weir estimate+none bounces 8x8", &usage),
        ]);
        assert_eq!(table.to_string(), include_str!("envoys/golden.txt"));
    }
}
