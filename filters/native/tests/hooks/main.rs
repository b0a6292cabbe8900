// SPDX-License-Identifier: Apache-2.0
#![allow(unsafe_code)] // It plays Envoy, which speaks in pointers.
#![allow(missing_docs)]
//! The dynamic module's hooks in any order that Envoy may call them in, on three threads at once: none panics, no
//! request is left behind, what is counted comes back to zero.
//!
//! Envoy is played here; the real one loads the module in weir-control's tests. `WEIR_HOOKS` says how many hooks, for
//! longer runs: `WEIR_HOOKS=100000000 cargo test --release -p weir-native --test hooks`.

mod envoy;
mod message;

use std::ffi::c_void;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use prost::Message;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use weir_native::hooks;
use weir_policy::{Holder, HostId, KeyHash};
use weir_tables::{CACHE_SHARD_TYPE, HOST_TABLE_TYPE, Meta, ShardBuilder, cache_shard_name, v1};

use envoy::{ANSWERED, Buffer, Configuration, LOG, METRICS, QUEUE, RESUMED, Request};
use message::response;

/// Hooks of a run, unless `WEIR_HOOKS` says otherwise.
const HOOKS: u64 = 300_000;
const WORKERS: u64 = 2;
const ADDRESSES: [&str; 2] = ["10.0.0.1:80", "10.0.0.2:80"];
/// That requests have in their headers.
const KEYS: u64 = 20;
/// Requests of a thread that are under way at once.
const MOST: usize = 40;
/// What is still held is let go of by a tick or two.
const PATIENCE: Duration = Duration::from_secs(60);

static CALLED: AtomicU64 = AtomicU64::new(0);

/// What the module keeps of the configuration that is in force, and those that are to be destroyed when the last of
/// their requests is.
struct Installed {
    envoy: Box<Configuration>,
    module: *const c_void,
}

// SAFETY: the pointer is the module's, made to be used by all threads.
unsafe impl Send for Installed {}
// SAFETY: as above.
unsafe impl Sync for Installed {}

impl Drop for Installed {
    fn drop(&mut self) {
        called();
        // SAFETY: nobody has it any more.
        unsafe { hooks::envoy_dynamic_module_on_http_filter_config_destroy(self.module) }
    }
}

type Current = Mutex<Arc<Installed>>;

fn called() {
    CALLED.fetch_add(1, Ordering::Relaxed);
}

fn install(json: &str) -> Option<Arc<Installed>> {
    called();
    let envoy = Box::new(Configuration {
        number: envoy::number(),
        ..Configuration::default()
    });
    let pointer = (&raw const *envoy).cast_mut().cast::<c_void>();
    // SAFETY: both live for the call, and the configuration for as long as the module's.
    let module = unsafe {
        hooks::envoy_dynamic_module_on_http_filter_config_new(
            pointer,
            std::mem::transmute::<Buffer, hooks::Buffer>(Buffer::of(b"weir")),
            std::mem::transmute::<Buffer, hooks::Buffer>(Buffer::of(json.as_bytes())),
        )
    };
    (!module.is_null()).then(|| Arc::new(Installed { envoy, module }))
}

fn key(number: u64) -> String {
    format!("key-{number}")
}

fn configuration(variant: u64) -> String {
    let key = match variant % 3 {
        0 => r#""key": {"header": "x-weir-key"}"#,
        1 => r#""key": {"prompt": {"block_bytes": 64}}"#,
        _ => r#""key": {"path": "/{key}"}"#,
    };
    format!(
        r#"{{"control_cluster": "weir-control", "proxy": "p", "tick": "10ms", "debug": {},
            "clusters": {{"rules": {{"table": "rules", {key}}}}}}}"#,
        variant.is_multiple_of(2)
    )
}

/// A request of this thread's, with what keeps its configuration.
struct Live {
    request: Box<Request>,
    installed: Arc<Installed>,
    /// Its body has ended.
    is_sent: bool,
}

