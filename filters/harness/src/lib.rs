// SPDX-License-Identifier: Apache-2.0
//! A proxy of several VMs on one shared data, with the built filter in them, and weir-control as tests play it.
//!
//! Whoever asks for what the proxy cannot do gets a panic: this is for tests and measurements.

mod control;
pub mod cost;
mod message;
mod native;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use prost::Message;
use weir_tables::v1;
use weir_testkit::{GrpcStream, Host, HttpStream, Module, Vm, VmBuilder};

pub use control::Ads;
pub use message::{A, B, C, busy, cached, host, of_type, resource, shard, table, up};

/// The name space of shared data.
pub const VM_ID: &str = "weir";
/// Envoy's name of weir-control's cluster.
pub const CONTROL: &str = "weir-control";
/// A configuration of one cluster, named `rules` on both sides.
pub const RULES: &str = r#"{"clusters":{"rules":{}}}"#;
/// Two ticks at the default interval: a table that has come is known everywhere.
pub const TICKS: Duration = Duration::from_millis(100);
/// Two of the intervals at which VMs publish their records, and a tick.
pub const SHARING: Duration = Duration::from_millis(250);

/// What names the module.
const VARIABLE: &str = "WEIR_FILTER_WASM";
/// Where this is set, to whatever, the VMs run the filter's other shell, which the program is linked with.
const NATIVE: &str = "WEIR_FILTER_NATIVE";

static MODULE: OnceLock<Module> = OnceLock::new();

/// The module, compiled once: the one in [`module_file`], unless [`load`] has named another before.
pub fn module() -> &'static Module {
    MODULE.get_or_init(|| match std::env::var_os(NATIVE) {
        Some(_) => native::module(),
        None => Module::from_file(module_file()).expect("the module is one"),
    })
}

/// Names the file of the module.
///
/// # Errors
/// It is none.
pub fn load(file: &Path) -> Result<(), weir_testkit::Error> {
    let module = Module::from_file(file)?;
    MODULE.get_or_init(|| module);
    Ok(())
}

/// Whether VMs run the module of WebAssembly. The filter's other shell has one process: its main thread alone keeps
/// streams, and a worker has a record when it has had a request.
pub fn is_wasm() -> bool {
    module().is_wasm()
}

/// The VM that keeps the streams of a configuration that came to this VM.
pub fn keeper(vm: usize) -> usize {
    match is_wasm() {
        true => vm,
        false => 0,
    }
}

/// The call by which a VM opens a stream.
pub fn stream_call() -> &'static str {
    match is_wasm() {
        true => "proxy_grpc_stream",
        false => native::OPEN_STREAM,
    }
}

/// Where the built module is: `cargo xtask test` says so, and `cargo xtask build-filter` leaves it in the
/// target directory. Ends the program, as skipped, where it is in neither place.
pub fn module_file() -> PathBuf {
    if std::env::var_os(VARIABLE).is_some() {
        return weir_needs::provided_or_end(VARIABLE);
    }
    let program = std::env::current_exe().expect("a path");
    let mut left = program
        .ancestors()
        .map(|folder| folder.join("weir_filter.wasm"));
    let left = left.find(|file| file.exists());
    left.unwrap_or_else(|| weir_needs::provided_or_end(VARIABLE))
}

/// The module of a release with another layout of shared data: what keys of it begin with is its only difference.
pub fn with_layout(mut module: Vec<u8>, keys: &[u8; 7]) -> Vec<u8> {
    let places = module.windows(keys.len()).enumerate();
    let places: Vec<_> = places
        .filter(|(_, bytes)| bytes == b"weir/1/")
        .map(|(place, _)| place)
        .collect();
    assert!(!places.is_empty(), "the keys are spelt otherwise");
    for place in places {
        module[place..place + keys.len()].copy_from_slice(keys);
    }
    module
}

