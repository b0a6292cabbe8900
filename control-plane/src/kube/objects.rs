// SPDX-License-Identifier: Apache-2.0
//! All objects of one kind, as a list and what is watched since tell them. Pure.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use weir_fleet::poll::PollError;

use super::{Status, json};

/// The server has forgotten the version that was named.
pub(crate) const EXPIRED: u16 = 410;

/// What is kept of each of them, by name.
pub(crate) trait Kept: Default {
    /// As the server tells it.
    type Object: DeserializeOwned;

    /// What a Role must allow to ask for them.
    const RIGHT: &'static str;

    /// Objects of a page of a list. Of slices, a hundred endpoints each, which whoever writes them may make a thousand, of
    /// half a KiB.
    const PAGE: usize = 100;

    /// Its name and version.
    fn metadata(object: &Self::Object) -> &Metadata;

    /// One that is new, or as it is now; refused where there are too many.
    fn put(&mut self, object: Self::Object) -> Result<(), PollError>;

    /// One that is gone.
    fn remove(&mut self, name: &str);

    /// Whether a list would bring more than is kept.
    fn lacks_some(&self) -> bool {
        false
    }
}

/// Those that there are, at one version of the server's.
#[derive(Debug, Default)]
pub(crate) struct Objects<K> {
    pub(crate) kept: K,
    /// Where a watch goes on.
    pub(crate) version: String,
}

/// What a line of a watch has brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Changed,
    /// A mark of how far it has come.
    Same,
    /// All are to be listed anew.
    Expired,
}

impl<K: Kept> Objects<K> {
    /// Takes in a page of a list. What the next is asked with, if there is one.
    pub(crate) fn add(&mut self, body: &[u8]) -> Result<Option<String>, PollError> {
        let page: Page<K::Object> = json(body)?;
        for object in page.items {
            self.kept.put(object)?;
        }
        self.version = page.metadata.resource_version;
        Ok(Some(page.metadata.r#continue).filter(|next| !next.is_empty()))
    }

    /// Takes in a line of a watch.
    pub(crate) fn take(&mut self, line: &[u8]) -> Result<Event, PollError> {
        match json::<Line<K::Object>>(line)? {
            Line::Added(object) | Line::Modified(object) => {
                self.at(K::metadata(&object));
                self.kept.put(object)?;
                Ok(Event::Changed)
            }
            Line::Deleted(object) => {
                let metadata = K::metadata(&object);
                self.at(metadata);
                self.kept.remove(&metadata.name);
                match self.kept.lacks_some() {
                    true => Ok(Event::Expired),
                    false => Ok(Event::Changed),
                }
            }
            Line::Bookmark(mark) => {
                self.at(&mark.metadata);
                Ok(Event::Same)
            }
            Line::Error(status) if status.code == EXPIRED => Ok(Event::Expired),
            Line::Error(status) => Err(status.refusal(status.code, K::RIGHT)),
        }
    }

    fn at(&mut self, metadata: &Metadata) {
        self.version.clone_from(&metadata.resource_version);
    }
}

/// A page of them.
#[derive(Debug, Deserialize)]
#[serde(default, bound(deserialize = "T: DeserializeOwned"))]
struct Page<T> {
    metadata: Metadata,
    #[serde(deserialize_with = "or_none")]
    items: Vec<T>,
}

impl<T> Default for Page<T> {
    fn default() -> Self {
        let (metadata, items) = (Metadata::default(), Vec::new());
        Self { metadata, items }
    }
}

/// Of a page, an object or a bookmark, as far as any is read.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Metadata {
    pub(crate) name: String,
    pub(crate) namespace: String,
    /// Another object of the same name has another one.
    pub(crate) uid: String,
    /// Counts what is written to its `spec`.
    pub(crate) generation: i64,
    /// To the second. Text, which sorts as the times do.
    pub(crate) creation_timestamp: String,
    /// Since when it is ending.
    pub(crate) deletion_timestamp: Option<String>,
    /// What a watch goes on from. Only the server knows what is in it.
    pub(crate) resource_version: String,
    /// What the next page is asked with; empty at the last.
    r#continue: String,
}

/// A line of a watch.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", content = "object", rename_all = "UPPERCASE")]
enum Line<T> {
    Added(T),
    Modified(T),
    Deleted(T),
    /// Nothing has changed up to here.
    Bookmark(Marked),
    Error(Status),
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Marked {
    metadata: Metadata,
}

/// Go writes `null` for what is empty.
pub(crate) fn or_none<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
