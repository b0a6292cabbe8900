// SPDX-License-Identifier: Apache-2.0
#![allow(unsafe_code)] // The host's functions take raw pointers, and this file alone calls them.
//! The functions that a host of proxy-wasm (ABI 0.2.1) has for the filter.
//!
//! They are called here, and not by the SDK, because that panics on statuses that it does not expect, and a panic is a
//! dead VM with every request in it. Here every status but success is an error or an absence.

use std::cell::Cell;
use std::time::Duration;

use crate::headers::{self, Headers};
use crate::host::{
    Change, Failed, Host, LogLevel, Map, MetricType, Number, RequestHost, Response, Text,
};

const OK: u32 = 0;
const CAS_MISMATCH: u32 = 8;
/// Bytes of headers whose memory is kept: those of nearly all requests.
const MOST_KEPT: usize = 16_384;
/// Buffers that the host holds for the current call.
const REQUEST_BODY: u32 = 0;
const GRPC_MESSAGE: u32 = 5;
const PLUGIN_CONFIGURATION: u32 = 7;

/// Envoy, or another host of proxy-wasm: as a VM, and for the request of the present context.
#[derive(Clone, Copy)]
pub(crate) struct ProxyWasm;

impl Host for ProxyWasm {
    type Value = Vec<u8>;

    fn log(&self, level: LogLevel, message: &str) {
        // SAFETY: pointer and size are of one live string. A lost log line is no error.
        let _ = unsafe { proxy_log(level as u32, message.as_ptr(), message.len()) };
    }

    fn now(&self) -> Duration {
        const MONOTONIC: u32 = 1;
        let mut time = 0;
        // SAFETY: `time` outlives the call.
        let _ = unsafe { clock_time_get(MONOTONIC, 1, &mut time) };
        Duration::from_nanos(time)
    }

    fn hour(&self) -> u64 {
        let mut time = 0;
        // SAFETY: `time` outlives the call.
        let _ = unsafe { proxy_get_current_time_nanoseconds(&mut time) };
        time / 3_600_000_000_000
    }

    fn zone(&self) -> String {
        let zone = property("xds\0node\0locality\0zone").unwrap_or_default();
        String::from_utf8_lossy(&zone).into_owned()
    }

    fn random(&self) -> u64 {
        let mut bytes = [0; 8];
        // SAFETY: pointer and size are of one live array.
        let _ = unsafe { random_get(bytes.as_mut_ptr(), bytes.len()) };
        u64::from_le_bytes(bytes)
    }

    fn shared(&self, key: &str) -> Option<(Vec<u8>, u32)> {
        let mut cas = 0;
        // SAFETY: the key and all results outlive the call.
        let value = given(|value, size| unsafe {
            proxy_get_shared_data(key.as_ptr(), key.len(), value, size, &mut cas)
        });
        Some((value.ok()?, cas))
    }

    fn set_shared(&self, key: &str, value: &[u8], cas: Option<u32>) -> Result<bool, Failed> {
        let cas = cas.unwrap_or(0);
        // SAFETY: pointers and sizes are of a live string and slice.
        let status = unsafe {
            proxy_set_shared_data(key.as_ptr(), key.len(), value.as_ptr(), value.len(), cas)
        };
        match status {
            CAS_MISMATCH => Ok(false),
            status => check(status).map(|()| true),
        }
    }

    /// Envoy turns the label's part of the name into a label by the `stats_tags` of its bootstrap
    /// (README.md, For operators).
    fn define_metric(
        &self,
        metric_type: MetricType,
        name: &str,
        label: Option<(&str, &str)>,
    ) -> Option<u32> {
        let label = label.map(|(label, value)| format!(";.;{label}=.={value};.;"));
        let name = [name, label.as_deref().unwrap_or_default()].concat();
        let (metric_type, mut id) = (metric_type as u32, 0);
        // SAFETY: the name and the result outlive the call.
        let status =
            unsafe { proxy_define_metric(metric_type, name.as_ptr(), name.len(), &mut id) };
        (status == OK).then_some(id)
    }

