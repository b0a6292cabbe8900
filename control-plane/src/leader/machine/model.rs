// SPDX-License-Identifier: Apache-2.0
//! Every course of events between replicas, the lock's server and a sidecar, with so many faults: whose tables are
//! taken, and whether somebody leads in the end. [`Detail`] says what of it is looked at step by step, [`Promise`] when
//! the server frees the lock.
//!
//! ```text
//!  Machine ── Wish ──> asked ──> done at server ──> answered ──┐     each arrow: later, or lost
//!     ^  └──────────── key read at server ──> read ────────────┤
//!     └────────────────────── Event ───────────────────────────┘
//!  leader ── table ──> follower (Mirror::take) ──> sidecar (stream::check)
//! ```
//! Nothing has a time here. A replica that is paused is one that takes no step while the others do. Consul may
//! end any session at any moment, which is all that a clock's skew, a pause beyond the session's time or a follower
//! that deposes can bring about. A Lease runs out after its holder has stopped, if that one's process lives: who wakes
//! from a pause learns that first.

use std::collections::BTreeMap;
use std::time::Duration;

use envoy_types::pb::envoy::service::discovery::v3 as envoys;
use prost::Message;
use weir_explorer::{Model, Sight, explore};
use weir_filter::index::{Index, Kind, Says};
use weir_filter::stream;
use weir_tables::discovery::{Any, DeltaDiscoveryResponse, Resource};
use weir_tables::{HOST_TABLE_TYPE, Meta, v1};

use super::*;
use crate::follow::Mirror;

const CLUSTER: &str = "rules";
const STALE_AFTER: Duration = Duration::from_secs(5);
/// When the sidecar is asked whether it takes a table.
const NOW: Duration = Duration::from_secs(100);

/// Replicas of one group.
struct Group {
    replicas: usize,
    faults: u8,
    detail: Detail,
    promise: Promise,
    /// A follower may free a Lease while its holder lives, as one behind a firewall that refuses connections does.
    deposes: bool,
    /// Consul may lose all that it knows, or a Lease be deleted. Its lock counts from 1 again then, so that for as long as the old leader has
    /// not heard of it two may lead with one index.
    forgets: bool,
}

/// When the server frees what a replica holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Promise {
    /// At any moment, as it ends sessions.
    #[default]
    Session,
    /// When it has not been renewed for its duration, and who took it stops before.
    Lease,
}

/// All of it at once would be tens of millions of states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Detail {
    /// Questions to Consul and its answers, each of which can be late or lost. There are no tables.
    Questions,
    /// Tables on their way to a follower and to the sidecar. What a replica asks Consul is answered at once, or late,
    /// as the replica asks late.
    Tables,
}

/// What is lost, ended or begun anew.
#[derive(Clone, Copy, Debug)]
enum Action {
    /// Consul does what it was asked for.
    Do(usize),
    /// Its answer comes.
    Answer(usize),
    /// Consul says what is in the key.
    Read(usize),
    /// That comes.
    Hear(usize),
    /// The replica asks for something.
    Ask(usize),
    Renew(usize),
    /// It asks for something, or for the key, and has the answer at once.
    Turn(usize),
    Look(usize),
    /// It learns at once that its session is over.
    Learn(usize),
    /// The replica sends the table that it has. It may come much later.
    Send(usize),
    Arrive(usize),
    /// A follower takes over what the leader has.
    Follow(usize),
    /// From here on they are faults. A question or its answer is lost; of the key, also as Consul says that the replica
    /// may not.
    Lose(usize),
    LoseReading(usize, bool),
    /// Consul has been silent for longer than one waits.
    Silence(usize),
    /// The process is killed and begins anew.
    Restart(usize),
    /// The lock is free: Consul has ended its session, or the Lease has run out.
    Expire,
    /// A Lease was not renewed in time, and nobody has taken it yet.
    Lapse(usize),
    /// A follower frees the Lease of a leader that lives.
    Depose,
    /// Consul begins anew with nothing.
    Forget,
    /// The sidecar's table gets too old.
    Age,
}

impl Action {
    fn is_fault(&self) -> bool {
        matches!(
            self,
            Self::Lose(_)
                | Self::LoseReading(..)
                | Self::Silence(_)
                | Self::Restart(_)
                | Self::Expire
                | Self::Lapse(_)
                | Self::Depose
                | Self::Forget
                | Self::Age
        )
    }
}

