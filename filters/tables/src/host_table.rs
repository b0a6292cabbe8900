// SPDX-License-Identifier: Apache-2.0
use std::time::Duration;

use prost::Message;
use weir_policy::{
    CLASSES, Cost, Hedging, Holding, Host, HostState, KeyHash, Level, Overload, Policy, RANKS,
    Selection, Serves, Table,
    overload::{breaker, dynamic_breaker},
    selection::hot_cold,
};

use crate::load::decode_load;
use crate::{Meta, Refusal, clipped, v1};

/// Decodes and checks the resource `name`, received at `received` on the reader's clock.
pub fn decode_host_table(
    name: &str,
    bytes: &[u8],
    received: Duration,
) -> Result<(Meta, Table), Refusal> {
    let table = v1::HostTable::decode(bytes).map_err(|source| Refusal::NotProtobuf {
        message: "weir.v1.HostTable",
        source,
    })?;
    if table.cluster != name {
        return Err(Refusal::WrongCluster {
            name: clipped(name),
            cluster: clipped(&table.cluster),
        });
    }
    let policy = decode_policy(&table.policy.unwrap_or_default())?;
    let hosts = table.hosts.iter().enumerate();
    let built = (received, table.built_unix_ms);
    let hosts = hosts
        .map(|(index, host)| decode_host(index, host, built))
        .collect::<Result<_, _>>()?;
    let meta = Meta {
        epoch: table.epoch,
        version: table.version,
    };
    let micros = |micros: u32| Duration::from_micros(micros.into());
    let mean = table.mean_cost.unwrap_or_default();
    let mean = Cost {
        fetch: micros(mean.fetch_us),
        run: micros(mean.run_us),
    };
    let checked = Table::new(policy, hosts, table.cache_shards)?.with_zones(table.zones)?;
    let checked = checked.with_mean_cost(mean).with_callers(table.sidecars);
    let checked = checked.with_refetched(f64::from(table.refetched_permille) / 1000.0);
    Ok((meta, checked))
}

fn decode_policy(policy: &v1::Policy) -> Result<Policy, Refusal> {
    let default = Policy::default();
    let milliseconds =
        |field: Option<u32>, default| field.map_or(default, |ms| Duration::from_millis(ms.into()));
    Ok(Policy {
        overload: decode_overload(policy)?,
        serves: decode_serves(policy.serves)?,
        selection: match policy.selection {
            0 => default.selection,
            selection => decode_selection("policy.selection", selection, policy)?,
        },
        assumed_cached: milliseconds(policy.assumed_cached_ms, default.assumed_cached),
        stale_after: milliseconds(policy.stale_after_ms, default.stale_after),
        ranked_hosts: policy
            .ranked_hosts
            .map_or(default.ranked_hosts, |hosts| hosts as usize),
        retry_after: milliseconds(policy.retry_after_ms, default.retry_after),
        holding: decode_holding(&policy.holding.unwrap_or_default()),
        hedging: decode_hedging(&policy.hedging.unwrap_or_default()),
        panic_threshold: policy.panic_percent.unwrap_or(default.panic_threshold),
        salt_check: policy.salt_check.map(KeyHash),
        steer_percent: policy.steer_percent.unwrap_or(default.steer_percent),
        receipt_every: policy.receipt_every.unwrap_or(default.receipt_every),
        beside: match policy.beside {
            0 => None,
            beside => Some(decode_selection("policy.beside", beside, policy)?),
        },
        crossing: Duration::from_micros(policy.crossing_us.into()),
    })
}

fn decode_serves(value: i32) -> Result<Serves, Refusal> {
    match v1::Serves::try_from(value) {
        Ok(v1::Serves::Unspecified | v1::Serves::Jobs) => Ok(Serves::Jobs),
        Ok(v1::Serves::Prompts) => Ok(Serves::Prompts),
        Err(_) => Err(Refusal::UnknownValue {
            field: "policy.serves",
            value,
            known: "jobs (1), prompts (2)",
        }),
    }
}

fn decode_holding(holding: &v1::Holding) -> Holding {
    let default = Holding::default();
    let milliseconds =
        |field: Option<u32>, default| field.map_or(default, |ms| Duration::from_millis(ms.into()));
    Holding {
        for_eligible: milliseconds(holding.for_eligible_ms, default.for_eligible),
        for_cached: milliseconds(holding.for_cached_ms, default.for_cached),
        max_held: holding
            .max_held
            .map_or(default.max_held, |held| held as usize),
    }
}

