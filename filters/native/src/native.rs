// SPDX-License-Identifier: Apache-2.0
//! The process as a VM sees it.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::ThreadId;
use std::time::{Duration, Instant, SystemTime};

use weir_filter::contents::Contents;
use weir_filter::host::{Change, Failed, Host, LogLevel, MetricType};
use weir_filter::root;

use crate::abi::{self, level};
use crate::bells::Bells;
use crate::installed::Configurations;
use crate::metrics::Metrics;
use crate::shared::Shared;
use crate::{streams, worker};

/// What all threads share, for as long as the process lives.
pub(crate) struct Process {
    pub(crate) shared: Shared,
    contents: Contents,
    pub(crate) metrics: Metrics,
    pub(crate) bells: Bells,
    pub(crate) configurations: Configurations,
    began: OnceLock<Instant>,
    /// By its thread, where a VM without ticks keeps its record.
    idle: Mutex<BTreeMap<String, ThreadId>>,
}

pub(crate) static PROCESS: Process = Process {
    shared: Shared::new(),
    contents: Contents::new(),
    metrics: Metrics::new(),
    bells: Bells::new(),
    configurations: Configurations::new(),
    began: OnceLock::new(),
    idle: Mutex::new(BTreeMap::new()),
};

/// VMs take the time zero for long ago.
const BEFORE: Duration = Duration::from_secs(3600);

impl Process {
    /// This thread's VM gets no ticks: its record is there, and is to be kept.
    pub(crate) fn sleeps(&self, record: String) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.insert(record, std::thread::current().id());
    }

    /// It does again.
    pub(crate) fn wakes(&self) {
        let thread = std::thread::current().id();
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|_, sleeping| *sleeping != thread);
    }

    /// Keeps the records of all that sleep.
    pub(crate) fn renew(&self) {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        for record in idle.keys() {
            root::renew(&Native, record);
        }
    }
}

/// The process that Envoy and this module are.
#[derive(Clone, Copy)]
pub(crate) struct Native;

impl Host for Native {
    type Value = Arc<[u8]>;

    fn log(&self, level: LogLevel, message: &str) {
        let level = match level {
            LogLevel::Warn => level::WARN,
            LogLevel::Error => level::ERROR,
        };
        abi::log(level, message);
    }

    fn now(&self) -> Duration {
        BEFORE + PROCESS.began.get_or_init(Instant::now).elapsed()
    }

    fn hour(&self) -> u64 {
        let since = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        since.as_secs() / 3600
    }

    fn random(&self) -> u64 {
        static DRAWN: AtomicU64 = AtomicU64::new(0);
        // The standard library seeds it from the system, and each one unlike the last.
        RandomState::new().hash_one(DRAWN.fetch_add(1, Ordering::Relaxed))
    }

    fn shared(&self, key: &str) -> Option<(Arc<[u8]>, u32)> {
        PROCESS.shared.get(key)
    }

    fn set_shared(&self, key: &str, value: &[u8], cas: Option<u32>) -> Result<bool, Failed> {
        Ok(PROCESS.shared.set(key, value, cas))
    }

    fn contents(&self) -> Option<&Contents> {
        Some(&PROCESS.contents)
    }

    fn define_metric(
        &self,
        metric_type: MetricType,
        name: &str,
        label: Option<(&str, &str)>,
    ) -> Option<u32> {
        PROCESS.metrics.define(metric_type, name, label)
    }

    fn change_metric(&self, id: u32, change: Change) {
        PROCESS.metrics.change(id, change);
    }

    fn metric(&self, id: u32) -> Option<u64> {
        PROCESS.metrics.get(id)
    }

    fn opens_streams(&self) -> bool {
        worker::is_main()
    }

    fn open_stream(
        &self,
        cluster: &str,
        method: (&str, &str),
        metadata: (&str, &[u8]),
    ) -> Result<u32, Failed> {
        const UNAVAILABLE: Failed = Failed(14);
        let entry = worker::current().ok_or(UNAVAILABLE)?;
        streams::open(&entry.installed, cluster, method, metadata).ok_or(UNAVAILABLE)
    }

    fn send_message(&self, stream: u32, message: &[u8]) -> Result<(), Failed> {
        const CANCELLED: Failed = Failed(1);
        streams::send(stream, message)
            .then_some(())
            .ok_or(CANCELLED)
    }

    fn cancel_stream(&self, stream: u32) {
        streams::cancel(stream);
    }
}