impl Live {
    fn begin(installed: Arc<Installed>, rng: &mut SmallRng) -> Self {
        let key = key(rng.random_range(0..KEYS));
        let mut headers = vec![
            (&b":path"[..], b"/a".to_vec()),
            (b":method", b"POST".to_vec()),
            (
                b"content-type",
                match rng.random_ratio(1, 4) {
                    true => b"application/grpc".to_vec(),
                    false => b"application/json".to_vec(),
                },
            ),
            (b"x-weir-key", key.into_bytes()),
            (b"x-weir-priority", b"low".to_vec()),
            (b"x-envoy-expected-rq-timeout-ms", b"200".to_vec()),
        ];
        headers.truncate(rng.random_range(0..=headers.len()));
        let headers = headers.into_iter().map(|(n, v)| (n.to_vec(), v));
        let request = Box::new(Request::new(headers.collect()));
        called();
        let live = Self {
            request,
            installed,
            is_sent: false,
        };
        // SAFETY: the configuration lives, and the request until it is destroyed.
        let module = unsafe {
            hooks::envoy_dynamic_module_on_http_filter_new(live.installed.module, live.envoy())
        };
        assert!(!module.is_null());
        live.request.module.set(module);
        live
    }

    fn envoy(&self) -> *mut c_void {
        (&raw const *self.request).cast_mut().cast()
    }

    fn module(&self) -> *const c_void {
        self.request.module.get()
    }

    fn headers(&mut self, ends: bool) {
        called();
        self.is_sent = ends;
        // SAFETY: as in `begin`.
        let status = unsafe {
            hooks::envoy_dynamic_module_on_http_filter_request_headers(
                self.envoy(),
                self.module(),
                ends,
            )
        };
        assert!([0, 1, 4].contains(&status), "{status}");
        self.request
            .is_paused
            .set(status != 0 && !self.request.is_answered.get());
        // Envoy calls no hook of the body then.
        self.is_sent |= status == 4;
    }

    fn body(&mut self, rng: &mut SmallRng) {
        if self.is_sent || self.request.is_answered.get() {
            return;
        }
        called();
        let text = br#"{"model": "m", "prompt": "once upon a time there was a text that is longer than a block of it", "#;
        let from = rng.random_range(0..text.len());
        let part = text[from..rng.random_range(from..text.len())].to_vec();
        *self.request.received.borrow_mut() = part;
        self.is_sent = rng.random();
        // SAFETY: as in `begin`.
        let status = unsafe {
            hooks::envoy_dynamic_module_on_http_filter_request_body(
                self.envoy(),
                self.module(),
                self.is_sent,
            )
        };
        let part = self.request.received.take();
        if status == 1 {
            self.request.buffered.borrow_mut().extend(part);
        }
        self.request
            .is_paused
            .set(status == 1 && !self.request.is_answered.get());
    }

    fn answer(&mut self) {
        if self.request.is_paused.get() || self.request.is_answered.replace(true) {
            return;
        }
        *self.request.answer.borrow_mut() = Some(vec![(b":status".to_vec(), b"200".to_vec())]);
        answered(&self.request);
    }

