// SPDX-License-Identifier: Apache-2.0
//! A process of Envoy that is played: its main thread with configurations, its workers with requests.

use std::cell::Cell;
use std::ffi::c_void;
use std::time::Duration;

use prost::Message;
use weir_native::hooks;
use weir_native::played::{Process, Thread};

use weir_tables::{HOST_TABLE_TYPE, v1};

use crate::envoy::{self, Buffer, Configuration, Request};
use crate::message::response;

/// Longer than the tick of every configuration here.
const TICK: Duration = Duration::from_millis(100);

pub(crate) struct Proxy {
    process: Process,
    pub(crate) main: Thread,
    now: Cell<Duration>,
}

/// A configuration, for as long as Envoy has it.
pub(crate) struct Installed {
    pub(crate) envoy: Box<Configuration>,
    module: *const c_void,
}

/// A request, until it is destroyed.
pub(crate) struct Live {
    pub(crate) envoy: Box<Request>,
}

impl Proxy {
    pub(crate) fn new() -> Self {
        let process = Process::new("sidecar-1");
        let proxy = Self {
            process,
            main: Thread::new(process),
            now: Cell::new(Duration::ZERO),
        };
        proxy.pass(Duration::from_secs(3600));
        proxy
    }

    pub(crate) fn pass(&self, time: Duration) {
        self.now.set(self.now.get() + time);
        self.process.set_time(self.now.get(), self.now.get());
    }

    pub(crate) fn worker(&self) -> Thread {
        Thread::new(self.process)
    }

    pub(crate) fn install(&self, json: &str) -> Installed {
        let envoy = Box::new(Configuration {
            number: envoy::number(),
            ..Configuration::default()
        });
        // SAFETY: both texts live for the call, and the configuration for as long as the module's.
        let module = self.main.run(|| unsafe {
            hooks::envoy_dynamic_module_on_http_filter_config_new(
                (&raw const *envoy).cast_mut().cast(),
                std::mem::transmute::<Buffer, hooks::Buffer>(Buffer::of(b"weir")),
                std::mem::transmute::<Buffer, hooks::Buffer>(Buffer::of(json.as_bytes())),
            )
        });
        assert!(!module.is_null(), "{json}");
        Installed { envoy, module }
    }

    /// Time passes, and the main thread is woken for a configuration.
    pub(crate) fn tick(&self, installed: &Installed) {
        self.pass(TICK);
        // SAFETY: both live.
        self.main.run(|| unsafe {
            hooks::envoy_dynamic_module_on_http_filter_config_scheduled(
                installed.envoy(),
                installed.module,
                0,
            );
        });
    }

    /// weir-control sends a table through the first stream of a configuration.
    pub(crate) fn push(&self, installed: &Installed, table: &v1::HostTable) {
        self.pass(Duration::from_millis(1));
        let stream = installed.streams()[0];
        let bytes = table.encode_to_vec();
        let message = response(HOST_TABLE_TYPE, &table.cluster, table.version, bytes);
        let parts = [Buffer::of(&message)];
        // SAFETY: the configuration lives, and the message outlives the call.
        self.main.run(|| unsafe {
            hooks::envoy_dynamic_module_on_http_filter_config_http_stream_data(
                installed.envoy(),
                installed.module,
                stream,
                parts.as_ptr().cast(),
                parts.len(),
                false,
            );
        });
    }

    /// What VMs that live say of themselves, by slot.
    pub(crate) fn records(&self) -> Vec<v1::VmRecord> {
        let all = self.process.shared();
        let records = all.iter().filter(|(key, ..)| key.contains("/vm/"));
        let records = records.map(|(_, _, value)| weir_filter::stored::decode(value).unwrap());
        let lives = |record: &v1::VmRecord| record.deadline_ns >= self.now.get().as_nanos() as u64;
        records.filter(lives).collect()
    }

