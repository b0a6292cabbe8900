// SPDX-License-Identifier: Apache-2.0
//! Independent pieces of work on several cores.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::EvaluateError;
use crate::stop::Stop;

/// The results of `work` on `0..count`, in that order. Up to `cores` threads take the next index from
/// a counter. If several fail, the error of the lowest index is given, whatever the timing: indices
/// are taken in order and work that was taken is finished.
pub(crate) fn in_order<T: Send>(
    count: usize,
    cores: usize,
    stop: &Stop,
    work: impl Fn(usize) -> Result<T, EvaluateError> + Sync,
) -> Result<Vec<T>, EvaluateError> {
    let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let take = || {
        let _work = stop.work();
        let mut done = Vec::new();
        while !failed.load(Ordering::Relaxed) {
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= count {
                break;
            }
            let result = if stop.border() {
                Err(EvaluateError::Stopped)
            } else {
                work(at)
            };
            failed.fetch_or(result.is_err(), Ordering::Relaxed);
            done.push((at, result));
        }
        done
    };
    let mut done = if cores.min(count) <= 1 {
        take()
    } else {
        on_threads(cores.min(count), take)
    };
    done.sort_unstable_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

/// What `take` gives on each of several threads, this one included.
fn on_threads<T: Send>(threads: usize, take: impl Fn() -> Vec<T> + Sync) -> Vec<T> {
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(&take)).collect();
        let mut done = take();
        for other in others {
            match other.join() {
                Ok(more) => done.extend(more),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        done
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_order_whatever_the_threads() {
        for cores in [0, 1, 3, 40] {
            let squares = in_order(20, cores, &Stop::default(), |at| Ok(at * at)).unwrap();
            assert_eq!(squares, (0..20).map(|at| at * at).collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_first_error_in_order_is_given() {
        for cores in [1, 4] {
            let result = in_order(50, cores, &Stop::default(), |at| match at {
                7.. => Err(EvaluateError::FeedTooLarge(at as u64)),
                _ => Ok(at),
            });
            assert!(
                matches!(result, Err(EvaluateError::FeedTooLarge(7))),
                "{cores} cores: {result:?}"
            );
        }
    }

    #[test]
    fn raised_stop_ends_the_work() {
        let stop = Stop::default();
        let result = in_order(5, 1, &stop, |at| {
            assert!(at < 3, "work went on");
            if at == 2 {
                stop.raise();
            }
            Ok(())
        });
        assert!(matches!(result, Err(EvaluateError::Stopped)));
    }
}
