// SPDX-License-Identifier: Apache-2.0
//! What holds of a mesh's entries and what stands beside them, and what does not.

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::Value;
use weir_consul::{Outcome, Share, is_ours};

use super::client::Client;
use super::evidence::{Callers, Evidence, Reached, Read, Wanted, Way};
use super::upstream::{Reach, Sidecar};
use super::wish;
use crate::doctor::Diagnosis;
use crate::doctor::finding::{Finding, Look, Verdict};
use crate::flags::consul::Check;
use crate::screen::counted;

/// Looks at everything.
///
/// # Errors
/// Consul does not answer at all, or what is asked for cannot be.
pub async fn check(asked: &Check, variable: impl Fn(&str) -> Option<String>) -> Result<Diagnosis> {
    let client = Client::federated(&asked.server, variable).await?;
    let weir = wish::weir(&asked.names, &asked.filter)?;
    let datacenter = client.datacenter().await?;
    wish::tried(&weir, &datacenter)?;
    let shares = weir.shares(&datacenter)?;
    let evidence = Evidence::gather(&client, &weir, datacenter, shares).await;
    Ok(Diagnosis::new(
        findings(&evidence),
        "all of Consul's part holds; weirctl doctor looks at the sidecars",
    ))
}

fn findings(evidence: &Evidence) -> Vec<Finding> {
    let mut found = Vec::new();
    for (share, stands) in &evidence.entries {
        found.extend(entry(share, stands));
    }
    for one in &evidence.reached {
        found.extend(heeded(one));
        found.extend(protocol(one));
    }
    found.extend(extensions(evidence));
    for way in &evidence.ways {
        found.extend(intention(way));
    }
    let mut seen = None;
    for way in &evidence.ways {
        if seen.replace(&way.to) != Some(&way.to) {
            found.extend(instances(way));
        }
    }
    for (name, read) in &evidence.callers {
        found.extend(caller(name, read, &evidence.wanted));
    }
    found
}

/// What was read; else the finding says why it was not.
fn known<'a, T>(look: &mut Look<'_>, read: &'a Read<T>) -> Option<&'a T> {
    match read {
        Ok(value) => Some(value),
        Err(unread) => {
            look.broken(format!("it cannot be read: {}", unread.said), &*unread.mend);
            None
        }
    }
}

fn entry(share: &Share, stands: &Read<Option<Value>>) -> Vec<Finding> {
    const APPLY: &str = "weirctl consul apply, with these options";
    let at = format!("{} {}", share.kind, share.name);
    let mut look = Look::at("entry", &at);
    let Some(stands) = known(&mut look, stands) else {
        return look.or_fine("");
    };
    match share.with(stands.as_ref(), false) {
        Err(refused) => {
            for reason in refused.reasons {
                look.broken(
                    reason,
                    "change that, then weirctl consul apply with these options",
                );
            }
        }
        Ok(plan) => match plan.outcome {
            Outcome::Same => (),
            Outcome::Created => drop(look.broken("there is none", APPLY)),
            _ if plan.changes.is_empty() => {
                look.poor(
                    "it says what apply would write, and apply has not written it",
                    APPLY,
                );
            }
            _ => drop(look.broken(
                format!("it is otherwise: {}", plan.changes.join("; ")),
                APPLY,
            )),
        },
    }
    look.or_fine("as apply writes it")
}

/// Whether Consul heeds the override.
pub(super) fn heeded(reached: &Reached) -> Vec<Finding> {
    let mut look = Look::at("override", &reached.name);
    let Some(chain) = known(&mut look, &reached.chain) else {
        return look.or_fine("");
    };
    let heeded = chain["Default"] == true;
    let mut named = 0;
    for (kind, entry) in &reached.beside {
        let Some(entry) = known(&mut look, entry) else {
            continue;
        };
        let Some(entry) = entry.as_ref().filter(|_| !heeded) else {
            continue;
        };
        let Some(does) = does(kind, entry) else {
            continue;
        };
        named += 1;
        ignored(
            &mut look,
            reached,
            &format!("its {kind} {does}"),
            &mend(kind, &reached.name),
        );
    }
    if !heeded && named == 0 {
        let mend = format!("look at /v1/discovery-chain/{}", reached.name);
        ignored(
            &mut look,
            reached,
            "its discovery chain is not the default one",
            &mend,
        );
    }
    look.or_fine("Consul heeds it: no service-router, -splitter or -resolver changes the way")
}

