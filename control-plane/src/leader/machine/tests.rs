// SPDX-License-Identifier: Apache-2.0

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

const US: &str = "10.0.0.1:9901";

fn held(session: &str, address: &str, index: u64) -> Key {
    Key::Held(Holder {
        name: "n".to_owned(),
        address: address.to_owned(),
        index,
        session: session.to_owned(),
    })
}

fn failed(denied: bool, reading: bool) -> Event {
    let what = "said so".to_owned();
    Event::Failed {
        reading,
        denied,
        what,
    }
}

fn after(events: &[Event]) -> Machine {
    let mut machine = Machine::new(US.to_owned());
    for event in events {
        machine.on(event.clone());
    }
    machine
}

#[test]
fn it_opens_a_session_takes_a_free_key_and_leads_when_the_key_says_so() {
    let mut machine = after(&[]);
    assert_eq!(machine.wish(), None, "Consul has not said anything");
    machine.on(Event::Read(Key::Free));
    assert_eq!(machine.wish(), Some(Wish::Open));
    machine.on(Event::Opened("s".to_owned()));
    assert_eq!(machine.wish(), Some(Wish::Acquire));
    assert_eq!(machine.on(Event::Answered(true)), Role::Waiting);
    assert_eq!(machine.wish(), None, "what the key says is read first");
    let role = machine.on(Event::Read(held("s", US, 7)));
    assert_eq!(role, Role::Leading { index: 7 });
}

#[test]
fn a_leader_goes_on_until_it_hears_of_another_one() {
    let leading = [
        Event::Read(Key::Free),
        Event::Opened("s".to_owned()),
        Event::Read(held("s", US, 7)),
    ];
    let mut machine = after(&leading);
    for event in [
        failed(false, true),
        failed(true, false),
        Event::Silence,
        Event::Expired,
        Event::Read(Key::Free),
        Event::Read(Key::Strange("x".to_owned())),
    ] {
        assert_eq!(machine.on(event), Role::Leading { index: 7 });
    }
    let role = machine.on(Event::Read(held("t", "10.0.0.2:1", 8)));
    assert!(matches!(role, Role::Following(leader) if leader.index == 8 && leader.name == "n"));
}

#[test]
fn without_any_answer_it_acts_alone_and_a_denial_is_an_answer() {
    let mut machine = after(&[failed(false, true)]);
    assert_eq!(machine.on(Event::Silence), Role::Leading { index: 0 });
    let mut machine = after(&[failed(true, true)]);
    assert_eq!(machine.on(Event::Silence), Role::Waiting);
    assert_eq!(machine.complaint(), Some("said so"));
}

#[test]
fn who_waits_for_a_consul_that_stopped_answering_acts_alone_and_who_is_answered_does_not() {
    let mut machine = after(&[Event::Read(Key::Free), Event::Opened("s".to_owned())]);
    assert!(!machine.waits_in_vain());
    assert_eq!(machine.on(Event::Silence), Role::Waiting);
    machine.on(failed(false, false));
    assert!(machine.waits_in_vain());
    assert_eq!(machine.on(Event::Silence), Role::Leading { index: 0 });
    assert!(!machine.waits_in_vain(), "it leads");
}

#[test]
fn who_may_have_lost_the_lock_by_its_own_clock_stops_until_the_lock_says_more() {
    let leading = [
        Event::Read(Key::Free),
        Event::Opened("s".to_owned()),
        Event::Read(held("s", US, 7)),
    ];
    let mut machine = after(&leading);
    assert!(machine.holds());
    assert_eq!(machine.on(Event::Lapsed), Role::Waiting);
    assert!(
        !machine.holds() && machine.wish().is_none(),
        "the lock is read first"
    );
    machine.on(Event::Read(Key::Free));
    assert_eq!(
        machine.wish(),
        Some(Wish::Acquire),
        "with the session that it has"
    );
    let role = machine.on(Event::Read(held("s", US, 8)));
    assert_eq!(role, Role::Leading { index: 8 });
    assert!(machine.holds());
}

#[test]
fn who_stopped_and_hears_nothing_acts_alone_below_whoever_took_over() {
    let mut machine = after(&[
        Event::Read(Key::Free),
        Event::Opened("s".to_owned()),
        Event::Read(held("s", US, 7)),
        Event::Lapsed,
    ]);
    assert_eq!(machine.on(Event::Silence), Role::Waiting, "answered last");
    machine.on(failed(false, true));
    assert_eq!(machine.on(Event::Silence), Role::Leading { index: 7 });
    assert!(!machine.holds());
    let role = machine.on(Event::Read(held("t", "10.0.0.2:1", 8)));
    assert!(matches!(role, Role::Following(_)));
}

#[test]
fn who_stopped_and_may_not_ask_any_more_acts_alone_and_who_has_not_led_does_not() {
    let stopped = [
        Event::Read(Key::Free),
        Event::Opened("s".to_owned()),
        Event::Read(held("s", US, 7)),
        Event::Lapsed,
    ];
    let mut machine = after(&stopped);
    let denied = failed(true, true);
    assert!(!machine.is_answer(&denied));
    machine.on(denied.clone());
    assert_eq!(machine.complaint(), Some("said so"));
    assert_eq!(machine.on(Event::Silence), Role::Leading { index: 7 });
    // It may read that the lock is free, and not take it.
    let mut machine = after(&stopped);
    machine.on(failed(true, false));
    let free = Event::Read(Key::Free);
    assert!(!machine.is_answer(&free));
    machine.on(free.clone());
    assert_eq!(machine.on(Event::Silence), Role::Leading { index: 7 });
    // Somebody leads.
    let mut machine = after(&stopped);
    machine.on(Event::Read(held("t", "10.0.0.2:1", 8)));
    assert!(machine.is_answer(&denied) && machine.is_answer(&free));
    machine.on(denied);
    assert!(matches!(machine.on(Event::Silence), Role::Following(_)));
}

