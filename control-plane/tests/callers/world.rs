// SPDX-License-Identifier: Apache-2.0
//! Hosts, sidecars and weir-control in virtual time, event by event, and the network between them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{Rng, RngExt, SeedableRng};
use weir_control::config::Config;
use weir_executor::JobId;
use weir_fleet::Update;

use crate::control::{self, CLUSTER, Control, Down, StreamId};
use crate::host::{self, CORES, Done, Host};
use crate::sidecar::{Call, Sidecar};
use crate::workload::Asked;

pub(crate) const HOSTS: usize = 14;
/// The filter's default.
const TICK: Duration = Duration::from_millis(50);
/// weir-control's default between two polls of a host.
const POLL: Duration = Duration::from_secs(1);
/// A message takes up to so many microseconds.
const NETWORK_US: u64 = 2_000;
const UNAVAILABLE: u32 = 14;

/// What is on its way between a sidecar and weir-control.
enum Packet {
    Open { method: String },
    Up(Vec<u8>),
    Cancel,
    Down(Down),
}

enum Event {
    Tick(usize),
    Publish,
    Poll(usize),
    /// A host has ended a joblet.
    Work(usize),
    /// The request of this number comes.
    Ask(usize),
    Arrive(StreamId, Packet),
}

pub(crate) struct World {
    now: Duration,
    events: u64,
    agenda: BTreeMap<(Duration, u64), Event>,
    rng: SmallRng,
    config: Arc<Config>,
    control: Control,
    hosts: Vec<Host>,
    sidecars: Vec<Sidecar>,
    /// When what was sent last through a stream comes: nothing overtakes.
    streams: BTreeMap<StreamId, Duration>,
    asked: Vec<Asked>,
    /// The request that a job is of.
    jobs: BTreeMap<(usize, JobId), usize>,
    /// By request.
    answers: Vec<u32>,
    /// By second.
    reports: BTreeMap<u64, u64>,
}

fn config() -> Arc<Config> {
    let host = |number| {
        let (address, millicores) = (host::address(number), 1_000 * CORES);
        format!("{{ address: \"{address}\", capacity_millicores: {millicores} }}")
    };
    let hosts: Vec<String> = (0..HOSTS).map(host).collect();
    control::config(&format!(
        "clusters:\n  {CLUSTER}:\n    hosts: [ {} ]\n    scrape: {{}}\n    cache: {{}}\n",
        hosts.join(", ")
    ))
}

impl World {
    pub(crate) fn new(seed: u64, sidecars: usize, asked: Vec<Asked>) -> Self {
        let mut rng = SmallRng::seed_from_u64(seed);
        let mut phase = |of: Duration| of.mul_f64(rng.random_range(0.0..1.0));
        let phases: Vec<Duration> = (0..sidecars).map(|_| phase(TICK)).collect();
        let polls: Vec<Duration> = (0..HOSTS).map(|_| phase(POLL)).collect();
        let sidecar = |(number, phase): (usize, &Duration)| Sidecar::new(number, seed, *phase);
        let config = config();
        let mut control = Control::new(0, 0, false, config.clone(), Duration::ZERO);
        control.take_role((0, 1), rng.next_u64(), Duration::ZERO);
        let mut world = Self {
            now: Duration::ZERO,
            events: 0,
            agenda: BTreeMap::new(),
            rng,
            config,
            control,
            hosts: (0..HOSTS).map(Host::new).collect(),
            sidecars: phases.iter().enumerate().map(sidecar).collect(),
            streams: BTreeMap::new(),
            answers: vec![0; asked.len()],
            asked,
            jobs: BTreeMap::new(),
            reports: BTreeMap::new(),
        };
        world.at(Duration::ZERO, Event::Publish);
        for (number, phase) in phases.into_iter().enumerate() {
            world.at(phase + TICK, Event::Tick(number));
        }
        for (number, phase) in polls.into_iter().enumerate() {
            world.at(phase, Event::Poll(number));
        }
        for request in 0..world.asked.len() {
            world.at(world.asked[request].at, Event::Ask(request));
        }
        world
    }

    fn at(&mut self, at: Duration, event: Event) {
        self.events += 1;
        self.agenda.insert((at, self.events), event);
    }

