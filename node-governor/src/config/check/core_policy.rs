// SPDX-License-Identifier: Apache-2.0
//! Core policies and their parameters. Defaults are the policies' own, and what they may be, the policies say.

mod others;
mod static_plan;

use std::time::Duration;

use weir_settings::{Error, Scope, Value};

use super::{frequency, ms, one, section_line, written};
use crate::config::shares::{Division, OtherService, Places};
use crate::cores::blocks::{self, Size};
use crate::cores::heracles::{memory, power};
use crate::cores::{Cores, heracles, hipster_co, latency_slack, parties};
use crate::frequency::Frequency;

/// Longer is no time between two decisions.
const LONGEST: Duration = ms(3_600_000);

/// The one that was written, and the services that it names.
pub(super) fn division(
    written: &written::CorePolicy,
    scope: &Scope<'_>,
) -> Result<(Division, Places, Vec<OtherService>), Error> {
    let sections = [
        ("blocks", section_line(&written.blocks)),
        ("latency_slack", section_line(&written.latency_slack)),
        ("parties", section_line(&written.parties)),
        ("heracles", section_line(&written.heracles)),
        ("hipster_co", section_line(&written.hipster_co)),
        ("static_plan", section_line(&written.static_plan)),
    ];
    let (name, line) = one(&sections, scope, "names no policy")?;
    let scope = scope.section(name).at(line);
    let mut read = Reading {
        places: Places {
            policy: scope.refuse(&None, "", ""),
            fields: Vec::new(),
        },
        others: Vec::new(),
        scope,
    };
    let division = if let Some(written) = &written.blocks {
        Division::Blocks(read.blocks(&written.value)?)
    } else if let Some(written) = &written.latency_slack {
        Division::LatencySlack(read.latency_slack(&written.value)?)
    } else if let Some(written) = &written.parties {
        Division::Parties(read.parties(&written.value)?)
    } else if let Some(written) = &written.heracles {
        Division::Heracles(read.heracles(&written.value)?)
    } else if let Some(written) = &written.hipster_co {
        Division::HipsterCo(read.hipster_co(&written.value)?)
    } else if let Some(written) = &written.static_plan {
        Division::StaticPlan(read.static_plan(&written.value)?)
    } else {
        return Err(read.scope.refuse(&None, "", "no such policy"));
    };
    Ok((division, read.places, read.others))
}

/// Remembers where fields are written.
struct Reading<'a> {
    scope: Scope<'a>,
    places: Places,
    others: Vec<OtherService>,
}

