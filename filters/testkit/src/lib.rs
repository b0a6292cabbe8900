// SPDX-License-Identifier: Apache-2.0
//! Runs any proxy-wasm module under wasmtime, with a fake host that a test controls.
