// SPDX-License-Identifier: Apache-2.0
#![allow(unsafe_code)] // Exports have names that a host of proxy-wasm looks for.
//! The callbacks of a module of proxy-wasm (ABI 0.2.1), and what they are called for: roots, requests and attempts.
//!
//! Only those are exported in which the filter does something. A host enters the VM for no other, so that what comes
//! of an answer after its headers costs nothing; the SDK exports all, and finds a context for each.
//!
//! No callback comes within another: Envoy continues and answers requests, and ends streams, when the callback has
//! returned. Where a host does not wait, the inner one does nothing.

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;

use crate::adapter::{self, ProxyWasm};
use crate::disposition::{Action, Flow};
use crate::handle::VmHandle;
use crate::host::{Host, LogLevel};
use crate::part::Part;
use crate::root::Root;

/// What a callback answers.
const CONTINUE: u32 = 0;
const PAUSE: u32 = 1;

/// By the number of its context, everything that callbacks are for.
struct Contexts {
    roots: RefCell<BTreeMap<u32, Root<ProxyWasm>>>,
    /// In order of their numbers, which a host counts up: one that is new is the last.
    parts: RefCell<Vec<(u32, Box<Part<ProxyWasm>>)>>,
    vm: OnceCell<VmHandle<ProxyWasm>>,
}

thread_local! {
    static CONTEXTS: Contexts = const {
        Contexts {
            roots: RefCell::new(BTreeMap::new()),
            parts: RefCell::new(Vec::new()),
            vm: OnceCell::new(),
        }
    };
}

impl Contexts {
    /// Does something with a root; nothing where there is none, or in the middle of another callback of one.
    fn root<T>(&self, id: u32, callback: impl FnOnce(&mut Root<ProxyWasm>) -> T) -> Option<T> {
        let mut roots = self.roots.try_borrow_mut().ok()?;
        roots.get_mut(&id).map(callback)
    }

    /// The same with a request or an attempt.
    fn part<T>(&self, id: u32, callback: impl FnOnce(&mut Part<ProxyWasm>) -> T) -> Option<T> {
        let mut parts = self.parts.try_borrow_mut().ok()?;
        let place = place(&parts, id).ok()?;
        let (_, part) = parts.get_mut(place)?;
        Some(callback(part))
    }

    fn create(&self, id: u32, of: u32) {
        // The host's number for none: what is created is a root.
        if of == 0 {
            if let Ok(mut roots) = self.roots.try_borrow_mut() {
                roots.insert(id, Root::new(id));
            }
        } else if let Some(part) = self.root(of, |root| root.part(id))
            && let Ok(mut parts) = self.parts.try_borrow_mut()
            && let Err(place) = place(&parts, id)
        {
            parts.insert(place, (id, Box::new(part)));
        }
    }

    fn delete(&self, id: u32) {
        if let Ok(mut parts) = self.parts.try_borrow_mut()
            && let Ok(place) = place(&parts, id)
        {
            parts.remove(place);
            return;
        }
        if let Ok(mut roots) = self.roots.try_borrow_mut()
            && let Some(mut root) = roots.remove(&id)
        {
            root.on_done();
        }
    }

    fn configure(&self, root: &mut Root<ProxyWasm>) -> bool {
        let vm = || self.vm.get_or_init(|| VmHandle::new(ProxyWasm)).clone();
        let json = adapter::configuration();
        let Some(tick) = root.on_configure(&ProxyWasm, &json, vm, adapter::node) else {
            return false;
        };
        if adapter::tick_every(tick).is_err() {
            let words = "the host gives no ticks: tables will not be renewed";
            ProxyWasm.log(LogLevel::Error, words);
        }
        true
    }
}

fn place(parts: &[(u32, Box<Part<ProxyWasm>>)], id: u32) -> Result<usize, usize> {
    parts.binary_search_by_key(&id, |(id, _)| *id)
}

/// Calls back a request or an attempt, and carries out what it says.
fn of_request(id: u32, callback: impl FnOnce(&mut Part<ProxyWasm>) -> Flow) -> u32 {
    let flow = CONTEXTS.with(|contexts| contexts.part(id, callback));
    match flow.map(|flow| flow.carry_out(&ProxyWasm)) {
        Some(Action::Pause) => PAUSE,
        Some(Action::Continue) | None => CONTINUE,
    }
}

#[unsafe(no_mangle)]
extern "C" fn proxy_abi_version_0_2_1() {}

#[unsafe(no_mangle)]
extern "C" fn _initialize() {
    unsafe extern "C" {
        fn __wasm_call_ctors();
    }
    // SAFETY: the linker makes it, and a host calls this once, before all others.
    unsafe { __wasm_call_ctors() }
}

/// Memory that the host fills.
#[unsafe(no_mangle)]
extern "C" fn proxy_on_memory_allocate(size: usize) -> *mut u8 {
    adapter::lend(size)
}

#[unsafe(no_mangle)]
extern "C" fn proxy_on_context_create(id: u32, of: u32) {
    CONTEXTS.with(|contexts| contexts.create(id, of));
}

#[unsafe(no_mangle)]
extern "C" fn proxy_on_configure(root: u32, _size: usize) -> u32 {
    let is_taken = CONTEXTS.with(|contexts| contexts.root(root, |root| contexts.configure(root)));
    u32::from(is_taken.unwrap_or(false))
}

#[unsafe(no_mangle)]
extern "C" fn proxy_on_tick(root: u32) {
    let request = |context| adapter::select(context).ok().map(|()| ProxyWasm);
    let has_selected = CONTEXTS.with(|contexts| contexts.root(root, |root| root.on_tick(request)));
    if has_selected == Some(true) {
        let _ = adapter::select(root);
    }
}

#[unsafe(no_mangle)]
extern "C" fn proxy_on_grpc_receive(root: u32, token: u32, _size: usize) {
    let receive = |root: &mut Root<_>| root.on_stream_message(token, &adapter::message());
    CONTEXTS.with(|contexts| contexts.root(root, receive));
}

#[unsafe(no_mangle)]
extern "C" fn proxy_on_grpc_close(root: u32, token: u32, status: u32) {
    CONTEXTS.with(|contexts| contexts.root(root, |root| root.on_stream_close(token, status)));
}

#[unsafe(no_mangle)]
extern "C" fn proxy_on_request_headers(id: u32, _count: u32, ends: u32) -> u32 {
    of_request(id, |part| part.on_headers(&ProxyWasm, ends != 0))
}

#[unsafe(no_mangle)]
extern "C" fn proxy_on_request_body(id: u32, _size: usize, ends: u32) -> u32 {
    of_request(id, |part| part.on_body(&ProxyWasm, ends != 0))
}

#[unsafe(no_mangle)]
extern "C" fn proxy_on_request_trailers(id: u32, _count: u32) -> u32 {
    of_request(id, |part| part.on_body(&ProxyWasm, true))
}

#[unsafe(no_mangle)]
extern "C" fn proxy_on_response_headers(id: u32, _count: u32, _ends: u32) -> u32 {
    CONTEXTS.with(|contexts| contexts.part(id, |part| part.on_response(&ProxyWasm)));
    CONTINUE
}

#[unsafe(no_mangle)]
extern "C" fn proxy_on_log(id: u32) {
    CONTEXTS.with(|contexts| contexts.part(id, |part| part.on_end(&ProxyWasm)));
}

/// The end of a root too: a host that gives one up calls this in any case.
#[unsafe(no_mangle)]
extern "C" fn proxy_on_delete(id: u32) {
    CONTEXTS.with(|contexts| contexts.delete(id));
}
