// SPDX-License-Identifier: Apache-2.0
//! Programs that may run on some cores only: they have what the thread has that starts them (`man 2
//! sched_setaffinity`).

use anyhow::{Context, Result};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Those of this thread.
pub(super) fn allowed() -> Result<Vec<usize>> {
    let set = sched_getaffinity(None).context("the cores of this process")?;
    let cores = (0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core));
    Ok(cores.collect())
}

/// What `act` starts runs on these cores.
pub(super) fn on<T>(cores: &[usize], act: impl FnOnce() -> T) -> Result<T> {
    let before = sched_getaffinity(None).context("the cores of this process")?;
    let mut set = CpuSet::new();
    cores.iter().for_each(|core| set.set(*core));
    sched_setaffinity(None, &set).with_context(|| format!("running on cores {cores:?}"))?;
    let done = act();
    sched_setaffinity(None, &before).context("running on all cores again")?;
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_started_has_the_cores_and_the_starter_all_again() {
        let all = allowed().unwrap();
        let inside = on(&all[..1], || allowed().unwrap()).unwrap();
        assert_eq!(inside, all[..1]);
        assert_eq!(allowed().unwrap(), all);
        assert!(on(&[], || ()).is_err());
        assert_eq!(allowed().unwrap(), all);
    }
}
