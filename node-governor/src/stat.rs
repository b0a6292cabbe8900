// SPDX-License-Identifier: Apache-2.0
//! What the kernel says of a process in `/proc/PID/stat` (`man 5 proc_pid_stat`).

use std::time::Duration;

use rustix::process::{Pid, Signal};

/// `USER_HZ`, which is 100 wherever Linux runs: a tick is so long.
const TICK: Duration = Duration::from_millis(10);

/// Some of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    /// Field 3.
    pub(crate) state: u8,
    /// Field 4; none of the first process.
    pub(crate) parent: Option<Pid>,
    /// Field 9.
    pub(crate) flags: u32,
    /// Fields 14 to 17: of it, and of all that it has waited for.
    pub(crate) cpu: Duration,
    /// Field 20.
    threads: u64,
    /// Field 22, in clock ticks since boot.
    pub(crate) started: u64,
}

impl Stat {
    /// Of a process by its number, or of `self`; none where it is gone.
    pub(crate) fn read(process: &str) -> Option<Stat> {
        Stat::parse(&std::fs::read(format!("/proc/{process}/stat")).ok()?)
    }

    /// The name, field 2, may hold anything, so that fields are counted from the last bracket on.
    pub(crate) fn parse(text: &[u8]) -> Option<Stat> {
        let name = text.iter().rposition(|byte| *byte == b')')?;
        let rest = std::str::from_utf8(text.get(name + 1..)?).ok()?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        let field = |place: usize| fields.get(place - 3).copied();
        let mut ticks = 0u64;
        for place in 14..=17 {
            ticks = ticks.saturating_add(field(place)?.parse().ok()?);
        }
        let parent = field(4)?.parse().ok().filter(|number: &i32| *number > 0);
        Some(Stat {
            state: *field(3)?.as_bytes().first()?,
            parent: parent.and_then(Pid::from_raw),
            flags: field(9)?.parse().ok()?,
            cpu: TICK.saturating_mul(u32::try_from(ticks).unwrap_or(u32::MAX)),
            threads: field(20)?.parse().ok()?,
            started: field(22)?.parse().ok()?,
        })
    }

    /// All of its threads, not only the first.
    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.state, b'Z' | b'X') && self.threads <= 1
    }
}

/// So long after boot is [`Stat::started`].
pub(crate) fn after_boot(started: u64) -> Duration {
    Duration::from_millis(started.saturating_mul(TICK.as_millis() as u64))
}

/// Whether a process of which `/proc/PID/status` says this was sent the signal, and has not taken it yet.
pub(crate) fn is_pending(status: &[u8], signal: Signal) -> bool {
    let lines = status.split(|byte| *byte == b'\n');
    let mut sets = lines.filter_map(|line| line.strip_prefix(b"ShdPnd:"));
    let set = sets.next().and_then(|set| std::str::from_utf8(set).ok());
    let set = set.and_then(|set| u64::from_str_radix(set.trim(), 16).ok());
    set.is_some_and(|set| set >> (signal.as_raw() - 1) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_that_were_not_taken_are_told_from_others() {
        // The name may look like the rest.
        let status = b"Name:\tShdPnd:\nSigPnd:\t0000000000040000\nShdPnd:\t0000000000050000\n";
        assert!(is_pending(status, Signal::STOP));
        assert!(!is_pending(status, Signal::CONT));
        assert!(!is_pending(b"SigPnd:\t0000000000040000\n", Signal::STOP));
        assert!(!is_pending(b"ShdPnd:\t\n", Signal::STOP));
    }

    #[test]
    fn a_name_may_look_like_the_rest_of_the_line() {
        let text = b"7 (a) S 1 2) R 1 7 7 0 -1 4 0 0 0 0 11 22 33 44 20 0 1 0 9876 1 1";
        let stat = Stat {
            state: b'R',
            parent: Pid::from_raw(1),
            flags: 4,
            cpu: Duration::from_millis(1100),
            threads: 1,
            started: 9876,
        };
        assert_eq!(Stat::parse(text), Some(stat));
        assert_eq!(Stat::parse(b"7 (a) R 1 7"), None);
        assert_eq!(Stat::parse(b""), None);
    }

    #[test]
    fn what_is_needed_of_a_process_is_read_whatever_its_name() {
        let tail = "S 7 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 3 0 777 9 9 1 1 1 1 1 0 0 0 0 0 0 0 0 17 5 0 0";
        for name in ["x", ") Z 2", "a b)"] {
            let stat = Stat::parse(format!("12 ({name}) {tail}").as_bytes());
            let expected = Stat {
                state: b'S',
                parent: Pid::from_raw(7),
                flags: 4_194_560,
                cpu: Duration::from_millis(260),
                threads: 3,
                started: 777,
            };
            assert_eq!(stat, Some(expected), "{name}");
        }
        assert_eq!(Stat::parse(b"12 (x) S 1"), None);
        assert_eq!(Stat::parse(b""), None);
    }

    #[test]
    fn a_first_thread_that_has_ended_is_not_the_end_of_the_process() {
        let text =
            |threads| format!("12 (x) Z 7 1 1 0 -1 4 1 2 3 4 5 6 7 8 20 0 {threads} 0 777 9");
        let ended = |threads| Stat::parse(text(threads).as_bytes()).unwrap().has_ended();
        assert!(ended(0) && ended(1) && !ended(2));
    }

    #[test]
    fn this_process_has_one() {
        let own = Stat::read("self").unwrap();
        assert!(own.started > 0 && !own.has_ended());
        assert_eq!(own.parent, rustix::process::getppid());
        assert_eq!(Stat::read("0"), None);
    }
}
