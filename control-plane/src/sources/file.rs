// SPDX-License-Identifier: Apache-2.0
//! The configuration file and the files it names, while weir-control runs.
//!
//! They are read each second and compared: a second's delay for a source that works on every filesystem,
//! through links, mounts and editors that replace files. Of large ones their times tell whether that is needed. All files together are one configuration: a
//! change that does not check as a whole changes nothing.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::floor::{Floor, LOOK_EVERY};
use crate::config::{self, Config, Error, Files, Loaded};
use crate::news::News;
use crate::policies::Attached;
use crate::policies::attach::Verdict;
use crate::policies::object::Objects;

/// Publishes each good change, as written but for lists of hosts that shrink ([`Floor`]), and reports each bad one, until nobody listens.
/// WeirPolicies are part of it: what comes of newer `objects` waits while the files are bad.
pub(crate) async fn watch(
    path: PathBuf,
    mut attached: Attached,
    mut objects: watch::Receiver<Objects>,
    verdicts: watch::Sender<Vec<Verdict>>,
    written: watch::Sender<Arc<Config>>,
    updates: mpsc::Sender<News>,
) {
    let running = attached.base.clone();
    let mut floor = Floor::new(attached.config.clone());
    let mut is_good = true;
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let (main, known) = (path.clone(), std::mem::take(&mut attached.files));
        let looked = tokio::task::spawn_blocking(move || look(&main, known)).await;
        let Ok((files, news)) = looked else { return };
        attached.files = files;
        let news = news.map(|read| read.and_then(|config| suits(&path, &running, config)));
        let is_news = news.is_some();
        match news {
            None => {}
            Some(Ok(config)) => (attached.base, is_good) = (config, true),
            Some(Err(error)) => {
                is_good = false;
                floor.spoiled();
                if updates.send(News::Misconfigured(error)).await.is_err() {
                    return;
                }
            }
        }
        if !is_good {
            continue;
        }
        // Nobody follows any where there is no section `policies`.
        if is_news || objects.has_changed().unwrap_or(false) {
            let is_another = attached.renew(&objects.borrow_and_update());
            verdicts.send_replace(attached.verdicts.clone());
            let config = attached.config.clone();
            match (is_news, is_another) {
                (true, _) => floor.read(config, Instant::now()),
                (false, true) => floor.beside(config, Instant::now()),
                (false, false) => {}
            }
        }
        if let Some(config) = floor.settle(Instant::now()) {
            written.send_replace(config);
        }
    }
}

/// A new configuration that needs no restart.
fn suits(file: &Path, running: &Config, new: Arc<Config>) -> Result<Arc<Config>, Error> {
    match restart_needed(file, running, &new) {
        None => Ok(new),
        Some(error) => Err(error),
    }
}

/// The files as they are now, and what they say if that is not what they said.
pub fn look(path: &Path, mut known: Files) -> (Files, Option<Result<Arc<Config>, Error>>) {
    if known.iter_mut().all(|(path, file)| file.is_now(path)) {
        return (known, None);
    }
    match config::load(path) {
        Ok(Loaded { config, files }) => (files, Some(Ok(config))),
        Err((error, files)) => (files, Some(Err(error))),
    }
}

/// What is fixed when ports are bound.
pub fn restart_needed(file: &Path, running: &Config, new: &Config) -> Option<Error> {
    // Renewed certificates and tokens are taken up as they come; what is open goes on.
    let secured = |config: &Config| config.xds.tls.is_some();
    let same = |old: &Config, new: &Config| match (&old.replicas, &new.replicas) {
        (Some(old), Some(new)) => old.is_same(new),
        (old, new) => old.is_none() && new.is_none(),
    };
    let namespaces = |config: &Config| config.policies.as_ref().map(|it| it.namespaces.clone());
    let listens = running.xds.listen == new.xds.listen && secured(running) == secured(new);
    let (reports, limits) = ((running.reports, new.reports), "limits of streams do");
    let proxies = reports.0.max_proxies == reports.1.max_proxies;
    let waiting = reports.0.max_waiting_bytes == reports.1.max_waiting_bytes;
    let fixed = [
        (listens, "xds", "listeners do"),
        (running.admin == new.admin, "admin.listen", "listeners do"),
        (
            same(running, new),
            "replicas",
            "how replicas find each other does",
        ),
        (
            namespaces(running) == namespaces(new),
            "policies",
            "the namespaces of WeirPolicies do",
        ),
        (proxies, "reports.max_proxies", limits),
        (waiting, "reports.max_waiting_bytes", limits),
        (running.discovery == new.discovery, "discovery", limits),
        (
            running.receipts == new.receipts,
            "receipts",
            "the files of receipts do",
        ),
    ];
    let (_, field, what) = fixed.into_iter().find(|(stays, ..)| !stays)?;
    let reason = format!(
        "restart needed: {what} not change while weir-control runs; nothing of this file is applied"
    );
    Some(Error {
        file: file.to_owned(),
        line: 0,
        field: field.into(),
        reason,
    })
}
