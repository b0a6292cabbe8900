// SPDX-License-Identifier: Apache-2.0
//! One running VM: how callbacks are called and what happens around them.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use crate::abi::{Action, LogLevel};
use crate::error::{Error, Result};
use crate::host::Host;
use crate::module::Module;
use crate::random::Random;
use crate::settings::Settings;
use crate::state::{After, Root, State};
use crate::vm::code::{Called, Code};

pub(crate) struct Instance {
    code: Code,
    /// The callback in which the VM died.
    dead: Option<&'static str>,
    fuel_used: u64,
    fuel_by_callback: BTreeMap<&'static str, u64>,
    calls_by_callback: BTreeMap<&'static str, BTreeMap<&'static str, u64>>,
}

impl Instance {
    /// Instantiates the module and runs its initializers.
    pub(crate) fn new(host: &Host, module: &Module, settings: Settings) -> Result<Self> {
        let vm = host.state.vms_started.get() + 1;
        host.state.vms_started.set(vm);
        let drawn = host.state.seeds.borrow_mut().next();
        let random = Random::new(settings.seed.unwrap_or(drawn));
        let state = State::new(Rc::clone(&host.state), settings, vm, random);
        let mut instance = Self {
            code: Code::new(module, state)?,
            dead: None,
            fuel_used: 0,
            fuel_by_callback: BTreeMap::new(),
            calls_by_callback: BTreeMap::new(),
        };
        if let Some(initializer) = instance.code.initializer() {
            instance.call(0, initializer, &[])?;
        }
        Ok(instance)
    }

    pub(crate) fn state(&self) -> &State {
        self.code.state()
    }

    pub(crate) fn state_mut(&mut self) -> &mut State {
        self.code.state_mut()
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.dead.is_some()
    }

    pub(crate) fn fuel_used(&self) -> u64 {
        self.fuel_used
    }

    pub(crate) fn fuel_of(&self, callback: &str) -> u64 {
        self.fuel_by_callback.get(callback).copied().unwrap_or(0)
    }

