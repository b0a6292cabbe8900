// SPDX-License-Identifier: Apache-2.0
//! LDS: a listener with the filter before the router.

use envoy_types::pb::envoy::config::accesslog::v3 as access_log;
use envoy_types::pb::envoy::config::core::v3::{self as core, substitution_format_string::Format};
use envoy_types::pb::envoy::config::listener::v3 as listener;
use envoy_types::pb::envoy::extensions::access_loggers::file::v3::{
    FileAccessLog, file_access_log::AccessLogFormat,
};
use envoy_types::pb::envoy::extensions::filters::http::router::v3::Router;
use envoy_types::pb::envoy::extensions::filters::network::http_connection_manager::v3 as http;
use envoy_types::pb::google::protobuf::{Struct, Value, value::Kind};
use envoy_types::util::pack_any;
use http::http_connection_manager::{
    InternalAddressConfig, RouteSpecifier, ServerHeaderTransformation,
};

use super::config::Listener;
use super::extension::{discovered, filter};
use super::{FILTER, protobuf};

/// A line of JSON for each request, which people and `weirctl capture` read: what was asked, the answer, who gave it, and
/// why that host was chosen.
const LOG_FORMAT: [(&str, &str); 14] = [
    ("start_time", "%START_TIME(%Y-%m-%dT%H:%M:%S.%6fZ)%"),
    ("method", "%REQ(:METHOD)%"),
    ("path", "%REQ(:PATH)%"),
    ("key", "%REQ(X-WEIR-KEY)%"),
    ("priority", "%REQ(X-WEIR-PRIORITY)%"),
    ("user", "%REQ(X-WEIR-USER)%"),
    ("response_code", "%RESPONSE_CODE%"),
    ("response_flags", "%RESPONSE_FLAGS%"),
    ("duration", "%DURATION%"),
    ("upstream_host", "%UPSTREAM_HOST%"),
    ("before_us", "%COMMON_DURATION(DS_RX_BEG:US_TX_BEG:us)%"),
    ("upstream_us", "%COMMON_DURATION(US_TX_BEG:US_RX_END:us)%"),
    ("load_metrics", "%RESP(ENDPOINT-LOAD-METRICS)%"),
    ("reason", "%FILTER_STATE(wasm.weir_reason:PLAIN)%"),
];

pub(super) fn listener(config: &Listener) -> listener::Listener {
    let manager = protobuf::any(connection_manager(config));
    let filter = listener::Filter {
        name: "envoy.filters.network.http_connection_manager".to_owned(),
        config_type: manager.map(listener::filter::ConfigType::TypedConfig),
    };
    listener::Listener {
        name: config.name.clone(),
        address: protobuf::address(config.address),
        filter_chains: vec![listener::FilterChain {
            filters: vec![filter],
            ..Default::default()
        }],
        ..Default::default()
    }
}

/// `request_timeout` is always set: a VM that panics leaves its paused requests to it. The caller's
/// address is that of its connection, whatever it writes into `x-forwarded-for`, because the filter
/// trusts by it. No address counts as internal, and a host's `server` header is the caller's to see.
fn connection_manager(config: &Listener) -> http::HttpConnectionManager {
    let rds = http::Rds {
        config_source: protobuf::ads(),
        route_config_name: config.name.clone(),
    };
    http::HttpConnectionManager {
        stat_prefix: config.name.clone(),
        route_specifier: Some(RouteSpecifier::Rds(rds)),
        http_filters: vec![
            discovered(FILTER),
            filter("envoy.filters.http.router", pack_any(Router::default())),
        ],
        request_timeout: protobuf::duration(config.request_timeout),
        // Long jobs are silent until they answer: the route's time-out is the limit.
        stream_idle_timeout: protobuf::duration(config.timeout),
        server_header_transformation: ServerHeaderTransformation::PassThrough.into(),
        use_remote_address: protobuf::on(),
        skip_xff_append: true,
        internal_address_config: Some(InternalAddressConfig::default()),
        access_log: config.access_log.iter().map(|path| log(path)).collect(),
        ..Default::default()
    }
}

fn log(path: &str) -> access_log::AccessLog {
    let field = |(name, format): (&str, &str)| {
        let format = Kind::StringValue(format.to_owned());
        (name.to_owned(), Value { kind: Some(format) })
    };
    let fields = LOG_FORMAT.map(field).into_iter().collect();
    let format = core::SubstitutionFormatString {
        format: Some(Format::JsonFormat(Struct { fields })),
        ..Default::default()
    };
    let file = FileAccessLog {
        path: path.to_owned(),
        access_log_format: Some(AccessLogFormat::LogFormat(format)),
    };
    access_log::AccessLog {
        name: "envoy.access_loggers.file".to_owned(),
        config_type: protobuf::any(file).map(access_log::access_log::ConfigType::TypedConfig),
        ..Default::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_snippet_for_other_envoys_has_the_same_fields() {
        let snippet = include_str!("../../../envoy-config/static/access-log.yaml");
        for (name, format) in LOG_FORMAT {
            let line = format!("{name}: \"{format}\"");
            assert!(snippet.lines().any(|of| of.trim() == line), "{line}");
        }
    }
}
