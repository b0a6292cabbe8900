// SPDX-License-Identifier: Apache-2.0
//! A root context: one configuration in one VM. It ticks, and keeps the streams while it holds the lease.

use std::rc::Rc;
use std::time::Duration;

use proxy_wasm::traits::{Context, HttpContext, RootContext};
use proxy_wasm::types::ContextType;
use weir_policy::KeyHash;

use crate::config::Config;
use crate::control::Control;
use crate::hostcalls::{self, Buffer, LogLevel};
use crate::lease::{self, Holder, Step};
use crate::request::Exchange;
use crate::{held, shared, vm};

pub(crate) struct Root {
    id: u32,
    config: Option<Rc<Config>>,
    proxy: String,
    generation: u64,
    /// The VM's id.
    vm: Option<u64>,
    /// Present while this root holds the lease.
    control: Option<Control>,
}

impl Root {
    pub(crate) fn new(id: u32) -> Self {
        Self {
            id,
            config: None,
            proxy: String::new(),
            generation: 0,
            vm: None,
            control: None,
        }
    }

    fn holder(&self, vm: u64) -> Holder {
        Holder {
            vm,
            root: self.id,
            generation: self.generation,
        }
    }

    /// Takes, keeps or loses the lease.
    fn hold_lease(&mut self, vm: u64, term: Duration, now: Duration) {
        let me = self.holder(vm);
        let Some((current, cas)) = shared::lease() else {
            return;
        };
        let held = match lease::step(current, me, now, term) {
            Step::Hold => true,
            Step::Write(lease) => shared::set_lease(Some(lease), cas),
            Step::Wait => false,
        };
        match (&mut self.control, held) {
            (None, true) => self.control = Some(Control::default()),
            (Some(control), false) => {
                control.release();
                self.control = None;
            }
            _ => {}
        }
    }
}

impl Context for Root {
    fn on_grpc_stream_message(&mut self, token: u32, _size: usize) {
        if let (Some(control), Some(config)) = (&mut self.control, &self.config) {
            control.message(
                token,
                &hostcalls::buffer(Buffer::GrpcMessage),
                config,
                hostcalls::monotonic(),
            );
        }
    }

    fn on_grpc_stream_close(&mut self, token: u32, code: u32) {
        if let (Some(control), Some(config)) = (&mut self.control, &self.config) {
            control.closed(token, code, config, hostcalls::monotonic());
        }
    }

    fn on_done(&mut self) -> bool {
        if let Some(mut control) = self.control.take() {
            control.release();
            if let Some((Some(lease), cas)) = shared::lease()
                && self.vm.is_some_and(|vm| lease.holder == self.holder(vm))
            {
                shared::set_lease(None, cas);
            }
        }
        if let Some(config) = self.config.take() {
            vm::with(|vm| vm.retired(self.id, &config));
        }
        true
    }
}

impl RootContext for Root {
    fn on_configure(&mut self, _size: usize) -> bool {
        let json = hostcalls::buffer(Buffer::PluginConfiguration);
        let config = match Config::parse(&json) {
            Ok(config) => Rc::new(config),
            Err(error) => {
                hostcalls::log(LogLevel::Error, &error.to_string());
                return false;
            }
        };
        shared::create();
        let (hash, now) = (KeyHash::of(&json).0, hostcalls::monotonic());
        let again = vm::with(|vm| {
            self.vm = Some(vm.id);
            vm.configured(hash, &config, now)
        });
        self.generation = shared::generation(hash, again.unwrap_or(false));
        // One that has nowhere to get tables from leaves the lease to those that have.
        if config.control_cluster.is_some() {
            vm::with(|vm| vm.enter(self.id, self.generation));
        }
        self.proxy = config.proxy.clone().unwrap_or_else(|| {
            let id = hostcalls::property("xds\0node\0id").unwrap_or_default();
            String::from_utf8_lossy(&id).into_owned()
        });
        if hostcalls::set_tick(config.tick).is_err() {
            hostcalls::log(
                LogLevel::Error,
                "the host gives no ticks: tables will not be renewed",
            );
        }
        self.config = Some(config);
        true
    }

    fn on_tick(&mut self) {
        let Some(config) = self.config.clone() else {
            return;
        };
        let (Some(id), now) = (self.vm, hostcalls::monotonic()) else {
            return;
        };
        let contends = vm::with(|vm| {
            vm.tick(now);
            vm.contends(self.id)
        });
        if contends == Some(true) {
            self.hold_lease(id, config.lease, now);
        } else if let Some(mut control) = self.control.take() {
            control.release();
        }
        #[cfg(feature = "crash-test")]
        crate::crash::tick(self.control.is_some());
        if let Some(control) = &mut self.control {
            vm::with(|vm| control.tick(&config, &self.proxy, vm, now));
        }
        if vm::with(|vm| vm.releases(self.id, config.tick, now)) == Some(true) {
            held::release(self.id, now);
        }
    }

    fn create_http_context(&self, id: u32) -> Option<Box<dyn HttpContext>> {
        Some(Box::new(Exchange::new(id, self.config.clone())))
    }

    fn get_type(&self) -> Option<ContextType> {
        Some(ContextType::HttpContext)
    }
}
