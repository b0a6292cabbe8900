// SPDX-License-Identifier: Apache-2.0

use proptest::prelude::*;

use super::*;

fn geometry() -> impl Strategy<Value = Geometry> {
    (1..=4096_u32, 4..=16_u32)
        .prop_map(|(lanes, events)| Geometry::new(lanes, 1 << events).unwrap())
}

fn event() -> impl Strategy<Value = Event> {
    let kind = prop_oneof![Just(Kind::Enter), Just(Kind::Leave)];
    let core = proptest::option::of(0..u16::MAX);
    (any::<u64>(), kind, 0..16_u8, core).prop_map(|(time_ns, kind, function, core)| Event {
        time_ns,
        kind,
        function: FunctionId::new(function).unwrap(),
        core,
    })
}

/// Other programs are compiled against these bytes: they change with the version alone.
#[test]
fn the_bytes_of_version_1_are_these() {
    let header = Header {
        geometry: Geometry::new(256, 512).unwrap(),
        retired: false,
        created_unix_ms: 0x0102_0304_0506_0708,
    };
    let expected = *b"WEIREVT1\
        \x01\0\0\0\x00\x01\0\0\x00\x02\0\0\x10\0\0\0\
        \x01\0\0\0\0\0\0\0\
        \x08\x07\x06\x05\x04\x03\x02\x01";
    assert_eq!(header.encode(), expected);

    let event = Event {
        time_ns: 0x1122_3344_5566_7788,
        kind: Kind::Leave,
        function: FunctionId::new(11).unwrap(),
        core: Some(0x0304),
    };
    let words = [0x1122_3344_5566_7788, 0x0304_0b02_89ab_cdef];
    assert_eq!(event.encode(0x0123_4567_89ab_cdef), words);
    let elsewhere = Event {
        core: None,
        ..event
    };
    assert_eq!(elsewhere.encode(0)[1] >> 48, 0xffff);

    let owner = Owner { pid: 7, tid: 9 };
    assert_eq!(owner.word(), 0x0000_0009_0000_0007);
    assert_eq!(Owner::from_word(owner.word()), Some(owner));
    assert_eq!(Owner::from_word(0), None);
}

#[test]
fn the_places_of_version_1_are_these() {
    let geometry = Geometry::new(4, 16).unwrap();
    assert_eq!(geometry.head(1), 4096 + 256);
    assert_eq!(geometry.since(1, 2), 4096 + 256 + 128 + 16);
    assert_eq!(geometry.event(0, 0), 4096 + 4 * 256);
    assert_eq!(geometry.event(1, 18), 4096 + 4 * 256 + (16 + 2) * 16);
    assert_eq!(geometry.file_bytes(), 4096 + 4 * 256 + 4 * 16 * 16);
    assert_eq!(Geometry::default().file_bytes(), 1_118_208);
}

#[test]
fn a_header_that_is_wrong_is_refused_with_what_is_wrong() {
    let geometry = Geometry::new(4, 16).unwrap();
    let good = Header {
        geometry,
        retired: true,
        created_unix_ms: 1,
    };
    let bytes = geometry.file_bytes();
    assert_eq!(Header::check(&good.encode(), bytes), Ok(good));
    let refused = |at: usize, byte: u8, bytes: u64| {
        let mut page = good.encode();
        page[at] = byte;
        Header::check(&page, bytes).unwrap_err().to_string()
    };
    for (at, byte, expected) in [
        (
            0,
            b'w',
            "the first 8 bytes are [77, 45, 49, 52, 45, 56, 54, 31], those of a ring",
        ),
        (8, 2, "version is 2, this program knows 1"),
        (12, 0, "lanes is 0, expected 1 to 4096"),
        (13, 17, "lanes is 4356, expected 1 to 4096"),
        (
            16,
            8,
            "events_per_lane is 8, expected a power of two, 16 to 65536",
        ),
        (16, 17, "events_per_lane is 17, expected a power of two"),
        (20, 8, "functions is 8, expected 16"),
        (24, 3, "state is 3, expected 1 (live) or 2 (retired)"),
        (16, 32, "the file has 6144 bytes, expected 7168"),
    ] {
        let error = refused(at, byte, bytes);
        assert!(error.starts_with(expected), "{error}");
    }
    assert_eq!(
        refused(32, 9, bytes - 1),
        "the file has 6143 bytes, expected 6144"
    );
    let short = Header::check(&good.encode()[..39], bytes);
    assert!(matches!(short, Err(HeaderError::Length { .. })));
    assert!(matches!(
        Header::check(&[], 0),
        Err(HeaderError::Length { .. })
    ));
}

proptest! {
    #[test]
    fn an_event_is_what_it_was_encoded_from(event in event(), number: u64) {
        let words = event.encode(number);
        prop_assert_eq!(event_number(words[1]), number as u32);
        prop_assert_eq!(Event::decode(words), Some(event));
    }

    #[test]
    fn a_word_that_is_an_event_has_one_encoding(time: u64, word: u64) {
        if let Some(event) = Event::decode([time, word]) {
            prop_assert_eq!(event.encode(word), [time, word]);
        } else {
            let (kind, function) = (word >> 32 & 0xff, word >> 40 & 0xff);
            prop_assert!(!(1..=2).contains(&kind) || function >= 16);
        }
    }

    #[test]
    fn a_header_is_what_it_was_encoded_from(geometry in geometry(), retired: bool, created_unix_ms: u64) {
        let header = Header { geometry, retired, created_unix_ms };
        prop_assert_eq!(Header::check(&header.encode(), geometry.file_bytes()), Ok(header));
    }

    #[test]
    fn no_bytes_are_a_header_by_chance(page in proptest::collection::vec(any::<u8>(), 0..64), bytes: u64) {
        prop_assert!(Header::check(&page, bytes).is_err());
    }

    #[test]
    fn words_of_different_lanes_and_events_do_not_overlap(
        geometry in geometry(),
        (a, b) in (0..4096_u32, 0..4096_u32),
        (m, n) in (any::<u64>(), any::<u64>()),
    ) {
        let (a, b) = (a % geometry.lanes(), b % geometry.lanes());
        prop_assert!(a == b || geometry.head(a).abs_diff(geometry.head(b)) >= HEAD_BYTES);
        prop_assert!(geometry.since(a, FUNCTIONS - 1) + 8 <= geometry.head(a) + HEAD_BYTES);
        prop_assert!(geometry.head(a) + HEAD_BYTES <= geometry.event(b, n));
        let same = a == b && (m ^ n) & u64::from(geometry.events_per_lane() - 1) == 0;
        let apart = geometry.event(a, m).abs_diff(geometry.event(b, n));
        prop_assert_eq!(apart < EVENT_BYTES, same);
        prop_assert!(geometry.event(a, m) + EVENT_BYTES <= geometry.file_bytes());
    }
}
