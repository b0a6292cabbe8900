// SPDX-License-Identifier: Apache-2.0
//! What is asked for, with the keys named once.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use weir_policy::{KeyHash, user_priority};
use weir_replay::workload::Request;

/// Users' ranks change by the hour.
const HOUR_US: u64 = 3_600_000_000;

/// Requests in the order of their times.
#[derive(Debug, Clone, Default)]
pub struct Workload {
    pub(crate) keys: Vec<Key>,
    pub(crate) jobs: Vec<Job>,
}

/// What a host may have cached.
#[derive(Debug, Clone)]
pub(crate) struct Key {
    pub(crate) name: Arc<str>,
    pub(crate) hash: KeyHash,
}

/// One request.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    pub(crate) at: Duration,
    pub(crate) key: Option<u32>,
    pub(crate) class: u8,
    /// U of DAGOR; none: drawn for every attempt.
    pub(crate) user: Option<u8>,
    pub(crate) run: Duration,
    pub(crate) bytes: u64,
}

/// The class of a priority's name, as filter and host have it by default.
fn class(priority: &str) -> Option<u8> {
    match priority {
        "high" => Some(0),
        "low" => Some(16),
        _ => None,
    }
}

impl Workload {
    /// The workload of a file of weir-replay.
    ///
    /// # Errors
    /// The number of the first request whose priority has no class, and its priority.
    pub fn of(requests: &[Request]) -> Result<Self, (usize, String)> {
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
                    workload.keys.push(Key {
                        name: request.key.as_str().into(),
                        hash: KeyHash::of(request.key.as_bytes()),
                    });
                    workload.keys.len() as u32 - 1
                })
            });
            workload.jobs.push(Job {
                at: Duration::from_micros(request.t_us),
                key,
                class,
                user,
                run: Duration::from_micros(request.run_us),
                bytes: request.bytes,
            });
        }
        Ok(workload)
    }

    /// How many requests there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.jobs.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }
}
