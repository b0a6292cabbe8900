// SPDX-License-Identifier: Apache-2.0
//! Wall time and CPU time of a piece of work.

use std::iter::Sum;
use std::ops::Add;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use nix::time::{ClockId, clock_gettime};

/// What a piece of work took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Cost {
    pub(super) wall: Duration,
    /// User and system time, of all threads.
    pub(super) cpu: Duration,
}

impl Add for Cost {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            wall: self.wall + other.wall,
            cpu: self.cpu + other.cpu,
        }
    }
}

impl Sum for Cost {
    fn sum<I: Iterator<Item = Self>>(costs: I) -> Self {
        costs.fold(Self::default(), Add::add)
    }
}

/// What `work` costs this process. Nothing else may run in it.
pub(super) fn of<T>(work: impl FnOnce() -> Result<T>) -> Result<(T, Cost)> {
    let (began, before) = (Instant::now(), own_cpu()?);
    let result = work()?;
    let (wall, cpu) = (began.elapsed(), own_cpu()?.saturating_sub(before));
    Ok((result, Cost { wall, cpu }))
}

/// Runs a program to its end. No other child may end meanwhile.
pub(super) fn of_program(command: &mut Command) -> Result<Cost> {
    let (began, before) = (Instant::now(), childrens_cpu()?);
    let status = command
        .status()
        .with_context(|| format!("cannot run {command:?}"))?;
    let (wall, cpu) = (began.elapsed(), childrens_cpu()?.saturating_sub(before));
    ensure!(status.success(), "{command:?}: {status}");
    Ok(Cost { wall, cpu })
}

fn own_cpu() -> Result<Duration> {
    Ok(clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID)?.into())
}

/// Of children that have been waited for.
fn childrens_cpu() -> Result<Duration> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    Ok(duration(usage.user_time()) + duration(usage.system_time()))
}

fn duration(time: TimeVal) -> Duration {
    let micros = time.tv_sec() * 1_000_000 + time.tv_usec();
    Duration::from_micros(u64::try_from(micros).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_loop_and_a_busy_child_cost_cpu_time() {
        let busy = || Ok((0..10_000_000u64).fold(1, |a: u64, b| a.rotate_left(5) ^ b));
        let (result, cost) = of(busy).unwrap();
        assert!(result != 0 && cost.cpu > Duration::ZERO && cost.wall > Duration::ZERO);
        let child = Command::new("python3")
            .args(["-c", "sum(range(10**6))"])
            .status();
        assert!(child.unwrap().success());
        assert!(childrens_cpu().unwrap() > Duration::ZERO);
    }

    #[test]
    fn a_program_that_fails_is_an_error() {
        let error = of_program(Command::new("python3").args(["-c", "exit(3)"])).unwrap_err();
        assert!(error.to_string().contains("exit status: 3"), "{error}");
    }
}
