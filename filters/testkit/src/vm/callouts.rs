// SPDX-License-Identifier: Apache-2.0
//! The servers behind gRPC and HTTP calls, as a test plays them.

use std::cell::RefCell;
use std::rc::Rc;

use crate::callout::{GrpcRequest, HttpAnswer, HttpCallRequest, Received};
use crate::error::{Error, Result};
use crate::headers::Headers;
use crate::vm::instance::Instance;

pub(super) type Shared = Rc<RefCell<Instance>>;

impl Instance {
    /// Calls a callback while `received` is what the module can read.
    pub(super) fn receive(
        &mut self,
        root: u32,
        callback: &'static str,
        arguments: &[u32],
        received: Received,
    ) -> Result<()> {
        self.state_mut().received = received;
        let called = self.call(root, callback, arguments);
        self.state_mut().received = Received::default();
        called?;
        self.settle()
    }

    /// `proxy_on_grpc_close`. A stream that the module has not closed stays known to the host.
    pub(crate) fn grpc_closed(
        &mut self,
        root: u32,
        token: u32,
        status: u32,
        message: &str,
    ) -> Result<()> {
        let callouts = &mut self.state_mut().callouts;
        callouts.calls.remove(&token);
        if let Some(stream) = callouts.streams.get_mut(&token) {
            stream.remote_closed = true;
            if stream.half_closed {
                callouts.streams.remove(&token);
            }
        }
        let received = Received {
            status,
            status_message: message.to_owned(),
            ..Received::default()
        };
        self.receive(
            root,
            "proxy_on_grpc_close",
            &[root, token, status],
            received,
        )
    }
}

pub(super) fn closed(what: &str, token: u32) -> Error {
    Error::Misuse(format!("{what} {token} is closed"))
}

/// A unary gRPC call that waits for its answer.
#[derive(Clone)]
pub struct GrpcCall {
    vm: Shared,
    token: u32,
    request: GrpcRequest,
    message: Vec<u8>,
}

impl GrpcCall {
    pub(crate) fn all(vm: &Shared) -> Vec<Self> {
        let instance = vm.borrow();
        let calls = instance.state().callouts.calls.iter();
        calls
            .map(|(token, call)| Self {
                vm: vm.clone(),
                token: *token,
                request: call.request.clone(),
                message: call.message.clone(),
            })
            .collect()
    }

    /// What it was made with.
    pub fn request(&self) -> &GrpcRequest {
        &self.request
    }

    /// The message of the module.
    pub fn message(&self) -> &[u8] {
        &self.message
    }

    fn root(&self) -> Result<u32> {
        let instance = self.vm.borrow();
        let call = instance.state().callouts.calls.get(&self.token);
        call.map(|call| call.root)
            .ok_or_else(|| closed("gRPC call", self.token))
    }

    /// The server answers.
    ///
    /// # Errors
    /// A trap, or misuse: the call was answered or cancelled.
    pub fn reply(&self, message: impl AsRef<[u8]>) -> Result<()> {
        let root = self.root()?;
        let mut instance = self.vm.borrow_mut();
        instance.state_mut().callouts.calls.remove(&self.token);
        let message = message.as_ref().to_vec();
        let size = message.len() as u32;
        let received = Received {
            message: Some(message),
            ..Received::default()
        };
        instance.receive(
            root,
            "proxy_on_grpc_receive",
            &[root, self.token, size],
            received,
        )
    }

    /// The call ends with a gRPC status and no answer.
    ///
    /// # Errors
    /// As for [`reply`](Self::reply).
    pub fn fail(&self, status: u32, message: &str) -> Result<()> {
        let root = self.root()?;
        self.vm
            .borrow_mut()
            .grpc_closed(root, self.token, status, message)
    }
}

/// An HTTP call that waits for its answer.
#[derive(Clone)]
pub struct HttpCall {
    vm: Shared,
    token: u32,
    request: HttpCallRequest,
}

impl HttpCall {
    pub(crate) fn all(vm: &Shared) -> Vec<Self> {
        let instance = vm.borrow();
        let calls = instance.state().callouts.http.iter();
        calls
            .map(|(token, call)| Self {
                vm: vm.clone(),
                token: *token,
                request: call.request.clone(),
            })
            .collect()
    }

    /// What it was made with.
    pub fn request(&self) -> &HttpCallRequest {
        &self.request
    }

    /// The server answers.
    ///
    /// # Errors
    /// A trap, or misuse: the call is over.
    pub fn reply(&self, headers: impl Into<Headers>, body: impl AsRef<[u8]>) -> Result<()> {
        let (headers, body) = (headers.into(), body.as_ref().to_vec());
        self.end(Received {
            http: Some(HttpAnswer {
                headers,
                body,
                trailers: Headers::new(),
            }),
            ..Received::default()
        })
    }

    /// The connection breaks or the time is up: the module is called with no headers at all.
    ///
    /// # Errors
    /// As for [`reply`](Self::reply).
    pub fn fail(&self) -> Result<()> {
        let status = crate::abi::Status::BrokenConnection as u32;
        self.end(Received {
            status,
            status_message: "reset".to_owned(),
            ..Received::default()
        })
    }

    fn end(&self, received: Received) -> Result<()> {
        let mut instance = self.vm.borrow_mut();
        let call = instance.state_mut().callouts.http.remove(&self.token);
        let root = call.ok_or_else(|| closed("HTTP call", self.token))?.root;
        let sizes = received
            .http
            .as_ref()
            .map(|a| (a.headers.len(), a.body.len(), a.trailers.len()));
        let (headers, body, trailers) = sizes.unwrap_or_default();
        let arguments = [
            root,
            self.token,
            headers as u32,
            body as u32,
            trailers as u32,
        ];
        instance.receive(root, "proxy_on_http_call_response", &arguments, received)
    }
}
