// SPDX-License-Identifier: Apache-2.0
//! Shades: how much, as a colour from that of the page to one that stands out.

/// Shades from nothing to all.
pub(crate) const SHADES: usize = 8;

/// The shade of a share: the first for nothing, the last for all, and never the first for something.
pub(crate) fn of_share(share: f64) -> usize {
    let last = (SHADES - 1) as f64;
    (share.clamp(0.0, 1.0) * last).ceil() as usize
}

/// The shade of a value that has passed `passed` of `steps` steps.
pub(crate) fn of_step(passed: usize, steps: usize) -> usize {
    if steps == 0 {
        return 0;
    }
    // Few steps spread over all shades; each gets one of its own while there are enough.
    (passed.min(steps) * (SHADES - 1)).div_ceil(steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_nothing_has_the_first_shade_and_only_what_is_large_the_last() {
        assert_eq!([0.0, 0.001, 0.5, 1.0, 7.0].map(of_share), [0, 1, 4, 7, 7]);
    }

    #[test]
    fn each_step_has_a_shade_of_its_own() {
        for steps in 1..SHADES {
            let mut shades: Vec<_> = (0..=steps).map(|n| of_step(n, steps)).collect();
            assert_eq!((shades[0], shades[steps]), (0, SHADES - 1));
            shades.dedup();
            assert_eq!(shades.len(), steps + 1);
        }
    }
}