    fn scheduled(&self) {
        called();
        // SAFETY: as in `begin`.
        unsafe {
            hooks::envoy_dynamic_module_on_http_filter_scheduled(self.envoy(), self.module(), 0);
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        if !self.request.is_completed.get() {
            complete(&self.request);
        }
        called();
        // SAFETY: as in `begin`, and it is not used any more.
        unsafe { hooks::envoy_dynamic_module_on_http_filter_destroy(self.module()) }
    }
}

fn answered(request: &Request) {
    called();
    let envoy = (&raw const *request).cast_mut().cast();
    // SAFETY: it lives.
    let status = unsafe {
        hooks::envoy_dynamic_module_on_http_filter_response_headers(
            envoy,
            request.module.get(),
            false,
        )
    };
    assert_eq!(status, 0);
}

fn complete(request: &Request) {
    called();
    request.is_completed.set(true);
    let envoy = (&raw const *request).cast_mut().cast();
    // SAFETY: it lives.
    unsafe {
        hooks::envoy_dynamic_module_on_http_filter_stream_complete(envoy, request.module.get())
    }
}

/// Some hosts have answered before the module's call returns, and some of their answers have ended.
fn resumed(request: &Request) {
    let is_even = request.number.is_multiple_of(2);
    if is_even && !request.is_answered.replace(true) {
        *request.answer.borrow_mut() = Some(vec![(b":status".to_vec(), b"503".to_vec())]);
        answered(request);
        ended(request);
    }
}

/// Some answers have ended before the module's call returns.
fn ended(request: &Request) {
    if request.number.is_multiple_of(4) {
        complete(request);
    }
}

fn worker(current: &Current, is_over: &AtomicBool, seed: u64) {
    RESUMED.set(Some(Rc::new(resumed)));
    ANSWERED.set(Some(Rc::new(ended)));
    let mut rng = SmallRng::seed_from_u64(seed);
    let mut live: Vec<Live> = Vec::new();
    while !is_over.load(Ordering::Relaxed) {
        wake(&live);
        if live.is_empty() || (live.len() < MOST && rng.random_ratio(1, 5)) {
            let installed = Arc::clone(&current.lock().unwrap());
            let mut new = Live::begin(installed, &mut rng);
            if rng.random_ratio(19, 20) {
                new.headers(rng.random());
            }
            live.push(new);
            continue;
        }
        let at = rng.random_range(0..live.len());
        match rng.random_range(0..4) {
            0 => live[at].body(&mut rng),
            1 => live[at].answer(),
            2 if !live[at].request.is_completed.get() && rng.random() => {
                complete(&live[at].request);
            }
            2 => {}
            _ => drop(live.swap_remove(at)),
        }
    }
    // Whoever is held is let go of, whatever comes of it.
    let began = Instant::now();
    while live
        .iter()
        .any(|one| one.request.is_paused.get() && one.is_sent && !one.request.is_completed.get())
    {
        assert!(began.elapsed() < PATIENCE, "requests are paused for good");
        wake(&live);
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn wake(live: &[Live]) {
    let queue = QUEUE.with(Arc::clone);
    let woken = std::mem::take(&mut *queue.lock().unwrap());
    for number in woken {
        let woken = live.iter().find(|one| one.request.number == number);
        if let Some(one) = woken.filter(|one| !one.request.is_completed.get()) {
            one.scheduled();
        }
    }
}

/// What weir-control sends: a table that holds, sheds or sends, by its version.
fn table(version: u64) -> Vec<u8> {
    let host = |address: &str, in_progress: u32| v1::Host {
        address: address.into(),
        state: v1::HostState::Up.into(),
        admission_level: (version.is_multiple_of(4)).then_some(version as u32 % 300),
        load: Some(v1::Load {
            in_progress,
            queued: vec![in_progress / 2],
            ..Default::default()
        }),
        ..Default::default()
    };
    let table = v1::HostTable {
        cluster: "rules".into(),
        epoch: 1,
        version,
        policy: Some(v1::Policy {
            overload: v1::Overload::Dagor.into(),
            selection: v1::Selection::Estimate.into(),
            holding: Some(v1::Holding {
                for_eligible_ms: Some(50),
                ..Default::default()
            }),
            ..Default::default()
        }),
        hosts: vec![
            host(ADDRESSES[0], version as u32 % 5),
            host(ADDRESSES[1], 1),
        ],
        cache_shards: 1,
        ..Default::default()
    };
    response(HOST_TABLE_TYPE, "rules", version, table.encode_to_vec())
}

/// Cache contents: each key that requests have is at one of the hosts, by its version.
fn contents(version: u64) -> Vec<u8> {
    let mut builder = ShardBuilder::default();
    for number in 0..KEYS {
        let host = HostId::of(ADDRESSES[(number + version) as usize % ADDRESSES.len()]);
        let assumed = number.is_multiple_of(5);
        builder.add(
            KeyHash::of(key(number).as_bytes()),
            Holder { host, assumed },
        );
    }
    let shard = builder.build(Meta { epoch: 1, version });
    let name = cache_shard_name("rules", 1, 0);
    response(CACHE_SHARD_TYPE, &name, version, shard.encode_to_vec())
}

/// The main thread is woken for this configuration.
fn tick(installed: &Installed) {
    called();
    let envoy = (&raw const *installed.envoy).cast_mut().cast();
    // SAFETY: both live.
    unsafe {
        hooks::envoy_dynamic_module_on_http_filter_config_scheduled(envoy, installed.module, 0);
    }
}

/// Something happens to a stream of the configuration's.
fn stream(installed: &Installed, version: u64, rng: &mut SmallRng) {
    let open = installed.envoy.streams.lock().unwrap().clone();
    if open.is_empty() {
        return;
    }
    let stream = open[rng.random_range(0..open.len())];
    let (envoy, module) = (
        (&raw const *installed.envoy).cast_mut().cast(),
        installed.module,
    );
    called();
    let closed = || {
        installed
            .envoy
            .streams
            .lock()
            .unwrap()
            .retain(|one| *one != stream)
    };
    // SAFETY: all live for the call.
    unsafe {
        match rng.random_range(0..40) {
            0 => {
                closed();
                hooks::envoy_dynamic_module_on_http_filter_config_http_stream_reset(
                    envoy, module, stream, 0,
                );
            }
            1 => {
                closed();
                hooks::envoy_dynamic_module_on_http_filter_config_http_stream_complete(
                    envoy, module, stream,
                );
            }
            2 => {
                let bytes: [u8; 9] = rng.random();
                data(envoy, module, stream, &[&bytes]);
            }
            _ => {
                let message = match version.is_multiple_of(3) {
                    true => contents(version),
                    false => table(version),
                };
                let (first, rest) = message.split_at(rng.random_range(0..message.len()));
                data(envoy, module, stream, &[first, rest]);
            }
        }
    }
}

unsafe fn data(envoy: *mut c_void, module: *const c_void, stream: u64, parts: &[&[u8]]) {
    let parts: Vec<Buffer> = parts.iter().map(|part| Buffer::of(part)).collect();
    // SAFETY: the caller's, and the parts live for the call.
    unsafe {
        hooks::envoy_dynamic_module_on_http_filter_config_http_stream_data(
            envoy,
            module,
            stream,
            parts.as_ptr().cast(),
            parts.len(),
            false,
        );
    }
}

#[test]
fn hooks_in_any_order_do_not_panic_and_leave_nothing_behind() {
    let hooks = std::env::var("WEIR_HOOKS")
        .ok()
        .map(|n| n.parse().expect("WEIR_HOOKS"));
    let hooks: u64 = hooks.unwrap_or(HOOKS);
    assert!(
        install(r#"{"clusters": 1}"#).is_none(),
        "a configuration that is none was taken"
    );
    let current = Mutex::new(install(&configuration(0)).unwrap());
    let is_over = AtomicBool::new(false);
    let mut rng = SmallRng::seed_from_u64(1);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS)
            .map(|number| {
                scope.spawn({
                    let (current, is_over) = (&current, &is_over);
                    move || worker(current, is_over, number)
                })
            })
            .collect();
        let mut version = 1;
        let queue = QUEUE.with(Arc::clone);
        // Ticks go on until the last worker has ended.
        while workers.iter().any(|worker| !worker.is_finished()) {
            is_over.fetch_or(CALLED.load(Ordering::Relaxed) >= hooks, Ordering::Relaxed);
            let installed = Arc::clone(&current.lock().unwrap());
            for number in std::mem::take(&mut *queue.lock().unwrap()) {
                if number == installed.envoy.number {
                    tick(&installed);
                }
            }
            stream(&installed, version, &mut rng);
            version += 1;
            if version.is_multiple_of(500) {
                *current.lock().unwrap() = install(&configuration(version / 500)).unwrap();
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        for worker in workers {
            worker.join().unwrap();
        }
    });
    // What was counted since the last one.
    tick(&current.lock().unwrap());
    let log = LOG.lock().unwrap();
    let panics: Vec<_> = log
        .iter()
        .filter(|line| line.contains("panicked"))
        .collect();
    assert!(panics.is_empty(), "{panics:#?}");
    let metrics = METRICS.lock().unwrap();
    let value = |name: &str| metrics.get(name).copied().unwrap_or(0);
    // Not in vain: all of the paths were taken.
    assert!(
        value("weir_decisions_total") > 1_000 && value("weir_held_total") > 10,
        "{metrics:#?}"
    );
    for reason in ["known_cached", "assumed_cached"] {
        let chosen = value(&format!("wasm.weir_reason={reason}"));
        assert!(chosen > 100, "{reason}: {metrics:#?}");
    }
    assert_eq!(value("weir_held_requests"), 0, "{metrics:#?}");
    println!("{} hooks; {metrics:#?}", CALLED.load(Ordering::Relaxed));
}
