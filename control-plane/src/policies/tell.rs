// SPDX-License-Identifier: Apache-2.0
//! Writes what came of policies to their status.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, StatusCode};
use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::sleep;
use tracing::warn;
use weir_fleet::poll::PollError;
use weir_fleet::role::Role;
use weir_fleet::view::View;

use super::attach::Verdict;
use super::object::Id;
use super::{path, status};
use crate::client::Limits;
use crate::config::Access;
use crate::kube::{Caller, Status};
use crate::news::News;

/// Between two looks at whether a status says what is so: hosts come and go without a word of the object.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// For an answer.
const ANSWER: Duration = Duration::from_secs(10);

/// Of an object in an answer; the server keeps none that is larger than 1.5 MiB in a tighter encoding.
const MAX_BYTES: usize = 8 << 20;

/// What a Role must allow.
const RIGHT: &str = "update of weirpolicies/status in weir.dev";

/// While this replica leads, until nobody has verdicts.
pub(crate) async fn tell(
    access: Access,
    verdicts: watch::Receiver<Vec<Verdict>>,
    roles: watch::Receiver<Role>,
    updates: mpsc::Sender<News>,
) {
    let mut failing = None;
    // What was written, until the object comes back with it.
    let mut written = BTreeMap::new();
    while verdicts.has_changed().is_ok() {
        sleep(LOOK_EVERY).await;
        if !roles.borrow().leads() {
            continue;
        }
        let verdicts = verdicts.borrow().clone();
        let Some(view) = view(&updates).await else {
            return;
        };
        let said = write_all(&access, &verdicts, &view, &mut written).await;
        let said = said.err().map(|error| error.to_string());
        if let Some(error) = said.as_ref().filter(|_| said != failing) {
            warn!(error, "the status of WeirPolicies is not written");
        }
        failing = said;
    }
}

async fn view(updates: &mpsc::Sender<News>) -> Option<View> {
    let (answer, answered) = oneshot::channel();
    updates.send(News::View(answer)).await.ok()?;
    answered.await.ok()
}

async fn write_all(
    access: &Access,
    verdicts: &[Verdict],
    view: &View,
    written: &mut BTreeMap<Id, Value>,
) -> Result<(), PollError> {
    written.retain(|id, _| verdicts.iter().any(|verdict| verdict.object.id() == *id));
    let mut caller = None;
    for verdict in verdicts {
        let now = format!("{:.0}", Timestamp::now());
        let Some(object) = status::due(verdict, view, &now) else {
            continue;
        };
        let id = verdict.object.id();
        // Of the same version: it was written, and is on its way.
        let version = &object["metadata"]["resourceVersion"];
        if written.get(&id) == Some(version) {
            continue;
        }
        let caller = match &caller {
            Some(caller) => caller,
            None => caller.insert(Caller::new(access)?),
        };
        put(caller, &id, &object).await?;
        written.insert(id, version.clone());
    }
    Ok(())
}

async fn put(caller: &Caller, id: &Id, object: &Value) -> Result<(), PollError> {
    let mut headers = caller.headers().await?;
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let path = format!("{}/{}/status", path(&id.namespace), id.name);
    let limits = Limits {
        timeout: ANSWER,
        max_bytes: MAX_BYTES,
    };
    let body = Bytes::from(object.to_string());
    let answer = caller.http.send(Method::PUT, &path, headers, body, limits);
    let answer = answer.await?;
    match answer.status {
        // Somebody else has written to it, or it is gone: the next look has it as it is then.
        StatusCode::CONFLICT | StatusCode::NOT_FOUND => Ok(()),
        status if status.is_success() => Ok(()),
        status => {
            let code = status.as_u16();
            Err(Status::read(code, &answer.body).refusal(code, RIGHT))
        }
    }
}
