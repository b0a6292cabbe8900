// SPDX-License-Identifier: Apache-2.0
//! One cluster: policy, hosts, sources.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_saphyr::Spanned;
use weir_exposition::Series;
use weir_policy::holding::{LONGEST_HOLD, MAX_HELD};
use weir_policy::overload::{breaker, dynamic_breaker};
use weir_policy::selection::hot_cold;
use weir_policy::{
    CLASSES, Hedging, Holding, MAX_CACHE_SHARDS, MAX_HOSTS, Overload, Policy, Salt, Selection,
    Serves, dagor, steady,
};

use weir_settings::Scope;

use super::consul::consul;
use super::dns::dns;
use super::engine::Engine;
use super::kubernetes::kubernetes;
use super::kv_events::kv_events;
use super::plan::{plan, planner};
use super::prometheus::prometheus;
use super::server::host_tls;
use super::{Reader, beside, ms};
use crate::config::{
    Cache, Cluster, Control, Dagor, Error, Host, Poll, Registry, Scrape, Written, written,
};

/// No admission decision needs figures older than a day, and no sidecar a longer memory.
const LONGEST: Duration = Duration::from_secs(86_400);

const SERVES: [(&str, Serves); 2] = [("jobs", Serves::Jobs), ("prompts", Serves::Prompts)];

pub(super) fn cluster(
    name: &str,
    written: &written::Cluster,
    scope: &Scope<'_>,
    reader: &mut Reader,
) -> Result<Cluster, Error> {
    let cache_shards = cache_shards(name, written, scope)?;
    let hosts = hosts(written, scope, reader)?;
    let registry = registry(name, written, scope, reader)?;
    let prometheus = match &written.prometheus {
        Some(section) => {
            let scope = scope.section("prometheus").at(section.referenced.line());
            let scraped = written.scrape.is_some();
            Some(prometheus(&section.value, &hosts, scraped, &scope, reader)?)
        }
        None => None,
    };
    let salt = salt(&written.keys, &scope.section("keys"), reader)?;
    let mut cluster = Cluster {
        policy: policy(written, salt.as_ref(), &scope.section("policy"))?,
        withdraws: scope
            .section("policy")
            .boolean(&written.policy.withdraw, "withdraw", true)?,
        dagor: dagor(&written.dagor, &scope.section("dagor"))?,
        cache_shards,
        hosts,
        // Thirty looks at the file: whoever writes it has seen by then that half of the hosts are missing.
        shrink_after: scope.duration(
            &written.shrink_after,
            "shrink_after",
            ms(30_000),
            ms(0)..=LONGEST,
        )?,
        kept: None,
        registry,
        scrape: written
            .scrape
            .as_ref()
            .map(|scrape| self::scrape(scrape, &scope.section("scrape"), reader))
            .transpose()?,
        cache: written
            .cache
            .as_ref()
            .map(|cache| self::cache(cache, &salt, &scope.section("cache"), reader))
            .transpose()?,
        kv_events: None,
        salt,
        prometheus,
        plan: None,
        planner: None,
    };
    if let Some(section) = &written.kv_events {
        let scope = scope.section("kv_events").at(section.referenced.line());
        cluster.kv_events = Some(kv_events(&section.value, &cluster, &scope, reader)?);
    }
    cluster.planner = planner(written, &cluster, scope)?;
    cluster.plan = plan(written, &cluster, scope, reader)?;
    let is_listed = !written.hosts.is_empty() || written.hosts_file.is_some();
    if !is_listed && cluster.registry.is_none() {
        let reason = "nothing names hosts of this cluster: write hosts, hosts_file, consul, dns or kubernetes";
        return Err(scope.refuse(&None, "hosts", reason));
    }
    Ok(cluster)
}

/// Who names hosts beside those that are written.
fn registry(
    name: &str,
    written: &written::Cluster,
    scope: &Scope<'_>,
    reader: &mut Reader,
) -> Result<Option<Registry>, Error> {
    let mut named = Vec::new();
    if let Some(section) = &written.consul {
        let scope = scope.section("consul").at(section.referenced.line());
        let consul = consul(name, &section.value, &scope, reader)?;
        named.push((Registry::Consul(Arc::new(consul)), scope));
    }
    if let Some(section) = &written.dns {
        let scope = scope.section("dns").at(section.referenced.line());
        let dns = dns(&section.value, &scope)?;
        named.push((Registry::Dns(Arc::new(dns)), scope));
    }
    if let Some(section) = &written.kubernetes {
        let scope = scope.section("kubernetes").at(section.referenced.line());
        let kubernetes = kubernetes(name, &section.value, &scope, reader)?;
        named.push((Registry::Kubernetes(Arc::new(kubernetes)), scope));
    }
    if let Some((_, scope)) = named.get(1) {
        let reason =
            "one of consul, dns and kubernetes names a cluster's hosts: leave the others out";
        return Err(scope.refuse(&None, "", reason));
    }
    Ok(named.pop().map(|(registry, _)| registry))
}

