// SPDX-License-Identifier: Apache-2.0
//! Envoy Gateway, its Envoy, weir-control and two hosts.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use weir_stage::command::tail;
use weir_stage::control;
use weir_stage::http;
use weir_stage::processes::Processes;

use super::super::{placed, resource};
use crate::host::{Host, IDLE};
use crate::needs::{self, ENVOY, ENVOY_GATEWAY, PROGRAMS};
use crate::{certificate, yaml};

/// Far more than it takes, on a machine that does other things too.
const LIMIT: Duration = Duration::from_secs(120);

/// What Envoy Gateway takes the pinned Envoy for: it would fetch a version that it does not find.
const VERSION: &str = "1.40.0";

const NAME: &str = "envoy-gateway";

/// Of its log, where the test fails.
const LINES: usize = 40;

pub(super) struct Stage {
    pub(super) processes: Processes,
    pub(super) hosts: Vec<Host>,
    home: PathBuf,
}

impl Stage {
    /// All but Envoy Gateway, with these keys in the hosts' caches. It has what is shipped for it but for the two
    /// policies of the filter and of patches.
    pub(super) fn start(home: PathBuf, keys: [Vec<String>; 2]) -> Self {
        certificate::write(&home, ["tls.crt", "tls.key", "ca.crt"]);
        let mut stage = Self {
            processes: Processes::new(home.join("logs")).unwrap(),
            hosts: keys.map(|keys| Host::start(IDLE, keys)).into(),
            home,
        };
        let control = stage.control();
        fs::create_dir(stage.home.join("resources")).unwrap();
        let mut text = stage.filled(include_str!("resources.yaml"));
        for (number, host) in stage.hosts.iter().enumerate() {
            text = text.replace(&format!("HOST_{number}"), &host.address.port().to_string());
        }
        for resource in yaml::documents(&text) {
            stage.apply(&resource);
        }
        for kind in ["BackendTrafficPolicy", "ClientTrafficPolicy"] {
            stage.apply(&resource("trafficpolicy.yaml", kind));
        }
        stage.apply(&stage.proxy(control));
        stage
    }

    /// Starts weir-control as it is deployed, with the hosts.
    fn control(&mut self) -> SocketAddr {
        let rows = self
            .hosts
            .iter()
            .map(|host| json!({ "address": host.address }));
        let rows = Value::from_iter(rows).to_string();
        fs::write(self.home.join("hosts.yaml"), rows).unwrap();
        let shipped = needs::root().join("deploy/kubernetes/control/weir-control.yaml");
        let mut config = yaml::documents(&yaml::read(&shipped)).remove(0);
        for listener in ["xds", "admin"] {
            config[listener]["listen"] = json!("127.0.0.1:0");
        }
        config["clusters"]["rules"]["cache"] = json!({});
        let config = placed(&self.home, &config);
        let program = PROGRAMS.path().join("weir-control");
        let control = control::start(&mut self.processes, &program, &config, &self.home);
        control.unwrap().xds
    }

    /// The shipped one, of a proxy on this machine that finds weir-control at its port here.
    fn proxy(&self, control: SocketAddr) -> Value {
        const PORT: &str = "/spec/bootstrap/jsonPatches/0/value/load_assignment/endpoints/0/lb_endpoints/0\
            /endpoint/address/socket_address/port_value";
        let mut proxy = placed(&self.home, &resource("proxy.yaml", "EnvoyProxy"));
        *proxy.pointer_mut(PORT).unwrap() = json!(control.port());
        proxy["spec"]["provider"] = json!({ "type": "Host", "host": { "envoyVersion": VERSION } });
        proxy
    }

    /// Writes a resource where Envoy Gateway looks, or another one in its place; it sees all of it or none.
    pub(super) fn apply(&self, resource: &Value) {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let (kind, name) = (&resource["kind"], &resource["metadata"]["name"]);
        let file = format!("{}-{}.yaml", text(kind), text(name));
        let written = self.home.join(&file);
        fs::write(&written, resource.to_string()).unwrap();
        fs::rename(written, self.home.join("resources").join(file)).unwrap();
    }

    pub(super) fn start_envoy_gateway(&mut self) {
        let versions = self.home.join("data/envoy-versions");
        let programs = versions.join(VERSION).join("bin");
        fs::create_dir_all(&programs).unwrap();
        symlink(ENVOY.path(), programs.join("envoy")).unwrap();
        let config = self.home.join("standalone.yaml");
        fs::write(&config, self.filled(include_str!("standalone.yaml"))).unwrap();
        let mut certificates = ENVOY_GATEWAY.command();
        certificates.args(["certgen", "--local", "--config-home"]);
        needs::succeed(certificates.arg(self.home.join("config")));
        let mut server = ENVOY_GATEWAY.command();
        server.args(["server", "--config-path"]).arg(config);
        self.processes.start(NAME, server).unwrap();
    }

    fn filled(&self, text: &str) -> String {
        text.replace("FOLDER", self.home.to_str().unwrap())
    }

    /// Of Envoy Gateway and its Envoy.
    pub(super) fn log(&self) -> PathBuf {
        self.home.join("logs").join(format!("{NAME}.log"))
    }

    /// Those of its Envoy, whose admin pages are where Envoy Gateway has it say.
    pub(super) fn metrics(&self) -> String {
        let mut runs = fs::read_dir(self.home.join("run")).unwrap();
        let run = runs.next().unwrap().unwrap().path();
        let admin = fs::read_to_string(run.join("admin-address.txt")).unwrap();
        let page = http::get(admin.trim().parse().unwrap(), "/stats/prometheus");
        page.unwrap().body
    }

    /// Looks again and again, while all processes live.
    pub(super) fn until<T>(&mut self, what: &str, look: impl FnMut() -> Option<T>) -> T {
        self.processes.wait_until(what, LIMIT, look).unwrap()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("Envoy Gateway said:\n{}", tail(&said(&self.log()), LINES));
        }
    }
}

/// What is in such a log beside accesses.
pub(super) fn said(log: &Path) -> String {
    let log = fs::read_to_string(log).unwrap_or_default();
    let lines = log.lines().filter(|line| !line.starts_with('{'));
    lines.collect::<Vec<_>>().join("\n")
}
