// SPDX-License-Identifier: Apache-2.0
//! What holds of every decoder.

use std::fmt::{Debug, Display};

use prost::Message;

/// Bytes of what is said of a refusal, names of files included: whoever sends nonsense does not fill logs.
const MOST_SAID: usize = 2048;

/// A refusal, or a complaint, is one line of bounded length.
pub(crate) fn is_a_line(said: &dyn Display) {
    let said = said.to_string();
    let is_line = !said.is_empty() && !said.contains(['\n', '\r']) && said.len() <= MOST_SAID;
    assert!(is_line, "{} bytes: {said:?}", said.len());
}

/// Whether it is accepted; what is said of a refusal is a line.
pub(crate) fn accepted<T, E: Display>(result: Result<T, E>) -> Option<T> {
    result.inspect_err(|refusal| is_a_line(refusal)).ok()
}

/// The message of these bytes, which after encoding and decoding is the same.
pub(crate) fn message<M: Message + Default + PartialEq + Debug>(bytes: &[u8]) -> Option<M> {
    let message = M::decode(bytes).ok()?;
    let encoded = message.encode_to_vec();
    let again = M::decode(encoded.as_slice()).expect("what was encoded is a message");
    // A message with NaN is not equal to itself; its bytes are.
    assert_eq!(again.encode_to_vec(), encoded, "{message:?}");
    Some(message)
}
