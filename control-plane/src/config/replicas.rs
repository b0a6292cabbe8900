// SPDX-License-Identifier: Apache-2.0
//! How one of several weir-control finds the others.

use std::fmt;
use std::time::Duration;

use super::{Server, Token};
use crate::tls::peer::PeerTls;

/// One of several weir-control: who holds a lock in Consul builds the tables, and the others pass them on.
#[derive(Clone, PartialEq)]
pub struct Replicas {
    /// Where the lock is.
    pub consul: Server,
    /// Who asks for it.
    pub token: Option<Token>,
    /// Name of the lock in Consul's key/value store.
    pub key: String,
    /// A replica that has not been heard of for this long loses the lock, after twice that at the latest.
    pub session_ttl: Duration,
    /// Where the others reach this one's discovery listener: `host:port`. Port 0 is the one that it is bound to.
    pub address: String,
    /// What this one is called.
    pub name: String,
    /// How the others' discovery listeners are protected, if they are.
    pub tls: Option<PeerTls>,
}

impl Replicas {
    /// Whether it is the same replica of the same group. A renewed token or certificate makes no other one of it.
    pub fn is_same(&self, other: &Self) -> bool {
        let who = |replica: &Self| {
            let Self {
                consul,
                key,
                session_ttl,
                address,
                name,
                ..
            } = replica.clone();
            (consul.url, key, session_ttl, address, name)
        };
        who(self) == who(other)
    }
}

impl fmt::Debug for Replicas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replicas")
            .field("consul", &self.consul)
            .field("key", &self.key)
            .field("address", &self.address)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
