// SPDX-License-Identifier: Apache-2.0
//! Single figures of many values.

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
    let rank = (share * values.len() as f64).ceil() as usize;
    sorted(values).get(rank.saturating_sub(1)).copied()
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
    fn a_median_is_the_middle_or_the_mean_of_two() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn a_quantile_is_a_value_that_occurred() {
        let values: Vec<f64> = (1..=200).rev().map(f64::from).collect();
        let found = [0.0, 0.5, 0.95, 0.99, 1.0].map(|share| quantile(&values, share));
        assert_eq!(found, [1.0, 100.0, 190.0, 198.0, 200.0].map(Some));
        assert_eq!(quantile(&[], 0.5), None);
    }

    #[test]
    fn a_spread_needs_numbers() {
        let found = Spread::of(&[5.0, 1.0, 3.0]).unwrap();
        assert_eq!((found.least, found.median, found.most), (1.0, 3.0, 5.0));
        assert_eq!(Spread::of(&[1.0, f64::NAN]), None);
        assert_eq!(Spread::of(&[]), None);
    }
}
