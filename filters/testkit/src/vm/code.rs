// SPDX-License-Identifier: Apache-2.0
//! What runs in a VM: a module of WebAssembly, or a program in its place.

use wasmtime::{InstancePre, Store, Val};

use crate::calls::Calls;
use crate::error::{Error, Result};
use crate::guest::ALLOCATE;
use crate::module::{Kind, Module};
use crate::program::Program;
use crate::state::State;

pub(crate) enum Code {
    Wasm(Wasm),
    Program(Box<dyn Program>, Box<State>),
}

pub(crate) struct Wasm {
    store: Store<State>,
    exports: wasmtime::Instance,
}

/// How a callback has ended: what it answered, or the trap.
pub(crate) struct Called {
    pub(crate) outcome: wasmtime::Result<Option<u32>>,
    /// 0 of what is not WebAssembly.
    pub(crate) fuel: u64,
}

impl Code {
    /// Instantiates it; its initializer has not run.
    pub(crate) fn new(module: &Module, state: State) -> Result<Self> {
        match module.kind() {
            Kind::Wasm(module) => Wasm::new(module, state)
                .map(Self::Wasm)
                .map_err(|error| Error::Module(format!("{error:?}"))),
            Kind::Program(start) => Ok(Self::Program(start(), Box::new(state))),
        }
    }

    pub(crate) fn state(&self) -> &State {
        match self {
            Self::Wasm(wasm) => wasm.store.data(),
            Self::Program(_, state) => state,
        }
    }

    pub(crate) fn state_mut(&mut self) -> &mut State {
        match self {
            Self::Wasm(wasm) => wasm.store.data_mut(),
            Self::Program(_, state) => state,
        }
    }

    /// What is to be called before everything else.
    pub(crate) fn initializer(&mut self) -> Option<&'static str> {
        let Self::Wasm(wasm) = self else { return None };
        let mut names = ["_initialize", "_start"].into_iter();
        names.find(|name| wasm.exports.get_func(&mut wasm.store, name).is_some())
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        match self {
            Self::Wasm(wasm) => {
                let memory = wasm.store.data().memory;
                memory.map_or(0, |memory| memory.data_size(&wasm.store) as u64)
            }
            Self::Program(..) => 0,
        }
    }

    /// Calls a callback with a context as the current one; none if a module does not export it.
    pub(crate) fn call(
        &mut self,
        context: u32,
        callback: &'static str,
        arguments: &[u32],
    ) -> Option<Called> {
        match self {
            Self::Wasm(wasm) => wasm.call(context, callback, arguments),
            Self::Program(program, state) => {
                state.begin(context);
                let answer = program.call(&mut Calls::new(state), callback, arguments);
                Some(Called {
                    outcome: Ok(answer),
                    fuel: 0,
                })
            }
        }
    }
}

impl Wasm {
    fn new(module: &InstancePre<State>, state: State) -> wasmtime::Result<Self> {
        let mut store = Store::new(module.module().engine(), state);
        let limit = store.data().settings.fuel_limit;
        store.set_fuel(limit)?;
        let exports = module.instantiate(&mut store)?;
        store.data_mut().memory = exports.get_memory(&mut store, "memory");
        let allocators = [ALLOCATE, "malloc"];
        store.data_mut().allocate = allocators
            .iter()
            .find_map(|name| exports.get_typed_func(&mut store, name).ok());
        Ok(Self { store, exports })
    }

    fn call(&mut self, context: u32, callback: &str, arguments: &[u32]) -> Option<Called> {
        let function = self.exports.get_func(&mut self.store, callback)?;
        self.store.data_mut().begin(context);
        let arguments: Vec<Val> = arguments
            .iter()
            .map(|value| Val::I32(*value as i32))
            .collect();
        let mut results = vec![Val::I32(0); function.ty(&self.store).results().len()];
        let limit = self.store.data().settings.fuel_limit;
        let outcome = self
            .store
            .set_fuel(limit)
            .and_then(|()| function.call(&mut self.store, &arguments, &mut results));
        let answer = results.first().and_then(Val::i32);
        Some(Called {
            outcome: outcome.map(|()| answer.map(|answer| answer as u32)),
            fuel: limit - self.store.get_fuel().unwrap_or(0),
        })
    }
}
