// SPDX-License-Identifier: Apache-2.0
//! EMULATED host: the worker's own executor on modelled durations, and what it tells of itself.

use std::time::Duration;

use weir_control::config::Cache;
use weir_control::sources::cache::Conversation;
use weir_executor::executor::Settings;
use weir_executor::{Emulator, Event, Eviction, JobId, Load, Order, Source, Spent, Timing};
use weir_fleet::holdings::Changes;

use crate::workload::Asked;

pub(crate) const CORES: usize = 4;
/// Core time of a fetch of what is not in the cache.
const FETCH: Timing = Timing {
    fetch_base: Duration::from_millis(200),
    fetch_bytes_per_second: u64::MAX,
};
/// Keys in its cache; one takes a byte.
const CACHED: u64 = 60;
/// The filter's default class.
const CLASS: u8 = 16;

/// What it has done since that was last taken.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Done {
    pub(crate) requests: u64,
    pub(crate) hits: u64,
    pub(crate) core_time: Duration,
    pub(crate) waited: Duration,
}

pub(crate) struct Host {
    pub(crate) address: String,
    emulator: Emulator,
    conversation: Conversation,
    /// Version and epoch of the cache contents that it told last.
    told: Option<(u64, u64)>,
    /// Of all jobs that have begun: how long they waited, and how many they are.
    delays: (Duration, u64),
    pub(crate) done: Done,
}

/// `ip:port` of a host.
pub(crate) fn address(number: usize) -> String {
    format!("10.0.0.{}:9000", number + 1)
}

impl Host {
    pub(crate) fn new(number: usize) -> Self {
        let settings = Settings {
            cores: CORES,
            cache_bytes: CACHED,
            max_queued: usize::MAX,
            change_log: 10_000,
            order: Order::default(),
            eviction: Eviction::default(),
        };
        Self {
            address: address(number),
            emulator: Emulator::new(&settings, 1 + number as u64),
            conversation: Conversation::default(),
            told: None,
            delays: (Duration::ZERO, 0),
            done: Done::default(),
        }
    }

    pub(crate) fn take(&mut self, asked: &Asked, now: Duration) -> JobId {
        let key = Some(asked.key.clone());
        let job = FETCH.job(key, 1, CLASS, asked.run);
        self.emulator.submit(now, job).expect("there is room")
    }

    /// The jobs that have ended.
    pub(crate) fn advance(&mut self, now: Duration) -> Vec<(JobId, Spent)> {
        let mut ended = Vec::new();
        for event in self.emulator.advance(now) {
            match event {
                Event::Started(_) => {}
                Event::Began(_, spent) => {
                    self.delays.0 += spent.wait;
                    self.delays.1 += 1;
                }
                Event::Ended(job, Ok(spent)) => {
                    self.done.requests += 1;
                    self.done.hits += u64::from(spent.source == Source::Hit);
                    self.done.core_time += spent.cost.fetch + spent.cost.run;
                    self.done.waited += spent.wait;
                    ended.push((job, spent));
                }
                Event::Ended(_, Err(never)) => match never {},
            }
        }
        ended
    }

    pub(crate) fn next_due(&self) -> Option<Duration> {
        self.emulator.next_due()
    }

    /// Its metrics, as weir-control reads them.
    pub(crate) fn page(&mut self, now: Duration) -> String {
        let load = self.emulator.load(now);
        let (queued, work) = of_class(&load);
        let ((waited, began), labels) = (self.delays, format!("{{priority=\"{CLASS}\"}}"));
        format!(
            "weir_host_in_progress {}\nweir_host_busy_cores {}\nweir_host_queued{labels} {queued}\n\
             weir_host_work_seconds{labels} {work}\nweir_host_queuing_delay_seconds_sum {}\n\
             weir_host_queuing_delay_seconds_count {began}\n",
            load.in_progress,
            load.busy_cores,
            waited.as_secs_f64(),
        )
    }

    /// Its load, as it is on the answer to a request that took so much.
    pub(crate) fn load(&mut self, spent: &Spent, now: Duration) -> String {
        let load = self.emulator.load(now);
        let (queued, work) = of_class(&load);
        let metrics = [
            ("in_progress", f64::from(load.in_progress)),
            ("busy_cores", f64::from(load.busy_cores)),
            (&format!("queued.{CLASS}"), f64::from(queued)),
            (&format!("work_seconds.{CLASS}"), work),
        ];
        let metrics = metrics.map(|(name, value)| format!("named_metrics.weir.{name}={value}"));
        let fetch = spent.cost.fetch.as_secs_f64();
        let fetch = match spent.source {
            Source::Miss => format!(",request_cost.weir.fetch_seconds={fetch}"),
            _ => String::new(),
        };
        let run = spent.cost.run.as_secs_f64();
        let metrics = metrics.join(",");
        format!("TEXT {metrics},request_cost.weir.run_seconds={run}{fetch}")
    }

    /// What has changed in its cache since it was asked last.
    pub(crate) fn contents(&mut self, limits: &Cache) -> Changes {
        let (version, epoch) = self.told.unzip();
        let cache = self.emulator.executor().cache();
        let changes = cache.changes_since(version.unwrap_or(0), epoch);
        self.told = Some((changes.version, changes.epoch));
        let body = serde_json::to_vec(&changes).expect("JSON");
        let answer = self.conversation.answer(&body, limits);
        answer.expect("it tells what is so")
    }
}

/// Jobs that wait, and the core time that they are expected to need.
fn of_class(load: &Load) -> (u32, f64) {
    let class = usize::from(CLASS);
    (load.queued[class], load.work[class].as_secs_f64())
}
