// SPDX-License-Identifier: Apache-2.0
//! Random sequences of calls, kills, restarts and ticks, in which any store of any thread may come before any
//! word that the reader reads; checked against what is true.

use proptest::prelude::*;

use super::world::{View, World};
use crate::lane::{Calls, Lane};
use crate::layout::{Event, FUNCTIONS, FunctionId, Geometry, Kind, OWNER, Owner, THREAD_STARTED};
use crate::reader::{Reader, Tick};

const THREADS: usize = 6;
/// Fewer than threads, so that some wait for others to end.
const LANES: u32 = 4;
const EVENTS: u32 = 16;

#[derive(Clone, Debug)]
enum Op {
    Enter {
        thread: usize,
        function: u8,
    },
    Leave {
        thread: usize,
        function: u8,
    },
    /// Many calls: more events than a lane keeps.
    Burst {
        thread: usize,
        function: u8,
        calls: u8,
    },
    /// The thread ends; another takes its place, with another id or the same.
    End {
        thread: usize,
        same_id: bool,
    },
    /// The same without a word, after some of its stores.
    Kill {
        thread: usize,
        stores: u8,
        same_id: bool,
    },
    /// Stores, of whichever threads.
    Step {
        stores: u8,
    },
    /// Something outside swaps two of a lane's events, once: what is swapped back after one of them was overwritten
    /// is an event at its place, which nobody could tell from a true one.
    Swap {
        lane: u32,
        a: u64,
        b: u64,
    },
    Tick,
    /// The governor looks whose lanes are those of dead threads, and frees them; killed after so many stores.
    Judge {
        stores: u8,
    },
    /// The governor is killed and started again.
    Restart,
    /// All threads finish what they are storing: then all must be exact.
    Settle,
}

fn op() -> impl Strategy<Value = Op> {
    let thread = 0..THREADS;
    let function = prop_oneof![4 => 0..3_u8, 1 => Just(15)];
    prop_oneof![
        8 => (thread.clone(), function.clone())
            .prop_map(|(thread, function)| Op::Enter { thread, function }),
        6 => (thread.clone(), function.clone())
            .prop_map(|(thread, function)| Op::Leave { thread, function }),
        2 => (thread.clone(), function, 1..25_u8)
            .prop_map(|(thread, function, calls)| Op::Burst { thread, function, calls }),
        2 => (thread.clone(), any::<bool>()).prop_map(|(thread, same_id)| Op::End { thread, same_id }),
        3 => (thread, 0..12_u8, any::<bool>())
            .prop_map(|(thread, stores, same_id)| Op::Kill { thread, stores, same_id }),
        6 => (0..40_u8).prop_map(|stores| Op::Step { stores }),
        1 => (0..LANES, 0..16_u64, 0..16_u64).prop_map(|(lane, a, b)| Op::Swap { lane, a, b }),
        8 => Just(Op::Tick),
        3 => prop_oneof![4 => Just(255), 1 => 0..40_u8].prop_map(|stores| Op::Judge { stores }),
        1 => Just(Op::Restart),
        1 => Just(Op::Settle),
    ]
}

/// A thread of a program.
struct Thread {
    owner: Owner,
    started: u64,
    calls: Calls,
    lane: Option<Lane>,
}

struct Model<'a> {
    world: &'a World,
    threads: Vec<Thread>,
    reader: Reader<&'a World>,
    /// Of each lane: how many events the reader has accounted for.
    accounted: Vec<u64>,
    swapped: [bool; LANES as usize],
    now_ns: u64,
    ids: u32,
}

impl<'a> Model<'a> {
    fn new(world: &'a World) -> Model<'a> {
        let mut model = Model {
            world,
            threads: Vec::new(),
            reader: Reader::over(world, "a model", world.geometry.file_bytes()).unwrap(),
            accounted: vec![0; LANES as usize],
            swapped: [false; LANES as usize],
            now_ns: 1,
            ids: 0,
        };
        for _ in 0..THREADS {
            let thread = model.start(None);
            model.threads.push(thread);
        }
        model
    }

    fn clock(&mut self) -> u64 {
        self.now_ns += 1;
        self.now_ns
    }

    fn start(&mut self, same: Option<Owner>) -> Thread {
        self.ids += 1;
        let new = Owner {
            pid: 100,
            tid: 100 + self.ids,
        };
        Thread {
            owner: same.unwrap_or(new),
            started: self.clock(),
            calls: Calls::default(),
            lane: None,
        }
    }

    fn view(&self, thread: usize) -> View<'a> {
        let world = self.world;
        View { world, thread }
    }

