// SPDX-License-Identifier: Apache-2.0
//! What happens next.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::time::Duration;

/// Events by time; those of one instant in the order in which they were noted.
#[derive(Debug)]
pub(crate) struct Agenda<E> {
    noted: u64,
    /// What is due before `far` begins.
    order: BinaryHeap<Noted<E>>,
    /// What is due later, in no order, by spans of time: a heap of all of it would not fit into the
    /// processor's caches.
    far: BTreeMap<u64, Vec<Noted<E>>>,
    /// The first span that is not in `order`.
    far_from: u64,
    lanes: [VecDeque<Noted<E>>; LANES],
    /// When the first of each lane is due.
    fronts: [Due; LANES],
}

/// Most of what is noted never matters: time-outs, which would only make the heap large. And most of
/// what does matter is on its way between caller and host, and takes a fixed time.
const LANES: usize = 4;

/// A time in nanoseconds, then the number of the noting: one comparison where there would be three.
type Due = u128;

/// Later than anything.
const NEVER: Due = Due::MAX;

fn due(at: Duration, noted: u64) -> Due {
    // Five centuries; what is later is then.
    let nanos = u64::try_from(at.as_nanos()).unwrap_or(u64::MAX);
    Due::from(nanos) << 64 | Due::from(noted)
}

/// About a second.
fn span(due: Due) -> u64 {
    (due >> (64 + 30)) as u64
}

fn at(due: Due) -> Duration {
    Duration::from_nanos((due >> 64) as u64)
}

/// The event takes no part in the order: no two numbers are equal.
#[derive(Debug)]
struct Noted<E> {
    due: Due,
    event: E,
}

impl<E> PartialEq for Noted<E> {
    fn eq(&self, other: &Self) -> bool {
        self.due == other.due
    }
}

impl<E> Eq for Noted<E> {}

impl<E> PartialOrd for Noted<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Noted<E> {
    /// The first is the greatest.
    fn cmp(&self, other: &Self) -> Ordering {
        other.due.cmp(&self.due)
    }
}

impl<E> Agenda<E> {
    pub(crate) fn new() -> Self {
        Self {
            noted: 0,
            order: BinaryHeap::new(),
            far: BTreeMap::new(),
            far_from: 0,
            lanes: Default::default(),
            fronts: [NEVER; LANES],
        }
    }

    fn number(&mut self, at: Duration) -> Due {
        let due = due(at, self.noted);
        self.noted += 1;
        due
    }

    pub(crate) fn note(&mut self, at: Duration, event: E) {
        let due = self.number(at);
        self.put(Noted { due, event });
    }

    fn put(&mut self, noted: Noted<E>) {
        match span(noted.due) {
            span if span < self.far_from => self.order.push(noted),
            span => self.far.entry(span).or_default().push(noted),
        }
    }

    /// As [`Agenda::note`] does it, cheaper, for events that are noted in the order of their times:
    /// each kind that comes a fixed time after its noting has its own lane.
    pub(crate) fn note_in_turn(&mut self, lane: usize, at: Duration, event: E) {
        let noted = Noted {
            due: self.number(at),
            event,
        };
        match self.lanes[lane].back() {
            Some(last) if last.due > noted.due => self.put(noted),
            Some(_) => self.lanes[lane].push_back(noted),
            None => {
                self.fronts[lane] = noted.due;
                self.lanes[lane].push_back(noted);
            }
        }
    }

    pub(crate) fn next(&mut self) -> Option<(Duration, E)> {
        if self.order.is_empty()
            && let Some((span, noted)) = self.far.pop_first()
        {
            self.order = noted.into();
            self.far_from = span + 1;
        }
        let mut first = self.order.peek().map_or(NEVER, |noted| noted.due);
        let mut from = None;
        for (lane, front) in self.fronts.iter().enumerate() {
            if *front < first {
                (first, from) = (*front, Some(lane));
            }
        }
        let noted = match from {
            Some(lane) => {
                let noted = self.lanes[lane].pop_front();
                self.fronts[lane] = self.lanes[lane].front().map_or(NEVER, |noted| noted.due);
                noted
            }
            None => self.order.pop(),
        };
        noted.map(|noted| (at(noted.due), noted.event))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn events_come_by_time_and_then_in_the_order_of_their_noting() {
        let mut agenda = Agenda::new();
        for (second, name) in [(2, 'c'), (1, 'a'), (2, 'd'), (1, 'b')] {
            agenda.note(Duration::from_secs(second), name);
        }
        let order = std::iter::from_fn(|| agenda.next()).map(|(_, name)| name);
        assert_eq!(order.collect::<String>(), "abcd");
    }

    proptest! {
        #[test]
        fn whatever_is_noted_when_comes_in_order(
            steps in prop::collection::vec((prop::option::of(0usize..LANES), 0u64..4_000, any::<bool>()), 1..200),
        ) {
            let mut agenda = Agenda::new();
            let mut noted: Vec<(Duration, usize)> = Vec::new();
            let mut now = Duration::ZERO;
            let mut next = |agenda: &mut Agenda<usize>, noted: &mut Vec<(Duration, usize)>| {
                let first = noted.iter().copied().min();
                noted.retain(|one| Some(*one) != first);
                prop_assert_eq!(agenda.next(), first);
                now = first.map_or(now, |(at, _)| at);
                Ok(now)
            };
            let mut from = Duration::ZERO;
            for (number, (lane, after, comes)) in steps.into_iter().enumerate() {
                let at = from + Duration::from_millis(after);
                match lane {
                    Some(lane) => agenda.note_in_turn(lane, at, number),
                    None => agenda.note(at, number),
                }
                noted.push((at, number));
                if comes {
                    from = next(&mut agenda, &mut noted)?;
                }
            }
            while !noted.is_empty() {
                next(&mut agenda, &mut noted)?;
            }
            prop_assert_eq!(agenda.next(), None);
        }
    }

    #[test]
    fn lanes_change_nothing_but_the_cost() {
        let mut agenda = Agenda::new();
        for (lane, second, name) in [(0, 3, 'd'), (1, 2, 'b'), (0, 1, 'a'), (0, 3, 'e')] {
            agenda.note_in_turn(lane, Duration::from_secs(second), name);
        }
        agenda.note(Duration::from_secs(2), 'c');
        agenda.note(Duration::from_secs(3), 'f');
        let order = std::iter::from_fn(|| agenda.next()).map(|(_, name)| name);
        assert_eq!(order.collect::<String>(), "abcdef");
    }
}
