// SPDX-License-Identifier: Apache-2.0
//! Envoy's callbacks, as the played one answers them: by what weir-testkit knows of the context whose number the
//! module was given for a pointer.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::c_void;
use std::rc::Rc;

use weir_native::hooks;
use weir_testkit::{Calls, Direction, GrpcRequest, Headers, LocalReply, LogLevel};

/// As `abi.h` has them.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Buffer(*const u8, usize);

#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Header(Buffer, Buffer);

impl Buffer {
    pub(super) fn of(bytes: &[u8]) -> Self {
        Self(bytes.as_ptr(), bytes.len())
    }

    pub(super) fn into_hooks(self) -> hooks::Buffer {
        // SAFETY: both are as `abi.h` has it.
        unsafe { std::mem::transmute::<Self, hooks::Buffer>(self) }
    }

    fn read(self) -> Vec<u8> {
        if self.0.is_null() {
            return Vec::new();
        }
        // SAFETY: the module's, for as long as the call.
        unsafe { std::slice::from_raw_parts(self.0, self.1) }.to_vec()
    }

    fn text(self) -> String {
        String::from_utf8_lossy(&self.read()).into_owned()
    }
}

impl Header {
    pub(super) fn of(name: &[u8], value: &[u8]) -> Self {
        Self(Buffer::of(name), Buffer::of(value))
    }
}

/// A number in a pointer's place: the module only hands it back.
pub(super) fn pointer(number: u32) -> *mut c_void {
    std::ptr::without_provenance_mut(number as usize)
}

fn number(pointer: *mut c_void) -> u32 {
    pointer.addr() as u32
}

/// Under this filter state is the host that the module has told Envoy by a call.
pub(crate) const OVERRIDE_HOST: &str = "override host";
/// The callback that opens a stream.
pub(crate) const OPEN_STREAM: &str = "http_filter_config_start_http_stream";

/// What callbacks leave with a thread.
#[derive(Default)]
pub(super) struct Own {
    /// Requests by which it is to be woken.
    waiting: RefCell<BTreeSet<u32>>,
    /// The numbers of the configurations by which it has opened streams, and the root that these are of.
    streams: RefCell<BTreeMap<u32, u32>>,
    root: Cell<u32>,
    /// Streams that the module has reset.
    reset: RefCell<Vec<u32>>,
}

impl Own {
    pub(super) fn waiting(&self) -> BTreeSet<u32> {
        self.waiting.borrow().clone()
    }

    /// Streams that it opens are this root's from now on.
    pub(super) fn opens_for(&self, root: u32) {
        self.root.set(root);
    }

    /// Those that it has opened.
    pub(super) fn streams(&self) -> Vec<u32> {
        self.streams.borrow().keys().copied().collect()
    }

    pub(super) fn forget(&self, stream: u32) {
        self.streams.borrow_mut().remove(&stream);
    }

    /// Those that the module has reset since this was asked last.
    pub(super) fn take_reset(&self) -> Vec<u32> {
        self.reset.take()
    }

    /// By which configuration a stream was opened.
    pub(super) fn opened(&self, token: u32) -> Option<u32> {
        self.streams.borrow().get(&token).copied()
    }
}

/// The host and the thread of the hook that runs.
struct Host {
    calls: *mut Calls<'static>,
    own: Rc<Own>,
}

thread_local! {
    static HOST: RefCell<Option<Host>> = const { RefCell::new(None) };
    /// What callbacks have handed out, which lives as long as the hook.
    static GIVEN: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// Calls a hook; what it calls back is answered by this host.
pub(super) fn within<T>(calls: &mut Calls<'_>, own: &Rc<Own>, hook: impl FnOnce() -> T) -> T {
    struct Back(Option<Host>, Vec<Vec<u8>>);
    impl Drop for Back {
        fn drop(&mut self) {
            HOST.replace(self.0.take());
            GIVEN.replace(std::mem::take(&mut self.1));
        }
    }
    let host = Host {
        calls: (&raw mut *calls).cast(),
        own: Rc::clone(own),
    };
    let _back = Back(HOST.replace(Some(host)), GIVEN.take());
    hook()
}

/// Answers a callback.
fn host<T>(name: &'static str, answer: impl FnOnce(&mut Calls<'_>) -> T) -> T {
    let calls = HOST.with_borrow(|host| host.as_ref().map(|host| host.calls));
    let calls = calls.expect("callbacks come from within hooks");
    // SAFETY: `within` has it for as long as the hook, and one callback at a time uses it.
    let calls = unsafe { &mut *calls };
    calls.count(name);
    answer(calls)
}

