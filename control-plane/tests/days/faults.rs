// SPDX-License-Identifier: Apache-2.0
//! What fails, by chance: each fault has its own mean time between two of its kind, and an end.

use std::time::Duration;

use rand::RngExt;
use rand::seq::IndexedRandom;

use crate::host::LIES;
use crate::world::{STEP, World};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    /// A host's process begins anew, with counters at 0.
    ResetHost,
    /// weir-control does not reach a host, or is refused.
    HideHost,
    /// Sidecars do not reach a host.
    CutOffHost,
    /// A host says what is not so.
    Lie,
    /// A host joins the cluster or leaves it.
    Configure,
    /// weir-control is killed and begins anew with nothing.
    RestartControl,
    /// It stands still.
    PauseControl,
    /// The lock has another holder; the one before hears of it later.
    MoveLock,
    /// All streams of a sidecar break, with what is on its way.
    BreakStreams,
    /// What is sent takes long.
    SlowNetwork,
    /// What is sent comes twice.
    Repeat,
    /// A sidecar's reports are nonsense.
    LyingReports,
    /// A VM traps and begins anew.
    RestartVm,
    /// A worker thread stands still.
    PauseVm,
    /// A sidecar's clock leaps ahead.
    LeapAhead,
    /// weir-control's time of day is another.
    TimeOfDay,
}

/// Of each fault the seconds between two of its kind.
const ALL: [(Fault, f64); 16] = [
    (Fault::ResetHost, 60.0),
    (Fault::HideHost, 60.0),
    (Fault::CutOffHost, 60.0),
    (Fault::Lie, 60.0),
    (Fault::Configure, 120.0),
    (Fault::RestartControl, 180.0),
    (Fault::PauseControl, 180.0),
    (Fault::MoveLock, 120.0),
    (Fault::BreakStreams, 60.0),
    (Fault::SlowNetwork, 90.0),
    (Fault::Repeat, 60.0),
    (Fault::LyingReports, 120.0),
    (Fault::RestartVm, 60.0),
    (Fault::PauseVm, 60.0),
    (Fault::LeapAhead, 180.0),
    (Fault::TimeOfDay, 180.0),
];

/// What ends by itself, and when.
#[derive(Debug, Default)]
pub(crate) struct Going {
    hosts: Vec<(Duration, usize)>,
    pub(crate) slow: Duration,
    pub(crate) repeats: Duration,
    /// Until then this sidecar's reports are nonsense.
    pub(crate) lies: (Duration, usize),
    /// Until then weir-control may not know what is asked for.
    pub(crate) unknown_demand: Duration,
}

/// For how long weir-control may not know what is asked for.
fn forgotten_after(fault: Fault) -> Option<Duration> {
    match fault {
        // Six half-lives of what is remembered of requests.
        Fault::LyingReports => Some(Duration::from_secs(60)),
        Fault::PauseControl | Fault::BreakStreams | Fault::SlowNetwork => {
            Some(Duration::from_secs(25))
        }
        _ => None,
    }
}

/// The record of a VM that has not written it for so long is a dead one's to the others.
const SILENT: Duration = Duration::from_secs(3);

impl World {
    /// Lets things fail.
    pub(crate) fn fail(&mut self) {
        for (fault, seconds) in ALL {
            if self.rng.random_bool(STEP.as_secs_f64() / seconds) {
                *self.tally.faults.entry(fault).or_default() += 1;
                if let Some(time) = forgotten_after(fault) {
                    let until = self.now() + time;
                    self.going.unknown_demand = self.going.unknown_demand.max(until);
                }
                self.suffer(fault);
            }
        }
        self.end_faults();
    }

    /// Ends what is over.
    fn end_faults(&mut self) {
        let (now, hosts) = (self.now(), &mut self.hosts);
        self.going.hosts.retain(|(until, host)| {
            if *until <= now {
                let host = &mut hosts[*host];
                (host.lie, host.hidden, host.cut_off) = (None, None, false);
            }
            *until > now
        });
    }

    /// Ends all of them.
    pub(crate) fn mend(&mut self) {
        self.going
            .hosts
            .iter_mut()
            .for_each(|(until, _)| *until = Duration::ZERO);
        self.end_faults();
        self.going = Going::default();
        for control in &mut self.controls {
            control.paused = Duration::ZERO;
        }
        for vm in self
            .sidecars
            .iter_mut()
            .flat_map(|sidecar| &mut sidecar.vms)
        {
            vm.paused = Duration::ZERO;
        }
    }

    fn until(&mut self, longest: u64) -> Duration {
        self.now() + Duration::from_millis(self.rng.random_range(250..longest * 1_000))
    }

    /// One host of few at a time: what a single one says moves no level.
    fn fault_at_a_host(&mut self) -> Option<usize> {
        let until = self.until(30);
        let host = self.rng.random_range(0..self.hosts.len());
        self.going.hosts.is_empty().then(|| {
            self.going.hosts.push((until, host));
            host
        })
    }

    fn suffer(&mut self, fault: Fault) {
        let sidecar = self.rng.random_range(0..self.sidecars.len());
        let vm = self.rng.random_range(0..self.sidecars[sidecar].vms.len());
        let control = self.rng.random_range(0..self.controls.len());
        match fault {
            Fault::ResetHost => {
                let host = self.rng.random_range(0..self.hosts.len());
                self.reset_host(host);
            }
            Fault::HideHost => {
                let refused = self.rng.random_bool(0.5);
                if let Some(host) = self.fault_at_a_host() {
                    self.hosts[host].hidden = Some(refused);
                }
            }
            Fault::CutOffHost => {
                if let Some(host) = self.fault_at_a_host() {
                    self.hosts[host].cut_off = true;
                }
            }
            Fault::Lie => {
                if let Some(host) = self.fault_at_a_host() {
                    self.hosts[host].lie = LIES.choose(&mut self.rng).copied();
                }
            }
            Fault::Configure => {
                let least = self.hosts.len() - 2;
                let hosts = self.rng.random_range(least..=self.hosts.len());
                self.configure(hosts);
            }
            Fault::RestartControl => self.restart_control(control),
            Fault::PauseControl => self.controls[control].paused = self.until(15),
            Fault::MoveLock => self.move_lock(),
            Fault::BreakStreams => self.break_streams(sidecar),
            Fault::SlowNetwork => self.going.slow = self.until(20),
            Fault::Repeat => self.going.repeats = self.until(10),
            Fault::LyingReports => {
                self.going.lies = (self.until(20), sidecar);
                self.sidecars[sidecar].has_lied = true;
            }
            Fault::RestartVm => self.restart_vm(sidecar, vm),
            Fault::PauseVm => {
                let until = self.until(8);
                self.sidecars[sidecar].was_silent |= until >= self.now() + SILENT;
                self.sidecars[sidecar].vms[vm].paused = until;
            }
            Fault::LeapAhead => {
                let leap = Duration::from_millis(self.rng.random_range(0..60_000));
                self.sidecars[sidecar].was_silent |= leap >= SILENT;
                self.sidecars[sidecar].pass(leap);
            }
            Fault::TimeOfDay => self.time_of_day_ms = self.rng.random_range(0..1 << 41),
        }
    }
}