    pub(crate) fn metric(&self, name: &str) -> u64 {
        let all = self.process.metrics();
        let named = all.iter().filter(|(known, _)| known.name == name);
        named.map(|(_, value)| value).sum()
    }
}

impl Installed {
    fn envoy(&self) -> *mut c_void {
        (&raw const *self.envoy).cast_mut().cast()
    }

    /// Those that are open.
    pub(crate) fn streams(&self) -> Vec<u64> {
        self.envoy.streams.lock().unwrap().clone()
    }

    /// Envoy gives it up on a thread.
    pub(crate) fn destroy(self, thread: &Thread) {
        // SAFETY: nobody uses it any more.
        thread.run(|| unsafe {
            hooks::envoy_dynamic_module_on_http_filter_config_destroy(self.module);
        });
    }
}

impl Live {
    /// A request that has just come, by a configuration and on this thread; none where the module refuses it.
    pub(crate) fn begin(installed: &Installed, headers: &[(&str, &str)]) -> Option<Self> {
        let headers = headers.iter();
        let headers =
            headers.map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec()));
        let envoy = Box::new(Request::new(headers.collect()));
        let live = Self { envoy };
        // SAFETY: the configuration lives, and the request until it is destroyed.
        let module = unsafe {
            hooks::envoy_dynamic_module_on_http_filter_new(installed.module, pointer(&live.envoy))
        };
        live.envoy.module.set(module);
        (!module.is_null()).then_some(live)
    }

    /// Its headers are here, and nothing follows.
    pub(crate) fn headers(&self) {
        let is_paused = request_headers(&self.envoy) != 0;
        let is_answered = self.envoy.is_answered.get();
        self.envoy.is_paused.set(is_paused && !is_answered);
    }

    /// This thread is woken by it.
    pub(crate) fn scheduled(&self) {
        let (envoy, module) = (pointer(&self.envoy), self.envoy.module.get());
        // SAFETY: it lives.
        unsafe { hooks::envoy_dynamic_module_on_http_filter_scheduled(envoy, module, 0) };
    }

    pub(crate) fn header(&self, name: &str) -> Option<String> {
        header(&self.envoy, name)
    }

    pub(crate) fn destroy(self) {
        // SAFETY: it is not used any more.
        unsafe { hooks::envoy_dynamic_module_on_http_filter_destroy(self.envoy.module.get()) };
    }
}

fn pointer(request: &Request) -> *mut c_void {
    (&raw const *request).cast_mut().cast()
}

pub(crate) fn header(request: &Request, name: &str) -> Option<String> {
    let headers = request.headers.borrow();
    let named = headers.iter().find(|(known, _)| known == name.as_bytes());
    named.map(|(_, value)| String::from_utf8_lossy(value).into_owned())
}

/// A request's headers are here, and nothing follows; what is to become of it.
pub(crate) fn request_headers(request: &Request) -> u32 {
    let (envoy, module) = (pointer(request), request.module.get());
    // SAFETY: it lives.
    unsafe { hooks::envoy_dynamic_module_on_http_filter_request_headers(envoy, module, true) }
}

/// The end of its body is here.
pub(crate) fn request_body(request: &Request) -> u32 {
    let (envoy, module) = (pointer(request), request.module.get());
    // SAFETY: it lives.
    unsafe { hooks::envoy_dynamic_module_on_http_filter_request_body(envoy, module, true) }
}

/// Its trailers are here.
pub(crate) fn request_trailers(request: &Request) -> u32 {
    let (envoy, module) = (pointer(request), request.module.get());
    // SAFETY: it lives.
    unsafe { hooks::envoy_dynamic_module_on_http_filter_request_trailers(envoy, module) }
}

/// A request is over.
pub(crate) fn complete(request: &Request) {
    let (envoy, module) = (pointer(request), request.module.get());
    assert!(!request.is_completed.replace(true), "once");
    // SAFETY: it lives.
    unsafe { hooks::envoy_dynamic_module_on_http_filter_stream_complete(envoy, module) };
}
