// SPDX-License-Identifier: Apache-2.0
#![allow(unsafe_code)] // This file and `hooks.rs` alone know Envoy's pointers.
#![allow(unreachable_pub)] // Hooks are public, and so is what they take.
//! Envoy's callbacks that are used, by hand: types and signatures as `source/extensions/dynamic_modules/abi/abi.h`
//! of Envoy 1.40 has them. What a callback gives lives until the hook returns or a setter is called, so it is copied
//! at once.

use std::ffi::c_void;
use std::ptr;

use weir_filter::headers;

/// What a hook of a request's headers returns.
pub(crate) mod headers_status {
    pub(crate) const CONTINUE: u32 = 0;
    /// Hooks of the body come.
    pub(crate) const STOP: u32 = 1;
    /// They do not until the request goes on; the caller is slowed down.
    pub(crate) const STOP_ALL_AND_WATERMARK: u32 = 4;
}

/// What a hook of a body or of trailers returns.
pub(crate) mod body_status {
    pub(crate) const CONTINUE: u32 = 0;
    /// Envoy keeps what has come.
    pub(crate) const STOP_AND_BUFFER: u32 = 1;
}

/// Levels of the log.
pub(crate) mod level {
    pub(crate) const WARN: u32 = 3;
    pub(crate) const ERROR: u32 = 4;
}

/// Envoy has this callback since 1.40, so the loader refuses the module in older ones. These would take it, but number
/// attributes otherwise: no cluster would be known, and every choice be Envoy's. Nobody calls it.
#[cfg(not(test))]
#[used]
static SINCE_1_40: unsafe extern "C" fn() = envoy_dynamic_module_callback_http_has_filter_state;

/// `envoy_dynamic_module_type_attribute_id`.
pub(crate) mod attribute {
    pub(crate) const RESPONSE_FLAGS: u32 = 17;
    pub(crate) const SOURCE_ADDRESS: u32 = 24;
    pub(crate) const CONNECTION_MTLS: u32 = 29;
    pub(crate) const URI_SAN_PEER_CERTIFICATE: u32 = 37;
    pub(crate) const UPSTREAM_ADDRESS: u32 = 41;
    pub(crate) const REQUEST_ATTEMPT_COUNT: u32 = 53;
    pub(crate) const CLUSTER_NAME: u32 = 57;
}

const RECEIVED_REQUEST_BODY: u32 = 0;
const BUFFERED_REQUEST_BODY: u32 = 1;

/// Bytes of the module's or of Envoy's.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Buffer {
    bytes: *const u8,
    length: usize,
}

/// A header of the module's or of Envoy's.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Header {
    name: Buffer,
    value: Buffer,
}

impl Buffer {
    pub(crate) const NONE: Self = Self {
        bytes: ptr::null(),
        length: 0,
    };

    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self {
            bytes: bytes.as_ptr(),
            length: bytes.len(),
        }
    }

    /// # Safety
    /// It is Envoy's, or the module's and lives, and nothing changes it while the slice is used.
    pub(crate) unsafe fn as_slice<'a>(self) -> &'a [u8] {
        if self.bytes.is_null() {
            return &[];
        }
        // SAFETY: by the contract above.
        unsafe { std::slice::from_raw_parts(self.bytes, self.length) }
    }
}

impl Header {
    fn of(name: &str, value: &[u8]) -> Self {
        Self {
            name: Buffer::of(name.as_bytes()),
            value: Buffer::of(value),
        }
    }

    fn all(headers: &[(String, String)]) -> Vec<Self> {
        let header = |(name, value): &(String, String)| Self::of(name, value.as_bytes());
        headers.iter().map(header).collect()
    }

    /// # Safety
    /// As [`Buffer::as_slice`].
    pub(crate) unsafe fn pair<'a>(&self) -> (&'a [u8], &'a [u8]) {
        // SAFETY: by the contract above.
        unsafe { (self.name.as_slice(), self.value.as_slice()) }
    }
}

/// One request in Envoy: `envoy_dynamic_module_type_http_filter_envoy_ptr`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Filter(*mut c_void);

