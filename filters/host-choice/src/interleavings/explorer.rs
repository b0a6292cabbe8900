// SPDX-License-Identifier: Apache-2.0
//! All orders of a scenario, depth first. A state that another order has come to is not followed any further.

use std::collections::hash_map::DefaultHasher;
use std::collections::{HashMap, HashSet};
use std::hash::{Hash, Hasher};
use std::rc::Rc;
use std::time::Duration;

use super::calls::{Call, Watched};
use super::proxy::{Event, Scenario};
use super::vm::{Next, Resting, Vm};

/// Makes every order, and panics at the first that breaks a rule.
pub(super) fn explore(scenario: &Scenario) {
    let mut explorer = Explorer {
        scenario,
        seen: HashSet::new(),
        played: HashMap::new(),
        ends: 0,
    };
    let begun = explorer.begun();
    explorer.visit(&begun);
    assert!(explorer.ends > 1, "nothing happened at once");
}

#[derive(Clone)]
struct State {
    data: Watched,
    vms: Vec<Running>,
    /// Who has called what so far.
    calls: Vec<(usize, Rc<Call>)>,
}

#[derive(Clone)]
struct Running {
    vm: Vm,
    next: Next,
    /// Of what it has heard since all began at once.
    digest: u64,
}

struct Explorer<'a> {
    scenario: &'a Scenario,
    seen: HashSet<u64>,
    /// What a VM does next, by its number and the digest of what it has heard.
    played: HashMap<(usize, u64), Next>,
    ends: usize,
}

impl Explorer<'_> {
    /// The state in which all begins to happen at once.
    fn begun(&self) -> State {
        let scenario = self.scenario;
        let of_number = |number| Vm {
            number,
            events: Vec::new(),
            heard: Vec::new(),
        };
        let mut vms: Vec<_> = (0..scenario.at_once.len()).map(of_number).collect();
        let mut data = Watched {
            now: Duration::from_secs(100),
            ..Default::default()
        };
        for (vm, event) in scenario.before_in_order() {
            happens(&mut vms[vm], event, &mut data);
        }
        data.now += scenario.pause;
        let run = |mut vm: Vm| {
            // No two of them read one time.
            let now = data.now + Duration::from_nanos(vm.number as u64);
            let events = scenario.at_once[vm.number].iter();
            vm.events.extend(events.map(|event| (now, *event)));
            let (next, digest) = (vm.next(), 0);
            Running { vm, next, digest }
        };
        let vms = vms.into_iter().map(run).collect();
        let calls = Vec::new();
        State { data, vms, calls }
    }

    fn visit(&mut self, state: &State) {
        if !self.seen.insert(state.digest()) {
            return;
        }
        let calls = |running: &Running| match &running.next {
            Next::Call(call) => Some((running.vm.number, Rc::clone(call))),
            Next::Rest => None,
        };
        let calls: Vec<_> = state.vms.iter().filter_map(calls).collect();
        if calls.is_empty() {
            self.ends += 1;
            self.check_end(state);
        }
        for (vm, call) in calls {
            let after = self.after(state, vm, call);
            if let Some((vm, before, after)) = after.data.taken_away {
                let calls = state.told();
                panic!("VM {vm} takes {before:?} away for {after:?} after\n{calls}");
            }
            self.visit(&after);
        }
    }

    /// One VM makes its call, and runs up to its next one.
    fn after(&mut self, state: &State, vm: usize, call: Rc<Call>) -> State {
        let mut after = state.clone();
        let answer = after.data.answer(vm, &call);
        let running = &mut after.vms[vm];
        let mut digest = DefaultHasher::new();
        (running.digest, &answer).hash(&mut digest);
        running.digest = digest.finish();
        running.vm.heard.push(Rc::new(answer));
        let played = self.played.entry((vm, running.digest));
        running.next = played.or_insert_with(|| running.vm.next()).clone();
        after.calls.push((vm, call));
        after
    }

    /// Time passes, all tick, and weir-control sends its newest table where it does not take it to be.
    fn check_end(&self, state: &State) {
        let mut data = state.data.clone();
        let vms = state.vms.iter().map(|running| running.vm.clone());
        let mut vms: Vec<_> = vms
            .filter(|vm| self.scenario.lives(vm.number))
            .map(|vm| (vm, Resting::default()))
            .collect();
        let news = Event::Receive(self.scenario.newest);
        for _ in 0..3 {
            for (vm, resting) in &mut vms {
                data.now += Duration::from_millis(50);
                *resting = happens(vm, Event::Tick, &mut data);
                let known = resting.stream;
                if known.is_some_and(|known| known != Some(self.scenario.newest)) {
                    *resting = happens(vm, news, &mut data);
                }
            }
        }
        let calls = state.told();
        let keepers = vms.iter().filter(|(_, vm)| vm.stream.is_some());
        assert_eq!(keepers.count(), 1, "streams of tables after\n{calls}");
        for (vm, resting) in vms {
            let newest = Some(self.scenario.newest);
            let number = vm.number;
            assert_eq!(resting.version, newest, "at VM {number} after\n{calls}");
        }
    }
}

/// Something happens to a VM a millisecond later, and nothing to the others.
fn happens(vm: &mut Vm, event: Event, data: &mut Watched) -> Resting {
    data.now += Duration::from_millis(1);
    vm.events.push((data.now, event));
    vm.go_on(data)
}

impl State {
    /// What may happen from here on depends on this alone.
    fn digest(&self) -> u64 {
        let mut digest = DefaultHasher::new();
        self.data.hash(&mut digest);
        for running in &self.vms {
            running.digest.hash(&mut digest);
        }
        digest.finish()
    }

    /// The order that has led here, a call a line.
    fn told(&self) -> String {
        let told = self.calls.iter().map(|(vm, call)| match &**call {
            Call::Get { key } => format!("{vm} gets {key}"),
            Call::Set { key, cas, .. } => format!("{vm} sets {key}, {cas:?}"),
        });
        told.collect::<Vec<_>>().join("\n")
    }
}
