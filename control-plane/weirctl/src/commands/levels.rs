// SPDX-License-Identifier: Apache-2.0
//! Admission levels: which requests each host takes.

use std::fmt;

use anyhow::Result;
use serde::Serialize;
use weir_policy::{RANKS, USERS};

use super::chosen;
use crate::answers::Tables;
use crate::screen::{or_dash, table};

/// Hosts of some clusters, the lowest level first.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Levels(Vec<Row>);

/// A host's level.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct Row {
    pub cluster: String,
    pub overload: String,
    pub address: String,
    /// Ranks that it admits; 4096 is all.
    pub admission_level: u16,
    pub admits: String,
    pub queuing_delay_ms: Option<f64>,
}

impl Levels {
    /// Of one cluster, or of all.
    ///
    /// # Errors
    /// There is no such cluster.
    pub fn of(tables: &Tables, cluster: Option<&str>) -> Result<Self> {
        let rows = chosen(tables, cluster)?.flat_map(|(name, cluster)| {
            let row = |host: &crate::answers::Host| Row {
                cluster: name.clone(),
                overload: cluster.overload.clone(),
                address: host.address.clone(),
                admission_level: host.admission_level,
                admits: admits(host.admission_level),
                queuing_delay_ms: host.queuing_delay_ms,
            };
            cluster.hosts.iter().map(row).collect::<Vec<_>>()
        });
        let mut rows: Vec<_> = rows.collect();
        rows.sort_by_key(|row| row.admission_level);
        Ok(Self(rows))
    }
}

/// A rank is a class and, in it, a user priority: the level is the first rank that is not admitted.
fn admits(level: u16) -> String {
    match (level / USERS, level % USERS) {
        _ if level >= RANKS => "every request".to_owned(),
        (0, 0) => "none".to_owned(),
        (class, 0) => format!("classes 0 to {}", class - 1),
        (0, users) => format!("of class 0, user priorities below {users}"),
        (class, users) => format!(
            "classes 0 to {}, and of class {class} user priorities below {users}",
            class - 1
        ),
    }
}

impl fmt::Display for Levels {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = table(&["CLUSTER", "OVERLOAD", "HOST", "LEVEL", "DELAY", "ADMITS"]);
        for row in &self.0 {
            table.add_row([
                row.cluster.clone(),
                row.overload.clone(),
                row.address.clone(),
                row.admission_level.to_string(),
                or_dash(row.queuing_delay_ms.map(|delay| format!("{delay:.1} ms"))),
                row.admits.clone(),
            ]);
        }
        writeln!(to, "{table}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_told_as_classes_and_users() {
        let told = [0, 5, 128, 16 * 128 + 7, 4096].map(admits);
        assert_eq!(
            told,
            [
                "none",
                "of class 0, user priorities below 5",
                "classes 0 to 0",
                "classes 0 to 15, and of class 16 user priorities below 7",
                "every request"
            ]
        );
    }
}
