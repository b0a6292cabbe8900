// SPDX-License-Identifier: Apache-2.0
//! What the kernel says of a process in `/proc/PID/stat` (`man 5 proc_pid_stat`).

use std::time::Duration;

/// `USER_HZ`, which is 100 wherever Linux runs: a tick is so long.
const TICK: Duration = Duration::from_millis(10);

/// Some of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stat {
    /// In clock ticks since boot.
    pub(super) started: u64,
    /// Of it, and of all that it has waited for.
    pub(super) cpu: Duration,
}

impl Stat {
    /// Of a process by its number, or of `self`; none where it is gone.
    pub(super) fn read(process: &str) -> Option<Stat> {
        let text = std::fs::read(format!("/proc/{process}/stat")).ok()?;
        Stat::parse(&String::from_utf8_lossy(&text))
    }

    fn parse(text: &str) -> Option<Stat> {
        // The name, in parentheses, may have some itself; the state behind it is field 3.
        let (_, rest) = text.rsplit_once(") ")?;
        let mut fields = rest
            .split_ascii_whitespace()
            .skip(14 - 3)
            .map(str::parse::<u64>);
        let mut ticks = 0u64;
        for _ in 0..4 {
            ticks = ticks.saturating_add(fields.next()?.ok()?);
        }
        let started = fields.nth(22 - 18)?.ok()?;
        let cpu = TICK.saturating_mul(u32::try_from(ticks).unwrap_or(u32::MAX));
        Some(Stat { started, cpu })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_look_like_the_rest_of_the_line() {
        let text = "7 (a) S 1 2) R 1 7 7 0 -1 4 0 0 0 0 11 22 33 44 20 0 1 0 9876 1 1";
        let cpu = Duration::from_millis(1100);
        assert_eq!(Stat::parse(text), Some(Stat { started: 9876, cpu }));
        assert_eq!(Stat::parse("7 (a) R 1 7"), None);
        assert_eq!(Stat::parse(""), None);
    }

    #[test]
    fn this_process_has_one() {
        assert!(Stat::read("self").unwrap().started > 0);
        assert_eq!(Stat::read("0"), None);
    }
}
