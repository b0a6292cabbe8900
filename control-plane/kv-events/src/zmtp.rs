// SPDX-License-Identifier: Apache-2.0
//! ZeroMQ's protocol on the wire, ZMTP 3.0 and 3.1 with the NULL mechanism (RFC 23 and 37 of ZeroMQ), as bytes.
//!
//! ```text
//!  greeting (64 bytes) ─> command READY ─> messages of one frame or several, and commands in between
//! ```
//! A [`Decoder`] takes bytes however they come and gives whole messages. It has no more than a message's limit in
//! memory: a length beyond it is refused when it is read, before anything is kept for it.

#[cfg(test)]
mod tests;

/// Bytes of a greeting.
pub const GREETING_BYTES: usize = 64;
/// Frames of a message, at most: those of engines have up to four.
pub const MAX_FRAMES: usize = 8;
/// Bytes of a command that is read; commands are a few names and numbers.
const MAX_COMMAND_BYTES: usize = 4096;
/// Of a buffer in which nothing is.
const KEPT_BYTES: usize = 64 << 10;

const MORE: u8 = 1;
const LONG: u8 = 2;
const COMMAND: u8 = 4;

/// A kind of socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Socket {
    /// Tells whoever listens.
    Pub,
    /// Listens.
    Sub,
    /// Asks, and takes any number of answers.
    Dealer,
    /// Answers.
    Router,
}

impl Socket {
    fn name(self) -> &'static [u8] {
        match self {
            Self::Pub => b"PUB",
            Self::Sub => b"SUB",
            Self::Dealer => b"DEALER",
            Self::Router => b"ROUTER",
        }
    }

    /// Whether the other end may be such a socket.
    fn fits(self, other: &[u8]) -> bool {
        match self {
            Self::Pub => matches!(other, b"SUB" | b"XSUB"),
            Self::Sub => matches!(other, b"PUB" | b"XPUB"),
            Self::Dealer => matches!(other, b"ROUTER" | b"DEALER" | b"REP"),
            Self::Router => matches!(other, b"DEALER" | b"ROUTER" | b"REQ"),
        }
    }
}

/// Why a peer cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// It does not begin as ZMTP 3 does.
    #[error("is no ZeroMQ of version 3 or later")]
    Greeting,
    /// It wants to be shown who asks.
    #[error("wants the mechanism {0}, only NULL is spoken")]
    Mechanism(String),
    /// It is of a kind that does not fit.
    #[error("is a socket of type {0}, which does not fit")]
    SocketType(String),
    /// A message is longer than the limit.
    #[error("a message of more than {limit} bytes or {MAX_FRAMES} frames")]
    TooLarge {
        /// Bytes.
        limit: usize,
    },
    /// Bits or commands that mean nothing.
    #[error("{0}")]
    Malformed(&'static str),
    /// It gives up.
    #[error("says: {0}")]
    Refused(String),
}

/// What comes first: version 3.1, NULL.
pub fn greeting() -> [u8; GREETING_BYTES] {
    let mut greeting = [0; GREETING_BYTES];
    let parts: [(usize, &[u8]); 3] = [(0, &[0xff]), (9, &[0x7f, 3, 1]), (12, b"NULL")];
    for (at, part) in parts {
        for (place, byte) in greeting.iter_mut().skip(at).zip(part) {
            *place = *byte;
        }
    }
    greeting
}

/// The command READY of such a socket.
pub fn ready(socket: Socket) -> Vec<u8> {
    let mut body = Vec::new();
    command_name(&mut body, b"READY");
    property(&mut body, b"Socket-Type", socket.name());
    // Empty: a router gives the peer a name of its own.
    if matches!(socket, Socket::Dealer | Socket::Router) {
        property(&mut body, b"Identity", b"");
    }
    let mut frame = Vec::new();
    put_frame(&mut frame, COMMAND, &body);
    frame
}

/// What a SUB sends to hear of a topic, and of all that begin with it. As a message, which publishers of 3.0 and of
/// 3.1 read alike.
pub fn subscribe(topic: &[u8]) -> Vec<u8> {
    let mut body = vec![1];
    body.extend(topic);
    message(&[&body])
}

/// A question whether the peer is there, which [`Decoder::answers_pings`] says whether it understands.
pub fn ping() -> Vec<u8> {
    let mut body = Vec::new();
    command_name(&mut body, b"PING");
    // It lives for ever: only the one that asks looks at the clock.
    body.extend([0, 0]);
    let mut frame = Vec::new();
    put_frame(&mut frame, COMMAND, &body);
    frame
}

