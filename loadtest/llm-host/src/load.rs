// SPDX-License-Identifier: Apache-2.0
//! How busy a host is.

use std::time::Duration;

/// The header in which answers carry the load (Open Request Cost Aggregation, gRFC A51).
pub const ORCA_HEADER: &str = "endpoint-load-metrics";
/// Hosts of a language model know no priorities; all requests are of the class that Weir has for
/// work without one.
pub const CLASS: u8 = 16;

/// A picture of the load.
#[derive(Debug, Clone, PartialEq)]
pub struct Load {
    /// Sequences in the queue.
    pub waiting: usize,
    /// Sequences in prefill or decode.
    pub running: usize,
    /// Share of the blocks that running sequences hold. What is merely cached counts as free.
    pub kv_usage: f64,
    /// Blocks cached and findable.
    pub cached_blocks: usize,
    /// Blocks evicted so far.
    pub evictions: u64,
    /// Mean wait of the sequences that began in the last second; if none did while some wait, the
    /// longest wait so far.
    pub queuing_delay: Option<Duration>,
    /// Answers a second, of the last ten.
    pub answered_per_s: f64,
    /// Sequences to the slots that there are: above 1 some wait.
    pub utilisation: f64,
}

impl Load {
    /// The value of [`ORCA_HEADER`], in its TEXT form: what Weir reads, and the two figures that client-side weighted
    /// round robin makes its weights of (gRFC A58).
    #[must_use]
    pub fn orca(&self) -> String {
        let (waiting, all) = (self.waiting, self.waiting + self.running);
        let mut text = format!(
            "TEXT named_metrics.weir.in_progress={all},named_metrics.weir.queued.{CLASS}={waiting},\
             rps_fractional={:.3},application_utilization={:.3}",
            self.answered_per_s, self.utilisation
        );
        if let Some(delay) = self.queuing_delay {
            let seconds = delay.as_secs_f64();
            text += &format!(",named_metrics.weir.queuing_delay_seconds={seconds:.6}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orca_tells_what_weir_and_envoy_read() {
        let mut load = Load {
            waiting: 2,
            running: 3,
            kv_usage: 0.5,
            cached_blocks: 7,
            evictions: 0,
            queuing_delay: Some(Duration::from_millis(12)),
            answered_per_s: 0.25,
            utilisation: 1.5,
        };
        assert_eq!(
            load.orca(),
            "TEXT named_metrics.weir.in_progress=5,named_metrics.weir.queued.16=2,\
             rps_fractional=0.250,application_utilization=1.500,named_metrics.weir.queuing_delay_seconds=0.012000"
        );
        load.queuing_delay = None;
        assert!(!load.orca().contains("delay"));
    }
}
