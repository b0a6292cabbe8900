// SPDX-License-Identifier: Apache-2.0
//! Threads that use as many cores as a file says, from moment to moment: a service with its load, or a batch
//! job, commanded step by step.
//!
//! `weir-guest-work FILE THREADS`: the file holds a number of cores, of which no thread can use more than one, or
//! `end` and an exit code.

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use std::{env, fs, thread};

use rustix::time::{ClockId, clock_gettime};

/// Between looks at the file.
const LOOK: Duration = Duration::from_millis(50);
/// Threads sleep so long when they have had enough.
const PAUSE: Duration = Duration::from_millis(20);
/// What they could not have is made up for, but no more than this: then they had no core.
const DEBT: Duration = Duration::from_millis(100);

/// What the file says.
enum Order {
    /// Use so many thousandths of a core.
    Work(u64),
    End(u8),
}

fn parse(text: &str) -> Option<Order> {
    let text = text.trim();
    match text.strip_prefix("end") {
        Some(code) => Some(Order::End(code.trim().parse().ok()?)),
        None => {
            let cores: f64 = text.parse().ok()?;
            Some(Order::Work((cores * 1000.0) as u64))
        }
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [file, threads] = arguments.as_slice() else {
        eprintln!("weir-guest-work FILE THREADS");
        return ExitCode::from(64);
    };
    let Some(threads) = threads.parse().ok().filter(|threads: &usize| *threads > 0) else {
        eprintln!("{threads}: no number of threads");
        return ExitCode::from(64);
    };
    // Nobody may listen.
    let _ = writeln!(io::stdout(), "began with {threads}");
    let millicores: &'static AtomicU64 = Box::leak(Box::default());
    for _ in 0..threads {
        thread::spawn(|| work(millicores));
    }
    loop {
        // A file that is being written is empty for a moment.
        match fs::read_to_string(file).ok().as_deref().and_then(parse) {
            Some(Order::Work(cores)) => millicores.store(cores, Ordering::Relaxed),
            Some(Order::End(code)) => {
                let _ = writeln!(io::stdout(), "ended with {code}");
                return ExitCode::from(code);
            }
            None => {}
        }
        thread::sleep(LOOK);
    }
}

/// One thread. What the process uses counts, with what it takes to look at the file.
fn work(millicores: &AtomicU64) {
    let mut last = time(ClockId::Monotonic);
    let mut used = time(ClockId::ProcessCPUTime);
    // What should have been used by now and has not.
    let mut debt = 0.0_f64;
    loop {
        let (now, cpu) = (time(ClockId::Monotonic), time(ClockId::ProcessCPUTime));
        let cores = millicores.load(Ordering::Relaxed) as f64 / 1000.0;
        debt += cores * (now - last).as_secs_f64() - (cpu - used).as_secs_f64();
        debt = debt.clamp(-DEBT.as_secs_f64(), DEBT.as_secs_f64());
        (last, used) = (now, cpu);
        if debt > 0.0 {
            (0..1000).for_each(|_| std::hint::spin_loop());
        } else {
            thread::sleep(PAUSE);
        }
    }
}

fn time(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
