// SPDX-License-Identifier: Apache-2.0
//! A policy that steers a share of the requests, and what it comes to.

use prost::Message;
use weir_fleet::view::shadow::compare;

use super::*;

const TENTH: &str = "policy: { mode: 10% }";

/// What one proxy has counted by second `second`: requests of both shares, of which those steered fail or take long.
fn told(
    proxy: &str,
    second: u64,
    (failed, mean_us): (u64, u64),
    receipts: Vec<v1::Receipt>,
) -> Update {
    let share = |per_second: u64, failed: u64, mean_us: u64| v1::Share {
        ended: second * per_second,
        failed: second * failed,
        duration_us: second * (per_second - failed) * mean_us,
        shed: 0,
    };
    let stub = |receipt: v1::Receipt| v1::Stub {
        age_ms: 10,
        receipt: receipt.encode_to_vec(),
    };
    let cluster = v1::ClusterRecord {
        cluster: "c".into(),
        steered: Some(share(10, failed, mean_us)),
        unsteered: Some(share(90, 0, 10_000)),
        receipts: receipts.into_iter().map(stub).collect(),
        ..Default::default()
    };
    let record = v1::VmRecord {
        epoch: 1,
        deadline_ns: u64::MAX,
        clusters: vec![cluster],
        published_ns: second * 1_000_000_000,
        ..Default::default()
    };
    let report = v1::Report {
        proxy: proxy.into(),
        records: vec![record],
        changes: true,
    };
    Update::Reported(report.into())
}

fn steered(script: &mut Script) -> u32 {
    script.table().policy().steer_percent
}

fn withdrawn(script: &Script) -> Option<String> {
    script.owner.view(script.now).clusters["c"]
        .withdrawn
        .clone()
}

/// Seconds until nothing is steered any more; none within a minute.
fn withdrawn_after(script: &mut Script, fares: (u64, u64)) -> Option<u64> {
    (1..60).find(|second| {
        script
            .pass(1000)
            .fold(told("p", *second, fares, Vec::new()));
        steered(script) == 0
    })
}

#[test]
fn a_policy_under_which_requests_fail_or_take_long_is_withdrawn_within_half_a_minute() {
    for (fares, word) in [((5, 10_000), "failed"), ((0, 40_000), "took")] {
        let mut script = Script::new(2, TENTH);
        assert_eq!(steered(&mut script), 10);
        let after = withdrawn_after(&mut script, fares).unwrap();
        assert!(after <= 30, "{after} s");
        assert!(withdrawn(&script).unwrap().contains(word));
        // It stays so while nothing is steered, and with the same policy again.
        let config = configured(&script._folder, &Script::text(3, TENTH));
        script.fold(News::Configured(config));
        assert_eq!(steered(&mut script), 0);
        let other = configured(&script._folder, &Script::text(3, "policy: { mode: 20% }"));
        script.fold(News::Configured(other));
        assert_eq!((steered(&mut script), withdrawn(&script)), (20, None));
    }
}

#[test]
fn a_policy_that_was_withdrawn_is_live_again_once_it_may_do_harm() {
    let mut script = Script::new(2, TENTH);
    withdrawn_after(&mut script, (5, 10_000)).unwrap();
    let may = Script::text(2, "policy: { mode: 10%, withdraw: false }");
    let config = configured(&script._folder, &may);
    script.fold(News::Configured(config));
    assert_eq!((steered(&mut script), withdrawn(&script)), (10, None));
}

#[test]
fn a_policy_that_does_no_harm_stays_and_so_does_one_that_may() {
    let mut script = Script::new(2, TENTH);
    assert_eq!(withdrawn_after(&mut script, (0, 12_000)), None);
    let mut script = Script::new(2, "policy: { mode: 10%, withdraw: false }");
    assert_eq!(withdrawn_after(&mut script, (9, 10_000)), None);
}

/// A receipt of a request that Envoy sent to a host without its data, beside one that has them.
fn receipt(id: u64) -> v1::Receipt {
    let look = |index: u32, has: v1::LookHas, fetch_ns: f64| v1::Look {
        index,
        address: format!("127.0.0.1:{}", index + 1),
        has: has.into(),
        lacks: u32::from(has == v1::LookHas::Lacks),
        fetch_ns,
        run_ns: 1e7,
        speed: 1.0,
        ..Default::default()
    };
    v1::Receipt {
        id,
        keys: vec![1],
        key_count: 1,
        selection: v1::Selection::Estimate.into(),
        reason: "known_cached".into(),
        outcome: v1::ReceiptOutcome::Send.into(),
        chosen: vec!["127.0.0.1:1".into(), "127.0.0.1:2".into()],
        limit: 2,
        looks: vec![
            look(0, v1::LookHas::Known, 0.0),
            look(1, v1::LookHas::Lacks, 4e7),
        ],
        host: "127.0.0.1:2".into(),
        status: 200,
        duration_us: 52_000,
        ..Default::default()
    }
}

