// SPDX-License-Identifier: Apache-2.0
//! Real jobs on generated projects.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use tempfile::TempDir;
use tokio::runtime::Handle;
use weir_feeds::generate::{Folder, Settings, generate};
use weir_feeds::{FeedLimits, ItemStore, Object};
use weir_rules::{Limits, Plan, Request};
use weir_worker::rules::task::Tools;

/// A project and the rules of one of its channels.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) object: Object,
    pub(crate) plan: Plan,
}

/// Every channel of every project, in a folder that goes with them.
#[derive(Debug)]
pub(crate) struct Jobs {
    folder: TempDir,
    store: ItemStore,
    pub(crate) all: Vec<Job>,
}

impl Jobs {
    pub(crate) async fn generate(settings: &Settings) -> Result<Self> {
        let folder = tempfile::tempdir().context("a folder for the projects")?;
        let index = generate(settings, &Folder::open(folder.path(), false)?, &mut |_| {})?;
        let store = ItemStore::open(&folder.path().display().to_string())?;
        let mut all = Vec::new();
        for project in &index.projects {
            for rules in &project.rules {
                let body = fs::read(folder.path().join("rules").join(rules))?;
                let limits = Limits::default();
                let request = Request::parse(&body, &limits).context(rules.clone())?;
                all.push(Job {
                    object: store.find(&project.project).await?,
                    plan: request.compile(&limits, true).context(rules.clone())?,
                });
            }
        }
        Ok(Self { folder, store, all })
    }

    pub(crate) fn tools(&self) -> Tools {
        Tools {
            store: self.store.clone(),
            feed_limits: FeedLimits::default(),
            limits: Limits::default(),
            io: Handle::current(),
        }
    }

    /// Where a run of these jobs logs its joblets.
    pub(crate) fn log_file(&self) -> PathBuf {
        self.folder.path().join("joblets.ndjson")
    }
}
