// SPDX-License-Identifier: Apache-2.0
//! What all threads share, for as long as the process lives.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant, SystemTime};

use weir_filter::contents::Contents;
use weir_filter::handle::VmHandle;
use weir_filter::root;

use crate::bells::Bells;
use crate::installed::Configurations;
use crate::metrics::Metrics;
use crate::native::Native;
use crate::shared::Shared;

pub(crate) struct Process {
    pub(crate) shared: Shared,
    pub(crate) contents: Contents,
    pub(crate) metrics: Metrics,
    pub(crate) bells: Bells,
    pub(crate) configurations: Configurations,
    pub(crate) time: Time,
    /// Its name in the mesh, where that is not for the arguments to say.
    pub(crate) node: Option<String>,
    /// Where VMs without ticks keep their records, each as long as its thread lives.
    idle: Mutex<BTreeMap<String, Weak<()>>>,
}

static THIS: Process = Process::with(Bells::new(), Time::Real(OnceLock::new()), None);

thread_local! {
    /// Another one where a test plays several.
    static PLAYED: Cell<&'static Process> = const { Cell::new(&THIS) };
}

/// That of this thread.
pub(crate) fn process() -> &'static Process {
    PLAYED.get()
}

/// Makes another one that of this thread; gives back which was.
pub(crate) fn enter(process: &'static Process) -> &'static Process {
    PLAYED.replace(process)
}

impl Process {
    pub(crate) const fn with(bells: Bells, time: Time, node: Option<String>) -> Self {
        Self {
            shared: Shared::new(),
            contents: Contents::new(),
            metrics: Metrics::new(),
            bells,
            configurations: Configurations::new(),
            time,
            node,
            idle: Mutex::new(BTreeMap::new()),
        }
    }

    /// A thread's VM gets no ticks: its record is there, and is to be kept while the thread lives.
    pub(crate) fn sleeps(&self, record: String, thread: &Arc<()>) {
        self.idle().insert(record, Arc::downgrade(thread));
    }

    /// It does again.
    pub(crate) fn wakes(&self, record: &str) {
        self.idle().remove(record);
    }

    /// Keeps the records of all that sleep, by this VM, which is awake.
    pub(crate) fn renew(&self, vm: &VmHandle<Native>) {
        let mut idle = self.idle();
        idle.retain(|_, thread| thread.strong_count() > 0);
        for record in idle.keys() {
            root::renew(vm, record);
        }
    }

    fn idle(&self) -> MutexGuard<'_, BTreeMap<String, Weak<()>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// VMs take the time zero for long ago.
const BEFORE: Duration = Duration::from_secs(3600);

/// The machine's clocks, or those that a test plays.
pub(crate) enum Time {
    /// Since it was first asked.
    Real(OnceLock<Instant>),
    /// In nanoseconds: monotonic, and since 1970.
    Played(AtomicU64, AtomicU64),
}

impl Time {
    /// Monotonic.
    pub(crate) fn now(&self) -> Duration {
        match self {
            Self::Real(began) => BEFORE + began.get_or_init(Instant::now).elapsed(),
            Self::Played(now, _) => Duration::from_nanos(now.load(Ordering::Relaxed)),
        }
    }

    pub(crate) fn since_1970(&self) -> Duration {
        match self {
            Self::Real(_) => SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default(),
            Self::Played(_, since) => Duration::from_nanos(since.load(Ordering::Relaxed)),
        }
    }

    /// What is played is so late.
    pub(crate) fn play(&self, now: Duration, since_1970: Duration) {
        if let Self::Played(monotonic, since) = self {
            monotonic.store(now.as_nanos() as u64, Ordering::Relaxed);
            since.store(since_1970.as_nanos() as u64, Ordering::Relaxed);
        }
    }
}

/// What Envoy was started with for this option.
pub(crate) fn started_with(option: &str) -> Option<String> {
    let arguments = std::env::args_os().map(|argument| argument.to_string_lossy().into_owned());
    let mut arguments = arguments.skip_while(|argument| !argument.starts_with(option));
    match arguments.next()?.strip_prefix(option)? {
        "" => arguments.next(),
        said => said.strip_prefix('=').map(str::to_owned),
    }
}
