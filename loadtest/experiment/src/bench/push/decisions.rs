// SPDX-License-Identifier: Apache-2.0
//! How soon two sidecars decide by a host's change: weir-control, two Envoys with the filter, and
//! hosts in this process whose metrics change when asked to.

mod hosts;
mod probe;
mod shown;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rand::RngExt;
use serde_json::{Value, json};
use weir_stage::bootstrap;
use weir_stage::processes::Processes;
use weir_stage::{control, envoy, interrupt};

use super::runtime;
use crate::bench::section::Section;
use crate::bench::setting::Setting;
use hosts::{Change, Hosts};
use probe::Probe;

const HOSTS: usize = 4;
const SIDECARS: [&str; 2] = ["caller-1", "caller-2"];
/// Far over any time that a change takes.
const DECIDED: Duration = Duration::from_secs(10);

/// How often hosts are asked, and how many changes are waited for.
#[derive(Clone, Copy)]
struct Plan {
    interval: Duration,
    changes: usize,
}

impl Plan {
    fn all(quick: bool) -> [Self; 2] {
        let plan = |ms, changes| Self {
            interval: Duration::from_millis(ms),
            changes,
        };
        match quick {
            true => [plan(1000, 8), plan(200, 12)],
            false => [plan(1000, 32), plan(200, 40)],
        }
    }
}

/// From a change at a host to the first request that each sidecar decided by it.
struct Delay {
    each: Vec<Duration>,
}

impl Delay {
    fn both(&self) -> Duration {
        self.each.iter().max().copied().unwrap_or_default()
    }

    fn apart(&self) -> Duration {
        let first = self.each.iter().min().copied().unwrap_or_default();
        self.both().saturating_sub(first)
    }
}

pub(super) fn measure(setting: &Setting) -> Result<Section> {
    let mut all = Vec::new();
    for plan in Plan::all(setting.quick) {
        let ms = plan.interval.as_millis();
        eprintln!(
            "bench: push: {} changes, hosts asked every {ms} ms",
            plan.changes
        );
        let folder = setting.folder.join(format!("push/decisions-{ms}ms"));
        let delays = runtime()?.block_on(delays(setting, plan, &folder));
        all.push((plan, delays?));
    }
    shown::section(&all)
}

async fn delays(setting: &Setting, plan: Plan, folder: &Path) -> Result<Vec<Delay>> {
    let mut processes = Processes::bound_in(folder.to_owned())?;
    let hosts = Hosts::start(HOSTS).await?;
    let programs = &setting.programs;
    let config = config(&hosts, plan.interval, &programs.filter);
    let control = control::start(&mut processes, &programs.control, &config, folder)?;
    let mut probes = Vec::new();
    for name in SIDECARS {
        let bootstrap = bootstrap::standalone(name, control.xds)?;
        let sidecar = envoy::start(&mut processes, &programs.envoy, name, &bootstrap, folder)?;
        probes.push(Probe::start(sidecar.listener).await?);
    }
    // All requests have one key, so all go to one host, which is told by the first table.
    let mut chosen = Vec::new();
    for probe in &mut probes {
        chosen.push(probe.chosen().await?);
    }
    let victim = match &chosen[..] {
        [one, other] if one == other => hosts.get(one).context("no such host")?,
        _ => bail!("the sidecars disagree about the first host: {chosen:?}"),
    };
    let mut delays = Vec::new();
    for change in Change::ALL.into_iter().cycle().take(plan.changes) {
        interrupt::check()?;
        // At any moment of the interval.
        let pause = plan
            .interval
            .mul_f64(1.0 + rand::rng().random_range(0.0..1.0));
        tokio::time::sleep(pause).await;
        let is_new = |host: &str| (host == victim.name) == change.is_back();
        for probe in &probes {
            let host = probe.now();
            ensure!(
                host.as_deref().is_some_and(|host| !is_new(host)),
                "before {}, a sidecar's requests go to {host:?} already",
                change.name()
            );
        }
        let changed = Instant::now();
        victim.set(change);
        let mut each = Vec::new();
        for probe in &mut probes {
            let decided = tokio::time::timeout(DECIDED, probe.until(is_new))
                .await
                .with_context(|| format!("a sidecar did not decide by it: {}", change.name()))?;
            let delay = decided?.checked_duration_since(changed);
            each.push(delay.with_context(|| format!("decided before it: {}", change.name()))?);
        }
        delays.push(Delay { each });
    }
    Ok(delays)
}

/// One key's requests all go to the same host for as long as it takes any.
fn config(hosts: &Hosts, interval: Duration, filter: &Path) -> Value {
    let interval = format!("{}ms", interval.as_millis());
    json!({
        "xds": {"listen": "127.0.0.1:0"},
        "admin": {"listen": "127.0.0.1:0"},
        "clusters": {"rules": {
            "policy": {"selection": "rendezvous", "overload": "breaker"},
            "hosts": hosts.names().map(|name| json!({"address": name})).collect::<Vec<_>>(),
            "scrape": {"interval": interval},
        }},
        "standalone": {
            "filter": {"wasm": filter, "config": {"debug": true}},
            "listeners": [{"name": "caller", "address": "127.0.0.1:0", "cluster": "rules"}],
        },
    })
}
