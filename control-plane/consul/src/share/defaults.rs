// SPDX-License-Identifier: Apache-2.0
//! What a service speaks, and of callers the extensions and overrides of their sidecars: `service-defaults`.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Change, Share, bare};
use crate::normal::{digest, is_empty, normal};
use crate::parts::{document, is_our_cluster, is_ours};

/// In the entry's meta: the protocol that Weir has set, and what it has written beside.
const PROTOCOL: &str = "weir-protocol";
const PARTS: &str = "weir-parts";

pub(super) fn put(share: &Share, change: &mut Change) {
    protocol(share, change);
    if share.calls {
        let last = are_last(&change.entry);
        let found = take_parts(share, change);
        let wanted = Parts::of(share);
        if found.is_of_a_hand(change.meta(PARTS), Some(&wanted)) && !change.adopt {
            refuse(change, &found, &wanted);
        }
        tell(change, &found, &wanted);
        if !last {
            change.changes("EnvoyExtensions: Weir's come last");
        }
        let parts = wanted.digest();
        put_parts(change, wanted);
        drop_emptied(change, &found);
        change.note(PARTS, Some(parts));
    }
}

/// Whether nothing is left.
pub(super) fn take(share: &Share, change: &mut Change) -> bool {
    if share.calls {
        let found = take_parts(share, change);
        refuse_more(share, change, &found);
        let none = Parts::default();
        if found.is_of_a_hand(change.meta(PARTS), None) && !change.adopt {
            refuse(change, &found, &none);
        }
        tell(change, &found, &none);
        drop_emptied(change, &found);
        change.note(PARTS, None);
    }
    let stands = &change.entry["Protocol"];
    let is_set_here = change.meta(PROTOCOL).is_some_and(|set| *stands == set);
    if is_set_here && !share.reached && !has_parts(&change.entry) {
        change.entry["Protocol"] = json!("");
        change.note(PROTOCOL, None);
        change.changes("Protocol: taken out");
    }
    bare(&change.entry) == normal(&json!({"Kind": share.kind, "Name": share.name}))
}

/// The filter is one for all services of a caller, so it cannot go for some of them.
fn refuse_more(share: &Share, change: &mut Change, found: &Parts) {
    let more = |of_hosts| {
        let more = found.clusters.iter().filter(move |(name, cluster)| {
            let has_balancer = !cluster["load_balancing_policy"].is_null();
            !share.clusters.contains_key(*name) && has_balancer == of_hosts
        });
        more.map(|(name, _)| &**name).collect::<Vec<_>>().join(", ")
    };
    let (hosts, control) = (more(true), more(false));
    if !hosts.is_empty() {
        change.refuses(format!(
            "{} also chooses for {hosts}: name it too, or apply with the services that are left",
            share.name
        ));
    }
    if !control.is_empty() {
        change.refuses(format!(
            "{} has its tables from {control}: name that by --control-service",
            share.name
        ));
    }
}

/// Whether sidecars of the service choose, for whatever services.
fn has_parts(entry: &Value) -> bool {
    let all = |list: &Value| list.as_array().cloned().unwrap_or_default();
    let is_ours_there = |one: &Value| {
        let text = one["EnvoyClusterJSON"].as_str().unwrap_or_default();
        let cluster = serde_json::from_str(text);
        is_of_this_mesh(one) && cluster.is_ok_and(|cluster| is_our_cluster(&cluster))
    };
    all(&entry["EnvoyExtensions"]).iter().any(is_ours)
        || all(&entry["UpstreamConfig"]["Overrides"])
            .iter()
            .any(is_ours_there)
}

fn protocol(share: &Share, change: &mut Change) {
    let stands = change.entry["Protocol"].as_str().unwrap_or_default();
    let (wanted, others): (_, &[&str]) = match share.protocol {
        Some(protocol) => (protocol, &[]),
        // Nobody need reach a caller: any protocol of requests will do.
        None => ("http", &["http2", "grpc"]),
    };
    if stands.is_empty() {
        change.entry["Protocol"] = json!(wanted);
        change.note(PROTOCOL, Some(wanted.to_owned()));
        change.changes(format!("Protocol: {wanted}"));
    } else if stands != wanted && !others.contains(&stands) {
        let said = format!(
            "its Protocol is {stands:?}, and Weir needs {wanted:?}: if the service speaks that, change it there"
        );
        change.refuses(said);
    }
}

