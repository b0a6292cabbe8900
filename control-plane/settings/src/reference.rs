// SPDX-License-Identifier: Apache-2.0
//! Fields as a reference lists them: names and meanings from [`section!`](crate::section), defaults and ranges as
//! [`Scope`](crate::Scope) was asked for them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::RangeInclusive;

use serde_saphyr::Spanned;

/// A field that a file may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// `clusters.<name>.hosts[].address`
    pub name: String,
    /// Its doc comment.
    pub meaning: String,
}

/// What can be a field.
pub trait Shape {
    /// Adds the field, or those in it.
    fn entries(name: &str, meaning: &str, into: &mut Vec<Entry>);
}

impl Shape for String {
    fn entries(name: &str, meaning: &str, into: &mut Vec<Entry>) {
        into.push(Entry {
            name: name.to_owned(),
            meaning: words(meaning),
        });
    }
}

impl Shape for u32 {
    fn entries(name: &str, meaning: &str, into: &mut Vec<Entry>) {
        String::entries(name, meaning, into);
    }
}

impl<T: Shape> Shape for Spanned<T> {
    fn entries(name: &str, meaning: &str, into: &mut Vec<Entry>) {
        T::entries(name, meaning, into);
    }
}

impl<T: Shape> Shape for Option<T> {
    fn entries(name: &str, meaning: &str, into: &mut Vec<Entry>) {
        T::entries(name, meaning, into);
    }
}

impl<T: Shape> Shape for Vec<T> {
    fn entries(name: &str, meaning: &str, into: &mut Vec<Entry>) {
        T::entries(&format!("{name}[]"), meaning, into);
    }
}

impl<T: Shape> Shape for BTreeMap<String, T> {
    fn entries(name: &str, meaning: &str, into: &mut Vec<Entry>) {
        T::entries(&format!("{name}.<name>"), meaning, into);
    }
}

/// Adds a group, where something is said of it.
#[doc(hidden)]
pub fn group(name: &str, meaning: &str, into: &mut Vec<Entry>) {
    if !meaning.trim().is_empty() {
        String::entries(name, meaning, into);
    }
}

/// The name of a field in a group.
#[doc(hidden)]
pub fn below(group: &str, field: &str) -> String {
    match group {
        "" => field.to_owned(),
        group => format!("{group}.{field}"),
    }
}

/// Lines of a doc comment as one.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A field as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// As of [`Entry`].
    pub name: String,
    /// `duration`, `size`, ...
    pub kind: String,
    /// What counts where nothing is written, as it would be written.
    pub default: Option<String>,
    /// What may be written.
    pub range: Option<String>,
}

thread_local! {
    static SEEN: RefCell<Option<Vec<Seen>>> = const { RefCell::new(None) };
}

/// Every field that `work` reads on this thread.
pub fn observe<T>(work: impl FnOnce() -> T) -> (T, Vec<Seen>) {
    SEEN.set(Some(Vec::new()));
    let result = work();
    (result, SEEN.take().unwrap_or_default())
}

/// Tells an observer of a field that [`Scope`](crate::Scope) does not know enough of; `name` is the whole one.
pub fn note(name: &str, kind: &str, default: Option<String>, range: Option<String>) {
    SEEN.with_borrow_mut(|seen| {
        if let Some(seen) = seen {
            seen.push(Seen {
                name: any_item(name),
                kind: kind.to_owned(),
                default,
                range,
            });
        }
    });
}

/// `1s to 60s`
pub(crate) fn span<T: Copy, Shown: Display>(
    range: &RangeInclusive<T>,
    show: impl Fn(T) -> Shown,
) -> String {
    format!("{} to {}", show(*range.start()), show(*range.end()))
}

/// `hosts[3].address` is one of `hosts[].address`.
fn any_item(name: &str) -> String {
    let mut parts = name.split('[');
    let mut any = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        any.push('[');
        any.push_str(part.trim_start_matches(|c: char| c.is_ascii_digit()));
    }
    any
}

#[cfg(test)]
#[allow(
    unreachable_pub,
    reason = "section! is for modules of which some are public"
)]
mod tests {
    use super::*;
    use crate::{Scope, Text, Value, section};

    section! {
        /// All of it.
        Whole {
            /// A time.
            time: Option<Text>,
            /// Many
            /// of them.
            many: Vec<Spanned<Part>>,
            names: BTreeMap<String, Part>,
            /// Words.
            words: Vec<Text>,
        }
    }
    section! {
        /// A part.
        Part {
            /// A size.
            size: Value,
        }
    }

    #[test]
    fn fields_are_listed_with_what_their_comments_say() {
        let mut entries = Vec::new();
        Whole::entries("", "", &mut entries);
        let entries: Vec<_> = entries
            .iter()
            .map(|entry| (entry.name.as_str(), entry.meaning.as_str()))
            .collect();
        let expected = [
            ("time", "A time."),
            ("many[]", "Many of them."),
            ("many[].size", "A size."),
            ("names.<name>.size", "A size."),
            ("words[]", "Words."),
        ];
        assert_eq!(entries, expected);
    }

    #[test]
    fn what_is_read_is_seen_with_default_and_range() {
        let read = || {
            let root = Scope::root(std::path::Path::new("w.yaml"));
            let scope = root.section("many").item(2);
            scope.size(&None, "size", 4096, 1..=1 << 20).unwrap()
        };
        let (size, seen) = observe(read);
        assert_eq!(size, 4096);
        let [size] = &seen[..] else {
            panic!("{seen:?}")
        };
        assert_eq!(
            (size.name.as_str(), size.kind.as_str()),
            ("many[].size", "size")
        );
        assert_eq!(size.default.as_deref(), Some("4KiB"));
        assert_eq!(size.range.as_deref(), Some("1B to 1MiB"));
        read();
        assert!(observe(|| ()).1.is_empty());
    }
}
