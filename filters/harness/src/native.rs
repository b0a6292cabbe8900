// SPDX-License-Identifier: Apache-2.0
#![allow(unsafe_code)] // It plays Envoy for the dynamic module, which speaks in pointers.
//! The filter's other shell in the place of the module: what weir-testkit asks of a module of WebAssembly, asked of the
//! dynamic module's hooks.
//!
//! ```text
//!  Vm, HttpStream ── proxy_on_* ──> Native ── hooks.rs ──> weir-native, on the played thread of this VM
//!                                     ^                         │
//!                 weir_testkit::Calls └──── callbacks.rs <──────┘ envoy_dynamic_module_callback_*
//! ```
//! The first VM of a host is the main thread's, which alone is given configurations and has streams. As in Envoy a
//! worker enters a configuration at its next request, and gets ticks while one is under way.

mod callbacks;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::rc::Rc;

use weir_native::hooks;
use weir_native::played::{Known, Process, Thread};
use weir_testkit::{Calls, Module, Program};

use callbacks::{Buffer, Header, Own, pointer};
pub(crate) use callbacks::{OPEN_STREAM, OVERRIDE_HOST};

/// Programs that are this shell, as a module.
pub(crate) fn module() -> Module {
    Module::of_program(|| Box::new(Native::default()))
}

/// What the VMs of a proxy have in common.
struct Proxy {
    process: Process,
    main: Rc<Thread>,
    /// What callbacks leave with the main thread, also where another VM's host asks for a configuration.
    own: Rc<Own>,
    configurations: RefCell<Vec<Rc<Configuration>>>,
    /// Numbers of the writes of shared data that the host was told of.
    told: RefCell<BTreeMap<String, u32>>,
}

/// One that Envoy would have given to the main thread.
struct Configuration {
    json: Vec<u8>,
    /// How callbacks name it.
    number: u32,
    module: *const c_void,
    /// By how many roots it is in use.
    uses: Cell<usize>,
}

#[derive(Default)]
struct Native {
    vm: Option<Vm>,
}

/// A thread of the proxy.
struct Vm {
    proxy: Rc<Proxy>,
    thread: Rc<Thread>,
    is_main: bool,
    roots: BTreeMap<u32, Rc<Configuration>>,
    /// By context, what the module keeps of it, and its root.
    requests: BTreeMap<u32, (*const c_void, u32)>,
    own: Rc<Own>,
}

impl Program for Native {
    fn call(
        &mut self,
        calls: &mut Calls<'_>,
        callback: &'static str,
        arguments: &[u32],
    ) -> Option<u32> {
        let vm = self.vm.get_or_insert_with(|| Vm::new(calls));
        let argument = |at: usize| arguments.get(at).copied().unwrap_or_default();
        let (id, second, third) = (argument(0), argument(1), argument(2));
        let (now, since_1970) = calls.now();
        vm.proxy.process.set_time(now, since_1970);
        vm.close_streams_of_the_gone(calls);
        vm.close_reset_streams(calls);
        let answer = match callback {
            "proxy_on_configure" => Some(vm.configure(calls, id).into()),
            "proxy_on_context_create" if second != 0 => vm.create(calls, id, second),
            "proxy_on_request_headers" => vm.on_headers(calls, id, third != 0),
            "proxy_on_request_body" => vm.on_body(calls, id, third != 0),
            "proxy_on_request_trailers" => vm.on_trailers(calls, id),
            "proxy_on_response_headers" => vm.on_response(calls, id, third != 0),
            "proxy_on_log" => vm.on_end(calls, id),
            "proxy_on_delete" => vm.delete(calls, id),
            "proxy_on_tick" => vm.tick(calls, id),
            "proxy_on_grpc_receive" => vm.receive(calls, second),
            "proxy_on_grpc_close" => vm.closed(calls, second, third),
            _ => None,
        };
        vm.close_reset_streams(calls);
        vm.tell(calls);
        answer
    }
}

impl Vm {
    fn new(calls: &mut Calls<'_>) -> Self {
        let node = calls.property(0, &["xds", "node", "id"]);
        let node = String::from_utf8_lossy(&node.unwrap_or_default()).into_owned();
        let is_main = Cell::new(false);
        let proxy = calls.in_common(|| {
            is_main.set(true);
            let process = Process::new(&node);
            Proxy {
                process,
                main: Rc::new(Thread::new(process)),
                own: Rc::default(),
                configurations: RefCell::default(),
                told: RefCell::default(),
            }
        });
        let (thread, own) = match is_main.get() {
            true => (Rc::clone(&proxy.main), Rc::clone(&proxy.own)),
            false => (Rc::new(Thread::new(proxy.process)), Rc::default()),
        };
        Self {
            proxy,
            thread,
            is_main: is_main.get(),
            roots: BTreeMap::new(),
            requests: BTreeMap::new(),
            own,
        }
    }

    /// Calls hooks on this thread.
    fn run<T>(&self, calls: &mut Calls<'_>, hooks: impl FnOnce() -> T) -> T {
        callbacks::within(calls, &self.own, || self.thread.run(hooks))
    }

