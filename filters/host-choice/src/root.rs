// SPDX-License-Identifier: Apache-2.0
//! A root context: one configuration in one VM. It ticks, and keeps the streams while it holds the lease.

use std::rc::Rc;
use std::time::Duration;

use weir_policy::KeyHash;

use crate::config::{Config, Role};
use crate::control::Control;
use crate::exchange::Exchange;
use crate::handle::VmHandle;
use crate::host::{Host, LogLevel, RequestHost};
use crate::lease::{self, Holder};
use crate::part::Part;
use crate::plugin::Plugin;
use crate::release::{late, release};
use crate::shared;
use crate::vm::Vm;

/// A root context.
pub struct Root<H: Host> {
    id: u32,
    plugin: Option<Rc<Plugin<H>>>,
    proxy: String,
    generation: u64,
    /// Present while this root holds the lease.
    control: Option<Control>,
}

impl<H: Host> Root<H> {
    /// One without a configuration, with this number in its VM.
    pub fn new(id: u32) -> Self {
        Self {
            id,
            plugin: None,
            proxy: String::new(),
            generation: 0,
            control: None,
        }
    }

    /// Takes a configuration, and says how often it is to tick; none: it is refused, and the log says why. `vm` finds
    /// the VM that this root shares with others, and `node` the proxy's own name.
    pub fn on_configure(
        &mut self,
        host: &H,
        json: &[u8],
        vm: impl FnOnce() -> VmHandle<H>,
        node: impl FnOnce() -> String,
    ) -> Option<Duration> {
        let config = match Config::parse(json) {
            Ok(config) => config,
            Err(error) => {
                host.log(LogLevel::Error, &error.to_string());
                return None;
            }
        };
        shared::create(host);
        let vm = vm();
        let (hash, now) = (KeyHash::of(json).0, host.now());
        vm.enter(|vm| {
            let again = vm.configured(hash, &config, now);
            self.generation = shared::generation(host, hash, again);
            // One that has nowhere to get tables from leaves the lease to those that have.
            let has_server = config.role == Role::Caller && config.control_cluster.is_some();
            if has_server && host.opens_streams() {
                vm.add_contender(self.id, self.generation);
            }
        });
        self.proxy = config.proxy.clone().unwrap_or_else(node);
        let tick = config.tick;
        let config = Rc::new(config);
        let shown = Rc::default();
        self.plugin = Some(Rc::new(Plugin { config, shown, vm }));
        Some(tick)
    }

    /// Whether requests that are paused wait for their bodies: for their key, or at their host.
    pub fn reads_bodies(&self) -> bool {
        let config = self.plugin.as_ref().map(|plugin| &plugin.config);
        config.is_some_and(|config| config.role != Role::Caller || config.reads_bodies())
    }

    /// A request or an attempt comes, in this context of the host.
    pub fn part(&self, context: u32) -> Part<H> {
        Part::new(context, self.plugin())
    }

    /// The same where its role is known to be the caller's.
    pub fn exchange(&self, context: u32) -> Exchange<H> {
        Exchange::new(context, self.plugin())
    }

    /// What requests share with it; none before it is configured.
    pub fn plugin(&self) -> Option<Rc<Plugin<H>>> {
        self.plugin.clone()
    }

    /// Time has passed. `select` finds a held request by its context, and makes the calls that follow act in it; says
    /// whether any was looked for.
    pub fn on_tick<R: RequestHost>(&mut self, select: impl Fn(u32) -> Option<R>) -> bool {
        let is_caller = |plugin: &Rc<Plugin<H>>| plugin.role() == Role::Caller;
        let Some(plugin) = self.plugin.clone().filter(is_caller) else {
            return false;
        };
        let now = plugin.vm.host().now();
        let releases = plugin.vm.enter(|vm| {
            self.tick(&plugin.config, vm, now);
            vm.releases(self.id, plugin.config.tick, now)
        });
        if releases != Some(true) {
            return false;
        }
        let is_any_late = late(&plugin.vm, &select, now);
        // Not before what those that were late have just been sent at.
        release(&plugin.vm, select, plugin.vm.host().now()) || is_any_late
    }

