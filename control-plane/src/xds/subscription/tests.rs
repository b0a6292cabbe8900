// SPDX-License-Identifier: Apache-2.0
use std::collections::HashMap;

use envoy_types::pb::google::rpc::Status;
use proptest::prelude::*;

use super::*;

/// More than a test asks for.
const ROOM: usize = 1 << 30;

fn resources(versions: &[(&str, u32)]) -> Arc<Resources> {
    let resource = |version: u32| Resource {
        version: version.to_string().into(),
        body: version.to_string().into(),
    };
    Arc::new(
        versions
            .iter()
            .map(|(name, v)| ((*name).to_owned(), resource(*v)))
            .collect(),
    )
}

fn subscribe(names: &[&str]) -> DeltaDiscoveryRequest {
    DeltaDiscoveryRequest {
        resource_names_subscribe: names.iter().map(|name| (*name).to_owned()).collect(),
        ..Default::default()
    }
}

fn unsubscribe(names: &[&str]) -> DeltaDiscoveryRequest {
    DeltaDiscoveryRequest {
        resource_names_unsubscribe: names.iter().map(|name| (*name).to_owned()).collect(),
        ..Default::default()
    }
}

fn ack(delta: &Delta) -> DeltaDiscoveryRequest {
    DeltaDiscoveryRequest {
        response_nonce: delta.nonce.to_string(),
        ..Default::default()
    }
}

fn nack(delta: &Delta, reason: &str) -> DeltaDiscoveryRequest {
    let error_detail = Some(Status {
        code: 3,
        message: reason.to_owned(),
        ..Default::default()
    });
    DeltaDiscoveryRequest {
        error_detail,
        ..ack(delta)
    }
}

fn resume(names: &[&str], versions: &[(&str, u32)]) -> DeltaDiscoveryRequest {
    let versions = versions
        .iter()
        .map(|(name, v)| ((*name).to_owned(), v.to_string()));
    DeltaDiscoveryRequest {
        initial_resource_versions: versions.collect(),
        ..subscribe(names)
    }
}

/// A subscription and what it was asked, in short.
#[derive(Default)]
struct Server(Subscription);

impl Server {
    fn opened_with(request: &DeltaDiscoveryRequest) -> Self {
        let mut server = Self::default();
        server.hear(request);
        server
    }

    fn hear(&mut self, request: &DeltaDiscoveryRequest) -> Option<Verdict> {
        self.0.on_request(request, ROOM).unwrap()
    }

    /// Resources as `name=version`, removals as `-name`.
    fn say(&mut self, resources: &Arc<Resources>) -> Option<(Vec<String>, Delta)> {
        let delta = self.0.on_snapshot(resources, true)?;
        let sent = delta
            .resources
            .iter()
            .map(|(name, r)| format!("{name}={}", r.version));
        let removed = delta.removed.iter().map(|name| format!("-{name}"));
        Some((sent.chain(removed).collect(), delta))
    }

    fn say_and_ack(&mut self, resources: &Arc<Resources>) -> Vec<String> {
        let Some((said, delta)) = self.say(resources) else {
            return Vec::new();
        };
        let verdict = self.hear(&ack(&delta)).unwrap();
        assert_eq!((verdict.nonce, verdict.refusal), (delta.nonce, None));
        said
    }
}

#[test]
fn nothing_is_said_of_what_is_not_known_yet() {
    let unknown = || Arc::new(Resources::from([("a".to_owned(), Resource::unknown())]));
    for mut server in [
        Server::opened_with(&subscribe(&["a"])),
        Server::opened_with(&resume(&["a"], &[("a", 3)])),
        Server::opened_with(&resume(&["*"], &[("a", 3)])),
    ] {
        // A wildcard is greeted, with nothing in it.
        if let Some(greeting) = server.0.on_snapshot(&unknown(), true) {
            assert!(greeting.resources.is_empty() && greeting.removed.is_empty());
            server.hear(&ack(&greeting));
        }
        assert_eq!(server.0.on_snapshot(&unknown(), true), None);
        let known = server.0.on_snapshot(&resources(&[("a", 4)]), true).unwrap();
        assert_eq!((known.resources.len(), known.removed.len()), (1, 0));
    }
}

