// SPDX-License-Identifier: Apache-2.0
//! The fake Envoy process: what its VMs have in common.

use std::cell::RefCell;
use std::rc::{Rc, Weak};
use std::time::Duration;

use crate::abi::Status;
use crate::clock::Clock;
use crate::error::Result;
use crate::host_state::{HostState, Interruption};
use crate::metrics::Metrics;
use crate::module::Module;
use crate::vm::builder::VmBuilder;
use crate::vm::instance::Instance;

/// A fake Envoy process: the clock, shared data, queues, metrics and upstream clusters that its
/// [`Vm`](crate::Vm)s share. Clones are the same host.
#[derive(Clone)]
pub struct Host {
    pub(crate) state: Rc<HostState>,
    vms: Rc<RefCell<Vec<Weak<RefCell<Instance>>>>>,
}

impl Default for Host {
    fn default() -> Self {
        Self::new()
    }
}

impl Host {
    /// A host without upstreams. Two of them run the same modules in exactly the same way.
    pub fn new() -> Self {
        Self::with_seed(0)
    }

    /// A host whose VMs draw other random bytes.
    pub fn with_seed(seed: u64) -> Self {
        Self {
            state: Rc::new(HostState::with_seed(seed)),
            vms: Rc::default(),
        }
    }

    /// Prepares a VM that runs this module.
    pub fn vm(&self, module: &Module) -> VmBuilder {
        VmBuilder::new(self.clone(), module.clone())
    }

    /// The clock of all VMs.
    pub fn clock(&self) -> &Clock {
        &self.state.clock
    }

    /// Advances the clock, firing the timers of all VMs in the order in which they are due and
    /// delivering what their queues hold. Dead VMs are passed over.
    ///
    /// # Errors
    /// The first trap; the rest of the time still passes.
    pub fn run_for(&self, time: Duration) -> Result<()> {
        let end = self.clock().monotonic() + time;
        let mut outcome = Ok(());
        loop {
            outcome = outcome.and(self.deliver_queues());
            let due = self.vms().into_iter().filter_map(|vm| {
                let (at, root) = vm.borrow().next_tick()?;
                Some((at, root, vm))
            });
            let Some((at, root, vm)) = due.min_by_key(|(at, ..)| *at).filter(|(at, ..)| *at <= end)
            else {
                break;
            };
            self.clock()
                .advance(at.saturating_sub(self.clock().monotonic()));
            outcome = outcome.and(vm.borrow_mut().tick(root));
        }
        self.clock()
            .advance(end.saturating_sub(self.clock().monotonic()));
        outcome
    }

    /// Lets VMs make so many calls into the host, and calls this before the next one; in place of what was to be called
    /// before.
    ///
    /// Envoy runs VMs on threads of their own, so that between two calls of one VM others may do anything. Here they
    /// do what the function lets them: it may call into every VM but the one that is stopped. It must not touch that
    /// one, and [`run_for`](Self::run_for) touches all. Calls of the others do not count, unless it has called this
    /// again for them.
    pub fn interrupt_after(&self, calls: usize, function: impl FnOnce() + 'static) {
        *self.state.interruption.borrow_mut() = Some(Interruption {
            calls_left: calls,
            function: Box::new(function),
        });
    }

    /// Takes an interruption back; says whether it was still to come.
    pub fn take_interruption_back(&self) -> bool {
        self.state.interruption.take().is_some()
    }

    fn deliver_queues(&self) -> Result<()> {
        let alive = self.vms().into_iter().filter(|vm| !vm.borrow().is_dead());
        alive
            .map(|vm| vm.borrow_mut().deliver_queues().map(|_| ()))
            .fold(Ok(()), Result::and)
    }

    pub(crate) fn register(&self, vm: &Rc<RefCell<Instance>>) {
        let mut vms = self.vms.borrow_mut();
        vms.retain(|vm| vm.strong_count() > 0);
        vms.push(Rc::downgrade(vm));
    }

    fn vms(&self) -> Vec<Rc<RefCell<Instance>>> {
        self.vms.borrow().iter().filter_map(Weak::upgrade).collect()
    }

    /// Makes callouts to a cluster succeed. Callouts to any other fail at once: HTTP calls with
    /// [`Status::BadArgument`], gRPC with [`Status::InternalFailure`].
    pub fn add_upstream(&self, cluster: &str) {
        self.state.upstreams.borrow_mut().insert(cluster.to_owned());
    }

    /// Takes a cluster away. What is open to it stays open until the test closes it.
    pub fn remove_upstream(&self, cluster: &str) {
        self.state.upstreams.borrow_mut().remove(cluster);
    }

    /// Answers `proxy_call_foreign_function` for this name. The function must not call into a VM.
    pub fn foreign_function(
        &self,
        name: &str,
        function: impl Fn(&[u8]) -> std::result::Result<Vec<u8>, Status> + 'static,
    ) {
        self.state
            .foreign_functions
            .borrow_mut()
            .insert(name.to_owned(), Rc::new(function));
    }

    /// The metrics of all VMs.
    pub fn metrics(&self) -> Metrics {
        self.state.metrics.clone()
    }

    /// A value in the shared data of the VMs with this id.
    pub fn shared_data(&self, vm_id: &str, key: &str) -> Option<Vec<u8>> {
        self.state
            .shared_data
            .borrow()
            .get(vm_id, key.as_bytes())
            .ok()
            .map(|(value, _)| value)
    }

    /// Writes shared data whatever is there, as some other VM might.
    pub fn set_shared_data(&self, vm_id: &str, key: &str, value: impl AsRef<[u8]>) {
        let mut data = self.state.shared_data.borrow_mut();
        // Unconditional, so it cannot mismatch.
        let _ = data.set(vm_id, key.as_bytes(), value.as_ref().to_vec(), 0);
    }

    /// All keys in the shared data of the VMs with this id, sorted.
    pub fn shared_keys(&self, vm_id: &str) -> Vec<String> {
        let keys = self.state.shared_data.borrow().keys(vm_id);
        keys.into_iter()
            .map(|key| String::from_utf8_lossy(&key).into_owned())
            .collect()
    }

    /// Adds to a queue that a module registered. The VM is told by
    /// [`Vm::deliver_queues`](crate::Vm::deliver_queues) or [`run_for`](Self::run_for).
    ///
    /// # Errors
    /// [`Status::NotFound`] if no module registered it.
    pub fn enqueue(
        &self,
        vm_id: &str,
        queue: &str,
        item: impl AsRef<[u8]>,
    ) -> std::result::Result<(), Status> {
        let mut queues = self.state.queues.borrow_mut();
        let token = queues.resolve(vm_id, queue)?;
        queues.enqueue(token, item.as_ref().to_vec())
    }
}
