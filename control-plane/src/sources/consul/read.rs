// SPDX-License-Identifier: Apache-2.0
//! From an answer to hosts. Pure.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use weir_fleet::poll::{Fault, PollError};
use weir_policy::MAX_HOSTS;

use super::answer::Entry;
use super::{cut, short};
use crate::config::{Host, Instance, Question};
use crate::sources::discovery::{Complaints, Found};

/// Zones are short; Consul allows 512 bytes.
const MAX_ZONE_BYTES: usize = 128;

/// Reads the answer to a question. An answer that is not one as a whole is refused; an instance that cannot be
/// named is left out with a complaint.
pub fn read(body: &[u8], question: &Question) -> Result<Found, PollError> {
    let mut entries = entries(body)?;
    let asked = |entry: &Entry| entry.of().eq_ignore_ascii_case(&question.service);
    // A gateway stands for services that it does not name.
    let gateway = |entry: &Entry| entry.service.kind.ends_with("-gateway");
    if let Some(other) = entries
        .iter()
        .find(|entry| !asked(entry) && !gateway(entry))
    {
        let detail = format!(
            "{} of {}, which was not asked for",
            short(&other.service.id),
            short(other.of())
        );
        return Err(PollError::new(Fault::Inconsistent, detail));
    }
    // So that the same registrations give the same hosts in whatever order they come.
    entries.sort_by(|a, b| name(a).cmp(&name(b)));
    let mut reading = Reading::default();
    let (mut untagged, mut critical) = (0, 0);
    for entry in &entries {
        match () {
            () if !entry.has(&question.tags) => untagged += 1,
            () if !entry.serves() => critical += 1,
            () => reading.add(entry, question),
        }
    }
    let (count, mut complaints) = (entries.len(), Vec::new());
    if count > 0 && reading.hosts.is_empty() {
        let reasons = [
            (critical, "critical"),
            (untagged, "without all tags"),
            (count - critical - untagged, "without a name for proxies"),
        ];
        let reasons = reasons.iter().filter(|(number, _)| *number > 0);
        let reasons: Vec<String> = reasons
            .map(|(number, why)| format!("{number} {why}"))
            .collect();
        let (service, reasons) = (short(&question.service), reasons.join(", "));
        complaints.push(format!("no instance of {service} can be used: {reasons}"));
    }
    complaints.extend(reading.complaints.all());
    Ok(Found {
        hosts: reading.hosts.into_values().collect(),
        complaints,
        instances: count,
    })
}

fn entries(body: &[u8]) -> Result<Vec<Entry>, PollError> {
    let reader = &mut serde_json::Deserializer::from_slice(body);
    serde_path_to_error::deserialize(reader).map_err(|error| {
        let detail = match error.path().iter().next() {
            Some(_) => format!("{}: {}", error.path(), error.inner()),
            None => format!("not a list of instances in JSON: {}", error.inner()),
        };
        PollError::new(Fault::BadBody, cut(&detail))
    })
}

/// Unique in a data centre.
fn name(entry: &Entry) -> (&str, &str) {
    (&entry.service.id, &entry.node.node)
}

#[derive(Debug, Default)]
struct Reading {
    /// By address, so that they are sorted.
    hosts: BTreeMap<String, Host>,
    complaints: Complaints,
}

impl Reading {
    fn add(&mut self, entry: &Entry, question: &Question) {
        let id = &entry.service.id;
        let Some(address) = self.address(entry) else {
            return;
        };
        if let Some(first) = self.hosts.get(&address) {
            let first = first.instance.as_ref().map_or("", |instance| &instance.id);
            let complaint = format!(
                "{address} is of {} and of {}; the first counts",
                short(first),
                short(id)
            );
            return self.complaints.add(complaint);
        }
        if self.hosts.len() == MAX_HOSTS {
            return self
                .complaints
                .add(format!("{}: beyond {MAX_HOSTS} hosts", short(id)));
        }
        let metrics_address = self.metrics_address(entry, &address);
        let weight = entry
            .weight()
            .saturating_mul(question.weight_millicores.into());
        let weight = u32::try_from(weight).unwrap_or(u32::MAX);
        let capacity = self.number(entry, "weir-capacity-millicores");
        let host = Host {
            cache_address: metrics_address.clone(),
            metrics_address,
            capacity_millicores: capacity.unwrap_or(weight),
            preempt_at_unix_ms: self.number(entry, "weir-preempt-at").unwrap_or(0),
            zone: self.zone(entry),
            draining: false,
            written: None,
            instance: Some(Instance {
                id: cut(id),
                node: cut(&entry.node.node),
            }),
            address: address.clone(),
        };
        self.hosts.insert(address, host);
    }

    fn address(&mut self, entry: &Entry) -> Option<String> {
        let id = short(&entry.service.id);
        let port = u16::try_from(entry.service.port)
            .ok()
            .filter(|port| *port > 0);
        match (entry.ip(), port) {
            (Ok(ip), _) if ip.is_unspecified() => {
                self.complaints.add(format!(
                    "{id}: {ip} is nobody's address; register the one that others use"
                ));
            }
            (Ok(ip), Some(port)) => return Some(SocketAddr::new(ip, port).to_string()),
            (Ok(_), None) => self
                .complaints
                .add(format!("{id}: {} is no port", entry.service.port)),
            (Err(text), _) => self.complaints.add(format!(
                "{id}: its address is {}; only an IP address can be named to proxies",
                short(text)
            )),
        }
        None
    }

    /// Where its metrics are; at its own address where nothing better is known.
    fn metrics_address(&mut self, entry: &Entry, address: &str) -> String {
        let told = self.number::<u16>(entry, "weir-metrics-port");
        let registered = u16::try_from(entry.application_port()).ok();
        let port = told.or(registered).filter(|port| *port > 0);
        match (entry.ip(), port) {
            (Ok(own), Some(port)) => SocketAddr::new(entry.application_ip(own), port).to_string(),
            _ => {
                let id = short(&entry.service.id);
                self.complaints.add(format!(
                    "{id}: the sidecar tells no port of its application (Proxy.LocalServicePort, or meta weir-metrics-port)"
                ));
                address.to_owned()
            }
        }
    }

    /// A number that an instance tells of itself; one that is none is left out with a complaint.
    fn number<T: std::str::FromStr>(&mut self, entry: &Entry, meta: &str) -> Option<T> {
        let text = entry.meta(meta)?;
        let number = text.parse().ok();
        if number.is_none() {
            let id = short(&entry.service.id);
            self.complaints.add(format!(
                "{id}: meta {meta} is {}, which is no such number",
                short(text)
            ));
        }
        number
    }

    fn zone(&mut self, entry: &Entry) -> Option<String> {
        let zone = entry.meta("zone")?;
        if zone.len() <= MAX_ZONE_BYTES {
            return Some(zone.to_owned());
        }
        let id = short(&entry.service.id);
        self.complaints.add(format!(
            "{id}: meta zone has more than {MAX_ZONE_BYTES} bytes"
        ));
        None
    }
}

#[cfg(test)]
mod tests;