#[test]
fn only_what_was_asked_for_is_sent_and_only_once() {
    let all = resources(&[("a", 1), ("b", 1)]);
    let mut server = Server::opened_with(&subscribe(&["a"]));
    assert_eq!(server.say_and_ack(&all), ["a=1"]);
    assert!(server.say(&all).is_none());
    assert!(server.say(&resources(&[("a", 1), ("b", 2)])).is_none());
    assert_eq!(
        server.say_and_ack(&resources(&[("a", 2), ("b", 2)])),
        ["a=2"]
    );
}

#[test]
fn the_next_response_waits_for_the_answer_and_skips_what_came_between() {
    let mut server = Server::opened_with(&subscribe(&["a"]));
    let (_, first) = server.say(&resources(&[("a", 1)])).unwrap();
    assert!(server.say(&resources(&[("a", 2)])).is_none());
    server.hear(&ack(&first));
    assert_eq!(server.say_and_ack(&resources(&[("a", 3)])), ["a=3"]);
}

#[test]
fn a_refused_version_is_not_sent_again_until_the_resource_changes() {
    let mut server = Server::opened_with(&subscribe(&["a"]));
    assert_eq!(server.say_and_ack(&resources(&[("a", 1)])), ["a=1"]);
    let (_, bad) = server.say(&resources(&[("a", 2)])).unwrap();
    let verdict = server.hear(&nack(&bad, "duplicate host")).unwrap();
    assert_eq!(verdict.refusal.as_deref(), Some("duplicate host"));
    assert_eq!(verdict.versions, [("a".to_owned(), "2".into())]);
    assert!(server.say(&resources(&[("a", 2), ("b", 1)])).is_none());
    assert_eq!(server.say_and_ack(&resources(&[("a", 3)])), ["a=3"]);
}

#[test]
fn a_refused_resource_that_disappears_is_removed_if_the_client_had_an_older_one() {
    let mut server = Server::opened_with(&subscribe(&["a"]));
    server.say_and_ack(&resources(&[("a", 1)]));
    let (_, bad) = server.say(&resources(&[("a", 2)])).unwrap();
    server.hear(&nack(&bad, "no"));
    assert_eq!(server.say_and_ack(&resources(&[])), ["-a"]);
    assert!(server.say(&resources(&[])).is_none());
}

#[test]
fn the_reason_of_a_refusal_is_cut_between_characters() {
    let mut server = Server::opened_with(&subscribe(&["a"]));
    let (_, bad) = server.say(&resources(&[("a", 1)])).unwrap();
    let reason = server
        .hear(&nack(&bad, &"é".repeat(5000)))
        .unwrap()
        .refusal
        .unwrap();
    assert_eq!(reason.len(), 1024);
}

#[test]
fn what_a_client_says_cannot_break_a_line_of_the_log_or_a_terminal() {
    let mut server = Server::opened_with(&subscribe(&["a"]));
    let (_, bad) = server.say(&resources(&[("a", 1)])).unwrap();
    let verdict = server.hear(&nack(&bad, "bad\nINFO all is well \u{1b}[2J"));
    let reason = verdict.unwrap().refusal.unwrap();
    assert_eq!(reason, "bad INFO all is well  [2J");
}

#[test]
fn a_version_that_is_none_of_this_servers_is_not_kept() {
    let mut versions = resume(&["a"], &[("a", 1)]);
    let long = "v".repeat(MAX_NAME_BYTES);
    versions
        .initial_resource_versions
        .insert("a".to_owned(), long);
    let mut server = Server::opened_with(&versions);
    let held = server.0.held.get("a").unwrap();
    assert_eq!(held.version.as_deref(), Some(FOREIGN));
    assert_eq!(server.say_and_ack(&resources(&[])), ["-a"], "there is one");
}

#[test]
fn an_answer_with_a_stale_nonce_answers_nothing_but_its_names_count() {
    let all = resources(&[("a", 1), ("b", 1)]);
    let mut server = Server::opened_with(&subscribe(&["a"]));
    let (_, delta) = server.say(&all).unwrap();
    let stale = DeltaDiscoveryRequest {
        response_nonce: "older".to_owned(),
        error_detail: Some(Status::default()),
        ..subscribe(&["b"])
    };
    assert_eq!(server.hear(&stale), None);
    assert!(
        server.say(&all).is_none(),
        "the response is still in flight"
    );
    assert!(server.hear(&ack(&delta)).is_some());
    assert_eq!(server.hear(&ack(&delta)), None, "an answer counts once");
    assert_eq!(server.say_and_ack(&all), ["b=1"]);
}

