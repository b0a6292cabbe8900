// SPDX-License-Identifier: Apache-2.0
//! What the proxies say to what they are pushed.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::event::Event;

/// Refusals kept after their stream has ended.
const REFUSALS_KEPT: usize = 32;

/// Resources named in a refusal: one response may have thousands, and each stream keeps one refusal a type.
const RESOURCES_NAMED: usize = 32;

/// Numbers the streams of this process, so that the end of an old stream of a proxy is not taken
/// for the end of its new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u64);

/// What a discovery stream tells back. Sent with `try_send`: a full channel loses news for
/// `/tables`, never a table.
#[derive(Clone, Debug)]
pub enum ClientEvent {
    /// The first request of a stream has come.
    Connected {
        /// The stream.
        stream: StreamId,
        /// `Node.id` of its first request.
        proxy: Arc<str>,
        /// Where it comes from, if known.
        peer: Option<SocketAddr>,
        /// What its certificate names.
        identity: Option<Arc<str>>,
        /// The first request's type is of weir.v1: the filter speaks, not Envoy itself.
        weir: bool,
        /// The filter's version, or Envoy's.
        version: Option<Arc<str>>,
    },
    /// A response was accepted.
    Acked {
        /// The stream.
        stream: StreamId,
        /// `Node.id`.
        proxy: Arc<str>,
        /// Type of the resources.
        type_url: Arc<str>,
        /// Nonce of the response.
        nonce: Arc<str>,
        /// Name and version of each resource in the response.
        versions: Vec<(String, Arc<str>)>,
        /// Names that the response removed.
        removed: Vec<String>,
    },
    /// A response was refused; the proxy keeps what it had.
    Nacked {
        /// The stream.
        stream: StreamId,
        /// `Node.id`.
        proxy: Arc<str>,
        /// Type of the resources.
        type_url: Arc<str>,
        /// Nonce of the response.
        nonce: Arc<str>,
        /// `error_detail.message`, cut to 1,024 bytes.
        reason: String,
        /// Name and version of each resource in the response.
        versions: Vec<(String, Arc<str>)>,
    },
    /// The stream has ended.
    Disconnected {
        /// The stream.
        stream: StreamId,
        /// `Node.id`.
        proxy: Arc<str>,
        /// Why: "client closed", "superseded", "shutdown", a transport error.
        reason: String,
    },
}

/// One discovery stream.
#[derive(Clone, Debug)]
pub struct Client {
    /// Node id.
    pub proxy: Arc<str>,
    /// Where it comes from.
    pub peer: Option<SocketAddr>,
    /// What its certificate names.
    pub identity: Option<Arc<str>>,
    /// The filter, not Envoy itself.
    pub weir: bool,
    /// The filter's version, or Envoy's; a filter of before it told none.
    pub version: Option<Arc<str>>,
    /// When it came.
    pub since: Duration,
    /// Type → name → version that it has.
    pub has: BTreeMap<Arc<str>, BTreeMap<String, Arc<str>>>,
    /// Type → what it refused since it last accepted something of that type.
    pub refuses: BTreeMap<Arc<str>, Refusal>,
}

/// A response that was refused.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// Node id.
    pub proxy: Arc<str>,
    /// Of the resources.
    pub type_url: Arc<str>,
    /// As the proxy gave it.
    pub reason: String,
    /// What the response had, cut.
    pub versions: Vec<(String, Arc<str>)>,
    /// When.
    pub at: Duration,
}

/// All streams.
#[derive(Debug, Default)]
pub struct Board {
    clients: BTreeMap<StreamId, Client>,
    refusals: VecDeque<Refusal>,
}

impl Board {
    /// Takes in an event. A refusal comes back for the log.
    pub fn fold(&mut self, event: ClientEvent, now: Duration) -> Option<Event> {
        match event {
            ClientEvent::Connected {
                stream,
                proxy,
                peer,
                identity,
                weir,
                version,
            } => {
                let client = Client {
                    proxy,
                    peer,
                    identity,
                    weir,
                    version,
                    since: now,
                    has: BTreeMap::new(),
                    refuses: BTreeMap::new(),
                };
                self.clients.insert(stream, client);
            }
            ClientEvent::Acked {
                stream,
                type_url,
                versions,
                removed,
                ..
            } => {
                let client = self.clients.get_mut(&stream)?;
                client.refuses.remove(&type_url);
                let has = client.has.entry(type_url).or_default();
                has.extend(versions);
                for name in removed {
                    has.remove(&name);
                }
            }
            ClientEvent::Nacked {
                stream,
                proxy,
                type_url,
                reason,
                mut versions,
                ..
            } => {
                versions.truncate(RESOURCES_NAMED);
                versions.shrink_to_fit();
                let refusal = Refusal {
                    proxy,
                    type_url,
                    reason,
                    versions,
                    at: now,
                };
                return Some(self.refused(stream, refusal));
            }
            ClientEvent::Disconnected { stream, .. } => {
                self.clients.remove(&stream);
            }
        }
        None
    }

    fn refused(&mut self, stream: StreamId, refusal: Refusal) -> Event {
        let news = Event::ResourcesRefused {
            proxy: refusal.proxy.clone(),
            type_url: refusal.type_url.clone(),
            reason: refusal.reason.clone(),
        };
        if let Some(client) = self.clients.get_mut(&stream) {
            let type_url = refusal.type_url.clone();
            client.refuses.insert(type_url, refusal.clone());
        }
        self.refusals.push_back(refusal);
        if self.refusals.len() > REFUSALS_KEPT {
            self.refusals.pop_front();
        }
        news
    }

    /// The open streams.
    pub fn clients(&self) -> impl Iterator<Item = &Client> {
        self.clients.values()
    }

    /// The newest refusals, oldest first.
    pub fn refusals(&self) -> impl Iterator<Item = &Refusal> {
        self.refusals.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_shown_until_something_is_accepted_and_kept_after() {
        let mut board = Board::default();
        let (stream, proxy, type_url): (_, Arc<str>, Arc<str>) =
            (StreamId(1), "p".into(), "t".into());
        let versions = |version: &str| vec![("c".to_owned(), Arc::from(version))];
        let fold = |board: &mut Board, event| board.fold(event, Duration::ZERO);
        fold(
            &mut board,
            ClientEvent::Connected {
                stream,
                proxy: proxy.clone(),
                peer: None,
                identity: None,
                weir: true,
                version: None,
            },
        );
        let nonce: Arc<str> = "1".into();
        let acked = |version| ClientEvent::Acked {
            stream,
            proxy: proxy.clone(),
            type_url: type_url.clone(),
            nonce: nonce.clone(),
            versions: versions(version),
            removed: vec![],
        };
        fold(&mut board, acked("a.1"));
        let (reason, versions) = ("hosts[1]: twice".to_owned(), versions("a.2"));
        let nacked = ClientEvent::Nacked {
            stream,
            proxy: proxy.clone(),
            type_url: type_url.clone(),
            nonce: nonce.clone(),
            reason,
            versions,
        };
        fold(&mut board, nacked);
        let client = board.clients().next().unwrap();
        assert_eq!(&*client.has["t"]["c"], "a.1");
        assert_eq!(client.refuses["t"].reason, "hosts[1]: twice");
        fold(&mut board, acked("a.3"));
        assert!(board.clients().next().unwrap().refuses.is_empty());
        fold(
            &mut board,
            ClientEvent::Disconnected {
                stream,
                proxy,
                reason: "gone".into(),
            },
        );
        assert_eq!((board.clients().count(), board.refusals().count()), (0, 1));
    }
}
