// SPDX-License-Identifier: Apache-2.0
//! Jobs of a host that processes rules.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Method, Request, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::timeout;
use weir_executor::Kind;
use weir_feeds::Object;
use weir_rules::{Limits, Plan, Prefetch, Timeouts};

use super::delivery::{Answer, Delivery, Failed};
use super::objects::Objects;
use super::task::{self, Task, TaskError};
use crate::server::app::App;
use crate::server::failure::Failure;
use crate::server::{COMPILING, spent};

/// For the whole body of a request to arrive.
const BODY_TIME: Duration = Duration::from_secs(10);

/// How requests become jobs.
#[derive(Debug)]
pub struct Options {
    /// Bounds on what a request may ask for.
    pub limits: Limits,
    /// Bytes of a request.
    pub max_body_bytes: usize,
    /// Whether steps that cannot matter are left out.
    pub optimise: bool,
    /// Whether a fetch may use several cores, which pays where it seldom waits for its data.
    pub wide_fetches: bool,
}

#[derive(Debug)]
struct Service {
    app: Arc<App<Task>>,
    objects: Objects,
    options: Options,
    compiling: Arc<Semaphore>,
}

/// Serves `POST /prefetch`, and `POST` of a job on any other path.
pub fn router(app: Arc<App<Task>>, objects: Objects, options: Options) -> Router {
    let service = Service {
        app,
        objects,
        options,
        compiling: Arc::new(Semaphore::new(COMPILING)),
    };
    Router::new()
        .route("/prefetch", any(serve_prefetch))
        .fallback(serve_job)
        .with_state(Arc::new(service))
}

/// A request that has been understood.
struct Asked {
    project: String,
    session: String,
    class: u8,
    timeouts: Timeouts,
    /// `None` for a prefetch.
    plan: Option<Plan>,
}

async fn serve_prefetch(State(service): State<Arc<Service>>, request: Request<Body>) -> Response {
    let answer = async {
        let (headers, body) = service.read(request).await?;
        let asked = service.prefetch(&headers, &body)?;
        service.deliver(&asked).await
    };
    service.respond(answer.await, "text/plain").await
}

async fn serve_job(State(service): State<Arc<Service>>, request: Request<Body>) -> Response {
    let answer = async {
        let (headers, body) = service.read(request).await?;
        // Compiling may take a while, and this thread serves everybody. The permit goes along: a
        // client that leaves does not end what it began.
        let permit = Arc::clone(&service.compiling).acquire_owned().await;
        let compiling = Arc::clone(&service);
        let compiled = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            compiling.job(&headers, &body)
        });
        let defect = |_| (Failure::from(&TaskError::Defect), None);
        let asked = compiled.await.map_err(defect)??;
        let plan = asked.plan.as_ref();
        let kind = plan.map_or("text/plain", |plan| plan.output.content_type());
        Ok((service.deliver(&asked).await?, kind))
    };
    match answer.await {
        Ok((answer, kind)) => service.respond(Ok(answer), kind).await,
        Err(failed) => service.respond(Err(failed), "text/plain").await,
    }
}

impl Service {
    async fn read(&self, request: Request<Body>) -> Result<(HeaderMap, Bytes), Failed> {
        let (head, body) = request.into_parts();
        let limit = self.options.max_body_bytes;
        let failed = |status, reason: String| (Failure::new(status, reason), None);
        if head.method != Method::POST {
            let reason = "a job or a prefetch is the JSON body of a POST".to_owned();
            return Err(failed(StatusCode::METHOD_NOT_ALLOWED, reason));
        }
        match timeout(BODY_TIME, to_bytes(body, limit)).await {
            Ok(Ok(body)) => Ok((head.headers, body)),
            Ok(Err(_)) => Err(failed(
                StatusCode::PAYLOAD_TOO_LARGE,
                format!("the body is more than {limit} bytes, or did not arrive whole"),
            )),
            Err(_) => Err(failed(
                StatusCode::REQUEST_TIMEOUT,
                format!("the body did not arrive within {} s", BODY_TIME.as_secs()),
            )),
        }
    }

