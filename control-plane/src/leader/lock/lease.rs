// SPDX-License-Identifier: Apache-2.0
//! The lock in Kubernetes: a Lease (coordination.k8s.io/v1 in Kubernetes' reference of its API).
//!
//! ```text
//!  GET ──> View (pure: seen since, claimed at) ──> Key
//!  PUT, POST <── the object as it was read, with another spec; 409: it is another one by now
//! ```
//! As client-go's leader election does (k8s.io/client-go/tools/leaderelection/leaderelection.go): a Lease has run out
//! when the one who looks has seen it unchanged for its duration, by its own clock; its times are for people. The one
//! who holds it stops after two thirds of the duration without a renewal, as there (15 s and 10 s).

mod view;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::{Method, StatusCode};
use jiff::Timestamp;
use rand::RngExt;
use serde_json::Value;
use tokio::time::{Instant, sleep};
use weir_fleet::poll::{Fault, PollError};

use super::{ANSWER, Key, Reading};
use crate::client::{Answer, Limits};
use crate::config::Access;
use crate::config::replicas::Lease as Settings;
use crate::kube::{Caller, Status};
use view::View;

/// Of a Lease: who writes it is in it, and each of its writers.
const MAX_BYTES: usize = 256 << 10;
/// Parts of the duration between two renewals, and between two looks.
const RENEWALS: u32 = 6;
/// Parts of the duration between two attempts at what was not done: while the holder may go on, there are twenty.
pub(super) const RETRIES: u32 = 30;
/// Between what runs out and the look at it.
const MOMENT: Duration = Duration::from_millis(20);
/// A write that meets another one is tried once more, with what it has written.
const ATTEMPTS: usize = 2;

/// Asks for it.
#[derive(Debug)]
pub(in crate::leader) struct Lease {
    access: Access,
    /// Made when it is first needed, and again after a failure: a pod's authority is a file that may change.
    caller: Mutex<Option<Arc<Caller>>>,
    /// `/apis/...`, of all of the namespace.
    all: String,
    /// Of the one.
    path: String,
    /// What a Role must allow.
    right: String,
    view: Arc<Mutex<View>>,
}

/// What came of a write.
enum Written {
    Yes,
    /// What was to be written over is not there any more.
    Overtaken,
}

impl Lease {
    pub(super) fn new(settings: &Settings, name: &str, address: &str) -> Self {
        let view = View::new(settings, name, address);
        Self::with(settings, Arc::new(Mutex::new(view)))
    }

    /// The same, asked in another way: what is known of it stays.
    pub(super) fn renewed(&self, settings: &Settings) -> Self {
        Self::with(settings, self.view.clone())
    }

    fn with(settings: &Settings, view: Arc<Mutex<View>>) -> Self {
        let Settings {
            namespace,
            name,
            access,
            ..
        } = settings;
        let all = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases");
        Self {
            access: access.clone(),
            caller: Mutex::new(None),
            path: format!("{all}/{name}"),
            all,
            right: format!(
                "get, create and update of the Lease {name} in namespace {namespace} (coordination.k8s.io)"
            ),
            view,
        }
    }

    /// A new session: this process' claim, as long as it holds none.
    pub(super) fn open(&self) -> String {
        let session = format!("{:032x}", rand::random::<u128>());
        self.view().open(&session);
        session
    }

    /// Whether the session still holds the Lease.
    pub(super) async fn renew(&self, session: &str) -> Result<bool, PollError> {
        for _ in 0..ATTEMPTS {
            let begun = Instant::now();
            let Some(object) = self.view().renewal(session, &now()) else {
                return Ok(false);
            };
            if let Written::Yes = self.replace(&object).await? {
                self.view().claim(begun);
                return Ok(true);
            }
            self.look().await?;
        }
        Err(busy())
    }

    /// Frees the Lease if the session holds it.
    pub(super) async fn release(&self, session: &str) -> Result<(), PollError> {
        for _ in 0..ATTEMPTS {
            let Some(object) = self.view().released(session) else {
                return Ok(());
            };
            if let Written::Yes = self.replace(&object).await? {
                return Ok(());
            }
            self.look().await?;
        }
        Err(busy())
    }

