// SPDX-License-Identifier: Apache-2.0
//! What differs between two weir-controls, or in one between two moments.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Serialize;

use crate::answers::{Cluster, Host, Tables};
use crate::screen::{GOOD, or_dash, styled, table};

/// Fields that differ.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct Diff {
    pub before: String,
    pub after: String,
    /// Both lead: what a replica that does not knows of hosts is nothing to compare.
    pub hosts_compared: bool,
    pub differences: Vec<Row>,
}

/// A field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs)]
pub struct Row {
    pub cluster: String,
    /// Absent for what is said of the whole cluster.
    pub host: Option<String>,
    pub field: &'static str,
    pub before: Option<String>,
    pub after: Option<String>,
}

impl Diff {
    /// Compares; `before` and `after` are how the two are called.
    pub fn of(before: (&str, &Tables), after: (&str, &Tables)) -> Self {
        let (was, is) = (&before.1.clusters, &after.1.clusters);
        let hosts_compared = before.1.leads() && after.1.leads();
        let names: BTreeSet<_> = was.keys().chain(is.keys()).collect();
        let differences = names
            .into_iter()
            .flat_map(|name| of_cluster(name, was.get(name), is.get(name), hosts_compared));
        Self {
            hosts_compared,
            before: before.0.to_owned(),
            after: after.0.to_owned(),
            differences: differences.collect(),
        }
    }
}

type Fields = Vec<(&'static str, Option<String>)>;

fn of_cluster(
    name: &str,
    was: Option<&Cluster>,
    is: Option<&Cluster>,
    with_hosts: bool,
) -> Vec<Row> {
    let fields = |cluster: Option<&Cluster>| -> Fields {
        vec![
            ("cluster", cluster.map(|_| "known".to_owned())),
            (
                "version",
                cluster.and_then(|cluster| cluster.version.clone()),
            ),
            (
                "selection",
                cluster.map(|cluster| cluster.selection.clone()),
            ),
            ("overload", cluster.map(|cluster| cluster.overload.clone())),
        ]
    };
    let mut rows = of_fields(name, None, fields(was), fields(is));
    if !with_hosts {
        return rows;
    }
    let (was, is) = (hosts(was), hosts(is));
    let addresses: BTreeSet<_> = was.keys().chain(is.keys()).collect();
    for address in addresses {
        let (was, is) = (
            of_host(was.get(address).copied()),
            of_host(is.get(address).copied()),
        );
        rows.extend(of_fields(name, Some(address), was, is));
    }
    rows
}

/// By address.
fn hosts(cluster: Option<&Cluster>) -> BTreeMap<&str, &Host> {
    let hosts = cluster.into_iter().flat_map(|cluster| &cluster.hosts);
    hosts.map(|host| (&*host.address, host)).collect()
}

/// Not its age, which differs always.
fn of_host(host: Option<&Host>) -> Fields {
    let text = |value: fn(&Host) -> String| host.map(value);
    vec![
        ("state", text(|host| host.state.clone())),
        ("in flight", text(|host| or_dash(host.in_progress))),
        ("queued", text(|host| or_dash(host.waiting()))),
        (
            "queuing delay, ms",
            text(|host| or_dash(host.queuing_delay_ms)),
        ),
        (
            "admission level",
            text(|host| host.admission_level.to_string()),
        ),
        (
            "capacity, millicores",
            text(|host| host.capacity_millicores.to_string()),
        ),
        ("known keys", text(|host| host.known_keys.to_string())),
        ("trouble", text(|host| host.trouble().join("; "))),
    ]
}

fn of_fields(cluster: &str, host: Option<&str>, was: Fields, is: Fields) -> Vec<Row> {
    let both = was.into_iter().zip(is);
    let differing = both.filter(|((_, was), (_, is))| was != is);
    let row = |((field, before), (_, after))| Row {
        cluster: cluster.to_owned(),
        host: host.map(str::to_owned),
        field,
        before,
        after,
    };
    differing.map(row).collect()
}

impl fmt::Display for Diff {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.hosts_compared {
            writeln!(
                to,
                "hosts are not compared: of both only a leader knows them"
            )?;
        }
        if self.differences.is_empty() {
            return writeln!(to, "{}", styled(GOOD, "no difference"));
        }
        let mut table = table(&["CLUSTER", "HOST", "FIELD", &self.before, &self.after]);
        for row in &self.differences {
            table.add_row([
                row.cluster.clone(),
                row.host.clone().unwrap_or_default(),
                row.field.to_owned(),
                or_dash(row.before.as_ref()),
                or_dash(row.after.as_ref()),
            ]);
        }
        writeln!(to, "{table}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_that_differs_is_named_and_the_others_are_not() {
        let tables = |level, state: &str| {
            let host = Host {
                address: "127.0.0.1:1".into(),
                state: state.into(),
                admission_level: level,
                ..Host::default()
            };
            let cluster = Cluster {
                hosts: vec![host],
                ..Cluster::default()
            };
            Tables {
                clusters: [("rules".to_owned(), cluster)].into(),
                ..Tables::default()
            }
        };
        let (was, is) = (tables(4096, "up"), tables(128, "up"));
        let diff = Diff::of(("a", &was), ("b", &is));
        let row = Row {
            cluster: "rules".into(),
            host: Some("127.0.0.1:1".into()),
            field: "admission level",
            before: Some("4096".into()),
            after: Some("128".into()),
        };
        assert_eq!(diff.differences, [row]);
        assert!(Diff::of(("a", &was), ("b", &was)).differences.is_empty());
        let gone = Diff::of(("a", &was), ("b", &Tables::default()));
        assert!(
            gone.differences
                .iter()
                .any(|row| row.field == "cluster" && row.after.is_none())
        );
    }
}
