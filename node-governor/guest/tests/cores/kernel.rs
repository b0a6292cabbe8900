// SPDX-License-Identifier: Apache-2.0
//! The guest's kernel does what its cgroup files say.

use anyhow::Result;
use weir_guest::Guest;

use crate::group::{self, MOUNT};
use crate::stage::Scenario;
use crate::work;

pub(crate) const SCENARIOS: &[Scenario] = &[(
    "a_group_is_on_the_cores_that_it_is_given_and_stands_still_while_it_is_frozen",
    honours,
)];

fn honours(guest: &mut Guest) -> Result<()> {
    group::make(guest, "busy")?;
    group::wait_for(
        guest,
        &[
            ("busy/cpuset.cpus", ""),
            ("busy/cpuset.cpus.effective", "0-3"),
        ],
    )?;
    guest.sh(&format!("echo 2 > {MOUNT}/busy/cpuset.cpus"))?;
    work::order(guest, "busy", "2")?;
    work::start(guest, "busy", 2, "busy")?;
    group::wait_for_use(guest, "busy")?;
    group::wait_for_places(guest, "busy", "2")?;
    guest.sh(&format!("echo 1,3 > {MOUNT}/busy/cpuset.cpus"))?;
    group::wait_for_places(guest, "busy", "1,3")?;
    // Once it has cores of its own, it cannot inherit again.
    let inherit = guest.run(&format!("echo > {MOUNT}/busy/cpuset.cpus"))?;
    assert!(inherit.output.contains("No space left"), "{inherit:?}");

    guest.sh(&format!("echo 1 > {MOUNT}/busy/cgroup.freeze"))?;
    group::wait_until_frozen(guest, "busy")?;
    let used = group::used_us(guest, "busy")?;
    guest.sh("usleep 200000")?;
    assert_eq!(group::used_us(guest, "busy")?, used);
    guest.sh(&format!("echo 0 > {MOUNT}/busy/cgroup.freeze"))?;
    group::wait_for_use(guest, "busy")
}
