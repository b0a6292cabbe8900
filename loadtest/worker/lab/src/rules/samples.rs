// SPDX-License-Identifier: Apache-2.0
//! What was measured, by row of the table and round.

use super::cost::Cost;

/// One figure of one round.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Figure {
    Cost(Cost),
    Bytes(f64),
}

impl Figure {
    /// What ratios are made of: CPU seconds, as machines are shared, or bytes.
    pub(super) fn value(self) -> f64 {
        match self {
            Figure::Cost(cost) => cost.cpu.as_secs_f64(),
            Figure::Bytes(bytes) => bytes,
        }
    }
}

/// A row: what was measured, once a round.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) part: &'static str,
    pub(super) what: String,
    /// Items that one figure is about; 0 where a rate says nothing.
    pub(super) items: u64,
    /// The row of the same part that it is compared with.
    pub(super) to: Option<String>,
    pub(super) figures: Vec<Figure>,
}

/// Rows in the order in which they were first measured.
#[derive(Debug, Default)]
pub(super) struct Samples(Vec<Row>);

impl Samples {
    /// Adds a figure to the row called `what`.
    pub(super) fn add(
        &mut self,
        part: &'static str,
        what: impl Into<String>,
        (items, to): (u64, Option<&str>),
        figure: Figure,
    ) {
        let what = what.into();
        let known = self
            .0
            .iter_mut()
            .find(|row| row.part == part && row.what == what);
        match known {
            Some(row) => row.figures.push(figure),
            None => self.0.push(Row {
                part,
                what,
                items,
                to: to.map(str::to_owned),
                figures: vec![figure],
            }),
        }
    }

    pub(super) fn rows(&self) -> &[Row] {
        &self.0
    }

    /// How a row compares with the one it refers to, round by round.
    pub(super) fn ratio(&self, row: &Row) -> Option<Spread> {
        let to = row.to.as_ref()?;
        let base = self
            .0
            .iter()
            .find(|base| base.part == row.part && base.what == *to)?;
        let pairs = row.figures.iter().zip(&base.figures);
        Spread::of(pairs.map(|(one, other)| one.value() / other.value()))
    }
}

/// The least, the middle and the greatest of some figures.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Spread {
    pub(super) least: f64,
    pub(super) median: f64,
    pub(super) most: f64,
}

impl Spread {
    /// `None` of nothing, and of what is not finite.
    pub(super) fn of(figures: impl Iterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = figures.filter(|figure| figure.is_finite()).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let (least, most) = (*sorted.first()?, *sorted.last()?);
        let upper = sorted.len() / 2;
        let lower = (sorted.len() - 1) / 2;
        let median = (sorted[lower] + sorted[upper]) / 2.0;
        Some(Self {
            least,
            median,
            most,
        })
    }

    pub(super) fn map(self, change: impl Fn(f64) -> f64) -> Self {
        let (one, other) = (change(self.least), change(self.most));
        Self {
            least: one.min(other),
            median: change(self.median),
            most: one.max(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn cpu(seconds: u64) -> Figure {
        let cpu = Duration::from_secs(seconds);
        Figure::Cost(Cost { wall: cpu, cpu })
    }

    #[test]
    fn the_median_is_in_the_middle() {
        let spread = |figures: &[f64]| Spread::of(figures.iter().copied()).unwrap();
        assert_eq!(spread(&[3.0, 1.0, 2.0]).median, 2.0);
        assert_eq!(spread(&[4.0, 1.0]).median, 2.5);
        let rate = spread(&[1.0, 2.0, 4.0]).map(|seconds| 8.0 / seconds);
        assert_eq!((rate.least, rate.median, rate.most), (2.0, 4.0, 8.0));
        assert_eq!(Spread::of([f64::NAN].into_iter()), None);
    }

    #[test]
    fn ratios_pair_figures_of_one_round() {
        let mut samples = Samples::default();
        for (one, other) in [(1, 2), (10, 10), (2, 8)] {
            samples.add("part", "one", (0, None), cpu(one));
            samples.add("part", "other", (0, Some("one")), cpu(other));
        }
        let [one, other] = samples.rows() else {
            panic!("{:?}", samples.rows());
        };
        assert_eq!(samples.ratio(one), None);
        let ratio = samples.ratio(other).unwrap();
        assert_eq!((ratio.least, ratio.median, ratio.most), (1.0, 2.0, 4.0));
    }
}
