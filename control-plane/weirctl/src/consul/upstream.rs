// SPDX-License-Identifier: Apache-2.0
//! How a caller's sidecar reaches a service: in which data centre, and whether its Envoy has the hosts there.
//!
//! ```text
//!  sidecar's upstream ── data centre, peer ──┬─ the one of Weir's cluster ── Consul's chain ──┬─ hosts: all is well
//!  Weir's cluster ────── data centre ────────┤                                                ├─ a mesh gateway
//!                                            │                                                └─ a cluster of another name
//!                                            └─ another one: Consul gives it Weir's cluster all the same
//! ```

use serde_json::{Value, json};
use weir_consul::{Datacenter, TRANSPARENT};

/// A caller's sidecar, as Consul's catalog has it.
pub(super) struct Sidecar<'a> {
    /// At its agent.
    pub(super) id: &'a str,
    /// It is in.
    pub(super) datacenter: &'a str,
    proxy: &'a Value,
}

/// One upstream of a sidecar.
pub(super) struct Upstream<'a> {
    home: &'a str,
    /// The service's name.
    pub(super) service: &'a str,
    fields: &'a Value,
    proxy: &'a Value,
}

/// How a sidecar reaches a service.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// Envoy has the hosts.
    Hosts,
    /// Envoy has nothing but mesh gateways.
    Gateway,
    /// Consul calls the cluster otherwise, by what is set at the upstream alone: Envoy has no cluster of the name that the
    /// listener says.
    Renamed,
    /// The same, in another data centre than that of Weir's cluster, which Consul gives this upstream nevertheless:
    /// overrides are by name.
    Astray(String),
    /// By another cluster than Weir's, which the registration has.
    Own,
    /// In another data centre than Weir's, by a cluster of the registration's own.
    Elsewhere,
    /// At a peer: Envoy has nothing but its mesh gateways, and Weir's cluster is not given to it.
    Peer(String),
}

impl<'a> Sidecar<'a> {
    /// One of `/v1/catalog/connect`.
    pub(super) fn of(row: &'a Value) -> Self {
        Self {
            id: text(&row["ServiceID"]),
            datacenter: text(&row["Datacenter"]),
            proxy: &row["ServiceProxy"],
        }
    }

    /// Whether all of its application's connections are led to it.
    pub(super) fn is_transparent(&self) -> bool {
        self.proxy["Mode"] == TRANSPARENT
    }

    /// Those of its registration that are of this service.
    pub(super) fn upstreams(&self, service: &str) -> impl Iterator<Item = Upstream<'a>> {
        let (home, proxy) = (self.datacenter, self.proxy);
        let listed = proxy["Upstreams"].as_array().into_iter().flatten();
        let all = listed.map(move |fields| Upstream {
            home,
            service: text(&fields["DestinationName"]),
            fields,
            proxy,
        });
        all.filter(move |one| one.service == service)
    }
}

impl Upstream<'_> {
    /// What Consul is asked for the upstream's chain: `compile-dc`, and what the upstream sets.
    pub(super) fn asks(&self) -> (String, Value) {
        let config = &self.fields["Config"];
        let timeout = config["connect_timeout_ms"].as_f64().unwrap_or_default();
        let overrides = json!({
            "OverrideMeshGateway": {"Mode": self.gateway()},
            "OverrideProtocol": text(&config["protocol"]),
            "OverrideConnectTimeout": format!("{timeout}ms"),
        });
        (self.datacenter().to_owned(), overrides)
    }

    /// `cluster` is Weir's, `chain` Consul's answer to [`Self::asks`].
    pub(super) fn reach(
        &self,
        cluster: Option<&Value>,
        datacenter: &Datacenter,
        chain: &Value,
    ) -> Reach {
        let peer = text(&self.fields["DestinationPeer"]);
        if !peer.is_empty() {
            return Reach::Peer(peer.to_owned());
        }
        let there = self.datacenter();
        let stands = self.fields["Config"]["envoy_cluster_json"].as_str();
        let stands = stands.map(|text| serde_json::from_str(text).unwrap_or(Value::Null));
        if there != datacenter.name {
            // Only a cluster of the registration's own keeps Weir's away, and it has to have the right name.
            let there = Datacenter {
                name: there.to_owned(),
                trust_domain: datacenter.trust_domain.clone(),
            };
            let named = stands.is_some_and(|own| own["name"] == there.cluster(self.service));
            return match named || cluster.is_none() {
                true => Reach::Elsewhere,
                false => Reach::Astray(there.name),
            };
        }
        match (cluster, stands) {
            (Some(wanted), Some(stands)) if *wanted != stands => Reach::Own,
            (Some(_), _) if !text(&chain["CustomizationHash"]).is_empty() => Reach::Renamed,
            _ if there != self.home && is_gateway(chain) => Reach::Gateway,
            _ => Reach::Hosts,
        }
    }

    fn datacenter(&self) -> &str {
        match text(&self.fields["Datacenter"]) {
            "" => self.home,
            named => named,
        }
    }

    /// What an upstream says of mesh gateways goes before what its sidecar says.
    fn gateway(&self) -> &str {
        let modes = [self.fields, self.proxy].map(|one| text(&one["MeshGateway"]["Mode"]));
        let mode = modes.into_iter().find(|mode| !mode.is_empty());
        mode.unwrap_or_default()
    }
}

impl Reach {
    /// Whether it is meant to be the way to Weir's service.
    pub(super) fn is_weirs(&self) -> bool {
        !matches!(self, Self::Elsewhere | Self::Peer(_))
    }

    /// Whether requests fail by it.
    pub(super) fn is_fatal(&self) -> bool {
        matches!(self, Self::Renamed | Self::Astray(_))
    }
}

/// Whether a chain's target is reached through one.
fn is_gateway(chain: &Value) -> bool {
    let targets = chain["Targets"].as_object().into_iter().flatten();
    let mut modes = targets.map(|(_, target)| text(&target["MeshGateway"]["Mode"]));
    modes.any(|mode| ["local", "remote"].contains(&mode))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
