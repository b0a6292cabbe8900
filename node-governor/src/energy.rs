// SPDX-License-Identifier: Apache-2.0
//! Whose energy it was: that of a window of time, divided among hot functions by the time in state that their calls
//! had on each core.
//!
//! ```text
//!  calls that run and have ended, the frequency in force, use of cores ──passed──> Window (times in state)
//!  RAPL's joules of the window, or none ───────────────────────close───> split (pure) ──> Ledger
//! ```
//! Without RAPL the whole is MODELLED, too: what [`Power`] says of the times. With it the model only says what a
//! second in one state takes against a second in another.

mod power;
mod split;
mod window;

pub use power::Power;
pub use split::split;
pub use window::{Step, Window};

use crate::node::{Khz, Node};
use crate::sensed::{FUNCTIONS, Nanos, Sensed};

/// Position of what cores did outside of hot calls.
pub const OTHER: usize = FUNCTIONS;
/// Position of what belongs to nobody: idle cores and the rest of the package.
pub const SHARED: usize = FUNCTIONS + 1;
/// Hot functions by their numbers, and these two.
pub const PARTS: usize = FUNCTIONS + 2;
/// Frequencies that are told apart; all that are seen after so many count with the last.
const STEPS: usize = 64;
/// Calls of a tick that are kept to tell how long any ran; of more, the rest are taken to run beside them.
const CALLS: usize = 8192;

/// Joules since the start.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ledger {
    /// By frequency, as they were first seen.
    pub steps: Vec<(Khz, [f64; PARTS])>,
}

impl Ledger {
    /// Of all frequencies.
    pub fn part(&self, part: usize) -> f64 {
        let of = |(_, joules): &(Khz, [f64; PARTS])| joules.get(part).copied().unwrap_or(0.0);
        self.steps.iter().map(of).sum()
    }
}

/// Divides energy, window by window.
#[derive(Clone, Debug)]
pub struct Attribution {
    power: Power,
    window: Window,
    cores: Vec<CoreTimes>,
    /// Of calls since the last tick, from and until.
    calls: Vec<(u64, u64)>,
    ledger: Ledger,
    at: Option<Nanos>,
}

/// Of one core in the window.
#[derive(Clone, Debug, Default)]
struct CoreTimes {
    /// In hot calls since the last tick, by function.
    hot_ns: [u64; FUNCTIONS],
    /// By step, not divided yet: all of it, and what of it was in hot calls.
    steps: Vec<(f64, f64)>,
    /// Not idle since the start, up to the last reading of that.
    busy_s: f64,
    read: Nanos,
    /// And how much of it has been divided, with what was foreseen since that reading.
    divided_s: f64,
}

impl Attribution {
    /// Allocates all that it will ever need.
    pub fn new(node: &Node, power: Power) -> Self {
        let lowest = node.cores.iter().map(|core| core.range.min).min();
        let highest = node.cores.iter().map(|core| core.range.max).max();
        let core = |_| CoreTimes {
            steps: Vec::with_capacity(STEPS),
            ..CoreTimes::default()
        };
        Self {
            power,
            window: Window {
                lowest: lowest.unwrap_or_default(),
                highest: highest.unwrap_or_default(),
                steps: Vec::with_capacity(STEPS),
                ..Window::default()
            },
            cores: node.cores.iter().map(core).collect(),
            calls: Vec::with_capacity(CALLS),
            ledger: Ledger {
                steps: Vec::with_capacity(STEPS),
            },
            at: None,
        }
    }

