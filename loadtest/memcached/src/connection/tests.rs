// SPDX-License-Identifier: Apache-2.0
use super::*;

use std::net::TcpListener;

struct Pair {
    ours: Connection,
    theirs: TcpStream,
    keys: Keys,
}

/// A connection that has asked for keys 0 and 1, then for 2 and 3.
fn asked() -> Pair {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (theirs, _) = listener.accept().unwrap();
    let keys = Keys::new(10, 4).unwrap();
    let mut ours = Connection::new(stream, 2, 4).unwrap();
    for (at_ns, numbers) in [(10, [0, 1]), (20, [2, 3])] {
        let arrival = Arrival { at_ns, interval: 0 };
        ours.ask(arrival, numbers.into_iter(), &keys);
    }
    ours.flush().unwrap();
    Pair { ours, theirs, keys }
}

impl Pair {
    fn value(&self, number: u32) -> Vec<u8> {
        let mut said = b"VALUE ".to_vec();
        said.extend_from_slice(self.keys.key(number));
        said.extend_from_slice(b" 0 4\r\n");
        said.extend_from_slice(self.keys.value(number));
        said.extend_from_slice(b"\r\n");
        said
    }

    /// What became of the requests, by when they were due, once the server has said this.
    fn hear(&mut self, said: &[u8]) -> Result<Vec<(u64, Outcome)>, Broken> {
        self.theirs.write_all(said).unwrap();
        self.ours.stream.set_nonblocking(false).unwrap();
        let mut told = Vec::new();
        let before = self.ours.read - self.ours.parsed;
        let mut taken = 0;
        while taken < said.len() {
            self.ours.receive(&self.keys, &mut |arrival, outcome| {
                told.push((arrival.at_ns, outcome));
            })?;
            taken = self.ours.read + before;
            if self.ours.parsed == self.ours.read {
                break;
            }
        }
        Ok(told)
    }
}

const ALL: Outcome = Outcome::Answered { misses: 0 };

#[test]
fn what_is_asked_is_one_line_a_request() {
    let mut pair = asked();
    let mut said = [0; 134];
    pair.theirs.read_exact(&mut said).unwrap();
    let line = |numbers: [u32; 2]| {
        let [a, b] = numbers.map(|number| format!("weir-{number:025}"));
        format!("get {a} {b}\r\n")
    };
    let expected = line([0, 1]) + &line([2, 3]);
    assert_eq!(String::from_utf8_lossy(&said), expected);
}

#[test]
fn answers_belong_to_requests_in_order() {
    let mut pair = asked();
    let said = [
        pair.value(0),
        pair.value(1),
        b"END\r\n".to_vec(),
        pair.value(2),
        pair.value(3),
        b"END\r\n".to_vec(),
    ];
    assert_eq!(pair.hear(&said.concat()), Ok(vec![(10, ALL), (20, ALL)]));
}

#[test]
fn keys_that_are_not_there_are_counted_wherever_they_were_in_the_question() {
    let mut pair = asked();
    let said = [pair.value(1), b"END\r\nEND\r\n".to_vec()];
    let missed = |misses| Outcome::Answered { misses };
    assert_eq!(
        pair.hear(&said.concat()),
        Ok(vec![(10, missed(1)), (20, missed(2))])
    );
}

#[test]
fn a_refusal_fails_its_request_only() {
    let mut pair = asked();
    let said = [
        pair.value(0),
        b"SERVER_ERROR out of memory\r\n".to_vec(),
        pair.value(2),
        pair.value(3),
        b"END\r\n".to_vec(),
    ];
    assert_eq!(
        pair.hear(&said.concat()),
        Ok(vec![(10, Outcome::Failed), (20, ALL)])
    );
}

#[test]
fn a_wrong_value_fails_its_request_only() {
    let mut pair = asked();
    let mut wrong = pair.value(0);
    let last = wrong.len() - 3;
    wrong[last] ^= 1;
    let said = [
        wrong,
        b"END\r\n".to_vec(),
        pair.value(3),
        b"END\r\n".to_vec(),
    ];
    let missed = Outcome::Answered { misses: 1 };
    assert_eq!(
        pair.hear(&said.concat()),
        Ok(vec![(10, Outcome::Failed), (20, missed)])
    );
}

#[test]
fn a_key_of_another_request_and_an_answer_too_many_break_the_connection() {
    let mut pair = asked();
    let said = pair.value(3);
    assert!(matches!(pair.hear(&said), Err(Broken::Key(_))));
    assert_eq!(asked().hear(b"END\r\nEND\r\nEND\r\n"), Err(Broken::Unasked));
}

#[test]
fn a_closed_connection_loses_what_waits() {
    let mut pair = asked();
    drop(pair.theirs);
    pair.ours.stream.set_nonblocking(false).unwrap();
    let closed = pair.ours.receive(&pair.keys, &mut |_, _| {});
    assert_eq!(closed, Err(Broken::Closed));
    assert_eq!(pair.ours.lost().count(), 2);
}
