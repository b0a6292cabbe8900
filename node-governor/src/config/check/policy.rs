// SPDX-License-Identifier: Apache-2.0
//! Policies and their parameters. Defaults are the policies' own, but for ondemand's period and schedutil's.

use std::time::Duration;

use serde_saphyr::Spanned;
use weir_settings::{Error, Scope, Value};

use super::{Function, frequency, ms, one, section_line, written};
use crate::config::Places;
use crate::frequency::adaptive::Adaptive;
use crate::frequency::hipster::Hipster;
use crate::frequency::iso_latency::IsoLatency;
use crate::frequency::multi_state::{ByLoad, MultiState, Rung};
use crate::frequency::octopus_man::OctopusMan;
use crate::frequency::ondemand::Ondemand;
use crate::frequency::performance::Performance;
use crate::frequency::powersave::Powersave;
use crate::frequency::rubik::Rubik;
use crate::frequency::schedutil::Schedutil;
use crate::frequency::slow_to_fast::SlowToFast;
use crate::frequency::three_state::ThreeState;
use crate::frequency::two_state::TwoState;
use crate::frequency::{Frequency, Policy};

/// Longer is no time for a call or an average.
const LONGEST: Duration = ms(3_600_000);

/// The one that was written.
pub(super) fn policy(
    section: &Spanned<written::Policy>,
    functions: &[Function],
    root: &Scope<'_>,
) -> Result<(Policy, Places), Error> {
    let scope = root.section("policy").at(section.referenced.line());
    let written = &section.value;
    let sections = [
        ("performance", section_line(&written.performance)),
        ("powersave", section_line(&written.powersave)),
        ("ondemand", section_line(&written.ondemand)),
        ("schedutil", section_line(&written.schedutil)),
        ("two_state", section_line(&written.two_state)),
        ("three_state", section_line(&written.three_state)),
        ("multi_state", section_line(&written.multi_state)),
        ("iso_latency", section_line(&written.iso_latency)),
        ("slow_to_fast", section_line(&written.slow_to_fast)),
        ("adaptive", section_line(&written.adaptive)),
        ("rubik", section_line(&written.rubik)),
        ("octopus_man", section_line(&written.octopus_man)),
        ("hipster", section_line(&written.hipster)),
    ];
    let (name, line) = one(&sections, &scope, "names no policy")?;
    if name != "multi_state"
        && let Some(function) = functions.iter().find(|function| function.ladder.is_some())
    {
        let reason = "only policy multi_state reads it";
        return Err(function.scope.refuse(&None, "ladder", reason));
    }
    let mut read = Reading {
        scope: scope.section(name).at(line),
        frequencies: Vec::new(),
    };
    read.scope.note("", "section", None, None);
    let policy = read.policy(written, functions)?;
    let places = Places {
        policy: read.scope.refuse(&None, "", ""),
        frequencies: read.frequencies,
    };
    Ok((policy, places))
}

/// Remembers where frequencies are written.
struct Reading<'a> {
    scope: Scope<'a>,
    frequencies: Vec<(Frequency, Error)>,
}

