// SPDX-License-Identifier: Apache-2.0
//! From what is known to what is pushed. Pure.

use std::collections::BTreeSet;
use std::time::Duration;

use weir_policy::{Cost, HostState, Level, MAX_ZONES, Policy};
use weir_tables::{Meta, ShardBuilder, encode_policy, v1};

use crate::cluster::Cluster;
use crate::costs::Costs;
use crate::holdings::Holdings;
use crate::host::Host;
use crate::observed::Observed;
use crate::snapshot::Resource;

/// A message as a resource.
pub fn resource(meta: Meta, message: &impl prost::Message) -> Resource {
    Resource {
        version: meta.to_string().into(),
        body: message.encode_to_vec().into(),
    }
}

/// The table of a cluster's hosts.
///
/// `unix_ms` is the same moment as `now`.
pub fn host_table(
    name: &str,
    cluster: &Cluster,
    meta: Meta,
    now: Duration,
    unix_ms: u64,
) -> v1::HostTable {
    let health_ignored = cluster.health_ignored();
    let hosts = cluster.hosts.values();
    let zones = zones(cluster);
    let mean = cluster.costs.mean();
    let micros = |time: Duration| u32::try_from(time.as_micros()).unwrap_or(u32::MAX);
    v1::HostTable {
        cluster: name.to_owned(),
        epoch: meta.epoch,
        version: meta.version,
        policy: Some(policy(cluster, cluster.steer_percent())),
        hosts: hosts
            .map(|host| row(host, cluster, &zones, health_ignored, now))
            .collect(),
        cache_shards: cluster.holdings.shards(),
        mean_cost: (mean != Cost::default()).then(|| v1::Cost {
            fetch_us: micros(mean.fetch),
            run_us: micros(mean.run),
        }),
        built_unix_ms: unix_ms,
        sidecars: cluster.proxies,
        refetched_permille: (cluster.costs.refetched() * 1000.0) as u32,
        zones: zones.into_iter().map(str::to_owned).collect(),
        withdrawn_percent: cluster.withdrawn_percent(),
    }
}

/// A cluster's policy as its table tells it, with that share of requests whose choice is carried out.
pub fn policy(cluster: &Cluster, steer_percent: u32) -> v1::Policy {
    encode_policy(&Policy {
        steer_percent,
        ..cluster.config.policy.clone()
    })
}

/// The zones that hosts are in, sorted. Of more than a table takes the last ones are left out, and so unknown.
fn zones(cluster: &Cluster) -> Vec<&str> {
    let zones = cluster.hosts.values();
    let zones: BTreeSet<&str> = zones
        .filter_map(|host| host.config.zone.as_deref())
        .collect();
    zones.into_iter().take(MAX_ZONES).collect()
}

/// The place of a zone among those, counted from 1; 0 where it is none of them.
fn place(zones: &[&str], zone: Option<&str>) -> u32 {
    let found = zone.and_then(|zone| zones.binary_search(&zone).ok());
    found.map_or(0, |place| place as u32 + 1)
}

fn row(
    host: &Host,
    cluster: &Cluster,
    zones: &[&str],
    health_ignored: bool,
    now: Duration,
) -> v1::Host {
    let state = match cluster.state_of(host, health_ignored) {
        HostState::Up => v1::HostState::Up,
        HostState::Draining => v1::HostState::Draining,
        HostState::Down => v1::HostState::Down,
    };
    let level = cluster.level_of(host, now);
    v1::Host {
        address: host.config.address.clone(),
        state: state.into(),
        load: host
            .newest(&cluster.config.policy, now)
            .and_then(|observed| load(&observed, now)),
        admission_level: (level != Level::ALL).then(|| level.ranks().into()),
        capacity_millicores: host.capacity_millicores(),
        preempt_at_unix_ms: host.config.preempt_at_unix_ms,
        speed_permille: cluster
            .costs
            .speed(host.id, now)
            .map_or(0, |speed| (speed * 1000.0) as u32),
        zone: place(zones, host.config.zone.as_deref()),
    }
}

/// Absent where the host tells neither what it runs nor what it queues: no jobs known is not no jobs.
fn load(observed: &Observed, now: Duration) -> Option<v1::Load> {
    let figures = &observed.figures;
    let queued = figures.queued.clone().unwrap_or_default();
    let total = queued
        .iter()
        .fold(0u32, |sum, jobs| sum.saturating_add(*jobs));
    if figures.in_progress.is_none() && figures.queued.is_none() {
        return None;
    }
    let micros = |delay: Duration| u64::try_from(delay.as_micros()).unwrap_or(u64::MAX);
    Some(v1::Load {
        age_ms: u32::try_from(now.saturating_sub(observed.at).as_millis()).unwrap_or(u32::MAX),
        in_progress: figures.in_progress.unwrap_or(total),
        queued,
        queuing_delay_us: figures.queuing_delay.map(micros),
        busy_cores: figures.busy_cores,
        tells_work: figures.work.is_some(),
        work_us: figures.work.clone().unwrap_or_default(),
    })
}

/// One shard of who holds what.
pub fn cache_shard(holdings: &Holdings, costs: &Costs, shard: u32, meta: Meta) -> v1::CacheShard {
    let mut builder = ShardBuilder::default();
    for (key, claims) in holdings.contents(shard) {
        for claim in claims {
            builder.add(
                key,
                weir_policy::Holder {
                    host: claim.host,
                    assumed: !claim.known,
                },
            );
        }
    }
    builder.build_with(meta, |key| costs.told(key))
}
