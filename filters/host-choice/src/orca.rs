// SPDX-License-Identifier: Apache-2.0
//! The load that a host puts on its answers, and what the answer cost it: the `endpoint-load-metrics` header of
//! the Open Request Cost Aggregation standard (`xds.data.orca.v3.OrcaLoadReport`), in its TEXT and JSON forms.

use std::time::Duration;

use serde::Deserialize;
use std::collections::BTreeMap;
use weir_policy::{CLASSES, Load, Work};

/// The header's name.
pub const HEADER: &str = "endpoint-load-metrics";
/// Longer headers are not read: 32 classes and the other figures take a quarter of it.
const MAX_LENGTH: usize = 4096;
/// Nobody means more core time of one class, or of one request.
const LONGEST_SECONDS: f64 = 86_400.0;

#[derive(Deserialize)]
struct Report {
    #[serde(default)]
    named_metrics: BTreeMap<String, f64>,
    #[serde(default)]
    request_cost: BTreeMap<String, f64>,
}

/// What a header says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Said {
    /// None where it names no `weir.in_progress` or no queue. Half a load would hide the other half, which
    /// the table has.
    pub load: Option<Load>,
    /// None where it names no `weir.run_seconds`.
    pub spent: Option<Spent>,
}

/// What a request has cost its host, in core time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spent {
    /// To fetch its data; none where they were there.
    pub fetch: Option<Duration>,
    /// Everything else.
    pub run: Duration,
}

/// What a header's value says, seen `now`; none where it is malformed.
pub fn parse(value: &[u8], now: Duration) -> Option<Said> {
    let value = std::str::from_utf8(value)
        .ok()
        .filter(|value| value.len() <= MAX_LENGTH)?;
    let mut figures = Figures::default();
    if let Some(text) = value.strip_prefix("TEXT ") {
        for pair in text.split(',') {
            let (name, figure) = pair.split_once('=')?;
            let (name, figure) = (name.trim(), figure.trim());
            if let Some(name) = name.strip_prefix("named_metrics.") {
                figures.take(name, figure.parse().ok()?)?;
            } else if let Some(name) = name.strip_prefix("request_cost.") {
                figures.take_cost(name, figure.parse().ok()?)?;
            }
        }
    } else {
        let report: Report = serde_json::from_str(value.strip_prefix("JSON ")?).ok()?;
        for (name, figure) in report.named_metrics {
            figures.take(&name, figure)?;
        }
        for (name, figure) in report.request_cost {
            figures.take_cost(&name, figure)?;
        }
    }
    let Figures { fetch, run, .. } = figures;
    Some(Said {
        load: figures.load(now),
        spent: run.map(|run| Spent { fetch, run }),
    })
}

#[derive(Default)]
struct Figures {
    in_progress: Option<u32>,
    queued: Option<u32>,
    queuing_delay: Option<Duration>,
    busy_cores: Option<u32>,
    work: Option<Work>,
    fetch: Option<Duration>,
    run: Option<Duration>,
}

impl Figures {
    fn load(self, now: Duration) -> Option<Load> {
        Some(Load {
            observed: now,
            in_progress: self.in_progress?,
            queued: self.queued?,
            queuing_delay: self.queuing_delay,
            busy_cores: self.busy_cores,
            work: self.work,
        })
    }

    fn take_cost(&mut self, name: &str, seconds: f64) -> Option<()> {
        let cost = match name {
            "weir.fetch_seconds" => &mut self.fetch,
            "weir.run_seconds" => &mut self.run,
            _ => return Some(()),
        };
        *cost = Some(core_time(seconds)?);
        Some(())
    }

