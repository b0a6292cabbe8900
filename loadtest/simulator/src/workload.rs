// SPDX-License-Identifier: Apache-2.0
//! What is asked for, with the keys named once.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use weir_policy::{KeyHash, Keys, ends_key, user_priority};
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

    /// The blocks of a prompt, with [`SEPARATOR`] in between; decisions see the names that the filter reads of it.
    #[must_use]
    pub fn list(names: &str) -> Self {
        let blocks = (1..).zip(names.split(SEPARATOR));
        let named = blocks.filter(|(number, _)| ends_key(*number));
        Self {
            name: names.into(),
            keys: Keys::of_prompt(named.map(|(_, name)| KeyHash::of(name.as_bytes()))),
        }
    }

    /// As requests name it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The names of a list, also those that decisions do not see.
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
    /// Who sends it: all of one sender comes from one caller. None: nobody who sends anything else. Of one that
    /// follows another it does not count.
    pub sender: Option<u64>,
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

/// What the requests of a workload of weir-replay are here. Its keys are numbered in the order of their coming.
#[derive(Debug, Default)]
pub struct Workload {
    /// Keys are lists.
    lists: bool,
    keys: Vec<Key>,
    numbers: HashMap<Arc<str>, u32>,
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
    /// Without a key so far; each may be a list.
    #[must_use]
    pub fn new(lists: bool) -> Self {
        Self {
            lists,
            ..Self::default()
        }
    }

    /// Gives a number to the request's key.
    pub fn learn(&mut self, request: &Request) {
        let name = &*request.key;
        if name.is_empty() || self.numbers.contains_key(name) {
            return;
        }
        let key = match self.lists {
            true => Key::list(name),
            false => Key::new(name),
        };
        let number = self.keys.len() as u32;
        self.numbers.insert(Arc::clone(&key.name), number);
        self.keys.push(key);
    }

    /// Those that were learned, by number.
    #[must_use]
    pub fn keys(&self) -> &[Key] {
        &self.keys
    }

    /// The job that a request is; none where its priority has no class, or its key was not learned.
    #[must_use]
    pub fn job(&self, request: &Request) -> Option<Job> {
        let key = match &*request.key {
            "" => None,
            name => Some(*self.numbers.get(name)?),
        };
        let user = match &*request.user {
            "" => None,
            user => Some(user_priority(user.as_bytes(), request.t_us / HOUR_US)),
        };
        let sender = match &*request.user {
            "" => request.sender.as_deref(),
            user => request.sender.as_deref().or(Some(user)),
        };
        Some(Job {
            at: Duration::from_micros(request.t_us),
            key,
            version: 0,
            class: class(&request.priority)?,
            user,
            sender: sender.map(|sender| KeyHash::of(sender.as_bytes()).0),
            bytes: request.bytes,
            work: Work::Whole(Duration::from_micros(request.run_us)),
            then: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sender_is_the_one_that_is_told_or_the_user_or_nobody() {
        let sender = |user: &str, sender: Option<&str>| {
            let request = Request {
                t_us: 0,
                key: String::new(),
                priority: "low".to_owned(),
                user: user.to_owned(),
                run_us: 0,
                bytes: 0,
                body: None,
                sender: sender.map(str::to_owned),
            };
            Workload::new(false).job(&request).unwrap().sender
        };
        assert_eq!(sender("", None), None);
        assert_eq!(sender("u", None), sender("", Some("u")));
        assert_eq!(sender("u", Some("s")), sender("v", Some("s")));
        assert_ne!(sender("u", Some("s")), sender("u", None));
    }
}
