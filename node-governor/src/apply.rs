// SPDX-License-Identifier: Apache-2.0
//! From the plan to the kernel's files: written on change only, remembered before, put back at the end.
//!
//! ```text
//!            take                    write fails, or another wrote: rest 1 s, 2 s, ... 60 s
//!  found ───────────> ours ────────────────────────────────────────────────> resting ── take ──> ours
//!    ^                 │ │  its cores go offline                               │
//!    └── restore ──────┘ └────────────────────> gone ── they are back ── take ─┘
//! ```

pub mod cpufreq;
mod domain;
pub mod found;
pub mod groups;
mod heat;
pub mod network;
pub mod resctrl;
pub mod shares;

use std::path::PathBuf;
use std::time::Duration;

use tracing::{error, info, warn};

use crate::frequency::Khz;
use crate::node::{Node, NodeCore};
use crate::plan::Plan;
use crate::root::Root;
use crate::sensed::Nanos;
use crate::state::{self, Held, Remembered};
pub use cpufreq::Driver;
use cpufreq::Files;
use domain::Domain;
use found::{Found, Seen};

/// Written values are read back this often.
pub const LOOK: Duration = Duration::from_secs(1);

/// Why the cores are not governed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel offers no files to write.
    #[error("{}: {source}; see weir-governor check", path.display())]
    NoCpufreq {
        /// That was looked for.
        path: PathBuf,
        /// From the system.
        source: std::io::Error,
    },
    /// A core that was asked for cannot be governed.
    #[error("cpu{core}: {reason}")]
    Core {
        /// Its number.
        core: u32,
        /// Why not.
        reason: String,
    },
    /// A file of cpufreq cannot be read or written.
    #[error("{policy}: {source}")]
    Policy {
        /// `policy3`
        policy: String,
        /// Names the file.
        source: std::io::Error,
    },
    /// The state directory cannot be used.
    #[error(transparent)]
    State(#[from] state::Error),
}

/// How a core is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Plans are followed there.
    pub governed: bool,
    /// It has cores online.
    pub online: bool,
    /// The value written last; none where nothing holds.
    pub khz: Option<Khz>,
    /// Frequencies written.
    pub writes: u64,
    /// Writes that failed.
    pub write_errors: u64,
    /// Times that another's value stood where ours should be.
    pub foreign_writes: u64,
}

/// The cores, while they are ours. Puts back what it found when it goes out of scope.
#[derive(Debug)]
pub struct Apply {
    root: Root,
    remembered: Remembered<Found>,
    domains: Vec<Domain>,
    node: Node,
    /// Of each core of the node: the domain that it is in.
    of_core: Vec<usize>,
    online: Vec<bool>,
}

impl Apply {
    /// Reads what there is, without changing it; but first it puts back what a killed run has left.
    pub fn find(
        root: &Root,
        held: &Held,
        cores: Option<&[u32]>,
        driver: Option<Driver>,
    ) -> Result<Apply, Error> {
        let mut remembered = found::remembered(held)?;
        for error in put_back(&mut remembered, root, |_| true) {
            warn!(%error, "left by a former run, and not put back");
        }
        let mut domains = Vec::new();
        let mut node = Node { cores: Vec::new() };
        for files in policies(root, cores)? {
            let failed = |source| Error::Policy {
                policy: files.name.clone(),
                source,
            };
            let found = as_found(&files, root, &remembered, driver).map_err(failed)?;
            let range = files.range(&found.settings).map_err(failed)?;
            let own = files.online().map_err(failed)?;
            for number in own.iter().copied() {
                node.cores.push(NodeCore {
                    number,
                    range: range.clone(),
                });
            }
            domains.push((files, found, own));
        }
        node.cores.sort_by_key(|core| core.number);
        let domains = domains.into_iter().map(|(files, found, own)| {
            let position = |number| node.cores.iter().position(|core| core.number == number);
            Domain::new(files, found, own.into_iter().filter_map(position).collect())
        });
        let domains: Vec<Domain> = domains.collect();
        let mut of_core = vec![usize::MAX; node.cores.len()];
        for (number, domain) in domains.iter().enumerate() {
            domain
                .cores()
                .iter()
                .for_each(|core| of_core[*core] = number);
        }
        Ok(Apply {
            root: root.clone(),
            remembered,
            domains,
            of_core,
            online: vec![true; node.cores.len()],
            node,
        })
    }

