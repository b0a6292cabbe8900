// SPDX-License-Identifier: Apache-2.0
//! A thread of Envoy, main or worker: its VM, its configurations, the requests that are under way.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;

use weir_filter::config::Role;
use weir_filter::disposition::Flow;
use weir_filter::handle::VmHandle;
use weir_filter::host::Host;
use weir_filter::part::Part;
use weir_filter::plugin::Plugin;
use weir_filter::root::Root;

use crate::abi::{self, Configuration, Filter};
use crate::bells::Bell;
use crate::installed::Installed;
use crate::metrics::Told;
use crate::native::Native;
use crate::process::{process, started_with};
use crate::request::InEnvoy;
use crate::streams::{self, What};

/// How often records of VMs without ticks are renewed; a third of how long they live.
const RENEWAL: Duration = Duration::from_secs(1);

thread_local! {
    static WORKER: RefCell<Rc<Worker>> = RefCell::default();
}

fn with<T>(call: impl FnOnce(&Worker) -> T) -> T {
    let worker = WORKER.with_borrow(Rc::clone);
    call(&worker)
}

/// Makes another one that of this thread; gives back which was.
pub(crate) fn enter(worker: Rc<Worker>) -> Rc<Worker> {
    WORKER.replace(worker)
}

#[derive(Default)]
pub(crate) struct Worker {
    is_main: Cell<bool>,
    vm: OnceCell<VmHandle<Native>>,
    entries: RefCell<BTreeMap<u32, Rc<Entry>>>,
    /// How many configurations had been added when all that there were had been entered.
    entered: Cell<u64>,
    /// By context, those that have not ended.
    requests: RefCell<BTreeMap<u32, InEnvoy>>,
    last_context: Cell<u32>,
    /// What rings for this thread while a request is under way, and by which of them.
    bell: RefCell<Option<(u32, Arc<Bell>)>>,
    ticked: Cell<Duration>,
    renewed: Cell<Duration>,
    /// Where its record is, while it sleeps.
    asleep: RefCell<Option<String>>,
    /// For as long as this thread does.
    lives: Arc<()>,
    /// Whose last request has ended in the middle of a call of its root: it sleeps after that.
    tired: RefCell<Option<Rc<Entry>>>,
    /// What Envoy knows of metrics.
    told: RefCell<Told>,
    /// Whose hook this is.
    current: RefCell<Option<Rc<Entry>>>,
    /// A root is in the middle of a call: what comes through streams waits.
    is_busy: Cell<bool>,
}

/// A configuration on this thread.
pub(crate) struct Entry {
    pub(crate) installed: Arc<Installed>,
    /// What requests need of the root, which may be in the middle of a call when one comes.
    plugin: Option<Rc<Plugin<Native>>>,
    root: RefCell<Root<Native>>,
}

/// A request of this thread.
pub(crate) struct Request {
    pub(crate) entry: Rc<Entry>,
    pub(crate) in_envoy: InEnvoy,
    context: u32,
    part: RefCell<Part<Native>>,
}

/// Whether this is the thread that configurations come to.
pub(crate) fn is_main() -> bool {
    with(|worker| worker.is_main.get())
}

/// Whose hook this is.
pub(crate) fn current() -> Option<Rc<Entry>> {
    with(|worker| worker.current.borrow().clone())
}

/// Runs a hook of this entry's.
pub(crate) fn within<T>(entry: &Rc<Entry>, hook: impl FnOnce() -> T) -> T {
    struct Back(Option<Rc<Entry>>);
    impl Drop for Back {
        fn drop(&mut self) {
            with(|worker| *worker.current.borrow_mut() = self.0.take());
        }
    }
    let before = with(|worker| worker.current.replace(Some(Rc::clone(entry))));
    let _back = Back(before);
    hook()
}

/// A configuration is new, on the main thread. None: it is refused, and the log says why.
pub(crate) fn install(envoy: Configuration, json: &[u8]) -> Option<Arc<Installed>> {
    with(|worker| {
        worker.is_main.set(true);
        worker.sweep();
        let id = process().configurations.number();
        let (root, tick) = worker.root(id, json)?;
        let numbers = process().metrics.numbers(envoy);
        let reads_bodies = root.reads_bodies();
        let installed = Installed::new((id, json), (tick, reads_bodies), (envoy, numbers));
        let installed = Arc::new(installed);
        worker.enter(&installed, root);
        process().configurations.add(&installed);
        if !abi::is_validation_mode() {
            installed.hang(process().bells.hang(envoy.scheduler(), tick));
        }
        worker.close_older();
        Some(installed)
    })
}

/// Envoy gives a configuration up, on whatever thread its last request was.
pub(crate) fn remove(installed: &Installed) {
    if let Some(bell) = installed.go() {
        process().bells.take_down(bell);
    }
    with(Worker::sweep);
}

