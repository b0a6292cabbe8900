// SPDX-License-Identifier: Apache-2.0
//! A mean that forgets.

use std::time::Duration;

use crate::figures::Spell;

/// Of the prompts that a host has read or answered between two polls no more count, so that no host alone says what all take.
const MOST_PROMPTS: f64 = 64.0;
/// No prompt takes longer to be read, and no answer to be written, in seconds.
const LONGEST_S: f64 = 600.0;

/// Of the newest values.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Mean {
    pub(crate) value: f64,
    pub(crate) count: f64,
}

impl Mean {
    pub(crate) fn add(&mut self, value: f64, newest: f64) {
        self.add_many(value, 1.0, newest);
    }

    /// So many of the same.
    pub(crate) fn add_many(&mut self, value: f64, many: f64, newest: f64) {
        self.count = (self.count + many).min(newest);
        self.value += (value - self.value) * (many / self.count).min(1.0);
    }

    pub(crate) fn add_spell(&mut self, spell: Spell) {
        let mean = (spell.seconds / spell.prompts).min(LONGEST_S);
        self.add_many(mean, spell.prompts.min(MOST_PROMPTS), 1024.0);
    }

    /// As if one more value, the mean of all keys, had been seen: an only request says little.
    pub(crate) fn beside(self, all: Self) -> Duration {
        let mean = (self.value * self.count + all.value) / (self.count + 1.0);
        Duration::try_from_secs_f64(mean).unwrap_or_default()
    }
}