    /// The cores that can be planned for.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// From here on the cores are ours. What was found is on disk before the first write; a core that cannot be
    /// taken is an error, and those before it are put back.
    pub fn take(&mut self) -> Result<(), Error> {
        let taken = self.take_all();
        if taken.is_err() {
            self.end();
        }
        taken
    }

    fn take_all(&mut self) -> Result<(), Error> {
        let found = self.domains.iter().map(|domain| {
            let name = domain.files().name.clone();
            (name, domain.found().clone())
        });
        self.remembered.remember(found)?;
        for domain in &mut self.domains {
            domain.take().map_err(|source| Error::Policy {
                policy: domain.files().name.clone(),
                source,
            })?;
        }
        Ok(())
    }

    /// Writes what differs from what was written before. Cores that change together get the highest of theirs.
    pub fn apply(&mut self, plan: &Plan, now: Nanos) {
        for domain in &mut self.domains {
            let settings = domain.cores().iter().filter(|core| self.online[**core]);
            let wanted = settings
                .filter_map(|core| plan.cores.get(*core))
                .map(|s| s.frequency);
            if let Some(wanted) = wanted.max() {
                domain.set(wanted, now);
            }
        }
    }

    /// Every [`LOOK`]: which cores are there, and whether what was written holds. What a former run has left is
    /// put back where its core is there by now.
    pub fn look(&mut self, now: Nanos) {
        for domain in &mut self.domains {
            // A domain that cannot be read is not known to have changed.
            let Some(online) = domain.look(now) else {
                continue;
            };
            for core in domain.cores() {
                self.online[*core] = online.contains(&self.node.cores[*core].number);
            }
        }
        self.renew();
        let is_back = |files: &Files| {
            let ours = self.domains.iter().any(|d| d.files().name == files.name);
            !ours && files.online().is_ok_and(|cores| !cores.is_empty())
        };
        // Those that fail are told at the end.
        put_back(&mut self.remembered, &self.root, is_back);
    }

    /// Limits that somebody else has set while ours were there are what is to be put back from now on.
    fn renew(&mut self) {
        for domain in self.domains.iter_mut().filter(|d| d.is_changed()) {
            let name = &domain.files().name;
            let renewed = Seen::now(&self.root, domain.files()).map_err(|source| Error::Policy {
                policy: name.clone(),
                source,
            });
            let renewed = renewed.and_then(|seen| {
                let found = Found {
                    driver: domain.found().driver,
                    settings: seen.settings,
                };
                self.remembered.renew(name, found.clone())?;
                Ok(found)
            });
            match renewed {
                Ok(found) => domain.renew(found),
                // Nothing of ours is written there before it has succeeded.
                Err(error) => warn!(%error, "another's limits are not remembered yet"),
            }
        }
    }

    /// Puts back everything that is remembered, also of former runs; how much is left, which stays remembered.
    pub fn end(&mut self) -> usize {
        // Files that are open for writing are closed first.
        for domain in &mut self.domains {
            domain.let_go();
        }
        self.renew();
        let left = put_back(&mut self.remembered, &self.root, |_| true);
        for error in &left {
            error!(%error, "not put back; try weir-governor restore");
        }
        left.len()
    }

    /// Of each core of the node, in its order.
    pub fn status(&self, core: usize) -> Status {
        let domain = self.of_core.get(core).and_then(|of| self.domains.get(*of));
        Status {
            online: self.is_online(core),
            ..domain.map(Domain::status).unwrap_or_default()
        }
    }