    fn change_metric(&self, id: u32, change: Change) {
        // SAFETY: no pointer. A lost figure is no error.
        let _ = unsafe {
            match change {
                Change::By(offset) => proxy_increment_metric(id, offset),
                Change::To(value) => proxy_record_metric(id, value),
            }
        };
    }

    fn metric(&self, id: u32) -> Option<u64> {
        let mut value = 0;
        // SAFETY: `value` outlives the call.
        let status = unsafe { proxy_get_metric(id, &mut value) };
        (status == OK).then_some(value)
    }

    fn open_stream(
        &self,
        cluster: &str,
        (service, method): (&str, &str),
        metadata: (&str, &[u8]),
    ) -> Result<u32, Failed> {
        // envoy.config.core.v3.GrpcService { envoy_grpc { cluster_name } }: a bare name that happens to be
        // valid protobuf would abort the whole proxy. `Config` keeps the lengths below 128.
        let inner = cluster.len() as u8;
        let mut target = vec![0x0a, inner + 2, 0x0a, inner];
        target.extend(cluster.as_bytes());
        let metadata = headers::serialize(&[metadata]);
        let mut token = 0;
        // SAFETY: pointers and sizes are of live strings and vectors, and the result outlives the call.
        let status = unsafe {
            proxy_grpc_stream(
                target.as_ptr(),
                target.len(),
                service.as_ptr(),
                service.len(),
                method.as_ptr(),
                method.len(),
                metadata.as_ptr(),
                metadata.len(),
                &mut token,
            )
        };
        check(status).map(|()| token)
    }

    fn send_message(&self, token: u32, message: &[u8]) -> Result<(), Failed> {
        // SAFETY: pointer and size are of one live slice.
        check(unsafe { proxy_grpc_send(token, message.as_ptr(), message.len(), 0) })
    }

    fn cancel_stream(&self, token: u32) {
        // SAFETY: no pointer. A stream that is gone already is as good as cancelled.
        let _ = unsafe { proxy_grpc_cancel(token) };
    }
}

impl RequestHost for ProxyWasm {
    fn headers(&self, map: Map) -> Result<Headers, Failed> {
        // SAFETY: both results outlive the call.
        let pairs =
            given(|pairs, size| unsafe { proxy_get_header_map_pairs(map as u32, pairs, size) });
        pairs.map(Headers::new)
    }

    fn body(&self, from: usize, most: usize) -> Result<Vec<u8>, Failed> {
        // SAFETY: both results outlive the call.
        given(|data, size| unsafe { proxy_get_buffer_bytes(REQUEST_BODY, from, most, data, size) })
    }

    fn set_header(&self, map: Map, name: &str, value: Option<&str>) -> Result<(), Failed> {
        let (map, at, size) = (map as u32, name.as_ptr(), name.len());
        // SAFETY: pointers and sizes are of live strings.
        check(unsafe {
            match value {
                Some(value) => {
                    proxy_replace_header_map_value(map, at, size, value.as_ptr(), value.len())
                }
                None => proxy_remove_header_map_value(map, at, size),
            }
        })
    }

    fn text<T>(&self, text: Text, read: impl FnOnce(&[u8]) -> T) -> Option<T> {
        let value = property(match text {
            Text::Cluster => "xds\0cluster_name",
            Text::Caller => "source\0address",
            Text::CallerUri => "connection\0uri_san_peer_certificate",
            Text::Upstream => "upstream\0address",
        })?;
        let said = read(&value);
        OF_TEXTS.with(|spare| spare.give(value));
        Some(said)
    }

    fn number(&self, number: Number) -> Option<u64> {
        let bytes = property(match number {
            Number::MutualTls => {
                return property("connection\0mtls")?
                    .first()
                    .copied()
                    .map(u64::from);
            }
            Number::Attempts => "upstream\0request_attempt_count",
            Number::ResponseFlags => "response\0flags",
        })?;
        Some(u64::from_le_bytes(bytes.first_chunk::<8>().copied()?))
    }