/// As far as locks go.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Server {
    promise: Promise,
    /// Whose.
    sessions: BTreeMap<u8, usize>,
    opened: u8,
    index: u64,
    holder: Option<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Replica {
    machine: Machine,
    life: u64,
    /// What it has asked for, and the answer on its way.
    doing: Option<(Wish, Option<Event>)>,
    /// The key as the server has said it, on its way.
    reading: Option<Key>,
    /// What it has written of a Lease has not run out by its own clock.
    claimed: bool,
    /// The same of its session before.
    former: bool,
    /// What it has of the leader that it follows.
    mirrored: Option<Table>,
    /// A table on its way to the sidecar.
    sent: Option<Table>,
}

/// Of which epoch.
type Table = u64;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct World {
    server: Server,
    replicas: Vec<Replica>,
    /// The sidecar's table, and whether it is fresh.
    taken: Option<(Table, bool)>,
    /// The sidecar went from a fresh table back to one of an older leader.
    went_back: bool,
    faults: u8,
}

fn address(replica: usize) -> String {
    format!("10.0.0.{replica}:1")
}

fn number(session: &str) -> Option<u8> {
    session.strip_prefix('s')?.parse().ok()
}

fn meta(epoch: Table) -> Meta {
    Meta { epoch, version: 1 }
}

fn table(epoch: Table) -> Vec<u8> {
    let table = v1::HostTable {
        cluster: CLUSTER.to_owned(),
        epoch,
        version: 1,
        policy: Some(v1::Policy {
            overload: v1::Overload::None.into(),
            selection: v1::Selection::Dynamic.into(),
            ..Default::default()
        }),
        ..Default::default()
    };
    table.encode_to_vec()
}

/// What the sidecar makes of a table: the filter's own check.
fn takes(taken: Option<(Table, bool)>, offered: Table) -> bool {
    let mut index = Index::default();
    if let Some((epoch, is_fresh)) = taken {
        let says = Says {
            stale_after: STALE_AFTER,
            ..Says::default()
        };
        let age = if is_fresh { 1 } else { 2 } * STALE_AFTER;
        index.insert(Kind::Table, CLUSTER, meta(epoch), says, NOW - age);
    }
    let any = Any {
        type_url: HOST_TABLE_TYPE.to_owned(),
        value: table(offered),
    };
    let response = DeltaDiscoveryResponse {
        resources: vec![Resource {
            name: CLUSTER.to_owned(),
            resource: Some(any),
            ..Default::default()
        }],
        ..Default::default()
    };
    let update = stream::check(&response, Kind::Table, &index, usize::MAX, false, NOW);
    !update.accepted.is_empty()
}

/// What a follower has when the leader of this index pushes a table: the mirror's own rule.
fn mirrored(has: Option<Table>, offered: Table, index: u64) -> Option<Table> {
    let response = |epoch| envoys::DeltaDiscoveryResponse {
        type_url: HOST_TABLE_TYPE.to_owned(),
        resources: vec![envoys::Resource {
            name: CLUSTER.to_owned(),
            version: meta(epoch).to_string(),
            ..Default::default()
        }],
        ..Default::default()
    };
    let mut mirror = Mirror::default();
    if let Some(has) = has {
        mirror.take(&response(has), 0);
    }
    mirror.take(&response(offered), index);
    let versions = mirror.versions(HOST_TABLE_TYPE);
    let version: Meta = versions.get(CLUSTER)?.parse().ok()?;
    Some(version.epoch)
}

impl Server {
    fn key(&self) -> Key {
        let Some(session) = self.holder else {
            return Key::Free;
        };
        let replica = self.sessions.get(&session).copied().unwrap_or_default();
        Key::Held(Holder {
            name: "n".to_owned(),
            address: address(replica),
            index: self.index,
            session: format!("s{session}"),
        })
    }

    fn end(&mut self, session: u8) {
        // That of a Lease is a name alone.
        if self.promise == Promise::Session {
            self.sessions.remove(&session);
        }
        self.holder.take_if(|holder| *holder == session);
    }

    /// Whether the session cannot hold the lock any more, or does not.
    fn is_over(&self, session: u8) -> bool {
        match self.promise {
            Promise::Session => !self.sessions.contains_key(&session),
            Promise::Lease => self.holder != Some(session),
        }
    }

