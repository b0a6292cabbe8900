// SPDX-License-Identifier: Apache-2.0
//! The item store: where the objects of projects are, and how one is read whole or not at all.

mod place;
mod reading;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use object_store::path::Path;
use object_store::{GetOptions, ObjectStore, ObjectStoreExt};
use weir_rules::{Feed, Stop};

use crate::decode;
use crate::error::StoreError;
use crate::limits::FeedLimits;
use crate::object::{Format, Object, check_name};

pub(crate) use place::Patience;

/// A folder, or a prefix of a bucket, with one object a project.
#[derive(Debug, Clone)]
pub struct ItemStore {
    url: Arc<str>,
    store: Arc<dyn ObjectStore>,
    root: Path,
}

impl ItemStore {
    /// Opens a folder (a path or `file:///...`), `s3://bucket/prefix` or `gs://bucket/prefix`.
    /// Nothing is asked of a bucket yet; a folder has to be there.
    ///
    /// # Errors
    /// [`StoreError::BadUrl`]: another scheme, no such folder, or an environment that gives no
    /// usable credentials or endpoint.
    pub fn open(url: &str) -> Result<Self, StoreError> {
        let (store, root) = place::open(url, &Patience::default()).map_err(|reason| {
            let url = url.to_owned();
            StoreError::BadUrl { url, reason }
        })?;
        Ok(Self::new(url, store, root))
    }

    fn new(url: &str, store: Arc<dyn ObjectStore>, root: Path) -> Self {
        let url = url.trim_end_matches('/').into();
        Self { url, store, root }
    }

    /// Where the store is, as it was opened.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Whether its objects come over a network.
    #[must_use]
    pub fn is_remote(&self) -> bool {
        self.url.starts_with("s3://") || self.url.starts_with("gs://")
    }

    /// The object of `project` as it is now: `<project>.parquet`, else `<project>.ndjson`.
    ///
    /// # Errors
    /// [`StoreError::BadProjectName`], [`StoreError::UnknownProject`], [`StoreError::Unreachable`],
    /// [`StoreError::Denied`].
    pub async fn find(&self, project: &str) -> Result<Object, StoreError> {
        check_name(project)?;
        // Who may not list a bucket is denied what is absent, so the other format is asked for too.
        let mut denied = None;
        for format in Format::ALL {
            let name = format!("{project}.{}", format.suffix());
            let place = self.root.clone().join(name.as_str());
            match self.store.head(&place).await {
                Ok(meta) => return Ok(Object::new(project, format, meta)),
                Err(object_store::Error::NotFound { .. }) => {}
                Err(error) => match failed(self.name(&name), &error) {
                    error @ StoreError::Denied { .. } => denied = denied.or(Some(error)),
                    error => return Err(error),
                },
            }
        }
        let (project, store) = (project.to_owned(), self.url.to_string());
        Err(denied.unwrap_or(StoreError::UnknownProject { project, store }))
    }

    /// Reads `object` and decodes it on `cores` threads. Decoding computes on the thread that polls
    /// this future and on threads of its own, so poll it where blocking is allowed.
    ///
    /// # Errors
    /// [`StoreError::Changed`] when it is no longer the object that was found;
    /// [`StoreError::TooLarge`], [`StoreError::BadFeed`], [`StoreError::Stopped`],
    /// [`StoreError::Unreachable`], [`StoreError::Denied`].
    pub async fn fetch(
        &self,
        object: &Object,
        cores: usize,
        limits: &FeedLimits,
        stop: &Stop,
    ) -> Result<Feed, StoreError> {
        let bytes = self.read(object, limits, stop).await?;
        let work = decode::Work {
            cores,
            limits,
            stop,
        };
        decode::decode(&bytes, object.format, &work)
            .map_err(|refused| refused.of(self.name_of(object)))
    }

    async fn read(
        &self,
        object: &Object,
        limits: &FeedLimits,
        stop: &Stop,
    ) -> Result<bytes::Bytes, StoreError> {
        let name = || self.name_of(object);
        let stopped = || StoreError::Stopped { object: name() };
        if object.bytes > limits.max_bytes {
            let (bytes, limit) = (object.bytes, limits.max_bytes);
            let reason = format!("{bytes} bytes are more than the limit of {limit}");
            return Err(StoreError::TooLarge {
                object: name(),
                reason,
            });
        }
        let options = GetOptions {
            if_match: object.meta.e_tag.clone(),
            ..GetOptions::default()
        };
        let changed = || StoreError::Changed { object: name() };
        let answer = self.store.get_opts(&object.meta.location, options);
        let found = match reading::unless_stopped(answer, stop)
            .await
            .ok_or_else(stopped)?
        {
            Ok(found) => found,
            Err(
                object_store::Error::NotFound { .. } | object_store::Error::Precondition { .. },
            ) => return Err(changed()),
            Err(error) => return Err(failed(name(), &error)),
        };
        if found.meta.size != object.bytes || found.meta.e_tag != object.meta.e_tag {
            return Err(changed());
        }
        match reading::whole(found, object.bytes, stop).await {
            Ok(bytes) => Ok(bytes),
            Err(reading::Failed::Stopped) => Err(stopped()),
            Err(reading::Failed::Store(error)) => Err(failed(name(), &error)),
            Err(reading::Failed::Short(reason)) => {
                let object = name();
                Err(StoreError::Unreachable { object, reason })
            }
        }
    }

    fn name(&self, file: &str) -> String {
        format!("{}/{file}", self.url)
    }

    fn name_of(&self, object: &Object) -> String {
        self.name(&format!("{}.{}", object.project, object.format.suffix()))
    }
}

/// An error of the store that is neither "not found" nor "changed".
fn failed(object: String, error: &object_store::Error) -> StoreError {
    let reason = chain(error);
    match error {
        object_store::Error::PermissionDenied { .. }
        | object_store::Error::Unauthenticated { .. } => StoreError::Denied { object, reason },
        _ => StoreError::Unreachable { object, reason },
    }
}

/// The error and what caused it, on one line, each part once.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let part = error.to_string();
        if !text.contains(&part) {
            text = format!("{text}: {part}");
        }
        cause = error.source();
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
