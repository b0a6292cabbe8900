// SPDX-License-Identifier: Apache-2.0
use proptest::prelude::*;

use super::*;

fn bytes(hex: &str) -> Vec<u8> {
    let pairs = hex.as_bytes().chunks(2);
    let byte = |pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap();
    pairs.map(byte).collect()
}

/// Written by msgspec 0.22 from structs with the fields of vLLM's `kv_events.py`: the tagged map of June 2026.
const MAPS: &str = "93cb41daa8dbe0200000938ba474797065ab426c6f636b53746f726564ac626c6f636b5f68617368657391cfdab89baa7b5857c0b1706172656e745f626c6f636b5f68617368c0a9746f6b656e5f69647394ce0002505ccd0368ccc6cd2368aa626c6f636b5f73697a6504a76c6f72615f6964c0a66d656469756da3475055a96c6f72615f6e616d65c0aa65787472615f6b65797391c0a967726f75705f69647800b26b765f63616368655f737065635f6b696e64ae66756c6c5f617474656e74696f6e84a474797065ac426c6f636b52656d6f766564ac626c6f636b5f68617368657391c4200101010101010101010101010101010101010101010101010101010101010101a66d656469756da3475055a967726f75705f6964780081a474797065b0416c6c426c6f636b73436c656172656400";
/// The same with `array_like`, and the fields of SGLang's.
const ARRAYS: &str = "93cb40040000000000009396ab426c6f636b53746f72656492fb07fa94010203ce0001117002c092ac426c6f636b52656d6f76656491fb91b0416c6c426c6f636b73436c6561726564c0";

fn events(bytes: &[u8]) -> Vec<Event<'_>> {
    let mut batch = Batch::read(bytes).unwrap();
    std::iter::from_fn(|| batch.next_event().unwrap()).collect()
}

fn hashes(mut list: List<'_>) -> Vec<String> {
    std::iter::from_fn(|| list.next_hash().map(|hash| hash.to_string())).collect()
}

fn tokens(mut list: List<'_>) -> Vec<u32> {
    std::iter::from_fn(|| list.next_token()).collect()
}

#[test]
fn events_are_read_from_maps() {
    let bytes = bytes(MAPS);
    assert_eq!(Batch::read(&bytes).unwrap().at, 1_789_095_808.5);
    let events = events(&bytes);
    let [
        Event::Stored(stored),
        Event::Removed(removed),
        Event::Cleared,
    ] = events.as_slice()
    else {
        panic!("{events:?}");
    };
    assert_eq!(hashes(stored.hashes), ["15760518052499183552"]);
    assert_eq!((stored.parent, stored.block_tokens), (None, 4));
    assert_eq!(tokens(stored.tokens), [151_644, 872, 198, 9064]);
    let place = Place {
        medium: Some("GPU"),
        group: Some(0),
    };
    assert_eq!((stored.place, removed.place), (place, place));
    assert!(!stored.slides && !stored.is_salted && !stored.has_adapter_id);
    assert!(stored.extra_keys.unwrap().next_has_no_key_but(None));
    assert_eq!(hashes(removed.hashes), ["01".repeat(32)]);
}

#[test]
fn events_are_read_from_arrays() {
    let bytes = bytes(ARRAYS);
    let events = events(&bytes);
    let [
        Event::Stored(stored),
        Event::Removed(removed),
        Event::Cleared,
    ] = events.as_slice()
    else {
        panic!("{events:?}");
    };
    assert_eq!(hashes(stored.hashes), ["-5", "7"]);
    assert_eq!(stored.parent, Some(Hash::Number(-6_i64 as u64, true)));
    assert_eq!(tokens(stored.tokens), [1, 2, 3, 70_000]);
    assert_eq!(hashes(removed.hashes), ["-5"]);
    assert_eq!(
        (removed.place, stored.place),
        (Place::default(), Place::default())
    );
}

