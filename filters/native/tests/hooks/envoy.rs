// SPDX-License-Identifier: Apache-2.0
//! An Envoy that is played: the callbacks that the module calls, over requests and configurations of the test's.
//!
//! Like Envoy it comes back from within one of them: a request that goes on may be answered before the call returns.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::ffi::c_void;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::thread::LocalKey;

/// As `abi.h` has them.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Buffer(pub(crate) *const u8, pub(crate) usize);

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Header(pub(crate) Buffer, pub(crate) Buffer);

impl Buffer {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self(bytes.as_ptr(), bytes.len())
    }

    fn read(self) -> Vec<u8> {
        if self.0.is_null() {
            return Vec::new();
        }
        // SAFETY: the module's, for as long as the call.
        unsafe { std::slice::from_raw_parts(self.0, self.1) }.to_vec()
    }
}

type Pairs = Vec<(Vec<u8>, Vec<u8>)>;
/// What waits for a thread, by the number of a request or configuration.
pub(crate) type Queue = Arc<Mutex<VecDeque<u64>>>;

thread_local! {
    /// Of this thread.
    pub(crate) static QUEUE: Queue = Queue::default();
    /// Runs where the module reads an attribute of a request.
    pub(crate) static READ: CallBack = const { RefCell::new(None) };
    /// Runs where the module lets a request go on.
    pub(crate) static RESUMED: CallBack = const { RefCell::new(None) };
    /// Runs where the module answers one.
    pub(crate) static ANSWERED: CallBack = const { RefCell::new(None) };
}

/// What Envoy does before a callback returns.
pub(crate) type CallBack = RefCell<Option<Rc<dyn Fn(&Request)>>>;

fn call_back(with: &'static LocalKey<CallBack>, request: &Request) {
    if let Some(call) = with.with_borrow(Clone::clone) {
        call(request);
    }
}

pub(crate) struct Request {
    pub(crate) number: u64,
    pub(crate) headers: RefCell<Pairs>,
    pub(crate) answer: RefCell<Option<Pairs>>,
    pub(crate) buffered: RefCell<Vec<u8>>,
    pub(crate) received: RefCell<Vec<u8>>,
    /// The host that the module has told by a call.
    pub(crate) sent_to: RefCell<Option<Vec<u8>>>,
    /// The module has stopped it.
    pub(crate) is_paused: Cell<bool>,
    pub(crate) is_answered: Cell<bool>,
    pub(crate) is_completed: Cell<bool>,
    pub(crate) module: Cell<*const c_void>,
}

impl Request {
    /// One that has just come.
    pub(crate) fn new(headers: Pairs) -> Self {
        Self {
            number: number(),
            headers: RefCell::new(headers),
            answer: RefCell::default(),
            buffered: RefCell::default(),
            received: RefCell::default(),
            sent_to: RefCell::default(),
            is_paused: Cell::new(false),
            is_answered: Cell::new(false),
            is_completed: Cell::new(false),
            module: Cell::new(std::ptr::null()),
        }
    }
}

#[derive(Default)]
pub(crate) struct Configuration {
    pub(crate) number: u64,
    pub(crate) metrics: Mutex<Vec<String>>,
    /// Open streams.
    pub(crate) streams: Mutex<Vec<u64>>,
    pub(crate) sent: Mutex<Vec<u8>>,
}

/// Sums of metrics, by name, over all configurations.
pub(crate) static METRICS: Mutex<BTreeMap<String, i64>> = Mutex::new(BTreeMap::new());
pub(crate) static LOG: Mutex<Vec<String>> = Mutex::new(Vec::new());

struct Scheduler(Queue, u64);

fn request<'a>(pointer: *mut c_void) -> &'a Request {
    assert!(!pointer.is_null());
    // SAFETY: the test's, and the module was given it.
    unsafe { &*pointer.cast::<Request>() }
}

fn configuration<'a>(pointer: *mut c_void) -> &'a Configuration {
    assert!(!pointer.is_null());
    // SAFETY: as above.
    unsafe { &*pointer.cast::<Configuration>() }
}

fn map<T>(pointer: *mut c_void, map: u32, f: impl FnOnce(&mut Pairs) -> T) -> Option<T> {
    let request = request(pointer);
    match map {
        0 => Some(f(&mut request.headers.borrow_mut())),
        2 => request.answer.borrow_mut().as_mut().map(f),
        other => panic!("no map has the number {other}"),
    }
}

macro_rules! callbacks {
    ($(fn $name:ident($($argument:ident: $kind:ty),*) $(-> $result:ty)? $body:block)*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name($($argument: $kind),*) $(-> $result)? $body
    )*};
}

