// SPDX-License-Identifier: Apache-2.0
//! What Consul says, before anything is concluded from it.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use serde_json::Value;
use weir_consul::{Control, Datacenter, Module, Share, Weir};

use super::client::{Answer, Client, Denied};
use super::upstream::{Sidecar, Upstream};

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
    /// By name.
    pub(super) callers: BTreeMap<String, Callers>,
    pub(super) wanted: Wanted,
}

/// What callers' sidecars are to have.
pub(super) struct Wanted {
    /// Of the services, and of Weir's clusters.
    pub(super) datacenter: Datacenter,
    /// Services whose hosts are chosen.
    pub(super) hosts: BTreeSet<String>,
    /// What each sidecar has to have as upstreams, some with a cluster of Weir's.
    pub(super) upstreams: BTreeMap<String, Option<Value>>,
    /// Somebody has thought of whose headers the filter believes.
    pub(super) trust_is_said: bool,
}

/// Instances of a caller's sidecar in each data centre, with the chains of their upstreams.
#[derive(Default)]
pub(super) struct Callers {
    pub(super) sidecars: Vec<Read<Vec<Value>>>,
    /// By what [`Upstream::asks`].
    pub(super) chains: BTreeMap<String, Read<Value>>,
}

impl Callers {
    /// The chain of an upstream.
    pub(super) fn chain(&self, upstream: &Upstream<'_>) -> Option<&Read<Value>> {
        self.chains.get(&key(upstream))
    }

    async fn read(client: &Client, name: &str, wanted: &Wanted, within: &[String]) -> Self {
        let mut callers = Self::default();
        for datacenter in within {
            let client = client.within(datacenter);
            let path = ["catalog", "connect", name];
            let rows = list(&client, &path, &[], name, "policy").await.map(items);
            for sidecar in rows.iter().flatten().map(Sidecar::of) {
                for service in wanted.upstreams.keys() {
                    for upstream in sidecar.upstreams(service) {
                        if let Entry::Vacant(place) = callers.chains.entry(key(&upstream)) {
                            place.insert(chain(&client, &upstream).await);
                        }
                    }
                }
            }
            callers.sidecars.push(rows);
        }
        callers
    }
}

pub(super) fn key(upstream: &Upstream<'_>) -> String {
    let (compiled, overrides) = upstream.asks();
    format!("{} {compiled} {overrides}", upstream.service)
}

/// As Consul makes it for the sidecar: what an upstream sets may give its cluster another name.
async fn chain(client: &Client, upstream: &Upstream<'_>) -> Read<Value> {
    let (compiled, overrides) = upstream.asks();
    let path = ["discovery-chain", upstream.service];
    let query = [("compile-dc", &*compiled)];
    let needs = rule(upstream.service, "policy");
    let answer = client.post(&path, &query, &overrides, &needs).await;
    read(answer).map(|answer| answer.map_or(Value::Null, |answer| answer.value["Chain"].clone()))
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
    pub(super) async fn gather(
        client: &Client,
        weir: &Weir,
        datacenter: Datacenter,
        shares: Vec<Share>,
    ) -> Self {
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
        let wanted = Wanted::of(weir, datacenter, entries.iter().map(|(share, _)| share));
        Self {
            entries,
            callers: callers(client, weir, &wanted).await,
            wanted,
            proxy_defaults: read(client.entry("proxy-defaults", "global").await),
            reached,
            ways,
        }
    }
}

/// Sidecars of the callers, wherever they are: an entry is for all data centres.
pub(super) async fn callers(
    client: &Client,
    weir: &Weir,
    wanted: &Wanted,
) -> BTreeMap<String, Callers> {
    let datacenters = read(client.datacenters().await);
    let mut all = BTreeMap::new();
    for name in &weir.callers {
        let callers = match &datacenters {
            Ok(within) => Callers::read(client, name, wanted, within).await,
            Err(unread) => Callers {
                sidecars: vec![Err(unread.clone())],
                ..Callers::default()
            },
        };
        all.insert(name.clone(), callers);
    }
    all
}

impl Wanted {
    pub(super) fn of<'a>(
        weir: &Weir,
        datacenter: Datacenter,
        shares: impl Iterator<Item = &'a Share>,
    ) -> Self {
        let mut upstreams = BTreeMap::new();
        if let Module::Remote { service, .. } = &weir.module {
            upstreams.insert(service.clone(), None);
        }
        for share in shares {
            let clusters = share.clusters.iter();
            upstreams.extend(clusters.map(|(name, cluster)| (name.clone(), Some(cluster.clone()))));
        }
        Self {
            datacenter,
            hosts: weir.services.clone(),
            upstreams,
            trust_is_said: weir.settings.get("trust").is_some(),
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