    fn finish(&self, thread: usize) {
        while self.world.step_of(thread) {}
    }

    /// As `ring/thread.rs` does it.
    fn enter(&mut self, number: usize, function: FunctionId) {
        let (words, time_ns) = (self.view(number), self.clock());
        let thread = &mut self.threads[number];
        if !thread.calls.enter(function) {
            return;
        }
        thread.calls.began(function, time_ns);
        if let Some(lane) = &mut thread.lane {
            assert!(
                lane.is_mine(&words),
                "the lane of a thread that lives is not freed"
            );
            let event = Event {
                time_ns,
                kind: Kind::Enter,
                function,
                core: Some(1),
            };
            return lane.record(&words, &event);
        }
        self.finish(number);
        let thread = &mut self.threads[number];
        thread.lane = Lane::claim(&words, self.world.geometry, thread.owner);
        if let Some(lane) = &mut thread.lane {
            lane.introduce(&words, thread.started, 7);
            thread.calls.tell(&words, lane, Some(1));
        }
    }

    fn leave(&mut self, number: usize, function: FunctionId) {
        let (words, time_ns) = (self.view(number), self.clock());
        let thread = &mut self.threads[number];
        if thread.calls.is_in(function)
            && thread.calls.leave(function)
            && let Some(lane) = &mut thread.lane
        {
            let event = Event {
                time_ns,
                kind: Kind::Leave,
                function,
                core: Some(1),
            };
            lane.record(&words, &event);
        }
    }

    fn replace(&mut self, number: usize, same_id: bool) {
        let same = same_id.then_some(self.threads[number].owner);
        self.threads[number] = self.start(same);
    }

    fn tick(&mut self) -> Tick {
        let world = self.world;
        world.mark();
        let written = |lane: usize| world.events.borrow()[lane].len() as u64;
        let before: Vec<u64> = (0..LANES as usize).map(written).collect();
        let (accounted, swapped) = (&mut self.accounted, self.swapped);
        let mut shown = [false; LANES as usize];
        self.now_ns += 1;
        let tick = self.reader.read(self.now_ns, |lane| {
            let index = lane.number as usize;
            shown[index] = true;
            let from = accounted[index];
            accounted[index] += lane.events.len() as u64 + lane.lost;

            let all = &world.events.borrow()[index];
            let mut truth = all[from as usize..accounted[index] as usize].iter();
            for event in lane.events {
                assert!(
                    truth.any(|true_one| true_one == event),
                    "in order, and as written"
                );
            }
            if (all.len() as u64) < from + u64::from(EVENTS) && !swapped[index] {
                assert_eq!(lane.lost, 0, "what was not overwritten is not lost");
            }
            for (function, since) in lane.since_ns.iter().enumerate() {
                assert!(world.has_run(lane.number, function, *since));
                assert!(lane.owner.is_some() || *since == 0);
            }
        });
        let tick = tick.unwrap();
        assert_eq!((tick.future, tick.jumped), (0, 0));
        for lane in 0..LANES as usize {
            let seen = self.accounted[lane];
            assert!(
                before[lane] <= seen && seen <= written(lane),
                "counts are exact"
            );
            assert!(shown[lane] || world.was_free(lane as u32));
        }
        tick
    }

    /// As the governor does it, which reads `/proc` instead of the model's threads.
    fn judge(&mut self, stores: u32) {
        let mut owners = Vec::new();
        let all = self.reader.read(self.now_ns, |lane| {
            self.accounted[lane.number as usize] += lane.events.len() as u64 + lane.lost;
            owners.extend(
                lane.owner
                    .map(|owner| (lane.number, owner, lane.thread_started)),
            );
        });
        all.unwrap();
        self.world.writes_left.set(stores);
        for (lane, owner, started) in owners {
            let is_it = |thread: &Thread| {
                thread.owner == owner && (started == 0 || thread.started == started)
            };
            if !self.threads.iter().any(is_it) && self.reader.free(lane, owner, started).is_err() {
                self.restart();
                break;
            }
        }
        self.world.writes_left.set(u32::MAX);
    }

