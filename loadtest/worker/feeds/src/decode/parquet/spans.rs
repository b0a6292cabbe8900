// SPDX-License-Identifier: Apache-2.0
//! Which rows of a file are read by one thread at once.

use std::ops::Range;

use weir_rules::feed::BATCH_ROWS;

/// Row groups are joined up to so many rows, so that a file of tiny ones still gives full batches.
const RUN_ROWS: usize = 8 * BATCH_ROWS;

/// Consecutive rows.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Span {
    /// Consecutive row groups.
    pub(super) groups: Range<usize>,
    /// Rows of them before the first.
    pub(super) offset: usize,
    /// How many rows.
    pub(super) rows: usize,
}

/// Divides row groups of so many `rows`. Groups are joined to runs, and a run is divided among
/// `cores` after whole batches: batches begin at the same rows whatever `cores` is.
pub(super) fn of(rows: &[usize], cores: usize) -> Vec<Span> {
    let total: usize = rows.iter().sum();
    let share = total.div_ceil(cores.max(1)).next_multiple_of(BATCH_ROWS);
    let share = share.max(BATCH_ROWS);
    let mut spans = Vec::new();
    for (groups, run) in runs(rows) {
        for offset in (0..run).step_by(share) {
            spans.push(Span {
                groups: groups.clone(),
                offset,
                rows: share.min(run - offset),
            });
        }
    }
    spans
}

fn runs(rows: &[usize]) -> Vec<(Range<usize>, usize)> {
    let mut runs: Vec<(Range<usize>, usize)> = Vec::new();
    for (group, rows) in rows.iter().enumerate() {
        match runs.last_mut() {
            Some((groups, run)) if *run < RUN_ROWS => {
                groups.end = group + 1;
                *run += rows;
            }
            _ => runs.push((group..group + 1, *rows)),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn spans_cover_every_row_once_and_begin_at_whole_batches_of_a_run(
            rows in proptest::collection::vec(0usize..200_000, 0..20),
            cores in 0usize..9,
        ) {
            let spans = of(&rows, cores);
            let before = |group: usize| rows[..group].iter().sum::<usize>();
            let mut next = 0;
            for span in &spans {
                prop_assert!(span.rows > 0);
                prop_assert_eq!(span.offset % BATCH_ROWS, 0);
                prop_assert_eq!(before(span.groups.start) + span.offset, next);
                next += span.rows;
                prop_assert!(next <= before(span.groups.end));
            }
            prop_assert_eq!(next, before(rows.len()));
        }
    }
}
