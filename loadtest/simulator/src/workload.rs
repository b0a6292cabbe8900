// SPDX-License-Identifier: Apache-2.0
//! What is asked for, with the keys named once.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use weir_policy::{KeyHash, Keys, user_priority};
use weir_replay::workload::Request;

/// Users' ranks change by the hour.
const HOUR_US: u64 = 3_600_000_000;

/// Between the keys of a list.
pub const SEPARATOR: char = ';';

/// What a host may have cached.
#[derive(Debug, Clone)]
pub struct Key {
    pub(crate) name: Arc<str>,
    /// As decisions see it.
    pub(crate) keys: Keys,
}

impl Key {
    /// The key of this name.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            keys: KeyHash::of(name.as_bytes()).into(),
        }
    }

    /// Several keys in prefix order, with [`SEPARATOR`] in between.
    #[must_use]
    pub fn list(names: &str) -> Self {
        let name = names.into();
        let keys = names
            .split(SEPARATOR)
            .map(|name| KeyHash::of(name.as_bytes()));
        Self {
            keys: Keys::new(keys),
            name,
        }
    }

    /// The names of a list, also those that are too many for decisions.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.name.split(SEPARATOR)
    }
}

/// One request.
#[derive(Debug, Clone)]
pub struct Job {
    /// When it is sent; of one that follows another: how long after the other's end.
    pub at: Duration,
    /// Which of the keys.
    pub key: Option<u32>,
    /// Of the key's data; another one makes what is cached useless.
    pub version: u32,
    /// Priority class, 0 the most important.
    pub class: u8,
    /// U of DAGOR; none: drawn for every attempt.
    pub user: Option<u8>,
    /// Of the key's data.
    pub bytes: u64,
    /// What is to be done with the data.
    pub work: Work,
    /// Sent when this one has ended, however it did.
    pub then: Option<Box<Job>>,
}

/// What a host does for a request, once it has the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// Nothing: the data are to be there for others (document 001, section 3.2).
    Prefetch,
    /// One joblet on one core.
    Whole(Duration),
    /// Joblets as in document 001, section 3.4; times are of one core.
    Split {
        /// Names the shared rules among those of the key.
        rules: u32,
        /// To apply them, if nobody has yet.
        shared: Duration,
        /// To apply those of one channel.
        own: Duration,
        /// To write the answer.
        output: Duration,
        /// That the two kinds of rules can use.
        cores: u8,
    },
}

impl Work {
    /// Time on one core, all joblets together.
    #[must_use]
    pub fn core_time(&self) -> Duration {
        match *self {
            Self::Prefetch => Duration::ZERO,
            Self::Whole(run) => run,
            Self::Split {
                shared,
                own,
                output,
                ..
            } => shared + own + output,
        }
    }
}

/// Requests of a file, in the order of their times.
#[derive(Debug, Clone, Default)]
pub struct Workload {
    /// What they are about.
    pub keys: Vec<Key>,
    /// The requests.
    pub jobs: Vec<Job>,
}

/// The class of a priority's name, as filter and host have it by default.
#[must_use]
pub fn class(priority: &str) -> Option<u8> {
    match priority {
        "high" => Some(HIGH),
        "low" => Some(LOW),
        _ => None,
    }
}

/// The class of priority `high`.
pub const HIGH: u8 = 0;
/// The class of priority `low`.
pub const LOW: u8 = 16;

impl Workload {
    /// The workload of a file of weir-replay, whose keys may be lists.
    ///
    /// # Errors
    /// The number of the first request whose priority has no class, and its priority.
    pub fn of(requests: &[Request], lists: bool) -> Result<Self, (usize, String)> {
        let mut workload = Self::default();
        let mut numbers: HashMap<&str, u32> = HashMap::new();
        for (index, request) in requests.iter().enumerate() {
            let Some(class) = class(&request.priority) else {
                return Err((index, request.priority.clone()));
            };
            let user = match &*request.user {
                "" => None,
                user => Some(user_priority(user.as_bytes(), request.t_us / HOUR_US)),
            };
            let key = (!request.key.is_empty()).then(|| {
                *numbers.entry(&request.key).or_insert_with(|| {
                    let key = match lists {
                        true => Key::list(&request.key),
                        false => Key::new(&request.key),
                    };
                    workload.keys.push(key);
                    workload.keys.len() as u32 - 1
                })
            });
            workload.jobs.push(Job {
                at: Duration::from_micros(request.t_us),
                key,
                version: 0,
                class,
                user,
                bytes: request.bytes,
                work: Work::Whole(Duration::from_micros(request.run_us)),
                then: None,
            });
        }
        Ok(workload)
    }

    /// Cores that are busy on average when nobody waits, fetches left out.
    #[must_use]
    pub fn busy_cores(&self) -> f64 {
        let work: Duration = self.jobs.iter().map(|job| job.work.core_time()).sum();
        let lasts = self.jobs.last().map_or(Duration::ZERO, |job| job.at);
        match lasts.is_zero() {
            true => 0.0,
            false => work.as_secs_f64() / lasts.as_secs_f64(),
        }
    }
}