/// The answer to a PING with this context.
pub fn pong(context: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    command_name(&mut body, b"PONG");
    body.extend(context);
    let mut frame = Vec::new();
    put_frame(&mut frame, COMMAND, &body);
    frame
}

/// A message of these frames.
pub fn message(frames: &[&[u8]]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (place, frame) in frames.iter().enumerate() {
        let more = match place + 1 < frames.len() {
            true => MORE,
            false => 0,
        };
        put_frame(&mut bytes, more, frame);
    }
    bytes
}

fn put_frame(bytes: &mut Vec<u8>, flags: u8, body: &[u8]) {
    match u8::try_from(body.len()) {
        Ok(length) => bytes.extend([flags, length]),
        Err(_) => {
            bytes.push(flags | LONG);
            bytes.extend((body.len() as u64).to_be_bytes());
        }
    }
    bytes.extend(body);
}

fn command_name(body: &mut Vec<u8>, name: &[u8]) {
    body.push(name.len() as u8);
    body.extend(name);
}

fn property(body: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    command_name(body, name);
    body.extend((value.len() as u32).to_be_bytes());
    body.extend(value);
}

/// What a peer has sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// It is there, and fits: messages may be sent.
    Ready,
    /// A whole message.
    Message(Vec<Vec<u8>>),
    /// To be answered with [`pong`] and this context.
    Ping(Vec<u8>),
    /// It wants to hear of a topic, or no more.
    Subscribes {
        /// Whether it does.
        wanted: bool,
        /// What topics begin with.
        topic: Vec<u8>,
    },
    /// A command of no concern here.
    Other,
}

/// Takes what a peer sends.
#[derive(Debug)]
pub struct Decoder {
    own: Socket,
    limit: usize,
    state: State,
    bytes: Vec<u8>,
    /// Of `bytes`, those that have been read.
    read: usize,
    frames: Vec<Vec<u8>>,
    /// Bytes of `frames`.
    held: usize,
    answers_pings: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Greeting,
    Handshake,
    Traffic,
}

#[derive(Clone, Copy)]
struct Head {
    flags: u8,
    length: usize,
    /// Bytes of the head itself.
    bytes: usize,
}

impl Decoder {
    /// For an own socket of this kind, of messages up to so many bytes.
    pub fn new(own: Socket, limit: usize) -> Self {
        Self {
            own,
            limit,
            state: State::Greeting,
            bytes: Vec::new(),
            read: 0,
            frames: Vec::new(),
            held: 0,
            answers_pings: false,
        }
    }

    /// Whether the peer speaks 3.1, where a PING has an answer.
    pub fn answers_pings(&self) -> bool {
        self.answers_pings
    }

