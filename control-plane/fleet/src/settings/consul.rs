// SPDX-License-Identifier: Apache-2.0
//! How Consul is asked for a cluster's hosts.

use std::fmt;
use std::time::Duration;

use super::Server;

/// How Consul is asked.
#[derive(Clone, Debug, PartialEq)]
pub struct Consul {
    /// Whom.
    pub server: Server,
    /// For what.
    pub question: Question,
    /// How long a blocking query may take.
    pub wait: Duration,
    /// Who asks.
    pub token: Option<Token>,
}

impl Consul {
    /// Whether the same hosts would be found, however they are asked for and whatever is made of their weights.
    pub fn finds_the_same(&self, other: &Self) -> bool {
        let theirs = Question {
            weight_millicores: self.question.weight_millicores,
            ..other.question.clone()
        };
        self.server.url == other.server.url && self.question == theirs
    }
}

/// What decides which hosts the answer has.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// Name of the service.
    pub service: String,
    /// The hosts are sidecars, not the service's own instances.
    pub connect: bool,
    /// Absent: the agent's own.
    pub datacenter: Option<String>,
    /// In Consul's own language.
    pub filter: Option<String>,
    /// An instance must have them all.
    pub tags: Vec<String>,
    /// Capacity of a host that tells none, for each unit of its weight; 0: unknown.
    pub weight_millicores: u32,
}

/// A secret that is shown nowhere.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(pub http::HeaderValue);

impl Token {
    /// What a token file has, without the space around it. The error is the reason.
    pub fn read(contents: &[u8]) -> Result<Self, &'static str> {
        let token = contents.trim_ascii();
        if token.is_empty() {
            return Err("is empty; it should have the SecretID of a token");
        }
        if !token.iter().all(u8::is_ascii_graphic) {
            return Err("has more than the SecretID of one token");
        }
        let mut value = http::HeaderValue::from_bytes(token).map_err(|_| "is no token")?;
        value.set_sensitive(true);
        Ok(Self(value))
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}
