// SPDX-License-Identifier: Apache-2.0
#![allow(unsafe_code)] // The host's functions take raw pointers; this file is the only one that calls them.
//! Thin wrappers around the host's functions (proxy-wasm ABI 0.2.1).
//!
//! They exist beside the SDK's own because those panic on statuses that they do not expect, and a panic is
//! a dead VM with every request in it. Here every status but success is an error or an absence. One call is
//! the SDK's all the same, and says why: [`open_stream`].

use std::time::Duration;

use crate::headers::Headers;

/// The host's status code for a call that did not succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Failed(pub(crate) u32);

const OK: u32 = 0;
const CAS_MISMATCH: u32 = 8;

/// Header maps of the current request.
#[derive(Clone, Copy)]
pub(crate) enum Map {
    Request = 0,
    Response = 2,
}

/// Buffers that the host holds for the current call.
#[derive(Clone, Copy)]
pub(crate) enum Buffer {
    GrpcMessage = 5,
    PluginConfiguration = 7,
}

#[derive(Clone, Copy)]
pub(crate) enum LogLevel {
    Warn = 3,
    Error = 4,
}

#[derive(Clone, Copy)]
pub(crate) enum MetricType {
    Counter = 0,
    Gauge = 1,
}

#[link(wasm_import_module = "env")]
unsafe extern "C" {
    fn proxy_log(level: u32, message: *const u8, size: usize) -> u32;
    fn proxy_get_current_time_nanoseconds(time: *mut u64) -> u32;
    fn proxy_set_tick_period_milliseconds(period: u32) -> u32;
    fn proxy_get_buffer_bytes(
        buffer: u32,
        start: usize,
        max: usize,
        data: *mut *mut u8,
        size: *mut usize,
    ) -> u32;
    fn proxy_get_header_map_pairs(map: u32, pairs: *mut *mut u8, size: *mut usize) -> u32;
    fn proxy_replace_header_map_value(
        map: u32,
        key: *const u8,
        key_size: usize,
        value: *const u8,
        value_size: usize,
    ) -> u32;
    fn proxy_remove_header_map_value(map: u32, key: *const u8, key_size: usize) -> u32;
    fn proxy_get_property(
        path: *const u8,
        path_size: usize,
        value: *mut *mut u8,
        size: *mut usize,
    ) -> u32;
    fn proxy_set_property(path: *const u8, path_size: usize, value: *const u8, size: usize) -> u32;
    fn proxy_get_shared_data(
        key: *const u8,
        key_size: usize,
        value: *mut *mut u8,
        value_size: *mut usize,
        cas: *mut u32,
    ) -> u32;
    fn proxy_set_shared_data(
        key: *const u8,
        key_size: usize,
        value: *const u8,
        value_size: usize,
        cas: u32,
    ) -> u32;
    fn proxy_set_effective_context(context: u32) -> u32;
    fn proxy_continue_stream(stream_type: u32) -> u32;
    fn proxy_send_local_response(
        code: u32,
        details: *const u8,
        details_size: usize,
        body: *const u8,
        body_size: usize,
        headers: *const u8,
        headers_size: usize,
        grpc_status: i32,
    ) -> u32;
    fn proxy_define_metric(
        metric_type: u32,
        name: *const u8,
        name_size: usize,
        id: *mut u32,
    ) -> u32;
    fn proxy_increment_metric(id: u32, offset: i64) -> u32;
    fn proxy_record_metric(id: u32, value: u64) -> u32;
    fn proxy_grpc_send(token: u32, message: *const u8, message_size: usize, end_stream: u32)
    -> u32;
    fn proxy_grpc_cancel(token: u32) -> u32;
}

#[link(wasm_import_module = "wasi_snapshot_preview1")]
unsafe extern "C" {
    fn clock_time_get(clock: u32, precision: u64, time: *mut u64) -> u16;
    fn random_get(buffer: *mut u8, size: usize) -> u16;
}

fn check(status: u32) -> Result<(), Failed> {
    if status == OK {
        Ok(())
    } else {
        Err(Failed(status))
    }
}

/// Takes over memory that the host has allocated through the module's own allocator.
fn take(data: *mut u8, size: usize) -> Vec<u8> {
    if data.is_null() {
        return Vec::new();
    }
    // SAFETY: the host got `data` from the exported allocator, with this size, and gives it up.
    unsafe { Vec::from_raw_parts(data, size, size) }
}

