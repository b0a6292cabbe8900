// SPDX-License-Identifier: Apache-2.0
//! The loop: sense, plan, apply, sleep until the next tick.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use tracing::warn;

use crate::apply::{Apply, LOOK};
use crate::book::{Book, Shared};
use crate::config::Config;
use crate::plan::Plan;
use crate::planner::Planner;
use crate::root::Root;
use crate::sense::energy::Zone;
use crate::sense::{Measured, Sense, now};
use crate::sensed::{Core, Nanos, Sensed};
use crate::state::Held;

/// Everything of one node, cores taken. What was found is put back when it goes out of scope.
#[derive(Debug)]
pub struct Governor {
    /// First, as fields are dropped in their order: nothing holds up that cores are put back.
    apply: Apply,
    sense: Sense,
    planner: Planner,
    zones: Vec<Zone>,
    sensed: Sensed,
    plan: Plan,
    book: Shared,
    looked: Nanos,
}

impl Governor {
    /// Finds out what the machine has, refuses what it has not, and takes the cores: in this order, so that
    /// nothing is changed before everything is known to be good.
    pub fn start(config: Config, root: &Root) -> anyhow::Result<Governor> {
        let held = Held::take(&config.state_directory, root)?;
        let mut apply = Apply::find(root, &held, config.cores.as_deref(), config.driver)?;
        config.fits(apply.node())?;
        let node = apply.node().clone();
        let sense = Sense::open(&config, root, &node)?;
        let (zones, refused) = Zone::all(root);
        for (path, error) in refused {
            warn!(?path, %error, "energy is not counted there");
        }
        let book = Shared::new(Book::new(&node, &zones));
        let cores = vec![Core::default(); node.cores.len()];
        apply.take()?;
        Ok(Governor {
            apply,
            sense,
            planner: Planner::with(
                node,
                config.policy.as_ref(),
                None,
                crate::pressure::Params::default(),
                config.tick,
            ),
            zones,
            sensed: Sensed {
                cores,
                ..Sensed::default()
            },
            plan: Plan::default(),
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

    /// One decision; how long to sleep. Once a second it looks at more, the other times nothing is allocated.
    pub fn tick(&mut self, now: Nanos, late: bool) -> Duration {
        if now.since(self.looked) >= LOOK {
            self.looked = now;
            self.sense.look();
            self.apply.look(now);
            self.zones.iter_mut().for_each(Zone::read);
        }
        self.sense.sense(now, &mut self.sensed);
        for (index, core) in self.sensed.cores.iter_mut().enumerate() {
            core.online = self.apply.status(index).online;
        }
        self.planner.plan(&self.sensed, &mut self.plan);
        self.book.lock().passed(now);
        self.apply.apply(&self.plan, now);
        let mut book = self.book.lock();
        book.decided(&self.sensed, &self.plan, &self.apply, self.sense.counts());
        book.late += u64::from(late);
        book.used(&self.zones);
        self.plan.sleep
    }

    /// Puts back what was found; how much is left.
    pub fn end(mut self) -> usize {
        self.apply.end()
    }
}

/// The loop in a thread of its own. Stops, and has put everything back, when it goes out of scope.
#[derive(Debug)]
pub struct Running {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<usize>>,
}

impl Running {
    /// Starts; `ended` is called when the loop ends, for whatever reason.
    pub fn start(
        governor: Governor,
        ended: impl FnOnce() + Send + 'static,
    ) -> std::io::Result<Running> {
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let thread = std::thread::Builder::new().name("governor".into());
        let thread = thread.spawn(move || {
            let _ended = OnDrop(Some(ended));
            govern(governor, &told)
        })?;
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
fn govern(mut governor: Governor, stop: &AtomicBool) -> usize {
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
        let next = Nanos(deadline.0 + slept.as_nanos() as u64);
        deadline = next.max(now());
    }
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