    fn does(&mut self, replica: usize, wish: &Wish, session: Option<u8>) -> Event {
        let alive = session.filter(|session| self.sessions.contains_key(session));
        match wish {
            Wish::Open => {
                self.opened += 1;
                self.sessions.insert(self.opened, replica);
                Event::Opened(format!("s{}", self.opened))
            }
            Wish::Acquire => {
                // A Lease of its own that has run out by its own clock is taken anew.
                let is_own = self.promise == Promise::Lease && self.holder == alive;
                let may = (self.holder.is_none() || is_own) && alive.is_some();
                if may {
                    (self.index, self.holder) = (self.index + 1, alive);
                }
                Event::Answered(may)
            }
            Wish::Bury(session) => {
                number(session).into_iter().for_each(|it| self.end(it));
                Event::Buried
            }
            Wish::Renew => match session.is_none_or(|it| self.is_over(it)) {
                false => Event::Renewed,
                true => Event::Expired,
            },
        }
    }
}

impl Replica {
    fn new(number: usize, life: u64) -> Self {
        Self {
            machine: Machine::new(address(number)),
            life,
            doing: None,
            reading: None,
            claimed: false,
            former: false,
            mirrored: None,
            sent: None,
        }
    }

    /// Takes in an event as `Candidate` does.
    fn on(&mut self, event: Event) {
        if event.outdates_reading() {
            self.reading = None;
        }
        if let Event::Opened(_) = event {
            // As `View::open`.
            self.former |= self.claimed;
            self.claimed = false;
        }
        let before = self.machine.role.clone();
        if self.machine.on(event) != before {
            self.mirrored = None;
        }
    }

    /// The table that it pushes now.
    fn table(&self, number: usize) -> Option<Table> {
        match self.machine.role {
            Role::Leading { index } => {
                Some(Meta::draw_epoch(index, number as u64 * 100 + self.life))
            }
            Role::Following(_) => self.mirrored,
            Role::Waiting => None,
        }
    }
}

fn failed(reading: bool, denied: bool) -> Event {
    let what = "lost".to_owned();
    Event::Failed {
        reading,
        denied,
        what,
    }
}

impl World {
    /// The table of the leader that this replica follows, where that one is still of the same mind.
    fn followed(&self, replica: usize) -> Option<(Table, u64)> {
        let Role::Following(leader) = &self.replicas[replica].machine.role else {
            return None;
        };
        let numbers = 0..self.replicas.len();
        let mut at = numbers.filter(|number| address(*number) == leader.address);
        let number = at.next()?;
        let found = &self.replicas[number];
        let leads = found.machine.role.leads();
        let table = leads.then(|| found.table(number)).flatten()?;
        Some((table, leader.index))
    }

    /// Whether the lock is this replica's, as the server has it.
    fn is_holder(&self, replica: usize) -> bool {
        let session = self.replicas[replica].machine.session().and_then(number);
        session.is_some() && self.server.holder == session
    }

    /// The key as `View::key` has it: a Lease of its own that has run out is free.
    fn heard(&self, replica: usize, key: Key) -> Key {
        let it = &self.replicas[replica];
        let is_own = |holder: &Holder| it.machine.session() == Some(&holder.session);
        match key {
            Key::Held(holder)
                if self.server.promise == Promise::Lease && is_own(&holder) && !it.claimed =>
            {
                Key::Free
            }
            key => key,
        }
    }

    /// The lock is free. Whoever's Lease it was has learned it by its clock.
    fn expire(&mut self) {
        if self.server.promise == Promise::Lease {
            let mut numbers = 0..self.replicas.len();
            let holder = numbers.find(|number| self.is_holder(*number));
            holder.into_iter().for_each(|holder| self.lapse(holder));
        }
        let holder = self.server.holder;
        holder.into_iter().for_each(|it| self.server.end(it));
    }

    fn lapse(&mut self, replica: usize) {
        let it = &mut self.replicas[replica];
        (it.claimed, it.former) = (false, false);
        if it.machine.holds() {
            it.on(Event::Lapsed);
        }
    }

    fn arrive(&mut self, replica: usize) {
        let Some(offered) = self.replicas[replica].sent.take() else {
            return;
        };
        if !takes(self.taken, offered) {
            return;
        }
        if let (Some((old, true)), Some(new)) = (self.taken, meta(offered).fence()) {
            self.went_back |= meta(old).fence().is_some_and(|old| new < old);
        }
        self.taken = Some((offered, true));
    }