fn cache_shards(name: &str, written: &written::Cluster, scope: &Scope<'_>) -> Result<u32, Error> {
    // The name is part of resource names, which are split at slashes.
    if name.is_empty() || name.len() > 255 || name.contains(|c: char| c == '/' || c.is_control()) {
        return Err(scope.refuse(
            &None,
            "",
            "a cluster's name is 1 to 255 bytes without a slash",
        ));
    }
    let shards = scope.whole(
        &written.cache_shards,
        "cache_shards",
        16,
        0..=u64::from(MAX_CACHE_SHARDS),
    )? as u32;
    if shards != 0 && !shards.is_power_of_two() {
        return Err(scope.refuse(
            &written.cache_shards,
            "cache_shards",
            format!("{shards} is not 0 or a power of two"),
        ));
    }
    Ok(shards)
}

/// Reads the salt of the cluster's keys, if there is one.
fn salt(
    written: &written::Keys,
    scope: &Scope<'_>,
    reader: &mut Reader,
) -> Result<Option<Salt>, Error> {
    let field = &written.salt_file;
    scope.note("salt_file", "path", None, None);
    let Some(name) = field else { return Ok(None) };
    let refuse = |why: String| scope.refuse(field, "salt_file", why);
    let contents = reader
        .bytes(&beside(scope.file(), &name.value))
        .map_err(refuse)?;
    let salt = str::from_utf8(&contents).ok().map(str::trim_end);
    let salt = salt.and_then(Salt::parse).ok_or_else(|| {
        let digits = "does not have 32 hexadecimal digits, as `openssl rand -hex 16` prints them";
        refuse(format!("{} {digits}", name.value))
    })?;
    Ok(Some(salt))
}

fn policy(
    cluster: &written::Cluster,
    salt: Option<&Salt>,
    scope: &Scope<'_>,
) -> Result<Policy, Error> {
    let written = &cluster.policy;
    // What is none is refused where it is read.
    let engine = cluster.scrape.as_ref();
    let engine = engine.and_then(|scrape| scrape.metrics.engine.as_ref());
    let named = |(name, _): &&(&str, Engine)| engine.is_some_and(|engine| engine.value == *name);
    let engine = Engine::ALL.iter().find(named);
    let engine = engine.map_or(Engine::Weir, |(_, engine)| *engine);
    let default = Policy::default();
    let overload = overload(written, default.overload, scope)?;
    let (selection, beside) = selections(written, default.selection, scope)?;
    Ok(Policy {
        overload,
        selection,
        beside,
        serves: scope.choice(&written.serves, "serves", engine.serves(), &SERVES)?,
        assumed_cached: scope.duration(
            &written.assumed_cached,
            "assumed_cached",
            default.assumed_cached,
            ms(0)..=LONGEST,
        )?,
        stale_after: scope.duration(
            &written.stale_after,
            "stale_after",
            default.stale_after,
            ms(100)..=LONGEST,
        )?,
        ranked_hosts: scope.whole(
            &written.ranked_hosts,
            "ranked_hosts",
            default.ranked_hosts as u64,
            1..=weir_policy::MAX_RANKED as u64,
        )? as usize,
        // retry-after counts in whole seconds.
        retry_after: scope.duration(
            &written.retry_after,
            "retry_after",
            default.retry_after,
            ms(1000)..=ms(3_600_000),
        )?,
        holding: holding(&written.holding, overload, &scope.section("holding"))?,
        hedging: hedging(&written.hedging, &scope.section("hedging"))?,
        panic_threshold: scope.whole(
            &written.panic_threshold,
            "panic_threshold",
            default.panic_threshold.into(),
            0..=100,
        )? as u32,
        salt_check: salt.map(Salt::check),
        steer_percent: mode(&written.mode, scope)?,
        receipt_every: scope.whole(
            &written.receipt_every,
            "receipt_every",
            default.receipt_every.into(),
            0..=u64::from(u32::MAX),
        )? as u32,
        crossing: crossing(&written.crossing, [Some(selection), beside], scope)?,
    })
}