    /// What happened since the last tick, at the frequencies that were in force until now, by the core's position.
    /// Does not allocate.
    pub fn passed(&mut self, sensed: &Sensed, frequency: impl Fn(usize) -> Khz) {
        let Some(last) = self.at.replace(sensed.now) else {
            for core in &mut self.cores {
                core.read = sensed.busy_read;
            }
            return;
        };
        let now = sensed.now;
        let passed_s = now.since(last).as_secs_f64();
        self.window.seconds += passed_s;
        self.calls.clear();
        for call in &sensed.finished {
            let began = Nanos(call.at.0.saturating_sub(call.took.as_nanos() as u64)).max(last);
            let core = self.cores.get_mut(call.core);
            if let Some(hot) = core.and_then(|core| core.hot_ns.get_mut(call.function)) {
                let until = call.at.min(now).0;
                *hot += until.saturating_sub(began.0);
                note(&mut self.calls, (began.0, until));
            }
        }
        let mut asleep = 1.0;
        for (position, core) in self.cores.iter_mut().enumerate() {
            let Some(seen) = sensed.cores.get(position).filter(|seen| seen.online) else {
                core.hot_ns = [0; FUNCTIONS];
                core.read = sensed.busy_read;
                continue;
            };
            for (function, since) in seen.hot.running() {
                let began = since.max(last).0;
                core.hot_ns[function] += now.0.saturating_sub(began);
                note(&mut self.calls, (began, now.0));
            }
            let step = self.window.step(frequency(position));
            let hot_s = core.passed(&mut self.window.steps[step], step, passed_s);
            if core.read != sensed.busy_read {
                let since = sensed.busy_read.since(core.read).as_secs_f64();
                core.busy_s += seen.load() * since;
                core.read = sensed.busy_read;
                core.divide(&mut self.window, 0.0);
            }
            // What is busy without a call is so independently of other cores.
            let hot = hot_s / passed_s.max(f64::MIN_POSITIVE);
            asleep *= 1.0 - (seen.load() - hot).clamp(0.0, 1.0);
        }
        // Calls are not: a request has several.
        let any_s = match self.calls.contains(&(last.0, now.0)) {
            true => passed_s,
            false => (any_ns(&mut self.calls) as f64 * 1e-9).min(passed_s),
        };
        self.window.awake_s += any_s + (passed_s - any_s) * (1.0 - asleep);
    }

    /// Ends a window, whose whole was measured or is modelled. Does not allocate.
    pub fn close(&mut self, sensed: &Sensed, measured: Option<f64>) {
        for (position, core) in self.cores.iter_mut().enumerate() {
            let load = sensed.cores.get(position).map_or(0.0, |seen| seen.load());
            let foreseen = load * sensed.now.since(core.read).as_secs_f64();
            core.divide(&mut self.window, foreseen);
        }
        let (window, ledger) = (&self.window, &mut self.ledger);
        split(window, &self.power, measured, |step, joules| {
            if step == ledger.steps.len() {
                ledger.steps.push((window.steps[step].khz, [0.0; PARTS]));
            }
            let sums = ledger.steps[step].1.iter_mut();
            sums.zip(joules).for_each(|(sum, joules)| *sum += joules);
        });
        self.window.clear();
    }

    /// Up to the last window that has ended.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }
}

/// If there is room.
fn note(calls: &mut Vec<(u64, u64)>, call: (u64, u64)) {
    if calls.len() < CALLS && call.0 < call.1 {
        calls.push(call);
    }
}

/// Nanoseconds in which any of the calls ran.
fn any_ns(calls: &mut [(u64, u64)]) -> u64 {
    calls.sort_unstable();
    let mut end = 0;
    calls.iter().fold(0, |any, (from, until)| {
        let more = until.saturating_sub(end.max(*from));
        end = end.max(*until);
        any + more
    })
}

impl CoreTimes {
    /// So much time at a step. Calls of several threads share it; how much of it was theirs.
    fn passed(&mut self, times: &mut Step, step: usize, passed_s: f64) -> f64 {
        if self.steps.len() <= step {
            self.steps.resize(step + 1, (0.0, 0.0));
        }
        let hot_ns: u64 = self.hot_ns.iter().sum();
        let hot_s = (hot_ns as f64 * 1e-9).min(passed_s);
        self.steps[step].0 += passed_s;
        self.steps[step].1 += hot_s;
        if hot_ns == 0 {
            return 0.0;
        }
        let each = hot_s / hot_ns as f64;
        let functions = times.hot.iter_mut().zip(&mut self.hot_ns);
        for (sum, nanos) in functions.filter(|(_, nanos)| **nanos > 0) {
            *sum += std::mem::take(nanos) as f64 * each;
        }
        hot_s
    }

    /// What was busy besides the calls, and what is foreseen to be since the last reading, is spread over the time
    /// without calls: at once after each reading, for governors of load are fast just where there is something to do.
    fn divide(&mut self, window: &mut Window, foreseen_s: f64) {
        let busy_s = (self.busy_s + foreseen_s - self.divided_s).max(0.0);
        self.divided_s += busy_s;
        let (all_s, hot_s) =
            (self.steps.iter()).fold((0.0, 0.0), |(all, hot), step| (all + step.0, hot + step.1));
        let rest_s = all_s - hot_s;
        let share = if rest_s > 0.0 {
            ((busy_s - hot_s) / rest_s).clamp(0.0, 1.0)
        } else {
            0.0
        };
        for ((all, hot), step) in self.steps.drain(..).zip(&mut window.steps) {
            step.other += (all - hot) * share;
            step.idle += (all - hot) * (1.0 - share);
        }
    }
}

#[cfg(test)]
mod tests;
