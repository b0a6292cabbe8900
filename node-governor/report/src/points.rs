// SPDX-License-Identifier: Apache-2.0
//! Fewer points that show the same.

/// Ranks of a [`cdf`] spread evenly over the values.
const EVEN: usize = 200;
/// Ranks of a [`cdf`] that crowd towards each end, so that tails keep their shape, on a
/// logarithmic axis too.
const TAIL: usize = 80;

/// The share of values at or below each value, as steps from 0 to 1: `(value, share)`, ascending.
///
/// At most a few hundred points, each exactly on the distribution of all values; the smallest and
/// largest value are always among them. What is not finite is left out.
#[must_use]
pub fn cdf(values: &[f64]) -> Vec<(f64, f64)> {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
    sorted.sort_unstable_by(f64::total_cmp);
    let Some(&least) = sorted.first() else {
        return Vec::new();
    };
    let mut points = vec![(least, 0.0)];
    for rank in ranks(sorted.len()) {
        let value = sorted[rank];
        // Equal values make one step, up to the last of them.
        let below = sorted.partition_point(|v| *v <= value);
        let point = (value, below as f64 / sorted.len() as f64);
        if points.last() != Some(&point) {
            points.push(point);
        }
    }
    points
}

/// Indices into `len` sorted values: all of them while they are few.
fn ranks(len: usize) -> Vec<usize> {
    if len <= EVEN + 2 * TAIL {
        return (0..len).collect();
    }
    let last = (len - 1) as f64;
    let even = (0..EVEN).map(|n| last * n as f64 / (EVEN - 1) as f64);
    let tail = |n: usize| last.powf(n as f64 / (TAIL - 1) as f64) - 1.0;
    let tails = (0..TAIL).flat_map(|n| [tail(n), last - tail(n)]);
    let mut ranks: Vec<usize> = even
        .chain(tails)
        .map(|rank| rank.round() as usize)
        .collect();
    ranks.sort_unstable();
    ranks.dedup();
    ranks
}

/// At most `limit` (at least 6) of the points, in their order: of each of equally many neighbours
/// the first, the last and the extremes in both directions.
///
/// The M4 aggregation (Jugel et al., VLDB 2014) with extremes in x too, for points in no order.
#[must_use]
pub fn thin(points: &[(f64, f64)], limit: usize) -> Vec<(f64, f64)> {
    if points.len() <= limit.max(6) {
        return points.to_vec();
    }
    let stretches = (limit / 6).max(1);
    points
        .chunks(points.len().div_ceil(stretches))
        .flat_map(extremes)
        .collect()
}

fn extremes(stretch: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut keep = [0; 6];
    keep[1] = stretch.len().saturating_sub(1);
    for (n, (x, y)) in stretch.iter().enumerate() {
        keep[2] = if *x < stretch[keep[2]].0 { n } else { keep[2] };
        keep[3] = if *x > stretch[keep[3]].0 { n } else { keep[3] };
        keep[4] = if *y < stretch[keep[4]].1 { n } else { keep[4] };
        keep[5] = if *y > stretch[keep[5]].1 { n } else { keep[5] };
    }
    keep.sort_unstable();
    let mut kept = keep.to_vec();
    kept.dedup();
    kept.into_iter().map(|n| stretch[n]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn values() -> impl Strategy<Value = Vec<f64>> {
        prop::collection::vec((-50i32..50).prop_map(|n| f64::from(n) / 4.0), 1..2000)
    }

    proptest! {
        #[test]
        fn every_point_of_a_cdf_lies_on_the_whole_distribution(values in values()) {
            let points = cdf(&values);
            prop_assert!(points.len() <= EVEN + 2 * TAIL + 1);
            prop_assert_eq!(points[0].1, 0.0);
            prop_assert_eq!(points.last().unwrap().1, 1.0);
            for (value, share) in &points[1..] {
                let below = values.iter().filter(|v| *v <= value).count();
                prop_assert_eq!(*share, below as f64 / values.len() as f64);
            }
        }

        #[test]
        fn a_cdf_never_falls(values in values()) {
            for pair in cdf(&values).windows(2) {
                prop_assert!(pair[0].0 <= pair[1].0 && pair[0].1 <= pair[1].1);
            }
        }

        #[test]
        fn thinning_keeps_ends_extremes_and_order(ys in values(), limit in 6usize..300) {
            let all: Vec<_> = ys.iter().enumerate().map(|(n, y)| (n as f64, *y)).collect();
            let few = thin(&all, limit);
            let top = |p: &[(f64, f64)]| p.iter().map(|p| p.1).fold(f64::MIN, f64::max);
            let bottom = |p: &[(f64, f64)]| p.iter().map(|p| p.1).fold(f64::MAX, f64::min);
            prop_assert!(few.len() <= limit);
            prop_assert_eq!((few[0], *few.last().unwrap()), (all[0], *all.last().unwrap()));
            prop_assert_eq!((top(&few), bottom(&few)), (top(&all), bottom(&all)));
            prop_assert!(few.windows(2).all(|pair| pair[0].0 < pair[1].0));
        }
    }

    #[test]
    fn the_tails_of_a_large_cdf_are_kept_finely() {
        let values: Vec<f64> = (0..1_000_000).map(f64::from).collect();
        let points = cdf(&values);
        let above = points.iter().filter(|p| p.1 > 0.999).count();
        let below = points.iter().filter(|p| p.1 < 0.001).count();
        assert!(above > 20 && below > 20, "{above} and {below} points");
    }

    #[test]
    fn a_cdf_of_nothing_finite_is_empty() {
        assert_eq!(cdf(&[f64::NAN, f64::INFINITY]), []);
    }
}