/// What crossing to another zone takes, which only one selection goes by.
fn crossing(
    written: &Option<written::Text>,
    selections: [Option<Selection>; 2],
    scope: &Scope<'_>,
) -> Result<Duration, Error> {
    let crossing = scope.duration(written, "crossing", Duration::ZERO, ms(0)..=ms(3_600_000))?;
    if !crossing.is_zero() && !selections.contains(&Some(Selection::Estimate)) {
        let reason = "only the selection estimate goes by zones; choose it, or leave this out";
        return Err(scope.refuse(written, "crossing", reason));
    }
    Ok(crossing)
}

/// Of how many percent of the requests the choice is carried out.
fn mode(written: &Option<written::Text>, scope: &Scope<'_>) -> Result<u32, Error> {
    scope.note("mode", "text", Some("live".into()), None);
    let Some(text) = written else { return Ok(100) };
    let percent = |text: &str| text.strip_suffix('%')?.trim().parse::<u32>().ok();
    match text.value.as_str() {
        "live" => Ok(100),
        "shadow" => Ok(0),
        other => percent(other)
            .filter(|percent| *percent <= 100)
            .ok_or_else(|| {
                let reason = format!("{other:?} is not live, shadow or a share such as 10%");
                scope.refuse(written, "mode", reason)
            }),
    }
}

fn overload(
    written: &written::Policy,
    default: Overload,
    scope: &Scope<'_>,
) -> Result<Overload, Error> {
    let queued_jobs = scope.whole(
        &written.breaker_queued_jobs,
        "breaker_queued_jobs",
        breaker::QUEUED_JOBS.into(),
        0..=u64::from(u32::MAX),
    )? as u32;
    let dynamic_breaker = dynamic_breaker(written, queued_jobs, scope)?;
    let named = |policy: Overload| {
        let written = match policy {
            Overload::Breaker { .. } => Overload::Breaker { queued_jobs },
            Overload::DynamicBreaker(_) => Overload::DynamicBreaker(dynamic_breaker),
            Overload::None | Overload::Dagor | Overload::Breakwater | Overload::Slots => policy,
        };
        (policy.as_str(), written)
    };
    let all = Overload::ALL.map(named);
    scope.choice(&written.overload, "overload", default, &all)
}

/// The choice that is carried out, and one that is only made.
fn selections(
    written: &written::Policy,
    default: Selection,
    scope: &Scope<'_>,
) -> Result<(Selection, Option<Selection>), Error> {
    // 2^-0.25, in thousandths as it travels.
    let quantile = f64::from(hot_cold::QUANTILE_PERMILLE) / 1000.0;
    let quantile = scope.share(
        &written.hot_cold_quantile,
        "hot_cold_quantile",
        quantile,
        0.0..=1.0,
    )?;
    let permille = (quantile * 1000.0).round() as u16;
    let named = |policy: Selection| {
        let written = match policy {
            Selection::HotCold { .. } => Selection::HotCold { permille },
            other => other,
        };
        (policy.as_str(), written)
    };
    let all = Selection::ALL.map(named);
    let selection = scope.choice(&written.selection, "selection", default, &all)?;
    let second = all.map(|(name, second)| (name, Some(second)));
    let beside = scope.choice(&written.beside, "beside", None, &second)?;
    if beside == Some(selection) {
        let why = format!(
            "{} is carried out already: name another selection",
            selection.as_str()
        );
        return Err(scope.refuse(&written.beside, "beside", why));
    }
    Ok((selection, beside))
}

fn holding(
    written: &written::Holding,
    overload: Overload,
    scope: &Scope<'_>,
) -> Result<Holding, Error> {
    let default = Holding::beside(overload);
    let range = || ms(0)..=LONGEST_HOLD;
    Ok(Holding {
        for_eligible: scope.duration(
            &written.for_eligible,
            "for_eligible",
            default.for_eligible,
            range(),
        )?,
        for_cached: scope.duration(
            &written.for_cached,
            "for_cached",
            default.for_cached,
            range(),
        )?,
        max_held: scope.whole(
            &written.max_held,
            "max_held",
            default.max_held as u64,
            1..=MAX_HELD as u64,
        )? as usize,
    })
}

