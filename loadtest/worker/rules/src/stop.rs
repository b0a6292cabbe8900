// SPDX-License-Identifier: Apache-2.0
//! Work that takes a while is ended from outside, or made to stand still for a while.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Looked at between batches of work; clones share it.
///
/// Threads that look at [`Stop::border`] say with [`Stop::work`] for how long they do, so that it is known when all of
/// them stand.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    raised: AtomicBool,
    /// Whether threads have to look at the gate.
    is_limited: AtomicBool,
    gate: Mutex<Gate>,
    moved: Condvar,
}

struct Gate {
    /// Threads that may work.
    width: usize,
    working: usize,
    standing: usize,
    /// Called once when all stand.
    all_stand: Option<Box<dyn FnOnce() + Send>>,
}

impl Default for Gate {
    fn default() -> Self {
        Self {
            width: usize::MAX,
            working: 0,
            standing: 0,
            all_stand: None,
        }
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} work", self.working, self.width)
    }
}

/// A thread that works, until it is dropped.
#[derive(Debug)]
pub struct AtWork<'a>(&'a Shared);

impl Stop {
    /// Asks the work to end at its next look; what stands still is woken for it.
    pub fn raise(&self) {
        self.0.raised.store(true, Ordering::Relaxed);
        // Taken, so that no thread is between its look and its wait.
        drop(self.0.gate());
        self.0.moved.notify_all();
    }

    /// Whether the work shall end.
    #[must_use]
    pub fn raised(&self) -> bool {
        self.0.raised.load(Ordering::Relaxed)
    }

    /// This thread works from now on, until what is returned is dropped.
    #[must_use]
    pub fn work(&self) -> AtWork<'_> {
        self.0.gate().working += 1;
        AtWork(&self.0)
    }

    /// Makes the work stand still at its next borders, and calls `all_stand` once when it does. Work that ends before
    /// never stands.
    pub fn hold(&self, all_stand: impl FnOnce() + Send + 'static) {
        let mut gate = self.0.gate();
        gate.width = 0;
        gate.all_stand = Some(Box::new(all_stand));
        // Threads that may go on since a moment ago stand still.
        gate.tell();
        self.0.is_limited.store(true, Ordering::Relaxed);
    }

    /// So many threads may work from now on; the others stand until one of them has ended.
    pub fn go_on(&self, threads: usize) {
        let mut gate = self.0.gate();
        gate.width = threads;
        gate.all_stand = None;
        drop(gate);
        self.0.moved.notify_all();
    }

    /// Whether the work shall end. Where it shall stand still, this returns when it may go on.
    #[must_use]
    pub fn border(&self) -> bool {
        if self.0.is_limited.load(Ordering::Relaxed) {
            self.stand();
        }
        self.raised()
    }

    fn stand(&self) {
        let mut gate = self.0.gate();
        if gate.working <= gate.width {
            return;
        }
        gate.working -= 1;
        gate.standing += 1;
        gate.tell();
        while gate.working >= gate.width && !self.raised() {
            let woken = self.0.moved.wait(gate);
            gate = woken.unwrap_or_else(PoisonError::into_inner);
        }
        gate.standing -= 1;
        gate.working += 1;
    }
}

impl Shared {
    /// Its numbers are whole whatever panicked meanwhile.
    fn gate(&self) -> MutexGuard<'_, Gate> {
        self.gate.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Gate {
    fn tell(&mut self) {
        let all = self.width == 0 && self.working == 0 && self.standing > 0;
        if let Some(told) = self.all_stand.take_if(|_| all) {
            told();
        }
    }
}

impl Drop for AtWork<'_> {
    fn drop(&mut self) {
        let mut gate = self.0.gate();
        gate.working -= 1;
        gate.tell();
        drop(gate);
        self.0.moved.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::sync::mpsc::{RecvTimeoutError, channel};
    use std::thread::scope;
    use std::time::Duration;

    use super::*;

    /// Counts borders until it is stopped.
    fn toil(stop: &Stop, borders: &AtomicUsize) {
        let _work = stop.work();
        while !stop.border() {
            borders.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits until it goes on.
    fn moves(borders: &AtomicUsize) {
        let before = borders.load(Ordering::Relaxed);
        while borders.load(Ordering::Relaxed) == before {
            std::thread::yield_now();
        }
    }

    #[test]
    fn all_stand_when_they_are_told_to_and_go_on_as_many_as_may() {
        let (stop, borders) = (Stop::default(), [0, 0, 0].map(AtomicUsize::new));
        scope(|threads| {
            for borders in &borders {
                threads.spawn(|| toil(&stop, borders));
            }
            borders.iter().for_each(moves);
            for width in [1, 2, 3] {
                let (told, all_stand) = channel();
                stop.hold(move || told.send(()).unwrap());
                all_stand.recv().unwrap();
                let counts = || borders.each_ref().map(|n| n.load(Ordering::Relaxed));
                let before = counts();
                assert_eq!(before, counts(), "while they stand nothing moves");
                stop.go_on(width);
                let moved = || {
                    let now = counts().into_iter().zip(before);
                    now.filter(|(now, before)| now > before).count()
                };
                while moved() < width {
                    std::thread::yield_now();
                }
                assert_eq!(moved(), width);
            }
            stop.raise();
        });
    }

    #[test]
    fn what_is_held_again_before_it_has_gone_on_is_told_to_stand() {
        let (stop, borders) = (Stop::default(), AtomicUsize::new(0));
        scope(|threads| {
            threads.spawn(|| toil(&stop, &borders));
            moves(&borders);
            let stands = || {
                let (told, all_stand) = channel();
                stop.hold(move || told.send(()).unwrap());
                let told = all_stand.recv_timeout(Duration::from_secs(60));
                stop.go_on(1);
                told.is_ok()
            };
            let always = (0..1000).all(|_| stands());
            // Before it is asserted, as the thread would be waited for.
            stop.raise();
            assert!(always);
        });
    }

    #[test]
    fn one_that_ends_makes_room_for_one_that_stands() {
        let (stop, borders) = (Stop::default(), AtomicUsize::new(0));
        scope(|threads| {
            let first = stop.work();
            threads.spawn(|| toil(&stop, &borders));
            moves(&borders);
            let (told, all_stand) = channel();
            stop.hold(move || told.send(()).unwrap());
            let soon = all_stand.recv_timeout(Duration::from_millis(10));
            assert_eq!(soon, Err(RecvTimeoutError::Timeout), "one works still");
            drop(first);
            all_stand.recv().unwrap();
            let other = stop.work();
            stop.go_on(1);
            drop(other);
            moves(&borders);
            stop.raise();
        });
    }

    #[test]
    fn what_ends_before_a_border_never_stands_and_what_stands_is_stopped() {
        let stop = Stop::default();
        let work = stop.work();
        stop.hold(|| panic!("it ended"));
        drop(work);
        let (told, all_stand) = channel();
        stop.hold(move || told.send(()).unwrap());
        scope(|threads| {
            threads.spawn(|| toil(&stop, &AtomicUsize::new(0)));
            all_stand.recv().unwrap();
            stop.raise();
        });
        assert!(stop.border());
    }
}
