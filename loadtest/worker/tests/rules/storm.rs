// SPDX-License-Identifier: Apache-2.0
//! Many clients at once, some of which leave or are in a hurry, in every order of joblets: every
//! answer is the right one, and nothing is left behind.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::json;

use crate::bucket::{Bucket, Mood};
use crate::client::Client;
use crate::reference::expected;
use crate::shop::{items, job};
use crate::worker::Worker;

const CLIENTS: u64 = 12;
const ROUNDS: u64 = 8;
const PROJECTS: [(&str, usize); 4] = [("p", 3), ("q", 40), ("r", 400), ("s", 1500)];

/// The answer to every request, by its body.
type Answers = Arc<HashMap<String, Vec<u8>>>;

/// SplitMix64, see G. L. Steele et al., "Fast splittable pseudorandom number generators" (2014).
struct Draw(u64);

impl Draw {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % limit as u64) as usize
    }
}

fn requests(project: &str) -> Vec<String> {
    let cheap = json!([{
        "condition": [{"field": "price", "filter": "is_less_than", "value": {"type": "static", "value": 9}}],
        "actions": [{"field": "all", "action": "remove"}],
    }]);
    let red = json!({"text": "RED", "fields": ["color"]});
    vec![
        job(project, "low", json!({})),
        job(project, "high", json!({"format": "csv"})),
        job(project, "low", json!({"cache": false, "operators": cheap})),
        job(
            project,
            "high",
            json!({"operators": [], "sort": [{"field": "title"}]}),
        ),
        job(
            project,
            "low",
            json!({"shared_operators": [], "search": red, "format": "json"}),
        ),
        job(
            project,
            "high",
            json!({"shared_operators": [], "operators": [], "omit": ["description"]}),
        ),
    ]
}

/// One client after its own fashion.
async fn client(host: Client, seed: u64, answers: Answers, bodies: Arc<Vec<String>>) {
    let mut draw = Draw(seed);
    for _ in 0..ROUNDS {
        let body = &bodies[draw.below(bodies.len())];
        let mut sent = match draw.below(8) {
            0 => {
                let mut hasty: serde_json::Value = serde_json::from_str(body).unwrap();
                let stage = ["queue_seconds", "evaluate_seconds", "stream_seconds"][draw.below(3)];
                hasty["timeouts"] = json!({stage: 0.002});
                let answer = host.job(&hasty.to_string()).await;
                match (answer.status, answer.whole) {
                    (200, true) => answer.is(&answers[body]),
                    (200, false) => assert!(answers[body].starts_with(&answer.body)),
                    (503 | 504, true) => answer.says(answer.status, &["timed out: "]),
                    other => panic!("{other:?}: {}", answer.text()),
                }
                continue;
            }
            _ => host.send(body).await,
        };
        match draw.below(4) {
            0 => {
                for _ in 0..draw.below(50) {
                    tokio::task::yield_now().await;
                }
            }
            1 => sent.read(1 + draw.below(400_000)).await,
            _ => sent.answer().await.is(&answers[body]),
        }
    }
}

async fn storm(flags: &[&str]) {
    let feeds = PROJECTS.map(|(project, count)| (project, items(count, 200)));
    let bucket = Bucket::start(
        &feeds
            .each_ref()
            .map(|(project, text)| (*project, text.as_str())),
    )
    .await;
    let mut answers = HashMap::new();
    for (project, text) in &feeds {
        for body in requests(project) {
            let answer = expected(text, &body).await;
            answers.insert(body, answer);
        }
    }
    let bodies: Vec<String> = PROJECTS
        .iter()
        .flat_map(|(project, _)| requests(project))
        .collect();
    let (answers, bodies) = (Arc::new(answers), Arc::new(bodies));
    // Room for some results but not for all.
    let flags = [&["--cores", "2", "--cache-bytes", "1Mi"], flags].concat();
    let worker = Worker::start(&bucket, &flags).await;
    bucket.set("q", Mood::Held);
    let clients = (0..CLIENTS).map(|seed| {
        let (answers, bodies) = (Arc::clone(&answers), Arc::clone(&bodies));
        tokio::spawn(client(*worker, seed, answers, bodies))
    });
    let clients: Vec<_> = clients.collect();
    bucket.until_asked("q", 1).await;
    bucket.set("q", Mood::Well);
    for client in clients {
        client.await.unwrap();
    }
    worker.until_idle().await;
    // What is cached now came out of all that.
    for body in bodies.iter() {
        worker.job(body).await.is(&answers[body]);
    }
    worker.until_idle().await;
}

#[tokio::test]
async fn every_answer_is_right_in_order_of_priority() {
    storm(&["--order", "priority"]).await;
}

#[tokio::test]
async fn every_answer_is_right_in_round_robin() {
    storm(&["--order", "round-robin", "--quantum-us", "500"]).await;
}

#[tokio::test]
async fn every_answer_is_right_by_quanta() {
    let priorities = ["--order", "quantum", "--quantum-priorities", "20,10,5"];
    let formula = ["--quantum-formula", "40,20,4", "--source-interval", "3"];
    storm(&[priorities, formula].concat()).await;
}

#[tokio::test]
async fn every_answer_is_right_by_rates() {
    storm(&["--order", "rate-based"]).await;
}

#[tokio::test]
async fn every_answer_is_right_with_a_thread_for_every_job() {
    storm(&["--order", "thread-per-job"]).await;
}
