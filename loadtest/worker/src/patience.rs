// SPDX-License-Identifier: Apache-2.0
//! Connections that are given up when their client takes nothing for a while.
//!
//! A client that never reads its answer would otherwise keep its connection, and a chunk of the
//! answer, for ever: nothing above asks a body for more while the socket takes no bytes.

use std::io;
use std::pin::Pin;
use std::time::Duration;

use axum::serve::Listener;
use tokio_io_timeout::TimeoutStream;

/// How long a client may take nothing of an answer that is there.
const WRITE: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(crate) struct PatientListener<L>(L);

impl<L> From<L> for PatientListener<L> {
    fn from(listener: L) -> Self {
        Self(listener)
    }
}

impl<L: Listener> Listener for PatientListener<L> {
    type Io = Pin<Box<TimeoutStream<L::Io>>>;
    type Addr = L::Addr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        let (stream, address) = self.0.accept().await;
        let mut stream = TimeoutStream::new(stream);
        stream.set_write_timeout(Some(WRITE));
        (Box::pin(stream), address)
    }

    fn local_addr(&self) -> io::Result<L::Addr> {
        self.0.local_addr()
    }
}
