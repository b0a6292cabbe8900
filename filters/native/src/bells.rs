// SPDX-License-Identifier: Apache-2.0
//! Ticks. Envoy gives filters no timers, but wakes its threads for a scheduler's sake: a thread of this module's rings
//! for each of them.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};
use std::time::Duration;

use crate::abi::Scheduler;

/// What wakes one of Envoy's threads.
pub(crate) struct Bell {
    scheduler: Scheduler,
    /// It has rung and was not heard yet: a slow thread is not woken once more.
    is_rung: AtomicBool,
}

impl Bell {
    /// The thread is awake.
    pub(crate) fn heard(&self) {
        self.is_rung.store(false, Ordering::Release);
    }
}

/// All that hang.
pub(crate) struct Bells {
    hanging: Mutex<Vec<Arc<Bell>>>,
    /// Milliseconds between two rounds: the shortest that any configuration asked for.
    pause: AtomicU64,
    ringer: Once,
}

impl Bells {
    pub(crate) const fn new() -> Self {
        Self {
            hanging: Mutex::new(Vec::new()),
            pause: AtomicU64::new(u64::MAX),
            ringer: Once::new(),
        }
    }

    /// Nobody rings these: a test plays what would come of it, as often as [`Self::pause`] says.
    pub(crate) fn silent() -> Self {
        let bells = Self::new();
        bells.ringer.call_once(|| ());
        bells
    }

    /// Time between two rounds.
    pub(crate) fn pause(&self) -> Duration {
        Duration::from_millis(self.pause.load(Ordering::Relaxed))
    }

    /// Hangs one up, which rings this often or more often.
    pub(crate) fn hang(&'static self, scheduler: Scheduler, tick: Duration) -> Arc<Bell> {
        let bell = Arc::new(Bell {
            scheduler,
            is_rung: AtomicBool::new(false),
        });
        self.pause
            .fetch_min(tick.as_millis().max(1) as u64, Ordering::Relaxed);
        self.lock().push(Arc::clone(&bell));
        self.ringer.call_once(|| {
            let ringer = std::thread::Builder::new().name("weir_ticks".into());
            // Without it tables are not renewed; requests go on by those that are there until these are stale.
            if let Err(error) = ringer.spawn(|| self.ring()) {
                let words = format!("no thread for ticks: tables will not be renewed: {error}");
                crate::abi::log(crate::abi::level::ERROR, &words);
            }
        });
        bell
    }

    /// Takes one down; nobody rings it when this returns.
    pub(crate) fn take_down(&self, bell: Arc<Bell>) {
        self.lock().retain(|hanging| !Arc::ptr_eq(hanging, &bell));
        drop(bell);
    }

    fn ring(&self) -> ! {
        loop {
            std::thread::sleep(self.pause());
            for bell in self.lock().iter() {
                if !bell.is_rung.swap(true, Ordering::AcqRel) {
                    bell.scheduler.wake();
                }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Bell>>> {
        self.hanging.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
