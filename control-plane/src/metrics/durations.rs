// SPDX-License-Identifier: Apache-2.0
//! How long requests took that left a receipt; each bucket has the number of the newest one in it as its exemplar
//! (OpenMetrics 1.0), so that a dashboard leads from a slow request to why its host was chosen.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::exemplar::HistogramWithExemplars;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::exponential_buckets;

/// From a millisecond to a minute, each twice as long as the one before.
const BUCKETS: u16 = 17;

type Histogram = HistogramWithExemplars<Receipt>;
type Histograms = Family<Steered, Histogram, fn() -> Histogram>;

#[derive(Clone, Debug, Default, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(super) struct Steered {
    cluster: String,
    steered: &'static str,
}

#[derive(Clone, Debug, Default, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(super) struct Receipt {
    number: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Durations(Histograms);

impl Default for Durations {
    fn default() -> Self {
        let made: fn() -> Histogram = || Histogram::new(exponential_buckets(0.001, 2.0, BUCKETS));
        Self(Family::new_with_constructor(made))
    }
}

impl Durations {
    pub(super) fn family(&self) -> Histograms {
        self.0.clone()
    }

    pub(super) fn observe(&self, cluster: &str, steered: bool, number: u64, lasted: Duration) {
        let histogram = self.0.get_or_create(&labels(cluster, steered));
        histogram.observe(lasted.as_secs_f64(), Some(Receipt { number }), None);
    }

    pub(super) fn forget(&self, cluster: &str) {
        for steered in [false, true] {
            self.0.remove(&labels(cluster, steered));
        }
    }
}

fn labels(cluster: &str, steered: bool) -> Steered {
    Steered {
        cluster: cluster.to_owned(),
        steered: if steered { "true" } else { "false" },
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::registry::Registry;

    use super::*;

    #[test]
    fn a_bucket_names_its_newest_receipt() {
        let durations = Durations::default();
        let mut registry = Registry::default();
        registry.register("lasted", "x", durations.family());
        let page = || {
            let mut page = String::new();
            prometheus_client::encoding::text::encode(&mut page, &registry).unwrap();
            page
        };
        for number in [7, 8] {
            durations.observe("rules", true, number, Duration::from_micros(1500));
        }
        let bucket = "lasted_bucket{le=\"0.002\",cluster=\"rules\",steered=\"true\"} 2 # {number=\"8\"} 0.0015";
        assert!(page().contains(bucket), "{}", page());
        durations.forget("rules");
        assert!(!page().contains("rules"), "{}", page());
    }
}
