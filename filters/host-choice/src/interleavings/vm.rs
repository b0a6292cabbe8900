// SPDX-License-Identifier: Apache-2.0
//! A VM that can be stopped between two calls and copied, because it does what it does by what it has heard: it is
//! made anew each time, hears all of that again, and is given up at its first call that has no answer yet.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::time::Duration;

use prost::Message;
use weir_policy::HostId;
use weir_tables::discovery::DeltaDiscoveryRequest;

use super::calls::{Answer, Call, Watched, id};
use super::proxy::{Event, address, response};
use crate::fake::{FakeRequest, RULES};
use crate::handle::VmHandle;
use crate::host::{Change, Failed, Host, LogLevel, MetricType};
use crate::root::Root;

/// Another configuration of the same cluster.
const NEWER: &str = r#"{"clusters":{"rules":{}},"debug":true}"#;

/// A VM, by all that it depends on.
#[derive(Clone)]
pub(super) struct Vm {
    pub(super) number: usize,
    /// What happens to it, and when.
    pub(super) events: Vec<(Duration, Event)>,
    /// What it has heard.
    pub(super) heard: Vec<Rc<Answer>>,
}

/// What a VM does next.
#[derive(Clone)]
pub(super) enum Next {
    /// It makes a call.
    Call(Rc<Call>),
    /// Nothing, before something happens to it.
    Rest,
}

/// A VM that has done all that happened to it.
#[derive(Clone, Default)]
pub(super) struct Resting {
    /// The version that weir-control takes it to have, where it has a stream of tables.
    pub(super) stream: Option<Option<u64>>,
    /// The version of the table that it chooses by.
    pub(super) version: Option<u64>,
}

impl Vm {
    /// Plays all that it has heard; what it does then.
    pub(super) fn next(&self) -> Next {
        let proxy = Proxy::of(self, None);
        let played = catch_unwind(AssertUnwindSafe(|| play(&proxy, self)));
        let call = proxy.0.borrow_mut().unanswered.take();
        match (played, call) {
            (_, Some(call)) => Next::Call(Rc::new(call)),
            (Ok(_), None) => Next::Rest,
            (Err(panicked), None) => resume_unwind(panicked),
        }
    }

    /// Does all that it has to do, while the others rest.
    pub(super) fn go_on(&mut self, data: &mut Watched) -> Resting {
        let proxy = Proxy::of(self, Some(std::mem::take(data)));
        let resting = play(&proxy, self);
        let playing = proxy.0.take();
        *data = playing.data.expect("it was given");
        self.heard = playing.heard;
        resting
    }
}

fn play(proxy: &Proxy, vm: &Vm) -> Resting {
    let mut worker = Worker {
        handle: VmHandle::new(proxy.clone()),
        proxy: proxy.clone(),
        roots: Vec::new(),
    };
    for (at, event) in &vm.events {
        proxy.0.borrow_mut().now = *at;
        worker.happens(*event);
    }
    let stream = proxy.tables().map(|(_, known)| known);
    let version = worker.version();
    Resting { stream, version }
}

struct Worker {
    proxy: Proxy,
    handle: VmHandle<Proxy>,
    roots: Vec<Root<Proxy>>,
}

impl Worker {
    fn happens(&mut self, event: Event) {
        match event {
            Event::Start => self.configure(RULES),
            Event::Configure => self.configure(NEWER),
            Event::Tick => {
                for root in &mut self.roots {
                    root.on_tick(|_| None::<FakeRequest>);
                }
            }
            Event::Receive(version) => self.receive(version),
            Event::Leave => self.roots.iter_mut().for_each(Root::on_done),
            Event::Die => {}
        }
    }

    fn configure(&mut self, json: &str) {
        let mut root = Root::new(self.roots.len() as u32 + 1);
        let vm = || self.handle.clone();
        let tick = root.on_configure(&self.proxy, json.as_bytes(), vm, String::new);
        assert!(tick.is_some(), "{json}");
        self.roots.push(root);
    }

    fn receive(&mut self, version: u64) {
        let Some((stream, _)) = self.proxy.tables() else {
            return;
        };
        self.proxy.0.borrow_mut().streams[stream as usize].known = Some(version);
        let message = response(version).encode_to_vec();
        for root in &mut self.roots {
            root.on_stream_message(stream, &message);
        }
    }

    fn version(&self) -> Option<u64> {
        let is_of = |version: &u64| {
            let host = HostId::of(&address(*version));
            let index = self.handle.enter(|vm| {
                let table = vm.cluster("rules")?.table()?;
                table.index_of(host)
            });
            index.flatten().is_some()
        };
        (1..10).find(is_of)
    }
}