    /// A root's configuration: the main thread's, which this one is to enter, or one that is new there.
    fn configure(&mut self, calls: &mut Calls<'_>, root: u32) -> bool {
        let json = calls.configuration().unwrap_or_default();
        let configuration = self.known(&json).or_else(|| self.install(calls, json));
        let Some(configuration) = configuration else {
            return false;
        };
        configuration.uses.update(|uses| uses + 1);
        self.roots.insert(root, configuration);
        true
    }

    fn known(&self, json: &[u8]) -> Option<Rc<Configuration>> {
        let known = self.proxy.configurations.borrow();
        let is_it = |known: &&Rc<Configuration>| {
            known.json == json && !self.roots.values().any(|own| Rc::ptr_eq(own, known))
        };
        known.iter().rfind(is_it).cloned()
    }

    fn install(&self, calls: &mut Calls<'_>, json: Vec<u8>) -> Option<Rc<Configuration>> {
        let mut configurations = self.proxy.configurations.borrow_mut();
        let number = configurations.last().map_or(1, |last| last.number + 1);
        let name = Buffer::of(b"weir");
        let configuration = Buffer::of(&json);
        // SAFETY: the name and the configuration outlive the call; numbers stand for pointers here.
        let hook = || unsafe {
            hooks::envoy_dynamic_module_on_http_filter_config_new(
                pointer(number),
                name.into_hooks(),
                configuration.into_hooks(),
            )
        };
        let Proxy { main, own, .. } = &*self.proxy;
        let module = callbacks::within(calls, own, || main.run(hook));
        if module.is_null() {
            return None;
        }
        let configuration = Rc::new(Configuration {
            json,
            number,
            module,
            uses: Cell::new(0),
        });
        configurations.push(Rc::clone(&configuration));
        Some(configuration)
    }

    fn create(&mut self, calls: &mut Calls<'_>, context: u32, root: u32) -> Option<u32> {
        let configuration = Rc::clone(self.roots.get(&root)?);
        // SAFETY: the configuration lives; the context's number stands for the request.
        let hook = || unsafe {
            hooks::envoy_dynamic_module_on_http_filter_new(configuration.module, pointer(context))
        };
        let module = self.run(calls, hook);
        self.requests.insert(context, (module, root));
        None
    }

    fn module(&self, context: u32) -> Option<*const c_void> {
        let (module, _) = self.requests.get(&context)?;
        Some(*module)
    }

    fn on_headers(&self, calls: &mut Calls<'_>, context: u32, ends: bool) -> Option<u32> {
        const STOP: u32 = 1;
        let module = self.module(context)?;
        // SAFETY: the request was made and not destroyed.
        let hook = || unsafe {
            hooks::envoy_dynamic_module_on_http_filter_request_headers(
                pointer(context),
                module,
                ends,
            )
        };
        let status = self.run(calls, hook);
        calls.show_bodies(status == STOP);
        Some(u32::from(status != 0))
    }

    fn on_body(&self, calls: &mut Calls<'_>, context: u32, ends: bool) -> Option<u32> {
        let module = self.module(context)?;
        // SAFETY: as in `on_headers`.
        let hook = || unsafe {
            hooks::envoy_dynamic_module_on_http_filter_request_body(pointer(context), module, ends)
        };
        Some(self.run(calls, hook))
    }

    fn on_trailers(&self, calls: &mut Calls<'_>, context: u32) -> Option<u32> {
        let module = self.module(context)?;
        // SAFETY: as in `on_headers`.
        let hook = || unsafe {
            hooks::envoy_dynamic_module_on_http_filter_request_trailers(pointer(context), module)
        };
        Some(self.run(calls, hook))
    }

    /// Envoy calls no hook of an answer that the filter gives itself.
    fn on_response(&self, calls: &mut Calls<'_>, context: u32, ends: bool) -> Option<u32> {
        let module = self.module(context)?;
        if calls.is_replied(context) {
            return None;
        }
        // SAFETY: as in `on_headers`.
        let hook = || unsafe {
            hooks::envoy_dynamic_module_on_http_filter_response_headers(
                pointer(context),
                module,
                ends,
            )
        };
        Some(self.run(calls, hook))
    }

    fn on_end(&self, calls: &mut Calls<'_>, context: u32) -> Option<u32> {
        let module = self.module(context)?;
        // SAFETY: as in `on_headers`.
        let hook = || unsafe {
            hooks::envoy_dynamic_module_on_http_filter_stream_complete(pointer(context), module);
        };
        self.run(calls, hook);
        None
    }

    /// The end of a request or of a root.
    fn delete(&mut self, calls: &mut Calls<'_>, id: u32) -> Option<u32> {
        if let Some((module, _)) = self.requests.remove(&id) {
            // SAFETY: it is not used any more.
            let hook = || unsafe { hooks::envoy_dynamic_module_on_http_filter_destroy(module) };
            self.run(calls, hook);
            return None;
        }
        let configuration = self.roots.remove(&id)?;
        configuration.uses.update(|uses| uses - 1);
        if configuration.uses.get() == 0 {
            let mut known = self.proxy.configurations.borrow_mut();
            known.retain(|known| !Rc::ptr_eq(known, &configuration));
            drop(known);
            let module = configuration.module;
            // SAFETY: nobody uses it any more.
            let hook =
                || unsafe { hooks::envoy_dynamic_module_on_http_filter_config_destroy(module) };
            let main = &self.proxy.main;
            callbacks::within(calls, &self.own, || main.run(hook));
        }
        None
    }

