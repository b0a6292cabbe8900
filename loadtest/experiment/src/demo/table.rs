// SPDX-License-Identifier: Apache-2.0
//! The table at the end.

use std::fmt;

/// One line: the requests of one priority under one way.
#[derive(Clone, Default)]
pub(super) struct Row {
    pub(super) way: String,
    pub(super) priority: String,
    pub(super) requests: u64,
    /// From the caller's first attempt to its last answer, back-off and retries included.
    pub(super) duration: Spread,
    /// What the host says of the time in which nothing ran for the request.
    pub(super) wait: Spread,
    /// Of the requests that were served, those that found their data, in 0..=1.
    pub(super) hits: f64,
    /// Attempts that were refused to protect the hosts; each was retried until the caller gave up.
    pub(super) shed: u64,
    /// Requests without a good answer in the end.
    pub(super) failed: u64,
    /// Standard deviation over mean of the hosts' mean waits: 0 is perfectly even.
    pub(super) unevenness: f64,
}

/// Milliseconds.
#[derive(Clone, Copy, Default)]
pub(super) struct Spread {
    pub(super) mean: f64,
    pub(super) p50: f64,
    pub(super) p90: f64,
    pub(super) p95: f64,
    pub(super) p99: f64,
}

/// Width of the column of ways.
pub(super) const NAME: usize = 30;

pub(super) struct Table(pub(super) Vec<Row>);

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const GROUP: &str = "   mean    p50    p90    p95    p99";
        let (duration, wait) = ("duration, ms", "wait in host, ms");
        writeln!(f, "{:<43} |{duration:^35}|{wait:^35}|", "")?;
        write!(
            f,
            "{:<NAME$} {:<5}{:>7} |{GROUP}|{GROUP}|",
            "way", "prio", "sent"
        )?;
        writeln!(
            f,
            "{:>6} {:>6} {:>6} {:>6}",
            "hit", "shed", "failed", "uneven"
        )?;
        let mut last = "";
        for row in &self.0 {
            if row.way != last {
                writeln!(f, "{:-<43}-+{:-<35}+{:-<35}+{:-<27}", "", "", "", "")?;
            }
            let way = if row.way == last { "" } else { &row.way };
            last = &row.way;
            writeln!(
                f,
                "{way:<NAME$} {:<5}{:>7} |{}|{}|{:>5.1}% {:>6} {:>6} {:>6.2}",
                row.priority,
                row.requests,
                row.duration,
                row.wait,
                100.0 * row.hits,
                row.shed,
                row.failed,
                row.unevenness
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for value in [self.mean, self.p50, self.p90, self.p95, self.p99] {
            write!(f, "{:>7}", milliseconds(value))?;
        }
        Ok(())
    }
}

/// Three significant digits are all that one run can mean.
pub(crate) fn milliseconds(value: f64) -> String {
    match value {
        v if v.is_nan() => "-".to_owned(),
        v if v < 9.995 => format!("{v:.2}"),
        v if v < 99.95 => format!("{v:.1}"),
        v => format!("{v:.0}"),
    }
}

#[cfg(test)]
impl Row {
    /// One request, over after so many milliseconds.
    pub(super) fn made_up(way: &str, milliseconds: f64, hits: f64) -> Self {
        let spread = Spread {
            mean: milliseconds,
            p50: milliseconds,
            p90: milliseconds,
            p95: milliseconds,
            p99: milliseconds,
        };
        Self {
            way: way.to_owned(),
            priority: "all".to_owned(),
            requests: 1,
            duration: spread,
            wait: spread,
            hits,
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(way: &str, priority: &str) -> Row {
        let spread = |p50| Spread {
            mean: 1.5 * p50,
            p50,
            p90: 4.0 * p50,
            p95: 10.0 * p50,
            p99: 100.0 * p50,
        };
        Row {
            priority: priority.to_owned(),
            requests: 12345,
            duration: spread(31.25),
            wait: spread(0.5),
            shed: 17,
            unevenness: 0.257,
            ..Row::made_up(way, 0.0, 0.915)
        }
    }

    #[test]
    fn the_table_names_a_way_once_and_keeps_its_columns() {
        let table = Table(vec![
            row("envoy ring_hash", "high"),
            row("envoy ring_hash", "low"),
            row("weir dynamic+dagor", "high"),
        ]);
        assert_eq!(table.to_string(), include_str!("table/golden.txt"));
    }
}
