// SPDX-License-Identifier: Apache-2.0
//! Short ways to write what every resource repeats.

use std::net::SocketAddr;
use std::time::Duration;

use envoy_types::pb::envoy::config::core::v3 as core;
use envoy_types::pb::google::protobuf as google;
use envoy_types::util::pack_any;
use prost::{Message, Name};

pub(super) fn any<M: Message + Name>(message: M) -> Option<google::Any> {
    Some(pack_any(message))
}

/// An extension: Envoy finds it by the type of its configuration, the name is for people.
pub(super) fn extension<M: Message + Name>(
    name: &str,
    message: M,
) -> Option<core::TypedExtensionConfig> {
    Some(core::TypedExtensionConfig {
        name: name.to_owned(),
        typed_config: any(message),
    })
}

/// Saturates at about 292 years on either side; Envoy's own limit is higher still.
pub(super) fn duration(duration: Duration) -> Option<google::Duration> {
    let seconds = i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
    Some(google::Duration {
        seconds,
        nanos: duration.subsec_nanos().cast_signed(),
    })
}

pub(super) fn uint32(value: u32) -> Option<google::UInt32Value> {
    Some(google::UInt32Value { value })
}

pub(super) fn on() -> Option<google::BoolValue> {
    Some(google::BoolValue { value: true })
}

pub(super) fn address(address: SocketAddr) -> Option<core::Address> {
    let socket = core::SocketAddress {
        address: address.ip().to_string(),
        port_specifier: Some(core::socket_address::PortSpecifier::PortValue(
            address.port().into(),
        )),
        ..Default::default()
    };
    Some(core::Address {
        address: Some(core::address::Address::SocketAddress(socket)),
    })
}

/// The stream that the resource itself came by.
pub(super) fn ads() -> Option<core::ConfigSource> {
    let specifier =
        core::config_source::ConfigSourceSpecifier::Ads(core::AggregatedConfigSource {});
    Some(core::ConfigSource {
        resource_api_version: core::ApiVersion::V3.into(),
        config_source_specifier: Some(specifier),
        ..Default::default()
    })
}
