// SPDX-License-Identifier: Apache-2.0
//! A producer that writes what it is told, whether or not a good one would; and threads that are made up.

use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::time::Duration;

use weir_events::Geometry;
use weir_events::layout::{
    CORE, Event, FunctionId, Kind, OWNER, Owner, PID_NAMESPACE, SINCE_NS, STATE, THREAD_STARTED,
    UNKNOWN_CORE, WRITTEN,
};
use weir_governor::book::Book;
use weir_governor::run::Governor;
use weir_governor::sensed::Nanos;

use crate::kernel::Kernel;

/// No kernel gives a process this number, so that nothing of this machine is looked at (`PID_MAX_LIMIT`).
pub(crate) const PID: u32 = 5_000_000;

/// Every millisecond, for a lock of the last governor: a child that another test of this process has just forked has
/// a copy of the file, and the lock with it, until it is another program.
const LOOKS: usize = 10_000;

pub(crate) struct Producer {
    file: File,
    geometry: Geometry,
    pub(crate) lane: u32,
    pub(crate) written: u64,
    pub(crate) started: u64,
}

impl Producer {
    /// Takes a lane, as the thread `tid` of [`PID`].
    pub(crate) fn claim(kernel: &Kernel, lane: u32, tid: u32, started: u64) -> Self {
        Self::claim_as(kernel, lane, Owner { pid: PID, tid }, started)
    }

    /// Takes a lane, as whoever it is said to be.
    pub(crate) fn claim_as(kernel: &Kernel, lane: u32, owner: Owner, started: u64) -> Self {
        let file = File::options()
            .read(true)
            .write(true)
            .open(kernel.ring())
            .unwrap();
        let mut producer = Self {
            file,
            geometry: Geometry::new(64, 16).unwrap(),
            lane,
            written: 0,
            started,
        };
        producer.written = producer.load(WRITTEN);
        producer.store(OWNER, owner.word());
        producer.store(PID_NAMESPACE, kernel.namespace());
        producer.store(THREAD_STARTED, started);
        producer
    }

    /// Whether a good producer would take the lane.
    pub(crate) fn is_free(kernel: &Kernel, lane: u32) -> bool {
        let mut owner = [0; 8];
        let at = Geometry::new(64, 16).unwrap().head(lane) + OWNER;
        let read = File::open(kernel.ring()).and_then(|ring| ring.read_exact_at(&mut owner, at));
        read.is_ok() && owner == [0; 8]
    }

    pub(crate) fn enter(&mut self, function: u8, at: Nanos, core: Option<u16>) {
        self.event(function, Kind::Enter, at, core);
    }

    pub(crate) fn leave(&mut self, function: u8, at: Nanos, core: Option<u16>) {
        self.event(function, Kind::Leave, at, core);
    }

    fn event(&mut self, function: u8, kind: Kind, at: Nanos, core: Option<u16>) {
        let event = Event {
            time_ns: at.0,
            kind,
            function: FunctionId::new(function).unwrap(),
            core,
        };
        self.put(self.written, event.encode(self.written));
        let since = if kind == Kind::Enter { at.0 } else { 0 };
        self.store(SINCE_NS + 8 * u64::from(function), since);
        self.store(CORE, core.map_or(UNKNOWN_CORE, u64::from));
        self.written = self.written.wrapping_add(1);
        self.store(WRITTEN, self.written);
    }

    /// An event in the slot of this number.
    pub(crate) fn put(&self, number: u64, [time, word]: [u64; 2]) {
        let slot = self.geometry.event(self.lane, number);
        self.at(slot, time);
        self.at(slot + 8, word);
    }

    /// Gives the lane back.
    pub(crate) fn release(self) {
        for function in 0..16 {
            self.store(SINCE_NS + 8 * function, 0);
        }
        self.store(OWNER, 0);
    }

    /// Any word of the head.
    pub(crate) fn store(&self, field: u64, value: u64) {
        self.at(self.geometry.head(self.lane) + field, value);
    }

