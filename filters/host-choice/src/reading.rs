// SPDX-License-Identifier: Apache-2.0
//! A request whose key is in its body: it is held at its headers until enough of that is here.
//!
//! ```text
//!  on_request ── begin ──> Reading <── on_body: a part more ──┬── the end, the key, or `max_bytes` ──> decided
//!                             └── on a tick, a second later ──┴── nothing of it is here ─────────────> decided
//! ```
//! Nothing is refused for what its body is: one that cannot be read is decided without a key. One of which a part is
//! here is never let go of by a tick, but by the next part: Envoy 1.40 passes a part on twice that it is told to let go
//! of between two parts. And one that may not fit into Envoy's buffer is decided by its first part: Envoy answers 413
//! where it is told to keep more than fits, and over HTTP/1 a part may be as large as that buffer.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::{Rc, Weak};
use std::time::Duration;

use weir_body::Body;

use crate::config::{BodyKey, Config};
use crate::exchange::State;
use crate::headers::Headers;
use crate::host::{Host, LogLevel, RequestHost};
use crate::metrics::BodyEnd;

/// For so long a request waits for its body. What an application next to its sidecar sends is there at once.
const PATIENCE: Duration = Duration::from_secs(1);
/// After so many requests of a plugin of whose bodies nothing was shown, and none of which anything was, it is taken for
/// one without the option.
const SILENT: u32 = 4;
/// For so long no body is waited for then.
const UNHEARD: Duration = Duration::from_secs(60);
/// So much of a body Envoy keeps: its default of `per_connection_buffer_limit_bytes`.
const BUFFER: usize = 1 << 20;
/// So many times what is read at most is kept of a body, where that is less.
const KEPT: usize = 4;

/// A request whose body is being read.
pub(crate) struct Reading {
    pub(crate) context: u32,
    pub(crate) config: Rc<Config>,
    shown: Rc<Shown>,
    body: RefCell<Body>,
    /// Bytes of it that were read.
    read: Cell<usize>,
    max_bytes: usize,
    /// Whether Envoy has room for all that may come until it is decided.
    fits: bool,
    /// How much of it is here.
    here: Cell<Here>,
    /// Its time is over.
    is_late: Cell<bool>,
    /// What a tick has decided, until its exchange takes that over.
    decision: Cell<Option<State>>,
    is_over: Cell<bool>,
}

/// How much of a body is here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Here {
    Nothing,
    Part,
    Whole,
}

/// Whether the proxy shows a plugin's requests' bodies.
#[derive(Debug, Default)]
pub(crate) struct Shown {
    is_heard: Cell<bool>,
    /// Requests in a row of which nothing was shown.
    silent: Cell<u32>,
    unheard_until: Cell<Duration>,
}

/// Requests of a VM whose bodies are being read, the oldest first. Those that have gone are not known here any more.
#[derive(Default)]
pub(crate) struct Readings(VecDeque<(Duration, Weak<Reading>)>);

/// What a request's headers say of its body.
pub(crate) struct Announced {
    length: Option<usize>,
    /// HTTP/1 without a length: parts of any size. Those of HTTP/2 are frames, of 16 KiB.
    is_chunked: bool,
}

impl Announced {
    /// None where it may not be read: it is no JSON, or not as it is.
    pub(crate) fn readable(headers: &Headers) -> Option<Self> {
        let [kind, encoding, length, transfer] = headers.get_each([
            "content-type",
            "content-encoding",
            "content-length",
            "transfer-encoding",
        ]);
        let is_json = kind.is_some_and(|kind| {
            let essence = kind.split(|byte| *byte == b';').next().unwrap_or_default();
            let essence = essence.trim_ascii().to_ascii_lowercase();
            essence == b"application/json" || essence.ends_with(b"+json")
        });
        let is_plain = encoding.is_none_or(|encoding| encoding.eq_ignore_ascii_case(b"identity"));
        (is_json && is_plain).then(|| Self {
            // One too long for a number is too long for a buffer.
            length: length.map(|length| {
                let length = std::str::from_utf8(length).ok();
                length
                    .and_then(|length| length.parse().ok())
                    .unwrap_or(usize::MAX)
            }),
            is_chunked: transfer.is_some(),
        })
    }

    /// Whether Envoy has room for all of it that may come before this much is read.
    fn fits(&self, max_bytes: usize) -> bool {
        match self.length {
            Some(length) => length <= BUFFER.min(max_bytes.saturating_mul(KEPT)),
            None => !self.is_chunked,
        }
    }
}