    /// Whether the Lease, which was free when it was read, is the session's now.
    pub(super) async fn acquire(&self, session: &str) -> Result<bool, PollError> {
        let begun = Instant::now();
        let taken = self.view().taken(session, &now(), begun);
        let Some(taken) = taken else {
            return Ok(false);
        };
        let written = match taken {
            view::Taken::New(object) => self.create(&object).await?,
            view::Taken::Over(object) => self.replace(&object).await?,
        };
        match written {
            Written::Yes => self.view().claim(begun),
            Written::Overtaken => return Ok(false),
        }
        Ok(true)
    }

    /// What the Lease says. With an index of 0 at once, else when it is time to look again.
    pub(super) async fn read(&self, index: u64) -> Result<Reading, PollError> {
        if index > 0 {
            let share = rand::rng().random_range(0.8..1.0);
            let every = (self.duration() / RENEWALS).mul_f64(share);
            let runs_out = self.view().runs_out_in(Instant::now());
            let pause = runs_out.map_or(every, |left| every.min(left + MOMENT));
            sleep(pause).await;
        }
        let key = self.look().await?;
        Ok(Reading { index: 1, key })
    }

    pub(super) fn renewed_every(&self) -> Option<Duration> {
        let view = self.view();
        view.is_claimed().then(|| view.duration / RENEWALS)
    }

    pub(super) fn lapses_at(&self) -> Option<Instant> {
        self.view().lapses_at()
    }

    pub(super) fn duration(&self) -> Duration {
        self.view().duration
    }

    async fn look(&self) -> Result<Key, PollError> {
        let answer = self.ask(Method::GET, &self.path, None).await?;
        let body = match answer.status {
            StatusCode::NOT_FOUND => None,
            status if status.is_success() => Some(answer.body),
            _ => return Err(self.refusal(&answer)),
        };
        let mut view = self.view();
        view.see(body.as_deref(), Instant::now())?;
        Ok(view.key(Instant::now()))
    }

    async fn replace(&self, object: &Value) -> Result<Written, PollError> {
        self.write(Method::PUT, &self.path, object).await
    }

    async fn create(&self, object: &Value) -> Result<Written, PollError> {
        self.write(Method::POST, &self.all, object).await
    }

    async fn write(
        &self,
        method: Method,
        path: &str,
        object: &Value,
    ) -> Result<Written, PollError> {
        let is_new = method == Method::POST;
        let answer = self.ask(method, path, Some(object)).await?;
        match answer.status {
            StatusCode::CONFLICT => Ok(Written::Overtaken),
            // It was deleted. Where there is no namespace, nothing can be created either.
            StatusCode::NOT_FOUND if !is_new => Ok(Written::Overtaken),
            status if status.is_success() => {
                self.view().see(Some(&answer.body), Instant::now())?;
                Ok(Written::Yes)
            }
            _ => Err(self.refusal(&answer)),
        }
    }

    async fn ask(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Answer, PollError> {
        let caller = self.caller()?;
        let body = body.map(|object| ("application/json", object));
        let limits = Limits {
            timeout: ANSWER,
            max_bytes: MAX_BYTES,
        };
        let answer = caller.send(method, path, body, limits).await;
        if answer.is_err() {
            *held(&self.caller) = None;
        }
        answer
    }

    fn caller(&self) -> Result<Arc<Caller>, PollError> {
        let mut caller = held(&self.caller);
        if let Some(caller) = &*caller {
            return Ok(caller.clone());
        }
        let new = Arc::new(Caller::new(&self.access)?);
        *caller = Some(new.clone());
        Ok(new)
    }

    fn refusal(&self, answer: &Answer) -> PollError {
        let code = answer.status.as_u16();
        Status::read(code, &answer.body).refusal(code, &self.right)
    }

    fn view(&self) -> MutexGuard<'_, View> {
        held(&self.view)
    }
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn busy() -> PollError {
    PollError::new(
        Fault::Failed,
        "others write the Lease as fast as this replica",
    )
}

/// As MicroTime is written: six digits of a second.
fn now() -> String {
    format!("{:.6}", Timestamp::now())
}

/// What the Lease in an answer of the API server says to one who sees it for the first time.
pub fn read(body: &[u8]) -> Result<Key, PollError> {
    let settings = Settings {
        namespace: "weir-system".to_owned(),
        name: "weir-control".to_owned(),
        duration: Duration::from_secs(15),
        access: Access::Pod,
    };
    let mut view = View::new(&settings, "name", "address:1");
    let now = Instant::now();
    view.see(Some(body), now)?;
    Ok(view.key(now))
}

#[cfg(test)]
pub(in crate::leader) mod fake;
#[cfg(test)]
mod tests;
