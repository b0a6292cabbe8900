// SPDX-License-Identifier: Apache-2.0
//! A caller's Envoy by the static file, weir-control and two emulated hosts, of which a test breaks a part.

use std::net::SocketAddr;
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;
use weirctl::doctor::Diagnosis;
use weirctl::doctor::finding::{Finding, Verdict};
use weirctl::page::Address;

use crate::client::{Caller, keyed};
use crate::config::{merge, write};
use crate::process::{self, Process};
use crate::sidecar::Sidecar;
use crate::tools;
use crate::waits::until;

/// What is as it should be, until a test changes it.
pub(crate) struct Plan {
    envoy: String,
    control: Value,
    pub(crate) folder: TempDir,
    pub(crate) xds: SocketAddr,
    workers: [SocketAddr; 2],
    without_control: bool,
}

pub(crate) struct Bench {
    pub(crate) sidecar: Sidecar,
    _control: Option<Process>,
    pub(crate) plan: Plan,
    pub(crate) workers: Vec<Process>,
}

impl Plan {
    pub(crate) fn new() -> Self {
        let (xds, workers) = (
            process::free_address(),
            [process::free_address(), process::free_address()],
        );
        let port = |address: SocketAddr| format!("port_value: {}", address.port());
        let replace = [
            ("port_value: 18000", &*port(xds)),
            ("port_value: 9001", &*port(workers[0])),
            ("port_value: 9002", &*port(workers[1])),
            ("port_value: 9901", "port_value: 0"),
            ("port_value: 15001", "port_value: 0"),
        ];
        let filter = tools::filter();
        let envoy = tools::envoy_config("static/envoy.yaml", &replace);
        let envoy = envoy.replace("/etc/weir/weir_filter.wasm", filter.to_str().unwrap());
        let hosts = workers.map(|address| json!({"address": address, "capacity_millicores": 1000}));
        let control = json!({
            "xds": {"listen": xds},
            "admin": {"listen": "127.0.0.1:0"},
            "clusters": {"rules": {
                "hosts": hosts,
                "scrape": {"interval": "200ms"},
                "cache": {"interval": "200ms"},
            }},
        });
        Self {
            envoy,
            control,
            folder: tempfile::tempdir().unwrap(),
            xds,
            workers,
            without_control: false,
        }
    }

    /// Other text in Envoy's file. Text that is not there is a mistake.
    pub(crate) fn envoy(mut self, from: &str, to: &str) -> Self {
        assert!(self.envoy.contains(from), "no {from}");
        self.envoy = self.envoy.replace(from, to);
        self
    }

    /// Other clusters in the plugin's configuration.
    pub(crate) fn clusters(self, other: &str) -> Self {
        const END: &str = "\n                            }";
        let whole = |clusters: &str| format!("\"clusters\": {clusters}{END}");
        let usual = r#"{ "rules": { "table": "rules" } }"#;
        self.envoy(&whole(usual), &whole(other))
    }

    /// Other text from one mark of Envoy's file to the next.
    pub(crate) fn part(mut self, from: &str, until: &str, to: &str) -> Self {
        let (before, rest) = self.envoy.split_once(from).unwrap();
        let (_, after) = rest.split_once(until).unwrap();
        self.envoy = format!("{before}{to}{until}{after}");
        self
    }

    /// Merges over weir-control's configuration.
    pub(crate) fn control(mut self, change: Value) -> Self {
        merge(&mut self.control, change);
        self
    }

    pub(crate) fn workers(&self) -> [SocketAddr; 2] {
        self.workers
    }

    pub(crate) fn without_control(mut self) -> Self {
        self.without_control = true;
        self
    }

