// SPDX-License-Identifier: Apache-2.0
//! LDS: a listener with the filter before the router.

use envoy_types::pb::envoy::config::accesslog::v3 as access_log;
use envoy_types::pb::envoy::config::core::v3::{
    self as core, data_source::Specifier, substitution_format_string::Format,
};
use envoy_types::pb::envoy::config::listener::v3 as listener;
use envoy_types::pb::envoy::extensions::access_loggers::file::v3::{
    FileAccessLog, file_access_log::AccessLogFormat,
};
use envoy_types::pb::envoy::extensions::filters::http::router::v3::Router;
use envoy_types::pb::envoy::extensions::filters::network::http_connection_manager::v3 as http;
use envoy_types::util::pack_any;
use http::http_connection_manager::{
    InternalAddressConfig, RouteSpecifier, ServerHeaderTransformation,
};

use super::config::Listener;
use super::extension::{discovered, filter};
use super::{FILTER, protobuf};

/// A line a request: what was asked, the answer, who gave it, and why that host was chosen.
const LOG_FORMAT: &str = "[%START_TIME%] %REQ(:METHOD)% %REQ(:PATH)% %RESPONSE_CODE% %RESPONSE_FLAGS% \
     %DURATION% %UPSTREAM_HOST% %FILTER_STATE(wasm.weir_reason:PLAIN)%\n";

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
    let format = core::SubstitutionFormatString {
        format: Some(Format::TextFormatSource(core::DataSource {
            specifier: Some(Specifier::InlineString(LOG_FORMAT.to_owned())),
            ..Default::default()
        })),
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
