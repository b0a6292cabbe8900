// SPDX-License-Identifier: Apache-2.0
//! One task for each thing that is to be asked.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Duration;

use tokio::task::JoinHandle;
use tracing::error;

/// How often tasks are looked at that should not have ended: one that panics each time does so once a second.
pub(super) const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The tasks that run, by what they are about, each with what it was told. They end with their owner.
#[derive(Debug)]
pub(super) struct Running<K, J> {
    tasks: BTreeMap<K, (J, Abort)>,
}

impl<K: Ord + Debug, J> Running<K, J> {
    /// Nothing runs.
    pub(super) fn new() -> Self {
        let tasks = BTreeMap::new();
        Self { tasks }
    }

    /// Whether one has ended by itself. None should: it has panicked.
    pub(super) fn has_ended(&self) -> bool {
        self.tasks.values().any(|(_, task)| task.0.is_finished())
    }

    /// Ends what is not wanted any more, or in another way, and starts what does not run.
    pub(super) fn keep(
        &mut self,
        wanted: BTreeMap<K, J>,
        is_same: impl Fn(&J, &J) -> bool,
        start: impl Fn(&K, &J) -> JoinHandle<()>,
    ) {
        self.tasks.retain(|key, (job, task)| {
            let stays = wanted.get(key).is_some_and(|wanted| is_same(wanted, job));
            let ended = task.0.is_finished();
            if stays && ended {
                error!(task = ?key, "a task has ended by itself and is started again");
            }
            stays && !ended
        });
        for (key, job) in wanted {
            self.tasks.entry(key).or_insert_with_key(|key| {
                let task = Abort(start(key, &job));
                (job, task)
            });
        }
    }
}

/// Ends the task with its owner.
#[derive(Debug)]
struct Abort(JoinHandle<()>);

impl Drop for Abort {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[tokio::test]
    async fn a_task_that_has_panicked_is_started_again_and_the_others_go_on() {
        let started = RefCell::new(Vec::new());
        let mut running = Running::new();
        let keep = |running: &mut Running<&'static str, u32>, wanted: &[(&'static str, u32)]| {
            let wanted = wanted.iter().copied().collect();
            running.keep(wanted, u32::eq, |key, job| {
                started.borrow_mut().push((*key, *job));
                match job {
                    0 => tokio::spawn(async { panic!("as it should") }),
                    _ => tokio::spawn(std::future::pending()),
                }
            });
        };
        keep(&mut running, &[("a", 0), ("b", 1)]);
        assert_eq!(started.take(), [("a", 0), ("b", 1)]);
        let ends = async {
            while !running.has_ended() {
                tokio::task::yield_now().await;
            }
        };
        let ends = tokio::time::timeout(Duration::from_secs(60), ends).await;
        ends.expect("waited in vain for the end of the task that panics");
        keep(&mut running, &[("a", 0), ("b", 1)]);
        assert_eq!(started.take(), [("a", 0)]);
        keep(&mut running, &[("a", 2), ("b", 1)]);
        assert_eq!(started.take(), [("a", 2)], "told something else");
        assert!(!running.has_ended());
        keep(&mut running, &[("b", 1)]);
        assert!(started.take().is_empty() && running.tasks.len() == 1);
    }
}
