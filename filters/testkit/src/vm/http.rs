// SPDX-License-Identifier: Apache-2.0
//! A request and its response, as a test drives them.

use std::cell::RefCell;
use std::rc::Rc;

use crate::abi::{Action, Direction};
use crate::error::{Error, Result};
use crate::headers::Headers;
use crate::property;
use crate::stream::{LocalReply, Stream};
use crate::vm::instance::Instance;

/// One HTTP stream: the test plays the caller and the upstream, and sees what gets through.
///
/// Made by [`Vm::request`](crate::Vm::request). Many can be open at once. What the accessors say
/// stays readable after [`finish`](Self::finish) and after a trap.
pub struct HttpStream {
    vm: Rc<RefCell<Instance>>,
    id: u32,
    finished: RefCell<Option<Stream>>,
}

impl HttpStream {
    pub(crate) fn open(
        vm: &Rc<RefCell<Instance>>,
        root: Option<u32>,
        headers: Headers,
        end: bool,
    ) -> Result<Self> {
        let mut instance = vm.borrow_mut();
        let root = match root {
            Some(root) => root,
            None => instance.newest_root()?,
        };
        let id = instance.create_stream(root)?;
        instance.headers(id, Direction::Request, headers, end)?;
        drop(instance);
        Ok(Self {
            vm: Rc::clone(vm),
            id,
            finished: RefCell::new(None),
        })
    }

    /// The id of the stream context.
    pub fn context_id(&self) -> u32 {
        self.id
    }

    /// Sends a part of the request body. It waits if the request is paused at its headers.
    ///
    /// # Errors
    /// A trap, or misuse: the stream is over.
    pub fn body(&self, data: impl AsRef<[u8]>, end: bool) -> Result<Action> {
        if self.read(|stream| stream.local_reply.is_some() || stream.reset) {
            return Ok(Action::Pause);
        }
        self.vm
            .borrow_mut()
            .body(self.id, Direction::Request, data.as_ref().to_vec(), end)
    }

    /// Ends the request with trailers.
    ///
    /// # Errors
    /// As for [`body`](Self::body).
    pub fn trailers(&self, trailers: impl Into<Headers>) -> Result<Action> {
        if self.read(|stream| stream.local_reply.is_some() || stream.reset) {
            return Ok(Action::Pause);
        }
        self.vm
            .borrow_mut()
            .trailers(self.id, Direction::Request, trailers.into())
    }

    /// A response without a body from the upstream.
    ///
    /// # Errors
    /// A trap, or [`Error::Misuse`] if the request never got to an upstream: it is paused, was
    /// answered by the module or reset.
    pub fn response(&self, headers: impl Into<Headers>) -> Result<Action> {
        self.respond(headers.into(), true)
    }

    /// The start of a response whose body or trailers follow.
    ///
    /// # Errors
    /// As for [`response`](Self::response).
    pub fn response_open(&self, headers: impl Into<Headers>) -> Result<Action> {
        self.respond(headers.into(), false)
    }

    fn respond(&self, headers: Headers, end: bool) -> Result<Action> {
        let refusal = self.read(|stream| {
            if stream.local_reply.is_some() {
                Some("the module answered the request itself")
            } else if stream.reset {
                Some("the module reset the stream")
            } else if stream.request.held.is_some() {
                Some("the request is paused")
            } else if stream.response.headers.is_some() {
                Some("there is a response already")
            } else {
                None
            }
        });
        if let Some(refusal) = refusal {
            return Err(Error::Misuse(format!("no response can come: {refusal}")));
        }
        self.vm
            .borrow_mut()
            .headers(self.id, Direction::Response, headers, end)
    }

    /// A part of the response body.
    ///
    /// # Errors
    /// A trap, or misuse: there is no response or the stream is over.
    pub fn response_body(&self, data: impl AsRef<[u8]>, end: bool) -> Result<Action> {
        self.must_have_response()?;
        self.vm
            .borrow_mut()
            .body(self.id, Direction::Response, data.as_ref().to_vec(), end)
    }

