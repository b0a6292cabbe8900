// SPDX-License-Identifier: Apache-2.0
//! What a [`Program`](crate::Program) may ask of the host, by the same rules as a module.

use std::any::Any;
use std::rc::Rc;
use std::time::Duration;

use crate::abi::{Direction, LogLevel, MapType};
use crate::callout::{Callout, GrpcRequest};
use crate::headers::Headers;
use crate::metrics::Kind;
use crate::property;
use crate::state::{After, State};
use crate::stream::LocalReply;

/// The host, for the length of a callback.
pub struct Calls<'a> {
    state: &'a mut State,
}

impl<'a> Calls<'a> {
    pub(crate) fn new(state: &'a mut State) -> Self {
        Self { state }
    }

    /// Counts a call for [`Vm::host_calls_of`](crate::Vm::host_calls_of).
    pub fn count(&mut self, call: &'static str) {
        self.state.count(call);
    }

    /// What the programs of all VMs of this host have in common; made by the first that asks, who names its type.
    ///
    /// # Panics
    /// Another type was named before.
    pub fn in_common<T: 'static>(&self, new: impl FnOnce() -> T) -> Rc<T> {
        let mut common = self.state.host.common.borrow_mut();
        let common = common.get_or_insert_with(|| Rc::new(new()) as Rc<dyn Any>);
        let common = Rc::clone(common).downcast();
        common.unwrap_or_else(|_| panic!("the programs of one host are of one kind"))
    }

    /// Writes a line of the VM's log.
    pub fn log(&mut self, level: LogLevel, message: &str) {
        self.state.log(level, message.as_bytes());
    }

    /// The monotonic clock, and time since 1970 by the wall clock.
    pub fn now(&self) -> (Duration, Duration) {
        let clock = &self.state.host.clock;
        (clock.monotonic(), Duration::from_nanos(clock.wall_nanos()))
    }

    /// The configuration of the root that is being configured.
    pub fn configuration(&self) -> Option<Vec<u8>> {
        self.state.plugin_configuration.clone()
    }

    /// Asks for ticks of a root, or for none.
    pub fn tick_every(&mut self, root: u32, period: Option<Duration>) {
        let now = self.state.host.clock.monotonic();
        if let Some(root) = self.state.roots.get_mut(&root)
            && root.tick_period != period
        {
            root.tick_period = period;
            root.next_tick = now + period.unwrap_or_default();
        }
    }

    /// Shows bodies behind headers that are paused, from now on, or does not.
    pub fn show_bodies(&mut self, is_shown: bool) {
        self.state.settings.stops_iteration = is_shown;
    }

    /// A property of a context.
    pub fn property(&mut self, context: u32, path: &[&str]) -> Option<Vec<u8>> {
        let before = self.state.effective.replace(context);
        let value = property::get(self.state, &property::path(path));
        self.state.effective = before;
        value
    }

    /// The headers of a request or of its response, where the program may read them now.
    pub fn headers(&self, context: u32, of: Direction) -> Option<Headers> {
        let stream = self.state.streams.get(&context)?;
        stream.map(MapType::Headers(of)).ok().cloned()
    }

    /// Sets a header to one value, or removes it; says whether the program may.
    pub fn set_header(
        &mut self,
        context: u32,
        of: Direction,
        name: &str,
        value: Option<&[u8]>,
    ) -> bool {
        let stream = self.state.streams.get_mut(&context);
        let map = stream.and_then(|stream| stream.map_mut(MapType::Headers(of)).ok());
        let Some(headers) = map else { return false };
        match value {
            Some(value) => headers.set(name, value),
            None => headers.remove(name),
        }
        true
    }

    /// What of a request's body has not gone on yet.
    pub fn body(&self, context: u32) -> Vec<u8> {
        let stream = self.state.streams.get(&context);
        let shown = stream.and_then(|stream| stream.request.body_shown.clone());
        shown.unwrap_or_default()
    }

    /// Sets what access logs read of a request.
    pub fn set_filter_state(&mut self, context: u32, name: &str, value: &[u8]) {
        if let Some(stream) = self.state.streams.get_mut(&context) {
            let path = property::path(&[name]);
            stream.filter_state.insert(path, value.to_vec());
        }
    }

    /// Answers a request when the callback has returned.
    pub fn reply(&mut self, context: u32, reply: LocalReply) {
        self.state.after.push_back(After::Reply(context, reply));
        self.state.answered = true;
    }

    /// Whether a program has answered it.
    pub fn is_replied(&self, context: u32) -> bool {
        let stream = self.state.streams.get(&context);
        stream.is_some_and(|stream| stream.local_reply.is_some())
    }

    /// Lets a request go on when the callback has returned.
    pub fn resume(&mut self, context: u32) {
        let resume = After::Resume(context, Direction::Request);
        self.state.after.push_back(resume);
    }

    /// Opens a gRPC stream for a root; none where there is no such cluster.
    pub fn open_stream(&mut self, root: u32, request: GrpcRequest) -> Option<u32> {
        let upstreams = self.state.host.upstreams.borrow();
        if !upstreams.contains(&request.cluster) {
            return None;
        }
        drop(upstreams);
        let callouts = &mut self.state.callouts;
        let token = callouts.next_token(Callout::GrpcStream);
        callouts.open_stream(root, request, token);
        Some(token)
    }

    /// Sends a message through a stream; says whether it is open.
    pub fn send(&mut self, token: u32, message: Vec<u8>) -> bool {
        let stream = self.state.callouts.streams.get_mut(&token);
        stream.map(|stream| stream.sent.push(message)).is_some()
    }

    /// Ends a stream.
    pub fn cancel(&mut self, token: u32) {
        self.state.callouts.streams.remove(&token);
    }

    /// The message that is being received.
    pub fn message(&self) -> Vec<u8> {
        self.state.received.message.clone().unwrap_or_default()
    }

    /// Sets a counter or gauge of the host.
    pub fn set_metric(&mut self, is_gauge: bool, name: &str, value: u64) {
        let kind = if is_gauge { Kind::Gauge } else { Kind::Counter };
        self.state.host.metrics.set(kind, name, value);
    }

    /// Writes shared data whatever is there.
    pub fn set_shared(&mut self, key: &str, value: &[u8]) {
        let mut data = self.state.host.shared_data.borrow_mut();
        let vm_id = &self.state.settings.vm_id;
        // Unconditional, so it cannot mismatch.
        let _ = data.set(vm_id, key.as_bytes(), value.to_vec(), 0);
    }
}
