// SPDX-License-Identifier: Apache-2.0
//! What is told of ways on real hosts: figures side by side, and whether the machine let them be
//! compared. No claims: nobody has set thresholds for this workload.

use crate::demo::kept::Told;
use crate::demo::table::NAME;

/// Above it requests wait for the machine's cores rather than in the hosts' queues.
const MOST_BUSY: f64 = 0.9;

/// A replayer that is further behind, in milliseconds, sends another workload.
const MOST_LAG: f64 = 50.0;

/// A line for each way, and one of warning.
pub(super) fn lines(ways: &[Told]) -> Vec<String> {
    let mut lines: Vec<String> = ways.iter().map(line).collect();
    lines.push(if ways.iter().any(too_busy) {
        "The machine was too busy in some ways: their figures are of it, not of the way".to_owned()
    } else {
        "One run of each, on one small machine: differences of a few per cent are chance".to_owned()
    });
    lines
}

fn line(told: &Told) -> String {
    let all = &told.figures.all;
    format!(
        "{:<NAME$} hits {:>5.1} %, p99 wait {:.0} ms; {}{}",
        all.way,
        100.0 * all.hits,
        all.wait.p99,
        told.machine(),
        if too_busy(told) { ": TOO BUSY" } else { "" },
    )
}

/// Whether the figures of a way are rather those of the machine.
pub(super) fn too_busy(told: &Told) -> bool {
    told.busy.is_some_and(|share| share > MOST_BUSY) || told.lag > MOST_LAG
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::results::Figures;
    use crate::replay::Record;

    fn told(way: &str, busy: f64, lag: f64) -> Told {
        let record = Record::good("high", "a", 7.0, true);
        Told {
            figures: Figures::new(way, &[record]),
            ..Told::made_up(way, None, busy, lag)
        }
    }

    #[test]
    fn ways_stand_side_by_side_and_a_busy_machine_is_confessed() {
        let ways = [told("a", 0.5, 1.0)];
        assert_eq!(
            lines(&ways),
            [
                "a                              hits 100.0 %, p99 wait 7 ms; the machine's cores 50 % busy, replayer at most 1 ms \
                 behind for 99 %",
                "One run of each, on one small machine: differences of a few per cent are chance",
            ]
        );
        for busy in [told("b", 0.95, 1.0), told("b", 0.5, 80.0)] {
            let lines = lines(&[told("a", 0.5, 1.0), busy]);
            assert!(lines[1].ends_with(": TOO BUSY"), "{lines:?}");
            assert!(lines[2].contains("too busy"), "{lines:?}");
        }
    }
}
