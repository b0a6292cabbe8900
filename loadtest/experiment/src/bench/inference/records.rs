// SPDX-License-Identifier: Apache-2.0
//! What weir-replay and the hosts wrote down.

use std::net::SocketAddr;

use serde::Deserialize;
use weir_replay::record::Outcome;

/// A request, by who sent it.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Record {
    /// Its place in the workload.
    pub(super) index: usize,
    pub(super) priority: String,
    pub(super) lag_us: u64,
    pub(super) duration_us: u64,
    pub(super) outcome: Outcome,
    pub(super) attempts: u32,
    /// By the host: in its queue, in prefill, in decode.
    pub(super) wait_us: Option<u64>,
    pub(super) fetch_us: Option<u64>,
    pub(super) run_us: Option<u64>,
}

impl Record {
    /// Whether it was answered.
    pub(super) fn is_good(&self) -> bool {
        self.outcome == Outcome::Ok
    }

    /// Until the first token and until the last, by the host.
    pub(super) fn host_us(&self) -> Option<(u64, u64)> {
        let first = self.wait_us? + self.fetch_us?;
        Some((first, first + self.run_us?))
    }
}

/// A request, by the host that answered it.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Answered {
    pub(super) host: SocketAddr,
    pub(super) begun_us: u64,
    pub(super) prefill_us: u64,
    /// The full blocks of the prompt, by name.
    pub(super) blocks: Vec<String>,
    /// How many of these, from the first on, were cached.
    pub(super) hit_blocks: usize,
    pub(super) prompt_tokens: u64,
    pub(super) hit_tokens: u64,
}

/// One that was answered at once, for tests.
#[cfg(test)]
pub(super) fn sent(index: usize) -> Record {
    Record {
        index,
        priority: "low".to_owned(),
        lag_us: 0,
        duration_us: 0,
        outcome: Outcome::Ok,
        attempts: 1,
        wait_us: Some(0),
        fetch_us: Some(0),
        run_us: Some(0),
    }
}

/// One with nothing in it, for tests.
#[cfg(test)]
pub(super) fn answered(port: u16) -> Answered {
    Answered {
        host: ([127, 0, 0, 1], port).into(),
        begun_us: 0,
        prefill_us: 0,
        blocks: vec![],
        hit_blocks: 0,
        prompt_tokens: 0,
        hit_tokens: 0,
    }
}
