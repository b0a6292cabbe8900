// SPDX-License-Identifier: Apache-2.0
//! One core: what it does, how far it is and what that took.

use super::chip::Chip;
use super::idle::{AGAIN_NS, Allowed, Menu, State};
use super::load::CLASSES;

/// A core is still for so long when its frequency changes (section 4.1).
const TRANSITION_NS: f64 = 10_000.0;
/// No event is to come.
pub(super) const NEVER: u64 = u64::MAX;

/// What a core is working on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Work {
    /// A shard: number of the query, of the shard, of the phase.
    Shard(usize, usize, usize),
    /// What other threads of the service do.
    Aside,
    /// A tick of the governor.
    Tick,
}

/// Times are in nanoseconds of the simulation.
#[derive(Debug)]
pub(super) struct Core {
    /// What its frequency is, as a step of the chip.
    pub(super) step: usize,
    pub(super) work: Option<Work>,
    /// What is left of the work's phase, in nanoseconds at the highest frequency.
    left_ns: f64,
    /// Before that the thread waits, with the clock off.
    wait_ns: f64,
    /// And then the core does something else.
    stall_ns: f64,
    idle: State,
    idle_from: u64,
    allowed: Allowed,
    menu: Menu,
    /// When a timer on this core is due, as far as that is known.
    pub(super) timer: u64,
    /// When an idle core looks again for a deeper state.
    again: u64,
    /// Accounts go up to here.
    at: u64,
    /// Of the shard that it works on.
    pub(super) class: usize,
    /// Entry of the hot function, while it runs.
    pub(super) hot: Option<u64>,
    /// Not idle since the governor's last tick.
    pub(super) busy_ns: u64,
    pub(super) accounts: Accounts,
}

/// What a core has done and taken.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Accounts {
    /// Work, in nanoseconds at the highest frequency.
    pub(super) done_ns: f64,
    /// Working, by step.
    pub(super) active_ns: Vec<u64>,
    /// Idle, by state.
    pub(super) idle_ns: [u64; 4],
    /// Idle, by step: what the core was told, whatever its state makes of it.
    pub(super) idle_at_ns: Vec<u64>,
    pub(super) active_j: f64,
    /// Of it, in shards, by step and class.
    pub(super) class_j: Vec<[f64; CLASSES]>,
    pub(super) idle_j: f64,
    pub(super) transitions: u64,
}

impl Core {
    pub(super) fn new(steps: usize, allowed: Allowed) -> Self {
        let menu = Menu::default();
        Self {
            step: 0,
            work: None,
            left_ns: 0.0,
            wait_ns: 0.0,
            stall_ns: 0.0,
            idle: menu.choose(allowed, NEVER),
            idle_from: 0,
            allowed,
            menu,
            timer: NEVER,
            again: NEVER,
            at: 0,
            class: 0,
            hot: None,
            busy_ns: 0,
            accounts: Accounts {
                active_ns: vec![0; steps],
                class_j: vec![[0.0; CLASSES]; steps],
                idle_at_ns: vec![0; steps],
                ..Accounts::default()
            },
        }
    }

    /// Whether the package must be awake for it.
    pub(super) fn is_awake(&self) -> bool {
        self.work.is_some() || self.idle != State::C6
    }

    /// When something happens here, if nothing is changed before.
    pub(super) fn next(&self, chip: &Chip) -> u64 {
        match self.work {
            None => self.again,
            Some(_) => {
                let takes = self.wait_ns + self.stall_ns + self.left_ns / chip.speed[self.step];
                self.at + takes.ceil() as u64
            }
        }
    }

    /// Brings the accounts up to `now`.
    pub(super) fn advance(&mut self, chip: &Chip, now: u64) {
        let passed = now - self.at;
        if passed == 0 {
            return;
        }
        self.at = now;
        if self.work.is_none() {
            self.rest(chip, self.idle, passed);
            return;
        }
        let waited = self.wait_ns.min(passed as f64);
        self.wait_ns -= waited;
        let waited = waited.round() as u64;
        self.rest(chip, State::C1, waited);
        let worked = passed - waited;
        let accounts = &mut self.accounts;
        accounts.active_ns[self.step] += worked;
        let joules = chip.active_w[self.step] * worked as f64 * 1e-9;
        accounts.active_j += joules;
        if let Some(Work::Shard(..)) = self.work {
            accounts.class_j[self.step][self.class] += joules;
        }
        self.busy_ns += worked;
        let stalled = self.stall_ns.min(worked as f64);
        self.stall_ns -= stalled;
        let done = ((worked as f64 - stalled) * chip.speed[self.step]).min(self.left_ns);
        self.left_ns -= done;
        accounts.done_ns += done;
    }

    fn rest(&mut self, chip: &Chip, state: State, passed: u64) {
        self.accounts.idle_ns[state as usize] += passed;
        self.accounts.idle_at_ns[self.step] += passed;
        self.accounts.idle_j += chip.idle_w(state, self.step) * passed as f64 * 1e-9;
    }

    /// Something new to do. An idle core has to wake first.
    pub(super) fn begin(&mut self, work: Work, work_ns: f64, now: u64) {
        if self.work.is_none() {
            self.menu.woken(now - self.idle_from);
            self.stall_ns = self.idle.exit_ns() as f64;
            self.again = NEVER;
        }
        self.work = Some(work);
        self.left_ns = work_ns;
    }

    /// What other threads do here stops: what is left of it.
    pub(super) fn interrupt(&mut self) -> f64 {
        match self.work {
            Some(Work::Aside) => std::mem::take(&mut self.left_ns),
            _ => 0.0,
        }
    }

    /// Of the phase of its work.
    pub(super) fn left_ns(&self) -> f64 {
        self.left_ns
    }

    /// The next phase of the same work; before it the thread waits.
    pub(super) fn go_on(&mut self, work: Work, work_ns: f64, wait_ns: f64) {
        self.work = Some(work);
        self.left_ns += work_ns;
        self.wait_ns += wait_ns;
    }

    /// Other work comes in between.
    pub(super) fn stall(&mut self, nanos: f64) {
        self.stall_ns += nanos;
    }

    /// There is nothing more to do.
    pub(super) fn fall_idle(&mut self, now: u64) {
        self.work = None;
        (self.left_ns, self.wait_ns, self.stall_ns) = (0.0, 0.0, 0.0);
        let timer_ns = match self.timer > now {
            true => self.timer - now,
            false => NEVER,
        };
        self.idle = self.menu.choose(self.allowed, timer_ns);
        self.idle_from = now;
        self.again = match (self.allowed, self.idle) {
            (Allowed::All, state) if state != State::C6 => now + AGAIN_NS,
            _ => NEVER,
        };
    }

    /// A timer interrupt finds the core idle still.
    pub(super) fn fall_deeper(&mut self) {
        self.idle = State::C6;
        self.again = NEVER;
    }

    pub(super) fn set(&mut self, step: usize) {
        if step != self.step {
            self.step = step;
            self.accounts.transitions += 1;
            if self.work.is_some() {
                self.stall_ns += TRANSITION_NS;
            }
        }
    }
}