    /// Nothing is under way in this VM any more, and it gets no ticks until something is: it writes its record now. Gives
    /// back where that is, for [`renew`].
    pub fn on_idle(&mut self) -> Option<String> {
        let vm = &self.plugin.as_ref()?.vm;
        let now = vm.host().now();
        vm.enter(|vm| vm.idle(now)).flatten()
    }

    /// Something is under way again.
    pub fn on_wake(&self) {
        if let Some(plugin) = &self.plugin {
            plugin.vm.enter(Vm::wake);
        }
    }

    /// A message came through a stream.
    pub fn on_stream_message(&mut self, stream: u32, message: &[u8]) {
        if let (Some(control), Some(plugin)) = (&mut self.control, &self.plugin) {
            let now = plugin.vm.host().now();
            let config = &plugin.config;
            plugin
                .vm
                .enter(|vm| control.message(stream, message, config, vm, now));
        }
    }

    /// A stream has ended, with this gRPC status.
    pub fn on_stream_close(&mut self, stream: u32, status: u32) {
        if let (Some(control), Some(plugin)) = (&mut self.control, &self.plugin) {
            let now = plugin.vm.host().now();
            let config = &plugin.config;
            plugin
                .vm
                .enter(|vm| control.closed(stream, status, config, vm, now));
        }
    }

    /// A configuration is new in its VM: closes the streams at once where they are to be that one's.
    pub fn on_successor(&mut self) {
        let Some(plugin) = self.plugin.clone() else {
            return;
        };
        plugin.vm.enter(|vm| {
            if !vm.contends(self.id) {
                self.give_way(vm);
            }
        });
    }

    /// The proxy wants this configuration no more. Requests that came by it go on.
    pub fn on_done(&mut self) {
        let Some(plugin) = self.plugin.take() else {
            return;
        };
        plugin.vm.enter(|vm| {
            self.give_way(vm);
            vm.retired(self.id, &plugin.config);
        });
    }

    fn tick(&mut self, config: &Config, vm: &mut Vm<H>, now: Duration) {
        vm.tick(now);
        if vm.contends(self.id) {
            self.hold_lease(vm, config.lease, now);
        } else {
            self.give_way(vm);
        }
        #[cfg(feature = "crash-test")]
        crate::crash::tick(&vm.host, self.control.is_some());
        if let Some(control) = &mut self.control {
            control.tick(config, &self.proxy, vm, now);
        }
    }

    fn holder(&self, vm: u64) -> Holder {
        Holder {
            vm,
            root: self.id,
            generation: self.generation,
        }
    }

    /// Closes the streams and frees the lease, so that nobody has to wait until it ends.
    fn give_way(&mut self, vm: &Vm<H>) {
        let Some(mut control) = self.control.take() else {
            return;
        };
        control.release(&vm.host);
        if let Some((Some(lease), cas)) = shared::lease(&vm.host)
            && lease.holder == self.holder(vm.id)
        {
            shared::set_lease(&vm.host, None, cas);
        }
    }

    /// Takes, keeps or loses the lease.
    fn hold_lease(&mut self, vm: &Vm<H>, term: Duration, now: Duration) {
        let me = self.holder(vm.id);
        let Some((current, cas)) = shared::lease(&vm.host) else {
            return;
        };
        let write = |lease| shared::set_lease(&vm.host, Some(lease), cas);
        let held = lease::step(current, me, now, term).holds(write);
        match (&mut self.control, held) {
            (None, true) => self.control = Some(Control::default()),
            (Some(control), false) => {
                control.release(&vm.host);
                self.control = None;
            }
            _ => {}
        }
    }
}

/// Keeps the record of a VM without ticks ([`Root::on_idle`]) from expiring, as far as this VM of its proxy has the same
/// clusters.
pub fn renew<H: Host>(vm: &VmHandle<H>, record: &str) {
    vm.enter(|vm| vm.renew(record));
}

#[cfg(test)]
mod tests;
