// SPDX-License-Identifier: Apache-2.0
//! Requests that leave a receipt, and those that are decided and not steered.

use std::collections::BTreeMap;
use std::time::Duration;

use prost::Message;
use weir_harness::{A, B, table, up};
use weir_policy::Reason;
use weir_tables::{decode_account, v1};

use super::{OK, UNAVAILABLE, closed, key};
use crate::destination;
use crate::disposition::Action;
use crate::exchange::Exchange;
use crate::fake::{FakeHost, FakeRequest, Worker, counted, shed_of};

fn with(policy: v1::Policy, hosts: &[&str]) -> v1::HostTable {
    v1::HostTable {
        policy: Some(policy),
        ..table(1, up(hosts))
    }
}

/// Each request leaves a receipt.
fn each() -> v1::Policy {
    v1::Policy {
        receipt_every: Some(1),
        ..Default::default()
    }
}

fn steered(percent: u32) -> v1::Policy {
    v1::Policy {
        steer_percent: Some(percent),
        ..each()
    }
}

fn receipts(record: &v1::ClusterRecord) -> Vec<v1::Receipt> {
    let stubs = record.receipts.iter();
    let decoded = stubs.map(|stub| v1::Receipt::decode(stub.receipt.as_slice()).unwrap());
    decoded.collect()
}

fn end(
    exchange: &mut Exchange<FakeHost>,
    request: &FakeRequest,
    at: &str,
    status: &[(&str, &str)],
) {
    request.answer(at, status);
    exchange.on_response(request);
    exchange.on_end(request);
}

#[test]
fn a_receipt_says_what_was_compared_and_what_came_of_it_and_decides_again() {
    let mut worker = Worker::with(&with(each(), &[A, B]));
    let request = key();
    let (mut exchange, _) = worker.ask(7, &request);
    let named = request.destination().unwrap();
    worker.host.pass(Duration::from_millis(3));
    let first = named.split(',').next().unwrap();
    end(&mut exchange, &request, first, OK);
    let record = worker.record();
    let [receipt] = receipts(&record).try_into().unwrap();
    assert_eq!(receipt.chosen.join(","), named);
    assert_eq!((receipt.host.as_str(), receipt.status), (first, 200));
    assert_eq!(receipt.duration_us, 3_000);
    assert_eq!(
        (receipt.reason.as_str(), receipt.steered),
        ("not_cached", true)
    );
    assert_eq!((receipt.key_count, receipt.keys.len()), (1, 1));
    assert_eq!(receipt.table_version, 1);
    let (ranked, reason) = decode_account(&receipt).unwrap().decide().unwrap();
    assert_eq!(reason, Reason::NotCached);
    let address = |index: u32| {
        let look = receipt.looks.iter().find(|look| look.index == index);
        look.unwrap().address.as_str()
    };
    let again: Vec<_> = ranked
        .as_slice()
        .iter()
        .map(|host| address(*host))
        .collect();
    assert_eq!(again.join(","), named);
}

#[test]
fn receipts_are_as_few_as_the_policy_says_and_the_oldest_are_forgotten() {
    let mut worker = Worker::with(&with(v1::Policy::default(), &[A]));
    let none = v1::Policy {
        receipt_every: Some(0),
        ..Default::default()
    };
    let answer = |worker: &mut Worker, context| {
        let request = key();
        let (mut exchange, _) = worker.ask(context, &request);
        end(&mut exchange, &request, A, OK);
    };
    for (policy, wanted) in [(none, 0..=0), (each(), 16..=16)] {
        worker.push(&v1::HostTable {
            version: 2,
            ..with(policy, &[A])
        });
        worker.tick(100);
        for context in 0..100 {
            answer(&mut worker, context);
        }
        let left = worker.record().receipts.len();
        assert!(wanted.contains(&left), "{left} for {policy:?}");
    }
    for _ in 0..60 {
        worker.tick(100);
    }
    assert_eq!(worker.record().receipts.len(), 0, "after their time");
}