#[test]
fn a_resuming_client_gets_what_differs_and_loses_what_is_gone() {
    let all = resources(&[("a", 1), ("b", 2)]);
    let held = [("a", 1), ("b", 1), ("c", 1)];
    let mut named = Server::opened_with(&resume(&["a", "b", "c"], &held));
    assert_eq!(named.say_and_ack(&all), ["b=2", "-c"]);
    let mut wildcard = Server::opened_with(&resume(&[], &held));
    assert_eq!(wildcard.say_and_ack(&all), ["b=2", "-c"]);
    let mut same = Server::opened_with(&resume(&["a"], &held));
    assert!(same.say(&all).is_none());
}

#[test]
fn versions_in_a_later_request_are_not_believed() {
    let mut server = Server::opened_with(&subscribe(&["a"]));
    server.hear(&resume(&["b"], &[("b", 1)]));
    assert_eq!(
        server.say_and_ack(&resources(&[("a", 1), ("b", 1)])),
        ["a=1", "b=1"]
    );
}

#[test]
fn a_wildcard_is_answered_even_if_there_is_nothing_but_once() {
    let none = resources(&[]);
    for request in [subscribe(&[]), subscribe(&["*"]), resume(&[], &[])] {
        let mut server = Server::opened_with(&request);
        let (said, delta) = server.say(&none).unwrap();
        assert!(said.is_empty());
        server.hear(&ack(&delta));
        assert!(server.say(&none).is_none());
        assert_eq!(server.say_and_ack(&resources(&[("a", 1)])), ["a=1"]);
        assert_eq!(server.say_and_ack(&none), ["-a"]);
    }
}

#[test]
fn an_empty_later_request_is_no_wildcard() {
    let mut server = Server::opened_with(&subscribe(&["a"]));
    server.hear(&subscribe(&[]));
    assert_eq!(
        server.say_and_ack(&resources(&[("a", 1), ("b", 1)])),
        ["a=1"]
    );
}

#[test]
fn a_name_without_a_resource_is_answered_and_sent_when_it_appears() {
    let mut server = Server::opened_with(&subscribe(&["a"]));
    assert_eq!(server.say_and_ack(&resources(&[])), ["-a"]);
    assert!(server.say(&resources(&[])).is_none());
    assert_eq!(server.say_and_ack(&resources(&[("a", 1)])), ["a=1"]);
}

#[test]
fn a_name_asked_for_again_is_sent_again() {
    let all = resources(&[("a", 1)]);
    let mut server = Server::opened_with(&subscribe(&["a"]));
    server.say_and_ack(&all);
    server.hear(&subscribe(&["a"]));
    assert_eq!(server.say_and_ack(&all), ["a=1"]);

    server.hear(&subscribe(&["a"]));
    let (_, delta) = server.say(&all).unwrap();
    server.hear(&subscribe(&["a"]));
    server.hear(&ack(&delta));
    assert_eq!(
        server.say_and_ack(&all),
        ["a=1"],
        "asked for while in flight"
    );
}

#[test]
fn an_unsubscribed_name_is_not_sent_nor_removed() {
    let mut server = Server::opened_with(&subscribe(&["a", "b"]));
    server.say_and_ack(&resources(&[("a", 1), ("b", 1)]));
    server.hear(&unsubscribe(&["a"]));
    assert_eq!(server.say_and_ack(&resources(&[("b", 2)])), ["b=2"]);
}

#[test]
fn under_a_wildcard_an_unsubscribed_name_is_answered_with_its_state() {
    let all = resources(&[("a", 1)]);
    let mut server = Server::opened_with(&subscribe(&["*", "a", "b"]));
    assert_eq!(server.say_and_ack(&all), ["a=1", "-b"]);
    server.hear(&unsubscribe(&["a", "b"]));
    assert_eq!(server.say_and_ack(&all), ["a=1", "-b"]);
    assert!(server.say(&all).is_none());
}

