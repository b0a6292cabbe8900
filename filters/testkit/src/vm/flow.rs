// SPDX-License-Identifier: Apache-2.0
//! How headers, bodies and trailers pass through a stream context.

use crate::abi::{Action, Direction};
use crate::error::{Error, Result};
use crate::headers::Headers;
use crate::stream::{LocalReply, Paused, Piece, Stream};
use crate::vm::instance::Instance;

impl Instance {
    pub(crate) fn create_stream(&mut self, root: u32) -> Result<u32> {
        if !self.state().roots.contains_key(&root) {
            return Err(Error::Misuse(format!("there is no root context {root}")));
        }
        let id = self.state_mut().next_context();
        let absent_in_log = self.state().settings.absent_in_log;
        self.state_mut()
            .streams
            .insert(id, Stream::new(root, absent_in_log));
        self.call(id, "proxy_on_context_create", &[id, root])?;
        self.settle()?;
        Ok(id)
    }

    /// The stream, or an error if it is over.
    pub(crate) fn stream(&mut self, id: u32) -> Result<&mut Stream> {
        let streams = &mut self.state_mut().streams;
        streams
            .get_mut(&id)
            .ok_or_else(|| Error::Misuse(format!("stream {id} is finished")))
    }

    pub(crate) fn headers(
        &mut self,
        id: u32,
        way: Direction,
        headers: Headers,
        end: bool,
    ) -> Result<Action> {
        let action = self.deliver_headers(id, way, headers, end)?;
        self.settle()?;
        Ok(action)
    }

    fn deliver_headers(
        &mut self,
        id: u32,
        way: Direction,
        headers: Headers,
        end: bool,
    ) -> Result<Action> {
        let count = headers.len() as u32;
        self.stream(id)?.half(way).show_headers(headers);
        let callback = match way {
            Direction::Request => "proxy_on_request_headers",
            Direction::Response => "proxy_on_response_headers",
        };
        let action = self.decide(id, callback, &[id, count, end.into()])?;
        self.stream(id)?.half(way).after_headers(action);
        Ok(action)
    }

    pub(crate) fn body(
        &mut self,
        id: u32,
        way: Direction,
        data: Vec<u8>,
        end: bool,
    ) -> Result<Action> {
        let must_wait = !self.state().settings.stops_iteration;
        let half = self.stream(id)?.half(way);
        if half.must_wait() && must_wait {
            half.waiting.push_back(Piece::Body(data, end));
            return Ok(Action::Pause);
        }
        let action = self.deliver_body(id, way, data, end)?;
        self.settle()?;
        Ok(action)
    }

    fn deliver_body(
        &mut self,
        id: u32,
        way: Direction,
        data: Vec<u8>,
        end: bool,
    ) -> Result<Action> {
        let size = self.stream(id)?.half(way).show_body(data) as u32;
        let callback = match way {
            Direction::Request => "proxy_on_request_body",
            Direction::Response => "proxy_on_response_body",
        };
        let action = self.decide(id, callback, &[id, size, end.into()])?;
        self.stream(id)?.half(way).after_body(action);
        Ok(action)
    }

    pub(crate) fn trailers(
        &mut self,
        id: u32,
        way: Direction,
        trailers: Headers,
    ) -> Result<Action> {
        let must_wait = !self.state().settings.stops_iteration;
        let half = self.stream(id)?.half(way);
        if half.must_wait() && must_wait {
            half.waiting.push_back(Piece::Trailers(trailers));
            return Ok(Action::Pause);
        }
        let action = self.deliver_trailers(id, way, trailers)?;
        self.settle()?;
        Ok(action)
    }

    fn deliver_trailers(&mut self, id: u32, way: Direction, trailers: Headers) -> Result<Action> {
        let count = trailers.len() as u32;
        let half = self.stream(id)?.half(way);
        half.trailers = Some(trailers);
        half.trailers_shown = true;
        let callback = match way {
            Direction::Request => "proxy_on_request_trailers",
            Direction::Response => "proxy_on_response_trailers",
        };
        let action = self.decide(id, callback, &[id, count])?;
        self.stream(id)?.half(way).after_trailers(action);
        Ok(action)
    }

    /// `proxy_continue_stream`, once its callback has returned: lets go what was held, then delivers
    /// what waited behind it.
    pub(crate) fn resume(&mut self, id: u32, way: Direction) -> Result<()> {
        let Ok(stream) = self.stream(id) else {
            return Ok(());
        };
        if stream.reset || (way == Direction::Request && stream.local_reply.is_some()) {
            return Ok(());
        }
        let half = stream.half(way);
        match half.held.take() {
            Some(Paused::Headers) => half.headers_shown = false,
            Some(Paused::Body | Paused::Trailers) => {
                half.pass();
                half.trailers_shown = false;
            }
            None => return Ok(()),
        }
        while let Some(piece) = self.next_waiting(id, way) {
            match piece {
                Piece::Body(data, end) => self.deliver_body(id, way, data, end)?,
                Piece::Trailers(trailers) => self.deliver_trailers(id, way, trailers)?,
            };
        }
        Ok(())
    }

    fn next_waiting(&mut self, id: u32, way: Direction) -> Option<Piece> {
        self.stream(id).ok()?.half(way).waiting.pop_front()
    }

    /// `proxy_send_local_response`, once its callback has returned. The reply passes through the
    /// module like an upstream's, unless a response was already on its way: then it replaces that.
    pub(crate) fn answer(&mut self, id: u32, reply: LocalReply) -> Result<()> {
        let Ok(stream) = self.stream(id) else {
            return Ok(());
        };
        if stream.reset || stream.local_reply.is_some() {
            return Ok(());
        }
        let (headers, body) = reply.response(stream.is_grpc());
        stream.local_reply = Some(reply);
        stream.request.held = None;
        stream.request.waiting.clear();
        if stream.response.headers.is_some() {
            stream.response.held = None;
            stream.response.headers = Some(headers);
            stream.response.body_shown = None;
            stream.response.body_passed = body;
            return Ok(());
        }
        let end = body.is_empty();
        let action = self.deliver_headers(id, Direction::Response, headers, end)?;
        match (end, action) {
            (true, _) => {}
            (false, Action::Continue) => {
                self.deliver_body(id, Direction::Response, body, true)?;
            }
            (false, Action::Pause) => {
                self.stream(id)?
                    .response
                    .waiting
                    .push_back(Piece::Body(body, true));
            }
        }
        Ok(())
    }

    /// The end of a stream: `on_log`, `on_done`, `on_delete`, in Envoy's order.
    pub(crate) fn finish(&mut self, id: u32) -> Result<Stream> {
        self.stream(id)?.logging = true;
        let logged = self
            .call(id, "proxy_on_log", &[id])
            .and_then(|_| self.settle());
        self.stream(id)?.logging = false;
        logged?;
        self.call(id, "proxy_on_done", &[id])?;
        self.settle()?;
        self.call(id, "proxy_on_delete", &[id])?;
        self.settle()?;
        let gone = || Error::Misuse(format!("stream {id} is finished"));
        self.state_mut().streams.remove(&id).ok_or_else(gone)
    }
}
