// SPDX-License-Identifier: Apache-2.0
//! The lanes that the kernel side writes, read through a mapping.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::{MmapOptions, MmapRaw};
use weir_events::layout::{FUNCTIONS, OWNER, PID_NAMESPACE, THREAD_STARTED};
use weir_events::{Geometry, Owner};

use crate::Error;

/// The lanes. It can be read for as long as it is held, but nothing is written any more once the
/// [`Uprobes`](crate::Uprobes) that it came with are dropped.
#[derive(Clone, Debug)]
pub struct Memory {
    map: Arc<MmapRaw>,
    geometry: Geometry,
}

impl Memory {
    pub(crate) fn new(map: BorrowedFd<'_>, geometry: Geometry) -> Result<Self, Error> {
        let map = MmapOptions::new()
            .len(geometry.file_bytes() as usize)
            .map_raw(map.as_raw_fd())
            .map_err(Error::Map)?;
        let map = Arc::new(map);
        Ok(Self { map, geometry })
    }

    /// Of the whole memory.
    pub fn bytes(&self) -> u64 {
        self.geometry.file_bytes()
    }

    /// Calls that have not ended.
    pub(crate) fn running(&self) -> impl Iterator<Item = Running> + '_ {
        self.owners().flat_map(move |(lane, owner)| {
            (0..FUNCTIONS).filter_map(move |function| {
                let since = self.word(self.geometry.since(lane, function));
                let since = since.load(Ordering::Acquire);
                (since != 0).then_some(Running {
                    lane,
                    owner,
                    function,
                    since,
                })
            })
        })
    }

    /// Says that a call is over, unless the kernel side has said more of it by now.
    pub(crate) fn end(&self, call: &Running) {
        let word = self.word(self.geometry.since(call.lane, call.function));
        let _ = word.compare_exchange(call.since, 0, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// Lanes that are not free, and whose they are.
    pub(crate) fn owners(&self) -> impl Iterator<Item = (u32, Owner)> + '_ {
        (0..self.geometry.lanes()).filter_map(|lane| {
            let owner = self.word(self.geometry.head(lane) + OWNER);
            Some((lane, Owner::from_word(owner.load(Ordering::Acquire))?))
        })
    }

    /// Frees a lane that nothing writes any more.
    pub(crate) fn free(&self, lane: u32) {
        let clear = |at| self.word(at).store(0, Ordering::Release);
        (0..FUNCTIONS).for_each(|function| clear(self.geometry.since(lane, function)));
        for word in [THREAD_STARTED, PID_NAMESPACE, OWNER] {
            clear(self.geometry.head(lane) + word);
        }
    }

    fn check(&self, offset: u64, bytes: usize) -> io::Result<()> {
        let end = offset.checked_add(bytes as u64);
        let fits = end.is_some_and(|end| end <= self.bytes());
        if fits && offset.is_multiple_of(8) && bytes.is_multiple_of(8) {
            return Ok(());
        }
        let text = format!(
            "{bytes} bytes at {offset} of {}: whole words within",
            self.bytes()
        );
        Err(io::Error::new(io::ErrorKind::InvalidInput, text))
    }

    fn word(&self, at: u64) -> &AtomicU64 {
        assert!(
            at.is_multiple_of(8) && at + 8 <= self.bytes(),
            "within the memory"
        );
        // SAFETY: `at` was checked; the mapping is page aligned, lives as long as `self` and is of a kernel array,
        // which never shrinks. The kernel's writes are of whole words too.
        unsafe { AtomicU64::from_ptr(self.map.as_mut_ptr().add(at as usize).cast()) }
    }
}

/// In whole words of 8 bytes.
impl weir_events::Memory for Memory {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.check(offset, buffer.len())?;
        for (at, to) in (offset..).step_by(8).zip(buffer.as_chunks_mut().0) {
            *to = self.word(at).load(Ordering::Acquire).to_ne_bytes();
        }
        Ok(())
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.check(offset, bytes.len())?;
        for (at, from) in (offset..).step_by(8).zip(bytes.as_chunks().0) {
            self.word(at)
                .store(u64::from_ne_bytes(*from), Ordering::Release);
        }
        Ok(())
    }
}

/// A call that has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Running {
    pub(crate) lane: u32,
    pub(crate) owner: Owner,
    pub(crate) function: usize,
    pub(crate) since: u64,
}

#[cfg(test)]
mod tests {
    use memmap2::MmapMut;
    use weir_events::Memory as _;

    use super::*;

    /// Miri runs it too, which knows no maps of the kernel.
    #[test]
    fn a_call_is_ended_once_and_a_freed_lane_is_empty() {
        let geometry = Geometry::new(2, 16).expect("in range");
        let map = MmapMut::map_anon(geometry.file_bytes() as usize).expect("there is memory");
        let memory = Memory {
            map: Arc::new(map.into()),
            geometry,
        };
        let put = |at, word: u64| {
            let written = memory.write_at(at, &word.to_ne_bytes());
            written.expect("within");
        };
        let owner = Owner { pid: 7, tid: 9 };
        put(geometry.head(1) + OWNER, owner.word());
        put(geometry.since(1, 15), 5);
        let before: Vec<Running> = memory.running().collect();
        let call = Running {
            lane: 1,
            owner,
            function: 15,
            since: 5,
        };
        assert_eq!(before, [call]);

        put(geometry.since(1, 15), 6);
        memory.end(&call);
        let after = Running { since: 6, ..call };
        assert_eq!(memory.running().collect::<Vec<_>>(), [after]);
        memory.end(&after);
        assert_eq!(memory.running().count(), 0);

        memory.free(1);
        assert_eq!(memory.owners().count(), 0);
        let mut all = vec![1; memory.bytes() as usize];
        memory.read_at(0, &mut all).expect("within");
        assert!(all.iter().all(|byte| *byte == 0));
        assert!(memory.read_at(8, &mut all).is_err(), "a word too far");
        assert!(memory.read_at(4, &mut [0; 8]).is_err(), "no whole word");
    }
}
