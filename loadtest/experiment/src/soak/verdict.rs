// SPDX-License-Identifier: Apache-2.0
//! What must hold.

use serde::Serialize;

use crate::soak::load::Sent;
use crate::soak::samples::{Sample, What};
use crate::soak::stage::{CONTROL, Stage, who_stays};
use crate::soak::trend::trend;

/// Something that must hold.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    /// Who and what.
    pub what: String,
    /// What was seen, and what is allowed.
    pub seen: String,
    /// Whether it holds.
    pub holds: bool,
}

/// What weir-control must know when nothing comes or goes any more.
fn known(stage: &Stage) -> [(What, usize); 3] {
    [
        (What::Proxies, stage.callers.len()),
        (What::Streams, stage.callers.len()),
        (What::HostsUp, stage.hosts.len()),
    ]
}

pub(crate) fn is_settled(stage: &Stage, sample: &Sample) -> bool {
    of_the_end(stage, sample, Sent::default())
        .iter()
        .all(|verdict| verdict.holds || verdict.what == REQUESTS)
}

const REQUESTS: &str = "requests where no VM is killed";

/// What is there when the load has ended.
pub(crate) fn of_the_end(stage: &Stage, sample: &Sample, sent: Sent) -> Vec<Verdict> {
    let mut verdicts = vec![Verdict {
        what: REQUESTS.to_owned(),
        seen: format!("{} failed of {} answered", sent.failed, sent.ok),
        holds: sent.failed == 0 && sent.ok > 0,
    }];
    for (what, wanted) in known(stage) {
        let seen = sample.get(CONTROL).and_then(|figures| figures.get(&what));
        verdicts.push(Verdict {
            what: format!("{CONTROL}: {} at the end", what.name()),
            seen: format!("{}, {wanted} are there", shown(seen)),
            holds: seen == Some(&(wanted as f64)),
        });
    }
    for what in What::ALL.into_iter().filter(|what| what.ends()) {
        let figures = sample.values().filter_map(|figures| figures.get(&what));
        let all: Vec<f64> = figures.copied().collect();
        verdicts.push(Verdict {
            what: format!("{} at the end", what.name()),
            seen: format!("{} in {} processes", all.iter().sum::<f64>(), all.len()),
            holds: !all.is_empty() && all.iter().all(|figure| *figure == 0.0),
        });
    }
    verdicts
}

fn shown(figure: Option<&f64>) -> String {
    figure.map_or_else(|| "unknown".to_owned(), f64::to_string)
}

/// Slopes of the second half, of those who stay.
pub(crate) fn of_slopes(stage: &Stage, samples: &[(f64, Sample)]) -> Vec<Verdict> {
    // The last one is of the time after the load.
    let loaded = &samples[..samples.len().saturating_sub(1)];
    let second_half = &loaded[loaded.len() / 2..];
    let mut verdicts = Vec::new();
    for who in who_stays(stage) {
        for what in What::ALL {
            let (Some(bound), points) = (what.bound(), series(second_half, &who, what)) else {
                continue;
            };
            let Some(trend) = trend(&points) else {
                continue;
            };
            verdicts.push(Verdict {
                what: format!("{who}: {}", what.name()),
                seen: format!(
                    "{:+.2} in 30 min at {:.1}; {:.2} is allowed",
                    trend.growth,
                    trend.median,
                    bound.of(trend.median)
                ),
                holds: !bound.is_passed(trend),
            });
        }
    }
    verdicts
}

pub(crate) fn series(samples: &[(f64, Sample)], who: &str, what: What) -> Vec<(f64, f64)> {
    let point = |(at, sample): &(f64, Sample)| Some((*at, *sample.get(who)?.get(&what)?));
    samples.iter().filter_map(point).collect()
}
