// SPDX-License-Identifier: Apache-2.0
//! The resource definition of WeirPolicies: the fields that `check` reads of one, with its ranges and defaults.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};
use weir_settings::{Entry, Seen, Shape};

use crate::config::policies::POOLS;
use crate::config::{Access, policy, written};

const FILE: &str = "../deploy/kubernetes/policies/weirpolicies.json";

/// With every field, as far as they go together.
fn specs() -> [Value; 2] {
    let target = json!({ "group": "", "kind": "Service", "name": "rules", "sectionName": "http" });
    let tls = json!({ "tls": {} });
    let learned = json!({
        "targetRefs": [target],
        "policy": { "selection": "caching_plan" },
        "planner": {},
    });
    [
        json!({ "targetRefs": [target], "scrape": tls, "cache": tls }),
        learned,
    ]
}

fn seen() -> BTreeMap<String, Seen> {
    let mut seen = BTreeMap::new();
    for spec in specs() {
        let (read, of_spec) = weir_settings::observe(|| {
            policy::read("shop/rules", "shop", Some(&spec), &Access::Pod)
        });
        read.unwrap();
        seen.extend(of_spec.into_iter().map(|seen| (seen.name.clone(), seen)));
    }
    seen
}

/// What one field takes; none of one that names a file.
fn field(seen: Option<&Seen>) -> Option<Value> {
    let text = |pattern: &str| json!({ "type": "string", "maxLength": 300, "pattern": pattern });
    let Some(seen) = seen else {
        // A section, or `targetRefs[].group`.
        return Some(json!({ "type": "string" }));
    };
    let range = seen.range.as_deref().unwrap_or_default();
    let bounds = |kind: &str| {
        let (least, most) = range.split_once(" to ").unwrap();
        let number = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        json!({ "type": kind, "minimum": number(least), "maximum": number(most) })
    };
    Some(match &*seen.kind {
        "path" => return None,
        "duration" => text(r"^[0-9]+(\.[0-9]+)?(us|ms|s|m|h)$"),
        "size" => text(r"^[0-9]+(\.[0-9]+)?(B|KiB|MiB|GiB|kB|MB|GB)$"),
        "whole number" => {
            let mut of = bounds("integer");
            of["format"] = json!("int64");
            of
        }
        "number" => bounds("number"),
        "boolean" => json!({ "type": "boolean" }),
        "name" => {
            let names = range.split(", ").map(|name| name.trim_matches('`'));
            json!({ "type": "string", "enum": names.collect::<Vec<_>>() })
        }
        "text" => json!({ "type": "string", "maxLength": 300 }),
        other => panic!("{}: {other}", seen.name),
    })
}

/// Meaning, default and range in words: a default in the schema would be written into the object.
fn description(entry: &Entry, seen: Option<&Seen>) -> String {
    let mut text = without_links(&entry.meaning);
    let said = |what: &str, value: &Option<String>| match value.as_deref() {
        None | Some("") => String::new(),
        Some(value) => format!(". {what}: {}", value.replace('`', "")),
    };
    if let Some(seen) = seen {
        text += &said("Default", &seen.default);
        text += &said("Range", &seen.range);
    }
    text
}

/// `[words](place)` as the words: places are of the reference's folder.
fn without_links(text: &str) -> String {
    let mut parts = text.split("](");
    let mut words = parts.next().unwrap_or_default().replace('[', "");
    for part in parts {
        let (_, after) = part.split_once(')').unwrap();
        words += &after.replace('[', "");
    }
    words
}

/// `properties` of the spec.
fn spec() -> Value {
    let mut entries = Vec::new();
    written::WeirPolicy::entries("spec", "", &mut entries);
    let seen = seen();
    let mut root = json!({ "type": "object", "properties": {} });
    for entry in &entries {
        let told = seen.get(&entry.name);
        let Some(mut schema) = field(told) else {
            continue;
        };
        schema["description"] = json!(description(entry, told));
        let is_group = |other: &Entry| other.name.starts_with(&format!("{}.", entry.name));
        if entries.iter().any(is_group) {
            schema = json!({ "type": "object", "description": without_links(&entry.meaning) });
        }
        put(&mut root, entry.name.trim_start_matches("spec."), schema);
    }
    root["required"] = json!(["targetRefs"]);
    let targets = &mut root["properties"]["targetRefs"];
    targets["minItems"] = json!(1);
    targets["maxItems"] = json!(16);
    targets["x-kubernetes-list-type"] = json!("atomic");
    let target = &mut targets["items"];
    target["required"] = json!(["group", "kind", "name"]);
    let fields = &mut target["properties"];
    fields["group"]["enum"] = json!(["", POOLS]);
    // As weir-control reads them.
    fields["name"]["maxLength"] = json!(63);
    fields["name"]["pattern"] = json!("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$");
    fields["sectionName"]["maxLength"] = json!(63);
    fields["sectionName"]["pattern"] = json!("^(?:[1-9][0-9]{0,4}|[a-z0-9]([-a-z0-9]*[a-z0-9])?)$");
    root
}

