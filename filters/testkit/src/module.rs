// SPDX-License-Identifier: Apache-2.0
//! A compiled module.

use std::path::Path;
use std::sync::{Arc, LazyLock};

use wasmtime::{Config, Engine, InstancePre, Linker};

use crate::error::{Error, Result};
use crate::hostcalls;
use crate::program::Program;
use crate::state::State;

/// One engine for the process: compiled modules and their code can be shared by all threads.
static ENGINE: LazyLock<std::result::Result<Engine, String>> = LazyLock::new(|| {
    let mut config = Config::new();
    config.consume_fuel(true);
    Engine::new(&config).map_err(|error| format!("{error:?}"))
});

/// A compiled proxy-wasm module. Compiling takes a while (about a second for a megabyte, more in
/// debug builds), cloning is free and threads can share one: keep it in a `LazyLock`.
#[derive(Clone)]
pub struct Module(Kind);

/// What a module is.
#[derive(Clone)]
pub(crate) enum Kind {
    Wasm(InstancePre<State>),
    Program(Arc<dyn Fn() -> Box<dyn Program> + Send + Sync>),
}

impl Module {
    /// Compiles a `.wasm` file.
    ///
    /// # Errors
    /// [`Error::File`], or those of [`from_bytes`](Self::from_bytes).
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let read = std::fs::read(path);
        let bytes = read.map_err(|error| Error::File {
            path: path.into(),
            reason: error.to_string(),
        })?;
        Self::from_bytes(&bytes)
    }

    /// Compiles a module in the binary format.
    ///
    /// # Errors
    /// [`Error::Module`] if it is not WebAssembly, does not export `proxy_abi_version_0_2_0` or
    /// `proxy_abi_version_0_2_1`, or imports a function that Envoy does not offer.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let engine = ENGINE
            .as_ref()
            .map_err(|error| Error::Module(error.clone()))?;
        let module =
            wasmtime::Module::new(engine, bytes).map_err(|e| Error::Module(format!("{e:?}")))?;
        let versions = ["proxy_abi_version_0_2_0", "proxy_abi_version_0_2_1"];
        if !versions
            .iter()
            .any(|version| module.get_export(version).is_some())
        {
            return Err(Error::Module(format!(
                "it exports neither {} nor {}",
                versions[0], versions[1]
            )));
        }
        let mut linker = Linker::new(engine);
        let linked = hostcalls::link(&mut linker).and_then(|()| linker.instantiate_pre(&module));
        let linked = linked.map_err(|error| Error::Module(format!("{error:?}")))?;
        Ok(Self(Kind::Wasm(linked)))
    }

    /// Programs in the place of a module: `start` makes one for each VM.
    pub fn of_program(start: impl Fn() -> Box<dyn Program> + Send + Sync + 'static) -> Self {
        Self(Kind::Program(Arc::new(start)))
    }

    /// Whether it is WebAssembly, which alone has fuel, memory of its own, and traps.
    pub fn is_wasm(&self) -> bool {
        matches!(self.0, Kind::Wasm(_))
    }

    pub(crate) fn kind(&self) -> &Kind {
        &self.0
    }
}

impl std::fmt::Debug for Module {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = match &self.0 {
            Kind::Wasm(module) => module.module().name(),
            Kind::Program(_) => Some("a program"),
        };
        f.debug_struct("Module")
            .field("name", &name)
            .finish_non_exhaustive()
    }
}
