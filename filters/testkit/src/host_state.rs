// SPDX-License-Identifier: Apache-2.0
//! What all VMs of a fake Envoy process have in common.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use crate::abi::Status;
use crate::clock::Clock;
use crate::metrics::Metrics;
use crate::random::Random;
use crate::shared::{SharedData, SharedQueues};

type ForeignFunction = Rc<dyn Fn(&[u8]) -> std::result::Result<Vec<u8>, Status>>;

/// What happens before a call of a VM into the host.
pub(crate) struct Interruption {
    pub(crate) calls_left: usize,
    pub(crate) function: Box<dyn FnOnce()>,
}

pub(crate) struct HostState {
    pub(crate) clock: Clock,
    pub(crate) shared_data: RefCell<SharedData>,
    pub(crate) queues: RefCell<SharedQueues>,
    pub(crate) metrics: Metrics,
    pub(crate) upstreams: RefCell<BTreeSet<String>>,
    pub(crate) foreign_functions: RefCell<BTreeMap<String, ForeignFunction>>,
    pub(crate) interruption: RefCell<Option<Interruption>>,
    pub(crate) vms_started: Cell<u64>,
    pub(crate) seeds: RefCell<Random>,
    /// What the programs of its VMs have in common.
    pub(crate) common: RefCell<Option<Rc<dyn Any>>>,
}

impl HostState {
    pub(crate) fn with_seed(seed: u64) -> Self {
        Self {
            clock: Clock::new(),
            shared_data: RefCell::default(),
            queues: RefCell::default(),
            metrics: Metrics::default(),
            upstreams: RefCell::default(),
            foreign_functions: RefCell::default(),
            interruption: RefCell::default(),
            vms_started: Cell::new(0),
            seeds: RefCell::new(Random::new(seed)),
            common: RefCell::default(),
        }
    }

    /// A VM is about to call into the host.
    pub(crate) fn pass(&self) {
        let mut interruption = self.interruption.borrow_mut();
        if let Some(due) = interruption.take_if(|due| due.calls_left == 0) {
            // It may call into other VMs, and set another one for them.
            drop(interruption);
            (due.function)();
        } else if let Some(later) = &mut *interruption {
            later.calls_left -= 1;
        }
    }
}
