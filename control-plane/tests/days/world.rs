// SPDX-License-Identifier: Apache-2.0
//! Hosts, sidecars and weir-controls in virtual time, and the network between them.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{Rng, RngExt, SeedableRng};
use weir_filter::disposition::Flow;
use weir_filter::exchange::Exchange;
use weir_policy::{Level, Rank, user_priority};
use weir_tables::v1;

use crate::control::{CLUSTER, Control, Down, StreamId};
use crate::faults::{Fault, Going};
use crate::host::{self, CORES, Host, Job, RUN};
use crate::laws::{self, CLASSES, Laws};
use crate::request::Request;
use crate::sidecar::{Call, Link, Sidecar};

pub(crate) const STEP: Duration = Duration::from_millis(500);
/// Hours since 1970, for users' turns.
pub(crate) const HOUR: u64 = 500_000;
const HOSTS: usize = 6;
const SIDECARS: usize = 3;
const VMS: usize = 2;
const POLL_STEPS: u64 = 2;
/// Envoy waits no longer for a host.
const TIME_OUT: Duration = Duration::from_secs(10);
/// Envoy's response flags: no answer in time, not connected, connection lost.
const TIMED_OUT: u64 = 0x4;
const NOT_CONNECTED: u64 = 0x20;
const LOST: u64 = 0x40;
/// Of all that hosts can do, what is asked for in a phase. The first is a calm one.
const LOADS: [f64; 6] = [0.3, 0.3, 0.8, 1.5, 3.0, 6.0];
/// In low load all is admitted again after so long.
const OPEN_AFTER: Duration = Duration::from_secs(120);
/// And nobody is shed then.
const STAYS_OPEN: Duration = Duration::from_secs(20);

/// What happened.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Tally {
    sent: u64,
    pub(crate) shed: u64,
    /// Of the most important class: all, and those that were shed.
    top: u64,
    shed_of_the_top: u64,
    fell_back: u64,
    unanswered: u64,
    pub(crate) faults: BTreeMap<Fault, u64>,
    /// Ranks that the lowest level of the cluster has admitted.
    lowest: u16,
    /// Virtual seconds until all was admitted again.
    opened: u64,
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SIMULATED {self:?}")
    }
}

impl Tally {
    /// A run in which nothing happens proves nothing.
    pub(crate) fn assert_telling(&self) {
        assert!(self.sent > 0 && self.fell_back > 0, "{self}");
        assert!(self.unanswered > 0 && self.faults.len() > 1, "{self}");
        // No class is promised that none of it is shed: a level that is begun anew in overload, or whose tables come
        // late, falls further than it has to.
        let all = self.sent + self.shed;
        assert!(self.shed_of_the_top * all <= self.shed * self.top, "{self}");
    }
}

/// What is on its way between a sidecar and weir-control.
enum Packet {
    Open { method: String },
    Up(Vec<u8>),
    Cancel,
    Down(Down),
}

/// A stream as its sidecar's Envoy knows it.
struct Stream {
    vm: usize,
    life: u32,
    control: usize,
    /// Nothing overtakes: what was sent last comes then.
    last: Duration,
}

struct Sent {
    vm: (usize, usize, u32),
    host: usize,
    at: Duration,
    request: Request,
    exchange: Exchange<Link>,
}

pub(crate) struct World {
    steps: u64,
    pub(crate) rng: SmallRng,
    pub(crate) hosts: Vec<Host>,
    /// So many of them are in the cluster.
    configured: usize,
    pub(crate) sidecars: Vec<Sidecar>,
    pub(crate) controls: Vec<Control>,
    /// Who has the lock, as which leader; and who has not heard of it yet.
    lock: (usize, u64),
    unheard: Vec<(Duration, usize)>,
    net: BTreeMap<(Duration, u64), (StreamId, Packet)>,
    packets: u64,
    streams: BTreeMap<StreamId, Stream>,
    jobs: BTreeMap<Job, Sent>,
    next_job: Job,
    load: f64,
    pub(crate) time_of_day_ms: u64,
    pub(crate) going: Going,
    laws: Laws,
    pub(crate) tally: Tally,
}

