// SPDX-License-Identifier: Apache-2.0
//! How far the grid is, and what is left.

use std::time::{Duration, Instant};

const EVERY: Duration = Duration::from_secs(5);

pub(super) struct Progress {
    missing: usize,
    ended: usize,
    began: Instant,
    said: Instant,
}

impl Progress {
    pub(super) fn start(cells: usize, missing: usize) -> Self {
        println!(
            "experiments: {cells} cells, {} of them done before",
            cells - missing
        );
        let now = Instant::now();
        Self {
            missing,
            ended: 0,
            began: now,
            said: now,
        }
    }

    pub(super) fn ended(&mut self) {
        self.ended += 1;
        if self.said.elapsed() >= EVERY || self.ended == self.missing {
            self.said = Instant::now();
            println!("{}", line(self.ended, self.missing, self.began.elapsed()));
        }
    }
}

/// Cells that are left are taken for as long as those that have ended.
fn line(ended: usize, all: usize, took: Duration) -> String {
    let left = took.as_secs_f64() * (all - ended) as f64 / ended.max(1) as f64;
    let left = match left {
        left if left < 90.0 => format!("{left:.0} s"),
        left => format!("{:.0} min", left / 60.0),
    };
    format!("experiments: {ended} of {all} cells, about {left} left")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_estimated_from_what_has_ended() {
        let took = Duration::from_secs(60);
        assert_eq!(
            line(10, 15, took),
            "experiments: 10 of 15 cells, about 30 s left"
        );
        assert_eq!(
            line(10, 110, took),
            "experiments: 10 of 110 cells, about 10 min left"
        );
    }
}