    pub(crate) fn host_calls_of(&self, callback: &str) -> BTreeMap<&'static str, u64> {
        let calls = self.calls_by_callback.get(callback);
        calls.cloned().unwrap_or_default()
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        self.code.memory_bytes()
    }

    /// Calls an export with a context as the current one. `None` if the module does not export it.
    /// What the module asked for meanwhile waits for [`settle`](Self::settle).
    pub(crate) fn call(
        &mut self,
        context: u32,
        callback: &'static str,
        arguments: &[u32],
    ) -> Result<Option<u32>> {
        if let Some(callback) = self.dead {
            return Err(Error::Dead { callback });
        }
        let logged = self.state().logs.len();
        let called = self.code.call(context, callback, arguments);
        let Some(Called { outcome, fuel }) = called else {
            return Ok(None);
        };
        self.fuel_used += fuel;
        self.fuel_by_callback.insert(callback, fuel);
        let calls = std::mem::take(&mut self.state_mut().calls);
        self.calls_by_callback.insert(callback, calls);
        match outcome {
            Ok(answer) => Ok(answer),
            Err(error) => {
                self.dead = Some(callback);
                self.state_mut().after.clear();
                Err(Error::Trap {
                    callback,
                    message: self.last_words(logged, &error),
                })
            }
        }
    }

    /// The panic message, which modules write to standard error or to the log just before they trap;
    /// the trap itself if they said nothing.
    fn last_words(&self, logged_before: usize, error: &wasmtime::Error) -> String {
        let said = self.state().logs[logged_before..].iter();
        let panic = said
            .filter(|log| log.level >= LogLevel::Error)
            .map(|log| log.message.trim());
        let lines: Vec<&str> = panic
            .filter(|line| !line.is_empty() && !line.starts_with("note: "))
            .collect();
        if lines.is_empty() {
            format!("{error:?}")
        } else {
            lines.join(" ")
        }
    }

    /// Calls a callback that decides about a stream. Answering the request counts as a pause.
    pub(crate) fn decide(
        &mut self,
        context: u32,
        callback: &'static str,
        arguments: &[u32],
    ) -> Result<Action> {
        let decided = self.call(context, callback, arguments)?.unwrap_or(0);
        let paused = decided != 0 || self.state().answered;
        Ok(if paused {
            Action::Pause
        } else {
            Action::Continue
        })
    }

    /// Does what the module asked for in the last callback, and in those that follow from it.
    pub(crate) fn settle(&mut self) -> Result<()> {
        while let Some(after) = self.state_mut().after.pop_front() {
            match after {
                After::Resume(stream, direction) => self.resume(stream, direction)?,
                After::Reply(stream, reply) => self.answer(stream, reply)?,
                After::Reset(stream) => {
                    if let Some(stream) = self.state_mut().streams.get_mut(&stream) {
                        stream.reset = true;
                    }
                }
                After::GrpcClosed {
                    root,
                    token,
                    status,
                    message,
                } => {
                    self.grpc_closed(root, token, status, &message)?;
                }
                After::DeleteRoot(root) => {
                    self.call(root, "proxy_on_delete", &[root])?;
                    self.state_mut().roots.remove(&root);
                }
            }
        }
        Ok(())
    }

    /// A new root context: created, started and configured.
    pub(crate) fn configure(&mut self, configuration: Vec<u8>) -> Result<u32> {
        let id = self.state_mut().next_context();
        let root = Root {
            configuration: configuration.clone(),
            tick_period: None,
            next_tick: Duration::ZERO,
            finishing: false,
        };
        self.state_mut().roots.insert(id, root);
        let configured = self.configure_root(id, configuration);
        self.state_mut().plugin_configuration = None;
        if configured.is_err() {
            self.state_mut().roots.remove(&id);
        }
        configured.map(|()| id)
    }

    /// The module can read its configuration in all of this except `on_vm_start`.
    fn configure_root(&mut self, id: u32, configuration: Vec<u8>) -> Result<()> {
        let size = configuration.len() as u32;
        let vm_size = self.state().settings.vm_configuration.len() as u32;
        self.state_mut().plugin_configuration = Some(configuration.clone());
        self.call(id, "proxy_on_context_create", &[id, 0])?;
        self.settle()?;
        self.state_mut().plugin_configuration = None;
        self.accept(id, "proxy_on_vm_start", vm_size)?;
        self.state_mut().plugin_configuration = Some(configuration);
        self.accept(id, "proxy_on_configure", size)
    }

    fn accept(&mut self, root: u32, callback: &'static str, size: u32) -> Result<()> {
        let accepted = self.call(root, callback, &[root, size])?.unwrap_or(1) != 0;
        self.settle()?;
        if accepted {
            Ok(())
        } else {
            Err(Error::Refused { callback })
        }
    }

    /// `proxy_on_done`; true if the root is gone, false if the module wants to call `proxy_done` first.
    pub(crate) fn retire(&mut self, root: u32) -> Result<bool> {
        if !self.state().roots.contains_key(&root) {
            return Err(Error::Misuse(format!("there is no root context {root}")));
        }
        let done = self.call(root, "proxy_on_done", &[root])?.unwrap_or(1) != 0;
        self.settle()?;
        if done {
            self.state_mut().after.push_back(After::DeleteRoot(root));
        } else if let Some(root) = self.state_mut().roots.get_mut(&root) {
            root.finishing = true;
        }
        self.settle()?;
        Ok(done)
    }

    /// The newest root context that still takes requests.
    pub(crate) fn newest_root(&self) -> Result<u32> {
        let newest = self
            .state()
            .roots
            .iter()
            .rev()
            .find(|(_, root)| !root.finishing);
        newest
            .map(|(id, _)| *id)
            .ok_or_else(|| Error::Misuse("the VM has no root context".into()))
    }

    /// The root context whose timer is due first.
    pub(crate) fn next_tick(&self) -> Option<(Duration, u32)> {
        let alive = self.state().roots.iter().filter(|_| !self.is_dead());
        alive
            .filter(|(_, root)| root.tick_period.is_some())
            .map(|(id, root)| (root.next_tick, *id))
            .min()
    }

    /// Fires the timer of a root context, if it has one.
    pub(crate) fn tick(&mut self, root: u32) -> Result<()> {
        let now = self.state().host.clock.monotonic();
        let Some(context) = self.state_mut().roots.get_mut(&root) else {
            return Ok(());
        };
        let Some(period) = context.tick_period else {
            return Ok(());
        };
        context.next_tick = now + period;
        self.call(root, "proxy_on_tick", &[root])?;
        self.settle()
    }

    /// Tells the module about every item in its queues that it was not told of; returns how many.
    pub(crate) fn deliver_queues(&mut self) -> Result<usize> {
        let mut told = 0;
        loop {
            let vm = self.state().vm;
            let due = self.state().host.queues.borrow_mut().take_untold(vm);
            let Some((root, queue)) = due else {
                return Ok(told);
            };
            if self.state().roots.contains_key(&root) {
                self.call(root, "proxy_on_queue_ready", &[root, queue])?;
                self.settle()?;
                told += 1;
            }
        }
    }
}