impl Filter {
    /// # Safety
    /// Envoy has given it to a hook on this thread, and it is not used after its `destroy`.
    pub(crate) unsafe fn new(pointer: *mut c_void) -> Self {
        Self(pointer)
    }

    /// A header map, in the form that [`headers::Headers`] reads; none where there is none.
    pub(crate) fn headers(self, map: u32) -> Option<Vec<u8>> {
        // SAFETY: Envoy writes as many headers as it has said; they live until a setter is called.
        unsafe {
            let count = envoy_dynamic_module_callback_http_get_headers_size(self.0, map);
            let empty = Header {
                name: Buffer::NONE,
                value: Buffer::NONE,
            };
            let mut all = vec![empty; count];
            if !envoy_dynamic_module_callback_http_get_headers(self.0, map, all.as_mut_ptr()) {
                return None;
            }
            let pairs: Vec<_> = all.iter().map(|header| header.pair()).collect();
            Some(headers::serialize(&pairs))
        }
    }

    /// Sets a header to one value, or removes it; says whether the map was there.
    pub(crate) fn set_header(self, map: u32, name: &str, value: Option<&str>) -> bool {
        let value = value.map_or(Buffer::NONE, |value| Buffer::of(value.as_bytes()));
        // SAFETY: name and value outlive the call.
        unsafe {
            envoy_dynamic_module_callback_http_set_header(
                self.0,
                map,
                Buffer::of(name.as_bytes()),
                value,
            )
        }
    }

    /// Envoy sends the request's first attempt to this host (`ip:port`), as long as its cluster has it and it is healthy
    /// there; says whether that is an address.
    pub(crate) fn send_to(self, host: &str) -> bool {
        // SAFETY: the address outlives the call.
        unsafe {
            envoy_dynamic_module_callback_http_set_upstream_override_host(
                self.0,
                Buffer::of(host.as_bytes()),
                false,
            )
        }
    }

    /// At most so many bytes of the request's body from there on: what Envoy has kept, and in a hook of the body also
    /// what has come by it.
    pub(crate) fn body(self, from: usize, most: usize) -> Vec<u8> {
        // SAFETY: no pointer but the request's.
        let is_one =
            unsafe { envoy_dynamic_module_callback_http_received_buffered_request_body(self.0) };
        let kinds: &[u32] = match is_one {
            true => &[RECEIVED_REQUEST_BODY],
            false => &[BUFFERED_REQUEST_BODY, RECEIVED_REQUEST_BODY],
        };
        let (mut skip, mut bytes) = (from, Vec::new());
        for kind in kinds {
            self.chunks(*kind, |chunk| {
                let part = chunk.get(skip.min(chunk.len())..).unwrap_or_default();
                skip -= skip.min(chunk.len());
                let room = most.saturating_sub(bytes.len()).min(part.len());
                bytes.extend_from_slice(part.get(..room).unwrap_or_default());
            });
        }
        bytes
    }

    fn chunks(self, kind: u32, mut each: impl FnMut(&[u8])) {
        // SAFETY: Envoy writes as many chunks as it has said; they live until the body is changed.
        unsafe {
            let count = envoy_dynamic_module_callback_http_get_body_chunks_size(self.0, kind);
            let mut chunks = vec![Buffer::NONE; count];
            let to = chunks.as_mut_ptr();
            if envoy_dynamic_module_callback_http_get_body_chunks(self.0, kind, to) {
                chunks.iter().for_each(|chunk| each(chunk.as_slice()));
            }
        }
    }

    pub(crate) fn text(self, attribute: u32) -> Option<Vec<u8>> {
        let mut text = Buffer::NONE;
        // SAFETY: Envoy writes one buffer, which lives until a setter is called.
        unsafe {
            envoy_dynamic_module_callback_http_filter_get_attribute_string(
                self.0, attribute, &mut text,
            )
            .then(|| text.as_slice().to_vec())
        }
    }

    pub(crate) fn number(self, attribute: u32) -> Option<u64> {
        let mut number = 0;
        // SAFETY: Envoy writes one number.
        unsafe {
            envoy_dynamic_module_callback_http_filter_get_attribute_int(
                self.0,
                attribute,
                &mut number,
            )
        }
        .then_some(number)
    }

