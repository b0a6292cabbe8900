// SPDX-License-Identifier: Apache-2.0
//! Writes what came of policies to their status.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use http::{Method, StatusCode};
use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, timeout};
use tracing::warn;
use weir_fleet::poll::PollError;
use weir_fleet::role::Role;
use weir_fleet::view::View;

use super::attach::Verdict;
use super::object::Id;
use super::{path, status};
use crate::client::Limits;
use crate::config::{Config, Policies};
use crate::kube::{Caller, Status};
use crate::news::News;

/// Between two looks without news of policies: hosts come and go without a word of the object.
const LOOK_EVERY: Duration = Duration::from_secs(4);

/// After news of policies and before each look: meanwhile their hosts are asked for.
const SETTLE: Duration = Duration::from_secs(1);

/// Between two writes to the same version of an object: what was written is on its way, or was refused.
const AGAIN: Duration = Duration::from_secs(30);

/// For an answer.
const ANSWER: Duration = Duration::from_secs(10);

/// Of an object in an answer; the server keeps none that is larger than 1.5 MiB in a tighter encoding.
const MAX_BYTES: usize = 8 << 20;

/// What a Role must allow.
const RIGHT: &str = "patch of weirpolicies/status in weir.dev";

/// When which version was written to.
type Tried = BTreeMap<Id, (String, Instant)>;

/// While this replica leads, until nobody has verdicts.
pub(crate) async fn tell(
    mut verdicts: watch::Receiver<Vec<Verdict>>,
    configs: watch::Receiver<Arc<Config>>,
    roles: watch::Receiver<Role>,
    updates: mpsc::Sender<News>,
) {
    let (mut failing, mut tried) = (None, Tried::new());
    loop {
        if let Ok(Err(_)) = timeout(LOOK_EVERY, verdicts.changed()).await {
            return;
        }
        sleep(SETTLE).await;
        let newest = verdicts.borrow_and_update().clone();
        let policies = configs.borrow().policies.clone();
        let policies = policies.filter(|_| !newest.is_empty() && roles.borrow().leads());
        let Some(policies) = policies else {
            continue;
        };
        let Some(view) = News::ask(&updates, News::View).await else {
            return;
        };
        let said = write_all(&policies, &newest, &view, &mut tried).await;
        let said = said.err().map(|error| error.to_string());
        if let Some(error) = said.as_ref().filter(|_| said != failing) {
            warn!(error, "the status of a WeirPolicy is not written");
        }
        failing = said;
    }
}

/// Writes what is due. The first that fails is told, and the others are written all the same.
async fn write_all(
    policies: &Policies,
    verdicts: &[Verdict],
    view: &View,
    tried: &mut Tried,
) -> Result<(), PollError> {
    tried.retain(|_, (_, at)| at.elapsed() < AGAIN);
    let (now, mut caller, mut first) = (format!("{:.0}", Timestamp::now()), None, Ok(()));
    for verdict in verdicts {
        let Some(patch) = status::due(verdict, &policies.controller_name, view, &now) else {
            continue;
        };
        let (id, version) = (
            verdict.object.id(),
            &verdict.object.metadata.resource_version,
        );
        if tried.get(&id).is_some_and(|(tried, _)| tried == version) {
            continue;
        }
        tried.insert(id.clone(), (version.clone(), Instant::now()));
        let caller = match &caller {
            Some(caller) => caller,
            None => caller.insert(Caller::new(&policies.access)?),
        };
        first = first.and(put(caller, &id, &patch).await);
    }
    first
}

async fn put(caller: &Caller, id: &Id, patch: &Value) -> Result<(), PollError> {
    let path = format!("{}/{}/status", path(&id.namespace), id.name);
    let limits = Limits {
        timeout: ANSWER,
        max_bytes: MAX_BYTES,
    };
    let body = Some(("application/merge-patch+json", patch));
    let answer = caller.send(Method::PATCH, &path, body, limits).await?;
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
