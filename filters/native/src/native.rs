// SPDX-License-Identifier: Apache-2.0
//! The process as a VM sees it.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use weir_filter::contents::Contents;
use weir_filter::host::{Change, Failed, Host, LogLevel, MetricType};

use crate::abi::{self, level};
use crate::process::{process, started_with};
use crate::{streams, worker};

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
        process().time.now()
    }

    fn hour(&self) -> u64 {
        process().time.since_1970().as_secs() / 3600
    }

    fn zone(&self) -> String {
        started_with("--service-zone").unwrap_or_default()
    }

    fn random(&self) -> u64 {
        static DRAWN: AtomicU64 = AtomicU64::new(0);
        // The standard library seeds it from the system, and each one unlike the last.
        RandomState::new().hash_one(DRAWN.fetch_add(1, Ordering::Relaxed))
    }

    fn shared(&self, key: &str) -> Option<(Arc<[u8]>, u32)> {
        process().shared.get(key)
    }

    fn set_shared(&self, key: &str, value: &[u8], cas: Option<u32>) -> Result<bool, Failed> {
        Ok(process().shared.set(key, value, cas))
    }

    fn contents(&self) -> Option<&Contents> {
        Some(&process().contents)
    }

    fn define_metric(
        &self,
        metric_type: MetricType,
        name: &str,
        label: Option<(&str, &str)>,
    ) -> Option<u32> {
        process().metrics.define(metric_type, name, label)
    }

    fn change_metric(&self, id: u32, change: Change) {
        process().metrics.change(id, change);
    }

    fn metric(&self, id: u32) -> Option<u64> {
        process().metrics.get(id)
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
