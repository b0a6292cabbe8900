// SPDX-License-Identifier: Apache-2.0
use proptest::prelude::*;

use super::*;

fn all(decoder: &mut Decoder) -> Result<Vec<Said>, Error> {
    let mut said = Vec::new();
    while let Some(one) = decoder.next_said()? {
        said.push(one);
    }
    Ok(said)
}

/// What libzmq 4.3.5 sends from a PUB socket: its greeting and READY.
fn libzmq_pub() -> Vec<u8> {
    let mut bytes = vec![0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 3, 1];
    bytes.extend(b"NULL");
    bytes.resize(64, 0);
    bytes.extend(b"\x04\x19\x05READY\x0bSocket-Type\0\0\0\x03PUB");
    bytes
}

#[test]
fn a_publisher_is_understood() {
    let mut decoder = Decoder::new(Socket::Sub, 100);
    decoder.take(&libzmq_pub());
    decoder.take(b"\x01\x00\x01\x01a\x00\x02bc\x04\x09\x04PING\0\0xy");
    let message = Said::Message(vec![vec![], b"a".to_vec(), b"bc".to_vec()]);
    let expected = [Said::Ready, message, Said::Ping(b"xy".to_vec())];
    assert_eq!(all(&mut decoder).unwrap(), expected);
}

#[test]
fn subscriptions_of_either_version_are_read() {
    for bytes in [subscribe(b"kv"), b"\x04\x0c\x09SUBSCRIBEkv".to_vec()] {
        let mut decoder = Decoder::new(Socket::Pub, 100);
        decoder.take(&[&greeting()[..], &ready(Socket::Sub), &bytes].concat());
        let topic = b"kv".to_vec();
        let subscribes = Said::Subscribes {
            wanted: true,
            topic,
        };
        assert_eq!(all(&mut decoder).unwrap(), [Said::Ready, subscribes]);
    }
}

#[test]
fn who_cannot_be_understood_is_told_apart() {
    let refusal = |bytes: &[u8]| {
        let mut decoder = Decoder::new(Socket::Sub, 100);
        decoder.take(bytes);
        all(&mut decoder).unwrap_err()
    };
    assert_eq!(refusal(b"HTTP/1.1 400 Bad"), Error::Greeting);
    let mut old = greeting();
    old[10] = 1;
    assert_eq!(refusal(&old), Error::Greeting);
    let mut secret = greeting();
    secret[12..17].copy_from_slice(b"CURVE");
    assert_eq!(refusal(&secret), Error::Mechanism("CURVE".into()));
    let after = |bytes: &[u8]| refusal(&[&greeting()[..], bytes].concat());
    assert_eq!(
        after(&ready(Socket::Router)),
        Error::SocketType("ROUTER".into())
    );
    assert_eq!(
        after(b"\x00\x01a"),
        Error::Malformed("a message before READY")
    );
    assert_eq!(
        after(b"\x04\x0b\x05ERROR\x04full"),
        Error::Refused("full".into())
    );
    assert_eq!(
        after(b"\x08\x00"),
        Error::Malformed("flags of a frame that mean nothing")
    );
    let in_traffic = |bytes: &[u8]| after(&[&ready(Socket::Pub)[..], bytes].concat());
    let limit = 100;
    assert_eq!(in_traffic(b"\x00\x65"), Error::TooLarge { limit });
    assert_eq!(
        in_traffic(b"\x02\xff\xff\xff\xff\xff\xff\xff\xff"),
        Error::TooLarge { limit }
    );
    assert_eq!(
        in_traffic(&b"\x01\x00".repeat(9)),
        Error::TooLarge { limit }
    );
    let frames = [&b"\x01\x60"[..], &[7; 0x60], b"\x00\x05"].concat();
    assert_eq!(in_traffic(&frames), Error::TooLarge { limit });
}

#[test]
fn the_room_of_a_large_message_is_given_back() {
    let mut decoder = Decoder::new(Socket::Router, 10 << 20);
    decoder.take(&[&greeting()[..], &ready(Socket::Dealer)].concat());
    all(&mut decoder).unwrap();
    decoder.take(&message(&[&vec![0; 8 << 20]]));
    assert_eq!(all(&mut decoder).unwrap().len(), 1);
    decoder.take(&message(&[b"small"]));
    assert_eq!(all(&mut decoder).unwrap().len(), 1);
    assert!(decoder.bytes.capacity() < 2 * KEPT_BYTES);
}

proptest! {
    #[test]
    fn messages_come_as_they_were_sent_however_they_are_cut(
        messages in prop::collection::vec(prop::collection::vec(prop::collection::vec(any::<u8>(), 0..400), 1..5), 0..6),
        cuts in prop::collection::vec(1usize..300, 1..40),
    ) {
        let mut bytes = [&greeting()[..], &ready(Socket::Dealer)].concat();
        for frames in &messages {
            let frames: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
            bytes.extend(message(&frames));
        }
        let mut decoder = Decoder::new(Socket::Router, 10_000);
        let (mut said, mut rest, mut cuts) = (Vec::new(), bytes.as_slice(), cuts.iter().cycle());
        while !rest.is_empty() {
            let (part, after) = rest.split_at((*cuts.next().unwrap()).min(rest.len()));
            decoder.take(part);
            said.extend(all(&mut decoder).unwrap());
            rest = after;
        }
        let sent = messages.into_iter().map(Said::Message);
        let expected: Vec<Said> = std::iter::once(Said::Ready).chain(sent).collect();
        prop_assert_eq!(said, expected);
    }

    #[test]
    fn no_bytes_make_it_panic_or_keep_more_than_the_limit(
        is_ready in any::<bool>(),
        parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 0..8),
    ) {
        let mut decoder = Decoder::new(Socket::Sub, 50);
        if is_ready {
            decoder.take(&libzmq_pub());
            all(&mut decoder).unwrap();
        }
        for part in parts {
            decoder.take(&part);
            if all(&mut decoder).is_err() {
                break;
            }
            prop_assert!(decoder.held <= 50 && decoder.frames.len() <= MAX_FRAMES);
            prop_assert!(decoder.bytes.len() - decoder.read <= 4096 + 9);
        }
    }
}
