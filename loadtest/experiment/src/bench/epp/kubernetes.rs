// SPDX-License-Identifier: Apache-2.0
//! As much of a Kubernetes API as the endpoint picker asks for: one pod that is ready, for ever.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::thread;

use anyhow::{Context, Result};
use axum::Router;
use axum::body::Body;
use axum::extract::RawQuery;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio_stream::StreamExt;

use crate::bench::load::one_thread;

pub(super) const NAMESPACE: &str = "default";
/// The label that the pod has.
pub(super) const SELECTOR: &str = "app=model";

/// The API on a thread of its own; it ends with the value.
pub(super) struct Kubernetes {
    address: SocketAddr,
    _end: oneshot::Sender<()>,
}

impl Kubernetes {
    pub(super) fn start() -> Result<Self> {
        let runtime = one_thread()?;
        let bound = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)));
        let listener = bound.context("binding the Kubernetes API")?;
        let address = listener.local_addr()?;
        let (end, ended) = oneshot::channel::<()>();
        thread::Builder::new()
            .name("kubernetes".to_owned())
            .spawn(move || {
                runtime.block_on(async {
                    // Watches are never finished: whatever is under way ends with the runtime.
                    tokio::select! {
                        _ = axum::serve(listener, api()) => {}
                        _ = ended => {}
                    }
                });
            })?;
        Ok(Self { address, _end: end })
    }

    /// What a client is told of it.
    pub(super) fn kubeconfig(&self) -> Value {
        json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "bench", "cluster": {"server": format!("http://{}", self.address)}}],
            "users": [{"name": "bench", "user": {}}],
            "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "bench"}}],
            "current-context": "bench",
        })
    }
}

fn api() -> Router {
    Router::new()
        .route(
            "/api",
            get(async || answer(&json!({"kind": "APIVersions", "versions": ["v1"]}))),
        )
        .route(
            "/apis",
            get(async || {
                answer(&json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": []}))
            }),
        )
        .route("/api/v1", get(async || answer(&resources())))
        .route(
            &format!("/api/v1/namespaces/{NAMESPACE}/pods"),
            get(async |RawQuery(query): RawQuery| pods(query.as_deref().unwrap_or_default())),
        )
        .fallback(async || (StatusCode::NOT_FOUND, answer(&not_found())))
}

fn resources() -> Value {
    json!({
        "kind": "APIResourceList",
        "groupVersion": "v1",
        "resources": [{
            "name": "pods",
            "singularName": "pod",
            "namespaced": true,
            "kind": "Pod",
            "verbs": ["get", "list", "watch"],
        }],
    })
}

fn pods(query: &str) -> Response {
    let asks = |what: &str| query.split('&').any(|part| part == what);
    if !(asks("watch=true") || asks("watch=1")) {
        return answer(&json!({
            "kind": "PodList",
            "apiVersion": "v1",
            "metadata": {"resourceVersion": "1"},
            "items": [pod()],
        }));
    }
    // Nothing ever changes; what there is comes first where that is asked for (a WatchList).
    let events = match asks("sendInitialEvents=true") {
        true => {
            let metadata = json!({
                "resourceVersion": "1",
                "annotations": {"k8s.io/initial-events-end": "true"},
            });
            let end = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata});
            format!(
                "{}\n{}\n",
                json!({"type": "ADDED", "object": pod()}),
                json!({"type": "BOOKMARK", "object": end})
            )
        }
        false => String::new(),
    };
    ([(CONTENT_TYPE, "application/json")], held(events)).into_response()
}

/// A body that says something and then stays open.
fn held(text: String) -> Body {
    let said = (!text.is_empty()).then_some(Ok::<_, Infallible>(text));
    Body::from_stream(tokio_stream::iter(said).chain(tokio_stream::pending()))
}

fn pod() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "model-0",
            "namespace": NAMESPACE,
            "uid": "11111111-1111-1111-1111-111111111111",
            "resourceVersion": "1",
            "labels": {"app": "model"},
        },
        "spec": {"containers": [{"name": "model", "image": "model"}]},
        "status": {
            "phase": "Running",
            "podIP": "127.0.0.1",
            "podIPs": [{"ip": "127.0.0.1"}],
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    })
}

fn not_found() -> Value {
    json!({
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "reason": "NotFound",
        "code": 404,
    })
}

fn answer(value: &Value) -> Response {
    ([(CONTENT_TYPE, "application/json")], value.to_string()).into_response()
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::task::{Context, Poll, Waker};

    use axum::body::HttpBody;
    use weir_stage::http;

    use super::*;

    #[test]
    fn a_body_that_is_held_is_never_finished() {
        let mut context = Context::from_waker(Waker::noop());
        let mut held = held("x".to_owned());
        let said = Pin::new(&mut held).poll_frame(&mut context);
        let Poll::Ready(Some(Ok(frame))) = said else {
            panic!("nothing was said")
        };
        assert_eq!(frame.into_data().unwrap(), "x");
        assert!(Pin::new(&mut held).poll_frame(&mut context).is_pending());
    }

    #[test]
    fn there_is_one_pod_that_is_ready() {
        let kubernetes = Kubernetes::start().unwrap();
        let page = http::get(
            kubernetes.address,
            "/api/v1/namespaces/default/pods?limit=500",
        );
        let list: Value = serde_json::from_str(&page.unwrap().body).unwrap();
        let pods = list["items"].as_array().unwrap();
        assert_eq!(pods.len(), 1);
        let (name, value) = SELECTOR.split_once('=').unwrap();
        assert_eq!(pods[0]["metadata"]["labels"][name], value);
        assert_eq!(pods[0]["status"]["conditions"][0]["status"], "True");
    }

    #[test]
    fn what_it_does_not_have_is_not_found() {
        let kubernetes = Kubernetes::start().unwrap();
        let page = http::get(kubernetes.address, "/api/v1/namespaces/other/pods");
        assert!(page.is_err_and(|error| error.to_string().contains("404")));
    }
}
