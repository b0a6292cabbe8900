// SPDX-License-Identifier: Apache-2.0
//! The lock that decides who leads, wherever it is.
//!
//! | | session | taken by | free again | index |
//! |---|---|---|---|---|
//! | [`consul`] | Consul's | a key's `acquire` | when Consul has ended the session | `LockIndex` |
//! | [`lease`] | this process' own | a write of the version that was read | when it was not renewed for its duration, by the clock of who looks | `leaseTransitions` |

pub mod consul;
pub mod lease;

use std::time::Duration;

use tokio::time::Instant;
use weir_fleet::poll::PollError;

use crate::config::{Replicas, replicas};
use consul::Consul;
use lease::Lease;

/// Of one question, beside what it itself waits.
const ANSWER: Duration = Duration::from_secs(2);
/// The index goes into 31 bits of a table's epoch.
const MOST_INDEX: u64 = (1 << 31) - 1;
/// Parts of a session's time in Consul after which it is renewed.
const RENEWALS: u32 = 3;

/// Between two attempts at what was not done, at least.
const RETRY: Duration = Duration::from_millis(200);

/// What the lock says.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Key {
    /// Nobody holds it.
    Free,
    /// A replica does.
    Held(Holder),
    /// It is somebody else's; why.
    Strange(String),
}

/// The replica that holds the lock.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Holder {
    /// Of the replica.
    pub name: String,
    /// Where it is reached.
    pub address: String,
    /// How often the lock was taken.
    pub index: u64,
    /// What holds it.
    pub session: String,
}

/// What the lock says, and what the next question waits to be exceeded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reading {
    pub(super) index: u64,
    pub(super) key: Key,
}

/// Asks for it.
#[derive(Debug)]
pub(super) enum Lock {
    Consul(Consul, Duration),
    Lease(Lease),
}

impl Lock {
    /// The error is about the certificates.
    pub(super) fn new(replicas: &Replicas, address: &str) -> Result<Self, String> {
        let name = &replicas.name;
        Ok(match &replicas.lock {
            replicas::Lock::Consul(settings) => Self::Consul(
                Consul::new(settings, name, address)?,
                settings.ttl / RENEWALS,
            ),
            replicas::Lock::Lease(settings) => Self::Lease(Lease::new(settings, name, address)),
        })
    }

    /// The same with newer certificates or a newer token.
    pub(super) fn renewed(&self, replicas: &Replicas, address: &str) -> Result<Self, String> {
        match (self, &replicas.lock) {
            (Self::Lease(lease), replicas::Lock::Lease(settings)) => {
                Ok(Self::Lease(lease.renewed(settings)))
            }
            _ => Self::new(replicas, address),
        }
    }

    /// A new session.
    pub(super) async fn open(&self) -> Result<String, PollError> {
        match self {
            Self::Consul(consul, _) => consul.open().await,
            Self::Lease(lease) => Ok(lease.open()),
        }
    }

    /// Whether the session is still alive.
    pub(super) async fn renew(&self, session: &str) -> Result<bool, PollError> {
        match self {
            Self::Consul(consul, _) => consul.renew(session).await,
            Self::Lease(lease) => lease.renew(session).await,
        }
    }

    /// Ends a session, whoever's: what it holds is free.
    pub(super) async fn destroy(&self, session: &str) -> Result<(), PollError> {
        match self {
            Self::Consul(consul, _) => consul.destroy(session).await,
            Self::Lease(lease) => lease.release(session).await,
        }
    }

    /// Whether the lock is the session's now.
    pub(super) async fn acquire(&self, session: &str) -> Result<bool, PollError> {
        match self {
            Self::Consul(consul, _) => consul.acquire(session).await,
            Self::Lease(lease) => lease.acquire(session).await,
        }
    }

    /// What the lock says, once that is newer than `index` or is to be looked at again.
    pub(super) async fn read(&self, index: u64) -> Result<Reading, PollError> {
        match self {
            Self::Consul(consul, _) => consul.read(index).await,
            Self::Lease(lease) => lease.read(index).await,
        }
    }

    /// How long after one renewal of a session the next is due. Absent: nothing is held that would have to be renewed.
    pub(super) fn renewed_every(&self) -> Option<Duration> {
        match self {
            Self::Consul(_, every) => Some(*every),
            Self::Lease(lease) => lease.renewed_every(),
        }
    }

    /// From when on others may hold what this replica took, by its own clock. Absent: never without a word of the
    /// lock's server, which ends the session itself.
    pub(super) fn lapses_at(&self) -> Option<Instant> {
        match self {
            Self::Consul(..) => None,
            Self::Lease(lease) => lease.lapses_at(),
        }
    }

    /// Between two attempts at what was not done.
    pub(super) fn retry(&self) -> Duration {
        match self {
            Self::Consul(..) => RETRY,
            // All of a cluster ask its API server.
            Self::Lease(lease) => RETRY.max(lease.duration() / lease::RETRIES),
        }
    }

    /// For so long a replica that has stopped leading, or begun, waits for an answer before it acts alone.
    pub(super) fn patience(&self) -> Duration {
        match self {
            Self::Consul(..) => Duration::ZERO,
            Self::Lease(lease) => lease.duration(),
        }
    }
}
