// SPDX-License-Identifier: Apache-2.0
//! How large projects are.

use rand::RngExt;
use rand::seq::SliceRandom;

use super::draw::{self, Draw};
use super::settings::Settings;

/// Channels get rarer as items do by default.
const CHANNELS_SHAPE: f64 = 1.0;

/// Items of each project. One draw falls into each of `projects` equally likely ranges, so that the
/// few projects of a small run have a tail whatever the seed is.
pub(super) fn of_projects(settings: &Settings) -> Vec<u64> {
    let mut draw = draw::of(settings.seed, "sizes", 0);
    let (low, high) = (settings.items_min as f64, settings.items_max as f64 + 1.0);
    let size = |at: usize| {
        let uniform = (at as f64 + draw.random::<f64>()) / settings.projects as f64;
        let size = bounded_pareto(uniform, low, high, settings.items_shape);
        (size as u64).clamp(settings.items_min, settings.items_max)
    };
    let mut sizes: Vec<u64> = (0..settings.projects).map(size).collect();
    sizes.shuffle(&mut draw);
    sizes
}

/// Channels of one project.
pub(super) fn of_channels(settings: &Settings, draw: &mut Draw) -> u32 {
    let high = f64::from(settings.channels_max) + 1.0;
    let channels = bounded_pareto(draw.random(), 1.0, high, CHANNELS_SHAPE);
    (channels as u32).clamp(1, settings.channels_max)
}

/// The value below which a share `uniform` of a Pareto distribution cut to `low..high` lies, by
/// inversion of its distribution function: M. E. Crovella, M. Harchol-Balter, C. D. Murta, Task
/// Assignment in a Distributed System, 1998, section 2.
fn bounded_pareto(uniform: f64, low: f64, high: f64, shape: f64) -> f64 {
    let kept = 1.0 - (low / high).powf(shape);
    low / (1.0 - uniform * kept).powf(shape.recip())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_bounded_pareto_stays_in_its_bounds_and_grows(
            (one, two) in (0.0..1.0f64, 0.0..1.0f64),
            low in 1.0..1e6f64,
            times in 1.0..1e6f64,
            shape in 0.1..10.0f64,
        ) {
            let at = |uniform| bounded_pareto(uniform, low, low * times, shape);
            prop_assert!(at(one) >= low * 0.999_999 && at(one) <= low * times * 1.000_001);
            prop_assert!(at(one.min(two)) <= at(one.max(two)));
        }

        #[test]
        fn sizes_stay_within_the_settings(
            seed: u64,
            projects in 1usize..50,
            items_min in 1u64..1000,
            more in 0u64..1_000_000,
        ) {
            let items_max = items_min + more;
            let settings = Settings { seed, projects, items_min, items_max, ..Settings::default() };
            let sizes = of_projects(&settings);
            prop_assert_eq!(sizes.len(), projects);
            prop_assert!(sizes.iter().all(|size| (items_min..=items_max).contains(size)));
        }
    }

    #[test]
    fn most_projects_are_small_and_the_largest_are_most_of_all_items() {
        for seed in 0..20 {
            let settings = Settings {
                seed,
                projects: 200,
                ..Settings::default()
            };
            let mut sizes = of_projects(&settings);
            sizes.sort_unstable();
            assert!(sizes[100] < 3 * settings.items_min, "{}", sizes[100]);
            let all: u64 = sizes.iter().sum();
            let largest: u64 = sizes[180..].iter().sum();
            assert!(largest * 2 > all, "{largest} of {all}");
        }
    }
}
