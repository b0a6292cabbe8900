// SPDX-License-Identifier: Apache-2.0
#![cfg(target_arch = "wasm32")]
//! A proxy-wasm HTTP filter that does nothing: what any filter costs.
//!
//! Like every module that is built with the SDK it exports all callbacks, so Envoy makes the same calls
//! into it as into Weir's.

use proxy_wasm::traits::{Context, HttpContext, RootContext};
use proxy_wasm::types::ContextType;

#[allow(unsafe_code, missing_docs)] // The SDK's macro exports the module's entry point.
mod entry {
    proxy_wasm::main! {{
        proxy_wasm::set_root_context(|_| Box::new(crate::Root));
    }}
}

struct Root;

impl Context for Root {}

impl RootContext for Root {
    fn get_type(&self) -> Option<ContextType> {
        Some(ContextType::HttpContext)
    }

    fn create_http_context(&self, _: u32) -> Option<Box<dyn HttpContext>> {
        Some(Box::new(Exchange))
    }
}

struct Exchange;

impl Context for Exchange {}

impl HttpContext for Exchange {}
