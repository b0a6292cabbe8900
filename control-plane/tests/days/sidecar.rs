// SPDX-License-Identifier: Apache-2.0
//! A sidecar: SIMULATED Envoy around the filter's own VMs.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use prost::Message;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use weir_filter::handle::VmHandle;
use weir_filter::host::{Change, Failed, Host, LogLevel, MetricType};
use weir_filter::root::Root;
use weir_tables::v1;

use crate::request::Request;

/// Rarer than by default, so that an hour takes seconds.
const CONFIGURATION: &str = r#"{"clusters":{"rules":{}},"priorities":{"top":0,"middle":8,"low":16},
    "tick":"500ms","lease":"2s"}"#;
/// Keys of shared data, as `shared.rs` of the filter lists them.
const TABLE: &str = "weir/1/table/rules";

/// What a VM does with a stream.
pub(crate) enum Call {
    Open { stream: u32, method: String },
    Send { stream: u32, message: Vec<u8> },
    Cancel { stream: u32 },
}

/// What the VMs of a sidecar share.
struct Envoy {
    now: Duration,
    rng: SmallRng,
    shared: BTreeMap<String, (Vec<u8>, u32)>,
    writes: u32,
    streams: u32,
    calls: Vec<Call>,
    metrics: Vec<String>,
}

/// A VM's way to its Envoy.
#[derive(Clone)]
pub(crate) struct Link(Rc<RefCell<Envoy>>);

impl Host for Link {
    type Value = Vec<u8>;

    fn log(&self, _level: LogLevel, _message: &str) {}

    fn now(&self) -> Duration {
        self.0.borrow().now
    }

    fn hour(&self) -> u64 {
        crate::world::HOUR
    }

    fn zone(&self) -> String {
        String::new()
    }

    fn random(&self) -> u64 {
        self.0.borrow_mut().rng.next_u64()
    }

    fn shared(&self, key: &str) -> Option<(Vec<u8>, u32)> {
        self.0.borrow().shared.get(key).cloned()
    }

    fn set_shared(&self, key: &str, value: &[u8], cas: Option<u32>) -> Result<bool, Failed> {
        let mut envoy = self.0.borrow_mut();
        let number = envoy.shared.get(key).map(|(_, number)| *number);
        if let (Some(number), Some(cas)) = (number, cas)
            && number != cas
        {
            return Ok(false);
        }
        envoy.writes += 1;
        let written = (value.to_vec(), envoy.writes);
        envoy.shared.insert(key.to_owned(), written);
        Ok(true)
    }

    fn define_metric(
        &self,
        _metric_type: MetricType,
        name: &str,
        label: Option<(&str, &str)>,
    ) -> Option<u32> {
        let metrics = &mut self.0.borrow_mut().metrics;
        metrics.push(format!("{name}{label:?}"));
        u32::try_from(metrics.len()).ok()
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
        let mut envoy = self.0.borrow_mut();
        envoy.streams += 1;
        let (stream, method) = (envoy.streams, method.to_owned());
        envoy.calls.push(Call::Open { stream, method });
        Ok(stream)
    }

    fn send_message(&self, stream: u32, message: &[u8]) -> Result<(), Failed> {
        let message = message.to_vec();
        let calls = &mut self.0.borrow_mut().calls;
        calls.push(Call::Send { stream, message });
        Ok(())
    }

    fn cancel_stream(&self, stream: u32) {
        self.0.borrow_mut().calls.push(Call::Cancel { stream });
    }
}

pub(crate) struct Vm {
    pub(crate) root: Root<Link>,
    /// The table that it has read at its last tick.
    pub(crate) table: Option<v1::HostTable>,
    /// It does nothing until then.
    pub(crate) paused: Duration,
    pub(crate) life: u32,
}

