// SPDX-License-Identifier: Apache-2.0
//! A VM, as a test holds it.

pub(crate) mod builder;
pub(crate) mod callouts;
mod code;
mod flow;
pub(crate) mod grpc_stream;
pub(crate) mod http;
pub(crate) mod instance;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use crate::abi::LogLevel;
use crate::error::Result;
use crate::headers::Headers;
use crate::host::Host;
use crate::log::Log;
use crate::metrics::Metrics;
use crate::module::Module;
use crate::settings::Settings;
use callouts::{GrpcCall, HttpCall};
use grpc_stream::GrpcStream;
use http::HttpStream;
use instance::Instance;

/// A root context: one plugin configuration in a VM.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RootId(u32);

impl RootId {
    /// The context id that the module knows.
    pub fn context_id(self) -> u32 {
        self.0
    }
}

/// A running VM. Clones are the same VM.
///
/// A trap in any callback kills it: the call returns [`Error::Trap`](crate::Error::Trap), later ones
/// [`Error::Dead`](crate::Error::Dead).
#[derive(Clone)]
pub struct Vm {
    instance: Rc<RefCell<Instance>>,
    host: Host,
    module: Module,
}

impl Vm {
    pub(crate) fn start(host: Host, module: Module, settings: Settings) -> Result<Self> {
        let configuration = settings.plugin_configuration.clone();
        let instance = Rc::new(RefCell::new(Instance::new(&host, &module, settings)?));
        host.register(&instance);
        instance.borrow_mut().configure(configuration)?;
        Ok(Self {
            instance,
            host,
            module,
        })
    }

    /// A new VM in place of this one: the same module and settings, the newest plugin configuration,
    /// the same host with its shared data. The old one is not told; if it is alive, it lives on.
    ///
    /// # Errors
    /// As for [`VmBuilder::start`](crate::VmBuilder::start).
    pub fn restart(&self) -> Result<Self> {
        let settings = self.instance.borrow().state().settings.clone();
        Self::start(self.host.clone(), self.module.clone(), settings)
    }

    /// Adds a root context with another configuration, as when Envoy is given one for a filter that
    /// runs in this VM. New requests go to it; the old root lives on until [`retire`](Self::retire).
    ///
    /// # Errors
    /// A refusal, after which the new root is gone, or a trap.
    pub fn configure(&self, configuration: impl AsRef<[u8]>) -> Result<RootId> {
        let configuration = configuration.as_ref().to_vec();
        let mut instance = self.instance.borrow_mut();
        let root = instance.configure(configuration.clone())?;
        instance.state_mut().settings.plugin_configuration = configuration;
        Ok(RootId(root))
    }

    /// The live root contexts, oldest first.
    pub fn roots(&self) -> Vec<RootId> {
        self.instance
            .borrow()
            .state()
            .roots
            .keys()
            .copied()
            .map(RootId)
            .collect()
    }

    /// The configuration of a root context.
    pub fn configuration(&self, root: RootId) -> Option<Vec<u8>> {
        self.instance
            .borrow()
            .state()
            .roots
            .get(&root.0)
            .map(|root| root.configuration.clone())
    }

    /// Ends a root context with `on_done`, then `on_delete`. False if the module asked for time:
    /// the root then lives until it calls `proxy_done`.
    ///
    /// # Errors
    /// A trap, or misuse: there is no such root.
    pub fn retire(&self, root: RootId) -> Result<bool> {
        self.instance.borrow_mut().retire(root.0)
    }

    /// A request without a body, on the newest root context.
    ///
    /// # Errors
    /// A trap.
    pub fn request(&self, headers: impl Into<Headers>) -> Result<HttpStream> {
        HttpStream::open(&self.instance, None, headers.into(), true)
    }

    /// The start of a request whose body or trailers follow.
    ///
    /// # Errors
    /// A trap.
    pub fn request_open(&self, headers: impl Into<Headers>) -> Result<HttpStream> {
        HttpStream::open(&self.instance, None, headers.into(), false)
    }

    /// A request without a body, on this root context.
    ///
    /// # Errors
    /// A trap, or misuse: there is no such root.
    pub fn request_on(&self, root: RootId, headers: impl Into<Headers>) -> Result<HttpStream> {
        HttpStream::open(&self.instance, Some(root.0), headers.into(), true)
    }

    /// Fires the timer of every root context that has one, due or not. The clock stands still:
    /// see [`Host::run_for`].
    ///
    /// # Errors
    /// A trap.
    pub fn tick(&self) -> Result<()> {
        self.roots()
            .into_iter()
            .try_for_each(|root| self.instance.borrow_mut().tick(root.0))
    }

    /// The timer of a root context.
    pub fn tick_period(&self, root: RootId) -> Option<Duration> {
        self.instance
            .borrow()
            .state()
            .roots
            .get(&root.0)?
            .tick_period
    }

    /// Tells the module of the new items in the queues it registered; returns how many.
    ///
    /// # Errors
    /// A trap.
    pub fn deliver_queues(&self) -> Result<usize> {
        self.instance.borrow_mut().deliver_queues()
    }

    /// The gRPC streams that are open, oldest first.
    pub fn grpc_streams(&self) -> Vec<GrpcStream> {
        GrpcStream::all(&self.instance)
    }

    /// The gRPC calls that wait for an answer, oldest first.
    pub fn grpc_calls(&self) -> Vec<GrpcCall> {
        GrpcCall::all(&self.instance)
    }

    /// The HTTP calls that wait for an answer, oldest first.
    pub fn http_calls(&self) -> Vec<HttpCall> {
        HttpCall::all(&self.instance)
    }

    /// All lines since the start or the last [`take_logs`](Self::take_logs).
    pub fn logs(&self) -> Vec<Log> {
        self.instance.borrow().state().logs.clone()
    }

    /// The same, and forgets them.
    pub fn take_logs(&self) -> Vec<Log> {
        std::mem::take(&mut self.instance.borrow_mut().state_mut().logs)
    }

    /// The texts of one level.
    pub fn logs_at(&self, level: LogLevel) -> Vec<String> {
        self.logs()
            .into_iter()
            .filter(|log| log.level == level)
            .map(|log| log.message)
            .collect()
    }

    /// The metrics of the host.
    pub fn metrics(&self) -> Metrics {
        self.host.metrics()
    }

    /// The host it runs in.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// The fuel that all callbacks have used so far: about one unit an instruction, and the same in
    /// each run.
    pub fn fuel_used(&self) -> u64 {
        self.instance.borrow().fuel_used()
    }

    /// The fuel of the last call of an export, such as `proxy_on_request_headers`.
    pub fn fuel_of(&self, callback: &str) -> u64 {
        self.instance.borrow().fuel_of(callback)
    }

    /// The host functions that the last call of an export has called, by name and how often. What the
    /// host hands over counts too, as `proxy_on_memory_allocate`: there it has to call into the module.
    pub fn host_calls_of(&self, callback: &str) -> BTreeMap<&'static str, u64> {
        self.instance.borrow().host_calls_of(callback)
    }

    /// From now on this host function does nothing but fail, as one does that Envoy's
    /// `capability_restriction_config` leaves out.
    pub fn refuse(&self, call: &str) {
        let mut instance = self.instance.borrow_mut();
        instance.state_mut().refused.insert(call.to_owned());
    }

    /// The module's linear memory, which grows and never shrinks.
    pub fn memory_bytes(&self) -> u64 {
        self.instance.borrow().memory_bytes()
    }

    /// Whether it trapped.
    pub fn is_dead(&self) -> bool {
        self.instance.borrow().is_dead()
    }
}
