// SPDX-License-Identifier: Apache-2.0
//! Whose lane it is: whether that thread lives, and on which core.
//!
//! A thread that is pinned to one core is there. Of another, the core is where its last event was; while a hot
//! function of it goes on, or where its producer cannot know the core, the kernel is asked (`processor`, field 39
//! of `/proc/PID/task/TID/stat`; `man 5 proc_pid_stat`).
//!
//! One question costs some microseconds, so that they are spread: [`QUESTION`] for each thread that is to be asked
//! for, since its last answer or event. So of 64 such threads none is asked for in a call of less than 160 ms.

use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::fs::{Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::thread::sched_getaffinity;
use weir_events::{Lane, Owner};

use super::whose::{Functions, Whose};
use crate::root::Root;
use crate::sensed::{FUNCTIONS, Nanos};

/// Between two questions on the average, where there are many to ask.
const QUESTION: Duration = Duration::from_micros(2500);
/// So many times that rate are asked at most, whatever lanes say: who may write there can give them new owners each tick.
const MOST: f64 = 2.0;
/// New threads that are asked for at once, however many lanes there are.
const AT_ONCE: u32 = 64;
/// Whether a thread lives in which nothing hot runs is asked this often, where there are few.
const LIVES: Duration = Duration::from_secs(1);
/// The same where something does, for as long a dead thread may keep its core fast.
const LIVES_HOT: Duration = Duration::from_millis(250);
/// People pin threads seldom, and the question is cheap.
const PINNED: Duration = Duration::from_secs(1);
/// A lane of another pid namespace in which nothing happens for so long is given back: whether its thread lives
/// cannot be seen from here. One that does takes another with its next call.
const SILENT: Duration = Duration::from_secs(60);
/// A thread that has claimed a lane says in this time who it is.
const INTRODUCTION: Duration = Duration::from_secs(3);

/// What is known of a lane's thread.
#[derive(Debug, Default)]
pub(super) struct Track {
    owner: Option<Owner>,
    started: u64,
    /// Since when it has this owner.
    claimed: Nanos,
    pinned: Option<u32>,
    pinned_read: Nanos,
    /// From the kernel.
    processor: Option<u32>,
    asked: Nanos,
    /// The kernel's answers. It is of this very thread: of one that ends and whose id another gets it says so.
    stat: Option<OwnedFd>,
    last_event: Nanos,
    /// By function, as events tell; 0 = unknown.
    pub(super) entered: [u64; FUNCTIONS],
    /// It has been counted that it is on a core that is not governed.
    pub(super) outside: bool,
    /// Functions of it that do not count, and when that was found out.
    ignored: Functions,
    belongs_read: Option<Nanos>,
}

impl Track {
    /// Whether this function of its counts.
    pub(super) fn counts(&self, function: usize) -> bool {
        self.ignored & 1 << (function % FUNCTIONS) == 0
    }

    /// The core on which the thread is, as far as is known.
    pub(super) fn core(&self, lane: &Lane<'_>) -> Option<u32> {
        let newest = match lane.core {
            Some(core) if self.last_event >= self.asked => Some(core),
            Some(core) => self.processor.or(Some(core)),
            None => self.processor,
        };
        self.pinned.or(newest)
    }
}

/// What is to be done with a lane.
pub(super) enum Seen {
    /// Its thread lives, as far as is known.
    Alive,
    /// Its thread cannot be found from here.
    Elsewhere {
        /// Not counted before.
        first: bool,
    },
    /// It is to be freed.
    Dead(Owner),
}

/// Asks the kernel about threads.
#[derive(Debug)]
pub(super) struct Threads {
    proc: Option<File>,
    namespace: u64,
    tick: Duration,
    /// Lanes that wanted to be followed, in this tick and in the last.
    following: [u32; 2],
    claimed: [u32; 2],
    /// Questions that may be asked now.
    left: f64,
}

impl Threads {
    pub(super) fn new(root: &Root, tick: Duration) -> Self {
        use std::os::unix::fs::MetadataExt;
        let namespace = std::fs::metadata(root.path("proc/self/ns/pid"));
        Self {
            proc: File::open(root.path("proc")).ok(),
            namespace: namespace.map_or(0, |found| found.ino()),
            tick,
            following: [0; 2],
            claimed: [0; 2],
            left: AT_ONCE.into(),
        }
    }

    /// A tick begins.
    pub(super) fn begin(&mut self) {
        self.following = [0, self.following[0]];
        self.claimed = [0, self.claimed[0]];
        let more = MOST * self.tick.div_duration_f64(QUESTION);
        self.left = (self.left + more).min(AT_ONCE.max(self.claimed[1]).into());
    }

    /// Whether one more question may be asked, which is asked then.
    fn may_ask(&mut self) -> bool {
        let may = self.left >= 1.0;
        self.left -= f64::from(u8::from(may));
        may
    }

    /// Looks at a lane's thread, if it is time.
    pub(super) fn see(&mut self, track: &mut Track, lane: &Lane<'_>, now: Nanos) -> Seen {
        let Some(owner) = lane.owner else {
            // Its last events still count.
            return Seen::Alive;
        };
        self.claimed[0] += 1;
        if track.owner != Some(owner) || track.started != lane.thread_started {
            let known = track.owner == Some(owner) && track.started == 0;
            let claimed = if known { track.claimed } else { now };
            *track = Track {
                owner: Some(owner),
                started: lane.thread_started,
                claimed,
                entered: if known { track.entered } else { [0; FUNCTIONS] },
                ..Track::default()
            };
        }
        if ![0, self.namespace].contains(&lane.pid_namespace) {
            if track.outside && !lane.events.is_empty() {
                track.claimed = now;
            }
            if now.since(track.claimed) >= SILENT {
                return Seen::Dead(owner);
            }
            let first = !std::mem::replace(&mut track.outside, true);
            return Seen::Elsewhere { first };
        }
        if let Some(event) = lane.events.last() {
            track.last_event = Nanos(event.time_ns);
        }
        let hot = lane.running().next().is_some();
        if now.since(track.pinned_read) >= PINNED && hot && self.may_ask() {
            track.pinned = pinned(owner);
            track.pinned_read = now;
        }
        if !self.is_time(track, lane, hot, now) || !self.may_ask() {
            return Seen::Alive;
        }
        track.asked = now;
        match self.stat(track, owner) {
            Answer::Unknown => Seen::Alive,
            Answer::Lives(stat) if [0, stat.started].contains(&lane.thread_started) => {
                track.processor = Some(stat.processor);
                Seen::Alive
            }
            // Before it has said in which namespace it is, it may only be unknown here.
            _ if lane.pid_namespace == 0 && now.since(track.claimed) < INTRODUCTION => Seen::Alive,
            _ => Seen::Dead(owner),
        }
    }

    /// Finds out, if it is time, which functions of the lane's thread count; true if it is new and none does.
    pub(super) fn belongs(
        &self,
        track: &mut Track,
        lane: &Lane<'_>,
        whose: &mut Whose,
        now: Nanos,
    ) -> bool {
        let Some(owner) = lane.owner else {
            // It has ended, and cannot be asked for any more.
            (track.ignored, track.belongs_read) = (Functions::MAX, None);
            return false;
        };
        let every = LIVES.max(QUESTION * self.claimed[1]);
        if track
            .belongs_read
            .is_some_and(|read| now.since(read) < every)
        {
            return false;
        }
        let is_new = track.belongs_read.replace(now).is_none();
        track.ignored = !whose.functions(owner.pid);
        is_new && track.ignored == Functions::MAX
    }

    /// Whether the kernel is to be asked about the thread now.
    fn is_time(&mut self, track: &Track, lane: &Lane<'_>, hot: bool, now: Nanos) -> bool {
        let lives = LIVES.max(QUESTION * self.claimed[1]);
        let every = match (hot, track.pinned) {
            (false, _) => lives,
            (true, Some(_)) => LIVES_HOT.max(QUESTION * self.claimed[1]),
            (true, None) => {
                self.following[0] += 1;
                // Without a core nothing can be done for it, so that the first question is not put off.
                if lane.core.is_none() && track.processor.is_none() {
                    return true;
                }
                self.tick.max(QUESTION * self.following[1])
            }
        };
        // An event that tells the core is an answer: who writes it lives, and is there.
        let told = lane.core.map_or(Nanos::default(), |_| track.last_event);
        now.since(track.asked.max(told)) >= every
    }

    fn stat(&self, track: &mut Track, owner: Owner) -> Answer {
        let mut buffer = [0; 1024];
        let opened = match track.stat.take() {
            Some(file) => Ok(file),
            None => self.open(owner),
        };
        let read = opened.and_then(|file| {
            let bytes = rustix::io::pread(&file, &mut buffer, 0)?;
            track.stat = Some(file);
            Ok(bytes)
        });
        match read {
            Ok(bytes) => Stat::parse(&buffer[..bytes]).map_or(Answer::Unknown, Answer::Lives),
            Err(Errno::NOENT | Errno::SRCH) => Answer::Dead,
            Err(_) => Answer::Unknown,
        }
    }

    fn open(&self, owner: Owner) -> Result<OwnedFd, Errno> {
        let proc = self.proc.as_ref().ok_or(Errno::OPNOTSUPP)?;
        let mut path = [0; 48];
        let mut rest = &mut path[..];
        if write!(rest, "{}/task/{}/stat", owner.pid, owner.tid).is_err() {
            return Err(Errno::NAMETOOLONG);
        }
        let unused = rest.len();
        let path = &path[..path.len() - unused];
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        openat(proc, path, flags, Mode::empty())
    }
}

enum Answer {
    Lives(Stat),
    Dead,
    /// The kernel does not say: nothing is freed for that.
    Unknown,
}

/// Of `/proc/PID/task/TID/stat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stat {
    started: u64,
    processor: u32,
}

