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
}

/// What a policy is about: an entry of its `targetRefs`, in the policy's namespace.
pub use weir_fleet::settings::Backend as Target;

/// The API group of InferencePools.
pub(crate) const POOLS: &str = "inference.networking.k8s.io";
