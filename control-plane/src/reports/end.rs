// SPDX-License-Identifier: Apache-2.0
//! Why a stream of reports ended.

use tonic::{Code, Status};

use crate::share::NoRoom;

/// A reason, and what the proxy is told.
#[derive(Debug)]
pub enum End {
    /// A report is larger than the limit.
    TooLarge(Status),
    /// It is none, or it is packed.
    Malformed(Status),
    /// It has no name, or one that is too long, or another one than those before it.
    Name(Status),
    /// The caller's identity may not say this.
    Denied(Status),
    /// `reports.max_proxies` is reached.
    TooManyProxies,
    /// More comes than is taken, of a proxy that does not wait for answers.
    TooFast,
    /// `reports.max_waiting_bytes` is reached.
    NoRoom,
    /// Nothing came for `reports.forget_after`: what is kept of it is forgotten, and is to be told anew.
    Silent,
    /// A newer stream of the proxy has come.
    Superseded,
    /// weir-control ends.
    Shutdown,
    /// The connection broke.
    Lost(Status),
}

impl From<NoRoom> for End {
    fn from(_: NoRoom) -> Self {
        Self::NoRoom
    }
}

impl End {
    /// Of a message that could not be read.
    pub(super) fn unread(status: Status) -> Self {
        match status.code() {
            Code::OutOfRange => Self::TooLarge(status),
            Code::ResourceExhausted => Self::NoRoom,
            Code::Unimplemented => Self::Malformed(status),
            _ => Self::Lost(status),
        }
    }

    /// Of bytes that are no report.
    pub(super) fn malformed(error: impl std::fmt::Display) -> Self {
        Self::Malformed(Status::internal(error.to_string()))
    }

    /// Of a report that would take so many bytes in memory.
    pub(super) fn decodes_to(bytes: usize) -> Self {
        let why = format!("the report would take {bytes} bytes, more than any that a filter sends");
        Self::TooLarge(Status::out_of_range(why))
    }

    /// Its name in metrics.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::TooLarge(_) => "too_large",
            Self::Malformed(_) => "malformed",
            Self::Name(_) => "name",
            Self::Denied(_) => "denied",
            Self::TooManyProxies => "too_many_proxies",
            Self::TooFast => "too_fast",
            Self::NoRoom => "no_room",
            Self::Silent => "silent",
            Self::Superseded => "superseded",
            Self::Shutdown => "shutdown",
            Self::Lost(_) => "lost",
        }
    }

    /// Names of those that say that something is wrong.
    pub const REFUSALS: [&'static str; 7] = [
        "too_large",
        "malformed",
        "name",
        "denied",
        "too_many_proxies",
        "too_fast",
        "no_room",
    ];

    /// Something is wrong.
    pub(super) fn is_refusal(&self) -> bool {
        Self::REFUSALS.contains(&self.as_str())
    }

    /// What the proxy is told.
    pub(super) fn into_status(self) -> Status {
        match self {
            Self::TooLarge(status)
            | Self::Malformed(status)
            | Self::Name(status)
            | Self::Denied(status)
            | Self::Lost(status) => status,
            Self::TooManyProxies => Status::resource_exhausted("reports.max_proxies is reached"),
            Self::TooFast => Status::resource_exhausted("more reports came than were taken"),
            Self::NoRoom => Status::resource_exhausted("reports.max_waiting_bytes is reached"),
            Self::Silent => Status::deadline_exceeded("no report came for reports.forget_after"),
            Self::Superseded => Status::aborted("a newer stream of this proxy has come"),
            Self::Shutdown => Status::unavailable("shutting down"),
        }
    }
}
