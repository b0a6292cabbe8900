// SPDX-License-Identifier: Apache-2.0
//! What an attempt's answer, or its want of one, says of hosts.

use weir_policy::{Answer, HostId, Keys};

use crate::answer;
use crate::bounce;
use crate::credits;
use crate::headers::Headers;
use crate::host::{Host, Map, Number, RequestHost, Text};
use crate::in_flight::InFlight;
use crate::orca::{self, Said};
use crate::record::Ending;
use crate::vm::Vm;

/// Envoy's response flags for an upstream that reset, refused or broke the connection
/// (StreamInfo::CoreResponseFlag UpstreamRemoteReset, UpstreamConnectionFailure, UpstreamConnectionTermination).
const HOST_FAILED: u64 = 0x10 | 0x20 | 0x40;
/// That of them for a connection that was not made: no request did it.
const NOT_CONNECTED: u64 = 0x20;
/// Those for an upstream that took the request and gave no answer that Envoy would pass on (UpstreamRequestTimeout,
/// UpstreamMaxStreamDurationReached, UpstreamProtocolError).
const NO_ANSWER: u64 = 0x4 | 0x8_0000 | 0x80_0000;

/// An answer has come, of this host or of Envoy.
pub(crate) fn answered<H: Host>(
    vm: &mut Vm<H>,
    host: &impl RequestHost,
    in_flight: &mut InFlight,
    by: Option<HostId>,
) {
    in_flight.follow();
    let headers = host.headers(Map::Response).unwrap_or_default();
    if in_flight.tries.is_some() && headers.get(bounce::BOUNCED).is_some() {
        unretried(vm, in_flight, by);
    }
    let [status, grpc_status, said] = headers.get_each([":status", "grpc-status", orca::HEADER]);
    in_flight.status = status.and_then(answer::status);
    in_flight.is_grpc = grpc_status.is_some();
    // Envoy's own answer, on a time-out say, is no sign of life of the host.
    let is_hosts = envoy_flags(host, in_flight) == 0;
    if is_hosts && let Some(by) = by {
        if in_flight.asks_credits {
            credited(vm, host, (&in_flight.table, by), &headers);
        }
        answered_by(vm, host, in_flight, by, (&headers, said));
    }
    if let Some(prefilling) = in_flight.prefilling.take() {
        // A host that has its prompts read elsewhere answers when that is done. How, is no word of who read it.
        let ending = match is_hosts {
            true => Ending::Status(200),
            false => Ending::NoAnswer,
        };
        vm.end_prefill(*prefilling, ending);
    }
}

/// The host may have given credits, which are no business of the caller's.
#[inline(never)]
fn credited<H: Host>(
    vm: &mut Vm<H>,
    host: &impl RequestHost,
    (table, by): (&str, HostId),
    headers: &Headers,
) {
    if headers.get(credits::CREDITS).is_none() {
        return;
    }
    let _ = host.set_header(Map::Response, credits::CREDITS, None);
    if let Some(credits) = credits::given(headers) {
        vm.credited(table, by, credits);
    }
}

/// A bounce is the answer: nobody else was tried, and the request is where it was.
#[inline(never)]
fn unretried<H: Host>(vm: &mut Vm<H>, in_flight: &mut InFlight, by: Option<HostId>) {
    vm.unretried(&in_flight.table);
    if let Some(by) = by {
        vm.moved(in_flight, by, in_flight.at);
    }
}

/// The answer comes from this host: perhaps not the first one named, and perhaps with its load.
fn answered_by<H: Host>(
    vm: &mut Vm<H>,
    host: &impl RequestHost,
    in_flight: &mut InFlight,
    by: HostId,
    (headers, said): (&Headers, Option<&[u8]>),
) {
    let (status, is_grpc) = (in_flight.status, in_flight.is_grpc);
    let mut answer = answer::of(status.unwrap_or(0), is_grpc, headers);
    if answer == Answer::Failed
        && in_flight.has_time_out
        && answer::is_late(status, is_grpc, headers)
    {
        answer = Answer::Excused;
    }
    let is_news = said.is_some() || by != in_flight.host || answer == Answer::Failed;
    let now = match is_news {
        true => vm.host.now(),
        false => in_flight.at,
    };
    let said = said.and_then(|value| orca::parse(value, now));
    let Said { load, spent } = said.unwrap_or_default();
    // Envoy has not tried the first one at all.
    let is_missed = by != in_flight.host && host.number(Number::Attempts) == Some(1);
    let hedge = in_flight.hedge.take();
    // Envoy takes back the other try.
    if let Some(hedge) = hedge {
        vm.hedge_ended(&in_flight.table, hedge.host);
    }
    if by != in_flight.host {
        let (table, keys) = (&in_flight.table, &in_flight.request.keys);
        if is_missed {
            vm.missed(table, in_flight.host, by, now);
        } else if answer == Answer::Failed {
            // Envoy tried the next one, which could not either: it is the request.
            vm.failed_at_both(table, keys, [in_flight.host, by], now);
            answer = Answer::Excused;
        } else if hedge.is_none_or(|hedge| hedge.is_early(now.saturating_sub(in_flight.at))) {
            // The first one did not take it, or only took long. The other one could, so it is not the request.
            let first = (in_flight.host, in_flight.at);
            vm.failed(table, &Keys::default(), first, now);
        }
        vm.moved(in_flight, by, now);
    }
    let (table, keys) = (&in_flight.table, &in_flight.request.keys);
    let sent = (in_flight.host, in_flight.at);
    vm.answered(table, keys, sent, (answer, now), load);
    if let (Some(key), Some(spent)) = (keys.last(), spent) {
        vm.spent(table, by, key, spent, now);
    }
}

/// The request is over. Says where, and how.
pub(crate) fn ended<H: Host>(
    vm: &mut Vm<H>,
    host: &impl RequestHost,
    in_flight: &mut InFlight,
) -> (HostId, Ending) {
    in_flight.follow();
    let flags = envoy_flags(host, in_flight);
    let ending = match in_flight.status {
        Some(status) if flags == 0 => Ending::Status(status),
        _ => Ending::NoAnswer,
    };
    if flags & (HOST_FAILED | NO_ANSWER) != 0 {
        got_no_answer(vm, host, in_flight, flags);
    }
    let at = in_flight.host;
    vm.end(in_flight, ending);
    (at, ending)
}

/// Envoy gave up.
fn got_no_answer<H: Host>(
    vm: &mut Vm<H>,
    host: &impl RequestHost,
    in_flight: &InFlight,
    flags: u64,
) {
    let now = vm.host.now();
    let last = host.text(Text::Upstream, HostId::of);
    let last = last.unwrap_or(in_flight.host);
    let (table, first) = (&in_flight.table, (in_flight.host, in_flight.at));
    let keys = &in_flight.request.keys;
    if flags & NOT_CONNECTED != 0 {
        vm.failed(table, &Keys::default(), first, now);
    } else if last != in_flight.host && in_flight.hedge.is_none() {
        vm.failed_at_both(table, keys, [in_flight.host, last], now);
    } else if flags & HOST_FAILED != 0 {
        vm.failed(table, keys, first, now);
    } else if !in_flight.has_time_out {
        vm.timed_out(table, keys, first, now);
    }
}

/// Why Envoy answered itself; 0 where the host did. Below 500 it is the host's answer, but for gRPC.
fn envoy_flags(host: &impl RequestHost, in_flight: &InFlight) -> u64 {
    match in_flight.status {
        Some(..500) if !in_flight.is_grpc => 0,
        _ => host.number(Number::ResponseFlags).unwrap_or(0),
    }
}