    /// Whether a core of the node is there.
    pub fn is_online(&self, core: usize) -> bool {
        self.online.get(core).copied().unwrap_or_default()
    }
}

impl Drop for Apply {
    /// For whoever has not called [`Apply::end`], as a thread that panics.
    fn drop(&mut self) {
        self.end();
    }
}

/// Those with the wanted cores, each whole.
fn policies(root: &Root, cores: Option<&[u32]>) -> Result<Vec<Files>, Error> {
    let path = root.path("sys/devices/system/cpu/cpufreq");
    let all = Files::all(root).map_err(|source| Error::NoCpufreq {
        path: path.clone(),
        source,
    })?;
    let mut wanted = Vec::new();
    let mut missing: Vec<u32> = cores.unwrap_or_default().to_vec();
    for files in all {
        let own = files.online().map_err(|source| Error::Policy {
            policy: files.name.clone(),
            source,
        })?;
        missing.retain(|core| !own.contains(core));
        let is_wanted = |core: &u32| cores.is_none_or(|cores| cores.contains(core));
        let Some(first) = own.iter().copied().find(is_wanted) else {
            continue;
        };
        if let Some(other) = own.iter().copied().find(|core| !is_wanted(core)) {
            let reason =
                format!("changes together with cpu{other}: cores must name both or neither");
            return Err(Error::Core {
                core: first,
                reason,
            });
        }
        wanted.push(files);
    }
    if let Some(core) = missing.first() {
        let reason = "named in cores, but offline or without cpufreq".to_owned();
        return Err(Error::Core {
            core: *core,
            reason,
        });
    }
    if wanted.is_empty() {
        let source = std::io::Error::other("no core is online with it");
        return Err(Error::NoCpufreq { path, source });
    }
    Ok(wanted)
}

/// The settings that a policy is put back to: those remembered, else those there now.
fn as_found(
    files: &Files,
    root: &Root,
    remembered: &Remembered<Found>,
    driver: Option<Driver>,
) -> std::io::Result<Found> {
    let name = &files.name;
    let driver = driver.map_or_else(|| files.offers(), Ok)?;
    let seen = Seen::now(root, files)?;
    if let Some((limit, by)) = seen.held_down {
        warn!(
            policy = name,
            limit, by, "limited by the kernel itself; put back without that limit"
        );
    }
    let found = remembered.found().get(name).cloned();
    let found = found.unwrap_or(Found {
        driver,
        settings: seen.settings,
    });
    let (limit, highest) = (found.settings.max, files.highest()?);
    if limit < highest {
        warn!(
            policy = name,
            limit, highest, "found limited, and not driven above that"
        );
    }
    Ok(found)
}

/// Puts back the frequencies that a run has left which was killed; what could not be put back, and is remembered
/// still.
pub fn restore(root: &Root, held: &Held) -> Result<Vec<Error>, state::Error> {
    Ok(put_back(&mut found::remembered(held)?, root, |_| true))
}

/// Each that is wanted, whatever becomes of the others; then the record, once; and only then what may fail without
/// harm, the log. What is left.
fn put_back(
    remembered: &mut Remembered<Found>,
    root: &Root,
    wanted: impl Fn(&Files) -> bool,
) -> Vec<Error> {
    let (mut back, mut left) = (Vec::new(), Vec::new());
    for (name, found) in remembered.found() {
        let files = Files::named(root, name);
        if !wanted(&files) {
            continue;
        }
        match files.restore(found.driver, &found.settings) {
            Ok(()) => back.push(name.clone()),
            Err(source) => left.push(Error::Policy {
                policy: name.clone(),
                source,
            }),
        }
    }
    if !back.is_empty() {
        left.extend(remembered.forget(&back).err().map(Error::from));
        info!(back = back.len(), left = left.len(), "put back as found");
    }
    left
}
