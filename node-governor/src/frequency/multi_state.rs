// SPDX-License-Identifier: Apache-2.0
//! Any number of steps by how long a hot function has been running, for each function its own if it needs one.
//!
//! The second, third and fourth suggestion of Medeiros, *Profile-guided frequency scaling for search workloads*,
//! section 5.1: several hot functions, more states, and a threshold and a period that follow the load.

use std::time::Duration;

use crate::frequency::average::Average;
use crate::frequency::{Choose, Frequency, Parameters, Range, Wrong, online, three_state};
use crate::node::Node;
use crate::plan::{Plan, Setting};
use crate::sensed::{FUNCTIONS, Sensed};

/// The ladders.
#[derive(Clone, Debug, PartialEq)]
pub struct MultiState {
    /// No hot function runs on the core.
    pub idle: Frequency,
    /// For functions that have no ladder of their own. By default the two steps of `three_state`.
    pub ladder: Vec<Rung>,
    /// Functions that do, by their numbers. Of several calls on one core the one that asks for most gets it.
    pub functions: Vec<(usize, Vec<Rung>)>,
    /// Nothing: times and period are always as they are written.
    pub by_load: Option<ByLoad>,
}

/// One step of a ladder.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rung {
    /// The call has been running for at least this long.
    pub after: Duration,
    /// What it gets.
    pub frequency: Frequency,
}

/// The more the cores have to do, the earlier a call gets its faster steps and the less often is looked: at a very
/// high load all cores run fast anyway, and what matters is the time that calls wait.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ByLoad {
    /// Mean share of time that the cores are busy, up to which all is as written.
    pub light: f64,
    /// The share from which on every call gets the last step at once; in between, times shrink evenly.
    pub full: f64,
    /// What the plan sleeps for then.
    pub longest_period: Duration,
    /// The load is averaged over about this long.
    pub average: Duration,
}

impl Default for ByLoad {
    /// Medeiros gives no figures: light is half of what a core can do, the longest period is the 100 ms that his
    /// section 4.7 still finds bearable.
    fn default() -> Self {
        Self {
            light: 0.5,
            full: 0.9,
            longest_period: Duration::from_millis(100),
            average: Duration::from_secs(1),
        }
    }
}

impl Default for MultiState {
    fn default() -> Self {
        three_state::ThreeState::default().into()
    }
}

impl From<three_state::ThreeState> for MultiState {
    fn from(three: three_state::ThreeState) -> Self {
        let rung = |after, frequency| Rung { after, frequency };
        Self {
            idle: three.idle,
            ladder: vec![
                rung(Duration::ZERO, three.hot),
                rung(three.threshold, three.over),
            ],
            functions: Vec::new(),
            by_load: None,
        }
    }
}

fn check_ladder(field: &str, ladder: &[Rung], node: &Node) -> Result<(), Wrong> {
    if ladder.first().is_none_or(|first| !first.after.is_zero()) {
        let reason = "must begin with a step after 0";
        return Err(Wrong::new(field, reason));
    }
    for (at, rung) in ladder.iter().enumerate() {
        let name = format!("{field}[{at}]");
        rung.frequency.check(&format!("{name}.frequency"), node)?;
        let Some(before) = at.checked_sub(1).map(|before| ladder[before]) else {
            continue;
        };
        if rung.after <= before.after {
            let reason = "must be later than the step before it";
            return Err(Wrong::new(format!("{name}.after"), reason));
        }
        let slower = |range: &Range| rung.frequency.on(range) < before.frequency.on(range);
        if node.cores.iter().any(|core| slower(&core.range)) {
            let reason = "must not be slower than the step before it";
            return Err(Wrong::new(format!("{name}.frequency"), reason));
        }
    }
    Ok(())
}

impl ByLoad {
    fn check(&self) -> Result<(), Wrong> {
        let wrong = |field: &str, reason| Err(Wrong::new(format!("by_load.{field}"), reason));
        if !(0.0..1.0).contains(&self.light) {
            return wrong("light", "must be from 0 to less than 1");
        }
        if !(self.full > self.light && self.full <= 1.0) {
            return wrong("full", "must be more than light, and at most 1");
        }
        if self.longest_period.is_zero() {
            return wrong("longest_period", "must not be 0");
        }
        if self.average.is_zero() {
            return wrong("average", "must not be 0");
        }
        Ok(())
    }
}

