// SPDX-License-Identifier: Apache-2.0
//! However the governor ends, the service is as it was found and nothing stays frozen; whoever comes next takes the
//! jobs up, and each has run once.

use anyhow::{Context, Result, ensure};
use weir_guest::Guest;

use crate::dice::{self, scatter};
use crate::layout::{self, ALL, CALM, SERVICE, SERVICE_CORES};
use crate::stage::Scenario;
use crate::{governor, group};

pub(crate) const SCENARIOS: &[Scenario] = &[
    (
        "after_sigterm_the_service_is_as_found_and_the_frozen_job_goes_on",
        |guest| ends(guest, asked),
    ),
    (
        "after_kill_9_the_watchdog_thaws_the_frozen_job_and_puts_the_service_back",
        |guest| ends(guest, governor::kill),
    ),
    (
        "after_kill_9_of_the_watchdog_too_restore_thaws_the_frozen_job_and_puts_the_service_back",
        |guest| ends(guest, abandon_and_restore),
    ),
    (
        "whoever_is_killed_and_started_again_no_job_is_lost_or_run_twice",
        rounds,
    ),
];

/// Found with cores of its own.
const FOUND: &str = "0-2";

fn begin(guest: &mut Guest) -> Result<()> {
    group::make(guest, SERVICE)?;
    guest.sh(&format!("echo {FOUND} > {}/{SERVICE_CORES}", group::MOUNT))?;
    layout::begin_in(guest, CALM)
}

fn asked(guest: &mut Guest) -> Result<()> {
    guest.sh("read pid < /run/governor.pid; kill -TERM $pid; kill -CONT $pid")?;
    governor::ended(guest)
}

fn abandon_and_restore(guest: &mut Guest) -> Result<()> {
    governor::abandon(guest)?;
    ensure!(
        layout::says_large(guest, "dedup")?,
        "somebody has put things back"
    );
    guest.sh("weir-governor restore")?;
    Ok(())
}

fn ends(guest: &mut Guest, end: fn(&mut Guest) -> Result<()>) -> Result<()> {
    begin(guest)?;
    layout::wait_for_small(guest, "dedup", "freqmine")?;
    layout::load(guest, ALL)?;
    layout::stop_at_large(guest, "dedup", "freqmine")?;
    end(guest)?;
    // At once: nobody is left who would do it later.
    group::says(guest, SERVICE_CORES, FOUND)?;
    for job in ["dedup", "freqmine"] {
        group::says(guest, &format!("weir/{job}/cgroup.freeze"), "0")?;
        group::says(guest, &format!("weir/{job}/cpuset.cpus"), "2-3")?;
        group::wait_for_use(guest, &format!("weir/{job}"))?;
    }
    let governors = guest.cores()?.into_values().map(|core| core.governor);
    assert_eq!(governors.collect::<Vec<_>>(), ["schedutil"; 4]);

    layout::load(guest, CALM)?;
    layout::govern(guest)?;
    layout::wait_for_small(guest, "dedup", "freqmine")?;
    layout::finish(guest)
}

/// At night.
const ROUNDS: u64 = 6;

fn rounds(guest: &mut Guest) -> Result<()> {
    begin(guest)?;
    for round in 0..dice::rounds(ROUNDS)? {
        let dice = scatter(round);
        let killed = Killed {
            large: round % 2 == 0,
            watchdog: dice.is_multiple_of(2),
            restored: dice.is_multiple_of(3),
            after_ms: (dice / 16) % 1000,
        };
        play(guest, &killed).with_context(|| format!("round {round}: {killed:?}"))?;
    }
    layout::finish(guest)?;
    governor::stop(guest, "TERM")?;
    group::says(guest, SERVICE_CORES, FOUND)
}

/// A governor's end.
#[derive(Debug)]
struct Killed {
    /// While the service is about to get both blocks, or else one.
    large: bool,
    /// Its watchdog, too.
    watchdog: bool,
    /// By the stop hook, before the next one starts.
    restored: bool,
    /// Since the load has changed: up to two ticks.
    after_ms: u64,
}

fn play(guest: &mut Guest, killed: &Killed) -> Result<()> {
    layout::load(guest, if killed.large { ALL } else { CALM })?;
    let kill = governor::killing(true, killed.watchdog);
    guest.sh(&format!("usleep {}\n{kill}", killed.after_ms * 1000))?;
    governor::ended(guest)?;
    if killed.restored {
        guest.sh("weir-governor restore")?;
        group::says(guest, SERVICE_CORES, FOUND)?;
    }
    layout::govern(guest)?;
    if killed.large {
        group::wait_for(guest, &[(SERVICE_CORES, "0-1")])
    } else {
        layout::wait_for_small(guest, "dedup", "freqmine")
    }
}