callbacks! {
    fn envoy_dynamic_module_callback_log(_level: u32, message: Buffer) {
        LOG.lock().unwrap().push(String::from_utf8(message.read()).unwrap());
    }
    fn envoy_dynamic_module_callback_is_validation_mode() -> bool { false }
    fn envoy_dynamic_module_callback_http_has_filter_state() { panic!("nobody calls it") }

    fn envoy_dynamic_module_callback_http_get_headers_size(r: *mut c_void, which: u32) -> usize {
        map(r, which, |pairs| pairs.len()).unwrap_or(0)
    }
    fn envoy_dynamic_module_callback_http_get_headers(r: *mut c_void, which: u32, to: *mut Header) -> bool {
        let write = |pairs: &mut Pairs| {
            for (at, (name, value)) in pairs.iter().enumerate() {
                // SAFETY: the module made room for as many.
                unsafe { to.add(at).write(Header(Buffer::of(name), Buffer::of(value))) };
            }
        };
        map(r, which, write).is_some()
    }
    fn envoy_dynamic_module_callback_http_set_header(r: *mut c_void, which: u32, name: Buffer, value: Buffer) -> bool {
        let set = |pairs: &mut Pairs| {
            let name = name.read();
            pairs.retain(|(known, _)| *known != name);
            if !value.0.is_null() {
                pairs.push((name, value.read()));
            }
        };
        map(r, which, set).is_some()
    }
    fn envoy_dynamic_module_callback_http_set_upstream_override_host(r: *mut c_void, host: Buffer, is_strict: bool) -> bool {
        assert!(!is_strict, "Envoy chooses where it does not have the host");
        request(r).sent_to.replace(Some(host.read()));
        true
    }
    fn envoy_dynamic_module_callback_http_received_buffered_request_body(_r: *mut c_void) -> bool { false }
    fn envoy_dynamic_module_callback_http_get_body_chunks_size(r: *mut c_void, kind: u32) -> usize {
        usize::from(!body(r, kind).borrow().is_empty())
    }
    fn envoy_dynamic_module_callback_http_get_body_chunks(r: *mut c_void, kind: u32, to: *mut Buffer) -> bool {
        let body = body(r, kind).borrow();
        if !body.is_empty() {
            // SAFETY: the module made room for one.
            unsafe { to.write(Buffer::of(&body)) };
        }
        !body.is_empty()
    }
    fn envoy_dynamic_module_callback_http_filter_get_attribute_string(r: *mut c_void, id: u32, to: *mut Buffer) -> bool {
        call_back(&READ, request(r));
        let text: &[u8] = match id {
            24 => b"127.0.0.1:4321",
            41 if request(r).answer.borrow().is_some() => b"10.0.0.1:80",
            57 => b"rules",
            _ => return false,
        };
        // SAFETY: room for one.
        unsafe { to.write(Buffer::of(text)) };
        true
    }
    fn envoy_dynamic_module_callback_http_filter_get_attribute_int(_r: *mut c_void, id: u32, to: *mut u64) -> bool {
        // SAFETY: room for one.
        unsafe { to.write(u64::from(id == 53)) };
        true
    }
    fn envoy_dynamic_module_callback_http_filter_get_attribute_bool(_r: *mut c_void, _id: u32, to: *mut bool) -> bool {
        // SAFETY: room for one.
        unsafe { to.write(false) };
        true
    }
    fn envoy_dynamic_module_callback_http_set_filter_state_bytes(r: *mut c_void, name: Buffer, value: Buffer) -> bool {
        request(r);
        let said = String::from_utf8([name.read(), value.read()].join(&b'=')).unwrap();
        let is_known = said.starts_with("wasm.weir_");
        *METRICS.lock().unwrap().entry(said).or_default() += 1;
        is_known
    }
    fn envoy_dynamic_module_callback_http_send_response(r: *mut c_void, status: u32, headers: *const Header, count: usize, _body: Buffer, _details: Buffer) {
        let status = (b":status".to_vec(), status.to_string().into_bytes());
        answer(request(r), [vec![status], pairs(headers, count)].concat());
    }
    fn envoy_dynamic_module_callback_http_send_response_headers(r: *mut c_void, headers: *const Header, count: usize, ends: bool) {
        assert!(ends);
        answer(request(r), pairs(headers, count));
    }
    fn envoy_dynamic_module_callback_http_filter_continue_decoding(r: *mut c_void) {
        let request = request(r);
        assert!(request.is_paused.replace(false), "a request that runs was resumed");
        call_back(&RESUMED, request);
    }
    fn envoy_dynamic_module_callback_http_filter_scheduler_new(r: *mut c_void) -> *mut c_void {
        scheduler(request(r).number)
    }
    fn envoy_dynamic_module_callback_http_filter_scheduler_commit(scheduler: *mut c_void, _event: u64) { commit(scheduler) }
    fn envoy_dynamic_module_callback_http_filter_scheduler_delete(scheduler: *mut c_void) { delete(scheduler) }

    fn envoy_dynamic_module_callback_http_filter_config_scheduler_new(c: *mut c_void) -> *mut c_void {
        scheduler(configuration(c).number)
    }
    fn envoy_dynamic_module_callback_http_filter_config_scheduler_commit(scheduler: *mut c_void, _event: u64) { commit(scheduler) }
    fn envoy_dynamic_module_callback_http_filter_config_scheduler_delete(scheduler: *mut c_void) { delete(scheduler) }

    fn envoy_dynamic_module_callback_http_filter_config_define_counter(c: *mut c_void, name: Buffer, _labels: *const Buffer, _count: usize, id: *mut usize) -> u32 {
        define(c, name, id)
    }
    fn envoy_dynamic_module_callback_http_filter_config_define_gauge(c: *mut c_void, name: Buffer, _labels: *const Buffer, _count: usize, id: *mut usize) -> u32 {
        define(c, name, id)
    }
    fn envoy_dynamic_module_callback_http_filter_config_increment_counter(c: *mut c_void, id: usize, _labels: *const Buffer, _count: usize, by: u64) -> u32 {
        change(c, id, |value| value + by as i64)
    }
    fn envoy_dynamic_module_callback_http_filter_config_set_gauge(c: *mut c_void, id: usize, _labels: *const Buffer, _count: usize, to: u64) -> u32 {
        change(c, id, |_| to as i64)
    }
    fn envoy_dynamic_module_callback_http_filter_config_start_http_stream(c: *mut c_void, id: *mut u64, _cluster: Buffer, _headers: *const Header, count: usize, _body: Buffer, ends: bool, _timeout: u64) -> u32 {
        assert!(count == 6 && !ends);
        let mut streams = configuration(c).streams.lock().unwrap();
        let number = number();
        streams.push(number);
        // SAFETY: room for one.
        unsafe { id.write(number) };
        0
    }
    fn envoy_dynamic_module_callback_http_filter_config_stream_send_data(c: *mut c_void, stream: u64, bytes: Buffer, _ends: bool) -> bool {
        let configuration = configuration(c);
        let is_open = configuration.streams.lock().unwrap().contains(&stream);
        *configuration.sent.lock().unwrap() = bytes.read();
        is_open
    }
    fn envoy_dynamic_module_callback_http_filter_config_reset_http_stream(c: *mut c_void, stream: u64) {
        configuration(c).streams.lock().unwrap().retain(|open| *open != stream);
    }
}

