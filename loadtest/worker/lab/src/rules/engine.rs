// SPDX-License-Identifier: Apache-2.0
//! The engine on one core.

use anyhow::{Result, anyhow};
use bytes::Bytes;
use tokio::runtime::{Builder, Runtime};
use weir_feeds::{FeedLimits, ItemStore};
use weir_rules::{Feed, Limits, Plan, Request, SinkClosed, Stop};

/// One core is what a row-by-row program has.
const CORES: usize = 1;

/// Compiles a request.
pub(super) fn compile(request: &[u8], optimise: bool) -> Result<Plan> {
    let limits = Limits::default();
    let plan =
        Request::parse(request, &limits).and_then(|request| request.compile(&limits, optimise));
    plan.map_err(|bad| anyhow!("a request of ours: {bad}"))
}

/// Applies both groups of rules.
pub(super) fn apply(plan: &Plan, feed: &Feed) -> Result<Feed> {
    let (limits, stop) = (Limits::default(), Stop::default());
    let shared = plan.shared.apply(feed, CORES, &limits, &stop)?;
    Ok(plan.own.apply(&shared, CORES, &limits, &stop)?)
}

/// Writes the result to `sink`.
pub(super) fn write(
    plan: &Plan,
    feed: &Feed,
    sink: &mut dyn FnMut(Bytes) -> Result<(), SinkClosed>,
) -> Result<()> {
    Ok(plan
        .output
        .write(feed, CORES, &Limits::default(), &Stop::default(), sink)?)
}

/// Writes the result and tells its bytes.
pub(super) fn write_nowhere(plan: &Plan, feed: &Feed) -> Result<u64> {
    let mut bytes = 0;
    write(plan, feed, &mut |chunk| {
        bytes += chunk.len() as u64;
        Ok(())
    })?;
    Ok(bytes)
}

/// A runtime for [`fetch`].
pub(super) fn runtime() -> Result<Runtime> {
    Ok(Builder::new_current_thread().enable_all().build()?)
}

/// Reads and decodes a project.
pub(super) fn fetch(runtime: &Runtime, store: &ItemStore, project: &str) -> Result<Feed> {
    runtime.block_on(async {
        let object = store.find(project).await?;
        let (limits, stop) = (FeedLimits::default(), Stop::default());
        Ok(store.fetch(&object, CORES, &limits, &stop).await?)
    })
}
