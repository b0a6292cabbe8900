// SPDX-License-Identifier: Apache-2.0
//! One policy of the kernel in our hands: cores that change together.

use std::fs::File;
use std::io;
use std::time::Duration;

use tracing::{info, warn};

use super::Status;
use super::cpufreq::{Driver, Files, Settings, USERSPACE, get, put, shows};
use super::found::Found;
use crate::frequency::Khz;
use crate::sensed::Nanos;

/// After the first trouble; each further one doubles it ...
const SHORTEST_REST: Duration = Duration::from_secs(1);
/// ... up to this: a daemon that insists is met once a minute. As long without trouble, and it begins anew.
const LONGEST_REST: Duration = Duration::from_secs(60);

/// Cores that change together.
#[derive(Debug)]
pub(super) struct Domain {
    files: Files,
    found: Found,
    /// Positions in the node.
    cores: Vec<usize>,
    hold: Hold,
    /// If there is trouble now.
    next_rest: Duration,
    /// When the last trouble was.
    troubled: Nanos,
    /// The last look failed.
    blind: bool,
    /// Another has set limits that are not remembered yet: nothing of ours is written over them before.
    changed: bool,
    status: Status,
}

#[derive(Debug)]
enum Hold {
    /// Nothing of ours is there.
    Free,
    Ours(Ours),
    Resting {
        until: Nanos,
        /// Another sets its limits meanwhile; else a write has failed, and what is there may be ours.
        theirs: bool,
    },
    /// No core of it is online.
    Gone,
}

#[derive(Debug)]
struct Ours {
    handles: Handles,
    /// None: nothing yet since it was taken.
    wrote: Option<Khz>,
    /// What stood there then, where the driver rounds.
    stood: Option<u32>,
}

/// Kept open, so that a write is one call.
#[derive(Debug)]
enum Handles {
    Userspace {
        governor: File,
        setspeed: File,
        /// Drivers without a table take any frequency and set one that is near.
        rounds: bool,
    },
    Clamp {
        min: File,
        max: File,
        /// Before anything is written.
        highest: u32,
    },
}

impl Domain {
    pub(super) fn new(files: Files, found: Found, cores: Vec<usize>) -> Self {
        Self {
            files,
            found,
            cores,
            hold: Hold::Free,
            next_rest: SHORTEST_REST,
            troubled: Nanos::default(),
            blind: false,
            changed: false,
            status: Status::default(),
        }
    }

    pub(super) fn files(&self) -> &Files {
        &self.files
    }

    pub(super) fn found(&self) -> &Found {
        &self.found
    }

    pub(super) fn cores(&self) -> &[usize] {
        &self.cores
    }

    pub(super) fn status(&self) -> Status {
        let (governed, khz) = match &self.hold {
            Hold::Ours(ours) => (true, ours.wrote),
            _ => (false, None),
        };
        Status {
            governed,
            khz,
            ..self.status
        }
    }

    /// Others have set its limits since it was found.
    pub(super) fn is_changed(&self) -> bool {
        self.changed
    }

    /// As it is to be put back from now on.
    pub(super) fn renew(&mut self, found: Found) {
        self.found = found;
        self.changed = false;
    }

    /// Makes the files ours.
    pub(super) fn take(&mut self) -> io::Result<()> {
        let handles = match self.found.driver {
            Driver::Userspace => {
                self.files.write("scaling_governor", USERSPACE)?;
                let governor = self.files.open("scaling_governor")?;
                let setspeed = self.files.open("scaling_setspeed")?;
                let rounds = !self.files.has_table();
                Handles::Userspace {
                    governor,
                    setspeed,
                    rounds,
                }
            }
            Driver::Clamp => Handles::Clamp {
                min: self.files.open("scaling_min_freq")?,
                max: self.files.open("scaling_max_freq")?,
                highest: self.files.settings()?.max,
            },
        };
        self.hold = Hold::Ours(Ours {
            handles,
            wrote: None,
            stood: None,
        });
        Ok(())
    }