    pub(crate) fn load(&self, field: u64) -> u64 {
        let mut bytes = [0; 8];
        let at = self.geometry.head(self.lane) + field;
        // A file that was cut off says nothing.
        let read = self.file.read_exact_at(&mut bytes, at);
        read.map_or(0, |()| u64::from_le_bytes(bytes))
    }

    /// Of the whole file.
    pub(crate) fn load_state(&self) -> u64 {
        let mut bytes = [0; 8];
        self.file.read_exact_at(&mut bytes, STATE).unwrap();
        u64::from_le_bytes(bytes)
    }

    fn at(&self, offset: u64, value: u64) {
        self.file
            .write_all_at(&value.to_le_bytes(), offset)
            .unwrap();
    }
}

impl Kernel {
    /// The inode of what stands for the namespace.
    pub(crate) fn namespace(&self) -> u64 {
        std::fs::metadata(self.path("proc/self/ns/pid"))
            .unwrap()
            .ino()
    }

    /// A process that can have threads, the namespace, and cores that have been busy for a while.
    pub(crate) fn processes(&self) {
        std::fs::create_dir_all(self.path("proc/self/ns")).unwrap();
        std::fs::write(self.path("proc/self/ns/pid"), "").unwrap();
        let cores = (0..64).map(|core| format!("cpu{core} 10 0 10 100 0 0 0 0 0 0\n"));
        std::fs::write(self.path("proc/stat"), cores.collect::<String>()).unwrap();
    }

    /// A thread of [`PID`] that lives.
    pub(crate) fn thread(&self, tid: u32, started: u64, core: u32) {
        let folder = self.path(&format!("proc/{PID}/task/{tid}"));
        std::fs::create_dir_all(&folder).unwrap();
        let zeros = "0 ".repeat(18);
        let between = "0 ".repeat(16);
        let text = format!("{tid} (a ) b) S {zeros}{started} {between}{core} 0 0");
        std::fs::write(folder.join("stat"), text).unwrap();
    }

    pub(crate) fn dies(&self, tid: u32) {
        let folder = self.path(&format!("proc/{PID}/task/{tid}"));
        // Who has the file open would get ESRCH from the kernel; of a plain file, that it is another's.
        if folder.exists() {
            self.thread(tid, u64::MAX, 0);
        }
        // It may be dead already.
        let _ = std::fs::remove_dir_all(folder);
    }
}

/// A governor whose time is made up.
pub(crate) struct Governed {
    pub(crate) kernel: Kernel,
    pub(crate) governor: Governor,
    pub(crate) now: Nanos,
}

impl Governed {
    /// `three_state` on four cores, without any thread.
    pub(crate) fn new() -> Self {
        let kernel = Kernel::without_processes(4);
        kernel.processes();
        let governor = start(&kernel);
        let mut governed = Self {
            kernel,
            governor,
            now: Nanos(1_000_000_000_000),
        };
        governed.after(0);
        governed
    }

    /// So many milliseconds later there is a tick.
    pub(crate) fn after(&mut self, millis: u64) -> Vec<String> {
        self.now.0 += millis * 1_000_000;
        self.governor.tick(self.now, false);
        self.kernel.speeds()
    }

    /// Ticks every 10 ms for so long.
    pub(crate) fn pass(&mut self, time: Duration) -> Vec<String> {
        for _ in 0..time.as_millis() / 10 {
            self.after(10);
        }
        self.kernel.speeds()
    }

    pub(crate) fn book(&self) -> Book {
        self.governor.book().read()
    }

    pub(crate) fn thread(&self, lane: u32, tid: u32, core: u32) -> Producer {
        self.kernel.thread(tid, 77, core);
        Producer::claim(&self.kernel, lane, tid, 77)
    }
}

pub(crate) fn start(kernel: &Kernel) -> Governor {
    for _ in 0..LOOKS {
        let config = kernel.config("{ three_state: {} }");
        match Governor::start(config, &kernel.root()) {
            Err(error) if format!("{error:#}").contains("another governor reads it") => {
                std::thread::sleep(Duration::from_millis(1));
            }
            started => return started.unwrap(),
        }
    }
    panic!("the events file stays locked");
}
