// SPDX-License-Identifier: Apache-2.0
//! Who comes next where events branch and join, under each order.

use super::*;
use crate::scheduler::{Graph, QuantumSettings};
use crate::workflow::{Plan, Workflow};

/// A source that sends to two actors, which send to one that has the output.
fn diamond() -> Graph {
    Graph::new(vec![vec![1, 2], vec![3], vec![3], Vec::new()])
}

fn plan(order: Order) -> Plan {
    Plan {
        graph: diamond(),
        classes: vec![10, 10, 10, 5],
        cores: 1,
        order,
        source_batch: 1,
    }
}

/// The actors in the order in which they were fired, and the events that left, where so many come at the start.
/// Actors take so many milliseconds.
fn played(plan: Plan, events: usize, lasts: [u32; 4]) -> (Vec<usize>, Vec<usize>) {
    let graph = plan.graph.clone();
    let mut workflow = Workflow::new(plan);
    (0..events).for_each(|event| workflow.push(0, event));
    let (mut now, mut fired, mut left) = (Duration::ZERO, Vec::new(), Vec::new());
    while let Some(firing) = workflow.start(now) {
        assert_eq!(workflow.start(now), None, "one core");
        let actor = firing.actor;
        now += lasts[actor] * MS;
        fired.push(actor);
        let to = |event: usize| graph.edges(actor).iter().map(move |to| (*to, event));
        let sent = firing.events.into_iter().flat_map(to).collect();
        left.extend(workflow.finish(now, actor, sent));
    }
    assert_eq!(workflow.waiting(), 0, "every event is served");
    (fired, left)
}

#[test]
fn every_order_serves_all_events_of_an_actor_in_turn() {
    let orders = [
        Order::Priority,
        Order::RoundRobin { quantum: 3 * MS },
        Order::Quantum(QuantumSettings::default()),
        Order::RateBased,
    ];
    for order in orders {
        let (fired, left) = played(plan(order.clone()), 5, [1, 2, 3, 1]);
        let firings = |actor| fired.iter().filter(|fired| **fired == actor).count();
        assert_eq!([0, 1, 2, 3].map(firings), [5, 5, 5, 10], "{order:?}");
        // Each event comes by two ways, which may lie apart; of one way they stay in turn.
        let firsts: Vec<_> = (0..5).map(|e| left.iter().position(|l| *l == e)).collect();
        assert!(firsts.is_sorted(), "{order:?}: {left:?}");
    }
}

#[test]
fn priority_serves_the_output_first_and_else_who_came_first() {
    let (fired, _) = played(plan(Order::Priority), 2, [1; 4]);
    assert_eq!(fired, [0, 0, 1, 3, 2, 3, 1, 3, 2, 3]);
}

#[test]
fn rate_based_takes_in_an_event_when_it_has_nothing_else() {
    let (fired, _) = played(plan(Order::RateBased), 2, [1, 2, 3, 1]);
    let second_source = fired.iter().rposition(|actor| *actor == 0);
    assert_eq!(second_source, Some(5), "{fired:?}");
    // Of the branches the cheaper one yields more for its time.
    assert_eq!(fired[6..], [1, 3, 2, 3]);
}

#[test]
fn a_source_is_due_after_so_many_others_under_quantum() {
    let settings = QuantumSettings {
        source_interval: 2,
        priorities: vec![10, 10, 5],
        ..QuantumSettings::default()
    };
    let (fired, _) = played(plan(Order::Quantum(settings)), 4, [1; 4]);
    let sources: Vec<_> = (0..fired.len()).filter(|at| fired[*at] == 0).collect();
    assert_eq!(sources, [0, 3, 6, 9]);
}

#[test]
fn a_source_may_take_in_several_events_at_once() {
    let order = Order::RateBased;
    let plan = Plan {
        source_batch: 3,
        ..plan(order)
    };
    let (fired, _) = played(plan, 4, [1; 4]);
    assert_eq!(fired.iter().filter(|actor| **actor == 0).count(), 2);
}

#[test]
fn an_actor_that_runs_is_not_fired_again_on_another_core() {
    let mut workflow = Workflow::new(plan(Order::ThreadPerJob));
    let now = Duration::ZERO;
    workflow.push(1, 'a');
    workflow.push(2, 'b');
    let first = workflow.start(now).unwrap();
    assert_eq!((first.actor, first.events), (1, vec!['a']));
    workflow.push(1, 'c');
    assert_eq!(workflow.start(now).unwrap().actor, 2, "a thread each");
    assert_eq!(workflow.start(now), None, "actor 1 runs");
    assert!(workflow.finish(now, 1, vec![(3, 'a')]).is_empty());
    let next = [workflow.start(now), workflow.start(now)].map(|f| f.unwrap().events);
    assert_eq!(next, [vec!['c'], vec!['a']]);
    assert_eq!(workflow.finish(now, 3, vec![(4, 'a')]), ['a']);
    assert!(workflow.finish(now, 3, Vec::new()).is_empty(), "not fired");
}

#[test]
#[should_panic(expected = "an edge of actor 1")]
fn a_graph_without_direction_is_refused() {
    let _ = Graph::new(vec![vec![1], vec![0]]);
}
