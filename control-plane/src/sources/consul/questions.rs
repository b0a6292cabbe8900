// SPDX-License-Identifier: Apache-2.0
//! What Consul is asked.

use serde::Deserialize;
use weir_fleet::poll::{Fault, PollError};

use super::client::{Answer, Client};
use super::read::read;
use super::{cut, short};
use crate::sources::discovery::Found;

/// Who is there, and the index of that.
pub(in crate::sources) async fn hosts(
    client: &Client,
    index: u64,
) -> Result<(Found, u64), PollError> {
    let question = &client.consul().question;
    let kind = if question.connect {
        "connect"
    } else {
        "service"
    };
    let mut query = Vec::new();
    query.extend(question.datacenter.as_deref().map(|name| ("dc", name)));
    query.extend(question.filter.as_deref().map(|filter| ("filter", filter)));
    let path = ["v1", "health", kind, &question.service];
    let answer = client.ask(&path, &query, index).await?;
    let newest = index_of(&answer)?;
    let mut found = read(&answer.body, question)?;
    if found.instances == 0 {
        found.complaints.push(why_nobody(client, &answer).await);
    } else if answer.filtered {
        found
            .complaints
            .push("instances that the token of consul.token_file may not read are left out".into());
    }
    Ok((found, newest))
}

/// An answer without one is not Consul's.
fn index_of(answer: &Answer) -> Result<u64, PollError> {
    let missing = "no X-Consul-Index: what consul.address names is not Consul's API";
    answer
        .index
        .ok_or_else(|| PollError::new(Fault::BadBody, missing))
}

/// What an empty answer may mean, as far as Consul can be asked.
async fn why_nobody(client: &Client, answer: &Answer) -> String {
    let question = &client.consul().question;
    let name = short(&question.service);
    if answer.filtered {
        return format!(
            "the token of consul.token_file may not read {name}: service:read and node:read are needed"
        );
    }
    if question.connect {
        let mut query = Vec::new();
        query.extend(question.datacenter.as_deref().map(|name| ("dc", name)));
        let path = ["v1", "catalog", "service", &question.service];
        let known = client.ask(&path, &query, 0).await.ok();
        let known: Option<Vec<serde::de::IgnoredAny>> =
            known.and_then(|answer| serde_json::from_slice(&answer.body).ok());
        match known.map_or(0, |instances| instances.len()) {
            0 => {}
            count => {
                let filter = if question.filter.is_some() {
                    " that consul.filter lets pass"
                } else {
                    ""
                };
                return format!(
                    "Consul knows {count} instances of {name} and no Connect proxy of one{filter}: register each \
                     with connect {{ sidecar_service {{}} }}, or write consul.connect: false"
                );
            }
        }
    }
    let mut reasons = vec!["Consul does not tell an unknown service from one without instances"];
    if question.filter.is_some() {
        reasons.push("or from one of which consul.filter lets none pass");
    }
    if client.consul().token.is_none() {
        reasons.push("or, without consul.token_file, from one that it hides");
    }
    format!(
        "Consul names no instance of {name} ({})",
        reasons.join(", ")
    )
}

/// `/v1/connect/ca/roots`, as far as it is read.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Roots {
    trust_domain: String,
}

/// In which trust domain the sidecars are, and the index of that.
pub(in crate::sources) async fn trust_domain(
    client: &Client,
    index: u64,
) -> Result<(String, u64), PollError> {
    let answer = client
        .ask(&["v1", "connect", "ca", "roots"], &[], index)
        .await?;
    let newest = index_of(&answer)?;
    Ok((read_roots(&answer.body)?, newest))
}

/// The trust domain that an answer names.
pub fn read_roots(body: &[u8]) -> Result<String, PollError> {
    let roots: Roots = serde_json::from_slice(body).map_err(|error| {
        PollError::new(Fault::BadBody, format!("not the roots of a mesh: {error}"))
    })?;
    Ok(cut(&roots.trust_domain))
}
