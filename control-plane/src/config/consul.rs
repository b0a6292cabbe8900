// SPDX-License-Identifier: Apache-2.0
//! How Consul is asked for a cluster's hosts.

use std::fmt;
use std::time::Duration;

/// How Consul is asked.
#[derive(Clone, Debug, PartialEq)]
pub struct Consul {
    /// For what.
    pub question: Question,
    /// How long a blocking query may take.
    pub wait: Duration,
    /// Who asks.
    pub token: Option<Token>,
    /// How the connection is protected.
    pub tls: ClientTls,
}

/// What decides which hosts the answer has: those that were found stay only while it is the same.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// Of the agent or server.
    pub address: reqwest::Url,
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

/// Contents of the PEM files of a client.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ClientTls {
    /// Authorities that may sign the server's certificate; absent: the system's.
    pub ca: Option<Vec<u8>>,
    /// Certificate chain, then private key.
    pub identity: Option<Vec<u8>>,
}

impl fmt::Debug for ClientTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientTls")
            .field("ca", &self.ca.is_some())
            .field("identity", &self.identity.is_some())
            .finish()
    }
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