    fn job(&self, headers: &HeaderMap, body: &[u8]) -> Result<Asked, Failed> {
        let Options {
            limits, optimise, ..
        } = &self.options;
        let request = weir_rules::Request::parse(body, limits).map_err(refuse)?;
        let plan = request.compile(limits, *optimise).map_err(refuse)?;
        Ok(Asked {
            class: self.class(headers, request.priority.as_deref())?,
            project: request.project_id,
            session: request.session_id,
            timeouts: request.timeouts,
            plan: Some(plan),
        })
    }

    fn prefetch(&self, headers: &HeaderMap, body: &[u8]) -> Result<Asked, Failed> {
        let request = Prefetch::parse(body, &self.options.limits).map_err(refuse)?;
        Ok(Asked {
            class: self.class(headers, request.priority.as_deref())?,
            project: request.project_id,
            session: request.session_id,
            timeouts: request.timeouts,
            plan: None,
        })
    }

    /// The body decides, then the header; a name that nobody knows is an error in the body and the
    /// default in the header, as in a mesh anybody may have set that.
    fn class(&self, headers: &HeaderMap, written: Option<&str>) -> Result<u8, Failed> {
        let priorities = &self.app.priorities;
        match written {
            Some(name) => priorities.known(name).map_err(|reason| {
                let reason = format!("priority: {reason}");
                (Failure::new(StatusCode::BAD_REQUEST, reason), None)
            }),
            None => {
                let header = headers.get("x-weir-priority");
                Ok(priorities.class(header.and_then(|value| value.to_str().ok())))
            }
        }
    }

    /// Runs a job; once more if the project's object was replaced after it had been looked up.
    async fn deliver(&self, asked: &Asked) -> Result<Answer, Failed> {
        let object = self.find(asked).await?;
        match self.attempt(asked, &object).await {
            Err((failure, _)) if failure.changed => {
                self.objects.forget(&asked.project);
                let object = self.find(asked).await?;
                self.attempt(asked, &object).await
            }
            answer => answer,
        }
    }

    async fn find(&self, asked: &Asked) -> Result<Object, Failed> {
        let limit = asked.timeouts.queue;
        match timeout(limit, self.objects.find(&asked.project)).await {
            Ok(found) => found.map_err(|error| (Failure::from(&error), None)),
            Err(_) => {
                let seconds = limit.as_secs_f64();
                let reason = format!(
                    "timed out: looking for the project took longer than {seconds} s (timeouts.queue_seconds)"
                );
                Err((Failure::unavailable(reason), None))
            }
        }
    }

    async fn attempt(&self, asked: &Asked, object: &Object) -> Result<Answer, Failed> {
        let (sink, chunks) = mpsc::unbounded_channel();
        let mut request = match &asked.plan {
            Some(plan) => task::job(object, plan, asked.class, &asked.session, sink),
            None => task::prefetch(object, asked.class),
        };
        if !self.options.wide_fetches {
            let fetches = request.steps.iter_mut();
            let fetches = fetches.filter(|step| step.kind == Kind::FeedSource);
            fetches.for_each(|step| step.cores = 1);
        }
        let running = self.app.host.submit(request);
        let running = running.map_err(|_| (Failure::gone(), None))?;
        let delivery = Delivery::new(running, chunks, asked.timeouts, asked.plan.is_some());
        delivery.answer().await
    }

    async fn respond(&self, answer: Result<Answer, Failed>, kind: &'static str) -> Response {
        match answer {
            Ok(answer) => {
                let mut response = Response::new(answer.body);
                let headers = response.headers_mut();
                headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
                spent::tell(headers, &answer.spent, answer.whole);
                let spent = answer.whole.then_some(&answer.spent);
                self.app.sign(response, Some(&answer.load), spent)
            }
            Err((failure, Some(load))) => self.app.sign(failure.into_response(), Some(&load), None),
            Err((failure, None)) => self.app.sign_now(failure.into_response()).await,
        }
    }
}

fn refuse(bad: weir_rules::BadRequest) -> Failed {
    (Failure::from(bad), None)
}