/// Puts a schema where its name says: `cache.tls`, `targetRefs[].name`.
fn put(root: &mut Value, name: &str, schema: Value) {
    let mut at = root;
    for part in name.split('.') {
        let (part, is_list) = match part.strip_suffix("[]") {
            Some(part) => (part, true),
            None => (part, false),
        };
        at["type"] = json!("object");
        at = &mut at["properties"][part];
        if is_list {
            at["type"] = json!("array");
            at = &mut at["items"];
        }
    }
    let known = at.as_object().cloned();
    *at = schema;
    for (field, value) in known.into_iter().flatten() {
        at[field] = value;
    }
}

fn status() -> Value {
    let text = |longest: u32| json!({ "type": "string", "maxLength": longest });
    let condition = json!({
        "type": "object",
        "required": ["type", "status", "reason", "message", "lastTransitionTime"],
        "properties": {
            "type": { "type": "string", "enum": ["Accepted", "Programmed"] },
            "status": { "type": "string", "enum": ["True", "False", "Unknown"] },
            "reason": text(1024),
            "message": text(32_768),
            "lastTransitionTime": { "type": "string", "format": "date-time" },
            "observedGeneration": { "type": "integer", "format": "int64", "minimum": 0 },
        },
    });
    let entry = json!({
        "type": "object",
        "required": ["ancestorRef", "controllerName"],
        "properties": {
            "ancestorRef": {
                "type": "object",
                "required": ["name"],
                "properties": {
                    "group": text(253),
                    "kind": text(63),
                    "namespace": text(63),
                    "name": text(253),
                    "sectionName": text(253),
                },
            },
            "controllerName": text(253),
            "conditions": {
                "type": "array",
                "maxItems": 8,
                "items": condition,
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["type"],
            },
        },
    });
    let ancestors = json!({
        "type": "array",
        "maxItems": 16,
        "items": entry,
        "x-kubernetes-list-type": "atomic",
    });
    json!({ "type": "object", "properties": { "ancestors": ancestors } })
}

fn definition() -> Value {
    let column = |name: &str, path: &str, kind: &str| json!({ "name": name, "type": kind, "jsonPath": path });
    let condition =
        |kind: &str| format!(".status.ancestors[0].conditions[?(@.type==\"{kind}\")].status");
    let version = json!({
        "name": "v1alpha1",
        "served": true,
        "storage": true,
        "subresources": { "status": {} },
        "additionalPrinterColumns": [
            column("Service", ".spec.targetRefs[0].name", "string"),
            column("Accepted", &condition("Accepted"), "string"),
            column("Programmed", &condition("Programmed"), "string"),
            column("Age", ".metadata.creationTimestamp", "date"),
        ],
        "schema": { "openAPIV3Schema": {
            "type": "object",
            "required": ["spec"],
            "properties": {
                "apiVersion": { "type": "string" },
                "kind": { "type": "string" },
                "metadata": { "type": "object" },
                "spec": spec(),
                "status": status(),
            },
        } },
    });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": "weirpolicies.weir.dev",
            // As Gateway API has it of kinds that attach to others (geps/gep-713).
            "labels": { "gateway.networking.k8s.io/policy": "Direct" },
            "annotations": { "weir.dev/written-by": "cargo xtask keep; SPDX-License-Identifier: Apache-2.0" },
        },
        "spec": {
            "group": "weir.dev",
            "scope": "Namespaced",
            "names": {
                "kind": "WeirPolicy",
                "listKind": "WeirPolicyList",
                "plural": "weirpolicies",
                "singular": "weirpolicy",
                "categories": ["gateway-api"],
            },
            "versions": [version],
        },
    })
}

#[test]
fn the_resource_definition_is_of_this_code() {
    let text = serde_json::to_string_pretty(&definition()).unwrap() + "\n";
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(FILE);
    weir_reference::hold(&file, &text);
}
