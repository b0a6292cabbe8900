// SPDX-License-Identifier: Apache-2.0
//! gRPC streams of the main thread. What comes through them waits here until no root is in the middle of a call.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::grpc::{self, Messages, Unreadable};
use crate::installed::Installed;

/// gRPC status codes.
const UNKNOWN: u32 = 2;
const RESOURCE_EXHAUSTED: u32 = 8;
const UNIMPLEMENTED: u32 = 12;
const UNAVAILABLE: u32 = 14;

/// What came through a stream, for the root with this number.
pub(crate) struct Event {
    pub(crate) root: u32,
    pub(crate) stream: u32,
    pub(crate) what: What,
}

pub(crate) enum What {
    Message(Vec<u8>),
    /// With this status.
    Closed(u32),
}

#[derive(Default)]
pub(crate) struct Streams {
    /// By the number that the filter knows it by.
    open: BTreeMap<u32, Stream>,
    last: u32,
    events: VecDeque<Event>,
}

struct Stream {
    installed: Arc<Installed>,
    /// Envoy's; none while it is being opened, when its first hooks may come already.
    number: Option<u64>,
    messages: Messages,
    status: Option<u32>,
}

thread_local! {
    static STREAMS: RefCell<Streams> = RefCell::default();
}

/// Makes others those of this thread; gives back which were.
pub(crate) fn enter(streams: Streams) -> Streams {
    STREAMS.replace(streams)
}

/// Opens one by this configuration; none where Envoy does not.
pub(crate) fn open(
    installed: &Arc<Installed>,
    cluster: &str,
    (service, method): (&str, &str),
    (name, value): (&str, &[u8]),
) -> Option<u32> {
    let token = STREAMS.with_borrow_mut(|streams| {
        streams.last = streams.last.wrapping_add(1);
        let stream = Stream {
            installed: Arc::clone(installed),
            number: None,
            messages: Messages::default(),
            status: None,
        };
        streams.open.insert(streams.last, stream);
        streams.last
    });
    let path = format!("/{service}/{method}");
    let headers: [(&str, &[u8]); 6] = [
        (":method", b"POST"),
        (":path", path.as_bytes()),
        (":authority", cluster.as_bytes()),
        ("content-type", b"application/grpc"),
        ("te", b"trailers"),
        (name, value),
    ];
    let number = installed.envoy.open_stream(cluster, &headers);
    STREAMS.with_borrow_mut(|streams| match number {
        // One that has ended already says so by its event.
        Some(_) => {
            if let Some(stream) = streams.open.get_mut(&token) {
                stream.number = number;
            }
            Some(token)
        }
        None => {
            streams.open.remove(&token);
            streams.events.retain(|event| event.stream != token);
            None
        }
    })
}

/// Sends a message; says whether it could.
pub(crate) fn send(token: u32, message: &[u8]) -> bool {
    let to = STREAMS.with_borrow(|streams| {
        let stream = streams.open.get(&token)?;
        (!stream.installed.is_gone()).then_some((stream.installed.envoy, stream.number?))
    });
    to.is_some_and(|(envoy, number)| envoy.send(number, &grpc::framed(message)))
}

/// Ends one here. What has come through it is forgotten.
pub(crate) fn cancel(token: u32) {
    let stream = STREAMS.with_borrow_mut(|streams| {
        streams.events.retain(|event| event.stream != token);
        streams.open.remove(&token)
    });
    if let Some(Stream {
        installed,
        number: Some(number),
        ..
    }) = stream
        && !installed.is_gone()
    {
        installed.envoy.reset(number);
    }
}

/// The next that has come.
pub(crate) fn next() -> Option<Event> {
    STREAMS.with_borrow_mut(|streams| streams.events.pop_front())
}

/// Headers or trailers, by name and value.
pub(crate) fn headers<'a>(
    root: u32,
    number: u64,
    headers: impl Iterator<Item = (&'a [u8], &'a [u8])>,
) {
    STREAMS.with_borrow_mut(|streams| {
        let Some((_, stream)) = streams.find(root, number) else {
            return;
        };
        for (name, value) in headers {
            let value = std::str::from_utf8(value).ok().and_then(|v| v.parse().ok());
            match (name, value) {
                (b"grpc-status", status) => stream.status = Some(status.unwrap_or(UNKNOWN)),
                (b":status", Some(200)) => {}
                (b":status", Some(404)) => stream.status = Some(UNIMPLEMENTED),
                (b":status", _) => stream.status = Some(UNAVAILABLE),
                _ => {}
            }
        }
    });
}

/// A part of its messages.
pub(crate) fn data(root: u32, number: u64, part: &[u8]) {
    let unreadable = STREAMS.with_borrow_mut(|streams| {
        let (token, stream) = streams.find(root, number)?;
        match stream.messages.read(part) {
            Ok(messages) => {
                streams
                    .events
                    .extend(messages.into_iter().map(|message| Event {
                        root,
                        stream: token,
                        what: What::Message(message),
                    }));
                None
            }
            Err(Unreadable) => Some(token),
        }
    });
    if let Some(token) = unreadable {
        cancel(token);
        let what = What::Closed(RESOURCE_EXHAUSTED);
        STREAMS.with_borrow_mut(|streams| {
            streams.events.push_back(Event {
                root,
                stream: token,
                what,
            })
        });
    }
}

/// It has ended, or was broken.
pub(crate) fn closed(root: u32, number: u64, is_broken: bool) {
    STREAMS.with_borrow_mut(|streams| {
        let Some((token, stream)) = streams.find(root, number) else {
            return;
        };
        let or = if is_broken { UNAVAILABLE } else { UNKNOWN };
        let what = What::Closed(stream.status.unwrap_or(or));
        streams.open.remove(&token);
        streams.events.push_back(Event {
            root,
            stream: token,
            what,
        });
    });
}

/// A configuration is gone, and its streams with it, without a word.
pub(crate) fn forget(root: u32) {
    STREAMS.with_borrow_mut(|streams| {
        streams.open.retain(|_, stream| stream.installed.id != root);
        streams.events.retain(|event| event.root != root);
    });
}

impl Streams {
    /// The one with Envoy's number, or the one that is being opened.
    fn find(&mut self, root: u32, number: u64) -> Option<(u32, &mut Stream)> {
        let is_it = |stream: &Stream, known: Option<u64>| {
            stream.installed.id == root && stream.number == known
        };
        let by = |known| {
            self.open
                .iter()
                .find(|(_, s)| is_it(s, known))
                .map(|(t, _)| *t)
        };
        let token = by(Some(number)).or_else(|| by(None))?;
        Some((token, self.open.get_mut(&token)?))
    }
}
