// SPDX-License-Identifier: Apache-2.0
//! One stream a peer: the newest wins.
//!
//! Whoever has died or lost its network leaves a stream behind, so only the server can end it. The one that
//! ends is told with ABORTED and backs off.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;
use tonic::Status;
use tonic::metadata::MetadataMap;

/// Names are names, not documents.
pub(crate) const MAX_NAME_BYTES: usize = 1024;

/// A number in hex and to spare.
const MAX_PROCESS_BYTES: usize = 64;

/// Which process of its proxy a stream is of, in the stream's metadata.
pub(crate) const PROCESS: &str = "x-weir-process";

/// Which process of its proxy has opened a stream, as the filter says in the stream's metadata. While an Envoy
/// takes over from another, two of one name live side by side, and each needs its streams. Empty for a filter
/// that does not say it.
pub(crate) fn process(metadata: &MetadataMap) -> String {
    let told = metadata.get(PROCESS);
    let told = told.and_then(|told| told.to_str().ok());
    let told = told.filter(|told| told.len() <= MAX_PROCESS_BYTES);
    told.unwrap_or_default().to_owned()
}

/// Which stream speaks for which peer. Clones are the same.
#[derive(Debug)]
pub(crate) struct Newest<K> {
    streams: Arc<Mutex<Streams<K>>>,
}

#[derive(Debug)]
struct Streams<K> {
    claimed: u64,
    of: BTreeMap<K, (u64, CancellationToken)>,
}

/// A stream's place, given up on drop.
#[derive(Debug)]
pub(crate) struct Claim<K: Ord> {
    newest: Newest<K>,
    peer: K,
    number: u64,
}

impl<K: Ord + Clone> Newest<K> {
    /// Makes a stream the one of `peer` and supersedes the one before, by cancelling what that one gave. None
    /// where the peer is new and `most` have one already.
    pub(crate) fn claim(
        &self,
        peer: K,
        superseded: CancellationToken,
        most: usize,
    ) -> Option<Claim<K>> {
        let mut streams = self.lock();
        if !streams.of.contains_key(&peer) && streams.of.len() >= most {
            return None;
        }
        streams.claimed += 1;
        let number = streams.claimed;
        if let Some((_, older)) = streams.of.insert(peer.clone(), (number, superseded)) {
            older.cancel();
        }
        Some(Claim {
            newest: self.clone(),
            peer,
            number,
        })
    }
}

impl<K: Ord> Newest<K> {
    /// How many peers have a stream.
    pub(crate) fn len(&self) -> usize {
        self.lock().of.len()
    }

    fn lock(&self) -> MutexGuard<'_, Streams<K>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K> Clone for Newest<K> {
    fn clone(&self) -> Self {
        Self {
            streams: self.streams.clone(),
        }
    }
}

impl<K> Default for Newest<K> {
    fn default() -> Self {
        let streams = Streams {
            claimed: 0,
            of: BTreeMap::new(),
        };
        Self {
            streams: Arc::new(Mutex::new(streams)),
        }
    }
}

impl<K: Ord> Drop for Claim<K> {
    fn drop(&mut self) {
        let mut streams = self.newest.lock();
        let ours = |(number, _): &(u64, CancellationToken)| *number == self.number;
        if streams.of.get(&self.peer).is_some_and(ours) {
            streams.of.remove(&self.peer);
        }
    }
}

/// A peer's name, or the refusal that names its field.
pub(crate) fn checked<'a>(field: &str, name: &'a str) -> Result<&'a str, Status> {
    match name.len() {
        0 => Err(Status::invalid_argument(format!("{field}: empty"))),
        // It is shown in logs and terminals.
        1..=MAX_NAME_BYTES if name.contains(char::is_control) => Err(Status::invalid_argument(
            format!("{field}: has a control character"),
        )),
        1..=MAX_NAME_BYTES => Ok(name),
        _ => Err(Status::invalid_argument(format!(
            "{field}: over {MAX_NAME_BYTES} bytes"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_newer_stream_supersedes_and_the_end_of_the_older_does_not_forget_it() {
        let newest = Newest::default();
        let tokens = [(); 4].map(|()| CancellationToken::new());
        let claim = |peer, stream: usize| newest.claim(peer, tokens[stream].clone(), 9).unwrap();
        let (older, other) = (claim("a", 0), claim("b", 1));
        let newer = claim("a", 2);
        assert!(tokens[0].is_cancelled());
        assert!(!tokens[1].is_cancelled());
        drop(older);
        let last = claim("a", 3);
        assert!(tokens[2].is_cancelled());
        drop((newer, last, other));
        assert!(newest.lock().of.is_empty());
    }

    #[test]
    fn beyond_the_limit_only_peers_that_have_a_stream_get_a_newer_one() {
        let newest = Newest::default();
        let claim = |peer| newest.claim(peer, CancellationToken::new(), 1);
        let first = claim("a").unwrap();
        assert!(claim("b").is_none());
        let second = claim("a").unwrap();
        drop(first);
        assert!(claim("b").is_none(), "the newer one has the place");
        drop(second);
        assert!(claim("b").is_some());
    }
}