impl World {
    pub(crate) fn new(seed: u64) -> Self {
        let replicas = 1 + (seed % 2) as usize;
        let control =
            |number| Control::new(number, 0, replicas > 1, host::config(HOSTS), Duration::ZERO);
        let mut world = Self {
            steps: 0,
            rng: SmallRng::seed_from_u64(seed),
            hosts: (0..HOSTS).map(|number| Host::new(number, seed)).collect(),
            configured: HOSTS,
            sidecars: (0..SIDECARS)
                .map(|number| Sidecar::new(number, VMS, seed))
                .collect(),
            controls: (0..replicas).map(control).collect(),
            lock: (0, 1),
            unheard: Vec::new(),
            net: BTreeMap::new(),
            packets: 0,
            streams: BTreeMap::new(),
            jobs: BTreeMap::new(),
            next_job: 0,
            load: LOADS[0],
            time_of_day_ms: 1 << 40,
            going: Going::default(),
            laws: Laws::default(),
            tally: Tally {
                lowest: Level::ALL.ranks(),
                ..Tally::default()
            },
        };
        world.unheard = (0..replicas)
            .map(|control| (Duration::ZERO, control))
            .collect();
        world
    }

    pub(crate) fn now(&self) -> Duration {
        STEP * u32::try_from(self.steps).expect("no run takes years")
    }

    /// Goes on for so long, with faults.
    pub(crate) fn run(&mut self, time: Duration) {
        let end = self.now() + time;
        while self.now() < end {
            // Phases of two minutes on average.
            if self.rng.random_bool(STEP.as_secs_f64() / 120.0) {
                self.load = *LOADS.choose(&mut self.rng).expect("there are some");
            }
            self.fail();
            self.step();
        }
    }

    /// Nothing fails any more and little is asked for: all is admitted again, and at last nothing is in flight.
    pub(crate) fn calm_down(&mut self) {
        self.mend();
        self.load = LOADS[0];
        let began = self.now();
        let (mut open_since, mut shed) = (began, self.tally.shed);
        while self.now() - open_since < STAYS_OPEN {
            self.step();
            if !self.is_open() || self.tally.shed > shed {
                (open_since, shed) = (self.now(), self.tally.shed);
            }
            let passed = open_since - began;
            assert!(passed <= OPEN_AFTER, "not all is admitted after {passed:?}");
        }
        self.tally.opened = (open_since - began).as_secs();
        self.load = 0.0;
        self.stay(2 * TIME_OUT);
        assert!(self.jobs.is_empty() && self.hosts.iter().all(|host| host.jobs() == 0));
        for sidecar in &self.sidecars {
            let left = sidecar
                .in_flight()
                .into_iter()
                .filter(|(_, count)| *count > 0);
            let left: Vec<_> = left.collect();
            assert!(left.is_empty(), "{} has {left:?} in flight", sidecar.name);
        }
    }

    fn stay(&mut self, time: Duration) {
        let until = self.now() + time;
        while self.now() < until {
            self.step();
        }
    }

    /// Whether every sidecar has a fresh table of the leader that admits everything.
    fn is_open(&self) -> bool {
        let leader = &self.controls[self.lock.0];
        let open = |host: &v1::Host| {
            host.admission_level
                .is_none_or(|level| level == u32::from(Level::ALL.ranks()))
        };
        leader.state.replica().role.leads()
            && self.sidecars.iter().all(|sidecar| {
                let table = sidecar.table();
                table.is_some_and(|(table, received)| {
                    table.epoch == leader.state.epoch()
                        && sidecar.now().saturating_sub(received) < Duration::from_secs(5)
                        && table.hosts.iter().all(open)
                })
            })
    }

    fn step(&mut self) {
        self.steps += 1;
        self.sidecars.iter().for_each(|sidecar| sidecar.pass(STEP));
        self.work();
        self.control();
        self.deliver();
        self.tick();
        self.ask();
        let now = self.now();
        for (number, sidecar) in self.sidecars.iter().enumerate() {
            self.laws.of_sidecar(number, sidecar);
        }
        for (number, control) in self.controls.iter().enumerate() {
            let knows_demand = self.going.unknown_demand <= now;
            self.laws.of_control(number, control, now, knows_demand);
            laws::counts_once(control, &self.sidecars);
        }
    }

    /// Hosts work, and Envoys give up what takes too long.
    fn work(&mut self) {
        let now = self.now();
        for host in 0..self.hosts.len() {
            for job in self.hosts[host].advance(now) {
                self.end(job, 200, 0);
            }
        }
        let late = self
            .jobs
            .iter()
            .filter(|(_, sent)| now - sent.at >= TIME_OUT);
        let late: Vec<Job> = late.map(|(job, _)| *job).collect();
        for job in late {
            self.hosts[self.jobs[&job].host].cancel(job, now);
            self.end(job, 504, TIMED_OUT);
        }
    }

