// SPDX-License-Identifier: Apache-2.0
//! A request of a stream, as a line of a log.

use envoy_types::pb::envoy::config::core::v3::Address;
use envoy_types::pb::envoy::config::core::v3::address::Address as Kind;
use envoy_types::pb::envoy::config::core::v3::socket_address::PortSpecifier;
use envoy_types::pb::envoy::data::accesslog::v3::{AccessLogType, HttpAccessLogEntry};
use envoy_types::pb::google::protobuf::Duration;
use jiff::Timestamp;

use crate::capture::Line;

/// None where it has not ended, or does not say when it began.
pub(super) fn of(entry: HttpAccessLogEntry, caller: &str) -> Option<Line> {
    let common = entry.common_properties?;
    let ends = [AccessLogType::NotSet, AccessLogType::DownstreamEnd];
    if !ends.contains(&common.access_log_type()) {
        return None;
    }
    let start = common.start_time?;
    let request = entry.request.unwrap_or_default();
    let response = entry.response.unwrap_or_default();
    let said = |name: &str| request.request_headers.get(name).cloned();
    let host = common.upstream_remote_address.and_then(shown);
    let before = common.time_to_first_upstream_tx_byte.map(micros);
    let until = common.time_to_last_upstream_rx_byte.map(micros);
    let duration = common.duration.or(common.time_to_last_downstream_tx_byte);
    Some(Line {
        start_time: Timestamp::new(start.seconds, start.nanos).ok()?,
        key: said("x-weir-key"),
        priority: said("x-weir-priority"),
        user: said("x-weir-user"),
        response_code: response
            .response_code
            .map_or(0, |code| u16::try_from(code.value).unwrap_or(0)),
        duration: duration.map_or(0, |duration| micros(duration) / 1000),
        upstream_host: host,
        before_us: before,
        upstream_us: until
            .zip(before)
            .map(|(until, before)| until.saturating_sub(before)),
        load_metrics: response
            .response_headers
            .get("endpoint-load-metrics")
            .cloned(),
        caller: Some(caller.to_owned()),
    })
}

fn micros(duration: Duration) -> u64 {
    let seconds = u64::try_from(duration.seconds).unwrap_or(0);
    let nanos = u64::try_from(duration.nanos).unwrap_or(0);
    seconds
        .saturating_mul(1_000_000)
        .saturating_add(nanos / 1000)
}

/// As `%UPSTREAM_HOST%` shows it.
fn shown(address: Address) -> Option<String> {
    match address.address? {
        Kind::SocketAddress(address) => {
            let PortSpecifier::PortValue(port) = address.port_specifier? else {
                return None;
            };
            match address.address.contains(':') {
                true => Some(format!("[{}]:{port}", address.address)),
                false => Some(format!("{}:{port}", address.address)),
            }
        }
        Kind::Pipe(pipe) => Some(pipe.path),
        Kind::EnvoyInternalAddress(_) => None,
    }
}
