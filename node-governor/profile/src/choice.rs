// SPDX-License-Identifier: Apache-2.0
//! Which function to name, of those that take most of the time.
//!
//! A hot function is one call for each piece of work, long enough to change a frequency for. So it is the one with the
//! longest calls, of the functions that have a good part of the time: what it calls is called more often and is a part
//! of it, and what calls it runs other work, too, or never returns. Where functions do nothing but call each other all
//! have the same calls; then the first that another class or module calls is taken, for it is likelier than a helper
//! to be there in the next version.

use std::cmp::Ordering;

use weir_events::layout::FUNCTIONS;

use crate::calls::Calls;
use crate::stacks::{Function, Share};

/// Fewer say nothing: with 100 the share of a half is known to a tenth (twice the deviation of a binomial share).
pub(crate) const FEWEST_SAMPLES: u64 = 100;
/// Of the largest share. Less is a part of the work, or rare.
const GOOD_PART: f64 = 0.5;
/// Fewer calls in all are no call for each piece of work but a loop that hardly ends, or chance.
const FEWEST_CALLS: u64 = 20;
/// Calls are as long where they differ by less: shares are known to a tenth, and some calls were under way at either
/// end.
const ALIKE: f64 = 1.1;
/// Of a function's samples: it is another class or module that calls it.
const MOSTLY: f64 = 0.5;

/// A function that may be it.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// How much of the time it has.
    pub share: Share,
    /// Of it; none where it was not observed.
    pub calls: Option<Calls>,
    /// Why it cannot be observed.
    pub refused: Option<String>,
}

impl Candidate {
    /// Which.
    #[must_use]
    pub fn function(&self) -> &Function {
        &self.share.function
    }

    fn count(&self) -> u64 {
        self.calls.as_ref().map_or(0, Calls::count)
    }

    /// Time of a call, as a share of all time.
    fn length(&self) -> f64 {
        self.share.of_all / self.count() as f64
    }
}

/// Those with a good part of the largest share, which calls are to be observed of: as many as a ring tells apart.
pub(crate) fn candidates(shares: &[Share]) -> Vec<Candidate> {
    let largest = shares.first().map_or(0.0, |share| share.of_all);
    let large = shares
        .iter()
        .filter(|share| share.of_all >= GOOD_PART * largest);
    let candidate = |share: &Share| Candidate {
        share: share.clone(),
        calls: None,
        refused: None,
    };
    large.take(FUNCTIONS).map(candidate).collect()
}

/// The position of the one to name; none where no call was seen often enough.
#[must_use]
pub fn choose(candidates: &[Candidate]) -> Option<usize> {
    let called = || {
        let all = candidates.iter().enumerate();
        all.filter(|(_, one)| one.count() >= FEWEST_CALLS)
    };
    let longest = called()
        .map(|(_, one)| one.length())
        .max_by(f64::total_cmp)?;
    let equals = called().filter(|(_, one)| one.length() * ALIKE >= longest);
    let best = equals.min_by(|(_, a), (_, b)| order(a, b))?;
    Some(best.0)
}

/// Called by another class first, then the outermost.
fn order(a: &Candidate, b: &Candidate) -> Ordering {
    let is_own = |one: &Candidate| one.share.entered < MOSTLY;
    let own = is_own(a).cmp(&is_own(b));
    own.then_with(|| a.share.depth.total_cmp(&b.share.depth))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn candidate(name: &str, of_all: f64, depth: f64, entered: f64, calls: u64) -> Candidate {
        let mut seen = Calls::default();
        (0..calls).for_each(|_| seen.add(Duration::from_millis(10)));
        Candidate {
            share: Share {
                function: Function::method(name),
                of_all,
                entered,
                depth,
            },
            calls: Some(seen),
            refused: None,
        }
    }

    fn chosen(candidates: &[Candidate]) -> Option<&str> {
        let chosen = choose(candidates)?;
        Some(&candidates[chosen].share.function.name)
    }

    /// As a search engine is: pool, tasks of two kinds, the query by its helpers, the loop over documents.
    fn search() -> Vec<Candidate> {
        vec![
            candidate("Pool.run", 1.0, 0.0, 1.0, 0),
            candidate("Task.run", 0.95, 1.0, 1.0, 420),
            candidate("Service.run", 0.9, 2.0, 1.0, 400),
            candidate("Service.query", 0.88, 3.0, 0.0, 201),
            candidate("Query.execute", 0.88, 4.0, 1.0, 200),
            candidate("Query.search", 0.88, 5.0, 0.0, 200),
            candidate("Index.search", 0.87, 6.0, 1.0, 200),
            candidate("Scorer.score", 0.85, 7.0, 1.0, 90_000),
        ]
    }

    #[test]
    fn it_is_the_outermost_of_those_with_the_longest_calls_that_another_class_calls() {
        assert_eq!(chosen(&search()), Some("Query.execute"));
    }

    #[test]
    fn what_runs_other_work_too_is_none_however_much_time_it_has() {
        let mut all = search();
        for one in all.iter_mut().skip(3) {
            one.share.of_all *= 0.6;
        }
        assert_eq!(chosen(&all), Some("Query.execute"));
    }

    #[test]
    fn without_other_classes_it_is_the_outermost() {
        let mut all = search();
        all.iter_mut().for_each(|one| one.share.entered = 0.0);
        assert_eq!(chosen(&all), Some("Service.query"));
    }

    #[test]
    fn nothing_is_chosen_where_no_call_was_seen() {
        let mut all = search();
        all.iter_mut().for_each(|one| one.calls = None);
        assert_eq!(chosen(&all), None);
        assert_eq!(chosen(&[]), None);
        assert_eq!(
            chosen(&[candidate("Loop.run", 1.0, 0.0, 1.0, FEWEST_CALLS - 1)]),
            None
        );
    }

    #[test]
    fn as_many_are_observed_as_a_ring_tells_apart() {
        let share = |number: u32, of_all| Share {
            function: Function::method(format!("a.A.f{number}")),
            of_all,
            entered: 1.0,
            depth: f64::from(number),
        };
        let mut shares: Vec<Share> = (0..30).map(|number| share(number, 0.9)).collect();
        assert_eq!(candidates(&shares).len(), FUNCTIONS);
        shares.truncate(3);
        shares.push(share(3, 0.4));
        assert_eq!(candidates(&shares).len(), 3, "it is a part of the work");
    }
}
