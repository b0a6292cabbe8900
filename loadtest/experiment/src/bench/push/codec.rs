// SPDX-License-Identifier: Apache-2.0
//! Messages as they come, for clients that count their bytes.

use std::marker::PhantomData;

use bytes::{Buf, Bytes};
use prost::Message;
use tonic::Status;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};

/// Encodes requests and leaves answers as they are.
pub(super) struct Raw<T>(PhantomData<T>);

impl<T> Default for Raw<T> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<T: Message + 'static> Codec for Raw<T> {
    type Encode = T;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self::default()
    }

    fn decoder(&mut self) -> Self {
        Self::default()
    }
}

impl<T: Message> Encoder for Raw<T> {
    type Item = T;
    type Error = Status;

    fn encode(&mut self, message: T, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        let encoded = message.encode(buffer);
        encoded.map_err(|error| Status::internal(error.to_string()))
    }
}

impl<T> Decoder for Raw<T> {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(buffer.copy_to_bytes(buffer.remaining())))
    }
}
