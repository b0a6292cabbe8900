// SPDX-License-Identifier: Apache-2.0
//! Lists of hosts that stay although another one was read.

use std::fmt;
use std::time::Duration;

/// Why a list of hosts stays although another one was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Hosts in the list that was read.
    pub named: usize,
    /// Hosts in the one that stays.
    pub stay: usize,
    /// Hosts that only the latter has.
    pub gone: usize,
    /// None: for good.
    pub until_read_for: Option<Duration>,
}

impl fmt::Display for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stay = self.stay;
        match (self.named, self.until_read_for) {
            (0, _) => write!(f, "the list names no host, so the last {stay} stay"),
            (named, Some(time)) => {
                let time = weir_settings::show_duration(time);
                write!(
                    f,
                    "the list names {named} hosts, and the last {stay} stay until it was the same for {time}"
                )
            }
            (named, None) => write!(f, "the list names {named} hosts, and the last {stay} stay"),
        }?;
        f.write_str("; shrink_after: 0s takes it at once")
    }
}
