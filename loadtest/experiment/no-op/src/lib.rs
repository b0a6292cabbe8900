// SPDX-License-Identifier: Apache-2.0
//! An HTTP filter that does nothing: what any filter costs, as a module of proxy-wasm and as a dynamic module.
//!
//! Like every module that is built with the SDK it exports all callbacks, so Envoy makes more calls into it than into
//! Weir's, which exports those alone that it does something in.

#[cfg(target_arch = "wasm32")]
mod filter;
#[cfg(not(target_arch = "wasm32"))]
pub mod native;