    /// As `wasm.<name>`.
    fn set_filter_state(&self, name: &str, value: &str) {
        // SAFETY: pointers and sizes are of live strings.
        let _ =
            unsafe { proxy_set_property(name.as_ptr(), name.len(), value.as_ptr(), value.len()) };
    }

    fn respond(&self, response: &Response) -> Result<(), Failed> {
        let (details, body) = (response.details, response.body.as_str());
        let headers = headers::serialize(&response.headers);
        // SAFETY: pointers and sizes are of live strings and one live vector.
        check(unsafe {
            proxy_send_local_response(
                response.status,
                details.as_ptr(),
                details.len(),
                body.as_ptr(),
                body.len(),
                headers.as_ptr(),
                headers.len(),
                response.grpc_status,
            )
        })
    }

    fn resume(&self) -> Result<(), Failed> {
        const REQUEST: u32 = 0;
        // SAFETY: no pointer.
        check(unsafe { proxy_continue_stream(REQUEST) })
    }
}

fn check(status: u32) -> Result<(), Failed> {
    match status {
        OK => Ok(()),
        status => Err(Failed(status)),
    }
}

thread_local! {
    /// Bytes of the memory that the host was lent last: it asks for it within a call, and fills it before that returns.
    static LENT: Cell<usize> = const { Cell::new(0) };
    /// Memory of the last text that was read, for the next one: a request reads three, and to allocate costs more.
    static OF_TEXTS: Spare = const { Spare(Cell::new(Vec::new())) };
    /// The same of headers, which are kept while texts are read.
    static OF_HEADERS: Spare = const { Spare(Cell::new(Vec::new())) };
}

/// Memory that nobody needs now.
struct Spare(Cell<Vec<u8>>);

impl Spare {
    /// None where it is too small.
    fn take(&self, size: usize) -> Option<Vec<u8>> {
        let memory = self.0.take();
        if memory.capacity() >= size {
            return Some(memory);
        }
        self.0.set(memory);
        None
    }

    /// Keeps the larger one. Not inlined, so that there is one of it.
    #[inline(never)]
    fn give(&self, memory: Vec<u8>) {
        let spare = self.0.take();
        let is_larger = (spare.capacity()..=MOST_KEPT).contains(&memory.capacity());
        self.0.set(if is_larger { memory } else { spare });
    }
}

/// Headers that are not needed any more leave their memory to those that are read next.
impl Drop for Headers {
    fn drop(&mut self) {
        OF_HEADERS.with(|spare| spare.give(self.take_bytes()));
    }
}

/// Memory of so many bytes for the host, which the call that it is asked for in finds as [`given`].
pub(crate) fn lend(size: usize) -> *mut u8 {
    let spare = OF_TEXTS.with(|spare| spare.take(size));
    let spare = spare.or_else(|| OF_HEADERS.with(|spare| spare.take(size)));
    let memory = spare.unwrap_or_else(|| Vec::with_capacity(size));
    let (at, _, capacity) = memory.into_raw_parts();
    LENT.set(capacity);
    at
}

/// What the host hands over in memory that it was lent; nothing where it has asked for none.
fn given(call: impl FnOnce(*mut *mut u8, *mut usize) -> u32) -> Result<Vec<u8>, Failed> {
    let (mut data, mut size) = (std::ptr::null_mut(), 0);
    check(call(&mut data, &mut size))?;
    if data.is_null() {
        return Ok(Vec::new());
    }
    // SAFETY: the host got `data` in this call by `lend`, which tells its capacity, has filled it and gives it up.
    Ok(unsafe { Vec::from_raw_parts(data, size, LENT.get()) })
}

/// The whole buffer; empty where there is none.
fn buffer(buffer: u32) -> Vec<u8> {
    // SAFETY: both results outlive the call.
    let bytes =
        given(|data, size| unsafe { proxy_get_buffer_bytes(buffer, 0, usize::MAX, data, size) });
    bytes.unwrap_or_default()
}