    fn may(&self, action: Action) -> bool {
        let it = |replica: usize| &self.replicas[replica];
        let asked = |replica: usize| it(replica).doing.as_ref();
        match action {
            Action::Do(n) => asked(n).is_some_and(|(_, answer)| answer.is_none()),
            Action::Answer(n) => asked(n).is_some_and(|(_, answer)| answer.is_some()),
            // What was read and is still so is not read again.
            Action::Read(n) | Action::Look(n) => {
                it(n).reading.is_none() && it(n).machine.key != Some(self.server.key())
            }
            Action::Hear(n) => it(n).reading.is_some(),
            Action::Ask(n) | Action::Turn(n) => {
                asked(n).is_none() && it(n).machine.wish().is_some()
            }
            Action::Renew(n) | Action::Learn(n) => {
                let is_over = |session: &str| {
                    let session = number(session);
                    session.is_none_or(|it| self.server.is_over(it))
                };
                let session = it(n).machine.session();
                let is_asked = match self.server.promise {
                    Promise::Session => session.is_some_and(is_over),
                    // Also what has lapsed is renewed, where nobody has taken it.
                    Promise::Lease if it(n).claimed => session.is_some_and(is_over),
                    Promise::Lease => self.is_holder(n),
                };
                is_asked && asked(n).is_none()
            }
            Action::Send(n) => it(n)
                .table(n)
                .is_some_and(|table| it(n).sent != Some(table)),
            Action::Arrive(n) => it(n).sent.is_some(),
            Action::Follow(n) => self.followed(n).is_some_and(|(offered, index)| {
                let has = it(n).mirrored;
                mirrored(has, offered, index) != has
            }),
            Action::Lose(n) => asked(n).is_some(),
            Action::LoseReading(..) | Action::Restart(_) => true,
            Action::Silence(n) => it(n).machine.waits_in_vain(),
            Action::Expire | Action::Depose => self.server.holder.is_some(),
            Action::Lapse(n) => (self.is_holder(n) && it(n).claimed) || it(n).former,
            Action::Forget => self.server.index > 0,
            Action::Age => self.taken.is_some_and(|(_, is_fresh)| is_fresh),
        }
    }

    fn take(&mut self, action: Action) {
        match action {
            Action::Do(n) => {
                let Replica { machine, doing, .. } = &mut self.replicas[n];
                let session = machine.session().and_then(number);
                if let Some((wish, answer)) = doing {
                    *answer = Some(self.server.does(n, wish, session));
                }
            }
            Action::Answer(n) => {
                if let Some((_, Some(event))) = self.replicas[n].doing.take() {
                    // The clock runs from the question on: what has run out meanwhile is not claimed, and what was
                    // claimed and is freed by others is so until its own time.
                    if let Event::Answered(true) | Event::Renewed = event
                        && self.is_holder(n)
                    {
                        let it = &mut self.replicas[n];
                        (it.claimed, it.former) = (true, false);
                    }
                    self.replicas[n].on(event);
                }
            }
            Action::Read(n) => self.replicas[n].reading = Some(self.server.key()),
            Action::Hear(n) => {
                if let Some(key) = self.replicas[n].reading.take() {
                    let key = self.heard(n, key);
                    self.replicas[n].on(Event::Read(key));
                }
            }
            Action::Ask(n) => {
                let wish = self.replicas[n].machine.wish();
                self.replicas[n].doing = wish.map(|wish| (wish, None));
            }
            Action::Renew(n) => self.replicas[n].doing = Some((Wish::Renew, None)),
            Action::Turn(n) => self.take_all([Action::Ask(n), Action::Do(n), Action::Answer(n)]),
            Action::Look(n) => self.take_all([Action::Read(n), Action::Hear(n)]),
            Action::Learn(n) => {
                self.take_all([Action::Renew(n), Action::Do(n), Action::Answer(n)]);
            }
            Action::Send(n) => self.replicas[n].sent = self.replicas[n].table(n),
            Action::Arrive(n) => self.arrive(n),
            Action::Follow(n) => {
                if let Some((offered, index)) = self.followed(n) {
                    let has = self.replicas[n].mirrored;
                    self.replicas[n].mirrored = mirrored(has, offered, index);
                }
            }
            Action::Lose(n) => {
                self.replicas[n].doing = None;
                self.replicas[n].on(failed(false, false));
            }
            Action::LoseReading(n, denied) => {
                self.replicas[n].reading = None;
                self.replicas[n].on(failed(true, denied));
            }
            Action::Silence(n) => self.replicas[n].on(Event::Silence),
            Action::Restart(n) => {
                let sent = self.replicas[n].sent;
                self.replicas[n] = Replica::new(n, self.replicas[n].life + 1);
                self.replicas[n].sent = sent;
            }
            Action::Expire => self.expire(),
            Action::Lapse(n) => self.lapse(n),
            Action::Depose => self.server.holder = None,
            Action::Forget => {
                let promise = self.server.promise;
                let mut sessions = std::mem::take(&mut self.server.sessions);
                sessions.retain(|_, _| promise == Promise::Lease);
                self.server = Server {
                    promise,
                    sessions,
                    opened: self.server.opened,
                    ..Server::default()
                };
            }
            Action::Age => {
                self.taken = self.taken.map(|(table, _)| (table, false));
            }
        }
    }