    /// Writes the frequency if another was written before, and if the files are ours.
    pub(super) fn set(&mut self, wanted: Khz, now: Nanos) {
        if self.changed {
            return;
        }
        if let Hold::Resting { until, .. } = self.hold
            && now >= until
            && let Err(error) = self.take()
        {
            self.failed(&error, now);
        }
        let Hold::Ours(ours) = &mut self.hold else {
            return;
        };
        if ours.wrote == Some(wanted) {
            return;
        }
        match ours.write(wanted) {
            Ok(()) => self.status.writes += 1,
            Err(error) => self.failed(&error, now),
        }
    }

    /// Which cores are online; whether what was written holds. None where that cannot be told: then everything
    /// stays as it is, for want of file descriptors is no reason to let a core go.
    pub(super) fn look(&mut self, now: Nanos) -> Option<Vec<u32>> {
        let seen = self.see(now);
        if let Err(error) = &seen
            && !self.blind
        {
            warn!(policy = self.files.name, %error, "cannot be looked at; governed as before");
        }
        self.blind = seen.is_err();
        seen.ok()
    }

    fn see(&mut self, now: Nanos) -> io::Result<Vec<u32>> {
        let online = self.files.online()?;
        match (&self.hold, online.is_empty()) {
            (Hold::Gone, false) => {
                info!(policy = self.files.name, "cores are back");
                if let Err(error) = self.take() {
                    self.failed(&error, now);
                }
            }
            (Hold::Gone | Hold::Free, _) => {}
            (_, true) => self.gone(),
            (Hold::Ours(_), false) => self.compare(now)?,
            (Hold::Resting { .. }, false) => self.compare_resting(),
        }
        Ok(online)
    }

    /// While another's limits stand, nothing of ours does: what is there now is theirs, and stays.
    fn compare_resting(&mut self) {
        let theirs = matches!(self.hold, Hold::Resting { theirs: true, .. });
        if theirs
            && self.found.driver == Driver::Clamp
            && let Ok(there) = self.files.settings()
        {
            let found = &self.found.settings;
            self.changed |= (there.min, there.max) != (found.min, found.max);
        }
    }

    /// Closes the files without putting anything back, but for what is ours beside another's limit.
    pub(super) fn let_go(&mut self) {
        // Another may have come since the last look.
        if let Ok(Some((wrote, theirs))) = self.others() {
            self.yield_to(wrote, &theirs);
        }
        self.compare_resting();
        self.hold = Hold::Free;
    }

    pub(super) fn restore(&self) -> io::Result<()> {
        self.files.restore(self.found.driver, &self.found.settings)
    }

    fn gone(&mut self) {
        warn!(policy = self.files.name, "no core of it is online any more");
        self.hold = Hold::Gone;
    }

    /// Whether another wrote.
    fn compare(&mut self, now: Nanos) -> io::Result<()> {
        match self.others()? {
            Some((wrote, theirs)) => self.overwritten(wrote, &theirs, now),
            None if now.since(self.troubled) >= LONGEST_REST => self.next_rest = SHORTEST_REST,
            None => {}
        }
        Ok(())
    }

    /// What we wrote, and what another put there, if so. Limits that the kernel itself sets (heat, power) are not
    /// another's.
    fn others(&self) -> io::Result<Option<(Khz, Settings)>> {
        let Hold::Ours(ours) = &self.hold else {
            return Ok(None);
        };
        let Some(wrote) = ours.wrote.filter(|khz| !ours.stands(*khz)) else {
            return Ok(None);
        };
        let there = self.files.settings()?;
        let holds = match self.found.driver {
            Driver::Userspace => {
                let within = (there.min..=there.max).contains(&wrote.0);
                there.governor == USERSPACE && (ours.is_speed(wrote, there.setspeed) || !within)
            }
            Driver::Clamp => is_clamped(wrote, there.min, there.max),
        };
        Ok((!holds).then_some((wrote, there)))
    }

