// SPDX-License-Identifier: Apache-2.0
//! The kernel's own account of a core's changes of frequency: no change is too quick to be seen.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};

/// How often a core went from one frequency to another, in kHz; what never happened is missing.
pub type Transitions = BTreeMap<(u32, u32), u64>;

/// The file that [`parse`] reads.
pub(crate) fn file(core: usize) -> String {
    format!("/sys/devices/system/cpu/cpu{core}/cpufreq/stats/trans_table")
}

/// Reads the table, whose first two lines are a heading and the frequencies of the columns.
pub(crate) fn parse(table: &str) -> Result<Transitions> {
    let mut lines = table.lines().skip(1);
    let (_, to) = row(lines.next().context("the table of transitions is empty")?)?;
    let mut transitions = Transitions::new();
    for line in lines {
        let (from, counts) = row(line)?;
        let from = from.with_context(|| format!("`{line}` is from no frequency"))?;
        ensure!(
            counts.len() == to.len(),
            "`{line}` is not as wide as its table"
        );
        for (to, count) in to.iter().zip(counts) {
            if count > 0 {
                transitions.insert((from, u32::try_from(*to)?), count);
            }
        }
    }
    Ok(transitions)
}

/// `from: count count …`
fn row(line: &str) -> Result<(Option<u32>, Vec<u64>)> {
    let (from, rest) = line
        .split_once(':')
        .with_context(|| format!("`{line}` is no row of a table of transitions"))?;
    let counts = rest
        .split_whitespace()
        .map(str::parse)
        .collect::<Result<_, _>>();
    Ok((from.trim().parse().ok(), counts?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "   From  :    To\n         :   2600000   1000000 \n\
                         \x20 2600000:         0         2 \n  1000000:         1         0 \n";

    #[test]
    fn only_what_happened_is_in_the_account() {
        let expected =
            Transitions::from([((2_600_000, 1_000_000), 2), ((1_000_000, 2_600_000), 1)]);
        assert_eq!(parse(TABLE).unwrap(), expected);
    }

    #[test]
    fn a_table_that_is_cut_off_is_refused() {
        assert!(parse("").is_err());
        assert!(parse(&TABLE.replace("1         0", "1")).is_err());
    }
}
