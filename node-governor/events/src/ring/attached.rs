// SPDX-License-Identifier: Apache-2.0
//! The file that all threads of a program share.

use std::fs::OpenOptions;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

use crate::layout::{Geometry, Header, LIVE, STATE};
use crate::map::{self, Map};
use crate::words::Words;
use crate::{FileError, Problem};

/// How long after a failure it is tried again.
pub(super) const RETRY_NS: u64 = 1_000_000_000;
/// How often a thread looks whether another one has finished attaching. It may never: a child that was forked
/// meanwhile has the lock, and not the thread.
const PATIENCE: u32 = 100;

/// A file that was good when it was mapped.
#[derive(Debug)]
pub(super) struct Attached {
    pub(super) map: Map,
    pub(super) geometry: Geometry,
}

impl Attached {
    fn open(path: &Path) -> Result<Attached, Problem> {
        let failed = FileError::of(path);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            // A pipe in its place would wait for somebody to open the other end.
            .custom_flags(libc::O_NONBLOCK)
            .open(path)
            .map_err(&failed)?;
        let bytes = file.metadata().map_err(&failed)?.len();
        let mut page = [0; 40];
        let read = file.read_at(&mut page, 0).map_err(&failed)?;
        let header = Header::check(&page[..read], bytes).map_err(FileError::of(path))?;
        if header.retired {
            let file = path.to_owned();
            return Err(Problem::Retired { file });
        }
        let map = Map::new(&file, bytes).map_err(&failed)?;
        let geometry = header.geometry;
        Ok(Attached { map, geometry })
    }
}

/// The part that the threads of a program have in common.
#[derive(Debug)]
pub(super) struct Shared {
    file: PathBuf,
    complain: fn(&Problem),
    closed: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    attached: Option<Arc<Attached>>,
    retry_ns: u64,
    /// Said since the file was last good.
    said: Vec<std::mem::Discriminant<Problem>>,
}

impl Shared {
    pub(super) fn new(file: PathBuf, complain: fn(&Problem)) -> Shared {
        map::count_forks();
        Shared {
            file,
            complain,
            closed: AtomicBool::new(false),
            state: Mutex::default(),
        }
    }

    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// The live file; looks for it at most once a second.
    pub(super) fn attached(&self, now_ns: u64) -> Option<Arc<Attached>> {
        let mut state = self.lock()?;
        if let Some(attached) = &state.attached {
            if attached.map.load(STATE) == LIVE {
                return Some(Arc::clone(attached));
            }
            state.attached = None;
        }
        if now_ns < state.retry_ns {
            return None;
        }
        match Attached::open(&self.file) {
            Ok(attached) => {
                let attached = Arc::new(attached);
                *state = State {
                    attached: Some(Arc::clone(&attached)),
                    ..State::default()
                };
                Some(attached)
            }
            Err(problem) => {
                state.retry_ns = now_ns.saturating_add(RETRY_NS);
                self.say(state, &problem);
                None
            }
        }
    }

    /// The file is good, but has no lane left.
    pub(super) fn full(&self, geometry: Geometry) {
        if let Some(state) = self.lock() {
            let problem = Problem::Full {
                file: self.file.clone(),
                lanes: geometry.lanes(),
            };
            self.say(state, &problem);
        }
    }

    fn say(&self, mut state: MutexGuard<'_, State>, problem: &Problem) {
        let kind = std::mem::discriminant(problem);
        if !state.said.contains(&kind) {
            state.said.push(kind);
            drop(state);
            (self.complain)(problem);
        }
    }

    fn lock(&self) -> Option<MutexGuard<'_, State>> {
        for _ in 0..PATIENCE {
            match self.state.try_lock() {
                Ok(state) => return Some(state),
                Err(TryLockError::Poisoned(_)) => return None,
                Err(TryLockError::WouldBlock) => std::thread::yield_now(),
            }
        }
        None
    }
}