    /// An exchange is over: by the host, or by Envoy with response flags.
    fn end(&mut self, job: Job, status: u32, flags: u64) {
        let Some(mut sent) = self.jobs.remove(&job) else {
            return;
        };
        let load = (flags == 0).then(|| self.hosts[sent.host].load());
        self.tally.unanswered += u64::from(flags != 0);
        sent.request.answer(status, load, flags);
        sent.exchange.on_response(&sent.request);
        sent.exchange.on_end(&sent.request);
    }

    /// weir-controls ask hosts, hear of the lock, and push.
    fn control(&mut self) {
        let now = self.now();
        let heard = self.unheard.extract_if(.., |(due, _)| *due <= now);
        for (_, control) in heard.collect::<Vec<_>>() {
            let random = self.rng.next_u64();
            self.controls[control].take_role(self.lock, random, now);
            self.end_reports(control);
        }
        let unix_ms = self.time_of_day_ms + now.as_millis() as u64;
        for number in 0..self.controls.len() {
            if self.controls[number].paused > now {
                continue;
            }
            let leader = self.controls[self.lock.0].leads();
            let control = &mut self.controls[number];
            if control.leads().is_some() {
                for (number, asked) in self.hosts.iter().enumerate() {
                    if (self.steps + number as u64).is_multiple_of(POLL_STEPS) {
                        control.poll(&asked.address, asked.answer(), now);
                    }
                }
            } else if let Some(leader) = leader {
                control.mirror(leader, now);
            }
            control.step(now, unix_ms);
            for (id, down) in control.push() {
                self.send(id, Packet::Down(down));
            }
            let level = lowest_level(&self.controls[number], now);
            self.tally.lowest = self.tally.lowest.min(level);
        }
    }

    fn end_reports(&mut self, control: usize) {
        for (id, down) in self.controls[control].end_reports() {
            self.send(id, Packet::Down(down));
        }
    }

    fn send(&mut self, id: StreamId, packet: Packet) {
        let slow = self.going.slow > self.now();
        let delay = self.rng.random_range(0..if slow { 5_000 } else { 100 });
        let Some(stream) = self.streams.get_mut(&id) else {
            return;
        };
        let now = STEP * self.steps as u32;
        stream.last = stream.last.max(now + Duration::from_millis(delay));
        self.packets += 1;
        self.net.insert((stream.last, self.packets), (id, packet));
    }

    fn deliver(&mut self) {
        let now = self.now();
        while let Some(first) = self.net.first_entry().filter(|first| first.key().0 <= now) {
            let (id, packet) = first.remove();
            let Some(stream) = self.streams.get(&id) else {
                continue;
            };
            let (control, vm, life) = (stream.control, stream.vm, stream.life);
            let stands_still = match packet {
                Packet::Down(_) => self.sidecars[id.0].vms[vm].paused,
                _ => self.controls[control].paused,
            };
            if stands_still > now {
                self.packets += 1;
                self.net.insert((stands_still, self.packets), (id, packet));
                continue;
            }
            match packet {
                Packet::Down(down) => {
                    self.arrive(id, (vm, life), down);
                    self.carry_of(id.0, vm);
                }
                up => self.hear(id, control, up),
            }
        }
    }

    /// A VM is told what a stream brings.
    fn arrive(&mut self, id: StreamId, (vm, life): (usize, u32), down: Down) {
        let repeats = self.going.repeats > self.now();
        let vm = &mut self.sidecars[id.0].vms[vm];
        if vm.life != life {
            return;
        }
        match down {
            Down::Message(message) => {
                vm.root.on_stream_message(id.1, &message);
                if repeats {
                    vm.root.on_stream_message(id.1, &message);
                }
            }
            Down::Close(status) => {
                self.streams.remove(&id);
                vm.root.on_stream_close(id.1, status);
            }
        }
    }

