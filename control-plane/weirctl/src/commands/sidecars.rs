// SPDX-License-Identifier: Apache-2.0
//! Sidecars with the tables that they have and those that they refuse.

use std::fmt;

use serde::Serialize;

use crate::answers::{Proxy, Tables};
use crate::screen::{age, or_dash, table};

/// All that have a stream, those that refuse something first.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Sidecars(Vec<Row>);

/// A sidecar.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct Row {
    pub proxy: String,
    /// `weir`, a filter, or `envoy`, whose configuration comes from here.
    pub kind: String,
    /// The filter's, or Envoy's.
    pub program_version: Option<String>,
    pub peer: Option<String>,
    pub identity: Option<String>,
    pub connected_for_ms: u64,
    /// Clusters whose newest table it has, and those of which it has an older one.
    pub current: Vec<String>,
    pub behind: Vec<String>,
    pub refuses: Vec<Refused>,
    /// Of its reports, by reason.
    pub reports_refused: u64,
}

/// What it answered with a NACK.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct Refused {
    pub type_url: String,
    pub resources: Vec<String>,
    pub reason: String,
    pub ms_ago: u64,
}

impl Sidecars {
    /// Of one weir-control.
    pub fn of(tables: &Tables) -> Self {
        let mut rows: Vec<_> = tables.proxies.iter().map(|one| row(tables, one)).collect();
        rows.sort_by_key(|row| row.refuses.is_empty());
        Self(rows)
    }
}

fn row(tables: &Tables, proxy: &Proxy) -> Row {
    let newest = |name: &&str| {
        let version = tables.clusters.get(*name);
        version.and_then(|cluster| cluster.version.as_deref()) == proxy.table(name)
    };
    let (current, behind): (Vec<_>, Vec<_>) = proxy.tables().partition(newest);
    let owned = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect();
    let reporter = tables.reports_refused.iter();
    let reporter = reporter.filter(|one| one.proxy == proxy.proxy);
    Row {
        proxy: proxy.proxy.clone(),
        kind: proxy.kind.clone(),
        program_version: proxy.program_version.clone(),
        peer: proxy.peer.clone(),
        identity: proxy.identity.clone(),
        connected_for_ms: proxy.connected_for_ms,
        current: owned(current),
        behind: owned(behind),
        refuses: proxy
            .refuses
            .iter()
            .map(|refusal| Refused {
                type_url: refusal.type_url.clone(),
                resources: refusal.resources.keys().cloned().collect(),
                reason: refusal.reason.clone(),
                ms_ago: refusal.ms_ago,
            })
            .collect(),
        reports_refused: reporter.flat_map(|one| one.refused.values()).sum(),
    }
}

impl fmt::Display for Sidecars {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = table(&[
            "SIDECAR",
            "KIND",
            "VERSION",
            "PEER",
            "IDENTITY",
            "CONNECTED",
            "NEWEST OF",
            "OLDER OF",
            "REFUSES",
        ]);
        for row in &self.0 {
            table.add_row([
                row.proxy.clone(),
                row.kind.clone(),
                or_dash(row.program_version.as_ref()),
                or_dash(row.peer.as_ref()),
                or_dash(row.identity.as_ref()),
                age(row.connected_for_ms),
                row.current.join(", "),
                row.behind.join(", "),
                row.refuses.len().to_string(),
            ]);
        }
        writeln!(to, "{table}")?;
        for row in &self.0 {
            for refused in &row.refuses {
                let (proxy, reason) = (&row.proxy, &refused.reason);
                let names = refused.resources.join(", ");
                writeln!(to, "{proxy} refuses {names}: {reason}")?;
            }
            if row.reports_refused > 0 {
                let (proxy, count) = (&row.proxy, row.reports_refused);
                writeln!(to, "{proxy}: {count} parts of its reports are not counted")?;
            }
        }
        Ok(())
    }
}