fn hedging(written: &written::Hedging, scope: &Scope<'_>) -> Result<Hedging, Error> {
    let default = Hedging::default();
    Ok(Hedging {
        after: scope.duration(&written.after, "after", default.after, ms(0)..=ms(60_000))?,
        idle_percent: scope.whole(
            &written.idle_percent,
            "idle_percent",
            default.idle_percent.into(),
            0..=100,
        )? as u32,
        classes: scope.whole(
            &written.classes,
            "classes",
            default.classes.into(),
            1..=u64::from(CLASSES),
        )? as u32,
    })
}

fn dynamic_breaker(
    written: &written::Policy,
    queued_jobs: u32,
    scope: &Scope<'_>,
) -> Result<dynamic_breaker::Params, Error> {
    let wait = scope.duration(
        &written.dynamic_breaker_wait,
        "dynamic_breaker_wait",
        dynamic_breaker::WAIT,
        ms(1)..=ms(3_600_000),
    )?;
    let least = &written.dynamic_breaker_least_queued_jobs;
    let least_queued_jobs = scope.whole(
        least,
        "dynamic_breaker_least_queued_jobs",
        u64::from(dynamic_breaker::LEAST_QUEUED_JOBS.min(queued_jobs)),
        0..=u64::from(u32::MAX),
    )? as u32;
    if least_queued_jobs > queued_jobs {
        return Err(scope.refuse(
            least,
            "dynamic_breaker_least_queued_jobs",
            format!("{least_queued_jobs} is more than breaker_queued_jobs, {queued_jobs}"),
        ));
    }
    Ok(dynamic_breaker::Params {
        queued_jobs,
        wait,
        least_queued_jobs,
    })
}

/// The band and the target within it.
fn steady(written: &written::Dagor, scope: &Scope<'_>) -> Result<steady::Params, Error> {
    let default = steady::Params::default();
    let duration = |value, name, default, least| {
        scope.duration(value, name, default, ms(least)..=ms(3_600_000))
    };
    let target = duration(&written.target, "target", default.target, 1)?;
    // The band keeps its proportions where only the target is given.
    let default = steady::Params::aiming_at(target);
    let low = duration(&written.low, "low", default.low, 0)?;
    let high = duration(&written.high, "high", default.high, 1)?;
    if low >= target {
        let reason = format!("{low:?} is not below the target, {target:?}");
        return Err(scope.refuse(&written.low, "low", reason));
    }
    if high <= target {
        let reason = format!("{high:?} is not above the target, {target:?}");
        return Err(scope.refuse(&written.high, "high", reason));
    }
    Ok(steady::Params {
        target,
        low,
        high,
        settle: duration(&written.settle, "settle", default.settle, 1000)?,
        half_life: scope.duration(
            &written.half_life,
            "half_life",
            default.half_life,
            ms(100)..=LONGEST,
        )?,
        ..default
    })
}

fn dagor(written: &written::Dagor, scope: &Scope<'_>) -> Result<Dagor, Error> {
    let defaults = Dagor::default();
    let default = defaults.params;
    Ok(Dagor {
        control: scope.choice(
            &written.control,
            "control",
            defaults.control,
            &[
                ("steady", Control::Steady),
                ("paper", Control::Paper),
                ("stalled_jobs", Control::StalledJobs),
            ],
        )?,
        steady: steady(written, scope)?,
        behind: scope.duration(
            &written.behind,
            "behind",
            defaults.behind,
            ms(1)..=ms(3_600_000),
        )?,
        params: dagor::Params {
            threshold: scope.duration(
                &written.threshold,
                "threshold",
                default.threshold,
                ms(1)..=ms(3_600_000),
            )?,
            alpha: scope.share(&written.alpha, "alpha", default.alpha, 0.001..=0.5)?,
            beta: scope.share(&written.beta, "beta", default.beta, 0.001..=0.5)?,
            half_life: scope.duration(
                &written.half_life,
                "half_life",
                default.half_life,
                ms(100)..=LONGEST,
            )?,
        },
        window: scope.duration(
            &written.window,
            "window",
            defaults.window,
            ms(100)..=ms(60_000),
        )?,
        window_requests: scope.whole(
            &written.window_requests,
            "window_requests",
            defaults.window_requests,
            1..=u64::from(u32::MAX),
        )?,
        queued_jobs: scope.whole(
            &written.queued_jobs,
            "queued_jobs",
            defaults.queued_jobs.into(),
            0..=u64::from(u32::MAX),
        )? as u32,
    })
}

