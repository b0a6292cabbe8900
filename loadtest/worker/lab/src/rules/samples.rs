// SPDX-License-Identifier: Apache-2.0
//! Figures by row of the table and round.

use weir_report::Spread;

use super::cost::Cost;

/// One figure of one round.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Figure {
    Cost(Cost),
    Bytes(f64),
}

impl Figure {
    /// The part of a ratio: CPU seconds, as machines are shared, or bytes.
    pub(super) fn value(self) -> f64 {
        match self {
            Figure::Cost(cost) => cost.cpu.as_secs_f64(),
            Figure::Bytes(bytes) => bytes,
        }
    }
}

/// A row: a figure of each round.
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
        spread(pairs.map(|(one, other)| one.value() / other.value()))
    }
}

/// The spread of the finite figures.
pub(super) fn spread(figures: impl Iterator<Item = f64>) -> Option<Spread> {
    let finite: Vec<f64> = figures.filter(|figure| figure.is_finite()).collect();
    Spread::of(&finite)
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
    fn figures_that_are_no_numbers_do_not_count() {
        assert_eq!(
            spread([4.0, f64::NAN, 1.0].into_iter()).unwrap().median,
            2.5
        );
        assert_eq!(spread([f64::NAN].into_iter()), None);
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
