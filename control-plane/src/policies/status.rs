// SPDX-License-Identifier: Apache-2.0
//! What a policy's status says (gateway-api.sigs.k8s.io/geps/gep-713): of each target, `Accepted` and `Programmed`. Pure.

use serde_json::{Value, json};
use weir_fleet::view::{ClusterView, View};

use super::attach::{Refused, Verdict};
use super::object::Object;
use crate::config::policy::{self, MOST_TARGETS};

/// Bytes of a condition's message, of which the server takes 32 KiB.
const LONGEST: usize = 1000;

/// Bytes of a text of the spec that is shown in the status.
const LONGEST_NAME: usize = 253;

/// A condition's status, reason and message.
struct Said {
    is: bool,
    reason: &'static str,
    message: String,
}

/// The patch that makes the object's status what it should be; none where it is, or where it is not known yet.
pub(super) fn due(verdict: &Verdict, controller: &str, view: &View, now: &str) -> Option<Value> {
    let object = &verdict.object;
    let known = object.ancestors.as_ref()?;
    let is_ours = |entry: &&Value| entry["controllerName"] == controller;
    let ours: Vec<&Value> = known.iter().filter(is_ours).collect();
    if verdict
        .clusters
        .iter()
        .any(|name| is_unasked(view.clusters.get(name)))
    {
        return None;
    }
    let entry = |target: Value| since(entry(verdict, controller, target, view), &ours, now);
    let wanted: Vec<Value> = targets(object).map(entry).collect();
    if ours.iter().copied().eq(&wanted) {
        return None;
    }
    let others = known.iter().filter(|entry| !is_ours(entry)).cloned();
    let all: Vec<Value> = others.chain(wanted).collect();
    // The version: who has changed the object meanwhile has changed what this is about.
    Some(json!({
        "metadata": { "resourceVersion": object.metadata.resource_version },
        "status": { "ancestors": all },
    }))
}

/// Nobody knows its hosts yet: after a start of weir-control, or of its lead.
fn is_unasked(cluster: Option<&ClusterView>) -> bool {
    let source = cluster.and_then(|cluster| cluster.sources.get("kubernetes"));
    source.is_none_or(|source| source.error.is_none() && source.last_success_ms_ago.is_none())
}

/// What it says that it is about, good or not.
fn targets(object: &Object) -> impl Iterator<Item = Value> {
    let spec = object.spec.as_ref();
    let all = spec.and_then(|spec| spec["targetRefs"].as_array());
    let all = all.into_iter().flatten().take(MOST_TARGETS);
    all.map(|target| {
        let mut said = json!({});
        for field in ["group", "kind", "name", "sectionName"] {
            if let Some(text) = target[field].as_str() {
                let end = text.floor_char_boundary(LONGEST_NAME);
                said[field] = json!(text[..end]);
            }
        }
        said
    })
}

fn entry(verdict: &Verdict, controller: &str, target: Value, view: &View) -> Value {
    let metadata = &verdict.object.metadata;
    let name = target["name"].as_str().unwrap_or_default();
    let cluster = policy::cluster_of(name, &metadata.namespace);
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
    json!({ "ancestorRef": target, "controllerName": controller, "conditions": conditions })
}

fn accepted(verdict: &Verdict, cluster: &str) -> Said {
    let Some(refused) = &verdict.refused else {
        let message = format!("in force as cluster {cluster}");
        return said(true, "Accepted", message);
    };
    let reason = match refused {
        Refused::Invalid(_) => "Invalid",
        Refused::Conflicted(_) => "Conflicted",
        Refused::TooMany => "TooMany",
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