    /// Takes bytes that came. All that is complete has to be taken by [`next_said`](Self::next_said) before the next ones.
    pub fn take(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.read.min(self.bytes.len()));
        self.read = 0;
        // A large message is seldom, and there may be many connections.
        if self.bytes.is_empty() && self.bytes.capacity() > KEPT_BYTES {
            self.bytes = Vec::new();
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// The next thing said; none where more bytes are needed.
    ///
    /// # Errors
    /// The peer cannot be understood: the connection is of no more use.
    pub fn next_said(&mut self) -> Result<Option<Said>, Error> {
        if self.state == State::Greeting {
            let Some(greeting) = self.bytes.get(self.read..self.read + GREETING_BYTES) else {
                return match check_signature(self.bytes.get(self.read..).unwrap_or_default()) {
                    true => Ok(None),
                    false => Err(Error::Greeting),
                };
            };
            check_greeting(greeting)?;
            let version = greeting.get(10..12).unwrap_or_default();
            self.answers_pings = version > &[3, 0];
            self.read += GREETING_BYTES;
            self.state = State::Handshake;
        }
        loop {
            let unread = self.bytes.get(self.read..).unwrap_or_default();
            let Some(head) = head(unread)? else {
                return Ok(None);
            };
            self.check(head)?;
            let end = head.bytes.saturating_add(head.length);
            let Some(body) = unread.get(head.bytes..end) else {
                return Ok(None);
            };
            if head.flags & COMMAND != 0 {
                let said = self.command(body)?;
                self.read += end;
                if said == Said::Ready {
                    self.state = State::Traffic;
                }
                return Ok(Some(said));
            }
            let body = body.to_vec();
            self.read += end;
            self.held += body.len();
            self.frames.push(body);
            if head.flags & MORE == 0 {
                self.held = 0;
                let frames = std::mem::take(&mut self.frames);
                return Ok(Some(self.said(frames)));
            }
        }
    }

    /// Before anything is kept of a frame.
    fn check(&self, head: Head) -> Result<(), Error> {
        let limit = self.limit;
        if head.flags & COMMAND != 0 {
            return match head.length > MAX_COMMAND_BYTES {
                true => Err(Error::Malformed("a command of more than 4096 bytes")),
                false => Ok(()),
            };
        }
        if self.state != State::Traffic {
            return Err(Error::Malformed("a message before READY"));
        }
        let held = self.held.saturating_add(head.length);
        match held > limit || self.frames.len() >= MAX_FRAMES {
            true => Err(Error::TooLarge { limit }),
            false => Ok(()),
        }
    }

    fn command(&self, body: &[u8]) -> Result<Said, Error> {
        let (name, rest) = short(body).ok_or(Error::Malformed("a command without a name"))?;
        match (name, self.state) {
            (b"READY", State::Handshake) => self.ready(rest),
            (b"ERROR", _) => {
                let reason = short(rest).map_or(&b""[..], |(reason, _)| reason);
                Err(Error::Refused(printable(reason)))
            }
            (_, State::Handshake | State::Greeting) => {
                Err(Error::Malformed("a command before READY"))
            }
            (b"PING", State::Traffic) => {
                // Two bytes say for how long it lives.
                Ok(Said::Ping(rest.get(2..).unwrap_or_default().to_vec()))
            }
            (b"SUBSCRIBE", State::Traffic) => Ok(subscribes(true, rest)),
            (b"CANCEL", State::Traffic) => Ok(subscribes(false, rest)),
            _ => Ok(Said::Other),
        }
    }

    fn ready(&self, mut properties: &[u8]) -> Result<Said, Error> {
        while !properties.is_empty() {
            let malformed = Error::Malformed("READY has a property that is none");
            let (name, rest) = short(properties).ok_or(malformed.clone())?;
            let (length, rest) = rest.split_first_chunk().ok_or(malformed.clone())?;
            let length = u32::from_be_bytes(*length) as usize;
            let (value, rest) = rest.split_at_checked(length).ok_or(malformed)?;
            properties = rest;
            if name.eq_ignore_ascii_case(b"Socket-Type") && !self.own.fits(value) {
                return Err(Error::SocketType(printable(value)));
            }
        }
        Ok(Said::Ready)
    }

    fn said(&self, mut frames: Vec<Vec<u8>>) -> Said {
        // A subscription of ZMTP 3.0 is a message that begins with 1, or with 0 to end it.
        if self.own == Socket::Pub
            && let [frame] = frames.as_mut_slice()
            && let Some((wanted @ (0 | 1), topic)) = frame.split_first()
        {
            return subscribes(*wanted == 1, topic);
        }
        Said::Message(frames)
    }
}

fn subscribes(wanted: bool, topic: &[u8]) -> Said {
    let topic = topic.to_vec();
    Said::Subscribes { wanted, topic }
}

fn check_signature(bytes: &[u8]) -> bool {
    let expected = [(0, 0xff), (9, 0x7f)];
    expected
        .into_iter()
        .all(|(at, byte)| bytes.get(at).is_none_or(|found| *found == byte))
}

fn check_greeting(greeting: &[u8]) -> Result<(), Error> {
    let is_three = greeting.get(10).is_some_and(|major| *major >= 3);
    if !check_signature(greeting) || !is_three {
        return Err(Error::Greeting);
    }
    let mechanism = greeting.get(12..32).unwrap_or_default();
    let name = mechanism.split(|byte| *byte == 0).next();
    match name.unwrap_or_default() {
        b"NULL" => Ok(()),
        other => Err(Error::Mechanism(printable(other))),
    }
}

fn head(bytes: &[u8]) -> Result<Option<Head>, Error> {
    let Some((flags, rest)) = bytes.split_first() else {
        return Ok(None);
    };
    let is_command_of_more = flags & COMMAND != 0 && flags & MORE != 0;
    if flags & !(MORE | LONG | COMMAND) != 0 || is_command_of_more {
        return Err(Error::Malformed("flags of a frame that mean nothing"));
    }
    let length = match flags & LONG != 0 {
        false => rest.first().map(|length| (usize::from(*length), 2)),
        true => rest.first_chunk().map(|length| {
            let length = u64::from_be_bytes(*length);
            (usize::try_from(length).unwrap_or(usize::MAX), 9)
        }),
    };
    Ok(length.map(|(length, bytes)| Head {
        flags: *flags,
        length,
        bytes,
    }))
}

/// A text behind a byte with its length, and what is behind that.
fn short(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first()?;
    rest.split_at_checked((*length).into())
}

fn printable(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let shown = text.chars().take(64);
    shown
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}
