// SPDX-License-Identifier: Apache-2.0
//! A page of a run that never was: document 004's state machine and jobs, under a load that steps.
//!
//! `cargo run -p weir-governor --example made-up-timeline -- timeline.html [SECONDS] [JOBS]`

use std::time::Duration;

use anyhow::Context;
use weir_governor::book::shares::SharesBook;
use weir_governor::cores::blocks::{Blocks, Params};
use weir_governor::cores::{Act, Cores, JobPlan, Policy, Seen};
use weir_governor::jobs::runner::Facts;
use weir_governor::jobs::spec::{Command, Source, Spec};
use weir_governor::jobs::{Job, Queue, State};
use weir_governor::sensed::{Nanos, Row, Sensed, Tail};
use weir_governor::timeline::{Recorder, page};

const TICK: f64 = 0.05;
/// Names, queues and threads as there (figure 8, table 1); CPU seconds are made up.
const JOBS: [(&str, Queue, u32, f64); 6] = [
    ("freqmine", Queue::Long, 4, 240.0),
    ("ferret", Queue::Long, 4, 170.0),
    ("canneal", Queue::Medium, 1, 60.0),
    ("blackscholes", Queue::Medium, 2, 150.0),
    ("splash-fft", Queue::Short, 1, 45.0),
    ("dedup", Queue::Short, 1, 25.0),
];

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let out = arguments.next().context("where to?")?;
    let length: f64 = arguments.next().map_or(Ok(300.0), |text| text.parse())?;
    let jobs: usize = arguments
        .next()
        .map_or(Ok(JOBS.len()), |text| text.parse())?;
    let folder = std::env::temp_dir().join(format!("weir-timeline-{}", std::process::id()));
    record(&folder, length, jobs)?;
    let html = page::html(&folder);
    std::fs::remove_dir_all(&folder)?;
    std::fs::write(&out, html?).context(out)
}

fn record(folder: &std::path::Path, length: f64, jobs: usize) -> anyhow::Result<()> {
    let specs: Vec<Spec> = JOBS.iter().take(jobs).map(spec).collect();
    let all: Vec<Job> = specs.iter().map(|spec| spec.job.clone()).collect();
    let machine = Cores::from([0, 1, 2, 3]);
    let mut policy = Policy::Blocks(Blocks::new(Params::default(), &machine, &all)?);
    let mut book = SharesBook {
        machine,
        target: Some(Duration::from_micros(1500)),
        ..SharesBook::new(&specs)
    };
    let mut recorder = Recorder::open(folder)?;
    let mut sensed = Sensed {
        jobs: vec![State::Waiting; jobs],
        ..Sensed::default()
    };
    let scale = length / 300.0;
    let mut left: Vec<f64> = JOBS.iter().map(|job| job.3 * scale).collect();
    let mut load = Load::new();
    let begun = 1_795_000_000_000;
    let ticks = (length / TICK) as u64;
    for tick in 0..ticks {
        let at = tick as f64 * TICK;
        let crowded = load.sense(at, &book, &mut sensed);
        let plan = policy.plan(&Seen {
            now: sensed.now,
            cpu: sensed.service_cpu,
            pressed: crowded > 1.3,
            jobs: sensed.jobs.clone(),
            ..Seen::default()
        });
        book.decided(sensed.now, &sensed, &plan, crowded > 1.3);
        work(&plan.jobs, &mut sensed.jobs, &mut left);
        // One of them fails towards the end.
        if tick == ticks * 9 / 10
            && let Some(job) = sensed.jobs.get_mut(3)
            && *job == State::Running
        {
            *job = State::Failed;
        }
        for (index, state) in sensed.jobs.iter().enumerate() {
            book.job(index, &facts(*state));
        }
        recorder.record(begun + (at * 1e3) as u64, &book, sensed.tail);
        // Here hours pass in a moment; the disk needs its time.
        if tick % 500 == 0 {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    recorder.end(begun + (length * 1e3) as u64);
    Ok(())
}

fn spec((name, queue, threads, _): &(&str, Queue, u32, f64)) -> Spec {
    Spec {
        job: Job {
            name: (*name).to_owned(),
            queue: *queue,
            threads: *threads,
        },
        source: Source::Command(Command::default()),
        takes: None,
    }
}

/// The service's load, in cores: steps of some seconds, as in that report.
struct Load {
    wanted: f64,
    until: f64,
    random: Random,
}

impl Load {
    fn new() -> Self {
        Self {
            wanted: 0.3,
            until: 0.0,
            random: Random(1),
        }
    }

    /// The service as it is sensed at a time; returns its use of the cores it had, of 1.
    fn sense(&mut self, at: f64, book: &SharesBook, sensed: &mut Sensed) -> f64 {
        let random = &mut self.random;
        if at >= self.until {
            let light = random.next() < 0.6;
            self.wanted = match light {
                true => 0.1 + 0.45 * random.next(),
                false => 1.35 + 0.3 * random.next(),
            };
            self.until = at + 3.0 + 4.0 * random.next();
        }
        let now = Nanos((at * 1e9) as u64);
        let had = book.service.len().max(1) as f64;
        let use_now = self.wanted * (0.95 + 0.1 * random.next());
        let crowded = (use_now / had).min(1.4);
        let latency = 0.25 + 0.5 * crowded + 2.5 * (crowded - 0.85).max(0.0) + 0.1 * random.next();
        sensed.now = now;
        sensed.service_cpu = Some(use_now.min(had));
        sensed.tail = Some(Tail {
            latency: Duration::from_secs_f64(latency / 1e3),
            requests: 1000,
            at: now,
        });
        sensed.row = Some(Row {
            at: now,
            refuses: crowded > 1.3,
            delay: None,
        });
        crowded
    }
}

/// A tick of the jobs: each does as planned, until no work is left.
fn work(plan: &[JobPlan], jobs: &mut [State], left: &mut [f64]) {
    for ((job, state), left) in plan.iter().zip(jobs).zip(left) {
        match job.act {
            Act::Run => *state = State::Running,
            Act::Pause => *state = State::Paused,
            Act::Wait | Act::Done => continue,
        }
        if *state == State::Running {
            *left -= TICK * job.cores.len().min(job.threads as usize) as f64;
        }
        if *left <= 0.0 {
            *state = State::Finished;
        }
    }
}

fn facts(state: State) -> Facts {
    let (code, trouble) = match state {
        State::Finished => (Some(0), None),
        State::Failed => (Some(137), Some("ended by signal 9")),
        _ => (None, None),
    };
    Facts {
        code,
        trouble: trouble.map(str::to_owned),
        ..Facts::default()
    }
}

/// Numbers from 0 to 1 (Knuth's MMIX constants).
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        let Self(state) = self;
        *state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (*state >> 33) as f64 / (1u64 << 31) as f64
    }
}
