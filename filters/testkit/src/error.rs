// SPDX-License-Identifier: Apache-2.0
//! What can go wrong, seen from a test.

use std::path::PathBuf;

/// The result of everything that calls into a module.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a module could not be loaded, started or called.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file cannot be read.
    #[error("cannot read {}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// Not WebAssembly, not ABI 0.2, or it imports something that Envoy does not offer.
    #[error("not a module that Envoy would load: {0}")]
    Module(String),
    /// `proxy_on_vm_start` or `proxy_on_configure` returned false.
    #[error("the module refused: {callback} returned false")]
    Refused {
        /// The callback that returned false.
        callback: &'static str,
    },
    /// The module trapped: a panic, an endless loop (out of fuel), or a call that aborts Envoy.
    /// The VM is dead from here on.
    #[error("trap in {callback}: {message}")]
    Trap {
        /// The callback in which it happened.
        callback: &'static str,
        /// The panic message if the module left one in its log, else the trap.
        message: String,
    },
    /// The VM trapped earlier. [`Vm::restart`](crate::Vm::restart) makes a new one.
    #[error("the VM is dead since a trap in {callback}")]
    Dead {
        /// The callback in which it died.
        callback: &'static str,
    },
    /// The test asked for what Envoy never does, such as a response to a request that is still paused.
    #[error("{0}")]
    Misuse(String),
}

impl Error {
    /// Whether the module trapped in this very call.
    pub fn is_trap(&self) -> bool {
        matches!(self, Self::Trap { .. })
    }
}
