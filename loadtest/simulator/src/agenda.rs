// SPDX-License-Identifier: Apache-2.0
//! What happens next.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

/// Events by time; those of one instant in the order in which they were noted.
#[derive(Debug)]
pub(crate) struct Agenda<E> {
    noted: u64,
    /// By time and number; the events themselves are not compared.
    order: BinaryHeap<Reverse<(Duration, u64, Opaque<E>)>>,
    lanes: [VecDeque<(Duration, u64, E)>; LANES],
}

/// Most of what is noted never matters: time-outs, which would only make the heap large.
const LANES: usize = 3;

/// Takes no part in the order: no two numbers are equal.
#[derive(Debug)]
struct Opaque<E>(E);

impl<E> PartialEq for Opaque<E> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl<E> Eq for Opaque<E> {}

impl<E> PartialOrd for Opaque<E> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Opaque<E> {
    fn cmp(&self, _: &Self) -> std::cmp::Ordering {
        std::cmp::Ordering::Equal
    }
}

impl<E> Agenda<E> {
    pub(crate) fn new() -> Self {
        Self {
            noted: 0,
            order: BinaryHeap::new(),
            lanes: Default::default(),
        }
    }

    pub(crate) fn note(&mut self, at: Duration, event: E) {
        self.order.push(Reverse((at, self.noted, Opaque(event))));
        self.noted += 1;
    }

    /// As [`Agenda::note`] does it, cheaper, for events that are noted in the order of their times:
    /// each kind that comes a fixed time after its noting has its own lane.
    pub(crate) fn note_in_turn(&mut self, lane: usize, at: Duration, event: E) {
        match self.lanes[lane].back() {
            Some((last, ..)) if *last > at => self.note(at, event),
            _ => {
                self.lanes[lane].push_back((at, self.noted, event));
                self.noted += 1;
            }
        }
    }

    pub(crate) fn next(&mut self) -> Option<(Duration, E)> {
        let heap = self.order.peek();
        let mut first = heap.map(|Reverse((at, noted, _))| (*at, *noted));
        let mut from = None;
        for (lane, events) in self.lanes.iter().enumerate() {
            let front = events.front().map(|(at, noted, _)| (*at, *noted));
            if front.is_some_and(|front| first.is_none_or(|first| front < first)) {
                (first, from) = (front, Some(lane));
            }
        }
        if let Some(lane) = from {
            let (at, _, event) = self.lanes[lane].pop_front()?;
            return Some((at, event));
        }
        let Reverse((at, _, Opaque(event))) = self.order.pop()?;
        Some((at, event))
    }
}

#[cfg(test)]
mod tests {
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