/// What Weir has in a caller's entry, or is to have.
#[derive(Default)]
struct Parts {
    extensions: Vec<Value>,
    /// By upstream.
    clusters: BTreeMap<String, Value>,
}

impl Parts {
    fn of(share: &Share) -> Self {
        Self {
            extensions: share.extensions.clone(),
            clusters: share.clusters.clone(),
        }
    }

    fn digest(&self) -> String {
        digest(self.named().values())
    }

    fn is_empty(&self) -> bool {
        self.extensions.is_empty() && self.clusters.is_empty()
    }

    /// By what they are called in messages.
    fn named(&self) -> BTreeMap<String, Value> {
        let mut all = BTreeMap::new();
        for extension in &self.extensions {
            let name = extension["Name"].as_str().unwrap_or_default();
            let mut name = format!("EnvoyExtensions: {name}");
            while all.contains_key(&name) {
                name.push_str(", another");
            }
            all.insert(name, normal(extension));
        }
        let clusters = self.clusters.iter();
        all.extend(
            clusters.map(|(name, cluster)| (format!("override of {name}"), cluster.clone())),
        );
        all
    }

    /// Whether somebody else has written or changed what is not as it is wanted.
    fn is_of_a_hand(&self, recorded: Option<&str>, wanted: Option<&Self>) -> bool {
        let wanted = wanted.map(Self::named).unwrap_or_default();
        let as_wanted = |(name, part): (&String, &Value)| wanted.get(name) == Some(part);
        let is_as_wanted = self.named().iter().all(as_wanted);
        !self.is_empty() && !is_as_wanted && recorded != Some(&*self.digest())
    }
}

/// Takes Weir's extensions and clusters out of the entry; what else is in an override stays.
fn take_parts(share: &Share, change: &mut Change) -> Parts {
    let mut found = Parts::default();
    let (ours, others): (Vec<_>, Vec<_>) = change
        .take_list("EnvoyExtensions")
        .into_iter()
        .partition(is_ours);
    found.extensions = ours;
    change.entry["EnvoyExtensions"] = others.into();
    let overrides = change.entry.pointer_mut("/UpstreamConfig/Overrides");
    if let Some(overrides) = overrides.and_then(Value::as_array_mut) {
        for one in overrides.iter_mut() {
            let name = one["Name"].as_str().unwrap_or_default().to_owned();
            let text = one["EnvoyClusterJSON"].as_str().unwrap_or_default();
            let cluster = serde_json::from_str(text).unwrap_or_else(|_| json!(text));
            let is_one = is_our_cluster(&cluster) || share.clusters.contains_key(&name);
            if !text.is_empty() && is_one && is_of_this_mesh(one) {
                one["EnvoyClusterJSON"] = json!("");
                found.clusters.insert(name, cluster);
            }
        }
    }
    found
}

/// Takes out the overrides in which nothing is left.
fn drop_emptied(change: &mut Change, found: &Parts) {
    let overrides = change.entry.pointer_mut("/UpstreamConfig/Overrides");
    if let Some(overrides) = overrides.and_then(Value::as_array_mut) {
        let was_ours = |one: &Value| found.clusters.keys().any(|name| one["Name"] == **name);
        let says = |one: &Value| one.as_object().is_none_or(says_something);
        overrides.retain(|one| !was_ours(one) || says(one));
    }
}

fn says_something(fields: &serde_json::Map<String, Value>) -> bool {
    let mut fields = fields.iter();
    fields.any(|(name, value)| {
        !["Name", "Namespace", "Partition"].contains(&&**name) && !is_empty(value)
    })
}

/// Not of a peer's service.
fn is_of_this_mesh(one: &Value) -> bool {
    is_empty(&one["Peer"])
}

fn put_parts(change: &mut Change, parts: Parts) {
    let mut extensions = change.take_list("EnvoyExtensions");
    extensions.extend(parts.extensions);
    change.entry["EnvoyExtensions"] = extensions.into();
    if !change.entry["UpstreamConfig"].is_object() {
        change.entry["UpstreamConfig"] = json!({});
    }
    let overrides = &mut change.entry["UpstreamConfig"]["Overrides"];
    let mut all = match overrides.take() {
        Value::Array(all) => all,
        _ => Vec::new(),
    };
    for (name, cluster) in parts.clusters {
        let text = json!(document(&cluster));
        let stands = all
            .iter_mut()
            .find(|one| one["Name"] == *name && is_of_this_mesh(one));
        match stands {
            Some(one) => one["EnvoyClusterJSON"] = text,
            None => all.push(json!({"Name": name, "EnvoyClusterJSON": text})),
        }
    }
    *overrides = all.into();
}

