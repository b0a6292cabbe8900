// SPDX-License-Identifier: Apache-2.0
//! The loop: sense, plan, apply, sleep until the next tick.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use tracing::{info_span, warn};

use crate::apply::resctrl::Offered;
use crate::apply::shares::Shares;
use crate::apply::{Apply, LOOK};
use crate::book::energy::{EnergyBook, Source};
use crate::book::shares::SharesBook;
use crate::book::{Book, Shared};
use crate::config::{self, Config};
use crate::cores::Cores;
use crate::energy::Attribution;
use crate::plan::Plan;
use crate::planner::Planner;
use crate::restore;
use crate::root::Root;
use crate::sense::energy::{Zone, packages};
use crate::sense::mesh::Link;
use crate::sense::peers::Peers;
use crate::sense::power::{Power, made_for, slowest};
use crate::sense::service::ServiceClock;
use crate::sense::{Measured, Sense, now};
use crate::sensed::{Core, Nanos, Sensed};
use crate::state::Held;
use crate::supervisor::Supervisor;
use crate::timeline::Recorder;
use weir_telemetry::SPANS;

/// Everything of one node, taken. What was found is put back when it goes out of scope.
#[derive(Debug)]
pub struct Governor {
    /// First, as fields are dropped in their order: nothing holds up that cores are put back.
    apply: Option<Apply>,
    shares: Option<Divided>,
    sense: Sense,
    planner: Planner,
    zones: Vec<Zone>,
    power: Power,
    /// Of the kernel's files.
    root: Root,
    attribution: Attribution,
    /// What RAPL had counted when energy was attributed last.
    attributed: Option<f64>,
    sensed: Sensed,
    plan: Plan,
    link: Link,
    book: Shared,
    looked: Nanos,
}

/// Cores that are divided between a service and jobs.
#[derive(Debug)]
struct Divided {
    shares: Shares,
    clock: ServiceClock,
    /// None where no policy goes by it.
    jobs_clock: Option<ServiceClock>,
    timeline: Recorder,
    peers: Peers,
    /// Of each service beside the first.
    others: Vec<Measured>,
}

type Division = (
    Option<crate::cores::Policy>,
    Option<Divided>,
    Option<SharesBook>,
);

/// How cores are divided, if they are.
fn divide(
    config: &mut Config,
    zones: &[Zone],
    root: &Root,
    held: &Held,
) -> anyhow::Result<Division> {
    let Some(written) = &mut config.shares else {
        return Ok((None, None, None));
    };
    if let Some(power) = written.division.power() {
        packages(zones).context("core_policy.heracles.guaranteed: no RAPL: what the packages draw is not known; leave it out, or see weir-governor check")?;
        power.watts = power.watts.or_else(|| made_for(zones));
        power.watts.context("core_policy.heracles.tdp: required, for powercap does not say what the packages are made for")?;
    }
    let asked = written.division.resctrl();
    if !asked.is_empty() {
        let offered = Offered::read(root);
        for (field, part) in asked {
            let has = offered.has(part);
            has.map_err(|reason| written.refuse(field, reason))?;
        }
        written.division.offer(offered.ways(), offered.bandwidth());
    }
    let machine = root.online()?;
    let policy = written.policy(&machine)?;
    let shown = SharesBook {
        target: policy.target(),
        machine: machine.clone(),
        others: written
            .others
            .iter()
            .map(|other| (other.name.clone(), Cores::NONE))
            .collect(),
        ..SharesBook::new(&written.jobs)
    };
    let divided = Divided::find(written, &machine, root, held)?;
    Ok((Some(policy), Some(divided), Some(shown)))
}

