// SPDX-License-Identifier: Apache-2.0
//! A program's side: a lane for each of its threads, claimed at the first hot function and given back at the
//! thread's end. Whatever is wrong with the file, the program goes on.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use crate::layout::FunctionId;
use attached::Shared;

mod attached;
mod thread;

use thread::Thread;

/// The ring of [`hot`] where [`RING_VARIABLE`] names no other.
pub const DEFAULT_RING: &str = "/run/weir/weir.events";
/// The environment variable that names the ring of [`hot`].
pub const RING_VARIABLE: &str = "WEIR_EVENTS";

thread_local! {
    /// This thread's lanes: one for each ring that it has used, which is one in all but tests.
    static LANES: RefCell<Vec<Thread>> = const { RefCell::new(Vec::new()) };
}

/// Where a program says that it is in a hot function.
///
/// The file is looked for at the first [`enter`](Ring::enter), and whenever it is gone or replaced, at most once a
/// second. After a fork the child claims lanes of its own.
#[derive(Debug)]
pub struct Ring {
    shared: Arc<Shared>,
}

impl Ring {
    /// Never fails: what is wrong with the file is said once on standard error, and the calls do nothing.
    pub fn attach(file: impl Into<PathBuf>) -> Ring {
        Ring::attach_or(file, thread::complain)
    }

    /// The same with somewhere else to say it, at most once for each kind of problem until it is over.
    pub fn attach_or(file: impl Into<PathBuf>, complain: fn(&crate::Problem)) -> Ring {
        Ring {
            shared: Arc::new(Shared::new(file.into(), complain)),
        }
    }

    /// The function runs on this thread until the guard is dropped, in the order of the calls or any other.
    #[inline]
    pub fn enter(&self, function: FunctionId) -> Hot<'_> {
        let counted = self.with_thread(|thread| thread.enter(function));
        Hot {
            ring: counted.map(|()| self),
            function,
            on_this_thread: PhantomData,
        }
    }

    /// `None` at the thread's end and within a signal handler that interrupts this very code.
    #[inline]
    fn with_thread<T>(&self, call: impl FnOnce(&mut Thread) -> T) -> Option<T> {
        LANES
            .try_with(|lanes| {
                let mut lanes = lanes.try_borrow_mut().ok()?;
                let mine = match lanes.iter().position(|thread| thread.is_of(&self.shared)) {
                    Some(mine) => mine,
                    None => Ring::add(&mut lanes, &self.shared),
                };
                lanes.get_mut(mine).map(call)
            })
            .ok()
            .flatten()
    }

    #[cold]
    fn add(lanes: &mut Vec<Thread>, shared: &Arc<Shared>) -> usize {
        lanes.retain(Thread::is_wanted);
        lanes.push(Thread::new(Arc::clone(shared)));
        lanes.len() - 1
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        self.shared.close();
        // Other threads give their lanes back when they use another ring, or end.
        let _ = LANES.try_with(|lanes| {
            if let Ok(mut lanes) = lanes.try_borrow_mut() {
                lanes.retain(Thread::is_wanted);
            }
        });
    }
}

/// A hot function runs on this thread, until this is dropped: not for futures, which change threads.
#[must_use = "the function counts as left when this is dropped"]
#[derive(Debug)]
pub struct Hot<'ring> {
    ring: Option<&'ring Ring>,
    function: FunctionId,
    on_this_thread: PhantomData<*const ()>,
}

impl Drop for Hot<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(ring) = self.ring {
            ring.with_thread(|thread| thread.leave(self.function));
        }
    }
}

/// The function runs on this thread until the guard is dropped: [`Ring::enter`] of the ring that the environment
/// variable [`RING_VARIABLE`] names when this is first called, or else of [`DEFAULT_RING`].
#[inline]
pub fn hot(function: FunctionId) -> Hot<'static> {
    static RING: LazyLock<Ring> = LazyLock::new(|| {
        let file = std::env::var_os(RING_VARIABLE);
        Ring::attach(file.unwrap_or_else(|| DEFAULT_RING.into()))
    });
    RING.enter(function)
}
