// SPDX-License-Identifier: Apache-2.0
//! Sends every request of a workload at its offset, whatever the answers do.

use std::sync::Arc;
use std::sync::mpsc::Sender as Outbox;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use crate::exchange::Sender;
use crate::record::Record;
use crate::recorder::Message;
use crate::units::micros;
use crate::workload::Request;

/// How the workload is paced.
#[derive(Debug, Clone)]
pub struct Pace {
    /// Offsets are divided by this.
    pub speed: f64,
    /// Requests under way at the same time; those beyond are recorded as failed, unsent, with the
    /// reason `replayer_full`. They are never delayed: that would close the loop.
    pub max_in_flight: usize,
}

/// Replays the workload from now on and returns when the last request has ended, which is at the
/// latest a deadline after the last offset.
pub async fn replay(
    workload: Vec<Request>,
    sender: Arc<Sender>,
    pace: &Pace,
    outbox: &Outbox<Message>,
) {
    let start = Instant::now();
    let mut under_way = JoinSet::new();
    for (index, request) in workload.into_iter().enumerate() {
        let offset = Duration::from_micros(request.t_us).div_f64(pace.speed);
        let due = start + offset;
        sleep_until(due).await;
        while let Some(ended) = under_way.try_join_next() {
            tell(outbox, ended.ok());
        }
        if under_way.len() >= pace.max_in_flight {
            tell(outbox, Some(unsent(&sender, index, request, due)));
            continue;
        }
        // The recorder leaves last; should its disk fail, the replay goes on to its end.
        let _ = outbox.send(Message::Sent);
        under_way.spawn(Arc::clone(&sender).exchange(index, request, due));
    }
    while let Some(ended) = under_way.join_next().await {
        tell(outbox, ended.ok());
    }
}

fn unsent(sender: &Sender, index: usize, request: Request, due: Instant) -> Record {
    let targets = &sender.settings().targets;
    let mut record = Record::new(index, request, targets[index % targets.len()]);
    record.lag_us = micros(due.elapsed());
    record.reason = Some("replayer_full".to_owned());
    record
}

fn tell(outbox: &Outbox<Message>, record: Option<Record>) {
    if let Some(record) = record {
        let _ = outbox.send(Message::Ended(Box::new(record)));
    }
}