fn decode_hedging(hedging: &v1::Hedging) -> Hedging {
    let default = Hedging::default();
    Hedging {
        after: hedging
            .after_ms
            .map_or(default.after, |ms| Duration::from_millis(ms.into())),
        idle_percent: hedging.idle_percent.unwrap_or(default.idle_percent),
        classes: hedging.classes.unwrap_or(default.classes),
    }
}

fn decode_overload(policy: &v1::Policy) -> Result<Overload, Refusal> {
    let queued_jobs = policy.breaker_queued_jobs.unwrap_or(breaker::QUEUED_JOBS);
    match v1::Overload::try_from(policy.overload) {
        Ok(v1::Overload::Unspecified) => Ok(Policy::default().overload),
        Ok(v1::Overload::None) => Ok(Overload::None),
        Ok(v1::Overload::Breaker) => Ok(Overload::Breaker { queued_jobs }),
        Ok(v1::Overload::DynamicBreaker) => Ok(Overload::DynamicBreaker(dynamic_breaker::Params {
            queued_jobs,
            wait: policy
                .dynamic_breaker_wait_ms
                .map_or(dynamic_breaker::WAIT, |ms| Duration::from_millis(ms.into())),
            least_queued_jobs: policy
                .dynamic_breaker_least_queued_jobs
                .unwrap_or(dynamic_breaker::LEAST_QUEUED_JOBS),
        })),
        Ok(v1::Overload::Dagor) => Ok(Overload::Dagor),
        Ok(v1::Overload::Breakwater) => Ok(Overload::Breakwater),
        Ok(v1::Overload::Slots) => Ok(Overload::Slots),
        Err(_) => Err(Refusal::UnknownValue {
            field: "policy.overload",
            value: policy.overload,
            known: "none (1), breaker (2), dagor (3), dynamic_breaker (4), breakwater (5), slots (6)",
        }),
    }
}

fn decode_selection(
    field: &'static str,
    value: i32,
    policy: &v1::Policy,
) -> Result<Selection, Refusal> {
    match v1::Selection::try_from(value) {
        Ok(v1::Selection::Baseline) => Ok(Selection::Baseline),
        Ok(v1::Selection::Random) => Ok(Selection::Random),
        Ok(v1::Selection::Rendezvous) => Ok(Selection::Rendezvous),
        Ok(v1::Selection::Dynamic) => Ok(Selection::Dynamic),
        Ok(v1::Selection::Estimate) => Ok(Selection::Estimate),
        Ok(v1::Selection::HotCold) => {
            let permille = policy.hot_cold_permille;
            let permille = permille.unwrap_or(hot_cold::QUANTILE_PERMILLE.into());
            // What is beyond is refused with the table.
            let permille = u16::try_from(permille).unwrap_or(u16::MAX);
            Ok(Selection::HotCold { permille })
        }
        Ok(v1::Selection::CachingPlan) => Ok(Selection::CachingPlan),
        Ok(v1::Selection::Unspecified) | Err(_) => Err(Refusal::UnknownValue {
            field,
            value,
            known: "baseline (1), random (2), rendezvous (3), dynamic (4), estimate (5), hot_cold (6), caching_plan (7)",
        }),
    }
}

fn decode_host(
    index: usize,
    host: &v1::Host,
    (received, built_unix_ms): (Duration, u64),
) -> Result<Host, Refusal> {
    let state = match v1::HostState::try_from(host.state) {
        Ok(v1::HostState::Up) => HostState::Up,
        Ok(v1::HostState::Draining) => HostState::Draining,
        Ok(v1::HostState::Down) => HostState::Down,
        Ok(v1::HostState::Unspecified) | Err(_) => {
            let value = host.state.into();
            return Err(Refusal::HostOutOfRange {
                index,
                field: "state",
                value,
                range: "1..=3",
            });
        }
    };
    let load = host.load.as_ref();
    let by_class = [
        ("load.queued", load.map_or(0, |load| load.queued.len())),
        ("load.work_us", load.map_or(0, |load| load.work_us.len())),
    ];
    for (field, classes) in by_class {
        if classes > CLASSES.into() {
            let (value, range) = (classes as i64, "0..=32 classes");
            return Err(Refusal::HostOutOfRange {
                index,
                field,
                value,
                range,
            });
        }
    }
    let level = host.admission_level.unwrap_or(RANKS.into());
    let Some(level) = u16::try_from(level).ok().filter(|level| *level <= RANKS) else {
        let (field, value, range) = ("admission_level", level.into(), "0..=4096");
        return Err(Refusal::HostOutOfRange {
            index,
            field,
            value,
            range,
        });
    };
    Ok(Host {
        address: host.address.clone(),
        state,
        load: host.load.as_ref().map(|load| decode_load(load, received)),
        level: Level::admitting(level),
        capacity_millicores: host.capacity_millicores,
        speed_permille: host.speed_permille,
        preempt_at: (host.preempt_at_unix_ms > 0).then(|| {
            let left = host.preempt_at_unix_ms.saturating_sub(built_unix_ms);
            received.saturating_add(Duration::from_millis(left))
        }),
        zone: host.zone,
    })
}

