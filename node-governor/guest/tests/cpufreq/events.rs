// SPDX-License-Identifier: Apache-2.0
//! Hot functions of programs inside set the frequencies of their cores.

use anyhow::Result;
use weir_guest::{Guest, Transitions};

use crate::stage::Scenario;
use crate::{governor, hot};

pub(crate) const SCENARIOS: &[Scenario] = &[
    (
        "each_call_takes_its_own_core_through_document_002s_states",
        calls,
    ),
    (
        "a_program_that_is_killed_in_its_call_leaves_no_core_fast",
        killed_program,
    ),
    ("a_call_that_is_moved_to_another_core_is_followed", moved),
    (
        "a_governor_that_is_started_in_a_call_finds_it",
        started_late,
    ),
];

/// Longer than document 002's threshold: no busy machine makes a call of half of it look long.
const THREE_STATE: &str = "policy: { three_state: { threshold: 2s } }";

const IDLE: u32 = 1_000_000;
const HOT: u32 = 2_000_000;
const OVER: u32 = 2_600_000;

fn calls(guest: &mut Guest) -> Result<()> {
    governor::start(guest, THREE_STATE)?;
    for core in 0..4 {
        hot::wait_for_khz(guest, core, IDLE)?;
    }
    guest.forget_transitions()?;
    hot::forever(guest, 0, 0)?;
    hot::once(guest, 1, 0, 1000)?;
    hot::once(guest, 2, 1, 4000)?;
    guest.wait_until("[ $(pidof weir-events-play | wc -w) = 1 ]")?;
    hot::wait_for_khz(guest, 2, IDLE)?;
    assert_eq!(guest.registers_khz()?, [OVER, IDLE, IDLE, IDLE]);
    let once =
        |steps: &[(u32, u32)]| -> Transitions { steps.iter().map(|step| (*step, 1)).collect() };
    assert_eq!(guest.transitions(0)?, once(&[(IDLE, HOT), (HOT, OVER)]));
    assert_eq!(guest.transitions(1)?, once(&[(IDLE, HOT), (HOT, IDLE)]));
    assert_eq!(
        guest.transitions(2)?,
        once(&[(IDLE, HOT), (HOT, OVER), (OVER, IDLE)])
    );
    // Written on change only, and nothing has changed here.
    assert_eq!(guest.transitions(3)?, once(&[]));
    Ok(())
}

fn killed_program(guest: &mut Guest) -> Result<()> {
    governor::start(guest, "policy: { three_state: { threshold: 100ms } }")?;
    for core in 0..4 {
        hot::forever(guest, core, 0)?;
    }
    for core in 0..4 {
        hot::wait_for_khz(guest, core, OVER)?;
    }
    assert_eq!(guest.registers_khz()?, [OVER; 4]);
    hot::kill(guest)?;
    for core in 0..4 {
        hot::wait_for_khz(guest, core, IDLE)?;
    }
    assert_eq!(guest.registers_khz()?, [IDLE; 4]);
    Ok(())
}

fn started_late(guest: &mut Guest) -> Result<()> {
    governor::start(guest, THREE_STATE)?;
    hot::forever(guest, 3, 0)?;
    hot::wait_for_khz(guest, 3, OVER)?;
    governor::abandon(guest)?;
    // By another program, or by hand, whatever it is meanwhile.
    guest.sh("echo 1000000 > /sys/devices/system/cpu/cpu3/cpufreq/scaling_setspeed")?;
    governor::start(guest, THREE_STATE)?;
    hot::wait_for_khz(guest, 3, OVER)?;
    assert_eq!(guest.registers_khz()?[3], OVER);
    Ok(())
}

fn moved(guest: &mut Guest) -> Result<()> {
    governor::start(guest, "policy: { three_state: { threshold: 100ms } }")?;
    hot::forever(guest, 1, 0)?;
    hot::wait_for_khz(guest, 1, OVER)?;
    guest.sh(
        "for task in /proc/$(pidof weir-events-play)/task/*; do taskset -p 4 ${task##*/}; done",
    )?;
    hot::wait_for_khz(guest, 2, OVER)?;
    hot::wait_for_khz(guest, 1, IDLE)?;
    assert_eq!(guest.registers_khz()?, [IDLE, IDLE, OVER, IDLE]);
    Ok(())
}
