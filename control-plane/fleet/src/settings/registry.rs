// SPDX-License-Identifier: Apache-2.0
//! Who names a cluster's hosts, beside the configuration.

use std::sync::Arc;

use super::{Consul, Dns, Kubernetes};
use crate::poll::Source;

/// Who names a cluster's hosts, and how it is asked.
#[derive(Clone, Debug, PartialEq)]
pub enum Registry {
    /// Consul's catalog.
    Consul(Arc<Consul>),
    /// A name's records.
    Dns(Arc<Dns>),
    /// A service's endpoints.
    Kubernetes(Arc<Kubernetes>),
}

impl Registry {
    /// What it is asked as.
    pub fn source(&self) -> Source {
        match self {
            Self::Consul(_) => Source::Consul,
            Self::Dns(_) => Source::Dns,
            Self::Kubernetes(_) => Source::Kubernetes,
        }
    }

    /// Its name in sentences.
    pub fn title(&self) -> &'static str {
        match self {
            Self::Consul(_) => "Consul",
            Self::Dns(_) => "DNS",
            Self::Kubernetes(_) => "Kubernetes",
        }
    }

    /// Whether it is asked with these settings, not only with the like: they tell a task from the one that replaced it.
    pub fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Consul(one), Self::Consul(other)) => Arc::ptr_eq(one, other),
            (Self::Dns(one), Self::Dns(other)) => Arc::ptr_eq(one, other),
            (Self::Kubernetes(one), Self::Kubernetes(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }

    /// Whether the same hosts would be found.
    pub fn finds_the_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Consul(one), Self::Consul(other)) => one.finds_the_same(other),
            (Self::Dns(one), Self::Dns(other)) => one.finds_the_same(other),
            (Self::Kubernetes(one), Self::Kubernetes(other)) => one.finds_the_same(other),
            _ => false,
        }
    }
}
