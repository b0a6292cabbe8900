// SPDX-License-Identifier: Apache-2.0
//! The hosts that a request would go to: the proxies' own decision, on the tables that they are pushed.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rand::rngs::SmallRng;
use serde::Serialize;
use weir_policy::{
    CLASSES, Cluster, HostState, KeyHash, Keys, MAX_KEYS, Outcome, Patience, Rank, Request, Table,
    Terms, shard_of, user_priority,
};
use weir_tables::{
    CACHE_SHARD_TYPE, HOST_TABLE_TYPE, cache_shard_name, decode_cache_shard, decode_host_table,
};

use weir_fleet::view::{ClusterView, SourceView, View, state_name};

/// The filter's default names of classes; others are the filter's configuration, which is not known here.
const NAMES: [(&str, u8); 2] = [("high", 0), ("low", 16)];
const PARAMETERS: &str = "cluster (required), key, key_separator, priority, user, zone";
/// Hosts that a reader can take in.
const MOST_SHOWN: usize = 50;
/// Any origin will do, if it is later than the oldest figures.
const NOW: Duration = Duration::from_secs(10 * 365 * 86_400);

/// A fault of a question, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The parameter.
    pub parameter: String,
    /// Why it does not do.
    pub reason: String,
    /// Values that would do.
    pub possible: Vec<String>,
    /// The thing named does not exist.
    #[serde(skip)]
    pub unknown: bool,
}

/// A request that might be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// Name of the cluster.
    pub cluster: String,
    /// Names of the keys, in prefix order; nearly always one.
    pub keys: Vec<String>,
    /// B and U.
    pub rank: Rank,
    /// The zone of its caller; empty where unknown.
    pub zone: String,
}

impl Question {
    /// Checks parameters of a URL. Without a user, U is 0: the last of its class to be shed.
    pub fn parse(parameters: &[(String, String)], view: &View, hour: u64) -> Result<Self, Problem> {
        let (mut cluster, mut key, mut separator) = (None, None, None);
        let (mut class, mut user) = (None, 0);
        let mut zone = String::new();
        for (name, value) in parameters {
            match name.as_str() {
                "cluster" => cluster = Some(value.clone()),
                "key" => key = Some(value.as_str()),
                "key_separator" => separator = Some(value.as_str()).filter(|text| !text.is_empty()),
                "priority" if value.is_empty() => {}
                "priority" => class = Some(parse_class(value)?),
                "zone" => zone.clone_from(value),
                "user" if value.is_empty() => {}
                "user" => user = user_priority(value.as_bytes(), hour),
                _ => {
                    let possible = PARAMETERS.split(", ").map(str::to_owned).collect();
                    let reason = "unknown parameter".to_owned();
                    return Err(Problem {
                        parameter: name.clone(),
                        reason,
                        possible,
                        unknown: false,
                    });
                }
            }
        }
        let problem = |reason: &str, unknown| Problem {
            parameter: "cluster".into(),
            reason: reason.into(),
            possible: view.clusters.keys().cloned().collect(),
            unknown,
        };
        let cluster = cluster.ok_or_else(|| problem("required", false))?;
        if !view.clusters.contains_key(&cluster) {
            return Err(problem("no such cluster", true));
        }
        // "low" is the filter's default class.
        let rank = Rank::new(class.unwrap_or(NAMES[1].1), user);
        let key = key.unwrap_or_default();
        let names = separator.map_or(vec![key], |separator| {
            key.split(separator).map(str::trim_ascii).collect()
        });
        let names = names.into_iter().filter(|name| !name.is_empty());
        Ok(Self {
            cluster,
            keys: names.take(MAX_KEYS).map(str::to_owned).collect(),
            rank,
            zone,
        })
    }
}

fn parse_class(text: &str) -> Result<u8, Problem> {
    let named = NAMES
        .iter()
        .find(|(name, _)| *name == text)
        .map(|(_, class)| *class);
    let number = text
        .parse::<u8>()
        .ok()
        .filter(|class| u16::from(*class) < CLASSES);
    named.or(number).ok_or_else(|| Problem {
        parameter: "priority".into(),
        reason: format!("{text:?} is no class"),
        possible: vec![
            "high (0)".into(),
            "low (16)".into(),
            format!("0 to {}", CLASSES - 1),
        ],
        unknown: false,
    })
}

/// The decision and what it was made from.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct Explanation {
    pub cluster: String,
    pub keys: Vec<String>,
    pub key_hashes: Vec<String>,
    pub class: u8,
    pub user_priority: u16,
    pub rank: u16,
    /// `send`, `hold`, `shed` or `fallback`.
    pub outcome: &'static str,
    pub reason: &'static str,
    /// With `hold`: for at most so long, less where the request has a deadline.
    pub held_for_ms: Option<u64>,
    /// With `send`: the second host is tried too after so long without an answer.
    pub hedged_after_ms: Option<u64>,
    pub overload: String,
    pub selection: String,
    pub table_version: String,
    pub table_age_ms: u64,
    pub cache_shards: Vec<String>,
    /// Best first.
    pub ranked: Vec<Row>,
    /// The others, at most fifty.
    pub others: Vec<Row>,
    /// Faults of the sources that are asked for the whole cluster.
    pub trouble: Vec<String>,
    /// The limits of this answer.
    pub note: &'static str,
}

