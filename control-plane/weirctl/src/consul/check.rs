// SPDX-License-Identifier: Apache-2.0
//! What holds of a mesh's entries and what stands beside them, and what does not.

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::Value;
use weir_consul::{Outcome, Share, is_ours};

use super::client::Client;
use super::evidence::{Evidence, Reached, Read, Way};
use super::wish;
use crate::doctor::Diagnosis;
use crate::doctor::finding::{Finding, Look};
use crate::flags::consul::Check;
use crate::screen::counted;

/// Looks at everything.
///
/// # Errors
/// Consul does not answer at all, or what is asked for cannot be.
pub async fn check(asked: &Check, variable: impl Fn(&str) -> Option<String>) -> Result<Diagnosis> {
    let client = Client::new(&asked.server, variable)?;
    let weir = wish::weir(&asked.names, &asked.filter)?;
    let datacenter = client.datacenter().await?;
    wish::tried(&weir, &datacenter)?;
    let shares = weir.shares(&datacenter)?;
    let evidence = Evidence::gather(&client, &weir, shares).await;
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
    for (name, sidecars) in &evidence.callers {
        found.extend(caller(name, sidecars, &evidence.upstreams));
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

fn caller(
    name: &str,
    sidecars: &Read<Vec<Value>>,
    upstreams: &BTreeMap<String, Option<Value>>,
) -> Vec<Finding> {
    let mut look = Look::at("callers", name);
    let Some(sidecars) = known(&mut look, sidecars) else {
        return look.or_fine("");
    };
    if sidecars.is_empty() {
        look.broken(
            "no sidecar of it is registered",
            "register it with Connect.SidecarService, and start its sidecar",
        );
    }
    for sidecar in sidecars {
        let (id, proxy) = (&sidecar["ServiceID"], &sidecar["ServiceProxy"]);
        let listed = proxy["Upstreams"].as_array();
        let listed = listed.map(Vec::as_slice).unwrap_or_default();
        for (upstream, cluster) in upstreams {
            let is_it = |one: &&Value| one["DestinationName"] == **upstream;
            match listed.iter().find(is_it) {
                None if proxy["Mode"] == "transparent" => (),
                None => {
                    look.broken(
                        format!("{id} has no upstream {upstream:?}"),
                        "add it to Proxy.Upstreams of the registration",
                    );
                }
                Some(one) if has_another(one, cluster.as_ref()) => {
                    look.broken(
                        format!("{id} has another envoy_cluster_json than Weir's for {upstream:?}"),
                        "if apply has just written it, look again in a moment; else take it out of the registration",
                    );
                }
                Some(_) => (),
            }
        }
    }
    look.or_fine(format!(
        "{} with all upstreams",
        counted(sidecars.len(), "sidecar")
    ))
}

/// The agent registers an upstream with what the entries say of it; what its own registration says goes before.
fn has_another(upstream: &Value, wanted: Option<&Value>) -> bool {
    let stands = upstream["Config"]["envoy_cluster_json"].as_str();
    let stands = stands.map(|text| serde_json::from_str(text).unwrap_or(Value::Null));
    wanted.is_some() && stands.is_some() && stands.as_ref() != wanted
}

#[cfg(test)]
mod tests;
