// SPDX-License-Identifier: Apache-2.0
//! Delay scheduling: hosts with idle cores, who waits for one that has its data and for how long, and whose turn it is.

use std::time::Duration;

use weir_policy::{
    Cluster, Holding, Host, HostId, Keys, Outcome, Overload, Patience, Policy, Rank, Reason,
    Request, Round, Selection, Ticket, WaitQueue,
};

use crate::fleet::{NOW, cache, cluster, host, id, key, load, millis, rng};

/// What to fetch the data of [`key`] 1 costs, and to run.
const FETCH: Duration = Duration::from_millis(400);
const RUN: Duration = Duration::from_millis(100);

/// As many hosts of one core; the first has key 1 and tells what it costs.
fn fleet(hosts: usize) -> Cluster {
    holding(hosts, Holding::beside(Overload::Slots))
}

fn holding(hosts: usize, holding: Holding) -> Cluster {
    let policy = Policy {
        selection: Selection::Dynamic,
        overload: Overload::Slots,
        holding,
        ..Policy::default()
    };
    let one_core = |number| Host {
        capacity_millicores: 1000,
        ..host(number)
    };
    let mut cluster = cluster(policy, (0..hosts).map(one_core).collect());
    let micros = |time: Duration| [time.as_micros() as u32];
    let shard = cache(vec![(key(1), vec![(0, false)])]);
    let shard = shard.with_costs(&micros(FETCH), &micros(RUN)).unwrap();
    cluster.set_cache_shard(0, shard);
    cluster
}

fn of_user(class: u8, user: u8) -> Request {
    Request {
        keys: key(1).into(),
        rank: Rank::new(class, user),
    }
}

/// Where the request goes, or why it waits and until when.
type Fate = Result<HostId, (Reason, Duration)>;

struct Caller {
    cluster: Cluster,
    held: WaitQueue<u32>,
}

impl Caller {
    fn new(hosts: usize) -> Self {
        Self {
            cluster: fleet(hosts),
            held: WaitQueue::default(),
        }
    }

    fn come(&mut self, number: u32, request: &Request, now: Duration) -> Fate {
        let (patience, cluster) = (Patience::new(now), &self.cluster);
        let decision = self
            .held
            .decide(cluster, request, patience, now, &mut rng(1));
        match decision.outcome {
            Outcome::Hold { until } => {
                let why = (until, decision.reason);
                self.held
                    .hold(cluster, request.clone(), patience, why, number);
                Err((decision.reason, until))
            }
            Outcome::Send(ranked) => {
                let host = cluster.id(ranked.first().unwrap()).unwrap();
                self.cluster.assigned(host, request, now);
                Ok(host)
            }
            other => panic!("{other:?}"),
        }
    }

    /// Who goes now, and where to.
    fn round(&mut self, now: Duration) -> Vec<(u32, HostId)> {
        let (mut round, mut rng, mut gone) = (Round::default(), rng(1), Vec::new());
        while let Some((number, request, decision)) =
            self.held.next(&self.cluster, &mut round, now, &mut rng)
        {
            let Outcome::Send(ranked) = decision.outcome else {
                panic!("{decision:?}");
            };
            let host = self.cluster.id(ranked.first().unwrap()).unwrap();
            self.cluster.assigned(host, &request, now);
            gone.push((number, host));
        }
        gone
    }

    fn ends(&mut self, host: HostId, sent: Duration, now: Duration) {
        self.cluster.finished(host, sent, now);
        self.held.answered();
    }
}

#[test]
fn a_request_waits_for_a_busy_holder_and_goes_there_as_soon_as_it_has_a_core() {
    let mut caller = Caller::new(2);
    let request = of_user(1, 0);
    assert_eq!(caller.come(0, &request, NOW), Ok(id(0)));
    let held = (Reason::HeldForCached, NOW + FETCH);
    assert_eq!(caller.come(1, &request, NOW), Err(held));
    let later = NOW + FETCH / 2;
    assert_eq!(caller.round(later), []);
    caller.ends(id(0), NOW, later);
    assert_eq!(caller.round(later), [(1, id(0))]);
}

#[test]
fn it_waits_no_longer_than_the_fetch_would_take_that_another_host_needs() {
    let mut caller = Caller::new(2);
    let request = of_user(1, 0);
    assert_eq!(caller.come(0, &request, NOW), Ok(id(0)));
    caller.come(1, &request, NOW).unwrap_err();
    assert_eq!(caller.round(NOW + FETCH - millis(1)), []);
    assert_eq!(caller.round(NOW + FETCH), [(1, id(1))]);
}

#[test]
fn where_nobody_has_the_data_any_idle_core_will_do_and_none_is_waited_for() {
    let mut caller = Caller::new(2);
    let other = Request {
        keys: key(2).into(),
        ..of_user(1, 0)
    };
    let first = caller.come(0, &other, NOW).unwrap();
    let second = caller.come(1, &other, NOW).unwrap();
    assert_ne!(first, second);
    let (reason, until) = caller.come(2, &other, NOW).unwrap_err();
    assert_eq!(reason, Reason::HeldForEligible);
    assert!(until > NOW + FETCH, "nobody has a core: {until:?}");
}

