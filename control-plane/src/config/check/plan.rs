// SPDX-License-Identifier: Apache-2.0
//! A caching plan: CSV of keys and the hosts that they are assigned to.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::Path;

use weir_policy::{HostId, KeyHash, Salt, Selection};
use weir_settings::Scope;

use super::{Reader, beside, ms};
use crate::config::{Cluster, Error, Plan, Planning, written};

const HEADER: &str = "key,address";
/// As many as are believed of one host's cache by default.
const MOST: usize = 1_000_000;

/// Reads the plan of a cluster that is checked but for it.
pub(super) fn plan(
    written: &written::Cluster,
    cluster: &Cluster,
    scope: &Scope<'_>,
    reader: &mut Reader,
) -> Result<Option<Plan>, Error> {
    let wanted = cluster.policy.selection == Selection::CachingPlan;
    let field = &written.caching_plan;
    scope.note("caching_plan", "path", None, None);
    let refuse = |reason: &str| Err(scope.refuse(field, "caching_plan", reason));
    let Some(name) = field else {
        return match wanted && cluster.planner.is_none() {
            true => refuse(
                "required with policy.selection caching_plan: the name of a CSV file; or write planner, which learns it",
            ),
            false => Ok(None),
        };
    };
    if cluster.planner.is_some() {
        return refuse(
            "a plan that is written and one that is learned exclude each other; leave out planner",
        );
    }
    if let Some(reason) = unfit(cluster) {
        return refuse(reason);
    }
    let path = beside(scope.file(), &name.value);
    let bytes = reader
        .bytes(&path)
        .map_err(|reason| scope.refuse(field, "caching_plan", reason))?;
    let hosts = cluster.hosts.iter();
    let hosts: BTreeMap<&str, HostId> = hosts
        .map(|host| (host.address.as_str(), HostId::of(&host.address)))
        .collect();
    // Hosts that are found may not be there yet.
    let found = cluster.registry.is_some();
    let host = |address: &str| {
        let written = hosts.get(address).copied();
        let canonical = address
            .parse()
            .map(|address: SocketAddr| address.to_string());
        let may_come = found && canonical.is_ok_and(|canonical| canonical == address);
        written.or_else(|| may_come.then(|| HostId::of(address)))
    };
    read(&path, &bytes, cluster.salt.as_ref(), host).map(Some)
}

/// Why the cluster can have no plan.
fn unfit(cluster: &Cluster) -> Option<&'static str> {
    if cluster.policy.selection != Selection::CachingPlan {
        return Some("only policy.selection caching_plan reads it");
    }
    if cluster.cache.is_some() {
        return Some("a plan and what caches say exclude each other; leave out cache");
    }
    if cluster.kv_events.is_some() {
        return Some("a plan and what caches say exclude each other; leave out kv_events");
    }
    let is_pushed = cluster.cache_shards > 0;
    (!is_pushed).then_some("the plan is pushed as cache contents; cache_shards must not be 0")
}

/// Reads how a plan is learned, in a cluster that is checked but for it.
pub(super) fn planner(
    written: &written::Cluster,
    cluster: &Cluster,
    scope: &Scope<'_>,
) -> Result<Option<Planning>, Error> {
    let Some(section) = &written.planner else {
        return Ok(None);
    };
    let line = section.referenced.line();
    if let Some(reason) = unfit(cluster) {
        return Err(scope.at(line).refuse(&None, "planner", reason));
    }
    let scope = scope.section("planner").at(line);
    let (default, written) = (Planning::default(), &section.value);
    Ok(Some(Planning {
        every: scope.duration(
            &written.every,
            "every",
            default.every,
            ms(1000)..=ms(3_600_000),
        )?,
        memory: scope.duration(
            &written.memory,
            "memory",
            default.memory,
            ms(1000)..=ms(86_400_000),
        )?,
        moved_per_minute: scope.share(
            &written.moved_per_minute,
            "moved_per_minute",
            default.moved_per_minute,
            0.0..=1.0,
        )?,
    }))
}

fn read(
    path: &Path,
    bytes: &[u8],
    salt: Option<&Salt>,
    host: impl Fn(&str) -> Option<HostId>,
) -> Result<Plan, Error> {
    let refuse = |line: usize, field: &str, reason: String| Error {
        file: path.to_owned(),
        line: line as u64,
        field: field.to_owned(),
        reason,
    };
    let mut plan = Plan::new();
    let mut planned = BTreeSet::new();
    let lines = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    for (line, bytes) in (1..).zip(lines.split(|byte| *byte == b'\n')) {
        let text = str::from_utf8(bytes).map_err(|_| refuse(line, "", "not UTF-8".to_owned()))?;
        let text = text.strip_suffix('\r').unwrap_or(text);
        if line == 1 {
            if text != HEADER {
                return Err(refuse(line, "", format!("the first line must be {HEADER}")));
            }
            continue;
        }
        // An address has no comma, a key may.
        let Some((key, address)) = text.rsplit_once(',') else {
            return Err(refuse(
                line,
                "",
                format!("not a key, a comma and an address: {text:?}"),
            ));
        };
        if key.is_empty() {
            return Err(refuse(line, "key", "empty".to_owned()));
        }
        let Some(host) = host(address) else {
            return Err(refuse(
                line,
                "address",
                format!("{address:?} is no host of this cluster"),
            ));
        };
        let hash = KeyHash::under(salt, key.as_bytes());
        if !planned.insert((hash, host)) {
            return Err(refuse(
                line,
                "key",
                format!("{key:?} is at {address} already"),
            ));
        }
        if planned.len() > MOST {
            return Err(refuse(line, "", format!("a plan has at most {MOST} lines")));
        }
        plan.entry(host).or_default().push(hash);
    }
    if planned.is_empty() {
        return Err(refuse(1, "", "plans no key".to_owned()));
    }
    Ok(plan)
}
