// SPDX-License-Identifier: Apache-2.0
//! Figures that k6 tells at its end, by stage and priority.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Serialize;
use serde_json::Value;
use weir_replay::scenario::{Figure, Plan};

/// As `loadtest/k6/objectives.js` has them.
pub(super) const OUTCOMES: [&str; 5] = ["good", "late", "refused", "timed_out", "failed"];

/// Everything of one way.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Figures {
    pub(super) rows: Vec<Row>,
    /// What the good answers of a stage needed of the cores, as a share of these; by stage.
    pub(super) goodput: BTreeMap<String, f64>,
    /// How far k6 was behind, in milliseconds: 99th percentile and the most.
    pub(super) lag_p99: f64,
    pub(super) lag_max: f64,
    /// Requests that k6 could not begin in time, and did not.
    pub(super) dropped: u64,
    /// The first moment of the workload, in milliseconds since 1970.
    pub(super) began_ms: f64,
}

/// The requests of a stage and a priority.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Row {
    pub(super) stage: String,
    /// None: all.
    pub(super) priority: Option<String>,
    pub(super) requests: u64,
    /// Share with a good answer in time.
    pub(super) success: f64,
    /// Of the good answers, from the moment when the request was due; milliseconds.
    pub(super) p50: f64,
    pub(super) p95: f64,
    pub(super) p99: f64,
    /// How many became what; in the row of all: none.
    pub(super) outcomes: BTreeMap<String, u64>,
}

impl Figures {
    /// The rows of one priority each, without those of all.
    pub(super) fn by_priority(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| row.priority.is_some())
    }

    /// Reads the file of k6's `--summary-export`.
    pub(super) fn read(file: &Path, plan: &Plan) -> Result<Self> {
        let text = fs::read(file).with_context(|| format!("reading {}", file.display()))?;
        let summary: Value =
            serde_json::from_slice(&text).with_context(|| format!("reading {}", file.display()))?;
        Self::parse(&summary["metrics"], plan)
            .with_context(|| format!("{} is not of this plan", file.display()))
    }

    pub(super) fn parse(metrics: &Value, plan: &Plan) -> Result<Self> {
        let mut rows = Vec::new();
        let mut goodput = BTreeMap::new();
        for stage in plan.measured() {
            let good = number(
                metrics,
                &format!("weir_good_work_ms{{stage:{}}}", stage.name),
                "count",
            );
            if let Some(could) = stage.core_seconds(&plan.capacity) {
                goodput.insert(stage.name.clone(), good.unwrap_or(0.0) / 1e3 / could);
            }
            let priorities = plan.priorities.iter().map(Some);
            for priority in priorities.chain([None]) {
                rows.push(Row::parse(metrics, &stage.name, priority)?);
            }
        }
        let lag = |value| number(metrics, "weir_lag", value).context("k6 tells no weir_lag");
        Ok(Self {
            rows,
            goodput,
            lag_p99: lag("p(99)")?,
            lag_max: lag("max")?,
            // k6 leaves out what did not happen.
            dropped: number(metrics, "dropped_iterations", "count").unwrap_or(0.0) as u64,
            began_ms: number(metrics, "weir_began_ms", "value").context("k6 began nothing")?,
        })
    }

    pub(super) fn row(&self, stage: &str, priority: Option<&str>) -> Option<&Row> {
        let wanted = |row: &&Row| row.stage == stage && row.priority.as_deref() == priority;
        self.rows.iter().find(wanted)
    }

    /// A figure as thresholds name it; not a number where there is nothing to tell of.
    pub(super) fn figure(&self, figure: Figure, stage: &str, priority: Option<&str>) -> f64 {
        let row = |value: fn(&Row) -> f64| self.row(stage, priority).map_or(f64::NAN, value);
        match figure {
            Figure::Goodput => self.goodput.get(stage).copied().unwrap_or(f64::NAN),
            Figure::Success => row(|row| row.success),
            Figure::P50Ms => row(|row| row.p50),
            Figure::P95Ms => row(|row| row.p95),
            Figure::P99Ms => row(|row| row.p99),
        }
    }
}

impl Row {
    /// How many became this.
    pub(super) fn outcome(&self, name: &str) -> u64 {
        self.outcomes.get(name).copied().unwrap_or(0)
    }

    fn parse(metrics: &Value, stage: &str, priority: Option<&String>) -> Result<Self> {
        let tags = match priority {
            Some(priority) => format!("stage:{stage},priority:{priority}"),
            None => format!("stage:{stage}"),
        };
        let success = format!("weir_success{{{tags}}}");
        let figures = metrics
            .get(&success)
            .with_context(|| format!("k6 tells no {success}"))?;
        let count = |name: &str| figures[name].as_f64().unwrap_or(0.0);
        let requests = count("passes") + count("fails");
        let duration = format!("weir_duration{{{tags}}}");
        // Where nothing was good k6 tells zeros.
        let quantile = |name| match count("passes") > 0.0 {
            true => number(metrics, &duration, name).unwrap_or(f64::NAN),
            false => f64::NAN,
        };
        let outcomes = priority.map(|_| {
            let of = |outcome: &&str| {
                let name = format!("weir_outcomes{{{tags},outcome:{outcome}}}");
                let count = number(metrics, &name, "count").unwrap_or(0.0);
                ((*outcome).to_owned(), count as u64)
            };
            OUTCOMES.iter().map(of).collect()
        });
        Ok(Self {
            stage: stage.to_owned(),
            priority: priority.cloned(),
            requests: requests as u64,
            success: count("passes") / requests,
            p50: quantile("p(50)"),
            p95: quantile("p(95)"),
            p99: quantile("p(99)"),
            outcomes: outcomes.unwrap_or_default(),
        })
    }
}

fn number(metrics: &Value, metric: &str, value: &str) -> Option<f64> {
    metrics.get(metric)?.get(value)?.as_f64()
}