fn own() -> Option<Rc<Own>> {
    HOST.with_borrow(|host| host.as_ref().map(|host| Rc::clone(&host.own)))
}

/// Bytes that the module may read until the hook returns.
fn give(bytes: Vec<u8>) -> Buffer {
    let given = Buffer::of(&bytes);
    GIVEN.with_borrow_mut(|all| all.push(bytes));
    given
}

fn direction(map: u32) -> Direction {
    match map {
        0 => Direction::Request,
        2 => Direction::Response,
        other => panic!("no map has the number {other}"),
    }
}

/// The property that an attribute is in the other shell.
fn property(attribute: u32) -> [&'static str; 2] {
    match attribute {
        17 => ["response", "flags"],
        24 => ["source", "address"],
        29 => ["connection", "mtls"],
        37 => ["connection", "uri_san_peer_certificate"],
        41 => ["upstream", "address"],
        53 => ["upstream", "request_attempt_count"],
        57 => ["xds", "cluster_name"],
        other => panic!("the module reads no attribute {other}"),
    }
}

fn read(headers: *const Header, count: usize) -> Headers {
    (0..count).fold(Headers::new(), |read, at| {
        // SAFETY: the module's, for as long as the call.
        let Header(name, value) = unsafe { headers.add(at).read() };
        read.with(&name.text(), value.read())
    })
}

/// A scheduler: by which request it wakes which thread; by none where it is of a configuration.
struct Scheduler(Option<(Rc<Own>, u32)>);

fn scheduler(request: Option<u32>) -> *mut c_void {
    let by = own().zip(request);
    if let Some((own, request)) = &by {
        own.waiting.borrow_mut().insert(*request);
    }
    Box::into_raw(Box::new(Scheduler(by))).cast()
}

fn delete(scheduler: *mut c_void) {
    // SAFETY: `scheduler` made it, and nobody uses it any more.
    let scheduler = unsafe { Box::from_raw(scheduler.cast::<Scheduler>()) };
    if let Scheduler(Some((own, request))) = *scheduler {
        own.waiting.borrow_mut().remove(&request);
    }
}

/// A metric by a number; what it is the host is told by the process, not by this.
fn define(name: &'static str, id: *mut usize) -> u32 {
    host(name, |_| ());
    // SAFETY: room for one.
    unsafe { id.write(0) };
    0
}

macro_rules! callbacks {
    ($(fn $name:ident($($argument:ident: $kind:ty),*) $(-> $result:ty)? $body:block)*) => {
        $(
            #[unsafe(no_mangle)]
            extern "C" fn $name($($argument: $kind),*) $(-> $result)? $body
        )*
    };
}