    pub(crate) fn is(self, attribute: u32) -> Option<bool> {
        let mut is = false;
        // SAFETY: Envoy writes one bool.
        unsafe {
            envoy_dynamic_module_callback_http_filter_get_attribute_bool(self.0, attribute, &mut is)
        }
        .then_some(is)
    }

    pub(crate) fn set_filter_state(self, name: &str, value: &str) {
        let (name, value) = (Buffer::of(name.as_bytes()), Buffer::of(value.as_bytes()));
        // SAFETY: name and value outlive the call.
        let _ = unsafe {
            envoy_dynamic_module_callback_http_set_filter_state_bytes(self.0, name, value)
        };
    }

    /// Answers the request; hooks may come before this returns.
    pub(crate) fn respond(
        self,
        status: u32,
        headers: &[(String, String)],
        body: &str,
        details: &str,
    ) {
        let headers = Header::all(headers);
        // SAFETY: all texts outlive the call.
        unsafe {
            envoy_dynamic_module_callback_http_send_response(
                self.0,
                status,
                headers.as_ptr(),
                headers.len(),
                Buffer::of(body.as_bytes()),
                Buffer::of(details.as_bytes()),
            );
        }
    }

    /// Answers the request with these headers alone, `:status` among them; hooks may come before this returns.
    pub(crate) fn respond_as_it_is(self, headers: &[(String, String)]) {
        let headers = Header::all(headers);
        // SAFETY: all texts outlive the call.
        unsafe {
            envoy_dynamic_module_callback_http_send_response_headers(
                self.0,
                headers.as_ptr(),
                headers.len(),
                true,
            );
        }
    }

    /// Lets the request go on; hooks may come before this returns.
    pub(crate) fn resume(self) {
        // SAFETY: no pointer but the request's.
        unsafe { envoy_dynamic_module_callback_http_filter_continue_decoding(self.0) }
    }

    /// A way to wake the request's thread.
    pub(crate) fn scheduler(self) -> Scheduler {
        // SAFETY: on the request's thread.
        let pointer = unsafe { envoy_dynamic_module_callback_http_filter_scheduler_new(self.0) };
        Scheduler::OfFilter(Pointer(pointer))
    }
}

/// The kind of a metric.
#[derive(Clone, Copy)]
pub(crate) enum Metric {
    /// It rises by a number.
    Counter,
    /// It is a number.
    Gauge,
}

/// One configuration in Envoy: `envoy_dynamic_module_type_http_filter_config_envoy_ptr`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Configuration(*mut c_void);

// SAFETY: what may be done with it on which thread, `Configuration::new` asks.
unsafe impl Send for Configuration {}
// SAFETY: as above.
unsafe impl Sync for Configuration {}

impl Configuration {
    /// # Safety
    /// Envoy has given it to `config_new`, and it is not used after its `config_destroy`, nor off the main thread.
    pub(crate) unsafe fn new(pointer: *mut c_void) -> Self {
        Self(pointer)
    }

    /// Makes a counter or gauge known, with labels; none where Envoy does not take it. In `config_new` only.
    pub(crate) fn define(self, is_gauge: bool, name: &str, labels: &[&str]) -> Option<usize> {
        let labels: Vec<_> = labels.iter().map(|l| Buffer::of(l.as_bytes())).collect();
        let (name, at, count) = (Buffer::of(name.as_bytes()), labels.as_ptr(), labels.len());
        let mut id = 0;
        // SAFETY: name and labels outlive the call, and Envoy writes one number.
        let result = unsafe {
            match is_gauge {
                false => envoy_dynamic_module_callback_http_filter_config_define_counter(
                    self.0, name, at, count, &mut id,
                ),
                true => envoy_dynamic_module_callback_http_filter_config_define_gauge(
                    self.0, name, at, count, &mut id,
                ),
            }
        };
        (result == 0).then_some(id)
    }