pub(crate) struct Sidecar {
    pub(crate) name: String,
    link: Link,
    pub(crate) vms: Vec<Vm>,
    /// Requests that came to it.
    pub(crate) asked: u64,
    /// Its reports were nonsense at some time.
    pub(crate) has_lied: bool,
    /// A VM of it was taken for dead, and was not.
    pub(crate) was_silent: bool,
}

impl Sidecar {
    pub(crate) fn new(number: usize, vms: usize, seed: u64) -> Self {
        let link = Link(Rc::new(RefCell::new(Envoy {
            now: Duration::from_secs(1_000 * (1 + number as u64)),
            rng: SmallRng::seed_from_u64(seed.wrapping_mul(31).wrapping_add(number as u64)),
            shared: BTreeMap::new(),
            writes: 0,
            streams: 0,
            calls: Vec::new(),
            metrics: Vec::new(),
        })));
        let name = format!("sidecar-{number}");
        let vms = (0..vms).map(|_| Vm::new(&link, &name, 0)).collect();
        Self {
            name,
            link,
            vms,
            asked: 0,
            has_lied: false,
            was_silent: false,
        }
    }

    /// Its clock goes on by so much, which may be more than has passed.
    pub(crate) fn pass(&self, time: Duration) {
        self.link.0.borrow_mut().now += time;
    }

    pub(crate) fn now(&self) -> Duration {
        self.link.now()
    }

    /// The VM begins anew; nothing of what it had is left but shared data.
    pub(crate) fn restart(&mut self, vm: usize) {
        let life = self.vms[vm].life + 1;
        self.vms[vm] = Vm::new(&self.link, &self.name, life);
    }

    pub(crate) fn tick(&mut self, vm: usize) {
        let vm = &mut self.vms[vm];
        vm.root.on_tick(|_| None::<Request>);
        // Shared data can only have changed between two callbacks, so this is what the VM has read.
        if let Some((bytes, _)) = self.link.shared(TABLE) {
            vm.table = bytes
                .get(8..)
                .and_then(|body| v1::HostTable::decode(body).ok());
        }
    }

    pub(crate) fn take_calls(&self) -> Vec<Call> {
        std::mem::take(&mut self.link.0.borrow_mut().calls)
    }

    /// The table in shared data, and when it was received.
    pub(crate) fn table(&self) -> Option<(v1::HostTable, Duration)> {
        let (bytes, _) = self.link.shared(TABLE)?;
        let (received, body) = bytes.split_first_chunk::<8>()?;
        let received = Duration::from_nanos(u64::from_le_bytes(*received));
        let table = v1::HostTable::decode(body).ok()?;
        (!table.cluster.is_empty()).then_some((table, received))
    }

    /// What its VMs that are alive have in flight, by their own records.
    pub(crate) fn in_flight(&self) -> Vec<(String, u32)> {
        let now = self.now().as_nanos() as u64;
        let slots = (0..).map_while(|slot| self.link.shared(&format!("weir/1/vm/{slot}")));
        let records = slots.filter_map(|(bytes, _)| v1::VmRecord::decode(bytes.as_slice()).ok());
        let alive = records.filter(|record| record.deadline_ns >= now);
        let clusters = alive.flat_map(|record| record.clusters);
        let hosts = clusters.flat_map(|cluster| cluster.hosts);
        hosts.map(|host| (host.address, host.in_flight)).collect()
    }

    /// Keys in shared data, where nothing can be deleted.
    pub(crate) fn keys(&self) -> usize {
        self.link.0.borrow().shared.len()
    }
}

impl Vm {
    fn new(link: &Link, proxy: &str, life: u32) -> Self {
        let handle = VmHandle::new(link.clone());
        let mut root = Root::new(1);
        let node = || proxy.to_owned();
        let tick = root.on_configure(link, CONFIGURATION.as_bytes(), || handle, node);
        assert!(tick.is_some(), "the configuration is good");
        Self {
            root,
            table: None,
            paused: Duration::ZERO,
            life,
        }
    }
}
