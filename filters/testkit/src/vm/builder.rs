// SPDX-License-Identifier: Apache-2.0
//! How a VM is set up.

use std::collections::BTreeMap;

use crate::abi::{LogLevel, Status};
use crate::error::Result;
use crate::host::Host;
use crate::module::Module;
use crate::property;
use crate::settings::Settings;
use crate::vm::Vm;

/// Fuel for one callback: some seconds of computing. An endless loop becomes a trap.
const DEFAULT_FUEL_LIMIT: u64 = 5_000_000_000;

/// A VM that is not started yet. Made by [`Host::vm`].
#[must_use]
pub struct VmBuilder {
    host: Host,
    module: Module,
    settings: Settings,
}

impl VmBuilder {
    pub(crate) fn new(host: Host, module: Module) -> Self {
        let settings = Settings {
            vm_id: String::new(),
            vm_configuration: Vec::new(),
            plugin_configuration: Vec::new(),
            environment: Vec::new(),
            properties: BTreeMap::new(),
            log_level: LogLevel::Trace,
            fuel_limit: DEFAULT_FUEL_LIMIT,
            seed: None,
            absent_in_log: Status::BadArgument,
            stops_iteration: false,
        };
        Self {
            host,
            module,
            settings,
        }
    }

    /// The VM id, which is the name space of shared data and queues. Empty by default, as in Envoy.
    pub fn vm_id(mut self, vm_id: &str) -> Self {
        vm_id.clone_into(&mut self.settings.vm_id);
        self
    }

    /// What the module reads in `on_vm_start`.
    pub fn vm_config(mut self, configuration: impl AsRef<[u8]>) -> Self {
        self.settings.vm_configuration = configuration.as_ref().to_vec();
        self
    }

    /// What the module reads in `on_configure`.
    pub fn plugin_config(mut self, configuration: impl AsRef<[u8]>) -> Self {
        self.settings.plugin_configuration = configuration.as_ref().to_vec();
        self
    }

    /// A property that all contexts can read, such as `["node", "id"]`. Numbers are eight bytes,
    /// little endian; booleans one.
    pub fn property(mut self, path: &[&str], value: impl AsRef<[u8]>) -> Self {
        self.settings
            .properties
            .insert(property::path(path), value.as_ref().to_vec());
        self
    }

    /// An environment variable.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.settings
            .environment
            .push((name.to_owned(), value.to_owned()));
        self
    }

    /// What `proxy_get_log_level` says; lines below it are captured all the same. Trace by default.
    pub fn log_level(mut self, level: LogLevel) -> Self {
        self.settings.log_level = level;
        self
    }

    /// The fuel of one callback, about one unit an instruction. 5 billion by default.
    pub fn fuel_limit(mut self, fuel: u64) -> Self {
        self.settings.fuel_limit = fuel;
        self
    }

    /// Fixes what `random_get` yields. By default each VM of a host draws other bytes, the same
    /// in each run.
    pub fn seed(mut self, seed: u64) -> Self {
        self.settings.seed = Some(seed);
        self
    }

    /// Lets a header of a map that does not exist be `NotFound` in `on_log`, as the newest Envoy
    /// has it. By default it is `BadArgument` as everywhere else, on which the Rust SDK panics.
    pub fn absent_maps_are_not_found_in_log(mut self) -> Self {
        self.settings.absent_in_log = Status::NotFound;
        self
    }

    /// Shows bodies to the module although it has paused the headers, as with Envoy's plugin option
    /// `allow_on_headers_stop_iteration`. A body that it lets go on takes the headers with it.
    pub fn allow_on_headers_stop_iteration(mut self) -> Self {
        self.settings.stops_iteration = true;
        self
    }

    /// Starts the VM: `_initialize`, then a first root context with `on_vm_start` and `on_configure`.
    ///
    /// # Errors
    /// [`Error::Refused`](crate::Error::Refused) or [`Error::Trap`](crate::Error::Trap).
    pub fn start(self) -> Result<Vm> {
        Vm::start(self.host, self.module, self.settings)
    }
}
