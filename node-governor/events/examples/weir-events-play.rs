// SPDX-License-Identifier: Apache-2.0
//! Threads that are hot for a while and idle for a while: to try the governor by hand, and for its tests.
//!
//! Statically linked, as a test's guest needs it:
//! `RUSTFLAGS="-C target-feature=+crt-static" cargo build --release -p weir-events --example weir-events-play --target x86_64-unknown-linux-gnu`

use std::io::Write;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use clap::Parser;
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::{Pid, gettid};
use weir_events::{DEFAULT_RING, FunctionId, Ring};

/// Threads that are hot for a while and idle for a while.
///
/// Prints `PID TID hot` when a thread has entered its function for the first time.
#[derive(Clone, Debug, Parser)]
struct Flags {
    /// The governor's file.
    #[arg(long, default_value = DEFAULT_RING)]
    ring: PathBuf,
    /// The hot function, 0 to 15.
    #[arg(long, default_value = "0", value_parser = function)]
    function: FunctionId,
    /// Cores to pin the threads to, in turns; unpinned without.
    #[arg(long, value_delimiter = ',')]
    cores: Vec<usize>,
    /// How many threads.
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Milliseconds in the function.
    #[arg(long, default_value_t = 600)]
    hot_ms: u64,
    /// Milliseconds out of it.
    #[arg(long, default_value_t = 400)]
    idle_ms: u64,
    /// How often; 0 = until it is killed.
    #[arg(long, default_value_t = 0)]
    times: u64,
    /// Calls of the function within itself.
    #[arg(long, default_value_t = 0)]
    recursion: u32,
    /// Sleep in the function instead of keeping the core busy.
    #[arg(long)]
    sleep: bool,
}

fn function(text: &str) -> Result<FunctionId, String> {
    let number = text.parse().ok().and_then(FunctionId::new);
    number.ok_or_else(|| "expected 0 to 15".to_owned())
}

fn main() -> Result<(), String> {
    let flags = Flags::parse();
    let ring = Ring::attach(&flags.ring);
    thread::scope(|scope| {
        let play = |thread| {
            let (ring, flags) = (&ring, &flags);
            scope.spawn(move || play(ring, flags, thread))
        };
        let threads: Vec<_> = (0..flags.threads).map(play).collect();
        let ended = |thread: thread::ScopedJoinHandle<'_, _>| {
            thread.join().map_err(|_| "a thread panicked".to_owned())?
        };
        threads.into_iter().try_for_each(ended)
    })
}

fn play(ring: &Ring, flags: &Flags, thread: usize) -> Result<(), String> {
    if let Some(core) = flags.cores.get(thread % flags.cores.len().max(1)) {
        pin(*core).map_err(|error| format!("--cores: core {core}: {error}"))?;
    }
    let mut done = 0;
    while flags.times == 0 || done < flags.times {
        hot(ring, flags, flags.recursion, done == 0);
        thread::sleep(Duration::from_millis(flags.idle_ms));
        done += 1;
    }
    Ok(())
}

fn hot(ring: &Ring, flags: &Flags, recursion: u32, first: bool) {
    let _hot = ring.enter(flags.function);
    if recursion > 0 {
        return hot(ring, flags, recursion - 1, first);
    }
    if first {
        // Nobody may listen.
        let _ = writeln!(std::io::stdout(), "{} {} hot", std::process::id(), gettid());
    }
    let time = Duration::from_millis(flags.hot_ms);
    if flags.sleep {
        return thread::sleep(time);
    }
    let start = Instant::now();
    while start.elapsed() < time {
        std::hint::spin_loop();
    }
}

fn pin(core: usize) -> nix::Result<()> {
    let mut set = CpuSet::new();
    set.set(core)?;
    sched_setaffinity(Pid::from_raw(0), &set)
}