    /// The main thread is woken for its configurations, and another one for the request by which it asked to be.
    fn tick(&self, calls: &mut Calls<'_>, root: u32) -> Option<u32> {
        // The main thread is woken for all that it was given, also those that only another's root has asked for yet.
        let is_first = self.roots.keys().next() == Some(&root);
        if self.is_main && is_first {
            self.own.opens_for(root);
            let configurations = self.proxy.configurations.borrow().clone();
            for configuration in configurations {
                // SAFETY: the configuration lives.
                let hook = || unsafe {
                    hooks::envoy_dynamic_module_on_http_filter_config_scheduled(
                        pointer(configuration.number),
                        configuration.module,
                        0,
                    );
                };
                self.run(calls, hook);
            }
        }
        for context in self.own.waiting() {
            let Some((module, of)) = self.requests.get(&context).copied() else {
                continue;
            };
            if of == root {
                // SAFETY: as in `on_headers`.
                let hook = || unsafe {
                    hooks::envoy_dynamic_module_on_http_filter_scheduled(
                        pointer(context),
                        module,
                        0,
                    );
                };
                self.run(calls, hook);
            }
        }
        None
    }

    /// The configuration by which a stream was opened.
    fn of_stream(&self, token: u32) -> Option<Rc<Configuration>> {
        let number = self.own.opened(token)?;
        let configurations = self.proxy.configurations.borrow();
        let mut configurations = configurations.iter();
        configurations.find(|one| one.number == number).cloned()
    }

    /// Envoy ends the streams of a configuration that it gives up, on whichever thread that was.
    fn close_streams_of_the_gone(&self, calls: &mut Calls<'_>) {
        for token in self.own.streams() {
            if self.of_stream(token).is_none() {
                calls.cancel(token);
                self.own.forget(token);
            }
        }
    }

    /// Those that the module has reset; within another VM's call it could not be done.
    fn close_reset_streams(&self, calls: &mut Calls<'_>) {
        for token in self.own.take_reset() {
            calls.cancel(token);
            self.own.forget(token);
        }
    }

    fn receive(&self, calls: &mut Calls<'_>, token: u32) -> Option<u32> {
        let configuration = self.of_stream(token)?;
        let message = calls.message();
        let length = (message.len() as u32).to_be_bytes();
        let framed = [&[0], &length[..], &message].concat();
        let parts = [Buffer::of(&framed)];
        // SAFETY: the configuration lives, and the message outlives the call.
        let hook = || unsafe {
            hooks::envoy_dynamic_module_on_http_filter_config_http_stream_data(
                pointer(configuration.number),
                configuration.module,
                token.into(),
                parts.as_ptr().cast(),
                parts.len(),
                false,
            );
        };
        self.run(calls, hook);
        None
    }

    fn closed(&self, calls: &mut Calls<'_>, token: u32, status: u32) -> Option<u32> {
        let configuration = self.of_stream(token)?;
        let (envoy, module) = (pointer(configuration.number), configuration.module);
        let status = status.to_string();
        let trailers = [Header::of(b"grpc-status", status.as_bytes())];
        // SAFETY: as in `receive`.
        let hook = || unsafe {
            hooks::envoy_dynamic_module_on_http_filter_config_http_stream_trailers(
                envoy,
                module,
                token.into(),
                trailers.as_ptr().cast(),
                trailers.len(),
            );
            hooks::envoy_dynamic_module_on_http_filter_config_http_stream_complete(
                envoy,
                module,
                token.into(),
            );
        };
        calls.cancel(token);
        self.run(calls, hook);
        None
    }

    /// Tells the host what has changed in the process, and when this thread is to be woken.
    fn tell(&self, calls: &mut Calls<'_>) {
        let Proxy { process, told, .. } = &*self.proxy;
        for (known, value) in process.metrics() {
            calls.set_metric(known.is_gauge, &name(&known), value);
        }
        let mut told = told.borrow_mut();
        for (key, number, value) in process.shared() {
            if told.get(&key) != Some(&number) {
                calls.set_shared(&key, &value);
                told.insert(key, number);
            }
        }
        let waiting = self.own.waiting();
        for root in self.roots.keys() {
            let waits = |context| self.requests.get(context).is_some_and(|(_, of)| of == root);
            let is_woken = self.is_main || waiting.iter().any(waits);
            calls.tick_every(*root, is_woken.then(|| process.tick()));
        }
    }
}

/// As the other shell names it.
fn name(known: &Known) -> String {
    let label = known.label.as_ref();
    let label = label.map(|(label, value)| format!(";.;{label}=.={value};.;"));
    [known.name.as_str(), label.as_deref().unwrap_or_default()].concat()
}
