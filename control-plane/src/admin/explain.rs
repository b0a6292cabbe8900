// SPDX-License-Identifier: Apache-2.0
//! Which hosts a request would go to: the proxies' own decision, on the tables that they are pushed.

use std::time::Duration;

use prost::Message;
use rand::Rng;
use serde::Serialize;
use weir_policy::{
    CLASSES, Cluster, Holder, HostId, HostState, KeyHash, Outcome, Patience, Rank, Request, Table,
    shard_of, user_priority,
};
use weir_tables::{
    CACHE_SHARD_TYPE, HOST_TABLE_TYPE, cache_shard_name, decode_cache_shard, decode_host_table, v1,
};

use crate::state::view::{View, state_name};

/// The filter's default names of classes; others are the filter's configuration, which is not known here.
const NAMES: [(&str, u8); 2] = [("high", 0), ("low", 16)];
const PARAMETERS: &str = "cluster (required), key, priority, user";
/// Hosts that a reader can take in.
const MOST_SHOWN: usize = 50;
/// Any origin will do, if it is later than the oldest figures.
const NOW: Duration = Duration::from_secs(10 * 365 * 86_400);

/// What is wrong with a question, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The parameter.
    pub parameter: String,
    /// Why it does not do.
    pub reason: String,
    /// What would.
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
    /// Name of the key.
    pub key: Option<String>,
    /// B and U.
    pub rank: Rank,
}