    pub(crate) fn run_until(&mut self, end: Duration) {
        while let Some(first) = self
            .agenda
            .first_entry()
            .filter(|first| first.key().0 <= end)
        {
            let ((at, _), event) = first.remove_entry();
            self.now = at;
            self.happen(event);
        }
        self.now = end;
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Tick(number) => {
                self.at(self.now + TICK, Event::Tick(number));
                self.sidecars[number].run_until(self.now);
                self.carry_of(number);
            }
            Event::Publish => {
                self.at(self.now + self.config.publish, Event::Publish);
                self.control.step(self.now, self.now.as_millis() as u64);
                let down = self.control.push();
                self.send_down(down);
            }
            Event::Poll(number) => {
                self.at(self.now + POLL, Event::Poll(number));
                self.poll(number);
            }
            Event::Work(host) => self.work(host),
            Event::Ask(request) => self.ask(request),
            Event::Arrive(id, packet) => self.arrive(id, packet),
        }
    }

    fn poll(&mut self, number: usize) {
        let host = &mut self.hosts[number];
        let page = host.page(self.now);
        self.control.poll(&host.address, Ok(page), self.now);
        let limits = self.config.clusters[CLUSTER].cache.as_ref();
        let changes = host.contents(limits.expect("caches are asked"));
        let update = Update::Cached {
            cluster: CLUSTER.into(),
            host: host.address.as_str().into(),
            drops: 0,
            result: Ok(changes),
        };
        self.control.fold(update, self.now);
    }

    fn ask(&mut self, request: usize) {
        let asked = &self.asked[request];
        let number = asked.source % self.sidecars.len();
        let sidecar = &mut self.sidecars[number];
        sidecar.run_until(self.now);
        let (address, stream) = sidecar.ask(&asked.key);
        let host = self.hosts.iter().position(|host| host.address == address);
        let host = host.unwrap_or_else(|| panic!("request {request} is sent to {address:?}"));
        let job = self.hosts[host].take(asked, self.now);
        sidecar.sent(host, job, stream);
        self.jobs.insert((host, job), request);
        self.carry_of(number);
        self.work(host);
    }

    /// A host's jobs that have ended are answered.
    fn work(&mut self, host: usize) {
        for (job, spent) in self.hosts[host].advance(self.now) {
            let request = self.jobs.remove(&(host, job)).expect("a job of a request");
            self.answers[request] += 1;
            let number = self.asked[request].source % self.sidecars.len();
            let load = self.hosts[host].load(&spent, self.now);
            let (sidecar, address) = (&mut self.sidecars[number], &self.hosts[host].address);
            sidecar.run_until(self.now);
            sidecar.answered((host, job), address, &load);
            self.carry_of(number);
        }
        if let Some(due) = self.hosts[host].next_due() {
            self.at(due, Event::Work(host));
        }
    }

    /// Sends what a sidecar has just done with streams.
    fn carry_of(&mut self, sidecar: usize) {
        for call in self.sidecars[sidecar].take_calls() {
            match call {
                Call::Open { stream, method } => {
                    self.streams.insert((sidecar, stream), self.now);
                    self.send((sidecar, stream), Packet::Open { method });
                }
                Call::Send { stream, message } => self.send((sidecar, stream), Packet::Up(message)),
                Call::Cancel { stream } => self.send((sidecar, stream), Packet::Cancel),
            }
        }
    }

    fn send(&mut self, id: StreamId, packet: Packet) {
        let delay = Duration::from_micros(self.rng.random_range(0..NETWORK_US));
        let Some(last) = self.streams.get_mut(&id) else {
            return;
        };
        *last = (*last).max(self.now + delay);
        let at = *last;
        self.at(at, Event::Arrive(id, packet));
    }

    fn send_down(&mut self, down: Vec<(StreamId, Down)>) {
        for (id, down) in down {
            self.send(id, Packet::Down(down));
        }
    }

    fn arrive(&mut self, id: StreamId, packet: Packet) {
        // A stream that was cut has lost what was on its way.
        if !self.streams.contains_key(&id) {
            return;
        }
        match packet {
            Packet::Open { method } => {
                let ended = self.control.open(id, &method);
                self.send_down(ended);
            }
            Packet::Cancel => {
                self.control.close(id);
                self.streams.remove(&id);
            }
            Packet::Up(message) => self.hear(id, &message),
            Packet::Down(down) => {
                let sidecar = &mut self.sidecars[id.0];
                sidecar.run_until(self.now);
                match down {
                    Down::Message(message) => sidecar.hear(id.1, &message),
                    Down::Close(status) => {
                        sidecar.close(id.1, status);
                        self.streams.remove(&id);
                    }
                }
                self.carry_of(id.0);
            }
        }
    }

    fn hear(&mut self, id: StreamId, message: &[u8]) {
        let (report, answer) = self.control.hear(id, message);
        if let Some(report) = report {
            *self.reports.entry(self.now.as_secs()).or_default() += 1;
            self.control.take_report(report, self.now);
        }
        let mut down = self.control.push_to(id);
        down.extend(answer.map(|answer| (id, answer)));
        self.send_down(down);
    }

    /// Every stream breaks, with what is on its way.
    pub(crate) fn cut(&mut self) {
        for (sidecar, stream) in std::mem::take(&mut self.streams).into_keys() {
            self.control.close((sidecar, stream));
            self.sidecars[sidecar].close(stream, UNAVAILABLE);
            self.carry_of(sidecar);
        }
    }

    /// By sidecar: the version of the whole table that it has.
    pub(crate) fn versions(&self) -> Vec<Option<u64>> {
        let version = |sidecar: &Sidecar| {
            let table = sidecar.table()?;
            (table.hosts.len() == HOSTS).then_some(table.version)
        };
        self.sidecars.iter().map(version).collect()
    }

    /// By host: what was done since this was last taken.
    pub(crate) fn take_done(&mut self) -> Vec<Done> {
        let hosts = self.hosts.iter_mut();
        hosts.map(|host| std::mem::take(&mut host.done)).collect()
    }

    /// The most reports that came in any second from this one on.
    pub(crate) fn most_reports(&self, from: Duration) -> u64 {
        let seconds = self.reports.range(from.as_secs()..);
        seconds.map(|(_, reports)| *reports).max().unwrap_or(0)
    }

    pub(crate) fn requests(&self) -> usize {
        self.asked.len()
    }

    /// Every request has one answer, and nobody thinks that anything is under way.
    pub(crate) fn assert_all_answered(&self) {
        let other = self.answers.iter().position(|answers| *answers != 1);
        assert_eq!(other, None, "a request without one answer");
        assert!(self.jobs.is_empty() && self.sidecars.iter().all(Sidecar::is_idle));
        for (number, sidecar) in self.sidecars.iter().enumerate() {
            for host in &self.hosts {
                let left = sidecar.in_flight(&host.address);
                assert_eq!(left, 0, "in flight from {number} to {}", host.address);
            }
        }
        let clock = self.control.clock(self.now);
        assert_eq!(self.control.state.ledger().in_flight(clock), 0);
        assert_eq!(self.control.state.ledger().proxies(), self.sidecars.len());
    }
}
