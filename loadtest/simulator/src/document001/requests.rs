// SPDX-License-Identifier: Apache-2.0
//! Requests in the order of their times, made when they are needed.
//!
//! ```text
//! project ── schedule, import ──> a run ── a request a channel ───────────────────────┐
//! customer ── session ──> prefetch ── previews, 15 % of them in pairs ──> run by hand ┴──> Job
//! ```

use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::Params;
use super::params::{DEPENDENT, REQUESTS};
use super::project::{self, Project};
use crate::agenda::Agenda;
use crate::draws::{exponential, normal};
use crate::workload::{HIGH, Job, Key, LOW, Work};

const DAY: f64 = 86_400.0;
/// Between a preview's end and the request that needs it. Our assumption.
const INSPECT: Duration = Duration::from_millis(50);

/// A source of requests.
#[derive(Debug)]
enum Maker {
    /// A project's schedule.
    Schedule(u32),
    /// A run.
    Run(Run),
    /// A customer may open the application.
    Session,
    /// Previews still to come.
    Previews {
        project: u32,
        left: u32,
        sender: u64,
    },
    /// A request that was made before.
    Made(Box<Job>),
}

/// Channels still to be asked for.
#[derive(Debug, Clone, Copy)]
struct Run {
    project: u32,
    left: u32,
    class: u8,
    /// Who asks: the run itself, or the customer who began it.
    sender: u64,
}

/// The requests of document 001. The same parameters and seed make the same.
#[derive(Debug)]
pub struct Requests {
    params: Params,
    until: Duration,
    rng: SmallRng,
    projects: Vec<Project>,
    makers: Agenda<Maker>,
    sessions_per_s: f64,
    /// Runs and sessions so far. Each is a sender: one process of the customer's side sends all of its requests.
    senders: u64,
    /// They are those of the captured trace.
    trace: bool,
}

impl Requests {
    /// Those of so many hours.
    #[must_use]
    pub fn new(params: &Params, seed: u64, hours: f64) -> Self {
        let mut rng = SmallRng::seed_from_u64(seed);
        let low = REQUESTS * (1.0 - params.high_share);
        let projects = project::draw(params, low, &mut rng);
        let mut makers = Agenda::new();
        for (number, project) in projects.iter().enumerate() {
            let at = Duration::from_secs_f64(project.offset);
            makers.note(at, Maker::Schedule(number as u32));
        }
        makers.note(Duration::ZERO, Maker::Session);
        let channels: f64 = projects.iter().map(|p| f64::from(p.channels)).sum();
        let by_hand = params.manual_share * channels / projects.len().max(1) as f64;
        let per_session = 1.0 + params.previews / (1.0 - DEPENDENT) + by_hand;
        Self {
            sessions_per_s: REQUESTS * params.high_share / per_session / DAY,
            params: params.clone(),
            until: Duration::from_secs_f64(hours * 3600.0),
            rng,
            projects,
            makers,
            senders: 0,
            trace: false,
        }
    }

    /// As the experiments replay them: data never change (section 7.4.1), and what needs another's
    /// end comes when it came in production, here without a wait, whether that has ended or not
    /// (7.4.7).
    #[must_use]
    pub fn as_trace(mut self) -> Self {
        self.trace = true;
        self
    }

    /// One for every project.
    #[must_use]
    pub fn keys(&self) -> Vec<Key> {
        let key = |project| Key::new(&format!("project-{project}"));
        (0..self.projects.len()).map(key).collect()
    }

    fn after(&mut self, now: Duration, mean_s: f64, maker: Maker) {
        let pause = Duration::from_secs_f64(exponential(mean_s, &mut self.rng));
        self.makers.note(now + pause, maker);
    }

    /// At most one request comes of a maker, and makers to come.
    fn make(&mut self, now: Duration, maker: Maker) -> Option<Job> {
        match maker {
            Maker::Schedule(project) => {
                self.schedule(now, project);
                None
            }
            Maker::Run(run) => Some(self.channel(now, run)),
            Maker::Session => self.session(now),
            Maker::Made(job) => Some(*job),
            Maker::Previews {
                project,
                left: 0,
                sender,
            } => {
                self.end_session(now, project, sender);
                None
            }
            Maker::Previews {
                project,
                left,
                sender,
            } => Some(self.preview(now, project, left, sender)),
        }
    }

    /// A project's run after its import, and its next schedule.
    fn schedule(&mut self, now: Duration, project: u32) {
        let Project {
            every, channels, ..
        } = self.projects[project as usize];
        let next = now + Duration::from_secs_f64(every);
        self.makers.note(next, Maker::Schedule(project));
        let run = Maker::Run(Run {
            project,
            left: channels,
            class: LOW,
            sender: self.next_sender(),
        });
        self.after(now, self.params.import_s, run);
    }

