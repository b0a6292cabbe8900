// SPDX-License-Identifier: Apache-2.0
//! A plugin configuration in a VM.

use std::rc::Rc;

use crate::config::{Config, Role};
use crate::handle::VmHandle;
use crate::host::Host;
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
}
