// SPDX-License-Identifier: Apache-2.0
use std::time::Duration;

use weir_events::layout::{OWNER, PID_NAMESPACE, RETIRED, SINCE_NS};
use weir_governor::run::Governor;
use weir_governor::sensed::Nanos;

use crate::kernel::Kernel;
use crate::producer::{Governed, Producer};

const IDLE: &str = "1000000";
const HOT: &str = "2000000";
const OVER: &str = "2600000";

#[test]
fn a_hot_function_makes_its_core_fast_and_faster_and_slow_again() {
    let mut node = Governed::new();
    assert_eq!(node.after(10), [IDLE; 4]);
    let mut thread = node.thread(3, 9, 1);
    thread.enter(1, node.now, Some(1));
    assert_eq!(node.after(10), [IDLE, HOT, IDLE, IDLE]);
    assert_eq!(node.after(440), [IDLE, OVER, IDLE, IDLE]);
    thread.leave(1, node.now, Some(1));
    assert_eq!(node.after(10), [IDLE; 4]);
    let book = node.book();
    assert_eq!((book.events.events, book.events.lost), (2, 0));
    assert_eq!(book.cores[1].transitions, 3);
    let hot = |r: &&weir_governor::book::Residency| r.rung == 1;
    let hot = book.cores[1].residency.iter().find(hot).unwrap();
    assert_eq!(hot.time, Duration::from_millis(440));
}

#[test]
fn events_that_are_lost_are_counted_and_leave_no_core_fast() {
    let mut node = Governed::new();
    let mut thread = node.thread(0, 9, 2);
    for _ in 0..100 {
        thread.enter(4, node.now, Some(2));
        thread.leave(4, node.now, Some(2));
    }
    assert_eq!(node.after(10), [IDLE; 4]);
    let events = node.book().events;
    assert!(
        events.lost >= 184 && events.lost + events.events == 200,
        "{events:?}"
    );
}

#[test]
fn the_lane_of_a_dead_thread_is_freed() {
    let mut node = Governed::new();
    let mut thread = node.thread(0, 9, 2);
    thread.enter(4, node.now, Some(2));
    assert_eq!(node.after(10)[2], HOT);
    node.kernel.dies(9);
    assert_eq!(node.pass(Duration::from_millis(300))[2], IDLE);
    assert_eq!(thread.load(OWNER), 0);
    assert_eq!(node.book().events.dead, 1);
}

#[test]
fn a_later_thread_with_the_same_number_is_another() {
    let mut node = Governed::new();
    let mut thread = node.thread(0, 9, 2);
    thread.enter(4, node.now, Some(2));
    node.kernel.thread(9, 78, 2);
    assert_eq!(node.pass(Duration::from_millis(300))[2], IDLE);
    assert_eq!(node.book().events.dead, 1);
}

#[test]
fn of_another_namespace_nothing_is_believed_and_nothing_freed() {
    let mut node = Governed::new();
    let mut thread = node.thread(0, 9, 2);
    node.kernel.dies(9);
    thread.store(PID_NAMESPACE, 1);
    thread.enter(4, node.now, Some(2));
    assert_eq!(node.pass(Duration::from_secs(5)), [IDLE; 4]);
    let events = node.book().events;
    assert_eq!((events.namespace, events.dead), (1, 0));
}

#[test]
fn a_lane_of_another_namespace_is_given_back_after_a_minute_without_an_event() {
    let mut node = Governed::new();
    let mut thread = node.thread(0, 9, 2);
    thread.store(PID_NAMESPACE, 1);
    thread.enter(4, node.now, Some(2));
    node.pass(Duration::from_secs(50));
    thread.leave(4, node.now, Some(2));
    node.pass(Duration::from_secs(55));
    assert_eq!(node.book().events.dead, 0, "it has said something since");
    node.pass(Duration::from_secs(10));
    assert_eq!(node.book().events.dead, 1);
    assert_eq!(node.book().events.lanes, 0);
}

#[test]
fn a_time_to_come_is_taken_as_now_and_counted() {
    let mut node = Governed::new();
    let mut thread = node.thread(0, 9, 2);
    thread.enter(4, Nanos(node.now.0 + 3_600_000_000_000), Some(2));
    assert_eq!(node.after(10)[2], HOT);
    assert!(node.book().events.future > 0);
}

