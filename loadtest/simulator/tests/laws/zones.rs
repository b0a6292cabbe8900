// SPDX-License-Identifier: Apache-2.0
//! How many requests leave their caller's zone, and what that is good for.

use std::time::Duration;

use weir_policy::Policy;
use weir_replay::record::Outcome;
use weir_sim::scenario::{Balancer, Placement, Zones};
use weir_sim::{Ended, Scenario};

use crate::{jobs, play, scenario};

const RUN: Duration = Duration::from_millis(50);
const ZONES: Zones = Zones {
    count: 3,
    distance: Duration::from_millis(1),
};

/// Three zones with a caller and four cores each.
fn fleet(crossing: Duration, heavy_caller: Option<f64>) -> Scenario {
    Scenario {
        hosts: 6,
        callers: 3,
        heavy_caller,
        zones: ZONES,
        policy: Policy {
            crossing,
            ..Policy::default()
        },
        ..scenario()
    }
}

/// The share that crossed, and the mean duration in seconds, at half of what all hosts can do: every fifth request is
/// followed by another.
fn at_half_load(scenario: &Scenario) -> (f64, f64) {
    let all = play(scenario, &[], jobs(4000, 0, RUN / 5, RUN, 1));
    assert!(all.iter().all(|ended| ended.outcome == Outcome::Ok));
    let crossed = |ended: &&Ended| ZONES.are_apart(ended.caller, ended.host.unwrap());
    let mean: f64 = all.iter().map(|ended| ended.duration.as_secs_f64()).sum();
    let count = all.len() as f64;
    (
        all.iter().filter(crossed).count() as f64 / count,
        mean / count,
    )
}

#[test]
fn requests_stay_in_their_zone_while_it_has_room_and_wait_little_for_it() {
    let (without, sooner) = at_half_load(&fleet(Duration::ZERO, None));
    let (with, later) = at_half_load(&fleet(RUN, None));
    println!("crossed {without:.3} and {with:.3}, after {sooner:.4} s and {later:.4} s");
    assert!(without > 0.6, "two of three zones are others: {without}");
    assert!(with < 0.15, "{with}");
    assert!(
        later < sooner + RUN.as_secs_f64() / 4.0,
        "{later}, {sooner}"
    );
}

#[test]
fn a_zone_that_is_too_small_for_its_callers_sends_away_what_it_cannot_do_and_little_more() {
    // Nine of ten requests come in the first zone, a third more than its hosts can do.
    let (without, sooner) = at_half_load(&fleet(Duration::ZERO, Some(0.9)));
    let (with, later) = at_half_load(&fleet(RUN, Some(0.9)));
    println!("crossed {without:.3} and {with:.3}, after {sooner:.4} s and {later:.4} s");
    assert!(
        (0.23..0.45).contains(&with) && with < without - 0.2,
        "{with}, {without}"
    );
    assert!(
        later < sooner + 2.0 * RUN.as_secs_f64(),
        "{later}, {sooner}"
    );
    // Zone-aware routing sees as many callers there as hosts, and keeps everything.
    let aware = Scenario {
        placement: Placement::Stock(Balancer::ZoneAware),
        ..fleet(Duration::ZERO, Some(0.9))
    };
    let (never, last) = at_half_load(&aware);
    println!("by zone-aware routing {never:.3}, after {last:.4} s");
    assert!(never == 0.0 && last > 10.0 * later, "{never}, {last}");
}