/// The proxy, as a VM that is played sees it.
#[derive(Clone)]
struct Proxy(Rc<RefCell<Playing>>);

#[derive(Default)]
struct Playing {
    vm: usize,
    now: Duration,
    randoms: u64,
    streams: Vec<Stream>,
    heard: Vec<Rc<Answer>>,
    calls: usize,
    /// What answers calls after those that are known.
    data: Option<Watched>,
    unanswered: Option<Call>,
}

struct Stream {
    is_open: bool,
    is_of_tables: bool,
    known: Option<u64>,
}

impl Proxy {
    fn of(vm: &Vm, data: Option<Watched>) -> Self {
        let playing = Playing {
            vm: vm.number,
            heard: vm.heard.clone(),
            data,
            ..Default::default()
        };
        Self(Rc::new(RefCell::new(playing)))
    }

    fn answer(&self, call: Call) -> Rc<Answer> {
        let mut playing = self.0.borrow_mut();
        let at = playing.calls;
        playing.calls += 1;
        if let Some(answer) = playing.heard.get(at) {
            return Rc::clone(answer);
        }
        let vm = playing.vm;
        if let Some(data) = &mut playing.data {
            let answer = Rc::new(data.answer(vm, &call));
            playing.heard.push(Rc::clone(&answer));
            return answer;
        }
        playing.unanswered = Some(call);
        drop(playing);
        // Without the panic's message: nothing is wrong.
        resume_unwind(Box::new(()))
    }

    /// The open stream of tables, and the version that weir-control takes it to have.
    fn tables(&self) -> Option<(u32, Option<u64>)> {
        let playing = self.0.borrow();
        let streams = (0u32..).zip(&playing.streams);
        let tables = streams.filter(|(_, stream)| stream.is_open && stream.is_of_tables);
        tables.last().map(|(at, stream)| (at, stream.known))
    }
}

impl Host for Proxy {
    type Value = Vec<u8>;

    fn log(&self, _level: LogLevel, _message: &str) {}

    fn now(&self) -> Duration {
        self.0.borrow().now
    }

    fn hour(&self) -> u64 {
        500_000
    }

    fn zone(&self) -> String {
        String::new()
    }

    fn random(&self) -> u64 {
        let mut playing = self.0.borrow_mut();
        playing.randoms += 1;
        id(playing.vm) + playing.randoms - 1
    }

    fn shared(&self, key: &str) -> Option<(Vec<u8>, u32)> {
        let key = key.to_owned();
        match &*self.answer(Call::Get { key }) {
            Answer::Got(value) => value.clone(),
            Answer::Set(_) => unreachable!("it has not asked for that"),
        }
    }

    fn set_shared(&self, key: &str, value: &[u8], cas: Option<u32>) -> Result<bool, Failed> {
        let (key, value) = (key.to_owned(), value.to_vec());
        match &*self.answer(Call::Set { key, value, cas }) {
            Answer::Set(is_set) => Ok(*is_set),
            Answer::Got(_) => unreachable!("it has not asked for that"),
        }
    }

    fn define_metric(&self, _: MetricType, _: &str, _: Option<(&str, &str)>) -> Option<u32> {
        None
    }

    fn change_metric(&self, _id: u32, _change: Change) {}

    fn metric(&self, _id: u32) -> Option<u64> {
        None
    }

    fn open_stream(
        &self,
        _cluster: &str,
        (_, method): (&str, &str),
        _metadata: (&str, &[u8]),
    ) -> Result<u32, Failed> {
        let streams = &mut self.0.borrow_mut().streams;
        streams.push(Stream {
            is_open: true,
            is_of_tables: method == "DeltaAggregatedResources",
            known: None,
        });
        Ok(streams.len() as u32 - 1)
    }

    fn send_message(&self, stream: u32, message: &[u8]) -> Result<(), Failed> {
        let stream = &mut self.0.borrow_mut().streams[stream as usize];
        if stream.is_of_tables {
            let request = DeltaDiscoveryRequest::decode(message).unwrap();
            let known = request.initial_resource_versions.get("rules");
            let version = known.and_then(|known| known.split_once('.')?.1.parse().ok());
            stream.known = version.or(stream.known);
        }
        Ok(())
    }

    fn cancel_stream(&self, stream: u32) {
        self.0.borrow_mut().streams[stream as usize].is_open = false;
    }
}