    /// Ends the response with trailers.
    ///
    /// # Errors
    /// As for [`response_body`](Self::response_body).
    pub fn response_trailers(&self, trailers: impl Into<Headers>) -> Result<Action> {
        self.must_have_response()?;
        self.vm
            .borrow_mut()
            .trailers(self.id, Direction::Response, trailers.into())
    }

    fn must_have_response(&self) -> Result<()> {
        if self.read(|stream| stream.response.headers.is_none() || stream.local_reply.is_some()) {
            return Err(Error::Misuse(
                "there is no response from the upstream".into(),
            ));
        }
        Ok(())
    }

    /// Ends the stream, as after a complete response or when the caller has gone:
    /// `on_log`, then `on_done`, then `on_delete`.
    ///
    /// # Errors
    /// A trap, or misuse: it is over already.
    pub fn finish(&self) -> Result<()> {
        let stream = self.vm.borrow_mut().finish(self.id)?;
        *self.finished.borrow_mut() = Some(stream);
        Ok(())
    }

    /// Sets a property of this stream alone, such as `["upstream", "address"]`.
    pub fn set_property(&self, path: &[&str], value: impl AsRef<[u8]>) {
        if let Ok(stream) = self.vm.borrow_mut().stream(self.id) {
            stream
                .properties
                .insert(property::path(path), value.as_ref().to_vec());
        }
    }

    /// Whether the message goes on: [`Action::Pause`] while the module holds the request (or, once
    /// there is one, the response), and for good when the module answered or reset it.
    pub fn action(&self) -> Action {
        let paused = self.read(|stream| {
            let held = stream.request.held.is_some() || stream.response.held.is_some();
            held || stream.local_reply.is_some() || stream.reset
        });
        if paused {
            Action::Pause
        } else {
            Action::Continue
        }
    }

    /// The request headers as the module left them.
    pub fn request_headers(&self) -> Headers {
        self.read(|stream| stream.request.headers.clone().unwrap_or_default())
    }

    /// The first value of a request header as the module left it.
    pub fn request_header(&self, name: &str) -> Option<String> {
        self.request_headers().get(name)
    }

    /// The part of the request body that went on.
    pub fn request_body(&self) -> Vec<u8> {
        self.read(|stream| stream.request.body_passed.clone())
    }

    /// The request trailers as the module left them.
    pub fn request_trailers(&self) -> Headers {
        self.read(|stream| stream.request.trailers.clone().unwrap_or_default())
    }

    /// The response headers as the module left them: the upstream's, or those of a local reply.
    pub fn response_headers(&self) -> Headers {
        self.read(|stream| stream.response.headers.clone().unwrap_or_default())
    }

    /// The first value of a response header as the module left it.
    pub fn response_header(&self, name: &str) -> Option<String> {
        self.response_headers().get(name)
    }

    /// The part of the response body that went on.
    pub fn response_body_sent(&self) -> Vec<u8> {
        self.read(|stream| stream.response.body_passed.clone())
    }

    /// The response trailers as the module left them.
    pub fn response_trailers_sent(&self) -> Headers {
        self.read(|stream| stream.response.trailers.clone().unwrap_or_default())
    }

    /// The reply that the module sent itself.
    pub fn local_reply(&self) -> Option<LocalReply> {
        self.read(|stream| stream.local_reply.clone())
    }

    /// Whether the module reset the stream.
    pub fn was_reset(&self) -> bool {
        self.read(|stream| stream.reset)
    }

    /// What the module set with `proxy_set_property`; access logs see it as filter state `wasm.<path>`.
    pub fn filter_state(&self, path: &[&str]) -> Option<Vec<u8>> {
        self.read(|stream| stream.filter_state.get(&property::path(path)).cloned())
    }

    /// Reads the stream where it is: in the VM, or here once it is finished.
    fn read<T>(&self, read: impl FnOnce(&Stream) -> T) -> T {
        if let Some(stream) = self.finished.borrow().as_ref() {
            return read(stream);
        }
        let instance = self.vm.borrow();
        let stream = instance.state().streams.get(&self.id);
        read(stream.expect("a stream leaves the VM only when it is finished"))
    }
}