impl Governor {
    /// Finds out what the machine has, refuses what it has not, and takes what is governed: in this order, so that
    /// nothing is changed before everything is known to be good.
    pub fn start(mut config: Config, root: &Root) -> anyhow::Result<Governor> {
        let held = Held::take(&config.state_directory, root)?;
        // Before anything can be refused: whoever was killed has left it, and this may be the only one to come.
        for error in restore::of(root, &held) {
            warn!(error, "left by a former run, and not put back");
        }
        let mut apply = match config.policy {
            Some(_) => Some(Apply::find(
                root,
                &held,
                config.cores.as_deref(),
                config.driver,
            )?),
            None => None,
        };
        let node = apply.as_ref().map(|apply| apply.node().clone());
        let node = node.unwrap_or_default();
        config.fits(&node)?;
        let (zones, refused) = Zone::all(root);
        for (path, error) in refused {
            warn!(?path, %error, "energy is not counted there");
        }
        let (cores, mut shares, shown) = divide(&mut config, &zones, root, &held)?;
        let sense = Sense::open(&config, root, &node)?;
        let book = Shared::new(Book {
            shares: shown,
            mesh_connected: config.mesh.as_ref().map(|_| false),
            energy: EnergyBook {
                classes: config.energy.classes,
                source: packages(&zones).map_or(Source::Model, |_| Source::Rapl),
                ..EnergyBook::default()
            },
            ..Book::new(&node, &zones)
        });
        let sensed = Sensed {
            cores: vec![Core::default(); node.cores.len()],
            ..Sensed::default()
        };
        if let Some(divided) = &mut shares {
            divided.shares.take(now())?;
        }
        if let Some(apply) = &mut apply {
            apply.take()?;
        }
        let pressure = config.mesh.as_ref().map(|mesh| mesh.pressure);
        let pressure = pressure.unwrap_or_default();
        Ok(Governor {
            apply,
            shares,
            sense,
            attribution: Attribution::new(&node, config.energy.power),
            attributed: packages(&zones),
            planner: Planner::with(node, config.policy.as_ref(), cores, pressure, config.tick),
            zones,
            power: Power::default(),
            root: root.clone(),
            sensed,
            plan: Plan::default(),
            link: Link::default(),
            book,
            looked: Nanos::default(),
        })
    }

    /// What has happened.
    pub fn book(&self) -> Shared {
        self.book.clone()
    }

    /// Where a latency that is measured elsewhere is put.
    pub fn measured(&self) -> Measured {
        self.sense.measured()
    }

    /// The same of each service beside the first.
    pub fn measured_others(&self) -> Vec<Measured> {
        let others = self.shares.as_ref().map(|divided| divided.others.clone());
        others.unwrap_or_default()
    }

    /// What the governors of other nodes say of their jobs.
    pub fn peers(&self) -> Peers {
        let peers = self.shares.as_ref().map(|divided| divided.peers.clone());
        peers.unwrap_or_default()
    }

    /// What the mesh says, and what it is told.
    pub fn link(&self) -> Link {
        self.link.clone()
    }

    /// One decision; how long to sleep. Once a second it looks at more; the other times, where cores are not
    /// divided, nothing is allocated.
    pub fn tick(&mut self, now: Nanos, late: bool) -> Duration {
        let _span = info_span!(target: SPANS, parent: None, "decision", late).entered();
        self.sense(now);
        self.planner.plan(&self.sensed, &mut self.plan);
        // Cores before frequencies: requests wait for those.
        if let (Some(divided), Some(plan)) = (&mut self.shares, &self.plan.shares) {
            divided.shares.apply(plan, now);
        }
        if let Some(apply) = &mut self.apply {
            apply.apply(&self.plan, now);
        }
        self.write(late);
        // Last: what takes longer does not hold up a decision that is due.
        if now.since(self.looked) >= LOOK {
            self.looked = now;
            self.look(now);
        }
        self.plan.sleep
    }

    /// Of the cores that the service really has; none while it is not there.
    fn capacity(&self) -> Option<u32> {
        let service = match &self.shares {
            Some(divided) => Some(divided.shares.service_cores()?),
            None => None,
        };
        Some(self.plan.capacity_millicores(self.planner.node(), service))
    }