#[test]
fn of_two_with_one_address_the_one_that_has_lost_the_lock_stops_leading() {
    let mut machine = after(&[
        Event::Read(Key::Free),
        Event::Opened("s".to_owned()),
        Event::Read(held("s", US, 7)),
    ]);
    assert_eq!(machine.on(Event::Read(held("t", US, 8))), Role::Waiting);
    assert!(machine.complaint().unwrap().contains("own address"));
}

#[test]
fn its_former_lifes_lock_is_ended_once_and_somebody_elses_with_its_address_never() {
    let mut machine = after(&[
        Event::Read(held("old", US, 3)),
        Event::Opened("s".to_owned()),
    ]);
    assert_eq!(machine.wish(), Some(Wish::Bury("old".into())));
    machine.on(Event::Buried);
    machine.on(Event::Read(held("other", US, 4)));
    assert_eq!(machine.wish(), None);
    assert!(machine.complaint().unwrap().contains("own address"));
}

#[test]
fn what_could_not_be_done_is_complained_of_until_it_can() {
    let mut machine = after(&[Event::Read(Key::Free), failed(true, false)]);
    machine.on(Event::Read(Key::Free));
    assert_eq!(machine.complaint(), Some("said so"));
    machine.on(Event::Opened("s".to_owned()));
    assert_eq!(machine.complaint(), None);
}

/// Consul, as far as locks go.
#[derive(Debug, Default)]
struct Consul {
    sessions: BTreeMap<String, usize>,
    opened: u32,
    index: u64,
    holder: Option<String>,
}

impl Consul {
    fn key(&self) -> Key {
        match &self.holder {
            None => Key::Free,
            Some(session) => {
                let replica = self.sessions[session];
                held(session, &format!("10.0.0.{replica}:1"), self.index)
            }
        }
    }

    fn end(&mut self, session: &str) {
        self.sessions.remove(session);
        self.holder.take_if(|holder| holder == session);
    }

    fn does(&mut self, replica: usize, wish: &Wish, session: Option<&str>) -> Event {
        let session = session.unwrap_or_default().to_owned();
        match wish {
            Wish::Open => {
                self.opened += 1;
                let session = format!("s{}", self.opened);
                self.sessions.insert(session.clone(), replica);
                Event::Opened(session)
            }
            Wish::Acquire => {
                let may = self.holder.is_none() && self.sessions.contains_key(&session);
                if may {
                    self.index += 1;
                    self.holder = Some(session);
                }
                Event::Answered(may)
            }
            Wish::Bury(session) => {
                self.end(session);
                Event::Buried
            }
            Wish::Renew => match self.sessions.contains_key(&session) {
                true => Event::Renewed,
                false => Event::Expired,
            },
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Reads(usize),
    Does(usize),
    Renews(usize),
    Expires(usize),
    Restarts(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = (0..5u8, 0..3usize).prop_map(|(kind, who)| match kind {
        0 => Step::Reads(who),
        1 => Step::Does(who),
        2 => Step::Renews(who),
        3 => Step::Expires(who),
        _ => Step::Restarts(who),
    });
    proptest::collection::vec(step, 0..200)
}

proptest! {
    /// However slow each of them is: no lock index has two leaders, and who hears all that Consul says agrees.
    #[test]
    fn no_index_has_two_leaders_and_those_who_hear_agree(steps in steps()) {
        let mut consul = Consul::default();
        let address = |it: usize| format!("10.0.0.{it}:1");
        let mut replicas: Vec<Machine> = (0..3).map(|it| Machine::new(address(it))).collect();
        let mut led: BTreeMap<u64, (usize, u32)> = BTreeMap::new();
        let mut lives = [0u32; 3];
        let settle = [0, 1, 2].map(|it| [Step::Renews(it), Step::Reads(it), Step::Does(it)]);
        let settle = settle.as_flattened().iter().cloned().cycle().take(60);
        for step in steps.into_iter().chain(settle) {
            let (who, event) = match step {
                Step::Reads(it) => (it, Some(Event::Read(consul.key()))),
                Step::Does(it) => {
                    let wish = replicas[it].wish();
                    (it, wish.map(|wish| consul.does(it, &wish, replicas[it].session())))
                }
                Step::Renews(it) => {
                    let session = replicas[it].session().map(str::to_owned);
                    (it, session.map(|own| consul.does(it, &Wish::Renew, Some(&own))))
                }
                Step::Expires(it) => {
                    if let Some(session) = replicas[it].session().map(str::to_owned) {
                        consul.end(&session);
                    }
                    (it, None)
                }
                Step::Restarts(it) => {
                    replicas[it] = Machine::new(address(it));
                    lives[it] += 1;
                    (it, None)
                }
            };
            let Some(event) = event else { continue };
            let before = replicas[who].role.clone();
            let was_read = matches!(event, Event::Read(_));
            let role = replicas[who].on(event);
            if before != role {
                prop_assert!(was_read, "{before:?} {role:?}");
            }
            if let Role::Leading { index } = role {
                let by = *led.entry(index).or_insert((who, lives[who]));
                prop_assert_eq!(by, (who, lives[who]), "index {}", index);
            }
        }
        let roles: Vec<&Role> = replicas.iter().map(|it| &it.role).collect();
        prop_assert_eq!(roles.iter().filter(|role| role.leads()).count(), 1, "{:?}", roles);
        for role in roles {
            prop_assert_eq!(role.index(), consul.index);
        }
    }
}