#[test]
fn a_token_may_come_with_the_one_behind_it() {
    let batch =
        b"\x92\x01\x92\x95\xabBlockStored\x91\x07\xc0\x92\x92\x01\x02\x92\x02\xcd\x01\x00\x02\
        \x95\xabBlockStored\x91\x08\x07\x91\x92\x05\xa1x\x01";
    let events = events(batch);
    let [Event::Stored(first), Event::Stored(second)] = events.as_slice() else {
        panic!("{events:?}");
    };
    assert_eq!((tokens(first.tokens), first.block_tokens), (vec![1, 2], 2));
    assert_eq!((tokens(second.tokens), second.block_tokens), (vec![5], 1));
    for no_token in [&b"\x90"[..], b"\x91\xa1x", b"\x91\x91\x01"] {
        let event = [
            b"\x92\x01\x91\x85\xa4type\xabBlockStored\xa9token_ids\x91",
            no_token,
        ];
        let event = event.concat();
        let read = Batch::read(&event).and_then(|mut batch| batch.next_event());
        assert_eq!(read.unwrap_err(), Malformed::Type("token_ids"));
    }
}

#[test]
fn a_salt_in_the_place_of_the_adapters_name_is_one() {
    let batch = b"\x92\x01\x92\x98\xabBlockStored\x91\x07\xc0\x91\x01\x01\xc0\xa3GPU\x81\xaacache_salt\xa1s\
        \x92\xacBlockRemoved\x91\x07";
    let events = events(batch);
    let [Event::Stored(stored), Event::Removed(_)] = events.as_slice() else {
        panic!("{events:?}");
    };
    assert!(stored.is_salted && stored.adapter.is_none());
}

#[test]
fn fields_and_kinds_of_later_versions_are_passed_over() {
    let batch = [
        &b"\x94\xcb\x40\x04\0\0\0\0\0\0\x93"[..],
        b"\x92\xa9BlockSeen\x81\xa1a\x92\x01\x02",
        b"\x96\xacBlockRemoved\x91\x07\xc0\xc0\xc0\xc3",
        b"\x83\xa5later\x81\xa1a\xc7\x02\x05ab\xa4type\xacBlockRemoved\xacblock_hashes\x90",
        b"\x00\xc3",
    ];
    let batch = batch.concat();
    let events = events(&batch);
    assert!(matches!(
        events.as_slice(),
        [Event::Unknown, Event::Removed(one), Event::Removed(none)]
            if one.hashes.len() == 1 && none.hashes.is_empty()
    ));
}

#[test]
fn what_is_no_batch_is_refused_with_the_field() {
    let batch = |event: &[u8]| [&b"\x92\x01\x91"[..], event].concat();
    let of = |bytes: &[u8]| -> Malformed {
        Batch::read(bytes)
            .and_then(|mut batch| batch.next_event())
            .unwrap_err()
    };
    assert_eq!(of(b""), Malformed::Type("the batch"));
    assert_eq!(of(b"\x91\x01"), Malformed::Missing("ts or events"));
    assert_eq!(of(b"\x92\xa1x\x90"), Malformed::Type("ts"));
    assert_eq!(of(&batch(b"")), Malformed::Short);
    assert_eq!(of(&batch(b"\x07")), Malformed::Type("an event"));
    assert_eq!(of(&batch(b"\x90")), Malformed::Missing("an event's kind"));
    assert_eq!(
        of(&batch(b"\x91\xacBlockRemoved")),
        Malformed::Missing("block_hashes")
    );
    assert_eq!(
        of(&batch(b"\x92\xacBlockRemoved\x91\xa1x")),
        Malformed::Type("block_hashes")
    );
    let no_token = b"\x85\xa4type\xabBlockStored\xa9token_ids\x91\xcf\0\0\0\x01\0\0\0\0";
    assert_eq!(of(&batch(no_token)), Malformed::Type("token_ids"));
    assert_eq!(
        of(&batch(b"\x92\xacBlockRemoved\xdd\xff\xff\xff\xff\x01")),
        Malformed::Short
    );
}

/// All that can be read of it.
fn read_all(bytes: &[u8]) -> usize {
    let Ok(mut batch) = Batch::read(bytes) else {
        return 0;
    };
    let mut events = 0;
    while let Ok(Some(event)) = batch.next_event() {
        events += 1;
        if let Event::Stored(stored) = event {
            assert_eq!(hashes(stored.hashes).len(), stored.hashes.len());
            assert_eq!(tokens(stored.tokens).len(), stored.tokens.len());
        }
    }
    events
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        read_all(&bytes);
    }

    #[test]
    fn no_damage_makes_it_panic(
        is_map in any::<bool>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut bytes = bytes(if is_map { MAPS } else { ARRAYS });
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        read_all(&bytes);
    }
}
