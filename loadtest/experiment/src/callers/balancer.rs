// SPDX-License-Identifier: Apache-2.0
//! Envoy's own load-balancing policies, tuned as their documents advise.

use serde_json::{Value, json};

/// The header that is hashed, and that names a subset.
pub(crate) const KEY: &str = "x-weir-key";

/// A host may have so many per cent of the mean host's requests. Envoy's documentation calls 120 to 200 typical;
/// 125 is the value of Mirrokni, Thorup and Zadimoghaddam, *Consistent hashing with bounded loads* (SODA 2018).
const BALANCE_FACTOR: u32 = 125;

/// What a key may end with; the end names the subset.
const CLASSES: &str = "0123456789abcdef";

/// One of Envoy's own load-balancing policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Balancer {
    LeastRequest,
    /// Consistent hashing of the key.
    RingHash,
    /// The same, where a host that has too many requests is passed over.
    BoundedRingHash,
    /// Consistent hashing of the key by a table.
    Maglev,
    /// Client-side weighted round robin: by what hosts say of their utilisation.
    Weighted,
    /// Least request in half of the hosts, which the end of the key chooses.
    Subset,
}

impl Balancer {
    pub(super) fn hashes(self) -> bool {
        matches!(self, Self::RingHash | Self::BoundedRingHash | Self::Maglev)
    }

    /// Its fields of the cluster.
    pub(super) fn policy(self) -> Vec<(&'static str, Value)> {
        let policy = |name: &str| ("lb_policy", json!(name));
        match self {
            Self::LeastRequest => vec![policy("LEAST_REQUEST")],
            Self::RingHash => vec![policy("RING_HASH")],
            Self::BoundedRingHash => {
                let bound = json!({"consistent_hashing_lb_config": {"hash_balance_factor": BALANCE_FACTOR}});
                vec![policy("RING_HASH"), ("common_lb_config", bound)]
            }
            Self::Maglev => vec![policy("MAGLEV")],
            Self::Weighted => vec![("load_balancing_policy", weighted())],
            Self::Subset => {
                let subsets = json!({
                    "fallback_policy": "ANY_ENDPOINT",
                    "subset_selectors": [{"keys": ["class"]}],
                    "list_as_any": true,
                });
                vec![policy("LEAST_REQUEST"), ("lb_subset_config", subsets)]
            }
        }
    }

    /// Its filter before the router.
    pub(super) fn filter(self) -> Option<Value> {
        let rule = json!({
            "header": KEY,
            "on_header_present": {
                "metadata_namespace": "envoy.lb",
                "key": "class",
                "regex_value_rewrite": {"pattern": {"regex": "^.*(.)$"}, "substitution": "\\1"},
            },
        });
        (self == Self::Subset).then(|| {
            json!({
                "name": "envoy.filters.http.header_to_metadata",
                "typed_config": {
                    "@type": "type.googleapis.com/envoy.extensions.filters.http.header_to_metadata.v3.Config",
                    "request_rules": [rule],
                },
            })
        })
    }

    /// Its metadata of a host among so many.
    pub(super) fn metadata(self, host: usize, hosts: usize) -> Option<Value> {
        (self == Self::Subset)
            .then(|| json!({"filter_metadata": {"envoy.lb": {"class": classes(host, hosts)}}}))
    }

    /// As weir-sim calls its model.
    pub(crate) fn placement(self) -> &'static str {
        match self {
            Self::LeastRequest => "least-request",
            Self::RingHash | Self::Maglev => "hashing",
            Self::BoundedRingHash => "bounded-hashing",
            Self::Weighted => "weighted",
            Self::Subset => "subset",
        }
    }

    /// Flags of hosts that tell what it goes by.
    pub(crate) fn host_flags(self) -> &'static [&'static str] {
        match self {
            Self::Weighted => &["--orca-utilisation"],
            _ => &[],
        }
    }
}

/// Everything as Envoy has it, but that weights count after a second: its 10 s are for hosts that come and go.
fn weighted() -> Value {
    let config = json!({
        "@type": "type.googleapis.com/envoy.extensions.load_balancing_policies.\
                  client_side_weighted_round_robin.v3.ClientSideWeightedRoundRobin",
        "blackout_period": "1s",
    });
    json!({"policies": [{"typed_extension_config": {
        "name": "envoy.load_balancing_policies.client_side_weighted_round_robin",
        "typed_config": config,
    }}]})
}

/// The classes of keys that a host serves: each class has half of the hosts, from the one of its number on.
fn classes(host: usize, hosts: usize) -> Vec<String> {
    let serves = |class: &usize| (host + hosts - class % hosts) % hosts < hosts.div_ceil(2);
    let ends = CLASSES.chars().enumerate();
    let served = ends.filter(|(class, _)| serves(class));
    served.map(|(_, end)| end.to_string()).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use super::*;
    use crate::callers::bootstrap;
    use weir_needs::provided_or_skip;
    use weir_stage::command::Run;

    const ALL: [Balancer; 6] = [
        Balancer::LeastRequest,
        Balancer::RingHash,
        Balancer::BoundedRingHash,
        Balancer::Maglev,
        Balancer::Weighted,
        Balancer::Subset,
    ];

    #[test]
    fn each_class_has_half_of_the_hosts_and_no_host_has_all_classes() {
        let hosts: Vec<_> = (0..6).map(|host| classes(host, 6)).collect();
        for class in CLASSES.chars() {
            let with = hosts.iter().filter(|host| host.contains(&class.into()));
            assert_eq!(with.count(), 3, "{class}");
        }
        assert!(hosts.iter().all(|host| host.len() < CLASSES.len()));
    }

    #[test]
    fn envoy_takes_each_policy() {
        let Some(envoy) = provided_or_skip("WEIR_ENVOY") else {
            return;
        };
        let folder = tempfile::tempdir().unwrap();
        let hosts = ["127.0.0.1:1", "127.0.0.1:2"].map(|host| host.parse().unwrap());
        for balancer in ALL {
            let bootstrap = bootstrap::alone("n", balancer, &hosts, "2s", &[]);
            let file = folder.path().join(format!("{balancer:?}.json"));
            fs::write(&file, bootstrap.to_string()).unwrap();
            let mut command = Command::new(&envoy);
            command.args(["--mode", "validate", "-c"]).arg(&file);
            command.captured().unwrap();
        }
    }
}