#[test]
fn a_second_selection_is_told_of_in_receipts_and_steers_nothing() {
    let policy = v1::Policy {
        selection: v1::Selection::Baseline.into(),
        beside: v1::Selection::Estimate.into(),
        ..each()
    };
    let mut worker = Worker::with(&with(policy, &[A, B]));
    // The key's place in the shuffled list is where much is to be done.
    let busy = key();
    let (_first, _) = worker.ask(1, &busy);
    let first = busy.destination().unwrap();
    let first = first.split(',').next().unwrap();
    for context in 2..20 {
        let (exchange, _) = worker.ask(context, &busy);
        std::mem::forget(exchange);
    }
    let request = key();
    let (mut exchange, _) = worker.ask(30, &request);
    let named = request.destination().unwrap();
    assert!(
        named.starts_with(first),
        "the first selection is carried out"
    );
    end(&mut exchange, &request, first, OK);
    let [receipt] = receipts(&worker.record()).try_into().unwrap();
    assert_eq!(receipt.chosen.join(","), named);
    assert_eq!(
        (receipt.reason.as_str(), receipt.looks.len()),
        ("baseline", 0)
    );
    let beside = receipt.beside.unwrap();
    assert_eq!(beside.selection(), v1::Selection::Estimate);
    let (would, made) = (beside.first.unwrap(), beside.made.unwrap());
    assert_eq!(would.address, beside.chosen[0]);
    assert_eq!(made.address, first);
    assert!(would.wait_ns <= made.wait_ns);
}

#[test]
fn in_shadow_the_choice_is_made_and_envoys_is_carried_out() {
    let mut worker = Worker::with(&with(steered(0), &[A, B]));
    let request = FakeRequest::new(&[("x-weir-key", "key"), (destination::HEADER, "10.9.9.9:1")]);
    let (mut exchange, action) = worker.ask(7, &request);
    assert_eq!((action, request.destination()), (Action::Continue, None));
    assert_eq!(request.reason(), "not_steered");
    assert_eq!(worker.in_flight(B), 0, "nobody knows yet where it is");
    request.answer(B, OK);
    exchange.on_response(&request);
    assert_eq!(worker.in_flight(B), 1);
    exchange.on_end(&request);
    assert_eq!(worker.in_flight(B), 0);
    let record = worker.record();
    assert_eq!(counted(&record), (1, 1));
    let [receipt] = receipts(&record).try_into().unwrap();
    assert_eq!((receipt.steered, receipt.host.as_str()), (false, B));
    assert_eq!(receipt.chosen.len(), 2);
    assert_eq!(record.steered, None, "there are no shares to compare");
    assert_eq!(record.unsteered, None);
    // It was sent there, so it is assumed to be there.
    let again = key();
    let (_exchange, _) = worker.ask(8, &again);
    let reasons = worker
        .host
        .metric("weir_decisions_total{reason=assumed_cached}");
    assert_eq!(reasons, 1);
}

#[test]
fn in_shadow_nothing_is_shed_and_nothing_waits() {
    for (name, shut) in [
        ("closed", closed()),
        ("holding", crate::fake::holding(1, 500)),
    ] {
        let mut shut = shut;
        let policy = shut.policy.as_mut().unwrap();
        (policy.steer_percent, policy.receipt_every) = (Some(0), Some(1));
        let mut worker = Worker::with(&shut);
        let request = key();
        let (mut exchange, action) = worker.ask(7, &request);
        assert_eq!(action, Action::Continue, "{name}");
        assert_eq!(request.answers(), vec![], "{name}");
        end(&mut exchange, &request, A, OK);
        let record = worker.record();
        assert_eq!((shed_of(&record), record.held), (0, 0), "{name}");
        let [receipt] = receipts(&record).try_into().unwrap();
        assert_eq!(receipt.outcome(), v1::ReceiptOutcome::Shed, "{name}");
        assert_eq!((receipt.steered, receipt.status), (false, 200));
    }
}

