// SPDX-License-Identifier: Apache-2.0
//! How one of several weir-control finds the others.

use std::fmt;
use std::time::Duration;

use super::{Access, Server, Token};
use crate::tls::peer::PeerTls;

/// Of a Lease; a longer one that somebody wrote runs out then.
pub const LONGEST_LEASE: Duration = Duration::from_secs(3600);

/// One of several weir-control: who holds a lock builds the tables, and the others pass them on.
#[derive(Clone, PartialEq)]
pub struct Replicas {
    /// What they contend for.
    pub lock: Lock,
    /// Where the others reach this one's discovery listener: `host:port`. Port 0 is the one that it is bound to.
    pub address: String,
    /// What this one is called.
    pub name: String,
    /// How the others' discovery listeners are protected, if they are.
    pub tls: Option<PeerTls>,
}

/// Where the lock is.
#[derive(Clone, Debug, PartialEq)]
pub enum Lock {
    /// A key in Consul's key/value store, which a session holds.
    Consul(Session),
    /// A Lease in Kubernetes.
    Lease(Lease),
}

/// A key of Consul's.
#[derive(Clone, PartialEq)]
pub struct Session {
    /// Whom.
    pub consul: Server,
    /// Who asks for it.
    pub token: Option<Token>,
    /// Its name.
    pub key: String,
    /// A replica that has not been heard of for this long loses it, after twice that at the latest.
    pub ttl: Duration,
}

/// A Lease of coordination.k8s.io/v1.
#[derive(Clone, Debug, PartialEq)]
pub struct Lease {
    /// Where it is.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Whole seconds. A replica that has not renewed it for this long loses it.
    pub duration: Duration,
    /// Who is asked, and who asks.
    pub access: Access,
}

impl Replicas {
    /// Whether it is the same replica of the same group. A renewed token or certificate makes no other one of it.
    pub fn is_same(&self, other: &Self) -> bool {
        let who = |replica: &Self| (replica.address.clone(), replica.name.clone());
        who(self) == who(other) && self.lock.is_same(&other.lock)
    }
}

impl Lock {
    /// By then the lock of a leader that is gone has another holder, and to spare: Consul frees a key after twice its
    /// `session_ttl` at the latest, and a Lease is taken once it has run out.
    pub fn handed_over_after(&self) -> Duration {
        match self {
            Self::Consul(session) => 3 * session.ttl,
            Self::Lease(lease) => 3 * lease.duration,
        }
    }

    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Consul(one), Self::Consul(other)) => {
                let what = |it: &Session| (it.consul.url.clone(), it.key.clone(), it.ttl);
                what(one) == what(other)
            }
            (Self::Lease(one), Self::Lease(other)) => {
                let what = |it: &Lease| (it.namespace.clone(), it.name.clone(), it.duration);
                what(one) == what(other) && one.access.url() == other.access.url()
            }
            _ => false,
        }
    }
}

impl fmt::Debug for Replicas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replicas")
            .field("lock", &self.lock)
            .field("address", &self.address)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("consul", &self.consul)
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}