/// A tick of a configuration, on the main thread.
pub(crate) fn tick_main(installed: &Installed) {
    installed.heard();
    with(|worker| {
        let entry = worker.entries.borrow().get(&installed.id).cloned();
        let Some(entry) = entry else { return };
        worker.busy(|| {
            within(&entry, || {
                worker.sweep();
                worker.tick(&entry);
            });
        });
        // An upstream filter's metrics would be its cluster's.
        let role = entry.plugin.as_ref().map(|plugin| plugin.role());
        if role != Some(Role::Attempt) {
            let mut told = worker.told.borrow_mut();
            process()
                .metrics
                .tell(installed.envoy, &installed.numbers, &mut told);
        }
        let now = Native.now();
        if now.saturating_sub(worker.renewed.get()) >= RENEWAL {
            worker.renewed.set(now);
            if let Some(vm) = worker.vm.get() {
                process().renew(vm);
            }
        }
        worker.deliver();
    });
}

/// Something came through a stream of a configuration, on the main thread.
pub(crate) fn deliver() {
    with(Worker::deliver);
}

/// A request is new, on its thread.
pub(crate) fn begin(installed: &Arc<Installed>, filter: Filter) -> Rc<Request> {
    with(|worker| {
        // In the order in which they came: the newest says what a VM goes by.
        worker.enter_new();
        let entry = worker.entry(installed);
        let context = worker.last_context.get().wrapping_add(1);
        worker.last_context.set(context);
        let part = Part::new(context, entry.plugin.clone());
        Rc::new_cyclic(|request| Request {
            entry,
            in_envoy: InEnvoy::new(filter, Weak::clone(request)),
            context,
            part: RefCell::new(part),
        })
    })
}

impl Request {
    /// Its headers are here; what is to become of it, if that is not for Envoy to say.
    pub(crate) fn on_headers(&self, ends: bool) -> Flow {
        with(|worker| worker.began(self));
        self.part.borrow_mut().on_headers(&self.in_envoy, ends)
    }

    /// A part of its body is here, perhaps the last.
    pub(crate) fn on_body(&self, is_last: bool) -> Flow {
        self.part.borrow_mut().on_body(&self.in_envoy, is_last)
    }

    /// A hook that was to choose a host has panicked.
    pub(crate) fn on_panic(&self) {
        if let Some(plugin) = &self.entry.plugin {
            plugin.leave(&self.in_envoy);
        }
    }

    /// An answer's headers are here. Of some that the filter gives itself Envoy says so too.
    pub(crate) fn on_answer(&self) {
        if !self.in_envoy.is_answered() {
            self.on_response();
        }
    }

    /// The answer's headers can be read.
    pub(crate) fn on_response(&self) {
        self.part.borrow_mut().on_response(&self.in_envoy);
    }

    /// It is over, however it ended.
    pub(crate) fn on_end(&self) {
        self.part.borrow_mut().on_end(&self.in_envoy);
        with(|worker| worker.forget(self));
    }

    /// This thread's bell has rung, which hangs by this request.
    pub(crate) fn on_scheduled(&self) {
        with(|worker| worker.on_bell());
    }

    /// Envoy destroys it.
    pub(crate) fn on_destroy(&self) {
        self.in_envoy.is_destroyed();
        with(|worker| worker.forget(self));
    }
}

impl Worker {
    fn root(&self, id: u32, json: &[u8]) -> Option<(Root<Native>, Duration)> {
        let mut root = Root::new(id);
        let vm = || self.vm.get_or_init(|| VmHandle::new(Native)).clone();
        let tick = root.on_configure(&Native, json, vm, node)?;
        Some((root, tick))
    }

    /// The configuration on this thread, for which it may be new.
    fn entry(&self, installed: &Arc<Installed>) -> Rc<Entry> {
        if let Some(entry) = self.entries.borrow().get(&installed.id) {
            return Rc::clone(entry);
        }
        let root = self.root(installed.id, &installed.json);
        // The main thread has taken it, so this one does.
        let root = root.map_or_else(|| Root::new(installed.id), |(root, _)| root);
        self.enter(installed, root)
    }

    /// Enters the configurations that have come since this was asked last.
    fn enter_new(&self) {
        let added = process().configurations.added();
        if self.entered.replace(added) != added {
            for installed in process().configurations.alive() {
                self.entry(&installed);
            }
        }
    }

    fn enter(&self, installed: &Arc<Installed>, root: Root<Native>) -> Rc<Entry> {
        let entry = Rc::new(Entry {
            installed: Arc::clone(installed),
            plugin: root.plugin(),
            root: RefCell::new(root),
        });
        let mut entries = self.entries.borrow_mut();
        entries.insert(installed.id, Rc::clone(&entry));
        entry
    }

    /// Closes the streams of configurations that have a successor, while Envoy still has these: it resets what is open
    /// when it gives one up, on whatever thread that is.
    fn close_older(&self) {
        let entries: Vec<_> = self.entries.borrow().values().cloned().collect();
        self.busy(|| {
            for entry in &entries {
                within(entry, || {
                    if let Ok(mut root) = entry.root.try_borrow_mut() {
                        root.on_successor();
                    }
                });
            }
        });
    }