    fn look(&mut self, now: Nanos) {
        self.sense.look();
        if let Some(apply) = &mut self.apply {
            apply.look(now);
        }
        if let Some(divided) = &mut self.shares {
            divided.shares.look(now);
            divided.clock.look(divided.shares.service());
            if let Some(clock) = &mut divided.jobs_clock {
                clock.look(divided.shares.jobs());
            }
        }
        self.zones.iter_mut().for_each(Zone::read);
        let counted = packages(&self.zones);
        self.share(now, counted);
        let last = std::mem::replace(&mut self.attributed, counted);
        let used = counted.zip(last).map(|(counted, last)| counted - last);
        self.attribution.close(&self.sensed, used);
        let ledger = self.attribution.ledger();
        self.book.lock().energy.ledger.clone_from(ledger);
    }

    /// What the service and the jobs share beside cores, where a plan goes by it.
    fn share(&mut self, now: Nanos, counted: Option<f64>) {
        let resources = &mut self.sensed.resources;
        resources.watts = self.power.watts(now, counted);
        let Some(plan) = &self.plan.shares else {
            return;
        };
        resources.egress = self.shares.as_ref().and_then(|it| it.shares.egress());
        resources.memory = self.shares.as_ref().and_then(|it| it.shares.bandwidth());
        if plan.ceilings.speed.is_some() {
            resources.slowest = slowest(&self.root, &plan.service);
        }
    }

    fn sense(&mut self, now: Nanos) {
        self.sense.sense(now, &mut self.sensed);
        if let Some(apply) = &self.apply {
            for (index, core) in self.sensed.cores.iter_mut().enumerate() {
                core.online = apply.is_online(index);
            }
        }
        self.sensed.row = self.link.row();
        self.sensed.waiting.clear();
        let first = self.planner.waits_since(&self.sensed);
        self.sensed.waiting.extend(first);
        if let Some(divided) = &mut self.shares {
            if divided.clock.vanished() {
                divided.clock.look(divided.shares.service());
            }
            self.sensed.service_cpu = divided.clock.sense(now);
            self.sensed.others.resize(divided.others.len(), None);
            for (tail, measured) in self.sensed.others.iter_mut().zip(&divided.others) {
                *tail = measured.last(*tail);
            }
            let jobs = divided.jobs_clock.as_mut();
            self.sensed.jobs_cpu = jobs.and_then(|clock| clock.sense(now));
            let states = divided.shares.states(now);
            self.sensed.jobs.clear();
            self.sensed.jobs.extend_from_slice(states);
            self.sensed.elsewhere.clear();
            self.sensed.elsewhere.extend(divided.peers.ended());
        }
    }

    fn write(&mut self, late: bool) {
        let capacity = self.capacity();
        if let Some(capacity) = capacity {
            self.link.report(capacity);
        }
        let mut book = self.book.lock();
        book.passed(self.sensed.now);
        book.energy.answered(&self.sensed);
        let cores = &self.planner.node().cores;
        // One that is left to others may be as fast as it can.
        let frequency = |core: usize| book.cores[core].status.khz.unwrap_or(cores[core].range.max);
        self.attribution.passed(&self.sensed, frequency);
        book.decided(
            &self.sensed,
            &self.plan,
            self.apply.as_ref(),
            self.sense.counts(),
        );
        book.late += u64::from(late);
        if let Some(connected) = &mut book.mesh_connected {
            *connected = self.link.is_connected();
        }
        book.ticked = Some(SystemTime::now());
        book.used(&self.zones);
        let (Some(divided), Some(plan), Some(shown)) =
            (&mut self.shares, &self.plan.shares, &mut book.shares)
        else {
            return;
        };
        shown.decided(self.sensed.now, &self.sensed, plan, self.plan.pressed);
        shown.capacity_millicores = capacity;
        shown.write_errors = divided.shares.write_errors();
        for job in 0..self.sensed.jobs.len() {
            shown.job(job, divided.shares.facts(job));
        }
        shown.peers.clear();
        shown.peers.extend(divided.peers.book());
        divided.timeline.record(unix_ms(), shown, self.sensed.tail);
    }

