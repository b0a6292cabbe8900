// SPDX-License-Identifier: Apache-2.0
//! All slices of a service, as a list and what is watched since tell them. Pure.

use std::collections::BTreeMap;

use weir_fleet::poll::{Fault, PollError};
use weir_policy::MAX_HOSTS;

use super::answer::{self, Page, Slice};
use super::read::read;
use crate::config::Kubernetes;
use crate::kube::json;
use crate::sources::discovery::Found;

/// A pod has an address of each family, and is in two slices while it is moved.
const MAX_ENDPOINTS: usize = 4 * MAX_HOSTS;

/// The server has forgotten the version that was named.
pub(super) const EXPIRED: u16 = 410;

/// What asking for them needs.
pub(super) const RIGHT: &str = "get, list and watch of endpointslices in discovery.k8s.io";

/// By name.
#[derive(Debug, Default)]
pub(super) struct Slices {
    all: BTreeMap<String, Slice>,
    endpoints: usize,
    /// Where a watch goes on.
    pub(super) version: String,
}

/// What a line of a watch has brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    Changed,
    /// A mark of how far it has come.
    Same,
    /// All are to be listed anew.
    Expired,
}

impl Slices {
    /// Takes in a page of a list. What the next is asked with, if there is one.
    pub(super) fn add(&mut self, body: &[u8]) -> Result<Option<String>, PollError> {
        let page: Page = json(body)?;
        for slice in page.items {
            self.put(slice)?;
        }
        self.version = page.metadata.resource_version;
        Ok(Some(page.metadata.r#continue).filter(|next| !next.is_empty()))
    }

    /// Takes in a line of a watch.
    pub(super) fn take(&mut self, line: &[u8]) -> Result<Event, PollError> {
        match json(line)? {
            answer::Event::Added(slice) | answer::Event::Modified(slice) => {
                self.version.clone_from(&slice.metadata.resource_version);
                self.put(slice)?;
                Ok(Event::Changed)
            }
            answer::Event::Deleted(slice) => {
                self.version.clone_from(&slice.metadata.resource_version);
                self.remove(&slice.metadata.name);
                Ok(Event::Changed)
            }
            answer::Event::Bookmark(mark) => {
                self.version = mark.metadata.resource_version;
                Ok(Event::Same)
            }
            answer::Event::Error(status) if status.code == EXPIRED => Ok(Event::Expired),
            answer::Event::Error(status) => Err(status.refusal(status.code, RIGHT)),
        }
    }

    pub(super) fn read(&self, settings: &Kubernetes) -> Found {
        read(self.all.values(), settings)
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
