// SPDX-License-Identifier: Apache-2.0
//! The server behind a gRPC stream, as a test plays it.

use crate::callout::{GrpcRequest, Received};
use crate::error::Result;
use crate::headers::Headers;
use crate::vm::callouts::{Shared, closed};

/// The server's end of a gRPC stream that a module opened.
#[derive(Clone)]
pub struct GrpcStream {
    vm: Shared,
    token: u32,
    request: GrpcRequest,
}

impl GrpcStream {
    /// All streams that neither side has ended, in the order in which they were opened.
    pub(crate) fn all(vm: &Shared) -> Vec<Self> {
        let instance = vm.borrow();
        let open = instance
            .state()
            .callouts
            .streams
            .iter()
            .filter(|(_, stream)| !stream.remote_closed);
        open.map(|(token, stream)| Self {
            vm: vm.clone(),
            token: *token,
            request: stream.request.clone(),
        })
        .collect()
    }

    /// The number by which the module knows it.
    pub fn token(&self) -> u32 {
        self.token
    }

    /// What it was opened with.
    pub fn request(&self) -> &GrpcRequest {
        &self.request
    }

    /// Takes the messages that the module has sent since the last time.
    pub fn take_sent(&self) -> Vec<Vec<u8>> {
        let mut instance = self.vm.borrow_mut();
        let stream = instance.state_mut().callouts.streams.get_mut(&self.token);
        stream
            .map(|stream| std::mem::take(&mut stream.sent))
            .unwrap_or_default()
    }

    /// Whether neither the server nor the module (by cancelling) has ended it.
    pub fn is_open(&self) -> bool {
        let instance = self.vm.borrow();
        instance
            .state()
            .callouts
            .streams
            .get(&self.token)
            .is_some_and(|stream| !stream.remote_closed)
    }

    /// Whether the module has said that it sends no more.
    pub fn is_half_closed(&self) -> bool {
        let instance = self.vm.borrow();
        instance
            .state()
            .callouts
            .streams
            .get(&self.token)
            .is_some_and(|stream| stream.half_closed)
    }

    fn root(&self) -> Result<u32> {
        let instance = self.vm.borrow();
        let stream = instance.state().callouts.streams.get(&self.token);
        let open = stream.filter(|stream| !stream.remote_closed);
        open.map(|stream| stream.root)
            .ok_or_else(|| closed("gRPC stream", self.token))
    }

    fn receive(&self, callback: &'static str, count: usize, received: Received) -> Result<()> {
        let root = self.root()?;
        self.vm
            .borrow_mut()
            .receive(root, callback, &[root, self.token, count as u32], received)
    }

    /// The server sends its initial metadata.
    ///
    /// # Errors
    /// A trap, or misuse: the stream is closed.
    pub fn initial_metadata(&self, metadata: impl Into<Headers>) -> Result<()> {
        let metadata = metadata.into();
        let count = metadata.len();
        let received = Received {
            initial_metadata: Some(metadata),
            ..Received::default()
        };
        self.receive("proxy_on_grpc_receive_initial_metadata", count, received)
    }

    /// The server sends a message.
    ///
    /// # Errors
    /// As for [`initial_metadata`](Self::initial_metadata).
    pub fn send(&self, message: impl AsRef<[u8]>) -> Result<()> {
        let message = message.as_ref().to_vec();
        let size = message.len();
        let received = Received {
            message: Some(message),
            ..Received::default()
        };
        self.receive("proxy_on_grpc_receive", size, received)
    }

    /// The server sends its trailing metadata.
    ///
    /// # Errors
    /// As for [`initial_metadata`](Self::initial_metadata).
    pub fn trailing_metadata(&self, metadata: impl Into<Headers>) -> Result<()> {
        let metadata = metadata.into();
        let count = metadata.len();
        let received = Received {
            trailing_metadata: Some(metadata),
            ..Received::default()
        };
        self.receive("proxy_on_grpc_receive_trailing_metadata", count, received)
    }

    /// The server, or the connection to it, ends the stream with a gRPC status.
    ///
    /// # Errors
    /// As for [`initial_metadata`](Self::initial_metadata).
    pub fn close(&self, status: u32, message: &str) -> Result<()> {
        let root = self.root()?;
        self.vm
            .borrow_mut()
            .grpc_closed(root, self.token, status, message)
    }
}
