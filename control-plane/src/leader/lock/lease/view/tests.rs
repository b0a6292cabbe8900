// SPDX-License-Identifier: Apache-2.0

use crate::config::Access;
use proptest::prelude::*;

use super::*;

const DURATION: Duration = Duration::from_secs(15);
const OURS: &str = "0123456789abcdef0123456789abcdef";
const THEIRS: &str = "fedcba9876543210fedcba9876543210";

fn view() -> View {
    let settings = Settings {
        namespace: "weir-system".to_owned(),
        name: "weir-control".to_owned(),
        duration: DURATION,
        access: Access::Pod,
    };
    let mut view = View::new(&settings, "a", "10.0.0.1:1");
    view.open(OURS);
    view
}

fn lease(version: u64, spec: Value) -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": "weir-control",
            "resourceVersion": version.to_string(),
            "labels": { "theirs": "stays" },
        },
        "spec": spec,
    })
}

fn theirs(renewed: u64) -> Value {
    json!({
        "holderIdentity": format!("b 10.0.0.2:1 {THEIRS}"),
        "leaseDurationSeconds": 15,
        "renewTime": format!("1970-01-01T00:00:{renewed:02}.000000Z"),
        "leaseTransitions": 3,
    })
}

fn see(view: &mut View, object: &Value, now: Instant) -> Key {
    view.see(Some(object.to_string().as_bytes()), now).unwrap();
    view.key(now)
}

fn is_held(key: &Key) -> bool {
    matches!(key, Key::Held(_))
}

/// Takes what it may, as the API server would store it.
fn take(view: &mut View, now: Instant) -> Value {
    let taken = view.taken(OURS, "now", now).unwrap();
    let (Taken::New(mut object) | Taken::Over(mut object)) = taken;
    object["metadata"]["resourceVersion"] = json!("900");
    see(view, &object, now);
    view.claim(now);
    object
}

#[test]
fn a_lease_runs_out_when_it_was_seen_unchanged_for_its_duration_whatever_its_times_say() {
    let (mut view, start) = (view(), Instant::now());
    let key = see(&mut view, &lease(1, theirs(0)), start);
    let Key::Held(holder) = key else {
        panic!("{key:?}")
    };
    assert_eq!(
        (holder.name.as_str(), holder.address.as_str(), holder.index),
        ("b", "10.0.0.2:1", 3)
    );
    let late = start + DURATION - Duration::from_millis(1);
    // Somebody's label changes its version and not what counts.
    assert!(is_held(&see(&mut view, &lease(2, theirs(0)), late)));
    assert_eq!(view.runs_out_in(late), Some(Duration::from_millis(1)));
    assert_eq!(view.key(start + DURATION), Key::Free);
    assert!(is_held(&see(
        &mut view,
        &lease(3, theirs(1)),
        start + DURATION
    )));
    assert_eq!(view.runs_out_in(start + DURATION), Some(DURATION));
}

#[test]
fn the_lease_is_taken_with_the_version_that_was_read_and_all_else_as_it_was() {
    let (mut view, start) = (view(), Instant::now());
    see(&mut view, &lease(7, theirs(0)), start);
    assert_eq!(view.taken(OURS, "now", start), None, "another one's");
    let taken = view.taken(OURS, "now", start + DURATION);
    let expected = json!({
        "holderIdentity": format!("a 10.0.0.1:1 {OURS}"),
        "leaseDurationSeconds": 15,
        "acquireTime": "now",
        "renewTime": "now",
        "leaseTransitions": 4,
    });
    assert_eq!(taken, Some(Taken::Over(lease(7, expected))));
}

#[test]
fn where_there_is_none_it_is_made_and_goes_on_from_what_was_seen() {
    let (mut view, start) = (view(), Instant::now());
    assert_eq!(view.key(start), Key::Free);
    let Some(Taken::New(object)) = view.taken(OURS, "now", start) else {
        panic!("not new")
    };
    assert_eq!(object["spec"]["leaseTransitions"], 1);
    see(&mut view, &lease(7, theirs(0)), start);
    view.see(None, start).unwrap();
    let Some(Taken::New(object)) = view.taken(OURS, "now", start) else {
        panic!("not new")
    };
    assert_eq!(object["spec"]["leaseTransitions"], 4, "tables carry it");
    // As an administrator may make it, with nothing in it.
    let mut empty = lease(1, Value::Null);
    assert_eq!(see(&mut view, &empty, start), Key::Free);
    empty.as_object_mut().unwrap().remove("spec");
    assert_eq!(see(&mut view, &empty, start), Key::Free);
}

#[test]
fn who_holds_it_stops_before_others_may_take_it_and_takes_it_anew() {
    let (mut view, start) = (view(), Instant::now());
    let object = take(&mut view, start);
    assert!(is_held(&view.key(start)));
    let stops = view.lapses_at().unwrap();
    assert_eq!(stops, start + Duration::from_secs(10));
    assert_eq!(view.key(stops), Key::Free);
    let mut other = self::view();
    other.open(THEIRS);
    assert!(is_held(&see(&mut other, &object, start)));
    assert!(is_held(&other.key(stops)), "they wait");
    let object = take(&mut view, stops);
    assert_eq!(object["spec"]["leaseTransitions"], 2);
    assert!(is_held(&view.key(stops)));
}

