// SPDX-License-Identifier: Apache-2.0
//! One request and its answer.

use std::rc::Rc;
use std::time::Duration;

use proxy_wasm::traits::{Context, HttpContext};
use proxy_wasm::types::Action;
use weir_policy::{Cluster, HostId, Outcome, Ranked, Reason, Request};

use crate::config::{ClusterConfig, Config};
use crate::headers::Headers;
use crate::hostcalls::{self, Map};
use crate::orca::Said;
use crate::record::Ending;
use crate::{caller, orca, vm};

/// Read by Envoy's override_host policy; the wire form of the Kubernetes inference gateway's picker.
const DESTINATION: &str = "x-gateway-destination-endpoint";
/// Room for an IPv4 address with its port and a comma.
const USUAL_ADDRESS: usize = 22;
const DEBUG_HOST: &str = "x-weir-host";
const DEBUG_REASON: &str = "x-weir-reason";
/// Filter state for access logs: `%FILTER_STATE(wasm.weir_reason:PLAIN)%`.
const FILTER_STATE_REASON: &str = "weir_reason";
/// gRPC's RESOURCE_EXHAUSTED and UNAVAILABLE.
const RESOURCE_EXHAUSTED: i32 = 8;
const UNAVAILABLE: i32 = 14;
/// Envoy's response flags for an upstream that reset, refused or broke the connection
/// (StreamInfo::CoreResponseFlag UpstreamRemoteReset, UpstreamConnectionFailure, UpstreamConnectionTermination).
const HOST_FAILED: u64 = 0x10 | 0x20 | 0x40;

pub(crate) struct Exchange {
    config: Option<Rc<Config>>,
    reason: Option<Reason>,
    sent: Option<Sent>,
}

/// A request on its way.
struct Sent {
    table: Rc<str>,
    /// Where it is: the first host named, then the one that answers.
    host: HostId,
    asked: Request,
    /// When it went there.
    at: Duration,
    status: Option<u32>,
}

impl Exchange {
    pub(crate) fn new(config: Option<Rc<Config>>) -> Self {
        Self {
            config,
            reason: None,
            sent: None,
        }
    }

    /// Decides; what is left to Envoy is let through as it came.
    fn choose(&mut self, config: &Config) -> Action {
        let Some(cluster) = cluster_of(config) else {
            return pass();
        };
        // Who cannot be read is not believed either.
        let headers = hostcalls::headers(Map::Request).ok();
        let random = vm::with(|vm| vm.random()).unwrap_or(0);
        let asked = caller::read(config, cluster, headers.as_ref(), random);
        let now = hostcalls::monotonic();
        let table = &cluster.table;
        let Some(decision) = vm::with(|vm| vm.decide(table, &asked, now)).flatten() else {
            return pass();
        };
        let _ = hostcalls::set_filter_state(FILTER_STATE_REASON, decision.reason.as_str());
        self.reason = Some(decision.reason);
        match decision.outcome {
            Outcome::Send(hosts) => self.send(table, &asked, hosts, now),
            Outcome::Fallback => pass(),
            Outcome::Shed { retry_after } => {
                let random = vm::with(|vm| {
                    vm.shed(table);
                    vm.random()
                });
                shed(retry_after, random.unwrap_or(0))
            }
            Outcome::NoHost => no_host(),
        }
    }

    fn send(&mut self, table: &Rc<str>, asked: &Request, hosts: Ranked, now: Duration) -> Action {
        let named =
            vm::with(|vm| vm.cluster(table).and_then(|cluster| name(cluster, hosts))).flatten();
        let Some((host, destination)) = named else {
            return pass();
        };
        if hostcalls::set_header(Map::Request, DESTINATION, &destination).is_err() {
            return pass();
        }
        vm::with(|vm| vm.assigned(table, host, asked, now));
        self.sent = Some(Sent {
            table: Rc::clone(table),
            host,
            asked: *asked,
            at: now,
            status: None,
        });
        Action::Continue
    }
}

impl Context for Exchange {}

impl HttpContext for Exchange {
    fn on_http_request_headers(&mut self, _count: usize, _end: bool) -> Action {
        #[cfg(feature = "crash-test")]
        crate::crash::request();
        match self.config.clone() {
            Some(config) => self.choose(&config),
            None => pass(),
        }
    }

