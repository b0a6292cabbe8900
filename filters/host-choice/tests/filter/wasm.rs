// SPDX-License-Identifier: Apache-2.0
//! What only the module of WebAssembly does: `--skip wasm::` leaves it out of the tests of the other shell.

mod fuel;
mod interrupted;
mod releases;
mod takeover;
