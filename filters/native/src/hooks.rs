// SPDX-License-Identifier: Apache-2.0
#![allow(unsafe_code)] // This file and `abi.rs` alone know Envoy's pointers.
#![allow(clippy::missing_safety_doc, missing_docs)] // Envoy alone calls these, by their names.
//! The hooks that Envoy 1.40 asks for. A panic in one is caught: Envoy hears what lets the request go on, without a host
//! that its caller may have named.
//!
//! What Envoy keeps of a configuration is an `Arc<Installed>`, and of a request an `Rc<Request>`, which a hook holds
//! too while it runs: Envoy may destroy a request within it.

use std::ffi::{c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;

use weir_filter::disposition::{Action, Flow};

use crate::abi::{self, Configuration, Filter, body_status, headers_status, level};
pub use crate::abi::{Buffer, Header};
use crate::installed::Installed;
use crate::streams;
use crate::tested;
use crate::worker::{self, Request};

/// What Envoy 1.40 writes of itself. Of another text it says so in its log and goes on: see `tested`.
const ABI: &std::ffi::CStr = c"v0.2.0";

/// Runs a hook; where it panics, the log says so and Envoy gets `otherwise`.
fn caught<T>(name: &str, otherwise: T, hook: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(hook)).unwrap_or_else(|panic| {
        let words = panic.downcast_ref::<String>().map(String::as_str);
        let words = words.or_else(|| panic.downcast_ref::<&str>().copied());
        let words = words.unwrap_or("no message");
        abi::log(level::ERROR, &format!("weir panicked in {name}: {words}"));
        otherwise
    })
}

/// A configuration, of which Envoy keeps one count.
unsafe fn installed<'a>(pointer: *const c_void) -> &'a Installed {
    // SAFETY: `config_new` made it, and `config_destroy` has not come.
    unsafe { &*pointer.cast::<Installed>() }
}

