// SPDX-License-Identifier: Apache-2.0
//! The load as an ORCA response header (Open Request Cost Aggregation, xDS gRFC A51), TEXT form.

use std::fmt::Write;

use weir_executor::Load;

/// Name of the response header.
pub const HEADER: &str = "endpoint-load-metrics";

/// `TEXT named_metrics.weir.in_progress=3,...`: jobs in progress, jobs queued in each of
/// `classes`, and the queuing delay in seconds if one is known.
#[must_use]
pub fn text(load: &Load, classes: &[u8]) -> String {
    let mut out = format!("TEXT named_metrics.weir.in_progress={}", load.in_progress);
    for class in classes {
        let n = load.queued.get(usize::from(*class)).copied().unwrap_or(0);
        // Writing to a String cannot fail.
        let _ = write!(out, ",named_metrics.weir.queued.{class}={n}");
    }
    if let Some(delay) = load.queuing_delay {
        let seconds = delay.as_secs_f64();
        let _ = write!(
            out,
            ",named_metrics.weir.queuing_delay_seconds={seconds:.6}"
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use weir_executor::{CLASSES, Kind};

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
            queuing_delay: Some(Duration::from_millis(12)),
        };
        assert_eq!(
            text(&load, &[0, 16]),
            "TEXT named_metrics.weir.in_progress=3,named_metrics.weir.queued.0=1,\
             named_metrics.weir.queued.16=2,named_metrics.weir.queuing_delay_seconds=0.012000"
        );
        load.queuing_delay = None;
        assert!(!text(&load, &[0]).contains("queuing_delay"));
    }
}
