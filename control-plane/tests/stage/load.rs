// SPDX-License-Identifier: Apache-2.0
//! Requests at a fixed rate, whatever the answers do.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::task::AbortHandle;
use tokio::time::{MissedTickBehavior, interval, sleep};

use crate::client::{Answer, Caller, Headers};
use crate::waits::until;

/// Of a wait, in looks every 20 ms. It ends long before on a machine that does anything at all.
const LOOKS: usize = 3_000;

/// Requests of one load: many times what any test waits for.
const MOST: usize = 100_000;

pub(crate) struct Load {
    sent: Arc<AtomicUsize>,
    answers: Arc<Mutex<Vec<Answer>>>,
    task: AbortHandle,
}

impl Load {
    /// Request `n` of every one has the headers that `headers(n)` gives.
    pub(crate) fn start(
        address: SocketAddr,
        a_second: u32,
        headers: impl Fn(usize) -> Headers + Send + 'static,
    ) -> Self {
        let sent = Arc::new(AtomicUsize::new(0));
        let answers = Arc::new(Mutex::new(Vec::new()));
        let (counter, received, caller) = (sent.clone(), answers.clone(), Caller::new(address));
        let task = tokio::spawn(async move {
            let mut ticks = interval(Duration::from_secs(1) / a_second);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            for number in 0..MOST {
                ticks.tick().await;
                counter.store(number + 1, Ordering::SeqCst);
                let (caller, received, headers) =
                    (caller.clone(), received.clone(), headers(number));
                let counted = counter.clone();
                tokio::spawn(async move {
                    let answer = caller.send("/", &headers).await;
                    let sent = counted.load(Ordering::SeqCst);
                    let answer = Answer {
                        number,
                        sent,
                        ..answer
                    };
                    received.lock().unwrap().push(answer);
                });
            }
        });
        let task = task.abort_handle();
        Self {
            sent,
            answers,
            task,
        }
    }

    /// Requests sent so far.
    pub(crate) fn sent(&self) -> usize {
        self.sent.load(Ordering::SeqCst)
    }

    /// Answers to request `first` and later ones, in the order of arrival.
    pub(crate) fn since(&self, first: usize) -> Vec<Answer> {
        let answers = self.answers.lock().unwrap();
        answers
            .iter()
            .filter(|answer| answer.number >= first)
            .cloned()
            .collect()
    }

    /// Waits until `enough` of the answers to request `first` and later ones.
    pub(crate) async fn until(
        &self,
        what: &str,
        first: usize,
        enough: impl Fn(&[Answer]) -> bool,
    ) -> Vec<Answer> {
        for _ in 0..LOOKS {
            let answers = self.since(first);
            if enough(&answers) {
                return answers;
            }
            sleep(Duration::from_millis(20)).await;
        }
        let answers = self.since(first);
        let last = &answers[answers.len().saturating_sub(5)..];
        panic!(
            "waited in vain for {what} in {} answers, the last {last:#?}",
            answers.len()
        );
    }

    /// Waits for so many answers to requests that are sent from now on.
    pub(crate) async fn next(&self, count: usize) -> Vec<Answer> {
        let enough = |answers: &[Answer]| answers.len() >= count;
        self.until(&format!("{count} answers"), self.sent(), enough)
            .await
    }

    /// Waits until it has ended, while answers go on to come.
    pub(crate) async fn until_ended(&self, what: &str, mut has_ended: impl FnMut() -> bool) {
        until(&format!("the end of {what}"), async || {
            self.next(1).await;
            has_ended().then_some(()).ok_or("it lives")
        })
        .await;
    }

    /// Ends the load, waits for what is on its way, and returns all answers.
    pub(crate) async fn finish(self) -> Vec<Answer> {
        self.task.abort();
        let all = |answers: &[Answer]| answers.len() >= self.sent();
        self.until("the rest", 0, all).await
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Fails with the first answer that is not 200.
#[track_caller]
pub(crate) fn assert_all_ok<'a>(answers: impl IntoIterator<Item = &'a Answer>) {
    let bad: Vec<_> = answers
        .into_iter()
        .filter(|answer| answer.status != Some(200))
        .collect();
    assert!(
        bad.is_empty(),
        "{} were not answered 200, the first {:#?}",
        bad.len(),
        bad[0]
    );
}
