// SPDX-License-Identifier: Apache-2.0
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::kube::objects::{Event, Objects};

fn slice(name: &str, endpoints: usize, version: &str) -> Value {
    json!({
        "metadata": { "name": name, "resourceVersion": version },
        "addressType": "IPv4",
        "endpoints": vec![json!({ "addresses": ["10.0.0.1"] }); endpoints],
    })
}

fn line(kind: &str, object: Value) -> Vec<u8> {
    json!({ "type": kind, "object": object })
        .to_string()
        .into_bytes()
}

#[test]
fn a_page_tells_the_next_and_a_line_the_version_to_go_on_from() {
    let mut slices = Objects::<Slices>::default();
    let page = |next: &str, items: Value| {
        let metadata = json!({ "resourceVersion": "7", "continue": next });
        json!({ "metadata": metadata, "items": items }).to_string()
    };
    let next = slices.add(page("more", json!([slice("a", 1, "5")])).as_bytes());
    assert_eq!(next.unwrap().as_deref(), Some("more"));
    // Go writes nothing as null.
    assert_eq!(slices.add(page("", Value::Null).as_bytes()).unwrap(), None);
    assert_eq!((slices.kept.all.len(), &*slices.version), (1, "7"));
    let mut take = |kind, object| {
        let event = slices.take(&line(kind, object)).unwrap();
        (event, slices.version.clone(), slices.kept.endpoints)
    };
    let changed = |version: &str, endpoints| (Event::Changed, version.to_owned(), endpoints);
    assert_eq!(take("ADDED", slice("b", 2, "8")), changed("8", 3));
    assert_eq!(take("MODIFIED", slice("a", 5, "9")), changed("9", 7));
    assert_eq!(take("DELETED", slice("b", 2, "10")), changed("10", 5));
    let mark = json!({ "metadata": { "resourceVersion": "99" }, "endpoints": null });
    assert_eq!(take("BOOKMARK", mark), (Event::Same, "99".into(), 5));
    let expired = json!({ "kind": "Status", "code": 410, "message": "too old" });
    assert_eq!(take("ERROR", expired).0, Event::Expired);
}

#[test]
fn what_is_no_line_of_a_watch_is_refused_in_words() {
    let refused = |line: &[u8]| {
        let error = Objects::<Slices>::default().take(line).unwrap_err();
        (error.fault, error.detail)
    };
    let (fault, _) = refused(b"{\"type\":\"ADDED\",\"obj");
    assert_eq!(fault, Fault::BadBody);
    let (fault, detail) = refused(&line("MOVED", json!({})));
    assert_eq!(fault, Fault::BadBody);
    assert!(detail.contains("unknown variant `MOVED`"), "{detail}");
    let overloaded = json!({ "code": 429, "message": "too many requests" });
    let (fault, detail) = refused(&line("ERROR", overloaded));
    assert_eq!(fault, Fault::BadStatus);
    assert_eq!(detail, "429: too many requests");
    let (fault, detail) = refused(&line("ADDED", json!({ "endpoints": [{ "addresses": 5 }] })));
    assert_eq!(fault, Fault::BadBody);
    assert!(
        detail.contains("endpoints") || detail.contains("invalid type"),
        "{detail}"
    );
}

#[test]
fn more_endpoints_than_any_table_has_room_for_are_not_kept() {
    let mut slices = Slices::default();
    let mut put = |name: usize, endpoints| {
        let slice = slice(&name.to_string(), endpoints, "1");
        slices.put(serde_json::from_value(slice).unwrap())
    };
    let each = 1000;
    for name in 0..MAX_ENDPOINTS / each {
        put(name, each).unwrap();
        // Again is not more.
        put(name, each).unwrap();
    }
    let error = put(usize::MAX, each).unwrap_err();
    assert_eq!(error.fault, Fault::TooLarge);
    let mut empty = Slices::default();
    let mut put = |name: usize| {
        let mut slice = Slice::default();
        slice.metadata.name = name.to_string();
        empty.put(slice)
    };
    let error = (0..=MAX_ENDPOINTS + 1).find_map(|name| put(name).err());
    assert_eq!(error.unwrap().fault, Fault::TooLarge);
}

proptest! {
    #[test]
    fn however_they_came_slices_are_those_that_there_are(
        changes in proptest::collection::vec((0..6u8, 0..4usize, any::<bool>()), 0..60),
    ) {
        let mut slices = Objects::<Slices>::default();
        let mut there = BTreeMap::new();
        for (name, endpoints, is_put) in changes {
            let name = name.to_string();
            let (kind, endpoints) = match (is_put, there.contains_key(&name)) {
                (true, false) => ("ADDED", endpoints),
                (true, true) => ("MODIFIED", endpoints),
                (false, true) => ("DELETED", there[&name]),
                (false, false) => continue,
            };
            slices.take(&line(kind, slice(&name, endpoints, "1"))).unwrap();
            match is_put {
                true => drop(there.insert(name, endpoints)),
                false => drop(there.remove(&name)),
            }
        }
        let kept: BTreeMap<String, usize> = slices
            .kept
            .all
            .iter()
            .map(|(name, slice)| (name.clone(), slice.endpoints.len()))
            .collect();
        prop_assert_eq!(slices.kept.endpoints, there.values().sum::<usize>());
        prop_assert_eq!(kept, there);
    }
}