    fn take_all<const N: usize>(&mut self, actions: [Action; N]) {
        actions.into_iter().for_each(|action| self.take(action));
    }

    fn leaders(&self) -> impl Iterator<Item = u64> {
        let roles = self.replicas.iter().map(|replica| &replica.machine.role);
        roles.filter(|role| role.leads()).map(Role::index)
    }
}

impl Detail {
    /// What can happen to a replica.
    fn of_one(self, n: usize) -> Vec<Action> {
        match self {
            Self::Questions => vec![
                Action::Do(n),
                Action::Answer(n),
                Action::Read(n),
                Action::Hear(n),
                Action::Ask(n),
                Action::Renew(n),
                Action::Lose(n),
                Action::LoseReading(n, false),
                Action::LoseReading(n, true),
                Action::Silence(n),
                Action::Restart(n),
            ],
            Self::Tables => vec![
                Action::Turn(n),
                Action::Look(n),
                Action::Learn(n),
                Action::Send(n),
                Action::Arrive(n),
                Action::Follow(n),
                Action::LoseReading(n, false),
                Action::Silence(n),
                Action::Restart(n),
            ],
        }
    }
}

impl Model for Group {
    type State = World;
    type Action = Action;

    fn start(&self) -> World {
        let replicas = 0..self.replicas;
        World {
            server: Server {
                promise: self.promise,
                ..Server::default()
            },
            replicas: replicas.map(|number| Replica::new(number, 0)).collect(),
            taken: None,
            went_back: false,
            faults: self.faults,
        }
    }

    fn steps(&self, world: &World) -> Vec<(Action, World)> {
        let may = |action: &Action| (!action.is_fault() || world.faults > 0) && world.may(*action);
        let all = (0..self.replicas).flat_map(|n| self.detail.of_one(n));
        let all = all.chain([Action::Expire, Action::Age]);
        let all = all.chain(self.forgets.then_some(Action::Forget));
        let all = all.chain(self.deposes.then_some(Action::Depose));
        let lapses = (0..self.replicas).map(Action::Lapse);
        let all = all.chain(lapses.filter(|_| self.promise == Promise::Lease));
        let after = |action: Action| {
            let mut next = world.clone();
            next.take(action);
            next.faults -= u8::from(action.is_fault());
            (action, next)
        };
        all.filter(may).map(after).collect()
    }

    fn broken(&self, world: &World) -> Option<String> {
        let mut locked: Vec<u64> = world.leaders().filter(|index| *index > 0).collect();
        let leaders = locked.len();
        locked.sort_unstable();
        locked.dedup();
        if locked.len() < leaders && !self.forgets {
            return Some(format!("two lead with one lock index: {locked:?}"));
        }
        let holders = world.replicas.iter().filter(|it| it.machine.holds());
        if self.promise == Promise::Lease && !self.deposes && !self.forgets && holders.count() > 1 {
            return Some("two lead by one Lease at once".to_owned());
        }
        let mut all = world.replicas.iter();
        let is_endless = |it: &Replica| it.machine.holds() && !it.claimed && !it.former;
        if self.promise == Promise::Lease && all.any(is_endless) {
            return Some("one leads by a Lease without an end".to_owned());
        }
        let why = "the sidecar went back to an older leader's table";
        world.went_back.then(|| why.to_owned())
    }

