// SPDX-License-Identifier: Apache-2.0
//! From the loss of a leader to a fresh table at those who are with another replica. It prints; nothing is
//! asserted of time.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::agent::{Agent, program};
use crate::filter::Filter;
use crate::group::Replica;
use crate::metered::{Wire, host};

const ROUNDS: usize = 5;

#[derive(Clone, Copy, Debug)]
enum Loss {
    Stop,
    Kill,
    Freeze,
    CutFromConsul,
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement, of some minutes, for a quiet machine"]
async fn from_a_lost_leader_to_fresh_tables() {
    let Some(program) = program() else { return };
    let host = host().await;
    for loss in [Loss::Stop, Loss::Kill, Loss::Freeze, Loss::CutFromConsul] {
        let mut times = Vec::new();
        for _ in 0..ROUNDS {
            times.push(round(&program, host, loss).await);
        }
        times.sort();
        let shown: Vec<String> = times
            .iter()
            .map(|time| format!("{:.2}", time.as_secs_f64()))
            .collect();
        eprintln!("{loss:?}: {} s", shown.join(", "));
    }
}

async fn round(program: &std::path::PathBuf, host: SocketAddr, loss: Loss) -> Duration {
    let agent = Agent::start(program, json!({})).await;
    let wire = Wire::to(SocketAddr::from(([127, 0, 0, 1], agent.ports.http))).await;
    let polled = json!({ "clusters": { "rules": {
        "policy": { "stale_after": "5s" }, "hosts": [ { "address": host } ], "scrape": {},
    } } });
    let a = Replica::start(Some(&wire.url()), "a", polled.clone());
    a.leads().await;
    let b = Replica::start(Some(&agent.url()), "b", polled);
    b.follows(&a).await;
    let filter = Filter::at(b.xds);
    filter.has_table_of(1).await;
    a.is_grown().await;
    let lost = Instant::now();
    match loss {
        Loss::Stop => a.signal("TERM"),
        Loss::Kill => a.signal("KILL"),
        Loss::Freeze => a.signal("STOP"),
        Loss::CutFromConsul => wire.cut(),
    }
    let fresh = |page: &Value| page["replica"]["role"] == "leading";
    b.until("the lead", fresh).await;
    filter.has_table_of(2).await;
    let seen = filter.seen.lock().unwrap();
    let first = seen.taken.iter().position(|it| it.0.fence() == Some(2));
    seen.at[first.unwrap()] - lost
}