/// A host as the decision saw it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct Row {
    pub address: String,
    pub zone: Option<String>,
    pub state: &'static str,
    /// `known`, `assumed` or `no`.
    pub cached: &'static str,
    /// How many of the keys, from the first on.
    pub cached_keys: usize,
    pub in_progress: Option<u32>,
    pub queued: Option<u32>,
    pub queuing_delay_ms: Option<f64>,
    pub load_age_ms: Option<u64>,
    /// `scrape`, `report`, `prometheus` or `callers`.
    pub load_from: Option<&'static str>,
    /// Older than `stale_after`, so not counted.
    pub load_stale: bool,
    pub admission_level: u16,
    pub admits: bool,
    /// 0 where unknown.
    pub capacity_millicores: u32,
    /// With `estimate`, of the hosts that were looked at: when the request would be done there.
    pub estimate: Option<Estimate>,
    /// Faults of its sources' answers.
    pub trouble: Vec<String>,
}

/// What a host was judged by: `finish = wait + crossing + (fetch + run) ÷ speed`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct Estimate {
    pub finish_ms: f64,
    pub wait_ms: f64,
    /// For being in another zone than the caller.
    pub crossing_ms: f64,
    /// To fetch what is not there, with what that delays others.
    pub fetch_ms: f64,
    pub run_ms: f64,
    pub speed: f64,
    /// Cores that are held, of those that there are.
    pub fullness: f64,
    /// Others come first: it fails, or goes away before the request would be done.
    pub avoided: bool,
}

impl Estimate {
    fn of(terms: &Terms) -> Self {
        Self {
            finish_ms: terms.finish() / 1e6,
            wait_ms: terms.wait / 1e6,
            crossing_ms: terms.crossing / 1e6,
            fetch_ms: terms.fetch / 1e6,
            run_ms: terms.run / 1e6,
            speed: terms.speed,
            fullness: terms.fullness,
            avoided: terms.avoided,
        }
    }
}

/// Decides.
pub fn explain(
    view: &View,
    question: &Question,
    mut rng: SmallRng,
) -> Result<Explanation, Problem> {
    let name = &question.cluster;
    let Pushed {
        shown,
        version,
        age,
        table,
    } = Pushed::find(view, name)?;
    let table = table.seen_from(&question.zone);
    let names = question.keys.iter();
    let hash = |name: &String| KeyHash::under(shown.salt.as_ref(), name.as_bytes());
    let keys = Keys::new(names.map(hash));
    let mut cluster = Cluster::default();
    cluster.set_table(table.clone(), NOW - age, NOW);
    let cache_shards = read_shards(&mut cluster, view, name, table.cache_shards(), &keys);
    let rank = question.rank;
    let request = Request { keys, rank };
    let mut before = rng.clone();
    let decision = cluster.decide_or_hold(&request, Patience::new(NOW), NOW, &mut rng);
    let account = cluster.account(&request, &decision, NOW, &mut before);
    let answer = Answer::to(&request, decision.outcome, &cluster);
    let row = |host: &u32| {
        let mut looks = account.terms.iter();
        let estimate = looks.find(|look| look.host == *host).map(Estimate::of);
        let row = row(&cluster, &table, *host, &request, shown)?;
        Some(Row { estimate, ..row })
    };
    let all = 0..table.hosts().len() as u32;
    let others: Vec<u32> = all
        .filter(|host| !answer.ranked.contains(host))
        .take(MOST_SHOWN)
        .collect();
    let hashes = request.keys.as_slice().iter();
    let millis = |time: Duration| time.as_millis() as u64;
    Ok(Explanation {
        cluster: name.clone(),
        keys: question.keys.clone(),
        key_hashes: hashes.map(|key| format!("{:016x}", key.0)).collect(),
        class: rank.class(),
        user_priority: rank.number() % weir_policy::USERS,
        rank: rank.number(),
        outcome: answer.outcome,
        reason: decision.reason.as_str(),
        held_for_ms: answer.held_for.map(millis),
        hedged_after_ms: answer.hedged_after.map(millis),
        overload: shown.overload.clone(),
        selection: shown.selection.clone(),
        table_version: version,
        table_age_ms: millis(age),
        cache_shards,
        ranked: answer.ranked.iter().filter_map(row).collect(),
        others: others.iter().filter_map(row).collect(),
        trouble: trouble(&shown.sources),
        note: "A proxy also counts its own requests in flight and its hosts' answers, and breaks ties at random.",
    })
}

/// A cluster's table as proxies are pushed it.
struct Pushed<'a> {
    shown: &'a ClusterView,
    version: String,
    age: Duration,
    table: Table,
}

