// SPDX-License-Identifier: Apache-2.0
//! The configuration file and the files it names, while weir-control runs.
//!
//! They are read each second and compared: a second's delay for a source that works on every filesystem,
//! through links, mounts and editors that replace files. Of large ones their times tell whether that is needed. All files together are one configuration: a
//! change that does not check as a whole changes nothing.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::floor::{Floor, LOOK_EVERY};
use crate::config::{self, Config, Error, Files, Loaded};
use crate::news::News;

/// Publishes each good change, as written but for lists of hosts that shrink ([`Floor`]), and reports each bad one, until nobody listens.
pub async fn watch(
    path: PathBuf,
    loaded: Loaded,
    written: watch::Sender<Arc<Config>>,
    updates: mpsc::Sender<News>,
) {
    let Loaded {
        config: running,
        mut files,
    } = loaded;
    let mut floor = Floor::new(running.clone());
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let (main, known) = (path.clone(), files);
        let looked = tokio::task::spawn_blocking(move || look(&main, known)).await;
        let Ok((now, news)) = looked else { return };
        files = now;
        let error = match news {
            None => None,
            Some(Ok(config)) => match restart_needed(&path, &running, &config) {
                None => {
                    floor.read(config, Instant::now());
                    None
                }
                error => error,
            },
            Some(Err(error)) => Some(error),
        };
        let Some(error) = error else {
            if let Some(config) = floor.settle(Instant::now()) {
                written.send_replace(config);
            }
            continue;
        };
        floor.spoiled();
        if updates.send(News::Misconfigured(error)).await.is_err() {
            return;
        }
    }
}

/// The files as they are now, and what they say if that is not what they said.
pub fn look(
    path: &std::path::Path,
    mut known: Files,
) -> (Files, Option<Result<Arc<Config>, Error>>) {
    if known.iter_mut().all(|(path, file)| file.is_now(path)) {
        return (known, None);
    }
    match config::load(path) {
        Ok(Loaded { config, files }) => (files, Some(Ok(config))),
        Err((error, files)) => (files, Some(Err(error))),
    }
}

/// What cannot be changed while ports are bound.
pub fn restart_needed(file: &std::path::Path, running: &Config, new: &Config) -> Option<Error> {
    // Renewed certificates and tokens are taken up as they come; what is open goes on.
    let secured = |config: &Config| config.xds.tls.is_some();
    let same = |old: &Config, new: &Config| match (&old.replicas, &new.replicas) {
        (Some(old), Some(new)) => old.is_same(new),
        (old, new) => old.is_none() && new.is_none(),
    };
    let field = if running.xds.listen != new.xds.listen || secured(running) != secured(new) {
        "xds"
    } else if running.admin != new.admin {
        "admin.listen"
    } else if !same(running, new) {
        "replicas"
    } else {
        return None;
    };
    let what = match field {
        "replicas" => "how replicas find each other does",
        _ => "listeners do",
    };
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