/// A request, counted once more.
unsafe fn request(pointer: *const c_void) -> Rc<Request> {
    let pointer = pointer.cast::<Request>();
    // SAFETY: `http_filter_new` made it on this thread, and `destroy` has not come.
    unsafe {
        Rc::increment_strong_count(pointer);
        Rc::from_raw(pointer)
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn envoy_dynamic_module_on_program_init() -> *const c_char {
    caught("program_init", std::ptr::null(), || {
        match tested::refusal() {
            None => ABI.as_ptr(),
            Some(why) => {
                abi::log(level::ERROR, &why);
                std::ptr::null()
            }
        }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn envoy_dynamic_module_on_http_filter_config_new(
    envoy: *mut c_void,
    _name: Buffer,
    configuration: Buffer,
) -> *const c_void {
    caught("config_new", std::ptr::null(), || {
        // SAFETY: both are Envoy's, on the main thread.
        let (envoy, json) = unsafe { (Configuration::new(envoy), configuration.as_slice()) };
        match worker::install(envoy, json) {
            Some(installed) => Arc::into_raw(installed).cast(),
            None => std::ptr::null(),
        }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn envoy_dynamic_module_on_http_filter_config_destroy(
    pointer: *const c_void,
) {
    caught("config_destroy", (), || {
        // SAFETY: Envoy gives up its count.
        let installed = unsafe { Arc::from_raw(pointer.cast::<Installed>()) };
        worker::remove(&installed);
    });
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn envoy_dynamic_module_on_http_filter_config_scheduled(
    _envoy: *mut c_void,
    pointer: *const c_void,
    _event: u64,
) {
    caught("config_scheduled", (), || {
        // SAFETY: as `installed` asks.
        worker::tick_main(unsafe { installed(pointer) });
    });
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn envoy_dynamic_module_on_http_filter_config_http_stream_headers(
    _envoy: *mut c_void,
    pointer: *const c_void,
    stream: u64,
    headers: *const Header,
    count: usize,
    _ends: bool,
) {
    // SAFETY: this is called with headers, too.
    unsafe {
        stream_headers(
            "config_http_stream_headers",
            pointer,
            stream,
            headers,
            count,
        )
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn envoy_dynamic_module_on_http_filter_config_http_stream_trailers(
    _envoy: *mut c_void,
    pointer: *const c_void,
    stream: u64,
    trailers: *const Header,
    count: usize,
) {
    // SAFETY: trailers are headers.
    unsafe {
        stream_headers(
            "config_http_stream_trailers",
            pointer,
            stream,
            trailers,
            count,
        )
    }
}

unsafe fn stream_headers(
    name: &str,
    pointer: *const c_void,
    stream: u64,
    headers: *const Header,
    count: usize,
) {
    caught(name, (), || {
        if headers.is_null() {
            return;
        }
        // SAFETY: Envoy's, for as long as the hook.
        let (id, headers) = unsafe {
            (
                installed(pointer).id,
                std::slice::from_raw_parts(headers, count),
            )
        };
        // SAFETY: as above.
        let headers = headers.iter().map(|header| unsafe { header.pair() });
        streams::headers(id, stream, headers);
    });
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn envoy_dynamic_module_on_http_filter_config_http_stream_data(
    _envoy: *mut c_void,
    pointer: *const c_void,
    stream: u64,
    parts: *const Buffer,
    count: usize,
    _ends: bool,
) {
    caught("config_http_stream_data", (), || {
        if parts.is_null() {
            return;
        }
        // SAFETY: Envoy's, for as long as the hook.
        let (id, parts) = unsafe {
            (
                installed(pointer).id,
                std::slice::from_raw_parts(parts, count),
            )
        };
        for part in parts {
            // SAFETY: as above.
            streams::data(id, stream, unsafe { part.as_slice() });
        }
        worker::deliver();
    });
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn envoy_dynamic_module_on_http_filter_config_http_stream_complete(
    _envoy: *mut c_void,
    pointer: *const c_void,
    stream: u64,
) {
    caught("config_http_stream_complete", (), || {
        // SAFETY: as `installed` asks.
        streams::closed(unsafe { installed(pointer) }.id, stream, false);
        worker::deliver();
    });
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn envoy_dynamic_module_on_http_filter_config_http_stream_reset(
    _envoy: *mut c_void,
    pointer: *const c_void,
    stream: u64,
    _reason: u32,
) {
    caught("config_http_stream_reset", (), || {
        // SAFETY: as `installed` asks.
        streams::closed(unsafe { installed(pointer) }.id, stream, true);
        worker::deliver();
    });
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn envoy_dynamic_module_on_http_filter_new(
    pointer: *const c_void,
    envoy: *mut c_void,
) -> *const c_void {
    caught("http_filter_new", std::ptr::null(), || {
        let pointer = pointer.cast::<Installed>();
        // SAFETY: as `installed` asks; the request is Envoy's, on this thread.
        let (installed, filter) = unsafe {
            Arc::increment_strong_count(pointer);
            (Arc::from_raw(pointer), Filter::new(envoy))
        };
        Rc::into_raw(worker::begin(&installed, filter)).cast()
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn envoy_dynamic_module_on_http_filter_destroy(pointer: *const c_void) {
    caught("http_filter_destroy", (), || {
        // SAFETY: Envoy gives up its count.
        let request = unsafe { Rc::from_raw(pointer.cast::<Request>()) };
        request.on_destroy();
    });
}

/// Runs a hook of a request's, and carries out what it says.
unsafe fn of_request<T>(
    name: &str,
    pointer: *const c_void,
    otherwise: T,
    hook: impl FnOnce(&Request) -> T,
) -> T {
    if pointer.is_null() {
        return otherwise;
    }
    caught(name, otherwise, || {
        // SAFETY: as `request` asks.
        let request = unsafe { request(pointer) };
        hook(&request)
    })
}

/// The same of a hook by which a request comes to a host. After a panic Envoy chooses.
unsafe fn of_choice(
    name: &str,
    pointer: *const c_void,
    otherwise: u32,
    hook: impl FnOnce(&Request) -> u32,
) -> u32 {
    let chosen = |request: &Request| Some(hook(request));
    // SAFETY: as `request` asks.
    unsafe {
        of_request(name, pointer, None, chosen).unwrap_or_else(|| {
            of_request(name, pointer, (), Request::on_panic);
            otherwise
        })
    }
}

fn is_paused(request: &Request, flow: Flow) -> bool {
    flow.carry_out(&request.in_envoy) == Action::Pause
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn envoy_dynamic_module_on_http_filter_request_headers(
    _envoy: *mut c_void,
    pointer: *const c_void,
    ends: bool,
) -> u32 {
    let hook = |request: &Request| {
        let flow = request.on_headers(ends);
        let is_held = flow == Flow::Hold;
        match is_paused(request, flow) {
            false => headers_status::CONTINUE,
            true if is_held && !request.entry.installed.reads_bodies => {
                headers_status::STOP_ALL_AND_WATERMARK
            }
            true => headers_status::STOP,
        }
    };
    // SAFETY: as `request` asks.
    unsafe { of_choice("request_headers", pointer, headers_status::CONTINUE, hook) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn envoy_dynamic_module_on_http_filter_request_body(
    _envoy: *mut c_void,
    pointer: *const c_void,
    ends: bool,
) -> u32 {
    // SAFETY: as `request` asks.
    unsafe { of_choice("request_body", pointer, body_status::CONTINUE, body(ends)) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn envoy_dynamic_module_on_http_filter_request_trailers(
    _envoy: *mut c_void,
    pointer: *const c_void,
) -> u32 {
    // SAFETY: as `request` asks.
    unsafe {
        of_choice(
            "request_trailers",
            pointer,
            body_status::CONTINUE,
            body(true),
        )
    }
}

fn body(is_last: bool) -> impl FnOnce(&Request) -> u32 {
    move |request| match is_paused(request, request.on_body(is_last)) {
        false => body_status::CONTINUE,
        true => body_status::STOP_AND_BUFFER,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn envoy_dynamic_module_on_http_filter_response_headers(
    _envoy: *mut c_void,
    pointer: *const c_void,
    _ends: bool,
) -> u32 {
    // SAFETY: as `request` asks.
    unsafe { of_request("response_headers", pointer, (), Request::on_answer) };
    headers_status::CONTINUE
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn envoy_dynamic_module_on_http_filter_response_body(
    _envoy: *mut c_void,
    _pointer: *const c_void,
    _ends: bool,
) -> u32 {
    body_status::CONTINUE
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn envoy_dynamic_module_on_http_filter_response_trailers(
    _envoy: *mut c_void,
    _pointer: *const c_void,
) -> u32 {
    body_status::CONTINUE
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn envoy_dynamic_module_on_http_filter_stream_complete(
    _envoy: *mut c_void,
    pointer: *const c_void,
) {
    // SAFETY: as `request` asks.
    unsafe { of_request("stream_complete", pointer, (), Request::on_end) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn envoy_dynamic_module_on_http_filter_scheduled(
    _envoy: *mut c_void,
    pointer: *const c_void,
    _event: u64,
) {
    // SAFETY: as `request` asks.
    unsafe { of_request("scheduled", pointer, (), Request::on_scheduled) }
}

/// Asked for by Envoy, and never called: the filter makes no calls of these kinds for a request.
macro_rules! unused {
    ($($name:ident($($kind:ty),*);)*) => {$(
        #[unsafe(no_mangle)]
        pub extern "C" fn $name($(_: $kind),*) {}
    )*};
}

unused! {
    envoy_dynamic_module_on_http_filter_http_callout_done(
        *mut c_void, *const c_void, u64, u32, *const Header, usize, *const Buffer, usize);
    envoy_dynamic_module_on_http_filter_http_stream_headers(
        *mut c_void, *const c_void, u64, *const Header, usize, bool);
    envoy_dynamic_module_on_http_filter_http_stream_data(
        *mut c_void, *const c_void, u64, *const Buffer, usize, bool);
    envoy_dynamic_module_on_http_filter_http_stream_trailers(
        *mut c_void, *const c_void, u64, *const Header, usize);
    envoy_dynamic_module_on_http_filter_http_stream_complete(*mut c_void, *const c_void, u64);
    envoy_dynamic_module_on_http_filter_http_stream_reset(*mut c_void, *const c_void, u64, u32);
    envoy_dynamic_module_on_http_filter_downstream_above_write_buffer_high_watermark(
        *mut c_void, *const c_void);
    envoy_dynamic_module_on_http_filter_downstream_below_write_buffer_low_watermark(
        *mut c_void, *const c_void);
}
