// SPDX-License-Identifier: Apache-2.0
//! Contexts without a thought of their own.

use proxy_wasm::traits::{Context, HttpContext, RootContext};
use proxy_wasm::types::ContextType;

#[allow(unsafe_code, missing_docs)] // The SDK's macro exports the module's entry point.
mod entry {
    proxy_wasm::main! {{
        proxy_wasm::set_root_context(|_| Box::new(super::Root));
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