fn ignored(look: &mut Look<'_>, reached: &Reached, why: &str, mend: &str) {
    if reached.is_control {
        let said =
            format!("Consul ignores it, so a weir-control that is frozen is not noticed: {why}");
        look.poor(said, mend);
    } else {
        let said = format!("CONSUL IGNORES IT: the filter chooses and NOBODY FOLLOWS: {why}");
        look.broken(said, mend);
    }
}

/// What such an entry does to requests; none where it does nothing.
fn does(kind: &str, entry: &Value) -> Option<String> {
    const OF_RESOLVERS: [&str; 8] = [
        "Subsets",
        "DefaultSubset",
        "Redirect",
        "Failover",
        "ConnectTimeout",
        "RequestTimeout",
        "LoadBalancer",
        "PrioritizeByLocality",
    ];
    let list = |field: &str| entry[field].as_array().map_or(0, Vec::len);
    match kind {
        "service-router" => Some(format!("has {}", counted(list("Routes"), "route"))),
        "service-splitter" => Some(format!("has {}", counted(list("Splits"), "split"))),
        _ => {
            let is_set =
                |value: &Value| !matches!(value, Value::Null) && *value != "" && *value != "0s";
            let set = OF_RESOLVERS
                .into_iter()
                .filter(|name| is_set(&entry[*name]));
            let set: Vec<_> = set.collect();
            (!set.is_empty()).then(|| format!("sets {}", set.join(", ")))
        }
    }
}

fn mend(kind: &str, name: &str) -> String {
    let instead = match kind {
        "service-router" => {
            "retries are builtin/lua's, which apply writes; for what goes to another service, give callers an upstream of it"
        }
        "service-splitter" => {
            "policy.mode of weir-control moves a share of the keys; another service needs an upstream of its own"
        }
        _ => {
            "Weir takes the place of LoadBalancer; instances are chosen by consul.filter and consul.tags of weir-control; \
             of a Redirect name the target as --service, and as the callers' upstream; Failover has no place beside Weir"
        }
    };
    format!("consul config delete -kind {kind} -name {name}. {instead}")
}

/// What requests to it are, by all entries together.
fn protocol(reached: &Reached) -> Vec<Finding> {
    let wanted = if reached.is_control { "grpc" } else { "http" };
    let mut look = Look::at("protocol", &reached.name);
    let Ok(chain) = &reached.chain else {
        return Vec::new();
    };
    let said = chain["Protocol"].as_str().unwrap_or_default();
    if said != wanted {
        look.broken(
            format!("callers speak {said:?} to it, and Weir needs {wanted:?}"),
            format!("Protocol = {wanted:?} in its service-defaults: weirctl consul apply"),
        );
    }
    look.or_fine(said)
}

/// Those of all sidecars come before a service's own.
fn extensions(evidence: &Evidence) -> Vec<Finding> {
    let mut look = Look::at("extensions", "proxy-defaults global");
    let Some(entry) = known(&mut look, &evidence.proxy_defaults) else {
        return look.or_fine("");
    };
    let all = entry
        .as_ref()
        .and_then(|entry| entry["EnvoyExtensions"].as_array());
    let all = all.map(Vec::as_slice).unwrap_or_default();
    if all.iter().any(is_ours) {
        look.broken(
            "Weir's are here too, so callers' sidecars have them twice",
            "take them out here: apply writes them for the callers alone",
        );
    }
    let names = all.iter().filter_map(|one| one["Name"].as_str());
    let names = names.collect::<Vec<_>>().join(", ");
    look.or_fine(match names.is_empty() {
        true => "none for all sidecars".to_owned(),
        false => format!("{names}, before Weir's"),
    })
}

fn intention(way: &Way) -> Vec<Finding> {
    let at = format!("{} to {}", way.from, way.to);
    let mut look = Look::at("intentions", &at);
    let Some(allowed) = known(&mut look, &way.allowed) else {
        return look.or_fine("");
    };
    if !allowed && let Some(all) = known(&mut look, &way.intentions) {
        let is_it = |one: &&Value| one["SourceName"] == *way.from || one["SourceName"] == "*";
        let counts = all.iter().find(is_it);
        let (from, to) = (&way.from, &way.to);
        match counts {
            Some(one)
                if one["Permissions"]
                    .as_array()
                    .is_some_and(|all| !all.is_empty()) =>
            {
                look.poor(
                    format!("what is allowed depends on the request, by the intention of {}", one["SourceName"]),
                    format!("see that it allows what {from} asks of {to}: weir-control is asked by POST to /envoy.service.* and /weir.v1.*"),
                );
            }
            Some(one) => drop(look.broken(
                format!(
                    "denied by the intention of {} to {}",
                    one["SourceName"], one["DestinationName"]
                ),
                format!("consul intention create -allow -replace {from} {to}"),
            )),
            None => drop(look.broken(
                "denied by default, and no intention allows it",
                "weirctl consul apply, with these options",
            )),
        }
    }
    look.or_fine("allowed")
}

