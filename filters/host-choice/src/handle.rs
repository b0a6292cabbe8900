// SPDX-License-Identifier: Apache-2.0
//! How contexts come to the VM that they share.

use std::cell::RefCell;
use std::rc::Rc;

use crate::host::{Host, LogLevel};
use crate::vm::Vm;

/// The way to a VM's state for the contexts that share it. A callback enters once and hands `&mut Vm` on.
pub struct VmHandle<H>(Rc<Inner<H>>);

struct Inner<H> {
    host: H,
    vm: RefCell<Vm<H>>,
}

impl<H> Clone for VmHandle<H> {
    fn clone(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

impl<H: Host> VmHandle<H> {
    /// A VM that starts to live.
    pub fn new(host: H) -> Self {
        let vm = RefCell::new(Vm::new(host.clone()));
        Self(Rc::new(Inner { host, vm }))
    }

    /// Runs `f` on the VM's state. A callback from within another finds it taken: that breaks the contract of
    /// [`crate::host`], so the log says so, and `f` is dropped with the guards in it.
    pub(crate) fn enter<T>(&self, f: impl FnOnce(&mut Vm<H>) -> T) -> Option<T> {
        match self.0.vm.try_borrow_mut() {
            Ok(mut vm) => Some(f(&mut vm)),
            Err(_) => {
                let words = "the proxy called the filter back from within a call, which is ignored";
                self.0.host.log(LogLevel::Error, words);
                None
            }
        }
    }

    /// What the VM runs in.
    pub(crate) fn host(&self) -> &H {
        &self.0.host
    }
}
