// SPDX-License-Identifier: Apache-2.0
//! Who chooses hosts and refuses requests, as data.

use clap::ValueEnum;
use serde_json::{Value, json};

use crate::callers::balancer::Balancer;

/// A way to keep hosts from too much work, all with the same hosts, callers and time-outs.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum Way {
    /// Envoy with Weir's filter, told by weir-control
    Weir,
    /// Envoy alone; nothing is refused
    LeastRequest,
    /// The same, by consistent hashing with bounded loads
    BoundedRingHash,
    /// The same, by Maglev
    Maglev,
    /// The same, by client-side weighted round robin
    Weighted,
    /// The same, by least request in half of the hosts, which the key chooses
    Subset,
    /// Least request with Envoy's filter that refuses by the share of failures
    AdmissionControl,
    /// The same with Envoy's filter that refuses by the time that answers take
    AdaptiveConcurrency,
}

/// Where a filter of Envoy refuses requests.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Place {
    /// In the callers' Envoys.
    Callers,
    /// In an Envoy before each host.
    Hosts,
}

/// Of Weir; weir-control's default.
pub(super) const SELECTION: &str = "estimate";

impl Way {
    /// How callers' Envoys choose where the filter does not.
    pub(super) fn balancer(self) -> Balancer {
        match self {
            Self::Weir
            | Self::LeastRequest
            | Self::AdmissionControl
            | Self::AdaptiveConcurrency => Balancer::LeastRequest,
            Self::BoundedRingHash => Balancer::BoundedRingHash,
            Self::Maglev => Balancer::Maglev,
            Self::Weighted => Balancer::Weighted,
            Self::Subset => Balancer::Subset,
        }
    }

    /// With what it runs, for the report.
    pub(super) fn parameters(self) -> String {
        match self {
            Self::Weir => format!(
                "selection {SELECTION}, overload dagor (steady) with {}, scrape with {}; everything else as weir-control has it",
                levels(),
                scrape()
            ),
            Self::LeastRequest
            | Self::BoundedRingHash
            | Self::Maglev
            | Self::Weighted
            | Self::Subset => format!("{:?}; no filter refuses", self.balancer()),
            Self::AdmissionControl => format!(
                "LEAST_REQUEST; at each caller, from the example of Envoy's documentation: {}",
                admission_control()
            ),
            Self::AdaptiveConcurrency => format!(
                "LEAST_REQUEST; in an Envoy before each host, from the example of Envoy's documentation: {}; callers \
                 try another host after a 503, at most twice",
                adaptive_concurrency()
            ),
        }
    }

    /// Envoy's filters before the router, and whether they are at the hosts: the concurrency is limited where
    /// all of it comes together, as the documentation wants it; else at the callers.
    pub(super) fn filters(self) -> (Place, Vec<Value>) {
        let filter = |name: &str, kind: &str, mut config: Value| {
            config["@type"] =
                format!("type.googleapis.com/envoy.extensions.filters.http.{name}.v3.{kind}")
                    .into();
            json!({"name": format!("envoy.filters.http.{name}"), "typed_config": config})
        };
        match self {
            Self::Weir
            | Self::LeastRequest
            | Self::BoundedRingHash
            | Self::Maglev
            | Self::Weighted
            | Self::Subset => (Place::Callers, Vec::new()),
            Self::AdmissionControl => {
                let config = admission_control();
                let filter = filter("admission_control", "AdmissionControl", config);
                (Place::Callers, vec![filter])
            }
            Self::AdaptiveConcurrency => {
                let config = adaptive_concurrency();
                let filter = filter("adaptive_concurrency", "AdaptiveConcurrency", config);
                (Place::Hosts, vec![filter])
            }
        }
    }
}

/// weir-control's `dagor`, for jobs of some 80 ms: its defaults are for jobs of seconds.
pub(super) fn levels() -> Value {
    json!({
        "target": "300ms",
        "low": "150ms",
        "high": "600ms",
        "settle": "15s",
        "window": "400ms",
        "half_life": "5s",
    })
}

/// weir-control's `scrape`: a level that is to move within a second needs figures more often than each.
pub(super) fn scrape() -> Value {
    json!({"interval": "200ms"})
}

/// As in the example of Envoy 1.40's documentation ("Admission Control"), but for what it has for gRPC.
/// A request that the route gives up, with 504, is a failure; one that another host answers late is not.
fn admission_control() -> Value {
    json!({
        "enabled": {"default_value": true, "runtime_key": "admission_control.enabled"},
        "sampling_window": "120s",
        "sr_threshold": {"default_value": {"value": 95.0}, "runtime_key": "admission_control.sr_threshold"},
        "aggression": {"default_value": 1.5, "runtime_key": "admission_control.aggression"},
        "rps_threshold": {"default_value": 5, "runtime_key": "admission_control.rps_threshold"},
        "max_rejection_probability": {
            "default_value": {"value": 80.0},
            "runtime_key": "admission_control.max_rejection_probability",
        },
        "success_criteria": {"http_criteria": {"http_success_status": [
            {"start": 100, "end": 400},
            {"start": 404, "end": 404},
        ]}},
    })
}

/// As in the example of Envoy 1.40's documentation ("Adaptive Concurrency").
fn adaptive_concurrency() -> Value {
    json!({
        "gradient_controller_config": {
            "sample_aggregate_percentile": {"value": 90},
            "concurrency_limit_params": {
                "concurrency_update_interval": "0.1s",
                "min_concurrency_limit": 25,
            },
            "min_rtt_calc_params": {
                "min_concurrency": 50,
                "jitter": {"value": 10},
                "interval": "60s",
                "request_count": 50,
            },
        },
        "enabled": {"default_value": true, "runtime_key": "adaptive_concurrency.enabled"},
    })
}