impl Reading<'_> {
    fn policy(
        &mut self,
        written: &written::Policy,
        functions: &[Function],
    ) -> Result<Policy, Error> {
        Ok(if let Some(written) = &written.ondemand {
            Policy::Ondemand(self.ondemand(&written.value)?)
        } else if let Some(written) = &written.schedutil {
            Policy::Schedutil(self.schedutil(&written.value)?)
        } else if let Some(written) = &written.two_state {
            Policy::TwoState(self.two_state(&written.value)?)
        } else if let Some(written) = &written.three_state {
            Policy::ThreeState(self.three_state(&written.value)?)
        } else if let Some(written) = &written.multi_state {
            Policy::MultiState(self.multi_state(&written.value, functions)?)
        } else if let Some(written) = &written.iso_latency {
            Policy::IsoLatency(self.iso_latency(&written.value)?)
        } else if let Some(written) = &written.slow_to_fast {
            Policy::SlowToFast(self.slow_to_fast(&written.value)?)
        } else if let Some(written) = &written.adaptive {
            Policy::Adaptive(self.adaptive(&written.value)?)
        } else if let Some(written) = &written.rubik {
            Policy::Rubik(self.rubik(&written.value)?)
        } else if let Some(written) = &written.octopus_man {
            Policy::OctopusMan(self.octopus_man(&written.value)?)
        } else if let Some(written) = &written.hipster {
            Policy::Hipster(self.hipster(&written.value)?)
        } else if written.powersave.is_some() {
            Policy::Powersave(Powersave)
        } else {
            Policy::Performance(Performance)
        })
    }

    fn frequency(
        &mut self,
        value: &Value,
        field: &str,
        default: Frequency,
    ) -> Result<Frequency, Error> {
        let scope = self.scope.clone();
        self.frequency_in(&scope, value, field, default)
    }

    fn frequency_in(
        &mut self,
        scope: &Scope<'_>,
        value: &Value,
        field: &str,
        default: Frequency,
    ) -> Result<Frequency, Error> {
        // The steps of a default ladder have no field of their own.
        if !field.is_empty() {
            scope.note(field, "frequency", Some(frequency::show(default)), None);
        }
        let frequency = scope.parse(value, field, default, frequency::parse)?;
        let place = scope.refuse(value, field, "");
        self.frequencies.push((frequency, place));
        Ok(frequency)
    }

    fn duration(&self, value: &Value, field: &str, default: Duration) -> Result<Duration, Error> {
        self.scope.duration(value, field, default, ms(0)..=LONGEST)
    }

    /// What it may be, the policy says.
    fn number(&self, value: &Value, field: &str, default: f64) -> Result<f64, Error> {
        self.scope.share(value, field, default, 0.0..=1e6)
    }

    fn ondemand(&mut self, written: &written::Ondemand) -> Result<Ondemand, Error> {
        let default = Ondemand::default();
        Ok(Ondemand {
            sampling_period: self.between_looks(&written.sampling_period, "sampling_period")?,
            up_threshold: self.number(
                &written.up_threshold,
                "up_threshold",
                default.up_threshold,
            )?,
            sampling_down_factor: self.scope.whole(
                &written.sampling_down_factor,
                "sampling_down_factor",
                default.sampling_down_factor.into(),
                1..=100_000,
            )? as u32,
        })
    }

    fn schedutil(&mut self, written: &written::Schedutil) -> Result<Schedutil, Error> {
        Ok(Schedutil {
            rate_limit: self.between_looks(&written.rate_limit, "rate_limit")?,
        })
    }

    /// `/proc/stat` is read no more often.
    fn between_looks(&self, value: &Value, field: &str) -> Result<Duration, Error> {
        self.scope
            .duration(value, field, ms(100), ms(100)..=ms(10_000))
    }

    fn two_state(&mut self, written: &written::TwoState) -> Result<TwoState, Error> {
        let default = TwoState::default();
        Ok(TwoState {
            idle: self.frequency(&written.idle, "idle", default.idle)?,
            hot: self.frequency(&written.hot, "hot", default.hot)?,
        })
    }

    fn three_state(&mut self, written: &written::ThreeState) -> Result<ThreeState, Error> {
        let default = ThreeState::default();
        Ok(ThreeState {
            idle: self.frequency(&written.idle, "idle", default.idle)?,
            hot: self.frequency(&written.hot, "hot", default.hot)?,
            over: self.frequency(&written.over, "over", default.over)?,
            threshold: self.duration(&written.threshold, "threshold", default.threshold)?,
        })
    }

    fn multi_state(
        &mut self,
        written: &written::MultiState,
        functions: &[Function],
    ) -> Result<MultiState, Error> {
        let default = MultiState::default();
        let idle = self.frequency(&written.idle, "idle", default.idle)?;
        let ladder = match &written.ladder {
            Some(ladder) => {
                let scope = self.scope.section("ladder");
                self.ladder(ladder, &scope)?
            }
            None => {
                let scope = self.scope.section("ladder");
                for rung in &default.ladder {
                    self.frequency_in(&scope, &None, "", rung.frequency)?;
                }
                default.ladder
            }
        };
        let mut own = Vec::new();
        for function in functions {
            if let Some(ladder) = function.ladder {
                let scope = function.scope.section("ladder");
                own.push((usize::from(function.id), self.ladder(ladder, &scope)?));
            }
        }
        let by_load = written.by_load.as_ref();
        let by_load = by_load.map(|section| {
            let scope = self.scope.section("by_load");
            by_load_of(&section.value, &scope.at(section.referenced.line()))
        });
        Ok(MultiState {
            idle,
            ladder,
            functions: own,
            by_load: by_load.transpose()?,
        })
    }

    fn ladder(
        &mut self,
        written: &[Spanned<written::Rung>],
        scope: &Scope<'_>,
    ) -> Result<Vec<Rung>, Error> {
        /// As many as are told apart in what is shown.
        const MOST: usize = 16;
        if written.len() > MOST {
            let reason = format!("{} steps; at most {MOST}", written.len());
            return Err(scope.refuse(&None, "", reason));
        }
        let mut ladder = Vec::new();
        for (index, rung) in written.iter().enumerate() {
            let scope = scope.item(index).at(rung.referenced.line());
            let rung = &rung.value;
            if rung.frequency.is_none() {
                return Err(scope.refuse(&None, "frequency", "required; as in 2.0 GHz or 62 %"));
            }
            let after = scope.duration(&rung.after, "after", Duration::ZERO, ms(0)..=LONGEST)?;
            let fast = Frequency::Share(1.0);
            let frequency = self.frequency_in(&scope, &rung.frequency, "frequency", fast)?;
            ladder.push(Rung { after, frequency });
        }
        Ok(ladder)
    }

    fn iso_latency(&mut self, written: &written::IsoLatency) -> Result<IsoLatency, Error> {
        let default = IsoLatency::default();
        Ok(IsoLatency {
            target: self.duration(&written.target, "target", default.target)?,
            panic: self.number(&written.panic, "panic", default.panic)?,
            slack: self.number(&written.slack, "slack", default.slack)?,
            much_slack: self.number(&written.much_slack, "much_slack", default.much_slack)?,
            raise: self.number(&written.raise, "raise", default.raise)?,
            lower: self.number(&written.lower, "lower", default.lower)?,
            lower_fast: self.number(&written.lower_fast, "lower_fast", default.lower_fast)?,
            average: self.duration(&written.average, "average", default.average)?,
            hold: self.duration(&written.hold, "hold", default.hold)?,
            stale: self.duration(&written.stale, "stale", default.stale)?,
        })
    }

    fn slow_to_fast(&mut self, written: &written::SlowToFast) -> Result<SlowToFast, Error> {
        let default = SlowToFast::default();
        Ok(SlowToFast {
            target: self.duration(&written.target, "target", default.target)?,
            idle: self.frequency(&written.idle, "idle", default.idle)?,
            slow: self.frequency(&written.slow, "slow", default.slow)?,
            fast: self.frequency(&written.fast, "fast", default.fast)?,
            settle: self.duration(&written.settle, "settle", default.settle)?,
            stale: self.duration(&written.stale, "stale", default.stale)?,
        })
    }

    fn adaptive(&mut self, written: &written::Adaptive) -> Result<Adaptive, Error> {
        let default = Adaptive::default();
        Ok(Adaptive {
            target: self.duration(&written.target, "target", default.target)?,
            efficient: self.frequency(&written.efficient, "efficient", default.efficient)?,
            idle: self.frequency(&written.idle, "idle", default.idle)?,
            memory: self.number(&written.memory, "memory", default.memory)?,
            quantile: self.number(&written.quantile, "quantile", default.quantile)?,
            margin: self.number(&written.margin, "margin", default.margin)?,
            budget: self.number(&written.budget, "budget", default.budget)?,
            settle: self.duration(&written.settle, "settle", default.settle)?,
            stale: self.duration(&written.stale, "stale", default.stale)?,
            shortest_period: self.duration(
                &written.shortest_period,
                "shortest_period",
                default.shortest_period,
            )?,
            longest_period: self.duration(
                &written.longest_period,
                "longest_period",
                default.longest_period,
            )?,
        })
    }

    fn octopus_man(&self, written: &written::OctopusMan) -> Result<OctopusMan, Error> {
        let zones = [&written.danger, &written.safe];
        let times = [&written.target, &written.interval, &written.stale];
        self.ladder_of_cores(zones, times)
    }

    /// What two policies have in common.
    fn ladder_of_cores(
        &self,
        [danger, safe]: [&Value; 2],
        [target, interval, stale]: [&Value; 3],
    ) -> Result<OctopusMan, Error> {
        let default = OctopusMan::default();
        Ok(OctopusMan {
            target: self.duration(target, "target", default.target)?,
            danger: self.number(danger, "danger", default.danger)?,
            safe: self.number(safe, "safe", default.safe)?,
            interval: self.duration(interval, "interval", default.interval)?,
            stale: self.duration(stale, "stale", default.stale)?,
        })
    }

    fn hipster(&self, written: &written::Hipster) -> Result<Hipster, Error> {
        let zones = [&written.danger, &written.safe];
        let times = [&written.target, &written.interval, &written.stale];
        let Hipster { learning, .. } = Hipster::default();
        Ok(Hipster {
            heuristic: self.ladder_of_cores(zones, times)?,
            learning: self.duration(&written.learning, "learning", learning)?,
        })
    }

    fn rubik(&mut self, written: &written::Rubik) -> Result<Rubik, Error> {
        let default = Rubik::default();
        Ok(Rubik {
            target: self.duration(&written.target, "target", default.target)?,
            idle: self.frequency(&written.idle, "idle", default.idle)?,
            memory: self.number(&written.memory, "memory", default.memory)?,
            quantile: self.number(&written.quantile, "quantile", default.quantile)?,
            margin: self.number(&written.margin, "margin", default.margin)?,
            budget: self.number(&written.budget, "budget", default.budget)?,
            settle: self.duration(&written.settle, "settle", default.settle)?,
            stale: self.duration(&written.stale, "stale", default.stale)?,
            period: self.duration(&written.period, "period", default.period)?,
        })
    }
}

fn by_load_of(written: &written::ByLoad, scope: &Scope<'_>) -> Result<ByLoad, Error> {
    let default = ByLoad::default();
    let time = |value: &Value, field: &str, default| {
        scope.duration(value, field, default, ms(0)..=LONGEST)
    };
    Ok(ByLoad {
        light: scope.share(&written.light, "light", default.light, 0.0..=1.0)?,
        full: scope.share(&written.full, "full", default.full, 0.0..=1.0)?,
        longest_period: time(
            &written.longest_period,
            "longest_period",
            default.longest_period,
        )?,
        average: time(&written.average, "average", default.average)?,
    })
}