#[test]
fn without_its_wildcard_a_client_keeps_its_names() {
    let mut server = Server::opened_with(&subscribe(&["*", "a"]));
    server.say_and_ack(&resources(&[("a", 1), ("b", 1)]));
    server.hear(&unsubscribe(&["*"]));
    assert_eq!(
        server.say_and_ack(&resources(&[("a", 2), ("b", 2)])),
        ["a=2"]
    );
}

#[test]
fn a_large_response_is_cut_and_the_end_of_the_alphabet_is_not_starved() {
    let large = |version: u32| {
        let body = vec![0; MAX_RESPONSE_BYTES / 2 - 100];
        let resource = Resource {
            version: version.to_string().into(),
            body: body.into(),
        };
        let names = ["a", "b", "c", "d", "e"].map(str::to_owned);
        Arc::new(
            names
                .map(|name| (name, resource.clone()))
                .into_iter()
                .collect::<Resources>(),
        )
    };
    let mut server = Server::opened_with(&subscribe(&[]));
    assert_eq!(server.say_and_ack(&large(1)), ["a=1", "b=1"]);
    assert_eq!(server.say_and_ack(&large(2)), ["c=2", "d=2"]);
    assert_eq!(server.say_and_ack(&large(3)), ["e=3", "a=3"]);
    assert_eq!(server.say_and_ack(&large(3)), ["b=3", "c=3"]);
    assert_eq!(server.say_and_ack(&large(3)), ["d=3"]);
    assert!(server.say(&large(3)).is_none());
}

#[test]
fn one_resource_over_the_size_of_a_response_still_travels() {
    let resource = Resource {
        version: "1".into(),
        body: vec![0; 3 * MAX_RESPONSE_BYTES].into(),
    };
    let large = Arc::new(Resources::from([("a".to_owned(), resource)]));
    assert_eq!(
        Server::opened_with(&subscribe(&["a"])).say_and_ack(&large),
        ["a=1"]
    );
}

#[test]
fn removals_can_be_put_off() {
    let mut server = Server::opened_with(&subscribe(&[]));
    server.say_and_ack(&resources(&[("a", 1), ("b", 1)]));
    let fewer = resources(&[("b", 2)]);
    let delta = server.0.on_snapshot(&fewer, false).unwrap();
    assert_eq!((delta.resources.len(), delta.removed.len()), (1, 0));
    server.hear(&ack(&delta));
    assert!(server.0.on_snapshot(&fewer, false).is_none());
    assert!(!server.0.is_settled(&fewer));
    assert_eq!(server.say_and_ack(&fewer), ["-a"]);
}

#[test]
fn a_request_that_changes_nothing_is_no_reason_to_look_again() {
    let mut server = Server::opened_with(&subscribe(&["a", "nobody's"]));
    let all = resources(&[("a", 1)]);
    server.say_and_ack(&all);
    let mut more = |request: &DeltaDiscoveryRequest| {
        server.hear(request);
        let was_settled = server.0.has_settled(&all);
        assert_eq!(server.say_and_ack(&all), Vec::<String>::new());
        was_settled
    };
    more(&DeltaDiscoveryRequest::default());
    assert!(more(&DeltaDiscoveryRequest::default()));
    assert!(!more(&unsubscribe(&["nobody's"])));
}

