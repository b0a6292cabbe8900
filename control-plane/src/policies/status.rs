// SPDX-License-Identifier: Apache-2.0
//! What a policy's status says (gateway-api.sigs.k8s.io/geps/gep-713): of each target, `Accepted` and `Programmed`. Pure.

use serde_json::{Value, json};
use weir_fleet::view::{ClusterView, View};

use super::attach::{Refused, Verdict};
use crate::config::policies::POOLS;
use crate::config::{Target, policy};

/// Whose entries in a status are ours.
const CONTROLLER: &str = "weir.dev/weir-control";

/// Bytes of a condition's message, of which the server takes 32 KiB.
const LONGEST: usize = 1000;

/// A condition's status, reason and message.
#[derive(Debug, PartialEq)]
struct Said {
    is: bool,
    reason: &'static str,
    message: String,
}

/// The object with the status that it should have; none where it has it.
pub(super) fn due(verdict: &Verdict, view: &View, now: &str) -> Option<Value> {
    let known = &verdict.object.whole["status"]["ancestors"];
    let known = known.as_array().map_or(&[][..], Vec::as_slice);
    let (ours, others): (Vec<&Value>, Vec<&Value>) = known
        .iter()
        .partition(|entry| entry["controllerName"] == CONTROLLER);
    let targets = verdict.targets.iter();
    let wanted: Vec<Value> = targets.map(|target| entry(verdict, target, view)).collect();
    let wanted: Vec<Value> = wanted.into_iter().map(|it| since(it, &ours, now)).collect();
    if ours.iter().copied().eq(&wanted) {
        return None;
    }
    let all: Vec<Value> = others.into_iter().cloned().chain(wanted).collect();
    let mut object = verdict.object.whole.clone();
    object["status"] = json!({ "ancestors": all });
    Some(object)
}

fn entry(verdict: &Verdict, target: &Target, view: &View) -> Value {
    let metadata = &verdict.object.metadata;
    let cluster = policy::cluster_of(target, &metadata.namespace);
    let reference = match target {
        Target::Service(name, port) => json!({
            "group": "", "kind": "Service", "name": name, "sectionName": port.to_string(),
        }),
        Target::Pool(name) => json!({ "group": POOLS, "kind": "InferencePool", "name": name }),
    };
    let in_force = verdict.clusters.contains(&cluster);
    let condition = |kind: &str, said: Said| {
        json!({
            "type": kind,
            "status": if said.is { "True" } else { "False" },
            "reason": said.reason,
            "message": said.message,
            "observedGeneration": metadata.generation,
        })
    };
    let conditions = [
        condition("Accepted", accepted(verdict, &cluster)),
        condition(
            "Programmed",
            programmed(in_force.then(|| view.clusters.get(&cluster)).flatten()),
        ),
    ];
    json!({
        "ancestorRef": reference,
        "controllerName": CONTROLLER,
        "conditions": conditions,
    })
}

fn accepted(verdict: &Verdict, cluster: &str) -> Said {
    let Some(refused) = &verdict.refused else {
        let message = format!("in force as cluster {cluster}");
        return said(true, "Accepted", message);
    };
    let reason = match refused {
        Refused::Invalid(_) => "Invalid",
        Refused::Conflicted(_) => "Conflicted",
    };
    let rest = match verdict.clusters.is_empty() {
        true => "",
        false => "; what it said before stays in force",
    };
    said(false, reason, format!("{refused}{rest}"))
}

/// Whether sidecars that ask for the cluster get a table.
fn programmed(cluster: Option<&ClusterView>) -> Said {
    let Some(cluster) = cluster else {
        return said(false, "Pending", "not in force".to_owned());
    };
    let source = cluster.sources.get("kubernetes");
    let complaint = source.and_then(|source| {
        let first = source.complaints.first();
        source.error.as_ref().or(first)
    });
    let because = complaint.map_or_else(String::new, |why| format!(": {why}"));
    if cluster.hosts.is_empty() {
        return said(false, "NoHosts", format!("no hosts{because}"));
    }
    match cluster.not_pushed {
        Some(why) => said(false, "Pending", why.to_owned()),
        None => {
            let hosts = crate::config::counted(cluster.hosts.len(), "host");
            said(true, "Programmed", format!("{hosts}{because}"))
        }
    }
}

fn said(is: bool, reason: &'static str, message: String) -> Said {
    let end = message.floor_char_boundary(LONGEST);
    let message = message[..end].to_owned();
    Said {
        is,
        reason,
        message,
    }
}

/// With the times since when conditions are as they are.
fn since(mut entry: Value, ours: &[&Value], now: &str) -> Value {
    let mut before = ours.iter();
    let before = before.find(|old| old["ancestorRef"] == entry["ancestorRef"]);
    let before = before.and_then(|old| old["conditions"].as_array());
    let Some(conditions) = entry["conditions"].as_array_mut() else {
        return entry;
    };
    for condition in conditions {
        let same = |old: &&Value| {
            ["type", "status"]
                .iter()
                .all(|field| old[field] == condition[field])
        };
        let old = before.and_then(|before| before.iter().find(same));
        let time = old.map(|old| old["lastTransitionTime"].clone());
        condition["lastTransitionTime"] = time.unwrap_or_else(|| json!(now));
    }
    entry
}

#[cfg(test)]
mod tests;
