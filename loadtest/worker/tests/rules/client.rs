// SPDX-License-Identifier: Apache-2.0
//! Someone who asks a host: jobs, and how it is.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::time::{sleep, timeout};

use crate::http::{Address, Answer, Exchange};

/// A state that has not come by then never will. It makes a defect a failure instead of a hang.
pub(crate) const GIVE_UP: Duration = Duration::from_secs(120);

/// By the address of the host.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Client<A = SocketAddr>(pub(crate) A);

pub(crate) const JOBS: &str = "weir_host_jobs_total";
pub(crate) const BUSY: &str = "weir_host_busy_cores";
pub(crate) const IN_PROGRESS: &str = "weir_host_in_progress";
pub(crate) const ITEMS: &str = "weir_host_cache_items";
pub(crate) const HIGH_QUEUED: &str = r#"weir_host_queued{priority="0"}"#;
pub(crate) const LOW_QUEUED: &str = r#"weir_host_queued{priority="16"}"#;

/// The counter of joblets of a kind that have ended.
pub(crate) fn ran(kind: &str) -> String {
    format!(r#"weir_host_joblet_seconds_count{{kind="{kind}"}}"#)
}

/// The counter of jobs that ended so.
pub(crate) fn ended(outcome: &str) -> String {
    format!(r#"{JOBS}{{outcome="{outcome}"}}"#)
}

impl<A: Address> Client<A> {
    /// Sends a job and does not wait.
    pub(crate) async fn send(&self, body: &str) -> Exchange<A::Stream> {
        self.post("/", "", body.as_bytes()).await
    }

    pub(crate) async fn post(&self, path: &str, headers: &str, body: &[u8]) -> Exchange<A::Stream> {
        Exchange::send(&self.0, &format!("POST {path} HTTP/1.1\r\n{headers}"), body).await
    }

    /// Sends a job and waits for its answer.
    pub(crate) async fn job(&self, body: &str) -> Answer {
        self.send(body).await.answer().await
    }

    pub(crate) async fn prefetch(&self, body: &str) -> Answer {
        let sent = self.post("/prefetch", "", body.as_bytes()).await;
        sent.answer().await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        let head = format!("GET {path} HTTP/1.1\r\n");
        Exchange::send(&self.0, &head, b"").await.answer().await
    }

    /// What `/cache` tells of everything.
    pub(crate) async fn cache(&self) -> serde_json::Value {
        let told = self.get("/cache").await;
        serde_json::from_slice(&told.body).unwrap()
    }

    /// The projects whose items are cached.
    pub(crate) async fn cached(&self) -> Vec<String> {
        let told = self.cache().await;
        let keys = told["added"].as_array().unwrap().iter();
        keys.map(|key| key.as_str().unwrap().to_owned()).collect()
    }

    /// A value of `/metrics`; what is not there is 0.
    pub(crate) async fn metric(&self, name: &str) -> u64 {
        value(&self.get("/metrics").await.text(), name)
    }

    /// Waits until a value of `/metrics` is this.
    pub(crate) async fn until(&self, name: &str, wanted: u64) {
        let reached = |page: &Answer| value(&page.text(), name) == wanted;
        self.until_page("/metrics", &format!("{name} of {wanted}"), reached)
            .await;
    }

    /// Waits until the host says that it leaves.
    pub(crate) async fn until_draining(&self) {
        self.until_page("/ready", "a 503", |page| page.status == 503)
            .await;
    }

    async fn until_page(&self, path: &str, what: &str, is: impl Fn(&Answer) -> bool) {
        let mut last = None;
        let reached = async {
            loop {
                let page = last.insert(self.get(path).await);
                if is(page) {
                    return;
                }
                sleep(Duration::from_millis(2)).await;
            }
        };
        if timeout(GIVE_UP, reached).await.is_err() {
            let said = last.map(|page| format!("{}{}", page.head, page.text()));
            panic!("waited in vain for {what} at {path}: {said:?}");
        }
    }

    /// Waits until nothing runs and nothing waits.
    pub(crate) async fn until_idle(&self) {
        self.until(BUSY, 0).await;
        self.until(IN_PROGRESS, 0).await;
        for kind in [
            "feed_source",
            "shared_operators",
            "operators",
            "output_feed",
        ] {
            let stalled = format!(r#"weir_host_stalled_joblets{{kind="{kind}"}}"#);
            self.until(&stalled, 0).await;
        }
        for class in [HIGH_QUEUED, LOW_QUEUED] {
            self.until(class, 0).await;
        }
    }
}

fn value(metrics: &str, name: &str) -> u64 {
    let mut lines = metrics.lines().filter_map(|line| line.rsplit_once(' '));
    let found = lines.find(|(key, _)| *key == name);
    found.map_or(0, |(_, value)| value.parse().unwrap())
}