/// The hosts written here and those of the hosts file, sorted.
fn hosts(
    written: &written::Cluster,
    scope: &Scope<'_>,
    reader: &mut Reader,
) -> Result<Vec<Host>, Error> {
    scope.note("hosts_file", "path", None, None);
    let mut seen = BTreeMap::new();
    add_hosts(&written.hosts, &scope.section("hosts"), &mut seen)?;
    if let Some(name) = &written.hosts_file {
        let path = beside(scope.file(), &name.value);
        let list: Vec<Spanned<written::Host>> = reader.yaml(&path)?;
        add_hosts(&list, &Scope::root(&path).section("hosts"), &mut seen)?;
    }
    if seen.len() > MAX_HOSTS {
        return Err(scope.refuse(
            &written.hosts_file,
            "hosts",
            format!("{} are more than {MAX_HOSTS}", seen.len()),
        ));
    }
    Ok(seen.into_values().map(|(_, host)| host).collect())
}

fn add_hosts(
    list: &[Spanned<written::Host>],
    scope: &Scope<'_>,
    seen: &mut BTreeMap<String, (String, Host)>,
) -> Result<(), Error> {
    for (index, written) in list.iter().enumerate() {
        let prefix = scope.item(index).at(written.referenced.line());
        let host = host(&written.value, &prefix)?;
        let place = format!("{}:{}", scope.file().display(), written.referenced.line());
        if let Some((first, _)) = seen.get(&host.address) {
            let reason = format!(
                "{} is already a host of this cluster ({first})",
                host.address
            );
            return Err(prefix.refuse(&written.value.address, "address", reason));
        }
        seen.insert(host.address.clone(), (place, host));
    }
    Ok(())
}

/// As long as Consul's meta may be.
const ZONE: &str = "the name of a zone, of 1 to 128 bytes";

fn is_zone(text: &str) -> bool {
    (1..=128).contains(&text.len()) && !text.contains(char::is_control)
}

fn host(written: &written::Host, scope: &Scope<'_>) -> Result<Host, Error> {
    let address = scope.host_address(&written.address, "address")?;
    let other = |value: &Option<written::Text>, field, default: &str| match value {
        Some(_) => scope.host_address(value, field),
        None => Ok(default.to_owned()),
    };
    let metrics_address = other(&written.metrics_address, "metrics_address", &address)?;
    Ok(Host {
        cache_address: other(&written.cache_address, "cache_address", &metrics_address)?,
        metrics_address,
        capacity_millicores: scope.whole(
            &written.capacity_millicores,
            "capacity_millicores",
            0,
            0..=u64::from(u32::MAX),
        )? as u32,
        preempt_at_unix_ms: scope.whole(
            &written.preempt_at_unix_ms,
            "preempt_at_unix_ms",
            0,
            0..=u64::MAX,
        )?,
        zone: match scope.text(&written.zone, "zone", "", is_zone, ZONE)? {
            unknown if unknown.is_empty() => None,
            zone => Some(zone),
        },
        draining: scope.boolean(&written.draining, "draining", false)?,
        written: Some(Written {
            metrics_address: written.metrics_address.is_some(),
            cache_address: written.cache_address.is_some(),
            capacity_millicores: written.capacity_millicores.is_some(),
            preempt_at_unix_ms: written.preempt_at_unix_ms.is_some(),
            zone: written.zone.is_some(),
        }),
        instance: None,
        address,
    })
}

struct PollFields<'a> {
    interval: &'a Option<written::Text>,
    timeout: &'a Option<written::Text>,
    path: &'a Option<written::Text>,
    max_bytes: &'a Option<written::Text>,
    tls: &'a Option<Spanned<written::HostTls>>,
}

fn poll(
    written: PollFields<'_>,
    scope: &Scope<'_>,
    path: &str,
    max_bytes: usize,
    reader: &mut Reader,
) -> Result<Poll, Error> {
    let is_path = |text: &str| {
        text.starts_with('/') && !text.contains('#') && text.parse::<http::Uri>().is_ok()
    };
    Ok(Poll {
        interval: scope.duration(
            written.interval,
            "interval",
            ms(1000),
            reader.limit(ms(100), ms(10))..=ms(3_600_000),
        )?,
        timeout: scope.duration(
            written.timeout,
            "timeout",
            ms(500),
            ms(1)..=reader.limit(ms(5000), ms(60_000)),
        )?,
        path: scope.text(
            written.path,
            "path",
            path,
            is_path,
            "the path of a URL, as in /metrics",
        )?,
        max_bytes: scope.size(
            written.max_bytes,
            "max_bytes",
            max_bytes,
            1024..=reader.limit(max_bytes, 1 << 30),
        )?,
        tls: match written.tls {
            None => None,
            Some(section) => {
                let scope = scope.section("tls").at(section.referenced.line());
                Some(host_tls(&section.value, &scope, reader)?)
            }
        },
    })
}

