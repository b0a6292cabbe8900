// SPDX-License-Identifier: Apache-2.0
//! Whatever happens to producers, to their events and to the governor: in the end no core is left fast.

use std::time::Duration;

use proptest::prelude::*;
use weir_events::layout::{Event, FunctionId, Kind, WRITTEN};
use weir_governor::sensed::Nanos;

use crate::producer::{Governed, Producer, start};

const THREADS: usize = 4;

/// What may happen. Threads are those of the test, each with a lane and a core of its own.
#[derive(Clone, Debug)]
enum Step {
    Tick(u64),
    Enter(usize, u8),
    Leave(usize, u8),
    /// The thread ends as it should.
    Release(usize),
    /// It is killed, and says nothing more.
    Kill(usize),
    /// Its number goes to another thread.
    Reuse(usize),
    /// More than its lane holds.
    Flood(usize, u8),
    /// The events that it has written are swapped.
    Reorder(usize),
    /// The count of its events is changed.
    Count(usize, u64),
    /// It enters at a time to come.
    Future(usize, u8),
    Migrate(usize, u16),
    /// The governor is killed, and another started.
    Restart,
    Truncate(u64),
    Remove,
}

fn step() -> impl Strategy<Value = Step> {
    let thread = 0..THREADS;
    let call = || (0..THREADS, 0u8..3);
    prop_oneof![
        4 => (1u64..600).prop_map(Step::Tick),
        6 => call().prop_map(|(thread, function)| Step::Enter(thread, function)),
        4 => call().prop_map(|(thread, function)| Step::Leave(thread, function)),
        1 => thread.clone().prop_map(Step::Release),
        2 => thread.clone().prop_map(Step::Kill),
        1 => thread.clone().prop_map(Step::Reuse),
        1 => call().prop_map(|(thread, function)| Step::Flood(thread, function)),
        1 => thread.clone().prop_map(Step::Reorder),
        1 => (thread.clone(), any::<u64>()).prop_map(|(thread, n)| Step::Count(thread, n)),
        1 => call().prop_map(|(thread, function)| Step::Future(thread, function)),
        1 => (thread, 0u16..6).prop_map(|(thread, core)| Step::Migrate(thread, core)),
        1 => Just(Step::Restart),
        1 => (0u64..10_000).prop_map(Step::Truncate),
        1 => Just(Step::Remove),
    ]
}

/// The node and, as the model, which functions each thread that lives is in.
struct World {
    /// None only while it is restarted.
    node: Option<Governed>,
    threads: Vec<Option<Thread>>,
    started: u64,
}

struct Thread {
    producer: Producer,
    running: [bool; 3],
    core: u16,
}

impl World {
    fn new() -> Self {
        Self {
            node: Some(Governed::new()),
            threads: (0..THREADS).map(|_| None).collect(),
            started: 100,
        }
    }

    fn node(&mut self) -> &mut Governed {
        self.node.as_mut().unwrap()
    }

    fn now(&self) -> Nanos {
        self.node.as_ref().unwrap().now
    }

    /// As a program would: it attaches if it is not, and again if the file is another.
    fn thread(&mut self, index: usize) -> Option<&mut Thread> {
        if self.threads[index].is_none() {
            self.started += 1;
            let started = self.started;
            let node = self.node.as_mut().unwrap();
            // Nobody takes a lane that is not free.
            if !Producer::is_free(&node.kernel, index as u32) {
                return None;
            }
            let core = index as u16;
            node.kernel.thread(index as u32, started, core.into());
            let producer = Producer::claim(&node.kernel, index as u32, index as u32, started);
            self.threads[index] = Some(Thread {
                producer,
                running: [false; 3],
                core,
            });
        }
        self.threads[index].as_mut()
    }

    fn event(&mut self, index: usize, function: u8, kind: Kind, at: Nanos) {
        let Some(thread) = self.thread(index) else {
            return;
        };
        let core = Some(thread.core);
        match kind {
            Kind::Enter => thread.producer.enter(function, at, core),
            Kind::Leave => thread.producer.leave(function, at, core),
        }
        thread.running[usize::from(function)] = kind == Kind::Enter;
    }

    fn kill(&mut self, index: usize) {
        self.threads[index] = None;
        self.node().kernel.dies(index as u32);
    }

