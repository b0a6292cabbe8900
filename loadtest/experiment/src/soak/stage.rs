// SPDX-License-Identifier: Apache-2.0
//! The stage: weir-control, hosts and callers, and the changes of each.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use weir_stage::http::{self, Request};
use weir_stage::processes::Processes;
use weir_stage::{bootstrap, control, envoy, record, worker};

use crate::programs::Programs;
use crate::soak::places::{Place, Places};

pub(crate) const CONTROL: &str = "weir-control";
pub(crate) const CLUSTER: &str = "rules";
const FILE: &str = "weir-control.yaml";
/// Its hosts, beside it.
const HOSTS: &str = "hosts.yaml";

/// A member that can be asked for its figures.
#[derive(Debug, Clone)]
pub(crate) struct Member {
    pub(crate) name: String,
    /// Of a host its own pages, of a caller the admin's.
    pub(crate) pages: SocketAddr,
    /// It is there from the beginning to the end.
    pub(crate) stays: bool,
}

pub(crate) struct Stage {
    /// First, so that they are ended first.
    pub(crate) processes: Processes,
    folder: PathBuf,
    programs: Programs,
    pub(crate) control: control::Control,
    config: Value,
    pub(crate) hosts: Vec<Member>,
    pub(crate) callers: Vec<Member>,
    pub(crate) places: Places,
    hosts_so_far: usize,
    callers_so_far: usize,
}

impl Stage {
    /// weir-control, alone.
    pub(crate) fn start(programs: &Programs, folder: PathBuf) -> Result<Self> {
        fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
        let record = folder.join(record::FILE);
        let mut processes = Processes::new(folder.join("logs"))?.bound(record);
        let config = json!({
            "xds": {"listen": "127.0.0.1:0"},
            "admin": {"listen": "127.0.0.1:0"},
            // Callers that left are to be forgotten before the end.
            "reports": {"forget_after": "10s"},
            "clusters": {CLUSTER: {
                "hosts_file": HOSTS,
                "scrape": {},
                "cache": {},
            }},
            "standalone": {
                "filter": {"wasm": programs.filter, "config": {}},
                "listeners": [{"name": "egress", "address": "127.0.0.1:0", "cluster": CLUSTER}],
            },
        });
        // There are none yet.
        replace(&folder.join(HOSTS), &json!([]))?;
        let control = control::start(&mut processes, &programs.control, &config, &folder)?;
        Ok(Self {
            processes,
            folder,
            programs: programs.clone(),
            control,
            config,
            hosts: Vec::new(),
            callers: Vec::new(),
            places: Places::default(),
            hosts_so_far: 0,
            callers_so_far: 0,
        })
    }

    pub(crate) fn add_host(&mut self, stays: bool) -> Result<()> {
        self.hosts_so_far += 1;
        let name = format!("host-{}", self.hosts_so_far);
        let file = self.folder.join(format!("{name}.ports"));
        let mut command = Command::new(&self.programs.worker);
        command
            .args(["--emulate", "--listen", "127.0.0.1:0", "--cores", "4"])
            // 40 keys: full within minutes.
            .args(["--cache-bytes", "4M", "--change-log", "1000"])
            .args(["--notice-seconds", "3", "--drain-seconds", "5"])
            .arg("--ports-file")
            .arg(&file);
        self.processes.start(&name, command)?;
        let pages = worker::address(&mut self.processes, &name, &file)?;
        self.hosts.push(Member { name, pages, stays });
        self.tell_hosts()
    }

    /// The oldest host that does not stay says that it leaves, finishes what it has, and goes.
    pub(crate) fn remove_host(&mut self) -> Result<()> {
        let Some(place) = self.hosts.iter().position(|host| !host.stays) else {
            return Ok(());
        };
        let host = self.hosts.remove(place);
        self.processes.stop(&host.name)?;
        self.tell_hosts()
    }

    fn tell_hosts(&mut self) -> Result<()> {
        let hosts = self.hosts.iter().map(|host| json!({"address": host.pages}));
        replace(&self.folder.join(HOSTS), &hosts.collect())
    }

    pub(crate) fn set_policy(&mut self, policy: Value, cache_shards: u32) -> Result<()> {
        self.config["clusters"][CLUSTER]["policy"] = policy;
        self.config["clusters"][CLUSTER]["cache_shards"] = cache_shards.into();
        self.write()
    }

    fn write(&self) -> Result<()> {
        replace(&self.folder.join(FILE), &self.config)
    }

    /// A caller's sidecar. Requests are sent to it once its tables decide.
    pub(crate) fn add_caller(&mut self, stays: bool, crashes: bool) -> Result<()> {
        self.callers_so_far += 1;
        let name = format!("caller-{}", self.callers_so_far);
        let bootstrap = bootstrap::standalone(&name, self.control.xds)?;
        let program = &self.programs.envoy;
        let caller = envoy::start(
            &mut self.processes,
            program,
            &name,
            &bootstrap,
            &self.folder,
        );
        let caller = match caller {
            // On a machine that is too busy a guest may be late for long: it is nobody's leak.
            Err(late)
                if !stays
                    && self
                        .processes
                        .list()?
                        .iter()
                        .any(|one| one.name == name && one.ended.is_none()) =>
            {
                eprintln!("soak: {name} does not come: {late:#}");
                return self.processes.stop(&name);
            }
            caller => caller?,
        };
        self.callers.push(Member {
            name: name.clone(),
            pages: caller.admin,
            stays,
        });
        self.places.add(Place {
            name,
            listener: caller.listener,
            crashes,
            senders: Arc::default(),
        });
        Ok(())
    }

    /// No request is sent any more to the oldest caller that does not stay.
    pub(crate) fn leave_caller(&mut self) {
        let used = self.places.all();
        let is_used = |guest: &&Member| used.iter().any(|place| place.name == guest.name);
        let mut guests = self.callers.iter().filter(|caller| !caller.stays);
        if let Some(guest) = guests.find(is_used) {
            self.places.leave(&guest.name);
        }
    }

    /// Ends callers that were left, once nobody waits for an answer of theirs.
    pub(crate) fn remove_callers(&mut self) -> Result<()> {
        for name in self.places.take_left() {
            self.callers.retain(|caller| caller.name != name);
            self.processes.stop(&name)?;
        }
        Ok(())
    }

    /// Kills a VM of the caller whose VMs are killed: of a request, or the one that has the stream.
    pub(crate) fn crash(&self, what: &str) {
        let headers = [("x-weir-key", "crash"), ("x-weir-crash", what)];
        let request = Request {
            method: "GET",
            path: "/",
            headers: &headers,
            body: "",
        };
        for place in self.places.all().iter().filter(|place| place.crashes) {
            // It fails: that is the purpose.
            let _ = http::send(place.listener, &request);
        }
    }
}

/// A whole file at any moment: weir-control looks at its files every second.
fn replace(file: &Path, contents: &Value) -> Result<()> {
    weir_whole_file::write(file, serde_json::to_vec_pretty(contents)?)
        .with_context(|| format!("writing {}", file.display()))
}

/// The callers and hosts that stay, and weir-control.
pub(crate) fn who_stays(stage: &Stage) -> Vec<String> {
    let members = stage.hosts.iter().chain(&stage.callers);
    let stay = members.filter(|member| member.stays);
    [CONTROL.to_owned()]
        .into_iter()
        .chain(stay.map(|member| member.name.clone()))
        .collect()
}
