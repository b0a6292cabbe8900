// SPDX-License-Identifier: Apache-2.0
//! Independent parts of one decoding, over several threads.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::Refused;

/// `each(part)` for parts `0..parts`, in order of the parts, on at most `cores` threads.
///
/// The error is that of the earliest part that fails, whatever `cores` is: parts are taken in order,
/// so all before a failed one are under way and run to their end. A panic within a part, as a
/// decoder of other people's may have for hostile bytes, is that part's error.
pub(crate) fn spread<T: Send>(
    parts: usize,
    cores: usize,
    each: impl Fn(usize) -> Result<T, Refused> + Sync,
) -> Result<Vec<T>, Refused> {
    let next = AtomicUsize::new(0);
    let failed = AtomicBool::new(false);
    let done = Mutex::new(Vec::with_capacity(parts));
    let run = || {
        while !failed.load(Ordering::Relaxed) {
            let part = next.fetch_add(1, Ordering::Relaxed);
            if part >= parts {
                break;
            }
            let result = guarded(|| each(part));
            failed.fetch_or(result.is_err(), Ordering::Relaxed);
            if let Ok(mut done) = done.lock() {
                done.push((part, result));
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..cores.min(parts) {
            scope.spawn(run);
        }
        run();
    });
    let mut done = done
        .into_inner()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    done.sort_by_key(|(part, _)| *part);
    done.into_iter().map(|(_, result)| result).collect()
}

/// `work`, with a panic made an error.
pub(crate) fn guarded<T>(work: impl FnOnce() -> Result<T, Refused>) -> Result<T, Refused> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(result) => result,
        Err(panic) => Err(Refused::bad(format!(
            "cannot be read: {}",
            message(panic.as_ref())
        ))),
    }
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("it is damaged")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_order_of_the_parts() {
        for cores in [0, 1, 3, 50] {
            let squares = spread(20, cores, |part| Ok(part * part)).unwrap();
            assert_eq!(squares, (0..20).map(|part| part * part).collect::<Vec<_>>());
        }
        assert_eq!(spread(0, 4, |_| Ok(())), Ok(vec![]));
    }

    #[test]
    fn the_earliest_error_wins_and_a_panic_is_one() {
        for cores in [1, 4] {
            let result: Result<Vec<()>, _> = spread(30, cores, |part| match part {
                0..7 => Ok(()),
                7 => panic!("part {part}"),
                _ => Err(Refused::Stopped),
            });
            assert_eq!(result, Err(Refused::bad("cannot be read: part 7")));
        }
    }
}