    /// A request's headers are here. An attempt is a part of a request that is known already.
    fn began(&self, request: &Request) {
        if matches!(*request.part.borrow(), Part::Attempt(_)) {
            return;
        }
        let sleeps = self.requests.borrow().is_empty();
        let mut requests = self.requests.borrow_mut();
        requests.insert(request.context, request.in_envoy.clone());
        drop(requests);
        if sleeps {
            if let Some(record) = self.asleep.take() {
                process().wakes(&record);
            }
            if let Ok(root) = request.entry.root.try_borrow() {
                root.on_wake();
            }
        }
        self.ring_by(request.context, &request.in_envoy, &request.entry);
        // After a sleep one is due.
        let since = Native.now().saturating_sub(self.ticked.get());
        if since >= 2 * request.entry.installed.tick {
            self.tick_all();
        }
    }

    fn on_bell(&self) {
        if let Some((_, bell)) = &*self.bell.borrow() {
            bell.heard();
        }
        self.tick_all();
    }

    fn tick_all(&self) {
        self.sweep();
        self.ticked.set(Native.now());
        let entries: Vec<_> = self.entries.borrow().values().cloned().collect();
        for entry in &entries {
            self.tick(entry);
        }
        if let Some(entry) = self.tired.take()
            && self.requests.borrow().is_empty()
        {
            self.sleep(&entry);
        }
    }

    /// One of a root; not where it is in the middle of another.
    fn tick(&self, entry: &Entry) {
        if let Ok(mut root) = entry.root.try_borrow_mut() {
            root.on_tick(|context| self.requests.borrow().get(&context).cloned());
        }
    }

    /// Sees to it that this thread is woken while this request is under way, unless it is by another one.
    fn ring_by(&self, context: u32, request: &InEnvoy, entry: &Entry) {
        let mut bell = self.bell.borrow_mut();
        if bell.is_none()
            && let Some(filter) = request.filter()
        {
            let scheduler = filter.scheduler();
            *bell = Some((
                context,
                process().bells.hang(scheduler, entry.installed.tick),
            ));
        }
    }

    /// A request has ended: what rings by it rings by another one. After the last one this thread sleeps.
    fn forget(&self, request: &Request) {
        if self
            .requests
            .borrow_mut()
            .remove(&request.context)
            .is_none()
        {
            return;
        }
        let is_its = |bell: &mut (u32, Arc<Bell>)| bell.0 == request.context;
        if let Some((_, bell)) = self.bell.borrow_mut().take_if(is_its) {
            process().bells.take_down(bell);
        }
        let next = self
            .requests
            .borrow()
            .last_key_value()
            .map(|(c, r)| (*c, r.clone()));
        match next {
            Some((context, in_envoy)) => self.ring_by(context, &in_envoy, &request.entry),
            None => self.sleep(&request.entry),
        }
    }

    /// No request is left: the record is written, which no tick of this thread will do.
    fn sleep(&self, entry: &Rc<Entry>) {
        let Ok(mut root) = entry.root.try_borrow_mut() else {
            self.tired.replace(Some(Rc::clone(entry)));
            return;
        };
        if let Some(record) = root.on_idle() {
            process().sleeps(record.clone(), &self.lives);
            self.asleep.replace(Some(record));
        }
    }

    /// Ends the configurations that Envoy has given up.
    fn sweep(&self) {
        let gone: Vec<_> = {
            let mut entries = self.entries.borrow_mut();
            let gone = entries.values().filter(|entry| entry.installed.is_gone());
            let gone: Vec<_> = gone.cloned().collect();
            entries.retain(|_, entry| !entry.installed.is_gone());
            gone
        };
        for entry in gone {
            if let Ok(mut root) = entry.root.try_borrow_mut() {
                root.on_done();
            }
            streams::forget(entry.installed.id);
        }
    }

    /// Hands on what came through streams, unless a root is in the middle of a call.
    fn deliver(&self) {
        self.busy(|| {
            while let Some(event) = streams::next() {
                let entry = self.entries.borrow().get(&event.root).cloned();
                let Some(entry) = entry else { continue };
                within(&entry, || {
                    let mut root = entry.root.borrow_mut();
                    match event.what {
                        What::Message(message) => root.on_stream_message(event.stream, &message),
                        What::Closed(status) => root.on_stream_close(event.stream, status),
                    }
                });
            }
        });
    }

    /// Runs a call of a root's, unless it is within another one.
    fn busy(&self, call: impl FnOnce()) {
        struct Idle<'a>(&'a Cell<bool>);
        impl Drop for Idle<'_> {
            fn drop(&mut self) {
                self.0.set(false);
            }
        }
        if !self.is_busy.replace(true) {
            let _idle = Idle(&self.is_busy);
            call();
        }
    }
}

/// Envoy does not say its node's name to a filter: what it was started with, or the machine's name.
fn node() -> String {
    if let Some(node) = &process().node {
        return node.clone();
    }
    started_with("--service-node").unwrap_or_else(|| {
        let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        name.trim().to_owned()
    })
}
