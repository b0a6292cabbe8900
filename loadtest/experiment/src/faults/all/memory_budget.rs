// SPDX-License-Identifier: Apache-2.0
//! A host of another cluster claims more keys than weir-control may keep.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use anyhow::{Context, Result, ensure};
use serde_json::json;
use weir_mesh::{HOSTS, Mesh};

use crate::faults::fault::{Expectation, Fault, Length};
use crate::faults::signs;
use crate::faults::stage::Stage;

/// Nobody asks for it.
const GREEDY: &str = "greedy";
/// Five times what the limit has room for.
const KEYS: usize = 20_000;

pub(crate) const FAULT: Fault = Fault {
    name: "memory-budget",
    expectation: Expectation::nothing_fails(
        "nothing fails: cache contents that nobody uses are dropped, those in use stay, and so do loads",
    ),
    own: Some(|plan, _| {
        plan.control = json!({"memory": {"limit": "1MiB"}});
        Ok(())
    }),
    full: Length::full(10, 30, 10),
    short: Some(Length::short(2, 8, 2)),
    run,
    known_gap: None,
};

fn run(stage: &mut Stage<'_>) -> Result<()> {
    let limit = json!({"memory": {"limit": "1MiB"}});
    let mut greedy = limit.clone();
    greedy["clusters"] = json!({GREEDY: {
        "hosts": [{"address": claims_many_keys()?}],
        "cache": {"timeout": "5s"},
    }});
    stage.mesh().tell_controls_beside(greedy)?;
    let (_, took) = stage.until("contents that are dropped", |mesh| {
        (of_cluster(mesh, "cache_contents_dropped", GREEDY)? == 1).then_some(())
    })?;
    stage.measured("dropped after", took.as_secs_f64(), "s", None);
    let (mut stale, mut counted) = (0, 0);
    stage.harm_with(|stage| {
        let mesh = stage.mesh();
        stale = stale.max(of_cluster(mesh, "hosts_stale", HOSTS).unwrap_or(0));
        let bytes = signs::of_control(mesh.control(), "weir_control_memory_counted_bytes");
        counted = counted.max(bytes.unwrap_or(0));
        Ok(())
    })?;
    let drops = of_cluster(stage.mesh(), "cache_contents_drops_total", HOSTS);
    ensure!(drops.unwrap_or(0) == 0, "contents in use were dropped");
    let again = of_cluster(stage.mesh(), "cache_contents_drops_total", GREEDY);
    ensure!(again == Some(1), "dropped {again:?} times, so it came back");
    let keys = of_cluster(stage.mesh(), "known_keys", HOSTS).context("known keys")?;
    ensure!(keys > 0, "no key in use is known");
    stage.measured("known keys in use", keys as f64, "", None);
    stage.measured("hosts without fresh figures", stale as f64, "", Some(0.0));
    let mib = counted as f64 / f64::from(1 << 20);
    stage.measured("counted memory", mib, "MiB", Some(1.0));
    stage.mesh().tell_controls_beside(limit)
}

fn of_cluster(mesh: &Mesh, name: &str, cluster: &str) -> Option<u64> {
    let name = format!("weir_control_{name}{{cluster=\"{cluster}\"}}");
    signs::of_control(mesh.control(), &name)
}

/// Answers every question with all its keys, until this process ends.
fn claims_many_keys() -> Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").context("a port")?;
    let address = listener.local_addr()?;
    let keys: Vec<String> = (0..KEYS).map(|key| format!("greedy-{key}")).collect();
    let body = json!({"version": 1, "epoch": 1, "reset": true, "added": keys}).to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // Whoever asked may have gone.
            let _ = answer(stream, &body);
        }
    });
    Ok(address)
}

fn answer(mut stream: TcpStream, body: &str) -> std::io::Result<()> {
    let mut question = [0; 4096];
    let _ = stream.read(&mut question)?;
    let mut head = String::from("HTTP/1.1 200 OK\r\nconnection: close\r\n");
    let _ = write!(head, "content-length: {}\r\n\r\n", body.len());
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())
}