fn pairs(headers: *const Header, count: usize) -> Pairs {
    let pair = |at| {
        // SAFETY: the module's, for as long as the call.
        let Header(name, value) = unsafe { headers.add(at).read() };
        (name.read(), value.read())
    };
    (0..count).map(pair).collect()
}

fn answer(request: &Request, headers: Pairs) {
    assert!(!request.is_answered.replace(true), "answered twice");
    request.is_paused.set(false);
    *request.answer.borrow_mut() = Some(headers);
    call_back(&ANSWERED, request);
}

/// Unlike every other.
pub(crate) fn number() -> u64 {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

fn body<'a>(pointer: *mut c_void, kind: u32) -> &'a RefCell<Vec<u8>> {
    let request = request(pointer);
    match kind {
        0 => &request.received,
        1 => &request.buffered,
        other => panic!("no body has the number {other}"),
    }
}

fn scheduler(number: u64) -> *mut c_void {
    let queue = QUEUE.with(Arc::clone);
    Box::into_raw(Box::new(Scheduler(queue, number))).cast()
}

fn commit(pointer: *mut c_void) {
    // SAFETY: `scheduler` made it, and it was not deleted.
    let Scheduler(queue, number) = unsafe { &*pointer.cast::<Scheduler>() };
    queue.lock().unwrap().push_back(*number);
}

fn delete(pointer: *mut c_void) {
    // SAFETY: as above, and nobody uses it any more.
    drop(unsafe { Box::from_raw(pointer.cast::<Scheduler>()) });
}

fn define(pointer: *mut c_void, name: Buffer, id: *mut usize) -> u32 {
    let mut metrics = configuration(pointer).metrics.lock().unwrap();
    metrics.push(String::from_utf8(name.read()).unwrap());
    // SAFETY: room for one.
    unsafe { id.write(metrics.len() - 1) };
    0
}

fn change(pointer: *mut c_void, id: usize, change: impl FnOnce(i64) -> i64) -> u32 {
    let name = configuration(pointer).metrics.lock().unwrap()[id].clone();
    let mut metrics = METRICS.lock().unwrap();
    let value = metrics.entry(name).or_default();
    *value = change(*value);
    0
}
