// SPDX-License-Identifier: Apache-2.0
//! Keeps this process on so many of the machine's CPUs.

use anyhow::{Context, Result, ensure};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Leaves only the last `cpus` of those that are allowed now. Threads started later follow. Without
/// it, an order that starts more threads than cores would be given more than its share.
pub(crate) fn keep(cpus: usize) -> Result<()> {
    let allowed = sched_getaffinity(None).context("reading the CPUs of this process")?;
    let mut kept = CpuSet::new();
    let all = (0..CpuSet::MAX_CPU)
        .rev()
        .filter(|cpu| allowed.is_set(*cpu));
    all.take(cpus).for_each(|cpu| kept.set(cpu));
    let found = kept.count() as usize;
    ensure!(found == cpus, "--cores {cpus}: this machine allows {found}");
    sched_setaffinity(None, &kept).context("choosing the CPUs of this process")
}
