// SPDX-License-Identifier: Apache-2.0
//! Every course of events between VMs that want the lease: which of them keep streams, and whether anybody does.
//!
//! Time moves in parts of a term and never ends: instants are kept relative to a present that stands still. A VM's
//! tick has two steps, as others may write between its look at the lease and its own write.

use weir_explorer::{Model, Sight, explore};

use super::*;

const TERM: Duration = Duration::from_secs(1);
const NOW: Duration = Duration::from_secs(10_000);
/// What the holder is called whose VM is dead.
const DEAD: u64 = 0;
/// A clock that went back makes a lease look so much longer: one that is waited for, and one that is not believed.
const JUMPS: [Duration; 2] = [Duration::from_secs(100), Duration::from_secs(200)];
/// While it looks longer than any term the clock goes on by more at a time.
const LONG: Duration = Duration::from_secs(50);

/// VMs of these generations.
struct Vms {
    generations: &'static [u64],
    /// The steps of time in a term.
    parts: u32,
    /// Of each VM that is alive no more than half a term lies between a look at the lease and the end of the next
    /// tick, and the clock goes on evenly.
    in_bounds: bool,
}

/// The key of the lease in shared data. Each write gives it another number, so that a VM which has looked at it finds
/// out whether anybody wrote since.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Shared {
    exists: bool,
    lease: Option<Lease>,
    /// The owner has put weir-control's tables beside it.
    tables: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Vm {
    is_configured: bool,
    /// It has looked at the lease, and not done yet what follows.
    tick: Option<Tick>,
    streams: bool,
    /// Steps of time since it looked at the lease in the last tick that has ended.
    since: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Tick {
    step: Step,
    /// Another's lease is in force that is not to be taken away.
    is_anothers: bool,
    /// Somebody has written since.
    is_late: bool,
    /// Steps of time since the look.
    since: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Proxy {
    shared: Shared,
    vms: Vec<Vm>,
    /// A VM that had seen another's live lease kept its streams.
    disobeyed: bool,
}

#[derive(Clone, Copy, Debug)]
enum Action {
    Configure(usize),
    Look(usize),
    Write(usize),
    Hear(usize),
    Die(usize),
    Pass,
    GoBack(Duration),
}

impl Vms {
    fn holder(&self, vm: usize) -> Holder {
        Holder {
            vm: vm as u64 + 1,
            root: 1,
            generation: self.generations[vm],
        }
    }

    fn part(&self) -> Duration {
        TERM / self.parts
    }

    fn look(&self, proxy: &mut Proxy, vm: usize) {
        let (me, lease) = (self.holder(vm), proxy.shared.lease);
        let believed = NOW + self.part()..=NOW + LONGEST_TERM * 2;
        let is_anothers = lease.is_some_and(|lease| {
            lease.holder != me
                && lease.holder.generation >= me.generation
                && believed.contains(&lease.deadline)
        });
        proxy.vms[vm].tick = Some(Tick {
            step: step(lease, me, NOW, TERM),
            is_anothers,
            is_late: false,
            since: 0,
        });
    }

    fn write(&self, proxy: &mut Proxy, vm: usize) {
        let Some(tick) = proxy.vms[vm].tick.take() else {
            return;
        };
        let Proxy { shared, vms, .. } = proxy;
        let holds = tick.step.holds(|lease| {
            if !tick.is_late {
                shared.lease = Some(lease);
                for tick in vms.iter_mut().filter_map(|vm| vm.tick.as_mut()) {
                    tick.is_late = matches!(tick.step, Step::Write(_));
                }
            }
            !tick.is_late
        });
        proxy.disobeyed |= holds && tick.is_anothers;
        let vm = &mut proxy.vms[vm];
        (vm.streams, vm.since) = (holds, tick.since);
    }

    /// A VM ends without a word, and another begins in its place.
    fn die(&self, proxy: &mut Proxy, vm: usize) {
        proxy.vms[vm] = Vm::default();
        let of_it = |lease: &&mut Lease| lease.holder == self.holder(vm);
        if let Some(lease) = proxy.shared.lease.as_mut().filter(of_it) {
            lease.holder.vm = DEAD;
        }
    }

    fn may(&self, proxy: &Proxy, action: Action) -> bool {
        let vm = |vm: usize| &proxy.vms[vm];
        let in_time = || proxy.vms.iter().all(|vm| vm.since < self.parts / 2);
        let jumped = |lease: Lease| lease.deadline > NOW + TERM;
        match action {
            Action::Configure(it) => !vm(it).is_configured,
            Action::Look(it) => vm(it).is_configured && vm(it).tick.is_none(),
            Action::Write(it) => vm(it).tick.is_some(),
            Action::Hear(it) => vm(it).streams && !proxy.shared.tables,
            Action::Die(it) => vm(it).is_configured,
            Action::Pass => !self.in_bounds || in_time(),
            // Within a tick it is as if the tick were later.
            Action::GoBack(_) => {
                let between_ticks = proxy.vms.iter().all(|vm| vm.tick.is_none());
                !self.in_bounds && between_ticks && !proxy.shared.lease.is_some_and(jumped)
            }
        }
    }

    fn after(&self, proxy: &Proxy, action: Action) -> Proxy {
        let mut next = proxy.clone();
        match action {
            Action::Configure(it) => {
                // As `shared::create`: a key that is there stays as it is.
                next.shared.exists = true;
                next.vms[it].is_configured = true;
            }
            Action::Look(it) => self.look(&mut next, it),
            Action::Write(it) => self.write(&mut next, it),
            Action::Hear(_) => next.shared.tables = true,
            Action::Die(it) => self.die(&mut next, it),
            Action::Pass => {
                let is_long = |lease: Lease| lease.deadline > NOW + TERM;
                let passes = match next.shared.lease.is_some_and(is_long) {
                    true => LONG,
                    false => self.part(),
                };
                next.shift(|deadline| (deadline - passes).max(NOW));
                for vm in next
                    .vms
                    .iter_mut()
                    .filter(|vm| vm.is_configured && self.in_bounds)
                {
                    vm.since += 1;
                    vm.tick.iter_mut().for_each(|tick| tick.since += 1);
                }
            }
            Action::GoBack(jump) => next.shift(|deadline| deadline + jump),
        }
        next
    }
}

impl Proxy {
    /// Moves every deadline that is not over, also of leases that are about to be written.
    fn shift(&mut self, by: impl Fn(Duration) -> Duration) {
        let ticks = self.vms.iter_mut().filter_map(|vm| vm.tick.as_mut());
        let written = ticks.filter_map(|tick| match &mut tick.step {
            Step::Write(lease) => Some(lease),
            Step::Hold | Step::Wait => None,
        });
        let leases = written.chain(&mut self.shared.lease);
        for lease in leases.filter(|lease| lease.deadline > NOW) {
            lease.deadline = by(lease.deadline);
        }
    }

    fn streaming(&self) -> Vec<usize> {
        let vms = self.vms.iter().enumerate();
        let streaming = vms.filter(|(_, vm)| vm.streams);
        streaming.map(|(number, _)| number).collect()
    }
}

impl Model for Vms {
    type State = Proxy;
    type Action = Action;

    fn start(&self) -> Proxy {
        Proxy {
            shared: Shared::default(),
            vms: vec![Vm::default(); self.generations.len()],
            disobeyed: false,
        }
    }

    fn steps(&self, proxy: &Proxy) -> Vec<(Action, Proxy)> {
        let of_a_vm = [
            Action::Configure as fn(usize) -> Action,
            Action::Look,
            Action::Write,
            Action::Hear,
            Action::Die,
        ];
        let vms = 0..self.generations.len();
        let of_vms = vms.flat_map(|vm| of_a_vm.map(|action| action(vm)));
        let jumps = JUMPS.map(Action::GoBack);
        let all = of_vms.chain([Action::Pass]).chain(jumps);
        let possible = all.filter(|action| self.may(proxy, *action));
        possible
            .map(|action| (action, self.after(proxy, action)))
            .collect()
    }

    fn broken(&self, proxy: &Proxy) -> Option<String> {
        let streaming = proxy.streaming();
        if self.in_bounds && streaming.len() > 1 {
            return Some(format!("{streaming:?} keep streams"));
        }
        let why = "a VM that knew of another's lease kept its streams";
        proxy.disobeyed.then(|| why.to_owned())
    }

    fn calm(&self, proxy: &Proxy) -> Proxy {
        let mut next = proxy.clone();
        for vm in 0..next.vms.len() {
            for action in [
                Action::Configure(vm),
                Action::Write(vm),
                Action::Look(vm),
                Action::Write(vm),
                Action::Hear(vm),
            ] {
                if self.may(&next, action) {
                    next = self.after(&next, action);
                }
            }
        }
        self.after(&next, Action::Pass)
    }

    fn is_settled(&self, proxy: &Proxy) -> bool {
        let newest = self.generations.iter().max();
        let streaming = proxy.streaming();
        let owner = streaming.first().map(|vm| self.holder(*vm));
        let held = proxy.shared.lease.filter(|lease| lease.deadline > NOW);
        streaming.len() == 1
            && held.map(|lease| lease.holder) == owner
            && owner.map(|owner| owner.generation) == newest.copied()
            && proxy.shared.tables
    }

    fn sights(&self) -> Vec<Sight<Proxy>> {
        let mut sights: Vec<Sight<Proxy>> = vec![
            ("a dead VM's lease", |proxy| {
                let lease = proxy.shared.lease;
                lease.is_some_and(|lease| lease.holder.vm == DEAD && lease.deadline > NOW)
            }),
            ("a race that is lost", |proxy| {
                let mut ticks = proxy.vms.iter().filter_map(|vm| vm.tick);
                ticks.any(|tick| tick.is_late)
            }),
        ];
        if !self.in_bounds {
            sights.push(("two with streams", |proxy| proxy.streaming().len() > 1));
        }
        sights
    }
}

/// Explores, and says how much there was to see.
fn explored(vms: &Vms, patience: u32) {
    let began = std::time::Instant::now();
    let explored = explore(vms, patience as usize).unwrap_or_else(|broken| panic!("{broken:#?}"));
    println!("{explored:?} in {:?}", began.elapsed());
}

/// A dead VM's lease runs out after a term.
#[test]
fn vms_that_tick_in_time_never_keep_two_streams_and_nobody_is_long_without() {
    for (generations, parts) in [(&[1, 1][..], 4), (&[1, 1, 1], 2)] {
        let vms = Vms {
            generations,
            parts,
            in_bounds: true,
        };
        explored(&vms, parts + 2);
    }
}

/// However long VMs stand still, and wherever the clock goes: a VM that looks at the lease knows, and in two minutes
/// at most, which is what a lease may seem to last, the newest configuration has it.
#[test]
fn a_vm_that_was_paused_gives_up_its_streams_when_it_ticks_and_the_newest_configuration_gets_them()
{
    let longest = (LONGEST_TERM * 2).as_secs() / LONG.as_secs();
    for (generations, parts) in [(&[1, 2][..], 4), (&[1, 1, 2], 2)] {
        let vms = Vms {
            generations,
            parts,
            in_bounds: false,
        };
        explored(&vms, longest as u32 + parts + 2);
    }
}
