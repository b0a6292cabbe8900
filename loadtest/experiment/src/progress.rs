// SPDX-License-Identifier: Apache-2.0
//! What a person watching sees: one line that changes, or a line now and then in a log.

use std::io::{IsTerminal, Write, stdout};
use std::time::{Duration, Instant};

/// Between lines where the output is not a terminal.
const LOG_EVERY: Duration = Duration::from_secs(15);

pub(crate) struct Progress {
    terminal: bool,
    ways: usize,
    each: Duration,
    way: usize,
    name: String,
    shown: Option<Instant>,
}

impl Progress {
    /// `each` is how long one way takes.
    pub(crate) fn new(ways: usize, each: Duration) -> Self {
        Self {
            terminal: stdout().is_terminal(),
            ways,
            each,
            way: 0,
            name: String::new(),
            shown: None,
        }
    }

    pub(crate) fn next_way(&mut self, name: &str) {
        self.way += 1;
        name.clone_into(&mut self.name);
        self.shown = None;
    }

    /// Says what happens, `elapsed` into the way. Cheap to call often.
    pub(crate) fn say(&mut self, what: &str, elapsed: Duration) {
        let every = if self.terminal {
            Duration::from_secs(1)
        } else {
            LOG_EVERY
        };
        if self.shown.is_some_and(|shown| shown.elapsed() < every) {
            return;
        }
        self.shown = Some(Instant::now());
        let line = self.line(what, elapsed);
        if self.terminal {
            // Back to the start, and clear what a longer line left.
            print!("\r{line}\x1b[K");
            let _ = stdout().flush();
        } else {
            println!("{line}");
        }
    }

    /// Ends the line of this way.
    pub(crate) fn end_way(&mut self, what: &str) {
        let start = if self.terminal { "\r" } else { "" };
        let end = if self.terminal { "\x1b[K" } else { "" };
        println!(
            "{start}way {}/{} {}: {what}{end}",
            self.way, self.ways, self.name
        );
    }

    fn line(&self, what: &str, elapsed: Duration) -> String {
        let ahead = self.each * (self.ways - self.way) as u32;
        let left = (self.each.saturating_sub(elapsed) + ahead).as_secs();
        format!(
            "way {}/{} {}: {what}; {}:{:02} left in all",
            self.way,
            self.ways,
            self.name,
            left / 60,
            left % 60
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_counts_the_ways_ahead() {
        let mut progress = Progress::new(3, Duration::from_secs(50));
        progress.next_way("envoy ring_hash");
        progress.next_way("weir");
        let line = progress.line("sending", Duration::from_secs(20));
        assert_eq!(line, "way 2/3 weir: sending; 1:20 left in all");
    }
}