/// Whether none of others' extensions comes after one of Weir's: Consul puts each into the sidecar in turn, and of
/// filters the last one is the nearest to the hosts.
fn are_last(entry: &Value) -> bool {
    let extensions = entry["EnvoyExtensions"].as_array();
    let mut extensions = extensions.into_iter().flatten();
    extensions.any(is_ours);
    extensions.all(is_ours)
}

fn refuse(change: &mut Change, found: &Parts, wanted: &Parts) {
    let remedy = match wanted.is_empty() {
        true => "--adopt gives it up",
        false => "say the same by --settings, or give it up by --adopt",
    };
    let wanted = wanted.named();
    for (name, part) in found.named() {
        let differs = match wanted.get(&name) {
            Some(wanted) if *wanted == part => continue,
            Some(wanted) => differences(&part, wanted).join(", "),
            None => "it would go".to_owned(),
        };
        change.refuses(format!(
            "{name} was written or changed by somebody else ({differs}): {remedy}"
        ));
    }
}

fn tell(change: &mut Change, found: &Parts, wanted: &Parts) {
    let (found, wanted) = (found.named(), wanted.named());
    for (name, part) in &wanted {
        match found.get(name) {
            None => change.changes(format!("{name}: added")),
            Some(stands) if stands == part => (),
            Some(stands) => {
                let differences = differences(stands, part).join(", ");
                change.changes(format!("{name}: {differences}"));
            }
        }
    }
    for name in found.keys().filter(|name| !wanted.contains_key(*name)) {
        change.changes(format!("{name}: taken out"));
    }
}

/// Where two values differ, by path; a few.
fn differences(stands: &Value, wanted: &Value) -> Vec<String> {
    const MOST: usize = 4;
    let mut found = Vec::new();
    compare("", stands, wanted, &mut found);
    let more = found.len().saturating_sub(MOST);
    found.truncate(MOST);
    if more > 0 {
        found.push(format!("{more} more"));
    }
    found
}

fn compare(path: &str, stands: &Value, wanted: &Value, found: &mut Vec<String>) {
    if let (Value::Object(stands), Value::Object(wanted)) = (stands, wanted) {
        let names: std::collections::BTreeSet<_> = stands.keys().chain(wanted.keys()).collect();
        for name in names {
            let of = |fields: &serde_json::Map<String, Value>| {
                fields.get(name).cloned().unwrap_or(Value::Null)
            };
            let path = match path {
                "" => name.clone(),
                path => format!("{path}.{name}"),
            };
            compare(&path, &of(stands), &of(wanted), found);
        }
    } else if stands != wanted {
        match path.ends_with(SECRET) {
            true => found.push(format!("{path} differs")),
            false => found.push(format!("{path} {} → {}", short(stands), short(wanted))),
        }
    }
}

/// Of the filter's configuration, what is not to be in logs.
const SECRET: &str = "key_salt";

/// Without secrets.
fn shown(value: &Value) -> Value {
    let mut value = value.clone();
    if let Value::Object(fields) = &mut value {
        for (name, field) in fields {
            *field = match name.as_str() {
                SECRET => Value::from("…"),
                _ => shown(field),
            };
        }
    }
    value
}

fn short(value: &Value) -> String {
    const MOST: usize = 60;
    let text = match value {
        Value::Null => "nothing".to_owned(),
        value => shown(value).to_string(),
    };
    match text.chars().count() > MOST {
        true => text.chars().take(MOST).chain(['…']).collect(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn no_salt_of_keys_is_shown() {
        let with = |cluster: Value| json!({ "clusters": { "rules": cluster } });
        let [old, new] = ["old-secret", "new-secret"].map(|salt| json!({ "key_salt": salt }));
        for (stands, wanted) in [
            (with(old.clone()), with(new.clone())),
            (with(Value::Null), with(new.clone())),
            (json!({ "clusters": 1 }), with(old)),
        ] {
            let said = differences(&stands, &wanted).join("; ");
            assert!(
                said.contains("key_salt") && !said.contains("secret"),
                "{said}"
            );
        }
    }
}
