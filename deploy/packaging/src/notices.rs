// SPDX-License-Identifier: Apache-2.0
//! Third-party notices: what is linked, under which licence, and the texts that come with it.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::parts::{Part, Parts};

const LINE: &str =
    "--------------------------------------------------------------------------------";

/// A text for people. The same text of several crates is there once.
pub(crate) fn write(name: &str, version: &str, parts: &Parts) -> String {
    let others: Vec<&Part> = parts.crates.iter().filter(|part| !part.own).collect();
    let mut page = format!(
        "{name} {version} is under the Apache License 2.0. It contains the following, each under its own licence,\n\
         and the standard library of Rust, whose licences are in rust-standard-library.html.\n\n"
    );
    let mut texts: BTreeMap<&str, Vec<&Part>> = BTreeMap::new();
    for part in others {
        let mut line = format!("{} {}: {}", part.name, part.version, part.licence);
        if let Some(repository) = &part.repository {
            let _ = write!(line, ", {repository}");
        }
        if part.texts.is_empty() {
            line.push_str(" (it comes without a text)");
        }
        let _ = writeln!(page, "{line}");
        for text in &part.texts {
            texts.entry(text).or_default().push(part);
        }
    }
    for (text, of) in texts {
        let names = of
            .iter()
            .map(|part| format!("{} {}", part.name, part.version));
        let names = names.collect::<Vec<_>>().join(", ");
        let _ = write!(page, "\n{LINE}\nOf {names}:\n\n{text}\n");
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(name: &str, texts: &[&str]) -> Part {
        Part {
            name: name.to_owned(),
            version: "1.0.0".to_owned(),
            licence: "MIT".to_owned(),
            texts: texts.iter().map(|text| (*text).to_owned()).collect(),
            ..Part::default()
        }
    }

    #[test]
    fn every_crate_is_named_and_the_same_text_is_there_once() {
        let parts = Parts {
            crates: vec![
                part("a", &["the text"]),
                part("b", &["another", "the text"]),
                part("c", &[]),
                Part {
                    own: true,
                    ..part("weir-policy", &[])
                },
            ],
            ..Parts::default()
        };
        let page = write("x", "0.1.0", &parts);
        assert!(
            page.contains("c 1.0.0: MIT (it comes without a text)\n"),
            "{page}"
        );
        assert!(
            page.contains("Of a 1.0.0, b 1.0.0:\n\nthe text\n"),
            "{page}"
        );
        assert_eq!(page.matches("the text\n").count(), 1);
        assert!(!page.contains("weir-policy"));
    }
}