    pub(crate) fn file(&self, name: &str, text: &str) -> String {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    pub(crate) async fn start(self) -> Bench {
        let folder = self.folder.path();
        let workers = self.workers.map(|address| {
            let mut command = Command::new(process::worker_program());
            command.args(["--emulate", "--listen", &address.to_string()]);
            Process::start(&mut command, &folder.join("workers.log"))
        });
        let control = match self.without_control {
            true => None,
            false => Some(start_control(&self, "weir-control", &self.control)),
        };
        let sidecar = Sidecar::start(&self.envoy).await;
        Bench {
            sidecar,
            _control: control,
            workers: workers.into(),
            plan: self,
        }
    }
}

fn start_control(plan: &Plan, name: &str, config: &Value) -> Process {
    let file = |kind: &str| plan.folder.path().join(format!("{name}.{kind}"));
    write(plan.folder.path(), &format!("{name}.yaml"), config);
    let mut command = Command::new(process::CONTROL);
    command.arg("--config").arg(file("yaml"));
    command.arg("--ports-file").arg(file("ports"));
    let mut control = Process::start(&mut command, &file("log"));
    control.until_ports(&file("ports"), &file("log"));
    control
}

impl Bench {
    /// Another weir-control that knows nothing of the first, and its admin address.
    pub(crate) fn start_second_control(&self) -> (Process, Address) {
        let mut config = self.plan.control.clone();
        merge(
            &mut config,
            json!({"xds": {"listen": process::free_address()}}),
        );
        let second = start_control(&self.plan, "second", &config);
        (second, self.admin("second"))
    }

    /// Writes weir-control's file anew.
    pub(crate) fn configure(&self, text: &str) {
        self.plan.file("weir-control.yaml", text);
    }

    fn admin(&self, name: &str) -> Address {
        let ports = self.plan.folder.path().join(format!("{name}.ports"));
        let Ok(ports) = std::fs::read(ports) else {
            // Nobody listens there: it is not to be started.
            return process::free_address().to_string().parse().unwrap();
        };
        let ports: Value = serde_json::from_slice(&ports).unwrap();
        ports["admin"].as_str().unwrap().parse().unwrap()
    }

    /// Sends requests through the sidecar. Their number is odd: of an even one round robin sends each key to the same of
    /// two hosts each time, where the filter then expects it.
    pub(crate) async fn requests(&self) {
        let caller = Caller::new(self.sidecar.listener("egress").await);
        for number in 0..7 {
            caller.send("/", &keyed(number)).await;
        }
    }

    pub(crate) async fn diagnosis(&self) -> Diagnosis {
        self.diagnosis_with(&[]).await
    }

    /// With other weir-controls beside the first.
    pub(crate) async fn diagnosis_with(&self, others: &[Address]) -> Diagnosis {
        let controls = [&[self.admin("weir-control")], others].concat();
        let envoy = self.sidecar.admin.to_string().parse().unwrap();
        Diagnosis::of(&controls, &[envoy]).await
    }

    /// Waits until the doctor says that of a link.
    pub(crate) async fn until_named(&self, verdict: Verdict, link: &str, words: &str) -> Finding {
        let told = async || self.look(verdict, link, words).await;
        until(&format!("{link}: {words}"), told).await
    }

    /// The same while requests go on: a few of them may all happen to go where the filter says.
    pub(crate) async fn until_named_by_requests(
        &self,
        verdict: Verdict,
        link: &str,
        words: &str,
    ) -> Finding {
        let told = async || {
            self.requests().await;
            self.look(verdict, link, words).await
        };
        until(&format!("{link}: {words}"), told).await
    }

    /// What the doctor says of a link now; all that it says where it is not that.
    async fn look(&self, verdict: Verdict, link: &str, words: &str) -> Result<Finding, String> {
        let diagnosis = self.diagnosis().await;
        named(&diagnosis, verdict, link, words).ok_or_else(|| diagnosis.to_string())
    }

    /// Waits until every link holds.
    pub(crate) async fn until_sound(&self) {
        let sound = async || {
            self.requests().await;
            let diagnosis = self.diagnosis().await;
            match diagnosis
                .findings()
                .iter()
                .all(|one| one.verdict == Verdict::Fine)
            {
                true => Ok(()),
                false => Err(diagnosis.to_string()),
            }
        };
        until("every link to hold", sound).await;
    }
}

/// The finding, with evidence that has these words and with a mend.
pub(crate) fn named(
    diagnosis: &Diagnosis,
    verdict: Verdict,
    link: &str,
    words: &str,
) -> Option<Finding> {
    let mut found = diagnosis.findings().iter();
    let found = found.find(|one| {
        one.verdict == verdict && one.link == link && one.said.contains(words) && one.mend.is_some()
    });
    found.cloned()
}