fn instances(way: &Way) -> Vec<Finding> {
    let mut look = Look::at("instances", &way.to);
    let Some(all) = known(&mut look, &way.instances) else {
        return look.or_fine("");
    };
    let ill: Vec<_> = all.iter().filter_map(ailment).collect();
    if all.is_empty() {
        look.broken(
            "no sidecar of it is registered",
            "register it with Connect.SidecarService, and start its sidecar",
        );
    } else if ill.len() == all.len() {
        look.broken(
            format!("none is healthy: {}", ill[0]),
            "see the log of that instance",
        );
    } else if let [first, ..] = &*ill {
        look.poor(
            format!("{} of {} are not healthy: {first}", ill.len(), all.len()),
            "see the log of that instance",
        );
    }
    look.or_fine(counted(all.len(), "healthy instance"))
}

/// Its first check that does not pass.
fn ailment(instance: &Value) -> Option<String> {
    let checks = instance["Checks"].as_array()?;
    let check = checks.iter().find(|check| check["Status"] != "passing")?;
    let text = |value: &Value| value.as_str().unwrap_or_default().trim().to_owned();
    let id = text(&instance["Service"]["ID"]);
    let (name, status) = (text(&check["Name"]), text(&check["Status"]));
    let output = text(&check["Output"]);
    let output = output.lines().next().unwrap_or_default();
    Some(format!("{id:?}: check {name:?} is {status}: {output}"))
}

fn caller(name: &str, callers: &Callers, wanted: &Wanted) -> Vec<Finding> {
    let mut look = Look::at("callers", name);
    let mut sidecars = Vec::new();
    for read in &callers.sidecars {
        if let Some(rows) = known(&mut look, read) {
            sidecars.extend(rows.iter().map(Sidecar::of));
        }
    }
    if sidecars.is_empty() && callers.sidecars.iter().all(Result::is_ok) {
        look.broken(
            "no sidecar of it is registered",
            "register it with Connect.SidecarService, and start its sidecar",
        );
    }
    for unread in callers.chains.values().filter(|read| read.is_err()) {
        known(&mut look, unread);
    }
    for sidecar in &sidecars {
        for upstream in wanted.upstreams.keys() {
            let reaches = reaches(sidecar, upstream, callers, wanted);
            if !reaches.iter().any(Reach::is_weirs) {
                look.broken(
                    format!("{:?} has no upstream {upstream:?}", sidecar.id),
                    "add it to Proxy.Upstreams of the registration",
                );
            }
            for reach in &reaches {
                reaching(&mut look, sidecar.id, upstream, reach, wanted);
            }
        }
        if sidecar.is_transparent() && !wanted.trust_is_said {
            look.broken(
                format!(
                    "{:?} is a transparent proxy, whose application is not on loopback: the filter BELIEVES NONE of its \
                     headers, no key and no priority",
                    sidecar.id
                ),
                "--trust any, as nobody else reaches that listener; if none is to be believed, say it: --trust none",
            );
        }
    }
    look.or_fine(format!(
        "{} with all upstreams",
        counted(sidecars.len(), "sidecar")
    ))
}

/// Each way of a sidecar to a service of this name.
fn reaches(sidecar: &Sidecar<'_>, name: &str, callers: &Callers, wanted: &Wanted) -> Vec<Reach> {
    let Wanted {
        datacenter,
        upstreams,
        ..
    } = wanted;
    let cluster = upstreams.get(name).and_then(Option::as_ref);
    let listed = sidecar.upstreams(name).map(|upstream| {
        let chain = callers.chain(&upstream).and_then(|read| read.as_ref().ok());
        upstream.reach(cluster, datacenter, chain.unwrap_or(&Value::Null))
    });
    let mut all: Vec<_> = listed.collect();
    // What is not listed is in the sidecar's own data centre.
    if all.is_empty() && sidecar.is_transparent() {
        all.push(match sidecar.datacenter == datacenter.name {
            true => Reach::Hosts,
            false => Reach::Astray(sidecar.datacenter.to_owned()),
        });
    }
    all
}

