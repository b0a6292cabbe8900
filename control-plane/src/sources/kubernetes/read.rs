// SPDX-License-Identifier: Apache-2.0
//! From slices to hosts. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use weir_policy::MAX_HOSTS;

use super::answer::{Conditions, Endpoint, Port, Slice, Target};
use crate::config::{Backend, Host, Instance, Kubernetes, ServicePort};
use crate::sources::discovery::{Complaints, Found, cut, short};

/// What an endpoint's conditions make of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It takes requests.
    Up,
    /// It finishes what it has.
    Draining,
    /// It answers nothing.
    Out,
}

/// Hosts, sorted, no address twice.
pub(super) fn read<'a>(
    slices: impl Iterator<Item = &'a Slice> + Clone,
    settings: &Kubernetes,
) -> Found {
    let of_kind = |kind: &'static str| slices.clone().filter(move |s| s.address_type == kind);
    let targets = of_kind("IPv4").flat_map(|slice| &slice.endpoints);
    let mut reading = Reading {
        settings,
        of_both: targets.filter_map(|e| e.target_ref.as_ref()).collect(),
        hosts: BTreeMap::new(),
        complaints: Complaints::default(),
        instances: 0,
        out: 0,
    };
    // So that of a pod's two addresses the one of IPv4 is the host.
    for kind in ["IPv4", "IPv6"] {
        for slice in of_kind(kind) {
            reading.add(slice);
        }
    }
    for slice in slices.clone() {
        if !matches!(&*slice.address_type, "IPv4" | "IPv6") {
            let (name, kind) = (short(&slice.metadata.name), short(&slice.address_type));
            reading.complaints.add(format!(
                "slice {name} has addresses of type {kind}; only IP addresses can be named to proxies"
            ));
        }
    }
    reading.found(slices.count())
}

struct Reading<'a> {
    settings: &'a Kubernetes,
    /// Those that have an address of IPv4.
    of_both: BTreeSet<&'a Target>,
    hosts: BTreeMap<SocketAddr, Host>,
    complaints: Complaints,
    instances: usize,
    /// Endpoints that answer nothing.
    out: usize,
}

impl Reading<'_> {
    fn add(&mut self, slice: &Slice) {
        // A service without pods has a slice without ports.
        if slice.endpoints.is_empty() {
            return;
        }
        self.instances += slice.endpoints.len();
        let port = match &self.settings.backend {
            Backend::Service(_, wanted) => port(&slice.ports, wanted).ok_or_else(|| {
                let (name, ports) = (short(&slice.metadata.name), ports(&slice.ports));
                format!(
                    "slice {name} has no TCP port {wanted}; it has {ports}: see kubernetes.port"
                )
            }),
            // One slice for each of its ports.
            Backend::Pool(_) => {
                let port = slice.ports.first().and_then(|port| port.port);
                port.ok_or_else(|| "the pool names no port".to_owned())
            }
        };
        let port = match port {
            Ok(port) => port,
            Err(complaint) => return self.complaints.add(complaint),
        };
        for endpoint in &slice.endpoints {
            let is_second = slice.address_type == "IPv6"
                && endpoint
                    .target_ref
                    .as_ref()
                    .is_some_and(|target| self.of_both.contains(target));
            match (is_second, state(&endpoint.conditions)) {
                (true, _) => self.instances -= 1,
                (false, State::Out) => self.out += 1,
                (false, state) => self.endpoint(endpoint, port, state, slice),
            }
        }
    }

    fn endpoint(&mut self, endpoint: &Endpoint, port: u16, state: State, slice: &Slice) {
        let id = endpoint
            .target_ref
            .as_ref()
            .map(|target| &target.name)
            .or(endpoint.hostname.as_ref())
            .unwrap_or(&slice.metadata.name);
        let text = endpoint.addresses.first().map_or("", String::as_str);
        let ip = match text.parse::<IpAddr>() {
            Ok(ip) if !ip.is_unspecified() => ip,
            _ => {
                let (id, text) = (short(id), short(text));
                return self.complaints.add(format!("{id}: nobody is at {text}"));
            }
        };
        let address = SocketAddr::new(ip, port);
        let draining = state == State::Draining;
        if let Some(known) = self.hosts.get_mut(&address) {
            // While a controller moves it, an endpoint is in two slices, of which one may be old.
            known.draining &= draining;
            return;
        }
        if self.hosts.len() == MAX_HOSTS {
            let id = short(id);
            return self
                .complaints
                .add(format!("{id}: beyond {MAX_HOSTS} hosts"));
        }
        let metrics = SocketAddr::new(ip, self.settings.metrics_port.unwrap_or(port)).to_string();
        let host = Host {
            address: address.to_string(),
            metrics_address: metrics.clone(),
            cache_address: metrics,
            capacity_millicores: 0,
            preempt_at_unix_ms: 0,
            zone: endpoint.zone.as_deref().map(cut),
            draining,
            written: None,
            instance: Some(Instance {
                id: cut(id),
                node: cut(endpoint.node_name.as_deref().unwrap_or_default()),
            }),
        };
        self.hosts.insert(address, host);
    }

    fn found(self, slices: usize) -> Found {
        let mut hosts: Vec<Host> = self.hosts.into_values().collect();
        // As everywhere: by the text.
        hosts.sort_by(|one, other| one.address.cmp(&other.address));
        let mut complaints = Vec::new();
        if hosts.is_empty() {
            let Kubernetes {
                namespace, backend, ..
            } = self.settings;
            complaints.push(match (slices, self.instances, backend) {
                (0, _, Backend::Service(service, _)) => format!(
                    "namespace {namespace} has no EndpointSlice of a service {service}: there is none of this name, \
                     or it selects no pods and nobody else writes its endpoints"
                ),
                (_, 0, _) | (0, _, _) => format!("{backend} in namespace {namespace} has no endpoint: no pod is selected"),
                (_, all, _) => format!(
                    "no endpoint of {backend} in namespace {namespace} can be used: {} of {all} not ready",
                    self.out
                ),
            });
        }
        complaints.extend(self.complaints.all());
        Found {
            hosts,
            complaints,
            instances: self.instances,
        }
    }
}

/// A service may publish pods that are not ready: then they are ready here, whether they end or not.
fn state(conditions: &Conditions) -> State {
    let ready = conditions.ready.unwrap_or(true);
    let serving = conditions.serving.unwrap_or(ready);
    match conditions.terminating {
        Some(true) if ready || serving => State::Draining,
        Some(true) => State::Out,
        _ if ready => State::Up,
        _ => State::Out,
    }
}

fn port(ports: &[Port], wanted: &ServicePort) -> Option<u16> {
    let is_wanted = |port: &&Port| match wanted {
        ServicePort::Named(name) => port.name.as_ref() == Some(name),
        ServicePort::Number(number) => port.port == Some(*number),
    };
    let port = ports.iter().filter(|port| is_tcp(port)).find(is_wanted)?;
    port.port.filter(|port| *port > 0)
}

fn is_tcp(port: &Port) -> bool {
    port.protocol.as_deref().is_none_or(|name| name == "TCP")
}

/// For people.
fn ports(all: &[Port]) -> String {
    let text = |port: &Port| {
        let name = port.name.as_deref().unwrap_or_default();
        let number = port
            .port
            .map_or("every one".into(), |port| port.to_string());
        match name {
            "" => number,
            name => format!("{name} ({number})"),
        }
    };
    let all: Vec<String> = all.iter().filter(|port| is_tcp(port)).map(text).collect();
    match all.is_empty() {
        true => "none".to_owned(),
        false => cut(&all.join(", ")),
    }
}

#[cfg(test)]
mod tests;