    /// Puts back what was found; how much is left.
    pub fn end(mut self) -> usize {
        // What takes moments before what may take as long as jobs need to end.
        if let Some(divided) = &mut self.shares {
            divided.shares.let_go();
        }
        let mut left = self.apply.as_mut().map_or(0, Apply::end);
        if let Some(divided) = &mut self.shares {
            left += divided.shares.end();
            // How the jobs have ended that were told to.
            self.sense(now());
            self.write(false);
        }
        if let Some(divided) = self.shares {
            divided.timeline.end(unix_ms());
        }
        left
    }
}

impl Divided {
    fn find(
        config: &config::Shares,
        machine: &Cores,
        root: &Root,
        held: &Held,
    ) -> anyhow::Result<Divided> {
        let timeline = Recorder::open(&config.batch.logs)
            .with_context(|| format!("batch.logs: {}", config.batch.logs.display()))?;
        let heeds_jobs_cpu = config.division.heeds_jobs_cpu();
        Ok(Divided {
            shares: Shares::find(config, machine, root, held)?,
            clock: ServiceClock::default(),
            jobs_clock: heeds_jobs_cpu.then(ServiceClock::default),
            timeline,
            peers: Peers::new(config.division.peers().0),
            others: config.others.iter().map(|_| Measured::default()).collect(),
        })
    }
}

fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u64)
}

/// The loop in a thread of its own. Stops, and has put everything back, when it goes out of scope.
#[derive(Debug)]
pub struct Running {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<usize>>,
}

impl Running {
    /// Starts, and waits for the first decision: from then on another's write is seen. `ended` is called when the
    /// loop ends, for whatever reason.
    pub fn start(
        governor: Governor,
        ended: impl FnOnce() + Send + 'static,
    ) -> std::io::Result<Running> {
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let (first, decided) = mpsc::channel();
        let thread = std::thread::Builder::new().name("governor".into());
        let thread = thread.spawn(move || {
            let _ended = OnDrop(Some(ended));
            govern(governor, &told, Supervisor::find(), first)
        })?;
        // Nothing is sent: it is closed by the first decision, or by a panic in it.
        let _ = decided.recv();
        Ok(Running {
            stop,
            thread: Some(thread),
        })
    }

    /// Ends the loop; an error where it has panicked, or could not put everything back.
    pub fn stop(mut self) -> anyhow::Result<()> {
        self.end()
    }

    fn end(&mut self) -> anyhow::Result<()> {
        let Some(thread) = self.thread.take() else {
            return Ok(());
        };
        self.stop.store(true, Ordering::Release);
        thread.thread().unpark();
        match thread.join() {
            Ok(0) => Ok(()),
            Ok(left) => anyhow::bail!("{left} left as they are"),
            Err(_) => anyhow::bail!("the loop has panicked"),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Whoever wants to know calls stop.
        let _ = self.end();
    }
}

/// Whatever a policy says.
const SHORTEST: Duration = Duration::from_millis(1);

/// Deadlines are absolute: a tick that takes long does not move the next ones, and those that were slept through
/// are not made up for.
fn govern(
    mut governor: Governor,
    stop: &AtomicBool,
    mut supervisor: Supervisor,
    first: mpsc::Sender<()>,
) -> usize {
    let mut first = Some(first);
    let mut deadline = now();
    let mut slept = Duration::ZERO;
    while !stop.load(Ordering::Acquire) {
        let woken = now();
        if woken < deadline {
            std::thread::park_timeout(deadline.since(woken));
            continue;
        }
        let late = woken.since(deadline) > slept / 10 && slept > Duration::ZERO;
        slept = governor.tick(woken, late).max(SHORTEST);
        supervisor.ticked(woken);
        drop(first.take());
        let next = Nanos(deadline.0 + slept.as_nanos() as u64);
        deadline = next.max(now());
    }
    supervisor.ends();
    governor.end()
}

struct OnDrop<F: FnOnce()>(Option<F>);

impl<F: FnOnce()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        if let Some(ended) = self.0.take() {
            ended();
        }
    }
}
