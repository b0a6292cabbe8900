// SPDX-License-Identifier: Apache-2.0
//! What is told of ways on real hosts: figures side by side, and whether the machine let them be
//! compared. No claims: nobody has set thresholds for this workload.

use crate::demo::results::Figures;

/// Above it requests wait for the machine's cores rather than in the hosts' queues.
const MOST_BUSY: f64 = 0.9;

/// A replayer that is further behind, in milliseconds, sends another workload.
const MOST_LAG: f64 = 50.0;

/// A line for each way, and one of warning.
pub(super) fn lines(figures: &[&Figures]) -> Vec<String> {
    let mut lines: Vec<String> = figures.iter().map(|way| line(way)).collect();
    lines.push(if figures.iter().any(|way| too_busy(way)) {
        "The machine was too busy in some ways: their figures are of it, not of the way".to_owned()
    } else {
        "One run of each, on one small machine: differences of a few per cent are chance".to_owned()
    });
    lines
}

fn line(figures: &Figures) -> String {
    let Figures { all, busy, lag, .. } = figures;
    let busy = busy.map(|share| format!("the machine's cores {:.0} % busy, ", 100.0 * share));
    format!(
        "{:<21} hits {:>5.1} %, p99 wait {:.0} ms; {}replayer at most {lag:.0} ms behind for 99 %{}",
        all.way,
        100.0 * all.hits,
        all.wait.p99,
        busy.unwrap_or_default(),
        if too_busy(figures) { ": TOO BUSY" } else { "" },
    )
}

/// Whether the figures of a way are rather those of the machine.
pub(super) fn too_busy(figures: &Figures) -> bool {
    figures.busy.is_some_and(|share| share > MOST_BUSY) || figures.lag > MOST_LAG
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::Record;

    fn figures(way: &str, busy: f64, lag: f64) -> Figures {
        let record = Record::good("high", "a", 7.0, true);
        Figures::new(way, &[record], Some(busy), lag)
    }

    #[test]
    fn ways_stand_side_by_side_and_a_busy_machine_is_confessed() {
        let calm = figures("a", 0.5, 1.0);
        assert_eq!(
            lines(&[&calm]),
            [
                "a                     hits 100.0 %, p99 wait 7 ms; the machine's cores 50 % busy, replayer at most 1 ms \
                 behind for 99 %",
                "One run of each, on one small machine: differences of a few per cent are chance",
            ]
        );
        for busy in [figures("b", 0.95, 1.0), figures("b", 0.5, 80.0)] {
            let lines = lines(&[&calm, &busy]);
            assert!(lines[1].ends_with(": TOO BUSY"), "{lines:?}");
            assert!(lines[2].contains("too busy"), "{lines:?}");
        }
    }
}