    /// A counter rises by so much, or a gauge is so much.
    pub(crate) fn change(self, kind: Metric, id: usize, labels: &[&str], by: u64) {
        let labels: Vec<_> = labels.iter().map(|l| Buffer::of(l.as_bytes())).collect();
        let (at, count) = (labels.as_ptr(), labels.len());
        // SAFETY: the labels outlive the call. A lost figure is no error.
        let _ = unsafe {
            match kind {
                Metric::Counter => {
                    envoy_dynamic_module_callback_http_filter_config_increment_counter(
                        self.0, id, at, count, by,
                    )
                }
                Metric::Gauge => envoy_dynamic_module_callback_http_filter_config_set_gauge(
                    self.0, id, at, count, by,
                ),
            }
        };
    }

    /// Opens an HTTP stream without a time-out to a cluster; hooks of it may come before this returns.
    pub(crate) fn open_stream(self, cluster: &str, headers: &[(&str, &[u8])]) -> Option<u64> {
        let headers: Vec<_> = headers.iter().map(|(n, v)| Header::of(n, v)).collect();
        let mut id = 0;
        // SAFETY: all texts outlive the call, and Envoy writes one number.
        let result = unsafe {
            envoy_dynamic_module_callback_http_filter_config_start_http_stream(
                self.0,
                &mut id,
                Buffer::of(cluster.as_bytes()),
                headers.as_ptr(),
                headers.len(),
                Buffer::NONE,
                false,
                0,
            )
        };
        (result == 0).then_some(id)
    }

    pub(crate) fn send(self, stream: u64, bytes: &[u8]) -> bool {
        let bytes = Buffer::of(bytes);
        // SAFETY: the bytes outlive the call.
        unsafe {
            envoy_dynamic_module_callback_http_filter_config_stream_send_data(
                self.0, stream, bytes, false,
            )
        }
    }

    pub(crate) fn reset(self, stream: u64) {
        // SAFETY: no pointer but the configuration's.
        unsafe {
            envoy_dynamic_module_callback_http_filter_config_reset_http_stream(self.0, stream)
        }
    }

    /// A way to wake the main thread.
    pub(crate) fn scheduler(self) -> Scheduler {
        // SAFETY: on the main thread.
        let pointer =
            unsafe { envoy_dynamic_module_callback_http_filter_config_scheduler_new(self.0) };
        Scheduler::OfConfiguration(Pointer(pointer))
    }
}

/// A scheduler of Envoy's.
pub(crate) struct Pointer(*mut c_void);

// SAFETY: schedulers are there to be used by any thread, and several at once.
unsafe impl Send for Pointer {}
// SAFETY: as above.
unsafe impl Sync for Pointer {}

/// Wakes a thread of Envoy; deleted when it is dropped.
pub(crate) enum Scheduler {
    OfFilter(Pointer),
    OfConfiguration(Pointer),
}

impl Scheduler {
    /// The `scheduled` hook comes on its thread, unless what it belongs to is gone by then.
    pub(crate) fn wake(&self) {
        // SAFETY: it lives as long as `self`.
        unsafe {
            match self {
                Self::OfFilter(Pointer(pointer)) => {
                    envoy_dynamic_module_callback_http_filter_scheduler_commit(*pointer, 0);
                }
                Self::OfConfiguration(Pointer(pointer)) => {
                    envoy_dynamic_module_callback_http_filter_config_scheduler_commit(*pointer, 0);
                }
            }
        }
    }
}

impl Drop for Scheduler {
    fn drop(&mut self) {
        // SAFETY: nobody else has it.
        unsafe {
            match self {
                Self::OfFilter(Pointer(pointer)) => {
                    envoy_dynamic_module_callback_http_filter_scheduler_delete(*pointer);
                }
                Self::OfConfiguration(Pointer(pointer)) => {
                    envoy_dynamic_module_callback_http_filter_config_scheduler_delete(*pointer);
                }
            }
        }
    }
}

/// Writes a line of Envoy's log.
pub(crate) fn log(level: u32, message: &str) {
    // SAFETY: the message outlives the call.
    unsafe { envoy_dynamic_module_callback_log(level, Buffer::of(message.as_bytes())) }
}

/// Whether Envoy only looks at its configuration. On the main thread.
pub(crate) fn is_validation_mode() -> bool {
    // SAFETY: no pointer.
    unsafe { envoy_dynamic_module_callback_is_validation_mode() }
}

