// SPDX-License-Identifier: Apache-2.0
//! Single figures of many values.

use std::fmt;

/// Median, least and most.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// See [`median`].
    pub median: f64,
    /// The least.
    pub least: f64,
    /// The most.
    pub most: f64,
}

impl Spread {
    /// None of no values, or of one that is no number.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
        if values.iter().any(|value| value.is_nan()) {
            return None;
        }
        let sorted = sorted(values);
        Some(Self {
            median: middle(&sorted)?,
            least: *sorted.first()?,
            most: *sorted.last()?,
        })
    }

    /// Of the ratios of rounds that were measured side by side.
    #[must_use]
    pub fn of_ratios(rounds: &[f64], to: &[f64]) -> Option<Self> {
        let ratios: Vec<f64> = rounds.iter().zip(to).map(|(a, b)| a / b).collect();
        Self::of(&ratios)
    }
}

/// The middle value; of an even number the mean of the two in the middle. None of nothing.
#[must_use]
pub fn median(values: &[f64]) -> Option<f64> {
    middle(&sorted(values))
}

/// The value below or at which this share of them is (nearest rank): one that occurred. None of nothing.
#[must_use]
pub fn quantile(values: &[f64], share: f64) -> Option<f64> {
    quantile_of_sorted(&sorted(values), share)
}

/// See [`quantile`].
#[must_use]
pub fn quantile_of_sorted(sorted: &[f64], share: f64) -> Option<f64> {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied()
}

/// Three digits that count, or as many as there are before the point.
#[must_use]
pub fn digits(figure: f64) -> String {
    let places = match figure.abs() {
        ..1e-12 => 0,
        size => (2 - size.log10().floor() as i32).max(0) as usize,
    };
    format!("{figure:.places$}")
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [median, least, most] = [self.median, self.least, self.most].map(digits);
        write!(f, "{median} ({least} to {most})")
    }
}

fn middle(sorted: &[f64]) -> Option<f64> {
    let half = sorted.len() / 2;
    let upper = *sorted.get(half)?;
    match sorted.len() % 2 {
        0 => Some((sorted.get(half - 1)? + upper) / 2.0),
        _ => Some(upper),
    }
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_are_told_by_their_median_and_ends() {
        let spread = Spread::of(&[3.0, 1.0, 2.0]).unwrap();
        assert_eq!(spread.to_string(), "2.00 (1.00 to 3.00)");
        assert_eq!(Spread::of(&[1.0, 4.0]).unwrap().median, 2.5);
        assert_eq!(Spread::of(&[]), None);
        assert_eq!(Spread::of(&[f64::NAN]), None);
    }

    #[test]
    fn ratios_are_of_rounds_side_by_side() {
        let ratios = Spread::of_ratios(&[2.0, 30.0], &[1.0, 10.0]).unwrap();
        assert_eq!((ratios.least, ratios.most), (2.0, 3.0));
    }

    #[test]
    fn percentiles_are_values_that_occurred() {
        let values: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        let of = |share| quantile(&values, share);
        assert_eq!(
            [0.0, 0.5, 0.99, 1.0].map(of),
            [1.0, 50.0, 99.0, 100.0].map(Some)
        );
        assert_eq!(quantile(&[7.0], 0.01), Some(7.0));
        assert_eq!(quantile(&[], 0.5), None);
    }

    #[test]
    fn a_median_is_the_middle_or_the_mean_of_two() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn three_digits_count() {
        let told = [0.0123, 1.2, 12.34, 123.4, 1234.5, 0.0].map(digits);
        assert_eq!(told, ["0.0123", "1.20", "12.3", "123", "1234", "0"]);
    }
}
