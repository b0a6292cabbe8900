// SPDX-License-Identifier: Apache-2.0
//! The whole fleet in a few lines.

use std::fmt;

use serde::Serialize;
use weir_policy::RANKS;

use crate::answers::{Cluster, Tables};
use crate::screen::{BAD, FAIR, GOOD, age, counted, or_dash, styled, table};

/// What one weir-control has, counted.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct Status {
    pub epoch: String,
    /// `alone`, `leading`, `following` or `waiting`.
    pub role: String,
    /// What is wrong with the replicas' lock.
    pub complaint: Option<String>,
    pub configuration_refused: Option<String>,
    pub clusters: Vec<Row>,
    pub sidecars: usize,
    pub envoys: usize,
    /// Resources that a sidecar refuses.
    pub refusals: usize,
    pub memory_bytes: u64,
    pub memory_limit_bytes: Option<u64>,
}

/// A cluster.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct Row {
    pub cluster: String,
    pub selection: String,
    pub overload: String,
    /// `live`, `shadow`, or the share of the keys that is live: `10%`.
    pub mode: String,
    pub up: usize,
    pub draining: usize,
    pub down: usize,
    /// Hosts whose load is too old to count.
    pub stale: usize,
    /// Hosts that do not admit every request.
    pub shedding: usize,
    pub in_progress: u64,
    pub table_age_ms: Option<u64>,
    /// In words, worst first.
    pub trouble: Vec<String>,
}

impl Status {
    /// Counts.
    pub fn of(tables: &Tables) -> Self {
        let replica = tables.replica.as_ref();
        let role = replica.map(|replica| replica.role.clone());
        let of_kind = |kind| tables.proxies.iter().filter(|one| one.kind == kind).count();
        Self {
            epoch: tables.epoch.clone(),
            role: role.unwrap_or_else(|| "alone".to_owned()),
            complaint: replica.and_then(|replica| replica.complaint.clone()),
            configuration_refused: tables.configuration_refused.clone(),
            clusters: tables.clusters.iter().map(row).collect(),
            sidecars: of_kind("weir"),
            envoys: of_kind("envoy"),
            refusals: tables.proxies.iter().map(|one| one.refuses.len()).sum(),
            memory_bytes: tables.memory.counted_bytes,
            memory_limit_bytes: tables.memory.limit_bytes,
        }
    }
}

fn row((name, cluster): (&String, &Cluster)) -> Row {
    let hosts = &cluster.hosts;
    let in_state = |state| hosts.iter().filter(|host| host.state == state).count();
    Row {
        cluster: name.clone(),
        selection: cluster.selection.clone(),
        overload: cluster.overload.clone(),
        mode: cluster.mode.clone(),
        up: in_state("up"),
        draining: in_state("draining"),
        down: in_state("down"),
        stale: hosts.iter().filter(|host| host.stale).count(),
        shedding: hosts
            .iter()
            .filter(|host| host.admission_level < RANKS)
            .count(),
        in_progress: hosts
            .iter()
            .filter_map(|host| host.in_progress)
            .map(u64::from)
            .sum(),
        table_age_ms: cluster.table_age_ms,
        trouble: trouble(cluster),
    }
}

fn trouble(cluster: &Cluster) -> Vec<String> {
    let mut said: Vec<String> = cluster.not_pushed.iter().cloned().collect();
    if let Some(reason) = &cluster.withdrawn {
        said.push(format!(
            "the policy is withdrawn, so Envoy chooses: {reason}"
        ));
    }
    let ignoring = cluster.choices_ignored_by.len();
    if ignoring > 0 {
        said.push(format!(
            "{} send requests elsewhere than their filter says",
            counted(ignoring, "sidecar")
        ));
    }
    if cluster.panics {
        said.push("panic mode: so few hosts are up that those which drain are chosen too".into());
    }
    if cluster.health_ignored {
        said.push("so many hosts refuse connections that none is taken out".into());
    }
    if cluster.cache_contents_dropped {
        said.push("memory.limit is reached: nobody is told what hosts have cached".into());
    }
    said.extend(cluster.hosts_kept.iter().cloned());
    said.extend(cluster.trouble());
    let troubled = cluster.hosts.iter();
    let troubled: Vec<_> = troubled.filter(|host| !host.trouble().is_empty()).collect();
    if let [first, ..] = &*troubled {
        said.push(format!(
            "{} with trouble, such as {}: {}",
            counted(troubled.len(), "host"),
            first.address,
            first.trouble().join("; ")
        ));
    }
    said
}

impl fmt::Display for Status {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let role = match &*self.role {
            "alone" => "the only weir-control".to_owned(),
            role => format!("a replica, {role}"),
        };
        let sidecars = counted(self.sidecars, "sidecar");
        write!(to, "{role}, epoch {}; {sidecars}", self.epoch)?;
        if self.envoys > 0 {
            write!(to, ", {} configured by it", counted(self.envoys, "Envoy"))?;
        }
        writeln!(to)?;
        if let Some(reason) = &self.configuration_refused {
            let bad = styled(BAD, "the configuration file is refused");
            writeln!(to, "{bad}, the last good one is in force: {reason}")?;
        }
        if let Some(reason) = &self.complaint {
            writeln!(to, "{}: {reason}", styled(BAD, "the replicas' lock"))?;
        }
        if self.refusals > 0 {
            let refusals = counted(self.refusals, "resource");
            let bad = styled(BAD, &format!("{refusals} refused by sidecars"));
            writeln!(to, "{bad}: weirctl sidecars")?;
        }
        let mut table = table(&[
            "CLUSTER",
            "SELECTION",
            "OVERLOAD",
            "UP",
            "DRAINING",
            "DOWN",
            "STALE",
            "SHEDDING",
            "IN FLIGHT",
            "TABLE AGE",
        ]);
        for row in &self.clusters {
            table.add_row([
                row.cluster.clone(),
                row.selection.clone(),
                row.overload.clone(),
                row.up.to_string(),
                row.draining.to_string(),
                row.down.to_string(),
                row.stale.to_string(),
                row.shedding.to_string(),
                row.in_progress.to_string(),
                or_dash(row.table_age_ms.map(age)),
            ]);
        }
        writeln!(to, "\n{table}\n")?;
        let mut none = true;
        for row in &self.clusters {
            for said in &row.trouble {
                none = false;
                writeln!(to, "{}: {said}", styled(FAIR, &row.cluster))?;
            }
        }
        let leads = matches!(&*self.role, "alone" | "leading");
        let complains = self.configuration_refused.is_some() || self.complaint.is_some();
        if none && leads && self.refusals == 0 && !complains {
            writeln!(to, "{}", styled(GOOD, "no trouble is known"))?;
        }
        Ok(())
    }
}