impl Stat {
    /// The name, field 2, may hold anything, so that fields are counted from the last bracket on.
    fn parse(text: &[u8]) -> Option<Stat> {
        let name = text.iter().rposition(|byte| *byte == b')')?;
        let rest = std::str::from_utf8(text.get(name + 1..)?).ok()?;
        // The first of them is field 3.
        let mut fields = rest.split_ascii_whitespace();
        let started = fields.nth(22 - 3)?.parse().ok()?;
        let processor = fields.nth(39 - 22 - 1)?.parse().ok()?;
        Some(Stat { started, processor })
    }
}

/// The one core that a thread may run on.
fn pinned(owner: Owner) -> Option<u32> {
    let thread = rustix::thread::Pid::from_raw(i32::try_from(owner.tid).ok()?)?;
    let allowed = sched_getaffinity(Some(thread)).ok()?;
    if allowed.count() != 1 {
        return None;
    }
    let first = (0..rustix::thread::CpuSet::MAX_CPU).find(|core| allowed.is_set(*core));
    first.map(|core| core as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_and_the_core_are_read_whatever_the_name() {
        let tail = "S 1 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 777 9 9 1 1 1 1 1 0 0 0 0 0 0 0 0 17 5 0 0";
        for name in ["x", ") 1 2", "a b)"] {
            let text = format!("12 ({name}) {tail}");
            let stat = Stat {
                started: 777,
                processor: 5,
            };
            assert_eq!(Stat::parse(text.as_bytes()), Some(stat), "{name}");
        }
        assert_eq!(Stat::parse(b"12 (x) S 1"), None);
        assert_eq!(Stat::parse(b""), None);
    }

    /// How often the kernel is asked for so many threads in one call of this length, at ticks of 10 ms.
    fn questions(threads: usize, call: Duration) -> usize {
        const TICK: Duration = Duration::from_millis(10);
        let began = Nanos(1_000_000_000);
        let mut asks = Threads::new(&Root::new("/"), TICK);
        asks.following[0] = threads as u32;
        let track = |_| Track {
            last_event: began,
            ..Track::default()
        };
        let mut tracks: Vec<Track> = (0..threads).map(track).collect();
        let mut since_ns = [0; FUNCTIONS];
        since_ns[1] = began.0;
        let lane = Lane {
            number: 0,
            owner: None,
            thread_started: 0,
            pid_namespace: 0,
            core: Some(0),
            since_ns,
            events: &[],
            lost: 0,
        };
        let mut questions = 0;
        let mut now = began;
        while now.since(began) < call {
            now = Nanos(now.0 + TICK.as_nanos() as u64);
            asks.begin();
            for track in &mut tracks {
                if asks.is_time(track, &lane, true, now) {
                    track.asked = now;
                    questions += 1;
                }
            }
        }
        questions
    }

    #[test]
    fn questions_are_spread_where_there_are_many_threads_and_asked_each_tick_where_few() {
        let [short, long] = [150, 640].map(Duration::from_millis);
        assert_eq!(questions(2, short), 2 * 15);
        assert_eq!(questions(64, short), 0);
        assert_eq!(questions(64, long), 64 * 4);
    }

    #[test]
    fn lanes_that_name_another_thread_each_tick_are_not_asked_for_each_time() {
        const TICK: Duration = Duration::from_millis(10);
        let mut threads = Threads::new(&Root::new("/"), TICK);
        let mut tracks: Vec<Track> = (0..256).map(|_| Track::default()).collect();
        let mut since_ns = [0; FUNCTIONS];
        since_ns[1] = 1;
        let (ticks, mut asked) = (200, 0);
        for tick in 1..=ticks {
            let now = Nanos(tick * 10_000_000 + 5_000_000_000);
            threads.begin();
            for (number, track) in (0u32..).zip(&mut tracks) {
                let owner = Owner {
                    pid: std::process::id(),
                    tid: (tick * 1000) as u32 + number,
                };
                let lane = Lane {
                    number,
                    owner: Some(owner),
                    thread_started: tick,
                    pid_namespace: 0,
                    core: None,
                    since_ns,
                    events: &[],
                    lost: 0,
                };
                threads.see(track, &lane, now);
                asked += u32::from(track.asked == now) + u32::from(track.pinned_read == now);
            }
        }
        // Two seconds at twice 400, and what may be asked at once.
        assert!((1000..=1600 + 256).contains(&asked), "{asked}");
    }

    #[test]
    fn of_this_very_thread_the_kernel_knows() {
        let threads = Threads::new(&Root::new("/"), Duration::from_millis(10));
        let (pid, tid) = (
            std::process::id(),
            rustix::thread::gettid().as_raw_nonzero().get() as u32,
        );
        let mut track = Track::default();
        let own = Owner { pid, tid };
        assert!(matches!(threads.stat(&mut track, own), Answer::Lives(_)));
        assert!(matches!(threads.stat(&mut track, own), Answer::Lives(_)));
        let nobody = Owner { pid, tid: u32::MAX };
        assert!(matches!(
            threads.stat(&mut Track::default(), nobody),
            Answer::Dead
        ));
    }

    #[test]
    fn a_thread_that_has_been_asked_for_is_known_to_be_dead() {
        let threads = Threads::new(&Root::new("/"), Duration::from_millis(10));
        let mut track = Track::default();
        let pid = std::process::id();
        let owner = std::thread::scope(|scope| {
            let (told, end) = (std::sync::mpsc::channel(), std::sync::mpsc::channel::<()>());
            scope.spawn(move || {
                let tid = rustix::thread::gettid().as_raw_nonzero().get() as u32;
                told.0.send(tid).unwrap();
                let _ = end.1.recv();
            });
            let owner = Owner {
                pid,
                tid: told.1.recv().unwrap(),
            };
            assert!(matches!(threads.stat(&mut track, owner), Answer::Lives(_)));
            drop(end.0);
            owner
        });
        assert!(track.stat.is_some(), "the file is still open");
        // It is joined a moment before the kernel is done with it.
        let began = std::time::Instant::now();
        while !matches!(threads.stat(&mut track, owner), Answer::Dead) {
            track.stat.as_ref().expect("open until it says so");
            assert!(began.elapsed().as_secs() < 60, "waited in vain for its end");
            std::thread::yield_now();
        }
    }
}
