// SPDX-License-Identifier: Apache-2.0
//! The figures as lines of text.

use crate::interval::Figures;
use crate::total::Summary;

/// Above the rows.
pub const HEAD: &str = "   at s  target/s  answered/s   p50 us   p95 us   p99 us   max us  \
                        late us   errors  dropped  in flight";

/// One interval. A percentile that falls on a request without an answer is `none`.
#[must_use]
pub fn row(figures: &Figures) -> String {
    let Figures {
        latency, counts, ..
    } = figures;
    let [p50, p95, p99, max] = [
        latency.p50_us,
        latency.p95_us,
        latency.p99_us,
        latency.max_us,
    ]
    .map(told);
    format!(
        "{:>7.1} {:>9.0} {:>11.0} {p50:>8} {p95:>8} {p99:>8} {max:>8} {:>8} {:>8} {:>8} {:>10}{}",
        figures.start_s,
        figures.target_qps,
        figures.achieved_qps,
        figures.client_late_p95_us,
        counts.errors,
        counts.dropped,
        figures.in_flight_max,
        if figures.violated { "  SLO" } else { "" },
    )
}

/// The run.
#[must_use]
pub fn summary(summary: &Summary) -> String {
    let Summary {
        latency, counts, ..
    } = summary;
    let mut text = format!(
        "{} of {} intervals ({:.2} %) have a p95 above {} us\n\
         {} requests due, {} answered, {} errors, {} dropped; p50 {}, p95 {}, p99 {}, max {} us",
        summary.violated,
        summary.intervals,
        summary.violated_share * 100.0,
        summary.slo_us,
        counts.due,
        counts.answered,
        counts.errors,
        counts.dropped,
        told(latency.p50_us),
        told(latency.p95_us),
        told(latency.p99_us),
        told(latency.max_us),
    );
    if counts.misses > 0 {
        text.push_str(&format!(
            "\n{} keys were not there: was memcached loaded, and has it memory for them (-m)?",
            counts.misses
        ));
    }
    text
}

fn told(us: Option<u64>) -> String {
    us.map_or_else(|| "none".to_owned(), |us| us.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interval::Interval;
    use crate::schedule::Step;

    #[test]
    fn columns_stand_below_their_names_and_violations_are_marked() {
        let mut interval = Interval::new(
            0,
            Step {
                start_ns: 0,
                end_ns: 1_000_000_000,
                rate: 1.0,
            },
        );
        interval.dropped();
        let row = row(&interval.figures(1));
        assert_eq!(row.strip_suffix("  SLO").unwrap().len(), HEAD.len());
        assert_eq!(row.matches("none").count(), 4, "{row}");
    }
}