impl<'a> Pushed<'a> {
    fn find(view: &'a View, name: &str) -> Result<Self, Problem> {
        let problem = |reason| Problem {
            parameter: "cluster".into(),
            reason,
            possible: Vec::new(),
            unknown: true,
        };
        let shown = view.clusters.get(name);
        let not_pushed = || problem(shown.map_or_else(String::new, why_not_pushed));
        let pushed = view.snapshot.get(HOST_TABLE_TYPE, name);
        let (shown, pushed) = shown.zip(pushed).ok_or_else(not_pushed)?;
        let age = Duration::from_millis(shown.table_age_ms.unwrap_or(0));
        let table = decode_host_table(name, &pushed.body, NOW - age);
        let refused = |refusal| problem(format!("proxies refuse this table: {refusal}"));
        let (_, table) = table.map_err(refused)?;
        Ok(Self {
            shown,
            version: pushed.version.to_string(),
            age,
            table,
        })
    }
}

/// The outcome of a decision, as it is shown.
struct Answer {
    outcome: &'static str,
    /// Indices of hosts, best first.
    ranked: Vec<u32>,
    held_for: Option<Duration>,
    hedged_after: Option<Duration>,
}

impl Answer {
    fn to(request: &Request, outcome: Outcome, cluster: &Cluster) -> Self {
        let answer = |outcome| Self {
            outcome,
            ranked: Vec::new(),
            held_for: None,
            hedged_after: None,
        };
        match outcome {
            Outcome::Send(ranked) => Self {
                ranked: ranked.as_slice().to_vec(),
                hedged_after: cluster.hedge(&ranked, request, NOW),
                ..answer("send")
            },
            Outcome::Hold { until } => Self {
                held_for: Some(until.saturating_sub(NOW)),
                ..answer("hold")
            },
            Outcome::Shed { .. } => answer("shed"),
            Outcome::Fallback => answer("fallback"),
        }
    }
}

/// Reads the shards that have these keys, and names them.
fn read_shards(
    cluster: &mut Cluster,
    view: &View,
    name: &str,
    shards: u32,
    keys: &Keys,
) -> Vec<String> {
    let keys = keys.as_slice().iter();
    let asked_of: BTreeSet<u32> = match shards {
        0 => BTreeSet::new(),
        shards => keys.map(|key| shard_of(*key, shards)).collect(),
    };
    let mut names = Vec::new();
    for shard in asked_of {
        let name = cache_shard_name(name, shards, shard);
        if let Some(pushed) = view.snapshot.get(CACHE_SHARD_TYPE, &name)
            && let Ok((_, contents)) = decode_cache_shard(&name, &pushed.body)
        {
            cluster.set_cache_shard(shard, contents);
        }
        names.push(name);
    }
    names
}

/// With what discovery says, where the hosts are still to be found.
fn why_not_pushed(cluster: &ClusterView) -> String {
    let Some(reason) = cluster.not_pushed else {
        return "no table has been built yet; try again in a moment".into();
    };
    let said = trouble(&cluster.sources).join("; ");
    match said.is_empty() {
        true => reason.into(),
        false => format!("{reason}; {said}"),
    }
}

fn trouble(sources: &BTreeMap<&'static str, SourceView>) -> Vec<String> {
    let trouble = sources.iter().flat_map(|(source, view)| {
        let named = view
            .trouble()
            .map(move |reason| format!("{source}: {reason}"));
        named.collect::<Vec<_>>()
    });
    trouble.collect()
}

fn row(
    cluster: &Cluster,
    table: &Table,
    index: u32,
    request: &Request,
    shown: &ClusterView,
) -> Option<Row> {
    let host = table.host(index)?;
    let mut seen = shown.hosts.iter();
    let seen = seen.find(|seen| seen.address == host.address);
    let keys = request.keys.as_slice().iter();
    let prefix: Vec<_> = keys
        .map_while(|key| cluster.cache().holder(*key, host.id()))
        .collect();
    let level = cluster.level(index);
    let load = host.load.as_ref();
    Some(Row {
        address: host.address.clone(),
        zone: seen.and_then(|seen| seen.zone.clone()),
        state: state_name(host.state),
        cached: match prefix.as_slice() {
            [] => "no",
            held if held.iter().any(|holder| holder.assumed) => "assumed",
            _ => "known",
        },
        cached_keys: prefix.len(),
        in_progress: load.map(|load| load.in_progress),
        queued: load.map(|load| load.queued),
        queuing_delay_ms: load
            .and_then(|load| load.queuing_delay)
            .map(|delay| delay.as_secs_f64() * 1e3),
        load_age_ms: load.map(|load| NOW.saturating_sub(load.observed).as_millis() as u64),
        load_from: load.and(seen).and_then(|seen| seen.pushed_from),
        load_stale: load.is_some_and(|load| load.is_stale(NOW, table.policy().stale_after)),
        admission_level: level.map_or(0, |level| level.ranks()),
        admits: host.state == HostState::Up
            && level.is_some_and(|level| level.admits(request.rank)),
        capacity_millicores: host.capacity_millicores,
        estimate: None,
        trouble: seen.map_or(Vec::new(), |seen| trouble(&seen.sources)),
    })
}
