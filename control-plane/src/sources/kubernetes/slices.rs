// SPDX-License-Identifier: Apache-2.0
//! All slices of a service. Pure.

use std::collections::BTreeMap;

use weir_fleet::poll::{Fault, PollError};
use weir_policy::MAX_HOSTS;

use super::answer::Slice;
use super::read::read;
use crate::config::Kubernetes;
use crate::kube::objects::{Kept, Metadata};
use crate::sources::discovery::Found;

/// A pod has an address of each family, and is in two slices while it is moved.
const MAX_ENDPOINTS: usize = 4 * MAX_HOSTS;

/// By name.
#[derive(Debug, Default)]
pub(super) struct Slices {
    all: BTreeMap<String, Slice>,
    endpoints: usize,
}

impl Slices {
    pub(super) fn read(&self, settings: &Kubernetes) -> Found {
        read(self.all.values(), settings)
    }
}

impl Kept for Slices {
    type Object = Slice;

    const RIGHT: &'static str = "get, list and watch of endpointslices in discovery.k8s.io";

    fn metadata(slice: &Slice) -> &Metadata {
        &slice.metadata
    }

    fn put(&mut self, slice: Slice) -> Result<(), PollError> {
        self.remove(&slice.metadata.name);
        self.endpoints += slice.endpoints.len();
        // Slices may be empty.
        if self.endpoints.max(self.all.len()) > MAX_ENDPOINTS {
            let detail = format!("more than {MAX_ENDPOINTS} endpoints or slices");
            return Err(PollError::new(Fault::TooLarge, detail));
        }
        self.all.insert(slice.metadata.name.clone(), slice);
        Ok(())
    }

    fn remove(&mut self, name: &str) {
        if let Some(old) = self.all.remove(name) {
            self.endpoints -= old.endpoints.len();
        }
    }
}

#[cfg(test)]
mod tests;