pub(crate) fn log(level: LogLevel, message: &str) {
    // SAFETY: pointer and size are of one live string. A lost log line is no error.
    let _ = unsafe { proxy_log(level as u32, message.as_ptr(), message.len()) };
}

/// Time since an origin that all VMs of the proxy share.
pub(crate) fn monotonic() -> Duration {
    const MONOTONIC: u32 = 1;
    let mut time = 0;
    // SAFETY: `time` outlives the call.
    let _ = unsafe { clock_time_get(MONOTONIC, 1, &mut time) };
    Duration::from_nanos(time)
}

/// Hours since the Unix epoch.
pub(crate) fn hour() -> u64 {
    let mut time = 0;
    // SAFETY: `time` outlives the call.
    let _ = unsafe { proxy_get_current_time_nanoseconds(&mut time) };
    time / 3_600_000_000_000
}

pub(crate) fn random() -> u64 {
    let mut bytes = [0; 8];
    // SAFETY: pointer and size are of one live array.
    let _ = unsafe { random_get(bytes.as_mut_ptr(), bytes.len()) };
    u64::from_le_bytes(bytes)
}

pub(crate) fn set_tick(period: Duration) -> Result<(), Failed> {
    // SAFETY: no pointer.
    check(unsafe { proxy_set_tick_period_milliseconds(period.as_millis() as u32) })
}

/// The whole buffer; empty where there is none.
pub(crate) fn buffer(buffer: Buffer) -> Vec<u8> {
    let (mut data, mut size) = (std::ptr::null_mut(), 0);
    // SAFETY: both results outlive the call.
    let status =
        unsafe { proxy_get_buffer_bytes(buffer as u32, 0, usize::MAX, &mut data, &mut size) };
    if status == OK {
        take(data, size)
    } else {
        Vec::new()
    }
}

/// The whole map.
pub(crate) fn headers(map: Map) -> Result<Headers, Failed> {
    let (mut data, mut size) = (std::ptr::null_mut(), 0);
    // SAFETY: both results outlive the call.
    let status = unsafe { proxy_get_header_map_pairs(map as u32, &mut data, &mut size) };
    check(status)?;
    Ok(Headers::new(take(data, size)))
}

pub(crate) fn set_header(map: Map, name: &str, value: &str) -> Result<(), Failed> {
    // SAFETY: pointers and sizes are of live strings.
    check(unsafe {
        proxy_replace_header_map_value(
            map as u32,
            name.as_ptr(),
            name.len(),
            value.as_ptr(),
            value.len(),
        )
    })
}

pub(crate) fn remove_header(map: Map, name: &str) -> Result<(), Failed> {
    // SAFETY: pointer and size are of one live string.
    check(unsafe { proxy_remove_header_map_value(map as u32, name.as_ptr(), name.len()) })
}

/// A property by its path, whose parts are separated by NUL; none where it is absent.
pub(crate) fn property(path: &str) -> Option<Vec<u8>> {
    let (mut data, mut size) = (std::ptr::null_mut(), 0);
    // SAFETY: the path and both results outlive the call.
    let status = unsafe { proxy_get_property(path.as_ptr(), path.len(), &mut data, &mut size) };
    (status == OK).then(|| take(data, size))
}

/// Puts a value into the request's filter state, as `wasm.<name>`.
pub(crate) fn set_filter_state(name: &str, value: &str) -> Result<(), Failed> {
    // SAFETY: pointers and sizes are of live strings.
    check(unsafe { proxy_set_property(name.as_ptr(), name.len(), value.as_ptr(), value.len()) })
}

/// The value and its compare-and-swap number; none where the key was never written.
pub(crate) fn shared(key: &str) -> Option<(Vec<u8>, u32)> {
    let (mut data, mut size, mut cas) = (std::ptr::null_mut(), 0, 0);
    // SAFETY: the key and all results outlive the call.
    let status =
        unsafe { proxy_get_shared_data(key.as_ptr(), key.len(), &mut data, &mut size, &mut cas) };
    (status == OK).then(|| (take(data, size), cas))
}