#[test]
fn names_beyond_the_room_are_refused_and_none_of_them_is_kept() {
    let names: Vec<String> = (0..1000).map(|i| i.to_string()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut all = Subscription::default();
    all.on_request(&subscribe(&names), ROOM).unwrap();
    let takes = all.bytes();
    assert!(
        Subscription::default()
            .on_request(&subscribe(&names), takes)
            .is_ok()
    );
    let mut less = Subscription::default();
    let refused = less.on_request(&subscribe(&names), takes / 2);
    assert_eq!(refused, Err(Full::StreamBytes));
    assert!(less.bytes() < takes / 2 + 500, "{} bytes", less.bytes());
}

#[test]
fn a_name_or_version_of_the_clients_that_is_too_long_is_refused() {
    let long = "x".repeat(MAX_NAME_BYTES + 1);
    let refused = Subscription::default().on_request(&subscribe(&[&long]), ROOM);
    assert_eq!(refused, Err(Full::Name));
    let mut versions = resume(&["a"], &[("a", 1)]);
    versions
        .initial_resource_versions
        .insert("a".to_owned(), long);
    let refused = Subscription::default().on_request(&versions, ROOM);
    assert_eq!(refused, Err(Full::Name));
}

/// A client that asks for what it likes and answers when it likes.
fn greedy() -> impl Strategy<Value = (Vec<u16>, Vec<u16>, bool, bool)> {
    let names = || proptest::collection::vec(any::<u16>(), 0..40);
    (names(), names(), any::<bool>(), any::<bool>())
}

proptest! {
    #[test]
    fn whatever_a_client_asks_for_what_it_made_up_fits_into_its_room(
        requests in proptest::collection::vec(greedy(), 1..40),
    ) {
        const ROOM: usize = 20_000;
        let there = resources(&[("1", 1), ("2", 1), ("3", 1)]);
        let mut subscription = Subscription::default();
        let (mut due, mut greatest) = (None, 0);
        for (add, remove, wildcard, answers) in requests {
            let name = |name: &u16| name.to_string();
            let mut request = DeltaDiscoveryRequest {
                resource_names_subscribe: add.iter().map(name).collect(),
                resource_names_unsubscribe: remove.iter().chain(&add).map(name).collect(),
                ..Default::default()
            };
            let star = match wildcard {
                true => &mut request.resource_names_subscribe,
                false => &mut request.resource_names_unsubscribe,
            };
            star.push("*".to_owned());
            if answers && let Some(delta) = due.take() {
                request.response_nonce = ack(&delta).response_nonce;
            }
            let ended = subscription.on_request(&request, ROOM).is_err();
            greatest = greatest.max(subscription.bytes());
            prop_assert!(greatest < ROOM + 500, "{greatest} bytes");
            if ended {
                break;
            }
            due = subscription.on_snapshot(&there, true).or(due);
        }
    }
}

/// What may happen between a server and its client. Names are numbers under `NAMES`.
#[derive(Clone, Debug)]
enum Step {
    Publish(usize),
    Withdraw(usize),
    Subscribe(usize),
    Unsubscribe(usize),
    Wildcard(bool),
    /// The client answers, with a refusal if true.
    Answer(bool),
    Reconnect,
}

const NAMES: usize = 5;

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..NAMES).prop_map(Step::Publish),
        2 => (0..NAMES).prop_map(Step::Withdraw),
        2 => (0..NAMES).prop_map(Step::Subscribe),
        1 => (0..NAMES).prop_map(Step::Unsubscribe),
        1 => any::<bool>().prop_map(Step::Wildcard),
        5 => prop::bool::weighted(0.2).prop_map(Step::Answer),
        1 => Just(Step::Reconnect),
    ]
}

/// A client that does what the protocol says, and a world that changes.
#[derive(Default)]
struct World {
    server: Server,
    published: BTreeMap<String, u32>,
    versions: u32,
    resources: Arc<Resources>,
    wildcard: bool,
    named: BTreeSet<String>,
    has: BTreeMap<String, u32>,
    refused: HashMap<String, u32>,
    /// Names that the client may be told of although it has them.
    asked: BTreeSet<String>,
    waiting: Option<Delta>,
}

impl World {
    fn wants(&self, name: &str) -> bool {
        self.wildcard || self.named.contains(name)
    }

    fn publish(&mut self) {
        let published: Vec<_> = self
            .published
            .iter()
            .map(|(n, v)| (n.as_str(), *v))
            .collect();
        self.resources = resources(&published);
    }

    fn step(&mut self, step: &Step) {
        let name = |i: &usize| format!("n{i}");
        match step {
            Step::Publish(i) => {
                self.versions += 1;
                self.published.insert(name(i), self.versions);
                self.publish();
            }
            Step::Withdraw(i) => {
                self.published.remove(&name(i));
                self.publish();
            }
            Step::Subscribe(i) => {
                self.named.insert(name(i));
                self.asked.insert(name(i));
                self.refused.remove(&name(i));
                self.server.hear(&subscribe(&[&name(i)]));
            }
            Step::Unsubscribe(i) => {
                if self.named.remove(&name(i)) {
                    self.asked.insert(name(i));
                    self.refused.remove(&name(i));
                }
                self.forget_unwanted();
                self.server.hear(&unsubscribe(&[&name(i)]));
            }
            Step::Wildcard(true) => {
                if std::mem::replace(&mut self.wildcard, true) {
                    self.asked.extend((0..NAMES).map(|i| name(&i)));
                    self.refused.clear();
                }
                self.server.hear(&subscribe(&["*"]));
            }
            Step::Wildcard(false) => {
                self.wildcard = false;
                self.forget_unwanted();
                self.server.hear(&unsubscribe(&["*"]));
            }
            Step::Answer(refuse) => self.answer(*refuse),
            Step::Reconnect => self.reconnect(),
        }
        self.listen();
    }