    fn restart(&mut self) {
        let bytes = self.world.geometry.file_bytes();
        self.reader = Reader::over(self.world, "a model", bytes).unwrap();
        for (lane, accounted) in self.accounted.iter_mut().enumerate() {
            *accounted = self.reader.read[lane];
        }
    }

    /// Nothing is stored meanwhile: the reader reports what runs, and nothing else.
    fn settle(&mut self) {
        (0..THREADS).for_each(|thread| self.finish(thread));
        self.judge(u32::MAX);
        self.tick();
        let mut reported = Vec::new();
        let tick = self.reader.read(self.now_ns, |lane| {
            reported.extend(lane.running().map(|(f, since)| (lane.owner, f, since)));
        });
        let claimed = self
            .threads
            .iter()
            .filter(|thread| thread.lane.is_some())
            .count();
        // A thread that was killed before it said when it had started, whose id another has: it was in nothing.
        let nameless = (0..LANES).filter(|lane| self.is_nameless(*lane)).count();
        assert_eq!(tick.unwrap().claimed as usize, claimed + nameless);
        let mut running = Vec::new();
        for thread in self.threads.iter().filter(|thread| thread.lane.is_some()) {
            for function in (0..FUNCTIONS as u8).filter_map(FunctionId::new) {
                if thread.calls.is_in(function) {
                    let since = thread.calls.since(function);
                    running.push((Some(thread.owner), function, since));
                }
            }
        }
        reported.sort_by_key(|(owner, function, _)| (owner.map(Owner::word), *function));
        running.sort_by_key(|(owner, function, _)| (owner.map(Owner::word), *function));
        assert_eq!(reported, running);
    }

    fn is_nameless(&self, lane: u32) -> bool {
        let head = self.world.geometry.head(lane);
        self.world.word(head + OWNER) != 0 && self.world.word(head + THREAD_STARTED) == 0
    }

    fn apply(&mut self, op: Op) {
        let number = |function| FunctionId::new(function).unwrap();
        match op {
            Op::Enter { thread, function } => self.enter(thread, number(function)),
            Op::Leave { thread, function } => self.leave(thread, number(function)),
            Op::Burst {
                thread,
                function,
                calls,
            } => {
                for _ in 0..calls {
                    self.enter(thread, number(function));
                    self.leave(thread, number(function));
                }
            }
            Op::End { thread, same_id } => {
                if let Some(lane) = self.threads[thread].lane.take() {
                    lane.release(&self.view(thread));
                }
                // Its place is taken when it has ended.
                self.finish(thread);
                self.replace(thread, same_id);
            }
            Op::Kill {
                thread,
                stores,
                same_id,
            } => {
                for _ in 0..stores {
                    self.world.step_of(thread);
                }
                self.world.pending.borrow_mut()[thread].clear();
                self.replace(thread, same_id);
            }
            Op::Step { stores } => {
                for _ in 0..stores {
                    self.world.step();
                }
            }
            Op::Swap { lane, .. } if self.swapped[lane as usize] => {}
            Op::Swap { lane, a, b } => {
                (0..THREADS).for_each(|thread| self.finish(thread));
                let geometry = self.world.geometry;
                for word in [0, 8] {
                    let at = |number| geometry.event(lane, number) + word;
                    let (first, second) = (self.world.word(at(a)), self.world.word(at(b)));
                    self.world.put(at(a), second);
                    self.world.put(at(b), first);
                }
                self.swapped[lane as usize] = true;
            }
            Op::Tick => drop(self.tick()),
            Op::Judge { stores: 255 } => self.judge(u32::MAX),
            Op::Judge { stores } => self.judge(stores.into()),
            Op::Restart => self.restart(),
            Op::Settle => self.settle(),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if weir_needs::is_nightly() { 10_000 } else { 2_000 }))]

    #[test]
    fn no_function_is_stuck_and_no_event_is_lost_unseen(
        ops in proptest::collection::vec(op(), 1..60),
        seed: u64,
        haste in prop_oneof![Just(0_u8), 1..64_u8, Just(255)],
        shuffled: bool,
    ) {
        let mut world = World::new(Geometry::new(LANES, EVENTS).unwrap(), THREADS, seed);
        world.haste = haste;
        world.shuffled = shuffled;
        let mut model = Model::new(&world);
        for op in ops {
            model.apply(op);
        }
        model.settle();
    }
}