#[test]
fn of_some_percent_a_keys_requests_stay_together_and_both_shares_are_counted() {
    let mut worker = Worker::with(&with(steered(30), &[A]));
    let mut by_key = BTreeMap::<String, bool>::new();
    for context in 0..600 {
        let name = format!("key-{}", context % 200);
        let request = FakeRequest::new(&[("x-weir-key", &name)]);
        let (mut exchange, _) = worker.ask(context, &request);
        let is_steered = request.destination().is_some();
        let before = *by_key.entry(name).or_insert(is_steered);
        assert_eq!(before, is_steered);
        worker.host.pass(Duration::from_millis(1));
        let status = if is_steered { UNAVAILABLE } else { OK };
        end(&mut exchange, &request, A, status);
    }
    let steered = by_key.values().filter(|steered| **steered).count() as u64;
    assert!((30..=90).contains(&steered), "{steered} of 200");
    let record = worker.record();
    let share = |ended, failed, duration_us| {
        Some(v1::Share {
            ended,
            failed,
            duration_us,
            shed: 0,
        })
    };
    assert_eq!(record.steered, share(3 * steered, 3 * steered, 0));
    let others = 600 - 3 * steered;
    assert_eq!(record.unsteered, share(others, 0, others * 1_000));
}

#[test]
fn an_important_request_that_is_shed_leaves_a_receipt_of_that() {
    let mut shut = closed();
    shut.policy.as_mut().unwrap().receipt_every = Some(1);
    let mut worker = Worker::with(&shut);
    let request = key();
    let (mut exchange, action) = worker.ask(7, &request);
    assert_eq!(action, Action::Pause);
    exchange.on_response(&request);
    exchange.on_end(&request);
    let [receipt] = receipts(&worker.record()).try_into().unwrap();
    assert_eq!(receipt.outcome(), v1::ReceiptOutcome::Shed);
    assert_eq!((receipt.status, receipt.host.as_str()), (429, ""));
}

#[test]
fn what_hosts_beside_the_table_answer_is_no_failure() {
    let nowhere = v1::Host {
        state: v1::HostState::Down.into(),
        ..up(&[A]).remove(0)
    };
    let mut nobody = with(steered(100), &[]);
    nobody.hosts = vec![nowhere];
    nobody.policy.as_mut().unwrap().steer_percent = Some(50);
    let mut worker = Worker::with(&nobody);
    for context in 0..100 {
        let name = format!("key-{context}");
        let request = FakeRequest::new(&[("x-weir-key", &name)]);
        let (mut exchange, _) = worker.ask(context, &request);
        assert_eq!(request.destination(), None, "it is left to Envoy");
        let status = if context % 10 == 0 { UNAVAILABLE } else { OK };
        end(&mut exchange, &request, "10.9.9.9:1", status);
    }
    let record = worker.record();
    let [steered, unsteered] = [record.steered, record.unsteered].map(Option::unwrap_or_default);
    assert_eq!(steered.ended + unsteered.ended, 100);
    assert_eq!(steered.failed + unsteered.failed, 10);
    assert!(steered.ended > 20 && unsteered.ended > 20);
    let statuses = receipts(&record).into_iter().map(|receipt| receipt.status);
    let well = statuses.filter(|status| *status == 200).count();
    assert!(well > 0, "receipts have it too");
}

#[test]
fn a_tunnel_is_no_job_and_its_receipt_says_where_it_goes() {
    let mut worker = Worker::with(&with(each(), &[A]));
    let request = key();
    let (mut exchange, _) = worker.ask(7, &request);
    assert_eq!(worker.in_flight(A), 1);
    request.answer(A, &[(":status", "101")]);
    exchange.on_response(&request);
    assert_eq!(worker.in_flight(A), 0);
    worker.host.pass(Duration::from_secs(3600));
    exchange.on_end(&request);
    let record = worker.record();
    assert_eq!(counted(&record), (1, 1));
    let [receipt] = receipts(&record).try_into().unwrap();
    assert_eq!((receipt.host.as_str(), receipt.status), (A, 101));
}
