// SPDX-License-Identifier: Apache-2.0
//! EMULATED: real threads on a real clock, and firings that burn as much CPU time as the model says.
//!
//! Under all orders but one the director fires the actors itself, one after another. `thread-per-job` is document 003's
//! PNCWF: a thread for each actor, which waits at its queue, and the operating system shares the core among them.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};
use weir_executor::workflow::Plan;
use weir_executor::{Order, Workflow};

use super::actor::{self, ACTORS, Actor, Event, SOURCE};
use super::run::{Results, Work, fire};

pub(super) fn run(plan: Plan, work: Work<'_>) -> Results {
    match plan.order {
        Order::ThreadPerJob => thread_per_actor(work),
        _ => director(plan, work),
    }
}

fn director(plan: Plan, work: Work<'_>) -> Results {
    let mut workflow = Workflow::new(plan);
    let mut actors = actor::all();
    let mut results = Results::default();
    let mut arrivals = work.reports.iter().peekable();
    let began = Instant::now();
    loop {
        let arrives = |at: Duration| at + work.input.before();
        let now = began.elapsed();
        while let Some(report) = arrivals.next_if(|report| arrives(report.at) <= now) {
            workflow.push(SOURCE, Event::Report(*report));
        }
        let Some(firing) = workflow.start(now) else {
            let Some(next) = arrivals.peek() else {
                return results;
            };
            sleep(arrives(next.at).saturating_sub(began.elapsed()));
            continue;
        };
        let actor = firing.actor;
        let sent = spend((actor, &mut actors[actor]), firing.events, work);
        let now = began.elapsed();
        for result in workflow.finish(now, actor, sent) {
            results.take(now, result, work.reports);
        }
    }
}

/// An event, and when it was sent.
type Sent = (Duration, Event);

fn thread_per_actor(work: Work<'_>) -> Results {
    let (mut queues, mut waiting): (Vec<Sender<Sent>>, Vec<_>) =
        (0..=ACTORS).map(|_| channel()).unzip();
    let results_at = waiting.pop();
    let began = Instant::now();
    thread::scope(|scope| {
        for ((number, actor), events) in actor::all().into_iter().enumerate().zip(waiting) {
            let to = queues.iter().enumerate();
            let to = to.map(|(to, queue)| actor::sends(number, to).then(|| queue.clone()));
            let to: Vec<_> = to.collect();
            scope.spawn(move || serve((number, actor), &events, &to, began, work));
        }
        // A thread ends when nobody is left who could send to it.
        let input = queues.swap_remove(SOURCE);
        drop(queues);
        scope.spawn(move || {
            for report in work.reports {
                let at = report.at + work.input.before();
                sleep(at.saturating_sub(began.elapsed()));
                if input.send((at, Event::Report(*report))).is_err() {
                    return;
                }
            }
        });
        let mut results = Results::default();
        for (at, event) in results_at.into_iter().flatten() {
            results.take(at, event, work.reports);
        }
        results
    })
}

/// An actor on a thread of its own, which takes in one event after another.
fn serve(
    (number, mut actor): (usize, Actor),
    events: &Receiver<Sent>,
    to: &[Option<Sender<Sent>>],
    began: Instant,
    work: Work<'_>,
) {
    for (_, event) in events {
        for (next, event) in spend((number, &mut actor), vec![event], work) {
            if let Some(queue) = &to[next] {
                // It has ended only if it has failed, which the scope tells.
                let _ = queue.send((began.elapsed(), event));
            }
        }
    }
}

/// Fires an actor and holds the core for as long as that takes.
fn spend(
    (number, actor): (usize, &mut Actor),
    events: Vec<Event>,
    work: Work<'_>,
) -> Vec<(usize, Event)> {
    let since = cpu_time();
    let taken = events.len();
    sleep(work.input.within(number, taken));
    let sent = fire(actor, events);
    let cost = work.costs.firing(number, taken, sent.len());
    while cpu_time().saturating_sub(since) < cost {
        std::hint::spin_loop();
    }
    sent
}

/// What this thread has had of a CPU.
fn cpu_time() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::MAX, Duration::from)
}
