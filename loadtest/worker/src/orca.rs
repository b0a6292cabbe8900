// SPDX-License-Identifier: Apache-2.0
//! The load, and what an answer has cost, as an ORCA response header (Open Request Cost Aggregation, xDS
//! gRFC A51), TEXT form.

use std::fmt::Write;

use weir_executor::{Load, Source, Spent};

/// Name of the response header.
pub const HEADER: &str = "endpoint-load-metrics";

/// `TEXT named_metrics.weir.in_progress=3,...`: jobs in progress, jobs queued in each of
/// `classes` with the core time that they are expected to need, busy cores, and the queuing delay in seconds
/// if one is known; of what was spent the core time of the run and of a fetch.
#[must_use]
pub fn text(load: &Load, classes: &[u8], spent: Option<&Spent>) -> String {
    let mut out = format!(
        "TEXT named_metrics.weir.in_progress={},named_metrics.weir.busy_cores={}",
        load.in_progress, load.busy_cores
    );
    for class in classes {
        let n = load.queued.get(usize::from(*class)).copied().unwrap_or(0);
        let work = load.work.get(usize::from(*class)).copied();
        let work = work.unwrap_or_default().as_secs_f64();
        // Writing to a String cannot fail.
        let _ = write!(
            out,
            ",named_metrics.weir.queued.{class}={n},named_metrics.weir.work_seconds.{class}={work:.6}"
        );
    }
    if let Some(delay) = load.queuing_delay {
        let seconds = delay.as_secs_f64();
        let _ = write!(
            out,
            ",named_metrics.weir.queuing_delay_seconds={seconds:.6}"
        );
    }
    if let Some(spent) = spent {
        let run = spent.cost.run.as_secs_f64();
        let _ = write!(out, ",request_cost.weir.run_seconds={run:.6}");
        if spent.source == Source::Miss {
            let fetch = spent.cost.fetch.as_secs_f64();
            let _ = write!(out, ",request_cost.weir.fetch_seconds={fetch:.6}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use weir_executor::{CLASSES, Cost, Kind};

    #[test]
    fn the_text_form_lists_every_configured_class() {
        let mut queued = [0; CLASSES];
        queued[0] = 1;
        queued[16] = 2;
        let mut load = Load {
            in_progress: 3,
            busy_cores: 2,
            queued,
            stalled: [0; Kind::COUNT],
            work: [Duration::from_millis(1500); CLASSES],
            queuing_delay: Some(Duration::from_millis(12)),
        };
        assert_eq!(
            text(&load, &[0, 16], None),
            "TEXT named_metrics.weir.in_progress=3,named_metrics.weir.busy_cores=2,\
             named_metrics.weir.queued.0=1,named_metrics.weir.work_seconds.0=1.500000,\
             named_metrics.weir.queued.16=2,named_metrics.weir.work_seconds.16=1.500000,\
             named_metrics.weir.queuing_delay_seconds=0.012000"
        );
        load.queuing_delay = None;
        assert!(!text(&load, &[0], None).contains("queuing_delay"));
    }

    #[test]
    fn a_fetch_is_told_by_who_made_it() {
        let load = Load {
            in_progress: 0,
            busy_cores: 0,
            queued: [0; CLASSES],
            stalled: [0; Kind::COUNT],
            work: [Duration::ZERO; CLASSES],
            queuing_delay: None,
        };
        let mut spent = Spent {
            wait: Duration::ZERO,
            fetch: Duration::from_secs(2),
            run: Duration::from_secs(1),
            cost: Cost {
                fetch: Duration::from_secs(2),
                run: Duration::from_secs(3),
            },
            source: Source::Miss,
        };
        let told = text(&load, &[], Some(&spent));
        let cost =
            "request_cost.weir.run_seconds=3.000000,request_cost.weir.fetch_seconds=2.000000";
        assert!(told.ends_with(cost), "{told}");
        spent.source = Source::Shared;
        let told = text(&load, &[], Some(&spent));
        assert!(told.ends_with("run_seconds=3.000000"), "{told}");
    }
}
