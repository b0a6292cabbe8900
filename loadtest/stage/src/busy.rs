// SPDX-License-Identifier: Apache-2.0
//! How busy the machine's cores are, whoever keeps them so.

use std::fs;

/// How busy they were since it was made.
pub struct Busy(Option<Ticks>);

/// Of all cores, since the machine started.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Ticks {
    busy: u64,
    all: u64,
}

impl Busy {
    /// Starts counting.
    #[must_use]
    pub fn start() -> Self {
        Self(Ticks::now())
    }

    /// Share of the cores' time since then, in 0..=1; none where the system does not say.
    pub fn share(&self) -> Option<f64> {
        let (before, now) = (self.0?, Ticks::now()?);
        let all = now.all.checked_sub(before.all).filter(|all| *all > 0)?;
        Some(now.busy.saturating_sub(before.busy) as f64 / all as f64)
    }
}

impl Ticks {
    fn now() -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/stat").ok()?)
    }

    /// Linux, proc_stat(5): user, nice, system, idle, iowait, irq, softirq, steal; what follows is
    /// part of user and nice.
    fn parse(stat: &str) -> Option<Self> {
        let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let ticks = line.split_whitespace().take(8).map(|t| t.parse().ok());
        let ticks: Vec<u64> = ticks.collect::<Option<_>>()?;
        let all: u64 = ticks.iter().sum();
        let idle = ticks.get(3)? + ticks.get(4)?;
        Some(Self {
            busy: all - idle,
            all,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idling_and_waiting_for_disks_is_not_busy() {
        let stat = "cpu  10 20 30 400 500 1 2 3 99 99\ncpu0 1 1 1 1\n";
        let ticks = Ticks { busy: 66, all: 966 };
        assert_eq!(Ticks::parse(stat), Some(ticks));
        assert_eq!(Ticks::parse("intr 5\n"), None);
        assert_eq!(Ticks::parse("cpu  1 2 many\n"), None);
    }
}