#[test]
fn what_a_session_took_lapses_also_when_the_next_one_has_taken_nothing_yet() {
    let (mut view, start) = (view(), Instant::now());
    take(&mut view, start);
    let stops = view.lapses_at();
    view.see(None, start).unwrap();
    for session in ["1", "2"] {
        view.open(&session.repeat(SESSION_DIGITS));
        assert_eq!(view.lapses_at(), stops);
        assert!(!view.is_claimed(), "nothing is to be renewed");
    }
    view.open(OURS);
    let later = start + Duration::from_secs(1);
    let Some(Taken::New(mut object)) = view.taken(OURS, "now", later) else {
        panic!("not new")
    };
    object["metadata"]["resourceVersion"] = json!("2");
    assert_eq!(see(&mut view, &object, later), Key::Free, "not claimed");
    view.claim(later);
    assert!(is_held(&view.key(later)));
    assert_eq!(view.lapses_at(), Some(later + Duration::from_secs(10)));
}

#[test]
fn a_write_whose_answer_was_lost_is_not_built_upon() {
    let (mut view, start) = (view(), Instant::now());
    let Some(Taken::New(mut object)) = view.taken(OURS, "now", start) else {
        panic!("not new")
    };
    object["metadata"]["resourceVersion"] = json!("1");
    assert_eq!(see(&mut view, &object, start), Key::Free, "taken once more");
    assert!(view.taken(OURS, "now", start).is_some());
}

#[test]
fn only_what_the_session_holds_is_renewed_and_freed() {
    let (mut view, start) = (view(), Instant::now());
    assert_eq!(view.renewal(OURS, "later"), None);
    take(&mut view, start);
    let renewed = view.renewal(OURS, "later").unwrap();
    assert_eq!(renewed["spec"]["renewTime"], "later");
    assert_eq!(renewed["spec"]["acquireTime"], "now");
    assert_eq!(renewed["spec"]["leaseTransitions"], 1);
    assert_eq!(view.released(THEIRS), None);
    let freed = view.released(OURS).unwrap();
    assert_eq!(freed["spec"]["holderIdentity"], Value::Null);
    assert_eq!(see(&mut view, &freed, start), Key::Free);
    assert_eq!(view.renewal(OURS, "later"), None);
}

#[test]
fn what_is_somebody_elses_is_never_taken() {
    let (mut view, start) = (view(), Instant::now());
    for holder in [
        "kube-controller-manager_1",
        "a 10.0.0.1:1 short",
        "a nowhere 0123456789abcdef0123456789abcdef",
        "a 10.0.0.1:1 0123456789abcdef0123456789abcdef more",
        " ",
    ] {
        let object = lease(1, json!({ "holderIdentity": holder }));
        let key = see(&mut view, &object, start);
        assert!(
            matches!(&key, Key::Strange(why) if why.contains("which is no replica")),
            "{key:?}"
        );
        assert_eq!(view.taken(OURS, "now", start + 100 * DURATION), None);
    }
    let last = json!({ "leaseTransitions": i32::MAX });
    let key = see(&mut view, &lease(1, last), start);
    assert!(matches!(key, Key::Strange(why) if why.contains("delete it")));
}

#[test]
fn what_is_no_lease_changes_nothing() {
    let (mut view, start) = (view(), Instant::now());
    see(&mut view, &lease(1, theirs(0)), start);
    let no_version = json!({ "kind": "Lease", "metadata": {} }).to_string();
    let other = json!({ "kind": "Pod", "metadata": { "resourceVersion": "1" } }).to_string();
    let wide = lease(2, json!({ "leaseTransitions": 1_u64 << 40 })).to_string();
    for body in ["", "[]", "{}", "null", "<html>", &no_version, &other, &wide] {
        let error = view.see(Some(body.as_bytes()), start).unwrap_err();
        assert_eq!(error.fault, Fault::BadBody, "{body}");
        assert!(is_held(&view.key(start)));
    }
}

proptest! {
    /// Whatever a Lease says, a replica's own index goes up and stays in the 31 bits that tables have for it.
    #[test]
    fn whatever_is_written_the_index_is_in_its_range(
        duration: Option<i32>,
        transitions: Option<i32>,
        seconds in 0..100_000_u64,
    ) {
        let (mut view, start) = (view(), Instant::now());
        let spec = json!({
            "holderIdentity": format!("b 10.0.0.2:1 {THEIRS}"),
            "leaseDurationSeconds": duration,
            "leaseTransitions": transitions,
        });
        if let Key::Held(holder) = see(&mut view, &lease(1, spec), start) {
            prop_assert!((1..1 << 31).contains(&holder.index));
        }
        let now = start + Duration::from_secs(seconds);
        if let Some(Taken::Over(object)) = view.taken(OURS, "now", now) {
            let index = object["spec"]["leaseTransitions"].as_i64().unwrap();
            prop_assert!(index > i64::from(transitions.unwrap_or(0)).max(0) && index < 1 << 31);
        }
    }
}
