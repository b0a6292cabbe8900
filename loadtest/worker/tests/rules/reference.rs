// SPDX-License-Identifier: Apache-2.0
//! What the answer to a request is: the engine alone, one step after the other, on one core, as
//! written and without the optimiser.

use weir_feeds::{FeedLimits, ItemStore};
use weir_rules::{Limits, Request, Stop};

/// The answer for a project of these items.
pub(crate) async fn expected(items: &str, body: &str) -> Vec<u8> {
    let (limits, stop) = (Limits::default(), Stop::default());
    let request = Request::parse(body.as_bytes(), &limits).unwrap();
    let plan = request.compile(&limits, false).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(format!("{}.ndjson", request.project_id));
    std::fs::write(file, items).unwrap();
    let store = ItemStore::open(folder.path().to_str().unwrap()).unwrap();
    let object = store.find(&request.project_id).await.unwrap();
    let fetched = store.fetch(&object, 1, &FeedLimits::default(), &stop).await;
    let shared = plan.shared.apply(&fetched.unwrap(), 1, &limits, &stop);
    let own = plan.own.apply(&shared.unwrap(), 1, &limits, &stop).unwrap();
    let mut written = Vec::new();
    let mut sink = |chunk: bytes::Bytes| {
        written.extend_from_slice(&chunk);
        Ok(())
    };
    plan.output
        .write(&own, 1, &limits, &stop, &mut sink)
        .unwrap();
    written
}
