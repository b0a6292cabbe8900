// SPDX-License-Identifier: Apache-2.0
//! What every policy writes, seen from inside and from outside. `three_state` is in `events.rs`.

use anyhow::Result;
use weir_guest::{Guest, Transitions};

use crate::stage::Scenario;
use crate::{governor, hot};

pub(crate) const SCENARIOS: &[Scenario] = &[
    (
        "performance_and_powersave_are_the_ends_of_the_table",
        |guest| {
            constant(guest, "performance", 2_600_000)?;
            constant(guest, "powersave", 1_000_000)
        },
    ),
    ("ondemand_follows_what_each_core_does", ondemand),
    ("two_state_is_hot_for_as_long_as_the_call", two_state),
    (
        "multi_state_climbs_each_functions_own_ladder_on_each_core",
        multi_state,
    ),
    (
        "iso_latency_gives_power_back_while_calls_are_quick_and_takes_it_when_nothing_is_known",
        iso_latency,
    ),
    (
        "slow_to_fast_is_fast_at_once_until_it_has_learned_that_calls_are_quick",
        slow_to_fast,
    ),
    (
        "octopus_man_and_hipster_come_down_while_calls_are_quick_and_are_at_the_top_when_nothing_is_known",
        |guest| {
            climbing(guest, "octopus_man")?;
            climbing(guest, "hipster")
        },
    ),
    (
        "rubik_is_fast_until_it_knows_what_calls_need_and_then_no_faster_than_that",
        rubik,
    ),
];

fn constant(guest: &mut Guest, policy: &str, khz: u32) -> Result<()> {
    governor::start(guest, &format!("policy: {{ {policy}: {{}} }}"))?;
    for core in 0..4 {
        hot::wait_for_khz(guest, core, khz)?;
    }
    let set = guest.cores()?.into_values().map(|core| core.set_khz);
    assert_eq!(set.collect::<Vec<_>>(), [Some(khz); 4]);
    assert_eq!(guest.registers_khz()?, [khz; 4]);
    governor::stop(guest, "TERM")
}

fn ondemand(guest: &mut Guest) -> Result<()> {
    governor::start(guest, "policy: { ondemand: {} }")?;
    guest.sh("taskset -c 3 yes > /dev/null 2>&1 &")?;
    hot::wait_for_khz(guest, 3, 2_600_000)?;
    // Nothing runs on the second one for long.
    hot::wait_for_khz(guest, 1, 1_000_000)?;
    assert_eq!(guest.registers_khz()?[3], 2_600_000);
    guest.sh("killall yes")?;
    hot::wait_for_khz(guest, 3, 1_000_000)
}

fn two_state(guest: &mut Guest) -> Result<()> {
    governor::start(
        guest,
        "policy: { two_state: { idle: 1.2 GHz, hot: 2.4 GHz } }",
    )?;
    for core in 0..4 {
        hot::wait_for_khz(guest, core, 1_200_000)?;
    }
    guest.forget_transitions()?;
    hot::forever(guest, 0, 15)?;
    hot::once(guest, 2, 0, 1000)?;
    hot::wait_for_khz(guest, 0, 2_400_000)?;
    guest.wait_until("[ $(pidof weir-events-play | wc -w) = 1 ]")?;
    hot::wait_for_khz(guest, 2, 1_200_000)?;
    assert_eq!(
        guest.registers_khz()?,
        [2_400_000, 1_200_000, 1_200_000, 1_200_000]
    );
    let steps = [(1_200_000, 2_400_000), (2_400_000, 1_200_000)];
    assert_eq!(guest.transitions(2)?, steps.map(|step| (step, 1)).into());
    assert_eq!(guest.transitions(3)?, Transitions::new());
    Ok(())
}