    fn overwritten(&mut self, wrote: Khz, there: &Settings, now: Nanos) {
        warn!(
            policy = self.files.name,
            %wrote,
            theirs = ?there,
            rest = ?self.next_rest,
            "another program sets this core"
        );
        self.status.foreign_writes += 1;
        self.yield_to(wrote, there);
        self.rest(now, true);
    }

    /// What is left of ours must not outlast us; what is theirs stays, also at the end.
    fn yield_to(&mut self, wrote: Khz, there: &Settings) {
        if self.found.driver != Driver::Clamp {
            return;
        }
        let found = &self.found.settings;
        if there.max == wrote.0 {
            self.tried(self.files.write("scaling_max_freq", found.max));
        }
        if there.min == wrote.0 || there.max < wrote.0 {
            self.tried(self.files.write("scaling_min_freq", found.min));
        }
        self.changed = true;
    }

    fn tried(&self, result: io::Result<()>) {
        if let Err(error) = result {
            warn!(policy = self.files.name, %error, "not put back for now");
        }
    }

    /// A file could not be read or written: for one of three reasons.
    fn failed(&mut self, error: &io::Error, now: Nanos) {
        if self.files.online().is_ok_and(|cores| cores.is_empty()) {
            return self.gone();
        }
        // Of two limits one may be written, and it is ours: nobody else's governor makes that fail.
        if self.found.driver == Driver::Userspace
            && let Ok(Some((wrote, theirs))) = self.others()
        {
            return self.overwritten(wrote, &theirs, now);
        }
        self.status.write_errors += 1;
        warn!(policy = self.files.name, %error, rest = ?self.next_rest, "not written; as found for now");
        self.tried(self.restore());
        self.rest(now, false);
    }

    fn rest(&mut self, now: Nanos, theirs: bool) {
        let until = Nanos(now.0 + self.next_rest.as_nanos() as u64);
        self.hold = Hold::Resting { until, theirs };
        self.troubled = until;
        self.next_rest = (self.next_rest * 2).min(LONGEST_REST);
    }
}

impl Ours {
    /// By the files that are open, sooner than by reading all settings; where it says no, those say why.
    fn stands(&self, wrote: Khz) -> bool {
        match &self.handles {
            Handles::Userspace {
                governor, setspeed, ..
            } => {
                let there = get(setspeed);
                // What cannot be read does not stand.
                there.is_some() && self.is_speed(wrote, there) && shows(governor, USERSPACE)
            }
            Handles::Clamp { min, max, .. } => get(min)
                .zip(get(max))
                .is_some_and(|(min, max)| is_clamped(wrote, min, max)),
        }
    }

    /// Whether `scaling_setspeed` shows what was written, or what stood there then.
    fn is_speed(&self, wrote: Khz, there: Option<u32>) -> bool {
        [Some(wrote.0), self.stood].contains(&there)
    }

    fn write(&mut self, wanted: Khz) -> io::Result<()> {
        let text = |file: &File| put(file, format_args!("{}\n", wanted.0));
        match &self.handles {
            Handles::Userspace {
                setspeed, rounds, ..
            } => {
                text(setspeed)?;
                self.stood = rounds.then(|| get(setspeed)).flatten();
            }
            // The lower limit never passes the upper.
            Handles::Clamp { min, max, highest } => {
                let rises = wanted.0 >= self.wrote.map_or(*highest, |khz| khz.0);
                let (first, second) = if rises { (max, min) } else { (min, max) };
                text(first)?;
                text(second)?;
            }
        }
        self.wrote = Some(wanted);
        Ok(())
    }
}

/// Whether these limits are what was written. The kernel lowers both where it is hot.
fn is_clamped(wrote: Khz, min: u32, max: u32) -> bool {
    min == max && max <= wrote.0
}
