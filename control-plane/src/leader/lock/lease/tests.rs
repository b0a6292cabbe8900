// SPDX-License-Identifier: Apache-2.0
//! The dialogue with an API server that does as each test wants.

use serde_json::json;

use super::fake::{Does, Fake};
use super::*;
use crate::leader::lock::Holder;

const DURATION: Duration = Duration::from_secs(15);

fn replica(fake: &Fake, name: &str) -> Lease {
    Lease::new(&fake.settings(DURATION), name, &format!("{name}:1"))
}

async fn look(lease: &Lease) -> Key {
    lease.read(0).await.unwrap().key
}

async fn holder(lease: &Lease) -> Holder {
    match look(lease).await {
        Key::Held(holder) => holder,
        key => panic!("{key:?}"),
    }
}

#[tokio::test]
async fn the_first_takes_it_the_second_sees_whose_it_is_and_gets_it_when_it_is_given_up() {
    let fake = Fake::start().await;
    let (one, two) = (replica(&fake, "one"), replica(&fake, "two"));
    let (first, second) = (one.open(), two.open());
    assert_eq!(look(&one).await, Key::Free);
    assert_eq!(look(&two).await, Key::Free);
    assert!(one.acquire(&first).await.unwrap());
    assert!(!two.acquire(&second).await.unwrap(), "409");
    let spec = fake.spec();
    assert_eq!(spec["holderIdentity"], format!("one one:1 {first}"));
    assert_eq!(spec["leaseDurationSeconds"], 15);
    assert_eq!(spec["leaseTransitions"], 1);
    let time = spec["acquireTime"].as_str().unwrap();
    assert!(time.ends_with('Z') && time.len() == "2006-01-02T15:04:05.000000Z".len());
    assert_eq!(spec["renewTime"], time);
    for (lease, own) in [(&one, true), (&two, false)] {
        let holder = holder(lease).await;
        assert_eq!(
            (&*holder.name, &*holder.address, holder.index),
            ("one", "one:1", 1)
        );
        assert_eq!(lease.lapses_at().is_some(), own);
    }
    assert!(one.renew(&first).await.unwrap());
    assert_ne!(fake.spec()["renewTime"], time);
    one.release(&first).await.unwrap();
    assert_eq!(fake.spec()["holderIdentity"], Value::Null);
    assert!(!one.renew(&first).await.unwrap());
    assert_eq!(look(&two).await, Key::Free);
    assert!(two.acquire(&second).await.unwrap());
    assert_eq!(holder(&one).await.index, 2);
}

#[tokio::test]
async fn a_leader_that_was_deposed_or_whose_lease_was_deleted_learns_it_by_renewing() {
    let fake = Fake::start().await;
    let (one, two) = (replica(&fake, "one"), replica(&fake, "two"));
    let (first, second) = (one.open(), two.open());
    look(&one).await;
    assert!(one.acquire(&first).await.unwrap());
    holder(&two).await;
    two.release(&first).await.unwrap();
    assert!(two.acquire(&second).await.unwrap());
    assert!(!one.renew(&first).await.unwrap());
    assert_eq!(holder(&one).await.name, "two");
    fake.world.lock().unwrap().lease = None;
    assert!(!two.renew(&second).await.unwrap());
    assert_eq!(look(&two).await, Key::Free);
    assert!(two.acquire(&second).await.unwrap());
    assert_eq!(holder(&two).await.index, 3, "goes on from what it has seen");
}

#[tokio::test]
async fn somebody_who_writes_a_label_does_not_end_the_lead_and_one_who_always_does_is_named() {
    let fake = Fake::start().await;
    let one = replica(&fake, "one");
    let session = one.open();
    look(&one).await;
    assert!(one.acquire(&session).await.unwrap());
    {
        let mut world = fake.world.lock().unwrap();
        let mut lease = world.lease.clone().unwrap();
        lease["metadata"]["labels"] = json!({ "theirs": "stays" });
        world.store(lease);
    }
    assert!(one.renew(&session).await.unwrap());
    let labels = |fake: &Fake| fake.world.lock().unwrap().lease.clone().unwrap();
    assert_eq!(labels(&fake)["metadata"]["labels"]["theirs"], "stays");
    fake.does(Does::Overtake);
    let error = one.renew(&session).await.unwrap_err();
    assert!(error.detail.contains("others write the Lease"), "{error}");
}

#[tokio::test]
async fn what_fails_is_an_error_and_changes_nothing() {
    let fake = Fake::start().await;
    let one = replica(&fake, "one");
    let session = one.open();
    look(&one).await;
    assert!(one.acquire(&session).await.unwrap());
    let lapses = one.lapses_at();
    let cases = [
        (
            Does::Fail(403),
            "403: it does not: a Role with get, create and update of the Lease weir-control in namespace weir-system",
        ),
        (Does::Fail(401), "401: it does not: the token is unknown"),
        (Does::Fail(410), "410: it does not"),
        (Does::Fail(500), "500: it does not"),
        (Does::Garbage, "expected value"),
    ];
    for (does, expected) in cases {
        fake.does(does);
        for error in [
            one.renew(&session).await.unwrap_err(),
            one.read(0).await.unwrap_err(),
        ] {
            assert!(error.to_string().contains(expected), "{does:?}: {error}");
            let denied = matches!(does, Does::Fail(401 | 403));
            assert_eq!(error.fault == Fault::Denied, denied);
        }
        assert_eq!(one.lapses_at(), lapses, "it was not renewed");
    }
    fake.does(Does::Answer);
    assert_eq!(holder(&one).await.name, "one");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_says_nothing_is_waited_for_only_so_long() {
    let fake = Fake::start().await;
    let one = replica(&fake, "one");
    one.open();
    fake.does(Does::Hang);
    assert_eq!(one.read(0).await.unwrap_err().fault, Fault::TimedOut);
}

#[tokio::test]
async fn a_lease_whose_answer_was_lost_is_taken_once_more_before_it_is_led_by() {
    let fake = Fake::start().await;
    let one = replica(&fake, "one");
    let session = one.open();
    look(&one).await;
    fake.does(Does::Swallow);
    one.acquire(&session).await.unwrap_err();
    fake.does(Does::Answer);
    assert_eq!(look(&one).await, Key::Free);
    assert!(one.acquire(&session).await.unwrap());
    assert_eq!(holder(&one).await.index, 2);
    assert_eq!(fake.world.lock().unwrap().writes, 2);
}

#[tokio::test]
async fn what_runs_out_is_looked_at_then() {
    let fake = Fake::start().await;
    let (one, two) = (replica(&fake, "one"), replica(&fake, "two"));
    let session = one.open();
    look(&one).await;
    assert!(one.acquire(&session).await.unwrap());
    holder(&two).await;
    let now = Instant::now();
    let left = |after: Duration| two.view().runs_out_in(now + after);
    assert!(left(Duration::ZERO).unwrap() > Duration::from_secs(1));
    assert!(left(Duration::from_secs(14)).unwrap() <= Duration::from_secs(1));
    assert_eq!(left(Duration::from_secs(15)), None);
}