/// The message's value for a selection.
pub fn encode_selection(selection: Selection) -> v1::Selection {
    match selection {
        Selection::Baseline => v1::Selection::Baseline,
        Selection::Random => v1::Selection::Random,
        Selection::Rendezvous => v1::Selection::Rendezvous,
        Selection::Dynamic => v1::Selection::Dynamic,
        Selection::Estimate => v1::Selection::Estimate,
        Selection::HotCold { .. } => v1::Selection::HotCold,
        Selection::CachingPlan => v1::Selection::CachingPlan,
    }
}

/// The message for a policy.
pub fn encode_policy(policy: &Policy) -> v1::Policy {
    let milliseconds =
        |duration: Duration| Some(u32::try_from(duration.as_millis()).unwrap_or(u32::MAX));
    let (overload, breaker_queued_jobs) = match policy.overload {
        Overload::None => (v1::Overload::None, None),
        Overload::Breaker { queued_jobs } => (v1::Overload::Breaker, Some(queued_jobs)),
        Overload::DynamicBreaker(params) => {
            (v1::Overload::DynamicBreaker, Some(params.queued_jobs))
        }
        Overload::Dagor => (v1::Overload::Dagor, None),
        Overload::Breakwater => (v1::Overload::Breakwater, None),
        Overload::Slots => (v1::Overload::Slots, None),
    };
    let selections = [Some(policy.selection), policy.beside];
    let hot_cold_permille = selections
        .into_iter()
        .find_map(|selection| match selection? {
            Selection::HotCold { permille } => Some(permille.into()),
            _ => None,
        });
    let dynamic_breaker = match policy.overload {
        Overload::DynamicBreaker(params) => Some(params),
        _ => None,
    };
    v1::Policy {
        overload: overload.into(),
        selection: encode_selection(policy.selection).into(),
        breaker_queued_jobs,
        assumed_cached_ms: milliseconds(policy.assumed_cached),
        stale_after_ms: milliseconds(policy.stale_after),
        ranked_hosts: Some(policy.ranked_hosts as u32),
        retry_after_ms: milliseconds(policy.retry_after),
        holding: policy.holding.is_on().then(|| v1::Holding {
            for_eligible_ms: milliseconds(policy.holding.for_eligible),
            for_cached_ms: milliseconds(policy.holding.for_cached),
            max_held: Some(policy.holding.max_held as u32),
        }),
        hedging: policy.hedging.is_on().then(|| v1::Hedging {
            after_ms: milliseconds(policy.hedging.after),
            idle_percent: Some(policy.hedging.idle_percent),
            classes: Some(policy.hedging.classes),
        }),
        hot_cold_permille,
        panic_percent: (policy.panic_threshold != Policy::default().panic_threshold)
            .then_some(policy.panic_threshold),
        salt_check: policy.salt_check.map(|KeyHash(check)| check),
        steer_percent: (policy.steer_percent != Policy::default().steer_percent)
            .then_some(policy.steer_percent),
        receipt_every: (policy.receipt_every != Policy::default().receipt_every)
            .then_some(policy.receipt_every),
        serves: match policy.serves {
            Serves::Jobs => 0,
            Serves::Prompts => v1::Serves::Prompts.into(),
        },
        beside: policy
            .beside
            .map_or(0, |beside| encode_selection(beside).into()),
        crossing_us: u32::try_from(policy.crossing.as_micros()).unwrap_or(u32::MAX),
        dynamic_breaker_wait_ms: dynamic_breaker.and_then(|params| milliseconds(params.wait)),
        dynamic_breaker_least_queued_jobs: dynamic_breaker.map(|params| params.least_queued_jobs),
    }
}
