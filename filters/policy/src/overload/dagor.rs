// SPDX-License-Identifier: Apache-2.0
//! The admission level of a host, adjusted window by window (DAGOR: Zhou et al., *Overload Control for
//! Scaling WeChat Microservices*, SoCC 2018, section 4.2 and algorithm 1).
//!
//! Differences from the paper, and why:
//! - the histogram of ranks decays and keeps what was refused ([`super::demand`] says why);
//! - a host that was idle for two windows admits everything, as each request that it refuses then is refused for
//!   nothing;
//! - where the queuing delay decides, a window is one of overload only if those before it were, too ([`Standing`]), and
//!   if hosts are not idle elsewhere; after any other one the host admits everything. The paper's servers do hundreds
//!   of requests a second, and who is refused there goes away: on a few cores a delay above any threshold is chance,
//!   and who is refused goes to the hosts that are open, which are flooded while the others raise their levels by
//!   `beta` a window.

use std::time::Duration;

use super::MovingLevel;
use super::evidence::EARLY_SIGN;
pub use super::evidence::Standing;
use crate::{Level, Rank};

/// By how much a window moves the level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// Mean queuing time over a window above which a host counts as overloaded.
    pub threshold: Duration,
    /// Share of the admitted requests that one overloaded window sheds.
    pub alpha: f64,
    /// Share of the admitted requests that one other window adds, if it does not open the host.
    pub beta: f64,
    /// Time in which the weight of past requests halves.
    pub half_life: Duration,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            // 20 ms, 5 % and 1 %: the paper's own (sections 4.1 and 4.2.3), for tasks of 500 ms.
            threshold: Duration::from_millis(20),
            alpha: 0.05,
            beta: 0.01,
            // Ten windows of the paper's 1 s.
            half_life: Duration::from_secs(10),
        }
    }
}

impl Params {
    /// Whether a window with this mean queuing time was one of overload.
    pub fn is_overloaded(&self, queuing_delay: Duration) -> bool {
        queuing_delay > self.threshold
    }
}

/// Demand and load of one host since the last step.
#[derive(Clone, Debug, Default)]
pub struct Window {
    /// How long it was.
    pub length: Duration,
    /// Requests by rank that wanted the host: those it got, and its share of those that no host got.
    /// Fractions are fine.
    pub demand: Vec<(Rank, f64)>,
    /// Whether the host counts as overloaded; none where nothing was measured.
    pub overloaded: Option<bool>,
    /// What came was no more than the host, or the fleet, can do: nobody need be refused.
    pub eased: bool,
    /// Nothing waits, and cores are free.
    pub idle: bool,
}

/// Whether refused connections are an early sign of overload (document 001, section 12.2): `refused` of all requests
/// that were sent, more than closed connections and single resets take every day, and what is queued `agrees`.
pub fn is_early_sign(refused: f64, agrees: bool) -> bool {
    refused > EARLY_SIGN && agrees
}

