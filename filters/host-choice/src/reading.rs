// SPDX-License-Identifier: Apache-2.0
//! A request whose key is in its body: it is held at its headers until enough of that is here.
//!
//! ```text
//!  on_request ── begin ──> Reading <── on_body: a part more ──┬── the end, the key, or `max_bytes` ──> decided
//!                             └── on a tick, a second later ──┴── with what is known then ───────────> decided
//! ```
//! Nothing is refused for what its body is: one that cannot be read is decided without a key.

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
/// For so long no body is waited for where the proxy shows none.
const UNHEARD: Duration = Duration::from_secs(60);

/// A request whose body is being read.
pub(crate) struct Reading {
    pub(crate) context: u32,
    pub(crate) config: Rc<Config>,
    body: RefCell<Body>,
    /// Bytes of it that were read.
    read: Cell<usize>,
    max_bytes: usize,
    /// Some of it was shown.
    is_heard: Cell<bool>,
    /// All of it was.
    is_whole: Cell<bool>,
    /// What a tick has decided, until its exchange takes that over.
    decided: Cell<Option<State>>,
    is_over: Cell<bool>,
}

/// Requests of a VM whose bodies are being read.
#[derive(Default)]
pub(crate) struct Readings {
    /// The oldest first. Those that have gone are not known here any more.
    waiting: VecDeque<(Duration, Weak<Reading>)>,
    /// The proxy shows bodies.
    is_heard: bool,
    unheard_until: Duration,
}

/// Whether it may be read: JSON, as it is.
pub(crate) fn is_readable(headers: Option<&Headers>) -> bool {
    let Some(headers) = headers else {
        return false;
    };
    let [kind, encoding] = headers.get_each(["content-type", "content-encoding"]);
    let is_json = kind.is_some_and(|kind| {
        let essence = kind.split(|byte| *byte == b';').next().unwrap_or_default();
        let essence = essence.trim_ascii().to_ascii_lowercase();
        essence == b"application/json" || essence.ends_with(b"+json")
    });
    is_json && encoding.is_none_or(|encoding| encoding.eq_ignore_ascii_case(b"identity"))
}

impl Readings {
    /// Begins to read the body of a request; none where the proxy shows none.
    pub(crate) fn begin(
        &mut self,
        config: &Rc<Config>,
        key: &BodyKey,
        context: u32,
        now: Duration,
    ) -> Option<Rc<Reading>> {
        if now < self.unheard_until {
            return None;
        }
        let reading = Rc::new(Reading {
            context,
            config: Rc::clone(config),
            body: RefCell::new(key.body()),
            read: Cell::new(0),
            max_bytes: key.max_bytes,
            is_heard: Cell::new(false),
            is_whole: Cell::new(false),
            decided: Cell::new(None),
            is_over: Cell::new(false),
        });
        let known = Rc::downgrade(&reading);
        self.waiting.push_back((now + PATIENCE, known));
        Some(reading)
    }

    /// The body of some request was shown.
    pub(crate) fn is_heard(&mut self) {
        self.is_heard = true;
    }

    /// The next request that has waited for long enough.
    pub(crate) fn next_late(&mut self, host: &impl Host, now: Duration) -> Option<Rc<Reading>> {
        while self.waiting.front().is_some_and(|(until, _)| *until <= now) {
            let (_, reading) = self.waiting.pop_front()?;
            let Some(reading) = reading.upgrade().filter(|reading| !reading.is_over.get()) else {
                continue;
            };
            if !self.is_heard && !reading.is_heard.get() {
                self.unheard_until = now + UNHEARD;
                let words = "a request waited for its body, and none was shown: `key.prompt` and `key.json` need the plugin's \
                     `allow_on_headers_stop_iteration: true`; requests have no key for a minute";
                host.log(LogLevel::Warn, words);
            }
            return Some(reading);
        }
        None
    }
}

impl Reading {
    /// More of the body is here, perhaps the last of it. Says whether the request is to be decided now.
    pub(crate) fn reads(&self, host: &impl RequestHost, is_last: bool) -> bool {
        self.is_heard.set(true);
        self.is_whole.set(is_last);
        let mut body = self.body.borrow_mut();
        let from = self.read.get();
        let part = host.body(from, self.max_bytes.saturating_sub(from));
        let part = part.unwrap_or_default();
        body.read(&part);
        self.read.set(from + part.len());
        if is_last && !self.is_cut() {
            body.end();
        }
        is_last || body.is_done() || self.is_cut()
    }

    /// Whether some of it was shown, and more is to come.
    pub(crate) fn is_partial(&self) -> bool {
        self.is_heard.get() && !self.is_whole.get()
    }

    /// Whether it is longer than what is read, or as long.
    pub(crate) fn is_cut(&self) -> bool {
        self.read.get() >= self.max_bytes
    }

    /// How the reading ended; `is_late`: because the time was over.
    pub(crate) fn end(&self, is_late: bool) -> BodyEnd {
        self.is_over.set(true);
        let body = self.body.borrow();
        match () {
            () if body.is_malformed() => BodyEnd::Malformed,
            () if is_late => BodyEnd::Late,
            () if self.is_cut() && !body.is_done() => BodyEnd::Cut,
            () => BodyEnd::Read,
        }
    }

    /// The names of keys that it has.
    pub(crate) fn names(&self) -> Vec<Vec<u8>> {
        self.body.borrow().names()
    }

    /// Leaves for its exchange what was decided.
    pub(crate) fn decide(&self, state: State) {
        self.decided.set(Some(state));
    }

    /// What was decided.
    pub(crate) fn decided(&self) -> Option<State> {
        self.decided.take()
    }
}

#[cfg(test)]
mod tests;
