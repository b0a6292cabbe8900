// SPDX-License-Identifier: Apache-2.0
//! What everybody holds: memory, threads, open files, and what they count themselves.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use anyhow::Result;
use procfs::process::Process;
use serde::Serialize;
use weir_exposition::sum;
use weir_stage::http;

use crate::soak::stage::{CLUSTER, CONTROL, Stage};
use crate::soak::trend::Bound;

const MIB: f64 = (1 << 20) as f64;

/// What is told of somebody.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum What {
    /// MiB in memory.
    Resident,
    /// MiB, of shared pages its share.
    Proportional,
    /// Of the process.
    Threads,
    /// Of the process.
    OpenFiles,
    /// MiB that Envoy's allocator has given out: shared data is in it, VMs' memory is not.
    Allocated,
    /// VMs of Envoy.
    Vms,
    /// Requests on their way to a host, by Envoy.
    Active,
    /// Requests that wait for a host, by the filter.
    Held,
    /// Requests on their way to hosts, by the filters' reports.
    InFlight,
    /// Callers that report.
    Proxies,
    /// Streams of filters.
    Streams,
    /// Keys that weir-control knows at hosts.
    KnownKeys,
    /// Keys that it assumes at hosts.
    AssumedClaims,
    /// Hosts that it pushes as up.
    HostsUp,
    /// Keys in a host's cache.
    CacheItems,
    /// Jobs of a host.
    Jobs,
}

impl What {
    pub(crate) const ALL: [Self; 16] = [
        Self::Resident,
        Self::Proportional,
        Self::Allocated,
        Self::Threads,
        Self::OpenFiles,
        Self::Vms,
        Self::Active,
        Self::Held,
        Self::InFlight,
        Self::Proxies,
        Self::Streams,
        Self::KnownKeys,
        Self::AssumedClaims,
        Self::HostsUp,
        Self::CacheItems,
        Self::Jobs,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Resident => "resident / MiB",
            Self::Proportional => "proportional / MiB",
            Self::Threads => "threads",
            Self::OpenFiles => "open files",
            Self::Allocated => "allocated / MiB",
            Self::Vms => "VMs",
            Self::Active => "requests at hosts",
            Self::Held => "requests held",
            Self::InFlight => "requests in flight",
            Self::Proxies => "proxies that report",
            Self::Streams => "streams of filters",
            Self::KnownKeys => "known keys",
            Self::AssumedClaims => "assumed claims",
            Self::HostsUp => "hosts up",
            Self::CacheItems => "keys in cache",
            Self::Jobs => "jobs",
        }
    }

    /// What it may grow in half an hour; none where others decide.
    pub(crate) fn bound(self) -> Option<Bound> {
        let least = match self {
            // Of our own choice: what an allocator moves without anything being lost.
            Self::Resident | Self::Allocated => 2.0,
            Self::Threads | Self::Vms | Self::Proxies | Self::Streams | Self::HostsUp => 1.0,
            Self::OpenFiles => 5.0,
            Self::KnownKeys | Self::CacheItems => 50.0,
            // Those of the last ten seconds: they swing between 180 and 840 with the policy in turn, and a trend of 50
            // was seen where their mean stood still. Claims that were never forgotten would be 90,000.
            Self::AssumedClaims => 250.0,
            // The share of each file's pages depends on who else is there.
            Self::Proportional => return None,
            // They follow the load, and are 0 after it.
            Self::Active | Self::Held | Self::InFlight | Self::Jobs => return None,
        };
        Some(Bound { share: 0.05, least })
    }

    /// It must be 0 when nobody sends anything.
    pub(crate) fn ends(self) -> bool {
        matches!(
            self,
            Self::Active | Self::Held | Self::InFlight | Self::Jobs
        )
    }
}

/// Of everybody at one moment.
pub(crate) type Sample = BTreeMap<String, BTreeMap<What, f64>>;