    fn forget_unwanted(&mut self) {
        let (wildcard, named) = (self.wildcard, &self.named);
        self.has.retain(|name, _| wildcard || named.contains(name));
        self.refused
            .retain(|name, _| wildcard || named.contains(name));
    }

    fn reconnect(&mut self) {
        self.waiting = None;
        self.refused.clear();
        self.asked = self.named.clone();
        self.asked.retain(|name| !self.has.contains_key(name));
        let mut names: Vec<&str> = self.named.iter().map(String::as_str).collect();
        if self.wildcard {
            names.push("*");
        }
        if names.is_empty() {
            names.push("unrelated");
        }
        let has: Vec<_> = self
            .has
            .iter()
            .map(|(name, v)| (name.as_str(), *v))
            .collect();
        self.server = Server::opened_with(&resume(&names, &has));
    }

    /// Takes what the server says now, and checks that it had to say it.
    fn listen(&mut self) {
        let Some(delta) = self.server.0.on_snapshot(&self.resources, true) else {
            return;
        };
        assert!(self.waiting.is_none(), "two responses in flight");
        for (name, resource) in &delta.resources {
            let version: u32 = resource.version.parse().unwrap();
            assert_eq!(
                self.published.get(name),
                Some(&version),
                "{name} is not the newest"
            );
            assert!(self.wants(name), "{name} was not asked for");
            let asked = self.asked.remove(name);
            assert!(
                asked || self.has.get(name) != Some(&version),
                "{name} was sent twice"
            );
            assert!(
                asked || self.refused.get(name) != Some(&version),
                "{name} was refused"
            );
        }
        for name in &delta.removed {
            assert!(!self.published.contains_key(name), "{name} is there");
            let asked = self.asked.remove(name);
            let has = self.has.contains_key(name);
            // Nobody knows what a client has of a response that it refused.
            let may_have = self.refused.remove(name).is_some();
            assert!(
                asked || has || may_have || name == "unrelated",
                "{name} was not there"
            );
        }
        self.waiting = Some(delta);
    }

    fn answer(&mut self, refuse: bool) {
        let Some(delta) = self.waiting.take() else {
            return;
        };
        for (name, resource) in &delta.resources {
            let version: u32 = resource.version.parse().unwrap();
            if !self.wants(name) {
                continue;
            }
            if refuse {
                self.refused.insert(name.clone(), version);
                // Something else in it was bad.
                if version.is_multiple_of(2) {
                    self.has.insert(name.clone(), version);
                }
            } else {
                self.refused.remove(name);
                self.has.insert(name.clone(), version);
            }
        }
        for name in &delta.removed {
            self.has.remove(name);
        }
        let answer = if refuse {
            nack(&delta, "no")
        } else {
            ack(&delta)
        };
        assert!(self.server.hear(&answer).is_some());
    }
}

proptest! {
    /// Whatever happened, once a client has accepted all that it is sent, it has exactly what it
    /// wants of what there is; and it was never sent anything in vain.
    #[test]
    fn a_client_that_accepts_everything_ends_with_what_there_is(
        steps in prop::collection::vec(step(), 0..60),
    ) {
        let mut world = World { server: Server::opened_with(&subscribe(&["unrelated"])), ..World::default() };
        for step in &steps {
            world.step(step);
        }
        for _ in 0..4 {
            world.listen();
            world.answer(false);
        }
        world.listen();
        prop_assert!(world.waiting.is_none(), "it never ends");
        let wanted = world.published.iter().filter(|(name, version)| {
            world.wants(name) && world.refused.get(*name) != Some(*version)
        });
        for (name, version) in wanted {
            prop_assert_eq!(world.has.get(name), Some(version), "{}", name);
        }
        for name in world.has.keys() {
            prop_assert!(world.published.contains_key(name), "{} is gone", name);
        }
    }
}
