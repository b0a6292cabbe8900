// SPDX-License-Identifier: Apache-2.0
//! The bytes of one object, whole or not at all.

use std::io::Read;
use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use object_store::{GetResult, GetResultPayload};
use tokio_stream::StreamExt;
use weir_rules::Stop;

/// Bytes read from a file between two looks at [`Stop`].
const FILE_CHUNK: usize = 1 << 20;

/// How long a silent store keeps us from a look at [`Stop`].
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Why there are no bytes.
pub(super) enum Failed {
    Stopped,
    Store(object_store::Error),
    /// The body had another length than the store said.
    Short(String),
}

/// Exactly `size` bytes. `size` is within the limits already, and memory is taken as it fills.
pub(super) async fn whole(found: GetResult, size: u64, stop: &Stop) -> Result<Bytes, Failed> {
    let bytes = match found.payload {
        GetResultPayload::File(file, _) => of_file(file, size, stop)?,
        stream => {
            of_stream(
                GetResult {
                    payload: stream,
                    ..found
                },
                size,
                stop,
            )
            .await?
        }
    };
    match bytes.len() as u64 == size {
        true => Ok(bytes.into()),
        false => Err(wrong_length(bytes.len() as u64, size)),
    }
}

/// Reads a file itself: object_store would hop to another thread every 8 KiB.
fn of_file(mut file: std::fs::File, size: u64, stop: &Stop) -> Result<Vec<u8>, Failed> {
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
    loop {
        if stop.raised() {
            return Err(Failed::Stopped);
        }
        // One byte past the end, to notice a file that grew.
        let left = (size + 1).saturating_sub(bytes.len() as u64);
        let chunk = left.min(FILE_CHUNK as u64);
        match file.by_ref().take(chunk).read_to_end(&mut bytes) {
            Ok(0) => return Ok(bytes),
            Ok(_) => {}
            Err(error) => return Err(Failed::Short(error.to_string())),
        }
    }
}

async fn of_stream(found: GetResult, size: u64, stop: &Stop) -> Result<Vec<u8>, Failed> {
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
    let mut stream = found.into_stream();
    loop {
        match unless_stopped(stream.next(), stop).await {
            None => return Err(Failed::Stopped),
            Some(None) => return Ok(bytes),
            Some(Some(Err(error))) => return Err(Failed::Store(error)),
            Some(Some(Ok(chunk))) => {
                let total = bytes.len() as u64 + chunk.len() as u64;
                if total > size {
                    return Err(wrong_length(total, size));
                }
                bytes.extend_from_slice(&chunk);
            }
        }
    }
}

/// What `future` gives, or none once `stop` is raised.
pub(super) async fn unless_stopped<F: Future>(future: F, stop: &Stop) -> Option<F::Output> {
    let mut future = pin!(future);
    while !stop.raised() {
        if let Ok(output) = tokio::time::timeout(LOOK_EVERY, future.as_mut()).await {
            return Some(output);
        }
    }
    None
}

fn wrong_length(read: u64, size: u64) -> Failed {
    Failed::Short(format!("the body has {read} bytes, the store said {size}"))
}
