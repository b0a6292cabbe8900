// SPDX-License-Identifier: Apache-2.0
//! What jobs may send: the link, without what the service sends and room for it to grow.
//!
//! Heracles, section 4.3, algorithm 4, each second: `be_bw = LINK_RATE - ls_bw - max(0.05 * LINK_RATE, 0.10 * ls_bw)`.
//! Of our own: a hundredth of the link stays, for no class of the kernel's has nothing, and jobs' connections live on.

/// Bits a second that all jobs together may send by a link of so many, beside what the others send. While that is not
/// known, the least.
pub(super) fn ceiling(link: u64, egress: Option<f64>) -> u64 {
    let least = least(link);
    let Some(egress) = egress.filter(|egress| egress.is_finite() && *egress >= 0.0) else {
        return least;
    };
    let rate = link as f64;
    let left = rate - egress - (0.05 * rate).max(0.10 * egress);
    // Floats become whole numbers at the bounds of those.
    (left as u64).max(least)
}

/// What jobs may always send.
pub(crate) fn least(link: u64) -> u64 {
    (link / 100).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: u64 = 10_000_000_000;

    #[test]
    fn jobs_may_send_what_the_service_leaves_of_the_link_and_room_stays() {
        // A twentieth of the link is more than a tenth of what the service sends, up to half of the link.
        assert_eq!(ceiling(LINK, Some(0.0)), 9_500_000_000);
        assert_eq!(ceiling(LINK, Some(2e9)), 7_500_000_000);
        assert_eq!(ceiling(LINK, Some(5e9)), 4_500_000_000);
        // From there on a tenth of what it sends.
        assert_eq!(ceiling(LINK, Some(8e9)), 1_200_000_000);
    }

    #[test]
    fn a_hundredth_stays_of_a_full_link_and_of_one_that_nobody_measures() {
        for egress in [Some(9.5e9), Some(20e9), Some(f64::NAN), Some(-1.0), None] {
            assert_eq!(ceiling(LINK, egress), 100_000_000, "{egress:?}");
        }
        assert_eq!(ceiling(1, None), 1);
    }
}