    fn hear(&mut self, id: StreamId, control: usize, packet: Packet) {
        let now = self.now();
        match packet {
            Packet::Open { method } => {
                for (id, down) in self.controls[control].open(id, &method) {
                    self.send(id, Packet::Down(down));
                }
            }
            Packet::Cancel => {
                self.controls[control].close(id);
                self.streams.remove(&id);
            }
            Packet::Up(message) if self.controls[control].has(id) => {
                let (report, answer) = self.controls[control].hear(id, &message);
                if let Some(report) = report {
                    let report = self.told(id.0, report);
                    let counts = self.controls[control].counts_at();
                    match counts.filter(|at| self.controls[*at].leads().is_some()) {
                        Some(at) => self.controls[at].take_report(report, now),
                        // A follower that cannot pass it on.
                        None => self.end_reports(control),
                    }
                }
                if let Some(answer) = answer {
                    self.send(id, Packet::Down(answer));
                }
            }
            Packet::Up(_) | Packet::Down(_) => {}
        }
    }

    /// A report as it comes, which may be nonsense.
    fn told(&self, sidecar: usize, mut report: v1::Report) -> v1::Report {
        let (until, liar) = self.going.lies;
        if until > self.now() && liar == sidecar {
            let records = report
                .records
                .iter_mut()
                .flat_map(|record| &mut record.clusters);
            for record in records {
                for shed in &mut record.shed {
                    shed.count = u64::MAX;
                }
                for offered in &mut record.offered {
                    offered.count = u64::MAX / 4;
                }
                for host in &mut record.hosts {
                    (host.in_flight, host.unconnected) = (u32::MAX, u64::MAX / 4);
                    host.admission_level = Some(0);
                }
            }
        }
        report
    }

    fn tick(&mut self) {
        let now = self.now();
        for number in 0..self.sidecars.len() {
            for vm in 0..VMS {
                if self.sidecars[number].vms[vm].paused <= now {
                    self.sidecars[number].tick(vm);
                    self.laws.ticked((number, vm));
                    self.carry_of(number, vm);
                }
            }
        }
    }

    /// Sends what a VM has just done with streams.
    fn carry_of(&mut self, sidecar: usize, vm: usize) {
        for call in self.sidecars[sidecar].take_calls() {
            match call {
                Call::Open { stream, method } => {
                    let opened = Stream {
                        vm,
                        life: self.sidecars[sidecar].vms[vm].life,
                        control: self.rng.random_range(0..self.controls.len()),
                        last: self.now(),
                    };
                    self.streams.insert((sidecar, stream), opened);
                    self.send((sidecar, stream), Packet::Open { method });
                }
                Call::Send { stream, message } => self.send((sidecar, stream), Packet::Up(message)),
                Call::Cancel { stream } => self.send((sidecar, stream), Packet::Cancel),
            }
        }
    }

    /// Requests come.
    fn ask(&mut self) {
        let rate = self.load * (HOSTS * CORES) as f64 / RUN.as_secs_f64();
        // So many chances a step: near enough to a crowd that comes one by one.
        for _ in 0..64 {
            if self.rng.random_bool(rate * STEP.as_secs_f64() / 64.0) {
                self.request();
            }
        }
    }

    fn request(&mut self) {
        let (number, vm) = (
            self.rng.random_range(0..SIDECARS),
            self.rng.random_range(0..VMS),
        );
        let drawn: f64 = self.rng.random_range(0.0..1.0);
        let mut sum = 0.0;
        let class = CLASSES.iter().find(|(_, _, part)| {
            sum += part;
            drawn < sum
        });
        let (class, priority, _) = *class.unwrap_or(&CLASSES[2]);
        let user = format!("user-{}", self.rng.random_range(0..1_000));
        let key = format!("key-{}", self.rng.random_range(0..5_000));
        let rank = Rank::new(class, user_priority(user.as_bytes(), HOUR));
        let now = self.now();
        self.tally.top += u64::from(class == CLASSES[0].0);
        let of_vm = &mut self.sidecars[number].vms[vm];
        if of_vm.paused > now {
            return;
        }
        self.sidecars[number].asked += 1;
        let of_vm = &mut self.sidecars[number].vms[vm];
        let (job, life) = (self.next_job, of_vm.life);
        self.next_job += 1;
        let request = Request::new(priority, &user, &key);
        let mut exchange = of_vm.root.exchange(job as u32);
        let flow = exchange.on_request(&request, true);
        let (is_sent, is_shed) = (flow == Flow::Send, matches!(flow, Flow::Respond(_)));
        flow.carry_out(&request);
        let (to, by) = (request.destination(), of_vm.table.as_ref());
        if is_shed {
            assert!(request.is_answered());
            self.laws.shed((number, vm), rank, &to, by);
            self.tally.shed += 1;
            self.tally.shed_of_the_top += u64::from(class == CLASSES[0].0);
            request.answer(429, None, 0);
            exchange.on_response(&request);
            exchange.on_end(&request);
            return;
        }
        let host = match is_sent {
            true => {
                self.laws.sent((number, vm), rank, &to, by);
                self.tally.sent += 1;
                self.hosts.iter().position(|host| host.address == to[0])
            }
            false => {
                assert!(to.is_empty(), "Envoy chooses");
                self.tally.fell_back += 1;
                Some(self.rng.random_range(0..self.configured))
            }
        };
        let host = host.expect("hosts of tables are configured ones");
        request.sent_to(&self.hosts[host].address);
        let sent = Sent {
            vm: (number, vm, life),
            host,
            at: now,
            request,
            exchange,
        };
        self.jobs.insert(job, sent);
        match self.hosts[host].cut_off {
            true => self.end(job, 503, NOT_CONNECTED),
            false => self.hosts[host].take(job, class, now),
        }
    }