#[test]
fn a_core_that_is_not_governed_is_passed_over_and_counted_once() {
    let mut node = Governed::new();
    let mut thread = node.thread(0, 9, 63);
    thread.enter(4, node.now, Some(63));
    assert_eq!(node.pass(Duration::from_millis(100)), [IDLE; 4]);
    assert_eq!(node.book().events.outside, 1);
}

#[test]
fn a_thread_that_moves_in_a_hot_function_is_followed() {
    let mut node = Governed::new();
    let mut thread = node.thread(0, 9, 1);
    thread.enter(4, node.now, Some(1));
    assert_eq!(node.after(5), [IDLE, HOT, IDLE, IDLE]);
    node.kernel.thread(9, 77, 3);
    assert_eq!(
        node.pass(Duration::from_millis(50)),
        [IDLE, IDLE, IDLE, HOT]
    );
}

#[test]
fn where_a_producer_cannot_know_the_core_the_kernel_is_asked() {
    let mut node = Governed::new();
    let mut thread = node.thread(0, 9, 3);
    thread.enter(4, node.now, None);
    assert_eq!(node.after(1), [IDLE, IDLE, IDLE, HOT]);
}

#[test]
fn calls_that_have_ended_make_the_tail() {
    let mut node = Governed::new();
    let mut thread = node.thread(0, 9, 0);
    for _ in 0..5 {
        thread.enter(4, node.now, Some(0));
        node.after(30);
        thread.leave(4, node.now, Some(0));
        node.after(970);
    }
    let tail = node.book().tail.unwrap();
    assert_eq!(tail.latency, Duration::from_millis(30));
    assert_eq!(tail.requests, 5);
}

#[test]
fn a_file_that_is_cut_off_makes_every_core_idle_and_is_replaced() {
    let mut node = Governed::new();
    let mut thread = node.thread(0, 9, 2);
    thread.enter(4, node.now, Some(2));
    assert_eq!(node.after(10)[2], HOT);
    let ring = std::fs::File::options()
        .write(true)
        .open(node.kernel.ring());
    ring.unwrap().set_len(5000).unwrap();
    assert_eq!(node.after(10), [IDLE; 4]);
    assert!(node.book().events.unreadable > 0);
    // Within a second there is a new file, and whoever attaches to it is heard.
    node.pass(Duration::from_secs(1));
    let mut thread = node.thread(0, 9, 2);
    thread.enter(4, node.now, Some(2));
    assert_eq!(node.after(10)[2], HOT);
}

#[test]
fn a_file_that_is_taken_away_is_made_again() {
    let mut node = Governed::new();
    let mut old = node.thread(0, 9, 2);
    old.enter(4, node.now, Some(2));
    assert_eq!(node.after(10)[2], HOT);
    std::fs::remove_file(node.kernel.ring()).unwrap();
    assert_eq!(node.pass(Duration::from_secs(1))[2], IDLE);
    assert_eq!(
        old.load_state(),
        RETIRED,
        "so that producers look for the new one"
    );
    let mut thread = Producer::claim(&node.kernel, 0, 9, 77);
    thread.enter(4, node.now, Some(2));
    assert_eq!(node.after(10)[2], HOT);
}

#[test]
fn what_is_no_ring_is_refused_before_any_core_is_touched() {
    let kernel = Kernel::new(1);
    std::fs::create_dir_all(kernel.ring().parent().unwrap()).unwrap();
    std::fs::write(kernel.ring(), "somebody's").unwrap();
    let config = kernel.config("{ three_state: {} }");
    let error = Governor::start(config, &kernel.root())
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("events: ") && error.contains("weir.events"),
        "{error}"
    );
    assert!(kernel.is_as_found(0));
    assert_eq!(std::fs::read(kernel.ring()).unwrap(), b"somebody's");
}

#[test]
fn whatever_is_in_the_lanes_no_core_gets_what_it_has_not() {
    let mut node = Governed::new();
    let thread = node.thread(0, 9, 2);
    for word in 0..32 {
        thread.store(8 * word, u64::MAX);
        for speed in node.after(10) {
            assert!([IDLE, HOT, OVER].contains(&speed.as_str()), "{speed}");
        }
    }
    thread.store(SINCE_NS, 1);
    node.pass(Duration::from_secs(15));
    assert_eq!(node.after(10), [IDLE; 4]);
}
