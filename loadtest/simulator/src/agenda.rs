// SPDX-License-Identifier: Apache-2.0
//! What happens next.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

/// Events by time; those of one instant in the order in which they were noted.
#[derive(Debug)]
pub(crate) struct Agenda<E> {
    noted: u64,
    /// By time and number; the events themselves are not compared.
    order: BinaryHeap<Reverse<(Duration, u64, Opaque<E>)>>,
}

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
        }
    }

    pub(crate) fn note(&mut self, at: Duration, event: E) {
        self.order.push(Reverse((at, self.noted, Opaque(event))));
        self.noted += 1;
    }

    pub(crate) fn next(&mut self) -> Option<(Duration, E)> {
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
}
