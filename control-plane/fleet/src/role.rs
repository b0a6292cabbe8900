// SPDX-License-Identifier: Apache-2.0
//! Roles of one of several replicas.

use std::fmt;
use std::sync::Arc;

/// What a replica is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Role {
    /// Nobody is known to lead yet.
    #[default]
    Waiting,
    /// This one builds the tables.
    Leading {
        /// How often the lock was taken; 0 where there is no lock.
        index: u64,
    },
    /// Another one does.
    Following(Arc<Leader>),
}

/// The one that builds the tables.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Leader {
    /// What it is called.
    pub name: String,
    /// Where its discovery listener is.
    pub address: String,
    /// How often the lock was taken.
    pub index: u64,
    /// What holds the lock: a session of Consul's, or a process.
    pub session: Arc<str>,
}

impl Role {
    /// Whether this one builds the tables.
    pub fn leads(&self) -> bool {
        matches!(self, Self::Leading { .. })
    }

    /// Its name in `/tables`.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Leading { .. } => "leading",
            Self::Following(_) => "following",
        }
    }

    /// How often the lock was taken, where it is known.
    pub fn index(&self) -> u64 {
        match self {
            Self::Waiting => 0,
            Self::Leading { index } => *index,
            Self::Following(leader) => leader.index,
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Waiting => f.write_str("waiting"),
            Self::Leading { index } => write!(f, "leading, lock index {index}"),
            Self::Following(leader) => {
                let Leader {
                    name,
                    address,
                    index,
                    ..
                } = &**leader;
                write!(f, "following {name} at {address}, lock index {index}")
            }
        }
    }
}
