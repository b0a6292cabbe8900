// SPDX-License-Identifier: Apache-2.0
//! How Kubernetes is asked for a cluster's hosts.

use std::fmt;
use std::path::PathBuf;

use super::{Server, Token};

/// How Kubernetes is asked.
#[derive(Clone, Debug, PartialEq)]
pub struct Kubernetes {
    /// Where it is.
    pub namespace: String,
    /// Whose endpoints are the hosts.
    pub backend: Backend,
    /// Where a host tells its metrics. Absent: where it takes requests.
    pub metrics_port: Option<u16>,
    /// Who is asked, and who asks.
    pub access: Access,
}

impl Kubernetes {
    /// Whether the same hosts would be found, whoever asks for them.
    pub fn finds_the_same(&self, other: &Self) -> bool {
        let theirs = Self {
            access: self.access.clone(),
            ..other.clone()
        };
        *self == theirs && self.access.url() == other.access.url()
    }
}

/// What pods are behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Backend {
    /// A service; of an endpoint, the port where requests go.
    Service(String, ServicePort),
    /// An InferencePool of Gateway API's inference extension, which names its pods' ports.
    Pool(String),
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Service(name, _) => write!(f, "service {name}"),
            Self::Pool(name) => write!(f, "InferencePool {name}"),
        }
    }
}

/// Which of an endpoint's ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServicePort {
    /// By its name in the service.
    Named(String),
    /// By its number at the endpoint.
    Number(u16),
}

impl fmt::Display for ServicePort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(name) => f.write_str(name),
            Self::Number(number) => number.fmt(f),
        }
    }
}

/// How the API server is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// As a pod does: by its environment, with its service account.
    Pod,
    /// As a file says.
    Written(ApiServer),
}

impl Access {
    /// Of whom it is known before it is asked.
    pub fn url(&self) -> Option<&str> {
        match self {
            Self::Pod => None,
            Self::Written(api) => Some(&api.server.url),
        }
    }
}

/// An API server, and what is shown to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiServer {
    /// Whom.
    pub server: Server,
    /// Absent: nothing, or `server`'s certificate.
    pub bearer: Option<Bearer>,
}

/// Where the token is that is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bearer {
    /// This one.
    Token(Token),
    /// What the file has at the time of a question: kubelets write a new one before the old one ends.
    File(PathBuf),
}