    fn on_http_response_headers(&mut self, _count: usize, _end: bool) -> Action {
        let Some(reason) = self.reason else {
            return Action::Continue;
        };
        let debug = self.config.as_ref().is_some_and(|config| config.debug);
        let address = (debug || self.sent.is_some())
            .then(|| hostcalls::property("upstream\0address"))
            .flatten();
        let address = address.as_deref().and_then(|a| std::str::from_utf8(a).ok());
        if let Some(sent) = &mut self.sent {
            let headers = hostcalls::headers(Map::Response).unwrap_or_default();
            sent.status = headers
                .get(":status")
                .and_then(|status| std::str::from_utf8(status).ok()?.parse().ok());
            // Envoy's own answer, on a time-out say, is no sign of life of the host.
            if envoy_flags(sent.status) == 0 {
                sent.answered_by(address, &headers);
            }
        }
        if debug {
            let _ = hostcalls::set_header(Map::Response, DEBUG_REASON, reason.as_str());
            if let Some(address) = address {
                let _ = hostcalls::set_header(Map::Response, DEBUG_HOST, address);
            }
        }
        Action::Continue
    }

    fn on_log(&mut self) {
        let Some(sent) = self.sent.take() else { return };
        let flags = envoy_flags(sent.status);
        let ending = match sent.status {
            Some(status) if flags == 0 => Ending::Status(status),
            _ => Ending::NoAnswer,
        };
        let now = hostcalls::monotonic();
        vm::with(|vm| {
            if flags & HOST_FAILED != 0 {
                vm.failed(&sent.table, sent.host, now);
            }
            vm.ended(&sent.table, sent.host, sent.at, ending, now);
        });
    }
}

impl Sent {
    /// The answer comes from `address`: perhaps not from the first host named, and perhaps with its load.
    fn answered_by(&mut self, address: Option<&str>, headers: &Headers) {
        let Some(host) = address.map(HostId::of) else {
            return;
        };
        let now = hostcalls::monotonic();
        let said = headers.get(orca::HEADER);
        let said = said.and_then(|value| orca::parse(value, now));
        let Said { load, spent } = said.unwrap_or_default();
        vm::with(|vm| {
            if host != self.host {
                // Envoy tried the next one, because the first did not take it.
                vm.failed(&self.table, self.host, now);
                vm.ended(&self.table, self.host, self.at, Ending::NoAnswer, now);
                vm.assigned(&self.table, host, &self.asked, now);
                (self.host, self.at) = (host, now);
            }
            vm.answered(&self.table, host, load);
            if let (Some(key), Some(spent)) = (self.asked.key, spent) {
                vm.spent(&self.table, host, key, spent, now);
            }
        });
    }
}

/// Leaves the choice to Envoy: a destination that the caller sent would be honoured, so it goes.
fn pass() -> Action {
    let _ = hostcalls::remove_header(Map::Request, DESTINATION);
    Action::Continue
}

fn cluster_of(config: &Config) -> Option<&ClusterConfig> {
    if let Some(only) = config.only_cluster() {
        return Some(only);
    }
    let name = hostcalls::property("xds\0cluster_name")?;
    config.cluster(std::str::from_utf8(&name).ok()?)
}

/// The first host and the header that names them all.
fn name(cluster: &Cluster, hosts: Ranked) -> Option<(HostId, String)> {
    let table = cluster.table()?;
    let first = cluster.id(hosts.first()?)?;
    let mut header = String::with_capacity(hosts.as_slice().len() * USUAL_ADDRESS);
    for host in hosts.as_slice().iter().filter_map(|host| table.host(*host)) {
        if !header.is_empty() {
            header.push(',');
        }
        header.push_str(&host.address);
    }
    Some((first, header))
}

// Both pass through `on_http_response_headers` like an answer from a host, where debug headers are added.
fn shed(retry_after: Duration, random: u64) -> Action {
    // The header counts in whole seconds: rounded up or down by chance, so that the mean stays.
    let millis = retry_after.as_millis() + u128::from(random % 1000);
    let seconds = (millis / 1000).max(1).to_string();
    let body = format!("overloaded: try again in {seconds} s\n");
    let headers = [("retry-after", seconds.as_str())];
    answer(429, "weir_overloaded", &headers, &body, RESOURCE_EXHAUSTED)
}

fn no_host() -> Action {
    let body = "no host of this cluster is up\n";
    answer(503, "weir_no_host", &[], body, UNAVAILABLE)
}

fn answer(
    code: u32,
    details: &str,
    headers: &[(&str, &str)],
    body: &str,
    grpc_status: i32,
) -> Action {
    match hostcalls::respond(code, details, headers, body, grpc_status) {
        Ok(()) => Action::Pause,
        // An answer that cannot be given is better left to Envoy than never given.
        Err(_) => pass(),
    }
}

/// Why Envoy answered itself; 0 where the host did. Below 500 it is the host's answer.
fn envoy_flags(status: Option<u32>) -> u64 {
    match status {
        Some(..500) => 0,
        _ => number("response\0flags").unwrap_or(0),
    }
}

/// A property that is a number.
fn number(path: &str) -> Option<u64> {
    let bytes = hostcalls::property(path)?;
    Some(u64::from_le_bytes(bytes.first_chunk::<8>().copied()?))
}
