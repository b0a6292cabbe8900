// SPDX-License-Identifier: Apache-2.0
//! A request on its way to a host.

use std::rc::Rc;
use std::time::Duration;

use proxy_wasm::types::Action;
use weir_policy::{Answer, Cluster, HostId, Keys, Ranked, Request};

use crate::headers::Headers;
use crate::hostcalls::{self, Map};
use crate::orca::Said;
use crate::record::Ending;
use crate::{answer, hedge, orca, vm};

/// Read by Envoy's override_host policy; the wire form of the Kubernetes inference gateway's picker.
const DESTINATION: &str = "x-gateway-destination-endpoint";
/// Room for an IPv4 address with its port and a comma.
const USUAL_ADDRESS: usize = 22;
/// Envoy's response flags for an upstream that reset, refused or broke the connection
/// (StreamInfo::CoreResponseFlag UpstreamRemoteReset, UpstreamConnectionFailure, UpstreamConnectionTermination).
const HOST_FAILED: u64 = 0x10 | 0x20 | 0x40;
/// That of them for a connection that was not made: no request did it.
const NOT_CONNECTED: u64 = 0x20;
/// Those for an upstream that took the request and gave no answer that Envoy would pass on (UpstreamRequestTimeout,
/// UpstreamMaxStreamDurationReached, UpstreamProtocolError).
const NO_ANSWER: u64 = 0x4 | 0x8_0000 | 0x80_0000;

/// A request to be routed: its table, key and rank, and what may be done with it.
#[derive(Clone)]
pub(crate) struct RouteRequest {
    pub(crate) table: Rc<str>,
    pub(crate) request: Request,
    /// It may be tried at two hosts at once.
    pub(crate) may_hedge: bool,
    /// Its caller chose how long it may take.
    pub(crate) has_time_out: bool,
}

/// An attempt in flight, until Envoy says how it ended.
pub(crate) struct InFlight {
    table: Rc<str>,
    /// Where it is: the first host named, then the one that answers.
    host: HostId,
    request: Request,
    /// When it went there.
    at: Duration,
    status: Option<u32>,
    /// Its caller chose how long it may take: that this was too short is no host's fault.
    has_time_out: bool,
    /// The answer's headers have a gRPC status: Envoy's own answers too come with `:status` 200 then.
    is_grpc: bool,
    /// The second host, and when Envoy may try it although the first has not failed.
    hedged: Option<(HostId, Duration)>,
}

impl InFlight {
    /// Names the hosts for Envoy; none where the choice is left to it.
    pub(crate) fn to(route: &RouteRequest, hosts: Ranked, now: Duration) -> Option<Self> {
        let (table, request) = (&route.table, &route.request);
        let (host, destination) = vm::with(|vm| name(vm.cluster(table)?, hosts)).flatten()?;
        hostcalls::set_header(Map::Request, DESTINATION, &destination).ok()?;
        let hedge = route
            .may_hedge
            .then(|| vm::with(|vm| vm.hedge(table, &hosts, request, now)));
        let hedged = hedge.flatten().flatten().and_then(|(second, after)| {
            if hedge::ask(after) {
                return Some((second, now + after));
            }
            vm::with(|vm| vm.hedge_ended(table, second));
            None
        });
        vm::with(|vm| vm.assigned(table, host, request, now));
        Some(Self {
            table: Rc::clone(table),
            host,
            request: request.clone(),
            has_time_out: route.has_time_out,
            at: now,
            status: None,
            is_grpc: false,
            hedged,
        })
    }

    /// An answer has come, of a host or of Envoy.
    pub(crate) fn answered(&mut self, address: Option<&str>) {
        let headers = hostcalls::headers(Map::Response).unwrap_or_default();
        self.status = headers
            .get(":status")
            .and_then(|status| std::str::from_utf8(status).ok()?.parse().ok());
        self.is_grpc = headers.get("grpc-status").is_some();
        // Envoy's own answer, on a time-out say, is no sign of life of the host.
        if self.envoy_flags() == 0 {
            self.answered_by(address, &headers);
        }
    }

