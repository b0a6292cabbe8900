// SPDX-License-Identifier: Apache-2.0
//! Which requests belong together.

use std::collections::{HashMap, HashSet};

use crate::mooncake::trace::Row;
use crate::rng::SplitMix64;

/// The key of each request.
pub(super) struct Sessions {
    pub(super) keys: Vec<u64>,
    /// What is in more than half of the requests.
    pub(super) common: HashSet<u64>,
}

/// A session is named by its **first own block**: the first block of a request that is in at most
/// half of the requests. What comes before it, such as a system prompt, tells nobody apart. A
/// request without such a block is named by its last one.
pub(super) fn name(rows: &[Row]) -> Sessions {
    let mut requests: HashMap<u64, usize> = HashMap::new();
    for row in rows {
        let blocks: HashSet<u64> = row.blocks.iter().copied().collect();
        for block in blocks {
            *requests.entry(block).or_default() += 1;
        }
    }
    let common = requests.iter().filter(|(_, n)| **n * 2 > rows.len());
    let common: HashSet<u64> = common.map(|(block, _)| *block).collect();
    let key = |row: &Row| {
        let own = row.blocks.iter().find(|block| !common.contains(block));
        own.or(row.blocks.last()).copied().unwrap_or(0)
    };
    Sessions {
        keys: rows.iter().map(key).collect(),
        common,
    }
}

/// The full blocks of a request behind those that most others begin with, as a list in prefix order. Empty
/// where it has none, and so nothing of its own that a host could have.
pub(super) fn list(row: &Row, common: &HashSet<u64>) -> String {
    let blocks = row.full_blocks().iter();
    let own = blocks.skip_while(|block| common.contains(*block));
    let own: Vec<String> = own.map(u64::to_string).collect();
    own.join(";")
}

/// So many of the sessions, and each whole: half a session would find less in caches than it did.
pub(super) fn sample(keys: &[u64], share: f64, rng: &mut SplitMix64) -> HashSet<u64> {
    let mut seen = HashSet::new();
    let firsts = keys.iter().copied().filter(|key| seen.insert(*key));
    firsts.filter(|_| rng.unit() < share).collect()
}
