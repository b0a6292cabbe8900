// SPDX-License-Identifier: Apache-2.0
//! Programs, governors and watchdogs that are killed and started again: no core stays fast.

use anyhow::{Context, Result};
use weir_guest::Guest;

use crate::dice::{self, scatter};
use crate::stage::Scenario;
use crate::{governor, hot};

pub(crate) const SCENARIOS: &[Scenario] = &[(
    "whoever_is_killed_and_started_again_no_core_stays_fast",
    rounds,
)];

/// At night.
const ROUNDS: u64 = 9;

const CONFIGURATION: &str = "policy: { three_state: { threshold: 100ms } }";

/// Who is killed in a round: one of the three at least.
#[derive(Debug)]
struct Victims {
    program: bool,
    governor: bool,
    watchdog: bool,
}

fn rounds(guest: &mut Guest) -> Result<()> {
    let found = guest.cores()?;
    governor::start(guest, CONFIGURATION)?;
    for round in 0..dice::rounds(ROUNDS)? {
        let dice = scatter(round);
        let cores = [dice % 4, (dice / 4) % 4].map(|core| core as usize);
        let who = (dice / 16) % 7 + 1;
        let victims = Victims {
            program: who & 1 != 0,
            governor: who & 2 != 0,
            watchdog: who & 4 != 0,
        };
        play(guest, cores, &victims, (dice / 256) % 200)
            .with_context(|| format!("round {round}: {victims:?}, hot on {cores:?}"))?;
    }
    governor::stop(guest, "TERM")?;
    for (number, core) in guest.cores()? {
        assert_eq!(core.governor, found[&number].governor, "core {number}");
    }
    Ok(())
}

/// They are killed so many milliseconds after the program has begun to start.
fn play(guest: &mut Guest, cores: [usize; 2], victims: &Victims, after: u64) -> Result<()> {
    hot::together(guest, cores)?;
    let mut kill = governor::killing(victims.governor, victims.watchdog);
    if victims.program {
        kill.push_str("killall -9 weir-events-play\n");
    }
    guest.sh(&format!("usleep {}\n{kill}", after * 1000))?;
    if victims.governor {
        governor::ended(guest)?;
        governor::start(guest, CONFIGURATION)?;
    }
    if !victims.program {
        // Whoever governs now knows of what goes on.
        for core in cores {
            hot::wait_for_khz(guest, core, 2_600_000)?;
        }
        hot::kill(guest)?;
    }
    for core in 0..4 {
        hot::wait_for_khz(guest, core, 1_000_000)?;
    }
    assert_eq!(guest.registers_khz()?, [1_000_000; 4]);
    Ok(())
}
