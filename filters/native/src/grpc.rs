// SPDX-License-Identifier: Apache-2.0
//! gRPC's messages in an HTTP/2 stream ("gRPC over HTTP2", Length-Prefixed-Message): a flag, four bytes of length in
//! network order, the message.

/// Bytes of a message. weir-control's largest are tables of tens of thousands of hosts, a few megabytes.
pub(crate) const MAX_MESSAGE: usize = 64 << 20;

const PREFIX: usize = 5;

/// A message as it is sent.
pub(crate) fn framed(message: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(PREFIX + message.len());
    bytes.push(0);
    bytes.extend_from_slice(&(message.len() as u32).to_be_bytes());
    bytes.extend_from_slice(message);
    bytes
}

/// What has come of a stream of messages, in parts of any size.
#[derive(Default)]
pub(crate) struct Messages(Vec<u8>);

/// What cannot be read: compressed, or longer than [`MAX_MESSAGE`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unreadable;

impl Messages {
    /// Takes the next part, and gives back the messages that are whole.
    pub(crate) fn read(&mut self, part: &[u8]) -> Result<Vec<Vec<u8>>, Unreadable> {
        self.0.extend_from_slice(part);
        let (mut messages, mut rest, mut wanted) = (Vec::new(), self.0.as_slice(), 0);
        while let Some(([flag, length @ ..], after)) = rest.split_first_chunk::<PREFIX>() {
            let length = u32::from_be_bytes(*length) as usize;
            if *flag != 0 || length > MAX_MESSAGE {
                return Err(Unreadable);
            }
            let Some((message, after)) = after.split_at_checked(length) else {
                wanted = PREFIX + length;
                break;
            };
            if messages.is_empty() && after.is_empty() {
                // So it is most often, and of megabytes at the start of a stream: it is not copied.
                let mut message = std::mem::take(&mut self.0);
                message.drain(..PREFIX);
                return Ok(vec![message]);
            }
            messages.push(message.to_vec());
            rest = after;
        }
        let read = self.0.len() - rest.len();
        self.0.drain(..read);
        // Memory for the rest of the message and no more; none while there is none.
        if self.0.is_empty() {
            self.0 = Vec::new();
        }
        self.0.reserve_exact(wanted.saturating_sub(self.0.len()));
        Ok(messages)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn messages_come_whole_and_in_order_however_they_are_cut(
            messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..8),
            sizes in prop::collection::vec(1usize..30, 1..40),
        ) {
            let bytes: Vec<u8> = messages.iter().flat_map(|message| framed(message)).collect();
            let (mut reader, mut read, mut rest) = (Messages::default(), Vec::new(), bytes.as_slice());
            let mut sizes = sizes.into_iter().cycle();
            while !rest.is_empty() {
                let (part, after) = rest.split_at(sizes.next().unwrap().min(rest.len()));
                read.extend(reader.read(part).unwrap());
                rest = after;
            }
            prop_assert_eq!(read, messages);
            prop_assert_eq!(reader.0.capacity(), 0);
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = Messages::default().read(&bytes);
        }
    }

    #[test]
    fn compressed_and_endless_messages_are_refused_before_they_are_here() {
        assert_eq!(Messages::default().read(&[1, 0, 0, 0, 0]), Err(Unreadable));
        let endless = [&[0][..], &(MAX_MESSAGE as u32 + 1).to_be_bytes()].concat();
        assert_eq!(Messages::default().read(&endless), Err(Unreadable));
    }
}