/// Everybody's figures now. A page that does not answer leaves its figures out.
pub(crate) fn take(stage: &mut Stage) -> Result<Sample> {
    let mut sample = Sample::new();
    for listed in stage.processes.list()? {
        if listed.ended.is_none() {
            let figures = sample.entry(listed.name).or_default();
            process(listed.process.id(), figures)?;
        }
    }
    let mut put = |name: &str, what: What, value: Option<f64>| {
        if let Some(value) = value {
            sample
                .entry(name.to_owned())
                .or_default()
                .insert(what, value);
        }
    };
    let page = read(stage.control.admin, "/metrics");
    let up = [("cluster", CLUSTER), ("state", "up")];
    for (what, metric, labels) in [
        (What::InFlight, "weir_control_in_flight", &[][..]),
        (What::Proxies, "weir_control_reporting_proxies", &[][..]),
        (What::Streams, "weir_xds_streams", &[("kind", "weir")][..]),
        (What::KnownKeys, "weir_control_known_keys", &[][..]),
        (What::AssumedClaims, "weir_control_assumed_claims", &[][..]),
        (What::HostsUp, "weir_control_hosts", &up[..]),
    ] {
        put(CONTROL, what, sum(&page, metric, labels));
    }
    for host in &stage.hosts {
        let page = read(host.pages, "/metrics");
        for (what, metric) in [
            (What::CacheItems, "weir_host_cache_items"),
            (What::Jobs, "weir_host_in_progress"),
        ] {
            put(&host.name, what, sum(&page, metric, &[]));
        }
    }
    for caller in &stage.callers {
        let page = read(caller.pages, STATS);
        let active = format!("cluster.{CLUSTER}.upstream_rq_active");
        for (what, name, unit) in [
            (What::Allocated, "server.memory_allocated", MIB),
            (What::Vms, "wasm.envoy.wasm.runtime.v8.active", 1.0),
            (What::Active, &active, 1.0),
            (What::Held, "wasmcustom.weir_held_requests", 1.0),
        ] {
            put(
                &caller.name,
                what,
                stat(&page, name).map(|value| value / unit),
            );
        }
    }
    Ok(sample)
}

/// Those of Envoy's figures that are read.
const STATS: &str = "/stats?filter=^(server.memory_allocated|wasm.envoy.*active|wasmcustom.weir_held_requests|cluster.*.upstream_rq_active)$";

fn read(address: SocketAddr, path: &str) -> String {
    http::get(address, path).map_or_else(|_| String::new(), |answer| answer.body)
}

/// A figure of Envoy's own: `name: value`.
fn stat(page: &str, name: &str) -> Option<f64> {
    let mut lines = page.lines().filter_map(|line| line.split_once(": "));
    lines.find(|(stat, _)| *stat == name)?.1.parse().ok()
}

fn process(id: i32, figures: &mut BTreeMap<What, f64>) -> Result<()> {
    let process = Process::new(id)?;
    let status = process.status()?;
    let rollup = process.smaps_rollup()?;
    let shared = rollup.memory_map_rollup.iter();
    let proportional = shared
        .filter_map(|map| map.extension.map.get("Pss"))
        .sum::<u64>();
    let mib = |kib: u64| kib as f64 / 1024.0;
    figures.extend(status.vmrss.map(|kib| (What::Resident, mib(kib))));
    figures.insert(What::Proportional, proportional as f64 / MIB);
    figures.insert(What::Threads, status.threads as f64);
    figures.insert(What::OpenFiles, process.fd_count()? as f64);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_of_envoys_page_is_found_by_its_whole_name() {
        let page = "cluster.ab.active: 7\ncluster.a.active: 2\n";
        assert_eq!(stat(page, "cluster.a.active"), Some(2.0));
        assert_eq!(stat(page, "active"), None);
    }

    #[test]
    fn a_process_tells_of_itself() {
        let mut figures = BTreeMap::new();
        process(std::process::id().try_into().unwrap(), &mut figures).unwrap();
        for what in [
            What::Resident,
            What::Proportional,
            What::Threads,
            What::OpenFiles,
        ] {
            assert!(figures[&what] > 0.0, "{what:?}");
        }
    }
}