#[rustfmt::skip]
unsafe extern "C" {
    fn envoy_dynamic_module_callback_log(level: u32, message: Buffer);
    fn envoy_dynamic_module_callback_is_validation_mode() -> bool;
    #[cfg(not(test))]
    fn envoy_dynamic_module_callback_http_has_filter_state();

    fn envoy_dynamic_module_callback_http_get_headers_size(filter: *mut c_void, map: u32) -> usize;
    fn envoy_dynamic_module_callback_http_get_headers(filter: *mut c_void, map: u32, headers: *mut Header) -> bool;
    fn envoy_dynamic_module_callback_http_set_header(filter: *mut c_void, map: u32, name: Buffer, value: Buffer) -> bool;
    fn envoy_dynamic_module_callback_http_set_upstream_override_host(filter: *mut c_void, host: Buffer, is_strict: bool) -> bool;
    fn envoy_dynamic_module_callback_http_received_buffered_request_body(filter: *mut c_void) -> bool;
    fn envoy_dynamic_module_callback_http_get_body_chunks_size(filter: *mut c_void, kind: u32) -> usize;
    fn envoy_dynamic_module_callback_http_get_body_chunks(filter: *mut c_void, kind: u32, chunks: *mut Buffer) -> bool;
    fn envoy_dynamic_module_callback_http_filter_get_attribute_string(filter: *mut c_void, id: u32, text: *mut Buffer) -> bool;
    fn envoy_dynamic_module_callback_http_filter_get_attribute_int(filter: *mut c_void, id: u32, number: *mut u64) -> bool;
    fn envoy_dynamic_module_callback_http_filter_get_attribute_bool(filter: *mut c_void, id: u32, is: *mut bool) -> bool;
    fn envoy_dynamic_module_callback_http_set_filter_state_bytes(filter: *mut c_void, name: Buffer, value: Buffer) -> bool;
    fn envoy_dynamic_module_callback_http_send_response(filter: *mut c_void, status: u32, headers: *const Header, count: usize, body: Buffer, details: Buffer);
    fn envoy_dynamic_module_callback_http_send_response_headers(filter: *mut c_void, headers: *const Header, count: usize, ends: bool);
    fn envoy_dynamic_module_callback_http_filter_continue_decoding(filter: *mut c_void);
    fn envoy_dynamic_module_callback_http_filter_scheduler_new(filter: *mut c_void) -> *mut c_void;
    fn envoy_dynamic_module_callback_http_filter_scheduler_commit(scheduler: *mut c_void, event: u64);
    fn envoy_dynamic_module_callback_http_filter_scheduler_delete(scheduler: *mut c_void);

    fn envoy_dynamic_module_callback_http_filter_config_define_counter(config: *mut c_void, name: Buffer, labels: *const Buffer, count: usize, id: *mut usize) -> u32;
    fn envoy_dynamic_module_callback_http_filter_config_define_gauge(config: *mut c_void, name: Buffer, labels: *const Buffer, count: usize, id: *mut usize) -> u32;
    fn envoy_dynamic_module_callback_http_filter_config_increment_counter(config: *mut c_void, id: usize, labels: *const Buffer, count: usize, by: u64) -> u32;
    fn envoy_dynamic_module_callback_http_filter_config_set_gauge(config: *mut c_void, id: usize, labels: *const Buffer, count: usize, to: u64) -> u32;
    fn envoy_dynamic_module_callback_http_filter_config_start_http_stream(config: *mut c_void, id: *mut u64, cluster: Buffer, headers: *const Header, count: usize, body: Buffer, ends: bool, timeout_ms: u64) -> u32;
    fn envoy_dynamic_module_callback_http_filter_config_stream_send_data(config: *mut c_void, stream: u64, bytes: Buffer, ends: bool) -> bool;
    fn envoy_dynamic_module_callback_http_filter_config_reset_http_stream(config: *mut c_void, stream: u64);
    fn envoy_dynamic_module_callback_http_filter_config_scheduler_new(config: *mut c_void) -> *mut c_void;
    fn envoy_dynamic_module_callback_http_filter_config_scheduler_commit(scheduler: *mut c_void, event: u64);
    fn envoy_dynamic_module_callback_http_filter_config_scheduler_delete(scheduler: *mut c_void);
}