fn multi_state(guest: &mut Guest) -> Result<()> {
    governor::start(
        guest,
        "policy:
  multi_state:
    ladder:
      - { after: 0ms, frequency: 1.4 GHz }
      - { after: 2s, frequency: 1.8 GHz }
functions:
  - id: 5
    ladder:
      - { after: 0ms, frequency: 2.2 GHz }
      - { after: 2s, frequency: 2.4 GHz }",
    )?;
    for core in 0..4 {
        hot::wait_for_khz(guest, core, 1_000_000)?;
    }
    guest.forget_transitions()?;
    hot::forever(guest, 1, 0)?;
    hot::forever(guest, 2, 5)?;
    hot::forever(guest, 3, 0)?;
    hot::forever(guest, 3, 5)?;
    for (core, khz) in [(1, 1_800_000), (2, 2_400_000), (3, 2_400_000)] {
        hot::wait_for_khz(guest, core, khz)?;
    }
    assert_eq!(
        guest.registers_khz()?,
        [1_000_000, 1_800_000, 2_400_000, 2_400_000]
    );
    let steps = [(1_000_000, 1_400_000), (1_400_000, 1_800_000)];
    assert_eq!(guest.transitions(1)?, steps.map(|step| (step, 1)).into());
    let steps = [(1_000_000, 2_200_000), (2_200_000, 2_400_000)];
    assert_eq!(guest.transitions(2)?, steps.map(|step| (step, 1)).into());
    Ok(())
}

fn iso_latency(guest: &mut Guest) -> Result<()> {
    governor::start(
        guest,
        "policy: { iso_latency: { target: 10s, lower_fast: 1.0, stale: 2s } }\ntail: { window: 1s }",
    )?;
    // They are written one after the other.
    for core in 0..4 {
        hot::wait_for_khz(guest, core, 2_600_000)?;
    }
    assert_eq!(guest.registers_khz()?, [2_600_000; 4]);
    hot::calls(guest, 1, 20)?;
    for core in 0..4 {
        hot::wait_for_khz(guest, core, 1_000_000)?;
    }
    assert_eq!(guest.registers_khz()?, [1_000_000; 4]);
    hot::kill(guest)?;
    for core in 0..4 {
        hot::wait_for_khz(guest, core, 2_600_000)?;
    }
    Ok(())
}

/// Step by step.
fn climbing(guest: &mut Guest, policy: &str) -> Result<()> {
    governor::start(
        guest,
        &format!(
            "policy: {{ {policy}: {{ target: 10s, interval: 200ms, stale: 2s }} }}\ntail: {{ window: 1s }}"
        ),
    )?;
    for core in 0..4 {
        hot::wait_for_khz(guest, core, 2_600_000)?;
    }
    guest.forget_transitions()?;
    hot::calls(guest, 1, 20)?;
    for core in 0..4 {
        hot::wait_for_khz(guest, core, 1_000_000)?;
    }
    let steps = guest.transitions(2)?;
    assert!(steps.len() > 3, "{policy}: {steps:?}");
    hot::kill(guest)?;
    for core in 0..4 {
        hot::wait_for_khz(guest, core, 2_600_000)?;
    }
    governor::stop(guest, "TERM")
}

fn rubik(guest: &mut Guest) -> Result<()> {
    governor::start(
        guest,
        "policy: { rubik: { target: 10s, idle: 1.4 GHz } }\ntail: { window: 1s }",
    )?;
    hot::wait_for_khz(guest, 1, 1_400_000)?;
    hot::forever(guest, 1, 0)?;
    hot::wait_for_khz(guest, 1, 2_600_000)?;
    hot::kill(guest)?;
    hot::wait_for_khz(guest, 1, 1_400_000)?;
    // Of 20 ms calls the lowest frequency is enough.
    hot::calls(guest, 1, 20)?;
    hot::wait_for_khz(guest, 1, 1_000_000)?;
    hot::kill(guest)
}

fn slow_to_fast(guest: &mut Guest) -> Result<()> {
    const IDLE: u32 = 1_000_000;
    const SLOW: u32 = 2_000_000;
    const FAST: u32 = 2_600_000;
    governor::start(
        guest,
        "policy: { slow_to_fast: { target: 10s } }\ntail: { window: 1s }",
    )?;
    hot::wait_for_khz(guest, 1, IDLE)?;
    guest.forget_transitions()?;
    hot::once(guest, 1, 0, 500)?;
    guest.wait_until("! pidof weir-events-play")?;
    hot::wait_for_khz(guest, 1, IDLE)?;
    assert_eq!(
        guest.transitions(1)?,
        [((IDLE, FAST), 1), ((FAST, IDLE), 1)].into()
    );
    // Calls of 0.5 s where ten would do: once that has been measured, they have time to be slow.
    hot::calls(guest, 1, 500)?;
    hot::wait_for_khz(guest, 1, SLOW)
}
