// SPDX-License-Identifier: Apache-2.0
//! One filter stream per proxy: the newest wins.
//!
//! A sidecar whose stream owner died keeps the dead one's stream open, so only the server can end
//! it. The one that ends is told with ABORTED and backs off.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio_util::sync::CancellationToken;

use crate::snapshot::StreamId;

type Streams = HashMap<Arc<str>, (StreamId, CancellationToken)>;

/// Which stream speaks for which proxy.
#[derive(Clone, Debug, Default)]
pub(super) struct Proxies {
    streams: Arc<Mutex<Streams>>,
}

/// A stream's place, given up on drop.
#[derive(Debug)]
pub(super) struct Claim {
    proxies: Proxies,
    proxy: Arc<str>,
    stream: StreamId,
}

impl Proxies {
    /// Makes `stream` the one of `proxy` and supersedes the one before, by cancelling what that one gave.
    pub(super) fn claim(
        &self,
        proxy: Arc<str>,
        stream: StreamId,
        superseded: CancellationToken,
    ) -> Claim {
        let entry = (stream, superseded);
        if let Some((_, older)) = self.lock().insert(proxy.clone(), entry) {
            older.cancel();
        }
        Claim {
            proxies: self.clone(),
            proxy,
            stream,
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Streams> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut streams = self.proxies.lock();
        if streams
            .get(&self.proxy)
            .is_some_and(|(stream, _)| *stream == self.stream)
        {
            streams.remove(&self.proxy);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_newer_stream_supersedes_and_the_end_of_the_older_does_not_forget_it() {
        let proxies = Proxies::default();
        let tokens = [(); 5].map(|()| CancellationToken::new());
        let claim = |proxy: &str, stream: usize| {
            proxies.claim(
                proxy.into(),
                StreamId(stream as u64),
                tokens[stream].clone(),
            )
        };
        let (older, other) = (claim("a", 1), claim("b", 2));
        let newer = claim("a", 3);
        assert!(tokens[1].is_cancelled());
        assert!(!tokens[2].is_cancelled());
        drop(older);
        let newest = claim("a", 4);
        assert!(tokens[3].is_cancelled());
        drop((newer, newest, other));
        assert!(proxies.lock().is_empty());
    }
}
