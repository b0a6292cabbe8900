// SPDX-License-Identifier: Apache-2.0
//! What runs requests at a host: the worker's executor on modelled durations, or the EMULATED engine of a
//! language model.

use std::time::Duration;

use weir_executor::{CacheChanges, Cost, Emulator, Event, JobId, Modelled, Request, Source, Spent};
use weir_llm_host::{Engine, Sequence, SequenceId};
use weir_policy::{Load, Work};

use crate::Scenario;

#[derive(Debug)]
pub(crate) enum Machine {
    Joblets(Box<Emulator>),
    Prompts(Box<Engine>),
}

/// What a machine is given.
pub(crate) enum Task {
    Joblets(Request<Modelled>),
    Prompt(Sequence),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum TaskId {
    Job(JobId),
    Sequence(SequenceId),
}

/// What happened to a task.
pub(crate) enum News {
    /// A joblet that it needs has a core for the first time.
    Started,
    /// It has ended; of its keys so many were found.
    Ended(Spent, usize),
}

/// It has no room for the task, or is made for others.
#[derive(Debug)]
pub(crate) struct Refused;

impl Machine {
    pub(crate) fn new(scenario: &Scenario, epoch: u64) -> Self {
        match &scenario.language_model {
            Some(settings) => Self::Prompts(Box::new(Engine::new(settings.clone(), epoch))),
            None => Self::Joblets(Box::new(Emulator::new(&scenario.host, epoch))),
        }
    }

    pub(crate) fn submit(&mut self, now: Duration, task: Task) -> Result<TaskId, Refused> {
        match (self, task) {
            (Self::Joblets(emulator), Task::Joblets(request)) => {
                let job = emulator.submit(now, request).map_err(|_| Refused)?;
                Ok(TaskId::Job(job))
            }
            (Self::Prompts(engine), Task::Prompt(sequence)) => {
                let id = engine.submit(now, sequence).map_err(|_| Refused)?;
                Ok(TaskId::Sequence(id))
            }
            _ => Err(Refused),
        }
    }

    pub(crate) fn cancel(&mut self, now: Duration, task: TaskId) {
        match (self, task) {
            (Self::Joblets(emulator), TaskId::Job(job)) => emulator.cancel(now, job),
            (Self::Prompts(engine), TaskId::Sequence(id)) => engine.cancel(now, id),
            _ => {}
        }
    }

    /// Tells what happened up to now.
    pub(crate) fn advance(&mut self, now: Duration, mut tell: impl FnMut(TaskId, News)) {
        match self {
            Self::Joblets(emulator) => {
                for event in emulator.drain(now) {
                    match event {
                        Event::Started(id) => tell(TaskId::Job(id), News::Started),
                        Event::Ended(id, Ok(spent)) => {
                            let found = usize::from(spent.source == Source::Hit);
                            tell(TaskId::Job(id), News::Ended(spent, found));
                        }
                        Event::Began(..) | Event::Ended(_, Err(_)) => {}
                    }
                }
            }
            Self::Prompts(engine) => {
                for (id, spent) in engine.advance(now) {
                    let in_terms_of_joblets = Spent {
                        wait: spent.wait,
                        fetch: spent.prefill,
                        run: spent.decode,
                        cost: Cost {
                            fetch: spent.prefill,
                            run: spent.decode,
                        },
                        source: match spent.hit_blocks {
                            0 => Source::Miss,
                            _ => Source::Hit,
                        },
                    };
                    let ended = News::Ended(in_terms_of_joblets, spent.hit_blocks);
                    tell(TaskId::Sequence(id), ended);
                }
            }
        }
    }

    pub(crate) fn next_due(&self) -> Option<Duration> {
        match self {
            Self::Joblets(emulator) => emulator.next_due(),
            Self::Prompts(engine) => engine.next_due(),
        }
    }

    pub(crate) fn load(&mut self, now: Duration) -> Load {
        match self {
            Self::Joblets(emulator) => {
                let load = emulator.load(now);
                Load {
                    observed: now,
                    in_progress: load.in_progress,
                    queued: load.queued.iter().sum(),
                    queuing_delay: load.queuing_delay,
                    busy_cores: Some(load.busy_cores),
                    work: Some(Work::by_class(load.work)),
                }
            }
            Self::Prompts(engine) => {
                let load = engine.load(now);
                let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
                Load {
                    observed: now,
                    in_progress: count(load.waiting + load.running),
                    queued: count(load.waiting),
                    queuing_delay: load.queuing_delay,
                    ..Load::default()
                }
            }
        }
    }

    /// What runs joblets, where that is what it is.
    pub(crate) fn joblets(&mut self) -> Option<&mut Emulator> {
        match self {
            Self::Joblets(emulator) => Some(emulator),
            Self::Prompts(_) => None,
        }
    }

    /// Core time in which cores were busy, from the beginning; a language model's host has no cores.
    pub(crate) fn busy_time(&mut self, now: Duration) -> Option<Duration> {
        self.joblets().map(|emulator| emulator.busy_time(now))
    }

    /// Joblets that wait for a core.
    pub(crate) fn stalled(&mut self, now: Duration) -> u32 {
        match self {
            Self::Joblets(emulator) => emulator.load(now).stalled.iter().sum(),
            Self::Prompts(_) => self.load(now).queued,
        }
    }

    /// How many tasks wait, by business class, as its page tells.
    pub(crate) fn queued_by_class(&mut self, now: Duration) -> Vec<u32> {
        match self {
            Self::Joblets(emulator) => emulator.load(now).queued.to_vec(),
            Self::Prompts(_) => vec![self.load(now).queued],
        }
    }

    /// How many tasks wait.
    pub(crate) fn queued(&mut self, now: Duration) -> u32 {
        match self {
            Self::Joblets(emulator) => emulator.queued(now),
            Self::Prompts(_) => self.load(now).queued,
        }
    }

    pub(crate) fn cache_changes(&self, since: u64, epoch: Option<u64>) -> CacheChanges {
        match self {
            Self::Joblets(emulator) => emulator.executor().cache().changes_since(since, epoch),
            Self::Prompts(engine) => engine.cache_changes(since, epoch),
        }
    }
}