/// Writes the key: whatever it holds, or only where nobody has written since `cas` was read. Says whether
/// it did.
pub(crate) fn set_shared(key: &str, value: &[u8], cas: Option<u32>) -> Result<bool, Failed> {
    // SAFETY: pointers and sizes are of a live string and slice.
    let status = unsafe {
        proxy_set_shared_data(
            key.as_ptr(),
            key.len(),
            value.as_ptr(),
            value.len(),
            cas.unwrap_or(0),
        )
    };
    if status == CAS_MISMATCH {
        Ok(false)
    } else {
        check(status).map(|()| true)
    }
}

/// Makes the calls that follow act in another context of this VM.
pub(crate) fn set_effective_context(context: u32) -> Result<(), Failed> {
    // SAFETY: no pointer.
    check(unsafe { proxy_set_effective_context(context) })
}

/// Lets the request of the present context go on, which was paused at its headers.
pub(crate) fn resume_request() -> Result<(), Failed> {
    const REQUEST: u32 = 0;
    // SAFETY: no pointer.
    check(unsafe { proxy_continue_stream(REQUEST) })
}

/// Answers the request here. `grpc_status` counts for gRPC requests only.
pub(crate) fn respond(
    code: u32,
    details: &str,
    headers: &[(&str, &str)],
    body: &str,
    grpc_status: i32,
) -> Result<(), Failed> {
    let headers = serialize(headers);
    // SAFETY: pointers and sizes are of live strings and one live vector.
    check(unsafe {
        proxy_send_local_response(
            code,
            details.as_ptr(),
            details.len(),
            body.as_ptr(),
            body.len(),
            headers.as_ptr(),
            headers.len(),
            grpc_status,
        )
    })
}

/// The ABI's form of a header map: count, sizes, then NUL-terminated names and values.
fn serialize(headers: &[(&str, &str)]) -> Vec<u8> {
    let mut bytes = (headers.len() as u32).to_le_bytes().to_vec();
    for (name, value) in headers {
        bytes.extend((name.len() as u32).to_le_bytes());
        bytes.extend((value.len() as u32).to_le_bytes());
    }
    for text in headers.iter().flat_map(|(name, value)| [name, value]) {
        bytes.extend(text.as_bytes());
        bytes.push(0);
    }
    bytes
}

pub(crate) fn define_metric(metric_type: MetricType, name: &str) -> Option<u32> {
    let mut id = 0;
    // SAFETY: the name and the result outlive the call.
    let status =
        unsafe { proxy_define_metric(metric_type as u32, name.as_ptr(), name.len(), &mut id) };
    (status == OK).then_some(id)
}

pub(crate) fn increment_metric(id: u32, offset: i64) {
    // SAFETY: no pointer. A lost count is no error.
    let _ = unsafe { proxy_increment_metric(id, offset) };
}

pub(crate) fn record_metric(id: u32, value: u64) {
    // SAFETY: no pointer. A lost gauge is no error.
    let _ = unsafe { proxy_record_metric(id, value) };
}

/// Opens a bidirectional stream to an Envoy cluster. The SDK's own call, because only it tells the SDK
/// where to deliver what comes back. It panics on a status that Envoy gives only where
/// `capability_restriction_config` forbids the call: a configuration that restricts must allow it.
pub(crate) fn open_stream(
    cluster: &str,
    (service, method): (&str, &str),
    metadata: (&str, &[u8]),
) -> Result<u32, Failed> {
    // envoy.config.core.v3.GrpcService { envoy_grpc { cluster_name } }: a bare name that happens to be
    // valid protobuf would abort the whole proxy. `Config` keeps the lengths below 128.
    let inner = cluster.len() as u8;
    let mut target = vec![0x0a, inner + 2, 0x0a, inner];
    target.extend(cluster.as_bytes());
    let target = String::from_utf8(target).map_err(|_| Failed(OK))?;
    proxy_wasm::hostcalls::open_grpc_stream(&target, service, method, vec![metadata])
        .map_err(|status| Failed(status as u32))
}

pub(crate) fn send_message(token: u32, message: &[u8]) -> Result<(), Failed> {
    // SAFETY: pointer and size are of one live slice.
    check(unsafe { proxy_grpc_send(token, message.as_ptr(), message.len(), 0) })
}

pub(crate) fn cancel_stream(token: u32) {
    // SAFETY: no pointer. A stream that is gone already is as good as cancelled.
    let _ = unsafe { proxy_grpc_cancel(token) };
}
