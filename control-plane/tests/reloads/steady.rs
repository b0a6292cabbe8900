// SPDX-License-Identifier: Apache-2.0
//! The load that goes on through a reload.

use std::net::SocketAddr;
use std::time::Duration;

use crate::client::{Answer, Caller, keyed};
use crate::load::{Load, assert_all_ok};

/// Reasons of a request that no table decided: Envoy's fallback chose, or nobody.
const UNINFORMED: [&str; 4] = ["no_table", "stale_table", "no_host", "overloaded"];

/// Requests a second: hosts and sidecar have nothing to do at that.
const A_SECOND: u32 = 50;

/// Every 10 ms and more, before a wait is in vain.
const LOOKS: usize = 3_000;

/// Sent before the first reload and after the last one.
const AROUND: usize = 50;

/// Requests at a steady rate, none of which may fail.
pub(crate) struct Steady(Load);

impl Steady {
    /// Starts when every worker has tables, and goes on for a while.
    pub(crate) async fn start(egress: SocketAddr) -> Self {
        until_informed(egress).await;
        let load = Load::start(egress, A_SECOND, keyed);
        load.next(AROUND).await;
        Self(load)
    }

    /// So many more.
    pub(crate) async fn next(&self, count: usize) -> Vec<Answer> {
        self.0.next(count).await
    }

    /// Waits until it has ended, while answers go on to come.
    pub(crate) async fn until_ended(&self, what: &str, has_ended: impl FnMut() -> bool) {
        self.0.until_ended(what, has_ended).await;
    }

    /// Waits for an answer to a request sent from now on.
    pub(crate) async fn until(&self, what: &str, wanted: impl Fn(&Answer) -> bool) {
        let sent = self.0.sent();
        let enough = |answers: &[Answer]| answers.iter().any(&wanted);
        self.0.until(what, sent, enough).await;
    }

    /// Goes on for a while and ends. Every request was answered 200, and `debug` told of each that a table
    /// decided it.
    pub(crate) async fn assert_informed(self) {
        for answer in self.assert_ok().await {
            let reason = &*answer.reason;
            assert!(is_informed(&answer), "not chosen: {reason:?} {answer:#?}");
        }
    }

    /// Goes on for a while and ends. Every request was answered 200.
    pub(crate) async fn assert_ok(self) -> Vec<Answer> {
        self.0.next(AROUND).await;
        let answers = self.0.finish().await;
        assert_all_ok(&answers);
        answers
    }
}

/// A table decided it.
pub(crate) fn is_informed(answer: &Answer) -> bool {
    !answer.reason.is_empty() && !UNINFORMED.contains(&&*answer.reason)
}

/// Waits until many callers one after the other, who meet all workers, are told of a table.
async fn until_informed(egress: SocketAddr) {
    let mut informed = 0;
    for _ in 0..LOOKS {
        let answer = Caller::new(egress).send("/", &keyed(0)).await;
        informed = if is_informed(&answer) {
            informed + 1
        } else {
            0
        };
        if informed == 20 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("no tables in all workers");
}
