// SPDX-License-Identifier: Apache-2.0
//! The engine's hot functions, found by [`weir_profile`] while it is asked: document 002 names one by hand (section
//! 3.2.1).

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use weir_profile::{Report, Request};

use crate::search::client::Client;
use crate::search::node::Node;
use crate::search::queries::{self, Load};
use crate::search::terms::Terms;

/// Different queries of a load; after them they come again.
const QUERIES: usize = 1_000;

/// Asks an engine without an agent one query after the other, and samples and observes it meanwhile, each for `time`.
///
/// # Errors
/// A query is not answered, or nothing is found out.
pub fn profile(
    node: &Node,
    agent: &Path,
    terms: &Terms,
    load: Load,
    time: Duration,
) -> Result<Report> {
    let process = u32::try_from(node.process.id()).ok();
    let request = Request {
        process: process.and_then(NonZeroU32::new).context("no process")?,
        time,
        queries: None,
        agent: Some(agent.to_owned()),
    };
    let bodies = queries::bodies(terms, load, QUERIES, 1);
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| ask_until(&ended, node.address, &bodies));
        let report = weir_profile::profile(&request, &mut |_| ());
        ended.store(true, Ordering::Relaxed);
        asking.join().map_err(|_| anyhow!("asking has failed"))??;
        Ok(report?)
    })
}

#[tokio::main(flavor = "current_thread")]
async fn ask_until(ended: &AtomicBool, address: SocketAddr, bodies: &[String]) -> Result<()> {
    let mut client = Client::connect(address).await?;
    for body in bodies.iter().cycle() {
        if ended.load(Ordering::Relaxed) {
            break;
        }
        client.ask(body).await?;
    }
    Ok(())
}