/// A property by its path, whose parts are separated by NUL; none where it is absent.
fn property(path: &str) -> Option<Vec<u8>> {
    // SAFETY: the path and both results outlive the call.
    let value =
        given(|value, size| unsafe { proxy_get_property(path.as_ptr(), path.len(), value, size) });
    value.ok()
}

/// What the configuration of the root that is being configured says.
pub(crate) fn configuration() -> Vec<u8> {
    buffer(PLUGIN_CONFIGURATION)
}

/// The message that is being received by a stream.
pub(crate) fn message() -> Vec<u8> {
    buffer(GRPC_MESSAGE)
}

/// The name that the proxy was given.
pub(crate) fn node() -> String {
    let id = property("xds\0node\0id").unwrap_or_default();
    String::from_utf8_lossy(&id).into_owned()
}

/// Asks for ticks of the present root.
pub(crate) fn tick_every(period: Duration) -> Result<(), Failed> {
    // SAFETY: no pointer.
    check(unsafe { proxy_set_tick_period_milliseconds(period.as_millis() as u32) })
}

/// Makes the calls that follow act in another context of this VM.
pub(crate) fn select(context: u32) -> Result<(), Failed> {
    // SAFETY: no pointer.
    check(unsafe { proxy_set_effective_context(context) })
}

/// Where a text of the module is.
type In = *const u8;
/// Where the host puts where it has put something.
type Out = *mut *mut u8;
type OutSize = *mut usize;

#[link(wasm_import_module = "env")]
unsafe extern "C" {
    fn proxy_log(level: u32, message: In, size: usize) -> u32;
    fn proxy_get_current_time_nanoseconds(time: *mut u64) -> u32;
    fn proxy_set_tick_period_milliseconds(period: u32) -> u32;
    fn proxy_get_buffer_bytes(id: u32, start: usize, max: usize, data: Out, size: OutSize) -> u32;
    fn proxy_get_header_map_pairs(map: u32, pairs: Out, size: OutSize) -> u32;
    fn proxy_replace_header_map_value(map: u32, key: In, ks: usize, value: In, vs: usize) -> u32;
    fn proxy_remove_header_map_value(map: u32, key: In, key_size: usize) -> u32;
    fn proxy_get_property(path: In, path_size: usize, value: Out, size: OutSize) -> u32;
    fn proxy_set_property(path: In, path_size: usize, value: In, size: usize) -> u32;
    fn proxy_get_shared_data(key: In, ks: usize, value: Out, vs: OutSize, cas: *mut u32) -> u32;
    fn proxy_set_shared_data(key: In, ks: usize, value: In, vs: usize, cas: u32) -> u32;
    fn proxy_set_effective_context(context: u32) -> u32;
    fn proxy_continue_stream(stream_type: u32) -> u32;
    fn proxy_send_local_response(
        code: u32,
        details: In,
        details_size: usize,
        body: In,
        body_size: usize,
        headers: In,
        headers_size: usize,
        grpc_status: i32,
    ) -> u32;
    fn proxy_define_metric(metric_type: u32, name: In, name_size: usize, id: *mut u32) -> u32;
    fn proxy_increment_metric(id: u32, offset: i64) -> u32;
    fn proxy_record_metric(id: u32, value: u64) -> u32;
    fn proxy_get_metric(id: u32, value: *mut u64) -> u32;
    fn proxy_grpc_stream(
        target: In,
        target_size: usize,
        service: In,
        service_size: usize,
        method: In,
        method_size: usize,
        metadata: In,
        metadata_size: usize,
        token: *mut u32,
    ) -> u32;
    fn proxy_grpc_send(token: u32, message: In, message_size: usize, end_stream: u32) -> u32;
    fn proxy_grpc_cancel(token: u32) -> u32;
}

#[link(wasm_import_module = "wasi_snapshot_preview1")]
unsafe extern "C" {
    fn clock_time_get(clock: u32, precision: u64, time: *mut u64) -> u16;
    fn random_get(buffer: *mut u8, size: usize) -> u16;
}
