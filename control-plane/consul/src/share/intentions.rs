// SPDX-License-Identifier: Apache-2.0
//! Who may reach a service: `service-intentions`.

use serde_json::{Value, json};

use super::{Change, Share};
use crate::normal::{is_empty, normal};

/// In the description of a source that Weir has added.
const OURS: &str = "written by weirctl consul apply";

pub(super) fn put(share: &Share, change: &mut Change) {
    let mut sources = change.take_list("Sources");
    for caller in &share.sources {
        match sources.iter().find(|source| is_of(source, caller)) {
            None => {
                change.changes(format!("Sources: {caller} may reach it"));
                sources.push(json!({"Name": caller, "Action": "allow", "Description": OURS}));
            }
            // Rules by request are somebody's thought: they stay.
            Some(source) if source["Action"] == "allow" || !is_empty(&source["Permissions"]) => (),
            Some(source) => change.refuses(format!(
                "its source {caller:?} has action {}: where {caller} may reach {}, allow it or take the source out",
                source["Action"], share.name
            )),
        }
    }
    change.entry["Sources"] = sources.into();
}

/// Whether nothing is left.
pub(super) fn take(share: &Share, change: &mut Change) -> bool {
    let mut sources = change.take_list("Sources");
    for caller in &share.sources {
        let before = sources.len();
        sources.retain(|source| !(is_of(source, caller) && is_ours(source)));
        if sources.len() < before {
            change.changes(format!("Sources: {caller} taken out"));
        }
    }
    let emptied = sources.is_empty();
    change.entry["Sources"] = sources.into();
    // Consul takes no intentions without a source, so all that stands beside would go with the last one.
    let more = more(&change.entry);
    if emptied && !change.changes.is_empty() && !more.is_empty() && !change.adopt {
        change.refuses(format!(
            "with its last source would go what Weir has not written ({}): add a source, or give it up by --adopt",
            more.join(", ")
        ));
    }
    emptied
}

/// Fields of others beside the sources.
fn more(entry: &Value) -> Vec<String> {
    const PLAIN: [&str; 5] = ["Kind", "Name", "Namespace", "Partition", "Sources"];
    let is_noted = |value: &Value| {
        let mut names = value
            .as_object()
            .into_iter()
            .flat_map(|fields| fields.keys());
        names.all(|name| name.starts_with("weir-"))
    };
    let entry = normal(entry);
    let fields = entry.as_object().into_iter().flatten();
    let more = fields.filter(|(name, value)| {
        let is_plain = PLAIN.contains(&&***name);
        !is_plain && (*name != "Meta" || !is_noted(value))
    });
    more.map(|(name, _)| name.clone()).collect()
}

pub(super) fn has_ours(entry: &Value) -> bool {
    let sources = entry["Sources"].as_array();
    sources.into_iter().flatten().any(is_ours)
}

/// Not of a peer, or of several of them.
fn is_of(source: &Value, caller: &str) -> bool {
    source["Name"] == caller && is_empty(&source["Peer"]) && is_empty(&source["SamenessGroup"])
}

fn is_ours(source: &Value) -> bool {
    source["Description"] == OURS && source["Action"] == "allow" && is_empty(&source["Permissions"])
}