#[test]
fn what_a_host_says_of_its_cores_counts_and_who_tells_nothing_is_idle() {
    let mut caller = Caller::new(1);
    caller.cluster.observed(id(0), load(NOW, 1, 0), NOW);
    let request = of_user(1, 0);
    caller.come(0, &request, NOW).unwrap_err();
    assert_eq!(caller.cluster.demand(id(0), 1, NOW), None, "no credits");
    let later = NOW + millis(10);
    caller.cluster.observed(id(0), load(later, 0, 0), later);
    assert_eq!(caller.round(later), [(0, id(0))]);
}

#[test]
fn the_more_important_go_first_and_users_of_a_class_by_turns() {
    let mut caller = Caller::new(1);
    assert_eq!(caller.come(99, &of_user(1, 0), NOW), Ok(id(0)));
    let eager = (0..4).map(|number| (number, of_user(5, 1)));
    let others = [(4, of_user(5, 2)), (5, of_user(2, 3)), (6, of_user(5, 2))];
    for (number, request) in eager.chain(others) {
        caller.come(number, &request, NOW).unwrap_err();
    }
    let mut order = Vec::new();
    let mut sent = NOW;
    for turn in 1..=7 {
        let now = NOW + turn * RUN;
        caller.ends(id(0), sent, now);
        order.extend(caller.round(now).into_iter().map(|(number, _)| number));
        sent = now;
    }
    assert_eq!(order, [5, 0, 4, 1, 6, 2, 3]);
}

/// A request of this user that waits for as long as that.
fn hold(queue: &mut WaitQueue<u32>, cluster: &Cluster, user: u8, patience: Duration) -> Ticket {
    let why = (NOW + patience, Reason::HeldForEligible);
    let patience = Patience {
        came: NOW,
        deadline: Some(NOW + patience),
    };
    queue.hold(cluster, of_user(5, user), patience, why, user.into())
}

#[test]
fn who_goes_without_being_served_has_had_no_turn() {
    let (mut queue, cluster) = (WaitQueue::default(), fleet(1));
    let gone = [(); 3].map(|()| hold(&mut queue, &cluster, 1, RUN));
    for ticket in gone {
        queue.remove(ticket).unwrap();
    }
    let first = hold(&mut queue, &cluster, 1, RUN);
    let second = hold(&mut queue, &cluster, 2, RUN);
    assert!(first < second);
}

#[test]
fn who_gives_up_before_its_turn_does_not_put_others_behind_those_who_wait() {
    let (mut queue, mut cluster) = (WaitQueue::default(), fleet(1));
    cluster.assigned(id(0), &of_user(5, 9), NOW);
    let eager = [(); 3].map(|()| hold(&mut queue, &cluster, 1, RUN));
    hold(&mut queue, &cluster, 1, millis(1));
    let (mut round, later) = (Round::default(), NOW + millis(2));
    let shed = queue.next(&cluster, &mut round, later, &mut rng(1));
    assert!(matches!(shed.unwrap().2.outcome, Outcome::Shed { .. }));
    let other = hold(&mut queue, &cluster, 2, RUN);
    assert!(eager[0] < other && other < eager[1]);
}

#[test]
fn who_fills_the_queue_makes_room_for_others_of_its_class() {
    let full = Holding {
        max_held: 2,
        ..Holding::beside(Overload::Slots)
    };
    let mut caller = Caller {
        cluster: holding(1, full),
        held: WaitQueue::default(),
    };
    caller.come(0, &of_user(5, 1), NOW).unwrap();
    for number in 1..=2 {
        caller.come(number, &of_user(5, 1), NOW).unwrap_err();
    }
    caller.come(3, &of_user(5, 2), NOW).unwrap_err();
    let (cluster, patience) = (&caller.cluster, Patience::new(NOW));
    let one_more = of_user(5, 1);
    let decision = caller
        .held
        .decide(cluster, &one_more, patience, NOW, &mut rng(1));
    assert!(matches!(decision.outcome, Outcome::Shed { .. }));
}

#[test]
fn without_slots_those_of_a_class_go_by_rank() {
    let mut queue = WaitQueue::default();
    let policy = Policy {
        overload: Overload::Dagor,
        ..Policy::default()
    };
    let cluster = cluster(policy, vec![host(0)]);
    let why = (NOW + FETCH, Reason::HeldForEligible);
    let mut hold = |user| {
        let request = Request {
            keys: Keys::default(),
            rank: Rank::new(5, user),
        };
        queue.hold(&cluster, request, Patience::new(NOW), why, user)
    };
    let tickets = [hold(9), hold(9), hold(3)];
    assert!(tickets[2] < tickets[0] && tickets[0] < tickets[1]);
}

#[test]
fn what_the_proxys_other_threads_have_there_takes_cores_too() {
    let mut caller = Caller::new(1);
    let request = of_user(1, 0);
    caller
        .cluster
        .set_peers_in_flight([(id(0), 1)].into_iter(), NOW);
    caller.come(0, &request, NOW).unwrap_err();
    caller.cluster.set_peers_in_flight([].into_iter(), NOW);
    assert_eq!(caller.round(NOW), [(0, id(0))]);
}
