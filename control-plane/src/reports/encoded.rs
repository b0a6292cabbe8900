// SPDX-License-Identifier: Apache-2.0
//! Reports as they came. The bytes are those that were read: nothing is copied.

use bytes::{Buf, Bytes};
use tonic::Status;
use tonic::codec::{BufferSettings, Codec, DecodeBuf, Decoder};
use tonic_prost::ProstEncoder;
use weir_tables::v1::ReportAnswer;

use crate::buffers;

/// The codec of a stream.
#[derive(Debug, Default)]
pub(super) struct Encoded;

impl Codec for Encoded {
    type Encode = ReportAnswer;
    type Decode = Bytes;
    type Encoder = ProstEncoder<ReportAnswer>;
    type Decoder = Self;

    fn encoder(&mut self) -> Self::Encoder {
        ProstEncoder::new(buffers::small())
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Decoder for Encoded {
    type Item = Bytes;
    type Error = Status;

    fn buffer_settings(&self) -> BufferSettings {
        buffers::small()
    }

    fn decode(&mut self, message: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(message.copy_to_bytes(message.remaining())))
    }
}