/// That long.
pub const fn milliseconds(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// One Envoy: the first VM is the main thread's, which gets no requests.
pub struct Proxy {
    /// What the VMs share.
    pub host: Host,
    /// The VMs, the main thread's first.
    pub vms: Vec<Vm>,
}

impl Proxy {
    /// A main thread and two workers.
    pub fn start(configuration: &str) -> Self {
        Self::of(3, configuration)
    }

    /// A main thread and workers, this many together.
    pub fn of(vms: usize, configuration: &str) -> Self {
        Self::on(Host::new(), vms, configuration)
    }

    /// The same on a host that is there.
    pub fn on(host: Host, vms: usize, configuration: &str) -> Self {
        host.add_upstream(CONTROL);
        let start = |_| vm(&host, configuration).start().expect("starts");
        let vms = (0..vms).map(start).collect();
        Self { host, vms }
    }

    /// The same where the plugin is shown bodies behind headers that it has paused.
    pub fn showing_bodies(configuration: &str) -> Self {
        let host = Host::new();
        host.add_upstream(CONTROL);
        let vm = || vm(&host, configuration).allow_on_headers_stop_iteration();
        let vms = (0..3).map(|_| vm().start().expect("starts")).collect();
        Self { host, vms }
    }

    /// A proxy with these tables.
    pub fn with(configuration: &str, tables: &[v1::HostTable]) -> Self {
        let proxy = Self::start(configuration);
        proxy.run(TICKS);
        let ads = proxy.ads();
        for table in tables {
            ads.accepts(&[resource(table)]);
        }
        proxy.run(TICKS);
        proxy
    }

    /// Time passes.
    pub fn run(&self, time: Duration) {
        self.host.run_for(time).expect("no trap");
    }

    /// The last worker: never the owner at the start.
    pub fn worker(&self) -> &Vm {
        self.vms.last().expect("a VM")
    }

    /// The streams to a service.
    pub fn streams(&self, service: &str) -> Vec<GrpcStream> {
        let streams = self.vms.iter().flat_map(Vm::grpc_streams);
        streams
            .filter(|stream| stream.request().service.ends_with(service))
            .collect()
    }

    /// The table stream, which must be the only one.
    pub fn ads(&self) -> Ads {
        let mut streams = self.streams("AggregatedDiscoveryService");
        assert_eq!(streams.len(), 1, "table streams");
        Ads::new(streams.remove(0))
    }

    /// Whether there is a table stream.
    pub fn has_ads(&self) -> bool {
        !self.streams("AggregatedDiscoveryService").is_empty()
    }

    /// Which VM has the table stream.
    pub fn owner(&self) -> Option<usize> {
        self.vms.iter().position(|vm| !vm.grpc_streams().is_empty())
    }

    /// The newest report, and none is left.
    pub fn report(&self) -> v1::Report {
        self.reports().pop().expect("a report")
    }

    /// All reports since the last time.
    pub fn reports(&self) -> Vec<v1::Report> {
        let streams = self.streams("Reports");
        let sent = streams.iter().flat_map(GrpcStream::take_sent);
        sent.map(|sent| v1::Report::decode(sent.as_slice()).expect("a report"))
            .collect()
    }

    /// A value of shared data.
    pub fn shared(&self, key: &str) -> Option<Vec<u8>> {
        self.host.shared_data(VM_ID, &format!("weir/1/{key}"))
    }

    /// What the VMs that hold a slot say of themselves.
    pub fn records(&self) -> Vec<v1::VmRecord> {
        let slots = self.shared("slots").unwrap_or_default();
        let record = |(slot, holder): (usize, &[u8])| {
            let record = self.shared(&format!("vm/{slot}"))?;
            let record = weir_filter::stored::decode(&record)?;
            (record.epoch.to_le_bytes() == *holder).then_some(record)
        };
        let slots = slots.chunks_exact(8).enumerate();
        slots.filter_map(record).collect()
    }

    /// How many VMs have told of themselves where so many of the workers had a request.
    pub fn telling(&self, asked: usize) -> usize {
        match is_wasm() {
            true => self.vms.len(),
            false => 1 + asked,
        }
    }

    /// Requests in flight at a host, over all VMs.
    pub fn in_flight(&self, address: &str) -> u32 {
        let records = self.records();
        let hosts = records
            .iter()
            .flat_map(|record| &record.clusters)
            .flat_map(|cluster| &cluster.hosts);
        hosts
            .filter(|host| host.address == address)
            .map(|host| host.in_flight)
            .sum()
    }
}

/// A VM of the proxy, for a caller on the loopback address and the cluster `rules`.
pub fn vm(host: &Host, configuration: &str) -> VmBuilder {
    vm_of(host, configuration, "rules", "127.0.0.1:50000")
}

/// A VM whose requests are of this Envoy cluster and caller.
pub fn vm_of(host: &Host, configuration: &str, cluster: &str, caller: &str) -> VmBuilder {
    host.vm(module())
        .vm_id(VM_ID)
        .property(&["xds", "node", "id"], "sidecar-1")
        .property(&["xds", "cluster_name"], cluster)
        .property(&["source", "address"], caller)
        .plugin_config(configuration)
}

/// What became of a request.
pub trait Chosen {
    /// The hosts named, best first.
    fn destination(&self) -> Vec<String>;
    /// The first of them.
    fn first(&self) -> String;
    /// The reason, as access logs see it.
    fn reason(&self) -> String;
    /// The host at `address` answers 200 and the request ends.
    fn answered_by(&self, address: &str);
    /// An answer with these headers; the request is still open.
    fn answer(&self, address: &str, headers: &[(&str, &str)]);
}

impl Chosen for HttpStream {
    fn destination(&self) -> Vec<String> {
        let all = self.request_headers().all("x-gateway-destination-endpoint");
        assert!(all.len() <= 1, "one header names all hosts");
        // Envoy goes by the call first.
        if let Some(host) = self.filter_state(&[native::OVERRIDE_HOST]) {
            assert!(all.is_empty(), "a call or a header");
            return vec![String::from_utf8(host).expect("text")];
        }
        let hosts = all.first().map(|hosts| hosts.split(','));
        hosts.into_iter().flatten().map(str::to_owned).collect()
    }

    fn first(&self) -> String {
        self.destination().first().cloned().unwrap_or_default()
    }

    fn reason(&self) -> String {
        String::from_utf8(self.filter_state(&["weir_reason"]).unwrap_or_default()).expect("text")
    }

    fn answered_by(&self, address: &str) {
        self.answer(address, &[(":status", "200")]);
        self.finish().expect("no trap");
    }

    fn answer(&self, address: &str, headers: &[(&str, &str)]) {
        self.set_property(&["upstream", "address"], address);
        self.response(headers).expect("no trap");
    }
}

/// A request that ends with its headers.
pub fn request(vm: &Vm, headers: &[(&str, &str)]) -> HttpStream {
    let path = [(":path", "/"), (":method", "GET"), (":authority", "rules")];
    let all: Vec<_> = path.iter().chain(headers).copied().collect();
    vm.request(all.as_slice()).expect("no trap")
}

/// A request for a key.
pub fn ask(vm: &Vm, key: &str) -> HttpStream {
    request(vm, &[("x-weir-key", key)])
}
