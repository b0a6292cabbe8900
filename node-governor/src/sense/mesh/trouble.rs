// SPDX-License-Identifier: Apache-2.0
//! Why there is no stream to weir-control.

use std::time::Duration;

use tonic::{Code, Status};

/// Why a stream has ended, or did not begin.
#[derive(Debug, thiserror::Error)]
pub(super) enum Trouble {
    /// There is no connection.
    #[error("{0}")]
    Unreachable(String),
    /// There is one, and nothing comes.
    #[error("nothing came for {0:?}")]
    Silent(Duration),
    /// Ended without a word.
    #[error("the stream was closed")]
    Closed,
    /// Ended with this.
    #[error("{}", advised(.0))]
    Status(Box<Status>),
}

impl Trouble {
    pub(super) fn unreachable(error: tonic::transport::Error) -> Self {
        Self::Unreachable(whole(&error))
    }

    /// Whether it may be over soon without anybody's doing.
    pub(super) fn mends_itself(&self) -> bool {
        match self {
            Self::Status(status) => !matches!(
                status.code(),
                Code::Aborted | Code::InvalidArgument | Code::NotFound | Code::Unimplemented
            ),
            _ => true,
        }
    }
}

impl From<Status> for Trouble {
    fn from(status: Status) -> Self {
        Self::Status(Box::new(status))
    }
}

/// What it says, and where somebody has to do something, what.
fn advised(status: &Status) -> String {
    let advice = match status.code() {
        Code::Unimplemented => {
            "it is older than this governor and does not know weir.v1.Nodes; update it"
        }
        Code::NotFound => "mesh.cluster and mesh.host have to be as in its configuration",
        Code::Aborted => {
            "another governor speaks for this host; mesh.host has to be that of this node's service"
        }
        Code::InvalidArgument => "mesh.cluster and mesh.host have to be as in its configuration",
        _ => return whole(status),
    };
    match status.message() {
        "" => advice.to_owned(),
        message => format!("{message}: {advice}"),
    }
}

/// With its causes, each once.
pub(super) fn whole(error: &dyn std::error::Error) -> String {
    let mut told = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let text = cause.to_string();
        if !told.contains(&text) {
            told = format!("{told}: {text}");
        }
        source = cause.source();
    }
    told
}
