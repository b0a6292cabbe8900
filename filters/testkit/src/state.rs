// SPDX-License-Identifier: Apache-2.0
//! Everything the host functions of one VM can see.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;
use std::time::Duration;

use wasmtime::{Memory, TypedFunc};

use crate::abi::{Direction, LogLevel};
use crate::callout::{Callouts, Received};
use crate::host_state::HostState;
use crate::log::Log;
use crate::metrics::MetricIds;
use crate::random::Random;
use crate::settings::Settings;
use crate::stream::{LocalReply, Stream};

/// A plugin configuration in a VM.
#[derive(Debug)]
pub(crate) struct Root {
    pub(crate) configuration: Vec<u8>,
    pub(crate) tick_period: Option<Duration>,
    /// When the next tick is due, on the monotonic clock.
    pub(crate) next_tick: Duration,
    /// `proxy_on_done` was called and returned false: `proxy_done` deletes it.
    pub(crate) finishing: bool,
}

/// What a module asked for in a callback and Envoy does when the callback has returned.
#[derive(Debug)]
pub(crate) enum After {
    Resume(u32, Direction),
    Reply(u32, LocalReply),
    Reset(u32),
    GrpcClosed {
        root: u32,
        token: u32,
        status: u32,
        message: String,
    },
    DeleteRoot(u32),
}

pub(crate) struct State {
    pub(crate) host: Rc<HostState>,
    pub(crate) settings: Settings,
    /// Counts the VMs of the host.
    pub(crate) vm: u64,
    pub(crate) memory: Option<Memory>,
    pub(crate) allocate: Option<TypedFunc<u32, u32>>,
    pub(crate) random: Random,

    pub(crate) current: u32,
    pub(crate) effective: Option<u32>,
    /// Set by `proxy_send_local_response`: the callback then counts as paused whatever it returns.
    pub(crate) answered: bool,
    /// What the present callback has called, and how often.
    pub(crate) calls: BTreeMap<&'static str, u64>,
    /// What it may not call.
    pub(crate) refused: BTreeSet<String>,
    pub(crate) after: VecDeque<After>,

    pub(crate) roots: BTreeMap<u32, Root>,
    pub(crate) streams: BTreeMap<u32, Stream>,
    pub(crate) last_context: u32,
    /// Only set while the module may read it.
    pub(crate) plugin_configuration: Option<Vec<u8>>,

    pub(crate) callouts: Callouts,
    pub(crate) received: Received,
    pub(crate) metric_ids: MetricIds,
    pub(crate) logs: Vec<Log>,
}

impl State {
    pub(crate) fn new(host: Rc<HostState>, settings: Settings, vm: u64, random: Random) -> Self {
        Self {
            host,
            settings,
            vm,
            memory: None,
            allocate: None,
            random,
            current: 0,
            effective: None,
            answered: false,
            calls: BTreeMap::new(),
            refused: BTreeSet::new(),
            after: VecDeque::new(),
            roots: BTreeMap::new(),
            streams: BTreeMap::new(),
            last_context: 0,
            plugin_configuration: None,
            callouts: Callouts::default(),
            received: Received::default(),
            metric_ids: MetricIds::default(),
            logs: Vec::new(),
        }
    }

    /// A callback begins, with this context as the current one.
    pub(crate) fn begin(&mut self, context: u32) {
        (self.current, self.effective, self.answered) = (context, None, false);
        self.calls.clear();
    }

    /// The context that host functions act on: the one the module chose, if it still exists.
    pub(crate) fn context(&self) -> u32 {
        self.effective
            .filter(|id| self.exists(*id))
            .unwrap_or(self.current)
    }

    pub(crate) fn exists(&self, context: u32) -> bool {
        self.roots.contains_key(&context) || self.streams.contains_key(&context)
    }

    pub(crate) fn stream(&self) -> Option<&Stream> {
        self.streams.get(&self.context())
    }

    pub(crate) fn stream_mut(&mut self) -> Option<&mut Stream> {
        let context = self.context();
        self.streams.get_mut(&context)
    }

    /// The root context of the context that host functions act on.
    pub(crate) fn root_id(&self) -> u32 {
        self.stream().map_or(self.context(), |stream| stream.root)
    }

    pub(crate) fn count(&mut self, call: &'static str) {
        *self.calls.entry(call).or_default() += 1;
    }

    pub(crate) fn next_context(&mut self) -> u32 {
        self.last_context += 1;
        self.last_context
    }

    pub(crate) fn log(&mut self, level: LogLevel, message: &[u8]) {
        let message = String::from_utf8_lossy(message).into_owned();
        self.logs.push(Log { level, message });
    }
}