impl Parameters for MultiState {
    fn check(&self, node: &Node) -> Result<(), Wrong> {
        self.idle.check("idle", node)?;
        check_ladder("ladder", &self.ladder, node)?;
        for (at, (function, ladder)) in self.functions.iter().enumerate() {
            let name = format!("functions[{at}]");
            if *function >= FUNCTIONS {
                let reason = format!("{function} is not a function from 0 to {}", FUNCTIONS - 1);
                return Err(Wrong::new(name, reason));
            }
            if self.functions[..at]
                .iter()
                .any(|(earlier, _)| earlier == function)
            {
                let reason = format!("function {function} has a ladder already");
                return Err(Wrong::new(name, reason));
            }
            check_ladder(&format!("{name}.ladder"), ladder, node)?;
        }
        self.by_load.map_or(Ok(()), |by_load| by_load.check())
    }

    fn begin(&self, _: &Node) -> Box<dyn Choose> {
        let own = |function| {
            let mut ladders = self.functions.iter();
            let found = ladders.find(|(number, _)| *number == function);
            found.map_or(&self.ladder, |(_, ladder)| ladder).clone()
        };
        Box::new(Climbing {
            idle: self.idle,
            ladders: std::array::from_fn(own),
            by_load: self.by_load,
            load: Average::new(self.by_load.unwrap_or_default().average),
        })
    }
}

#[derive(Debug)]
struct Climbing {
    idle: Frequency,
    ladders: [Vec<Rung>; FUNCTIONS],
    by_load: Option<ByLoad>,
    load: Average,
}

impl Climbing {
    /// What is left of the times, 0 to 1.
    fn patience(&mut self, sensed: &Sensed) -> f64 {
        let Some(by_load) = self.by_load else {
            return 1.0;
        };
        let load = self.load.with(sensed.now, sensed.load());
        if load <= by_load.light {
            1.0
        } else if load >= by_load.full {
            0.0
        } else {
            (by_load.full - load) / (by_load.full - by_load.light)
        }
    }

    /// The fastest that any call on the core asks for, and its place in that call's ladder.
    fn asked(&self, sensed: &Sensed, core: usize, range: &Range, patience: f64) -> Option<Setting> {
        let calls = sensed.cores[core].hot.running();
        let settings = calls.filter_map(|(function, since)| {
            let took = sensed.now.since(since);
            let reached = |rung: &Rung| rung.after.mul_f64(patience) <= took;
            let rung = self.ladders[function].iter().rposition(reached)?;
            let frequency = self.ladders[function][rung].frequency.on(range);
            Some(Setting {
                frequency,
                rung: rung + 1,
            })
        });
        settings.max_by_key(|setting| (setting.frequency, setting.rung))
    }
}

impl Choose for Climbing {
    fn choose(&mut self, node: &Node, sensed: &Sensed, plan: &mut Plan) {
        let patience = self.patience(sensed);
        if let Some(by_load) = self.by_load {
            let longer = by_load.longest_period.saturating_sub(plan.sleep);
            plan.sleep += longer.mul_f64(1.0 - patience);
        }
        for (core, range, _, setting) in online(node, sensed, plan) {
            let idle = Setting {
                frequency: self.idle.on(range),
                rung: 0,
            };
            *setting = self.asked(sensed, core, range, patience).unwrap_or(idle);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frequency::tests::{NOW, hot, node};
    use crate::frequency::{Khz, Policy};
    use crate::planner::Planner;
    use crate::sensed::{Core, Nanos};

    /// One core with a call that is 300 ms old, after ten seconds of being busy for a share of the time.
    fn after(busy: f64) -> Plan {
        let by_load = Some(ByLoad::default());
        let policy = Policy::MultiState(MultiState {
            by_load,
            ..MultiState::default()
        });
        let mut planner = Planner::new(node(1), policy, Duration::from_millis(50));
        let mut plan = Plan::default();
        for tick in 0..200 {
            let ago = (199 - tick) * 50_000_000;
            let call = hot(&[(0, 300)]);
            let sensed = Sensed {
                now: Nanos(NOW.0 - ago),
                cores: vec![Core { busy, ..call }],
                ..Sensed::default()
            };
            planner.plan(&sensed, &mut plan);
        }
        plan
    }

    #[test]
    fn under_load_calls_are_faster_sooner_and_looked_at_less_often() {
        let light = after(0.3);
        assert_eq!(light.cores[0].frequency, Khz(2_000_000));
        assert_eq!(light.sleep, Duration::from_millis(50));
        // Half of the way from light to full: the 450 ms are 225, the period is half of the way to 100 ms.
        let half = after(0.7);
        assert_eq!(half.cores[0].frequency, Khz(2_600_000));
        assert!(half.sleep.abs_diff(Duration::from_millis(75)) < Duration::from_millis(1));
        let full = after(1.0);
        assert_eq!(full.cores[0].frequency, Khz(2_600_000));
        assert_eq!(full.sleep, Duration::from_millis(100));
    }
}
