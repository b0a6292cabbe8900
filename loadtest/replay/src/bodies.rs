// SPDX-License-Identifier: Apache-2.0
//! What requests carry: files named by the workload, each read once before anything is sent.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs;
use std::path::{Component, Path, PathBuf};

use bytes::Bytes;

use crate::table::BadInput;
use crate::workload::Request;

/// Bodies by the name that the workload gives them; requests with the same name share the bytes.
#[derive(Debug, Default)]
pub struct Bodies {
    folder: Option<PathBuf>,
    read: HashMap<String, Bytes>,
}

impl Bodies {
    /// Bodies that will be looked for in this folder; without one, a request with a body is refused.
    #[must_use]
    pub fn new(folder: Option<PathBuf>) -> Self {
        let read = HashMap::new();
        Self { folder, read }
    }

    /// Reads the body of a request from line `line`, unless it has none or it was read before.
    pub fn load(&mut self, line: usize, request: &Request) -> Result<(), BadInput> {
        let Some(name) = &request.body else {
            return Ok(());
        };
        let Some(folder) = &self.folder else {
            let reason = format!("{name:?} is in an unknown folder: give it with --bodies");
            return Err(BadInput::new(line, "body", reason));
        };
        if let Entry::Vacant(place) = self.read.entry(name.clone()) {
            let file = folder.join(name);
            let content = fs::read(&file).map_err(|error| {
                let reason = format!("cannot read {}: {error}", file.display());
                BadInput::new(line, "body", reason)
            })?;
            place.insert(content.into());
        }
        Ok(())
    }

    /// The content of a body that was read.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Bytes> {
        self.read.get(name).cloned()
    }
}

/// Why a name cannot be that of a body: it must stay inside its folder.
pub(crate) fn bad_name(name: &str) -> Option<&'static str> {
    let mut parts = Path::new(name).components();
    if name.is_empty() {
        Some("is empty; leave the field out for a request without a body")
    } else if parts.any(|part| !matches!(part, Component::Normal(_))) {
        Some("is not a relative path without `.` and `..`")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(body: Option<&str>) -> Request {
        Request {
            t_us: 0,
            key: String::new(),
            priority: "low".to_owned(),
            user: String::new(),
            run_us: 0,
            bytes: 0,
            body: body.map(str::to_owned),
            sender: None,
        }
    }

    #[test]
    fn a_file_is_read_once_and_shared() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.json");
        fs::write(&file, "{}").unwrap();
        let mut bodies = Bodies::new(Some(folder.path().to_owned()));
        bodies.load(1, &request(Some("a.json"))).unwrap();
        fs::remove_file(&file).unwrap();
        bodies.load(2, &request(Some("a.json"))).unwrap();
        bodies.load(3, &request(None)).unwrap();
        let (one, other) = (bodies.get("a.json").unwrap(), bodies.get("a.json").unwrap());
        assert_eq!((&one[..], one.as_ptr()), (&b"{}"[..], other.as_ptr()));
        assert_eq!(bodies.get("b.json"), None);
    }

    #[test]
    fn a_missing_file_or_folder_is_named_with_its_line() {
        let folder = tempfile::tempdir().unwrap();
        let mut bodies = Bodies::new(Some(folder.path().to_owned()));
        let error = bodies.load(7, &request(Some("a.json"))).unwrap_err();
        let expected = format!("line 7: body: cannot read {}", folder.path().display());
        assert!(error.to_string().starts_with(&expected), "{error}");
        let error = Bodies::default().load(3, &request(Some("a.json")));
        assert_eq!(
            error.unwrap_err().to_string(),
            "line 3: body: \"a.json\" is in an unknown folder: give it with --bodies"
        );
    }

    #[test]
    fn a_name_stays_inside_its_folder() {
        for good in ["a.json", "rules/shop-0001-1.json", "..a"] {
            assert_eq!(bad_name(good), None, "{good}");
        }
        for bad in ["", "/etc/passwd", "..", "a/../../b", "./a", "."] {
            assert!(bad_name(bad).is_some(), "{bad}");
        }
    }
}
