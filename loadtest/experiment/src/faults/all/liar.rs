// SPDX-License-Identifier: Apache-2.0
//! Somebody reports as a sidecar does, and nothing of it is so.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::json;
use tokio_stream::wrappers::ReceiverStream;
use weir_mesh::{HOSTS, Mesh};
use weir_tables::v1::reports_client::ReportsClient;
use weir_tables::v1::{ClusterRecord, HostRecord, RankCount, Report, VmRecord};

use crate::faults::fault::{Expectation, Fault, Length};
use crate::faults::signs;
use crate::faults::stage::Stage;

/// A second, at the most important rank: no sidecar sends as many.
const OFFERED: u64 = 1_000_000;
/// In each report, and others in the next.
const MADE_UP_HOSTS: u64 = 1_000;
/// Ranks that there are.
const RANKS: u32 = 4096;
const SECOND: Duration = Duration::from_secs(1);
/// weir-control may have grown by so much.
const GROWTH_MIB: f64 = 64.0;
/// Counters that weir-control may keep: those of the callers, and nothing that the liar has made up.
const MOST_ROWS: f64 = 100_000.0;

pub(crate) const FAULT: Fault = Fault {
    name: "liar",
    expectation: Expectation::capacity_remains(
        "a million requests and a refused connection a second that never were, and hosts that do not exist, shed nothing",
    ),
    own: Some(|plan, _| {
        plan.cluster = json!({"policy": {"overload": "dagor"}});
        Ok(())
    }),
    full: Length::full(10, 30, 10),
    short: Some(Length::short(2, 6, 2)),
    run,
    known_gap: None,
};

fn run(stage: &mut Stage<'_>) -> Result<()> {
    let control = stage.mesh().control().clone();
    let hosts: Vec<String> = levels(stage.mesh())?
        .into_iter()
        .map(|(host, _)| host)
        .collect();
    let before = resident_mib(stage.mesh())?;
    let liar = Liar::start(control.xds, hosts);
    let (mut shed, mut rows) = (0, 0);
    stage.harm_with(|stage| {
        let lowest = levels(stage.mesh())?
            .into_iter()
            .map(|(_, level)| level)
            .min();
        shed = shed.max(RANKS.saturating_sub(lowest.unwrap_or(RANKS)));
        rows = rows.max(signs::of_control(&control, "weir_control_report_rows").unwrap_or(0));
        Ok(())
    })?;
    let lies = liar.stop()?;
    let refused = |reason: &str| {
        let name = format!("weir_control_reported_refused_total{{reason=\"{reason}\"}}");
        signs::of_control(&control, &name).unwrap_or(0)
    };
    let (leaps, unknown) = (refused("leap"), refused("unknown_host"));
    ensure!(
        leaps > 0 && unknown > 0,
        "{lies} lies, {leaps} leaps and {unknown} hosts refused"
    );
    stage.measured("lies told", lies as f64, "", None);
    stage.measured("leaps refused", leaps as f64, "", None);
    stage.measured("hosts refused", unknown as f64, "", None);
    stage.measured("ranks shed by any host", f64::from(shed), "", Some(0.0));
    stage.measured("counters kept", rows as f64, "", Some(MOST_ROWS));
    let grown = resident_mib(stage.mesh())? - before;
    stage.measured("weir-control grew by", grown, "MiB", Some(GROWTH_MIB));
    Ok(())
}

/// Hosts of the cluster, and how many ranks each admits.
fn levels(mesh: &mut Mesh) -> Result<Vec<(String, u32)>> {
    let page = weir_stage::http::get(mesh.control().admin, "/tables")?;
    let tables: serde_json::Value = serde_json::from_str(&page.body)?;
    let hosts = tables["clusters"][HOSTS]["hosts"].as_array();
    let hosts = hosts.context("no hosts in /tables")?.iter();
    let level = |host: &serde_json::Value| {
        let level = u32::try_from(host["admission_level"].as_u64()?).ok()?;
        Some((host["address"].as_str()?.to_owned(), level))
    };
    Ok(hosts.filter_map(level).collect())
}

/// Of weir-control.
fn resident_mib(mesh: &mut Mesh) -> Result<f64> {
    let name = mesh.control().name.clone();
    let listed = mesh.processes().list()?;
    let control = listed.iter().find(|listed| listed.name == name);
    let memory = control.context("no weir-control")?.process.memory()?;
    Ok(memory.resident as f64 / f64::from(1 << 20))
}

/// One who reports each second.
struct Liar {
    over: Arc<AtomicBool>,
    thread: JoinHandle<Result<u64>>,
}

impl Liar {
    fn start(xds: SocketAddr, hosts: Vec<String>) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let told = over.clone();
        let thread = thread::spawn(move || {
            let mut runtime = tokio::runtime::Builder::new_current_thread();
            let runtime = runtime.enable_all().build()?;
            runtime.block_on(lies(xds, &hosts, &told))
        });
        Self { over, thread }
    }

    /// How many lies it has told.
    fn stop(self) -> Result<u64> {
        self.over.store(true, Ordering::Relaxed);
        let ended = self.thread.join();
        ended.map_err(|_| anyhow::anyhow!("the liar has panicked"))?
    }
}

async fn lies(xds: SocketAddr, hosts: &[String], over: &AtomicBool) -> Result<u64> {
    let (reports, stream) = tokio::sync::mpsc::channel(1);
    let mut client = ReportsClient::connect(format!("http://{xds}")).await?;
    let _answers = client.stream(ReceiverStream::new(stream)).await?;
    let mut told = 0;
    while !over.load(Ordering::Relaxed) {
        reports
            .send(lie(hosts, told))
            .await
            .context("the stream has ended")?;
        told += 1;
        tokio::time::sleep(SECOND).await;
    }
    Ok(told)
}

fn lie(hosts: &[String], second: u64) -> Report {
    let of_most_important = |count| vec![RankCount { rank: 0, count }];
    let there = hosts.iter().map(|address| HostRecord {
        address: address.clone(),
        unconnected: second,
        reading_us: second.saturating_mul(1 << 40),
        ..Default::default()
    });
    let made_up = (0..MADE_UP_HOSTS).map(|host| HostRecord {
        address: format!(
            "198.18.{}.{}:{}",
            host / 250,
            host % 250,
            1 + second % 60_000
        ),
        admitted: of_most_important(second),
        ..Default::default()
    });
    Report {
        proxy: "liar".to_owned(),
        records: vec![VmRecord {
            epoch: 1,
            deadline_ns: u64::MAX,
            published_ns: second,
            clusters: vec![ClusterRecord {
                cluster: HOSTS.to_owned(),
                offered: of_most_important(second * OFFERED),
                hosts: there.chain(made_up).collect(),
                ..Default::default()
            }],
            ..Default::default()
        }],
        ..Default::default()
    }
}
