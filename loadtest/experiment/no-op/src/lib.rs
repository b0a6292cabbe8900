// SPDX-License-Identifier: Apache-2.0
//! A proxy-wasm HTTP filter that does nothing: what any filter costs.
//!
//! Like every module that is built with the SDK it exports all callbacks, so Envoy makes the same calls
//! into it as into Weir's.

#[cfg(target_arch = "wasm32")]
mod filter;
