// SPDX-License-Identifier: Apache-2.0
//! A host that processes rules on the items of a store.

use std::time::Duration;

use anyhow::Context;
use tokio::runtime::Handle;
use weir_feeds::{FeedLimits, ItemStore};
use weir_rules::Limits;
use weir_telemetry::Telemetry;
use weir_worker::metrics::Families;
use weir_worker::rules::cores::Cores;
use weir_worker::rules::joblet_log::JobletLog;
use weir_worker::rules::objects::Objects;
use weir_worker::rules::service;
use weir_worker::rules::task::Tools;

use crate::args::Args;

pub(super) async fn serve(args: Args, url: &str, telemetry: Telemetry) -> anyhow::Result<()> {
    let store = ItemStore::open(url).context("--store")?;
    let log = match &args.joblet_log {
        Some(file) => {
            let log = JobletLog::create(file);
            Some(log.with_context(|| format!("--joblet-log {}", file.display()))?)
        }
        None => None,
    };
    let limits = Limits {
        feed_bytes: args.max_feed_bytes,
        output_bytes: args.max_answer_bytes,
        ..Limits::default()
    };
    let tools = Tools {
        store: store.clone(),
        feed_limits: FeedLimits {
            max_bytes: args.max_feed_bytes,
            ..FeedLimits::default()
        },
        limits: limits.clone(),
        io: Handle::current(),
    };
    let objects = Objects::new(store, Duration::from_secs(args.recheck_seconds));
    let options = service::Options {
        limits,
        max_body_bytes: usize::try_from(args.max_body_bytes).unwrap_or(usize::MAX),
        optimise: !args.no_optimise,
        wide_fetches: !tools.store.is_remote(),
    };
    let metrics = Families::default();
    let settings = args.settings();
    let engine = Cores::new(&settings, super::new_epoch(), tools, metrics.clone(), log)
        .unwanted_for(Duration::from_secs(args.unwanted_seconds));
    let jobs = |app| service::router(app, objects, options);
    super::listen(args, engine, metrics, telemetry, jobs).await
}