fn scrape(
    written: &written::Scrape,
    scope: &Scope<'_>,
    reader: &mut Reader,
) -> Result<Scrape, Error> {
    let names = scope.section("metrics");
    let is_metric = |text: &str| {
        let begins = |c: char| c.is_ascii_alphabetic() || c == '_' || c == ':';
        text.starts_with(begins) && Series::parse(text).is_ok()
    };
    let name = |value, field, default| {
        names.text(
            value,
            field,
            default,
            is_metric,
            "a Prometheus metric, as in name or name{label=\"value\"}",
        )
    };
    let is_label = |text: &str| {
        let letter = |c: char| c.is_ascii_alphabetic() || c == '_';
        text.starts_with(letter) && text.chars().all(|c| letter(c) || c.is_ascii_digit())
    };
    let metrics = &written.metrics;
    let engine = names.choice(&metrics.engine, "engine", Engine::Weir, &Engine::ALL)?;
    let running = name(&metrics.running, "running", engine.running().unwrap_or(""))?;
    let in_progress = name(&metrics.in_progress, "in_progress", engine.in_progress())?;
    if metrics.running.is_some() && metrics.in_progress.is_some() {
        let why = "is the sum of running and queued where running is written: write one of them";
        return Err(names.refuse(&metrics.in_progress, "in_progress", why));
    }
    let adds_queued =
        metrics.running.is_some() || engine.running().is_some() && metrics.in_progress.is_none();
    let queuing_delay = engine.queuing_delay().unwrap_or("");
    let queuing_delay = name(&metrics.queuing_delay, "queuing_delay", queuing_delay)?;
    let fields = PollFields {
        interval: &written.interval,
        timeout: &written.timeout,
        path: &written.path,
        max_bytes: &written.max_bytes,
        tls: &written.tls,
    };
    Ok(Scrape {
        poll: poll(fields, scope, engine.path(), 4 << 20, reader)?,
        in_progress: match adds_queued {
            true => running,
            false => in_progress,
        },
        adds_queued,
        queued: name(&metrics.queued, "queued", engine.queued())?,
        floors_queued: engine.floors_queued() && metrics.queued.is_none(),
        queued_priority_label: names.text(
            &metrics.queued_priority_label,
            "queued_priority_label",
            "priority",
            is_label,
            "the name of a label",
        )?,
        queuing_delay: Some(queuing_delay).filter(|name| !name.is_empty()),
        delay_is_late: engine.tells_delay_late() && metrics.queuing_delay.is_none(),
        reading: name(&metrics.reading, "reading", engine.reading())?,
        writing: name(&metrics.writing, "writing", engine.writing())?,
        busy_cores: name(&metrics.busy_cores, "busy_cores", Scrape::BUSY_CORES)?,
        work: name(&metrics.work, "work", Scrape::WORK)?,
        cores: name(&metrics.cores, "cores", Scrape::CORES)?,
        draining: name(&metrics.draining, "draining", Scrape::DRAINING)?,
    })
}

/// Keys of a host, by default.
const MAX_KEYS: u64 = 1_000_000;

fn cache(
    written: &written::Cache,
    salt: &Option<Salt>,
    scope: &Scope<'_>,
    reader: &mut Reader,
) -> Result<Cache, Error> {
    let fields = PollFields {
        interval: &written.interval,
        timeout: &written.timeout,
        path: &written.path,
        max_bytes: &written.max_bytes,
        tls: &written.tls,
    };
    let poll = poll(fields, scope, "/cache", 16 << 20, reader)?;
    if poll.path.contains('?') {
        return Err(scope.refuse(
            &written.path,
            "path",
            "must not have a query; since and epoch are added",
        ));
    }
    Ok(Cache {
        poll,
        max_keys: scope.whole(
            &written.max_keys,
            "max_keys",
            MAX_KEYS,
            1..=reader.limit(MAX_KEYS, 100_000_000),
        )? as usize,
        max_key_bytes: scope.size(&written.max_key_bytes, "max_key_bytes", 4096, 1..=65_536)?,
        salt: salt.clone(),
    })
}
