// SPDX-License-Identifier: Apache-2.0
//! Clusters that are written as WeirPolicies.

use weir_fleet::settings::Access;

/// Where WeirPolicies are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policies {
    /// Sorted, none twice.
    pub namespaces: Vec<String>,
    /// Who is asked, and who asks: for them, and for their services' endpoints.
    pub access: Access,
    /// Whose entries in their status are this weir-control's.
    pub controller_name: String,
}

impl Policies {
    /// Whether a cluster of this name may be one of a policy.
    pub fn may_have(&self, cluster: &str) -> bool {
        let namespace = cluster.rsplit_once('.').map(|(_, namespace)| namespace);
        namespace.is_some_and(|namespace| self.namespaces.iter().any(|it| it == namespace))
    }
}

/// The API group of InferencePools.
pub(crate) const POOLS: &str = "inference.networking.k8s.io";