    fn take(&mut self, step: Step) {
        let now = self.now();
        match step {
            Step::Tick(millis) => {
                self.node().after(millis);
            }
            Step::Enter(thread, function) => self.event(thread, function, Kind::Enter, now),
            Step::Leave(thread, function) => self.event(thread, function, Kind::Leave, now),
            Step::Future(thread, function) => {
                let later = Nanos(now.0 + 86_400_000_000_000);
                self.event(thread, function, Kind::Enter, later);
            }
            Step::Release(index) => {
                if let Some(thread) = self.threads[index].take() {
                    thread.producer.release();
                }
                self.kill(index);
            }
            Step::Kill(index) => self.kill(index),
            Step::Reuse(index) => {
                self.threads[index] = None;
                self.started += 1;
                let started = self.started;
                self.node().kernel.thread(index as u32, started, 0);
            }
            Step::Flood(index, function) => {
                for _ in 0..40 {
                    self.event(index, function, Kind::Enter, now);
                    self.event(index, function, Kind::Leave, now);
                }
            }
            Step::Reorder(index) => {
                if let Some(thread) = self.thread(index) {
                    thread.producer.swap_last_events();
                }
            }
            Step::Count(index, count) => {
                if let Some(thread) = self.thread(index) {
                    thread.producer.store(WRITTEN, count);
                    thread.producer.written = count;
                }
            }
            Step::Migrate(index, core) => {
                if let Some(thread) = self.threads[index].as_mut() {
                    thread.core = core;
                    let started = thread.producer.started;
                    self.node()
                        .kernel
                        .thread(index as u32, started, core.into());
                }
            }
            Step::Restart => {
                let Governed {
                    kernel,
                    governor,
                    now,
                } = self.node.take().unwrap();
                drop(governor);
                let governor = start(&kernel);
                self.node = Some(Governed {
                    kernel,
                    governor,
                    now,
                });
            }
            Step::Truncate(bytes) => {
                let ring = self.node().kernel.ring();
                if let Ok(file) = std::fs::File::options().write(true).open(ring) {
                    file.set_len(bytes).unwrap();
                    self.attach_anew();
                }
            }
            Step::Remove => {
                let _ = std::fs::remove_file(self.node().kernel.ring());
                self.attach_anew();
            }
        }
    }

    /// Whoever wrote to the file that was there is heard no more.
    fn attach_anew(&mut self) {
        for index in 0..THREADS {
            self.kill(index);
        }
        self.node().pass(Duration::from_millis(1100));
    }

    /// All that run come to their end, or to a bad one, and some time passes.
    fn end(&mut self, kill: bool) -> Vec<String> {
        for index in 0..THREADS {
            if kill {
                self.kill(index);
            } else if let Some(mut thread) = self.threads[index].take() {
                let now = self.now();
                for function in 0..3 {
                    if thread.running[usize::from(function)] {
                        thread.producer.leave(function, now, Some(thread.core));
                    }
                }
            }
        }
        // Longer than any question to the kernel is put off.
        self.node().pass(Duration::from_secs(5))
    }
}

impl Producer {
    fn swap_last_events(&self) {
        let last = self.written.saturating_sub(1);
        let event = Event {
            time_ns: 1,
            kind: Kind::Enter,
            function: FunctionId::new(1).unwrap(),
            core: None,
        };
        // A number that is not the slot's is never believed; one that is, says what does not count.
        self.put(last, event.encode(last));
        self.put(last.wrapping_add(1), event.encode(last));
    }
}

/// Each takes some hundredths of a second; `cargo xtask test --long` has ten thousand.
fn cases() -> u32 {
    let asked = std::env::var("WEIR_SEQUENCES").ok();
    asked.and_then(|cases| cases.parse().ok()).unwrap_or(64)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]
    #[test]
    fn no_core_is_left_fast(steps in prop::collection::vec(step(), 1..40), kill in any::<bool>()) {
        let mut world = World::new();
        for step in steps {
            world.take(step);
        }
        let speeds = world.end(kill);
        prop_assert_eq!(speeds, ["1000000"; 4]);
        let Governed { kernel, governor, .. } = world.node.take().unwrap();
        drop(governor);
        for policy in 0..4 {
            prop_assert!(kernel.is_as_found(policy));
        }
        prop_assert!(kernel.ring().exists());
    }
}