/// Callers whose requests fail by Weir's clusters, as far as that can be read.
pub(super) fn failing(all: &BTreeMap<String, Callers>, wanted: &Wanted) -> Vec<Finding> {
    broken(all, |look, callers| {
        for sidecar in callers.sidecars.iter().flatten().flatten().map(Sidecar::of) {
            for upstream in &wanted.hosts {
                let reaches = reaches(&sidecar, upstream, callers, wanted);
                for reach in reaches.iter().filter(|reach| reach.is_fatal()) {
                    reaching(look, sidecar.id, upstream, reach, wanted);
                }
            }
        }
    })
}

/// What could not be read of callers, so that it is not known whether their requests fail.
pub(super) fn unread(all: &BTreeMap<String, Callers>) -> Vec<Finding> {
    broken(all, |look, callers| {
        for read in &callers.sidecars {
            known(look, read);
        }
        for read in callers.chains.values() {
            known(look, read);
        }
    })
}

/// What is broken, by a look at each of the callers.
fn broken(
    all: &BTreeMap<String, Callers>,
    looks: impl Fn(&mut Look<'_>, &Callers),
) -> Vec<Finding> {
    let mut found = Vec::new();
    for (name, callers) in all {
        let mut look = Look::at("callers", name);
        looks(&mut look, callers);
        found.extend(look.or_fine(""));
    }
    found.retain(|finding| finding.verdict == Verdict::Broken);
    found
}

fn reaching(look: &mut Look<'_>, id: &str, upstream: &str, reach: &Reach, wanted: &Wanted) {
    const FRONT: &str = "a front that chooses there (weirctl consul service caller --front)";
    let its = &wanted.datacenter.name;
    let hosts = wanted.hosts.contains(upstream);
    match reach {
        Reach::Hosts | Reach::Elsewhere => (),
        // Tables come all the same: the filter asks for the cluster by Weir's name.
        Reach::Gateway | Reach::Renamed | Reach::Peer(_) if !hosts => (),
        Reach::Gateway => drop(look.broken(
            format!(
                "{id:?} reaches {upstream:?} of {its} through a mesh gateway, the only address that Envoy has: the filter \
                 chooses and NOBODY FOLLOWS; requests go where the gateway sends them"
            ),
            format!(
                "MeshGateway.Mode none in all entries and registrations, where it reaches the sidecars of {its}; else take an \
                 upstream of {FRONT} in place of this"
            ),
        )),
        Reach::Peer(peer) => drop(look.poor(
            format!(
                "{id:?} reaches {upstream:?} of peer {peer:?} too, by its mesh gateways: the filter chooses nothing there"
            ),
            format!("have the peer export {FRONT}"),
        )),
        Reach::Renamed => drop(look.broken(
            format!(
                "{id:?} sets at its upstream {upstream:?} what the service's own entry does not (MeshGateway, protocol or \
                 connect_timeout_ms): Consul has another name for that cluster, and ITS REQUESTS FAIL by Weir's"
            ),
            format!(
                "take it out there, and out of UpstreamConfig of its entry; MeshGateway may stand in proxy-defaults or the \
                 service-defaults of {upstream}, if nothing else differs"
            ),
        )),
        Reach::Astray(there) if !hosts => drop(look.broken(
            format!("{id:?} reaches {upstream:?} of {there}, and Weir's cluster of it is of {its}"),
            format!("{upstream}@{its} in that upstream's place: tables are of hosts in {its}"),
        )),
        Reach::Astray(there) => drop(look.broken(
            format!(
                "{id:?} reaches {upstream:?} of {there}, and Consul gives it the cluster of {its} too, as overrides know no \
                 data centre: ITS REQUESTS FAIL, and those for {its} may go to {there}"
            ),
            format!("take that upstream out, and one of {FRONT} in its place; a caller in {there} needs a name of its own"),
        )),
        Reach::Own => drop(look.broken(
            format!("{id:?} has another envoy_cluster_json than Weir's for {upstream:?}"),
            "if apply has just written it, look again in a moment; else take it out of the registration",
        )),
    }
}

#[cfg(test)]
mod tests;