/// Takes in one window of a host and returns the level for the next.
///
/// One step sheds (or adds) at most `alpha` (`beta`) of the admitted weight and the rank that crosses
/// that share, and at least one rank for which there is demand. A window that was eased, and the second idle
/// one in a row, admit everything, with a measurement or without. Another one without demand or measurement changes
/// nothing.
pub fn step(level: &mut MovingLevel, params: &Params, window: &Window) -> Level {
    let idle = window.idle && window.overloaded != Some(true);
    let idle = level.idleness.opens(idle);
    let Some(overloaded) = window.overloaded else {
        if idle {
            level.open();
        }
        return level.get();
    };
    if !overloaded && (idle || window.eased) {
        level.open();
    }
    if window.demand.iter().all(|(_, count)| *count <= 0.0) {
        return level.get();
    }
    level.remember(&window.demand, window.length, params.half_life);
    match overloaded {
        true => level.lower(params.alpha, 0.0, Level::NONE),
        false => level.raise(params.beta, 0.0, Level::ALL),
    }
    level.get()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::RANKS;

    fn window(demand: &[(u16, u32)], overloaded: Option<bool>) -> Window {
        Window {
            length: Duration::from_secs(1),
            demand: demand
                .iter()
                .map(|(rank, count)| {
                    (
                        Rank::from_number((*rank).into()).unwrap(),
                        f64::from(*count),
                    )
                })
                .collect(),
            overloaded,
            eased: false,
            idle: false,
        }
    }

    fn moved(level: &mut MovingLevel, window: &Window) -> Level {
        step(level, &Params::default(), window)
    }

    fn windows() -> impl Strategy<Value = Vec<Window>> {
        let demand = prop::collection::vec((0..RANKS, 0u32..50), 0..30);
        let window = (demand, prop::option::of(any::<bool>()))
            .prop_map(|(demand, overloaded)| window(&demand, overloaded));
        prop::collection::vec(window, 1..40)
    }

    proptest! {
        #[test]
        fn a_step_moves_at_most_its_share_of_the_admitted_weight_and_one_rank(windows in windows()) {
            let params = Params::default();
            let mut level = MovingLevel::default();
            for window in windows {
                let before = level.get();
                let after = moved(&mut level, &window);
                let between = |low: Level, high: Level| level.demand.between(low, high);
                let admitted: f64 = between(Level::NONE, before).iter().sum();
                let (moved, share) = if after < before {
                    (between(after, before), params.alpha)
                } else {
                    (between(before, after).into_iter().rev().collect(), params.beta)
                };
                // Without the rank at the far end, less than the share has moved.
                let without_last: f64 = moved.iter().skip(1).sum();
                prop_assert!(without_last <= share * admitted + 1e-6, "{without_last} of {admitted}");
                match window.overloaded {
                    Some(true) => prop_assert!(after <= before),
                    Some(false) => prop_assert!(after >= before),
                    None => prop_assert_eq!(after, before),
                }
            }
        }

        #[test]
        fn an_empty_window_changes_nothing(windows in windows(), overloaded in prop::option::of(any::<bool>())) {
            let mut level = MovingLevel::default();
            for window in windows {
                moved(&mut level, &window);
            }
            let before = level.get();
            prop_assert_eq!(moved(&mut level, &window(&[], overloaded)), before);
            prop_assert_eq!(moved(&mut level, &window(&[(7, 0)], overloaded)), before);
        }

        #[test]
        fn what_is_admitted_at_a_rank_is_admitted_at_every_more_important_one(
            windows in windows(), class in 0u8..32, user in 0u8..128,
        ) {
            let mut level = MovingLevel::default();
            for window in windows {
                let level = moved(&mut level, &window);
                if level.admits(Rank::new(class, user)) {
                    prop_assert!(level.admits(Rank::new(class, user.saturating_sub(1))));
                    prop_assert!(level.admits(Rank::new(class.saturating_sub(1), user)));
                    prop_assert!(level.admits(Rank::new(class.saturating_sub(1), 127)) || class == 0);
                }
            }
        }
    }

    #[test]
    fn overload_sheds_the_least_important_first_and_calm_lets_them_back() {
        let mut level = MovingLevel::default();
        let demand: Vec<_> = (0..100).map(|rank| (rank * 40, 10)).collect();
        let mut levels = Vec::new();
        for _ in 0..10 {
            levels.push(moved(&mut level, &window(&demand, Some(true))).ranks());
        }
        assert!(levels.is_sorted_by(|a, b| a > b), "{levels:?}");
        // Ten steps of 5 % of what was left.
        assert!(
            (50 * 40..70 * 40).contains(levels.last().unwrap()),
            "{levels:?}"
        );
        for _ in 0..60 {
            moved(&mut level, &window(&demand, Some(false)));
        }
        assert_eq!(level.get(), Level::ALL);
    }

    #[test]
    fn two_idle_windows_in_a_row_admit_everything_also_without_demand() {
        let idle = |demand| Window {
            idle: true,
            ..window(demand, Some(false))
        };
        for demand in [&[][..], &[(4000, 3)]] {
            let mut level = MovingLevel::default();
            for _ in 0..5 {
                moved(&mut level, &window(&[(2048, 3), (4000, 3)], Some(true)));
            }
            assert!(moved(&mut level, &idle(&[])) < Level::ALL);
            assert_eq!(moved(&mut level, &idle(demand)), Level::ALL);
        }
    }

    #[test]
    fn one_eased_window_admits_everything_unless_it_is_one_of_overload() {
        let mut level = MovingLevel::default();
        let eased = |overloaded| Window {
            eased: true,
            ..window(&[(2048, 3), (4000, 3)], Some(overloaded))
        };
        assert!(moved(&mut level, &eased(true)) < Level::ALL);
        assert_eq!(moved(&mut level, &eased(false)), Level::ALL);
    }

    #[test]
    fn a_queue_is_overload_when_it_has_stood_for_three_windows() {
        let mut standing = Standing::default();
        let too_long = [true, true, false, true, true, true, true, false, true];
        let overload = too_long.map(|too_long| standing.is_overload(too_long));
        let third = [false, false, false, false, false, true, true, false, false];
        assert_eq!(overload, third);
    }

    #[test]
    fn a_host_that_admits_nothing_opens_again_when_its_queue_is_gone() {
        let mut level = MovingLevel::default();
        for _ in 0..5 {
            moved(&mut level, &window(&[(2048, 3)], Some(true)));
        }
        assert_eq!(level.get().ranks(), 2048);
        moved(&mut level, &window(&[(2048, 3)], Some(false)));
        assert!(level.get().admits(Rank::from_number(2048).unwrap()));
    }
}
