// SPDX-License-Identifier: Apache-2.0
//! A plugin configuration in a VM.

use std::rc::Rc;

use crate::config::{Config, Role};
use crate::disposition::Flow;
use crate::handle::VmHandle;
use crate::host::{Host, RequestHost};
use crate::prefill;
use crate::reading::Shown;

/// What a root context shares with the requests that come by it.
pub struct Plugin<H: Host> {
    pub(crate) config: Rc<Config>,
    pub(crate) shown: Rc<Shown>,
    pub(crate) vm: VmHandle<H>,
}

impl<H: Host> Plugin<H> {
    /// What it does with requests.
    pub fn role(&self) -> Role {
        self.config.role
    }

    /// Leaves a request to Envoy of which nobody knows how far it has come: headers that name hosts may be its caller's.
    pub fn leave(&self, host: &impl RequestHost) {
        if self.role() != Role::Caller {
            return;
        }
        let clusters = self.config.all_clusters();
        let prefills = clusters.filter_map(|cluster| cluster.prefill.as_deref());
        prefills.for_each(|prefill| prefill::remove(prefill, host));
        Flow::Fallback.carry_out(host);
    }
}
