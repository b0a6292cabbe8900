// SPDX-License-Identifier: Apache-2.0
//! Programs inside that use as many cores as they are told.

use anyhow::Result;
use weir_guest::Guest;

use crate::group::MOUNT;

/// Starts one in a cgroup that is there.
pub(crate) fn start(guest: &mut Guest, name: &str, threads: usize, group: &str) -> Result<()> {
    guest.sh(&format!(
        "(echo 0 > {MOUNT}/{group}/cgroup.procs
          exec weir-guest-work /run/work/{name} {threads}) > /run/work/{name}.log 2>&1 &"
    ))?;
    Ok(())
}

/// From now on it uses so many cores, or ends: `end CODE`.
pub(crate) fn order(guest: &mut Guest, name: &str, what: &str) -> Result<()> {
    guest.sh(&format!("echo {what} > /run/work/{name}"))?;
    Ok(())
}
