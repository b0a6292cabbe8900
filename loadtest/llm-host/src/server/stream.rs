// SPDX-License-Identifier: Apache-2.0
//! An answer that comes as it is written: server-sent events.
//!
//! ```text
//!  first token ─> a step, a step … (each at its time) ─> the end, when the model says so ─> usage, if asked for ─> [DONE]
//! ```

use std::sync::Arc;

use axum::BoxError;
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::unfold;
use serde_json::Value;

use super::request::Asked;
use super::written::{self, Steps};
use super::{App, completion};
use crate::host::UnderWay;
use crate::sequence::Spent;

/// What is still to come. Dropped when the caller leaves, and with it the sequence.
struct Events {
    app: Arc<App>,
    asked: Asked,
    spent: Spent,
    next: Next,
}

enum Next {
    Step(u64, UnderWay),
    Usage,
    Done,
    Nothing,
}

/// The answer to a request whose prompt has been read.
pub(super) fn answer(app: Arc<App>, asked: Asked, under_way: UnderWay, spent: Spent) -> Response {
    let events = Events {
        app,
        asked,
        spent,
        next: Next::Step(0, under_way),
    };
    Sse::new(unfold(events, Events::next)).into_response()
}

impl Events {
    /// The next event, at its time, and what comes after it.
    async fn next(mut self) -> Option<(Result<Event, BoxError>, Self)> {
        let (model, api) = (&self.app.model, self.asked.api);
        let (event, next) = match std::mem::replace(&mut self.next, Next::Nothing) {
            Next::Step(step, under_way) => {
                let steps = Steps::of(self.asked.sequence.output_tokens);
                if step < steps.count() {
                    let read = self.spent.begun + self.spent.prefill;
                    under_way
                        .until(read + steps.at(step, self.spent.decode))
                        .await;
                    let event = json(&written::step(model, api, step));
                    (event, Next::Step(step + 1, under_way))
                } else {
                    let event = self.ended(under_way).await;
                    let next = match (&event, self.asked.include_usage) {
                        (Err(_), _) => Next::Nothing,
                        (Ok(_), true) => Next::Usage,
                        (Ok(_), false) => Next::Done,
                    };
                    (event, next)
                }
            }
            Next::Usage => {
                let used = written::used(model, &self.asked, &self.spent);
                (json(&used), Next::Done)
            }
            Next::Done => (Ok(Event::default().data("[DONE]")), Next::Nothing),
            Next::Nothing => return None,
        };
        self.next = next;
        Some((event, self))
    }

    async fn ended(&self, under_way: UnderWay) -> Result<Event, BoxError> {
        let (spent, _) = under_way.answer().await?;
        completion::note(&self.app, &self.asked.sequence, &spent)?;
        json(&written::end(&self.app.model, self.asked.api))
    }
}

fn json(value: &Value) -> Result<Event, BoxError> {
    Ok(Event::default().json_data(value)?)
}
