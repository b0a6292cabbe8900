// SPDX-License-Identifier: Apache-2.0
//! What Consul says, before anything is concluded from it.

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::Value;
use weir_consul::{Control, Module, Share, Weir};

use super::client::{Answer, Client, Denied};

/// What was asked, or why it could not be read.
pub(super) type Read<T> = Result<T, Unread>;

/// Why something could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unread {
    pub(super) said: String,
    pub(super) mend: String,
}

/// Kinds of entries by which Consul sends requests elsewhere, and ignores an override.
pub(super) const BESIDE: [&str; 3] = ["service-router", "service-splitter", "service-resolver"];

/// All that was read.
pub(super) struct Evidence {
    pub(super) entries: Vec<(Share, Read<Option<Value>>)>,
    pub(super) proxy_defaults: Read<Option<Value>>,
    pub(super) reached: Vec<Reached>,
    pub(super) ways: Vec<Way>,
    /// Instances of each caller's sidecar.
    pub(super) callers: BTreeMap<String, Read<Vec<Value>>>,
    /// What each caller's sidecar has to have as upstreams, some with a cluster of Weir's.
    pub(super) upstreams: BTreeMap<String, Option<Value>>,
}

/// A service that callers reach by an override.
pub(super) struct Reached {
    pub(super) name: String,
    /// weir-control.
    pub(super) is_control: bool,
    /// As Consul's discovery chain says it.
    pub(super) chain: Read<Value>,
    /// By kind, of [`BESIDE`].
    pub(super) beside: Vec<(&'static str, Read<Option<Value>>)>,
}

/// From a caller to a service.
pub(super) struct Way {
    pub(super) from: String,
    pub(super) to: String,
    pub(super) allowed: Read<bool>,
    /// Intentions for the service, the one that counts first.
    pub(super) intentions: Read<Vec<Value>>,
    /// Instances of the service's sidecar, with their checks.
    pub(super) instances: Read<Vec<Value>>,
}

impl Evidence {
    /// Asks Consul. What it does not answer is part of the evidence.
    pub(super) async fn gather(client: &Client, weir: &Weir, shares: Vec<Share>) -> Self {
        let mut entries = Vec::new();
        for share in shares {
            let stands = client.entry(&share.kind.to_string(), &share.name).await;
            entries.push((share, read(stands)));
        }
        let reached = Reached::gather(client, weir).await;
        let mut ways = Vec::new();
        for one in &reached {
            let to = &one.name;
            let intentions = list(
                client,
                &["connect", "intentions", "match"],
                &[("by", "destination"), ("name", to)],
                to,
                "intentions",
            )
            .await;
            let instances = list(client, &["health", "connect", to], &[], to, "policy").await;
            for from in &weir.callers {
                ways.push(Way {
                    from: from.clone(),
                    to: to.clone(),
                    allowed: allowed(client, from, to).await,
                    intentions: intentions.clone().map(|all| matched(&all, to)),
                    instances: instances.clone().map(items),
                });
            }
        }
        let mut callers = BTreeMap::new();
        for name in &weir.callers {
            let sidecars = list(client, &["catalog", "connect", name], &[], name, "policy").await;
            callers.insert(name.clone(), sidecars.map(items));
        }
        let mut upstreams = BTreeMap::new();
        if let Module::Remote { service, .. } = &weir.module {
            upstreams.insert(service.clone(), None);
        }
        for (share, _) in &entries {
            let clusters = share.clusters.iter();
            upstreams.extend(clusters.map(|(name, cluster)| (name.clone(), Some(cluster.clone()))));
        }
        Self {
            entries,
            proxy_defaults: read(client.entry("proxy-defaults", "global").await),
            upstreams,
            reached,
            ways,
            callers,
        }
    }
}

impl Reached {
    /// Asks for what stands beside the overrides.
    pub(super) async fn gather(client: &Client, weir: &Weir) -> Vec<Self> {
        let services = weir.services.iter().map(|name| (name, false));
        let control = match &weir.control {
            Control::Service(name) => Some((name, true)),
            Control::Cluster(_) => None,
        };
        let mut all = Vec::new();
        for (name, is_control) in services.chain(control) {
            let needs = rule(name, "policy");
            let chain = client.get(&["discovery-chain", name], &[], &needs).await;
            let mut beside = Vec::new();
            for kind in BESIDE {
                beside.push((kind, read(client.entry(kind, name).await)));
            }
            all.push(Self {
                name: name.clone(),
                is_control,
                chain: read(chain).map(|chain| {
                    chain
                        .map(|answer| answer.value["Chain"].clone())
                        .unwrap_or_default()
                }),
                beside,
            });
        }
        all
    }
}

async fn allowed(client: &Client, from: &str, to: &str) -> Read<bool> {
    let query = [("source", from), ("destination", to)];
    let path = ["connect", "intentions", "check"];
    let answer = client.get(&path, &query, &rule(to, "policy")).await;
    read(answer).map(|answer| answer.is_some_and(|answer| answer.value["Allowed"] == true))
}

/// A list, of which nothing was left out.
async fn list(
    client: &Client,
    path: &[&str],
    query: &[(&str, &str)],
    name: &str,
    right: &str,
) -> Read<Value> {
    let needs = rule(name, right);
    match read(client.get(path, query, &needs).await)? {
        Some(Answer { filtered: true, .. }) => Err(Unread {
            said: format!("the token may not see all of {name:?}"),
            mend: format!(
                "give it {needs}, {} and node_prefix \"\" {{ policy = \"read\" }}",
                rule(&format!("{name}-sidecar-proxy"), "policy")
            ),
        }),
        Some(answer) => Ok(answer.value),
        None => Ok(Value::Null),
    }
}

fn rule(name: &str, right: &str) -> String {
    format!("service {name:?} {{ {right} = \"read\" }}")
}

fn items(value: Value) -> Vec<Value> {
    match value {
        Value::Array(all) => all,
        _ => Vec::new(),
    }
}

/// Consul answers by the name that was asked for.
fn matched(all: &Value, name: &str) -> Vec<Value> {
    items(all[name].clone())
}

fn read<T>(result: Result<T>) -> Read<T> {
    result.map_err(|error| {
        let mend = match error.downcast_ref::<Denied>() {
            Some(denied) => format!("give the token {}", denied.needs),
            None => "see that Consul answers, and try again".to_owned(),
        };
        let said = format!("{error:#}");
        Unread { said, mend }
    })
}