    /// The answer comes from `address`: perhaps not from the first host named, and perhaps with its load.
    fn answered_by(&mut self, address: Option<&str>, headers: &Headers) {
        let Some(host) = address.map(HostId::of) else {
            return;
        };
        let said = headers.get(orca::HEADER);
        let mut answer = answer::of(self.status.unwrap_or(0), self.is_grpc, headers);
        if answer == Answer::Failed
            && self.has_time_out
            && answer::is_late(self.status, self.is_grpc, headers)
        {
            answer = Answer::Excused;
        }
        let is_news = said.is_some() || host != self.host || answer == Answer::Failed;
        let now = match is_news {
            true => hostcalls::monotonic(),
            false => self.at,
        };
        let said = said.and_then(|value| orca::parse(value, now));
        let Said { load, spent } = said.unwrap_or_default();
        // Envoy has not tried the first one at all.
        let is_missed = host != self.host && number("upstream\0request_attempt_count") == Some(1);
        let hedged = self.hedged.take();
        vm::with(|vm| {
            // Envoy takes back the other try.
            if let Some((second, _)) = hedged {
                vm.hedge_ended(&self.table, second);
            }
            let keys = &self.request.keys;
            if host != self.host {
                if is_missed {
                    vm.missed(&self.table, self.host, host, now);
                } else if answer == Answer::Failed {
                    // Envoy tried the next one, which could not either: it is the request.
                    vm.failed_at_both(&self.table, keys, [self.host, host], now);
                    answer = Answer::Excused;
                } else if hedged.is_none_or(|(_, from)| now < from) {
                    // The first one did not take it, or only took long. The other one could, so it is not the request.
                    let first = (self.host, self.at);
                    vm.failed(&self.table, &Keys::default(), first, now);
                }
                vm.ended(&self.table, self.host, self.at, Ending::NoAnswer);
                vm.assigned(&self.table, host, &self.request, now);
                (self.host, self.at) = (host, now);
            }
            vm.answered(&self.table, keys, (host, self.at), (answer, now), load);
            if let (Some(key), Some(spent)) = (keys.last(), spent) {
                vm.spent(&self.table, host, key, spent, now);
            }
        });
    }

    /// The request is over.
    pub(crate) fn ended(self) {
        let flags = self.envoy_flags();
        let ending = match self.status {
            Some(status) if flags == 0 => Ending::Status(status),
            _ => Ending::NoAnswer,
        };
        if flags & (HOST_FAILED | NO_ANSWER) != 0 {
            self.got_no_answer(flags);
        }
        vm::with(|vm| {
            vm.ended(&self.table, self.host, self.at, ending);
            vm.place_is_free(&self.table);
            if let Some((second, _)) = self.hedged {
                vm.hedge_ended(&self.table, second);
            }
        });
    }

    /// Envoy gave up.
    fn got_no_answer(&self, flags: u64) {
        let now = hostcalls::monotonic();
        let last = hostcalls::property("upstream\0address");
        let last = last.as_deref().and_then(|a| std::str::from_utf8(a).ok());
        let last = last.map_or(self.host, HostId::of);
        let (table, first) = (&self.table, (self.host, self.at));
        let keys = &self.request.keys;
        vm::with(|vm| {
            if flags & NOT_CONNECTED != 0 {
                vm.failed(table, &Keys::default(), first, now);
            } else if last != self.host && self.hedged.is_none() {
                vm.failed_at_both(table, keys, [self.host, last], now);
            } else if flags & HOST_FAILED != 0 {
                vm.failed(table, keys, first, now);
            } else if !self.has_time_out {
                vm.timed_out(table, keys, first, now);
            }
        });
    }

    /// Why Envoy answered itself; 0 where the host did. Below 500 it is the host's answer, but for gRPC.
    fn envoy_flags(&self) -> u64 {
        match self.status {
            Some(..500) if !self.is_grpc => 0,
            _ => number("response\0flags").unwrap_or(0),
        }
    }
}

/// Leaves the choice to Envoy: a destination that the caller sent would be honoured, so it goes.
pub(crate) fn pass() -> Action {
    let _ = hostcalls::remove_header(Map::Request, DESTINATION);
    Action::Continue
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

/// A property that is a number.
fn number(path: &str) -> Option<u64> {
    let bytes = hostcalls::property(path)?;
    Some(u64::from_le_bytes(bytes.first_chunk::<8>().copied()?))
}