callbacks! {
    fn envoy_dynamic_module_callback_log(level: u32, message: Buffer) {
        let level = match level {
            3 => LogLevel::Warn,
            _ => LogLevel::Error,
        };
        host("log", |calls| calls.log(level, &message.text()));
    }
    fn envoy_dynamic_module_callback_is_validation_mode() -> bool { false }
    fn envoy_dynamic_module_callback_http_has_filter_state() { panic!("nobody calls it") }

    fn envoy_dynamic_module_callback_http_get_headers_size(r: *mut c_void, which: u32) -> usize {
        let headers = |calls: &mut Calls<'_>| calls.headers(number(r), direction(which));
        host("http_get_headers_size", headers).map_or(0, |headers| headers.len())
    }
    fn envoy_dynamic_module_callback_http_get_headers(r: *mut c_void, which: u32, to: *mut Header) -> bool {
        let headers = |calls: &mut Calls<'_>| calls.headers(number(r), direction(which));
        let Some(headers) = host("http_get_headers", headers) else { return false };
        for (at, (name, value)) in headers.iter().enumerate() {
            let header = Header(give(name.into()), give(value.into()));
            // SAFETY: the module made room for as many.
            unsafe { to.add(at).write(header) };
        }
        true
    }
    fn envoy_dynamic_module_callback_http_set_header(r: *mut c_void, which: u32, name: Buffer, value: Buffer) -> bool {
        let bytes = (!value.0.is_null()).then(|| value.read());
        host("http_set_header", |calls| {
            calls.set_header(number(r), direction(which), &name.text(), bytes.as_deref())
        })
    }
    fn envoy_dynamic_module_callback_http_set_upstream_override_host(r: *mut c_void, address: Buffer, _is_strict: bool) -> bool {
        host("http_set_upstream_override_host", |calls| calls.set_filter_state(number(r), OVERRIDE_HOST, &address.read()));
        true
    }
    fn envoy_dynamic_module_callback_http_received_buffered_request_body(_r: *mut c_void) -> bool {
        // What has come and what was kept are one here.
        host("http_received_buffered_request_body", |_| true)
    }
    fn envoy_dynamic_module_callback_http_get_body_chunks_size(_r: *mut c_void, _kind: u32) -> usize {
        host("http_get_body_chunks_size", |_| 1)
    }
    fn envoy_dynamic_module_callback_http_get_body_chunks(r: *mut c_void, _kind: u32, to: *mut Buffer) -> bool {
        let body = give(host("http_get_body_chunks", |calls| calls.body(number(r))));
        // SAFETY: the module made room for one.
        unsafe { to.write(body) };
        true
    }
    fn envoy_dynamic_module_callback_http_filter_get_attribute_string(r: *mut c_void, id: u32, to: *mut Buffer) -> bool {
        let text = host("http_filter_get_attribute_string", |calls| calls.property(number(r), &property(id)));
        let Some(text) = text else { return false };
        // SAFETY: room for one.
        unsafe { to.write(give(text)) };
        true
    }
    fn envoy_dynamic_module_callback_http_filter_get_attribute_int(r: *mut c_void, id: u32, to: *mut u64) -> bool {
        let bytes = host("http_filter_get_attribute_int", |calls| calls.property(number(r), &property(id)));
        let Some(bytes) = bytes.and_then(|bytes| bytes.first_chunk::<8>().copied()) else { return false };
        // SAFETY: room for one.
        unsafe { to.write(u64::from_le_bytes(bytes)) };
        true
    }
    fn envoy_dynamic_module_callback_http_filter_get_attribute_bool(r: *mut c_void, id: u32, to: *mut bool) -> bool {
        let byte = host("http_filter_get_attribute_bool", |calls| calls.property(number(r), &property(id)));
        let Some(byte) = byte.and_then(|bytes| bytes.first().copied()) else { return false };
        // SAFETY: room for one.
        unsafe { to.write(byte != 0) };
        true
    }
    fn envoy_dynamic_module_callback_http_set_filter_state_bytes(r: *mut c_void, name: Buffer, value: Buffer) -> bool {
        let name = name.text();
        // Access logs name what the other shell sets so.
        let name = name.strip_prefix("wasm.").unwrap_or(&name);
        host("http_set_filter_state_bytes", |calls| calls.set_filter_state(number(r), name, &value.read()));
        true
    }
    fn envoy_dynamic_module_callback_http_send_response(r: *mut c_void, status: u32, headers: *const Header, count: usize, body: Buffer, details: Buffer) {
        let reply = LocalReply {
            status,
            headers: read(headers, count),
            body: body.read(),
            // So Envoy says to callers by gRPC.
            grpc_status: Some(0),
            details: details.text(),
        };
        host("http_send_response", |calls| calls.reply(number(r), reply));
    }
    fn envoy_dynamic_module_callback_http_send_response_headers(r: *mut c_void, headers: *const Header, count: usize, _ends: bool) {
        let headers = read(headers, count);
        let number_of = |name| headers.get(name).and_then(|value| value.parse().ok());
        let own = [":status", "content-type", "grpc-status", "grpc-message"];
        let more = headers.iter().filter(|(name, _)| !own.contains(name));
        let reply = LocalReply {
            status: number_of(":status").unwrap_or_default(),
            headers: more.fold(Headers::new(), |all, (name, value)| all.with(name, value)),
            body: headers.get("grpc-message").unwrap_or_default().into_bytes(),
            grpc_status: number_of("grpc-status"),
            details: String::new(),
        };
        host("http_send_response_headers", |calls| calls.reply(number(r), reply));
    }
    fn envoy_dynamic_module_callback_http_filter_continue_decoding(r: *mut c_void) {
        host("http_filter_continue_decoding", |calls| calls.resume(number(r)));
    }
    fn envoy_dynamic_module_callback_http_filter_scheduler_new(r: *mut c_void) -> *mut c_void {
        host("http_filter_scheduler_new", |_| scheduler(Some(number(r))))
    }
    fn envoy_dynamic_module_callback_http_filter_scheduler_commit(_scheduler: *mut c_void, _event: u64) {}
    fn envoy_dynamic_module_callback_http_filter_scheduler_delete(scheduler: *mut c_void) { delete(scheduler) }

    fn envoy_dynamic_module_callback_http_filter_config_scheduler_new(_c: *mut c_void) -> *mut c_void {
        scheduler(None)
    }
    fn envoy_dynamic_module_callback_http_filter_config_scheduler_commit(_scheduler: *mut c_void, _event: u64) {}
    fn envoy_dynamic_module_callback_http_filter_config_scheduler_delete(scheduler: *mut c_void) { delete(scheduler) }

    fn envoy_dynamic_module_callback_http_filter_config_define_counter(_c: *mut c_void, _name: Buffer, _labels: *const Buffer, _count: usize, id: *mut usize) -> u32 {
        define("http_filter_config_define_counter", id)
    }
    fn envoy_dynamic_module_callback_http_filter_config_define_gauge(_c: *mut c_void, _name: Buffer, _labels: *const Buffer, _count: usize, id: *mut usize) -> u32 {
        define("http_filter_config_define_gauge", id)
    }
    fn envoy_dynamic_module_callback_http_filter_config_increment_counter(_c: *mut c_void, _id: usize, _labels: *const Buffer, _count: usize, _by: u64) -> u32 {
        host("http_filter_config_increment_counter", |_| 0)
    }
    fn envoy_dynamic_module_callback_http_filter_config_set_gauge(_c: *mut c_void, _id: usize, _labels: *const Buffer, _count: usize, _to: u64) -> u32 {
        host("http_filter_config_set_gauge", |_| 0)
    }
    fn envoy_dynamic_module_callback_http_filter_config_start_http_stream(c: *mut c_void, id: *mut u64, cluster: Buffer, headers: *const Header, count: usize, _body: Buffer, _ends: bool, _timeout: u64) -> u32 {
        const NO_CLUSTER: u32 = 2;
        let headers = read(headers, count);
        let path = headers.get(":path").unwrap_or_default();
        let mut path = path.trim_start_matches('/').split('/').map(str::to_owned);
        let metadata = headers.iter().filter(|(name, _)| !name.starts_with(':') && !["content-type", "te"].contains(name));
        let request = GrpcRequest {
            cluster: cluster.text(),
            service: path.next().unwrap_or_default(),
            method: path.next().unwrap_or_default(),
            initial_metadata: metadata.fold(Headers::new(), |all, (name, value)| all.with(name, value)),
            timeout: std::time::Duration::ZERO,
        };
        let Some(own) = own() else { return NO_CLUSTER };
        let open = |calls: &mut Calls<'_>| calls.open_stream(own.root.get(), request);
        let Some(token) = host(OPEN_STREAM, open) else { return NO_CLUSTER };
        own.streams.borrow_mut().insert(token, number(c));
        // SAFETY: room for one.
        unsafe { id.write(token.into()) };
        0
    }
    fn envoy_dynamic_module_callback_http_filter_config_stream_send_data(_c: *mut c_void, stream: u64, bytes: Buffer, _ends: bool) -> bool {
        /// Of a message: whether it is compressed, and its length.
        const FRAME: usize = 5;
        let message = bytes.read().split_off(FRAME);
        host("http_filter_config_stream_send_data", |calls| calls.send(stream as u32, message))
    }
    fn envoy_dynamic_module_callback_http_filter_config_reset_http_stream(_c: *mut c_void, stream: u64) {
        host("http_filter_config_reset_http_stream", |_| ());
        if let Some(own) = own() {
            own.reset.borrow_mut().push(stream as u32);
        }
    }
}
