// SPDX-License-Identifier: Apache-2.0
//! The functions that a module can import: `proxy_*` from `env`, and WASI.
//!
//! Each group is a file of plain functions over a [`Guest`](crate::guest::Guest), and one `link`
//! that names them.

mod callouts;
mod general;
mod maps;
mod shared;
mod wasi;

use wasmtime::Linker;

use crate::state::State;

/// Adds `env.$name`, which calls `$function` and turns its answer into a status.
macro_rules! host_function {
    ($linker:expr, $name:literal = $function:path, $($argument:ident: $kind:ty),*) => {
        $linker.func_wrap(
            "env",
            $name,
            |caller: wasmtime::Caller<'_, $crate::state::State>, $($argument: $kind),*| {
                let guest = &mut $crate::guest::Guest(caller);
                let host = std::rc::Rc::clone(&guest.state().host);
                host.pass();
                guest.state().count($name);
                if guest.state().refused.contains($name) {
                    return Ok($crate::abi::Status::InternalFailure as u32);
                }
                $crate::guest::status($function(guest, $($argument),*))
            },
        )?
    };
}
pub(crate) use host_function;

/// Everything Envoy offers to a module. Importing anything else is refused, as Envoy does.
pub(crate) fn link(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    general::link(linker)?;
    maps::link(linker)?;
    shared::link(linker)?;
    callouts::link(linker)?;
    wasi::link(linker)
}