    /// The request of a run's next channel.
    fn channel(&mut self, now: Duration, run: Run) -> Job {
        let of = &mut self.projects[run.project as usize];
        let first = run.left == of.channels;
        if first && !self.trace && self.rng.random::<f64>() < self.params.changed_share {
            of.version += 1;
        }
        if run.left > 1 {
            let left = run.left - 1;
            let rest = Maker::Run(Run { left, ..run });
            self.after(now, self.params.channel_gap_s, rest);
        }
        self.job(now, run.project, run.class, run.sender)
    }

    /// The prefetch of a customer who opens the application, if the time of day has one. Moments are drawn at
    /// the rate of the busiest time of day, and thinned out to that of their own.
    fn session(&mut self, now: Duration) -> Option<Job> {
        let swing = self.params.daily_swing.min(1.0);
        let most = self.sessions_per_s * (1.0 + swing);
        self.after(now, 1.0 / most, Maker::Session);
        let time_of_day = now.as_secs_f64() / DAY * std::f64::consts::TAU;
        let share = (1.0 - swing * time_of_day.cos()) / (1.0 + swing);
        if self.rng.random::<f64>() >= share {
            return None;
        }
        let project = self.rng.random_range(0..self.projects.len()) as u32;
        let left = exponential(self.params.previews, &mut self.rng).round() as u32;
        let sender = self.next_sender();
        let previews = Maker::Previews {
            project,
            left,
            sender,
        };
        self.after(now, self.params.think_s, previews);
        Some(self.with(now, project, HIGH, sender, Work::Prefetch))
    }

    /// After the last preview some run the project by hand.
    fn end_session(&mut self, now: Duration, project: u32, sender: u64) {
        if self.rng.random::<f64>() < self.params.manual_share {
            let run = Maker::Run(Run {
                project,
                left: self.projects[project as usize].channels,
                class: HIGH,
                sender,
            });
            self.makers.note(now, run);
        }
    }

    /// A preview, some with another that needs its end.
    fn preview(&mut self, now: Duration, project: u32, left: u32, sender: u64) -> Job {
        let left = left - 1;
        let rest = Maker::Previews {
            project,
            left,
            sender,
        };
        self.after(now, self.params.think_s, rest);
        let mut job = self.job(now, project, HIGH, sender);
        // So that of all of them DEPENDENT need another's end.
        if self.rng.random::<f64>() < DEPENDENT / (1.0 - DEPENDENT) {
            let mut next = Box::new(self.job(INSPECT, project, HIGH, sender));
            if self.trace {
                let run = job.work.core_time().div_f64(self.params.usable_cores);
                next.at = now + run + INSPECT;
                self.makers.note(next.at, Maker::Made(next));
            } else {
                job.then = Some(next);
            }
        }
        job
    }

    fn next_sender(&mut self) -> u64 {
        self.senders += 1;
        self.senders
    }

    fn job(&mut self, at: Duration, project: u32, class: u8, sender: u64) -> Job {
        let params = &self.params;
        let size = self.projects[project as usize].size;
        let (factor, sigma, most) = match class {
            HIGH => (
                params.high_run,
                params.high_run_sigma,
                params.high_run_max_s,
            ),
            _ => (1.0, params.run_sigma, params.run_max_s),
        };
        let spread = (sigma * normal(&mut self.rng)).exp();
        let run = params.run_s * factor * size * spread;
        let run = Duration::from_secs_f64(run.min(most));
        let shared = run.mul_f64(params.shared_part.min(0.5));
        let output = run.mul_f64(params.output_part.min(0.5));
        let work = Work::Split {
            // A preview is of one channel's rules, and the shared ones are those of all.
            rules: 1,
            shared,
            own: run - shared - output,
            output,
            cores: params.usable_cores.round().clamp(1.0, 255.0) as u8,
        };
        self.with(at, project, class, sender, work)
    }

    fn with(&self, at: Duration, project: u32, class: u8, sender: u64, work: Work) -> Job {
        let Project { size, version, .. } = self.projects[project as usize];
        Job {
            at,
            key: Some(project),
            version,
            class,
            user: None,
            sender: Some(sender),
            bytes: (self.params.median_bytes * size) as u64,
            work,
            then: None,
        }
    }
}

impl Iterator for Requests {
    type Item = Job;

    fn next(&mut self) -> Option<Job> {
        loop {
            let (now, maker) = self.makers.next()?;
            if now >= self.until {
                return None;
            }
            if let Some(job) = self.make(now, maker) {
                return Some(job);
            }
        }
    }
}