    /// Everybody has a turn, and sessions that nobody knows run out.
    fn calm(&self, world: &World) -> World {
        let mut next = world.clone();
        let sessions = next.replicas.iter().map(|it| it.machine.session());
        let known: Vec<u8> = sessions.flatten().filter_map(number).collect();
        let unknown = world
            .server
            .sessions
            .keys()
            .filter(|it| !known.contains(it));
        unknown.for_each(|session| next.server.end(*session));
        for n in 0..self.replicas {
            for action in [
                Action::Do(n),
                Action::Answer(n),
                Action::Hear(n),
                Action::Read(n),
                Action::Hear(n),
                Action::Renew(n),
                Action::Ask(n),
                Action::Do(n),
                Action::Answer(n),
                Action::Follow(n),
                Action::Arrive(n),
                Action::Send(n),
            ] {
                if next.may(action) {
                    next.take(action);
                }
            }
        }
        let offered = next.replicas.iter().filter_map(|it| it.sent);
        if !offered.into_iter().any(|table| takes(next.taken, table)) {
            next.take(Action::Age);
        }
        next
    }

    fn is_settled(&self, world: &World) -> bool {
        let index = world.server.index;
        let roles = world.replicas.iter().map(|it| &it.machine.role);
        let agree = roles.into_iter().all(|role| role.index() == index);
        let fence = |(table, _)| meta(table).fence();
        let is_taken = world.taken.and_then(fence) == Some(index);
        agree && world.leaders().count() == 1 && (is_taken || self.detail == Detail::Questions)
    }

    fn sights(&self) -> Vec<Sight<World>> {
        let mut sights: Vec<Sight<World>> = match self.promise {
            Promise::Session => vec![("two that take themselves for the leader", |world| {
                world.leaders().count() == 2
            })],
            Promise::Lease => vec![("one that has stopped, and leads again", |world| {
                let mut machines = world.replicas.iter().map(|it| &it.machine);
                machines.any(|it| it.holds() && it.role.index() == 2)
            })],
        };
        if self.detail == Detail::Tables {
            sights.push(("an older leader's table that is refused", |world| {
                let mut sent = world.replicas.iter().filter_map(|replica| replica.sent);
                sent.any(|table| !takes(world.taken, table))
            }));
        }
        sights
    }
}

/// Two faults can be anything that one cannot, and take ten times as many states.
fn faults() -> u8 {
    if weir_needs::is_nightly() { 2 } else { 1 }
}

fn explored(group: &Group) {
    let began = std::time::Instant::now();
    let explored = explore(group, 12).unwrap_or_else(|broken| panic!("{broken:#?}"));
    println!("{explored:?} in {:?}", began.elapsed());
}

const CONSUL: Group = Group {
    replicas: 2,
    faults: 1,
    detail: Detail::Questions,
    promise: Promise::Session,
    deposes: false,
    forgets: false,
};
const LEASE: Group = Group {
    promise: Promise::Lease,
    ..CONSUL
};

#[test]
fn no_lock_index_has_two_leaders_and_somebody_leads_in_the_end() {
    explored(&CONSUL);
}

#[test]
fn no_sidecar_goes_back_to_an_older_leader_and_has_the_newest_ones_table_in_the_end() {
    explored(&Group {
        faults: faults(),
        detail: Detail::Tables,
        ..CONSUL
    });
}

#[test]
fn when_consul_has_forgotten_everything_one_leads_in_the_end_and_its_table_is_taken() {
    explored(&Group {
        detail: Detail::Tables,
        forgets: true,
        ..CONSUL
    });
}

#[test]
fn no_two_lead_by_a_lease_at_once_and_somebody_leads_in_the_end() {
    explored(&LEASE);
}

#[test]
fn with_a_lease_no_sidecar_goes_back_whoever_is_deposed() {
    explored(&Group {
        faults: faults(),
        detail: Detail::Tables,
        deposes: true,
        ..LEASE
    });
}

#[test]
fn with_a_lease_nobody_leads_by_it_without_an_end_whoever_is_deposed_or_deletes_it() {
    explored(&Group {
        deposes: true,
        forgets: true,
        ..LEASE
    });
}
