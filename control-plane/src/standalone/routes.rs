// SPDX-License-Identifier: Apache-2.0
//! RDS: everything on a listener goes to its cluster.

use std::time::Duration;

use envoy_types::pb::envoy::config::route::v3 as route;
use envoy_types::pb::envoy::extensions::retry::host::previous_hosts::v3::PreviousHostsPredicate;
use route::header_matcher::HeaderMatchSpecifier;
use route::retry_policy::{RetryBackOff, RetryHostPredicate, retry_host_predicate};
use weir_filter::bounce::BOUNCED;

use super::config::Listener;
use super::protobuf;

/// Only what cannot have reached a host's work is tried again, and what a host gave back. A host's own 503 is an
/// answer: a blind retry of it would add load where there is too much.
const RETRY_ON: &str = "connect-failure,refused-stream,reset-before-request,retriable-headers";

/// With the three ranked hosts of the default policy two may fail, and two give the request back.
const RETRIES: u32 = 4;

/// Before the first retry and the longest one. Envoy's default of 25 ms would be waited for at each request that is
/// given back.
const BACK_OFF: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(250));

/// Draws of another host when the fallback policy picks one that has failed. With `previous_hosts`
/// alone one draw is made, which may be the dead host again.
const HOST_SELECTION_ATTEMPTS: i64 = 5;

pub(super) fn routes(listener: &Listener) -> route::RouteConfiguration {
    let everything = route::RouteMatch {
        path_specifier: Some(route::route_match::PathSpecifier::Prefix("/".to_owned())),
        ..Default::default()
    };
    let action = route::RouteAction {
        cluster_specifier: Some(route::route_action::ClusterSpecifier::Cluster(
            listener.cluster.clone(),
        )),
        timeout: protobuf::duration(listener.timeout),
        retry_policy: Some(retries()),
        ..Default::default()
    };
    let route = route::Route {
        r#match: Some(everything),
        action: Some(route::route::Action::Route(action)),
        ..Default::default()
    };
    let host = route::VirtualHost {
        name: listener.name.clone(),
        domains: listener.domains.clone(),
        routes: vec![route],
        ..Default::default()
    };
    route::RouteConfiguration {
        name: listener.name.clone(),
        virtual_hosts: vec![host],
        ..Default::default()
    }
}

fn retries() -> route::RetryPolicy {
    let previous_hosts = RetryHostPredicate {
        name: "envoy.retry_host_predicates.previous_hosts".to_owned(),
        config_type: protobuf::any(PreviousHostsPredicate {})
            .map(retry_host_predicate::ConfigType::TypedConfig),
    };
    let bounced = route::HeaderMatcher {
        name: BOUNCED.to_owned(),
        header_match_specifier: Some(HeaderMatchSpecifier::PresentMatch(true)),
        ..Default::default()
    };
    let (base, max) = BACK_OFF;
    let back_off = RetryBackOff {
        base_interval: protobuf::duration(base),
        max_interval: protobuf::duration(max),
    };
    route::RetryPolicy {
        retry_on: RETRY_ON.to_owned(),
        num_retries: protobuf::uint32(RETRIES),
        retry_host_predicate: vec![previous_hosts],
        host_selection_retry_max_attempts: HOST_SELECTION_ATTEMPTS,
        retriable_headers: vec![bounced],
        retry_back_off: Some(back_off),
        ..Default::default()
    }
}
