// SPDX-License-Identifier: Apache-2.0
//! Hosts with what is known of them.

use std::fmt;

use anyhow::Result;
use serde::Serialize;
use weir_policy::RANKS;

use super::chosen;
use crate::answers::{Host, Tables};
use crate::screen::{age, or_dash, table};

/// Hosts of some clusters, those in trouble first.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Hosts(Vec<Row>);

/// A host.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct Row {
    pub cluster: String,
    pub address: String,
    pub state: String,
    pub in_progress: Option<u32>,
    /// Of all classes.
    pub queued: Option<u64>,
    pub queuing_delay_ms: Option<f64>,
    /// Ranks that it admits; 4096 is all.
    pub admission_level: u16,
    /// 0 where unknown.
    pub capacity_millicores: u32,
    pub known_keys: u64,
    pub age_ms: Option<u64>,
    pub from: Option<String>,
    pub stale: bool,
    pub trouble: Vec<String>,
}

impl Hosts {
    /// Of one cluster, or of all.
    ///
    /// # Errors
    /// There is no such cluster.
    pub fn of(tables: &Tables, cluster: Option<&str>) -> Result<Self> {
        let rows = chosen(tables, cluster)?.flat_map(|(name, cluster)| {
            let hosts = cluster.hosts.iter();
            hosts.map(|host| row(name, host)).collect::<Vec<_>>()
        });
        let mut rows: Vec<_> = rows.collect();
        // Stable: within a cluster the order is weir-control's.
        rows.sort_by_key(|row| row.state == "up" && !row.stale && row.trouble.is_empty());
        Ok(Self(rows))
    }
}

fn row(cluster: &str, host: &Host) -> Row {
    Row {
        cluster: cluster.to_owned(),
        address: host.address.clone(),
        state: host.state.clone(),
        in_progress: host.in_progress,
        queued: host.waiting(),
        queuing_delay_ms: host.queuing_delay_ms,
        admission_level: host.admission_level,
        capacity_millicores: host.capacity_millicores,
        known_keys: host.known_keys,
        age_ms: host.age_ms,
        from: host.from.clone(),
        stale: host.stale,
        trouble: host.trouble(),
    }
}

impl fmt::Display for Hosts {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = table(&[
            "CLUSTER",
            "HOST",
            "STATE",
            "IN FLIGHT",
            "QUEUED",
            "DELAY",
            "LEVEL",
            "CORES",
            "KEYS",
            "AGE",
            "FROM",
        ]);
        for row in &self.0 {
            let cores = f64::from(row.capacity_millicores) / 1e3;
            let stale = if row.stale { " (stale)" } else { "" };
            table.add_row([
                row.cluster.clone(),
                row.address.clone(),
                row.state.clone(),
                or_dash(row.in_progress),
                or_dash(row.queued),
                or_dash(row.queuing_delay_ms.map(|delay| format!("{delay:.1} ms"))),
                match row.admission_level {
                    RANKS.. => "all".to_owned(),
                    level => level.to_string(),
                },
                or_dash((row.capacity_millicores > 0).then_some(cores)),
                row.known_keys.to_string(),
                or_dash(row.age_ms.map(|ms| format!("{}{stale}", age(ms)))),
                or_dash(row.from.as_ref()),
            ]);
        }
        writeln!(to, "{table}")?;
        for row in self.0.iter().filter(|row| !row.trouble.is_empty()) {
            writeln!(to, "{}: {}", row.address, row.trouble.join("; "))?;
        }
        Ok(())
    }
}