#[test]
fn receipts_are_kept_once_decide_again_and_say_what_would_have_been() {
    let mut script = Script::new(2, "policy: { mode: shadow }");
    let broken = v1::Receipt {
        reason: "x".repeat(20_000),
        ..receipt(9)
    };
    script.pass(1000);
    script.fold(told(
        "p",
        1,
        (0, 10_000),
        vec![receipt(1), receipt(2), broken],
    ));
    script.pass(1000);
    script.fold(told("p", 2, (0, 10_000), vec![receipt(2), receipt(3)]));
    let asked = |script: &mut Script, after, most| {
        let (answer, mut receipts) = oneshot::channel();
        script.fold(News::Receipts(after, most, answer));
        receipts.try_recv().unwrap()
    };
    let all = asked(&mut script, 0, 10);
    let numbers: Vec<_> = all.iter().map(|it| (it.number, it.id.as_str())).collect();
    let id = |id: u64| format!("{id:016x}");
    assert_eq!(numbers, [(1, &*id(1)), (2, &*id(2)), (3, &*id(3))]);
    assert_eq!((all[0].age_ms, all[0].proxy.as_str()), (1010, "p"));
    let newest: Vec<_> = asked(&mut script, 1, 1)
        .iter()
        .map(|it| it.number)
        .collect();
    assert_eq!(newest, [3]);
    for receipt in &all {
        let line = serde_json::to_string(receipt).unwrap();
        let read: weir_fleet::view::receipt::ReceiptView = serde_json::from_str(&line).unwrap();
        assert_eq!(&read, receipt);
        assert_eq!(read.replay(), weir_fleet::view::receipt::Replay::Agrees);
        let mut other = read.clone();
        other.chosen.reverse();
        assert_eq!(other.replay(), weir_fleet::view::receipt::Replay::Differs);
    }
    let shadow = compare("c", &all, 2);
    assert_eq!((shadow.left, shadow.steered), (3, 0));
    assert_eq!(
        (shadow.envoy.hits, shadow.forecast.hits),
        (Some(0.0), Some(1.0))
    );
    assert_eq!(shadow.envoy.mean_ms, Some(52.0));
    // 50 ms were expected where it was, and 10 where it should have been.
    assert_eq!(shadow.forecast.mean_ms, Some(12.0));
}

/// Of a request that was steered to the second host, where a second selection would have chosen the first one.
fn with_second(id: u64, beside: v1::Selection) -> v1::Receipt {
    let receipt = v1::Receipt {
        steered: true,
        ..receipt(id)
    };
    let [first, made] = receipt.looks.clone().try_into().unwrap();
    v1::Receipt {
        chosen: vec![made.address.clone()],
        beside: Some(v1::Beside {
            selection: beside.into(),
            reason: "known_cached".into(),
            chosen: vec![first.address.clone()],
            first: Some(first),
            made: Some(made),
        }),
        ..receipt
    }
}

#[test]
fn a_second_selection_is_compared_with_what_was_steered() {
    let mut script = Script::new(2, "policy: { beside: dynamic }");
    assert_eq!(
        script.table().policy().beside,
        Some(weir_policy::Selection::Dynamic)
    );
    let elsewhere = v1::Receipt {
        host: "127.0.0.1:1".into(),
        ..with_second(4, v1::Selection::Dynamic)
    };
    script.pass(1000);
    let receipts = vec![
        with_second(1, v1::Selection::Random),
        with_second(2, v1::Selection::Dynamic),
        with_second(3, v1::Selection::Dynamic),
        elsewhere,
    ];
    script.fold(told("p", 1, (0, 10_000), receipts));
    let (answer, mut all) = oneshot::channel();
    script.fold(News::Receipts(0, 10, answer));
    let all = all.try_recv().unwrap();
    let beside = compare("c", &all, 2).beside.unwrap();
    assert_eq!((beside.selection.as_str(), beside.receipts), ("dynamic", 2));
    assert_eq!(beside.elsewhere, Some(1.0));
    assert_eq!(
        (beside.was.hits, beside.forecast.hits),
        (Some(0.0), Some(1.0))
    );
    // 50 ms were expected where they were, and 10 where the second selection would have sent them.
    assert_eq!(
        (beside.was.mean_ms, beside.forecast.mean_ms),
        (Some(52.0), Some(12.0))
    );
    let line = serde_json::to_string(&all[1]).unwrap();
    let read: weir_fleet::view::receipt::ReceiptView = serde_json::from_str(&line).unwrap();
    assert_eq!(read, all[1]);
}
