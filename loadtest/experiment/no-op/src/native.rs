// SPDX-License-Identifier: Apache-2.0
#![allow(unsafe_code)] // Envoy finds the hooks by their names.
#![allow(missing_docs, unreachable_pub)] // Nobody else calls them.
//! The 21 hooks that Envoy 1.40 asks a dynamic module for.

use std::ffi::{c_char, c_void};

/// What Envoy may keep of nothing.
static NOTHING: u8 = 0;

type Envoys = *mut c_void;
type Own = *const c_void;

#[repr(C)]
pub struct Buffer(*const u8, usize);

#[unsafe(no_mangle)]
pub extern "C" fn envoy_dynamic_module_on_program_init() -> *const c_char {
    c"v0.2.0".as_ptr()
}

#[unsafe(no_mangle)]
pub extern "C" fn envoy_dynamic_module_on_http_filter_config_new(
    _: Envoys,
    _: Buffer,
    _: Buffer,
) -> Own {
    (&raw const NOTHING).cast()
}

#[unsafe(no_mangle)]
pub extern "C" fn envoy_dynamic_module_on_http_filter_new(_: Own, _: Envoys) -> Own {
    (&raw const NOTHING).cast()
}

macro_rules! hooks {
    ($($name:ident($($kind:ty),*);)*) => {$(
        /// Zero goes on.
        #[unsafe(no_mangle)]
        pub extern "C" fn $name($(_: $kind),*) -> u32 {
            0
        }
    )*};
}

hooks! {
    envoy_dynamic_module_on_http_filter_config_destroy(Own);
    envoy_dynamic_module_on_http_filter_destroy(Own);
    envoy_dynamic_module_on_http_filter_request_headers(Envoys, Own, bool);
    envoy_dynamic_module_on_http_filter_request_body(Envoys, Own, bool);
    envoy_dynamic_module_on_http_filter_request_trailers(Envoys, Own);
    envoy_dynamic_module_on_http_filter_response_headers(Envoys, Own, bool);
    envoy_dynamic_module_on_http_filter_response_body(Envoys, Own, bool);
    envoy_dynamic_module_on_http_filter_response_trailers(Envoys, Own);
    envoy_dynamic_module_on_http_filter_stream_complete(Envoys, Own);
    envoy_dynamic_module_on_http_filter_scheduled(Envoys, Own, u64);
    envoy_dynamic_module_on_http_filter_http_callout_done(Envoys, Own, u64, u32, Own, usize, Own, usize);
    envoy_dynamic_module_on_http_filter_http_stream_headers(Envoys, Own, u64, Own, usize, bool);
    envoy_dynamic_module_on_http_filter_http_stream_data(Envoys, Own, u64, Own, usize, bool);
    envoy_dynamic_module_on_http_filter_http_stream_trailers(Envoys, Own, u64, Own, usize);
    envoy_dynamic_module_on_http_filter_http_stream_complete(Envoys, Own, u64);
    envoy_dynamic_module_on_http_filter_http_stream_reset(Envoys, Own, u64, u32);
    envoy_dynamic_module_on_http_filter_downstream_above_write_buffer_high_watermark(Envoys, Own);
    envoy_dynamic_module_on_http_filter_downstream_below_write_buffer_low_watermark(Envoys, Own);
}
