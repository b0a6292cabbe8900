// SPDX-License-Identifier: Apache-2.0
//! Before a Consul that fails, or that somebody else writes to, just then.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{Method, StatusCode, Uri};
use percent_encoding::percent_decode_str;
use serde_json::json;

use super::*;
use crate::flags::consul::{Filter, Names, Server};

/// What happens at a write.
#[derive(Clone, Copy, Default)]
struct Trick {
    /// Which one, from 1.
    at: usize,
    /// An entry that somebody else changes before.
    meanwhile: Option<&'static str>,
    fails: bool,
    /// Although it fails.
    is_written: bool,
    /// Nothing is answered from then on.
    ends: bool,
}

#[derive(Default)]
struct Consul {
    /// By kind and name.
    entries: BTreeMap<String, Value>,
    index: u64,
    writes: usize,
    trick: Trick,
    has_ended: bool,
}

type Shared = Arc<Mutex<Consul>>;
type Answer = (StatusCode, String);

const LOST: StatusCode = StatusCode::INTERNAL_SERVER_ERROR;

impl Consul {
    fn answer(&mut self, method: &Method, uri: &Uri, body: &[u8]) -> Answer {
        let path = percent_decode_str(uri.path()).decode_utf8().unwrap();
        let found = |value: Option<Value>| match value {
            Some(value) => (StatusCode::OK, value.to_string()),
            None => (StatusCode::NOT_FOUND, String::new()),
        };
        if self.has_ended {
            return (LOST, "No cluster leader".to_owned());
        }
        if method == Method::GET {
            return found(match &*path {
                "/v1/connect/ca/roots" => Some(json!({"TrustDomain": "t.consul"})),
                "/v1/catalog/datacenters" => Some(json!(["dc1"])),
                path => (path.strip_prefix("/v1/config/"))
                    .and_then(|key| self.entries.get(key).cloned()),
            });
        }
        self.writes += 1;
        let trick = Some(self.trick).filter(|trick| trick.at == self.writes);
        let trick = trick.unwrap_or_default();
        if let Some(key) = trick.meanwhile {
            let mut entry = self.entries[key].clone();
            entry["MaxInboundConnections"] = json!(7);
            self.set(key, Some(entry));
        }
        let entry: Option<Value> = serde_json::from_slice(body).ok();
        let key = match &entry {
            Some(entry) => {
                let part = |name: &str| entry[name].as_str().unwrap().to_owned();
                format!("{}/{}", part("Kind"), part("Name"))
            }
            None => path.strip_prefix("/v1/config/").unwrap().to_owned(),
        };
        let stands = self
            .entries
            .get(&key)
            .map(|entry| entry["ModifyIndex"].to_string());
        let asked = uri.query().unwrap().strip_prefix("cas=").unwrap();
        let is_right = stands.unwrap_or_else(|| "0".to_owned()) == asked;
        if is_right && (!trick.fails || trick.is_written) {
            self.set(&key, entry);
        }
        self.has_ended = trick.ends;
        match trick.fails {
            true => (LOST, "leadership lost while committing log".to_owned()),
            false => found(Some(json!(is_right))),
        }
    }

    fn set(&mut self, key: &str, entry: Option<Value>) {
        self.index += 1;
        match entry {
            Some(mut entry) => {
                entry["ModifyIndex"] = json!(self.index);
                self.entries.insert(key.to_owned(), entry);
            }
            None => drop(self.entries.remove(key)),
        }
    }
}

async fn start() -> (Shared, Apply) {
    let consul = Shared::default();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let answer = |State(consul): State<Shared>, method: Method, uri: Uri, body: Bytes| async move {
        consul.lock().unwrap().answer(&method, &uri, &body)
    };
    let router = Router::new()
        .fallback(answer)
        .with_state(Arc::clone(&consul));
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    let asked = Apply {
        names: Names {
            service: vec!["rules".to_owned()],
            caller: vec!["web".to_owned()],
            control_service: "weir-control".to_owned(),
            control_cluster: None,
        },
        filter: Filter {
            module: "/weir.wasm".to_owned(),
            module_service: None,
            module_sha256: None,
            trust: None,
            settings: None,
        },
        change: Change {
            dry_run: false,
            adopt: false,
        },
        server: Server {
            address: Some(address),
            datacenter: None,
            token_file: None,
            ca: None,
            certificate: None,
            key: None,
            plaintext: false,
        },
    };
    (consul, asked)
}

/// What is said of a failure, and which entries stand then.
async fn failed(trick: Trick) -> (String, Vec<String>) {
    let (consul, asked) = start().await;
    consul.lock().unwrap().trick = trick;
    let said = apply(&asked, |_| None).await.unwrap_err();
    let left = consul.lock().unwrap().entries.keys().cloned().collect();
    (format!("{said:#}"), left)
}

/// Of the caller's entry, which is the last one.
const LAST: Trick = Trick {
    at: 5,
    meanwhile: None,
    fails: true,
    is_written: false,
    ends: false,
};

#[tokio::test]
async fn what_somebody_else_has_changed_since_is_not_put_back() {
    let meanwhile = Some("service-defaults/rules");
    let (said, left) = failed(Trick { meanwhile, ..LAST }).await;
    let expected = "these could not be put back, see to them: service-defaults rules";
    assert!(said.contains(expected), "{said}");
    assert_eq!(left, ["service-defaults/rules"]);
}

#[tokio::test]
async fn what_was_written_though_the_answer_was_lost_is_put_back_or_told() {
    let (said, left) = failed(LAST).await;
    assert!(said.contains("nothing has changed"), "{said}");
    assert!(left.is_empty(), "{left:?}");
    let is_written = true;
    let (said, left) = failed(Trick { is_written, ..LAST }).await;
    assert!(said.contains("nothing has changed"), "{said}");
    assert!(left.is_empty(), "{left:?}");
    let ends = true;
    let (said, left) = failed(Trick {
        is_written,
        ends,
        ..LAST
    })
    .await;
    assert!(
        said.contains("service-defaults web may have been written"),
        "{said}"
    );
    assert!(said.contains("could not be put back"), "{said}");
    assert_eq!(left.len(), 5);
}

#[tokio::test]
async fn what_was_right_and_is_changed_while_others_are_written_is_told() {
    let (consul, asked) = start().await;
    apply(&asked, |_| None).await.unwrap();
    {
        let mut consul = consul.lock().unwrap();
        consul.set("service-defaults/web", None);
        consul.writes = 0;
        consul.trick = Trick {
            at: 1,
            meanwhile: Some("service-defaults/rules"),
            ..Trick::default()
        };
    }
    let said = apply(&asked, |_| None).await.unwrap_err().to_string();
    let expected = "service-defaults rules: somebody has changed it meanwhile";
    assert!(said.contains(expected), "{said}");
    assert!(apply(&asked, |_| None).await.is_ok());
}