    pub(crate) fn reset_host(&mut self, host: usize) {
        for job in self.hosts[host].reset() {
            self.end(job, 503, LOST);
        }
    }

    pub(crate) fn configure(&mut self, hosts: usize) {
        let now = self.now();
        self.configured = hosts;
        for control in &mut self.controls {
            control.configure(host::config(hosts), now);
        }
    }

    pub(crate) fn restart_control(&mut self, number: usize) {
        for (id, down) in self.controls[number].close_all() {
            self.send(id, Packet::Down(down));
        }
        // What followers pass on breaks as well.
        (0..self.controls.len()).for_each(|control| self.end_reports(control));
        let (now, life) = (self.now(), self.controls[number].life + 1);
        let of_several = self.controls.len() > 1;
        let config = host::config(self.configured);
        self.controls[number] = Control::new(number, life, of_several, config, now);
        if self.lock.0 == number {
            // It takes the lock anew.
            self.lock.1 += 1;
            let late = now + Duration::from_millis(self.rng.random_range(0..10_000));
            let others = (0..self.controls.len()).filter(|other| *other != number);
            self.unheard.extend(others.map(|other| (late, other)));
        }
        self.unheard.push((now, number));
    }

    /// Another replica has the lock. The one that had it goes on for a while.
    pub(crate) fn move_lock(&mut self) {
        let holder = (self.lock.0 + 1) % self.controls.len();
        if holder == self.lock.0 {
            return;
        }
        self.lock = (holder, self.lock.1 + 1);
        let late = self.now() + Duration::from_millis(self.rng.random_range(0..20_000));
        for control in 0..self.controls.len() {
            let heard = if control == holder { self.now() } else { late };
            self.unheard.push((heard, control));
        }
    }

    /// With all that is on its way.
    pub(crate) fn break_streams(&mut self, sidecar: usize) {
        let of_it = self.streams.iter().filter(|(id, _)| id.0 == sidecar);
        let of_it: Vec<_> = of_it
            .map(|(id, stream)| (*id, stream.vm, stream.life))
            .collect();
        self.net.retain(|_, (id, _)| id.0 != sidecar);
        for (id, vm, life) in of_it {
            for control in &mut self.controls {
                control.close(id);
            }
            self.arrive(id, (vm, life), Down::Close(14));
            self.carry_of(sidecar, vm);
        }
    }

    pub(crate) fn restart_vm(&mut self, sidecar: usize, vm: usize) {
        let life = self.sidecars[sidecar].vms[vm].life;
        let of_it = self
            .streams
            .iter()
            .filter(|(id, stream)| id.0 == sidecar && stream.vm == vm);
        let of_it: Vec<StreamId> = of_it.map(|(id, _)| *id).collect();
        for id in of_it {
            self.send(id, Packet::Cancel);
        }
        let now = self.now();
        let jobs = self
            .jobs
            .extract_if(.., |_, sent| sent.vm == (sidecar, vm, life));
        for (job, sent) in jobs.collect::<Vec<_>>() {
            self.hosts[sent.host].cancel(job, now);
        }
        self.sidecars[sidecar].restart(vm);
        self.laws.ticked((sidecar, vm));
    }
}

/// Ranks that the level of the whole cluster admits, as far as a weir-control leads.
fn lowest_level(control: &Control, now: Duration) -> u16 {
    let cluster = &control.state.clusters()[CLUSTER];
    let clock = control.clock(now);
    let levels = cluster
        .hosts
        .values()
        .map(|host| cluster.level_of(host, clock).ranks());
    levels.max().unwrap_or(Level::ALL.ranks())
}
