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

/// What a policy is about: an entry of its `targetRefs`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// A service in the policy's namespace.
    pub service: String,
    /// Its port, by name or by the number at the pods.
    pub port: String,
}
