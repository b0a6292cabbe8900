// SPDX-License-Identifier: Apache-2.0
//! How much memory a message takes once it is decoded, told from its bytes before that: two bytes may be an empty message
//! of a hundred times as many.

use prost::bytes::Buf;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};
use weir_tables::v1;

/// What a field with a length holds.
#[derive(Debug)]
enum Part {
    /// A message that takes so many bytes itself, and has these fields with a length.
    Message(usize, &'static [(u32, Part)]),
    /// Numbers of at most eight bytes, each of which one byte may stand for.
    Numbers,
    /// A text of several: it takes as much as its bytes, and so many beside them.
    Text,
}

/// A kind of message.
#[derive(Debug)]
pub struct Kind(&'static [(u32, Part)]);

/// The bytes are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cut off, or no message at all")]
pub struct Malformed;

const NUMBER: usize = size_of::<u64>();

const fn message<T>(fields: &'static [(u32, Part)]) -> Part {
    Part::Message(size_of::<T>(), fields)
}

const LOAD: Part = message::<v1::Load>(&[(3, Part::Numbers), (7, Part::Numbers)]);
const RANK_COUNT: Part = message::<v1::RankCount>(&[]);
const HOST: Part = message::<v1::HostRecord>(&[(8, LOAD), (9, RANK_COUNT)]);
const CLUSTER: Part = message::<v1::ClusterRecord>(&[
    (2, HOST),
    (3, RANK_COUNT),
    (5, message::<v1::Assignment>(&[])),
    (6, message::<v1::Spent>(&[])),
    (10, message::<v1::Stub>(&[])),
]);
const LOOK: Part = message::<v1::Look>(&[]);

/// [`v1::Report`].
pub const REPORT: Kind = Kind(&[(2, message::<v1::VmRecord>(&[(4, CLUSTER)]))]);
/// [`v1::Receipt`].
pub const RECEIPT: Kind = Kind(&[
    (11, Part::Text),
    (16, LOOK),
    (17, Part::Numbers),
    (
        22,
        message::<v1::Beside>(&[(3, Part::Text), (4, LOOK), (5, LOOK)]),
    ),
]);

/// What the message that these bytes are takes beside itself.
pub fn bytes(kind: &Kind, message: &[u8]) -> Result<usize, Malformed> {
    within(kind.0, message)
}

fn within(fields: &[(u32, Part)], mut message: &[u8]) -> Result<usize, Malformed> {
    let mut bytes = 0;
    while message.has_remaining() {
        let (number, wire) = decode_key(&mut message).map_err(|_| Malformed)?;
        if wire != WireType::LengthDelimited {
            let context = DecodeContext::default();
            skip_field(wire, number, &mut message, context).map_err(|_| Malformed)?;
            bytes += NUMBER;
            continue;
        }
        let length = decode_varint(&mut message).map_err(|_| Malformed)?;
        let length = usize::try_from(length).map_err(|_| Malformed)?;
        let (inner, rest) = message.split_at_checked(length).ok_or(Malformed)?;
        message = rest;
        bytes += match fields.iter().find(|field| field.0 == number) {
            Some((_, Part::Message(itself, fields))) => itself + within(fields, inner)?,
            Some((_, Part::Numbers)) => inner.len() * NUMBER,
            Some((_, Part::Text)) => size_of::<String>() + inner.len(),
            None => inner.len(),
        };
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::*;

    #[test]
    fn an_empty_message_counts_as_what_it_takes_and_not_as_its_two_bytes() {
        let empty = v1::Report {
            records: vec![v1::VmRecord {
                clusters: vec![v1::ClusterRecord::default(); 1000],
                ..Default::default()
            }],
            ..Default::default()
        };
        let encoded = empty.encode_to_vec();
        assert!(encoded.len() < 3000);
        let each = size_of::<v1::ClusterRecord>();
        let bytes = bytes(&REPORT, &encoded).unwrap();
        assert_eq!(bytes, 1000 * each + size_of::<v1::VmRecord>());
    }

    #[test]
    fn all_that_a_receipt_repeats_is_counted() {
        let receipt = v1::Receipt {
            keys: vec![1; 3],
            chosen: vec![String::new(); 5],
            looks: vec![v1::Look::default(); 7],
            suspects: vec![1; 11],
            ..Default::default()
        };
        let (text, look) = (size_of::<String>(), size_of::<v1::Look>());
        let bytes = bytes(&RECEIPT, &receipt.encode_to_vec()).unwrap();
        // Of fixed numbers each takes eight bytes on the wire.
        assert_eq!(bytes, 3 * 8 + 5 * text + 7 * look + 11 * 8);
    }

    #[test]
    fn bytes_that_are_cut_off_are_no_message() {
        let report = v1::Report {
            proxy: "sidecar".to_owned(),
            ..Default::default()
        };
        let mut encoded = report.encode_to_vec();
        encoded.pop();
        assert_eq!(bytes(&REPORT, &encoded), Err(Malformed));
    }
}