    /// None where the figure cannot be one: a host that sends nonsense is not believed in the rest either.
    fn take(&mut self, name: &str, figure: f64) -> Option<()> {
        if !figure.is_finite() || figure < 0.0 {
            return None;
        }
        match name {
            "weir.in_progress" => self.in_progress = Some(figure as u32),
            "weir.busy_cores" => self.busy_cores = Some(figure as u32),
            "weir.queuing_delay_seconds" => {
                self.queuing_delay = Duration::try_from_secs_f64(figure).ok()
            }
            _ if name.starts_with("weir.queued.") => {
                self.queued = Some(self.queued.unwrap_or(0).saturating_add(figure as u32));
            }
            _ => {
                if let Some(class) = name.strip_prefix("weir.work_seconds.") {
                    let work = self.work.get_or_insert_default();
                    let class = class.parse().ok().filter(|class| *class < CLASSES as u8)?;
                    work.add(class, core_time(figure)?);
                }
            }
        }
        Some(())
    }
}

fn core_time(seconds: f64) -> Option<Duration> {
    let seconds = Some(seconds).filter(|seconds| (0.0..=LONGEST_SECONDS).contains(seconds))?;
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW: Duration = Duration::from_secs(7);

    #[test]
    fn text_and_json_say_the_same() {
        let load = Load {
            observed: NOW,
            in_progress: 3,
            queued: 3,
            queuing_delay: Some(Duration::from_millis(12)),
            busy_cores: Some(4),
            work: Some(Work::by_class([Duration::from_millis(1500)])),
        };
        let expected = Said {
            load: Some(load),
            spent: Some(Spent {
                fetch: None,
                run: Duration::from_millis(250),
            }),
        };
        let text = "TEXT cpu=0.3,named_metrics.weir.in_progress=3,named_metrics.weir.queued.0=1,\
                    named_metrics.weir.queued.16=2,named_metrics.weir.queuing_delay_seconds=0.012,\
                    named_metrics.weir.busy_cores=4,named_metrics.weir.work_seconds.0=1.5,\
                    request_cost.weir.run_seconds=0.25,request_cost.other=1";
        let json = r#"JSON {"cpu_utilization":0.3,"named_metrics":{"weir.in_progress":3,"weir.queued.0":1,
                    "weir.queued.16":2,"weir.queuing_delay_seconds":0.012,"weir.busy_cores":4,
                    "weir.work_seconds.0":1.5,"other":1},"request_cost":{"weir.run_seconds":0.25}}"#;
        assert_eq!(parse(text.as_bytes(), NOW), Some(expected.clone()));
        assert_eq!(parse(json.as_bytes(), NOW), Some(expected));
    }

    #[test]
    fn half_a_load_is_none_and_a_cost_stands_by_itself() {
        for (value, cost) in [
            ("TEXT cpu=0.5", None),
            ("TEXT named_metrics.weir.in_progress=3", None),
            ("TEXT request_cost.weir.fetch_seconds=1", None),
            ("TEXT request_cost.weir.run_seconds=1", Some(1)),
        ] {
            let said = parse(value.as_bytes(), NOW).unwrap();
            assert_eq!(said.load, None, "{value}");
            let run = said.spent.map(|spent| spent.run);
            assert_eq!(run, cost.map(Duration::from_secs), "{value}");
        }
    }

    #[test]
    fn nonsense_says_nothing() {
        for value in [
            "",
            "TEXT ",
            "named_metrics.weir.in_progress=3",
            "TEXT named_metrics.weir.in_progress=-1",
            "TEXT named_metrics.weir.in_progress=NaN",
            "TEXT named_metrics.weir.in_progress=many",
            "TEXT named_metrics.weir.work_seconds.32=1",
            "TEXT request_cost.weir.run_seconds=-1",
            "TEXT request_cost.weir.run_seconds=1e30",
            "TEXT named_metrics.weir.work_seconds.0=1e6",
            "JSON {",
            r#"JSON {"named_metrics":[]}"#,
        ] {
            assert_eq!(parse(value.as_bytes(), NOW), None, "{value}");
        }
        assert_eq!(parse(&[b'T', 0xff], NOW), None);
        assert_eq!(parse(&vec![b'x'; 65_536], NOW), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(value in prop::collection::vec(any::<u8>(), 0..200)) {
            parse(&value, NOW);
        }
    }
}