impl Reading<'_> {
    /// The place is an error without its reason; `name` is what the policy calls it.
    fn remember(&mut self, name: impl Into<String>, place: Error) {
        self.places.fields.push((name.into(), place));
    }

    fn cores(&mut self, value: &Value, field: &str, default: Cores) -> Result<Cores, Error> {
        self.remember(field, self.scope.refuse(value, field, ""));
        cores(value, field, default, &self.scope)
    }

    fn number(&mut self, value: &Value, field: &str, default: f64) -> Result<f64, Error> {
        self.remember(field, self.scope.refuse(value, field, ""));
        self.scope.share(value, field, default, 0.0..=1e6)
    }

    fn share(&mut self, value: &Value, field: &str, default: f64) -> Result<f64, Error> {
        self.remember(field, self.scope.refuse(value, field, ""));
        let shown = format!("{} %", default * 100.0);
        self.scope.note(field, "share", Some(shown), None);
        self.scope.parse(value, field, default, share)
    }

    fn duration(
        &mut self,
        value: &Value,
        field: &str,
        default: Duration,
    ) -> Result<Duration, Error> {
        self.remember(field, self.scope.refuse(value, field, ""));
        self.scope.duration(value, field, default, ms(0)..=LONGEST)
    }

    fn blocks(&mut self, written: &written::Blocks) -> Result<blocks::Params, Error> {
        let default = blocks::Params::default();
        Ok(blocks::Params {
            reserved: self.cores(&written.reserved, "reserved", default.reserved)?,
            small: self.cores(&written.small, "small", default.small)?,
            large: self.cores(&written.large, "large", default.large)?,
            large_above: self.number(&written.large_above, "large_above", default.large_above)?,
            small_below: self.number(&written.small_below, "small_below", default.small_below)?,
            calm: self.duration(&written.calm, "calm", default.calm)?,
            start: self.scope.choice(
                &written.start,
                "start",
                default.start,
                &[("small", Size::Small), ("large", Size::Large)],
            )?,
            patience: self.duration(&written.patience, "patience", default.patience)?,
        })
    }

    fn latency_slack(
        &mut self,
        written: &written::LatencySlack,
    ) -> Result<latency_slack::Params, Error> {
        let default = latency_slack::Params::default();
        Ok(latency_slack::Params {
            least: self.cores(&written.least, "least", default.least)?,
            elastic: self.cores(&written.elastic, "elastic", default.elastic)?,
            batch: self.cores(&written.batch, "batch", default.batch)?,
            target: self.duration(&written.target, "target", default.target)?,
            tight: self.share(&written.tight, "tight", default.tight)?,
            loose: self.share(&written.loose, "loose", default.loose)?,
            settle: self.duration(&written.settle, "settle", default.settle)?,
            window: default.window,
            calm: self.duration(&written.calm, "calm", default.calm)?,
            trend: self.number(&written.trend, "trend", default.trend)?,
            frequency_steps: self.step_count(
                &written.frequency_steps,
                "frequency_steps",
                default.frequency_steps,
            )?,
            measured: default.measured,
            patience: self.duration(&written.patience, "patience", default.patience)?,
        })
    }

    fn heracles(&mut self, written: &written::Heracles) -> Result<heracles::Params, Error> {
        let default = heracles::Params::default();
        Ok(heracles::Params {
            least: self.cores(&written.least, "least", default.least)?,
            elastic: self.cores(&written.elastic, "elastic", default.elastic)?,
            target: self.duration(&written.target, "target", default.target)?,
            busy: self.share(&written.busy, "busy", default.busy)?,
            calm: self.share(&written.calm, "calm", default.calm)?,
            tight: self.share(&written.tight, "tight", default.tight)?,
            short: self.share(&written.short, "short", default.short)?,
            look: self.duration(&written.look, "look", default.look)?,
            grow: self.duration(&written.grow, "grow", default.grow)?,
            cooldown: self.duration(&written.cooldown, "cooldown", default.cooldown)?,
            measured: default.measured,
            patience: self.duration(&written.patience, "patience", default.patience)?,
            link: default.link,
            power: self.power(written)?,
            memory: self.memory(written)?,
        })
    }

    fn memory(&mut self, written: &written::Heracles) -> Result<Option<memory::Params>, Error> {
        let (value, field) = (&written.memory_bandwidth, "memory_bandwidth");
        self.remember(field, self.scope.refuse(value, field, ""));
        let range = "100 MB/s to 10000 GB/s";
        self.scope.note(field, "rate", None, Some(range.to_owned()));
        let peak = self.scope.parse(value, field, None, |text| {
            let peak = weir_settings::quantity(text, &[("GB/s", 1e9), ("MB/s", 1e6)]);
            let peak = peak.filter(|peak| (1e8..=1e13).contains(peak));
            let peak = peak.map(Some);
            peak.ok_or_else(|| format!("{text:?} is not a rate of {range}"))
        })?;
        Ok(peak.map(|peak| memory::Params { peak, ways: None }))
    }

    fn power(&mut self, written: &written::Heracles) -> Result<Option<power::Params>, Error> {
        let (guaranteed, tdp) = (&written.guaranteed, &written.tdp);
        self.remember(
            "guaranteed",
            self.scope.refuse(guaranteed, "guaranteed", ""),
        );
        let scope = &self.scope;
        scope.note("guaranteed", "frequency", None, None);
        let guaranteed = scope.parse(
            guaranteed,
            "guaranteed",
            None,
            |text| match frequency::parse(text)? {
                Frequency::Absolute(khz) => Ok(Some(khz)),
                Frequency::Share(_) => Err(format!("{text:?} is a share: write a number and GHz")),
            },
        )?;
        scope.note("tdp", "power", None, Some("1 W to 100 kW".to_owned()));
        let watts = scope.parse(tdp, "tdp", None, |text| {
            let watts = weir_settings::quantity(text, &[("W", 1.0), ("kW", 1e3)]);
            let watts = watts.filter(|watts| (1.0..=1e5).contains(watts));
            watts
                .map(Some)
                .ok_or_else(|| format!("{text:?} is not a power, as in 85 W"))
        })?;
        if guaranteed.is_none() && watts.is_some() {
            return Err(scope.refuse(tdp, "tdp", "nothing reads it without guaranteed"));
        }
        Ok(guaranteed.map(|guaranteed| power::Params { guaranteed, watts }))
    }

    fn parties(&mut self, written: &written::Parties) -> Result<parties::Params, Error> {
        let default = parties::Params::default();
        Ok(parties::Params {
            least: self.cores(&written.least, "least", default.least)?,
            elastic: self.cores(&written.elastic, "elastic", default.elastic)?,
            batch: self.cores(&written.batch, "batch", default.batch)?,
            target: self.duration(&written.target, "target", default.target)?,
            tight: self.share(&written.tight, "tight", default.tight)?,
            loose: self.share(&written.loose, "loose", default.loose)?,
            settle: self.duration(&written.settle, "settle", default.settle)?,
            rest: self.duration(&written.rest, "rest", default.rest)?,
            cache_steps: self.step_count(
                &written.cache_steps,
                "cache_steps",
                default.cache_steps,
            )?,
            ways: default.ways,
            bandwidth_steps: self.step_count(
                &written.bandwidth_steps,
                "bandwidth_steps",
                default.bandwidth_steps,
            )?,
            bandwidth: default.bandwidth,
            frequency_steps: self.step_count(
                &written.frequency_steps,
                "frequency_steps",
                default.frequency_steps,
            )?,
            memory_steps: self.step_count(
                &written.memory_steps,
                "memory_steps",
                default.memory_steps,
            )?,
            memory_least: self.bytes(
                &written.memory_least,
                "memory_least",
                default.memory_least,
            )?,
            memory_most: self.bytes(&written.memory_most, "memory_most", default.memory_most)?,
            disk_steps: self.step_count(&written.disk_steps, "disk_steps", default.disk_steps)?,
            network_steps: self.step_count(
                &written.network_steps,
                "network_steps",
                default.network_steps,
            )?,
            link: default.link,
            patience: self.duration(&written.patience, "patience", default.patience)?,
            others: self.others(&written.others)?,
        })
    }

    fn hipster_co(&mut self, written: &written::HipsterCo) -> Result<hipster_co::Params, Error> {
        let default = hipster_co::Params::default();
        Ok(hipster_co::Params {
            least: self.cores(&written.least, "least", default.least)?,
            elastic: self.cores(&written.elastic, "elastic", default.elastic)?,
            batch: self.cores(&written.batch, "batch", default.batch)?,
            target: self.duration(&written.target, "target", default.target)?,
            danger: self.share(&written.danger, "danger", default.danger)?,
            safe: self.share(&written.safe, "safe", default.safe)?,
            interval: self.duration(&written.interval, "interval", default.interval)?,
            learning: self.duration(&written.learning, "learning", default.learning)?,
            frequency_steps: self.step_count(
                &written.frequency_steps,
                "frequency_steps",
                default.frequency_steps,
            )?,
            patience: self.duration(&written.patience, "patience", default.patience)?,
        })
    }

    fn step_count(&mut self, value: &Value, field: &str, default: u32) -> Result<u32, Error> {
        self.remember(field, self.scope.refuse(value, field, ""));
        let steps = self.scope.whole(value, field, default.into(), 0..=1000)?;
        Ok(steps as u32)
    }

    fn bytes(&mut self, value: &Value, field: &str, default: u64) -> Result<u64, Error> {
        self.remember(field, self.scope.refuse(value, field, ""));
        let bytes = self
            .scope
            .size(value, field, default as usize, 1 << 20..=1 << 50)?;
        Ok(bytes as u64)
    }
}

/// Numbers and ranges as the kernel writes them, or `none`; where they must be some, the policy says.
fn cores(value: &Value, field: &str, default: Cores, scope: &Scope<'_>) -> Result<Cores, Error> {
    let shown = (!default.is_empty()).then(|| default.to_string());
    scope.note(field, "cores", shown, None);
    scope.parse(value, field, default, |text| {
        let list = match text {
            "none" => Some(Vec::new()),
            text => crate::root::core_list(text),
        };
        let list =
            list.ok_or_else(|| format!("{text:?} is not a list of cores, as in 0-3,8; or none"))?;
        Ok(list.into_iter().collect())
    })
}

/// `0.05` or `5 %`.
fn share(text: &str) -> Result<f64, String> {
    let share = weir_settings::quantity(text, &[("%", 0.01)]).or_else(|| text.parse().ok());
    share
        .filter(|share: &f64| share.is_finite())
        .ok_or_else(|| format!("{text:?} is not a share, as in 0.05 or 5 %"))
}