impl Shown {
    fn hears(&self) {
        self.is_heard.set(true);
        self.silent.set(0);
    }

    /// A request has waited in vain.
    fn is_silent(&self, host: &impl Host, now: Duration) {
        self.silent.set(self.silent.get().saturating_add(1));
        let is_unheard = !self.is_heard.get() && self.silent.get() >= SILENT;
        if is_unheard && now >= self.unheard_until.get() {
            self.unheard_until.set(now + UNHEARD);
            let words = "requests waited for their bodies, and none was shown: `key.prompt` and `key.json` need the plugin's \
                 `allow_on_headers_stop_iteration: true`; requests have no key for a minute";
            host.log(LogLevel::Warn, words);
        }
    }
}

impl Readings {
    /// Begins to read the body of a request; none where the proxy shows none.
    pub(crate) fn begin(
        &mut self,
        (config, shown): (&Rc<Config>, &Rc<Shown>),
        (key, announced): (&BodyKey, &Announced),
        context: u32,
        now: Duration,
    ) -> Option<Rc<Reading>> {
        if now < shown.unheard_until.get() {
            return None;
        }
        let reading = Rc::new(Reading {
            context,
            config: Rc::clone(config),
            shown: Rc::clone(shown),
            body: RefCell::new(key.body()),
            read: Cell::new(0),
            max_bytes: key.max_bytes,
            fits: announced.fits(key.max_bytes),
            here: Cell::new(Here::Nothing),
            is_late: Cell::new(false),
            decision: Cell::new(None),
            is_over: Cell::new(false),
        });
        let known = Rc::downgrade(&reading);
        self.0.push_back((now + PATIENCE, known));
        Some(reading)
    }

    /// The next request that has waited for long enough and of whose body nothing is here.
    pub(crate) fn next_late(&mut self, host: &impl Host, now: Duration) -> Option<Rc<Reading>> {
        while self.0.front().is_some_and(|(until, _)| *until <= now) {
            let (_, reading) = self.0.pop_front()?;
            let Some(reading) = reading.upgrade().filter(|reading| !reading.is_over.get()) else {
                continue;
            };
            reading.is_late.set(true);
            if reading.here.get() == Here::Nothing {
                reading.shown.is_silent(host, now);
                return Some(reading);
            }
        }
        None
    }
}

impl Reading {
    /// More of the body is here, perhaps the last of it. Says whether the request is to be decided now.
    pub(crate) fn reads(&self, host: &impl RequestHost, is_last: bool) -> bool {
        self.shown.hears();
        self.here.set(match is_last {
            true => Here::Whole,
            false => Here::Part,
        });
        let mut body = self.body.borrow_mut();
        let from = self.read.get();
        let part = host.body(from, self.max_bytes.saturating_sub(from));
        let part = part.unwrap_or_default();
        body.read(&part);
        self.read.set(from + part.len());
        if is_last && !self.is_cut() {
            body.end();
        }
        is_last || body.is_done() || self.is_cut() || self.is_late.get()
    }

    /// Whether all of it is here, and so in the proxy's buffer.
    pub(crate) fn is_whole(&self) -> bool {
        self.here.get() == Here::Whole
    }

    /// Whether as much of it was read as is read at most.
    fn is_cut(&self) -> bool {
        let is_first = !self.fits && self.here.get() == Here::Part;
        is_first || self.read.get() >= self.max_bytes
    }

    /// Ends the reading, and says how.
    pub(crate) fn end(&self) -> BodyEnd {
        self.is_over.set(true);
        let body = self.body.borrow();
        match () {
            () if body.is_malformed() => BodyEnd::Malformed,
            () if body.is_done() => BodyEnd::Read,
            () if self.is_cut() => BodyEnd::Cut,
            () if self.is_whole() => BodyEnd::Read,
            () => BodyEnd::Late,
        }
    }

    /// The names of keys that it has. Of one that is late none: those of a part would be found again by nobody.
    pub(crate) fn names(&self) -> Vec<Vec<u8>> {
        let body = self.body.borrow();
        match self.is_whole() || self.is_cut() || body.is_done() {
            true => body.names(),
            false => Vec::new(),
        }
    }

    /// Leaves for its exchange what a tick has decided.
    pub(crate) fn leave_decision(&self, state: State) {
        self.decision.set(Some(state));
    }

    /// What a tick has decided.
    pub(crate) fn take_decision(&self) -> Option<State> {
        self.decision.take()
    }
}

#[cfg(test)]
mod tests;