impl Question {
    /// Checks parameters of a URL. Without a user, U is 0: the last of its class to be shed.
    pub fn parse(parameters: &[(String, String)], view: &View, hour: u64) -> Result<Self, Problem> {
        let (mut cluster, mut key, mut class, mut user) = (None, None, None, 0);
        for (name, value) in parameters {
            match name.as_str() {
                "cluster" => cluster = Some(value.clone()),
                "key" => key = Some(value.clone()).filter(|key| !key.is_empty()),
                "priority" if value.is_empty() => {}
                "priority" => class = Some(parse_class(value)?),
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
        Ok(Self { cluster, key, rank })
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
    pub key: Option<String>,
    pub key_hash: Option<String>,
    pub class: u8,
    pub user_priority: u16,
    pub rank: u16,
    /// `send`, `hold`, `shed`, `no_host` or `fallback`.
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
    pub cache_shard: Option<String>,
    /// Best first.
    pub ranked: Vec<Row>,
    /// The others, at most fifty.
    pub others: Vec<Row>,
    /// What this answer does not know.
    pub note: &'static str,
}

/// A host as the decision saw it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct Row {
    pub address: String,
    pub state: &'static str,
    /// `known`, `assumed` or `no`.
    pub cached: &'static str,
    pub in_progress: Option<u32>,
    pub queued: Option<u32>,
    pub queuing_delay_ms: Option<f64>,
    pub load_age_ms: Option<u64>,
    /// Older than `stale_after`, so not counted.
    pub load_stale: bool,
    pub admission_level: u16,
    pub admits: bool,
}

/// Decides.
pub fn explain(
    view: &View,
    question: &Question,
    rng: &mut impl Rng,
) -> Result<Explanation, Problem> {
    let name = &question.cluster;
    let not_pushed = || Problem {
        parameter: "cluster".into(),
        reason: "no table has been built yet; try again in a moment".into(),
        possible: Vec::new(),
        unknown: true,
    };
    let pushed = view
        .snapshot
        .get(HOST_TABLE_TYPE, name)
        .ok_or_else(not_pushed)?;
    let shown = view.clusters.get(name).ok_or_else(not_pushed)?;
    let age = Duration::from_millis(shown.table_age_ms.unwrap_or(0));
    let (_, table) =
        decode_host_table(name, &pushed.body, NOW - age).map_err(|refusal| Problem {
            reason: format!("proxies refuse this table: {refusal}"),
            ..not_pushed()
        })?;
    let key = question.key.as_ref().map(|key| KeyHash::of(key.as_bytes()));
    let mut cluster = Cluster::default();
    cluster.set_table(table.clone(), NOW - age, NOW);
    let shard_name = key.filter(|_| table.cache_shards() > 0).map(|key| {
        let shards = table.cache_shards();
        (
            shard_of(key, shards),
            cache_shard_name(name, shards, shard_of(key, shards)),
        )
    });
    let mut holders = Vec::new();
    if let Some((shard, shard_name)) = &shard_name
        && let Some(pushed) = view.snapshot.get(CACHE_SHARD_TYPE, shard_name)
        && let Ok((_, contents)) = decode_cache_shard(shard_name, &pushed.body)
    {
        holders = key
            .map(|key| self::holders(&pushed.body, key))
            .unwrap_or_default();
        cluster.set_cache_shard(*shard, contents);
    }
    let rank = question.rank;
    let request = Request { key, rank };
    let decision = cluster.decide_or_hold(&request, Patience::new(NOW), NOW, rng);
    let (mut held_for, mut hedged_after) = (None, None);
    let (outcome, ranked) = match decision.outcome {
        Outcome::Send(ranked) => {
            hedged_after = cluster.hedge(&ranked, &request, NOW);
            ("send", ranked.as_slice().to_vec())
        }
        Outcome::Hold { until } => {
            held_for = Some(until.saturating_sub(NOW));
            ("hold", Vec::new())
        }
        Outcome::Shed { .. } => ("shed", Vec::new()),
        Outcome::NoHost => ("no_host", Vec::new()),
        Outcome::Fallback => ("fallback", Vec::new()),
    };
    let row = |host: &u32| row(&cluster, &table, *host, &holders, question.rank);
    let all = 0..table.hosts().len() as u32;
    let others: Vec<u32> = all
        .filter(|host| !ranked.contains(host))
        .take(MOST_SHOWN)
        .collect();
    Ok(Explanation {
        cluster: name.clone(),
        key: question.key.clone(),
        key_hash: key.map(|key| format!("{:016x}", key.0)),
        class: question.rank.class(),
        user_priority: question.rank.number() % weir_policy::USERS,
        rank: question.rank.number(),
        outcome,
        reason: decision.reason.as_str(),
        held_for_ms: held_for.map(|time| time.as_millis() as u64),
        hedged_after_ms: hedged_after.map(|time| time.as_millis() as u64),
        overload: shown.overload.clone(),
        selection: shown.selection.clone(),
        table_version: pushed.version.to_string(),
        table_age_ms: age.as_millis() as u64,
        cache_shard: shard_name.map(|(_, name)| name),
        ranked: ranked.iter().filter_map(row).collect(),
        others: others.iter().filter_map(row).collect(),
        note: "A proxy also counts its own requests in flight and its hosts' answers, and breaks ties at random.",
    })
}

/// Who holds the key, as a shard that decodes says.
fn holders(shard: &[u8], key: KeyHash) -> Vec<Holder> {
    let Ok(shard) = v1::CacheShard::decode(shard) else {
        return Vec::new();
    };
    let Ok(found) = shard.keys.binary_search(&key.0) else {
        return Vec::new();
    };
    let start = found
        .checked_sub(1)
        .map_or(0, |before| shard.holders_end[before] as usize);
    let entries = &shard.holders[start..shard.holders_end[found] as usize];
    let holder = |entry: &u32| Holder {
        host: HostId(shard.host_ids[*entry as usize / 2]),
        assumed: entry % 2 == 1,
    };
    entries.iter().map(holder).collect()
}

fn row(
    cluster: &Cluster,
    table: &Table,
    index: u32,
    holders: &[Holder],
    rank: Rank,
) -> Option<Row> {
    let host = table.host(index)?;
    let holder = holders.iter().find(|holder| holder.host == host.id());
    let level = cluster.level(index);
    let load = host.load.as_ref();
    Some(Row {
        address: host.address.clone(),
        state: state_name(host.state),
        cached: match holder {
            Some(holder) if holder.assumed => "assumed",
            Some(_) => "known",
            None => "no",
        },
        in_progress: load.map(|load| load.in_progress),
        queued: load.map(|load| load.queued),
        queuing_delay_ms: load
            .and_then(|load| load.queuing_delay)
            .map(|delay| delay.as_secs_f64() * 1e3),
        load_age_ms: load.map(|load| NOW.saturating_sub(load.observed).as_millis() as u64),
        load_stale: load.is_some_and(|load| load.is_stale(NOW, table.policy().stale_after)),
        admission_level: level.map_or(0, |level| level.ranks()),
        admits: host.state == HostState::Up && level.is_some_and(|level| level.admits(rank)),
    })
}
