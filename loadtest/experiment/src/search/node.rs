// SPDX-License-Identifier: Apache-2.0
//! One Elasticsearch, with what its way adds.

use std::ffi::OsString;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use serde::Deserialize;
use weir_stage::processes::Processes;
use weir_stage::usage::Process;

use crate::search::index::{self, java};
use crate::search::way::{HOT, Way};
use crate::variant::Variant;

/// On a busy machine; it takes about 5 s on an idle one.
const START: Duration = Duration::from_secs(120);

/// The programs of an engine.
#[derive(clap::Args)]
#[command(next_help_heading = crate::driver::GIVEN)]
pub struct Programs {
    /// The jar of the engine
    #[arg(long, value_name = "JAR")]
    pub node: PathBuf,
    /// The jar of the agent that writes events
    #[arg(long, value_name = "JAR")]
    pub agent: PathBuf,
}

/// A running engine.
pub struct Node {
    /// What is added to it.
    pub way: Way,
    /// Where it is asked.
    pub address: SocketAddr,
    /// What it costs.
    pub process: Process,
}

#[derive(Deserialize)]
struct Ports {
    http: SocketAddr,
}

/// Where an engine and what belongs to it writes.
pub struct Places {
    /// Of the engine: its copy of the index.
    pub folder: PathBuf,
    /// Of its events, on tmpfs.
    pub events: PathBuf,
}

/// Starts an engine on a copy of the kept index. It lives as long as `processes`.
///
/// # Errors
/// It ends, or does not answer within two minutes.
pub fn start(
    way: Way,
    programs: &Programs,
    kept: &Path,
    places: &Places,
    processes: &mut Processes,
) -> Result<Node> {
    index::copy(kept, &places.folder)?;
    let ports = places.folder.join("ports.json");
    let _ = fs::remove_file(&ports);
    let mut command = java(&["-Xms512m", "-Xmx512m"]);
    command
        .args(agent(way, programs, &places.events))
        .arg("-jar")
        .arg(&programs.node)
        .arg("serve")
        .args([&places.folder, &ports]);
    let process = processes.start(&way.name(), command)?;
    let what = format!("readiness of {}", way.name());
    let found: Ports = processes.wait_until(&what, START, || {
        serde_json::from_slice(&fs::read(&ports).ok()?).ok()
    })?;
    Ok(Node {
        way,
        address: found.http,
        process,
    })
}

fn agent(way: Way, programs: &Programs, events: &Path) -> Option<OsString> {
    let (jar, arguments) = match way {
        Way::Pure | Way::PureAgain => return None,
        Way::Instrumented | Way::Scheduled => (
            &programs.agent,
            format!("ring={},hot=1:{HOT}", events.display()),
        ),
        Way::WritePerEvent => (&programs.node, events.display().to_string()),
    };
    let mut option = OsString::from("-javaagent:");
    option.push(jar);
    option.push("=");
    option.push(arguments);
    Some(option)
}
