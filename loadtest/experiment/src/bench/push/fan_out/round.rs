// SPDX-License-Identifier: Apache-2.0
//! One way, once: connect, settle, measure, all connect again.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use weir_report::quantile;
use weir_stage::processes::Processes;

use super::SIDECARS;
use super::way::Way;
use crate::bench::push::crowd::{Crowd, LOOKING};
use crate::bench::setting::Setting;
use crate::costs::Costs;
use crate::fleet::hosts::{Age, Hosts};

pub(super) struct Plan {
    pub(super) rounds: usize,
    settle: Duration,
    pub(super) measure: Duration,
}

impl Plan {
    pub(super) fn new(quick: bool) -> Self {
        let seconds = Duration::from_secs;
        match quick {
            true => Self {
                rounds: 1,
                settle: seconds(2),
                measure: seconds(5),
            },
            false => Self {
                rounds: 3,
                settle: seconds(3),
                measure: seconds(8),
            },
        }
    }
}

/// What one way cost once.
pub(super) struct Round {
    /// Of a core.
    pub(super) share: f64,
    /// Microseconds for each change that a sidecar was told of.
    pub(super) cpu: f64,
    /// Bytes.
    pub(super) resident: f64,
    pub(super) peak: f64,
    /// For each change that a sidecar was told of.
    pub(super) bytes: f64,
    /// Changes a second that a sidecar was told of.
    pub(super) changes: f64,
    /// Messages a second that a sidecar got.
    pub(super) messages: f64,
    /// Milliseconds from the host's change.
    pub(super) lag: Quantiles,
    /// Milliseconds from the moment that the change was read.
    pub(super) push: Quantiles,
    /// Seconds until all had been served after all had gone.
    pub(super) again: f64,
    /// Streams that ended by themselves or could not be opened at first.
    pub(super) lost: f64,
}

#[derive(Clone, Copy)]
pub(super) struct Quantiles {
    pub(super) p50: f64,
    pub(super) p99: f64,
}

pub(super) async fn measure(
    setting: &Setting,
    plan: &Plan,
    way: Way,
    hosts: &Hosts,
    folder: &Path,
) -> Result<Round> {
    let mut processes = Processes::bound_in(folder.to_owned())?;
    let (process, server) = way.start(setting, &mut processes, hosts, folder)?;
    let names = way.names();
    let (crowd, _) = Crowd::connect(SIDECARS, server, &names, hosts).await?;
    tokio::time::sleep(plan.settle).await;

    let receipts = crowd.receipts.clone();
    let counted = || [&receipts.messages, &receipts.bytes].map(|n| n.load(Ordering::Relaxed));
    receipts.keeping.store(true, Ordering::Relaxed);
    let (started, costs, before) = (Instant::now(), Costs::of(process)?, counted());
    tokio::time::sleep(plan.measure).await;
    let (took, cpu, after) = (started.elapsed(), costs.cpu()?, counted());
    receipts.keeping.store(false, Ordering::Relaxed);
    let lost = receipts.lost.load(Ordering::Relaxed);
    let ages = receipts.take_ages();
    let resident = process.memory()?.resident;

    crowd.leave().await;
    let (crowd, again) = Crowd::connect(SIDECARS, server, &names, hosts).await?;
    crowd.leave().await;

    let sidecars = SIDECARS as f64;
    let looking = SIDECARS.div_ceil(LOOKING) as f64;
    // All get the same, so those that look tell how much it was.
    let changes = ages.len() as f64 / looking;
    ensure!(
        changes > 0.0,
        "no sidecar was told of any change by {}",
        way.name()
    );
    let [messages, bytes] = [0, 1].map(|n| (after[n] - before[n]) as f64 / sidecars);
    let seconds = took.as_secs_f64();
    Ok(Round {
        share: cpu.as_secs_f64() / seconds,
        cpu: cpu.as_secs_f64() * 1e6 / (sidecars * changes),
        resident: resident as f64,
        peak: process.memory()?.peak as f64,
        bytes: bytes / changes,
        changes: changes / seconds,
        messages: messages / seconds,
        lag: quantiles(&ages, |age| age.changed)?,
        push: quantiles(&ages, |age| age.read)?,
        again: again.as_secs_f64(),
        lost: lost as f64,
    })
}

fn quantiles(ages: &[Age], of: impl Fn(&Age) -> Duration) -> Result<Quantiles> {
    let ages: Vec<f64> = ages.iter().map(|age| of(age).as_secs_f64() * 1e3).collect();
    let at = |share: f64| quantile(&ages, share).context("no ages");
    Ok(Quantiles {
        p50: at(0.5)?,
        p99: at(0.99)?,
    })
}
